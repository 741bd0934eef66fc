r"""Routers' configurations as scenarios, and back ([configurations.md](../../../docs/configurations.md)).

Import: a dialect makes ports in no vendor's words (`model.py`) from numbered lines, and `reading` makes a
scenario and a report from a port. Each line is used, reported, or a comment (`source.Account`). Export:
`writing` takes the link from a scenario (`outgoing.py`), and a dialect makes lines from it, and remarks about
what the lines do not say.

How to write a dialect:

1. Make a folder `dialects/NAME`, or a module, that has `DIALECTS = (Dialect(…),)` (`dialect.py`).
2. `score` says how much of a text looks like it. `read` gives ports, as below; `write` gives lines for a
   link. The room `syntax` reads braces, JSON and command lines; `linux` has what several dialects share.
3. Add NAME to `MODULES` in `dialects/__init__.py`. Nothing else needs to know of it: the help of `--from` and
   `--to` lists what is there.
4. Write its tests in `tests/python/routers`: a configuration in `configurations`, which the tests of all
   dialects read (a row of `PORTS` in `importing.py` chooses among several ports), a row of `WHOLE` in
   `test_lost_lines.py`, which demands one of each dialect, and a `test_NAME.py` with what the lines mean.
5. Add a row to the table of the page and a line to `CHANGELOG.md`, and run `make generate`.

>>> from perhop.routers import units
>>> from perhop.routers.model import Match, Port, PortQueue, Rate
>>> from perhop.routers.source import Account
>>> def read(source, account):
...     port = Port("wan", 1)
...     for line, text in source.numbered():
...         match text.split():
...             case ["queue", name, "dscp", codes, "rate", rate]:
...                 guarantee = Rate(units.scaled(rate, units.DECIMAL), line=line, text=f"rate {rate}")
...                 match = Match(units.codepoints(codes), line=line)
...                 port.queues.append(PortQueue(name, line, match, guarantee=guarantee))
...                 port.lines.add(line)  # it is used, if this port is imported
...             case ["queue", *_]:
...                 account.miss(line)  # the queues do something else without it
...             case [_, *_]:
...                 account.ignore(line, "not about queues")
...     return [port]
>>> source = Source([("wan.cfg", b"hostname x\nqueue voice dscp ef rate 2m\nqueue bulk size 9")])
>>> account = Account(source)
>>> read(source, account)[0].queues[0].guarantee.number, [finding.text for finding in account.findings]
(2000000.0, ['not about queues: `hostname x`', 'not understood: `queue bulk size 9`'])
"""

from perhop.routers.dialects import DIALECTS, READERS, WRITERS
from perhop.routers.exporting import Exported, exported
from perhop.routers.guarantees import Guarantees, guaranteed
from perhop.routers.importing import imported, recognised
from perhop.routers.reading.amounts import Answers
from perhop.routers.reading.document import Imported
from perhop.routers.source import CODES, Finding, Source

__all__ = [
    "CODES",
    "DIALECTS",
    "READERS",
    "WRITERS",
    "Answers",
    "Exported",
    "Finding",
    "Guarantees",
    "Imported",
    "Source",
    "exported",
    "guaranteed",
    "imported",
    "recognised",
]

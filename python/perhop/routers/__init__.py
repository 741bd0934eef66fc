"""Routers' configurations as scenarios, and back ([configurations.md](../../../docs/configurations.md)).

Text becomes a tree with line numbers (one file for each dialect), the tree ports in no vendor's words
(`model.py`), a port a scenario (`mapping.py`) and a report (`document.py`). Each line of the text is used,
reported, or a comment (`source.Account`). The other way, a scenario's link (`outgoing.py`) becomes lines
(`to_….py`, one file for each dialect) and remarks of what they do not say.
"""

from perhop.routers.dialects import DIALECTS, READERS, WRITERS
from perhop.routers.exporting import Exported, exported
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
    "Imported",
    "Source",
    "exported",
    "imported",
    "recognised",
]

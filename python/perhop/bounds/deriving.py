"""`perhop.bound`: what no run of a scenario can exceed, and how that follows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar

from perhop import _engine
from perhop.bounds.rows import Entry, Rows, values
from perhop.files import arguments
from perhop.measures.catalog import FLOW_BOUNDS, QUEUE_BOUNDS
from perhop.plurals import counted
from perhop.scenario.reading import ScenarioSource, _files, read
from perhop.show.report import Report, as_text
from perhop.show.written import Written, command_line

if TYPE_CHECKING:
    import polars as pl

_NAP_S = 0.05
"""Seconds after which Ctrl-C is looked for again, on systems where it does not end a wait."""
MOST_PARTS = 5000
"""Bounds of more flows and links take longer than results may wait for."""


def bound(scenario: ScenarioSource) -> Bounds:
    """Derive what no run of a scenario can exceed: delays, backlogs, and where no packet can be lost.

    A bound holds for every packet of every run, with any seed and the warm-up included, as long as the
    traffic is what the scenario says. Nothing is simulated.

    Args:
        scenario: See `ScenarioSource`.

    Raises:
        ScenarioError: The scenario is wrong; the message names the place and the key.
        PerhopError: The file cannot be read.
    """
    checked = read(scenario)
    checked.warn()
    found = of_text(checked.text)
    for file in _files(scenario):
        found = replace(found, name=file.stem, command=command_line("bound", str(file)))
    return found


def of_text(text: str) -> Bounds:
    """The bounds of a scenario in canonical JSON; the engine derives them on a thread, so Ctrl-C ends it."""
    cancel, derived = _engine.Cancel(), SimpleQueue[str | Exception]()

    def derive() -> None:
        try:
            derived.put(_engine.bounds(text, cancel))
        except Exception as error:  # noqa: BLE001 - the calling thread raises it
            derived.put(error)

    thread = threading.Thread(target=derive, name="perhop-bounds", daemon=True)
    thread.start()
    try:
        while True:
            with suppress(Empty):
                found = derived.get(timeout=_NAP_S)
                break
    except BaseException:
        cancel.cancel()
        raise
    finally:
        thread.join()
    if isinstance(found, Exception):
        raise found
    return Bounds(text, json.loads(found))


def beside_runs(text: str) -> Bounds:
    """The bounds to stand beside the results of a canonical scenario; none where that fails or takes long."""
    try:
        size = _engine.memory(text)
        if size["flows"] + size["links"] > MOST_PARTS:
            why = f"the network has more than {MOST_PARTS:,} flows and links; `perhop bound` derives them"
            return none(text, why)
        return of_text(text)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with bounds, results are right without them
        return none(text, str(error) or type(error).__name__)


def none(text: str, why: str) -> Bounds:
    """No bounds of a canonical scenario, for this reason."""
    return Bounds(text, {"links": [], "flows": [], "notes": []}, failure=why)


@dataclass(frozen=True, repr=False, eq=False)
class Bounds(Written):
    """What no run of a scenario can exceed: bounds of delay and backlog, and where no packet can be lost.

    `classes` has a row for each `[[flows]]` entry, `flows`, `links` and `link_classes` have one for each
    flow, link, and class of packets that a link's queue distinguishes. Where there is no bound, a column that
    ends in `_reason` says why. `steps` has the derivations, and `derivation("voice")` one of them as text.

    Attributes:
        scenario: The scenario as canonical JSON.
        content: What the engine derived, as plain data.
        name: The title where the scenario has none: the name of its file.
        failure: Why nothing could be derived; empty where it could.
        of: The class, flow or link of which alone text shows the derivation, and JSON has the rows; empty
            for tables of all.
        with_steps: Text shows the derivations below the tables.
        command: See `Written`.
    """

    COMMAND: ClassVar = "perhop bound"
    TABLE: ClassVar = "classes"
    scenario: str
    content: Mapping[str, Any]
    name: str = ""
    failure: str = ""
    of: str = ""
    with_steps: bool = False
    command: str = ""

    @property
    def title(self) -> str:
        """The scenario's title, or the name of its file."""
        return str(json.loads(self.scenario).get("title") or self.name or "Scenario")

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on the network as a whole, such as one on a cycle of its routes."""
        return tuple(self.content["notes"])

    @cached_property
    def classes(self) -> pl.DataFrame:
        """One row for each `[[flows]]` entry: the largest bound of its flows, none if one of them has none.

        Columns: `class`, `flows`, `one_way_delay_at_most_s`, `loss_excluded`, `delay_reason` and
        `loss_reason` (those of the first flow without a bound).
        """
        from perhop.bounds import frames  # noqa: PLC0415 - polars takes long to load

        return frames.classes(self.rows)

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row for each flow, in the order of `Result.flows`.

        Columns: `flow`, `class`, `one_way_delay_at_most_s` (from host to host), `loss_excluded`,
        `delay_reason`, `loss_reason`, `method` (the analysis with the least bound) and `route` (its links).
        """
        from perhop.bounds import frames  # noqa: PLC0415 - polars takes long to load

        return frames.flows(self.rows)

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row for each link.

        Columns: `link`, `delay_at_most_s` (the longest wait in its queue), `backlog_at_most_bytes`,
        `loss_excluded`, `delay_reason`, `backlog_reason` and `loss_reason`.
        """
        from perhop.bounds import frames  # noqa: PLC0415 - polars takes long to load

        return frames.links(self.rows)

    @cached_property
    def link_classes(self) -> pl.DataFrame:
        """One row for each link and class of packets that its queue distinguishes; columns as of `links`."""
        from perhop.bounds import frames  # noqa: PLC0415 - polars takes long to load

        return frames.link_classes(self.rows)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """One row for each step of each derivation.

        Columns: `link` and `class`, or `flow`: what is derived; `step` (from 1), `text`, `formula` and
        `source` (null where a step follows from those before it).
        """
        from perhop.bounds import frames  # noqa: PLC0415 - polars takes long to load

        return frames.steps(self.rows)

    def of_class(self, name: str) -> dict[str, object]:
        """The bounds of a `[[flows]]` entry by the names of their columns; None where there is none."""
        return values(self.rows.by_class.get(name, ()), FLOW_BOUNDS)

    def of_queue(self, link: str, name: str | None = None) -> dict[str, object]:
        """The bounds of a link, or of a class of its queue, by the names of their columns."""
        found = self.queues.get((link, name))
        return values([] if found is None else [found], QUEUE_BOUNDS)

    def about(self, of: str) -> Bounds:
        """Return these bounds with text and JSON of one alone, as `perhop bound --of` has them.

        Args:
            of: The name of a `[[flows]]` entry, a flow, a link, or a class of packets at links.

        Raises:
            PerhopError: The scenario has nothing of this name; the message lists what it has.
        """
        from perhop.bounds import page  # noqa: PLC0415 - it reads bounds

        page.derivations(self, arguments.text("of", of))
        return replace(self, of=of)

    def derivation(self, of: str, width: int | None = None) -> str:
        """Return how the bounds of a class, flow or link follow, step by step, as `perhop bound --of` prints.

        Args:
            of: The name of a `[[flows]]` entry, a flow, a link, or a class of packets at links.
            width: Columns of the text; None for no limit.

        Raises:
            PerhopError: The scenario has nothing of this name; the message lists what it has.
        """
        from perhop.bounds import page  # noqa: PLC0415 - it reads bounds

        return as_text(page.derivations(self, arguments.text("of", of)), width)

    def to_dict(self) -> dict[str, Any]:
        """Return what `perhop bound --json` writes as plain data: all tables, or their rows about `of`."""
        of = self.rows
        tables = {"classes": of.classes, "links": of.links, "link_classes": of.link_classes}
        tables |= {"flows": of.flows, "steps": of.steps}
        rows = {name: list(filter(self._concerns, rows)) for name, rows in tables.items()}
        return {**rows, "notes": [] if self.of else list(self.notes)}

    def _concerns(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is shown: all are, or those about the class, flow or link `of`."""
        return not self.of or self.of in (row.get(name) for name in ("class", "link", "flow"))

    def json(self) -> str:
        """Return what `perhop bound --json` writes: the same bytes for the same scenario."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _outline(self) -> str:
        classes, links = self.rows.classes, self.rows.links
        delays = [row["one_way_delay_at_most_s"] for row in classes] + [
            row["delay_at_most_s"] for row in links
        ]
        known = sum(delay is not None for delay in delays)
        what = f"{counted(len(classes), 'class', 'classes')} and {counted(len(links), 'link')}"
        return (
            f"{self.title!r}: {what}, {known} of {len(delays)} with a bound of the delay; see print(….text())"
        )

    def __str__(self) -> str:
        """The text that `perhop bound` prints, without a limit of width."""
        return self.text()

    def _reports(self, width: int | None) -> Sequence[Report]:  # noqa: ARG002 - the same for any width
        from perhop.bounds import page  # noqa: PLC0415 - it reads bounds

        return [page.derivations(self, self.of) if self.of else page.report(self, with_steps=self.with_steps)]

    def _write(self, place: Path, command: str, jobs: int) -> None:  # noqa: ARG002 - one picture
        from perhop.bounds import page  # noqa: PLC0415 - pictures load matplotlib

        page.write(place, replace(self, of=""), command)

    @cached_property
    def rows(self) -> Rows:
        """The rows of all tables, as plain data."""
        return Rows(self.content)

    @cached_property
    def queues(self) -> dict[tuple[str, str | None], Entry]:
        """What the engine says of each link, whose class is None, and of each class of its queue."""
        links: Iterable[Entry] = self.content["links"]
        return {
            **{(link["name"], None): link for link in links},
            **{(link["name"], one["name"]): one for link in links for one in link["classes"]},
        }

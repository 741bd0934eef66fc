"""The packets of a run in files: a capture that Wireshark opens, and a table of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perhop import _engine
from perhop.errors import ArgumentError
from perhop.files import arguments, filesystem, outputs
from perhop.runs import one_run

if TYPE_CHECKING:
    from perhop.runs.outcome import Outcome

REVERSE = " (reverse)"
"""The end of the name of a link's reverse direction."""

ENDINGS = {"capture": (".pcapng",), "events": (".parquet",)}
"""Ends of the names of files, by their arguments: the format of a capture is pcapng."""
MOST_LISTED = 12
"""Links that a message names."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The files into which a run's packets are recorded.

    Attributes:
        capture: The capture file, if there is to be one.
        events: The table of events, likewise.
        links: The links, with the names of both directions.
    """

    capture: Path | None
    events: Path | None
    links: tuple[tuple[str, str], ...]


def plan(
    scenario: str,
    *,
    capture: Path | str | None = None,
    events: Path | str | None = None,
    capture_links: Sequence[str] = (),
    reads: Sequence[Path] = (),
) -> Recording | None:
    """The recording of a scenario's run, after a check that its files can be written.

    Args:
        scenario: As canonical JSON.
        capture: The capture file.
        events: The table of events.
        capture_links: The links, both directions of each; by default those with a queue in either direction.
        reads: Files that must not be written over, such as the scenario's.

    Returns:
        None if no file is asked for.

    Raises:
        PerhopError: A file cannot be written, a link is unknown, or an option can have no effect.
    """
    capture_links = arguments.texts("capture_links", capture_links)
    if capture is None and events is None:
        if capture_links:
            raise ArgumentError(
                "capture_links", "has no effect without a capture or a table of events; name a file"
            )
        return None
    named = {"capture": capture, "events": events}
    paths = {name: None if path is None else arguments.path(name, path) for name, path in named.items()}
    outputs.apart(paths)
    real = [None if path is None else _file(path, name, reads) for name, path in paths.items()]
    return Recording(real[0], real[1], _directions(scenario, capture_links))


def _file(path: Path, name: str, reads: Sequence[Path]) -> Path:
    """A file that can be written, under its real name."""
    if str(path) == "-" or (path.exists() and not path.is_file()):
        raise ArgumentError(name, f"{path}: is no regular file; give a file name")
    outputs.prepare_file(path, name, reads, ENDINGS[name])
    return path.resolve()


def _listed(names: Iterable[str]) -> str:
    """Names of links in a message, as far as it stays readable."""
    listed = list(names)
    rest = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
    return ", ".join(listed[:MOST_LISTED]) + rest


def _directions(scenario: str, links: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Both directions of these links, or of those with a queue."""
    known = links_of(scenario)
    unknown = next((name for name in links if name not in known), None)
    if unknown is not None:
        of_reverse = unknown.removesuffix(REVERSE)
        hint = (
            f"name `{of_reverse}`, which means both directions"
            if of_reverse in known
            else f"the scenario has {_listed(f'`{name}`' for name in known) or 'none'}"
        )
        raise ArgumentError("capture_links", f": there is no link `{unknown}`; {hint}")
    chosen = [name for name, link in known.items() if name in links or (not links and _has_queue(link))]
    if not chosen:
        listed = _listed(known) or "the scenario has none"
        raise ArgumentError("capture_links", f"must name links, since no link has a queue: {listed}")
    return tuple((name, name + REVERSE) for name in chosen)


def links_of(scenario: str) -> dict[str, Any]:
    """All links in the engine's order, those of a topology included."""
    links: dict[str, Any] = json.loads(_engine.written_out(scenario))["links"]
    return links


def _has_queue(link: dict[str, Any]) -> bool:
    return link.get("queue") is not None or (link.get("reverse") or {}).get("queue") is not None


def record(scenario: str, seed: int, cancel: _engine.Cancel, recording: Recording) -> Outcome:
    """Simulate a scenario once, and write what is recorded; all files appear at the end, or none does.

    Raises:
        PerhopError: A file cannot be written.
        ScenarioError, BlockError, perhop._engine.Cancelled: See `perhop.run`.
    """
    plain = json.loads(scenario)
    with ExitStack() as stack:
        capture = _appearing(recording.capture, "capture", stack)
        table = _appearing(recording.events, "events", stack)
        spool = -1
        if recording.events is not None:
            spool = stack.enter_context(filesystem.scratch(recording.events))
        if one_run.modules(scenario):
            stack.enter_context(one_run.interruptible(cancel))
        outcome = _engine.record(
            scenario,
            seed,
            cancel,
            links=list(recording.links),
            comment=f"{plain.get('title') or 'A run'}, seed {seed}",
            capture=capture,
            events=None
            if recording.events is None
            else _blaming(lambda data: filesystem.write_all(spool, data), "events", recording.events),
        )
        if table is not None:
            from perhop.runs import events  # noqa: PLC0415 - polars takes long to load, and few runs are recorded

            events.write(spool, table, links_of(scenario), outcome["groups"])
    outcome["engine_reason"] = f"the packets of the run with seed {seed} are recorded"
    return outcome


def _appearing(path: Path | None, name: str, stack: ExitStack) -> Callable[[bytes], None] | None:
    """Return a writer of a file that appears when the stack ends without an error."""
    if path is None:
        return None
    stack.enter_context(_blamed(name, path))
    return _blaming(stack.enter_context(filesystem.appearing(path)), name, path)


@contextmanager
def _blamed(name: str, path: Path) -> Iterator[None]:
    """Errors of the system are those of this file."""
    try:
        yield
    except OSError as error:
        raise ArgumentError(name, f"{path}: cannot be written: {error.strerror or error}") from None


def _blaming(write: Callable[[bytes], None], name: str, path: Path) -> Callable[[bytes], None]:
    """`write`, whose errors are those of this file."""

    def blamed(data: bytes) -> None:
        with _blamed(name, path):
            write(data)

    return blamed

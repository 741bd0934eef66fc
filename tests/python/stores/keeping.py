"""What tests of stores share: journals of measures as bytes, and the runs that a store keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.stores.journal import ENDING, joined, pieces
from perhop.stores.measures import Encoder, Record, runs, usable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Contents:
    """What could be read of a journal of `size` bytes."""

    records: Sequence[Record]
    size: int
    unreadable: int


def encode(records: Iterable[Record]) -> bytes:
    """A whole journal with these runs."""
    return joined(Encoder().contents(records))


def decode(data: bytes) -> Contents:
    """The runs in a journal's bytes; bytes of records that stand for nothing are unreadable, too."""
    found = pieces(data)
    lost = {begin: len(content) for begin, content in found.contents}
    for begin, _ in usable(found.contents):
        del lost[begin]
    kept = runs(content for _, content in found.contents)
    return Contents(kept, len(data), found.unreadable + sum(lost.values()))


def kept_runs(store: Path) -> list[tuple[str, int]]:
    """Scenario and seed of each run in the journals of a store of sweeps, which is left as it is."""
    paths = sorted((store / "journals").glob(f"*{ENDING}"))
    found = [record for path in paths for record in decode(path.read_bytes()).records]
    return [(record.layout.key, record.seed) for record in found]

"""The files that a scenario is made of, by name and content: traces of links, and of what flows send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["rates", "arrivals", "sizes", "packets"]
"""The content of a file: rates of a link; arrivals, sizes or replayed packets of flows."""

_DIGITS = 12
"""Digits of a checksum, enough to tell traces apart and to find a file."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that a link or a group of flows has from a file.

    Attributes:
        owner: The name of the link's direction, or of the group.
        kind: What it is.
        name: The file's; empty for a text that the scenario itself holds.
        sha256: The checksum of its text, in hex: that of the file, as `sha256sum` prints it; of a capture,
            that of its packets as the scenario holds them.
    """

    owner: str
    kind: Kind
    name: str
    sha256: str

    def __str__(self) -> str:
        """`radio: walk.trace (SHA-256 0123456789ab…)`."""
        name = self.name or "data of the scenario"
        return f"{self.owner}: {name} (SHA-256 {self.sha256[:_DIGITS]}…)"


def traces(scenario: Mapping[str, Any]) -> Iterator[Trace]:
    """The traces of a canonical scenario: link by link, then group by group."""
    for link, spec in scenario.get("links", {}).items():
        for direction, keys in ((link, spec), (f"{link} (reverse)", spec.get("reverse") or {})):
            yield from _read(direction, "rates", keys.get("rate-trace"))
    for group in scenario.get("flows", []):
        yield from _read(group["name"], "arrivals", (group.get("arrivals") or {}).get("trace"))
        yield from _read(group["name"], "sizes", (group.get("sizes") or {}).get("cdf"))
        yield from _read(group["name"], "packets", group.get("replay"))


def _read(owner: str, kind: Kind, table: object) -> Iterator[Trace]:
    """The trace in a table that holds its text; a published distribution has a name instead."""
    if isinstance(table, Mapping):
        import hashlib  # noqa: PLC0415 - it loads OpenSSL, and few scenarios have traces

        digest = hashlib.sha256(table["data"].encode()).hexdigest()
        yield Trace(owner, kind, table.get("name") or "", digest)

"""The traces that a scenario's links follow, by name and content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_DIGITS = 12
"""Of a checksum: enough to tell traces apart, and to find a file by."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of one direction of a link.

    Attributes:
        link: The link's name.
        name: The file's; empty for a trace that the scenario itself holds.
        sha256: The checksum of its text, in hex: that of the file, as `sha256sum` prints it.
    """

    link: str
    name: str
    sha256: str

    def __str__(self) -> str:
        """`radio: walk.trace (SHA-256 0123456789ab…)`."""
        name = self.name or "data of the scenario"
        return f"{self.link}: {name} (SHA-256 {self.sha256[:_DIGITS]}…)"


def traces(scenario: Mapping[str, Any]) -> Iterator[Trace]:
    """The traces of a canonical scenario, link by link."""
    for link, spec in scenario.get("links", {}).items():
        for direction, keys in ((link, spec), (f"{link} (reverse)", spec.get("reverse") or {})):
            if trace := keys.get("rate-trace"):
                digest = hashlib.sha256(trace["data"].encode()).hexdigest()
                yield Trace(direction, trace.get("name") or "", digest)

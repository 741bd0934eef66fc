"""Junos class-of-service and the policers of its firewall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.junos.reader import read
from perhop.routers.dialects.junos.writer import lines

if TYPE_CHECKING:
    from perhop.routers.source import Source


def score(source: Source) -> float:
    """`class-of-service`, or what is in it."""
    text = source.text
    words = ("drop-profiles", "scheduler-maps", "forwarding-classes", "transmit-rate", "drop-profile-map")
    return 6.0 * ("class-of-service" in text) + 3.0 * sum(word in text for word in words)


DIALECTS = (Dialect("junos", "Junos class-of-service", score=score, read=read, write=lines),)

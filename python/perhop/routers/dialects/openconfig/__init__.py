"""OpenConfig's QoS model as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.openconfig.reader import read

if TYPE_CHECKING:
    from perhop.routers.source import Source


def score(source: Source) -> float:
    """Names of OpenConfig's model."""
    words = ("queue-management-profile", "scheduler-policies", "forwarding-groups", "openconfig-qos")
    return 5.0 * sum(word in source.text for word in words)


DIALECT = Dialect("openconfig", "OpenConfig QoS", score=score, read=read)

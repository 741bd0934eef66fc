"""VyOS: policies of `qos` and `traffic-policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.vyos.reader import read

if TYPE_CHECKING:
    from perhop.routers.source import Source


def score(source: Source) -> float:
    """Policies of VyOS's kinds."""
    found = source.starting(r"(?:set )?(?:qos (?:policy|interface)|traffic-policy)\b")
    return 9.0 * (found > 0) + 9.0 * (source.starting(r"(?:qos|traffic-policy) \{") > 0)


DIALECTS = (Dialect("vyos", "VyOS", score=score, read=read),)

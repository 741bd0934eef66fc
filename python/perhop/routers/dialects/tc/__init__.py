"""Linux tc: shell scripts, and what tc shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialect import SHARING, Dialect
from perhop.routers.dialects.tc.interface import read
from perhop.routers.dialects.tc.writer import lines

if TYPE_CHECKING:
    from perhop.routers.source import Source


def score(source: Source) -> float:
    """Commands of tc, or what it shows."""
    found = source.starting(r"(?:sudo +)?(?:\S*/|\$\{?)?tc\}? +(?:-\S+ +)*(?:qdisc|class|filter) ")
    shown = source.starting(r"(?:qdisc|class) \S+ \S*:")
    json = '"kind"' in source.text and '"handle"' in source.text
    return 3.0 * found + 3.0 * shown + 9.0 * json


DIALECTS = (
    Dialect(
        "tc",
        "Linux tc",
        family="Linux",
        score=score,
        read=read,
        write=lines,
        schedulers=SHARING | {"htb", "fq-codel", "dualpi2"},
        flattens=False,
    ),
)

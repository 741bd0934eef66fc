"""MikroTik RouterOS: exports with simple queues, queue trees and interface queues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.routeros.reader import read

if TYPE_CHECKING:
    from perhop.routers.source import Source


def score(source: Source) -> float:
    """Menus of queues and mangle rules, with entries of keys and values."""
    text = re.sub(r"\\[ \t]*(?:\r\n|\n|\r)[ \t]*", " ", source.text)
    # Bounded: a line that is continued often enough would take time by its square.
    added = re.search(r"(?m)^(?:/\S.{0,300} |/\S{0,300}/)?(?:add|set) .{0,1000}[a-z-]=", text)
    menus = r"/(?:queue[ /](?:type|tree|simple|interface)|ip[ /]firewall[ /]mangle)\b"
    return 10.0 * source.starting(menus) if added else 0.0


DIALECTS = (Dialect("routeros", "MikroTik RouterOS", score=score, read=read),)

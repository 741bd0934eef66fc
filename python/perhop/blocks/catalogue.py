"""The catalogue of blocks and congestion controls: by role, and within a role by age."""

from __future__ import annotations

import functools
import json
from typing import Any

from perhop import _engine

ROLES = {
    "meter": "Meters color a packet by its flow's traffic profile.",
    "aqm": "AQMs (active queue management) decide which packets are dropped or marked.",
    "scheduler": (
        "Schedulers decide which packet is sent next; their AQM (`rule`) decides which packets are dropped."
    ),
    "application": "Applications send data and wait for answers (key `application`).",
    "congestion-control": "Congestion controls decide how TCP's window grows and shrinks (key `congestion`).",
}
"""One sentence on the blocks of each role, in the order of lists."""
ERAS = {
    "papers": "proposed by the papers whose results perhop reproduces, or by their authors",
    "classic": "others published before 2008, which these papers build on or compare with",
    "today": "published since 2008",
}
"""The ages, in the order of lists."""

Block = dict[str, Any]


@functools.cache
def registered() -> tuple[Block, ...]:
    """Every block and congestion control, in the order of lists."""
    roles, eras = list(ROLES), list(ERAS)
    blocks: list[Block] = json.loads(_engine.blocks())
    return tuple(sorted(blocks, key=lambda block: (roles.index(block["role"]), eras.index(block["era"]))))


def grouped() -> dict[str, dict[str, list[Block]]]:
    """The blocks by role and age, without groups that are empty."""
    groups: dict[str, dict[str, list[Block]]] = {}
    for block in registered():
        groups.setdefault(block["role"], {}).setdefault(block["era"], []).append(block)
    return groups


def linux(block: Block) -> str | None:
    """Linux's version of a block in words."""
    kernel = block["linux"]
    if kernel is None:
        return None
    since = kernel["since"]
    return f"`{kernel['name']}` " + (f"since {since}" if since else "in a patched kernel")

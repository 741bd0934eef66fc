"""The costs of each mechanism for a packet, from `costs.toml`, which a benchmark writes."""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from typing import Any


def instructions(kind: str, name: str, what: str = "per_packet") -> float:
    """Instructions of a block.

    Args:
        kind: The kind of block, such as "meter".
        name: The block, such as "twam".
        what: What they are for, such as "per_packet".

    Raises:
        KeyError: The record has no such number.
    """
    return float(_record()[kind][name][f"instructions_{what}"])


@functools.cache
def _record() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("costs.toml").read_text(encoding="utf-8"))

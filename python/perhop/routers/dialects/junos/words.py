"""Configurations of Junos as text: blocks in braces, statements, lists, names and numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.routers import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Block:
    """Words with what is in braces behind them."""

    head: str
    held: list[Node]


Node = str | Block
"""A statement, or a block."""


def text_lines(nodes: Sequence[Node], indent: str = "") -> list[str]:
    """The lines of statements and blocks; a block without anything is none."""
    result = []
    for node in nodes:
        if isinstance(node, str):
            result.append(f"{indent}{node};")
        elif node.held:
            result += [f"{indent}{node.head} {{", *text_lines(node.held, f"{indent}    "), f"{indent}}}"]
    return result


def word(name: str) -> str:
    """A name as one word."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", name).strip("-") or "unnamed"


def interface(name: str) -> tuple[str, str]:
    """The interface of a link, and its unit if the name has one.

    >>> interface("ge-0/0/1.7"), interface("to the core")
    (('ge-0/0/1', '7'), ('to-the-core', ''))
    """
    found = re.sub(r"[^A-Za-z0-9_./:-]", "-", name) or "unnamed"
    base, dot, unit = found.rpartition(".")
    return (base, unit) if dot and base and unit.isdecimal() else (found, "")


def short(number: int) -> str:
    """A number with `g`, `m` or `k` where nothing is lost.

    >>> short(2_000_000), short(64_000), short(15_140)
    ('2m', '64k', '15140')
    """
    for factor, unit in ((10**9, "g"), (10**6, "m"), (10**3, "k")):
        if number and number % factor == 0:
            return f"{number // factor}{unit}"
    return str(number)


def code_points(codes: Iterable[int]) -> str:
    """Codepoints as a list, by name where Junos has one."""
    listed = ["be" if code == 0 else units.SHOWN.get(code, f"{code:06b}").lower() for code in sorted(codes)]
    return listed[0] if len(listed) == 1 else f"[ {' '.join(listed)} ]"

"""What a dialect is: its name, how it is recognised, and its reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.model import Port
    from perhop.routers.source import Account, Source


@dataclass(frozen=True, slots=True)
class Dialect:
    """A language of configurations.

    A reader is total: whatever the bytes are, it returns ports and reports lines, or raises a `PerhopError`
    of one line for what no device has, such as a thousand blocks within one another.
    """

    name: str
    title: str
    score: Callable[[Source], float]
    """How much of the text looks like it: lines or constructs that no other dialect has."""
    read: Callable[[Source, Account], list[Port]]

"""The declaration of a dialect: its name, how it is recognised and read, and what it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.model import Port
    from perhop.routers.outgoing import Outgoing, Remarks
    from perhop.routers.source import Account, Source

SHARING = frozenset({"priority", "wfq", "drr"})
"""Schedulers of queues side by side, which every dialect with a writer has."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A language of configurations. Without `read` it can only be written, without `write` only read."""

    name: str
    """As `--from` and `--to` take it."""
    title: str
    family: str = ""
    """The vendor or system that the help of `--to` names beside it, where the name does not say it."""
    score: Callable[[Source], float] | None = None
    """Tells how much of a text looks like it: lines or constructs that no other dialect has. 0 is nothing."""
    read: Callable[[Source, Account], list[Port]] | None = None
    """Reads the ports of a configuration.

    A reader is total: whatever the bytes are, it returns ports and reports lines. It raises a `PerhopError`
    of one line only for what no device has, such as a thousand blocks within one another.
    """
    write: Callable[[Outgoing, Remarks], list[str]] | None = None
    """Writes the lines for a link; remarks take what these do not say as the scenario does."""
    comment: str = "#"
    """The beginning of a line of comment."""
    schedulers: frozenset[str] = SHARING
    """The schedulers that it writes, by their names in scenarios; `htb` stands for trees of any depth."""
    flattens: bool = True
    """Whether a tree of `htb` with one level is written as classes side by side that have ceilings."""
    native: bool = False
    """Whether it has perhop's own queues: it writes every scheduler, and names its two interfaces itself."""

    def writes(self, scheduler: str) -> bool:
        """Whether it can express a scheduler of a scenario."""
        return self.write is not None and (self.native or scheduler in self.schedulers)

"""What the comparison knows of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.oracle.ns2 import Ns2Setting


class UnusableError(RuntimeError):
    """A program that the user named cannot be used; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Packets:
    """What a run's bottleneck saw: packets that arrived at it, and that it sent on."""

    arrived: int
    sent: int


def printed(output: str, _: Ns2Setting) -> Packets:
    """What the programs of our own print: words like `arrived=12`."""
    fields = dict(word.split("=", 1) for word in output.split())
    return Packets(int(fields["arrived"]), int(fields["sent"]))


@dataclass(frozen=True, slots=True)
class Program:
    """One program, or one way to use it.

    Attributes:
        name: As tables show it.
        kind: Names its span in a setting, and the ratio that is wanted.
        prepare: Makes it ready in a folder; says why it cannot be used here, or None. Raises UnusableError.
        command: The command for one run of a setting with a seed; it may write files into the folder.
        packets: Reads what a run printed.
    """

    name: str
    kind: str
    prepare: Callable[[Path], str | None]
    command: Callable[[Ns2Setting, int, Path], list[str]]
    packets: Callable[[str, Ns2Setting], Packets]

"""Programs run to their end, with what they printed and the processor's time that they took."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class RunError(RuntimeError):
    """A program ended with an error; the message carries what it said."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One run of a program: its own user CPU, and what it printed."""

    user_seconds: float
    output: str


def run(command: Sequence[str]) -> Cost:
    """Runs a program to its end.

    Raises:
        RunError: It ended with an error.
    """
    # Files rather than pipes, so that os.wait4 can collect the child and its own user time.
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        text, complaint = output.read(), errors.read().strip()
    if process.returncode != 0:
        raise RunError(
            f"{Path(command[0]).name} ended with {process.returncode}: {complaint or text.strip()}"
        )
    return Cost(usage.ru_utime, text)

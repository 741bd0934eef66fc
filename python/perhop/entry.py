"""The program `perhop`: ready for Ctrl-C and for closed streams before anything that takes long is loaded."""

from __future__ import annotations

import os
import sys

try:
    from perhop import interrupts
except KeyboardInterrupt:  # before there is a handler
    os.write(2, b"interrupted; nothing was written\n")
    os._exit(130)


def main() -> None:
    """Run the command line and exit with its status. The version alone needs no command line."""
    with interrupts.loading():
        interrupts.install()
        open_streams()
        if sys.argv[1:] == ["--version"]:
            from perhop import _engine  # noqa: PLC0415

            sys.stdout.write(f"perhop {_engine.version}\n")
            return
        from perhop import cli  # noqa: PLC0415 - Ctrl-C must be taken care of before
    try:
        cli.main()
    finally:
        interrupts.leave_at_once()


def open_streams() -> None:
    """Stand in for closed streams: a file opened later would get their numbers, and what is said to them.

    A closed standard input or error is nothing and nobody; without standard output a command is pointless.
    """
    lacks_output = sys.stdout is None
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the whole program
    if lacks_output:
        sys.stderr.write("error: standard output is closed; send it somewhere, such as >/dev/null\n")
        sys.exit(2)

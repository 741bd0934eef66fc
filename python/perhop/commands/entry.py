"""The program `perhop`: ready for Ctrl-C and for closed streams before anything that takes long is loaded."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress

try:
    from perhop.processes import interrupts, scarcity
except KeyboardInterrupt:  # before there is a handler
    os.write(2, b"interrupted; nothing was written\n")
    os._exit(130)


def main() -> None:
    """Run the command line and exit with its status."""
    with interrupts.loading():
        interrupts.install()
        open_streams()
        scarcity.prepare()
        try:
            from perhop.commands import cli
        except (ImportError, MemoryError) as error:
            if isinstance(error, ImportError) and not scarcity.is_cause(error):
                raise
            sys.stderr.write(f"error: out of memory: {error}; raise the limit (ulimit -v, ulimit -d)\n")
            sys.exit(2)
    try:
        cli.main()
    except SystemExit as ended:
        interrupts.leave_at_once()
        simulating = sys.modules.get("perhop.runs.one_run")
        if simulating is not None and simulating.has_left_behind():
            end_at_once(ended)
        raise
    finally:
        interrupts.leave_at_once()


def end_at_once(ended: SystemExit) -> None:
    """End with this status without waiting for threads: a class in Python does not return."""
    atexit._run_exitfuncs()  # noqa: SLF001 - a regular exit would wait for the thread
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))


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

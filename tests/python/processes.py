"""`perhop` as a process that starts at once: it is forked from a server in which everything is loaded.

Run as a program, this module is the server: it reads a JSON request on each line of its standard input, and
writes the exit status of the command on a line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

LOADED = (
    "perhop.commands.cli",
    "perhop.real_packets.report",
    "perhop.studies.writer",
    "perhop.sweeps.report",
    "perhop.sweeps.tune",
    "perhop.sweeps.tune_report",
    "perhop.stores.verify",
)
"""What commands load, which takes them two seconds of the processor."""
LONGEST_S = 300
ROOT = Path(__file__).parents[2]


def router_binary() -> Path | None:
    """The `perhop-router` that was built last, in release or debug mode; None if there is none."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / mode / "perhop-router" for mode in ("release", "debug")]
    return max(
        (path for path in built if path.is_file()), key=lambda path: path.stat().st_mtime, default=None
    )


class Server:
    """Starts commands for the tests of one session."""

    def __init__(self) -> None:
        """Start the server; it loads everything before its first command."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.python.processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )

    def run(self, arguments: list[str], place: Path, out: Path, err: Path) -> int:
        """Run `perhop ARGUMENTS` in a directory, with output to these files; its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {
            "arguments": arguments,
            "place": str(place),
            "out": str(out),
            "err": str(err),
            # Tests set COLUMNS and the like.
            "environment": dict(os.environ),
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve() -> None:
    """Answer requests until there are no more."""
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _be(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _be(request: dict[str, Any]) -> None:
    """Be the command, and end with its status."""
    signal.alarm(LONGEST_S)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["place"])
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["out"], os.O_WRONLY | os.O_CREAT),
        (2, request["err"], os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["perhop", *request["arguments"]]
    status = 1
    try:
        from perhop.commands import entry  # noqa: PLC0415 - loaded before

        entry.main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does with what nobody caught
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()

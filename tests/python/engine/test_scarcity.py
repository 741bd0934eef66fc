"""Commands under a limit of address space (`ulimit -v`): they work, or say in one line that it is too low."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from perhop.processes import scarcity

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's here")

SWEEP = """\
scenario = "small.toml"
runs = 2
metrics = ["links.bottleneck.loss"]
grid = { "links.bottleneck.rate" = ["1Mbps", "2Mbps"] }
"""
COMMANDS = {
    "version": ("--version",),
    "list": ("list", "blocks"),
    "run": ("run", "small.toml", "--runs", "2"),
    "run --out": ("run", "small.toml", "--runs", "2", "--out", "out"),
    "sweep": ("sweep", "sweep.toml"),
}


def under(limit: int, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that may have so many kB of address space."""
    return subprocess.run(
        [sys.executable, "-m", "perhop", *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit * 1024, limit * 1024)),
    )


@pytest.mark.parametrize(
    ("command", "limit"),
    [
        *((command, limit) for command in ("version", "list") for limit in (100_000, 400_000, 800_000)),
        *((command, limit) for command in ("run", "sweep") for limit in range(100_000, 800_001, 100_000)),
        *(("run --out", limit) for limit in (400_000, 520_000, 600_000)),
        ("sweep", 690_000),
    ],
)
def test_a_command_works_or_says_in_one_line_that_there_is_too_little(
    tmp_path: Path, small: Path, command: str, limit: int
) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    assert small.parent == tmp_path
    done = under(limit, tmp_path, *COMMANDS[command])
    if done.returncode == 0:
        assert "Traceback" not in done.stderr
        return
    assert command in ("run", "run --out", "sweep"), "what is small fits"
    assert limit < 700_000, done.stderr
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(
        r"error: out of memory: this command takes at least \d+ MB of address space, and the limit is "
        r"\d+ MB; raise it \(ulimit -v, ulimit -d\)\n",
        done.stderr,
    )


def test_where_not_even_the_engine_loads_it_is_one_line(tmp_path: Path) -> None:
    done = under(20_000, tmp_path, "--version")
    assert done.returncode == 2
    assert re.fullmatch(r"error: out of memory: .*; raise the limit \(ulimit -v, ulimit -d\)\n", done.stderr)


def test_without_a_limit_nothing_is_watched() -> None:
    if scarcity.limit() is None:
        before = list(sys.meta_path)
        scarcity.prepare()
        assert sys.meta_path == before

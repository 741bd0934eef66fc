"""Shared fixtures: the command line as a subprocess, and scenarios small enough to run in a blink."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL = """\
title = "Two classes at a small link"
duration = "5s"

[links.bottleneck]
from = "edge"
to = "core"
rate = "2Mbps"
delay = "10ms"
queue = { aqm = "rio", limit = "50p", in = "10/30/0.02", total = "5/15/0.1" }

[[flows]]
name = "gold"
count = 2
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "1ms" }
transport = { tcp = "newreno", packet = "1000B" }
profile = { rate = "0.5Mbps", marker = "token-bucket", burst = "10kB" }
start = "0s..1s"

[[flows]]
name = "best-effort"
count = 2
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "1ms" }
transport = { tcp = "newreno", packet = "1000B" }
start = "0s..1s"
"""


@dataclass(frozen=True)
class Finished:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


Perhop = "Callable[..., Finished]"


@pytest.fixture
def perhop(tmp_path: Path) -> Callable[..., Finished]:
    """Run `perhop ARGUMENTS` in a directory of its own."""

    def call(*arguments: str | Path) -> Finished:
        done = subprocess.run(
            [sys.executable, "-m", "perhop", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A valid scenario file."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path

"""Files of twice the size take about twice the work to read.

Work is the number of instructions that Valgrind counts, in Python, C and Rust alike, which no other load of
the machine changes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 2.5
"""Twice the input, sorting, and tables that double their room."""
SIZE = 200
REFUSED = {"TOML, unknown keys"}


@pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="Valgrind, which counts instructions, is not installed"
)
def test_twice_the_text_takes_twice_the_instructions(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    valgrind = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
    script = Path(__file__).with_name("reading.py")
    done = subprocess.run(
        [*valgrind, f"--log-file={tmp_path}/%p", sys.executable, script, str(SIZE)],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    def instructions(process: int) -> int:
        counted = re.search(
            r"I +refs: +([0-9,]+)", (tmp_path / str(abs(process))).read_text(encoding="utf-8")
        )
        assert counted
        return int(counted[1].replace(",", ""))

    growth = {}
    for name, pairs in found.items():
        assert all((reader < 0) == (name in REFUSED) for _, reader in pairs), name
        once, twice = (instructions(reader) - instructions(idle) for idle, reader in pairs)
        growth[name] = round(twice / once, 2)
    assert len(growth) > 20
    assert max(growth.values()) < MOST, growth

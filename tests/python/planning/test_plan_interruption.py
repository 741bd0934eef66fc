"""Ctrl-C during a plan: what had finished is kept, and is not computed again."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.python.planning.planned import POLICED
from tests.python.stores.keeping import kept_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]


SOME_RUNS = 3000
"""Bytes in a journal: its head, a scenario and at least a run."""


def start(directory: Path) -> subprocess.Popen[bytes]:
    arguments = ["plan", "plan.toml", "--store", "store", "--jobs", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "perhop", *arguments],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def journaled(directory: Path) -> int:
    """How many bytes of finished runs there are."""
    return sum(path.stat().st_size for path in (directory / "store").glob("journals/*.journal"))


def kept(directory: Path) -> int:
    """How many runs the store holds."""
    return len(set(kept_runs(directory / "store")))


def interrupted(directory: Path) -> tuple[int, str]:
    """Start a plan, and send SIGINT once its store has some runs more than before."""
    enough = journaled(directory) + SOME_RUNS
    process = start(directory)
    end = time.monotonic() + 200  # only so that a broken program does not wait forever
    while journaled(directory) < enough and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=250)
    return process.returncode, error.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_loses_no_finished_run(perhop: Perhop, tmp_path: Path) -> None:
    text = POLICED.replace("runs = 30", "runs = 8").replace('"12s"', '"300s"')
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    code, error = interrupted(tmp_path)
    assert code == 130, error
    assert "Traceback" not in error
    said = re.search(r"interrupted: (\d+) runs? (?:is|are) kept in store; the same command resumes", error)
    assert said is not None, error
    first = kept(tmp_path)
    assert first > 0
    assert first - 1 <= int(said[1]) <= first
    done = perhop("plan", "plan.toml", "--store", "store", "--json", "resumed.json")
    assert done.code == 0, done.err
    counted = re.search(r"(\d+) runs? simulated, (\d+) reused from store", done.out + done.err)
    assert counted is not None, done.err
    assert int(counted[2]) == first, "what was kept is not computed again"
    undisturbed = perhop("plan", "plan.toml", "--store", "other", "--json", "undisturbed.json")
    whole = re.search(r"(\d+) runs? simulated", undisturbed.out + undisturbed.err)
    assert whole is not None
    assert int(counted[1]) + first == int(whole[1])
    resumed, other = (
        json.loads((tmp_path / f"{n}.json").read_text("utf-8")) for n in ("resumed", "undisturbed")
    )
    assert resumed == other

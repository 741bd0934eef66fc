"""Stopping in the middle loses nothing that was finished."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.python.conftest import run_in

from perhop.stores.journal import pieces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished
    from tests.python.processes import Server

REPRODUCE = ("reproduce", "kim-table1", "--runs", "4", "--jobs", "2")
ALL = 28


def start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "perhop", *arguments],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kept_runs(directory: Path) -> int:
    return sum(len(pieces(path.read_bytes()).contents) for path in (directory / "runs").glob("*.journal"))


def wait_for_runs(directory: Path, wanted: int) -> None:
    """Until that many runs are kept."""
    end = time.monotonic() + 120
    while kept_runs(directory) < wanted:
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(scope="module")
def undisturbed(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the command has run without an interruption."""
    place = tmp_path_factory.mktemp("undisturbed")
    done = run_in(server, place, *REPRODUCE, "--out", "results", "--json", "results.json")
    assert done.code == 0
    return place


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_reproduce_resumes(
    perhop: Callable[..., Finished], tmp_path: Path, undisturbed: Path, number: signal.Signals
) -> None:
    process = start(tmp_path, *REPRODUCE, "--out", "stopped")
    wait_for_runs(tmp_path / "stopped", 3)
    process.send_signal(number)
    assert process.stderr is not None
    error = process.stderr.read().decode()
    process.stderr.close()
    code = process.wait(60)
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    kept = kept_runs(tmp_path / "stopped")
    assert 3 <= kept < ALL
    assert not (tmp_path / "stopped" / "report.html").exists()
    if number != signal.SIGKILL:
        assert "interrupted" in error
        assert "Traceback" not in error
    resumed = perhop(*REPRODUCE, "--out", "stopped", "--json", "resumed.json")
    assert resumed.code == 0, resumed.err
    assert f"{ALL - kept} runs simulated, {kept} reused" in resumed.out
    assert (tmp_path / "resumed.json").read_bytes() == (undisturbed / "results.json").read_bytes()
    expected = (undisturbed / "results" / "samples.parquet").read_bytes()
    assert (tmp_path / "stopped" / "samples.parquet").read_bytes() == expected


def test_ctrl_c_ends_a_long_run_at_once(tmp_path: Path, small: Path) -> None:
    small.write_text(small.read_text().replace('duration = "5s"', 'duration = "1000000s"'))
    process = start(tmp_path, "run", str(small), "--out", "out")
    end = time.monotonic() + 120
    while not (tmp_path / "out").exists():  # claimed before the first run
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.5)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    error = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 130
    assert time.monotonic() - began < 3
    *progress, last = error.splitlines()
    assert last == "interrupted; nothing was written"
    assert all(line.startswith("runs: 0 of 5 after ") for line in progress)
    assert not (tmp_path / "out").exists()

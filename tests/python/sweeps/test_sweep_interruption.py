"""Whatever ends a sweep, what had finished is there, and the result is that of an undisturbed one."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.python.stores.keeping import kept_runs
from tests.python.sweeps.running import quietly

from perhop.sweeps.job import Workplace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

SWEEP = """\
scenario = "small.toml"
runs = 40
[set]
duration = "300s"
[grid]
"flows.gold.count" = [1, 2, 3, 4, 5]
"links.bottleneck.queue.limit" = ["20p", "50p"]
"""
ALL = 400
KILLS = 20
LIMITED = """
import resource, sys
from perhop.commands.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
main()
"""


def start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "perhop", "sweep", "sweep.toml", "--store", "store", *arguments],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, error = process.communicate(timeout=60)
    return process.returncode, error.decode()


def undisturbed(directory: Path) -> str:
    swept = quietly(directory / "sweep.toml", Workplace(directory / "undisturbed", "local", 2, None))
    assert swept.work.simulated == ALL
    return swept.json()


def finished(directory: Path) -> tuple[int, int]:
    """How many runs the store holds, and how many different ones; it is left as it is."""
    rows = kept_runs(directory / "store")
    return len(rows), len(set(rows))


def wait_for_a_journal(process: subprocess.Popen[bytes], directory: Path, size: int = 0) -> None:
    """Until there is a journal of this size."""
    end = time.monotonic() + 60
    journals = (directory / "store" / "journals").glob
    while not any(path.stat().st_size >= size for path in journals("*.journal")):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.001)


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_killed_at_random_moments_a_sweep_ends_as_if_undisturbed(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    moments = random.Random(20)  # noqa: S311 - not for secrets
    kept = 0
    at_work = 0
    for kill in range(KILLS):
        process = start(tmp_path, "--jobs", "1")
        if kill % 4 == 3:
            time.sleep(moments.uniform(0.0, 1.2))  # start-up, reading and compaction, too
        else:
            wait_for_a_journal(process, tmp_path)
            time.sleep(moments.uniform(0.0, 0.1))
        process.kill()
        code, _ = ended(process)
        assert code == -signal.SIGKILL
        runs, different = finished(tmp_path) if kill % 5 == 0 else (kept, kept)
        assert runs == different
        assert runs >= kept
        at_work += runs > kept
        kept = runs
    runs, different = finished(tmp_path)
    assert runs == different
    assert at_work > 0
    assert 0 < runs < ALL
    done = perhop("sweep", "sweep.toml", "--store", "store", "--json", "result.json")
    assert done.code == 0, done.err
    assert f"{ALL - runs} runs simulated, {runs} reused from store" in done.out
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == undisturbed(tmp_path)
    assert finished(tmp_path) == (ALL, ALL)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_has_finished(perhop: Perhop, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.replace("300s", "100s"), encoding="utf-8")
    process = start(tmp_path, "--jobs", "1")
    wait_for_a_journal(process, tmp_path, size=20000)
    process.send_signal(number)
    code, error = ended(process)
    assert code == 128 + number
    assert "Traceback" not in error
    runs, _ = finished(tmp_path)
    assert 0 < runs < ALL
    said = re.search(r"interrupted: (\d+) runs are kept in store; the same command resumes", error)
    assert said is not None
    assert runs - 1 <= int(said[1]) <= runs  # Ctrl-C may come between writing a run and counting it
    done = perhop("sweep", "sweep.toml", "--store", "store", "--json", "-")
    assert f"{ALL - runs} runs simulated, {runs} reused" in done.err
    assert len(json.loads(done.out)["points"]) == 10


@pytest.mark.usefixtures("small")
def test_a_disk_that_fills_up_stops_a_sweep_and_costs_no_finished_run(perhop: Perhop, tmp_path: Path) -> None:
    """A limit on the size of files acts as the full disk: the journal outgrows it."""
    (tmp_path / "sweep.toml").write_text(SWEEP.replace("300s", "60s"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "200000", "sweep", "sweep.toml", "--store", "store"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1] == (
        "error: --store store: a finished run could not be kept (all earlier ones are): File too large"
    )
    runs, different = finished(tmp_path)
    assert 0 < runs < ALL
    assert runs == different
    again = perhop("sweep", "sweep.toml", "--store", "store", "--json", "result.json")
    assert f"{ALL - runs} runs simulated, {runs} reused from store" in again.out
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == undisturbed(tmp_path)

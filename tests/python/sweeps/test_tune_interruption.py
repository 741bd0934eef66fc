"""Whatever ends a search, what had finished is there, and the result is that of an undisturbed one."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from perhop import interrupts
from perhop.sweep.job import Workplace, run_sweep
from perhop.sweep.plan import Given, read_plan
from perhop.sweep.run import Runner
from perhop.sweep.store import SweepStore
from perhop.sweep.tune import tune
from perhop.sweep.tuning import read_tuning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

TUNE = """\
scenario = "small.toml"
trials = 24
runs = 4
validation-runs = 6
objectives = ["minimize links.bottleneck.delay_p99_s", "maximize links.bottleneck.utilization"]
[set]
duration = "60s"
[search]
"links.bottleneck.queue.limit" = "20p..200p"
"flows.gold.count" = "1..6"
"""
KILLS = 16


def start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "perhop", "tune", "tune.toml", "--store", "store", *arguments],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kept(directory: Path) -> set[tuple[str, int]]:
    """Scenario and seed of each run that the store holds; none stands there twice."""
    if not (directory / "store" / "journals").exists():
        return set()
    with SweepStore(directory / "store", lambda _: None) as store, store.connect() as database:
        rows = database.execute("SELECT scenario, seed FROM runs WHERE metric = 'throughput_bps'").fetchall()
    assert len(set(rows)) == len(rows)
    return set(rows)


def journaled(directory: Path) -> int:
    """How many bytes of finished runs there are."""
    return sum(path.stat().st_size for path in (directory / "store").glob("journals/*.journal"))


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_killed_at_random_moments_a_search_ends_as_if_undisturbed(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "tune.toml").write_text(TUNE, encoding="utf-8")
    moments = random.Random(8)  # noqa: S311 - not for secrets
    before: set[tuple[str, int]] = set()
    at_work = 0
    for kill in range(KILLS):
        process = start(tmp_path, "--jobs", "1")
        if kill % 4 == 3:
            time.sleep(moments.uniform(0.0, 1.5))  # start-up and reading the store, too
        else:
            end, size = time.monotonic() + 60, journaled(tmp_path)
            while journaled(tmp_path) <= size and process.poll() is None:
                assert time.monotonic() < end
                time.sleep(0.001)
            time.sleep(moments.uniform(0.0, 0.03))
        process.kill()
        _, error = process.communicate(timeout=250)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, error
            break
        now = kept(tmp_path)
        assert now >= before, "a finished run is lost"
        at_work += now > before
        before = now
    assert at_work >= 3
    done = perhop("tune", "tune.toml", "--store", "store", "--json", "resumed.json")
    assert done.code == 0, done.err
    found = re.search(r"(\d+) runs? simulated, (\d+) reused from store", done.out)
    assert found is not None
    assert kept(tmp_path) >= before
    undisturbed = perhop("tune", "tune.toml", "--store", "undisturbed", "--json", "undisturbed.json")
    whole = re.search(r"(\d+) runs simulated, (\d+) reused", undisturbed.out)
    assert whole is not None
    assert int(found[1]) + int(found[2]) == int(whole[1]) + int(whole[2])
    assert int(found[2]) == len(before), "what was kept is not computed again"
    assert (tmp_path / "resumed.json").read_bytes() == (tmp_path / "undisturbed.json").read_bytes()
    tables = [text.out.rpartition("\n\n")[0] for text in (done, undisturbed)]
    assert tables[0] == tables[1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("command", ["sweep", "tune"])
def test_what_other_code_makes_of_ctrl_c_is_told_like_ctrl_c(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB and Optuna may fail with an exception of their own, at any place."""
    (tmp_path / "it.toml").write_text(
        {"sweep": 'scenario = "small.toml"\nruns = 2', "tune": TUNE}[command], encoding="utf-8"
    )
    place = Workplace(tmp_path / "store", "local", 1, None)
    ensure = Runner.ensure

    def struck(runner: Runner, points: Any, seeds: Any) -> None:  # noqa: ANN401 - passed on
        ensure(runner, points, seeds)
        monkeypatch.setattr(interrupts._State, "seen", True)
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(Runner, "ensure", struck)
    said: list[str] = []
    silent: Any = {"say": said.append, "progress": lambda _what, _total: nullcontext(lambda: None)}
    do: Callable[[], object] = {
        "sweep": lambda: run_sweep(read_plan(tmp_path / "it.toml", Given()), place, **silent),
        "tune": lambda: tune(
            read_tuning(tmp_path / "it.toml", trials=None, runs=None, seed=None), place, **silent
        ),
    }[command]
    with pytest.raises(KeyboardInterrupt):
        do()
    runs = len(kept(tmp_path))
    assert said[-1] == f"interrupted: {runs} runs are kept in {tmp_path}/store; the same command resumes"


@pytest.mark.usefixtures("small")
def test_ctrl_c_keeps_what_a_search_has_finished(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "tune.toml").write_text(TUNE, encoding="utf-8")
    process = start(tmp_path, "--jobs", "2")
    end = time.monotonic() + 60
    while journaled(tmp_path) < 3000:
        assert time.monotonic() < end
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=250)
    assert process.returncode == 130
    text = error.decode()
    assert "Traceback" not in text
    said = re.search(r"interrupted: (\d+) runs? (is|are) kept in store; the same command resumes", text)
    assert said is not None, text
    runs = kept(tmp_path)
    assert len(runs) - 1 <= int(said[1]) <= len(runs)
    done = perhop("tune", "tune.toml", "--store", "store")
    assert f"{len(runs)} reused from store" in done.out

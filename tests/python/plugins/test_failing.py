"""A class in Python that raises at some settings: the others are finished, and each failed run is listed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.python.output.pages import check

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

RULE = """\
from perhop import Aqm, Verdict


class Picky(Aqm):
    level: int = 1

    def __post_init__(self):
        if self.level == 4:
            raise ValueError("level 4 is not there")

    def on_arrival(self, packet, queue, now, random):
        if self.level == 2 or (self.level == 3 and random.chance(0.0005)):
            raise RuntimeError(f"no level {self.level} today")
        return Verdict.OVERFLOW if len(queue) >= 10 * self.level else Verdict.PASS
"""
SWEEP = """\
scenario = "small.toml"
runs = 3
metrics = ["throughput_bps", "links.*.loss"]
[set]
duration = "1s"
[grid]
"links.bottleneck.queue.level" = LEVELS
"""


@pytest.fixture
def folder(small: Path) -> Path:
    """A folder with a scenario that names `picky:Picky`."""
    text = small.read_text(encoding="utf-8")
    queue = 'queue = { aqm = "picky:Picky" }'
    small.write_text(re.sub(r"^queue = .*$", queue, text, flags=re.MULTILINE), encoding="utf-8")
    (small.parent / "picky.py").write_text(RULE, encoding="utf-8")
    return small.parent


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("jobs", ["1", "3"])
@pytest.mark.parametrize("until", ['until = { width = "20%", metrics = ["throughput_bps"] }\n', ""])
def test_a_sweep_finishes_the_good_points_and_lists_the_bad_ones(
    perhop: Perhop, folder: Path, jobs: str, until: str
) -> None:
    (folder / "sweep.toml").write_text(
        until + SWEEP.replace("LEVELS", "[2, 1, 4, 5]").replace("runs = 3", "runs = 4"), encoding="utf-8"
    )
    done = perhop(
        "sweep", "sweep.toml", "--jobs", jobs, "--store", "store", "--out", "out", "--json", "j.json"
    )
    assert done.code == 1
    assert "Traceback" not in done.err
    said = words(done.out)
    assert "8 runs failed, at 2 points, which have no estimates:" in said
    for level, text in ((2, "no level 2 today"), (4, "level 4 is not there")):
        for seed in (1, 2, 3, 4):
            assert re.search(rf"queue\.level = {level}, seed {seed}: picky:Picky: .{{,150}}{text}", said), (
                said
            )
    assert "8 runs simulated, 0 reused from store, 8 failed" in said
    content = json.loads((folder / "j.json").read_text(encoding="utf-8"))
    assert [(one["factors"]["links.bottleneck.queue.level"], one["seed"]) for one in content["failed"]] == [
        (level, seed) for level in (2, 4) for seed in (1, 2, 3, 4)
    ]
    found = [point["metrics"].get("throughput_bps") for point in content["points"]]
    assert [one is None for one in found] == [True, False, True, False]
    # The runs of the good points are in the report and in the store.
    samples = pl.read_parquet(folder / "out" / "samples.parquet")
    assert samples["point"].unique().sort().to_list() == [1, 3]
    page = words(check((folder / "out" / "report.html").read_text(encoding="utf-8")).text)
    assert "8 runs failed, at 2 points" in page
    assert "links.bottleneck.queue.level = 2, seed 1: picky:Picky" in page
    entries = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))["scenarios"]
    assert [sorted(entry.get("failed", {})) for entry in entries] == [
        ["1", "2", "3", "4"],
        [],
        ["1", "2", "3", "4"],
        [],
    ]
    again = perhop("rerun", "out")
    assert again.code == 0, again.out
    # The same command finds the good runs, and tries the bad ones again.
    (folder / "picky.py").write_text(RULE, encoding="utf-8")
    done = perhop("sweep", "sweep.toml", "--store", "store")
    assert (done.code, "0 runs simulated, 8 reused from store, 8 failed" in words(done.out)) == (1, True)


def test_a_point_of_which_some_runs_fail_has_no_estimate_and_keeps_the_others(
    perhop: Perhop, folder: Path
) -> None:
    text = SWEEP.replace("LEVELS", "[3, 5]").replace("runs = 3", "runs = 12")
    (folder / "sweep.toml").write_text(text, encoding="utf-8")
    done = perhop("sweep", "sweep.toml", "--store", "store", "--json", "-")
    assert done.code == 1
    content = json.loads(done.out)
    failed = [one["seed"] for one in content["failed"]]
    assert 0 < len(failed) < 12
    assert content["points"][0]["metrics"]["throughput_bps"] is None
    assert content["points"][1]["metrics"]["throughput_bps"]["runs"] == 12
    assert f"{24 - len(failed)} runs simulated, 0 reused from store, {len(failed)} failed" in words(done.err)


def test_a_sweep_of_which_all_runs_fail_lists_them(perhop: Perhop, folder: Path) -> None:
    for level in (2, 4):
        text = SWEEP.replace("LEVELS", f"[{level}]").replace("runs = 3", "runs = 25")
        (folder / "sweep.toml").write_text(text, encoding="utf-8")
        done = perhop("sweep", "sweep.toml", "--store", "store", "--out", "out")
        assert (done.code, "Traceback" in done.err) == (1, False), done.err
        assert "25 runs failed, at 1 point, which has no estimates:" in words(done.out)
        assert "and 5 more; --json lists all" in done.out


def test_a_trial_that_fails_is_named_and_does_not_win(perhop: Perhop, folder: Path) -> None:
    text = SWEEP.partition("[grid]")[0].partition("\nmetrics")[0] + "\ntrials = 4\nvalidation-runs = 2\n"
    text = 'objectives = ["minimize links.bottleneck.loss"]\n' + text
    text += '[set]\nduration = "1s"\n[search]\n"links.bottleneck.queue.level" = [1, 2, 4, 5]\n'
    (folder / "tune.toml").write_text(text, encoding="utf-8")
    done = perhop("tune", "tune.toml", "--store", "store", "--out", "out", "--json", "j.json")
    assert (done.code, "Traceback" in done.err) == (1, False), done.err
    said = words(done.out)
    assert "2 failed" in said
    assert "6 runs failed, at 2 points, which have no estimates:" in said
    assert re.search(r"trial \d \(links\.bottleneck\.queue\.level = 2\), seed 1: picky:Picky: ", said)
    content = json.loads((folder / "j.json").read_text(encoding="utf-8"))
    by_level = {one["factors"]["links.bottleneck.queue.level"]: one["feasible"] for one in content["trials"]}
    assert by_level == {1: True, 2: False, 4: False, 5: True}
    assert {entry["factors"]["links.bottleneck.queue.level"] for entry in content["front"]} <= {1, 5}
    assert len(content["failed"]) == 6
    page = words(check((folder / "out" / "report.html").read_text(encoding="utf-8")).text)
    assert "6 runs failed, at 2 points" in page


@pytest.mark.parametrize("today", [1, 2])
def test_a_plan_says_which_runs_failed(perhop: Perhop, folder: Path, today: int) -> None:
    text = 'scenario = "small.toml"\nruns = 3\nobjectives = ["loss of bottleneck < 90 %"]\n'
    text += f'[set]\nduration = "1s"\n"links.bottleneck.queue.level" = {today}\n' if today == 2 else ""
    if today == 1:
        text += '[search]\n"links.bottleneck.queue.level" = [1, 2, 5]\n[tuning]\ntrials = 3\nruns = 2\n'
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    done = perhop("plan", "plan.toml", "--store", "store", "--out", "out", "--json", "j.json")
    assert (done.code, "Traceback" in done.err) == (1, False), done.err
    said = words(done.out)
    if today == 1:
        assert re.search(r"trial \d \(links\.bottleneck\.queue\.level = 2\), seed \d: picky:Picky: ", said), (
            said
        )
    else:
        assert re.search(r"as it is, today's demand, seed 1: picky:Picky: ", said)
        assert "is undecided" in said
    content = json.loads((folder / "j.json").read_text(encoding="utf-8"))
    assert content["failed"][0]["error"].startswith("picky:Picky: on_arrival at link `bottleneck`")

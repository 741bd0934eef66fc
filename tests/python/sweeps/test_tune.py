"""Tuning: it finds what it should, goes on where it stopped, and judges its winners on fresh seeds."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tests.python.output.pages import check, titles
from tests.python.planning.test_rare_losses import SCENARIO

from perhop.errors import PerhopError, ScenarioError
from perhop.statistics.intervals import Estimate
from perhop.statistics.observations import Observations
from perhop.sweeps.backend import LocalBackend, Task
from perhop.sweeps.job import Workplace
from perhop.sweeps.plan import Point
from perhop.sweeps.tune import Trial, Tuned, front, tune
from perhop.sweeps.tune_answers import answers
from perhop.sweeps.tune_report import trial_frame, write_tuned
from perhop.sweeps.tuning import Constraint, Objective, TuningPlan, read_tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

TUNE = """\
scenario = "small.toml"
trials = 16
runs = 2
validation-runs = 3
objectives = ["minimize links.bottleneck.mean_queue_packets"]
constraints = ["links.bottleneck.utilization >= 60%"]
[set]
duration = "5s"
"links.bottleneck.queue.total" = "{min}/{max}/0.1"
[search]
min = "2..20"
max = "21..45"
"flows.gold.count" = "1..4"
"flows.gold.transport.tcp" = ["reno", "newreno"]
"""
TWO = TUNE.replace('queue_packets"]', 'queue_packets", "maximize throughput_bps"]')


def planned(tmp_path: Path, text: str, trials: int | None = None) -> TuningPlan:
    path = tmp_path / "tune.toml"
    path.write_text(text, encoding="utf-8")
    return read_tuning(path, trials=trials, runs=None, seed=None)


def tuned(plan: TuningPlan, store: Path, jobs: int = 2) -> Tuned:
    place = Workplace(store, "local", jobs, None)
    return tune(plan, place, say=lambda _: None, progress=lambda _w, _t: nullcontext(lambda: None))


@pytest.mark.usefixtures("small")
def test_a_single_run_of_each_winner_has_no_interval_and_shows_no_equality(tmp_path: Path) -> None:
    text = TUNE.replace("validation-runs = 3", "validation-runs = 1").replace('"5s"', '"1s"')
    found = tuned(planned(tmp_path, text, trials=4), tmp_path / "store")
    assert answers(found)[0].startswith("**No difference found**: on 1 fresh seed")
    assert "run again on a fresh seed (3), without intervals" in found.lead()[2]
    write_tuned(tmp_path / "out", found, "perhop tune tune.toml")
    page = " ".join((tmp_path / "out" / "report.html").read_text(encoding="utf-8").split())
    assert "Values on a fresh seed (3), which no trial used, are unbiased, without intervals" in page


@pytest.mark.usefixtures("small")
def test_a_search_is_a_function_of_its_file(tmp_path: Path) -> None:
    plan = planned(tmp_path, TUNE)
    one = tuned(plan, tmp_path / "one", jobs=1)
    for jobs in (2, 4):
        other = tuned(plan, tmp_path / f"{jobs}", jobs=jobs)
        assert [(t.number, t.factors, t.found) for t in other.trials] == [
            (t.number, t.factors, t.found) for t in one.trials
        ]
        assert other.json() == one.json()
        assert other.work == one.work
    again = tuned(plan, tmp_path / "one")
    assert again.work.simulated == 0
    assert again.json() == one.json()
    other = tuned(planned(tmp_path, TUNE.replace("runs = 2\n", "runs = 2\nseed = 3\n")), tmp_path / "one")
    assert [t.factors for t in other.trials] != [t.factors for t in one.trials]


@pytest.mark.parametrize("sampler", ["tpe", "nsga-ii"])
@pytest.mark.usefixtures("small")
def test_more_trials_go_on_from_those_before(tmp_path: Path, sampler: str) -> None:
    """Also where the search ended within a batch."""
    text = TUNE.replace("runs = 2\n", f'runs = 2\nsampler = "{sampler}"\npopulation = 4\n', 1)
    few = tuned(planned(tmp_path, text, trials=14), tmp_path / "store")
    more = tuned(planned(tmp_path, text), tmp_path / "store")
    assert [t.factors for t in more.trials][:14] == [t.factors for t in few.trials]
    assert more.work.found >= 2 * len({t.point.key for t in few.trials if t.point})


@pytest.mark.parametrize("batch", [1, 5, 16])
@pytest.mark.usefixtures("small")
def test_the_runs_of_a_batch_are_handed_over_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    plan = planned(tmp_path, TUNE.replace("trials = 16", f"trials = 16\nbatch = {batch}"))
    handed_over: list[list[Task]] = []

    def counted(self: LocalBackend, scenarios: Sequence[str], tasks: Sequence[Task]) -> Iterator[Any]:
        handed_over.append(list(tasks))
        return run(self, scenarios, tasks)

    run = LocalBackend.run
    monkeypatch.setattr(LocalBackend, "run", counted)
    found = tuned(plan, tmp_path / "store", jobs=1)
    assert [trial.number for trial in found.trials] == list(range(16))
    keys = [trial.point.key for trial in found.trials if trial.point]
    assert len(keys) == 16
    # What a trial before had is in the store, and a batch of such trials needs no run at all.
    new = [len(set(keys[first : first + batch]) - set(keys[:first])) for first in range(0, len(keys), batch)]
    *searched, fresh = handed_over
    assert [len(tasks) for tasks in searched] == [2 * count for count in new if count]
    assert {task.seed for task in fresh} == set(plan.validation_seeds)


@pytest.mark.usefixtures("small")
def test_a_batch_changes_what_is_proposed_once_the_sampler_learns(tmp_path: Path) -> None:
    one, whole = (
        tuned(
            planned(tmp_path, TUNE.replace("trials = 16", f"trials = 16\nbatch = {batch}")),
            tmp_path / "store",
        )
        for batch in (1, 16)
    )
    first, last = ([trial.factors for trial in found.trials] for found in (one, whole))
    # TPE draws its first ten trials at random.
    assert first[:10] == last[:10]
    assert first[10:] != last[10:]


@pytest.mark.usefixtures("small")
def test_progress_counts_trials_and_the_runs_under_way(tmp_path: Path) -> None:
    """Never more than a batch is under way, and every trial is a step."""
    reported: list[float] = []

    class Steps:
        done = 0

        def __call__(self) -> None:
            self.done += 1

        def waiting(self, under_way: float) -> None:
            reported.append(self.done + under_way)

    steps = Steps()

    def progress(what: str, total: int) -> AbstractContextManager[Any]:
        if what == "trials":
            assert total == 16
            return nullcontext(steps)
        return nullcontext(lambda: None)

    place = Workplace(tmp_path / "store", "local", 2, None)
    tune(planned(tmp_path, TUNE), place, say=lambda _: None, progress=progress)
    assert steps.done == 16
    assert reported
    assert max(reported) <= 16 + 1e-9
    assert sorted(reported) == reported


@pytest.mark.usefixtures("small")
def test_the_winner_is_the_best_within_the_constraints(tmp_path: Path) -> None:
    found = tuned(planned(tmp_path, TUNE), tmp_path / "store")
    metric, bound = "links.bottleneck.mean_queue_packets", "links.bottleneck.utilization"

    def mean(trial: Trial, name: str) -> float:
        estimate = trial.found[name]
        assert estimate is not None
        return estimate.mean

    assert len(found.front) == 5
    winner = found.front[0]
    within = [trial for trial in found.trials if trial.point and mean(trial, bound) >= 0.6]
    assert mean(winner.trial, metric) == min(mean(trial, metric) for trial in within)
    fresh = winner.fresh[metric]
    assert fresh is not None
    assert fresh.runs == 3
    assert list(found.plan.validation_seeds) == [3, 4, 5]
    assert not set(found.plan.seeds) & set(found.plan.validation_seeds)
    assert len(within) > 0


def test_a_pareto_front_is_what_nothing_beats(tmp_path: Path, small: Path) -> None:
    assert small.exists()
    plan = planned(tmp_path, TWO)
    values = [(1, 1), (2, 3), (3, 2), (3, 3), (1, 1), (0, 9)]  # queue to be small, throughput to be large
    trials = [
        Trial(
            number,
            {},
            Point({}, "{}", f"{queue}-{rate}"),
            {
                "links.bottleneck.mean_queue_packets": Estimate(queue, None, 1),
                "throughput_bps": Estimate(rate, None, 1),
                "links.bottleneck.utilization": Estimate(1, None, 1),
            },
            feasible=number != 5,
            scores=(float(queue), float(rate)),
        )
        for number, (queue, rate) in enumerate(values)
    ]
    assert [trial.number for trial in front(plan, trials)] == [0, 1]


@pytest.mark.parametrize("sampler", ["tpe", "nsga-ii"])
@pytest.mark.usefixtures("small")
def test_several_objectives_give_a_front(tmp_path: Path, sampler: str) -> None:
    text = TWO.replace("trials = 16", f'trials = 14\nsampler = "{sampler}"\npopulation = 4')
    found = tuned(planned(tmp_path, text), tmp_path / "store")
    assert len(found.front) >= 1
    content = json.loads(found.json())
    assert len(content["trials"]) == 14
    assert {"trial", "factors", "searched", "fresh", "holds"} == set(content["front"][0])
    write_tuned(tmp_path / "out", found, "perhop tune")
    assert (tmp_path / "out" / "plots" / "tune-front-1.png").exists()
    page = check((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    text = " ".join(page.text.split())
    (answer, *_) = answers(found)
    assert text.index(answer.replace("**", "")[:40]) < text.index("Pareto front:")
    assert any(title.startswith("Pareto front: ") for title in titles(page)[:3])
    assert len(set(titles(page))) == len(titles(page))
    frame = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    assert frame.height == 14 * 3
    assert frame.columns == trial_frame(found.trials).columns
    assert max(map(len, found.text(100).splitlines())) <= 100


@pytest.mark.usefixtures("small")
def test_the_terminal_says_what_the_page_says(tmp_path: Path) -> None:
    found = tuned(planned(tmp_path, TWO), tmp_path / "store")
    assert len(found.front) > 1
    lines = found.text().splitlines()
    text = " ".join(lines)
    for answer in answers(found):
        assert answer.replace("**", "") in text
    marked = {line.partition("★")[0].strip() for line in lines if "★" in line}
    assert marked == {str(winner.trial.number) for winner in found.marked}
    # Goals by the names of the tables, not by those of the file.
    assert "minimize bottleneck mean queue; maximize throughput, subject to bottleneck utilization" in text


@pytest.mark.usefixtures("small")
def test_settings_are_shown_as_they_are_set(tmp_path: Path) -> None:
    text = TWO.partition("[search]")[0].replace('"links.bottleneck.queue.total" = "{min}/{max}/0.1"\n', "")
    text = text.replace("utilization >= 60%", "utilization >= 0%")
    text += '[search]\n"links.bottleneck.delay" = "20ms..20.1ms"\n"flows.gold.count" = "1..4"\n'
    found = tuned(planned(tmp_path, text), tmp_path / "store")
    settings = [str(winner.trial.factors["links.bottleneck.delay"]) for winner in found.front]
    assert len(set(settings)) > 1
    assert all(re.fullmatch(r"20\.\d{2,4}ms", setting) for setting in settings)
    write_tuned(tmp_path / "out", found, "perhop tune")
    page = check((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page.source)
    assert all(cells.count(setting) >= 2 for setting in settings)  # on fresh seeds, and on those searched
    said = " ".join(page.text.split())
    for winner in found.front:
        delay = winner.trial.factors["links.bottleneck.delay"]
        # Copied into the scenario as it is shown, it gives the same scenario.
        assert winner.trial.point is not None
        assert json.loads(winner.trial.point.scenario)["links"]["bottleneck"]["delay"] == delay
    if found.choice.best is not None and found.choice.differ:
        assert f"delay = {found.front[found.choice.best].trial.factors['links.bottleneck.delay']}, " in said


@pytest.mark.usefixtures("small")
def test_settings_that_make_no_scenario_are_passed_over(tmp_path: Path) -> None:
    text = TUNE.replace('max = "21..45"', 'max = "5..45"').replace('min = "2..20"', 'min = "2..30"')
    found = tuned(planned(tmp_path, text), tmp_path / "store")
    refused = [trial for trial in found.trials if trial.point is None]
    assert refused
    assert all(int(trial.factors["min"]) >= int(trial.factors["max"]) for trial in refused)
    assert f"{len(refused)} were no valid scenario" in found.text()


@pytest.mark.usefixtures("small")
def test_constraints_that_nothing_keeps_are_said(tmp_path: Path) -> None:
    plan = planned(tmp_path, TUNE.replace(">= 60%", "<= 0.1%").replace("trials = 16", "trials = 2"))
    found = tuned(plan, tmp_path / "store")
    assert found.front == []
    text = " ".join(found.text().split())
    assert "No trial keeps the constraints" in text
    least = min(found.trials, key=lambda trial: trial.found["links.bottleneck.utilization"].mean)  # type: ignore[union-attr]
    assert f"(trial {least.number}), where bottleneck utilization is " in text
    assert "No trial keeps “links.bottleneck.utilization <= 0.1%”." in text
    write_tuned(tmp_path / "out", found, "perhop tune")


@pytest.mark.usefixtures("small")
def test_a_search_without_a_feasible_trial_ends_with_status_1(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "tune.toml").write_text(
        TUNE.replace(">= 60%", "<= 0.1%").replace("16", "2"), encoding="utf-8"
    )
    done = perhop("tune", "tune.toml", "--store", "store", "--out", "out", "--json", "found.json")
    assert done.code == 1
    assert "The nearest: " in done.out
    assert json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["front"] == []
    assert "The nearest: " in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("small")
def test_constraints_that_only_single_trials_keep_are_told_with_how_many(tmp_path: Path) -> None:
    """The shortest queue and the highest throughput that a search found, which no trial has both."""
    names = ["links.bottleneck.mean_queue_packets", "flows.gold.throughput_bps"]
    kept = 'constraints = ["links.bottleneck.utilization >= 60%"]'
    loose = f'constraints = ["{names[0]} >= 0p", "{names[1]} >= 0Mbps"]'
    found = tuned(planned(tmp_path, TUNE.replace(kept, loose)), tmp_path / "store")
    means = [[one.mean for name in names if (one := trial.found[name]) is not None] for trial in found.trials]
    shortest, highest = min(queue for queue, _ in means), max(rate for _, rate in means)
    assert [shortest, highest] not in means
    bounds = f'constraints = ["{names[0]} <= {shortest + 1e-6:.6f}p", "{names[1]} >= {highest - 1:.0f}bps"]'
    found = tuned(planned(tmp_path, TUNE.replace(kept, bounds)), tmp_path / "store")
    assert "Each is kept by some trial, and none keeps all" in " ".join(found.text().split())


@pytest.mark.parametrize(
    "pair",
    [
        ("links.bottleneck.loss >= 50%", "links.bottleneck.loss <= 1%"),
        ("links.bottleneck.loss <= 1%", "links.bottleneck.loss >= 1.5%"),
        ("links.bottleneck.delay_p50_s >= 30ms", "links.bottleneck.delay_p99_s <= 20ms"),
    ],
)
@pytest.mark.usefixtures("small")
def test_constraints_that_contradict_each_other_are_refused(
    perhop: Perhop, tmp_path: Path, pair: tuple[str, str]
) -> None:
    text = TUNE.replace('"links.bottleneck.utilization >= 60%"', ", ".join(f'"{one}"' for one in pair))
    (tmp_path / "tune.toml").write_text(text, encoding="utf-8")
    done = perhop("tune", "tune.toml", "--store", "store")
    assert done.code == 2
    assert "contradict each other" in done.err
    assert all(one in done.err for one in pair)
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("small")
def test_bounds_from_both_sides_are_no_contradiction(tmp_path: Path) -> None:
    pair = '"links.bottleneck.utilization >= 60%", "links.bottleneck.utilization <= 99%"'
    planned(tmp_path, TUNE.replace('"links.bottleneck.utilization >= 60%"', pair))


def lossless(runs: int, packets: float) -> Observations:
    """Runs of so many packets each, none of which is lost."""
    return Observations((0.0,) * runs, 0.0, 1.0, trials=(packets,) * runs)


def test_no_loss_in_few_runs_keeps_no_constraint_for_sure() -> None:
    found = {"loss": lossless(8, 1000.0).estimate}
    assert found["loss"] is not None
    for bound, holds in ((found["loss"].high / 2, None), (found["loss"].high, True)):
        constraint = Constraint("loss", at_least=False, bound=bound, text="loss <= x")
        assert constraint.violation(found) < 0
        assert constraint.check(found).holds is holds
    needed = (
        Constraint("loss", at_least=False, bound=found["loss"].high / 2, text="").check(found).runs_needed
    )
    assert needed == 16


def test_of_settings_without_loss_the_one_of_which_runs_show_most_is_the_best() -> None:
    few, many = lossless(4, 1000.0), lossless(4, 9000.0)
    some = Observations((0.01, 0.0, 0.02, 0.01), 0.0, 1.0, trials=(1000.0,) * 4)
    objective = Objective("loss", maximize=False)
    scores = [objective.score(one) for one in (many, few, some)]
    assert 0 < scores[0] < scores[1] < scores[2]
    assert some.estimate is not None
    assert scores[2] == some.estimate.high
    delivered = Observations((1.0,) * 4, 0.0, 1.0, trials=(1000.0,) * 4)
    assert Objective("share", maximize=True).score(delivered) < 1
    assert Objective("delay", maximize=True).score(Observations((1.0, 2.0))) == 1.5


VOICES = """\
scenario = "voices.toml"
trials = 2
runs = 2
validation-runs = 4
objectives = ["minimize links.uplink.delay_p95_s"]
constraints = ["flows.voice.loss <= 0.0001%"]
[search]
"links.uplink.queue.limit" = ["36p", "40p"]
"""


def test_a_search_does_not_say_that_no_loss_keeps_a_bound_that_runs_cannot_show(tmp_path: Path) -> None:
    (tmp_path / "voices.toml").write_text(SCENARIO, encoding="utf-8")
    found = tuned(planned(tmp_path, VOICES), tmp_path / "store")
    losses = [winner.fresh["flows.voice.loss"] for winner in found.front]
    assert {one.mean for one in losses if one is not None} == {0.0}
    text = " ".join(found.text().split())
    said = "On 4 fresh seeds these runs cannot tell whether trials 0 and 1 keep “flows.voice.loss <= 0.0001%”"
    assert said in text
    assert "all constraints" not in text
    assert {one["holds"] for one in json.loads(found.json())["front"]} == {None}
    write_tuned(tmp_path / "out", found, "perhop tune tune.toml")
    assert "cannot tell" in check((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text


@pytest.mark.usefixtures("small")
def test_without_constraints_none_are_counted(tmp_path: Path) -> None:
    text = TUNE.replace('constraints = ["links.bottleneck.utilization >= 60%"]', "").replace("16", "3")
    said = " ".join(tuned(planned(tmp_path, text), tmp_path / "store").text().split())
    assert "3 trials of 2 runs" in said
    assert "constraint" not in said


FEW = """\
scenario = "small.toml"
trials = 12
runs = 1
validation-runs = 2
objectives = ["minimize links.bottleneck.mean_queue_packets"]
[set]
duration = "1s"
[search]
"flows.gold.count" = "1..3"
"flows.gold.transport.tcp" = ["reno", "newreno", "sack"]
"""


@pytest.mark.parametrize("trials", [9, 12, 80])
@pytest.mark.usefixtures("small")
def test_few_settings_are_all_tried_once(tmp_path: Path, trials: int) -> None:
    found = tuned(planned(tmp_path, FEW, trials=trials), tmp_path / "store")
    tried = [tuple(trial.factors.values()) for trial in found.trials]
    assert sorted(tried) == sorted((n, tcp) for n in (1, 2, 3) for tcp in ("reno", "newreno", "sack"))
    assert "9 settings, all tried, with 1 run of each" in " ".join(found.text().split())


@pytest.mark.parametrize("sampler", ["tpe", "nsga-ii"])
@pytest.mark.usefixtures("small")
def test_no_setting_is_tried_twice(tmp_path: Path, sampler: str) -> None:
    text = FEW.replace("runs = 1\n", f'runs = 1\nsampler = "{sampler}"\npopulation = 2\n', 1)
    found = tuned(planned(tmp_path, text, trials=8), tmp_path / "store")
    assert len({tuple(trial.factors.values()) for trial in found.trials}) == 8
    assert "8 trials of 1 run" in " ".join(found.text().split())


@pytest.mark.usefixtures("small")
def test_the_scenario_as_it_is_runs_beside_the_winners(tmp_path: Path) -> None:
    """The scenario keeps what the file sets but for what is searched: here the duration."""
    plan = planned(tmp_path, TUNE)
    found = tuned(plan, tmp_path / "store")
    assert found.as_it_is is not None
    point = plan.as_it_is()
    assert point is not None
    scenario = json.loads(point.scenario)
    assert scenario["duration"] == "5s"
    base = json.loads(plan.base.scenario)
    assert scenario["links"]["bottleneck"]["queue"].keys() >= base["links"]["bottleneck"]["queue"].keys() - {
        "total"
    }
    estimate = found.as_it_is.estimates["links.bottleneck.mean_queue_packets"]
    assert estimate is not None
    assert estimate.runs == 3
    assert json.loads(found.json())["as_it_is"]["scenario"] == point.key
    assert any(line.startswith("as it is") for line in found.text().splitlines())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("trials = 16", "trails = 16", "unknown key `trails`; did you mean `trials`?"),
        ("trials = 16", "batch = 0", "`batch` must be a whole number from 1"),
        ("trials = 16", 'batch = "all"', "`batch` must be a whole number from 1, not 'all'"),
        ("trials = 16", "batch = 1000000", "`batch` must be at most 100,000"),
        ("trials = 16", "trials = 0", "`trials` must be a whole number from 1"),
        ("runs = 2", "runs = 1000000000000", "`runs` must be at most 100,000"),
        ("validation-runs = 3", "validation-runs = 1000000000000", "`validation-runs` must be at most"),
        ("[search]", '"flows.gold.count" = 2\n[search]', "[set] `flows.gold.count` overwrites"),
        ("trials = 16", 'sampler = "grid"', "`sampler` must be one of tpe, nsga-ii, not 'grid'"),
        ("objectives", "#", "needs `objectives`"),
        ('["minimize', '["lower', 'such as "minimize rmse_to_targets_bps"'),
        (">= 60%", "> 60%", 'such as "links.uplink.utilization >= 97%"'),
        (">= 60%", ">= 60 furlongs", 'such as "links.uplink.utilization >= 97%"'),
        ("mean_queue_packets", "mean_queue", "nothing measured is called `links.bottleneck.mean_queue`"),
        ("[search]", "[seek]", "unknown key `seek`"),
        (">= 60%", ">= 160%", "it is a share, at most 100 %"),
        ('packets"]', 'packets", "maximize links.bottleneck.mean_queue_packets"]', "nothing does both"),
        ('packets"]', 'packets", "minimize links.bottleneck.mean_queue_packets"]', "once is enough"),
        ('"2..20"', '"2 to 20"', "is no range"),
        ("flows.gold.count", "flows.god.count", "did you mean `gold`?"),
        ("flows.gold.count", "flows.gold.cont", "unknown key `cont`"),
    ],
)
@pytest.mark.usefixtures("small")
def test_a_wrong_search_is_named_by_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TUNE
    with pytest.raises((PerhopError, ScenarioError)) as caught:
        planned(tmp_path, TUNE.replace(old, new, 1))
    assert said in str(caught.value)
    assert "tune.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("small")
def test_a_killed_search_goes_on(perhop: Perhop, tmp_path: Path) -> None:
    text = TWO.replace("trials = 16", "trials = 40").replace('duration = "5s"', 'duration = "300s"')
    plan = planned(tmp_path, text)
    process = subprocess.Popen(
        [sys.executable, "-m", "perhop", "tune", "tune.toml", "--store", "store"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    while not list((tmp_path / "store").glob("journals/*.journal")):
        assert time.monotonic() < end
        time.sleep(0.001)
    time.sleep(0.1)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    done = perhop("tune", "tune.toml", "--store", "store", "--json", "result.json")
    assert done.code == 0, done.err
    found = int(done.out.split(" runs simulated, ")[1].split(" ")[0])
    assert found > 0
    undisturbed = tuned(plan, tmp_path / "undisturbed")
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == undisturbed.json()

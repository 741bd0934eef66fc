"""Intervals contain what they are for: by repetition, over scenarios of different kind, in little."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats
from tools.coverage import intervals, measuring, page, splitting, stopped, warmed
from tools.coverage.settings import SETTINGS
from tools.coverage.truth import Times, Truth, Waits

from perhop.measures.durations import Durations
from perhop.runs import budget, simulate
from perhop.scenario import reading
from perhop.show.readable import end_names

RUNS = budget.LADDER[-1]
AMOUNT = measuring.Amount([RUNS], repetitions=25, most_runs=750, truth_from=750)
CHANCE = 1e-4
"""A count that is less likely than this at a coverage of 93 % is no chance."""


@pytest.mark.parametrize("name", ["voices", "radio", "lock-out"])
def test_intervals_cover_at_the_default_number_of_runs(name: str) -> None:
    """Rare losses in clusters, rare independent ones, and two states: `make coverage` has all, and more."""
    rows = measuring.measure(name, SETTINGS[name], AMOUNT, places=["tables"], jobs=2)
    own = {row.measure: row for row in rows if row.method == "perhop"}
    assert len(own) >= 9
    least = int(stats.binom.ppf(CHANCE, AMOUNT.repetitions, page.WANTED - page.NEAR))
    missed = {name: row.covered for name, row in own.items() if row.covered < least}
    assert not missed, f"of {AMOUNT.repetitions}, at least {least}"
    assert all(row.groups == AMOUNT.repetitions for row in own.values())
    mean = sum(row.covered for row in own.values()) / sum(row.groups for row in own.values())
    assert mean >= page.WANTED - page.NEAR
    # The harness can tell: Student's t of the runs' own values does not cover rare losses in clusters.
    if name == "voices":
        by_t = {row.measure: row for row in rows if row.method == "t"}
        assert by_t["links.uplink.loss"].covered < least


STEADY = ("loss", "mean_queue_packets", "throughput_bps")
"""Measures of a scenario's link, and of its first class."""


def _summarized(
    scenario: str, warmup: str, runs: int, seed: int = 1
) -> dict[str, tuple[float, float, float]]:
    """The mean of each of `STEADY`, and the ends of its interval."""
    result = simulate.run(scenario, runs=runs, seed=seed, warmup=warmup)
    row = result.group_summary().row(0, named=True) | result.link_summary().row(0, named=True)
    return {name: (row[name], *(row[end] for end in end_names(name))) for name in STEADY}


def test_intervals_behind_a_found_warm_up_cover_what_long_runs_say() -> None:
    """Runs of five seconds, against a hundred behind the first five; with the beginning none does."""
    scenario = SETTINGS["lock-out"].text
    truth = _summarized(scenario.replace('"5s"', '"100s"'), "5s", 40)
    least = int(stats.binom.ppf(CHANCE, AMOUNT.repetitions, page.WANTED - page.NEAR))
    covered = {
        (name, warmup): sum(
            low <= truth[name][0] <= high
            for n in range(AMOUNT.repetitions)
            for _, low, high in (_summarized(scenario, warmup, RUNS, 1 + RUNS * n)[name],)
        )
        for warmup in ("auto", "0s")
        for name in STEADY
    }
    assert all(count >= least for (_, warmup), count in covered.items() if warmup == "auto"), covered
    assert covered["loss", "0s"] == covered["mean_queue_packets", "0s"] == 0


def test_every_scenario_can_be_run_in_both_settings() -> None:
    """There are ten scenarios, and the two settings of each differ in one value."""
    assert len(SETTINGS) == 10
    for setting in SETTINGS.values():
        texts = [json.loads(reading.canonical(one)) for one in (setting.text, setting.other)]
        assert texts[0] != texts[1]
        assert {**texts[0], "links": None} == {**texts[1], "links": None}


def test_the_true_percentile_of_waits_is_that_of_all_runs() -> None:
    """Of histograms that begin at different bins."""
    waits = Waits()
    assert waits.percentile(0.5) is None
    edges = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    waits.add({"edges": edges[:4], "counts": np.array([[9, 0], [0, 0], [0, 1]]), "longest": [0.5, 0.0, 2.5]})
    waits.add({"edges": edges[2:], "counts": np.array([60, 30]), "longest": np.array([2.25, 3.5])})
    assert waits.percentile(0.05) == (0.0, 0.5)
    assert waits.percentile(0.5) == (2.0, 2.5)
    assert waits.percentile(0.69) == (2.0, 2.5)
    assert waits.percentile(0.7) == (2.0, 3.5)  # at the edge: 2 % of those above decide
    assert waits.percentile(0.71) == (3.0, 3.5)


def test_the_true_percentile_of_times_is_that_by_the_product_limit() -> None:
    """Of 1, 2 and 3 s that ended and one that had not after 1.5 s: shares .25, .625 and 1."""
    times = Times()
    times.add(Durations(np.array([3.0, 1.0]), np.array([1.5])))
    times.add(Durations(np.array([2.0]), np.empty(0)))
    assert times.percentile(0.25) == (1.0, 1.0)
    assert times.percentile(0.62) == (2.0, 2.0)
    assert times.percentile(0.63) == (3.0, 3.0)
    times.add(Durations(np.empty(0), np.array([5.0])))
    assert times.percentile(0.9) is None


def test_true_values_are_of_all_runs_together() -> None:
    """A share by packets, a mean by runs, a difference on the same seeds; what never varies has none."""
    setting = SETTINGS["lock-out"]
    results = [simulate.run(text, runs=6) for text in (setting.text, setting.other)]
    truths = [Truth(result.scenario) for result in results]
    for truth, result in zip(truths, results, strict=True):
        truth.add(result.runs[:4])
        truth.add(result.runs[4:])
    links = [run.link("link") for run in results[0].runs]
    share = sum(one["dropped_packets"] for one in links) / sum(one["arrived_packets"] for one in links)
    assert truths[0].of("links.link.loss") == pytest.approx((share, share))
    queue, other = (
        math.fsum(run.link("link")["mean_queue_packets"] for run in result.runs) / 6 for result in results
    )
    assert truths[0].of("links.link.mean_queue_packets") == pytest.approx((queue, queue))
    difference = truths[0].difference(truths[1], "links.link.mean_queue_packets")
    assert difference == pytest.approx((queue - other, queue - other))
    assert truths[0].of("flows.one.loss") != truths[0].of("flows.two.loss")
    assert truths[0].of("links.link.loss_green") is None


def test_student_s_t_for_comparison() -> None:
    low, high = intervals.by_t([1.0, 2.0, 3.0, 6.0]) or (math.nan, math.nan)
    found = stats.ttest_1samp([1.0, 2.0, 3.0, 6.0], 0.0).confidence_interval()
    assert (low, high) == pytest.approx((found.low, found.high))
    assert intervals.by_t([1.0]) is None
    assert intervals.by_t([1.0, math.nan]) is None


def test_the_page_says_how_many_cover() -> None:
    """Of 1000 groups 940 cover: with chance that is enough; of 900 it is not."""

    def row(measure: str, covered: int) -> measuring.Covered:
        return measuring.Covered(
            "md1", "perhop", "tables", measure, 30, (0.1, 0.2), 1000, 5, 1000 - covered, 0
        )

    rows = [row("links.link.loss", 940), row("links.link.delay_p99_s", 900)]
    shown = page.shown(json.loads(page.content(rows, "perhop")))
    kind = SETTINGS["md1"].kind
    assert shown["heads"] == ["perhop, 30 runs"]
    assert shown["lines"] == [
        [kind, "shares", 1, "94.0; 94.0"],
        [kind, "percentiles of waits", 1, "90.0; 90.0"],
    ]
    assert shown["enough"][0] == ["in tables", "1 of 2"]
    assert shown["measures"][0] == ["md1", "links.link.loss", "94.0 (92.3–95.4)"]


@pytest.mark.parametrize("name", stopped.QUEUES)
def test_the_mean_queue_is_that_of_pollaczek_and_khinchine(name: str) -> None:
    """By which is known how often intervals cover that decide how many runs there are."""
    scenario, mean = stopped.queue(stopped.QUEUES[name])
    queues = [run.link("link")["mean_queue_packets"] for run in simulate.run(scenario, runs=60).runs]
    assert stats.ttest_1samp(queues, mean).pvalue > 1e-3
    assert np.mean(queues) == pytest.approx(mean, rel=0.1)


def test_intervals_cover_that_decide_how_many_runs_there_are() -> None:
    """Of M/M/1, in little; the rule needs no more runs than looks without a correction."""
    rule, uncorrected = stopped.measure("mm1", 300)
    assert (rule.rule, uncorrected.rule) == stopped.RULES
    assert rule.covered >= stats.binom.ppf(1e-3, rule.groups, page.WANTED)
    assert 15 < rule.runs / rule.groups < 40


def test_a_stop_counts_by_where_its_interval_lies() -> None:
    values = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98] * 20
    pool = [{"links.link.mean_queue_packets": one} for one in values]
    found = {}
    for truth in (1.0, 2.0, 0.5):
        rows = stopped._of_measure("x", "links.link.mean_queue_packets", (truth, truth), pool, 0.05)
        found[truth] = [(row.covered, row.below, row.above) for row in rows]
    (stops, _, _) = found[1.0][0]
    assert stops >= 5
    assert found[2.0][0] == (0, stops, 0)
    assert found[0.5][0] == (0, 0, stops)


def test_the_page_says_how_many_stops_cover() -> None:
    rows = [
        stopped.Stopped("mm1", "links.link.mean_queue_packets", rule, 50, 2, 1, runs)
        for rule, runs in zip(stopped.RULES, (1250, 1500), strict=True)
    ]
    shown = stopped.shown(json.loads(stopped.content(rows, "perhop")))
    assert shown["lines"][0][1:] == ["means", 1, "94.0; 94.0", "25.0", "94.0; 94.0", "30.0"]


def test_losses_of_a_small_buffer_by_its_markov_chain() -> None:
    """Of exponential sizes, cut off at nine times their mean, it is M/M/1/K; M/D/1/K is known."""
    load, room = 0.5, 5
    mean, _ = stopped.moments(stopped.QUEUES["mm1"])
    exact = (1 - load) * load ** (room + 1) / (1 - load ** (room + 2))
    assert splitting.loss(stopped.QUEUES["mm1"], load / mean, room) == pytest.approx(exact, rel=0.05)
    assert splitting.loss(splitting.FIXED, 62.5, 10) == pytest.approx(1.155e-6, rel=1e-3)
    no_room = load / (1 + load)  # Erlang's loss formula, whatever the sizes are
    for sizes in (*stopped.QUEUES.values(), splitting.FIXED):
        mean, _ = stopped.moments(sizes)
        assert splitting.loss(sizes, load / mean, 0) == pytest.approx(no_room, rel=1e-9)


def test_intervals_of_rare_losses_cover_those_of_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of M/D/1/K, in little; and what the page says of them."""
    monkeypatch.setattr(splitting, "RUNS", (5,))
    (row,) = splitting.measure("md1", 6)
    assert row.groups == 6
    assert row.below + row.above <= 2
    assert row.mean == pytest.approx(1, rel=0.25)
    assert row.gain > 100
    row = splitting.Covered("md1", 5, 40, 1, 2, 1.01, 1234.0)
    shown = splitting.shown(json.loads(splitting.content([splitting.entry(row)], "perhop")))
    (line,) = shown["lines"]
    assert line[2:] == [5, 40, "92.5 (79.6–98.4)", 1.01, "1,200"]


def test_short_runs_behind_a_found_warm_up_are_held_against_long_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With their beginning, the loss of two windows that open at once is far off."""
    monkeypatch.setattr(warmed, "LONG_RUNS", 6)
    seconds, rows = warmed.measure("marks", dict(warmed.settings())["marks"], 2)
    assert 0 < seconds < 10
    queue = {row.way: row for row in rows if row.measure == "links.link.mean_queue_packets"}
    assert abs(queue["found"].bias) < abs(queue["with the beginning"].bias)
    shown = warmed.shown(json.loads(warmed.content(rows, {"marks": seconds}, "perhop")))
    assert all(len(line) == 8 for line in shown["lines"])


def test_only_what_has_a_steady_state_is_held_against_long_runs() -> None:
    assert "first" in dict(warmed.settings())
    assert "auto" in json.loads(dict(warmed.settings())["first"])["warmup"]

"""Verdicts on samples whose answer is known."""

from __future__ import annotations

import math

import pytest

from perhop.planning.job import together
from perhop.planning.objectives import Bound, parse
from perhop.planning.summary import what_would_tell
from perhop.planning.verdicts import corrected, judge, score, smallest_margins
from perhop.statistics.observations import Observations, ObservedQueue


def bound(text: str, *metrics: str) -> Bound:
    return Bound(parse(text, "plan.toml"), (metrics,), "s")


def seen(**values: list[float]) -> dict[str, Observations]:
    return {name: Observations(tuple(of_runs)) for name, of_runs in values.items()}


DELAY = bound("P99 of one-way delay of voice < 20 ms", "d")


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([0.010, 0.011, 0.012], "holds"),
        ([0.030, 0.031, 0.032], "breaks"),
        ([0.018, 0.020, 0.021], "cannot tell"),
        ([0.020, 0.020, 0.020], "breaks"),  # not below
        ([0.010, math.nan, 0.012], "cannot tell"),
    ],
)
def test_the_whole_interval_decides(values: list[float], state: str) -> None:
    found = judge(DELAY, seen(d=values))
    assert found.state == state
    assert found.missing == sum(map(math.isnan, values))
    assert (found.margin is None) == bool(found.missing)


def test_the_margin_has_the_interval_of_the_mean() -> None:
    found = judge(DELAY, seen(d=[0.010, 0.012]))
    assert found.margin is not None
    assert found.found is not None
    assert found.margin.mean == pytest.approx(0.45)
    assert found.margin.low == pytest.approx((0.02 - found.found.high) / 0.02)


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        ([0.018, 0.020, 0.021], "needs about 84 runs to tell."),
        (
            [0.0199, 0.0200, 0.0201],
            "may need more than 1000 runs to tell: the value is near its bound for how much the runs differ.",
        ),
        ([0.010, 0.011, 0.012], ""),
        ([0.010, math.nan, 0.012], ""),
    ],
)
def test_an_open_verdict_says_what_would_tell(values: list[float], advice: str) -> None:
    assert what_would_tell(judge(DELAY, seen(d=values))).removeprefix(f"“{DELAY.objective.text}” ") == advice


def test_more_runs_tell_nothing_of_a_mean_whose_longest_times_are_missing() -> None:
    cut = {"d": Observations((0.010, 0.011, 0.012), 0.0, at_least=(True, False, False))}
    assert "a longer duration decides" in what_would_tell(judge(DELAY, cut))
    share = bound("P99 of one-way delay of voice < 20 ms in 95 % of runs", "d")
    assert what_would_tell(judge(share, seen(d=[0.01] * 29 + [0.03]))) == ""


@pytest.mark.parametrize(
    ("kept", "runs", "state"),
    [(100, 100, "holds"), (30, 30, "cannot tell"), (40, 100, "breaks"), (95, 100, "cannot tell")],
)
def test_a_share_of_runs_is_judged_by_its_own_interval(kept: int, runs: int, state: str) -> None:
    share = bound("P99 of one-way delay of voice < 20 ms in 95 % of runs", "d")
    found = judge(share, seen(d=[0.01] * kept + [0.03] * (runs - kept)))
    assert found.share is not None
    assert (found.state, found.share.kept) == (state, kept)


def test_the_interval_of_a_share_is_that_of_clopper_and_pearson() -> None:
    """For 9 of 10 it is 55.50 % to 99.75 %; for 10 of 10 it begins at 0.025^(1/10) (their 1934 charts)."""
    share = bound("P99 of one-way delay of voice < 20 ms in 50 % of runs", "d")
    nine = judge(share, seen(d=[0.01] * 9 + [0.03])).share
    ten = judge(share, seen(d=[0.01] * 10)).share
    assert nine is not None
    assert ten is not None
    assert [nine.low, nine.high] == pytest.approx([0.55498, 0.99747], abs=1e-5)
    assert [ten.low, ten.high] == pytest.approx([0.025**0.1, 1.0], abs=1e-9)


def test_a_share_that_no_few_runs_can_show_says_how_many_would() -> None:
    share = bound("P99 of one-way delay of voice < 20 ms in 99 % of runs", "d")
    assert judge(share, seen(d=[0.01] * 20)).runs_needed == 368  # 0.99^368 is the first below 2.5 %
    assert judge(share, seen(d=[0.01] * 19 + [0.03])).runs_needed is None


def test_a_state_of_all_is_the_worst() -> None:
    good, bad, open_ = (judge(DELAY, seen(d=values)) for values in ([0.01] * 3, [0.03] * 3, [0.01, 0.03]))
    assert together([good, good]) is True
    assert together([good, open_]) is None
    assert together([open_, bad]) is False


def test_the_score_prefers_what_surely_holds() -> None:
    steady, wild = [0.012, 0.012, 0.012], [0.002, 0.010, 0.018]
    assert score([DELAY], seen(d=steady)) == pytest.approx(0.4 * 1.1)
    assert score([DELAY], seen(d=wild)) < score([DELAY], seen(d=steady))
    assert math.isnan(score([DELAY], seen(d=[0.01, math.nan])))
    assert smallest_margins(
        [DELAY, bound("jitter of voice < 1 s", "j")], seen(d=steady, j=[0.9, 0.0, 0.0])
    ) == (pytest.approx([0.1, 0.4, 0.4]))


def test_where_one_objective_never_changes_the_others_decide() -> None:
    stuck = bound("jitter of voice < 1 s", "j")
    better, worse = (seen(j=[0.9, 0.9], d=values) for values in ([0.008, 0.008], [0.016, 0.016]))
    assert score([DELAY, stuck], better) > score([DELAY, stuck], worse)


def test_no_loss_in_few_runs_is_no_proof_of_none() -> None:
    # Eight runs of 2750 packets: 22 000 independent ones show no less than 1 - 0.025^(1/22000) = .0168 %.
    loss = Bound(parse("loss of voice < 0.007 %", "plan.toml"), (("l",),), "fraction")
    packets = (2750.0,) * 8
    none = Observations((0.0,) * 8, 0.0, 1.0, trials=packets)
    found = judge(loss, {"l": none})
    assert (found.state, found.found and found.found.mean) == ("cannot tell", 0.0)
    assert found.found is not None
    assert found.found.high == pytest.approx(1 - 0.025 ** (1 / 22000))
    assert found.runs_needed == 20  # 8 * .0168 / .007 = 19.2
    many = Observations((0.0,) * 20, 0.0, 1.0, trials=(2750.0,) * 20)
    assert judge(loss, {"l": many}).state == "holds"


def test_drops_in_clusters_take_more_runs() -> None:
    loss = Bound(parse("loss of voice < 0.007 %", "plan.toml"), (("l",),), "fraction")
    # The queue's drops come by 55 in one run of ten: 55 times as far apart as single ones.
    drops = tuple(float(55 * (run % 10 == 0)) for run in range(60))
    queue = ObservedQueue(drops, (2750.0,) * 60, (None,) * 60)
    none = Observations((0.0,) * 60, 0.0, 1.0, trials=(2750.0,) * 60, queues=(queue,))
    assert judge(loss, {"l": none}).state == "cannot tell"


def test_the_losses_of_a_group_add_up_and_the_worst_group_counts() -> None:
    both = Bound(parse("loss of AF11 < 5 %", "plan.toml"), (("a", "m"), ("b",)), "fraction")
    found = judge(both, seen(a=[0.1, 0.2], m=[0.2, math.nan], b=[0.0, 0.0]))
    assert found.values == pytest.approx((1 - 0.9 * 0.8, 0.2))
    assert judge(both, seen(a=[0.1, 0.2], m=[0.2, math.nan])).holds is None


# ---------------------------------------------------------------- shares of runs, many verdicts


def test_the_margin_of_a_share_of_runs_is_that_of_the_share() -> None:
    """The bound is kept in 99 of 100 runs, by values far from it: 99 % of runs is just met."""
    share = bound("P99 of one-way delay of voice < 20 ms in 99 % of runs", "d")
    found = judge(share, seen(d=[0.01] * 99 + [9.0]))
    assert found.margin is not None
    assert found.margin.mean == pytest.approx(0.0)
    assert found.margin.low == pytest.approx((0.945541 - 0.99) / 0.01, abs=1e-3)
    assert found.margin.high == pytest.approx((0.999747 - 0.99) / 0.01, abs=1e-3)
    assert found.state == "cannot tell"
    enough = judge(share, seen(d=[0.01] * 400))
    assert enough.state == "holds"
    assert enough.margin is not None
    assert 0 < enough.margin.low < enough.margin.mean == 1.0


def test_the_smallest_margins_have_a_share_of_runs_as_kept_or_not() -> None:
    share = bound("P99 of one-way delay of voice < 20 ms in 90 % of runs", "d")
    assert smallest_margins([share], seen(d=[0.01, 9.0])) == pytest.approx([1.0, -9.0])


def test_p_values_agree_with_the_verdicts() -> None:
    for values in ([0.010, 0.011, 0.012], [0.030, 0.031, 0.032], [0.018, 0.020, 0.021]):
        found = judge(DELAY, seen(d=values))
        assert found.p is not None
        assert (found.p <= 0.05) == (found.holds is not None)
    share = bound("P99 of one-way delay of voice < 20 ms in 95 % of runs", "d")
    for kept in range(60, 101):
        found = judge(share, seen(d=[0.01] * kept + [0.03] * (100 - kept)))
        assert found.p is not None
        assert (found.p <= 0.05) == (found.holds is not None)
    assert judge(DELAY, seen(d=[0.01, math.nan])).p is None


def test_a_corrected_verdict_needs_more() -> None:
    """A verdict whose p value is above 2.5 % does not stand beside another like it."""
    weak = judge(DELAY, seen(d=[0.0100, 0.0131, 0.0072, 0.0186]))
    strong = judge(DELAY, seen(d=[0.010, 0.0101, 0.0102, 0.0103]))
    assert weak.holds
    assert strong.holds
    assert weak.p is not None
    assert 0.025 < weak.p <= 0.05
    assert corrected([weak]) == [(True, weak.p)]
    (first, first_p), (second, _), (last, last_p) = corrected([weak, strong, weak])
    assert (first, second, last) == (None, True, None)
    assert first_p == last_p == pytest.approx(2 * weak.p)

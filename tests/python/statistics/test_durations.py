"""Times of which some had not ended when the run did: by hand, and against longer runs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import perhop
from perhop.measures.durations import Durations
from perhop.runs import companions, observing
from perhop.runs.metrics import measure
from perhop.runs.summary import summarize
from perhop.statistics.observations import Distribution, Observations, paired, pooled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def times(ended: ArrayLike, open_: ArrayLike = ()) -> Durations:
    return Durations(np.asarray(ended, float), np.asarray(open_, float))


def test_a_population_of_which_no_flow_completes_has_no_completion_times() -> None:
    """In any of several runs: each takes 80 s at least, and the run 20 s."""
    link = {
        "from": "a",
        "to": "b",
        "rate": "10Mbps",
        "delay": "10ms",
        "queue": {"aqm": "codel", "limit": "100p"},
    }
    flow = {"name": "large", "from": "a", "to": "b", "transport": {"tcp": "linux"}}
    population = {**flow, "arrivals": {"every": "15s"}, "sizes": {"constant": "100MB"}}
    with pytest.warns(perhop.errors.PerhopWarning, match="more and more of them are open"):
        found = perhop.run({"duration": "20s", "links": {"up": link}, "flows": [population]}, runs=3)
    row = json.loads(found.json())["populations"][0]
    assert (row["unfinished"], row["completion_mean_s"], row["completion_p50_s"]) == (1, None, None)


def test_the_product_limit_by_hand() -> None:
    # A fifth is at most 1; one of the four others is open at 2, and 5/15 of the three that are left end by 3.
    found = times([3, 1, 5, 7], [2])
    assert found.quantile(0.2) == 1
    assert found.quantile(0.4) == 3
    assert found.quantile(0.5) == 5, "the median of those that ended is 3"
    assert found.quantile(0.9) == 7
    assert found.mean == pytest.approx((1 + 3 + 5 + 5 + 7) / 5)
    distribution = found.distribution
    assert distribution.count == 5
    assert float(distribution.share_up_to(3)) == pytest.approx((0.2 + (1 - 0.8 * 2 / 3)) / 2), (
        "half of a step"
    )


def test_a_percentile_is_not_known_beyond_what_was_seen() -> None:
    ended = np.arange(1, 100) / 100
    assert times(ended, [0.5]).quantile(0.99) == 0.99
    assert math.isnan(times(ended, [2.0, 2.0]).quantile(0.99))
    assert times(ended, [2.0, 2.0]).quantile(0.5) == pytest.approx(0.51)
    assert math.isnan(times([1], [2, 3]).quantile(0.5)), "most are open"
    assert math.isnan(times([], [2, 3]).mean)
    # Of seven that were longer than 0.5, five are open at 1: each of the two others would stand for 7/2.
    cut = times([0.5, 2, 3], [1] * 5)
    assert (cut.quantile(0.1), cut.distribution.quantile(0.125)) == (0.5, 0.5)
    assert math.isnan(cut.quantile(0.2))
    assert cut.distribution.quantile(0.2) == math.inf


def test_a_mean_is_a_lower_bound_where_the_longest_are_open() -> None:
    assert not times([1, 2, 3]).is_cut_off
    assert not times([1, 2, 3, *[2] * 20], [0.1]).is_cut_off, "it began just before the end"
    assert times([1, 2, 3], [4]).is_cut_off
    assert times([1, 2, 3], [2.9, 2.8]).is_cut_off, "half of all time is of flows that are open"
    assert times([1, 2, 3], [4, 6]).mean == pytest.approx((1 + 2 + 3 + 5 * 2 + (6 - 5) * 2) / 5)


def test_runs_are_pooled_as_if_they_were_one() -> None:
    random = np.random.default_rng(7)
    waits = [random.exponential(1.0, 500) for _ in range(8)]
    limits = [random.uniform(0.5, 6.0, 500) for _ in range(8)]
    runs = [times(w[w <= c], c[w > c]) for w, c in zip(waits, limits, strict=True)]
    whole = times(np.concatenate([one.ended for one in runs]), np.concatenate([one.open for one in runs]))
    together = pooled([one.distribution for one in runs])
    kept = pooled([Distribution.from_levels(one.count, one.distribution.at_levels()) for one in runs])
    for level in (0.25, 0.5, 0.65):
        assert together.quantile(level) == pytest.approx(whole.quantile(level), rel=0.02)
        assert kept.quantile(level) == pytest.approx(whole.quantile(level), rel=0.03)
        assert together.quantile(level) == pytest.approx(-math.log(1 - level), rel=0.1)
    assert together.quantile(0.99) == kept.quantile(0.99) == math.inf
    # One run without any that ended says that its share is not known.
    assert pooled([times([1, 2]).distribution, times([], [3, 3]).distribution]).quantile(0.6) == math.inf


def test_99_percent_of_the_flows_of_all_runs() -> None:
    """40 flows in each of five runs: no run has a 99th percentile, and all of them together do."""
    random = np.random.default_rng(3)
    runs = [times(random.exponential(1.0, 40)) for _ in range(5)]
    none = [math.nan] * 5
    found = observing.of_durations("populations.completion_p99_s", none, runs).estimate
    every = np.concatenate([one.ended for one in runs])
    assert found is not None
    assert np.quantile(every, 0.985) <= found.mean <= every.max()
    assert (found.runs, found.missing) == (5, 0)
    assert observing.of_durations("populations.completion_p99_s", none[:2], runs[:2]).estimate is None


def test_lower_bounds_stay_lower_bounds() -> None:
    bound = Observations((1.0, 2.0, 3.0), at_least=(False, True, False))
    known = Observations((1.5, 1.0, 1.1))
    assert bound.estimate is not None
    assert bound.estimate.high == math.inf
    assert "over" in bound.estimate.text()
    one = Observations((2.0,), at_least=(True,)).estimate
    assert one is not None
    assert (one.low, one.high) == (-math.inf, math.inf)
    differences = [paired(bound, known), paired(known, bound), paired(bound, bound)]
    ends = [(one.low > -math.inf, one.high < math.inf) for one in differences if one is not None]
    assert ends == [(True, False), (False, True), (False, False)]
    assert [one.text().split("(")[1][:5] for one in differences if one] == ["over ", "under", "not k"]


OVERLOADED = """
duration = "{duration}s"
warmup = "2s"
[links.link]
from = "a"
to = "b"
rate = "4Mbps"
delay = "10ms"
queue = {{ aqm = "drop-tail", limit = "50p" }}
[[flows]]
name = "users"
from = "a"
to = "b"
count = {users}
transport = {{ tcp = "linux" }}
application = {{ model = "{model}" }}
"""


def overloaded(model: str, duration: float, users: int = 100) -> Any:  # noqa: ANN401
    scenario = OVERLOADED.format(model=model, duration=duration, users=users)
    if model == "web":
        scenario = scenario.replace('"web" }', '"web", scale = 2.0, reading = "2s" }')
    return perhop.run(scenario, runs=3)


@pytest.mark.parametrize(("model", "level"), [("web", "page_p95_s"), ("request-response", "response_p99_s")])
def test_pages_and_responses_that_are_open_at_the_end(model: str, level: str) -> None:
    name = level[: level.index("_")]
    result = overloaded(model, 12 if model == "web" else 3)
    (row,) = result.applications()[model].iter_rows(named=True)
    for run in result.runs:
        (users,) = run.raw["applications"]
        samples, open_ = users["samples"][f"{name}_s"], users["open"][f"{name}_s"]
        assert len(open_) == users["measures"][f"unfinished_{name}s"] > 0
        assert (open_ > 0).all()
        assert (open_ <= run.raw["duration_s"] - run.raw["warmup_s"]).all()
        mean = users["measures"][f"{name}_mean_s"]
        assert mean == pytest.approx(times(samples, open_).mean)
        assert mean > samples.mean()
        share = len(open_) / (len(open_) + len(samples))
        assert (users["measures"][level] is None) == (
            share > 1 - float(f"0.{level[level.index('_p') + 2 : -2]}")
        )
    assert row[level] is None, "more are open than are above it"
    assert row[f"{name}_mean_high_s"] == math.inf
    text = " ".join(summarize(result).text(200).split())
    assert "a lower bound" in text
    kept = dict(companions.companions(result.runs[0].raw, result.scenario))
    assert kept[f"applications.users.{name}_mean_s#cut"] == 1
    (users,) = result.runs[0].raw["applications"]
    count = sum(len(users[key][f"{name}_s"]) for key in ("samples", "open"))
    assert kept[f"applications.users.{name}_s#of"] == count


def test_a_light_load_has_all_of_them() -> None:
    result = overloaded("request-response", 60, users=2)
    (row,) = result.applications()["request-response"].iter_rows(named=True)
    assert row["response_p99_s"] is not None
    assert row["response_mean_high_s"] < math.inf
    assert "a lower bound" not in summarize(result).text(200)


def test_flows_with_a_volume() -> None:
    scenario = OVERLOADED.format(model="web", duration=4, users=1).replace(
        'application = { model = "web" }', 'volume = "900kB"\nstart = "2s..3s"'
    )
    result = perhop.run(scenario, runs=12)
    (row,) = result.classes().iter_rows(named=True)
    done = sum(run.raw["flows"]["unfinished"][0] == 0 for run in result.runs)
    assert 0 < done < 12
    assert row["completion_high_s"] == math.inf
    text = " ".join(summarize(result).text(200).split())
    assert "a lower bound" in text
    assert f"users FCT in {done} of 12" in text
    columns = [
        measure(run.raw) | dict(companions.companions(run.raw, result.scenario)) for run in result.runs
    ]
    gathered = companions.Gathered({name: [run[name] for run in columns] for name in columns[0]})
    found = gathered.of("flows.users.completion_s").estimate
    assert found is not None
    assert (found.high, found.runs, found.of) == (math.inf, done, 12)

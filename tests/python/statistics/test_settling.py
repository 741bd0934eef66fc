"""The warm-up by MSER-5, against values by hand, a process whose mean is known, and long runs."""

from __future__ import annotations

import json
import math
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.coverage.settings import SETTINGS

from perhop import _engine, run, sweep
from perhop.errors import ArgumentError, PerhopWarning, ScenarioError
from perhop.runs import warming
from perhop.runs.companions import WARMUP
from perhop.scenario import reading
from perhop.statistics.settling import BATCH, _narrowest, settled_from
from perhop.stores import metrics

EXAMPLES = Path(__file__).parents[3] / "examples"
STEADY = 20.0
DECAY = 0.98
START = 60.0


def _batches(*means: float) -> np.ndarray:
    return np.repeat(np.array(means, dtype=float), BATCH)


def test_values_by_hand() -> None:
    """Of 9, 3, 1, 3, 1, 3, 1, 3 the criterion is 6.38 / 8 from the first batch on, and 1 / 7 from the second.

    From the second on the mean is 15 / 7 and the variance 48 / 49; from the third on they are 2 and 1, over
    6. The negligible difference adds less than 0.0005 to a variance.
    """
    assert settled_from(_batches(9, 3, 1, 3, 1, 3, 1, 3)) == BATCH
    assert settled_from(_batches(2, 2, 2, 2, 2, 2, 2, 2)) == 0


def test_a_ramp_never_settles() -> None:
    """Each batch is above the one before."""
    assert settled_from(np.arange(200.0)) is None


def test_differences_of_less_than_a_percent_count_as_none() -> None:
    """A long time at one value attracts the cut only if what is before it differs."""
    assert settled_from(_batches(*[1000.001] * 10, *[1000] * 30)) == 0
    assert settled_from(_batches(*[1500] * 10, *[1000] * 30)) == 10 * BATCH


def test_too_few_samples_tell_nothing() -> None:
    """Three batches have no first half."""
    assert settled_from(np.zeros(3 * BATCH)) is None


def _approach(rng: np.random.Generator) -> np.ndarray:
    """An autoregressive process that begins far from its mean: 20 + 40 · 0.98ᵗ + noise."""
    noise = rng.normal(size=2000)
    values = np.empty(2000)
    level = START - STEADY
    for place, step in enumerate(noise):
        level = DECAY * level + step
        values[place] = STEADY + level
    return values


def test_the_mean_behind_the_cut_is_that_of_the_steady_state() -> None:
    """Without a cut 200 repetitions show the bias of the start, behind it none of four standard errors."""
    rng = np.random.default_rng(1)
    whole, behind = [], []
    for _ in range(200):
        values = _approach(rng)
        cut = settled_from(values)
        whole.append(values.mean())
        if cut is not None:
            behind.append(values[cut:].mean())

    def off(means: list[float]) -> float:
        return abs(float(np.mean(means)) - STEADY) / (float(np.std(means)) / math.sqrt(len(means)))

    assert len(behind) > 190
    assert off(whole) > 8
    assert off(behind) < 4


SEEDS = 200
SHORT = 0.02
"""A part of a run that is no loss."""


def _cuts(runs: Callable[[np.random.Generator], np.ndarray]) -> np.ndarray:
    """The parts of runs that are cut, over many seeds; 1 where nothing settles."""
    cuts = [settled_from(samples := runs(np.random.default_rng(seed))) for seed in range(SEEDS)]
    return np.array([1.0 if cut is None else cut / samples.shape[1] for cut in cuts])


def _poisson(rng: np.random.Generator) -> np.ndarray:
    """Packets that come in each of a thousand intervals, one in twenty of them: five runs."""
    return rng.poisson(0.05, size=(5, 1000)).astype(float)


def _markov(rng: np.random.Generator) -> np.ndarray:
    """The queue of M/M/1 at load 0.8 at a thousand times: it begins empty, for some packets."""
    steps = np.where(rng.random((5, 9000)) < 0.8 / 1.8, 1, -1).cumsum(axis=1)
    return (steps - np.minimum(np.minimum.accumulate(steps, axis=1), 0))[:, ::9].astype(float)


def _approaches(rng: np.random.Generator) -> np.ndarray:
    return np.array([_approach(rng) for _ in range(5)])


@pytest.mark.parametrize("runs", [_poisson, _markov])
def test_stationary_traffic_of_few_packets_has_no_cut(
    runs: Callable[[np.random.Generator], np.ndarray],
) -> None:
    """Chance alone cuts at most one in twenty; by MSER alone it cuts more than twice as many."""
    assert np.mean(_cuts(runs) <= SHORT) >= 0.95
    by_mser = [
        _narrowest(runs(np.random.default_rng(seed)).reshape(5, -1, BATCH).mean(axis=(0, 2)))
        for seed in range(SEEDS)
    ]
    assert np.mean(np.array(by_mser) > SHORT * 200) > 0.1


def test_a_beginning_far_from_the_mean_has_its_cut() -> None:
    """0.98ᵗ is a twentieth after 150 of 2000 samples, with every seed."""
    cuts = _cuts(_approaches)
    assert cuts.min() > 0
    assert np.mean(cuts < 0.25) > 0.9


@pytest.fixture(scope="module")
def first() -> dict[str, Any]:
    """The first example without a warm-up: ten windows open at once."""
    return {**tomllib.loads((EXAMPLES / "first.toml").read_text()), "duration": "20s"}


def test_short_runs_behind_it_agree_with_a_long_one(first: dict[str, Any]) -> None:
    """The loss of short runs is that of a long run behind 60 s; with the slow start in, it is far off."""

    def loss(scenario: dict[str, Any], runs: int, warmup: str | None) -> tuple[float, float, float]:
        row = run(scenario, runs=runs, seed=7, warmup=warmup).link_summary().row(0, named=True)
        return row["loss"], row["loss_low"], row["loss_high"]

    truth, *_ = loss({**first, "duration": "600s"}, 3, "60s")
    found, low, high = loss(first, 20, "auto")
    assert low - 0.05 * truth < truth < high + 0.05 * truth, (truth, low, found, high)
    assert loss(first, 20, None) == loss(first, 20, "auto")
    _, low, _ = loss(first, 20, "0s")
    assert low > 1.1 * truth


def test_what_grows_ever_faster_has_not_settled() -> None:
    """The narrowest interval has the flat beginning; halves that differ tell, unless events are rare."""
    noise = np.random.default_rng(3).normal(0, 5, (5, 1000))
    grows = 100 + 900 * np.linspace(0, 1, 1000) ** 3 + noise
    assert settled_from(grows) is None
    assert settled_from(grows, may_drift=True) == 0
    assert settled_from(1000 + noise) == 0
    scales = np.array([1.0, 2.0, 3.0, 5.0, 8.0])[:, None]  # runs that are alike but for their size
    steps = np.where(np.arange(1000) < 800, 4.0, 1.0)
    assert settled_from(scales * steps) is None


@pytest.mark.parametrize(("limit", "flows"), [("1000p", 3), ("5000p", 2)])
def test_a_buffer_that_still_fills_has_not_settled(limit: str, flows: int) -> None:
    """The queue grows over the whole run, the slower the larger the buffer is."""
    scenario = _alone(limit, "20s")
    scenario["flows"][0]["count"] = flows
    scenario["links"]["uplink"]["rate"] = "5Mbps"
    found = run(scenario, runs=1).warm_up
    assert found is not None
    assert (found.settles, found.seconds) == (False, 10)


def test_a_change_behind_the_beginning_is_found() -> None:
    """BBR probes the least round trip after ten seconds; then its queue is a third of what it was."""
    scenario = _alone("500p", "30s")
    scenario["flows"][0] |= {"count": 3, "transport": {"tcp": "linux", "congestion": "bbr"}}
    scenario["links"]["uplink"]["delay"] = "10ms"
    found = run(scenario, runs=1).warm_up
    assert found is not None
    assert found.settles
    assert 10 < found.seconds < 14


def _alone(limit: str, duration: str) -> dict[str, Any]:
    """One flow of CUBIC, which loses many packets in its slow start and then few at a time."""
    queue = {"aqm": "drop-tail", "limit": limit}
    link = {"from": "a", "to": "b", "rate": "10Mbps", "delay": "20ms", "queue": queue}
    flow = {"name": "one", "from": "a", "to": "b", "transport": {"tcp": "linux"}}
    return {"duration": duration, "links": {"uplink": link}, "flows": [flow]}


def test_the_losses_of_a_slow_start_are_left_out() -> None:
    """Queue and rate of a saturated link settle before the losses do."""

    def loss(duration: str, warmup: str) -> float:
        return float(run(_alone("200p", duration), runs=1, warmup=warmup).link_summary()["loss"][0])

    truth = loss("600s", "60s")
    assert loss("60s", "auto") == pytest.approx(truth, rel=0.02)
    assert loss("60s", "0s") > 1.2 * truth


def test_the_first_loss_behind_a_long_slow_start_is_left_out() -> None:
    """The flow has it at 16 s, three times as long as later ones, in the second half of half a run."""
    found = run(_alone("1000p", "60s"), runs=1).warm_up
    assert found is not None
    assert found.settles
    assert found.seconds > 16


def test_how_it_is_found_depends_on_the_scenario_alone(first: dict[str, Any]) -> None:
    """Neither on the seeds nor on how many runs and threads there are; a sweep's point has the same."""
    found = run(first, runs=3, seed=2**64 - 3).warm_up
    assert found is not None
    warming._found.clear()
    assert run(first, runs=1, jobs=1).warm_up == found
    warming._found.clear()
    measured = metrics.simulate(reading.canonical(first), 1)
    assert dict(zip(measured.names, measured.values, strict=True))[WARMUP] == found.seconds


def test_a_word_that_is_no_duration_says_what_may_stand_there(first: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="`Auto` has no number; write a duration such as 48ms, or auto"):
        run({**first, "warmup": "Auto"})


def test_warnings_keep_their_place_beside_another_warm_up(tmp_path: Path) -> None:
    """A line of the file, though the scenario with another warm-up has none."""
    text = (EXAMPLES / "first.toml").read_text().replace("count = 8,", 'count = 8, start = "70s",')
    (tmp_path / "late.toml").write_text(text)
    with pytest.warns(PerhopWarning, match=r"late\.toml:5: flows\[1\]\.start: "):
        run(tmp_path / "late.toml", runs=1, warmup="1s")


def test_the_engine_is_given_a_number(first: dict[str, Any]) -> None:
    """A warm-up that nobody has looked for is not taken as none."""
    with pytest.raises(ScenarioError, match="warmup: `auto` has not been found"):
        _engine.simulate(reading.canonical(first), 1, _engine.Cancel())


@pytest.mark.parametrize("begin", range(0, 30, 5))
def test_packets_of_a_poisson_process_settle_at_once(monkeypatch: pytest.MonkeyPatch, begin: int) -> None:
    """M/D/1 at load 0.8, a thousand packets in ten seconds."""
    monkeypatch.setattr(warming, "SEEDS", range(begin, begin + 5))
    warming._found.clear()
    scenario = {**tomllib.loads(SETTINGS["md1"].text), "warmup": "auto"}
    scenario["flows"] = [{**group, "start": "0s"} for group in scenario["flows"]]
    _, found = warming.settled(reading.canonical(scenario))
    warming._found.clear()
    assert found is not None
    assert found.settles
    assert found.seconds <= SHORT * 10


def test_no_flow_begins_behind_a_found_warm_up() -> None:
    """Settled before its last flow may begin, as by chance: of UDP at half the load, which never varies."""
    link = {
        "from": "a",
        "to": "b",
        "rate": "2Mbps",
        "delay": "1ms",
        "queue": {"aqm": "drop-tail", "limit": "9p"},
    }
    load = {"from": "a", "to": "b", "transport": {"udp": "cbr", "rate": "1Mbps"}}
    flows = [{"name": "early", "start": "0s", **load}, {"name": "late", "start": "1s..2s", **load}]
    scenario = {"duration": "20s", "links": {"uplink": link}, "flows": flows}
    _, found = warming.settled(reading.canonical(scenario))
    assert found is not None
    assert found.seconds >= 2
    never = {"name": "never", "start": "30s", **load}
    _, beside = warming.settled(reading.canonical({**scenario, "flows": [*flows, never]}))
    assert beside == found, "it never begins, which a note says"


WHOLE: dict[str, dict[str, Any]] = {
    "`uplink` changes meanwhile": {"links": {"uplink": {"changes": [{"at": "9s", "rate": "5Mbps"}]}}},
    "`uplink (reverse)` changes meanwhile": {
        "links": {"uplink": {"reverse": {"outages": [{"from": "9s", "to": "10s"}]}}}
    },
    "the traffic of `one` ends": {"flows": {"stop": "10s"}},
    "flows of `one` begin behind its first quarter": {"flows": {"start": "0s..6s"}},
    "how `one` starts is measured": {"flows": {"application": {"model": "video"}}},
    "the traffic of `one` ends with its volume": {"flows": {"volume": "1MB"}},
    "`one` follows a recording": {"flows": {"replay": {"data": "time_s,size_B\n0,100\n19,100\n"}}},
}
"""Why the whole run counts, and what of a scenario makes it so."""


@pytest.mark.parametrize("why", WHOLE)
def test_the_whole_run_counts_where_there_is_no_one_steady_state(first: dict[str, Any], why: str) -> None:
    """The sentence below the tables has the reason."""
    links, flow = WHOLE[why].get("links", {}), WHOLE[why].get("flows", {})
    link = {**first["links"]["uplink"], **links.get("uplink", {})}
    tcp = {} if "replay" in flow else {"transport": {"tcp": "newreno"}}
    one = {"name": "one", "from": "office", "to": "internet", **tcp, **flow}
    result = run({**first, "links": {"uplink": link}, "flows": [*first["flows"], one]}, runs=1)
    assert result.warm_up == warming.WarmUp(0.0, settles=False, why=why)
    assert result.runs[0].raw["warmup_s"] == 0
    assert f"All figures are of the whole run: {why}." in " ".join(result.text().split())


def test_what_would_end_behind_the_run_does_not_end(first: dict[str, Any]) -> None:
    """A `stop` at or behind the end, a volume beyond what a link of 10 Mbit/s or an access link carries in
    20 s, or beyond what any of ten flows gets of it, and flows of a population, which begin and end all the
    time.
    """
    slow = {"volume": "1MB", "access": {"rate": "390kbps", "delay": "1ms"}}
    for keys in ({"stop": "20s"}, {"volume": "26MB"}, {"volume": "8MB"}, slow):
        stays = run({**first, "flows": [{**flow, **keys} for flow in first["flows"]]}, runs=1).warm_up
        assert stays is not None
        assert stays.settles, keys
    ends = run({**first, "flows": [{**flow, "volume": "2MB"} for flow in first["flows"]]}, runs=1).warm_up
    assert ends is not None
    assert "ends with its volume" in ends.why
    every = {**first["flows"][1], "count": 1, "arrivals": {"every": "7s"}, "sizes": {"constant": "20kB"}}
    found = run({**first, "flows": [every]}, runs=1).warm_up
    assert found is not None
    assert "last flows begin" not in found.why


def test_a_volume_that_is_sent_ends_though_not_all_of_it_arrives(first: dict[str, Any]) -> None:
    """RAP repairs no losses."""
    rap = {**first["flows"][1], "count": 1, "transport": {"rap": "aimd"}, "volume": "200kB"}
    link = {**first["links"]["uplink"], "rate": "500kbps", "queue": {"aqm": "drop-tail", "limit": "5p"}}
    found = run({**first, "links": {"uplink": link}, "flows": [rap]}, runs=1)
    assert found.flows["completion_s"].is_null().all()
    assert found.warm_up is not None
    assert found.warm_up.why == "the traffic of `best effort` ends with its volume"


def test_a_run_in_which_no_flow_begins_says_so(first: dict[str, Any]) -> None:
    never = {**first, "flows": [{**flow, "start": "20s"} for flow in first["flows"]]}
    with pytest.warns(PerhopWarning, match="never begin"):
        found = run(never, runs=1).warm_up
    assert found == warming.WarmUp(0.0, settles=False, why="no flow begins within it")


def test_more_and_more_open_flows_do_not_settle() -> None:
    """Of the capacity 105 % come: each run has more open flows in its second half, whatever waits."""
    queue = {"aqm": "drop-tail", "limit": "100p"}
    link = {"from": "a", "to": "b", "rate": "10Mbps", "delay": "10ms", "queue": queue}
    flow = {
        "name": "v",
        "from": "a",
        "to": "b",
        "transport": {"tcp": "linux"},
        "sizes": {"constant": "100kB"},
    }

    def found(load: float) -> warming.WarmUp:
        arrivals = {"arrivals": {"load": load}}
        scenario = {"duration": "100s", "links": {"up": link}, "flows": [{**flow, **arrivals}]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is an overload, as the scenario's check says
            warm_up = run(scenario, runs=1).warm_up
        assert warm_up is not None
        return warm_up

    over = found(1.05)
    assert (over.settles, over.seconds) == (False, 50)
    assert "the number of open flows of `v` has not settled" in over.why
    assert found(0.5).settles


def test_rare_losses_are_bounded_by_waits_only_in_a_steady_state(tmp_path: Path) -> None:
    """Nothing is lost, and no wait is half as long as a full queue's: the tail of waits bounds the loss, but
    not where the traffic ends or where half of the run has not settled.
    """

    def highest(keys: dict[str, Any]) -> float:
        queue = {"aqm": "drop-tail", "limit": "200p"}
        link = {"from": "a", "to": "b", "rate": "1Mbps", "delay": "1ms", "queue": queue, **keys}
        poisson = {"arrivals": {"rate": "200/s"}, "sizes": {"constant": "472B"}}
        udp = {"udp": "cbr", "rate": "1Gbps", "packet": "500B", "jitter": 0.0}
        flows = [{"name": "messages", "from": "a", "to": "b", "transport": udp, **poisson}]
        load = {"duration": "20s", "links": {"uplink": link}, "flows": flows}
        row = run(load, runs=5).link_summary().row(0, named=True)
        swept = sweep({"scenario": load, "runs": 5, "metrics": ["links.uplink.loss"]}, store=tmp_path)
        ends = json.loads(swept.json())["points"][0]["metrics"]["links.uplink.loss"]["ci95"]
        assert row["loss"] == 0
        assert ends[1] == pytest.approx(
            row["loss_high"], rel=0.5
        )  # a sweep keeps some quantiles of waits alone
        return float(row["loss_high"])

    assert highest({}) < 1e-6
    assert highest({"changes": [{"at": "19s", "rate": "1Mbps"}]}) > 1e-5


def test_it_is_found_and_told(first: dict[str, Any]) -> None:
    """The result has the scenario with the warm-up that was found, and says how."""
    result = run(first, runs=2, warmup="auto")
    assert result.warm_up is not None
    assert result.warm_up.settles
    assert 1 < result.warm_up.seconds < 9
    assert result.runs[0].raw["warmup_s"] == result.warm_up.seconds
    assert f"the first {result.warm_up.seconds:g} s, found by MSER-5: " in " ".join(result.text().split())
    assert json.loads(result.json())["warmup"] == result.warm_up.json()


def test_a_run_that_never_settles_says_so(first: dict[str, Any]) -> None:
    """A queue that grows from beginning to end."""
    load = {"from": "office", "to": "internet", "transport": {"udp": "cbr", "rate": "11Mbps"}}
    link = {**first["links"]["uplink"], "queue": {"aqm": "drop-tail", "limit": "100000p"}}
    scenario = {**first, "links": {"uplink": link}, "flows": [{"name": "load", **load}]}
    result = run(scenario, runs=2)
    assert result.warm_up is not None
    assert not result.warm_up.settles
    assert result.warm_up.seconds == 10
    assert "has not settled by then" in " ".join(result.text().split())


def test_a_run_whose_traffic_ends_says_so(first: dict[str, Any]) -> None:
    """The steady state of a drained network is that nothing is sent."""
    flows = [{**flow, "volume": "200kB"} for flow in first["flows"]]
    result = run({**first, "flows": flows}, runs=2, warmup="auto")
    why = "the traffic of `sold 2 Mbps` ends with its volume"
    assert result.warm_up == warming.WarmUp(0.0, settles=False, why=why)
    assert f"All figures are of the whole run: {why}." in " ".join(result.text().split())


def test_what_is_said_of_a_warm_up_is_of_the_one_that_counts(first: dict[str, Any]) -> None:
    """A transfer that begins in the file's warm-up has a completion time behind a shorter one."""
    begins = {**first["flows"][0], "volume": "200kB", "start": "2s"}
    scenario = {**first, "flows": [begins], "warmup": "3s"}
    with pytest.warns(UserWarning, match="no completion time"):
        run(scenario, runs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(scenario, runs=1, warmup="1s")


def test_a_given_one_counts_in_place_of_the_scenarios(first: dict[str, Any]) -> None:
    """Whatever the file says."""
    given = run({**first, "warmup": "1s"}, runs=2, warmup="4s")
    of_file = run({**first, "warmup": "4s"}, runs=2)
    assert given.json() == of_file.json()
    assert given.warm_up is None


@pytest.mark.parametrize(
    ("warmup", "why"),
    [
        ("20s", "must be below the duration of 20s, not 20s"),
        ("soon", "or write auto"),
        ("-1s", "or write auto"),
    ],
)
def test_what_cannot_be_is_refused(first: dict[str, Any], warmup: str, why: str) -> None:
    """With the argument's name and what would be right."""
    with pytest.raises(ArgumentError, match=why):
        run(first, runs=1, warmup=warmup)

"""The studies of Bouras and Sevasti's paper, and what they measure by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest

import perhop
from perhop.measures.run import Run
from perhop.studies import STUDIES, bouras
from perhop.studies.bouras import ablation, claims, common, judges, scenarios
from perhop.studies.bouras import map as assumptions
from perhop.studies.bouras.claims import BY_STUDY
from perhop.studies.bouras.common import (
    ADMISSIBLE,
    ALIKE,
    BASELINE,
    BASELINE_IN,
    EDGE,
    JUDGED_SET,
    PROPOSED,
    PROPOSED_IN,
    SCHEME_NAMES,
    SETS,
    SETTING,
    Times,
)
from perhop.studies.bouras.judges import Case, cell
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.reproduction import Counts, execute, plan
from perhop.studies.study import ClaimVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROUTERS = ["R1", "R2", "R3", "R4"]
CASE = Case()


def build(scheme: str, scenario: int = 1, contracts: str = JUDGED_SET) -> dict[str, Any]:
    return dict(scenarios.build(cell(scenario, scheme, contracts)))


def short(scheme: str) -> Run:
    """A tenth of scenario 1."""
    return perhop.run({**build(scheme), "duration": "20s", "warmup": "5s"}, runs=1).runs[0]


Values: TypeAlias = "Mapping[tuple[str, str, tuple[tuple[str, Any], ...]], Sequence[float]]"
NOISE = (-0.001, 0.0, 0.001)


def taken(values: Values, numbers: Sequence[int] = (1, 2, 3, 4)) -> list[tuple[int, Sample]]:
    """Samples by (metric, scheme, more factors), one value for each run, alike in these scenarios."""
    return [
        (seed, Sample({**cell(number, scheme), **dict(more)}, metric, "", value))
        for (metric, scheme, more), runs in values.items()
        for number in numbers
        for seed, value in enumerate(runs, start=1)
    ]


def evidence(values: Values) -> Evidence:
    """These samples, in scenarios 1 to 4 alike."""
    return Evidence(taken(values), [])


def about(value: float) -> list[float]:
    """Three runs around a value."""
    return [value + noise for noise in NOISE]


def rule(claim: str, name: str = "", case: Case = CASE) -> Callable[[Evidence], bool | None]:
    """What a claim, a reading of it or another rule for it says."""
    (judged,) = (found[claim] for study in BY_STUDY.values() for found in [study(case)] if claim in found)
    one = judged if callable(judged) else judged[name]
    return lambda found: one(found).holds


def verdict(claim: str, found: Evidence) -> ClaimVerdict:
    """A claim of the figures judged by all of its readings and rules."""
    (wanted,) = (one for study in bouras.STUDIES for one in study.claims if one.id == claim)
    return wanted.verdict(found)


# ---------------------------------------------------------------- The network


def test_sets_are_all_that_agree_with_the_text() -> None:
    assert len(ADMISSIBLE) == 16
    for name, rates in ADMISSIBLE.items():
        assert len(rates) == 10
        assert list(rates) == sorted(rates)
        assert 30 <= sum(rates) <= 40, name
        assert rates[-3:] == (max(rates),) * 3, "flows 8, 9 and 10 are the large ones"
        assert rates[-1] > 5 > rates[0], "an equal share of 50 Mbit/s"
        assert list(common.groups(rates).values()) == [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10]]
    assert {"1/2/7", "1/2/8", "2/4/6"} <= ADMISSIBLE.keys()
    assert {"1/3/5", "2/3/5", "3/4/6"} & ADMISSIBLE.keys() == set(), "5 is an equal share; 42 is above 40"
    assert sum(SETS["1/3/5"]) == 30


def test_theory_is_the_capacity_in_proportion() -> None:
    rates = SETS["1/3/5"]
    shares = common.proportional(rates, 50)
    assert (shares[0], shares[3], shares[9]) == pytest.approx((5 / 3, 5, 25 / 3))
    setting = replace(SETTING, round_trip=40, rates=rates)
    assert setting.bdp_packets(30) == 150
    assert setting.theoretical_windows(30).tolist() == pytest.approx([5] * 3 + [15] * 4 + [25] * 3)


def test_spread_and_shares_by_hand() -> None:
    rates = (1.0, 1.0, 2.0)
    assert common.spread(np.array([3.0, 3.0, 6.0]), rates) == 0
    # Over contract 1, 1 and 0.5: mean 5/6, standard deviation sqrt(1/18).
    assert common.spread_of_equals(rates) == pytest.approx((1 / 18) ** 0.5 * 6 / 5)
    assert common.group_shares(np.array([1.0, 2.0, 5.0]), rates) == {1.0: 0.75, 2.0: 1.25}


@pytest.mark.parametrize("scheme", list(SCHEME_NAMES))
def test_schemes_are_what_their_names_say(scheme: str) -> None:
    scenario = build(scheme)
    queue = scenario["links"]["R1-R2"]["queue"]
    profile = scenario["flows"][0]["profile"]
    control = scenario["paths"]["lsp"]["control"]
    assert profile["marker"] == scheme[: scheme.index("+")]
    assert queue["aqm"] == ("dwred" if "dwred" in scheme else "wred")
    green = {BASELINE_IN: "40/160/0.02", ALIKE: "40/160/0.1", PROPOSED_IN: "same-thresholds"}
    assert queue.get("green") == green.get(scheme)
    assert queue["out" if "dwred" in scheme else "yellow"] == "40/160/0.1"
    assert control["interval"] == "measured"
    assert control["window"] == ("in-flight" if scheme == EDGE else "sender")
    assert scenario["paths"]["lsp"]["via"] == ROUTERS
    assert len({str(link["queue"]) for link in scenario["links"].values()}) == 1


def test_scenarios_are_the_papers() -> None:
    rates = [build(BASELINE, n)["links"]["R1-R2"]["rate"] for n in (1, 2, 3, 4)]
    assert rates == ["30Mbps", "50Mbps", "50Mbps", "50Mbps"]
    third = build(PROPOSED, 3)
    late = [flow["name"] for flow in third["flows"] if flow["start"] == "50s..51s"]
    assert late == ["flow 4", "flow 7", "flow 10"], "one of each group"
    assert (third["warmup"], third["duration"]) == ("100s", "250s")
    fourth = build(PROPOSED, 4)
    ef, af = fourth["links"]["R2-R3"]["queue"]["queues"]
    assert (ef["cap"], af["rule"]) == ("10Mbps", fourth["links"]["R1-R2"]["queue"])
    udp = fourth["flows"][-1]["transport"]
    assert (udp["rate"], udp["on"], udp["off"]) == ("11Mbps", "50s", "50s")
    assert fourth["duration"] == "250s", "two bursts, with a pause after each"


@pytest.mark.parametrize("round_trip", common.ROUND_TRIPS)
def test_round_trip_of_the_path(round_trip: int) -> None:
    """One flow of one packet a round trip finds every queue empty."""
    scenario = replace(SETTING, round_trip=round_trip).scenario(1, PROPOSED)
    (flow, *_) = scenario["flows"]
    flow = {**flow, "transport": {**flow["transport"], "window": "1p"}}
    run = perhop.run({**scenario, "flows": [flow], "duration": "20s", "warmup": "5s"}, runs=1).runs[0]
    serialization = 8 * common.PACKET * (3 / 30e6 + 1 / 100e6)
    assert run.flows("mean_rtt_s")[0] == pytest.approx(round_trip / 1e3 + serialization, rel=0.01)


def test_marks_decide_nothing_where_colors_are_alike() -> None:
    """Then contracts leave flows 1 and 10 with the same; otherwise they do not."""
    alike, unlike = (common.throughputs(short(scheme)) for scheme in (ALIKE, BASELINE))
    assert alike[7:].mean() / alike[:3].mean() == pytest.approx(1, abs=0.5)
    assert unlike[7:].mean() / unlike[:3].mean() > 2


def test_dynamic_wred_hears_of_windows_whatever_marks() -> None:
    run = short("tsw+dwred")
    assert not np.isnan(common.windows(run, 5)).any()
    assert run.link("R1-R2")["dropped"]["early"].sum() > 0
    for later in ("R2-R3", "R3-R4"):
        assert run.link(later)["dropped"] == {}, "after the first link nothing queues"


def test_the_far_path_is_as_far_as_it_says() -> None:
    for queues in (ablation.ONE, ablation.TWO):
        links = ablation.two_paths(queues)["links"]
        for first, trip in (("R1-R2", 40), ("R4-R2", 160)):
            one_way = sum(float(links[n]["delay"].removesuffix("ms")) for n in (first, "R2-R3"))
            assert 2 * (one_way + 2 * 2.5) == trip


def test_intervals_and_thresholds_of_the_ablation() -> None:
    def control(interval: str) -> dict[str, Any]:
        found: dict[str, Any] = ablation.build(ablation.every(interval))["paths"]["lsp"]["control"]
        return found

    assert control("40ms")["interval"] == "40ms"
    assert (control("4")["interval"], control("4")["round-trips"]) == ("measured", 4)
    queue = ablation.build(ablation.static("160/640"))["links"]["R1-R2"]["queue"]
    assert queue["yellow"] == "160/640/0.1"


# ---------------------------------------------------------------- Samples


def test_computations_are_looks_over_packets() -> None:
    """A flow of one packet a round trip: one computation a packet; TSW2CM has one by nature."""
    scenario = build(PROPOSED)
    times = Times(steady=40, begin=20)
    one = {**scenario["flows"][0]["transport"], "window": "1p"}
    flows = [{**flow, "transport": one} for flow in scenario["flows"]]
    run = perhop.run({**scenario, "flows": flows, "duration": "40s", "warmup": "20s"}, runs=1).runs[0]

    def found(scheme: str) -> dict[str, float]:
        taken = common.basics(cell(1, scheme), run, SETTING, times)
        return {s.metric: s.value for s in taken if "flow" not in s.factors}

    assert found(PROPOSED)["computations"] == pytest.approx(1, rel=0.02)
    assert found(BASELINE)["computations"] == 1
    assert found(PROPOSED)["trip_ratio"] == pytest.approx(1, abs=0.01)
    assert (found(PROPOSED)["timeouts"], found(PROPOSED)["without_timeouts"]) == (0, 1)


def test_rates_by_burst() -> None:
    times = Times(burst=20, phases=2, settle=5)
    factors = cell(4, PROPOSED)
    run = perhop.run(SETTING.scenario(4, PROPOSED, times), runs=1).runs[0]
    rates = SETS[JUDGED_SET]
    found: dict[str, float] = {"on": 0, "off": 0}
    for sample in scenarios.burst_samples(factors, run, rates, times):
        if sample.metric == "burst_rate":
            found[str(sample.factors["bursts"])] += sample.value
    series = run.raw["series"]
    seconds, bps = np.asarray(series["time_s"]), np.asarray(series["throughput_bps"])[:, :10]
    for name, first in (("on", 20), ("off", 40)):
        inner = (seconds > first + 5) & (seconds <= first + 20)
        assert found[name] == pytest.approx(bps[inner].sum(axis=1).mean() / 1e6, rel=1e-9)
    assert found["on"] == pytest.approx(40, rel=0.05)
    assert found["on"] < found["off"]


def test_rates_in_time_are_means_of_a_contracts_flows_over_five_seconds() -> None:
    run = perhop.run({**build(PROPOSED, 4), "duration": "65s"}, runs=1).runs[0]
    taken = scenarios.rates_in_time(cell(4, PROPOSED), _padded(run))
    found = [sample for sample in taken if sample.metric == "rate_at"]
    assert {s.factors["time_s"] for s in found} == {55.0, 60.0, 65.0}
    times = np.asarray(run.raw["series"]["time_s"])
    rates = np.asarray(run.raw["series"]["throughput_bps"])
    (large,) = (s.value for s in found if (s.factors["contract"], s.factors["time_s"]) == (8.0, 60.0))
    assert large == pytest.approx(rates[(times > 55) & (times <= 60)][:, 7:10].mean() / 1e6)


def _padded(run: Run) -> Run:
    """No pause has come yet; the samples by burst need a second of it."""
    series = dict(run.raw["series"])
    series["time_s"] = np.append(np.asarray(series["time_s"]), 115.0)
    for name in ("throughput_bps", "cwnd_packets"):
        rows = np.asarray(series[name])
        series[name] = np.vstack([rows, rows[-1:]])
    return Run(run.seed, {**run.raw, "series": series})


def test_windows_in_time_are_those_of_one_flow_in_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "SHOWN", (55.0, 56.0))
    monkeypatch.setattr(scenarios, "COMPARED", (PROPOSED,))
    runs = perhop.run({**build(PROPOSED), "duration": "60s", "warmup": "50s"}, runs=2, seed=4).runs
    key = cell(1, PROPOSED)
    taken = [(run.seed, sample) for run in runs for sample in scenarios.windows_in_time(key, run)]
    rows = list(scenarios.one_run(Evidence(taken, [])))
    assert [(r.factors["time_s"], r.factors["contract"]) for r in rows] == [
        (at, contract) for at in (55.0, 56.0) for contract in (1.0, 2.0, 8.0)
    ]
    seen = np.asarray(runs[0].raw["series"]["cwnd_packets"])
    assert [row.mean for row in rows] == [seen[at - 1, flow] for at in (55, 56) for flow in (0, 4, 7)]


# ---------------------------------------------------------------- Judges


def windows_of(proposed: Sequence[float], baseline: Sequence[float], last: Sequence[float]) -> Evidence:
    """Windows of nine flows alike, and of the last one, in three runs."""
    flows = [(("flow", n),) for n in range(1, 11)]
    return evidence(
        {
            **{("window", PROPOSED, f): proposed for f in flows[:9]},
            ("window", PROPOSED, flows[9]): last,
            **{("window", BASELINE, f): baseline for f in flows},
            ("mean_window", PROPOSED, ()): proposed,
            ("mean_window", BASELINE, ()): baseline,
        }
    )


def test_all_flows_means_all() -> None:
    """One flow of ten with a smaller window is enough to deny it, one that is open to leave it open."""
    more, base = (11.0, 11.5, 11.2), (10.0, 10.4, 10.1)

    def judged(found: Evidence) -> ClaimVerdict:
        return verdict("larger-windows", found)

    assert judged(windows_of(more, base, more)).holds is True
    assert judged(windows_of(more, base, (9.0, 9.2, 9.1))).holds is False
    assert judged(windows_of(more, base, (9.5, 11.0, 10.3))).holds is None


def test_bands_are_in_proportion_within_a_quarter() -> None:
    def shares(small: float) -> Evidence:
        spread = (-0.01, 0.0, 0.01)
        return evidence(
            {
                ("window_share", scheme, (("contract", rate),)): [value + d for d in spread]
                for scheme in (PROPOSED, BASELINE)
                for rate, value in ((1.0, small), (2.0, 1.1), (8.0, 0.9))
            }
        )

    judged = rule("bands-in-proportion")
    assert judged(shares(1.2)) is True
    assert judged(shares(1.25)) is None
    assert judged(shares(1.6)) is False
    assert rule("bands-in-proportion", "within 10 %")(shares(1.2)) is False


def test_groups_are_compared_by_their_means_run_by_run() -> None:
    def rates(middle: Sequence[float]) -> Evidence:
        runs = {1: (1.0, 2.0, 3.0), 2: middle, 8: (8.0, 9.0, 10.0)}
        return evidence(
            {
                ("throughput", scheme, (("flow", n),)): runs[int(rate)]
                for scheme in (PROPOSED, BASELINE)
                for n, rate in enumerate(SETS[JUDGED_SET], start=1)
            }
        )

    judged = rule("differentiation-kept", "order of the contracts kept")
    assert judged(rates((2.0, 3.1, 4.0))) is True, "runs differ, the groups do not cross"
    assert judged(rates((0.5, 1.0, 2.0))) is False


@pytest.mark.parametrize(
    ("large", "holds"), [((0.90, 0.91, 0.92), True), ((1.05, 1.06, 1.07), False), ((0.95, 1.0, 1.05), None)]
)
def test_large_flows_fail_below_their_contract(large: Sequence[float], holds: bool | None) -> None:
    found = evidence(
        {
            ("over_contract", scheme, (("flow", n),)): large if scheme == BASELINE else (1.2, 1.2, 1.3)
            for scheme in (PROPOSED, BASELINE)
            for n in common.LARGE
        }
    )
    assert rule("large-fail-at-50")(found) is holds


def test_one_timeout_refutes_that_there_is_no_slow_start() -> None:
    def runs(*timeouts: float) -> bool | None:
        found = evidence(
            {
                ("without_timeouts", PROPOSED, ()): tuple(float(n == 0) for n in timeouts),
                ("timeouts", PROPOSED, ()): timeouts,
                ("timeouts", BASELINE, ()): (0.0,) * len(timeouts),
            }
        )
        return judges.no_slow_start(CASE)(found).holds

    assert runs(0.0, 0.0, 0.0, 0.0) is True
    assert runs(0.0, 0.0, 0.1, 0.0) is False
    assert runs(0.0) is None


def test_much_higher_use_is_judged_where_each_scenario_leaves_room() -> None:
    """The sentence names no scenario: what scenario 1 says alone was the verdict before."""

    def use(scheme: str, value: float, *numbers: int) -> list[tuple[int, Sample]]:
        return taken({("utilization", scheme, ()): about(value)}, numbers)

    found = Evidence(
        [
            *use(PROPOSED, 1.0, 1, 2, 3, 4),
            *use(BASELINE, 0.995, 1),
            *use(BASELINE, 0.93, 2, 3, 4),
        ],
        [],
    )
    by = verdict("much-higher-utilization", found)
    assert {name: one.holds for name, one in by.readings.items()} == {
        "in scenario 1": False,
        "on 50 Mbit/s": True,
        "under bursts": True,
    }
    assert by.state == "cannot tell (readings differ)"
    assert [one.holds for one in by.others.values()] == [True, False], "2 % and 10 % in scenarios 2 to 4"


def rates_by_spot(spread: Mapping[str, float]) -> list[tuple[int, Sample]]:
    """Rates in order and out of proportion in all scenarios, with a spread for each scheme."""
    flows = dict(enumerate(SETS[JUDGED_SET], start=1))
    found: list[tuple[int, Sample]] = []
    for scheme, value in spread.items():
        for prefix, more in (("", ()), ("burst_", (("bursts", "on"),)), ("burst_", (("bursts", "off"),))):
            rate = f"{prefix}rate" if prefix else "throughput"
            share = f"{prefix}share" if prefix else "rate_share"
            values: dict[tuple[str, str, tuple[tuple[str, Any], ...]], Sequence[float]] = {
                (f"{prefix}spread", scheme, more): about(value)
            }
            for flow, contract in flows.items():
                values[rate, scheme, (*more, ("flow", flow))] = about(contract)
                values[share, scheme, (*more, ("contract", contract))] = about(2.0 if contract == 1 else 0.9)
            found += taken(values, (4,) if prefix else (1, 2, 3))
    return found


def test_fairness_is_more_than_the_order_of_the_contracts() -> None:
    """The order alone was the verdict before; any marker keeps it."""
    found = Evidence(rates_by_spot({PROPOSED: 0.3, BASELINE: 0.2}), [])
    for claim in ("differentiation", "differentiation-kept", "fair-distribution"):
        by = verdict(claim, found)
        assert [one.holds for one in by.readings.values()] == [True, False, False], claim
        assert by.state == "cannot tell (readings differ)"
    assert verdict("in-proportion", found).holds is False


def test_proportion_is_asked_in_every_scenario() -> None:
    """Scenario 2 alone was asked before."""

    def shares(large: float, *numbers: int) -> list[tuple[int, Sample]]:
        return taken(
            {
                ("rate_share", scheme, (("contract", rate),)): about(value)
                for scheme in (PROPOSED, BASELINE)
                for rate, value in ((1.0, 1.0), (2.0, 1.0), (8.0, large))
            },
            numbers,
        )

    bursts = taken(
        {
            ("burst_share", scheme, (("contract", rate), ("bursts", name))): about(1.0)
            for scheme in (PROPOSED, BASELINE)
            for rate in (1.0, 2.0, 8.0)
            for name in judges.PHASES
        },
        (4,),
    )
    judged = rule("in-proportion")
    assert judged(Evidence([*shares(1.0, 1, 2, 3), *bursts], [])) is True
    assert judged(Evidence([*shares(1.0, 1, 2), *shares(0.7, 3), *bursts], [])) is False


def test_slow_starts_are_eliminated_in_every_scenario_or_not() -> None:
    """Timeouts in scenario 4 alone refute it; before, scenario 1 was looked at, and the baseline alone."""

    def timeouts(proposed_in_bursts: float, baseline: float) -> Evidence:
        steady = taken(
            {("timeouts", PROPOSED, ()): (0.0,) * 3, ("timeouts", BASELINE, ()): about(baseline)}, (1, 2, 3)
        )
        bursts = taken(
            {
                ("timeouts", PROPOSED, ()): (0.0, proposed_in_bursts, proposed_in_bursts),
                ("timeouts", BASELINE, ()): about(baseline),
            },
            (4,),
        )
        return Evidence([*steady, *bursts], [])

    judged = rule("eliminates-slow-starts")
    assert judged(timeouts(0.0, 0.1)) is True
    assert judged(timeouts(1.0, 0.1)) is False
    assert rule("eliminates-slow-starts", "without scenario 4")(timeouts(1.0, 0.1)) is True


def test_windows_are_on_different_levels_in_every_scenario() -> None:
    """The rule once looked at the congested path only."""

    def windows(middle: float, *numbers: int) -> list[tuple[int, Sample]]:
        level = {1.0: 10.0, 2.0: middle, 8.0: 80.0}
        return taken(
            {
                ("window", PROPOSED, (("flow", n),)): about(level[rate])
                for n, rate in enumerate(SETS[JUDGED_SET], start=1)
            },
            numbers,
        )

    judged = rule("different-levels")
    assert judged(Evidence(windows(20.0, 1, 2, 3, 4), [])) is True
    assert judged(Evidence([*windows(20.0, 1, 2, 4), *windows(9.0, 3)], [])) is False


def in_bursts(proposed: Mapping[str, float], baseline: Mapping[str, float]) -> Evidence:
    """These numbers of scenario 4, with bursts on and off alike."""
    return evidence(
        {
            (metric, scheme, (("bursts", name),)): about(value)
            for scheme, numbers in ((PROPOSED, proposed), (BASELINE, baseline))
            for metric, value in numbers.items()
            for name in judges.PHASES
        }
    )


def test_advantages_are_a_smaller_spread_and_more_use() -> None:
    """The spread alone was asked before."""
    both = in_bursts({"burst_spread": 0.2, "burst_use": 0.99}, {"burst_spread": 0.4, "burst_use": 0.95})
    one = in_bursts({"burst_spread": 0.2, "burst_use": 0.95}, {"burst_spread": 0.4, "burst_use": 0.99})
    assert rule("advantages-through-bursts")(both) is True
    assert rule("advantages-through-bursts")(one) is False


def test_flows_that_cannot_keep_their_contracts_are_some_or_most() -> None:
    """Most alone was asked before: seven of ten refuted it."""

    def found(met: float) -> Evidence:
        return evidence(
            {
                ("burst_contracts_met", scheme, (("bursts", name),)): (met,) * 3
                for scheme in (PROPOSED, BASELINE)
                for name in judges.PHASES
            }
        )

    assert verdict("baseline-cannot", found(10.0)).holds is False
    assert verdict("baseline-cannot", found(7.0)).state == "cannot tell (readings differ)"
    assert verdict("baseline-cannot", found(4.0)).holds is True


def test_use_of_what_is_free_counts_the_seconds_after_a_change() -> None:
    """These seconds were once left out, though the sentence is about them."""
    times = Times(burst=20, phases=2, settle=10)
    at = np.arange(1.0, 61.0)
    mbps = np.where(at <= 20, 5.0, np.where(at <= 40, 4.0, np.where(at <= 50, 4.0, 5.0)))
    raw = {"series": {"time_s": at, "throughput_bps": np.repeat(1e6 * mbps[:, None], 10, axis=1)}}
    found = {
        (sample.metric, sample.factors["bursts"]): sample.value
        for sample in scenarios.burst_samples(cell(4, PROPOSED), Run(1, raw), SETS[JUDGED_SET], times)
        if sample.metric in ("burst_use", "settled_use")
    }
    assert found["settled_use", "off"] == pytest.approx(1)
    assert found["burst_use", "off"] == pytest.approx(0.9), "half of the phase with 40 of 50 Mbit/s"
    assert found["burst_use", "on"] == pytest.approx(1)


def test_poor_performance_leaves_resources_and_flows_without_their_part() -> None:
    def found(use: float, met: float) -> Evidence:
        return in_bursts(
            {"burst_use": 1.0, "burst_contracts_met": 10.0}, {"burst_use": use, "burst_contracts_met": met}
        )

    judged = rule("performs-poorly", "by itself")
    assert judged(found(0.95, 7.0)) is True
    assert judged(found(0.95, 10.0)) is False
    assert judged(found(0.99, 7.0)) is False


def test_windows_move_less_where_conditions_change_or_everywhere() -> None:
    def moves(baseline: float, *numbers: int) -> list[tuple[int, Sample]]:
        values: Values = {
            ("window_variation", PROPOSED, ()): about(0.3),
            ("window_variation", BASELINE, ()): about(baseline),
        }
        return taken(values, numbers)

    assert verdict("smooth", Evidence(moves(0.4, 1, 2, 3, 4), [])).holds is True
    some = verdict("smooth", Evidence([*moves(0.2, 1), *moves(0.4, 2, 3, 4)], []))
    assert some.state == "cannot tell (readings differ)"


def parts(values: Mapping[tuple[str, str], Mapping[int, float]]) -> Evidence:
    """Numbers of the ablation by metric and scheme, by scenario."""
    return Evidence(
        [
            (seed, Sample(ablation.cell(number, scheme), metric, "", value + noise))
            for (metric, scheme), numbers in values.items()
            for number, value in numbers.items()
            for seed, noise in enumerate(NOISE)
        ],
        [],
    )


def test_fixed_thresholds_are_held_against_dynamic_ones_with_the_same_marker() -> None:
    """Against the proposal as a whole, the marker's fairness would count for the thresholds."""
    found = parts(
        {
            ("utilization", BASELINE): {1: 0.99, 2: 0.94},
            ("utilization", "twam+wred"): {1: 0.99, 2: 0.98},
            ("utilization", "tsw+dwred"): {1: 1.0, 2: 1.0},
            ("utilization", PROPOSED): {1: 1.0, 2: 1.0},
            ("spread", BASELINE): {1: 0.2, 2: 0.45},
            ("spread", "twam+wred"): {1: 0.2, 2: 0.25},
            ("spread", "tsw+dwred"): {1: 0.25, 2: 0.5},
            ("spread", PROPOSED): {1: 0.25, 2: 0.3},
        }
    )
    by = verdict("fixed-parameters", found)
    assert [one.holds for one in by.readings.values()] == [False, True]


def test_a_few_round_trips_are_asked_on_both_links() -> None:
    """On 50 Mbit/s alone it was asked before, though its sentence is the marker's."""

    def found(on_30: float) -> Evidence:
        mine = [
            (seed, Sample(ablation.every(trips, number), "spread", "", value + noise))
            for trips in ablation.FEW
            for number, value in ((1, on_30), (2, 0.2))
            for seed, noise in enumerate(NOISE)
        ]
        theirs = [
            (seed, Sample(ablation.cell(number, "tsw+dwred"), "spread", "", 0.4 + noise))
            for number in (1, 2)
            for seed, noise in enumerate(NOISE)
        ]
        return Evidence([*mine, *theirs], [])

    assert verdict("few-round-trips", found(0.2)).holds is True
    by = verdict("few-round-trips", found(0.5))
    assert (by.holds, by.others["on 50 Mbit/s alone"].holds) == (False, True)


def test_overhead_is_what_the_benchmark_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval's instructions come upon a packet's: a hundredth of an interval of 3000 is 30."""
    found = {("meter", "tsw", "per_packet"): 100.0, ("meter", "twam", "per_packet"): 40.0}
    found |= {("meter", "twam", "per_interval"): 3000.0}

    def instructions(kind: str, name: str, what: str = "per_packet") -> float:
        return found[kind, name, what]

    monkeypatch.setattr(claims, "instructions", instructions)
    counted = evidence({("computations", PROPOSED, ()): (0.1,) * 3})
    alone, whole, at_all = (
        claims.marks_for_less(CASE, part, whole=whole)(counted)
        for part, whole in ((judges.LESS, False), (judges.LESS, True), (1.0, True))
    )
    assert (alone.holds, whole.holds, at_all.holds) == (True, False, True)
    assert whole.evidence.startswith("Instructions for a packet: 70.0 ")
    stated = verdict("less-overhead", counted)
    assert stated.readings.keys() == {"marking a packet", "with windows and probabilities"}


def test_both_mechanisms_are_held_against_their_baselines() -> None:
    by = verdict("both-less-overhead", evidence({("computations", PROPOSED, ()): (0.01,) * 3}))
    assert by.holds is False
    assert by.others["less at all"].holds is True


def test_claims_that_chose_the_setting_do_not_count() -> None:
    chose = {claim.id: claim.chose for study in bouras.STUDIES for claim in study.claims if claim.chose}
    assert chose == {
        "large-fail-at-50": "the set of contracts",
        "large-fail": "the set of contracts",
        "low-thresholds": "the round trip",
        "round-trip-of-the-queue": "the round trip",
        "low-thresholds-at-long-trips": "the round trip",
    }


# ---------------------------------------------------------------- The map


def test_the_map_varies_what_it_says() -> None:
    scenarios_of = {
        place.name: [study.scenario(one) for study in place.studies for one in study.cells]
        for place in assumptions.places()
    }
    assert len(scenarios_of) == 16 + 3 * 8 + sum(map(len, assumptions.ALONE.values()))

    def flow(name: str) -> dict[str, Any]:
        found: dict[str, Any] = scenarios_of[name][0]["flows"][0]
        return found

    assert flow("packet: 500 bytes")["transport"]["packet"] == "500B"
    assert flow("sender: ns-2 of 2004")["transport"]["min-rto"] == "1s"
    assert flow("40 ms: 2/4/6")["profile"]["rate"] == "2Mbps"
    delays = {one["links"]["R1-R2"]["delay"] for one in scenarios_of["40 ms: 2/4/6"]}
    assert delays == {"5000us"}
    windows = {one["flows"][0]["profile"].get("window") for one in scenarios_of["TSW2CM's average: 5 s"]}
    assert windows == {None, "5s"}
    controls = [one["paths"]["lsp"]["control"] for one in scenarios_of["equation 3: all windows"]]
    assert all(control["reading"] == "all-windows" for control in controls)
    assert scenarios_of["buffer: 1 product"][0]["links"]["R1-R2"]["queue"]["limit"] == "750p"
    greens = {
        queue.get("green")
        for one in scenarios_of["both IN 0.02: 200 ms, 1/2/8"]
        for queue in [one["links"]["R1-R2"]["queue"]]
    }
    assert greens == {"same-thresholds", "40/160/0.02"}


def test_every_claim_is_judged_at_a_place_of_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    # Shorter still: two runs of one place alone.
    tiny = Times(steady=30, begin=20, late=2, window=(10, 14), burst=8, phases=2, settle=2)
    monkeypatch.setattr(assumptions, "SHORT", tiny)
    case = Case(contracts="2/4/6", round_trip=40)
    setting = replace(SETTING, round_trip=40, rates=SETS["2/4/6"])
    for study in [*assumptions.figures_at(case, setting), assumptions.parts_at(setting)]:
        found = [
            (run.seed, sample)
            for factors in study.cells
            for run in perhop.run(dict(study.scenario(factors)), runs=2).runs
            for sample in study.samples(factors, run)
        ]
        states = [claim.verdict(Evidence(found, [])).holds for claim in study.claims]
        assert set(states) <= {True, False, None}
    stated = {claim.id for item in BY_STUDY for claim in STUDIES[f"bouras-{item}"].claims}
    assert stated == {claim for study in BY_STUDY.values() for claim in study(CASE)}


@pytest.mark.parametrize("item", ["fig2"])
def test_one_run_tells_nothing(item: str) -> None:
    (outcome,) = execute(
        plan([STUDIES[f"bouras-{item}"]], runs=1, seed=1), jobs=2, store=None, counts=Counts()
    )
    assert {verdict.holds for verdict in outcome.verdicts} == {None}


def test_printed_items_use_the_judged_setting_only() -> None:
    for item in ("fig2", "fig3", "fig4", "fig5", "general"):
        study = STUDIES[f"bouras-{item}"]
        assert not study.extra
        assert {(c["set"], c["round_trip"]) for c in study.cells} == {("1/2/8", 200)}
        assert {c["scheme"] for c in study.cells} == {PROPOSED, BASELINE}
    assert all(STUDIES[f"bouras-{item}"].extra for item in ("settings", "ablation", "map"))

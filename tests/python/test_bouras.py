"""The studies of Bouras and Sevasti's paper, and what they measure by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perhop
from perhop.reproduction import Counts, execute, plan
from perhop.runs import Run
from perhop.studies import STUDIES
from perhop.studies.bouras import ablation, common, scenarios
from perhop.studies.bouras.common import ALIKE, BASELINE, EDGE, PROPOSED, SCHEME_NAMES, SETS
from perhop.study import Evidence, Sample

ROUTERS = ["R1", "R2", "R3", "R4"]


def build(scheme: str, scenario: int = 1, contracts: str = "A") -> dict[str, Any]:
    return dict(scenarios.build(scenarios.cell(scenario, scheme, contracts)))


def short(scheme: str, contracts: str = "A") -> Run:
    """A tenth of scenario 1."""
    return perhop.run({**build(scheme, 1, contracts), "duration": "20s", "warmup": "5s"}).runs[0]


def test_contracts_agree_with_the_text() -> None:
    assert {name: sum(rates) for name, rates in SETS.items()} == {"A": 30, "C": 38}
    for name, rates in SETS.items():
        assert len(rates) == 10
        assert list(rates) == sorted(rates)
        assert rates[-3:] == (max(rates),) * 3, "flows 8, 9 and 10 are the large ones"
        late = [rates[number - 1] for number in scenarios.LATE[name]]
        assert sorted(set(rates)) == late, "one of each group begins late"


def test_theory_is_the_capacity_in_proportion() -> None:
    shares = common.proportional(SETS["A"], 50)
    assert shares[0] == pytest.approx(5 / 3)
    assert shares[3] == pytest.approx(5)
    assert shares[9] == pytest.approx(25 / 3)
    assert common.bdp_packets(30) == 150
    assert common.theoretical_windows(SETS["A"], 30).tolist() == pytest.approx([5] * 3 + [15] * 4 + [25] * 3)


@pytest.mark.parametrize("scheme", list(SCHEME_NAMES))
def test_schemes_are_what_their_names_say(scheme: str) -> None:
    scenario = build(scheme)
    queue = scenario["links"]["R1-R2"]["queue"]
    profile = scenario["flows"][0]["profile"]
    control = scenario["paths"]["lsp"]["control"]
    assert profile["marker"] == scheme[: scheme.index("+")]
    assert queue["aqm"] == ("dwred" if "dwred" in scheme else "wred")
    assert queue["weight"] == 0.002
    assert ("green" in queue) == (scheme == ALIKE)
    assert control["window"] == ("in-flight" if scheme == EDGE else "sender")
    assert scenario["paths"]["lsp"]["via"] == ROUTERS
    assert len({str(link["queue"]) for link in scenario["links"].values()}) == 1


def test_scenarios_are_the_papers() -> None:
    rates = [build(BASELINE, n)["links"]["R1-R2"]["rate"] for n in (1, 2, 3, 4)]
    assert rates == ["30Mbps", "50Mbps", "50Mbps", "50Mbps"]
    late = [flow["name"] for flow in build(PROPOSED, 3)["flows"] if flow["start"] == "200s..201s"]
    assert late == ["flow 3", "flow 7", "flow 10"]
    fourth = build(PROPOSED, 4)
    ef, af = fourth["links"]["R2-R3"]["queue"]["queues"]
    assert (ef["cap"], af["rule"]) == ("10Mbps", fourth["links"]["R1-R2"]["queue"])
    assert fourth["flows"][-1]["transport"]["rate"] == "11Mbps"


def test_round_trip_of_the_path() -> None:
    """One flow of one packet a round trip finds every queue empty."""
    scenario = build(PROPOSED)
    (flow, *_) = scenario["flows"]
    flow = {**flow, "transport": {**flow["transport"], "window": "1p"}}
    run = perhop.run({**scenario, "flows": [flow], "duration": "20s", "warmup": "5s"}).runs[0]
    serialization = 8 * common.PACKET * (3 / 30e6 + 1 / 100e6)
    assert run.flows("mean_rtt_s")[0] == pytest.approx(common.RTT_MS / 1e3 + serialization, rel=0.01)


def test_marks_decide_nothing_where_colors_are_alike() -> None:
    """Then contracts leave flows 1 and 10 with the same; otherwise they do not."""
    alike, told = (common.throughputs(short(scheme)) for scheme in (ALIKE, BASELINE))
    assert alike[7:].mean() / alike[:3].mean() == pytest.approx(1, abs=0.3)
    assert told[7:].mean() / told[:3].mean() > 2


def test_dynamic_wred_hears_of_windows_whatever_marks() -> None:
    run = short("tsw+dwred")
    assert not np.isnan(common.windows(run, 5)).any()
    assert run.link("R1-R2")["dropped"]["early"].sum() > 0
    for later in ("R2-R3", "R3-R4"):
        assert run.link(later)["dropped"] == {}, "after the first link nothing queues"


def test_groups_in_order() -> None:
    key = scenarios.cell(1, PROPOSED, "A")

    def evidence(values: list[float]) -> Evidence:
        samples = [Sample({**key, "flow": n}, "window", "", v) for n, v in enumerate(values, start=1)]
        return Evidence([(1, sample) for sample in samples], [])

    rising = [1.0, 1.2, 1.1, 3.0, 3.1, 2.9, 3.2, 5.0, 5.5, 5.1]
    assert common.in_order(evidence(rising), "window", key, SETS["A"])
    assert common.group_text(evidence(rising), "window", key, SETS["A"], 1) == "1: 1.1, 3: 3.0, 5: 5.2"
    assert not common.in_order(evidence([1.0, 3.0, *rising[2:]]), "window", key, SETS["A"])


def test_rates_by_burst() -> None:
    run = perhop.run({**build(PROPOSED, 4), "duration": "320s"}).runs[0]
    factors = scenarios.cell(4, PROPOSED, "A")
    found = {
        s.factors["bursts"]: [
            t.value
            for t in scenarios.burst_samples(factors, run, np.asarray(SETS["A"]))
            if t.metric == "throughput" and t.factors["bursts"] == s.factors["bursts"]
        ]
        for s in scenarios.burst_samples(factors, run, np.asarray(SETS["A"]))
    }
    assert sum(found["off"]) == pytest.approx(50, rel=0.03)
    assert sum(found["on"]) == pytest.approx(40, rel=0.03)


def test_rates_in_time_are_means_of_a_contracts_flows_over_ten_seconds() -> None:
    run = perhop.run({**build(PROPOSED, 4), "duration": "130s"}).runs[0]
    found = list(scenarios.rates_in_time({}, run, SETS["A"]))
    assert {s.factors["time_s"] for s in found} == {110.0, 120.0, 130.0}
    times = np.asarray(run.raw["series"]["time_s"])
    rates = np.asarray(run.raw["series"]["throughput_bps"])
    (large,) = (s.value for s in found if s.factors == {"contract": 5.0, "time_s": 120.0})
    assert large == pytest.approx(rates[(times > 110) & (times <= 120)][:, 7:10].mean() / 1e6)


def test_windows_in_time_are_those_of_one_flow_in_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "SINCE", {1: 5.0})
    monkeypatch.setattr(scenarios, "SHOWN", (12.0, 13.0))
    monkeypatch.setattr(scenarios, "COMPARED", (PROPOSED,))
    monkeypatch.setattr(scenarios, "SETS", {"A": SETS["A"]})
    runs = perhop.run({**build(PROPOSED), "duration": "20s", "warmup": "5s"}, runs=2, seed=4).runs
    key = scenarios.cell(1, PROPOSED, "A")
    taken = [(run.seed, sample) for run in runs for sample in scenarios.windows_in_time(key, run)]
    rows = list(scenarios.one_run(Evidence(taken, [])))
    assert [(r.factors["time_s"], r.factors["contract"]) for r in rows] == [
        (at, contract) for at in (12.0, 13.0) for contract in (1.0, 3.0, 5.0)
    ]
    seen = np.asarray(runs[0].raw["series"]["cwnd_packets"])
    assert [row.mean for row in rows] == [seen[at - 1, flow] for at in (12, 13) for flow in (0, 3, 7)]


def test_the_far_path_is_as_far_as_it_says() -> None:
    for queues in (ablation.ONE, ablation.TWO):
        links = ablation.two_paths(queues)["links"]
        for first, trip in (("R1-R2", 40), ("R4-R2", 160)):
            one_way = sum(float(links[n]["delay"].removesuffix("ms")) for n in (first, "R2-R3"))
            assert 2 * (one_way + 2 * 2.5) == trip


JUDGED_FROM_ONE_RUN: dict[str, set[str]] = {
    "fig2": {"bands-in-order", "no-slow-start"},
    "fig3": {"contracts-met-at-50"},
    "fig4": {"order-kept"},
    "fig5": {"order-through-bursts", "contracts-kept", "baseline-cannot"},
    "ablation": set(),
}
"""The claims that are read by means or counts; all others are read by intervals."""


@pytest.mark.parametrize(("item", "judged"), JUDGED_FROM_ONE_RUN.items(), ids=str)
def test_one_run_judges_nothing_by_its_interval(item: str, judged: set[str]) -> None:
    (outcome,) = execute(
        plan([STUDIES[f"bouras-{item}"]], runs=1, seed=1), jobs=2, store=None, counts=Counts()
    )
    assert {verdict.claim.id for verdict in outcome.verdicts if verdict.holds is not None} == judged

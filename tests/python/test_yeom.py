"""The studies of Yeom and Reddy's paper: published data, scenarios, runs from end to end."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import perhop
from perhop.measures import rmse
from perhop.reproduction import Counts, execute, plan, to_json
from perhop.studies import STUDIES
from perhop.studies.yeom import rtt, sensitivity, setting, table1, udp
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    COMPARED,
    NO_OUT,
    PROFILES,
    RIO,
    SETTING,
    THREE_DROP,
    TWO_WINDOWS,
    cell,
)
from perhop.study import Evidence, Sample

if TYPE_CHECKING:
    from perhop.study import Study


def printed(study: Study) -> Evidence:
    """The printed numbers in the place of the measured ones."""
    return Evidence([(1, Sample(p.factors, p.metric, "", p.value)) for p in study.published], study.published)


def test_targets() -> None:
    assert list(table1.TARGETS[60].values()) == pytest.approx([2.48, 1.48, 0.98, 0.58, 0.48])
    assert list(table1.TARGETS[90].values()) == pytest.approx([2.08, 1.08, 0.58, 0.18, 0.08])
    assert list(table1.TARGETS[120].values()) == pytest.approx([1.67, 0.83, 0.42, 0.08, 0.0], abs=0.005)
    assert list(rtt.TARGETS[75].values()) == pytest.approx([0.17, 0.67, 1.17], abs=0.005)
    assert list(rtt.TARGETS[25].values()) == pytest.approx([1.5, 2.0, 2.5])
    assert round(udp.FIG10_TARGET, 2) == 1.09


def test_table1_is_printed_in_full_and_its_error_is_a_root() -> None:
    evidence = printed(table1.TABLE1)
    for percent, scheme in itertools.product(table1.CAPACITY, ALL_SCHEMES):
        rates = [evidence.mean("throughput", table1.entry(scheme, percent, r)) for r in PROFILES]
        wanted = list(table1.TARGETS[percent].values())
        assert rmse(rates, wanted) == pytest.approx(evidence.mean("rmse", cell(scheme, percent)), abs=0.011)
        used = 2 * sum(rates) / table1.CAPACITY[percent]
        assert used == pytest.approx(evidence.mean("utilization", cell(scheme, percent)), abs=0.015)
        assert table1.gap(evidence, scheme) == 0


def test_tables_2_and_3_are_printed_in_full() -> None:
    evidence = printed(rtt.TABLE3)
    for percent, scheme in itertools.product(rtt.CAPACITY, COMPARED):
        assert all(rtt.means(evidence, scheme, percent, profile) for profile in rtt.PROFILES)
        for metric in ("rmse", "utilization", "reservation_success"):
            assert evidence.mean(metric, {"scheme": scheme, "subscription_percent": percent}) > 0
    assert {p.metric for p in rtt.TABLE2.published} == {"throughput"}


RATIOS = [("fairness", p) for p in rtt.PROFILES] + [("differentiation", p) for p in rtt.PROFILES[1:]]


def quotients(
    evidence: Evidence, metric: str, scheme: str, percent: int, profile: float
) -> list[tuple[float, float]]:
    """What a measure of Table 3 divides, by either reading, as Table 2 prints it: numerator, denominator."""
    classes = {p: rtt.means(evidence, scheme, percent, p) for p in rtt.PROFILES}
    own = classes[profile]
    if metric == "fairness":
        return [(max(own), min(own)), (own[0], own[-1])]
    lower = classes[rtt.PROFILES[rtt.PROFILES.index(profile) - 1]]
    return [(min(own), max(lower)), (own[-1], lower[0])]


def test_the_notes_name_every_ratio_of_table_3_that_table_2_does_not_give() -> None:
    evidence, half = printed(rtt.TABLE3), 0.005
    notes = " ".join(note.text for note in rtt.TABLE3.notes)
    named = set()
    for percent, scheme, (metric, profile) in itertools.product(rtt.CAPACITY, COMPARED, RATIOS):
        value = evidence.mean(metric, {**cell(scheme, percent), "profile_mbps": profile})
        found = quotients(evidence, metric, scheme, percent, profile)
        spans = [((a - half) / (b + half) - half, (a + half) / (b - half) + half) for a, b in found]
        if not any(low <= value <= high for low, high in spans):
            first, second = (f"{a / b:.2f}" for a, b in found)
            others = f"{first} in both" if first == second else f"{first} and {second}"
            named.add(f"{value:.2f} against {others}")
    assert len(named) == 6
    assert [text for text in sorted(named) if text not in notes] == []


def test_the_note_on_two_windows_says_what_is_measured() -> None:
    note = next(note.text for note in table1.TABLE1.notes if note.text.startswith("Two-windows is the least"))
    found = {}
    for scheme, percent in itertools.product((RIO, TWO_WINDOWS), table1.CAPACITY):
        runs = perhop.run(table1.build(cell(scheme, percent)), runs=20).runs
        columns = ("throughput_bps", "timeouts", "dropped")
        found[scheme, percent] = {
            c: np.concatenate([run.of_group("profile-2", c) for run in runs]) for c in columns
        }
    gains = [
        (found[TWO_WINDOWS, p]["throughput_bps"].mean() - found[RIO, p]["throughput_bps"].mean()) / 1e6
        for p in (60, 90, 120)
    ]
    assert "gain {:.2f}, {:.2f} and {:.2f}.".format(*gains).replace("-", "−") in note
    lost, timeouts, lost_by_rio, timeouts_by_rio = (
        table["dropped"].sum(axis=1).mean() if c == "dropped" else table[c].mean()
        for table in (found[TWO_WINDOWS, 60], found[RIO, 60])
        for c in ("dropped", "timeouts")
    )
    assert f"loses {lost:.0f} packets and has {timeouts:.0f} timeouts" in note
    assert f"against {lost_by_rio:.0f} and {timeouts_by_rio:.0f} under RIO (20 runs)" in note
    assert f"lose {found[TWO_WINDOWS, 120]['dropped'].sum():.0f} packet in all 20 runs" in note


def test_an_in_packet_dropped_where_reservations_fit_refutes() -> None:
    def judged(dropped: dict[int, float]) -> bool | None:
        samples = [(1, Sample(cell(RIO, p), "in_drops", "packets", n)) for p, n in dropped.items()]
        return table1.in_drops(Evidence(samples, [])).holds

    assert judged({60: 0, 90: 0, 120: 4})
    assert judged({60: 0, 90: 1, 120: 4}) is False
    assert judged({60: 1, 90: 0, 120: 0}) is False


def test_a_marker_and_a_queue_for_each_scheme() -> None:
    for scheme in ALL_SCHEMES:
        reserved, best_effort = SETTING.tcp(scheme, "a", 1.0), SETTING.tcp(scheme, "b", 0.0)
        assert "profile" not in best_effort
        assert ("color" in best_effort) == (scheme == THREE_DROP)
        assert ("out-feedback" in reserved) == (scheme == NO_OUT)
        assert "out-feedback" not in best_effort
        assert reserved["access"]["delay"] == "1ms"
    assert SETTING.queue(RIO)["total"] == SETTING.queue(THREE_DROP)["out-out"] == "20/40/0.5"


def test_one_change_at_a_time() -> None:
    base = sensitivity.CHANGES[sensitivity.BASE]
    names = type(base).__dataclass_fields__
    for name, change in sensitivity.CHANGES.items():
        changed = [field for field in names if getattr(change, field) != getattr(base, field)]
        assert len(changed) == (name != sensitivity.BASE), name


def test_settings_are_compared_by_every_printed_rate() -> None:
    assert setting.CANDIDATES[setting.IN_USE] == SETTING
    assert len(setting.CANDIDATES) == 8
    assert {name: len(item.values) for name, item in setting.ITEMS.items()} == {
        "table1": 75,
        "table2-75": 60,
        "table2-25": 60,
        "fig10": 4,
    }
    evidence = printed(setting.SETTINGS)
    assert all(setting.gap(evidence, name) == 0 for name in setting.CANDIDATES)


@pytest.mark.parametrize(("packet", "window", "count"), [(1000, 20, 4), (1000, 23, 2), (1500, 20, 0)])
def test_printed_rates_that_a_receiver_window_does_not_allow(packet: int, window: int, count: int) -> None:
    assert setting.out_of_reach(replace(SETTING, packet=packet, receiver_window=window)) == count


JUDGED_FROM_ONE_RUN = {
    "fig3": {"no-in-drops"},
    "table1": {
        "no-out-nearly-reserved",
        "inverse-better-than-rio",
        "no-out-better-than-rio",
        "two-windows-better-than-rio",
        "three-drop-better-than-rio",
        "two-windows-loses-utilization",
    },
    "fig9": {
        "udp-gets-what-it-sends",
        "udp-contained",
        "inverse-and-three-drop-protect",
        "better-differentiation",
    },
    "fig10": {"order", "three-drop-much-better"},
    "table2": set(),
    "table3": {
        "inverse-differentiates-best",
        "three-drop-and-inverse-succeed",
        "three-drop-least-error-at-75",
        "two-windows-least-error-at-25",
        "three-drop-fairer",
        "two-windows-loses-utilization",
    },
    "fig11": {"experiments-alike", "three-shares"},
    "fig12": set(),
    "sensitivity": {
        "four-schemes-within",
        "two-windows-never-within",
        "marker-moves-rio",
        "packets-move-inverse",
    },
}
"""The claims that are read by means or counts; all others are read by intervals."""


@pytest.mark.parametrize(("item", "judged"), JUDGED_FROM_ONE_RUN.items(), ids=str)
def test_one_run_judges_nothing_by_its_interval(item: str, judged: set[str]) -> None:
    (outcome,) = execute(plan([STUDIES[f"yeom-{item}"]], runs=1, seed=1), jobs=2, store=None, counts=Counts())
    assert {verdict.claim.id for verdict in outcome.verdicts if verdict.holds is not None} == judged


def test_studies_of_one_item_share_their_runs() -> None:
    pairs = [("fig3", "table1"), ("table2", "table3"), ("table1", "sensitivity")]
    pairs += [("table1", "setting"), ("table2", "setting")]
    for one, other in pairs:
        cells = [
            {c.scenario for c in plan([STUDIES[f"yeom-{i}"]], runs=1, seed=1).cells[0]} for i in (one, other)
        ]
        assert cells[0] <= cells[1]


@pytest.mark.parametrize("study", ["yeom-fig3", "yeom-fig10", "yeom-table3", "yeom-fig12"])
def test_a_study_runs_from_end_to_end(study: str) -> None:
    first, again = (
        execute(plan([STUDIES[study]], runs=2, seed=7), jobs=jobs, store=None, counts=Counts())
        for jobs in (2, 1)
    )
    assert to_json(first) == to_json(again)
    (outcome,) = first
    assert len(outcome.verdicts) == len(STUDIES[study].claims)
    assert all(verdict.judgement.evidence for verdict in outcome.verdicts)
    rows = json.loads(to_json(first))["studies"][0]["rows"]
    assert all(("range" in row) == (STUDIES[study].single_run and row["ci95"] is not None) for row in rows)

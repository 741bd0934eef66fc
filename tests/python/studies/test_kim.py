"""The studies of Kim, Park and Bahk's paper: published data, scenarios, verdicts, runs from end to end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import perhop
from perhop import _engine
from perhop.measures import rmse
from perhop.studies.kim import best_rio, fig2, fig3, senders, table1, variants
from perhop.studies.kim.common import KEEPS, window
from perhop.study import Evidence, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.study import Factors, Study


PACKETS = {"576B": 576, "1kB": 1000}
"""Packet sizes as the canonical form writes them."""


def spread(factors: Factors, metric: str, value: float) -> Iterator[tuple[int, Sample]]:
    """Two runs around a value, nearly alike."""
    for seed, shift in ((1, 1e-4), (2, -1e-4)):
        yield seed, Sample(factors, metric, "", value + shift)


def printed(study: Study) -> list[tuple[int, Sample]]:
    """The printed numbers in the place of the measured ones."""
    return [entry for p in study.published for entry in spread(p.factors, p.metric, p.value)]


def transports(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Every flow's transport in canonical form, with all keys."""
    canonical = json.loads(_engine.scenario_from_json(json.dumps(scenario), "study"))
    return [flow["transport"] for flow in canonical["flows"]]


def test_sums_and_errors_of_the_printed_rows() -> None:
    derived = {
        (p.metric, str(p.factors["out"])): p.value
        for p in table1.TABLE1.published
        if "profile_mbps" not in p.factors
    }
    sums = [derived["total_throughput", out] for out in ("none", *table1.OUT_SETS)]
    errors = [derived["rmse", out] for out in ("none", *table1.OUT_SETS)]
    assert sums == pytest.approx([20.864, 19.824, 19.892, 19.864, 19.772, 19.648], abs=1e-9)
    assert errors == pytest.approx([0.153, 0.194, 0.174, 0.135, 0.123, 0.118], abs=5e-4)
    assert all(p.derived == ("profile_mbps" not in p.factors) for p in table1.TABLE1.published)


def test_table1_says_which_row_cannot_be_right() -> None:
    impossible = [note.text for note in table1.TABLE1.notes if note.impossible]
    assert len(impossible) == 1
    assert "20.864" in impossible[0]
    assert "104 %" in impossible[0]
    # What the note says about the other rows, and about the likeliest misprint.
    sums = [p.value for p in table1.TABLE1.published if p.metric == "total_throughput"]
    assert all(0.98 <= total / 20 <= 0.995 for total in sums[1:])
    assert pytest.approx(0.993, abs=5e-4) == (20.864 - 20 * (0.253 - 0.203)) / 20


def test_fair_shares() -> None:
    shares = list(table1.FAIR.values())
    assert shares == pytest.approx([2.12, 1.12, 0.62, 0.32, 0.22, 0.12])
    assert rmse(shares, shares) == 0
    evidence = Evidence([], table1.TABLE1.published)
    assert table1.fair_share(evidence).holds is True
    assert table1.subscribed(evidence).holds is True


def test_the_window_is_what_16_bits_can_say() -> None:
    # 65535 bytes of data, in segments of 536 and 960 bytes.
    assert (window(576), window(1000)) == ("122p", "68p")
    # The other reason that the assumptions give: 2.12 Mbit/s over 100 ms and 694 packets at 20 Mbit/s.
    round_trip = 0.1 + 694 * 576 * 8 / 20e6
    assert 119 < 2.12e6 * round_trip / (576 * 8) < 122


def test_every_flow_has_the_tcp_of_1998() -> None:
    for study in (table1.TABLE1, fig2.FIG2, fig3.FIG3, fig3.FIG3_QUEUE, best_rio.BEST_RIO):
        for cell in study.cells:
            for transport in transports(study.scenario(cell)):
                assert transport["tcp"] == "ns-1998"
                assert transport["newreno-timer"] == "slow-but-steady"
                assert transport["partial-window-deflation"] == "to-ssthresh"
                assert transport["rtt-arithmetic"] == "fixed-point"
                assert transport["window"] == window(PACKETS[transport["packet"]])


def test_a_sender_differs_from_the_judged_one_by_what_its_name_says() -> None:
    judged = transports(senders.build(senders.cell(senders.JUDGED, table1.RIO)))[0]
    assert judged == transports(table1.build(table1.RIO))[0]
    for name, changed in {
        "window-64": {"window"},
        "delayed-ack": {"delayed-ack"},
        "deflation": {"partial-window-deflation"},
        "impatient": {"newreno-timer"},
        "window-1000-ssthresh-20": {"window", "initial-ssthresh"},
    }.items():
        other = transports(senders.build(senders.cell(name, table1.RIO)))[0]
        assert {key for key in judged.keys() | other.keys() if judged.get(key) != other.get(key)} == changed
    linux = transports(senders.build(senders.cell("linux", table1.RIO)))[0]
    assert (linux["tcp"], linux["sack"], linux["window"], linux["packet"]) == ("linux", True, "122p", "576B")


def test_the_distance_counts_35_rates() -> None:
    rates = senders.printed()
    assert len(rates) == 35
    assert not any(dict(key) == {**table1.RIO, "profile_mbps": 0.0} for key in rates)
    off = 0.1
    samples = [
        entry
        for setting in senders.SETTINGS
        for row in senders.ROWS
        for rate in table1.COUNTS
        for entry in spread(
            {**senders.cell(setting, row), "profile_mbps": rate},
            "throughput",
            rates.get((*row.items(), ("profile_mbps", rate)), 9.0) + off,
        )
    ]
    evidence = Evidence(samples, [])
    assert senders.distance(evidence, senders.JUDGED, table1.RIO) == pytest.approx(off)
    # The stated set's row has rates of 9.1 here.
    assert senders.distance(evidence, senders.JUDGED, table1.STATED) > 1


def test_the_printed_rows_judged_by_the_same_functions() -> None:
    """Fed with the printed rates, and the 200/600 row for RIO's text set, the claims hold."""
    loosest = {
        (p.metric, p.factors.get("profile_mbps")): p.value
        for p in table1.TABLE1.published
        if p.factors.get("out") == table1.OUT_SETS[0]
    }
    samples = printed(table1.TABLE1)
    for (metric, rate), value in loosest.items():
        factors = table1.STATED if rate is None else table1.by_class(table1.STATED, float(rate))
        samples += spread(factors, metric, value)
    evidence = Evidence(samples, table1.TABLE1.published)
    on_colors = {"out-loss-of-large", "out-throughput-unfair", "in-below-profile", "in-unfair"}
    verdicts = {c.id: c.judge(evidence).holds for c in table1.TABLE1.claims if c.id not in on_colors}
    assert {name for name, holds in verdicts.items() if not holds} == set()


def test_one_run_decides_nothing_but_arithmetic() -> None:
    samples = [(1, Sample(p.factors, p.metric, "", p.value)) for p in table1.TABLE1.published]
    evidence = Evidence(samples, table1.TABLE1.published)
    verdicts = {
        name: judge(evidence).holds
        for name, judge in {
            "gain": table1.gain("5/15/0.01", table1.RIO),
            "trend": table1.trend(2.0, 1),
            "best": table1.best_improves,
            "fair-share": table1.fair_share,
        }.items()
    }
    assert verdicts == {"gain": None, "trend": None, "best": None, "fair-share": True}


def curve_samples(scheme: str, profile: float, values: list[float]) -> list[tuple[int, Sample]]:
    curve = fig3.CURVES[scheme, profile]
    return [
        entry
        for level, value in zip(fig3.LEVELS, values, strict=True)
        for entry in spread(curve.at(level), "throughput", value)
    ]


def test_a_limit_holds_fails_or_cannot_be_told() -> None:
    curve = fig3.CURVES["rio", 0.5]  # published: 90 %

    def judged(values: list[float]) -> bool | None:
        return curve.judge(Evidence(curve_samples("rio", 0.5, values), fig3.STATEMENT.values)).holds

    assert judged([0.5] * 9 + [0.4]) is True
    assert judged([0.6] * 8 + [0.4] * 2) is False
    assert judged([0.6] * 10) is False, "it holds beyond the published limit"
    edge = KEEPS * 0.5
    assert judged([edge + 0.002] * 9 + [0.4]) is True
    assert judged([edge] * 9 + [0.4]) is None
    evidence = Evidence(curve_samples("rio", 0.5, [0.6] * 8 + [0.4] * 2), fig3.STATEMENT.values)
    rows = {row.factors["reading"]: row for row in curve.rows(evidence, never=0.0)}
    assert (rows["mean"].published, rows["mean"].mean) == (90, 80)
    assert rows["interval"].published is None


def test_gains_and_losses_do_not_cancel_to_similar() -> None:
    flat = curve_samples("rio", 0.5, [0.5] * 10)
    swings = curve_samples("rio-plus-out", 0.5, [0.56] * 5 + [0.44] * 5)
    assert fig3.alike(Evidence([*flat, *swings], [])).holds is False
    near = curve_samples("rio-plus-out", 0.5, [0.51] * 10)
    assert fig3.alike(Evidence([*flat, *near], [])).holds is True


def test_figure_3_has_two_queues_and_otherwise_the_same_cells() -> None:
    cell: Factors = {"scheme": "rio-plus-out", "profile_mbps": 2.0, "subscription_percent": 50}
    large, small = (study.scenario(cell) for study in (fig3.FIG3, fig3.FIG3_QUEUE))
    assert large["links"]["bottleneck"]["queue"]["total"] == table1.STATED_SET
    assert small["links"]["bottleneck"]["queue"]["limit"] == "200p"
    assert [flow["count"] for flow in large["flows"]] == [flow["count"] for flow in small["flows"]] == [5, 20]
    assert all(flow["profile"]["burst"] == "20kB" for flow in (large["flows"][0], small["flows"][0]))
    assert fig3.FIG3.cells == fig3.FIG3_QUEUE.cells
    assert fig3.FIG3_QUEUE.extra


def test_the_best_rio_is_one_of_the_sets_that_the_papers_values_make() -> None:
    names = {f"{thresholds}/{max_p:g}" for thresholds, max_p in best_rio.NAMED}
    assert (len(names), len(best_rio.SETS)) == (28, 42)
    assert {table1.BEST_SET, table1.STATED_SET} <= names
    found = dict.fromkeys(best_rio.SETS, 0.2) | {best_rio.mine(): 0.13}
    samples = [e for key, value in found.items() for e in spread(best_rio.cell(*key), "rmse", value)]
    assert best_rio.best_set(Evidence(samples, [])).holds is True
    other = {**found, ("10/30", 0.02): 0.12}
    samples = [e for key, value in other.items() for e in spread(best_rio.cell(*key), "rmse", value)]
    assert best_rio.best_set(Evidence(samples, [])).holds is False


def test_a_variant_changes_what_it_names() -> None:
    cell = next(c for c in variants.VARIED.cells if c["item"] == "fig3" and c["variant"] == "SACK")
    changed = transports(variants.VARIED.scenario(cell))[0]
    assert (changed["tcp"], changed["sack"], changed["window"]) == ("newreno", True, "122p")
    plain = {key: value for key, value in cell.items() if key not in {"item", "variant"}}
    assert transports(fig3.build(plain))[0]["tcp"] == "ns-1998"


def test_colored_parts_add_up_and_ri_plus_o_changes_who_sends_out() -> None:
    found = {}
    for cell in (table1.STATED, table1.ri_plus_o("10/30/0.01")):
        runs = perhop.run(table1.build(cell), runs=3, jobs=1).runs
        samples = [s for run in runs for s in table1.samples(cell, run)]
        mean = {
            metric: np.mean(
                [s.value for s in samples if s.metric == metric and s.factors.get("profile_mbps") == 2]
            )
            for metric in ("throughput", "in_throughput", "out_throughput", "out_loss")
        }
        # Packets sent twice in vain, and those still under way, are in the parts but not in the rate.
        assert mean["in_throughput"] + mean["out_throughput"] == pytest.approx(mean["throughput"], rel=0.01)
        found[str(cell["scheme"])] = mean
    rio, ours = found["stated-rio"], found["rio-plus-out"]
    assert ours["out_throughput"] > 2 * rio["out_throughput"]
    assert 0 < rio["out_loss"] < ours["out_loss"] < 0.1

"""The studies of Hurley and Le Boudec's paper, and what they measure by."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import perhop
from perhop.measures.fairness import histogram_cdf
from perhop.measures.run import Run
from perhop.statistics.intervals import estimate, half_width_of
from perhop.studies import STUDIES
from perhop.studies.evidence import Evidence, Published, Sample
from perhop.studies.hurley import alpha, common, delay, roundtrip, sweep, throughput
from perhop.studies.hurley import map as mapped
from perhop.studies.hurley import service as beyond
from perhop.studies.hurley.common import ABE, BLUE, DSD, FLAT, GREEN, LINK, RAP, SETTING, SQRT, TFRC
from perhop.studies.reproduction import Counts, execute, plan
from perhop.studies.sampling import mean_mbps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perhop.show.declared import Factors
    from perhop.studies.study import ClaimVerdict


@pytest.fixture(scope="module")
def run() -> Run:
    """One run of the paper's setting."""
    return perhop.run(SETTING.scenario("test", ABE, 10, 10, RAP), runs=1).runs[0]


def test_a_histogram_as_a_distribution_function() -> None:
    edges, counts = [0.0, 1.0, 2.0, 4.0], [1, 2, 1]
    found = [histogram_cdf(edges, counts, at) for at in (-1.0, 0.0, 1.0, 1.5, 3.0, 4.0, 9.0)]
    assert found == [0.0, 0.0, 0.25, 0.5, 0.875, 1.0, 1.0]
    assert histogram_cdf([0.0], [], 1.0) is None


def test_the_interval_that_another_number_of_runs_would_give() -> None:
    values = [1.0, 2.0, 4.0, 5.0]
    assert half_width_of(values, 4) == pytest.approx(estimate(values).half_width)
    assert half_width_of([0.0, 2.0], 4) == pytest.approx(3.182 * math.sqrt(2) / 2, rel=1e-3)
    with pytest.raises(ValueError, match="at least two"):
        half_width_of([1.0], 4)


def test_the_setting_is_the_papers() -> None:
    queue = SETTING.queue(ABE)
    assert (queue["scheduler"], queue["blue"]) == ("edf", "100ms")
    rule = queue["rule"]
    assert (rule["thresholds"], rule["weight"], rule["limit"]) == ("0/40/0.2", 0.02, "60p")
    assert (rule["green-limit"], rule["target"]) == ("10p", 9.0)
    assert SETTING.green_bound_ms == pytest.approx(27.5)
    assert SETTING.queue(DSD)["bound"] == "27.5ms"
    assert (rule["alpha-on"], rule["wait"]) == ("final", False)
    link = SETTING.scenario("test", ABE, 1, 1, RAP)
    flow = link["flows"][0]
    delays = [link["links"][LINK]["delay"], flow["access"]["delay"], flow["egress"]["delay"]]
    assert 2 * sum(float(text.removesuffix("ms")) for text in delays) == SETTING.rtt_ms == 200.0
    half_widths = [STUDIES[f"hurley-{item}"].published[0].value for item in ("fig2", "fig4")]
    assert half_widths == [1.30, 0.3561]


def test_flat_best_effort_with_separate_books_is_a_fifo() -> None:
    scenario = SETTING.scenario("test", FLAT, 10, 10, TFRC)
    plain = {**scenario, "links": {LINK: {**scenario["links"][LINK], "queue": SETTING.queue(FLAT)["rule"]}}}
    ours, fifo = (perhop.run(s, runs=1).runs[0] for s in (scenario, plain))
    for column in ("delivered_packets", "sent_packets", "loss_events"):
        np.testing.assert_array_equal(ours.flows(column), fifo.flows(column))
    assert ours.link(LINK)["delay_s"]["counts"].sum() == fifo.link(LINK)["delay_s"]["counts"].sum()
    assert [books["name"] for books in ours.link(LINK)["classes"]] == [BLUE, GREEN]
    assert fifo.link(LINK)["classes"] == []


def test_the_books_of_the_services_add_up(run: Run) -> None:
    link = run.link(LINK)
    for key in ("arrived", "sent", "waiting"):
        assert (sum(books[key] for books in link["classes"]) == link[key]).all()
    frame = perhop.run(SETTING.scenario("test", ABE, 10, 10, RAP), runs=1).link_classes
    assert frame["class"].to_list() == [BLUE, GREEN]
    green = frame.row(1, named=True)
    assert (
        green["dropped_whole_run"] + green["sent_whole_run"] + green["waiting_packets"]
        == green["arrived_whole_run"]
    )
    assert green["delay_variation_s"] == pytest.approx(green["delay_p99_s"] - green["delay_p50_s"])
    with pytest.raises(KeyError):
        run.link_class(LINK, "red")


def test_waits_as_a_distribution_function(run: Run) -> None:
    result = perhop.run(SETTING.scenario("test", ABE, 10, 10, RAP), runs=1)
    delays = result.delays
    assert delays["class"].unique(maintain_order=True).to_list() == ["all", BLUE, GREEN]
    for (name,), frame in delays.group_by(["class"]):
        assert frame["delay_s"].is_sorted()
        assert frame["share"].is_sorted()
        assert frame["share"][-1] == 1.0
        books = run.link(LINK) if name == "all" else run.link_class(LINK, str(name))
        assert frame["packets"].sum() == books["delay_s"]["counts"].sum()
    green = delays.filter(delays["class"] == GREEN)
    p99 = result.link_classes.row(1, named=True)["delay_p99_s"]
    assert green.filter(green["share"] >= 0.99)["delay_s"][0] == pytest.approx(p99, rel=0.04)


def test_received_bytes_count_up() -> None:
    result = perhop.run(SETTING.scenario("test", ABE, 10, 10, RAP), runs=1)
    start, end = (
        result.series.filter(result.series["time_s"] == at)["received_bytes"] for at in (10.0, 200.0)
    )
    assert (end - start).to_list() == result.flows["delivered_bytes"].to_list()
    assert any(received > 0 for received in start)


def test_links_of_the_sweep_are_named_with_their_unit() -> None:
    assert sweep.RATE_AXIS.text(1.0) == "1 Mbit/s"


def test_packets_received_end_where_the_flows_do(run: Run) -> None:
    warm, last = (
        {s.factors["service"]: s.value for s in common.cumulative({}, run, (at,))} for at in (10.0, 200.0)
    )
    for service in (BLUE, GREEN):
        assert last[service] - warm[service] == pytest.approx(
            float(np.mean(run.of_group(service, "delivered_packets")))
        )


def test_swings_are_told_from_drifts() -> None:
    assert alpha.swing(np.array([9.0, 18.0] * 20)) == pytest.approx(-1.0, abs=0.05)
    assert alpha.swing(np.exp(np.linspace(0, 1, 40))) > 0.8
    assert alpha.swing(np.full(40, 9.0)) == 0.0


def test_the_part_of_the_shortfall_that_round_trips_make() -> None:
    def evidence(own: float, equal: float) -> Evidence:
        ratios = {throughput.OWN: own, throughput.EQUAL: equal}
        samples = [
            Sample(throughput.cell(ABE, RAP, rtt), "ratio", "", value) for rtt, value in ratios.items()
        ]
        return Evidence([(1, sample) for sample in samples], [Published({}, "none", 0.0)])

    assert throughput.rtt_share(evidence(1.5, 2.1), RAP) == pytest.approx(0.4)
    assert throughput.rtt_share(evidence(3.5, 4.0), RAP) is None


def test_who_is_cut_off_gains_nothing() -> None:
    def measured(lost: float) -> Evidence:
        key = sweep.grid_key(1.0, 2)
        samples = []
        for seed, scheme in ((seed, scheme) for seed in (1, 2) for scheme in (ABE, FLAT)):
            better = scheme == ABE
            for service, metric, value in (
                (BLUE, "throughput", 2.0 if better else 1.0 + seed / 10),
                (GREEN, "loss", lost),
                (GREEN, "wait_p99", 1.0 if better else 9.0 + seed / 10),
            ):
                factors = {**key, "scheme": scheme, "service": service}
                samples.append((seed, Sample(factors, metric, "", value)))
        return Evidence(samples, [])

    alive, dead = (sweep.gain(measured(lost), sweep.grid_key(1.0, 2)) for lost in (0.5, 0.95))
    assert alive.green is not None
    assert alive.green.mean == pytest.approx(8.15)
    assert dead.green is None
    assert not dead.both
    assert sweep.cut_off(measured(0.95), sweep.grid_key(1.0, 2)).holds is True
    assert sweep.cut_off(measured(0.5), sweep.grid_key(1.0, 2)).holds is False


def evidence(values: dict[tuple[str, str], list[float]], key: Callable[[str], Factors]) -> Evidence:
    """Evidence of (where, metric) over seeds 1, 2, …."""
    return Evidence(
        [
            (seed, Sample(key(where), metric, "", value))
            for (where, metric), found in values.items()
            for seed, value in enumerate(found, 1)
        ],
        [],
    )


def beta_by(ratios: Mapping[str, list[float]]) -> ClaimVerdict:
    """The verdict on beta where the green sources have these ratios."""
    values = {(form, "ratio"): found for form, found in ratios.items()}
    lost = [
        (seed, Sample({**throughput.cell(ABE, form), "service": GREEN}, "loss", "fraction", 0.2))
        for form in ratios
        for seed in (1, 2, 3)
    ]
    claim = next(claim for claim in throughput.FIG2.claims if claim.id == "beta")
    measured = [
        (seed, Sample(throughput.cell(ABE, form), metric, "", value))
        for (form, metric), found in values.items()
        for seed, value in enumerate(found, 1)
    ]
    return claim.verdict(Evidence([*measured, *lost], []))


@pytest.mark.parametrize(
    ("ratios", "holds"),
    [
        ([2.6, 2.62, 2.61], True),
        ([2.4, 2.42, 2.41], False),
        ([2.4, 2.6, 2.5], None),
        ([3.4, 3.41, 3.4], True),
        ([3.6, 3.61, 3.6], False),
    ],
)
def test_beta_is_met_where_the_ratio_rounds_to_it(ratios: list[float], holds: bool | None) -> None:
    verdict = beta_by(dict.fromkeys((RAP, SQRT, TFRC), ratios))
    assert {found.holds for found in verdict.readings.values()} == {holds}
    assert verdict.holds is holds


def test_beta_is_open_where_the_green_sources_differ() -> None:
    verdict = beta_by({RAP: [2.4, 2.42, 2.41], SQRT: [2.9, 2.92, 2.91], TFRC: [9.0, 9.1, 9.0]})
    assert [verdict.readings[name].holds for name in ("RAP", "1/√p", "TFRC")] == [False, True, False]
    assert verdict.holds is None
    assert verdict.judgement.differ
    others = {name: found.holds for name, found in verdict.others.items()}
    assert (others["RAP, within a quarter"], others["RAP, within a tenth"]) == (True, False)
    assert (others["1/√p, within a tenth"], others["TFRC, within a quarter"]) == (True, False)


@pytest.mark.parametrize(("own", "holds"), [([0.1, 0.101, 0.1], True), ([0.08, 0.081, 0.08], False)])
def test_a_shorter_round_trip_raises_greens_own_rate(own: list[float], holds: bool) -> None:
    samples = []
    for form in (RAP, SQRT, TFRC):
        for seed, value in enumerate(own, 1):
            for rtt, rate in ((throughput.OWN, value), (throughput.EQUAL, 0.09)):
                key = {**throughput.cell(ABE, form, rtt), "service": GREEN}
                samples.append((seed, Sample(key, "throughput", "Mbit/s", rate)))
            for service, trip in ((BLUE, 220.0), (GREEN, 204.0)):
                key = {**throughput.cell(ABE, form), "service": service}
                samples.append((seed, Sample(key, "rtt", "ms", trip + seed / 10)))
    assert throughput.short_rtt_raises_green()(Evidence(samples, [])).holds is holds


def test_before_one_fifo_both_services_wait_alike(run: Run) -> None:
    scenario = throughput.FIG2.scenario(throughput.cell(ABE, RAP, throughput.EQUAL))
    equal = perhop.run(scenario, runs=1).runs[0]
    trips, apart = (
        [common.mean_ms(found, service, "mean_rtt_s") for service in (BLUE, GREEN)] for found in (equal, run)
    )
    assert trips[0] == pytest.approx(trips[1], rel=0.01)
    assert apart[0] != pytest.approx(apart[1], rel=0.05)
    # The same share of green's packets is dropped: nothing but its wait differs.
    assert common.loss(equal, GREEN) == pytest.approx(common.loss(run, GREEN), rel=0.05)


@pytest.mark.parametrize(
    ("blue", "holds"),
    [([0.31, 0.32, 0.31], True), ([0.21, 0.212, 0.21], False), ([0.2, 0.24, 0.22], None)],
)
def test_clearly_higher_is_a_tenth_more(blue: list[float], holds: bool | None) -> None:
    rates = {ABE: blue, FLAT: [0.2, 0.2, 0.2]}
    samples = [
        (seed, Sample({**throughput.cell(scheme, form), "service": BLUE}, "throughput", "", value))
        for form in (RAP, SQRT, TFRC)
        for scheme, values in rates.items()
        for seed, value in enumerate(values, 1)
    ]
    assert throughput.clearly_higher()(Evidence(samples, [])).holds is holds


@pytest.mark.parametrize(
    ("tfrc", "holds"),
    [([0.9, 0.91, 0.9], True), ([0.4, 0.41, 0.4], False), ([2.1, 2.11, 2.1], False), ([0.4, 0.6, 0.5], None)],
)
def test_friendly_is_within_a_factor_of_two(tfrc: list[float], holds: bool | None) -> None:
    ratios = {RAP: [0.66, 0.67, 0.66], SQRT: [0.66, 0.67, 0.66], TFRC: tfrc}
    found = evidence(
        {(form, "ratio"): values for form, values in ratios.items()},
        lambda form: throughput.cell(FLAT, form),
    )
    assert throughput.friendly()(found).holds is holds


@pytest.mark.parametrize(("last", "holds"), [(0.1, True), (-0.1, False)])
@pytest.mark.parametrize("metric", ["source_rate", "source_jitter"])
def test_one_source_without_benefit_decides(metric: str, last: float, holds: bool) -> None:
    samples = []
    for name, service, sign in (("source_rate", BLUE, 1), ("source_jitter", GREEN, -1)):
        for form in (RAP, SQRT, TFRC):
            for source in range(1, delay.FLOWS + 1):
                gain = last if (name, form, source) == (metric, TFRC, delay.FLOWS) else 0.1
                for seed in (1, 2, 3):
                    for scheme, value in ((ABE, 1 + sign * gain), (FLAT, 1.0)):
                        factors = {**delay.key(scheme, form, service), "source": source}
                        samples.append((seed, Sample(factors, name, "", value + seed / 100)))
    assert delay.both_gain()(Evidence(samples, [])).holds is holds


@pytest.mark.parametrize(("p99", "holds"), [(4.0, True), (6.0, False)])
def test_shorter_than_blue_takes_all_quantiles(p99: float, holds: bool) -> None:
    green = {"wait_p50": 1.0, "wait_p95": 2.0, "wait_p99": p99}
    samples = [
        (seed, Sample(delay.key(ABE, form, service), metric, "ms", value + seed / 100))
        for form in (RAP, SQRT, TFRC)
        for metric, low in green.items()
        for service, value in ((GREEN, low), (BLUE, 5.0))
        for seed in (1, 2, 3)
    ]
    assert (
        delay.quantiles_below((ABE, GREEN), (ABE, BLUE), "green − blue")(Evidence(samples, [])).holds is holds
    )


def test_each_source_is_measured_by_what_it_wants(run: Run) -> None:
    found = list(common.each_source({}, run))
    rates = [s.value for s in found if s.metric == "source_rate"]
    jitter = [s.value for s in found if s.metric == "source_jitter"]
    assert {s.factors["service"] for s in found if s.metric == "source_rate"} == {BLUE}
    assert [len(rates), len(jitter)] == [10, 10]
    assert np.mean(rates) == pytest.approx(mean_mbps(run, BLUE))
    assert np.mean(jitter) == pytest.approx(common.mean_ms(run, GREEN, "jitter_s"))


@pytest.mark.parametrize(
    ("edf", "priority", "holds"),
    [
        ([0.0, 0.0, 0.01], [0.6, 0.7, 0.65], True),
        # Next to no rate, but served in every second: the old rule took a rate below a twentieth of EDF's.
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], False),
        # EDF leaves blue without a packet, too.
        ([0.9, 0.91, 0.92], [0.97, 0.98, 0.97], False),
        ([0.0, 0.0, 0.0], [0.4, 0.6, 0.5], None),
    ],
)
def test_who_gets_no_packet_in_most_seconds_is_starved(
    edf: list[float], priority: list[float], holds: bool | None
) -> None:
    samples = []
    for case, silent in ((beyond.EDF, edf), (beyond.PRIORITY, priority)):
        for seed, value in enumerate(silent, 1):
            samples.append((seed, Sample(beyond.cell(case), "silent", "fraction", value)))
            key = {**beyond.cell(case), "service": BLUE}
            samples.append((seed, Sample(key, "throughput", "Mbit/s", 0.001 * seed)))
    found = beyond.prevents_starvation(beyond.EDF, beyond.PRIORITY)(Evidence(samples, []))
    assert found.holds is holds


def test_a_silent_second_has_no_blue_packet() -> None:
    served, starved = (
        perhop.run(beyond.build(beyond.cell(case)), runs=1).runs[0]
        for case in (beyond.EDF_ALIKE, beyond.PRIORITY_ALIKE)
    )
    assert beyond.silent(served) == 0.0
    assert 0.3 < beyond.silent(starved) < 1.0


def of_sources(values: Mapping[tuple[str, str], list[float]]) -> Evidence:
    """Evidence of (case, metric), the same with every green source."""
    return Evidence(
        [
            (seed, Sample(beyond.cell(case, form=form), metric, "", value))
            for (case, metric), found in values.items()
            for form in (RAP, SQRT, TFRC)
            for seed, value in enumerate(found, 1)
        ],
        [],
    )


@pytest.mark.parametrize(
    ("typical", "holds"), [([5.8, 5.9, 5.8], True), ([9.05, 9.05, 9.05], False), ([12.0, 12.1, 12.1], True)]
)
def test_control_is_less_where_the_ratio_misses_by_more(typical: list[float], holds: bool) -> None:
    found = of_sources(
        {(beyond.PAPERS_RED, "alpha_m"): [9.2, 9.3, 9.2], (beyond.TYPICAL, "alpha_m"): typical}
    )
    assert beyond.typical_controls_less(beyond.TYPICAL)(found).holds is holds


@pytest.mark.parametrize(
    ("typical", "holds"), [([0.6, 0.62, 0.61], True), ([0.1, 0.12, 0.11], False), ([0.2, 0.3, 0.25], None)]
)
def test_many_forced_losses_are_a_quarter(typical: list[float], holds: bool | None) -> None:
    found = of_sources(
        {(beyond.PAPERS_RED, "forced_blue"): [0.0, 0.0, 0.0], (beyond.TYPICAL_NS, "forced_blue"): typical}
    )
    assert beyond.typical_forces(beyond.TYPICAL_NS)(found).holds is holds


@pytest.mark.parametrize(
    ("equal", "raised", "holds"),
    [
        ([2.5, 2.52, 2.51], [3.0, 3.02, 3.01], True),
        # Higher than before, which the old rule took, but not enough for the shorter wait.
        ([2.9, 2.92, 2.91], [2.6, 2.62, 2.61], False),
        # The shorter wait lowers nothing, so that nothing has to be made up for.
        ([2.3, 2.32, 2.31], [3.0, 3.02, 3.01], False),
    ],
)
def test_raising_makes_up_for_what_the_short_wait_takes(
    equal: list[float], raised: list[float], holds: bool
) -> None:
    ratios = {beyond.PAPERS_RED: [2.4, 2.42, 2.41], beyond.ONE_QUEUE: equal, beyond.RAISED: raised}
    found = of_sources({(case, "ratio"): values for case, values in ratios.items()})
    assert beyond.raising_compensates()(found).holds is holds


def control(waits: Mapping[str, list[float]]) -> ClaimVerdict:
    """The verdict on what shortens green's wait, where its 99 % quantiles are these."""
    samples = [
        (seed, Sample(delay.key(scheme, form), metric, "ms", value))
        for form in (RAP, SQRT, TFRC)
        for scheme, values in waits.items()
        for metric in ("wait_p99", "wait_max")
        for seed, value in enumerate(values, 1)
    ]
    claim = next(claim for claim in delay.FIG5.claims if claim.id == "due-to-control")
    return claim.verdict(Evidence(samples, []))


@pytest.mark.parametrize(
    ("without_limit", "without_both", "readings", "holds"),
    [
        ([5.0, 5.1, 5.0], [11.0, 12.0, 11.5], [False, True], None),
        ([11.0, 11.9, 11.4], [11.0, 12.0, 11.5], [True, True], True),
        ([5.0, 5.1, 5.0], [5.0, 5.1, 5.0], [False, False], False),
        ([5.0, 5.2, 5.1], [11.0, 12.0, 11.5], [None, True], None),
    ],
)
def test_what_a_control_adds_is_what_is_missing_without_it(
    without_limit: list[float],
    without_both: list[float],
    readings: list[bool | None],
    holds: bool | None,
) -> None:
    verdict = control(
        {
            ABE: [5.0, 5.1, 5.0],
            delay.UNLIMITED: without_limit,
            delay.SCHEDULER: without_both,
            delay.EQUAL_DROPS: [11.0, 12.0, 11.6],
            FLAT: [11.0, 12.0, 11.5],
        }
    )
    assert [found.holds for found in verdict.readings.values()] == readings
    assert verdict.holds is holds


def test_abes_scheduler_alone_is_flat_best_effort_for_green() -> None:
    alone, flat = (
        perhop.run(delay.FIG5.scenario(delay.cell(scheme, RAP)), runs=1).runs[0]
        for scheme in (delay.SCHEDULER, FLAT)
    )
    np.testing.assert_array_equal(alone.flows("delivered_packets"), flat.flows("delivered_packets"))


def test_cases_beyond_the_figures_change_what_they_name() -> None:
    cells = {str(cell["case"]): cell for cell in beyond.SERVICE.cells}
    queues = {case: beyond.build(cell)["links"][LINK]["queue"] for case, cell in cells.items()}
    rules = {case: queue["rule"] for case, queue in queues.items()}
    assert rules[beyond.TYPICAL]["thresholds"] == "5/15/0.02"
    assert rules[beyond.TYPICAL_NS]["thresholds"] == "5/15/0.1"
    assert (rules[beyond.RAISED]["target"], rules[beyond.PAPERS_RED]["target"]) == (14.0, 9.0)
    assert [queues[case]["blue"] for case in (beyond.EDF, beyond.PRIORITY)] == ["100ms", "1000s"]
    assert [queues[case]["blue"] for case in (beyond.EDF_ALIKE, beyond.PRIORITY_ALIKE)] == ["100ms", "1000s"]
    assert [rules[case]["aqm"] for case in (beyond.EDF, beyond.EDF_ALIKE)] == ["abe", "red"]
    for source, transport in ((RAP, {"rap": "aimd"}), (beyond.RENO, {"tcp": "reno"})):
        flows = beyond.build(beyond.cell(beyond.BLUE_CHOICE, chooser=source))["flows"]
        chooser = next(flow for flow in flows if flow["name"] == beyond.CHOOSER)
        assert chooser["service"] == BLUE
        assert transport.items() <= chooser["transport"].items()


PLACES = list(mapped.places())


def rule_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """How the bottleneck admits packets."""
    return dict(scenario["links"][LINK]["queue"]["rule"])


def test_places_of_the_map_differ_from_the_stated_setting_in_what_they_name() -> None:
    link = mapped.elsewhere(5.0, 44.0)(throughput.FIG2.scenario(throughput.cell(ABE, RAP)))
    assert link == replace(SETTING, rate_mbps=5.0, rtt_ms=44.0).scenario(
        "Hurley and Le Boudec", ABE, 10, 10, RAP
    )
    flooded = mapped.elsewhere(5.0, 200.0)(beyond.build(beyond.cell(beyond.EDF)))
    assert [flow["transport"].get("rate") for flow in flooded["flows"]] == [None, "6.25Mbps"]
    alone = mapped.elsewhere(5.0, 200.0)(beyond.build(beyond.cell(beyond.GREEN_ALONE)))
    assert [flow["transport"]["rate"] for flow in alone["flows"]] == ["15Mbps"]
    due = mapped.due_after("20ms")
    assert due(beyond.build(beyond.cell(beyond.EDF)))["links"][LINK]["queue"]["blue"] == "20ms"
    assert due(beyond.build(beyond.cell(beyond.PRIORITY)))["links"][LINK]["queue"]["blue"] == "1000s"
    few = mapped.limited_to(5)
    limits = [
        few(delay.FIG5.scenario(delay.cell(scheme, RAP)))["links"][LINK]["queue"]["rule"].get("green-limit")
        for scheme in (ABE, delay.UNLIMITED, FLAT)
    ]
    assert limits == ["5p", None, None]
    rules = {place.name: rule_of(place.studies[0].scenario(throughput.cell(ABE, RAP))) for place in PLACES}
    stated = rule_of(throughput.FIG2.scenario(throughput.cell(ABE, RAP)))
    assert rules["How alpha moves: integral law"] == {**stated, "law": "integral"}
    assert rules["Which p alpha multiplies: alpha p_b, then spread"] == {**stated, "alpha-on": "initial"}


def test_readings_of_alpha_p_are_the_rules_own() -> None:
    rules = {
        reading: roundtrip.build(roundtrip.cell(5.0, 44.0, reading))["links"][LINK]["queue"]["rule"]
        for reading in roundtrip.READINGS
    }
    assert [rule.get("alpha-on") for rule in rules.values()] == ["final", "initial", None]
    assert [rule.get("spread") for rule in rules.values()] == [None, None, False]


def test_the_time_of_a_transfer(run: Run) -> None:
    taken = common.transfer_s(run, BLUE, 1000)
    assert taken is not None
    # Ten blue flows share what they receive: the mean rate gives about the same time.
    rate = 1e6 * mean_mbps(run, BLUE) / 8000
    assert taken == pytest.approx(1000 / rate, rel=0.1)
    assert common.transfer_s(run, BLUE, 1e9) is None


JUDGED_FROM_ONE_RUN = {
    "fig2": set[str](),
    "fig3": {"bounded"},
    "fig4": {"reverts-to-flat"},
    "fig5": {"few-in-queue"},
    "service": set[str](),
    "rtt": set[str](),
    "alpha": set[str](),
}
"""The claims that are read by counts; all others are read by intervals."""


@pytest.mark.parametrize(("item", "judged"), JUDGED_FROM_ONE_RUN.items(), ids=str)
def test_one_run_judges_nothing_by_its_interval(item: str, judged: set[str]) -> None:
    (outcome,) = execute(
        plan([STUDIES[f"hurley-{item}"]], runs=1, seed=1), jobs=2, store=None, counts=Counts()
    )
    assert {verdict.claim.id for verdict in outcome.verdicts if verdict.holds is not None} == judged

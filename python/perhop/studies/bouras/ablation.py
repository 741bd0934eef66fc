"""Which part does what: marker, drop rule, intervals, static thresholds; paths of unequal round trips."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.judging import Judgement, above, all_of, below, judge, near
from perhop.statistics import estimate
from perhop.studies.bouras.common import (
    BASELINE,
    CAPACITY,
    EDGE,
    PROPOSED,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THIS,
    TITLE,
    basics,
    windows,
)
from perhop.studies.bouras.judges import listed
from perhop.studies.bouras.scenarios import SCENARIO_AXIS
from perhop.studies.paper import claims
from perhop.study import Axis, Plot, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.statistics import Estimate
    from perhop.study import Evidence, Factor, Factors

COMBINED = (BASELINE, "twam+wred", "tsw+dwred", PROPOSED)
SCENARIOS = (1, 2)
INTERVALS = {"40ms": "40 ms", "1": "1 round trip", "2": "2", "4": "4", "8": "8"}
"""A fixed interval, and multiples of the measured round trip."""
FEW = ("1", "2", "4")
"""One or a few round trips."""
THRESHOLDS = {"10/40": "10/40", "40/160": "40/160", "160/640": "160/640", "320/1280": "320/1280"}
STATED, HIGHER, HIGH = "40/160", "160/640", "320/1280"
ONE, TWO = "one queue", "two queues"
QUEUES = Axis("queues", "At R2", {ONE: "one queue", TWO: "a queue for each, WFQ"})
PATHS = Axis("path", "Path", {"near": "near, 40 ms", "far": "far, 160 ms"})
SHARED_MBPS = 30.0
EACH = 5
SOLD = 3.0
TOLERANCE = 0.1
"""Two paths get the same if their rates differ by at most this part."""
MORE = 1.5
"""A path gets "unfairly" more if it gets so many times the other's rate."""
RUNS = 6

STATEMENT = THIS.item("ablation")


def cell(scenario: int, scheme: str) -> dict[str, Any]:
    """The factors of one combination."""
    return {"part": "combinations", "scenario": scenario, "scheme": scheme}


def every(interval: str, scheme: str = PROPOSED) -> dict[str, Any]:
    """The factors of one interval in scenario 2."""
    return {"part": "intervals", "scenario": 2, "scheme": scheme, "interval": interval}


def static(thresholds: str) -> dict[str, Any]:
    """The factors of one set of static thresholds in scenario 2."""
    return {"part": "thresholds", "scenario": 2, "scheme": BASELINE, "thresholds": thresholds}


def trips(queues: str) -> dict[str, Any]:
    """The factors of the two paths in one queue or in two."""
    return {"part": "round trips", "queues": queues}


def build(factors: Factors) -> Mapping[str, Any]:
    """One combination, interval or set of thresholds, or the two paths."""
    if factors["part"] == "round trips":
        return two_paths(str(factors["queues"]))
    setting = SETTING
    if "interval" in factors:
        interval = str(factors["interval"])
        fixed = interval.endswith("ms")
        setting = replace(SETTING, **({"interval": interval} if fixed else {"round_trips": int(interval)}))
    if "thresholds" in factors:
        setting = replace(SETTING, thresholds=str(factors["thresholds"]))
    found = setting.scenario(int(factors["scenario"]), str(factors["scheme"]))
    return {**found, "title": f"{found['title']}: {factors['part']}"}


def two_paths(queues: str) -> dict[str, Any]:
    """Five flows on each of two paths that share R2-R3; the far one has 60 ms more to go each way."""
    rule = replace(SETTING, round_trip=160).rule(PROPOSED, SHARED_MBPS)
    queue: dict[str, Any] = rule
    if queues == TWO:
        entries = [{"name": n, "match": {"path": n}, "rate": "15Mbps", "rule": rule} for n in ("near", "far")]
        entries[-1].pop("match")
        queue = {"scheduler": "wfq", "queues": entries}
    control = {"interval": "measured"}

    def link(start: str, end: str, rate: float, delay: float) -> dict[str, Any]:
        return {"from": start, "to": end, "rate": f"{rate:g}Mbps", "delay": f"{delay:g}ms"}

    def flows(path: str) -> dict[str, Any]:
        return {
            "name": path,
            "count": EACH,
            "path": path,
            "access": {"rate": "100Mbps", "delay": "2.5ms"},
            "transport": {"tcp": "newreno", "packet": "1000B"},
            "profile": {"marker": "twam", "rate": f"{SOLD:g}Mbps"},
        }

    return {
        "title": "Two paths of unequal round trips",
        "duration": "200s",
        "warmup": "20s",
        "paths": {
            "near": {"via": ["R1", "R2", "R3"], "control": control},
            "far": {"via": ["R4", "R2", "R3"], "control": control},
        },
        "links": {
            "R1-R2": link("R1", "R2", 100, 5),
            "R4-R2": link("R4", "R2", 100, 65),
            "R2-R3": {**link("R2", "R3", SHARED_MBPS, 10), "queue": queue},
        },
        "flows": [flows("near"), flows("far")],
    }


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and windows, losses of OUT packets, what the edge sees; rates of the two paths."""
    if factors["part"] == "round trips":
        for path in ("near", "far"):
            rate = float(np.mean(run.of_group(path, "throughput_bps"))) / 1e6
            yield Sample({**factors, "path": path}, "throughput", "Mbit/s", rate)
        return
    yield from basics(dict(factors), run, SETTING)
    link = run.link("R1-R2")
    out = float(link["arrived"][1])
    for reason in ("early", "forced", "overflow"):
        lost = link["dropped"].get(reason)
        yield Sample(
            {**factors, "reason": reason},
            "out_lost",
            "fraction",
            0.0 if lost is None else float(lost[1]) / out,
            out,
        )
    arrived = float(sum(link["arrived"]))
    dropped = sum(float(packets.sum()) for packets in link["dropped"].values())
    yield Sample(factors, "lost", "fraction", dropped / arrived, arrived)
    if factors["scheme"] == EDGE:
        estimate, seen = (windows(run, 20, column) for column in ("seen_packets", "cwnd_packets"))
        yield Sample(factors, "seen_ratio", "fraction", float(np.nanmean(estimate / seen)))
        yield Sample(factors, "seen_error", "fraction", float(np.nanmean(np.abs(estimate - seen) / seen)))


def effects(evidence: Evidence, metric: str, of: str) -> dict[str, Estimate]:
    """What the marker changes with either drop rule, or the drop rule with either marker, by scenario."""
    pairs = {
        "marker": {"WRED": ("twam+wred", BASELINE), "DWRED": (PROPOSED, "tsw+dwred")},
        "drop rule": {"TSW2CM": ("tsw+dwred", BASELINE), "TWAM": (PROPOSED, "twam+wred")},
    }
    return {
        f"{CAPACITY[n]:g} Mbit/s, with {name}": evidence.difference(metric, cell(n, a), cell(n, b))
        for n in SCENARIOS
        for name, (a, b) in pairs[of].items()
    }


def marker_improves(evidence: Evidence) -> Judgement:
    """TWAM lowers the spread with either drop rule, on both links."""
    found = effects(evidence, "spread", "marker")
    return judge(
        all_of(*map(below, found.values())),
        f"Spread of rate over contract, TWAM − TSW2CM: {listed(found, sign=True)}.",
    )


def few_round_trips(evidence: Evidence) -> Judgement:
    """It does so also where the windows are read every one, two or four round trips."""
    other = cell(2, "tsw+dwred")
    found = {n: evidence.difference("spread", every(n), other) for n in FEW}
    text = ", ".join(
        f"{name}: {evidence.estimate('spread', every(n)).text(2)}" for n, name in INTERVALS.items()
    )
    return judge(
        all_of(*map(below, found.values())),
        f"Spread of rate over contract on 50 Mbit/s by interval: {text}; under TSW2CM with DWRED: "
        f"{evidence.estimate('spread', other).text(2)}.",
    )


def rule_reinforces(evidence: Evidence) -> Judgement:
    """Dynamic WRED lowers the spread under TWAM, on both links."""
    found = {n: e for n, e in effects(evidence, "spread", "drop rule").items() if n.endswith("TWAM")}
    return judge(
        all_of(*map(below, found.values())),
        f"Spread of rate over contract, DWRED − WRED: {listed(found, sign=True)}.",
    )


def rule_spares_timeouts(evidence: Evidence) -> Judgement:
    """Dynamic WRED lowers the number of timeouts under TWAM, on both links."""
    found = {n: e for n, e in effects(evidence, "timeouts", "drop rule").items() if n.endswith("TWAM")}
    return judge(
        all_of(*map(below, found.values())), f"Timeouts of a flow, DWRED − WRED: {listed(found, sign=True)}."
    )


def low_thresholds(evidence: Evidence) -> Judgement:
    """The stated thresholds drop more than four times as high ones, and leave smaller windows."""
    drops = evidence.difference("lost", static(STATED), static(HIGHER))
    sizes = evidence.difference("mean_window", static(STATED), static(HIGHER))
    text = "; ".join(
        f"{name}: {100 * evidence.mean('lost', static(t)):.3f} % lost, mean window "
        f"{evidence.estimate('mean_window', static(t)).text(1)}, "
        f"use {evidence.mean('utilization', static(t)):.4f}"
        for t, name in THRESHOLDS.items()
    )
    return judge(all_of(above(drops), below(sizes)), f"On 50 Mbit/s, {text}.")


def high_thresholds(evidence: Evidence) -> Judgement:
    """High static thresholds drop a smaller part of OUT packets early."""

    def early(thresholds: str) -> dict[str, Any]:
        return {**static(thresholds), "reason": "early"}

    found = evidence.difference("out_lost", early(HIGH), early(STATED))
    text = "; ".join(
        f"{name}: {100 * evidence.mean('out_lost', early(t)):.2f} %" for t, name in THRESHOLDS.items()
    )
    return judge(below(found), f"OUT packets that RED drops early, {text}.")


def one_queue(evidence: Evidence) -> Judgement:
    """In one queue the near path gets far more."""
    near_rate, far = (evidence.estimate("throughput", {**trips(ONE), "path": p}) for p in ("near", "far"))
    found = _ratio(evidence, ONE)
    return judge(
        above(found, MORE),
        f"Rate of a flow, Mbit/s (each path's share is {SOLD:g}): near {near_rate.text(2)}, far {far.text(2)}"
        f"; ratio {found.text(2)}.",
    )


def queue_each(evidence: Evidence) -> Judgement:
    """With a queue each under WFQ both paths get their half."""
    near_rate, far = (evidence.estimate("throughput", {**trips(TWO), "path": p}) for p in ("near", "far"))
    found = _ratio(evidence, TWO)
    return judge(
        near(found, 1, TOLERANCE),
        f"Rate of a flow, Mbit/s (each path's share is {SOLD:g}): near {near_rate.text(2)}, far {far.text(2)}"
        f"; ratio {found.text(2)}.",
    )


def _ratio(evidence: Evidence, queues: str) -> Estimate:
    by_path = [evidence.by_seed("throughput", {**trips(queues), "path": p}) for p in ("near", "far")]
    return estimate([by_path[0][seed] / by_path[1][seed] for seed in sorted(by_path[0])])


def _plot(metric: str, title: str, y_label: str) -> Plot:
    return Plot(
        id=metric,
        title=title,
        kind="bars",
        metric=metric,
        x=SCENARIO_AXIS,
        series=Axis("scheme", "Scheme", {scheme: SCHEME_NAMES[scheme] for scheme in COMBINED}),
        y_label=y_label,
        where={"part": "combinations", "scheme": COMBINED},
    )


def _table(title: str, metrics: Mapping[str, str], digits: int = 2, **where: Factor) -> Table:
    within = {"part": "combinations", **where}
    return Table(title, metrics, SCHEMES, (SCENARIO_AXIS,), where=within, digits=digits)


ABLATION = Study(
    id="bouras-ablation",
    title="Which part does what",
    source=f"{TITLE}, sections 3, 4, 6 and 7, and combinations that it does not separate",
    summary="TSW2CM or TWAM, with WRED or dynamic WRED; intervals; static thresholds; unequal round trips",
    cells=[
        *(cell(n, scheme) for n in SCENARIOS for scheme in (*reversed(COMBINED), EDGE)),
        *(every(interval) for interval in INTERVALS),
        *(static(thresholds) for thresholds in THRESHOLDS),
        *(trips(q) for q in (TWO, ONE)),
    ],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "marker-improves-fairness": marker_improves,
            "few-round-trips": few_round_trips,
            "drop-rule-reinforces": rule_reinforces,
            "low-thresholds": low_thresholds,
            "high-thresholds": high_thresholds,
            "one-queue-unfair": one_queue,
            "queue-each-fair": queue_each,
            "rule-spares-timeouts": rule_spares_timeouts,
        },
    ),
    tables=(
        _table(
            "Spread of rate over contract; flows of ten that have their contract",
            {"spread": "spread", "contracts_met": "have it"},
        ),
        _table(
            "Mean window, packets; timeouts of a flow in 180 s",
            {"mean_window": "window", "timeouts": "timeouts"},
        ),
        _table(
            "Mean queue of the first link, share of the bandwidth-delay product", {"queue": ""}, link="R1-R2"
        ),
        Table(
            "What the ingress sees of a window: seen over true, and mean error, share of the true one",
            {"seen_ratio": "ratio", "seen_error": "error"},
            SCENARIO_AXIS,
            where={"scheme": EDGE},
        ),
        Table(
            "By the time between two readings of the windows, in measured round trips: spread of rate "
            "over contract; timeouts of a flow in 180 s",
            {"spread": "spread", "timeouts": "timeouts"},
            Axis("interval", "Interval", INTERVALS),
            where={"part": "intervals"},
        ),
        Table(
            "By static WRED's thresholds: mean window, packets; use of the path; part of packets lost",
            {"mean_window": "window", "utilization": "use", "lost": "lost"},
            Axis("thresholds", "Thresholds", THRESHOLDS),
            where={"part": "thresholds"},
            digits=4,
        ),
        Table(
            "Rate of a flow on two paths that share a link of 30 Mbit/s, Mbit/s",
            {"throughput": ""},
            QUEUES,
            (PATHS,),
            where={"part": "round trips"},
            digits=2,
        ),
    ),
    plots=(
        _plot("spread", "Spread of rate over contract", "standard deviation over mean"),
        _plot("timeouts", "Timeouts of a flow in 180 s", "timeouts per flow"),
    ),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    extra=True,
    default_runs=RUNS,
)

"""The effect of each part: marker, drop rule, intervals, static thresholds; paths of unequal round trips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Table, Where, tables
from perhop.statistics.judging import above, below, near
from perhop.studies import judges
from perhop.studies.bouras import common
from perhop.studies.bouras.common import BASELINE, CAPACITY, EDGE, PROPOSED, SCHEME_NAMES, SETTING, TIMES
from perhop.studies.bouras.scenarios import QUEUE, SCENARIO_AXIS
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import Judge, Numbers, Side, differences, level, levels
from perhop.studies.sampling import MBPS, mean_mbps

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
CONTRACT_MBPS = 3.0
TOLERANCE = 0.1
"""Two paths get the same if their rates differ by at most this part."""
MORE = 1.5
"""A path gets "unfairly" more if it gets so many times the other's rate."""
RUNS = 8


def cell(scenario: int, scheme: str) -> dict[str, Any]:
    """The factors of one combination."""
    return {"part": "combinations", "scenario": scenario, "scheme": scheme}


def every(interval: str, scenario: int = 2) -> dict[str, Any]:
    """The factors of one interval."""
    return {"part": "intervals", "scenario": scenario, "scheme": PROPOSED, "interval": interval}


def static(thresholds: str) -> dict[str, Any]:
    """The factors of one set of static thresholds in scenario 2."""
    return {"part": "thresholds", "scenario": 2, "scheme": BASELINE, "thresholds": thresholds}


def trips(queues: str) -> dict[str, Any]:
    """The factors of the two paths in one queue or in two."""
    return {"part": "round trips", "queues": queues}


def build(
    factors: Factors, setting: common.Setting = SETTING, times: common.Times = TIMES
) -> Mapping[str, Any]:
    """One combination, interval or set of thresholds, or the two paths."""
    if factors["part"] == "round trips":
        return two_paths(str(factors["queues"]))
    if "interval" in factors:
        interval = str(factors["interval"])
        fixed = interval.endswith("ms")
        setting = replace(setting, **({"interval": interval} if fixed else {"round_trips": int(interval)}))
    if "thresholds" in factors:
        setting = replace(setting, thresholds=str(factors["thresholds"]))
    found = setting.scenario(int(factors["scenario"]), str(factors["scheme"]), times)
    named = factors["part"] != "combinations"
    return {**found, "title": f"{found['title']}: {factors['part']}"} if named else found


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
            "transport": {**common.SENDER, "packet": "1000B"},
            "profile": {"marker": "twam", "rate": f"{CONTRACT_MBPS:g}Mbps"},
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


def samples(
    factors: Factors, run: Run, setting: common.Setting = SETTING, times: common.Times = TIMES
) -> Iterator[Sample]:
    """Rates and windows, losses of OUT packets, what the edge sees; rates of the two paths."""
    if factors["part"] == "round trips":
        for path in ("near", "far"):
            yield Sample({**factors, "path": path}, "throughput", MBPS, mean_mbps(run, path))
        return
    yield from common.basics(dict(factors), run, setting, times)
    link = run.link("R1-R2")
    out = float(link["arrived"][1])
    for reason in ("early", "forced", "overflow"):
        lost = link["dropped"].get(reason)
        share = 0.0 if lost is None else float(lost[1]) / out
        yield Sample({**factors, "reason": reason}, "out_lost", "fraction", share, out)
    arrived = float(sum(link["arrived"]))
    dropped = sum(float(packets.sum()) for packets in link["dropped"].values())
    yield Sample(factors, "lost", "fraction", dropped / arrived, arrived)
    if factors["scheme"] == EDGE:
        estimate, seen = (common.windows(run, 20, column) for column in ("seen_packets", "cwnd_packets"))
        yield Sample(factors, "seen_ratio", "fraction", float(np.nanmean(estimate / seen)))
        yield Sample(factors, "seen_error", "fraction", float(np.nanmean(np.abs(estimate - seen) / seen)))


def effects(metric: str, pairs: Mapping[str, tuple[str, str]], scenarios: Sequence[int]) -> Numbers:
    """The change by a part in each scenario: the first scheme of each pair less the second."""
    named = {
        f"{CAPACITY[n]:g} Mbit/s, with {name}": (cell(n, a), cell(n, b))
        for n in scenarios
        for name, (a, b) in pairs.items()
    }
    return differences(metric, named).reads("{name}: {value}")


def marker_improves(scenarios: Sequence[int]) -> Judge:
    """Judge whether TWAM lowers the spread with either drop rule."""
    pairs = {"WRED": ("twam+wred", BASELINE), "DWRED": (PROPOSED, "tsw+dwred")}
    found = effects("spread", pairs, scenarios).all(below)
    return found.said("Spread of rate over contract, TWAM − TSW2CM: {:+.2}.")


def few_round_trips(scenarios: Sequence[int]) -> Judge:
    """Judge whether it does so also where the windows are read every one, two or four round trips."""
    other = {n: cell(n, "tsw+dwred") for n in scenarios}
    found = {
        n: differences("spread", {t: (every(t, n), other[n]) for t in FEW}).reads("{name}: {first}")
        for n in scenarios
    }
    text = "; ".join(
        f"{CAPACITY[n]:g} Mbit/s {{of_{n}:.2}}, under TSW2CM with DWRED: {{other_{n}:.2}}" for n in scenarios
    )
    shown = {f"of_{n}": found[n] for n in scenarios} | {
        f"other_{n}": level("spread", other[n]) for n in scenarios
    }
    statement = judges.grouped(found).all(below)
    return statement.said(
        f"Spread of rate over contract by round trips between two readings of the windows: {text}.", **shown
    )


def rule_reinforces(metric: str, words: str, side: Side) -> Judge:
    """Judge what dynamic WRED changes under TWAM, on both links."""
    found = effects(metric, {"TWAM": (PROPOSED, "twam+wred")}, SCENARIOS).all(side)
    return found.said(f"{words}, DWRED − WRED: {{:+}}.")


def fixed_parameters(schemes: Sequence[tuple[str, str]]) -> Judge:
    """Judge whether the second of each two schemes, static, uses less and is less fair on some link."""
    pairs = {
        f"{CAPACITY[n]:g} Mbit/s, {SCHEME_NAMES[static]}": (cell(n, dynamic), cell(n, static))
        for n in SCENARIOS
        for dynamic, static in schemes
    }
    uses, spreads = (differences(m, pairs).reads("{name}: {value}") for m in ("utilization", "spread"))
    return (uses.any(above) & spreads.any(below)).said(
        "Use of the path, dynamic − static: {:+}; spread of rate over contract: {spreads:+.2}.",
        spreads=spreads,
    )


def low_thresholds(low: str, high: str) -> Judge:
    """Judge whether the lower of two static thresholds drop more, and leave smaller windows."""
    drops, sizes = (
        judges.difference(metric, static(low), static(high)) for metric in ("lost", "mean_window")
    )

    def each(evidence: Evidence) -> str:
        return "; ".join(
            f"{t}: {100 * evidence.mean('lost', static(t)):.3f} % lost, mean window "
            f"{evidence.estimate('mean_window', static(t)).text(1)}, "
            f"use {evidence.mean('utilization', static(t)):.4f}"
            for t in (low, high)
        )

    return (drops.all(above) & sizes.all(below)).said("On 50 Mbit/s, {each}.", each=each)


def high_thresholds(high: str) -> Judge:
    """Judge whether high static thresholds drop a smaller part of OUT packets early than the stated."""
    stated, early = ({**static(thresholds), "reason": "early"} for thresholds in (STATED, high))
    lost = levels("out_lost", {STATED: stated, high: early}).scaled(lambda part: 100 * part)
    return (
        judges.difference("out_lost", early, stated)
        .all(below)
        .said("OUT packets that RED drops early, {lost:.3f}.", lost=lost.reads("{name}: {value} %", "; "))
    )


def of_paths(queues: str, side: Side, *bounds: float) -> Judge:
    """Judge the ratio of what the near and the far path get."""
    near_, far = ({**trips(queues), "path": path} for path in ("near", "far"))
    ratio = judges.of_runs({"": (lambda a, b: a / b, ("throughput", near_), ("throughput", far))}).reads(
        "{value}"
    )
    return ratio.all(side, *bounds).said(
        f"Rate of a flow, Mbit/s (each path's share is {CONTRACT_MBPS:g}): {{rates:.2}}; ratio {{:.2}}.",
        rates=levels("throughput", {"near": near_, "far": far}),
    )


def _plot(metric: str, title: str, y_label: str) -> Plot:
    schemes = Axis("scheme", "Scheme", {scheme: SCHEME_NAMES[scheme] for scheme in COMBINED})
    where: Where = {"part": "combinations", "scheme": COMBINED}
    return Plot(metric, title, "bars", metric, SCENARIO_AXIS, schemes, y_label, where=where)


MARKER_ALIKE = ((PROPOSED, "twam+wred"), ("tsw+dwred", BASELINE))

ABLATION = common.THIS.study(
    "ablation",
    title="Which part does what",
    source=f"{common.TITLE}, sections 3, 4, 6 and 7, and combinations that it does not separate",
    summary="TSW2CM or TWAM, with WRED or dynamic WRED; intervals; static thresholds; unequal round trips",
    cells=[
        *(cell(n, scheme) for n in SCENARIOS for scheme in (*reversed(COMBINED), EDGE)),
        *(every(interval) for interval in INTERVALS),
        *(every(interval, scenario=1) for interval in FEW),
        *(static(thresholds) for thresholds in THRESHOLDS),
        *(trips(q) for q in (TWO, ONE)),
    ],
    scenario=build,
    samples=samples,
    judges={
        "marker-improves-fairness": {
            "": marker_improves(SCENARIOS),
            "on 50 Mbit/s alone": marker_improves((2,)),
        },
        "few-round-trips": {"": few_round_trips(SCENARIOS), "on 50 Mbit/s alone": few_round_trips((2,))},
        "drop-rule-reinforces": {
            "fairness": rule_reinforces("spread", "Spread of rate over contract", below),
            "use of the path": rule_reinforces("utilization", "Use of the path", above),
        },
        "fixed-parameters": {
            "dynamic against static thresholds, marker alike": fixed_parameters(MARKER_ALIKE),
            "as the paper compares": fixed_parameters(((PROPOSED, BASELINE),)),
        },
        "low-thresholds": {
            "": low_thresholds(STATED, HIGHER),
            "against 320/1280": low_thresholds(STATED, HIGH),
            "10/40 against 40/160": low_thresholds("10/40", STATED),
        },
        "high-thresholds": {"": high_thresholds(HIGH), "160/640": high_thresholds(HIGHER)},
        "one-queue-unfair": judges.variants(
            lambda more: of_paths(ONE, above, more), {"": MORE, "a tenth more": 1.1, "twice": 2.0}
        ),
        "queue-each-fair": judges.variants(
            lambda apart: of_paths(TWO, near, 1, apart), {"": TOLERANCE, "5 %": 0.05, "20 %": 0.2}
        ),
        "rule-spares-timeouts": rule_reinforces("timeouts", "Timeouts of a flow", below),
    },
    tables=(
        *tables(
            common.SCHEMES,
            (SCENARIO_AXIS,),
            (
                "Spread of rate over contract; flows of ten that have their contract",
                {"spread": "spread", "contracts_met": "have it"},
                2,
            ),
            (
                "Mean window, packets; timeouts of a flow in 180 s",
                {"mean_window": "window", "timeouts": "timeouts"},
                2,
            ),
            (QUEUE, "queue", 2, {"link": "R1-R2"}),
            part="combinations",
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
            where={"part": "intervals", "scenario": 2},
        ),
        Table(
            "By static WRED's thresholds: mean window, packets; use of the path; part of packets lost",
            {"mean_window": "window", "utilization": "use", "lost": "lost"},
            Axis("thresholds", "Thresholds", THRESHOLDS),
            where={"part": "thresholds"},
            digits=4,
        ),
        *tables(
            QUEUES,
            (PATHS,),
            ("Rate of a flow on two paths that share a link of 30 Mbit/s, Mbit/s", "throughput", 2),
            part="round trips",
        ),
    ),
    plots=(
        _plot("spread", "Spread of rate over contract", "standard deviation over mean"),
        _plot("timeouts", "Timeouts of a flow in 180 s", "timeouts per flow"),
    ),
    extra=True,
    default_runs=RUNS,
)

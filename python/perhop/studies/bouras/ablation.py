"""Which part does what: marker against drop rule in all combinations; paths of unequal round trips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.judging import Judgement, by_interval
from perhop.studies.bouras.common import (
    BASELINE,
    PROPOSED,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SET_AXIS,
    SETS,
    SETTING,
    THIS,
    TITLE,
    basics,
)
from perhop.studies.paper import claims
from perhop.study import Axis, Plot, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.statistics import Estimate
    from perhop.study import Evidence, Factors

COMBINED = (BASELINE, "twam+wred", "tsw+dwred", PROPOSED)
CAPACITY = {1: 30.0, 2: 50.0}
SINCE_S = 20.0
ONE, TWO = "one queue", "two queues"
QUEUES = Axis("queues", "At R2", {ONE: "one queue", TWO: "a queue for each, WFQ"})
PATHS = Axis("path", "Path", {"near": "near, 40 ms", "far": "far, 160 ms"})
SCENARIOS = Axis("scenario", "Scenario", {1: "1 (30 Mbit/s)", 2: "2 (50 Mbit/s)"})
EACH = 5
SOLD = 3.0

STATEMENT = THIS.item("ablation")


def cell(scenario: int, scheme: str, contracts: str) -> dict[str, Any]:
    """The factors of one combination."""
    return {"part": "combinations", "scenario": scenario, "scheme": scheme, "set": contracts}


def trips(queues: str) -> dict[str, Any]:
    """The factors of the two paths in one queue or in two."""
    return {"part": "round trips", "queues": queues}


def build(factors: Factors) -> Mapping[str, Any]:
    """One combination, or the two paths."""
    if factors["part"] == "round trips":
        return two_paths(str(factors["queues"]))
    scenario, rates = int(factors["scenario"]), SETS[str(factors["set"])]
    title = f"Bouras and Sevasti, scenario {scenario}"
    return SETTING.scenario(title, str(factors["scheme"]), rates, CAPACITY[scenario])


def two_paths(queues: str) -> dict[str, Any]:
    """Five flows on each of two paths that share R2-R3; the far one has 60 ms more to go each way."""
    rule = SETTING.rule(PROPOSED, CAPACITY[1])
    queue: dict[str, Any] = rule
    if queues == TWO:
        entries = [{"name": n, "match": {"path": n}, "rate": "15Mbps", "rule": rule} for n in ("near", "far")]
        entries[-1].pop("match")
        queue = {"scheduler": "wfq", "queues": entries}
    control = {"interval": SETTING.interval}

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
        "warmup": f"{SINCE_S:g}s",
        "paths": {
            "near": {"via": ["R1", "R2", "R3"], "control": control},
            "far": {"via": ["R4", "R2", "R3"], "control": control},
        },
        "links": {
            "R1-R2": link("R1", "R2", 100, 5),
            "R4-R2": link("R4", "R2", 100, 65),
            "R2-R3": {**link("R2", "R3", CAPACITY[1], 10), "queue": queue},
        },
        "flows": [flows("near"), flows("far")],
    }


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and windows of a combination; rates of the two paths."""
    if factors["part"] == "round trips":
        for path in ("near", "far"):
            rate = float(np.mean(run.of_group(path, "throughput_bps"))) / 1e6
            yield Sample({**factors, "path": path}, "throughput", "Mbit/s", rate)
        return
    scenario = int(factors["scenario"])
    yield from basics(factors, run, SETS[str(factors["set"])], CAPACITY[scenario], SINCE_S)


def effects(evidence: Evidence, metric: str) -> dict[str, dict[tuple[int, str], Estimate]]:
    """What the marker changes with either drop rule, and the drop rule with either marker."""
    pairs = {
        "marker, with WRED": ("twam+wred", BASELINE),
        "marker, with DWRED": (PROPOSED, "tsw+dwred"),
        "drop rule, with TSW2CM": ("tsw+dwred", BASELINE),
        "drop rule, with TWAM": (PROPOSED, "twam+wred"),
    }
    return {
        name: {
            (n, s): evidence.difference(metric, cell(n, a, s), cell(n, b, s)) for n in CAPACITY for s in SETS
        }
        for name, (a, b) in pairs.items()
    }


def text_of(found: Mapping[str, Mapping[tuple[int, str], Estimate]], scenario: int) -> str:
    """`marker, with WRED: set A −0.24 ± 0.01, set C …; …`."""
    return "; ".join(
        f"{name}: "
        + ", ".join(f"set {s} {e.text(2, sign=True)}" for (n, s), e in by.items() if n == scenario)
        for name, by in found.items()
    )


def marker_separates(evidence: Evidence) -> Judgement:
    """On 50 Mbit/s the marker lowers the spread with either drop rule, by more than the drop rule does."""
    found = effects(evidence, "spread")
    by_marker = [
        e for name, by in found.items() if name.startswith("marker") for (n, _), e in by.items() if n == 2
    ]
    by_rule = [
        e for name, by in found.items() if name.startswith("drop") for (n, _), e in by.items() if n == 2
    ]
    least, most = min(-e.mean for e in by_marker), max(-e.mean for e in by_rule)
    return by_interval(
        [*by_marker, *by_rule],
        f"Spread of rate over contract on 50 Mbit/s, change by {text_of(found, 2)}.",
        holds=all(e.high < 0 for e in by_marker) and least > most,
    )


def marker_without_room(evidence: Evidence) -> Judgement:
    """On 30 Mbit/s, sold out, TWAM raises the spread for set A with either drop rule."""
    found = effects(evidence, "spread")
    by_marker = [by[1, "A"] for name, by in found.items() if name.startswith("marker")]
    return by_interval(
        by_marker,
        f"Spread of rate over contract on 30 Mbit/s, change by {text_of(found, 1)}.",
        holds=all(e.low > 0 for e in by_marker),
    )


def rule_spares_timeouts(evidence: Evidence) -> Judgement:
    """Dynamic WRED lowers the number of timeouts with either marker, on both links."""
    found = effects(evidence, "timeouts")
    by_rule = [e for name, by in found.items() if name.startswith("drop") for e in by.values()]
    return by_interval(
        by_rule,
        f"Timeouts of a flow, 30 Mbit/s, change by {text_of(found, 1)}. 50 Mbit/s: {text_of(found, 2)}.",
        holds=all(e.high < 0 for e in by_rule),
    )


def rule_fills_queues(evidence: Evidence) -> Judgement:
    """Dynamic WRED's queue is longer than 0.30 of the bandwidth-delay product; they quote 0.20 to 0.25."""
    key = {(n, s): {**cell(n, PROPOSED, s), "link": "R1-R2"} for n in CAPACITY for s in SETS}
    found = {k: evidence.estimate("queue", factors) for k, factors in key.items()}
    text = "; ".join(f"{CAPACITY[n]:g} Mbit/s, set {s}: {e.text(2)}" for (n, s), e in found.items())
    return by_interval(
        found.values(),
        f"Mean queue over the product, {text}.",
        holds=all(e.low > 0.30 for e in found.values()),
    )


def unequal_trips(evidence: Evidence) -> Judgement:
    """In one queue the near path gets more; with a queue each, both get their half."""
    found = {
        (q, p): evidence.estimate("throughput", {**trips(q), "path": p})
        for q in (ONE, TWO)
        for p in ("near", "far")
    }
    text = "; ".join(
        f"{q}: near {found[q, 'near'].text(2)}, far {found[q, 'far'].text(2)}" for q in (ONE, TWO)
    )
    apart, together = found[TWO, "near"].mean / found[TWO, "far"].mean, found[ONE, "near"]
    return by_interval(
        found.values(),
        f"Rate of a flow, Mbit/s (each path's share is {SOLD:g}), {text}.",
        holds=together.low > 1.5 * found[ONE, "far"].high and abs(apart - 1) <= 0.1,
    )


def _plot(metric: str, title: str, y_label: str) -> Plot:
    return Plot(
        id=metric,
        title=title,
        kind="bars",
        metric=metric,
        x=SET_AXIS,
        series=Axis("scheme", "Scheme", {scheme: SCHEME_NAMES[scheme] for scheme in COMBINED}),
        y_label=y_label,
        facet=Axis("scenario", "Scenario", {n: f"{rate:g} Mbit/s" for n, rate in CAPACITY.items()}),
        where={"part": "combinations"},
    )


ABLATION = Study(
    id="bouras-ablation",
    title="Which part does what",
    source=f"{TITLE}: combinations that it does not separate",
    summary="TSW2CM or TWAM, with WRED or dynamic WRED, on 30 and 50 Mbit/s; unequal round trips",
    cells=[
        *(cell(n, scheme, s) for n in CAPACITY for scheme in reversed(COMBINED) for s in SETS),
        *(trips(q) for q in (TWO, ONE)),
    ],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "marker-separates": marker_separates,
            "marker-without-room": marker_without_room,
            "rule-spares-timeouts": rule_spares_timeouts,
            "rule-fills-queues": rule_fills_queues,
            "unequal-trips": unequal_trips,
        },
    ),
    tables=(
        Table("Spread of rate over contract", {"spread": ""}, SCHEMES, (SCENARIOS, SET_AXIS)),
        Table(
            "Flows of ten that have their contract",
            {"contracts_met": ""},
            SCHEMES,
            (SCENARIOS, SET_AXIS),
            digits=1,
        ),
        Table("Mean window, packets", {"mean_window": ""}, SCHEMES, (SCENARIOS, SET_AXIS), digits=1),
        Table("Timeouts of a flow in 180 s", {"timeouts": ""}, SCHEMES, (SCENARIOS, SET_AXIS), digits=2),
        Table(
            "Mean queue of the first link, share of the bandwidth-delay product",
            {"queue": ""},
            SCHEMES,
            (SCENARIOS, SET_AXIS),
            where={"link": "R1-R2"},
            digits=2,
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

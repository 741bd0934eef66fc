"""Sentences of the paper that no figure shows: the choice of a service, starvation, silence, RED."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.judging import above, all_of, at_least, below, judge
from perhop.studies.hurley.common import (
    ABE,
    BETA,
    BLUE,
    BLUE_TRANSPORT,
    GREEN,
    GREEN_TRANSPORTS,
    LINK,
    RAP,
    RUNS,
    SETTING,
    THIS,
    TITLE,
    throughput,
    traffic,
    waits,
)
from perhop.studies.paper import claims
from perhop.study import Axis, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.judging import Judgement
    from perhop.runs import Run
    from perhop.study import Evidence, Factors

FLOWS = 10
CHOOSER = "chooser"
FLOOD_MBPS = 15
WHOLE = 0.99
"""A share of the link that counts as the whole of it."""
STARVED = 0.05
"""A share of what EDF gives below which blue counts as starved."""
MANY = 0.25
"""A share of blue's losses that counts as many."""

GREEN_CHOICE = "one source chooses green"
BLUE_CHOICE = "one source chooses blue"
EDF = "green flood, EDF"
PRIORITY = "green flood, priority"
BLUE_ALONE = "blue flood alone"
GREEN_ALONE = "green flood alone"
PAPERS_RED = "RED as published"
TYPICAL = "RED 5/15/0.02, weight 0.002"
RAISED = "alpha_t 14"
CASES = (
    GREEN_CHOICE,
    BLUE_CHOICE,
    EDF,
    PRIORITY,
    BLUE_ALONE,
    GREEN_ALONE,
    PAPERS_RED,
    TYPICAL,
    RAISED,
)
CASE_AXIS = Axis("case", "Case", {case: case for case in CASES})
CHANGES: Mapping[str, Mapping[str, Any]] = {
    # Later than any deadline of a run of 200 s: green always goes first.
    PRIORITY: {"deadline": "1000s"},
    # Floyd and Jacobson's own example of 1993, and ns's default.
    TYPICAL: {"thresholds": "5/15/0.02", "weight": 0.002},
    RAISED: {"target": 14.0},
}

STATEMENT = THIS.item("service")


def flood(mbps: float) -> dict[str, Any]:
    """A source that takes no notice of losses."""
    return {"udp": "cbr", "rate": f"{mbps:g}Mbps", "packet": "1000B"}


def build(factors: Factors) -> Mapping[str, Any]:
    """The flows of one case, under ABE."""
    case = str(factors["case"])
    setting = replace(SETTING, **CHANGES.get(case, {}))
    rap = GREEN_TRANSPORTS[RAP]
    green = setting.entry(GREEN, FLOWS, rap)
    blue = setting.entry(BLUE, FLOWS, BLUE_TRANSPORT)
    match case:
        case _ if case in {GREEN_CHOICE, BLUE_CHOICE}:
            service = GREEN if case == GREEN_CHOICE else BLUE
            one = setting.entry(service, 1, rap, name=CHOOSER)
            entries = [blue, setting.entry(GREEN, FLOWS - 1, rap), one]
        case _ if case in {EDF, PRIORITY}:
            entries = [blue, setting.entry(GREEN, 1, flood(FLOOD_MBPS))]
        case _ if case == BLUE_ALONE:
            entries = [setting.entry(BLUE, 1, flood(FLOOD_MBPS))]
        case _ if case == GREEN_ALONE:
            entries = [setting.entry(GREEN, 1, flood(FLOOD_MBPS))]
        case _:
            entries = [blue, green]
    return setting.network("Hurley and Le Boudec, beyond the figures", ABE, entries)


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """What the services get; what the source that chooses gets; how many losses are forced."""
    case = str(factors["case"])
    if case in {GREEN_CHOICE, BLUE_CHOICE}:
        yield Sample(factors, "chooser_rate", "Mbit/s", throughput(run, CHOOSER))
        yield Sample(factors, "chooser_jitter", "ms", 1e3 * float(run.of_group(CHOOSER, "jitter_s").mean()))
        return
    yield from traffic(factors, run)
    yield from waits(factors, run)
    counters = [run.link_class(LINK, service)["dropped"] for service in (BLUE, GREEN) if has(run, service)]
    dropped = {
        reason: sum(
            int(packets.sum()) for found in counters for name, packets in found.items() if name == reason
        )
        for reason in ("early", "forced", "overflow")
    }
    if of := sum(dropped.values()):
        forced = dropped["forced"] + dropped["overflow"]
        yield Sample(factors, "forced", "fraction", forced / of, of)
    if case in {PAPERS_RED, TYPICAL}:
        found = run.link_class(LINK, BLUE)["dropped"]
        blue = {name: int(packets.sum()) for name, packets in found.items()}
        of = sum(blue.values())
        share = (blue.get("forced", 0) + blue.get("overflow", 0)) / max(of, 1)
        yield Sample(factors, "forced_blue", "fraction", share, of)


def has(run: Run, service: str) -> bool:
    """Whether the run has flows of this service."""
    return any(group.name == service for group in run.groups)


def cell(case: str) -> dict[str, Any]:
    """The factors of one case."""
    return {"case": case}


def chooses_blue(evidence: Evidence) -> Judgement:
    """The same source gets more as blue than as green."""
    found = evidence.difference("chooser_rate", cell(BLUE_CHOICE), cell(GREEN_CHOICE))
    rates = [evidence.estimate("chooser_rate", cell(c)).text(3) for c in (BLUE_CHOICE, GREEN_CHOICE)]
    return judge(
        above(found),
        f"A RAP source among the others, Mbit/s: {rates[0]} as blue, {rates[1]} as green, difference "
        f"{found.text(3, sign=True)}.",
    )


def chooses_jitter(evidence: Evidence) -> Judgement:
    """The same source has more jitter as blue than as green."""
    found = evidence.difference("chooser_jitter", cell(BLUE_CHOICE), cell(GREEN_CHOICE))
    jitter = [evidence.estimate("chooser_jitter", cell(c)).text(2) for c in (BLUE_CHOICE, GREEN_CHOICE)]
    return judge(
        above(found),
        f"Its jitter by RFC 3550, ms: {jitter[0]} as blue, {jitter[1]} as green, difference "
        f"{found.text(2, sign=True)}.",
    )


def no_starvation(evidence: Evidence) -> Judgement:
    """Blue gets through under EDF, and next to nothing under priority."""
    edf, priority = (
        evidence.estimate("throughput", {**cell(case), "service": BLUE}) for case in (EDF, PRIORITY)
    )
    starved = evidence.difference(
        "throughput", {**cell(PRIORITY), "service": BLUE}, {**cell(EDF), "service": BLUE}
    )
    return judge(
        all_of(above(edf), below(starved, -(1 - STARVED) * edf.mean)),
        f"A blue flow beside {FLOOD_MBPS} Mbit/s of green that does not yield, Mbit/s: EDF {edf.text(4)}, "
        f"priority {priority.text(4)}.",
    )


def whole_link(evidence: Evidence) -> Judgement:
    """Each type alone fills the link."""
    found = {case: evidence.estimate("utilization", cell(case)) for case in (BLUE_ALONE, GREEN_ALONE)}
    text = ", ".join(f"{case} {e.text(4)}" for case, e in found.items())
    return judge(
        all_of(*(at_least(e, WHOLE) for e in found.values())),
        f"Share of the link used by {FLOOD_MBPS} Mbit/s that do not yield: {text}.",
    )


def typical_forces(evidence: Evidence) -> Judgement:
    """With typical parameters many of blue's losses are forced, and more than with the paper's."""
    found = {c: evidence.estimate("forced_blue", cell(c)) for c in (PAPERS_RED, TYPICAL)}
    total = {c: evidence.estimate("forced", cell(c)) for c in (PAPERS_RED, TYPICAL)}
    text = "; ".join(f"{c}: {found[c].text(3)} of blue's losses, {total[c].text(3)} of all" for c in found)
    difference = evidence.difference("forced_blue", cell(TYPICAL), cell(PAPERS_RED))
    return judge(all_of(above(difference), above(found[TYPICAL], MANY)), f"Forced: {text}.")


def typical_controls_less(evidence: Evidence) -> Judgement:
    """With typical parameters alpha_m lies farther from alpha_t."""
    target = BETA**2
    found = {c: evidence.estimate("alpha_m", cell(c)) for c in (PAPERS_RED, TYPICAL)}
    difference = evidence.difference("alpha_m", cell(TYPICAL), cell(PAPERS_RED))
    ratios = {c: evidence.estimate("ratio", cell(c)) for c in found}
    text = ", ".join(f"{c} {e.text(2)} (blue/green {ratios[c].text(2)})" for c, e in found.items())
    # Farther on the same side, or on the other: then it passes the target by more than twice the miss.
    miss = found[PAPERS_RED].mean - target
    if found[TYPICAL].mean < target:
        check = below(difference, -2 * max(miss, 0.0))
    else:
        check = above(difference, 2 * max(-miss, 0.0))
    return judge(check, f"alpha_m (alpha_t {target:g}): {text}.")


def raising_compensates(evidence: Evidence) -> Judgement:
    """A higher alpha_t raises the ratio towards beta."""
    difference = evidence.difference("ratio", cell(RAISED), cell(PAPERS_RED))
    before, after = (evidence.estimate("ratio", cell(c)) for c in (PAPERS_RED, RAISED))
    return judge(
        all_of(above(difference), below(before, BETA)),
        f"Blue over green (beta {BETA:g}): {before.text(2)} at alpha_t {BETA**2:g}, {after.text(2)} at 14.",
    )


SERVICE = Study(
    id="hurley-service",
    title="The service beyond the figures: choice, starvation, silence, RED's parameters",
    source=f"{TITLE}, abstract and sections 1 to 4",
    summary="one source that chooses; floods of one type; EDF and priority; typical RED; a higher alpha_t",
    cells=[cell(case) for case in CASES],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "blue-choice-gets-more": chooses_blue,
            "blue-choice-more-jitter": chooses_jitter,
            "no-starvation": no_starvation,
            "whole-link": whole_link,
            "typical-red-forces": typical_forces,
            "typical-red-controls-less": typical_controls_less,
            "raising-compensates": raising_compensates,
        },
    ),
    tables=(
        Table(
            "A RAP source that chooses: rate, Mbit/s, and jitter by RFC 3550, ms",
            {"chooser_rate": "rate", "chooser_jitter": "jitter"},
            CASE_AXIS,
            where={"case": (GREEN_CHOICE, BLUE_CHOICE)},
        ),
        Table(
            "Rate of a flow, Mbit/s; share of the link used",
            {"throughput": "rate"},
            CASE_AXIS,
            (Axis("service", "Service", {BLUE: "blue", GREEN: "green"}),),
        ),
        Table("Share of the link used", {"utilization": ""}, CASE_AXIS),
        Table(
            "Ten blue and ten green flows: throughputs, losses, and the shares of losses that are forced",
            {"ratio": "blue/green", "alpha_m": "alpha_m", "forced": "of all", "forced_blue": "of blue's"},
            CASE_AXIS,
            where={"case": (PAPERS_RED, TYPICAL, RAISED)},
            digits=2,
        ),
    ),
    plots=(),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    default_runs=RUNS,
)

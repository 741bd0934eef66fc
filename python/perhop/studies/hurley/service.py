"""Sentences of the paper that no figure shows: the choice of a service, starvation, silence, RED."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.show.declared import Axis, Table
from perhop.statistics.judging import above, all_of, at_least, below, judge
from perhop.studies.evidence import Sample
from perhop.studies.hurley.common import (
    ABE,
    BETA,
    BLUE,
    BLUE_TRANSPORT,
    FLAT,
    FORM_NAMES,
    FORMS,
    GREEN,
    GREEN_TRANSPORTS,
    LINK,
    MANY_RUNS,
    ONE_FIFO,
    RAP,
    SETTING,
    THIS,
    TITLE,
    Setting,
    each,
    services,
    throughput,
    traffic,
    waits,
)
from perhop.studies.paper import claims
from perhop.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.intervals import Estimate
    from perhop.statistics.judging import Check, Judgement
    from perhop.studies.evidence import Evidence

FLOWS = 10
CHOOSER = "chooser"
RENO = "reno"
CHOOSER_NAMES = {**FORM_NAMES, RENO: "TCP Reno"}
"""The source that chooses; beside TCP Reno the nine green ones are RAP."""
CHOOSERS = Axis("chooser", "The source", CHOOSER_NAMES)
FLOOD_MBPS = 15
GREEN_FLOOD = 1.25
"""A flood of green, of the link's rate: under plain priority it leaves nothing."""
WHOLE = 0.99
"""A share of the link that counts as the whole of it."""
STARVED = 0.5
"""A share of the seconds without any blue packet from which on blue counts as starved."""
SERVED = 0.05
"""A share of the seconds without any blue packet up to which blue counts as served."""
HARDLY = 0.1
"""A share of what green's wait grows by under flat best effort that counts as hardly any growth."""
WARM_UP_S = 10.0
MANY = 0.25
"""A share of blue's losses that counts as many."""

GREEN_CHOICE = "one source chooses green"
BLUE_CHOICE = "one source chooses blue"
EDF = "green flood, EDF"
PRIORITY = "green flood, priority"
EDF_ALIKE = "green flood, EDF, RED alike"
PRIORITY_ALIKE = "green flood, priority, RED alike"
BLUE_ALONE = "blue flood alone"
GREEN_ALONE = "green flood alone"
GREEN_SOURCES = "green sources alone"
GREEN_SOURCES_FLAT = "green sources alone, flat"
PAPERS_RED = "RED as published"
TYPICAL = "RED 5/15/0.02, weight 0.002"
TYPICAL_NS = "RED 5/15/0.1, weight 0.002"
RAISED = "alpha_t 14"
ONE_QUEUE = "green waits as long as blue"
FLAT_MIX = "flat"
ROOMY = "twice the room"
ROOMY_FLAT = "flat, twice the room"
CHOICES = (GREEN_CHOICE, BLUE_CHOICE)
FLOODS = (EDF, PRIORITY, EDF_ALIKE, PRIORITY_ALIKE, BLUE_ALONE, GREEN_ALONE)
SOURCES = (GREEN_SOURCES, GREEN_SOURCES_FLAT)
MIXES = (PAPERS_RED, TYPICAL, TYPICAL_NS, RAISED, ONE_QUEUE)
ROOMS = (FLAT_MIX, ROOMY, ROOMY_FLAT)
CASE_AXIS = Axis("case", "Case", {case: case for case in (*CHOICES, *FLOODS, *SOURCES, *MIXES, *ROOMS)})
DOUBLE: Mapping[str, Any] = {"thresholds": "0/80/0.2", "room": "120p"}
"""Twice the room: RED's maximum and the buffer."""
FIRST: Mapping[str, Any] = {"deadline": "1000s"}
"""Later than any deadline of a run of 200 s: green always goes first."""
CHANGES: Mapping[str, Mapping[str, Any]] = {
    PRIORITY: FIRST,
    PRIORITY_ALIKE: FIRST,
    # Floyd and Jacobson's own example of 1993; and what ns took by default.
    TYPICAL: {"thresholds": "5/15/0.02", "weight": 0.002},
    TYPICAL_NS: {"thresholds": "5/15/0.1", "weight": 0.002},
    RAISED: {"target": 14.0},
    ONE_QUEUE: ONE_FIFO,
    ROOMY: DOUBLE,
    ROOMY_FLAT: DOUBLE,
}
ALIKE = (EDF_ALIKE, PRIORITY_ALIKE)

STATEMENT = THIS.item("service")


def flood(mbps: float) -> dict[str, Any]:
    """A source that takes no notice of losses."""
    return {"udp": "cbr", "rate": f"{mbps:g}Mbps", "packet": "1000B"}


def cells() -> Iterator[dict[str, Any]]:
    """Every case, with each source that it concerns."""
    for chooser in CHOOSER_NAMES:
        for case in CHOICES:
            yield {"case": case, "chooser": chooser}
    for case in FLOODS:
        yield {"case": case}
    for form in FORM_NAMES:
        for case in (*SOURCES, *MIXES, *ROOMS):
            yield {"case": case, "form": form}


def build(factors: Factors) -> Mapping[str, Any]:
    """The flows of one case, under ABE unless it says otherwise."""
    case = str(factors["case"])
    setting = replace(SETTING, **CHANGES.get(case, {}))
    blue = setting.entry(BLUE, FLOWS, BLUE_TRANSPORT)
    scheme = FLAT if case in {GREEN_SOURCES_FLAT, FLAT_MIX, ROOMY_FLAT} else ABE
    if case in CHOICES:
        entries = [blue, *choosing(setting, case, str(factors["chooser"]))]
    elif case in {BLUE_ALONE, GREEN_ALONE}:
        service = BLUE if case == BLUE_ALONE else GREEN
        entries = [setting.entry(service, 1, flood(FLOOD_MBPS))]
    elif case in FLOODS:
        entries = [blue, setting.entry(GREEN, 1, flood(GREEN_FLOOD * setting.rate_mbps))]
    else:
        green = setting.entry(GREEN, FLOWS, GREEN_TRANSPORTS[str(factors["form"])])
        entries = [green] if case in SOURCES else [blue, green]
    made = setting.network("Hurley and Le Boudec", scheme, entries)
    return alike(made) if case in ALIKE else made


def choosing(setting: Setting, case: str, chooser: str) -> list[dict[str, Any]]:
    """Nine green sources, and the one that chooses."""
    others = GREEN_TRANSPORTS[RAP if chooser == RENO else chooser]
    own = BLUE_TRANSPORT if chooser == RENO else others
    service = GREEN if case == GREEN_CHOICE else BLUE
    return [setting.entry(GREEN, FLOWS - 1, others), setting.entry(service, 1, own, name=CHOOSER)]


def alike(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Put plain RED, which drops both services alike, before the scheduler of a scenario."""
    link = scenario["links"][LINK]
    rule = link["queue"]["rule"]
    red = {k: rule[k] for k in ("thresholds", "limit", "weight", "wait", "mean-packet")}
    return {
        **scenario,
        "links": {LINK: {**link, "queue": {**link["queue"], "rule": {"aqm": "red", **red}}}},
    }


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """What the services get; what the source that chooses gets; how many losses are forced."""
    case = str(factors["case"])
    if case in CHOICES:
        yield Sample(factors, "chooser_rate", "Mbit/s", throughput(run, CHOOSER))
        if factors["chooser"] != RENO:  # no jitter for TCP
            yield Sample(
                factors, "chooser_jitter", "ms", 1e3 * float(run.of_group(CHOOSER, "jitter_s").mean())
            )
        return
    yield from traffic(factors, run)
    yield from waits(factors, run)
    if BLUE in services(run):
        yield Sample(factors, "silent", "fraction", silent(run))
    dropped = [run.link_class(LINK, service)["dropped"] for service in services(run)]
    for metric, counted in (("forced", dropped), ("forced_blue", dropped[:1])):
        of = sum(count(by, "early", "forced", "overflow") for by in counted)
        if of:
            forced = sum(count(by, "forced", "overflow") for by in counted)
            yield Sample(factors, metric, "fraction", forced / of, of)


def count(dropped: Mapping[str, Any], *reasons: str) -> int:
    """How many packets a service lost for these reasons."""
    return sum(int(packets.sum()) for name, packets in dropped.items() if name in reasons)


def silent(run: Run) -> float:
    """Share of the seconds after the warm-up in which no blue flow receives anything."""
    series = run.raw["series"]
    blue = run.flows("group") == [group.name for group in run.groups].index(BLUE)
    received = np.asarray(series["throughput_bps"])[:, blue].sum(axis=1)
    return float(np.mean(received[np.asarray(series["time_s"]) > WARM_UP_S] == 0))


def cell(case: str) -> dict[str, Any]:
    """The factors of one case."""
    return {"case": case}


def chosen(case: str, chooser: str) -> dict[str, Any]:
    """The factors of one source's choice."""
    return {"case": case, "chooser": chooser}


def mixed(case: str, form: str) -> dict[str, Any]:
    """The factors of one case with one green source."""
    return {"case": case, "form": form}


def chooses(evidence: Evidence, metric: str, words: str, digits: int) -> Judgement:
    """Every source has more of something as blue than as green, where it is measured."""
    names = {name: text for name, text in CHOOSER_NAMES.items() if metric == "chooser_rate" or name != RENO}
    found = {
        name: evidence.difference(metric, chosen(BLUE_CHOICE, name), chosen(GREEN_CHOICE, name))
        for name in names
    }
    text = "; ".join(
        f"{names[name]} {evidence.mean(metric, chosen(BLUE_CHOICE, name)):.{digits}f} and "
        f"{evidence.mean(metric, chosen(GREEN_CHOICE, name)):.{digits}f}, difference "
        f"{e.text(digits, sign=True)}"
        for name, e in found.items()
    )
    return judge(all_of(*map(above, found.values())), f"One source's {words}, as blue and as green: {text}.")


def prevents_starvation(evidence: Evidence, edf: str, priority: str, starved: float = STARVED) -> Judgement:
    """In most seconds no blue packet gets through under priority, and in hardly any under EDF."""
    silence = {case: evidence.estimate("silent", cell(case)) for case in (edf, priority)}
    rates = {case: evidence.estimate("throughput", {**cell(case), "service": BLUE}) for case in silence}
    shown = [f"{name} {silence[case].text(3)}" for name, case in (("EDF", edf), ("priority", priority))]
    rated = [f"{name} {rates[case].text(4)}" for name, case in (("EDF", edf), ("priority", priority))]
    return judge(
        all_of(below(silence[edf], SERVED), above(silence[priority], starved)),
        f"Share of the seconds without a blue packet: {', '.join(shown)}; a blue flow's rate, Mbit/s: "
        f"{', '.join(rated)}.",
    )


def rate_kept(evidence: Evidence) -> Judgement:
    """With RED alike for both, a blue flow's rate under priority is below a twentieth of that under EDF."""
    edf = evidence.mean("throughput", {**cell(EDF_ALIKE), "service": BLUE})
    lost = evidence.difference(
        "throughput", {**cell(PRIORITY_ALIKE), "service": BLUE}, {**cell(EDF_ALIKE), "service": BLUE}
    )
    return judge(below(lost, -0.95 * edf), f"Priority − EDF, Mbit/s: {lost.text(4, sign=True)} of {edf:.4f}.")


def wait_bounded(evidence: Evidence) -> Judgement:
    """Behind ABE's admission, priority doubles the 99 % quantile of blue's wait."""
    edf, priority = (
        evidence.estimate("wait_p99", {**cell(case), "service": BLUE}) for case in (EDF, PRIORITY)
    )
    more = evidence.difference(
        "wait_p99", {**cell(PRIORITY), "service": BLUE}, {**cell(EDF), "service": BLUE}
    )
    return judge(
        above(more, edf.mean), f"99 % of blue's waits, ms: EDF {edf.text(0)}, priority {priority.text(0)}."
    )


def whole_link(evidence: Evidence) -> Judgement:
    """Each type alone fills the link."""
    found = {case: evidence.estimate("utilization", cell(case)) for case in (BLUE_ALONE, GREEN_ALONE)}
    text = ", ".join(f"{case} {e.text(4)}" for case, e in found.items())
    return judge(
        all_of(*(at_least(e, WHOLE) for e in found.values())),
        f"Share of the link used by {FLOOD_MBPS} Mbit/s that do not yield: {text}.",
    )


def sources_use_it(evidence: Evidence) -> Judgement:
    """The figures' green sources alone use what they use under flat best effort."""
    found = {
        form: evidence.difference("utilization", mixed(GREEN_SOURCES, form), mixed(GREEN_SOURCES_FLAT, form))
        for form in FORM_NAMES
    }
    return judge(
        all_of(*(at_least(e, WHOLE - 1) for e in found.values())),
        f"Share of the link used by ten green sources, ABE − flat: {each(found, 3, sign=True)}.",
    )


def grows(evidence: Evidence, metric: str, service: str, more: str, less: str) -> dict[str, Estimate]:
    """By how much a measure of a service grows with the room, by green source."""
    return {
        form: evidence.difference(
            metric, {**mixed(more, form), "service": service}, {**mixed(less, form), "service": service}
        )
        for form in FORM_NAMES
    }


def no_compromise(evidence: Evidence, share: float = HARDLY) -> Judgement:
    """With twice the room blue loses less under ABE, and green's wait hardly grows as it does when flat."""
    flat = grows(evidence, "wait_p99", GREEN, ROOMY_FLAT, FLAT_MIX)
    own = grows(evidence, "wait_p99", GREEN, ROOMY, PAPERS_RED)
    lost = grows(evidence, "loss", BLUE, ROOMY, PAPERS_RED)
    return judge(
        all_of(
            *map(above, flat.values()),
            *(below(e, share * flat[form].low) for form, e in own.items()),
            *map(below, lost.values()),
        ),
        "With twice the room the 99 % quantile of green's wait grows by, ms: "
        f"flat {each(flat, 1, sign=True)}, ABE {each(own, 1, sign=True)}; "
        f"blue's losses under ABE by {each(lost, 4, sign=True)}.",
    )


def of_mixes(evidence: Evidence, metric: str, case: str) -> dict[str, Estimate]:
    """A measure of one case with each green source."""
    return {form: evidence.estimate(metric, mixed(case, form)) for form in FORM_NAMES}


def typical_forces(
    evidence: Evidence, typical: str, many: float = MANY, metric: str = "forced_blue"
) -> Judgement:
    """With typical parameters many losses are forced, and more than with the paper's."""
    found = of_mixes(evidence, metric, typical)
    more = {f: evidence.difference(metric, mixed(typical, f), mixed(PAPERS_RED, f)) for f in FORM_NAMES}
    whose = "blue's" if metric == "forced_blue" else "all"
    return judge(
        all_of(*map(above, more.values()), *(above(e, many) for e in found.values())),
        f"Forced of {whose} losses: {each(found, 3)}; with the paper's parameters "
        f"{each(of_mixes(evidence, metric, PAPERS_RED), 3)}.",
    )


def typical_controls_less(evidence: Evidence, typical: str, by: float = 0.0) -> Judgement:
    """With typical parameters alpha_m lies farther from alpha_t, by so much."""
    target = BETA**2
    found, papers = (of_mixes(evidence, "alpha_m", case) for case in (typical, PAPERS_RED))
    checks = []
    for form, e in found.items():
        difference = evidence.difference("alpha_m", mixed(typical, form), mixed(PAPERS_RED, form))
        # Farther on the same side, or on the other: then it passes the target by more than twice the miss.
        miss = papers[form].mean - target
        if e.mean < target:
            checks.append(below(difference, -2 * max(miss, 0.0) - by))
        else:
            checks.append(above(difference, 2 * max(-miss, 0.0) + by))
    return judge(
        all_of(*checks),
        f"alpha_m (alpha_t {target:g}): {each(found, 2)}; with the paper's parameters {each(papers, 2)}.",
    )


def raising_compensates(evidence: Evidence) -> Judgement:
    """The shorter round trip lowers the ratio, and a higher alpha_t brings it back, with all sources."""
    lowered = {f: evidence.difference("ratio", mixed(ONE_QUEUE, f), mixed(PAPERS_RED, f)) for f in FORM_NAMES}
    raised = {f: evidence.difference("ratio", mixed(RAISED, f), mixed(ONE_QUEUE, f)) for f in FORM_NAMES}
    return judge(
        all_of(*map(above, lowered.values()), *map(at_least_zero, raised.values())),
        f"Blue over green: {each(of_mixes(evidence, 'ratio', PAPERS_RED), 2)}; with green's wait as long as "
        f"blue's {each(of_mixes(evidence, 'ratio', ONE_QUEUE), 2)}; with its own and alpha_t 14 "
        f"{each(of_mixes(evidence, 'ratio', RAISED), 2)}.",
    )


def at_least_zero(found: Estimate) -> Check:
    """The mean is not below zero."""
    return at_least(found, 0.0)


def raising_nears_beta(evidence: Evidence) -> Judgement:
    """The ratio with RAP is below beta at the stated alpha_t, and higher at the raised one."""
    before, after = (evidence.estimate("ratio", mixed(case, RAP)) for case in (PAPERS_RED, RAISED))
    difference = evidence.difference("ratio", mixed(RAISED, RAP), mixed(PAPERS_RED, RAP))
    return judge(
        all_of(above(difference), below(before, BETA)),
        f"Blue over green (beta {BETA:g}): {before.text(2)} at alpha_t {BETA**2:g}, {after.text(2)} at 14.",
    )


SERVICE = Study(
    id="hurley-service",
    title="The service beyond the figures: choice, starvation, silence, RED's parameters",
    source=f"{TITLE}, abstract and sections 1 to 4",
    summary="one source that chooses; floods, EDF and priority; typical RED; higher alpha_t; twice the room",
    cells=list(cells()),
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "blue-choice-gets-more": lambda e: chooses(e, "chooser_rate", "rate, Mbit/s", 3),
            "blue-choice-more-jitter": lambda e: chooses(e, "chooser_jitter", "jitter by RFC 3550, ms", 2),
            "no-starvation": {
                "the whole router": lambda e: prevents_starvation(e, EDF, PRIORITY),
                "its scheduler": lambda e: prevents_starvation(e, EDF_ALIKE, PRIORITY_ALIKE),
                "its scheduler, starved for a quarter of the time": lambda e: prevents_starvation(
                    e, EDF_ALIKE, PRIORITY_ALIKE, STARVED / 2
                ),
                "its scheduler, by rates": rate_kept,
                "the whole router, by blue's wait": wait_bounded,
            },
            "no-buffer-compromise": {
                "": no_compromise,
                "a twentieth of the growth": lambda e: no_compromise(e, HARDLY / 2),
                "a fifth of the growth": lambda e: no_compromise(e, 2 * HARDLY),
            },
            "whole-link": {"": whole_link, "by the figures' green sources": sources_use_it},
            "typical-red-forces": {
                "Floyd and Jacobson's example": lambda e: typical_forces(e, TYPICAL),
                "ns's parameters": lambda e: typical_forces(e, TYPICAL_NS),
                "the example, half of blue's losses": lambda e: typical_forces(e, TYPICAL, 2 * MANY),
                "the example, a quarter of all losses": lambda e: typical_forces(e, TYPICAL, metric="forced"),
                "ns's, an eighth of blue's losses": lambda e: typical_forces(e, TYPICAL_NS, MANY / 2),
            },
            "typical-red-controls-less": {
                "Floyd and Jacobson's example": lambda e: typical_controls_less(e, TYPICAL),
                "ns's parameters": lambda e: typical_controls_less(e, TYPICAL_NS),
                "the example, farther by a tenth of 9": lambda e: typical_controls_less(e, TYPICAL, 0.9),
                "ns's, farther by a tenth of 9": lambda e: typical_controls_less(e, TYPICAL_NS, 0.9),
            },
            "raising-compensates": {
                "": raising_compensates,
                "nearer to beta, with RAP": raising_nears_beta,
            },
        },
    ),
    tables=(
        Table(
            "One source that chooses: rate, Mbit/s, and jitter by RFC 3550, ms",
            {"chooser_rate": "rate", "chooser_jitter": "jitter"},
            CASE_AXIS,
            (CHOOSERS,),
            where={"case": CHOICES},
        ),
        Table(
            "Floods: rate of a flow, Mbit/s",
            {"throughput": ""},
            CASE_AXIS,
            (Axis("service", "Service", {BLUE: "blue", GREEN: "green"}),),
            where={"case": FLOODS},
        ),
        Table(
            "Floods of green: share of the seconds without a blue packet",
            {"silent": ""},
            CASE_AXIS,
            where={"case": (EDF, PRIORITY, EDF_ALIKE, PRIORITY_ALIKE)},
        ),
        Table(
            "Floods of green: the 99 % quantile of blue's wait, ms",
            {"wait_p99": ""},
            CASE_AXIS,
            where={"case": (EDF, PRIORITY, EDF_ALIKE, PRIORITY_ALIKE), "service": BLUE},
            digits=0,
        ),
        Table("Share of the link used by floods", {"utilization": ""}, CASE_AXIS, where={"case": FLOODS}),
        Table(
            "Share of the link used by ten green sources alone",
            {"utilization": ""},
            CASE_AXIS,
            (FORMS,),
            where={"case": SOURCES},
        ),
        *(
            Table(
                f"Ten blue and ten green flows, and room: {title}",
                {metric: ""},
                CASE_AXIS,
                (FORMS,),
                where={"case": (PAPERS_RED, *ROOMS), "service": service},
                digits=digits,
            )
            for metric, service, digits, title in (
                ("wait_p99", GREEN, 1, "the 99 % quantile of green's wait, ms"),
                ("loss", BLUE, 3, "blue's losses, share"),
            )
        ),
        *(
            Table(
                f"Ten blue and ten green flows: {title}",
                {metric: ""},
                CASE_AXIS,
                (FORMS,),
                where={"case": MIXES},
                digits=2,
            )
            for metric, title in (
                ("ratio", "blue over green throughput (beta 3)"),
                ("alpha_m", "green over blue losses (alpha_t 9)"),
                ("forced_blue", "share of blue's losses that are forced"),
                ("forced", "share of all losses that are forced"),
            )
        ),
    ),
    plots=(),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    default_runs=MANY_RUNS,
)

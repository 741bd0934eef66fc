"""Sentences of the paper that no figure shows: the choice of a service, starvation, silence, RED."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factor, Factors, Table, tables
from perhop.statistics.judging import Check, above, all_of, at_least, below
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.hurley import common
from perhop.studies.hurley.common import ABE, BETA, BLUE, FLAT, FORM_NAMES, FORMS, GREEN, LINK, RAP, SETTING
from perhop.studies.judges import Judge, difference, differences, level, levels, stated, variants
from perhop.studies.sampling import mean_mbps

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
OF_GREEN = FLOODS[:4]
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
    ONE_QUEUE: common.ONE_FIFO,
    ROOMY: DOUBLE,
    ROOMY_FLAT: DOUBLE,
}
ALIKE = (EDF_ALIKE, PRIORITY_ALIKE)


def flood(mbps: float) -> dict[str, Any]:
    """A source that takes no notice of losses."""
    return {"udp": "cbr", "rate": f"{mbps:g}Mbps", "packet": "1000B"}


def cells() -> Iterator[dict[str, Any]]:
    """Every case, with each source that it concerns."""
    yield from (cell(case, chooser=chooser) for chooser in CHOOSER_NAMES for case in CHOICES)
    yield from (cell(case) for case in FLOODS)
    yield from (cell(case, form=form) for form in FORM_NAMES for case in (*SOURCES, *MIXES, *ROOMS))


def build(factors: Factors) -> Mapping[str, Any]:
    """The flows of one case, under ABE unless it says otherwise."""
    case = str(factors["case"])
    setting = replace(SETTING, **CHANGES.get(case, {}))
    blue = setting.entry(BLUE, FLOWS, common.BLUE_TRANSPORT)
    scheme = FLAT if case in {GREEN_SOURCES_FLAT, FLAT_MIX, ROOMY_FLAT} else ABE
    if case in CHOICES:
        entries = [blue, *choosing(setting, case, str(factors["chooser"]))]
    elif case in {BLUE_ALONE, GREEN_ALONE}:
        service = BLUE if case == BLUE_ALONE else GREEN
        entries = [setting.entry(service, 1, flood(FLOOD_MBPS))]
    elif case in FLOODS:
        entries = [blue, setting.entry(GREEN, 1, flood(GREEN_FLOOD * setting.rate_mbps))]
    else:
        green = setting.entry(GREEN, FLOWS, common.GREEN_TRANSPORTS[str(factors["form"])])
        entries = [green] if case in SOURCES else [blue, green]
    made = setting.network("Hurley and Le Boudec", scheme, entries)
    return alike(made) if case in ALIKE else made


def choosing(setting: common.Setting, case: str, chooser: str) -> list[dict[str, Any]]:
    """Nine green sources, and the one that chooses."""
    others = common.GREEN_TRANSPORTS[RAP if chooser == RENO else chooser]
    own = common.BLUE_TRANSPORT if chooser == RENO else others
    service = GREEN if case == GREEN_CHOICE else BLUE
    return [setting.entry(GREEN, FLOWS - 1, others), setting.entry(service, 1, own, name=CHOOSER)]


def alike(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Put plain RED, which drops both services alike, before the scheduler of a scenario."""
    link = scenario["links"][LINK]
    rule = link["queue"]["rule"]
    red = {k: rule[k] for k in ("thresholds", "limit", "weight", "wait", "mean-packet")}
    queue = {**link["queue"], "rule": {"aqm": "red", **red}}
    return {**scenario, "links": {LINK: {**link, "queue": queue}}}


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and waits of the services and of the source that chooses; the share of losses that are forced."""
    if factors["case"] in CHOICES:
        yield Sample(factors, "chooser_rate", "Mbit/s", mean_mbps(run, CHOOSER))
        if factors["chooser"] != RENO:  # no jitter for TCP
            jitter = 1e3 * float(run.of_group(CHOOSER, "jitter_s").mean())
            yield Sample(factors, "chooser_jitter", "ms", jitter)
        return
    yield from common.traffic(factors, run)
    yield from common.waits(factors, run)
    if BLUE in common.services(run):
        yield Sample(factors, "silent", "fraction", silent(run))
    dropped = [run.link_class(LINK, service)["dropped"] for service in common.services(run)]
    for metric, counted in (("forced", dropped), ("forced_blue", dropped[:1])):
        of = sum(count(by, "early", "forced", "overflow") for by in counted)
        if of:
            forced = sum(count(by, "forced", "overflow") for by in counted)
            yield Sample(factors, metric, "fraction", forced / of, of)


def count(dropped: Mapping[str, Any], *reasons: str) -> int:
    """Return how many packets a service lost for these reasons."""
    return sum(int(packets.sum()) for name, packets in dropped.items() if name in reasons)


def silent(run: Run) -> float:
    """Share of the seconds after the warm-up in which no blue flow receives anything."""
    series = run.raw["series"]
    received = np.asarray(series["throughput_bps"])[:, common.of_service(run, BLUE)].sum(axis=1)
    return float(np.mean(received[np.asarray(series["time_s"]) > WARM_UP_S] == 0))


def cell(case: str, **more: Factor) -> dict[str, Any]:
    """The factors of a case, with a chooser or a green source where it has one, and of its numbers."""
    return {"case": case, **more}


def of(case: str, **more: Factor) -> Callable[[str], Factors]:
    """The factors of a number of one case, for each green source."""
    return lambda form: cell(case, form=form, **more)


def chooses(metric: str, words: str, digits: int) -> Judge:
    """Judge whether every source has more of something as blue than as green, where it is measured."""
    pairs = {
        text: (cell(BLUE_CHOICE, chooser=name), cell(GREEN_CHOICE, chooser=name))
        for name, text in CHOOSER_NAMES.items()
        if metric == "chooser_rate" or name != RENO
    }
    one = f"{{name}} {{first:.{digits}f}} and {{second:.{digits}f}}, difference {{value:+.{digits}}}"
    found = differences(metric, pairs).reads(one, "; ")
    return found.all(above).said(f"One source's {words}, as blue and as green: {{}}.")


def prevents_starvation(edf: str, priority: str, starved: float = STARVED) -> Judge:
    """Judge whether most seconds pass without a blue packet under priority, and hardly any under EDF."""
    names = {"EDF": edf, "priority": priority}
    silent, served = level("silent", cell(priority)), level("silent", cell(edf))
    return (served.all(below, SERVED) & silent.all(above, starved)).said(
        "Share of the seconds without a blue packet: {shares}; a blue flow's rate, Mbit/s: {rates:.4}.",
        shares=levels("silent", {name: cell(case) for name, case in names.items()}),
        rates=levels("throughput", {name: cell(case, service=BLUE) for name, case in names.items()}),
    )


def rate_kept() -> Judge:
    """Judge whether, with RED alike, priority gives a blue flow less than a twentieth of what EDF gives."""
    edf = level("throughput", cell(EDF_ALIKE, service=BLUE))
    lost = difference("throughput", cell(PRIORITY_ALIKE, service=BLUE), cell(EDF_ALIKE, service=BLUE))
    return lost.all(below, edf.bound(lambda found: -0.95 * found.mean)).said(
        "Priority − EDF, Mbit/s: {:+.4} of {edf:.4f}.", edf=edf
    )


def wait_bounded() -> Judge:
    """Judge whether behind ABE's admission priority doubles the 99 % quantile of blue's wait."""
    both = levels("wait_p99", {"EDF": cell(EDF, service=BLUE), "priority": cell(PRIORITY, service=BLUE)})
    more = difference("wait_p99", cell(PRIORITY, service=BLUE), cell(EDF, service=BLUE))
    return more.all(above, both.only("EDF").bound()).said("99 % of blue's waits, ms: {both:.0}.", both=both)


def whole_link() -> Judge:
    """Judge whether each type alone fills the link."""
    found = levels("utilization", {case: cell(case) for case in (BLUE_ALONE, GREEN_ALONE)})
    return found.all(at_least, WHOLE).said(
        f"Share of the link used by {FLOOD_MBPS} Mbit/s that do not yield: {{:.4}}."
    )


def sources_use_it() -> Judge:
    """Judge whether the figures' green sources alone use what they use under flat best effort."""
    found = common.changes("utilization", of(GREEN_SOURCES), of(GREEN_SOURCES_FLAT)).all(at_least, WHOLE - 1)
    return found.said("Share of the link used by ten green sources, ABE − flat: {:+}.")


def no_compromise(share: float) -> Judge:
    """Judge whether with twice the room blue loses less, and green's wait hardly grows."""
    flat = common.changes("wait_p99", of(ROOMY_FLAT, service=GREEN), of(FLAT_MIX, service=GREEN))
    own = common.changes("wait_p99", of(ROOMY, service=GREEN), of(PAPERS_RED, service=GREEN))
    lost = common.changes("loss", of(ROOMY, service=BLUE), of(PAPERS_RED, service=BLUE))

    hardly = own.all(below, flat.bound(lambda grown: share * grown.low))
    return (flat.all(above) & hardly & lost.all(below)).said(
        "With twice the room the 99 % quantile of green's wait grows by, ms: flat {:+.1}, ABE {own:+.1}; "
        "blue's losses under ABE by {lost:+.4}.",
        own=own,
        lost=lost,
    )


def typical_forces(typical: str, many: float = MANY, metric: str = "forced_blue") -> Judge:
    """Judge whether with typical parameters many losses are forced, and more than with the paper's."""
    whose = "blue's" if metric == "forced_blue" else "all"
    more = common.changes(metric, of(typical), of(PAPERS_RED)).all(above)
    return (common.by_form(metric, of(typical)).all(above, many) & more).said(
        f"Forced of {whose} losses: {{}}; with the paper's parameters {{papers}}.",
        papers=common.by_form(metric, of(PAPERS_RED)),
    )


def typical_controls_less(typical: str, by: float = 0.0) -> Judge:
    """Judge whether with typical parameters alpha_m lies farther from alpha_t, by so much."""
    target = BETA**2
    found, papers = (common.by_form("alpha_m", of(case)) for case in (typical, PAPERS_RED))
    apart = common.changes("alpha_m", of(typical), of(PAPERS_RED))

    def farther(evidence: Evidence) -> Check:
        now, before, change = found(evidence), papers(evidence), apart(evidence)
        checks = []
        for name, e in now.items():
            # Farther on the same side, or on the other: then it passes the target by twice the miss.
            miss = before[name].mean - target
            if e.mean < target:
                checks.append(below(change[name], -2 * max(miss, 0.0) - by))
            else:
                checks.append(above(change[name], 2 * max(-miss, 0.0) + by))
        return all_of(*checks)

    return stated(farther).said(
        f"alpha_m (alpha_t {target:g}): {{found:.2}}; with the paper's parameters {{papers:.2}}.",
        found=found,
        papers=papers,
    )


def raising_compensates() -> Judge:
    """Judge whether the shorter round trip lowers the ratio, and a higher alpha_t brings it back."""
    lowered = common.changes("ratio", of(ONE_QUEUE), of(PAPERS_RED)).all(above)
    raised = common.changes("ratio", of(RAISED), of(ONE_QUEUE)).all(at_least, 0.0)
    return (lowered & raised).said(
        "Blue over green: {stated:.2}; with green's wait as long as blue's {one_queue:.2}; with its own and "
        "alpha_t 14 {raised:.2}.",
        stated=common.by_form("ratio", of(PAPERS_RED)),
        one_queue=common.by_form("ratio", of(ONE_QUEUE)),
        raised=common.by_form("ratio", of(RAISED)),
    )


def raising_nears_beta() -> Judge:
    """Judge whether the ratio with RAP is below beta at the stated alpha_t, and higher at the raised one."""
    before, after = (cell(case, form=RAP) for case in (PAPERS_RED, RAISED))
    found = difference("ratio", after, before).reads(
        f"{{second:.2}} at alpha_t {BETA**2:g}, {{first:.2}} at 14"
    )
    return (found.all(above) & level("ratio", before).all(below, BETA)).said(
        f"Blue over green (beta {BETA:g}): {{}}."
    )


TEN_AND_TEN = "Ten blue and ten green flows"

SERVICE = common.THIS.study(
    "service",
    title="The service beyond the figures: choice, starvation, silence, RED's parameters",
    source=f"{common.TITLE}, abstract and sections 1 to 4",
    summary="one source that chooses; floods, EDF and priority; typical RED; higher alpha_t; twice the room",
    cells=list(cells()),
    scenario=build,
    samples=samples,
    judges={
        "blue-choice-gets-more": chooses("chooser_rate", "rate, Mbit/s", 3),
        "blue-choice-more-jitter": chooses("chooser_jitter", "jitter by RFC 3550, ms", 2),
        "no-starvation": {
            "the whole router": prevents_starvation(EDF, PRIORITY),
            "its scheduler": prevents_starvation(EDF_ALIKE, PRIORITY_ALIKE),
            "its scheduler, starved for a quarter of the time": prevents_starvation(
                EDF_ALIKE, PRIORITY_ALIKE, STARVED / 2
            ),
            "its scheduler, by rates": rate_kept(),
            "the whole router, by blue's wait": wait_bounded(),
        },
        "no-buffer-compromise": variants(
            no_compromise,
            {"": HARDLY, "a twentieth of the growth": HARDLY / 2, "a fifth of the growth": 2 * HARDLY},
        ),
        "whole-link": {"": whole_link(), "by the figures' green sources": sources_use_it()},
        "typical-red-forces": {
            "Floyd and Jacobson's example": typical_forces(TYPICAL),
            "ns's parameters": typical_forces(TYPICAL_NS),
            "the example, half of blue's losses": typical_forces(TYPICAL, 2 * MANY),
            "the example, a quarter of all losses": typical_forces(TYPICAL, metric="forced"),
            "ns's, an eighth of blue's losses": typical_forces(TYPICAL_NS, MANY / 2),
        },
        "typical-red-controls-less": {
            "Floyd and Jacobson's example": typical_controls_less(TYPICAL),
            "ns's parameters": typical_controls_less(TYPICAL_NS),
            "the example, farther by a tenth of 9": typical_controls_less(TYPICAL, 0.9),
            "ns's, farther by a tenth of 9": typical_controls_less(TYPICAL_NS, 0.9),
        },
        "raising-compensates": {
            "": raising_compensates(),
            "nearer to beta, with RAP": raising_nears_beta(),
        },
    },
    tables=(
        Table(
            "One source that chooses: rate, Mbit/s, and jitter by RFC 3550, ms",
            {"chooser_rate": "rate", "chooser_jitter": "jitter"},
            CASE_AXIS,
            (CHOOSERS,),
            where={"case": CHOICES},
        ),
        *tables(
            CASE_AXIS,
            (common.SERVICES,),
            ("Floods: rate of a flow, Mbit/s", "throughput", 3, {"case": FLOODS}),
        ),
        *tables(
            CASE_AXIS,
            (),
            ("Floods of green: share of the seconds without a blue packet", "silent", 3, {"case": OF_GREEN}),
            (
                "Floods of green: the 99 % quantile of blue's wait, ms",
                "wait_p99",
                0,
                {"case": OF_GREEN, "service": BLUE},
            ),
            ("Share of the link used by floods", "utilization", 3, {"case": FLOODS}),
        ),
        *tables(
            CASE_AXIS,
            (FORMS,),
            ("Share of the link used by ten green sources alone", "utilization", 3, {"case": SOURCES}),
        ),
        *tables(
            CASE_AXIS,
            (FORMS,),
            (
                f"{TEN_AND_TEN}, and room: the 99 % quantile of green's wait, ms",
                "wait_p99",
                1,
                {"service": GREEN},
            ),
            (f"{TEN_AND_TEN}, and room: blue's losses, share", "loss", 3, {"service": BLUE}),
            case=(PAPERS_RED, *ROOMS),
        ),
        *tables(
            CASE_AXIS,
            (FORMS,),
            (f"{TEN_AND_TEN}: blue over green throughput (beta 3)", "ratio", 2),
            (f"{TEN_AND_TEN}: green over blue losses (alpha_t 9)", "alpha_m", 2),
            (f"{TEN_AND_TEN}: share of blue's losses that are forced", "forced_blue", 2),
            (f"{TEN_AND_TEN}: share of all losses that are forced", "forced", 2),
            case=MIXES,
        ),
    ),
    plots=(),
    default_runs=common.MANY_RUNS,
)

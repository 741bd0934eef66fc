"""For which mixes of congestion controls does a profile hold under each rule?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perhop.measures.run import Run
from perhop.plurals import counted
from perhop.show.declared import Axis, Factors, Plot, Row, Table
from perhop.statistics.judging import Check, Judgement, above, all_of, at_least, below, judge
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import FEW, Judge, Numbers, difference, differences, failing, grouped, levels
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.today import common
from perhop.studies.today.common import BBR3, COLORLESS, CONTROL_NAMES, CUBIC, NEWRENO, PRAGUE, SENDERS, WFQ

DROP_TAIL, RIO, RI_PLUS_O = "drop-tail", "rio", "rio-plus-out"
INVERSE, THREE_DROP, TWAM = "inverse-rate", "three-drop", "twam+dwred"
RULE_NAMES = {
    RIO: "RIO",
    RI_PLUS_O: "RI+O",
    THREE_DROP: "three-drop",
    INVERSE: "inverse-rate",
    TWAM: "TWAM + DWRED",
    DROP_TAIL: "drop-tail",
    **common.COLORLESS_NAMES,
    WFQ: "WFQ, two queues",
}
RULES = Axis("rule", "Rule", RULE_NAMES)
READ_NOTHING = (DROP_TAIL, *COLORLESS)
ASSURED, BEST_EFFORT = "assured", "best effort"
ASSURED_AXIS = Axis("assured", "Assured flows", {c: f"assured: {name}" for c, name in CONTROL_NAMES.items()})
ASSURED_SHORT = Axis("assured", "Assured flows", CONTROL_NAMES)
OTHERS_AXIS = Axis("others", "Best effort", CONTROL_NAMES)

CAPACITY_MBPS = 10.0
PROFILE_MBPS = 1.0
FLOWS = {ASSURED: 5, BEST_EFFORT: 10}
PACKET = 1000
LIMIT = "200p"


def queue(rule: str, *, ecn: bool) -> dict[str, Any]:
    """The bottleneck's queue: RIO's thresholds are Yeom and Reddy's, RI+O's OUT set is Kim's."""
    if rule in common.TODAY_NAMES:
        return common.today(rule, LIMIT, {"AF11": PROFILE_MBPS * FLOWS[ASSURED]}, PACKET, ecn=ecn)
    if rule == DROP_TAIL:
        return {"aqm": DROP_TAIL, "limit": LIMIT}
    sizes = {"limit": LIMIT, "mean-packet": f"{PACKET}B"}
    if rule == TWAM:
        return common.marking({"aqm": "dwred", "out": "40/160/0.1", **sizes}, ecn=ecn)
    thresholds = {"in": "50/100/0.02", "total": "20/40/0.5"}
    if rule == RI_PLUS_O:
        thresholds["out"] = "10/30/0.1"
    if rule == THREE_DROP:
        thresholds = {"in": thresholds["in"], "out-in": "30/50/0.5", "out-out": "20/40/0.5"}
        return common.marking({"aqm": "rio-three", **thresholds, **sizes}, ecn=ecn)
    return common.marking({"aqm": rule, **thresholds, **sizes}, ecn=ecn)


def meter(rule: str) -> dict[str, Any]:
    """The profile of an assured flow."""
    marker = {TWAM: "twam", THREE_DROP: "three-precedence"}.get(rule, "tsw")
    return {"marker": marker, "rate": f"{PROFILE_MBPS:g}Mbps"}


def build(factors: Factors) -> Mapping[str, Any]:
    """Five assured flows with one kind of senders, and ten best-effort flows with another."""
    rule = str(factors["rule"])
    senders = {ASSURED: str(factors["assured"]), BEST_EFFORT: str(factors["others"])}
    flows = []
    for name, control in senders.items():
        flow: dict[str, Any] = {"name": name, "count": FLOWS[name], **common.sender(control, PACKET)}
        flow |= {"access": {"rate": "100Mbps", "delay": "1ms"}, "start": "0s..1s"}
        flow |= {"path": "lsp"} if rule == TWAM else {"from": "edge", "to": "core"}
        if name == ASSURED:
            flow |= {"dscp": "AF11"} if rule == WFQ else {"profile": meter(rule)}
        elif rule == THREE_DROP:
            flow["color"] = "red"  # best effort is OUT-OUT
        flows.append(flow)
    link: dict[str, Any] = {"from": "edge", "to": "core", "rate": f"{CAPACITY_MBPS:g}Mbps", "delay": "18ms"}
    link["queue"] = queue(rule, ecn=PRAGUE in senders.values())
    made: dict[str, Any] = {
        "title": "A profile and a mix of congestion controls",
        "duration": "50s",
        "warmup": "10s",
    }
    made |= {"links": {"bottleneck": link}, "flows": flows}
    if rule == TWAM:
        made["paths"] = {"lsp": {"via": ["edge", "core"], "control": {"interval": "measured"}}}
    return made


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates over the profile, best effort's rate, and the bottleneck's waiting time, losses and marks."""
    rates = np.asarray(run.of_group(ASSURED, "throughput_bps")) / 1e6
    yield Sample(factors, "over_profile", "of the profile", float(rates.mean()) / PROFILE_MBPS)
    yield Sample(factors, "worst_flow", "of the profile", float(rates.min()) / PROFILE_MBPS)
    yield Sample(factors, "others_rate", MBPS, mean_mbps(run, BEST_EFFORT))
    total = float(np.sum(run.flows("throughput_bps"))) / 1e6
    yield Sample(factors, "utilization", "fraction", total / CAPACITY_MBPS)
    yield from common.link_samples(factors, run, "bottleneck")


def mix(rule: str, assured: str, others: str) -> dict[str, Any]:
    """The factors of a cell."""
    return {"rule": rule, "assured": assured, "others": others}


MIXES = tuple(itertools.product(SENDERS, SENDERS))
SAME = tuple((control, control) for control in SENDERS)


def mix_name(rule: str, assured: str, others: str) -> str:
    """Return how a cell reads."""
    return f"{RULE_NAMES[rule]}, {CONTROL_NAMES[assured]} beside {CONTROL_NAMES[others]}"


def held(evidence: Evidence, rule: str, mixes: Iterable[tuple[str, str]] = MIXES) -> list[Check]:
    """Whether the profile holds in each of these mixes."""
    return [at_least(found, common.KEPT) for found in over_profile(rule, mixes)(evidence).values()]


def summaries(evidence: Evidence) -> Iterator[Row]:
    """For each rule and kind of assured flows: in how many of the four mixes the profile holds, and of 16."""
    for rule in RULE_NAMES:
        whole = 0
        for assured in SENDERS:
            checks = held(evidence, rule, [(assured, others) for others in SENDERS])
            count = sum(check.holds is True for check in checks)
            whole += count
            yield Row({"rule": rule, "assured": assured}, "mixes", "of 4", None, count, None, evidence.runs)
        yield Row({"rule": rule, "assured": "all"}, "mixes", "of 4", None, whole, None, evidence.runs)


def over_profile(rule: str, mixes: Iterable[tuple[str, str]]) -> Numbers:
    """The rate of assured flows over the profile in each of these mixes."""
    return levels("over_profile", {mix_name(rule, *one): mix(rule, *one) for one in mixes})


def holds(rules: Sequence[str], mixes: Sequence[tuple[str, str]], *, kept: bool = True) -> Judge:
    """Judge whether the profile holds (or fails) in each of these mixes under each of these rules."""
    count = len(rules) * len(mixes)
    shown = "{rates:.2}; " if count <= FEW else ""
    found = levels("over_profile", {mix_name(r, *m): mix(r, *m) for r in rules for m in mixes})
    return found.all(at_least if kept else below, common.KEPT).said(
        f"{{held}} of {counted(count, 'mix', 'mixes')}; {shown}{{failing:against it}}.",
        rates=grouped({rule: over_profile(rule, mixes) for rule in rules}, "{all}"),
    )


def most(rules: Iterable[str], limit: int) -> Judge:
    """A claim that under each of these rules the profile holds in at most so many of the 16 mixes."""
    listed = tuple(rules)

    def judged(evidence: Evidence) -> Judgement:
        checks, counts = {}, []
        for rule in listed:
            found = held(evidence, rule)
            sure = sum(one.holds is True for one in found)
            unsure = sum(one.holds is None for one in found)
            state = False if sure > limit else True if sure + unsure <= limit else None
            checks[RULE_NAMES[rule]] = Check(state)
            counts.append(f"{RULE_NAMES[rule]} {sure}" + (f" (open: {unsure})" if unsure else ""))
        return judge(
            all_of(*checks.values()), f"holds in {', '.join(counts)} of 16; {failing(checks, 'against it')}."
        )

    return judged


def lowers(rule: str, assured: str, others: str, than: str) -> Judge:
    """Judge whether assured flows get less beside `others` than beside `than`."""
    found = difference("over_profile", *(mix(rule, assured, one) for one in (others, than)))
    return found.all(below).said(
        "{rates:.2}.", rates=over_profile(rule, [(assured, others), (assured, than)])
    )


def over(first: str, second: str, mixes: Sequence[tuple[str, str]]) -> Judge:
    """Judge whether in each of these mixes assured flows get more under the first rule than the second."""
    pairs = {
        f"{CONTROL_NAMES[one[0]]} beside {CONTROL_NAMES[one[1]]}": (mix(first, *one), mix(second, *one))
        for one in mixes
    }
    return (
        differences("over_profile", pairs)
        .all(above)
        .said(
            f"more under {RULE_NAMES[first]} than under {RULE_NAMES[second]} in {{held}} of "
            f"{counted(len(mixes), 'mix', 'mixes')}; {{failing:against it}}."
        )
    )


ASSURED_TOTAL = Axis("assured", "Assured flows", {**CONTROL_NAMES, "all": "of 16"})

TODAY_MAP = common.THIS.study(
    "map",
    title="Where a profile holds: rules and mixes of congestion controls",
    source=common.SOURCE,
    summary="five flows of 1 Mbit/s beside ten of best effort on 10 Mbit/s: eleven rules, sixteen mixes",
    cells=[mix(rule, *one) for rule in RULE_NAMES for one in MIXES],
    scenario=build,
    samples=samples,
    summaries=summaries,
    judges={
        "two-queues-hold-everywhere": holds((WFQ,), MIXES),
        "inverse-rate-holds-everywhere": holds((INVERSE,), MIXES),
        "colors-hold-among-equals": holds((RIO, RI_PLUS_O, THREE_DROP), SAME),
        "colorless-hold-seldom": most(READ_NOTHING, 4),
        "fq-codel-holds-nowhere": holds((common.FQ_CODEL,), MIXES, kept=False),
        "rio-fails-newreno-beside-bbr3": holds((RIO,), [(NEWRENO, BBR3)], kept=False),
        "prague-beside-takes-from-newreno": lowers(RIO, NEWRENO, PRAGUE, NEWRENO),
        "bbr3-beside-takes-from-cubic": lowers(RIO, CUBIC, BBR3, CUBIC),
        "ri-plus-o-gives-more": over(RI_PLUS_O, RIO, MIXES),
        "three-drop-gives-more": over(THREE_DROP, RIO, MIXES),
        "twam-holds-less": holds((TWAM,), SAME, kept=False),
        "dualpi2-holds-nowhere": holds((common.DUALPI2,), MIXES, kept=False),
    },
    tables=(
        Table(
            "Mixes in which the profile holds: of four kinds of best effort beside these assured flows",
            {"mixes": ""},
            RULES,
            (ASSURED_TOTAL,),
            digits=0,
        ),
        *common.each_sender(
            "Rate over profile of {} flows, by what best effort uses",
            RULES,
            OTHERS_AXIS,
            "over_profile",
            by="assured",
        ),
        *common.each_sender(
            "Slowest of the five {} flows over its profile, by what best effort uses",
            RULES,
            OTHERS_AXIS,
            "worst_flow",
            by="assured",
        ),
        *common.each_sender(
            "99th percentile of the wait beside {} best effort, ms",
            RULES,
            ASSURED_SHORT,
            "wait_p99",
            1,
            by="others",
        ),
    ),
    plots=(
        Plot(
            id="map",
            title="Rate of assured flows over their profile, by what they and best effort use",
            kind="matrix",
            metric="over_profile",
            x=OTHERS_AXIS,
            series=RULES,
            y_label="",
            facet=ASSURED_AXIS,
            bound=common.PROFILE_KEPT,
        ),
    ),
    extra=True,
    default_runs=common.RUNS,
)

"""Figure 3: RIO at 60, 90 and 120 % subscription, with the bottleneck's drops of IN and of OUT packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perhop.measures.run import Run
from perhop.plurals import counted
from perhop.show.declared import Factors, Reference, Table
from perhop.statistics.judging import Judgement, above, any_of, at_least_of, below, fact, judge
from perhop.studies import judges
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import Judge, grouped, level, levels, of_runs, of_statements, stated, variants
from perhop.studies.yeom import common, ten_flows
from perhop.studies.yeom.common import PROFILES, RIO, cell
from perhop.studies.yeom.table1 import LARGE, LOADED, SMALL, TABLE1, of_targets, sides
from perhop.studies.yeom.ten_flows import CAPACITY, LEVELS, NEARLY, TARGETS, entry


def samples(factors: Factors, run: Run, packet: int = common.SETTING.packet) -> Iterator[Sample]:
    """Table 1's samples, and the drops of IN and of OUT packets at the bottleneck."""
    yield from ten_flows.samples(factors, run, packet)
    link = run.link("bottleneck")
    lost, arrived = np.sum(list(link["dropped"].values()), axis=0), link["arrived"]
    yield Sample(factors, "in_drops", "packets", float(lost[0]))
    of = float(arrived[0]), float(arrived[1:].sum())
    yield Sample(factors, "in_loss", "fraction", float(lost[0]) / of[0], of[0])
    yield Sample(factors, "all_out_loss", "fraction", float(lost[1:].sum()) / of[1], of[1])


def _far_from_target(share: float, at: Sequence[int] = tuple(CAPACITY)) -> Judge:
    """Judge whether more than half of the classes miss their target by a share of it, the levels together."""

    def misses(wanted: float) -> judges.Side:
        tolerance = max(share * wanted, share / 5)
        return lambda found: any_of(below(found, wanted - tolerance), above(found, wanted + tolerance))

    missed = {
        (p, r): level("throughput", entry(RIO, p, r)).all(misses(TARGETS[p][r])) for p in at for r in PROFILES
    }
    most = len(missed) // 2 + 1
    return of_statements(missed, lambda *checks: at_least_of(most, checks)).said(
        f"{{held}} of {len(missed)} for sure; Mbit/s: {{rates}}.",
        rates=grouped({p: of_targets(RIO, p, PROFILES, 3) for p in at}, "{name} %, {all}"),
    )


def _in_drops(evidence: Evidence, percent: int) -> float:
    return sum(evidence.by_seed("in_drops", cell(RIO, percent)).values())


def no_in_drops(at: Sequence[int]) -> Judge:
    """Judge whether the bottleneck dropped no IN packet, all runs together."""

    def judged(evidence: Evidence) -> Judgement:
        text = ", ".join(f"{p} %: {_in_drops(evidence, p):g}" for p in CAPACITY)
        return judge(
            fact(holds=all(_in_drops(evidence, p) == 0 for p in at)),
            f"IN packets dropped in {counted(evidence.runs, 'run')}, {text}.",
        )

    return judged


def _in_lose_less() -> Judge:
    at = {p: cell(RIO, p) for p in CAPACITY}
    found = of_runs({p: (lambda a, b: b - a, ("in_loss", of), ("all_out_loss", of)) for p, of in at.items()})
    of_in, of_out = (levels(metric, at) for metric in ("in_loss", "all_out_loss"))
    listed = found.reads("{name} % {of_in:.5} and {of_out}", "; ", of_in=of_in, of_out=of_out)
    return listed.all(above).said("Share that is dropped, IN and OUT: {}.")


def _reservation_lost() -> Judge:
    """Judge whether at 90 % the 2 Mbit/s class loses OUT packets only, and gets less than it reserved."""
    rate, drops = (level(metric, entry(RIO, 90, 2.0)) for metric in ("throughput", "drops"))
    none_in = stated(lambda evidence: fact(holds=_in_drops(evidence, 90) == 0))
    return (rate.all(below, 2.0) & drops.all(above) & none_in).said(
        "90 %, the 2 Mbit/s class: {} Mbit/s; a flow loses {drops:.1} packets, none of them IN (all flows, "
        "all runs: {of_in}).",
        drops=drops,
        of_in=lambda evidence: f"{_in_drops(evidence, 90):g}",
    )


FIG3 = common.THIS.study(
    "fig3",
    title="RIO at 60, 90 and 120 % subscription",
    source=f"{common.PAPER}, Figure 3",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s under RIO",
    cells=[cell(RIO, percent) for percent in CAPACITY],
    scenario=ten_flows.build,
    samples=samples,
    published=[v for v in TABLE1.published if v.factors["scheme"] == RIO],
    judges={
        "far-from-target": variants(_far_from_target, {"": 1 - NEARLY, "5 %": 0.05, "20 %": 0.2}),
        **{f"small-exceed-large-miss-{p}": sides((RIO,), (p,), SMALL, LARGE) for p in CAPACITY},
        "no-in-drops": variants(
            no_in_drops, {"at all three levels": tuple(CAPACITY), "where the reservations fit": LOADED}
        ),
        "no-in-drops-where-they-fit": no_in_drops(LOADED),
        "in-lose-less": _in_lose_less(),
        "out-drops-cost-the-reservation": _reservation_lost(),
        "far-from-target-at-60": _far_from_target(1 - NEARLY, (60,)),
    },
    tables=(
        Table("Rate of a flow, Mbit/s, by profile", {"throughput": ""}, LEVELS, (common.CLASSES,)),
        Table(
            "Error against the targets, Mbit/s (published as MSE); use of the link; IN packets dropped",
            {"rmse": "error", "utilization": "use", "in_drops": "IN drops"},
            LEVELS,
        ),
    ),
    plots=[
        common.bars(
            name="rates",
            title="Rate of a flow under RIO",
            x=common.CLASSES,
            series=LEVELS,
            reference=Reference("profile", "profile_mbps", {r: r for r in PROFILES if r}),
        )
    ],
    single_run=True,
    default_runs=common.RUNS,
)

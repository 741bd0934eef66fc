"""Tables 2 and 3: flows of five round-trip times, at 75 % and 25 % subscription.

How each claim is judged says `published.toml` in words, under the claim's name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perhop.measures import fairness
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, Table
from perhop.statistics.judging import above, any_of, at_least, below, near, opposite
from perhop.studies import judges
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import Judge, differences, grouped, level, levels, of_pairs, variants
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom import common
from perhop.studies.yeom.common import COMPARED, INVERSE, RIO, SCHEME_NAMES, THREE_DROP, TWO_WINDOWS, cell
from perhop.studies.yeom.ten_flows import entry as of_class

PROFILES = (0.0, 0.5, 1.0)
"""Reserved rates in Mbit/s, at each round-trip time one flow of each."""
RTTS = (20, 40, 60, 80, 100)
"""Propagation round-trip times in ms."""
CAPACITY = {75: 10.0, 25: 30.0}
"""Rate of the bottleneck in Mbit/s by subscription in percent."""
TARGETS = {percent: common.class_targets(PROFILES, len(RTTS), c) for percent, c in CAPACITY.items()}
BOTTLENECK_MS = 8.0
"""Short enough for a round trip of 20 ms."""
CELLS: Sequence[dict[str, Any]] = [cell(scheme, percent) for percent in CAPACITY for scheme in COMPARED]
PLACES = tuple(itertools.product(COMPARED, CAPACITY, PROFILES))
RESERVED_FLOWS = tuple(itertools.product(PROFILES[1:], RTTS))
NAMES = {0.0: "best effort", 0.5: "0.5 Mbit/s", 1.0: "1 Mbit/s"}
PROPOSED = (INVERSE, THREE_DROP, TWO_WINDOWS)
RATIO_OF = {"fairness": "largest over smallest rate", "fairness_by_rtt": "rate at 20 ms over rate at 100 ms"}
"""The two readings of Table 3's fairness."""
WORDS = {
    "rmse": "Error, Mbit/s",
    "utilization": "Use of the link",
    "reservation_success": "Share that reaches its rate",
}
"""The measures' names in the evidence."""


def entry(scheme: str, percent: int, profile: float, rtt: int) -> dict[str, Any]:
    """The factors of one flow."""
    return {**of_class(scheme, percent, profile), "rtt_ms": rtt}


def flow_name(profile: float, rtt: int) -> str:
    """The flow entry of one class and round-trip time."""
    return f"profile-{profile:g}-rtt-{rtt}"


def build(factors: Factors, setting: common.Setting = common.SETTING) -> Mapping[str, Any]:
    """Fifteen flows under one scheme at one subscription."""
    scheme, percent = str(factors["scheme"]), int(factors["subscription_percent"])
    short = replace(setting, bottleneck_ms=BOTTLENECK_MS)
    entries = [
        short.tcp(scheme, flow_name(profile, rtt), profile, rtt_ms=rtt)
        for profile in PROFILES
        for rtt in RTTS
    ]
    return short.scenario("Yeom and Reddy, Table 2", scheme, CAPACITY[percent], entries)


def rates(run: Run) -> dict[float, list[float]]:
    """Rate of each flow in Mbit/s, by class, in the order of rising round-trip times."""
    return {profile: [mean_mbps(run, flow_name(profile, rtt)) for rtt in RTTS] for profile in PROFILES}


def table2_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The rate of every flow."""
    for profile, values in rates(run).items():
        for rtt, value in zip(RTTS, values, strict=True):
            yield Sample({**factors, "profile_mbps": profile, "rtt_ms": rtt}, "throughput", MBPS, value)
    if factors["scheme"] == THREE_DROP:
        names = [flow_name(profile, rtt) for profile, rtt in RESERVED_FLOWS]
        _, out_in, out_out = np.sum([run.of_group(name, "marked")[0] for name in names], axis=0)
        if out := float(out_in + out_out):
            yield Sample(factors, "out_out_share", "fraction", float(out_out) / out, out)


def table3_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The paper's measures, both readings of fairness and of differentiation, and Jain's index."""
    percent = int(factors["subscription_percent"])
    classes = rates(run)
    values = [value for group in classes.values() for value in group]
    wanted = [TARGETS[percent][profile] for profile in classes for _ in RTTS]
    yield from table2_samples(factors, run)
    yield Sample(factors, "rmse", MBPS, fairness.rmse(values, wanted))
    yield Sample(factors, "utilization", "fraction", fairness.utilization(values, CAPACITY[percent]))
    reached = fairness.reservation_success(values, [profile for profile in classes for _ in RTTS])
    if reached is not None:
        yield Sample(factors, "reservation_success", "fraction", reached, 1.0)
    index = fairness.jain_index(values, wanted)
    if index is not None:
        yield Sample(factors, "jain_index", "index", index)
    for profile, group in classes.items():
        yield from _ratio(factors, profile, "fairness", fairness.fairness(group))
        yield from _ratio(factors, profile, "fairness_by_rtt", fairness.fairness_by_rtt(group))
    for (_, lower), (profile, higher) in itertools.pairwise(classes.items()):
        by_rtt = fairness.differentiation_by_rtt(higher, lower)
        yield from _ratio(factors, profile, "differentiation", fairness.differentiation(higher, lower))
        yield from _ratio(factors, profile, "differentiation_by_rtt", by_rtt)


def _ratio(factors: Factors, profile: float, metric: str, value: float | None) -> Iterator[Sample]:
    if value is not None:
        yield Sample({**factors, "profile_mbps": profile}, metric, "ratio", value)


def _name(scheme: str, percent: int, profile: float) -> str:
    return f"{SCHEME_NAMES[scheme]} {percent} % {NAMES[profile]}"


def _everywhere(*metrics: str, at: Iterable[int] = CAPACITY) -> judges.Numbers:
    """`Error, Mbit/s at 75 %: RIO 0.301 ± 0.004, …` of each measure at each level."""
    by_words = {
        f"{WORDS[m]} at {p} %": levels(m, {SCHEME_NAMES[s]: cell(s, p) for s in COMPARED})
        for p in at
        for m in metrics
    }
    return grouped(by_words, "{name}: {all}.", " ")


def _against_others(scheme: str, at: Iterable[int] = CAPACITY) -> judges.Pairs:
    return {(s, p): (cell(scheme, p), cell(s, p)) for p in at for s in COMPARED if s != scheme}


# ---------------------------------------------------------------- Table 2


def _shorter_wins() -> Judge:
    """Judge whether in every class a flow of 20 ms gets more than one of 100 ms."""
    pairs = {_name(*of): (entry(*of, RTTS[0]), entry(*of, RTTS[-1])) for of in PLACES}
    found = differences("throughput", pairs)
    return found.all(above).said(
        f"{len(pairs)} pairs ({{failing}}); the least sure is {{least:+}} Mbit/s.",
        least=found.lowest(lambda one: one.low).reads("{name} with {value}"),
    )


def _rtt_order() -> Judge:
    steps = {
        f"{_name(*of)} to {after} ms": (entry(*of, after), entry(*of, before))
        for of in PLACES
        for before, after in itertools.pairwise(RTTS)
    }
    return differences("throughput", steps).all(below).said(f"{len(steps)} steps down ({{failing}}).")


def _three_drop_is_rio(share: float) -> Judge:
    pairs = {
        f"{profile:g} Mbit/s at {rtt} ms": (entry(THREE_DROP, 25, profile, rtt), entry(RIO, 25, profile, rtt))
        for profile, rtt in itertools.product(PROFILES, RTTS)
    }
    found, rio = differences("throughput", pairs), levels("throughput", {n: b for n, (_, b) in pairs.items()})
    return found.all(near, 0.0, rio.bound(lambda one: share * one.mean)).said(
        "The largest difference, three-drop − RIO, is {largest:+}; {failing}).",
        largest=found.highest(lambda one: abs(one.mean)).reads("{value} Mbit/s ({name}"),
    )


def _mostly_out_out(least: float) -> Judge:
    """Judge three-drop's reserved flows at 25 %: their rates, and OUT-OUT's share of their OUT packets."""
    rates = judges.of_runs(
        {
            f"{r:g} Mbit/s at {rtt} ms": (lambda x, r=r: x / r, ("throughput", entry(THREE_DROP, 25, r, rtt)))
            for r, rtt in RESERVED_FLOWS
        }
    )
    return (level("out_out_share", cell(THREE_DROP, 25)).all(above, least) & rates.all(above, 1.0)).said(
        "25 %, share of OUT-OUT among the OUT packets of reserved flows: {}; lowest rate over reservation: "
        "{lowest:.2}.",
        lowest=rates.lowest().reads("{value} ({name})"),
    )


def _not_proportional(most: float) -> Judge:
    pairs = {f"{rtt} ms": (entry(RIO, 25, 1.0, rtt), entry(RIO, 25, 0.5, rtt)) for rtt in RTTS}
    found = of_pairs(lambda one, half: one / half, "throughput", pairs).all(below, most)
    return found.said("RIO at 25 %, rate of the 1 over that of the 0.5 Mbit/s flow: {:.2}.")


# ---------------------------------------------------------------- Table 3


def _leads(metric: str, best: Sequence[str], others: Sequence[str], at: Iterable[int] = CAPACITY) -> Judge:
    """Judge whether schemes have a larger ratio than others, class by class and run by run."""
    classes = tuple(itertools.product(at, PROFILES[1:]))
    pairs = {
        f"{p} %, {r:g} Mbit/s, {SCHEME_NAMES[s]} over {SCHEME_NAMES[o]}": (
            of_class(s, p, r),
            of_class(o, p, r),
        )
        for (p, r), s, o in itertools.product(classes, best, others)
        if s != o
    }
    ratios = {
        f"{p} %, {r:g} Mbit/s class over the next": levels(
            metric, {SCHEME_NAMES[s]: of_class(s, p, r) for s in COMPARED}
        )
        for p, r in classes
    }
    found = of_pairs(lambda a, b: a - b, metric, pairs)
    return found.all(above).said("Differentiation: {ratios:.2f} ({failing}).", ratios=grouped(ratios))


def _differentiation(best: Sequence[str], others: Sequence[str]) -> judges.Judges:
    metrics = {"": "differentiation", "as mostly printed": "differentiation_by_rtt"}
    return variants(lambda metric: _leads(metric, best, others), metrics)


def _succeed(share: float) -> Judge:
    """Judge whether every reserved flow gets that share of its rate, under three-drop and inverse-rate."""
    wanted, places = {}, {}
    for s, p, (profile, rtt) in itertools.product((THREE_DROP, INVERSE), CAPACITY, RESERVED_FLOWS):
        name = f"{_name(s, p, profile)} at {rtt} ms"
        wanted[name], places[name] = share * profile, entry(s, p, profile, rtt)
    found = levels("throughput", places)

    def short(evidence: Evidence) -> str:
        rates = found(evidence)
        listed = [f"{n} {e.text()}" for n, e in rates.items() if not at_least(e, wanted[n]).holds]
        return ", ".join(listed) or "none"

    return found.all(at_least, wanted).said(
        "Not at its rate, Mbit/s: {short}. {reach}",
        short=short,
        reach=_everywhere("reservation_success", at=(75,)),
    )


def _more_succeed(schemes: Sequence[str], at: Sequence[int]) -> Judge:
    """Judge whether more flows reach their rate than under RIO at 75 %, and no fewer at 25 %."""

    def more(percent: int, of: Iterable[str]) -> judges.Numbers:
        pairs = {SCHEME_NAMES[s]: (cell(s, percent), cell(RIO, percent)) for s in of if s != RIO}
        return differences("reservation_success", pairs)

    statements = {p: more(p, schemes).all(above if p == 75 else at_least, 0.0) for p in at}
    listed = grouped({f"{p} %,": more(p, COMPARED) for p in at}, "{name} {all}")
    return judges.of_statements(statements).said(
        "Share that reaches its rate, scheme − RIO: {listed:+}.", listed=listed
    )


def _mostly_met(share: float) -> Judge:
    return _everywhere("reservation_success").all(above, share).said("{}")


def _least(metric: str, best: str, *at: int) -> Judge:
    """Judge whether a scheme has the smallest value of a measure."""
    found = differences(metric, _against_others(best, at))
    return found.all(below).said("{all}", all=_everywhere(metric, at=at))


def _fairer(best: str, percent: int) -> judges.Judges:
    """The judges of whether a scheme is fairer than RIO and inverse-rate: in the mean, or by class."""

    def ratios(scheme: str) -> dict[float, Factors]:
        return {r: of_class(scheme, percent, r) for r in PROFILES}

    def in_the_mean(metric: str) -> Judge:
        means = {SCHEME_NAMES[o]: (ratios(best).values(), ratios(o).values()) for o in (RIO, INVERSE)}
        by_class = {SCHEME_NAMES[s]: levels(metric, ratios(s)).reads("{value}", "/") for s in COMPARED}
        words = f"{percent} %, {RATIO_OF[metric]}, BE/0.5/1 Mbit/s"
        found = judges.mean_differences(metric, means).all(below)
        return found.said(
            f"{words}: {{ratios:.2f}}; average, {SCHEME_NAMES[best]} − scheme: {{:+}}.",
            ratios=grouped(by_class, "{name} {all}"),
        )

    found = {
        SCHEME_NAMES[o]: of_pairs(
            lambda a, b: a - b, "fairness", {r: (ratios(best)[r], of) for r, of in ratios(o).items()}
        ).reads("{value}", "/")
        for o in (RIO, INVERSE)
    }
    by_class = judges.of_statements({name: one.most(2, below) for name, one in found.items()})
    return {
        **variants(in_the_mean, {"": "fairness", "as mostly printed": "fairness_by_rtt"}),
        "in two of three classes": by_class.said(
            f"{percent} %, largest over smallest rate, BE/0.5/1 Mbit/s, {SCHEME_NAMES[best]} − scheme: "
            "{changes:+.2}.",
            changes=grouped(found, "{name} {all}"),
        ),
    }


def _no_advantage(*metrics: str) -> Judge:
    """Judge whether no scheme has a smaller error than all others, and uses more of the link, if asked."""

    def best(scheme: str) -> judges.Statement:
        pairs = _against_others(scheme)
        error = differences("rmse", pairs).all(below)
        return error & differences("utilization", pairs).all(above) if "utilization" in metrics else error

    found = judges.of_statements({s: best(s) for s in COMPARED}, lambda *checks: opposite(any_of(*checks)))
    return found.said("{all}", all=_everywhere(*metrics))


CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {0.0: "BE", 0.5: "0.5", 1.0: "1"})
ROUND_TRIPS = Axis("rtt_ms", "Round trip, ms")


TABLE2 = common.THIS.study(
    "table2",
    title="Flows of different round-trip times",
    source=f"{common.PAPER}, Table 2",
    summary="at each of 20, 40, 60, 80 and 100 ms one flow of 0, 0.5 and 1 Mbit/s, on 10 and 30 Mbit/s",
    cells=CELLS,
    scenario=build,
    samples=table2_samples,
    judges={
        "shorter-rtt-wins": _shorter_wins(),
        "three-drop-is-rio-at-25": variants(
            _three_drop_is_rio, {"": 0.05, "within 2.5 %": 0.025, "within 10 %": 0.1}
        ),
        "three-drop-mostly-out-out": variants(_mostly_out_out, {"": 0.5, "three quarters": 0.75}),
        "not-proportional": variants(_not_proportional, {"": 1.8, "up to 1.6": 1.6, "up to 1.9": 1.9}),
        "rtt-order": {
            "from each round trip to the next": _rtt_order(),
            "from the shortest to the longest": _shorter_wins(),
        },
    },
    tables=[
        Table(
            f"Rate of the {NAMES[profile]} flow at {percent} %, Mbit/s, by round trip in ms "
            f"(target {TARGETS[percent][profile]:.2f})",
            {"throughput": ""},
            common.SCHEMES,
            (ROUND_TRIPS,),
            where={"subscription_percent": percent, "profile_mbps": profile},
        )
        for percent in CAPACITY
        for profile in PROFILES
    ],
    plots=[
        Plot(
            id=f"at-{percent}",
            title=f"Rate by round trip at {percent} % subscription",
            kind="lines",
            metric="throughput",
            x=ROUND_TRIPS,
            series=common.SCHEMES,
            y_label="Mbit/s per flow",
            facet=Axis("profile_mbps", "Class", NAMES),
            where={"subscription_percent": percent},
            references=(Reference("target", "profile_mbps", TARGETS[percent]),),
        )
        for percent in CAPACITY
    ],
    single_run=True,
    default_runs=common.RUNS,
)

TABLE3 = common.THIS.study(
    "table3",
    title="Measures over flows of different round-trip times",
    source=f"{common.PAPER}, Table 3",
    summary="yeom-table2's runs: error, utilization, fairness, differentiation, reservation success",
    cells=CELLS,
    scenario=build,
    samples=table3_samples,
    published=[*TABLE2.published, *common.THIS.item("table3").values],
    judges={
        "no-clear-advantage": {
            "": _no_advantage("rmse", "utilization"),
            "by the error alone": _no_advantage("rmse"),
        },
        "more-succeed-than-rio": _more_succeed(PROPOSED, tuple(CAPACITY)),
        "better-differentiation-than-rio": _differentiation(PROPOSED, (RIO,)),
        "more-succeed-75": _more_succeed((INVERSE, THREE_DROP), (75,)),
        "better-differentiation-75": _leads("differentiation", (INVERSE, THREE_DROP), (RIO,), (75,)),
        "error-larger-at-25": differences(
            "rmse", {SCHEME_NAMES[s]: (cell(s, 25), cell(s, 75)) for s in COMPARED}
        )
        .all(above)
        .said("Error, 25 % − 75 %, Mbit/s: {:+}."),
        "three-drop-least-error-at-75": _least("rmse", THREE_DROP, 75),
        "two-windows-least-error-at-25": _least("rmse", TWO_WINDOWS, 25),
        "three-drop-fairer-at-75": _fairer(THREE_DROP, 75),
        "two-windows-fairer-at-25": _fairer(TWO_WINDOWS, 25),
        "three-drop-and-inverse-succeed": variants(
            _succeed, {"": 0.99, "99.5 %": 0.995, "98 %": 0.98, "95 %": 0.95}
        ),
        "reservations-mostly-met": variants(_mostly_met, {"": 0.5, "three quarters": 0.75}),
        "inverse-differentiates-best": _differentiation((INVERSE,), COMPARED),
        "two-windows-loses-utilization": _least("utilization", TWO_WINDOWS, 75, 25),
    },
    tables=(
        *(
            Table(
                f"Error in Mbit/s (published as MSE), use of the link, share of reserved flows that reach "
                f"their rate, and Jain's index, at {percent} %",
                {"rmse": "error", "utilization": "use", "reservation_success": "reach", "jain_index": "Jain"},
                common.SCHEMES,
                where={"subscription_percent": percent},
            )
            for percent in CAPACITY
        ),
        *(
            Table(
                f"{metric.capitalize()} at {percent} %, by profile: {of} (as defined), and {by_rtt} "
                "(as mostly printed)",
                {metric: "defined", f"{metric}_by_rtt": "printed"},
                common.SCHEMES,
                (CLASSES,),
                where={"subscription_percent": percent},
                digits=2,
            )
            for percent in CAPACITY
            for metric, of, by_rtt in (
                ("fairness", *RATIO_OF.values()),
                (
                    "differentiation",
                    "smallest rate over largest of the next lower class",
                    "rate at 100 ms over rate of the next lower class at 20 ms",
                ),
            )
        ),
    ),
    plots=[
        Plot(
            id="differentiation",
            title="Differentiation between classes",
            kind="bars",
            metric="differentiation",
            x=Axis("profile_mbps", "Class, over the next lower", {r: NAMES[r] for r in PROFILES[1:]}),
            series=common.SCHEMES,
            y_label="smallest over largest of next lower",
            facet=Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in CAPACITY}),
        )
    ],
    single_run=True,
    default_runs=common.RUNS,
)

"""Tables 2 and 3: flows of five round-trip times, at 75 % and 25 % subscription."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.judging import Judgement, above, all_of, any_of, at_least, below, judge, near, opposite
from perhop.measures import (
    differentiation,
    differentiation_by_rtt,
    fairness,
    fairness_by_rtt,
    jain_index,
    reservation_success,
    rmse,
    utilization,
)
from perhop.studies.paper import claims
from perhop.studies.yeom.common import (
    COMPARED,
    INVERSE,
    MBPS,
    PAPER,
    RIO,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THREE_DROP,
    TWO_WINDOWS,
    Setting,
    by_scheme,
    cell,
    class_targets,
    combined,
    each_above,
    each_below,
    failing,
    mean_mbps,
    stated,
)
from perhop.study import Axis, Evidence, Plot, Reference, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.runs import Run
    from perhop.study import Factors

PROFILES = (0.0, 0.5, 1.0)
"""Reserved rates in Mbit/s, at each round-trip time one flow of each."""
RTTS = (20, 40, 60, 80, 100)
"""Propagation round-trip times in ms."""
CAPACITY = {75: 10.0, 25: 30.0}
"""Rate of the bottleneck in Mbit/s by subscription in percent."""
TARGETS = {percent: class_targets(PROFILES, len(RTTS), c) for percent, c in CAPACITY.items()}
ALIKE = 0.05
"""Rates that differ by less than this share count as the same."""
REACHED = 0.99
"""The share of a reservation that counts as all of it."""
PROPORTIONAL = 1.8
"""A ratio of two rates, one of twice the reservation of the other, up to which they are not proportional."""
BOTTLENECK_MS = 8.0
"""So that a round trip of 20 ms is possible."""

TABLE2_STATEMENT = stated("table2")
TABLE3_STATEMENT = stated("table3")

CELLS: Sequence[dict[str, Any]] = [cell(scheme, percent) for percent in CAPACITY for scheme in COMPARED]


def entry(scheme: str, percent: int, profile: float, rtt: int) -> dict[str, Any]:
    """The factors of one flow."""
    return {**cell(scheme, percent), "profile_mbps": profile, "rtt_ms": rtt}


def network(setting: Setting, scheme: str, percent: int) -> dict[str, Any]:
    """Fifteen flows."""
    short = replace(setting, bottleneck_ms=BOTTLENECK_MS)
    entries = [
        short.tcp(scheme, flow_name(profile, rtt), profile, rtt_ms=rtt)
        for profile in PROFILES
        for rtt in RTTS
    ]
    return short.scenario("Yeom and Reddy, Table 2", scheme, CAPACITY[percent], entries)


def build(factors: Factors) -> Mapping[str, Any]:
    """The setting of one row."""
    return network(SETTING, str(factors["scheme"]), int(factors["subscription_percent"]))


def flow_name(profile: float, rtt: int) -> str:
    """The flow entry of one class and round-trip time."""
    return f"profile-{profile:g}-rtt-{rtt}"


def rates(run: Run) -> dict[float, list[float]]:
    """Rate of each flow in Mbit/s, by class, in the order of rising round-trip times."""
    return {profile: [mean_mbps(run, flow_name(profile, rtt)) for rtt in RTTS] for profile in PROFILES}


def table2_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The rate of every flow."""
    for profile, values in rates(run).items():
        for rtt, value in zip(RTTS, values, strict=True):
            yield Sample({**factors, "profile_mbps": profile, "rtt_ms": rtt}, "throughput", MBPS, value)
    if factors["scheme"] == THREE_DROP:
        names = [flow_name(profile, rtt) for profile in PROFILES[1:] for rtt in RTTS]
        _, out_in, out_out = np.sum([run.of_group(name, "marked")[0] for name in names], axis=0)
        if out_in + out_out > 0:
            yield Sample(factors, "out_out_share", "fraction", float(out_out / (out_in + out_out)))


def table3_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The paper's measures, both readings of fairness and of differentiation, and Jain's index."""
    percent = int(factors["subscription_percent"])
    classes = rates(run)
    values = [value for group in classes.values() for value in group]
    wanted = [TARGETS[percent][profile] for profile in classes for _ in RTTS]
    yield from table2_samples(factors, run)
    yield Sample(factors, "rmse", MBPS, rmse(values, wanted))
    yield Sample(factors, "utilization", "fraction", utilization(values, CAPACITY[percent]))
    reached = reservation_success(values, [profile for profile in classes for _ in RTTS])
    ratios: list[tuple[str, float | None, float | None]] = [
        ("reservation_success", None, reached),
        ("jain_index", None, jain_index(values, wanted)),
    ]
    for profile, group in classes.items():
        ratios.append(("fairness", profile, fairness(group)))
        ratios.append(("fairness_by_rtt", profile, fairness_by_rtt(group)))
    for lower, higher in itertools.pairwise(PROFILES):
        ratios.append(("differentiation", higher, differentiation(classes[higher], classes[lower])))
        ratios.append(
            ("differentiation_by_rtt", higher, differentiation_by_rtt(classes[higher], classes[lower]))
        )
    units = {"reservation_success": "fraction", "jain_index": "index"}
    for metric, of, value in ratios:
        if value is not None:
            named = factors if of is None else {**factors, "profile_mbps": of}
            yield Sample(named, metric, units.get(metric, "ratio"), value)


def means(evidence: Evidence, scheme: str, percent: int, profile: float) -> list[float]:
    """Means over runs of a class, in the order of rising round-trip times."""
    return [evidence.mean("throughput", entry(scheme, percent, profile, rtt)) for rtt in RTTS]


def shorter_wins(evidence: Evidence) -> Judgement:
    """20 ms − 100 ms."""
    found = {
        key: evidence.difference("throughput", entry(*key, RTTS[0]), entry(*key, RTTS[-1]))
        for key in itertools.product(COMPARED, CAPACITY, PROFILES)
    }
    checks = {_name(*key): above(e) for key, e in found.items()}
    least = min(found, key=lambda key: found[key].low)
    return judge(
        all_of(*checks.values()),
        f"{len(found)} pairs ({failing(checks)}); the least sure is {_name(*least)} with "
        f"{found[least].text(sign=True)} Mbit/s.",
    )


def rtt_order(evidence: Evidence) -> Judgement:
    """Every step to the next longer round trip."""
    found = {
        f"{_name(*key)} to {after} ms": below(
            evidence.difference("throughput", entry(*key, after), entry(*key, before))
        )
        for key in itertools.product(COMPARED, CAPACITY, PROFILES)
        for before, after in itertools.pairwise(RTTS)
    }
    return judge(all_of(*found.values()), f"{len(found)} steps down ({failing(found)}).")


def three_drop_is_rio(evidence: Evidence) -> Judgement:
    """Fifteen differences."""
    found = {
        key: evidence.difference("throughput", entry(THREE_DROP, 25, *key), entry(RIO, 25, *key))
        for key in itertools.product(PROFILES, RTTS)
    }
    checks = {
        f"{profile:g} Mbit/s at {rtt} ms": near(
            e, 0.0, ALIKE * evidence.mean("throughput", entry(RIO, 25, profile, rtt))
        )
        for (profile, rtt), e in found.items()
    }
    largest = max(found, key=lambda key: abs(found[key].mean))
    return judge(
        all_of(*checks.values()),
        f"The largest difference, three-drop − RIO, is {found[largest].text(sign=True)} Mbit/s "
        f"({largest[0]:g} Mbit/s at {largest[1]} ms; {failing(checks)}).",
    )


def mostly_out_out(evidence: Evidence) -> Judgement:
    """Three-drop's reserved flows at 25 %: their rates over their reservations, and their OUT packets."""
    found = evidence.estimate("out_out_share", cell(THREE_DROP, 25))
    rates = {
        f"{profile:g} Mbit/s at {rtt} ms": combined(
            evidence, lambda rate, r=profile: rate / r, ("throughput", entry(THREE_DROP, 25, profile, rtt))
        )
        for profile, rtt in itertools.product(PROFILES[1:], RTTS)
    }
    lowest = min(rates, key=lambda name: rates[name].mean)
    return judge(
        all_of(above(found, 0.5), *(above(e, 1.0) for e in rates.values())),
        f"25 %, share of OUT-OUT among the OUT packets of reserved flows: {found.text()}; lowest rate over "
        f"reservation: {rates[lowest].text(2)} ({lowest}).",
    )


def leads(
    metric: str, best: Sequence[str], others: Sequence[str], levels: Sequence[int], words: str
) -> Callable[[Evidence], Judgement]:
    """A claim that schemes have a larger ratio than others, class by class and run by run."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (p, profile, s, o): combined(
                evidence,
                lambda a, b: a - b,
                (metric, {**cell(s, p), "profile_mbps": profile}),
                (metric, {**cell(o, p), "profile_mbps": profile}),
            )
            for p in levels
            for profile in PROFILES[1:]
            for s in best
            for o in others
            if s != o
        }
        checks = {
            f"{p} %, {profile:g} Mbit/s, {SCHEME_NAMES[s]} over {SCHEME_NAMES[o]}": above(e)
            for (p, profile, s, o), e in found.items()
        }
        text = "; ".join(
            f"{p} %, {profile:g} Mbit/s class over the next: "
            + ", ".join(
                f"{SCHEME_NAMES[s]} {evidence.mean(metric, {**cell(s, p), 'profile_mbps': profile}):.2f}"
                for s in COMPARED
            )
            for p in levels
            for profile in PROFILES[1:]
        )
        return judge(all_of(*checks.values()), f"{words}: {text} ({failing(checks)}).")

    return judged


def succeed(evidence: Evidence) -> Judgement:
    """Every reserved flow under three-drop and inverse-rate."""
    checks, short = {}, []
    for s, percent, profile, rtt in itertools.product((THREE_DROP, INVERSE), CAPACITY, PROFILES[1:], RTTS):
        found = evidence.estimate("throughput", entry(s, percent, profile, rtt))
        name = f"{_name(s, percent, profile)} at {rtt} ms"
        checks[name] = at_least(found, REACHED * profile)
        if not checks[name].holds:
            short.append(f"{name} {found.text()}")
    return judge(
        all_of(*checks.values()),
        f"Not at its rate, Mbit/s: {', '.join(short) or 'none'}. "
        f"{_each(evidence, 'reservation_success', 75)}",
    )


def more_succeed(schemes: Sequence[str], levels: Sequence[int]) -> Callable[[Evidence], Judgement]:
    """A claim on scheme − RIO: more flows reach their rate at 75 %, and no fewer at 25 %."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            p: {
                s: evidence.difference("reservation_success", cell(s, p), cell(RIO, p))
                for s in COMPARED
                if s != RIO
            }
            for p in levels
        }
        checks = [(above if p == 75 else at_least)(found[p][s], 0.0) for p in levels for s in schemes]
        text = "; ".join(f"{p} %, {by_scheme(found[p], sign=True)}" for p in levels)
        return judge(all_of(*checks), f"Share that reaches its rate, scheme − RIO: {text}.")

    return judged


def not_proportional(evidence: Evidence) -> Judgement:
    """RIO at 25 %: twice the reservation, less than twice the rate, at each round trip."""
    found = {
        rtt: combined(
            evidence,
            lambda one, half: one / half,
            ("throughput", entry(RIO, 25, 1.0, rtt)),
            ("throughput", entry(RIO, 25, 0.5, rtt)),
        )
        for rtt in RTTS
    }
    text = ", ".join(f"{rtt} ms {e.text(2)}" for rtt, e in found.items())
    return judge(
        all_of(*(below(e, PROPORTIONAL) for e in found.values())),
        f"RIO at 25 %, rate of the 1 over that of the 0.5 Mbit/s flow: {text}.",
    )


def mostly_met(evidence: Evidence) -> Judgement:
    """The share of reserved flows that reach their rate, under every scheme at both levels."""
    found = [evidence.estimate("reservation_success", cell(s, p)) for p in CAPACITY for s in COMPARED]
    return judge(
        all_of(*(above(e, 0.5) for e in found)),
        " ".join(_each(evidence, "reservation_success", p) for p in CAPACITY),
    )


def larger_at_25(evidence: Evidence) -> Judgement:
    """25 % − 75 % in the error."""
    found = {s: evidence.difference("rmse", cell(s, 25), cell(s, 75)) for s in COMPARED}
    return each_above(found, f"Error, 25 % − 75 %, Mbit/s: {by_scheme(found, sign=True)}.")


def least(metric: str, best: str, *levels: int) -> Callable[[Evidence], Judgement]:
    """A claim that a scheme has the smallest value of a measure."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (s, p): evidence.difference(metric, cell(best, p), cell(s, p))
            for p in levels
            for s in COMPARED
            if s != best
        }
        return each_below(found, " ".join(_each(evidence, metric, p) for p in levels))

    return judged


def unfairness(scheme: str, percent: int) -> list[tuple[str, Factors]]:
    """The largest over the smallest rate of each class, by name."""
    return [("fairness", {**cell(scheme, percent), "profile_mbps": profile}) for profile in PROFILES]


def fairer(best: str, percent: int) -> Callable[[Evidence], Judgement]:
    """A claim that a scheme is fairer, in the mean over the classes, than RIO and inverse-rate."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            other: combined(
                evidence,
                lambda *ratios: (sum(ratios[:3]) - sum(ratios[3:])) / 3,
                *unfairness(best, percent),
                *unfairness(other, percent),
            )
            for other in (RIO, INVERSE)
        }
        text = "; ".join(
            f"{SCHEME_NAMES[s]} " + "/".join(f"{evidence.mean(*of):.2f}" for of in unfairness(s, percent))
            for s in COMPARED
        )
        return each_below(
            found,
            f"{percent} %, largest over smallest rate, BE/0.5/1 Mbit/s: {text}; average, "
            f"{SCHEME_NAMES[best]} − scheme: {by_scheme(found, sign=True)}.",
        )

    return judged


def no_advantage(evidence: Evidence) -> Judgement:
    """Whether a scheme is better than all others in error and in use of the link, at both levels."""
    checks = {}
    for s in COMPARED:
        others = [o for o in COMPARED if o != s]
        better = [
            below(evidence.difference("rmse", cell(s, p), cell(o, p))) for p in CAPACITY for o in others
        ] + [
            above(evidence.difference("utilization", cell(s, p), cell(o, p)))
            for p in CAPACITY
            for o in others
        ]
        checks[SCHEME_NAMES[s]] = all_of(*better)
    return judge(
        opposite(any_of(*checks.values())),
        " ".join(_each(evidence, metric, p) for p in CAPACITY for metric in ("rmse", "utilization")),
    )


def _each(evidence: Evidence, metric: str, percent: int) -> str:
    words = {
        "rmse": "Error, Mbit/s",
        "utilization": "Use of the link",
        "reservation_success": "Share that reaches its rate",
    }
    found = {s: evidence.estimate(metric, cell(s, percent)) for s in COMPARED}
    return f"{words[metric]} at {percent} %: {by_scheme(found)}."


def _name(scheme: str, percent: int, profile: float) -> str:
    return f"{SCHEME_NAMES[scheme]} {percent} % {'best effort' if profile == 0 else f'{profile:g} Mbit/s'}"


CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {0.0: "BE", 0.5: "0.5", 1.0: "1"})
ROUND_TRIPS = Axis("rtt_ms", "Round trip, ms")
LEVELS = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in CAPACITY})
CLASS_NAMES = {0.0: "best effort", 0.5: "0.5 Mbit/s", 1.0: "1 Mbit/s"}


def _plot(percent: int) -> Plot:
    return Plot(
        id=f"at-{percent}",
        title=f"Rate by round trip at {percent} % subscription",
        kind="lines",
        metric="throughput",
        x=ROUND_TRIPS,
        series=SCHEMES,
        y_label="Mbit/s per flow",
        facet=Axis("profile_mbps", "Class", CLASS_NAMES),
        where={"subscription_percent": percent},
        references=(Reference("target", "profile_mbps", TARGETS[percent]),),
    )


TABLE2 = Study(
    id="yeom-table2",
    title="Flows of different round-trip times",
    source=f"{PAPER}, Table 2",
    summary="at each of 20, 40, 60, 80 and 100 ms one flow of 0, 0.5 and 1 Mbit/s, on 10 and 30 Mbit/s",
    cells=CELLS,
    scenario=build,
    samples=table2_samples,
    published=TABLE2_STATEMENT.values,
    claims=claims(
        TABLE2_STATEMENT.claims,
        {
            "shorter-rtt-wins": shorter_wins,
            "three-drop-is-rio-at-25": three_drop_is_rio,
            "three-drop-mostly-out-out": mostly_out_out,
            "not-proportional": not_proportional,
            "rtt-order": rtt_order,
        },
    ),
    tables=tuple(
        Table(
            f"Rate of the {CLASS_NAMES[profile]} flow at {percent} %, Mbit/s, by round trip in ms "
            f"(target {TARGETS[percent][profile]:.2f})",
            {"throughput": ""},
            SCHEMES,
            (ROUND_TRIPS,),
            where={"subscription_percent": percent, "profile_mbps": profile},
        )
        for percent in CAPACITY
        for profile in PROFILES
    ),
    plots=tuple(_plot(percent) for percent in CAPACITY),
    notes=TABLE2_STATEMENT.notes,
    method=TABLE2_STATEMENT.method,
    assumptions=TABLE2_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS,
)

TABLE3 = Study(
    id="yeom-table3",
    title="Measures over flows of different round-trip times",
    source=f"{PAPER}, Table 3",
    summary="yeom-table2's runs: error, utilization, fairness, differentiation, reservation success",
    cells=CELLS,
    scenario=build,
    samples=table3_samples,
    published=[*TABLE2_STATEMENT.values, *TABLE3_STATEMENT.values],
    claims=claims(
        TABLE3_STATEMENT.claims,
        {
            "no-clear-advantage": no_advantage,
            "more-succeed-than-rio": more_succeed((INVERSE, THREE_DROP, TWO_WINDOWS), tuple(CAPACITY)),
            "better-differentiation-than-rio": leads(
                "differentiation",
                (INVERSE, THREE_DROP, TWO_WINDOWS),
                (RIO,),
                tuple(CAPACITY),
                "Differentiation",
            ),
            "more-succeed-75": more_succeed((INVERSE, THREE_DROP), (75,)),
            "better-differentiation-75": leads(
                "differentiation", (INVERSE, THREE_DROP), (RIO,), (75,), "Differentiation"
            ),
            "error-larger-at-25": larger_at_25,
            "three-drop-least-error-at-75": least("rmse", THREE_DROP, 75),
            "two-windows-least-error-at-25": least("rmse", TWO_WINDOWS, 25),
            "three-drop-fairer-at-75": fairer(THREE_DROP, 75),
            "two-windows-fairer-at-25": fairer(TWO_WINDOWS, 25),
            "three-drop-and-inverse-succeed": succeed,
            "reservations-mostly-met": mostly_met,
            "inverse-differentiates-best": leads(
                "differentiation", (INVERSE,), COMPARED, tuple(CAPACITY), "Differentiation"
            ),
            "two-windows-loses-utilization": least("utilization", TWO_WINDOWS, 75, 25),
        },
    ),
    tables=(
        *(
            Table(
                f"Error in Mbit/s (published as MSE), use of the link, share of reserved flows that reach "
                f"their rate, and Jain's index, at {percent} %",
                {"rmse": "error", "utilization": "use", "reservation_success": "reach", "jain_index": "Jain"},
                SCHEMES,
                where={"subscription_percent": percent},
            )
            for percent in CAPACITY
        ),
        *(
            Table(
                f"{name} at {percent} %, by profile: {of} (as defined), and {by_rtt} (as mostly printed)",
                {metric: "defined", f"{metric}_by_rtt": "printed"},
                SCHEMES,
                (CLASSES,),
                where={"subscription_percent": percent},
                digits=2,
            )
            for percent in CAPACITY
            for name, metric, of, by_rtt in (
                ("Fairness", "fairness", "largest over smallest rate", "rate at 20 ms over rate at 100 ms"),
                (
                    "Differentiation",
                    "differentiation",
                    "smallest rate over largest of the next lower class",
                    "rate at 100 ms over rate of the next lower class at 20 ms",
                ),
            )
        ),
    ),
    plots=(
        Plot(
            id="differentiation",
            title="Differentiation between classes",
            kind="bars",
            metric="differentiation",
            x=Axis("profile_mbps", "Class, over the next lower", {0.5: "0.5 Mbit/s", 1.0: "1 Mbit/s"}),
            series=SCHEMES,
            y_label="smallest over largest of next lower",
            facet=LEVELS,
        ),
    ),
    notes=TABLE3_STATEMENT.notes,
    method=TABLE3_STATEMENT.method,
    assumptions=TABLE3_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS,
)

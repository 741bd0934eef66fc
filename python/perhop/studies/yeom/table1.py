"""Table 1 with Figures 3, 4, 5, 6 and 8: five schemes at 60, 90 and 120 % subscription."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, by_interval
from perhop.measures import jain_index, reservation_success, rmse, utilization
from perhop.statistics import paired_difference
from perhop.studies.paper import claims
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    CLASSES,
    INVERSE,
    MBPS,
    NAMES,
    NO_OUT,
    PAPER,
    PROFILES,
    RIO,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THREE_DROP,
    TWO_WINDOWS,
    Setting,
    all_above,
    cell,
    class_targets,
    mean_mbps,
    signed,
    stated,
    total_mbps,
)
from perhop.study import (
    Axis,
    Evidence,
    Plot,
    Reference,
    Row,
    Sample,
    Study,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perhop.runs import Run
    from perhop.study import Factors

COUNT = 2
"""Flows of each class."""
CAPACITY = {60: 12.0, 90: 8.0, 120: 6.0}
"""Rate of the bottleneck in Mbit/s by subscription in percent."""
TARGETS = {percent: class_targets(PROFILES, COUNT, c) for percent, c in CAPACITY.items()}
LEVELS = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in CAPACITY})

STATEMENT = stated("table1")
FIG3_STATEMENT = stated("fig3")


def entry(scheme: str, percent: int, profile: float) -> dict[str, Any]:
    """The factors of one rate in the table."""
    return {**cell(scheme, percent), "profile_mbps": profile}


def network(setting: Setting, scheme: str, percent: int) -> dict[str, Any]:
    """Two flows of each class."""
    entries = [setting.tcp(scheme, class_name(rate), rate, count=COUNT) for rate in PROFILES]
    return setting.scenario("Yeom and Reddy, Table 1", scheme, CAPACITY[percent], entries)


def class_name(rate: float) -> str:
    """The flow entry of a class."""
    return "best-effort" if rate == 0 else f"profile-{rate:g}"


def build(factors: Factors) -> Mapping[str, Any]:
    """The setting of one row."""
    return network(SETTING, str(factors["scheme"]), int(factors["subscription_percent"]))


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Class means and what follows from them; the paper's own measures take the five classes of a row."""
    percent = int(factors["subscription_percent"])
    rates = {rate: mean_mbps(run, class_name(rate)) for rate in PROFILES}
    for rate, value in rates.items():
        yield Sample({**factors, "profile_mbps": rate}, "throughput", MBPS, value)
    values, wanted = list(rates.values()), [TARGETS[percent][rate] for rate in rates]
    yield Sample(factors, "utilization", "fraction", utilization([total_mbps(run)], CAPACITY[percent]))
    yield Sample(factors, "rmse", MBPS, rmse(values, wanted))
    index = jain_index(values, wanted)
    if index is not None:
        yield Sample(factors, "jain_index", "index", index)
    reached = reservation_success(
        [float(x) / 1e6 for x in run.flows("throughput_bps")], [r for r in PROFILES for _ in range(COUNT)]
    )
    if reached is not None:
        yield Sample(factors, "reservation_success", "fraction", reached)


def gap(evidence: Evidence, scheme: str, more: Factors | None = None) -> float:
    """Root-mean-square difference between a scheme's fifteen published and measured rates, Mbit/s."""
    keys = [{**(more or {}), **entry(scheme, p, rate)} for p in CAPACITY for rate in PROFILES]
    printed = [evidence.published("throughput", key) for key in keys]
    return rmse(
        [evidence.mean("throughput", key) for key in keys], [math.nan if v is None else v for v in printed]
    )


def gaps(evidence: Evidence) -> Iterator[Row]:
    """How far each scheme's means are from the published ones, and how many of those lie among our runs."""
    for scheme in ALL_SCHEMES:
        yield Row(
            {"scheme": scheme},
            "difference_to_published",
            MBPS,
            None,
            gap(evidence, scheme),
            None,
            evidence.runs,
        )
        inside = 0
        for percent, rate in itertools.product(CAPACITY, PROFILES):
            low, high = evidence.spread("throughput", entry(scheme, percent, rate))
            value = evidence.published("throughput", entry(scheme, percent, rate))
            inside += value is not None and low <= value <= high
        yield Row({"scheme": scheme}, "published_within_runs", "of 15", None, inside, None, evidence.runs)


def sides(
    evidence: Evidence, scheme: str, percent: int, above: tuple[float, ...], below: tuple[float, ...]
) -> Judgement:
    """Whether classes are above and below their targets, each with its whole interval."""
    wanted = TARGETS[percent]
    found = {rate: evidence.estimate("throughput", entry(scheme, percent, rate)) for rate in PROFILES}
    holds = all(found[r].low > wanted[r] for r in above) and all(found[r].high < wanted[r] for r in below)
    text = ", ".join(
        f"{NAMES[rate]} {found[rate].text()} (target {wanted[rate]:.2f})"
        for rate in PROFILES
        if rate in above or rate in below
    )
    return by_interval(found.values(), f"{percent} %, Mbit/s: {text}.", holds=holds)


def shares(evidence: Evidence, scheme: str, percent: int, rate: float) -> dict[int, float]:
    """The share of its target that a class gets, by seed."""
    values = evidence.by_seed("throughput", entry(scheme, percent, rate))
    return {seed: value / TARGETS[percent][rate] for seed, value in values.items()}


def favours_small(evidence: Evidence) -> Judgement:
    """The 0.1 and the 2 Mbit/s class under RIO and three-drop at 60 % and 90 %."""
    found = {
        (scheme, percent): paired_difference(
            shares(evidence, scheme, percent, 0.1), shares(evidence, scheme, percent, 2.0)
        )
        for scheme in (RIO, THREE_DROP)
        for percent in (60, 90)
    }
    text = "; ".join(f"{SCHEME_NAMES[s]} at {p} % {e.text(sign=True)}" for (s, p), e in found.items())
    return all_above(found, f"Share of the target, 0.1 − 2 Mbit/s class: {text}.")


def inverse_favours_large(evidence: Evidence) -> Judgement:
    """At 60 %."""
    return sides(evidence, INVERSE, 60, (2.0,), (0.1, 0.0))


def no_out_nearly_reserved(evidence: Evidence) -> Judgement:
    """Every reserved class at 60 % and 90 %."""
    parts = {
        (percent, rate): evidence.mean("throughput", entry(NO_OUT, percent, rate)) / rate
        for percent in (60, 90)
        for rate in PROFILES
        if rate
    }
    text = ", ".join(f"{percent} %, {NAMES[rate]}: {share:.2f}" for (percent, rate), share in parts.items())
    return Judgement(min(parts.values()) >= 0.9, f"Achieved over reserved rate, {text}.")


def no_out_excess(evidence: Evidence) -> Judgement:
    """Best effort above its target and above the 1 Mbit/s class, the reserved classes below their targets."""
    reserved = tuple(rate for rate in PROFILES if rate)
    judged = sides(evidence, NO_OUT, 60, (0.0,), reserved)
    more = evidence.difference("throughput", entry(NO_OUT, 60, 0.0), entry(NO_OUT, 60, 1.0))
    text = f"Best effort − 1 Mbit/s class: {more.text(sign=True)} Mbit/s."
    return by_interval([more], f"{judged.evidence} {text}", holds=bool(judged.holds) and more.low > 0)


def no_out_at_120(evidence: Evidence) -> Judgement:
    """Near the targets, and no further from them than RIO."""
    found = {rate: evidence.mean("throughput", entry(NO_OUT, 120, rate)) for rate in PROFILES}
    far = [
        rate
        for rate, mean in found.items()
        if abs(mean - TARGETS[120][rate]) > max(0.1 * TARGETS[120][rate], 0.05)
    ]
    error = evidence.difference("rmse", cell(NO_OUT, 120), cell(RIO, 120))
    text = ", ".join(f"{NAMES[rate]} {mean:.3f} of {TARGETS[120][rate]:.3f}" for rate, mean in found.items())
    return by_interval(
        [error],
        f"120 %, Mbit/s: {text}; error, No-OUT − RIO {error.text(sign=True)}.",
        holds=not far and error.low <= 0,
    )


def rises(evidence: Evidence, schemes: tuple[str, ...]) -> Judgement:
    """The error from 120 % to 90 % to 60 %."""
    steps = {
        (scheme, after): evidence.difference("rmse", cell(scheme, after), cell(scheme, before))
        for scheme in schemes
        for before, after in ((120, 90), (90, 60))
    }
    against = [f"{SCHEME_NAMES[s]} to {p} %" for (s, p), step in steps.items() if step.low <= 0]
    text = "; ".join(
        f"{SCHEME_NAMES[s]} " + ", ".join(f"{evidence.mean('rmse', cell(s, p)):.3f}" for p in (120, 90, 60))
        for s in schemes
    )
    return by_interval(
        steps.values(),
        f"Error at 120, 90, 60 %, Mbit/s: {text}. Not a rise: {', '.join(against) or 'none'}.",
        holds=not against,
    )


EXCEPTIONS = ((NO_OUT, 60), (TWO_WINDOWS, 120), (THREE_DROP, 120))
"""Where the paper's own rows are further from the targets than RIO's."""


def better_than_rio(scheme: str) -> Callable[[Evidence], Judgement]:
    """A claim on scheme − RIO in the error, but for the exceptions."""

    def judge(evidence: Evidence) -> Judgement:
        found = {
            percent: evidence.difference("rmse", cell(scheme, percent), cell(RIO, percent))
            for percent in CAPACITY
            if (scheme, percent) not in EXCEPTIONS
        }
        text = "; ".join(f"{percent} % {e.text(sign=True)}" for percent, e in found.items())
        return Judgement(
            all(e.mean <= 0 for e in found.values()), f"Error, {SCHEME_NAMES[scheme]} − RIO, Mbit/s: {text}."
        )

    return judge


def exceptions(evidence: Evidence) -> Judgement:
    """Scheme − RIO in the error, at the exceptions."""
    found = {(s, p): evidence.difference("rmse", cell(s, p), cell(RIO, p)) for s, p in EXCEPTIONS}
    text = "; ".join(f"{p} %, {SCHEME_NAMES[s]} {e.text(sign=True)}" for (s, p), e in found.items())
    return all_above(found, f"Error, scheme − RIO, Mbit/s: {text}.")


def large_class_gains(evidence: Evidence) -> Judgement:
    """Scheme − RIO for the 2 Mbit/s class at 60 % and 90 %."""
    found = {
        (s, p): evidence.difference("throughput", entry(s, p, 2.0), entry(RIO, p, 2.0))
        for p in (60, 90)
        for s in ALL_SCHEMES[1:]
    }
    text = "; ".join(f"{p} %, {SCHEME_NAMES[s]} {e.text(sign=True)}" for (s, p), e in found.items())
    return all_above(found, f"2 Mbit/s class, scheme − RIO, Mbit/s: {text}.")


def two_windows_utilization(evidence: Evidence) -> Judgement:
    """Lowest of all at each level."""
    found = {(s, p): evidence.mean("utilization", cell(s, p)) for p in CAPACITY for s in ALL_SCHEMES}
    holds = all(found[TWO_WINDOWS, p] < found[s, p] for s, p in found if s != TWO_WINDOWS)
    text = "; ".join(
        f"{p} %: " + ", ".join(f"{SCHEME_NAMES[s]} {100 * found[s, p]:.1f}" for s in ALL_SCHEMES)
        for p in CAPACITY
    )
    return Judgement(holds, f"Use of the link in percent, at {text}.")


def two_windows_at_120(evidence: Evidence) -> Judgement:
    """The 2 Mbit/s class against the others."""
    return sides(evidence, TWO_WINDOWS, 120, (2.0,), (1.0, 0.5))


def far_from_target(evidence: Evidence) -> Judgement:
    """How many classes miss their target by a tenth."""
    found = {rate: evidence.estimate("throughput", entry(RIO, 60, rate)) for rate in PROFILES}
    wanted = TARGETS[60]
    missed = [rate for rate, e in found.items() if e.high < 0.9 * wanted[rate] or e.low > 1.1 * wanted[rate]]
    text = ", ".join(
        f"{NAMES[rate]} {signed(100 * (e.mean / wanted[rate] - 1), 0)} %" for rate, e in found.items()
    )
    return by_interval(found.values(), f"60 %, against the target: {text}.", holds=len(missed) >= 3)


def in_drops(evidence: Evidence) -> Judgement:
    """IN packets that the bottleneck dropped, all runs together."""
    found = {p: sum(evidence.by_seed("in_drops", cell(RIO, p)).values()) for p in CAPACITY}
    text = ", ".join(f"{p} %: {count:g}" for p, count in found.items())
    return Judgement(found[60] == found[90] == 0, f"IN packets dropped in {evidence.runs} runs, {text}.")


def fig3_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Table 1's, and the IN packets that were dropped."""
    yield from samples(factors, run)
    dropped = sum(float(packets[0]) for packets in run.link("bottleneck")["dropped"].values())
    yield Sample(factors, "in_drops", "packets", dropped)


def _plot(percent: int) -> Plot:
    return Plot(
        id=f"at-{percent}",
        title=f"Rate of a flow at {percent} % subscription",
        kind="bars",
        metric="throughput",
        x=CLASSES,
        series=SCHEMES,
        y_label="Mbit/s per flow",
        where={"subscription_percent": percent},
        references=(Reference("target", "profile_mbps", TARGETS[percent]),),
    )


TABLE1 = Study(
    id="yeom-table1",
    title="Five schemes at 60, 90 and 120 % subscription",
    source=f"{PAPER}, Table 1 and Figures 4, 5, 6 and 8",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s on 12, 8 and 6 Mbit/s",
    cells=[cell(scheme, percent) for percent in CAPACITY for scheme in ALL_SCHEMES],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "small-favoured": favours_small,
            "inverse-favours-large": inverse_favours_large,
            "no-out-nearly-reserved": no_out_nearly_reserved,
            "no-out-best-effort-takes-excess": no_out_excess,
            "no-out-good-at-120": no_out_at_120,
            "rmse-rises-rio-three-drop": lambda evidence: rises(evidence, (RIO, THREE_DROP)),
            "rmse-rises-every-scheme": lambda evidence: rises(evidence, ALL_SCHEMES),
            "inverse-better-than-rio": better_than_rio(INVERSE),
            "no-out-better-than-rio": better_than_rio(NO_OUT),
            "two-windows-better-than-rio": better_than_rio(TWO_WINDOWS),
            "three-drop-better-than-rio": better_than_rio(THREE_DROP),
            "exceptions-worse-than-rio": exceptions,
            "large-class-gains": large_class_gains,
            "two-windows-loses-utilization": two_windows_utilization,
            "two-windows-favours-large-at-120": two_windows_at_120,
        },
    ),
    tables=(
        *(
            Table(
                f"Rate of a flow at {percent} %, Mbit/s, by profile (targets "
                + ", ".join(f"{TARGETS[percent][rate]:.2f}" for rate in PROFILES)
                + ")",
                {"throughput": ""},
                SCHEMES,
                (CLASSES,),
                where={"subscription_percent": percent},
            )
            for percent in CAPACITY
        ),
        Table(
            "Root-mean-square error against the targets, Mbit/s (published as MSE), and use of the link",
            {"rmse": "error", "utilization": "use"},
            SCHEMES,
            (LEVELS,),
        ),
        Table(
            "Share of reserved flows that reach their rate, and Jain's index of rate over target",
            {"reservation_success": "reach", "jain_index": "Jain"},
            SCHEMES,
            (LEVELS,),
        ),
        Table(
            "A scheme's fifteen published rates: root-mean-square difference to our means, Mbit/s, and how "
            "many lie between the lowest and the highest of our runs",
            {"difference_to_published": "difference", "published_within_runs": "within, of 15"},
            SCHEMES,
        ),
    ),
    plots=tuple(_plot(percent) for percent in CAPACITY),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    summaries=gaps,
    single_run=True,
    default_runs=RUNS,
)

FIG3 = Study(
    id="yeom-fig3",
    title="RIO at 60, 90 and 120 % subscription",
    source=f"{PAPER}, Figure 3",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s under RIO",
    cells=[cell(RIO, percent) for percent in CAPACITY],
    scenario=build,
    samples=fig3_samples,
    published=[v for v in STATEMENT.values if v.factors["scheme"] == RIO],
    claims=claims(
        FIG3_STATEMENT.claims,
        {
            "far-from-target": far_from_target,
            "small-exceed-large-miss-60": lambda evidence: sides(evidence, RIO, 60, (0.1, 0.0), (2.0, 1.0)),
            "small-exceed-large-miss-90": lambda evidence: sides(evidence, RIO, 90, (0.1, 0.0), (2.0, 1.0)),
            "no-in-drops": in_drops,
        },
    ),
    tables=(
        Table("Rate of a flow, Mbit/s, by profile", {"throughput": ""}, LEVELS, (CLASSES,)),
        Table(
            "Error against the targets, Mbit/s (published as MSE); use of the link; IN packets dropped",
            {"rmse": "error", "utilization": "use", "in_drops": "IN drops"},
            LEVELS,
        ),
    ),
    plots=(
        Plot(
            id="rates",
            title="Rate of a flow under RIO",
            kind="bars",
            metric="throughput",
            x=CLASSES,
            series=LEVELS,
            y_label="Mbit/s per flow",
            references=(Reference("profile", "profile_mbps", {r: r for r in PROFILES if r}),),
        ),
    ),
    notes=FIG3_STATEMENT.notes,
    method=FIG3_STATEMENT.method,
    assumptions=FIG3_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS,
)

"""How the sentences on Table 1 and its figures are judged, those on No-OUT apart."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from perhop.plurals import counted
from perhop.statistics.judging import (
    Judgement,
    above,
    all_of,
    any_of,
    at_least,
    at_least_of,
    at_most,
    below,
    fact,
    judge,
    near,
)
from perhop.studies.judges import (
    difference,
    differences,
    grouped,
    less_means,
    level,
    levels,
    of_runs,
    of_statements,
    stated,
)
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    FAIRLY_CLOSE,
    INVERSE,
    LIMIT,
    NAMES,
    NO_OUT,
    PROFILES,
    RIO,
    SCHEME_NAMES,
    THREE_DROP,
    TWO_WINDOWS,
    cell,
)
from perhop.studies.yeom.ten_flows import CAPACITY, NEARLY, RESERVED, TARGETS, entry, gap_estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perhop.statistics.judging import Check
    from perhop.studies.evidence import Evidence
    from perhop.studies.judges import Judge, Numbers, Side

LOADED = (60, 90)
"""The levels at which the reservations fit into the link."""
SHORT_UNDER_RIO = ((90, 2.0), *((120, rate) for rate in RESERVED))
"""The level and class of those that are below their reserved rates in the paper's rows of RIO."""
NOTHING_MBPS = 0.001
"""A shortfall that counts as none."""
EXCEPTIONS = ((NO_OUT, 60), (TWO_WINDOWS, 120), (THREE_DROP, 120))
"""Where the paper's own rows are further from the targets than RIO's."""


def mean_target(percent: int) -> float:
    """The mean of the targets at a level, Mbit/s."""
    return sum(TARGETS[percent].values()) / len(PROFILES)


def classes(
    metric: str, scheme: str, at: Iterable[int], rates: Sequence[float], *, measured: bool = False
) -> Numbers:
    """A measure of classes under a scheme: `60 %, 2 Mbit/s 2.31 ± 0.02; …`."""
    places = {f"{p} %, {NAMES[r]}": entry(scheme, p, r) for p in at for r in rates}
    return levels(metric, places, measured=measured).reads("{name} {value}", "; ")


def of_targets(scheme: str, percent: int, rates: Iterable[float], digits: int) -> Numbers:
    """Rates at a level, named (class, target), beside their targets: `2 Mbit/s 2.31 ± 0.02 of 2.48, …`."""
    places = {(NAMES[r], TARGETS[percent][r]): entry(scheme, percent, r) for r in rates}
    return levels("throughput", places).reads(f"{{name[0]}} {{value}} of {{name[1]:.{digits}f}}")


def changes(metric: str, places: Iterable[tuple[str, int]], base: str, one: str) -> Numbers:
    """A measure under a scheme less that under another, at several places.

    Args:
        metric: The measure.
        places: Scheme and level.
        base: The other scheme.
        one: How the name of a place reads; `{s}` and `{p}` are scheme and level.
    """
    pairs = {one.format(s=SCHEME_NAMES[s], p=p): (cell(s, p), cell(base, p)) for s, p in places}
    return differences(metric, pairs).reads("{name} {value}", "; ")


def sides(schemes: Sequence[str], at: Sequence[int], over: Sequence[float], under: Sequence[float]) -> Judge:
    """Judge whether classes are above and below their targets."""
    listed = [rate for rate in PROFILES if rate in {*over, *under}]
    places = [(s, p) for s in schemes for p in at]
    statements = {
        f"{SCHEME_NAMES[s]} at {p} % {NAMES[r]}": level("throughput", entry(s, p, r)).all(side, TARGETS[p][r])
        for s, p in places
        for side, rates in ((above, over), (below, under))
        for r in rates
    }
    rates = {f"{SCHEME_NAMES[s]} at {p} %": of_targets(s, p, listed, 2) for s, p in places}
    return of_statements(statements).said(
        "Mbit/s, rate of target: {rates} ({failing}).", rates=grouped(rates, "{name} {all}")
    )


def favours_large(schemes: Sequence[str], at: Sequence[int], others: Sequence[float]) -> Judge:
    """Judge whether the 2 Mbit/s class gets a larger share of its target than the other classes named."""
    leads = {
        f"{SCHEME_NAMES[s]} at {p} %, over {NAMES[r]}": (
            lambda a, b, p=p, r=r: a / TARGETS[p][2.0] - b / TARGETS[p][r],
            ("throughput", entry(s, p, 2.0)),
            ("throughput", entry(s, p, r)),
        )
        for s, p, r in itertools.product(schemes, at, others)
    }
    found = of_runs(leads).reads("{name} {value}", "; ")
    return found.all(above).said("Share of the target, lead of the 2 Mbit/s class: {:+}.")


def keeps_reservations(schemes: Sequence[str], at: Sequence[int] = tuple(CAPACITY)) -> Judge:
    """Judge whether flows lack less of their reservations than under RIO: none at 60 %, less elsewhere."""
    places = [(s, p) for p in at for s in schemes]
    statements = {
        f"{SCHEME_NAMES[s]} at {p} %": difference("shortfall", cell(s, p), cell(RIO, p)).all(
            *((at_most, NOTHING_MBPS) if p == 60 else (below,))
        )
        for s, p in places
    }
    return of_statements(statements).said(
        "Mean shortfall of a reserved flow, Mbit/s: RIO {rio:.4f}; scheme − RIO: {changes:+.4} ({failing}).",
        rio=levels("shortfall", {f"{p} %": cell(RIO, p) for p in at}),
        changes=changes("shortfall", places, RIO, "{p} %, {s}"),
    )


def most_keep_reservations(scheme: str) -> Judge:
    """Judge whether most classes that are short of their rates under RIO lack less of them."""
    pairs = {f"{p} %, {NAMES[r]}": (entry(scheme, p, r), entry(RIO, p, r)) for p, r in SHORT_UNDER_RIO}
    found = differences("class_shortfall", pairs).reads("{name} {value}", "; ")
    return found.most(len(pairs) // 2 + 1, below).said(
        f"Shortfall of a flow, {SCHEME_NAMES[scheme]} − RIO, Mbit/s: {{:+.4}}."
    )


def close(scheme: str, share: float = FAIRLY_CLOSE, *, than_rio: bool = False) -> Judge:
    """Judge whether the error is a small part of the mean target.

    Args:
        scheme: The scheme.
        share: The part.
        than_rio: And below RIO's error where RIO is off target.
    """
    limits = {f"{p} %": share * mean_target(p) for p in CAPACITY}
    found = levels("rmse", {f"{p} %": cell(scheme, p) for p in CAPACITY}).all(at_most, limits)
    errors = levels("rmse", {(p, share * mean_target(p)): cell(scheme, p) for p in CAPACITY})
    less = changes("rmse", [(scheme, p) for p in LOADED], RIO, "{p} %").reads("{name} {value}")
    statement = found & less.all(below) if than_rio else found
    return statement.said(
        f"{SCHEME_NAMES[scheme]}, error and limit, Mbit/s: {{errors}} ({{failing}})."
        + (" Less RIO's: {less:+}." if than_rio else ""),
        errors=errors.reads("{name[0]} % {value} of {name[1]:.2f}"),
        less=less,
    )


def rises() -> Judge:
    """Judge whether the error rises from 120 % to 90 % to 60 %."""
    steps = {
        f"{SCHEME_NAMES[s]} to {after} %": (cell(s, after), cell(s, before))
        for s in ALL_SCHEMES
        for before, after in ((120, 90), (90, 60))
    }
    errors = {SCHEME_NAMES[s]: levels("rmse", {p: cell(s, p) for p in (120, 90, 60)}) for s in ALL_SCHEMES}
    return (
        differences("rmse", steps)
        .all(above)
        .said(
            "Error at 120, 90, 60 %, Mbit/s: {errors:.3f} (rises, {failing}).",
            errors=grouped({name: one.reads("{value}") for name, one in errors.items()}, "{name} {all}"),
        )
    )


def better_than_rio(scheme: str, at: Sequence[int] = tuple(CAPACITY)) -> Judge:
    """Judge whether the error is below RIO's."""
    found = changes("rmse", [(scheme, p) for p in at], RIO, "{p} %")
    return found.all(below).said(f"Error, {SCHEME_NAMES[scheme]} − RIO, Mbit/s: {{:+}}.")


def below_rio_together(metric: str, schemes: Sequence[str], at: Sequence[int]) -> Judge:
    """Judge whether a measure, in the mean over levels, is smaller than under RIO in each scheme."""
    means = {
        SCHEME_NAMES[s]: (less_means, *((metric, cell(of, p)) for of in (s, RIO) for p in at))
        for s in schemes
    }
    return of_runs(means).all(below).said("Mean over levels, scheme − RIO, Mbit/s: {:+.4}.")


def exceptions() -> Judge:
    """Judge whether the error is above RIO's at the exceptions."""
    return (
        changes("rmse", EXCEPTIONS, RIO, "{p} %, {s}").all(above).said("Error, scheme − RIO, Mbit/s: {:+}.")
    )


def inverse_closest() -> Judge:
    """Judge whether inverse-rate's error is below those of three-drop and two-windows."""
    pairs = {
        f"{p} %, {SCHEME_NAMES[s]}": (cell(INVERSE, p), cell(s, p))
        for p in CAPACITY
        for s in (THREE_DROP, TWO_WINDOWS)
    }
    found = differences("rmse", pairs).reads("{name} {value}", "; ")
    return found.all(below).said("Error, inverse-rate − scheme, Mbit/s: {:+}.")


def inverse_closest_together() -> Judge:
    """Judge whether its error is below theirs in the mean over the levels."""
    means = {
        SCHEME_NAMES[s]: (less_means, *(("rmse", cell(of, p)) for of in (INVERSE, s) for p in CAPACITY))
        for s in (THREE_DROP, TWO_WINDOWS)
    }
    return of_runs(means).all(below).said("Mean error over levels, inverse-rate − scheme, Mbit/s: {:+}.")


def within_limit() -> Judge:
    """Judge the distance of each scheme's fifteen means to the printed rates."""

    def check(evidence: Evidence) -> Check:
        return all_of(*(at_most(gap_estimate(evidence, s), LIMIT) for s in ALL_SCHEMES))

    def gaps(evidence: Evidence) -> str:
        return ", ".join(f"{SCHEME_NAMES[s]} {gap_estimate(evidence, s).text()}" for s in ALL_SCHEMES)

    return stated(check).said("Difference to the printed rates, Mbit/s: {gaps}.", gaps=gaps)


def close_at_120(share: float) -> Judge:
    """Judge whether each rate at 120 % is near its target: within a share of it, or half as many Mbit/s."""
    wanted, rates = TARGETS[120], {r: max(share * TARGETS[120][r], share / 2) for r in PROFILES}
    statements = {
        f"{SCHEME_NAMES[s]}, {NAMES[r]}": level("throughput", entry(s, 120, r)).all(
            near, wanted[r], tolerance
        )
        for s in ALL_SCHEMES
        for r, tolerance in rates.items()
    }
    means = {
        SCHEME_NAMES[s]: levels("throughput", {r: entry(s, 120, r) for r in PROFILES}).reads("{value}", "/")
        for s in ALL_SCHEMES
    }
    targets = "/".join(f"{wanted[rate]:.3f}" for rate in PROFILES)
    return of_statements(statements).said(
        f"120 %, 2/1/0.5/0.1/BE, Mbit/s, of {targets}: {{means:.3f}} ({{failing}}).",
        means=grouped(means, "{name} {all}"),
    )


def far_from_target(at: Sequence[int], share: float = 1 - NEARLY) -> Judge:
    """Judge whether more than half of the classes miss their target by a share of it, levels together."""

    def misses(percent: int, rate: float) -> Side:
        wanted = TARGETS[percent][rate]
        tolerance = max(share * wanted, share / 5)
        return lambda found: any_of(below(found, wanted - tolerance), above(found, wanted + tolerance))

    missed = {(p, r): level("throughput", entry(RIO, p, r)).all(misses(p, r)) for p in at for r in PROFILES}
    most = len(missed) // 2 + 1
    return of_statements(missed, lambda *checks: at_least_of(most, checks)).said(
        f"{{held}} of {len(missed)} for sure; Mbit/s: {{rates}}.",
        rates=grouped({p: of_targets(RIO, p, PROFILES, 3) for p in at}, "{name} %, {all}"),
    )


def soft(tolerance: float, *, each: bool = False) -> Judge:
    """Judge whether some reserved class lacks its rate although it fits into the link, under some new scheme.

    Args:
        tolerance: The share of a rate that it may lack.
        each: Under each new scheme.
    """
    short = {
        s: of_statements(
            {
                f"{NAMES[r]} at {p} %": level("throughput", entry(s, p, r)).all(below, (1 - tolerance) * r)
                for p in LOADED
                for r in RESERVED
            },
            any_of,
        )
        for s in ALL_SCHEMES[1:]
    }
    texts = {f"of_{SCHEME_NAMES[s]}": one.said("{holding}") for s, one in short.items()}

    def listed(evidence: Evidence) -> str:
        return "; ".join(f"{n.removeprefix('of_')} {one(evidence).evidence}" for n, one in texts.items())

    return of_statements(short, all_of if each else any_of).said(
        "60 and 90 %, short of the rate: {listed}.", listed=listed
    )


# ---------------------------------------------------------------- two-windows


def two_windows_utilization() -> Judge:
    """Judge whether two-windows uses least of the link at each level."""
    pairs = {
        (s, p): (cell(TWO_WINDOWS, p), cell(s, p)) for p in CAPACITY for s in ALL_SCHEMES if s != TWO_WINDOWS
    }
    uses = {
        f"{p} %": levels("utilization", {SCHEME_NAMES[s]: cell(s, p) for s in ALL_SCHEMES}).scaled(
            lambda use: 100 * use
        )
        for p in CAPACITY
    }
    return (
        differences("utilization", pairs)
        .all(below)
        .said("Use of the link in percent, at {uses:.1f}.", uses=grouped(uses))
    )


def two_windows_reserved_not_target() -> Judge:
    """Judge whether every reserved class reaches its rate, and the large ones miss their targets."""
    found = {r: level("throughput", entry(TWO_WINDOWS, 60, r)) for r in RESERVED}
    statements = {f"{r}": one.all(at_least, r) for r, one in found.items()}
    statements |= {f"{r} of target": found[r].all(below, TARGETS[60][r]) for r in (2.0, 1.0)}
    rates = levels("throughput", {(NAMES[r], TARGETS[60][r]): entry(TWO_WINDOWS, 60, r) for r in RESERVED})
    return of_statements(statements).said(
        "60 %, Mbit/s: {rates}.", rates=rates.reads("{name[0]} {value} (target {name[1]:.2f})")
    )


def two_windows_in_rates(tolerance: float) -> Judge:
    """Judge whether the rate of IN packets is the reserved rate, class by class."""
    found = classes("in_over_profile", TWO_WINDOWS, LOADED, RESERVED)
    return found.all(near, 1.0, tolerance).said("IN over reserved rate: {} ({failing}).")


def two_windows_out_packets() -> Judge:
    """Judge OUT packets and excess of the 0.1 Mbit/s class against those of the two large classes."""
    keys = {
        (p, r): (entry(TWO_WINDOWS, p, 0.1), entry(TWO_WINDOWS, p, r)) for p in LOADED for r in (2.0, 1.0)
    }
    packets = differences("out_packets", keys)
    excess = of_runs(
        {
            (p, r): (
                lambda small, large, r=r: (small - 0.1) - (large - r),
                *(("throughput", key) for key in pair),
            )
            for (p, r), pair in keys.items()
        }
    )

    def listed(evidence: Evidence) -> str:
        more, rates = packets(evidence), excess(evidence)
        return "; ".join(
            f"{p} %, 0.1 − {r:g} Mbit/s class {more[p, r].text(0, sign=True)} and "
            f"{rates[p, r].text(sign=True)} Mbit/s"
            for p, r in keys
        )

    return (packets.all(above) & excess.all(above)).said(
        "OUT packets of a flow in the run, and its excess: {listed}.", listed=listed
    )


def two_windows_bursts() -> Judge:
    """Judge whether at 60 % the classes that send more than they reserved send less of that IN."""
    sent, rates = (
        {r: level(metric, entry(TWO_WINDOWS, 60, r)) for r in (2.0, 1.0)}
        for metric in ("in_over_profile", "throughput")
    )
    return (grouped(sent).all(below, 1.0) & grouped(rates).all(above, lambda name: name[0])).said(
        "60 %: "
        + "; ".join(
            f"{NAMES[r]} gets {{rate_{r:g}}} Mbit/s and sends {{sent_{r:g}}} of its reservation IN"
            for r in sent
        )
        + ".",
        **{f"rate_{r:g}": one for r, one in rates.items()},
        **{f"sent_{r:g}": one for r, one in sent.items()},
    )


def more_aggressive() -> Judge:
    """Judge whether a reserved class of two-windows gets more than equation 3 gives Reno."""
    found = classes("over_bound", TWO_WINDOWS, LOADED, RESERVED, measured=True)
    return found.any(above, 1.0).said("Rate over equation 3's bound: {}.")


def equation_3() -> Judge:
    """Judge whether all classes under the schemes with Reno keep to the bound; two-windows' stand beside."""

    def bounds(schemes: Iterable[str]) -> Numbers:
        places = {
            f"{SCHEME_NAMES[s]} at {p} %, {NAMES[r]}": entry(s, p, r)
            for s, p, r in itertools.product(schemes, CAPACITY, PROFILES)
        }
        return levels("over_bound", places, measured=True)

    reno = bounds(s for s in ALL_SCHEMES if s != TWO_WINDOWS)
    return reno.all(at_most, 1.0).said(
        "Rate over bound, {count} classes: at most {largest}; {failing}); under two-windows, which is no "
        "Reno, up to {other}.",
        count=lambda evidence: str(len(reno(evidence))),
        largest=reno.highest().reads("{value} ({name}"),
        other=bounds((TWO_WINDOWS,)).highest().reads("{value}"),
    )


# ---------------------------------------------------------------- three-drop and losses


def mostly_out_out(least: float) -> Judge:
    """Judge the share of OUT-OUT among the OUT packets of reserved flows, under three-drop at 60 %."""
    places = {NAMES[r]: entry(THREE_DROP, 60, r) for r in RESERVED}
    found = levels("out_out_share", places, measured=True)
    return found.all(above, least).said("60 %, share of OUT-OUT among OUT: {}.")


def treats_better() -> Judge:
    """Judge the class that falls behind under three-drop at 90 % against the others, and against RIO."""
    behind = entry(THREE_DROP, 90, 2.0)
    ahead = {r: entry(THREE_DROP, 90, r) for r in (0.5, 0.1)}
    rate = level("throughput", behind)
    statement = rate.all(below, 2.0)
    for metric in ("out_out_share", "out_loss"):
        statement &= differences(metric, {r: (behind, key) for r, key in ahead.items()}).all(below)
    rio = difference("out_loss", behind, entry(RIO, 90, 2.0))

    def listed(evidence: Evidence) -> str:
        return "; ".join(
            f"{NAMES[r]} {evidence.estimate('out_out_share', key).text()} and "
            f"{evidence.estimate('out_loss', key).text()}"
            for r, key in {2.0: behind, **ahead}.items()
        )

    return (statement & rio.all(below)).said(
        "90 %: the 2 Mbit/s class gets {} Mbit/s. OUT-OUT share of OUT packets, and share of these that is "
        "dropped: {listed}; the 2 Mbit/s class against RIO: {rio:+}.",
        listed=listed,
        rio=rio,
    )


def _in_drops(evidence: Evidence, percent: int) -> float:
    return sum(evidence.by_seed("in_drops", cell(RIO, percent)).values())


def in_drops(at: Sequence[int]) -> Judge:
    """Judge whether the bottleneck dropped no IN packet, all runs together."""

    def judged(evidence: Evidence) -> Judgement:
        text = ", ".join(f"{p} %: {_in_drops(evidence, p):g}" for p in CAPACITY)
        return judge(
            fact(holds=all(_in_drops(evidence, p) == 0 for p in at)),
            f"IN packets dropped in {counted(evidence.runs, 'run')}, {text}.",
        )

    return judged


def in_lose_less() -> Judge:
    """Judge whether the bottleneck dropped a larger share of OUT packets than of IN packets."""
    metrics = ("in_loss", "all_out_loss")
    found = of_runs({p: (lambda a, b: b - a, *((m, cell(RIO, p)) for m in metrics)) for p in CAPACITY})
    text = "; ".join(f"{p} % {{in_{p}:.5}} and {{out_{p}}}" for p in CAPACITY)
    return found.all(above).said(
        f"Share that is dropped, IN and OUT: {text}.",
        **{f"in_{p}": level("in_loss", cell(RIO, p)) for p in CAPACITY},
        **{f"out_{p}": level("all_out_loss", cell(RIO, p)) for p in CAPACITY},
    )


def reservation_lost() -> Judge:
    """Judge whether at 90 % the 2 Mbit/s class loses OUT packets only, and gets less than it reserved."""
    rate, drops = (level(metric, entry(RIO, 90, 2.0)) for metric in ("throughput", "drops"))
    none_in = stated(lambda evidence: fact(holds=_in_drops(evidence, 90) == 0))
    return (rate.all(below, 2.0) & drops.all(above) & none_in).said(
        "90 %, the 2 Mbit/s class: {} Mbit/s; a flow loses {drops:.1} packets, none of them IN (all flows, "
        "all runs: {of_in}).",
        drops=drops,
        of_in=lambda evidence: f"{_in_drops(evidence, 90):g}",
    )

"""Table 1 with Figures 4, 5, 6 and 8: five schemes at 60, 90 and 120 % subscription.

How each claim is judged says `published.toml` in words, under the claim's name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import partial

from perhop.show.declared import Factors, Reference, Table
from perhop.statistics.judging import above, all_of, any_of, at_least, at_most, below, near
from perhop.studies import judges
from perhop.studies.evidence import Evidence
from perhop.studies.judges import Judge, difference, differences, grouped, level, levels, of_runs, variants
from perhop.studies.yeom import common, ten_flows
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    FAIRLY_CLOSE,
    INVERSE,
    NAMES,
    NO_OUT,
    PROFILES,
    RIO,
    SCHEME_NAMES,
    SCHEMES,
    THREE_DROP,
    TWO_WINDOWS,
    cell,
)
from perhop.studies.yeom.ten_flows import CAPACITY, COUNT, RESERVED, TARGETS, TOLERANCE, entry

LOADED = (60, 90)
"""The levels at which the reservations fit into the link."""
SHORT_UNDER_RIO = ((90, 2.0), *((120, rate) for rate in RESERVED))
"""The level and class of those that are below their reserved rates in the paper's rows of RIO."""
NOTHING_MBPS = 0.001
"""A shortfall that counts as none."""
EXCEPTIONS = ((NO_OUT, 60), (TWO_WINDOWS, 120), (THREE_DROP, 120))
"""Where the paper's own rows are further from the targets than RIO's."""
LARGE, SMALL = (2.0, 1.0), (0.1, 0.0)
SHARES = {"": 0.9, "95 %": 0.95, "80 %": 0.8}
"""A share of a rate that counts as nearly that rate, or as its reach, and the shares of the other rules."""


def row(scheme: str) -> list[Factors]:
    """A scheme at each level."""
    return [cell(scheme, p) for p in CAPACITY]


def limits(share: float) -> dict[int, float]:
    """A share of the mean of the targets at each level, Mbit/s."""
    return {p: share * sum(TARGETS[p].values()) / len(PROFILES) for p in CAPACITY}


def classes(
    metric: str, scheme: str, at: Iterable[int], rates: Sequence[float], *, measured: bool = False
) -> judges.Numbers:
    """A measure of classes under a scheme: `60 %, 2 Mbit/s 2.31 ± 0.02; …`."""
    places = {f"{p} %, {NAMES[r]}": entry(scheme, p, r) for p in at for r in rates}
    return levels(metric, places, measured=measured).reads("{name} {value}", "; ")


def of_targets(scheme: str, percent: int, rates: Iterable[float], digits: int) -> judges.Numbers:
    """Rates at a level, named (class, target), beside their targets: `2 Mbit/s 2.31 ± 0.02 of 2.48, …`."""
    places = {(NAMES[r], TARGETS[percent][r]): entry(scheme, percent, r) for r in rates}
    return levels("throughput", places).reads(f"{{name[0]}} {{value}} of {{name[1]:.{digits}f}}")


def less_rio(metric: str, places: Iterable[tuple[str, int]], one: str) -> judges.Numbers:
    """A measure under a scheme less that under RIO; `one` names a place by scheme `{s}` and level `{p}`."""
    pairs = {one.format(s=SCHEME_NAMES[s], p=p): (cell(s, p), cell(RIO, p)) for s, p in places}
    return differences(metric, pairs).reads("{name} {value}", "; ")


def sides(schemes: Sequence[str], at: Sequence[int], over: Sequence[float], under: Sequence[float]) -> Judge:
    """Judge whether classes are above and below their targets."""
    places = list(itertools.product(schemes, at))
    statements = {
        f"{SCHEME_NAMES[s]} at {p} % {NAMES[r]}": level("throughput", entry(s, p, r)).all(
            above if r in over else below, TARGETS[p][r]
        )
        for s, p in places
        for r in (*over, *under)
    }
    listed = [rate for rate in PROFILES if rate in {*over, *under}]
    rates = {f"{SCHEME_NAMES[s]} at {p} %": of_targets(s, p, listed, 2) for s, p in places}
    return judges.of_statements(statements).said(
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
    return judges.of_statements(statements).said(
        "Mean shortfall of a reserved flow, Mbit/s: RIO {rio:.4f}; scheme − RIO: {changes:+.4} ({failing}).",
        rio=levels("shortfall", {f"{p} %": cell(RIO, p) for p in at}),
        changes=less_rio("shortfall", places, "{p} %, {s}"),
    )


def most_keep_reservations(scheme: str) -> Judge:
    """Judge whether most classes that are short of their rates under RIO lack less of them."""
    pairs = {f"{p} %, {NAMES[r]}": (entry(scheme, p, r), entry(RIO, p, r)) for p, r in SHORT_UNDER_RIO}
    found = differences("class_shortfall", pairs).reads("{name} {value}", "; ")
    return found.most(len(pairs) // 2 + 1, below).said(
        f"Shortfall of a flow, {SCHEME_NAMES[scheme]} − RIO, Mbit/s: {{:+.4}}."
    )


def better_than_rio(scheme: str, at: Iterable[int] = CAPACITY) -> Judge:
    """Judge whether the error is below RIO's."""
    found = less_rio("rmse", [(scheme, p) for p in at], "{p} %")
    return found.all(below).said(f"Error, {SCHEME_NAMES[scheme]} − RIO, Mbit/s: {{:+}}.")


def together(metric: str, *schemes: str) -> Judge:
    """Judge whether a measure, in the mean over the levels, is smaller than under RIO in each scheme."""
    means = {SCHEME_NAMES[s]: (row(s), row(RIO)) for s in schemes}
    found = judges.mean_differences(metric, means).all(below)
    return found.said("Mean over levels, scheme − RIO, Mbit/s: {:+.4}.")


def close(scheme: str, share: float = FAIRLY_CLOSE, *, than_rio: bool = False) -> Judge:
    """Judge whether the error is a small part of the mean target, and below RIO's where RIO is off target."""
    wanted = {f"{p} %": limit for p, limit in limits(share).items()}
    found = levels("rmse", {f"{p} %": cell(scheme, p) for p in CAPACITY}).all(at_most, wanted)
    errors = levels("rmse", {(p, limit): cell(scheme, p) for p, limit in limits(share).items()})
    less = less_rio("rmse", [(scheme, p) for p in LOADED], "{p} %").reads("{name} {value}")
    return (found & less.all(below) if than_rio else found).said(
        f"{SCHEME_NAMES[scheme]}, error and limit, Mbit/s: {{errors}} ({{failing}})."
        + (" Less RIO's: {less:+}." if than_rio else ""),
        errors=errors.reads("{name[0]} % {value} of {name[1]:.2f}"),
        less=less,
    )


def close_at_120(share: float) -> Judge:
    """Judge whether each rate at 120 % is near its target: within a share of it, or half as many Mbit/s."""
    statements = {
        f"{SCHEME_NAMES[s]}, {NAMES[r]}": level("throughput", entry(s, 120, r)).all(
            near, wanted, max(share * wanted, share / 2)
        )
        for s in ALL_SCHEMES
        for r, wanted in TARGETS[120].items()
    }
    means = {
        SCHEME_NAMES[s]: levels("throughput", {r: entry(s, 120, r) for r in PROFILES}).reads("{value}", "/")
        for s in ALL_SCHEMES
    }
    targets = "/".join(f"{wanted:.3f}" for wanted in TARGETS[120].values())
    return judges.of_statements(statements).said(
        f"120 %, 2/1/0.5/0.1/BE, Mbit/s, of {targets}: {{means:.3f}} ({{failing}}).",
        means=grouped(means, "{name} {all}"),
    )


def soft(tolerance: float, *, each: bool = False) -> Judge:
    """Judge whether under some new scheme, or each, a class that fits the link lacks a share of its rate."""
    short = {
        SCHEME_NAMES[s]: judges.of_statements(
            {
                f"{NAMES[r]} at {p} %": level("throughput", entry(s, p, r)).all(below, (1 - tolerance) * r)
                for p in LOADED
                for r in RESERVED
            },
            any_of,
        )
        for s in ALL_SCHEMES[1:]
    }

    def listed(evidence: Evidence) -> str:
        return "; ".join(f"{s} {judges.holding(one.check(evidence)[1])}" for s, one in short.items())

    return judges.of_statements(short, all_of if each else any_of).said(
        "60 and 90 %, short of the rate: {listed}.", listed=listed
    )


def _rmse_rises() -> Judge:
    pairs = {
        f"{SCHEME_NAMES[s]} to {after} %": (cell(s, after), cell(s, before))
        for s in ALL_SCHEMES
        for before, after in ((120, 90), (90, 60))
    }
    errors = {
        SCHEME_NAMES[s]: levels("rmse", {p: cell(s, p) for p in (120, 90, 60)}).reads("{value}")
        for s in ALL_SCHEMES
    }
    found = differences("rmse", pairs).all(above)
    return found.said(
        "Error at 120, 90, 60 %, Mbit/s: {errors:.3f} (rises, {failing}).",
        errors=grouped(errors, "{name} {all}"),
    )


def _inverse_closest() -> judges.Judges:
    others = (THREE_DROP, TWO_WINDOWS)
    pairs = {f"{p} %, {SCHEME_NAMES[s]}": (cell(INVERSE, p), cell(s, p)) for p in CAPACITY for s in others}
    at_each = differences("rmse", pairs).reads("{name} {value}", "; ").all(below)
    rows = {SCHEME_NAMES[s]: (row(INVERSE), row(s)) for s in others}
    means = judges.mean_differences("rmse", rows).all(below)
    return {
        "": at_each.said("Error, inverse-rate − scheme, Mbit/s: {:+}."),
        "the levels together": means.said("Mean error over levels, inverse-rate − scheme, Mbit/s: {:+}."),
    }


def _equation_3() -> Judge:
    """Judge the schemes with Reno; two-windows' rates stand beside."""

    def bounds(schemes: Iterable[str]) -> judges.Numbers:
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


# ---------------------------------------------------------------- two-windows


def _two_windows_utilization() -> Judge:
    others = [s for s in ALL_SCHEMES if s != TWO_WINDOWS]
    pairs = {(s, p): (cell(TWO_WINDOWS, p), cell(s, p)) for p in CAPACITY for s in others}
    uses = {
        f"{p} %": levels("utilization", {SCHEME_NAMES[s]: cell(s, p) for s in ALL_SCHEMES}) for p in CAPACITY
    }
    percent = {name: one.scaled(lambda use: 100 * use) for name, one in uses.items()}
    found = differences("utilization", pairs).all(below)
    return found.said("Use of the link in percent, at {uses:.1f}.", uses=grouped(percent))


def _two_windows_reserved_not_target() -> Judge:
    reached = levels("throughput", {r: entry(TWO_WINDOWS, 60, r) for r in RESERVED}).all(at_least, float)
    missed = of_targets(TWO_WINDOWS, 60, LARGE, 2).all(below, lambda name: name[1])
    rates = of_targets(TWO_WINDOWS, 60, RESERVED, 2).reads("{name[0]} {value} (target {name[1]:.2f})")
    return (reached & missed).said("60 %, Mbit/s: {rates}.", rates=rates)


def _two_windows_out_packets() -> Judge:
    pairs = {(p, r): (entry(TWO_WINDOWS, p, 0.1), entry(TWO_WINDOWS, p, r)) for p in LOADED for r in LARGE}
    excess = of_runs(
        {
            (p, r): (lambda a, b, r=r: (a - 0.1) - (b - r), *(("throughput", place) for place in pair))
            for (p, r), pair in pairs.items()
        }
    )
    packets = differences("out_packets", pairs).reads(
        "{name[0]} %, 0.1 − {name[1]:g} Mbit/s class {value:+.0} and {excess:+} Mbit/s", "; ", excess=excess
    )
    return (packets.all(above) & excess.all(above)).said(
        "OUT packets of a flow in the run, and its excess: {}."
    )


def _two_windows_bursts() -> Judge:
    places = {(NAMES[r], r): entry(TWO_WINDOWS, 60, r) for r in LARGE}
    sent = levels("in_over_profile", places)
    rates = levels("throughput", places).reads(
        "{name[0]} gets {value} Mbit/s and sends {sent} of its reservation IN", "; ", sent=sent
    )
    return (rates.all(above, lambda name: name[1]) & sent.all(below, 1.0)).said("60 %: {}.")


# ---------------------------------------------------------------- three-drop


def _treats_better() -> Judge:
    """Judge the class that falls behind at 90 % against the others, and against RIO."""
    places = {NAMES[r]: entry(THREE_DROP, 90, r) for r in (2.0, 0.5, 0.1)}
    behind, *others = places.values()
    pairs = {n: (behind, other) for n, other in enumerate(others)}
    rate, rio = level("throughput", behind), difference("out_loss", behind, entry(RIO, 90, 2.0))
    shares, losses = (differences(metric, pairs).all(below) for metric in ("out_out_share", "out_loss"))
    return (rate.all(below, 2.0) & shares & losses & rio.all(below)).said(
        "90 %: the 2 Mbit/s class gets {} Mbit/s. OUT-OUT share of OUT packets, and share of these that is "
        "dropped: {shares}; the 2 Mbit/s class against RIO: {rio:+}.",
        shares=levels("out_out_share", places).reads(
            "{name} {value} and {loss}", "; ", loss=levels("out_loss", places)
        ),
        rio=rio,
    )


# ---------------------------------------------------------------- No-OUT


def no_out_better(rates: Sequence[float], at: Iterable[int] = CAPACITY) -> Judge:
    """Judge whether classes get more under No-OUT than under RIO."""
    pairs = {f"{p} %, {NAMES[r]}": (entry(NO_OUT, p, r), entry(RIO, p, r)) for p in at for r in rates}
    found = differences("throughput", pairs).reads("{name} {value}", "; ")
    return found.all(above).said("No-OUT − RIO, Mbit/s: {:+}.")


def _no_out_better_together(rates: Sequence[float]) -> Judge:
    means = {NAMES[r]: [[entry(s, p, r) for p in CAPACITY] for s in (NO_OUT, RIO)] for r in rates}
    found = judges.mean_differences("throughput", means).reads("{name} {value}", "; ")
    return found.all(above).said("Mean over levels, No-OUT − RIO, Mbit/s: {:+}.")


def _nearly_reserved(share: float) -> Judge:
    places = [(f"{p} %, {NAMES[r]}", p, r) for p in LOADED for r in RESERVED]
    shares = {
        name: level("throughput", entry(NO_OUT, p, r)).scaled(lambda rate, r=r: rate / r)  # type: ignore[misc]
        for name, p, r in places
    }
    found = classes("throughput", NO_OUT, LOADED, RESERVED)
    return found.all(at_least, {name: share * r for name, _, r in places}).said(
        "Achieved over reserved rate, {shares:.3f}.", shares=grouped(shares, between=", ")
    )


def _far_from_targets(share: float) -> Judge:
    found = of_targets(NO_OUT, 60, LARGE, 2)
    return found.all(below, lambda name: share * name[1]).said("60 %, Mbit/s: {}.")


def _fewer_drops() -> Judge:
    def less(metric: str, word: str) -> judges.Numbers:
        flows = {
            f"{word} at {p} %": [[entry(s, p, r) for r in RESERVED] for s in (NO_OUT, RIO)] for p in CAPACITY
        }
        return judges.mean_differences(metric, flows).reads("{name} {value}", "; ")

    found = less("sent_out", "OUT packets") | less("drops", "drops")
    return found.all(below).said("A reserved flow in the run, No-OUT − RIO: {:+.1}.")


def _prevents(tolerance: float, least_mbps: float = 0.0) -> Judge:
    """Judge whether no class exceeds its reservation by more than a share of it, or by more Mbit/s."""
    most = {f"{p} %, {NAMES[r]}": r + max(tolerance * r, least_mbps) for p in CAPACITY for r in RESERVED}
    rates = {
        f"{p} %": levels("throughput", {NAMES[r]: entry(NO_OUT, p, r) for r in RESERVED}) for p in CAPACITY
    }
    found = classes("throughput", NO_OUT, CAPACITY, RESERVED).all(at_most, most)
    return found.said("Mbit/s: {rates} ({failing}).", rates=grouped(rates, "{name} {all}"))


def _captures(share: float) -> Judge:
    excess = CAPACITY[60] - COUNT * sum(PROFILES)
    part = (lambda rate: COUNT * rate / excess, ("throughput", entry(NO_OUT, 60, 0.0)))
    found = of_runs({"": part}).reads("{value}").all(at_least, share)
    return found.said("60 %, share of the excess that best-effort flows get: {}.")


def _unfair() -> Judge:
    """Judge best effort's excess against every reserved class's, and its rate against the smallest's."""

    def lead(p: int) -> judges.Numbers:
        best = entry(NO_OUT, p, 0.0)
        pairs = {r: (("throughput", best), ("throughput", entry(NO_OUT, p, r))) for r in RESERVED}
        excess = of_runs({NAMES[r]: (lambda b, a, r=r: b - (a - r), *pair) for r, pair in pairs.items()})
        lower = difference("throughput", best, entry(NO_OUT, p, 0.1))
        named = {
            f"{p} %, excess of best effort − that of": excess,
            "its rate − that of the 0.1 Mbit/s class": lower,
        }
        return grouped(named, "{name} {all}")

    return grouped({p: lead(p) for p in LOADED}, "{all}").all(above).said("Mbit/s: {:+}.")


def _beats_reserved(least: int) -> Judge:
    pairs = {NAMES[r]: (entry(NO_OUT, 60, 0.0), entry(NO_OUT, 60, r)) for r in RESERVED}
    found = differences("throughput", pairs).most(least, above)
    return found.said("60 %, best effort − class, Mbit/s: {:+}.")


def _no_out_at_120(share: float) -> Judge:
    """Judge whether rates are near their targets: within a share of them, or two fifths as many Mbit/s."""
    found = of_targets(NO_OUT, 120, PROFILES, 3)
    return found.all(near, lambda name: name[1], lambda name: max(share * name[1], 0.4 * share)).said(
        "120 %, Mbit/s: {}."
    )


def _error_by_level(share: float, *, than_rio: bool = False) -> Judge:
    """Judge whether the error is small at 90 and 120 %, large at 60 %, and below RIO's at 90 %, if asked."""
    found = {p: level("rmse", cell(NO_OUT, p)) for p in CAPACITY}
    small = {p: found[p].all(above if p == 60 else at_most, limit) for p, limit in limits(share).items()}
    larger = differences("rmse", {p: (cell(NO_OUT, 60), cell(NO_OUT, p)) for p in (90, 120)}).all(above)
    less = difference("rmse", cell(NO_OUT, 90), cell(RIO, 90))
    errors = levels("rmse", {(p, limit): cell(NO_OUT, p) for p, limit in limits(share).items()})
    whole = judges.of_statements(small) & larger
    return (whole & less.all(below) if than_rio else whole).said(
        "Error and limit, Mbit/s: {errors}." + (" Less RIO's at 90 %: {less:+}." if than_rio else ""),
        errors=errors.reads("{name[0]} % {value} ({name[1]:.2f})"),
        less=less,
    )


def _nearer(scheme: str) -> judges.Judges:
    return {"at each level": better_than_rio(scheme), "the levels together": together("rmse", scheme)}


def _fairly_close(scheme: str) -> judges.Judges:
    return {
        "close by its own error": close(scheme),
        "close, and nearer than RIO": close(scheme, than_rio=True),
        "a tenth of the mean target": close(scheme, FAIRLY_CLOSE / 2),
        "two fifths of the mean target": close(scheme, 2 * FAIRLY_CLOSE),
    }


def _keep_better(*schemes: str) -> judges.Judges:
    return {
        "at each level": keeps_reservations(schemes),
        "the levels together": together("shortfall", *schemes),
    }


def _out_out(least: float) -> Judge:
    found = levels("out_out_share", {NAMES[r]: entry(THREE_DROP, 60, r) for r in RESERVED}, measured=True)
    return found.all(above, least).said("60 %, share of OUT-OUT among OUT: {}.")


def _in_rates(tolerance: float) -> Judge:
    found = classes("in_over_profile", TWO_WINDOWS, LOADED, RESERVED)
    return found.all(near, 1.0, tolerance).said("IN over reserved rate: {} ({failing}).")


TABLE1 = common.THIS.study(
    "table1",
    title="Five schemes at 60, 90 and 120 % subscription",
    source=f"{common.PAPER}, Table 1 and Figures 4, 5, 6 and 8",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s on 12, 8 and 6 Mbit/s",
    cells=[cell(scheme, percent) for percent in CAPACITY for scheme in ALL_SCHEMES],
    scenario=ten_flows.build,
    samples=ten_flows.samples,
    judges={
        "all-keep-reservations-better": _keep_better(*ALL_SCHEMES[1:]),
        "inverse-better-than-rio": _nearer(INVERSE),
        "two-windows-better-than-rio": _nearer(TWO_WINDOWS),
        "three-drop-better-than-rio": _nearer(THREE_DROP),
        "rmse-rises": _rmse_rises(),
        "rio-and-three-drop-favour-small": sides((RIO, THREE_DROP), LOADED, SMALL, LARGE),
        "close-at-high-subscription": variants(
            close_at_120, {"": 0.1, "5 % or 0.025 Mbit/s": 0.05, "20 % or 0.1 Mbit/s": 0.2}
        ),
        "opposite-trend": favours_large((INVERSE, TWO_WINDOWS), LOADED, (0.1,)),
        "no-out-better-for-large": {
            "": no_out_better(LARGE),
            "the levels together": _no_out_better_together(LARGE),
            "the 2 Mbit/s class, the levels together": _no_out_better_together((2.0,)),
        },
        "no-out-nearly-reserved": variants(_nearly_reserved, SHARES),
        "no-out-far-from-targets-at-60": variants(_far_from_targets, SHARES),
        "no-out-fewer-drops": _fewer_drops(),
        "no-out-prevents-more": {
            **variants(_prevents, {"": TOLERANCE, "0.5 %": TOLERANCE / 2, "2 %": 2 * TOLERANCE}),
            "10 % or 0.15 Mbit/s": _prevents(0.1, 0.15),
        },
        "no-out-best-effort-takes-excess": variants(_captures, SHARES),
        "no-out-unfair": _unfair(),
        "no-out-best-effort-beats-reserved": variants(
            _beats_reserved,
            {"than all reserved flows": len(RESERVED), "than most reserved flows": len(RESERVED) // 2 + 1},
        ),
        "no-out-good-at-120": variants(
            _no_out_at_120, {"": 0.05, "2.5 % or 0.01 Mbit/s": 0.025, "10 % or 0.04 Mbit/s": 0.1}
        ),
        "no-out-works-at-high-subscription": {
            "well by its own error": _error_by_level(FAIRLY_CLOSE),
            "well, and nearer than RIO": _error_by_level(FAIRLY_CLOSE, than_rio=True),
            "a tenth of the mean target": _error_by_level(FAIRLY_CLOSE / 2),
            "two fifths of the mean target": _error_by_level(2 * FAIRLY_CLOSE),
        },
        "inverse-keeps-reservations": most_keep_reservations(INVERSE),
        "inverse-close": _fairly_close(INVERSE),
        "inverse-favours-large": favours_large((INVERSE,), LOADED, SMALL),
        "three-drop-keeps-reservations": most_keep_reservations(THREE_DROP),
        "three-drop-close": _fairly_close(THREE_DROP),
        "three-drop-favours-small": sides((THREE_DROP,), LOADED, SMALL, LARGE),
        "three-drop-mostly-out-out": variants(_out_out, {"": 0.5, "three quarters": 0.75}),
        "two-windows-better-rates": _keep_better(TWO_WINDOWS),
        "two-windows-favours-small": sides((TWO_WINDOWS,), LOADED, SMALL, LARGE),
        "two-windows-favours-large-at-120": favours_large((TWO_WINDOWS,), (120,), (1.0, 0.5)),
        "two-windows-small-send-more-out": _two_windows_out_packets(),
        "two-windows-in-rates": variants(_in_rates, {"": 0.1, "5 %": 0.05, "20 %": 0.2}),
        "two-windows-reserved-not-target": _two_windows_reserved_not_target(),
        "two-windows-bursts-marked-out": _two_windows_bursts(),
        "two-windows-more-aggressive": classes("over_bound", TWO_WINDOWS, LOADED, RESERVED, measured=True)
        .any(above, 1.0)
        .said("Rate over equation 3's bound: {}."),
        "equation-3-bounds": _equation_3(),
        "three-drop-treats-better": _treats_better(),
        "inverse-closest": _inverse_closest(),
        "soft-guarantees": {
            "": soft(TOLERANCE),
            "under each proposed scheme": soft(TOLERANCE, each=True),
            "0.5 %": soft(TOLERANCE / 2),
            "2 %": soft(2 * TOLERANCE),
        },
        "within-limit": judges.made(
            {SCHEME_NAMES[s]: partial(ten_flows.gap_estimate, scheme=s) for s in ALL_SCHEMES}
        )
        .all(at_most, common.LIMIT)
        .said("Difference to the printed rates, Mbit/s: {}."),
        "keep-reservations-60-90": keeps_reservations(ALL_SCHEMES[1:], LOADED),
        "two-windows-better-60-90": better_than_rio(TWO_WINDOWS, LOADED),
        "three-drop-better-60-90": better_than_rio(THREE_DROP, LOADED),
        "no-out-better-for-2": no_out_better((2.0,), LOADED),
        "no-out-only-best-effort-above": sides((NO_OUT,), (60,), (0.0,), RESERVED),
        "no-out-better-than-rio": better_than_rio(NO_OUT, (90, 120)),
        "exceptions-worse-than-rio": less_rio("rmse", EXCEPTIONS, "{p} %, {s}")
        .all(above)
        .said("Error, scheme − RIO, Mbit/s: {:+}."),
        "two-windows-loses-utilization": _two_windows_utilization(),
    },
    tables=(
        *(
            Table(
                f"Rate of a flow at {percent} %, Mbit/s, by profile (targets "
                + ", ".join(f"{TARGETS[percent][rate]:.2f}" for rate in PROFILES)
                + ")",
                {"throughput": ""},
                SCHEMES,
                (common.CLASSES,),
                where={"subscription_percent": percent},
            )
            for percent in CAPACITY
        ),
        Table(
            "Root-mean-square error against the targets, Mbit/s (published as MSE), and use of the link",
            {"rmse": "error", "utilization": "use"},
            SCHEMES,
            (ten_flows.LEVELS,),
        ),
        Table(
            "Share of reserved flows that reach their rate, what such a flow lacks of it in the mean, "
            "Mbit/s, and Jain's index of rate over target",
            {"reservation_success": "reach", "shortfall": "lacks", "jain_index": "Jain"},
            SCHEMES,
            (ten_flows.LEVELS,),
        ),
        Table(
            "A scheme's fifteen published rates: root-mean-square difference to our means, Mbit/s, and how "
            "many lie between the lowest and the highest of our runs",
            {"difference_to_published": "difference", "published_within_runs": "within, of 15"},
            SCHEMES,
        ),
    ),
    plots=[
        common.bars(
            name=f"at-{percent}",
            title=f"Rate of a flow at {percent} % subscription",
            x=common.CLASSES,
            series=SCHEMES,
            reference=Reference("target", "profile_mbps", TARGETS[percent]),
            where={"subscription_percent": percent},
        )
        for percent in CAPACITY
    ],
    summaries=ten_flows.gaps,
    single_run=True,
    default_runs=common.RUNS,
)

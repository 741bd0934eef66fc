"""How the sentences of Table 1 and of Figures 3, 4, 5, 6 and 8 are judged."""

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
from perhop.studies.evidence import Evidence
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
    by_scheme,
    cell,
    combined,
    each_above,
    each_below,
    failing,
)
from perhop.studies.yeom.ten_flows import CAPACITY, NEARLY, RESERVED, TARGETS, entry, gap_estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.statistics.intervals import Estimate


def sides(
    evidence: Evidence,
    schemes: Sequence[str],
    levels: Sequence[int],
    over: Sequence[float],
    under: Sequence[float],
) -> Judgement:
    """Whether classes are above and below their targets."""
    checks, texts = {}, []
    for scheme, percent in itertools.product(schemes, levels):
        wanted = TARGETS[percent]
        found = {rate: evidence.estimate("throughput", entry(scheme, percent, rate)) for rate in PROFILES}
        where = f"{SCHEME_NAMES[scheme]} at {percent} %"
        for rate in (*over, *under):
            check = (above if rate in over else below)(found[rate], wanted[rate])
            checks[f"{where} {NAMES[rate]}"] = check
        texts.append(
            f"{where} "
            + ", ".join(
                f"{NAMES[rate]} {found[rate].text()} of {wanted[rate]:.2f}"
                for rate in PROFILES
                if rate in (*over, *under)
            )
        )
    return judge(all_of(*checks.values()), f"Mbit/s, rate of target: {'; '.join(texts)} ({failing(checks)}).")


def share_lead(evidence: Evidence, scheme: str, percent: int, ahead: float, behind: float) -> Estimate:
    """By how much the share of its target that one class gets exceeds another class's share."""
    wanted = TARGETS[percent]
    return combined(
        evidence,
        lambda a, b: a / wanted[ahead] - b / wanted[behind],
        ("throughput", entry(scheme, percent, ahead)),
        ("throughput", entry(scheme, percent, behind)),
    )


def favours_large(
    schemes: Sequence[str], levels: Sequence[int], others: Sequence[float]
) -> Callable[[Evidence], Judgement]:
    """A claim that the 2 Mbit/s class gets a larger share of its target than the other classes named."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (scheme, percent, rate): share_lead(evidence, scheme, percent, 2.0, rate)
            for scheme, percent, rate in itertools.product(schemes, levels, others)
        }
        text = "; ".join(
            f"{SCHEME_NAMES[s]} at {p} %, over {NAMES[rate]} {e.text(sign=True)}"
            for (s, p, rate), e in found.items()
        )
        return each_above(found, f"Share of the target, lead of the 2 Mbit/s class: {text}.")

    return judged


NOTHING_MBPS = 0.001
"""A shortfall that counts as none."""


def keeps_reservations(
    schemes: Sequence[str], levels: Sequence[int] = tuple(CAPACITY)
) -> Callable[[Evidence], Judgement]:
    """A claim that flows lack less of their reservations than under RIO: none at 60 %, less elsewhere."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (scheme, percent): evidence.difference("shortfall", cell(scheme, percent), cell(RIO, percent))
            for percent, scheme in itertools.product(levels, schemes)
        }
        checks = {
            f"{SCHEME_NAMES[s]} at {p} %": at_most(e, NOTHING_MBPS) if p == 60 else below(e)
            for (s, p), e in found.items()
        }
        base = ", ".join(f"{p} % {evidence.mean('shortfall', cell(RIO, p)):.4f}" for p in levels)
        text = "; ".join(f"{p} %, {SCHEME_NAMES[s]} {e.text(4, sign=True)}" for (s, p), e in found.items())
        return judge(
            all_of(*checks.values()),
            f"Mean shortfall of a reserved flow, Mbit/s: RIO {base}; scheme − RIO: {text} "
            f"({failing(checks)}).",
        )

    return judged


SHORT_UNDER_RIO = ((90, 2.0), *((120, rate) for rate in RESERVED))
"""The level and class of those that are below their reserved rates in the paper's rows of RIO."""


def most_keep_reservations(scheme: str) -> Callable[[Evidence], Judgement]:
    """A claim that most of the classes that are short of their reserved rates under RIO lack less of them."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            f"{p} %, {NAMES[r]}": evidence.difference(
                "class_shortfall", entry(scheme, p, r), entry(RIO, p, r)
            )
            for p, r in SHORT_UNDER_RIO
        }
        checks = [below(e) for e in found.values()]
        text = "; ".join(f"{name} {e.text(4, sign=True)}" for name, e in found.items())
        return judge(
            at_least_of(len(checks) // 2 + 1, checks),
            f"Shortfall of a flow, {SCHEME_NAMES[scheme]} − RIO, Mbit/s: {text}.",
        )

    return judged


def close(scheme: str, share: float = FAIRLY_CLOSE) -> Callable[[Evidence], Judgement]:
    """A claim that the error is a small part of the mean target."""

    def judged(evidence: Evidence) -> Judgement:
        found = {p: evidence.estimate("rmse", cell(scheme, p)) for p in CAPACITY}
        checks = {f"{p} %": at_most(e, share * mean_target(p)) for p, e in found.items()}
        text = ", ".join(f"{p} % {e.text()} of {share * mean_target(p):.2f}" for p, e in found.items())
        return judge(
            all_of(*checks.values()),
            f"{SCHEME_NAMES[scheme]}, error and limit, Mbit/s: {text} ({failing(checks)}).",
        )

    return judged


def closer(scheme: str) -> Callable[[Evidence], Judgement]:
    """A claim that the error is a small part of the mean target, and below RIO's where RIO is off target."""

    def judged(evidence: Evidence) -> Judgement:
        alone = close(scheme)(evidence)
        less = {p: evidence.difference("rmse", cell(scheme, p), cell(RIO, p)) for p in (60, 90)}
        found = {p: evidence.estimate("rmse", cell(scheme, p)) for p in CAPACITY}
        checks = [at_most(e, FAIRLY_CLOSE * mean_target(p)) for p, e in found.items()]
        lead = ", ".join(f"{p} % {e.text(sign=True)}" for p, e in less.items())
        return judge(
            all_of(*checks, *(below(e) for e in less.values())), f"{alone.evidence} Less RIO's: {lead}."
        )

    return judged


def mean_target(percent: int) -> float:
    """The mean of the targets at a level, Mbit/s."""
    return sum(TARGETS[percent].values()) / len(PROFILES)


def rises(evidence: Evidence) -> Judgement:
    """The error from 120 % to 90 % to 60 %."""
    steps = {
        f"{SCHEME_NAMES[scheme]} to {after} %": above(
            evidence.difference("rmse", cell(scheme, after), cell(scheme, before))
        )
        for scheme in ALL_SCHEMES
        for before, after in ((120, 90), (90, 60))
    }
    text = "; ".join(
        f"{SCHEME_NAMES[s]} " + ", ".join(f"{evidence.mean('rmse', cell(s, p)):.3f}" for p in (120, 90, 60))
        for s in ALL_SCHEMES
    )
    return judge(
        all_of(*steps.values()), f"Error at 120, 90, 60 %, Mbit/s: {text} (rises, {failing(steps)})."
    )


EXCEPTIONS = ((NO_OUT, 60), (TWO_WINDOWS, 120), (THREE_DROP, 120))
"""Where the paper's own rows are further from the targets than RIO's."""


def better_than_rio(scheme: str, levels: Sequence[int] = tuple(CAPACITY)) -> Callable[[Evidence], Judgement]:
    """A claim on scheme − RIO in the error."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            percent: evidence.difference("rmse", cell(scheme, percent), cell(RIO, percent))
            for percent in levels
        }
        text = "; ".join(f"{percent} % {e.text(sign=True)}" for percent, e in found.items())
        return each_below(found, f"Error, {SCHEME_NAMES[scheme]} − RIO, Mbit/s: {text}.")

    return judged


def exceptions(evidence: Evidence) -> Judgement:
    """Scheme − RIO in the error, at the exceptions."""
    found = {(s, p): evidence.difference("rmse", cell(s, p), cell(RIO, p)) for s, p in EXCEPTIONS}
    text = "; ".join(f"{p} %, {SCHEME_NAMES[s]} {e.text(sign=True)}" for (s, p), e in found.items())
    return each_above(found, f"Error, scheme − RIO, Mbit/s: {text}.")


def two_windows_utilization(evidence: Evidence) -> Judgement:
    """Lowest of all at each level."""
    found = {
        (s, p): evidence.difference("utilization", cell(TWO_WINDOWS, p), cell(s, p))
        for p in CAPACITY
        for s in ALL_SCHEMES
        if s != TWO_WINDOWS
    }
    text = "; ".join(
        f"{p} %: "
        + ", ".join(
            f"{SCHEME_NAMES[s]} {100 * evidence.mean('utilization', cell(s, p)):.1f}" for s in ALL_SCHEMES
        )
        for p in CAPACITY
    )
    return each_below(found, f"Use of the link in percent, at {text}.")


def two_windows_reserved_not_target(evidence: Evidence) -> Judgement:
    """Every reserved class reaches its rate, the large ones miss their targets."""
    found = {rate: evidence.estimate("throughput", entry(TWO_WINDOWS, 60, rate)) for rate in RESERVED}
    checks = [at_least(e, rate) for rate, e in found.items()]
    checks += [below(found[rate], TARGETS[60][rate]) for rate in (2.0, 1.0)]
    text = ", ".join(f"{NAMES[r]} {e.text()} (target {TARGETS[60][r]:.2f})" for r, e in found.items())
    return judge(all_of(*checks), f"60 %, Mbit/s: {text}.")


def two_windows_in_rates(tolerance: float) -> Callable[[Evidence], Judgement]:
    """A claim that the rate of IN packets is the reserved rate, class by class."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (p, rate): evidence.estimate("in_over_profile", entry(TWO_WINDOWS, p, rate))
            for p in (60, 90)
            for rate in RESERVED
        }
        checks = {f"{p} %, {NAMES[r]}": near(e, 1.0, tolerance) for (p, r), e in found.items()}
        text = "; ".join(f"{p} %, {NAMES[r]} {e.text()}" for (p, r), e in found.items())
        return judge(all_of(*checks.values()), f"IN over reserved rate: {text} ({failing(checks)}).")

    return judged


def two_windows_out_packets(evidence: Evidence) -> Judgement:
    """OUT packets and excess of the 0.1 Mbit/s class against those of the two large classes."""
    found = {
        (p, rate): evidence.difference("out_packets", entry(TWO_WINDOWS, p, 0.1), entry(TWO_WINDOWS, p, rate))
        for p in (60, 90)
        for rate in (2.0, 1.0)
    }
    excess = {
        (p, rate): combined(
            evidence,
            lambda small, large, reserved=rate: (small - 0.1) - (large - reserved),
            ("throughput", entry(TWO_WINDOWS, p, 0.1)),
            ("throughput", entry(TWO_WINDOWS, p, rate)),
        )
        for p in (60, 90)
        for rate in (2.0, 1.0)
    }
    text = "; ".join(
        f"{p} %, 0.1 − {r:g} Mbit/s class {e.text(0, sign=True)} and {excess[p, r].text(sign=True)} Mbit/s"
        for (p, r), e in found.items()
    )
    checks = [above(e) for e in (*found.values(), *excess.values())]
    return judge(all_of(*checks), f"OUT packets of a flow in the run, and its excess: {text}.")


def two_windows_bursts(evidence: Evidence) -> Judgement:
    """At 60 %, IN packets of the classes that send more than they reserved, over the reserved rate."""
    found = {rate: evidence.estimate("in_over_profile", entry(TWO_WINDOWS, 60, rate)) for rate in (2.0, 1.0)}
    rates = {rate: evidence.estimate("throughput", entry(TWO_WINDOWS, 60, rate)) for rate in found}
    checks = [below(e, 1.0) for e in found.values()] + [above(rates[rate], rate) for rate in found]
    text = "; ".join(
        f"{NAMES[r]} gets {rates[r].text()} Mbit/s and sends {e.text()} of its reservation IN"
        for r, e in found.items()
    )
    return judge(all_of(*checks), f"60 %: {text}.")


def mostly_out_out(least: float) -> Callable[[Evidence], Judgement]:
    """A claim on the share of OUT-OUT among the OUT packets of reserved flows, under three-drop at 60 %."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            rate: evidence.estimate("out_out_share", entry(THREE_DROP, 60, rate))
            for rate in RESERVED
            if evidence.measured("out_out_share", entry(THREE_DROP, 60, rate))
        }
        text = ", ".join(f"{NAMES[r]} {e.text()}" for r, e in found.items())
        return judge(
            all_of(*(above(e, least) for e in found.values())), f"60 %, share of OUT-OUT among OUT: {text}."
        )

    return judged


def close_at_120(share: float) -> Callable[[Evidence], Judgement]:
    """A claim that each rate at 120 % is near its target: within a share of it, or half as many Mbit/s."""

    def judged(evidence: Evidence) -> Judgement:
        wanted, checks, texts = TARGETS[120], {}, []
        for s in ALL_SCHEMES:
            found = {rate: evidence.estimate("throughput", entry(s, 120, rate)) for rate in PROFILES}
            for rate, e in found.items():
                check = near(e, wanted[rate], max(share * wanted[rate], share / 2))
                checks[f"{SCHEME_NAMES[s]}, {NAMES[rate]}"] = check
            texts.append(f"{SCHEME_NAMES[s]} " + "/".join(f"{e.mean:.3f}" for e in found.values()))
        targets = "/".join(f"{wanted[rate]:.3f}" for rate in PROFILES)
        return judge(
            all_of(*checks.values()),
            f"120 %, 2/1/0.5/0.1/BE, Mbit/s, of {targets}: {'; '.join(texts)} ({failing(checks)}).",
        )

    return judged


def inverse_closest(evidence: Evidence) -> Judgement:
    """Inverse-rate − three-drop and − two-windows in the error."""
    found = {
        (s, p): evidence.difference("rmse", cell(INVERSE, p), cell(s, p))
        for p in CAPACITY
        for s in (THREE_DROP, TWO_WINDOWS)
    }
    text = "; ".join(f"{p} %, {SCHEME_NAMES[s]} {e.text(sign=True)}" for (s, p), e in found.items())
    return each_below(found, f"Error, inverse-rate − scheme, Mbit/s: {text}.")


def inverse_closest_together(evidence: Evidence) -> Judgement:
    """Inverse-rate − three-drop and − two-windows in the mean error over the levels."""
    found = {
        s: combined(
            evidence,
            lambda *errors: (sum(errors[: len(CAPACITY)]) - sum(errors[len(CAPACITY) :])) / len(CAPACITY),
            *(("rmse", cell(of, p)) for of in (INVERSE, s) for p in CAPACITY),
        )
        for s in (THREE_DROP, TWO_WINDOWS)
    }
    text = by_scheme(found, sign=True)
    return each_below(found, f"Mean error over levels, inverse-rate − scheme, Mbit/s: {text}.")


def equation_3(evidence: Evidence) -> Judgement:
    """Rates over the bound, of all classes under the schemes with Reno; two-windows' stand beside them."""
    reno = [s for s in ALL_SCHEMES if s != TWO_WINDOWS]
    found = {
        (s, p, rate): evidence.estimate("over_bound", entry(s, p, rate))
        for s, p, rate in itertools.product(ALL_SCHEMES, CAPACITY, PROFILES)
        if evidence.measured("over_bound", entry(s, p, rate))
    }
    checks = {
        f"{SCHEME_NAMES[s]} at {p} %, {NAMES[r]}": at_most(e, 1.0)
        for (s, p, r), e in found.items()
        if s in reno
    }
    largest = max((key for key in found if key[0] in reno), key=lambda key: found[key].mean)
    other = max((key for key in found if key[0] == TWO_WINDOWS), key=lambda key: found[key].mean)
    return judge(
        all_of(*checks.values()),
        f"Rate over bound, {len(checks)} classes: at most {found[largest].text()} "
        f"({SCHEME_NAMES[largest[0]]} at {largest[1]} %, {NAMES[largest[2]]}; {failing(checks)}); under "
        f"two-windows, which is no Reno, up to {found[other].text()}.",
    )


def more_aggressive(evidence: Evidence) -> Judgement:
    """Two-windows' reserved classes against what equation 3 gives Reno at the same loss and round trip."""
    found = {
        (p, rate): evidence.estimate("over_bound", entry(TWO_WINDOWS, p, rate))
        for p in (60, 90)
        for rate in RESERVED
        if evidence.measured("over_bound", entry(TWO_WINDOWS, p, rate))
    }
    text = "; ".join(f"{p} %, {NAMES[r]} {e.text()}" for (p, r), e in found.items())
    return judge(any_of(*(above(e, 1.0) for e in found.values())), f"Rate over equation 3's bound: {text}.")


def treats_better(evidence: Evidence) -> Judgement:
    """Three-drop at 90 %: the class that falls behind against those that do not, and against RIO."""
    rate = evidence.estimate("throughput", entry(THREE_DROP, 90, 2.0))
    shares = {r: evidence.estimate("out_out_share", entry(THREE_DROP, 90, r)) for r in (2.0, 0.5, 0.1)}
    lost = {r: evidence.estimate("out_loss", entry(THREE_DROP, 90, r)) for r in (2.0, 0.5, 0.1)}
    checks = [below(rate, 2.0)]
    for r, metric in itertools.product((0.5, 0.1), ("out_out_share", "out_loss")):
        checks.append(
            below(evidence.difference(metric, entry(THREE_DROP, 90, 2.0), entry(THREE_DROP, 90, r)))
        )
    against = evidence.difference("out_loss", entry(THREE_DROP, 90, 2.0), entry(RIO, 90, 2.0))
    text = "; ".join(f"{NAMES[r]} {e.text()} and {lost[r].text()}" for r, e in shares.items())
    return judge(
        all_of(*checks, below(against)),
        f"90 %: the 2 Mbit/s class gets {rate.text()} Mbit/s. OUT-OUT share of OUT packets, and share of "
        f"these that is dropped: {text}; the 2 Mbit/s class against RIO: {against.text(sign=True)}.",
    )


def soft(tolerance: float, *, each: bool = False) -> Callable[[Evidence], Judgement]:
    """A claim that some reserved class lacks its rate although it fits into the link, under some new scheme.

    Args:
        tolerance: The share of a rate that it may lack.
        each: Under each new scheme.
    """

    def judged(evidence: Evidence) -> Judgement:
        checks, texts = [], []
        for s in ALL_SCHEMES[1:]:
            short = {
                f"{NAMES[r]} at {p} %": below(
                    evidence.estimate("throughput", entry(s, p, r)), (1 - tolerance) * r
                )
                for p in (60, 90)
                for r in RESERVED
            }
            checks.append(any_of(*short.values()))
            fits = [name for name, check in short.items() if check.holds]
            texts.append(f"{SCHEME_NAMES[s]} {', '.join(fits) or 'none'}")
        return judge(
            (all_of if each else any_of)(*checks), f"60 and 90 %, short of the rate: {'; '.join(texts)}."
        )

    return judged


def within_limit(evidence: Evidence) -> Judgement:
    """The distance of each scheme's fifteen means to the printed rates."""
    found = {scheme: gap_estimate(evidence, scheme) for scheme in ALL_SCHEMES}
    checks = [at_most(e, LIMIT) for e in found.values()]
    return judge(all_of(*checks), f"Difference to the printed rates, Mbit/s: {by_scheme(found)}.")


def far_from_target(levels: Sequence[int], share: float = 1 - NEARLY) -> Callable[[Evidence], Judgement]:
    """A claim that more than half of the classes miss their target by a share of it, levels together."""

    def judged(evidence: Evidence) -> Judgement:
        missed, texts = [], []
        for percent in levels:
            wanted = TARGETS[percent]
            found = {rate: evidence.estimate("throughput", entry(RIO, percent, rate)) for rate in PROFILES}
            for rate, e in found.items():
                tolerance = max(share * wanted[rate], share / 5)
                missed.append(any_of(below(e, wanted[rate] - tolerance), above(e, wanted[rate] + tolerance)))
            texts.append(
                f"{percent} %, "
                + ", ".join(f"{NAMES[r]} {e.text()} of {wanted[r]:.3f}" for r, e in found.items())
            )
        clear = sum(check.holds is True for check in missed)
        return judge(
            at_least_of(len(missed) // 2 + 1, missed),
            f"{clear} of {len(missed)} for sure; Mbit/s: {'; '.join(texts)}.",
        )

    return judged


def in_drops(levels: Sequence[int]) -> Callable[[Evidence], Judgement]:
    """A claim that the bottleneck dropped no IN packet, all runs together."""

    def judged(evidence: Evidence) -> Judgement:
        found = {p: sum(evidence.by_seed("in_drops", cell(RIO, p)).values()) for p in CAPACITY}
        text = ", ".join(f"{p} %: {count:g}" for p, count in found.items())
        return judge(
            fact(holds=all(found[p] == 0 for p in levels)),
            f"IN packets dropped in {counted(evidence.runs, 'run')}, {text}.",
        )

    return judged


def in_lose_less(evidence: Evidence) -> Judgement:
    """The share of OUT packets that the bottleneck dropped, less that of IN packets."""
    shares = {
        p: [evidence.estimate(metric, cell(RIO, p)) for metric in ("in_loss", "all_out_loss")]
        for p in CAPACITY
    }
    found = {
        p: combined(evidence, lambda a, b: b - a, ("in_loss", cell(RIO, p)), ("all_out_loss", cell(RIO, p)))
        for p in CAPACITY
    }
    text = "; ".join(f"{p} % {a.text(5)} and {b.text()}" for p, (a, b) in shares.items())
    return each_above(found, f"Share that is dropped, IN and OUT: {text}.")


def reservation_lost(evidence: Evidence) -> Judgement:
    """At 90 % the 2 Mbit/s class loses OUT packets only, and gets less than it reserved."""
    rate = evidence.estimate("throughput", entry(RIO, 90, 2.0))
    drops = evidence.estimate("drops", entry(RIO, 90, 2.0))
    of_in = sum(evidence.by_seed("in_drops", cell(RIO, 90)).values())
    return judge(
        all_of(below(rate, 2.0), above(drops), fact(holds=of_in == 0)),
        f"90 %, the 2 Mbit/s class: {rate.text()} Mbit/s; a flow loses {drops.text(1)} packets, none of them "
        f"IN (all flows, all runs: {of_in:g}).",
    )

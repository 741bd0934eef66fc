"""How the sentences on Tables 2 and 3 are judged."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from perhop.statistics.judging import above, all_of, any_of, at_least, below, near, opposite
from perhop.studies.judges import (
    Statement,
    difference,
    differences,
    grouped,
    less_means,
    level,
    levels,
    of_runs,
    of_statements,
)
from perhop.studies.yeom.common import COMPARED, INVERSE, RIO, SCHEME_NAMES, THREE_DROP, cell
from perhop.studies.yeom.rtt import CAPACITY, PROFILES, RTTS, entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perhop.show.declared import Factors
    from perhop.statistics.judging import Check
    from perhop.studies.evidence import Evidence
    from perhop.studies.judges import Judge, Numbers


RATIO_OF = {
    "fairness": "largest over smallest rate",
    "fairness_by_rtt": "rate at 20 ms over rate at 100 ms",
}
"""What the two readings of Table 3's fairness are."""
WORDS = {
    "rmse": "Error, Mbit/s",
    "utilization": "Use of the link",
    "reservation_success": "Share that reaches its rate",
}
"""How the evidence names a measure."""
CLASSES = tuple(itertools.product(COMPARED, CAPACITY, PROFILES))
RESERVED_FLOWS = tuple(itertools.product(PROFILES[1:], RTTS))


def means(evidence: Evidence, scheme: str, percent: int, profile: float) -> list[float]:
    """Means over runs of a class, in the order of rising round-trip times."""
    return [evidence.mean("throughput", entry(scheme, percent, profile, rtt)) for rtt in RTTS]


def _name(scheme: str, percent: int, profile: float) -> str:
    return f"{SCHEME_NAMES[scheme]} {percent} % {'best effort' if profile == 0 else f'{profile:g} Mbit/s'}"


def _all_schemes(metric: str, percent: int) -> Numbers:
    return levels(metric, {SCHEME_NAMES[s]: cell(s, percent) for s in COMPARED})


def _everywhere(*metrics: str, at: Iterable[int] = CAPACITY) -> Numbers:
    """`Error, Mbit/s at 75 %: RIO 0.301 ± 0.004, …` of each measure at each level."""
    by_words = {f"{WORDS[m]} at {p} %": _all_schemes(m, p) for p in at for m in metrics}
    return grouped(by_words, "{name}: {all}.", " ")


def _pairs(best: Sequence[str], others: Sequence[str], percent: int) -> dict[str, tuple[Factors, Factors]]:
    """Each of the best schemes with each other one at a level."""
    return {
        f"{SCHEME_NAMES[s]} over {SCHEME_NAMES[o]} at {percent} %": (cell(s, percent), cell(o, percent))
        for s, o in itertools.product(best, others)
        if s != o
    }


def shorter_wins() -> Judge:
    """Judge whether a flow of 20 ms gets more than one of 100 ms, in every class."""
    pairs = {_name(*key): (entry(*key, RTTS[0]), entry(*key, RTTS[-1])) for key in CLASSES}
    found = differences("throughput", pairs)
    return found.all(above).said(
        f"{len(pairs)} pairs ({{failing}}); the least sure is {{least:+}} Mbit/s.",
        least=found.lowest(lambda one: one.low).reads("{name} with {value}"),
    )


def rtt_order() -> Judge:
    """Judge whether every step to the next longer round trip lowers the rate."""
    steps = {
        f"{_name(*key)} to {after} ms": (entry(*key, after), entry(*key, before))
        for key in CLASSES
        for before, after in itertools.pairwise(RTTS)
    }
    return differences("throughput", steps).all(below).said(f"{len(steps)} steps down ({{failing}}).")


def three_drop_is_rio(share: float) -> Judge:
    """Judge whether fifteen rates are RIO's, within a share of them."""
    pairs = {
        f"{profile:g} Mbit/s at {rtt} ms": (entry(THREE_DROP, 25, profile, rtt), entry(RIO, 25, profile, rtt))
        for profile, rtt in itertools.product(PROFILES, RTTS)
    }
    found, rio = differences("throughput", pairs), levels("throughput", {n: b for n, (_, b) in pairs.items()})

    def check(evidence: Evidence) -> tuple[Check, dict[str, Check]]:
        wanted = rio(evidence)
        checks = {name: near(e, 0.0, share * wanted[name].mean) for name, e in found(evidence).items()}
        return all_of(*checks.values()), checks

    return Statement(check).said(
        "The largest difference, three-drop − RIO, is {largest:+}; {failing}).",
        largest=found.highest(lambda one: abs(one.mean)).reads("{value} Mbit/s ({name}"),
    )


def mostly_out_out(least: float) -> Judge:
    """Judge whether three-drop's reserved flows exceed their rates at 25 %, and on their OUT packets."""
    rates = of_runs(
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


def leads(metric: str, best: Sequence[str], others: Sequence[str], at: Sequence[int], words: str) -> Judge:
    """Judge whether schemes have a larger ratio than others, class by class and run by run."""
    classes = tuple(itertools.product(at, PROFILES[1:]))
    found = of_runs(
        {
            f"{p} %, {r:g} Mbit/s, {SCHEME_NAMES[s]} over {SCHEME_NAMES[o]}": (
                lambda a, b: a - b,
                *((metric, {**cell(of, p), "profile_mbps": r}) for of in (s, o)),
            )
            for (p, r), s, o in itertools.product(classes, best, others)
            if s != o
        }
    )
    ratios = {
        f"{p} %, {r:g} Mbit/s class over the next": levels(
            metric, {SCHEME_NAMES[s]: {**cell(s, p), "profile_mbps": r} for s in COMPARED}
        )
        for p, r in classes
    }
    return found.all(above).said(f"{words}: {{ratios:.2f}} ({{failing}}).", ratios=grouped(ratios))


def succeed(share: float) -> Judge:
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


def more_succeed(schemes: Sequence[str], at: Sequence[int]) -> Judge:
    """Judge whether more flows reach their rate than under RIO at 75 %, and no fewer at 25 %."""
    changes = {
        p: {s: difference("reservation_success", cell(s, p), cell(RIO, p)) for s in COMPARED if s != RIO}
        for p in at
    }
    statements = {(p, s): changes[p][s].all(above if p == 75 else at_least, 0.0) for p in at for s in schemes}
    named = {
        f"{p} %, ": grouped({SCHEME_NAMES[s]: one for s, one in found.items()}, "{name} {all}", ", ")
        for p, found in changes.items()
    }
    return of_statements(statements).said(
        "Share that reaches its rate, scheme − RIO: {changes:+}.", changes=grouped(named, "{name}{all}")
    )


def not_proportional(most: float) -> Judge:
    """Judge whether twice the reservation gets less than that ratio of rates, under RIO at 25 %."""
    rates = {
        f"{rtt} ms": (
            lambda one, half: one / half,
            *(("throughput", entry(RIO, 25, r, rtt)) for r in (1.0, 0.5)),
        )
        for rtt in RTTS
    }
    return (
        of_runs(rates)
        .all(below, most)
        .said("RIO at 25 %, rate of the 1 over that of the 0.5 Mbit/s flow: {:.2}.")
    )


def mostly_met(share: float) -> Judge:
    """Judge whether more than that share of reserved flows reach their rate, under every scheme."""
    return _everywhere("reservation_success").all(above, share).said("{}")


def larger_at_25() -> Judge:
    """Judge whether the error at 25 % is larger than that at 75 %, under every scheme."""
    pairs = {SCHEME_NAMES[s]: (cell(s, 25), cell(s, 75)) for s in COMPARED}
    return differences("rmse", pairs).all(above).said("Error, 25 % − 75 %, Mbit/s: {:+}.")


def least(metric: str, best: str, *at: int) -> Judge:
    """Judge whether a scheme has the smallest value of a measure."""
    pairs = {name: pair for p in at for name, pair in _pairs((best,), COMPARED, p).items()}
    return differences(metric, pairs).all(below).said("{all}", all=_everywhere(metric, at=at))


def unfairness(scheme: str, percent: int, metric: str = "fairness") -> list[tuple[str, Factors]]:
    """The ratio of rates of each class, by name."""
    return [(metric, {**cell(scheme, percent), "profile_mbps": profile}) for profile in PROFILES]


def fairer_by_class(best: str, percent: int) -> Judge:
    """Judge whether a scheme is fairer than RIO and inverse-rate in two of the three classes each."""
    found = {
        SCHEME_NAMES[other]: of_runs(
            {
                profile: (lambda a, b: a - b, mine, its)
                for profile, mine, its in zip(
                    PROFILES, unfairness(best, percent), unfairness(other, percent), strict=True
                )
            }
        ).reads("{value}", "/")
        for other in (RIO, INVERSE)
    }
    statements = {name: one.most(2, below) for name, one in found.items()}
    return of_statements(statements).said(
        f"{percent} %, largest over smallest rate, BE/0.5/1 Mbit/s, {SCHEME_NAMES[best]} − scheme: "
        "{changes:+.2}.",
        changes=grouped(found, "{name} {all}"),
    )


def fairer(best: str, percent: int, metric: str = "fairness") -> Judge:
    """Judge whether a scheme is fairer, in the mean over the classes, than RIO and inverse-rate."""
    found = {
        SCHEME_NAMES[o]: (less_means, *unfairness(best, percent, metric), *unfairness(o, percent, metric))
        for o in (RIO, INVERSE)
    }
    by_class = {
        SCHEME_NAMES[s]: levels(metric, {r: {**cell(s, percent), "profile_mbps": r} for r in PROFILES})
        for s in COMPARED
    }
    by_class = {name: one.reads("{value}", "/") for name, one in by_class.items()}
    words = f"{percent} %, {RATIO_OF[metric]}, BE/0.5/1 Mbit/s"
    return (
        of_runs(found)
        .all(below)
        .said(
            f"{words}: {{ratios:.2f}}; average, {SCHEME_NAMES[best]} − scheme: {{:+}}.",
            ratios=grouped(by_class, "{name} {all}"),
        )
    )


def _best(scheme: str, *, utilization: bool) -> Statement:
    """A scheme has a smaller error than all others at both levels, and, if asked, uses more of the link."""
    pairs = {name: pair for p in CAPACITY for name, pair in _pairs((scheme,), COMPARED, p).items()}
    error = differences("rmse", pairs).all(below)
    return error & differences("utilization", pairs).all(above) if utilization else error


def no_advantage(*metrics: str) -> Judge:
    """Judge whether no scheme is better than all others in these measures at both levels."""
    found = {SCHEME_NAMES[s]: _best(s, utilization="utilization" in metrics) for s in COMPARED}
    return of_statements(found, lambda *checks: opposite(any_of(*checks))).said(
        "{all}", all=_everywhere(*metrics)
    )

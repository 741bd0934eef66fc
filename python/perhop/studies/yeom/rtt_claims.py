"""How the sentences on Tables 2 and 3 are judged."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from perhop.statistics.judging import (
    Judgement,
    above,
    all_of,
    any_of,
    at_least,
    at_least_of,
    below,
    judge,
    near,
    opposite,
)
from perhop.studies.evidence import Evidence
from perhop.studies.yeom.common import (
    COMPARED,
    INVERSE,
    RIO,
    SCHEME_NAMES,
    THREE_DROP,
    by_scheme,
    cell,
    combined,
    each_above,
    each_below,
    failing,
)
from perhop.studies.yeom.rtt import CAPACITY, PROFILES, RTTS, entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.show.declared import Factors


RATIO_OF = {
    "fairness": "largest over smallest rate",
    "fairness_by_rtt": "rate at 20 ms over rate at 100 ms",
}
"""What the two readings of Table 3's fairness are."""


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


def three_drop_is_rio(share: float) -> Callable[[Evidence], Judgement]:
    """A claim that fifteen rates are RIO's, within a share of them."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            key: evidence.difference("throughput", entry(THREE_DROP, 25, *key), entry(RIO, 25, *key))
            for key in itertools.product(PROFILES, RTTS)
        }
        checks = {
            f"{profile:g} Mbit/s at {rtt} ms": near(
                e, 0.0, share * evidence.mean("throughput", entry(RIO, 25, profile, rtt))
            )
            for (profile, rtt), e in found.items()
        }
        largest = max(found, key=lambda key: abs(found[key].mean))
        return judge(
            all_of(*checks.values()),
            f"The largest difference, three-drop − RIO, is {found[largest].text(sign=True)} Mbit/s "
            f"({largest[0]:g} Mbit/s at {largest[1]} ms; {failing(checks)}).",
        )

    return judged


def mostly_out_out(least: float) -> Callable[[Evidence], Judgement]:
    """A claim that three-drop's reserved flows exceed their rates at 25 %, and on their OUT packets."""

    def judged(evidence: Evidence) -> Judgement:
        found = evidence.estimate("out_out_share", cell(THREE_DROP, 25))
        rates = {
            f"{profile:g} Mbit/s at {rtt} ms": combined(
                evidence,
                lambda rate, r=profile: rate / r,
                ("throughput", entry(THREE_DROP, 25, profile, rtt)),
            )
            for profile, rtt in itertools.product(PROFILES[1:], RTTS)
        }
        lowest = min(rates, key=lambda name: rates[name].mean)
        return judge(
            all_of(above(found, least), *(above(e, 1.0) for e in rates.values())),
            f"25 %, share of OUT-OUT among the OUT packets of reserved flows: {found.text()}; lowest rate "
            f"over reservation: {rates[lowest].text(2)} ({lowest}).",
        )

    return judged


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


def succeed(share: float) -> Callable[[Evidence], Judgement]:
    """A claim that every reserved flow gets that share of its rate, under three-drop and inverse-rate."""

    def judged(evidence: Evidence) -> Judgement:
        checks, short = {}, []
        for s, p, profile, rtt in itertools.product((THREE_DROP, INVERSE), CAPACITY, PROFILES[1:], RTTS):
            found = evidence.estimate("throughput", entry(s, p, profile, rtt))
            name = f"{_name(s, p, profile)} at {rtt} ms"
            checks[name] = at_least(found, share * profile)
            if not checks[name].holds:
                short.append(f"{name} {found.text()}")
        return judge(
            all_of(*checks.values()),
            f"Not at its rate, Mbit/s: {', '.join(short) or 'none'}. "
            f"{_each(evidence, 'reservation_success', 75)}",
        )

    return judged


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


def not_proportional(most: float) -> Callable[[Evidence], Judgement]:
    """A claim on RIO at 25 %: twice the reservation, less than that ratio of rates, at each round trip."""

    def judged(evidence: Evidence) -> Judgement:
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
            all_of(*(below(e, most) for e in found.values())),
            f"RIO at 25 %, rate of the 1 over that of the 0.5 Mbit/s flow: {text}.",
        )

    return judged


def mostly_met(least: float) -> Callable[[Evidence], Judgement]:
    """A claim on the share of reserved flows that reach their rate, under every scheme at both levels."""

    def judged(evidence: Evidence) -> Judgement:
        found = [evidence.estimate("reservation_success", cell(s, p)) for p in CAPACITY for s in COMPARED]
        return judge(
            all_of(*(above(e, least) for e in found)),
            " ".join(_each(evidence, "reservation_success", p) for p in CAPACITY),
        )

    return judged


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


def unfairness(scheme: str, percent: int, metric: str = "fairness") -> list[tuple[str, Factors]]:
    """The ratio of rates of each class, by name."""
    return [(metric, {**cell(scheme, percent), "profile_mbps": profile}) for profile in PROFILES]


def fairer_by_class(best: str, percent: int) -> Callable[[Evidence], Judgement]:
    """A claim that a scheme is fairer than RIO and inverse-rate in two of the three classes each."""

    def judged(evidence: Evidence) -> Judgement:
        checks, texts = [], []
        for other in (RIO, INVERSE):
            pairs = zip(unfairness(best, percent), unfairness(other, percent), strict=True)
            found = [combined(evidence, lambda a, b: a - b, a, b) for a, b in pairs]
            checks.append(at_least_of(2, [below(e) for e in found]))
            texts.append(f"{SCHEME_NAMES[other]} " + "/".join(e.text(2, sign=True) for e in found))
        return judge(
            all_of(*checks),
            f"{percent} %, largest over smallest rate, BE/0.5/1 Mbit/s, {SCHEME_NAMES[best]} − scheme: "
            f"{'; '.join(texts)}.",
        )

    return judged


def fairer(best: str, percent: int, metric: str = "fairness") -> Callable[[Evidence], Judgement]:
    """A claim that a scheme is fairer, in the mean over the classes, than RIO and inverse-rate."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            other: combined(
                evidence,
                lambda *ratios: (sum(ratios[:3]) - sum(ratios[3:])) / 3,
                *unfairness(best, percent, metric),
                *unfairness(other, percent, metric),
            )
            for other in (RIO, INVERSE)
        }
        text = "; ".join(
            f"{SCHEME_NAMES[s]} "
            + "/".join(f"{evidence.mean(*of):.2f}" for of in unfairness(s, percent, metric))
            for s in COMPARED
        )
        return each_below(
            found,
            f"{percent} %, {RATIO_OF[metric]}, BE/0.5/1 Mbit/s: {text}; average, "
            f"{SCHEME_NAMES[best]} − scheme: {by_scheme(found, sign=True)}.",
        )

    return judged


def no_least_error(evidence: Evidence) -> Judgement:
    """Whether a scheme has a smaller error than all others, at both levels."""
    checks = [
        all_of(
            *(
                below(evidence.difference("rmse", cell(s, p), cell(o, p)))
                for p in CAPACITY
                for o in COMPARED
                if o != s
            )
        )
        for s in COMPARED
    ]
    return judge(opposite(any_of(*checks)), " ".join(_each(evidence, "rmse", p) for p in CAPACITY))


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

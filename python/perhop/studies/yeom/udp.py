"""Figures 9 and 10: a source that does not respond to congestion, without and with a reservation."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perhop.measures.fairness import targets, utilization
from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.statistics.judging import Judgement, above, all_of, any_of, at_least, below, judge, near
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.paper import claims
from perhop.studies.study import Study
from perhop.studies.yeom.common import (
    COMPARED,
    INVERSE,
    MBPS,
    PAPER,
    RIO,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THREE_DROP,
    TWO_WINDOWS,
    Setting,
    by_scheme,
    combined,
    each_above,
    each_below,
    failing,
    mean_mbps,
    stated,
    sum_mbps,
    total_mbps,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors

RESERVED, BEST_EFFORT, UDP = "reserved", "best-effort", "udp"
FLOWS = 10
"""TCP flows of a class."""
PROFILE = 1.0
RUNS = {9: 10, 10: 20}
"""By figure."""
SENDING = (0, 4, 8, 12, 16, 20)
"""Sending rates of Figure 9's source, Mbit/s."""
CONTAINED = 10.0
"""Mbit/s: what the source gets in the end, by the paper."""
FIG9_CAPACITY, FIG10_CAPACITY = 20.0, 12.0
FIG10_SENDING = 6.0
FIG10_TARGETS = {
    profile: targets([PROFILE] * FLOWS + [profile], FIG10_CAPACITY) for profile in (PROFILE, 0.0)
}
"""By the reservation of Figure 10's source: the targets of the TCP flows, then its own."""
FIG10_TARGET = FIG10_TARGETS[PROFILE][0]

FIG9_STATEMENT = stated("fig9")
FIG10_STATEMENT = stated("fig10")


# ---------------------------------------------------------------- Figure 9


def fig9_build(cell: Factors, setting: Setting = SETTING) -> Mapping[str, Any]:
    """Ten reserved and ten best-effort TCP flows, and a best-effort source of the cell's rate."""
    scheme, sending = str(cell["scheme"]), float(cell["udp_mbps"])
    entries = [
        setting.tcp(scheme, RESERVED, PROFILE, count=FLOWS),
        setting.tcp(scheme, BEST_EFFORT, 0.0, count=FLOWS),
    ]
    if sending:
        entries.append(setting.udp(scheme, UDP, 0.0, sending))
    return setting.scenario("Yeom and Reddy, Figure 9", scheme, FIG9_CAPACITY, entries)


def fig9_samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """What a flow of each class gets, and all of a class together."""
    for group in run.groups:
        factors = {**cell, "class": group.name}
        yield Sample(factors, "throughput", MBPS, mean_mbps(run, group.name))
        yield Sample(factors, "class_throughput", MBPS, sum_mbps(run, group.name))
    yield Sample(cell, "utilization", "fraction", utilization([total_mbps(run)], FIG9_CAPACITY))


def at(scheme: str, sending: int, name: str) -> dict[str, Any]:
    """The factors of a class in one point of Figure 9."""
    return {"scheme": scheme, "udp_mbps": sending, "class": name}


def udp_rises(evidence: Evidence) -> Judgement:
    """Every step of the sending rate, as long as the source gets less than 10 Mbit/s."""
    checks = {}
    for s in COMPARED:
        for before, after in itertools.pairwise(SENDING[1:]):
            step = evidence.difference("throughput", at(s, after, UDP), at(s, before, UDP))
            there = evidence.estimate("throughput", at(s, before, UDP))
            checks[f"{SCHEME_NAMES[s]} to {after}"] = any_of(above(step), at_least(there, CONTAINED))
    text = "; ".join(
        f"{SCHEME_NAMES[s]} "
        + ", ".join(f"{evidence.mean('throughput', at(s, r, UDP)):.1f}" for r in SENDING[1:])
        for s in COMPARED
    )
    listed = ", ".join(f"{r}" for r in SENDING[1:])
    return judge(all_of(*checks.values()), f"Sending {listed} it gets, Mbit/s: {text} ({failing(checks)}).")


def contained(tolerance: float) -> Callable[[Evidence], Judgement]:
    """A claim that the source gets 10 Mbit/s where it sends 20, within a share of it."""

    def judged(evidence: Evidence) -> Judgement:
        found = {s: evidence.estimate("throughput", at(s, SENDING[-1], UDP)) for s in COMPARED}
        checks = [near(e, CONTAINED, tolerance * CONTAINED) for e in found.values()]
        return judge(all_of(*checks), f"Sending {SENDING[-1]} Mbit/s it gets {by_scheme(found, 2)}.")

    return judged


def loses(*schemes: str, reservation: bool) -> Callable[[Evidence], Judgement]:
    """A claim that reserved flows get less at 20 Mbit/s than undisturbed, or also than their reservation."""

    def judged(evidence: Evidence) -> Judgement:
        found = {s: evidence.estimate("throughput", at(s, SENDING[-1], RESERVED)) for s in schemes}
        changes = {
            s: evidence.difference("throughput", at(s, SENDING[-1], RESERVED), at(s, SENDING[0], RESERVED))
            for s in schemes
        }
        checks = [below(e) for e in changes.values()]
        if reservation:
            checks += [below(e, PROFILE) for e in found.values()]
        return judge(
            all_of(*checks),
            f"Reserved TCP flow at {SENDING[-1]} Mbit/s, Mbit/s: {by_scheme(found)}; against no such source: "
            f"{by_scheme(changes, sign=True)}.",
        )

    return judged


def protect(share: float) -> Callable[[Evidence], Judgement]:
    """A claim that reserved flows get that share of their rate at every sending rate, in two schemes."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (s, sending): evidence.estimate("throughput", at(s, sending, RESERVED))
            for s in (INVERSE, THREE_DROP)
            for sending in SENDING
        }
        lowest = {
            s: min((found[s, sending] for sending in SENDING), key=lambda e: e.mean)
            for s in (INVERSE, THREE_DROP)
        }
        checks = [at_least(e, share * PROFILE) for e in found.values()]
        others = {
            s: evidence.estimate("throughput", at(s, SENDING[-1], RESERVED)) for s in (RIO, TWO_WINDOWS)
        }
        return judge(
            all_of(*checks),
            f"Lowest rate of a reserved TCP flow, Mbit/s: {by_scheme(lowest)} (at {SENDING[-1]} Mbit/s "
            f"{by_scheme(others)}).",
        )

    return judged


def protect_better(*sending: int) -> Callable[[Evidence], Judgement]:
    """A claim that reserved flows get more than under RIO, in the mean over these sending rates."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            s: combined(
                evidence,
                lambda *rates: (sum(rates[: len(sending)]) - sum(rates[len(sending) :])) / len(sending),
                *(("throughput", at(of, rate, RESERVED)) for of in (s, RIO) for rate in sending),
            )
            for s in COMPARED
            if s != RIO
        }
        return each_above(found, f"Reserved TCP flow, scheme − RIO, Mbit/s: {by_scheme(found, sign=True)}.")

    return judged


def squeezed(last: int) -> Callable[[Evidence], Judgement]:
    """A claim that every step up to a sending rate costs best effort under inverse-rate and three-drop."""

    def judged(evidence: Evidence) -> Judgement:
        steps = {
            f"{SCHEME_NAMES[s]} to {after}": below(
                evidence.difference("throughput", at(s, after, BEST_EFFORT), at(s, before, BEST_EFFORT))
            )
            for s in (INVERSE, THREE_DROP)
            for before, after in itertools.pairwise(SENDING)
            if after <= last
        }
        text = "; ".join(
            f"{SCHEME_NAMES[s]} "
            + ", ".join(f"{evidence.mean('throughput', at(s, rate, BEST_EFFORT)):.4f}" for rate in SENDING)
            for s in (INVERSE, THREE_DROP)
        )
        listed = ", ".join(f"{rate}" for rate in SENDING)
        return judge(
            all_of(*steps.values()),
            f"Best-effort flow at {listed} Mbit/s: {text} Mbit/s ({failing(steps)}).",
        )

    return judged


def differentiate(evidence: Evidence) -> Judgement:
    """The lead of reserved over best-effort flows, at 20 Mbit/s, against RIO's and two-windows'."""
    last = SENDING[-1]
    leads = {
        s: evidence.difference("throughput", at(s, last, RESERVED), at(s, last, BEST_EFFORT))
        for s in COMPARED
    }
    found = {
        (s, other): combined(
            evidence,
            lambda a, b, c, d: (a - b) - (c - d),
            ("throughput", at(s, last, RESERVED)),
            ("throughput", at(s, last, BEST_EFFORT)),
            ("throughput", at(other, last, RESERVED)),
            ("throughput", at(other, last, BEST_EFFORT)),
        )
        for s in (INVERSE, THREE_DROP)
        for other in (RIO, TWO_WINDOWS)
    }
    text = "; ".join(
        f"{SCHEME_NAMES[s]} over {SCHEME_NAMES[o]} {e.text(sign=True)}" for (s, o), e in found.items()
    )
    return each_above(
        found, f"Reserved − best-effort flow, Mbit/s: {by_scheme(leads, sign=True)}; larger by: {text}."
    )


SENT = Axis("udp_mbps", "Sending rate, Mbit/s")
FIG9_CLASSES = Axis("class", "Class", {RESERVED: "reserved TCP", BEST_EFFORT: "best-effort TCP", UDP: "UDP"})

FIG9 = Study(
    id="yeom-fig9",
    title="A non-responsive source without a reservation",
    source=f"{PAPER}, Figure 9",
    summary="10 TCP flows of 1 Mbit/s, 10 best-effort ones and a UDP source of 0 to 20 Mbit/s on 20 Mbit/s",
    cells=[{"scheme": scheme, "udp_mbps": sending} for scheme in COMPARED for sending in SENDING],
    scenario=fig9_build,
    samples=fig9_samples,
    published=FIG9_STATEMENT.values,
    claims=claims(
        FIG9_STATEMENT.claims,
        {
            "udp-rises": udp_rises,
            "udp-contained": {
                "": contained(0.2),
                "within a tenth": contained(0.1),
                "within two fifths": contained(0.4),
            },
            "rio-loses": loses(RIO, reservation=True),
            "rio-and-two-windows-affected": loses(RIO, TWO_WINDOWS, reservation=False),
            "inverse-and-three-drop-protect": {
                "": protect(0.95),
                "97.5 %": protect(0.975),
                "90 %": protect(0.9),
            },
            "better-than-rio": {
                "": protect_better(SENDING[-1]),
                "at 16 Mbit/s": protect_better(16),
                "mean over sending rates": protect_better(*SENDING[1:]),
            },
            "best-effort-squeezed": squeezed(SENDING[-1]),
            "better-differentiation": differentiate,
            "best-effort-squeezed-to-12": squeezed(12),
        },
    ),
    tables=tuple(
        Table(title, {"throughput": ""}, SENT, (SCHEMES,), where={"class": name})
        for name, title in (
            (UDP, "Rate of the UDP source, Mbit/s, by what it sends"),
            (RESERVED, "Rate of a reserved TCP flow, Mbit/s"),
            (BEST_EFFORT, "Rate of a best-effort TCP flow, Mbit/s"),
        )
    ),
    plots=(
        Plot(
            id="classes",
            title="All flows of a class together",
            kind="lines",
            metric="class_throughput",
            x=SENT,
            series=FIG9_CLASSES,
            y_label="Mbit/s",
            facet=SCHEMES,
            references=(Reference("reserved", "scheme", dict.fromkeys(COMPARED, FLOWS * PROFILE)),),
        ),
    ),
    notes=FIG9_STATEMENT.notes,
    method=FIG9_STATEMENT.method,
    assumptions=FIG9_STATEMENT.assumptions,
    default_runs=RUNS[9],
)


# ---------------------------------------------------------------- Figure 10


def fig10_build(cell: Factors, setting: Setting = SETTING) -> Mapping[str, Any]:
    """One scheme, the source with a reservation or without."""
    return fig10_network(setting, str(cell["scheme"]), float(cell["udp_profile_mbps"]))


def fig10_network(setting: Setting, scheme: str, profile: float = PROFILE) -> dict[str, Any]:
    """Ten TCP flows with a reservation, and the UDP source."""
    entries = [
        setting.tcp(scheme, RESERVED, PROFILE, count=FLOWS),
        setting.udp(scheme, UDP, profile, FIG10_SENDING),
    ]
    return setting.scenario("Yeom and Reddy, Figure 10", scheme, FIG10_CAPACITY, entries)


def fig10_samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """What the source and a TCP flow get."""
    for group in run.groups:
        yield Sample({**cell, "class": group.name}, "throughput", MBPS, mean_mbps(run, group.name))
    yield Sample(cell, "utilization", "fraction", utilization([total_mbps(run)], FIG10_CAPACITY))
    if cell["scheme"] == THREE_DROP:
        _, out_in, out_out = run.of_group(UDP, "marked").sum(axis=0)
        out = float(out_in + out_out)
        yield Sample(cell, "udp_out_out_share", "fraction", float(out_out) / out, out)


def of(scheme: str, name: str = UDP, profile: float = PROFILE) -> dict[str, Any]:
    """The factors of a class in Figure 10."""
    return {"scheme": scheme, "class": name, "udp_profile_mbps": profile}


def udp_gains(evidence: Evidence) -> Judgement:
    """UDP − TCP."""
    found = {s: evidence.difference("throughput", of(s), of(s, RESERVED)) for s in COMPARED}
    return each_above(found, f"UDP − TCP flow, Mbit/s: {by_scheme(found, sign=True)}.")


def tcp_loses(wanted: float) -> Callable[[Evidence], Judgement]:
    """A claim that TCP flows get less than that."""

    def judged(evidence: Evidence) -> Judgement:
        found = {s: evidence.estimate("throughput", of(s, RESERVED)) for s in COMPARED}
        checks = [below(e, wanted) for e in found.values()]
        return judge(all_of(*checks), f"TCP flow, Mbit/s, of {wanted:.2f}: {by_scheme(found)}.")

    return judged


def contained_better(evidence: Evidence) -> Judgement:
    """Scheme − RIO."""
    found = {s: evidence.difference("throughput", of(s), of(RIO)) for s in COMPARED if s != RIO}
    base = evidence.estimate("throughput", of(RIO)).text()
    return each_below(found, f"UDP, RIO {base} Mbit/s; scheme − RIO: {by_scheme(found, sign=True)}.")


def much_better(times: float) -> Callable[[Evidence], Judgement]:
    """A claim that three-drop leads the next scheme by so many times what the others differ by."""
    others = [s for s in COMPARED if s != THREE_DROP]

    def lead(ours: float, *theirs: float) -> float:
        return min(theirs) - ours - times * (max(theirs) - min(theirs))

    def judged(evidence: Evidence) -> Judgement:
        found = combined(evidence, lead, *(("throughput", of(s)) for s in (THREE_DROP, *others)))
        rates = {s: evidence.estimate("throughput", of(s)) for s in COMPARED}
        less = "the others' spread" if times == 1 else f"{times:g} times the others' spread"
        return judge(
            above(found),
            f"UDP, Mbit/s: {by_scheme(rates)}; three-drop's lead less {less}: {found.text(sign=True)}.",
        )

    return judged


def worse_with_reservation(evidence: Evidence) -> Judgement:
    """What a TCP flow gets, with and without a reservation of the source."""
    rates = {s: evidence.difference("throughput", of(s, RESERVED), of(s, RESERVED, 0.0)) for s in COMPARED}
    return each_below(rates, f"TCP flow, with − without, Mbit/s: {by_scheme(rates, sign=True)}.")


def further_from_target(evidence: Evidence) -> Judgement:
    """The share of its target that a TCP flow misses, with and without a reservation of the source."""
    wanted = {profile: FIG10_TARGETS[profile][0] for profile in (PROFILE, 0.0)}
    found = {
        s: combined(
            evidence,
            lambda with_it, without: (
                (wanted[PROFILE] - with_it) / wanted[PROFILE] - (wanted[0.0] - without) / wanted[0.0]
            ),
            ("throughput", of(s, RESERVED)),
            ("throughput", of(s, RESERVED, 0.0)),
        )
        for s in COMPARED
    }
    return each_above(
        found, f"Share of its target that a TCP flow misses, with − without: {by_scheme(found, sign=True)}."
    )


def mostly_out_out(least: float) -> Callable[[Evidence], Judgement]:
    """A claim on the UDP source's packets above its reservation, under three-drop."""

    def judged(evidence: Evidence) -> Judgement:
        found = evidence.estimate("udp_out_out_share", {"scheme": THREE_DROP, "udp_profile_mbps": PROFILE})
        return judge(above(found, least), f"Share of OUT-OUT among the source's OUT packets: {found.text()}.")

    return judged


def order(evidence: Evidence) -> Judgement:
    """Three-drop below two-windows below RIO."""
    steps = [
        evidence.difference("throughput", of(lower), of(higher))
        for lower, higher in ((THREE_DROP, TWO_WINDOWS), (TWO_WINDOWS, RIO))
    ]
    found = {s: evidence.estimate("throughput", of(s)) for s in (THREE_DROP, TWO_WINDOWS, RIO)}
    return judge(all_of(*(below(e) for e in steps)), f"UDP, Mbit/s: {by_scheme(found)}.")


FIG10 = Study(
    id="yeom-fig10",
    title="A non-responsive source with a reservation",
    source=f"{PAPER}, Figure 10",
    summary="10 TCP flows and a UDP source of 6 Mbit/s, each with 1 Mbit/s reserved, on 12 Mbit/s",
    cells=[
        {"scheme": scheme, "udp_profile_mbps": profile} for profile in FIG10_TARGETS for scheme in COMPARED
    ],
    scenario=fig10_build,
    samples=fig10_samples,
    published=FIG10_STATEMENT.values,
    claims=claims(
        FIG10_STATEMENT.claims,
        {
            "udp-gains": udp_gains,
            "tcp-loses": {
                "": tcp_loses(FIG10_TARGET),
                "less than the reservation": tcp_loses(PROFILE),
            },
            "contained-better-than-rio": contained_better,
            "three-drop-much-better": {
                "": much_better(1),
                "half the others' spread": much_better(0.5),
                "twice the others' spread": much_better(2),
            },
            "worse-with-reservation": {
                "what a TCP flow gets": worse_with_reservation,
                "what a TCP flow misses of its target": further_from_target,
            },
            "udp-mostly-out-out": {"": mostly_out_out(0.5), "three quarters": mostly_out_out(0.75)},
            "order": order,
        },
    ),
    tables=(
        Table(
            f"Rate of the UDP source and of a TCP flow, Mbit/s (target of each {FIG10_TARGET:.2f})",
            {"throughput": ""},
            SCHEMES,
            (Axis("class", "Class", {UDP: "UDP", RESERVED: "TCP"}),),
            where={"udp_profile_mbps": PROFILE},
        ),
        Table(
            "The same without a reservation of the UDP source (targets "
            f"{FIG10_TARGETS[0.0][-1]:.2f} and {FIG10_TARGETS[0.0][0]:.2f})",
            {"throughput": ""},
            SCHEMES,
            (Axis("class", "Class", {UDP: "UDP", RESERVED: "TCP"}),),
            where={"udp_profile_mbps": 0.0},
        ),
    ),
    plots=(
        Plot(
            id="rates",
            title="UDP of 6 Mbit/s among TCP flows",
            kind="bars",
            metric="throughput",
            x=Axis("scheme", "", {s: SCHEME_NAMES[s].replace("-", "-\n") for s in COMPARED}),
            series=Axis("class", "", {UDP: "UDP", RESERVED: "a TCP flow"}),
            y_label="Mbit/s",
            where={"udp_profile_mbps": PROFILE},
            references=(Reference("target", "scheme", dict.fromkeys(COMPARED, FIG10_TARGET)),),
        ),
    ),
    notes=FIG10_STATEMENT.notes,
    method=FIG10_STATEMENT.method,
    assumptions=FIG10_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS[10],
)

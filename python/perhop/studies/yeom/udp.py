"""Figures 9 and 10: a source that does not respond to congestion, without and with a reservation."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, by_interval
from perhop.measures import targets, utilization
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
    all_above,
    all_below,
    by_scheme,
    mean_mbps,
    stated,
    sum_mbps,
    total_mbps,
)
from perhop.study import Axis, Evidence, Plot, Reference, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.study import Factors

RESERVED, BEST_EFFORT, UDP = "reserved", "best-effort", "udp"
FLOWS = 10
"""TCP flows of a class."""
PROFILE = 1.0
SENDING = tuple(range(0, 21, 2))
"""Sending rates of Figure 9's source, Mbit/s."""
FIG9_CAPACITY, FIG10_CAPACITY = 20.0, 12.0
FIG10_SENDING = 6.0
FIG10_TARGET = targets([PROFILE] * (FLOWS + 1), FIG10_CAPACITY)[0]
PROPORTIONAL = "three-drop-proportional"

FIG9_STATEMENT = stated("fig9")
FIG10_STATEMENT = stated("fig10")


# ---------------------------------------------------------------- Figure 9


def fig9_build(cell: Factors) -> Mapping[str, Any]:
    """Ten reserved and ten best-effort TCP flows, and a best-effort source of the cell's rate."""
    scheme, sending = str(cell["scheme"]), float(cell["udp_mbps"])
    entries = [
        SETTING.tcp(scheme, RESERVED, PROFILE, count=FLOWS),
        SETTING.tcp(scheme, BEST_EFFORT, 0.0, count=FLOWS),
    ]
    if sending:
        entries.append(SETTING.udp(scheme, UDP, 0.0, sending))
    return SETTING.scenario("Yeom and Reddy, Figure 9", scheme, FIG9_CAPACITY, entries)


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
    """Every step of the sending rate."""
    steps = {
        (s, after): evidence.difference("throughput", at(s, after, UDP), at(s, before, UDP))
        for s in COMPARED
        for before, after in itertools.pairwise(SENDING[1:])
    }
    against = [
        f"{SCHEME_NAMES[s]} to {after}"
        for (s, after), step in steps.items()
        if step.low <= 0 and evidence.mean("throughput", at(s, after, UDP)) < 10
    ]
    text = "; ".join(
        f"{SCHEME_NAMES[s]} "
        + ", ".join(f"{evidence.mean('throughput', at(s, r, UDP)):.1f}" for r in SENDING[1:])
        for s in COMPARED
    )
    return by_interval(steps.values(), f"Sending 2, 4, … 20 it gets, Mbit/s: {text}.", holds=not against)


def gets_what_it_sends(evidence: Evidence) -> Judgement:
    """Up to 8 Mbit/s in all schemes."""
    found = {
        (s, sending): evidence.mean("throughput", at(s, sending, UDP)) / sending
        for s in COMPARED
        for sending in SENDING
        if sending
    }
    text = "; ".join(
        f"{SCHEME_NAMES[s]} " + ", ".join(f"{found[s, sending]:.2f}" for sending in (4, 8, 10, 12))
        for s in COMPARED
    )
    holds = all(share >= 0.9 for (_, sending), share in found.items() if sending <= 8)
    return Judgement(holds, f"Received over sent at 4, 8, 10, 12 Mbit/s: {text}.")


def contained(evidence: Evidence) -> Judgement:
    """At 20 Mbit/s."""
    found = {s: evidence.estimate("throughput", at(s, SENDING[-1], UDP)) for s in COMPARED}
    return Judgement(
        all(8 <= e.mean <= 12 for e in found.values()), f"Sending 20 Mbit/s it gets {by_scheme(found, 2)}."
    )


def lose(evidence: Evidence) -> Judgement:
    """RIO and two-windows at 20 Mbit/s."""
    found = {s: evidence.estimate("throughput", at(s, SENDING[-1], RESERVED)) for s in COMPARED}
    return by_interval(
        found.values(),
        f"Reserved TCP flow, Mbit/s: {by_scheme(found)}.",
        holds=all(found[s].high < PROFILE for s in (RIO, TWO_WINDOWS)),
    )


def protect(evidence: Evidence) -> Judgement:
    """Inverse-rate and three-drop at every sending rate."""
    lowest = {
        s: min((evidence.mean("throughput", at(s, sending, RESERVED)), sending) for sending in SENDING)
        for s in (INVERSE, THREE_DROP)
    }
    text = "; ".join(
        f"{SCHEME_NAMES[s]} {mean:.3f} (sending {sending})" for s, (mean, sending) in lowest.items()
    )
    return Judgement(
        all(mean >= PROFILE for mean, _ in lowest.values()),
        f"Lowest mean of a reserved TCP flow, Mbit/s: {text}.",
    )


def protect_better(evidence: Evidence) -> Judgement:
    """Scheme − RIO at 20 Mbit/s."""
    found = {
        s: evidence.difference("throughput", at(s, SENDING[-1], RESERVED), at(RIO, SENDING[-1], RESERVED))
        for s in COMPARED
        if s != RIO
    }
    return all_above(found, f"Reserved TCP flow, scheme − RIO, Mbit/s: {by_scheme(found, sign=True)}.")


def squeezed(evidence: Evidence) -> Judgement:
    """Best effort under inverse-rate and three-drop, step by step."""
    steps = {
        (s, after): evidence.difference("throughput", at(s, after, BEST_EFFORT), at(s, before, BEST_EFFORT))
        for s in (INVERSE, THREE_DROP)
        for before, after in itertools.pairwise(SENDING)
        if after <= 10
    }
    text = "; ".join(
        f"{SCHEME_NAMES[s]} "
        + ", ".join(
            f"{evidence.mean('throughput', at(s, sending, BEST_EFFORT)):.3f}" for sending in SENDING[:6]
        )
        for s in (INVERSE, THREE_DROP)
    )
    return all_below(steps, f"Best-effort flow at 0, 2, … 10 Mbit/s: {text} Mbit/s.")


def differentiate(evidence: Evidence) -> Judgement:
    """Reserved − best effort at 20 Mbit/s."""
    last = SENDING[-1]
    found = {
        s: evidence.difference("throughput", at(s, last, RESERVED), at(s, last, BEST_EFFORT))
        for s in COMPARED
    }
    best = max(found[s].mean for s in (RIO, TWO_WINDOWS))
    return Judgement(
        all(found[s].mean > best for s in (INVERSE, THREE_DROP)),
        f"Reserved − best-effort flow, Mbit/s: {by_scheme(found, sign=True)}.",
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
            "udp-gets-what-it-sends": gets_what_it_sends,
            "udp-contained": contained,
            "rio-and-two-windows-lose": lose,
            "inverse-and-three-drop-protect": protect,
            "better-than-rio": protect_better,
            "best-effort-squeezed": squeezed,
            "better-differentiation": differentiate,
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
    default_runs=RUNS,
)


# ---------------------------------------------------------------- Figure 10


def fig10_build(cell: Factors) -> Mapping[str, Any]:
    """One scheme, or three-drop's other split."""
    scheme = str(cell["scheme"])
    if scheme == PROPORTIONAL:
        return fig10_network(replace(SETTING, split="proportional"), THREE_DROP)
    return fig10_network(SETTING, scheme)


def fig10_network(setting: Setting, scheme: str) -> dict[str, Any]:
    """Ten TCP flows and the UDP source, all with the same reservation."""
    entries = [
        setting.tcp(scheme, RESERVED, PROFILE, count=FLOWS),
        setting.udp(scheme, UDP, PROFILE, FIG10_SENDING),
    ]
    return setting.scenario("Yeom and Reddy, Figure 10", scheme, FIG10_CAPACITY, entries)


def fig10_samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """What the source and a TCP flow get."""
    for group in run.groups:
        yield Sample({**cell, "class": group.name}, "throughput", MBPS, mean_mbps(run, group.name))
    yield Sample(cell, "utilization", "fraction", utilization([total_mbps(run)], FIG10_CAPACITY))


def of(scheme: str, name: str = UDP) -> dict[str, Any]:
    """The factors of a class in Figure 10."""
    return {"scheme": scheme, "class": name}


def udp_gains(evidence: Evidence) -> Judgement:
    """UDP − TCP."""
    found = {s: evidence.difference("throughput", of(s), of(s, RESERVED)) for s in COMPARED}
    return all_above(found, f"UDP − TCP flow, Mbit/s: {by_scheme(found, sign=True)}.")


def contained_better(evidence: Evidence) -> Judgement:
    """Scheme − RIO."""
    found = {s: evidence.difference("throughput", of(s), of(RIO)) for s in COMPARED if s != RIO}
    base = evidence.estimate("throughput", of(RIO)).text()
    return all_below(found, f"UDP, RIO {base} Mbit/s; scheme − RIO: {by_scheme(found, sign=True)}.")


def order(evidence: Evidence) -> Judgement:
    """Three-drop below two-windows below RIO."""
    found = {s: evidence.estimate("throughput", of(s)) for s in (THREE_DROP, TWO_WINDOWS, RIO)}
    means = [e.mean for e in found.values()]
    return Judgement(means == sorted(means), f"UDP, Mbit/s: {by_scheme(found)}.")


def much_better(evidence: Evidence) -> Judgement:
    """Gain over the target."""
    gains = {s: evidence.mean("throughput", of(s)) - FIG10_TARGET for s in (*COMPARED, PROPORTIONAL)}
    text = ", ".join(f"{FIG10_NAMES[s]} {gain:.3f}" for s, gain in gains.items())
    holds = all(gains[THREE_DROP] <= gains[s] / 2 for s in COMPARED if s != THREE_DROP)
    return Judgement(holds, f"UDP, gain over {FIG10_TARGET:.2f} Mbit/s: {text}.")


FIG10_NAMES = {**{s: SCHEME_NAMES[s] for s in COMPARED}, PROPORTIONAL: "three-drop, proportional"}
FIG10_SCHEMES = Axis("scheme", "Scheme", FIG10_NAMES)

FIG10 = Study(
    id="yeom-fig10",
    title="A non-responsive source with a reservation",
    source=f"{PAPER}, Figure 10",
    summary="10 TCP flows and a UDP source of 6 Mbit/s, each with 1 Mbit/s reserved, on 12 Mbit/s",
    cells=[{"scheme": scheme} for scheme in FIG10_NAMES],
    scenario=fig10_build,
    samples=fig10_samples,
    published=FIG10_STATEMENT.values,
    claims=claims(
        FIG10_STATEMENT.claims,
        {
            "udp-gains": udp_gains,
            "contained-better-than-rio": contained_better,
            "order": order,
            "three-drop-much-better": much_better,
        },
    ),
    tables=(
        Table(
            f"Rate of the UDP source and of a TCP flow, Mbit/s (target of each {FIG10_TARGET:.2f})",
            {"throughput": ""},
            FIG10_SCHEMES,
            (Axis("class", "Class", {UDP: "UDP", RESERVED: "TCP"}),),
        ),
    ),
    plots=(
        Plot(
            id="rates",
            title="UDP of 6 Mbit/s among TCP flows",
            kind="bars",
            metric="throughput",
            x=Axis(
                "scheme",
                "",
                {
                    **{s: n.replace("-", "-\n") for s, n in FIG10_NAMES.items()},
                    PROPORTIONAL: "three-drop,\nproport.",
                },
            ),
            series=Axis("class", "", {UDP: "UDP", RESERVED: "a TCP flow"}),
            y_label="Mbit/s",
            references=(Reference("target", "scheme", dict.fromkeys(FIG10_NAMES, FIG10_TARGET)),),
        ),
    ),
    notes=FIG10_STATEMENT.notes,
    method=FIG10_STATEMENT.method,
    assumptions=FIG10_STATEMENT.assumptions,
    single_run=True,
    default_runs=RUNS,
)

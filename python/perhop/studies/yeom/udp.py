"""Figures 9 and 10: a source that does not respond to congestion, without and with a reservation."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perhop.measures.fairness import targets, utilization
from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.statistics.judging import above, any_of, at_least, below, near
from perhop.studies.evidence import Sample
from perhop.studies.judges import (
    difference,
    differences,
    grouped,
    less_means,
    level,
    levels,
    of_runs,
    of_statements,
)
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom.common import (
    COMPARED,
    INVERSE,
    PAPER,
    RIO,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THIS,
    THREE_DROP,
    TWO_WINDOWS,
    Setting,
    by_scheme,
    changes,
    sum_mbps,
    total_mbps,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.studies.judges import Judge, Numbers

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


def in_steps(schemes: Iterable[str], sending: Iterable[int], name: str) -> Numbers:
    """The rate of a class by what the source sends: `RIO 3.9, 7.4, …; inverse-rate …`."""
    found = {SCHEME_NAMES[s]: levels("throughput", {r: at(s, r, name) for r in sending}) for s in schemes}
    return grouped({s: one.reads("{value}") for s, one in found.items()}, "{name} {all}")


def udp_rises() -> Judge:
    """Judge every step of the sending rate, as long as the source gets less than 10 Mbit/s."""
    steps = {
        f"{SCHEME_NAMES[s]} to {after}": of_statements(
            {
                "more": difference("throughput", at(s, after, UDP), at(s, before, UDP)).all(above),
                "contained": level("throughput", at(s, before, UDP)).all(at_least, CONTAINED),
            },
            any_of,
        )
        for s in COMPARED
        for before, after in itertools.pairwise(SENDING[1:])
    }
    return of_statements(steps).said(
        f"Sending {', '.join(map(str, SENDING[1:]))} it gets, Mbit/s: {{rates:.1f}} ({{failing}}).",
        rates=in_steps(COMPARED, SENDING[1:], UDP),
    )


def contained(tolerance: float) -> Judge:
    """Judge whether the source gets 10 Mbit/s where it sends 20, within a share of it."""
    found = by_scheme("throughput", {s: at(s, SENDING[-1], UDP) for s in COMPARED})
    return found.all(near, CONTAINED, tolerance * CONTAINED).said(
        f"Sending {SENDING[-1]} Mbit/s it gets {{:.2}}."
    )


def loses(*schemes: str, reservation: bool) -> Judge:
    """Judge whether reserved flows get less at 20 Mbit/s than undisturbed, or also than their reservation."""
    found = by_scheme("throughput", {s: at(s, SENDING[-1], RESERVED) for s in schemes})
    less = changes({s: (at(s, SENDING[-1], RESERVED), at(s, SENDING[0], RESERVED)) for s in schemes})
    statement = less.all(below) & found.all(below, PROFILE) if reservation else less.all(below)
    return statement.said(
        f"Reserved TCP flow at {SENDING[-1]} Mbit/s, Mbit/s: {{rates}}; against no such source: {{less:+}}.",
        rates=found,
        less=less,
    )


def protect(share: float) -> Judge:
    """Judge whether reserved flows get that share of their rate at every sending rate, in two schemes."""
    found = {
        SCHEME_NAMES[s]: levels("throughput", {r: at(s, r, RESERVED) for r in SENDING})
        for s in (INVERSE, THREE_DROP)
    }
    lowest = {name: rates.lowest().reads("{value}") for name, rates in found.items()}
    return (
        grouped(found)
        .all(at_least, share * PROFILE)
        .said(
            f"Lowest rate of a reserved TCP flow, Mbit/s: {{lowest}} (at {SENDING[-1]} Mbit/s {{others}}).",
            lowest=grouped(lowest, "{name} {all}", ", "),
            others=by_scheme("throughput", {s: at(s, SENDING[-1], RESERVED) for s in (RIO, TWO_WINDOWS)}),
        )
    )


def protect_better(*sending: int) -> Judge:
    """Judge whether reserved flows get more than under RIO, in the mean over these sending rates."""
    means = {
        SCHEME_NAMES[s]: (
            less_means,
            *(("throughput", at(of, r, RESERVED)) for of in (s, RIO) for r in sending),
        )
        for s in COMPARED
        if s != RIO
    }
    return of_runs(means).all(above).said("Reserved TCP flow, scheme − RIO, Mbit/s: {:+}.")


def squeezed(last: int) -> Judge:
    """Judge whether every step up to a sending rate costs best effort under inverse-rate and three-drop."""
    steps = {
        f"{SCHEME_NAMES[s]} to {after}": (at(s, after, BEST_EFFORT), at(s, before, BEST_EFFORT))
        for s in (INVERSE, THREE_DROP)
        for before, after in itertools.pairwise(SENDING)
        if after <= last
    }
    return (
        differences("throughput", steps)
        .all(below)
        .said(
            f"Best-effort flow at {', '.join(map(str, SENDING))} Mbit/s: {{rates:.4f}} Mbit/s ({{failing}}).",
            rates=in_steps((INVERSE, THREE_DROP), SENDING, BEST_EFFORT),
        )
    )


def differentiate() -> Judge:
    """Judge the lead of reserved over best-effort flows, at 20 Mbit/s, against RIO's and two-windows'."""
    last = SENDING[-1]
    pairs = {s: (at(s, last, RESERVED), at(s, last, BEST_EFFORT)) for s in COMPARED}
    larger = {
        f"{SCHEME_NAMES[s]} over {SCHEME_NAMES[o]}": (
            lambda a, b, c, d: (a - b) - (c - d),
            *(("throughput", key) for key in (*pairs[s], *pairs[o])),
        )
        for s in (INVERSE, THREE_DROP)
        for o in (RIO, TWO_WINDOWS)
    }
    found = of_runs(larger).reads("{name} {value}", "; ")
    return found.all(above).said(
        "Reserved − best-effort flow, Mbit/s: {leads:+}; larger by: {:+}.", leads=changes(pairs)
    )


SENT = Axis("udp_mbps", "Sending rate, Mbit/s")
FIG9_CLASSES = Axis("class", "Class", {RESERVED: "reserved TCP", BEST_EFFORT: "best-effort TCP", UDP: "UDP"})

FIG9 = THIS.study(
    "fig9",
    title="A non-responsive source without a reservation",
    source=f"{PAPER}, Figure 9",
    summary="10 TCP flows of 1 Mbit/s, 10 best-effort ones and a UDP source of 0 to 20 Mbit/s on 20 Mbit/s",
    cells=[{"scheme": scheme, "udp_mbps": sending} for scheme in COMPARED for sending in SENDING],
    scenario=fig9_build,
    samples=fig9_samples,
    judges={
        "udp-rises": udp_rises(),
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
        "better-differentiation": differentiate(),
        "best-effort-squeezed-to-12": squeezed(12),
    },
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


def udp_gains() -> Judge:
    """Judge whether the UDP source gets more than a TCP flow."""
    return (
        changes({s: (of(s), of(s, RESERVED)) for s in COMPARED})
        .all(above)
        .said("UDP − TCP flow, Mbit/s: {:+}.")
    )


def tcp_loses(wanted: float) -> Judge:
    """Judge whether TCP flows get less than that."""
    found = by_scheme("throughput", {s: of(s, RESERVED) for s in COMPARED})
    return found.all(below, wanted).said(f"TCP flow, Mbit/s, of {wanted:.2f}: {{}}.")


def contained_better() -> Judge:
    """Judge whether the source gets less than under RIO."""
    found = changes({s: (of(s), of(RIO)) for s in COMPARED if s != RIO})
    return found.all(below).said(
        "UDP, RIO {rio} Mbit/s; scheme − RIO: {:+}.", rio=level("throughput", of(RIO))
    )


def much_better(times: float) -> Judge:
    """Judge whether three-drop leads the next scheme by so many times what the others differ by."""

    def lead(ours: float, *theirs: float) -> float:
        return min(theirs) - ours - times * (max(theirs) - min(theirs))

    rates = [("throughput", of(s)) for s in (THREE_DROP, *(s for s in COMPARED if s != THREE_DROP))]
    less = "the others' spread" if times == 1 else f"{times:g} times the others' spread"
    return (
        of_runs({"": (lead, *rates)})
        .reads("{value}")
        .all(above)
        .said(
            f"UDP, Mbit/s: {{rates}}; three-drop's lead less {less}: {{:+}}.",
            rates=by_scheme("throughput", {s: of(s) for s in COMPARED}),
        )
    )


def worse_with_reservation() -> Judge:
    """Judge what a TCP flow gets, with and without a reservation of the source."""
    found = changes({s: (of(s, RESERVED), of(s, RESERVED, 0.0)) for s in COMPARED})
    return found.all(below).said("TCP flow, with − without, Mbit/s: {:+}.")


def further_from_target() -> Judge:
    """Judge the share of its target that a TCP flow misses, with and without a reservation of the source."""
    wanted, alone = (FIG10_TARGETS[profile][0] for profile in (PROFILE, 0.0))
    missed = {
        SCHEME_NAMES[s]: (
            lambda with_it, without: (wanted - with_it) / wanted - (alone - without) / alone,
            ("throughput", of(s, RESERVED)),
            ("throughput", of(s, RESERVED, 0.0)),
        )
        for s in COMPARED
    }
    return (
        of_runs(missed).all(above).said("Share of its target that a TCP flow misses, with − without: {:+}.")
    )


def mostly_out_out(least: float) -> Judge:
    """Judge the UDP source's packets above its reservation, under three-drop."""
    found = level("udp_out_out_share", {"scheme": THREE_DROP, "udp_profile_mbps": PROFILE})
    return found.all(above, least).said("Share of OUT-OUT among the source's OUT packets: {}.")


def order() -> Judge:
    """Judge whether three-drop is below two-windows, and that below RIO."""
    order = (THREE_DROP, TWO_WINDOWS, RIO)
    steps = {s: (of(s), of(higher)) for s, higher in itertools.pairwise(order)}
    return (
        changes(steps)
        .all(below)
        .said("UDP, Mbit/s: {rates}.", rates=by_scheme("throughput", {s: of(s) for s in order}))
    )


FIG10 = THIS.study(
    "fig10",
    title="A non-responsive source with a reservation",
    source=f"{PAPER}, Figure 10",
    summary="10 TCP flows and a UDP source of 6 Mbit/s, each with 1 Mbit/s reserved, on 12 Mbit/s",
    cells=[
        {"scheme": scheme, "udp_profile_mbps": profile} for profile in FIG10_TARGETS for scheme in COMPARED
    ],
    scenario=fig10_build,
    samples=fig10_samples,
    judges={
        "udp-gains": udp_gains(),
        "tcp-loses": {
            "": tcp_loses(FIG10_TARGET),
            "less than the reservation": tcp_loses(PROFILE),
        },
        "contained-better-than-rio": contained_better(),
        "three-drop-much-better": {
            "": much_better(1),
            "half the others' spread": much_better(0.5),
            "twice the others' spread": much_better(2),
        },
        "worse-with-reservation": {
            "what a TCP flow gets": worse_with_reservation(),
            "what a TCP flow misses of its target": further_from_target(),
        },
        "udp-mostly-out-out": {"": mostly_out_out(0.5), "three quarters": mostly_out_out(0.75)},
        "order": order(),
    },
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
    single_run=True,
    default_runs=RUNS[10],
)

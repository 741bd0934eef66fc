"""Figures 9 and 10: a source that does not respond to congestion, without and with a reservation.

How each claim is judged says `published.toml` in words, under the claim's name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perhop.measures.fairness import targets, utilization
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, tables
from perhop.statistics.judging import above, any_of, at_least, below, near
from perhop.studies import judges
from perhop.studies.evidence import Sample
from perhop.studies.judges import Judge, difference, differences, grouped, level, levels, of_runs, variants
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom import common
from perhop.studies.yeom.common import COMPARED, INVERSE, RIO, SCHEME_NAMES, THREE_DROP, TWO_WINDOWS

RESERVED, BEST_EFFORT, UDP = "reserved", "best-effort", "udp"
FLOWS = 10
"""TCP flows of a class."""
PROFILE = 1.0
SENDING = (0, 4, 8, 12, 16, 20)
"""Sending rates of Figure 9's source, Mbit/s."""
NOTHING, MOST = SENDING[0], SENDING[-1]
CONTAINED = 10.0
"""Mbit/s: what the source gets in the end, by the paper."""
FIG9_CAPACITY, FIG10_CAPACITY = 20.0, 12.0
FIG10_SENDING = 6.0
FIG10_TARGETS = {
    profile: targets([PROFILE] * FLOWS + [profile], FIG10_CAPACITY) for profile in (PROFILE, 0.0)
}
"""The targets of the TCP flows, then that of Figure 10's source, by the source's reservation."""
FIG10_TARGET = FIG10_TARGETS[PROFILE][0]


# ---------------------------------------------------------------- Figure 9


def fig9_build(cell: Factors, setting: common.Setting = common.SETTING) -> Mapping[str, Any]:
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
    """The throughput of a flow of each class, and of all of a class together."""
    for group in run.groups:
        factors = {**cell, "class": group.name}
        yield Sample(factors, "throughput", MBPS, mean_mbps(run, group.name))
        yield Sample(factors, "class_throughput", MBPS, common.sum_mbps(run, group.name))
    yield Sample(cell, "utilization", "fraction", utilization([common.total_mbps(run)], FIG9_CAPACITY))


def at(scheme: str, sending: int, name: str) -> dict[str, Any]:
    """The factors of a class in one point of Figure 9."""
    return {"scheme": scheme, "udp_mbps": sending, "class": name}


def _in_steps(schemes: Iterable[str], sending: Iterable[int], name: str) -> judges.Numbers:
    """The rate of a class by what the source sends: `RIO 3.9, 7.4, …; inverse-rate …`."""
    found = {SCHEME_NAMES[s]: levels("throughput", {r: at(s, r, name) for r in sending}) for s in schemes}
    return grouped({s: one.reads("{value}") for s, one in found.items()}, "{name} {all}")


def _udp_rises() -> Judge:
    """Judge whether the source gets more at every step, as long as it gets less than 10 Mbit/s."""
    steps = {
        f"{SCHEME_NAMES[s]} to {after}": judges.of_statements(
            {
                "more": difference("throughput", at(s, after, UDP), at(s, before, UDP)).all(above),
                "contained": level("throughput", at(s, before, UDP)).all(at_least, CONTAINED),
            },
            any_of,
        )
        for s in COMPARED
        for before, after in itertools.pairwise(SENDING[1:])
    }
    return judges.of_statements(steps).said(
        f"Sending {', '.join(map(str, SENDING[1:]))} it gets, Mbit/s: {{rates:.1f}} ({{failing}}).",
        rates=_in_steps(COMPARED, SENDING[1:], UDP),
    )


def _contained(tolerance: float) -> Judge:
    found = common.by_scheme("throughput", {s: at(s, MOST, UDP) for s in COMPARED})
    return found.all(near, CONTAINED, tolerance * CONTAINED).said(f"Sending {MOST} Mbit/s it gets {{:.2}}.")


def loses(*schemes: str, reservation: bool) -> Judge:
    """Judge whether reserved flows get less at 20 Mbit/s than undisturbed, or also than their reservation."""
    found = common.by_scheme("throughput", {s: at(s, MOST, RESERVED) for s in schemes})
    less = common.changes({s: (at(s, MOST, RESERVED), at(s, NOTHING, RESERVED)) for s in schemes})
    statement = less.all(below) & found.all(below, PROFILE) if reservation else less.all(below)
    return statement.said(
        f"Reserved TCP flow at {MOST} Mbit/s, Mbit/s: {{rates}}; against no such source: {{less:+}}.",
        rates=found,
        less=less,
    )


def _protect(share: float) -> Judge:
    """Judge whether reserved flows get that share of their rate at every sending rate, in two schemes."""
    found = {
        SCHEME_NAMES[s]: levels("throughput", {r: at(s, r, RESERVED) for r in SENDING})
        for s in (INVERSE, THREE_DROP)
    }
    lowest = {name: rates.lowest().reads("{value}") for name, rates in found.items()}
    statement = grouped(found).all(at_least, share * PROFILE)
    return statement.said(
        f"Lowest rate of a reserved TCP flow, Mbit/s: {{lowest}} (at {MOST} Mbit/s {{others}}).",
        lowest=grouped(lowest, "{name} {all}", ", "),
        others=common.by_scheme("throughput", {s: at(s, MOST, RESERVED) for s in (RIO, TWO_WINDOWS)}),
    )


def _protect_better(sending: Iterable[int]) -> Judge:
    means = {
        SCHEME_NAMES[s]: [[at(of, r, RESERVED) for r in sending] for of in (s, RIO)]
        for s in COMPARED
        if s != RIO
    }
    found = judges.mean_differences("throughput", means).all(above)
    return found.said("Reserved TCP flow, scheme − RIO, Mbit/s: {:+}.")


def _squeezed(last: int) -> Judge:
    """Judge whether every step up to a sending rate costs best effort under inverse-rate and three-drop."""
    steps = {
        f"{SCHEME_NAMES[s]} to {after}": (at(s, after, BEST_EFFORT), at(s, before, BEST_EFFORT))
        for s in (INVERSE, THREE_DROP)
        for before, after in itertools.pairwise(SENDING)
        if after <= last
    }
    found = differences("throughput", steps).all(below)
    return found.said(
        f"Best-effort flow at {', '.join(map(str, SENDING))} Mbit/s: {{rates:.4f}} Mbit/s ({{failing}}).",
        rates=_in_steps((INVERSE, THREE_DROP), SENDING, BEST_EFFORT),
    )


def _differentiate() -> Judge:
    """Judge the lead of reserved over best-effort flows, at 20 Mbit/s, against RIO's and two-windows'."""
    pairs = {s: (at(s, MOST, RESERVED), at(s, MOST, BEST_EFFORT)) for s in COMPARED}
    larger = {
        f"{SCHEME_NAMES[s]} over {SCHEME_NAMES[o]}": (
            lambda a, b, c, d: (a - b) - (c - d),
            *(("throughput", place) for place in (*pairs[s], *pairs[o])),
        )
        for s in (INVERSE, THREE_DROP)
        for o in (RIO, TWO_WINDOWS)
    }
    found = of_runs(larger).reads("{name} {value}", "; ")
    return found.all(above).said(
        "Reserved − best-effort flow, Mbit/s: {leads:+}; larger by: {:+}.", leads=common.changes(pairs)
    )


SENT = Axis("udp_mbps", "Sending rate, Mbit/s")

FIG9 = common.THIS.study(
    "fig9",
    title="A non-responsive source without a reservation",
    source=f"{common.PAPER}, Figure 9",
    summary="10 TCP flows of 1 Mbit/s, 10 best-effort ones and a UDP source of 0 to 20 Mbit/s on 20 Mbit/s",
    cells=[{"scheme": scheme, "udp_mbps": sending} for scheme in COMPARED for sending in SENDING],
    scenario=fig9_build,
    samples=fig9_samples,
    judges={
        "udp-rises": _udp_rises(),
        "udp-contained": variants(_contained, {"": 0.2, "within a tenth": 0.1, "within two fifths": 0.4}),
        "rio-loses": loses(RIO, reservation=True),
        "rio-and-two-windows-affected": loses(RIO, TWO_WINDOWS, reservation=False),
        "inverse-and-three-drop-protect": variants(_protect, {"": 0.95, "97.5 %": 0.975, "90 %": 0.9}),
        "better-than-rio": variants(
            _protect_better, {"": (MOST,), "at 16 Mbit/s": (16,), "mean over sending rates": SENDING[1:]}
        ),
        "best-effort-squeezed": _squeezed(MOST),
        "better-differentiation": _differentiate(),
        "best-effort-squeezed-to-12": _squeezed(12),
    },
    tables=[
        *tables(
            SENT,
            (common.SCHEMES,),
            ("Rate of the UDP source, Mbit/s, by what it sends", "throughput", 3, {"class": UDP}),
            ("Rate of a reserved TCP flow, Mbit/s", "throughput", 3, {"class": RESERVED}),
            ("Rate of a best-effort TCP flow, Mbit/s", "throughput", 3, {"class": BEST_EFFORT}),
        )
    ],
    plots=[
        Plot(
            id="classes",
            title="All flows of a class together",
            kind="lines",
            metric="class_throughput",
            x=SENT,
            series=Axis(
                "class", "Class", {RESERVED: "reserved TCP", BEST_EFFORT: "best-effort TCP", UDP: "UDP"}
            ),
            y_label="Mbit/s",
            facet=common.SCHEMES,
            references=(Reference("reserved", "scheme", dict.fromkeys(COMPARED, FLOWS * PROFILE)),),
        )
    ],
    default_runs=10,
)


# ---------------------------------------------------------------- Figure 10


def fig10_build(cell: Factors, setting: common.Setting = common.SETTING) -> Mapping[str, Any]:
    """Ten TCP flows with a reservation, and the UDP source, with one or without."""
    scheme = str(cell["scheme"])
    entries = [
        setting.tcp(scheme, RESERVED, PROFILE, count=FLOWS),
        setting.udp(scheme, UDP, float(cell["udp_profile_mbps"]), FIG10_SENDING),
    ]
    return setting.scenario("Yeom and Reddy, Figure 10", scheme, FIG10_CAPACITY, entries)


def fig10_samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """The throughput of the source and of a TCP flow."""
    for group in run.groups:
        yield Sample({**cell, "class": group.name}, "throughput", MBPS, mean_mbps(run, group.name))
    yield Sample(cell, "utilization", "fraction", utilization([common.total_mbps(run)], FIG10_CAPACITY))
    if cell["scheme"] == THREE_DROP:
        _, out_in, out_out = run.of_group(UDP, "marked").sum(axis=0)
        out = float(out_in + out_out)
        yield Sample(cell, "udp_out_out_share", "fraction", float(out_out) / out, out)


def of(scheme: str, name: str = UDP, profile: float = PROFILE) -> dict[str, Any]:
    """The factors of a class in Figure 10."""
    return {"scheme": scheme, "class": name, "udp_profile_mbps": profile}


UDP_RATES = common.by_scheme("throughput", {s: of(s) for s in COMPARED})


def _tcp_loses(wanted: float) -> Judge:
    found = common.by_scheme("throughput", {s: of(s, RESERVED) for s in COMPARED})
    return found.all(below, wanted).said(f"TCP flow, Mbit/s, of {wanted:.2f}: {{}}.")


def _much_better(times: float) -> Judge:
    """Judge whether three-drop leads the next scheme by so many times what the others differ by."""

    def lead(ours: float, *theirs: float) -> float:
        return min(theirs) - ours - times * (max(theirs) - min(theirs))

    rates = [("throughput", of(s)) for s in (THREE_DROP, *(s for s in COMPARED if s != THREE_DROP))]
    less = "the others' spread" if times == 1 else f"{times:g} times the others' spread"
    return (
        of_runs({"": (lead, *rates)})
        .reads("{value}")
        .all(above)
        .said(f"UDP, Mbit/s: {{rates}}; three-drop's lead less {less}: {{:+}}.", rates=UDP_RATES)
    )


def _further_from_target() -> Judge:
    """Judge the share of its target that a TCP flow misses, with and without a reservation of the source."""
    wanted, alone = (FIG10_TARGETS[profile][0] for profile in (PROFILE, 0.0))
    found = judges.of_pairs(
        lambda with_it, without: (wanted - with_it) / wanted - (alone - without) / alone,
        "throughput",
        {SCHEME_NAMES[s]: (of(s, RESERVED), of(s, RESERVED, 0.0)) for s in COMPARED},
    )
    return found.all(above).said("Share of its target that a TCP flow misses, with − without: {:+}.")


def _mostly_out_out(least: float) -> Judge:
    found = level("udp_out_out_share", {"scheme": THREE_DROP, "udp_profile_mbps": PROFILE})
    return found.all(above, least).said("Share of OUT-OUT among the source's OUT packets: {}.")


def _order() -> Judge:
    order = (THREE_DROP, TWO_WINDOWS, RIO)
    found = common.changes({s: (of(s), of(higher)) for s, higher in itertools.pairwise(order)})
    return found.all(below).said(
        "UDP, Mbit/s: {rates}.", rates=common.by_scheme("throughput", {s: of(s) for s in order})
    )


ALONE = f"targets {FIG10_TARGETS[0.0][-1]:.2f} and {FIG10_TARGETS[0.0][0]:.2f}"

FIG10 = common.THIS.study(
    "fig10",
    title="A non-responsive source with a reservation",
    source=f"{common.PAPER}, Figure 10",
    summary="10 TCP flows and a UDP source of 6 Mbit/s, each with 1 Mbit/s reserved, on 12 Mbit/s",
    cells=[
        {"scheme": scheme, "udp_profile_mbps": profile} for profile in FIG10_TARGETS for scheme in COMPARED
    ],
    scenario=fig10_build,
    samples=fig10_samples,
    judges={
        "udp-gains": common.changes({s: (of(s), of(s, RESERVED)) for s in COMPARED})
        .all(above)
        .said("UDP − TCP flow, Mbit/s: {:+}."),
        "tcp-loses": variants(_tcp_loses, {"": FIG10_TARGET, "less than the reservation": PROFILE}),
        "contained-better-than-rio": common.changes({s: (of(s), of(RIO)) for s in COMPARED if s != RIO})
        .all(below)
        .said("UDP, RIO {rio} Mbit/s; scheme − RIO: {:+}.", rio=level("throughput", of(RIO))),
        "three-drop-much-better": variants(
            _much_better, {"": 1, "half the others' spread": 0.5, "twice the others' spread": 2}
        ),
        "worse-with-reservation": {
            "what a TCP flow gets": common.changes(
                {s: (of(s, RESERVED), of(s, RESERVED, 0.0)) for s in COMPARED}
            )
            .all(below)
            .said("TCP flow, with − without, Mbit/s: {:+}."),
            "what a TCP flow misses of its target": _further_from_target(),
        },
        "udp-mostly-out-out": variants(_mostly_out_out, {"": 0.5, "three quarters": 0.75}),
        "order": _order(),
    },
    tables=[
        *tables(
            common.SCHEMES,
            (Axis("class", "Class", {UDP: "UDP", RESERVED: "TCP"}),),
            (
                f"Rate of the UDP source and of a TCP flow, Mbit/s (target of each {FIG10_TARGET:.2f})",
                "throughput",
                3,
                {"udp_profile_mbps": PROFILE},
            ),
            (
                f"The same without a reservation of the UDP source ({ALONE})",
                "throughput",
                3,
                {"udp_profile_mbps": 0.0},
            ),
        )
    ],
    plots=[
        common.bars(
            name="rates",
            title="UDP of 6 Mbit/s among TCP flows",
            x=Axis("scheme", "", {s: SCHEME_NAMES[s].replace("-", "-\n") for s in COMPARED}),
            series=Axis("class", "", {UDP: "UDP", RESERVED: "a TCP flow"}),
            reference=Reference("target", "scheme", dict.fromkeys(COMPARED, FIG10_TARGET)),
            y_label="Mbit/s",
            where={"udp_profile_mbps": PROFILE},
        )
    ],
    single_run=True,
    default_runs=20,
)

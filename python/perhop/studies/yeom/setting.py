"""Which setting the paper's numbers speak for: every rate that it prints, under each setting of a search.

The paper names neither TCP's clock nor the receiver's window nor the rule of the marker in a two-windows
sender. `SETTING` is the outcome of this search. Beside it: other readings of three drop precedences, and
smaller UDP packets.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from perhop.measures.fairness import rmse
from perhop.show.declared import Axis, Row, Table
from perhop.statistics.judging import Judgement, above, all_of, at_most, below, fact, judge
from perhop.studies.evidence import Published, Sample
from perhop.studies.judges import failing
from perhop.studies.sampling import MBPS
from perhop.studies.yeom import rtt, ten_flows, udp
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    COMPARED,
    LIMIT,
    PAPER,
    RIO,
    RTT_MS,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THIS,
    THREE_DROP,
    TWO_WINDOWS,
    Setting,
    cell,
    distance,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.intervals import Estimate
    from perhop.studies.evidence import Evidence

RUNS = 12
SHARED = ("probabilistic", "1s")
"""Rule and window of the two-windows marker where it is as all others."""
WINDOWS = (20, 22, 23, 24, 28, 1000)
TICKS = ("10ms", "100ms")
SENDER_WINDOWS = ("400ms", "500ms", "600ms", "700ms")


def _name(window: int, tick: str, rule: str, sender_window: str) -> str:
    marker = "shared marker" if (rule, sender_window) == SHARED else f"4/3 in {sender_window}"
    return f"window {window}, clock {tick}, {marker}"


SEARCHED: Mapping[str, Setting] = {
    _name(window, tick, rule, sender_window): replace(
        SETTING, receiver_window=window, tick=tick, sender_rule=rule, sender_window=sender_window
    )
    for tick in TICKS
    for rule, sender_window in (SHARED, *(("four-thirds", width) for width in SENDER_WINDOWS))
    for window in WINDOWS
}
IN_USE = _name(SETTING.receiver_window, SETTING.tick, SETTING.sender_rule, SETTING.sender_window)
SPLITS = {
    "threshold": "OUT-OUT above r",
    "four-thirds": "OUT-OUT above 4/3 r",
    "proportional": "split (R − r)/r",
    "same-rule": "split (R − r)/R",
}


def _reading(split: str, *, better: bool, small: bool) -> str:
    average = ", OUT-IN on IN + OUT-IN" if better else ""
    return f"{SPLITS[split]}{average}{', UDP of 210 B' if small else ''}"


READINGS: Mapping[str, Setting] = {
    _reading(split, better=better, small=small): replace(
        SETTING,
        split=split,
        out_in_average="in-and-out-in" if better else "all",
        udp_packet=210 if small else SETTING.udp_packet,
    )
    for split, better, small in itertools.product(SPLITS, (False, True), (False, True))
    if (split, better, small) != ("threshold", False, False)
}
CANDIDATES = {**SEARCHED, **READINGS}


@dataclass(frozen=True, slots=True)
class Item:
    """Printed rates that stand together.

    Attributes:
        name: How the tables name it.
        cells: What to simulate for it.
        network: The scenario of a cell under a setting.
        samples: The samples that its own study takes of a run.
        values: The printed rates.
    """

    name: str
    cells: Sequence[Factors]
    network: Callable[[Setting, Factors], Mapping[str, Any]]
    samples: Callable[[Factors, Run], Iterator[Sample]]
    values: Sequence[Published]


def _rates(values: Sequence[Published], where: Factors) -> Sequence[Published]:
    return [v for v in values if v.metric == "throughput" and where.items() <= v.factors.items()]


ITEMS: Mapping[str, Item] = {
    "table1": Item(
        "Table 1",
        [cell(scheme, percent) for percent in ten_flows.CAPACITY for scheme in ALL_SCHEMES],
        lambda setting, of: ten_flows.network(setting, str(of["scheme"]), int(of["subscription_percent"])),
        ten_flows.samples,
        _rates(THIS.item("table1").values, {}),
    ),
    **{
        f"table2-{percent}": Item(
            f"Table 2, {percent} %",
            [cell(scheme, percent) for scheme in COMPARED],
            lambda setting, of: rtt.network(setting, str(of["scheme"]), int(of["subscription_percent"])),
            rtt.table2_samples,
            _rates(THIS.item("table2").values, {"subscription_percent": percent}),
        )
        for percent in rtt.CAPACITY
    },
    "fig10": Item(
        "Figure 10",
        [{"scheme": scheme, "udp_profile_mbps": udp.PROFILE} for scheme in COMPARED],
        lambda setting, of: udp.fig10_network(setting, str(of["scheme"])),
        udp.fig10_samples,
        _rates(THIS.item("fig10").values, {}),
    ),
}
ALL = "all"
COST = 0.03
"""Mbit/s: what the setting in use costs elsewhere at most."""
INVERSE_AT_40_MS = 4.58
"""Mbit/s: Table 2's largest rate at 40 ms; it takes 23 packets of 1000 bytes in a round trip."""


@cache
def representative(name: str, item: str, scheme: str) -> str:
    """The first setting whose runs of an item's scheme are the same as under the named one."""
    has_udp = item == "fig10"
    return _first(scheme, has_udp)[CANDIDATES[name].as_seen_by(scheme, udp=has_udp)]


@cache
def _first(scheme: str, has_udp: bool) -> Mapping[Setting, str]:
    """The first setting of all that a scheme cannot tell apart."""
    named: dict[Setting, str] = {}
    for name, setting in CANDIDATES.items():
        named.setdefault(setting.as_seen_by(scheme, udp=has_udp), name)
    return named


CELLS: Sequence[dict[str, Any]] = [
    {"setting": setting, "item": item, **factors}
    for setting in CANDIDATES
    for item in ITEMS
    for factors in ITEMS[item].cells
    if representative(setting, item, str(factors["scheme"])) == setting
]


def measured(setting: str, item: str, factors: Factors) -> dict[str, Any]:
    """All factors of a rate, under the setting whose runs stand for the named one."""
    return {"setting": representative(setting, item, str(factors["scheme"])), "item": item, **factors}


def rate(evidence: Evidence, setting: str, item: str, factors: Factors) -> float:
    """A measured rate, Mbit/s."""
    return evidence.mean("throughput", measured(setting, item, factors))


def _own(factors: Factors) -> dict[str, Any]:
    """The factors without those that this study adds."""
    return {name: value for name, value in factors.items() if name not in ("setting", "item")}


def build(factors: Factors) -> Mapping[str, Any]:
    """The item's own scenario under the setting."""
    return ITEMS[str(factors["item"])].network(CANDIDATES[str(factors["setting"])], _own(factors))


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The rates that the paper prints, too."""
    item = ITEMS[str(factors["item"])]
    printed = [value.factors for value in item.values]
    for sample in item.samples(_own(factors), run):
        if sample.metric == "throughput" and sample.factors in printed:
            named = {"setting": factors["setting"], "item": factors["item"], **sample.factors}
            yield replace(sample, factors=named)


def published() -> list[Published]:
    """The printed rates, once for each setting."""
    return [
        Published({"setting": setting, "item": item, **value.factors}, value.metric, value.value)
        for setting in CANDIDATES
        for item in ITEMS
        for value in ITEMS[item].values
        if representative(setting, item, str(value.factors["scheme"])) == setting
    ]


def gap(evidence: Evidence, setting: str, item: str = ALL, scheme: str | None = None) -> float:
    """Root-mean-square difference between printed and measured rates, each of them counting alike, Mbit/s."""
    pairs = [
        (rate(evidence, setting, name, value.factors), value.value)
        for name in (ITEMS if item == ALL else (item,))
        for value in ITEMS[name].values
        if scheme in (None, value.factors["scheme"])
    ]
    return rmse([mean for mean, _ in pairs], [printed for _, printed in pairs])


def udp_mbps(evidence: Evidence, setting: str, scheme: str) -> float:
    """What Figure 10's source gets, Mbit/s."""
    return rate(evidence, setting, "fig10", udp.of(scheme))


def out_of_reach(setting: Setting) -> int:
    """Return how many printed rates a receiver window for each round trip of propagation does not allow."""
    return sum(
        value.value > setting.ceiling_mbps(float(value.factors.get("rtt_ms", RTT_MS)))
        for name, item in ITEMS.items()
        for value in item.values
        if name != "fig10"  # its rates are those of a source without a window
    )


def gaps(evidence: Evidence) -> Iterator[Row]:
    """Return how far each setting is from what is printed."""
    for name, setting in CANDIDATES.items():
        own: Factors = {"setting": name}
        for item in (ALL, *ITEMS):
            found = gap(evidence, name, item)
            factors: Factors = {**own, "item": item}
            yield Row(factors, "difference_to_published", MBPS, None, found, None, evidence.runs)
        for scheme in ALL_SCHEMES:
            found = gap(evidence, name, "table1", scheme)
            factors = {**own, "scheme": scheme}
            yield Row(factors, "table1_difference", MBPS, None, found, None, evidence.runs)
        for scheme in COMPARED:
            value = udp_mbps(evidence, name, scheme)
            yield Row({**own, "scheme": scheme}, "udp_rate", MBPS, None, value, None, evidence.runs)
        yield Row(own, "out_of_reach", "rates", None, out_of_reach(setting), None, evidence.runs)


def within(evidence: Evidence, setting: str) -> bool:
    """Whether all five schemes come as near to Table 1 as was asked for."""
    return all(gap(evidence, setting, "table1", scheme) <= LIMIT for scheme in ALL_SCHEMES)


def gap_estimate(
    evidence: Evidence, setting: str, item: str, scheme: str | None = None, less: str | None = None
) -> Estimate:
    """The distance with an interval; `less` names a setting whose distance is subtracted."""
    values = [
        (name, value)
        for name in (ITEMS if item == ALL else (item,))
        for value in ITEMS[name].values
        if scheme in (None, value.factors["scheme"])
    ]
    others = [measured(less, name, value.factors) for name, value in values] if less else []
    return distance(evidence, [(measured(setting, n, v.factors), v.value) for n, v in values], others)


def _listed(found: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{SCHEME_NAMES[scheme]} {one.text()}" for scheme, one in found.items())


def in_use(evidence: Evidence) -> Judgement:
    """The setting in use, and by how many others Table 1 is met, too."""
    found = {scheme: gap_estimate(evidence, IN_USE, "table1", scheme) for scheme in ALL_SCHEMES}
    contained = evidence.difference(
        "throughput",
        measured(IN_USE, "fig10", udp.of(TWO_WINDOWS)),
        measured(IN_USE, "fig10", udp.of(RIO)),
    )
    checks = [
        at_most(found[TWO_WINDOWS], LIMIT),
        fact(holds=SETTING.ceiling_mbps(RTT_MS) >= INVERSE_AT_40_MS),
        below(contained),
    ]
    others = "; ".join(f"{n} {gap(evidence, n):.3f}" for n in SEARCHED if within(evidence, n))
    return judge(
        all_of(*checks),
        f"Difference to Table 1's rates, Mbit/s: {_listed(found)}; Figure 10's source under two-windows "
        f"− RIO: {contained.text(sign=True)}. Of {len(SEARCHED)} settings these are within {LIMIT} in all "
        f"five schemes by the means, with the difference to all printed rates: {others or 'none'}.",
    )


def costs(evidence: Evidence) -> Judgement:
    """The setting in use against the one with ns-2's window of 20, a fine clock and the shared marker."""
    before = _name(20, "10ms", *SHARED)
    found = {item: gap_estimate(evidence, IN_USE, item, less=before) for item in (*ITEMS, ALL)}
    names = {**{key: item.name for key, item in ITEMS.items()}, ALL: "all"}
    text = ", ".join(
        f"{names[item]} {e.text(sign=True)} (to {gap(evidence, IN_USE, item):.3f})"
        for item, e in found.items()
    )
    checks = {names[item]: at_most(e, COST) for item, e in found.items()}
    return judge(
        all_of(below(found["table1"]), *checks.values()),
        f"Difference to the printed rates, Mbit/s, change from {before}: {text} ({failing(checks)}).",
    )


def splits(evidence: Evidence) -> Judgement:
    """Three-drop under each reading: Table 1 and Figure 10."""
    readings = (IN_USE, *READINGS)
    found = {name: gap_estimate(evidence, name, "table1", THREE_DROP) for name in readings}
    text = "; ".join(
        f"{name} {e.text()} and {udp_mbps(evidence, name, THREE_DROP):.2f}" for name, e in found.items()
    )
    others = [above(e, LIMIT) for n, e in found.items() if CANDIDATES[n].split != SETTING.split]
    return judge(
        all_of(*others),
        f"Difference to Table 1's rates, and what Figure 10's source gets (printed 1.50), Mbit/s: {text}.",
    )


CHOICES = Axis("setting", "Setting", {name: name for name in CANDIDATES})
PRINTED = Axis("item", "Printed in", {ALL: "all", **{key: item.name for key, item in ITEMS.items()}})

SETTINGS = THIS.study(
    "setting",
    title="Which setting the printed rates speak for",
    source=f"{PAPER}: Tables 1 and 2, Figure 10",
    summary="all rates that the paper prints, under clocks, windows, markers and splits",
    cells=CELLS,
    scenario=build,
    samples=samples,
    published=published(),
    judges={
        "in-use": in_use,
        "costs-little-elsewhere": costs,
        "other-splits": splits,
    },
    tables=(
        Table(
            "Printed rates: root-mean-square difference to our means, Mbit/s",
            {"difference_to_published": ""},
            CHOICES,
            (PRINTED,),
        ),
        Table(
            "Table 1's rates of a scheme: root-mean-square difference to our means, Mbit/s",
            {"table1_difference": ""},
            CHOICES,
            (SCHEMES,),
        ),
        Table(
            "What Figure 10's UDP source gets, Mbit/s (printed: "
            + ", ".join(
                f"{SCHEME_NAMES[str(v.factors['scheme'])]} {v.value:.2f}" for v in ITEMS["fig10"].values
            )
            + ")",
            {"udp_rate": ""},
            CHOICES,
            (SCHEMES,),
            digits=2,
        ),
        Table(
            "How many of the printed rates of TCP flows are more than a receiver window for each round trip",
            {"out_of_reach": "out of reach"},
            CHOICES,
            digits=0,
        ),
    ),
    plots=(),
    summaries=gaps,
    extra=True,
    default_runs=RUNS,
)

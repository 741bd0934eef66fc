"""Which setting the paper's numbers speak for: every rate that it prints, under each setting of a search.

The paper names neither TCP's clock nor the receiver's window nor the rule of the marker in a two-windows
sender. `SETTING` is the outcome of this search. Beside it: other readings of three drop precedences, and
smaller UDP packets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from perhop.measures.fairness import rmse
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Row, Table, tables
from perhop.statistics.intervals import Estimate
from perhop.statistics.judging import above, at_most, below, fact
from perhop.studies.evidence import Evidence, Published, Sample
from perhop.studies.judges import Judge, Numbers, difference, levels, made, stated
from perhop.studies.sampling import MBPS
from perhop.studies.yeom import common, rtt, ten_flows, udp
from perhop.studies.yeom.common import ALL_SCHEMES, COMPARED, LIMIT, RIO, SCHEME_NAMES, SETTING, Setting

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
IN_USE = next(name for name, setting in SEARCHED.items() if setting == SETTING)
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
        build: The scenario of a cell under a setting.
        samples: The samples that its own study takes of a run.
        values: The printed rates.
    """

    name: str
    cells: Sequence[Factors]
    build: Callable[[Factors, Setting], Mapping[str, Any]]
    samples: Callable[[Factors, Run], Iterator[Sample]]
    values: Sequence[Published]


def _rates(item: str, where: Factors) -> Sequence[Published]:
    values = common.THIS.item(item).values
    return [v for v in values if v.metric == "throughput" and where.items() <= v.factors.items()]


ITEMS: Mapping[str, Item] = {
    "table1": Item(
        "Table 1",
        [common.cell(scheme, percent) for percent in ten_flows.CAPACITY for scheme in ALL_SCHEMES],
        ten_flows.build,
        ten_flows.samples,
        _rates("table1", {}),
    ),
    **{
        f"table2-{percent}": Item(
            f"Table 2, {percent} %",
            [common.cell(scheme, percent) for scheme in COMPARED],
            rtt.build,
            rtt.table2_samples,
            _rates("table2", {"subscription_percent": percent}),
        )
        for percent in rtt.CAPACITY
    },
    "fig10": Item(
        "Figure 10",
        [{"scheme": scheme, "udp_profile_mbps": udp.PROFILE} for scheme in COMPARED],
        udp.fig10_build,
        udp.fig10_samples,
        _rates("fig10", {}),
    ),
}
ALL = "all"
COST = 0.03
"""Mbit/s: what the setting in use costs elsewhere at most."""
INVERSE_AT_40_MS = 4.58
"""Mbit/s: Table 2's largest rate at 40 ms; it takes 23 packets of 1000 bytes in a round trip."""


_first = common.alike(CANDIDATES)


def representative(name: str, item: str, scheme: str) -> str:
    """The first setting whose runs of an item's scheme are the same as under the named one."""
    return _first(name, scheme, udp=item == "fig10")


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


def _own(factors: Factors) -> dict[str, Any]:
    """The factors without those that this study adds."""
    return {name: value for name, value in factors.items() if name not in ("setting", "item")}


def build(factors: Factors) -> Mapping[str, Any]:
    """The item's own scenario under the setting."""
    return ITEMS[str(factors["item"])].build(_own(factors), CANDIDATES[str(factors["setting"])])


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The rates that the paper prints, too."""
    item = ITEMS[str(factors["item"])]
    printed = [value.factors for value in item.values]
    where = {name: factors[name] for name in ("setting", "item")}
    for sample in item.samples(_own(factors), run):
        if sample.metric == "throughput" and sample.factors in printed:
            yield replace(sample, factors={**where, **sample.factors})


def published() -> list[Published]:
    """The printed rates, once for each setting."""
    return [
        replace(value, factors={"setting": setting, "item": item, **value.factors})
        for setting in CANDIDATES
        for item in ITEMS
        for value in ITEMS[item].values
        if representative(setting, item, str(value.factors["scheme"])) == setting
    ]


def _values(item: str, scheme: str | None) -> list[tuple[str, Published]]:
    """The printed rates of an item, or of all, under a scheme, or under all, each with its own item."""
    return [
        (name, value)
        for name in (ITEMS if item == ALL else (item,))
        for value in ITEMS[name].values
        if scheme in (None, value.factors["scheme"])
    ]


def gap(evidence: Evidence, setting: str, item: str = ALL, scheme: str | None = None) -> float:
    """Root-mean-square difference between printed and measured rates, each of them counting alike, Mbit/s."""
    values = _values(item, scheme)
    means = [evidence.mean("throughput", measured(setting, name, value.factors)) for name, value in values]
    return rmse(means, [value.value for _, value in values])


def gap_estimate(
    evidence: Evidence, setting: str, item: str, scheme: str | None = None, less: str | None = None
) -> Estimate:
    """The distance with an interval; `less` names a setting whose distance is subtracted."""
    values = _values(item, scheme)
    others = [measured(less, name, value.factors) for name, value in values] if less else []
    return common.distance(evidence, [(measured(setting, n, v.factors), v.value) for n, v in values], others)


def of_source(setting: str, scheme: str) -> Factors:
    """The factors of what Figure 10's source gets."""
    return measured(setting, "fig10", udp.of(scheme))


def out_of_reach(setting: Setting) -> int:
    """Return how many printed rates a receiver window for each round trip of propagation does not allow."""
    return sum(
        value.value > setting.ceiling_mbps(float(value.factors.get("rtt_ms", common.RTT_MS)))
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
            yield evidence.row({**own, "item": item}, "difference_to_published", MBPS, found)
        for scheme in ALL_SCHEMES:
            found = gap(evidence, name, "table1", scheme)
            yield evidence.row({**own, "scheme": scheme}, "table1_difference", MBPS, found)
        for scheme in COMPARED:
            found = evidence.mean("throughput", of_source(name, scheme))
            yield evidence.row({**own, "scheme": scheme}, "udp_rate", MBPS, found)
        yield evidence.row(own, "out_of_reach", "rates", out_of_reach(setting))


def _in_use() -> Judge:
    """Judge the setting in use, and list the others that meet Table 1, too."""
    of_item = partial(gap_estimate, setting=IN_USE, item="table1")
    to_table1 = made({SCHEME_NAMES[s]: partial(of_item, scheme=s) for s in ALL_SCHEMES})
    near = to_table1.only(SCHEME_NAMES[common.TWO_WINDOWS]).all(at_most, LIMIT)
    reached = stated(lambda _: fact(holds=SETTING.ceiling_mbps(common.RTT_MS) >= INVERSE_AT_40_MS))
    contained = difference("throughput", of_source(IN_USE, common.TWO_WINDOWS), of_source(IN_USE, RIO))

    def within(evidence: Evidence, setting: str) -> bool:
        return all(gap(evidence, setting, "table1", scheme) <= LIMIT for scheme in ALL_SCHEMES)

    def others(evidence: Evidence) -> str:
        found = [f"{n} {gap(evidence, n):.3f}" for n in SEARCHED if within(evidence, n)]
        return "; ".join(found) or "none"

    return (near & reached & contained.all(below)).said(
        "Difference to Table 1's rates, Mbit/s: {schemes}; Figure 10's source under two-windows − RIO: "
        f"{{contained:+}}. Of {len(SEARCHED)} settings these are within {LIMIT} in all five schemes by the "
        "means, with the difference to all printed rates: {others}.",
        schemes=to_table1,
        contained=contained,
        others=others,
    )


def _costs() -> Judge:
    """Judge the setting in use against that with ns-2's window of 20, a fine clock and the shared marker."""
    before = _name(20, "10ms", *SHARED)
    names = {**{key: item.name for key, item in ITEMS.items()}, ALL: "all"}

    def to(item: str) -> Callable[[Evidence], Estimate]:
        return lambda evidence: Estimate(gap(evidence, IN_USE, item), None, evidence.runs)

    less = partial(gap_estimate, setting=IN_USE, less=before)
    found = made({name: partial(less, item=item) for item, name in names.items()}).reads(
        "{name} {value:+} (to {to:.3f})", to=made({name: to(item) for item, name in names.items()})
    )
    return (found.all(at_most, COST) & found.only(names["table1"]).all(below)).said(
        f"Difference to the printed rates, Mbit/s, change from {before}: {{}} ({{failing}})."
    )


def _splits() -> Judge:
    """Judge three-drop under each reading by Table 1, with the values of Figure 10 in the evidence."""

    def of_settings(names: Sequence[str]) -> Numbers:
        of_item = partial(gap_estimate, item="table1", scheme=common.THREE_DROP)
        return made({name: partial(of_item, setting=name) for name in names})

    names = (IN_USE, *READINGS)
    source = levels("throughput", {name: of_source(name, common.THREE_DROP) for name in names})
    listed = of_settings(names).reads("{name} {value} and {source:.2f}", "; ", source=source)
    others = of_settings([name for name, setting in READINGS.items() if setting.split != SETTING.split])
    return others.all(above, LIMIT).said(
        "Difference to Table 1's rates, and what Figure 10's source gets (printed 1.50), Mbit/s: {listed}.",
        listed=listed,
    )


CHOICES = Axis("setting", "Setting", {name: name for name in CANDIDATES})
PRINTED = Axis("item", "Printed in", {ALL: "all", **{key: item.name for key, item in ITEMS.items()}})

SOURCE_PRINTED = ", ".join(
    f"{SCHEME_NAMES[str(v.factors['scheme'])]} {v.value:.2f}" for v in ITEMS["fig10"].values
)

SETTINGS = common.THIS.study(
    "setting",
    title="Which setting the printed rates speak for",
    source=f"{common.PAPER}: Tables 1 and 2, Figure 10",
    summary="all rates that the paper prints, under clocks, windows, markers and splits",
    cells=CELLS,
    scenario=build,
    samples=samples,
    published=published(),
    judges={"in-use": _in_use(), "costs-little-elsewhere": _costs(), "other-splits": _splits()},
    tables=[
        *tables(
            CHOICES,
            (PRINTED,),
            ("Printed rates: root-mean-square difference to our means, Mbit/s", "difference_to_published", 3),
        ),
        *tables(
            CHOICES,
            (common.SCHEMES,),
            (
                "Table 1's rates of a scheme: root-mean-square difference to our means, Mbit/s",
                "table1_difference",
                3,
            ),
            (f"What Figure 10's UDP source gets, Mbit/s (printed: {SOURCE_PRINTED})", "udp_rate", 2),
        ),
        Table(
            "How many of the printed rates of TCP flows are more than a receiver window for each round trip",
            {"out_of_reach": "out of reach"},
            CHOICES,
            digits=0,
        ),
    ],
    plots=(),
    summaries=gaps,
    extra=True,
    default_runs=12,
)

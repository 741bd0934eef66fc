"""Which setting the paper's numbers speak for: every rate that it prints, under eight settings.

The paper names neither packet size nor receiver window nor RED's wait rule. `SETTING` is the outcome of this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement
from perhop.measures import rmse
from perhop.studies.paper import claims
from perhop.studies.yeom import rtt, table1, udp
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    ASKED,
    COMPARED,
    INVERSE,
    LIMIT,
    MBPS,
    PAPER,
    RTT_MS,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    Setting,
    cell,
    stated,
)
from perhop.study import Axis, Published, Row, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.runs import Run
    from perhop.study import Evidence, Factors


def _name(packet: int, window: int, *, wait: bool) -> str:
    return f"{packet} B, window {window}, {'wait' if wait else 'no wait'}"


CANDIDATES: Mapping[str, Setting] = {
    _name(packet, window, wait=wait): replace(SETTING, packet=packet, receiver_window=window, wait=wait)
    for wait in (True, False)
    for packet in (1000, 1500)
    for window in (20, 1000)
}
IN_USE = _name(SETTING.packet, SETTING.receiver_window, wait=SETTING.wait)
LARGE_PACKETS = tuple(_name(1500, window, wait=True) for window in (20, 1000))

STATEMENT = stated("setting")


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
        [cell(scheme, percent) for percent in table1.CAPACITY for scheme in ALL_SCHEMES],
        lambda setting, of: table1.network(setting, str(of["scheme"]), int(of["subscription_percent"])),
        table1.samples,
        _rates(table1.STATEMENT.values, {}),
    ),
    **{
        f"table2-{percent}": Item(
            f"Table 2, {percent} %",
            [cell(scheme, percent) for scheme in COMPARED],
            lambda setting, of: rtt.network(setting, str(of["scheme"]), int(of["subscription_percent"])),
            rtt.table2_samples,
            _rates(rtt.TABLE2_STATEMENT.values, {"subscription_percent": percent}),
        )
        for percent in rtt.CAPACITY
    },
    "fig10": Item(
        "Figure 10",
        [{"scheme": scheme} for scheme in COMPARED],
        lambda setting, of: udp.fig10_network(setting, str(of["scheme"])),
        udp.fig10_samples,
        _rates(udp.FIG10_STATEMENT.values, {}),
    ),
}
ALL = "all"


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
            yield Sample(named, sample.metric, sample.unit, sample.value)


def published() -> list[Published]:
    """The printed rates, once for each setting."""
    return [
        Published({"setting": setting, "item": item, **value.factors}, value.metric, value.value)
        for setting in CANDIDATES
        for item in ITEMS
        for value in ITEMS[item].values
    ]


def gap(evidence: Evidence, setting: str, item: str = ALL, scheme: str | None = None) -> float:
    """Root-mean-square difference between printed and measured rates, each of them counting alike, Mbit/s."""
    pairs = [
        (evidence.mean("throughput", {"setting": setting, "item": name, **value.factors}), value.value)
        for name in (ITEMS if item == ALL else (item,))
        for value in ITEMS[name].values
        if scheme in (None, value.factors["scheme"])
    ]
    return rmse([mean for mean, _ in pairs], [printed for _, printed in pairs])


def out_of_reach(setting: Setting) -> int:
    """How many printed rates a receiver window for each round trip of propagation does not allow."""
    return sum(
        value.value > setting.ceiling_mbps(float(value.factors.get("rtt_ms", RTT_MS)))
        for name, item in ITEMS.items()
        for value in item.values
        if name != "fig10"  # its rates are those of a source without a window
    )


def gaps(evidence: Evidence) -> Iterator[Row]:
    """How far each setting is from what is printed."""
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
        yield Row(own, "out_of_reach", "rates", None, out_of_reach(setting), None, evidence.runs)


def within(evidence: Evidence, setting: str) -> bool:
    """Whether the four schemes come as near to Table 1 as was asked for."""
    return all(gap(evidence, setting, "table1", scheme) <= LIMIT for scheme in ASKED)


def nearest(evidence: Evidence) -> Judgement:
    """The setting in use among those within the limit."""
    found = {name: gap(evidence, name) for name in CANDIDATES if within(evidence, name)}
    text = "; ".join(f"{name} {value:.3f}" for name, value in found.items())
    return Judgement(
        IN_USE in found and found[IN_USE] == min(found.values()),
        f"Within it, with the difference to all printed rates, Mbit/s: {text or 'none'}.",
    )


def wait_rule(evidence: Evidence) -> Judgement:
    """Table 2 at 25 %, with and without."""
    found = {name: gap(evidence, name, "table2-25") for name in CANDIDATES}
    with_it, without = (
        [found[name] for name, setting in CANDIDATES.items() if setting.wait is wait]
        for wait in (True, False)
    )
    return Judgement(
        max(with_it) < min(without),
        f"Difference at 25 %, Mbit/s: with it {min(with_it):.3f} to {max(with_it):.3f}, "
        f"without {min(without):.3f} to {max(without):.3f}.",
    )


def large_packets(evidence: Evidence) -> Judgement:
    """1500 bytes with the wait rule, in all and in Table 1."""
    found = {
        name: (gap(evidence, name), gap(evidence, name, "table1"), gap(evidence, name, "table1", INVERSE))
        for name in (IN_USE, *LARGE_PACKETS)
    }
    text = "; ".join(f"{name} {a:.3f}, {b:.3f}, {c:.3f}" for name, (a, b, c) in found.items())
    ours = found[IN_USE]
    holds = found[LARGE_PACKETS[0]][0] < ours[0] and all(
        found[name][1] > ours[1] and found[name][2] > LIMIT for name in LARGE_PACKETS
    )
    return Judgement(
        holds,
        f"Difference to all printed rates, to Table 1's, and to {SCHEME_NAMES[INVERSE]}'s of these, "
        f"Mbit/s: {text}.",
    )


CHOICES = Axis("setting", "Setting", {name: name for name in CANDIDATES})
PRINTED = Axis("item", "Printed in", {ALL: "all", **{key: item.name for key, item in ITEMS.items()}})

SETTINGS = Study(
    id="yeom-setting",
    title="Which setting the printed rates speak for",
    source=f"{PAPER}: Tables 1 and 2, Figure 10",
    summary="all rates that the paper prints, under packets, windows and RED's wait rule as it may have had",
    cells=[
        {"setting": setting, "item": item, **factors}
        for setting in CANDIDATES
        for item in ITEMS
        for factors in ITEMS[item].cells
    ],
    scenario=build,
    samples=samples,
    published=published(),
    claims=claims(
        STATEMENT.claims,
        {
            "nearest-within-limit": nearest,
            "wait-rule": wait_rule,
            "large-packets": large_packets,
        },
    ),
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
            "How many of the printed rates of TCP flows are more than a receiver window for each round trip",
            {"out_of_reach": "out of reach"},
            CHOICES,
            digits=0,
        ),
    ),
    plots=(),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    summaries=gaps,
    extra=True,
    default_runs=RUNS,
)

"""The common parts of studies of today's mechanisms: senders, queues, measures and judges."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from perhop.measures.fairness import jain_index, rmse, targets, utilization
from perhop.measures.run import Run
from perhop.show.declared import Among, Axis, Bound, Factor, Factors, Listed, Plot, Table, Where, tables
from perhop.statistics.judging import at_least, below
from perhop.studies import judges
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import FEW, Judge, Side, differences, show
from perhop.studies.paper import Paper
from perhop.studies.sampling import MBPS, mean_mbps, waits

THIS = Paper(__package__, "claims.toml")
"""The claims of each study, its method and its assumptions."""
SOURCE = "Mechanisms of today beside those of the papers"
RUNS = 12

NEWRENO, CUBIC, BBR3, PRAGUE = "newreno", "cubic", "bbr3", "prague"
CONTROL_NAMES = {NEWRENO: "NewReno", CUBIC: "CUBIC", BBR3: "BBR v3", PRAGUE: "Prague"}
SENDERS = tuple(CONTROL_NAMES)
CONTROLS = Axis("control", "Senders", CONTROL_NAMES)

KEPT = 0.95
"""A profile counts as kept from this share of it on."""
PROFILE_KEPT = Bound("keeps the profile", "misses it", KEPT)

CODEL, PIE, FQ_CODEL, DUALPI2, WFQ = "codel", "pie", "fq-codel", "dualpi2", "wfq"
COLORLESS_NAMES = {CODEL: "CoDel", PIE: "PIE", DUALPI2: "DualPI2", FQ_CODEL: "FQ-CoDel"}
"""Queues that read neither colors nor contracts."""
COLORLESS = tuple(COLORLESS_NAMES)
TODAY_NAMES = {**COLORLESS_NAMES, WFQ: "WFQ by contract"}

NOTHING: Mapping[str, Any] = MappingProxyType({})
CODEPOINTS = ("AF11", "AF21", "AF31", "AF41", "CS1")
"""The codepoints of flows where each contract has a queue of its own."""


def sender(control: str, packet: int) -> dict[str, Any]:
    """The transport and the ECN of greedy flows, as keys of a flow's table.

    NewReno is the papers' sender (RFC 6582, no SACK, an ACK for each packet). The others have Linux's
    defaults, SACK among them. No receiver window limits a flow.
    """
    sizes = {"packet": f"{packet}B", "window": "1000p"}
    if control == NEWRENO:
        return {"transport": {"tcp": "newreno", **sizes}}
    transport = {"tcp": "linux", "congestion": control, **sizes}
    return {"transport": transport, **({"ecn": "l4s"} if control == PRAGUE else {})}


def today(
    rule: str,
    limit: str,
    rates_mbps: Mapping[str, float] = NOTHING,
    packet: int = 1000,
    *,
    ecn: bool,
) -> dict[str, Any]:
    """A queue of today with its RFC's parameters.

    Args:
        rule: Which one.
        limit: The packets that it holds.
        rates_mbps: For WFQ, the rate of each contract by its codepoint.
        packet: The size of a packet, bytes.
        ecn: Whether flows are capable of ECN, so that the queue marks.
    """
    if rule == WFQ:
        return queue_per_contract(rates_mbps, packet, limit, ecn=ecn)
    if rule == DUALPI2:
        return {"scheduler": "dualpi2"}
    if rule == FQ_CODEL:
        return {"scheduler": "fq-codel", "ecn": ecn}
    return marking({"aqm": rule, "limit": limit}, ecn=ecn)


def marking(aqm: Mapping[str, Any], *, ecn: bool) -> dict[str, Any]:
    """An AQM that marks ECN-capable packets, or one that drops all alike."""
    return {**aqm, "ecn": True} if ecn else dict(aqm)


def queue_per_contract(
    rates_mbps: Mapping[str, float], packet: int, limit: str, *, ecn: bool
) -> dict[str, Any]:
    """WFQ: a queue under CoDel for each contract, by codepoint, with its rate; one more for the rest.

    CoDel's target is 5 ms, or 1.5 packet times at the guaranteed rate where that is longer (RFC 8289, 4.4).
    """
    queues: list[dict[str, Any]] = []
    for dscp, rate in rates_mbps.items():
        target = max(5.0, 1.5 * packet * 8e-3 / rate)
        rule = marking({"aqm": "codel", "limit": limit, "target": f"{target:g}ms"}, ecn=ecn)
        queues.append({"name": dscp, "match": {"dscp": dscp}, "rate": f"{rate:g}Mbps", "rule": rule})
    rest = marking({"aqm": "codel", "limit": limit}, ecn=ecn)
    return {"scheduler": "wfq", "queues": [*queues, {"name": "rest", "rule": rest}]}


@dataclass(frozen=True, slots=True)
class Class:
    """Flows with one contract: the name of their entry, how many they are, each one's rate (0: none)."""

    name: str
    count: int
    profile_mbps: float


def contracts(classes: Sequence[Class]) -> dict[str, float]:
    """The rate of all flows of each contract by codepoint, for `queue_per_contract`."""
    reserved = [one for one in classes if one.profile_mbps]
    return {dscp: one.count * one.profile_mbps for dscp, one in zip(CODEPOINTS, reserved, strict=False)}


def codepoint(classes: Sequence[Class], name: str) -> dict[str, str]:
    """The codepoint of a class in `contracts`, as a key of its flows' table; nothing for best effort."""
    reserved = [one.name for one in classes if one.profile_mbps]
    return {"dscp": CODEPOINTS[reserved.index(name)]} if name in reserved else {}


def unmetered(flow: Mapping[str, Any], classes: Sequence[Class], name: str) -> dict[str, Any]:
    """The table of a class's flows where each contract has a queue: a codepoint in place of a profile."""
    return {**{key: value for key, value in flow.items() if key != "profile"}, **codepoint(classes, name)}


def class_samples(
    factors: Factors, run: Run, classes: Sequence[Class], capacity_mbps: float
) -> Iterator[Sample]:
    """Rates against profiles and targets: by class, then the error and Jain's index over all flows."""
    means = []
    for one in classes:
        key = {**factors, "profile_mbps": one.profile_mbps}
        rate = mean_mbps(run, one.name)
        means.append(rate)
        yield Sample(key, "throughput", MBPS, rate)
        if one.profile_mbps:
            yield Sample(key, "over_profile", "of the profile", rate / one.profile_mbps)
    rates = [float(x) / 1e6 for x in run.flows("throughput_bps")]
    profiles = [one.profile_mbps for one in classes for _ in range(one.count)]
    wanted = targets(profiles, capacity_mbps)
    reserved = [(rate, profile) for rate, profile in zip(rates, profiles, strict=True) if profile]
    kept = sum(rate >= KEPT * profile for rate, profile in reserved) / len(reserved)
    yield Sample(factors, "kept", "of reserved flows", kept, 1.0)
    by_class = dict(zip(profiles, wanted, strict=True))
    targeted = [by_class[one.profile_mbps] for one in classes]
    yield Sample(factors, "rmse", MBPS, rmse(means, targeted, [one.count for one in classes]))
    index = jain_index(rates, wanted)
    if index is not None:
        yield Sample(factors, "jain_index", "index", index)
    yield Sample(factors, "utilization", "fraction", utilization(rates, capacity_mbps))


def link_samples(factors: Factors, run: Run, link: str) -> Iterator[Sample]:
    """Waiting time at a link, in ms, and what it drops and marks, in percent of the packets that come."""
    found = run.link(link)
    yield from waits(factors, found["delay_s"], {"wait_p50": 0.5, "wait_p99": 0.99})
    arrived = max(int(found["arrived_packets"]), 1)
    notified = sum(int(packets.sum()) for packets in found["measured"]["notified"].values())
    yield Sample(factors, "loss", "%", 100.0 * int(found["dropped_packets"]) / arrived, arrived)
    yield Sample(factors, "marks", "%", 100.0 * notified / arrived, arrived)
    if found["loss_green"] is not None:
        green = float(found["measured"]["arrived"][0])
        yield Sample(factors, "in_loss", "%", 100.0 * float(found["loss_green"]), green)


def transit(run: Run, group: str) -> Mapping[str, Any] | None:
    """Histogram of the one-way delays of a group's packets, in s; None where they are not measured."""
    (found,) = (one for one in run.raw["groups"] if one["name"] == group)
    delays: Mapping[str, Any] | None = found["transit_s"]
    return delays


def rule_pairs(
    first: str, *others: str, controls: Iterable[str] = SENDERS
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of cells for `Cells.compared`: a rule against each of others, with each of these senders."""
    return [((first, control), (other, control)) for control in controls for other in others]


@dataclass(frozen=True, slots=True)
class Cells:
    """Judges over a study whose cells are named by a rule, a sender, and what else is fixed.

    Attributes:
        rules: The names of the rules.
        fixed: Further factors of every cell that is judged.
    """

    rules: Mapping[str, str]
    fixed: Mapping[str, Any]

    def key(self, rule: str, control: str, /, **more: Factor) -> dict[str, Any]:
        """All factors of a number."""
        return {**self.fixed, "rule": rule, "control": control, **more}

    def all(self) -> list[dict[str, Any]]:
        """Every rule with every kind of senders."""
        return [self.key(*at) for at in itertools.product(self.rules, SENDERS)]

    def name(self, rule: str, control: str) -> str:
        """Return how a cell reads."""
        return f"{self.rules[rule]} with {CONTROL_NAMES[control]}"

    def place(self, more: Mapping[str, Any]) -> str:
        """The other factors of a statement's numbers, as the head of its evidence."""
        factors = {**self.fixed, **more}
        parts = [
            text.format(factors[name])
            for name, text in (("subscription_percent", "{:g} %"), ("profile_mbps", "{:g} Mbit/s"))
            if name in factors
        ]
        return f"{', '.join(parts)}: " if parts else ""

    def places(self, rules: Iterable[str], controls: Iterable[str], **more: Factor) -> dict[str, Factors]:
        """The factors of a number under each of these rules with each sender, by how the cell reads."""
        return {self.name(*at): self.key(*at, **more) for at in itertools.product(rules, controls)}

    def bounded(
        self,
        metric: str,
        rules: Iterable[str],
        controls: Iterable[str],
        side: Side,
        bound: float,
        **more: Factor,
    ) -> Judge:
        """Judge whether a number is on one side of a bound under each of these rules with each sender."""
        return judges.bounded(metric, self.places(rules, controls, **more), side, bound, self.place(more))

    def compared(
        self,
        metric: str,
        pairs: Sequence[tuple[tuple[str, str], tuple[str, str]]],
        side: Side,
        *,
        factor: float = 1.0,
        **more: Factor,
    ) -> Judge:
        """Judge whether a number of each pair's first cell is above (below) `factor` times the second's.

        The difference is taken run by run, on the same seeds.
        """
        named = {self._against(*pair): pair for pair in pairs}
        found = differences(
            metric,
            {name: (self.key(*a, **more), self.key(*b, **more)) for name, (a, b) in named.items()},
            factor=factor,
        )
        times = "" if factor == 1 else f"; compared with {factor:g} times the second"

        def listed(evidence: Evidence) -> str:
            checks = {name: side(one) for name, one in found(evidence).items()}
            shown = [name for name in named if len(named) <= FEW or not checks[name].holds]
            texts = [
                ", ".join(
                    f"{self.name(*one)} {show(evidence.estimate(metric, self.key(*one, **more)), '~')}"
                    for one in named[name]
                )
                for name in shown
            ]
            holds = sum(check.holds is True for check in checks.values())
            return "; ".join([f"{holds} of {len(checks)} comparisons", *texts] if len(named) > 1 else texts)

        return found.all(side).said(
            f"{self.place(more)}{{listed}}{times}; {{failing:against it}}.", listed=listed
        )

    def _against(self, first: tuple[str, str], second: tuple[str, str]) -> str:
        one = self.rules[first[0]] if first[1] == second[1] else self.name(*first)
        return f"{one} against {self.name(*second)}"

    def keeps(self, rules: Iterable[str], controls: Iterable[str], profile_mbps: float) -> Judge:
        """Judge whether a contract is kept."""
        return self.bounded("over_profile", rules, controls, at_least, KEPT, profile_mbps=profile_mbps)

    def misses(self, rules: Iterable[str], controls: Iterable[str], profile_mbps: float) -> Judge:
        """Judge whether a contract is missed."""
        return self.bounded("over_profile", rules, controls, below, KEPT, profile_mbps=profile_mbps)


def by_senders(rules: Axis, *listed: Listed, columns: Axis = CONTROLS, **where: Among) -> Iterator[Table]:
    """Tables by rule and kind of senders; rates over profiles say by a sign whether they keep these."""
    for table in tables(rules, (columns,), *listed, **where):
        yield replace(table, bound=PROFILE_KEPT) if "over_profile" in table.metrics else table


def each_sender(
    title: str,
    rules: Axis,
    columns: Axis,
    metric: str = "throughput",
    digits: int = 2,
    *,
    by: str = "control",
    **where: Among,
) -> Iterator[Table]:
    """Tables of a metric by rule, one for each kind of senders, which the title and the factor `by` name."""
    listed = [(title.format(name), metric, digits, {by: control}) for control, name in CONTROL_NAMES.items()]
    return by_senders(rules, *listed, columns=columns, **where)


def dots(name: str, title: str, metric: str, rules: Axis, y_label: str, *, facet: Axis | None = None) -> Plot:
    """A plot of a metric under each rule with a dot for each kind of senders."""
    return Plot(name, title, "dots", metric, rules, CONTROLS, y_label, facet)


def kept_matrix(name: str, title: str, rules: Axis, facet: Axis, where: Where = NOTHING) -> Plot:
    """A plot of rates over profiles by kind of senders and rule."""
    return Plot(
        name, title, "matrix", "over_profile", CONTROLS, rules, "", facet, dict(where), bound=PROFILE_KEPT
    )

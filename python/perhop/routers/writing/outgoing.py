"""A scenario's link as an exporter sees it: its shaper, its queues with their packets, its meters."""

from __future__ import annotations

import difflib
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from perhop import _engine
from perhop.errors import PerhopError
from perhop.routers import units
from perhop.routers.curves import COLORS, drop_precedence
from perhop.routers.model import ALL_CODEPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perhop.routers.curves import Color
    from perhop.routers.dialect import Dialect

RATES = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9, "tbps": 1e12}
DEFAULT_BURST_S = 0.2
"""Of the policer of a priority queue without `burst`: what comes in this time."""
FLOW_QUEUES = frozenset({"fq-codel", "dualpi2"})
"""Schedulers of Linux that are one qdisc."""
SIZES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9}


@dataclass(frozen=True, slots=True)
class Depth:
    """A queue's limit or threshold: packets or bytes."""

    number: float
    packets: bool


@dataclass(frozen=True, slots=True)
class Thresholds:
    """min, max and max_p of a drop curve."""

    low: Depth
    high: Depth
    most: float


@dataclass(slots=True)
class QueueOut:
    """A queue with the packets that no earlier one takes."""

    place: str
    """Where it is in the scenario."""
    name: str
    codepoints: frozenset[int]
    rest: bool
    """Whether it takes all packets that no other queue takes."""
    rule: dict[str, Any]
    rate: float | None = None
    """Guaranteed, in bit/s."""
    weight: float | None = None
    cap: float | None = None
    """Of a queue of strict priority, in bit/s."""
    ceil: float | None = None
    """The rate to which its class is shaped, in bit/s."""
    ceil_burst: float = 0.0
    """Of that shaper, in bytes."""
    strict: bool = False
    """Whether it is a priority queue of `llq`; `cap` is then the rate of its policer."""
    burst: float | None = None
    """Of that policer, in bytes."""
    prio: int = 0
    """Of its class in a tree: those with the lowest borrow first."""
    policed_always: bool = False
    """Whether that policer acts without congestion, too."""
    rule_place: str = ""
    """The key of its AQM in the scenario."""
    meter: MeterOut | None = None
    """The meter that is for the same packets."""
    colors: dict[int, Color] = field(default_factory=dict)
    """Colors of codepoints, as flows of the scenario have them."""
    used: frozenset[int] = frozenset()
    """Codepoints that flows of the scenario have."""

    def curve(self, codepoint: int, color: Color) -> str | None:
        """The drop curve of a packet: a profile's number, or a color; None: it drops on overflow only."""
        profiles = self.rule.get("profiles", [])
        for number, profile in enumerate(profiles):
            if takes(profile.get("match", {}), codepoint, color):
                return str(number) if "curve" in profile else None
        keys = ("red", "yellow") if color == "red" else (color,)  # red falls back to yellow
        return next((key for key in keys if isinstance(self.rule.get(key), str)), None)

    def lost_curves(self) -> list[str]:
        """Curves that packets of other colors would get, but no codepoint of the queue has such a color."""
        acting = {self.curve(code, self.color(code)) for code in self.codepoints}
        possible = {self.curve(code, color) for code in self.codepoints for color in COLORS}
        return sorted(key for key in possible - acting if key is not None)

    def color(self, codepoint: int) -> Color:
        """The color of the scenario's flows; else the drop precedence of AF (RFC 2597); else green."""
        return self.colors.get(codepoint) or drop_precedence(codepoint) or "green"


@dataclass(slots=True)
class MeterOut:
    """A meter at the link, with the packets that no earlier one takes."""

    place: str
    name: str
    codepoints: frozenset[int]
    profile: dict[str, Any]


def policer(queue: QueueOut) -> MeterOut:
    """The policer of a strict queue, as a meter."""
    profile: dict[str, Any] = {"marker": "token-bucket", "out": "drop"}
    profile["rate"] = f"{units.plain(queue.cap or 0.0)}bps"
    profile["burst"] = f"{units.plain(queue.burst or 0.0)}B"
    return MeterOut(queue.place, queue.name, queue.codepoints, profile)


@dataclass(slots=True)
class Outgoing:
    """The forward direction of a link. Rates are bit/s, bursts bytes."""

    name: str
    place: str
    rate: float
    kind: Literal["single", "priority", "wfq", "drr", "htb"]
    """The scheduler of the queues that are not priority queues of `llq`."""
    scheduler: dict[str, Any]
    """The scheduler's own keys."""
    queues: list[QueueOut]
    meters: list[MeterOut]
    """Meters that are not for the packets of one queue."""
    shaper: tuple[float, float] | None = None
    """Rate and burst."""
    path: str = ""
    """The key of these queues' scheduler in the scenario."""
    shape: bool = False
    """Whether the interface is faster than the link, so that lines must shape to the link's rate."""
    scenario: dict[str, Any] = field(default_factory=dict)
    """All of it, for a dialect that has perhop's own queues; `queues` and `meters` are then empty."""
    origin: str = ""
    """The name of the scenario in messages."""
    devices: str | None = None
    """The interfaces towards the customers and towards the network, as `--devices` has them."""


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a command takes."""

    least: float
    most: float
    source: int
    """Which of the numbered sources of its module says so."""
    line: str
    """A regular expression of lines with the command; its group is the number."""

    def fitted(self, value: float) -> float:
        """The nearest number that the command takes."""
        return min(max(value, self.least), self.most)


RemarkKind = Literal["rounded", "differs", "left out"]


@dataclass(frozen=True, slots=True)
class Remark:
    """A value that the lines do not say as the scenario does."""

    kind: RemarkKind
    place: str
    text: str


class Remarks:
    """What an export says beside its lines."""

    def __init__(self) -> None:
        """Without any."""
        self.listed: list[Remark] = []

    def _add(self, kind: RemarkKind, place: str, text: str) -> None:
        remark = Remark(kind, place, text)
        if remark not in self.listed:
            self.listed.append(remark)

    def differs(self, place: str, text: str) -> None:
        """What a device does in another way."""
        self._add("differs", place, text)

    def left_out(self, place: str, text: str) -> None:
        """What the dialect cannot express; an error unless the export is lenient."""
        self._add("left out", place, text)

    def rounded(self, place: str, given: str, value: float, written: float, said: str) -> None:
        """A number that is written as another one, if it is."""
        if abs(written - value) <= 1e-7 * abs(value):
            return
        off = f", off by {100 * (written / value - 1):+.2g} %" if value else ""
        self._add("rounded", place, f"{given} becomes {said}{off}")

    def fitted(self, place: str, given: str, value: float, taken: Range, unit: str) -> int:
        """A whole number that a command takes; a remark says what it was."""
        whole = int(taken.fitted(math.floor(value + 0.5)))
        edge = "most" if whole == taken.most else "least"
        beyond = f", the {edge} that the command takes" if abs(whole - value) > 1 else ""
        self.rounded(place, given, value, whole, f"{whole} {unit}{beyond}")
        return whole


def lost(queue: QueueOut, remarks: Remarks) -> None:
    """Curves that no codepoint of the queue gets, because the color of packets alone chooses them."""
    for key in queue.lost_curves():
        place = f"{queue.rule_place}.{f'profiles[{key}]' if key.isdecimal() else key}"
        text = "no codepoint of the queue has this color in the scenario, so no line can say its curve; "
        remarks.left_out(place, f"{text}give flows of it `dscp` and `color`")


def rate(text: str) -> float:
    """A rate of a checked scenario, in bit/s."""
    return _scaled(text, RATES)


def size(text: str) -> float:
    """Bytes of a checked scenario."""
    return _scaled(text, SIZES)


def depth(text: str) -> Depth:
    """A limit of a checked scenario: `200p`, `300kB`, or packets without a unit."""
    bare = text.removesuffix("p")
    if units.number(bare) is not None:
        return Depth(float(bare), packets=True)
    return Depth(size(text), packets=False)


def thresholds(text: str) -> Thresholds:
    """`min/max/max_p` of a checked scenario.

    >>> thresholds("30kB/60kB/0.1").high.number, thresholds("30/60/0.1").low
    (60000.0, Depth(number=30.0, packets=True))
    """
    low, high, most = text.split("/")
    return Thresholds(depth(low), depth(high), float(most))


def _scaled(text: str, factors: dict[str, float]) -> float:
    found = units.scaled(text, factors)
    if found is None:
        raise PerhopError(f"`{text}` is no amount that an export can write")
    return round(found, 6)


MOST_NAMES = 8
"""Of links, in a message."""


def chosen(scenario: dict[str, Any], origin: str, link: str | None, where: str) -> str:
    """The name of the link: the one asked for, or the only one with a queue, which `where` gives them."""
    links: dict[str, Any] = scenario.get("links") or {}
    queued = [name for name, table in links.items() if "queue" in table]
    named = queued
    if link is not None:
        near = difflib.get_close_matches(link, queued, MOST_NAMES, 0.5)
        named = near + [name for name in queued if name not in near]
    more = f" and {len(queued) - MOST_NAMES} more" if len(queued) > MOST_NAMES else ""
    listed = (", ".join(named[:MOST_NAMES]) + more) or "none"
    if link is not None:
        if link not in links:
            raise PerhopError(f"{origin}: --link {link}: there is no such link; those with a queue: {listed}")
        if link not in queued:
            raise PerhopError(f"{origin}: --link {link}: has no queue to export; those with one: {listed}")
        return link
    if not queued:
        raise PerhopError(f"{origin}: no link has a queue; give {where} one")
    if len(queued) > 1:
        raise PerhopError(f"{origin}: several links have queues; choose one with --link: {listed}")
    return queued[0]


def outgoing(
    canonical: str,
    origin: str,
    link: str | None,
    dialect: Dialect,
    others: Iterable[Dialect],
) -> Outgoing:
    """The link of a checked scenario.

    Args:
        canonical: The scenario.
        origin: Its name in messages.
        link: The link's name.
        dialect: The one that is written; if it is native, the queues stay the scenario's tables.
        others: All dialects, to name those that can express what this one cannot.

    Raises:
        PerhopError: There is no such link, or its queue is of a kind that no router's configuration has.
    """
    scenario = json.loads(canonical if dialect.native else _engine.with_limits(canonical))
    where = "[links.NAME]"
    if "topology" in scenario:  # its links follow from a rule
        scenario, where = json.loads(_engine.written_out(canonical)), "[topology.link] or a tier"
    name = chosen(scenario, origin, link, where)
    table = scenario["links"][name]
    place = f"links.{name}"
    if dialect.native:
        return Outgoing(
            name, place, rate(table["rate"]), "single", {}, [], [], scenario=scenario, origin=origin
        )
    queue, path = table["queue"], f"{place}.queue"
    shaper = None
    if queue.get("scheduler") == "shaper":
        shaper = (rate(queue["rate"]), size(queue["burst"]))
        queue, path = queue["queue"], f"{path}.queue"
    kind = queue.get("scheduler", "single")
    if kind == "fifo":
        kind, queue = "single", queue["rule"]
    elif kind in FLOW_QUEUES & dialect.schedulers:
        kind = "single"
    queues: list[QueueOut] = []
    if kind == "llq":
        queues = _strict(queue["priority"], f"{path}.priority", origin)
        queue, path = queue["queue"], f"{path}.queue"
        kind = queue.get("scheduler", "single")
        if kind == "fifo":
            kind, queue = "single", queue["rule"]
    whole = rate(table["rate"]) if shaper is None else shaper[0]
    if kind == "htb" and dialect.flattens and _flat(queue, whole):
        queues += _shaped(queue, path, origin, frozenset().union(*(one.codepoints for one in queues)))
        kind, queue = "wfq", {"queues": []}
    alone = kind in {"htb", "priority"} and bool(queues)
    if alone or (kind != "single" and kind not in dialect.schedulers):
        raise PerhopError(f"{origin}: {path}: {_refusal(dialect, others, kind, within=bool(queues))}")
    keys = {key: value for key, value in queue.items() if key != "queues"} if kind != "single" else {}
    taken = frozenset[int]().union(*(one.codepoints for one in queues))
    if kind == "htb":
        queues = _leaves(queue["classes"], f"{path}.classes", origin, set())
    elif kind == "single":
        rest = ALL_CODEPOINTS - taken
        queues.append(QueueOut(path, "class-default", rest, rest=True, rule=queue, rule_place=path))
    else:
        queues += _queues(queue["queues"], f"{path}.queues", origin, taken)
    meters = _meters(table.get("meters") or [], place, origin)
    _as_flows(queues, scenario, frozenset[int]().union(*(one.codepoints for one in meters)))
    by_packets = {one.codepoints: one for one in queues}
    if all(meter.codepoints in by_packets for meter in meters):
        for meter in meters:
            by_packets[meter.codepoints].meter = meter
        meters = []
    return Outgoing(name, place, rate(table["rate"]), kind, keys, queues, meters, shaper, path)


def _refusal(dialect: Dialect, others: Iterable[Dialect], kind: str, *, within: bool) -> str:
    """Why a scheduler is not written, and which dialects can; `within`: behind the queues of `llq`."""
    able = [other for other in others if other is not dialect and (other.native or not within)]
    listed = [f"--to {other.name}" for other in able if other.writes(kind)]
    before = ", ".join(listed[:-1])
    shown = f"{before} and {listed[-1]}" if before else listed[-1]
    place = ""
    if within:
        place = " within llq"
    elif kind == "htb":
        place = " of several levels or with schedulers within it"
    return f"--to {dialect.name} cannot express the scheduler {kind}{place}; {shown} can"


def _as_flows(queues: list[QueueOut], scenario: dict[str, Any], metered: frozenset[int]) -> None:
    """Give queues the codepoints that flows of the scenario have, and their colors."""
    colors = _colors(scenario, metered)
    codes = [flow.get("dscp", 0) for flow in scenario.get("flows") or []]
    used = frozenset(code for code in codes if isinstance(code, int))
    for one in queues:
        one.colors = {code: color for code, color in colors.items() if code in one.codepoints}
        one.used = used & one.codepoints


def strict_classes(tables: list[dict[str, Any]]) -> list[bool]:
    """Which classes of a tree, side by side, are strict: they go first, and have no more than their rate."""
    last = max((table.get("prio") or 0 for table in tables), default=0)
    return [
        "queue" in table
        and (table.get("prio") or 0) < last
        and table.get("ceil", table["rate"]) == table["rate"]
        for table in tables
    ]


def _strict(tables: list[dict[str, Any]], path: str, origin: str) -> list[QueueOut]:
    """The priority queues of `llq`, whose rate is that of a policer."""
    queues = _queues(tables, path, origin)
    for one, given in zip(queues, tables, strict=True):
        one.strict, one.policed_always = True, given.get("police") == "always"
        one.cap, one.rate = one.rate, None
        if one.cap is not None:
            one.burst = size(given["burst"]) if "burst" in given else one.cap / 8 * DEFAULT_BURST_S
    return queues


def _flat(tree: dict[str, Any], bps: float) -> bool:
    """Whether a tree of htb is one level of classes with AQMs that share this rate."""
    if len(tree["classes"]) != 1:
        return False
    (root,) = tree["classes"]
    leaves = root.get("classes") or []
    plain = all("queue" in leaf and "scheduler" not in leaf["queue"] for leaf in leaves)
    return bool(leaves) and plain and rate(root.get("ceil", root["rate"])) == bps


def _shaped(queue: dict[str, Any], path: str, origin: str, taken: frozenset[int]) -> list[QueueOut]:
    """The classes of a tree of one level: their guaranteed rates, and their ceilings as shapers."""
    (root,), path = queue["classes"], f"{path}.classes[0]"
    tables = [{**leaf, "rule": leaf["queue"]} for leaf in root["classes"]]
    queues = _queues(tables, f"{path}.classes", origin, taken)
    most = rate(root.get("ceil", root["rate"]))
    first = strict_classes(root["classes"])
    for one, leaf, strict in zip(queues, root["classes"], first, strict=True):
        ceil = rate(leaf.get("ceil", leaf["rate"]))
        one.rule_place, one.strict, one.prio = f"{one.place}.queue", strict, leaf.get("prio") or 0
        if ceil < most:
            one.ceil, one.ceil_burst = ceil, size(leaf["cburst"])
        if strict:
            one.rate = None
    ahead = sorted((one for one in queues if one.strict), key=lambda one: one.prio)
    return ahead + [one for one in queues if not one.strict]


def _codepoints(match: dict[str, Any], place: str, origin: str) -> frozenset[int]:
    excluded = match.get("not") or {}
    others = sorted(set(match) - {"dscp", "precedence", "not"}) + sorted(
        set(excluded) - {"dscp", "precedence"}
    )
    if others:
        text = "only `dscp` and `precedence` can be exported"
        raise PerhopError(f"{origin}: {place}.match: {text}, not `{others[0]}`")
    return frozenset(code for code in ALL_CODEPOINTS if takes(match, code, "green"))


def takes(match: dict[str, Any], codepoint: int, color: Color) -> bool:
    """Whether a match takes packets of this codepoint and color that follow no path."""

    def agree(table: dict[str, Any]) -> bool:
        values = {"dscp": codepoint, "precedence": codepoint >> 3, "color": color}
        given = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
        return all(key in values and values[key] in listed for key, listed in given.items())

    excluded = match.get("not")
    return agree({key: value for key, value in match.items() if key != "not"}) and not (
        excluded and agree(excluded)
    )


def _queues(
    tables: list[dict[str, Any]], path: str, origin: str, taken: frozenset[int] = frozenset()
) -> list[QueueOut]:
    result = []
    for number, table in enumerate(tables):
        place = f"{path}[{number}]"
        match = table.get("match")
        codes = (ALL_CODEPOINTS if match is None else _codepoints(match, place, origin)) - taken
        if "queue-protection" in table:
            raise PerhopError(f"{origin}: {place}.queue-protection: no dialect here can express it")
        taken |= codes
        result.append(
            QueueOut(
                place,
                table.get("name") or f"queue-{number}",
                codes,
                rest=match is None,
                rule=table["rule"],
                rate=None if "rate" not in table else rate(table["rate"]),
                weight=table.get("weight"),
                cap=None if "cap" not in table else rate(table["cap"]),
                rule_place=f"{place}.rule",
            )
        )
    return result


def _leaves(tables: list[dict[str, Any]], path: str, origin: str, taken: set[int]) -> list[QueueOut]:
    """The queues of a tree of classes, in the order in which their matches are tried."""
    result = []
    for number, table in enumerate(tables):
        place = f"{path}[{number}]"
        inner = table.get("classes") or []
        if inner:
            result += _leaves(inner, f"{place}.classes", origin, taken)
            continue
        match = table.get("match")
        codes = (ALL_CODEPOINTS if match is None else _codepoints(match, place, origin)) - taken
        taken |= codes
        rule, rule_place = table["queue"], f"{place}.queue"
        if rule.get("scheduler") == "fifo":
            rule = rule["rule"]
        found = QueueOut(place, table["name"], codes, rest=match is None, rule=rule, rate=rate(table["rate"]))
        found.rule_place = rule_place
        result.append(found)
    return result


def _meters(tables: list[dict[str, Any]], place: str, origin: str) -> list[MeterOut]:
    taken: frozenset[int] = frozenset()
    result = []
    for number, table in enumerate(tables):
        where = f"{place}.meters[{number}]"
        match = table.get("match")
        codes = (ALL_CODEPOINTS if match is None else _codepoints(match, where, origin)) - taken
        if codes:
            result.append(MeterOut(where, table.get("name") or f"meter-{number}", codes, table["profile"]))
        taken |= codes
    return result


def _colors(scenario: dict[str, Any], metered: frozenset[int]) -> dict[int, Color]:
    """The color of each codepoint whose flows agree about it.

    A flow with a profile has its marker's codepoints; packets that a meter of the link takes get its colors.
    """
    found: dict[int, set[Color]] = {}
    for flow in scenario.get("flows") or []:
        code = flow.get("dscp", 0)
        if isinstance(code, int) and "profile" not in flow:
            found.setdefault(code, set()).add(flow.get("color") or drop_precedence(code) or "yellow")
    return {
        code: next(iter(colors)) for code, colors in found.items() if len(colors) == 1 and code not in metered
    }

"""A scenario's link as an exporter sees it: its shaper, its queues with their packets, its meters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from perhop import _engine
from perhop.routers import units
from perhop.routers.curves import COLORS, drop_precedence

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from perhop.routers.curves import Color

Table = dict[str, Any]
"""A table of a checked scenario."""
DEFAULT_BURST_S = 0.2
"""The burst of the policer of a priority queue without `burst`: what comes in this time."""
MARKERS = {"token-bucket": "", "srtcm": "excess-burst", "trtcm": "peak-burst"}
"""The markers that devices have, with the key of the second burst."""
NEUTRAL: Table = {
    "gentle": False, "spare-short-queue": False, "adaptive": False, "drop-at": "tail",
}  # fmt: skip
"""Keys of RED and WRED that devices do not have, and the value that needs none."""
RemarkKind = Literal["rounded", "differs", "left out"]


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
    """The key of the queue in the scenario."""
    name: str
    codepoints: frozenset[int]
    rest: bool
    """Whether it takes all packets that no other queue takes."""
    rule: Table
    rate: float | None = None
    """Guaranteed, in bit/s."""
    weight: float | None = None
    cap: float | None = None
    """The rate up to which a queue of strict priority goes first, in bit/s."""
    ceil: float | None = None
    """The rate to which its class is shaped, in bit/s."""
    ceil_burst: float = 0.0
    """The burst of that shaper, in bytes."""
    strict: bool = False
    """Whether it is a priority queue of `llq`; `cap` is then the rate of its policer."""
    burst: float | None = None
    """The burst of that policer, in bytes."""
    prio: int = 0
    """The priority of its class in a tree: classes with the lowest one borrow first."""
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
        for number, profile in enumerate(self.rule.get("profiles", [])):
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


@dataclass(frozen=True, slots=True)
class MeterOut:
    """A meter, with the packets that no earlier one takes. Rates are bit/s, bursts bytes."""

    place: str
    name: str
    codepoints: frozenset[int]
    marker: str
    rate: float
    burst: float
    peak_rate: float = 0.0
    """The peak rate of `trtcm`."""
    second_burst: float = 0.0
    """The excess burst of `srtcm`, the peak burst of `trtcm`."""
    out: str = "mark"
    """The treatment of packets out of profile, as the scenario has it."""
    mode: str = "color-blind"
    group: int | None = None
    """The AF class whose codepoints it writes."""

    @classmethod
    def of_profile(cls, place: str, name: str, codepoints: frozenset[int], profile: Table) -> MeterOut:
        """The meter of a scenario's profile; of a marker that no device has, only this is known."""
        marker = profile["marker"]
        made = cls(place, name, codepoints, marker, 0.0, 0.0)
        if marker not in MARKERS:
            return made
        second = MARKERS[marker]
        return replace(
            made,
            rate=rate(profile["rate"]),
            burst=size(profile["burst"]),
            peak_rate=rate(profile["peak-rate"]) if marker == "trtcm" else 0.0,
            second_burst=size(profile[second]) if second else 0.0,
            out=profile.get("out", "mark"),
            mode=profile.get("mode", "color-blind"),
            group=profile.get("af"),
        )

    @classmethod
    def of_strict(cls, queue: QueueOut) -> MeterOut:
        """The policer of a strict queue."""
        cap, burst = queue.cap or 0.0, queue.burst or 0.0
        return cls(queue.place, queue.name, queue.codepoints, "token-bucket", cap, burst, out="drop")

    @property
    def second(self) -> str:
        """The key of the second burst in a profile."""
        return MARKERS[self.marker]


@dataclass(slots=True)
class Outgoing:
    """The forward direction of a link. Rates are bit/s, bursts bytes."""

    name: str
    place: str
    rate: float
    kind: str = "single"
    """The scheduler of the queues that are not priority queues of `llq`; `single` if there is one queue."""
    scheduler: Table = field(default_factory=dict)
    """The scheduler's own keys."""
    queues: list[QueueOut] = field(default_factory=list)
    """Empty for a dialect with perhop's own queues, which reads them from the scenario; so are the meters."""
    meters: list[MeterOut] = field(default_factory=list)
    """Meters that are not for the packets of one queue."""
    shaper: tuple[float, float] | None = None
    """The shaper's rate and burst."""
    path: str = ""
    """The key of these queues' scheduler in the scenario."""
    shape: bool = False
    """Whether the interface is faster than the link, so that lines must shape to the link's rate."""
    scenario: Table = field(default_factory=dict)
    origin: str = ""
    """The name of the scenario in messages."""
    devices: str | None = None
    """The interfaces towards the customers and towards the network, as `--devices` has them."""

    @property
    def whole(self) -> float:
        """The rate that all queues share: that of the shaper, or of the link."""
        return self.rate if self.shaper is None else self.shaper[0]


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a command takes."""

    least: float
    most: float

    def fitted(self, value: float) -> float:
        """The nearest number that the command takes."""
        return min(max(value, self.least), self.most)


@dataclass(frozen=True, slots=True)
class Remark:
    """A value that the lines do not say as the scenario does."""

    kind: RemarkKind
    place: str
    text: str


class Remarks:
    """The remarks of an export: what its lines do not say as the scenario does."""

    def __init__(self) -> None:
        """Starts without remarks."""
        self.listed: list[Remark] = []

    def _add(self, kind: RemarkKind, place: str, text: str) -> None:
        remark = Remark(kind, place, text)
        if remark not in self.listed:
            self.listed.append(remark)

    def differs(self, place: str, text: str) -> None:
        """Remark what a device does in another way."""
        self._add("differs", place, text)

    def left_out(self, place: str, text: str) -> None:
        """Remark what the dialect cannot express; it is an error unless the export is lenient."""
        self._add("left out", place, text)

    def rounded(self, place: str, given: str, value: float, written: float, said: str) -> None:
        """Remark that a number is written as another one, if it is."""
        if abs(written - value) <= 1e-7 * abs(value):
            return
        off = f", off by {100 * (written / value - 1):+.2g} %" if value else ""
        self._add("rounded", place, f"{given} becomes {said}{off}")

    def rate(self, place: str, key: str, bps: float, taken: Range) -> int:
        """A rate in bit/s that a command takes."""
        return self.fitted(place, f"{key} {units.plain(bps)} bit/s", bps, taken, "bit/s")

    def bytes(self, place: str, key: str, value: float, taken: Range) -> int:
        """An amount in bytes that a command takes."""
        return self.fitted(place, f"{key} {units.plain(value)} B", value, taken, "B")

    def fitted(self, place: str, given: str, value: float, taken: Range, unit: str) -> int:
        """A whole number that a command takes; a remark says what it was."""
        whole = int(taken.fitted(math.floor(value + 0.5)))
        edge = "most" if whole == taken.most else "least"
        beyond = f", the {edge} that the command takes" if abs(whole - value) > 1 else ""
        self.rounded(place, given, value, whole, f"{whole} {unit}{beyond}")
        return whole


def codepoints(ones: Iterable[QueueOut | MeterOut]) -> frozenset[int]:
    """The codepoints of several queues or meters."""
    return frozenset[int]().union(*(one.codepoints for one in ones))


def unique(base: str, used: Container[str], most: int | None = None) -> str:
    """A name that is not used in whatever case, with so many characters at most: `base`, `base-2` and so on.

    >>> unique("VOICE", {"voice", "voice-2"}), unique("VOICE", {"voic"}, 4)
    ('VOICE-3', 'VO-2')
    """
    name, number = base[:most], 2
    while name.lower() in used:
        end = f"-{number}"
        name, number = (base if most is None else base[: most - len(end)]) + end, number + 1
    return name


def red_keys(
    rule: Table,
    place: str,
    remarks: Remarks,
    system: str,
    spaced: str = "how drops are spaced is the device's",
    where: str = "",
) -> None:
    """Keys of RED and WRED that a device does not have, and how it spaces drops."""
    for key, neutral in NEUTRAL.items():
        if rule.get(key, neutral) != neutral:
            remarks.left_out(f"{place}.{key}", f"{system} has no `{key}`{where}")
    if rule.get("wait", True):
        remarks.differs(f"{place}.wait", f"{spaced}; import reads `wait = false`")


def by_size(rule: Table, place: str, remarks: Remarks, system: str) -> None:
    """The probability of a drop, which a device does not scale by the size of the packet."""
    if rule.get("scale-by-size", True):
        text = f"{system} drops packets of all sizes with the same probability; import reads `false`"
        remarks.differs(f"{place}.scale-by-size", text)


def lost(queue: QueueOut, remarks: Remarks) -> None:
    """Curves that no codepoint of the queue gets, because the color of packets alone chooses them."""
    for key in queue.lost_curves():
        place = f"{queue.rule_place}.{f'profiles[{key}]' if key.isdecimal() else key}"
        text = "no codepoint of the queue has this color in the scenario, so no line can say its curve; "
        remarks.left_out(place, f"{text}give flows of it `dscp` and `color`")


def rate(text: str) -> float:
    """A rate of a checked scenario, in bit/s."""
    return float(_engine.quantity("rate", text)[0])


def size(text: str) -> float:
    """Bytes of a checked scenario."""
    return float(_engine.quantity("size", text)[0])


def nanoseconds(text: str) -> int:
    """A time of a checked scenario."""
    return int(_engine.quantity("duration", text)[0])


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


def strict_classes(tables: list[Table]) -> list[bool]:
    """Tell which classes side by side are strict: they go first, and have no more than their rate."""
    last = max((table.get("prio") or 0 for table in tables), default=0)
    first = [(table.get("prio") or 0) < last for table in tables]
    whole = [table.get("ceil", table["rate"]) == table["rate"] for table in tables]
    return ["queue" in one and all(rest) for one, *rest in zip(tables, first, whole, strict=True)]


def takes(match: Table, codepoint: int, color: Color) -> bool:
    """Whether a match takes packets of this codepoint and color that follow no path."""

    def agree(table: Table) -> bool:
        values = {"dscp": codepoint, "precedence": codepoint >> 3, "color": color}
        given = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
        return all(key in values and values[key] in listed for key, listed in given.items())

    excluded = match.get("not")
    own = {key: value for key, value in match.items() if key != "not"}
    return agree(own) and not (excluded and agree(excluded))

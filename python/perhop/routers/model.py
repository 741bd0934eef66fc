"""The QoS configuration of a port in no vendor's words, between readers and `mapping.py`.

It is richer than what perhop simulates, so that what cannot run yet is named and not lost. Every value keeps
the line that it was read from and how it was obtained. Lines are numbers of `source.Source`; 0 is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.source import Finding

ALL_CODEPOINTS = frozenset(range(64))
Action = Literal["transmit", "mark", "drop"]


class How(StrEnum):
    """The way in which a value was obtained."""

    CONFIGURED = "configured"
    DEFAULT = "platform default"
    ASKED = "asked"
    ASSUMED = "assumed"


class Unit(StrEnum):
    """The unit of an amount in a queue."""

    PACKETS = "packets"
    BYTES = "bytes"
    SECONDS = "seconds"
    PERCENT = "percent"
    """A percentage of the queue's limit."""
    BUFFER_PERCENT = "percent of the buffer"
    """A percentage of the port's buffer."""
    SEGMENTS = "segments"
    """A piece of the device's buffer memory; no configuration says its size."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount in a queue: a limit or a threshold. Nothing converts it silently."""

    number: float
    unit: Unit
    line: int = 0
    how: How = How.CONFIGURED
    each: float | None = None
    """Bytes of one packet, where the platform fixes them."""
    text: str = ""
    """As the configuration has it."""


class RateUnit(StrEnum):
    """The unit of a rate."""

    BPS = "bit/s"
    PERCENT = "percent"
    """A percentage of the port's rate."""
    REMAINING_PERCENT = "percent of the remaining rate"
    WEIGHT = "weight"
    PACKETS = "packets a second"


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate, or a share of one."""

    number: float
    unit: RateUnit = RateUnit.BPS
    line: int = 0
    how: How = How.CONFIGURED
    text: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Drop probability over the fill: 0 before the first point, 1 above the last one.

    Between two points it is a straight line (`linear`), or constant from a point to the next one (`step`).
    """

    points: tuple[tuple[Quantity, float], ...]
    interpolation: Literal["linear", "step"] = "linear"
    line: int = 0
    how: How = How.CONFIGURED

    @classmethod
    def ramp(cls, low: Quantity, high: Quantity, most: float, line: int, how: How = How.CONFIGURED) -> Curve:
        """A curve from 0 at `low` to `most` at `high`; above that all packets are dropped."""
        return cls(((low, 0.0), (high, most)), "linear", line, how)


class Ecn(StrEnum):
    """The treatment of ECN-capable packets where the curve would drop them."""

    OFF = "off"
    BELOW_MAX = "mark below max"
    ALWAYS = "mark below and above max"
    ONLY = "mark, never drop others"
    ONLY_BELOW_MAX = "mark and never drop others below max, drop all above"


ECN_VALUES = {
    Ecn.BELOW_MAX: "true",
    Ecn.ALWAYS: '"mark-above-max"',
    Ecn.ONLY: '"mark-only"',
    Ecn.ONLY_BELOW_MAX: '"mark-only-below-max"',
    Ecn.OFF: "false",
}
"""The values of `ecn` in a scenario."""


@dataclass(frozen=True, slots=True)
class Selector:
    """The packets of a queue that a curve is for: by codepoints, by color, or all others."""

    label: str
    codepoints: frozenset[int] | None = None
    color: Literal["green", "yellow", "red"] | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """A drop curve and the packets that it is for; they may have a limit and an ECN mode of their own."""

    selector: Selector
    curve: Curve
    limit: Quantity | None = None
    """The length of the whole queue beyond which these packets are dropped."""
    ecn: Ecn | None = None


@dataclass(frozen=True, slots=True)
class Average:
    """The weight of the newest sample in the average queue length; None where the platform does not say."""

    weight: float | None
    line: int = 0
    how: How = How.CONFIGURED
    text: str = ""


@dataclass(frozen=True, slots=True)
class PortMeter:
    """A policer or marker: one bucket, RFC 2697, RFC 2698 or RFC 4115. Bursts are bytes or seconds."""

    kind: Literal["one-bucket", "rfc2697", "rfc2698", "rfc4115"]
    rate: Rate
    burst: Quantity
    line: int
    peak_rate: Rate | None = None
    """PIR of RFC 2698, EIR of RFC 4115."""
    second_burst: Quantity | None = None
    """EBS of RFC 2697 and RFC 4115, PBS of RFC 2698."""
    color_aware: bool = False
    conform: Action = "transmit"
    exceed: Action = "drop"
    violate: Action = "drop"
    lines: tuple[int, ...] = ()
    """All lines that it was read from."""


@dataclass(frozen=True, slots=True)
class Match:
    """The packets that a class takes: codepoints, and conditions that codepoints do not express."""

    codepoints: frozenset[int] | None = None
    """The codepoints that it takes whatever the other conditions say. None stands for all that no earlier
    class takes, or for none if there are other conditions."""
    unknown: tuple[tuple[int, str], ...] = ()
    """The other conditions, each with its line and text."""
    line: int = 0
    possible: frozenset[int] = ALL_CODEPOINTS
    """The codepoints that it takes from packets that fulfill the other conditions."""

    @property
    def sure(self) -> frozenset[int]:
        """The codepoints that it takes at least."""
        every = frozenset() if self.unknown else ALL_CODEPOINTS
        return every if self.codepoints is None else self.codepoints

    @property
    def most(self) -> frozenset[int]:
        """The codepoints that it takes at most."""
        return self.sure | self.possible if self.unknown else self.sure

    @property
    def others(self) -> Match:
        """The packets that it does not take."""
        sure, most = ALL_CODEPOINTS - self.most, ALL_CODEPOINTS - self.sure
        return Match.between(sure, most, self.unknown, self.line)

    @classmethod
    def either(cls, matches: Sequence[Match], line: int) -> Match:
        """The packets of any of these."""
        sure = frozenset[int]().union(*(match.sure for match in matches))
        most = frozenset[int]().union(*(match.most for match in matches))
        return cls.between(sure, most, [said for match in matches for said in match.unknown], line)

    @classmethod
    def every(cls, matches: Sequence[Match], line: int) -> Match:
        """The packets of all of these."""
        sure = ALL_CODEPOINTS.intersection(*(match.sure for match in matches))
        most = ALL_CODEPOINTS.intersection(*(match.most for match in matches))
        return cls.between(sure, most, [said for match in matches for said in match.unknown], line)

    @classmethod
    def between(
        cls, sure: frozenset[int], most: frozenset[int], unknown: Sequence[tuple[int, str]], line: int
    ) -> Match:
        """A match that takes `sure` at least and `most` at most, which depends on other conditions."""
        if sure == ALL_CODEPOINTS:
            return cls(None, (), line)
        if sure == most:
            return cls(sure, (), line)
        return cls(sure or None, tuple(dict.fromkeys(unknown)), line, most)


@dataclass(frozen=True, slots=True)
class Block:
    """An AQM or scheduler that perhop has with the same keys: its name and keys as text of a scenario."""

    role: Literal["aqm", "scheduler"]
    name: str
    keys: tuple[tuple[str, str, int], ...] = ()
    """Key, value in TOML, line."""
    line: int = 0


@dataclass(slots=True)
class PortQueue:
    """A class of a port with its queue."""

    name: str
    line: int
    match: Match = field(default_factory=Match)
    limit: Quantity | None = None
    curves: list[Drop] = field(default_factory=list)
    limits: list[tuple[Selector, Quantity]] = field(default_factory=list)
    """Limits of the queue for some packets."""
    colors_assumed: bool = False
    """Whether the colors of curves are ours, because nothing says which packets they are for."""
    adaptive: bool = False
    """Whether max_p adapts itself (Floyd, Gummadi & Shenker 2001)."""
    average: Average | None = None
    ecn: Ecn = Ecn.OFF
    ecn_line: int = 0
    head_drop: bool = False
    level: int | None = None
    """The level of strict priority, 0 first; None: the queue shares what strict queues leave."""
    level_line: int = 0
    in_profile: Rate | None = None
    """The rate up to which a strict queue goes first; above it others do."""
    guarantee: Rate | None = None
    share: Rate | None = None
    """The share of what guarantees leave."""
    ceiling: Rate | None = None
    ceiling_burst: Quantity | None = None
    within: list[PortQueue] = field(default_factory=list)
    """The queues of a policy within this class, which share what it has."""
    meters: list[PortMeter] = field(default_factory=list)
    """Policers, which act always."""
    cap: PortMeter | None = None
    """The policer of a strict priority queue, which acts in congestion."""
    block: Block | None = None
    spacing_known: bool = False
    """Whether the platform is known to have 1 to 1/p packets between two drops, each number as likely."""
    mean_packet: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Curves:
    """The long-run rates of a class of hfsc in bit/s: its guarantee, and its share of the class around it."""

    real_time: float
    link_share: float


@dataclass(slots=True)
class TreeClass:
    """A class of a hierarchical token bucket: with the name of its queue, or with classes within it."""

    name: str
    line: int
    rate: Rate
    ceil: Rate
    burst: Quantity | None = None
    cburst: Quantity | None = None
    prio: tuple[int, int] | None = None
    """The priority with its line."""
    quantum: Quantity | None = None
    queue: str = ""
    classes: list[TreeClass] = field(default_factory=list)
    curves: Curves | None = None
    """The service curves of a class of hfsc."""


@dataclass(frozen=True, slots=True)
class Jitter:
    """A random delay of each packet beside that of the link, in seconds."""

    distribution: Literal["uniform", "normal"]
    mean: float
    most: float
    line: int
    text: str
    sd: float | None = None
    """The standard deviation of `normal`."""
    reorder: bool = True
    """Whether packets overtake one another by it."""


@dataclass(slots=True)
class Port:
    """An interface with its queues, in the order in which classes are tried; the last takes all others."""

    name: str
    line: int
    direction: Literal["output", "input"] = "output"
    attached: bool = True
    """Whether an interface has it: a policy or profile that none has is a port, too."""
    queues: list[PortQueue] = field(default_factory=list)
    rate: Rate | None = None
    """The rate of the link, as far as the configuration says it."""
    delay: Quantity | None = None
    """The delay of the link, where the configuration emulates one."""
    jitter: Jitter | None = None
    """The random delay of the link, beside `delay`."""
    loss: tuple[float, int, str] | None = None
    """The link's loss probability, with its line and text."""
    shaper: Rate | None = None
    shaper_burst: Quantity | None = None
    sharing: Literal["wfq", "drr"] = "wfq"
    tree: list[TreeClass] = field(default_factory=list)
    """Root classes of a hierarchical token bucket, which decides among the queues; empty without one."""
    quantum_divisor: tuple[int, int] | None = None
    """`r2q` of the tree, with its line."""
    meters: list[tuple[Match, str, PortMeter]] = field(default_factory=list)
    """Policers that belong to no queue."""
    default_name: str = "default"
    lines: set[int] = field(default_factory=set)
    """All lines that the port was read from."""
    shared: list[frozenset[int]] = field(default_factory=list)
    """More lines, in sets that many ports have in common."""
    findings: list[Finding] = field(default_factory=list)
    """Findings about this port only."""

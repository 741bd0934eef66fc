"""One flow of each preset of today, alone on a link: what it uses, and why where that is below 90 %.

A cause is not guessed. The measured shares of time say what limited the flow; that is exchanged, and the use
that the flow then has is kept beside it. Where one exchange is not enough, the next is made on top of it.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars.selectors as cs

import perhop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RATES: Mapping[str, float] = {"100 kbit/s": 1e5, "10 Mbit/s": 1e7, "1 Gbit/s": 1e9, "10 Gbit/s": 1e10}
ROUND_TRIPS = (1, 10, 100, 300)
"""In milliseconds, without queues."""
ENOUGH = 0.9
"""A flow that uses less of the link has its cause in a sentence."""
PACKET_BITS = 12_000
RANDOM = ("bbr", "bbr3", "prague")
"""Presets with random numbers: the phases of BBR, the marks of DualPI2."""
SEEDS = 3
"""Runs of those; one of the others, whose runs are all alike."""
LONGER = 10
"""So many times as long is the ramp where time is exchanged."""

PRESETS: Mapping[str, str] = {
    "linux": 'tcp = "linux"',
    "bbr": 'tcp = "linux", congestion = "bbr"',
    "bbr3": 'tcp = "linux", congestion = "bbr3"',
    "prague": 'tcp = "linux", congestion = "prague"',
    "dctcp": 'tcp = "linux", congestion = "dctcp"',
    "ledbat": 'tcp = "linux", congestion = "ledbat"',
    "quic": 'tcp = "quic"',
}

ABOUT = """\
One flow alone on a link, no access links; packets of 1500 bytes. BBR, BBR v3 and Prague are means of
three seeds, with the least and the greatest use where they differ by a point; the runs of the others are
all alike. The queue is drop-tail with the bandwidth-delay product, at least 20 packets; for LEDBAT with
what the link sends in 200 ms, twice its target (RFC 6817), if that is more. Prague's is DualPI2 with its
defaults (RFC 9332), DCTCP's a step that marks, and drops none, above a seventh of the bandwidth-delay
product, at least 5 packets (Alizadeh et al. 2010, section 3.4). Measured after a ramp of 200 round
trips, at least 20 s, for a third of that, at least 20 s; at 100 kbit/s after 120 s for 120 s. Use is
that of the link, the queue the mean number and wait of packets, the round trip a mean. Shares of time
say what limited the flow: its receiver's window, the sender (its buffer), the congestion window (also
the pace that its control sets), recovery.

Below 90 % the cause is what was exchanged for more: **room** is a window and a send buffer of 1.5
bandwidth-delay products, **time** a ramp ten times as long, **queue** marks from a wait of a round trip
and of four packets on (Prague) or eight times the limit or threshold, **start** that room and a first window
of one bandwidth-delay product."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One flow on one link.

    Attributes:
        preset: Its name.
        rate: The link's, in bit/s.
        rtt_ms: The round trip without queues.
        more: What is exchanged in the transport.
        deeper: The queue, or the threshold above which it marks, as a multiple.
        longer: The ramp, as a multiple.
    """

    preset: str
    rate: float
    rtt_ms: float
    more: str = ""
    deeper: float = 1
    longer: float = 1

    @property
    def bdp(self) -> float:
        """Packets in a round trip."""
        return self.rate * self.rtt_ms / 1e3 / PACKET_BITS

    @property
    def times(self) -> tuple[float, float]:
        """The ramp, and how long is measured, in seconds."""
        if self.rate < 1e6:  # A queue of 20 packets is a wait of 2.4 s.
            return 120 * self.longer, 120
        ramp = max(20, 0.2 * self.rtt_ms)
        return ramp * self.longer, max(20, ramp / 3)

    def queue(self) -> str:
        """As a table of a scenario."""
        if self.preset == "prague":
            # RFC 9332's step begins at 0.8 ms and ends at 1.2 ms.
            step, target = 0.8 * self.deeper, max(15.0, 1.6 * self.deeper)
            more = f', step = "{step:.3f}ms", range = "{step / 2:.3f}ms", target = "{target:.3f}ms"'
            return f'{{ scheduler = "dualpi2"{"" if self.deeper == 1 else more} }}'
        limit = max(20.0, self.bdp)
        if self.preset == "dctcp":
            step = max(5, round(self.deeper * self.bdp / 7))
            limit = max(limit, 4 * step)
            marks = f'thresholds = "{step}/{step + 1}/1", weight = 1, wait = false, ecn = "mark-only"'
            return f'{{ aqm = "red", {marks}, limit = "{limit:.0f}p" }}'
        if self.preset == "ledbat":
            limit = max(limit, self.rate * 0.2 / PACKET_BITS)
        return f'{{ aqm = "drop-tail", limit = "{self.deeper * limit:.0f}p" }}'

    def scenario(self) -> str:
        """As text."""
        ramp, measured = self.times
        ecn = {"prague": 'ecn = "l4s"', "dctcp": 'ecn = "accurate"'}.get(self.preset, "")
        return f"""
            duration = "{ramp + measured:.0f}s"
            warmup = "{ramp:.0f}s"
            [links.link]
            from = "a"
            to = "b"
            rate = "{self.rate:.0f}bps"
            delay = "{self.rtt_ms / 2}ms"
            queue = {self.queue()}
            [[flows]]
            name = "flow"
            from = "a"
            to = "b"
            transport = {{ {PRESETS[self.preset]}{self.more} }}
            {ecn}
            """


SHARES = ("receiver_limited", "sender_limited", "congestion_limited", "recovering", "idle")


def _scaled(value: float | None, scale: float = 1.0) -> float | None:
    return None if value is None else round(float(value) * scale, 4)


@dataclass(frozen=True, slots=True)
class Use:
    """What the runs of a setting show: means, and the least and the greatest use."""

    use: float
    least_use: float
    most_use: float
    queue_packets: float
    queue_ms: float
    rtt_ms_mean: float | None
    shares: Sequence[float]
    receiver_window: float | None
    send_buffer: float | None
    losses: float
    timeouts: float

    @classmethod
    def of(cls, setting: Setting) -> Use:
        """Measures it."""
        with warnings.catch_warnings():  # A target that the limit cannot reach, where the queue is exchanged.
            warnings.simplefilter("ignore", perhop.PerhopWarning)
            result = perhop.run(setting.scenario(), runs=SEEDS if setting.preset in RANDOM else 1, jobs=1)
        flow, link = (
            frame.select(cs.numeric().mean()).row(0, named=True) for frame in (result.flows, result.links)
        )
        uses = [round(float(use), 4) for use in result.links["utilization"]]
        return cls(
            use=round(float(link["utilization"]), 4),
            least_use=min(uses),
            most_use=max(uses),
            queue_packets=round(float(link["mean_queue_packets"]), 2),
            queue_ms=round(float(link["mean_queue_packets"]) * PACKET_BITS / setting.rate * 1e3, 3),
            rtt_ms_mean=_scaled(flow["mean_rtt_s"], 1e3),
            shares=[round(float(flow[name]), 3) for name in SHARES],
            receiver_window=_scaled(flow["receiver_window_bytes"]),
            send_buffer=_scaled(flow["send_buffer_bytes"]),
            losses=round(float(link["loss"] or 0), 6),
            timeouts=round(float(flow["timeouts"]), 1),
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the table, and the exchanges that show its cause."""

    setting: Setting
    found: Use
    exchanged: list[tuple[str, Use]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As docs/project/validity.json keeps it."""
        return {
            "preset": self.setting.preset,
            "rate": self.setting.rate,
            "rtt_ms": self.setting.rtt_ms,
            **asdict(self.found),
            "exchanged": [{"what": what, **asdict(use)} for what, use in self.exchanged],
        }


def of_buffer(setting: Setting, found: Use) -> float:
    """The share of the link that a full send buffer in each round trip is."""
    return (found.send_buffer or float("inf")) * 8 / (setting.rate * setting.rtt_ms / 1e3)


def exchange(setting: Setting, found: Use) -> Iterator[tuple[str, Setting]]:
    """What to exchange, one thing after the other, each beside the room for windows if that was exchanged."""
    if found.shares[0] + found.shares[1] >= 0.05 or of_buffer(setting, found) < ENOUGH:
        room = f"{max(1.5 * setting.bdp, 100):.0f}p"
        setting = replace(setting, more=f', window = "{room}", send-buffer = "{room}"')
        yield "room", setting
    # The window grows by a segment a round trip: longer is of no use where that is too little.
    if LONGER * setting.times[0] / setting.rtt_ms * 1e3 > 0.3 * setting.bdp:
        yield "time", replace(setting, longer=LONGER)
    if setting.preset == "ledbat":
        room = f"{max(1.5 * setting.bdp, 100):.0f}p"
        sizes = f', window = "{room}", send-buffer = "{room}", window-tuning = "none"'
        more = f'{sizes}, initial-window = "{setting.bdp:.0f}p"'
        yield "start", replace(setting, more=more)
        return
    deeper = 8.0
    if setting.preset == "prague":  # A step of a round trip, and of four packets.
        deeper = max(deeper, setting.rtt_ms / 0.8, 4e3 * PACKET_BITS / setting.rate / 0.8)
    yield "queue", replace(setting, deeper=deeper)


def measure(setting: Setting) -> Cell:
    """One cell."""
    found = Use.of(setting)
    cell = Cell(setting, found)
    if found.use >= ENOUGH:
        return cell
    for what, changed in exchange(setting, found):
        use = Use.of(changed)
        cell.exchanged.append((what, use))
        if use.use >= ENOUGH:
            break
    return cell


def settings() -> list[Setting]:
    """All cells."""
    return [
        Setting(preset, rate, rtt) for preset in PRESETS for rate in RATES.values() for rtt in ROUND_TRIPS
    ]


def all_of_the_presets() -> list[Cell]:
    """The table: two cells at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(measure, settings()))


def limited(shares: Sequence[float]) -> str:
    """What limited a flow, the largest share first."""
    names = ("receiver's window", "sender", "congestion window", "recovery", "idle")
    found = sorted(zip(shares, names, strict=True), reverse=True)
    return ", ".join(f"{name} {100 * share:.0f} %" for share, name in found if share >= 0.01)


def cause(cell: Mapping[str, Any]) -> str:
    """Why a flow uses less than 90 % of its link: a sentence for each exchange that mattered.

    That is one after which the flow uses enough, or a point more than with any seed before.
    """
    said, most = [], cell["most_use"]
    for one in cell["exchanged"]:
        if one["use"] >= min(ENOUGH, most + 0.01):
            most = one["most_use"]
            said.append(f"{_why(one['what'], cell)} ({one['what']}: {100 * one['use']:.0f} %)")
    return "; ".join(said) + "." if said else "Not found."


def _why(what: str, cell: Mapping[str, Any]) -> str:
    setting = Setting(cell["preset"], cell["rate"], cell["rtt_ms"])
    growth = f"the window needs {setting.bdp:.0f} round trips to fill the link, growing by a segment in each"
    if what == "room":
        is_quic = setting.preset == "quic"
        name = "a stream's window" if is_quic else "the send buffer (`tcp_wmem`)"
        size = cell["receiver_window" if is_quic else "send_buffer"]
        return (
            f"{name} of {size / 1e6:.1f} MB in {setting.rtt_ms:g} ms is {rate(size * 8e3 / setting.rtt_ms)}"
        )
    if what == "time":
        return "after the ramp the window still grows, by a segment a round trip"
    if what == "start":
        return f"without slow start (RFC 6817, section 2.4.2) {growth}"
    if setting.rate < 1e6:
        return "a packet takes 120 ms, and DualPI2 marks what waits 1 ms and drops by a target of 15 ms"
    return f"the first mark ends slow start early, and from there {growth}"


def rate(bps: float) -> str:
    """A rate with its unit."""
    return f"{bps / 1e9:.3g} Gbit/s" if bps >= 1e9 else f"{bps / 1e6:.3g} Mbit/s"


def use_of(cell: Mapping[str, Any]) -> str:
    """The use of the link, with that of the least and of the greatest seed where these differ by a point."""
    least, most = cell["least_use"], cell["most_use"]
    seeds = f" ({100 * least:.1f} to {100 * most:.1f})" if most - least >= 0.01 else ""
    return f"{100 * cell['use']:.1f} %{seeds}"


def rows(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The table as the page shows it."""
    names = {value: name for name, value in RATES.items()}
    return [
        {
            "preset": cell["preset"],
            "rate": names[cell["rate"]],
            "rtt": f"{cell['rtt_ms']:g} ms",
            "use": use_of(cell),
            "queue": f"{cell['queue_packets']:.3g} p, {cell['queue_ms']:.3g} ms",
            "round_trip": "" if cell["rtt_ms_mean"] is None else f"{cell['rtt_ms_mean']:.4g} ms",
            "limited": limited(cell["shares"]),
            "cause": "" if cell["use"] >= ENOUGH else cause(cell),
        }
        for cell in cells
    ]

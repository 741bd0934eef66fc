"""Today's AQMs and congestion controls in ns-3 (`ns3/dumbbell.cc`) and in perhop: the same bottleneck.

Both programs get the start time of each flow. Neither can be given the other's random numbers: agreement is
statistical, over seeds. `README.md` says what is set so that both do the same, what differs, and why.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benches.peers.ns3 import compile_with_ns3
from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = Path(__file__).parent / "ns3" / "dumbbell.cc"
MARGIN = 0.05
"""What counts as no difference, as a part of ns-3's mean; see `margin`."""
NEGLIGIBLE = 0.01
"""Percent of packets: where ns-3 marks or drops fewer, the ratio of the two programs says nothing."""

HEADER_BYTES = 40
PACKET_BYTES = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One queue in both programs.

    Args:
        disc: ns-3's queue discipline.
        attributes: Its attributes.
        perhop: The queue in perhop's format.
    """

    disc: str
    attributes: Mapping[str, object]
    perhop: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One congestion control in both programs.

    Args:
        socket: ns-3's type.
        defaults: Further attributes of ns-3.
        perhop: Keys of perhop's transport.
    """

    socket: str
    defaults: Mapping[str, object] = field(default_factory=dict)
    perhop: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Flows over one bottleneck; rates in bit/s, times in seconds."""

    queue: Queue
    control: Control
    ecn: bool = False
    flows: int = 4
    rate: float = 10e6
    delay: float = 0.02
    duration: int = 40
    warmup: int = 10

    def starts(self, seed: int) -> list[float]:
        """When each flow starts: the same in both programs."""
        rng = random.Random(seed)  # noqa: S311
        return [round(rng.random(), 6) for _ in range(self.flows)]


def compiled(folder: Path) -> Path:
    """Where the program lies in a folder."""
    return folder / "dumbbell"


def build(folder: Path) -> str | None:
    """Compile the program into a folder; the reason where that cannot be done here, or None."""
    return compile_with_ns3(SOURCE, compiled(folder))


TCP: Mapping[str, object] = {
    "TcpSocket::SegmentSize": PACKET_BYTES - HEADER_BYTES,
    "TcpSocket::InitialCwnd": 10,
    "TcpSocket::DelAckCount": 1,
    "TcpSocket::SndBufSize": 15_000_000,
    "TcpSocket::RcvBufSize": 15_000_000,
    "TcpSocketBase::MinRto": "200ms",
    "TcpSocketBase::Timestamp": "false",
}
"""ns-3's attributes beyond its defaults: SACK, limited transmit and PRR are on by default."""
TRANSPORT: Mapping[str, Any] = {
    "tcp": "newreno",
    "packet": f"{PACKET_BYTES}B",
    "ack": f"{HEADER_BYTES}B",
    "window": "10000p",
    "initial-window": "10p",
    "handshake": True,
    "limited-transmit": True,
    "sack": True,
    "prr": True,
    "tick": "1ms",
    "min-rto": "200ms",
    "initial-rto": "1s",
}
"""perhop's sender and receiver with the settings of ns-3's."""


def arguments(setting: Setting, seed: int) -> list[str]:
    """The program's command line."""
    attributes = dict(setting.queue.attributes)
    if setting.queue.disc != "FifoQueueDisc":
        attributes["UseEcn"] = str(setting.ecn).lower()
    if setting.queue.disc == "RedQueueDisc":
        attributes["LinkBandwidth"] = f"{round(setting.rate)}bps"
    defaults = {
        **TCP,
        **setting.control.defaults,
        "TcpL4Protocol::SocketType": setting.control.socket,
        "TcpSocketBase::UseEcn": "On" if setting.ecn else "Off",
    }
    values = {
        "rate": setting.rate,
        "delay": setting.delay,
        "starts": ",".join(f"{start:.6f}" for start in setting.starts(seed)),
        "disc": f"ns3::{setting.queue.disc}[{'|'.join(f'{k}={v}' for k, v in attributes.items())}]",
        "warmup": setting.warmup,
        "duration": setting.duration,
        "seed": seed,
    }
    return [
        *(f"--{key}={value}" for key, value in values.items()),
        *(f"--ns3::{key}={value}" for key, value in defaults.items()),
    ]


def perhop_scenario(setting: Setting, seed: int) -> dict[str, Any]:
    """The setting in perhop's scenario format."""
    flows = [
        {
            "name": f"flow {index}",
            "from": "edge",
            "to": "core",
            "access": {"rate": "100Mbps", "delay": "1ms"},
            "start": f"{round(start * 1e6)}us",
            "transport": {**TRANSPORT, **setting.control.perhop},
            "ecn": "classic" if setting.ecn else "off",
        }
        for index, start in enumerate(setting.starts(seed))
    ]
    queue = dict(setting.queue.perhop)
    if queue.get("aqm") != "drop-tail":
        queue["ecn"] = setting.ecn
    return {
        "title": "One bottleneck, as ns-3 simulates it",
        "duration": f"{setting.duration}s",
        "warmup": f"{setting.warmup}s",
        "links": {
            "bottleneck": {
                "from": "edge",
                "to": "core",
                "rate": f"{round(setting.rate)}bps",
                "delay": f"{round(setting.delay * 1e6)}us",
                "queue": queue,
            }
        },
        "flows": flows,
    }


def ns3_run(folder: Path, setting: Setting, seed: int) -> dict[str, float]:
    """What ns-3 measures.

    Raises:
        process.RunError: ns-3 refused the setting or failed.
    """
    found = json.loads(process.run([str(compiled(folder)), *arguments(setting, seed)]).output)
    rates = np.array(found["bytes"]) * PACKET_BYTES / (PACKET_BYTES - HEADER_BYTES)
    return _quantities(
        rates * 8 / (setting.duration - setting.warmup),
        mean_s=found["mean_s"],
        p99_s=found["p99_s"],
        arrived=found["arrived"],
        dropped=sum(found["dropped"].values()),
        marked=sum(found["marked"].values()),
    )


def perhop_run(run: Mapping[str, Any]) -> dict[str, float]:
    """The quantities of a run of perhop."""
    link = run["links"][0]
    measured, delays = link["measured"], link["delay_s"]
    counts, edges = delays["counts"].sum(axis=1), delays["edges"]
    middles = (edges[:-1] + edges[1:]) / 2
    return _quantities(
        run["flows"]["throughput_bps"],
        mean_s=float((middles * counts).sum() / counts.sum()),
        p99_s=link["delay_p99_s"],
        arrived=int(measured["arrived"].sum()),
        dropped=sum(int(by.sum()) for by in measured["dropped"].values()),
        marked=sum(int(by.sum()) for by in measured["notified"].values()),
    )


def _quantities(
    rates: np.ndarray, *, mean_s: float, p99_s: float, arrived: int, dropped: int, marked: int
) -> dict[str, float]:
    return {
        "throughput of a flow, Mbit/s": float(rates.mean()) / 1e6,
        "Jain's index": float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())),
        "mean queueing delay, ms": 1e3 * mean_s,
        "P99 of queueing delay, ms": 1e3 * p99_s,
        "dropped, %": 100 * dropped / arrived,
        "marked, %": 100 * marked / arrived,
    }


def margin(setting: Setting, quantity: str, theirs: float) -> float:
    """What counts as no difference, as a part of ns-3's mean.

    Packets in a busy queue wait for whole packets, so a quantile of their waits is one of few values that lie
    a transmission time apart: two programs whose distributions are alike may give neighbours.
    """
    if not quantity.startswith("P99"):
        return MARGIN
    return max(MARGIN, 1e3 * 8 * PACKET_BYTES / setting.rate / theirs)


def is_negligible(quantity: str, theirs: Sequence[float]) -> bool:
    """A share of packets that says nothing: ns-3 has next to none."""
    return quantity.endswith("%") and sum(theirs) < NEGLIGIBLE * len(theirs)


# In ns-3 no packet is dropped while fewer than `MinBytes` stay behind, in perhop while no more than `mtu` do.
_CODEL = {"mtu": "1499B", "limit": "1000p"}
QUEUES = {
    "drop-tail": Queue(
        disc="FifoQueueDisc", attributes={"MaxSize": "100p"}, perhop={"aqm": "drop-tail", "limit": "100p"}
    ),
    "RED": Queue(
        disc="RedQueueDisc",
        attributes={
            "MinTh": 15,
            "MaxTh": 45,
            "LInterm": 10,
            "QW": 0.002,
            "MaxSize": "200p",
            "MeanPktSize": PACKET_BYTES,
            "Gentle": "false",
            "Wait": "true",
        },
        perhop={
            "aqm": "red",
            "thresholds": "15/45/0.1",
            "weight": 0.002,
            "limit": "200p",
            "mean-packet": f"{PACKET_BYTES}B",
            "spare-short-queue": True,
        },
    ),
    "ARED": Queue(
        disc="RedQueueDisc",
        attributes={
            "ARED": "true",
            "TargetDelay": "20ms",
            "LInterm": 10,
            "MaxSize": "200p",
            "MeanPktSize": PACKET_BYTES,
            "Gentle": "true",
            "Wait": "true",
        },
        perhop={
            "aqm": "red",
            "adaptive": True,
            "target-delay": "20ms",
            "gentle": True,
            "limit": "200p",
            "mean-packet": f"{PACKET_BYTES}B",
            "spare-short-queue": True,
        },
    ),
    "CoDel": Queue(disc="CoDelQueueDisc", attributes={"MaxSize": "1000p"}, perhop={"aqm": "codel", **_CODEL}),
    "PIE": Queue(
        disc="PieQueueDisc",
        attributes={
            "MaxSize": "1000p",
            "MeanPktSize": PACKET_BYTES,
            "MaxBurstAllowance": "150ms",
            "UseDerandomization": "true",
        },
        perhop={"aqm": "pie", "limit": "1000p", "mean-packet": f"{PACKET_BYTES}B"},
    ),
    "FQ-CoDel": Queue(
        disc="FqCoDelQueueDisc",
        attributes={"MaxSize": "10240p", "EnableSetAssociativeHash": "true"},
        perhop={
            "scheduler": "fq-codel",
            "law": "linux",
            "hash": "set-associative",
            "backlog": "queue",
            "quantum": "1500B",
            "mtu": "1499B",
        },
    ),
    "COBALT": Queue(
        disc="CobaltQueueDisc",
        attributes={"MaxSize": "1000p"},
        perhop={"aqm": "cobalt", "limit": "1000p"},
    ),
    "step": Queue(
        disc="RedQueueDisc",
        attributes={
            "MinTh": 20,
            "MaxTh": 21,
            "LInterm": 1,
            "QW": 1,
            "MaxSize": "1000p",
            "MeanPktSize": PACKET_BYTES,
            "Gentle": "true",
            "Wait": "false",
        },
        perhop={
            "aqm": "red",
            "thresholds": "20/21/1",
            "weight": 1,
            "gentle": True,
            "wait": False,
            "limit": "1000p",
            "mean-packet": f"{PACKET_BYTES}B",
            "spare-short-queue": True,
        },
    ),
}


def _with(name: str, attributes: Mapping[str, object], **perhop: object) -> Queue:
    """A queue with other parameters."""
    queue = QUEUES[name]
    return replace(queue, attributes={**queue.attributes, **attributes}, perhop={**queue.perhop, **perhop})


_CUBIC = {"TcpCubic::HyStart": "false"}
CONTROLS = {
    "NewReno": Control(socket="ns3::TcpNewReno", perhop={"congestion": "reno"}),
    "CUBIC": Control(socket="ns3::TcpCubic", defaults=_CUBIC, perhop={"congestion": "cubic"}),
    "DCTCP": Control(socket="ns3::TcpDctcp", perhop={"congestion": "dctcp"}),
    "BBR": Control(socket="ns3::TcpBbr", perhop={"congestion": "bbr"}),
}
NEWRENO, CUBIC, DCTCP, BBR = CONTROLS.values()
# ns-3's with what differs taken out: `ns3/dumbbell.cc` has them.
OF_THE_WINDOW = replace(NEWRENO, socket="TcpNewRenoOfWindow")
FRIENDLY = replace(CUBIC, socket="TcpCubicFriendly")
_AT_ONCE = {"TcpL4Protocol::RecoveryType": "ns3::TcpClassicRecovery"}
NEWRENO_AT_ONCE = replace(OF_THE_WINDOW, defaults=_AT_ONCE)
DCTCP_AT_ONCE = replace(DCTCP, socket="TcpDctcpGrowing", defaults=_AT_ONCE)
HALVES = ", which halves its window"
AS_RENO = ", at least as Reno"
REDUCES = ", which reduces at once"

ROOMY = Queue(
    disc="FifoQueueDisc", attributes={"MaxSize": "1000p"}, perhop={"aqm": "drop-tail", "limit": "1000p"}
)
PIE_BY_CHANCE = _with("PIE", {"UseDerandomization": "false", "UseCapDropAdjustment": "false"}, law="basic")
FAST: Mapping[str, Any] = {"rate": 20e6, "delay": 0.01, "duration": 30}
"""For FQ-CoDel: on 10 Mbit/s a packet of each of four flows takes as long as CoDel's target."""


def _settings() -> dict[str, Setting]:
    found = {}
    for name in ("drop-tail", "RED", "ARED", "CoDel", "PIE", "COBALT", "FQ-CoDel"):
        queue, more = QUEUES[name], FAST if name == "FQ-CoDel" else {}
        if name in {"drop-tail", "RED", "ARED", "CoDel"}:
            found[f"{name}, NewReno"] = Setting(queue=queue, control=NEWRENO)
        found[f"{name}, NewReno{HALVES}"] = Setting(queue=queue, control=OF_THE_WINDOW, **more)
        if name != "drop-tail":
            found[f"{name}, NewReno, ECN"] = Setting(queue=queue, control=NEWRENO, ecn=True, **more)
        if name in {"ARED", "COBALT"}:
            at_once = Setting(queue=queue, control=NEWRENO_AT_ONCE, ecn=True)
            found[f"{name}, NewReno, ECN{HALVES} at once"] = at_once
        if name == "RED":
            found[f"{name}, CUBIC"] = Setting(queue=queue, control=CUBIC)
        if name not in {"drop-tail", "ARED"}:
            found[f"{name}, CUBIC{AS_RENO}"] = Setting(queue=queue, control=FRIENDLY, **more)
    found["PIE by chance, NewReno, ECN"] = Setting(queue=PIE_BY_CHANCE, control=NEWRENO, ecn=True)
    found["step at 20 packets, DCTCP"] = Setting(queue=QUEUES["step"], control=DCTCP, ecn=True)
    found[f"step at 20 packets, DCTCP{REDUCES}"] = Setting(
        queue=QUEUES["step"], control=DCTCP_AT_ONCE, ecn=True
    )
    found["drop-tail without losses, BBR, one flow"] = Setting(queue=ROOMY, control=BBR, flows=1)
    found["drop-tail without losses, BBR"] = Setting(queue=ROOMY, control=BBR)
    found["CoDel, BBR"] = Setting(queue=QUEUES["CoDel"], control=BBR)
    return found


SETTINGS: Mapping[str, Setting] = _settings()

_PIPE = "NewReno halves the pipe"
_MARKS = "NewReno halves the pipe, by PRR"
_REGION = "CUBIC without Reno's region"
_ACCUMULATED = "PIE with ECN"
_PRR = "reductions by PRR"
_LOSSES = "BBR and losses"
DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "drop-tail, NewReno": {"dropped, %": _PIPE},
    "RED, NewReno": {"dropped, %": _PIPE},
    "RED, CUBIC": {"mean queueing delay, ms": _REGION, "dropped, %": _REGION},
    "ARED, NewReno": {"dropped, %": _PIPE},
    "ARED, NewReno, ECN": {"marked, %": _MARKS},
    "CoDel, NewReno": {"dropped, %": _PIPE},
    "PIE, NewReno, ECN": dict.fromkeys(
        (
            "throughput of a flow, Mbit/s",
            "mean queueing delay, ms",
            "P99 of queueing delay, ms",
            "marked, %",
        ),
        _ACCUMULATED,
    ),
    "COBALT, NewReno, ECN": {"mean queueing delay, ms": _MARKS, "P99 of queueing delay, ms": _MARKS},
    "step at 20 packets, DCTCP": {"mean queueing delay, ms": _PRR, "marked, %": _PRR},
    "CoDel, BBR": dict.fromkeys(
        (
            "throughput of a flow, Mbit/s",
            "mean queueing delay, ms",
            "P99 of queueing delay, ms",
            "dropped, %",
        ),
        _LOSSES,
    ),
}
"""Quantities apart by more than the margin, with intervals that do not overlap, and why (`README.md`)."""

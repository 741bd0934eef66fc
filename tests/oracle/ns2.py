"""ns-2.35 as an independent second opinion on Assured Service: its own DiffServ module, its own TCP.

`run` starts the `ns` program (Debian's package `ns2`) on `ns2/assured_service.tcl` and returns what each flow
got and what the bottleneck dropped. `README.md` beside this file lists the facts about ns-2 that a comparison
must know. Run as a program, this module measures the reference settings and prints them beside recorded
figures:

    python tests/oracle/ns2.py [--seeds 6] [--jobs 2]

All rates are IP bytes on the wire, data packets only; a packet of `Ns2Setting.packet_bytes` bytes is an ns-2
packet of 40 bytes less (`packetSize_`) plus the 40 bytes of header that ns-2 adds.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT = Path(__file__).parent / "ns2" / "assured_service.tcl"


class Ns2Error(RuntimeError):
    """`ns` refused the setting or failed while simulating."""


@dataclass(frozen=True, slots=True)
class Group:
    """Flows that are alike.

    Args:
        count: How many flows.
        profile_bps: Contracted rate of each in bit/s; 0 is best effort, every packet OUT.
        access_delay_s: One-way delay of each access link in seconds; None takes the setting's.
    """

    count: int
    profile_bps: float
    access_delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """One set of RED parameters: whole packets, and the drop probability at `max`."""

    min: int
    max: int
    max_p: float

    def __str__(self) -> str:
        return f"{self.min}/{self.max}/{self.max_p:g}"


TABLE_1_GROUPS = (
    *(Group(4, rate) for rate in (2e6, 1e6, 0.5e6, 0.2e6, 0.1e6)),
    Group(20, 0.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ns2Setting:
    """One experiment on the dumbbell; the defaults are RIO on the RI+O paper's Table 1 setting.

    Rates in bit/s, times in seconds, sizes in bytes on the wire, queues in packets. The TCP defaults are
    those of ns-2 except `window_packets`, whose default there (20) would cap every flow. The propagation
    round trip is 2 (delay_s + 2 access_delay_s).

    Args:
        groups: The flows, in the order in which results list them.
        rate_bps: Bottleneck rate.
        delay_s: Bottleneck one-way delay.
        access_rate_bps: Rate of every host's own link, at both ends. Infinite: the hosts are at the routers,
            which ns-2 cannot do.
        access_delay_s: One-way delay of these links.
        policer: The marker: a token bucket, or the time sliding window two-color marker (probabilistic).
        bucket_bytes: Depth of the token bucket, full at the start.
        tsw_window_s: Window of the TSW rate estimator.
        aqm: "dsRED", ns-2's DiffServ module, or "RED", its `Queue/RED`, which is blind to color.
        red_wait: wait_ of "RED", whose gentle_ is off; dsRED has neither.
        in_thresholds: Tested against the average of IN packets; "RED" has no use for it.
        total_thresholds: Tested against the average of all packets (coupled, and "RED") or of OUT packets
            (decoupled).
        weight: The averages' w_q.
        limit_packets: Waiting packets of all classes, the one in transmission not counted.
        coupled: RIO-C; otherwise RIO-D.
        packet_bytes: Data packet.
        tcp: Sender variant; Sack1 comes with the sink that acknowledges selectively.
        window_packets: Receiver's window, window_; also the initial ssthresh.
        initial_window: windowInit_.
        handshake: syn_: a 40-byte SYN takes sequence number 0 and passes marker and queue.
        delay_growth: delay_growth_: the initial window opens only when sequence number 0 is acknowledged.
        limited_transmit: singledup_: a new packet on each of the first two duplicate acknowledgments.
        tick_s: tcpTick_, the RTT clock's grain.
        min_rto_s: minrto_.
        initial_rto_s: rtxcur_init_.
        max_rto_s: maxrto_.
        send_jitter_s: overhead_, a random delay before sending.
        impatient: newreno_changes1_ of NewReno: only the first partial acknowledgment restarts the timer.
        deflates: partial_window_deflation_ of NewReno: a partial acknowledgment takes what it acknowledges
            out of the window; otherwise the window goes back to ssthresh.
        old_rttvar: Not updated_rttvar_: the variance in the integers of before 2006.
        delayed_ack_s: 0 acknowledges every packet; otherwise the delay of Agent/TCPSink/DelAck.
        tcp_options: Further options by ns-2's own names.
        duration_s: Simulated time.
        warmup_s: Rates count from here on (drop counts and packet counts do not).
        start_s: Flows start uniformly in this interval, drawn by ns-2 from the seed.
        starts_s: Explicit start times, one for each flow, in place of the draw.
        sample_s: Reads the bottleneck's averages at this interval; 0 never.
        headers: "lean" leaves out packet headers that nobody uses (same results, faster); "all" is the
            default of ns-2.
        scheduler: ns-2's event queue; "Calendar" is its default. Results do not depend on it.
    """

    groups: tuple[Group, ...] = TABLE_1_GROUPS
    rate_bps: float = 20e6
    delay_s: float = 0.048
    access_rate_bps: float = 100e6
    access_delay_s: float = 0.001
    policer: Literal["TokenBucket", "TSW2CM"] = "TokenBucket"
    bucket_bytes: float = 40_000
    tsw_window_s: float = 1.0
    aqm: Literal["dsRED", "RED"] = "dsRED"
    red_wait: bool = True
    in_thresholds: Thresholds = Thresholds(390, 694, 0.02)
    total_thresholds: Thresholds = Thresholds(347, 694, 0.05)
    weight: float = 0.002
    limit_packets: int = 1000
    coupled: bool = True
    packet_bytes: int = 576
    tcp: Literal["Newreno", "Reno", "Sack1"] = "Newreno"
    window_packets: int = 1000
    initial_window: int = 2
    handshake: bool = True
    delay_growth: bool = True
    limited_transmit: bool = True
    tick_s: float = 0.01
    min_rto_s: float = 0.2
    initial_rto_s: float = 3.0
    max_rto_s: float = 60.0
    send_jitter_s: float = 0.0
    impatient: bool = True
    deflates: bool = True
    old_rttvar: bool = False
    delayed_ack_s: float = 0.0
    tcp_options: Mapping[str, str] = field(default_factory=dict)
    duration_s: float = 100.0
    warmup_s: float = 0.0
    start_s: tuple[float, float] = (0.0, 1.0)
    starts_s: tuple[float, ...] | None = None
    sample_s: float = 0.0
    headers: Literal["lean", "all"] = "lean"
    scheduler: Literal["Calendar", "Splay", "Heap", "Map", "List"] = "Calendar"

    def newreno_options(self) -> dict[str, int]:
        """Options that only NewReno has."""
        if self.tcp != "Newreno":
            return {}
        return {
            "newreno_changes1_": int(self.impatient),
            "partial_window_deflation_": int(self.deflates),
        }

    def arguments(self) -> list[str]:
        """The script's command line, without the seed."""
        values: dict[str, object] = {
            "rate": self.rate_bps,
            "delay": self.delay_s,
            "access_rate": self.access_rate_bps,
            "access_delay": ",".join(
                repr(self.access_delay_s if group.access_delay_s is None else group.access_delay_s)
                for group in self.groups
            ),
            "profiles": ",".join(f"{group.count}*{group.profile_bps!r}" for group in self.groups),
            "policer": self.policer,
            "bucket": self.bucket_bytes,
            "tsw_window": self.tsw_window_s,
            "aqm": self.aqm,
            "wait": int(self.red_wait),
            "in": self.in_thresholds,
            "total": self.total_thresholds,
            "weight": self.weight,
            "limit": self.limit_packets,
            "mode": "RIO-C" if self.coupled else "RIO-D",
            "packet": self.packet_bytes,
            "tcp": self.tcp,
            "delayed_ack": self.delayed_ack_s,
            "duration": self.duration_s,
            "warmup": self.warmup_s,
            "start": f"{self.start_s[0]!r}/{self.start_s[1]!r}",
            "sample": self.sample_s,
            "headers": self.headers,
            "scheduler": self.scheduler,
            "window_": self.window_packets,
            "windowInit_": self.initial_window,
            "syn_": int(self.handshake),
            "delay_growth_": int(self.delay_growth),
            "singledup_": int(self.limited_transmit),
            "tcpTick_": self.tick_s,
            "minrto_": self.min_rto_s,
            "rtxcur_init_": self.initial_rto_s,
            "maxrto_": self.max_rto_s,
            "overhead_": self.send_jitter_s,
            **self.newreno_options(),
            **({"updated_rttvar_": 0} if self.old_rttvar else {}),
            **self.tcp_options,
        }
        if self.starts_s is not None:
            values["starts"] = ",".join(repr(start) for start in self.starts_s)
        return [f"{key}={value}" for key, value in values.items()]


@dataclass(frozen=True, slots=True)
class Flow:
    """What one flow got. Byte counts start after the warm-up and are IP bytes on the wire.

    `sent`, `retransmitted`, `timeouts` and `cuts` (all window reductions) cover the whole run; the SYN counts
    as sent, and a packet that go-back-N repeats counts as retransmitted whether or not it was lost.
    """

    profile_bps: float
    start_s: float
    acked_packets: int
    acked_bytes: int
    delivered_bytes: int
    sent: int
    retransmitted: int
    timeouts: int
    cuts: int


@dataclass(frozen=True, slots=True)
class CodePoint:
    """Packets of one code point at the bottleneck over the whole run.

    `forced` counts drops with the average above max together with drops by a full queue: ns-2 does not tell
    them apart. Of "RED" every packet counts as OUT and every drop as early.
    """

    arrived: int
    early: int
    forced: int


@dataclass(frozen=True, slots=True)
class Averages:
    """Means over samples of the bottleneck's averages and of the packets waiting, and the most waiting."""

    avg_in: float
    avg_total: float
    waiting: float
    max_waiting: int


@dataclass(frozen=True, slots=True)
class Ns2Run:
    """One run of ns-2."""

    setting: Ns2Setting
    seed: int
    flows: tuple[Flow, ...]
    queue: Mapping[Literal["in", "out"], CodePoint]
    averages: Averages | None
    user_seconds: float

    @property
    def flow_mbps(self) -> list[float]:
        """Rate of each flow in Mbit/s: acknowledged packets times their wire size over the measured time."""
        seconds = self.setting.duration_s - self.setting.warmup_s
        return [flow.acked_bytes * 8 / seconds / 1e6 for flow in self.flows]

    @property
    def group_mbps(self) -> list[list[float]]:
        """`flow_mbps` by group, in the order of the setting."""
        rates = iter(self.flow_mbps)
        return [[next(rates) for _ in range(group.count)] for group in self.setting.groups]

    @property
    def class_mbps(self) -> list[float]:
        """Mean rate of each group's flows in Mbit/s."""
        return [statistics.fmean(rates) for rates in self.group_mbps]

    @property
    def total_mbps(self) -> float:
        """All flows together in Mbit/s."""
        return math.fsum(self.flow_mbps)

    @property
    def loss(self) -> float:
        """Share of the packets arriving at the bottleneck that it dropped."""
        arrived = sum(point.arrived for point in self.queue.values())
        return sum(point.early + point.forced for point in self.queue.values()) / arrived if arrived else 0.0

    @property
    def forced_share(self) -> float:
        """Share of forced drops among all drops."""
        dropped = sum(point.early + point.forced for point in self.queue.values())
        return sum(point.forced for point in self.queue.values()) / dropped if dropped else 0.0


@functools.cache
def available() -> str | None:
    """Why ns-2 cannot be used here, or None where it can."""
    program = shutil.which("ns")
    if program is None:
        return "the program `ns` is not installed (Debian: package ns2)"
    probe = "puts [Queue/dsRED/core info class]; exit"
    try:
        answer = subprocess.run(
            [program], input=probe, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"`{program}` does not run: {error}"
    if answer.stdout.strip() != "Class":
        return f"`{program}` is not ns-2, or lacks its DiffServ module"
    return None


def run(setting: Ns2Setting, seed: int) -> Ns2Run:
    """Simulates `setting` once.

    Args:
        setting: What to simulate.
        seed: Seed of ns-2's generator, at least 1.

    Raises:
        Ns2Error: `ns` is missing, refused the setting or failed; the message carries what it said.
    """
    if reason := available():
        raise Ns2Error(reason)
    try:
        ended = process.run(command(setting, seed))
    except process.RunError as error:
        raise Ns2Error(str(error)) from None
    return parse(ended.output, setting, seed, ended.user_seconds)


def run_seeds(setting: Ns2Setting, seeds: Sequence[int], jobs: int | None = None) -> list[Ns2Run]:
    """Runs every seed, `jobs` at a time (default: one for each processor), in the order of the seeds."""
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        return list(pool.map(functools.partial(run, setting), seeds))


def command(setting: Ns2Setting, seed: int) -> list[str]:
    """The program and its arguments for one run."""
    return ["ns", str(SCRIPT), f"seed={seed}", *setting.arguments()]


def parse(text: str, setting: Ns2Setting, seed: int, user_seconds: float) -> Ns2Run:
    """What the script printed, as a run.

    Raises:
        Ns2Error: It printed something else.
    """
    flows: list[Flow] = []
    queue: dict[Literal["in", "out"], CodePoint] = {}
    averages: Averages | None = None
    for line in text.splitlines():
        kind, *words = line.split()
        fields = dict(word.split("=", 1) for word in words)
        match kind:
            case "flow":
                flows.append(
                    Flow(
                        profile_bps=float(fields["profile_bps"]),
                        start_s=float(fields["start_s"]),
                        acked_packets=int(fields["acked_packets"]),
                        acked_bytes=int(fields["acked_bytes"]),
                        delivered_bytes=int(fields["delivered_bytes"]),
                        sent=int(fields["sent"]),
                        retransmitted=int(fields["retransmitted"]),
                        timeouts=int(fields["timeouts"]),
                        cuts=int(fields["cuts"]),
                    )
                )
            case "queue":
                name: Literal["in", "out"] = "in" if fields["code_point"] == "in" else "out"
                queue[name] = CodePoint(
                    arrived=int(fields["arrived"]), early=int(fields["early"]), forced=int(fields["forced"])
                )
            case "average":
                averages = Averages(
                    avg_in=float(fields["avg_in"]),
                    avg_total=float(fields["avg_total"]),
                    waiting=float(fields["waiting"]),
                    max_waiting=int(fields["max_waiting"]),
                )
            case _:
                raise Ns2Error(f"unexpected output of ns: `{line}`")
    if len(flows) != sum(group.count for group in setting.groups) or len(queue) != 2:
        raise Ns2Error(f"ns reported {len(flows)} flows and {len(queue)} code points: {text[-500:]!r}")
    return Ns2Run(setting, seed, tuple(flows), queue, averages, user_seconds)


TABLE_1 = Ns2Setting()

# NewReno of 1998 with its clock, as far as ns-2.35 still has the flags.
NS_1998 = Ns2Setting(
    handshake=False,
    delay_growth=False,
    initial_window=1,
    limited_transmit=False,
    tick_s=0.1,
    initial_rto_s=6.0,
    impatient=False,
    deflates=False,
    old_rttvar=True,
)

YEOM = Ns2Setting(
    groups=tuple(Group(2, rate) for rate in (0.0, 0.1e6, 0.5e6, 1e6, 2e6)),
    rate_bps=12e6,
    delay_s=0.018,
    policer="TSW2CM",
    in_thresholds=Thresholds(50, 100, 0.02),
    total_thresholds=Thresholds(20, 40, 0.5),
    limit_packets=200,
    packet_bytes=1000,
    tcp="Reno",
    window_packets=20,
    duration_s=30.0,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A setting with class means in Mbit/s recorded from an earlier, separate set of ns-2 runs."""

    title: str
    setting: Ns2Setting
    seeds: int
    recorded: tuple[float, ...]


REFERENCES = (
    Reference("RIO, Table 1 setting", TABLE_1, 6, (1.534, 0.979, 0.599, 0.380, 0.294, 0.232)),
    Reference(
        "RIO, 1500-byte packets",
        replace(TABLE_1, packet_bytes=1500),
        6,
        (1.012, 0.967, 0.667, 0.426, 0.373, 0.298),
    ),
    Reference(
        "RIO, window 20",
        replace(TABLE_1, window_packets=20),
        6,
        (0.504, 0.503, 0.504, 0.497, 0.496, 0.493),
    ),
    Reference("Yeom-Reddy, 12 Mbps", YEOM, 10, (0.523, 0.551, 0.804, 1.231, 1.979)),
    Reference("Yeom-Reddy, 8 Mbps", replace(YEOM, rate_bps=8e6), 10, (0.175, 0.272, 0.590, 1.020, 1.823)),
    Reference(
        "Yeom-Reddy, 12 Mbps, window 1000",
        replace(YEOM, window_packets=1000),
        10,
        (0.489, 0.473, 0.755, 1.211, 1.985),
    ),
    # The recording's window is not known; of 20, 64 and 1000 packets this one comes nearest.
    Reference(
        "Yeom-Reddy, 12 Mbps, SACK",
        replace(YEOM, tcp="Sack1", window_packets=64),
        10,
        (0.563, 0.567, 0.881, 1.318, 2.163),
    ),
)


def describe(reference: Reference, runs: Sequence[Ns2Run]) -> str:
    """Measured class means beside the recorded ones, then what the bottleneck did."""
    lines = [f"{reference.title} ({len(runs)} seeds), Mbit/s for each flow, mean and sd over the seeds"]
    lines.append("  profile   measured        recorded   difference")
    by_class = zip(*(run.class_mbps for run in runs), strict=True)
    for group, rates, recorded in zip(reference.setting.groups, by_class, reference.recorded, strict=True):
        mean = statistics.fmean(rates)
        sd = statistics.stdev(rates) if len(rates) > 1 else math.nan
        name = f"{group.profile_bps / 1e6:g}" if group.profile_bps else "none"
        difference = f"{(mean / recorded - 1) * 100:+.1f} %"
        lines.append(f"  {name:>7}   {mean:.3f} ± {sd:.3f}   {recorded:.3f}      {difference}")
    total = statistics.fmean(run.total_mbps for run in runs)
    lines.append(
        f"  total {total:.2f} Mbit/s ({total * 1e8 / reference.setting.rate_bps:.1f} % of the link),"
        f" loss {statistics.fmean(run.loss for run in runs) * 100:.2f} %,"
        f" forced {statistics.fmean(run.forced_share for run in runs) * 100:.0f} % of the drops,"
        f" IN drops {sum(run.queue['in'].early + run.queue['in'].forced for run in runs)}"
    )
    averages = [run.averages for run in runs if run.averages is not None]
    if averages:
        lines.append(
            f"  avg_in {statistics.fmean(a.avg_in for a in averages):.0f},"
            f" avg_total {statistics.fmean(a.avg_total for a in averages):.0f},"
            f" most waiting {max(a.max_waiting for a in averages)}"
            f" of {reference.setting.limit_packets} packets"
        )
    lines.append(f"  user CPU {statistics.median(run.user_seconds for run in runs):.2f} s a run")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the reference settings and prints them beside the recorded figures."""
    parser = argparse.ArgumentParser(description="ns-2's reference settings beside recorded figures")
    parser.add_argument("--seeds", type=int, help="runs of each setting (default: as many as were recorded)")
    parser.add_argument("--jobs", type=int, help="runs at a time (default: one for each processor)")
    options = parser.parse_args(arguments)
    if reason := available():
        sys.stderr.write(f"skipped: {reason}\n")
        return 0
    for reference in REFERENCES:
        seeds = range(1, (options.seeds or reference.seeds) + 1)
        runs = run_seeds(replace(reference.setting, sample_s=0.1), seeds, options.jobs)
        sys.stdout.write(describe(reference, runs) + "\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

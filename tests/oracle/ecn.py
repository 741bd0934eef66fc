"""TCP with ECN over RED in ns-2.35 (`ecn_`, `setbit_`) and in perhop: the same flows and bottleneck.

What is set so that both do the same:

- `Queue/RED` drops in place of marking where its probability is above `mark_p_` (0.1). The script turns
  that off (`use_mark_p_`): every early choice is a mark, and above max every packet is dropped, as in perhop.
- `Queue/RED` spares a queue of at most one packet; perhop has the rule as `spare-short-queue`.

What remains different (`tcp/tcp.cc`, `tcp/tcp-sink.cc`):

- ns-2 sends retransmissions ECN-capable, perhop does not (RFC 3168, section 6.1.5). With forty flows some
  7 % of the packets are lost and sent again: ns-2's queue marks some 7 % more packets, and its senders
  reduce some 10 % more often.
- Both senders halve cwnd and ssthresh at most once in a window of data, and do not open the window by an
  ACK with ECN-Echo. After a timeout ns-2 answers the next ECN-Echo at once; perhop waits until what was sent
  before the timeout is acknowledged.
- With a window of one packet ns-2 backs its timer off at each further ECN-Echo; perhop sends on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from tests.oracle.bottleneck import NEWRENO, Bottleneck, flow, random_starts, records

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT = Path(__file__).parent / "ns2" / "ecn.tcl"
MARGINS: Mapping[str, float] = {
    "throughput of a flow, Mbit/s": 0.05,
    "utilization, %": 0.02,
    "marked, %": 0.1,
    "dropped, %": 0.1,
    "reductions of a flow": 0.1,
}
"""What counts as no difference of each quantity, as a part of ns-2's mean."""
NEGLIGIBLE = 0.01
"""Percent of packets: where ns-2 marks or drops fewer, the ratio of the two programs says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Bottleneck):
    """Flows over one bottleneck.

    Args:
        flows: How many.
        tcp: Sender variant; Sack1 comes with the sink that acknowledges selectively.
        ecn: Flows are capable, and the queue marks.
    """

    flows: int = 10
    tcp: Literal["Newreno", "Sack1"] = "Newreno"
    ecn: bool = True
    thresholds: str = "15/45/0.1"
    limit: int = 200
    duration: int = 60
    warmup: int = 10

    def starts(self, seed: int) -> list[float]:
        """When each flow starts: the same in both programs."""
        return random_starts(seed, self.flows)

    def found(self, *, acked_packets: int, reductions: int, queue: Mapping[str, int]) -> dict[str, float]:
        """The quantities that are compared, from counts after the warm-up: of all flows, and of the queue."""
        seconds = self.duration - self.warmup
        return {
            "throughput of a flow, Mbit/s": acked_packets * 8e-3 / seconds / self.flows,
            "utilization, %": 100 * queue["bytes"] * 8 / seconds / self.rate,
            "marked, %": 100 * queue["marked"] / queue["arrived"],
            "dropped, %": 100 * queue["dropped"] / queue["arrived"],
            "reductions of a flow": reductions / self.flows,
        }


def ns2_run(setting: Setting, seed: int) -> dict[str, float]:
    """What ns-2 measures.

    Raises:
        process.RunError: ns-2 refused the setting or failed.
    """
    flows: list[dict[str, int]] = []
    queue: dict[str, int] = {}
    for kind, values in records(SCRIPT, arguments(setting, seed)):
        counts = {name: int(value) for name, value in values.items()}
        if kind == "flow":
            flows.append(counts)
        else:
            queue = counts
    acked, reductions = (sum(flow[name] for flow in flows) for name in ("acked_packets", "reductions"))
    return setting.found(acked_packets=acked, reductions=reductions, queue=queue)


def perhop_run(setting: Setting, run: Mapping[str, Any]) -> dict[str, float]:
    """The quantities of a run of perhop."""
    flows, link = run["flows"], run["links"][0]

    def packets(counts: Mapping[str, Any]) -> int:
        return sum(int(by_color.sum()) for by_color in counts.values())

    seconds = setting.duration - setting.warmup
    measured = link["measured"]
    queue = {
        "arrived": int(measured["arrived"].sum()),
        "dropped": packets(measured["dropped"]),
        "marked": packets(measured["notified"]),
        "bytes": round(link["utilization"] * setting.rate * seconds / 8),
    }
    acked = round(float(flows["acked_bps"].sum()) * seconds / 8000)
    return setting.found(acked_packets=acked, reductions=int(np.nansum(flows["ecn_reductions"])), queue=queue)


def arguments(setting: Setting, seed: int) -> list[str]:
    """The script's command line."""
    values = {
        "seed": seed,
        "tcp": setting.tcp,
        "ecn": int(setting.ecn),
        **setting.values(setting.starts(seed)),
    }
    return [f"{key}={value}" for key, value in values.items()]


def perhop_scenario(setting: Setting, seed: int) -> dict[str, Any]:
    """The setting in perhop's scenario format."""
    transport = {**NEWRENO, "sack": setting.tcp == "Sack1"}
    queue = {
        "aqm": "red",
        "thresholds": setting.thresholds,
        "weight": setting.weight,
        "mean-packet": "1000B",
        "spare-short-queue": True,
        "ecn": setting.ecn,
    }
    ecn = "classic" if setting.ecn else "off"
    flows = [
        flow(f"flow {index}", start, transport, ecn=ecn) for index, start in enumerate(setting.starts(seed))
    ]
    return setting.scenario("ECN over one bottleneck, as ns-2 simulates it", queue, flows)


TEN = Setting()
SETTINGS = {
    "NewReno, ten flows": TEN,
    "SACK, ten flows": replace(TEN, tcp="Sack1"),
    "NewReno, ten flows, without ECN": replace(TEN, ecn=False),
    # So many that the average comes near max: packets are dropped, too.
    "NewReno, forty flows": replace(TEN, flows=40),
    "SACK, forty flows": replace(TEN, flows=40, tcp="Sack1"),
}

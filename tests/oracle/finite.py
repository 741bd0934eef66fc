"""Finite TCP flows in ns-2.35 and in perhop: a thousand transfers that start as a Poisson process.

Both programs have the same starts and volumes. ns-2 reports when a sender has its last acknowledgement; the
way of that acknowledgement, on which nothing waits, is taken off, so that both times end with the arrival of
the last byte at the receiver. On an idle path both then agree to the nanosecond. Flows of ns-2 share fifty
pairs of hosts, whose links are ten times as fast as the bottleneck; its routing takes too long with a
thousand.

What remains different: ns-2's Sack1 counts a lost packet as in flight until a cumulative acknowledgement
passes it (Fall & Floyd 1996, section 3.4: its pipe falls by one for each duplicate acknowledgement), RFC 6675
does not. Where slow start overshoots and half a window is lost, its long transfers take longer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from tests.oracle.bottleneck import NEWRENO, Bottleneck, flow, records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCRIPT = Path(__file__).parent / "ns2" / "finite.tcl"
SIZES: Mapping[int, float] = {5: 0.4, 20: 0.4, 100: 0.15, 500: 0.05}
"""Data packets of 1000 bytes, and how often."""
PAYLOAD = 960
"""Of such a packet, in bytes; a `volume` is payload."""
LOSS = "dropped, %"
MARGINS: Mapping[str, float] = {LOSS: 0.1, "95th percentile, ms": 0.1}
"""What counts as no difference, as a part of ns-2's mean, where it is not `MARGIN`."""
MARGIN = 0.05
NEGLIGIBLE = 1.0
"""Percent of packets: where neither drops more in any run, the ratio of the two programs says nothing."""


def margin(quantity: str) -> float:
    """What counts as no difference."""
    return MARGINS.get(quantity, MARGIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Bottleneck):
    """Transfers over one bottleneck.

    Args:
        flows: How many.
        load: Of the bottleneck, on average while flows start.
        tcp: Sender variant; Sack1 comes with the sink that acknowledges selectively.
        queue: RED with `thresholds`, or drop-tail.
        window: The receiver's, and the first ssthresh, in packets.
    """

    flows: int = 1000
    load: float = 0.6
    tcp: Literal["Newreno", "Sack1"] = "Newreno"
    queue: Literal["DropTail", "RED"] = "DropTail"
    window: int = 1000
    thresholds: str = "15/45/0.1"
    limit: int = 50
    duration: int = 150
    warmup: int = 0

    def transfers(self, seed: int) -> list[tuple[float, int]]:
        """Start and volume of each flow, in the order of the starts: the same in both programs."""
        rng = random.Random(seed)  # noqa: S311
        mean = sum(size * share for size, share in SIZES.items()) * 8000
        span = self.flows * mean / self.load / self.rate
        starts = sorted(round(rng.random() * span, 6) for _ in range(self.flows))
        return list(zip(starts, rng.choices(list(SIZES), list(SIZES.values()), k=self.flows), strict=True))

    def found(self, seed: int, times: Sequence[float], queue: Mapping[str, int]) -> dict[str, float]:
        """The quantities that are compared; a time is NaN of a flow that did not complete."""
        volumes = np.array([volume for _, volume in self.transfers(seed)])
        done = np.asarray(times)
        return {
            **{f"mean of {size} kB, ms": 1e3 * float(np.nanmean(done[volumes == size])) for size in SIZES},
            "median, ms": 1e3 * float(np.nanmedian(done)),
            "95th percentile, ms": 1e3 * float(np.nanpercentile(done, 95)),
            LOSS: 100 * queue["dropped"] / queue["arrived"],
            "unfinished": float(np.isnan(done).sum()),
        }


def arguments(setting: Setting, seed: int) -> list[str]:
    """The script's command line."""
    transfers = setting.transfers(seed)
    values = {
        "seed": seed,
        "tcp": setting.tcp,
        "queue": setting.queue,
        "window": setting.window,
        **setting.values([start for start, _ in transfers]),
        "volumes": ",".join(str(volume) for _, volume in transfers),
    }
    return [f"{key}={value}" for key, value in values.items()]


def ns2_run(setting: Setting, seed: int) -> dict[str, float]:
    """What ns-2 measures.

    Raises:
        process.RunError: ns-2 refused the setting or failed.
    """
    # Propagation over three links, and 40 bytes at each.
    back = setting.delay + 2 * 1e-3 + 320 / setting.rate + 2 * 320 / 100e6
    transfers = setting.transfers(seed)
    times = [float("nan")] * len(transfers)
    queue: dict[str, int] = {}
    for kind, values in records(SCRIPT, arguments(setting, seed)):
        if kind == "flow":
            number = int(values["number"])
            times[number] = float(values["done"]) - transfers[number][0] - back
        else:
            queue = {name: int(value) for name, value in values.items()}
    return setting.found(seed, times, queue)


def perhop_scenario(setting: Setting, seed: int) -> dict[str, Any]:
    """The setting in perhop's scenario format."""
    window = f"{setting.window}p"
    transport = {
        **NEWRENO,
        "sack": setting.tcp == "Sack1",
        "window": window,
        "initial-ssthresh": window,
    }
    red = {"thresholds": setting.thresholds, "weight": setting.weight, "mean-packet": "1000B"}
    queue = (
        {"aqm": "red", "spare-short-queue": True, **red} if setting.queue == "RED" else {"aqm": "drop-tail"}
    )
    flows = [
        flow(f"flow {index}", start, transport, volume=f"{volume * PAYLOAD}B")
        for index, (start, volume) in enumerate(setting.transfers(seed))
    ]
    return setting.scenario("Finite flows, as ns-2 simulates them", queue, flows)


def perhop_run(setting: Setting, seed: int, run: Mapping[str, Any]) -> dict[str, float]:
    """The quantities of a run of perhop."""
    link = run["links"][0]
    queue = {"arrived": link["arrived_packets"], "dropped": link["dropped_packets"]}
    return setting.found(seed, run["flows"]["completion_s"].tolist(), queue)


_BASE = Setting()
SETTINGS = {
    "NewReno, drop-tail": _BASE,
    "NewReno, drop-tail, window of 32": replace(_BASE, window=32, limit=100),
    "SACK, drop-tail, window of 32": replace(_BASE, window=32, limit=100, tcp="Sack1"),
    "NewReno, RED": replace(_BASE, queue="RED"),
    "SACK, drop-tail": replace(_BASE, tcp="Sack1"),
}

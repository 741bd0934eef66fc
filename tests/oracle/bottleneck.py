"""One bottleneck in ns-2 and in perhop: what the comparisons of RAP and of ECN share."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ACCESS = {"rate": "100Mbps", "delay": "1ms"}
NEWRENO = {
    "tcp": "newreno",
    "packet": "1000B",
    "window": "1000p",
    "initial-ssthresh": "1000p",
    "initial-window": "2p",
    "handshake": True,
    "limited-transmit": True,
    "tick": "10ms",
    "min-rto": "200ms",
    "initial-rto": "3s",
    "ack": "40B",
}
"""perhop's sender with the settings of ns-2's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """A link with a queue; rates in bit/s, times in seconds, sizes in bytes, queues in packets.

    Args:
        thresholds: `min/max/max_p` of a RED queue.
    """

    thresholds: str
    weight: float = 0.002
    limit: int
    rate: float = 10e6
    delay: float = 0.02
    duration: int
    warmup: int

    def values(self, starts: Sequence[float]) -> dict[str, object]:
        """What the ns-2 scripts read by the same names."""
        return {
            "thresholds": self.thresholds,
            "weight": self.weight,
            "limit": self.limit,
            "rate": self.rate,
            "delay": self.delay,
            "duration": self.duration,
            "warmup": self.warmup,
            "starts": ",".join(f"{start:.6f}" for start in starts),
        }

    def scenario(
        self, title: str, queue: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """The setting in perhop's scenario format."""
        return {
            "title": title,
            "duration": f"{self.duration}s",
            "warmup": f"{self.warmup}s",
            "links": {
                "bottleneck": {
                    "from": "edge",
                    "to": "core",
                    "rate": f"{round(self.rate)}bps",
                    "delay": f"{round(self.delay * 1e6)}us",
                    "queue": {**queue, "limit": f"{self.limit}p"},
                }
            },
            "flows": list(flows),
        }


def random_starts(seed: int, flows: int) -> list[float]:
    """When each flow starts: the same in both programs."""
    rng = random.Random(seed)  # noqa: S311
    return [round(rng.random(), 6) for _ in range(flows)]


def flow(name: str, start: float, transport: Mapping[str, Any], **own: object) -> dict[str, Any]:
    """A flow of perhop over the bottleneck."""
    ends = {"from": "edge", "to": "core", "access": ACCESS}
    return {"name": name, "start": f"{round(start * 1e6)}us", **ends, "transport": dict(transport), **own}


def records(script: Path, arguments: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Run an ns-2 script, which prints lines `KIND NAME=VALUE …`: the kind and the values of each.

    Raises:
        process.RunError: ns-2 refused the setting or failed.
    """
    for line in process.run(["ns", str(script), *arguments]).output.splitlines():
        kind, *words = line.split()
        yield kind, dict(word.split("=", 1) for word in words)

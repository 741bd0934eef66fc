"""The setting of the paper: a 20 Mbit/s dumbbell with an RTT of 100 ms, greedy NewReno, 100 s.

The NewReno is that of ns-2 in 1998 (`tcp = "ns-1998"`), with the largest window that TCP can advertise
without the window scale option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from perhop._engine import student_t_quantile
from perhop.show.declared import Axis
from perhop.statistics.intervals import UPPER, Estimate
from perhop.studies.paper import Paper

THIS = Paper(__package__)
"""The paper's numbers and claims, and the studies of it."""
PAPER = (
    'Kim, Park and Bahk, "A modified RIO queue management scheme that reduces the bandwidth skew problem in '
    'Assured Service"'
)
LINUX_TCP: Mapping[str, Any] = {"tcp": "linux", "loss-detection": "duplicate-acks", "slow-start": "standard"}
"""Linux's SACK, PRR and CUBIC, with the loss detection of RFC 6675: without RACK-TLP and HyStart."""
CAPACITY_MBPS = 20.0
ASSURED = "assured"
BEST_EFFORT = "best-effort"

SCHEMES = Axis("scheme", "Scheme", {"rio": "RIO", "rio-plus-out": "RI+O"})

LARGEST_WINDOW = 65_535
"""Bytes that TCP's window field can advertise (RFC 793), without the scale option of RFC 1323."""
HEADERS = 40
PACKET = 576
"""Bytes of every packet, that of the draft whose setting section 3 takes over."""


def window(packet: int) -> str:
    """The largest window in packets of so many bytes, headers included."""
    return f"{LARGEST_WINDOW // (packet - HEADERS)}p"


def flows(name: str, count: int, profile_mbps: float, *, burst: str) -> dict[str, Any]:
    """`count` greedy NewReno flows; a profile of 0 is best effort."""
    entry: dict[str, Any] = {
        "name": name,
        "count": count,
        "from": "edge",
        "to": "core",
        "access": {"rate": "10Mbps", "delay": "1ms"},
        "transport": {"tcp": "ns-1998", "packet": f"{PACKET}B", "window": window(PACKET)},
        "start": "0s..1s",
    }
    if profile_mbps > 0:
        entry["profile"] = {"rate": f"{profile_mbps:g}Mbps", "marker": "token-bucket", "burst": burst}
    return entry


def scenario(title: str, queue: Mapping[str, str], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The dumbbell with this queue at the bottleneck."""
    link = {"from": "edge", "to": "core", "rate": "20Mbps", "delay": "48ms", "queue": dict(queue)}
    return {
        "title": title,
        "duration": "100s",
        "warmup": "0s",
        "links": {"bottleneck": link},
        "flows": list(entries),
    }


# ---------------------------------------------------------------- Changes to a scenario, as plain data

Change: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes of a scenario, or of an entry of flows, another; it leaves its argument as it is."""


def queue(**keys: str | float) -> Change:
    """Set keys of the bottleneck's queue."""

    def change(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
        link = scenario["links"]["bottleneck"]
        changed = {**link, "queue": {**link["queue"], **keys}}
        return {**scenario, "links": {**scenario["links"], "bottleneck": changed}}

    return change


def entries(changed: Change) -> Change:
    """Change every entry of flows."""
    return lambda scenario: {**scenario, "flows": [changed(entry) for entry in scenario["flows"]]}


def packets(size: int) -> Change:
    """Set the size of packets, and with it the largest window in packets."""
    sizes = {"packet": f"{size}B", "window": window(size)}
    of_flows = entries(lambda entry: {**entry, "transport": {**entry["transport"], **sizes}})
    of_queue = queue(**{"mean-packet": f"{size}B"})
    return lambda scenario: of_queue(of_flows(scenario))


def corrected(found: Estimate, comparisons: int) -> Estimate:
    """The interval of one of several comparisons, wide enough for all of them together (Bonferroni).

    Each side is longer by the ratio of the two quantiles of Student's t.
    """
    if found.ci95 is None or found.runs < 2:
        return found
    freedom = found.runs - 1
    longer = student_t_quantile(freedom, 1 - (1 - UPPER) / comparisons) / student_t_quantile(freedom, UPPER)
    low = found.mean - longer * (found.mean - found.low)
    high = found.mean + longer * (found.high - found.mean)
    return Estimate(found.mean, (low, high), found.runs, found.of)

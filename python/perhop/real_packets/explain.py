"""Parts of a difference between simulated and real packets, and the effect of each way of the kernel's TCP.

perhop's own TCP, the simulated one behind real segments, takes the place of the kernel's at one end after the
other: so the difference splits into parts that add up. Beside that, one way of the kernel is turned off
(`live.sysctl`), and the simulated TCP is made more like the kernel's in one respect.
"""

from __future__ import annotations

import functools
import json
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

from perhop import _engine
from perhop.blocks import catalogue
from perhop.errors import ScenarioError
from perhop.real_packets.equivalence import Comparison, Key, Samples, between, collect
from perhop.real_packets.laboratory import LiveResult
from perhop.runs.result import Result
from perhop.show.numbers import exact
from perhop.statistics.intervals import Difference, paired


@dataclass(frozen=True, slots=True)
class Variation:
    """A change in one respect, of the simulated TCP or the kernel's.

    Attributes:
        where: Whether the kernel is changed, the simulated TCP, or which TCP is at the ends of connections:
            on real packets, or in virtual time.
        sysctl: The kernel's settings, for a live one.
        transport: Keys of each TCP transport, for a simulated one.
        keeps: The keys of a TCP transport that stay; None is all.
        before: The version of Linux from which on the settings change nothing.
    """

    id: str
    text: str
    where: Literal["live", "simulated", "virtual", "exchanged"]
    sysctl: Mapping[str, int | str] = field(default_factory=dict)
    transport: Mapping[str, object] = field(default_factory=dict)
    keeps: frozenset[str] | None = None
    before: tuple[int, int] | None = None


WIRE = Variation("wire", "wire: perhop's TCP in segments, in virtual time", "virtual")
SCHEDULING = Variation(
    "scheduling", "scheduling: the same in real time, through the kernel's IP", "exchanged"
)
WIRE_AND_SCHEDULING = Variation(
    "wire-and-scheduling", "wire and scheduling: perhop's TCP at both ends", "exchanged"
)
RECEIVER = Variation("receiver", "receiver: the kernel's in place of perhop's", "exchanged")
SENDER = Variation("sender", "sender: the kernel's in place of perhop's", "exchanged")
"""Steps from the simulation to real packets. Each is compared with the one before it, the first with the
simulation, so that the effects add up to the difference."""

_OLD = {"net.ipv4.tcp_sack": 0, "net.ipv4.tcp_recovery": 0, "net.ipv4.tcp_early_retrans": 0}
_STEADY_WINDOW: Mapping[str, int | str] = {
    "net.ipv4.tcp_moderate_rcvbuf": 0,
    "net.ipv4.tcp_rmem": "4096 6291456 6291456",
}
_SINGLE = {"net.ipv4.tcp_min_tso_segs": 1, "net.ipv4.tcp_tso_rtt_log": 0}

LIVE = (
    Variation("sack", "without SACK", "live", sysctl={"net.ipv4.tcp_sack": 0}),
    # Linux 6.17 removed the detection of losses by duplicate ACKs and SACK alone (RFC 6675).
    Variation("rack", "without RACK", "live", sysctl={"net.ipv4.tcp_recovery": 0}, before=(6, 17)),
    Variation("tlp", "without tail loss probes", "live", sysctl={"net.ipv4.tcp_early_retrans": 0}),
    Variation("timestamps", "without timestamps", "live", sysctl={"net.ipv4.tcp_timestamps": 0}),
    Variation("window", "receive window of 3 MB from the start", "live", sysctl=_STEADY_WINDOW),
    Variation("bursts", "segments one by one at low rates", "live", sysctl=_SINGLE),
    Variation("idle", "no slow start after idle", "live", sysctl={"net.ipv4.tcp_slow_start_after_idle": 0}),
    Variation("all", "without SACK, RACK, tail loss probes", "live", sysctl=_OLD),
)
"""Timestamps stay in the last: without them the kernel's round trips are measured once in a window."""

_DELAYED: Mapping[str, object] = {"delayed-ack": "40ms", "quick-acks": "16p"}

SIMULATED = (
    Variation("initial-window", "initial window of 10", "simulated", transport={"initial-window": "10p"}),
    Variation("acks", "delayed acknowledgements", "simulated", transport=_DELAYED),
    Variation(
        "counting",
        "delayed acknowledgements, byte counting",
        "simulated",
        transport={**_DELAYED, "byte-counting": True},
    ),
    Variation(
        "timeouts",
        "Linux's timeouts",
        "simulated",
        transport={"tick": "1us", "initial-rto": "1s", "min-rto": "200ms", "min-rto-bounds": "variation"},
    ),
    Variation("limited", "limited transmit", "simulated", transport={"limited-transmit": True}),
    Variation("sack", "SACK", "simulated", transport={"sack": True}),
    Variation("prr", "SACK and PRR", "simulated", transport={"sack": True, "prr": True}),
    Variation(
        "tlp",
        "SACK, PRR and RACK-TLP",
        "simulated",
        transport={"sack": True, "prr": True, "loss-detection": "rack"},
    ),
    Variation(
        "hystart", "HyStart", "simulated", transport={"congestion": {"control": "cubic", "hystart": True}}
    ),
    Variation(
        "linux",
        "all of Linux's TCP that is modelled",
        "simulated",
        transport={"tcp": "linux"},
        keeps=frozenset({"packet", "ack", "window", "send-jitter"}),
    ),
)


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of one variation on each number: with it minus without it.

    Attributes:
        left: What is then left between live and simulation: live minus simulated.
        left_out: Runs that were invalid.
    """

    variation: Variation
    by: Mapping[Key, Difference]
    left: Mapping[Key, Difference]
    runs: int
    left_out: int = 0


def variations(scenario: str) -> list[tuple[Variation, str]]:
    """Everything that can be varied of a scenario (canonical JSON), each with the scenario that it makes."""
    content = json.loads(scenario)
    if not any(_tcp(flow) for flow in content["flows"]):
        return []
    linux = _version_of_linux(platform.release())
    able = (one for one in (*SIMULATED, *LIVE) if one.before is None or linux < one.before)
    made = ((variation, _varied(content, variation)) for variation in able)
    return [(variation, text) for variation, text in made if text is not None and text != scenario]


def _version_of_linux(release: str) -> tuple[int, int]:
    """The first two numbers of `uname -r`; a release that has none is taken for the newest."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else (sys.maxsize, 0)


def _varied(content: Mapping[str, Any], variation: Variation) -> str | None:
    """The scenario with a variation, or None where the user has set it, or where it does not fit."""
    varied = deepcopy(dict(content))
    if variation.where == "live":
        ours = varied.setdefault("live", {}).setdefault("sysctl", {})
        if ours.keys() & variation.sysctl.keys():
            return None
        ours |= variation.sysctl
    else:
        for flow in varied["flows"]:
            tcp = _tcp(flow)
            if tcp is not None and tcp["tcp"] != "two-windows":
                flow["transport"] = _transport(flow, variation)
    try:
        return _engine.scenario_from_json(json.dumps(varied), "scenario")
    except ScenarioError:
        return None


_OF_NEWRENO = {"newreno-timer": "impatient", "partial-window-deflation": "by-acknowledged"}
"""Keys of a canonical scenario that recovery by SACK has no use for, at their defaults."""


def _tcp(flow: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A group's TCP; calls have a transport of their own."""
    transport: Mapping[str, Any] = flow.get("transport", {})
    return transport if "tcp" in transport else None


def _control(tcp: Mapping[str, Any]) -> dict[str, Any]:
    """The congestion control of a TCP transport as a table, with what the scenario says of its parameters."""
    given = tcp.get("congestion", "reno")
    return {"control": given} if isinstance(given, str) else dict(given)


def _transport(flow: Mapping[str, Any], variation: Variation) -> dict[str, Any]:
    keeps = variation.keeps
    kept = {key: value for key, value in flow["transport"].items() if keeps is None or key in keeps}
    changed = kept | dict(variation.transport)
    if isinstance(given := variation.transport.get("congestion"), dict):  # parameters of one control
        ours = _control(flow["transport"])
        if ours["control"] != given["control"]:
            return dict(flow["transport"])
        changed["congestion"] = ours | given
    if changed.get("sack"):
        changed = {key: value for key, value in changed.items() if _OF_NEWRENO.get(key) != value}
    if changed["tcp"] == "linux":
        kernels = flow.get("live", {}).get("congestion")
        simulated = _simulated().get(kernels, STAND_IN) if kernels else flow["transport"].get("congestion")
        changed["congestion"] = simulated or STAND_IN
    return changed


STAND_IN = "reno"
"""Is simulated in place of a congestion control that only the kernel has, such as vegas."""


@functools.cache
def _simulated() -> dict[str, str]:
    """The simulated congestion controls, by the kernel's names."""
    controls = (block for block in catalogue.registered() if block["role"] == "congestion-control")
    return {control["linux"]["name"]: control["name"] for control in controls if control["linux"]}


def explain(
    comparison: Comparison,
    simulate: Callable[[str], Result],
    virtual: Callable[[str], LiveResult],
    live: Callable[[str], LiveResult],
    *,
    exchanged: bool = True,
) -> Iterator[Change]:
    """Yield the effect of each variation.

    Args:
        comparison: What is to be explained.
        simulate: Runs a scenario as the comparison's simulated runs were.
        virtual: Runs one in virtual time, on the seeds of the simulated runs.
        live: Runs one as the comparison's live runs were.
        exchanged: Exchange the ends of TCP as well, which needs TUN devices.
    """
    if exchanged:
        yield from _parts(comparison, virtual, live)
    for variation, scenario in variations(comparison.live.scenario):
        if variation.where == "simulated":
            runs: Sequence[Any] = simulate(scenario).runs
            samples, left_out = collect(runs), 0
            before = comparison.simulated_samples
            by = {key: paired(samples[key], before[key]) for key in before if key in samples}
            left = _differences(samples, comparison.live_samples)
        else:
            runs, left_out = _valid(live(scenario))
            samples = collect(runs)
            by = _differences(comparison.live_samples, samples)
            left = _differences(comparison.simulated_samples, samples)
        yield Change(variation, by, left, len(runs), left_out)


def exchanges(scenario: str) -> list[tuple[Variation, str]]:
    """Return the steps from the simulation to the connections of a scenario (canonical JSON).

    Each is with the scenario that it makes; that of the last is the scenario itself. Only where all flows are
    TCP, and none is a user's, does virtual time tell the wire from scheduling. Empty without TCP.
    """
    content = json.loads(scenario)
    ends = _engine.tcp_ends(scenario)
    able = [
        ends if ends and flow["transport"]["tcp"] != "quic" else None
        for flow, ends in zip(content["flows"], ends, strict=True)
    ]
    if not any(able):
        return []
    ours = _with_ends(content, [one and ("perhop", "perhop") for one in able])
    steps = [(WIRE, ours), (SCHEDULING, ours)] if all(able) else [(WIRE_AND_SCHEDULING, ours)]
    if any(one and one[1] == "kernel" for one in able):
        steps.append((RECEIVER, _with_ends(content, [one and ("perhop", one[1]) for one in able])))
    if any(one and one[0] == "kernel" for one in able):
        steps.append((SENDER, scenario))
    return [*steps[:-1], (steps[-1][0], scenario)]


def _with_ends(content: Mapping[str, Any], ends: Sequence[tuple[str, str] | None]) -> str:
    """Return a scenario whose TCP has these senders and receivers."""
    changed = deepcopy(dict(content))
    for flow, both in zip(changed["flows"], ends, strict=True):
        if both:
            # The kernel's congestion control is nothing to perhop's sender, which has that of the transport.
            flow["live"] = dict(zip(("sender", "receiver"), both, strict=True))
    return json.dumps(changed)


def _parts(
    comparison: Comparison, virtual: Callable[[str], LiveResult], live: Callable[[str], LiveResult]
) -> Iterator[Change]:
    """Yield the effect of each exchange, up to the connections as they were compared."""
    before, steps = comparison.simulated_samples, exchanges(comparison.live.scenario)
    for variation, scenario in steps:
        if variation is steps[-1][0]:
            samples, runs, left_out = comparison.live_samples, len(comparison.live.runs), 0
        else:
            in_virtual_time = variation.where == "virtual"
            valid, left_out = _valid((virtual if in_virtual_time else live)(scenario))
            samples, runs = collect(valid), len(valid)
        left = _differences(samples, comparison.live_samples)
        if variation is WIRE:  # on the same seeds as the simulation
            by = {key: paired(samples[key], before[key]) for key in before if key in samples}
        else:
            by = _differences(before, samples)
        yield Change(variation, by, left, runs, left_out)
        before = samples


def _valid(result: LiveResult) -> tuple[Sequence[Any], int]:
    """Return the valid runs, and how many others there are."""
    runs = [run for run, report in zip(result.runs, result.reports, strict=True) if report.valid]
    return runs, len(result.runs) - len(runs)


def _differences(a: Samples, b: Samples) -> dict[Key, Difference]:
    """The differences b - a."""
    return {key: between(list(a[key].values()), list(b[key].values())) for key in a if key in b}


def otherwise(scenario: str) -> list[str]:
    """Return the differences of TCP on real packets from this scenario's, as far as the scenario says."""
    content = json.loads(scenario)
    said: dict[str, None] = {}
    for flow, ends in zip(content["flows"], _engine.tcp_ends(scenario), strict=True):
        if (tcp := _tcp(flow)) is not None:
            # The connections of users have none of perhop's ends.
            sender, receiver = ends or ("kernel", "kernel")
            if sender == "kernel":
                said |= dict.fromkeys(_other_sender(tcp, flow.get("live", {}).get("congestion")))
            if receiver == "kernel" and tcp["delayed-ack"] == "0s":
                said[_ACKS] = None
            if not tcp["handshake"]:
                said[_HANDSHAKE] = None
    return list(said)


_ACKS = (
    "ACKs: for every second segment, or after 40 ms or more, except early in a connection; "
    "simulated: at once for each segment."
)
_HANDSHAKE = "Connections begin with a handshake, which takes a round trip; simulated: without one."


def _other_sender(tcp: Mapping[str, Any], congestion: str | None) -> Iterator[str]:
    """Yield the differences of the kernel's sender, and of what its receiver offers."""
    if not tcp.get("sack"):
        yield (
            "Loss detection: SACK, RACK and tail loss probes (RFC 8985), "
            f"window reduction by PRR; simulated: {tcp['tcp']}."
        )
    elif tcp.get("loss-detection") != "rack":
        yield "Loss detection: by RACK and tail loss probes (RFC 8985), too; simulated: by ACKs alone."
    ours = _control(tcp)["control"]
    congestion = congestion or ours
    if congestion != ours:
        yield f"Congestion control: {congestion}; simulated: {ours}."
    yield from _other_clocks_and_windows(tcp)
    yield from _other_sending(tcp, congestion, ours)


def _other_clocks_and_windows(tcp: Mapping[str, Any]) -> Iterator[str]:
    if tcp["initial-window"] != "10p":
        yield f"Initial window: 10 segments; simulated: {tcp['initial-window'].removesuffix('p')}."
    if tcp.get("min-rto-bounds") != "variation":
        yield (
            "Timeouts: the round-trip time plus at least 200 ms, timer resolution 1 µs or finer; "
            f"simulated: at least {tcp['min-rto']}, timer resolution {tcp['tick']}."
        )
    if tcp.get("window-tuning") == "linux":
        ours = f"up to {_size(tcp['window'])}, likewise"
    else:
        ours = f"{_size(tcp['window'])} from the start"
    yield f"Receive window: grows by the kernel's autotuning (tcp_rmem); simulated: {ours}."
    if buffer := tcp.get("send-buffer"):
        yield f"Send buffer: grows up to the kernel's (tcp_wmem); simulated: {_size(buffer)}."


def _size(depth: str) -> str:
    """A depth of a canonical scenario in words: `1000p` or `16.777216MB`."""
    if depth.endswith("p"):
        number = depth.removesuffix("p")
        return f"{number} packet{'' if number == '1' else 's'}"
    number = depth.rstrip("kMGB")
    return f"{exact(float(number))} {depth[len(number) :]}"


def _other_sending(tcp: Mapping[str, Any], congestion: str, ours: str) -> Iterator[str]:
    yield "Segments leave in bursts of two or more (GSO); simulated: one by one, as ACKs arrive."
    if congestion == "bbr":
        if not ours.startswith("bbr"):  # bbr3 has such a model, too
            yield "bbr paces segments by a model of the path; simulated: no such model."
    else:
        pacing = "by the rate of the window" if tcp.get("pacing") == "window" else "none"
        yield f"Pacing: none for reno and cubic, unless under the scheduler fq; simulated: {pacing}."
    slow_start = tcp.get("slow-start")
    has_hystart = _control(tcp).get("hystart", tcp["tcp"] == "linux" and slow_start is None)
    if congestion == "cubic" and not has_hystart:
        end = "by another rule (HyStart++)" if slow_start == "hystart++" else "at the first loss"
        yield f"Slow start: ends early when round-trip times grow (HyStart); simulated: {end}."

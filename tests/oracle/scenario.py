"""The setting that ns-2 simulates, as a perhop scenario: same network, same TCP, same queue.

`perhop_scenario` returns the scenario as a JSON-ready dictionary. Where ns-2 leaves no choice, perhop is set
to what ns-2 does: for dsRED no `wait`, no `gentle`, and `averages = "own-class"` (an OUT arrival leaves the
average of IN alone), for `Queue/RED` `spare-short-queue`. `README.md` lists what no parameter can make equal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.oracle.ns2 import Group, Ns2Setting


def perhop_scenario(setting: Ns2Setting) -> dict[str, Any]:
    """`setting` in perhop's scenario format.

    Raises:
        ValueError: The setting uses something without a counterpart: options by ns-2's names, or a handshake
            without delayed growth of the window or the reverse.
    """
    if setting.tcp_options:
        raise ValueError(f"no counterpart to ns-2's options {sorted(setting.tcp_options)}")
    if setting.handshake != setting.delay_growth:
        raise ValueError("no counterpart to ns-2's syn_ without delay_growth_, or the reverse")
    return {
        "title": "Assured Service on a dumbbell, as ns-2 simulates it",
        "duration": _seconds(setting.duration_s),
        "warmup": _seconds(setting.warmup_s),
        "links": {
            "bottleneck": {
                "from": "edge",
                "to": "core",
                "rate": _bps(setting.rate_bps),
                "delay": _seconds(setting.delay_s),
                "queue": _queue(setting),
            }
        },
        "flows": _flows(setting),
    }


def _queue(setting: Ns2Setting) -> dict[str, Any]:
    common = {
        "limit": f"{setting.limit_packets}p",
        "weight": setting.weight,
        "mean-packet": f"{setting.packet_bytes}B",
        "gentle": False,
    }
    if setting.aqm == "RED":
        return {
            "aqm": "red",
            "thresholds": str(setting.total_thresholds),
            "wait": setting.red_wait,
            "spare-short-queue": True,
            **common,
        }
    return {
        "aqm": "rio",
        "coupling": "coupled" if setting.coupled else "decoupled",
        "in": str(setting.in_thresholds),
        "total": str(setting.total_thresholds),
        "wait": False,
        "averages": "own-class",
        **common,
    }


def _flows(setting: Ns2Setting) -> list[dict[str, Any]]:
    if setting.starts_s is None:
        start = "..".join(_seconds(bound) for bound in setting.start_s)
        return [
            _flow(setting, group, name=f"group {index}", count=group.count, start=start)
            for index, group in enumerate(setting.groups)
        ]
    # Explicit starts: one entry for each flow, in ns-2's order.
    members = [(index, group) for index, group in enumerate(setting.groups) for _ in range(group.count)]
    return [
        _flow(setting, group, name=f"group {index} flow {flow}", count=1, start=_seconds(start))
        for flow, ((index, group), start) in enumerate(zip(members, setting.starts_s, strict=True))
    ]


def _flow(setting: Ns2Setting, group: Group, *, name: str, count: int, start: str) -> dict[str, Any]:
    delay = setting.access_delay_s if group.access_delay_s is None else group.access_delay_s
    entry: dict[str, Any] = {
        "name": name,
        "count": count,
        "from": "edge",
        "to": "core",
        "transport": {
            **({"tcp": "newreno", "sack": True} if setting.tcp == "Sack1" else {"tcp": setting.tcp.lower()}),
            "packet": f"{setting.packet_bytes}B",
            "window": f"{setting.window_packets}p",
            # ns-2 starts with ssthresh at window_.
            "initial-ssthresh": f"{setting.window_packets}p",
            "initial-window": f"{setting.initial_window}p",
            "handshake": setting.handshake,
            "limited-transmit": setting.limited_transmit,
            "tick": _seconds(setting.tick_s),
            "min-rto": _seconds(setting.min_rto_s),
            "initial-rto": _seconds(setting.initial_rto_s),
            "max-rto": _seconds(setting.max_rto_s),
            "send-jitter": _seconds(setting.send_jitter_s),
            "ack": "40B",
        },
        "start": start,
    }
    if math.isfinite(setting.access_rate_bps):
        entry["access"] = {"rate": _bps(setting.access_rate_bps), "delay": _seconds(delay)}
    if not setting.impatient:
        entry["transport"]["newreno-timer"] = "slow-but-steady"
    if setting.old_rttvar:
        entry["transport"]["rtt-arithmetic"] = "fixed-point"
    if not setting.deflates:
        entry["transport"]["partial-window-deflation"] = "to-ssthresh"
    if setting.delayed_ack_s > 0:
        entry["transport"]["delayed-ack"] = _seconds(setting.delayed_ack_s)
    if group.profile_bps > 0:
        entry["profile"] = {"rate": _bps(group.profile_bps), **_marker(setting)}
    return entry


def _marker(setting: Ns2Setting) -> dict[str, Any]:
    if setting.policer == "TSW2CM":
        return {"marker": "tsw", "window": _seconds(setting.tsw_window_s)}
    return {"marker": "token-bucket", "burst": f"{round(setting.bucket_bytes)}B"}


def _bps(rate: float) -> str:
    return f"{round(rate)}bps"


def _seconds(seconds: float) -> str:
    nanoseconds = round(seconds * 1e9)
    if nanoseconds % 1_000_000_000 == 0:
        return f"{nanoseconds // 1_000_000_000}s"
    return f"{nanoseconds}ns"

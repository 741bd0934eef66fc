"""perhop beside ns-2, ns-3 and the Linux kernel: every comparison, with its numbers."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benches.peers import ns3 as ns3_program
from tests.oracle import ecn, finite, ns2, ns3, process, rap
from tests.oracle.agreement import Agreement, State, compared, simulate
from tests.oracle.scenario import perhop_scenario
from tests.oracle.settings import SETTINGS

from perhop import _engine
from perhop.runs.parallel import available_cores
from perhop.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MARGIN = 0.05
"""Beside ns-2, as a part of its mean."""
NS3_MARGIN = 0.1
"""Beside ns-3, whose TCP differs in more."""


def all_of_ns2(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Each class's rate on every setting, and RAP's."""
    for name, setting in SETTINGS.items():
        theirs = np.array([run.class_mbps for run in ns2.run_seeds(setting, list(seeds))])
        ours = np.array([class_rates(run, setting) for run in simulate(perhop_scenario(setting), seeds)])
        for index, group in enumerate(setting.groups):
            quantity = f"{group.profile_bps / 1e6:g} Mbit/s" if group.profile_bps else "best effort"
            yield compared(
                "ns-2",
                name,
                quantity,
                ours=list(ours[:, index]),
                theirs=list(theirs[:, index]),
                margin=MARGIN,
            )
    with ThreadPoolExecutor(available_cores()) as pool:
        for name, rap_setting in rap.SETTINGS.items():
            theirs_by = list(pool.map(functools.partial(rap.ns2_rates, rap_setting), seeds))
            ours_by = [
                rap_rates(run, rap_setting)
                for run in simulate(functools.partial(rap.perhop_scenario, rap_setting), seeds)
            ]
            for kind, label in (("rap", "RAP"), ("tcp", "NewReno")):
                if kind in ours_by[0]:
                    yield compared(
                        "ns-2",
                        f"RAP: {name}",
                        label,
                        ours=[rates[kind] for rates in ours_by],
                        theirs=[rates[kind] for rates in theirs_by],
                        margin=MARGIN,
                    )


def all_of_ecn(seeds: Sequence[int]) -> Iterator[Agreement]:
    """TCP with ECN over RED that marks: rates, utilization, marks, drops and reductions, as ns-2 has them.

    Raises:
        process.RunError: ns-2 is not installed, or failed.
    """
    with ThreadPoolExecutor(available_cores()) as pool:
        for name, setting in ecn.SETTINGS.items():
            theirs = list(pool.map(functools.partial(ecn.ns2_run, setting), seeds))
            runs = simulate(functools.partial(ecn.perhop_scenario, setting), seeds)
            ours = [ecn.perhop_run(setting, run) for run in runs]
            for quantity, margin in ecn.MARGINS.items():
                if sum(run[quantity] for run in theirs) < ecn.NEGLIGIBLE * len(theirs):
                    continue
                yield compared(
                    "ns-2",
                    name,
                    quantity,
                    ours=[run[quantity] for run in ours],
                    theirs=[run[quantity] for run in theirs],
                    margin=margin,
                )


def all_of_finite(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Completion times of finite TCP flows by size, as ns-2 has them, on the same arrivals.

    Raises:
        process.RunError: ns-2 is not installed, or failed.
    """
    with ThreadPoolExecutor(available_cores()) as pool:
        for name, setting in finite.SETTINGS.items():
            theirs = list(pool.map(functools.partial(finite.ns2_run, setting), seeds))
            runs = simulate(functools.partial(finite.perhop_scenario, setting), seeds)
            ours = [finite.perhop_run(setting, seed, run) for seed, run in zip(seeds, runs, strict=True)]
            for quantity in theirs[0]:
                of_both = [[run[quantity] for run in found] for found in (ours, theirs)]
                if quantity == finite.LOSS and max(map(max, of_both)) < finite.NEGLIGIBLE:
                    continue
                yield compared(
                    "ns-2",
                    name,
                    quantity,
                    ours=of_both[0],
                    theirs=of_both[1],
                    margin=finite.margin(quantity),
                    paired=True,
                )


NS3_BASE = replace(
    ns2.Ns2Setting(), aqm="RED", tcp="Sack1", red_wait=False, groups=(ns2.Group(40, 0.0),), duration_s=60.0
)
NS3_SETTINGS = {
    "RED 347/694/0.05, 40 flows, 20 Mbit/s": NS3_BASE,
    "RED 30/90/0.1, 40 flows, 20 Mbit/s": replace(NS3_BASE, total_thresholds=ns2.Thresholds(30, 90, 0.1)),
    "RED 15/45/0.1, ten flows, 10 Mbit/s, 1000-byte packets": replace(
        NS3_BASE,
        groups=(ns2.Group(10, 0.0),),
        rate_bps=10e6,
        packet_bytes=1000,
        total_thresholds=ns2.Thresholds(15, 45, 0.1),
        limit_packets=200,
    ),
    "drop-tail, 100 packets, five flows, 10 Mbit/s": replace(
        NS3_BASE,
        groups=(ns2.Group(5, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
    ),
}


def all_of_ns3(seeds: Sequence[int]) -> Iterator[Agreement]:
    """What all flows together got, and what the queue lost.

    Raises:
        process.RunError: ns-3 is not installed, or failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if missing := ns3_program.build(folder):
            raise process.RunError(missing)
        for setting_name, setting in NS3_SETTINGS.items():
            with ThreadPoolExecutor(available_cores()) as pool:
                theirs = list(pool.map(functools.partial(_ns3_run, folder, setting), seeds))
            ours = [_ns3_like(run, setting) for run in simulate(perhop_scenario(setting), seeds)]
            for quantity in theirs[0]:
                yield compared(
                    "ns-3",
                    setting_name,
                    quantity,
                    ours=[run[quantity] for run in ours],
                    theirs=[run[quantity] for run in theirs],
                    margin=NS3_MARGIN,
                )


def all_of_ns3_today(
    seeds: Sequence[int], settings: Mapping[str, ns3.Setting] = ns3.SETTINGS
) -> Iterator[Agreement]:
    """Today's AQMs and congestion controls: rates, delays, drops and marks.

    Raises:
        process.RunError: ns-3 is not installed, or failed.
    """
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(available_cores()) as pool:
        folder = Path(name)
        if missing := ns3.build(folder):
            raise process.RunError(missing)
        for setting_name, setting in settings.items():
            theirs = list(pool.map(functools.partial(ns3.ns3_run, folder, setting), seeds))
            runs = simulate(functools.partial(ns3.perhop_scenario, setting), seeds)
            ours = [ns3.perhop_run(run) for run in runs]
            for quantity in theirs[0]:
                if ns3.is_negligible(quantity, [run[quantity] for run in theirs]):
                    continue
                values = [run[quantity] for run in theirs]
                yield compared(
                    "ns-3",
                    setting_name,
                    quantity,
                    ours=[run[quantity] for run in ours],
                    theirs=values,
                    margin=ns3.margin(setting, quantity, float(np.mean(values))),
                )


def all_of_the_kernel(runs: int) -> Iterator[Agreement]:
    """`perhop compare` on real packets: the kernel's TCP through the same queues, by that command's margins.

    Raises:
        process.RunError: The command failed, as it does where hosts cannot be made.
    """
    for name, scenario in KERNEL_SETTINGS.items():
        for line in _compare(scenario, runs):
            ours, theirs = line["simulated"], line["live"]
            if ours is None or theirs is None or "margin" not in line:
                continue
            scale, unit = _READABLE[line["unit"]]
            yield Agreement(
                "kernel",
                name,
                f"{line.get('class') or line.get('link')}: {line['measure']}, {unit}",
                _estimate(ours, scale),
                _estimate(theirs, scale),
                float(line["margin"]) * scale,
                _STATE[line["verdict"]],
            )


_READABLE = {
    "bit/s": (1e-6, "Mbit/s"),
    "s": (1e3, "ms"),
    "fraction": (100.0, "%"),
    "packets": (1.0, "packets"),
}
_STATE: dict[str, State] = {
    "equivalent": "agrees",
    "different": "differs",
    "cannot tell": "cannot tell",
}


def _kernel_setting(queue: dict[str, Any], congestion: str, sold: bool) -> dict[str, Any]:
    tcp = {"tcp": "linux", "congestion": congestion}
    group: dict[str, Any] = {
        "from": "office",
        "to": "internet",
        "access": {"rate": "100Mbps", "delay": "5ms"},
        "transport": tcp,
    }
    if queue.get("ecn"):
        group["ecn"] = "classic"
    profile = {"rate": "1Mbps", "marker": "token-bucket", "burst": "20kB"}
    groups = [{"name": "best effort", "count": 8, **group}]
    if sold:
        groups.insert(0, {"name": "sold 1 Mbit/s", "count": 4, **group, "profile": profile})
    return {
        "title": "perhop beside the kernel",
        "duration": "20s",
        "warmup": "5s",
        "links": {
            "uplink": {"from": "office", "to": "internet", "rate": "10Mbps", "delay": "20ms", "queue": queue}
        },
        "flows": groups,
    }


_RIO = {"aqm": "rio", "limit": "200p", "in": "60/180/0.02", "total": "30/90/0.05"}
_RED = {"aqm": "red", "limit": "200p", "thresholds": "30/90/0.05"}
_QUEUES: dict[str, dict[str, Any]] = {
    "RED": _RED,
    "RED with ECN": {**_RED, "ecn": True},
    "CoDel": {"aqm": "codel", "limit": "200p"},
}
_CONTROLS = {"Reno": "reno", "CUBIC": "cubic", "BBR": "bbr"}
KERNEL_SETTINGS = {
    "RIO, Reno": _kernel_setting(_RIO, "reno", sold=True),
    "RI+O, Reno": _kernel_setting({**_RIO, "aqm": "rio-plus-out", "out": "10/30/0.05"}, "reno", sold=True),
    "drop-tail, CUBIC": _kernel_setting({"aqm": "drop-tail", "limit": "60p"}, "cubic", sold=False),
    **{
        f"{queue_name}, {name}": _kernel_setting(queue, control, sold=False)
        for queue_name, queue in _QUEUES.items()
        for name, control in _CONTROLS.items()
        # BBR does not react to marks: its flows are not ECN-capable.
        if not (queue.get("ecn") and control == "bbr")
    },
}


def _compare(scenario: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        described, found = Path(name) / "scenario.toml", Path(name) / "found.json"
        text = _engine.scenario_to_toml(json.dumps(scenario), "oracle")
        described.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "perhop", "compare", described, "--runs", str(runs), "--json", found],
            capture_output=True,
            text=True,
            check=False,
        )
        # 3: a run on real packets was invalid, and is left out.
        if done.returncode not in {0, 3} or not found.exists():
            raise process.RunError(f"perhop compare: {done.stderr.strip()}")
        lines: list[dict[str, Any]] = json.loads(found.read_text(encoding="utf-8"))["scenarios"][0]["lines"]
        return lines


def _estimate(found: dict[str, Any], scale: float) -> Estimate:
    ci95 = found["ci95"]
    scaled = None if ci95 is None else (ci95[0] * scale, ci95[1] * scale)
    return Estimate(found["mean"] * scale, scaled, found["runs"])


def class_rates(run: dict[str, Any], setting: ns2.Ns2Setting) -> list[float]:
    """Mean rate of each class's flows, Mbit/s: acknowledged bytes on the wire."""
    ends = np.cumsum([group.count for group in setting.groups])
    return [float(rates.mean()) / 1e6 for rates in np.split(run["flows"]["acked_bps"], ends[:-1])]


def rap_rates(run: dict[str, Any], setting: rap.Setting) -> dict[str, float]:
    """Mean rate of the flows of each kind, Mbit/s."""
    packets = [int(n) for n in run["flows"]["delivered_packets"]]
    kinds = {"rap": packets[: setting.rap], "tcp": packets[setting.rap :]}
    return {kind: setting.mbps(counts) for kind, counts in kinds.items() if counts}


def _ns3_run(folder: Path, setting: ns2.Ns2Setting, seed: int) -> dict[str, float]:
    command = [str(ns3_program.compiled(folder)), *ns3_program.arguments(setting, seed)]
    fields = dict(word.split("=", 1) for word in process.run(command).output.split())
    # ns-3 counts what the application got, without headers.
    wire = int(fields["delivered_bytes"]) * setting.packet_bytes / (setting.packet_bytes - 40)
    return {
        "goodput, Mbit/s": wire * 8 / setting.duration_s / 1e6,
        "loss, %": 100 * int(fields["dropped"]) / int(fields["arrived"]),
    }


def _ns3_like(run: dict[str, Any], setting: ns2.Ns2Setting) -> dict[str, float]:
    link = run["links"][0]
    dropped = sum(int(counts.sum()) for counts in link["dropped"].values())
    delivered = int(run["flows"]["delivered_packets"].sum()) * setting.packet_bytes
    return {
        "goodput, Mbit/s": delivered * 8 / setting.duration_s / 1e6,
        "loss, %": 100 * dropped / int(link["arrived"].sum()),
    }

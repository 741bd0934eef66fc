"""What the page says of real packets is what the command does: every block and key, accepted or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.live.living import INVALID, needs_live
from tools import real_packets
from tools.real_packets import BASE, KEYS, Probe

from perhop import _engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

PATIENT = {"max-lateness": "100ms"}
CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
REFUSED = [probe for probe in real_packets.probes() if not real_packets.running(probe)]
RUN = [found[1] for probe in real_packets.probes() if (found := real_packets.running(probe))]


def test_every_key_of_the_schema_has_a_probe() -> None:
    schema = json.loads(_engine.scenario_schema())
    for table, changes in KEYS.items():
        keys = (schema if table == "Scenario" else schema["$defs"][table])["properties"]
        known = {key for key, value in keys.items() if not value.get("deprecated")}
        assert known == set(changes) | BASE.get(table, set()), table


@pytest.mark.parametrize("probe", REFUSED, ids=lambda probe: f"{probe.kind} {probe.name}")
def test_what_the_page_calls_refused_is_refused_with_its_message(
    perhop: Perhop, tmp_path: Path, probe: Probe
) -> None:
    done = perhop("live", written(tmp_path, probe.scenario()))
    message = probe.refusal()
    assert message is not None
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert message in done.err


def written(folder: Path, scenario: dict[str, Any]) -> Path:
    """The file of a scenario."""
    path = folder / "scenario.toml"
    path.write_text(_engine.scenario_to_toml(json.dumps(scenario), "scenario"), encoding="utf-8")
    return path


def names(parts: list[Probe], *kinds: str) -> list[Probe]:
    """The probes of these kinds."""
    return [probe for probe in parts if probe.kind in kinds]


def chain(probes: list[Probe]) -> dict[str, Any]:
    """One scenario with the links of all these probes in a row, and the groups of flows of all.

    Probes without links share one. Their flows end before its queue is full, so that no flow starves another.
    """
    scenarios = [probe.scenario() for probe in probes]
    links = {
        f"l{number}": {**scenario["links"]["l"], "from": f"r{number}", "to": f"r{number + 1}"}
        for number, scenario in enumerate(scenarios)
        if "link" in probes[number].changes
    } or {"l0": {**real_packets.LINK, "rate": "50Mbps", "queue": {"aqm": "drop-tail", "limit": "1000p"}}}
    links = {
        f"l{number}": {**link, "from": f"r{number}", "to": f"r{number + 1}"}
        for number, link in enumerate(links.values())
    }
    ends = {"from": "r0", "to": f"r{len(links)}"}
    sizes = {"application", "arrivals", "replay", "volume"}
    flows = []
    for number, scenario in enumerate(scenarios):
        for flow in scenario["flows"]:
            with_ends = {} if "path" in flow else ends
            size = {"volume": "30kB"} if len(links) == 1 and not sizes & flow.keys() else {}
            flows.append({**flow, **with_ends, **size, "name": f"g{number}"})
    path = {"via": [f"r{number}" for number in range(len(links) + 1)], "control": {"interval": "100ms"}}
    return {
        "duration": "1500ms",
        "live": PATIENT,
        "links": links,
        "paths": {"p": path} if any("path" in flow for flow in flows) else {},
        "profiles": {"shared": real_packets.METER}
        if any(f.get("profile") == "shared" for f in flows)
        else {},
        "flows": flows,
    }


def alone(probe: Probe) -> dict[str, Any]:
    """The scenario of a probe, lenient about lateness."""
    scenario = probe.scenario()
    return {**scenario, "live": {**PATIENT, **scenario.get("live", {})}}


def in_kernel(probe: Probe) -> bool:
    """Whether this machine's kernel has the congestion control that the probe is about, if it is."""
    has = CONTROLS.read_text(encoding="utf-8").split() if CONTROLS.exists() else []
    return probe.kind != "congestion-control" or probe.name in has


def uses_ecn(probe: Probe) -> bool:
    """Whether its flows use ECN, which all flows of a host do alike."""
    return "ecn" in probe.changes.get("flow", {})


GROUPS = {
    "aqms": names(RUN, "aqm"),
    "schedulers": names(RUN, "scheduler"),
    "meters": names(RUN, "meter"),
    "senders": [
        probe
        for probe in names(RUN, "transport", "congestion-control")
        if in_kernel(probe) and not uses_ecn(probe)
    ],
    "users": names(RUN, "application"),
    "media": names(RUN, "Link"),
    "reverse": names(RUN, "Reverse"),
    "flows": [
        probe for probe in names(RUN, "Flow") if probe.name not in {"between", "live"} and not uses_ecn(probe)
    ],
    "arrivals": [probe for probe in names(RUN, "Arrivals") if probe.name != "of"],
    "live": names(RUN, "FlowLive"),
}
"""What runs together: links in a row, and the groups of flows of all. The rest runs alone."""
ALONE = [
    probe
    for probe in names(RUN, "congestion-control", "Scenario", "Flow", "LabelSwitchedPath", "Arrivals", "Live")
    if in_kernel(probe) and not any(probe in group for group in GROUPS.values())
]


@needs_live
@pytest.mark.parametrize(
    "scenario",
    [*map(chain, GROUPS.values()), *map(alone, ALONE)],
    ids=[*GROUPS, *(f"{probe.kind} {probe.name}" for probe in ALONE)],
)
def test_what_the_page_calls_accepted_runs(perhop: Perhop, tmp_path: Path, scenario: dict[str, Any]) -> None:
    # The command fails if its router loses or invents a packet.
    done = perhop("live", written(tmp_path, scenario), "--json", "-")
    assert done.code in {0, INVALID}, done.err
    content = json.loads(done.out)
    if done.code == INVALID:
        pytest.skip(f"this machine was too busy: {content['live'][0]['invalid']}")
    # On many slow links in a row some connections may not open in time.
    got = [entry["throughput_bps"] for entry in content["classes"]]
    assert any(got) if len(content["links"]) > 1 else all(got)
    for link in content["links"]:
        assert link["utilization"] > 0, link["link"]

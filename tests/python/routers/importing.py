"""What the tests of dialects share: an import with the answers that a configuration needs."""

from __future__ import annotations

import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import perhop
from perhop.errors import PerhopWarning
from perhop.routers import Answers, Source, imported
from perhop.routers.model import How, Quantity, Unit
from perhop.scenario import reading

CONFIGURATIONS = Path(__file__).parent / "configurations"
PORTS = {
    "eos-leaf.cfg": "Ethernet3/1",
    "eos-profile.cfg": "Ethernet1",
    "routeros-cake.rsc": "ether1",
    "routeros-one.rsc": "upload",
    "routeros-roots.rsc": "ether5",
    "routeros-simple.rsc": "upload",
    "sonic.json": "Ethernet0",
    "vyos-robin.conf": "eth4",
    "vyos-shaper.conf": "eth0",
}
"""The port to import, where a configuration has several with queues."""


@dataclass(frozen=True)
class Brought:
    """An import: the dialect, the scenario's only link, its flows, and warnings with their lines."""

    dialect: str
    link: dict[str, Any]
    flows: list[dict[str, Any]]
    warnings: list[tuple[str, int]]
    texts: list[str]

    def codes(self, code: str) -> list[int]:
        """The lines of a code."""
        return [line for found, line in self.warnings if found == code]

    def carried(self, offered: dict[int, float]) -> dict[int, float]:
        """The rate in Mbit/s at which packets of each codepoint leave, if so much of each comes evenly."""
        flows = [
            {
                "name": f"f{code}", "from": self.link["from"], "to": self.link["to"], "dscp": code,
                "transport": {"udp": "cbr", "rate": f"{mbps}Mbps", "packet": "1kB"},
            }
            for code, mbps in offered.items()
        ]  # fmt: skip
        scenario = {
            "title": "offered",
            "duration": "4s",
            "warmup": "2s",
            "links": {"link": self.link},
            "flows": flows,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PerhopWarning)  # queues of which nothing is offered
            rows = perhop.run(scenario, runs=1).flows.iter_rows(named=True)
        return {code: row["throughput_bps"] / 1e6 for code, row in zip(offered, rows, strict=True)}

    @property
    def queues(self) -> dict[str, dict[str, Any]]:
        """The link's queues by name, wherever they are."""
        return {entry["name"]: entry for entry in _held(self.link["queue"])}


def _held(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The queues of a scheduler's table, those of classes within classes, too."""
    held = [*table.get("priority", []), *table.get("queues", [])]
    for entry in table.get("classes", []):
        held += _held(entry) if "classes" in entry else [entry]
    return held + (_held(table["queue"]) if "queue" in table else [])


def of_text(text: str, name: str = "router.cfg", **answers: Any) -> Brought:  # noqa: ANN401 - of several types
    """Import a text; the scenario is one that perhop reads."""
    given: dict[str, Any] = {"packet_size": 1000.0, **answers}
    choice = {key: given.pop(key) for key in ("dialect", "interface") if key in given}
    source = Source([(name, text.encode())])
    done = imported(source, Answers(**given), **choice)
    reading.canonical(done.toml)
    scenario = tomllib.loads(done.toml)
    (link,) = scenario["links"].values()
    warnings = [(finding.code, finding.line) for finding in done.findings]
    return Brought(done.dialect, link, scenario["flows"], warnings, [f.text for f in done.findings])


def of_file(name: str, **answers: Any) -> Brought:  # noqa: ANN401
    """Import a configuration of the folder."""
    return of_text((CONFIGURATIONS / name).read_text(encoding="utf-8"), name, **answers)


def buffer(size: float) -> Quantity:
    """A buffer in bytes, as a user gives it."""
    return Quantity(size, Unit.BYTES, 0, How.ASKED, text="--buffer")

"""`perhop doctor`: which parts of perhop work on this machine, and why others do not."""

from __future__ import annotations

import importlib
import json
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata

from perhop import _engine, extras
from perhop.commands import explore, options, terminal
from perhop.errors import PerhopError
from perhop.processes import interrupts
from perhop.scenario.warmup import from_the_beginning

SMALLEST = {
    "duration": "1s",
    "links": {
        "link": {
            "from": "a",
            "to": "b",
            "rate": "1Mbps",
            "delay": "1ms",
            "queue": {"aqm": "codel", "limit": "9p"},
        }
    },
    "flows": [{"name": "flow", "from": "a", "to": "b", "transport": {"tcp": "newreno"}}],
}
PACKAGES = {
    "tables": ("polars", "all results"),
    "reports": ("matplotlib", "perhop reproduce, and --out of other commands"),
    "metrics": ("prometheus_client", "perhop live --metrics"),
}
"""Parts that every installation has: what is imported for them, and what they are for."""
PROGRAMS = {
    "perhop-router": ("perhop-router", "perhop's data plane between two interfaces", "make router builds it"),
    "Wireshark": ("tshark", "reading captures as text", "Debian: apt install tshark"),
    "ns-2": ("ns", "comparisons of make validity and make bench", "Debian: apt install ns2"),
}
NS3 = ("pkg-config", "--modversion", "libns3-core")
"""Says whether ns-3's library is there, and its version."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of perhop, or a program that it works with.

    Attributes:
        part: Its name.
        purpose: What it is for.
        note: Its version, or why it does not work and what to do.
        works: It does so here.
    """

    part: str
    purpose: str
    note: str
    works: bool


def doctor(*, as_json: options.AsJson = False, wide: options.Wide = False) -> None:
    """Try each part of perhop on this machine; say which work, and what to do about the others.

    The engine simulates a second, packages are imported, and runs on real packets begin as those of
    `perhop live`.
    The exit status is 0 whatever is found: no part but the engine is needed by all commands.

    \b
    Examples:
      perhop doctor
      perhop doctor --json | jq '.parts[] | select(.works | not)'
    """
    with interrupts.loading():
        from perhop.show import table
    parts = examine()
    if as_json:
        found = {"version": _engine.version, "python": platform.python_version(), "platform": sys.platform}
        terminal.say(json.dumps(found | {"parts": [asdict(part) for part in parts]}, indent=1))
        return
    lines = [
        {"part": one.part, "works": "yes" if one.works else "no", "for": one.purpose, "note": one.note}
        for one in parts
    ]
    terminal.say(f"perhop {_engine.version}, Python {platform.python_version()}, {platform.platform()}\n")
    terminal.say("\n".join(table.records(lines, terminal.width(wide=wide))))


def examine() -> list[Part]:
    """Every part, tried."""
    return [
        _engine_part(),
        *(_package(part, module, purpose, "") for part, (module, purpose) in PACKAGES.items()),
        *(_package(one.name, one.module, one.purpose, _install(one)) for one in extras.ALL),
        _explorer(),
        _live(),
        *(_program(part, *rest) for part, rest in PROGRAMS.items()),
        _ns3(),
    ]


def _engine_part() -> Part:
    """A second of simulation."""
    text = _engine.scenario_from_json(json.dumps(SMALLEST), "doctor")
    _engine.simulate(from_the_beginning(text), 1, _engine.Cancel())
    hurried = "" if _engine.optimized else ", by make build; make fast compiles one that is 15 % faster"
    return Part("engine", "all commands", f"perhop {_engine.version}{hurried}", works=True)


def _install(extra: extras.Extra) -> str:
    return f"pip install 'perhop[{extra.name}]'"


def _package(part: str, module: str, purpose: str, install: str) -> Part:
    """A package, imported: one that is there may still be broken."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        what = f"{error.name} is not installed"
        return Part(part, purpose, f"{what}: {install}" if install else what, works=False)
    except Exception as error:  # noqa: BLE001 - whatever a broken package raises
        reason = " ".join(str(error).split()) or type(error).__name__
        return Part(part, purpose, f"{module} is installed, but broken: {reason}", works=False)
    return Part(part, purpose, f"{module} {metadata.version(module.replace('_', '-'))}", works=True)


def _explorer() -> Part:
    """The page of `perhop explore`, which wheels have and a copy of the repository builds."""
    works = explore.is_built()
    note = "its files are there" if works else f"not built; {explore.REMEDY}"
    return Part("explorer", "perhop explore: runs in the browser", note, works=works)


def _live() -> Part:
    from perhop.real_packets import laboratory

    try:
        lacks = laboratory.available()
    except PerhopError as error:
        lacks = str(error)
    note = lacks or "network namespaces can be made"
    return Part("real packets", "perhop live, perhop compare", note, works=lacks is None)


def _program(part: str, program: str, purpose: str, remedy: str) -> Part:
    found = shutil.which(program)
    note = found or f"no program {program} on the PATH; {remedy}"
    return Part(part, purpose, note, works=found is not None)


def _ns3() -> Part:
    """ns-3 is a library, which pkg-config knows."""
    purpose = "comparisons of make validity and make bench"
    if shutil.which(NS3[0]) is not None:
        asked = subprocess.run(NS3, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return Part("ns-3", purpose, f"ns-3 {asked.stdout.strip()}", works=True)
    return Part("ns-3", purpose, "no library; Debian: apt install libns3-dev pkg-config", works=False)

"""perhop: who gets what at a congested link, and will it stay so when deployed?

Describe links, flows, service profiles and queue rules; `run` says each flow's throughput against its
profile, each class's loss and delay, with intervals over independent runs. Each command that computes
something is a function of the same name here; the classes of which scenarios are built are in
`perhop.scenario`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes long to load: Ctrl-C may come meanwhile

if TYPE_CHECKING:
    from typing import Any

    from perhop import gym as gym
    from perhop import measures as measures
    from perhop import routers as routers
    from perhop import scenario as scenario
    from perhop import statistics as statistics
    from perhop._engine import version as __version__
    from perhop.blocks.plugins import (
        Action,
        Application,
        Aqm,
        Bitrate,
        Bytes,
        CongestionControl,
        Depth,
        Duration,
        Meter,
        Probability,
        Verdict,
    )
    from perhop.bounds.deriving import Bounds, bound
    from perhop.captures.replaying import Replay, replay
    from perhop.coursework.interface import course
    from perhop.errors import BlockError, PerhopError, PerhopWarning, ScenarioError
    from perhop.planning.interface import Planned, plan
    from perhop.real_packets.comparing import compare
    from perhop.real_packets.laboratory import LiveResult
    from perhop.real_packets.laboratory import run as live
    from perhop.real_packets.report import Compared
    from perhop.real_packets.witnessing import Witnessed, witness
    from perhop.rerunning import Rerun, rerun
    from perhop.runs import quality as quality
    from perhop.runs.result import Result
    from perhop.runs.simulate import run
    from perhop.scenario.builder import Scenario
    from perhop.splitting.estimating import rare
    from perhop.splitting.result import Rare
    from perhop.stepping.driving import Packet, drive
    from perhop.stepping.simulation import Simulation
    from perhop.studies.interface import Reproduction, reproduce
    from perhop.sweeps.interface import sweep, tune
    from perhop.sweeps.job import Swept
    from perhop.sweeps.tune import Tuned

    __all__ = [
        "Action",
        "Application",
        "Aqm",
        "Bitrate",
        "BlockError",
        "Bounds",
        "Bytes",
        "Compared",
        "CongestionControl",
        "Depth",
        "Duration",
        "LiveResult",
        "Meter",
        "Packet",
        "PerhopError",
        "PerhopWarning",
        "Planned",
        "Probability",
        "Rare",
        "Replay",
        "Reproduction",
        "Rerun",
        "Result",
        "Scenario",
        "ScenarioError",
        "Simulation",
        "Swept",
        "Tuned",
        "Verdict",
        "Witnessed",
        "__version__",
        "bound",
        "compare",
        "course",
        "drive",
        "live",
        "plan",
        "rare",
        "replay",
        "reproduce",
        "rerun",
        "run",
        "sweep",
        "tune",
        "witness",
    ]
else:
    _MODULES = {
        "gym": "gym",
        "measures": "measures",
        "quality": "runs.quality",
        "routers": "routers",
        "scenario": "scenario",
        "statistics": "statistics",
    }
    """Documented modules, which are there before anybody imports them, and where they are."""
    _PLACES = {
        "Action": "blocks.plugins",
        "Application": "blocks.plugins",
        "Aqm": "blocks.plugins",
        "Bitrate": "blocks.plugins",
        "BlockError": "errors",
        "Bounds": "bounds.deriving",
        "Bytes": "blocks.plugins",
        "Compared": "real_packets.report",
        "CongestionControl": "blocks.plugins",
        "Depth": "blocks.plugins",
        "Duration": "blocks.plugins",
        "LiveResult": "real_packets.laboratory",
        "Meter": "blocks.plugins",
        "Packet": "stepping.driving",
        "PerhopError": "errors",
        "PerhopWarning": "errors",
        "Planned": "planning.interface",
        "Probability": "blocks.plugins",
        "Rare": "splitting.result",
        "Replay": "captures.replaying",
        "Reproduction": "studies.interface",
        "Rerun": "rerunning",
        "Result": "runs.result",
        "Scenario": "scenario.builder",
        "ScenarioError": "errors",
        "Simulation": "stepping.simulation",
        "Swept": "sweeps.job",
        "Tuned": "sweeps.tune",
        "Verdict": "blocks.plugins",
        "Witnessed": "real_packets.witnessing",
        "bound": "bounds.deriving",
        "compare": "real_packets.comparing",
        "course": "coursework.interface",
        "drive": "stepping.driving",
        "live": "real_packets.laboratory:run",
        "plan": "planning.interface",
        "rare": "splitting.estimating",
        "replay": "captures.replaying",
        "reproduce": "studies.interface",
        "rerun": "rerunning",
        "run": "runs.simulate",
        "sweep": "sweeps.interface",
        "tune": "sweeps.interface",
        "witness": "real_packets.witnessing",
    }
    __all__ = (*_PLACES, "__version__")  # noqa: PLE0604 - the names of a table

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has this name
        """Load what is first asked for: the command line need not wait for data frames."""
        import importlib  # noqa: PLC0415 - nothing is loaded before

        if name in _MODULES:
            return importlib.import_module(f"perhop.{_MODULES[name]}")
        if name == "__version__":
            return importlib.import_module("perhop._engine").version
        if name in _PLACES:
            module, _, attribute = _PLACES[name].partition(":")
            return getattr(importlib.import_module(f"perhop.{module}"), attribute or name)
        if name[0].isupper():
            builder = importlib.import_module("perhop.scenario.builder")
            if name in builder.__all__:
                import warnings  # noqa: PLC0415

                text = f"perhop.{name} is perhop.scenario.{name}; the former name goes with the next version"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                return getattr(builder, name)
        raise AttributeError(f"module 'perhop' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *_MODULES})

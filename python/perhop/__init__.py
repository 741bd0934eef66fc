"""perhop: who gets what at a congested link, and will it stay so when deployed?

Describe links, flows, service profiles and queue rules; `run` says each flow's throughput against its
profile, each class's loss and delay, with intervals over independent runs.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes long to load: Ctrl-C may come meanwhile

if TYPE_CHECKING:
    from typing import Any

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
    from perhop.captures.replaying import Replay, replay
    from perhop.errors import BlockError, PerhopError, PerhopWarning, ScenarioError
    from perhop.planning.interface import Planned, plan
    from perhop.runs.result import Result
    from perhop.runs.simulate import run
    from perhop.scenario import builder as _scenario
    from perhop.scenario.builder import *  # noqa: F403 - the builder's classes follow the engine's registered blocks
    from perhop.stepping.driving import Packet, drive
    from perhop.stepping.simulation import Simulation

    __all__ = [
        "Action",
        "Application",
        "Aqm",
        "Bitrate",
        "BlockError",
        "Bytes",
        "CongestionControl",
        "Depth",
        "Duration",
        "Meter",
        "Packet",
        "PerhopError",
        "PerhopWarning",
        "Planned",
        "Probability",
        "Replay",
        "Result",
        "ScenarioError",
        "Simulation",
        "Verdict",
        "__version__",
        "drive",
        "plan",
        "replay",
        "run",
    ]
    __all__ += _scenario.__all__
else:
    _MODULES = {
        "gym": "gym",
        "measures": "measures",
        "quality": "runs.quality",
        "scenario": "scenario",
        "statistics": "statistics",
    }
    """Modules that are there before anybody imports them, and where they are."""
    _PLACES = {
        "Action": "blocks.plugins",
        "Application": "blocks.plugins",
        "Aqm": "blocks.plugins",
        "Bitrate": "blocks.plugins",
        "BlockError": "errors",
        "Bytes": "blocks.plugins",
        "CongestionControl": "blocks.plugins",
        "Depth": "blocks.plugins",
        "Duration": "blocks.plugins",
        "Meter": "blocks.plugins",
        "PerhopError": "errors",
        "PerhopWarning": "errors",
        "Planned": "planning.interface",
        "Probability": "blocks.plugins",
        "ScenarioError": "errors",
        "Verdict": "blocks.plugins",
        "Replay": "captures.replaying",
        "Result": "runs.result",
        "Simulation": "stepping.simulation",
        "Packet": "stepping.driving",
        "drive": "stepping.driving",
        "plan": "planning.interface",
        "replay": "captures.replaying",
        "run": "runs.simulate",
    }

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has this name
        """Load what is first asked for: the command line need not wait for data frames."""
        import importlib  # noqa: PLC0415 - nothing is loaded before

        if name in _MODULES:
            return importlib.import_module(f"perhop.{_MODULES[name]}")
        if name == "__version__":
            return importlib.import_module("perhop._engine").version
        if name in _PLACES:
            return getattr(importlib.import_module(f"perhop.{_PLACES[name]}"), name)
        if not name[0].isupper() and name != "__all__":  # modules, before they are loaded, among others
            raise AttributeError(f"module 'perhop' has no attribute {name!r}")
        scenario = importlib.import_module("perhop.scenario.builder")
        if name == "__all__":
            return [*_PLACES, "__version__", *scenario.__all__]
        if name in scenario.__all__:
            return getattr(scenario, name)
        raise AttributeError(f"module 'perhop' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})

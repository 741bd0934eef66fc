"""perhop: who gets what at a congested link, and will it stay so when deployed?

Describe links, flows, service profiles and queue rules; `run` says each flow's throughput against its
profile, each class's loss and delay, with intervals over independent runs.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes long to load: Ctrl-C may come meanwhile

if TYPE_CHECKING:
    from typing import Any

    from perhop import scenario as _scenario
    from perhop._engine import version as __version__
    from perhop.driving import Packet, drive
    from perhop.errors import BlockError, PerhopError, PerhopWarning, ScenarioError
    from perhop.planning.interface import Planned, plan
    from perhop.plugins import (
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
    from perhop.replaying import Replay, replay
    from perhop.scenario import *  # noqa: F403 - the builder's classes follow the engine's registered blocks
    from perhop.simulation import Result, run
    from perhop.stepping import Simulation

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
        "driving",
        "errors",
        "measures",
        "plugins",
        "quality",
        "replaying",
        "rerunning",
        "runs",
        "scenario",
        "simulation",
        "statistics",
        "stepping",
    }
    _PLACES = {
        "Action": "plugins",
        "Application": "plugins",
        "Aqm": "plugins",
        "Bitrate": "plugins",
        "BlockError": "errors",
        "Bytes": "plugins",
        "CongestionControl": "plugins",
        "Depth": "plugins",
        "Duration": "plugins",
        "Meter": "plugins",
        "PerhopError": "errors",
        "PerhopWarning": "errors",
        "Planned": "planning.interface",
        "Probability": "plugins",
        "ScenarioError": "errors",
        "Verdict": "plugins",
        "Replay": "replaying",
        "Result": "simulation",
        "Simulation": "stepping",
        "Packet": "driving",
        "drive": "driving",
        "plan": "planning.interface",
        "replay": "replaying",
        "run": "simulation",
    }

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has this name
        """Load what is first asked for: the command line need not wait for data frames."""
        import importlib  # noqa: PLC0415 - nothing is loaded before

        if name in _MODULES:
            return importlib.import_module(f"perhop.{name}")
        if name == "__version__":
            return importlib.import_module("perhop._engine").version
        if name in _PLACES:
            return getattr(importlib.import_module(f"perhop.{_PLACES[name]}"), name)
        if not name[0].isupper() and name != "__all__":  # modules, before they are loaded, among others
            raise AttributeError(f"module 'perhop' has no attribute {name!r}")
        scenario = importlib.import_module("perhop.scenario")
        if name == "__all__":
            return [*_PLACES, "__version__", *scenario.__all__]
        if name in scenario.__all__:
            return getattr(scenario, name)
        raise AttributeError(f"module 'perhop' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})

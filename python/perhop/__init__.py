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
    from perhop.errors import PerhopError, PerhopWarning, ScenarioError
    from perhop.replaying import Replay, replay
    from perhop.scenario import *  # noqa: F403 - the builder's classes follow the engine's registered blocks
    from perhop.simulation import Result, run

    __all__ = [
        "PerhopError",
        "PerhopWarning",
        "Replay",
        "Result",
        "ScenarioError",
        "__version__",
        "replay",
        "run",
    ]
    __all__ += _scenario.__all__
else:
    _MODULES = {"errors", "measures", "quality", "replaying", "runs", "scenario", "simulation", "statistics"}
    _PLACES = {
        "PerhopError": "errors",
        "PerhopWarning": "errors",
        "ScenarioError": "errors",
        "Replay": "replaying",
        "Result": "simulation",
        "replay": "replaying",
        "run": "simulation",
    }

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever stands under this name
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

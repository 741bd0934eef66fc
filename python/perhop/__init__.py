"""perhop: who gets what at a congested link, and will it stay so when deployed?

Describe links, flows, service profiles and queue rules; `run` says each flow's throughput against its
profile, each class's loss and delay, with intervals over independent runs.
"""

from perhop import scenario as _scenario
from perhop._engine import version as __version__
from perhop.errors import PerhopError, ScenarioError
from perhop.scenario import *  # noqa: F403 - the builder's classes follow the engine's registered blocks
from perhop.simulation import Result, run

__all__ = ["PerhopError", "Result", "ScenarioError", "__version__", "run"]
__all__ += _scenario.__all__

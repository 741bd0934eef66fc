"""Scenarios on real packets: the kernel's TCP through perhop's queues, in private network namespaces.

`run` gives what `perhop.run` gives for a simulation, with a report on how well the machine kept up; `compare`
runs both and tests whether they are equivalent.
"""

from perhop.live.compare import run as compare
from perhop.live.equivalence import Comparison, Margin
from perhop.live.laboratory import LiveReport, LiveResult, available, run

__all__ = ["Comparison", "LiveReport", "LiveResult", "Margin", "available", "compare", "run"]

"""Scenarios on real packets: the kernel's TCP through perhop's queues, in private network namespaces.

`run` gives what `perhop.run` gives for a simulation, with a report on how well the machine kept up.
"""

from perhop.live.laboratory import LiveReport, LiveResult, available, run

__all__ = ["LiveReport", "LiveResult", "available", "run"]

"""Scenarios on real packets: the kernel's TCP through perhop's queues, in private network namespaces.

`perhop.live` gives what `perhop.run` gives for a simulation, with a report on how well the machine kept up;
`perhop.compare` runs both and tests whether they are equivalent.
"""

LIVE_RUNS = 4
SIMULATED_RUNS = 30
"""Simulated runs, as many as `perhop run` makes by default: beside runs in real time they cost little."""

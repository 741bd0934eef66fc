"""The papers' mechanisms under web, video, calls and short transfers, with profiles of customers.

These studies belong to no paper. Their claims are predictions: sentences that the runs can refute, written
before the runs, each with why one would expect it (`claims.toml`).
"""

from perhop.studies.workloads.calls import WORKLOADS_CALLS
from perhop.studies.workloads.profiles import WORKLOADS_PROFILES
from perhop.studies.workloads.short import WORKLOADS_SHORT

STUDIES = (WORKLOADS_PROFILES, WORKLOADS_CALLS, WORKLOADS_SHORT)

__all__ = ["STUDIES"]

"""Hurley and Le Boudec's paper on Asymmetric Best-Effort: Figures 2 to 5, and what they depend on.

P. Hurley, J.-Y. Le Boudec: "A proposal for an Asymmetric Best-Effort service"; with the later internet draft
by Hurley, Le Boudec, Thiran and Kara on duplicate scheduling with deadlines.
"""

from perhop.studies.hurley.alpha import ALPHA
from perhop.studies.hurley.delay import FIG3, FIG5
from perhop.studies.hurley.map import MAP
from perhop.studies.hurley.roundtrip import ROUNDTRIP
from perhop.studies.hurley.service import SERVICE
from perhop.studies.hurley.sweep import SWEEP
from perhop.studies.hurley.throughput import FIG2, FIG4

STUDIES = (FIG2, FIG3, FIG4, FIG5, SERVICE, ROUNDTRIP, ALPHA, SWEEP, MAP)

__all__ = ["MAP", "STUDIES"]

"""Bouras and Sevasti's paper on TCP-aware marking and dynamic WRED: figures, choices, parts, assumptions.

C. Bouras, A. Sevasti: "Performance enhancement of an AF service using TCP-aware marking and dynamic WRED".
"""

from perhop.studies.bouras.ablation import ABLATION
from perhop.studies.bouras.map import MAP
from perhop.studies.bouras.scenarios import FIG2, FIG3, FIG4, FIG5, GENERAL
from perhop.studies.bouras.settings import SETTINGS_STUDY

STUDIES = (FIG2, FIG3, FIG4, FIG5, GENERAL, SETTINGS_STUDY, ABLATION, MAP)

__all__ = ["MAP", "STUDIES"]

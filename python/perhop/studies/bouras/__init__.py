"""Bouras and Sevasti's paper on TCP-aware marking and dynamic WRED: figures, settings, which part does what.

C. Bouras, A. Sevasti: "Performance enhancement of an AF service using TCP-aware marking and dynamic WRED".
"""

from perhop.studies.bouras.ablation import ABLATION
from perhop.studies.bouras.scenarios import FIG2, FIG3, FIG4, FIG5
from perhop.studies.bouras.settings import SETTINGS_STUDY

STUDIES = (FIG2, FIG3, FIG4, FIG5, SETTINGS_STUDY, ABLATION)

__all__ = ["STUDIES"]

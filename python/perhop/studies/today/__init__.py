"""Today's mechanisms beside the papers': each paper's setting, a map of congestion controls, low delay.

These studies belong to no paper. Their claims are predictions: sentences that the runs can refute, written
before the runs, each with why one would expect it (`claims.toml`).
"""

from perhop.studies.today.bouras import TODAY_BOURAS
from perhop.studies.today.hurley import TODAY_HURLEY
from perhop.studies.today.kim import TODAY_KIM
from perhop.studies.today.low_delay import TODAY_ABE
from perhop.studies.today.mixes import TODAY_MAP
from perhop.studies.today.yeom import TODAY_YEOM

STUDIES = (TODAY_MAP, TODAY_ABE, TODAY_KIM, TODAY_YEOM, TODAY_HURLEY, TODAY_BOURAS)

__all__ = ["STUDIES"]

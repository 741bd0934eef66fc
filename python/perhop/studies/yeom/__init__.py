"""Yeom and Reddy's paper on throughput guarantees: Tables 1 to 3, Figures 3 to 12, and what they depend on.

I. Yeom, A. L. N. Reddy: "Realizing throughput guarantees in a differentiated services network".
"""

from perhop.studies.yeom.aggregates import FIG11, FIG12
from perhop.studies.yeom.fig3 import FIG3
from perhop.studies.yeom.map import MAP
from perhop.studies.yeom.other_rates import OTHER_RATES
from perhop.studies.yeom.rtt import TABLE2, TABLE3
from perhop.studies.yeom.sensitivity import SENSITIVITY
from perhop.studies.yeom.setting import SETTINGS
from perhop.studies.yeom.table1 import TABLE1
from perhop.studies.yeom.udp import FIG9, FIG10

STUDIES = (TABLE1, FIG3, FIG9, FIG10, TABLE2, TABLE3, FIG11, FIG12, SETTINGS, SENSITIVITY, OTHER_RATES, MAP)

__all__ = ["MAP", "STUDIES"]

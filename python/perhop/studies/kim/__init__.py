"""Kim, Park and Bahk's paper on RI+O: Table 1, Figures 2 and 3, and what they depend on.

H. Kim, W. H. Park, S. Bahk: "A modified RIO queue management scheme that reduces the bandwidth skew problem
in Assured Service".
"""

from perhop.studies.kim.best_rio import BEST_RIO
from perhop.studies.kim.expansion import REGIME
from perhop.studies.kim.fig2 import FIG2
from perhop.studies.kim.fig3 import FIG3
from perhop.studies.kim.map import MAP
from perhop.studies.kim.recovery import RECOVERY
from perhop.studies.kim.senders import SENDERS
from perhop.studies.kim.table1 import TABLE1

STUDIES = (TABLE1, FIG2, FIG3, REGIME, RECOVERY, BEST_RIO, SENDERS, MAP)

__all__ = ["MAP", "STUDIES"]

"""Kim, Park and Bahk's paper on RI+O: Table 1, Figures 2 and 3, and what they depend on.

H. Kim, W. H. Park, S. Bahk: "A modified RIO queue management scheme that reduces the bandwidth skew problem
in Assured Service".
"""

from perhop.studies.kim.best_rio import BEST_RIO
from perhop.studies.kim.fig2 import FIG2
from perhop.studies.kim.fig3 import FIG3, FIG3_QUEUE
from perhop.studies.kim.senders import SENDERS
from perhop.studies.kim.table1 import TABLE1
from perhop.studies.kim.variants import VARIED

STUDIES = (TABLE1, FIG2, FIG3, BEST_RIO, SENDERS, FIG3_QUEUE, VARIED)

__all__ = ["STUDIES"]

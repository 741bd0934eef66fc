//! Every registered block of this crate: AQMs, meters and schedulers. Applications and congestion controls
//! are registered in `perhop-sim`; `perhop_scenario::registered` lists the blocks of all five roles.

use crate::{BlockInfo, aqm, meter, scheduler};

/// Returns every registered AQM, meter and scheduler.
pub fn registry() -> impl Iterator<Item = BlockInfo> {
    aqm::registered().into_iter().chain(meter::registered()).chain(scheduler::registered())
}

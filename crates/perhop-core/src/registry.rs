//! Every registered block, of all roles.

use crate::{BlockInfo, aqm, meter, scheduler};

/// Every registered block.
pub fn registry() -> impl Iterator<Item = BlockInfo> {
    aqm::registered().into_iter().chain(meter::registered()).chain(scheduler::registered())
}

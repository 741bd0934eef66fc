//! A replay from the first packet to the last.

use std::io::Read;

use perhop_scenario::did_you_mean;
use perhop_sim::Watch;

use crate::arrivals::Arrivals;
use crate::driver::Driver;
use crate::error::ReplayError;
use crate::forwarded::Through;
use crate::ledger::{Ledger, Verdicts};
use crate::report::Report;
use crate::request::Plan;
use crate::simulated::Simulated;

/// What packets are handed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Meter, queue and link in virtual time, as in the simulator.
    #[default]
    Simulator,
    /// The data plane, which forwards the packets' bytes.
    DataPlane,
}

/// A caller that stops a replay is heard after so many packets.
const HEARD_EVERY: u64 = 4096;

/// Replays a capture. With `each`, what became of each packet is kept: its memory grows with the capture.
///
/// # Errors
/// The capture cannot be read to its end, has no packet to replay, or the replay was stopped.
pub fn replay<R: Read>(
    capture: R,
    plan: &Plan,
    by: By,
    each: bool,
    watch: &Watch,
) -> Result<(Report, Option<Verdicts>), ReplayError> {
    match by {
        By::Simulator => drive(capture, plan, Simulated::new(&plan.target, plan.seed), each, watch),
        By::DataPlane => drive(capture, plan, Through::new(&plan.target, plan.seed), each, watch),
    }
}

fn drive<R: Read>(
    capture: R,
    plan: &Plan,
    mut driver: impl Driver,
    each: bool,
    watch: &Watch,
) -> Result<(Report, Option<Verdicts>), ReplayError> {
    let mut arrivals = Arrivals::open(capture, plan.choice.clone())?;
    let mut ledger = Ledger::new(plan.target.link.as_ref().map(|link| link.rate), each);
    while let Some(arrival) = arrivals.read_next()? {
        let tag = ledger.arrive(&arrival);
        driver.arrive(&arrival, tag, &mut ledger)?;
        if tag.row.is_multiple_of(HEARD_EVERY) && watch.is_stopped() {
            return Err(ReplayError::Stopped);
        }
    }
    if ledger.all.arrived.packets == 0 {
        return Err(ReplayError::capture(nothing(&arrivals, plan.choice.interface.as_deref())));
    }
    driver.finish(&mut ledger)?;
    let view = driver.view();
    let unbalanced = view.iter().flat_map(|view| &view.classes).find_map(|(_, class)| class.balance().err());
    if let Some(problem) = unbalanced {
        return Err(ReplayError::Target(format!("perhop is at fault: {problem}")));
    }
    if !ledger.is_balanced() {
        return Err(ReplayError::Target("perhop is at fault: packets are not conserved".into()));
    }
    let report = Report::new(&arrivals, plan, &ledger, view.as_ref());
    Ok((report, ledger.verdicts))
}

/// Returns why no packet arrived.
fn nothing<R: Read>(arrivals: &Arrivals<R>, interface: Option<&str>) -> String {
    let row = arrivals.row();
    if row.packets == 0 {
        return "has no packets".into();
    }
    let names = arrivals.interface_names();
    if let Some(wanted) = interface.filter(|wanted| !names.contains(wanted)) {
        let hint = did_you_mean(wanted, names.iter().copied());
        let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let listed = if listed.is_empty() { "none has a name".into() } else { listed.join(", ") };
        return format!("has no interface `{wanted}`{hint} (interfaces: {listed})");
    }
    let chosen = [(row.outside, "outside the chosen time"), (row.unmatched, "not chosen")];
    let parts = chosen.into_iter().filter(|(packets, _)| *packets > 0).chain(row.left_out);
    let parts: Vec<String> = parts.map(|(packets, what)| format!("{packets} {what}")).collect();
    format!("has no packet to replay; of those read: {}", parts.join(", "))
}

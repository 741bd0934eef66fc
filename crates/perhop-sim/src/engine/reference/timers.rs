//! Timers: for each flow, the next time at which it does something by itself.

use std::collections::BTreeSet;

use perhop_core::Instant;

/// One timer for each flow, by number.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// [`Instant::NEVER`] for a timer that is not set.
    expiry: Vec<Instant>,
    set: BTreeSet<(Instant, usize)>,
}

impl Timers {
    /// Timers for so many flows, none of them set.
    pub(super) fn for_flows(flows: usize) -> Self {
        Self { expiry: vec![Instant::NEVER; flows], set: BTreeSet::new() }
    }

    /// Adds the timer of one flow more, not set.
    pub(super) fn add(&mut self) {
        self.expiry.push(Instant::NEVER);
    }

    /// Sets a flow's timer, in place of its earlier setting; [`Instant::NEVER`] stops it.
    pub(super) fn set(&mut self, flow: usize, at: Instant) {
        let before = std::mem::replace(&mut self.expiry[flow], at);
        if before == at {
            return;
        }
        self.set.remove(&(before, flow));
        if at != Instant::NEVER {
            self.set.insert((at, flow));
        }
    }

    /// The time of the next expiry.
    pub(super) fn next(&self) -> Option<Instant> {
        self.set.first().map(|&(at, _)| at)
    }

    /// The next flow whose timer expires by `now`. Its timer is no longer set.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let &(at, flow) = self.set.first().filter(|&&(at, _)| at <= now)?;
        self.set.remove(&(at, flow));
        self.expiry[flow] = Instant::NEVER;
        Some(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_expires_at_its_last_setting_and_flows_of_one_time_in_order() {
        let at = Instant::from_nanos;
        let mut timers = Timers::for_flows(3);
        for (flow, nanos) in [(2, 5), (0, 9), (0, 5), (1, 3), (1, 7)] {
            timers.set(flow, at(nanos));
        }
        assert_eq!((timers.next(), timers.pop_due(at(4))), (Some(at(5)), None));
        assert_eq!(
            [timers.pop_due(at(6)), timers.pop_due(at(6)), timers.pop_due(at(6))],
            [Some(0), Some(2), None]
        );
        timers.set(1, Instant::NEVER);
        assert_eq!(timers.next(), None);
    }
}

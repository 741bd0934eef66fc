//! Reno's congestion control: RFC 5681, section 3.1.
//!
//! How Reno and `NewReno` recover from losses is the sender's.

#![expect(clippy::inline_always, reason = "it is a part of the sender's short way")]

use perhop_core::{Block, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::acts_by_its_window;
use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, FormerKey, Setup, Window};

/// The parts of the window that a loss and, with `ecn-backoff`, a mark leave.
const BY_LOSS: f64 = 0.5;
const BY_MARK: f64 = 0.8;

/// Parameters of Reno's congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RenoParams {
    /// Where ECN is in use (the flow's key `ecn`): a marked packet leaves 80 % of the window, more than a
    /// lost one (RFC 8511, Alternative Backoff with ECN).
    pub ecn_backoff: bool,
}

/// Additive increase, multiplicative decrease.
///
/// ## Deviations
/// - After a loss the window is halved from min(cwnd, receiver's window), not from the flight size of RFC
///   5681 (4): the two agree for a source that always has data.
/// - A second timeout in a row halves the threshold again, where RFC 5681 holds it.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
}

impl Block for Reno {
    type Params = RenoParams;
    const NAME: &'static str = "reno";
    const SUMMARY: &'static str = "One segment more each round trip, half the window after a loss";
    const ORIGIN: Origin = Origin::published(1990, "RFC 5681, section 3.1").in_linux("reno", "2.6.13");
}

impl Algorithm for Reno {
    const BYTE_COUNTING: bool = true;
    const FORMER_KEYS: &'static [FormerKey] = &[FormerKey::moved("ecn-backoff")];

    fn new(setup: &Setup, params: &RenoParams) -> Self {
        Self { window: Window::new(setup).with_ecn_backoff(params.ecn_backoff) }
    }

    fn key_of_marks(params: &RenoParams) -> Option<&'static str> {
        params.ecn_backoff.then_some("ecn-backoff")
    }
}

impl CongestionControl for Reno {
    #[inline(always)]
    fn on_ack(&mut self, ack: &AckSample) {
        self.window.grow(ack.delivered);
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.window.reduce_to(event.window * BY_LOSS);
    }

    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        let left = self.window.left_by_mark(BY_LOSS, BY_MARK);
        self.window.reduce_to(event.window * left);
    }

    acts_by_its_window!();
}

#[cfg(test)]
impl Reno {
    /// The slow-start threshold.
    pub(super) fn threshold(&self) -> f64 {
        self.window.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, begin, loss, setup};
    use super::*;

    #[test]
    fn slow_start_adds_one_for_each_ack_and_congestion_avoidance_one_for_each_window() {
        let mut reno = begin::<Reno>(&Setup { window: 2.0, threshold: 4.0, ..setup() });
        reno.on_ack(&ack(1));
        reno.on_ack(&ack(2)); // An ACK of two segments is one ACK.
        assert_eq!(reno.window(), 4.0);
        reno.on_ack(&ack(1));
        assert_eq!(reno.window(), 4.25);
        reno.on_ack(&ack(1));
        assert_eq!(reno.window(), 4.25 + 1.0 / 4.25);
    }

    #[test]
    fn byte_counting_grows_by_segments_across_the_threshold() {
        let mut reno = begin::<Reno>(&Setup { window: 3.0, threshold: 4.0, counts_acks: false, ..setup() });
        // One of three segments takes the window to the threshold; the two others add 2/4.
        reno.on_ack(&ack(3));
        assert_eq!(reno.window(), 4.5);
    }

    #[test]
    fn a_loss_halves_the_window_in_force_and_a_timeout_begins_again() {
        let mut reno = begin::<Reno>(&Setup { window: 40.0, ..setup() });
        reno.on_loss(&loss(30.0));
        assert_eq!((reno.window(), reno.window.threshold), (15.0, 15.0));
        reno.on_loss(&loss(3.0));
        assert_eq!(reno.window(), 2.0, "two segments at least");
        reno.on_timeout(&loss(20.0));
        assert_eq!((reno.window(), reno.window.threshold), (1.0, 10.0));
    }

    #[test]
    fn a_mark_is_as_a_loss_or_leaves_more_by_rfc_8511_in_congestion_avoidance() {
        for (ecn_backoff, threshold, window, left) in [
            (false, 1.0, 40.0, 20.0),
            (true, 1.0, 40.0, 32.0),
            (true, 1.0, 3.0, 3.0 * 0.8),
            (true, 50.0, 40.0, 20.0),
        ] {
            let mut reno = Reno::new(&Setup { window, threshold, ..setup() }, &RenoParams { ecn_backoff });
            reno.on_congestion_experienced(&loss(window));
            assert_eq!(reno.window(), left);
            let mut reno = Reno::new(&Setup { window, threshold, ..setup() }, &RenoParams { ecn_backoff });
            reno.on_loss(&loss(window));
            assert_eq!(reno.window(), (window / 2.0).max(2.0));
        }
    }

    #[test]
    fn the_receivers_window_is_the_limit() {
        let mut reno = begin::<Reno>(&Setup { window: 9.95, most: 10, ..setup() });
        reno.on_ack(&ack(1));
        assert_eq!(reno.window(), 10.0);
    }
}

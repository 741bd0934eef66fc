//! Data Center TCP: RFC 8257, sections 3.3 to 3.5.
//!
//! How the receiver echoes each mark (section 3.2) is the [receiver](crate::transport::tcp::TcpReceiver)'s.

use perhop_core::units::{UnitError, require};
use perhop_core::{Block, Origin, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::acts_by_its_window;
use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, FormerKey, Needs, Setup, Window};

/// The part of the window that a loss leaves (section 3.5).
const BY_LOSS: f64 = 0.5;

/// Parameters of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DctcpParams {
    /// The weight g of the last window in the estimate of the share of marked packets, above 0 (1/16: RFC
    /// 8257, section 4.2).
    pub estimation_gain: Probability,
}

impl Default for DctcpParams {
    fn default() -> Self {
        Self { estimation_gain: Probability::new(1.0 / 16.0).expect("a probability") }
    }
}

/// DCTCP: marks shrink the window by half the share of packets that are marked.
///
/// ## Deviations
/// - Windows of observation and reductions are counted in segments, not in bytes: all are full.
/// - The first mark of a window reduces it at once, by the estimate up to then, as Linux does; by section
///   3.3, step 9, the reduction follows the estimate's next update.
/// - What an ACK reports as marked does not increase the window (RFC 3168, section 6.1.2).
/// - An ACK that waits is merged with that of a segment out of order, even if only one of them was marked.
/// - An alpha below 1/64 stays as it is; Linux, which keeps it in 1/1024, makes it 0.
/// - Segments that arrive during a recovery from losses do not count in the estimate.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: Window,
    estimate: MarkedShare,
}

impl Block for Dctcp {
    type Params = DctcpParams;
    const NAME: &'static str = "dctcp";
    const SUMMARY: &'static str =
        "Marks reduce the window by half the share of packets that are marked, losses by half";
    const ORIGIN: Origin = Origin::published(2010, "RFC 8257").in_linux("dctcp", "3.18");

    fn check(params: &DctcpParams) -> Result<(), UnitError> {
        let why = "the gain is above 0 and at most 1, such as 0.0625";
        require(params.estimation_gain.get() > 0.0, "estimation-gain", why)
    }
}

impl Algorithm for Dctcp {
    const BYTE_COUNTING: bool = true;
    const NEEDS: Needs = Needs { marks: true, ..Needs::NOTHING };
    const FORMER_KEYS: &'static [FormerKey] = &[FormerKey::moved("estimation-gain")];

    fn new(setup: &Setup, params: &DctcpParams) -> Self {
        Self { window: Window::new(setup), estimate: MarkedShare::new(params.estimation_gain.get()) }
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, ack: &AckSample) {
        self.estimate.take(ack);
        if ack.marked < ack.delivered {
            self.window.grow(ack.delivered - ack.marked);
        }
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.window.reduce_to(event.window * BY_LOSS);
    }

    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        self.window.reduce_to(event.window * (1.0 - self.estimate.alpha / 2.0));
    }

    acts_by_its_window!();
}

/// The share of segments that are marked, averaged over windows (section 3.3).
#[derive(Clone, Debug)]
struct MarkedShare {
    /// `DCTCP.Alpha`. Before the first estimate all segments count as marked (section 4.2).
    alpha: f64,
    /// g: the weight of the last window.
    gain: f64,
    /// `DCTCP.BytesAcked` and `DCTCP.BytesMarked` of this window of observation.
    acked: u32,
    marked: u32,
    /// `DCTCP.WindowEnd`.
    ends: u32,
}

impl MarkedShare {
    fn new(gain: f64) -> Self {
        Self { alpha: 1.0, gain, acked: 0, marked: 0, ends: 0 }
    }

    fn take(&mut self, ack: &AckSample) {
        self.acked += ack.delivered;
        self.marked += ack.marked.min(ack.delivered);
        if ack.acked > self.ends {
            let share = f64::from(self.marked) / f64::from(self.acked.max(1));
            self.alpha = (1.0 - self.gain) * self.alpha + self.gain * share;
            (self.acked, self.marked, self.ends) = (0, 0, ack.acked + ack.in_flight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, begin, loss, setup};
    use super::*;

    /// A window of ten segments, so many of them marked, and then one that ends it.
    fn after(estimate: &mut MarkedShare, marked: u32) -> f64 {
        let acked = estimate.ends + 1;
        estimate.take(&AckSample { acked, marked, in_flight: 9, ..ack(10) });
        estimate.alpha
    }

    #[test]
    fn alpha_averages_the_share_of_marked_segments_window_by_window() {
        let mut estimate = MarkedShare::new(1.0 / 16.0);
        let mut alpha = [0, 0, 5, 10].map(|marked| after(&mut estimate, marked)).to_vec();
        estimate.take(&AckSample { acked: estimate.ends + 1, marked: 1, in_flight: 9, ..ack(4) });
        alpha.push(estimate.alpha);
        alpha.extend([0; 3].map(|marked| after(&mut estimate, marked)));
        let expected = [
            0.9375,
            0.878_906_25,
            0.855_224_609_375,
            0.864_273_071_289_062_5,
            0.825_881_004_333_496_1,
            0.774_263_441_562_652_6,
            0.725_871_976_464_986_8,
            0.680_504_977_935_925_1,
        ];
        for (alpha, expected) in alpha.into_iter().zip(expected) {
            assert!((alpha - expected).abs() <= 1e-12 * expected, "{alpha} {expected}");
        }
    }

    #[test]
    fn alpha_is_that_of_linux_less_what_linux_truncates() {
        // Linux keeps 1024ths, of which each window takes off the whole part of a sixteenth: up to one too
        // little.
        let windows = [(10, 0), (20, 0), (40, 20), (40, 40), (40, 10), (40, 0), (40, 0), (40, 0)];
        let linux = [960.0, 900.0, 876.0, 886.0, 847.0, 795.0, 746.0, 700.0];
        let mut estimate = MarkedShare::new(1.0 / 16.0);
        for (number, ((delivered, marked), theirs)) in windows.into_iter().zip(linux).enumerate() {
            let acked = estimate.ends + 1;
            estimate.take(&AckSample { acked, marked, in_flight: 9, ..ack(delivered) });
            let truncated = theirs - estimate.alpha * 1024.0;
            assert!((0.0..=number as f64).contains(&truncated), "window {number}: {truncated}");
        }
    }

    #[test]
    fn the_gain_is_the_weight_of_the_last_window() {
        let mut estimate = MarkedShare::new(0.25);
        assert_eq!([0, 10, 5].map(|marked| after(&mut estimate, marked)), [0.75, 0.8125, 0.734_375]);
    }

    #[test]
    fn a_window_of_observation_ends_beyond_what_had_been_sent_when_it_began() {
        let mut estimate = MarkedShare::new(1.0 / 16.0);
        estimate.take(&AckSample { acked: 1, in_flight: 9, ..ack(1) });
        assert_eq!((estimate.alpha, estimate.ends), (0.9375, 10));
        for acked in 2..=10 {
            estimate.take(&AckSample { acked, in_flight: 10, marked: 1, ..ack(1) });
            assert_eq!(estimate.alpha, 0.9375);
        }
        estimate.take(&AckSample { acked: 11, in_flight: 10, ..ack(1) });
        assert_eq!((estimate.alpha, estimate.ends), (0.9375 * 0.9375 + 0.9 / 16.0, 21));
    }

    #[test]
    fn a_mark_takes_half_of_alpha_and_a_loss_half_of_the_window() {
        for (alpha, window, left) in
            [(1.0, 40.0, 20.0), (0.5, 40.0, 30.0), (0.1, 40.0, 38.0), (1.0, 3.0, 2.0)]
        {
            let mut dctcp = begin::<Dctcp>(&setup());
            dctcp.estimate.alpha = alpha;
            dctcp.on_congestion_experienced(&loss(window));
            assert_eq!((dctcp.window(), dctcp.window.threshold), (left, left));
            dctcp.on_loss(&loss(window));
            assert_eq!(dctcp.window(), (window / 2.0).max(2.0), "whatever alpha is");
        }
    }

    #[test]
    fn what_was_marked_does_not_increase_the_window() {
        let mut dctcp = begin::<Dctcp>(&Setup { counts_acks: false, ..setup() });
        dctcp.on_ack(&AckSample { marked: 2, ..ack(2) });
        assert_eq!(dctcp.window(), 10.0);
        dctcp.on_ack(&AckSample { marked: 1, ..ack(3) });
        assert_eq!(dctcp.window(), 10.2);
    }
}

//! Kelly 2003, "Scalable TCP: improving performance in highspeed wide area networks", section 3.

use perhop_core::{Block, Origin};

use super::window::acts_by_its_window;
use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, NoParams, Setup, Window};

/// 1/a: ACKs that add a segment to the window.
const PER_SEGMENT: f64 = 100.0;
/// 1 - b: the part of the window that a loss leaves.
const LEFT: f64 = 7.0 / 8.0;
/// lwnd: a window up to this grows and shrinks as Reno's.
const LEGACY_WINDOW: f64 = 16.0;

/// Scalable TCP: the number of round trips in which the window recovers from a loss does not depend on its
/// size.
///
/// ## Deviations
/// - Linux adds 1/min(cwnd, 100) for each ACK and leaves 7/8 at every window; here, as in the paper, the
///   legacy window decides.
#[derive(Clone, Debug)]
pub struct Scalable {
    window: Window,
}

impl Block for Scalable {
    type Params = NoParams;
    const NAME: &'static str = "scalable";
    const SUMMARY: &'static str =
        "0.01 segments more for each ACK, 7/8 of the window after a loss; up to 16 segments, as Reno";
    const ORIGIN: Origin = Origin::published(2003, "Kelly 2003, section 3").in_linux("scalable", "2.6.13");
}

impl Algorithm for Scalable {
    const BYTE_COUNTING: bool = true;

    fn new(setup: &Setup, _: &NoParams) -> Self {
        Self { window: Window::new(setup) }
    }
}

impl CongestionControl for Scalable {
    fn on_ack(&mut self, ack: &AckSample) {
        let left = self.window.slow_start(ack.delivered);
        if left > 0.0 {
            let now = self.window.now;
            self.window.avoid_congestion(left, if now > LEGACY_WINDOW { PER_SEGMENT } else { now });
        }
        self.window.limit();
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        let left = if event.window > LEGACY_WINDOW { LEFT } else { 0.5 };
        self.window.reduce_to(event.window * left);
    }

    acts_by_its_window!();
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, begin, loss, setup};
    use super::*;

    #[test]
    fn above_the_legacy_window_each_ack_adds_a_hundredth() {
        let mut scalable = begin::<Scalable>(&Setup { window: 200.0, ..setup() });
        scalable.on_ack(&ack(1));
        assert_eq!(scalable.window(), 200.01);
        let mut by_segments = begin::<Scalable>(&Setup { window: 200.0, counts_acks: false, ..setup() });
        by_segments.on_ack(&ack(2));
        assert_eq!(by_segments.window(), 200.02);
    }

    #[test]
    fn a_loss_leaves_seven_eighths() {
        let mut scalable = begin::<Scalable>(&setup());
        scalable.on_loss(&loss(200.0));
        assert_eq!(scalable.window(), 175.0);
        scalable.on_timeout(&loss(80.0));
        assert_eq!((scalable.window(), scalable.window.threshold), (1.0, 70.0));
    }

    #[test]
    fn up_to_the_legacy_window_it_is_reno() {
        let mut scalable = begin::<Scalable>(&Setup { window: 16.0, ..setup() });
        scalable.on_ack(&ack(1));
        assert_eq!(scalable.window(), 16.0625);
        scalable.on_ack(&ack(1));
        assert_eq!(scalable.window(), 16.0725, "above it by then");
        scalable.on_loss(&loss(16.0));
        assert_eq!(scalable.window(), 8.0);
    }

    #[test]
    fn a_window_recovers_in_the_same_number_of_round_trips_whatever_its_size() {
        // From 7/8 back to the whole: ln(8/7) / ln(1.01) = 13.4 round trips of one ACK for each segment.
        for size in [200.0, 2000.0] {
            let mut scalable = begin::<Scalable>(&Setup { most: 9999, ..setup() });
            scalable.on_loss(&loss(size));
            let mut trips = 0;
            while scalable.window() < size {
                (0..scalable.window() as u32).for_each(|_| scalable.on_ack(&ack(1)));
                trips += 1;
            }
            assert_eq!(trips, 14, "{size}");
        }
    }
}

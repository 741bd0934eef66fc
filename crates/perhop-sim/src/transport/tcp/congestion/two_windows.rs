//! Two-windows TCP: Yeom & Reddy 1999, figure 7.

use perhop_core::{Block, Color, Origin};

use super::window::acts_by_its_window;
use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, Needs, NoParams, Setup, Window};

/// Reno that keeps its reserved window: the loss of an OUT packet halves only what is beyond it, the loss of
/// an IN packet the whole window.
///
/// ## Deviations
/// - The color is that of the first segment that is missing, and the window is lowered at most once a
///   recovery.
/// - The reserved window is the smoothed round-trip time, as the coarse clock sees it, times the reserved
///   rate. Without a reserved rate this is Reno, packet by packet.
/// - The paper knows no marks: they count as the loss of the first segment that is not acknowledged.
/// - The paper does not say what a timeout does: here the threshold follows the same rule.
#[derive(Clone, Debug)]
pub struct TwoWindows {
    window: Window,
    /// The reserved rate in bit/s, and the bits of a segment.
    reserved: f64,
    segment: f64,
}

impl Block for TwoWindows {
    type Params = NoParams;
    const NAME: &'static str = "two-windows";
    const SUMMARY: &'static str =
        "Reno that keeps its reserved window where an OUT packet is lost, and halves the rest";
    const ORIGIN: Origin = Origin::paper(1999, "Yeom & Reddy 1999, figure 7");
}

impl Algorithm for TwoWindows {
    const READS_RESERVED_RATE: bool = true;
    const BYTE_COUNTING: bool = true;
    const NEEDS: Needs = Needs { colors: true, ..Needs::NOTHING };

    fn new(setup: &Setup, _: &NoParams) -> Self {
        Self {
            window: Window::new(setup),
            reserved: setup.reserved.map_or(0.0, |rate| rate.as_bps() as f64),
            segment: setup.packet.bits() as f64,
        }
    }
}

impl CongestionControl for TwoWindows {
    fn on_ack(&mut self, ack: &AckSample) {
        self.window.grow(ack.delivered);
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        let kept = match event.color {
            Color::Green => 0.0,
            Color::Yellow | Color::Red => self.reserved_window(event.smoothed_rtt).min(event.window),
        };
        self.window.reduce_to(kept + (event.window - kept) / 2.0);
    }

    acts_by_its_window!();
}

impl TwoWindows {
    /// rwnd = round-trip time x reserved rate, in segments.
    fn reserved_window(&self, rtt: f64) -> f64 {
        rtt * self.reserved / self.segment
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, begin, loss, setup};
    use super::*;
    use perhop_core::Bytes;

    fn with_reserved(rate: Option<&str>) -> TwoWindows {
        let reserved = rate.map(|rate| rate.parse().unwrap());
        begin::<TwoWindows>(&Setup { window: 12.0, packet: Bytes::new(1000), reserved, ..setup() })
    }

    #[test]
    fn a_loss_decreases_as_figure_7_says() {
        // A round trip of 100 ms at 0.4 Mbit/s reserves 5 segments of 1000 bytes. With a window of 12 and an
        // OUT packet lost: 5 + 7/2; with an IN packet lost: 6. With 2 Mbit/s reserved (25 segments): no
        // reduction at all. A tick of 100 ms takes round trips of 64 ms for 100 ms: 0.8 Mbit/s reserve 10
        // segments in place of 6.4: 10 + 2/2.
        for (rate, color, left) in [
            ("0.4Mbps", Color::Yellow, 8.5),
            ("0.4Mbps", Color::Red, 8.5),
            ("0.4Mbps", Color::Green, 6.0),
            ("0.8Mbps", Color::Yellow, 11.0),
            ("2Mbps", Color::Yellow, 12.0),
        ] {
            let mut control = with_reserved(Some(rate));
            control.on_loss(&CongestionEvent { color, smoothed_rtt: 0.1, ..loss(12.0) });
            assert!((control.window() - left).abs() < 1e-12, "{rate} {color:?}: {}", control.window());
        }
    }

    #[test]
    fn without_a_reserved_rate_it_is_reno() {
        let (mut control, mut reno) =
            (with_reserved(None), begin::<super::super::Reno>(&Setup { window: 12.0, ..setup() }));
        for step in 0..200 {
            if step % 50 == 49 {
                let window = control.window();
                control.on_loss(&CongestionEvent { color: Color::Yellow, ..loss(window) });
                reno.on_loss(&loss(window));
            } else {
                control.on_ack(&ack(1 + step % 2));
                reno.on_ack(&ack(1 + step % 2));
            }
            assert_eq!(control.window(), reno.window());
        }
    }
}

//! What tests of congestion controls share, and what holds for every registered one.

use super::*;
use perhop_core::Duration;
use proptest::prelude::*;

/// A connection that has been open for long: congestion avoidance from a window of ten.
pub(super) fn setup() -> Setup {
    Setup {
        window: 10.0,
        threshold: 1.0,
        most: 1000,
        counts_acks: true,
        packet: Bytes::new(1000),
        reserved: None,
        ecn_backoff: false,
    }
}

/// An ACK of so many segments.
pub(super) fn ack(delivered: u32) -> AckSample {
    AckSample {
        now: Instant::ZERO,
        delivered,
        marked: 0,
        acked: 0,
        in_flight: 10,
        smoothed_rtt: 0.1,
        delivery: None,
    }
}

/// A loss while this window is in force.
pub(super) fn loss(window: f64) -> CongestionEvent {
    CongestionEvent { now: Instant::ZERO, window, smoothed_rtt: 0.1, color: Color::Green }
}

/// Reno's window, sent at twice the rate that the network delivers; before that is known, at 100 kbit/s.
#[derive(Clone, Debug)]
pub(in crate::transport::tcp) struct Paced {
    reno: Reno,
    packet: Bytes,
    rate: Bitrate,
    rounds: u64,
}

impl Algorithm for Paced {
    const NAME: &'static str = "paced";
    const SUMMARY: &'static str = "Reno's window, paced by delivery rates";
    const SOURCE: &'static str = "a stand-in of the tests";
    const NEEDS: Needs = Needs { delivery: true, pacing: true, ..Needs::NOTHING };

    fn new(setup: &Setup) -> Self {
        let rate = "100kbps".parse().unwrap();
        Self { reno: Reno::new(setup), packet: setup.packet, rate, rounds: 0 }
    }
}

impl CongestionControl for Paced {
    fn on_ack(&mut self, ack: &AckSample) {
        self.reno.on_ack(ack);
        let Some(sample) = ack.delivery else { return };
        assert!(sample.delivered >= 1 && sample.round >= self.rounds);
        self.rounds = sample.round;
        let bits = u128::from(sample.delivered * self.packet.bits());
        let nanos = u128::from(sample.interval.as_nanos().max(1));
        self.rate = Bitrate::from_bps((2 * bits * 1_000_000_000 / nanos).max(1) as u64).unwrap();
    }
    fn on_loss(&mut self, event: &CongestionEvent) {
        self.reno.on_loss(event);
    }
    fn window(&self) -> f64 {
        self.reno.window()
    }
    fn set_window(&mut self, window: f64) {
        self.reno.set_window(window);
    }
    fn pacing_rate(&self) -> Option<Bitrate> {
        Some(self.rate)
    }
}

impl AnyCongestion {
    /// Reno's slow-start threshold.
    pub(in crate::transport::tcp) fn threshold(&self) -> f64 {
        match self {
            Self::Reno(reno) => reno.threshold(),
            control => panic!("{control:?} is not Reno"),
        }
    }
}

#[test]
fn names_are_unique_and_survive_a_round_trip() {
    for (place, control) in Congestion::ALL.iter().enumerate() {
        let info = control.info();
        assert_eq!(Congestion::NAMES[place], info.name);
        assert!(!Congestion::NAMES[..place].contains(&info.name), "{}", info.name);
        assert!(!info.summary.is_empty() && !info.source.is_empty() && !info.summary.ends_with('.'));
        let written = serde_json::to_string(control).unwrap();
        assert_eq!(written, format!("\"{}\"", info.name));
        assert_eq!(serde_json::from_str::<Congestion>(&written).unwrap(), *control);
    }
    assert_eq!(Congestion::default().info().name, "reno");
}

#[test]
fn an_unknown_name_is_told_from_the_known_ones() {
    let refused = serde_json::from_str::<Congestion>("\"qubic\"").unwrap_err().to_string();
    assert!(refused.contains("unknown variant `qubic`, expected one of `reno`, `cubic`"), "{refused}");
}

proptest! {
    /// Whatever happens, every control keeps its window between one segment and the receiver's window (two where that is
    /// one), grows on ACKs in slow start, and comes out of a loss with no more than it had.
    #[test]
    fn every_control_keeps_its_window_within_bounds(
        number in 0..Congestion::ALL.len(),
        (most, first, counts_acks) in (1_u32..300, 1_u32..20, any::<bool>()),
        steps in prop::collection::vec((0_u8..12, 1_u32..20, 0_u64..400), 1..200),
    ) {
        let setup = Setup {
            window: f64::from(first.min(most)),
            threshold: f64::from(most),
            most,
            counts_acks,
            reserved: Some("1Mbps".parse().unwrap()),
            ..setup()
        };
        let mut control = Congestion::ALL[number].build(&setup);
        let most = f64::from(most);
        let mut now = Instant::ZERO;
        for (what, delivered, millis) in steps {
            now += Duration::from_millis(millis);
            let before = control.window();
            let event = CongestionEvent { now, color: Color::Yellow, ..loss(before.min(most)) };
            match what {
                0 => control.on_loss(&event),
                1 => control.on_timeout(&event),
                2 => control.on_congestion_experienced(&event),
                _ => {
                    control.take(|_| AckSample { now, ..ack(delivered) });
                }
            }
            let after = control.window();
            prop_assert!(after.is_finite() && (1.0..=most.max(2.0)).contains(&after), "{control:?}");
            match what {
                0 | 2 => prop_assert!(after <= before.max(2.0), "{control:?}"),
                1 => prop_assert_eq!(after, 1.0),
                _ => prop_assert!(after >= before.min(most), "{control:?}"),
            }
        }
    }
}

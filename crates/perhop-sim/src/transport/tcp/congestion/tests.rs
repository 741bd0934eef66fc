//! What tests of congestion controls share, and what holds for every registered one.

use std::collections::VecDeque;

use super::*;
use crate::transport::tcp::sender::delivery::DeliveryRate;
use perhop_core::Duration;
use proptest::prelude::*;

/// A connection that has been open for long: congestion avoidance from a window of ten.
pub(super) fn setup() -> Setup {
    Setup {
        tcp: Variant::NewReno,
        window: 10.0,
        threshold: 1.0,
        most: 1000,
        counts_acks: true,
        packet: Bytes::new(1000),
        reserved: None,
        whole_segments: false,
        selective_acks: true,
        seed: 1,
    }
}

/// A new connection's control, with the defaults of its parameters.
pub(super) fn begin<C: Algorithm<Params: Default>>(setup: &Setup) -> C {
    C::new(setup, &Default::default())
}

/// An ACK of so many segments.
pub(super) fn ack(delivered: u32) -> AckSample {
    AckSample {
        now: Instant::ZERO,
        delivered,
        marked: 0,
        acked: 0,
        in_flight: 10,
        pipe: 10,
        lost: 0,
        recovering: false,
        smoothed_rtt: 0.1,
        delivery: None,
    }
}

/// A loss while this window is in force.
pub(super) fn loss(window: f64) -> CongestionEvent {
    CongestionEvent { now: Instant::ZERO, window, smoothed_rtt: 0.1, color: Color::Green }
}

/// A control on a path by itself: a link with a queue, an ACK for each segment, and losses known with the ACK
/// that is missing.
pub(super) struct Path<C> {
    pub(super) control: C,
    now: u64,
    /// The round trip without a queue, and the time that the link takes for a segment of 1500 bytes.
    rtt: u64,
    service: u64,
    /// Segments that the queue holds.
    limit: u64,
    free_at: u64,
    paced_until: u64,
    next: u32,
    /// Segments on their way: the number of each, the time of its ACK, and whether it is lost.
    flight: VecDeque<(u32, u64, bool)>,
    delivery: DeliveryRate,
    /// Recovery ends with the ACK of this.
    recover: u32,
    lost: u32,
}

impl<C: CongestionControl + std::fmt::Debug> Path<C> {
    pub(super) fn new(control: C, bps: f64, rtt: f64) -> Self {
        let mut path = Self {
            control,
            now: 0,
            rtt: (rtt * 1e9) as u64,
            service: 0,
            limit: u64::MAX,
            free_at: 0,
            paced_until: 0,
            next: 0,
            flight: VecDeque::new(),
            delivery: DeliveryRate::default(),
            recover: 0,
            lost: 0,
        };
        path.set_rate(bps);
        path
    }

    pub(super) fn set_rate(&mut self, bps: f64) {
        self.service = (12_000.0 / bps * 1e9) as u64;
    }

    pub(super) fn set_limit(&mut self, segments: u64) {
        self.limit = segments;
    }

    pub(super) fn seconds(&self) -> f64 {
        self.now as f64 * 1e-9
    }

    /// Segments in flight.
    pub(super) fn pipe(&self) -> u32 {
        self.flight.len() as u32
    }

    /// Runs until an ACK after which this holds, for a minute at most.
    pub(super) fn run_until(&mut self, holds: impl Fn(&C) -> bool) {
        while !holds(&self.control) {
            self.step();
            assert!(self.seconds() < 60.0, "it does not come to that: {:?}", self.control);
        }
    }

    /// Runs so many seconds, with a look after each event.
    pub(super) fn run_for(&mut self, seconds: f64, mut look: impl FnMut(&C)) {
        let until = self.seconds() + seconds;
        while self.seconds() < until {
            self.step();
            look(&self.control);
        }
    }

    fn step(&mut self) {
        let sends = self.pipe() < self.control.window() as u32;
        let sends_at = if sends { self.now.max(self.paced_until) } else { u64::MAX };
        match self.flight.front() {
            Some(&(sequence, at, is_lost)) if at <= sends_at => {
                self.flight.pop_front();
                self.now = at;
                self.take(sequence, is_lost);
            }
            _ => {
                self.now = sends_at;
                self.send();
            }
        }
    }

    fn send(&mut self) {
        let is_lost = self.free_at.saturating_sub(self.now) > self.limit.saturating_mul(self.service);
        if !is_lost {
            self.free_at = self.free_at.max(self.now) + self.service;
        }
        let in_flight = self.pipe() + 1;
        self.delivery.on_sent(self.next, in_flight == 1, in_flight, Instant::from_nanos(self.now));
        self.flight.push_back((self.next, self.free_at.max(self.now) + self.rtt, is_lost));
        self.next += 1;
        if let Some(rate) = self.control.pacing_rate() {
            self.paced_until = self.now.max(self.paced_until) + rate.time_of(Bytes::new(1500)).as_nanos();
        }
    }

    fn take(&mut self, sequence: u32, is_lost: bool) {
        let now = Instant::from_nanos(self.now);
        if is_lost {
            let lost = self.delivery.on_lost(sequence, now).unwrap();
            self.lost += 1;
            self.control.on_lost(&lost);
            if sequence >= self.recover {
                self.recover = self.next;
                self.control.on_loss(&CongestionEvent { now, ..loss(self.control.window()) });
            }
            return;
        }
        self.delivery.on_delivered(sequence, now);
        let delivery = self.delivery.sample(sequence + 1, now);
        let (lost, recovering) = (std::mem::take(&mut self.lost), sequence + 1 < self.recover);
        let smoothed_rtt = self.rtt as f64 * 1e-9;
        let (pipe, acked) = (self.pipe(), sequence + 1);
        let sample = AckSample { now, acked, pipe, lost, recovering, smoothed_rtt, delivery, ..ack(1) };
        self.control.on_ack(&AckSample { in_flight: pipe, ..sample });
    }
}

/// Reno's window, sent at twice the rate that the network delivers; before that is known, at 100 kbit/s.
#[derive(Clone, Debug)]
pub(in crate::transport::tcp) struct Paced {
    reno: Reno,
    packet: Bytes,
    rate: Bitrate,
    rounds: u64,
}

impl Block for Paced {
    type Params = NoParams;
    const NAME: &'static str = "paced";
    const SUMMARY: &'static str = "Reno's window, paced by delivery rates";
    const ORIGIN: Origin = Origin::published(2000, "a stand-in of the tests");
}

impl Algorithm for Paced {
    const NEEDS: Needs = Needs { delivery: true, pacing: true, ..Needs::NOTHING };

    fn new(setup: &Setup, _: &NoParams) -> Self {
        let rate = "100kbps".parse().unwrap();
        Self { reno: begin(setup), packet: setup.packet, rate, rounds: 0 }
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
    let all: Vec<_> = CongestionParams::all().collect();
    assert_eq!(all.len() + 1, CongestionParams::NAMES.len(), "all but that of a class");
    for (place, control) in all.into_iter().enumerate() {
        let (name, block) = (control.name(), &registered()[place]);
        assert_eq!((CongestionParams::NAMES[place], block.name), (name, name));
        assert!(!CongestionParams::NAMES[..place].contains(&name), "{name}");
        assert!(
            !block.summary.is_empty() && !block.origin.source.is_empty() && !block.summary.ends_with('.')
        );
        let key = Congestion(control);
        let written = serde_json::to_string(&key).unwrap();
        assert_eq!(written, format!("\"{name}\""));
        assert_eq!(serde_json::from_str::<Congestion>(&written).unwrap(), key);
        let table = format!(r#"{{"control": "{name}"}}"#);
        assert_eq!(serde_json::from_str::<Congestion>(&table).unwrap(), key);
    }
    assert_eq!(CongestionParams::default().name(), "reno");
}

#[test]
fn a_control_with_other_parameters_is_written_as_a_table() {
    for table in [
        r#"{"control":"dctcp","estimation-gain":0.1}"#,
        r#"{"control":"cubic","alpha":"constant","hystart":false,"ecn-backoff":true}"#,
        r#"{"control":"prague","target-rtt":"0s"}"#,
        r#"{"control":"ledbat","target-delay":"25ms"}"#,
        r#"{"control":"reno","ecn-backoff":true}"#,
    ] {
        let read: Congestion = serde_json::from_str(table).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), table);
    }
    let default: Congestion =
        serde_json::from_str(r#"{"control":"dctcp","estimation-gain":0.0625}"#).unwrap();
    assert_eq!(serde_json::to_string(&default).unwrap(), r#""dctcp""#);
}

#[test]
fn parameters_out_of_range_and_those_of_other_controls_are_refused() {
    for (table, key, text) in [
        (r#"{"control":"dctcp","estimation-gain":0}"#, "estimation-gain", "such as 0.0625"),
        (r#"{"control":"prague","target-rtt":"101ms"}"#, "target-rtt", "at most 100ms"),
        (r#"{"control":"ledbat","target-delay":"101ms"}"#, "target-delay", "1ms to 100ms"),
        (r#"{"control":"ledbat","target-delay":"0s"}"#, "target-delay", "1ms to 100ms"),
        (r#"{"control":"dctcp","target-rtt":"25ms"}"#, "target-rtt", "expected `estimation-gain`"),
        (r#"{"control":"bbr","hystart":true}"#, "hystart", "there are no fields"),
        (r#"{"control":"qubic"}"#, "control", "unknown control `qubic`, expected one of `reno`, `cubic`"),
        (r#"{"estimation-gain":0.1}"#, "", "key `control` is missing; it names one of reno, cubic"),
    ] {
        let refused = serde_json::from_str::<Congestion>(table).unwrap_err().to_string();
        let (at, said) = perhop_core::units::split_key(&refused);
        assert!(
            (at.is_empty() || at == key) && said.contains(text) && refused.contains(key),
            "{table}: {refused}"
        );
    }
}

#[test]
fn an_unknown_name_is_told_from_the_known_ones() {
    let refused = serde_json::from_str::<Congestion>("\"qubic\"").unwrap_err().to_string();
    assert!(refused.contains("unknown variant `qubic`, expected one of `reno`, `cubic`"), "{refused}");
}

proptest! {
    /// Whatever happens, every control keeps its window between one segment and the receiver's window (two
    /// where that is one), grows on ACKs in slow start if it has one, and comes out of a loss with no more
    /// than it had.
    #[test]
    fn every_control_keeps_its_window_within_bounds(
        number in 0..CongestionParams::NAMES.len() - 1,
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
        let params = CongestionParams::all().nth(number).expect("all but that of a class have defaults");
        let info = params.info();
        let mut control = params.build(&setup);
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
                // One that has no slow start follows a model.
                _ if !info.slow_start => {}
                _ => prop_assert!(after >= before.min(most), "{control:?}"),
            }
        }
    }
}

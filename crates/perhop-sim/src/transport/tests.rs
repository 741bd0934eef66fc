//! The short ways of datagram sources do what their general paths do.

use perhop_core::{Context, Duration, Instant, Rng};
use proptest::prelude::*;

use super::metadata::{Metadata, Report};
use super::rap::RapSender;
use super::tfrc::TfrcSender;
use super::transit::TransitMeter;
use super::udp::UdpSender;
use super::{Ack, Source, Transmit};

/// A source that is driven by its short way where that takes what happens, and its twin that is not.
struct Twins<S> {
    short: (S, Rng),
    general: (S, Rng),
    metadata: [Metadata; 2],
    now: Instant,
    /// How often the short way took a timer and feedback.
    taken: (u32, u32),
}

impl<S: Source + Clone + std::fmt::Debug> Twins<S> {
    fn of(source: &S) -> Self {
        let twin = || (source.clone(), Rng::stream(1, "twins"));
        let metadata = || Metadata::datagrams(TransitMeter::new((Instant::ZERO, Instant::NEVER)));
        Self {
            short: twin(),
            general: twin(),
            metadata: [metadata(), metadata()],
            now: Instant::ZERO,
            taken: (0, 0),
        }
    }

    fn send(source: &mut (S, Rng), now: Instant) -> Vec<Transmit> {
        let (source, rng) = source;
        std::iter::from_fn(|| source.transmit(&mut Context { now, rng })).collect()
    }

    /// The next timer expires, unless there is none.
    fn expire(&mut self, size: u16) -> Vec<u32> {
        if self.general.0.wake() == Instant::NEVER {
            return Vec::new();
        }
        self.now = self.now.max(self.general.0.wake());
        let now = self.now;
        let mut short = Vec::new();
        // Where jitter makes gaps as short as that, the next packet is due at the same time.
        while self.short.0.wake() <= now {
            let (source, rng) = &mut self.short;
            if let Some(numbers) = source.try_wake(&mut Context { now, rng }) {
                self.taken.0 += 1;
                short.extend(numbers.map(|number| Transmit::plain(number, size)));
            } else {
                source.on_wake(now);
                short.append(&mut Self::send(&mut self.short, now));
                break;
            }
        }
        self.general.0.on_wake(now);
        let sent = Self::send(&mut self.general, now);
        assert_eq!(short, sent);
        self.compare();
        sent.iter().map(|transmit| transmit.sequence).collect()
    }

    /// Feedback of this number comes.
    fn feedback(&mut self, number: u32) -> Vec<u32> {
        let [metadata, of_twin] = &mut self.metadata;
        let ack = Ack::plain(number);
        let short = if let Some(numbers) = self.short.0.try_ack(ack, metadata, self.now) {
            assert!(numbers.is_empty());
            self.taken.1 += 1;
            Vec::new()
        } else {
            self.short.0.on_ack(ack, metadata, self.now);
            Self::send(&mut self.short, self.now)
        };
        self.general.0.on_ack(ack, of_twin, self.now);
        let sent = Self::send(&mut self.general, self.now);
        assert_eq!(short, sent);
        self.compare();
        sent.iter().map(|transmit| transmit.sequence).collect()
    }

    fn compare(&self) {
        assert_eq!(format!("{:?}", self.short), format!("{:?}", self.general));
    }
}

/// What happens next: a timer, or the packet that was sent so many packets ago is lost or reported after so
/// many microseconds.
fn steps() -> impl Strategy<Value = Vec<(u8, usize, u64)>> {
    prop::collection::vec((0_u8..10, prop_oneof![4 => Just(0_usize), 1 => 0_usize..6], 0_u64..30_000), 1..300)
}

fn volume() -> impl Strategy<Value = Option<perhop_core::Bytes>> {
    prop_oneof![3 => Just(None), 1 => (1_u64..200_000).prop_map(|bytes| Some(perhop_core::Bytes::new(bytes)))]
}

proptest! {
    /// RAP: packets are acknowledged, lost, or acknowledged late.
    #[test]
    fn the_short_way_of_rap_does_what_the_general_one_does(steps in steps(), volume in volume(), jitter in 0_u8..2) {
        let params = format!(r#"{{"rap": "aimd", "initial-rtt": "50ms", "min-rto": "40ms", "jitter": {jitter}.0}}"#);
        let mut sender = RapSender::new(&serde_json::from_str(&params).unwrap(), volume);
        sender.start(Instant::ZERO);
        let mut twins = Twins::of(&sender);
        let mut pending = Vec::new();
        for (what, back, micros) in steps {
            if what < 5 || pending.is_empty() {
                pending.extend(twins.expire(1000));
                continue;
            }
            let number = pending.remove(back.min(pending.len() - 1));
            twins.now = (twins.now + Duration::from_nanos(micros * 1000)).min(twins.general.0.wake());
            if what < 9 {
                pending.extend(twins.feedback(number));
            }
        }
    }

    /// TFRC: reports of any content come.
    #[test]
    fn the_short_way_of_tfrc_does_what_the_general_one_does(steps in steps(), volume in volume(), jitter in 0_u8..2) {
        let params = format!(r#"{{"tfrc": "rfc5348", "jitter": {jitter}.0}}"#);
        let mut sender = TfrcSender::new(&serde_json::from_str(&params).unwrap(), volume);
        sender.start(Instant::ZERO);
        let mut twins = Twins::of(&sender);
        for (number, (what, back, micros)) in (0..).zip(steps) {
            if what < 7 {
                twins.expire(1000);
                continue;
            }
            let report = Report {
                echo: twins.now,
                held: Duration::ZERO,
                received: micros as f64 * 100.0,
                loss: back as f64 * 0.01,
                events: 0,
            };
            twins.now = (twins.now + Duration::from_nanos(micros * 1000)).min(twins.general.0.wake());
            twins.metadata.iter_mut().for_each(|metadata| metadata.of_datagrams().reports.put(number, report));
            twins.feedback(number);
        }
    }

    /// UDP: constant, on and off, of any volume.
    #[test]
    fn the_short_way_of_udp_does_what_the_general_one_does(on_off: bool, volume in volume(), packets in 1..300) {
        let kind = if on_off { r#""on-off", "on": "20ms", "off": "30ms""# } else { r#""cbr""# };
        let params = format!(r#"{{"udp": {kind}, "rate": "8Mbps", "packet": "1000B", "jitter": 0.5}}"#);
        let mut sender = UdpSender::new(&serde_json::from_str(&params).unwrap(), volume);
        sender.start(Instant::ZERO);
        let mut twins = Twins::of(&sender);
        (0..packets).for_each(|_| _ = twins.expire(1000));
        prop_assert_eq!(twins.taken.0 > 0, volume.is_none());
    }
}

#[test]
fn nearly_all_of_a_transfer_without_losses_takes_the_short_way() {
    let params = r#"{"rap": "aimd", "initial-rtt": "1ms", "max-rate": "8Mbps", "jitter": 0.0}"#;
    let mut sender = RapSender::new(&serde_json::from_str(params).unwrap(), None);
    sender.start(Instant::ZERO);
    let mut twins = Twins::of(&sender);
    let mut sent = 0;
    for _ in 0..1000 {
        for number in twins.expire(1000) {
            sent += 1;
            if number >= 5 {
                twins.feedback(number - 5);
            }
        }
    }
    // Others end a step at the same time, and some of the 1000 timers only do that.
    assert!(sent > 800 && twins.taken.0 > sent * 9 / 10, "{sent} {:?}", twins.taken);
    assert_eq!(twins.taken.1, sent - 5);
}

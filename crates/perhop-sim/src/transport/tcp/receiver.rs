//! The receiver: cumulative acknowledgements, at once or delayed (RFC 5681, section 4.2), which may report
//! ranges beyond a gap.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::{Duration, Instant};

use super::ecn::Echo;
use super::ranges::HeldRanges;
use super::{Signals, TcpEcn, TcpParams};
use crate::transport::metadata::{MOST_EXPECTED, Metadata};
use crate::transport::{Ack, Received, RidingAck};

/// One connection's receiving side.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    expected: u32,
    /// One past the last segment that came before its time; not beyond `expected` if none is held.
    highest: u32,
    delay: Duration,
    due: Instant,
    /// How many segments are acknowledged at once before the first one waits.
    quick: u16,
    /// In-order segments wait.
    delays: bool,
    /// ACKs are selective.
    is_selective: bool,
    mode: Mode,
    echo: Echo,
    early: Box<Early>,
}

/// The segments that came before their time.
#[derive(Clone, Debug)]
struct Early {
    /// Bit `n mod length` for each segment n in expected..expected + length that has come: as many as the
    /// window has segments.
    bits: Box<[u64]>,
    /// What selective acknowledgements report.
    held: HeldRanges,
}

/// The short way that is open. It is found anew when the general path ends; a short way leaves it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Nothing has come beyond a gap, and each segment is acknowledged at once with its number alone.
    AtOnce,
    /// Nothing has come beyond a gap; ACKs may wait, or count marked packets.
    InOrder,
    /// No short way is open.
    General,
}

impl TcpReceiver {
    /// Makes a receiver of these parameters that has nothing.
    pub fn new(params: &TcpParams, ecn: TcpEcn) -> Self {
        let words = (params.most_outstanding() as usize + 2).div_ceil(64).next_power_of_two();
        Self {
            expected: 0,
            highest: 0,
            delay: params.delayed_ack,
            due: Instant::NEVER,
            // The answer to a SYN never waits (RFC 9293, section 3.10.7.2; RFC 9000, section 13.2.1).
            quick: (params.quick_acks.get() as u16).max(params.handshake.into()),
            delays: !params.delayed_ack.is_zero(),
            is_selective: params.sack,
            mode: Mode::General,
            echo: Echo::new(ecn, params.needs().marks),
            early: Box::new(Early { bits: vec![0; words].into(), held: HeldRanges::default() }),
        }
    }

    /// Returns the first segment that has not come.
    pub(in crate::transport) fn expected(&self) -> u32 {
        self.expected
    }

    /// Returns whether nothing has come beyond a gap.
    pub(in crate::transport) fn is_in_order(&self) -> bool {
        self.highest <= self.expected
    }

    /// Returns the ACK that data of the other direction carries; one that waits waits no more.
    pub(in crate::transport) fn ride(&mut self) -> RidingAck {
        self.due = Instant::NEVER;
        RidingAck { expected: self.expected, ece: self.echo.ece(), marked: self.counted() }
    }

    fn slot(&self, sequence: u32) -> (usize, u64) {
        // The length is a power of two.
        let bit = sequence as usize & (self.early.bits.len() * 64 - 1);
        (bit / 64, 1 << (bit % 64))
    }

    /// Returns the short way that is open now.
    fn find_mode(&self) -> Mode {
        let is_open = self.expected > 0;
        if !is_open || !self.is_in_order() || (self.delays && self.quick > 0) {
            Mode::General
        } else if self.echo.is_off() && !self.delays {
            Mode::AtOnce
        } else if self.echo.is_off() || self.echo.counts() {
            Mode::InOrder
        } else {
            Mode::General
        }
    }

    /// Takes a full segment without a mark, if it is the one that is expected and comes before the ACK that
    /// waits is due. Returns `None`, having done nothing, otherwise.
    #[inline(always)]
    pub(in crate::transport) fn try_data(
        &mut self,
        sequence: u32,
        now: Instant,
        metadata: &mut Metadata,
    ) -> Option<Received> {
        match self.mode {
            Mode::AtOnce if sequence == self.expected && sequence < MOST_EXPECTED => {
                self.expected = sequence + 1;
                Some(Received { first: true, ack: Some(Ack::plain(self.expected)) })
            }
            Mode::InOrder => self.try_in_order(sequence, now, metadata),
            Mode::AtOnce | Mode::General => None,
        }
    }

    fn try_in_order(&mut self, sequence: u32, now: Instant, metadata: &mut Metadata) -> Option<Received> {
        if sequence != self.expected || now >= self.due {
            return None;
        }
        self.expected = sequence + 1;
        if self.delays && self.due == Instant::NEVER {
            self.due = now + self.delay;
            return Some(Received { first: true, ack: None });
        }
        self.due = Instant::NEVER;
        let number = if self.is_selective {
            metadata.of_acks().post_plain(self.expected, self.counted())
        } else {
            self.expected
        };
        Some(Received { first: true, ack: Some(Ack::plain(number)) })
    }

    /// Takes a segment.
    pub fn on_data(
        &mut self,
        sequence: u32,
        signals: Signals,
        now: Instant,
        metadata: &mut Metadata,
    ) -> Received {
        let mut received = self.take_segment(sequence, signals, now);
        if self.is_selective {
            self.early.held.marked += u32::from(signals.marked);
            self.early.held.note(sequence, received.first, self.expected);
            let duplicate = (!received.first).then_some(sequence);
            received.ack = received.ack.map(|ack| self.post(ack, duplicate, metadata));
        }
        self.mode = self.find_mode();
        received
    }

    fn take_segment(&mut self, sequence: u32, signals: Signals, now: Instant) -> Received {
        let differs = !self.echo.is_off() && self.echo.on_data(signals);
        let in_order = sequence == self.expected && self.highest <= self.expected;
        if in_order {
            self.expected += 1;
            if differs && self.due != Instant::NEVER {
                return Received { first: true, ack: Some(self.acknowledge_before(now)) };
            }
            return Received { first: true, ack: self.acknowledge_in_order(now) };
        }
        let first = self.take(sequence);
        self.due = Instant::NEVER;
        Received { first, ack: Some(self.ack()) }
    }

    /// Sends an ACK with what it reports besides its number.
    fn post(&self, ack: Ack, duplicate: Option<u32>, metadata: &mut Metadata) -> Ack {
        let record = self.early.held.record(ack.number, self.counted(), duplicate);
        Ack { number: metadata.of_acks().post(record), ..ack }
    }

    /// Returns how many marked packets ACKs report.
    #[inline]
    fn counted(&self) -> u32 {
        if self.echo.counts() { self.early.held.marked } else { 0 }
    }

    /// Notes a segment out of order, a duplicate, or one that fills a gap; returns whether it is new.
    fn take(&mut self, sequence: u32) -> bool {
        // The sender keeps to the window, so a segment beyond the bitmap cannot come.
        if sequence < self.expected || (sequence - self.expected) as usize >= self.early.bits.len() * 64 {
            return false;
        }
        let (word, bit) = self.slot(sequence);
        if self.early.bits[word] & bit != 0 {
            return false;
        }
        self.early.bits[word] |= bit;
        self.highest = self.highest.max(sequence + 1);
        loop {
            let (word, bit) = self.slot(self.expected);
            if self.early.bits[word] & bit == 0 {
                return true;
            }
            self.early.bits[word] &= !bit;
            self.expected += 1;
        }
    }

    fn ack(&self) -> Ack {
        Ack { number: self.expected, ece: self.echo.ece() }
    }

    fn acknowledge_in_order(&mut self, now: Instant) -> Option<Ack> {
        if !self.delays || self.due != Instant::NEVER {
            self.due = Instant::NEVER;
            return Some(self.ack());
        }
        if self.quick > 0 {
            self.quick -= 1;
            return Some(self.ack());
        }
        self.due = now + self.delay;
        None
    }

    /// Sends the ACK that waits with its own ECN-Echo; that of the segment that came now waits in its place
    /// (RFC 8257, section 3.2, figure 1).
    #[cold]
    fn acknowledge_before(&mut self, now: Instant) -> Ack {
        self.due = now + self.delay;
        Ack { number: self.expected - 1, ece: !self.echo.ece() }
    }

    /// Returns the ACK that is due by `now`, if one is.
    pub(in crate::transport) fn on_wake(&mut self, now: Instant, metadata: &mut Metadata) -> Option<Ack> {
        if now < self.due {
            return None;
        }
        self.due = Instant::NEVER;
        let ack = self.ack();
        Some(if self.is_selective { self.post(ack, None, metadata) } else { ack })
    }

    /// Returns when an ACK is due that waits.
    #[inline]
    pub(in crate::transport) fn wake(&self) -> Instant {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_short_way_delays_every_other_acknowledgement() {
        let mut receiver = receiver(r#","delayed-ack": "100ms""#);
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut none = Metadata::none();
        assert_eq!(receiver.try_data(0, at(0), &mut none), None, "the connection is not open");
        receiver.on_data(0, Signals::default(), at(0), &mut none);
        assert_eq!(receiver.mode, Mode::InOrder);
        assert_eq!(receiver.try_data(2, at(1), &mut none), None, "out of order");
        assert_eq!(receiver.try_data(1, at(100), &mut none), None, "the ACK of 0 is due");
        let ack = |taken: Option<Received>| taken.unwrap().ack.map(|ack| ack.number);
        assert_eq!(ack(receiver.try_data(1, at(99), &mut none)), Some(2));
        assert_eq!(ack(receiver.try_data(2, at(99), &mut none)), None);
        assert_eq!(receiver.wake(), at(199));
    }

    fn receiver(extra: &str) -> TcpReceiver {
        let params = format!(r#"{{"tcp": "reno", "window": "100p" {extra}}}"#);
        TcpReceiver::new(&serde_json::from_str(&params).unwrap(), TcpEcn::Off)
    }

    fn data(receiver: &mut TcpReceiver, sequence: u32) -> Received {
        receiver.on_data(sequence, Signals::default(), Instant::ZERO, &mut Metadata::none())
    }

    #[test]
    fn delays_every_other_acknowledgement_but_none_out_of_order() {
        let mut receiver = receiver(r#","delayed-ack": "100ms""#);
        let ack = |receiver: &mut TcpReceiver, sequence| data(receiver, sequence).ack.map(|ack| ack.number);
        assert_eq!(ack(&mut receiver, 0), None);
        assert_eq!(ack(&mut receiver, 1), Some(2));
        assert_eq!(ack(&mut receiver, 2), None);
        assert_eq!(receiver.on_wake(Instant::from_nanos(99_999_999), &mut Metadata::none()), None);
        assert_eq!(
            receiver.on_wake(Instant::from_nanos(100_000_000), &mut Metadata::none()),
            Some(Ack::plain(3))
        );
        assert_eq!(ack(&mut receiver, 4), Some(3));
        assert_eq!(ack(&mut receiver, 5), Some(3));
        assert_eq!(ack(&mut receiver, 3), Some(6), "the gap is filled");
        assert_eq!(ack(&mut receiver, 6), None);
    }

    #[test]
    fn a_syn_is_answered_at_once() {
        for (quick, waiting) in [(0, 1), (1, 1), (2, 2)] {
            let extra = format!(r#","handshake": true, "delayed-ack": "100ms", "quick-acks": "{quick}p""#);
            let mut receiver = receiver(&extra);
            let first = (0..10).find(|&sequence| data(&mut receiver, sequence).ack.is_none());
            assert_eq!(first, Some(waiting), "{quick}");
        }
    }

    #[test]
    fn the_ack_that_waits_leaves_before_a_packet_that_is_marked_otherwise() {
        // RFC 8257, section 3.2, figure 1: a change of CE sends an "immediate ACK" with the ECN-Echo of what
        // came before.
        let params = r#"{"tcp": "reno", "congestion": "dctcp", "delayed-ack": "100ms"}"#;
        let mut receiver = TcpReceiver::new(&serde_json::from_str(params).unwrap(), TcpEcn::Classic);
        let marks = [false, true, true, true, false, false, false, true];
        let acks = marks.into_iter().enumerate().map(|(sequence, marked)| {
            let signals = Signals { marked, reduced: false };
            receiver
                .on_data(sequence as u32, signals, Instant::ZERO, &mut Metadata::none())
                .ack
                .map(|ack| (ack.number, ack.ece))
        });
        let expected = [
            None,
            Some((1, false)),
            Some((3, true)),
            None,
            Some((4, true)),
            Some((6, false)),
            None,
            Some((7, false)),
        ];
        assert_eq!(acks.collect::<Vec<_>>(), expected);
        let late = receiver.on_wake(Instant::from_nanos(100_000_000), &mut Metadata::none());
        assert_eq!(late, Some(Ack { number: 8, ece: true }));
    }

    proptest! {
        /// A segment on the short way does and leaves what it does and leaves otherwise.
        #[test]
        fn the_short_way_does_what_the_general_path_does(
            steps in prop::collection::vec((0_u32..8, 0_u32..6), 1..200),
            (delays, sack, counts) in any::<(bool, bool, bool)>(),
        ) {
            let extra = if delays { r#","delayed-ack": "100ms","quick-acks": "2p""# } else { "" };
            let params = format!(r#"{{"tcp": "newreno", "window": "100p", "sack": {} {extra}}}"#, sack || counts);
            let ecn = if counts { TcpEcn::Accurate } else { TcpEcn::Off };
            let mut receiver = TcpReceiver::new(&serde_json::from_str(&params).unwrap(), ecn);
            let mut metadata = if sack || counts { Metadata::acks() } else { Metadata::none() };
            let mut now = Instant::ZERO;
            for (step, tens) in steps {
                now += Duration::from_millis(10 * u64::from(tens));
                // Most are the one that is expected; some come early, some again.
                let sequence = (receiver.expected + step.saturating_sub(5)).saturating_sub(u32::from(step == 0));
                let (mut short, mut left) = (receiver.clone(), metadata.clone());
                let is_marked = counts && step == 1;
                let signals = Signals { marked: is_marked, reduced: false };
                let got = receiver.on_data(sequence, signals, now, &mut metadata);
                if !is_marked && let Some(ack) = short.try_data(sequence, now, &mut left) {
                    prop_assert_eq!(got, ack);
                    prop_assert_eq!(format!("{short:?} {left:?}"), format!("{receiver:?} {metadata:?}"));
                }
            }
        }

        #[test]
        fn agrees_with_a_set(order in prop::collection::vec(0_u32..90, 0..300)) {
            let mut receiver = receiver("");
            let mut seen = std::collections::BTreeSet::new();
            for sequence in order {
                let expected_before = (0..=90).find(|n| !seen.contains(n)).unwrap();
                prop_assume!(sequence < expected_before + 100);
                let got = data(&mut receiver, sequence);
                prop_assert_eq!(got.first, seen.insert(sequence));
                prop_assert_eq!(got.ack.map(|ack| ack.number), (0..=90).find(|n| !seen.contains(n)));
            }
        }
    }
}

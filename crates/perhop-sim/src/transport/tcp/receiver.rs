//! The receiver: cumulative acknowledgements, at once or delayed (RFC 5681, section 4.2).

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::{Duration, Instant};

use super::ecn::Echo;
use super::{Signals, TcpEcn, TcpParams};
use crate::transport::{Ack, DelayedAck, Received, RidingAck};

/// Remembers which segments came, in a bitmap as long as the window.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    expected: u32,
    /// One past the last segment that came before its time; not beyond `expected` if none is held.
    highest: u32,
    /// Bit `n mod length` for each segment n in expected..expected + length that has come.
    early: Box<[u64]>,
    delay: Duration,
    due: Instant,
    /// How many segments are acknowledged at once before the first one waits.
    quick: u16,
    /// In-order segments wait.
    delays: bool,
    pub(super) echo: Echo,
}

impl TcpReceiver {
    /// A receiver of these parameters that has nothing.
    pub fn new(params: &TcpParams, ecn: TcpEcn) -> Self {
        let words = (params.most_outstanding() as usize + 2).div_ceil(64).next_power_of_two();
        Self {
            expected: 0,
            highest: 0,
            early: vec![0; words].into(),
            delay: params.delayed_ack,
            due: Instant::NEVER,
            // The answer to a SYN never waits (RFC 9293, section 3.10.7.2; RFC 9000, section 13.2.1).
            quick: (params.quick_acks.get() as u16).max(params.handshake.into()),
            delays: !params.delayed_ack.is_zero(),
            echo: Echo::new(ecn, params.needs().marks),
        }
    }

    /// The first segment that has not come.
    pub(in crate::transport) fn expected(&self) -> u32 {
        self.expected
    }

    /// Nothing has come beyond a gap.
    pub(in crate::transport) fn is_in_order(&self) -> bool {
        self.highest <= self.expected
    }

    /// Data of the other direction is sent and carries this ACK; one that waits waits no more.
    pub(in crate::transport) fn ride(&mut self) -> RidingAck {
        self.due = Instant::NEVER;
        RidingAck { expected: self.expected, ece: self.echo.ece(), marked: 0 }
    }

    fn slot(&self, sequence: u32) -> (usize, u64) {
        // The length is a power of two.
        let bit = sequence as usize & (self.early.len() * 64 - 1);
        (bit / 64, 1 << (bit % 64))
    }

    /// Whether [`receive_fast`](Self::receive_fast) may be called: ACKs do not wait, nothing came out of order, and what comes
    /// next is a full segment without marks, since the connection is open and does not use ECN.
    pub(crate) fn is_on_fast_path(&self) -> bool {
        !self.delays && self.highest <= self.expected && self.expected > 0 && self.echo.is_off()
    }

    /// Takes a segment if it is the one that is expected, and returns the number of the next: what
    /// [`on_data`](Self::on_data) does for nearly every segment while the receiver [is on the fast path](Self::is_on_fast_path).
    #[inline(always)]
    pub(crate) fn receive_fast(&mut self, sequence: u32) -> Option<u32> {
        debug_assert!(self.is_on_fast_path());
        if sequence != self.expected {
            return None;
        }
        self.expected = sequence + 1;
        Some(self.expected)
    }

    /// Whether [`receive_delayed_fast`](Self::receive_delayed_fast) may be called: the same where ACKs wait.
    pub(crate) fn is_on_delayed_fast_path(&self) -> bool {
        let is_in_order = self.highest <= self.expected && self.expected > 0;
        self.delays && self.quick == 0 && is_in_order && (self.echo.is_off() || self.echo.counts())
    }

    /// Takes a segment without a mark if it is the one that is expected and comes before the ACK that waits is due, and returns the
    /// number of the ACK that is then sent, if one is.
    #[inline(always)]
    pub(crate) fn receive_delayed_fast(&mut self, sequence: u32, now: Instant) -> Option<DelayedAck> {
        debug_assert!(self.is_on_delayed_fast_path());
        if sequence != self.expected || now >= self.due {
            return None;
        }
        self.expected = sequence + 1;
        if self.due == Instant::NEVER {
            self.due = now + self.delay;
            return Some(DelayedAck::Waits);
        }
        self.due = Instant::NEVER;
        Some(DelayedAck::Sent(self.expected))
    }

    /// This segment is beyond the one behind all that has come.
    #[inline(always)]
    pub(super) fn is_beyond(&self, sequence: u32) -> bool {
        sequence > self.highest
    }

    /// Takes a segment behind all that came out of order, if this one is that, no ACK waits, and it does not use ECN: it is
    /// acknowledged at once.
    #[inline(always)]
    pub(super) fn receive_ahead(&mut self, sequence: u32) -> bool {
        let is_behind = sequence >= self.highest && self.highest > self.expected;
        let (word, bit) = self.slot(sequence);
        let has_room = ((sequence.wrapping_sub(self.expected)) as usize) < self.early.len() * 64;
        let takes = is_behind && has_room && self.due == Instant::NEVER && self.echo.is_off();
        if takes {
            self.early[word] |= bit;
            self.highest = sequence + 1;
        }
        takes
    }

    /// A segment came.
    #[inline(always)]
    pub fn on_data(&mut self, sequence: u32, signals: Signals, now: Instant) -> Received {
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

    /// Notes a segment out of order, a duplicate, or one that fills a gap; says whether it is new.
    fn take(&mut self, sequence: u32) -> bool {
        // The sender keeps to the window, so a segment beyond the bitmap cannot come.
        if sequence < self.expected || (sequence - self.expected) as usize >= self.early.len() * 64 {
            return false;
        }
        let (word, bit) = self.slot(sequence);
        if self.early[word] & bit != 0 {
            return false;
        }
        self.early[word] |= bit;
        self.highest = self.highest.max(sequence + 1);
        loop {
            let (word, bit) = self.slot(self.expected);
            if self.early[word] & bit == 0 {
                return true;
            }
            self.early[word] &= !bit;
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

    /// The ACK that waits leaves with its own ECN-Echo, and that of the segment that came now waits in its place (RFC 8257,
    /// section 3.2, figure 1).
    #[cold]
    fn acknowledge_before(&mut self, now: Instant) -> Ack {
        self.due = now + self.delay;
        Ack { number: self.expected - 1, ece: !self.echo.ece() }
    }

    pub(in crate::transport) fn on_wake(&mut self, now: Instant) -> Option<Ack> {
        if now < self.due {
            return None;
        }
        self.due = Instant::NEVER;
        Some(self.ack())
    }

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
    fn the_fast_path_delays_every_other_acknowledgement() {
        let mut receiver = receiver(r#","delayed-ack": "100ms""#);
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        assert!(!receiver.is_on_delayed_fast_path(), "the connection is not open");
        receiver.on_data(0, Signals::default(), at(0));
        assert!(receiver.is_on_delayed_fast_path() && !receiver.is_on_fast_path());
        assert_eq!(receiver.receive_delayed_fast(2, at(1)), None, "out of order");
        assert_eq!(receiver.receive_delayed_fast(1, at(100)), None, "the ACK of 0 is due");
        assert_eq!(receiver.receive_delayed_fast(1, at(99)), Some(DelayedAck::Sent(2)));
        assert_eq!(receiver.receive_delayed_fast(2, at(99)), Some(DelayedAck::Waits));
        assert_eq!(receiver.wake(), at(199));
    }

    fn receiver(extra: &str) -> TcpReceiver {
        let params = format!(r#"{{"tcp": "reno", "window": "100p" {extra}}}"#);
        TcpReceiver::new(&serde_json::from_str(&params).unwrap(), TcpEcn::Off)
    }

    fn data(receiver: &mut TcpReceiver, sequence: u32) -> Received {
        receiver.on_data(sequence, Signals::default(), Instant::ZERO)
    }

    #[test]
    fn delays_every_other_acknowledgement_but_none_out_of_order() {
        let mut receiver = receiver(r#","delayed-ack": "100ms""#);
        let ack = |receiver: &mut TcpReceiver, sequence| data(receiver, sequence).ack.map(|ack| ack.number);
        assert_eq!(ack(&mut receiver, 0), None);
        assert_eq!(ack(&mut receiver, 1), Some(2));
        assert_eq!(ack(&mut receiver, 2), None);
        assert_eq!(receiver.on_wake(Instant::from_nanos(99_999_999)), None);
        assert_eq!(receiver.on_wake(Instant::from_nanos(100_000_000)), Some(Ack::plain(3)));
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
        // RFC 8257, section 3.2, figure 1: a change of CE sends an "immediate ACK" with the ECN-Echo of what came before.
        let params = r#"{"tcp": "reno", "congestion": "dctcp", "delayed-ack": "100ms"}"#;
        let mut receiver = TcpReceiver::new(&serde_json::from_str(params).unwrap(), TcpEcn::Classic);
        let marks = [false, true, true, true, false, false, false, true];
        let acks = marks.into_iter().enumerate().map(|(sequence, marked)| {
            let signals = Signals { marked, reduced: false };
            receiver.on_data(sequence as u32, signals, Instant::ZERO).ack.map(|ack| (ack.number, ack.ece))
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
        let late = receiver.on_wake(Instant::from_nanos(100_000_000));
        assert_eq!(late, Some(Ack { number: 8, ece: true }));
    }

    proptest! {
        /// A segment on the fast path does and leaves what it does and leaves otherwise.
        #[test]
        fn the_fast_path_does_what_the_general_path_does(
            steps in prop::collection::vec(0_u32..8, 1..200),
            delays in any::<bool>(),
        ) {
            let mut receiver = receiver(if delays { r#","delayed-ack": "100ms""# } else { "" });
            for step in steps {
                // Most are the one that is expected; some come early, some again.
                let sequence = (receiver.expected + step.saturating_sub(5)).saturating_sub(u32::from(step == 0));
                let mut short = receiver.clone();
                let got = data(&mut receiver, sequence);
                if short.is_on_delayed_fast_path()
                    && let Some(ack) = short.receive_delayed_fast(sequence, Instant::ZERO)
                {
                    let ack = match ack {
                        DelayedAck::Waits => None,
                        DelayedAck::Sent(number) | DelayedAck::Reported(number) => Some(Ack::plain(number)),
                    };
                    prop_assert_eq!(got, Received { first: true, ack });
                    prop_assert_eq!(format!("{short:?}"), format!("{receiver:?}"));
                } else if short.is_on_fast_path() && let Some(ack) = short.receive_fast(sequence) {
                    prop_assert_eq!(got, Received { first: true, ack: Some(Ack::plain(ack)) });
                    prop_assert_eq!(format!("{short:?}"), format!("{receiver:?}"));
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

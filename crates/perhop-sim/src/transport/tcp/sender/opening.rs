//! The opening of a connection: a SYN, which carries no data and is smaller than what does. It is neither a
//! delivery nor a loss of data: what finds losses and measures rates begins when the connection is open, and
//! a congestion control hears of nothing earlier.
//!
//! ## Deviations
//! - Linux sends its first five SYNs again after a second each (`tcp_syn_linear_timeouts`, since 6.5); here
//!   each timeout is twice the last (RFC 6298, section 5.5).
//! - A SYN that was sent again gives no round trip, since ACKs carry no timestamps; with them, Linux measures
//!   one.
//! - The round trip of the SYN does not pace the first window of a congestion control with a rate of its own.
//!   Linux does not pace the first ten segments either; draft-ietf-ccwg-bbr-06, section 5.6.2, would.

use perhop_core::Instant;

use super::delivery::DeliveryRate;
use super::slow_start::EarlyExit;
use super::{TcpSender, UNTIMED};
use crate::transport::tcp::congestion::CongestionControl;

impl TcpSender {
    /// Returns whether what is outstanding, or comes first, is the SYN.
    #[inline]
    pub(super) fn is_opening(&self) -> bool {
        self.handshake && self.acked == 0
    }

    /// Opens the connection when the SYN has arrived: data may follow. Returns whether it gave a round trip,
    /// which one that was sent again does not.
    #[cold]
    pub(super) fn open(&mut self, now: Instant) -> bool {
        let is_timed = self.rtt_segment != UNTIMED;
        if is_timed {
            self.sample_opening(now);
        }
        let again = self.cold.statistics.retransmitted;
        if again > 0 {
            self.cold.rto.begin_again();
            self.timeout = self.cold.rto.timeout();
        }
        self.cold.stray = again as u32;
        self.acked = 1;
        self.expiry = Instant::NEVER;
        self.bound_outstanding();
        let window = self.cold.params.first_window(again);
        self.control_mut().set_window(f64::from(window));
        self.begin(1, window);
        is_timed
    }

    /// Begins the data with this segment and this window.
    pub(super) fn begin(&mut self, first: u32, window: u32) {
        let cold = &mut *self.cold;
        cold.early_exit = EarlyExit::new(&cold.params, first + window).map(Box::new);
        let is_measured = cold.params.needs().delivery || cold.early_exit.is_some();
        cold.delivery = is_measured.then(|| Box::new(DeliveryRate::from_segment(first)));
    }

    /// Returns whether the segment carries data: it is not the SYN.
    #[inline]
    pub(super) fn is_data(&self, sequence: u32) -> bool {
        sequence > 0 || !self.handshake
    }

    /// Returns whether a duplicate ACK may answer a SYN that was sent again: it then says nothing of data.
    pub(super) fn takes_for_opening(&mut self) -> bool {
        let is_stray = self.acked == 1 && self.cold.stray > 0;
        self.cold.stray -= u32::from(is_stray);
        is_stray
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::metadata::Metadata;
    use crate::transport::tcp::{TcpEcn, TcpParams};
    use crate::transport::{Ack, Source, Transmit};
    use perhop_core::{Context, Ecn, Rng};

    struct Wire {
        sender: TcpSender,
        rng: Rng,
    }

    impl Wire {
        fn new(table: &str, ecn: TcpEcn) -> Self {
            let params: TcpParams = serde_json::from_str(table).unwrap();
            Self { sender: TcpSender::new(params.into(), None, None, ecn, 1), rng: Rng::stream(1, "tcp") }
        }

        fn act(&mut self, millis: u64, act: impl FnOnce(&mut TcpSender, Instant)) -> Vec<Transmit> {
            let now = Instant::from_nanos(millis * 1_000_000);
            act(&mut self.sender, now);
            let mut cx = Context { now, rng: &mut self.rng };
            std::iter::from_fn(|| self.sender.transmit(&mut cx)).collect()
        }

        fn start(&mut self) -> Vec<Transmit> {
            self.act(0, TcpSender::start)
        }

        fn ack(&mut self, millis: u64, number: u32) -> Vec<Transmit> {
            self.act(millis, |sender, now| sender.on_ack(Ack::plain(number), &mut Metadata::none(), now))
        }

        /// The timer expires so many times; returns when, in milliseconds.
        fn expire(&mut self, times: u32) -> Vec<u64> {
            let expire = |_| {
                let millis = self.sender.wake().as_nanos() / 1_000_000;
                assert_eq!(self.act(millis, TcpSender::on_wake).len(), 1);
                millis
            };
            (0..times).map(expire).collect()
        }
    }

    /// As Linux's, but without selective acknowledgements.
    const LINUX: &str = r#"{"tcp": "linux", "sack": false, "prr": false}"#;

    #[test]
    fn after_lost_syns_data_begins_with_one_segment_and_a_timeout_of_three_seconds() {
        // SYNs at 0, 1 and 3 s are lost, the one at 7 s is answered 50 ms later.
        let mut wire = Wire::new(LINUX, TcpEcn::Off);
        assert_eq!(wire.start(), [Transmit::plain(0, 52)]);
        assert_eq!(wire.expire(3), [1000, 3000, 7000]);
        // Linux: one segment after more than one retransmission. RFC 6298, (5.7): then the timeout is 3 s,
        // and doubles from there.
        assert_eq!(wire.ack(7050, 1).len(), 1);
        assert_eq!(wire.expire(3), [10_050, 16_050, 28_050]);
        // Slow start goes on from there: no threshold is left of the lost SYNs.
        assert_eq!((wire.ack(28_100, 2).len(), wire.sender.congestion_window()), (2, 2.0));
    }

    #[test]
    fn linux_keeps_its_initial_window_after_one_lost_syn_and_others_do_not() {
        // RFC 5681, section 3.1: "the initial window used by a sender after a correctly transmitted SYN MUST
        // be one segment".
        let reno = r#"{"tcp": "reno", "handshake": true, "initial-window": "10p", "initial-rto": "1s"}"#;
        for (table, lost, window) in [(LINUX, 1, 10), (LINUX, 2, 1), (reno, 0, 10), (reno, 1, 1)] {
            let mut wire = Wire::new(table, TcpEcn::Off);
            wire.start();
            let opened = wire.expire(lost).last().map_or(0, |millis| *millis) + 50;
            assert_eq!(wire.ack(opened, 1).len(), window, "{table} {lost}");
            // A round trip of 50 ms gives 50 + 200 ms with Linux's arithmetic, 200 ms with RFC 6298's.
            let timeout = match (lost, table == LINUX) {
                (0, _) => 200,
                _ => 3000,
            };
            assert_eq!(wire.expire(1), [opened + timeout], "{table} {lost}");
        }
    }

    #[test]
    fn a_longer_first_timeout_than_three_seconds_stays() {
        let mut wire = Wire::new(r#"{"tcp": "reno", "handshake": true, "initial-rto": "6s"}"#, TcpEcn::Off);
        wire.start();
        assert_eq!(wire.expire(2), [6000, 18_000]);
        wire.ack(18_050, 1);
        assert_eq!(wire.expire(2), [24_050, 36_050]);
    }

    #[test]
    fn lost_syns_lower_no_threshold_end_no_slow_start_and_say_nothing_of_a_reduction() {
        let table = r#"{"tcp": "newreno", "handshake": true, "initial-window": "4p", "initial-rto": "1s",
            "slow-start": "hystart++"}"#;
        let mut wire = Wire::new(table, TcpEcn::Classic);
        wire.start();
        wire.expire(1);
        let first = wire.ack(1050, 1);
        assert_eq!(first, [Transmit { sequence: 1, size: 1000, ecn: Ecn::Capable0, reduced: false }]);
        assert_eq!(wire.ack(1100, 2).len(), 2);
        assert_eq!((wire.ack(1150, 4).len(), wire.sender.congestion_window()), (3, 3.0));
        assert!(wire.sender.cold.early_exit.is_some(), "the first slow start goes on");
        let statistics = wire.sender.statistics();
        assert_eq!((statistics.timeouts, statistics.ecn_reductions), (1, 0));
    }

    #[test]
    fn a_loss_of_the_first_segment_after_a_lost_syn_is_repaired_by_three_duplicates() {
        let mut wire = Wire::new(LINUX, TcpEcn::Off);
        wire.start();
        wire.expire(1);
        assert_eq!(wire.ack(1050, 1).len(), 10);
        // The SYN that was sent again may have been in vain: its answer is no duplicate of data.
        let sent: Vec<usize> = (0..4).map(|n| wire.ack(1100 + n, 1).len()).collect();
        assert_eq!(sent, [0, 1, 1, 1], "limited transmit, twice, and the first segment again");
        assert_eq!(wire.sender.statistics().fast_retransmits, 1);
    }

    #[test]
    fn nothing_but_the_syn_leaves_before_it_is_answered_whatever_the_control_says() {
        let mut wire = Wire::new(r#"{"tcp": "newreno", "handshake": true}"#, TcpEcn::Off);
        wire.sender.control.set_window(20.0);
        assert_eq!(wire.start(), [Transmit::plain(0, 40)]);
        assert!(wire.act(10, |_, _| {}).is_empty());
    }
}

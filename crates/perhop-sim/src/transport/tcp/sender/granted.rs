//! Data that an application hands over in steps: the restart after idle times (RFC 5681, section 4.1), and
//! when the window is valid (RFC 7661, section 4).
//!
//! ## Deviations
//! - RFC 7661 would keep the window over idle times of up to five minutes; here `idle-restart` decides about
//!   that by itself.
//! - A loss in the non-validated phase lowers the window as any other loss (RFC 7661, section 4.4, lowers it
//!   further).
//! - Without a sample in its period, pipeACK keeps its last value, where RFC 7661 leaves it undefined.
//! - Linux (`tcp_slow_start_after_idle`) halves the window for each timeout of an idle time (RFC 2861) down
//!   to the initial one.

use perhop_core::{Duration, Instant};

use super::{Cold, Mode, TcpSender};
use crate::transport::tcp::CwndValidation;
use crate::transport::tcp::congestion::CongestionControl;

/// The least time over which pipeACK is the greatest of its samples, and its multiple of the round trip (RFC
/// 7661, section 4.2).
const LEAST_PERIOD: Duration = Duration::from_secs(1);
const PERIOD_IN_ROUND_TRIPS: u64 = 3;

/// What a sender remembers whose application hands its data over in steps.
#[derive(Clone, Debug)]
pub(super) struct Granted {
    /// When the last segment was sent.
    last_sent: Instant,
    restarts: bool,
    /// No more data follows.
    is_over: bool,
    /// `pipeACK`, unless the window is taken as valid.
    pipe: Option<PipeAck>,
}

impl Granted {
    /// Notes that the application has ended.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

/// The segments acknowledged in a round trip: the greatest of the recent samples.
#[derive(Clone, Debug, Default)]
struct PipeAck {
    /// A sample is under way: what was acknowledged when it began, and the segment whose ACK ends it.
    sample: Option<(u32, u32)>,
    best: Option<u32>,
    best_at: Instant,
}

impl PipeAck {
    /// Takes a sample, if an ACK that moves the left edge from `before` to `acked` ends one; segments below
    /// `next` have been sent.
    fn on_ack(&mut self, before: u32, acked: u32, next: u32, period: Duration, now: Instant) {
        let (from, ends) = *self.sample.get_or_insert((before, next));
        if acked < ends {
            return;
        }
        let found = acked - from;
        if self.best.is_none_or(|best| found >= best) || now.since(self.best_at) > period {
            self.best = Some(found);
            self.best_at = now;
        }
        self.sample = None;
    }

    /// RFC 7661, section 4.3: at least half of the window is used, or nothing is known yet.
    fn validates(&self, window: f64) -> bool {
        self.best.is_none_or(|best| 2.0 * f64::from(best) >= window)
    }
}

impl TcpSender {
    /// Leaves the connection with nothing to send but the data that it is [granted](Self::take_grant).
    pub(super) fn wait_for_grants(&mut self) {
        self.data_end = u32::from(self.handshake);
        (self.mode, self.shortest) = (Mode::General, Mode::General);
        self.notes = true;
        let params = &self.cold.params;
        let validates = params.cwnd_validation.unwrap_or_default() == CwndValidation::Rfc7661;
        self.cold.granted = Some(Box::new(Granted {
            last_sent: Instant::ZERO,
            is_over: false,
            restarts: params.restarts_after_idle(),
            pipe: validates.then(PipeAck::default),
        }));
    }

    /// Takes so many segments more from the application.
    pub(super) fn take_grant(&mut self, segments: u32, now: Instant) {
        self.data_end = self.data_end.saturating_add(segments);
        if self.started && self.acked == self.sent_end {
            self.end_idle_time(now);
        }
    }

    /// Ends an idle time: after a retransmission timeout of it, the window is at most the initial one.
    fn end_idle_time(&mut self, now: Instant) {
        let Some(granted) = &self.cold.granted else { return };
        let (idle, restarts) = (now.since(granted.last_sent), granted.restarts);
        self.control_mut().on_idle(idle);
        if restarts && idle > self.timeout && !self.cold.controls_recovery {
            let initial = self.cold.params.initial_window.get() as f64;
            let window = self.control.window().min(initial);
            self.control_mut().set_window(window);
        }
    }

    /// Notes when a segment is sent.
    pub(super) fn note_grant_used(&mut self, now: Instant) {
        if let Some(granted) = &mut self.cold.granted {
            granted.last_sent = now;
        }
    }

    /// Returns whether the window may grow by an ACK that moves the left edge from `before`.
    pub(super) fn validate(&mut self, before: u32, now: Instant) -> bool {
        let (acked, next) = (self.acked, self.next);
        let Cold { granted, rto, .. } = &mut *self.cold;
        let Some(pipe) = granted.as_mut().and_then(|granted| granted.pipe.as_mut()) else { return true };
        let period = rto.smoothed_span().unwrap_or(Duration::ZERO);
        let period = period.saturating_mul(PERIOD_IN_ROUND_TRIPS).max(LEAST_PERIOD);
        let is_valid = pipe.validates(self.control.window());
        pipe.on_ack(before, acked, next, period, now);
        is_valid
    }

    /// Notes that nothing more leaves: where the application has no more, delivery rates are its own.
    pub(super) fn note_lack_of_data(&mut self) {
        if self.next < self.data_end {
            return;
        }
        let pipe = (self.next - self.acked).saturating_sub(self.cold.left_network);
        let window = self.congestion_window();
        if let Some(delivery) = &mut self.cold.delivery
            && f64::from(pipe) < window
        {
            delivery.limit_by_application(pipe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn pipe_ack_is_what_a_round_trip_acknowledges() {
        let mut pipe = PipeAck::default();
        assert!(pipe.validates(1000.0), "undefined");
        let period = Duration::from_secs(1);
        // A flight of ten, acknowledged two by two: the sample ends with the last.
        for acked in [2, 4, 6, 8] {
            pipe.on_ack(acked - 2, acked, 10, period, at(40));
            assert_eq!(pipe.best, None);
        }
        pipe.on_ack(8, 10, 10, period, at(41));
        assert_eq!(pipe.best, Some(10));
        assert!(pipe.validates(20.0) && !pipe.validates(20.5));
        // A smaller flight counts once the sample is old.
        pipe.on_ack(10, 13, 13, period, at(900));
        assert_eq!(pipe.best, Some(10));
        pipe.on_ack(13, 16, 16, period, at(1042));
        assert_eq!(pipe.best, Some(3));
    }
}

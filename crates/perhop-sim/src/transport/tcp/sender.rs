//! The sender: slow start, congestion avoidance, fast retransmit and fast recovery.
//!
//! ## Deviations
//! - The window is counted in whole segments, as in ns-2; a segment is always full.
//! - After a loss the window is halved from min(cwnd, receiver's window), not from the flight size of RFC 5681 (4): the
//!   two agree for a source that always has data.
//! - A second timeout in a row halves the threshold again, where RFC 5681 holds it.
//! - Both variants start a new fast retransmit only after everything sent before the last one is acknowledged (RFC 6582,
//!   section 3.2, step 1; ns-2's `bugFix_`).
//! - Two-windows TCP (Yeom & Reddy 1999, figure 7) decreases by the color of the first lost segment, at most once a
//!   recovery; its reserved window is the smoothed round-trip time, as the coarse clock sees it, times the reserved rate.
//!   The paper does not say what a timeout does: here the threshold follows the same rule. Without a reserved rate it is
//!   Reno, packet by packet.
//! - Feedback of OUT packets (Yeom & Reddy 1999, section 3.1) lowers cwnd alone; what comes during a fast recovery is
//!   forgotten at its end, when cwnd becomes ssthresh.
//! - After a timeout the sender goes back to the first unacknowledged segment and sends on from there.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use std::ops::Range;

use perhop_core::control::Message;
use perhop_core::{Bitrate, Bytes, Color, Context, Duration, Instant};

use super::congestion::CongestionAvoidance;
use super::{Congestion, NewRenoTimer, PartialWindowDeflation, RtoEstimator, TcpParams, Variant};
use crate::transport::{SenderStatistics, Transmit};

/// One connection's sending side.
///
/// What every acknowledgement touches stands together; the rest has a place of its own, so that thousands of connections
/// stay in the cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct TcpSender {
    pub(super) acked: u32,
    pub(super) next: u32,
    /// One past the highest segment ever sent.
    pub(super) highest: u32,
    /// The segment whose round trip is being measured, or [`UNTIMED`].
    pub(super) timed: u32,
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    pub(super) expiry: Instant,
    /// The retransmission timeout now in force.
    pub(super) timeout: Duration,
    /// The receiver's window in segments: as far as `cwnd` may grow.
    most: f64,
    /// One past the last segment that the application has.
    pub(super) end: u32,
    /// How many segments may be unacknowledged, by both windows.
    limit: u32,
    pub(super) duplicates: u32,
    /// When the timed segment was sent.
    timed_at: Instant,
    /// Segments known to have left the network during fast recovery.
    inflation: u32,
    /// A segment to send whatever the window says: a retransmission, or a new one by limited transmit.
    pub(super) urgent: Option<u32>,
    /// What had been sent when the last recovery or timeout began.
    recover: u32,
    jitter: Instant,
    /// Size of a full segment.
    packet: u16,
    variant: Variant,
    recovering: Option<Recovery>,
    pub(super) started: bool,
    release: Release,
    handshake: bool,
    /// The window grows by acknowledgements, as Reno's.
    counts_acks: bool,
    pub(super) rare: Box<Rare>,
}

/// In place of a segment's number: the round trip of none is being measured.
pub(super) const UNTIMED: u32 = u32::MAX;

/// What a sender touches once a round trip or less.
#[derive(Clone, Debug)]
pub(super) struct Rare {
    rto: RtoEstimator,
    congestion: CongestionAvoidance,
    /// Reserved rate in bit/s, and the color of each segment sent (two-windows TCP).
    reserved: f64,
    colors: Vec<Color>,
    pub(super) params: TcpParams,
    pub(super) statistics: SenderStatistics,
}

/// Whether new data waits for a random time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    /// Never.
    Always,
    Waits,
    /// It is over: send while the window is open.
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recovery {
    /// A partial acknowledgement came: an impatient sender restarts the timer no more (RFC 6582, section 4).
    partial: bool,
}

impl TcpSender {
    /// A connection of these parameters, which ends after `volume` bytes if one is given, and was sold `reserved`.
    pub fn new(params: TcpParams, volume: Option<Bytes>, reserved: Option<Bitrate>) -> Self {
        let handshake = u32::from(params.handshake);
        let segments = volume.map(|volume| volume.get().div_ceil(params.packet.get()));
        let end =
            segments.map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(handshake));
        let cwnd = if params.handshake { 1.0 } else { params.initial_window.get() as f64 };
        let rto = RtoEstimator::new(&params);
        Self {
            acked: 0,
            next: 0,
            highest: 0,
            duplicates: 0,
            cwnd,
            ssthresh: params.initial_ssthresh.unwrap_or(params.window).get() as f64,
            expiry: Instant::NEVER,
            timeout: rto.timeout(),
            timed: UNTIMED,
            timed_at: Instant::ZERO,
            inflation: 0,
            limit: 0,
            urgent: None,
            end,
            recover: 0,
            jitter: Instant::NEVER,
            most: params.window.get() as f64,
            packet: params.packet.get() as u16,
            variant: match params.tcp {
                Variant::Linux | Variant::Ns1998 => Variant::NewReno,
                variant => variant,
            },
            recovering: None,
            started: false,
            release: if params.send_jitter.is_zero() { Release::Always } else { Release::Waits },
            handshake: params.handshake,
            counts_acks: params.congestion == Congestion::Reno && !params.byte_counting,
            rare: Box::new(Rare {
                rto,
                congestion: params.congestion.into(),
                reserved: reserved.map_or(0.0, |rate| rate.as_bps() as f64),
                colors: match params.tcp {
                    Variant::TwoWindows => vec![Color::Yellow; (params.window.get() + 2) as usize],
                    Variant::Reno | Variant::NewReno | Variant::Linux | Variant::Ns1998 => Vec::new(),
                },
                params,
                statistics: SenderStatistics::default(),
            }),
        }
    }

    pub(in crate::transport) fn start(&mut self) {
        self.started = true;
        self.limit = self.allowed();
    }

    pub(in crate::transport) fn stop(&mut self) {
        self.end = self.end.min(self.highest);
    }

    #[inline(always)]
    pub(in crate::transport) fn wake(&self) -> Instant {
        self.expiry.min(self.jitter)
    }

    pub(in crate::transport) fn window(&self) -> f64 {
        self.cwnd
    }

    /// It has begun, and not everything that it has is acknowledged.
    pub(in crate::transport) fn is_sending(&self) -> bool {
        self.started && self.acked < self.end
    }

    pub(in crate::transport) fn smoothed_rtt(&self) -> Option<f64> {
        self.rare.rto.smoothed()
    }

    pub(in crate::transport) fn acknowledged(&self) -> u64 {
        u64::from(self.acked.saturating_sub(u32::from(self.handshake)))
    }

    pub(in crate::transport) fn statistics(&self) -> SenderStatistics {
        let again = self.rare.statistics.retransmitted;
        SenderStatistics { sent: u64::from(self.highest) + again, ..self.rare.statistics.clone() }
    }

    #[inline(always)]
    pub(in crate::transport) fn on_ack(&mut self, expected: u32, now: Instant) {
        if expected > self.acked {
            match self.recovering {
                Some(_) if self.variant == Variant::NewReno && expected < self.recover => {
                    self.on_partial_ack(expected, now);
                }
                _ => self.on_new_ack(expected, now),
            }
        } else if expected == self.acked && self.highest > self.acked {
            self.on_duplicate_ack(now);
        }
        self.limit = self.allowed();
    }

    /// Nothing keeps it from taking acknowledgements [in its stride](Self::stride): it has no losses to repair, all that it
    /// sends is new, its timer runs, and so does the measurement of a round trip.
    pub(crate) fn is_in_stride(&self) -> bool {
        self.started
            && self.expiry != Instant::NEVER
            && self.next == self.highest
            && (self.duplicates, self.inflation) == (0, 0)
            && (self.recovering, self.urgent) == (None, None)
            && self.timed != UNTIMED
            && self.release == Release::Always
            && self.variant != Variant::TwoWindows
            && !(self.handshake && self.acked == 0)
    }

    /// What [`on_ack`](Self::on_ack) and [`transmit`](Self::transmit) do of nearly every acknowledgement, while the sender
    /// [`is_in_stride`](Self::is_in_stride): new data is acknowledged, but not all, and it is not the timed segment. Returns
    /// the segments to put on the wire; `None`, and does nothing, for any other acknowledgement.
    #[inline(always)]
    pub(crate) fn stride(&mut self, expected: u32, now: Instant) -> Option<Range<u32>> {
        debug_assert!(self.is_in_stride());
        // The timed segment was sent, so more was than up to there.
        if expected <= self.acked || expected > self.timed {
            return None;
        }
        let delivered = expected - self.acked;
        self.acked = expected;
        self.expiry = now.later(self.timeout);
        if self.counts_acks {
            self.grow_by_ack();
        } else {
            self.grow(delivered, now);
        }
        self.limit = self.cwnd as u32;
        let first = self.next;
        let end = (u64::from(expected) + u64::from(self.limit)).min(u64::from(self.end)) as u32;
        let end = end.max(first);
        (self.next, self.highest) = (end, end);
        Some(first..end)
    }

    #[inline(always)]
    fn on_new_ack(&mut self, expected: u32, now: Instant) {
        if self.recovering.take().is_some() {
            self.inflation = 0;
            self.cwnd = self.ssthresh;
        }
        let acked = expected - self.acked;
        self.take_new_ack(expected, acked, now);
    }

    /// Moves on to `expected`, and lets the window grow by an acknowledgement, or by the `delivered` segments that it tells of.
    #[inline(always)]
    pub(super) fn take_new_ack(&mut self, expected: u32, delivered: u32, now: Instant) {
        let opens = self.handshake && self.acked == 0;
        self.duplicates = 0;
        self.advance(expected, now);
        self.expiry = if self.acked == self.highest { Instant::NEVER } else { now + self.timeout };
        if opens {
            self.cwnd = self.rare.params.initial_window.get() as f64;
        } else if self.counts_acks {
            self.grow_by_ack();
        } else {
            self.grow(delivered, now);
        }
    }

    /// Slow start and congestion avoidance of RFC 5681, section 3.1, by acknowledgements.
    #[inline(always)]
    fn grow_by_ack(&mut self) {
        let gain = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        let cwnd = self.cwnd + gain;
        self.cwnd = if cwnd < self.most { cwnd } else { self.most };
    }

    /// Slow start up to the threshold, by segments (RFC 3465, without its limit L); what is left goes to congestion avoidance.
    #[inline(never)]
    fn grow(&mut self, delivered: u32, now: Instant) {
        let slow = f64::from(delivered).min((self.ssthresh - self.cwnd).max(0.0));
        let left = f64::from(delivered) - slow;
        self.cwnd += slow;
        if left > 0.0 {
            self.cwnd = match &mut self.rare.congestion {
                CongestionAvoidance::Reno => self.cwnd + left / self.cwnd,
                CongestionAvoidance::Cubic(cubic) => {
                    cubic.increase(self.cwnd, left, now, self.rare.rto.smoothed().unwrap_or(0.0))
                }
            };
        }
        self.cwnd = self.cwnd.min(self.most);
    }

    /// RFC 6582, section 3.2, step 3: the next hole is sent at once, and the window shrinks by what was acknowledged, or back to
    /// ssthresh. The timer is restarted at the first of a recovery, or at each (section 4).
    #[inline(never)]
    fn on_partial_ack(&mut self, expected: u32, now: Instant) {
        let acked = expected - self.acked;
        match self.rare.params.partial_window_deflation {
            PartialWindowDeflation::ToSsthresh => self.inflation = 0,
            PartialWindowDeflation::ByAcknowledged if self.inflation > acked => self.inflation -= acked - 1,
            PartialWindowDeflation::ByAcknowledged => {
                self.cwnd = (self.cwnd - f64::from(acked - self.inflation)).max(1.0);
                self.inflation = 1;
            }
        }
        self.advance(expected, now);
        let steady = self.rare.params.newreno_timer == NewRenoTimer::SlowButSteady;
        if let Some(recovery) = &mut self.recovering
            && (!std::mem::replace(&mut recovery.partial, true) || steady)
        {
            self.expiry = now + self.timeout;
        }
        self.urgent = Some(self.acked);
    }

    /// Moves the left edge and takes a round-trip sample if the timed segment is covered (Karn: one sent once).
    pub(super) fn advance(&mut self, expected: u32, now: Instant) {
        self.acked = expected;
        self.next = self.next.max(expected);
        if expected > self.timed {
            self.sample(now);
        }
    }

    #[inline(never)]
    pub(super) fn sample(&mut self, now: Instant) {
        self.timed = UNTIMED;
        let Rare { rto, statistics, .. } = &mut *self.rare;
        rto.sample(self.timed_at, now);
        self.timeout = rto.timeout();
        let (samples, sum) = &mut statistics.rtt_samples;
        *samples += 1;
        *sum += u128::from(now.since(self.timed_at).as_nanos());
    }

    #[inline(never)]
    fn on_duplicate_ack(&mut self, now: Instant) {
        self.duplicates += 1;
        if self.recovering.is_some() {
            self.inflation += 1;
        } else if self.duplicates == 3 {
            // A burst of duplicates after a timeout tells of segments sent twice, not of a new loss.
            if self.acked > self.recover || self.recover == 0 {
                self.fast_retransmit(now);
            }
        } else if self.duplicates < 3
            && self.rare.params.limited_transmit
            && self.next < self.end
            && self.next - self.acked < self.allowed().saturating_add(self.duplicates).min(self.most())
        {
            self.urgent = Some(self.next);
            self.next += 1;
        }
    }

    fn fast_retransmit(&mut self, now: Instant) {
        self.rare.statistics.fast_retransmits += 1;
        self.decrease();
        self.cwnd = self.ssthresh;
        self.inflation = 3;
        self.recover = self.highest;
        self.recovering = Some(Recovery { partial: false });
        self.timed = UNTIMED;
        self.expiry = now + self.timeout;
        self.urgent = Some(self.acked);
    }

    /// A segment was lost: the threshold falls to half of the window, or of what is beyond the reserved window, or to what
    /// CUBIC leaves of it.
    pub(super) fn decrease(&mut self) {
        let window = self.cwnd.min(self.most);
        let kept = if self.variant == Variant::TwoWindows && self.color_of(self.acked) != Color::Green {
            self.reserved_window().min(window)
        } else {
            0.0
        };
        let left = match &mut self.rare.congestion {
            CongestionAvoidance::Reno => kept + (window - kept) / 2.0,
            CongestionAvoidance::Cubic(cubic) => cubic.decrease(window),
        };
        self.ssthresh = left.max(2.0);
    }

    /// rwnd = round-trip time x reserved rate, in segments.
    fn reserved_window(&self) -> f64 {
        self.rare.rto.smoothed().unwrap_or(0.0) * self.rare.reserved / self.rare.params.packet.bits() as f64
    }

    fn color_of(&self, sequence: u32) -> Color {
        let colors = &self.rare.colors;
        colors[sequence as usize % colors.len()]
    }

    /// The marker gave this segment a color.
    #[inline]
    pub(in crate::transport) fn on_marked(&mut self, sequence: u32, color: Color) {
        if self.variant == Variant::TwoWindows {
            let colors = &mut self.rare.colors;
            let slot = sequence as usize % colors.len();
            colors[slot] = color;
        }
    }

    /// A control message came; one that it has no use for changes nothing.
    pub(in crate::transport) fn hear(&mut self, message: &Message) {
        if *message == Message::MarkedOut {
            self.on_out_feedback();
        }
    }

    /// The marker tells of an OUT packet: one segment less (Yeom & Reddy 1999, section 3.1).
    fn on_out_feedback(&mut self) {
        self.cwnd = (self.cwnd - 1.0).max(1.0);
        self.limit = self.allowed();
    }

    pub(in crate::transport) fn on_wake(&mut self, now: Instant) {
        if self.expires(now) {
            // Back to the first segment that is not acknowledged.
            self.urgent = Some(self.acked);
            self.next = self.acked + 1;
        }
        self.limit = self.allowed();
    }

    /// The time named by [`wake`](Self::wake) has come; says whether the retransmission timer expired.
    pub(super) fn expires(&mut self, now: Instant) -> bool {
        if now >= self.jitter {
            self.jitter = Instant::NEVER;
            self.release = Release::Released;
        }
        let expires = now >= self.expiry;
        if expires {
            self.on_timeout(now);
        }
        expires
    }

    /// RFC 6298, section 5, and RFC 5681, section 3.1: back to one segment.
    fn on_timeout(&mut self, now: Instant) {
        self.rare.statistics.timeouts += 1;
        // Segments that left the network during a recovery are no part of the window that is halved.
        self.inflation = 0;
        self.decrease();
        if let CongestionAvoidance::Cubic(cubic) = &mut self.rare.congestion {
            cubic.on_timeout();
        }
        self.cwnd = 1.0;
        self.duplicates = 0;
        self.recovering = None;
        self.recover = self.highest;
        self.timed = UNTIMED;
        self.rare.rto.back_off();
        self.timeout = self.rare.rto.timeout();
        self.expiry = now + self.timeout;
    }

    /// The next segment to put on the wire now, if there is one.
    #[inline(always)]
    pub(in crate::transport) fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if let Some(sequence) = self.urgent.take() {
            return Some(self.send(sequence, cx.now));
        }
        if !self.may_send() || !self.may_send_yet(cx) {
            return None;
        }
        let sequence = self.next;
        self.next += 1;
        Some(self.send(sequence, cx.now))
    }

    /// With a send jitter, new data waits for its random time; what the window then allows goes out together.
    #[inline(always)]
    pub(super) fn may_send_yet(&mut self, cx: &mut Context<'_>) -> bool {
        let may = self.release != Release::Waits;
        if !may {
            self.draw_jitter(cx);
        }
        may
    }

    #[cold]
    fn draw_jitter(&mut self, cx: &mut Context<'_>) {
        if self.jitter == Instant::NEVER {
            let wait = cx.rng.up_to(self.rare.params.send_jitter.as_nanos());
            self.jitter = cx.now + Duration::from_nanos(wait);
        }
    }

    /// The receiver's window in segments.
    pub(super) fn most(&self) -> u32 {
        self.most as u32
    }

    /// How many segments may be unacknowledged; none before the start.
    #[inline(always)]
    fn allowed(&self) -> u32 {
        if self.started { (self.cwnd as u32 + self.inflation).min(self.most()) } else { 0 }
    }

    #[inline(always)]
    fn may_send(&mut self) -> bool {
        let may = self.next - self.acked < self.limit && self.next < self.end;
        if !may {
            self.hold();
        }
        may
    }

    /// The window is shut: what it lets out next waits anew.
    #[inline(always)]
    pub(super) fn hold(&mut self) {
        if self.release == Release::Released {
            self.release = Release::Waits;
        }
    }

    #[inline(always)]
    pub(super) fn send(&mut self, sequence: u32, now: Instant) -> Transmit {
        let again = sequence < self.highest;
        if !again {
            debug_assert_eq!(sequence, self.highest);
            self.highest = sequence + 1;
            if self.timed == UNTIMED {
                self.timed = sequence;
                self.timed_at = now;
            }
        }
        if self.expiry == Instant::NEVER {
            self.expiry = now + self.timeout;
        }
        if again {
            self.rare.statistics.retransmitted += 1;
        }
        let size =
            if self.handshake && sequence == 0 { self.rare.params.ack.get() as u16 } else { self.packet };
        Transmit { sequence, size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::Rng;
    use proptest::prelude::*;

    struct Wire {
        sender: TcpSender,
        rng: Rng,
        now: Instant,
    }

    impl Wire {
        fn new(extra: &str) -> (Self, Vec<u32>) {
            Self::of(&format!(r#"{{"tcp": "newreno" {extra}}}"#))
        }

        fn of(params: &str) -> (Self, Vec<u32>) {
            let params = serde_json::from_str(params).unwrap();
            let mut wire = Self {
                sender: TcpSender::new(params, None, None),
                rng: Rng::stream(1, "tcp"),
                now: Instant::ZERO,
            };
            let sent = wire.act(|sender, _| sender.start());
            (wire, sent)
        }

        fn act(&mut self, act: impl FnOnce(&mut TcpSender, Instant)) -> Vec<u32> {
            act(&mut self.sender, self.now);
            let mut cx = Context { now: self.now, rng: &mut self.rng };
            std::iter::from_fn(|| self.sender.transmit(&mut cx)).map(|transmit| transmit.sequence).collect()
        }

        fn ack(&mut self, expected: u32) -> Vec<u32> {
            self.now += Duration::from_millis(1);
            self.act(|sender, now| sender.on_ack(expected, now))
        }

        fn acks(&mut self, expected: &[u32]) -> Vec<Vec<u32>> {
            expected.iter().map(|&n| self.ack(n)).collect()
        }

        /// Acknowledges one by one until segments `acked..acked + window` are outstanding.
        fn grow(&mut self, window: u32) -> u32 {
            for n in 1.. {
                self.ack(n);
                if self.sender.next - self.sender.acked == window {
                    return n;
                }
            }
            unreachable!()
        }
    }

    #[test]
    fn slow_start_doubles_then_congestion_avoidance_adds_one() {
        let (mut wire, first) = Wire::new(r#","initial-ssthresh": "4p""#);
        assert_eq!(first, [0]);
        assert_eq!(wire.acks(&[1, 2, 3]), [vec![1, 2], vec![3, 4], vec![5, 6]]);
        assert_eq!(wire.sender.cwnd, 4.0);
        // Four acknowledgements of a window of four add one segment, less the rounding of 1/cwnd.
        wire.acks(&[4, 5, 6, 7]);
        assert!((wire.sender.cwnd - (4.0 + 0.25 + 1.0 / 4.25)).abs() < 0.46 && wire.sender.cwnd < 5.0);
    }

    #[test]
    fn reno_and_newreno_differ_on_the_second_hole() {
        for (variant, after_partial) in [("newreno", true), ("reno", false)] {
            let (mut wire, _) = Wire::of(&format!(r#"{{"tcp": "{variant}"}}"#));
            let base = wire.grow(8);
            // base and base + 2 are lost; six duplicates come for the other six.
            let sent = wire.acks(&[base; 3]);
            assert_eq!(sent, [vec![], vec![], vec![base]], "the third duplicate retransmits");
            assert_eq!((wire.sender.ssthresh, wire.sender.cwnd, wire.sender.inflation), (4.0, 4.0, 3));
            let sent = wire.acks(&[base; 3]);
            assert_eq!(
                sent,
                [vec![], vec![base + 8], vec![base + 9]],
                "the window, inflated, lets new data out"
            );
            // The retransmission fills the first hole: everything below base + 2 has come.
            let sent = wire.ack(base + 2);
            assert_eq!(sent.first() == Some(&(base + 2)), after_partial, "{variant}: {sent:?}");
            assert_eq!(wire.sender.recovering.is_some(), after_partial);
            if after_partial {
                wire.ack(base + 8);
                assert_eq!(wire.sender.recovering, None);
                assert_eq!(wire.sender.cwnd, 4.25);
            }
        }
    }

    /// Of segments base to base + 15 three are lost: base, base + 4 and base + 8. Returns what is sent on each acknowledgement,
    /// and the time from it to the timer's expiry in timeouts.
    fn three_holes(extra: &str) -> (u32, Vec<Vec<u32>>, Vec<u64>) {
        let (mut wire, _) = Wire::new(extra);
        let base = wire.grow(16);
        wire.sender.cwnd = 16.0;
        // Thirteen duplicates for the segments that arrived; the third starts the recovery.
        let mut acks = vec![base; 13];
        // Then the retransmissions of each hole arrive, a round trip apart: two partial acknowledgements, one of everything.
        acks.extend([base + 4, base + 8, base + 16]);
        let (mut sent, mut left) = (Vec::new(), Vec::new());
        for (number, &expected) in acks.iter().enumerate() {
            wire.now += Duration::from_millis(if number < 13 { 1 } else { 20 });
            sent.push(wire.act(|sender, now| sender.on_ack(expected, now)));
            left.push(wire.sender.wake().since(wire.now).as_nanos() / 1_000_000);
        }
        assert_eq!(wire.sender.recovering, None);
        (base, sent, left)
    }

    #[test]
    fn impatient_newreno_restarts_its_timer_once_a_recovery_and_slow_but_steady_each_time() {
        // RFC 6582, section 3.2, step 3: "for the first partial ACK that arrives during fast recovery, also reset the retransmit
        // timer"; section 4: "In the Slow-but-Steady variant of NewReno, the retransmission timer is reset after each partial
        // ACK." The timeout is 200 ms; the third duplicate starts the timer, ten more come within 10 ms.
        let (_, _, impatient) = three_holes("");
        assert_eq!(impatient[2], 200);
        assert_eq!(impatient[12..], [190, 200, 180, 200]);
        let (_, _, steady) = three_holes(r#","newreno-timer": "slow-but-steady""#);
        assert_eq!(steady[12..], [190, 200, 200, 200]);
    }

    #[test]
    fn a_partial_acknowledgement_takes_its_segments_or_all_inflation_out_of_the_window() {
        // ssthresh = 16/2 = 8; after 13 duplicates the window is 8 + 13 = 21: base + 16 to base + 20 have gone out.
        let (base, sent, _) = three_holes("");
        assert_eq!(sent[2], [base]);
        assert_eq!(sent[3..13].concat(), (base + 16..base + 21).collect::<Vec<_>>());
        // Step 3: 21 - 4 + 1 = 18 from base + 4: up to base + 21; then 18 - 4 + 1 = 15 from base + 8: up to base + 22. The
        // full acknowledgement leaves ssthresh, 8, and one more for new data in congestion avoidance: base + 23 from base + 16.
        assert_eq!(sent[13..15], [vec![base + 4, base + 21], vec![base + 8, base + 22]]);
        assert_eq!(sent[15], [base + 23]);
        // Back to ssthresh: 8 from base + 4 and from base + 8 lets nothing out but the holes, since base + 20 has gone.
        let (base, sent, _) = three_holes(r#","partial-window-deflation": "to-ssthresh""#);
        assert_eq!(sent[13..15], [vec![base + 4], vec![base + 8]]);
        assert_eq!(sent[15], [base + 21, base + 22, base + 23]);
    }

    #[test]
    fn the_deflated_window_is_inflated_anew_by_the_next_duplicates() {
        let (mut wire, _) = Wire::new(r#","partial-window-deflation": "to-ssthresh""#);
        let base = wire.grow(16);
        wire.acks(&[base; 13]);
        wire.ack(base + 4);
        assert_eq!((wire.sender.cwnd, wire.sender.inflation), (8.0, 0));
        // Nine duplicates: 8 + 9 = 17 from base + 4 lets out up to base + 20, which has gone; the tenth the next.
        assert_eq!(wire.acks(&[base + 4; 9]).concat(), Vec::<u32>::new());
        assert_eq!(wire.ack(base + 4), [base + 21]);
    }

    #[test]
    fn two_windows_decrease_as_figure_7_says() {
        // A round trip of 100 ms at 0.4 Mbit/s reserves 5 segments of 1000 bytes. With a window of 12 and an OUT packet
        // lost: 5 + 7/2; with an IN packet lost: 6. With 2 Mbit/s reserved (25 segments): no reduction at all.
        for (reserved, color, left) in
            [("0.4Mbps", Color::Yellow, 8.5), ("0.4Mbps", Color::Green, 6.0), ("2Mbps", Color::Yellow, 12.0)]
        {
            let (mut wire, _) = Wire::of(r#"{"tcp": "two-windows", "tick": "1ms"}"#);
            wire.sender.rare.reserved = reserved.parse::<Bitrate>().unwrap().as_bps() as f64;
            let base = wire.grow(12);
            wire.sender.cwnd = 12.0;
            (0..200)
                .for_each(|_| wire.sender.rare.rto.sample(Instant::ZERO, Instant::from_nanos(100_000_000)));
            wire.sender.on_marked(base, color);
            assert_eq!(wire.acks(&[base; 3]).concat().first(), Some(&base));
            assert!((wire.sender.cwnd - left).abs() < 1e-6, "{reserved} {color:?}: {}", wire.sender.cwnd);
        }
    }

    #[test]
    fn a_coarse_clock_widens_the_reserved_window() {
        // A tick of 100 ms takes round trips of 64 ms for 100 ms: 0.8 Mbit/s reserve 10 segments of 1000 bytes in place of
        // 6.4, and the loss of an OUT packet takes a window of 12 to 10 + 2/2; 2 Mbit/s reserve 25 segments, more than ns-2's
        // window of 20.
        for (reserved, left) in [("0.8Mbps", 11.0), ("2Mbps", 12.0)] {
            let (mut wire, _) = Wire::of(r#"{"tcp": "two-windows", "tick": "100ms"}"#);
            wire.sender.rare.reserved = reserved.parse::<Bitrate>().unwrap().as_bps() as f64;
            let base = wire.grow(12);
            wire.sender.cwnd = 12.0;
            (0..200)
                .for_each(|_| wire.sender.rare.rto.sample(Instant::ZERO, Instant::from_nanos(64_000_000)));
            wire.sender.on_marked(base, Color::Yellow);
            wire.acks(&[base; 3]);
            assert!((wire.sender.cwnd - left).abs() < 1e-6, "{reserved}: {}", wire.sender.cwnd);
        }
    }

    #[test]
    fn out_feedback_takes_one_segment_and_never_the_last() {
        let (mut wire, _) = Wire::new("");
        wire.grow(4);
        let before = wire.sender.cwnd;
        wire.sender.on_out_feedback();
        assert_eq!(wire.sender.cwnd, before - 1.0);
        (0..9).for_each(|_| wire.sender.on_out_feedback());
        assert_eq!(wire.sender.cwnd, 1.0);
    }

    #[test]
    fn a_timeout_goes_back_and_backs_off() {
        let (mut wire, _) = Wire::new("");
        let base = wire.grow(8);
        let expiry = wire.sender.wake();
        wire.now = expiry;
        assert_eq!(wire.act(TcpSender::on_wake), [base]);
        assert_eq!((wire.sender.cwnd, wire.sender.ssthresh), (1.0, 4.0));
        let first = wire.sender.wake().since(wire.now);
        wire.now = wire.sender.wake();
        wire.act(TcpSender::on_wake);
        assert_eq!(wire.sender.wake().since(wire.now).as_nanos(), 2 * first.as_nanos());
        // Duplicates for what was sent before the timeout do not start a fast retransmit.
        assert_eq!(wire.acks(&[base; 4]).concat(), Vec::<u32>::new());
        assert_eq!(wire.ack(base + 1), [base + 1, base + 2]);
    }

    #[test]
    fn a_timeout_in_fast_recovery_halves_the_window_not_its_inflation() {
        let (mut wire, _) = Wire::new("");
        let base = wire.grow(16);
        wire.acks(&[base; 12]);
        assert_eq!((wire.sender.cwnd, wire.sender.inflation), (8.0, 12));
        wire.now = wire.sender.wake();
        wire.act(TcpSender::on_wake);
        assert_eq!((wire.sender.cwnd, wire.sender.ssthresh, wire.sender.inflation), (1.0, 4.0, 0));
    }

    #[test]
    fn the_very_first_segment_is_retransmitted_fast() {
        let (mut wire, sent) = Wire::new(r#","initial-window": "5p""#);
        assert_eq!(sent, [0, 1, 2, 3, 4]);
        assert_eq!(wire.acks(&[0, 0, 0]), [vec![], vec![], vec![0]]);
    }

    #[test]
    fn limited_transmit_sends_on_the_first_two_duplicates() {
        let (mut wire, _) = Wire::new(r#","limited-transmit": true"#);
        let base = wire.grow(4);
        assert_eq!(wire.acks(&[base, base, base]), [vec![base + 4], vec![base + 5], vec![base]]);
    }

    #[test]
    fn handshake_sends_a_small_segment_first() {
        let params = serde_json::from_str(
            r#"{"tcp": "reno", "handshake": true, "initial-window": "2p", "packet": "1500B"}"#,
        );
        let mut sender = TcpSender::new(params.unwrap(), Some(Bytes::new(3000)), None);
        let mut rng = Rng::stream(1, "tcp");
        let mut cx = Context { now: Instant::ZERO, rng: &mut rng };
        sender.start();
        assert_eq!(sender.transmit(&mut cx), Some(Transmit { sequence: 0, size: 40 }));
        assert_eq!(sender.transmit(&mut cx), None);
        sender.on_ack(1, cx.now);
        let sent = [sender.transmit(&mut cx), sender.transmit(&mut cx), sender.transmit(&mut cx)];
        assert_eq!(
            sent,
            [Some(Transmit { sequence: 1, size: 1500 }), Some(Transmit { sequence: 2, size: 1500 }), None]
        );
        sender.on_ack(3, cx.now);
        assert_eq!(sender.wake(), Instant::NEVER, "all is acknowledged");
        assert_eq!(sender.acknowledged(), 2);
    }

    #[test]
    fn karn_takes_no_sample_from_a_retransmission() {
        let (mut wire, _) = Wire::new("");
        let base = wire.grow(8);
        wire.acks(&[base; 3]);
        let samples = wire.sender.rare.statistics.rtt_samples.0;
        wire.ack(base + 8);
        assert_eq!(wire.sender.rare.statistics.rtt_samples.0, samples);
    }

    #[test]
    fn strides_end_with_losses_and_begin_again_when_they_are_repaired() {
        let (mut wire, _) = Wire::new("");
        let base = wire.grow(8);
        wire.sender.timed = base + 5;
        assert!(wire.sender.is_in_stride());
        assert_eq!(wire.sender.clone().stride(base + 1, wire.now), Some(base + 8..base + 10));
        // Nothing new; everything; the timed segment.
        let not = [base, base + 8, base + 6];
        assert!(not.iter().all(|&expected| wire.sender.clone().stride(expected, wire.now).is_none()));
        wire.ack(base);
        assert!(!wire.sender.is_in_stride(), "a duplicate came");
        wire.acks(&[base, base, base + 8]);
        assert!(wire.sender.is_in_stride());
        wire.sender.timed = UNTIMED;
        assert!(!wire.sender.is_in_stride(), "no round trip is measured");
    }

    proptest! {
        /// Whatever came before, an acknowledgement taken in a stride does and leaves what it does and leaves otherwise.
        #[test]
        fn a_stride_is_the_same_as_its_steps(
            kind in 0_usize..7,
            happens in prop::collection::vec((0_u32..12, 0_u32..9, any::<bool>()), 20..200),
        ) {
            let (mut wire, _) = Wire::of([
                r#"{"tcp": "newreno", "window": "30p"}"#,
                r#"{"tcp": "reno", "handshake": true, "limited-transmit": true}"#,
                r#"{"tcp": "newreno", "congestion": "cubic"}"#,
                r#"{"tcp": "two-windows"}"#,
                r#"{"tcp": "newreno", "send-jitter": "1ms", "initial-ssthresh": "4p"}"#,
                r#"{"tcp": "ns-1998", "window": "30p"}"#,
                r#"{"tcp": "newreno", "newreno-timer": "slow-but-steady"}"#,
            ][kind]);
            wire.sender.end = 700;
            for (what, step, marked_out) in happens {
                if what == 0 {
                    wire.now = wire.now.max(wire.sender.wake());
                    wire.act(TcpSender::on_wake);
                } else if marked_out && what == 1 {
                    wire.act(|sender, _| sender.hear(&Message::MarkedOut));
                }
                // Most acknowledge something new.
                let expected = (wire.sender.acked + if what < 9 { step / 3 } else { 0 }).min(wire.sender.highest);
                let mut short = wire.sender.clone();
                let sent = wire.ack(expected);
                if short.is_in_stride() && let Some(segments) = short.stride(expected, wire.now) {
                    prop_assert_eq!(segments.collect::<Vec<_>>(), sent);
                    prop_assert_eq!(format!("{short:?}"), format!("{:?}", wire.sender));
                }
            }
        }
    }
}

//! The sender: what it keeps of a connection, and how it is asked.
//!
//! It finds losses and recovers from them, keeps the timers and decides when a segment leaves. How large the window is outside
//! of a recovery, its [congestion control](super::congestion) says.
//!
//! ## Deviations
//! - The window is counted in whole segments, as in ns-2; a segment is always full, but the last one of a flow of a population.
//! - Both variants start a new fast retransmit only after everything sent before the last one is acknowledged (RFC 6582,
//!   section 3.2, step 1; ns-2's `bugFix_`).
//! - Feedback of OUT packets (Yeom & Reddy 1999, section 3.1) lowers the window alone; what comes during a fast recovery is
//!   forgotten at its end, when the window becomes that of the congestion control.
//! - After a timeout the sender goes back to the first unacknowledged segment and sends on from there.
//! - Where segments are paced, a retransmission leaves at once, and what follows waits for it as for any other segment.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

mod ack;
pub(in crate::transport::tcp) mod delivery;
mod ecn;
mod fast_path;
mod granted;
mod hystart;
mod limit;
mod opening;
mod pacing;
mod recovery;
mod round_trips;
mod slow_start;
#[cfg(test)]
mod tests;
mod timer;
mod transmit;

use perhop_core::control::Message;
use perhop_core::{Bitrate, Bytes, Color, Duration, Instant};

use super::congestion::{AnyCongestion, CongestionControl, ForeignCongestionParams, Needs, Setup};
use super::rack::Timer;
use super::window_tuning::WindowTuner;
use super::{RtoEstimator, TcpEcn, TcpParams};
use crate::transport::SenderStatistics;
use crate::transport::limits::{Limit, LimitClock};
use delivery::DeliveryRate;
use ecn::EcnState;
use granted::Granted;
pub(super) use recovery::Recovery;
use round_trips::RoundTrips;
use slow_start::EarlyExit;
use transmit::Release;

/// One connection's sending side.
///
/// What every ACK touches stands together; the rest has a place of its own, so that thousands of connections stay in the cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct TcpSender {
    pub(super) acked: u32,
    pub(super) next: u32,
    /// One past the highest segment ever sent.
    pub(super) highest: u32,
    /// The segment whose round trip is being measured, or [`UNTIMED`].
    pub(super) timed: u32,
    pub(super) control: AnyCongestion,
    pub(super) expiry: Instant,
    /// The retransmission timeout now in force.
    pub(super) timeout: Duration,
    /// How many segments may be unacknowledged now by the receiver's window and the sender's buffer; one before the connection is
    /// open.
    most: u32,
    /// One past the last segment that the application has.
    pub(super) end: u32,
    /// How many segments may be unacknowledged, by both windows.
    limit: u32,
    pub(super) duplicates: u32,
    /// When the timed segment was sent.
    timed_at: Instant,
    /// A segment to send whatever the window says: a retransmission, or a new one by limited transmit.
    pub(super) urgent: Option<u32>,
    /// What had been sent when the last recovery or timeout began.
    recover: u32,
    /// Size of a full segment.
    packet: u16,
    release: Release,
    /// A recovery from losses is on.
    recovering: bool,
    /// When new data that waits may leave.
    pub(super) next_send: Instant,
    pub(super) started: bool,
    handshake: bool,
    /// The fast path does all that its congestion control asks for, and it does not use ECN.
    fast_path: bool,
    /// Of an ACK of new data in order that reports no mark, its congestion control learns how much that is, and nothing else is to be
    /// done.
    takes_plain: bool,
    /// ECN, or its congestion control, asks for notes of what is sent and acknowledged.
    notes: bool,
    /// What keeps it from sending more; nothing before the start and at the end.
    limited_by: Option<Limit>,
    /// The size of the last segment that the application has.
    last: u16,
    pub(super) rare: Box<Rare>,
}

/// In place of a segment's number: the round trip of none is being measured.
pub(super) const UNTIMED: u32 = u32::MAX;

/// What a sender touches once a round trip or less.
#[derive(Clone, Debug)]
pub(super) struct Rare {
    rto: RtoEstimator,
    /// The round trips of all segments. Each ACK uses them, but the fields that share a cache line with the window leave no room for them.
    trips: RoundTrips,
    /// The recovery that is on, or the last one.
    pub(super) recovery: Recovery,
    /// The color of each segment sent, if the congestion control asks for it.
    colors: Vec<Color>,
    pub(super) ecn: EcnState,
    /// What delivery rates are measured by, if it asks for them.
    delivery: Option<DeliveryRate>,
    /// What ends the first slow start besides losses.
    early_exit: Option<Box<EarlyExit>>,
    /// The congestion control says at which rate segments leave.
    has_own_pace: bool,
    /// A paced segment may leave from then on.
    paced_until: Instant,
    /// See [`TcpSender::gap`].
    gap: Option<Duration>,
    /// The congestion control's window is in force in recoveries, and it hears of all that happens there.
    owns_recovery: bool,
    /// Outstanding segments that are not in the network, as far as ACKs tell.
    absent: u32,
    /// Segments found to be lost since the last ACK that was passed to the congestion control.
    lost: u32,
    /// Since when, and how long what else did.
    limits: LimitClock,
    /// Answers to the SYN that may still come.
    stray: u32,
    /// The application hands its data over in steps.
    granted: Option<Box<Granted>>,
    /// The receiver's window grows.
    tuning: Option<Box<WindowTuner>>,
    pub(super) params: TcpParams,
    pub(super) statistics: SenderStatistics,
}

impl TcpSender {
    /// A connection of these parameters, which ends after `volume` bytes if one is given, and has the contracted rate `reserved`.
    /// What its congestion control decides by chance begins with `seed`.
    pub fn new(
        params: TcpParams,
        volume: Option<Bytes>,
        reserved: Option<Bitrate>,
        ecn: TcpEcn,
        seed: u64,
    ) -> Self {
        let handshake = u32::from(params.handshake);
        let segments = volume.map(|volume| volume.get().div_ceil(params.packet.get()));
        let end =
            segments.map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(handshake));
        let rto = RtoEstimator::new(&params);
        let needs = params.needs();
        let tuning = WindowTuner::new(&params).map(Box::new);
        let most = params.most_outstanding();
        let mut sender = Self {
            acked: 0,
            next: 0,
            highest: 0,
            duplicates: 0,
            control: params.control().build(&setup(&params, reserved, seed)),
            expiry: Instant::NEVER,
            timeout: rto.timeout(),
            timed: UNTIMED,
            timed_at: Instant::ZERO,
            limit: 0,
            urgent: None,
            end,
            recover: 0,
            next_send: Instant::NEVER,
            most: if params.handshake { 1 } else { params.first_outstanding() },
            packet: params.packet.get() as u16,
            last: params.packet.get() as u16,
            release: Release::new(params.send_jitter, params.is_paced()),
            recovering: false,
            limited_by: None,
            started: false,
            handshake: params.handshake,
            fast_path: false,
            takes_plain: false,
            notes: false,
            rare: Box::new(Rare {
                rto,
                trips: RoundTrips::from_segment(handshake),
                recovery: Recovery::default(),
                ecn: EcnState::new(ecn, params.accecn, needs.l4s, needs.marks),
                delivery: None,
                early_exit: None,
                has_own_pace: needs.pacing,
                paced_until: Instant::ZERO,
                gap: None,
                owns_recovery: needs.recovery,
                absent: 0,
                lost: 0,
                limits: LimitClock::default(),
                stray: 0,
                granted: None,
                tuning,
                colors: if needs.colors { vec![Color::Yellow; most as usize + 2] } else { Vec::new() },
                params,
                statistics: SenderStatistics::default(),
            }),
        };
        let initial = sender.rare.params.first_window(0);
        sender.begin(handshake, initial);
        sender.note_what_is_needed(needs);
        sender
    }

    /// Leaves the fast path, and notes what is sent and acknowledged, where something asks for that.
    fn note_what_is_needed(&mut self, needs: Needs) {
        let is_simple = self.rare.early_exit.is_none() && self.rare.ecn.is_off() && !self.is_paced();
        self.fast_path = needs.allow_fast_path() && is_simple;
        self.takes_plain = needs.take_plain_acks(self.is_paced()) && self.rare.early_exit.is_none();
        self.notes = needs.delivery || needs.recovery || !is_simple;
    }

    /// The congestion control, for whatever may change what it says.
    #[inline(always)]
    fn control_mut(&mut self) -> &mut AnyCongestion {
        self.rare.gap = None;
        &mut self.control
    }

    /// One past the last segment, and by how many bytes that is shorter than a full one.
    pub(in crate::transport) fn last(&self) -> (u32, u16) {
        (self.end, self.packet.saturating_sub(self.last))
    }

    /// Its congestion control, which is implemented outside, has these parameters from now on.
    pub(in crate::transport) fn set_control(&mut self, params: &ForeignCongestionParams) {
        if let AnyCongestion::Foreign(control) = self.control_mut() {
            control.set_parameters(&params.parameters);
        }
        self.limit = self.allowed();
    }

    /// The last segment has this size in place of a full one.
    pub(in crate::transport) fn set_last(&mut self, size: u16) {
        self.last = size;
    }

    pub(in crate::transport) fn start(&mut self, now: Instant) {
        self.started = true;
        self.limit = self.allowed();
        self.note_limit(now);
    }

    pub(in crate::transport) fn stop(&mut self) {
        self.end = self.end.min(self.highest);
        if let Some(granted) = &mut self.rare.granted {
            granted.end();
        }
    }

    #[inline(always)]
    pub(in crate::transport) fn wake(&self) -> Instant {
        self.expiry.min(self.next_send)
    }

    /// The congestion window, in segments: whole ones where the sender counts them as Linux does.
    pub(in crate::transport) fn window(&self) -> f64 {
        let window = self.window_in_force();
        if self.rare.params.reduces_as_linux() { (window as u32).into() } else { window }
    }

    /// The congestion window in force: during a recovery, the recovery's own, unless the congestion control owns it. It may have a
    /// fraction that is no part of a segment, but a count of segments.
    #[inline(always)]
    pub(in crate::transport::tcp) fn window_in_force(&self) -> f64 {
        if self.recovering && !self.rare.owns_recovery {
            self.rare.recovery.window
        } else {
            self.control.window()
        }
    }

    /// It has begun, and not everything that it has is acknowledged.
    pub(in crate::transport) fn is_sending(&self) -> bool {
        self.started && self.acked < self.end
    }

    pub(in crate::transport) fn smoothed_rtt(&self) -> Option<f64> {
        self.rare.rto.smoothed()
    }

    /// What the timeout of a probe depends on, with this smoothed round trip.
    #[inline]
    pub(in crate::transport::tcp) fn probe_timer(&self, smoothed_rtt: Option<Duration>) -> Timer {
        Timer { smoothed_rtt, timeout: self.timeout, expiry: self.expiry }
    }

    /// The smoothed round-trip time in whole nanoseconds.
    pub(in crate::transport::tcp) fn smoothed_span(&self) -> Option<Duration> {
        self.rare.rto.smoothed_span()
    }

    /// One past the highest segment ever sent.
    pub(in crate::transport) fn highest(&self) -> u32 {
        self.highest
    }

    pub(in crate::transport) fn acknowledged(&self) -> u64 {
        u64::from(self.acked.saturating_sub(u32::from(self.handshake)))
    }

    pub(in crate::transport) fn statistics(&self) -> SenderStatistics {
        let again = self.rare.statistics.retransmitted;
        let (sent, rtt_samples) = (u64::from(self.highest) + again, self.rare.trips.samples());
        SenderStatistics { sent, rtt_samples, ..self.rare.statistics.clone() }
    }

    /// How many segments may be unacknowledged by the receiver's window and the sender's buffer.
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    /// The marker gave this segment a color.
    #[inline]
    pub(in crate::transport) fn on_marked(&mut self, sequence: u32, color: Color) {
        let colors = &mut self.rare.colors;
        if !colors.is_empty() {
            let slot = sequence as usize % colors.len();
            colors[slot] = color;
        }
    }

    fn color_of(&self, sequence: u32) -> Color {
        let colors = &self.rare.colors;
        if colors.is_empty() { Color::Yellow } else { colors[sequence as usize % colors.len()] }
    }

    /// A control message came; one that it has no use for changes nothing.
    pub(in crate::transport) fn on_message(&mut self, message: &Message) {
        if *message == Message::MarkedOut {
            self.on_out_feedback();
        }
    }

    /// Feedback of the marker about an OUT packet: one segment less (Yeom & Reddy 1999, section 3.1).
    fn on_out_feedback(&mut self) {
        let window = (self.window() - 1.0).max(1.0);
        match self.recovery() {
            Some(recovery) => recovery.window = window,
            None => self.control_mut().set_window(window),
        }
        self.limit = self.allowed();
    }
}

fn setup(params: &TcpParams, reserved: Option<Bitrate>, seed: u64) -> Setup {
    Setup {
        tcp: params.tcp,
        window: if params.handshake { 1.0 } else { params.initial_window.get() as f64 },
        threshold: params
            .initial_ssthresh
            .map_or(f64::from(params.most_outstanding()), |given| given.get() as f64),
        most: params.most_outstanding(),
        counts_acks: !params.byte_counting,
        packet: params.packet,
        reserved,
        whole_segments: params.reduces_as_linux(),
        selective_acks: params.sack,
        seed,
    }
}

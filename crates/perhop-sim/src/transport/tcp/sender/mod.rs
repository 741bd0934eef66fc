//! The sender: what it keeps of a connection, and how it is asked.
//!
//! It finds losses and recovers from them, keeps the timers and decides when a segment leaves. How large the
//! window is outside of a recovery, its [congestion control](super::congestion) says.
//!
//! ## Deviations
//! - The window is counted in whole segments, as in ns-2; a segment is always full, but the last one of a
//!   flow of a population.
//! - Both variants start a new fast retransmit only after everything sent before the last one is acknowledged
//!   (RFC 6582, section 3.2, step 1; ns-2's `bugFix_`).
//! - Feedback of OUT packets (Yeom & Reddy 1999, section 3.1) lowers the window alone; what comes during a
//!   fast recovery is forgotten at its end, when the window becomes that of the congestion control.
//! - After a timeout the sender goes back to the first unacknowledged segment and sends on from there.
//! - Where segments are paced, a retransmission leaves at once, and what follows waits for it as for any
//!   other segment.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

mod ack;
pub(super) mod delivery;
mod ecn;
mod granted;
mod hystart;
mod limit;
mod opening;
mod pacing;
mod recovery;
mod round_trips;
mod selective;
mod short;
mod slow_start;
#[cfg(test)]
mod tests;
mod timer;
mod transmit;

use std::ops::Range;
use std::sync::Arc;

use perhop_core::control::Message;
use perhop_core::{Bitrate, Bytes, Color, Context, Duration, Ecn, Instant};

use super::congestion::{AnyCongestion, CongestionControl, ForeignCongestionParams, Needs, Setup};
use super::window_tuning::WindowTuner;
use super::{RtoEstimator, TcpEcn, TcpParams};
use crate::transport::limits::{Limit, LimitClock, LimitTimes};
use crate::transport::metadata::Metadata;
use crate::transport::{Ack, SenderStatistics, Source, Transmit};
use delivery::DeliveryRate;
use ecn::EcnState;
use granted::Granted;
use recovery::Recovery;
use round_trips::RoundTrips;
use selective::{SelectiveRepair, Timer};
use short::Mode;
use slow_start::EarlyExit;
use transmit::Release;

/// One connection's sending side.
///
/// The fields that each ACK touches come first, the rest in `Cold`: thousands of connections stay cached.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct TcpSender {
    acked: u32,
    next: u32,
    /// One past the highest segment ever sent.
    sent_end: u32,
    /// The segment whose round trip is being measured, or [`UNTIMED`].
    rtt_segment: u32,
    control: AnyCongestion,
    expiry: Instant,
    /// The retransmission timeout now in force.
    timeout: Duration,
    /// How many segments may be unacknowledged now by the receiver's window and the sender's buffer; one
    /// before the connection is open.
    receiver_window: u32,
    /// One past the last segment that the application has.
    data_end: u32,
    /// Duplicate ACKs since the left edge last moved.
    duplicates: u32,
    /// What had been sent when the last recovery or timeout began.
    recover: u32,
    /// When the timed segment was sent.
    rtt_sent_at: Instant,
    /// A segment to send whatever the window says: a retransmission, or a new one by limited transmit.
    send_now: Option<u32>,
    /// Size of a full segment.
    packet: u16,
    /// The size of the last segment that the application has.
    last: u16,
    /// When new data that waits may leave.
    next_send: Instant,
    release: Release,
    /// A recovery from losses is on.
    recovering: bool,
    started: bool,
    handshake: bool,
    /// The short way that is open.
    mode: Mode,
    /// The short way that is open while there are no losses to repair.
    shortest: Mode,
    /// ECN, or its congestion control, asks for notes of what is sent and acknowledged.
    notes: bool,
    /// What keeps it from sending more; nothing before the start and at the end.
    limited_by: Option<Limit>,
    /// Repairs losses by selective acknowledgements; without it duplicate ACKs show them.
    selective: Option<Box<SelectiveRepair>>,
    cold: Box<Cold>,
}

/// In place of a segment's number: the round trip of none is being measured.
const UNTIMED: u32 = u32::MAX;

/// What a sender touches once a round trip or less.
#[derive(Clone, Debug)]
struct Cold {
    rto: RtoEstimator,
    /// The round trips of all segments. Each ACK uses them, but the fields that share a cache line with the
    /// window leave no room for them.
    trips: RoundTrips,
    /// The recovery that is on, or the last one.
    recovery: Recovery,
    /// The color of each segment sent, if the congestion control asks for it.
    colors: Vec<Color>,
    ecn: EcnState,
    /// What delivery rates are measured by, if it asks for them.
    delivery: Option<Box<DeliveryRate>>,
    /// What ends the first slow start besides losses.
    early_exit: Option<Box<EarlyExit>>,
    /// The congestion control says at which rate segments leave.
    has_own_pace: bool,
    /// A paced segment may leave from then on.
    paced_until: Instant,
    /// The time that a full segment takes at the pacing rate, as [`TcpSender::gap`] found it.
    gap: Option<Duration>,
    /// The congestion control's window is in force in recoveries, and each ACK there is reported to it.
    controls_recovery: bool,
    /// Outstanding segments that are not in the network, as far as ACKs tell.
    left_network: u32,
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
    /// Segments that a receiver on a real wire has room for.
    room: u32,
    /// Parameters that the flows of a group share.
    params: Arc<TcpParams>,
    statistics: SenderStatistics,
}

impl TcpSender {
    /// Makes a connection of these parameters, which ends after `volume` bytes if one is given, and has the
    /// contracted rate `reserved`. What its congestion control decides by chance begins with `seed`.
    ///
    /// It is long since it gives each field its first value, where readers look for all of them.
    pub fn new(
        params: Arc<TcpParams>,
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
        let most = params.most_outstanding();
        let mut sender = Self {
            acked: 0,
            next: 0,
            sent_end: 0,
            duplicates: 0,
            control: params.control().build(&setup(&params, reserved, seed)),
            expiry: Instant::NEVER,
            timeout: rto.timeout(),
            rtt_segment: UNTIMED,
            rtt_sent_at: Instant::ZERO,
            send_now: None,
            data_end: end,
            recover: 0,
            next_send: Instant::NEVER,
            receiver_window: if params.handshake { 1 } else { params.first_outstanding() },
            packet: params.packet.get() as u16,
            last: params.packet.get() as u16,
            release: Release::new(params.send_jitter, params.is_paced()),
            recovering: false,
            limited_by: None,
            started: false,
            handshake: params.handshake,
            mode: Mode::General,
            shortest: Mode::General,
            notes: false,
            selective: params.sack.then(|| Box::new(SelectiveRepair::new(&params))),
            cold: Box::new(Cold {
                rto,
                trips: RoundTrips::from_segment(handshake),
                recovery: Recovery::default(),
                ecn: EcnState::new(ecn, params.accecn, needs.l4s, needs.marks),
                delivery: None,
                early_exit: None,
                has_own_pace: needs.pacing,
                paced_until: Instant::ZERO,
                gap: None,
                controls_recovery: needs.recovery,
                left_network: 0,
                lost: 0,
                limits: LimitClock::default(),
                stray: 0,
                granted: None,
                tuning: WindowTuner::new(&params).map(Box::new),
                room: u32::MAX,
                colors: if needs.colors { vec![Color::Yellow; most as usize + 2] } else { Vec::new() },
                params,
                statistics: SenderStatistics::default(),
            }),
        };
        let initial = sender.cold.params.first_window(0);
        sender.begin(handshake, initial);
        sender.note_what_is_needed(needs);
        sender
    }

    /// Finds which short way this sender may have, and whether it notes what is sent and acknowledged.
    fn note_what_is_needed(&mut self, needs: Needs) {
        let is_simple = self.cold.early_exit.is_none() && self.cold.ecn.is_off() && !self.is_paced();
        self.notes = needs.delivery || needs.recovery || !is_simple;
        self.shortest = if needs.allow_plain() && is_simple {
            Mode::Plain
        } else if needs.allow_noted(self.is_paced()) && self.cold.early_exit.is_none() {
            Mode::Noted
        } else {
            Mode::General
        };
    }

    /// Returns the congestion control, for a call that may change its pacing rate.
    #[inline]
    fn control_mut(&mut self) -> &mut AnyCongestion {
        self.cold.gap = None;
        &mut self.control
    }

    /// Returns the congestion window in force: during a recovery, the recovery's own, unless the congestion
    /// control controls recoveries. It may have a fraction that is no part of a segment, but a count of
    /// segments.
    #[inline]
    pub(super) fn window_in_force(&self) -> f64 {
        if self.recovering && !self.cold.controls_recovery {
            self.cold.recovery.window
        } else {
            self.control.window()
        }
    }

    /// Returns what the timeout of a probe depends on.
    #[inline]
    fn probe_timer(&self) -> Timer {
        let smoothed_rtt = self.cold.rto.smoothed_span();
        Timer { smoothed_rtt, timeout: self.timeout, expiry: self.expiry }
    }

    /// Returns the congestion window in segments: whole ones where the sender counts them as Linux does.
    fn congestion_window(&self) -> f64 {
        let window = self.window_in_force();
        if self.cold.params.reduces_as_linux() { (window as u32).into() } else { window }
    }

    fn color_of(&self, sequence: u32) -> Color {
        let colors = &self.cold.colors;
        if colors.is_empty() { Color::Yellow } else { colors[sequence as usize % colors.len()] }
    }

    /// Learns how many segments beyond the last acknowledged one the receiver of a real wire has room for.
    pub(super) fn offer(&mut self, segments: u32) {
        self.cold.room = segments;
        if !self.is_opening() {
            self.bound_outstanding();
        }
    }

    /// Bounds what may be unacknowledged by the receiver's window and the sender's buffer.
    pub(super) fn bound_outstanding(&mut self) {
        let Cold { params, tuning, room, .. } = &*self.cold;
        let most = tuning.as_ref().map_or(params.first_outstanding(), |tuner| tuner.outstanding());
        self.receiver_window = most.min(*room);
        self.mode = Mode::General;
    }

    /// Takes feedback of the marker about an OUT packet: one segment less (Yeom & Reddy 1999, section 3.1).
    fn on_out_feedback(&mut self) {
        let window = (self.congestion_window() - 1.0).max(1.0);
        match self.recovery() {
            Some(recovery) => recovery.window = window,
            None => self.control_mut().set_window(window),
        }
    }

    /// Gives these parameters to a congestion control that is implemented outside.
    pub(in crate::transport) fn set_control(&mut self, params: &ForeignCongestionParams) {
        if let AnyCongestion::Foreign(control) = self.control_mut() {
            control.set_parameters(&params.parameters);
        }
    }
}

impl Source for TcpSender {
    fn start(&mut self, now: Instant) {
        self.started = true;
        self.note_limit(now);
    }

    fn stop(&mut self) {
        self.data_end = self.data_end.min(self.sent_end);
        if let Some(granted) = &mut self.cold.granted {
            granted.end();
        }
    }

    #[inline(always)]
    fn wake(&self) -> Instant {
        let wake = self.expiry.min(self.next_send);
        self.selective.as_ref().map_or(wake, |repair| repair.wake().min(wake))
    }

    fn on_wake(&mut self, now: Instant) {
        match self.selective.take() {
            None => self.on_timers(now),
            Some(mut repair) => {
                repair.on_wake(self, now);
                self.selective = Some(repair);
            }
        }
    }

    fn try_wake(&mut self, cx: &mut Context<'_>) -> Option<Range<u32>> {
        self.try_release(cx.now)
    }

    #[inline]
    fn on_ack(&mut self, ack: Ack, metadata: &mut Metadata, now: Instant) {
        match self.selective.take() {
            None => self.on_cumulative_ack(ack, now),
            Some(mut repair) => {
                if let Some(record) = metadata.of_acks().take(ack.number, self.acked) {
                    repair.on_ack(self, &record, ack.ece, now);
                }
                self.selective = Some(repair);
            }
        }
    }

    #[inline(always)]
    fn try_ack(&mut self, ack: Ack, metadata: &mut Metadata, now: Instant) -> Option<Range<u32>> {
        match self.mode {
            Mode::Plain => self.try_plain_ack(ack.number, now),
            Mode::Noted => self.try_noted_ack(ack, metadata, now),
            Mode::General => None,
        }
    }

    #[inline(always)]
    fn short_ecn(&self) -> Ecn {
        self.cold.ecn.codepoint
    }

    #[inline]
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        let transmit = match self.selective.take() {
            None => self.transmit_next(cx),
            Some(mut repair) => {
                let transmit = repair.transmit(self, cx);
                self.selective = Some(repair);
                transmit
            }
        };
        if transmit.is_none() {
            self.note_limit(cx.now);
            self.mode = self.find_mode();
        }
        transmit
    }

    #[inline]
    fn on_marked(&mut self, sequence: u32, color: Color) {
        let colors = &mut self.cold.colors;
        if !colors.is_empty() {
            let slot = sequence as usize % colors.len();
            colors[slot] = color;
        }
    }

    fn on_message(&mut self, message: &Message) {
        if *message == Message::MarkedOut {
            self.on_out_feedback();
        }
    }

    fn set_last(&mut self, size: u16) {
        self.last = size;
    }

    fn last(&self) -> (u32, u16) {
        (self.data_end, self.packet.saturating_sub(self.last))
    }

    fn await_grants(&mut self) {
        self.wait_for_grants();
    }

    fn grant(&mut self, segments: u32, now: Instant) {
        self.take_grant(segments, now);
    }

    fn window(&self) -> Option<f64> {
        Some(self.congestion_window())
    }

    fn is_sending(&self) -> bool {
        self.started && self.acked < self.data_end
    }

    fn smoothed_rtt(&self) -> Option<f64> {
        self.cold.rto.smoothed()
    }

    fn acknowledged(&self) -> u64 {
        u64::from(self.acked.saturating_sub(u32::from(self.handshake)))
    }

    fn sent_end(&self) -> u32 {
        self.sent_end
    }

    fn buffer(&self) -> Option<u64> {
        let params = &self.cold.params;
        Some(params.bytes_of(params.most_buffered()?, params.send_buffer?))
    }

    fn receiver_window(&self) -> Option<u64> {
        let params = &self.cold.params;
        Some(params.bytes_of(self.offered(), params.window))
    }

    fn limits(&self, now: Instant) -> LimitTimes {
        self.cold.limits.at(self.limited_by, now)
    }

    fn statistics(&self) -> SenderStatistics {
        let again = self.cold.statistics.retransmitted;
        let (sent, rtt_samples) = (u64::from(self.sent_end) + again, self.cold.trips.samples());
        SenderStatistics { sent, rtt_samples, ..self.cold.statistics.clone() }
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

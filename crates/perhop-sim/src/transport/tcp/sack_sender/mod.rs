//! The sender with selective acknowledgements: RFC 6675, section 5, with its own way to find losses or RACK-TLP (RFC 8985).
//!
//! Outside of recoveries it is a [`TcpSender`]: slow start, congestion avoidance, timers. Here is how it recovers.
//!
//! ## Deviations
//! - Those of [`TcpSender`], except the last: after a timeout it goes back to what the receiver is not known to hold, and sends
//!   as the pipe lets it (section 5.1; the receiver never takes back what it reported).
//! - A recovery that ends with a segment above it already known to be lost is followed by the next one at once, not with the
//!   next duplicate.
//! - Limited transmit is a choice (`limited-transmit`), as in step 3 of section 5.
//! - With RACK-TLP a timeout gives up only what [it finds lost](Rack::on_timeout), and a recovery sends again only what is lost.
//!   The retransmission timer is restarted when the first missing segment is sent again, as by Linux: a retransmission that is lost
//!   again, which only RACK finds, would else be repaired too late.
//! - The round trip of a timed segment is taken when it is selectively acknowledged, as Linux does, not when the gap before
//!   it is filled.

mod fast_path;
#[cfg(test)]
mod tests;

use std::ops::Range;

use perhop_core::control::Message;
use perhop_core::{Bitrate, Bytes, Color, Context, Ecn, Instant};

use super::acks::{AckRecord, Acks};
use super::congestion::{CongestionControl, ForeignCongestionParams};
use super::prr::{Progress, Prr};
use super::rack::{Path, ProbeAnswer, Rack};
use super::scoreboard::{Arrived, DUP_THRESH, Scoreboard};
use super::sender::UNTIMED;
use super::{TcpEcn, TcpParams, TcpSender};
use crate::transport::limits::LimitTimes;
use crate::transport::{Ack, SenderStatistics, Source, Transmit};

/// One connection's sending side, which knows what the receiver holds.
#[derive(Clone, Debug)]
pub struct SackSender {
    tcp: TcpSender,
    board: Scoreboard,
    /// Finds losses by times; without it the scoreboard finds them by counts.
    rack: Option<Box<Rack>>,
    /// A loss probe, which leaves whatever the window says.
    probe: Option<Next>,
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    Open,
    Recovery(Recovery),
    /// After a timeout: slow start through everything below this (section 5.1).
    Loss(u32),
}

#[derive(Clone, Debug)]
struct Recovery {
    /// `RecoveryPoint`, one past what was sent before.
    point: u32,
    /// One past `RescueRxt`: a rescue retransmission needs an acknowledgement of more.
    rescued: u32,
    /// How the window shrinks; all at once without it.
    prr: Option<Prr>,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
struct AckUpdate {
    expected: u32,
    /// It acknowledges in order.
    advances: bool,
    arrived: Arrived,
    /// Segments lost, as the ACK shows first.
    lost: u32,
    /// The segment that had arrived before.
    duplicate: Option<u32>,
}

/// What to send next (`NextSeg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Again(u32),
    New,
    Rescue(u32),
    Probe(u32),
}

impl SackSender {
    /// A connection of these parameters, which ends after `volume` bytes if one is given, and has the contracted rate `reserved`.
    /// What its congestion control decides by chance begins with `seed`.
    pub fn new(
        params: TcpParams,
        volume: Option<Bytes>,
        reserved: Option<Bitrate>,
        ecn: TcpEcn,
        seed: u64,
    ) -> Self {
        let board = Scoreboard::new(params.most_outstanding());
        let rack = params.has_rack().then(|| Box::new(Rack::new(0, false, params.has_quic_losses())));
        let tcp = TcpSender::new(params, volume, reserved, ecn, seed);
        Self { tcp, board, rack, probe: None, phase: Phase::Open }
    }

    pub(in crate::transport) fn highest(&self) -> u32 {
        self.tcp.highest()
    }

    pub(in crate::transport) fn last(&self) -> (u32, u16) {
        self.tcp.last()
    }

    pub(in crate::transport) fn set_control(&mut self, params: &ForeignCongestionParams) {
        self.tcp.set_control(params);
    }

    pub(in crate::transport) fn set_last(&mut self, size: u16) {
        self.tcp.set_last(size);
    }

    pub(in crate::transport) fn start(&mut self, now: Instant) {
        self.tcp.start(now);
    }

    pub(in crate::transport) fn stop(&mut self) {
        self.tcp.stop();
    }

    pub(in crate::transport) fn await_grants(&mut self) {
        self.tcp.await_grants();
    }

    pub(in crate::transport) fn grant(&mut self, segments: u32, now: Instant) {
        self.tcp.grant(segments, now);
    }

    pub(crate) fn wake(&self) -> Instant {
        self.rack.as_ref().map_or(self.tcp.wake(), |rack| rack.wake().min(self.tcp.wake()))
    }

    pub(in crate::transport) fn window(&self) -> f64 {
        self.tcp.window()
    }

    pub(in crate::transport) fn is_sending(&self) -> bool {
        self.tcp.is_sending()
    }

    pub(in crate::transport) fn smoothed_rtt(&self) -> Option<f64> {
        self.tcp.smoothed_rtt()
    }

    pub(in crate::transport) fn acknowledged(&self) -> u64 {
        self.tcp.acknowledged()
    }

    pub(in crate::transport) fn statistics(&self) -> SenderStatistics {
        self.tcp.statistics()
    }

    pub(in crate::transport) fn limits(&self, now: Instant) -> LimitTimes {
        self.tcp.limits(now)
    }

    pub(in crate::transport) fn buffer(&self) -> Option<u64> {
        self.tcp.buffer()
    }

    pub(in crate::transport) fn receiver_window(&self) -> u64 {
        self.tcp.receiver_window()
    }

    pub(in crate::transport) fn on_message(&mut self, message: &Message) {
        self.tcp.on_message(message);
    }

    fn on_marked(&mut self, sequence: u32, color: Color) {
        self.tcp.on_marked(sequence, color);
    }

    pub(in crate::transport) fn on_wake(&mut self, now: Instant) {
        if self.rack.is_some() {
            self.wake_rack(now);
        }
        if self.tcp.expires(now) {
            let Self { tcp, board, rack, .. } = self;
            if let Some(rack) = rack {
                rack.on_timeout(now, |sequence| tcp.note_lost(sequence, now));
                // Whatever may still be in the network (RFC 6298, section 5.4).
                tcp.urgent = rack.next_lost();
            } else {
                board.lose_all(|sequence| tcp.note_lost(sequence, now));
                tcp.urgent = None;
            }
            self.phase = Phase::Loss(self.tcp.highest);
        }
    }

    /// RACK's timers: what is lost by now (RFC 8985, section 6.2, step 5), and a probe (section 7.3).
    fn wake_rack(&mut self, now: Instant) {
        if self.rack.as_ref().is_some_and(|rack| rack.is_due(now)) {
            let lost = self.judge(now);
            if lost > 0 && matches!(self.phase, Phase::Open) {
                let update = AckUpdate {
                    expected: self.tcp.acked,
                    advances: false,
                    arrived: Arrived { in_order: 0, held: 0 },
                    lost,
                    duplicate: None,
                };
                self.recover(update, now);
            }
        }
        let Some(rack) = &mut self.rack else { return };
        if !rack.takes_probe(now) {
            return;
        }
        let tcp = &mut self.tcp;
        let is_new = tcp.has_new();
        self.probe = Some(if is_new { Next::New } else { Next::Probe(tcp.highest - 1) });
        rack.on_probe(tcp.highest + u32::from(is_new), !is_new);
        if !rack.is_quic() {
            tcp.expiry = now + tcp.timeout;
        }
    }

    fn on_record(&mut self, ack: &AckRecord, ece: bool, now: Instant) {
        if ack.expected < self.tcp.acked {
            return;
        }
        if self.tcp.is_opening() {
            return self.on_opening_ack(ack, now);
        }
        let update = self.learn(ack, ece, now);
        self.answer_probe(update, now);
        match &self.phase {
            Phase::Open => self.on_ack_when_open(update, now),
            Phase::Recovery(recovery) if update.expected < recovery.point => {
                self.on_ack_in_recovery(update, now);
            }
            Phase::Recovery(_) => {
                self.tcp.end_recovery();
                self.open();
                self.on_ack_when_open(update, now);
            }
            Phase::Loss(point) => {
                let ends = update.expected >= *point;
                if ends {
                    self.open();
                    let lost = self.judge(now);
                    self.on_ack_when_open(AckUpdate { lost, ..update }, now);
                } else if update.advances {
                    self.tcp.take_new_ack(update.expected, update.arrived.all(), now);
                }
            }
        }
        if self.tcp.owns_recovery() {
            self.tcp.note_pipe(self.pipe());
            self.tcp.tell_owner(update.arrived.all(), now);
        }
        if self.rack.is_some() {
            self.schedule_probe(update.advances, now);
        }
    }

    /// The SYN has arrived: what finds losses begins anew with the data.
    fn on_opening_ack(&mut self, ack: &AckRecord, now: Instant) {
        self.board.take(ack, |_| {});
        let is_measured = self.tcp.open(now);
        if let Some(rack) = &self.rack {
            let is_quic = rack.is_quic();
            self.rack = Some(Box::new(Rack::new(ack.expected, is_measured, is_quic)));
        }
        self.phase = Phase::Open;
    }

    /// Losses are repaired.
    fn open(&mut self) {
        self.phase = Phase::Open;
        if let Some(rack) = &mut self.rack {
            rack.on_recovery_end();
        }
    }

    /// An ACK may say what became of a probe: one that has repaired a loss reduces the window.
    fn answer_probe(&mut self, update: AckUpdate, now: Instant) {
        let Some(rack) = &mut self.rack else { return };
        let is_pure_duplicate = !update.advances && update.arrived.held == 0;
        let answer =
            ProbeAnswer { expected: update.expected, duplicate: update.duplicate, is_pure_duplicate };
        if rack.has_repaired(answer) {
            self.tcp.answer_repaired_loss(now);
        }
    }

    /// With RACK: new data was sent or `acknowledged`, unless there is no need of a probe.
    fn schedule_probe(&mut self, acknowledged: bool, now: Instant) {
        let Self { tcp, board, rack: Some(rack), phase, .. } = self else { return };
        if !matches!(phase, Phase::Open) || board.held() > 0 || board.outstanding() == 0 {
            rack.disarm_probe();
        } else if acknowledged {
            rack.arm_probe(tcp.probe_timer(tcp.smoothed_span()), now);
        }
    }

    /// Finds what is lost by now; returns how much more that is than before.
    fn judge(&mut self, now: Instant) -> u32 {
        let Self { tcp, board, rack, phase, .. } = self;
        let Some(rack) = rack else { return board.judge(|sequence| tcp.note_lost(sequence, now)) };
        let path = Path {
            smoothed_rtt: tcp.smoothed_span(),
            is_recovering: !matches!(phase, Phase::Open),
            held: board.held(),
        };
        rack.detect(path, now, |sequence| tcp.note_lost(sequence, now))
    }

    /// Segments that are thought to be in the network.
    fn pipe(&self) -> u32 {
        let board = &self.board;
        self.rack.as_ref().map_or(board.pipe(), |rack| board.outstanding() - board.held() - rack.lost())
    }

    /// Segments that are lost.
    fn lost(&self) -> u32 {
        self.rack.as_ref().map_or(self.board.lost(), |rack| rack.lost())
    }

    /// Brings the scoreboard up to date, and takes a round-trip sample if the timed segment has arrived.
    fn learn(&mut self, ack: &AckRecord, ece: bool, now: Instant) -> AckUpdate {
        let advances = ack.expected > self.tcp.acked;
        // A SYN that came twice says nothing of data.
        let duplicate = ack.duplicate.filter(|&sequence| self.tcp.is_data(sequence));
        let tcp = &mut self.tcp;
        let rack = &mut self.rack;
        let arrived = self.board.take(ack, |sequence| {
            if sequence < ack.expected {
                tcp.note_covered(sequence, now);
            } else {
                tcp.note_delivered(sequence, now);
            }
            if let Some(rack) = rack {
                rack.on_arrived(sequence, now);
            }
        });
        if let Some(rack) = rack {
            rack.on_ack(ack.expected, tcp.highest, duplicate.is_some(), now);
        }
        tcp.rare.ecn.learn(ece, ack.marked, arrived.all());
        // After a timeout, what was sent before it is lost by that, and what is sent since is not judged by counts until all that
        // is acknowledged.
        let lost = match self.phase {
            Phase::Loss(_) if self.rack.is_none() => 0,
            _ => self.judge(now),
        };
        if self.tcp.timed != UNTIMED && self.board.has(self.tcp.timed) {
            self.tcp.sample(now);
        }
        AckUpdate { expected: ack.expected, advances, arrived, lost, duplicate }
    }

    fn on_ack_when_open(&mut self, update: AckUpdate, now: Instant) {
        if update.advances {
            self.tcp.take_new_ack(update.expected, update.arrived.all(), now);
        } else if update.arrived.held > 0 {
            self.tcp.duplicates += 1;
        }
        if self.lost() > 0 || (self.rack.is_none() && self.tcp.duplicates >= DUP_THRESH) {
            self.recover(update, now);
        } else {
            self.tcp.answer_marks(update.expected, now);
        }
    }

    /// Step 4: the first missing segment is sent again, whatever the pipe.
    fn recover(&mut self, update: AckUpdate, now: Instant) {
        let tcp = &mut self.tcp;
        tcp.duplicates = 0;
        tcp.begin_recovery(0, now);
        tcp.note_recovery_point();
        self.board.begin_again();
        if let Some(rack) = &mut self.rack {
            rack.forget_probe();
            tcp.urgent = rack.next_lost();
        }
        // `RecoverFS`: without what had been selectively acknowledged before this acknowledgement.
        let flight = tcp.highest - tcp.acked - self.board.held() + update.arrived.all();
        // A control that owns its recoveries has its own window in force.
        let shrinks_by_prr = tcp.rare.params.prr && !tcp.owns_recovery();
        let prr = shrinks_by_prr.then(|| Prr::new(flight));
        self.phase = Phase::Recovery(Recovery { point: tcp.highest, rescued: tcp.acked + 1, prr });
        self.pace(update);
    }

    fn on_ack_in_recovery(&mut self, update: AckUpdate, now: Instant) {
        if update.advances {
            self.tcp.advance(update.expected, now);
            self.tcp.expiry = now + self.tcp.timeout;
        }
        self.pace(update);
    }

    /// With PRR, the window of the next moment.
    fn pace(&mut self, update: AckUpdate) {
        if !matches!(self.phase, Phase::Recovery(Recovery { prr: Some(_), .. })) {
            return;
        }
        let pipe = self.pipe();
        let Phase::Recovery(Recovery { prr: Some(prr), .. }) = &mut self.phase else { return };
        let safe = update.advances && update.lost == 0;
        let progress = Progress { delivered: update.arrived.all(), safe, pipe };
        let threshold = self.tcp.control.window() as u32;
        if let Some(recovery) = self.tcp.recovery() {
            recovery.window = f64::from(prr.on_ack(progress, threshold));
        }
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        let probe = self.probe.take();
        let urgent = self.tcp.urgent.take().map(Next::Again);
        let Some(next) = urgent.or(probe).or_else(|| self.choose(cx)) else {
            self.tcp.note_limit(cx.now);
            return None;
        };
        let transmit = self.send(next, cx.now);
        if self.rack.is_some() && next == Next::New && probe.is_none() {
            self.schedule_probe(true, cx.now);
        }
        Some(transmit)
    }

    /// What the pipe lets out now (step C).
    fn choose(&mut self, cx: &mut Context<'_>) -> Option<Next> {
        if self.tcp.is_paced() && self.rack.is_some() {
            return self.choose_at_pace(cx.now);
        }
        let Some(next) = self.next() else {
            self.tcp.hold();
            return None;
        };
        let may_wait = self.tcp.is_paced() || !matches!(self.phase, Phase::Recovery(_));
        let waits = may_wait && !self.tcp.may_send_yet(cx);
        (!waits).then_some(next)
    }

    fn next(&mut self) -> Option<Next> {
        let pipe = self.pipe();
        let Self { tcp, board, rack, phase, .. } = self;
        let limited = matches!(phase, Phase::Open) && !tcp.rare.params.limited_transmit;
        let pipe = pipe + if limited { board.held() } else { 0 };
        if !tcp.started || pipe >= tcp.window_in_force() as u32 {
            return None;
        }
        let new = tcp.has_new().then_some(Next::New);
        let again = |sequence: Option<u32>| sequence.map(Next::Again);
        match (phase, rack) {
            (Phase::Open, _) => new,
            (_, Some(rack)) => again(rack.next_lost()).or(new),
            (Phase::Loss(_), None) => again(board.next_lost()).or(new),
            (Phase::Recovery(recovery), None) => again(board.next_lost())
                .or(new)
                .or_else(|| again(board.next_missing()))
                .or_else(|| board.last_missing().filter(|_| tcp.acked > recovery.rescued).map(Next::Rescue)),
        }
    }

    fn send(&mut self, next: Next, now: Instant) -> Transmit {
        if let Phase::Recovery(recovery) = &mut self.phase {
            if let Next::Rescue(_) = next {
                recovery.rescued = recovery.point;
            }
            if let Some(prr) = &mut recovery.prr {
                prr.on_sent();
            }
        }
        let sequence = match next {
            Next::New => {
                self.board.on_sent();
                if let Some(rack) = &mut self.rack {
                    rack.on_sent(now);
                }
                self.tcp.next += 1;
                self.tcp.next - 1
            }
            Next::Again(sequence) | Next::Probe(sequence) => {
                if let Some(rack) = &mut self.rack {
                    rack.on_resent(sequence, now);
                    if sequence == self.tcp.acked {
                        self.tcp.expiry = now + self.tcp.timeout;
                    }
                } else {
                    self.board.on_resent(sequence);
                }
                sequence
            }
            Next::Rescue(sequence) => sequence,
        };
        if self.tcp.timed == sequence {
            self.tcp.timed = UNTIMED; // Karn: a segment sent twice gives no sample.
        }
        if self.tcp.owns_recovery() {
            self.tcp.note_pipe(self.pipe());
        }
        self.tcp.send(sequence, now)
    }
}

/// A sender with the acknowledgements that are in transit to it.
pub(crate) struct Selective<'a> {
    pub(crate) sender: &'a mut SackSender,
    pub(crate) acks: &'a mut Acks,
}

impl Source for Selective<'_> {
    fn on_ack(&mut self, ack: Ack, now: Instant) {
        if !self.take_fast(ack, now)
            && !self.take_in_recovery(ack, now)
            && let Some(record) = self.acks.take(ack.number, self.sender.tcp.acked)
        {
            self.sender.on_record(&record, ack.ece, now);
        }
    }
    #[inline]
    fn ack_fast(&mut self, ack: Ack, now: Instant) -> Option<Range<u32>> {
        self.ack_fast_of(ack, now)
    }
    #[inline]
    fn wake_fast(&mut self, cx: &mut Context<'_>) -> Option<Range<u32>> {
        self.sender.wake_fast(cx.now)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn_of_data()
    }
    fn on_wake(&mut self, now: Instant) {
        self.sender.on_wake(now);
    }
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        self.sender.transmit(cx)
    }
    fn on_marked(&mut self, sequence: u32, color: Color) {
        self.sender.on_marked(sequence, color);
    }
    fn on_message(&mut self, message: &Message) {
        self.sender.on_message(message);
    }
    fn wake(&self) -> Instant {
        self.sender.wake()
    }
}

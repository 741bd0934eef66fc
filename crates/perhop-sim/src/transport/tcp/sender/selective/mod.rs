//! Repair of losses by selective acknowledgements: RFC 6675, section 5, with its own way to find losses or
//! RACK-TLP (RFC 8985).
//!
//! ## Deviations
//! - After a timeout the sender goes back to what the receiver is not known to hold, and sends as the pipe
//!   lets it (section 5.1; the receiver never takes back what it reported).
//! - A recovery that ends with a segment above it already known to be lost is followed by the next one at
//!   once, not with the next duplicate.
//! - Limited transmit is a choice (`limited-transmit`), as in step 3 of section 5.
//! - With RACK-TLP a timeout gives up only what [it finds lost](Rack::on_timeout), and a recovery sends again
//!   only what is lost. The retransmission timer is restarted when the first missing segment is sent again,
//!   as by Linux: a retransmission that is lost again, which only RACK finds, would else be repaired too
//!   late.
//! - The round trip of a timed segment is taken when it is selectively acknowledged, as Linux does, not when
//!   the gap before it is filled.

mod prr;
mod rack;
mod scoreboard;
#[cfg(test)]
mod tests;

use perhop_core::{Context, Instant};

use super::{TcpSender, UNTIMED};
use crate::transport::Transmit;
use crate::transport::metadata::AckRecord;
use crate::transport::tcp::congestion::CongestionControl;
use crate::transport::tcp::{LossDetection, RtoEstimator, TcpParams};
use prr::{Progress, Prr};
pub(super) use rack::Timer;
use rack::{Path, ProbeAnswer, Rack};
use scoreboard::{Arrived, DUP_THRESH, Scoreboard};

/// What the sender knows of segments that the receiver holds, and how far the repair of losses has come.
#[derive(Clone, Debug)]
pub(super) struct SelectiveRepair {
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
    /// The ACK acknowledges in order.
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

impl SelectiveRepair {
    pub(super) fn new(params: &TcpParams) -> Self {
        let rack = params
            .has_rack()
            .then(|| Box::new(Rack::new(0, false, params.loss_detection == Some(LossDetection::Quic))));
        Self { board: Scoreboard::new(params.most_outstanding()), rack, probe: None, phase: Phase::Open }
    }

    /// Returns when RACK next has something to do by itself.
    #[inline]
    pub(super) fn wake(&self) -> Instant {
        self.rack.as_ref().map_or(Instant::NEVER, |rack| rack.wake())
    }

    /// Returns whether there are no losses to repair or to look for.
    pub(super) fn is_clean(&self) -> bool {
        let Self { board, rack, probe, phase } = self;
        matches!(phase, Phase::Open)
            && probe.is_none()
            && board.is_clean()
            && rack.as_ref().is_none_or(|rack| rack.is_clean())
    }

    /// Takes an ACK of everything below `expected`, which is not all, while the state [is
    /// clean](Self::is_clean).
    #[inline]
    pub(super) fn pass(&mut self, expected: u32, rto: &RtoEstimator, now: Instant) {
        self.board.pass(expected);
        if let Some(rack) = &mut self.rack {
            rack.pass(expected, rto.smoothed_span(), now);
        }
    }

    /// Notes that the next new segment is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.board.on_sent();
        if let Some(rack) = &mut self.rack {
            rack.on_sent(now);
        }
    }

    /// Restarts the probe timer, if there is one: new data was sent or acknowledged.
    #[inline]
    pub(super) fn arm_probe(&mut self, timer: Timer, now: Instant) {
        if let Some(rack) = &mut self.rack {
            rack.arm_probe(timer, now);
        }
    }

    /// Does what is due: RACK's timers, and the retransmission timer.
    pub(super) fn on_wake(&mut self, tcp: &mut TcpSender, now: Instant) {
        if self.rack.is_some() {
            self.wake_rack(tcp, now);
        }
        if tcp.on_rto_if_due(now) {
            let Self { board, rack, .. } = self;
            if let Some(rack) = rack {
                rack.on_timeout(now, |sequence| tcp.note_lost(sequence, now));
                // Whatever may still be in the network (RFC 6298, section 5.4).
                tcp.send_now = rack.next_lost();
            } else {
                board.lose_all(|sequence| tcp.note_lost(sequence, now));
                tcp.send_now = None;
            }
            self.phase = Phase::Loss(tcp.sent_end);
        }
    }

    /// Finds what is lost by now (RFC 8985, section 6.2, step 5), and sends a probe (section 7.3), if their
    /// timers have expired.
    fn wake_rack(&mut self, tcp: &mut TcpSender, now: Instant) {
        if self.rack.as_ref().is_some_and(|rack| rack.is_due(now)) {
            let lost = self.judge(tcp, now);
            if lost > 0 && matches!(self.phase, Phase::Open) {
                let update = AckUpdate {
                    expected: tcp.acked,
                    advances: false,
                    arrived: Arrived { in_order: 0, held: 0 },
                    lost,
                    duplicate: None,
                };
                self.recover(tcp, update, now);
            }
        }
        let Some(rack) = &mut self.rack else { return };
        if !rack.takes_probe(now) {
            return;
        }
        let is_new = tcp.has_new();
        self.probe = Some(if is_new { Next::New } else { Next::Probe(tcp.sent_end - 1) });
        rack.on_probe(tcp.sent_end + u32::from(is_new), !is_new);
        if !rack.is_quic() {
            tcp.expiry = now + tcp.timeout;
        }
    }

    pub(super) fn on_ack(&mut self, tcp: &mut TcpSender, ack: &AckRecord, ece: bool, now: Instant) {
        if ack.expected < tcp.acked {
            return;
        }
        if tcp.is_opening() {
            return self.on_opening_ack(tcp, ack, now);
        }
        let update = self.learn(tcp, ack, ece, now);
        self.answer_probe(tcp, update, now);
        match &self.phase {
            Phase::Open => self.on_ack_when_open(tcp, update, now),
            Phase::Recovery(recovery) if update.expected < recovery.point => {
                self.on_ack_in_recovery(tcp, update, now);
            }
            Phase::Recovery(_) => {
                tcp.recovering = false;
                self.open();
                self.on_ack_when_open(tcp, update, now);
            }
            Phase::Loss(point) => {
                let ends = update.expected >= *point;
                if ends {
                    self.open();
                    let lost = self.judge(tcp, now);
                    self.on_ack_when_open(tcp, AckUpdate { lost, ..update }, now);
                } else if update.advances {
                    tcp.take_new_ack(update.expected, update.arrived.all(), now);
                }
            }
        }
        if tcp.cold.controls_recovery {
            tcp.set_pipe(self.pipe());
            tcp.report_every_ack(update.arrived.all(), now);
        }
        if self.rack.is_some() {
            self.schedule_probe(tcp, update.advances, now);
        }
    }

    /// Takes the ACK of the SYN: what finds losses begins anew with the data.
    fn on_opening_ack(&mut self, tcp: &mut TcpSender, ack: &AckRecord, now: Instant) {
        self.board.take(ack, |_| {});
        let is_measured = tcp.open(now);
        if let Some(rack) = &self.rack {
            let is_quic = rack.is_quic();
            self.rack = Some(Box::new(Rack::new(ack.expected, is_measured, is_quic)));
        }
        self.phase = Phase::Open;
    }

    /// Ends a repair.
    fn open(&mut self) {
        self.phase = Phase::Open;
        if let Some(rack) = &mut self.rack {
            rack.on_recovery_end();
        }
    }

    /// Learns from an ACK what became of a probe: one that has repaired a loss reduces the window.
    fn answer_probe(&mut self, tcp: &mut TcpSender, update: AckUpdate, now: Instant) {
        let Some(rack) = &mut self.rack else { return };
        let is_pure_duplicate = !update.advances && update.arrived.held == 0;
        let answer =
            ProbeAnswer { expected: update.expected, duplicate: update.duplicate, is_pure_duplicate };
        if rack.has_repaired(answer) {
            tcp.answer_repaired_loss(now);
        }
    }

    /// Restarts the probe timer, if new data was sent or `acknowledged`, or stops it where none is needed.
    fn schedule_probe(&mut self, tcp: &TcpSender, acknowledged: bool, now: Instant) {
        let Self { board, rack: Some(rack), phase, .. } = self else { return };
        if !matches!(phase, Phase::Open) || board.held() > 0 || board.outstanding() == 0 {
            rack.disarm_probe();
        } else if acknowledged {
            rack.arm_probe(tcp.probe_timer(), now);
        }
    }

    /// Finds what is lost by now; returns how much more that is than before.
    fn judge(&mut self, tcp: &mut TcpSender, now: Instant) -> u32 {
        let Self { board, rack, phase, .. } = self;
        let Some(rack) = rack else { return board.judge(|sequence| tcp.note_lost(sequence, now)) };
        let path = Path {
            smoothed_rtt: tcp.cold.rto.smoothed_span(),
            is_recovering: !matches!(phase, Phase::Open),
            held: board.held(),
        };
        rack.detect(path, now, |sequence| tcp.note_lost(sequence, now))
    }

    /// Returns how many segments are thought to be in the network.
    fn pipe(&self) -> u32 {
        let board = &self.board;
        self.rack.as_ref().map_or(board.pipe(), |rack| board.outstanding() - board.held() - rack.lost())
    }

    /// Returns how many segments are lost.
    fn lost(&self) -> u32 {
        self.rack.as_ref().map_or(self.board.lost(), |rack| rack.lost())
    }

    /// Brings the scoreboard up to date, and takes a round-trip sample if the timed segment has arrived.
    fn learn(&mut self, tcp: &mut TcpSender, ack: &AckRecord, ece: bool, now: Instant) -> AckUpdate {
        let advances = ack.expected > tcp.acked;
        // A SYN that came twice says nothing of data.
        let duplicate = ack.duplicate.filter(|&sequence| tcp.is_data(sequence));
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
            rack.on_ack(ack.expected, tcp.sent_end, duplicate.is_some(), now);
        }
        tcp.cold.ecn.learn(ece, ack.marked, arrived.all());
        // After a timeout, what was sent before it is lost by that, and what is sent since is not judged by
        // counts until all that is acknowledged.
        let lost = match self.phase {
            Phase::Loss(_) if self.rack.is_none() => 0,
            _ => self.judge(tcp, now),
        };
        if tcp.rtt_segment != UNTIMED && self.board.has(tcp.rtt_segment) {
            tcp.sample(now);
        }
        AckUpdate { expected: ack.expected, advances, arrived, lost, duplicate }
    }

    fn on_ack_when_open(&mut self, tcp: &mut TcpSender, update: AckUpdate, now: Instant) {
        if update.advances {
            tcp.take_new_ack(update.expected, update.arrived.all(), now);
        } else if update.arrived.held > 0 {
            tcp.duplicates += 1;
        }
        if self.lost() > 0 || (self.rack.is_none() && tcp.duplicates >= DUP_THRESH) {
            self.recover(tcp, update, now);
        } else {
            tcp.answer_marks(update.expected, now);
        }
    }

    /// Begins a recovery (step 4): the first missing segment is sent again, whatever the pipe.
    fn recover(&mut self, tcp: &mut TcpSender, update: AckUpdate, now: Instant) {
        tcp.duplicates = 0;
        tcp.begin_recovery(0, now);
        tcp.recover = tcp.sent_end;
        self.board.begin_again();
        if let Some(rack) = &mut self.rack {
            rack.forget_probe();
            rack.fit();
            tcp.send_now = rack.next_lost();
        }
        // `RecoverFS`: without what had been selectively acknowledged before this acknowledgement.
        let flight = tcp.sent_end - tcp.acked - self.board.held() + update.arrived.all();
        // A control that controls its recoveries has its own window in force.
        let shrinks_by_prr = tcp.cold.params.prr && !tcp.cold.controls_recovery;
        let prr = shrinks_by_prr.then(|| Prr::new(flight));
        self.phase = Phase::Recovery(Recovery { point: tcp.sent_end, rescued: tcp.acked + 1, prr });
        self.shrink(tcp, update);
    }

    fn on_ack_in_recovery(&mut self, tcp: &mut TcpSender, update: AckUpdate, now: Instant) {
        if update.advances {
            tcp.advance(update.expected, now);
            tcp.expiry = now + tcp.timeout;
        }
        self.shrink(tcp, update);
    }

    /// Sets the window until the next ACK, with PRR.
    fn shrink(&mut self, tcp: &mut TcpSender, update: AckUpdate) {
        let pipe = self.pipe();
        let Phase::Recovery(Recovery { prr: Some(prr), .. }) = &mut self.phase else { return };
        let safe = update.advances && update.lost == 0;
        let progress = Progress { delivered: update.arrived.all(), safe, pipe };
        let threshold = tcp.control.window() as u32;
        if let Some(recovery) = tcp.recovery() {
            recovery.window = f64::from(prr.on_ack(progress, threshold));
        }
    }

    /// Returns the next packet to put on the wire now, if there is one.
    pub(super) fn transmit(&mut self, tcp: &mut TcpSender, cx: &mut Context<'_>) -> Option<Transmit> {
        let probe = self.probe.take();
        let send_now = tcp.send_now.take().map(Next::Again);
        let next = send_now.or(probe).or_else(|| self.choose(tcp, cx))?;
        let transmit = self.send(tcp, next, cx.now);
        if self.rack.is_some() && next == Next::New && probe.is_none() {
            self.schedule_probe(tcp, true, cx.now);
        }
        Some(transmit)
    }

    /// Returns what the pipe lets out now (step C).
    fn choose(&mut self, tcp: &mut TcpSender, cx: &mut Context<'_>) -> Option<Next> {
        let Some(next) = self.next(tcp) else {
            tcp.hold();
            return None;
        };
        let may_wait = tcp.is_paced() || !matches!(self.phase, Phase::Recovery(_));
        let waits = may_wait && !tcp.may_send_yet(cx);
        (!waits).then_some(next)
    }

    /// Returns the segment that follows, if the window lets one out.
    fn next(&mut self, tcp: &TcpSender) -> Option<Next> {
        let pipe = self.pipe();
        let Self { board, rack, phase, .. } = self;
        let limited = matches!(phase, Phase::Open) && !tcp.cold.params.limited_transmit;
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

    fn send(&mut self, tcp: &mut TcpSender, next: Next, now: Instant) -> Transmit {
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
                self.on_sent(now);
                tcp.next += 1;
                tcp.next - 1
            }
            Next::Again(sequence) | Next::Probe(sequence) => {
                if let Some(rack) = &mut self.rack {
                    rack.on_resent(sequence, now);
                    if sequence == tcp.acked {
                        tcp.expiry = now + tcp.timeout;
                    }
                } else {
                    self.board.on_resent(sequence);
                }
                sequence
            }
            Next::Rescue(sequence) => sequence,
        };
        if tcp.rtt_segment == sequence {
            tcp.rtt_segment = UNTIMED; // Karn: a segment sent twice gives no sample.
        }
        if tcp.cold.controls_recovery {
            tcp.set_pipe(self.pipe());
        }
        tcp.send(sequence, now)
    }
}

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
        let board = Scoreboard::new(params.window.get() as u32);
        let rack = params.has_rack().then(|| Box::new(Rack::new()));
        let tcp = TcpSender::new(params, volume, reserved, ecn, seed);
        Self { tcp, board, rack, probe: None, phase: Phase::Open }
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

    pub(in crate::transport) fn start(&mut self) {
        self.tcp.start();
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
        tcp.expiry = now + tcp.timeout;
    }

    fn on_record(&mut self, ack: &AckRecord, ece: bool, now: Instant) {
        if ack.expected < self.tcp.acked {
            return;
        }
        let before = self.tcp.acked;
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
            self.tcp.tell_owner(update.arrived.all(), before, now);
        }
        if self.rack.is_some() {
            self.schedule_probe(update.advances, now);
        }
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
            rack.arm_probe(tcp.smoothed_span(), tcp.expiry, now);
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
        let tcp = &mut self.tcp;
        let rack = &mut self.rack;
        let arrived = self.board.take(ack, |sequence| {
            tcp.note_delivered(sequence, now);
            if let Some(rack) = rack {
                rack.on_arrived(sequence, now);
            }
        });
        if let Some(rack) = rack {
            rack.on_ack(ack.expected, tcp.highest, ack.duplicate.is_some(), now);
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
        AckUpdate { expected: ack.expected, advances, arrived, lost, duplicate: ack.duplicate }
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
        let next = match self.tcp.urgent.take() {
            Some(sequence) => Next::Again(sequence),
            None => probe.map_or_else(|| self.choose(cx), Some)?,
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
        if !tcp.started || pipe >= tcp.window() as u32 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Received;
    use crate::transport::tcp::{SackReceiver, Signals};
    use perhop_core::{Duration, Rng};
    use proptest::prelude::*;
    use std::collections::{BTreeSet, VecDeque};

    struct Wire {
        sender: SackSender,
        rng: Rng,
        now: Instant,
    }

    impl Wire {
        /// A sender of `segments`, the first window of which is on the wire.
        fn new(extra: &str, segments: u64) -> (Self, Vec<u32>) {
            let params = format!(r#"{{"tcp": "newreno", "sack": true, "packet": "1000B" {extra}}}"#);
            let params: TcpParams = serde_json::from_str(&params).unwrap();
            let volume = Some(Bytes::new(segments * 1000));
            let mut wire = Self {
                sender: SackSender::new(params, volume, None, TcpEcn::Off, 1),
                rng: Rng::stream(1, "tcp"),
                now: Instant::ZERO,
            };
            let sent = wire.act(|sender, _| sender.start());
            (wire, sent)
        }

        fn act(&mut self, act: impl FnOnce(&mut SackSender, Instant)) -> Vec<u32> {
            act(&mut self.sender, self.now);
            let mut cx = Context { now: self.now, rng: &mut self.rng };
            std::iter::from_fn(|| self.sender.transmit(&mut cx)).map(|transmit| transmit.sequence).collect()
        }

        fn ack(&mut self, expected: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
            self.now += Duration::from_millis(1);
            let mut ack = AckRecord { expected, blocks: [(0, 0); 3], marked: 0, duplicate: None };
            ack.blocks[..blocks.len()].copy_from_slice(blocks);
            self.act(|sender, now| sender.on_record(&ack, false, now))
        }

        /// Duplicates for segments `first..end`, one by one.
        fn duplicates(&mut self, first: u32, end: u32) -> Vec<Vec<u32>> {
            (first..end).map(|last| self.ack(0, &[(first, last + 1)])).collect()
        }
    }

    const NOTHING: [u32; 0] = [];
    const TWENTY: &str = r#","initial-window": "20p","initial-ssthresh": "20p","limited-transmit": true"#;

    #[test]
    fn one_loss_of_twenty_as_rfc_6937_shows_it_for_rfc_6675() {
        // Section 3.1, first example: two new segments, the retransmission, silence until the pipe is below the window, then
        // one for one. There the window is half of 22, here half of 20 (limited transmit does not count; RFC 6675, step
        // 4.2), so silence ends at the 13th in place of the 12th.
        let (mut wire, sent) = Wire::new(TWENTY, 1000);
        assert_eq!(sent.len(), 20);
        let sent = wire.duplicates(1, 20);
        assert_eq!(sent[..3], [[20], [21], [0]]);
        assert!(sent[3..12].iter().all(Vec::is_empty));
        assert_eq!(sent[12..], [[22], [23], [24], [25], [26], [27], [28]]);
        assert_eq!((wire.sender.tcp.window(), wire.sender.board.pipe()), (10.0, 10));
        // The retransmission arrives: everything up to 19 has.
        assert_eq!(wire.ack(20, &[]).len(), 1);
        assert!(matches!(wire.sender.phase, Phase::Recovery(_)), "20 and 21 were sent before it");
        wire.ack(22, &[]);
        assert!(matches!(wire.sender.phase, Phase::Open));
        assert_eq!(wire.sender.tcp.window(), 10.1);
    }

    #[test]
    fn one_loss_of_twenty_with_prr() {
        // The same with PRR: a segment at every other acknowledgement.
        let (mut wire, _) = Wire::new(&format!(r#"{TWENTY},"prr": true"#), 1000);
        let sent = wire.duplicates(1, 20);
        assert_eq!(sent[..3], [[20], [21], [0]]);
        let sent: Vec<usize> = sent[2..].iter().map(Vec::len).collect();
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
        assert_eq!(wire.sender.board.pipe(), 10);
        wire.ack(22, &[]);
        assert_eq!(wire.sender.tcp.window(), 10.1, "whatever the window was in the recovery");
    }

    #[test]
    fn fifteen_losses_of_twenty() {
        // The second example: RFC 6675 fills the window of 10 at once over a pipe of 4, PRR goes on one for one.
        let (mut wire, _) = Wire::new(TWENTY, 1000);
        assert_eq!(wire.duplicates(15, 20), [vec![20], vec![21], vec![0, 1, 2, 3, 4, 5], vec![6], vec![7]]);
        let (mut wire, _) = Wire::new(&format!(r#"{TWENTY},"prr": true"#), 1000);
        assert_eq!(wire.duplicates(15, 20), [[20], [21], [0], [1], [2]]);
        // Progress in order and no further loss: two for one (slow start), up to the threshold.
        assert_eq!(wire.ack(1, &[(15, 20)]), [3, 4]);
    }

    #[test]
    fn without_new_data_it_sends_what_may_be_lost_and_rescues_the_last_once() {
        // NextSeg's rules 3 and 4: 0, 4 and 7 of eight segments are lost.
        let (mut wire, _) = Wire::new(r#","initial-window": "8p""#, 8);
        assert_eq!(wire.duplicates(1, 4), [vec![], vec![], vec![0]]);
        assert_eq!(wire.ack(0, &[(5, 6), (1, 4)]), NOTHING);
        assert_eq!(wire.ack(0, &[(5, 7), (1, 4)]), [4], "only two beyond it have come, but there is room");
        assert_eq!(wire.ack(4, &[(5, 7)]), [7]);
        assert_eq!(wire.ack(7, &[]), NOTHING);
        wire.ack(8, &[]);
        assert_eq!(wire.sender.wake(), Instant::NEVER);
        assert_eq!((wire.sender.acknowledged(), wire.sender.statistics().retransmitted), (8, 3));
    }

    #[test]
    fn a_timeout_sends_again_what_is_not_held() {
        let (mut wire, _) = Wire::new(r#","initial-window": "8p""#, 8);
        assert_eq!(wire.duplicates(1, 3), [NOTHING, NOTHING]);
        wire.now = wire.sender.wake();
        assert_eq!(wire.act(SackSender::on_wake), [0]);
        assert_eq!((wire.sender.tcp.window(), wire.sender.tcp.control.threshold()), (1.0, 4.0));
        // 5 arrives late; then 0, after which slow start goes on with what is missing.
        assert_eq!(wire.ack(0, &[(5, 6), (1, 3)]), NOTHING);
        assert_eq!(wire.ack(3, &[(5, 6)]), [3, 4]);
        assert_eq!(wire.ack(6, &[]), [6, 7]);
        assert_eq!(wire.sender.statistics().timeouts, 1);
    }

    #[test]
    fn a_second_loss_in_a_recovery_does_not_lower_the_window_again() {
        let (mut wire, _) = Wire::new(TWENTY, 1000);
        wire.duplicates(1, 4);
        // 6 is lost, too.
        wire.ack(0, &[(7, 10), (1, 6)]);
        assert_eq!(wire.sender.statistics().fast_retransmits, 1);
        assert_eq!(wire.sender.tcp.control.threshold(), 10.0);
        assert_eq!(wire.sender.board.lost(), 2);
    }

    #[test]
    fn a_round_trip_ends_with_the_selective_acknowledgement() {
        let (mut wire, _) = Wire::new(r#","initial-window": "3p""#, 100);
        assert_eq!(wire.ack(1, &[]), [3, 4]);
        assert_eq!(wire.sender.statistics().rtt_samples.0, 1);
        wire.ack(1, &[(3, 4)]);
        assert_eq!(wire.sender.statistics().rtt_samples, (2, 2_000_000));
    }

    /// What an ACK leaves, and what is then sent, by each of the short cuts that take it.
    fn short_cuts(wire: &Wire, number: u32, records: &Acks) -> Vec<(SackSender, Vec<u32>)> {
        let mut found = Vec::new();
        let mut short = wire.sender.clone();
        let mut left = records.clone();
        if let Some(segments) = short.ack_in_recovery(number, &mut left, wire.now) {
            found.push((short.clone(), segments.collect()));
        }
        (short, left) = (wire.sender.clone(), records.clone());
        if short.take_in_recovery(number, &mut left, wire.now).is_some() {
            let mut others = records.clone();
            others.take(number, wire.sender.tcp.acked);
            assert_eq!(format!("{left:?}"), format!("{others:?}"));
            let mut other = Wire { sender: short, rng: wire.rng.clone(), now: wire.now };
            let sent = other.act(|_, _| {});
            found.push((other.sender, sent));
            return found;
        }
        if short.is_on_short_way()
            && let Some(room) = short.take_shortly(number, &mut left, wire.now)
        {
            let sent: Vec<_> = std::iter::from_fn(|| short.transmit_shortly(wire.now)).collect();
            assert!(sent.is_empty() || room > 0);
            found.push((short, sent));
            let mut others = records.clone();
            others.take(number, wire.sender.tcp.acked);
            assert_eq!(format!("{left:?}"), format!("{others:?}"));
        }
        let Some(plain) = records.first_plain(number) else { return found };
        let mut short = wire.sender.clone();
        if let Some(segments) = short.ack_fast(plain, false, wire.now) {
            found.push((short, segments.collect()));
        }
        let mut other = Wire { sender: wire.sender.clone(), rng: wire.rng.clone(), now: wire.now };
        let mut takes = false;
        let sent = other.act(|sender, now| takes = sender.take_fast(plain, false, now));
        if takes {
            found.push((other.sender, sent));
        }
        found
    }

    /// All of a sender's state, but what it keeps for ACKs without selective acknowledgement.
    fn state(sender: &mut SackSender) -> String {
        sender.tcp.start();
        sender.tcp.forget_gap();
        if let Some(rack) = &mut sender.rack {
            rack.forget_void();
        }
        format!("{sender:?}")
    }

    #[test]
    fn acks_without_blocks_take_the_fast_path_unless_segments_were_lost_or_sent_again() {
        for extra in ["", RACK] {
            let (mut wire, _) = Wire::new(&format!(r#"{extra},"initial-window": "8p","prr": true"#), 1000);
            wire.ack(1, &[]);
            let fast = |wire: &Wire, expected, ece| {
                let mut sender = wire.sender.clone();
                sender.ack_fast((expected, 0), ece, wire.now)
            };
            assert_eq!(fast(&wire, 2, false), Some(10..12));
            assert_eq!(fast(&wire, 2, true), None);
            assert_eq!(fast(&wire, 1, false), None, "nothing new");
            assert_eq!(fast(&wire, 10, false), None, "everything");
            wire.ack(1, &[(3, 4)]);
            assert_eq!(fast(&wire, 2, false), None, "3 is held");
            wire.ack(1, &[(3, 9)]);
            assert!(matches!(wire.sender.phase, Phase::Recovery(_)));
            assert_eq!(fast(&wire, 9, false), None);
        }
    }

    /// What the sender sends when its timers expire, which its short cut does alike if it takes them.
    fn expire(wire: &mut Wire) -> Result<Vec<u32>, TestCaseError> {
        let mut short = wire.sender.clone();
        let shortened = short.wake_fast(wire.now).map(Iterator::collect::<Vec<u32>>);
        let sent = wire.act(SackSender::on_wake);
        if let Some(others) = shortened {
            prop_assert_eq!(&others, &sent);
            prop_assert_eq!(state(&mut short), state(&mut wire.sender));
        }
        Ok(sent)
    }

    /// A segment comes; if the receiver's short way takes it, that does and leaves the same.
    fn receive(
        receiver: &mut SackReceiver,
        sequence: u32,
        now: Instant,
        records: &mut Acks,
    ) -> Result<Received, TestCaseError> {
        let (mut short, mut left) = (receiver.clone(), records.clone());
        let number = short.receive_ahead(sequence, &mut left);
        let taken = receiver.on_data(sequence, Signals::default(), now, records);
        if let Some(number) = number {
            prop_assert_eq!(taken, Received { first: true, ack: Some(Ack::plain(number)) });
            prop_assert_eq!(format!("{short:?} {left:?}"), format!("{receiver:?} {records:?}"));
        }
        Ok(taken)
    }

    /// A path of 10 ms each way, which loses the packets that `lost` says, over and over.
    fn transfer(
        extra: &str,
        segments: u64,
        lost: &[bool],
        delayed: bool,
    ) -> Result<SenderStatistics, TestCaseError> {
        let delayed = if delayed { r#","delayed-ack": "40ms","quick-acks": "4p""# } else { "" };
        let extra = format!(r#"{extra}{delayed},"initial-rto": "1s""#);
        let (mut wire, sent) = Wire::new(&extra, segments);
        let mut receiver = SackReceiver::new(&wire.sender.tcp.rare.params, TcpEcn::Off);
        let mut records = Acks::default();
        let (mut data, mut acks) = (VecDeque::new(), VecDeque::new());
        let mut losses = lost.iter().copied().cycle();
        let mut known = BTreeSet::new();
        let delay = Duration::from_millis(10);
        let mut put = |sent: Vec<u32>, now: Instant, data: &mut VecDeque<(Instant, u32)>| {
            data.extend(
                sent.into_iter().filter(|_| !losses.next().unwrap_or(false)).map(|n| (now + delay, n)),
            );
        };
        put(sent, Instant::ZERO, &mut data);
        let mut delivered = BTreeSet::new();
        for _ in 0..100_000 {
            if wire.sender.acknowledged() == segments {
                prop_assert_eq!(delivered.len() as u64, segments);
                // A segment that waited to be sent again may have arrived meanwhile; its time passes.
                let wake = wire.sender.wake();
                prop_assert!(wake == Instant::NEVER || wake == wire.sender.tcp.next_send);
                return Ok(wire.sender.statistics());
            }
            let head = |queue: &VecDeque<(Instant, u32)>| queue.front().map_or(Instant::NEVER, |(at, _)| *at);
            let (arrival, ack) = (head(&data), head(&acks));
            let now = arrival.min(ack).min(wire.sender.wake()).min(receiver.wake());
            prop_assert!(now < Instant::NEVER, "it stands still");
            wire.now = now;
            let mut sent = Vec::new();
            if arrival == now {
                let (_, sequence) = data.pop_front().unwrap();
                let taken = receive(&mut receiver, sequence, now, &mut records)?;
                prop_assert_eq!(taken.first, delivered.insert(sequence));
                acks.extend(taken.ack.map(|ack| (now + delay, ack.number)));
            } else if ack == now {
                let (_, number) = acks.pop_front().unwrap();
                let shortened = short_cuts(&wire, number, &records);
                let record = records.take(number, wire.sender.tcp.acked).unwrap();
                known.extend(record.blocks.into_iter().flat_map(|(begin, end)| begin..end));
                sent = wire.act(|sender, now| sender.on_record(&record, false, now));
                for (mut sender, others) in shortened {
                    prop_assert_eq!(&others, &sent);
                    prop_assert!(number % 3 != 0 || state(&mut sender) == state(&mut wire.sender));
                }
            } else if receiver.wake() == now {
                acks.extend(receiver.on_wake(now, &mut records).map(|ack| (now + delay, ack.number)));
            } else {
                sent = expire(&mut wire)?;
            }
            for sequence in &sent {
                let acked = wire.sender.tcp.acked;
                prop_assert!(*sequence >= acked && !known.contains(sequence), "{sequence} had arrived");
            }
            let outstanding = wire.sender.tcp.highest - wire.sender.tcp.acked;
            prop_assert!(wire.sender.pipe() <= 2 * outstanding);
            prop_assert!(outstanding <= wire.sender.tcp.most());
            put(sent, now, &mut data);
        }
        prop_assert!(false, "it never ends");
        unreachable!()
    }

    proptest! {
        #[test]
        fn delivers_everything_and_never_sends_again_what_is_known_to_have_arrived(
            lost in prop::collection::vec(prop::bool::weighted(0.2), 1..80),
            (prr, limited, delayed, rack, paced) in any::<(bool, bool, bool, bool, bool)>(),
            congestion in prop_oneof![Just("reno"), Just("cubic"), Just("bbr"), Just("bbr3")],
            (segments, window) in (1_u64..150, 1_u32..40),
        ) {
            prop_assume!(!lost.iter().all(|lost| *lost));
            let detection = if rack { "rack" } else { "duplicate-acks" };
            let pacing = if paced { r#","pacing": "window""# } else { "" };
            let extra = format!(
                r#","loss-detection": "{detection}", "prr": {prr}, "limited-transmit": {limited}, "congestion": "{congestion}", "window": "{window}p"{pacing}"#
            );
            let statistics = transfer(&extra, segments, &lost, delayed)?;
            prop_assert!(statistics.sent >= segments);
            prop_assert_eq!(statistics.sent - statistics.retransmitted, segments);
        }
    }

    const RACK: &str = r#","loss-detection": "rack""#;

    #[test]
    fn rack_repairs_one_loss_of_twenty_as_counts_do() {
        let courses = ["", RACK].map(|rack| {
            let (mut wire, _) = Wire::new(&format!("{TWENTY}{rack}"), 1000);
            wire.now = Instant::from_nanos(100_000_000);
            let sent = wire.duplicates(1, 20);
            let after = [wire.ack(20, &[]), wire.ack(22, &[])];
            (sent, after, wire.sender.window(), wire.sender.statistics())
        });
        assert_eq!(courses[0], courses[1]);
    }

    #[test]
    fn rack_waits_a_fourth_of_the_least_round_trip_for_what_may_be_reordered() {
        // 0 is late. 1 to 3 arrive after 1, 2 and 3 ms: the least round trip is 1 ms, and three are lost at once.
        let (mut wire, _) = Wire::new(
            &format!(r#"{RACK},"initial-window": "4p","limited-transmit": true,"tick": "1us""#),
            1000,
        );
        wire.ack(0, &[(1, 2)]);
        assert_eq!(wire.sender.wake(), Instant::from_nanos(1_250_000));
        wire.now = wire.sender.wake();
        assert_eq!(wire.act(SackSender::on_wake), [0]);
        assert_eq!(wire.sender.statistics().fast_retransmits, 1);
    }

    /// The retransmissions and timeouts of a transfer of so many segments that loses the packets of these numbers.
    fn repaired(extra: &str, segments: u64, lost: &[usize]) -> (u64, u64) {
        let extra = format!(r#"{extra},"initial-window": "10p","handshake": false,"tick": "1us""#);
        let mut losses = vec![false; 4000];
        for &number in lost {
            losses[number] = true;
        }
        let statistics = transfer(&extra, segments, &losses, false).unwrap();
        (statistics.retransmitted, statistics.timeouts)
    }

    #[test]
    fn a_probe_repairs_the_last_segments_without_a_timeout() {
        for (lost, again) in [(&[59][..], 1), (&[58, 59], 2), (&[55, 56, 57, 58, 59], 5)] {
            assert_eq!(repaired(RACK, 60, lost), (again, 0), "{lost:?}");
            assert_eq!(repaired("", 60, lost).1, 1, "{lost:?}");
        }
    }

    #[test]
    fn a_retransmission_that_is_lost_again_is_found_without_a_timeout() {
        // The 31st packet, and then the packet that sends its segment again.
        for prr in ["true", "false"] {
            let rack = format!(r#"{RACK},"prr": {prr}"#);
            let again = (31..80).find(|&packet| {
                repaired(&rack, 200, &[30, packet]).0 == 2 && {
                    let plain = format!(r#","prr": {prr}"#);
                    repaired(&plain, 200, &[30, packet]).1 == 1
                }
            });
            let again = again.expect("one of them is the retransmission");
            assert_eq!(repaired(&rack, 200, &[30, again]), (2, 0));
        }
    }

    #[test]
    fn a_probe_that_repaired_a_loss_lowers_the_window_and_one_that_was_in_vain_does_not() {
        let course = |duplicate| {
            let extra = format!(r#"{RACK},"initial-window": "4p","initial-ssthresh": "4p","tick": "1us""#);
            let (mut wire, sent) = Wire::new(&extra, 1000);
            assert_eq!(sent, [0, 1, 2, 3]);
            wire.sender.stop();
            wire.now = Instant::from_nanos(9_000_000);
            wire.ack(2, &[]);
            // Two round trips of 10 ms after that ACK, the last segment goes again.
            assert_eq!(wire.sender.wake(), Instant::from_nanos(30_000_000));
            wire.now = wire.sender.wake();
            assert_eq!(wire.act(SackSender::on_wake), [3]);
            wire.sender.tcp.end = 1000;
            let window = wire.sender.window();
            let ack = AckRecord { expected: 4, blocks: [(0, 0); 3], marked: 0, duplicate };
            wire.now += Duration::from_millis(10);
            let sent = wire.act(|sender, now| sender.on_record(&ack, false, now));
            wire.ack(4 + sent.len() as u32, &[]);
            (wire.sender.window() - window, wire.sender.statistics().timeouts)
        };
        let (repaired, in_vain) = (course(None), course(Some(3)));
        assert!(repaired.0 < -1.0 && in_vain.0 > 0.0, "{repaired:?} {in_vain:?}");
        assert_eq!((repaired.1, in_vain.1), (0, 0));
    }

    #[test]
    fn one_loss_costs_one_retransmission_and_no_timeout() {
        for (prr, rack) in [("true", ""), ("false", ""), ("true", RACK), ("false", RACK)] {
            let mut lost = vec![false; 400];
            lost[60] = true;
            let extra = format!(r#"{rack},"prr": {prr}, "initial-window": "10p""#);
            let statistics = transfer(&extra, 200, &lost, false).unwrap();
            assert_eq!(
                (statistics.retransmitted, statistics.timeouts, statistics.fast_retransmits),
                (1, 0, 1)
            );
        }
    }
}

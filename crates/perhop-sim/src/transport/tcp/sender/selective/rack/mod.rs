//! RACK-TLP (RFC 8985), or the loss detection of QUIC (RFC 9002, section 6), in whole segments. RACK finds
//! losses by the times at which segments were sent; TLP sends a probe where a flight's last segments may be
//! lost.
//!
//! What the receiver holds is on the [scoreboard](super::scoreboard::Scoreboard); here are the times, and
//! what follows from them.
//!
//! QUIC's differs in three rules: by how many transmissions one must be overtaken, how long one may take, and
//! when a probe is sent. The numbers of transmissions are its packet numbers.
//!
//! ## Deviations
//! - `RACK.min_RTT` is the least round trip of the connection, not of a recent time (section 6.2, step 1;
//!   Linux: 300 s).
//! - An ACK carries no timestamp: only `min_RTT` decides whether it is for the first or the second
//!   transmission (section 6.2, step 2).
//! - Of two segments sent at the same time, the one sent last is known; section 6.2 takes the one with the
//!   higher number.
//! - A probe timer that may not send a probe leaves the retransmission timer as it is; section 7.3 restarts
//!   it.
//! - Linux, by contrast, waits a tick longer before a probe, and has a reordering window of 1 ms at least.

mod probe;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use perhop_core::{Duration, Instant};

use super::scoreboard::DUP_THRESH;
use crate::transport::tcp::outstanding::Outstanding;
use crate::transport::tcp::rto::QUIC_GRANULARITY;
use probe::Probe;
pub(super) use probe::ProbeAnswer;
pub(in super::super) use probe::Timer;

/// The reordering window in units of a fourth of the least round trip falls back to one after so many
/// recoveries without a duplicate (`RACK.reo_wnd_persist`).
const RECOVERIES: u32 = 16;
/// `kPacketThreshold`: a transmission is lost if one so many later has arrived (RFC 9002, section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// When segments were sent, which of them are lost, and when to look again.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Losses are found as by QUIC.
    is_quic: bool,
    segments: Outstanding<Segment>,
    /// Transmissions so far.
    transmissions: u64,
    /// Transmissions in their order. An entry whose segment has since arrived, or was found lost, or was sent
    /// again, is void. `None` while it is the order of the segments, all of which were sent once and are in
    /// the network: most ACKs need not keep it, which spares `tcp = "linux"` 5 % of its instructions.
    order: Option<VecDeque<Transmission>>,
    /// One past the highest segment that was sent again.
    resent: u32,
    /// Segments that are lost and not sent again, and a bound below which there is none.
    lost: u32,
    lost_from: u32,
    /// `RACK.xmit_ts` and `RACK.end_seq` - 1: the transmission sent last of those that have arrived.
    /// `RACK.rtt`: its round trip.
    newest: Option<Transmission>,
    rtt: Duration,
    /// `RACK.min_RTT`.
    least_rtt: Option<Duration>,
    /// `RACK.fack`: one past the highest segment that has arrived; and the same with the ACK at hand.
    highest: u32,
    highest_now: u32,
    /// The segment sent last of the ones that the ACK at hand reports.
    newest_now: Option<Transmission>,
    /// `RACK.reordering_seen`.
    is_reordered: bool,
    /// `RACK.reo_wnd_mult`, `RACK.reo_wnd_persist`, `RACK.dsack_round`.
    multiplier: u64,
    persists: u32,
    widened_at: Option<u32>,
    /// `RACK.reo_wnd`, as it was last.
    window: Duration,
    /// The reordering timer.
    deadline: Instant,
    /// The probe timer; what had been sent when the probe was that is unanswered (`TLP.end_seq`), and whether
    /// it was a segment sent again (`TLP.is_retrans`).
    probe_at: Instant,
    probe: Option<Probe>,
    /// A round trip was measured since the last probe.
    is_measured: bool,
}

/// A transmission of a segment. Each has a number of its own, by which they are ordered (`RACK_sent_after`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Transmission {
    number: u64,
    at: Instant,
    sequence: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    last: Transmission,
    /// The segment was sent again.
    again: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    InNetwork,
    Lost,
    Arrived,
}

/// What the reordering window and the probe timeout depend on besides times of segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) smoothed_rtt: Option<Duration>,
    /// Losses are being repaired.
    pub(super) is_recovering: bool,
    /// Segments selectively acknowledged (`RACK.segs_sacked`).
    pub(super) held: u32,
}

impl Rack {
    /// Makes a state with nothing outstanding, before this segment; `is_measured` if a round trip is known.
    pub(super) fn new(first: u32, is_measured: bool, is_quic: bool) -> Self {
        Self {
            is_quic,
            segments: Outstanding::from_segment(first),
            transmissions: 0,
            order: None,
            resent: 0,
            lost: 0,
            lost_from: 0,
            newest: None,
            rtt: Duration::ZERO,
            least_rtt: None,
            highest: first,
            highest_now: first,
            newest_now: None,
            is_reordered: false,
            multiplier: 1,
            persists: 0,
            widened_at: None,
            window: Duration::ZERO,
            deadline: Instant::NEVER,
            probe_at: Instant::NEVER,
            probe: None,
            is_measured,
        }
    }

    /// Gives up [room](Outstanding::fit) for records.
    pub(super) fn fit(&mut self) {
        self.segments.fit();
    }

    /// Losses are found as by QUIC.
    pub(super) fn is_quic(&self) -> bool {
        self.is_quic
    }

    /// Returns when the reordering or the probe timer expires.
    pub(super) fn wake(&self) -> Instant {
        self.deadline.min(self.probe_at)
    }

    /// Segments that are lost and not sent again.
    #[inline]
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Notes that the next new segment is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant) {
        let last = self.transmit(self.segments.end(), now);
        self.segments.push(Segment { last, again: false, state: State::InNetwork });
    }

    #[inline]
    fn transmit(&mut self, sequence: u32, now: Instant) -> Transmission {
        let transmission = Transmission { number: self.transmissions, at: now, sequence };
        self.transmissions += 1;
        if let Some(order) = &mut self.order {
            order.push_back(transmission);
        }
        transmission
    }

    /// Notes that an outstanding segment is sent again.
    pub(super) fn on_resent(&mut self, sequence: u32, now: Instant) {
        self.order();
        let last = self.transmit(sequence, now);
        self.resent = self.resent.max(sequence + 1);
        let Some(segment) = self.segments.get_mut(sequence) else { return };
        let was_lost = segment.state == State::Lost;
        *segment = Segment { last, again: true, state: State::InNetwork };
        self.lost -= u32::from(was_lost);
    }

    /// Returns the order of transmissions, which may differ from that of the segments from now on.
    #[inline]
    fn order(&mut self) -> &mut VecDeque<Transmission> {
        let segments = &self.segments;
        self.order.get_or_insert_with(|| segments.from(0).map(|(_, segment)| segment.last).collect())
    }

    /// Forgets void entries of the order of transmissions.
    #[cfg(test)]
    pub(super) fn forget_void(&mut self) {
        let mut order = std::mem::take(self.order());
        order.retain(|transmission| self.is_in_network(*transmission));
        self.order = Some(order);
    }

    /// Returns whether all that is outstanding was sent once, in order, later than all that has arrived, and
    /// is neither lost nor being probed for.
    #[inline]
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0
            && self.resent <= self.segments.first()
            && self.probe.is_none()
            && self
                .segments
                .get(self.segments.first())
                .is_some_and(|first| self.newest.is_none_or(|newest| first.last > newest))
    }

    /// Takes an ACK of everything below `expected`, which is not all, while the state [is
    /// clean](Self::is_clean) outside of recoveries.
    #[inline]
    pub(super) fn pass(&mut self, expected: u32, smoothed_rtt: Option<Duration>, now: Instant) {
        debug_assert!(self.is_clean() && expected > self.segments.first());
        self.order = None;
        if let Some(&Segment { last, .. }) = self.segments.get(expected - 1) {
            self.newest = Some(last);
            self.rtt = now.since(last.at);
        }
        self.segments.pass(expected);
        self.least_rtt = Some(self.least_rtt.map_or(self.rtt, |least| least.min(self.rtt)));
        self.is_measured = true;
        (self.highest, self.highest_now) = (expected, expected);
        if self.widened_at.is_some_and(|round| expected >= round) {
            self.widened_at = None;
        }
        self.deadline = Instant::NEVER;
        self.window = self.reordering_window(Path { smoothed_rtt, is_recovering: false, held: 0 });
    }

    /// Notes that an ACK reports this segment for the first time (section 6.2, steps 1 to 3).
    pub(super) fn on_arrived(&mut self, sequence: u32, now: Instant) {
        self.order();
        let Some(segment) = self.segments.get_mut(sequence) else { return };
        let Segment { last, again, state } =
            std::mem::replace(segment, Segment { state: State::Arrived, ..*segment });
        self.lost -= u32::from(state == State::Lost);
        self.highest_now = self.highest_now.max(sequence + 1);
        let rtt = now.since(last.at);
        if again && self.least_rtt.is_some_and(|least| rtt < least) {
            return; // Perhaps an earlier transmission of it arrived.
        }
        if !again {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
            self.is_measured = true;
            self.is_reordered |= sequence + 1 < self.highest;
        }
        self.newest_now = self.newest_now.max(Some(last));
    }

    /// Ends the account of an ACK that asks for segment `acked`; all that it reports has been passed to
    /// [`on_arrived`](Self::on_arrived). `duplicate` if it reports a segment that had arrived before, `sent`
    /// is the first segment not sent (step 4).
    pub(super) fn on_ack(&mut self, acked: u32, sent: u32, duplicate: bool, now: Instant) {
        if let Some(newest) = self.newest_now.take() {
            self.rtt = now.since(newest.at);
            self.newest = self.newest.max(Some(newest));
        }
        self.highest = self.highest_now;
        self.segments.pass(acked);
        if self.widened_at.is_some_and(|round| acked >= round) {
            self.widened_at = None;
        }
        if duplicate && self.widened_at.is_none() {
            self.widened_at = Some(sent);
            self.multiplier += 1;
            self.persists = RECOVERIES;
        }
    }

    /// Notes that a recovery, by retransmissions or after a timeout, is over.
    pub(super) fn on_recovery_end(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.multiplier = 1;
        }
    }

    /// Returns the reordering window (`RACK_update_reo_wnd`); for QUIC, what is left of its 9/8 of the longer
    /// of the smoothed and the newest round trip beyond the newest.
    fn reordering_window(&self, path: Path) -> Duration {
        if self.is_quic {
            let longer = path.smoothed_rtt.map_or(self.rtt, |rtt| rtt.max(self.rtt));
            let threshold =
                Duration::from_nanos(longer.as_nanos().saturating_mul(9) / 8).max(QUIC_GRANULARITY);
            return Duration::from_nanos(threshold.as_nanos().saturating_sub(self.rtt.as_nanos()));
        }
        if !self.is_reordered && (path.is_recovering || path.held >= DUP_THRESH) {
            return Duration::ZERO;
        }
        let least = self.least_rtt.unwrap_or(Duration::ZERO).as_nanos();
        let window = Duration::from_nanos(self.multiplier.saturating_mul(least) / 4);
        path.smoothed_rtt.map_or(window, |rtt| window.min(rtt))
    }

    /// Finds and names what is lost by now, and sets the timer for the rest (step 5); returns how much it is.
    pub(super) fn detect(&mut self, path: Path, now: Instant, mut name: impl FnMut(u32)) -> u32 {
        let before = self.lost;
        self.deadline = Instant::NEVER;
        self.window = self.reordering_window(path);
        let Some(newest) = self.newest else { return 0 };
        while let Some(&transmission) = self.order().front() {
            if self.is_in_network(transmission) {
                if transmission >= newest {
                    return self.lost - before;
                }
                if now < self.due(transmission) && !self.is_overtaken(transmission, newest) {
                    self.deadline = if self.is_quic { self.due(transmission) } else { self.last_due(newest) };
                    break;
                }
                self.lose(transmission.sequence);
                name(transmission.sequence);
            }
            self.order().pop_front();
        }
        self.lost - before
    }

    /// Returns whether enough transmissions after this one have been sent, up to one that has arrived: QUIC's
    /// packet threshold.
    fn is_overtaken(&self, transmission: Transmission, newest: Transmission) -> bool {
        self.is_quic && newest.number - transmission.number >= PACKET_THRESHOLD
    }

    /// Returns when the last transmission before `newest` is due that may be lost: when the reordering timer
    /// expires, all of them are lost.
    fn last_due(&self, newest: Transmission) -> Instant {
        let Some(order) = &self.order else { return Instant::NEVER };
        let earlier = order.partition_point(|transmission| *transmission < newest);
        let last = order.range(..earlier).rev().find(|transmission| self.is_in_network(**transmission));
        last.map_or(Instant::NEVER, |&last| self.due(last))
    }

    /// Returns whether this is the last transmission of a segment that is in the network, as far as is known.
    fn is_in_network(&self, transmission: Transmission) -> bool {
        let segment = self.segments.get(transmission.sequence);
        segment.is_some_and(|segment| segment.state == State::InNetwork && segment.last == transmission)
    }

    /// Returns when a transmission is lost, if one sent later has arrived.
    fn due(&self, transmission: Transmission) -> Instant {
        transmission.at + self.rtt + self.window
    }

    fn lose(&mut self, sequence: u32) {
        if let Some(segment) = self.segments.get_mut(sequence) {
            segment.state = State::Lost;
            self.lost_from = if self.lost == 0 { sequence } else { self.lost_from.min(sequence) };
            self.lost += 1;
        }
    }

    /// Returns whether the reordering timer expires.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// Finds what is lost when the retransmission timer expires: the first segment, and what was sent long
    /// enough ago (section 6.3). Names what was not yet known to be.
    pub(super) fn on_timeout(&mut self, now: Instant, mut name: impl FnMut(u32)) {
        let first = self.segments.first();
        for sequence in first..self.segments.end() {
            let Some(&Segment { last, state, .. }) = self.segments.get(sequence) else { return };
            if state == State::InNetwork && (sequence == first || now >= self.due(last)) {
                self.lose(sequence);
                name(sequence);
            }
        }
        self.deadline = Instant::NEVER;
        self.forget_probe();
    }

    /// Returns the first segment that is lost and not sent again.
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        let (first, _) =
            self.segments.from(self.lost_from).find(|(_, segment)| segment.state == State::Lost)?;
        self.lost_from = first;
        Some(first)
    }
}

//! RACK-TLP (RFC 8985), or the loss detection of QUIC (RFC 9002, section 6), in whole segments. RACK finds losses by the times at which
//! segments were sent; TLP sends a probe where a flight's last segments may be lost.
//!
//! What the receiver holds is on the [scoreboard](super::scoreboard::Scoreboard); here are the times, and what follows from them.
//!
//! QUIC's differs in three rules: by how many transmissions one must be overtaken, how long one may take, and when a probe is sent.
//! The numbers of transmissions are its packet numbers.
//!
//! ## Deviations
//! - `RACK.min_RTT` is the least round trip of the connection, not of a recent time (section 6.2, step 1; Linux: 300 s).
//! - An ACK carries no timestamp: only `min_RTT` decides whether it is for the first or the second transmission
//!   (section 6.2, step 2).
//! - Of two segments sent at the same time, the one sent last is known; section 6.2 takes the one with the higher number.
//! - A probe timer that may not send a probe leaves the retransmission timer as it is; section 7.3 restarts it.
//! - Linux, by contrast, waits a tick longer before a probe, and has a reordering window of 1 ms at least.

use std::cmp::Ordering;
use std::collections::VecDeque;

use perhop_core::{Duration, Instant};

use super::outstanding::Outstanding;
use super::rto::{PROBE_TIMEOUTS, QUIC_GRANULARITY};
use super::scoreboard::DUP_THRESH;

/// The reordering window in units of a fourth of the least round trip falls back to one after so many recoveries without a
/// duplicate (`RACK.reo_wnd_persist`).
const RECOVERIES: u32 = 16;
/// `TLP.max_ack_delay`: how long a receiver may keep the ACK of a single segment.
const MOST_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe timeout without a round trip.
const FIRST_PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// `kPacketThreshold` of QUIC: a transmission is lost if one so many later has arrived (RFC 9002, section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// When segments were sent, which of them are lost, and when to look again.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Losses are found as by QUIC.
    is_quic: bool,
    segments: Outstanding<Segment>,
    /// Transmissions so far.
    transmissions: u64,
    /// Transmissions in their order. An entry whose segment has since arrived, or was found lost, or was sent again, is void. `None`
    /// while it is the order of the segments, all of which were sent once and are in the network.
    order: Option<VecDeque<Transmission>>,
    /// One past the highest segment that was sent again.
    resent: u32,
    /// Segments that are lost and not sent again, and a bound below which there is none.
    lost: u32,
    lost_from: u32,
    /// `RACK.xmit_ts` and `RACK.end_seq` - 1: the transmission sent last of those that have arrived. `RACK.rtt`: its round trip.
    newest: Option<Transmission>,
    rtt: Duration,
    /// `RACK.min_RTT`.
    least_rtt: Option<Duration>,
    /// `RACK.fack`: one past the highest segment that has arrived; and the same with what the ACK at hand reports.
    highest: u32,
    highest_now: u32,
    /// Of the segments that the ACK at hand reports, the one sent last.
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
    /// The probe timer; what had been sent when the probe was that is unanswered (`TLP.end_seq`), and whether it was a segment
    /// sent again (`TLP.is_retrans`).
    probe_at: Instant,
    probe: Option<Probe>,
    /// A round trip was measured since the last probe.
    is_measured: bool,
}

/// A transmission of a segment. Each has a number of its own, by which they are compared: that is their order (`RACK_sent_after`).
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    number: u64,
    at: Instant,
    sequence: u32,
}

impl PartialEq for Transmission {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Transmission {}

impl PartialOrd for Transmission {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Transmission {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    last: Transmission,
    /// It was not the first time.
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

/// A loss probe without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    end: u32,
    again: bool,
}

/// What an ACK says of a probe (section 7.4).
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeAnswer {
    /// Everything below has arrived.
    pub(super) expected: u32,
    /// The segment that had arrived before (DSACK).
    pub(super) duplicate: Option<u32>,
    /// It reports nothing new.
    pub(super) is_pure_duplicate: bool,
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

/// What the probe timeout depends on besides the flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) smoothed_rtt: Option<Duration>,
    /// The retransmission timeout, and when its timer expires.
    pub(super) timeout: Duration,
    pub(super) expiry: Instant,
}

impl Rack {
    /// Nothing outstanding; this segment comes first. `is_measured` if a round trip is known.
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

    /// Losses are found as by QUIC.
    pub(super) fn is_quic(&self) -> bool {
        self.is_quic
    }

    /// When it next has something to do by itself.
    pub(super) fn wake(&self) -> Instant {
        self.deadline.min(self.probe_at)
    }

    /// Segments that are lost and not sent again.
    #[inline]
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// The next new segment is sent.
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

    /// An outstanding segment is sent again.
    pub(super) fn on_resent(&mut self, sequence: u32, now: Instant) {
        self.keep_order();
        let last = self.transmit(sequence, now);
        self.resent = self.resent.max(sequence + 1);
        let Some(segment) = self.segments.get_mut(sequence) else { return };
        let was_lost = segment.state == State::Lost;
        *segment = Segment { last, again: true, state: State::InNetwork };
        self.lost -= u32::from(was_lost);
    }

    /// From now on the order of transmissions may differ from that of the segments.
    #[inline]
    fn keep_order(&mut self) {
        if self.order.is_none() {
            self.make_order();
        }
    }

    #[inline(never)]
    fn make_order(&mut self) {
        self.order = Some(self.segments.from(0).map(|(_, segment)| segment.last).collect());
    }

    /// Forgets void entries of the order of transmissions.
    #[cfg(test)]
    pub(super) fn forget_void(&mut self) {
        self.keep_order();
        let mut order = self.order.take().unwrap_or_default();
        order.retain(|transmission| self.is_in_network(*transmission));
        self.order = Some(order);
    }

    /// All that is outstanding was sent once, in order, later than all that has arrived, and is neither lost nor being probed for.
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

    /// While it [is clean](Self::is_clean), outside of recoveries: everything below `expected`, but not all, has arrived, and so many
    /// new segments are sent.
    #[inline]
    pub(super) fn pass(&mut self, expected: u32, sent: u32, smoothed_rtt: Option<Duration>, now: Instant) {
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
        let first = self.segments.end();
        for sequence in first..first + sent {
            let last = Transmission { number: self.transmissions, at: now, sequence };
            self.transmissions += 1;
            self.segments.push(Segment { last, again: false, state: State::InNetwork });
        }
    }

    /// An ACK says for the first time that this segment has arrived (section 6.2, steps 1 to 3).
    pub(super) fn on_arrived(&mut self, sequence: u32, now: Instant) {
        self.keep_order();
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

    /// Whether this segment was sent once and is the first of those in the network, in the order of transmissions, later than all
    /// that have arrived: its arrival shows no loss.
    #[inline]
    pub(super) fn takes_next(&self, sequence: u32) -> bool {
        let first = self.order.as_ref().and_then(VecDeque::front);
        first.is_some_and(|first| {
            let segment = self.segments.get(sequence);
            let is_first = segment.is_some_and(|segment| segment.last == *first && !segment.again);
            is_first && self.newest.is_none_or(|newest| *first > newest)
        })
    }

    /// An ACK that asks for segment `acked` says that [this one](Self::takes_next) has arrived, and no more that is new.
    #[inline]
    pub(super) fn take_next(&mut self, path: Path, acked: u32, now: Instant) {
        let Some(last) = self.order.as_mut().and_then(VecDeque::pop_front) else { return };
        let Some(segment) = self.segments.get_mut(last.sequence) else { return };
        debug_assert!(segment.state == State::InNetwork);
        segment.state = State::Arrived;
        self.rtt = now.since(last.at);
        self.newest = Some(last);
        self.least_rtt = Some(self.least_rtt.map_or(self.rtt, |least| least.min(self.rtt)));
        self.is_measured = true;
        self.is_reordered |= last.sequence + 1 < self.highest;
        self.highest_now = self.highest_now.max(last.sequence + 1);
        self.highest = self.highest_now;
        if self.widened_at.is_some_and(|round| acked >= round) {
            self.widened_at = None;
        }
        self.deadline = Instant::NEVER;
        self.window = self.reordering_window(path);
    }

    /// The ACK at hand asks for segment `acked`; all that it reports has been passed to [`on_arrived`](Self::on_arrived).
    /// `duplicate` if it reports a segment that had arrived before, `sent` is the first segment not sent (step 4).
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

    /// A recovery, by retransmissions or after a timeout, is over.
    pub(super) fn on_recovery_end(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.multiplier = 1;
        }
    }

    /// `RACK_update_reo_wnd`; for QUIC, what is left of its 9/8 of the longer of the smoothed and the newest round trip beyond the newest.
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

    /// Finds what is lost by now, names it, and sets the reordering timer for the rest (step 5). Returns how much it is.
    pub(super) fn detect(&mut self, path: Path, now: Instant, mut name: impl FnMut(u32)) -> u32 {
        let before = self.lost;
        self.deadline = Instant::NEVER;
        self.window = self.reordering_window(path);
        let Some(newest) = self.newest else { return 0 };
        self.keep_order();
        while let Some(&transmission) = self.order.as_ref().and_then(VecDeque::front) {
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
            self.order.as_mut().map(VecDeque::pop_front);
        }
        self.lost - before
    }

    /// Enough transmissions after this one have been sent, up to one that has arrived: QUIC's packet threshold.
    fn is_overtaken(&self, transmission: Transmission, newest: Transmission) -> bool {
        self.is_quic && newest.number - transmission.number >= PACKET_THRESHOLD
    }

    /// When the last of those is due that may be lost, which were sent before `newest`: when the reordering timer expires, all of
    /// them are lost.
    fn last_due(&self, newest: Transmission) -> Instant {
        let Some(order) = &self.order else { return Instant::NEVER };
        let earlier = order.partition_point(|transmission| *transmission < newest);
        let last = order.range(..earlier).rev().find(|transmission| self.is_in_network(**transmission));
        last.map_or(Instant::NEVER, |&last| self.due(last))
    }

    /// Whether this is the last transmission of a segment that is in the network, as far as is known.
    fn is_in_network(&self, transmission: Transmission) -> bool {
        let segment = self.segments.get(transmission.sequence);
        segment.is_some_and(|segment| segment.state == State::InNetwork && segment.last == transmission)
    }

    /// When this one is lost, if one sent later has arrived.
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

    /// The reordering timer expires.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// The retransmission timer expired: lost is the first segment, and what was sent long enough ago (section 6.3). Names what
    /// was not yet known to be.
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

    /// The first segment that is lost and not sent again.
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

/// Tail loss probes: section 7.
impl Rack {
    /// New data was sent, or acknowledged: a probe follows if nothing else happens (section 7.2).
    pub(super) fn arm_probe(&mut self, timer: Timer, now: Instant) {
        let left = timer.expiry.since(now);
        let timeout = if self.is_quic {
            Duration::from_nanos(timer.timeout.as_nanos() / u64::from(PROBE_TIMEOUTS)).min(left)
        } else {
            probe_timeout(timer.smoothed_rtt, self.segments.len(), left)
        };
        self.probe_at = now + timeout;
    }

    /// Nothing is outstanding, or losses are being repaired or looked for: there is no need of a probe.
    pub(super) fn disarm_probe(&mut self) {
        self.probe_at = Instant::NEVER;
    }

    /// No probe is unanswered any more, and none follows.
    pub(super) fn forget_probe(&mut self) {
        self.probe = None;
        self.disarm_probe();
    }

    /// The probe timer expires: whether a probe is to be sent now (section 7.3).
    pub(super) fn takes_probe(&mut self, now: Instant) -> bool {
        if now < self.probe_at {
            return false;
        }
        self.disarm_probe();
        self.probe.is_none() && self.is_measured
    }

    /// A probe is sent, of new data or of the last segment `again`; then `end` is the first segment not sent.
    pub(super) fn on_probe(&mut self, end: u32, again: bool) {
        self.probe = Some(Probe { end, again });
        self.is_measured = false;
    }

    /// What an ACK says of the probe (section 7.4): whether the probe has repaired a loss, which is to reduce the window.
    pub(super) fn has_repaired(&mut self, ack: ProbeAnswer) -> bool {
        let Some(Probe { end, again }) = self.probe.filter(|probe| ack.expected >= probe.end) else {
            return false;
        };
        let arrived_twice =
            ack.duplicate == end.checked_sub(1) || (ack.expected == end && ack.is_pure_duplicate);
        if !again || arrived_twice || ack.expected > end {
            self.probe = None;
        }
        again && !arrived_twice && ack.expected > end
    }
}

/// `TLP_calc_PTO`.
fn probe_timeout(smoothed_rtt: Option<Duration>, flight: usize, left: Duration) -> Duration {
    let timeout = match smoothed_rtt {
        Some(rtt) if flight == 1 => rtt.saturating_mul(2) + MOST_ACK_DELAY,
        Some(rtt) => rtt.saturating_mul(2),
        None => FIRST_PROBE_TIMEOUT,
    };
    timeout.min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn timer(smoothed_rtt: Option<Duration>) -> Timer {
        Timer { smoothed_rtt, timeout: ms(3000), expiry: at(3000) }
    }

    /// With a smoothed round trip of 60 ms.
    fn path(is_recovering: bool, held: u32) -> Path {
        Path { smoothed_rtt: Some(ms(60)), is_recovering, held }
    }

    /// So many segments, one a millisecond from 0 on.
    fn sent(segments: u64) -> Rack {
        let mut rack = Rack::new(0, false, false);
        (0..segments).for_each(|millis| rack.on_sent(at(millis)));
        rack
    }

    /// An ACK of these segments, of which `acked` is the first missing; returns what is lost by then.
    fn arrive(rack: &mut Rack, segments: &[u32], acked: u32, path: Path, millis: u64) -> Vec<u32> {
        for &sequence in segments {
            rack.on_arrived(sequence, at(millis));
        }
        rack.on_ack(acked, 100, false, at(millis));
        lost(rack, path, millis)
    }

    fn lost(rack: &mut Rack, path: Path, millis: u64) -> Vec<u32> {
        let mut named = Vec::new();
        let count = rack.detect(path, at(millis), |sequence| named.push(sequence));
        assert_eq!(count as usize, named.len());
        named
    }

    #[test]
    fn the_reordering_window_is_a_fourth_of_the_least_round_trip_or_nothing() {
        let mut rack = Rack { least_rtt: Some(ms(40)), ..Rack::new(0, false, false) };
        assert_eq!(rack.reordering_window(path(false, 2)), ms(10));
        assert_eq!(rack.reordering_window(path(false, 3)), ms(0));
        assert_eq!(rack.reordering_window(path(true, 0)), ms(0));
        rack.is_reordered = true;
        assert_eq!(rack.reordering_window(path(false, 3)), ms(10));
        rack.multiplier = 5;
        assert_eq!(rack.reordering_window(Path { smoothed_rtt: Some(ms(45)), ..path(true, 3) }), ms(45));
    }

    #[test]
    fn the_probe_timeout_is_two_round_trips_and_for_one_segment_an_ack_delay_more() {
        let cases =
            [(Some(40), 5, 300, 80), (Some(40), 1, 300, 280), (Some(40), 1, 240, 240), (None, 5, 3000, 1000)];
        for (rtt, flight, left, timeout) in cases {
            assert_eq!(probe_timeout(rtt.map(ms), flight, ms(left)), ms(timeout));
        }
    }

    #[test]
    fn what_was_sent_before_an_arrival_is_lost_after_the_window_and_with_three_arrivals_at_once() {
        let mut rack = sent(4);
        // Sent at 0, with a round trip of 40 ms and 10 more: not at 41, but at 50.
        assert_eq!(arrive(&mut rack, &[1], 0, path(false, 1), 41), [0; 0]);
        assert_eq!((rack.wake(), rack.is_due(at(49)), rack.is_due(at(50))), (at(50), false, true));
        assert_eq!(lost(&mut rack, path(false, 1), 50), [0]);
        assert_eq!((rack.lost(), rack.next_lost(), rack.wake()), (1, Some(0), Instant::NEVER));
        let mut rack = sent(4);
        arrive(&mut rack, &[1], 0, path(false, 1), 41);
        arrive(&mut rack, &[2], 0, path(false, 2), 42);
        assert_eq!(arrive(&mut rack, &[3], 0, path(false, 3), 43), [0]);
    }

    /// So many segments, one a millisecond from 0 on, of QUIC.
    fn sent_by_quic(segments: u64) -> Rack {
        let mut rack = Rack::new(0, false, true);
        (0..segments).for_each(|millis| rack.on_sent(at(millis)));
        rack
    }

    #[test]
    fn quic_takes_for_lost_what_three_later_packets_have_overtaken() {
        // RFC 9002, section 6.1.1: 0 and 1 are three behind 4, 2 and 3 are not.
        let mut rack = sent_by_quic(6);
        assert_eq!(arrive(&mut rack, &[4], 0, path(false, 1), 44), [0, 1]);
        // The numbers are those of packets: 0 sent again is the seventh, and three behind the tenth.
        rack.on_resent(0, at(44));
        rack.on_resent(1, at(45));
        (46..48).for_each(|millis| rack.on_sent(at(millis)));
        assert_eq!(arrive(&mut rack, &[2, 3, 5, 6], 0, path(true, 4), 50), [0; 0]);
        assert_eq!(arrive(&mut rack, &[7], 0, path(true, 4), 51), [0]);
    }

    #[test]
    fn quic_takes_for_lost_what_is_older_than_nine_eighths_of_the_longer_round_trip() {
        // RFC 9002, section 6.1.2: smoothed 60 ms, newest 43: 67.5 ms after it was sent, at 0; its timer is that of the first.
        let mut rack = sent_by_quic(6);
        assert_eq!(arrive(&mut rack, &[2], 0, path(false, 1), 45), [0; 0]);
        assert_eq!(rack.wake(), Instant::from_nanos(67_500_000));
        assert_eq!(lost(&mut rack, path(false, 1), 67), [0; 0]);
        assert_eq!(lost(&mut rack, path(false, 1), 68), [0]);
        assert_eq!(rack.wake(), Instant::from_nanos(68_500_000));
        // The newest is the longer one; at least 1 ms, `kGranularity`.
        let window = |smoothed, newest| {
            let rack = Rack { rtt: Duration::from_nanos(newest), ..Rack::new(0, false, true) };
            rack.reordering_window(Path {
                smoothed_rtt: Some(Duration::from_nanos(smoothed)),
                ..path(false, 0)
            })
            .as_nanos()
        };
        assert_eq!((window(60_000_000, 80_000_000), window(100_000, 200_000)), (10_000_000, 800_000));
    }

    #[test]
    fn quic_probes_after_a_third_of_its_timeout() {
        let mut rack = sent_by_quic(3);
        rack.arm_probe(timer(None), at(2));
        assert_eq!(rack.wake(), at(1002));
        rack.arm_probe(Timer { timeout: ms(975), ..timer(Some(ms(100))) }, at(100));
        assert_eq!(rack.wake(), at(425));
        rack.arm_probe(Timer { timeout: ms(975), expiry: at(1000), ..timer(Some(ms(100))) }, at(900));
        assert_eq!(rack.wake(), at(1000));
    }

    #[test]
    fn the_timer_is_that_of_the_last_segment_that_may_be_lost() {
        let mut rack = sent(6);
        arrive(&mut rack, &[4], 0, path(false, 1), 44);
        assert_eq!(rack.wake(), at(3 + 40 + 10), "3 was sent last of those before 4; 5 was sent later");
        assert_eq!(lost(&mut rack, path(false, 1), 53), [0, 1, 2, 3]);
        // One that arrives meanwhile is not lost.
        let mut rack = sent(6);
        arrive(&mut rack, &[4], 0, path(false, 1), 44);
        arrive(&mut rack, &[0], 1, path(false, 1), 46);
        assert!(rack.is_reordered);
        assert_eq!(lost(&mut rack, path(false, 1), 60), [1, 2, 3]);
    }

    #[test]
    fn a_retransmission_is_lost_when_something_sent_after_it_arrives() {
        let mut rack = sent(4);
        assert_eq!(arrive(&mut rack, &[1, 2, 3], 0, path(false, 3), 43), [0]);
        rack.on_resent(0, at(43));
        assert_eq!((rack.lost(), rack.next_lost()), (0, None));
        rack.on_sent(at(44));
        assert_eq!(lost(&mut rack, path(true, 3), 83), [0; 0]);
        assert_eq!(arrive(&mut rack, &[4], 0, path(true, 4), 84), [0]);
    }

    #[test]
    fn an_early_ack_of_a_retransmission_may_be_of_its_first_transmission_and_says_nothing() {
        let mut rack = sent(5);
        arrive(&mut rack, &[1, 2, 3], 0, path(false, 3), 43);
        rack.on_resent(0, at(43));
        // 39 ms later, less than the least round trip of 40: 4, sent at 4, is not judged by a segment sent at 43.
        assert_eq!(arrive(&mut rack, &[0], 4, path(true, 0), 82), [0; 0]);
        assert_eq!((rack.newest.unwrap().at, rack.rtt), (at(3), ms(40)));
        let mut rack = sent(5);
        arrive(&mut rack, &[1, 2, 3], 0, path(false, 3), 43);
        rack.on_resent(0, at(43));
        assert_eq!(arrive(&mut rack, &[0], 4, path(true, 0), 83), [4]);
        assert!(!rack.is_reordered, "it was sent again");
    }

    #[test]
    fn a_duplicate_widens_the_window_once_a_round_and_sixteen_recoveries_end_that() {
        let mut rack = sent(10);
        let widths = [(1, 10, true), (2, 11, true), (3, 12, false), (10, 20, true), (15, 30, true)].map(
            |(acked, sent, duplicate)| {
                rack.on_ack(acked, sent, duplicate, at(50));
                rack.multiplier
            },
        );
        assert_eq!(widths, [2, 2, 2, 3, 3]);
        (0..15).for_each(|_| rack.on_recovery_end());
        assert_eq!(rack.multiplier, 3);
        rack.on_recovery_end();
        assert_eq!(rack.multiplier, 1);
    }

    #[test]
    fn a_timeout_gives_up_the_first_segment_and_those_sent_long_ago() {
        let mut rack = sent(2);
        rack.on_sent(at(300));
        rack.on_sent(at(301));
        rack.rtt = ms(40);
        let mut named = Vec::new();
        rack.on_timeout(at(340), |sequence| named.push(sequence));
        assert_eq!(named, [0, 1, 2], "301 + 40 is later");
        assert_eq!((rack.lost(), rack.next_lost()), (3, Some(0)));
        let mut rack = sent(2);
        rack.rtt = ms(400);
        rack.on_timeout(at(300), |_| ());
        assert_eq!(rack.lost(), 1, "the first, whatever the time");
    }

    #[test]
    fn a_probe_is_sent_once_and_only_with_a_round_trip_measured_since_the_last() {
        let mut rack = sent(3);
        rack.arm_probe(timer(None), at(2));
        assert_eq!(rack.wake(), at(1002));
        assert!(!rack.takes_probe(at(1002)), "no round trip is known");
        arrive(&mut rack, &[0], 1, path(false, 0), 40);
        rack.arm_probe(timer(Some(ms(40))), at(40));
        assert!(!rack.takes_probe(at(119)) && rack.takes_probe(at(120)) && !rack.takes_probe(at(200)));
        rack.on_probe(3, true);
        rack.arm_probe(timer(Some(ms(40))), at(200));
        assert!(!rack.takes_probe(at(280)), "one is unanswered");
    }

    #[test]
    fn an_ack_beyond_the_probe_says_that_it_repaired_a_loss_unless_it_arrived_twice() {
        let answer =
            |expected, duplicate, is_pure_duplicate| ProbeAnswer { expected, duplicate, is_pure_duplicate };
        let after = |again, acks: &[ProbeAnswer]| {
            let mut rack = Rack::new(0, false, false);
            rack.on_probe(10, again);
            let repaired =
                acks.iter().map(|&ack| rack.has_repaired(ack)).filter(|repaired| *repaired).count();
            (repaired, rack.probe.is_some())
        };
        assert_eq!(after(true, &[answer(9, None, false), answer(10, None, false)]), (0, true), "still open");
        assert_eq!(after(true, &[answer(10, None, false), answer(12, None, false)]), (1, false));
        assert_eq!(after(true, &[answer(10, Some(9), false), answer(12, None, false)]), (0, false));
        assert_eq!(after(true, &[answer(10, None, true), answer(12, None, false)]), (0, false));
        assert_eq!(after(false, &[answer(12, None, false), answer(14, None, false)]), (0, false), "new data");
    }
}

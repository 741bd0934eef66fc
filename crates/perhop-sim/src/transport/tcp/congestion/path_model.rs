//! What both versions of BBR know of a path: rounds, recent maxima, a full pipe, aggregated ACKs.

use perhop_core::{Bitrate, Bytes, Instant};

use super::{AckSample, DeliverySample, Setup};

/// Round trips counted by packets (draft-ietf-ccwg-bbr-06, section 5.5.1).
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// The ACK at hand begins one.
    pub(super) starts: bool,
    /// Segments delivered so far: `C.delivered`.
    pub(super) delivered: u64,
    ends: u64,
}

impl Rounds {
    /// An ACK came, with this sample if it delivered anything.
    pub(super) fn take(&mut self, sample: Option<&DeliverySample>) {
        self.starts = false;
        let Some(sample) = sample else { return };
        self.delivered = sample.prior + sample.delivered;
        if sample.prior >= self.ends {
            self.starts = true;
            self.count += 1;
            self.restart();
        }
    }

    /// A round trip begins now.
    pub(super) fn restart(&mut self) {
        self.ends = self.delivered;
    }
}

/// The greatest value of the last `N` rounds or cycles. It is exact; Linux keeps the three best of them.
#[derive(Clone, Debug)]
pub(super) struct RecentMax<const N: usize> {
    /// The greatest of each round, at its number mod `N`.
    values: [f64; N],
    round: u64,
    /// The greatest of all: asked for far more often than rounds end.
    greatest: f64,
}

impl<const N: usize> Default for RecentMax<N> {
    fn default() -> Self {
        Self { values: [0.0; N], round: 0, greatest: 0.0 }
    }
}

impl<const N: usize> RecentMax<N> {
    /// A value of a round, which is no earlier than the last one.
    pub(super) fn take(&mut self, round: u64, value: f64) {
        self.advance(round);
        let slot = &mut self.values[(round % N as u64) as usize];
        *slot = max(*slot, value);
        self.greatest = max(self.greatest, *slot);
    }

    pub(super) fn advance(&mut self, round: u64) {
        if round == self.round {
            return;
        }
        let first = (self.round + 1).max((round + 1).saturating_sub(N as u64));
        for passed in first..=round {
            self.values[(passed % N as u64) as usize] = 0.0;
        }
        self.round = round;
        self.greatest = self.values.iter().copied().fold(0.0, f64::max);
    }

    /// None of them counts any more.
    fn forget(&mut self) {
        (self.values, self.greatest) = ([0.0; N], 0.0);
    }

    /// The greatest of all of them.
    pub(super) fn get(&self) -> f64 {
        self.greatest
    }
}

/// The delivery rate no longer grows: the pipe is full (draft-ietf-ccwg-bbr-06, section 5.3.1.2).
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// `full_bw`, and the rounds without growth since.
    pub(super) rate: f64,
    pub(super) stalled: u32,
}

impl FullPipe {
    /// The rate of one more round; says whether the pipe is full.
    pub(super) fn is_full_at(&mut self, rate: f64) -> bool {
        const GROWTH: f64 = 1.25;
        const ROUNDS: u32 = 3;
        if rate >= self.rate * GROWTH {
            *self = Self { rate, stalled: 0 };
        } else {
            self.stalled += 1;
        }
        self.stalled >= ROUNDS
    }
}

/// The window and the pacing rate that a model of the path sets. Windows are in segments.
#[derive(Clone, Debug)]
pub(super) struct Output {
    packet: Bytes,
    most: f64,
    /// The greatest window that the sender has set: `InitialCwnd`.
    pub(super) initial: f64,
    pub(super) window: f64,
    /// `prior_cwnd`: the window before a recovery or `ProbeRTT`.
    pub(super) prior_window: f64,
    /// Segments in a second; none before the first round trip is known.
    pacing: Option<f64>,
}

impl Output {
    /// Returns the output of a new connection.
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            packet: setup.packet,
            most: f64::from(setup.most),
            initial: setup.window,
            window: setup.window,
            prior_window: setup.window,
            pacing: None,
        }
    }

    pub(super) fn set_window(&mut self, window: f64) {
        self.initial = self.initial.max(window);
        self.window = window;
    }

    /// Saves the window that is in force where a recovery or `ProbeRTT` begins; `again` if another has not
    /// ended.
    pub(super) fn save_window(&mut self, window: f64, again: bool) {
        self.prior_window = if again { self.prior_window.max(window) } else { window };
    }

    /// Ends the recovery or `ProbeRTT`: the window is at least the saved one again.
    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// Keeps to the receiver's window.
    pub(super) fn limit_window(&mut self) {
        self.window = min(self.window, self.most);
    }

    /// The model says so many segments in a second, or, while nothing is known yet, the first rate. Until the
    /// pipe is full the rate does not fall.
    pub(super) fn pace(&mut self, rate: f64, first: impl FnOnce() -> Option<f64>, is_full: bool) {
        let Some(pacing) = self.pacing.or_else(first) else { return };
        self.pacing = Some(if is_full { rate } else { rate.max(pacing) });
    }

    pub(super) fn pacing_rate(&self) -> Option<Bitrate> {
        bitrate(self.pacing?, self.packet)
    }
}

/// Samples that say too little of the path, since `ProbeRTT` kept them few, or since the application did.
#[derive(Clone, Debug)]
pub(super) struct Limited {
    /// Samples of segments that were sent after `from` segments had been delivered and before `to` had.
    from: u64,
    to: u64,
}

impl Default for Limited {
    /// Returns an empty set.
    fn default() -> Self {
        Self { from: u64::MAX, to: 0 }
    }
}

impl Limited {
    /// Limits the samples of segments that are sent from now on, when `delivered` segments have been.
    pub(super) fn begin(&mut self, delivered: u64) {
        self.from = delivered;
    }

    /// Limits the samples of all segments sent by now, when `delivered` have been and `pipe` are in the
    /// network.
    pub(super) fn extend(&mut self, delivered: u64, pipe: u32) {
        self.to = delivered + u64::from(pipe);
    }

    /// Returns whether the sample says too little of the path, since the sender had not enough to send.
    pub(super) fn contains(&self, sample: &DeliverySample) -> bool {
        sample.limited || (self.from..=self.to).contains(&sample.prior)
    }
}

/// The excess of what ACKs report over what the path delivers (draft-ietf-ccwg-bbr-06, section 5.5.9).
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    since: Instant,
    acked: f64,
    extra: RecentMax<10>,
}

impl Aggregation {
    /// An ACK came in this round, while the path was thought to deliver `rate` and this window was in force.
    pub(super) fn take(&mut self, ack: &AckSample, rate: f64, window: f64, round: u64) {
        let mut expected = rate * ack.now.since(self.since).as_secs_f64();
        if self.acked <= expected {
            (self.acked, self.since, expected) = (0.0, ack.now, 0.0);
        }
        self.acked += f64::from(ack.delivered);
        self.extra.take(round, min(self.acked - expected, window));
    }

    /// Forgets all that came before this round.
    pub(super) fn forget(&mut self) {
        self.extra.forget();
    }

    /// The most of the last ten rounds.
    pub(super) fn extra(&self) -> f64 {
        self.extra.get()
    }
}

/// Segments delivered in a second; none from an interval that no round trip can have (section 4.1.3.5).
pub(super) fn rate_of(sample: &DeliverySample, min_rtt: f64) -> Option<f64> {
    let interval = sample.interval.as_secs_f64();
    (interval > 0.0 && (min_rtt == f64::INFINITY || interval >= min_rtt))
        .then(|| sample.delivered as f64 / interval)
}

/// The least whole number of segments that is not below this one, which is not negative: without a call to
/// the mathematical library, which `f64::ceil` is on processors that need not have the instruction.
#[inline]
pub(super) fn ceil(segments: f64) -> f64 {
    let whole = floor(segments);
    if whole < segments { whole + 1.0 } else { whole }
}

/// The greatest that is not above it.
#[inline]
pub(super) fn floor(segments: f64) -> f64 {
    debug_assert!((0.0..=(1_u64 << 53) as f64).contains(&segments), "{segments}");
    segments as i64 as f64
}

/// The greater of two numbers, neither of which is NaN: `f64::max` takes longer, to handle it.
#[inline]
pub(super) fn max(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The smaller of two numbers, neither of which is NaN.
#[inline]
pub(super) fn min(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

/// So many full segments in a second.
pub(in crate::transport::tcp) fn bitrate(segments: f64, packet: Bytes) -> Option<Bitrate> {
    Bitrate::from_bps((segments * packet.bits() as f64).max(1.0) as u64).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::ack;
    use super::*;
    use perhop_core::Duration;

    #[test]
    fn the_pipe_is_full_after_three_rounds_without_growth_by_a_quarter() {
        let mut pipe = FullPipe::default();
        let rates = [10.0, 20.0, 40.0, 80.0, 95.0, 100.0, 100.0, 100.0, 100.0];
        let full = rates.map(|rate| pipe.is_full_at(rate));
        // 100 is 1.25 times 80 and starts the count anew.
        assert_eq!(full, [false, false, false, false, false, false, false, false, true]);
        assert_eq!(pipe.rate, 100.0);
    }

    #[test]
    fn a_recent_maximum_is_forgotten_after_its_rounds() {
        let mut recent = RecentMax::<3>::default();
        let mut seen = Vec::new();
        for (round, value) in [(0, 5.0), (1, 3.0), (2, 4.0), (3, 1.0), (4, 1.0), (5, 1.0), (9, 0.5)] {
            recent.take(round, value);
            seen.push(recent.get());
        }
        assert_eq!(seen, [5.0, 5.0, 5.0, 4.0, 4.0, 1.0, 0.5]);
    }

    #[test]
    fn a_rate_is_what_was_delivered_by_the_interval_and_none_below_the_least_round_trip() {
        let sample = DeliverySample {
            delivered: 15,
            prior: 20,
            interval: Duration::from_millis(30),
            rtt: None,
            round: 1,
            lost: 0,
            in_flight: 0,
            limited: false,
        };
        let rate = rate_of(&sample, 0.028).unwrap();
        assert_eq!(bitrate(rate, Bytes::new(1500)).unwrap().as_bps(), 6_000_000);
        assert_eq!(rate_of(&sample, 0.031), None);
    }

    #[test]
    fn aggregation_is_what_comes_beyond_the_rate_in_an_episode() {
        // 1000 segments a second; 20 at once after 10 ms of silence, which 10 of them make up for.
        let mut aggregation = Aggregation::default();
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        aggregation.take(&AckSample { now: at(100), ..ack(5) }, 1000.0, 100.0, 1);
        assert_eq!(aggregation.extra(), 5.0);
        aggregation.take(&AckSample { now: at(102), ..ack(20) }, 1000.0, 100.0, 1);
        assert_eq!(aggregation.extra(), 23.0);
        aggregation.take(&AckSample { now: at(150), ..ack(3) }, 1000.0, 100.0, 11);
        assert_eq!(aggregation.extra(), 3.0, "the episode is over, and its round is forgotten");
    }

    #[test]
    fn rounds_begin_with_the_ack_of_what_was_sent_after_the_last_one_began() {
        let sample = |prior, delivered| DeliverySample {
            delivered,
            prior,
            interval: Duration::from_millis(1),
            rtt: None,
            round: 0,
            lost: 0,
            in_flight: 0,
            limited: false,
        };
        let mut rounds = Rounds::default();
        let starts = [(0, 1), (0, 2), (1, 3), (2, 4), (4, 3)].map(|(prior, delivered)| {
            rounds.take(Some(&sample(prior, delivered)));
            rounds.starts
        });
        assert_eq!((starts, rounds.count), ([true, false, true, false, true], 3));
        rounds.take(None);
        assert!(!rounds.starts);
    }
}

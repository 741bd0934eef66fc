//! BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00, and Linux's `tcp_bbr.c`, where they
//! differ.

use perhop_core::{Bitrate, Block, Duration, Instant, Origin, Rng};

use super::path_model::{
    Aggregation, FullPipe, Limited, Output, RecentMax, Rounds, ceil, floor, min, rate_of,
};
use super::{
    AckSample, Algorithm, CongestionControl, CongestionEvent, DeliverySample, Needs, NoParams, Setup,
};

/// 2/ln 2 in Linux's 256ths: the least gain at which the rate doubles in each round.
const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// `ProbeBW`'s gains, each for a round trip; the window's.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WINDOW_GAIN: f64 = 2.0;
const MIN_WINDOW: f64 = 4.0;
/// The time for which the least round trip is believed, and the time for which the queue is drained to
/// measure it anew.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
const PROBE_RTT_LASTS: Duration = Duration::from_millis(200);
/// Aggregated ACKs raise the window by no more than what the path delivers in this time.
const MOST_AGGREGATION: f64 = 0.1;
/// Pacing is a little slower than the estimate.
const PACING: f64 = 0.99;
/// Segments that offloads keep at hosts, of one segment each here.
const OFFLOAD: f64 = 3.0;

/// Sends at the rate that the path delivers, with twice its bandwidth-delay product in flight.
///
/// ## Deviations
/// - The maximum of the delivery rate is exact over ten rounds.
/// - Linux's detector of policers (`lt_bw`), which the draft does not have, is left out.
/// - Segments leave one by one, so the allowance for offloads is three segments.
/// - After an idle time it goes on at the rate of its phase, not at the estimated one (section 4.3.5 of the
///   draft).
/// - Marks (ECN) change nothing, as on Linux: the flow's key `ecn` is refused.
/// - Without `sack` what has left the network during a recovery is known at its end.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
#[derive(Clone, Debug)]
pub struct Bbr {
    output: Output,
    mode: Mode,
    /// The place in the cycle of gains, and when it was reached.
    place: usize,
    phase_began: Instant,
    rounds: Rounds,
    rate: RecentMax<10>,
    pipe: FullPipe,
    is_full: bool,
    aggregation: Aggregation,
    min_rtt: f64,
    min_rtt_at: Instant,
    /// `ProbeRTT`: when it may end, and whether a round has passed.
    drained: Option<Instant>,
    drained_a_round: bool,
    limited: Limited,
    recovering: bool,
    conserves: bool,
    /// `BBR.idle_restart`.
    was_idle: bool,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

impl Block for Bbr {
    type Params = NoParams;
    const NAME: &'static str = "bbr";
    const SUMMARY: &'static str =
        "Version 1: paced at the rate that the path delivers, twice its bandwidth-delay product in flight";
    const ORIGIN: Origin =
        Origin::published(2016, "draft-cardwell-iccrg-bbr-congestion-control-00, and Linux")
            .in_linux("bbr", "4.9");
}

impl Algorithm for Bbr {
    const SLOW_START: bool = false;
    const NEEDS: Needs = Needs { delivery: true, pacing: true, recovery: true, ..Needs::NOTHING };
    const ANSWERS_MARKS: bool = false;

    fn new(setup: &Setup, _: &NoParams) -> Self {
        Self {
            output: Output::new(setup),
            mode: Mode::Startup,
            place: 0,
            phase_began: Instant::ZERO,
            rounds: Rounds::default(),
            rate: RecentMax::default(),
            pipe: FullPipe::default(),
            is_full: false,
            aggregation: Aggregation::default(),
            min_rtt: f64::INFINITY,
            min_rtt_at: Instant::ZERO,
            drained: None,
            drained_a_round: false,
            limited: Limited::default(),
            recovering: false,
            conserves: false,
            was_idle: false,
            rng: Rng::stream(setup.seed, "bbr"),
        }
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, ack: &AckSample) {
        self.update_rate(ack.delivery.as_ref());
        if ack.delivered > 0 {
            self.aggregation.take(ack, self.rate.get(), self.output.window, self.rounds.count);
        }
        self.update_phase(ack);
        self.check_full_pipe(ack.delivery.as_ref());
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.was_idle &= ack.delivered == 0;
        self.set_pacing(ack);
        self.set_window_by_model(ack);
    }

    /// A recovery begins with a round of packet conservation.
    fn on_loss(&mut self, event: &CongestionEvent) {
        self.save_window(event.window);
        self.conserves = true;
        self.recovering = true;
        self.rounds.restart();
        self.output.window = MIN_WINDOW.min(self.output.window);
    }

    fn on_congestion_experienced(&mut self, _: &CongestionEvent) {}

    /// The first ACK after it does not begin `ProbeRTT`: the queue was drained meanwhile.
    fn on_idle(&mut self, _: Duration) {
        self.was_idle = true;
    }

    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.save_window(event.window);
        self.pipe = FullPipe::default();
        self.conserves = false;
        self.recovering = true;
        self.output.window = 1.0;
    }

    fn window(&self) -> f64 {
        self.output.window
    }

    fn set_window(&mut self, window: f64) {
        self.output.set_window(window);
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.output.pacing_rate()
    }
}

impl Bbr {
    fn update_rate(&mut self, sample: Option<&DeliverySample>) {
        self.rounds.take(sample);
        if self.rounds.starts {
            self.conserves = false;
        }
        let Some(sample) = sample else { return };
        let Some(rate) = rate_of(sample, self.min_rtt) else { return };
        if !self.limited.contains(sample) || rate >= self.rate.get() {
            self.rate.take(self.rounds.count, rate);
        }
    }

    /// `ProbeBW` goes on when a phase has lasted a round trip: one of more than the rate only if it has
    /// filled the pipe or lost packets, one of less already when the queue is gone.
    fn update_phase(&mut self, ack: &AckSample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let is_over = ack.now.since(self.phase_began).as_secs_f64() > self.min_rtt;
        let before = f64::from(ack.pipe + ack.delivered + ack.lost);
        let gain = CYCLE[self.place];
        let goes_on = if gain > 1.0 {
            is_over && (ack.lost > 0 || before >= self.inflight(gain))
        } else if gain < 1.0 {
            is_over || before <= self.inflight(1.0)
        } else {
            is_over
        };
        if goes_on {
            self.begin_phase(self.place + 1, ack.now);
        }
    }

    fn begin_phase(&mut self, place: usize, now: Instant) {
        self.place = place % CYCLE.len();
        self.phase_began = now;
    }

    fn check_full_pipe(&mut self, sample: Option<&DeliverySample>) {
        if !self.is_full && self.rounds.starts && !sample.is_some_and(|sample| self.limited.contains(sample))
        {
            self.is_full = self.pipe.is_full_at(self.rate.get());
        }
    }

    fn check_drain(&mut self, ack: &AckSample) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && f64::from(ack.pipe) <= self.inflight(1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Begins with any phase but that of less than the rate, by chance.
    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        let back = self.rng.up_to(CYCLE.len() as u64 - 2) as usize;
        self.begin_phase(CYCLE.len() - back, now);
    }

    fn update_min_rtt(&mut self, ack: &AckSample) {
        let expired = ack.now > self.min_rtt_at + MIN_RTT_LASTS;
        if let Some(rtt) = ack.delivery.and_then(|sample| sample.rtt)
            && (rtt.as_secs_f64() < self.min_rtt || expired)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt.as_secs_f64(), ack.now);
        }
        if expired && self.mode != Mode::ProbeRtt && !self.was_idle {
            self.save_window(self.output.window);
            self.mode = Mode::ProbeRtt;
            self.drained = None;
            self.limited.begin(self.rounds.delivered);
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(ack);
        }
    }

    fn probe_rtt(&mut self, ack: &AckSample) {
        self.limited.extend(self.rounds.delivered, ack.pipe);
        let Some(ends) = self.drained else {
            if f64::from(ack.pipe) <= MIN_WINDOW {
                self.drained = Some(ack.now + PROBE_RTT_LASTS);
                self.drained_a_round = false;
                self.rounds.restart();
            }
            return;
        };
        self.drained_a_round |= self.rounds.starts;
        if self.drained_a_round && ack.now > ends {
            self.min_rtt_at = ack.now;
            self.output.restore_window();
            if self.is_full { self.enter_probe_bw(ack.now) } else { self.mode = Mode::Startup }
        }
    }

    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw => (CYCLE[self.place], WINDOW_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    /// The first rate is that of the initial window in a round trip.
    fn set_pacing(&mut self, ack: &AckSample) {
        let rate = self.rate.get() * self.gains().0 * PACING;
        let initial = self.output.initial;
        let first = || (ack.smoothed_rtt > 0.0).then(|| initial / ack.smoothed_rtt * HIGH_GAIN * PACING);
        self.output.pace(rate, first, self.is_full);
    }

    fn set_window_by_model(&mut self, ack: &AckSample) {
        let acked = f64::from(ack.delivered);
        if ack.delivered > 0 && !self.window_in_recovery(ack) {
            let target = self.target();
            if self.is_full {
                self.output.window = min(self.output.window + acked, target);
            } else if self.output.window < target || (self.rounds.delivered as f64) < self.output.initial {
                self.output.window += acked;
            }
            self.output.window = self.output.window.max(MIN_WINDOW);
        }
        if self.mode == Mode::ProbeRtt {
            self.output.window = self.output.window.min(MIN_WINDOW);
        }
        self.output.limit_window();
    }

    /// An ACK lets out no more than twice what it reports, in the first round of a recovery no more than
    /// that. Says whether this has decided.
    fn window_in_recovery(&mut self, ack: &AckSample) -> bool {
        self.output.window = (self.output.window - f64::from(ack.lost)).max(1.0);
        if self.recovering && !ack.recovering {
            self.recovering = false;
            self.conserves = false;
            self.output.restore_window();
        }
        if self.conserves {
            self.output.window = self.output.window.max(f64::from(ack.pipe + ack.delivered));
        }
        self.conserves
    }

    fn save_window(&mut self, window: f64) {
        self.output.save_window(window, self.recovering || self.mode == Mode::ProbeRtt);
    }

    /// As many segments as fill the pipe so many times.
    fn inflight(&self, gain: f64) -> f64 {
        if self.min_rtt == f64::INFINITY {
            return self.output.initial;
        }
        self.with_allowance(ceil(self.rate.get() * self.min_rtt * gain))
    }

    fn target(&self) -> f64 {
        let rate = self.rate.get();
        let extra = if self.is_full { min(self.aggregation.extra(), rate * MOST_AGGREGATION) } else { 0.0 };
        if self.min_rtt == f64::INFINITY {
            return self.output.initial;
        }
        self.with_allowance(ceil(rate * self.min_rtt * self.gains().1) + floor(extra))
    }

    /// Adds the allowance for offloads and delayed ACKs, and rounds up to an even number.
    fn with_allowance(&self, segments: f64) -> f64 {
        let even = 2.0 * ceil(0.5 * (segments + OFFLOAD));
        even + if self.mode == Mode::ProbeBw && self.place == 0 { 2.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Path, ack, begin, loss, setup};
    use super::*;
    use perhop_core::Bytes;

    fn bbr(seed: u64) -> Bbr {
        begin::<Bbr>(&Setup { packet: Bytes::new(1500), seed, ..setup() })
    }

    #[test]
    fn the_first_rate_is_the_initial_window_in_a_round_trip_times_the_gain() {
        let mut bbr = bbr(1);
        assert_eq!(bbr.pacing_rate(), None);
        bbr.on_ack(&AckSample { smoothed_rtt: 0.04, ..ack(1) });
        assert_eq!(bbr.pacing_rate().unwrap().as_bps(), 8_573_554);
    }

    #[test]
    fn startup_fills_the_pipe_drains_it_and_then_cycles_about_the_rate() {
        // 50 Mbit/s and 40 ms: 166.67 segments.
        let mut path = Path::new(bbr(1), 50e6, 0.04);
        path.run_until(|bbr| bbr.mode == Mode::Drain);
        assert!((path.control.rate.get() / (50e6 / 12_000.0) - 1.0).abs() < 0.02);
        assert_eq!(path.control.gains(), (DRAIN_GAIN, HIGH_GAIN));
        path.run_until(|bbr| bbr.mode == Mode::ProbeBw);
        let bdp = 50e6 * 0.04 / 12_000.0;
        assert!((path.control.inflight(1.0) - bdp).abs() < 8.0);
        let mut seen = std::collections::BTreeSet::new();
        path.run_for(1.0, |bbr| {
            seen.insert((bbr.gains().0 * 100.0) as u32);
        });
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [75, 100, 125]);
        assert!(path.control.window() <= 2.0 * bdp + path.control.aggregation.extra() + 8.0);
    }

    #[test]
    fn the_cycle_begins_anywhere_but_with_less_than_the_rate() {
        let places: std::collections::BTreeSet<_> = (0..200)
            .map(|seed| {
                let mut bbr = bbr(seed);
                bbr.enter_probe_bw(Instant::ZERO);
                bbr.place
            })
            .collect();
        assert_eq!(places.into_iter().collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn after_ten_seconds_without_a_lower_round_trip_four_segments_for_200_ms_and_back() {
        let mut path = Path::new(bbr(1), 20e6, 0.04);
        path.run_until(|bbr| bbr.mode == Mode::ProbeBw);
        let rate = path.control.rate.get();
        path.run_until(|bbr| bbr.mode == Mode::ProbeRtt);
        assert!(path.seconds() > 9.9);
        assert_eq!(path.control.window(), MIN_WINDOW);
        let began = path.seconds();
        path.run_until(|bbr| bbr.mode == Mode::ProbeBw);
        let lasted = path.seconds() - began;
        assert!((0.2..0.45).contains(&lasted), "{lasted}");
        assert!((path.control.rate.get() / rate - 1.0).abs() < 0.02, "its samples do not count");
        assert!(path.control.window() > 60.0, "the window is restored");
    }

    #[test]
    fn the_first_ack_after_an_idle_time_does_not_begin_probe_rtt() {
        for (idles, modes) in
            [(true, [Mode::ProbeBw, Mode::ProbeRtt]), (false, [Mode::ProbeRtt, Mode::ProbeRtt])]
        {
            let mut bbr = bbr(1);
            (bbr.mode, bbr.is_full, bbr.min_rtt) = (Mode::ProbeBw, true, 0.04);
            if idles {
                bbr.on_idle(Duration::from_secs(11));
            }
            let seen = [11, 12].map(|seconds| {
                bbr.on_ack(&AckSample {
                    now: Instant::ZERO + Duration::from_secs(seconds),
                    pipe: 9,
                    ..ack(1)
                });
                bbr.mode
            });
            assert_eq!(seen, modes);
        }
    }

    #[test]
    fn a_recovery_conserves_packets_for_a_round_and_then_restores_the_window() {
        let mut bbr = bbr(1);
        bbr.set_window(40.0);
        bbr.on_loss(&loss(40.0));
        bbr.on_ack(&AckSample { lost: 1, pipe: 30, recovering: true, ..ack(2) });
        assert_eq!(bbr.window(), 32.0);
        bbr.on_ack(&AckSample { pipe: 31, ..ack(1) });
        assert!(bbr.window() >= 40.0 && !bbr.recovering);
        bbr.on_timeout(&loss(40.0));
        assert_eq!((bbr.window(), bbr.output.prior_window), (1.0, 40.0));
    }
}

//! `HyStart`++ (RFC 9406, section 4): it ends the first slow start when round trips grow, before losses.

use perhop_core::{Duration, Instant};

use super::TcpSender;
use super::hystart::{LinuxHyStart, growth_allowed};
use crate::transport::tcp::congestion::CongestionControl;
use crate::transport::tcp::{SlowStart, TcpParams};

/// `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`, `CSS_ROUNDS`.
const CONSERVATIVE_DIVISOR: f64 = 4.0;
const CONSERVATIVE_ROUNDS: u32 = 5;
/// L: an ACK raises the window by no more, unless segments are paced.
const MOST_INCREASE: f64 = 8.0;

/// What ends the first slow start besides losses.
#[derive(Clone, Debug)]
pub(super) enum EarlyExit {
    PlusPlus(HyStart),
    Linux(LinuxHyStart),
}

impl EarlyExit {
    /// Makes what these parameters ask for, if they do. The first round ends with the ACK of segment
    /// `first_round` - 1.
    pub(super) fn new(params: &TcpParams, first_round: u32) -> Option<Self> {
        if params.has_hystart() {
            return Some(Self::Linux(LinuxHyStart::new(params.is_paced())));
        }
        match params.slow_start? {
            SlowStart::Standard => None,
            SlowStart::HystartPlusPlus => Some(Self::PlusPlus(HyStart::new(first_round, params.is_paced()))),
        }
    }
}

/// The state of the first slow start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HyStart {
    phase: Phase,
    /// `windowEnd`: a round ends with the ACK of what had been sent when it began.
    ends: u32,
    /// `lastRoundMinRTT`, `currentRoundMinRTT`, `rttSampleCount`.
    last: Option<Duration>,
    current: Option<Duration>,
    samples: u32,
    most_increase: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    SlowStart,
    /// Conservative Slow Start: the round trip that ended slow start (`cssBaselineMinRtt`), and its rounds.
    Conservative {
        base: Duration,
        rounds: u32,
    },
    Over,
}

impl HyStart {
    /// Makes the state of a slow start whose first round ends with the ACK of segment `first_round` - 1.
    pub(super) fn new(first_round: u32, is_paced: bool) -> Self {
        Self {
            phase: Phase::SlowStart,
            ends: first_round,
            last: None,
            current: None,
            samples: 0,
            most_increase: if is_paced { f64::INFINITY } else { MOST_INCREASE },
        }
    }

    /// Returns how much of the growth of slow start an ACK is to have.
    fn growth(&self, segments: f64) -> f64 {
        let limited = segments.min(self.most_increase);
        if let Phase::Conservative { .. } = self.phase { limited / CONSERVATIVE_DIVISOR } else { limited }
    }

    /// Takes an ACK that asks for `acked`, with this sample of the round trip; `sent` is the first segment
    /// not sent. Returns whether slow start is over.
    fn on_ack(&mut self, rtt: Option<Duration>, acked: u32, sent: u32) -> bool {
        if let Some(rtt) = rtt {
            self.samples += 1;
            self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
            self.judge();
        }
        if acked >= self.ends {
            self.end_round(sent);
        }
        self.phase == Phase::Over
    }

    fn judge(&mut self) {
        let Some(current) = self.current.filter(|_| self.samples >= SAMPLES) else { return };
        match (self.phase, self.last) {
            (Phase::SlowStart, Some(last)) if current >= last + growth_allowed(last) => {
                self.phase = Phase::Conservative { base: current, rounds: 0 };
            }
            (Phase::Conservative { base, .. }, _) if current < base => self.phase = Phase::SlowStart,
            _ => {}
        }
    }

    fn end_round(&mut self, sent: u32) {
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CONSERVATIVE_ROUNDS {
                self.phase = Phase::Over;
            }
        }
        self.ends = sent;
        (self.last, self.current, self.samples) = (self.current, None, 0);
    }
}

impl TcpSender {
    /// Passes an ACK of new data to the congestion control; in the first slow start `HyStart` may limit its
    /// growth, or end it.
    #[cold]
    pub(super) fn report_ack_with_notes(&mut self, delivered: u32, now: Instant) {
        self.cold.gap = None;
        if self.is_held() {
            // It hears of marks, and counts them.
            let window = self.control.window();
            self.report_ack(delivered, now);
            self.control.set_window(window);
            return;
        }
        match self.cold.early_exit.as_deref() {
            None => _ = self.report_ack(delivered, now),
            Some(EarlyExit::PlusPlus(_)) => self.grow_by_hystart_plus_plus(delivered, now),
            Some(EarlyExit::Linux(_)) => self.grow_by_linux_hystart(delivered, now),
        }
    }

    /// Reports an ACK as Linux does, which looks at it before the window grows by it.
    fn grow_by_linux_hystart(&mut self, delivered: u32, now: Instant) {
        let (acked, next) = (self.acked, self.next);
        let rtt = self.cold.delivery.as_mut().and_then(|delivery| delivery.sample(acked, now)?.rtt);
        let window = self.control.window();
        if let Some(EarlyExit::Linux(hystart)) = self.cold.early_exit.as_deref_mut()
            && rtt.is_some_and(|rtt| hystart.is_over(rtt, window, (acked, next), now))
        {
            self.control.leave_slow_start();
        }
        self.report_ack(delivered, now);
        if !self.control.is_in_slow_start() {
            self.end_first_slow_start();
        }
    }

    fn grow_by_hystart_plus_plus(&mut self, delivered: u32, now: Instant) {
        let before = self.control.window();
        let is_slow = self.control.is_in_slow_start();
        self.report_ack(delivered, now);
        let after = self.control.window();
        let (acked, next) = (self.acked, self.next);
        let rtt = self.cold.delivery.as_mut().and_then(|delivery| delivery.sample(acked, now)?.rtt);
        let Some(EarlyExit::PlusPlus(hystart)) = self.cold.early_exit.as_deref_mut() else { return };
        if is_slow && after > before {
            self.control.set_window(before + hystart.growth(after - before));
        }
        if hystart.on_ack(rtt, acked, next) {
            self.control.leave_slow_start();
        }
        if !self.control.is_in_slow_start() {
            self.end_first_slow_start();
        }
    }

    /// Ends the first slow start: what `HyStart` needs is kept no more.
    #[cold]
    pub(super) fn end_first_slow_start(&mut self) {
        if self.cold.early_exit.take().is_none() {
            return;
        }
        let needs = self.cold.params.needs();
        if !needs.delivery {
            self.cold.delivery = None;
        }
        self.note_what_is_needed(needs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The phases after rounds of eight samples each, in µs: `S`low start, `C`onservative, `A`voidance of
    /// congestion.
    fn phases(rounds: &[Vec<u64>]) -> String {
        let mut hystart = HyStart::new(8, false);
        let phase = |round: &Vec<u64>| {
            let end = hystart.ends;
            for (number, micros) in round.iter().enumerate() {
                let acked = end - (round.len() - 1 - number) as u32;
                hystart.on_ack(Some(Duration::from_nanos(micros * 1000)), acked, end + 20);
            }
            match hystart.phase {
                Phase::SlowStart => 'S',
                Phase::Conservative { .. } => 'C',
                Phase::Over => 'A',
            }
        };
        rounds.iter().map(phase).collect()
    }

    fn of_eight(millis: &[u64]) -> Vec<Vec<u64>> {
        millis.iter().map(|millis| vec![millis * 1000; 8]).collect()
    }

    #[test]
    fn growing_round_trips_end_slow_start_after_five_conservative_rounds() {
        assert_eq!(phases(&of_eight(&[40, 41, 47, 48, 48, 48, 49])), "SSCCCCA");
    }

    #[test]
    fn round_trips_that_shrink_again_resume_it() {
        assert_eq!(phases(&of_eight(&[40, 46, 44])), "SCS");
    }

    #[test]
    fn the_minimum_of_eight_samples_decides() {
        let mut rounds = of_eight(&[40, 42]);
        rounds.push([vec![47_000; 7], vec![47_500]].concat());
        assert_eq!(phases(&rounds), "SSS", "it would take 47.25 ms");
        assert_eq!(phases(&[vec![40_000; 8], vec![60_000; 7], vec![61_000; 8]]), "SSS", "seven are too few");
        // A minimum that comes late in the round.
        let shrinking: Vec<u64> = (0..20).map(|n| 200_000 - 9_000 * n).collect();
        assert_eq!(phases(&[vec![30_000; 8], shrinking]).chars().last(), Some('S'));
    }

    #[test]
    fn the_eighth_of_the_longer_round_trips_in_a_round_begins_the_conservative_phase() {
        // 200 ms, and then 240 ms: at the eighth sample, since 240 is no less than 200 + 16. Linux's needs a
        // ninth.
        let mut hystart = HyStart::new(10, false);
        for acked in 1..=10 {
            hystart.on_ack(Some(Duration::from_millis(200)), acked, 10 + 2 * acked);
        }
        let phases = [12, 14, 16, 18, 20, 22, 24, 26].map(|acked| {
            hystart.on_ack(Some(Duration::from_millis(240)), acked, 60);
            hystart.phase == Phase::SlowStart
        });
        assert_eq!(phases, [true, true, true, true, true, true, true, false]);
    }

    #[test]
    fn an_eighth_of_the_round_trip_between_4_and_16_ms_is_growth() {
        let thresholds = [10, 32, 40, 100, 128, 200]
            .map(|millis| growth_allowed(Duration::from_millis(millis)).as_nanos());
        assert_eq!(thresholds.map(|nanos| nanos as f64 / 1e6), [4.0, 4.0, 5.0, 12.5, 16.0, 16.0]);
    }

    #[test]
    fn an_ack_adds_up_to_eight_segments_and_a_quarter_of_that_in_the_conservative_phase() {
        let acks = [1.0; 8].into_iter().chain([2.0; 4]).chain([12.0]);
        let mut hystart = HyStart::new(8, false);
        let grown = acks.clone().map(|segments| hystart.growth(segments)).sum::<f64>();
        hystart.phase = Phase::Conservative { base: Duration::ZERO, rounds: 0 };
        let slowly = acks.map(|segments| hystart.growth(segments)).sum::<f64>();
        assert_eq!((grown, slowly), (24.0, 6.0));
        assert_eq!(HyStart::new(8, true).growth(12.0), 12.0, "paced");
    }
}

//! The proportional-integral controller of PI2 and `DualPI2` (RFC 9332, appendix A.1).
//!
//! At regular intervals the base probability p' moves by alpha times the distance of the queueing delay from
//! its target and by beta times the delay's growth. It is used as it is for scalable congestion controls and
//! squared for those of classic TCP.
use crate::units::{AboveZero, UnitError, require};
use crate::{Duration, Instant};

/// How often a controller catches up with time that has passed unheard, at most; what is older does not
/// matter by then.
const MOST_UPDATES: u64 = 100_000;

/// The controller of one link.
#[derive(Clone, Debug)]
pub struct PiController {
    law: PiLaw,
    target: Duration,
    interval: Duration,
    /// When the next update is due.
    next: Instant,
    /// The delay at the last update.
    previous: Duration,
}

/// The arithmetic of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PiLaw {
    /// RFC 9332: real numbers.
    Exact {
        /// The integral gain in Hz.
        alpha: f64,
        /// The proportional gain in Hz.
        beta: f64,
        /// The base probability p'.
        p: f64,
        /// The largest base probability.
        most: f64,
    },
    /// Linux: gains in steps of 1/256 Hz, rounded when they are stored, and a probability of 32 bits.
    Quantized {
        /// The integral gain, as it is stored.
        alpha: u64,
        /// The proportional gain, as it is stored.
        beta: u64,
        /// The base probability, of 2^32 - 1.
        p: u32,
        /// The largest base probability.
        most: u32,
    },
}

/// The largest gain of a controller in Hz: above it, every change of the delay moves the probability from 0
/// to 1.
const MOST_GAIN: f64 = 1e6;

/// Refuses a gain that is too large, with its key: alpha or beta, as far as they are given.
pub(crate) fn check_gains(alpha: Option<AboveZero>, beta: Option<AboveZero>) -> Result<(), UnitError> {
    for (key, gain) in [("alpha", alpha), ("beta", beta)] {
        let gain = gain.map_or(0.0, AboveZero::get);
        let text = format_args!("a gain is at most 1000000, such as 0.15 or 3, not {gain:e}");
        require(gain <= MOST_GAIN, key, text)?;
    }
    Ok(())
}

/// Refuses a target of the queueing delay that is zero.
pub(crate) fn check_target(target: Duration, usual: &str) -> Result<(), UnitError> {
    let text = format!(
        "a target is longer than 0s, such as {usual}: at 0s the probability would not fall while nothing waits"
    );
    require(!target.is_zero(), "target", text)
}

impl PiLaw {
    /// Makes the controller with these gains in Hz, whose base probability is at most `most`.
    pub fn exact(alpha: f64, beta: f64, most: f64) -> Self {
        Self::Exact { alpha, beta, p: 0.0, most }
    }

    /// Makes the controller with Linux's integer arithmetic.
    pub fn quantized(alpha: f64, beta: f64, most: f64) -> Self {
        let stored = |hz: f64| ((hz * 256.0) as u64).saturating_mul(u64::from(u32::MAX)) / 4 / 1_000_000_000;
        Self::Quantized {
            alpha: stored(alpha),
            beta: stored(beta),
            p: 0,
            most: (f64::from(u32::MAX) * most) as u32,
        }
    }

    fn update(&mut self, delay: Duration, target: Duration, previous: Duration) {
        match self {
            Self::Exact { alpha, beta, p, most } => {
                let [delay, target, previous] = [delay, target, previous].map(Duration::as_secs_f64);
                *p = (*p + *alpha * (delay - target) + *beta * (delay - previous)).clamp(0.0, *most);
            }
            Self::Quantized { alpha, beta, p, most } => {
                let [delay, target, previous] =
                    [delay, target, previous].map(|span| i128::from(span.as_nanos()));
                let moved = (delay - target) * i128::from(*alpha) + (delay - previous) * i128::from(*beta);
                // Both ways it is rounded towards zero.
                let moved = (i128::from(*p) + moved / 64).clamp(0, i128::from(*most));
                *p = u32::try_from(moved).unwrap_or(*most);
            }
        }
    }
}

impl PiController {
    /// A controller at the start of a run; its first update comes after an interval.
    pub fn new(law: PiLaw, target: Duration, interval: Duration) -> Self {
        Self { law, target, interval, next: Instant::ZERO + interval, previous: Duration::ZERO }
    }

    /// Goes on with the probability and the clock of a controller of the same arithmetic.
    pub(crate) fn take_over(&mut self, before: &Self) {
        match (&mut self.law, before.law) {
            (PiLaw::Exact { p, most, .. }, PiLaw::Exact { p: reached, .. }) => {
                *p = reached.min(*most);
            }
            (PiLaw::Quantized { p, most, .. }, PiLaw::Quantized { p: reached, .. }) => {
                *p = reached.min(*most);
            }
            _ => {}
        }
        (self.next, self.previous) = (before.next, before.previous);
    }

    /// The arithmetic with its state.
    pub fn law(&self) -> &PiLaw {
        &self.law
    }

    /// The base probability p'.
    #[inline]
    pub fn p(&self) -> f64 {
        match self.law {
            PiLaw::Exact { p, .. } => p,
            PiLaw::Quantized { p, .. } => f64::from(p) / f64::from(u32::MAX),
        }
    }

    /// The queueing delay at the last update.
    pub fn delay(&self) -> Duration {
        self.previous
    }

    /// Makes up for all updates that are due by `now`. Since the last call the oldest packet that waits has
    /// been the one that came at `oldest`, which is asked for only if one is due: its age is the queueing
    /// delay, which is zero without one.
    #[inline]
    pub fn settle(&mut self, oldest: impl FnOnce() -> Option<Instant>, now: Instant) {
        if self.next <= now {
            self.catch_up(oldest(), now);
        }
    }

    #[cold]
    fn catch_up(&mut self, oldest: Option<Instant>, now: Instant) {
        let due = now.since(self.next).as_nanos() / self.interval.as_nanos();
        for _ in 0..due.min(MOST_UPDATES) {
            let before = (self.law, self.previous);
            self.update(oldest);
            if oldest.is_none() && before == (self.law, self.previous) {
                break; // Nothing changes while nothing waits.
            }
        }
        self.next = self.next
            + self.interval.saturating_mul(now.since(self.next).as_nanos() / self.interval.as_nanos());
        self.update(oldest);
    }

    fn update(&mut self, oldest: Option<Instant>) {
        let delay = oldest.map_or(Duration::ZERO, |arrived| self.next.since(arrived));
        self.law.update(delay, self.target, self.previous);
        self.previous = delay;
        self.next += self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(15);

    /// The base probabilities at these delays, in microseconds.
    fn run(mut law: PiLaw, delays: &[u64]) -> Vec<PiLaw> {
        let mut previous = Duration::ZERO;
        let update = |&micros: &u64| {
            let delay = Duration::from_nanos(micros * 1000);
            law.update(delay, TARGET, previous);
            previous = delay;
            law
        };
        delays.iter().map(update).collect()
    }

    const DELAYS: [u64; 9] = [10_000, 20_000, 30_000, 25_000, 20_000, 15_000, 10_000, 5_000, 0];

    #[test]
    fn updates_are_those_of_rfc_9332() {
        let expected = [0.029_25, 0.06, 0.092_25, 0.078_75, 0.064_5, 0.049_5, 0.033_75, 0.017_25, 0.0];
        for (law, expected) in run(PiLaw::exact(0.15, 3.0, 1.0), &DELAYS).into_iter().zip(expected) {
            let PiLaw::Exact { p, .. } = law else { panic!("{law:?}") };
            assert!((p - expected).abs() <= 1e-15, "{p} {expected}");
        }
    }

    #[test]
    fn updates_are_those_of_linux() {
        let law = PiLaw::quantized(41.0 / 256.0, 819.0 / 256.0, 1.0);
        let PiLaw::Quantized { alpha: 44, beta: 879, p: 0, most: u32::MAX } = law else { panic!("{law:?}") };
        let p = |law| if let PiLaw::Quantized { p, .. } = law { p } else { panic!("{law:?}") };
        let found: Vec<u32> = run(law, &DELAYS).into_iter().map(p).collect();
        let expected = [
            133_906_250,
            274_687_500,
            422_343_750,
            360_546_875,
            295_312_500,
            226_640_625,
            154_531_250,
            78_984_375,
            0,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn small_gains_of_linux_are_stored_too_low() {
        let alpha = |hz| match PiLaw::quantized(hz, 3.0, 1.0) {
            PiLaw::Quantized { alpha, .. } => alpha,
            law @ PiLaw::Exact { .. } => panic!("{law:?}"),
        };
        // 0.05 Hz is 12.8/256; 12 is stored as 12 and acts as 12 x 4e9 / 256 / 2^32 = 0.0437 Hz.
        assert_eq!([0.05, 12.0 / 256.0, 41.0 / 256.0, 0.003].map(alpha), [12, 12, 44, 0]);
    }

    #[test]
    fn probabilities_stay_within_their_bounds() {
        let law = PiLaw::exact(0.15, 3.0, 0.5);
        let PiLaw::Exact { p, .. } = run(law, &[60_000_000])[0] else { panic!("it is exact") };
        assert!((p - 0.5).abs() < 1e-15);
        let law = PiLaw::quantized(0.16, 3.2, 0.5);
        let PiLaw::Quantized { p, .. } = run(law, &[60_000_000])[0] else { panic!("it is quantized") };
        assert_eq!(p, u32::MAX / 2);
    }

    #[test]
    fn updates_that_were_missed_are_made_up_for() {
        let interval = Duration::from_millis(15);
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let new = || PiController::new(PiLaw::exact(0.15, 3.0, 1.0), TARGET, interval);
        let (mut often, mut once) = (new(), new());
        (0..=150).for_each(|n| often.settle(|| Some(at(10)), at(n)));
        once.settle(|| Some(at(10)), at(150));
        assert_eq!((often.law, often.previous, often.next), (once.law, once.previous, once.next));
        // The delays of ten updates were 5, 20 to 140 ms, 57.5 too long on average.
        assert!((often.p() - (0.15 * 10.0 * 0.057_5 + 3.0 * 0.14)).abs() < 1e-12, "{}", often.p());
        for long in [at(1_000_000_000), Instant::NEVER] {
            once.settle(|| None, long);
            assert_eq!((once.p(), once.previous), (0.0, Duration::ZERO));
            assert!(once.next > long || long == Instant::NEVER);
        }
        // A probability falls by 0.15 x 0.015 in each interval without packets.
        let mut idle = often;
        idle.settle(|| None, at(165));
        let first = idle.p();
        idle.settle(|| None, at(180));
        assert!((first - idle.p() - 0.002_25).abs() < 1e-12);
    }
}

//! The retransmission timeout: RFC 6298, sections 2 and 5, on a clock with a tick.

use perhop_core::{Duration, Instant};

use super::{MinRtoBounds, RttArithmetic, TcpParams};

/// The timeout of data after a SYN that was sent again (RFC 6298, section 5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// `kGranularity` (RFC 9002, section 6.1.2): the least variation, and the least time until a packet is lost.
pub(super) const QUIC_GRANULARITY: Duration = Duration::from_millis(1);
/// `kPersistentCongestionThreshold` of RFC 9002, section 7.6.1: so many probe timeouts.
pub(super) const PROBE_TIMEOUTS: u32 = 3;

/// Smoothed round-trip time, its variation, and the timeout they give.
#[derive(Clone, Debug)]
pub struct RtoEstimator {
    tick: u64,
    min: u64,
    max: u64,
    /// The least that is added to the smoothed round trip, in ticks: one, RFC 6298's grain G, or more.
    margin: f64,
    /// The receiver's longest delay of an ACK in ticks, a part of the probe timeout of QUIC; else zero.
    ack_delay: f64,
    /// The timeout is so many times the sum of round trip, variation and delay of ACKs.
    times: f64,
    arithmetic: RttArithmetic,
    /// Round trip and variation in ticks.
    smoothed: Option<(f64, f64)>,
    /// The round trip in seconds, and in whole nanoseconds: asked for far more often than it changes.
    seconds: Option<f64>,
    /// The round trip of data alone, in ticks: that of a SYN, which is smaller, is no part of it.
    of_data: Option<f64>,
    span: Option<Duration>,
    /// Before backoff, in nanoseconds.
    base: u64,
    backoff: u32,
}

impl RtoEstimator {
    /// Makes an estimator without a sample.
    pub fn new(params: &TcpParams) -> Self {
        let tick = params.tick.as_nanos();
        let ticks = |span: Duration| span.as_nanos() as f64 / tick as f64;
        let (margin, ack_delay, times) = match params.min_rto_bounds {
            MinRtoBounds::Timeout => (1.0, 0.0, 1.0),
            MinRtoBounds::Variation => (ticks(params.min_rto).max(1.0), 0.0, 1.0),
            MinRtoBounds::PersistentCongestion => {
                (ticks(QUIC_GRANULARITY).max(1.0), ticks(params.min_rto), f64::from(PROBE_TIMEOUTS))
            }
        };
        let arithmetic = params.rtt_arithmetic;
        Self {
            tick,
            margin,
            ack_delay,
            times,
            arithmetic,
            ..Self::exact(params.initial_rto, params.min_rto, params.max_rto)
        }
    }

    /// Makes an estimator without a sample, on a clock as fine as there is.
    pub fn exact(initial: Duration, min: Duration, max: Duration) -> Self {
        Self {
            tick: 1,
            min: min.as_nanos(),
            max: max.min(Duration::AGES).as_nanos(),
            margin: 1.0,
            ack_delay: 0.0,
            times: 1.0,
            arithmetic: RttArithmetic::Real,
            smoothed: None,
            seconds: None,
            of_data: None,
            span: None,
            base: initial.as_nanos(),
            backoff: 0,
        }
    }

    /// Takes the round trip of a segment sent once (RFC 6298, (2.2) and (2.3)), which ends the backoff.
    pub fn sample(&mut self, sent: Instant, now: Instant) {
        let ticks = self.take(sent, now);
        self.of_data = Some(self.smooth(self.of_data, ticks));
    }

    /// Takes the round trip of a SYN that was sent once.
    pub fn sample_opening(&mut self, sent: Instant, now: Instant) {
        self.take(sent, now);
    }

    /// Begins the data after a SYN that was sent again: with a timeout of 3 s, (5.7), or a longer first one.
    pub fn begin_again(&mut self) {
        self.backoff = 0;
        self.base = self.base.max(AFTER_LOST_SYN.as_nanos());
    }

    /// Takes a sample, and returns it in ticks.
    fn take(&mut self, sent: Instant, now: Instant) -> u64 {
        let ticks = (now.as_nanos() / self.tick - sent.as_nanos() / self.tick).max(1);
        self.backoff = 0;
        let smoothed = self.smooth(self.smoothed.map(|(smoothed, _)| smoothed), ticks);
        match self.arithmetic {
            RttArithmetic::FixedPoint => self.vary_in_fixed_point(smoothed, ticks),
            RttArithmetic::Real => self.vary_in_real_numbers(smoothed, ticks as f64),
        }
        self.seconds = Some(smoothed * self.tick as f64 * 1e-9);
        self.span = Some(Duration::from_nanos((smoothed * self.tick as f64) as u64));
        ticks
    }

    /// Returns a smoothed round trip with one more sample.
    fn smooth(&self, smoothed: Option<f64>, ticks: u64) -> f64 {
        match (smoothed, self.arithmetic) {
            (None, _) => ticks as f64,
            (Some(smoothed), RttArithmetic::Real) => smoothed + (ticks as f64 - smoothed) / 8.0,
            (Some(smoothed), RttArithmetic::FixedPoint) => {
                let eighths = (smoothed * 8.0) as i64;
                (eighths + whole(ticks) - eighths / 8).max(1) as f64 / 8.0
            }
        }
    }

    fn vary_in_real_numbers(&mut self, smoothed: f64, ticks: f64) {
        let variation = match self.smoothed {
            None => ticks / 2.0,
            Some((before, variation)) => variation + ((ticks - before).abs() - variation) / 4.0,
        };
        self.smoothed = Some((smoothed, variation));
        let sum = smoothed + (4.0 * variation).max(self.margin) + self.ack_delay;
        self.base = (self.times * sum * self.tick as f64) as u64;
    }

    /// Updates the variation as Jacobson & Karels 1988, appendix A: the round trip in eighths of a tick, its
    /// variation in quarters.
    fn vary_in_fixed_point(&mut self, smoothed: f64, ticks: u64) {
        let quarters = match self.smoothed {
            None => whole(ticks) * 2,
            Some((before, variation)) => {
                let (eighths, quarters) = ((before * 8.0) as i64, (variation * 4.0) as i64);
                (quarters + (whole(ticks) - eighths / 8).abs() - quarters / 4).max(1)
            }
        };
        self.smoothed = Some((smoothed, quarters as f64 / 4.0));
        let sum = quarters.max(self.margin as i64) + (smoothed * 8.0) as i64 / 8 + self.ack_delay as i64;
        let timeout = sum * self.times as i64;
        self.base = u64::try_from(timeout).unwrap_or(1).saturating_mul(self.tick);
    }

    /// Doubles the timeout, since the timer expired (5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// Returns the timeout now in force.
    #[inline]
    pub fn timeout(&self) -> Duration {
        let backed_off = u128::from(self.base.max(self.min)) << self.backoff;
        Duration::from_nanos(u64::try_from(backed_off).unwrap_or(u64::MAX).min(self.max))
    }

    /// Returns the smoothed round-trip time in seconds.
    pub fn smoothed(&self) -> Option<f64> {
        self.seconds
    }

    /// Returns the smoothed round-trip time of data alone, in seconds.
    pub fn smoothed_of_data(&self) -> Option<f64> {
        self.of_data.map(|ticks| ticks * self.tick as f64 * 1e-9)
    }

    /// Returns the smoothed round-trip time in whole nanoseconds.
    pub fn smoothed_span(&self) -> Option<Duration> {
        self.span
    }
}

/// Ticks for whole eighths and quarters of them.
fn whole(ticks: u64) -> i64 {
    i64::try_from(ticks).unwrap_or(i64::MAX / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(tick: &str) -> RtoEstimator {
        let params = format!(r#"{{"tcp": "reno", "tick": "{tick}"}}"#);
        RtoEstimator::new(&serde_json::from_str(&params).unwrap())
    }

    fn millis(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn rfc_6298_by_hand() {
        let mut rto = estimator("1ms");
        assert_eq!(rto.timeout(), Duration::from_secs(3));
        // First sample 100 ms: SRTT 100, RTTVAR 50, RTO 300 ms.
        rto.sample(millis(0), millis(100));
        assert_eq!(rto.timeout(), Duration::from_millis(300));
        // Then 140 ms: RTTVAR 50 + (40 - 50)/4 = 47.5, SRTT 105, RTO 295 ms.
        rto.sample(millis(0), millis(140));
        assert_eq!(rto.timeout(), Duration::from_millis(295));
        rto.back_off();
        rto.back_off();
        assert_eq!(rto.timeout(), Duration::from_millis(1180));
        (0..40).for_each(|_| rto.back_off());
        assert_eq!(rto.timeout(), Duration::from_secs(60));
        rto.sample(millis(0), millis(105));
        assert!(rto.timeout() < Duration::from_millis(300));
    }

    #[test]
    fn linux_adds_the_minimum_to_the_smoothed_round_trip() {
        let params = r#"{"tcp": "reno", "tick": "1us", "min-rto-bounds": "variation"}"#;
        let mut rto = RtoEstimator::new(&serde_json::from_str(params).unwrap());
        // As above, but where 4 RTTVAR is less than 200 ms: 100 + 200 = 300; 105 + 200 = 305 with 4 x 47.5 =
        // 190 ms.
        rto.sample(millis(0), millis(100));
        assert_eq!(rto.timeout(), Duration::from_millis(300));
        rto.sample(millis(0), millis(140));
        assert_eq!(rto.timeout(), Duration::from_millis(305));
    }

    #[test]
    fn quic_waits_for_three_probe_timeouts() {
        let mut rto = RtoEstimator::new(&serde_json::from_str(r#"{"tcp": "quic"}"#).unwrap());
        assert_eq!(rto.timeout(), Duration::from_millis(999));
        // RFC 9002, section 6.2.1: 100 + 4 x 50 + 25 = 325 ms; then 105 + 4 x 47.5 + 25 = 320 ms.
        rto.sample(millis(0), millis(100));
        assert_eq!(rto.timeout(), Duration::from_millis(975));
        rto.sample(millis(0), millis(140));
        assert_eq!(rto.timeout(), Duration::from_millis(960));
        // A round trip that does not vary: 1 ms, `kGranularity`.
        (0..200).for_each(|_| rto.sample(millis(0), millis(100)));
        assert_eq!(rto.timeout().as_nanos() / 1_000_000, 378);
    }

    #[test]
    fn fixed_point_by_hand() {
        let params = r#"{"tcp": "reno", "tick": "100ms", "rtt-arithmetic": "fixed-point"}"#;
        let mut rto = RtoEstimator::new(&serde_json::from_str(params).unwrap());
        // Two ticks: 16 eighths and 4 quarters; 4 + 16/8 = 6 ticks.
        rto.sample(millis(0), millis(200));
        assert_eq!(rto.timeout(), Duration::from_millis(600));
        // Five: error 5 - 16/8 = 3, 19 eighths and 4 + 3 - 4/4 = 6 quarters; 6 + 19/8, whole: 8 ticks.
        rto.sample(millis(0), millis(500));
        assert_eq!(rto.timeout(), Duration::from_millis(800));
        // One: error 1 - 19/8 = -1, 18 eighths and 6 + 1 - 6/4 = 6 quarters; 8 ticks again.
        rto.sample(millis(0), millis(100));
        assert_eq!(rto.timeout(), Duration::from_millis(800));
        // However long nothing varies: quarters fall to 3, whose fourth is 0. With 15 eighths and less the
        // error is 0.
        (0..50).for_each(|_| rto.sample(millis(0), millis(100)));
        assert_eq!(rto.timeout(), Duration::from_millis(400));
        assert_eq!(rto.smoothed(), Some(0.1875));
    }

    #[test]
    fn a_coarse_tick_sees_ticks_and_the_minimum_holds() {
        let mut rto = estimator("100ms");
        rto.sample(millis(190), millis(230));
        assert_eq!(rto.smoothed(), Some(0.1), "40 ms across one tick boundary count as one tick");
        let mut fine = estimator("1ms");
        (0..60).for_each(|_| fine.sample(millis(0), millis(20)));
        assert_eq!(fine.timeout(), Duration::from_millis(200));
    }
}

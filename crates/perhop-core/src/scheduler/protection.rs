//! Queue protection: RFC 9957, section 4, the algorithm of DOCSIS.
//!
//! A shallow queue stays shallow only if its flows do not build a queue. Queue protection keeps a score of
//! how much each flow adds to the queue while it is long: each packet adds its size times the share of
//! packets that a native AQM would mark at the present delay, and the score falls at a constant rate. While
//! the delay is critical, packets of flows with a high score join the other queue instead.
//!
//! Flows have a bucket each, found by a hash; those that find no bucket free share one. A bucket whose score
//! has fallen to zero is free.
//!
//! ## Deviations
//! - A flow is identified by its number and direction, on a router by its five-tuple, and never by part of a
//!   hash. The salt of the hash is drawn from a random stream.
//! - Scores are real numbers; the pseudocode rounds them to whole nanoseconds.
//! - The delay is the time in which the bytes that wait are sent at the rate of the queue: of `dualpi2` that
//!   of the link, as in the RFC, of a queue of `drr` or `wfq` the rate that it gets while all others have
//!   packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flow_of;
use crate::rng::mixed;
use crate::units::defaults::{millis, number, secs};
use crate::units::{UnitError, fixed, require};
use crate::{Bitrate, Bytes, Duration, Header, Instant, Rng};

/// Parameters of queue protection (RFC 9957). All have defaults: `queue-protection = {}` turns it on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueProtectionParams {
    /// No packet is redirected while the delay of the queue is at most this (`CRITICALqL`).
    #[serde(default = "millis::<1>")]
    pub critical_delay: Duration,
    /// The score of a flow from which its packets are redirected at the critical delay; at a longer delay, in
    /// inverse proportion less (`CRITICALqLSCORE`).
    #[serde(default = "millis::<4>")]
    pub critical_score: Duration,
    /// From this delay on, each packet counts in full (`MAXTH`). From 2^19 ns less on, packets count in part;
    /// but never while less than two frames of 2000 bytes wait.
    #[serde(default = "millis::<1>")]
    pub max_th: Duration,
    /// Scores fall at 2^n bytes per second, with n from 1 to 30 (`LG_AGING`): the score of a flow that causes
    /// less congestion than that does not grow. The default is about 4.2 Mbit/s.
    #[serde(default = "number::<19>")]
    pub aging_exponent: u32,
    /// Scores rise no further, and packets of flows with this score are redirected at any delay
    /// (`MAX_QLSCORE`).
    #[serde(default = "secs::<5>")]
    pub max_score: Duration,
    /// Buckets for flows, a power of 2 up to 16384, besides the one that is shared (`NBUCKETS`).
    #[serde(default = "number::<32>")]
    pub buckets: u32,
    /// In how many places a flow looks for a bucket, from 1 to 4 (ATTEMPTS).
    #[serde(default = "number::<2>")]
    pub attempts: u32,
}

impl QueueProtectionParams {
    /// # Errors
    /// Which value is not possible, with its key.
    pub(super) fn check(&self) -> Result<(), UnitError> {
        let Self { critical_delay, critical_score, max_score, aging_exponent, buckets, attempts, .. } = self;
        let require = |holds, key, text| require(holds, format!("queue-protection.{key}"), text);
        let text = "a critical delay is longer than 0s, such as 1ms";
        require(!critical_delay.is_zero(), "critical-delay", text)?;
        let text = "a critical score is longer than 0s, such as 4ms";
        require(!critical_score.is_zero(), "critical-score", text)?;
        let text = "no score rises above `max-score`: write a critical score below it, such as 4ms";
        require(critical_score <= max_score, "critical-score", text)?;
        let text = "scores fall at 2^1 to 2^30 bytes per second: write 1 to 30, such as 19";
        require((1..=30).contains(aging_exponent), "aging-exponent", text)?;
        let text = "the number of buckets is a power of 2 from 1 to 16384, such as 32";
        require(buckets.is_power_of_two() && *buckets <= 16_384, "buckets", text)?;
        require((1..=4).contains(attempts), "attempts", "there are 1 to 4 attempts, such as 2")
    }
}

/// The range of delays over which packets count in part, in nanoseconds (`LG_RANGE`).
const RANGE: u64 = 1 << 19;

/// The largest frame of DOCSIS: the ramp does not begin below two of them.
const TWO_FRAMES: Bytes = Bytes::new(2 * 2000);

/// The scores of the flows of one queue.
#[derive(Clone, Debug)]
pub(super) struct QueueProtection {
    rate: Bitrate,
    critical_delay: f64,
    /// `CRITICALqLPRODUCT`
    critical_product: f64,
    /// In nanoseconds.
    min_th: u64,
    /// Nanoseconds by which a byte raises a score.
    cost: f64,
    max_score: f64,
    attempts: u32,
    salt: u64,
    /// The last one is shared.
    buckets: Vec<Bucket>,
    redirected: u64,
}

/// The score of a flow.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    flow: Option<u64>,
    /// When the score has fallen to zero, in nanoseconds from the start of the run: the score is what is left
    /// until then (`t_exp`).
    expires: f64,
}

impl QueueProtection {
    /// For a queue that is served at this rate.
    pub(super) fn new(params: &QueueProtectionParams, rate: Bitrate, rng: &mut Rng) -> Self {
        Self::salted(params, rate, rng.next_u64())
    }

    fn salted(params: &QueueProtectionParams, rate: Bitrate, salt: u64) -> Self {
        let nanos = |span: Duration| span.as_nanos() as f64;
        let floor = rate.time_of(TWO_FRAMES).as_nanos();
        Self {
            rate,
            critical_delay: nanos(params.critical_delay),
            critical_product: nanos(params.critical_delay) * nanos(params.critical_score),
            min_th: params.max_th.as_nanos().saturating_sub(RANGE).max(floor),
            cost: (1_u64 << (30 - params.aging_exponent)) as f64,
            max_score: nanos(params.max_score),
            attempts: params.attempts,
            salt,
            buckets: vec![Bucket { flow: None, expires: 0.0 }; params.buckets as usize + 1],
            redirected: 0,
        }
    }

    /// Takes other parameters and another rate from now on, but for the number of buckets; scores stay.
    pub(super) fn retune(&mut self, params: &QueueProtectionParams, rate: Bitrate) -> Result<(), UnitError> {
        if params.buckets as usize + 1 != self.buckets.len() {
            return Err(fixed("queue-protection.buckets"));
        }
        let Self { salt, redirected, .. } = *self;
        let buckets = std::mem::take(&mut self.buckets);
        *self = Self { salt, buckets, redirected, ..Self::salted(params, rate, salt) };
        Ok(())
    }

    /// Whether a packet that arrives is to join the other queue, while this many bytes wait in its own.
    #[inline]
    pub(super) fn redirects(&mut self, packet: &Header, waiting: u64, now: Instant) -> bool {
        let delay = self.rate.time_of(Bytes::new(waiting)).as_nanos();
        let redirects = self.sanctions(flow_of(packet), packet.size, delay, now);
        self.redirected += u64::from(redirects);
        redirects
    }

    /// Packets that were redirected, for probes.
    pub(super) fn redirected(&self) -> f64 {
        self.redirected as f64
    }

    /// The decision on a packet of this flow, while the delay of the queue is this many nanoseconds.
    fn sanctions(&mut self, flow: u64, size: u16, delay: u64, now: Instant) -> bool {
        let score = self.fill(flow, size, delay, now.as_nanos() as f64);
        let delay = delay as f64;
        delay > self.critical_delay && delay * score > self.critical_product || score >= self.max_score
    }

    /// The score of a flow with a packet more.
    fn fill(&mut self, flow: u64, size: u16, delay: u64, now: f64) -> f64 {
        let added = self.native(delay) * f64::from(size) * self.cost;
        let most = self.max_score;
        let bucket = self.bucket(flow, now);
        let score = (bucket.expires - now + added).min(most);
        bucket.expires = now + score;
        score
    }

    /// The share of packets that a native AQM would mark at this delay (`probNative`).
    fn native(&self, delay: u64) -> f64 {
        (delay.saturating_sub(self.min_th) as f64 / RANGE as f64).min(1.0)
    }

    /// The bucket of a flow: its own, else the first free one where it looks, else the shared one.
    fn bucket(&mut self, flow: u64, now: f64) -> &mut Bucket {
        let shared = self.buckets.len() - 1;
        let bits = shared.trailing_zeros();
        let hash = mixed(self.salt ^ flow);
        let tried = (0..self.attempts).map(|attempt| (hash >> (attempt * bits)) as usize & (shared - 1));
        let own = tried.clone().find(|&tried| self.buckets[tried].flow == Some(flow));
        let free = || tried.clone().find(|&tried| self.buckets[tried].expires <= now);
        let found = own.or_else(free).unwrap_or(shared);
        let bucket = &mut self.buckets[found];
        bucket.flow = Some(flow);
        bucket.expires = bucket.expires.max(now);
        bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

    fn protection(rate: &str, keys: &str) -> QueueProtection {
        let params: QueueProtectionParams = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
        params.check().unwrap();
        QueueProtection::new(&params, rate.parse().unwrap(), &mut Rng::stream(1, "protection"))
    }

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    #[test]
    fn a_flow_is_sanctioned_by_its_score_and_the_delay() {
        let mut queue = protection("100Mbps", "");
        assert_eq!((queue.min_th, queue.native(1_000_000)), (475_712, 1.0));
        assert_eq!((queue.native(700_000), queue.native(475_712)), (0.427_795_410_156_25, 0.0));
        let mut packet = |micros, delay| {
            let sanctioned = queue.sanctions(1, 1500, delay, at(micros));
            let bucket = queue.buckets.iter().find(|bucket| bucket.flow == Some(1)).unwrap();
            (sanctioned, bucket.expires - at(micros).as_nanos() as f64)
        };
        assert_eq!(packet(0, 1_200_000), (false, 3_072_000.0));
        assert_eq!(packet(500, 1_300_000), (true, 5_644_000.0));
        // 6.144 ms have passed: the score has fallen to zero.
        assert_eq!(packet(9000, 700_000), (false, 1_314_187.5));
        assert_eq!(packet(9100, 700_000), (false, 2_528_375.0));
    }

    #[test]
    fn the_ramp_begins_no_lower_than_two_frames() {
        let queue = protection("10Mbps", "");
        assert_eq!(queue.min_th, 3_200_000);
        assert_eq!(
            (queue.native(3_200_000), queue.native(3_724_287) < 1.0, queue.native(3_724_288)),
            (0.0, true, 1.0)
        );
        assert_eq!(queue.critical_delay, 1_000_000.0);
        assert_eq!(protection("1Gbps", r#""max-th": "0s""#).min_th, 32_000);
    }

    #[test]
    fn scores_end_at_their_most_where_packets_are_redirected_at_any_delay() {
        let mut queue = protection("100Mbps", r#""critical-delay": "1s""#);
        // 3.072 ms each: 1627 packets reach 4.998 s and another one 5 s.
        let sanctioned: Vec<bool> = (0..1629).map(|_| queue.sanctions(1, 1500, 2_000_000, at(0))).collect();
        assert_eq!(sanctioned.iter().position(|&sanctioned| sanctioned), Some(1627));
        assert!(queue.sanctions(1, 0, 2_000_000, at(0)));
        assert!(!queue.sanctions(1, 0, 2_000_000, at(1)), "a microsecond is less than the most");
        assert!(!queue.sanctions(2, 1500, 2_000_000, at(0)), "it has a bucket of its own");
    }

    #[test]
    fn flows_without_a_bucket_share_one() {
        let mut queue = protection("100Mbps", r#""buckets": 1, "attempts": 4"#);
        let score = |queue: &mut QueueProtection, flow, micros| {
            queue.fill(flow, 1500, 1_200_000, at(micros).as_nanos() as f64)
        };
        assert_eq!(score(&mut queue, 1, 0), 3_072_000.0);
        assert_eq!(score(&mut queue, 2, 0), 3_072_000.0);
        assert_eq!(score(&mut queue, 3, 0), 6_144_000.0);
        assert_eq!(score(&mut queue, 1, 0), 6_144_000.0);
        // The first one's bucket is free after 6.144 ms, the shared one as well.
        assert_eq!(score(&mut queue, 2, 6144), 3_072_000.0);
        assert_eq!((queue.buckets[0].flow, queue.buckets[1].flow), (Some(2), Some(3)));
    }

    #[test]
    fn a_flow_looks_for_its_own_bucket_before_a_free_one() {
        let mut queue = protection("100Mbps", "");
        // Two flows that look into the same place first, of which the second finds a bucket at its second
        // attempt.
        let places = |queue: &QueueProtection, flow: u64| {
            let hash = mixed(queue.salt ^ flow);
            [hash as usize & 31, (hash >> 5) as usize & 31]
        };
        let first = places(&queue, 1)[0];
        let other = (2..10_000)
            .find(|&flow| places(&queue, flow)[0] == first && places(&queue, flow)[1] != first)
            .unwrap();
        queue.fill(1, 1500, 1_200_000, 0.0);
        queue.fill(other, 1000, 1_200_000, 0.0);
        let second = places(&queue, other)[1];
        assert_eq!([first, second].map(|place| queue.buckets[place].flow), [Some(1), Some(other)]);
        // The first place is free by now, but it has its own.
        queue.fill(other, 1500, 0, 9_000_000.0);
        assert_eq!([first, second].map(|place| queue.buckets[place].flow), [Some(1), Some(other)]);
    }

    #[test]
    fn the_delay_is_the_time_to_send_what_waits() {
        let mut queue = protection("12Mbps", "");
        let packet = Header::new(FlowId(7), 1500);
        // 7500 bytes take 5 ms, where each packet counts in full: 3.072 ms, of which 0.8 are critical.
        assert!(!queue.redirects(&packet, 1500, at(0)), "1 ms is not above the critical delay");
        assert!(queue.redirects(&packet, 7500, at(0)));
        assert_eq!(queue.redirected(), 1.0);
    }

    #[test]
    fn parameters_that_cannot_be_are_refused_by_their_keys() {
        let refused = |keys: &str| {
            let params: QueueProtectionParams = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
            let message = params.check().unwrap_err().to_string();
            crate::units::split_key(&message).0.to_owned()
        };
        for (keys, key) in [
            (r#""critical-delay": "0s""#, "critical-delay"),
            (r#""critical-score": "0s""#, "critical-score"),
            (r#""critical-score": "6s""#, "critical-score"),
            (r#""aging-exponent": 0"#, "aging-exponent"),
            (r#""aging-exponent": 31"#, "aging-exponent"),
            (r#""buckets": 0"#, "buckets"),
            (r#""buckets": 33"#, "buckets"),
            (r#""buckets": 32768"#, "buckets"),
            (r#""attempts": 0"#, "attempts"),
            (r#""attempts": 5"#, "attempts"),
        ] {
            assert_eq!(refused(keys), format!("queue-protection.{key}"), "{keys}");
        }
    }
}

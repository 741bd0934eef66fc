//! Token bucket marker: Ibanez & Nichols, draft-ibanez-diffserv-assured-eval-00, section 2 (the profiler of
//! each host).

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, Source};
use super::{Meter, MeterBlock, meter_params, small_bursts};
use crate::units::UnitError;
use crate::{Bitrate, Block, Bytes, Color, Context, Environment, Header, Instant, KeysWithoutEffect, Origin};

meter_params! {
    /// Parameters of [`TokenBucket`].
    TokenBucketParams: Out {
        /// The profile rate r: the rate at which tokens arrive.
        rate: Bitrate,
        /// The bucket's depth: how much can be IN at once. The bucket starts full.
        burst: Bytes,
    }
}

/// IN (green) while tokens last, else OUT (yellow); OUT packets take no tokens.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    source: Source,
    bucket: Bucket,
}

impl Block for TokenBucket {
    type Params = TokenBucketParams;
    const NAME: &'static str = "token-bucket";
    const SUMMARY: &'static str = "IN while the bucket has tokens, else OUT";
    const ORIGIN: Origin =
        Origin::published(1998, "Ibanez & Nichols 1998, section 2; RFC 2697 with one bucket");
    const BATCHED: bool = true;

    fn keys_without_effect(params: &TokenBucketParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        small_bursts(sizes, &[("burst", params.burst, "green")])
    }
}

impl MeterBlock for TokenBucket {
    fn new(params: TokenBucketParams, _: Environment) -> Self {
        Self { source: Source::new(params.rate), bucket: Bucket::new(params.burst) }
    }

    fn buckets(params: &TokenBucketParams) -> Vec<(&'static [Color], Bitrate, Bytes)> {
        vec![(&[Color::Green], params.rate, params.burst)]
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.source.take_over(&before.source);
        self.bucket.take_over(&before.bucket);
        Ok(())
    }
}

impl Meter for TokenBucket {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        self.bucket.add(self.source.draw(cx.now));
        if self.bucket.take_if_held(packet.size) { Color::Green } else { Color::Yellow }
    }

    fn settle(&mut self, now: Instant) {
        self.bucket.add(self.source.draw(now));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Out;
    use super::*;
    use crate::{FlowId, Rng};

    fn bucket(rate: &str, burst: &str) -> TokenBucket {
        let params = TokenBucketParams {
            rate: rate.parse().unwrap(),
            burst: burst.parse().unwrap(),
            af: None,
            out: Out::Mark,
        };
        TokenBucket::new(params, Environment { rate: Bitrate::from_bps(1).unwrap() })
    }

    #[test]
    fn by_hand() {
        // 1 Mbit/s fills 1000 bytes in 8 ms; the bucket holds two packets and starts full.
        let mut bucket = bucket("1Mbps", "2kB");
        let mut rng = Rng::stream(1, "meter");
        let packet = Header::new(FlowId(0), 1000);
        let mut at = |ns| bucket.color(&packet, &mut Context { now: Instant::from_nanos(ns), rng: &mut rng });
        assert_eq!([at(0), at(0), at(0)], [Color::Green, Color::Green, Color::Yellow]);
        assert_eq!(at(7_999_999), Color::Yellow, "one nanosecond too early: OUT packets take no tokens");
        assert_eq!(at(8_000_000), Color::Green);
        assert_eq!([at(1_000_000_000), at(1_000_000_000), at(1_000_000_000)].map(Color::index), [0, 0, 1]);
    }

    #[test]
    fn passes_its_rate_exactly_in_the_long_run() {
        // 2 Mbit/s offered to a 0.3 Mbit/s profile, 576-byte packets every 2304 us, for 1000 s.
        let mut bucket = bucket("0.3Mbps", "20kB");
        let mut rng = Rng::stream(1, "meter");
        let packet = Header::new(FlowId(0), 576);
        let (gap, end) = (2_304_000, 1_000_000_000_000_u64);
        let green = (0..end / gap)
            .filter(|n| {
                let now = Instant::from_nanos(n * gap);
                bucket.color(&packet, &mut Context { now, rng: &mut rng }) == Color::Green
            })
            .count() as u64;
        let most = (300_000 * 1000 + 160_000) / (576 * 8);
        assert!(green <= most && green + 2 >= most, "{green} of at most {most}");
    }
}

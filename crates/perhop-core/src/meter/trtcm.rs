//! Two rate three color marker: RFC 2698, section 3.
//!
//! ## Deviations
//! - Tokens arrive continuously, not one byte at a time.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, Source};
use super::{ColorMode, Meter, MeterBlock, meter_params, not_below, small_bursts};
use crate::units::{UnitError, require};
use crate::{Bitrate, Block, Bytes, Color, Context, Environment, Header, Instant, KeysWithoutEffect, Origin};

meter_params! {
    /// Parameters of [`TrTcm`].
    TrTcmParams: OutOfThree {
        /// The committed information rate (CIR), above which packets are yellow.
        rate: Bitrate,
        /// The committed burst size (CBS): how much can be green at once. The bucket starts full.
        burst: Bytes,
        /// The peak information rate (PIR), above which packets are red.
        peak_rate: Bitrate,
        /// The peak burst size (PBS): how much can be green or yellow at once. The bucket starts full.
        peak_burst: Bytes,
        /// Whether the meter looks at the colors that packets come with.
        #[serde(default)]
        mode: ColorMode,
    }
}

/// Red above the peak rate, else yellow above the committed rate, else green. A green packet takes tokens of
/// both buckets, a yellow one those of the peak rate, a red one none.
#[derive(Clone, Debug)]
pub struct TrTcm {
    committed: (Source, Bucket),
    peak: (Source, Bucket),
    mode: ColorMode,
}

impl Block for TrTcm {
    type Params = TrTcmParams;
    const NAME: &'static str = "trtcm";
    const SUMMARY: &'static str =
        "two rates: green up to the committed rate, yellow up to the peak rate, else red";
    const ORIGIN: Origin = Origin::published(1999, "RFC 2698, section 3");
    const BATCHED: bool = true;

    fn check(params: &TrTcmParams) -> Result<(), UnitError> {
        for (key, burst) in [("burst", params.burst), ("peak-burst", params.peak_burst)] {
            require(burst.get() > 0, key, "must be above 0B; take a packet's size or more")?;
        }
        not_below("peak-rate", params.peak_rate, params.rate)
    }

    fn keys_without_effect(params: &TrTcmParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        small_bursts(
            sizes,
            &[("burst", params.burst, "green"), ("peak-burst", params.peak_burst, "green or yellow")],
        )
    }
}

impl MeterBlock for TrTcm {
    const COLORS: &'static [Color] = &Color::ALL;

    fn reads_color(params: &TrTcmParams) -> bool {
        params.mode == ColorMode::ColorAware
    }

    fn buckets(params: &TrTcmParams) -> Vec<(&'static [Color], Bitrate, Bytes)> {
        let TrTcmParams { rate, burst, peak_rate, peak_burst, .. } = *params;
        vec![(&[Color::Green], rate, burst), (&[Color::Green, Color::Yellow], peak_rate, peak_burst)]
    }

    fn new(params: TrTcmParams, _: Environment) -> Self {
        Self {
            committed: (Source::new(params.rate), Bucket::new(params.burst)),
            peak: (Source::new(params.peak_rate), Bucket::new(params.peak_burst)),
            mode: params.mode,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.committed.0.take_over(&before.committed.0);
        self.committed.1.take_over(&before.committed.1);
        self.peak.0.take_over(&before.peak.0);
        self.peak.1.take_over(&before.peak.1);
        Ok(())
    }
}

impl Meter for TrTcm {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        self.settle(cx.now);
        let Self { committed: (_, committed), peak: (_, peak), mode } = self;
        let before = mode.color(packet);
        if before == Color::Red || !peak.take_if_held(packet.size) {
            Color::Red
        } else if before == Color::Yellow || !committed.take_if_held(packet.size) {
            Color::Yellow
        } else {
            Color::Green
        }
    }

    #[inline]
    fn settle(&mut self, now: Instant) {
        for (source, bucket) in [&mut self.committed, &mut self.peak] {
            bucket.add(source.draw(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden::{self, PACKETS, colors};
    use super::*;

    fn table(burst: &str, peak_burst: &str, mode: &str) -> String {
        format!(
            r#"{{"rate": "1Mbps", "burst": "{burst}", "peak-rate": "2Mbps", "peak-burst": "{peak_burst}", "mode": "{mode}"}}"#
        )
    }

    #[test]
    fn the_vectors_of_both_modes() {
        for (mode, expected, left) in
            [("color-blind", "GGYRYGGYGY", (500.0, 1500.0)), ("color-aware", "GYYRRGYGGG", (0.0, 1500.0))]
        {
            let mut meter = golden::meter::<TrTcm>(&table("3kB", "4500B", mode));
            assert_eq!(colors(&mut meter, &PACKETS), expected, "{mode}");
            assert_eq!((meter.committed.1.bytes(), meter.peak.1.bytes()), left, "{mode}");
        }
    }

    #[test]
    fn a_peak_burst_below_the_committed_burst_makes_packets_red_that_have_committed_tokens() {
        let mut meter = golden::meter::<TrTcm>(&table("4500B", "3kB", "color-blind"));
        assert_eq!(colors(&mut meter, &[(0, 1500, 'G'); 3]), "GGR");
        assert_eq!(meter.committed.1.bytes(), 1500.0);
    }

    #[test]
    fn a_peak_rate_below_the_committed_rate_and_bursts_of_nothing_are_refused() {
        let refused =
            |table: &str| TrTcm::check(&serde_json::from_str(table).unwrap()).unwrap_err().to_string();
        assert!(refused(&table("3kB", "0B", "color-blind")).contains("peak-burst"));
        assert!(refused(&table("0B", "3kB", "color-blind")).contains("above 0B"));
        let slow = r#"{"rate": "3Mbps", "burst": "3kB", "peak-rate": "2Mbps", "peak-burst": "3kB"}"#;
        assert!(refused(slow).contains("must be at least `rate`, which is 3Mbps"), "{}", refused(slow));
        golden::meter::<TrTcm>(&slow.replace("3Mbps", "2Mbps"));
    }

    #[test]
    fn a_burst_without_room_for_a_packet_is_reported() {
        golden::idle::<TrTcm>(|burst, peak| table(burst, peak, "color-blind"), ["burst", "peak-burst"]);
    }
}

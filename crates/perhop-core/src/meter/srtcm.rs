//! Single rate three color marker: RFC 2697, section 3.
//!
//! ## Deviations
//! - Tokens arrive continuously, not one byte at a time; both buckets hold the same at the times at which RFC
//!   2697 adds a byte.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, Source};
use super::{ColorMode, Meter, MeterBlock, meter_params, not_both_empty, small_bursts};
use crate::units::UnitError;
use crate::{Bitrate, Block, Bytes, Color, Context, Environment, Header, Instant, KeysWithoutEffect, Origin};

meter_params! {
    /// Parameters of [`SrTcm`].
    SrTcmParams: OutOfThree {
        /// The committed information rate (CIR): the rate at which tokens arrive.
        rate: Bitrate,
        /// The committed burst size (CBS): how much can be green at once. The bucket starts full.
        burst: Bytes,
        /// The excess burst size (EBS): how much more can be yellow at once. The bucket starts full, and gets
        /// the tokens for which the other has no room.
        excess_burst: Bytes,
        /// Whether the meter looks at the colors that packets come with.
        #[serde(default)]
        mode: ColorMode,
    }
}

/// Green while the first bucket has tokens, yellow while the second has, else red; red takes no tokens.
#[derive(Clone, Debug)]
pub struct SrTcm {
    source: Source,
    committed: Bucket,
    excess: Bucket,
    mode: ColorMode,
}

impl Block for SrTcm {
    type Params = SrTcmParams;
    const NAME: &'static str = "srtcm";
    const SUMMARY: &'static str =
        "one rate and two bursts: green within the first, yellow within the second, else red";
    const ORIGIN: Origin = Origin::published(1999, "RFC 2697, section 3");
    const BATCHED: bool = true;

    fn check(params: &SrTcmParams) -> Result<(), UnitError> {
        not_both_empty(params.burst, params.excess_burst)
    }

    fn keys_without_effect(params: &SrTcmParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        small_bursts(
            sizes,
            &[("burst", params.burst, "green"), ("excess-burst", params.excess_burst, "yellow")],
        )
    }
}

impl MeterBlock for SrTcm {
    const COLORS: &'static [Color] = &Color::ALL;

    fn reads_color(params: &SrTcmParams) -> bool {
        params.mode == ColorMode::ColorAware
    }

    fn buckets(params: &SrTcmParams) -> Vec<(&'static [Color], Bitrate, Bytes)> {
        let SrTcmParams { rate, burst, excess_burst, .. } = *params;
        let both = Bytes::new(burst.get().saturating_add(excess_burst.get()));
        let yellow = (&[Color::Yellow][..], rate, excess_burst);
        vec![(&[Color::Green], rate, burst), yellow, (&[Color::Green, Color::Yellow], rate, both)]
    }

    fn new(params: SrTcmParams, _: Environment) -> Self {
        Self {
            source: Source::new(params.rate),
            committed: Bucket::new(params.burst),
            excess: Bucket::new(params.excess_burst),
            mode: params.mode,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.source.take_over(&before.source);
        self.committed.take_over(&before.committed);
        self.excess.take_over(&before.excess);
        Ok(())
    }
}

impl Meter for SrTcm {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        self.settle(cx.now);
        let before = self.mode.color(packet);
        if before == Color::Green && self.committed.take_if_held(packet.size) {
            Color::Green
        } else if before != Color::Red && self.excess.take_if_held(packet.size) {
            Color::Yellow
        } else {
            Color::Red
        }
    }

    #[inline]
    fn settle(&mut self, now: Instant) {
        let overflow = self.committed.add(self.source.draw(now));
        self.excess.add(overflow);
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden::{self, PACKETS, colors};
    use super::*;

    fn meter(mode: &str) -> SrTcm {
        let table =
            format!(r#"{{"rate": "1Mbps", "burst": "3kB", "excess-burst": "3kB", "mode": "{mode}"}}"#);
        golden::meter::<SrTcm>(&table)
    }

    #[test]
    fn the_vectors_of_both_modes() {
        for (mode, expected, left) in
            [("color-blind", "GGYYRGGRGR", (500.0, 0.0)), ("color-aware", "GYYGRGRGGG", (0.0, 0.0))]
        {
            let mut meter = meter(mode);
            assert_eq!(colors(&mut meter, &PACKETS), expected, "{mode}");
            assert_eq!((meter.committed.bytes(), meter.excess.bytes()), left, "{mode}");
        }
    }

    #[test]
    fn a_color_blind_meter_does_not_look_at_colors_and_a_color_aware_one_keeps_red() {
        let red = PACKETS.map(|(at, size, _)| (at, size, 'R'));
        assert_eq!(colors(&mut meter("color-blind"), &red), "GGYYRGGRGR");
        let mut aware = meter("color-aware");
        assert_eq!(colors(&mut aware, &red), "RRRRRRRRRR");
        assert_eq!((aware.committed.bytes(), aware.excess.bytes()), (3000.0, 3000.0));
    }

    #[test]
    fn the_second_bucket_fills_only_when_the_first_is_full() {
        // 1 Mbit/s are 125 bytes in a millisecond. Both buckets are empty at 0; 40 ms later the first has
        // 3000 bytes and the second 2000.
        let bursts = [0, 0, 0, 0, 40, 40, 40, 40].map(|at| (at, 1500, 'G'));
        let mut meter = meter("color-blind");
        assert_eq!(colors(&mut meter, &bursts), "GGYYGGYR");
        assert_eq!((meter.committed.bytes(), meter.excess.bytes()), (0.0, 500.0));
    }

    #[test]
    fn both_bursts_cannot_be_empty() {
        let refused = |burst: &str, excess: &str| {
            let table = format!(r#"{{"rate": "1Mbps", "burst": "{burst}", "excess-burst": "{excess}"}}"#);
            SrTcm::check(&serde_json::from_str(&table).unwrap()).is_err()
        };
        assert!(refused("0B", "0B") && !refused("1B", "0B") && !refused("0B", "1B"));
    }

    #[test]
    fn a_burst_without_room_for_a_packet_is_reported() {
        golden::idle::<SrTcm>(
            |burst, excess| format!(r#"{{"rate": "1Mbps", "burst": "{burst}", "excess-burst": "{excess}"}}"#),
            ["burst", "excess-burst"],
        );
    }
}

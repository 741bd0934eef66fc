//! Two-rate three-color marker with efficient handling of in-profile traffic: RFC 4115, section 3.
//!
//! ## Deviations
//! - A packet that takes the last tokens conforms, as in figure 1 (B <= Tc). The text wants Tc - B > 0, which
//!   would color such a packet yellow or red: `an_exact_fit_conforms_as_in_the_figure`.
//! - Tokens arrive continuously, not one byte at a time.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, Source};
use super::{ColorMode, Meter, MeterBlock, meter_params, not_both_empty, small_bursts};
use crate::units::UnitError;
use crate::{Bitrate, Block, Bytes, Color, Context, Environment, Header, Instant, KeysWithoutEffect, Origin};

meter_params! {
    /// Parameters of [`Rfc4115`].
    Rfc4115Params: OutOfThree {
        /// The committed information rate (CIR): the rate of the tokens of green packets.
        rate: Bitrate,
        /// The committed burst size (CBS): how much can be green at once. The bucket starts full.
        burst: Bytes,
        /// The excess information rate (EIR): the rate of the tokens of yellow packets, on top of `rate`.
        excess_rate: Bitrate,
        /// The excess burst size (EBS): how much can be yellow at once. The bucket starts full.
        excess_burst: Bytes,
        /// Whether the meter looks at the colors that packets come with.
        #[serde(default)]
        mode: ColorMode,
    }
}

/// Green while the committed bucket has tokens, yellow while the excess bucket has, else red; each packet
/// takes tokens of one bucket, a red one of none.
#[derive(Clone, Debug)]
pub struct Rfc4115 {
    committed: (Source, Bucket),
    excess: (Source, Bucket),
    mode: ColorMode,
}

impl Block for Rfc4115 {
    type Params = Rfc4115Params;
    const NAME: &'static str = "rfc4115";
    const SUMMARY: &'static str =
        "two independent rates: green up to the committed rate, then yellow up to the excess rate, else red";
    const ORIGIN: Origin = Origin::published(2005, "RFC 4115, section 3 and figure 1");
    const BATCHED: bool = true;

    fn check(params: &Rfc4115Params) -> Result<(), UnitError> {
        not_both_empty(params.burst, params.excess_burst)
    }

    fn keys_without_effect(params: &Rfc4115Params, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        small_bursts(
            sizes,
            &[("burst", params.burst, "green"), ("excess-burst", params.excess_burst, "yellow")],
        )
    }
}

impl MeterBlock for Rfc4115 {
    const COLORS: &'static [Color] = &Color::ALL;

    fn reads_color(params: &Rfc4115Params) -> bool {
        params.mode == ColorMode::ColorAware
    }

    fn buckets(params: &Rfc4115Params) -> Vec<(&'static [Color], Bitrate, Bytes)> {
        let Rfc4115Params { rate, burst, excess_rate, excess_burst, .. } = *params;
        vec![(&[Color::Green], rate, burst), (&[Color::Yellow], excess_rate, excess_burst)]
    }

    fn new(params: Rfc4115Params, _: Environment) -> Self {
        Self {
            committed: (Source::new(params.rate), Bucket::new(params.burst)),
            excess: (Source::new(params.excess_rate), Bucket::new(params.excess_burst)),
            mode: params.mode,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.committed.0.take_over(&before.committed.0);
        self.committed.1.take_over(&before.committed.1);
        self.excess.0.take_over(&before.excess.0);
        self.excess.1.take_over(&before.excess.1);
        Ok(())
    }
}

impl Meter for Rfc4115 {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        self.settle(cx.now);
        let Self { committed: (_, committed), excess: (_, excess), mode } = self;
        let before = mode.color(packet);
        if before == Color::Green && committed.take_if_held(packet.size) {
            Color::Green
        } else if before != Color::Red && excess.take_if_held(packet.size) {
            Color::Yellow
        } else {
            Color::Red
        }
    }

    #[inline]
    fn settle(&mut self, now: Instant) {
        for (source, bucket) in [&mut self.committed, &mut self.excess] {
            bucket.add(source.draw(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden::{self, PACKETS, colors};
    use super::*;

    fn table(burst: &str, excess_burst: &str, mode: &str) -> String {
        format!(
            r#"{{"rate": "1Mbps", "burst": "{burst}", "excess-rate": "1Mbps", "excess-burst": "{excess_burst}", "mode": "{mode}"}}"#
        )
    }

    #[test]
    fn the_vectors_of_both_modes() {
        for (mode, expected, left) in
            [("color-blind", "GGYYRGGYGY", (500.0, 1500.0)), ("color-aware", "GYYGRGYGGG", (0.0, 3000.0))]
        {
            let mut meter = golden::meter::<Rfc4115>(&table("3kB", "3kB", mode));
            assert_eq!(colors(&mut meter, &PACKETS), expected, "{mode}");
            assert_eq!((meter.committed.1.bytes(), meter.excess.1.bytes()), left, "{mode}");
        }
    }

    #[test]
    fn an_exact_fit_conforms_as_in_the_figure() {
        // By the text the same packets would be colored GYRRGYGGGY, the second yellow although 1500 bytes are
        // left for it.
        let mut meter = golden::meter::<Rfc4115>(&table("3kB", "3kB", "color-blind"));
        assert_eq!(colors(&mut meter, &PACKETS[..4]), "GGYY");
        assert_eq!((meter.committed.1.bytes(), meter.excess.1.bytes()), (0.0, 0.0));
    }

    #[test]
    fn the_buckets_fill_whatever_the_other_holds() {
        // 125 bytes in a millisecond each: after 12 ms both have 1500 bytes. With srtcm's single rate only
        // the first would.
        let mut meter = golden::meter::<Rfc4115>(&table("3kB", "3kB", "color-blind"));
        let bursts = [0, 0, 0, 0, 12, 12, 12].map(|at| (at, 1500, 'G'));
        assert_eq!(colors(&mut meter, &bursts), "GGYYGYR");
    }

    #[test]
    fn both_bursts_cannot_be_empty() {
        let refused = |burst, excess| {
            Rfc4115::check(&serde_json::from_str(&table(burst, excess, "color-blind")).unwrap()).is_err()
        };
        assert!(refused("0B", "0B") && !refused("1B", "0B") && !refused("0B", "1B"));
    }

    #[test]
    fn a_burst_without_room_for_a_packet_is_reported() {
        golden::idle::<Rfc4115>(
            |burst, excess| table(burst, excess, "color-blind"),
            ["burst", "excess-burst"],
        );
    }
}

//! Meters: a flow's traffic measured against its profile, each packet given a color (RFC 2475, section
//! 2.3.3).

mod aggregate;
pub(crate) mod bucket;
mod conditioner;
mod foreign;
#[cfg(test)]
mod golden;
mod rfc4115;
mod srtcm;
mod token_bucket;
mod trtcm;
mod tsw;
mod tswtcm;
mod twam;

pub use aggregate::{AggregateMeter, AggregateMeters, MeterCounts};
pub use conditioner::{Action, Actions, Conditioner, Out, OutOfThree, POLICER, Verdict};
pub use foreign::{Foreign, ForeignMeter, ForeignMeterParams};
pub use rfc4115::{Rfc4115, Rfc4115Params};
pub use srtcm::{SrTcm, SrTcmParams};
pub use token_bucket::{TokenBucket, TokenBucketParams};
pub use trtcm::{TrTcm, TrTcmParams};
pub use tsw::{
    InitialRate, OutRule, RateEstimator, Split, ThreePrecedence, ThreePrecedenceParams, Tsw, TswParams,
};
pub use tswtcm::{TswTcm, TswTcmParams};
pub use twam::{Twam, TwamParams};

use std::ops::RangeInclusive;

use ambassador::delegatable_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::Message;
use crate::marker::AfClass;
use crate::units::{UnitError, require};
use crate::{Bitrate, Block, Bytes, Color, Context, Environment, Header, Instant, KeysWithoutEffect};

/// Adds the parameters that all meters have: those of the marker behind the meter, and the action for packets
/// out of profile, of type `$out`.
macro_rules! meter_params {
    ($(#[$doc:meta])* $name:ident: $out:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
            /// The class n of Assured Forwarding (RFC 2597) whose codepoints the marker writes: AFn1 into
            /// green packets, AFn2 into yellow ones, AFn3 into red ones. Default: 1; at a link, the class of
            /// each packet's own codepoint.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub af: Option<crate::marker::AfClass>,
            /// What happens to packets out of profile.
            #[serde(default, skip_serializing_if = "crate::meter::is_default")]
            #[schemars(extend("default" = crate::meter::$out::default()))]
            pub out: crate::meter::$out,
        }
    };
}
use meter_params;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Whether a meter looks at the colors that packets come with (RFC 2697, RFC 2698, RFC 4115).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ColorMode {
    /// The meter does not look at the colors that packets come with: every packet can be green.
    #[default]
    ColorBlind,
    /// The meter looks at the colors: no packet gets a color better than the one that it comes with.
    ColorAware,
}

impl ColorMode {
    /// Returns the best color that a packet can get.
    #[inline]
    const fn color(self, packet: &Header) -> Color {
        match self {
            Self::ColorBlind => Color::Green,
            Self::ColorAware => packet.color,
        }
    }
}

/// Refuses a peak rate below the committed one.
fn not_below(key: &str, peak: Bitrate, rate: Bitrate) -> Result<(), UnitError> {
    require(peak >= rate, key, format_args!("must be at least `rate`, which is {rate}, not {peak}"))
}

/// Refuses two bursts that are both empty.
fn not_both_empty(burst: Bytes, excess_burst: Bytes) -> Result<(), UnitError> {
    let text = "this and `excess-burst` are both 0B, so every packet is red; give one of them a packet's size or more";
    require(burst.get() > 0 || excess_burst.get() > 0, "burst", text)
}

/// The bursts below every packet, so that no packet gets certain colors. One of 0B is meant so.
fn small_bursts(
    sizes: &RangeInclusive<u64>,
    bursts: &[(&'static str, Bytes, &'static str)],
) -> KeysWithoutEffect {
    let smallest = sizes.start();
    let small = bursts.iter().filter(|(_, burst, _)| (1..*smallest).contains(&burst.get()));
    let notices = small.map(|&(key, burst, colors)| {
        let text = format!("`{burst}`: the smallest packet has {smallest}B, so none is {colors}; raise it");
        (key, text)
    });
    notices.collect()
}

/// Measures a flow against its profile.
#[delegatable_trait]
pub trait Meter {
    /// Returns the color of the next packet of the flow.
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color;

    /// Brings what depends on the time up to now: its parameters are about to [change](AnyMeter::retune).
    fn settle(&mut self, _now: Instant) {}

    /// Takes a control message from another block; most meters ignore it.
    fn on_message(&mut self, _message: &Message) {}
}

/// The declarations of a meter besides those of [`Block`].
pub trait MeterBlock: Block {
    /// The colors that the meter gives.
    const COLORS: &'static [Color] = &[Color::Green, Color::Yellow];

    /// Returns the meter at the start of a run. `params` have passed [`check`](Block::check).
    fn new(params: Self::Params, environment: Environment) -> Self;

    /// Takes over what `before` has measured, which a driver replaces by this meter because its parameters
    /// change during a run. Only this meter's parameters act on later packets.
    ///
    /// # Errors
    /// The key whose change would leave that state without a meaning, or that cannot change during a run.
    fn take_over(&mut self, _before: &Self) -> Result<(), UnitError> {
        Err(UnitError::new(format!("the parameters of `{}` cannot change during a run", Self::NAME)))
    }

    /// Returns whether the meter looks at the colors that packets come with.
    fn reads_color(_params: &Self::Params) -> bool {
        false
    }

    /// Returns what no packets of these colors together exceed behind the meter: token buckets, each with its
    /// colors. None for a meter that bounds nothing, such as one of averages.
    fn buckets(_params: &Self::Params) -> Vec<(&'static [Color], Bitrate, Bytes)> {
        Vec::new()
    }
}

macro_rules! register_meters {
    ($($variant:ident($block:ty),)+) => {
        crate::registration::register!(crate::Role::Meter, "marker", Meter, MeterBlock, AnyMeter, MeterParams, $($variant($block),)+);

        impl MeterParams {
            /// Returns the rate the profile promises.
            pub fn rate(&self) -> Bitrate {
                match self { $(Self::$variant(params) => params.rate,)+ }
            }

            /// Returns the class of Assured Forwarding whose codepoints the marker writes into packets that
            /// it is the first to mark.
            pub fn af(&self) -> AfClass {
                self.af_given().unwrap_or_default()
            }

            /// Returns the class of Assured Forwarding that the parameters name, if they name one.
            pub fn af_given(&self) -> Option<AfClass> {
                match self { $(Self::$variant(params) => params.af,)+ }
            }

            /// Returns the colors that the meter gives.
            pub fn colors(&self) -> &'static [Color] {
                match self { $(Self::$variant(_) => <$block as MeterBlock>::COLORS,)+ }
            }

            /// Returns whether the meter looks at the colors that packets come with.
            pub fn reads_color(&self) -> bool {
                match self { $(Self::$variant(params) => <$block as MeterBlock>::reads_color(params),)+ }
            }

            /// Returns what no packets of these colors together exceed behind the meter:
            /// [`MeterBlock::buckets`].
            pub fn buckets(&self) -> Vec<(&'static [Color], Bitrate, Bytes)> {
                match self { $(Self::$variant(params) => <$block as MeterBlock>::buckets(params),)+ }
            }

            /// Returns what happens to a packet of each color.
            pub fn actions(&self) -> Actions {
                match self { $(Self::$variant(params) => params.out.into(),)+ }
            }

            /// Returns the parameters of a meter that is implemented outside; `None` for any other.
            pub fn foreign(&self) -> Option<&ForeignMeterParams> {
                if let Self::Foreign(params) = self { Some(params) } else { None }
            }

            /// Returns the colors of the packets that are marked, not dropped.
            pub fn colors_marked(&self) -> impl Iterator<Item = Color> {
                let actions = self.actions();
                self.colors().iter().copied().filter(move |&color| actions.of(color) == Action::Mark)
            }
        }
    };
}

register_meters! {
    TokenBucket(TokenBucket),
    Tsw(Tsw),
    ThreePrecedence(ThreePrecedence),
    Twam(Twam),
    SrTcm(SrTcm),
    TrTcm(TrTcm),
    Rfc4115(Rfc4115),
    TswTcm(TswTcm),
    Foreign(Foreign),
}

impl AnyMeter {
    /// Returns the color of the next packet. The most frequent meter is compiled into the caller, which then
    /// needs no header in memory: 3 % of the instructions of marked `NewReno` flows.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each metered packet comes through here")]
    fn color_inlined(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        match self {
            Self::TokenBucket(bucket) => bucket.color(packet, cx),
            meter => meter.color(packet, cx),
        }
    }
}

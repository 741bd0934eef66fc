//! Meters: a flow's traffic measured against its profile, each packet given a color (RFC 2475, section 2.3.3).

mod token_bucket;
mod tsw;
pub mod twam;

pub use token_bucket::{TokenBucket, TokenBucketParams};
pub use tsw::{
    InitialRate, OutRule, RateEstimator, Split, ThreePrecedence, ThreePrecedenceParams, Tsw, TswParams,
};

pub use twam::{Twam, TwamParams};

use crate::control::Message;
use crate::{Bitrate, Color, Context, Header};

/// Measures a flow against its profile.
pub trait Meter {
    /// The color of the next packet of the flow.
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color;

    /// Another block tells it something; most have no use for it.
    fn on_message(&mut self, _message: &Message) {}
}

macro_rules! register_meters {
    ($($variant:ident($block:ty),)+) => {
        crate::block::register!(crate::Role::Meter, "marker", AnyMeter, MeterParams, $($variant($block),)+);

        impl MeterParams {
            /// The rate the profile promises.
            pub fn rate(&self) -> Bitrate {
                match self { $(Self::$variant(params) => params.rate,)+ }
            }
        }

        impl Meter for AnyMeter {
            #[inline(always)]
            fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
                match self { $(Self::$variant(meter) => meter.color(packet, cx),)+ }
            }
            fn on_message(&mut self, message: &Message) {
                match self { $(Self::$variant(meter) => meter.on_message(message),)+ }
            }
        }
    };
}

register_meters! {
    TokenBucket(TokenBucket),
    Tsw(Tsw),
    ThreePrecedence(ThreePrecedence),
    Twam(Twam),
}

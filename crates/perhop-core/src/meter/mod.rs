//! Meters: a flow's traffic measured against its profile, each packet given a color (RFC 2475, section 2.3.3).

mod conditioner;
mod token_bucket;
mod tsw;
pub mod twam;

pub use conditioner::{Action, Actions, Conditioner, Out, OutOfThree, Verdict};
pub use token_bucket::{TokenBucket, TokenBucketParams};
pub use tsw::{
    InitialRate, OutRule, RateEstimator, Split, ThreePrecedence, ThreePrecedenceParams, Tsw, TswParams,
};

pub use twam::{Twam, TwamParams};

use ambassador::delegatable_trait;

use crate::control::Message;
use crate::marker::AfClass;
use crate::{Bitrate, Color, Context, Header};

/// Adds the parameters that all meters have: those of the marker behind the meter, and the action for packets out of profile,
/// of type `$out`.
macro_rules! meter_params {
    ($(#[$doc:meta])* $name:ident: $out:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
            /// The class n of Assured Forwarding (RFC 2597) whose codepoints the marker writes: AFn1 into green packets, AFn2 into
            /// yellow ones, AFn3 into red ones.
            #[serde(default, skip_serializing_if = "crate::meter::is_default")]
            #[schemars(extend("default" = crate::marker::AfClass::default()))]
            pub af: crate::marker::AfClass,
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

/// Measures a flow against its profile.
#[delegatable_trait]
pub trait Meter {
    /// The color of the next packet of the flow.
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color;

    /// A control message from another block; most meters ignore it.
    fn on_message(&mut self, _message: &Message) {}
}

macro_rules! register_meters {
    ($($variant:ident($block:ty),)+) => {
        crate::block::register!(crate::Role::Meter, "marker", Meter, AnyMeter, MeterParams, $($variant($block),)+);

        impl MeterParams {
            /// The rate the profile promises.
            pub fn rate(&self) -> Bitrate {
                match self { $(Self::$variant(params) => params.rate,)+ }
            }

            /// The class of Assured Forwarding whose codepoints the marker writes.
            pub fn af(&self) -> AfClass {
                match self { $(Self::$variant(params) => params.af,)+ }
            }

            /// The colors that the meter gives.
            pub fn colors(&self) -> &'static [Color] {
                match self { $(Self::$variant(_) => <$block as crate::Block>::COLORS,)+ }
            }

            /// What happens to a packet of each color.
            pub fn actions(&self) -> Actions {
                match self { $(Self::$variant(params) => params.out.into(),)+ }
            }

            /// The colors of the packets that are marked, not dropped.
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
}

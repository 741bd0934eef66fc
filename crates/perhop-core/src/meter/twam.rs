//! TWAM, the TCP window-aware marker: Bouras & Sevasti, section 3.
//!
//! At the ingress of a path, each interval: the windows `W_i` of all flows are known, and each flow's packets
//! are marked IN with a probability `p_i` until the next interval, so that the path's window is colored in
//! proportion to the contracted rates `r_i`, whatever windows the flows have reached. [Window
//! control](crate::control) computes the shares (equation 3), of which the driver sends `p_i` to the meters;
//! the meter of a flow only draws.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Meter, MeterBlock, meter_params};
use crate::control::Message;
use crate::units::UnitError;
use crate::{Bitrate, Block, Color, Context, Environment, Header, Origin};

meter_params! {
    /// Parameters of [`Twam`].
    TwamParams: Out {
        /// The contracted rate (`r_i`).
        rate: Bitrate,
    }
}

/// Marks a flow's packets IN with the probability in the last control message.
#[derive(Clone, Debug)]
pub struct Twam {
    /// Before the first interval every packet is IN.
    share: f64,
}

impl Block for Twam {
    type Params = TwamParams;
    const NAME: &'static str = "twam";
    const SUMMARY: &'static str =
        "marks IN with a probability that keeps a path's window in proportion to contracted rates";
    const ORIGIN: Origin = Origin::paper(2003, "Bouras & Sevasti, section 3, equation 3");
    const FOLLOWS_PATHS: bool = true;
    const BATCHED: bool = true;
}

impl MeterBlock for Twam {
    fn new(_: TwamParams, _: Environment) -> Self {
        Self { share: 1.0 }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.share = before.share;
        Ok(())
    }
}

impl Meter for Twam {
    #[inline]
    fn color(&mut self, _: &Header, cx: &mut Context<'_>) -> Color {
        if cx.rng.chance(self.share) { Color::Green } else { Color::Yellow }
    }

    fn on_message(&mut self, message: &Message) {
        if let Message::Share(share) = *message {
            self.share = share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, Instant, Rng};

    #[test]
    fn marks_with_the_share_of_its_last_message() {
        let mut twam = Twam { share: 1.0 };
        let mut rng = Rng::stream(1, "twam");
        let mut green = |twam: &mut Twam| {
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            (0..10_000).filter(|_| twam.color(&Header::new(FlowId(0), 1000), cx) == Color::Green).count()
        };
        assert_eq!(green(&mut twam), 10_000, "before the first interval");
        twam.on_message(&Message::Share(0.3));
        twam.on_message(&Message::Windows { path: 1, number: 1, packets: 9.0 });
        assert!((2850..3150).contains(&green(&mut twam)));
    }
}

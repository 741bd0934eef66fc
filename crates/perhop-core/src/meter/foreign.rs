//! A meter that is implemented outside this crate: see [`Implementation`].
//!
//! The keys that all meters have belong to the table, since others than the class read them: the rate of the
//! profile, and what is behind the meter.

use std::fmt;
use std::sync::Arc;

use dyn_clone::{DynClone, clone_trait_object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Meter, MeterBlock, OutOfThree};
use crate::marker::AfClass;
use crate::outside::{Implementation, Unimplemented};
use crate::units::UnitError;
use crate::{Bitrate, Block, Color, Context, Environment, Header, Origin};

/// A meter that is implemented outside.
pub trait ForeignMeter: Meter + DynClone + fmt::Debug + Send + Sync {
    /// Gives it other parameters during a run, and the rate at which packets can come; its state stays.
    fn set_parameters(&mut self, params: &ForeignMeterParams, environment: Environment);
}

clone_trait_object!(ForeignMeter);

/// Parameters of [`Foreign`]: the class, what all meters have, and what the class is created with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignMeterParams {
    /// The class, as `module:Class`; keys that are not listed here are its parameters.
    pub class: String,
    /// The profile rate r, which the class can read.
    pub rate: Bitrate,
    /// The class n of Assured Forwarding (RFC 2597) whose codepoints the marker writes: AFn1 into green
    /// packets, AFn2 into yellow ones, AFn3 into red ones. Default: 1; at a link, the class of each packet's
    /// own codepoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub af: Option<AfClass>,
    /// What happens to packets out of profile.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(extend("default" = OutOfThree::default()))]
    pub out: OutOfThree,
    /// The parameters of the class.
    #[serde(flatten)]
    #[schemars(skip)]
    pub parameters: Map<String, Value>,
    /// Makes its meters.
    #[serde(skip)]
    pub implementation: Implementation<Environment, dyn ForeignMeter>,
}

/// Gives colors as its implementation does.
#[derive(Clone, Debug)]
pub struct Foreign {
    params: Arc<ForeignMeterParams>,
    environment: Environment,
    meter: Box<dyn ForeignMeter>,
}

impl Block for Foreign {
    type Params = ForeignMeterParams;
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "Gives colors as a class in Python does, a subclass of `perhop.Meter`";
    const ORIGIN: Origin = Origin::published(2026, "the class that it names");
    const IS_OUTSIDE: bool = true;
    const BATCHED: bool = true;
}

impl MeterBlock for Foreign {
    const COLORS: &'static [Color] = &Color::ALL;

    fn new(params: ForeignMeterParams, environment: Environment) -> Self {
        let meter = params.implementation.make(&environment).unwrap_or_else(|| Box::new(Unimplemented));
        Self { params: Arc::new(params), environment, meter }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        if self.params.class != before.params.class {
            return Err(UnitError::at("class", "it cannot change during a run; start a run with it"));
        }
        self.meter.clone_from(&before.meter);
        self.meter.set_parameters(&self.params, self.environment);
        Ok(())
    }
}

impl Meter for Foreign {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        self.meter.color(packet, cx)
    }
}

impl Meter for Unimplemented {
    fn color(&mut self, _: &Header, _: &mut Context<'_>) -> Color {
        self.refuse()
    }
}

impl ForeignMeter for Unimplemented {
    fn set_parameters(&mut self, _: &ForeignMeterParams, _: Environment) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Conditioner, MeterParams};
    use crate::{FlowId, Instant, Rng};

    /// Green, yellow, red, and again.
    #[derive(Clone, Debug)]
    struct Wheel(usize);

    impl Meter for Wheel {
        fn color(&mut self, _: &Header, _: &mut Context<'_>) -> Color {
            self.0 += 1;
            Color::ALL[(self.0 - 1) % 3]
        }
    }

    impl ForeignMeter for Wheel {
        fn set_parameters(&mut self, params: &ForeignMeterParams, _: Environment) {
            self.0 = params.parameters["teeth"].as_u64().unwrap() as usize;
        }
    }

    #[test]
    fn a_table_keeps_the_parameters_of_its_class_and_polices() {
        let text =
            r#"{"marker": "python", "class": "my:Wheel", "rate": "1Mbps", "out": "drop-red", "teeth": 3}"#;
        let params: MeterParams = serde_json::from_str(text).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&params).unwrap(), value);
        let MeterParams::Foreign(table) = &params else { panic!("{params:?}") };
        assert!(!table.implementation.is_set());
        table.clone().implementation.set(|_| Box::new(Wheel(0))); // clones share it
        let mut conditioner = Conditioner::new(&params, Bitrate::MAX, Rng::stream(1, "meter"));
        let dropped = |conditioner: &mut Conditioner| {
            conditioner.judge(&Header::new(FlowId(0), 1000), Instant::ZERO).dropped.is_some()
        };
        assert!(!dropped(&mut conditioner));
        let mut copy = conditioner.clone();
        assert_eq!([dropped(&mut conditioner), dropped(&mut conditioner)], [false, true]);
        assert_eq!([dropped(&mut copy), dropped(&mut copy)], [false, true]);
        // Its parameters change: this one turns to its second tooth. Another class cannot take its place.
        let retuned = |copy: &mut Conditioner, text: &str| {
            copy.retune(&serde_json::from_str(text).unwrap(), Bitrate::MAX, Instant::ZERO)
        };
        retuned(&mut copy, &text.replace("3}", "2}")).unwrap();
        assert!(dropped(&mut copy));
        let other = retuned(&mut copy, &text.replace("Wheel", "Gear")).unwrap_err();
        assert!(other.to_string().contains("class"), "{other}");
    }
}

//! A meter that is implemented outside this crate, such as by a class in Python.
//!
//! It works as an AQM does that is implemented outside: see
//! [`aqm::ForeignParams`](crate::aqm::ForeignParams). The keys that all meters have belong to the table,
//! since others than the class read them: the rate of the profile, and what is behind the meter.

use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Meter, MeterBlock, OutOfThree};
use crate::marker::AfClass;
use crate::units::UnitError;
use crate::{Bitrate, Block, Color, Context, Environment, Header, Origin};

/// The decisions of a meter that is implemented outside: see [`Meter`].
pub trait ForeignMeter: fmt::Debug + Send + Sync {
    /// See [`Meter::color`].
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color;

    /// Gives it other parameters during a run, and the rate at which packets can come; its state stays.
    fn set_parameters(&mut self, params: &ForeignMeterParams, environment: Environment);

    /// A copy with a state of its own.
    fn boxed_clone(&self) -> Box<dyn ForeignMeter>;
}

/// Makes the meters of one table.
pub trait MeterImplementation: fmt::Debug + Send + Sync {
    /// A meter at the start of a run.
    fn build(&self, environment: Environment) -> Box<dyn ForeignMeter>;
}

/// Parameters of [`Foreign`]: the class, what all meters have, and what the class is created with.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// Clones share it.
    #[serde(skip)]
    implementation: Arc<OnceLock<Arc<dyn MeterImplementation>>>,
}

impl ForeignMeterParams {
    /// Gives the table its implementation; the first one counts.
    pub fn implement(&self, implementation: Arc<dyn MeterImplementation>) {
        self.implementation.get_or_init(|| implementation);
    }

    /// Whether it can run.
    pub fn is_implemented(&self) -> bool {
        self.implementation.get().is_some()
    }
}

impl PartialEq for ForeignMeterParams {
    fn eq(&self, other: &Self) -> bool {
        let parts = |params: &Self| (params.class.clone(), params.rate, params.af, params.out);
        parts(self) == parts(other) && self.parameters == other.parameters
    }
}

/// Gives colors as its implementation does.
#[derive(Debug)]
pub struct Foreign {
    params: Arc<ForeignMeterParams>,
    environment: Environment,
    /// None where the meter is only looked at, and never meets a packet, or where these are parameters for
    /// one that runs.
    meter: Option<Box<dyn ForeignMeter>>,
}

impl Clone for Foreign {
    fn clone(&self) -> Self {
        let meter = self.meter.as_ref().map(|meter| meter.boxed_clone());
        Self { params: self.params.clone(), environment: self.environment, meter }
    }
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
        let meter = params.implementation.get().map(|implementation| implementation.build(environment));
        Self { params: Arc::new(params), environment, meter }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        if self.params.class != before.params.class {
            return Err(UnitError::at("class", "it cannot change during a run; start a run with it"));
        }
        self.meter = before.meter.as_ref().map(|meter| meter.boxed_clone());
        if let Some(meter) = &mut self.meter {
            meter.set_parameters(&self.params, self.environment);
        }
        Ok(())
    }
}

impl Meter for Foreign {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        self.meter.as_deref_mut().expect("a driver refuses classes that it cannot run").color(packet, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Conditioner, MeterParams};
    use crate::{FlowId, Instant, Rng};

    /// Green, yellow, red, and again.
    #[derive(Clone, Debug)]
    struct Wheel(usize);

    impl ForeignMeter for Wheel {
        fn color(&mut self, _: &Header, _: &mut Context<'_>) -> Color {
            self.0 += 1;
            Color::ALL[(self.0 - 1) % 3]
        }
        fn set_parameters(&mut self, params: &ForeignMeterParams, _: Environment) {
            self.0 = params.parameters["teeth"].as_u64().unwrap() as usize;
        }
        fn boxed_clone(&self) -> Box<dyn ForeignMeter> {
            Box::new(self.clone())
        }
    }

    #[derive(Debug)]
    struct Wheels;

    impl MeterImplementation for Wheels {
        fn build(&self, _: Environment) -> Box<dyn ForeignMeter> {
            Box::new(Wheel(0))
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
        assert!(!table.is_implemented());
        table.clone().implement(Arc::new(Wheels)); // clones share it
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

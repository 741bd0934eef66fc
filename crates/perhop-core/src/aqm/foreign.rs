//! An AQM that is implemented outside this crate by an [`Implementation`].

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ambassador::delegate_to_methods;
use dyn_clone::{DynClone, clone_trait_object};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Aqm, AqmBlock, Verdict, ambassador_impl_Aqm};
use crate::control::Message;
use crate::outside::{Implementation, Unimplemented};
use crate::units::UnitError;
use crate::{
    Bitrate, Block, Context, Depth, Environment, Header, Instant, Noted, Occupancy, Origin, PseudoCode,
    Reason,
};

/// An AQM that is implemented outside.
pub trait ForeignAqm: Aqm + DynClone + fmt::Debug + Send + Sync {
    /// Gives it other parameters during a run, as the table has them, and the rate of its place; its state
    /// stays.
    fn set_parameters(&mut self, parameters: &Map<String, Value>, environment: Environment);
}

clone_trait_object!(ForeignAqm);

/// The table of an AQM that is implemented outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignParams {
    /// The class, as `module:Class`.
    pub class: String,
    /// The parameters of the AQM.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
    /// Makes the AQMs of this class.
    #[serde(skip)]
    pub implementation: Implementation<Environment, dyn ForeignAqm>,
}

impl JsonSchema for ForeignParams {
    fn schema_name() -> Cow<'static, str> {
        "ForeignParams".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "class": {
                    "type": "string",
                    "pattern": "^[\\w.]+:\\w+$",
                    "description": "The class, as `module:Class`; the other keys are its parameters.",
                },
            },
            "required": ["class"],
            "additionalProperties": true,
        })
    }
}

/// Decides as its implementation does.
#[derive(Clone, Debug)]
pub struct Foreign {
    params: Arc<ForeignParams>,
    environment: Environment,
    aqm: Box<dyn ForeignAqm>,
}

impl Block for Foreign {
    type Params = ForeignParams;
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "Decides as a class in Python does, a subclass of `perhop.Aqm`";
    const ORIGIN: Origin = Origin::published(2026, "the class that it names");
    const IS_OUTSIDE: bool = true;
    const BATCHED: bool = true;

    fn pseudo_code(_: Reason, _: Noted<'_>) -> Option<PseudoCode> {
        Some(PseudoCode { lines: &["as its class decides"], acts: &[] })
    }
}

impl AqmBlock for Foreign {
    const PRECOMPUTABLE: bool = false;
    const NEEDS_AHEAD: bool = true;

    fn limit(params: &ForeignParams, _: Bitrate) -> Option<Depth> {
        params.parameters.get("limit")?.as_str()?.parse().ok()
    }

    fn new(params: ForeignParams, environment: Environment) -> Self {
        let aqm = params.implementation.make(&environment).unwrap_or_else(|| Box::new(Unimplemented));
        Self { params: Arc::new(params), environment, aqm }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        if self.params.class != before.params.class {
            return Err(UnitError::at("class", "it cannot change during a run; start a run with it"));
        }
        self.aqm.clone_from(&before.aqm);
        self.aqm.set_parameters(&self.params.parameters, self.environment);
        Ok(())
    }
}

#[delegate_to_methods]
#[delegate(Aqm, target_ref = "aqm", target_mut = "aqm_mut")]
impl Foreign {
    fn aqm(&self) -> &dyn ForeignAqm {
        &*self.aqm
    }
    fn aqm_mut(&mut self) -> &mut dyn ForeignAqm {
        &mut *self.aqm
    }
}

impl Aqm for Unimplemented {
    fn on_arrival(&mut self, _: &Header, _: &Occupancy, _: &mut Context<'_>) -> Verdict {
        self.refuse()
    }
}

impl ForeignAqm for Unimplemented {
    fn set_parameters(&mut self, _: &Map<String, Value>, _: Environment) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::AqmParams;
    use crate::scheduler::Discipline;
    use crate::testing::{Bench, Effect, Operation, environment, fifo};
    use crate::{Color, Dscp, FlowId, Reason, Rng};

    /// Drops every packet that finds so many waiting, counts its calls, and drops the first packet at
    /// departure.
    #[derive(Clone, Debug)]
    struct Shallow {
        most: u64,
        calls: [u32; 3],
    }

    fn shallows(most: u64) -> impl Fn(&Environment) -> Box<dyn ForeignAqm> {
        move |_| Box::new(Shallow { most, calls: [0; 3] })
    }

    impl Aqm for Shallow {
        fn on_arrival(&mut self, _: &Header, queue: &Occupancy, _: &mut Context<'_>) -> Verdict {
            self.calls[0] += 1;
            if queue.packets() < self.most { Verdict::Pass } else { Verdict::Drop(Reason::Overflow) }
        }
        fn on_departure(&mut self, _: &Header, _: &Occupancy, _: &mut Context<'_>) -> Verdict {
            self.calls[1] += 1;
            if self.calls[1] == 1 { Verdict::Drop(Reason::Controller) } else { Verdict::Pass }
        }
        fn on_idle(&mut self, _: Instant) {
            self.calls[2] += 1;
        }
        fn gauges(&self) -> Vec<(&'static str, f64)> {
            vec![("arrivals", self.calls[0].into()), ("idle", self.calls[2].into())]
        }
    }

    impl ForeignAqm for Shallow {
        fn set_parameters(&mut self, parameters: &Map<String, Value>, _: Environment) {
            self.most = parameters["most"].as_u64().unwrap();
        }
    }

    fn read(text: &str) -> AqmParams {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_table_keeps_the_parameters_of_its_class() {
        let text = r#"{"aqm":"python","class":"my:Aqm","deep":{"a":[true]},"limit":"9p"}"#;
        let read = read(text);
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
        let AqmParams::Foreign(params) = read else { panic!("{read:?}") };
        assert_eq!((params.class.as_str(), params.implementation.is_set()), ("my:Aqm", false));
        let missing = serde_json::from_str::<AqmParams>(r#"{"aqm": "python", "limit": "9p"}"#).unwrap_err();
        assert!(missing.to_string().contains("missing field `class`"), "{missing}");
    }

    #[test]
    fn a_queue_calls_its_implementation() {
        let params = read(r#"{"aqm": "python", "class": "my:Shallow"}"#);
        let AqmParams::Foreign(table) = &params else { panic!("{params:?}") };
        table.clone().implementation.set(shallows(2)); // clones share it
        table.implementation.set(shallows(0)); // too late
        let mut bench = Bench::new(fifo(params, 1));
        let arrive = Operation::Enqueue { size: 100, color: Color::Green, dscp: Dscp::DEFAULT, label: 0 };
        let effects = bench.run(&[arrive, arrive, arrive]).unwrap();
        let dropped = Effect::Judged(Verdict::Drop(Reason::Overflow));
        assert_eq!(effects, [Effect::Judged(Verdict::Pass), Effect::Judged(Verdict::Pass), dropped]);
        let taken = bench.run(&[Operation::Dequeue, Operation::Dequeue, Operation::Dequeue]).unwrap();
        let sent = Effect::Sent { packet: 1, class: 0 };
        assert_eq!(taken, [Effect::Dropped, sent, Effect::Waits { until: None, packets: 0 }]);
    }

    #[test]
    fn a_copy_has_a_state_of_its_own() {
        let params = ForeignParams {
            class: "my:Shallow".into(),
            parameters: Map::new(),
            implementation: Implementation::default(),
        };
        params.implementation.set(shallows(9));
        let mut first = Foreign::new(params, environment());
        let second = first.clone();
        let mut rng = Rng::stream(1, "aqm");
        let mut cx = Context { now: Instant::ZERO, rng: &mut rng };
        first.on_arrival(&Header::new(FlowId(0), 100), &Occupancy::EMPTY, &mut cx);
        first.on_idle(Instant::ZERO);
        assert_eq!(first.gauges(), [("arrivals", 1.0), ("idle", 1.0)]);
        assert_eq!(second.gauges(), [("arrivals", 0.0), ("idle", 0.0)]);
    }

    #[test]
    fn parameters_change_and_the_state_stays() {
        let params = |class: &str, most: u64| ForeignParams {
            class: class.into(),
            parameters: Map::from_iter([("most".to_owned(), most.into())]),
            implementation: Implementation::default(),
        };
        let first = params("my:Shallow", 0);
        first.implementation.set(shallows(0));
        let mut aqm = Foreign::new(first, environment());
        let mut rng = Rng::stream(1, "aqm");
        let mut cx = Context { now: Instant::ZERO, rng: &mut rng };
        let mut arrives =
            |aqm: &mut Foreign| aqm.on_arrival(&Header::new(FlowId(0), 100), &Occupancy::EMPTY, &mut cx);
        assert_eq!(arrives(&mut aqm), Verdict::Drop(Reason::Overflow));
        let mut other = Foreign::new(params("my:Other", 9), environment());
        assert!(other.take_over(&aqm).unwrap_err().to_string().contains("class"));
        let mut next = Foreign::new(params("my:Shallow", 9), environment());
        next.take_over(&aqm).unwrap();
        assert_eq!(arrives(&mut next), Verdict::Pass);
        assert_eq!((next.gauges()[0], aqm.gauges()[0]), (("arrivals", 2.0), ("arrivals", 1.0)));
    }

    #[test]
    fn without_an_implementation_a_queue_can_be_looked_at() {
        let bench = Bench::new(fifo(read(r#"{"aqm": "python", "class": "my:Aqm"}"#), 1));
        assert!(bench.discipline().gauges().is_empty());
    }
}

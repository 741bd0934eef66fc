//! An AQM that is implemented outside this crate, such as by a class in Python.
//!
//! Its table names the class under `class`; the other keys are the parameters of the class, which this crate
//! keeps as they are. Whoever runs a network gives each such table its [`Implementation`]; a driver that has
//! none must refuse the table.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Aqm, AqmBlock, Verdict};
use crate::units::UnitError;
use crate::{
    Bitrate, Block, Context, Depth, Environment, Header, Instant, Noted, Occupancy, Origin, PseudoCode,
    Reason,
};

/// The decisions of an AQM that is implemented outside: see [`Aqm`].
pub trait ForeignAqm: fmt::Debug + Send + Sync {
    /// See [`Aqm::on_arrival`].
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict;

    /// See [`Aqm::on_departure`].
    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict;

    /// See [`Aqm::on_idle`].
    fn on_idle(&mut self, since: Instant);

    /// See [`Aqm::gauges`].
    fn gauges(&self) -> Vec<(&'static str, f64)>;

    /// Gives it other parameters during a run, as the table has them, and the rate of its place; its state
    /// stays.
    fn set_parameters(&mut self, parameters: &Map<String, Value>, environment: Environment);

    /// A copy with a state of its own.
    fn boxed_clone(&self) -> Box<dyn ForeignAqm>;
}

/// Makes the AQMs of one table.
pub trait Implementation: fmt::Debug + Send + Sync {
    /// An AQM at the start of a run.
    fn build(&self, environment: Environment) -> Box<dyn ForeignAqm>;
}

/// Parameters of [`Foreign`]: the class, and what it is created with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForeignParams {
    /// The class, as `module:Class`.
    pub class: String,
    /// Its parameters.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
    /// Clones share it.
    #[serde(skip)]
    implementation: Arc<OnceLock<Arc<dyn Implementation>>>,
}

impl ForeignParams {
    /// Gives the table its implementation; the first one counts.
    pub fn implement(&self, implementation: Arc<dyn Implementation>) {
        self.implementation.get_or_init(|| implementation);
    }

    /// Whether it can run.
    pub fn is_implemented(&self) -> bool {
        self.implementation.get().is_some()
    }
}

impl PartialEq for ForeignParams {
    fn eq(&self, other: &Self) -> bool {
        (&self.class, &self.parameters) == (&other.class, &other.parameters)
    }
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
#[derive(Debug)]
pub struct Foreign {
    params: Arc<ForeignParams>,
    environment: Environment,
    /// None where the queue is only looked at, and never meets a packet, or where these are parameters for
    /// one that runs.
    aqm: Option<Box<dyn ForeignAqm>>,
}

impl Clone for Foreign {
    fn clone(&self) -> Self {
        let aqm = self.aqm.as_ref().map(|aqm| aqm.boxed_clone());
        Self { params: self.params.clone(), environment: self.environment, aqm }
    }
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
        let aqm = params.implementation.get().map(|implementation| implementation.build(environment));
        Self { params: Arc::new(params), environment, aqm }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        if self.params.class != before.params.class {
            return Err(UnitError::at("class", "it cannot change during a run; start a run with it"));
        }
        self.aqm = before.aqm.as_ref().map(|aqm| aqm.boxed_clone());
        if let Some(aqm) = &mut self.aqm {
            aqm.set_parameters(&self.params.parameters, self.environment);
        }
        Ok(())
    }
}

impl Foreign {
    fn aqm(&mut self) -> &mut dyn ForeignAqm {
        self.aqm.as_deref_mut().expect("a driver refuses classes that it cannot run")
    }
}

impl Aqm for Foreign {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.aqm().on_arrival(packet, queue, cx)
    }

    #[inline]
    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.aqm().on_departure(packet, left, cx)
    }

    fn on_idle(&mut self, since: Instant) {
        self.aqm().on_idle(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.aqm.as_ref().map_or_else(Vec::new, |aqm| aqm.gauges())
    }
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

    #[derive(Debug)]
    struct Shallows(u64);

    impl Implementation for Shallows {
        fn build(&self, _: Environment) -> Box<dyn ForeignAqm> {
            Box::new(Shallow { most: self.0, calls: [0; 3] })
        }
    }

    impl ForeignAqm for Shallow {
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
        fn set_parameters(&mut self, parameters: &Map<String, Value>, _: Environment) {
            self.most = parameters["most"].as_u64().unwrap();
        }
        fn boxed_clone(&self) -> Box<dyn ForeignAqm> {
            Box::new(self.clone())
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
        assert_eq!((params.class.as_str(), params.is_implemented()), ("my:Aqm", false));
        let missing = serde_json::from_str::<AqmParams>(r#"{"aqm": "python", "limit": "9p"}"#).unwrap_err();
        assert!(missing.to_string().contains("missing field `class`"), "{missing}");
    }

    #[test]
    fn a_queue_calls_its_implementation() {
        let params = read(r#"{"aqm": "python", "class": "my:Shallow"}"#);
        let AqmParams::Foreign(table) = &params else { panic!("{params:?}") };
        table.clone().implement(Arc::new(Shallows(2))); // clones share it
        table.implement(Arc::new(Shallows(0))); // too late
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
            implementation: Arc::default(),
        };
        params.implement(Arc::new(Shallows(9)));
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
            implementation: Arc::default(),
        };
        let first = params("my:Shallow", 0);
        first.implement(Arc::new(Shallows(0)));
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

//! An AQM that is implemented outside this crate, such as by a class in Python.
//!
//! Its table names the class under `class`; the other keys are the parameters of the class, which this crate keeps as they are. Whoever
//! runs a network gives each such table its [`Implementation`]; a driver that has none must refuse the table.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Aqm, Verdict};
use crate::{Block, Context, Environment, FromParams, Header, Instant, Occupancy, Origin};

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
    /// None where the queue is only looked at, and never meets a packet.
    aqm: Option<Box<dyn ForeignAqm>>,
}

impl Clone for Foreign {
    fn clone(&self) -> Self {
        Self { aqm: self.aqm.as_ref().map(|aqm| aqm.boxed_clone()) }
    }
}

impl Block for Foreign {
    type Params = ForeignParams;
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "decides as a class in Python does, a subclass of `perhop.Aqm`";
    const ORIGIN: Origin = Origin::published(2026, "the class that it names");
    const PRECOMPUTABLE: bool = false;
    const BATCHED: bool = true;
}

impl FromParams for Foreign {
    fn new(params: ForeignParams, environment: Environment) -> Self {
        Self { aqm: params.implementation.get().map(|implementation| implementation.build(environment)) }
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

    /// Drops every packet that finds so many waiting, counts its calls, and drops the first packet at departure.
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
    fn without_an_implementation_a_queue_can_be_looked_at() {
        let bench = Bench::new(fifo(read(r#"{"aqm": "python", "class": "my:Aqm"}"#), 1));
        assert!(bench.discipline().gauges().is_empty());
    }
}

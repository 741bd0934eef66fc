//! A congestion control that is implemented outside this crate, such as by a class in Python.
//!
//! Its table is the value of the key `congestion` and names the class; the other keys are the parameters of
//! the class, which this crate keeps as they are. Whoever runs a network gives each flow's table its
//! [`CongestionImplementation`]; a driver that has none must refuse the table. What the sender keeps for it
//! is said in the table, too, since others read that before a connection begins.

use std::fmt;
use std::sync::Arc;

use perhop_core::{Bitrate, Block, Duration, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, LostSegment, Needs, Setup};

/// The decisions of a congestion control that is implemented outside.
pub trait ForeignCongestion: CongestionControl + fmt::Debug + Send + Sync {
    /// It has these parameters from now on, and keeps its state.
    fn set_parameters(&mut self, parameters: &Map<String, Value>);

    /// A copy with a state of its own.
    fn boxed_clone(&self) -> Box<dyn ForeignCongestion>;
}

/// Makes the congestion controls of one flow, or of one population.
pub trait CongestionImplementation: fmt::Debug + Send + Sync {
    /// The control of a new connection.
    fn build(&self, setup: &Setup) -> Box<dyn ForeignCongestion>;
}

/// What the sender is to keep for such a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// See [`Needs::colors`].
    Colors,
    /// See [`Needs::delivery`].
    Delivery,
    /// See [`Needs::marks`].
    Marks,
    /// See [`Needs::pacing`].
    Pacing,
    /// See [`Needs::recovery`].
    Recovery,
    /// See [`Needs::l4s`].
    L4s,
}

/// The table of a congestion control that is implemented outside.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ForeignCongestionParams {
    /// The class, as `module:Class`; keys that are not listed here are its parameters.
    pub class: String,
    /// What the sender is to keep for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub needs: Vec<Need>,
    /// Its parameters.
    #[serde(flatten)]
    #[schemars(skip)]
    pub parameters: Map<String, Value>,
    #[serde(skip)]
    implementation: Option<Arc<dyn CongestionImplementation>>,
}

impl ForeignCongestionParams {
    /// Gives the table its implementation.
    pub fn implement(&mut self, implementation: Arc<dyn CongestionImplementation>) {
        self.implementation = Some(implementation);
    }

    /// Whether it can run.
    pub fn is_implemented(&self) -> bool {
        self.implementation.is_some()
    }

    /// What the sender keeps for it.
    pub(in crate::transport::tcp) fn needs(&self) -> Needs {
        Needs {
            colors: self.needs.contains(&Need::Colors),
            delivery: self.needs.contains(&Need::Delivery),
            marks: self.needs.contains(&Need::Marks),
            pacing: self.needs.contains(&Need::Pacing),
            recovery: self.needs.contains(&Need::Recovery),
            l4s: self.needs.contains(&Need::L4s),
        }
    }
}

impl PartialEq for ForeignCongestionParams {
    fn eq(&self, other: &Self) -> bool {
        (&self.class, &self.needs, &self.parameters) == (&other.class, &other.needs, &other.parameters)
    }
}

/// Decides as its implementation does.
#[derive(Debug)]
pub struct Foreign {
    /// None where the connection is only looked at, and never sends.
    control: Option<Box<dyn ForeignCongestion>>,
    needs: Needs,
}

impl Clone for Foreign {
    fn clone(&self) -> Self {
        Self { control: self.control.as_ref().map(|control| control.boxed_clone()), needs: self.needs }
    }
}

impl Foreign {
    /// See [`ForeignCongestion::set_parameters`].
    pub(in crate::transport::tcp) fn set_parameters(&mut self, parameters: &Map<String, Value>) {
        self.control().set_parameters(parameters);
    }

    fn control(&mut self) -> &mut dyn ForeignCongestion {
        self.control.as_deref_mut().expect("a driver refuses classes that it cannot run")
    }
}

impl Block for Foreign {
    type Params = Box<ForeignCongestionParams>;
    const NAME: &'static str = "python";
    const SUMMARY: &'static str =
        "decides as a class in Python does, a subclass of `perhop.CongestionControl`";
    const ORIGIN: Origin = Origin::published(2026, "the class that it names");
    const IS_OUTSIDE: bool = true;
}

impl Algorithm for Foreign {
    const BYTE_COUNTING: bool = true;
    const REDUCES_ITSELF: bool = true;
    const READS_RESERVED_RATE: bool = true;

    fn new(setup: &Setup, params: &Self::Params) -> Self {
        let control = params.implementation.as_ref().map(|implementation| implementation.build(setup));
        Self { control, needs: params.needs() }
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn needs_with(params: &Self::Params) -> Needs {
        params.needs()
    }

    fn label(params: &Self::Params) -> &str {
        &params.class
    }
}

impl CongestionControl for Foreign {
    fn on_ack(&mut self, ack: &AckSample) {
        self.control().on_ack(ack);
    }

    fn on_lost(&mut self, lost: &LostSegment) {
        self.control().on_lost(lost);
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.control().on_loss(event);
    }

    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        self.control().on_congestion_experienced(event);
    }

    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.control().on_timeout(event);
    }

    fn window(&self) -> f64 {
        self.control.as_ref().map_or(1.0, |control| control.window())
    }

    fn set_window(&mut self, window: f64) {
        self.control().set_window(window);
    }

    fn slow_start_threshold(&self) -> f64 {
        self.control.as_ref().map_or(0.0, |control| control.slow_start_threshold())
    }

    fn on_idle(&mut self, idle: Duration) {
        self.control().on_idle(idle);
    }

    fn leave_slow_start(&mut self) {
        self.control().leave_slow_start();
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.control.as_ref()?.pacing_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, begin, loss, setup};
    use super::super::{AnyCongestion, Reno};
    use super::*;
    use crate::transport::tcp::TcpParams;

    /// Reno, as it were implemented elsewhere.
    #[derive(Debug)]
    struct Renos;

    impl CongestionImplementation for Renos {
        fn build(&self, setup: &Setup) -> Box<dyn ForeignCongestion> {
            Box::new(begin::<Reno>(setup))
        }
    }

    impl ForeignCongestion for Reno {
        fn set_parameters(&mut self, parameters: &Map<String, Value>) {
            self.set_window(parameters["window"].as_f64().unwrap());
        }
        fn boxed_clone(&self) -> Box<dyn ForeignCongestion> {
            Box::new(self.clone())
        }
    }

    fn read(congestion: &str) -> Result<TcpParams, String> {
        let text = format!(r#"{{"tcp": "newreno", "congestion": {congestion}}}"#);
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    const TABLE: &str = r#"{"control":"python","class":"my:Reno","needs":["pacing"],"beta":0.5}"#;

    #[test]
    fn a_table_keeps_the_parameters_of_its_class_and_says_what_it_needs() {
        let params = read(TABLE).unwrap();
        assert!(params.needs().pacing);
        let class = params.congestion.0.foreign().unwrap();
        assert_eq!((class.class.as_str(), class.is_implemented()), ("my:Reno", false));
        let written = serde_json::to_value(&params).unwrap();
        assert_eq!(written["congestion"], serde_json::from_str::<Value>(TABLE).unwrap());
        assert_eq!(serde_json::from_value::<TcpParams>(written).unwrap(), params);
        assert_ne!(read(&TABLE.replace("0.5", "0.6")).unwrap(), params);
        for (table, problem) in [
            (r#"{"control": "python"}"#, "missing field `class`"),
            (r#""python""#, "missing field `class`"),
            (r#"{"beta": 0.5}"#, "key `control` is missing"),
            ("7", "congestion"),
        ] {
            let refused = read(table).unwrap_err();
            assert!(refused.contains(problem), "{table}: {refused}");
        }
    }

    #[test]
    fn a_sender_calls_its_implementation_and_copies_have_a_state_of_their_own() {
        let mut params = Box::new(read(TABLE).unwrap().congestion.0.foreign().unwrap().clone());
        assert_eq!(Foreign::new(&setup(), &params).window(), 1.0, "it is only looked at");
        params.implement(Arc::new(Renos));
        let mut control = AnyCongestion::Foreign(Box::new(Foreign::new(&setup(), &params)));
        let mut asked = None;
        let window = control.take(|needs| {
            asked = Some(needs.pacing);
            ack(1)
        });
        assert_eq!((window, asked), (10.1, Some(true)));
        let copy = control.clone();
        control.on_loss(&loss(8.0));
        assert_eq!((control.window(), control.slow_start_threshold(), copy.window()), (4.0, 4.0, 10.1));
        control.on_timeout(&loss(8.0));
        control.set_window(3.0);
        assert_eq!((control.window(), control.is_in_slow_start()), (3.0, true));
        control.leave_slow_start();
        control.on_congestion_experienced(&loss(8.0));
        assert_eq!((control.window(), control.pacing_rate()), (4.0, None));
        let AnyCongestion::Foreign(mut foreign) = control else { unreachable!() };
        foreign.set_parameters(&Map::from_iter([("window".to_owned(), Value::from(7))]));
        assert_eq!(foreign.window(), 7.0);
    }
}

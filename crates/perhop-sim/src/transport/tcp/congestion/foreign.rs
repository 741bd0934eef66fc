//! A congestion control that is implemented outside this crate: see [`Implementation`].
//!
//! Its table is the value of the key `congestion`, and lists what the sender keeps for it, since others read
//! that before a connection begins.

use std::fmt;

use ambassador::Delegate;
use dyn_clone::{DynClone, clone_trait_object};
use perhop_core::{Bitrate, Block, Duration, Implementation, Origin, Unimplemented};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AckSample, Algorithm, CongestionControl, CongestionEvent, LostSegment, Needs, Setup,
    ambassador_impl_CongestionControl,
};

/// A congestion control that is implemented outside.
pub trait ForeignCongestion: CongestionControl + DynClone + fmt::Debug + Send + Sync {
    /// Gives it other parameters during a run; its state stays.
    fn set_parameters(&mut self, parameters: &Map<String, Value>);
}

clone_trait_object!(ForeignCongestion);

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignCongestionParams {
    /// The class, as `module:Class`; keys that are not listed here are its parameters.
    pub class: String,
    /// What the sender is to keep for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub needs: Vec<Need>,
    /// The parameters of the congestion control.
    #[serde(flatten)]
    #[schemars(skip)]
    pub parameters: Map<String, Value>,
    /// Makes the controls of one flow, or of one population.
    #[serde(skip)]
    pub implementation: Implementation<Setup, dyn ForeignCongestion>,
}

impl ForeignCongestionParams {
    fn needs(&self) -> Needs {
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

/// Decides as its implementation does.
#[derive(Clone, Debug, Delegate)]
#[delegate(CongestionControl, target = "control")]
pub struct Foreign {
    control: Box<dyn ForeignCongestion>,
    needs: Needs,
}

impl Foreign {
    /// See [`ForeignCongestion::set_parameters`].
    pub(in crate::transport::tcp) fn set_parameters(&mut self, parameters: &Map<String, Value>) {
        self.control.set_parameters(parameters);
    }
}

impl Block for Foreign {
    type Params = Box<ForeignCongestionParams>;
    const NAME: &'static str = "python";
    const SUMMARY: &'static str =
        "Decides as a class in Python does, a subclass of `perhop.CongestionControl`";
    const ORIGIN: Origin = Origin::published(2026, "the class that it names");
    const IS_OUTSIDE: bool = true;
}

impl Algorithm for Foreign {
    const BYTE_COUNTING: bool = true;
    const REDUCES_ITSELF: bool = true;
    const READS_RESERVED_RATE: bool = true;

    fn new(setup: &Setup, params: &Self::Params) -> Self {
        let control = params.implementation.make(setup).unwrap_or_else(|| Box::new(Unimplemented));
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

impl CongestionControl for Unimplemented {
    fn on_ack(&mut self, _: &AckSample) {
        self.refuse()
    }
    fn on_loss(&mut self, _: &CongestionEvent) {
        self.refuse()
    }
    fn on_timeout(&mut self, _: &CongestionEvent) {
        self.refuse()
    }
    fn window(&self) -> f64 {
        1.0
    }
    fn set_window(&mut self, _: f64) {
        self.refuse()
    }
    fn slow_start_threshold(&self) -> f64 {
        0.0
    }
}

impl ForeignCongestion for Unimplemented {
    fn set_parameters(&mut self, _: &Map<String, Value>) {
        self.refuse()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, begin, loss, setup};
    use super::super::{AnyCongestion, Reno};
    use super::*;
    use crate::transport::tcp::TcpParams;

    /// Reno, as it were implemented elsewhere.
    impl ForeignCongestion for Reno {
        fn set_parameters(&mut self, parameters: &Map<String, Value>) {
            self.set_window(parameters["window"].as_f64().unwrap());
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
        assert_eq!((class.class.as_str(), class.implementation.is_set()), ("my:Reno", false));
        let written = serde_json::to_value(&params).unwrap();
        assert_eq!(written["congestion"], serde_json::from_str::<Value>(TABLE).unwrap());
        assert_eq!(serde_json::from_value::<TcpParams>(written).unwrap(), params);
        assert_ne!(read(&TABLE.replace("0.5", "0.6")).unwrap(), params);
        for (table, problem) in [
            (r#"{"control": "python"}"#, "missing field `class`"),
            (r#""python""#, "`python` means a class; write which, such as"),
            (r#"{"beta": 0.5}"#, "key `control` is missing"),
            ("7", "congestion"),
        ] {
            let refused = read(table).unwrap_err();
            assert!(refused.contains(problem), "{table}: {refused}");
        }
    }

    #[test]
    fn a_sender_calls_its_implementation_and_copies_have_a_state_of_their_own() {
        let params = Box::new(read(TABLE).unwrap().congestion.0.foreign().unwrap().clone());
        assert_eq!(Foreign::new(&setup(), &params).window(), 1.0, "it is only looked at");
        params.implementation.set(|setup| Box::new(begin::<Reno>(setup)));
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

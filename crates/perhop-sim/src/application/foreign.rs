//! Users that are implemented outside this crate: see [`Implementation`].
//!
//! What is measured is the same for all such users: the times from their requests to the responses.

use std::collections::VecDeque;
use std::fmt;

use dyn_clone::{DynClone, clone_trait_object};
use perhop_core::units::{UnitError, require};
use perhop_core::{Block, Bytes, Implementation, Instant, Origin, Rng, Unimplemented};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::request_response::RequestResponse;
use super::{Action, Application, Carrier, Commands, Direction, User, UserEvent, UserMeasure, check_request};

/// The decisions of a user that is implemented outside.
pub trait ForeignUser: DynClone + fmt::Debug + Send + Sync {
    /// Something happens to the user. Commands are added to `actions`.
    fn on_event(&mut self, event: UserEvent, now: Instant, actions: &mut Vec<Action>);
}

clone_trait_object!(ForeignUser);

/// Parameters of users that a class in Python decides for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignApplicationParams {
    /// The class, as `module:Class`; keys that are not listed here are its parameters.
    pub class: String,
    /// Size of an ordinary request, without headers: one of this size is one packet.
    #[serde(default = "request")]
    pub request: Bytes,
    /// How many connections each user has, which the class says.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(skip)]
    pub connections: u32,
    /// The parameters of the class.
    #[serde(flatten)]
    #[schemars(skip)]
    pub parameters: Map<String, Value>,
    /// Makes the user of a number, with its random stream, at the start of a run.
    #[serde(skip)]
    pub implementation: Implementation<(usize, Rng), dyn ForeignUser>,
}

const fn request() -> Bytes {
    Bytes::new(200)
}
const fn one() -> u32 {
    1
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

/// More connections of one user are a slip of the keyboard.
const MOST_CONNECTIONS: u32 = 1000;

impl ForeignApplicationParams {
    /// The user of this number, who has not begun.
    pub fn user(&self, member: usize, rng: Rng) -> Foreign {
        let user = self.implementation.make(&(member, rng)).unwrap_or_else(|| Box::new(Unimplemented));
        Foreign { user, open: vec![VecDeque::new(); self.connections as usize] }
    }
}

/// A user that decides as its implementation does.
#[derive(Clone, Debug)]
pub struct Foreign {
    user: Box<dyn ForeignUser>,
    /// For each connection: when its requests were made whose responses are not complete.
    open: Vec<VecDeque<Instant>>,
}

impl ForeignUser for Unimplemented {
    fn on_event(&mut self, _: UserEvent, _: Instant, _: &mut Vec<Action>) {
        self.refuse()
    }
}

impl Block for Foreign {
    type Params = ForeignApplicationParams;
    const NAME: &'static str = "python";
    const SUMMARY: &'static str =
        "Requests and responds as a class in Python does, a subclass of `perhop.Application`";
    const ORIGIN: Origin = Origin::published(2026, "the class that it names");
    const IS_OUTSIDE: bool = true;

    fn check(params: &ForeignApplicationParams) -> Result<(), UnitError> {
        let is_usual = (1..=MOST_CONNECTIONS).contains(&params.connections);
        require(is_usual, "connections", format_args!("a user has 1 to {MOST_CONNECTIONS} connections"))?;
        check_request(params.request)
    }
}

impl Application for Foreign {
    const MEASURES: &'static [UserMeasure] = <RequestResponse as Application>::MEASURES;

    fn new(params: &ForeignApplicationParams, rng: Rng) -> Self {
        params.user(0, rng)
    }

    fn connections(params: &ForeignApplicationParams) -> u32 {
        params.connections
    }

    fn carrier(params: &ForeignApplicationParams) -> Carrier {
        Carrier::Tcp { request: params.request }
    }
}

impl User for Foreign {
    fn on_event(&mut self, event: UserEvent, commands: &mut Commands<'_>) {
        if let UserEvent::Arrived { connection, direction: Direction::Response } = event
            && let Some(began) = self.open[connection as usize].pop_front()
            && commands.counts(began)
        {
            commands.recorded.sample("response_s", commands.now.since(began).as_secs_f64());
        }
        let before = commands.actions.len();
        self.user.on_event(event, commands.now, commands.actions);
        for action in &commands.actions[before..] {
            if let Action::Grant { connection, direction: Direction::Request, .. } = action {
                self.open[*connection as usize].push_back(commands.now);
            }
        }
    }

    fn finish(&mut self, commands: &mut Commands<'_>) {
        for &began in self.open.iter().flatten() {
            if !commands.counts(began) {
                continue;
            }
            commands.recorded.add("unfinished", 1.0);
            commands.recorded.leave_open("response_s", commands.now.since(began).as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ApplicationParams;
    use super::*;
    use crate::application::Recorded;
    use perhop_core::Duration;

    /// Asks on each of two connections, and again a second after each response.
    #[derive(Clone, Debug)]
    struct Asks(u32);

    impl ForeignUser for Asks {
        fn on_event(&mut self, event: UserEvent, now: Instant, actions: &mut Vec<Action>) {
            self.0 += 1;
            let grant = |connection, direction, bytes| Action::Grant { connection, direction, bytes };
            match event {
                UserEvent::Begins => actions.extend([0, 1].map(|one| grant(one, Direction::Request, 100))),
                UserEvent::Arrived { connection, direction: Direction::Request } => {
                    actions.push(grant(connection, Direction::Response, 5000));
                }
                _ => actions.push(Action::WakeAt(now + Duration::from_secs(1))),
            }
        }
    }

    fn read(inside: &str) -> Result<ForeignApplicationParams, String> {
        let text = format!(r#"{{"model":"python","class":"my:Asks",{inside}"request":"100B"}}"#);
        let read: ApplicationParams = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
        let ApplicationParams::Foreign(params) = read else { panic!("{read:?}") };
        Ok(params)
    }

    #[test]
    fn a_table_keeps_the_parameters_of_its_class() {
        let params = read(r#""connections":2,"depth":{"a":[1]},"#).unwrap();
        assert_eq!((params.connections, params.implementation.is_set()), (2, false));
        assert_eq!(params.parameters["depth"]["a"][0], 1);
        assert!(read(r#""connections":0,"#).unwrap_err().contains("1 to 1000 connections"));
    }

    #[test]
    fn times_of_responses_are_measured_by_connection() {
        let params = read(r#""connections":2,"#).unwrap();
        params.implementation.set(|(member, _)| Box::new(Asks(*member as u32)));
        let mut user = params.user(7, Rng::stream(1, "test"));
        let (mut recorded, mut actions) = (Recorded::default(), Vec::new());
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        let mut tell = |user: &mut Foreign, event: UserEvent, seconds: u64| {
            actions.clear();
            let (actions, recorded, now) = (&mut actions, &mut recorded, at(seconds));
            user.on_event(event, &mut Commands { now, warmup: at(1), actions, recorded });
            actions.len()
        };
        let arrived = |connection, direction| UserEvent::Arrived { connection, direction };
        assert_eq!(tell(&mut user, UserEvent::Begins, 2), 2);
        assert_eq!(tell(&mut user, arrived(1, Direction::Request), 3), 1);
        let mut copy = user.clone();
        assert_eq!(tell(&mut user, arrived(1, Direction::Response), 6), 1);
        tell(&mut copy, arrived(1, Direction::Response), 9);
        let mut end = Commands { now: at(9), warmup: at(1), actions: &mut actions, recorded: &mut recorded };
        user.finish(&mut end);
        assert_eq!(recorded.samples_of("response_s"), [4.0, 7.0], "of the user, and of its copy");
        assert_eq!((recorded.sum_of("unfinished"), recorded.open_of("response_s")), (1.0, &[7.0][..]));
    }
}

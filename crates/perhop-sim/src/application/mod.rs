//! Applications: what has data to send over transports, and waits for answers.
//!
//! A user of an application is a state machine without I/O over the connections that it has: events come in,
//! commands go out. A connection is a pair of flows, one in each direction. All that a user draws (sizes,
//! numbers, times) comes from a stream of its own, `applications/GROUP/MEMBER`, in an order that does not
//! depend on the network: every mechanism gets the same users.
//!
//! An application is one file and its registration in `register_applications!`.
//!
//! ## Deviations
//! - Each direction of a connection is a flow of its own, whose data carries ACKs of the other one. An
//!   application that answers at once does so before an ACK is sent that is due at once.
//! - A connection opens (`handshake`) in the direction of requests; the responses of it need no handshake.

mod call;
mod distributions;
mod foreign;
mod game;
mod measures;
mod request_response;
mod video;
mod web;

use perhop_core::units::{UnitError, require};
use perhop_core::{Block, Bytes, Duration, Instant, Rng, Role, register_params};

pub use call::{Call, CallParams};
pub use distributions::{Lognormal, Pareto};
pub use foreign::{Foreign, ForeignApplicationParams, ForeignUser};
pub use game::{ExtremeValue, Game, GameParams};
pub use measures::{Recorded, UserMeasure};
pub use request_response::{RequestResponse, RequestResponseParams, Spread};
pub use video::{Video, VideoParams};
pub use web::{Web, WebParams};

use crate::transport::udp::UdpParams;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client: that of the group's flows, `from` its routers `to` theirs.
    Response,
}

/// What happens to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserEvent {
    /// The user begins.
    Begins,
    /// All bytes of the first open grant on this connection and in this direction have arrived.
    Arrived {
        /// The connection's number.
        connection: u32,
        /// The direction.
        direction: Direction,
    },
    /// A datagram has arrived.
    Datagram {
        /// The connection's number.
        connection: u32,
        /// The direction.
        direction: Direction,
        /// How long it took.
        transit: Duration,
    },
    /// The time of the last [`wake_at`](Commands::wake_at) has come.
    Wakes,
}

/// What a user wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// So many bytes more are to be sent.
    Grant {
        /// The connection's number.
        connection: u32,
        /// The direction.
        direction: Direction,
        /// Payload, without headers.
        bytes: u64,
    },
    /// A datagram is to be sent.
    Send {
        /// The connection's number.
        connection: u32,
        /// The direction.
        direction: Direction,
        /// The size of the datagram on the wire.
        size: u16,
    },
    /// In place of an earlier time.
    WakeAt(Instant),
}

/// Takes a user's commands, and what it measures.
#[derive(Debug)]
pub struct Commands<'a> {
    /// The time.
    pub now: Instant,
    /// The warm-up ends.
    pub warmup: Instant,
    /// Commands so far.
    pub actions: &'a mut Vec<Action>,
    /// What the group has measured.
    pub recorded: &'a mut Recorded,
}

impl Commands<'_> {
    /// Has the client ask for something, in so many bytes.
    pub fn request(&mut self, connection: u32, bytes: Bytes) {
        self.actions.push(Action::Grant { connection, direction: Direction::Request, bytes: bytes.get() });
    }

    /// Has the server answer with so many bytes.
    pub fn respond(&mut self, connection: u32, bytes: u64) {
        self.actions.push(Action::Grant { connection, direction: Direction::Response, bytes });
    }

    /// Sends a datagram.
    pub fn send(&mut self, connection: u32, direction: Direction, size: u16) {
        self.actions.push(Action::Send { connection, direction, size });
    }

    /// Has the user woken then, in place of an earlier time.
    pub fn wake_at(&mut self, at: Instant) {
        self.actions.push(Action::WakeAt(at));
    }

    /// Records the time since then under this name, if what began then counts.
    fn sample_time(&mut self, name: &'static str, began: Instant) {
        if self.counts(began) {
            self.recorded.sample(name, self.now.since(began).as_secs_f64());
        }
    }

    /// Records under this name that what began then has not ended yet, if it counts.
    fn leave_open(&mut self, name: &'static str, began: Instant) {
        if self.counts(began) {
            self.recorded.leave_open(name, self.now.since(began).as_secs_f64());
        }
    }

    /// Returns whether what began then counts: no measure includes the warm-up.
    pub fn counts(&self, began: Instant) -> bool {
        began >= self.warmup
    }
}

/// A user of an application, as the engine drives it.
#[ambassador::delegatable_trait]
pub trait User {
    /// Takes an event of the user.
    fn on_event(&mut self, event: UserEvent, commands: &mut Commands<'_>);

    /// Records what is unfinished at the end of the run. Commands have no effect.
    fn finish(&mut self, commands: &mut Commands<'_>);
}

/// What transport an application runs over.
#[derive(Clone, Debug, PartialEq)]
pub enum Carrier {
    /// TCP, with the parameters of the group: requests of so many bytes.
    Tcp {
        /// The bytes of a request, without headers.
        request: Bytes,
    },
    /// Datagrams over UDP, which its users send one by one.
    Datagrams {
        /// The largest, with headers.
        largest: Bytes,
    },
    /// Sources over UDP that send by themselves, one in each direction.
    Sources(UdpParams),
}

/// The declaration of an application beside its [`Block`]: how users come into being, and what they need and
/// measure.
pub trait Application: Block + User {
    /// The measures of the users of a group.
    const MEASURES: &'static [UserMeasure];

    /// Makes a user with this stream, which has not begun.
    fn new(params: &Self::Params, rng: Rng) -> Self;

    /// Returns how many connections a user has.
    fn connections(_params: &Self::Params) -> u32 {
        1
    }

    /// Returns the transport that the application runs over.
    fn carrier(params: &Self::Params) -> Carrier;
}

/// Makes the enums over the parameters and the users of all applications.
macro_rules! register_applications {
    ($($variant:ident($user:ty),)+) => {
        register_params!(Role::Application, "model", ApplicationParams, $($variant($user),)+);

        /// A user of any application.
        #[derive(Clone, Debug, ambassador::Delegate)]
        #[delegate(User)]
        pub enum AnyUser {
            $(#[doc = concat!("See [`", stringify!($user), "`].")] $variant($user),)+
        }

        impl ApplicationParams {
            /// Makes a user with this stream.
            pub fn user(&self, rng: Rng) -> AnyUser {
                match self { $(Self::$variant(params) => AnyUser::$variant(<$user as Application>::new(params, rng)),)+ }
            }

            /// Returns how many connections a user has.
            pub fn connections(&self) -> u32 {
                match self { $(Self::$variant(params) => <$user as Application>::connections(params),)+ }
            }

            /// Returns the transport that the application runs over.
            pub fn carrier(&self) -> Carrier {
                match self { $(Self::$variant(params) => <$user as Application>::carrier(params),)+ }
            }

            /// Returns the measures of the users of a group.
            pub fn measures(&self) -> &'static [UserMeasure] {
                match self { $(Self::$variant(_) => <$user as Application>::MEASURES,)+ }
            }
        }

        /// Returns the measures of each application, by its name.
        pub fn all_measures() -> Vec<(&'static str, &'static [UserMeasure])> {
            vec![$((<$user as Block>::NAME, <$user as Application>::MEASURES)),+]
        }
    };
}

register_applications! {
    Web(Web),
    Video(Video),
    RequestResponse(RequestResponse),
    Game(Game),
    Call(Call),
    Foreign(Foreign),
}

/// The longest request: more are a slip of the keyboard.
const LONGEST_REQUEST: Bytes = Bytes::new(1_000_000);

fn check_request(request: Bytes) -> Result<(), UnitError> {
    let is_usual = request.get() > 0 && request <= LONGEST_REQUEST;
    require(is_usual, "request", "a request has 1B to 1MB")
}

#[cfg(test)]
mod testing;

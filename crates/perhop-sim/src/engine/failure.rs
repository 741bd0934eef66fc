//! Why a run gives no outcome, the batched engine refuses a network, and a network runs on one thread.

use perhop_core::{Duration, Imbalance};

use crate::choice::Refusal;
use crate::network::NoRoute;
use crate::watch::Stopped;

/// The reason why a run gives no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A flow's endpoints are not connected, or not by its path.
    #[error("{0}")]
    NoRoute(NoRoute),
    /// The batched engine was requested, and refuses the network.
    #[error("the batched engine cannot run this network: {0}")]
    Refused(Refusal),
    /// The routers cannot be divided among threads as requested.
    #[error("the network cannot be divided so: {0}")]
    Undivided(OneThread),
    /// A block is implemented outside, and whoever runs the network has not given its implementation.
    #[error("{place}: `{class}` is a class in Python, which can run only where Python does")]
    NotImplemented {
        /// The class that its table names.
        class: String,
        /// The block's place, such as the link.
        place: String,
    },
    /// A queue lost or invented packets.
    #[error("{0}")]
    Imbalance(Imbalance),
    /// The watch stopped it.
    #[error("the run was stopped before its end")]
    Stopped,
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// A thread has at least so many links to simulate: with fewer it would mostly wait for the others.
pub const LINKS_PER_THREAD: usize = 32;

/// The reason why a network runs on one thread.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OneThread {
    /// One thread was asked for.
    #[error("one thread was asked for")]
    Asked,
    /// The network has too few links.
    #[error("it has {links} directions of links, and a thread needs at least {}", LINKS_PER_THREAD)]
    Small {
        /// The number of directions of links.
        links: usize,
    },
    /// A window control reads what happens anywhere on its path.
    #[error("the window control of path `{path}` joins its routers")]
    Control {
        /// The path's name.
        path: String,
    },
    /// Flows come and go.
    #[error("flows of `{}` come and go", group_of(.flow))]
    Population {
        /// The name of the flow that represents them.
        flow: String,
    },
    /// Users of an application, whose flows depend on one another.
    #[error("the flows of the users of `{group}` depend on one another")]
    Application {
        /// The group's name.
        group: String,
    },
    /// The routers cannot be divided into parts of about equal work between which packets take time.
    #[error("its routers cannot be divided into parts of about equal work with delay between them")]
    Undivided,
    /// The parts would have to wait for one another too often.
    #[error(
        "a packet may come from one part of it to another within {} ns, in which too little happens",
        .lookahead.as_nanos()
    )]
    Brief {
        /// A packet may come from one part to another so soon.
        lookahead: Duration,
    },
    /// The batched engine does not run it; the reference engine uses one thread.
    #[error("the reference engine runs it, which uses one thread")]
    Reference,
}

/// Returns the group of a flow of a population: the name without its last part.
fn group_of(flow: &str) -> &str {
    flow.rsplit_once('/').map_or(flow, |(group, _)| group)
}

//! Why a run gives no outcome, why the batched engine refuses a network, and why a network runs on one
//! thread.

use std::fmt;

use perhop_core::{Duration, Imbalance};

use crate::choice::Refusal;
use crate::network::NoRoute;
use crate::watch::Stopped;

/// The reason why a run gives no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A flow's endpoints are not connected, or not by its path.
    NoRoute(NoRoute),
    /// The batched engine was requested, and refuses the network.
    Refused(Refusal),
    /// The routers cannot be divided among threads as requested.
    Undivided(OneThread),
    /// A block is implemented outside, and whoever runs the network has not given its implementation.
    NotImplemented {
        /// The class that its table names.
        class: String,
        /// The block's place, such as the link.
        place: String,
    },
    /// A queue lost or invented packets.
    Imbalance(Imbalance),
    /// The watch stopped it.
    Stopped,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute(refused) => refused.fmt(f),
            Self::Refused(refusal) => write!(f, "the batched engine cannot run this network: {refusal}"),
            Self::Undivided(reason) => write!(f, "the network cannot be divided so: {reason}"),
            Self::NotImplemented { class, place } => {
                write!(f, "{place}: `{class}` is a class in Python, which can run only where Python does")
            }
            Self::Imbalance(imbalance) => imbalance.fmt(f),
            Self::Stopped => f.write_str("the run was stopped before its end"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// A thread has at least so many links to simulate: with fewer it would mostly wait for the others.
pub const LINKS_PER_THREAD: usize = 32;

/// The reason why a network runs on one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneThread {
    /// One thread was asked for.
    Asked,
    /// The network has too few links.
    Small {
        /// The number of directions of links.
        links: usize,
    },
    /// A window control reads what happens anywhere on its path.
    Control {
        /// The path's name.
        path: String,
    },
    /// Flows come and go.
    Population {
        /// The name of the flow that represents them.
        flow: String,
    },
    /// Users of an application, whose flows depend on one another.
    Application {
        /// The group's name.
        group: String,
    },
    /// The routers cannot be divided into parts of about equal work between which packets take time.
    Undivided,
    /// The parts would have to wait for one another too often.
    Brief {
        /// A packet may come from one part to another so soon.
        lookahead: Duration,
    },
    /// The batched engine does not run it; the reference engine uses one thread.
    Reference,
}

impl fmt::Display for OneThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("one thread was asked for"),
            Self::Small { links } => {
                write!(
                    f,
                    "it has {links} directions of links, and a thread needs at least {LINKS_PER_THREAD}"
                )
            }
            Self::Control { path } => write!(f, "the window control of path `{path}` joins its routers"),
            Self::Population { flow } => {
                let group = flow.rsplit_once('/').map_or(flow.as_str(), |(group, _)| group);
                write!(f, "flows of `{group}` come and go")
            }
            Self::Application { group } => {
                write!(f, "the flows of the users of `{group}` depend on one another")
            }
            Self::Undivided => f.write_str(
                "its routers cannot be divided into parts of about equal work with delay between them",
            ),
            Self::Brief { lookahead } => write!(
                f,
                "a packet may come from one part of it to another within {} ns, in which too little happens",
                lookahead.as_nanos()
            ),
            Self::Reference => f.write_str("the reference engine runs it, which uses one thread"),
        }
    }
}

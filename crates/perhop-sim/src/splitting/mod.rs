//! Rare events by splitting: losses of one packet in a million, and the tail of waiting times.
//!
//! The method is RESTART (M. and J. Villén-Altamirano, "RESTART: a method for accelerating rare event
//! simulations", ITC-13, 1991; "Analysis of RESTART simulation: theoretical basis and sensitivity study",
//! European Transactions on Telecommunications 13(4), 2002). An [`Importance`] says how near the state of a
//! run is to the rare event, by the backlog of a queue; [levels](Level) L1 < … < Lm divide it, each with a
//! number of trials R1, …, Rm. Wherever a run rises to level Li, it is copied, so that Ri trials go on from
//! there, each with random numbers of its own. All of them but one, the original, end where they fall below
//! Li; the original goes on. Above levels 1 to i there are R1·…·Ri trials for one of a plain run, and what
//! happens there counts 1/(R1·…·Ri).
//!
//! # Why the estimate is unbiased
//!
//! A run is a chain of events, and rising to Li or falling below it are stopping times of this chain. A
//! packet that is counted at an event has the weight of the levels that hold *before* the event: the event
//! by which a trial rises is counted before it is copied, once; the event by which it falls is the last one
//! of every trial that ends there. From the rise on, each of the Ri trials follows the law of the run, given
//! what has happened by then: a copy keeps all state, and what it draws from then on is independent of the
//! past. What is drawn already, such as the time of a source's next packet, the copy either keeps, as the
//! original drew it, or draws anew, given that it has not come by then ([`Stepping::reseeded`]); both have
//! that law. So a trial's expected count from the rise to the fall is that of the original, and Ri trials
//! with the weight 1/Ri have the expected count of one. By induction over the levels, from the highest to
//! the lowest, the expected weighted count of a run with splitting is the expected count of a plain run of
//! the same duration, whatever importance, levels and numbers of trials are; these decide about the variance
//! alone. They must not depend on the random numbers of the run itself, so [`pilot`] finds them by runs of
//! its own. Trials of one original are dependent: intervals need independent runs.
//!
//! Where all Ri are 1, nothing is copied, and the run is the plain run, to the bit.
//!
//! ```
//! use perhop_core::Duration;
//! use perhop_sim::splitting::{self, Event, Importance, Level, Plan};
//! # use perhop_core::{Bitrate, Unit};
//! # use perhop_sim::{LinkSpec, Network, NodeId, Watch};
//! # let mut network = Network::new(Duration::from_secs(1));
//! # network.nodes = 2;
//! # network.links.push(LinkSpec {
//! #     name: "line".into(), from: NodeId(0), to: NodeId(1), delay: Duration::ZERO,
//! #     rate: Bitrate::from_bps(1_000_000).unwrap(), queue: Some(LinkSpec::unlimited()),
//! #     meters: Vec::new(), medium: perhop_core::medium::Medium::default(),
//! # });
//! let importance = Importance { link: 0, class: None, unit: Unit::Packets, lingers: false };
//! let levels = vec![Level { from: 5, trials: 4 }, Level { from: 10, trials: 7 }];
//! let plan = Plan { importance, levels, event: Event::Loss, most_events: 1_000_000 };
//! let counts = splitting::run(&network, 1, &plan, &Watch::default()).expect("the link has a queue");
//! assert_eq!(counts.events, counts.main_events); // nothing came, so no level was reached
//! ```

mod counts;
mod pilot;
mod run;

use perhop_core::{Duration, Unit};
use serde::{Deserialize, Serialize};

pub use counts::{ClassCounts, Counts, LevelCounts, WaitBin};
pub use pilot::{Ending, Goal, Pilot, pilot};
pub use run::run;

use crate::engine::{Failure, Stepping};
use crate::network::Network;

/// The measure of how near a run is to the rare event: the backlog of a link's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Importance {
    /// The number of the link, which has a queue.
    pub link: usize,
    /// The number of the class whose backlog it is, and whose packets the event is about; `None` for all.
    pub class: Option<usize>,
    /// How the backlog is measured.
    pub unit: Unit,
    /// The importance is the largest backlog that a packet which still waits met when it came, its own part
    /// included, if that is more than the backlog now. A packet that comes to a long queue leaves it late,
    /// when fewer may wait; without this, a trial would end before its wait is known.
    pub lingers: bool,
}

impl Importance {
    /// Returns whether it is about packets of this class.
    pub(crate) fn is_of(self, class: usize) -> bool {
        self.class.is_none_or(|only| only == class)
    }
}

/// A level of importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The least importance of the level.
    pub from: u64,
    /// How many trials go on where one rises to the level, the original included; at least 1.
    pub trials: u32,
}

/// The rare event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The queue drops it.
    Loss,
    /// The packet waits longer than this.
    Wait(Duration),
}

/// How a run is split, and what is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How near a state is to the event.
    pub importance: Importance,
    /// Levels, in rising order.
    pub levels: Vec<Level>,
    /// The event.
    pub event: Event,
    /// A run that takes more events than this is given up.
    pub most_events: u64,
}

/// The reason why a run with splitting gives no counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsplit {
    /// The run itself gives none.
    #[error("{0}")]
    Failed(#[from] Failure),
    /// The link has no queue under an AQM, or the queue has no class of this number.
    #[error("the link has no such queue")]
    NoQueue,
    /// Levels do not rise, or one has no trial.
    #[error("levels must rise from 1 on, each with at least one trial")]
    NotRising,
    /// Trials multiply, or the run is too long.
    #[error("the run takes more than {most} events{}", cause(*.is_split))]
    TooMany {
        /// How many it may take.
        most: u64,
        /// A plain run would take fewer.
        is_split: bool,
    },
}

/// Returns why a run takes too many events, and what helps.
fn cause(is_split: bool) -> &'static str {
    if is_split {
        ": its trials multiply; give fewer trials a level, or levels that are farther apart"
    } else {
        "; give it a shorter duration"
    }
}

/// Starts the reference engine at a network without probes, which change nothing.
fn start(network: &Network, seed: u64, importance: Importance) -> Result<Stepping, Unsplit> {
    let network = Network { probe_interval: None, ..network.clone() };
    let mut run = Stepping::new(&network, seed, crate::Engine::Reference)?;
    let classes = run.link(importance.link).map_or(0, |view| view.classes.len());
    if importance.class.map_or(classes == 0, |class| class >= classes) || !run.count(importance) {
        return Err(Unsplit::NoQueue);
    }
    Ok(run)
}

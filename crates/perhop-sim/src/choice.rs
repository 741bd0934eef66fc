//! The two engines by name, and why one of them runs a network.

/// An engine, which computes a run. Both give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Links process their arrivals in batches, as far ahead of the clock as their delays allow (look-ahead
    /// of conservative parallel simulation). For networks that it accepts.
    Batched,
    /// One event for each hop, in the order of time. For any network.
    Reference,
}

impl Engine {
    /// Both engines.
    pub const ALL: [Self; 2] = [Self::Batched, Self::Reference];

    /// The name that users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Batched => "batched",
            Self::Reference => "reference",
        }
    }
}

/// The engine of a run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineUsed {
    /// The batched engine, which accepted the network.
    Batched,
    /// The reference engine, because it was requested.
    Requested,
    /// The reference engine, because the batched engine refused the network.
    Refused(Refusal),
    /// The reference engine, because the packets of the run were observed.
    Observed,
}

impl EngineUsed {
    /// The engine.
    pub const fn engine(&self) -> Engine {
        match self {
            Self::Batched => Engine::Batched,
            Self::Requested | Self::Refused(_) | Self::Observed => Engine::Reference,
        }
    }

    /// The reason why the reference engine ran; `None` for the batched engine.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Batched => None,
            Self::Requested => Some("requested".into()),
            Self::Refused(refusal) => Some(refusal.to_string()),
            Self::Observed => Some("its packets are recorded".into()),
        }
    }
}

/// The reason why the batched engine refuses a network, which then runs on the reference engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A packet passes this link in less than a nanosecond, the resolution of the clock.
    #[error("link `{link}` leaves no look-ahead: a packet passes it in less than 1 ns")]
    NoLookahead {
        /// The link's name.
        link: String,
    },
    /// A block does not declare that it can be batched: [`Block::BATCHED`](perhop_core::Block::BATCHED).
    #[error("{role} `{name}` of {place} does not declare that it can be batched")]
    Block {
        /// The block's role, such as `AQM`.
        role: &'static str,
        /// The name in scenarios.
        name: &'static str,
        /// The link, profile or group where it is.
        place: String,
    },
    /// Users of an application whose hosts no link joins.
    #[error("no link lies between the hosts of the users of `{group}`")]
    Application {
        /// The group's name.
        group: String,
    },
}

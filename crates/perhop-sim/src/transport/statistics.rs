//! What senders count.

use super::limits::LimitTimes;

/// Which of its [statistics](SenderStatistics) a sender counts. The others have no value for its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// UDP counts the packets that it sends, and nothing else.
    #[default]
    Sent,
    /// RAP and TFRC also count loss events and timeouts. They send no packet again.
    LossEvents,
    /// TCP also counts acknowledged segments, those that it sends again, and timeouts.
    Segments {
        /// With ECN it counts the reductions of its window because of marks.
        ecn: bool,
    },
    /// TCP of a kernel counts neither fast retransmits nor reductions because of marks.
    Kernel {
        /// Linux counts timeouts since 6.7.
        timeouts: bool,
    },
}

impl Counted {
    /// Returns whether the sender retransmits lost packets, and ACKs report what arrived in order.
    pub fn repairs(self) -> bool {
        matches!(self, Self::Segments { .. } | Self::Kernel { .. })
    }

    /// Returns whether the sender has a timer for missing ACKs or reports, and counts how often that expires.
    pub fn timeouts(self) -> bool {
        match self {
            Self::Sent => false,
            Self::LossEvents | Self::Segments { .. } => true,
            Self::Kernel { timeouts } => timeouts,
        }
    }

    /// Returns whether the sender counts fast retransmits.
    pub fn fast_retransmits(self) -> bool {
        matches!(self, Self::Segments { .. })
    }

    /// Returns whether the sender counts loss events, each of which lowers its rate once.
    pub fn loss_events(self) -> bool {
        self == Self::LossEvents
    }

    /// Returns whether the sender counts reductions of its window because of marks.
    pub fn ecn_reductions(self) -> bool {
        self == Self::Segments { ecn: true }
    }
}

/// What a sender counts, as far as its transport has it (see [`Counted`]); the rest is 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SenderStatistics {
    /// Packets sent, retransmissions included.
    pub sent: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts; of RAP, loss events found by a timeout; of TFRC, expiries of the nofeedback
    /// timer.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Reductions of the window because packets were marked.
    pub ecn_reductions: u64,
    /// Loss events, each of which lowers the rate once.
    pub loss_events: u64,
    /// Data packets sent once that were acknowledged (TFRC: that feedback answered), and the exact sum of
    /// their round trips in nanoseconds, each from its sending to the ACK that first covers it.
    pub rtt_samples: (u64, u128),
    /// Round trips that the sender timed for its retransmission timer, the SYN's included, and their exact
    /// sum in nanoseconds (TCP).
    pub timed_rtt_samples: (u64, u128),
    /// What kept it from sending more, and for how long (TCP).
    pub limits: LimitTimes,
}

impl SenderStatistics {
    /// Adds what another sender has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.fast_retransmits += other.fast_retransmits;
        self.ecn_reductions += other.ecn_reductions;
        self.loss_events += other.loss_events;
        self.rtt_samples.0 += other.rtt_samples.0;
        self.rtt_samples.1 += other.rtt_samples.1;
        self.timed_rtt_samples.0 += other.timed_rtt_samples.0;
        self.timed_rtt_samples.1 += other.timed_rtt_samples.1;
        self.limits.join(&other.limits);
    }

    /// Returns what has come since an earlier count.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let new = |now: (u64, u128), then: (u64, u128)| (now.0 - then.0, now.1 - then.1);
        Self {
            sent: self.sent - before.sent,
            retransmitted: self.retransmitted - before.retransmitted,
            timeouts: self.timeouts - before.timeouts,
            fast_retransmits: self.fast_retransmits - before.fast_retransmits,
            ecn_reductions: self.ecn_reductions - before.ecn_reductions,
            loss_events: self.loss_events - before.loss_events,
            rtt_samples: new(self.rtt_samples, before.rtt_samples),
            timed_rtt_samples: new(self.timed_rtt_samples, before.timed_rtt_samples),
            limits: self.limits.since(&before.limits),
        }
    }
}

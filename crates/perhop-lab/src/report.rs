//! The report on a run besides its outcome: how well the machine kept up.

use perhop_core::{Duration, Instant};
use perhop_live::PlaneCounters;

/// How well a run went.
#[derive(Clone, Debug)]
pub struct LabReport {
    /// Why the machine could have changed the result; empty for a valid run.
    pub invalid: Vec<String>,
    /// What a reader should know: what the kernel did in place of what the scenario asks for.
    pub notes: Vec<String>,
    /// How late packets left the router.
    pub late: Late,
    /// The router's thread had real-time priority.
    pub real_time: bool,
    /// CPU time of the router's thread. What the kernel does when a packet is handed to a host is part of it.
    pub cpu: Duration,
    /// Wall time of the run.
    pub wall: Duration,
    /// What the router read, sent and lost.
    pub counters: PlaneCounters,
    /// Packets that were lost outside the router.
    pub drops: Drops,
    /// The kernel's release.
    pub kernel: String,
    /// For each group of flows, the kernel's congestion control, or the simulator's sender.
    pub senders: Vec<String>,
}

/// How late packets left the router, compared with when a router that is never late would have sent them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Late {
    /// Half of the packets left no later.
    pub p50: Duration,
    /// 90 % did.
    pub p90: Duration,
    /// 99 % did.
    pub p99: Duration,
    /// 99.9 % did.
    pub p999: Duration,
    /// The latest.
    pub largest: Duration,
    /// The longest time in which the router did not read its devices.
    pub pause: Duration,
    /// The greatest `p99` that is allowed.
    pub allowed: Duration,
}

/// Packets lost outside the router, where no queue of the scenario is: there must be none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// In the kernel's queues to the router.
    pub to_router: u64,
    /// In the kernel's queues to a host.
    pub to_hosts: u64,
    /// Found no buffer in the router.
    pub no_buffer: u64,
    /// Not taken by a device.
    pub unsent: u64,
}

impl LabReport {
    /// Returns whether nothing that the machine did could have changed the result.
    pub fn is_valid(&self) -> bool {
        self.invalid.is_empty()
    }
}

/// A run while it is on.
#[derive(Clone, Debug)]
pub struct Glimpse {
    /// When.
    pub at: Instant,
    /// Bytes on the wire that the receivers of each group of flows have got for the first time.
    pub received: Vec<f64>,
    /// Each link with a queue.
    pub links: Vec<GlimpseOfLink>,
    /// How late packets left since the warm-up: half of them, 99 %, the latest.
    pub late: (Duration, Duration, Duration),
    /// Packets inside the router.
    pub inside: u64,
}

/// A link while a run is on.
#[derive(Clone, Debug)]
pub struct GlimpseOfLink {
    /// The name of the link.
    pub name: String,
    /// Packets waiting.
    pub waiting: u64,
    /// Packets sent since the run began.
    pub sent: u64,
    /// Packets dropped since the run began, by reason.
    pub dropped: Vec<(&'static str, u64)>,
}

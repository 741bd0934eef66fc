//! Tail loss probes (RFC 8985, section 7) ask for an ACK where a flight's last segments may be lost.

use perhop_core::{Duration, Instant};

use super::Rack;
use crate::transport::tcp::rto::PROBE_TIMEOUTS;

/// `TLP.max_ack_delay`: how long a receiver may keep the ACK of a single segment.
const MOST_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe timeout without a round trip.
const FIRST_PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// A loss probe without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    end: u32,
    again: bool,
}

/// What an ACK says of a probe (section 7.4).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ProbeAnswer {
    /// Everything below has arrived.
    pub(in super::super) expected: u32,
    /// The segment that had arrived before (DSACK).
    pub(in super::super) duplicate: Option<u32>,
    /// The ACK reports nothing new.
    pub(in super::super) is_pure_duplicate: bool,
}

/// What the probe timeout depends on besides the flight.
#[derive(Clone, Copy, Debug)]
pub(in super::super::super) struct Timer {
    pub(in super::super::super) smoothed_rtt: Option<Duration>,
    /// The retransmission timeout, and when its timer expires.
    pub(in super::super::super) timeout: Duration,
    pub(in super::super::super) expiry: Instant,
}

impl Rack {
    /// Restarts the probe timer, since new data was sent or acknowledged: a probe follows if nothing else
    /// happens (section 7.2).
    pub(in super::super) fn arm_probe(&mut self, timer: Timer, now: Instant) {
        let left = timer.expiry.since(now);
        let timeout = if self.is_quic {
            Duration::from_nanos(timer.timeout.as_nanos() / u64::from(PROBE_TIMEOUTS)).min(left)
        } else {
            probe_timeout(timer.smoothed_rtt, self.segments.len(), left)
        };
        self.probe_at = now + timeout;
    }

    /// Stops the probe timer: nothing is outstanding, or losses are being repaired or looked for.
    pub(in super::super) fn disarm_probe(&mut self) {
        self.probe_at = Instant::NEVER;
    }

    /// Forgets a probe that is unanswered, and stops the timer.
    pub(in super::super) fn forget_probe(&mut self) {
        self.probe = None;
        self.disarm_probe();
    }

    /// Returns whether the probe timer has expired, and a probe is to be sent now (section 7.3).
    pub(in super::super) fn takes_probe(&mut self, now: Instant) -> bool {
        if now < self.probe_at {
            return false;
        }
        self.disarm_probe();
        self.probe.is_none() && self.is_measured
    }

    /// Notes that a probe is sent, of new data or of the last segment `again`; then `end` is the first
    /// segment not sent.
    pub(in super::super) fn on_probe(&mut self, end: u32, again: bool) {
        self.probe = Some(Probe { end, again });
        self.is_measured = false;
    }

    /// Takes what an ACK says of the probe (section 7.4). Returns whether the probe has repaired a loss,
    /// which is to reduce the window.
    pub(in super::super) fn has_repaired(&mut self, ack: ProbeAnswer) -> bool {
        let Some(Probe { end, again }) = self.probe.filter(|probe| ack.expected >= probe.end) else {
            return false;
        };
        let arrived_twice =
            ack.duplicate == end.checked_sub(1) || (ack.expected == end && ack.is_pure_duplicate);
        if !again || arrived_twice || ack.expected > end {
            self.probe = None;
        }
        again && !arrived_twice && ack.expected > end
    }
}

/// Returns the probe timeout (`TLP_calc_PTO`).
pub(super) fn probe_timeout(smoothed_rtt: Option<Duration>, flight: usize, left: Duration) -> Duration {
    let timeout = match smoothed_rtt {
        Some(rtt) if flight == 1 => rtt.saturating_mul(2) + MOST_ACK_DELAY,
        Some(rtt) => rtt.saturating_mul(2),
        None => FIRST_PROBE_TIMEOUT,
    };
    timeout.min(left)
}

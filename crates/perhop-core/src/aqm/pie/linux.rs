//! What Linux's `pie` does otherwise (`net/sched/sch_pie.c`, `include/net/pie.h`).

use super::{Controller, LITTLE, MOST_STEP, Pie, SPREAD, Settings};
use crate::{Duration, Header, Instant, Occupancy, Rng};

/// When Linux first updates the drop probability.
pub(super) const FIRST_UPDATE: Duration = Duration::from_millis(500);

/// Above this delay the drop probability rises by `MOST_STEP` more.
const HIGH_DELAY: Duration = Duration::from_millis(250);

/// Linux keeps a probability of 56 bits in 64, and its test for overflow is that of 64: so the probability
/// may rise up to this, and begins at 1 again above it.
const OVERFLOW: f64 = 256.0;

impl Controller {
    /// One update at this queueing delay; `waits` says whether packets wait. Returns whether all is to begin
    /// anew.
    pub(super) fn update_as_linux(&mut self, settings: &Settings, delay: Duration, waits: bool) -> bool {
        let mut step = self.step(settings, delay);
        if delay > HIGH_DELAY {
            step += MOST_STEP;
        }
        let idle = delay.is_zero() && self.delay_before.is_zero() && !waits;
        self.probability = (self.probability + step).max(0.0);
        if self.probability >= OVERFLOW {
            self.probability = 1.0;
        } else if idle {
            self.probability -= self.probability / 64.0;
        }
        let calm = delay < settings.half_target && self.delay_before < settings.half_target;
        self.delay_before = delay;
        calm && self.probability == 0.0
    }

    /// By Linux, a burst is allowed for less long after each packet that leaves: by the time since the one
    /// before.
    pub(super) fn age_burst(&mut self, now: Instant) {
        if let Some(before) = self.last_departure.replace(now) {
            self.burst = self.burst - now.since(before);
        }
    }

    /// All begins anew, but for the drop probability, which is zero.
    pub(super) fn begin_anew(&mut self, settings: &Settings) {
        self.burst = settings.max_burst;
        self.last_departure = None;
    }
}

impl Pie {
    /// Whether a packet, for which there is room, is to be dropped or marked: by the delay as it is, not as
    /// it was at the last update.
    pub(super) fn is_hit_by_linux(&mut self, queue: &Occupancy, rng: &mut Rng) -> bool {
        let probability = self.controller.probability;
        let calm = self.sojourn < self.settings.half_target && probability < LITTLE;
        let short = queue.bytes() < self.settings.mean_packet.saturating_mul(2);
        if self.allows_burst() || calm || short {
            return false;
        }
        self.count(probability);
        if self.accumulated >= SPREAD.1 {
            return true;
        }
        let hit = self.accumulated >= SPREAD.0 && rng.chance(probability);
        if hit {
            self.accumulated = 0.0;
        }
        hit
    }

    /// Whether Linux marks a packet that is hit; a packet that it drops ends the sum of probabilities.
    pub(super) fn marks_as_linux(&mut self, packet: &Header) -> bool {
        let marks = self.settings.mark_below.is_some_and(|bound| self.controller.probability <= bound);
        if !(marks && packet.ecn.is_capable()) {
            self.accumulated = 0.0;
        }
        marks
    }
}

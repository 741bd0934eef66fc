//! What the run loop does beside forwarding: reloads, metrics, captures and warnings.

use std::sync::Arc;

use perhop_core::{Duration, Instant};
use perhop_live::{Loss, Plane, Report, Watcher};

use super::loader::ReloadRequests;
use crate::capture::Capture;
use crate::log::Log;
use crate::metrics::{Beside, Published, Reloads, Snapshot};
use crate::summary::Merged;

/// How often the run loop checks for a reload.
const TICK: Duration = Duration::from_millis(50);
/// How often it publishes metrics.
const PUBLISH: Duration = Duration::from_secs(1);

/// Watches the run loop for the rest of the router.
pub(super) struct Overseer {
    pub(super) next: Instant,
    pub(super) publish: Instant,
    pub(super) reload: ReloadRequests,
    pub(super) published: Arc<Published>,
    pub(super) reloads: Arc<Reloads>,
    pub(super) capture: Option<Capture>,
    pub(super) names: [String; 2],
    pub(super) seed: u64,
    /// Merged packets have been warned of.
    pub(super) warned: bool,
    pub(super) log: Log,
}

impl Overseer {
    /// Warns once, as soon as it is seen, of merged packets, because then hardly any packet passes.
    fn warn_of_offload(&mut self, report: &Report) {
        let Some(side) = report.aside.iter().position(|aside| aside.merged > 0).filter(|_| !self.warned)
        else {
            return;
        };
        self.warned = true;
        self.log.warn(format_args!("warning: {}: {}", self.names[side], Merged(&self.names[side])));
    }
}

impl Watcher for Overseer {
    fn next(&self) -> Instant {
        self.next
    }

    fn watch(&mut self, plane: &mut Plane, report: &mut Report, now: Instant) {
        self.next = now + TICK;
        self.warn_of_offload(report);
        if let Ok(spec) = self.reload.requests.try_recv() {
            let _ = self.reload.results.send(plane.reload(spec, self.seed));
        }
        if now >= self.publish {
            self.publish = now + PUBLISH;
            let capture = self.capture.as_ref().map(Capture::status);
            let beside = Beside { reloads: &self.reloads, unlogged: self.log.dropped(), capture };
            self.published.publish(Snapshot::of(plane, report, &self.names, &beside));
        }
    }

    #[inline]
    fn sent(&mut self, device: usize, packet: &[u8], now: Instant) {
        if let Some(capture) = &mut self.capture {
            capture.sent(device, packet, now);
        }
    }

    #[inline]
    fn lost(&mut self, device: usize, packet: &[u8], why: Loss, now: Instant) {
        if let Some(capture) = &mut self.capture {
            capture.lost(device, packet, why, now);
        }
    }
}

//! Shows an observer what becomes of packets at links. A run without an observer has no tap.

use perhop_core::{Color, Header, Instant, Offered, Port, Reason};

use super::pending::Pending;
use crate::flow::Flow;
use crate::observer::{Decision, Observation, Observed, PacketEvent};
use crate::packet::SimPacket;

/// Packets that a port has marked so far, by reason.
type Notified = [u64; Reason::ALL.len()];

/// The connection between a run and its observer.
#[derive(Clone, Debug)]
pub(super) struct Tap {
    observation: Observation,
    /// For each link, the marked packets of its port so far; `None` for a link that is not observed.
    notified: Vec<Option<Notified>>,
    /// Departures from wires, which know them ahead.
    departures: Pending<Observed>,
}

/// A packet at a link, at some time.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) link: usize,
    pub(super) packet: SimPacket,
    pub(super) flow: &'a Flow,
    pub(super) now: Instant,
}

impl Seen<'_> {
    fn observed(self, event: PacketEvent) -> Observed {
        let Self { link, packet, flow, now } = self;
        let (header, contents) = (packet.header(), flow.contents(packet));
        Observed { at: now, link, event, flow: flow.origin(), header, contents }
    }
}

impl Tap {
    pub(super) fn new(observation: Observation, links: usize) -> Self {
        let mut notified = vec![None; links];
        for &link in observation.links() {
            notified[link] = Some(Notified::default());
        }
        Self { observation, notified, departures: Pending::default() }
    }

    /// A packet has come to a port.
    pub(super) fn arrival(&mut self, seen: Seen<'_>, offered: &Offered<SimPacket>, port: &Port<SimPacket>) {
        let decision = match offered {
            Offered::Dropped(_, reason) => Decision::Dropped(*reason),
            Offered::Queued | Offered::Idle => {
                self.newly_notified(seen, port).map_or(Decision::Admitted, Decision::Notified)
            }
        };
        self.show(seen, PacketEvent::Arrival(decision));
    }

    /// A packet has come to a wire, which begins to send it at `starts`.
    pub(super) fn pass(&mut self, seen: Seen<'_>, is_lost: bool, starts: Instant) {
        if self.notified[seen.link].is_some() {
            self.show(seen, PacketEvent::Arrival(Decision::Admitted));
            let event = PacketEvent::Departure { notified: None, is_lost };
            self.departures.push(Seen { now: starts, ..seen }.observed(event));
        }
    }

    /// A port begins to send a packet.
    pub(super) fn departure(&mut self, seen: Seen<'_>, port: &Port<SimPacket>, is_lost: bool) {
        let notified = self.newly_notified(seen, port);
        self.show(seen, PacketEvent::Departure { notified, is_lost });
    }

    /// A meter drops a packet, to which it gave this color.
    pub(super) fn policed(&mut self, seen: Seen<'_>, color: Color) {
        let packet = seen.packet.remarked(&Header { color, ..seen.packet.header() });
        self.show(Seen { packet, ..seen }, PacketEvent::Policed);
    }

    /// The run has come to `now`: departures until then have happened.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(departure) = self.departures.pop_due(now) {
            self.observation.tell(&departure);
        }
    }

    /// Shows what becomes of a packet at a link, unless that is not observed.
    pub(super) fn show(&mut self, seen: Seen<'_>, event: PacketEvent) {
        if self.notified[seen.link].is_some() {
            self.advance(seen.now);
            self.observation.tell(&seen.observed(event));
        }
    }

    /// Returns why a port has marked a packet just now, if it has: it counts one more of that reason.
    fn newly_notified(&mut self, seen: Seen<'_>, port: &Port<SimPacket>) -> Option<Reason> {
        let before = self.notified[seen.link].as_mut()?;
        if !seen.packet.content().ecn().is_capable() {
            return None;
        }
        let mut now = Notified::default();
        for (reason, packets) in port.classes().flat_map(|class| class.through.notifications()) {
            now[reason as usize] += packets.iter().sum::<u64>();
        }
        let changed = Reason::ALL.into_iter().find(|&reason| now[reason as usize] != before[reason as usize]);
        *before = now;
        changed
    }
}

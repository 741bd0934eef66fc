//! Shows an observer what becomes of packets at links. A run without an observer has no tap.

use perhop_core::{Color, Instant, Offered, Port, Reason};

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

impl Tap {
    pub(super) fn new(observation: Observation, links: usize) -> Self {
        let mut notified = vec![None; links];
        for &link in observation.links() {
            notified[link] = Some(Notified::default());
        }
        Self { observation, notified, departures: Pending::default() }
    }

    /// A packet has come to a port.
    pub(super) fn arrival(
        &mut self,
        link: usize,
        packet: SimPacket,
        offered: &Offered<SimPacket>,
        port: &Port<SimPacket>,
        flow: &Flow,
        now: Instant,
    ) {
        let decision = match offered {
            Offered::Dropped(_, reason) => Decision::Dropped(*reason),
            Offered::Queued | Offered::Idle => {
                self.newly_notified(link, packet, port).map_or(Decision::Admitted, Decision::Notified)
            }
        };
        self.show(link, packet, PacketEvent::Arrival(decision), flow, now);
    }

    /// A packet has come to a wire, which begins to send it at `starts`.
    pub(super) fn pass(
        &mut self,
        link: usize,
        packet: SimPacket,
        is_lost: bool,
        flow: &Flow,
        starts: Instant,
        now: Instant,
    ) {
        if self.notified[link].is_none() {
            return;
        }
        self.show(link, packet, PacketEvent::Arrival(Decision::Admitted), flow, now);
        let event = PacketEvent::Departure { notified: None, is_lost };
        let (header, contents) = (packet.header(), flow.contents(packet));
        self.departures.push(Observed { at: starts, link, event, flow: flow.origin(), header, contents });
    }

    /// A port begins to send a packet.
    pub(super) fn departure(
        &mut self,
        link: usize,
        packet: SimPacket,
        port: &Port<SimPacket>,
        is_lost: bool,
        flow: &Flow,
        now: Instant,
    ) {
        let notified = self.newly_notified(link, packet, port);
        self.show(link, packet, PacketEvent::Departure { notified, is_lost }, flow, now);
    }

    /// A meter drops a packet, to which it gave this color.
    pub(super) fn policed(
        &mut self,
        link: usize,
        packet: SimPacket,
        color: Color,
        flow: &Flow,
        now: Instant,
    ) {
        let mut header = packet.header();
        header.color = color;
        self.show(link, packet.remarked(&header), PacketEvent::Policed, flow, now);
    }

    /// The run has come to `now`: departures until then have happened.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(departure) = self.departures.pop_due(now) {
            self.observation.tell(&departure);
        }
    }

    /// Shows a packet at a link, unless that is not observed.
    pub(super) fn show(
        &mut self,
        link: usize,
        packet: SimPacket,
        event: PacketEvent,
        flow: &Flow,
        now: Instant,
    ) {
        if self.notified[link].is_none() {
            return;
        }
        self.advance(now);
        let (header, contents) = (packet.header(), flow.contents(packet));
        self.observation.tell(&Observed { at: now, link, event, flow: flow.origin(), header, contents });
    }

    /// Returns why a port has marked a packet just now, if it has: it counts one more of that reason than
    /// before.
    fn newly_notified(&mut self, link: usize, packet: SimPacket, port: &Port<SimPacket>) -> Option<Reason> {
        let before = self.notified[link].as_mut()?;
        if !packet.content().ecn().is_capable() {
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

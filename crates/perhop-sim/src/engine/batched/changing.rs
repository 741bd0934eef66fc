//! Links that change, or lose or delay packets at random: one event at a time, in the order of time within the link.
//!
//! Which packets are lost, and how long each takes, is drawn in the order in which the link sends them, from the link's own stream; and
//! changes have their times from the start. So none of this depends on what happens elsewhere.

use perhop_core::measure::PortView;
use perhop_core::scheduler::{Retuning, SchedulerParams};
use perhop_core::units::UnitError;
use perhop_core::{Duration, Instant, Offered, Port, Served, Streams};

use super::link::Services;
use super::traffic::Traffic;
use crate::medium::{Event, MediumState};
use crate::network::LinkSpec;
use crate::packet::SimPacket;
use crate::rate_trace::Timetable;
use crate::wire::Wire;

const JUST_AFTER: Duration = Duration::from_nanos(1);

/// A wire that loses packets, or delays them by jitter; its rate and its delay stay the same.
#[derive(Clone, Debug)]
pub(super) struct UnevenWire {
    medium: Box<MediumState>,
}

/// A port whose link changes, loses packets or delays them by jitter.
#[derive(Clone, Debug)]
pub(super) struct ChangingPort {
    pub(super) port: Port<SimPacket>,
    pub(super) services: Services,
    medium: Box<MediumState>,
    delay: Duration,
    /// There is an outage.
    is_down: bool,
    /// When the link can send how much; `None` if its rate says so.
    timetable: Option<Timetable>,
}

impl UnevenWire {
    /// The wire of such a link; `None` if the link is of another kind.
    pub(super) fn of(spec: &LinkSpec, streams: Streams<'_>) -> Option<Box<Self>> {
        let is_wire = spec.queue.is_none() && spec.medium.is_steady();
        let medium = MediumState::new(&spec.medium, streams).filter(|_| is_wire)?;
        Some(Box::new(Self { medium }))
    }

    /// Packets come to the wire; each gets the time of its arrival at the far end, or is lost.
    pub(super) fn pass(&mut self, packets: &mut [SimPacket], wire: &mut Wire) {
        for packet in packets {
            let now = packet.at();
            match self.medium.pass(now, wire.pass(packet.size(), now)) {
                Some(at) => packet.put_off(at),
                None => packet.lose_in_transit(),
            }
        }
    }
}

impl ChangingPort {
    /// The port of such a link at time zero; `None` if the link does not change.
    pub(super) fn of(spec: &LinkSpec, streams: Streams<'_>, window: (Instant, Instant)) -> Option<Box<Self>> {
        let medium = MediumState::new(&spec.medium, streams)?;
        let mut port =
            Port::new(spec.queue.clone().unwrap_or_else(LinkSpec::unlimited), spec.rate, streams, window);
        spec.medium.note_rates(port.rates());
        let timetable = spec.medium.trace.as_ref().map(Timetable::new);
        let services = Services::new();
        Some(Box::new(Self { port, services, medium, delay: spec.delay, is_down: false, timetable }))
    }

    /// It has nothing to do before this, unless a packet comes.
    pub(super) fn next(&self) -> Instant {
        self.medium.next().map_or(self.services.next(), |change| change.min(self.services.next()))
    }

    /// Takes packets that arrive at the queue, and does what is due meanwhile and before `bound`. What leaves goes to `gone`, with the
    /// times of its arrival at the far end, or marked as lost. Returns how often it changed or was served.
    pub(super) fn run(
        &mut self,
        packets: &[SimPacket],
        bound: Instant,
        gone: &mut Vec<SimPacket>,
        traffic: &Traffic,
    ) -> u64 {
        let before = gone.len();
        let happened = self.take(packets, bound, gone);
        traffic.take_back(&mut gone[before..]);
        happened
    }

    fn take(&mut self, packets: &[SimPacket], bound: Instant, gone: &mut Vec<SimPacket>) -> u64 {
        let mut happened = 0;
        for packet in packets {
            let now = packet.at();
            happened += self.act_before(now + JUST_AFTER, gone);
            let offered = self.port.offer(*packet, now);
            if let (Offered::Idle, Some(timetable)) = (&offered, &mut self.timetable) {
                timetable.idle(now);
            }
            while let Some((packet, _)) = self.port.shed(now) {
                gone.push(packet.due(Instant::NEVER));
            }
            match offered {
                Offered::Queued => {}
                Offered::Idle => self.serve(now, gone),
                Offered::Dropped(packet, _) => gone.push(packet.due(Instant::NEVER)),
            }
        }
        happened + self.act_before(bound, gone)
    }

    /// The link changes and is served as often as that is due before `bound`; at the same time it changes first.
    fn act_before(&mut self, bound: Instant, gone: &mut Vec<SimPacket>) -> u64 {
        let mut happened = 0;
        while self.next() < bound {
            let now = self.next();
            if let Some(change) = self.medium.pop_due(now) {
                self.change(change, now, gone);
            } else {
                self.services.pop();
                self.serve(now, gone);
            }
            happened += 1;
        }
        happened
    }

    fn change(&mut self, change: Event, now: Instant, gone: &mut Vec<SimPacket>) {
        match change {
            Event::Rate(rate) => self.port.set_rate(rate),
            Event::Delay(delay) => self.delay = delay,
            Event::Down => self.is_down = true,
            Event::Up => {
                self.is_down = false;
                self.serve(now, gone);
            }
        }
    }

    /// Serves the port until it has sent something or has nothing to send.
    fn serve(&mut self, now: Instant, gone: &mut Vec<SimPacket>) {
        while !self.is_down {
            match self.serve_once(now) {
                Served::Sent(packet, free_at) => {
                    self.services.push(free_at);
                    let mut packet = packet;
                    match self.medium.pass(now, free_at + self.delay) {
                        Some(at) => packet.put_off(at),
                        None => packet.lose_in_transit(),
                    }
                    return gone.push(packet);
                }
                Served::Dropped(packet, _) => gone.push(packet.due(Instant::NEVER)),
                Served::Later(at) => return self.services.push(at),
                Served::Nothing => return,
            }
        }
    }

    fn serve_once(&mut self, now: Instant) -> Served<SimPacket> {
        match &mut self.timetable {
            Some(timetable) => timetable.serve(&mut self.port, now),
            None => self.port.serve(now),
        }
    }

    /// The port has other parameters: what waits for a time may go now, or at another time.
    ///
    /// # Errors
    /// The key that cannot change.
    pub(super) fn retune(
        &mut self,
        to: &Retuning<'_, SchedulerParams>,
        now: Instant,
    ) -> Result<(), UnitError> {
        self.port.retune(to)?;
        if self.port.is_held() {
            self.services.push(now);
        }
        Ok(())
    }

    /// What waits, what went through, and what was lost.
    pub(super) fn view(&self) -> PortView<'_> {
        PortView { transit: self.medium.counts(), ..self.port.view() }
    }
}

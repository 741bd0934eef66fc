//! Links that flows share: a port with a queue, or a wire that queues without a limit.

use perhop_core::control::Message;
use perhop_core::measure::{PortView, RateChange};
use perhop_core::meter::AggregateMeters;
use perhop_core::table::at_inner_key;
use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Color, Duration, Instant, Offered, Port, Reason, Served, Streams};

use super::{Pending, Reference};
use crate::control::Post;
use crate::engine::setup::Step;
use crate::engine::stepping::retuning;
use crate::medium::{LinkEvent, MediumState};
use crate::network::LinkSpec;
use crate::packet::SimPacket;
use crate::timed::Timed;
use crate::wire::Wire;

/// One direction of a link that flows share.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Packets on their way to the queue.
    arrivals: Pending<SimPacket>,
    queue: Queue,
    /// How it changes, and what it loses; `None` if it does neither.
    medium: Option<Box<MediumState>>,
}

#[derive(Clone, Debug)]
enum Queue {
    /// Without a limit, and not measured; the link never changes.
    Unlimited(Wire),
    Managed(Box<Managed>),
}

#[derive(Clone, Debug)]
struct Managed {
    port: Port<SimPacket>,
    /// The rate that its scheduler shares among its queues.
    shared: Bitrate,
    meters: AggregateMeters,
    /// When the port is to be served.
    services: Pending<ServiceTime>,
    delay: Duration,
}

/// A time at which a port is to be served.
#[derive(Clone, Copy, Debug)]
struct ServiceTime(Instant);

impl Timed for ServiceTime {
    fn at(&self) -> Instant {
        self.0
    }
    fn rank(&self) -> u64 {
        0
    }
}

impl Link {
    /// An idle link; statistics cover the given window.
    pub(super) fn new(spec: &LinkSpec, seed: u64, window: (Instant, Instant)) -> Self {
        let path = format!("links/{}", spec.name);
        let streams = Streams { seed, path: &path };
        let medium = MediumState::new(&spec.medium, streams);
        let queue = match &spec.queue {
            None if spec.medium.is_steady() => Queue::Unlimited(Wire::new(spec.rate, spec.delay)),
            queue => {
                let mut port =
                    Port::new(queue.clone().unwrap_or_else(LinkSpec::unlimited), spec.rate, streams, window);
                spec.medium.note_rates(port.rates());
                let meters = AggregateMeters::new(&spec.meters, streams);
                let services = Pending::default();
                let (shared, delay) = (spec.rate, spec.delay);
                Queue::Managed(Box::new(Managed { port, shared, meters, services, delay }))
            }
        };
        Self { arrivals: Pending::default(), queue, medium }
    }

    /// A packet is on its way to the queue.
    pub(super) fn add(&mut self, packet: SimPacket) {
        self.arrivals.push(packet);
    }

    /// The next time at which a packet comes, the port is to be served, or the link changes.
    pub(super) fn next(&self) -> Option<Instant> {
        let service = match &self.queue {
            Queue::Unlimited(_) => None,
            Queue::Managed(managed) => managed.services.next(),
        };
        let change = self.medium.as_ref().and_then(|medium| medium.next());
        self.arrivals.next().into_iter().chain(service).chain(change).min()
    }

    /// Something happens at the link now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next().is_some_and(|next| next <= now)
    }

    /// A control message for the AQM at which the packets of this path arrive.
    pub(super) fn on_message(&mut self, label: u32, message: &Message) {
        if let Queue::Managed(managed) = &mut self.queue {
            managed.port.on_message(label, message);
        }
    }

    /// Its queue and its meters have the parameters of `after`, in place of those of `before`.
    ///
    /// # Errors
    /// The key that cannot change; the link must not be used any more then.
    pub(super) fn retune(
        &mut self,
        before: &LinkSpec,
        after: &LinkSpec,
        now: Instant,
    ) -> Result<(), UnitError> {
        let Queue::Managed(managed) = &mut self.queue else { return Ok(()) };
        if let Some(to) = retuning(before, after, &mut managed.shared, now) {
            managed.port.retune(&to).map_err(|problem| at_inner_key("queue", &problem))?;
        }
        let meters = managed.meters.retune((&before.meters, &after.meters), now);
        meters.map_err(|problem| at_inner_key("meters", &problem))
    }

    /// It has this rate and this delay for the packets that it begins to send from now on.
    pub(super) fn change(&mut self, rate: Bitrate, delay: Duration, now: Instant) {
        match &mut self.queue {
            Queue::Unlimited(wire) => *wire = wire.changed(rate, delay),
            Queue::Managed(managed) => {
                managed.port.set_rate(rate);
                managed.port.rates().add(now, RateChange::Rate(rate));
                managed.delay = delay;
            }
        }
    }

    /// Takes a packet on its way to the queue that comes before `bound`.
    #[cfg(test)]
    pub(super) fn take_arrival(&mut self, bound: Instant) -> Option<SimPacket> {
        self.arrivals.pop_due(Instant::from_nanos(bound.as_nanos() - 1))
    }

    /// A sample of a measured link.
    pub(super) fn view(&self) -> PortView<'_> {
        match &self.queue {
            Queue::Managed(managed) => PortView {
                meters: managed.meters.counts(),
                transit: self.medium.as_ref().map(|medium| medium.counts()).unwrap_or_default(),
                ..managed.port.view()
            },
            Queue::Unlimited(_) => unreachable!("measured links have a queue under an AQM"),
        }
    }

    /// Ends the run: what still waits has waited until now.
    pub(super) fn finish(&mut self, now: Instant) {
        if let Queue::Managed(managed) = &mut self.queue {
            managed.port.finish(now);
        }
    }
}

impl Reference {
    /// Handles all that happens at a link now: it changes, is served, then takes packets.
    pub(super) fn run_link(&mut self, number: usize) {
        loop {
            let Link { arrivals, queue, medium } = &mut self.links[number];
            if let Some(event) = medium.as_mut().and_then(|medium| medium.pop_due(self.now)) {
                self.handled += 1;
                self.change(number, event);
            } else if let Queue::Managed(managed) = queue
                && managed.services.pop_due(self.now).is_some()
            {
                self.handled += 1;
                self.serve(number);
            } else if let Some(packet) = arrivals.pop_due(self.now) {
                self.handled += 1;
                self.hops += 1;
                let packet = self.pass_first_router(number, packet);
                if let Some(packet) = packet.and_then(|packet| self.pass_meters(number, packet)) {
                    self.enqueue(number, packet.onward());
                }
            } else {
                return;
            }
        }
    }

    /// A link changes.
    fn change(&mut self, number: usize, event: LinkEvent) {
        let Link { queue: Queue::Managed(managed), medium: Some(medium), .. } = &mut self.links[number]
        else {
            unreachable!("links that change have a port")
        };
        if medium.apply(event, &mut managed.port.typed(), &mut managed.delay) {
            self.serve(number);
        }
    }

    /// At its first router, a packet passes the window control of its path, and the meter that is there. `None` if the meter
    /// drops it.
    fn pass_first_router(&mut self, number: usize, packet: SimPacket) -> Option<SimPacket> {
        let Step::Metered(_) = self.steps[packet.step()] else { return Some(packet) };
        let flow = &mut self.flows[packet.flow()];
        let policed = flow.sending.policed();
        if let Some((control, member)) = flow.control() {
            self.controls.steering(control).on_data(member, packet.sequence(), self.now);
        }
        let post = Post { channels: &mut self.channels, events: &mut self.events };
        let passed = flow.mark_at_router(packet, &mut self.shared_meters, post);
        if let (None, Some(tap)) = (&passed, &mut self.tap) {
            let more = |color: &Color| flow.sending.policed()[color.index()] > policed[color.index()];
            let color = Color::ALL.into_iter().find(more).unwrap_or(packet.color());
            tap.policed(number, packet, color, flow, self.now);
        }
        self.set_timer(packet.flow());
        if passed.is_none() {
            self.leave(packet);
        }
        passed
    }

    /// A packet passes the meters of a link. `None` if one drops it.
    fn pass_meters(&mut self, number: usize, packet: SimPacket) -> Option<SimPacket> {
        let Queue::Managed(managed) = &mut self.links[number].queue else { return Some(packet) };
        let mut header = packet.header();
        match managed.meters.judge(&mut header, self.now) {
            Ok(()) => Some(packet.remarked(&header)),
            Err((color, _)) => {
                let flow = &mut self.flows[packet.flow()];
                if let Some(tap) = &mut self.tap {
                    tap.policed(number, packet.remarked(&header), color, flow, self.now);
                }
                flow.police(packet, color);
                self.leave(packet);
                None
            }
        }
    }

    /// A packet arrives at the queue of a link.
    fn enqueue(&mut self, number: usize, packet: SimPacket) {
        let Link { queue, medium, .. } = &mut self.links[number];
        match queue {
            Queue::Unlimited(wire) => {
                let starts = wire.busy_until().max(self.now);
                let at = wire.pass(packet.size(), self.now);
                self.propagate(number, packet, starts, at);
            }
            Queue::Managed(managed) => {
                let offered = managed.port.offer(packet, self.now);
                if let Some(tap) = &mut self.tap {
                    let flow = &self.flows[packet.flow()];
                    tap.arrival(number, packet, &offered, &managed.port, flow, self.now);
                }
                if let (Offered::Idle, Some(medium)) = (&offered, medium) {
                    medium.idle(self.now);
                }
                self.drop_shed(number);
                match offered {
                    Offered::Queued => {}
                    Offered::Idle => self.serve(number),
                    Offered::Dropped(packet, _) => self.lose(packet),
                }
            }
        }
    }

    /// Drops what a port has removed from its queues for the last packet that came.
    fn drop_shed(&mut self, number: usize) {
        while let Queue::Managed(managed) = &mut self.links[number].queue
            && let Some((packet, reason)) = managed.port.shed(self.now)
        {
            self.observe_drop(number, packet, reason);
            self.lose(packet);
        }
    }

    /// A port has other parameters: what waits for a time may go now, or at another time.
    pub(super) fn serve_retuned(&mut self, number: usize) {
        if let Queue::Managed(managed) = &self.links[number].queue
            && managed.port.is_held()
        {
            self.serve(number);
        }
    }

    /// Serves a port until it has sent something or has nothing to send.
    fn serve(&mut self, number: usize) {
        loop {
            let Link { queue: Queue::Managed(managed), medium, .. } = &mut self.links[number] else { return };
            let served = match medium {
                Some(medium) => medium.serve(&mut managed.port.typed(), self.now),
                None => managed.port.serve(self.now),
            };
            match served {
                Served::Sent(packet, free_at) => {
                    managed.services.push(ServiceTime(free_at));
                    let at = free_at + managed.delay;
                    return self.propagate(number, packet, self.now, at);
                }
                Served::Dropped(packet, reason) => {
                    self.observe_drop(number, packet, reason);
                    self.lose(packet);
                }
                Served::Later(at) => return managed.services.push(ServiceTime(at)),
                Served::Nothing => return,
            }
        }
    }

    /// A link sends a packet from `starts` on, which reaches the far end at `at` unless it is lost or delayed by jitter.
    fn propagate(&mut self, number: usize, packet: SimPacket, starts: Instant, at: Instant) {
        let Link { queue, medium, .. } = &mut self.links[number];
        let arrival = medium.as_mut().map_or(Some(at), |medium| medium.pass(self.now, at));
        if let Some(tap) = &mut self.tap {
            let (flow, now, is_lost) = (&self.flows[packet.flow()], self.now, arrival.is_none());
            match queue {
                Queue::Managed(managed) => tap.departure(number, packet, &managed.port, is_lost, flow, now),
                Queue::Unlimited(_) => tap.pass(number, packet, is_lost, flow, starts, now),
            }
        }
        if let Some(at) = arrival {
            self.forward(packet, at);
        } else {
            self.flows[packet.flow()].lose_in_transit(packet);
            self.leave(packet);
        }
    }

    /// A queue drops a packet that has waited.
    fn observe_drop(&mut self, number: usize, packet: SimPacket, reason: Reason) {
        if let Some(tap) = &mut self.tap {
            tap.dropped(number, packet, reason, &self.flows[packet.flow()], self.now);
        }
    }

    /// A queue dropped a packet.
    fn lose(&mut self, packet: SimPacket) {
        self.flows[packet.flow()].lose(packet);
        self.leave(packet);
    }
}

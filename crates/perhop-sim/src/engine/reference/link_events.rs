//! What happens at links: they change, are served, and take packets.

use perhop_core::{Color, Instant, Offered, Reason, Served};

use super::engine::Reference;
use super::link::{Link, Queue};
use super::tally::Act;
use super::tap::Seen;
use crate::control::Post;
use crate::engine::setup::Step;
use crate::observer::PacketEvent;
use crate::packet::SimPacket;
use perhop_core::medium::LinkEvent;

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

    fn change(&mut self, number: usize, event: LinkEvent) {
        let Link { queue: Queue::Managed(managed), medium: Some(medium), .. } = &mut self.links[number]
        else {
            unreachable!("links that change have a port")
        };
        if medium.apply(event, &mut managed.port.typed(), &mut managed.delay) {
            self.serve(number);
        }
    }

    /// Passes a packet, at its first router, through the window control of its path and the meter there.
    /// Returns `None` if the meter drops it.
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
            tap.policed(Seen { link: number, packet, flow, now: self.now }, color);
        }
        self.set_timer(packet.flow());
        if passed.is_none() {
            self.leave(packet);
        }
        passed
    }

    /// Passes a packet through the meters of a link. Returns `None` if one drops it.
    fn pass_meters(&mut self, number: usize, packet: SimPacket) -> Option<SimPacket> {
        let Queue::Managed(managed) = &mut self.links[number].queue else { return Some(packet) };
        let mut header = packet.header();
        match managed.meters.judge(&mut header, self.now) {
            Ok(()) => Some(packet.remarked(&header)),
            Err((color, _)) => {
                let flow = &mut self.flows[packet.flow()];
                if let Some(tap) = &mut self.tap {
                    let packet = packet.remarked(&header);
                    tap.policed(Seen { link: number, packet, flow, now: self.now }, color);
                }
                flow.police(packet, color);
                self.leave(packet);
                None
            }
        }
    }

    /// Offers a packet to the queue of a link.
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
                    let seen = Seen { link: number, packet, flow, now: self.now };
                    tap.arrival(seen, &offered, &managed.port);
                }
                if let Some(tally) = self.tally.as_mut().filter(|tally| tally.link() == number) {
                    let is_dropped = matches!(offered, Offered::Dropped(..));
                    let act = if is_dropped { Act::Refused } else { Act::Admitted };
                    tally.look(&managed.port, self.now, act);
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
            self.count_left(number, packet);
            self.observe_drop(number, packet, reason);
            self.lose(packet);
        }
    }

    /// Serves a port with other parameters: what waits for a time may go now, or at another time.
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
                    managed.services.push(free_at);
                    let at = free_at + managed.delay;
                    self.count_left(number, packet);
                    return self.propagate(number, packet, self.now, at);
                }
                Served::Dropped(packet, reason) => {
                    self.count_left(number, packet);
                    self.observe_drop(number, packet, reason);
                    self.lose(packet);
                }
                Served::Later(at) => return managed.services.push(at),
                Served::Nothing => return,
            }
        }
    }

    /// Sends a packet over a link from `starts` on; it reaches the far end at `at` unless it is lost or
    /// delayed by jitter.
    fn propagate(&mut self, number: usize, packet: SimPacket, starts: Instant, at: Instant) {
        let Link { queue, medium, .. } = &mut self.links[number];
        let arrival = medium.as_mut().map_or(Some(at), |medium| medium.pass(self.now, at));
        if let Some(tap) = &mut self.tap {
            let flow = &self.flows[packet.flow()];
            let (seen, is_lost) = (Seen { link: number, packet, flow, now: self.now }, arrival.is_none());
            match queue {
                Queue::Managed(managed) => tap.departure(seen, &managed.port, is_lost),
                Queue::Unlimited(_) => tap.pass(seen, is_lost, starts),
            }
        }
        if let Some(at) = arrival {
            self.forward(packet, at);
        } else {
            self.flows[packet.flow()].lose_in_transit(packet);
            self.leave(packet);
        }
    }

    /// Shows an observer that a queue drops a packet which has waited.
    fn observe_drop(&mut self, number: usize, packet: SimPacket, reason: Reason) {
        if let Some(tap) = &mut self.tap {
            let flow = &self.flows[packet.flow()];
            tap.show(Seen { link: number, packet, flow, now: self.now }, PacketEvent::Dropped(reason));
        }
    }

    /// Counts a packet that has left the queue of a link, if that is counted.
    fn count_left(&mut self, number: usize, packet: SimPacket) {
        if let Some(tally) = self.tally.as_mut().filter(|tally| tally.link() == number)
            && let Queue::Managed(managed) = &self.links[number].queue
        {
            tally.look(&managed.port, self.now, Act::Left(packet.header().arrived));
        }
    }

    /// Counts a packet that a queue dropped.
    fn lose(&mut self, packet: SimPacket) {
        self.flows[packet.flow()].lose(packet);
        self.leave(packet);
    }
}

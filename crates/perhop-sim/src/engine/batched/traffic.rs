//! Packets in transit, and what they meet besides the queues of links: hosts, meters, controls of paths.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::meter::AggregateMeters;
use perhop_core::{Bytes, Instant, prefetch};

use super::arrivals::ArrivalQueue;
use super::border::{Border, Crossing};
use super::calendar::EventQueue;
use super::departures::Departures;
use super::flow::{BatchedFlow, Outlet};
use super::inlets::Inlets;
use super::link::Link;
use super::users::BatchedUsers;
use crate::control::{Channels, Destination, Post};
use crate::engine::Failure;
use crate::engine::populations::Populations;
use crate::engine::setup::{Routes, Setup, Step, stop_if_asked};
use crate::events::{Event, EventSource, Sources};
use crate::flow::{Flow, Marker};
use crate::network::Network;
use crate::packet::{Content, SimPacket};
use crate::sampling::Recorder;
use crate::transport::{Ack, DelayedAck};
use crate::watch::Watch;
use crate::window_control::WindowControls;

/// Flows that take more bytes than this are not all in the processor's second-level cache: the flow of the packet that comes so
/// many packets later is prefetched.
pub(super) const CROWD: usize = 1 << 20;
pub(super) const PREFETCH_DISTANCE: usize = 6;

/// Packets in transit, and what they meet.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// Events besides the arrival of packets.
    pub(super) events: EventQueue,
    pub(super) sources: Sources,
    /// For each link, packets on their way to its queue.
    pub(super) links: Inlets,
    /// Packets that have left links in this window.
    pub(super) departures: Departures,
    /// Packets on their way to a step of their route that has to wait for its time.
    pub(super) waiting: ArrivalQueue<SimPacket>,
    /// Flows of the network, then those of populations.
    pub(super) flows: Vec<BatchedFlow>,
    pub(super) populations: Populations,
    pub(super) users: BatchedUsers,
    /// Some flows belong to populations or to users, or their packets overtake one another.
    pub(super) are_mixed: bool,
    /// The routes of flows of the network.
    pub(super) routes: Vec<Routes>,
    /// All routes, end to end.
    pub(super) steps: Vec<Step>,
    pub(super) shared_meters: Vec<Marker>,
    pub(super) channels: Channels,
    pub(super) controls: WindowControls,
    pub(super) recorder: Recorder,
    /// Packets that passed the link back on a [return path of fixed delay](super::fixed_delay).
    pub(super) returned: u64,
    pub(super) watch: Watch,
    /// What leads to other parts of the network, if the run is divided among threads.
    pub(super) border: Option<Box<Border>>,
}

impl Traffic {
    /// All that is in transit at time zero: nothing.
    pub(super) fn new(network: &Network, seed: u64, setup: Setup, watch: Watch) -> Self {
        let sources = setup.sources();
        let largest = setup.flows.iter().map(Flow::data_size).max().unwrap_or(0);
        let largest = Bytes::new(u64::from(largest));
        // The interval at which packets leave a link that is full of the largest ones.
        let gaps = network.links.iter().map(|link| link.rate.time_of(largest));
        // A packet is on its way for its delay, after a window that may be as long.
        let links = Inlets::expecting(gaps, network.longest_delay().saturating_mul(2));
        let Setup {
            mut flows, populations, routes, steps, shared_meters, channels, controls, recorder, ..
        } = setup;
        let users = BatchedUsers::new(network, seed, &mut flows, &routes);
        let are_reordered = routes.iter().any(|routes| routes.data.is_reordered || routes.acks.is_reordered);
        let populations = Populations::new(network, populations, seed);
        let has_populations = !populations.is_empty();
        let flows = flows.into_iter().zip(&network.flows).zip(&routes).enumerate();
        Self {
            events: EventQueue::default(),
            sources,
            links,
            departures: Departures::default(),
            waiting: ArrivalQueue::default(),
            flows: flows
                .map(|(number, ((flow, spec), routes))| {
                    let flow = BatchedFlow::new(flow, spec, routes, &controls, &recorder.times);
                    match users.owner(number) {
                        Some(_) => flow.owned(users.other_direction(number).is_some()),
                        None => flow,
                    }
                })
                .collect(),
            are_mixed: has_populations || !users.is_empty() || are_reordered,
            populations,
            users,
            // Only flows that begin during the run are still placed.
            routes: if has_populations { routes } else { Vec::new() },
            steps,
            shared_meters,
            channels,
            controls,
            recorder,
            returned: 0,
            watch,
            border: None,
        }
    }

    /// Schedules the first events of flows.
    ///
    /// # Errors
    /// The watch stopped the run.
    pub(super) fn schedule_first(&mut self) -> Result<(), Failure> {
        for (number, flow) in self.flows.iter_mut().enumerate() {
            stop_if_asked(number, &self.watch)?;
            flow.find_due();
            flow.schedule(&mut self.events);
        }
        for (population, at) in self.populations.first_arrivals() {
            self.events.push(Event { at, source: Sources::population(population) });
        }
        self.schedule_users();
        Ok(())
    }

    /// Nothing happens at a host before this.
    pub(super) fn next_at_hosts(&self) -> Instant {
        self.events.next().min(self.waiting.next())
    }

    /// No control of a path samples windows, and no meter at a router tells a sender anything.
    pub(super) fn hosts_are_independent(&self) -> bool {
        self.controls.len() == 0 && !self.flows.iter().any(BatchedFlow::has_remote_feedback)
    }

    /// Which flows have packets in transit to the receiver that are smaller than their full ones.
    #[cold]
    pub(super) fn flows_with_small_packets(&self, links: &[Link]) -> Vec<bool> {
        let mut found = vec![false; self.flows.len()];
        let mut note = |packet: &SimPacket| {
            let flow = packet.flow();
            found[flow] |= !packet.is_ack() && packet.size() < self.flows[flow].base.data_size();
        };
        self.links.packets().for_each(&mut note);
        self.waiting.iter().for_each(&mut note);
        for link in links {
            link.inspect(&mut note);
        }
        found
    }

    /// Whether an event concerns the hosts of one flow only.
    pub(super) fn concerns_one_flow(&self, event: &Event) -> bool {
        match self.sources.source(event.source) {
            EventSource::Timer(_) | EventSource::User(_) => true,
            EventSource::Arrival(population) => self.populations.has_number(population),
            EventSource::Message(channel) => {
                matches!(self.channels.destination(channel), Destination::Sender(_))
            }
            EventSource::Control(_) | EventSource::Probe => false,
        }
    }

    /// A packet comes to the next step of its route at `at`, from a link.
    #[inline(always)]
    pub(super) fn forward(&mut self, packet: SimPacket, at: Instant) {
        match self.steps[packet.step()] {
            Step::Link(link) | Step::Metered(link) => self.links.push(link as usize, packet.due(at)),
            Step::Ingress => self.wait(packet, at),
            Step::Away(part) => self.leave(part, packet.due(at)),
            _ => self.approach_all(&[packet.due(at)]),
        }
    }

    /// These packets have left a link. In a small network, whose state the processor has at hand, they need not wait for others.
    #[inline]
    pub(super) fn leave_link(
        &mut self,
        packets: &[SimPacket],
        leads_on: bool,
        departures: &mut Vec<SimPacket>,
    ) {
        if self.links.are_many() {
            departures.extend_from_slice(packets);
        } else {
            self.go_on(packets, leads_on);
        }
    }

    /// All packets that have left links come to the next steps of their routes.
    pub(super) fn pass_all_on(&mut self) {
        for leads_on in [true, false] {
            let mut packets = self.departures.lend(leads_on);
            self.pass_on(&mut packets, leads_on);
            self.departures.give_back(packets, leads_on);
        }
    }

    /// The same for these packets.
    pub(super) fn pass_on(&mut self, packets: &mut Vec<SimPacket>, leads_on: bool) {
        self.go_on(packets, leads_on);
        packets.clear();
    }

    /// These packets, which have left links that lead on, or links that lead to hosts only, come to the next steps of their routes.
    #[inline]
    fn go_on(&mut self, packets: &[SimPacket], leads_on: bool) {
        if !leads_on {
            self.approach_all(packets);
        } else if self.links.are_many() {
            self.forward_all::<true>(packets);
        } else {
            self.forward_all::<false>(packets);
        }
    }

    /// Packets have passed links; those that these did not drop come to the next steps of their routes.
    #[inline(never)]
    fn forward_all<const CROWDED: bool>(&mut self, packets: &[SimPacket]) {
        for (place, packet) in packets.iter().enumerate() {
            if CROWDED {
                self.prefetch(&packets[place..]);
            }
            if packet.is_lost() {
                self.lose(*packet);
            } else {
                self.forward(packet.onward(), packet.at());
            }
        }
    }

    /// Asks the processor for what packets need that go on soon: each answer says what to ask for next.
    #[inline(always)]
    fn prefetch(&self, packets: &[SimPacket]) {
        let next = |distance: usize| packets.get(distance).map(|packet| packet.step() + 1);
        if let Some(step) = next(4 * PREFETCH_DISTANCE) {
            prefetch(self.steps.get(step..=step).unwrap_or_default());
        }
        if let Some(step) = next(2 * PREFETCH_DISTANCE) {
            match self.steps.get(step) {
                Some(&(Step::Link(link) | Step::Metered(link))) => self.links.prefetch(link as usize),
                _ => prefetch(std::slice::from_ref(&self.flows[packets[2 * PREFETCH_DISTANCE].flow()])),
            }
        }
        if let Some(step) = next(PREFETCH_DISTANCE)
            && let Some(&(Step::Link(link) | Step::Metered(link))) = self.steps.get(step)
        {
            self.links.prefetch_last(link as usize);
        }
    }

    /// Packets have passed the last shared link of their routes, unless it dropped them. They go as far as nothing else can change
    /// what happens: over the wire, through a receiver that answers each packet with an ACK at once, to a sender whose timers are
    /// not due before.
    pub(super) fn approach_all(&mut self, packets: &[SimPacket]) {
        if self.are_mixed {
            self.approach_mixed(packets);
        } else if size_of_val(&self.flows[..]) > CROWD {
            self.approach_one_by_one::<true>(packets);
        } else {
            self.approach_one_by_one::<false>(packets);
        }
    }

    #[inline(never)]
    fn approach_one_by_one<const CROWDED: bool>(&mut self, packets: &[SimPacket]) {
        for (place, packet) in packets.iter().enumerate() {
            if CROWDED && let Some(later) = packets.get(place + PREFETCH_DISTANCE) {
                prefetch(std::slice::from_ref(&self.flows[later.flow()]));
            }
            if packet.is_lost() {
                self.lose(*packet);
            } else if packet.is_ack() {
                self.approach_sender(packet.flow(), packet.content(), packet.at());
            } else {
                self.approach_receiver(packet.flow(), packet.content(), packet.at());
            }
        }
    }

    #[inline(always)]
    pub(super) fn approach_receiver(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, links, waiting, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        if let Some(delay) = flow.fixed_delay {
            let arrival = delay.at_receiver(at);
            let Some(ack) = flow.receive(content, arrival, (times, series)) else { return };
            let at = delay.at_sender(at);
            let first = links.first(waiting, flow.first_data_link());
            if flow.acknowledge_fast(ack.number, at, first) {
                self.returned += 1;
            } else {
                self.return_ack(number, ack, arrival, at);
            }
            return;
        }
        let at = flow.base.receiving.inward.pass(content.size(), at);
        if let Some(ack) = flow.receive_fast(content, at) {
            let packet = flow.base.receiving.acknowledge(Ack::plain(ack), at);
            links.first(waiting, flow.first_ack_link()).push(packet);
        } else {
            self.reach_receiver(number, content, at);
        }
    }

    /// A data packet reaches the receiver, which cannot take it on its fast path, at `at`, now or later. Returns how many ACKs are sent.
    #[inline(never)]
    pub(super) fn reach_receiver(&mut self, number: usize, content: Content, at: Instant) -> i64 {
        let Self { flows, links, waiting, events, .. } = self;
        let flow = &mut flows[number];
        if let Some(ack) = flow.receive_delayed_fast(content, at, events) {
            if let DelayedAck::Sent(number) | DelayedAck::Reported(number) = ack {
                let mut outward = links.first(waiting, flow.first_ack_link());
                outward.push(flow.base.receiving.acknowledge(Ack::plain(number), at));
                return 1;
            }
            return 0;
        }
        if let Some(ack) = flow.receive_ahead(content, at) {
            let mut outward = links.first(waiting, flow.first_ack_link());
            outward.push(flow.base.receiving.acknowledge(Ack::plain(ack), at));
            return 1;
        }
        self.reach_receiver_otherwise(number, content, at)
    }

    /// The same for any packet.
    pub(super) fn reach_receiver_otherwise(&mut self, number: usize, content: Content, at: Instant) -> i64 {
        let Self { flows, links, waiting, recorder, events, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        let mut outward = links.first(waiting, flow.first_ack_link());
        let mut sent = flow.send_late_acks(at, times.end(), &mut outward);
        if let Some(ack) = flow.receive_otherwise(content, at, (times, series)) {
            outward.push(flow.base.receiving.acknowledge(ack, at));
            sent += 1;
        }
        flow.schedule(events);
        sent
    }

    /// On a return path of fixed delay, an ACK put on the wire at `begin` reaches the sender at `at`, which cannot take it on its
    /// fast path.
    #[inline(never)]
    fn return_ack(&mut self, number: usize, ack: Ack, begin: Instant, at: Instant) {
        let end = self.recorder.times.end();
        let flow = &mut self.flows[number];
        let packet = flow.base.receiving.acknowledge(ack, begin);
        if packet.at() <= end {
            self.returned += 1;
            if at <= end && !flow.hold_behind(ack, at) {
                self.reach_sender(number, packet.content(), at);
            }
        }
    }

    #[inline(always)]
    pub(super) fn approach_sender(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, links, waiting, .. } = self;
        let flow = &mut flows[number];
        let at = flow.base.sending.inward.pass(content.size(), at);
        let first = links.first(waiting, flow.first_data_link());
        if !flow.acknowledge_fast(content.sequence(), at, first) {
            self.reach_sender(number, content, at);
        }
    }

    /// An ACK reaches the sender at `at`, now or later. Returns whether it has left the network: it may wait for its time.
    #[inline(never)]
    pub(super) fn reach_sender(&mut self, number: usize, content: Content, at: Instant) -> bool {
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        let first = links.first(waiting, flow.first_data_link());
        if flow.acknowledge_shortly(content, at, first, events) {
            // Most that are not for the fast path.
        } else if at > times.end() {
            // It never does.
        } else if flow.hold_behind(Ack::of(content), at) {
            // It is taken later.
        } else if flow.may_act_ahead(at, channels) {
            let first = links.first(waiting, flow.first_data_link());
            flow.acknowledge(Ack::of(content), at, Outlet { first, channels, events }, (times, series));
        } else if flow.sender_keeps_to_clock && !flow.is_owned {
            waiting.push(flow.waiting_ack(content).due(at));
            return false;
        } else {
            flow.hold(Ack::of(content), at, events);
        }
        true
    }

    /// A packet goes on in another part of the network, and what it carries with it.
    #[inline(never)]
    fn leave(&mut self, part: u32, packet: SimPacket) {
        let Some(border) = &mut self.border else { unreachable!("the network is whole") };
        let cargo = self.flows[packet.flow()].base.unload(packet);
        let packet = border.passport(packet).outward(packet);
        border.outboxes[part as usize].push(Crossing { packet, cargo });
    }

    /// A packet comes from another part of the network.
    pub(super) fn enter(&mut self, Crossing { packet, cargo }: Crossing) {
        let Some(border) = &self.border else { unreachable!("the network is whole") };
        let packet = border.inward(packet);
        if let Some(cargo) = cargo {
            self.flows[packet.flow()].base.load(packet, cargo);
        }
        self.forward(packet, packet.at());
    }

    /// Packets, as ports see them: with the numbers of their flows in the whole network.
    #[inline(always)]
    pub(super) fn show(&self, packets: &mut [SimPacket]) {
        if let Some(border) = &self.border {
            border.show(packets);
        }
    }

    /// Packets that ports have seen, with the numbers of their flows here.
    #[inline(always)]
    pub(super) fn take_back(&self, packets: &mut [SimPacket]) {
        if let Some(border) = &self.border {
            border.take_back(packets);
        }
    }

    /// A packet goes on only when its time has come.
    #[inline(never)]
    pub(super) fn wait(&mut self, packet: SimPacket, at: Instant) {
        self.waiting.push(packet.due(at));
    }

    /// A packet has come, now, to a step that had to wait for its time.
    pub(super) fn advance(&mut self, packet: SimPacket) {
        let now = packet.at();
        let number = packet.flow();
        let flow = &mut self.flows[number];
        match self.steps[packet.step()] {
            Step::Link(_) | Step::Metered(_) | Step::Away(_) => {
                unreachable!("links have queues of their own")
            }
            Step::Ingress => {
                if let Some((control, member)) = flow.base.control() {
                    let expected = flow.base.expected_by(packet.sequence());
                    self.controls.steering(control).on_ack(member, expected, now);
                }
                self.forward(packet.onward(), now);
            }
            Step::ReceiverWire => {
                let at = flow.base.receiving.inward.pass(packet.size(), now);
                let packet = flow.waiting_data(packet.content());
                self.wait(packet, at);
            }
            Step::SenderWire => {
                let at = flow.base.sending.inward.pass(packet.size(), now);
                let packet = flow.waiting_ack(packet.content());
                self.wait(packet, at);
            }
            Step::Receiver => {
                if self.populations.contains(number) {
                    self.reach_members_receiver(number, packet.content(), now);
                } else if let Some(user) = self.users.owner(number) {
                    self.reach_users_receiver(user, number, packet.content(), now);
                } else {
                    self.reach_receiver(number, packet.content(), now);
                }
            }
            Step::Sender => {
                if let Some(user) = self.users.owner(number) {
                    self.notify_up_to(user, number, now);
                }
                let Self { flows, links, waiting, channels, events, recorder, .. } = self;
                let Recorder { times, series, .. } = recorder;
                let flow = &mut flows[number];
                let first = links.first(waiting, flow.first_data_link());
                let ack = Ack::of(packet.content());
                flow.acknowledge(ack, now, Outlet { first, channels, events }, (times, series));
                self.carry_ack(number);
                self.note_member(number, now, -1);
            }
        }
    }

    /// At its first router, a packet passes the window control of its path, and the meter that is there. `None` if the meter
    /// drops it.
    #[inline(never)]
    pub(super) fn pass_first_router(&mut self, packet: SimPacket) -> Option<SimPacket> {
        let Step::Metered(_) = self.steps[packet.step()] else { return Some(packet) };
        let Self { flows, controls, shared_meters, channels, events, .. } = self;
        let flow = &mut flows[packet.flow()].base;
        if let Some((control, member)) = flow.control() {
            controls.steering(control).on_data(member, packet.sequence(), packet.at());
        }
        let passed = flow.mark_at_router(packet, shared_meters, Post { channels, events });
        if passed.is_none() {
            self.note_member(packet.flow(), Instant::ZERO, -1);
        }
        passed
    }

    /// The same of all these packets; returns those that the meters let pass, in the same order.
    pub(super) fn pass_first_routers<'a>(&mut self, packets: &'a mut [SimPacket]) -> &'a mut [SimPacket] {
        let mut passed = 0;
        for place in 0..packets.len() {
            if let Some(packet) = self.pass_first_router(packets[place]) {
                packets[passed] = packet;
                passed += 1;
            }
        }
        &mut packets[..passed]
    }

    /// A packet passes the meters of a link. `None` if one drops it.
    #[inline(never)]
    pub(super) fn pass(&mut self, meters: &mut AggregateMeters, packet: SimPacket) -> Option<SimPacket> {
        let mut header = packet.header();
        match meters.judge(&mut header, packet.at()) {
            Ok(()) => Some(packet.remarked(&header)),
            Err((color, _)) => {
                self.flows[packet.flow()].base.police(packet, color);
                self.note_member(packet.flow(), Instant::ZERO, -1);
                None
            }
        }
    }

    /// The same of all these packets; returns those that the meters let pass, in the same order.
    pub(super) fn pass_all<'a>(
        &mut self,
        meters: &mut AggregateMeters,
        packets: &'a mut [SimPacket],
    ) -> &'a mut [SimPacket] {
        let mut passed = 0;
        for place in 0..packets.len() {
            if let Some(packet) = self.pass(meters, packets[place]) {
                packets[passed] = packet;
                passed += 1;
            }
        }
        &mut packets[..passed]
    }

    /// A queue dropped a packet, or a link lost it.
    #[inline(never)]
    pub(super) fn lose(&mut self, packet: SimPacket) {
        let flow = &mut self.flows[packet.flow()].base;
        if packet.is_lost_in_transit() {
            flow.lose_in_transit(packet);
        } else {
            flow.lose(packet);
        }
        self.note_member(packet.flow(), Instant::ZERO, -1);
    }
}

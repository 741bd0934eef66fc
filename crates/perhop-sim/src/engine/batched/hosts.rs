//! All hosts: how packets reach them, what they send, and what the routers next to them do to packets.
//!
//! Packets go as far as nothing else can change what happens to them: over the wire to their host, through
//! the receiver, and with the ACK to the sender, if none of its timers is due before. Where this is not so, a
//! packet or an ACK waits for its time.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::meter::AggregateMeters;
use perhop_core::{Instant, prefetch};

use super::calendar::EventQueue;
use super::flow::{BatchedFlow, FixedDelay, Keeper, SendContext};
use super::link_inputs::{LinkInput, LinkInputs};
use super::users::BatchedUsers;
use crate::control::{Channels, Destination, Post};
use crate::engine::populations::Populations;
use crate::engine::setup::{Routes, Setup, Step, stop_if_asked};
use crate::events::{Event, EventSource, Sources};
use crate::flow::{Marker, PacketSink};
use crate::network::Network;
use crate::packet::{Content, SimPacket};
use crate::probe::Series;
use crate::sampling::{Recorder, SampleTimes};
use crate::transport::{Ack, Received};
use crate::watch::{Stopped, Watch};
use crate::window_control::WindowControls;

/// Flows that take more bytes than this exceed the processor's second-level cache, and are prefetched.
const CROWD: usize = 1 << 20;
/// The flow is prefetched of the packet that comes so many packets later.
pub(super) const PREFETCH_DISTANCE: usize = 6;

#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// Flows of the network, then those of populations.
    pub(super) flows: Vec<BatchedFlow>,
    pub(super) populations: Populations,
    pub(super) users: BatchedUsers,
    /// The inputs to which hosts send, and packets that wait for their time at hosts.
    pub(super) inputs: LinkInputs,
    /// Events besides the arrival of packets.
    pub(super) events: EventQueue,
    pub(super) sources: Sources,
    /// The routes of the network's flows, if flows of populations take them.
    pub(super) routes: Vec<Routes>,
    shared_meters: Vec<Marker>,
    pub(super) channels: Channels,
    pub(super) controls: WindowControls,
    pub(super) recorder: Recorder,
    /// Packets that passed the link back on a [return path of fixed delay](super::fixed_delay).
    pub(super) returned: u64,
}

/// The sending host of a flow, and what it needs to act.
pub(super) struct SenderSide<'a> {
    pub(super) flow: &'a mut BatchedFlow,
    pub(super) out: SendContext<'a>,
    pub(super) samples: (&'a SampleTimes, &'a mut Series),
}

/// The receiving host of a flow, and what it needs to act.
pub(super) struct ReceiverSide<'a> {
    pub(super) flow: &'a mut BatchedFlow,
    pub(super) first: LinkInput<'a>,
    pub(super) events: &'a mut EventQueue,
    pub(super) samples: (&'a SampleTimes, &'a mut Series),
}

impl Hosts {
    /// The hosts of a network at time zero.
    pub(super) fn new(network: &Network, seed: u64, setup: Setup) -> Self {
        let sources = setup.sources();
        let inputs = LinkInputs::of(network, setup.largest_packet());
        let Setup { mut flows, populations, routes, shared_meters, channels, controls, recorder, .. } = setup;
        let users = BatchedUsers::new(network, seed, &mut flows, &routes);
        let populations = Populations::new(network, populations, seed);
        let flows = flows.into_iter().zip(&network.flows).zip(&routes);
        let mut flows: Vec<_> = flows
            .map(|((flow, spec), routes)| BatchedFlow::new(flow, spec, routes, &controls, &recorder.times))
            .collect();
        for (number, user) in users.users.owned() {
            flows[number].keep_for(user, users.users.other_direction(number).is_some());
        }
        Self {
            flows,
            users,
            inputs,
            events: EventQueue::default(),
            sources,
            routes: if populations.is_empty() { Vec::new() } else { routes },
            populations,
            shared_meters,
            channels,
            controls,
            recorder,
            returned: 0,
        }
    }

    /// Schedules the first events of flows and users.
    ///
    /// # Errors
    /// The watch stopped the run.
    pub(super) fn schedule_first(&mut self, watch: &Watch) -> Result<(), Stopped> {
        for (number, flow) in self.flows.iter_mut().enumerate() {
            stop_if_asked(number, watch)?;
            flow.find_due();
            flow.schedule(&mut self.events);
        }
        for (population, at) in self.populations.first_arrivals() {
            self.events.push(Event { at, source: Sources::population(population) });
        }
        (0..self.users.queues.len()).for_each(|user| self.schedule_user(user));
        Ok(())
    }

    /// Returns whether no path's control samples windows, and no meter at a router sends messages to senders.
    pub(super) fn are_independent(&self) -> bool {
        let mut senders = self.flows.iter().map(|flow| &flow.base.sending);
        self.controls.len() == 0
            && senders.all(|sender| sender.feedback.is_none() || !sender.is_marked_at_router())
    }

    /// Returns whether an event concerns the hosts of one flow only.
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

    /// Returns the sending host of a flow.
    #[inline(always)]
    pub(super) fn sender(&mut self, number: usize) -> SenderSide<'_> {
        let Self { flows, channels, events, inputs, recorder: Recorder { times, series, .. }, .. } = self;
        let flow = &mut flows[number];
        let first = inputs.first(flow.first_data_link);
        SenderSide { flow, out: SendContext { first, channels, events }, samples: (times, series) }
    }

    /// Returns the receiving host of a flow.
    #[inline(always)]
    pub(super) fn receiver(&mut self, number: usize) -> ReceiverSide<'_> {
        let Self { flows, events, inputs, recorder: Recorder { times, series, .. }, .. } = self;
        let flow = &mut flows[number];
        let first = inputs.first(flow.first_ack_link);
        ReceiverSide { flow, first, events, samples: (times, series) }
    }

    /// Asks the processor for a flow.
    #[inline(always)]
    pub(super) fn prefetch(&self, number: usize) {
        prefetch(std::slice::from_ref(&self.flows[number]));
    }

    /// Delivers packets that have left the last links of their routes, or were lost there.
    #[inline(never)]
    pub(super) fn deliver_all(&mut self, packets: &[SimPacket]) {
        let are_many = size_of_val(&self.flows[..]) > CROWD;
        let later = packets.get(PREFETCH_DISTANCE..).filter(|_| are_many);
        let mut later = later.unwrap_or_default().iter();
        for packet in packets {
            if let Some(later) = later.next() {
                self.prefetch(later.flow());
            }
            if packet.is_lost() {
                self.lose(*packet);
            } else {
                self.deliver(packet);
            }
        }
    }

    /// Delivers a packet to its host, over the wire; or lets it wait before the wire, if packets of the flow
    /// must.
    #[inline(always)]
    fn deliver(&mut self, packet: &SimPacket) {
        let (number, content, at) = (packet.flow(), packet.content(), packet.at());
        let flow = &mut self.flows[number];
        if flow.packets_wait {
            self.inputs.waiting.push(flow.waiting_before_wire(*packet).due(at));
        } else if packet.is_ack() {
            self.deliver_ack(number, content, at);
        } else if let Some(delay) = flow.fixed_delay {
            self.deliver_and_return(number, content, (at, delay));
        } else {
            let at = flow.base.receiving.inward.pass(content.size(), at);
            self.deliver_data(number, content, at);
        }
    }

    /// Delivers a data packet to the receiver, which it reaches at `at`, now or later.
    #[inline(always)]
    pub(super) fn deliver_data(&mut self, number: usize, content: Content, at: Instant) {
        let flow = &mut self.flows[number];
        let keeper = flow.keeper;
        let acks = match flow.try_receive(content, at) {
            None => self.receive(number, content, at),
            Some(Received { ack, .. }) => {
                if let Some(ack) = ack {
                    self.inputs.first(flow.first_ack_link).put(flow.base.receiving.acknowledge(ack, at));
                }
                flow.schedule_late_ack(&mut self.events);
                ack.is_some().into()
            }
        };
        match keeper {
            Keeper::Nobody => {}
            Keeper::Population => self.note_member(number, at, acks - 1),
            Keeper::User(_) => self.expect_notification(number, at),
        }
    }

    /// Delivers a data packet to the receiver, whose short way is not open. Returns how many ACKs are sent.
    #[inline(never)]
    fn receive(&mut self, number: usize, content: Content, at: Instant) -> i64 {
        let ReceiverSide { flow, mut first, events, samples } = self.receiver(number);
        let mut sent = flow.send_late_acks(at, samples.0.end, &mut first);
        if let Some(ack) = flow.receive(content, at, samples) {
            first.put(flow.base.receiving.acknowledge(ack, at));
            sent += 1;
        }
        flow.schedule(events);
        sent
    }

    /// Delivers a data packet that leaves the last link at `at` over the receiver to the sender, on a return
    /// path of fixed delay, where no ACK waits.
    #[inline(always)]
    fn deliver_and_return(&mut self, number: usize, content: Content, (at, delay): (Instant, FixedDelay)) {
        let Self { flows, events, inputs, recorder: Recorder { times, series, .. }, .. } = self;
        let flow = &mut flows[number];
        let (arrival, at) = (delay.at_receiver(at), delay.at_sender(at));
        let ack = match flow.try_receive(content, arrival) {
            Some(Received { ack, .. }) => ack,
            None => flow.receive(content, arrival, (times, series)),
        };
        let Some(ack) = ack else { return };
        if flow.try_acknowledge(ack, at, inputs.first(flow.first_data_link), events) {
            self.returned += 1;
        } else {
            self.return_ack(number, ack, (arrival, at));
        }
    }

    /// Delivers an ACK over a return path of fixed delay, from its wire at `begin` to the sender at `at`,
    /// whose short way is not open.
    #[inline(never)]
    fn return_ack(&mut self, number: usize, ack: Ack, (begin, at): (Instant, Instant)) {
        let SenderSide { flow, samples, .. } = self.sender(number);
        let end = samples.0.end;
        let packet = flow.base.receiving.acknowledge(ack, begin);
        if packet.at() > end {
            return;
        }
        let is_taken = at > end || flow.hold_behind(ack, at);
        self.returned += 1;
        if !is_taken {
            self.acknowledge(number, packet.content(), at);
        }
    }

    /// Delivers an ACK that leaves the last link at `at` over the wire to the sender.
    #[inline(always)]
    fn deliver_ack(&mut self, number: usize, content: Content, at: Instant) {
        let SenderSide { flow, out, .. } = self.sender(number);
        let at = flow.base.sending.inward.pass(content.size(), at);
        let keeper = flow.keeper;
        let has_left = flow.try_acknowledge(Ack::of(content), at, out.first, out.events)
            || self.acknowledge(number, content, at);
        if keeper == Keeper::Population && has_left {
            self.note_member(number, at, -1);
        }
    }

    /// Delivers an ACK to the sender, whose short way is not open. Returns whether the ACK has left the
    /// network: it may wait for its time.
    #[inline(never)]
    fn acknowledge(&mut self, number: usize, content: Content, at: Instant) -> bool {
        let SenderSide { flow, out, samples } = self.sender(number);
        if at > samples.0.end || flow.hold_behind(Ack::of(content), at) {
            return true;
        }
        if flow.may_act_ahead(at, out.channels) {
            flow.acknowledge(Ack::of(content), at, out, samples);
        } else if flow.sender_keeps_to_clock && !flow.is_owned() {
            let packet = flow.waiting_ack(content).due(at);
            self.inputs.waiting.push(packet);
            return false;
        } else {
            flow.hold(Ack::of(content), at, out.events);
        }
        true
    }

    /// Takes a packet that has waited for its time to this step of its route, at a host.
    pub(super) fn arrive(&mut self, packet: SimPacket, step: Step) {
        let (now, number, content) = (packet.at(), packet.flow(), packet.content());
        let flow = &mut self.flows[number];
        match (step, flow.keeper) {
            (Step::Link(_) | Step::Metered(_) | Step::Away(_) | Step::Ingress, _) => {
                unreachable!("no step at a host")
            }
            (Step::ReceiverWire, _) => {
                let at = flow.base.receiving.inward.pass(packet.size(), now);
                self.inputs.waiting.push(packet.onward().due(at));
            }
            (Step::SenderWire, _) => {
                let at = flow.base.sending.inward.pass(packet.size(), now);
                self.inputs.waiting.push(packet.onward().due(at));
            }
            (Step::Receiver, Keeper::User(user)) => {
                self.deliver_data_to_user((user.get(), number), content, now);
            }
            (Step::Receiver, _) => self.deliver_data(number, content, now),
            (Step::Sender, keeper) => {
                if let Keeper::User(user) = keeper {
                    self.notify_up_to(user.get(), number, now);
                }
                let SenderSide { flow, out, samples } = self.sender(number);
                flow.acknowledge(Ack::of(content), now, out, samples);
                self.carry_ack(number);
                self.note_member(number, now, -1);
            }
        }
    }

    /// Shows an ACK to the window control of its path, at the ingress.
    pub(super) fn pass_ingress(&mut self, packet: SimPacket) {
        let flow = &self.flows[packet.flow()].base;
        if let Some((control, member)) = flow.control() {
            let expected = flow.expected_by(packet.sequence());
            self.controls.steering(control).on_ack(member, expected, packet.at());
        }
    }

    /// Passes a packet through the window control of its path and the meter at its first router. Returns
    /// `None` if the meter drops it.
    #[inline(never)]
    pub(super) fn pass_first_router(&mut self, packet: SimPacket) -> Option<SimPacket> {
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

    /// Passes a packet through the meters of a link. Returns `None` if one drops it.
    #[inline(never)]
    pub(super) fn pass_meters(
        &mut self,
        meters: &mut AggregateMeters,
        packet: SimPacket,
    ) -> Option<SimPacket> {
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

    /// Counts a packet that a queue dropped, or that a link lost.
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

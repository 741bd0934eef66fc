//! Packets in transit, and what they meet besides the queues of links: hosts, meters, controls of paths.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::meter::AggregateMeters;
use perhop_core::{Bytes, Instant};

use super::arrivals::ArrivalQueue;
use super::calendar::EventQueue;
use super::flow::{BatchedFlow, Outlet};
use super::prefetch::prefetch;
use crate::control::{Channels, Post};
use crate::engine::Failure;
use crate::engine::setup::{Setup, Step, schedule_samples, stop_if_asked};
use crate::events::{Event, EventSource, Sources};
use crate::flow::{Flow, Marker};
use crate::network::Network;
use crate::packet::{Content, SimPacket};
use crate::probe::Series;
use crate::sampling::{Recorder, SampleTimes};
use crate::transport::Ack;
use crate::watch::Watch;
use crate::window_control::WindowControls;

/// Flows that take more bytes than this are not all in the processor's second-level cache: the flow of the packet that comes so
/// many packets later is prefetched.
const CROWD: usize = 1 << 20;
const PREFETCH_DISTANCE: usize = 6;

/// Packets in transit, and what they meet.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// Events besides the arrival of packets.
    pub(super) events: EventQueue,
    pub(super) sources: Sources,
    /// For each link, packets on their way to its queue.
    pub(super) links: Vec<ArrivalQueue<SimPacket>>,
    /// Packets on their way to a step of their route that has to wait for its time.
    pub(super) waiting: ArrivalQueue<SimPacket>,
    pub(super) flows: Vec<BatchedFlow>,
    /// All routes, end to end.
    pub(super) steps: Vec<Step>,
    pub(super) shared_meters: Vec<Marker>,
    pub(super) channels: Channels,
    pub(super) controls: WindowControls,
    pub(super) recorder: Recorder,
    /// Packets that passed the link back on a [return path of fixed delay](super::fixed_delay).
    pub(super) returned: u64,
    pub(super) watch: Watch,
}

impl Traffic {
    /// All that is in transit at time zero: nothing.
    pub(super) fn new(network: &Network, setup: Setup, watch: Watch) -> Self {
        let sources = setup.sources();
        let largest = setup.flows.iter().map(Flow::data_size).max().unwrap_or(0);
        let largest = Bytes::new(u64::from(largest));
        // The interval at which packets leave a link that is full of the largest ones.
        let links = network.links.iter().map(|link| ArrivalQueue::expecting(link.rate.time_of(largest)));
        let Setup { flows, populations: _, routes, steps, shared_meters, channels, controls, recorder } =
            setup;
        let flows = flows.into_iter().zip(&network.flows).zip(&routes);
        Self {
            events: EventQueue::default(),
            sources,
            links: links.collect(),
            waiting: ArrivalQueue::default(),
            flows: flows
                .map(|((flow, spec), routes)| {
                    BatchedFlow::new(flow, spec, routes, &controls, &recorder.times)
                })
                .collect(),
            steps,
            shared_meters,
            channels,
            controls,
            recorder,
            returned: 0,
            watch,
        }
    }

    /// Schedules the first events: of flows, window controls and the probe.
    ///
    /// # Errors
    /// The watch stopped the run.
    pub(super) fn schedule_first(&mut self) -> Result<(), Failure> {
        for (number, flow) in self.flows.iter_mut().enumerate() {
            stop_if_asked(number, &self.watch)?;
            flow.find_due();
            flow.schedule(&mut self.events);
        }
        schedule_samples(&self.controls, &self.recorder.times, self.sources, &mut self.events);
        Ok(())
    }

    /// A packet comes to the next step of its route at `at`, from a link.
    #[inline(always)]
    pub(super) fn forward(&mut self, packet: SimPacket, at: Instant) {
        match self.steps[packet.step()] {
            Step::Link(link) | Step::Metered(link) => self.links[link as usize].push(packet.due(at)),
            Step::Ingress => self.wait(packet, at),
            _ => self.approach_all(&[packet.due(at)]),
        }
    }

    /// Packets have passed a link; those that it did not drop come to the next steps of their routes.
    #[inline(never)]
    pub(super) fn forward_all(&mut self, packets: &[SimPacket]) {
        for packet in packets {
            if packet.is_lost() {
                self.lose(*packet);
            } else {
                self.forward(packet.onward(), packet.at());
            }
        }
    }

    /// Packets have passed the last shared link of their routes, unless it dropped them. They go as far as nothing else can change
    /// what happens: over the wire, through a receiver that answers each packet with an ACK at once, to a sender whose timers are
    /// not due before.
    pub(super) fn approach_all(&mut self, packets: &[SimPacket]) {
        if size_of_val(&self.flows[..]) > CROWD {
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
    fn approach_receiver(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, links, waiting, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        if let Some(delay) = flow.fixed_delay {
            let arrival = delay.at_receiver(at);
            let Some(ack) = flow.receive(content, arrival, (times, series)) else { return };
            let at = delay.at_sender(at);
            if flow.acknowledge_fast(ack.number, at, first(links, waiting, flow.first_data_link())) {
                self.returned += 1;
            } else {
                self.return_ack(number, ack, arrival, at);
            }
            return;
        }
        let at = flow.base.receiving.inward.pass(content.size(), at);
        if let Some(ack) = flow.receive_fast(content, at) {
            let packet = flow.base.receiving.acknowledge(Ack::plain(ack), at);
            first(links, waiting, flow.first_ack_link()).push(packet);
        } else {
            self.reach_receiver(number, content, at);
        }
    }

    /// A data packet reaches the receiver, which cannot take it on its fast path, at `at`, now or later.
    #[inline(never)]
    fn reach_receiver(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, links, waiting, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        if flow.receiver_runs_ahead {
            receive(flow, content, at, (links, waiting), (times, series));
        } else {
            waiting.push(flow.waiting_data(content).due(at));
        }
    }

    /// On a return path of fixed delay, an ACK put on the wire at `begin` reaches the sender at `at`, which cannot take it on its
    /// fast path.
    #[inline(never)]
    fn return_ack(&mut self, number: usize, ack: Ack, begin: Instant, at: Instant) {
        let packet = self.flows[number].base.receiving.acknowledge(ack, begin);
        if packet.at() <= self.recorder.times.end() {
            self.returned += 1;
            self.reach_sender(number, packet.content(), at);
        }
    }

    #[inline(always)]
    fn approach_sender(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, links, waiting, .. } = self;
        let flow = &mut flows[number];
        let at = flow.base.sending.inward.pass(content.size(), at);
        let first = first(links, waiting, flow.first_data_link());
        if !flow.acknowledge_fast(content.sequence(), at, first) {
            self.reach_sender(number, content, at);
        }
    }

    /// An ACK reaches the sender at `at`, now or later.
    #[inline(never)]
    fn reach_sender(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        if at > times.end() {
            // It never does.
        } else if flow.may_act_ahead(at, channels) {
            let first = first(links, waiting, flow.first_data_link());
            flow.acknowledge(Ack::of(content), at, Outlet { first, channels, events }, (times, series));
        } else if flow.sender_keeps_to_clock {
            waiting.push(flow.waiting_ack(content).due(at));
        } else {
            flow.hold(Ack::of(content), at);
            flow.schedule(events);
        }
    }

    /// A packet goes on only when its time has come.
    #[inline(never)]
    fn wait(&mut self, packet: SimPacket, at: Instant) {
        self.waiting.push(packet.due(at));
    }

    /// A packet has come, now, to a step that had to wait for its time.
    pub(super) fn advance(&mut self, packet: SimPacket) {
        let now = packet.at();
        let number = packet.flow();
        let flow = &mut self.flows[number];
        match self.steps[packet.step()] {
            Step::Link(_) | Step::Metered(_) => unreachable!("links have queues of their own"),
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
            Step::Receiver => self.receive_now(number, packet.content(), now),
            Step::Sender => {
                let Self { links, waiting, channels, events, recorder, .. } = self;
                let Recorder { times, series, .. } = recorder;
                let first = first(links, waiting, flow.first_data_link());
                let ack = Ack::of(packet.content());
                flow.acknowledge(ack, now, Outlet { first, channels, events }, (times, series));
            }
        }
    }

    /// A data packet has come, now, to a receiver that keeps to the clock or whose sender shares no link with it.
    fn receive_now(&mut self, number: usize, content: Content, now: Instant) {
        let Self { flows, links, waiting, recorder, events, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        let acknowledged = receive(flow, content, now, (links, waiting), (times, series));
        let keeps_time = flow.base.receiving.receiver.keeps_time();
        if !flow.receiver_runs_ahead && (!acknowledged || keeps_time) {
            // The next ACK has its own time.
            flow.find_due();
            flow.schedule(events);
        }
    }

    /// The next event before `limit`. A wake-up whose flow has since put it off is put off here, so that nothing waits for it.
    pub(super) fn next_event(&mut self, limit: Instant) -> Option<Event> {
        loop {
            let event = *self.events.peek(limit)?;
            let EventSource::Timer(flow) = self.sources.source(event.source) else { return Some(event) };
            let flow = &mut self.flows[flow];
            if flow.scheduled != event.at {
                self.events.pop(limit); // An earlier wake-up took its place.
            } else if event.at < flow.wake() {
                self.events.pop(limit);
                flow.scheduled = Instant::NEVER;
                flow.schedule(&mut self.events);
            } else {
                return Some(event);
            }
        }
    }

    /// A flow is woken.
    pub(super) fn wake(&mut self, number: usize, now: Instant) {
        self.flows[number].scheduled = Instant::NEVER;
        self.take_held(number, now);
        let Self { flows, links, waiting, channels, events, .. } = self;
        let flow = &mut flows[number];
        flow.find_due();
        if now >= flow.wake() {
            let first_link = first(links, waiting, flow.first_data_link());
            let late_ack = flow.wake_up(now, Outlet { first: first_link, channels, events });
            if let Some(ack) = late_ack {
                first(links, waiting, flow.first_ack_link()).push(ack);
            }
            flow.find_due();
            self.take_held(number, now);
        }
        self.flows[number].schedule(&mut self.events);
    }

    /// A sender takes the ACKs that were held and have come by now, or need not be held any longer.
    fn take_held(&mut self, number: usize, now: Instant) {
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        while let Some((at, ack)) = flow.take_held(now, channels) {
            let first = first(links, waiting, flow.first_data_link());
            flow.acknowledge(ack, at, Outlet { first, channels, events }, (times, series));
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
        flow.mark_at_router(packet, shared_meters, Post { channels, events })
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

    /// A queue dropped a packet.
    #[inline(never)]
    pub(super) fn lose(&mut self, packet: SimPacket) {
        self.flows[packet.flow()].base.lose(packet);
    }
}

/// The receiver takes a packet that reaches it at `at`, now or later; returns whether it sends an ACK.
#[inline(always)]
fn receive(
    flow: &mut BatchedFlow,
    content: Content,
    at: Instant,
    (links, waiting): (&mut [ArrivalQueue<SimPacket>], &mut ArrivalQueue<SimPacket>),
    samples: (&SampleTimes, &mut Series),
) -> bool {
    let ack = flow.receive_otherwise(content, at, samples);
    if let Some(ack) = ack {
        let packet = flow.base.receiving.acknowledge(ack, at);
        first(links, waiting, flow.first_ack_link()).push(packet);
    }
    ack.is_some()
}

/// The queue to which a host's packets go first: that of a link, or, if the hosts share no link, that of waiting packets.
#[inline(always)]
fn first<'a>(
    links: &'a mut [ArrivalQueue<SimPacket>],
    waiting: &'a mut ArrivalQueue<SimPacket>,
    link: u32,
) -> &'a mut ArrivalQueue<SimPacket> {
    links.get_mut(link as usize).unwrap_or(waiting)
}

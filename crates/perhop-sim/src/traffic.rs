//! Traffic: packets on their way, and whatever they meet besides the queues of links: hosts, meters, controls of paths.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::Instant;
use perhop_core::control::Steering;

use crate::control::{Channels, Post};
use crate::events::{Event, EventQueue};
use crate::flow::{Flow, Marker, Way};
use crate::inbox::Inbox;
use crate::packet::{Content, SimPacket};
use crate::prefetch::prefetch;
use crate::probe::{Looks, Series};
use crate::transport::Ack;
use crate::watch::Watch;

/// Flows that take more bytes than this are not all in the processor's second cache: those of the packets that come next but so
/// many are asked for ahead of time.
const CROWD: usize = 1 << 20;
const AHEAD: usize = 6;

/// How a run is driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Departures are worked out on arrival, without events, where the queue decides at its tail; what nobody else can
    /// change is done at once; links run ahead of one another as far as they may: the fast path.
    #[default]
    OnDemand,
    /// One event at the end of each transmission asks the discipline for the next packet, each hop is an event, and all
    /// happen in the order of time: the plain way, against which the other is tested.
    ByEvent,
}

/// One step of a route. Hosts put packets on their own wires when they send them, so a route begins behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Onto a link that flows share.
    Shared(u32),
    /// Onto a link that flows share, past what stands at the flow's first router: a meter, the control of its path.
    Metered(u32),
    /// Past the control of its path, to which the ingress shows acknowledgements.
    Observed,
    /// Onto the wire to the host that receives data, if it has one, and to that host.
    ReceiverWire,
    Receiver,
    /// Onto the wire to the host that receives acknowledgements, if it has one, and to that host.
    SenderWire,
    Sender,
}

/// What is on its way, and what it meets.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    /// What happens besides the arrival of packets.
    pub(crate) events: EventQueue,
    /// For each link, packets on their way to its queue.
    pub(crate) inboxes: Vec<Inbox<SimPacket>>,
    /// Packets on their way to a step of their route that has to wait for its time.
    pub(crate) arrivals: Inbox<SimPacket>,
    pub(crate) flows: Vec<Flow>,
    /// All routes, end to end.
    pub(crate) steps: Vec<Step>,
    pub(crate) shared_meters: Vec<Marker>,
    /// The ways of control messages.
    pub(crate) channels: Channels,
    /// Window controls of paths.
    pub(crate) windows: Vec<Steering>,
    pub(crate) looks: Looks,
    pub(crate) series: Series,
    /// What nobody else can change is done at once.
    pub(crate) service: Service,
    /// Packets that passed the link back on a [clear way](crate::clear).
    pub(crate) came_round: u64,
    /// Who may end the run early.
    pub(crate) watch: Watch,
}

impl Traffic {
    /// A packet comes to the next step of its route at `at`, from a link.
    #[inline(always)]
    pub(crate) fn carry(&mut self, packet: SimPacket, at: Instant) {
        match self.steps[packet.step()] {
            Step::Shared(link) | Step::Metered(link) => self.inboxes[link as usize].push(packet.due(at)),
            Step::Observed => self.wait(packet, at),
            _ if self.service == Service::ByEvent => self.wait(packet, at),
            _ => self.approach_all(&[packet.due(at)]),
        }
    }

    /// Packets have passed a link; those that it did not lose come to the next steps of their routes.
    #[inline(never)]
    pub(crate) fn carry_all(&mut self, packets: &[SimPacket]) {
        for packet in packets {
            if packet.is_lost() {
                self.lose(*packet);
            } else {
                self.carry(packet.onward(), packet.at());
            }
        }
    }

    /// Packets have passed the last link of their routes that flows share, unless it lost them. They go as far as nobody else
    /// can change what happens: over the wire, through a receiver that answers each packet as it comes, to a sender whose
    /// timers are not due before.
    pub(crate) fn approach_all(&mut self, packets: &[SimPacket]) {
        if size_of_val(&self.flows[..]) > CROWD {
            self.approach_one_by_one::<true>(packets);
        } else {
            self.approach_one_by_one::<false>(packets);
        }
    }

    #[inline(never)]
    fn approach_one_by_one<const CROWDED: bool>(&mut self, packets: &[SimPacket]) {
        for (place, packet) in packets.iter().enumerate() {
            if CROWDED && let Some(ahead) = packets.get(place + AHEAD) {
                prefetch(std::slice::from_ref(&self.flows[ahead.flow()]));
            }
            if packet.is_lost() {
                self.lose(*packet);
            } else if packet.is_answer() {
                self.approach_sender(packet.flow(), packet.content(), packet.at());
            } else {
                self.approach_receiver(packet.flow(), packet.content(), packet.at());
            }
        }
    }

    #[inline(always)]
    fn approach_receiver(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, inboxes, arrivals, looks, series, .. } = self;
        let flow = &mut flows[number];
        if let Some(way) = flow.receiving.clear {
            let arrival = way.at_receiver(at);
            let Some(ack) = flow.receive(content, arrival, (looks, series)) else { return };
            let at = way.at_sender(at);
            if flow.acknowledge_fast(ack.number, at, first(inboxes, arrivals, flow.sending.first_link)) {
                self.came_round += 1;
            } else {
                self.come_round(number, ack, arrival, at);
            }
            return;
        }
        let at = flow.receiving.inward.pass(content.size(), at);
        if flow.receiving.answers_ahead {
            receive(flow, content, at, (inboxes, arrivals), (looks, series));
        } else {
            arrivals.push(flow.waiting_data(content).due(at));
        }
    }

    /// On a clear way, an answer put on the wire at `begin` reaches the sender at `at`, which cannot take it on its fast path.
    #[inline(never)]
    fn come_round(&mut self, number: usize, ack: Ack, begin: Instant, at: Instant) {
        let answer = self.flows[number].receiving.answer(ack, begin);
        if answer.at() <= self.looks.end() {
            self.came_round += 1;
            self.reach_sender(number, answer.content(), at);
        }
    }

    #[inline(always)]
    fn approach_sender(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, inboxes, arrivals, .. } = self;
        let flow = &mut flows[number];
        let at = flow.sending.inward.pass(content.size(), at);
        if !flow.acknowledge_fast(content.sequence(), at, first(inboxes, arrivals, flow.sending.first_link)) {
            self.reach_sender(number, content, at);
        }
    }

    /// An answer reaches the sender at `at`, now or later.
    #[inline(never)]
    fn reach_sender(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, inboxes, arrivals, channels, events, looks, series, .. } = self;
        let flow = &mut flows[number];
        if at > looks.end() {
            // It never does.
        } else if flow.may_act_ahead(at, channels) {
            let first = first(inboxes, arrivals, flow.sending.first_link);
            flow.acknowledge(Ack::of(content), at, Way { first, channels, events }, (looks, series));
        } else if flow.sending.by_the_clock {
            arrivals.push(flow.waiting_answer(content).due(at));
        } else {
            flow.hold(Ack::of(content), at);
            flow.schedule(events);
        }
    }

    /// A packet goes on only when its time has come.
    #[inline(never)]
    fn wait(&mut self, packet: SimPacket, at: Instant) {
        self.arrivals.push(packet.due(at));
    }

    /// A packet has come, now, to a step that had to wait for its time.
    pub(crate) fn advance(&mut self, packet: SimPacket) {
        let now = packet.at();
        let number = packet.flow();
        let flow = &mut self.flows[number];
        match self.steps[packet.step()] {
            Step::Shared(_) | Step::Metered(_) => unreachable!("links keep what comes to them"),
            Step::Observed => {
                if let Some((control, member)) = flow.watched() {
                    self.windows[control].on_ack(member, flow.expected_by(packet.sequence()), now);
                }
                self.carry(packet.onward(), now);
            }
            Step::ReceiverWire => {
                let at = flow.receiving.inward.pass(packet.size(), now);
                let packet = flow.waiting_data(packet.content());
                self.wait(packet, at);
            }
            Step::SenderWire => {
                let at = flow.sending.inward.pass(packet.size(), now);
                let packet = flow.waiting_answer(packet.content());
                self.wait(packet, at);
            }
            Step::Receiver => {
                let answers_ahead = flow.receiving.answers_ahead;
                let Self { inboxes, arrivals, looks, series, .. } = self;
                let answered = receive(flow, packet.content(), now, (inboxes, arrivals), (looks, series));
                if !answers_ahead && (!answered || self.flows[number].keeps_time()) {
                    // The next acknowledgement has its own time.
                    self.flows[number].look_ahead();
                    self.schedule(number);
                }
            }
            Step::Sender => {
                let Self { inboxes, arrivals, channels, events, looks, series, .. } = self;
                let first = first(inboxes, arrivals, flow.sending.first_link);
                flow.acknowledge(
                    Ack::of(packet.content()),
                    now,
                    Way { first, channels, events },
                    (looks, series),
                );
            }
        }
    }

    /// The next event before `limit`. A wake-up whose flow has since put it off is put off here, so that nobody waits for it.
    pub(crate) fn next_event(&mut self, limit: Instant) -> Option<Event> {
        loop {
            let event = *self.events.peek(limit)?;
            let Some(flow) = self.flows.get_mut(event.source.0 as usize) else { return Some(event) };
            if flow.sending.scheduled != event.at {
                self.events.pop(limit); // An earlier wake-up took its place.
            } else if event.at < flow.wake() {
                self.events.pop(limit);
                flow.sending.scheduled = Instant::NEVER;
                flow.schedule(&mut self.events);
            } else {
                return Some(event);
            }
        }
    }

    /// Makes sure that the flow is woken in time.
    pub(crate) fn schedule(&mut self, number: usize) {
        self.flows[number].schedule(&mut self.events);
    }

    /// A flow is woken.
    pub(crate) fn wake(&mut self, number: usize, now: Instant) {
        self.flows[number].sending.scheduled = Instant::NEVER;
        self.take_held(number, now);
        let Self { flows, inboxes, arrivals, channels, events, .. } = self;
        let flow = &mut flows[number];
        flow.look_ahead();
        if now >= flow.wake() {
            let late_answer = flow.wake_up(now);
            let way = Way { first: first(inboxes, arrivals, flow.sending.first_link), channels, events };
            flow.transmit(now, way);
            if let Some(answer) = late_answer {
                first(inboxes, arrivals, flow.receiving.first_link).push(answer);
            }
            flow.look_ahead();
            self.take_held(number, now);
        }
        self.schedule(number);
    }

    /// A sender takes the answers that were held and have come by now, or need not be held any longer.
    fn take_held(&mut self, number: usize, now: Instant) {
        let Self { flows, inboxes, arrivals, channels, events, looks, series, .. } = self;
        let flow = &mut flows[number];
        while let Some((at, answer)) = flow.take_held(now, channels) {
            let way = Way { first: first(inboxes, arrivals, flow.sending.first_link), channels, events };
            flow.acknowledge(answer, at, way, (looks, series));
        }
    }

    /// At its first router a packet passes the control of its path, and the meter that stands there.
    #[inline(never)]
    pub(crate) fn meter(&mut self, packet: SimPacket) -> SimPacket {
        let Step::Metered(_) = self.steps[packet.step()] else { return packet };
        let Self { flows, windows, shared_meters, channels, events, .. } = self;
        let flow = &mut flows[packet.flow()];
        if let Some((control, member)) = flow.watched() {
            windows[control].on_data(member, packet.sequence(), packet.at());
        }
        flow.mark_at_router(packet, shared_meters, Post { channels, events })
    }

    /// A queue dropped a packet of data, or an answer.
    #[inline(never)]
    pub(crate) fn lose(&mut self, packet: SimPacket) {
        self.flows[packet.flow()].lose(packet);
    }
}

/// The receiver takes a packet that reaches it at `at`, now or later; says whether it answers.
#[inline(always)]
fn receive(
    flow: &mut Flow,
    content: Content,
    at: Instant,
    (inboxes, arrivals): (&mut [Inbox<SimPacket>], &mut Inbox<SimPacket>),
    looking: (&Looks, &mut Series),
) -> bool {
    let ack = flow.receive(content, at, looking);
    if let Some(ack) = ack {
        first(inboxes, arrivals, flow.receiving.first_link).push(flow.receiving.answer(ack, at));
    }
    ack.is_some()
}

/// Where what a host sends goes first.
#[inline(always)]
fn first<'a>(
    inboxes: &'a mut [Inbox<SimPacket>],
    arrivals: &'a mut Inbox<SimPacket>,
    link: u32,
) -> &'a mut Inbox<SimPacket> {
    inboxes.get_mut(link as usize).unwrap_or(arrivals)
}

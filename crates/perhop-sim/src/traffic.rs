//! Traffic: packets on their way, and whatever they meet besides the queues of links: hosts, meters, controls of paths.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::meter::{AnyMeter, Meter};
use perhop_core::{Context, Instant, Rng};

use crate::calendar::Calendar;
use crate::control::{Channels, Post};
use crate::events::{Event, EventQueue};
use crate::flow::{Flow, NO_LINK};
use crate::link::Service;
use crate::packet::SimPacket;
use crate::probe::{Looks, Series};
use crate::windows::Steering;

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
    pub(crate) inboxes: Vec<Calendar<SimPacket>>,
    /// Packets on their way to a step of their route that has to wait for its time.
    pub(crate) arrivals: Calendar<SimPacket>,
    pub(crate) flows: Vec<Flow>,
    /// All routes, end to end.
    pub(crate) steps: Vec<Step>,
    pub(crate) shared_meters: Vec<(AnyMeter, Rng)>,
    /// The ways of control messages.
    pub(crate) channels: Channels,
    /// Window controls of paths.
    pub(crate) windows: Vec<Steering>,
    pub(crate) looks: Looks,
    pub(crate) series: Series,
    /// What nobody else can change is done at once.
    pub(crate) service: Service,
}

impl Traffic {
    /// A packet comes to the next step of its route at `at`, from a link.
    #[inline(always)]
    pub(crate) fn carry(&mut self, packet: SimPacket, at: Instant) {
        match self.steps[packet.step() as usize] {
            Step::Shared(link) | Step::Metered(link) => self.inboxes[link as usize].push(packet.due(at)),
            Step::Observed => self.wait(packet, at),
            _ => self.approach(packet, at),
        }
    }

    /// A packet has passed the last link of its route that flows share, at `at`. It goes as far as nobody else can change what
    /// happens: over the wire, through a receiver that answers each packet as it comes, to a sender whose timers are not due
    /// before.
    #[inline(always)]
    pub(crate) fn approach(&mut self, packet: SimPacket, at: Instant) {
        let number = packet.flow();
        let receiving = &self.flows[number].receiving;
        if self.service == Service::ByEvent {
            self.wait(packet, at);
        } else if packet.step() >= receiving.backward {
            self.approach_sender(number, packet.sequence(), packet.size(), at);
        } else if receiving.answers_ahead {
            self.approach_receiver(number, packet.sequence(), packet.size(), at);
        } else {
            self.pass_inward(packet, at);
        }
    }

    /// A packet passes the wire to the host that receives data, and waits there for its turn.
    #[inline(never)]
    fn pass_inward(&mut self, packet: SimPacket, at: Instant) {
        let receiving = &mut self.flows[packet.flow()].receiving;
        let at = receiving.inward.pass(packet.size(), at);
        let step = receiving.step;
        self.wait(packet.before(step), at);
    }

    #[inline(never)]
    fn approach_receiver(&mut self, number: usize, sequence: u32, size: u16, at: Instant) {
        let at = self.flows[number].receiving.inward.pass(size, at);
        self.receive(number, sequence, size, at);
    }

    #[inline(never)]
    fn approach_sender(&mut self, number: usize, expected: u32, size: u16, at: Instant) {
        let flow = &mut self.flows[number];
        let at = flow.sending.inward.pass(size, at);
        if may_act_ahead(flow, at, &self.channels, &self.looks) {
            self.acknowledge(number, expected, at);
        } else {
            flow.sending.held += 1;
            self.arrivals.push(flow.waiting_answer(expected).due(at));
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
        match self.steps[packet.step() as usize] {
            Step::Shared(_) | Step::Metered(_) => unreachable!("links keep what comes to them"),
            Step::Observed => {
                if let Some((control, member)) = flow.sending.watched {
                    self.windows[control].on_ack(member, packet.sequence());
                }
                self.approach(packet.onward(), now);
            }
            Step::ReceiverWire => {
                self.pass_inward(packet, now);
            }
            Step::SenderWire => {
                let at = flow.sending.inward.pass(packet.size(), now);
                flow.sending.held += 1;
                let packet = packet.before(flow.sending.step);
                self.wait(packet, at);
            }
            Step::Receiver => {
                let answers_ahead = flow.receiving.answers_ahead;
                let answered = self.receive(number, packet.sequence(), packet.size(), now);
                if !answers_ahead && (!answered || self.flows[number].keeps_time()) {
                    // The next acknowledgement has its own time.
                    self.flows[number].look_ahead();
                    self.schedule(number);
                }
            }
            Step::Sender => {
                flow.sending.held -= 1;
                self.acknowledge(number, packet.sequence(), now);
            }
        }
    }

    /// The receiver takes a packet that reaches it at `at`, now or later; says whether it answers.
    #[inline(always)]
    fn receive(&mut self, number: usize, sequence: u32, size: u16, at: Instant) -> bool {
        let flow = &mut self.flows[number];
        let Some(answer) = flow.receive(sequence, size, at, (&self.looks, &mut self.series)) else {
            return false;
        };
        match flow.receiving.first_link {
            NO_LINK => self.arrivals.push(answer),
            link => self.inboxes[link as usize].push(answer),
        }
        true
    }

    /// A sender takes an acknowledgement that reaches it at `at`, now or later, and sends what it then may.
    #[inline(always)]
    fn acknowledge(&mut self, number: usize, expected: u32, at: Instant) {
        let Self { flows, inboxes, arrivals, channels, events, looks, series, .. } = self;
        let flow = &mut flows[number];
        flow.acknowledge(expected, at, (looks, series));
        let first = match flow.sending.first_link {
            NO_LINK => arrivals,
            link => &mut inboxes[link as usize],
        };
        while let Some(packet) = flow.transmit(at, Post { channels, events }) {
            first.push(packet);
        }
        flow.sending.schedule(events);
    }

    /// Sends whatever the flow's sender wants on the wire.
    fn transmit(&mut self, number: usize, at: Instant) {
        let Self { flows, inboxes, arrivals, channels, events, .. } = self;
        let flow = &mut flows[number];
        let first = match flow.sending.first_link {
            NO_LINK => arrivals,
            link => &mut inboxes[link as usize],
        };
        while let Some(packet) = flow.transmit(at, Post { channels, events }) {
            first.push(packet);
        }
    }

    /// The next event before `limit`. A wake-up whose flow has since put it off is put off here, so that nobody waits for it.
    pub(crate) fn next_event(&mut self, limit: Instant) -> Option<Event> {
        loop {
            let event = *self.events.peek(limit)?;
            let Some(flow) = self.flows.get_mut(event.source.0 as usize) else { return Some(event) };
            let host = &mut flow.sending;
            if host.scheduled != event.at {
                self.events.pop(limit); // An earlier wake-up took its place.
            } else if event.at < host.wake() {
                self.events.pop(limit);
                host.scheduled = Instant::NEVER;
                host.schedule(&mut self.events);
            } else {
                return Some(event);
            }
        }
    }

    /// Makes sure that the flow is woken in time.
    pub(crate) fn schedule(&mut self, number: usize) {
        self.flows[number].sending.schedule(&mut self.events);
    }

    /// A flow is woken.
    pub(crate) fn wake(&mut self, number: usize, now: Instant) {
        let flow = &mut self.flows[number];
        flow.sending.scheduled = Instant::NEVER;
        flow.look_ahead();
        if now < flow.sending.wake() {
            return self.schedule(number); // Its deadline has moved away.
        }
        let late_answer = flow.wake_up(now);
        let first_link = flow.receiving.first_link;
        self.transmit(number, now);
        match (late_answer, first_link) {
            (Some(answer), NO_LINK) => self.arrivals.push(answer),
            (Some(answer), link) => self.inboxes[link as usize].push(answer),
            (None, _) => {}
        }
        self.flows[number].look_ahead();
        self.schedule(number);
    }

    /// At its first router a packet passes the control of its path, and the meter that stands there: one that several flows
    /// share, or the flow's own.
    #[inline(never)]
    pub(crate) fn meter(&mut self, mut packet: SimPacket) -> SimPacket {
        let Step::Metered(_) = self.steps[packet.step() as usize] else { return packet };
        let now = packet.at();
        let host = &mut self.flows[packet.flow()].sending;
        if let Some((control, member)) = host.watched {
            self.windows[control].on_data(member, packet.sequence());
        }
        let color = match host.edge_meter {
            Some(shared) => {
                let (meter, rng) = &mut self.shared_meters[shared as usize];
                Some(meter.color(&packet.header(), &mut Context { now, rng }))
            }
            None => host.color_at_ingress(&packet.header(), now),
        };
        if let Some(color) = color {
            let post = Post { channels: &mut self.channels, events: &mut self.events };
            packet = host.mark(packet, color, now, post);
        }
        packet
    }

    /// A queue dropped a packet of data, or an answer.
    #[inline(never)]
    pub(crate) fn lose(&mut self, packet: SimPacket) {
        self.flows[packet.flow()].lose(packet);
    }
}

/// Whether the sender may take an acknowledgement now, although it comes only at `arrival`: nothing else happens to the
/// sender until then.
#[inline(always)]
fn may_act_ahead(flow: &Flow, arrival: Instant, channels: &Channels, looks: &Looks) -> bool {
    let host = &flow.sending;
    host.held == 0
        && arrival < host.wake()
        && arrival <= looks.end()
        && host.news.is_none_or(|channel| arrival < channels.next(channel as usize))
}

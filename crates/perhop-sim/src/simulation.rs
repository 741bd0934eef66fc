//! The event loop.
//!
//! At most one event a hop: a packet's arrival at the far end of a link. Sources of events are, in the order in which they act at
//! one time: ports (those served by event), links, channels of control messages, flows (their timers), window controls, the
//! probe.

#![expect(
    clippy::inline_always,
    reason = "the packet's path through the loop is one function: a tenth of its time"
)]

use std::collections::VecDeque;

use perhop_core::control::Message;
use perhop_core::marker::AfClass;
use perhop_core::meter::{AnyMeter, Meter};
use perhop_core::{
    Bitrate, Color, Context, Dscp, Duration, Environment, FlowId, Header, Imbalance, Instant, Rng,
    ServiceLevel,
};

use crate::control::{Channels, Hearer, Post};
use crate::events::{EventQueue, SourceId};
use crate::link::{Link, Offer, Served, Service};
use crate::network::{AccessSpec, FlowSpec, Marking, Network, NoRoute, SharedMeter, TransportSpec};
use crate::outcome::{FlowOutcome, LinkOutcome, Outcome};
use crate::packet::SimPacket;
use crate::probe::{QueueSeries, Series};
use crate::transport::datagram::{DatagramReceiver, DatagramSender, Datagrams};
use crate::transport::rap::RapSender;
use crate::transport::tcp::{TcpReceiver, TcpSender};
use crate::transport::tfrc::{TfrcReceiver, TfrcSender};
use crate::transport::udp::UdpSender;
use crate::transport::{Received, Receiver, Sender, Transmit};
use crate::windows::Steering;

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Simulation {
    now: Instant,
    end: Instant,
    events: EventQueue,
    /// Links between routers, then the private ones.
    links: Vec<Link>,
    service: Service,
    flows: Vec<Flow>,
    shared_meters: Vec<(AnyMeter, Rng)>,
    /// All routes, end to end.
    steps: Vec<Step>,
    handled: u64,
    hops: u64,
    observed: Vec<Observed>,
    /// The ways of control messages.
    channels: Channels,
    /// Window controls of paths.
    controls: Vec<PathControl>,
    probe: Probe,
    /// When the probe or a control next looks at flows.
    looks_at: Instant,
    warmup: Instant,
}

/// One step of a route.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Onto a link that flows share.
    Shared(u32),
    /// Onto a link that flows share, past what stands at the flow's first router: a meter, the control of its path.
    Metered(u32),
    /// Past the control of its path, to which the ingress shows acknowledgements.
    Observed,
    /// Onto a link between a host and its router.
    Private(u32),
    /// To the host that receives data.
    Receiver,
    /// To the host that receives acknowledgements.
    Sender,
}

#[derive(Clone, Debug)]
struct Flow {
    sender: Sender,
    receiver: Receiver,
    /// What packets carry besides their number, unless the flow is TCP.
    datagrams: Box<Datagrams>,
    meter: Option<(AnyMeter, Rng)>,
    edge_meter: Option<usize>,
    /// Its own meter stands at the first router.
    marks_at_ingress: bool,
    /// The control of its path, and its place there.
    watched: Option<(usize, usize)>,
    color: Color,
    dscp: Dscp,
    /// The label of its path, which acknowledgements carry, too.
    label: u32,
    service: ServiceLevel,
    /// The channel on which its marker tells its sender of OUT packets, if it does.
    news: Option<usize>,
    /// Nothing but its own acknowledgements and timers reaches the sender, and what it sends goes onto its own link.
    acts_ahead: bool,
    /// No later than the next thing that happens to this flow besides its sender's timers.
    due: Instant,
    rng: Rng,
    /// Where the routes of data and of acknowledgements begin.
    forward: u32,
    backward: u32,
    ack_size: u16,
    data_size: u16,
    /// Application events still to come: start, then stop.
    start: Instant,
    stop: Instant,
    /// The wake-up that is in the event queue.
    scheduled: Instant,
    /// Acknowledgements that could not be taken ahead and are events: those behind them must wait their turn.
    acks_due: u32,
    /// The receiver's answers depend on this flow alone: it may take packets ahead of time.
    answers_ahead: bool,
    /// When each packet not yet counted as delivered reaches the receiver.
    arriving: VecDeque<Instant>,
    outcome: FlowOutcome,
    at_warmup: (u64, u64),
    at_last_look: u64,
}

/// A link whose queue is ruled: its number, name and rate.
#[derive(Clone, Debug)]
struct Observed {
    link: usize,
    name: String,
    rate: Bitrate,
}

/// The window control of one path, and the channels to the path's queues.
#[derive(Clone, Debug)]
struct PathControl {
    windows: Steering,
    queues: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Probe {
    interval: Option<Duration>,
    next: Instant,
    /// The next look, of whatever kind.
    looks_at: Instant,
    warmup_taken: bool,
    series: Series,
}

impl Simulation {
    /// The network at time zero.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path.
    pub fn new(network: &Network, seed: u64) -> Result<Self, NoRoute> {
        Self::with_service(network, seed, Service::OnDemand)
    }

    /// As [`new`](Self::new), with a choice of how ports are served. The result is the same.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path.
    pub fn with_service(network: &Network, seed: u64, service: Service) -> Result<Self, NoRoute> {
        let end = Instant::ZERO + network.duration;
        let warmup = Instant::ZERO + network.warmup;
        let mut links = Vec::new();
        let mut observed = Vec::new();
        for spec in &network.links {
            links.push(match spec.queue.clone() {
                None => Link::open(spec.rate, spec.delay),
                Some(queue) => {
                    observed.push(Observed { link: links.len(), name: spec.name.clone(), rate: spec.rate });
                    let path = format!("links/{}", spec.name);
                    Link::with_queue(spec.rate, spec.delay, queue, (seed, &path), (warmup, end), service)
                }
            });
        }
        let mut steps = Vec::new();
        let mut flows = Vec::new();
        for (number, spec) in network.flows.iter().enumerate() {
            let mut route = |first: &Option<AccessSpec>, last: &Option<AccessSpec>, end_step: Step| {
                let acknowledges = matches!(end_step, Step::Sender);
                let no_route = NoRoute { flow: number, from: spec.from, to: spec.to };
                let begin = steps.len() as u32;
                let mut private = |access: &Option<AccessSpec>, steps: &mut Vec<Step>| {
                    if let Some(access) = access {
                        steps.push(Step::Private(links.len() as u32));
                        links.push(Link::open(access.rate, access.delay));
                    }
                };
                private(first, &mut steps);
                let shared = network.route_of(spec, acknowledges).ok_or(no_route)?;
                let controlled = spec.path.is_some_and(|path| network.paths[path].control.is_some());
                let metered = !acknowledges
                    && (controlled || matches!(spec.marking, Marking::Edge(_) | Marking::Ingress(_)));
                steps.extend(shared.into_iter().enumerate().map(|(hop, link)| match hop {
                    0 if metered => Step::Metered(link as u32),
                    _ => Step::Shared(link as u32),
                }));
                if controlled && acknowledges {
                    steps.push(Step::Observed);
                }
                private(last, &mut steps);
                steps.push(end_step);
                Ok(begin)
            };
            let forward = route(&spec.access, &spec.egress, Step::Receiver)?;
            let backward = match spec.transport {
                TransportSpec::Tcp(_) | TransportSpec::Rap(_) | TransportSpec::Tfrc(_) => {
                    route(&spec.egress, &spec.access, Step::Sender)?
                }
                TransportSpec::Udp(_) => steps.len() as u32,
            };
            let label = spec.path.map_or(0, |path| network.paths[path].label);
            flows.push(Flow::new(spec, label, seed, (forward, backward), (warmup, end)));
        }
        let mut simulation = Self {
            now: Instant::ZERO,
            end,
            events: EventQueue::default(),
            channels: Channels::new(2 * links.len()),
            links,
            service,
            flows,
            shared_meters: network.shared_meters.iter().map(|shared| build_shared(shared, seed)).collect(),
            steps,
            handled: 0,
            hops: 0,
            controls: Vec::new(),
            probe: Probe::new(network, &observed),
            looks_at: Instant::NEVER,
            observed,
            warmup,
        };
        // All channels stand before the first event: their number is part of the sources' numbers.
        simulation.add_news(network);
        simulation.add_controls(network, seed);
        for flow in 0..simulation.flows.len() {
            simulation.flows[flow].look_ahead();
            simulation.schedule_flow(flow);
        }
        for control in 0..simulation.controls.len() {
            simulation.schedule_control(control);
        }
        simulation.schedule_probe();
        Ok(simulation)
    }

    /// Handles every event up to and including `until` (and never beyond the run's end).
    pub fn run_until(&mut self, until: Instant) {
        let until = until.min(self.end);
        while let Some((at, source)) = self.events.pop(until) {
            self.now = at;
            self.handled += 1;
            self.handle(source.0 as usize);
        }
        self.now = until;
    }

    /// Handles every event of the run.
    pub fn run_to_end(&mut self) {
        self.run_until(self.end);
    }

    /// The time up to which events have been handled.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        self.end
    }

    #[inline]
    fn handle(&mut self, source: usize) {
        let links = self.links.len();
        if source < links {
            self.serve(source as u32);
        } else if source < 2 * links {
            let link = source - links;
            let packet = self.links[link].deliver();
            self.advance(packet);
        } else if source < self.first_flow() {
            let channel = source - 2 * links;
            let message = self.channels.receive(channel);
            self.deliver(channel, &message);
        } else if source < self.first_control() {
            self.wake_flow(source - self.first_flow());
        } else if source < self.first_control() + self.controls.len() {
            self.steer(source - self.first_control());
        } else {
            self.look();
        }
    }

    /// The number of the source that is the first flow's timers.
    #[inline]
    fn first_flow(&self) -> usize {
        2 * self.links.len() + self.channels.len()
    }

    /// The number of the source that is the first window control.
    #[inline]
    fn first_control(&self) -> usize {
        self.first_flow() + self.flows.len()
    }

    /// A control message reaches the end of its channel.
    fn deliver(&mut self, channel: usize, message: &Message) {
        match self.channels.hearer(channel) {
            Hearer::Sender(flow) => self.flows[flow].sender.on_message(message),
            Hearer::Queue { link, label } => self.links[link].on_message(label, message),
        }
    }

    /// A packet stands at the end of a link: it goes on, or out of the network.
    #[inline(always)]
    fn advance(&mut self, packet: SimPacket) {
        match self.steps[packet.step as usize] {
            Step::Receiver => self.receive(packet),
            Step::Sender => self.acknowledge(packet),
            Step::Shared(link) | Step::Private(link) => self.offer(link, packet),
            Step::Metered(link) => {
                let packet = self.meter(packet);
                self.offer(link, packet);
            }
            Step::Observed => self.pass_observer(packet),
        }
    }

    fn pass_observer(&mut self, mut packet: SimPacket) {
        self.observe(&packet);
        packet.step += 1;
        match self.steps[packet.step as usize] {
            Step::Shared(link) | Step::Private(link) => self.offer(link, packet),
            _ => self.acknowledge(packet),
        }
    }

    /// At its first router a packet passes the control of its path, and the meter that stands there: one that several flows
    /// share, or the flow's own.
    fn meter(&mut self, mut packet: SimPacket) -> SimPacket {
        let number = packet.header.flow.0 as usize;
        let flow = &mut self.flows[number];
        if let Some((control, member)) = flow.watched {
            self.controls[control].windows.on_data(member, packet.sequence);
        }
        let color = match (flow.edge_meter, &mut flow.meter) {
            (Some(shared), _) => {
                let (meter, rng) = &mut self.shared_meters[shared];
                meter.color(&packet.header, &mut Context { now: self.now, rng })
            }
            (None, Some((meter, rng))) if flow.marks_at_ingress => {
                meter.color(&packet.header, &mut Context { now: self.now, rng })
            }
            _ => return packet,
        };
        let post = Post { channels: &mut self.channels, events: &mut self.events };
        flow.mark(&mut packet.header, packet.sequence, color, self.now, post);
        packet
    }

    /// The ingress shows an acknowledgement to the control of its path.
    fn observe(&mut self, packet: &SimPacket) {
        if let Some((control, member)) = self.flows[packet.header.flow.0 as usize].watched {
            self.controls[control].windows.on_ack(member, packet.sequence);
        }
    }

    /// Opens the channels on which markers tell senders of OUT packets.
    fn add_news(&mut self, network: &Network) {
        for (number, spec) in network.flows.iter().enumerate() {
            let open = |delay| self.channels.open(Hearer::Sender(number), delay);
            self.flows[number].news = spec.out_feedback.map(open);
        }
    }

    /// Puts a control at the ingress of each path that has one.
    fn add_controls(&mut self, network: &Network, seed: u64) {
        for (path, spec) in network.paths.iter().enumerate() {
            let Some(control) = &spec.control else { continue };
            let number = self.controls.len();
            let members: Vec<usize> = (0..self.flows.len())
                .filter(|&flow| network.flows[flow].path == Some(path))
                .filter(|&flow| matches!(network.flows[flow].transport, TransportSpec::Tcp(_)))
                .collect();
            for (member, &flow) in members.iter().enumerate() {
                self.flows[flow].watched = Some((number, member));
            }
            let rates = members.iter().map(|&flow| (flow, network.flows[flow].reserved));
            let rng = Rng::stream(seed, &format!("paths/{}/control", spec.name));
            let windows = Steering::new(control.clone(), spec.label, rates, rng);
            // A queue hears after the propagation delay from the ingress.
            let mut away = Duration::ZERO;
            let mut queues = Vec::new();
            for &link in &spec.forward {
                queues.push(self.channels.open(Hearer::Queue { link, label: spec.label }, away));
                away = away + network.links[link].delay;
            }
            self.controls.push(PathControl { windows, queues });
        }
    }

    fn schedule_control(&mut self, number: usize) {
        let source = SourceId((self.first_control() + number) as u32);
        self.events.push(self.controls[number].windows.next(), source);
    }

    /// The control of a path looks at its flows' windows, tells their markers, and sends word to the path's queues.
    fn steer(&mut self, number: usize) {
        let flows = &self.flows;
        let control = &mut self.controls[number];
        let decision = control.windows.look(self.now, |flow| flows[flow].sender.sending_window());
        for (flow, message) in &decision.shares {
            if let Some((meter, _)) = &mut self.flows[*flow].meter {
                meter.on_message(message);
            }
        }
        for queue in 0..self.controls[number].queues.len() {
            let PathControl { windows, queues } = &mut self.controls[number];
            let channel = queues[queue];
            if windows.loses() {
                continue;
            }
            let post = Post { channels: &mut self.channels, events: &mut self.events };
            if let Some(message) = post.send(channel, decision.windows, self.now) {
                self.deliver(channel, &message);
            }
        }
        self.schedule_control(number);
        self.guard_looks();
    }

    /// A host puts a packet on the first link of its route.
    #[inline]
    fn enter(&mut self, packet: SimPacket) {
        match self.steps[packet.step as usize] {
            Step::Shared(link) | Step::Private(link) => self.offer(link, packet),
            Step::Metered(_) | Step::Observed | Step::Receiver | Step::Sender => self.advance(packet),
        }
    }

    #[inline(always)]
    fn offer(&mut self, number: u32, mut packet: SimPacket) {
        packet.step += 1;
        self.hops += 1;
        let link = &mut self.links[number as usize];
        match link.offer(&mut packet, self.now) {
            Offer::Onward(arrival) => self.launch(number, packet, arrival),
            Offer::Held => {}
            Offer::Serve => self.serve(number),
            Offer::Dropped => self.lose(&packet),
        }
    }

    /// Puts a packet on its way.
    ///
    /// What nobody else can change is done at once: the private links that follow, a receiver that answers each packet
    /// as it comes, a sender whose timers are not due before. Only the arrival where flows meet again is an event.
    #[inline(always)]
    fn launch(&mut self, mut number: u32, mut packet: SimPacket, mut arrival: Instant) {
        while self.service == Service::OnDemand {
            match self.steps[packet.step as usize] {
                Step::Private(next) => {
                    number = next;
                    packet.step += 1;
                    self.hops += 1;
                    arrival = self.links[number as usize].pass(packet.header.size, arrival);
                }
                Step::Receiver if self.flows[packet.header.flow.0 as usize].answers_ahead => {
                    let flow = &mut self.flows[packet.header.flow.0 as usize];
                    match flow.receive(&packet, arrival, self.now) {
                        Some(ack) => packet = ack,
                        None => return,
                    }
                }
                Step::Sender => {
                    let number = packet.header.flow.0 as usize;
                    if self.may_act_ahead(number, arrival) {
                        return self.act_ahead(number, packet.sequence, arrival);
                    }
                    self.flows[number].acks_due += 1;
                    break;
                }
                _ => break,
            }
        }
        self.links[number as usize].carry(packet);
        self.events.push(arrival, SourceId(self.links.len() as u32 + number));
    }

    /// Whether the sender may take this acknowledgement now, although it comes only at `arrival`: nothing else happens
    /// to the sender until then, nobody looks at it, and what it sends goes onto its own link.
    #[inline]
    fn may_act_ahead(&self, number: usize, arrival: Instant) -> bool {
        let flow = &self.flows[number];
        flow.acts_ahead
            && flow.acks_due == 0
            && arrival < flow.wake()
            && flow.news.is_none_or(|channel| arrival < self.channels.next(channel))
            && arrival < self.looks_at
            && arrival <= self.end
    }

    fn act_ahead(&mut self, number: usize, expected: u32, at: Instant) {
        let flow = &mut self.flows[number];
        flow.sender.on_ack(expected, at, &mut flow.datagrams);
        while let Some(mut packet) = self.next_packet(number, at) {
            if let Step::Private(link) = self.steps[packet.step as usize] {
                packet.step += 1;
                self.hops += 1;
                let arrival = self.links[link as usize].pass(packet.header.size, at);
                self.launch(link, packet, arrival);
            }
        }
        self.schedule_flow(number);
    }

    /// Serves a port until it has sent something or has nothing to send.
    fn serve(&mut self, link: u32) {
        let source = SourceId(link);
        loop {
            match self.links[link as usize].serve(self.now) {
                Served::Onward { packet, arrival, free } => {
                    self.events.push(free, source);
                    return self.launch(link, packet, arrival);
                }
                Served::Dropped(packet) => self.lose(&packet),
                Served::Wait(Some(until)) => return self.events.push(until, source),
                Served::Wait(None) => return,
            }
        }
    }

    /// A queue dropped a packet of data, or an answer.
    fn lose(&mut self, packet: &SimPacket) {
        let flow = &mut self.flows[packet.header.flow.0 as usize];
        let is_data = packet.step < flow.backward;
        flow.outcome.dropped[packet.header.color.index()] += u64::from(is_data);
        flow.datagrams.lose(packet.sequence, is_data);
    }

    #[inline]
    fn receive(&mut self, packet: SimPacket) {
        let number = packet.header.flow.0 as usize;
        if let Some(ack) = self.flows[number].receive(&packet, self.now, self.now) {
            self.enter(ack);
            if !self.flows[number].receiver.keeps_time() {
                return;
            }
        }
        // The next acknowledgement has its own time.
        self.flows[number].look_ahead();
        self.schedule_flow(number);
    }

    #[inline]
    fn acknowledge(&mut self, packet: SimPacket) {
        let number = packet.header.flow.0 as usize;
        let flow = &mut self.flows[number];
        flow.acks_due = flow.acks_due.saturating_sub(1);
        flow.sender.on_ack(packet.sequence, self.now, &mut flow.datagrams);
        self.transmit(number);
        self.schedule_flow(number);
    }

    /// Puts on the first link whatever the flow's sender wants on the wire.
    #[inline]
    fn transmit(&mut self, number: usize) {
        while let Some(packet) = self.next_packet(number, self.now) {
            self.enter(packet);
        }
    }

    #[inline(always)]
    fn next_packet(&mut self, number: usize, now: Instant) -> Option<SimPacket> {
        let post = Post { channels: &mut self.channels, events: &mut self.events };
        self.flows[number].transmit(number, now, post)
    }

    fn wake_flow(&mut self, number: usize) {
        let now = self.now;
        let flow = &mut self.flows[number];
        if now != flow.scheduled {
            return; // An earlier wake-up took its place.
        }
        flow.scheduled = Instant::NEVER;
        flow.look_ahead();
        if now < flow.wake() {
            return self.schedule_flow(number); // Its deadline has moved away.
        }
        if now >= flow.start {
            flow.outcome.started = flow.start;
            flow.start = Instant::NEVER;
            flow.sender.start(now);
        }
        if now >= flow.stop {
            flow.stop = Instant::NEVER;
            flow.sender.stop();
        }
        flow.sender.on_wake(now);
        let late_ack = flow.receiver.on_wake(now, &mut flow.datagrams);
        let late_ack = late_ack.map(|expected| flow.ack(FlowId(number as u32), expected));
        self.transmit(number);
        if let Some(ack) = late_ack {
            self.enter(ack);
        }
        self.flows[number].look_ahead();
        self.schedule_flow(number);
    }

    /// Makes sure that the flow is woken in time. Deadlines mostly move away, so a wake-up that is too early is left to
    /// find out for itself.
    #[inline(always)]
    fn schedule_flow(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        let wake = flow.wake();
        if wake < flow.scheduled {
            flow.scheduled = wake;
            self.events.push(wake, SourceId((self.first_flow() + number) as u32));
        }
    }

    fn schedule_probe(&mut self) {
        let source = SourceId((self.first_control() + self.controls.len()) as u32);
        let warmup = if self.probe.warmup_taken { Instant::NEVER } else { self.warmup };
        self.probe.looks_at = self.probe.next.min(warmup);
        if self.probe.looks_at != Instant::NEVER {
            self.events.push(self.probe.looks_at, source);
        }
        self.guard_looks();
    }

    /// Nothing happens ahead of time beyond the next look at flows.
    fn guard_looks(&mut self) {
        let controls = self.controls.iter().map(|control| control.windows.next());
        self.looks_at = controls.fold(self.probe.looks_at, Instant::min);
    }

    fn look(&mut self) {
        let now = self.now;
        if now >= self.warmup && !self.probe.warmup_taken {
            self.probe.warmup_taken = true;
            for flow in &mut self.flows {
                flow.settle(now);
                flow.at_warmup = (flow.outcome.delivered_bytes, flow.sender.acknowledged());
            }
        }
        if let Some(interval) = self.probe.interval
            && now >= self.probe.next
        {
            self.probe.next = now + interval;
            let series = &mut self.probe.series;
            series.times.push(now);
            for flow in &mut self.flows {
                flow.settle(now);
                let new = flow.outcome.delivered_bytes - flow.at_last_look;
                flow.at_last_look = flow.outcome.delivered_bytes;
                series.throughput_bps.push(new as f64 * 8.0 / interval.as_secs_f64());
                series.window_packets.push(flow.sender.window().unwrap_or(f64::NAN));
                series.rtt_s.push(flow.sender.smoothed_rtt().unwrap_or(f64::NAN));
                let seen = flow.watched.map(|(control, member)| self.controls[control].windows.seen(member));
                series.seen_packets.push(seen.unwrap_or(f64::NAN));
            }
            for (observed, samples) in self.observed.iter().zip(&mut series.queues) {
                let link = &mut self.links[observed.link];
                link.settle(now);
                let port = link.port().expect("observed links have a port");
                samples.record(&port);
            }
        }
        self.schedule_probe();
    }

    /// Ends the run: checks that every queue conserved its packets, and says what was measured.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub fn finish(mut self) -> Result<Outcome, Imbalance> {
        let measured = self.end.since(self.warmup);
        let mut links = Vec::new();
        for Observed { link, name, rate } in &self.observed {
            let link = &mut self.links[*link];
            link.finish(self.now);
            let port = link.port().expect("observed links have a port");
            for (_, ledger) in &port.classes {
                ledger.counters.balance(&ledger.occupancy)?;
            }
            links.push(LinkOutcome::of(name, *rate, &port));
        }
        let now = self.now;
        let flows = self.flows.into_iter().map(|flow| flow.finish(measured, now)).collect();
        Ok(Outcome { events: self.handled, hops: self.hops, flows, links, series: self.probe.series })
    }
}

/// A meter that several flows share, with its random stream.
fn build_shared(shared: &SharedMeter, seed: u64) -> (AnyMeter, Rng) {
    let rng = Rng::stream(seed, &format!("profiles/{}/marker", shared.name));
    (shared.params.clone().build(Environment { rate: Bitrate::MAX }), rng)
}

impl Flow {
    fn new(
        spec: &FlowSpec,
        label: u32,
        seed: u64,
        (forward, backward): (u32, u32),
        measured: (Instant, Instant),
    ) -> Self {
        let stream = |part| Rng::stream(seed, &format!("flows/{}/{part}", spec.name));
        let (first, last) = spec.start;
        let start = first + Duration::from_nanos(stream("start").up_to(last.since(first).as_nanos()));
        let datagram = |source| Sender::Datagram(Box::new(source));
        let (sender, receiver, data_size, ack_size) = match &spec.transport {
            TransportSpec::Tcp(params) => (
                Sender::Tcp(TcpSender::new(params.clone(), spec.volume, spec.reserved)),
                Receiver::Tcp(TcpReceiver::new(params)),
                params.packet.get() as u16,
                params.ack.get() as u16,
            ),
            TransportSpec::Udp(params) => (
                datagram(DatagramSender::Udp(UdpSender::new(params, spec.volume))),
                Receiver::Datagram(DatagramReceiver::Sink),
                params.packet.get() as u16,
                0,
            ),
            TransportSpec::Rap(params) => (
                datagram(DatagramSender::Rap(RapSender::new(params, spec.volume))),
                Receiver::Datagram(DatagramReceiver::Echo),
                params.packet.get() as u16,
                params.ack.get() as u16,
            ),
            TransportSpec::Tfrc(params) => (
                datagram(DatagramSender::Tfrc(TfrcSender::new(params, spec.volume))),
                Receiver::Datagram(DatagramReceiver::Tfrc(Box::new(TfrcReceiver::new(params)))),
                params.packet.get() as u16,
                params.ack.get() as u16,
            ),
        };
        let rate = spec.access.as_ref().map_or(Bitrate::MAX, |access| access.rate);
        Self {
            sender,
            receiver,
            datagrams: Box::new(Datagrams::new(measured)),
            meter: match &spec.marking {
                Marking::Host(params) => Some((params.clone().build(Environment { rate }), stream("marker"))),
                Marking::Ingress(params) => {
                    Some((params.clone().build(Environment { rate: Bitrate::MAX }), stream("marker")))
                }
                Marking::None | Marking::Edge(_) => None,
            },
            edge_meter: match spec.marking {
                Marking::Edge(number) => Some(number),
                Marking::None | Marking::Host(_) | Marking::Ingress(_) => None,
            },
            marks_at_ingress: matches!(spec.marking, Marking::Ingress(_)),
            watched: None,
            color: spec.color,
            dscp: spec.dscp,
            label,
            service: spec.service.map_or(ServiceLevel::NONE, ServiceLevel::of),
            news: None,
            // News from a meter at the edge may reach the sender before an acknowledgement does.
            acts_ahead: spec.access.is_some()
                && (spec.out_feedback.is_none()
                    || !matches!(spec.marking, Marking::Edge(_) | Marking::Ingress(_))),
            due: Instant::ZERO,
            rng: stream("transport"),
            forward,
            backward,
            ack_size,
            data_size,
            start,
            stop: spec.stop.unwrap_or(Instant::NEVER),
            scheduled: Instant::NEVER,
            acks_due: 0,
            answers_ahead: match &spec.transport {
                TransportSpec::Tcp(params) => params.delayed_ack.is_zero() && spec.egress.is_some(),
                TransportSpec::Udp(_) => true,
                TransportSpec::Rap(_) => spec.egress.is_some(),
                // Its answers have their own time.
                TransportSpec::Tfrc(_) => false,
            },
            arriving: VecDeque::new(),
            outcome: FlowOutcome::default(),
            at_warmup: (0, 0),
            at_last_look: 0,
        }
    }

    /// The next packet that the sending host wants on the wire, marked.
    #[inline(always)]
    fn transmit(&mut self, number: usize, now: Instant, post: Post<'_>) -> Option<SimPacket> {
        let mut cx = Context { now, rng: &mut self.rng };
        let Transmit { sequence, size } = self.sender.transmit(&mut cx, &mut self.datagrams)?;
        let flow = FlowId(number as u32);
        let Self { color, dscp, service, label, .. } = *self;
        let mut header = Header { color, dscp, service, label, ..Header::new(flow, size) };
        match &mut self.meter {
            Some((meter, rng)) if !self.marks_at_ingress => {
                let color = meter.color(&header, &mut Context { now, rng });
                self.mark(&mut header, sequence, color, now, post);
            }
            None if self.edge_meter.is_none() => self.outcome.marked[header.color.index()] += 1,
            _ => {} // the first router marks
        }
        Some(SimPacket { header, step: self.forward, sequence })
    }

    /// Writes a meter's verdict into a packet, and lets the sender know what it may know.
    #[inline]
    fn mark(&mut self, header: &mut Header, sequence: u32, color: Color, now: Instant, post: Post<'_>) {
        AfClass::ONE.mark(header, color);
        self.outcome.marked[color.index()] += 1;
        self.sender.on_marked(sequence, color);
        if let Some(channel) = self.news
            && color != Color::Green
            && let Some(message) = post.send(channel, Message::MarkedOut, now)
        {
            self.sender.on_message(&message);
        }
    }

    /// The receiving host takes a data packet that reaches it at `arrival`, now or later; returns its answer.
    #[inline(always)]
    fn receive(&mut self, packet: &SimPacket, arrival: Instant, now: Instant) -> Option<SimPacket> {
        let Received { first, ack } = self.receiver.on_data(packet.sequence, arrival, &mut self.datagrams);
        if first && packet.header.size == self.data_size {
            self.settle(now);
            self.arriving.push_back(arrival);
        }
        ack.map(|expected| self.ack(packet.header.flow, expected))
    }

    /// Counts the packets that have reached the receiver by now.
    #[inline]
    fn settle(&mut self, now: Instant) {
        while self.arriving.front().is_some_and(|&arrival| arrival <= now) {
            self.arriving.pop_front();
            self.outcome.delivered_packets += 1;
            self.outcome.delivered_bytes += u64::from(self.data_size);
        }
    }

    fn ack(&self, flow: FlowId, expected: u32) -> SimPacket {
        let header = Header { label: self.label, ..Header::new(flow, self.ack_size) };
        SimPacket { header, step: self.backward, sequence: expected }
    }

    /// Looks up when the next thing happens besides the sender's timers. A time that has moved away since is found out
    /// when it comes.
    fn look_ahead(&mut self) {
        self.due = self.receiver.wake().min(self.start).min(self.stop);
    }

    #[inline]
    fn wake(&self) -> Instant {
        self.sender.wake().min(self.due)
    }

    fn finish(mut self, measured: Duration, now: Instant) -> FlowOutcome {
        self.settle(now);
        let (delivered, acknowledged) = self.at_warmup;
        let bps = |bytes: u64| bytes as f64 * 8.0 / measured.as_secs_f64();
        let acked = (self.sender.acknowledged() - acknowledged) * u64::from(self.data_size);
        FlowOutcome {
            throughput_bps: bps(self.outcome.delivered_bytes - delivered),
            acked_bps: bps(acked),
            mean_transit_s: self.datagrams.transit.mean(),
            jitter_s: self.datagrams.transit.jitter(),
            sender: self.sender.statistics().clone(),
            ..self.outcome
        }
    }
}

impl Probe {
    fn new(network: &Network, observed: &[Observed]) -> Self {
        let queues = match network.probe_interval {
            None => Vec::new(),
            Some(_) => observed.iter().map(|link| QueueSeries::of(&link.name)).collect(),
        };
        Self {
            interval: network.probe_interval,
            next: network.probe_interval.map_or(Instant::NEVER, |interval| Instant::ZERO + interval),
            looks_at: Instant::NEVER,
            warmup_taken: false,
            series: Series { queues, ..Series::default() },
        }
    }
}

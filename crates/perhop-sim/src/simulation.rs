//! The event loop.
//!
//! Packets come to the links that flows share, each of which keeps what comes to it in order ([`Link::inbox`]). A packet that
//! passes a link needs at least the link's delay for whatever it does next, so all links may handle what comes within that
//! span one link after another, without looking at each other: the *look-ahead* of conservative parallel simulation. What
//! happens besides (timers, control messages, looks, packets that reach a host whose turn it is) ends such a span early.
//!
//! At one time, things happen in this order: packets reach hosts, timers of flows go off, ports are served, packets reach
//! links, control messages arrive, window controls look, the probe looks.

#![expect(
    clippy::inline_always,
    reason = "the packet's path through the loop is one function: a tenth of its time"
)]

use perhop_core::control::Message;
use perhop_core::meter::{AnyMeter, Meter};
use perhop_core::{Bitrate, Context, Duration, Environment, Imbalance, Instant, Rng};

use crate::calendar::Calendar;
use crate::control::{Channels, Hearer, Post};
use crate::events::{Event, EventQueue, SourceId};
use crate::flow::Flow;
use crate::link::{Link, Offer, Served, Service, Wire};
use crate::network::{AccessSpec, FlowSpec, Marking, Network, NoRoute, SharedMeter, TransportSpec};
use crate::outcome::{LinkOutcome, Outcome};
use crate::packet::SimPacket;
use crate::probe::{Looks, QueueSeries, Series};
use crate::windows::{Steering, WindowSource};

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Simulation {
    now: Instant,
    end: Instant,
    /// What happens besides the arrival of packets.
    events: EventQueue,
    /// Packets on their way to a step of their route that has to wait for its time: hosts, mostly.
    arrivals: Calendar<SimPacket>,
    /// Links between routers.
    links: Vec<Link>,
    /// Private links.
    wires: Vec<Wire>,
    /// A packet that comes to a link changes nothing elsewhere before this has passed.
    lookahead: Duration,
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
    looks: Looks,
    series: Series,
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

impl Simulation {
    /// The network at time zero.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path.
    pub fn new(network: &Network, seed: u64) -> Result<Self, NoRoute> {
        Self::with_service(network, seed, Service::OnDemand)
    }

    /// As [`new`](Self::new), with a choice of how the run is driven. The result is the same.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path.
    pub fn with_service(network: &Network, seed: u64, service: Service) -> Result<Self, NoRoute> {
        let looks = Looks::new(network);
        let mut observed = Vec::new();
        let links = network.links.iter().enumerate().map(|(number, spec)| match spec.queue.clone() {
            None => Link::open(spec.rate, spec.delay),
            Some(queue) => {
                observed.push(Observed { link: number, name: spec.name.clone(), rate: spec.rate });
                let path = format!("links/{}", spec.name);
                Link::with_queue(spec.rate, spec.delay, queue, (seed, &path), looks.measured(), service)
            }
        });
        let links = links.collect();
        let mut routes = Routes::default();
        let mut flows = Vec::new();
        for (number, spec) in network.flows.iter().enumerate() {
            let (forward, backward) = routes.add(network, number, spec)?;
            let label = spec.path.map_or(0, |path| network.paths[path].label);
            let mut flow = Flow::new(spec, number, label, seed, (forward, backward), &looks);
            // Two hosts that share no link could act for ever without the clock's moving.
            flow.sending.held += u32::from(!routes.leads_over_a_link(forward));
            flows.push(flow);
        }
        let mut simulation = Self {
            now: Instant::ZERO,
            end: looks.end(),
            events: EventQueue::default(),
            arrivals: Calendar::default(),
            channels: Channels::new(flows.len()),
            links,
            wires: routes.wires,
            lookahead: match service {
                Service::OnDemand => lookahead(network, &routes.steps, &flows),
                Service::ByEvent => Duration::from_nanos(1),
            },
            service,
            flows,
            shared_meters: network.shared_meters.iter().map(|shared| build_shared(shared, seed)).collect(),
            steps: routes.steps,
            handled: 0,
            hops: 0,
            controls: Vec::new(),
            series: Series {
                queues: match network.probe_interval {
                    None => Vec::new(),
                    Some(_) => observed.iter().map(|link| QueueSeries::of(&link.name)).collect(),
                },
                ..Series::default()
            },
            observed,
            looks,
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
        simulation.schedule_look(simulation.looks.first());
        Ok(simulation)
    }

    /// Opens the channels on which markers tell senders of OUT packets.
    fn add_news(&mut self, network: &Network) {
        for (number, spec) in network.flows.iter().enumerate() {
            let open = |delay| self.channels.open(Hearer::Sender(number), delay) as u32;
            self.flows[number].sending.news = spec.out_feedback.map(open);
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
                let host = &mut self.flows[flow].sending;
                host.watched = Some((number, member));
                // A look at the window is to find it as it is then.
                host.held += u32::from(control.window == WindowSource::Sender);
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

    /// Handles everything up to and including `until` (and never beyond the run's end).
    pub fn run_until(&mut self, until: Instant) {
        let until = until.min(self.end);
        let beyond = until + Duration::from_nanos(1);
        loop {
            let head = self.links.iter().map(Link::next).fold(Instant::NEVER, Instant::min);
            let limit = (head + self.lookahead).min(beyond);
            let host = self.arrivals.peek(limit).map(|packet| packet.header.arrived);
            let event = self.events.peek(limit).copied();
            let turn = event.map_or(limit, |event| self.turn(event));
            let bound = host.map_or(turn, |host| host.min(turn));
            if head < bound {
                (0..self.links.len()).for_each(|link| self.run_link(link, bound));
            } else if host == Some(bound) && event.is_none_or(|event| bound <= event.at) {
                let packet = self.arrivals.pop(limit).expect("it was seen");
                self.now = packet.header.arrived;
                self.handled += 1;
                self.advance(packet);
            } else if let Some(Event { at, source }) = event {
                self.events.pop(limit);
                self.now = at;
                self.handled += 1;
                self.handle(source.0 as usize);
            } else {
                break;
            }
        }
        self.now = until;
    }

    /// Handles everything of the run.
    pub fn run_to_end(&mut self) {
        self.run_until(self.end);
    }

    /// The time up to which everything has been handled.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// What comes to links before this comes before the event.
    #[inline]
    fn turn(&self, event: Event) -> Instant {
        let is_timer = (event.source.0 as usize) < self.flows.len();
        event.at + Duration::from_nanos(u64::from(!is_timer))
    }

    fn handle(&mut self, source: usize) {
        if source < self.flows.len() {
            self.wake_flow(source);
        } else if source < self.first_control() {
            let channel = source - self.flows.len();
            let message = self.channels.receive(channel);
            self.deliver(channel, &message);
        } else if source < self.first_control() + self.controls.len() {
            self.steer(source - self.first_control());
        } else {
            self.look();
        }
    }

    /// The number of the source that is the first window control.
    #[inline]
    fn first_control(&self) -> usize {
        self.flows.len() + self.channels.len()
    }

    /// A control message reaches the end of its channel.
    fn deliver(&mut self, channel: usize, message: &Message) {
        match self.channels.hearer(channel) {
            Hearer::Sender(flow) => self.flows[flow].sending.sender.on_message(message),
            Hearer::Queue { link, label } => self.links[link].on_message(label, message),
        }
    }

    /// Handles what comes to a link before `bound`.
    #[inline]
    fn run_link(&mut self, number: usize, bound: Instant) {
        if self.links[number].goes_straight_on() {
            while let Some(packet) = self.links[number].inbox.pop(bound) {
                self.offer(number, packet);
            }
            return;
        }
        loop {
            let serve = self.links[number].next_serve();
            if let Some(packet) = self.links[number].inbox.pop(bound.min(serve)) {
                self.offer(number, packet);
            } else if serve < bound {
                self.links[number].take_serve();
                self.now = serve;
                self.handled += 1;
                self.serve(number);
            } else {
                return;
            }
        }
    }

    /// A packet comes to a link.
    #[inline(always)]
    fn offer(&mut self, number: usize, mut packet: SimPacket) {
        self.now = packet.header.arrived;
        self.handled += 1;
        if let Step::Metered(_) = self.steps[packet.step as usize] {
            self.meter(&mut packet);
        }
        packet.step += 1;
        self.hops += 1;
        match self.links[number].offer(&mut packet, self.now) {
            Offer::Onward(arrival) => self.travel(packet, arrival),
            Offer::Held => {}
            Offer::Serve => self.serve(number),
            Offer::Dropped => self.lose(&packet),
        }
    }

    /// Serves a port until it has sent something or has nothing to send.
    fn serve(&mut self, number: usize) {
        loop {
            match self.links[number].serve(self.now) {
                Served::Onward { packet, arrival, free } => {
                    self.links[number].serve_at(free);
                    return self.travel(packet, arrival);
                }
                Served::Dropped(packet) => self.lose(&packet),
                Served::Wait(Some(until)) => return self.links[number].serve_at(until),
                Served::Wait(None) => return,
            }
        }
    }

    /// A queue dropped a packet of data, or an answer.
    fn lose(&mut self, packet: &SimPacket) {
        self.flows[packet.header.flow.0 as usize].lose(packet);
    }

    /// Takes a packet, which comes to the next step of its route at `at`, as far as nobody else can change what happens: over
    /// private links, through a receiver that answers each packet as it comes, to a sender whose timers are not due before.
    #[inline(always)]
    fn travel(&mut self, mut packet: SimPacket, mut at: Instant) {
        loop {
            match self.steps[packet.step as usize] {
                Step::Shared(link) | Step::Metered(link) => {
                    packet.header.arrived = at;
                    return self.links[link as usize].inbox.push(packet);
                }
                _ if self.service == Service::ByEvent => break,
                Step::Private(wire) => {
                    at = self.pass(wire, &mut packet, at);
                }
                Step::Receiver if self.flows[packet.header.flow.0 as usize].receiving.answers_ahead => {
                    let flow = &mut self.flows[packet.header.flow.0 as usize];
                    match flow.receive(&packet, at, (&self.looks, &mut self.series)) {
                        Some(ack) => packet = ack,
                        None => return,
                    }
                }
                Step::Sender => {
                    let number = packet.header.flow.0 as usize;
                    if self.may_act_ahead(number, at) {
                        return self.acknowledge(number, packet.sequence, at);
                    }
                    self.flows[number].sending.held += 1;
                    break;
                }
                Step::Receiver | Step::Observed => break,
            }
        }
        packet.header.arrived = at;
        self.arrivals.push(packet);
    }

    /// Puts a packet on a private link; returns when it reaches the far end.
    #[inline(always)]
    fn pass(&mut self, wire: u32, packet: &mut SimPacket, at: Instant) -> Instant {
        packet.step += 1;
        self.hops += 1;
        self.wires[wire as usize].pass(packet.header.size, at)
    }

    /// Whether the sender may take this acknowledgement now, although it comes only at `arrival`: nothing else happens
    /// to the sender until then.
    #[inline(always)]
    fn may_act_ahead(&self, number: usize, arrival: Instant) -> bool {
        let host = &self.flows[number].sending;
        host.held == 0
            && arrival < host.wake()
            && arrival <= self.end
            && host.news.is_none_or(|channel| arrival < self.channels.next(channel as usize))
    }

    /// A sender takes an acknowledgement that reaches it at `at`, now or later, and sends what it then may.
    #[inline]
    fn acknowledge(&mut self, number: usize, expected: u32, at: Instant) {
        self.flows[number].acknowledge(expected, at, (&self.looks, &mut self.series));
        self.transmit(number, at);
        self.schedule_flow(number);
    }

    /// Puts on the first link whatever the flow's sender wants on the wire.
    #[inline]
    fn transmit(&mut self, number: usize, at: Instant) {
        loop {
            let post = Post { channels: &mut self.channels, events: &mut self.events };
            let Some(packet) = self.flows[number].transmit(at, post) else { return };
            self.depart(packet, at);
        }
    }

    /// A packet leaves its host: over its private link, if it has one, to the first that it shares.
    #[inline(always)]
    fn depart(&mut self, mut packet: SimPacket, mut at: Instant) {
        if let Step::Private(wire) = self.steps[packet.step as usize] {
            at = self.pass(wire, &mut packet, at);
        }
        packet.header.arrived = at;
        match self.steps[packet.step as usize] {
            Step::Shared(link) | Step::Metered(link) => self.links[link as usize].inbox.push(packet),
            _ => self.arrivals.push(packet),
        }
    }

    /// A packet has come to a step of its route that had to wait for its time.
    fn advance(&mut self, mut packet: SimPacket) {
        let number = packet.header.flow.0 as usize;
        match self.steps[packet.step as usize] {
            Step::Receiver => self.receive(&packet),
            Step::Sender => {
                let host = &mut self.flows[number].sending;
                host.held = host.held.saturating_sub(u32::from(self.service == Service::OnDemand));
                self.acknowledge(number, packet.sequence, self.now);
            }
            Step::Observed => {
                self.observe(&packet);
                packet.step += 1;
                // The sender may sit at the router itself.
                match self.steps[packet.step as usize] {
                    Step::Sender => self.acknowledge(number, packet.sequence, self.now),
                    _ => self.travel(packet, self.now),
                }
            }
            Step::Private(wire) => {
                let at = self.pass(wire, &mut packet, self.now);
                self.travel(packet, at);
            }
            Step::Shared(_) | Step::Metered(_) => unreachable!("links keep what comes to them"),
        }
    }

    fn receive(&mut self, packet: &SimPacket) {
        let number = packet.header.flow.0 as usize;
        let flow = &mut self.flows[number];
        if let Some(ack) = flow.receive(packet, self.now, (&self.looks, &mut self.series)) {
            self.depart(ack, self.now);
            if !self.flows[number].keeps_time() {
                return;
            }
        }
        // The next acknowledgement has its own time.
        self.flows[number].look_ahead();
        self.schedule_flow(number);
    }

    fn wake_flow(&mut self, number: usize) {
        let now = self.now;
        let flow = &mut self.flows[number];
        if now != flow.sending.scheduled {
            return; // An earlier wake-up took its place.
        }
        flow.sending.scheduled = Instant::NEVER;
        flow.look_ahead();
        if now < flow.sending.wake() {
            return self.schedule_flow(number); // Its deadline has moved away.
        }
        let late_ack = flow.wake_up(now);
        self.transmit(number, now);
        if let Some(ack) = late_ack {
            self.depart(ack, now);
        }
        self.flows[number].look_ahead();
        self.schedule_flow(number);
    }

    /// Makes sure that the flow is woken in time. Deadlines mostly move away, so a wake-up that is too early is left to
    /// find out for itself.
    #[inline(always)]
    fn schedule_flow(&mut self, number: usize) {
        let host = &mut self.flows[number].sending;
        let at = host.wake();
        if at < host.scheduled {
            host.scheduled = at;
            self.events.push(Event { at, source: SourceId(number as u32) });
        }
    }

    /// At its first router a packet passes the control of its path, and the meter that stands there: one that several flows
    /// share, or the flow's own.
    fn meter(&mut self, packet: &mut SimPacket) {
        let host = &mut self.flows[packet.header.flow.0 as usize].sending;
        if let Some((control, member)) = host.watched {
            self.controls[control].windows.on_data(member, packet.sequence);
        }
        let color = match host.edge_meter {
            Some(shared) => {
                let (meter, rng) = &mut self.shared_meters[shared as usize];
                Some(meter.color(&packet.header, &mut Context { now: self.now, rng }))
            }
            None => host.color_at_ingress(&packet.header, self.now),
        };
        if let Some(color) = color {
            let post = Post { channels: &mut self.channels, events: &mut self.events };
            host.mark(&mut packet.header, packet.sequence, color, self.now, post);
        }
    }

    /// The ingress shows an acknowledgement to the control of its path.
    fn observe(&mut self, packet: &SimPacket) {
        if let Some((control, member)) = self.flows[packet.header.flow.0 as usize].sending.watched {
            self.controls[control].windows.on_ack(member, packet.sequence);
        }
    }

    fn schedule_control(&mut self, number: usize) {
        let source = SourceId((self.first_control() + number) as u32);
        self.events.push(Event { at: self.controls[number].windows.next(), source });
    }

    /// The control of a path looks at its flows' windows, tells their markers, and sends word to the path's queues.
    fn steer(&mut self, number: usize) {
        let flows = &self.flows;
        let control = &mut self.controls[number];
        let decision = control.windows.look(self.now, |flow| flows[flow].sending.sender.sending_window());
        for (flow, message) in &decision.shares {
            self.flows[*flow].sending.tell_meter(message);
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
    }

    fn schedule_look(&mut self, at: Instant) {
        if at <= self.end {
            let source = SourceId((self.first_control() + self.controls.len()) as u32);
            self.events.push(Event { at, source });
        }
    }

    /// Looks at flows, for the probes or since the warm-up is over; the probes look at queues, too.
    fn look(&mut self) {
        let now = self.now;
        self.looks.come_to(now);
        for flow in &mut self.flows {
            flow.be_looked_at(&self.looks, &mut self.series);
        }
        if let Some((row, _)) = self.looks.row(now) {
            self.series.times.push(now);
            for (number, flow) in self.flows.iter().enumerate() {
                let seen = flow.sending.watched;
                let seen = seen.map(|(control, member)| self.controls[control].windows.seen(member));
                let seen = seen.unwrap_or(f64::NAN);
                self.looks.write(&mut self.series.seen_packets, row, number as u32, seen);
            }
            for (observed, samples) in self.observed.iter().zip(&mut self.series.queues) {
                let link = &mut self.links[observed.link];
                link.settle(now);
                let port = link.port().expect("observed links have a port");
                samples.record(&port);
            }
        }
        self.schedule_look(self.looks.after(now));
    }

    /// Ends the run: checks that every queue conserved its packets, and says what was measured. Before the end, flows have
    /// been counted ahead of the clock by what is on its way to hosts.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub fn finish(mut self) -> Result<Outcome, Imbalance> {
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
        self.series.end(self.flows.len());
        let flows = self.flows.into_iter().map(|flow| flow.finish(&self.looks)).collect();
        Ok(Outcome { events: self.handled, hops: self.hops, flows, links, series: self.series })
    }
}

/// Routes as they are built, and the private links that they lead over.
#[derive(Default)]
struct Routes {
    steps: Vec<Step>,
    wires: Vec<Wire>,
}

impl Routes {
    /// Adds a flow's routes, of data and of answers; returns where each begins.
    fn add(&mut self, network: &Network, number: usize, spec: &FlowSpec) -> Result<(u32, u32), NoRoute> {
        let forward = self.steps.len() as u32;
        let shared = |acknowledges| {
            let refused = NoRoute { flow: number, from: spec.from, to: spec.to };
            network.route_of(spec, acknowledges).ok_or(refused)
        };
        let controlled = spec.path.is_some_and(|path| network.paths[path].control.is_some());
        let metered = controlled || matches!(spec.marking, Marking::Edge(_) | Marking::Ingress(_));
        self.add_private(spec.access.as_ref());
        self.steps.extend(shared(false)?.into_iter().enumerate().map(|(hop, link)| match hop {
            0 if metered => Step::Metered(link as u32),
            _ => Step::Shared(link as u32),
        }));
        self.add_private(spec.egress.as_ref());
        self.steps.push(Step::Receiver);
        let backward = self.steps.len() as u32;
        if !matches!(spec.transport, TransportSpec::Udp(_)) {
            self.add_private(spec.egress.as_ref());
            self.steps.extend(shared(true)?.into_iter().map(|link| Step::Shared(link as u32)));
            if controlled {
                self.steps.push(Step::Observed);
            }
            self.add_private(spec.access.as_ref());
            self.steps.push(Step::Sender);
        }
        Ok((forward, backward))
    }

    fn add_private(&mut self, access: Option<&AccessSpec>) {
        if let Some(access) = access {
            self.steps.push(Step::Private(self.wires.len() as u32));
            self.wires.push(Wire::new(access.rate, access.delay));
        }
    }

    /// Whether the flow whose data begin there shares a link with anybody.
    fn leads_over_a_link(&self, begin: u32) -> bool {
        let route = self.steps[begin as usize..].iter().take_while(|step| !matches!(step, Step::Receiver));
        route.into_iter().any(|step| matches!(step, Step::Shared(_) | Step::Metered(_)))
    }
}

/// A packet that comes to a link changes nothing elsewhere before this has passed: it must be sent and travel, and a meter's
/// news of it must. Where flows that come over several links share a meter, links keep step to the nanosecond.
fn lookahead(network: &Network, steps: &[Step], flows: &[Flow]) -> Duration {
    let step_by_step = Duration::from_nanos(1);
    let mut metered: Vec<Option<u32>> = vec![None; network.shared_meters.len()];
    for (spec, flow) in network.flows.iter().zip(flows) {
        let Marking::Edge(shared) = spec.marking else { continue };
        let begin = flow.sending.route() as usize;
        let link = steps[begin..].iter().find_map(|step| match step {
            Step::Metered(link) => Some(*link),
            _ => None,
        });
        if metered[shared].is_some() && metered[shared] != link {
            return step_by_step;
        }
        metered[shared] = link;
    }
    let smallest = flows.iter().map(|flow| flow.receiving.smallest_packet()).min().unwrap_or(0);
    let pass = network.links.iter().map(|link| {
        let sent = u64::from(smallest) * 8_000_000_000 / link.rate.as_bps();
        link.delay + Duration::from_nanos(sent)
    });
    let news = network.flows.iter().filter_map(|flow| flow.out_feedback).filter(|delay| !delay.is_zero());
    pass.chain(news).min().unwrap_or(step_by_step).max(step_by_step)
}

/// A meter that several flows share, with its random stream.
fn build_shared(shared: &SharedMeter, seed: u64) -> (AnyMeter, Rng) {
    let rng = Rng::stream(seed, &format!("profiles/{}/marker", shared.name));
    (shared.params.clone().build(Environment { rate: Bitrate::MAX }), rng)
}

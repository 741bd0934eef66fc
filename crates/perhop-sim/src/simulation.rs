//! The event loop.
//!
//! One event a hop: a packet's arrival at the far end of a link. Sources of events are, in the order in which they act at
//! one time: ports (only [`Service::ByEvent`]), links, flows (their timers), the probe.

use perhop_core::marker::AfClass;
use perhop_core::meter::{AnyMeter, Meter};
use perhop_core::{
    Bitrate, Context, Duration, Environment, FlowId, Header, Imbalance, Instant, Rng,
};

use crate::events::{EventQueue, SourceId};
use crate::link::{Link, Service, Update};
use crate::network::{AccessSpec, FlowSpec, Network, NoRoute, TransportSpec};
use crate::outcome::{FlowOutcome, LinkOutcome, Outcome};
use crate::packet::SimPacket;
use crate::probe::{QueueSeries, Series};
use crate::transport::tcp::{TcpReceiver, TcpSender};
use crate::transport::udp::CbrSender;
use crate::transport::{Received, Receiver, Sender, Transmit};

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Simulation {
    now: Instant,
    end: Instant,
    events: EventQueue,
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// All routes, end to end: link numbers, then [`TO_RECEIVER`] or [`TO_SENDER`].
    steps: Vec<u32>,
    out: Vec<Transmit>,
    handled: u64,
    hops: u64,
    observed: Vec<Observed>,
    probe: Probe,
    warmup: Instant,
}

const TO_RECEIVER: u32 = u32::MAX;
const TO_SENDER: u32 = u32::MAX - 1;

#[derive(Clone, Debug)]
struct Flow {
    sender: Sender,
    receiver: Receiver,
    meter: Option<(AnyMeter, Rng)>,
    rng: Rng,
    /// Where the routes of data and of acknowledgements begin.
    forward: u32,
    backward: u32,
    ack_size: u32,
    data_size: u32,
    /// Application events still to come: start, then stop.
    start: Instant,
    stop: Instant,
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

#[derive(Clone, Debug)]
struct Probe {
    interval: Option<Duration>,
    next: Instant,
    warmup_taken: bool,
    series: Series,
}

impl Simulation {
    /// The network at time zero.
    ///
    /// # Errors
    /// A flow's endpoints are not connected.
    pub fn new(network: &Network, seed: u64) -> Result<Self, NoRoute> {
        Self::with_service(network, seed, Service::OnDemand)
    }

    /// As [`new`](Self::new), with a choice of how ports are served. The result is the same.
    ///
    /// # Errors
    /// A flow's endpoints are not connected.
    pub fn with_service(network: &Network, seed: u64, service: Service) -> Result<Self, NoRoute> {
        let end = Instant::ZERO + network.duration;
        let warmup = Instant::ZERO + network.warmup;
        let mut links = Vec::new();
        let mut observed = Vec::new();
        for spec in &network.links {
            links.push(match spec.queue.clone() {
                None => Link::open(spec.rate, spec.delay),
                Some(aqm) => {
                    observed.push(Observed { link: links.len(), name: spec.name.clone(), rate: spec.rate });
                    let rng = Rng::stream(seed, &format!("links/{}/aqm", spec.name));
                    Link::with_queue(spec.rate, spec.delay, aqm, rng, (warmup, end), service)
                }
            });
        }
        let mut steps = Vec::new();
        let mut flows = Vec::new();
        for (number, spec) in network.flows.iter().enumerate() {
            let mut route = |from, to, first: &Option<AccessSpec>, last: &Option<AccessSpec>, end_step| {
                let no_route = NoRoute { flow: number, from, to };
                let begin = steps.len() as u32;
                let mut private = |access: &Option<AccessSpec>, steps: &mut Vec<u32>| {
                    if let Some(access) = access {
                        steps.push(links.len() as u32);
                        links.push(Link::open(access.rate, access.delay));
                    }
                };
                private(first, &mut steps);
                steps.extend(network.route(from, to).ok_or(no_route)?.into_iter().map(|link| link as u32));
                private(last, &mut steps);
                steps.push(end_step);
                Ok(begin)
            };
            let forward = route(spec.from, spec.to, &spec.access, &spec.egress, TO_RECEIVER)?;
            let backward = match spec.transport {
                TransportSpec::Tcp(_) => route(spec.to, spec.from, &spec.egress, &spec.access, TO_SENDER)?,
                TransportSpec::Udp(_) => forward,
            };
            flows.push(Flow::new(spec, seed, forward, backward));
        }
        let mut simulation = Self {
            now: Instant::ZERO,
            end,
            events: EventQueue::new(2 * links.len() + flows.len() + 1),
            links,
            flows,
            steps,
            out: Vec::new(),
            handled: 0,
            hops: 0,
            probe: Probe::new(network, &observed),
            observed,
            warmup,
        };
        for flow in 0..simulation.flows.len() {
            simulation.schedule_flow(flow);
        }
        simulation.schedule_probe();
        Ok(simulation)
    }

    /// Handles every event up to and including `until` (and never beyond the run's end).
    pub fn run_until(&mut self, until: Instant) {
        let until = until.min(self.end);
        loop {
            let (at, source) = self.events.next();
            if at > until {
                break;
            }
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
            let update = self.links[source].serve(self.now);
            self.apply(source, update);
        } else if source < 2 * links {
            let link = source - links;
            let (packet, next) = self.links[link].deliver();
            self.events.set(SourceId(source as u32), next);
            self.advance(packet);
        } else if source < 2 * links + self.flows.len() {
            self.wake_flow(source - 2 * links);
        } else {
            self.look();
        }
    }

    /// Takes a packet's next step: onto a link, or out of the network.
    #[inline]
    fn advance(&mut self, mut packet: SimPacket) {
        match self.steps[packet.step as usize] {
            TO_RECEIVER => self.receive(packet),
            TO_SENDER => self.acknowledge(packet),
            link => {
                packet.step += 1;
                self.hops += 1;
                let update = self.links[link as usize].offer(packet, self.now);
                self.apply(link as usize, update);
            }
        }
    }

    #[inline]
    fn apply(&mut self, link: usize, update: Update) {
        if let Some(at) = update.head {
            self.events.set(SourceId((self.links.len() + link) as u32), at);
        }
        if let Some(at) = update.service {
            self.events.set(SourceId(link as u32), at);
        } else if self.events.pending(SourceId(link as u32)) == self.now {
            self.events.set(SourceId(link as u32), Instant::NEVER);
        }
        if let Some(header) = update.dropped {
            let flow = &mut self.flows[header.flow.0 as usize];
            flow.outcome.dropped[header.color.index()] += 1;
        }
    }

    #[inline]
    fn receive(&mut self, packet: SimPacket) {
        let flow = &mut self.flows[packet.header.flow.0 as usize];
        let Received { first, ack } = flow.receiver.on_data(packet.sequence, self.now);
        if first && packet.header.size == flow.data_size {
            flow.outcome.delivered_packets += 1;
            flow.outcome.delivered_bytes += u64::from(packet.header.size);
        }
        if let Some(expected) = ack {
            let ack = flow.ack(packet.header.flow, expected);
            self.advance(ack);
        }
        if self.flows[packet.header.flow.0 as usize].receiver.wake() != Instant::NEVER {
            self.schedule_flow(packet.header.flow.0 as usize);
        }
    }

    #[inline]
    fn acknowledge(&mut self, packet: SimPacket) {
        let number = packet.header.flow.0 as usize;
        let mut out = std::mem::take(&mut self.out);
        let flow = &mut self.flows[number];
        flow.sender.on_ack(packet.sequence, &mut Context { now: self.now, rng: &mut flow.rng }, &mut out);
        self.transmit(number, &mut out);
        self.out = out;
        self.schedule_flow(number);
    }

    /// Marks what a sender wants on the wire and puts it on the first link.
    #[inline]
    fn transmit(&mut self, number: usize, out: &mut Vec<Transmit>) {
        for Transmit { sequence, size, .. } in out.drain(..) {
            let flow = &mut self.flows[number];
            let mut header = Header::new(FlowId(number as u32), size);
            if let Some((meter, rng)) = &mut flow.meter {
                let color = meter.color(&header, &mut Context { now: self.now, rng });
                AfClass::ONE.mark(&mut header, color);
            }
            flow.outcome.marked[header.color.index()] += 1;
            let step = flow.forward;
            self.advance(SimPacket { header, step, sequence });
        }
    }

    fn wake_flow(&mut self, number: usize) {
        let source = self.flow_source(number);
        self.events.set(source, Instant::NEVER);
        let now = self.now;
        let mut out = std::mem::take(&mut self.out);
        let flow = &mut self.flows[number];
        let mut cx = Context { now, rng: &mut flow.rng };
        if now >= flow.start {
            flow.outcome.started = flow.start;
            flow.start = Instant::NEVER;
            flow.sender.start(&mut cx, &mut out);
        }
        if now >= flow.stop {
            flow.stop = Instant::NEVER;
            flow.sender.stop();
        }
        flow.sender.on_wake(&mut cx, &mut out);
        let late_ack = flow.receiver.on_wake(now).map(|expected| flow.ack(FlowId(number as u32), expected));
        self.transmit(number, &mut out);
        self.out = out;
        if let Some(ack) = late_ack {
            self.advance(ack);
        }
        self.schedule_flow(number);
    }

    fn flow_source(&self, number: usize) -> SourceId {
        SourceId((2 * self.links.len() + number) as u32)
    }

    /// Makes sure that the flow is woken in time. Deadlines mostly move away, so a wake-up that is too early is left to
    /// find out for itself.
    #[inline]
    fn schedule_flow(&mut self, number: usize) {
        let source = self.flow_source(number);
        let wake = self.flows[number].wake();
        if wake < self.events.pending(source) {
            self.events.set(source, wake);
        }
    }

    fn schedule_probe(&mut self) {
        let source = SourceId((2 * self.links.len() + self.flows.len()) as u32);
        let warmup = if self.probe.warmup_taken { Instant::NEVER } else { self.warmup };
        self.events.set(source, self.probe.next.min(warmup));
    }

    fn look(&mut self) {
        let now = self.now;
        if now >= self.warmup && !self.probe.warmup_taken {
            self.probe.warmup_taken = true;
            for flow in &mut self.flows {
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
                let new = flow.outcome.delivered_bytes - flow.at_last_look;
                flow.at_last_look = flow.outcome.delivered_bytes;
                series.throughput_bps.push(new as f64 * 8.0 / interval.as_secs_f64());
                series.window_packets.push(flow.sender.window().unwrap_or(f64::NAN));
                series.rtt_s.push(flow.sender.smoothed_rtt().unwrap_or(f64::NAN));
            }
            for (observed, samples) in self.observed.iter().zip(&mut series.queues) {
                let link = &mut self.links[observed.link];
                link.settle(now);
                let port = link.port().expect("observed links have a port");
                samples.packets.push(port.occupancy.packets() as f64);
                samples.record_averages(port.aqm);
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
            link.settle(self.now);
            let port = link.port().expect("observed links have a port");
            port.counters.balance(port.occupancy)?;
            links.push(LinkOutcome::of(name, *rate, port, measured));
        }
        let flows = self.flows.into_iter().map(|flow| flow.finish(measured)).collect();
        Ok(Outcome { events: self.handled, hops: self.hops, flows, links, series: self.probe.series })
    }
}

impl Flow {
    fn new(spec: &FlowSpec, seed: u64, forward: u32, backward: u32) -> Self {
        let stream = |part| Rng::stream(seed, &format!("flows/{}/{part}", spec.name));
        let (first, last) = spec.start;
        let start = first + Duration::from_nanos(stream("start").up_to(last.since(first).as_nanos()));
        let (sender, receiver, data_size, ack_size) = match &spec.transport {
            TransportSpec::Tcp(params) => (
                Sender::Tcp(TcpSender::new(params.clone(), spec.volume)),
                Receiver::Tcp(TcpReceiver::new(params)),
                params.packet.get() as u32,
                params.ack.get() as u32,
            ),
            TransportSpec::Udp(params) => (
                Sender::Cbr(CbrSender::new(params, spec.volume)),
                Receiver::Sink,
                params.packet.get() as u32,
                0,
            ),
        };
        let rate = spec.access.as_ref().map_or(Bitrate::MAX, |access| access.rate);
        Self {
            sender,
            receiver,
            meter: spec.profile.clone().map(|params| (params.build(Environment { rate }), stream("marker"))),
            rng: stream("transport"),
            forward,
            backward,
            ack_size,
            data_size,
            start,
            stop: spec.stop.unwrap_or(Instant::NEVER),
            outcome: FlowOutcome::default(),
            at_warmup: (0, 0),
            at_last_look: 0,
        }
    }

    fn ack(&self, flow: FlowId, expected: u32) -> SimPacket {
        SimPacket { header: Header::new(flow, self.ack_size), step: self.backward, sequence: expected }
    }

    #[inline]
    fn wake(&self) -> Instant {
        self.sender.wake().min(self.receiver.wake()).min(self.start).min(self.stop)
    }

    fn finish(self, measured: Duration) -> FlowOutcome {
        let (delivered, acknowledged) = self.at_warmup;
        let bps = |bytes: u64| bytes as f64 * 8.0 / measured.as_secs_f64();
        let acked = (self.sender.acknowledged() - acknowledged) * u64::from(self.data_size);
        FlowOutcome {
            throughput_bps: bps(self.outcome.delivered_bytes - delivered),
            acked_bps: bps(acked),
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
            warmup_taken: false,
            series: Series { queues, ..Series::default() },
        }
    }
}

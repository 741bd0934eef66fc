//! The event loop.
//!
//! Packets come to the links that flows share, each of which keeps what comes to it in order. A packet that
//! passes a link needs at least the link's delay for whatever it does next, so all links may handle what comes within that
//! span one link after another, without looking at each other: the *look-ahead* of conservative parallel simulation. What
//! happens besides (timers, control messages, looks, packets that reach a host whose turn it is) ends such a span early.
//!
//! At one time, things happen in this order: packets reach hosts, timers of flows go off, ports are served, packets reach
//! links, control messages arrive, window controls look, the probe looks.

use std::fmt;

use perhop_core::control::{Message, Steering, WindowSource};
use perhop_core::measure::LinkOutcome;
use perhop_core::{Bitrate, Bytes, Counters, Duration, Imbalance, Instant, Rng, Streams};

use crate::clear::{Clear, clear_ways};
use crate::control::{Channels, Hearer, Post};
use crate::events::{Event, EventQueue, SourceId};
use crate::flow::{Flow, Marker, NO_LINK, Route};
use crate::inbox::Inbox;
use crate::link::Link;
use crate::network::{LinkSpec, Marking, Network, NoRoute, SharedMeter, TransportSpec};
use crate::outcome::Outcome;
use crate::packet::SimPacket;
use crate::probe::{Looks, QueueSeries, Series};
use crate::traffic::{Service, Step, Traffic};
use crate::watch::{Told, Watch};

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Simulation {
    now: Instant,
    end: Instant,
    /// Links between routers.
    links: Vec<Link>,
    traffic: Traffic,
    /// A packet that comes to a link changes nothing elsewhere before this has passed.
    lookahead: Duration,
    handled: u64,
    hops: u64,
    observed: Vec<Observed>,
    /// For each window control, the channels to the queues of its path.
    queues: Vec<Vec<usize>>,
    /// Ways that are clear as soon as connections are open, and when that is looked at next, by the number of what was handled.
    clear: Vec<Clear>,
    clear_up_at: u64,
    /// What the watch has been told, and when it is looked at next, by the number of what was handled.
    told: Told,
    watch_at: u64,
}

/// Why a run gives no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A flow's endpoints are not connected, or not by its path.
    NoRoute(NoRoute),
    /// A queue lost or invented packets.
    Imbalance(Imbalance),
    /// The watch stopped it.
    Stopped,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute(refused) => refused.fmt(f),
            Self::Imbalance(imbalance) => imbalance.fmt(f),
            Self::Stopped => f.write_str("the run was stopped before its end"),
        }
    }
}

impl std::error::Error for Failure {}

/// A link whose queue is ruled: its number, name and rate, and the counters of its classes at the end of the warm-up.
#[derive(Clone, Debug)]
struct Observed {
    link: usize,
    name: String,
    rate: Bitrate,
    at_warmup: Vec<Counters>,
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
        match Self::build(network, seed, service, Watch::default()) {
            Ok(simulation) => Ok(simulation),
            Err(Failure::NoRoute(refused)) => Err(refused),
            Err(Failure::Imbalance(_) | Failure::Stopped) => unreachable!("nothing ran, and nobody stops it"),
        }
    }

    /// Runs a network from its beginning to its end, or until the watch stops it.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(network: &Network, seed: u64, service: Service, watch: &Watch) -> Result<Outcome, Failure> {
        let mut simulation = Self::build(network, seed, service, watch.clone())?;
        simulation.run_to_end();
        simulation.told.end(watch);
        if watch.is_stopped() {
            return Err(Failure::Stopped);
        }
        simulation.finish().map_err(Failure::Imbalance)
    }

    fn build(network: &Network, seed: u64, service: Service, watch: Watch) -> Result<Self, Failure> {
        debug_assert!(network.duration < Duration::AGES);
        let looks = Looks::new(network);
        let (flows, steps) = flows_of(network, seed, &looks, &watch)?;
        let lookahead = lookahead(network, &flows);
        // What takes no time at all cannot be done ahead of its time without changing the order of what comes at that time.
        let service = if lookahead.is_zero() { Service::ByEvent } else { service };
        let mut observed = Vec::new();
        let links = network.links.iter().enumerate().map(|(number, spec)| match spec.queue.clone() {
            None => Link::open(spec.rate, spec.delay),
            Some(queue) => {
                let (name, rate) = (spec.name.clone(), spec.rate);
                observed.push(Observed { link: number, name, rate, at_warmup: Vec::new() });
                let path = format!("links/{}", spec.name);
                let streams = Streams { seed, path: &path };
                Link::with_queue(spec.rate, spec.delay, queue, streams, looks.measured(), service)
            }
        });
        let mut links: Vec<Link> = links.collect();
        for pair in steps.windows(2) {
            if let [Step::Metered(link), _] = pair {
                links[*link as usize].set_metered();
            }
            if let [Step::Shared(link) | Step::Metered(link), next] = pair
                && (service == Service::ByEvent || !matches!(next, Step::ReceiverWire | Step::SenderWire))
            {
                links[*link as usize].set_leads_on();
            }
        }
        let mut simulation = Self {
            now: Instant::ZERO,
            end: looks.end(),
            lookahead: match service {
                Service::OnDemand => lookahead,
                Service::ByEvent => STEP_BY_STEP,
            },
            traffic: Traffic {
                events: EventQueue::default(),
                inboxes: network.links.iter().map(|link| Inbox::expecting(gap(link, &flows))).collect(),
                arrivals: Inbox::default(),
                channels: Channels::new(flows.len()),
                flows,
                steps,
                shared_meters: network
                    .shared_meters
                    .iter()
                    .map(|shared| build_shared(shared, seed))
                    .collect(),
                windows: Vec::new(),
                series: Series {
                    queues: match network.probe_interval {
                        None => Vec::new(),
                        Some(_) => observed.iter().map(|link| QueueSeries::of(&link.name)).collect(),
                    },
                    ..Series::default()
                },
                looks: looks.clone(),
                service,
                came_round: 0,
                watch,
            },
            links,
            handled: 0,
            hops: 0,
            observed,
            queues: Vec::new(),
            clear: match service {
                Service::OnDemand => clear_ways(network),
                Service::ByEvent => Vec::new(),
            },
            clear_up_at: 0,
            told: Told::default(),
            watch_at: WATCHED_AFTER,
        };
        simulation.traffic.series.reserve(&looks);
        // All channels stand before the first event: their number is part of the sources' numbers.
        simulation.add_news(network);
        simulation.add_controls(network, seed);
        for flow in 0..simulation.traffic.flows.len() {
            stop_if_asked(flow, &simulation.traffic.watch)?;
            simulation.traffic.flows[flow].look_ahead();
            simulation.traffic.schedule(flow);
        }
        for control in 0..simulation.queues.len() {
            simulation.schedule_control(control);
        }
        simulation.schedule_look(simulation.traffic.looks.first());
        Ok(simulation)
    }

    /// Opens the channels on which markers tell senders of OUT packets.
    fn add_news(&mut self, network: &Network) {
        let Traffic { channels, flows, .. } = &mut self.traffic;
        for (number, (spec, flow)) in network.flows.iter().zip(flows).enumerate() {
            let open = |delay| channels.open(Hearer::Sender(number), delay) as u32;
            flow.sending.news = spec.out_feedback.map(open);
        }
    }

    /// Puts a control at the ingress of each path that has one.
    fn add_controls(&mut self, network: &Network, seed: u64) {
        let Traffic { channels, flows, windows, .. } = &mut self.traffic;
        for (path, spec) in network.paths.iter().enumerate() {
            let Some(control) = &spec.control else { continue };
            let members: Vec<usize> = (0..flows.len())
                .filter(|&flow| network.flows[flow].path == Some(path))
                .filter(|&flow| matches!(network.flows[flow].transport, TransportSpec::Tcp(_)))
                .collect();
            for (member, &flow) in members.iter().enumerate() {
                flows[flow].be_watched(windows.len(), member, control.window == WindowSource::Sender);
            }
            let rates = members.iter().map(|&flow| (flow, network.flows[flow].reserved));
            let rng = Rng::stream(seed, &format!("paths/{}/control", spec.name));
            windows.push(Steering::new(control.clone(), spec.label, rates, rng));
            // A queue hears after the propagation delay from the ingress.
            let mut away = Duration::ZERO;
            let mut queues = Vec::new();
            for &link in &spec.forward {
                queues.push(channels.open(Hearer::Queue { link, label: spec.label }, away));
                away = away + network.links[link].delay;
            }
            self.queues.push(queues);
        }
    }

    /// Handles everything up to and including `until` (and never beyond the run's end). If its watch stops it, it is left
    /// halfway through a span, which no call mends.
    pub fn run_until(&mut self, until: Instant) {
        let until = until.min(self.end);
        let beyond = until + Duration::from_nanos(1);
        loop {
            let head = self.head();
            if self.handled >= self.watch_at && self.is_stopped(head) {
                return;
            }
            let limit = (head + self.lookahead).min(beyond);
            let host = self.traffic.arrivals.peek(limit).map(|packet| packet.at());
            let event = self.traffic.next_event(limit);
            let turn = event.map_or(limit, |event| self.turn(event));
            let bound = host.map_or(turn, |host| host.min(turn));
            if head < bound {
                self.run_links(bound);
                if self.handled >= self.clear_up_at {
                    self.clear_up();
                }
            } else if host == Some(bound) && event.is_none_or(|event| bound <= event.at) {
                let packet = self.traffic.arrivals.pop(limit).expect("it was seen");
                self.handled += 1;
                self.traffic.advance(packet);
            } else if let Some(Event { at, source }) = event {
                self.traffic.events.pop(limit);
                self.now = at;
                self.handled += 1;
                self.handle(source.0 as usize);
            } else {
                break;
            }
        }
        self.now = until;
    }

    /// Tells the watch how far the run is; returns whether it is to end.
    #[cold]
    fn is_stopped(&mut self, head: Instant) -> bool {
        self.watch_at = self.handled + WATCHED_AFTER;
        let next = head.min(self.traffic.events.next()).min(self.traffic.arrivals.next());
        self.told.tell(&self.traffic.watch, next, self.end);
        self.traffic.watch.is_stopped()
    }

    /// Nothing comes to a link, and none is to be served, before this.
    #[inline]
    fn head(&self) -> Instant {
        let next = |(link, inbox): (&Link, &Inbox<SimPacket>)| inbox.next().min(link.next_serve());
        self.links.iter().zip(&self.traffic.inboxes).map(next).fold(Instant::NEVER, Instant::min)
    }

    /// Handles what comes to links before `bound`.
    fn run_links(&mut self, bound: Instant) {
        for (number, link) in self.links.iter_mut().enumerate() {
            let (handled, came) = link.run(number, bound, &mut self.traffic);
            self.handled += handled;
            self.hops += came;
        }
    }

    /// Takes ways that are clear by now.
    #[cold]
    fn clear_up(&mut self) {
        let beyond = self.end + Duration::from_nanos(1);
        for place in (0..self.clear.len()).rev() {
            let clear = &self.clear[place];
            if !clear.opening.iter().all(|&flow| self.traffic.flows[flow].is_open()) {
                continue;
            }
            // What is on its way there already comes before all that will.
            let link = clear.link;
            let (handled, came) = self.links[link].run(link, beyond, &mut self.traffic);
            self.handled += handled;
            self.hops += came;
            if self.is_clear(&self.clear[place]) {
                for (flow, way) in self.clear.swap_remove(place).ways {
                    self.traffic.flows[flow].receiving.clear = Some(way);
                }
            }
        }
        self.clear_up_at = if self.clear.is_empty() { u64::MAX } else { self.handled + CLEAR_UP_AFTER };
    }

    /// The next packet that leaves the bottleneck finds every wire free, and so all will.
    fn is_clear(&self, clear: &Clear) -> bool {
        let last = self.links[clear.bottleneck].empty_from();
        let [to_receiver, from_receiver, back, to_sender] =
            clear.before.map(|before| last + clear.apart + before);
        self.links[clear.link].busy_until() <= back
            && clear.ways.iter().all(|&(flow, _)| {
                let busy = self.traffic.flows[flow].wires_busy_until();
                busy.iter().zip([to_receiver, from_receiver, to_sender]).all(|(&busy, next)| busy <= next)
            })
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

    /// For each window control, the round trip of its path as last measured; nothing where the interval is fixed.
    pub fn round_trips(&self) -> impl Iterator<Item = Option<Duration>> {
        self.traffic.windows.iter().map(Steering::round_trip)
    }

    /// What comes to links before this comes before the event.
    #[inline]
    fn turn(&self, event: Event) -> Instant {
        let is_timer = (event.source.0 as usize) < self.traffic.flows.len();
        event.at + Duration::from_nanos(u64::from(!is_timer))
    }

    fn handle(&mut self, source: usize) {
        if source < self.traffic.flows.len() {
            self.traffic.wake(source, self.now);
        } else if source < self.first_control() {
            let channel = source - self.traffic.flows.len();
            let message = self.traffic.channels.receive(channel);
            self.deliver(channel, &message);
        } else if source < self.first_control() + self.queues.len() {
            self.steer(source - self.first_control());
        } else {
            self.look();
        }
    }

    /// The number of the source that is the first window control.
    #[inline]
    fn first_control(&self) -> usize {
        self.traffic.flows.len() + self.traffic.channels.len()
    }

    /// A control message reaches the end of its channel.
    fn deliver(&mut self, channel: usize, message: &Message) {
        match self.traffic.channels.hearer(channel) {
            Hearer::Sender(flow) => self.traffic.flows[flow].on_message(message),
            Hearer::Queue { link, label } => self.links[link].on_message(label, message),
        }
    }

    fn schedule_control(&mut self, number: usize) {
        let source = SourceId((self.first_control() + number) as u32);
        let at = self.traffic.windows[number].next();
        self.traffic.events.push(Event { at, source });
    }

    /// The control of a path looks at its flows' windows, tells their markers, and sends word to the path's queues.
    fn steer(&mut self, number: usize) {
        let Traffic { flows, windows, .. } = &mut self.traffic;
        let decision = windows[number].look(self.now, |flow| flows[flow].sender.sending_window());
        for (flow, message) in &decision.shares {
            flows[*flow].sending.tell_meter(message);
        }
        for queue in 0..self.queues[number].len() {
            let channel = self.queues[number][queue];
            let Traffic { channels, events, windows, .. } = &mut self.traffic;
            if windows[number].loses() {
                continue;
            }
            if let Some(message) = (Post { channels, events }).send(channel, decision.windows, self.now) {
                self.deliver(channel, &message);
            }
        }
        self.schedule_control(number);
    }

    fn schedule_look(&mut self, at: Instant) {
        if at <= self.end {
            let source = SourceId((self.first_control() + self.queues.len()) as u32);
            self.traffic.events.push(Event { at, source });
        }
    }

    /// Looks at flows, for the probes or since the warm-up is over; the probes look at queues, too.
    fn look(&mut self) {
        let now = self.now;
        let Traffic { flows, windows, looks, series, .. } = &mut self.traffic;
        looks.come_to(now);
        for flow in &mut *flows {
            flow.be_looked_at(looks, series);
        }
        if let Some((row, _)) = looks.row(now) {
            series.times.push(now);
            for (number, flow) in flows.iter().enumerate() {
                let seen = flow.watched().map(|(control, member)| windows[control].seen(member));
                looks.write(&mut series.seen_packets, row, number as u32, seen.unwrap_or(f64::NAN));
            }
            for (observed, samples) in self.observed.iter().zip(&mut series.queues) {
                let link = &mut self.links[observed.link];
                link.settle(now);
                let port = link.port().expect("observed links have a port");
                samples.record(&port);
            }
        }
        if looks.warmup_is_over() {
            for observed in &mut self.observed {
                let link = &mut self.links[observed.link];
                link.settle(now);
                observed.at_warmup = link.port().expect("observed links have a port").counters_by_class();
            }
        }
        let next = looks.after(now);
        self.schedule_look(next);
    }

    /// Ends the run: checks that every queue conserved its packets, and says what was measured. Before the end, flows have
    /// been counted ahead of the clock by what is on its way to hosts, and so have events and hops.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub fn finish(mut self) -> Result<Outcome, Imbalance> {
        let mut links = Vec::new();
        for Observed { link, name, rate, at_warmup } in &self.observed {
            let link = &mut self.links[*link];
            link.finish(self.now);
            let port = link.port().expect("observed links have a port");
            for (_, class) in &port.classes {
                class.balance()?;
            }
            links.push(LinkOutcome::of(name, *rate, &port).after(at_warmup));
        }
        let Traffic { flows, looks, mut series, came_round, .. } = self.traffic;
        series.end(flows.len());
        let flows = flows.into_iter().map(|flow| flow.finish(&looks)).collect();
        Ok(Outcome { events: self.handled + came_round, hops: self.hops + came_round, flows, links, series })
    }
}

/// How much is handled before it is looked again whether ways are clear.
const CLEAR_UP_AFTER: u64 = 4096;

/// How much is handled before a watch is looked at again: much less than a tenth of a second of work.
pub(crate) const WATCHED_AFTER: u64 = 4096;

/// Looks ahead by no more than this where links must keep step with each other.
const STEP_BY_STEP: Duration = Duration::from_nanos(1);

/// All flows, and all steps of their routes.
fn flows_of(
    network: &Network,
    seed: u64,
    looks: &Looks,
    watch: &Watch,
) -> Result<(Vec<Flow>, Vec<Step>), Failure> {
    let mut steps = Vec::new();
    let mut flows = Vec::new();
    for (number, spec) in network.flows.iter().enumerate() {
        stop_if_asked(number, watch)?;
        let shared = |acknowledges| {
            let refused = NoRoute { flow: number, from: spec.from, to: spec.to };
            network.route_of(spec, acknowledges).ok_or(Failure::NoRoute(refused))
        };
        let mut add = |shared: &[usize], metered: bool, last: &[Step]| {
            let first_step = steps.len() as u32;
            steps.extend(shared.iter().enumerate().map(|(hop, &link)| match hop {
                0 if metered => Step::Metered(link as u32),
                _ => Step::Shared(link as u32),
            }));
            steps.extend(last);
            let first_link = shared.first().map_or(NO_LINK, |&link| link as u32);
            Route { first_step, first_link, last_step: steps.len() as u32 - 1 }
        };
        let controlled = spec.path.is_some_and(|path| network.paths[path].control.is_some());
        let metered = controlled || matches!(spec.marking, Marking::Edge(_) | Marking::Ingress(_));
        let there = shared(false)?;
        let forward = add(&there, metered, &[Step::ReceiverWire, Step::Receiver]);
        let backward = match (&spec.transport, controlled) {
            // Nothing goes back.
            (TransportSpec::Udp(_), _) => Route { first_step: forward.last_step + 1, ..forward },
            (_, true) => add(&shared(true)?, false, &[Step::Observed, Step::SenderWire, Step::Sender]),
            (_, false) => add(&shared(true)?, false, &[Step::SenderWire, Step::Sender]),
        };
        let label = spec.path.map_or(0, |path| network.paths[path].label);
        let idle_time = network.idle_time(spec, &there);
        flows.push(Flow::new(spec, number, label, seed, (forward, backward), idle_time, looks));
    }
    Ok((flows, steps))
}

/// While a network is built, the watch is looked at once in so many flows.
fn stop_if_asked(flow: usize, watch: &Watch) -> Result<(), Failure> {
    let asks = (flow as u64).is_multiple_of(WATCHED_AFTER);
    if asks && watch.is_stopped() { Err(Failure::Stopped) } else { Ok(()) }
}

/// How far apart packets leave a link that is full of the largest there are.
fn gap(link: &LinkSpec, flows: &[Flow]) -> Duration {
    let largest = flows.iter().map(|flow| flow.receiving.data_size()).max().unwrap_or(0);
    link.rate.time_of(Bytes::new(u64::from(largest)))
}

/// A packet that comes to a link changes nothing elsewhere before this has passed: it must be sent and travel, and a meter's
/// news of it must. Where flows that come over several links share a meter, links keep step. Zero, if packets may pass a
/// link in less than the clock's nanosecond.
fn lookahead(network: &Network, flows: &[Flow]) -> Duration {
    let smallest = flows.iter().map(|flow| flow.receiving.smallest_packet()).min().unwrap_or(0);
    let smallest = Bytes::new(u64::from(smallest));
    let pass = network.links.iter().map(|link| link.delay + link.rate.time_of(smallest));
    let pass = pass.min().unwrap_or(STEP_BY_STEP);
    let mut leads_to = vec![NO_LINK; network.shared_meters.len()];
    for (spec, flow) in network.flows.iter().zip(flows) {
        let Marking::Edge(shared) = spec.marking else { continue };
        let first_link = flow.sending.first_link;
        if ![NO_LINK, first_link].contains(&leads_to[shared]) {
            return pass.min(STEP_BY_STEP);
        }
        leads_to[shared] = first_link;
    }
    let news = network.flows.iter().filter_map(|flow| flow.out_feedback).filter(|delay| !delay.is_zero());
    news.fold(pass, Duration::min)
}

/// A meter that several flows share.
fn build_shared(shared: &SharedMeter, seed: u64) -> Marker {
    let rng = Rng::stream(seed, &format!("profiles/{}/marker", shared.name));
    Marker::new(&shared.params, Bitrate::MAX, rng)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{FlowSpec, NodeId};
    use perhop_core::scheduler::SchedulerParams;
    use perhop_core::{Color, Dscp, Ecn, FlowId, Header};

    /// What comes to the second of two links, after the first has told every packet of congestion that it would have dropped.
    fn come_to_the_second_link(ecn: Ecn, service: Service) -> (Vec<SimPacket>, u64) {
        let mut simulation = two_links(ecn, service);
        simulation.run_until(Instant::ZERO + Duration::from_millis(900));
        let inbox = &mut simulation.traffic.inboxes[1];
        let packets = std::iter::from_fn(|| inbox.pop(Instant::from_nanos(1_850_000_000))).collect();
        let port = simulation.links[0].port().unwrap().counters();
        (packets, port.notifications().flat_map(|(_, by_color)| by_color).sum())
    }

    /// A flow of 9 Mbit/s that comes to two links of 8 Mbit/s.
    fn two_links(ecn: Ecn, service: Service) -> Simulation {
        let udp = r#"{"udp": "cbr", "rate": "9Mbps", "packet": "1000B", "jitter": 0.0}"#;
        let network = two_links_for(TransportSpec::Udp(serde_json::from_str(udp).unwrap()), ecn);
        Simulation::with_service(&network, 1, service).unwrap()
    }

    fn two_links_for(transport: TransportSpec, ecn: Ecn) -> Network {
        let red = r#"{"scheduler": "fifo", "rule": {"aqm": "red", "thresholds": "1/30/0.5", "limit": "99p", "weight": 1, "ecn": true}}"#;
        let red: SchedulerParams = serde_json::from_str(red).unwrap();
        let link = |from: u32| LinkSpec {
            name: format!("link {from}"),
            from: NodeId(from),
            to: NodeId(from + 1),
            rate: "8Mbps".parse().unwrap(),
            delay: Duration::from_secs(1),
            queue: Some(red.clone()),
        };
        let flow = FlowSpec {
            name: "flow".into(),
            from: NodeId(0),
            to: NodeId(2),
            path: None,
            access: None,
            egress: None,
            transport,
            marking: Marking::None,
            color: Color::Yellow,
            dscp: Dscp::DEFAULT,
            ecn,
            service: None,
            reserved: None,
            tcp_ecn: crate::transport::tcp::TcpEcn::Off,
            out_feedback: None,
            start: (Instant::ZERO, Instant::ZERO),
            stop: None,
            volume: None,
        };
        Network {
            nodes: 3,
            links: vec![link(0), link(1)],
            flows: vec![flow],
            ..Network::new(Duration::from_secs(9))
        }
    }

    #[test]
    fn a_link_that_has_much_to_do_ends_in_between_if_it_is_told_to() {
        const MANY: u32 = 50_000;
        for service in [Service::OnDemand, Service::ByEvent] {
            let Simulation { mut links, mut traffic, .. } = two_links(Ecn::NotCapable, service);
            for number in 0..MANY {
                let header = Header::new(FlowId(0), 1000);
                let packet = SimPacket::new(&header, 0, number);
                traffic.inboxes[0].push(packet.due(Instant::from_nanos(u64::from(number) * 2_000_000)));
            }
            traffic.watch.stop();
            let (_, came) = links[0].run(0, Instant::from_nanos(1 << 50), &mut traffic);
            assert!((1..2 * WATCHED_AFTER).contains(&came), "{came} of {MANY}");
        }
    }

    #[test]
    fn paced_flows_run_alike_on_demand_and_by_event() {
        let outcome = |transport: &str, service| {
            let transport = TransportSpec::Tcp(serde_json::from_str(transport).unwrap());
            let mut network = two_links_for(transport, Ecn::NotCapable);
            let back = [(2, 1), (1, 0)].map(|(from, to)| {
                let name = format!("back from {from}");
                LinkSpec { name, from: NodeId(from), to: NodeId(to), queue: None, ..network.links[0].clone() }
            });
            network.links.extend(back);
            network.links.iter_mut().for_each(|link| link.delay = Duration::from_millis(5));
            let mut simulation = Simulation::with_service(&network, 1, service).unwrap();
            simulation.run_to_end();
            simulation.finish().unwrap()
        };
        for recovery in ["false", "true"] {
            let paced = format!(r#"{{"tcp": "newreno", "congestion": "paced", "sack": {recovery}}}"#);
            let (fast, plain) = (outcome(&paced, Service::OnDemand), outcome(&paced, Service::ByEvent));
            assert_eq!(fast.flows, plain.flows);
            assert!(fast.flows[0].delivered_packets > 500 && fast.flows[0].sender.fast_retransmits > 0);
        }
    }

    #[test]
    fn packets_carry_word_of_congestion_onward() {
        let (packets, notified) = come_to_the_second_link(Ecn::Capable0, Service::OnDemand);
        let told = packets.iter().filter(|packet| packet.header().ecn == Ecn::Congested).count() as u64;
        assert!(told > 20 && told < packets.len() as u64 && told <= notified, "{told} of {notified}");
        assert!(packets.iter().all(|packet| packet.header().ecn.is_capable()));
        assert_eq!(come_to_the_second_link(Ecn::Capable0, Service::ByEvent).0, packets);
        let (packets, notified) = come_to_the_second_link(Ecn::NotCapable, Service::OnDemand);
        assert!(notified == 0 && packets.iter().all(|packet| packet.header().ecn == Ecn::NotCapable));
    }
}

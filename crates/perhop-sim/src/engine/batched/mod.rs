//! The batched engine: links process their arrivals in batches, ahead of the clock (look-ahead of
//! conservative parallel simulation).
//!
//! A packet that passes a link needs at least the link's delay for whatever it does next. So all links may
//! process their arrivals of that time one link after another, without reading each other's state. Any other
//! event ends such a batch early: a timer, a control message, a sample, a packet that waits for its time
//! before a host. Hosts, too, act ahead of the clock where nothing else can reach them first.
//!
//! A window first handles what happens at hosts, flow by flow, then lets all links run, then passes on what
//! has left them: nothing that passes a link within the look-ahead reaches a host within it. Only samples of
//! the probe end a window early. Where a window control or feedback from a router's meter joins hosts and
//! links, each event ends it.
//!
//! In large networks links wait for memory, not for the processor. So the times at which links are due are in
//! one array ([`link_inputs`]), and the loops over links and departures ask for the memory of the next ones
//! some steps ahead.
//!
//! The results, and the order of simultaneous events, are those of the [reference engine](super::reference),
//! which shows them without these optimizations. [`Accepted`] decides which networks this engine runs.

mod acceptance;
mod arrivals;
mod border;
mod calendar;
mod fixed_delay;
mod flow;
mod hosts;
mod link;
mod link_inputs;
mod members;
mod traffic;
mod user_events;
mod users;
mod wakes;

use perhop_core::control::Message;
use perhop_core::measure::{LinkOutcome, PortView};
use perhop_core::units::UnitError;
use perhop_core::{Duration, Imbalance, Instant, PrefetchStage, prefetch};

pub(super) use acceptance::Accepted;
pub(super) use border::{Border, BorderPacket, Renumbering};

use super::retuning::{ChangedPlace, Retuned};
use super::setup::{Setup, schedule_probe, schedule_samples};
use crate::control::{Destination, Post};
use crate::events::{Event, EventSource};
use crate::flow::Flow;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::probe::Series;
use crate::sampling::Ports;
use crate::watch::{Progress, Stopped, WATCH_INTERVAL, Watch};
use crate::window_control::WindowControls;
use fixed_delay::ReturnPaths;
use hosts::Hosts;
use link::Link;
use traffic::Traffic;

/// A run in progress.
#[derive(Clone, Debug)]
pub(super) struct Batched {
    now: Instant,
    /// Links between routers.
    links: Vec<Link>,
    traffic: Traffic,
    /// The look-ahead: a packet that comes to a link changes nothing elsewhere before this has passed.
    lookahead: Duration,
    /// Hosts depend on packets that come to them, and on nothing else that links do.
    hosts_are_independent: bool,
    /// Events so far, and packets that came to links.
    handled: u64,
    hops: u64,
    return_paths: ReturnPaths,
    /// The number of handled events at which the watch is checked next.
    watch_at: u64,
    /// Memory for the links that have something to do in a window.
    busy: Vec<u32>,
}

/// The counts at the end of a run.
pub(super) struct Finished {
    pub(super) events: u64,
    pub(super) hops: u64,
    pub(super) flows: Box<dyn Iterator<Item = Flow>>,
    pub(super) links: Vec<LinkOutcome>,
    pub(super) series: Series,
}

impl Batched {
    /// The network at time zero, or the part of one that has this border.
    ///
    /// # Errors
    /// The watch stopped the run.
    pub(super) fn new(
        network: &Network,
        seed: u64,
        setup: Setup,
        accepted: Accepted,
        watch: Watch,
        border: Option<Border>,
    ) -> Result<Self, Stopped> {
        let links = network.links.iter().enumerate();
        let mut links: Vec<Link> =
            links.map(|(link, spec)| Link::new(spec, seed, setup.recorder.window(link))).collect();
        link::set_routes(&mut links, &setup.steps);
        let return_paths = ReturnPaths::of(network, border.is_none());
        let traffic = Traffic::new(network, seed, setup, watch, border);
        if traffic.hosts.inputs.are_many() {
            links.iter_mut().for_each(Link::note_delays);
        }
        let hosts_are_independent = traffic.hosts.are_independent();
        let mut engine = Self {
            now: Instant::ZERO,
            links,
            traffic,
            lookahead: accepted.lookahead,
            hosts_are_independent,
            handled: 0,
            hops: 0,
            return_paths,
            watch_at: WATCH_INTERVAL,
            busy: Vec::new(),
        };
        let Traffic { hosts, watch, .. } = &mut engine.traffic;
        hosts.schedule_first(watch)?;
        let Hosts { controls, recorder, events, sources, .. } = hosts;
        schedule_samples(controls, &recorder.times, *sources, events);
        Ok(engine)
    }

    /// Returns how often something happened so far.
    pub(super) fn handled(&self) -> u64 {
        self.handled
    }

    /// Returns the time before which nothing happens, unless a packet comes from another part of the network.
    pub(super) fn next(&self) -> Instant {
        self.head().min(self.next_at_hosts())
    }

    /// Takes in a packet from another part of the network, at a time that has not been handled.
    pub(super) fn enter(&mut self, packet: BorderPacket) {
        self.traffic.enter(packet);
    }

    /// Exchanges the packets that have left for another part since the last call for an empty list.
    pub(super) fn leaving(&mut self, part: usize, empty: Vec<BorderPacket>) -> Vec<BorderPacket> {
        match &mut self.traffic.border {
            Some(border) => std::mem::replace(&mut border.outboxes[part], empty),
            None => empty,
        }
    }

    /// Handles all events up to and including `until`; if the watch stops the run, it ends within a batch.
    pub(super) fn run_until(&mut self, until: Instant, watch: &Watch, progress: &mut Progress) {
        let beyond = until.just_after();
        let completed = if self.hosts_are_independent {
            self.run_in_windows(beyond, watch, progress)
        } else {
            self.run_in_order(beyond, watch, progress)
        };
        if completed {
            self.now = until;
        }
    }

    /// Handles all events before `beyond` where hosts are independent: in each window of the look-ahead first
    /// the events at hosts, then the arrivals at links. Nothing that arrives at a link within the window
    /// reaches a host within it. Returns whether the watch let it complete.
    fn run_in_windows(&mut self, beyond: Instant, watch: &Watch, progress: &mut Progress) -> bool {
        loop {
            let head = self.head();
            if self.handled >= self.watch_at && self.is_stopped(head, watch, progress) {
                return false;
            }
            let first = head.min(self.next_at_hosts());
            if first >= beyond {
                return true;
            }
            let limit = self.run_hosts((first + self.lookahead).min(beyond));
            self.run_links(limit);
            if self.handled >= self.return_paths.check_at {
                self.fix_delays();
            }
            if let Some(event) = self.traffic.hosts.next_event(limit) {
                self.take(event, limit);
            }
        }
    }

    /// Handles all events before `beyond` where links and hosts may reach one another at once: each event
    /// ends a batch of the links. Returns whether the watch let it complete.
    fn run_in_order(&mut self, beyond: Instant, watch: &Watch, progress: &mut Progress) -> bool {
        loop {
            let head = self.head();
            if self.handled >= self.watch_at && self.is_stopped(head, watch, progress) {
                return false;
            }
            let limit = (head + self.lookahead).min(beyond);
            let host = self.traffic.hosts.inputs.waiting.peek(limit).map(|packet| packet.at());
            let event = self.traffic.hosts.next_event(limit);
            let end = event.map_or(limit, |event| self.links_before(event));
            let bound = host.map_or(end, |host| host.min(end));
            if head < bound {
                self.run_links(bound);
                if self.handled >= self.return_paths.check_at {
                    self.fix_delays();
                }
            } else if host == Some(bound) && event.is_none_or(|event| bound <= event.at) {
                self.take_host(limit);
            } else if let Some(event) = event {
                self.take(event, limit);
            } else {
                return true;
            }
        }
    }

    /// Handles the next event, which comes before `limit`.
    fn take(&mut self, event: Event, limit: Instant) {
        self.traffic.hosts.events.pop(limit);
        self.now = event.at;
        self.handled += 1;
        self.handle(event);
    }

    /// Handles the next packet that waits for its time at a host, which comes before `limit`.
    fn take_host(&mut self, limit: Instant) {
        let packet = self.traffic.hosts.inputs.waiting.pop(limit).expect("it was seen");
        self.handled += 1;
        self.traffic.advance(packet);
    }

    /// Processes what happens at hosts before `limit`, where nothing that passes a link before then can reach
    /// them. Returns the limit, or the time just after something before it that concerns several flows.
    fn run_hosts(&mut self, limit: Instant) -> Instant {
        loop {
            let host = self.traffic.hosts.inputs.waiting.peek(limit).map(|packet| packet.at());
            let (event, happened) = self.traffic.hosts.wake_before(host.unwrap_or(limit), limit);
            self.handled += happened;
            match (host, event) {
                (_, Some(event)) if !self.traffic.hosts.concerns_one_flow(&event) => {
                    let before = self.links_before(event);
                    // Which flows are over is known if nothing that comes earlier is left to do.
                    if !self.traffic.hosts.is_arrival(&event) || self.head() < before {
                        return before;
                    }
                    self.take(event, limit);
                }
                (_, Some(event)) => self.take(event, limit),
                (Some(_), None) => self.take_host(limit),
                (None, None) => return limit,
            }
        }
    }

    /// Reports the progress of the run; returns whether it is to end.
    #[cold]
    fn is_stopped(&mut self, head: Instant, watch: &Watch, progress: &mut Progress) -> bool {
        self.watch_at = self.handled + WATCH_INTERVAL;
        let next = head.min(self.next_at_hosts());
        progress.report(watch, next, self.traffic.hosts.recorder.times.end);
        watch.is_stopped()
    }

    /// Returns the time before which nothing happens at a host.
    #[inline]
    fn next_at_hosts(&self) -> Instant {
        let Hosts { events, inputs, .. } = &self.traffic.hosts;
        events.next().min(inputs.waiting.next())
    }

    /// Returns the time before which no packet comes to a link, and no link is to be served.
    #[inline]
    fn head(&self) -> Instant {
        self.traffic.hosts.inputs.next()
    }

    /// Returns the time before which arrivals at links come before the event.
    #[inline]
    fn links_before(&self, event: Event) -> Instant {
        let source = self.traffic.hosts.sources.source(event.source);
        let is_first =
            matches!(source, EventSource::Timer(_) | EventSource::Arrival(_) | EventSource::User(_));
        event.at + Duration::from_nanos(u64::from(!is_first))
    }

    /// Processes the arrivals at all links before `bound`.
    fn run_links(&mut self, bound: Instant) {
        let mut busy = std::mem::take(&mut self.busy);
        self.traffic.hosts.inputs.find_due(bound, &mut busy);
        let are_many = self.traffic.hosts.inputs.are_many();
        for (place, &link) in busy.iter().enumerate() {
            if are_many {
                self.prefetch(&busy[place..]);
            }
            let (handled, came) = self.links[link as usize].run(link as usize, bound, &mut self.traffic);
            self.handled += handled;
            self.hops += came;
        }
        self.busy = busy;
        self.traffic.pass_all_on();
    }

    /// Asks the processor for the state of links that run soon. One place says where the next is, so it asks
    /// in steps, early enough for the answer to one to be there at the next.
    #[inline]
    fn prefetch(&self, links: &[u32]) {
        let ahead = |distance: usize| links.get(distance).map(|&link| link as usize);
        if let Some(link) = ahead(12) {
            prefetch(&self.links[link..=link]);
            prefetch(&self.traffic.hosts.inputs.queues[link..=link]);
        }
        if let Some(link) = ahead(9) {
            self.links[link].prefetch();
            self.traffic.hosts.inputs.queues[link].prefetch_first();
        }
        for (distance, stage) in
            [(6, PrefetchStage::Queues), (4, PrefetchStage::Counters), (2, PrefetchStage::Packets)]
        {
            if let Some(link) = ahead(distance) {
                self.links[link].prefetch_stage(stage);
            }
        }
    }

    /// Starts to use the return paths whose delays are fixed by now.
    fn fix_delays(&mut self) {
        let Self { return_paths, links, traffic, .. } = self;
        let (handled, came) = return_paths.fix(links, traffic, self.handled);
        self.handled += handled;
        self.hops += came;
    }

    fn handle(&mut self, event: Event) {
        let hosts = &mut self.traffic.hosts;
        match hosts.sources.source(event.source) {
            EventSource::Timer(flow) => hosts.wake_flow_now(flow, self.now),
            EventSource::Message(channel) => {
                let message = hosts.channels.receive(channel);
                self.deliver(channel, &message);
            }
            EventSource::Control(control) => self.sample_windows(control),
            EventSource::Probe => self.sample(),
            EventSource::Arrival(population) => hosts.begin_flow(population, self.now),
            EventSource::User(user) => {
                hosts.wake_user(user, self.now, self.now.just_after());
            }
        }
    }

    /// Delivers a control message that reaches the end of its channel.
    fn deliver(&mut self, channel: usize, message: &Message) {
        match self.traffic.hosts.channels.destination(channel) {
            Destination::Sender(flow) => self.traffic.hosts.flows[flow].on_message(message),
            Destination::Queue { link, label } => self.links[link].on_message(label, message),
        }
    }

    /// Lets a path's control sample its flows' windows and send messages to their markers and its queues.
    fn sample_windows(&mut self, control: usize) {
        let Hosts { flows, controls, .. } = &mut self.traffic.hosts;
        let decision = controls.sample(control, self.now, |flow| flows[flow].base.sender.sending_window());
        for (flow, message) in &decision.shares {
            flows[*flow].base.sending.on_meter_message(message);
        }
        for (channel, message) in decision.messages {
            let Hosts { channels, events, .. } = &mut self.traffic.hosts;
            if let Some(message) = (Post { channels, events }).send(channel, message, self.now) {
                self.deliver(channel, &message);
            }
        }
        let Hosts { events, controls, sources, .. } = &mut self.traffic.hosts;
        events.push(Event { at: controls.next(control), source: sources.control(control) });
    }

    /// Samples flows and queues for the probe, or because the warm-up ends.
    fn sample(&mut self) {
        let Hosts { flows, controls, recorder, events, sources, .. } = &mut self.traffic.hosts;
        for flow in &mut *flows {
            flow.sample(self.now, &recorder.times, &mut recorder.series);
        }
        let own = flows.iter().take(recorder.times.flows);
        let seen = own.map(|flow| controls.seen(&flow.base));
        recorder.sample(self.now, seen, &mut self.links);
        schedule_probe(recorder.times.after(self.now), &recorder.times, *sources, events);
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Changes the parameters of queues and meters of links: all of them or, after an error, none.
    ///
    /// # Errors
    /// The owner of the parameters, and the key that cannot change.
    pub(super) fn retune(&mut self, changes: &[Retuned<'_>]) -> Result<(), (ChangedPlace, UnitError)> {
        let mut links = Vec::new();
        for change in changes {
            let Retuned::Link(number, before, after) = *change else { continue };
            let mut link = self.links[number].clone();
            link.retune(before, after, self.now).map_err(|problem| (ChangedPlace::Link(number), problem))?;
            links.push((number, link));
        }
        for (number, link) in links {
            self.traffic.hosts.inputs.settle(number, link.next_service());
            self.links[number] = link;
        }
        Ok(())
    }

    /// Returns a link with a queue under an AQM as it is now.
    pub(super) fn view(&mut self, link: usize) -> PortView<'_> {
        self.links.view(link, self.now)
    }

    pub(super) fn controls(&self) -> &WindowControls {
        &self.traffic.hosts.controls
    }

    /// Ends the run: checks that every queue conserved its packets.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub(super) fn finish(mut self) -> Result<Outcome, Imbalance> {
        let (now, times) = (self.now, self.traffic.hosts.recorder.times.clone());
        let populations = std::mem::take(&mut self.traffic.hosts.populations);
        let users = std::mem::take(&mut self.traffic.hosts.users);
        let Finished { events, hops, flows, links, mut series } = self.take_apart()?;
        let (flows, populations) = populations.finish(flows, now, &times, &mut series);
        let applications = users.finish(now);
        Ok(Outcome { engine: None, events, hops, flows, populations, links, applications, series })
    }

    /// Ends the run as [`finish`](Self::finish) does, but leaves it to the caller what became of flows.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub(super) fn take_apart(mut self) -> Result<Finished, Imbalance> {
        let Hosts { flows, recorder, returned, inputs, .. } = self.traffic.hosts;
        let (links, series) = recorder.finish(self.now, &mut self.links)?;
        drop((self.links, inputs)); // What becomes of flows takes their memory.
        let flows = Box::new(flows.into_iter().map(|flow| flow.base));
        let (events, hops) = (self.handled + returned, self.hops + returned);
        Ok(Finished { events, hops, flows, links, series })
    }
}

#[cfg(test)]
impl Batched {
    /// Takes the packets on their way to a link that come before `bound`.
    pub(super) fn take_arrivals(&mut self, link: usize, bound: Instant) -> Vec<crate::packet::SimPacket> {
        std::iter::from_fn(|| self.traffic.hosts.inputs.queues[link].pop(bound)).collect()
    }

    /// Returns whether all return paths whose delays may become fixed have become so.
    pub(super) fn has_fixed_delays(&self) -> bool {
        self.return_paths.paths.is_empty()
    }

    /// Adds a packet on its way to a link.
    pub(super) fn add_arrival(&mut self, link: usize, packet: crate::packet::SimPacket) {
        self.traffic.hosts.inputs.push(link, packet);
    }
}

impl Ports for Vec<Link> {
    fn view(&mut self, link: usize, now: Instant) -> PortView<'_> {
        self[link].settle(now);
        self[link].port().expect("measured links have a port")
    }

    fn final_view(&mut self, link: usize, now: Instant) -> PortView<'_> {
        self[link].finish(now);
        self[link].port().expect("measured links have a port")
    }
}

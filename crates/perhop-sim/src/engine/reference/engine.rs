//! The state of a run, its events in the order of time, and its end.

use perhop_core::control::Message;
use perhop_core::measure::PortView;
use perhop_core::{Imbalance, Instant};

use super::link::{Link, Queue};
use super::pending::Pending;
use super::tally::{Passed, Tally, balance};
use super::tap::Tap;
use super::timers::Timers;
use crate::control::{Channels, Destination, Post};
use crate::engine::populations::Populations;
use crate::engine::setup::{Setup, Step, schedule_probe, schedule_samples};
use crate::engine::users::Users;
use crate::events::{Event, EventSource, SourceId, Sources};
use crate::flow::{Flow, Marker};
use crate::network::Network;
use crate::observer::Observation;
use crate::outcome::Outcome;
use crate::packet::SimPacket;
use crate::sampling::{Ports, Recorder};
use crate::splitting::Importance;
use crate::watch::{Progress, WATCH_INTERVAL, Watch};
use crate::window_control::WindowControls;

/// A run in progress.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Reference {
    pub(super) now: Instant,
    /// Links between routers, each with the packets on their way to it.
    pub(super) links: Vec<Link>,
    /// Packets on their way to hosts, and to the wires before them.
    pub(super) hosts: Pending<SimPacket>,
    /// The time at which each flow next does something by itself.
    pub(super) timers: Timers,
    /// Control messages, and samples of window controls and of the probe.
    pub(super) events: Pending<Event>,
    pub(super) sources: Sources,
    /// Flows of the network, then those of populations.
    pub(super) flows: Vec<Flow>,
    pub(super) populations: Populations,
    /// The time at which the next flow of each population begins.
    pub(super) arrivals: Pending<Event>,
    /// All routes, end to end.
    pub(super) steps: Vec<Step>,
    pub(super) shared_meters: Vec<Marker>,
    pub(super) channels: Channels,
    pub(super) controls: WindowControls,
    pub(super) recorder: Recorder,
    /// Users of applications, and when each wakes.
    pub(super) users: Users,
    pub(super) user_timers: Timers,
    /// Packets that a host has just sent.
    pub(super) sent: Vec<SimPacket>,
    /// The tap of an observer. It costs other runs a check where a packet comes to a link and leaves it.
    pub(super) tap: Option<Box<Tap>>,
    /// What passes a link, for a run that is split.
    pub(super) tally: Option<Box<Tally>>,
    /// Events so far, and packets that came to links.
    pub(super) handled: u64,
    pub(super) hops: u64,
}

impl Reference {
    /// The network at time zero.
    pub(in crate::engine) fn new(network: &Network, seed: u64, setup: Setup) -> Self {
        let links = network.links.iter().enumerate();
        let links =
            links.map(|(link, spec)| Link::new(spec, seed, setup.recorder.window(link))).collect::<Vec<_>>();
        let mut events = Pending::default();
        let sources = setup.sources();
        schedule_samples(&setup.controls, &setup.recorder.times, sources, &mut events);
        let Setup { mut flows, populations, steps, shared_meters, channels, controls, recorder, .. } = setup;
        let (users, begins) = Users::new(network, seed, &mut flows);
        let mut user_timers = Timers::for_flows(begins.len());
        begins.into_iter().enumerate().for_each(|(user, at)| user_timers.set(user, at));
        let populations = Populations::new(network, populations, seed);
        let mut arrivals = Pending::default();
        for (population, at) in populations.first_arrivals() {
            arrivals.push(Event { at, source: Sources::population(population) });
        }
        let mut engine = Self {
            now: Instant::ZERO,
            links,
            hosts: Pending::default(),
            timers: Timers::for_flows(flows.len()),
            events,
            sources,
            flows,
            populations,
            arrivals,
            steps,
            shared_meters,
            channels,
            controls,
            recorder,
            users,
            user_timers,
            sent: Vec::new(),
            tap: None,
            tally: None,
            handled: 0,
            hops: 0,
        };
        (0..engine.flows.len()).for_each(|flow| engine.set_timer(flow));
        engine
    }

    /// Shows the packets at its links to an observer.
    pub(in crate::engine) fn observe(&mut self, observation: Observation) {
        self.tap = Some(Box::new(Tap::new(observation, self.links.len())));
    }

    /// Counts from now on what passes the link of this importance. False if the link has no queue.
    pub(in crate::engine) fn count(&mut self, importance: Importance) -> bool {
        let Some(Link { queue: Queue::Managed(managed), .. }) = self.links.get(importance.link) else {
            return false;
        };
        self.tally = Some(Box::new(Tally::new(importance, &managed.port)));
        true
    }

    /// Draws anew when sources send their next packets and the next flows of populations begin, given that
    /// they have not by now.
    pub(in crate::engine) fn redraw(&mut self) {
        for flow in 0..self.flows.len() {
            self.flows[flow].redraw(self.now);
            self.set_timer(flow);
        }
        self.arrivals = Pending::default();
        for (population, at) in self.populations.redraw(self.now) {
            self.arrivals.push(Event { at, source: Sources::population(population) });
        }
    }

    /// Returns how important the state of the queue is that is counted.
    pub(in crate::engine) fn importance(&self) -> u64 {
        self.tally.as_ref().map_or(0, |tally| tally.importance())
    }

    /// Returns what passed the link that is counted since this was last asked for.
    pub(in crate::engine) fn passed(&mut self) -> impl Iterator<Item = Passed> {
        self.tally.iter_mut().flat_map(|tally| tally.passed())
    }

    /// Checks that the queue that is counted has conserved its packets.
    pub(in crate::engine) fn balance(&self) -> Result<(), Imbalance> {
        let link = self.tally.as_ref().map(|tally| &self.links[tally.link()]);
        match link.map(|link| &link.queue) {
            Some(Queue::Managed(managed)) => balance(&managed.port),
            None | Some(Queue::Unlimited(_)) => Ok(()),
        }
    }

    /// Returns the number of events so far.
    pub(in crate::engine) fn handled(&self) -> u64 {
        self.handled
    }

    /// Handles all events up to and including `until`, or until the watch stops the run.
    pub(in crate::engine) fn run_until(&mut self, until: Instant, watch: &Watch, progress: &mut Progress) {
        let mut watch_at = self.handled;
        while let Some(now) = self.next().filter(|&now| now <= until) {
            if self.handled >= watch_at {
                progress.report(watch, now, self.recorder.times.end);
                if watch.is_stopped() {
                    return;
                }
                watch_at = self.handled + WATCH_INTERVAL;
            }
            debug_assert!(self.now <= now, "events come in the order of time");
            self.now = now;
            self.handle_next();
        }
        self.now = until;
    }

    /// Handles the next event, if it comes up to and including `until`; false if none does.
    pub(in crate::engine) fn step(&mut self, until: Instant) -> bool {
        let next = self.next().filter(|&now| now <= until);
        self.now = next.unwrap_or(until);
        if next.is_some() {
            self.handle_next();
        }
        next.is_some()
    }

    /// Returns the time of the next event.
    fn next(&self) -> Option<Instant> {
        let links = self.links.iter().filter_map(Link::next);
        let others = [
            self.hosts.next(),
            self.timers.next(),
            self.arrivals.next(),
            self.user_timers.next(),
            self.events.next(),
        ];
        links.chain(others.into_iter().flatten()).min()
    }

    /// Handles the next event. This is the order of simultaneous events.
    fn handle_next(&mut self) {
        if let Some(packet) = self.hosts.pop_due(self.now) {
            self.handled += 1;
            self.reach_host(packet);
        } else if let Some(flow) = self.timers.pop_due(self.now) {
            self.handled += 1;
            self.expire(flow);
        } else if let Some(Event { source, .. }) = self.arrivals.pop_due(self.now) {
            self.handled += 1;
            self.handle_event(source);
        } else if let Some(user) = self.user_timers.pop_due(self.now) {
            self.handled += 1;
            let event = self.users.wake(user);
            self.tell_user(user, event);
        } else if self.links.iter().filter_map(Link::next).any(|next| next <= self.now) {
            (0..self.links.len()).for_each(|link| self.run_link(link));
        } else if let Some(Event { source, .. }) = self.events.pop_due(self.now) {
            self.handled += 1;
            self.handle_event(source);
        }
    }

    /// Takes a packet to the next step of its route, to which it comes at `at`.
    pub(super) fn forward(&mut self, packet: SimPacket, at: Instant) {
        let packet = packet.due(at);
        match self.steps[packet.step()] {
            Step::Link(link) | Step::Metered(link) => self.links[link as usize].arrivals.push(packet),
            Step::Away(_) => unreachable!("this engine runs whole networks"),
            _ => self.hosts.push(packet),
        }
    }

    fn handle_event(&mut self, source: SourceId) {
        match self.sources.source(source) {
            EventSource::Message(channel) => {
                let message = self.channels.receive(channel);
                self.deliver(channel, &message);
            }
            EventSource::Control(control) => self.sample_windows(control),
            EventSource::Probe => self.sample(),
            EventSource::Arrival(population) => self.begin_flow(population),
            EventSource::Timer(_) | EventSource::User(_) => {
                unreachable!("timers of flows and users have queues of their own")
            }
        }
    }

    /// Delivers a control message that reaches the end of its channel.
    fn deliver(&mut self, channel: usize, message: &Message) {
        match self.channels.destination(channel) {
            Destination::Sender(flow) => {
                self.flows[flow].on_message(message);
                self.set_timer(flow);
            }
            Destination::Queue { link, label } => self.links[link].on_message(label, message),
        }
    }

    /// Lets a path's control sample its flows' windows and send messages to their markers and its queues.
    fn sample_windows(&mut self, control: usize) {
        let Self { flows, controls, .. } = self;
        let decision = controls.sample(control, self.now, |flow| flows[flow].sender.sending_window());
        for (flow, message) in &decision.shares {
            flows[*flow].sending.on_meter_message(message);
        }
        for (channel, message) in decision.messages {
            let mut post = Post { channels: &mut self.channels, events: &mut self.events };
            if let Some(message) = post.send(channel, message, self.now) {
                self.deliver(channel, &message);
            }
        }
        self.events.push(Event { at: self.controls.next(control), source: self.sources.control(control) });
    }

    /// Samples flows and queues for the probe, or because the warm-up ends.
    fn sample(&mut self) {
        let Self { now, flows, links, recorder, controls, .. } = self;
        for flow in &mut *flows {
            flow.sample_receiver(*now, &recorder.times, &mut recorder.series);
            flow.sample_sender(*now, &recorder.times, &mut recorder.series);
            if recorder.times.ends_warmup(*now) {
                flow.end_warmup_at_routers();
            }
        }
        let own = flows.iter().take(recorder.times.flows);
        recorder.sample(*now, own.map(|flow| controls.seen(flow)), links);
        let times = &self.recorder.times;
        schedule_probe(times.after(self.now), times, self.sources, &mut self.events);
    }

    pub(in crate::engine) fn now(&self) -> Instant {
        self.now
    }

    pub(in crate::engine) fn controls(&self) -> &WindowControls {
        &self.controls
    }

    /// Ends the run: checks that every queue conserved its packets.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub(in crate::engine) fn finish(mut self) -> Result<Outcome, Imbalance> {
        if let Some(tap) = &mut self.tap {
            tap.advance(self.now);
        }
        let times = self.recorder.times.clone();
        let (links, mut series) = self.recorder.finish(self.now, &mut self.links)?;
        let (flows, populations) = self.populations.finish(self.flows, self.now, &times, &mut series);
        let applications = self.users.finish(self.now);
        Ok(Outcome {
            engine: None,
            events: self.handled,
            hops: self.hops,
            flows,
            populations,
            links,
            applications,
            series,
        })
    }
}

#[cfg(test)]
impl Reference {
    /// Takes the packets on their way to a link that come before `bound`.
    pub(in crate::engine) fn take_arrivals(&mut self, link: usize, bound: Instant) -> Vec<SimPacket> {
        let last = Instant::from_nanos(bound.as_nanos() - 1);
        std::iter::from_fn(|| self.links[link].arrivals.pop_due(last)).collect()
    }

    /// Adds a packet on its way to a link.
    pub(in crate::engine) fn add_arrival(&mut self, link: usize, packet: SimPacket) {
        self.links[link].arrivals.push(packet);
    }
}

impl Ports for Vec<Link> {
    fn view(&mut self, link: usize, _now: Instant) -> PortView<'_> {
        self[link].view()
    }

    fn final_view(&mut self, link: usize, now: Instant) -> PortView<'_> {
        self[link].finish(now);
        self[link].view()
    }
}

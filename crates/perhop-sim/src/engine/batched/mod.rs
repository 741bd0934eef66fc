//! The batched engine: links process their arrivals in batches, ahead of the clock (look-ahead of conservative parallel
//! simulation).
//!
//! A packet that passes a link needs at least the link's delay for whatever it does next. So all links may process what comes
//! within that time one link after another, without reading each other's state. Any other event ends such a batch early: a
//! timer, a control message, a sample, a packet that reaches a host whose turn it is. Hosts, too, act ahead of the clock where
//! nothing else can reach them first.
//!
//! The results, and the order of simultaneous events, are those of the [reference engine](super::reference), which shows them
//! without these optimizations. [`Accepted`] decides which networks this engine runs.

mod acceptance;
mod arrivals;
mod calendar;
mod fixed_delay;
mod flow;
mod link;
mod prefetch;
mod traffic;

use perhop_core::control::Message;
use perhop_core::measure::PortView;
use perhop_core::{Duration, Imbalance, Instant};

pub(super) use acceptance::Accepted;
pub use acceptance::Refusal;

use super::setup::{Setup, schedule_probe};
use super::{Failure, WATCH_INTERVAL};
use crate::control::{Destination, Post};
use crate::events::{Event, EventSource};
use crate::network::Network;
use crate::outcome::Outcome;
use crate::sampling::Ports;
use crate::watch::{Progress, Watch};
use crate::window_control::WindowControls;
use arrivals::ArrivalQueue;
use fixed_delay::{ReturnPath, return_paths};
use link::Link;
use traffic::Traffic;

/// A run in progress.
#[derive(Clone, Debug)]
pub(super) struct Batched {
    now: Instant,
    /// Links between routers.
    links: Vec<Link>,
    traffic: Traffic,
    /// A packet that comes to a link changes nothing elsewhere before this has passed.
    lookahead: Duration,
    /// Events so far, and packets that came to links.
    handled: u64,
    hops: u64,
    /// Return paths whose delay may become fixed, and when that is checked next, by the number of handled events.
    return_paths: Vec<ReturnPath>,
    fix_at: u64,
    /// When the watch is checked next, by the number of handled events.
    watch_at: u64,
}

impl Batched {
    /// The network at time zero.
    ///
    /// # Errors
    /// The watch stopped the run.
    pub(super) fn new(
        network: &Network,
        seed: u64,
        setup: Setup,
        accepted: Accepted,
        watch: Watch,
    ) -> Result<Self, Failure> {
        let window = setup.recorder.times.measured();
        let mut links: Vec<Link> = network.links.iter().map(|spec| Link::new(spec, seed, window)).collect();
        link::set_routes(&mut links, &setup.steps);
        let mut engine = Self {
            now: Instant::ZERO,
            links,
            traffic: Traffic::new(network, setup, watch),
            lookahead: accepted.lookahead,
            handled: 0,
            hops: 0,
            return_paths: return_paths(network),
            fix_at: 0,
            watch_at: WATCH_INTERVAL,
        };
        engine.traffic.schedule_first()?;
        Ok(engine)
    }

    /// Handles all events up to and including `until`. If the watch stops the run, it ends in the middle of a batch.
    pub(super) fn run_until(&mut self, until: Instant, watch: &Watch, progress: &mut Progress) {
        let beyond = until + Duration::from_nanos(1);
        loop {
            let head = self.head();
            if self.handled >= self.watch_at && self.is_stopped(head, watch, progress) {
                return;
            }
            let limit = (head + self.lookahead).min(beyond);
            let host = self.traffic.waiting.peek(limit).map(|packet| packet.at());
            let event = self.traffic.next_event(limit);
            let turn = event.map_or(limit, |event| self.links_before(event));
            let bound = host.map_or(turn, |host| host.min(turn));
            if head < bound {
                self.run_links(bound);
                if self.handled >= self.fix_at {
                    self.fix_delays();
                }
            } else if host == Some(bound) && event.is_none_or(|event| bound <= event.at) {
                let packet = self.traffic.waiting.pop(limit).expect("it was seen");
                self.handled += 1;
                self.traffic.advance(packet);
            } else if let Some(event) = event {
                self.traffic.events.pop(limit);
                self.now = event.at;
                self.handled += 1;
                self.handle(event);
            } else {
                break;
            }
        }
        self.now = until;
    }

    /// Reports the progress of the run; returns whether it is to end.
    #[cold]
    fn is_stopped(&mut self, head: Instant, watch: &Watch, progress: &mut Progress) -> bool {
        self.watch_at = self.handled + WATCH_INTERVAL;
        let next = head.min(self.traffic.events.next()).min(self.traffic.waiting.next());
        progress.report(watch, next, self.end());
        watch.is_stopped()
    }

    /// No packet comes to a link, and no link is to be served, before this.
    #[inline]
    fn head(&self) -> Instant {
        let next = |(link, arrivals): (&Link, &ArrivalQueue<_>)| arrivals.next().min(link.next_service());
        self.links.iter().zip(&self.traffic.links).map(next).fold(Instant::NEVER, Instant::min)
    }

    /// Arrivals at links before this time come before the event.
    #[inline]
    fn links_before(&self, event: Event) -> Instant {
        let is_timer = matches!(self.traffic.sources.source(event.source), EventSource::Timer(_));
        event.at + Duration::from_nanos(u64::from(!is_timer))
    }

    /// Processes the arrivals at all links before `bound`.
    fn run_links(&mut self, bound: Instant) {
        for link in 0..self.links.len() {
            self.run_link(link, bound);
        }
    }

    #[inline]
    fn run_link(&mut self, link: usize, bound: Instant) {
        let (handled, came) = self.links[link].run(link, bound, &mut self.traffic);
        self.handled += handled;
        self.hops += came;
    }

    /// Starts to use the return paths whose delays are fixed by now.
    #[cold]
    fn fix_delays(&mut self) {
        let beyond = self.end() + Duration::from_nanos(1);
        for place in (0..self.return_paths.len()).rev() {
            let path = &self.return_paths[place];
            if !path.opening.iter().all(|&flow| self.traffic.flows[flow].is_open()) {
                continue;
            }
            // The packets on their way to the link come before all later ones.
            self.run_link(path.link, beyond);
            if self.is_fixed(&self.return_paths[place]) {
                for (flow, delay) in self.return_paths.swap_remove(place).delays {
                    self.traffic.flows[flow].fixed_delay = Some(delay);
                }
            }
        }
        self.fix_at = if self.return_paths.is_empty() { u64::MAX } else { self.handled + FIX_INTERVAL };
    }

    /// The next packet that leaves the bottleneck finds every wire free, and so do all later ones.
    fn is_fixed(&self, path: &ReturnPath) -> bool {
        let last = self.links[path.bottleneck].empty_from();
        let [to_receiver, from_receiver, back, to_sender] =
            path.before.map(|before| last + path.interval + before);
        self.links[path.link].busy_until() <= back
            && path.delays.iter().all(|&(flow, _)| {
                let busy = self.traffic.flows[flow].wires_busy_until();
                busy.iter().zip([to_receiver, from_receiver, to_sender]).all(|(&busy, next)| busy <= next)
            })
    }

    fn handle(&mut self, event: Event) {
        match self.traffic.sources.source(event.source) {
            EventSource::Timer(flow) => self.traffic.wake(flow, self.now),
            EventSource::Message(channel) => {
                let message = self.traffic.channels.receive(channel);
                self.deliver(channel, &message);
            }
            EventSource::Control(control) => self.sample_windows(control),
            EventSource::Probe => self.sample(),
            EventSource::Arrival(_) => unreachable!("networks with populations are refused"),
        }
    }

    /// A control message reaches the end of its channel.
    fn deliver(&mut self, channel: usize, message: &Message) {
        match self.traffic.channels.destination(channel) {
            Destination::Sender(flow) => self.traffic.flows[flow].on_message(message),
            Destination::Queue { link, label } => self.links[link].on_message(label, message),
        }
    }

    /// The control of a path samples its flows' windows, and sends messages to their markers and to the path's queues.
    fn sample_windows(&mut self, control: usize) {
        let Traffic { flows, controls, .. } = &mut self.traffic;
        let decision = controls.sample(control, self.now, |flow| flows[flow].base.sender.sending_window());
        for (flow, message) in &decision.shares {
            flows[*flow].base.sending.on_meter_message(message);
        }
        for (channel, message) in decision.messages {
            let Traffic { channels, events, .. } = &mut self.traffic;
            if let Some(message) = (Post { channels, events }).send(channel, message, self.now) {
                self.deliver(channel, &message);
            }
        }
        let Traffic { events, controls, sources, .. } = &mut self.traffic;
        events.push(Event { at: controls.next(control), source: sources.control(control) });
    }

    /// Samples flows and queues for the probe, or because the warm-up ends.
    fn sample(&mut self) {
        let Traffic { flows, controls, recorder, events, sources, .. } = &mut self.traffic;
        for flow in &mut *flows {
            flow.sample(self.now, &recorder.times, &mut recorder.series);
        }
        let seen = flows.iter().map(|flow| controls.seen(&flow.base));
        recorder.sample(self.now, seen, &mut self.links);
        let next = recorder.times.after(self.now);
        schedule_probe(next, &recorder.times, *sources, events);
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn end(&self) -> Instant {
        self.traffic.recorder.times.end()
    }

    pub(super) fn controls(&self) -> &WindowControls {
        &self.traffic.controls
    }

    /// Ends the run: checks that every queue conserved its packets.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub(super) fn finish(mut self) -> Result<Outcome, Imbalance> {
        let Traffic { flows, recorder, returned, .. } = self.traffic;
        let times = recorder.times.clone();
        let (links, series) = recorder.finish(self.now, &mut self.links)?;
        let flows = flows.into_iter().map(|flow| flow.base.finish(&times)).collect();
        let (events, hops) = (self.handled + returned, self.hops + returned);
        let (populations, applications) = (Vec::new(), Vec::new());
        Ok(Outcome { engine: None, events, hops, flows, populations, links, applications, series })
    }
}

#[cfg(test)]
impl Batched {
    /// Takes the packets on their way to a link that come before `bound`.
    pub(super) fn take_arrivals(&mut self, link: usize, bound: Instant) -> Vec<crate::packet::SimPacket> {
        std::iter::from_fn(|| self.traffic.links[link].pop(bound)).collect()
    }

    /// Adds a packet on its way to a link.
    pub(super) fn add_arrival(&mut self, link: usize, packet: crate::packet::SimPacket) {
        self.traffic.links[link].push(packet);
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

/// Handled events between two checks whether the delays of return paths are fixed.
const FIX_INTERVAL: u64 = 4096;

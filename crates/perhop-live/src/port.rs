//! A port: a discipline, the link that it serves, and what is measured of both. Driven call by call in virtual time.

use perhop_core::aqm::Reason;
use perhop_core::control::Message;
use perhop_core::measure::{PortStatistics, PortView};
use perhop_core::scheduler::{AnyScheduler, Dequeued, Discipline, SchedulerParams};
use perhop_core::{Bitrate, Context, Environment, Header, Instant, Ledger, Packet, Rng, Serializer};

/// A queue and the link it serves.
#[derive(Clone, Debug)]
pub struct Port<P> {
    queue: AnyScheduler<P>,
    statistics: PortStatistics,
    /// Chance for each of the queue's rules, and for its scheduler.
    rule_rngs: Vec<Rng>,
    scheduler_rng: Rng,
    serializer: Serializer,
    idle: bool,
    /// When it asked last to be served, having something that may not go before.
    waits_until: Instant,
}

/// What a port did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<P> {
    /// It waits behind others.
    Queued,
    /// The link is free: serve the port now.
    Idle,
    /// It is dropped.
    Lost(P, Reason),
}

/// What a port did when it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served<P> {
    /// This packet is on the link, which is free again, and to be served, at this time.
    Sent(P, Instant),
    /// This packet was dropped from the queue; serve again.
    Lost(P, Reason),
    /// Serve again at this time.
    Later(Instant),
    /// Nothing to do until a packet comes, or until a time named before.
    Nothing,
}

impl<P: Packet> Port<P> {
    /// An empty port. Its random streams lie under `path`, as those of the simulator's ports do; statistics cover `window`.
    pub fn new(
        queue: SchedulerParams,
        rate: Bitrate,
        seed: u64,
        path: &str,
        window: (Instant, Instant),
    ) -> Self {
        let queue: AnyScheduler<P> = queue.build(Environment { rate });
        let stream = |part: &str| Rng::stream(seed, &format!("{path}/{part}"));
        let rule_rngs = match queue.rules() {
            1 => vec![stream("aqm")],
            rules => {
                (0..rules).map(|rule| stream(&format!("queues/{}/aqm", queue.class_name(rule)))).collect()
            }
        };
        Self {
            statistics: PortStatistics::new(window, queue.ledgers().len()),
            queue,
            rule_rngs,
            scheduler_rng: stream("scheduler"),
            serializer: Serializer::new(rate),
            idle: true,
            waits_until: Instant::ZERO,
        }
    }

    /// A packet comes.
    #[inline]
    pub fn offer(&mut self, packet: P, now: Instant) -> Answer<P> {
        let rng = match &mut self.rule_rngs[..] {
            [rng] => rng,
            rngs => &mut rngs[self.queue.class_of(packet.header())],
        };
        match self.queue.enqueue(packet, &mut Context { now, rng }) {
            Err((packet, reason)) => Answer::Lost(packet, reason),
            Ok(()) if self.idle => Answer::Idle,
            Ok(()) => Answer::Queued,
        }
    }

    /// The link is free, or a time named by an earlier call has come.
    #[inline]
    pub fn serve(&mut self, now: Instant) -> Served<P> {
        if now < self.serializer.busy_until() {
            return Served::Nothing; // It waited, but a packet that came meanwhile could go.
        }
        match self.queue.dequeue(&mut Context { now, rng: &mut self.scheduler_rng }) {
            Dequeued::Sent(packet) => {
                self.idle = false;
                let Header { arrived, size, color, .. } = *packet.header();
                let class = self.queue.class_of(packet.header());
                self.statistics.serve(class, arrived, now, size, color);
                Served::Sent(packet, self.serializer.transmit(size, now))
            }
            Dequeued::Dropped(packet, reason) => Served::Lost(packet, reason),
            Dequeued::Wait(until) => {
                self.idle = true;
                match until.filter(|&until| until != self.waits_until) {
                    None => Served::Nothing,
                    Some(until) => {
                        self.waits_until = until;
                        Served::Later(until)
                    }
                }
            }
        }
    }

    /// The link has this rate from its next packet on.
    pub fn set_rate(&mut self, rate: Bitrate) {
        let busy_until = self.serializer.busy_until();
        self.serializer = Serializer::new(rate);
        self.serializer.transmit(0, busy_until);
    }

    /// Whether nothing waits and the link is free.
    pub fn is_done(&self, now: Instant) -> bool {
        self.serializer.busy_until() <= now && self.queue.occupancy().is_empty()
    }

    /// Another block tells something to the rule that the packets of this path meet here.
    pub fn on_message(&mut self, label: u32, message: &Message) {
        self.queue.on_message(label, message);
    }

    /// Ends the measured time: what still waits has waited until now.
    pub fn finish(&mut self, now: Instant) {
        let Self { queue, statistics, .. } = self;
        queue.inspect(&mut |held| statistics.wait(held.header().arrived, now));
    }

    /// The books of each class.
    pub fn ledgers(&self) -> &[Ledger] {
        self.queue.ledgers()
    }

    /// A look at it.
    pub fn view(&self) -> PortView<'_> {
        let ledgers = self.queue.ledgers().iter().enumerate();
        PortView {
            classes: ledgers.map(|(class, ledger)| (self.queue.class_name(class), ledger)).collect(),
            statistics: &self.statistics,
            gauges: self.queue.gauges(),
        }
    }
}

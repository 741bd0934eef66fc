//! A port: a queueing discipline, the link that it serves, and what is measured of both. Every driver that
//! handles departures as events runs its links by this type: both engines of the simulator, the data plane.

#![expect(clippy::inline_always, reason = "each driver has one loop around a port")]

use std::slice;

use crate::control::Message;
use crate::measure::{PortStatistics, PortView, RateHistory, TransitCounts};
use crate::prefetch::{PrefetchStage, prefetch, prefetch_start};
use crate::scheduler::{AnyScheduler, Dequeued, Discipline, DisciplineVisitor, Retuning, SchedulerParams};
use crate::units::UnitError;
use crate::{Bitrate, ClassCounters, Environment, Header, Instant, Packet, Reason, Serializer, Streams};

/// The queues of a port that are prefetched, at most: the processor takes only so many requests at a time.
const PREFETCHED: usize = 4;

/// A queueing discipline and the link that it serves.
#[derive(Clone, Debug)]
pub struct Port<P> {
    queue: AnyScheduler<P>,
    line: Line,
}

/// The link of a port, and what is measured of the port.
#[derive(Clone, Debug)]
struct Line {
    statistics: PortStatistics,
    link: Serializer,
    idle: bool,
    /// When the discipline last asked to be served, having packets that may not go before.
    waits_until: Instant,
}

/// A port with the type of its scheduler, for work on many packets: see [`Port::accept`].
#[derive(Debug)]
pub struct TypedPort<'a, D> {
    queue: &'a mut D,
    line: &'a mut Line,
}

/// Work on many packets at one port. It is compiled for each scheduler, so that dispatch happens once a batch
/// and not once a packet.
pub trait PortVisitor<P: Packet> {
    /// The result of the work.
    type Output;

    /// Does the work at this port.
    fn visit<D: Discipline<P>>(self, port: TypedPort<'_, D>) -> Self::Output;
}

/// What became of a packet that arrived at a port. In any case, [`Port::shed`] comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered<P> {
    /// The packet waits behind others.
    Queued,
    /// The packet waits and the link is free: serve the port now.
    Idle,
    /// The packet is dropped.
    Dropped(P, Reason),
}

/// What a port did when it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served<P> {
    /// This packet is on the link, which is free again at this time: serve the port then.
    Sent(P, Instant),
    /// This packet was dropped from the queue; serve again.
    Dropped(P, Reason),
    /// Serve again at this time.
    Later(Instant),
    /// Nothing to do until a packet comes, or until a time named before.
    Nothing,
}

impl<P: Packet> Port<P> {
    /// Returns an empty port; statistics cover `window`.
    pub fn new(
        queue: SchedulerParams,
        rate: Bitrate,
        streams: Streams<'_>,
        window: (Instant, Instant),
    ) -> Self {
        let queue: AnyScheduler<P> = queue.build(Environment { rate }, streams);
        let line = Line {
            statistics: PortStatistics::new(rate, window, queue.classes()),
            link: Serializer::new(rate),
            idle: true,
            waits_until: Instant::ZERO,
        };
        Self { queue, line }
    }

    /// Returns the port as a visitor sees it, for work on few packets: each call finds the type of the
    /// scheduler anew.
    pub fn typed(&mut self) -> TypedPort<'_, AnyScheduler<P>> {
        let Self { queue, line } = self;
        TypedPort { queue, line }
    }

    /// Does the work of a visitor, for which the port has the type of its scheduler.
    pub fn accept<V: PortVisitor<P>>(&mut self, visitor: V) -> V::Output {
        let Self { queue, line } = self;
        queue.accept(OfPort { visitor, line })
    }

    /// Takes a packet that arrives.
    #[inline]
    pub fn offer(&mut self, packet: P, now: Instant) -> Offered<P> {
        self.typed().offer(packet, now)
    }

    /// Returns a packet that waited and that the last one offered pushes out; ask until there is none, before
    /// the port is served.
    #[inline]
    pub fn shed(&mut self, now: Instant) -> Option<(P, Reason)> {
        self.typed().shed(now)
    }

    /// Serves the port: the link is free, or a time named by an earlier call has come.
    #[inline(always)]
    pub fn serve(&mut self, now: Instant) -> Served<P> {
        self.typed().serve(now)
    }

    /// Returns when everything is sent that was served so far.
    #[inline]
    pub fn busy_until(&self) -> Instant {
        self.line.link.busy_until()
    }

    /// Returns whether the link is free although packets wait: the scheduler holds them until a time.
    pub fn is_held(&self) -> bool {
        self.line.idle && !self.queue.occupancy().is_empty()
    }

    /// Returns whether nothing waits and the link is free.
    pub fn is_done(&self, now: Instant) -> bool {
        self.line.link.busy_until() <= now && self.queue.occupancy().is_empty()
    }

    /// Gives the link this rate from its next packet on. [`rates`](Self::rates) says when, for statistics.
    pub fn set_rate(&mut self, rate: Bitrate) {
        self.typed().set_rate(rate);
    }

    /// Returns the rates of the link over time, to which its use refers.
    pub fn rates(&mut self) -> &mut RateHistory {
        &mut self.line.statistics.rates
    }

    /// Gives the scheduler and its AQMs other parameters from now on; they keep their packets and what they
    /// have measured: see [`Scheduler::retune`](crate::scheduler::Scheduler::retune). If the link is free,
    /// the port must be served: what waited for a time may go now, or at another time.
    ///
    /// # Errors
    /// The key that cannot change; nothing has changed then.
    pub fn retune(&mut self, to: &Retuning<'_, SchedulerParams>) -> Result<(), UnitError>
    where
        P: Clone,
    {
        let mut queue = self.queue.clone();
        queue.retune(to)?;
        self.queue = queue;
        Ok(())
    }

    /// Passes on a control message for the AQM at which the packets of this path arrive.
    pub fn on_message(&mut self, label: u32, message: &Message) {
        self.queue.on_message(label, message);
    }

    /// See [`PortStatistics::note_delays`].
    pub fn note_delays(&mut self) {
        self.line.statistics.note_delays();
    }

    /// Asks the processor, as packets come soon, for what is counted of the link, and for the start of the
    /// discipline.
    pub fn prefetch(&self) {
        prefetch(slice::from_ref(&self.line));
        prefetch_start(&self.queue);
    }

    /// Asks the processor for the queues of the discipline, some time after [`prefetch`](Self::prefetch).
    /// Changes nothing.
    pub fn prefetch_stage(&self, stage: PrefetchStage) {
        if stage == PrefetchStage::Queues {
            prefetch(&self.line.statistics.delays);
        }
        let mut left = PREFETCHED;
        self.queue.queues(&mut |queue| {
            if left > 0 {
                queue.prefetch(stage);
                left -= 1;
            }
        });
    }

    /// Ends the measured time: what still waits has waited until now.
    pub fn finish(&mut self, now: Instant) {
        let Self { queue, line } = self;
        queue.inspect(&mut |held| line.statistics.wait(held.header().arrived, now));
    }

    /// Shows every packet that waits.
    pub fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.queue.inspect(show);
    }

    /// Returns the counters of each class.
    pub fn classes(&self) -> impl Iterator<Item = &ClassCounters> {
        (0..self.queue.classes()).map(|class| self.queue.class(class))
    }

    /// Returns a sample of the port.
    pub fn view(&self) -> PortView<'_> {
        let named = |class| (self.queue.class_name(class), self.queue.class(class));
        PortView {
            classes: (0..self.queue.classes()).map(named).collect(),
            meters: Vec::new(),
            statistics: &self.line.statistics,
            gauges: self.queue.gauges(),
            transit: TransitCounts::default(),
        }
    }
}

/// A visitor of the discipline of a port that visits the port.
struct OfPort<'a, V> {
    visitor: V,
    line: &'a mut Line,
}

impl<P: Packet, V: PortVisitor<P>> DisciplineVisitor<P> for OfPort<'_, V> {
    type Output = V::Output;

    fn visit<D: Discipline<P>>(self, queue: &mut D) -> V::Output {
        self.visitor.visit(TypedPort { queue, line: self.line })
    }
}

impl<D> TypedPort<'_, D> {
    /// See [`Port::offer`].
    #[inline(always)]
    pub fn offer<P: Packet>(&mut self, packet: P, now: Instant) -> Offered<P>
    where
        D: Discipline<P>,
    {
        match self.queue.enqueue(packet, now) {
            Err((packet, reason)) => Offered::Dropped(packet, reason),
            Ok(()) if self.line.idle => Offered::Idle,
            Ok(()) => Offered::Queued,
        }
    }

    /// See [`Port::shed`].
    #[inline(always)]
    pub fn shed<P: Packet>(&mut self, now: Instant) -> Option<(P, Reason)>
    where
        D: Discipline<P>,
    {
        let shed = self.queue.shed(now);
        if let Some((packet, _)) = &shed {
            self.line.statistics.wait(packet.header().arrived, now);
        }
        shed
    }

    /// See [`Port::serve`].
    #[inline(always)]
    pub fn serve<P: Packet>(&mut self, now: Instant) -> Served<P>
    where
        D: Discipline<P>,
    {
        if now < self.line.link.busy_until() {
            return Served::Nothing; // It waited for a time, but a packet that came meanwhile could go.
        }
        self.serve_with(now, |link, size| link.transmit(size, now))
    }

    /// Serves the port on a link that the caller keeps and that is free now: `transmit` takes the size of the
    /// packet to send, and returns when the link is free again.
    pub fn serve_on<P: Packet>(&mut self, now: Instant, transmit: impl FnOnce(u16) -> Instant) -> Served<P>
    where
        D: Discipline<P>,
    {
        self.serve_with(now, |_, size| transmit(size))
    }

    /// See [`Port::set_rate`].
    pub fn set_rate(&mut self, rate: Bitrate) {
        let busy_until = self.line.link.busy_until();
        self.line.link = Serializer::new(rate);
        self.line.link.transmit(0, busy_until);
    }

    #[inline(always)]
    fn serve_with<P: Packet>(
        &mut self,
        now: Instant,
        transmit: impl FnOnce(&mut Serializer, u16) -> Instant,
    ) -> Served<P>
    where
        D: Discipline<P>,
    {
        let Line { statistics, link, idle, waits_until } = &mut *self.line;
        match self.queue.dequeue(now) {
            Dequeued::Sent(packet, class) => {
                *idle = false;
                let Header { arrived, size, color, .. } = packet.header();
                statistics.serve(class, arrived, now, size, color);
                Served::Sent(packet, transmit(link, size))
            }
            Dequeued::Dropped(packet, reason) => {
                statistics.wait(packet.header().arrived, now);
                Served::Dropped(packet, reason)
            }
            Dequeued::Wait(until) => {
                *idle = true;
                match until.filter(|&until| until != *waits_until) {
                    None => Served::Nothing,
                    Some(until) => {
                        *waits_until = until;
                        Served::Later(until)
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;
    use crate::testing::streams;

    /// A link that takes a second for each packet, with room for two.
    fn mean_queue_after_a_second(keys: &str, late: u64) -> f64 {
        let params = serde_json::from_str(&format!(r#"{{"scheduler": "fq-codel", {keys}}}"#)).unwrap();
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let window = (Instant::ZERO, at(1000));
        let mut port: Port<Header> = Port::new(params, Bitrate::from_bps(8000).unwrap(), streams(1), window);
        for millis in [0, 0, 0, late] {
            let packet = Header { arrived: at(millis), ..Header::new(FlowId(0), 1000) };
            if let Offered::Idle = port.offer(packet, at(millis)) {
                assert!(matches!(port.serve(at(millis)), Served::Sent(..)));
            }
            while port.shed(at(millis)).is_some() {}
        }
        port.finish(at(1000));
        port.line.statistics.mean_packets()
    }

    #[test]
    fn a_packet_that_is_pushed_out_has_waited_until_then() {
        // One is sent at once. Two wait from the start; at 0.5 s another pushes out the first of them: 1.0 s,
        // 0.5 s and 0.5 s.
        assert_eq!(mean_queue_after_a_second(r#""limit": "2p""#, 500), 2.0);
        assert_eq!(mean_queue_after_a_second(r#""limit": "3p""#, 500), 2.5);
    }

    #[test]
    fn a_packet_that_is_dropped_at_the_head_has_waited_until_then() {
        // CoDel drops the first packet whose sojourn time has been above the target for an interval, while
        // others wait.
        let keys = r#"{"scheduler": "fifo", "rule": {"aqm": "codel", "target": "1ms", "interval": "100ms", "limit": "9p"}}"#;
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let window = (Instant::ZERO, at(3000));
        let params: SchedulerParams = serde_json::from_str(keys).unwrap();
        let mut port: Port<Header> =
            Port::new(params, Bitrate::from_bps(80_000).unwrap(), streams(1), window);
        for _ in 0..8 {
            let _ = port.offer(Header::new(FlowId(0), 1000), at(0));
        }
        let (mut waited, mut dropped, mut now) = (0, 0, at(0));
        loop {
            match port.serve(now) {
                Served::Sent(_, free_at) => {
                    waited += now.as_nanos();
                    now = free_at;
                }
                Served::Dropped(..) => {
                    waited += now.as_nanos();
                    dropped += 1;
                }
                Served::Later(_) | Served::Nothing => break,
            }
        }
        assert!(dropped > 0);
        assert_eq!(port.line.statistics.mean_packets(), waited as f64 / 3e9);
    }
}

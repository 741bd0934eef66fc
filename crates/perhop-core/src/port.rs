//! A port: a queueing discipline, the link that it serves, and what is measured of both. Every driver that handles departures as
//! events runs its links by this type: both engines of the simulator, the data plane.

use crate::control::Message;
use crate::measure::{PortStatistics, PortView, TransitCounts};
use crate::scheduler::{AnyScheduler, Dequeued, Discipline, SchedulerParams};
use crate::{Bitrate, ClassCounters, Environment, Header, Instant, Packet, Reason, Serializer, Streams};

/// A queueing discipline and the link that it serves.
#[derive(Clone, Debug)]
pub struct Port<P> {
    queue: AnyScheduler<P>,
    statistics: PortStatistics,
    link: Serializer,
    idle: bool,
    /// When the discipline last asked to be served, having packets that may not go before.
    waits_until: Instant,
}

/// What became of a packet that arrived at a port. In any case, [`Port::shed`] comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered<P> {
    /// It waits behind others.
    Queued,
    /// It waits and the link is free: serve the port now.
    Idle,
    /// It is dropped.
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
    /// An empty port; statistics cover `window`.
    pub fn new(
        queue: SchedulerParams,
        rate: Bitrate,
        streams: Streams<'_>,
        window: (Instant, Instant),
    ) -> Self {
        let queue: AnyScheduler<P> = queue.build(Environment { rate }, streams);
        Self {
            statistics: PortStatistics::new(window, queue.classes()),
            queue,
            link: Serializer::new(rate),
            idle: true,
            waits_until: Instant::ZERO,
        }
    }

    /// A packet arrives.
    #[inline]
    pub fn offer(&mut self, packet: P, now: Instant) -> Offered<P> {
        match self.queue.enqueue(packet, now) {
            Err((packet, reason)) => Offered::Dropped(packet, reason),
            Ok(()) if self.idle => Offered::Idle,
            Ok(()) => Offered::Queued,
        }
    }

    /// A packet that waited and that the last one offered pushes out; ask until there is none, before the port is served.
    #[inline]
    pub fn shed(&mut self, now: Instant) -> Option<(P, Reason)> {
        let shed = self.queue.shed(now);
        if let Some((packet, _)) = &shed {
            self.statistics.wait(packet.header().arrived, now);
        }
        shed
    }

    /// The link is free, or a time named by an earlier call has come.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each driver has one loop around it")]
    pub fn serve(&mut self, now: Instant) -> Served<P> {
        if now < self.link.busy_until() {
            return Served::Nothing; // It waited for a time, but a packet that came meanwhile could go.
        }
        self.serve_with(now, |link, size| link.transmit(size, now))
    }

    /// The same on a link that somebody else keeps and that is free now: `transmit` takes the size of the packet that it is to send,
    /// and returns when it is free again.
    pub fn serve_on(&mut self, now: Instant, transmit: impl FnOnce(u16) -> Instant) -> Served<P> {
        self.serve_with(now, |_, size| transmit(size))
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each driver has one loop around it")]
    fn serve_with(
        &mut self,
        now: Instant,
        transmit: impl FnOnce(&mut Serializer, u16) -> Instant,
    ) -> Served<P> {
        match self.queue.dequeue(now) {
            Dequeued::Sent(packet, class) => {
                self.idle = false;
                let Header { arrived, size, color, .. } = *packet.header();
                self.statistics.serve(class, arrived, now, size, color);
                Served::Sent(packet, transmit(&mut self.link, size))
            }
            Dequeued::Dropped(packet, reason) => {
                self.statistics.wait(packet.header().arrived, now);
                Served::Dropped(packet, reason)
            }
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

    /// When everything is sent that was served so far.
    #[inline]
    pub fn busy_until(&self) -> Instant {
        self.link.busy_until()
    }

    /// Whether nothing waits and the link is free.
    pub fn is_done(&self, now: Instant) -> bool {
        self.link.busy_until() <= now && self.queue.occupancy().is_empty()
    }

    /// The link has this rate from its next packet on.
    pub fn set_rate(&mut self, rate: Bitrate) {
        let busy_until = self.link.busy_until();
        self.link = Serializer::new(rate);
        self.link.transmit(0, busy_until);
    }

    /// A control message for the AQM at which the packets of this path arrive.
    pub fn on_message(&mut self, label: u32, message: &Message) {
        self.queue.on_message(label, message);
    }

    /// Ends the measured time: what still waits has waited until now.
    pub fn finish(&mut self, now: Instant) {
        let Self { queue, statistics, .. } = self;
        queue.inspect(&mut |held| statistics.wait(held.header().arrived, now));
    }

    /// The counters of each class.
    pub fn classes(&self) -> impl Iterator<Item = &ClassCounters> {
        (0..self.queue.classes()).map(|class| self.queue.class(class))
    }

    /// A sample of it.
    pub fn view(&self) -> PortView<'_> {
        let named = |class| (self.queue.class_name(class), self.queue.class(class));
        PortView {
            classes: (0..self.queue.classes()).map(named).collect(),
            meters: Vec::new(),
            statistics: &self.statistics,
            gauges: self.queue.gauges(),
            transit: TransitCounts::default(),
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
        port.statistics.mean_packets()
    }

    #[test]
    fn a_packet_that_is_pushed_out_has_waited_until_then() {
        // One is sent at once. Two wait from the start; at 0.5 s another pushes out the first of them: 1.0 s, 0.5 s and 0.5 s.
        assert_eq!(mean_queue_after_a_second(r#""limit": "2p""#, 500), 2.0);
        assert_eq!(mean_queue_after_a_second(r#""limit": "3p""#, 500), 2.5);
    }

    #[test]
    fn a_packet_that_is_dropped_at_the_head_has_waited_until_then() {
        // CoDel drops the first packet whose sojourn time has been above the target for an interval, while others wait.
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
        assert_eq!(port.statistics.mean_packets(), waited as f64 / 3e9);
    }
}

//! Token bucket shaper: RFC 2475, section 2.3.3.3; the Linux kernel's `tbf`.
//!
//! It delays the packets of another scheduler until there are tokens for them. The other scheduler chooses
//! the next packet when the link is free and the packet before has left; the packet chosen waits here for its
//! tokens, and none overtakes it. Meanwhile its queue counts it as one that waits, as in `tbf`.
//!
//! ## Deviations
//! - A packet larger than the bucket leaves when the bucket is full, and later ones wait until its tokens are
//!   repaid; `tbf` drops it: `a_packet_larger_than_the_bucket_leaves_when_it_is_full`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bucket::Bucket;
use super::guarantees::{largest, together};
use super::{
    AnyScheduler, ClassKey, Dequeued, Discipline, Guarantee, Load, PathName, Retuning, Scheduler,
    SchedulerParams, Server, Serving, Step, Unbounded, Within, below,
};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::curves::{Concave, Convex, Line, delay, nanobits, scaled_up};
use crate::units::defaults::bytes;
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Duration, Environment, Header, Instant, Occupancy, Origin, Packet,
    Reason, Streams,
};

/// Parameters of [`Shaper`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShaperParams {
    /// The rate at which tokens arrive: the highest rate of the packets that leave, but for `burst`.
    pub rate: Bitrate,
    /// The bucket's depth: how much can leave at once. The bucket starts full.
    pub burst: Bytes,
    /// The largest packet, for which `burst` must suffice.
    #[serde(default = "bytes::<1500>")]
    pub mtu: Bytes,
    /// The queue whose packets are shaped: an AQM or a scheduler, as in a link.
    pub queue: ShapedQueue,
}

/// A queue: an AQM by name, over packets in order of arrival, or a scheduler by name.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapedQueue(pub Box<SchedulerParams>);

impl ShapedQueue {
    /// The paths in the table under the key `queue`, each with its key.
    pub(super) fn paths(&mut self) -> impl Iterator<Item = (String, &mut PathName)> {
        self.0.paths().into_iter().map(|(key, path)| (below("queue", &key), path))
    }

    /// The AQMs in the table under the key `queue` that get this path's messages, or all, each with its key.
    pub(super) fn aqms(&self, path: Option<&str>) -> impl Iterator<Item = (String, &AqmParams)> {
        self.0.aqms(path).into_iter().map(|(key, aqm)| (below("queue", &key), aqm))
    }

    /// The classes of the table under the key `queue`.
    pub(super) fn class_keys(&self) -> impl Iterator<Item = ClassKey> {
        let classes = self.0.class_keys().into_iter();
        classes.map(|class| ClassKey { key: class.key.map(|key| below("queue", &key)), ..class })
    }
}

impl<'de> Deserialize<'de> for ShapedQueue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SchedulerParams::deserialize_queue(deserializer).map(|(params, _)| Self(Box::new(params)))
    }
}

impl Serialize for ShapedQueue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_as_queue(serializer)
    }
}

impl JsonSchema for ShapedQueue {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SchedulerParams::queue_schema(generator)
    }
}

impl ShaperParams {
    /// Returns the longest wait in order of arrival: a packet waits for the link, or for tokens. Where it
    /// waits for tokens, more than the bucket has been sent since the link became busy, when the bucket was
    /// full or the link has been faster than tokens come.
    fn longest(&self, link: &Server, shaped: &Server, load: &Load) -> Option<Duration> {
        let before = load.arrivals.as_ref()?.less(nanobits(load.smallest));
        let by_link = delay(&before, &link.waits)?;
        let paid = shaped.before_start(load.smallest);
        let by_tokens = delay(&before.less(nanobits(self.burst)), &shaped.waits.less(paid))?;
        (self.burst >= load.largest).then_some(by_link.max(by_tokens))
    }
}

/// What rounding to nanoseconds may cost: of the time for tokens, and of the link's.
const ROUNDING: i128 = 4;

/// A scheduler whose packets wait for tokens.
#[derive(Clone, Debug)]
pub struct Shaper<P> {
    inner: Box<AnyScheduler<P>>,
    bucket: Bucket,
    /// The packet that waits for its tokens, and its class.
    held: Option<(P, usize)>,
    counters: Box<HeldCounters>,
}

/// While a packet is held: the other scheduler has counted it as sent, here it still waits.
#[derive(Clone, Debug, Default)]
struct HeldCounters {
    /// What waits.
    occupancy: Occupancy,
    /// The counters of the packet's class.
    class: ClassCounters,
}

impl<P: Packet> Block for Shaper<P> {
    type Params = ShaperParams;
    const NAME: &'static str = "shaper";
    const SUMMARY: &'static str = "a token bucket that delays the packets of another scheduler to its rate";
    const ORIGIN: Origin =
        Origin::published(1998, "RFC 2475, section 2.3.3.3; Linux, sch_tbf").in_linux("tbf", "2.2");
    const BATCHED: bool = true;

    fn check(params: &ShaperParams) -> Result<(), UnitError> {
        let ShaperParams { burst, mtu, queue, .. } = params;
        let text = format!("must be at least `mtu`, which is {mtu}, not {burst}");
        require(burst >= mtu, "burst", text)?;
        let text = "a shaper around a shaper has the lower rate of the two; leave one out";
        let is_shaper = matches!(*queue.0, SchedulerParams::Shaper(_));
        require(!is_shaper, format!("queue.{}", SchedulerParams::TAG), text)
    }
}

impl<P: Packet> Scheduler for Shaper<P> {
    fn new(params: ShaperParams, environment: Environment, streams: Streams<'_>) -> Self {
        let rate = params.rate.min(environment.rate);
        Self {
            inner: Box::new(params.queue.0.build(Environment { rate }, streams)),
            bucket: Bucket::new(params.rate, params.burst),
            held: None,
            counters: Box::default(),
        }
    }

    fn fits(params: &ShaperParams, rate: Bitrate) -> Result<(), UnitError> {
        let text = format!(
            "the link's rate is {rate}, so the shaper has no effect; lower it or leave the shaper out"
        );
        require(params.rate < rate, "rate", text)?;
        params.queue.0.fits(params.rate).map_err(|problem| problem.below("queue"))
    }

    fn retune(&mut self, to: &Retuning<'_, ShaperParams>) -> Result<(), UnitError> {
        let ShaperParams { rate, burst, queue, .. } = to.after;
        self.bucket.retune(*rate, *burst, to.now);
        let inner = to.of(&*to.before.queue.0, &*queue.0, to.rate.min(*rate));
        self.inner.retune(&inner).map_err(|problem| problem.below("queue"))?;
        self.recount();
        Ok(())
    }

    fn paths(params: &mut ShaperParams) -> Vec<(String, &mut PathName)> {
        params.queue.paths().collect()
    }

    fn aqms<'a>(params: &'a ShaperParams, path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        params.queue.aqms(path).collect()
    }

    fn class_keys(params: &ShaperParams) -> Vec<ClassKey> {
        params.queue.class_keys().collect()
    }

    fn within(params: &ShaperParams, rate: Bitrate) -> Vec<Within<'_>> {
        let least = Some(rate.min(params.rate));
        vec![Within { key: "queue".into(), scheduler: &params.queue.0, rate: least, cap: Some(params.rate) }]
    }

    /// A token bucket shaper is a server of its rate: while packets wait, its tokens are spent as they come.
    /// Arrivals that keep to the bucket never wait for tokens (Le Boudec & Thiran, section 1.5).
    fn guarantees(
        params: &ShaperParams,
        server: &Server,
        loads: &[Load],
    ) -> Vec<Result<Guarantee, Unbounded>> {
        if !server.is_link {
            let reason = "no bound is known for a shaper within another scheduler, or on a link that changes"
                .to_owned();
            return vec![Err(reason); loads.len()];
        }
        let bucket = Concave::token_bucket(params.rate, params.burst);
        let all = together(loads).and_then(|all| all.through(&server.strict));
        if all.is_some_and(|all| all.conforms_to(&bucket)) {
            return params.queue.0.guarantees(server, loads);
        }
        let largest = largest(loads);
        let debt = nanobits(largest) - nanobits(params.burst);
        let rate = i128::from(params.rate.as_bps());
        let line = |cost: i128| Convex::of([Line { rate, amount: cost + rate * ROUNDING }]);
        let shaped = Server {
            strict: line(nanobits(largest) + debt.max(0)),
            waits: line(2 * debt.max(0)),
            prepaid: scaled_up(nanobits(largest), rate, server.rate.as_bps().into()),
            is_link: false,
            ..server.clone()
        };
        let step = Step::new(
            "the shaper serves at its rate, and a packet waits for its own tokens",
            format!("β(t) = {}", Serving(&shaped.waits)),
            "Le Boudec & Thiran 2001, section 1.5",
        );
        let behind = |guarantee: Guarantee| Guarantee {
            steps: std::iter::once(step.clone()).chain(guarantee.steps).collect(),
            ..guarantee
        };
        let inner = params.queue.0.guarantees(&shaped, loads).into_iter();
        let mut guarantees: Vec<_> = inner.map(|guarantee| guarantee.map(behind)).collect();
        if let ([Ok(guarantee)], [load]) = (&mut guarantees[..], loads)
            && params.queue.0.only_aqm().is_some()
        {
            guarantee.longest = params.longest(server, &shaped, load);
        }
        guarantees
    }

    fn least_rates(params: &ShaperParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        params.queue.0.least_rates(rate.min(params.rate))
    }

    fn aqms_mut(params: &mut ShaperParams) -> Vec<&mut AqmParams> {
        params.queue.0.aqms_mut()
    }

    fn notices(params: &ShaperParams, _: (Bitrate, Bitrate), largest: Bytes) -> Vec<(String, String)> {
        let ShaperParams { burst, mtu, .. } = *params;
        if burst < largest {
            let text = format!(
                "`{burst}`: packets here have up to {largest}, more than the bucket: they leave when it is full, and later ones \
                 wait until their tokens are repaid; write {largest} or more"
            );
            return vec![("burst".into(), text)];
        }
        let text = format!(
            "`{mtu}`: packets here have up to {largest}, which `burst` must suffice for; write {largest}"
        );
        if mtu < largest { vec![("mtu".into(), text)] } else { Vec::new() }
    }
}

impl<P: Packet> Shaper<P> {
    /// Counts the held packet as one that waits in its queue, as `tbf` does, or no longer.
    fn count_held(&mut self, waits: bool) {
        if let Some((packet, class)) = &self.held {
            self.inner.count_held(*class, &packet.header(), waits);
        }
    }

    /// Brings the counters with the held packet up to those of the other scheduler.
    fn recount(&mut self) {
        let Self { inner, held, counters, .. } = self;
        let Some((packet, class)) = held else { return };
        let Header { color, size, .. } = packet.header();
        counters.occupancy.clone_from(inner.occupancy());
        counters.occupancy.add(color, size);
        let ClassCounters { occupancy, through } = inner.class(*class);
        counters.class.occupancy.clone_from(occupancy);
        counters.class.through.clone_from(through);
        counters.class.through.sent[color.index()] -= 1;
        counters.class.occupancy.add(color, size);
    }
}

impl<P: Packet> Discipline<P> for Shaper<P> {
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        self.count_held(true);
        let taken = self.inner.enqueue(packet, now);
        self.count_held(false);
        self.recount();
        taken
    }

    fn shed(&mut self, now: Instant) -> Option<(P, Reason)> {
        self.count_held(true);
        let shed = self.inner.shed(now);
        self.count_held(false);
        self.recount();
        shed
    }

    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        let (packet, class) = match self.held.take() {
            Some(held) => held,
            None => match self.inner.dequeue(now) {
                Dequeued::Sent(packet, class) => (packet, class),
                other => return other,
            },
        };
        match self.bucket.check(&packet.header(), now) {
            Ok(()) => {
                self.bucket.charge(&packet.header());
                Dequeued::Sent(packet, class)
            }
            Err(until) => {
                self.held = Some((packet, class));
                self.recount();
                Dequeued::Wait(Some(until))
            }
        }
    }

    fn count_held(&mut self, class: usize, packet: &Header, waits: bool) {
        self.inner.count_held(class, packet, waits);
    }

    fn settle(&mut self, now: Instant) {
        if self.held.is_none() {
            self.inner.settle(now);
        }
    }

    fn occupancy(&self) -> &Occupancy {
        if self.held.is_some() { &self.counters.occupancy } else { self.inner.occupancy() }
    }

    fn classes(&self) -> usize {
        self.inner.classes()
    }

    fn class(&self, class: usize) -> &ClassCounters {
        match &self.held {
            Some((_, held)) if *held == class => &self.counters.class,
            _ => self.inner.class(class),
        }
    }

    fn class_name(&self, class: usize) -> &str {
        self.inner.class_name(class)
    }

    fn class_of(&self, packet: &Header) -> usize {
        self.inner.class_of(packet)
    }

    fn order_of(&self, packet: &Header) -> u64 {
        self.inner.order_of(packet)
    }

    fn gauges(&self) -> Vec<(String, f64)> {
        self.inner.gauges()
    }

    fn on_message(&mut self, label: u32, message: &Message) {
        self.inner.on_message(label, message);
    }

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.held.iter().for_each(|held| show(&held.0));
        self.inner.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{environment, streams};
    use crate::{FlowId, Offered, Port, Served};

    fn params(keys: &str) -> ShaperParams {
        let params = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
        Shaper::<Header>::check(&params).unwrap();
        params
    }

    const EIGHT: &str = r#""rate": "8Mbps", "burst": "3kB""#;
    const TAIL: &str = r#""queue": {"aqm": "drop-tail", "limit": "99p"}"#;

    /// When packets that come at these times, in microseconds, leave for a link that takes no time.
    fn departures(params: ShaperParams, arrivals: &[(u64, u16)]) -> Vec<(u32, u64)> {
        let window = (Instant::ZERO, Instant::NEVER);
        let params = SchedulerParams::Shaper(params);
        let mut port: Port<Header> = Port::new(params, Bitrate::MAX, streams(1), window);
        let (mut sent, mut serve_at) = (Vec::new(), Vec::new());
        let mut serve = |port: &mut Port<Header>, now: Instant, serve_at: &mut Vec<Instant>| loop {
            match port.serve(now) {
                Served::Sent(packet, free_at) => {
                    sent.push((packet.flow.0, now.as_nanos() / 1000));
                    serve_at.push(free_at);
                    return;
                }
                Served::Later(at) => return serve_at.push(at),
                Served::Dropped(..) => {}
                Served::Nothing => return,
            }
        };
        for (number, &(micros, size)) in (0..).zip(arrivals) {
            let now = Instant::from_nanos(micros * 1000);
            while let Some(at) = serve_at.iter().copied().filter(|&at| at < now).min() {
                serve_at.retain(|&other| other != at);
                serve(&mut port, at, &mut serve_at);
            }
            if let Offered::Idle = port.offer(Header::new(FlowId(number), size), now) {
                serve(&mut port, now, &mut serve_at);
            }
        }
        while let Some(at) = serve_at.iter().copied().min() {
            serve_at.retain(|&other| other != at);
            serve(&mut port, at, &mut serve_at);
        }
        sent
    }

    #[test]
    fn packets_leave_when_their_tokens_are_there() {
        let arrivals = [[(0, 1500); 5].as_slice(), &[(10_000, 1500); 3]].concat();
        let expected = [0, 0, 1500, 3000, 4500, 10_000, 10_000, 11_500];
        for queue in [
            TAIL,
            r#""queue": {"scheduler": "drr", "queues": [{"name": "all", "rule": {"aqm": "drop-tail", "limit": "99p"}}]}"#,
        ] {
            let departed = departures(params(&format!("{EIGHT}, {queue}")), &arrivals);
            assert_eq!(departed, (0..).zip(expected).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_packet_larger_than_the_bucket_leaves_when_it_is_full() {
        // Of 3000 bytes the first takes 1500. The second, of 4500 bytes, waits for the other 1500, and leaves
        // the bucket at -1500: the third has its 500 bytes 2 ms later.
        let departed = departures(params(&format!("{EIGHT}, {TAIL}")), &[(0, 1500), (0, 4500), (0, 500)]);
        assert_eq!(departed, [(0, 0), (1, 1500), (2, 3500)]);
    }

    #[test]
    fn a_packet_that_waits_for_tokens_is_counted_as_waiting() {
        let mut shaper: Shaper<Header> =
            Shaper::new(params(&format!("{EIGHT}, {TAIL}")), environment(), streams(1));
        let now = Instant::ZERO;
        for number in 0..4 {
            shaper.enqueue(Header::new(FlowId(number), 1500), now).unwrap();
        }
        for _ in 0..2 {
            assert!(matches!(shaper.dequeue(now), Dequeued::Sent(_, 0)));
        }
        assert_eq!(shaper.dequeue(now), Dequeued::Wait(Some(Instant::from_nanos(1_500_000))));
        for waiting in [2, 3] {
            assert_eq!(
                (shaper.occupancy().packets(), shaper.class(0).occupancy.packets()),
                (waiting, waiting)
            );
            assert_eq!(shaper.class(0).through.sent, [0, 2, 0]);
            shaper.class(0).balance().unwrap();
            let mut shown = Vec::new();
            shaper.inspect(&mut |packet| shown.push(packet.flow.0));
            assert_eq!(shown, (2..2 + waiting as u32).collect::<Vec<_>>());
            shaper.enqueue(Header::new(FlowId(4), 1500), now).unwrap();
        }
    }

    #[test]
    fn a_packet_that_waits_for_tokens_counts_in_the_limit_of_its_queue() {
        for queue in [
            r#""queue": {"aqm": "drop-tail", "limit": "3p"}"#,
            r#""queue": {"aqm": "drop-tail", "limit": "4.5kB"}"#,
            r#""queue": {"scheduler": "fq-codel", "limit": "3p"}"#,
            r#""queue": {"scheduler": "llq", "priority": [{"name": "voice", "match": {"dscp": 46}, "rate": "2Mbps", "rule": {"aqm": "drop-tail", "limit": "3p"}}], "queue": {"aqm": "drop-tail", "limit": "3p"}}"#,
            r#""queue": {"scheduler": "drr", "queues": [{"name": "all", "rule": {"aqm": "drop-tail", "limit": "3p"}}]}"#,
        ] {
            let params = params(&format!("{EIGHT}, {queue}"));
            let mut shaper: Shaper<Header> = Shaper::new(params, environment(), streams(1));
            let now = Instant::ZERO;
            let mut dropped = 0;
            for number in 0..9 {
                let lost = shaper.enqueue(Header::new(FlowId(number), 1500), now).is_err();
                dropped += u32::from(lost || shaper.shed(now).is_some());
                while let Dequeued::Sent(..) = shaper.dequeue(now) {}
            }
            // Two leave at once. Of three that wait, one is held.
            assert_eq!((shaper.occupancy().packets(), dropped), (3, 4), "{queue}");
        }
    }

    #[test]
    fn a_bucket_below_a_packet_and_a_shaper_in_a_shaper_are_refused() {
        let refused = |keys: &str| {
            let params = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
            Shaper::<Header>::check(&params).unwrap_err().to_string()
        };
        let small = refused(&format!(r#""rate": "8Mbps", "burst": "1499B", {TAIL}"#));
        assert!(small.contains("must be at least `mtu`, which is 1.5kB, not 1.499kB"), "{small}");
        params(&format!(r#""rate": "8Mbps", "burst": "1499B", "mtu": "1kB", {TAIL}"#));
        let twice = refused(&format!(r#"{EIGHT}, "queue": {{"scheduler": "shaper", {EIGHT}, {TAIL}}}"#));
        assert!(twice.contains("leave one out"), "{twice}");
    }

    #[test]
    fn a_shaper_as_fast_as_its_link_is_refused() {
        let fits = |rate: &str| {
            SchedulerParams::Shaper(params(&format!("{EIGHT}, {TAIL}"))).fits(rate.parse().unwrap())
        };
        assert!(fits("8.1Mbps").is_ok());
        assert!(fits("8Mbps").unwrap_err().to_string().contains("the shaper has no effect"));
    }
}

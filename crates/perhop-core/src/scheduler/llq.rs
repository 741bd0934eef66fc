//! Low-latency queueing: strict priority with a policer, in front of any other queue; Cisco's "Low Latency
//! Queueing" (IOS 12.0(7)T).
//!
//! Packets of the priority queues go before all others, in the order of these queues. A priority queue with a
//! `rate` is policed to it, so that it cannot starve the others: its packets beyond the rate are dropped when
//! they come, always or only in congestion. All other packets go to `queue`: `wfq` for classes with a
//! guaranteed bandwidth and shares of what remains, `htb` for classes with ceilings, or a queue for all of
//! them. `shaper` around all of it is the parent policy of a hierarchy.
//!
//! ## Deviations
//! - Congestion is a packet that waits here, in any queue, when the packet comes. On the device it begins
//!   when the ring of the interface is full. As there, packets are measured in congestion only, so those
//!   before take no tokens (`in_congestion_only_what_comes_then_is_measured`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::guarantees::{largest, rest_of};
use super::queues::{QueueKey, Queues, aqms_at, check_places, classes_at, paths_at, queue_params};
use super::{
    AnyScheduler, ClassKey, Dequeued, Discipline, Guarantee, Load, Match, PathName, Retuning, Room,
    Scheduler, Server, Serving, ShapedQueue, Step, Unbounded, Within,
};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::curves::{Concave, nanobits};
use crate::units::{UnitError, fixed, require};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Environment, Header, Instant, ManagedQueue, Occupancy, Origin,
    Packet, Reason, Streams,
};

/// When a priority queue is policed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policing {
    /// If packets wait when one comes (`priority RATE` of Cisco's class).
    InCongestion,
    /// Whenever one comes (`priority` with `police RATE`).
    Always,
}

queue_params! {
    /// A priority queue of LLQ: its packets go before all later ones, up to the rate that polices it.
    LlqQueue {
        /// The rate to which it is policed. Default: it is not, and can starve all others.
        rate: Option<Bitrate>,
        /// How much can come at once within the rate. Default: what comes in 200 ms at the rate.
        burst: Option<Bytes>,
        /// When it is policed, if it has a rate. Default: `in-congestion`.
        police: Option<Policing>,
    }
}

/// Parameters of [`Llq`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LlqParams {
    /// The priority queues, highest priority first, each with a `match`.
    pub priority: Vec<LlqQueue>,
    /// The queue of all other packets: an AQM or a scheduler, as in a link. It shares the link's rate less
    /// those of the priority queues.
    pub queue: ShapedQueue,
}

/// Priority queues with policers, in front of another discipline.
#[derive(Clone, Debug)]
pub struct Llq<P> {
    priority: Queues<P>,
    policers: Vec<Option<Policer>>,
    others: Box<AnyScheduler<P>>,
    total: Occupancy,
    /// The last packet taken was not from a priority queue.
    served_others: bool,
}

#[derive(Clone, Debug)]
struct Policer {
    bucket: Bucket,
    when: Policing,
}

impl<P: Packet> Block for Llq<P> {
    type Params = LlqParams;
    const NAME: &'static str = "llq";
    const SUMMARY: &'static str = "strict priority with a policer, in front of any other queue";
    const ORIGIN: Origin = Origin::published(1999, "Low Latency Queueing, Cisco IOS 12.0(7)T");
    const BATCHED: bool = true;

    fn check(params: &LlqParams) -> Result<(), UnitError> {
        let Some(first) = params.priority.first() else {
            let text = "no priority queue; add one, or leave the scheduler out";
            return Err(UnitError::at("priority", text));
        };
        for (n, queue) in params.priority.iter().enumerate() {
            let text =
                "has no effect without `rate`, to which the queue is policed; write it, or leave this out";
            let has_rate = queue.rate.is_some();
            require(has_rate || queue.burst.is_none(), format!("priority[{n}].burst"), text)?;
            require(has_rate || queue.police.is_none(), format!("priority[{n}].police"), text)?;
        }
        let mut places: Vec<QueueKey<'_>> = params.places().collect();
        let others = params.queue.0.class_keys();
        for ClassKey { name, .. } in &others {
            let text = format!("`{name}` is a priority queue, too; give each queue its own name");
            require(places.iter().all(|place| place.name != name), "queue", text)?;
        }
        // What takes all others is not among them.
        let others = format!("{} others", first.name);
        places.push(QueueKey { key: "queue".into(), name: &others, selector: None });
        check_places(&places)
    }
}

impl LlqParams {
    fn places(&self) -> impl Iterator<Item = QueueKey<'_>> {
        self.priority.iter().enumerate().map(|(n, queue)| QueueKey {
            key: format!("priority[{n}]"),
            name: &queue.name,
            selector: queue.r#match.as_ref(),
        })
    }

    /// Returns the rate that is left to `queue` at least: none if a priority queue has no `rate`.
    fn least_left(&self, link: Bitrate) -> Option<Bitrate> {
        self.left(link).ok().filter(|_| self.priority.iter().all(|queue| queue.rate.is_some()))
    }

    /// Returns what the priority queues leave of a link's rate.
    fn left(&self, link: Bitrate) -> Result<Bitrate, UnitError> {
        let sum: u128 =
            self.priority.iter().filter_map(|queue| queue.rate).map(|rate| u128::from(rate.as_bps())).sum();
        let left = u128::from(link.as_bps()).saturating_sub(sum);
        let left = Bitrate::from_bps(u64::try_from(left).unwrap_or(u64::MAX));
        left.map_err(|_| {
            let text = format!(
                "the rates of the priority queues leave nothing of the {link} for `queue`; lower them"
            );
            UnitError::at("priority", text)
        })
    }
}

impl<P: Packet> Scheduler for Llq<P> {
    fn new(params: LlqParams, environment: Environment, streams: Streams<'_>) -> Self {
        let rates = params.priority.iter().map(|queue| queue.rate.unwrap_or(environment.rate));
        let path = format!("{}/priority", streams.path);
        let left = params.left(environment.rate).unwrap_or(environment.rate);
        Self {
            priority: Queues::new(&params.priority, rates, Streams { path: &path, ..streams }),
            policers: params.priority.iter().map(Policer::of).collect(),
            others: Box::new(params.queue.0.build(Environment { rate: left }, streams)),
            total: Occupancy::EMPTY,
            served_others: false,
        }
    }

    fn fits(params: &LlqParams, rate: Bitrate) -> Result<(), UnitError> {
        params.queue.0.fits(params.left(rate)?).map_err(|problem| {
            let text = problem.text().replace("the link has", "priority queues leave");
            UnitError::at(problem.key(), text).below("queue")
        })
    }

    fn retune(&mut self, to: &Retuning<'_, LlqParams>) -> Result<(), UnitError> {
        let LlqParams { priority, queue } = to.after;
        let rates = priority.iter().map(|queue| queue.rate.unwrap_or(to.rate));
        self.priority.retune("priority", (&to.before.priority, priority), rates)?;
        for (n, (policer, params)) in self.policers.iter_mut().zip(priority).enumerate() {
            match (policer, params.rate) {
                (None, None) => {}
                (Some(policer), Some(rate)) => {
                    policer.bucket.retune(rate, params.burst(rate), to.now);
                    policer.when = params.when();
                }
                _ => return Err(fixed(&format!("priority[{n}].rate"))),
            }
        }
        let left = to.after.left(to.rate).unwrap_or(to.rate);
        let others = to.of(&*to.before.queue.0, &*queue.0, left);
        self.others.retune(&others).map_err(|problem| problem.below("queue"))
    }

    fn paths(params: &mut LlqParams) -> Vec<(String, &mut PathName)> {
        paths_at("priority", &mut params.priority).into_iter().chain(params.queue.paths()).collect()
    }

    fn aqms<'a>(params: &'a LlqParams, path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        let (mut found, all_taken) = aqms_at("priority", &params.priority, path);
        if !all_taken {
            found.extend(params.queue.aqms(path));
        }
        found
    }

    /// Strict priority whose queues are policed. What a policer lets in that acts in congestion only has a
    /// bound only while packets wait, and one packet more may have come before: from that nothing follows for
    /// times in which a packet is sent and none waits.
    fn guarantees(params: &LlqParams, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
        let (policed, others) = loads.split_at(params.priority.len());
        let mut first = Ok(First { sends: Concave::zero(), always: true });
        let mut guarantees = Vec::with_capacity(loads.len());
        for (class, (queue, load)) in params.priority.iter().zip(policed).enumerate() {
            let comes = queue.comes(load);
            let guarantee = first.clone().and_then(|first: First| {
                let always = first.always && comes.as_ref().is_none_or(|comes| comes.always);
                let under_way = largest(if always { &loads[class + 1..] } else { loads });
                let left = server.behind(&first.sends, largest(&loads[class..]), under_way).ok_or(ALL_TAKEN)?;
                let mut guarantee = left.guarantee(load);
                guarantee.strict = guarantee.strict.filter(|_| always);
                guarantee.queue = class;
                guarantee.room = queue.room(load, server.rate);
                guarantee.admitted = comes.as_ref().map(|comes| comes.sends.clone());
                guarantee.steps.push(Step::new(
                    "low-latency queueing: earlier queues first, and a packet of a later one may be under way",
                    format!("β(t) = {}", rest_of(&server.waits, &first.sends, under_way)),
                    "Le Boudec & Thiran 2001, section 6.2.1",
                ));
                Ok(guarantee)
            });
            guarantees.push(guarantee);
            let reason =
                || format!("`{}` goes first, and neither a policer nor its arrivals bound it", queue.name);
            first = first.and_then(|first| {
                let comes = comes.ok_or_else(reason)?;
                Ok(First { sends: first.sends.plus(&comes.sends), always: first.always && comes.always })
            });
        }
        let queues = params.priority.len();
        let under_way =
            if first.as_ref().is_ok_and(|first| first.always) { Bytes::new(0) } else { largest(loads) };
        let left = first.and_then(|first| {
            let left = server.behind(&first.sends, largest(others), under_way).ok_or(ALL_TAKEN)?;
            // Within, each queue has its own time during which its packets wait.
            Ok((Server { waits: left.strict.clone(), ..left }, first))
        });
        guarantees.extend(match left {
            Err(reason) => vec![Err(reason); others.len()],
            Ok((left, first)) => {
                let step = Step::new(
                    "low-latency queueing: what priority queues leave",
                    format!("β(t) = {}", Serving(&left.strict)),
                    "Le Boudec & Thiran 2001, section 6.2.1",
                );
                let behind = |guarantee: Guarantee| Guarantee {
                    strict: guarantee.strict.filter(|_| first.always),
                    queue: queues + guarantee.queue,
                    steps: std::iter::once(step.clone()).chain(guarantee.steps).collect(),
                    ..guarantee
                };
                let inner = params.queue.0.guarantees(&left, others).into_iter();
                inner.map(|guarantee| guarantee.map(behind)).collect()
            }
        });
        guarantees
    }

    fn least_rates(params: &LlqParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        let first = params.priority.iter().enumerate().map(|(n, _)| (n == 0).then_some(rate));
        let others = params.queue.0.least_rates(params.left(rate).unwrap_or(rate)).into_iter();
        let is_left = params.least_left(rate).is_some();
        first.chain(others.map(|least| least.filter(|_| is_left))).collect()
    }

    fn aqms_mut(params: &mut LlqParams) -> Vec<&mut AqmParams> {
        let others = params.queue.0.aqms_mut();
        params.priority.iter_mut().map(|queue| &mut queue.rule).chain(others).collect()
    }

    fn class_keys(params: &LlqParams) -> Vec<ClassKey> {
        let others = params.queue.class_keys();
        classes_at("priority", &params.priority).into_iter().chain(others).collect()
    }

    fn within(params: &LlqParams, rate: Bitrate) -> Vec<Within<'_>> {
        let least = params.least_left(rate);
        vec![Within { key: "queue".into(), scheduler: &params.queue.0, rate: least, cap: None }]
    }
}

/// What queues send that go first.
#[derive(Clone)]
struct First {
    sends: Concave,
    /// This holds in any time, not only in one during which packets wait.
    always: bool,
}

const ALL_TAKEN: &str = "priority queues take all of the link";

impl LlqQueue {
    /// Returns the arrivals of the queue that are let in.
    fn comes(&self, load: &Load) -> Option<First> {
        let policed = self.rate.map(|rate| Concave::token_bucket(rate, self.burst(rate)));
        match (&load.arrivals, policed, self.when()) {
            (Some(arrivals), Some(policed), Policing::Always) => {
                Some(First { sends: arrivals.min(&policed), always: true })
            }
            (Some(arrivals), ..) => Some(First { sends: arrivals.clone(), always: true }),
            (None, Some(policed), Policing::Always) => Some(First { sends: policed, always: true }),
            (None, Some(policed), Policing::InCongestion) => {
                Some(First { sends: policed.more(nanobits(load.largest)), always: false })
            }
            (None, None, _) => None,
        }
    }

    /// Returns when packets are dropped: by the AQM, or by the policer.
    fn room(&self, load: &Load, rate: Bitrate) -> Room {
        let polices = self.rate.is_some_and(|rate| {
            let within = Concave::token_bucket(rate, self.burst(rate));
            !load.arrivals.as_ref().is_some_and(|arrivals| arrivals.conforms_to(&within))
        });
        let because =
            polices.then(|| format!("the policer of `{}` drops what is beyond its rate", self.name));
        Room { because, ..Room::of(&self.rule, rate) }
    }

    /// How much can come at once within this rate.
    fn burst(&self, rate: Bitrate) -> Bytes {
        self.burst.unwrap_or_else(|| Bytes::new(rate.as_bps() / 8 / 5))
    }

    fn when(&self) -> Policing {
        self.police.unwrap_or(Policing::InCongestion)
    }
}

impl Policer {
    /// Returns the policer of a queue with a rate.
    fn of(params: &LlqQueue) -> Option<Self> {
        let rate = params.rate?;
        Some(Self { bucket: Bucket::new(rate, params.burst(rate)), when: params.when() })
    }

    /// Whether a packet that comes now is dropped.
    #[inline]
    fn drops(&mut self, packet: &Header, congested: bool, now: Instant) -> bool {
        if self.when == Policing::InCongestion && !congested {
            return false;
        }
        let conforms = self.bucket.holds(packet, now);
        if conforms {
            self.bucket.charge(packet);
        }
        !conforms
    }
}

impl<P: Packet> Discipline<P> for Llq<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        let header = packet.header();
        match self.priority.matching(&header) {
            Some(number) => {
                let congested = !self.total.is_empty();
                let policer = self.policers[number].as_mut();
                if policer.is_some_and(|policer| policer.drops(&header, congested, now)) {
                    return Err((
                        self.priority.refuse(number, packet, now, Reason::Policed),
                        Reason::Policed,
                    ));
                }
                self.priority.enqueue_to(number, packet, now)?;
            }
            None => self.others.enqueue(packet, now)?,
        }
        self.total.add(header.color, header.size);
        Ok(())
    }

    fn shed(&mut self, now: Instant) -> Option<(P, Reason)> {
        let (packet, reason) = self.others.shed(now)?;
        let Header { color, size, .. } = packet.header();
        self.total.remove(color, size);
        Some((packet, reason))
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        self.settle(now);
        let first = (0..self.policers.len()).find(|&number| self.priority.waits(number));
        let taken = match first {
            Some(number) => self.priority.take(number, now).dequeued(number),
            None => match self.others.dequeue(now) {
                Dequeued::Sent(packet, class) => Dequeued::Sent(packet, self.policers.len() + class),
                other => other,
            },
        };
        if let Dequeued::Sent(packet, _) | Dequeued::Dropped(packet, _) = &taken {
            let Header { color, size, .. } = packet.header();
            self.total.remove(color, size);
            self.served_others = first.is_none();
        }
        taken
    }

    #[inline]
    fn settle(&mut self, now: Instant) {
        self.priority.settle(now);
        if std::mem::take(&mut self.served_others) {
            self.others.settle(now);
        }
    }

    fn count_held(&mut self, class: usize, packet: &Header, waits: bool) {
        match class.checked_sub(self.policers.len()) {
            None => self.priority.count_held(class, packet, waits),
            Some(other) => self.others.count_held(other, packet, waits),
        }
        self.total.count(waits, packet);
    }

    fn occupancy(&self) -> &Occupancy {
        &self.total
    }

    fn classes(&self) -> usize {
        self.policers.len() + self.others.classes()
    }

    fn class(&self, class: usize) -> &ClassCounters {
        match class.checked_sub(self.policers.len()) {
            None => self.priority.class(class),
            Some(other) => self.others.class(other),
        }
    }

    fn class_name(&self, class: usize) -> &str {
        match class.checked_sub(self.policers.len()) {
            None => self.priority.name(class),
            Some(other) => self.others.class_name(other),
        }
    }

    fn class_of(&self, packet: &Header) -> usize {
        let first = self.priority.matching(packet);
        first.unwrap_or_else(|| self.policers.len() + self.others.class_of(packet))
    }

    fn order_of(&self, packet: &Header) -> u64 {
        self.priority.matching(packet).map_or_else(|| self.others.order_of(packet), |_| 0)
    }

    fn gauges(&self) -> Vec<(String, f64)> {
        self.priority.gauges().into_iter().chain(self.others.gauges()).collect()
    }

    fn on_message(&mut self, label: u32, message: &Message) {
        if !self.priority.on_message(label, message) {
            self.others.on_message(label, message);
        }
    }

    fn queues(&self, show: &mut dyn FnMut(&ManagedQueue<P>)) {
        self.priority.each(show);
        self.others.queues(show);
    }

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.priority.each(&mut |queue| queue.inspect(show));
        self.others.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use super::super::queues::tests::{drain, packet, put, take};
    use super::*;
    use crate::testing::{environment, streams};
    use crate::units::split_key;

    const RULE: &str = r#"{"aqm": "drop-tail", "limit": "999p"}"#;
    const EF: u8 = 46;

    fn read(keys: &str) -> LlqParams {
        serde_json::from_str(&format!("{{{keys}}}")).unwrap()
    }

    /// A voice queue before one for all others, on a link of 8 Mbit/s.
    fn llq(keys: &str) -> Llq<Header> {
        let voice = format!(r#"{{"name": "voice", "match": {{"dscp": {EF}}} {keys}, "rule": {RULE}}}"#);
        let params = read(&format!(r#""priority": [{voice}], "queue": {RULE}"#));
        Llq::<Header>::check(&params).unwrap();
        Llq::new(params, environment(), streams(1))
    }

    /// Offers packets of 1000 bytes at one time, and says which are taken.
    fn offer(queue: &mut Llq<Header>, at: u64, dscp: u8, numbers: std::ops::Range<u32>) -> Vec<u32> {
        let now = Instant::from_nanos(at);
        numbers.filter(|&number| queue.enqueue(packet(dscp, number, 1000), now).is_ok()).collect()
    }

    #[test]
    fn priority_packets_go_first_and_beyond_the_rate_they_are_dropped() {
        // The bucket holds 2000 bytes and starts full: two packets pass; 2 Mbit/s earn another 1000 bytes in
        // 4 ms.
        let mut queue = llq(r#", "rate": "2Mbps", "burst": "2kB", "police": "always""#);
        put(&mut queue, 0, packet(0, 100, 1000));
        assert_eq!(offer(&mut queue, 0, EF, 0..5), [0, 1]);
        assert!(offer(&mut queue, 3_999_999, EF, 5..6).is_empty());
        assert_eq!(offer(&mut queue, 4_000_000, EF, 6..9), [6]);
        assert_eq!(drain(&mut queue, 4_000_000, 9), [0, 1, 6, 100]);
        let counters = queue.class(0);
        counters.balance().unwrap();
        assert_eq!(
            (counters.through.arrived, counters.through.dropped(Reason::Policed)),
            ([0, 9, 0], [0, 6, 0])
        );
    }

    #[test]
    fn in_congestion_only_what_comes_then_is_measured() {
        let mut queue = llq(r#", "rate": "2Mbps", "burst": "2kB""#);
        // Nothing waits when these come, so they pass and take no tokens.
        for number in 0..5 {
            assert_eq!(offer(&mut queue, 0, EF, number..number + 1), [number]);
            assert!(matches!(take(&mut queue, 0), Dequeued::Sent(..)));
        }
        // A packet waits: two of the next four conform.
        put(&mut queue, 0, packet(0, 100, 1000));
        assert_eq!(offer(&mut queue, 0, EF, 5..9), [5, 6]);
        assert_eq!(drain(&mut queue, 0, 9), [5, 6, 100]);
        assert_eq!(
            offer(&mut queue, 0, EF, 9..11),
            [9],
            "the first finds nothing waiting, the second finds the first"
        );
    }

    #[test]
    fn a_burst_of_200_ms_is_the_default() {
        let mut queue = llq(r#", "rate": "800kbps", "police": "always""#);
        assert_eq!(offer(&mut queue, 0, EF, 0..30), (0..20).collect::<Vec<_>>(), "20 kB");
    }

    #[test]
    fn the_others_share_what_the_priority_queues_leave() {
        let classes = format!(
            r#"{{"scheduler": "wfq", "queues": [{{"name": "data", "match": {{"dscp": 10}}, "rate": "3Mbps", "rule": {RULE}}}, {{"name": "default", "rule": {RULE}}}]}}"#
        );
        let voice =
            format!(r#"{{"name": "voice", "match": {{"dscp": {EF}}}, "rate": "2Mbps", "rule": {RULE}}}"#);
        let params = read(&format!(r#""priority": [{voice}], "queue": {classes}"#));
        let params = super::super::SchedulerParams::Llq(params);
        params.fits("8Mbps".parse().unwrap()).unwrap();
        let problem = params.fits("4Mbps".parse().unwrap()).unwrap_err().to_string();
        assert!(
            problem.contains("queue.queues") && problem.contains("but priority queues leave 2Mbps"),
            "{problem}"
        );
        assert!(params.fits("2Mbps".parse().unwrap()).unwrap_err().to_string().contains("leave nothing"));
        let keys: Vec<_> = params.class_keys().into_iter().map(|class| (class.name, class.key)).collect();
        let expected = [
            ("voice", Some("priority[0].match")),
            ("data", Some("queue.queues[0].match")),
            ("default", None),
        ];
        assert_eq!(keys, expected.map(|(name, key)| (name.to_owned(), key.map(str::to_owned))));
        let mut queue: AnyScheduler<Header> = params.build(environment(), streams(1));
        // 6 Mbit/s are left: 3 for each of the two.
        (0..20).for_each(|n| put(&mut queue, 0, packet(10, n, 1000)));
        (0..20).for_each(|n| put(&mut queue, 0, packet(0, 100 + n, 1000)));
        let order = drain(&mut queue, 0, 20);
        assert_eq!(order.iter().filter(|&&number| number < 100).count(), 10);
    }

    #[test]
    fn names_twice_and_keys_without_effect_are_refused() {
        let refused = |keys: &str| {
            let text = Llq::<Header>::check(&read(keys)).unwrap_err().to_string();
            let (key, problem) = split_key(&text);
            format!("{key}: {problem}")
        };
        let voice = |keys: &str| format!(r#"{{"name": "voice" {keys}, "rule": {RULE}}}"#);
        let matched = r#", "match": {"dscp": 46}"#;
        let one = |queue: &str| refused(&format!(r#""priority": [{queue}], "queue": {RULE}"#));
        let starts = |text: String, with: &str| assert!(text.starts_with(with), "{text}");
        starts(refused(&format!(r#""priority": [], "queue": {RULE}"#)), "priority: no priority queue");
        starts(one(&voice("")), "priority[0].match: only the last queue");
        starts(one(&voice(&format!(r#"{matched}, "burst": "1kB""#))), "priority[0].burst: has no effect");
        starts(
            one(&voice(&format!(r#"{matched}, "police": "always""#))),
            "priority[0].police: has no effect",
        );
        let double = format!(r#"{{"scheduler": "drr", "queues": [{}]}}"#, voice(""));
        starts(
            refused(&format!(r#""priority": [{}], "queue": {double}"#, voice(matched))),
            "queue: `voice` is a priority queue",
        );
    }
}

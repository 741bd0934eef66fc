//! Strict priority, non-pre-emptive, each queue optionally with a cap on its rate: the Expedited Forwarding
//! queue of Bouras & Sevasti, section 5.3 ("absolute non-pre-emptive priority and a rate up to 10 Mbps"), as
//! ns-2's DiffServ module has it (`dsREDQueue::selectQueueToDeque`, mode PRI).
//!
//! Whenever the link is free, the first queue goes that has a packet and is within its cap.
//!
//! ## Deviations
//! - The paper does not say how the cap is measured. The default is a token bucket, whose result does not
//!   depend on a window; `meter = "tsw"` is ns-2's estimator of what the queue has sent.
//! - ns-2 lets this estimate fall only when the queue itself sends, so that a queue that was once above its
//!   cap waits until all others are empty. Here it falls as time passes:
//!   `a_queue_above_its_cap_is_not_shut_out`.
//! - A packet that goes above its queue's cap, because no other queue has one, takes no tokens: the excess is
//!   free, and the queue is within its cap again as soon as the bucket says so
//!   (`what_goes_above_the_cap_is_free`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::guarantees::{largest, rest_of};
use super::queues::{Queues, check_queues, classes_are_queues, queue_params, queues_are_listed};
use super::{
    ClassKey, Dequeued, Discipline, Guarantee, Load, Match, PathName, Retuning, Room, Scheduler, Server,
    Step, Unbounded,
};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::curves::Concave;
use crate::meter::RateEstimator;
use crate::units::defaults::{bytes, secs};
use crate::units::{UnitError, fixed, require};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Duration, Environment, Header, Instant, Occupancy, Origin, Packet,
    Reason, Streams,
};

/// How a queue's rate is compared with its cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapMeter {
    /// A token bucket of depth `burst`.
    #[default]
    TokenBucket,
    /// A time sliding window of length `window` over the bytes that the queue sent (ns-2).
    Tsw,
}

/// What happens when every queue with a packet is above its cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Excess {
    /// The first of them sends nevertheless (ns-2).
    #[default]
    Highest,
    /// The link idles until one is within its cap.
    Idle,
}

queue_params! {
    /// One queue of a port served by strict priority.
    PriorityQueue {
        /// The highest rate at which it may send while a later queue has packets. Default: unlimited.
        cap: Option<Bitrate>,
    }
}

/// Parameters of [`Priority`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PriorityParams {
    /// The queues, highest priority first.
    pub queues: Vec<PriorityQueue>,
    /// How a queue's rate is compared with its cap.
    #[serde(default)]
    pub meter: CapMeter,
    /// How much a capped queue may send at once (token bucket): by default two packets of 1500 bytes.
    #[serde(default = "bytes::<3000>")]
    pub burst: Bytes,
    /// The window over which a capped queue's rate is smoothed (time sliding window).
    #[serde(default = "secs::<1>")]
    pub window: Duration,
    /// What happens when every queue with a packet is above its cap.
    #[serde(default)]
    pub excess: Excess,
}

/// Queues in the order in which they are served.
#[derive(Clone, Debug)]
pub struct Priority<P> {
    queues: Queues<P>,
    caps: Vec<Option<Cap>>,
    excess: Excess,
}

#[derive(Clone, Debug)]
enum Cap {
    TokenBucket(Bucket),
    Tsw { cap: f64, sent: RateEstimator },
}

impl<P: Packet> Block for Priority<P> {
    type Params = PriorityParams;
    const NAME: &'static str = "priority";
    const SUMMARY: &'static str = "strict priority: the first queue that has a packet and is within its cap";
    const ORIGIN: Origin =
        Origin::published(2000, "ns-2's DiffServ module, mode PRI; Bouras & Sevasti, section 5.3")
            .in_linux("prio", "2.2");
    const BATCHED: bool = true;

    fn check(params: &PriorityParams) -> Result<(), UnitError> {
        require(!params.window.is_zero(), "window", "a window must be longer than 0s, such as 1s")?;
        check_queues(&params.queues)
    }
}

impl<P: Packet> Scheduler for Priority<P> {
    fn fits(params: &PriorityParams, rate: Bitrate) -> Result<(), UnitError> {
        let text = format!("the link's rate is {rate}, so the cap has no effect; lower it or leave it out");
        params.queues.iter().enumerate().try_for_each(|(n, queue)| {
            require(queue.cap.is_none_or(|cap| cap <= rate), format!("queues[{n}].cap"), &text)
        })
    }

    queues_are_listed!(PriorityParams);

    fn retune(&mut self, to: &Retuning<'_, PriorityParams>) -> Result<(), UnitError> {
        to.keeps("meter", |params| params.meter)?;
        self.queues.retune("queues", (&to.before.queues, &to.after.queues), std::iter::repeat(to.rate))?;
        for (n, (cap, queue)) in self.caps.iter_mut().zip(&to.after.queues).enumerate() {
            match (cap, queue.cap) {
                (None, None) => {}
                (Some(Cap::TokenBucket(bucket)), Some(rate)) => bucket.retune(rate, to.after.burst, to.now),
                (Some(Cap::Tsw { cap, sent }), Some(rate)) => {
                    *cap = rate.as_bps() as f64;
                    sent.set_window(to.after.window);
                }
                _ => return Err(fixed(&format!("queues[{n}].cap"))),
            }
        }
        self.excess = to.after.excess;
        Ok(())
    }

    /// Strict priority without pre-emption (Le Boudec & Thiran, section 6.2.1): earlier queues go first, and
    /// one packet of a later one may be under way. An earlier queue with a cap sends no more than its bucket
    /// lets through while a later one has packets.
    fn guarantees(
        params: &PriorityParams,
        server: &Server,
        loads: &[Load],
    ) -> Vec<Result<Guarantee, Unbounded>> {
        let mut first = Ok(Concave::zero());
        let mut guarantees = Vec::with_capacity(loads.len());
        for (class, queue) in params.queues.iter().enumerate() {
            let guarantee = first.clone().and_then(|first| params.guarantee(class, &first, server, loads));
            guarantees.push(guarantee);
            first = first.and_then(|first| Ok(first.plus(&params.goes_first(queue, &loads[class])?)));
        }
        guarantees
    }

    fn least_rates(params: &PriorityParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        let first = params.queues[0].cap.is_none().then_some(rate);
        let others = params.queues[1..].iter().map(|_| None);
        std::iter::once(first).chain(others).collect()
    }

    fn new(params: PriorityParams, environment: Environment, streams: Streams<'_>) -> Self {
        let rates = std::iter::repeat(environment.rate);
        Self {
            queues: Queues::new(&params.queues, rates, streams),
            caps: params.queues.iter().map(|queue| Some(Cap::new(queue.cap?, &params))).collect(),
            excess: params.excess,
        }
    }
}

impl PriorityParams {
    /// Returns what a queue sends before later ones.
    fn goes_first(&self, queue: &PriorityQueue, load: &Load) -> Result<Concave, Unbounded> {
        let cap = queue.cap.filter(|_| self.meter == CapMeter::TokenBucket);
        let capped = cap.map(|cap| Concave::token_bucket(cap, self.burst.max(load.largest)));
        match (&load.arrivals, capped) {
            (Some(arrivals), Some(capped)) => Ok(arrivals.min(&capped)),
            (Some(arrivals), None) => Ok(arrivals.clone()),
            (None, Some(capped)) => Ok(capped),
            (None, None) => Err(format!("`{}` goes first, and its arrivals have no bound", queue.name)),
        }
    }

    /// Returns the guarantee of a queue beside what earlier ones send.
    fn guarantee(
        &self,
        class: usize,
        first: &Concave,
        server: &Server,
        loads: &[Load],
    ) -> Result<Guarantee, Unbounded> {
        let (queue, load) = (&self.queues[class], &loads[class]);
        let capped = self.queues[..class].iter().zip(loads).filter(|(queue, _)| queue.cap.is_some());
        let under_way = largest(loads[class + 1..].iter().chain(capped.map(|(_, load)| load)));
        let left = server.behind(first, largest(&loads[class..]), under_way);
        let left = left.ok_or("earlier queues take all of the link")?;
        if let Some(cap) = queue.cap {
            let holds = load.arrivals.as_ref().and_then(|arrivals| {
                let sent = arrivals.through(&left.strict)?;
                let within = Concave::token_bucket(cap, self.burst);
                Some(self.meter == CapMeter::TokenBucket && sent.conforms_to(&within))
            });
            if holds != Some(true) {
                return Err(format!(
                    "`{}` may send more than its cap, {cap}, and then waits for others",
                    queue.name
                ));
            }
        }
        let mut guarantee = left.guarantee(load);
        guarantee.queue = class;
        guarantee.room = Room::of(&queue.rule, server.rate);
        guarantee.steps.push(Step::new(
            "strict priority: earlier queues first, and a packet of a later one may be under way",
            format!("β(t) = {}", rest_of(&server.waits, first, under_way)),
            "Le Boudec & Thiran 2001, section 6.2.1",
        ));
        Ok(guarantee)
    }
}

impl<P: Packet> Priority<P> {
    /// The first queue that has a packet and is within its cap; else the first that has one, and the time at
    /// which one of them will be within its cap.
    #[inline]
    fn choose(&mut self, now: Instant) -> Choice {
        let mut above = None;
        let mut soonest = Instant::NEVER;
        for (number, cap) in self.caps.iter_mut().enumerate() {
            let Some(head) = self.queues.head(number) else { continue };
            match cap.as_mut().map_or(Ok(()), |cap| cap.check(&head, now)) {
                Ok(()) => return Choice::Within(number),
                Err(until) => {
                    above.get_or_insert(number);
                    soonest = soonest.min(until);
                }
            }
        }
        above.map_or(Choice::Nothing, |first| Choice::Above(first, soonest))
    }

    /// Takes the head of a queue, which is within the queue's cap or not, and counts it if it is sent.
    #[inline]
    fn take(&mut self, queue: usize, is_within: bool, now: Instant) -> Dequeued<P> {
        let taken = self.queues.take(queue, now);
        if let (Ok(_), Some(cap)) = (taken.judged, &mut self.caps[queue]) {
            cap.charge(&taken.packet.header(), is_within, now);
        }
        taken.dequeued(queue)
    }
}

/// Which queue may send.
enum Choice {
    Within(usize),
    /// All that have packets are above their caps: the first of them, and when one will be within its cap.
    Above(usize, Instant),
    Nothing,
}

impl<P: Packet> Discipline<P> for Priority<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        self.queues.enqueue(packet, now).map(|_| ())
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        self.queues.settle(now);
        match (self.choose(now), self.excess) {
            (Choice::Within(queue), _) => self.take(queue, true, now),
            (Choice::Above(queue, _), Excess::Highest) => self.take(queue, false, now),
            (Choice::Above(_, soonest), Excess::Idle) => Dequeued::Wait(Some(soonest)),
            (Choice::Nothing, _) => Dequeued::Wait(None),
        }
    }

    classes_are_queues!();
}

impl Cap {
    fn new(rate: Bitrate, params: &PriorityParams) -> Self {
        match params.meter {
            CapMeter::TokenBucket => Self::TokenBucket(Bucket::new(rate, params.burst)),
            CapMeter::Tsw => {
                Self::Tsw { cap: rate.as_bps() as f64, sent: RateEstimator::new(params.window, 0.0) }
            }
        }
    }

    /// Whether a packet is within the cap; if not, when it may ask again.
    #[inline]
    fn check(&mut self, packet: &Header, now: Instant) -> Result<(), Instant> {
        match self {
            Self::TokenBucket(bucket) => bucket.check(packet, now),
            Self::Tsw { cap, sent } if sent.at(now) > *cap => {
                Err(sent.falls_to(*cap).max(now + Duration::from_nanos(1)))
            }
            Self::Tsw { .. } => Ok(()),
        }
    }

    /// Counts a packet that is sent: one above the cap takes no tokens, but the window sees it.
    #[inline]
    fn charge(&mut self, packet: &Header, is_within: bool, now: Instant) {
        match self {
            Self::TokenBucket(bucket) if is_within => bucket.charge(packet),
            Self::TokenBucket(_) => {}
            Self::Tsw { sent, .. } => {
                sent.update(packet, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::queues::tests::{drain, packet, put, take};
    use super::*;
    use crate::testing::{environment, streams};

    const RULE: &str = r#"{"aqm": "drop-tail", "limit": "999p"}"#;
    const EF: u8 = 46;

    /// Expedited forwarding above everything else, on a link of 8 Mbit/s: 1000 bytes take a millisecond.
    fn priority(cap: &str, extra: &str) -> Priority<Header> {
        let table = format!(
            r#"{{"queues": [{{"name": "ef", "match": {{"dscp": {EF}}} {cap}, "rule": {RULE}}}, {{"name": "rest", "rule": {RULE}}}] {extra}}}"#
        );
        let params: PriorityParams = serde_json::from_str(&table).unwrap();
        Priority::<Header>::check(&params).unwrap();
        Priority::new(params, environment(), streams(1))
    }

    /// Numbers 0.. in the first queue, 100.. in the second.
    fn fill(queue: &mut Priority<Header>, ef: u32, rest: u32) {
        (0..ef).for_each(|n| put(queue, 0, packet(EF, n, 1000)));
        (0..rest).for_each(|n| put(queue, 0, packet(0, 100 + n, 1000)));
    }

    #[test]
    fn without_caps_the_first_queue_empties_first() {
        let mut queue = priority("", "");
        fill(&mut queue, 3, 3);
        assert_eq!(drain(&mut queue, 0, 2), [0, 1]);
        put(&mut queue, 2_000_000, packet(EF, 3, 1000));
        assert_eq!(drain(&mut queue, 2_000_000, 9), [2, 3, 100, 101, 102]);
        assert_eq!(take(&mut queue, 9_000_000), Dequeued::Wait(None));
    }

    #[test]
    fn a_capped_queue_sends_its_burst_and_then_its_rate_while_others_wait() {
        // 2 Mbit/s earn 1000 bytes in 4 ms, and the bucket holds two packets. It starts full; at 0 and 1 ms
        // two go, which leaves 250 bytes at 1 ms and 1000 at 4 ms, from then on one every 4 ms.
        let mut queue = priority(r#", "cap": "2Mbps""#, r#", "burst": "2kB""#);
        fill(&mut queue, 6, 20);
        let order = drain(&mut queue, 0, 14);
        assert_eq!(order, [0, 1, 100, 101, 2, 102, 103, 104, 3, 105, 106, 107, 4, 108]);
    }

    #[test]
    fn above_its_cap_the_highest_goes_if_nobody_else_has_a_packet() {
        let mut queue = priority(r#", "cap": "2Mbps""#, r#", "burst": "2kB""#);
        fill(&mut queue, 6, 1);
        assert_eq!(drain(&mut queue, 0, 9), [0, 1, 100, 2, 3, 4, 5]);
    }

    #[test]
    fn what_goes_above_the_cap_is_free() {
        // Alone for 8 ms the queue sends four times its cap; then it still has its rate: a packet every 4 ms.
        // At 8 ms it has earned 2000 bytes beside the 2000 it began with, and spent them on four packets.
        let mut queue = priority(r#", "cap": "2Mbps""#, r#", "burst": "2kB""#);
        fill(&mut queue, 20, 0);
        assert_eq!(drain(&mut queue, 0, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        (0..20).for_each(|n| put(&mut queue, 8_000_000, packet(0, 100 + n, 1000)));
        assert_eq!(drain(&mut queue, 8_000_000, 9), [8, 100, 101, 102, 9, 103, 104, 105, 10]);
    }

    #[test]
    fn an_idling_link_waits_for_the_exact_time() {
        let mut queue = priority(r#", "cap": "2Mbps""#, r#", "burst": "2kB", "excess": "idle""#);
        fill(&mut queue, 3, 0);
        assert_eq!(drain(&mut queue, 0, 9), [0, 1]);
        let until = Instant::from_nanos(4_000_000);
        assert_eq!(take(&mut queue, 2_000_000), Dequeued::Wait(Some(until)));
        assert_eq!(take(&mut queue, 3_999_999), Dequeued::Wait(Some(until)));
        assert_eq!(drain(&mut queue, 4_000_000, 9), [2]);
        assert_eq!(take(&mut queue, 5_000_000), Dequeued::Wait(None));
    }

    #[test]
    fn a_wait_ends_at_the_first_nanosecond_with_enough_tokens() {
        // 3 Mbit/s earn 1000 bytes in 2 666 666 2/3 ns, and 1 byte in 2 666 2/3.
        let mut queue = priority(r#", "cap": "3Mbps""#, r#", "burst": "1kB", "excess": "idle""#);
        fill(&mut queue, 2, 0);
        assert_eq!(drain(&mut queue, 0, 1), [0]);
        let until = Dequeued::Wait(Some(Instant::from_nanos(2_666_667)));
        assert_eq!([take(&mut queue, 0), take(&mut queue, 2_666_666)], [until, until]);
        assert_eq!(drain(&mut queue, 2_666_667, 1), [1]);
    }

    #[test]
    fn an_idling_link_waits_for_the_first_queue_that_may_send() {
        let rule = RULE;
        let table = format!(
            r#"{{"excess": "idle", "burst": "1kB", "queues": [
                {{"name": "slow", "match": {{"dscp": 1}}, "cap": "1Mbps", "rule": {rule}}},
                {{"name": "fast", "match": {{"dscp": 2}}, "cap": "4Mbps", "rule": {rule}}},
                {{"name": "rest", "cap": "2Mbps", "rule": {rule}}}]}}"#
        );
        let mut queue: Priority<Header> =
            Priority::new(serde_json::from_str(&table).unwrap(), environment(), streams(1));
        for (dscp, number) in [(1, 0), (1, 1), (2, 10), (2, 11), (0, 20), (0, 21)] {
            put(&mut queue, 0, packet(dscp, number, 1000));
        }
        // Each has tokens for one packet; after that 1000 bytes take 8, 2 and 4 ms.
        assert_eq!(drain(&mut queue, 0, 4), [0, 10, 20, 11]);
        assert_eq!(take(&mut queue, 4_000_000), Dequeued::Wait(Some(Instant::from_nanos(6_000_000))));
        assert_eq!(drain(&mut queue, 6_000_000, 1), [21]);
        assert_eq!(take(&mut queue, 7_000_000), Dequeued::Wait(Some(Instant::from_nanos(8_000_000))));
    }

    #[test]
    fn a_packet_larger_than_the_bucket_goes_when_it_is_full_and_leaves_a_debt() {
        let mut queue = priority(r#", "cap": "2Mbps""#, r#", "burst": "500B", "excess": "idle""#);
        fill(&mut queue, 2, 0);
        assert_eq!(drain(&mut queue, 0, 9), [0]);
        // 500 bytes of debt and 500 to fill it: 4 ms.
        assert_eq!(take(&mut queue, 1_000_000), Dequeued::Wait(Some(Instant::from_nanos(4_000_000))));
        assert_eq!(drain(&mut queue, 4_000_000, 9), [1]);
    }

    #[test]
    fn the_window_of_ns_2_lets_a_queue_above_its_cap_wait() {
        // A window of 1 ms and a cap of 4 Mbit/s. The first packet makes 8000 bit / 1 ms = 8 Mbit/s, which
        // has fallen to 4 at 1 ms, within the cap; the second then makes (4 x 1 + 8) / (1 + 1) = 8 again, at
        // 2 ms.
        let mut queue =
            priority(r#", "cap": "4Mbps""#, r#", "meter": "tsw", "window": "1ms", "excess": "idle""#);
        fill(&mut queue, 2, 0);
        assert_eq!(drain(&mut queue, 0, 1), [0]);
        assert_eq!(take(&mut queue, 500_000), Dequeued::Wait(Some(Instant::from_nanos(1_000_000))));
        assert_eq!(drain(&mut queue, 1_000_000, 1), [1]);
    }

    #[test]
    fn a_queue_above_its_cap_is_not_shut_out() {
        let mut queue = priority(r#", "cap": "1Mbps""#, r#", "meter": "tsw", "window": "10ms""#);
        fill(&mut queue, 100, 800);
        let order = drain(&mut queue, 0, 800);
        let ef = order.iter().filter(|&&number| number < 100).count();
        // 800 ms at 1 Mbit/s are 100 packets; the estimate lags behind by up to its window.
        assert!((80..=100).contains(&ef), "{ef}");
    }
}

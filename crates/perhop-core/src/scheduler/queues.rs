//! Common parts of schedulers over several queues: classification, guaranteed rates, the queues themselves.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::protection::QueueProtection;
use super::{ClassKey, Load, QueueProtectionParams, Unbounded, retune_aqm};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::matching::Matcher;
pub use crate::matching::{Match, PathName};
use crate::table::bad_name;
use crate::units::{UnitError, fixed, require};
use crate::{
    Bitrate, ClassCounters, Environment, Header, Instant, ManagedQueue, Occupancy, Packet, Reason, Streams,
    Taken,
};

/// The parameters that the queues of all schedulers have.
pub(super) trait QueueParams {
    fn name(&self) -> &str;
    fn selector(&self) -> Option<&Match>;
    fn selector_mut(&mut self) -> Option<&mut Match>;
    fn rule(&self) -> &AqmParams;
}

/// Adds to a scheduler's queue the parameters that all of them have.
macro_rules! queue_params {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[serde_with::skip_serializing_none]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            /// The name of the queue, in tables and files.
            pub name: String,
            /// Which packets the queue takes, if no earlier queue takes them. The last queue takes all
            /// remaining packets and has no `match`.
            pub r#match: Option<Match>,
            $($(#[$field_doc])* pub $field: $type,)+
            /// The AQM, which decides which packets are dropped. It sees this queue only.
            pub rule: AqmParams,
        }

        impl $crate::scheduler::queues::QueueParams for $name {
            fn name(&self) -> &str {
                &self.name
            }
            fn selector(&self) -> Option<&Match> {
                self.r#match.as_ref()
            }
            fn selector_mut(&mut self) -> Option<&mut Match> {
                self.r#match.as_mut()
            }
            fn rule(&self) -> &AqmParams {
                &self.rule
            }
        }
    };
}
pub(super) use queue_params;

queue_params! {
    /// One queue of a port that shares its link among queues by rates and weights.
    SharingQueue {
        /// The guaranteed rate of the queue (C_AF of Bouras & Sevasti). The AQM in `rule` uses this rate to
        /// compute idle time.
        rate: Option<Bitrate>,
        /// For a queue without `rate`: its weight when the queues without `rate` share the remaining
        /// capacity. Default: 1.
        weight: Option<NonZeroU32>,
        /// Redirects packets of flows that build a queue here to the last queue (RFC 9957): `{}` for its
        /// defaults. With it, a queue with `match = { dscp = 45 }`, a small `limit` and the same weight as
        /// the last one serves Non-Queue-Building traffic (RFC 9956, section 5).
        queue_protection: Option<QueueProtectionParams>,
    }
}

/// Checks names, and that every packet has a queue: the last takes what no other does.
pub(super) fn check_queues(queues: &[impl QueueParams]) -> Result<(), UnitError> {
    require(!queues.is_empty(), "queues", "the scheduler has no queues; add one for all packets")?;
    let places: Vec<QueueKey<'_>> = queues
        .iter()
        .enumerate()
        .map(|(n, queue)| QueueKey {
            key: format!("queues[{n}]"),
            name: queue.name(),
            selector: queue.selector(),
        })
        .collect();
    check_places(&places)
}

/// A queue that takes packets: its key, its name, and which it takes.
pub(super) struct QueueKey<'a> {
    pub(super) key: String,
    pub(super) name: &'a str,
    pub(super) selector: Option<&'a Match>,
}

/// Checks the names and the `match` of queues at any keys.
pub(super) fn check_places(places: &[QueueKey<'_>]) -> Result<(), UnitError> {
    let last = places.len().saturating_sub(1);
    for (n, QueueKey { key, name, selector }) in places.iter().enumerate() {
        let require = |holds, part: &str, text: &str| require(holds, format!("{key}.{part}"), text);
        let before = &places[..n];
        bad_name(name).map_or(Ok(()), |problem| require(false, "name", &problem))?;
        let text = format!("an earlier queue has the name `{name}`; give each its own");
        require(before.iter().all(|other| other.name != *name), "name", &text)?;
        let text = "the last queue must accept every packet that no other matches; leave `match` out, or add such a queue";
        require(selector.is_none() || n != last, "match", text)?;
        let text = "only the last queue may accept every packet; write a condition, such as { dscp = 46 }";
        require(selector.is_some() || n == last, "match", text)?;
        let Some(selector) = selector else { continue };
        require(!selector.is_empty(), "match", "it has no condition; write { dscp = 46 }, or a path")?;
        selector.check().map_err(|problem| problem.below(&format!("{key}.match")))?;
        let covers = |place: &&QueueKey<'_>| place.selector.is_some_and(|other| other.covers(selector));
        let first = before.iter().find(covers).map(|place| place.name);
        let name = first.unwrap_or_default();
        let text = format!("the earlier queue `{name}` matches all these packets; put this one before it");
        require(first.is_none(), "match", &text)?;
    }
    Ok(())
}

pub(super) fn classes_at(key: &str, queues: &[impl QueueParams]) -> Vec<ClassKey> {
    let class = |(n, queue): (usize, &_)| of_queue(queue, format!("{key}[{n}].match"));
    queues.iter().enumerate().map(class).collect()
}

fn of_queue(queue: &impl QueueParams, key: String) -> ClassKey {
    ClassKey { name: queue.name().into(), key: queue.selector().map(|_| key) }
}

pub(super) fn paths_at<'a>(key: &str, queues: &'a mut [impl QueueParams]) -> Vec<(String, &'a mut PathName)> {
    let named = queues.iter_mut().enumerate().filter_map(|(n, queue)| {
        let path = queue.selector_mut()?.path.as_mut()?;
        Some((format!("{key}[{n}].match.path"), path))
    });
    named.collect()
}

/// Returns the AQMs of queues at this key, each with its own: those that get this path's messages, as in
/// [`Queues::on_message`], or all; and whether the queues take all packets of the path.
pub(super) fn aqms_at<'a>(
    key: &str,
    queues: &'a [impl QueueParams],
    path: Option<&str>,
) -> (Vec<(String, &'a AqmParams)>, bool) {
    let keyed = queues
        .iter()
        .enumerate()
        .map(|(n, queue)| (queue.selector(), (format!("{key}[{n}].rule"), queue.rule())));
    on_path(keyed, path)
}

/// Returns the queues that may take packets of a path, or all, and whether they take all packets of it.
pub(super) fn on_path<'a, T>(
    queues: impl Iterator<Item = (Option<&'a Match>, T)>,
    path: Option<&str>,
) -> (Vec<T>, bool) {
    let everything = Match::default();
    let mut found = Vec::new();
    for (selector, queue) in queues {
        let takes = selector.unwrap_or(&everything);
        if path.is_none_or(|path| takes.may_be_on(path)) {
            found.push(queue);
            if path.is_some() && takes.by_path_alone() {
                return (found, true);
            }
        }
    }
    (found, false)
}

/// Checks that each queue has a rate or a weight.
pub(super) fn check_claims(queues: &[SharingQueue]) -> Result<(), UnitError> {
    let text =
        "a queue has either a guaranteed `rate` or a `weight` for the remaining capacity; leave one out";
    queues.iter().enumerate().try_for_each(|(n, queue)| {
        require(queue.rate.is_none() || queue.weight.is_none(), format!("queues[{n}].weight"), text)
    })
}

/// Checks that packets that queue protection redirects have another queue.
pub(super) fn check_protection(queues: &[SharingQueue]) -> Result<(), UnitError> {
    for (n, queue) in queues.iter().enumerate() {
        let Some(params) = &queue.queue_protection else { continue };
        let text =
            "the last queue has no other one for packets that are redirected; protect an earlier queue";
        require(n + 1 < queues.len(), format!("queues[{n}].queue-protection"), text)?;
        params.check().map_err(|problem| problem.below(&format!("queues[{n}]")))?;
    }
    Ok(())
}

/// Checks that the link can keep what the queues are promised, and leaves something to the others.
pub(super) fn check_guarantees(queues: &[SharingQueue], link: Bitrate) -> Result<(), UnitError> {
    let (sum, whole) = (promised(queues), u128::from(link.as_bps()));
    let text = format!("the rates add up to {}, but the link has {link}; lower them", written(sum));
    require(sum <= whole, "queues", text)?;
    let text = format!(
        "the rates add up to the link's {link}, so nothing is left for a queue without one; lower them"
    );
    require(sum < whole || queues.iter().all(|queue| queue.rate.is_some()), "queues", text)
}

/// Returns the loads of queues some of which redirect packets to the last one: this one may get all of them.
pub(super) fn protected_loads(queues: &[SharingQueue], loads: &[Load]) -> Vec<Load> {
    let mut loads = loads.to_vec();
    let Some((last, others)) = loads.split_last_mut() else { return loads };
    for (other, _) in others.iter().zip(queues).filter(|(_, queue)| queue.queue_protection.is_some()) {
        *last = last.and(other);
    }
    loads
}

/// Why nothing is guaranteed where queue protection acts: which packets it redirects depends on all that
/// came.
pub(super) const REDIRECTED: &str = "queue protection may send packets to another queue";

/// Checks that queue protection redirects no packet from a queue or to it.
pub(super) fn keeps_its_packets(queues: &[SharingQueue], class: usize) -> Result<(), Unbounded> {
    let is_protected = |queue: &SharingQueue| queue.queue_protection.is_some();
    let gets_those_of_others = class + 1 == queues.len() && queues.iter().any(is_protected);
    if is_protected(&queues[class]) || gets_those_of_others { Err(REDIRECTED.into()) } else { Ok(()) }
}

/// Returns the text of a sum of rates in bit/s; empty if it is zero.
pub(super) fn written(bps: u128) -> String {
    let rate = Bitrate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX));
    rate.map_or_else(|_| String::new(), |rate| rate.to_string())
}

fn promised(queues: &[SharingQueue]) -> u128 {
    queues.iter().filter_map(|queue| queue.rate).map(|rate| u128::from(rate.as_bps())).sum()
}

/// Returns each queue's guarantee of a link: its rate, or its part of the rest by weight (1 unless given).
pub(super) fn shares(queues: &[SharingQueue], link: Bitrate) -> Vec<Bitrate> {
    let weight = |queue: &SharingQueue| u128::from(queue.weight.map_or(1, NonZeroU32::get));
    let left = u128::from(link.as_bps()).saturating_sub(promised(queues));
    let weights: u128 = queues.iter().filter(|queue| queue.rate.is_none()).map(weight).sum();
    let share = |queue: &SharingQueue| {
        let bps = u64::try_from(left * weight(queue) / weights.max(1)).unwrap_or(u64::MAX);
        Bitrate::from_bps(bps.max(1)).expect("above zero")
    };
    queues.iter().map(|queue| queue.rate.unwrap_or_else(|| share(queue))).collect()
}

/// The queues of a port, each under its own AQM. A queue is a class.
#[derive(Clone, Debug)]
pub(super) struct Queues<P> {
    all: Vec<Queue<P>>,
    total: Occupancy,
    /// The queue of the last packet taken.
    serving: Option<usize>,
}

#[derive(Clone, Debug)]
struct Queue<P> {
    name: String,
    takes: Matcher,
    protection: Option<Box<QueueProtection>>,
    packets: ManagedQueue<P>,
}

impl<P: Packet> Queues<P> {
    /// Returns empty queues; `rates` are those at which they are served, for their AQMs.
    pub(super) fn new<Q: QueueParams>(
        params: &[Q],
        rates: impl IntoIterator<Item = Bitrate>,
        streams: Streams<'_>,
    ) -> Self {
        let alone = params.len() == 1;
        let queue = |(params, rate): (&Q, Bitrate)| {
            let several = format!("queues/{}/aqm", params.name());
            let rng = streams.of(if alone { "aqm" } else { &several });
            Queue {
                name: params.name().into(),
                takes: Matcher::new(params.selector()),
                protection: None,
                packets: ManagedQueue::new(1, params.rule().clone(), Environment { rate }, rng),
            }
        };
        Self { all: params.iter().zip(rates).map(queue).collect(), total: Occupancy::EMPTY, serving: None }
    }

    /// Returns the queues, with queue protection where it is asked for, for these shares of the link.
    pub(super) fn protected(params: &[SharingQueue], shares: &[Bitrate], streams: Streams<'_>) -> Self {
        let mut queues = Self::new(params, shares.iter().copied(), streams);
        for ((queue, params), &share) in queues.all.iter_mut().zip(params).zip(shares) {
            queue.protection = params.queue_protection.as_ref().map(|protection| {
                let mut rng = streams.of(&format!("queues/{}/queue-protection", params.name));
                Box::new(QueueProtection::new(protection, share, &mut rng))
            });
        }
        queues
    }

    /// Returns the first queue that matches a packet, if one does.
    #[inline]
    pub(super) fn matching(&self, packet: &Header) -> Option<usize> {
        self.all.iter().position(|queue| queue.takes.takes(packet))
    }

    /// Returns the queue that takes a packet, unless it is redirected.
    #[inline(always)]
    pub(super) fn class_of(&self, packet: &Header) -> usize {
        if let [first, _] = &*self.all {
            return usize::from(!first.takes.takes(packet)); // Which one it is cannot be guessed.
        }
        let last = self.all.len() - 1;
        self.all[..last].iter().position(|queue| queue.takes.takes(packet)).unwrap_or(last)
    }

    /// Puts a packet into its queue, whose number is returned, or gives it back with the reason for its loss.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, packet: P, now: Instant) -> Result<usize, (P, Reason)> {
        let number = self.admitted_to(&packet.header(), now);
        self.enqueue_to(number, packet, now)?;
        Ok(number)
    }

    /// Puts a packet into this queue.
    #[inline(always)]
    pub(super) fn enqueue_to(&mut self, number: usize, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        let Header { color, size, .. } = packet.header();
        self.all[number].packets.offer(0, packet, now)?;
        self.total.add(color, size);
        Ok(())
    }

    /// Counts a packet that comes to this queue and that something before its AQM drops.
    pub(super) fn refuse(&mut self, number: usize, packet: P, now: Instant, reason: Reason) -> P {
        self.all[number].packets.refuse(0, packet, now, reason)
    }

    /// Returns the queue that a packet joins.
    #[inline(always)]
    fn admitted_to(&mut self, packet: &Header, now: Instant) -> usize {
        let number = self.class_of(packet);
        let Queue { protection, packets, .. } = &mut self.all[number];
        let waiting = packets.occupancy().bytes();
        let redirected = protection.as_mut().is_some_and(|held| held.redirects(packet, waiting, now));
        if redirected { self.all.len() - 1 } else { number }
    }

    /// Notes that the last packet taken has been transmitted: its queue is idle if nothing waits there.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        if let Some(number) = self.serving.take() {
            self.all[number].packets.settle_idle(now);
        }
    }

    /// Takes the head of a queue that has one.
    #[inline(always)]
    pub(super) fn take(&mut self, number: usize, now: Instant) -> Taken<P> {
        let taken = self.all[number].packets.take(0, now).expect("the scheduler saw its head");
        let header = taken.packet.header();
        self.total.remove(header.color, header.size);
        self.serving = Some(number);
        taken
    }

    #[inline]
    pub(super) fn head(&self, number: usize) -> Option<Header> {
        self.all[number].packets.head(0).map(P::header)
    }

    /// Returns whether packets wait in a queue.
    #[inline]
    pub(super) fn waits(&self, number: usize) -> bool {
        !self.all[number].packets.is_empty()
    }

    /// Returns how many packets wait in a queue.
    #[inline]
    pub(super) fn len(&self, number: usize) -> usize {
        self.all[number].packets.len(0)
    }

    /// See [`Scheduler::retune`](super::Scheduler::retune): for the queues at this key, which are served at
    /// these rates.
    pub(super) fn retune<Q: QueueParams>(
        &mut self,
        key: &str,
        (before, after): (&[Q], &[Q]),
        rates: impl IntoIterator<Item = Bitrate>,
    ) -> Result<(), UnitError> {
        if before.len() != after.len() {
            return Err(fixed(key));
        }
        for (n, ((queue, (before, after)), rate)) in
            self.all.iter_mut().zip(before.iter().zip(after)).zip(rates).enumerate()
        {
            if before.name() != after.name() {
                return Err(fixed(&format!("{key}[{n}].name")));
            }
            if before.selector() != after.selector() {
                return Err(fixed(&format!("{key}[{n}].match")));
            }
            let packets = &mut queue.packets;
            let retuned =
                retune_aqm(before.rule(), after.rule(), |rule| packets.retune(rule, Environment { rate }));
            retuned.map_err(|problem| problem.below(&format!("{key}[{n}].rule")))?;
        }
        Ok(())
    }

    /// Gives the queues and their protection other parameters, for these shares of the link.
    pub(super) fn retune_protected(
        &mut self,
        (before, after): (&[SharingQueue], &[SharingQueue]),
        shares: &[Bitrate],
    ) -> Result<(), UnitError> {
        self.retune("queues", (before, after), shares.iter().copied())?;
        for (n, (queue, (params, &share))) in self.all.iter_mut().zip(after.iter().zip(shares)).enumerate() {
            let key = || format!("queues[{n}]");
            match (&mut queue.protection, &params.queue_protection) {
                (None, None) => {}
                (Some(held), Some(protection)) => {
                    let retuned = held.retune(protection, share);
                    retuned.map_err(|problem| problem.below(&key()))?;
                }
                _ => return Err(fixed(&format!("{}.queue-protection", key()))),
            }
        }
        Ok(())
    }

    /// See [`Discipline::count_held`](super::Discipline::count_held).
    pub(super) fn count_held(&mut self, class: usize, packet: &Header, waits: bool) {
        self.all[class].packets.count_held(packet, waits);
        self.total.count(waits, packet);
    }

    pub(super) fn occupancy(&self) -> &Occupancy {
        &self.total
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn class(&self, number: usize) -> &ClassCounters {
        self.all[number].packets.class(0)
    }

    pub(super) fn name(&self, number: usize) -> &str {
        &self.all[number].name
    }

    /// Returns the internal state of the AQMs, under their queues' names.
    pub(super) fn gauges(&self) -> Vec<(String, f64)> {
        let of = |queue: &Queue<P>| {
            let named = queue.packets.gauges().into_iter();
            let redirected = queue.protection.iter().map(|held| ("redirected", held.redirected()));
            let named = named.chain(redirected);
            named.map(|(name, value)| (format!("{} {name}", queue.name), value)).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// Passes on a control message for the AQMs of all queues that may take packets of this path, whatever
    /// their codepoint and color. Returns whether these queues take all packets of the path.
    pub(super) fn on_message(&mut self, label: u32, message: &Message) -> bool {
        for queue in &mut self.all {
            if queue.takes.may_follow(label) {
                queue.packets.on_message(message);
                if queue.takes.by_path_alone() {
                    return true;
                }
            }
        }
        false
    }

    /// See [`Discipline::queues`](super::Discipline::queues).
    #[inline]
    pub(super) fn each(&self, show: &mut dyn FnMut(&ManagedQueue<P>)) {
        self.all.iter().for_each(|queue| show(&queue.packets));
    }
}

/// The declarations of a scheduler over the queues that its parameters, of this type, list.
macro_rules! queues_are_listed {
    ($params:ty) => {
        fn paths(params: &mut $params) -> Vec<(String, &mut PathName)> {
            crate::scheduler::queues::paths_at("queues", &mut params.queues)
        }
        fn aqms<'a>(params: &'a $params, path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
            crate::scheduler::queues::aqms_at("queues", &params.queues, path).0
        }
        fn aqms_mut(params: &mut $params) -> Vec<&mut AqmParams> {
            params.queues.iter_mut().map(|queue| &mut queue.rule).collect()
        }
        fn class_keys(params: &$params) -> Vec<ClassKey> {
            crate::scheduler::queues::classes_at("queues", &params.queues)
        }
    };
}
pub(super) use queues_are_listed;

/// The methods of a discipline over [`Queues`] or `Branches` that do not depend on their order.
macro_rules! classes_are_queues {
    () => {
        fn count_held(&mut self, class: usize, packet: &Header, waits: bool) {
            self.queues.count_held(class, packet, waits);
        }
        fn occupancy(&self) -> &Occupancy {
            self.queues.occupancy()
        }
        fn classes(&self) -> usize {
            self.queues.count()
        }
        fn class(&self, class: usize) -> &ClassCounters {
            self.queues.class(class)
        }
        fn class_name(&self, class: usize) -> &str {
            self.queues.name(class)
        }
        #[inline]
        fn class_of(&self, packet: &Header) -> usize {
            self.queues.class_of(packet)
        }
        fn settle(&mut self, now: Instant) {
            self.queues.settle(now);
        }
        fn gauges(&self) -> Vec<(String, f64)> {
            self.queues.gauges()
        }
        fn on_message(&mut self, label: u32, message: &Message) {
            self.queues.on_message(label, message);
        }
        fn queues(&self, show: &mut dyn FnMut(&crate::ManagedQueue<P>)) {
            self.queues.each(show);
        }
    };
}
pub(super) use classes_are_queues;

/// The methods of a discipline whose packets all wait in its field `queue`, a [`ManagedQueue`].
macro_rules! all_wait_in_one_queue {
    () => {
        fn count_held(&mut self, _class: usize, packet: &crate::Header, waits: bool) {
            self.queue.count_held(packet, waits);
        }
        fn occupancy(&self) -> &Occupancy {
            self.queue.occupancy()
        }
        fn class(&self, class: usize) -> &ClassCounters {
            self.queue.class(class)
        }
        fn gauges(&self) -> Vec<(String, f64)> {
            crate::queue::owned(self.queue.gauges())
        }
        fn on_message(&mut self, _label: u32, message: &Message) {
            self.queue.on_message(message);
        }
        fn settle(&mut self, now: Instant) {
            self.queue.settle_idle(now);
        }
    };
}
pub(super) use all_wait_in_one_queue;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::scheduler::{Dequeued, Discipline};
    use crate::units::split_key;
    use crate::{Dscp, FlowId};

    /// Returns a packet of the queue that takes this codepoint; its flow identifies it.
    pub(crate) fn packet(dscp: u8, number: u32, size: u16) -> Header {
        Header { dscp: Dscp::new(dscp).unwrap(), ..Header::new(FlowId(number), size) }
    }

    pub(crate) fn put(queue: &mut impl Discipline<Header>, at: u64, packet: Header) {
        queue.enqueue(packet, Instant::from_nanos(at)).unwrap();
    }

    pub(crate) fn take(queue: &mut impl Discipline<Header>, at: u64) -> Dequeued<Header> {
        queue.dequeue(Instant::from_nanos(at))
    }

    /// Takes this many packets from a queue one after the other, on a link of 8 Mbit/s: 1000 bytes a
    /// millisecond.
    pub(crate) fn drain(queue: &mut impl Discipline<Header>, mut at: u64, packets: usize) -> Vec<u32> {
        let mut order = Vec::new();
        while order.len() < packets {
            let Dequeued::Sent(packet, _) = take(queue, at) else { return order };
            order.push(packet.flow.0);
            at += u64::from(packet.size) * 1000;
        }
        order
    }

    #[test]
    fn all_queues_that_a_path_may_meet_hear_of_it() {
        // Codepoint 0 and yellow are what a header has by default; a message has neither.
        let params = |name: &str, selector: &str| {
            let rule = r#""rule": {"aqm": "dwred", "out": "40/160/0.1", "limit": "400p"}"#;
            format!(r#"{{"name": "{name}" {selector}, {rule}}}"#)
        };
        let table = [
            params("other", r#", "match": {"path": "other"}"#),
            params("rest", r#", "match": {"dscp": 0}"#),
            params("in", r#", "match": {"path": "gold", "color": "green"}"#),
            params("gold", r#", "match": {"path": "gold"}"#),
            params("last", ""),
        ];
        let mut read: Vec<SharingQueue> = serde_json::from_str(&format!("[{}]", table.join(","))).unwrap();
        for (_, path) in paths_at("queues", &mut read) {
            let label = if path.name() == "gold" { 7 } else { 8 };
            path.set_label(label);
        }
        let rates = std::iter::repeat("8Mbps".parse::<Bitrate>().unwrap());
        let mut queues: Queues<Header> = Queues::new(&read, rates, Streams { seed: 1, path: "test" });
        queues.on_message(7, &Message::Windows { path: 7, number: 1, packets: 99.0 });
        let heard =
            queues.gauges().into_iter().filter(|(name, value)| name.ends_with("max_th") && *value == 99.0);
        let names: Vec<String> = heard.map(|(name, _)| name).collect();
        assert_eq!(names, ["rest max_th", "in max_th", "gold max_th"]);
        let keys =
            |path| aqms_at("queues", &read, path).0.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(
            keys(Some("gold")),
            ["queues[1].rule", "queues[2].rule", "queues[3].rule"],
            "the same ones"
        );
        assert_eq!(keys(None).len(), 5);
    }

    #[test]
    fn a_match_takes_what_agrees_with_every_key() {
        let read = |table: &str| serde_json::from_str::<Match>(table).unwrap();
        let labelled = Header { label: 7, ..packet(46, 0, 40) };
        let mut path = read(r#"{"path": "gold"}"#);
        assert!(!path.takes(&labelled), "its label is not known yet");
        path.path.as_mut().unwrap().set_label(7);
        assert!(path.takes(&labelled) && !path.takes(&packet(46, 0, 40)));
        assert_eq!(serde_json::to_string(&path).unwrap(), r#"{"path":"gold"}"#);
        assert!(read(r#"{"dscp": 46}"#).takes(&labelled) && !read(r#"{"dscp": 0}"#).takes(&labelled));
        let assured = read(r#"{"dscp": ["AF11", "AF12", "AF13"]}"#);
        assert!([10, 12, 14].iter().all(|&dscp| assured.takes(&packet(dscp, 0, 40))));
        assert!(!assured.takes(&packet(18, 0, 40)));
        assert!(assured.covers(&read(r#"{"dscp": 12}"#)) && !read(r#"{"dscp": 12}"#).covers(&assured));
        assert!(read(r#"{"service": "green"}"#).takes(&packet(3, 0, 40)));
        assert!(read(r#"{"color": "yellow", "dscp": 46}"#).takes(&labelled));
        assert!(!read(r#"{"color": "green", "dscp": 46}"#).takes(&labelled));
    }

    /// Returns a queue that asks for a rate, or has a weight.
    fn asks(rate: Option<&str>, weight: Option<u32>) -> SharingQueue {
        SharingQueue {
            name: String::new(),
            r#match: None,
            rate: rate.map(|rate| rate.parse().unwrap()),
            weight: weight.map(|weight| NonZeroU32::new(weight).unwrap()),
            queue_protection: None,
            rule: serde_json::from_str(r#"{"aqm": "drop-tail", "limit": "9p"}"#).unwrap(),
        }
    }

    #[test]
    fn every_packet_has_a_queue_and_every_queue_may_have_packets() {
        let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
        let checked = |queues: &[(&str, &str)]| {
            let queue = |(name, selector): &(&str, &str)| {
                let selector =
                    if selector.is_empty() { String::new() } else { format!(r#""match": {{{selector}}},"#) };
                format!(r#"{{"name": "{name}", {selector} {rule}}}"#)
            };
            let text = format!("[{}]", queues.iter().map(queue).collect::<Vec<_>>().join(","));
            let read: Vec<SharingQueue> = serde_json::from_str(&text).unwrap();
            check_queues(&read).map_err(|problem| problem.to_string())
        };
        let refused = |queues: &[(&str, &str)]| checked(queues).unwrap_err();
        let dscp = r#""dscp": 1"#;
        assert!(refused(&[]).contains("has no queues"));
        assert!(refused(&[(" ", dscp), ("c", "")]).contains("at least one letter"));
        assert!(refused(&[("a", dscp), ("a", "")]).contains("an earlier queue has the name `a`"));
        assert!(refused(&[("a", dscp)]).contains("accept every packet that no other matches"));
        assert!(refused(&[("a", ""), ("b", "")]).contains("only the last queue may accept every packet"));
        assert!(refused(&[("a", " "), ("b", "")]).contains("it has no condition"));
        // What an earlier queue takes in whole never comes to a later one; what differs in one key may.
        let keys = [r#""path": "gold""#, dscp, r#""service": "green""#, r#""color": "red""#];
        let others = [r#""path": "tin""#, r#""dscp": 2"#, r#""service": "blue""#, r#""color": "yellow""#];
        for (key, other) in keys.into_iter().zip(others) {
            let narrow = keys.join(",");
            assert!(
                refused(&[("a", key), ("b", &narrow), ("c", "")]).contains("`a` matches all these packets"),
                "{key}"
            );
            assert_eq!(checked(&[("a", &narrow), ("b", key), ("c", "")]), Ok(()), "{key}");
            let elsewhere = narrow.replace(key, other);
            assert_eq!(checked(&[("a", key), ("b", &elsewhere), ("c", "")]), Ok(()), "{key}");
            let without = keys.iter().filter(|one| **one != key).copied().collect::<Vec<_>>().join(",");
            assert_eq!(checked(&[("a", key), ("b", &without), ("c", "")]), Ok(()), "{key}");
        }
    }

    #[test]
    fn rates_come_first_and_weights_share_the_rest() {
        let link: Bitrate = "10Mbps".parse().unwrap();
        let bps =
            |asks: &[SharingQueue]| shares(asks, link).iter().map(|share| share.as_bps()).collect::<Vec<_>>();
        assert_eq!(bps(&[asks(None, None)]), [10_000_000]);
        assert_eq!(bps(&[asks(None, Some(1)), asks(None, Some(4))]), [2_000_000, 8_000_000]);
        let mixed = [asks(Some("4Mbps"), None), asks(None, Some(2)), asks(None, None)];
        assert_eq!(bps(&mixed), [4_000_000, 4_000_000, 2_000_000]);
        let problem = |asks: &[SharingQueue]| check_guarantees(asks, link).unwrap_err().to_string();
        assert!(problem(&[asks(Some("4Mbps"), None), asks(Some("7Mbps"), None)]).contains("11Mbps"));
        assert!(problem(&[asks(Some("10Mbps"), None), asks(None, None)]).contains("nothing is left"));
        assert!(check_guarantees(&[asks(Some("10Mbps"), None)], link).is_ok());
        assert!(check_claims(&[asks(Some("1Mbps"), Some(1))]).is_err());
        assert!(check_claims(&[asks(Some("1Mbps"), None), asks(None, Some(1)), asks(None, None)]).is_ok());
        // More is promised than the link has: whoever has no rate gets next to nothing, never nothing.
        assert_eq!(bps(&[asks(Some("12Mbps"), None), asks(None, None)]), [12_000_000, 1]);
    }

    #[test]
    fn a_protected_queue_redirects_to_the_last_one() {
        let read = |protection: &str| {
            let rule = r#""rule": {"aqm": "drop-tail", "limit": "99p"}"#;
            let table = format!(
                r#"[{{"name": "nqb", "match": {{"dscp": 45}}, {protection} {rule}}},
                    {{"name": "ef", "match": {{"dscp": 46}}, {rule}}}, {{"name": "rest", {rule}}}]"#
            );
            serde_json::from_str::<Vec<SharingQueue>>(&table).unwrap()
        };
        let params = read(r#""queue-protection": {},"#);
        check_protection(&params).unwrap();
        let rates = shares(&params, "12Mbps".parse().unwrap());
        let mut queues: Queues<Header> =
            Queues::protected(&params, &rates, Streams { seed: 1, path: "test" });
        let mut join = |dscp| queues.enqueue(packet(dscp, 7, 1500), Instant::ZERO).unwrap();
        // At 4 Mbit/s: a packet takes 3 ms, and two frames of 2000 bytes, where the ramp begins, 8 ms. After
        // three packets the delay is 9 ms, and the fourth counts in full.
        assert_eq!([45, 45, 45, 45, 45, 46].map(&mut join), [0, 0, 0, 2, 2, 1]);
        assert_eq!(queues.gauges(), [("nqb redirected".into(), 2.0)]);
        let key = |queues: &[SharingQueue]| {
            let text = check_protection(queues).unwrap_err().to_string();
            split_key(&text).0.to_owned()
        };
        assert_eq!(
            key(&read(r#""queue-protection": {"attempts": 0},"#)),
            "queues[0].queue-protection.attempts"
        );
        assert_eq!(key(&params[..1]), "queues[0].queue-protection");
    }
}

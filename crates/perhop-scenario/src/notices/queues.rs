//! Notices of the queues of links: limits, targets and rates that cannot act, and classes that no packet
//! joins.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use perhop_core::scheduler::{ClassKey, Discipline, Incoming, SchedulerParams, Within};
use perhop_core::{Bitrate, Bytes, DelayTarget, Depth, Duration, Ecn};
use perhop_sim::transport::packet_trace::PacketTrace;
use perhop_sim::{FlowSpec, LinkSpec, TransportSpec};

use super::division::{Division, classifier, division, divisions};
use crate::check::{kernel_asks_for_ecn, marking_rules};
use crate::directions::QueuePlace;
use crate::error::Problem;
use crate::format::Scenario;
use crate::one_flow_per_group::{HeadersAtLink, LinkSelection, OneFlowPerGroup};

/// The notices of a queue: a key of it, and text.
type KeyedTexts = Vec<(String, String)>;

/// Returns the notices of all queues of a scenario whose packets have sizes in this range.
pub(super) fn of_queues(
    scenario: &Scenario,
    reduced: &OneFlowPerGroup,
    sizes: &RangeInclusive<u64>,
) -> Vec<Problem> {
    let mut notices = Vec::new();
    let mut alike = BTreeSet::new();
    for place in scenario.queues() {
        let (name, tier, rate) = (place.name(), place.tier(), place.rate());
        // The queues of a tier are one key of the scenario.
        if tier.is_some_and(|tier| !alike.insert((tier, rate))) {
            continue;
        }
        let links = if tier.is_some() { LinkSelection::tier_of(&name) } else { LinkSelection::link(&name) };
        let rates = Rates::of(rate, reduced.link(&name), scenario.duration);
        let mut found = keys_without_effect(place.scheduler(), rates, sizes);
        found.extend(too_small(reduced, place.scheduler(), rate, links, sizes));
        found.extend(idle_marks(scenario, &place, links, reduced));
        found.extend(unused_queues(reduced, links));
        let within = place.scheduler().all_within(rates.least).into_iter();
        for (Within { key, scheduler, rate, .. }, Within { cap, .. }) in
            within.zip(place.scheduler().all_within(rates.most))
        {
            let most = cap.map_or(rates.most, |cap| cap.min(rates.most));
            let inner = scheduler.notices((rate.unwrap_or(rates.least), most), Bytes::new(*sizes.end()));
            found.extend(inner.into_iter().map(|(inner, text)| (below(&key, &inner), text)));
        }
        let divided = reduced
            .passing_numbers(links)
            .map(|flow| (reduced.group(flow), division_of_flow(reduced, flow, links)));
        found.extend(divisions(divided));
        notices.extend(found.into_iter().map(|(key, text)| place.at(&key, text)));
    }
    notices.dedup();
    notices
}

/// Returns the AQMs that mark packets although no flow that passes their link is capable; each with what to
/// write instead.
fn idle_marks(
    scenario: &Scenario,
    place: &QueuePlace<'_>,
    links: LinkSelection<'_>,
    reduced: &OneFlowPerGroup,
) -> KeyedTexts {
    let is_capable = |flow: &FlowSpec| match flow.transport {
        TransportSpec::Tcp(_) => !flow.tcp_ecn.is_off() || kernel_asks_for_ecn(scenario),
        TransportSpec::Udp(_) | TransportSpec::Rap(_) | TransportSpec::Tfrc(_) => flow.ecn.is_capable(),
    };
    if reduced.passing(links).any(|(_, flow)| is_capable(flow)) {
        return Vec::new();
    }
    let text = "no flow that passes this link is ECN-capable, so the rule drops what it would mark: give TCP flows \
                `ecn = \"classic\"`, or leave this key out";
    marking_rules(place).into_iter().map(|key| (format!("{key}.ecn"), text.to_owned())).collect()
}

/// Returns how the queue of a link divides the packets of a flow, if it does.
fn division_of_flow(reduced: &OneFlowPerGroup, flow: usize, links: LinkSelection<'_>) -> Option<Division> {
    // A replayed capture is of many flows, and has no marker that could keep them together.
    if reduced.network.flows[flow].transport.trace().is_some_and(PacketTrace::has_codepoints) {
        return None;
    }
    let HeadersAtLink { behind, .. } = reduced.data_headers(flow, links)?;
    let link = reduced.link(links.name())?;
    division(link.queue.as_ref()?, link.rate, behind)
}

/// Returns the queues of a link that no packet joins, by key, with what does come to the link: those with a
/// `match`, where packets come at all, and one of the scheduler's own.
fn unused_queues(reduced: &OneFlowPerGroup, links: LinkSelection<'_>) -> KeyedTexts {
    let queue = reduced.link(links.name()).and_then(|link| Some((link.queue.as_ref()?, link.rate)));
    let Some((queue, rate)) = queue else { return Vec::new() };
    let headers = reduced.packets(links);
    let described = reduced.described(&headers);
    let discipline = classifier(queue, rate);
    let keys = queue.class_keys().into_iter().enumerate().filter(|_| !headers.is_empty());
    let unmatched = keys.filter_map(|(class, ClassKey { name, key })| {
        let key = key?;
        headers.iter().all(|packet| discipline.class_of(packet) != class).then(|| {
            let text = format!(
                "no packet that comes to this link matches, so the queue `{name}` stays empty; packets here carry {described}: \
                 match some of them, or leave the queue out"
            );
            (key, text)
        })
    });
    let has_ect_1 = reduced.passing(links).any(|(_, flow)| sends_ect_1(flow));
    let incoming = Incoming { headers: &headers, described: &described, has_ect_1 };
    let own = queue.unused_queue(&incoming).map(|(key, text)| (key.to_owned(), text));
    unmatched.chain(own).collect()
}

/// Returns the limits in bytes into which no packet of data fits that passes a link, by key, with the reason.
/// A smaller packet fits in, such as one that opens a connection.
fn too_small(
    reduced: &OneFlowPerGroup,
    queue: &SchedulerParams,
    rate: Bitrate,
    links: LinkSelection<'_>,
    sizes: &RangeInclusive<u64>,
) -> KeyedTexts {
    let data = reduced.passing(links).map(|(_, flow)| {
        let data = flow.transport.packet_sizes().0;
        u64::from(flow.transport.trace().map_or(data, PacketTrace::smallest).min(data))
    });
    let Some(smallest) = data.min() else { return Vec::new() };
    let small = limits_in_bytes(queue, rate)
        .into_iter()
        .filter(|(_, limit)| (*sizes.start()..smallest).contains(limit));
    let found = small.map(|(key, limit)| {
        let text = format!(
            "`{}`: no packet of data fits into the queue, since the smallest that passes this link has {}, so all are dropped; \
             raise it, such as to 100p",
            Bytes::new(limit),
            Bytes::new(smallest)
        );
        (key, text)
    });
    found.collect()
}

/// The rate of a link with which its queue is made, and the least and the greatest one during a run.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    first: Bitrate,
    least: Bitrate,
    most: Bitrate,
}

impl Rates {
    /// Returns the rates of a link whose rate does not change.
    pub const fn constant(rate: Bitrate) -> Self {
        Self { first: rate, least: rate, most: rate }
    }

    fn of(rate: Bitrate, link: Option<&LinkSpec>, time: Duration) -> Self {
        let (least, most) = link.map_or((rate, rate), |link| link.medium.rates_within(rate, time));
        Self { first: rate, least, most }
    }
}

/// Returns the keys of a queue on a link of these rates, and of its AQMs, that cannot act where packets have
/// sizes in this range, and why.
pub fn keys_without_effect(
    queue: &SchedulerParams,
    rates: Rates,
    sizes: &RangeInclusive<u64>,
) -> Vec<(String, String)> {
    let Rates { first, least, most } = rates;
    let served = [first, least, most].map(|rate| queue.least_rates(rate));
    let rules =
        queue.aqms(None).into_iter().enumerate().map(|(n, rule)| (rule, [0, 1, 2].map(|i| served[i][n])));
    let idle = rules.flat_map(|((place, rule), [served, least, most])| {
        let room = Room::of(rule.limit(served.unwrap_or(first)), sizes);
        let idle = room.idle(least.zip(most), &rule.delay_targets(), || {
            let at_rate = least.into_iter().flat_map(|least| rule.keys_without_effect_at(least));
            rule.keys_without_effect(sizes).into_iter().chain(at_rate).collect()
        });
        idle.into_iter().map(move |(key, text)| (format!("{place}.{key}"), text)).collect::<Vec<_>>()
    });
    let within = queue.all_within(first).into_iter().zip(queue.all_within(least)).zip(queue.all_within(most));
    let own = within.flat_map(|((Within { key: place, scheduler, rate: served, .. }, slow), fast)| {
        let limit = scheduler.limit(served.unwrap_or(first));
        let extremes = slow.rate.zip(fast.rate);
        let own = Room::of(limit, sizes)
            .idle(extremes, &scheduler.delay_targets(), || scheduler.keys_without_effect(sizes));
        own.into_iter().map(move |(key, text)| (below(&place, key), text)).collect::<Vec<_>>()
    });
    own.chain(idle).collect()
}

/// Returns the limits in bytes of a queue on a link of this rate, and of its AQMs, by key.
fn limits_in_bytes(queue: &SchedulerParams, rate: Bitrate) -> Vec<(String, u64)> {
    let rules = queue.aqms(None).into_iter().zip(queue.least_rates(rate));
    let of_rules =
        rules.map(|((place, rule), least)| (format!("{place}.limit"), rule.limit(least.unwrap_or(rate))));
    let own = queue.all_within(rate).into_iter().map(|Within { key, scheduler, rate: least, .. }| {
        (below(&key, "limit"), scheduler.limit(least.unwrap_or(rate)))
    });
    let bytes = |(key, limit)| match limit {
        Some(Depth::Bytes(bytes)) => Some((key, bytes)),
        Some(Depth::Packets(_)) | None => None,
    };
    of_rules.chain(own).filter_map(bytes).collect()
}

/// Returns the key that a table within that of `key` calls `inner`.
fn below(key: &str, inner: &str) -> String {
    if key.is_empty() { inner.to_owned() } else { format!("{key}.{inner}") }
}

/// Returns whether new data of the flow is ECT(1).
fn sends_ect_1(flow: &FlowSpec) -> bool {
    let is_l4s = matches!(&flow.transport, TransportSpec::Tcp(params) if params.needs().l4s);
    is_l4s && !flow.tcp_ecn.is_off() || [flow.ecn, flow.tcp_ecn.codepoint()].contains(&Ecn::Capable1)
}

/// The most that waits in the queue of an AQM, or of a scheduler with a limit of its own, where packets have
/// sizes in this range.
struct Room<'a> {
    limit: Option<Depth>,
    sizes: &'a RangeInclusive<u64>,
}

/// The largest frame that links carry, a jumbo frame: a larger size is that of several packets, or a bound.
const LARGEST_FRAME: u64 = 9216;

impl<'a> Room<'a> {
    const fn of(limit: Option<Depth>, sizes: &'a RangeInclusive<u64>) -> Self {
        Self { limit, sizes }
    }

    /// Returns the keys without effect, each with the reason: only the limit if no packet fits, otherwise
    /// `others`, and a target that the queue is too short for. `rates` are the least and the greatest of the
    /// rates at which the queue is served at least, if there are.
    fn idle(
        &self,
        rates: Option<(Bitrate, Bitrate)>,
        targets: &[DelayTarget],
        others: impl FnOnce() -> Vec<(&'static str, String)>,
    ) -> Vec<(&'static str, String)> {
        if let Some(limit) = self.limit.filter(|limit| !self.holds_a_packet(*limit)) {
            let text = format!(
                "`{limit}`: no packet fits into the queue, so all are dropped; raise it, such as to 100p"
            );
            return vec![("limit", text)];
        }
        let mut idle = others();
        for ((slow, fast), aim) in rates.iter().flat_map(|rates| targets.iter().map(|aim| (*rates, *aim))) {
            idle.extend(self.out_of_reach(fast, aim));
            idle.extend(self.below_a_packet(slow, aim));
        }
        idle
    }

    fn holds_a_packet(&self, limit: Depth) -> bool {
        match limit {
            Depth::Packets(packets) => packets > 0,
            Depth::Bytes(bytes) => bytes >= *self.sizes.start(),
        }
    }

    /// Returns the target of an AQM, if no packet can wait that long: at most all that the queue holds, and
    /// the packet that is being sent, go before it.
    fn out_of_reach(&self, least: Bitrate, aim: DelayTarget) -> Option<(&'static str, String)> {
        let DelayTarget { key, target, least_acting_delay: acts, .. } = aim;
        let limit = self.limit?;
        let most = match limit {
            Depth::Packets(packets) => packets.saturating_mul(*self.sizes.end()),
            Depth::Bytes(bytes) => bytes,
        };
        let longest = least.time_of(Bytes::new(most.saturating_add(*self.sizes.end())));
        let effect = if longest < acts {
            format!("no packet waits for {acts}, and none is dropped that the queue has room for")
        } else {
            "the delay stays below it, and packets are lost for want of room, hardly by this rule".into()
        };
        let text = || {
            format!(
                "`{target}`: the queue holds at most {limit}, which leaves at {least} within {longest}, so {effect}; lower `{key}`, \
                 or raise `limit`"
            )
        };
        (longest < target.max(acts)).then(|| (key, text()))
    }

    /// Returns the target of an AQM, if the largest packet takes longer to leave (RFC 8290, section 5.2.2):
    /// whatever waits, waits too long. None where packets may be larger than any frame, as those of a capture
    /// may before it is read.
    fn below_a_packet(&self, least: Bitrate, aim: DelayTarget) -> Option<(&'static str, String)> {
        let largest = Some(*self.sizes.end()).filter(|size| *size <= LARGEST_FRAME).map(Bytes::new)?;
        let takes = least.time_of(largest);
        (!aim.spares_short && aim.target < takes).then(|| {
            let text = format!(
                "`{}`: a packet of {largest} takes {takes} to leave at {least}, so each that waits behind one waits for longer than \
                 this; write {takes} or more",
                aim.target
            );
            (aim.key, text)
        })
    }
}

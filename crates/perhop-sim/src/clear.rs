//! Clear ways: what leaves a bottleneck passes all that lies between it and its sender without ever waiting.
//!
//! Packets leave a link at least as far apart as the later one takes to send. Where no wire and no link behind it takes longer for
//! a packet or for its answer, and nobody else uses them, none finds another before it: so each reaches its receiver, and its
//! answer the sender, a fixed time after it left. The simulator's fast path then needs neither queues nor order there.

use std::num::NonZeroU32;

use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Bytes, Duration, Instant};

use crate::network::{AccessSpec, FlowSpec, Network};

/// From the end of the last link of a flow's data to its receiver, and with the answer back to the sender. Of times of more than
/// four seconds a way is not held to be clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClearWay {
    to_receiver: u32,
    to_sender: NonZeroU32,
}

impl ClearWay {
    /// When a packet that left the link at `at` reaches its receiver.
    #[inline]
    pub(crate) fn at_receiver(self, at: Instant) -> Instant {
        at + Duration::from_nanos(u64::from(self.to_receiver))
    }

    /// When its answer reaches the sender.
    #[inline]
    pub(crate) fn at_sender(self, at: Instant) -> Instant {
        at + Duration::from_nanos(u64::from(self.to_sender.get()))
    }
}

/// How long a packet takes over a wire, and how long until the next one can be sent.
#[derive(Clone, Copy, Debug)]
struct Passage {
    whole: Duration,
    busy: Duration,
}

impl Passage {
    /// `None`, if that is no whole number of nanoseconds and so not always the same.
    fn over(rate: Bitrate, delay: Duration, size: u16) -> Option<Self> {
        let bits = u128::from(size) * 8_000_000_000;
        let rate = u128::from(rate.as_bps());
        let busy = Duration::from_nanos((bits / rate).try_into().ok()?);
        bits.is_multiple_of(rate).then_some(Self { whole: busy + delay, busy })
    }

    fn over_access(access: Option<&AccessSpec>, size: u16) -> Option<Self> {
        let none = Self { whole: Duration::ZERO, busy: Duration::ZERO };
        access.map_or(Some(none), |access| Self::over(access.rate, access.delay, size))
    }
}

/// A link back, and those whose ways over it are clear, each flow with its way, as soon as certain others are
/// [open](crate::flow::Flow::is_open): the packet that opens a connection is smaller than its data, and so comes sooner.
#[derive(Clone, Debug)]
pub(crate) struct Clear {
    pub(crate) link: usize,
    pub(crate) ways: Vec<(usize, ClearWay)>,
    pub(crate) opening: Vec<usize>,
}

/// Where ways are clear.
pub(crate) fn clear_ways(network: &Network) -> Vec<Clear> {
    let route = |flow, answers| network.route_of(flow, answers).unwrap_or_default();
    let routes: Vec<_> = network.flows.iter().map(|flow| (route(flow, false), route(flow, true))).collect();
    (0..network.links.len()).filter_map(|link| clear_ways_over(network, &routes, link)).collect()
}

fn clear_ways_over(network: &Network, routes: &[(Vec<usize>, Vec<usize>)], link: usize) -> Option<Clear> {
    let users = network.flows.iter().zip(routes).enumerate().filter(|(_, (flow, (data, answers)))| {
        data.contains(&link) || (flow.transport.is_answered() && answers.contains(&link))
    });
    let mut one = None;
    let ways = users.map(|(number, (flow, (data, answers)))| {
        let bottleneck = *data.last()?;
        let kind = (bottleneck, &flow.egress, flow.transport.packet_sizes());
        let alike = *one.get_or_insert(kind) == kind;
        let way = (alike && *answers == [link]).then(|| clear_way(network, flow, bottleneck, link))??;
        Some((number, way))
    });
    let ways: Vec<_> = ways.collect::<Option<_>>()?;
    let numbers = ways.iter().map(|&(flow, _)| flow);
    let opening = numbers.filter(|&flow| network.flows[flow].transport.opens()).collect();
    (!ways.is_empty()).then_some(Clear { link, ways, opening })
}

/// The way of a flow from the end of `bottleneck` to its receiver and over `link` to its sender, if it is clear as long as
/// others that use `link` are like it.
fn clear_way(network: &Network, flow: &FlowSpec, bottleneck: usize, link: usize) -> Option<ClearWay> {
    let (data, answer) = flow.transport.packet_sizes();
    let controlled = flow.path.is_some_and(|path| network.paths[path].control.is_some());
    let back = &network.links[link];
    let front = &network.links[bottleneck];
    // What a connection opens with must have passed before its data.
    let in_order = !flow.transport.opens() || matches!(front.queue, None | Some(SchedulerParams::Fifo(_)));
    if controlled || back.queue.is_some() || !flow.transport.answers_at_once() || !in_order {
        return None;
    }
    let apart = front.rate.time_of(Bytes::new(u64::from(data)));
    let to_receiver = Passage::over_access(flow.egress.as_ref(), data)?;
    let passages = [
        to_receiver,
        Passage::over_access(flow.egress.as_ref(), answer)?,
        Passage::over(back.rate, back.delay, answer)?,
        Passage::over_access(flow.access.as_ref(), answer)?,
    ];
    let to_sender = passages.iter().fold(Duration::ZERO, |sum, passage| sum + passage.whole);
    let fits = |span: Duration| u32::try_from(span.as_nanos()).ok();
    passages.iter().all(|passage| passage.busy <= apart).then_some(ClearWay {
        to_receiver: fits(to_receiver.whole)?,
        to_sender: NonZeroU32::new(fits(to_sender)?)?,
    })
}

//! What became of packets, counted by codepoint and by flow, and packet by packet where that is asked for.

use std::collections::BTreeMap;

use perhop_core::measure::DelayHistogram;
use perhop_core::{Bitrate, Color, Dscp, Duration, Ecn, FlowId, Instant, Reason};
use perhop_live::wire::FiveTuple;

use crate::arrivals::Arrival;

/// What a driver keeps with a packet until it knows what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The place of the packet among all arrivals, from 0.
    pub(crate) row: u64,
    pub(crate) arrived: Instant,
    pub(crate) flow: FlowId,
    pub(crate) size: u16,
    pub(crate) dscp: Dscp,
    pub(crate) ecn: Ecn,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many packets.
    pub packets: u64,
    /// How many bytes, IP headers included.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, size: u16) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
}

/// How a packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// The end of its transmission; without a link, its arrival.
    pub(crate) at: Instant,
    pub(crate) dscp: Dscp,
    pub(crate) ecn: Ecn,
    /// What the meter at the edge gave it, if there is one.
    pub(crate) color: Option<Color>,
}

/// What became of packets that came with a codepoint: the color that the meter at the edge gave them, and the
/// codepoint with which they left, or the reason for which they were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// The codepoint with which they came.
    pub came: u8,
    /// The meter's color.
    pub color: Option<Color>,
    /// The reason of their loss; `None` if they left.
    pub lost: Option<Reason>,
    /// The codepoint with which they left.
    pub left: Option<u8>,
}

/// Packets of one codepoint or flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Packets that came.
    pub arrived: Amount,
    /// Packets that left.
    pub forwarded: Amount,
    /// Packets that a meter dropped.
    pub policed: u64,
    /// Packets that a queue dropped.
    pub dropped: u64,
    /// Packets that left with a congestion mark that they did not come with.
    pub marked: u64,
    /// Packets by the color that the meter at the edge gave them.
    pub colors: [u64; 3],
    /// Sum of the times that packets waited that left.
    pub waited_ns: u128,
}

impl Fates {
    fn forward(&mut self, tag: &Tag, forwarded: &Forwarded, waited: Duration) {
        self.forwarded.add(tag.size);
        self.marked += u64::from(forwarded.ecn == Ecn::Congested && tag.ecn != Ecn::Congested);
        self.waited_ns += u128::from(waited.as_nanos());
        self.color(forwarded.color);
    }

    fn lose(&mut self, reason: Reason, color: Option<Color>) {
        *(if reason == Reason::Policed { &mut self.policed } else { &mut self.dropped }) += 1;
        self.color(color);
    }

    fn color(&mut self, color: Option<Color>) {
        if let Some(color) = color {
            self.colors[color.index()] += 1;
        }
    }

    /// Returns the mean waiting time in seconds of the packets that left.
    pub fn mean_wait_s(&self) -> Option<f64> {
        (self.forwarded.packets > 0).then(|| self.waited_ns as f64 / self.forwarded.packets as f64 / 1e9)
    }
}

/// The most flows that are counted at a time.
pub const MOST_FLOWS: usize = 1 << 17;

/// Flows by their number. Where there are more than are counted, the half with the fewest bytes is forgotten.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    by_number: BTreeMap<u32, (FiveTuple, Fates)>,
    forgotten: u64,
}

impl Flows {
    fn arrive(&mut self, flow: FlowId, tuple: FiveTuple, size: u16) {
        if self.by_number.len() == MOST_FLOWS && !self.by_number.contains_key(&flow.0) {
            self.forget_half();
        }
        self.by_number.entry(flow.0).or_insert_with(|| (tuple, Fates::default())).1.arrived.add(size);
    }

    #[cold]
    fn forget_half(&mut self) {
        let mut bytes: Vec<(u64, u32)> =
            self.by_number.iter().map(|(number, (_, fates))| (fates.arrived.bytes, *number)).collect();
        bytes.sort_unstable();
        for (_, number) in &bytes[..bytes.len() / 2] {
            self.by_number.remove(number);
        }
        self.forgotten += bytes.len() as u64 / 2;
    }

    fn of(&mut self, tag: &Tag) -> Option<&mut Fates> {
        self.by_number.get_mut(&tag.flow.0).map(|(_, fates)| fates)
    }

    /// Returns the flows with the most bytes, the largest first.
    pub fn largest(&self, count: usize) -> Vec<&(FiveTuple, Fates)> {
        let mut flows: Vec<_> = self.by_number.values().collect();
        flows.sort_by_key(|(tuple, fates)| (std::cmp::Reverse(fates.arrived.bytes), *tuple));
        flows.truncate(count);
        flows
    }

    /// Returns how many flows are counted, and how many were forgotten.
    pub fn count(&self) -> (u64, u64) {
        (self.by_number.len() as u64, self.forgotten)
    }
}

/// What became of each packet, in the order of arrival, as columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// The number of the packet in the file, from 1.
    pub number: Vec<u64>,
    /// When the packet came, in nanoseconds after the beginning.
    pub arrived_ns: Vec<u64>,
    /// The size of the packet on the wire.
    pub size: Vec<u16>,
    /// The number of the packet's flow: equal for packets of one five-tuple.
    pub flow: Vec<u32>,
    /// The codepoint with which the packet came.
    pub dscp_in: Vec<u8>,
    /// The ECN field with which the packet came.
    pub ecn_in: Vec<u8>,
    /// [`FORWARDED`], or the reason for which it was dropped, by its place among all reasons.
    pub verdict: Vec<u8>,
    /// The codepoint with which the packet left, or [`NONE`].
    pub dscp_out: Vec<u8>,
    /// The ECN field with which the packet left, or [`NONE`].
    pub ecn_out: Vec<u8>,
    /// The color that the meter at the edge gave the packet, or [`NONE`].
    pub color: Vec<u8>,
    /// When the packet was sent, or dropped.
    pub left_ns: Vec<u64>,
}

/// The verdict on a packet that left.
pub const FORWARDED: u8 = u8::MAX;
/// No codepoint, color or ECN field.
pub const NONE: u8 = u8::MAX;

impl Verdicts {
    fn arrive(&mut self, number: u64, tag: &Tag) {
        self.number.push(number);
        self.arrived_ns.push(tag.arrived.as_nanos());
        self.size.push(tag.size);
        self.flow.push(tag.flow.0);
        self.dscp_in.push(tag.dscp.get());
        self.ecn_in.push(tag.ecn as u8);
        for column in [&mut self.verdict, &mut self.dscp_out, &mut self.ecn_out, &mut self.color] {
            column.push(NONE);
        }
        self.left_ns.push(0);
    }

    fn forward(&mut self, tag: &Tag, forwarded: &Forwarded) {
        let row = tag.row as usize;
        self.verdict[row] = FORWARDED;
        self.dscp_out[row] = forwarded.dscp.get();
        self.ecn_out[row] = forwarded.ecn as u8;
        self.color[row] = forwarded.color.map_or(NONE, |color| color as u8);
        self.left_ns[row] = forwarded.at.as_nanos();
    }

    fn lose(&mut self, tag: &Tag, at: Instant, reason: Reason, color: Option<Color>) {
        let row = tag.row as usize;
        self.verdict[row] = reason as u8;
        self.color[row] = color.map_or(NONE, |color| color as u8);
        self.left_ns[row] = at.as_nanos();
    }
}

/// Counts what becomes of packets.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// The rate of the link, if there is one: without it no packet waits.
    rate: Option<Bitrate>,
    rows: u64,
    pub(crate) all: Fates,
    pub(crate) by_codepoint: BTreeMap<u8, (Fates, DelayHistogram)>,
    pub(crate) outcomes: BTreeMap<Outcome, Amount>,
    pub(crate) flows: Flows,
    pub(crate) verdicts: Option<Verdicts>,
    /// When the last packet came or left.
    pub(crate) end: Instant,
    /// When the last packet came.
    pub(crate) last_arrival: Instant,
}

impl Ledger {
    pub(crate) fn new(rate: Option<Bitrate>, each: bool) -> Self {
        Self {
            rate,
            rows: 0,
            all: Fates::default(),
            by_codepoint: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            flows: Flows::default(),
            verdicts: each.then(Verdicts::default),
            end: Instant::ZERO,
            last_arrival: Instant::ZERO,
        }
    }

    /// Counts a packet that comes.
    pub(crate) fn arrive(&mut self, arrival: &Arrival<'_>) -> Tag {
        let fields = &arrival.fields;
        let (size, flow) = (fields.length, fields.tuple.flow());
        let tag = Tag { row: self.rows, arrived: arrival.at, flow, size, dscp: fields.dscp, ecn: fields.ecn };
        self.rows += 1;
        self.all.arrived.add(size);
        self.codepoint(tag.dscp).0.arrived.add(size);
        self.flows.arrive(flow, fields.tuple, size);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.arrive(arrival.number, &tag);
        }
        self.last_arrival = arrival.at;
        self.end = self.end.max(arrival.at);
        tag
    }

    fn codepoint(&mut self, dscp: Dscp) -> &mut (Fates, DelayHistogram) {
        self.by_codepoint.entry(dscp.get()).or_default()
    }

    /// Counts a packet that left. It waited from its arrival to the beginning of its transmission.
    pub(crate) fn forward(&mut self, tag: &Tag, forwarded: &Forwarded) {
        let transmission = self.rate.map_or(Duration::ZERO, |rate| {
            let bits = u128::from(tag.size) * 8_000_000_000;
            Duration::from_nanos((bits / u128::from(rate.as_bps())) as u64)
        });
        let waited = forwarded.at.since(tag.arrived) - transmission;
        self.all.forward(tag, forwarded, waited);
        let (fates, delays) = self.codepoint(tag.dscp);
        fates.forward(tag, forwarded, waited);
        delays.record(Color::Green, waited);
        if let Some(fates) = self.flows.of(tag) {
            fates.forward(tag, forwarded, waited);
        }
        let left = Some(forwarded.dscp.get());
        self.count(Outcome { came: tag.dscp.get(), color: forwarded.color, lost: None, left }, tag.size);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.forward(tag, forwarded);
        }
        self.end = self.end.max(forwarded.at);
    }

    /// Counts a packet that was dropped.
    pub(crate) fn lose(&mut self, tag: &Tag, at: Instant, reason: Reason, color: Option<Color>) {
        self.all.lose(reason, color);
        self.codepoint(tag.dscp).0.lose(reason, color);
        if let Some(fates) = self.flows.of(tag) {
            fates.lose(reason, color);
        }
        self.count(Outcome { came: tag.dscp.get(), color, lost: Some(reason), left: None }, tag.size);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.lose(tag, at, reason, color);
        }
        self.end = self.end.max(at);
    }

    fn count(&mut self, outcome: Outcome, size: u16) {
        self.outcomes.entry(outcome).or_default().add(size);
    }

    /// Returns whether every packet that came left or was dropped.
    pub(crate) fn is_balanced(&self) -> bool {
        let Fates { arrived, forwarded, policed, dropped, .. } = self.all;
        arrived.packets == forwarded.packets + policed + dropped
    }
}

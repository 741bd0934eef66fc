//! Which stream a packet belongs to: a multi-field classifier (RFC 2475, section 2.3.1).

use std::net::IpAddr;
use std::ops::RangeInclusive;

use perhop_core::{Codepoints, Dscp, FlowId};

use crate::encapsulation::{Encapsulation, Enclosure};
use crate::wire::{Fields, FiveTuple};

/// Packets that agree with every field given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The network in which the packets' source lies.
    pub source: Option<Prefix>,
    /// The network in which the packets' destination lies.
    pub destination: Option<Prefix>,
    /// The protocol above IP.
    pub protocol: Option<u8>,
    /// The source ports of the packets.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// The destination ports of the packets.
    pub destination_ports: Option<RangeInclusive<u16>>,
    /// The codepoints with which the packets come.
    pub dscp: Option<Codepoints>,
    /// The headers before the IP packet.
    pub enclosure: Enclosure,
}

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Returns the network of this address, if it has that many bits.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some(Self { address, bits })
    }

    /// Returns whether an address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let agree = |ours: u128, theirs: u128, width: u32| {
            let shift = width - u32::from(self.bits);
            ours.checked_shr(shift).unwrap_or(0) == theirs.checked_shr(shift).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                agree(ours.to_bits().into(), theirs.to_bits().into(), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => agree(ours.to_bits(), theirs.to_bits(), 128),
            _ => false,
        }
    }
}

impl Selector {
    /// Returns whether it selects a packet.
    pub fn selects(&self, fields: &Fields) -> bool {
        let Fields { tuple, dscp, encapsulation, .. } = fields;
        let within = |ports: &Option<RangeInclusive<u16>>, port| {
            ports.as_ref().is_none_or(|ports| ports.contains(&port))
        };
        self.protocol.is_none_or(|protocol| protocol == tuple.protocol)
            && self.dscp.is_none_or(|wanted| wanted.contains(*dscp))
            && within(&self.source_ports, tuple.source_port)
            && within(&self.destination_ports, tuple.destination_port)
            && self.source.is_none_or(|network| network.contains(tuple.source))
            && self.destination.is_none_or(|network| network.contains(tuple.destination))
            && self.enclosure.encloses(encapsulation)
    }
}

/// How many kinds of packets it remembers, in a direct-mapped cache: neither many rules nor a flood of new
/// senders makes it slow or large.
const REMEMBERED: usize = 4096;

/// Finds the stream of each packet: the first whose selector takes it.
#[derive(Debug)]
pub struct Classifier {
    rules: Vec<(Selector, u32)>,
    /// Places of rules that ask for a single source port, or else for a single destination port, in the order
    /// of ports and places: with a rule for each of many flows, few are asked about a packet.
    by_source_port: Vec<(u16, usize)>,
    by_destination_port: Vec<(u16, usize)>,
    /// Places of all other rules, in order.
    others: Vec<usize>,
    recent: Box<[Option<Remembered>]>,
}

/// Packets of one sender, codepoint and encapsulation, and their stream, if any rule takes them.
type Remembered = (FiveTuple, Dscp, Encapsulation, Option<u32>);

impl Classifier {
    /// Makes a classifier that asks these rules in order; each names a stream.
    pub fn new(rules: Vec<(Selector, u32)>) -> Self {
        let single = |ports: &Option<RangeInclusive<u16>>| {
            ports.as_ref().filter(|ports| ports.start() == ports.end()).map(|ports| *ports.start())
        };
        let (mut by_source_port, mut by_destination_port, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (rule, _)) in rules.iter().enumerate() {
            match (single(&rule.source_ports), single(&rule.destination_ports)) {
                (Some(port), _) => by_source_port.push((port, place)),
                (None, Some(port)) => by_destination_port.push((port, place)),
                (None, None) => others.push(place),
            }
        }
        by_source_port.sort_unstable();
        by_destination_port.sort_unstable();
        let recent = vec![None; REMEMBERED].into_boxed_slice();
        Self { rules, by_source_port, by_destination_port, others, recent }
    }

    /// Returns the first rule that takes a packet.
    fn first(&self, fields: &Fields) -> Option<u32> {
        let selects = |place: &usize| self.rules[*place].0.selects(fields);
        let with_port = |index: &[(u16, usize)], port| {
            let from = index.partition_point(|&(other, _)| other < port);
            let places =
                index[from..].iter().take_while(|(other, _)| *other == port).map(|&(_, place)| place);
            places.into_iter().find(|place| selects(place))
        };
        let found = [
            with_port(&self.by_source_port, fields.tuple.source_port),
            with_port(&self.by_destination_port, fields.tuple.destination_port),
            self.others.iter().copied().find(|place| selects(place)),
        ];
        found.into_iter().flatten().min().map(|place| self.rules[place].1)
    }

    /// Returns the stream of a packet, if any rule takes it.
    #[inline]
    pub fn stream_of(&mut self, fields: &Fields) -> Option<u32> {
        let Fields { tuple, dscp, encapsulation, .. } = *fields;
        let place = place_of(&tuple, dscp);
        if let Some((known, codepoint, around, stream)) = &self.recent[place]
            && (known, codepoint, around) == (&tuple, &dscp, &encapsulation)
        {
            return *stream;
        }
        let stream = self.first(fields);
        self.recent[place] = Some((tuple, dscp, encapsulation, stream));
        stream
    }
}

impl Fields {
    /// Returns the flow that blocks see the packet as: its five-tuple in its VLAN, path or session, whose
    /// addresses may be another's, too.
    pub fn flow(&self) -> FlowId {
        let network = self.encapsulation.network();
        let folded = network.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        FlowId(self.tuple.flow().0 ^ folded as u32)
    }
}

impl FiveTuple {
    /// Returns the flow that blocks see its packets as, by a hash: two five-tuples share a flow by chance
    /// once in 2^32.
    pub fn flow(&self) -> FlowId {
        FlowId((mixed(self, 0) >> 32) as u32)
    }
}

/// Returns where a packet's stream is remembered.
fn place_of(tuple: &FiveTuple, dscp: Dscp) -> usize {
    (mixed(tuple, dscp.get()) >> 52) as usize % REMEMBERED
}

/// Hashes by Fibonacci's method: the upper bits depend on all that goes in.
fn mixed(tuple: &FiveTuple, more: u8) -> u64 {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64 ^ address.to_bits() as u64,
    };
    let ports = u64::from(tuple.source_port) << 16 | u64::from(tuple.destination_port);
    let rest = u64::from(tuple.protocol) << 40 | u64::from(more) << 32 | ports;
    bits(tuple.source)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(bits(tuple.destination).rotate_left(32))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(rest)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::Ecn;
    use proptest::prelude::*;

    fn fields(last: u8, port: u16, dscp: u8) -> Fields {
        let tuple = FiveTuple {
            source: IpAddr::from([10, 0, 0, last]),
            destination: IpAddr::from([10, 1, 0, 1]),
            protocol: 6,
            source_port: port,
            destination_port: 80,
        };
        let (dscp, encapsulation) = (Dscp::new(dscp).unwrap(), Encapsulation::default());
        let (fragment, hidden, tcp) = (None, false, None);
        Fields { length: 40, dscp, ecn: Ecn::NotCapable, tuple, tcp, fragment, hidden, encapsulation }
    }

    #[test]
    fn the_first_selector_that_takes_a_packet_names_its_stream() {
        let one = Selector { source_ports: Some(5000..=5009), ..Selector::default() };
        let two = Selector { source: Prefix::new([10, 0, 0, 128].into(), 25), ..Selector::default() };
        let three =
            Selector { dscp: Dscp::new(46).map(Codepoints::from), protocol: Some(6), ..Selector::default() };
        let mut classifier = Classifier::new(vec![(one, 1), (two, 2), (three, 3)]);
        for _ in 0..2 {
            assert_eq!(classifier.stream_of(&fields(200, 5009, 46)), Some(1));
            assert_eq!(classifier.stream_of(&fields(200, 5010, 46)), Some(2));
            assert_eq!(classifier.stream_of(&fields(1, 5010, 46)), Some(3));
            assert_eq!(classifier.stream_of(&fields(1, 5010, 0)), None);
        }
    }

    #[test]
    fn a_prefix_has_as_many_bits_as_its_address_at_most() {
        assert_eq!(Prefix::new([10, 0, 0, 0].into(), 33), None);
        let all = Prefix::new([0, 0, 0, 0].into(), 0).unwrap();
        assert!(all.contains([255; 4].into()) && !all.contains([0; 16].into()));
        let one = Prefix::new([1; 16].into(), 128).unwrap();
        assert!(one.contains([1; 16].into()) && !one.contains([2; 16].into()));
    }

    #[test]
    fn each_five_tuple_is_a_flow_in_each_direction() {
        let there = fields(1, 5000, 0).tuple;
        let back = FiveTuple {
            source: there.destination,
            destination: there.source,
            source_port: there.destination_port,
            destination_port: there.source_port,
            ..there
        };
        let other = fields(1, 5001, 0).tuple;
        assert_eq!(there.flow(), fields(1, 5000, 46).tuple.flow());
        assert!(there.flow() != back.flow() && there.flow() != other.flow() && back.flow() != other.flow());
    }

    proptest! {
        #[test]
        fn the_index_by_ports_finds_the_first_rule(
            rules in proptest::collection::vec((0_u8..4, 0_u16..4, 0_u16..3, 0_u8..3), 0..12),
            (last, port, dscp) in (0_u8..8, 0_u16..8, 0_u8..3),
        ) {
            let rule = |&(kind, from, more, codepoint): &(u8, u16, u16, u8)| Selector {
                source_ports: (kind & 1 == 1).then_some(from..=from + more),
                destination_ports: (kind & 2 == 2).then_some(80 - from / 2..=80 - from / 2 + more / 2),
                dscp: (codepoint > 0).then(|| Codepoints::from(Dscp::new(codepoint).unwrap())),
                ..Selector::default()
            };
            let rules: Vec<(Selector, u32)> = rules.iter().map(rule).zip(0..).collect();
            let fields = fields(last, port, dscp);
            let one_by_one = rules.iter().find(|(rule, _)| rule.selects(&fields));
            let expected = one_by_one.map(|&(_, stream)| stream);
            prop_assert_eq!(Classifier::new(rules).stream_of(&fields), expected);
        }

        #[test]
        fn memory_changes_no_answer(packets in proptest::collection::vec((0_u8..8, 0_u16..4, 0_u8..3), 0..200)) {
            let rules = || {
                let by_source = Selector { source: Prefix::new([10, 0, 0, 4].into(), 30), ..Selector::default() };
                let by_port = Selector { source_ports: Some(1..=2), ..Selector::default() };
                vec![(by_source, 7), (by_port, 8)]
            };
            let mut long_lived = Classifier::new(rules());
            for (last, port, dscp) in packets {
                let fields = fields(last, port, dscp);
                prop_assert_eq!(long_lived.stream_of(&fields), Classifier::new(rules()).stream_of(&fields));
            }
        }
    }
}

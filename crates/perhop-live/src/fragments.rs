//! The ports of fragments after the first: remembered from the first one, in bounded memory.

use std::net::IpAddr;

use perhop_core::{Duration, Instant};

use crate::wire::{Fields, Fragment};

/// How many datagrams are remembered, in a direct-mapped table: one that comes later may displace another.
const REMEMBERED: usize = 1024;

/// How long a datagram is remembered: no receiver waits longer for the rest of it (RFC 8200, section 4.5).
const PATIENCE: Duration = Duration::from_secs(60);

/// The datagrams whose first fragment has been seen.
#[derive(Debug)]
pub(crate) struct Fragments(Box<[Option<Entry>]>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    datagram: Datagram,
    seen: Instant,
    protocol: u8,
    ports: (u16, u16),
}

/// What all fragments of a datagram share: addresses, identification, the protocol of IPv4, and the network.
type Datagram = (IpAddr, IpAddr, u32, Option<u8>, u64);

impl Fragments {
    pub(crate) fn new() -> Self {
        Self(vec![None; REMEMBERED].into_boxed_slice())
    }

    /// Remembers a first fragment, and gives a later one the protocol and the ports of its first. Returns
    /// whether the packet now has what its datagram has.
    #[cold]
    pub(crate) fn complete(&mut self, fields: &mut Fields, now: Instant) -> bool {
        let Some(Fragment { identification, protocol, is_first }) = fields.fragment else { return true };
        let tuple = &mut fields.tuple;
        let network = fields.encapsulation.network();
        let datagram = (tuple.source, tuple.destination, identification, protocol, network);
        let entry = &mut self.0[place_of(&datagram)];
        if is_first {
            let ports = (tuple.source_port, tuple.destination_port);
            *entry = Some(Entry { datagram, seen: now, protocol: tuple.protocol, ports });
            return true;
        }
        let known = entry.filter(|known| known.datagram == datagram && now.since(known.seen) < PATIENCE);
        if let Some(Entry { protocol, ports, .. }) = known {
            (tuple.protocol, tuple.source_port, tuple.destination_port) = (protocol, ports.0, ports.1);
        }
        known.is_some()
    }
}

/// Returns where a datagram is remembered. Identifications often count up, so they decide most.
fn place_of((source, destination, identification, protocol, network): &Datagram) -> usize {
    let low = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    };
    let addresses = low(source).wrapping_mul(31).wrapping_add(low(destination));
    let mixed =
        u64::from(addresses) << 32 | u64::from(*identification ^ u32::from(protocol.unwrap_or(0)) << 24);
    ((mixed ^ network).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;
    use proptest::prelude::*;

    /// A UDP datagram's part of IPv4 (RFC 791): identification, offset in eights of bytes, more to come.
    fn part(identification: u16, offset: u16, more: bool) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        packet[6..8].copy_from_slice(&(u16::from(more) << 13 | offset).to_be_bytes());
        packet.extend([0x13, 0x88, 0x00, 0x35, 0, 24, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let sum = crate::wire::checksum(&packet[..20]).to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
        packet
    }

    fn ports(fragments: &mut Fragments, packet: &[u8], at: u64) -> Option<(u8, u16, u16)> {
        let mut fields = parse(packet).unwrap();
        let complete = fragments.complete(&mut fields, Instant::ZERO + Duration::from_secs(at));
        complete.then_some((fields.tuple.protocol, fields.tuple.source_port, fields.tuple.destination_port))
    }

    #[test]
    fn later_fragments_have_the_ports_of_the_first() {
        let mut fragments = Fragments::new();
        assert_eq!(ports(&mut fragments, &part(7, 2, true), 0), None, "it comes before the first");
        assert_eq!(ports(&mut fragments, &part(7, 0, true), 0), Some((17, 5000, 53)));
        assert_eq!(ports(&mut fragments, &part(7, 2, true), 0), Some((17, 5000, 53)));
        assert_eq!(ports(&mut fragments, &part(8, 2, false), 0), None, "of another datagram");
        assert_eq!(ports(&mut fragments, &part(7, 4, false), 59), Some((17, 5000, 53)));
        assert_eq!(ports(&mut fragments, &part(7, 4, false), 60), None, "too old");
        assert_eq!(ports(&mut fragments, &part(9, 0, false), 0), Some((17, 5000, 53)), "it is whole");
    }

    #[test]
    fn those_of_ipv6_agree_in_identification_whatever_follows() {
        // RFC 8200, section 4.5: next header, reserved, offset and more, identification. Options precede UDP.
        let part = |next: u8, offset: u16, more: bool, payload: &[u8]| {
            let mut packet = vec![0x60, 0, 0, 0, 0, 8 + payload.len() as u8, 44, 64];
            packet.extend([0xfd; 32]);
            packet.extend([next, 0]);
            packet.extend((offset << 3 | u16::from(more)).to_be_bytes());
            packet.extend([0xab, 0xcd, 0, 1]);
            packet.extend(payload);
            packet
        };
        let mut fragments = Fragments::new();
        let first = [&[17, 0, 1, 4, 0, 0, 0, 0][..], &[0x13, 0x88, 0x00, 0x35, 0, 16, 0, 0]].concat();
        assert_eq!(ports(&mut fragments, &part(60, 0, true, &first), 0), Some((17, 5000, 53)));
        assert_eq!(ports(&mut fragments, &part(60, 2, false, &[0xff; 8]), 0), Some((17, 5000, 53)));
        let atomic = parse(&part(60, 0, false, &first)).unwrap();
        assert_eq!((atomic.fragment, atomic.tuple.source_port), (None, 5000), "RFC 6946");
    }

    proptest! {
        /// Bounded memory loses some, and never gives a fragment the ports of another datagram.
        #[test]
        fn no_flood_gives_wrong_ports(parts in proptest::collection::vec((0_u16..3000, 0_u16..3, any::<bool>()), 1..400)) {
            let mut fragments = Fragments::new();
            for (identification, offset, more) in parts {
                let mut packet = part(identification, offset, more);
                let port = identification.to_be_bytes();
                packet[20..22].copy_from_slice(&port);
                if let Some((_, source, _)) = ports(&mut fragments, &packet, 0) {
                    prop_assert_eq!(source, identification);
                }
            }
            prop_assert_eq!(fragments.0.len(), REMEMBERED);
        }
    }
}

//! Bytes from a network: they are read or refused, and a mark changes nothing but codepoint and ECN field.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perhop_core::{Dscp, Ecn};
use perhop_live::wire::{self, Fields};

fuzz_target!(|input: &[u8]| {
    let Some((&class, bytes)) = input.split_first() else { return };
    let dscp = Dscp::new(class >> 2).expect("six bits");
    let ecn = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(class & 3)];
    let mut packet = bytes.to_vec();
    wire::mark(&mut packet, dscp, ecn);
    let Ok(before) = wire::parse(bytes) else { return };
    assert_eq!(wire::parse(&bytes[..usize::from(before.length)]), Ok(before), "what lies beyond it counts");
    assert_eq!(wire::parse(&packet), Ok(Fields { dscp, ecn, ..before }));
    wire::mark(&mut packet, before.dscp, before.ecn);
    assert_eq!(wire::parse(&packet), Ok(before));
    // A checksum of zero has two forms (RFC 1624, section 3); everything else is as it was.
    if bytes[0] >> 4 == 4 {
        packet[10..12].copy_from_slice(&bytes[10..12]);
    }
    assert_eq!(packet, bytes);
});

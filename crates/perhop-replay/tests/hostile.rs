//! Any bytes as a capture: what the fuzz target looks for at length, in short.

use std::io::{self, Read};

use perhop_pcap::read::Capture;
use proptest::prelude::*;

use crate::files::{Frame, Order, ethernet, interface, packet, pcap, pcapng, section, udp, udp6};
use crate::{inputs, seeds};

#[test]
fn the_seeds_of_the_fuzz_target_hold() {
    assert!(seeds::replay("replay", |bytes| assert!(inputs::capture(bytes) > 0)) > 0);
}

/// A good file of some kind.
fn good(kind: usize) -> Vec<u8> {
    let frame = |number: u64| {
        let port = (number % 3) as u16 + 5000;
        let bytes = if number.is_multiple_of(2) { udp(port, 700, 46, 2) } else { udp6(port, 300, 10, 0) };
        Frame::new(number * 200, if kind.is_multiple_of(2) { ethernet(1, &bytes) } else { bytes })
    };
    let frames: Vec<Frame> = (0..6).map(frame).collect();
    match kind {
        0 => pcap(Order::Little, false, 1, &frames),
        1 => pcap(Order::Big, true, 101, &frames),
        2 => {
            let mut file = [section(Order::Little), interface(Order::Little, 1, &[(9, &[6])])].concat();
            for frame in &frames {
                file.extend(packet(Order::Little, 0, frame));
            }
            file
        }
        _ => pcapng(Order::Big, &frames),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        kind in 0_usize..4,
        keep in 0_usize..200,
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut file = good(kind);
        file.truncate(keep);
        file.extend(noise);
        inputs::capture(&file);
    }

    #[test]
    fn a_good_file_with_a_slip_is_read_or_refused(
        kind in 0_usize..4,
        slips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
    ) {
        let mut file = good(kind);
        for (at, byte) in slips {
            let at = at.index(file.len());
            file[at] = byte;
        }
        inputs::capture(&file);
        inputs::capture(&file[..end.index(file.len() + 1)]);
    }
}

/// Some bytes, then so many zeros that no memory holds them.
struct Endless<'a>(&'a [u8], u64);

impl Read for Endless<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if !self.0.is_empty() {
            return self.0.read(room);
        }
        let count = room.len().min(usize::try_from(self.1).unwrap_or(usize::MAX));
        room[..count].fill(0);
        self.1 -= count as u64;
        Ok(count)
    }
}

#[test]
fn a_block_of_a_gigabyte_is_passed_over_and_not_kept() {
    let order = Order::Little;
    let length: u32 = 1 << 30;
    // An enhanced packet block of a gigabyte whose packet fills it, and which is cut off at its end.
    let head = [order.u32(6), order.u32(length), order.u32(0), order.u32(0), order.u32(0)];
    let lengths = [order.u32(length - 32), order.u32(length - 32)];
    let start = [section(order), interface(order, 101, &[]), head.concat(), lengths.concat()].concat();
    let mut capture = Capture::open(Endless(&start, u64::from(length) - 32)).unwrap();
    let problem = capture.read_next().unwrap_err().to_string();
    assert_eq!(problem, "is cut off after its header, before any whole packet");
    // The same with the length behind it: zeros are not that length.
    let mut capture = Capture::open(Endless(&start, u64::from(length))).unwrap();
    let problem = capture.read_next().unwrap_err().to_string();
    assert!(problem.contains("1073741824 before it and 0 behind it"), "{problem}");
}

//! Real packets through a plane, by each kind of device: needs root, and says so where it is skipped.

#![expect(clippy::disallowed_types, reason = "transfers by the kernel's sockets")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use perhop_core::{Duration, Instant};
use perhop_live::{Clock, Hop, Plane, PlaneSpec, Runner};

use crate::hosts::{ADDRESSES, Hosts, Way};
use crate::script;

/// The length of a transfer.
const BYTES: usize = 20_000_000;
const PORT: u16 = 7000;

/// A plane whose queue drops some packets of a transfer.
fn spec() -> PlaneSpec {
    let queue = script::aqm(("drop-tail", r#"{"limit": "100p"}"#));
    let link = |name| script::link(name, "400Mbps", Duration::from_millis(1), queue.clone());
    let stream = |device| script::across(device, vec![Hop::Link(device)]);
    PlaneSpec {
        devices: 2,
        mtu: 1500,
        buffers: 4096,
        window: (Instant::ZERO, Instant::NEVER),
        links: vec![link("there"), link("back")],
        streams: vec![stream(0), stream(1)],
        ..PlaneSpec::default()
    }
}

fn byte(place: usize) -> u8 {
    (place.wrapping_mul(0x9e37_79b9) >> 13) as u8
}

#[test]
fn a_transfer_arrives_as_it_was_sent_by_every_way() {
    for (name, way) in Way::ALL {
        let (hosts, devices) = match Hosts::join(way) {
            Ok(joined) => joined,
            // A container without the right to make interfaces, or without TUN.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => {
                eprintln!("skipped: {name}: {error}");
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let stop = AtomicBool::new(false);
        let mut runner = Runner::new(Plane::new(spec(), 1), devices, Clock::start());
        thread::scope(|scope| {
            let listener = hosts.within(1, || TcpListener::bind((ADDRESSES[1], PORT))).unwrap();
            let (hosts, stop) = (&hosts, &stop);
            scope.spawn(move || {
                let bytes: Vec<u8> = (0..BYTES).map(byte).collect();
                let mut stream = hosts.within(0, || TcpStream::connect((ADDRESSES[1], PORT))).unwrap();
                stream.write_all(&bytes).unwrap();
            });
            scope.spawn(move || {
                let mut bytes = Vec::new();
                listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
                stop.store(true, Ordering::Relaxed);
                assert_eq!(bytes.len(), BYTES, "{name}");
                assert!(bytes.iter().enumerate().all(|(place, is)| *is == byte(place)), "{name}");
            });
            runner.run(Instant::NEVER, stop, &mut ()).unwrap();
        });
        runner.plane().balance().unwrap();
        let counters = runner.plane().counters();
        let read = counters.devices()[0].0;
        assert!(read.packets >= BYTES.div_ceil(1460) as u64, "{name}: wire packets: {read:?}");
        assert!(runner.report().aside.iter().all(|aside| aside.merged + aside.too_long == 0), "{name}");
    }
}

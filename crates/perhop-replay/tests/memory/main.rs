//! Memory does not grow with the capture. A program of its own: it counts allocations.

#![expect(clippy::disallowed_macros, reason = "it counts the allocations of its own thread")]

#[path = "../../../perhop-core/tests/common/allocations.rs"]
mod allocations;
#[path = "../common/files.rs"]
mod files;

use perhop_replay::{By, Request, replay};
use perhop_sim::Watch;

use crate::allocations::allocations;
use crate::files::{Frame, Order, pcapng, udp};

#[test]
fn memory_does_not_grow_with_the_capture() {
    // The same packets again and again: after the first round everything has its place, and nothing is
    // allocated for a packet.
    let file = |rounds: u64| {
        let frame = |number: u64| {
            let port = 5000 + (number % 50) as u16;
            Frame::new(number * 900, udp(port, 1000, [0, 10, 46][(number % 3) as usize], 2))
        };
        pcapng(Order::Little, &(0..rounds * 150).map(frame).collect::<Vec<_>>())
    };
    let options = r#"{"meter": {"marker": "trtcm", "rate": "1Mbps", "burst": "5kB", "peak-rate": "2Mbps", "peak-burst": "5kB"},
        "queue": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "20p", "ecn": true}, "rate": "8Mbps"}"#;
    let plan = Request::plan(options, None).unwrap();
    let taken = [file(10), file(100)].map(|file| {
        allocations(|| _ = replay(&file[..], &plan, By::Simulator, false, &Watch::default()).unwrap())
    });
    assert_eq!(taken[0], taken[1]);
}

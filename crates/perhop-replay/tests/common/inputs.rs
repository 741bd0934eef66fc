//! What fuzzers and tests do with any bytes as a capture.
#![allow(dead_code, reason = "each user needs its part")]

use perhop_pcap::read::Capture;
use perhop_replay::{By, ReplayError, Request, replay};
use perhop_sim::Watch;

/// Any bytes as a capture: they are read or refused in one line, no packet is longer than a frame, and a
/// replay of what is whole conserves its packets and is the same through the data plane.
///
/// Returns how many packets were read.
pub fn capture(bytes: &[u8]) -> u64 {
    let mut packets = 0;
    match Capture::open(bytes) {
        Err(problem) => is_one_line(&problem.to_string()),
        Ok(mut capture) => loop {
            match capture.read_next() {
                Ok(Some(record)) => {
                    packets += 1;
                    assert_eq!(record.number, packets);
                    assert!(record.bytes.len() <= 65_535 + 128 && record.bytes.len() <= bytes.len());
                    assert!(record.length as usize >= record.bytes.len());
                }
                Ok(None) => break,
                Err(problem) => break is_one_line(&problem.to_string()),
            }
        },
    }
    let options = r#"{"meter": {"marker": "trtcm", "rate": "1Mbps", "burst": "5kB", "peak-rate": "2Mbps", "peak-burst": "5kB", "out": "drop-red"},
        "queue": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2, "ecn": true}, "rate": "8Mbps", "allow-cut": true}"#;
    let plan = Request::plan(options, None).expect("it is good");
    let [one, other] =
        [By::Simulator, By::DataPlane].map(|by| replay(bytes, &plan, by, true, &Watch::default()));
    match (one, other) {
        (Ok(one), Ok(other)) => assert_eq!(one, other),
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            assert!(matches!(one, ReplayError::Capture(_)), "{one:?}");
            is_one_line(&one.to_string());
        }
        (one, other) => panic!("{one:?} {other:?}"),
    }
    packets
}

fn is_one_line(text: &str) {
    assert!(!text.is_empty() && !text.contains('\n'), "{text}");
}

//! Parameters as a network would have them, with which the benchmarks measure every block; `conformance.rs`
//! sees to it that none is left out. A row's name is the block's, followed where one block is measured twice
//! by what distinguishes the rows.
//!
//! Queues of about 50 packets of 1000 bytes meet these rules at 8 Mbit/s, half of the packets IN and asking
//! for the green service: early tests are at work, and most packets pass.
#![allow(dead_code, reason = "each user needs its part")]

/// Queue managers, each under a FIFO.
pub const AQMS: &[(&str, &str)] = &[
    ("drop-tail", r#"{"limit": "868p"}"#),
    ("red", r#"{"thresholds": "30/90/0.05", "limit": "868p"}"#),
    ("red adaptive", r#"{"target-delay": "50ms", "limit": "868p", "gentle": true, "adaptive": true}"#),
    ("rio", r#"{"in": "390/694/0.02", "total": "30/90/0.05", "limit": "868p"}"#),
    (
        "rio-plus-out",
        r#"{"in": "390/694/0.02", "total": "30/90/0.05", "out": "10/130/0.01", "limit": "868p"}"#,
    ),
    (
        "rio-three",
        r#"{"in": "390/694/0.02", "out-in": "30/90/0.02", "out-out": "30/90/0.05", "limit": "868p"}"#,
    ),
    ("inverse-rate", r#"{"in": "390/694/0.02", "total": "30/90/0.05", "limit": "868p"}"#),
    ("abe", r#"{"thresholds": "0/400/0.02", "limit": "868p", "green-limit": "60p"}"#),
    ("wred", r#"{"green": "40/90/0.02", "yellow": "30/90/0.05", "red": "10/90/0.1", "limit": "868p"}"#),
    (
        "wred profiles",
        r#"{"profiles": [{"match": {"color": "green"}, "curve": "interpolate 30/0, 60/0.02, 90/0.1"}, {"match": {"precedence": 0}, "curve": "segmented 20/0.01, 60/0.05"}, {"curve": "30/90/0.05"}], "limit": "868p"}"#,
    ),
    ("wred out", r#"{"yellow": "30/90/0.05", "red": "30/90/0.05", "limit": "868p"}"#),
    ("dwred", r#"{"out": "30/90/0.05", "limit": "868p"}"#),
    ("codel", r#"{"target": "60ms", "limit": "868p"}"#),
    ("codel linux", r#"{"law": "linux", "target": "60ms", "limit": "868p"}"#),
    ("pie", r#"{"target": "50ms", "limit": "868p"}"#),
    ("pie docsis", r#"{"law": "docsis", "target": "50ms", "limit": "120p"}"#),
    ("pie linux", r#"{"law": "linux", "target": "50ms", "limit": "868p"}"#),
    ("blue", r#"{"limit": "60p"}"#),
    ("cobalt", r#"{"target": "60ms", "limit": "868p"}"#),
    ("pi2", r#"{"target": "50ms", "limit": "868p"}"#),
];

/// Schedulers.
pub const SCHEDULERS: &[(&str, &str)] = &[
    ("fifo", r#"{"rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}"#),
    ("edf", r#"{"rule": {"aqm": "abe", "thresholds": "0/400/0.02", "limit": "868p", "green-limit": "30p"}}"#),
    ("dsd", r#"{"bound": "30ms", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}"#),
    (
        "dsd late",
        r#"{"bound": "30ms", "green-drop": "late", "control": "1s", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}"#,
    ),
    (
        "priority",
        r#"{"queues": [{"name": "green", "match": {"service": "green"}, "cap": "4Mbps", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}, {"name": "rest", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}]}"#,
    ),
    (
        "drr",
        r#"{"queues": [{"name": "green", "match": {"service": "green"}, "weight": 2, "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}, {"name": "rest", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}]}"#,
    ),
    (
        "wfq",
        r#"{"queues": [{"name": "green", "match": {"service": "green"}, "rate": "3Mbps", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}, {"name": "rest", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}]}"#,
    ),
    ("fq-codel", r#"{"limit": "868p", "target": "60ms"}"#),
    (
        "shaper",
        r#"{"rate": "7.9Mbps", "burst": "40kB", "queue": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}"#,
    ),
    ("dualpi2", r#"{"target": "60ms", "limit": "868p"}"#),
    (
        "htb",
        r#"{"classes": [{"name": "link", "rate": "8Mbps", "classes": [
            {"name": "green", "match": {"service": "green"}, "rate": "3Mbps", "ceil": "8Mbps", "queue": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}},
            {"name": "rest", "rate": "5Mbps", "ceil": "8Mbps", "queue": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}
        ]}]}"#,
    ),
    (
        "llq",
        r#"{"priority": [{"name": "green", "match": {"service": "green"}, "rate": "3Mbps", "rule": {"aqm": "drop-tail", "limit": "60p"}}],
            "queue": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}"#,
    ),
    (
        "drr protection",
        r#"{"queues": [{"name": "green", "match": {"service": "green"}, "queue-protection": {}, "rule": {"aqm": "drop-tail", "limit": "60p"}}, {"name": "rest", "rule": {"aqm": "red", "thresholds": "0/400/0.02", "limit": "868p"}}]}"#,
    ),
];

/// Meters, of a flow that sends twice its profile.
pub const METERS: &[(&str, &str)] = &[
    ("token-bucket", r#"{"rate": "4Mbps", "burst": "40kB"}"#),
    ("tsw", r#"{"rate": "4Mbps"}"#),
    ("tsw deterministic", r#"{"rate": "4Mbps", "rule": "deterministic"}"#),
    ("three-precedence", r#"{"rate": "4Mbps", "split": "proportional"}"#),
    ("twam", r#"{"rate": "4Mbps"}"#),
    ("srtcm", r#"{"rate": "4Mbps", "burst": "40kB", "excess-burst": "40kB"}"#),
    ("trtcm", r#"{"rate": "4Mbps", "burst": "40kB", "peak-rate": "6Mbps", "peak-burst": "40kB"}"#),
    ("rfc4115", r#"{"rate": "4Mbps", "burst": "40kB", "excess-rate": "2Mbps", "excess-burst": "40kB"}"#),
    ("tswtcm", r#"{"rate": "4Mbps", "peak-rate": "6Mbps"}"#),
];

/// The block that a row measures.
pub fn block(row: &str) -> &str {
    row.split(' ').next().unwrap_or(row)
}

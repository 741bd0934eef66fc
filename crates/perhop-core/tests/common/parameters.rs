//! A table or more for each block: ordinary parameters, and ones at the edges of what is allowed. The
//! conformance harness runs over them, and so do the live data plane's tests and fuzz targets.
#![allow(dead_code, reason = "each user needs its part")]

/// Queue managers that cannot notify the ends of congestion: they only drop.
pub const WITHOUT_ECN: &[&str] = &["drop-tail"];

/// Queue managers.
pub const AQMS: &[(&str, &str)] = &[
    ("drop-tail", r#"{"limit": "7p"}"#),
    ("drop-tail", r#"{"limit": "4kB"}"#),
    ("drop-tail", r#"{"limit": "0p"}"#),
    ("red", r#"{"thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2}"#),
    ("red", r#"{"thresholds": "2kB/6kB/0.1", "limit": "9kB", "weight": 0.2, "gentle": true, "wait": false}"#),
    ("red", r#"{"thresholds": "3/3/1", "limit": "9p", "weight": 1}"#),
    ("red", r#"{"thresholds": "0/6/1", "limit": "9p", "weight": 1, "ecn": true}"#),
    (
        "red",
        r#"{"thresholds": "0B/3kB/1", "limit": "9p", "weight": 1, "ecn": "mark-only", "scale-by-size": false}"#,
    ),
    ("red", r#"{"thresholds": "0/6/1", "limit": "9p", "weight": 1, "spare-short-queue": true}"#),
    ("red", r#"{"thresholds": "0B/2kB/1", "limit": "1p", "spare-short-queue": true, "wait": false}"#),
    (
        "red",
        r#"{"thresholds": "1/6/0.5", "limit": "9p", "weight": 0.5, "adaptive": true, "adapt-interval": "1ms", "gentle": true}"#,
    ),
    (
        "red",
        r#"{"target-delay": "1ns", "limit": "20p", "adaptive": true, "adapt-interval": "2ms", "adapt-increment": 1, "adapt-factor": 0.001, "adapt-least": 0, "adapt-most": 1, "ecn": true}"#,
    ),
    ("rio", r#"{"in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p", "weight": 0.2}"#),
    (
        "rio",
        r#"{"in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p", "weight": 1, "coupling": "decoupled", "averages": "own-class"}"#,
    ),
    ("rio", r#"{"in": "0/0/0", "total": "0/0/1", "limit": "9p", "averages": "in-arrivals", "wait": false}"#),
    (
        "rio-plus-out",
        r#"{"in": "4/7/0.02", "total": "1/3/0.5", "out": "1/2/0.1", "limit": "9p", "weight": 0.2}"#,
    ),
    (
        "rio-plus-out",
        r#"{"in": "4kB/7kB/0.02", "total": "1kB/3kB/0.5", "out": "1kB/2kB/0.1", "limit": "9kB", "weight": 1, "averages": "own-class"}"#,
    ),
    (
        "rio-three",
        r#"{"in": "4/7/0.02", "out-in": "2/5/0.5", "out-out": "1/3/0.5", "limit": "9p", "weight": 0.2}"#,
    ),
    (
        "rio-three",
        r#"{"in": "0/0/1", "out-in": "0/0/0", "out-out": "1/1/1", "limit": "9p", "weight": 1, "averages": "own-class"}"#,
    ),
    (
        "rio-three",
        r#"{"in": "4/7/0.02", "out-in": "2/5/0.5", "out-out": "1/3/0.5", "limit": "9p", "weight": 0.2, "out-in-average": "in-and-out-in"}"#,
    ),
    ("inverse-rate", r#"{"in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p", "weight": 0.2}"#),
    (
        "inverse-rate",
        r#"{"in": "4kB/7kB/0.02", "total": "1kB/3kB/0.5", "limit": "9kB", "reading": "flat", "k": 1, "m": 1, "r-min": "1bps"}"#,
    ),
    ("abe", r#"{"thresholds": "0/6/0.2", "limit": "9p", "weight": 0.2, "green-limit": "2p", "wait": false}"#),
    (
        "abe",
        r#"{"thresholds": "0B/6kB/1", "limit": "9kB", "weight": 1, "law": "integral", "root": 1000, "interval": "1ns", "gain": 1, "losses": "red", "largest": 9, "alpha": 1}"#,
    ),
    ("abe", r#"{"thresholds": "0/6/0.2", "limit": "9p", "weight": 0.2, "alpha-on": "initial"}"#),
    ("abe", r#"{"thresholds": "0/6/0.2", "limit": "9p", "weight": 0.2, "spread": false, "wait": false}"#),
    ("wred", r#"{"green": "4/7/0.02", "yellow": "1/5/0.1", "limit": "9p", "weight": 0.2}"#),
    ("wred", r#"{"red": "0B/0B/1", "limit": "9kB", "weight": 1}"#),
    ("wred", r#"{"yellow": "0/0/0", "limit": "0p"}"#),
    (
        "wred",
        r#"{"green": "interpolate 0/0, 2/0.1, 6/0.5, 9/1", "yellow": "segmented 1/0.1, 4/0.4", "limit": "9p", "weight": 0.2, "ecn": "mark-above-max"}"#,
    ),
    (
        "wred",
        r#"{"profiles": [{"match": {"precedence": [0, 1], "not": {"color": "red"}}, "curve": "1kB/3kB/0.5", "limit": "6kB", "ecn": "mark-only"}, {"match": {"traffic-class": 0}}, {"curve": "segmented 0B/1"}], "limit": "9kB", "scale-by-size": false}"#,
    ),
    ("wred", r#"{"profiles": [{"limit": "0p"}], "limit": "9p"}"#),
    (
        "wred",
        r#"{"yellow": "1/6/0.5", "limit": "9p", "weight": 0.5, "drop-at": "head", "ecn": "mark-only-below-max", "profiles": [{"match": {"color": "green"}, "curve": "segmented 2/0.2", "limit": "7p"}]}"#,
    ),
    ("dwred", r#"{"out": "1/5/0.1", "limit": "9p", "weight": 0.2}"#),
    ("dwred", r#"{"out": "0/0/0", "limit": "9p", "share": 1, "least": 3, "green": "above"}"#),
    ("codel", r#"{"target": "2ms", "interval": "5ms", "mtu": "100B", "limit": "9p"}"#),
    ("codel", r#"{"target": "0s", "interval": "1ns", "mtu": "0B", "limit": "9kB", "ecn": true}"#),
    ("codel", r#"{"law": "linux", "target": "2ms", "interval": "5ms", "mtu": "100B", "limit": "9p"}"#),
    (
        "codel",
        r#"{"law": "linux", "target": "0s", "interval": "1ns", "mtu": "0B", "limit": "9p", "ecn": true}"#,
    ),
    (
        "pie",
        r#"{"target": "1ms", "update": "1ms", "max-burst": "3ms", "alpha": 20, "beta": 200, "mean-packet": "300B", "limit": "12p"}"#,
    ),
    (
        "pie",
        r#"{"law": "basic", "target": "1ns", "update": "1ms", "max-burst": "0s", "alpha": 1000, "beta": 1000, "mean-packet": "1B", "limit": "9kB", "ecn": true, "mark-below": 1}"#,
    ),
    (
        "pie",
        r#"{"law": "docsis", "target": "1ms", "update": "2ms", "max-burst": "3ms", "alpha": 20, "beta": 200, "mean-packet": "300B", "limit": "9kB"}"#,
    ),
    (
        "pie",
        r#"{"law": "linux", "target": "1ms", "update": "1ms", "max-burst": "3ms", "alpha": 20, "beta": 200, "mean-packet": "300B", "limit": "12p", "ecn": true}"#,
    ),
    ("blue", r#"{"increment": 0.2, "decrement": 0.05, "freeze": "2ms", "limit": "9p"}"#),
    (
        "blue",
        r#"{"increment": 1, "decrement": 1, "freeze": "0s", "threshold": "2kB", "limit": "9p", "ecn": true}"#,
    ),
    ("cobalt", r#"{"target": "2ms", "interval": "5ms", "mtu": "100B", "increment": 0.1, "limit": "9p"}"#),
    (
        "cobalt",
        r#"{"target": "0s", "interval": "1ns", "increment": 1, "decrement": 0, "limit": "9kB", "ecn": true}"#,
    ),
    ("pi2", r#"{"target": "2ms", "rtt-max": "6ms", "limit": "9p"}"#),
    (
        "pi2",
        r#"{"target": "1ns", "update": "1ms", "alpha": 1000, "beta": 1000, "spread": false, "ecn": true, "mark-below": 1, "limit": "9kB"}"#,
    ),
];

/// Schedulers; their paths are named `gold` and `silver`.
pub const SCHEDULERS: &[(&str, &str)] = &[
    ("fifo", r#"{"rule": {"aqm": "drop-tail", "limit": "7p"}}"#),
    ("edf", r#"{"blue": "5ms", "rule": {"aqm": "drop-tail", "limit": "7p"}}"#),
    (
        "edf",
        r#"{"blue": "1ns", "green": "1ns", "rule": {"aqm": "abe", "thresholds": "0/6/0.2", "limit": "9p", "green-limit": "0p"}}"#,
    ),
    ("dsd", r#"{"bound": "5ms", "rule": {"aqm": "drop-tail", "limit": "7p"}}"#),
    (
        "dsd",
        r#"{"bound": "2ms", "bias": 0.5, "green-drop": "late", "refused-green": "admit", "control": "1ms", "rule": {"aqm": "red", "thresholds": "2kB/6kB/0.1", "limit": "9kB", "weight": 0.2}}"#,
    ),
    (
        "dsd",
        r#"{"bound": "3ms", "rule": {"aqm": "red", "thresholds": "0/6/0.5", "limit": "9p", "weight": 0.2, "ecn": true}}"#,
    ),
    (
        "dsd",
        r#"{"bound": "0s", "bias": 0, "control": "1ns", "step": 1, "rule": {"aqm": "drop-tail", "limit": "0p"}}"#,
    ),
    (
        "priority",
        r#"{"queues": [
            {"name": "ef", "match": {"dscp": 3}, "cap": "2Mbps", "rule": {"aqm": "drop-tail", "limit": "5p"}},
            {"name": "path", "match": {"path": "gold"}, "rule": {"aqm": "rio", "in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p", "weight": 0.2}},
            {"name": "rest", "cap": "3Mbps", "rule": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2}}
        ]}"#,
    ),
    (
        "priority",
        r#"{"excess": "idle", "burst": "0B", "queues": [
            {"name": "green", "match": {"service": "green", "color": "green"}, "cap": "1bps", "rule": {"aqm": "drop-tail", "limit": "5p"}},
            {"name": "rest", "cap": "999Gbps", "rule": {"aqm": "drop-tail", "limit": "9p"}}
        ]}"#,
    ),
    (
        "priority",
        r#"{"excess": "idle", "meter": "tsw", "window": "1ns", "queues": [
            {"name": "green", "match": {"color": "green"}, "cap": "1bps", "rule": {"aqm": "drop-tail", "limit": "5p"}},
            {"name": "rest", "cap": "1Mbps", "rule": {"aqm": "drop-tail", "limit": "9p"}}
        ]}"#,
    ),
    (
        "drr",
        r#"{"queues": [
            {"name": "gold", "match": {"path": "gold"}, "rate": "4Mbps", "rule": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2}},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "7p"}}
        ]}"#,
    ),
    (
        "drr",
        r#"{"queues": [
            {"name": "a", "match": {"precedence": 0, "not": {"dscp": [1, 2], "color": "red"}}, "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "b", "match": {"traffic-class": [0, 7]}, "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "c", "rule": {"aqm": "wred", "yellow": "1/6/0.5", "limit": "9p", "drop-at": "head"}}
        ]}"#,
    ),
    (
        "drr",
        r#"{"quantum": "1B", "queues": [
            {"name": "a", "match": {"dscp": 0}, "weight": 4294967295, "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "b", "match": {"service": "green", "color": "red"}, "weight": 1, "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "c", "rate": "1bps", "rule": {"aqm": "drop-tail", "limit": "7p"}}
        ]}"#,
    ),
    (
        "wfq",
        r#"{"queues": [
            {"name": "gold", "match": {"path": "gold"}, "rate": "4Mbps", "rule": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2}},
            {"name": "silver", "match": {"path": "silver", "dscp": 0}, "weight": 2, "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "7p"}}
        ]}"#,
    ),
    (
        "wfq",
        r#"{"queues": [
            {"name": "a", "match": {"color": "red"}, "rate": "999Gbps", "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "b", "rate": "1bps", "rule": {"aqm": "drop-tail", "limit": "7p"}}
        ]}"#,
    ),
    (
        "drr",
        r#"{"queues": [
            {"name": "nqb", "match": {"dscp": 3}, "queue-protection": {"critical-delay": "1us", "critical-score": "1us", "max-th": "0s", "buckets": 2}, "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "rest", "rule": {"aqm": "codel", "target": "2ms", "interval": "5ms", "limit": "9p"}}
        ]}"#,
    ),
    (
        "wfq",
        r#"{"queues": [
            {"name": "nqb", "match": {"dscp": 3}, "queue-protection": {"critical-delay": "1ns", "critical-score": "1ns", "max-score": "1ns", "aging-exponent": 1, "buckets": 16384, "attempts": 4}, "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "7p"}}
        ]}"#,
    ),
    (
        "fq-codel",
        r#"{"flows": 2, "quantum": "300B", "limit": "9p", "batch": 3, "target": "2ms", "interval": "5ms", "mtu": "100B"}"#,
    ),
    (
        "fq-codel",
        r#"{"flows": 8, "hash": "set-associative", "quantum": "1B", "memory-limit": "9kB", "law": "linux", "backlog": "queue", "mtu": "0B", "target": "0s", "interval": "1ns", "ecn": false}"#,
    ),
    ("fq-codel", r#"{"flows": 1, "hash": "exact", "limit": "7p", "batch": 1, "quantum": "1GB"}"#),
    (
        "shaper",
        r#"{"rate": "3Mbps", "burst": "3kB", "queue": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2}}"#,
    ),
    (
        "shaper",
        r#"{"rate": "7Mbps", "burst": "2kB", "queue": {"scheduler": "drr", "queues": [
            {"name": "path", "match": {"path": "gold"}, "rate": "2Mbps", "rule": {"aqm": "codel", "target": "2ms", "interval": "5ms", "limit": "9p"}},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "7p"}}
        ]}}"#,
    ),
    (
        "shaper",
        r#"{"rate": "1bps", "burst": "0B", "mtu": "0B", "queue": {"scheduler": "edf", "rule": {"aqm": "drop-tail", "limit": "3p"}}}"#,
    ),
    (
        "shaper",
        r#"{"rate": "4Mbps", "burst": "9GB", "queue": {"scheduler": "priority", "excess": "idle", "queues": [
            {"name": "ef", "match": {"dscp": 3}, "cap": "1Mbps", "rule": {"aqm": "drop-tail", "limit": "5p"}},
            {"name": "rest", "cap": "2Mbps", "rule": {"aqm": "drop-tail", "limit": "9p"}}
        ]}}"#,
    ),
    (
        "htb",
        r#"{"classes": [{"name": "link", "rate": "8Mbps", "classes": [
            {"name": "ef", "match": {"dscp": 3}, "rate": "1Mbps", "ceil": "2Mbps", "prio": 1, "queue": {"aqm": "drop-tail", "limit": "5p"}},
            {"name": "both", "rate": "5Mbps", "ceil": "7Mbps", "burst": "3kB", "cburst": "2kB", "classes": [
                {"name": "path", "match": {"path": "gold"}, "rate": "3Mbps", "ceil": "8Mbps", "quantum": "300B", "queue": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2}},
                {"name": "rest", "rate": "1Mbps", "ceil": "5Mbps", "queue": {"aqm": "codel", "target": "2ms", "interval": "5ms", "limit": "9p"}}
            ]}
        ]}]}"#,
    ),
    (
        "htb",
        r#"{"r2q": 4294967295, "classes": [
            {"name": "a", "match": {"color": "red"}, "rate": "1bps", "burst": "0B", "cburst": "0B", "prio": 7, "quantum": "1B", "queue": {"aqm": "drop-tail", "limit": "5p"}},
            {"name": "b", "rate": "999Gbps", "burst": "9GB", "cburst": "9GB", "queue": {"scheduler": "fq-codel", "flows": 2, "quantum": "300B", "limit": "9p", "batch": 3}}
        ]}"#,
    ),
    (
        "htb",
        r#"{"classes": [
            {"name": "slow", "match": {"color": "green"}, "rate": "1Mbps", "ceil": "9Mbps", "queue": {"scheduler": "shaper", "rate": "2Mbps", "burst": "2kB", "queue": {"aqm": "drop-tail", "limit": "5p"}}},
            {"name": "few", "rate": "4Mbps", "classes": [
                {"name": "one", "rate": "4Mbps", "queue": {"scheduler": "llq",
                    "priority": [{"name": "ef", "match": {"dscp": 3}, "rate": "1Mbps", "rule": {"aqm": "drop-tail", "limit": "5p"}}],
                    "queue": {"scheduler": "wfq", "queues": [
                        {"name": "gold", "match": {"path": "gold"}, "rate": "1Mbps", "rule": {"aqm": "drop-tail", "limit": "7p"}},
                        {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "7p"}}]}}}
            ]}
        ]}"#,
    ),
    (
        "llq",
        r#"{"priority": [{"name": "ef", "match": {"dscp": 3}, "rate": "1Mbps", "burst": "2kB", "rule": {"aqm": "drop-tail", "limit": "5p"}}],
            "queue": {"aqm": "red", "thresholds": "2/6/0.1", "limit": "9p", "weight": 0.2}}"#,
    ),
    (
        "llq",
        r#"{"priority": [
            {"name": "path", "match": {"path": "gold"}, "rate": "1bps", "burst": "0B", "police": "always", "rule": {"aqm": "drop-tail", "limit": "5p"}},
            {"name": "red", "match": {"color": "red"}, "rule": {"aqm": "codel", "target": "2ms", "interval": "5ms", "limit": "9p"}}
        ], "queue": {"scheduler": "shaper", "rate": "3Mbps", "burst": "3kB", "queue": {"scheduler": "drr", "queues": [
            {"name": "silver", "match": {"path": "silver"}, "rate": "1Mbps", "rule": {"aqm": "drop-tail", "limit": "7p"}},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "7p"}}]}}}"#,
    ),
    (
        "dualpi2",
        r#"{"target": "2ms", "rtt-max": "10ms", "l4s-dscp": [0, 3], "limit": "9p", "step": "1ms", "classic-share": 0.3}"#,
    ),
    (
        "dualpi2",
        r#"{"law": "linux", "interval": "1ms", "alpha": 9, "beta": 99, "k": 0.5, "order": "time-shifted-fifo", "shift": "0s", "l4s-dscp": 3, "mtu": "0B", "step-length": 0, "step": "0s"}"#,
    ),
    (
        "dualpi2",
        r#"{"target": "1ns", "interval": "1ms", "rtt-max": "3ms", "k": 100, "range": "0s", "step": "0s", "overload": "overflow", "l4s-dscp": 46, "classic-share": 0.9999, "limit": "0p"}"#,
    ),
    (
        "dualpi2",
        r#"{"target": "2ms", "rtt-max": "10ms", "l4s-dscp": [0, 3], "limit": "9p", "queue-protection": {"critical-delay": "1us", "critical-score": "1us", "max-th": "1us", "buckets": 1, "attempts": 1, "aging-exponent": 30}}"#,
    ),
];

/// Meters.
pub const METERS: &[(&str, &str)] = &[
    ("token-bucket", r#"{"rate": "1Mbps", "burst": "5kB"}"#),
    ("tsw", r#"{"rate": "1Mbps", "af": 3}"#),
    ("tsw", r#"{"rate": "1bps", "window": "1ns", "rule": "four-thirds", "initial": "zero"}"#),
    ("three-precedence", r#"{"rate": "1Mbps", "split": "proportional", "af": 4}"#),
    ("three-precedence", r#"{"rate": "1Mbps", "split": "same-rule"}"#),
    ("three-precedence", r#"{"rate": "999Gbps", "rule": "deterministic", "long-window": "1ns"}"#),
    ("twam", r#"{"rate": "1Mbps"}"#),
    ("token-bucket", r#"{"rate": "1bps", "burst": "0B"}"#),
    ("token-bucket", r#"{"rate": "999Gbps", "burst": "9GB"}"#),
    ("token-bucket", r#"{"rate": "300kbps", "burst": "5kB", "out": "drop"}"#),
    ("tsw", r#"{"rate": "300kbps", "window": "100ms", "out": "drop"}"#),
    ("three-precedence", r#"{"rate": "300kbps", "window": "100ms", "out": "drop-red", "af": 2}"#),
    ("three-precedence", r#"{"rate": "1bps", "out": "drop"}"#),
    ("twam", r#"{"rate": "1Mbps", "out": "drop"}"#),
    ("srtcm", r#"{"rate": "300kbps", "burst": "3kB", "excess-burst": "3kB", "out": "drop-red"}"#),
    ("srtcm", r#"{"rate": "1Mbps", "burst": "2kB", "excess-burst": "4kB", "mode": "color-aware", "af": 2}"#),
    ("srtcm", r#"{"rate": "1bps", "burst": "0B", "excess-burst": "1B"}"#),
    ("srtcm", r#"{"rate": "999Gbps", "burst": "9GB", "excess-burst": "9GB"}"#),
    (
        "trtcm",
        r#"{"rate": "300kbps", "burst": "3kB", "peak-rate": "600kbps", "peak-burst": "4500B", "out": "drop-red"}"#,
    ),
    (
        "trtcm",
        r#"{"rate": "1Mbps", "burst": "4kB", "peak-rate": "2Mbps", "peak-burst": "2kB", "mode": "color-aware", "af": 3}"#,
    ),
    ("trtcm", r#"{"rate": "999Gbps", "burst": "9GB", "peak-rate": "999Gbps", "peak-burst": "1B"}"#),
    (
        "rfc4115",
        r#"{"rate": "300kbps", "burst": "3kB", "excess-rate": "300kbps", "excess-burst": "3kB", "out": "drop-red"}"#,
    ),
    (
        "rfc4115",
        r#"{"rate": "1Mbps", "burst": "0B", "excess-rate": "1Mbps", "excess-burst": "4kB", "mode": "color-aware"}"#,
    ),
    ("rfc4115", r#"{"rate": "999Gbps", "burst": "9GB", "excess-rate": "1bps", "excess-burst": "0B"}"#),
    ("tswtcm", r#"{"rate": "300kbps", "peak-rate": "600kbps", "window": "100ms", "out": "drop-red"}"#),
    ("tswtcm", r#"{"rate": "1bps", "peak-rate": "999Gbps", "window": "1ns", "af": 4}"#),
];

//! Blocks from their names and parameters.

use perhop_core::Header;
use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::{AnyScheduler, SchedulerParams};
use perhop_core::testing;

/// The AQM of this name with these parameters.
pub fn aqm(name: &str, table: &str) -> AqmParams {
    let mut table = serde_json::Deserializer::from_str(table);
    AqmParams::deserialize_named(name, &mut table).expect("registered").expect("valid parameters")
}

/// The meter of this name with these parameters.
pub fn meter(name: &str, table: &str) -> MeterParams {
    let mut table = serde_json::Deserializer::from_str(table);
    MeterParams::deserialize_named(name, &mut table).expect("registered").expect("valid parameters")
}

/// The scheduler of this name with these parameters.
pub fn scheduler(name: &str, table: &str, seed: u64) -> AnyScheduler<Header> {
    let mut table = serde_json::Deserializer::from_str(table);
    let read = SchedulerParams::deserialize_named(name, &mut table);
    testing::scheduler(read.expect("registered").expect("valid parameters"), seed)
}

/// Every scheduler over queues under one AQM, which sees all packets.
pub fn under_one_aqm(aqm: &str) -> [(&'static str, SchedulerParams, &'static str); 9] {
    let one = format!(r#""rule": {aqm}"#);
    let queues = format!(r#""queues": [{{"name": "all", "rule": {aqm}}}]"#);
    let dsd = format!(r#""bound": "5ms", "rule": {aqm}"#);
    let class = format!(
        r#""classes": [{{"name": "all", "rate": "999Gbps", "burst": "9GB", "cburst": "9GB", "queue": {aqm}}}]"#
    );
    let first = r#"{"name": "none", "match": {"path": "none"}, "rule": {"aqm": "drop-tail", "limit": "9p"}}"#;
    let behind = format!(r#""priority": [{first}], "queue": {aqm}"#);
    let shaped = format!(r#""rate": "999Gbps", "burst": "9GB", "queue": {aqm}"#);
    let read = |name: &str, keys: &str| {
        serde_json::from_str(&format!(r#"{{"scheduler": "{name}", {keys}}}"#)).expect("valid parameters")
    };
    [
        ("fifo", read("fifo", &one), ""),
        ("edf", read("edf", &one), ""),
        ("dsd", read("dsd", &dsd), ""),
        ("priority", read("priority", &queues), "all "),
        ("drr", read("drr", &queues), "all "),
        ("wfq", read("wfq", &queues), "all "),
        ("shaper", read("shaper", &shaped), ""),
        ("htb", read("htb", &class), "all "),
        ("llq", read("llq", &behind), ""),
    ]
}

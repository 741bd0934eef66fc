//! Nanoseconds per enqueue + dequeue at a standing queue of 50 packets: each AQM in its FIFO, half of the packets IN, and
//! each scheduler, half of the packets asking for the green service.

use divan::counter::ItemsCount;
use perhop_core::abe::Service;
use perhop_core::aqm::AqmParams;
use perhop_core::scheduler::{Discipline, SchedulerParams};
use perhop_core::testing::{fifo, scheduler};
use perhop_core::{Color, Context, FlowId, Header, Instant, Rng};

const AQMS: &[(&str, &str)] = &[
    ("drop-tail", r#"{"limit": "868p"}"#),
    ("red", r#"{"thresholds": "30/90/0.05", "limit": "868p"}"#),
    ("rio", r#"{"in": "390/694/0.02", "total": "30/90/0.05", "limit": "868p"}"#),
    (
        "rio-plus-out",
        r#"{"in": "390/694/0.02", "total": "30/90/0.05", "out": "10/30/0.01", "limit": "868p"}"#,
    ),
];
const SCHEDULERS: &[(&str, &str)] = &[
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
];
const PACKETS: u64 = 10_000;

fn main() {
    divan::main();
}

#[divan::bench(args = AQMS.iter().map(|(name, _)| *name))]
fn enqueue_dequeue(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (_, table) = AQMS.iter().find(|(known, _)| *known == name).expect("listed above");
    let mut table = serde_json::Deserializer::from_str(table);
    let params = AqmParams::deserialize_named(name, &mut table).expect("registered").expect("valid");
    measure(bencher, || fifo(params.clone()));
}

#[divan::bench(args = SCHEDULERS.iter().map(|(name, _)| *name))]
fn schedule(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (_, table) = SCHEDULERS.iter().find(|(known, _)| *known == name).expect("listed above");
    let name = name.split(' ').next().unwrap_or(name);
    let mut table = serde_json::Deserializer::from_str(table);
    let params = SchedulerParams::deserialize_named(name, &mut table).expect("registered").expect("valid");
    measure(bencher, || scheduler(params.clone()));
}

fn measure<D: Discipline<Header>>(bencher: divan::Bencher<'_, '_>, queue: impl Fn() -> D) {
    bencher.counter(ItemsCount::new(PACKETS)).with_inputs(queue).bench_local_refs(|queue| {
        let mut rng = Rng::stream(1, "bench");
        for n in 0..PACKETS {
            let mut cx = Context { now: Instant::from_nanos(n * 1_000_000), rng: &mut rng };
            let (color, service) =
                if n % 2 == 0 { (Color::Green, Service::Green) } else { (Color::Yellow, Service::Blue) };
            let packet = Header { color, dscp: service.dscp(), ..Header::new(FlowId(0), 1000) };
            let _ = divan::black_box(queue.enqueue(packet, &mut cx));
            if n >= 50 {
                divan::black_box(queue.dequeue(&mut cx));
            }
        }
    });
}

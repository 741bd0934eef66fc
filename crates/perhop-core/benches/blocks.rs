//! Nanoseconds per enqueue + dequeue for each AQM in its FIFO, half of the packets IN, at a standing queue.

use divan::counter::ItemsCount;
use perhop_core::aqm::AqmParams;
use perhop_core::scheduler::Discipline;
use perhop_core::testing::fifo;
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
const PACKETS: u64 = 10_000;

fn main() {
    divan::main();
}

#[divan::bench(args = AQMS.iter().map(|(name, _)| *name))]
fn enqueue_dequeue(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (_, table) = AQMS.iter().find(|(known, _)| *known == name).expect("listed above");
    let mut table = serde_json::Deserializer::from_str(table);
    let params = AqmParams::deserialize_named(name, &mut table).expect("registered").expect("valid");
    bencher.counter(ItemsCount::new(PACKETS)).with_inputs(|| fifo(params.clone())).bench_local_refs(|fifo| {
        let mut rng = Rng::stream(1, name);
        for n in 0..PACKETS {
            let mut cx = Context { now: Instant::from_nanos(n * 1_000_000), rng: &mut rng };
            let color = if n % 2 == 0 { Color::Green } else { Color::Yellow };
            let _ = divan::black_box(fifo.enqueue(Header { color, ..Header::new(FlowId(0), 1000) }, &mut cx));
            if n >= 50 {
                divan::black_box(fifo.dequeue(&mut cx));
            }
        }
    });
}

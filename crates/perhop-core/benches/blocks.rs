//! Time of one packet in every registered block: enqueue and dequeue at a standing queue of 50 packets, for each AQM in its
//! FIFO and each scheduler; the coloring, for each meter.

#[path = "../tests/common/ordinary.rs"]
mod ordinary;

use ordinary::{AQMS, METERS, SCHEDULERS, block};
use perhop_core::abe::Service;
use perhop_core::aqm::AqmParams;
use perhop_core::meter::{Meter, MeterParams};
use perhop_core::scheduler::{Discipline, SchedulerParams};
use perhop_core::testing::{environment, fifo, scheduler};
use perhop_core::{Color, Context, FlowId, Header, Instant, Rng};

const STANDING: u64 = 50;
/// Enough for one sample to be long beside the clock's grain.
const SIZE: u32 = 2000;
const SAMPLES: u32 = 200;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, args = names(AQMS))]
fn aqm(bencher: divan::Bencher<'_, '_>, row: &str) {
    let params = AqmParams::deserialize_named(block(row), &mut table(AQMS, row)).expect("registered");
    through_a_queue(bencher, fifo(params.expect("valid"), 1));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, args = names(SCHEDULERS))]
fn schedule(bencher: divan::Bencher<'_, '_>, row: &str) {
    let params =
        SchedulerParams::deserialize_named(block(row), &mut table(SCHEDULERS, row)).expect("registered");
    through_a_queue(bencher, scheduler(params.expect("valid"), 1));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, args = names(METERS))]
fn meter(bencher: divan::Bencher<'_, '_>, row: &str) {
    let params = MeterParams::deserialize_named(block(row), &mut table(METERS, row)).expect("registered");
    let mut meter = params.expect("valid").build(environment());
    let mut packets = Packets::default();
    bencher.bench_local(move || {
        let packet = packets.next();
        let now = packets.now();
        meter.color(&packet, &mut Context { now, rng: &mut packets.rng })
    });
}

fn names(rows: &'static [(&str, &str)]) -> impl Iterator<Item = &'static str> {
    rows.iter().map(|(row, _)| *row)
}

type Table = serde_json::Deserializer<serde_json::de::StrRead<'static>>;

fn table(rows: &'static [(&str, &str)], row: &str) -> Table {
    let (_, table) = rows.iter().find(|(known, _)| *known == row).expect("listed");
    serde_json::Deserializer::from_str(table)
}

fn through_a_queue(bencher: divan::Bencher<'_, '_>, mut queue: impl Discipline<Header>) {
    let mut packets = Packets::default();
    let mut pass = move || {
        let packet = packets.next();
        let now = packets.now();
        let _ = divan::black_box(queue.enqueue(packet, now));
        // A packet that was dropped leaves the queue as it stood.
        if queue.occupancy().packets() > STANDING {
            divan::black_box(queue.dequeue(now));
        }
    };
    // Until the queue stands and its averages have followed.
    (0..10_000).for_each(|_| pass());
    bencher.bench_local(pass);
}

/// A packet of 1000 bytes each millisecond; every other one is IN and asks for the green service.
struct Packets {
    sent: u64,
    rng: Rng,
}

impl Default for Packets {
    fn default() -> Self {
        Self { sent: 0, rng: Rng::stream(1, "bench") }
    }
}

impl Packets {
    fn next(&mut self) -> Header {
        self.sent += 1;
        let (color, service) = if self.sent.is_multiple_of(2) {
            (Color::Green, Service::Green)
        } else {
            (Color::Yellow, Service::Blue)
        };
        Header { color, dscp: service.dscp(), ..Header::new(FlowId(0), 1000) }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.sent * 1_000_000)
    }
}

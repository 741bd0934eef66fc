//! Time of one packet in every registered block: enqueue and dequeue at a standing queue of 50 packets, for
//! each AQM in its FIFO and each scheduler; the coloring, for each meter.
//!
//! With the argument `costs` it prints what `benches/blocks.py` makes a table of: the time of every
//! [row](work::rows), and the bytes of state that its block keeps.

#![expect(clippy::disallowed_macros, reason = "the allocations of this thread are counted")]

#[path = "../tests/common/allocations.rs"]
mod allocations;
#[path = "../tests/common/ordinary.rs"]
mod ordinary;
mod work;

use ordinary::{AQMS, METERS, SCHEDULERS};
use perhop_core::meter::Meter;
use perhop_core::testing::fifo;
use work::{Colors, GAP, HALF, aqm_of, coloring, meter_of, scheduler_of, through_a_queue, until_it_stands};

/// Enough for one sample to be long beside the clock's grain.
const SIZE: u32 = 2000;
const SAMPLES: u32 = 200;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("costs") => {
            let samples = arguments.next().and_then(|text| text.parse().ok());
            work::print(samples.expect("how many samples"));
        }
        _ => divan::main(),
    }
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, args = names(AQMS))]
fn aqm(bencher: divan::Bencher<'_, '_>, row: &str) {
    let mut pass = through_a_queue(fifo(aqm_of(row), 1), Colors::Both);
    until_it_stands(&mut pass);
    bencher.bench_local(pass);
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, args = names(SCHEDULERS))]
fn schedule(bencher: divan::Bencher<'_, '_>, row: &str) {
    let mut pass = through_a_queue(scheduler_of(row), Colors::Both);
    until_it_stands(&mut pass);
    bencher.bench_local(pass);
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, args = names(METERS))]
fn meter(bencher: divan::Bencher<'_, '_>, row: &str) {
    let mut meter = meter_of(row, HALF);
    bencher.bench_local(coloring(GAP, move |packet, cx| meter.color(packet, cx)));
}

fn names(rows: &'static [(&str, &str)]) -> impl Iterator<Item = &'static str> {
    rows.iter().map(|(row, _)| *row)
}

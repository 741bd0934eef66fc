//! Simulated seconds of the Table 1 setting.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{RIO, aqm, table1};
use perhop_sim::Simulation;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn table1_100_seconds(bencher: divan::Bencher<'_, '_>) {
    let mut network = table1(aqm("rio", RIO), 100);
    network.probe_interval = None;
    bencher.with_inputs(|| Simulation::new(&network, 1).expect("routes")).bench_local_values(
        |mut simulation| {
            simulation.run_to_end();
            simulation.finish().expect("conserved")
        },
    );
}

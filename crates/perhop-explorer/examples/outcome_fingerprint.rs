//! Prints the fingerprints of the scenario on standard input, one line for each seed: `outcome_fingerprint 1
//! 2 3 < scenario.toml`. The tests of the explorer compare them with those of the WebAssembly module.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a program of tests reads and prints; the library does neither"
)]

use std::io::Read;

use perhop_explorer::fingerprint_of;

fn main() -> Result<(), String> {
    let mut toml = String::new();
    std::io::stdin().read_to_string(&mut toml).map_err(|error| error.to_string())?;
    for seed in std::env::args().skip(1) {
        let seed = seed.parse().map_err(|_| format!("`{seed}` is no seed"))?;
        let number = fingerprint_of(&toml, seed).map_err(|problem| problem.text)?;
        println!("{number:016x}");
    }
    Ok(())
}

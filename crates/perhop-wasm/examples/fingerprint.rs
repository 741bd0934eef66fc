//! Prints the native build's fingerprint of a seed, to hold the WebAssembly module's against.

#[expect(clippy::disallowed_macros, reason = "a program for the shell")]
fn main() {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).expect("usage: fingerprint SEED");
    println!("{}", perhop_wasm::table1_fingerprint(seed));
}

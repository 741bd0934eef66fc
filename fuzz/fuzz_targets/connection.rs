//! Forged and late segments to both ends of an open TCP connection.
#![no_main]

#[path = "../../crates/perhop-endpoint/tests/common/wire.rs"]
mod wire;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wire::disturb(bytes));

//! Bytes from a network as a TCP segment: they are read or refused, and what is read can be written.
#![no_main]

#[path = "../../crates/perhop-endpoint/tests/common/wire.rs"]
mod wire;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wire::read_and_write(bytes));

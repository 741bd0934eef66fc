//! Bytes from a network: they are read or refused, and a mark changes nothing but codepoint and ECN field.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../crates/perhop-live/tests/common/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| script::read_and_mark(bytes));

//! Captures: another reader reads back what was written.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "../../crates/perhop-router/tests/common/inputs.rs"]
mod inputs;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| inputs::capture(bytes));

//! Configurations of the router, one after the other: each is refused with a message, or packets pass by it.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "../../crates/perhop-router/tests/common/inputs.rs"]
mod inputs;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    inputs::configurations(bytes);
});

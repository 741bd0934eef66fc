//! Requests for metrics, in parts: each is read or refused, and only by a name of this host.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "../../crates/perhop-router/tests/common/inputs.rs"]
mod inputs;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    inputs::request(bytes);
});

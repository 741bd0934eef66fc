//! Captures that are replayed: any file is read or refused, and what is read meets the same fate in both
//! drivers.
#![no_main]

#[path = "../../crates/perhop-replay/tests/common/inputs.rs"]
mod inputs;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = inputs::capture(bytes);
});

//! Frames from a network: the headers before an IP packet come off and go back on as they were.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../crates/perhop-live/tests/common/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| script::take_apart(bytes));

//! The run loop between two devices that give it anything, refuse packets, and vanish.
#![no_main]

#[path = "../../crates/perhop-live/tests/common/fake.rs"]
mod fake;
#[path = "../../crates/perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../crates/perhop-live/tests/common/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fake::run(bytes));

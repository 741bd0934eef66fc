//! Some data plane, and whatever happens to it: it keeps its books, and everything leaves in the end.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../crates/perhop-live/tests/common/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    script::live_through(bytes);
});

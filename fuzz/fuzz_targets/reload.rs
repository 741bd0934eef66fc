//! Some data plane under traffic, reloaded again and again: it keeps its books, and everything leaves in the
//! end.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../crates/perhop-live/tests/common/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    script::reload_through(bytes);
});

//! Text, as TOML or JSON: it is refused with a message, or it is a scenario that runs and conserves its
//! packets.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "../../crates/perhop-core/tests/common/ordinary.rs"]
mod ordinary;
#[path = "../../crates/perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../crates/perhop-scenario/tests/common/story.rs"]
mod story;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| story::read(bytes));

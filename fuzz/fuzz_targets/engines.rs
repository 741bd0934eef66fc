//! Some network: the fast engine and the plain one give the same numbers.
#![no_main]

#[path = "../../crates/perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "../../crates/perhop-core/tests/common/ordinary.rs"]
mod ordinary;
#[path = "../../crates/perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../crates/perhop-scenario/tests/common/story.rs"]
mod story;

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match story::both_engines(bytes) {
        Some(_) => Corpus::Keep,
        None => Corpus::Reject,
    }
});

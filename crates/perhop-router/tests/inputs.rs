//! Whatever comes as a configuration, and whatever is captured: what fuzz targets look for at length, in short.
#![cfg(target_os = "linux")]

#[path = "../../perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "common/inputs.rs"]
mod inputs;
#[path = "../../perhop-core/tests/common/seeds.rs"]
mod seeds;

use proptest::prelude::*;

#[test]
fn the_seeds_of_the_fuzz_targets_hold() {
    // Each seed is a good configuration and its successors.
    assert!(seeds::replay("router_config", |bytes| assert!(inputs::configurations(bytes) > 0)) > 0);
    assert!(seeds::replay("capture", inputs::capture) > 0);
}

const EXAMPLE: &str = include_str!("../../../contrib/perhop-router.toml");

proptest! {
    #[test]
    fn an_example_with_a_slip_is_refused_or_comes_into_force(
        at in any::<prop::sample::Index>(),
        length in 0_usize..20,
        with in "\\PC{0,8}",
    ) {
        let mut slip: Vec<char> = EXAMPLE.chars().collect();
        let at = at.index(slip.len());
        slip.splice(at..(at + length).min(slip.len()), with.chars());
        let slip = String::from_iter(slip);
        inputs::configurations(slip.as_bytes());
        inputs::configurations(format!("{EXAMPLE}\0{slip}\0{EXAMPLE}").as_bytes());
    }

    #[test]
    fn any_capture_can_be_read_back(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        inputs::capture(&bytes);
    }
}

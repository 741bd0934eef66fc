//! Arbitrary configurations, requests and captured packets: a short run of what the fuzz targets check at
//! length.
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
    assert!(seeds::replay("request", |bytes| _ = inputs::request(bytes).expect("a whole one")) > 0);
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
    fn a_request_is_the_same_in_whatever_parts_it_comes(
        noise in prop::collection::vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(),
    ) {
        let good = b"GET /metrics HTTP/1.1\r\nHost: localhost:9477\r\nAccept: */*\r\n\r\n";
        let (before, behind) = good.split_at(at.index(good.len()));
        inputs::request(&[before, &noise[..], behind].concat());
    }

    #[test]
    fn any_capture_can_be_read_back(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        inputs::capture(&bytes);
    }
}

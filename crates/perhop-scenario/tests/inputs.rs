//! Whatever text comes as a scenario, and whatever network is drawn: what fuzz targets look for at length, in
//! short.

use perhop_core::Rng;
use proptest::prelude::*;

use crate::{seeds, story};

#[test]
fn the_seeds_of_the_fuzz_targets_hold() {
    assert!(seeds::replay("scenario", story::read) > 0);
    assert!(seeds::replay("engines", |bytes| _ = story::both_engines(bytes)) > 0);
}

#[test]
fn both_engines_agree_on_random_networks_and_most_are_not_refused() {
    let mut rng = Rng::stream(1, "bytes");
    let (mut hops, mut ran, mut batched, mut users, mut media) = (0, 0, 0, 0, 0);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..800).map(|_| rng.up_to(255) as u8).collect();
        let Some(one) = story::both_engines(&bytes) else { continue };
        hops += one.hops;
        for (count, is) in [(&mut ran, true), (&mut batched, one.is_batched)] {
            *count += u32::from(is);
        }
        for (count, is) in [(&mut users, one.has_users), (&mut media, one.has_media)] {
            *count += u32::from(one.is_batched && is);
        }
    }
    let counts = (ran, batched, users, media);
    assert!(ran > 100 && hops > 20_000, "{counts:?} ran, with {hops} packets");
    assert!(batched > 70 && users > 30 && media > 30, "{counts:?} ran on the batched engine");
}

const EXAMPLES: [&str; 3] = [
    include_str!("../../../examples/first.toml"),
    include_str!("../../../examples/queues.toml"),
    include_str!("../../../examples/asymmetric.toml"),
];

proptest! {
    #[test]
    fn an_example_with_a_slip_is_refused_or_runs(
        example in 0..EXAMPLES.len(),
        at in any::<prop::sample::Index>(),
        length in 0_usize..20,
        with in "\\PC{0,8}",
    ) {
        let mut text: Vec<char> = EXAMPLES[example].chars().collect();
        let at = at.index(text.len());
        text.splice(at..(at + length).min(text.len()), with.chars());
        story::read(String::from_iter(text).as_bytes());
    }
}

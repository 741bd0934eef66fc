//! A calendar against a sorted set, and its corners by hand.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Ordered as a calendar orders entries: by time, then rank, then addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) at: Instant,
    pub(crate) rank: u32,
    pub(crate) added: u32,
}

impl Timed for Entry {
    fn at(&self) -> Instant {
        self.at
    }
    fn rank(&self) -> u64 {
        self.rank.into()
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// Takes entries one by one, adding up to two new ones after each, and compares with a sorted set.
fn agrees_with_a_sorted_set(gaps: &[(u64, u32)], scale: u32) {
    let mut calendar = Calendar::default();
    let mut set = BTreeSet::new();
    let mut gaps = gaps.iter().cycle();
    let mut now = Instant::ZERO;
    for step in 0..20_000_u32 {
        for _ in 0..(step % 3).min(2) {
            let (gap, rank) = gaps.next().unwrap();
            let added = 2 * step + set.len() as u32 % 2;
            let entry = Entry { at: at(now.as_nanos() + (gap << scale)), rank: *rank, added };
            set.insert(entry);
            calendar.push(entry);
        }
        assert!(calendar.next() <= set.first().map_or(Instant::NEVER, |entry| entry.at));
        let next = calendar.pop(Instant::NEVER);
        assert_eq!(next, set.pop_first());
        if let Some(entry) = next {
            assert!(entry.at >= now);
            now = entry.at;
        }
    }
}

#[test]
fn what_is_far_is_not_forgotten_when_buckets_widen() {
    // Many that come in years, some that come soon, beyond the wheel; and a timer that is set again and
    // again, 1 ms ahead.
    let mut calendar = Calendar::expecting(Duration::from_nanos(1000), USUAL_REACH);
    let mut added = 0;
    let mut push = |calendar: &mut Calendar<Entry>, nanos: u64| {
        calendar.push(Entry { at: Instant::from_nanos(nanos), rank: 0, added });
        added += 1;
    };
    (0..400).for_each(|n| push(&mut calendar, 3_000_000_000_000_000_000 + n));
    (0..10).for_each(|n| push(&mut calendar, 3_000_000_000 + 500_000_000 * n));
    push(&mut calendar, 0);
    let (mut before, mut soon) = (Instant::ZERO, 0);
    while before < Instant::from_nanos(10_000_000_000) {
        let entry = calendar.pop(Instant::NEVER).unwrap();
        assert!(entry.at >= before);
        before = entry.at;
        if (400..410).contains(&entry.added) {
            soon += 1;
        } else {
            push(&mut calendar, entry.at.as_nanos() + 1_000_000);
        }
    }
    assert_eq!(soon, 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_mix_of_near_and_far(
        gaps in prop::collection::vec((prop_oneof![0_u64..4, 0_u64..2000, 0_u64..3_000_000], 0_u32..5), 1..40),
        scale in 0_u32..14,
    ) {
        agrees_with_a_sorted_set(&gaps, scale);
    }
}

#[test]
fn a_crowd_at_one_time_keeps_its_order() {
    let mut calendar = Calendar::default();
    for (added, rank) in (0..500_u32).map(|n| (n, n * 7 % 10)) {
        calendar.push(Entry { at: at(1_000_000_000), rank, added });
    }
    calendar.push(Entry { at: at(5), rank: 0, added: 0 });
    assert_eq!(calendar.pop(Instant::NEVER).unwrap().at, at(5));
    let taken: Vec<_> = std::iter::from_fn(|| calendar.pop(Instant::NEVER)).collect();
    assert_eq!(taken.len(), 500);
    assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn buckets_follow_the_density_of_entries() {
    let mut calendar = Calendar::default();
    let run = |calendar: &mut Calendar<Entry>, from: u64, gap: u64| {
        let entry = |nanos| Entry { at: at(nanos), rank: 0, added: 0 };
        calendar.push(entry(from));
        let mut now = from;
        for _ in 0..200_000 {
            now = calendar.pop(Instant::NEVER).unwrap().at.as_nanos();
            calendar.push(entry(now + gap));
        }
        calendar.pop(Instant::NEVER);
        now
    };
    let end = run(&mut calendar, 0, 5_000);
    assert!(calendar.shift < 18, "{}", calendar.shift);
    run(&mut calendar, end, 50_000_000);
    assert!(calendar.shift > 22, "{}", calendar.shift);
}

#[test]
fn a_crowd_in_a_bucket_that_was_never_opened() {
    let mut calendar = Calendar::default();
    for added in (0..40_000).rev() {
        calendar.push(Entry { at: Instant::ZERO, rank: 0, added });
    }
    calendar.push(Entry { at: at(1_000_000), rank: 0, added: 0 });
    let taken: Vec<_> = std::iter::from_fn(|| calendar.pop(Instant::NEVER)).collect();
    assert_eq!((taken.len(), taken.last().unwrap().at), (40_001, at(1_000_000)));
}

#[test]
fn what_is_added_to_a_bucket_that_is_lent_finds_its_place() {
    let mut calendar = Calendar::default();
    let entry = |nanos, added| Entry { at: at(nanos), rank: 0, added };
    for nanos in [7, 9, 3] {
        calendar.push(entry(nanos, 0));
    }
    let (lent, ready) = calendar.lend(at(9)).unwrap();
    assert_eq!(lent[ready.clone()], [entry(3, 0), entry(7, 0)]);
    for nanos in [10, 9, 12] {
        calendar.push(entry(nanos, 1));
    }
    calendar.give_back(lent, ready.end);
    assert_eq!(calendar.lend(at(9)), None);
    let rest: Vec<_> = std::iter::from_fn(|| calendar.pop(Instant::NEVER)).collect();
    assert_eq!(rest, [entry(9, 0), entry(9, 1), entry(10, 1), entry(12, 1)]);
}

#[test]
fn nothing_is_taken_at_the_bound_or_beyond() {
    let mut calendar = Calendar::default();
    let entry = |nanos| Entry { at: at(nanos), rank: 0, added: 0 };
    calendar.push(entry(5_000_000_000));
    assert_eq!(calendar.pop(at(5_000_000_000)), None);
    calendar.push(entry(4_999_999_999));
    assert_eq!(calendar.pop(at(5_000_000_000)), Some(entry(4_999_999_999)));
    assert_eq!(calendar.pop(Instant::NEVER), Some(entry(5_000_000_000)));
    assert_eq!((calendar.pop(Instant::NEVER), calendar.next()), (None, Instant::NEVER));
}

#[test]
fn a_fast_link_that_few_packets_come_to_has_a_small_wheel() {
    // 25 Gbit/s could bring a packet of 1400 bytes every 448 ns, for 8 ms: 17 857 of them.
    let calendar = Calendar::<Entry>::expecting(Duration::from_nanos(448), Duration::from_millis(8));
    assert_eq!(calendar.wheel.len(), 256);
    assert!((256_u64 << calendar.shift) >= 8_000_000, "it reaches as far as packets come");
}

#[test]
fn entries_that_come_thick_narrow_the_buckets() {
    let mut calendar = Calendar::expecting(Duration::from_nanos(448), Duration::from_millis(8));
    let wide = calendar.shift;
    for added in 0..60_000_u32 {
        calendar.push(Entry { at: at(4_000_000 + u64::from(added) * 448), rank: 0, added });
        if u64::from(added) * 448 > 4_000_000 {
            calendar.pop(Instant::NEVER);
        }
    }
    assert!(calendar.shift < wide, "{} of {wide}", calendar.shift);
}

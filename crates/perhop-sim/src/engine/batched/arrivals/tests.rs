//! An arrival queue against a sorted set.

use super::*;
use crate::engine::batched::calendar::tests::Entry;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Compares the queue with a sorted set: adds arrivals by cycling through `gaps`, each after the arrival that
/// was taken last, and takes arrivals one by one or as a lent batch, also while others are added.
fn agrees_with_a_sorted_set(gaps: &[(u64, u32)], taking: &[u64]) {
    let (mut queue, mut set) =
        (ArrivalQueue::expecting(Duration::from_nanos(1000), USUAL_REACH), BTreeSet::new());
    let mut gaps = gaps.iter().cycle();
    let mut added = 0;
    let mut add = |queue: &mut ArrivalQueue<Entry>, set: &mut BTreeSet<Entry>, now: u64| {
        let &(gap, rank) = gaps.next().unwrap();
        let entry = Entry { at: Instant::from_nanos(now + gap), rank, added };
        added += 1;
        queue.push(entry);
        set.insert(entry);
    };
    let mut now = 0;
    for &taken in taking.iter().cycle().take(3000) {
        (0..4).for_each(|_| add(&mut queue, &mut set, now));
        let first = set.first().map_or(Instant::NEVER, |entry| entry.at);
        assert!(queue.next() <= first);
        let bound = Instant::from_nanos(first.as_nanos() + taken);
        if taken % 2 == 0 {
            assert_eq!(queue.peek(bound).copied(), set.first().copied().filter(|entry| entry.at < bound));
            if let Some(entry) = queue.pop(bound) {
                assert_eq!(Some(entry), set.pop_first());
                now = entry.at.as_nanos();
            }
            continue;
        }
        while let Some((entries, ready)) = queue.lend(bound) {
            for entry in &entries[ready.clone()] {
                assert_eq!(Some(*entry), set.pop_first());
                assert!(entry.at < bound);
            }
            now = bound.as_nanos();
            add(&mut queue, &mut set, now);
            queue.give_back(entries, ready.end);
        }
        assert!(set.first().is_none_or(|entry| entry.at >= bound));
    }
    assert!(std::iter::from_fn(|| queue.pop(Instant::NEVER)).eq(set));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn in_order_or_nearly(
        gaps in prop::collection::vec((1_000_000_u64..1_000_400, 0_u32..4), 1..40),
        taking in prop::collection::vec(0_u64..4000, 1..20),
    ) {
        agrees_with_a_sorted_set(&gaps, &taking);
    }

    #[test]
    fn any_mix_of_near_and_far(
        gaps in prop::collection::vec((prop_oneof![0_u64..4, 0_u64..2000, 0_u64..900_000], 0_u32..4), 1..40),
        taking in prop::collection::vec(0_u64..4000, 1..20),
    ) {
        agrees_with_a_sorted_set(&gaps, &taking);
    }
}

#[test]
fn the_run_is_closed_where_order_is_rare_and_opened_again() {
    let mut queue = ArrivalQueue::expecting(Duration::from_nanos(1000), USUAL_REACH);
    let run = |queue: &mut ArrivalQueue<Entry>, begin: u64, steps: u64, spread: u64| {
        for step in 0..steps {
            let at = Instant::from_nanos(begin + 1000 * step + step * 7919 % (spread + 1));
            queue.push(Entry { at, rank: 0, added: 0 });
            queue.pop(Instant::from_nanos(begin + 1000 * step));
        }
        let left = std::iter::from_fn(|| queue.pop(Instant::NEVER)).collect::<Vec<_>>();
        assert!(left.is_sorted());
        begin + 1000 * steps + spread
    };
    let now = run(&mut queue, 1, 10_000, 0);
    assert_eq!((queue.newest != Instant::NEVER, queue.missed), (true, 0));
    let now = run(&mut queue, now, 10_000, 100_000);
    assert_eq!(queue.newest, Instant::NEVER);
    run(&mut queue, now, 2 * CLOSED, 0);
    assert!(queue.newest != Instant::NEVER);
}

#[test]
fn few_pending_entries_use_little_memory_and_always_the_same() {
    let mut queue = ArrivalQueue::expecting(Duration::from_nanos(1000), USUAL_REACH);
    let entry = |at: u64| Entry { at: Instant::from_nanos(at), rank: 0, added: 0 };
    let mut taken = Vec::new();
    for step in 1..1000 {
        // The second of each pair overtakes the first.
        queue.push(entry(10 * step + 7));
        queue.push(entry(10 * step + 3));
        while let Some((entries, ready)) = queue.lend(Instant::from_nanos(10 * step - 5)) {
            taken.extend_from_slice(&entries[ready.clone()]);
            queue.give_back(entries, ready.end);
        }
    }
    assert!(taken.len() > 1990 && taken.is_sorted());
    assert_eq!((queue.front.capacity(), queue.back.capacity(), queue.late), (FIRST_PIECE, 0, 0));
    assert!(queue.out_of_order.is_none() && queue.spare.is_empty());
}

#[test]
fn an_entry_like_one_that_was_too_late_comes_after_it() {
    let mut queue = ArrivalQueue::expecting(Duration::from_nanos(1000), USUAL_REACH);
    let entry = |at: u64, added: u32| Entry { at: Instant::from_nanos(at), rank: 0, added };
    for at in 0..40 {
        queue.push(entry(100 + at, 0));
    }
    queue.push(entry(101, 1));
    assert_eq!(queue.late, 1);
    // The run is short again when the second one comes.
    while queue.next() < Instant::from_nanos(101) {
        queue.pop(Instant::from_nanos(101));
    }
    queue.push(entry(101, 2));
    let left = std::iter::from_fn(|| queue.pop(Instant::from_nanos(102)));
    let left: Vec<u32> = left.map(|entry| entry.added).collect();
    assert_eq!((left, queue.late), (vec![0, 1, 2], 0));
}

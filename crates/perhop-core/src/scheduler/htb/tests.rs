use super::super::queues::tests::{drain, packet, put, take};
use super::super::{Dequeued, SchedulerParams};
use super::*;
use crate::testing::{environment, streams};

const RULE: &str = r#""queue": {"aqm": "drop-tail", "limit": "9999p"}"#;

fn params(classes: &str) -> HtbParams {
    let params: HtbParams = serde_json::from_str(&format!(r#"{{"classes": [{classes}]}}"#)).unwrap();
    Htb::<Header>::check(&params).unwrap();
    params
}

fn htb(classes: &str) -> Htb<Header> {
    Htb::new(params(classes), environment(), streams(1))
}

/// A class for packets of this codepoint, or of all others, with empty buckets: it has no tokens beyond zero.
fn leaf(name: &str, dscp: u8, keys: &str) -> String {
    let takes = if dscp > 0 { format!(r#""match": {{"dscp": {dscp}}},"#) } else { String::new() };
    format!(r#"{{"name": "{name}", {takes} "burst": "0B", "cburst": "0B", {keys}, {RULE}}}"#)
}

/// A tree with buckets of nine packets, so that a class that waits for its turn loses no tokens.
fn roomy(classes: &str) -> Htb<Header> {
    htb(&classes.replace(r#""0B""#, r#""9kB""#))
}

fn inner(name: &str, keys: &str, classes: &[String]) -> String {
    let classes = classes.join(",");
    format!(r#"{{"name": "{name}", "burst": "0B", "cburst": "0B", {keys}, "classes": [{classes}]}}"#)
}

/// The flows of the packets sent on a link of 8 Mbit/s (1000 bytes take a millisecond), and the sum of the
/// waits that the scheduler asked for. The link asks again at the end of each wait. Flows of codepoint `n`
/// have numbers from 10 000 `n` on.
fn served(queue: &mut Htb<Header>, packets: usize) -> (Vec<u32>, u64) {
    let (mut order, mut now, mut waited) = (Vec::new(), 0, 0);
    while order.len() < packets {
        match take(queue, now) {
            Dequeued::Sent(packet, _) => {
                order.push(packet.flow.0);
                now += u64::from(packet.size) * 1000;
            }
            Dequeued::Wait(Some(until)) => {
                assert!(until.as_nanos() > now, "no progress");
                waited += until.as_nanos() - now;
                now = until.as_nanos();
            }
            other => panic!("{other:?}"),
        }
    }
    (order, waited)
}

/// Packets of 1000 bytes of this codepoint.
fn fill(queue: &mut Htb<Header>, dscp: u8, packets: u32) {
    (0..packets).for_each(|n| put(queue, 0, packet(dscp, 10_000 * u32::from(dscp) + n, 1000)));
}

/// Of the packets sent, how many were of each codepoint.
fn shares<const N: usize>(order: &[u32], dscps: [u8; N]) -> [usize; N] {
    dscps.map(|dscp| order.iter().filter(|&&flow| flow / 10_000 == u32::from(dscp)).count())
}

#[test]
fn own_rates_first_then_loans_in_turns() {
    // At 2 Mbit/s 1000 bytes are repaid in 4 ms, at 6 in 1 1/3 ms, at the root's 8 in 1 ms. Both begin with
    // their own rate. At 2 ms both are in debt and the first borrows; at 3 ms the second has repaid, at 4 the
    // first; at 6 ms both are in debt again, and it is the second's turn to borrow; at 10 ms the first's,
    // whose quantum of 25 kB is not used up.
    let (a, b) = (
        leaf("a", 1, r#""rate": "2Mbps", "ceil": "8Mbps""#),
        leaf("b", 0, r#""rate": "6Mbps", "ceil": "8Mbps""#),
    );
    let mut queue = htb(&inner("link", r#""rate": "8Mbps""#, &[a, b]));
    (0..20).for_each(|n| put(&mut queue, 0, packet(1, n, 1000)));
    (0..20).for_each(|n| put(&mut queue, 0, packet(0, 100 + n, 1000)));
    assert_eq!(drain(&mut queue, 0, 11), [0, 100, 1, 101, 2, 102, 103, 104, 3, 105, 4]);
}

#[test]
fn a_round_that_has_ended_begins_with_the_first_class() {
    // The turn of the first class ends with its packet, when no other class has any: so does the round, and
    // at 2 ms, when both can send, the first begins anew (`htb_next_rb_node` of the last one is none).
    let mut queue = htb(&[leaf("a", 1, r#""rate": "4Mbps""#), leaf("b", 0, r#""rate": "4Mbps""#)].join(","));
    (0..2).for_each(|n| put(&mut queue, 0, packet(1, n, 1000)));
    assert_eq!(drain(&mut queue, 0, 1), [0]);
    put(&mut queue, 1_000_000, packet(0, 100, 1000));
    assert_eq!(drain(&mut queue, 2_000_000, 2), [1, 100]);
}

/// Two roots with tokens for nine packets of 1000 bytes: one lends to `a` (codepoint 1) and `b` (2), the
/// other one to `d` (0). Each of these has sent a packet of its own and borrows from now on, a packet in a
/// turn.
fn two_roots() -> Htb<Header> {
    let keys = r#""rate": "1kbps", "ceil": "8Mbps", "quantum": "1000B""#;
    let leaf = |name, dscp| leaf(name, dscp, keys).replace(r#""cburst": "0B""#, r#""cburst": "9kB""#);
    let root = |name: &str, classes: &[String]| {
        let within = classes.join(",");
        let buckets = r#""burst": "9kB", "cburst": "9kB""#;
        format!(r#"{{"name": "{name}", "rate": "8Mbps", {buckets}, "classes": [{within}]}}"#)
    };
    let mut queue =
        htb(&[root("one", &[leaf("a", 1), leaf("b", 2)]), root("two", &[leaf("d", 0)])].join(","));
    for dscp in [1, 2, 0] {
        put(&mut queue, 0, packet(dscp, 0, 1000));
    }
    assert_eq!(drain(&mut queue, 0, 4), [0, 0, 0]);
    queue
}

#[test]
fn a_round_begins_with_the_class_that_was_the_first_when_the_last_one_ended() {
    // The round of `one` has ended with packet 20 when the turn of `d` comes, and `b` is its only class: so
    // the next one begins with `b`, though `a` is there at 5 ms (`htb_lookup_leaf` rewinds as it goes up).
    let mut queue = two_roots();
    (20..23).for_each(|n| put(&mut queue, 3_000_000, packet(2, n, 1000)));
    (0..3).for_each(|n| put(&mut queue, 3_000_000, packet(0, n, 1000)));
    assert_eq!(drain(&mut queue, 3_000_000, 2), [20, 0]);
    (10..12).for_each(|n| put(&mut queue, 5_000_000, packet(1, n, 1000)));
    assert_eq!(drain(&mut queue, 5_000_000, 6), [21, 1, 10, 22, 2, 11]);
}

#[test]
fn the_first_turn_of_a_lender_is_that_of_the_next_one() {
    // `one` joins at 4 ms, and its turn comes after packet 0. It has no place in its round yet, which counts
    // as the end of one: the turn goes on to `two`.
    let mut queue = two_roots();
    (0..3).for_each(|n| put(&mut queue, 3_000_000, packet(0, n, 1000)));
    assert_eq!(drain(&mut queue, 3_000_000, 1), [0]);
    (20..22).for_each(|n| put(&mut queue, 4_000_000, packet(2, n, 1000)));
    assert_eq!(drain(&mut queue, 4_000_000, 4), [1, 20, 2, 21]);
}

#[test]
fn a_class_waits_at_its_ceiling_for_the_time_that_linux_counts() {
    // 1000 bytes are repaid in 2 666 666 2/3 ns at 3 Mbit/s, which Linux rounds down.
    let mut queue = htb(&leaf("all", 0, r#""rate": "3Mbps""#));
    fill(&mut queue, 0, 3);
    assert!(matches!(take(&mut queue, 0), Dequeued::Sent(..)));
    let until = Dequeued::Wait(Some(Instant::from_nanos(2_666_666)));
    assert_eq!([take(&mut queue, 0), take(&mut queue, 2_666_665)], [until, until]);
    assert!(matches!(take(&mut queue, 2_666_666), Dequeued::Sent(..)));
}

#[test]
fn a_burst_goes_at_once_and_the_packet_that_uses_it_up_goes_too() {
    // Of 2500 bytes the third packet takes the last 500 and leaves a debt of 500: half a packet, 1 ms at 4
    // Mbit/s.
    let class = format!(r#"{{"name": "all", "rate": "4Mbps", "burst": "2500B", "cburst": "2500B", {RULE}}}"#);
    let mut queue = htb(&class);
    fill(&mut queue, 0, 5);
    (0..3).for_each(|_| assert!(matches!(take(&mut queue, 0), Dequeued::Sent(..))));
    assert_eq!(take(&mut queue, 0), Dequeued::Wait(Some(Instant::from_nanos(1_000_000))));
}

/// Three levels: `left` with two classes, and `right`.
fn three_levels(ceil_of_two: &str) -> Htb<Header> {
    let one = leaf("one", 1, r#""rate": "3Mbps", "ceil": "8Mbps""#);
    let two = leaf("two", 2, &format!(r#""rate": "1Mbps", "ceil": "{ceil_of_two}""#));
    let left = inner("left", r#""rate": "4Mbps", "ceil": "8Mbps""#, &[one, two]);
    roomy(&inner(
        "link",
        r#""rate": "8Mbps""#,
        &[left, leaf("right", 0, r#""rate": "4Mbps", "ceil": "8Mbps""#)],
    ))
}

#[test]
fn three_levels_share_as_their_rates_and_quanta_say() {
    // 1600 packets are 1.6 s. All have packets: each its own rate, 3, 1 and 4 Mbit/s.
    let near = |seen: &[usize], expected: &[usize]| {
        let close = seen.iter().zip(expected).all(|(&seen, &wanted)| seen.abs_diff(wanted) <= 40);
        assert!(close && seen.len() == expected.len(), "{seen:?}, not {expected:?}");
    };
    let run = |mut queue: Htb<Header>, with: &[u8]| {
        for &dscp in with {
            fill(&mut queue, dscp, 1700);
        }
        let (order, waited) = served(&mut queue, 1600);
        assert_eq!(waited, 0, "the link is never idle");
        shares(&order, [1, 2, 0])
    };
    near(&run(three_levels("8Mbps"), &[1, 2, 0]), &[600, 200, 800]);
    // What `two` leaves is lent within `left` first.
    near(&run(three_levels("8Mbps"), &[1, 0]), &[800, 0, 800]);
    // What `right` leaves is lent by quanta, 3 to 1.
    near(&run(three_levels("8Mbps"), &[1, 2]), &[1200, 400, 0]);
    near(&run(three_levels("1500kbps"), &[1, 2]), &[1300, 300, 0]);
}

#[test]
fn the_ceiling_of_a_class_holds_for_loans_from_beyond_it() {
    let one = leaf("one", 1, r#""rate": "1Mbps", "ceil": "8Mbps""#);
    let left = inner("left", r#""rate": "2Mbps", "ceil": "3Mbps""#, &[one]);
    let rest = leaf("right", 0, r#""rate": "1Mbps", "ceil": "8Mbps""#);
    let mut queue = htb(&inner("link", r#""rate": "8Mbps""#, &[left, rest]));
    fill(&mut queue, 1, 500);
    let (_, waited) = served(&mut queue, 300);
    // 300 packets at 3 Mbit/s are 800 ms, of which the link sends 300.
    assert!(waited.abs_diff(500_000_000) < 10_000_000, "{waited}");
}

#[test]
fn lower_prios_borrow_before_higher_ones() {
    let a = leaf("a", 1, r#""rate": "1Mbps", "ceil": "8Mbps", "prio": 1"#);
    let b = leaf("b", 2, r#""rate": "1Mbps", "ceil": "5Mbps""#);
    let c = leaf("c", 0, r#""rate": "1Mbps", "ceil": "8Mbps", "prio": 7"#);
    let mut queue = roomy(&inner("link", r#""rate": "8Mbps""#, &[a, b, c]));
    for dscp in [1, 2, 0] {
        fill(&mut queue, dscp, 900);
    }
    let (order, _) = served(&mut queue, 800);
    // `b` goes first up to its ceiling, then `a`; `c` keeps its own rate.
    let [a, b, c] = shares(&order, [1, 2, 0]);
    assert!(a.abs_diff(200) < 20 && b.abs_diff(500) < 20 && c.abs_diff(100) < 20, "{a} {b} {c}");
}

#[test]
fn a_round_of_the_classes_within_a_class_is_one_turn_of_it() {
    // The three classes have next to no rate and the same quantum: in a round each of them has a turn, so
    // `pair` gets two of three.
    let keys = r#""rate": "1kbps", "ceil": "8Mbps", "quantum": "1000B""#;
    let pair =
        inner("pair", r#""rate": "1kbps", "ceil": "8Mbps""#, &[leaf("one", 1, keys), leaf("two", 2, keys)]);
    let mut queue = htb(&inner("link", r#""rate": "8Mbps""#, &[pair, leaf("right", 0, keys)]));
    for dscp in [1, 2, 0] {
        fill(&mut queue, dscp, 900);
    }
    let (order, _) = served(&mut queue, 900);
    let seen = shares(&order, [1, 2, 0]);
    assert!(seen.iter().all(|packets| packets.abs_diff(300) < 5), "{seen:?}");
}

#[test]
fn a_class_sends_its_rate_even_if_the_class_around_it_is_at_its_ceiling() {
    let one = leaf("one", 1, r#""rate": "3Mbps""#);
    let mut queue = htb(&inner("link", r#""rate": "2Mbps""#, &[one, leaf("two", 0, r#""rate": "3Mbps""#)]));
    fill(&mut queue, 1, 500);
    fill(&mut queue, 0, 500);
    let (order, waited) = served(&mut queue, 600);
    assert_eq!(shares(&order, [1, 0]).map(|packets| packets.abs_diff(300) < 5), [true, true]);
    assert!(waited.abs_diff(200_000_000) < 5_000_000, "{waited}: 600 packets at 6 Mbit/s are 800 ms");
    let notices = params(&inner(
        "link",
        r#""rate": "2Mbps", "ceil": "9Mbps""#,
        &[leaf("one", 0, r#""rate": "3Mbps""#)],
    ))
    .contradictions("8Mbps".parse().unwrap(), "8Mbps".parse().unwrap());
    let keys: Vec<&str> = notices.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["classes[0].classes", "classes[0].ceil"]);
}

#[test]
fn a_class_whose_queue_waits_is_passed_over() {
    let shaped = r#""queue": {"scheduler": "shaper", "rate": "1Mbps", "burst": "1kB", "mtu": "1kB", "queue": {"aqm": "drop-tail", "limit": "99p"}}"#;
    let slow = format!(
        r#"{{"name": "slow", "match": {{"dscp": 1}}, "rate": "4Mbps", "burst": "0B", "ceil": "8Mbps", {shaped}}}"#
    );
    let mut queue = htb(&inner(
        "link",
        r#""rate": "8Mbps""#,
        &[slow, leaf("rest", 0, r#""rate": "1Mbps", "ceil": "8Mbps""#)],
    ));
    fill(&mut queue, 1, 3);
    (0..10).for_each(|n| put(&mut queue, 0, packet(0, n, 1000)));
    // The bucket of 1000 bytes is full at first, and again 8 ms later.
    assert_eq!(drain(&mut queue, 0, 10), [10_000, 0, 1, 2, 3, 4, 5, 6, 10_001, 7]);
    assert_eq!(drain(&mut queue, 10_000_000, 2), [8, 9]);
    assert_eq!(take(&mut queue, 12_000_000), Dequeued::Wait(Some(Instant::from_nanos(16_000_000))));
}

#[test]
fn one_class_as_fast_as_its_link_is_a_fifo() {
    let table = format!(r#"{{"scheduler": "htb", "classes": [{}]}}"#, leaf("all", 0, r#""rate": "8Mbps""#));
    let params: SchedulerParams = serde_json::from_str(&table).unwrap();
    let names: Vec<String> = params.class_keys().into_iter().map(|class| class.name).collect();
    assert_eq!((names, params.aqms(None)[0].0.as_str()), (vec!["all".into()], "classes[0].queue"));
    let mut queue = htb(&leaf("all", 0, r#""rate": "8Mbps""#));
    (0..50).for_each(|n| put(&mut queue, 0, packet(0, n, 1000)));
    assert_eq!(drain(&mut queue, 0, 50), (0..50).collect::<Vec<_>>());
}

#[test]
fn keys_that_contradict_each_other_or_have_no_effect_are_refused() {
    let refused = |classes: &str| {
        let params = serde_json::from_str(&format!(r#"{{"classes": [{classes}]}}"#)).unwrap();
        let text = Htb::<Header>::check(&params).unwrap_err().to_string();
        let (key, problem) = crate::units::split_key(&text);
        format!("{key}: {problem}")
    };
    let rate = r#""rate": "8Mbps""#;
    let starts = |text: String, with: &str| assert!(text.starts_with(with), "{text}");
    starts(refused(""), "classes: the scheduler has no classes");
    starts(refused(&format!(r#"{{"name": "a", {rate}}}"#)), "classes[0].queue: a class has a `queue`");
    let within = leaf("b", 0, rate);
    starts(
        refused(&format!(r#"{{"name": "a", {rate}, {RULE}, "classes": [{within}]}}"#)),
        "classes[0].queue: a class with `classes` holds",
    );
    for key in [r#""prio": 1"#, r#""quantum": "1kB""#, r#""match": {"dscp": 1}"#] {
        let name = key.split('"').nth(1).unwrap();
        starts(
            refused(&inner("a", &format!("{rate}, {key}"), std::slice::from_ref(&within))),
            &format!("classes[0].{name}: has an effect in classes with"),
        );
    }
    starts(
        refused(&inner("a", rate, &[leaf("b", 0, r#""rate": "2Mbps", "ceil": "1Mbps""#)])),
        "classes[0].classes[0].ceil: must be at least `rate`",
    );
    starts(refused(&leaf("a", 0, r#""rate": "2Mbps", "prio": 8"#)), "classes[0].prio: must be from 0");
    starts(
        refused(&leaf("a", 0, r#""rate": "2Mbps", "quantum": "0B""#)),
        "classes[0].quantum: a quantum must be above",
    );
    starts(
        refused(&inner("a", rate, &[leaf("a", 0, rate)])),
        "classes[0].classes[0].name: an earlier class has the name",
    );
    starts(
        refused(&inner("x", rate, &[leaf("a", 0, rate), leaf("b", 0, rate)])),
        "classes[0].classes[0].match: only the last queue",
    );
}

#[test]
fn a_leaf_without_a_quantum_has_one_of_its_rate() {
    let of = |rate: &str| params(&leaf("a", 0, &format!(r#""rate": "{rate}""#))).classes[0].quantum(10);
    assert_eq!(["2Mbps", "10kbps", "1Gbps"].map(of), [25_000, 1000, 200_000]);
}

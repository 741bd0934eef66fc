use proptest::prelude::*;

use super::*;
use crate::testing::streams;
use crate::{Color, Direction, Ecn, FlowId};

/// Of these keys; each flow has a queue of its own unless they say otherwise, and no packet waits too long.
fn fq(keys: &str) -> FqCodel<Header> {
    let hash = if keys.contains("hash") { "" } else { r#""hash": "exact","# };
    let target = if keys.contains("target") { "" } else { r#""target": "100s","# };
    let table = format!("{{{hash} {target} {keys}}}");
    let params: FqCodelParams = serde_json::from_str(&table.replace(", }", "}").replace(",}", "}")).unwrap();
    FqCodel::<Header>::check(&params).unwrap();
    FqCodel::new(params, crate::testing::environment(), streams(1))
}

const LAWS: [&str; 2] = [r#""law": "rfc""#, r#""law": "linux""#];

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Packets of a flow, all at once.
fn put(fq: &mut FqCodel<Header>, flow: u32, packets: usize, size: u16) {
    for _ in 0..packets {
        fq.enqueue(Header::new(FlowId(flow), size), at(0)).unwrap();
    }
}

fn take(fq: &mut FqCodel<Header>) -> Option<u32> {
    match fq.dequeue(at(0)) {
        Dequeued::Sent(packet, 0) => Some(packet.flow.0),
        Dequeued::Wait(None) => None,
        other => panic!("{other:?}"),
    }
}

/// The flows of all packets that are sent, A for 0 and so on.
fn drain(fq: &mut FqCodel<Header>) -> String {
    std::iter::from_fn(|| take(fq)).map(|flow| char::from(b'A' + flow as u8)).collect()
}

/// The packets that are pushed out by flow, and the bytes.
fn shed(fq: &mut FqCodel<Header>) -> (Vec<u32>, u64) {
    let (mut flows, mut bytes) = (Vec::new(), 0);
    while let Some((packet, reason)) = fq.shed(at(0)) {
        assert_eq!(reason, Reason::Overflow);
        flows.push(packet.flow.0);
        bytes += u64::from(packet.size);
    }
    (flows, bytes)
}

#[test]
fn the_credit_test_decides_on_a_credit_of_zero() {
    // A has 3 packets of 1500 bytes and B 6 of 500; C's of 100 comes before the third is sent.
    for (keys, expected) in [
        (r#""quantum": "1500B", "law": "linux""#, "ABBBCABBBA"),
        (r#""quantum": "1500B", "law": "rfc""#, "AABBBBCABB"),
        (r#""quantum": "300B", "law": "linux""#, "ABCBBABBBA"),
    ] {
        let mut fq = fq(keys);
        put(&mut fq, 0, 3, 1500);
        put(&mut fq, 1, 6, 500);
        let first: String = (0..2).map(|_| char::from(b'A' + take(&mut fq).unwrap() as u8)).collect();
        put(&mut fq, 2, 1, 100);
        assert_eq!(first + &drain(&mut fq), expected, "{keys}");
    }
}

#[test]
fn rounds_without_a_packet_are_skipped() {
    for law in LAWS {
        let mut fq = fq(&format!(r#""quantum": "1B", {law}"#));
        put(&mut fq, 0, 4, 1000);
        put(&mut fq, 1, 4, 500);
        put(&mut fq, 2, 2, 700);
        // A packet costs as many rounds as it has bytes, to which the first goes in advance.
        assert_eq!(drain(&mut fq), "ABCBCABBAA", "{law}");
    }
}

#[test]
fn a_full_port_drops_half_of_the_longest_queue() {
    let of = |law: &str, sizes: &[u16]| {
        let mut fq = fq(&format!(r#""limit": "12p", {law}"#));
        put(&mut fq, 1, 3, 1000);
        for &size in &sizes[..9] {
            put(&mut fq, 0, 1, size);
        }
        assert_eq!(shed(&mut fq), (Vec::new(), 0));
        put(&mut fq, 0, 1, sizes[9]);
        let (flows, bytes) = shed(&mut fq);
        assert!(flows.iter().all(|&flow| flow == 0));
        let dropped = fq.class.through.dropped(Reason::Overflow);
        assert_eq!(dropped[Color::Yellow.index()], flows.len() as u64);
        fq.class.balance().unwrap();
        (flows.len(), bytes)
    };
    let uneven: Vec<u16> = [1500; 2].into_iter().chain([100; 8]).collect();
    for law in LAWS {
        assert_eq!(of(law, &[1500; 10]), (5, 7500), "{law}");
    }
    assert_eq!(of(LAWS[0], &uneven), (5, 3300));
    assert_eq!(of(LAWS[1], &uneven), (2, 3000));
}

#[test]
fn a_batch_is_the_most_that_is_dropped_at_once_and_one_packet_the_least() {
    for law in LAWS {
        let mut fq = fq(&format!(r#""memory-limit": "10kB", "batch": 3, {law}"#));
        put(&mut fq, 0, 100, 100);
        assert_eq!(shed(&mut fq), (Vec::new(), 0));
        put(&mut fq, 1, 1, 1);
        assert_eq!(shed(&mut fq), (vec![0; 3], 300), "{law}");
        let mut none = self::fq(&format!(r#""limit": "0p", {law}"#));
        put(&mut none, 0, 1, 40);
        assert_eq!(shed(&mut none), (vec![0], 40), "{law}");
        assert_eq!(take(&mut none), None);
    }
}

#[test]
fn linux_counts_what_a_full_port_drops_for_the_control_law() {
    let count = |law: &str| {
        let mut fq = fq(&format!(r#""limit": "9p", {law}"#));
        put(&mut fq, 0, 10, 1000);
        shed(&mut fq);
        fq.queues[0].codel.gauges()[0]
    };
    assert_eq!(LAWS.map(count), [("count", 0.0), ("count", 5.0)]);
}

#[test]
fn of_equals_the_first_queue_is_the_longest() {
    let mut fq = fq(r#""limit": "7p""#);
    for flow in [3, 1, 2, 0] {
        put(&mut fq, flow, 2, 500);
    }
    assert_eq!(shed(&mut fq), (vec![3], 500));
}

#[test]
fn credits_are_those_of_the_ns_3_test() {
    let mut fq = fq(r#""quantum": "90B", "law": "linux""#);
    let credits = |fq: &FqCodel<Header>| fq.queues.iter().map(|queue| queue.credit).collect::<Vec<_>>();
    put(&mut fq, 0, 1, 120);
    assert_eq!(credits(&fq), [90]);
    assert_eq!((take(&mut fq), credits(&fq)), (Some(0), vec![-30]));
    put(&mut fq, 0, 2, 120);
    put(&mut fq, 1, 2, 120);
    assert_eq!(fq.gauges(), [("new flows".into(), 2.0), ("old flows".into(), 0.0)]);
    assert_eq!((take(&mut fq), credits(&fq)), (Some(1), vec![60, -30]));
    assert_eq!(fq.gauges(), [("new flows".into(), 1.0), ("old flows".into(), 1.0)]);
    assert_eq!((take(&mut fq), credits(&fq)), (Some(0), vec![-60, 60]));
    assert_eq!((take(&mut fq), credits(&fq)), (Some(1), vec![30, -60]));
    assert_eq!((take(&mut fq), credits(&fq)), (Some(0), vec![-90, 30]));
    assert_eq!((take(&mut fq), credits(&fq)), (None, vec![90, 30]));
    assert!(fq.queues.iter().all(|queue| !queue.active));
    // They are new again.
    put(&mut fq, 1, 1, 120);
    assert_eq!((credits(&fq), fq.gauges()[0].1), (vec![90, 90], 1.0));
}

#[test]
fn queues_are_controlled_one_by_one() {
    // ns-3's test: five flows of 20 packets of 120 bytes, one of which is asked for every 110 ms. While more
    // than 1500 bytes stay in its queue, each packet but the first of an ECN-capable flow is marked. Packets
    // of other flows are dropped: one in the second and third each, and one in the fourth, for which two are
    // due with the approximation of square roots of ns-3 and Linux.
    for (law, of_each) in [("rfc", 3), ("linux", 4)] {
        let (fq, marked, dropped, sent) = ask_five_flows(law);
        assert_eq!((marked, dropped), ([6, 6, 6, 0, 0], [0, 0, 0, of_each, of_each]), "{law}");
        assert_eq!(sent, [20, 20, 20, 20 - of_each, 20 - of_each]);
        let counters = &fq.class.through;
        assert_eq!(
            (counters.notified(Reason::Target), counters.dropped(Reason::Target)),
            ([0, 18, 0], [0, u64::from(2 * of_each), 0])
        );
    }
}

/// The packets of each flow that are marked, dropped and sent.
fn ask_five_flows(law: &str) -> (FqCodel<Header>, [u32; 5], [u32; 5], [u32; 5]) {
    let keys = format!(r#""target": "5ms", "backlog": "queue", "mtu": "1499B", "law": "{law}""#);
    let mut fq = fq(&keys);
    for flow in 0..5 {
        let ecn = if flow < 3 { Ecn::Capable0 } else { Ecn::NotCapable };
        for _ in 0..20 {
            fq.enqueue(Header { ecn, ..Header::new(FlowId(flow), 120) }, at(0)).unwrap();
        }
    }
    let (mut marked, mut dropped, mut sent) = ([0; 5], [0; 5], [0; 5]);
    for n in 1..=100 {
        loop {
            match fq.dequeue(at(n * 110)) {
                Dequeued::Sent(packet, _) => {
                    sent[packet.flow.0 as usize] += 1;
                    marked[packet.flow.0 as usize] += u32::from(packet.ecn == Ecn::Congested);
                    break;
                }
                Dequeued::Dropped(packet, Reason::Target) => {
                    let flow = packet.flow.0 as usize;
                    assert!(sent[flow] + dropped[flow] < 8, "no more than 1500 bytes stay behind");
                    dropped[flow] += 1;
                }
                Dequeued::Wait(_) => break,
                Dequeued::Dropped(..) => panic!("it is not full"),
            }
        }
    }
    (fq, marked, dropped, sent)
}

#[test]
fn what_stays_in_other_queues_counts_unless_told_otherwise() {
    let dropped = |backlog: &str| {
        let mut fq = fq(&format!(r#""target": "5ms", "backlog": "{backlog}""#));
        (0..4).for_each(|flow| put(&mut fq, flow, 3, 700));
        let packets = (1..=12).map(|n| fq.dequeue(at(n * 110)));
        packets.filter(|packet| matches!(packet, Dequeued::Dropped(..))).count()
    };
    assert_eq!(dropped("queue"), 0);
    assert!(dropped("port") > 0);
}

#[test]
fn both_directions_of_a_flow_have_a_queue() {
    let mut fq = fq("");
    put(&mut fq, 0, 1, 100);
    let back = Header { direction: Direction::Backward, ..Header::new(FlowId(0), 100) };
    fq.enqueue(back, at(0)).unwrap();
    assert_eq!(fq.queues.len(), 2);
}

/// How many queues hold these flows.
fn queues_of(hash: &str, flows: u32, of: std::ops::Range<u32>) -> usize {
    let mut fq = fq(&format!(r#""hash": "{hash}", "flows": {flows}"#));
    of.for_each(|flow| put(&mut fq, flow, 1, 100));
    fq.queues.iter().filter(|queue| queue.active).count()
}

#[test]
fn flows_share_queues_by_chance_within_a_set_or_never() {
    for flows in 0..8 {
        let ranges = [flows * 100..flows * 100 + 8, flows * 100..flows * 100 + 9];
        assert_eq!(ranges.clone().map(|of| queues_of("set-associative", 8, of)), [8, 8]);
        assert_eq!(ranges.map(|of| queues_of("exact", 8, of)), [8, 9]);
    }
    assert_eq!(queues_of("stochastic", 1, 0..9), 1);
    // 16 of 1024 are different with a probability of 0.89, 600 have 453 different ones on average.
    assert!((15..=16).contains(&queues_of("stochastic", 1024, 0..16)));
    assert!((420..490).contains(&queues_of("stochastic", 1024, 0..600)));
    assert!(queues_of("set-associative", 1024, 0..600) > 580);
}

#[test]
fn a_queue_that_is_not_active_is_taken_from_its_flow_when_there_are_enough() {
    let mut fq = fq(r#""flows": 2"#);
    for flow in 0..50 {
        put(&mut fq, flow, 2, 100);
        put(&mut fq, flow + 1, 1, 100);
        assert_eq!(drain(&mut fq).len(), 3);
    }
    assert_eq!(fq.queues.len(), 2);
    // Each has its own again, and more when all are active.
    (0..5).for_each(|flow| put(&mut fq, flow, 3, 100));
    assert_eq!(fq.queues.iter().map(|queue| queue.chain.packets()).collect::<Vec<_>>(), [3; 5]);
}

#[test]
fn the_salt_is_the_streams() {
    let buckets = |seed| {
        let params: FqCodelParams = serde_json::from_str("{}").unwrap();
        let fq = FqCodel::<Header>::new(params, crate::testing::environment(), streams(seed));
        (0..50).map(|flow| fq.order_of(&Header::new(FlowId(flow), 40))).collect::<Vec<_>>()
    };
    assert_eq!(buckets(1), buckets(1));
    assert_ne!(buckets(1), buckets(2));
}

#[test]
fn limits_that_leave_no_room_are_noticed() {
    let idle = |keys: &str| {
        let params = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
        let idle = FqCodel::<Header>::keys_without_effect(&params, &(40..=1000)).into_iter();
        idle.map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(idle(""), [""; 0]);
    assert_eq!(idle(r#""memory-limit": "39B""#), ["memory-limit"]);
    assert_eq!(idle(r#""memory-limit": "40B""#), ["mtu"]);
    assert_eq!(idle(r#""limit": "1p""#), ["mtu"]);
    assert_eq!(idle(r#""limit": "2p""#), [""; 0]);
}

/// A packet of one of four flows; its label is its place among all.
fn arrivals() -> impl Strategy<Value = Vec<(u32, u16, bool)>> {
    prop::collection::vec((0_u32..4, 40_u16..=1500, any::<bool>()), 1..200)
}

proptest! {
    #[test]
    fn packets_are_conserved_and_those_of_a_flow_keep_their_order(
        seed: u64,
        arrivals in arrivals(),
        limits in prop::sample::select(vec![r#""limit": "20p""#, r#""memory-limit": "9kB", "batch": 2"#]),
        law in prop::sample::select(LAWS.to_vec()),
        kind in prop::sample::select(vec![r#""stochastic", "flows": 3"#, r#""exact", "flows": 2"#]),
        asks in 1_usize..3,
    ) {
        let keys = format!(r#"{{"hash": {kind}, {limits}, {law}, "target": "1ms", "interval": "3ms", "mtu": "100B"}}"#);
        let params: FqCodelParams = serde_json::from_str(&keys).unwrap();
        let mut fq = FqCodel::new(params, crate::testing::environment(), streams(seed));
        let (mut left, mut sent) = (0, Vec::new());
        for (place, &(flow, size, capable)) in (0..).zip(&arrivals) {
            let ecn = if capable { Ecn::Capable1 } else { Ecn::NotCapable };
            let packet = Header { label: place, ecn, ..Header::new(FlowId(flow), size) };
            let now = at(u64::from(place) / 2);
            prop_assert!(fq.enqueue(packet, now).is_ok());
            while fq.shed(now).is_some() {
                left += 1;
            }
            prop_assert!(fq.occupancy().packets() <= 20 || limits.contains("memory"));
            prop_assert!(fq.occupancy().bytes() <= 9000 || limits.contains("20p"));
            for _ in 0..if place % 2 == 0 { asks } else { 0 } {
                match fq.dequeue(now) {
                    Dequeued::Sent(packet, _) => sent.push(packet),
                    Dequeued::Dropped(..) => left += 1,
                    Dequeued::Wait(_) => prop_assert_eq!(fq.occupancy().packets(), 0),
                }
            }
            fq.class.balance().map_err(|imbalance| TestCaseError::fail(imbalance.to_string()))?;
        }
        let mut waiting = 0;
        fq.inspect(&mut |_| waiting += 1);
        prop_assert_eq!(sent.len() + left + waiting, arrivals.len());
        prop_assert_eq!(fq.occupancy().packets(), waiting as u64);
        for flow in 0..4 {
            let of_flow = sent.iter().filter(|packet| packet.flow.0 == flow);
            prop_assert!(of_flow.map(|packet| packet.label).is_sorted());
        }
    }

    /// Shreedhar & Varghese's bound: the bytes of two flows that always wait differ by less than a quantum
    /// and a packet.
    #[test]
    fn flows_that_always_wait_get_the_same_bytes(
        sizes in prop::collection::vec((40_u16..=1500, 40_u16..=1500), 100),
        quantum in 1_u32..4000,
        law in prop::sample::select(LAWS.to_vec()),
    ) {
        let mut fq = fq(&format!(r#""quantum": "{quantum}B", {law}"#));
        for &(one, other) in &sizes {
            put(&mut fq, 0, 1, one);
            put(&mut fq, 1, 1, other);
        }
        let mut bytes = [0_i64; 2];
        while fq.queues.iter().all(|queue| queue.chain.packets() > 0) {
            let Dequeued::Sent(packet, _) = fq.dequeue(at(0)) else { panic!("packets wait") };
            bytes[packet.flow.0 as usize] += i64::from(packet.size);
            prop_assert!((bytes[0] - bytes[1]).abs() <= i64::from(quantum) + 1500, "{:?}", bytes);
        }
    }
}

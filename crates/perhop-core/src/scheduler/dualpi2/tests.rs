use proptest::prelude::*;

use super::*;
use crate::aqm::PiLaw;
use crate::testing::{environment, streams};
use crate::{Dscp, FlowId};

fn params(keys: &str) -> DualPi2Params {
    let params = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
    DualPi2::<Header>::check(&params).unwrap();
    params
}

fn dualpi2(keys: &str) -> DualPi2<Header> {
    DualPi2::new(params(keys), environment(), streams(1))
}

/// With this base probability for good.
fn held_at(p: f64, keys: &str) -> DualPi2<Header> {
    let mut dualpi2 = dualpi2(keys);
    let law = match dualpi2.controller.law() {
        PiLaw::Exact { most, .. } => PiLaw::Exact { alpha: 0.0, beta: 0.0, p: p.min(*most), most: *most },
        PiLaw::Quantized { most, .. } => {
            PiLaw::Quantized { alpha: 0, beta: 0, p: (p * f64::from(u32::MAX)) as u32, most: *most }
        }
    };
    dualpi2.controller = PiController::new(law, Duration::from_millis(15), Duration::from_millis(15));
    dualpi2
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

fn packet(ecn: Ecn) -> Header {
    Header { ecn, ..Header::new(FlowId(0), 1500) }
}

fn put(dualpi2: &mut DualPi2<Header>, ecn: Ecn, packets: usize) {
    for _ in 0..packets {
        dualpi2.enqueue(packet(ecn), at(0)).unwrap();
    }
}

/// The queues of this many packets that are sent.
fn order(dualpi2: &mut DualPi2<Header>, packets: usize) -> String {
    let one = |_| match dualpi2.dequeue(at(0)) {
        Dequeued::Sent(_, L4S) => 'L',
        Dequeued::Sent(_, CLASSIC) => 'C',
        other => panic!("{other:?}"),
    };
    (0..packets).map(one).collect()
}

#[test]
fn constants_follow_from_the_target_and_the_largest_round_trip() {
    let near =
        |(alpha, beta): (f64, f64), (a, b): (f64, f64)| (alpha - a).abs() < 1e-12 && (beta - b).abs() < 1e-12;
    let of = |keys: &str| (params(keys).interval(), params(keys).gains());
    let (interval, gains) = of("");
    assert!(interval == Duration::from_millis(15) && near(gains, (0.15, 3.0)), "{gains:?}");
    let (interval, gains) = of(r#""target": "20ms", "rtt-max": "200ms""#);
    assert!(interval == Duration::from_millis(20) && near(gains, (0.05, 1.5)), "{gains:?}");
    assert_eq!(of(r#""target": "50ms", "rtt-max": "60ms""#).0, Duration::from_millis(20));
    assert_eq!(of(r#""law": "linux""#), (Duration::from_millis(16), (41.0 / 256.0, 819.0 / 256.0)));
    assert_eq!(of(r#""alpha": 0.2, "beta": 2.5, "interval": "9ms""#), (Duration::from_millis(9), (0.2, 2.5)));
}

#[test]
fn room_is_what_the_link_sends_in_a_quarter_of_a_second() {
    assert_eq!(params("").room(environment().rate), Depth::Bytes(250_000));
    assert_eq!(params(r#""law": "linux""#).room(environment().rate), Depth::Packets(10_000));
    let mut dualpi2 = dualpi2(r#""limit": "3p""#);
    put(&mut dualpi2, Ecn::Capable1, 2);
    put(&mut dualpi2, Ecn::Capable0, 1);
    let refused = dualpi2.enqueue(packet(Ecn::Capable1), at(0)).unwrap_err();
    assert_eq!(refused.1, Reason::Overflow);
    assert_eq!(dualpi2.class(L4S).through.dropped(Reason::Overflow), [0, 1, 0]);
}

#[test]
fn a_classic_packet_goes_after_nine() {
    for (keys, expected) in [
        (r#""law": "linux", "mtu": "1514B""#, "LLLLLLLLLCLLLLLLLLLCLL"),
        (r#""law": "linux", "mtu": "1514B", "classic-share": 0.25"#, "LLLCLLLCLLLC"),
        ("", "LLLLLLLLLLLLLLLCLLLLLLLLLLLLLLLCLL"),
    ] {
        let mut dualpi2 =
            held_at(0.0, &format!(r#"{keys}{} "step": "1s""#, if keys.is_empty() { "" } else { "," }));
        put(&mut dualpi2, Ecn::Capable1, 40);
        put(&mut dualpi2, Ecn::NotCapable, 40);
        assert_eq!(order(&mut dualpi2, expected.len()), expected, "{keys}");
    }
    let Turns::WeightedRoundRobin { credit, .. } = dualpi2(r#""law": "linux", "mtu": "1514B""#).turns else {
        panic!("it is the default")
    };
    assert_eq!(credit, -121_120 * 100, "in parts of a ten-thousandth, not of a hundredth");
}

#[test]
fn the_credit_changes_only_while_both_wait_and_begins_anew_when_none_does() {
    let mut dualpi2 = held_at(0.0, r#""classic-share": 0.25, "mtu": "0B""#);
    let credit = |dualpi2: &DualPi2<Header>| match dualpi2.turns {
        Turns::WeightedRoundRobin { credit, .. } => credit,
        Turns::TimeShiftedFifo(_) => panic!("it is round robin"),
    };
    put(&mut dualpi2, Ecn::NotCapable, 2);
    assert_eq!((order(&mut dualpi2, 1), credit(&dualpi2)), ("C".into(), 0));
    put(&mut dualpi2, Ecn::Capable1, 1);
    assert_eq!((order(&mut dualpi2, 1), credit(&dualpi2)), ("L".into(), 1500 * 2500));
    assert_eq!(order(&mut dualpi2, 1), "C");
    assert_eq!(credit(&dualpi2), 1500 * 2500);
    assert_eq!(dualpi2.dequeue(at(0)), Dequeued::Wait(None));
    assert_eq!(credit(&dualpi2), 0);
}

#[test]
fn a_time_shifted_fifo_lets_l4s_go_fifty_milliseconds_before_its_time() {
    let mut dualpi2 = dualpi2(r#""order": "time-shifted-fifo", "step": "1s""#);
    let mut come = |micros, ecn| dualpi2.enqueue(packet(ecn), at(micros)).unwrap();
    come(0, Ecn::NotCapable);
    come(1, Ecn::NotCapable);
    come(50_000, Ecn::Capable1);
    come(50_001, Ecn::Capable1);
    come(50_002, Ecn::Capable1);
    assert_eq!(order(&mut dualpi2, 5), "LCLCL");
}

#[test]
fn the_ecn_field_and_a_codepoint_choose_the_queue() {
    let classes = |keys: &str, dscp| {
        let dualpi2 = dualpi2(keys);
        [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::Congested]
            .map(|ecn| dualpi2.class_of(&Header { dscp: Dscp::new(dscp).unwrap(), ..packet(ecn) }))
    };
    assert_eq!(classes("", 45), [CLASSIC, CLASSIC, L4S, L4S]);
    assert_eq!(classes(r#""l4s-dscp": 45"#, 45), [L4S; 4]);
    assert_eq!(classes(r#""l4s-dscp": 45"#, 46), [CLASSIC, CLASSIC, L4S, L4S]);
}

/// Packets of this field at a base probability: how many of a thousand are marked and dropped, with the
/// reasons.
fn thousand(p: f64, keys: &str, ecn: Ecn) -> ((u64, u64), Vec<Reason>) {
    let mut dualpi2 = held_at(p, &format!(r#""limit": "2000p", "step": "1s"{keys}"#));
    put(&mut dualpi2, ecn, 1000);
    while dualpi2.dequeue(at(0)) != Dequeued::Wait(None) {}
    let counters = dualpi2.counters();
    let yellow = |found: (Reason, [u64; 3])| found.1[1];
    let reasons = counters.notifications().chain(counters.drops()).map(|(reason, _)| reason).collect();
    ((counters.notifications().map(yellow).sum(), counters.drops().map(yellow).sum()), reasons)
}

#[test]
fn l4s_is_marked_k_times_as_often_and_classic_by_the_square() {
    use Reason::{Controller, Overload};
    assert_eq!(thousand(0.125, "", Ecn::Capable1), ((249, 0), vec![Controller]));
    assert_eq!(thousand(0.125, "", Ecn::Capable0), ((15, 0), vec![Controller]));
    assert_eq!(thousand(0.125, "", Ecn::NotCapable), ((0, 15), vec![Controller]));
    assert_eq!(thousand(0.25, r#", "k": 3"#, Ecn::Capable1), ((749, 0), vec![Controller]));
    // In overload ECN-capable packets are dropped, too.
    assert_eq!(thousand(0.625, "", Ecn::Capable0), ((0, 390), vec![Overload]));
    assert_eq!(thousand(0.625, "", Ecn::Capable1), ((609, 390), vec![Controller, Overload]));
    // Or the base probability stays at 1/k.
    let overflow = r#", "overload": "overflow""#;
    assert_eq!(thousand(0.625, overflow, Ecn::Capable0), ((249, 0), vec![Controller]));
    assert_eq!(thousand(0.625, overflow, Ecn::Capable1), ((999, 0), vec![Controller]));
}

#[test]
fn linux_draws_at_random_and_spares_a_short_queue() {
    let share = |p, ecn| thousand(p, r#", "law": "linux""#, ecn).0;
    let near = |found: u64, expected: u64| found.abs_diff(expected) < 60;
    assert!(near(share(0.1, Ecn::Capable1).0, 200) && near(share(0.3, Ecn::Capable0).0, 90));
    assert!(near(share(0.3, Ecn::NotCapable).1, 90));
    let (marked, dropped) = share(0.625, Ecn::Capable1);
    assert!(near(dropped, 390) && near(marked, 610), "{marked} {dropped}");
    // All are marked but those behind which less than two packets wait.
    assert_eq!(share(0.5, Ecn::Capable1), (998, 0));
}

#[test]
fn an_overload_leaves_no_debt_of_marks() {
    let mut dualpi2 = held_at(0.9, r#""limit": "2000p", "step": "1s""#);
    put(&mut dualpi2, Ecn::Capable1, 500);
    while dualpi2.dequeue(at(0)) != Dequeued::Wait(None) {}
    let marked = dualpi2.counters().notified(Reason::Controller);
    let PiLaw::Exact { most, .. } = *dualpi2.controller.law() else { panic!("it is exact") };
    let calm = PiLaw::Exact { alpha: 0.0, beta: 0.0, p: 0.0, most };
    dualpi2.controller = PiController::new(calm, Duration::from_millis(15), Duration::from_millis(15));
    put(&mut dualpi2, Ecn::Capable1, 500);
    while dualpi2.dequeue(at(0)) != Dequeued::Wait(None) {}
    assert_eq!(dualpi2.counters().notified(Reason::Controller), marked);
}

#[test]
fn l4s_packets_that_waited_a_millisecond_are_marked_unless_they_wait_alone() {
    let marks = |law: &str, sojourn, waiting| {
        let mut dualpi2 = held_at(0.0, law);
        put(&mut dualpi2, Ecn::Capable1, waiting);
        for _ in 0..waiting {
            dualpi2.dequeue(at(sojourn));
        }
        let counters = dualpi2.counters();
        assert_eq!(counters.notified(Reason::Controller), [0; 3]);
        counters.notified(Reason::Step)[1]
    };
    // The last one waits alone, unless `step-length` is 0. At 1000 us half of the others are marked, and all
    // above 1200.
    assert_eq!([800, 1000, 1200].map(|sojourn| marks("", sojourn, 101)), [0, 49, 99]);
    let linux = r#""law": "linux""#;
    assert_eq!([1000, 1001].map(|sojourn| marks(linux, sojourn, 101)), [0, 101], "also the last");
    assert_eq!(marks(r#""law": "linux", "step-length": 1"#, 1001, 101), 100);
    assert_eq!(
        marks(r#""step-length": 0"#, 1200, 101),
        100,
        "the first one's probability is not yet above 1"
    );
    assert_eq!(marks(r#""step-length": 5"#, 5000, 101), 95);
}

#[test]
fn the_older_head_is_the_queueing_delay() {
    // Updates every 15 ms: the first finds 15 ms, the second 30 ms.
    let first = 3.0 * 0.015;
    let second = first + 0.15 * 0.015 + 3.0 * 0.015;
    for oldest in [Ecn::Capable1, Ecn::NotCapable] {
        let mut dualpi2 = dualpi2("");
        dualpi2.enqueue(packet(oldest), at(0)).unwrap();
        dualpi2.enqueue(packet(Ecn::Capable1), at(14_000)).unwrap();
        dualpi2.enqueue(packet(Ecn::NotCapable), at(14_000)).unwrap();
        assert_eq!(dualpi2.gauges(), [("base probability".into(), 0.0)]);
        dualpi2.enqueue(packet(Ecn::NotCapable), at(15_000)).unwrap();
        assert!((dualpi2.controller.p() - first).abs() < 1e-12);
        dualpi2.dequeue(at(30_000));
        assert!((dualpi2.controller.p() - second).abs() < 1e-12);
    }
}

#[test]
fn protected_flows_do_not_suffer_from_others() {
    // At 8 Mbit/s: flow 1 sends three packets of 1500 bytes each 3 ms, flow 2 one of 100 bytes.
    let worst = |keys: &str| {
        let mut dualpi2 = dualpi2(keys);
        let (mut worst, mut free) = (Duration::ZERO, 0);
        for micros in (0..300_000).step_by(10) {
            if micros % 3000 == 0 {
                let mut come = |flow, size| {
                    let header = Header { flow: FlowId(flow), size, ..packet(Ecn::Capable1) };
                    dualpi2.enqueue(header, at(micros)).unwrap();
                };
                (0..3).for_each(|_| come(1, 1500));
                come(2, 100);
            }
            if micros < free {
                continue;
            }
            if let Dequeued::Sent(header, class) = dualpi2.dequeue(at(micros)) {
                free = micros + u64::from(header.size);
                assert!(class == L4S || header.flow.0 == 1, "the small flow stays in its queue");
                if header.flow.0 == 2 {
                    worst = worst.max(at(micros).since(header.arrived));
                }
            }
        }
        (worst, dualpi2.protection.map_or(0.0, |protection| protection.redirected()))
    };
    let (unprotected, none) = worst("");
    let (protected, redirected) = worst(r#""queue-protection": {}"#);
    // A third of flow 1's 300 packets is more than the link sends; some wait in the L4S queue before it is
    // critical.
    assert!(none == 0.0 && (75.0..=100.0).contains(&redirected), "{redirected}");
    assert!(unprotected > Duration::from_millis(90), "{unprotected}");
    assert!(protected < Duration::from_millis(12), "{protected}");
    let mut shown = dualpi2(r#""queue-protection": {}"#);
    shown.enqueue(packet(Ecn::Capable1), at(0)).unwrap();
    assert_eq!(shown.gauges()[1], ("redirected".into(), 0.0));
}

proptest! {
    #[test]
    fn packets_are_conserved_and_no_queue_starves(
        arrivals in prop::collection::vec((0_usize..4, 40_u16..=1500, 0_u64..900), 1..300),
        share in 0.02_f64..0.5,
        law in prop::sample::select(vec!["rfc", "linux"]),
        seed: u64,
    ) {
        let keys = format!(r#""classic-share": {share:.4}, "limit": "60p", "target": "2ms", "law": "{law}""#);
        let mut dualpi2 = DualPi2::new(params(&keys), environment(), streams(seed));
        let (mut now, mut left, mut since, mut bytes) = (Instant::ZERO, 0_usize, 0_f64, 0_f64);
        for &(field, size, gap) in &arrivals {
            now += Duration::from_nanos(gap * 1000);
            let ecn = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][field];
            left += usize::from(dualpi2.enqueue(Header { size, ..packet(ecn) }, now).is_err());
            if gap % 3 == 0 {
                continue;
            }
            let both = !dualpi2.l4s.packets.is_empty() && !dualpi2.classic.packets.is_empty();
            match dualpi2.dequeue(now) {
                Dequeued::Sent(packet, class) => {
                    left += 1;
                    // While both wait, the classic queue has its share but for what it begins with and a
                    // packet of each.
                    if both {
                        bytes += f64::from(packet.size);
                        since += if class == CLASSIC { f64::from(packet.size) } else { 0.0 };
                        prop_assert!(since >= share * bytes - 3.0 * 1500.0, "{} of {}", since, bytes);
                    }
                }
                Dequeued::Dropped(..) => left += 1,
                Dequeued::Wait(_) => prop_assert_eq!(dualpi2.occupancy().packets(), 0),
            }
            for class in [L4S, CLASSIC] {
                dualpi2.class(class).balance().map_err(|imbalance| TestCaseError::fail(imbalance.to_string()))?;
            }
        }
        let mut waiting = 0;
        dualpi2.inspect(&mut |_| waiting += 1);
        prop_assert_eq!(left + waiting, arrivals.len());
    }
}

#[test]
fn parameters_without_effect_are_noticed() {
    let idle = |table: &str| {
        let params = serde_json::from_str(table).unwrap();
        let idle = <DualPi2<Header> as Block>::keys_without_effect(&params, &(40..=1500));
        idle.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(idle(r#"{"rtt-max": "50ms", "alpha": 1, "beta": 1}"#), [""; 0]);
    assert_eq!(idle(r#"{"rtt-max": "50ms", "interval": "9ms", "alpha": 1, "beta": 1}"#), ["rtt-max"]);
    assert_eq!(idle(r#"{"rtt-max": "50ms", "law": "linux"}"#), ["rtt-max"]);
    assert_eq!(idle(r#"{"mtu": "9kB"}"#), [""; 0]);
    assert_eq!(idle(r#"{"mtu": "9kB", "order": "time-shifted-fifo"}"#), ["mtu"]);
    let linux = r#"{"mtu": "9kB", "order": "time-shifted-fifo", "law": "linux"}"#;
    assert_eq!(idle(linux), [""; 0], "it says how much must wait for a decision");
}

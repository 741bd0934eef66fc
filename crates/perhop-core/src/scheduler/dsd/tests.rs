use super::*;
use crate::testing::{environment, streams};
use crate::{FlowId, Serializer};
use proptest::prelude::*;
use std::collections::BTreeMap;

const UNIT: u64 = 1_000_000;
const SIZE: u16 = 1000;

/// A queue on a link of 8 Mbit/s: 1000 bytes take a millisecond, the unit.
fn dsd(table: &str) -> Dsd<Header> {
    let params: DsdParams = serde_json::from_str(table).unwrap();
    Dsd::new(params, environment(), streams(1))
}

fn packet(service: Service, label: u32, size: u16) -> Header {
    Header { dscp: service.dscp(), label, ..Header::new(FlowId(0), size) }
}

/// Serves arrivals (time in ns, packet) until nothing waits: when each packet's transmission began, and what
/// was dropped.
struct Served {
    began: BTreeMap<u32, Instant>,
    order: Vec<u32>,
    dropped: BTreeMap<u32, Reason>,
}

fn serve(queue: impl Discipline<Header>, arrivals: &[(u64, Header)]) -> Served {
    serve_at(8_000_000, queue, arrivals)
}

/// As [`serve`], on a link of this rate.
fn serve_at(bps: u64, mut queue: impl Discipline<Header>, arrivals: &[(u64, Header)]) -> Served {
    let mut link = Serializer::new(Bitrate::from_bps(bps).unwrap());
    let mut served = Served { began: BTreeMap::new(), order: Vec::new(), dropped: BTreeMap::new() };
    let mut coming = arrivals.iter().map(|&(at, packet)| (Instant::from_nanos(at), packet)).peekable();
    let (mut now, mut idle) = (Instant::ZERO, true);
    loop {
        // At one time, a transmission ends before a packet comes.
        let ready = link.busy_until().max(now);
        if idle || coming.peek().is_some_and(|&(at, _)| at < ready) {
            let Some((at, packet)) = coming.next() else { return served };
            now = at;
            match queue.enqueue(packet, now) {
                Ok(()) => idle = false,
                Err((packet, reason)) => drop(served.dropped.insert(packet.label, reason)),
            }
            continue;
        }
        now = ready;
        match queue.dequeue(now) {
            Dequeued::Sent(packet, _) => {
                served.began.insert(packet.label, now);
                served.order.push(packet.label);
                link.transmit(packet.size, now);
            }
            Dequeued::Dropped(packet, reason) => {
                served.dropped.insert(packet.label, reason);
            }
            Dequeued::Wait(_) => idle = true,
        }
    }
}

/// The arrivals of the draft's appendix A, one unit later. Those of its time 0 come a nanosecond early: the
/// draft still counts the packet whose service begins then. Labels: blue 1 to 9, green 11 to 14; 0 is in
/// transmission before.
fn appendix() -> Vec<(u64, Header)> {
    let blue = |label| packet(Service::Blue, label, SIZE);
    let green = |label: u32| packet(Service::Green, 10 + label, SIZE);
    let at = |nanos: u64, packets: &[Header]| {
        packets.iter().map(move |&packet| (nanos, packet)).collect::<Vec<_>>()
    };
    [
        at(0, &[blue(0), blue(1), green(1)]),
        at(UNIT - 1, &[blue(2), blue(3), blue(4), green(2), blue(5), blue(6)]),
        at(5 * UNIT, &[blue(7), green(3)]),
        at(6 * UNIT, &[blue(8), blue(9), green(4)]),
    ]
    .concat()
}

#[test]
fn the_drafts_appendix_a() {
    let run = |bias: u8| {
        let table = format!(
            r#"{{"bound": "3ms", "bias": {bias}, "green-drop": "late", "rule": {{"aqm": "drop-tail", "limit": "7p"}}}}"#
        );
        serve(dsd(&table), &appendix())
    };
    let served = run(1);
    assert_eq!(served.order, [0, 1, 11, 2, 3, 4, 13, 5, 7, 14, 8, 9]);
    assert_eq!(served.dropped, BTreeMap::from([(6, Reason::Overflow), (12, Reason::Late)]));
    assert_eq!(run(0).order, [0, 1, 2, 11, 3, 4, 5, 7, 13, 14, 8, 9]);
}

#[test]
fn the_drafts_appendix_b() {
    let table = r#"{"bound": "3ms", "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
    let served = serve(dsd(table), &appendix());
    assert_eq!(served.order, [0, 1, 11, 2, 3, 4, 13, 5, 7, 14, 8, 9]);
    assert_eq!(served.dropped, BTreeMap::from([(6, Reason::Overflow), (12, Reason::DelayControl)]));
}

#[test]
fn a_refused_green_packet_can_delay_blue() {
    // Room for one: greens 11 and 12 find it taken by blue 1. Let in, green 12 is on the link when blue 2
    // comes to a virtual queue that is long empty.
    let arrivals = [
        (0, packet(Service::Blue, 0, SIZE)),
        (0, packet(Service::Blue, 1, SIZE)),
        (0, packet(Service::Green, 11, SIZE)),
        (0, packet(Service::Green, 12, SIZE)),
        (2 * UNIT + UNIT / 2, packet(Service::Blue, 2, SIZE)),
    ];
    let began = |refused: &str| {
        let table = format!(
            r#"{{"bound": "9ms", "refused-green": "{refused}", "rule": {{"aqm": "drop-tail", "limit": "1p"}}}}"#
        );
        serve(dsd(&table), &arrivals).began[&2].as_nanos()
    };
    assert_eq!(began("drop"), 2 * UNIT + UNIT / 2);
    assert_eq!(began("admit"), 3 * UNIT);
}

#[test]
fn the_control_loop_by_hand() {
    let table = r#"{"bound": "9ms", "bias": 0.5, "control": "1s", "base-rtt": "30ms",
                    "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
    let mut control = dsd(table).control.unwrap();
    let mut bias = 0.5;
    let mut move_bias = |lost: [u64; 2], second: u64| {
        // Blue waited 30 ms, green 0: RTT^2 is four to one.
        (control.arrived, control.lost, control.sent) = ([100; 2], lost, [100; 2]);
        control.waited = [Duration::from_millis(3000), Duration::ZERO];
        control.settle(Instant::from_nanos(second * 1_000_000_000), &mut bias);
        (bias * 100.0).round()
    };
    assert_eq!(move_bias([1, 3], 1), 45.0, "green would get more: 9 * 3 < 36 * 1");
    assert_eq!(move_bias([1, 5], 2), 50.0, "green would get less: 9 * 5 > 36 * 1");
    assert_eq!(move_bias([0, 0], 3), 50.0, "nothing to go by");
}

fn put(queue: &mut Dsd<Header>, nanos: u64, service: Service) -> Result<(), Reason> {
    queue.enqueue(packet(service, 0, SIZE), Instant::from_nanos(nanos)).map_err(|(_, reason)| reason)
}

fn take(queue: &mut Dsd<Header>, nanos: u64) -> Dequeued<Header> {
    queue.dequeue(Instant::from_nanos(nanos))
}

#[test]
fn the_rates_that_the_control_loop_predicts_by_hand() {
    let table = r#"{"bound": "9ms", "control": "1s", "base-rtt": "30ms", "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
    let mut control = dsd(table).control.unwrap();
    (control.arrived, control.lost, control.sent) = ([200, 50], [1, 3], [100, 40]);
    control.waited = [Duration::from_secs(3), Duration::from_millis(400)];
    // RTT^2 p: (30 + 30 ms)^2 / 200, and (30 + 10 ms)^2 3 / 50.
    let [blue, green] = control.inverse_squared_rates().unwrap();
    assert!((blue - 1.8e-5).abs() < 1e-15 && (green - 9.6e-5).abs() < 1e-15, "{blue} {green}");
}

#[test]
fn the_bytes_that_are_due_are_counted_back_and_forth() {
    let held = |(millis, size)| Held {
        packet: packet(Service::Blue, 0, size),
        ticket: 0,
        deadline: Instant::from_nanos(millis * UNIT),
        decided: None,
    };
    let packets = [(1, 100), (2, 200), (3, 400)].map(held).into();
    let mut blue: Blue<Header> = Blue { packets, due: 0, due_bytes: 0 };
    let before = |blue: &mut Blue<Header>, nanos| blue.due_bytes_before(Instant::from_nanos(nanos));
    for (nanos, bytes) in [
        (UNIT, 0),
        (2 * UNIT, 100),
        (9 * UNIT, 700),
        (2 * UNIT + 1, 300),
        (2 * UNIT, 100),
        (0, 0),
        (3 * UNIT, 300),
    ] {
        assert_eq!(before(&mut blue, nanos), bytes, "{nanos}");
    }
    assert_eq!(blue.pop().unwrap().packet.size, 100);
    assert_eq!(before(&mut blue, 3 * UNIT), 200);
    assert_eq!(before(&mut blue, UNIT), 0);
    assert_eq!(blue.pop().unwrap().packet.size, 200);
    assert_eq!(before(&mut blue, 9 * UNIT), 400);
}

#[test]
fn the_control_loop_counts_what_comes_and_what_becomes_of_it() {
    use Service::{Blue, Green};
    let table =
        r#"{"bound": "9ms", "bias": 0.5, "control": "1s", "rule": {"aqm": "drop-tail", "limit": "2p"}}"#;
    let mut queue = dsd(table);
    // One blue packet is in transmission, two wait; neither another blue one nor a green one has room.
    (0..3).for_each(|_| put(&mut queue, 0, Blue).unwrap());
    assert_eq!([put(&mut queue, 0, Blue), put(&mut queue, 0, Green)], [Err(Reason::Overflow); 2]);
    for n in 0..3 {
        assert!(matches!(take(&mut queue, n * UNIT), Dequeued::Sent(..)));
    }
    put(&mut queue, 10 * UNIT, Green).unwrap();
    assert!(matches!(take(&mut queue, 11 * UNIT), Dequeued::Sent(..)));
    let counts = |queue: &Dsd<Header>| {
        let control = queue.control.as_ref().unwrap();
        (
            control.arrived,
            control.lost,
            control.sent,
            control.waited.map(Duration::as_nanos),
            control.ends.as_nanos(),
        )
    };
    let second = 1_000 * UNIT;
    assert_eq!(counts(&queue), ([4, 2], [1, 1], [3, 1], [3 * UNIT, UNIT], second));
    // Green lost half of its packets, blue a quarter: green would get less. Each interval begins with
    // nothing.
    put(&mut queue, second, Blue).unwrap();
    assert_eq!(counts(&queue), ([1, 0], [0; 2], [0; 2], [0; 2], 2 * second));
    assert!((queue.bias - 0.55).abs() < 1e-12, "{}", queue.bias);
    assert_eq!(queue.gauges().last().unwrap(), &("bias".to_owned(), queue.bias));
}

#[test]
fn a_green_packet_may_wait_for_its_bound_and_no_nanosecond_longer() {
    let table = r#"{"bound": "1ms", "control": "1s", "green-drop": "late", "rule": {"aqm": "drop-tail", "limit": "9p"}}"#;
    for (at, late) in [(UNIT, false), (UNIT + 1, true)] {
        let mut queue = dsd(table);
        put(&mut queue, 0, Service::Green).unwrap();
        let taken = take(&mut queue, at);
        assert_eq!(matches!(taken, Dequeued::Dropped(_, Reason::Late)), late, "{taken:?}");
        assert_eq!(queue.control.as_ref().unwrap().lost, [0, u64::from(late)]);
        assert_eq!(take(&mut queue, at), Dequeued::Wait(None));
    }
}

#[test]
fn the_early_test_is_exact_to_the_nanosecond() {
    // A blue packet of a millisecond is on the link; a green one behind it may wait for just what is left of
    // it.
    let table =
        |bound: u64| format!(r#"{{"bound": "{bound}ns", "rule": {{"aqm": "drop-tail", "limit": "9p"}}}}"#);
    for (bound, judged) in [(700_000, Ok(())), (699_999, Err(Reason::DelayControl))] {
        let mut queue = dsd(&table(bound));
        put(&mut queue, 0, Service::Blue).unwrap();
        assert!(matches!(take(&mut queue, 0), Dequeued::Sent(..)));
        assert_eq!(put(&mut queue, 300_000, Service::Green), judged, "{bound}");
    }
    // Two green packets: the second waits for the first, too.
    for (bound, judged) in [(1_700_000, Ok(())), (1_699_999, Err(Reason::DelayControl))] {
        let mut queue = dsd(&table(bound));
        put(&mut queue, 0, Service::Blue).unwrap();
        assert!(matches!(take(&mut queue, 0), Dequeued::Sent(..)));
        put(&mut queue, 300_000, Service::Green).unwrap();
        assert_eq!(put(&mut queue, 300_000, Service::Green), judged, "{bound}");
    }
}

#[test]
fn the_bias_stays_within_0_and_1_and_where_nothing_tells() {
    let table = r#"{"bound": "9ms", "bias": 0.5, "control": "1s", "step": 0.4, "base-rtt": "30ms",
                    "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
    let moved = |arrived, lost, sent, from: f64, times: u64| {
        let mut control = dsd(table).control.unwrap();
        let mut bias = from;
        for second in 1..=times {
            (control.arrived, control.lost, control.sent) = (arrived, lost, sent);
            control.settle(Instant::from_nanos(second * 1_000 * UNIT), &mut bias);
        }
        bias
    };
    assert_eq!(moved([9; 2], [1, 2], [9; 2], 0.5, 3), 1.0);
    assert_eq!(moved([9; 2], [2, 1], [9; 2], 0.5, 3), 0.0);
    // As often for both: green is given more.
    assert_eq!(moved([9; 2], [1, 1], [9; 2], 0.5, 1), 0.9);
    // A single loss of either service is an observation; no packet sent, or none arrived, is not.
    assert_eq!(moved([9; 2], [0, 1], [9; 2], 0.5, 1), 0.9);
    assert_eq!(moved([9; 2], [1, 0], [9; 2], 0.5, 2), 0.0);
    assert_eq!(moved([9; 2], [1, 2], [9, 0], 0.5, 1), 0.5);
    assert_eq!(moved([0, 9], [1, 2], [9; 2], 0.5, 1), 0.5);
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, Header)>> {
    let one = (0_u64..3 * UNIT, any::<bool>(), prop_oneof![Just(SIZE), Just(500_u16), Just(125_u16)]);
    prop::collection::vec(one, 0..200).prop_map(|list| {
        let mut now = 0;
        let mut out = Vec::new();
        for (label, (gap, is_green, size)) in list.into_iter().enumerate() {
            // Bursts: most packets come with the one before.
            now += if gap < 2 * UNIT { 0 } else { (gap - 2 * UNIT) * 4 };
            let service = if is_green { Service::Green } else { Service::Blue };
            out.push((now, packet(service, label as u32, size)));
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Local transparency (the draft's section 2): blue leaves no later than from a flat FIFO of the same
    /// packets, and is dropped only if it is dropped there.
    #[test]
    fn green_does_not_hurt_blue(
        arrivals in arrivals(),
        bound_ms in 0_u64..20,
        bias in 0_u8..=2,
        late: bool,
        room in 1_u64..30,
    ) {
        let rule = format!(r#"{{"aqm": "drop-tail", "limit": "{room}p"}}"#);
        let table = format!(
            r#"{{"bound": "{bound_ms}ms", "bias": {}, "green-drop": "{}", "rule": {rule}}}"#,
            f64::from(bias) / 2.0,
            if late { "late" } else { "early" },
        );
        let ours = serve(dsd(&table), &arrivals);
        let rule: AqmParams = serde_json::from_str(&rule).unwrap();
        let flat = serve(super::super::Fifo::new(super::super::FifoParams { rule }, environment(), streams(1)), &arrivals);
        for (_, packet) in &arrivals {
            if Service::of(packet.dscp) == Service::Blue {
                prop_assert_eq!(ours.dropped.get(&packet.label), flat.dropped.get(&packet.label));
                prop_assert!(ours.began.get(&packet.label) <= flat.began.get(&packet.label));
            }
        }
    }

    /// The early test is sufficient: with a bias of 1 what it lets in is never late.
    #[test]
    fn early_drop_lets_in_only_what_leaves_in_time(arrivals in arrivals(), bound_ms in 0_u64..20, room in 1_u64..30) {
        let table =
            format!(r#"{{"bound": "{bound_ms}ms", "rule": {{"aqm": "drop-tail", "limit": "{room}p"}}}}"#);
        let served = serve(dsd(&table), &arrivals);
        prop_assert!(served.dropped.values().all(|&reason| reason != Reason::Late), "{:?}", served.dropped);
        for (at, packet) in &arrivals {
            if let (Service::Green, Some(began)) = (Service::of(packet.dscp), served.began.get(&packet.label)) {
                prop_assert!(began.since(Instant::from_nanos(*at)) <= Duration::from_millis(bound_ms));
            }
        }
    }

    /// Under RED, which must draw alike for both, and where packets take parts of a nanosecond: blue is
    /// dropped where a flat FIFO drops it, and waits no longer than there but for one.
    #[test]
    fn parts_of_a_nanosecond(
        arrivals in arrivals(),
        bound_ms in 0_u64..20,
        late: bool,
        bytes: bool,
        bps in prop_oneof![Just(7_123_457_u64), Just(3_333_333), Just(9_999_991)],
    ) {
        let unit = if bytes { "kB" } else { "p" };
        let rule = format!(
            r#"{{"aqm": "red", "thresholds": "0{unit}/20{unit}/0.2", "limit": "30{unit}", "weight": 0.2}}"#
        );
        let environment = Environment { rate: Bitrate::from_bps(bps).unwrap() };
        let drop = if late { "late" } else { "early" };
        let table = format!(r#"{{"bound": "{bound_ms}ms", "green-drop": "{drop}", "rule": {rule}}}"#);
        let ours = serve_at(bps, Dsd::new(serde_json::from_str(&table).unwrap(), environment, streams(1)), &arrivals);
        let rule = serde_json::from_str(&rule).unwrap();
        let flat = super::super::Fifo::new(super::super::FifoParams { rule }, environment, streams(1));
        let flat = serve_at(bps, flat, &arrivals);
        for (at, packet) in &arrivals {
            let began = ours.began.get(&packet.label).copied();
            if Service::of(packet.dscp) == Service::Blue {
                prop_assert_eq!(ours.dropped.get(&packet.label), flat.dropped.get(&packet.label));
                let latest = flat.began.get(&packet.label).map(|&at| at + Duration::from_nanos(1));
                prop_assert!(began <= latest, "{began:?} {latest:?}");
            } else if let Some(began) = began {
                prop_assert!(began.since(Instant::from_nanos(*at)) <= Duration::from_millis(bound_ms));
            }
        }
    }
}

//! Blocks whose parameters change during a run keep what they have measured.

use perhop_core::aqm::{AqmParams, Verdict};
use perhop_core::meter::{Conditioner, MeterParams};
use perhop_core::scheduler::{Retuning, SchedulerParams};
use perhop_core::testing::{environment, streams};
use perhop_core::units::split_key;
use perhop_core::{
    Bitrate, Color, Context, Dscp, Duration, Ecn, FlowId, Header, Instant, Occupancy, Offered, Port, Rng,
    Served,
};
use proptest::prelude::*;

use crate::blocks::{aqm, meter, under_one_aqm};
use crate::parameters::{AQMS, METERS, SCHEDULERS};

/// A port in the harness's environment.
fn port(params: SchedulerParams) -> Port<Header> {
    let rate = Bitrate::from_bps(8_000_000).unwrap();
    Port::new(params, rate, streams(1), (Instant::ZERO, Instant::NEVER))
}

fn schedulers() -> impl Iterator<Item = (&'static str, SchedulerParams)> {
    let of_schedulers = SCHEDULERS.iter().map(|(name, table)| {
        let mut table = serde_json::Deserializer::from_str(table);
        (*name, SchedulerParams::deserialize_named(name, &mut table).unwrap().unwrap())
    });
    AQMS.iter().map(|(name, table)| (*name, aqm(name, table).into())).chain(of_schedulers)
}

/// From these parameters to those, at the rate of the harness's link.
fn to<'a>(
    before: &'a SchedulerParams,
    after: &'a SchedulerParams,
    now: Instant,
) -> Retuning<'a, SchedulerParams> {
    Retuning { before, after, rate: Bitrate::from_bps(8_000_000).unwrap(), now }
}

/// One arrival, and what the link then does.
fn step(port: &mut Port<Header>, packet: Header, now: Instant) -> (Offered<Header>, Vec<Served<Header>>) {
    let offered = port.offer(packet, now);
    while port.shed(now).is_some() {}
    let mut served = Vec::new();
    loop {
        served.push(port.serve(now));
        if !matches!(served.last(), Some(Served::Dropped(..))) {
            return (offered, served);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// New parameters that are the old ones change nothing: the whole state is taken over.
    #[test]
    fn a_block_that_gets_its_own_parameters_again_goes_on_as_before(
        arrivals in prop::collection::vec((0_u64..4_000_000, 40_u16..1500, 0_usize..3, 0_u8..64, any::<bool>(), any::<bool>()), 1..200),
    ) {
        for (name, params) in schedulers() {
            let (mut one, mut retuned) = (port(params.clone()), port(params.clone()));
            let mut now = Instant::ZERO;
            for &(gap, size, color, dscp, capable, retune) in &arrivals {
                now += Duration::from_nanos(gap);
                if retune {
                    retuned.retune(&to(&params, &params, now)).unwrap();
                }
                let packet = Header {
                    color: Color::ALL[color],
                    dscp: Dscp::new(dscp).unwrap(),
                    ecn: if capable { Ecn::Capable0 } else { Ecn::NotCapable },
                    ..Header::new(FlowId(u32::from(size) % 5), size)
                };
                prop_assert_eq!(step(&mut one, packet, now), step(&mut retuned, packet, now), "{}", name);
            }
            prop_assert_eq!(format!("{one:?}"), format!("{retuned:?}"), "{}", name);
        }
    }

    /// Meters as AQMs above; the table of a class outside says nothing of what a class would do.
    #[test]
    fn a_meter_that_gets_its_own_parameters_again_goes_on_as_before(
        arrivals in prop::collection::vec((0_u64..40_000_000, 40_u16..1500, 0_usize..3, any::<bool>()), 1..200),
    ) {
        for &(name, table) in METERS.iter().filter(|(name, _)| *name != "python") {
            let params = meter(name, table);
            let built = || Conditioner::new(&params, environment().rate, Rng::stream(1, "meter"));
            let (mut one, mut retuned) = (built(), built());
            let mut now = Instant::ZERO;
            for &(gap, size, color, retune) in &arrivals {
                now += Duration::from_nanos(gap);
                if retune {
                    retuned.retune(&params, environment().rate, now).unwrap();
                }
                let packet = Header { color: Color::ALL[color], ..Header::new(FlowId(0), size) };
                prop_assert_eq!(one.judge(&packet, now), retuned.judge(&packet, now), "{}", name);
            }
            prop_assert_eq!(format!("{one:?}"), format!("{retuned:?}"), "{}", name);
        }
    }
}

fn scheduler(text: &str) -> SchedulerParams {
    serde_json::from_str(text).unwrap()
}

fn micros(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

/// Two queues, of packets with codepoint 1 and of all others.
fn two_queues(scheduler_name: &str, one: &str, other: &str) -> SchedulerParams {
    let rule = r#""rule": {"aqm": "drop-tail", "limit": "99p"}"#;
    scheduler(&format!(
        r#"{{"scheduler": "{scheduler_name}", "queues": [
            {{"name": "a", "match": {{"dscp": 1}}, {one} {rule}}}, {{"name": "b", {other} {rule}}}]}}"#
    ))
}

/// A port on which twelve packets of 1000 bytes wait in each queue; a millisecond each.
fn filled(params: SchedulerParams) -> Port<Header> {
    let mut port = port(params);
    for _ in 0..12 {
        for dscp in [1, 2] {
            let packet = Header { dscp: Dscp::new(dscp).unwrap(), ..Header::new(FlowId(dscp.into()), 1000) };
            assert!(!matches!(port.offer(packet, Instant::ZERO), Offered::Dropped(..)));
        }
    }
    port
}

/// The queues of the packets that are sent, a millisecond each from this one on.
fn sent(port: &mut Port<Header>, from: u64, packets: u64) -> String {
    let at = (from..from + packets).map(|millis| micros(millis * 1000));
    at.map(|now| match port.serve(now) {
        Served::Sent(packet, _) => {
            if packet.flow.0 == 1 {
                'a'
            } else {
                'b'
            }
        }
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn new_weights_act_on_the_next_packets_by_hand() {
    // At 4 Mbit/s each, a packet is 2 ms of virtual time. After two of each both start tags are 4 ms. At 6
    // and 2 Mbit/s a packet of `a` is 4/3 ms, one of `b` 4 ms: a 4, b 4, a 5 1/3, a 6 2/3, then both 8.
    let (equal, three) = (two_queues("wfq", "", ""), two_queues("wfq", r#""weight": 3,"#, ""));
    let mut port = filled(equal.clone());
    assert_eq!(sent(&mut port, 0, 4), "abab");
    port.retune(&to(&equal, &three, micros(4000))).unwrap();
    assert_eq!(sent(&mut port, 4, 12), "abaaabaaabaa");
    // The last of them again as it was: b has 16 ms, a 16 ms.
    port.retune(&to(&three, &equal, micros(16_000))).unwrap();
    assert_eq!(sent(&mut port, 16, 2), "ab");
}

#[test]
fn a_new_rate_of_a_shaper_fills_its_bucket_from_now_on_by_hand() {
    let shaped = |rate: &str, burst: &str| {
        let queue = r#"{"aqm": "drop-tail", "limit": "99p"}"#;
        scheduler(&format!(
            r#"{{"scheduler": "shaper", "rate": "{rate}", "burst": "{burst}", "queue": {queue}}}"#
        ))
    };
    let (slow, fast) = (shaped("800kbps", "1500B"), shaped("1600kbps", "1500B"));
    let mut port = filled(slow.clone());
    assert!(matches!(port.serve(Instant::ZERO), Served::Sent(..)));
    // 500 bytes are left, and 500 more come in 5 ms.
    assert_eq!(port.serve(micros(1000)), Served::Later(micros(5000)));
    assert!(port.is_held());
    // By 2 ms there are 700; the other 300 take 1.5 ms at twice the rate.
    port.retune(&to(&slow, &fast, micros(2000))).unwrap();
    assert_eq!(port.serve(micros(2000)), Served::Later(micros(3500)));
    assert!(matches!(port.serve(micros(3500)), Served::Sent(..)));
    // The bucket is empty. By 4.5 ms it has 200 bytes; a depth of 3000 adds none.
    let deep = shaped("1600kbps", "3000B");
    port.retune(&to(&fast, &deep, micros(4500))).unwrap();
    assert_eq!(port.serve(micros(4500)), Served::Later(micros(8500)));
}

#[test]
fn tokens_come_at_the_new_rate_from_now_on_by_hand() {
    let bucket = |rate: &str, burst: &str| -> MeterParams {
        meter("token-bucket", &format!(r#"{{"rate": "{rate}", "burst": "{burst}"}}"#))
    };
    let rate = environment().rate;
    let mut conditioner = Conditioner::new(&bucket("800kbps", "2kB"), rate, Rng::stream(1, "meter"));
    let color = |conditioner: &mut Conditioner, at| {
        conditioner.judge(&Header::new(FlowId(0), 1000), micros(at)).color
    };
    assert_eq!([0, 0, 0].map(|at| color(&mut conditioner, at)), [Color::Green, Color::Green, Color::Yellow]);
    // 500 bytes come in 5 ms; the other 500 take 2.5 ms at twice the rate.
    conditioner.retune(&bucket("1600kbps", "2kB"), rate, micros(5000)).unwrap();
    assert_eq!([7499, 7500].map(|at| color(&mut conditioner, at)), [Color::Yellow, Color::Green]);
    // Full again after 10 ms; a smaller bucket spills what it has no room for.
    conditioner.retune(&bucket("1600kbps", "1kB"), rate, micros(20_000)).unwrap();
    assert_eq!([20_000, 20_000].map(|at| color(&mut conditioner, at)), [Color::Green, Color::Yellow]);
    let out = meter("token-bucket", r#"{"rate": "1600kbps", "burst": "1kB", "out": "drop"}"#);
    let refused = conditioner.retune(&out, rate, micros(21_000)).unwrap_err().to_string();
    assert_eq!(split_key(&refused).0, "out");
}

#[test]
fn what_queues_there_are_cannot_change() {
    let queues = |name: &str, selector: u8, more: &str| {
        let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
        scheduler(&format!(
            r#"{{"scheduler": "priority", "queues": [
                {{"name": "{name}", "match": {{"dscp": {selector}}}, {more} {rule}}}, {{"name": "b", {rule}}}]}}"#
        ))
    };
    let before = queues("a", 1, "");
    let other = |text: &str| scheduler(text);
    let dualpi2 = other(r#"{"scheduler": "dualpi2"}"#);
    for (before, after, key) in [
        (&before, queues("c", 1, ""), "queues[0].name"),
        (&before, queues("a", 2, ""), "queues[0].match"),
        (&before, queues("a", 1, r#""cap": "1Mbps","#), "queues[0].cap"),
        (&before, two_queues("drr", "", ""), "scheduler"),
        (&dualpi2, other(r#"{"scheduler": "dualpi2", "law": "linux"}"#), "law"),
        (&dualpi2, other(r#"{"scheduler": "dualpi2", "queue-protection": {}}"#), "queue-protection"),
    ] {
        let mut port = port(before.clone());
        let was = format!("{port:?}");
        let refused = port.retune(&to(before, &after, micros(1))).unwrap_err().to_string();
        assert_eq!(split_key(&refused).0, key, "{refused}");
        assert_eq!(format!("{port:?}"), was, "nothing has changed");
    }
}

/// Fifty packets wait, and the AQM has seen so many arrivals.
fn after_arrivals(params: AqmParams, arrivals: u64) -> (perhop_core::aqm::AnyAqm, Occupancy, Rng) {
    use perhop_core::aqm::Aqm;
    let (mut built, mut rng) = (params.build(environment()), Rng::stream(1, "aqm"));
    let mut waiting = Occupancy::EMPTY;
    (0..50).for_each(|_| waiting.add(Color::Yellow, 1000));
    for n in 0..arrivals {
        let now = Instant::from_nanos(n * 1_000_000);
        built.on_arrival(&Header::new(FlowId(0), 1000), &waiting, &mut Context { now, rng: &mut rng });
    }
    (built, waiting, rng)
}

#[test]
fn new_parameters_act_on_the_old_average_by_hand() {
    use perhop_core::aqm::Aqm;
    let red = |thresholds: &str, weight: &str| {
        aqm("red", &format!(r#"{{"thresholds": "{thresholds}", "weight": {weight}, "limit": "100p"}}"#))
    };
    // Weight 0.5, two arrivals that find 50 packets: the average is 25, then 37.5, below min.
    let (mut built, waiting, mut rng) = after_arrivals(red("40/90/0.1", "0.5"), 2);
    assert_eq!(built.gauges()[0], ("average total", 37.5));
    built.retune(red("10/20/0.1", "0.002"), environment()).unwrap();
    assert_eq!(built.gauges()[0], ("average total", 37.5));
    // It is above the new max, and the new weight acts: 37.5 + 0.002 (50 - 37.5) = 37.525.
    let now = Instant::from_nanos(2_000_000);
    let verdict =
        built.on_arrival(&Header::new(FlowId(0), 1000), &waiting, &mut Context { now, rng: &mut rng });
    assert_eq!(verdict, Verdict::Drop(perhop_core::Reason::Forced));
    assert!((built.gauges()[0].1 - 37.525).abs() < 1e-12);
}

#[test]
fn what_would_leave_the_state_without_a_meaning_is_refused() {
    for (name, before, after, key) in [
        (
            "red",
            r#"{"thresholds": "2/6/0.1", "limit": "9p"}"#,
            r#"{"thresholds": "2kB/6kB/0.1", "limit": "9p"}"#,
            "thresholds",
        ),
        (
            "red",
            r#"{"thresholds": "2/6/0.1", "limit": "9p"}"#,
            r#"{"thresholds": "2/6/0.1", "limit": "9p", "adaptive": true, "gentle": true}"#,
            "adaptive",
        ),
        (
            "rio",
            r#"{"in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p"}"#,
            r#"{"in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p", "coupling": "decoupled"}"#,
            "coupling",
        ),
        (
            "rio-three",
            r#"{"in": "4/7/0.02", "out-in": "2/5/0.5", "out-out": "1/3/0.5", "limit": "9p"}"#,
            r#"{"in": "4/7/0.02", "out-in": "2/5/0.5", "out-out": "1/3/0.5", "limit": "9p", "out-in-average": "in-and-out-in"}"#,
            "out-in-average",
        ),
        (
            "wred",
            r#"{"green": "4/7/0.02", "limit": "9p"}"#,
            r#"{"green": "4kB/7kB/0.02", "limit": "9p"}"#,
            "green",
        ),
        (
            "abe",
            r#"{"thresholds": "0/6/0.2", "limit": "9p"}"#,
            r#"{"thresholds": "0B/6kB/0.2", "limit": "9p"}"#,
            "thresholds",
        ),
        ("codel", "{}", r#"{"law": "linux"}"#, "law"),
        ("pie", "{}", r#"{"law": "linux"}"#, "law"),
        ("pie", "{}", r#"{"update": "20ms"}"#, "update"),
        (
            "red",
            r#"{"thresholds": "2/6/0.1", "limit": "9p"}"#,
            r#"{"thresholds": "2/6/0.2", "limit": "9p"}"#,
            "",
        ),
    ] {
        let (mut built, ..) = after_arrivals(aqm(name, before), 20);
        let was = format!("{built:?}");
        let refused = built.retune(aqm(name, after), environment()).err().map(|problem| problem.to_string());
        let found = refused.as_deref().map_or("", |problem| perhop_core::units::split_key(problem).0);
        assert_eq!(found, key, "{name}: {refused:?}");
        assert_eq!(format!("{built:?}") == was, !key.is_empty(), "{name}");
    }
}

/// What happens to packets that come every half millisecond, in threes.
fn fate(mut port: Port<Header>) -> Vec<(Offered<Header>, Vec<Served<Header>>)> {
    (0..300_u32)
        .map(|n| {
            let (dscp, color) = (Dscp::new([0, 3, 1][n as usize % 3]).unwrap(), Color::ALL[n as usize % 2]);
            let packet = Header { dscp, color, ..Header::new(FlowId(n % 4), 1000) };
            step(&mut port, packet, micros(u64::from(n / 3) * 500))
        })
        .collect()
}

#[test]
fn a_scheduler_that_gets_other_parameters_before_any_packet_acts_by_these() {
    let limits =
        ["9p", "2p"].map(|limit| under_one_aqm(&format!(r#"{{"aqm": "drop-tail", "limit": "{limit}"}}"#)));
    let [before, after] = limits.map(|all| all.map(|(_, params, _)| params));
    let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
    let protected = |protection: &str| {
        format!(
            r#"{{"scheduler": "drr", "queues": [
                {{"name": "a", "match": {{"dscp": 3}}, "queue-protection": {protection}, {rule}}}, {{"name": "b", {rule}}}]}}"#
        )
    };
    let lax = r#"{"critical-delay": "1s", "critical-score": "1s"}"#;
    let strict = r#"{"critical-delay": "1us", "critical-score": "1us", "max-th": "0s"}"#;
    let of_limit = |name: &str, limit| format!(r#"{{"scheduler": "{name}", "limit": "{limit}p"}}"#);
    let deadline =
        |blue: &str| format!(r#"{{"scheduler": "edf", "blue": "{blue}", "green": "1ms", {rule}}}"#);
    let shaped = |rate: &str| {
        format!(
            r#"{{"scheduler": "shaper", "rate": "{rate}", "burst": "2kB", "queue": {{"aqm": "drop-tail", "limit": "9p"}}}}"#
        )
    };
    let more = [
        (of_limit("fq-codel", 9), of_limit("fq-codel", 2)),
        (of_limit("dualpi2", 9), of_limit("dualpi2", 2)),
        (protected(lax), protected(strict)),
        (deadline("1ms"), deadline("9ms")),
        (shaped("7Mbps"), shaped("3Mbps")),
    ];
    let more = more.map(|(before, after)| (scheduler(&before), scheduler(&after)));
    for (before, after) in before.into_iter().zip(after).chain(more) {
        let mut retuned = port(before.clone());
        retuned.retune(&to(&before, &after, Instant::ZERO)).unwrap();
        let (retuned, fresh) = (fate(retuned), fate(port(after.clone())));
        assert_eq!(retuned, fresh, "{after:?}");
        assert_ne!(fresh, fate(port(before)), "{after:?}: the change does nothing here");
    }
}

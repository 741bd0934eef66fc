//! Blocks whose parameters change during a run keep what they have measured.

use perhop_core::aqm::{AqmParams, Verdict};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::testing::{environment, streams};
use perhop_core::{
    Bitrate, Color, Context, Dscp, Duration, Ecn, FlowId, Header, Instant, Occupancy, Offered, Port, Rng,
    Served,
};
use proptest::prelude::*;

use crate::blocks::aqm;
use crate::parameters::{AQMS, SCHEDULERS};

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
                    retuned.retune(&params).unwrap();
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
        let found = refused.as_deref().map_or("", |problem| perhop_core::table::split_key(problem).0);
        assert_eq!(found, key, "{name}: {refused:?}");
        assert_eq!(format!("{built:?}") == was, !key.is_empty(), "{name}");
    }
}

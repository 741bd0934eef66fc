//! The internal state that blocks report to probes.

use perhop_core::aqm::{AnyAqm, Aqm, Verdict};
use perhop_core::control::Message;
use perhop_core::scheduler::Discipline;
use perhop_core::testing::{self, environment};
use perhop_core::{Color, Context, Dscp, FlowId, Header, Instant, Occupancy, Rng};

use crate::blocks::{aqm, scheduler, under_one_aqm};
use crate::parameters::SCHEDULERS;

#[test]
fn a_scheduler_shows_what_its_rule_keeps_track_of_and_passes_messages_on() {
    for (name, params, prefix) in
        under_one_aqm(r#"{"aqm": "dwred", "out": "40/160/0.1", "limit": "400p", "weight": 0.5}"#)
    {
        let mut port = testing::scheduler(params, 1);
        for _ in 0..3 {
            port.enqueue(Header::new(FlowId(0), 1000), Instant::from_nanos(1)).unwrap();
        }
        port.on_message(7, &Message::Windows { path: 7, number: 1, packets: 99.0 });
        let gauges = port.gauges();
        let gauge = |key: &str| {
            let found = gauges.iter().find(|(name, _)| *name == format!("{prefix}{key}"));
            found.unwrap_or_else(|| panic!("{name} has no {key} among {gauges:?}")).1
        };
        // 0, 1 and 2 packets were found: 0, 0.5, 1.25. The duplicate of dsd's first packet does not wait.
        assert_eq!(gauge("average total"), if name == "dsd" { 0.5 } else { 1.25 }, "{name}");
        assert_eq!(gauge("max_th"), 99.0, "{name}");
        if name == "dsd" {
            assert_eq!(gauge("bias"), 1.0);
        }
    }
}

#[test]
fn what_waits_is_shown_by_class() {
    for (name, table) in SCHEDULERS {
        let mut port = scheduler(name, table, 1);
        for n in 0..30_u32 {
            let dscp = Dscp::new([0, 3, 46][n as usize % 3]).unwrap();
            let color = Color::ALL[n as usize % 2];
            let packet = Header { dscp, color, label: n % 4, ..Header::new(FlowId(n), 100) };
            let now = Instant::from_nanos(u64::from(n) * 200_000);
            let _ = port.enqueue(packet, now);
            if n % 4 == 3 {
                port.dequeue(now);
            }
        }
        let mut shown = vec![0; port.classes()];
        port.inspect(&mut |packet| shown[port.class_of(packet)] += 1);
        let waiting: Vec<u64> =
            (0..port.classes()).map(|class| port.class(class).occupancy.packets()).collect();
        assert!(shown == waiting || table.contains("queue-protection"), "{name}: {shown:?} {waiting:?}");
        assert_eq!(shown.iter().sum::<u64>(), waiting.iter().sum::<u64>(), "{name}");
        assert_eq!(port.occupancy().packets(), waiting.iter().sum::<u64>(), "{name}");
        let mut names: Vec<&str> = (0..waiting.len()).map(|class| port.class_name(class)).collect();
        names.sort_unstable();
        names.dedup();
        assert!(
            names.len() == waiting.len() && names.iter().all(|name| name.len() > 2 || table.contains(*name))
        );
        assert!(*name != "fifo" || names == ["all"]);
    }
}

/// Rules of the RED family with thresholds so high that nobody is dropped; the newest sample counts half.
const SPARING: &[(&str, &str)] = &[
    ("red", r#""thresholds": "500/900/0.1""#),
    ("rio", r#""in": "500/900/0.1", "total": "500/900/0.1""#),
    ("rio", r#""in": "500/900/0.1", "total": "500/900/0.1", "coupling": "decoupled""#),
    ("rio-plus-out", r#""in": "500/900/0.1", "total": "500/900/0.1", "out": "500/900/0.1""#),
    ("rio-three", r#""in": "500/900/0.1", "out-in": "500/900/0.1", "out-out": "500/900/0.1""#),
    (
        "rio-three",
        r#""in": "500/900/0.1", "out-in": "500/900/0.1", "out-out": "500/900/0.1", "out-in-average": "in-and-out-in""#,
    ),
    ("inverse-rate", r#""in": "500/900/0.1", "total": "500/900/0.1""#),
    ("abe", r#""thresholds": "500/900/0.1""#),
    ("wred", r#""yellow": "500/900/0.1""#),
    ("dwred", r#""out": "500/900/0.1""#),
];

#[test]
fn averages_are_shown_and_fall_while_the_server_is_idle() {
    for (name, table) in SPARING {
        let mut rule =
            aqm(name, &format!(r#"{{{table}, "limit": "999p", "weight": 0.5}}"#)).build(environment());
        let mut rng = Rng::stream(1, "averages");
        let mut arrive = |rule: &mut AnyAqm, nanos: u64, waiting: [u32; 3]| {
            let mut queue = Occupancy::EMPTY;
            for (color, packets) in Color::ALL.into_iter().zip(waiting) {
                (0..packets).for_each(|_| queue.add(color, 1000));
            }
            let cx = &mut Context { now: Instant::from_nanos(nanos), rng: &mut rng };
            assert_eq!(rule.on_arrival(&Header::new(FlowId(0), 1000), &queue, cx), Verdict::Pass);
        };
        let averages = |rule: &AnyAqm| {
            let of =
                |(name, value): (&'static str, f64)| name.strip_prefix("average ").map(|name| (name, value));
            rule.gauges().into_iter().filter_map(of).collect::<Vec<_>>()
        };
        let waiting = |scale: f64| {
            let packets = |name| match name {
                "in" => 16.0,
                "out" => 48.0,
                "in and out-in" => 32.0,
                "total" => 64.0,
                other => panic!("{other}"),
            };
            averages(&aqm(name, &format!(r#"{{{table}, "limit": "999p"}}"#)).build(environment()))
                .into_iter()
                .map(|(name, _)| (name, scale * packets(name)))
                .collect::<Vec<_>>()
        };
        assert!(!waiting(1.0).is_empty(), "{name}");
        // Idle since the run began: nothing has come yet, so nothing falls.
        arrive(&mut rule, 5_000_000, [16, 16, 32]);
        assert_eq!(averages(&rule), waiting(0.5), "{name}");
        // It is busy: time alone changes nothing.
        arrive(&mut rule, 50_000_000, [16, 16, 32]);
        assert_eq!(averages(&rule), waiting(0.75), "{name}");
        // Idle for three and a half packets of a millisecond: three halves, and one for the empty queue that
        // is found.
        rule.on_idle(Instant::from_nanos(60_000_000));
        arrive(&mut rule, 63_500_000, [0; 3]);
        assert_eq!(averages(&rule), waiting(0.75 / 16.0), "{name}");
        // It is busy again.
        arrive(&mut rule, 80_000_000, [0; 3]);
        assert_eq!(averages(&rule), waiting(0.75 / 32.0), "{name}");
    }
}

#[test]
fn a_rule_that_keeps_track_of_nothing_shows_nothing() {
    let rule = aqm("drop-tail", r#"{"limit": "7p"}"#).build(environment());
    assert_eq!(rule.gauges(), []);
}

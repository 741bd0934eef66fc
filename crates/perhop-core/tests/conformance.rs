//! The conformance harness over every registered block.
//!
//! Parameters come from `common/parameters.rs`: a line or more for each block, and a test that no registered block is without
//! one.

use perhop_core::aqm::{AnyAqm, Aqm, AqmParams, Verdict};
use perhop_core::control::Message;
use perhop_core::meter::{self, Conditioner, MeterParams};
use perhop_core::scheduler::{
    Admitted, AnyScheduler, Dequeued, Discipline, PrecomputedFifo, SchedulerParams,
};
use perhop_core::testing::{self, Bench, Effect, Operation, environment, fifo, meter_colors, streams};
use perhop_core::{
    ClassCounters, Color, Context, Dscp, Duration, Ecn, FlowId, Header, Instant, Occupancy, Offered, Port,
    Reason, Rng, Role, Serializer, Served, registry,
};
use proptest::prelude::*;

use crate::allocations::allocations;
use crate::ordinary;
use crate::parameters::{AQMS, METERS, SCHEDULERS};

fn aqm(name: &str, table: &str) -> AqmParams {
    let mut table = serde_json::Deserializer::from_str(table);
    AqmParams::deserialize_named(name, &mut table).expect("registered").expect("valid parameters")
}

fn meter(name: &str, table: &str) -> MeterParams {
    let mut table = serde_json::Deserializer::from_str(table);
    MeterParams::deserialize_named(name, &mut table).expect("registered").expect("valid parameters")
}

fn scheduler(name: &str, table: &str, seed: u64) -> AnyScheduler<Header> {
    let mut table = serde_json::Deserializer::from_str(table);
    let read = SchedulerParams::deserialize_named(name, &mut table);
    testing::scheduler(read.expect("registered").expect("valid parameters"), seed)
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let color = prop_oneof![Just(Color::Green), Just(Color::Yellow), Just(Color::Red)];
    let size = prop_oneof![Just(40_u16), Just(1000), 1_u16..9000, Just(u16::MAX)];
    let dscp = prop_oneof![Just(0_u8), Just(3), 0_u8..64].prop_map(|value| Dscp::new(value).unwrap());
    let operation = prop_oneof![
        4 => (size, color, dscp, 0_u32..3)
            .prop_map(|(size, color, dscp, label)| Operation::Enqueue { size, color, dscp, label }),
        3 => Just(Operation::Dequeue),
        2 => prop_oneof![0_u64..5_000_000, Just(u64::MAX)].prop_map(Operation::Advance),
    ];
    prop::collection::vec(operation, 0..400)
}

/// What a clock shows that was advanced beyond its end.
const NEVER: perhop_core::Instant = perhop_core::Instant::NEVER;

/// The packets that were sent, in order.
fn sent(seen: &[Effect]) -> Vec<u64> {
    let packet = |step: &Effect| match step {
        Effect::Sent(packet) => Some(*packet),
        _ => None,
    };
    seen.iter().filter_map(packet).collect()
}

#[test]
fn every_registered_block_is_in_the_harness() {
    for block in registry() {
        let listed = match block.role {
            Role::Aqm => AQMS.iter().any(|(name, _)| *name == block.name),
            Role::Meter => METERS.iter().any(|(name, _)| *name == block.name),
            Role::Scheduler => SCHEDULERS.iter().any(|(name, _)| *name == block.name),
        };
        assert!(
            listed,
            "{:?} `{}` is registered, but the harness has no parameters for it",
            block.role, block.name
        );
        assert!(!block.summary.is_empty() && !block.source.is_empty());
    }
}

#[test]
fn every_registered_block_is_measured() {
    for registered in registry() {
        let rows = match registered.role {
            Role::Aqm => ordinary::AQMS,
            Role::Meter => ordinary::METERS,
            Role::Scheduler => ordinary::SCHEDULERS,
        };
        assert!(
            rows.iter().any(|(row, _)| ordinary::block(row) == registered.name),
            "{:?} `{}` is registered, but tests/common/ordinary.rs has no parameters to measure it with",
            registered.role,
            registered.name
        );
    }
    // Each row is one that the benchmarks can read.
    for (row, table) in ordinary::AQMS {
        aqm(ordinary::block(row), table);
    }
    for (row, table) in ordinary::METERS {
        meter(ordinary::block(row), table);
    }
    for (row, table) in ordinary::SCHEDULERS {
        scheduler(ordinary::block(row), table, 1);
    }
}

#[test]
fn parameters_round_trip() {
    for (name, table) in AQMS {
        let params = aqm(name, table);
        let mut written = serde_json::to_value(&params).unwrap();
        assert_eq!(written.as_object_mut().unwrap().remove("aqm").unwrap(), *name);
        assert_eq!(aqm(name, &written.to_string()), params);
    }
    for (name, table) in SCHEDULERS {
        let mut read = serde_json::Deserializer::from_str(table);
        let params = SchedulerParams::deserialize_named(name, &mut read).unwrap().unwrap();
        let written = serde_json::to_string(&params).unwrap();
        assert!(written.contains(&format!(r#""scheduler":"{name}""#)));
        assert_eq!(serde_json::from_str::<SchedulerParams>(&written).unwrap(), params);
    }
    for (name, table) in METERS {
        let params = meter(name, table);
        let mut written = serde_json::to_value(&params).unwrap();
        assert_eq!(written.as_object_mut().unwrap().remove("marker").unwrap(), *name);
        assert_eq!(meter(name, &written.to_string()), params);
    }
}

#[test]
fn unknown_names_and_keys_are_refused() {
    let refused = |name: &str, table: &str| {
        let mut table = serde_json::Deserializer::from_str(table);
        AqmParams::deserialize_named(name, &mut table).map(|read| read.unwrap_err().to_string())
    };
    assert_eq!(refused("codle", "{}"), None);
    assert!(refused("red", r#"{"limit": "9p"}"#).unwrap().contains("thresholds"));
    assert!(refused("drop-tail", r#"{"limit": "9p", "min": 3}"#).unwrap().contains("min"));
    let mixed = refused("rio", r#"{"in": "4kB/7kB/0.02", "total": "1/3/0.5", "limit": "9p"}"#).unwrap();
    assert!(mixed.contains("packets"), "{mixed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn conserved_ordered_deterministic_and_without_panic(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let first = Bench::new(fifo(aqm(name, table), seed)).run(&operations);
            let seen = first.map_err(|imbalance| TestCaseError::fail(format!("{name}: {imbalance}")))?;
            prop_assert!(sent(&seen).is_sorted(), "{name}: out of order");
            prop_assert_eq!(&seen, &Bench::new(fifo(aqm(name, table), seed)).run(&operations).unwrap());
        }
    }

    #[test]
    fn schedulers_conserve_and_keep_the_order_of_each_class(seed: u64, operations in operations()) {
        let packets: Vec<Header> = operations.iter().filter_map(|step| match *step {
            Operation::Enqueue { size, color, dscp, label } =>
                Some(Header { color, dscp, label, ..Header::new(FlowId(0), size) }),
            Operation::Dequeue | Operation::Advance(_) => None,
        }).collect();
        for (name, table) in SCHEDULERS {
            let first = Bench::new(scheduler(name, table, seed)).run(&operations);
            let seen = first.map_err(|imbalance| TestCaseError::fail(format!("{name}: {imbalance}")))?;
            let classifier = scheduler(name, table, seed);
            for class in 0..classifier.classes() {
                let of_class: Vec<u64> = sent(&seen)
                    .into_iter()
                    .filter(|&packet| classifier.class_of(&packets[packet as usize]) == class)
                    .collect();
                prop_assert!(of_class.is_sorted(), "{name}: out of order");
            }
            prop_assert_eq!(&seen, &Bench::new(scheduler(name, table, seed)).run(&operations).unwrap());
        }
    }

    #[test]
    fn a_single_queue_is_first_in_first_out(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let rule = serde_json::to_string(&aqm(name, table)).unwrap();
            let queues = format!(r#"{{"queues": [{{"name": "all", "rule": {rule}}}]}}"#);
            let plain = Bench::new(fifo(aqm(name, table), seed)).run(&operations).unwrap();
            for several in ["priority", "drr", "wfq"] {
                let seen = Bench::new(scheduler(several, &queues, seed)).run(&operations).unwrap();
                prop_assert_eq!(&seen, &plain, "{} under {}", name, several);
            }
        }
    }

    #[test]
    fn who_is_not_capable_of_ecn_notices_nothing_of_it(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let Some(rule) = notifying(name, table) else { continue };
            let plain = Bench::new(fifo(aqm(name, table), seed)).run(&operations).unwrap();
            prop_assert_eq!(&Bench::new(fifo(rule, seed)).run(&operations).unwrap(), &plain, "{}", name);
        }
    }

    #[test]
    fn who_is_capable_is_marked_and_never_dropped_by_chance(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let Some(rule) = notifying(name, table) else { continue };
            let rule_text = serde_json::to_string(&rule).unwrap();
            tell(fifo(rule, seed), &operations).map_err(|text| TestCaseError::fail(format!("{name}: {text}")))?;
            for (several, table) in [
                ("edf", format!(r#"{{"rule": {rule_text}}}"#)),
                ("dsd", format!(r#"{{"bound": "5ms", "green-drop": "late", "rule": {rule_text}}}"#)),
                ("priority", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
                ("drr", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
                ("wfq", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
            ] {
                tell(scheduler(several, &table, seed), &operations)
                    .map_err(|text| TestCaseError::fail(format!("{name} under {several}: {text}")))?;
            }
        }
    }

    #[test]
    fn schedulers_wait_only_for_packets_or_for_a_later_time(seed: u64, operations in operations()) {
        for (name, table) in SCHEDULERS {
            let mut bench = Bench::new(scheduler(name, table, seed));
            for &operation in &operations {
                if let Effect::Waits { until, packets } = bench.step(operation).unwrap() {
                    let idles = table.contains("idle");
                    prop_assert!(until.is_none_or(|until| idles && until > bench.now() || bench.now() == NEVER));
                    prop_assert!(packets == 0 || until.is_some(), "{name}: {packets} packets are never sent");
                }
            }
        }
    }

    #[test]
    fn meters_are_deterministic_and_do_not_panic(
        seed: u64,
        arrivals in prop::collection::vec((prop_oneof![0_u64..9_000_000, Just(u64::MAX)], any::<u16>()), 0..200),
    ) {
        for (name, table) in METERS {
            let colors = meter_colors(meter(name, table).build(environment()), seed, &arrivals);
            prop_assert_eq!(&colors, &meter_colors(meter(name, table).build(environment()), seed, &arrivals));
            let declared = meter(name, table).colors();
            prop_assert!(colors.iter().all(|color| declared.contains(color)), "{} says it gives {:?}", name, declared);
        }
    }

    /// Whatever happens to packets out of profile: each packet that comes goes on or is dropped, as its color says, and the meter
    /// measures alike.
    #[test]
    fn a_policer_drops_what_its_meter_would_have_marked(
        seed: u64,
        arrivals in prop::collection::vec((0_u64..9_000_000, any::<u16>()), 0..200),
    ) {
        for (name, table) in METERS {
            let colors = meter_colors(meter(name, table).build(environment()), seed, &arrivals);
            for (out, dropped) in policers(meter(name, table).colors()) {
                let judged = |&color: &Color| {
                    let drops = dropped.contains(&color);
                    if drops { meter::Verdict::Drop(color, Reason::Policed) } else { meter::Verdict::Mark(color) }
                };
                let expected: Vec<meter::Verdict> = colors.iter().map(judged).collect();
                let policer = with_out(name, table, out);
                prop_assert_eq!(testing::verdicts(&policer, seed, &arrivals), expected, "{} out = {}", name, out);
                let goes_on: Vec<Color> = policer.colors_marked().collect();
                prop_assert!(policer.colors().iter().all(|color| goes_on.contains(color) != dropped.contains(color)));
            }
        }
    }
}

/// For a meter that gives these colors, the values of `out`, each with the colors that it drops.
fn policers(colors: &[Color]) -> Vec<(&'static str, &'static [Color])> {
    let mut values: Vec<(_, &[Color])> = vec![("mark", &[]), ("drop", &[Color::Yellow, Color::Red])];
    if colors.contains(&Color::Red) {
        values.push(("drop-red", &[Color::Red]));
    }
    values
}

/// The profile of a row, with this `out`.
fn with_out(name: &str, table: &str, out: &str) -> MeterParams {
    let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
    table["out"] = out.into();
    meter(name, &table.to_string())
}

/// The rule, told to notify, if it can be.
fn notifying(name: &str, table: &str) -> Option<AqmParams> {
    let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
    table["ecn"] = true.into();
    let table = table.to_string();
    let mut table = serde_json::Deserializer::from_str(&table);
    AqmParams::deserialize_named(name, &mut table).expect("registered").ok()
}

/// Drives a discipline with packets that are capable of ECN: those that carry word of congestion when they leave are those
/// that the books say were told, and none is dropped by chance.
fn tell(mut discipline: impl Discipline<Header>, operations: &[Operation]) -> Result<(), String> {
    let (mut now, mut marked) = (Instant::ZERO, 0);
    let is_marked = |packet: &Header| u64::from(packet.ecn == Ecn::Congested);
    for operation in operations {
        match *operation {
            Operation::Enqueue { size, color, dscp, label } => {
                let packet =
                    Header { color, dscp, label, ecn: Ecn::Capable0, ..Header::new(FlowId(0), size) };
                if let Err((packet, _)) = discipline.enqueue(packet, now)
                    && is_marked(&packet) > 0
                {
                    return Err("marked although it was dropped".into());
                }
            }
            Operation::Dequeue => match discipline.dequeue(now) {
                Dequeued::Sent(packet, _) | Dequeued::Dropped(packet, _) => marked += is_marked(&packet),
                Dequeued::Wait(_) => {}
            },
            Operation::Advance(nanos) => now += Duration::from_nanos(nanos),
        }
    }
    let mut waiting = 0;
    discipline.inspect(&mut |packet| waiting += is_marked(packet));
    let counters = discipline.counters();
    let counted: u64 = counters.notifications().flat_map(|(_, by_color)| by_color).sum();
    counters.balance(discipline.occupancy()).map_err(|imbalance| imbalance.to_string())?;
    let by_chance = [Reason::Early, Reason::EarlyOut].map(|reason| counters.dropped(reason));
    if counted != marked + waiting || by_chance != [[0; 3]; 2] {
        return Err(format!("{counted} counted, {marked} left, {waiting} wait, {by_chance:?} dropped"));
    }
    Ok(())
}

#[test]
fn every_rule_but_drop_tail_can_notify() {
    let cannot = AQMS.iter().filter(|(name, table)| notifying(name, table).is_none());
    assert!(cannot.map(|(name, _)| *name).all(|name| name == "drop-tail"));
}

#[test]
fn no_block_allocates_per_packet() {
    fn burst(bench: &mut Bench<impl Discipline<Header>>) {
        for n in 0..2000_u32 {
            let (color, label) = (Color::ALL[n as usize % 3], n % 3);
            let dscp = Dscp::new(if n % 2 == 0 { 0 } else { 3 }).unwrap();
            bench.step(Operation::Enqueue { size: 1000, color, dscp, label }).unwrap();
            bench.step(Operation::Advance(900_000)).unwrap();
            if n % 8 != 0 {
                bench.step(Operation::Dequeue).unwrap();
            }
        }
    }
    for (name, table) in AQMS {
        let mut bench = Bench::new(fifo(aqm(name, table), 1));
        burst(&mut bench);
        assert_eq!(allocations(|| burst(&mut bench)), 0, "{name} {table}");
    }
    for (name, table) in SCHEDULERS {
        let mut bench = Bench::new(scheduler(name, table, 1));
        (0..5).for_each(|_| burst(&mut bench)); // until its rings have the room they need
        assert_eq!(allocations(|| burst(&mut bench)), 0, "{name} {table}");
    }
    for (name, table) in METERS {
        let rng = Rng::stream(1, "harness");
        let mut conditioner = Conditioner::new(&meter(name, table), environment().rate, rng);
        let work = || {
            for n in 0..2000 {
                conditioner.judge(&Header::new(FlowId(0), 1000), Instant::from_nanos(n * 900_000));
            }
        };
        assert_eq!(allocations(work), 0, "{name} {table}");
    }
}

/// Why parameters are refused when they are read, by any role's reader.
fn refused(role: Role, name: &str, table: &str) -> String {
    let mut read = serde_json::Deserializer::from_str(table);
    let problem = match role {
        Role::Aqm => AqmParams::deserialize_named(name, &mut read).map(Result::err),
        Role::Meter => MeterParams::deserialize_named(name, &mut read).map(Result::err),
        Role::Scheduler => SchedulerParams::deserialize_named(name, &mut read).map(Result::err),
    };
    let problem = problem.expect("registered").unwrap_or_else(|| panic!("{name} {table} is accepted"));
    problem.to_string()
}

#[test]
fn parameters_that_do_not_fit_together_are_refused() {
    let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
    let queues = |first: &str| {
        format!(
            r#""queues": [{{"name": "a", "match": {{"dscp": 1}} {first}, {rule}}}, {{"name": "b", {rule}}}]"#
        )
    };
    let both = queues(r#", "rate": "1Mbps", "weight": 2"#);
    let alone = format!(r#""queues": [{{"name": "a", "match": {{"dscp": 1}}, {rule}}}]"#);
    let plain = queues("");
    let (aqm, meter, scheduler) = (Role::Aqm, Role::Meter, Role::Scheduler);
    let rio = r#""in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p""#;
    let three = r#""in": "4/7/0.02", "out-in": "2/5/0.5", "limit": "9p""#;
    let red = r#""thresholds": "1/3/0.5", "limit": "9p""#;
    for (role, name, table, problem) in [
        (aqm, "red", format!(r#"{red}, "mean-packet": "0B""#), "above 0B"),
        (aqm, "rio", format!(r#"{rio}, "mean-packet": "0B""#), "above 0B"),
        (aqm, "rio-plus-out", format!(r#"{rio}, "out": "1kB/2kB/0.1""#), "not in the unit of `in`"),
        (aqm, "rio-three", format!(r#"{three}, "out-out": "1kB/3kB/0.5""#), "not in the unit of `in`"),
        (aqm, "inverse-rate", format!(r#"{rio}, "mean-packet": "0B""#), "above 0B"),
        (
            aqm,
            "wred",
            r#""green": "1/3/0.5", "yellow": "1kB/3kB/0.5", "limit": "9p""#.into(),
            "not in the unit",
        ),
        (aqm, "wred", r#""limit": "9p""#.into(), "no color has thresholds"),
        (aqm, "dwred", r#""out": "1kB/3kB/0.5", "limit": "9p""#.into(), "must be in packets"),
        (aqm, "dwred", r#""out": "1/3/0.5", "limit": "9p", "mean-packet": "0B""#.into(), "above 0B"),
        (aqm, "abe", format!(r#"{red}, "interval": "0s""#), "interval must be above 0s"),
        (aqm, "abe", format!(r#"{red}, "target": 200"#), "target must be at most `largest`, which is 100"),
        (aqm, "abe", format!(r#"{red}, "alpha": 101"#), "alpha must be at most `largest`, which is 100"),
        (aqm, "abe", format!(r#"{red}, "mean-packet": "0B""#), "above 0B"),
        (meter, "tsw", r#""rate": "1Mbps", "window": "0s""#.into(), "longer than 0s"),
        (meter, "three-precedence", r#""rate": "1Mbps", "long-window": "0s""#.into(), "longer than 0s"),
        (
            scheduler,
            "edf",
            format!(r#""green": "2ms", "blue": "1ms", {rule}"#),
            "must not be later than `blue`",
        ),
        (scheduler, "dsd", format!(r#""bound": "1ms", "control": "0s", {rule}"#), "control must be above 0s"),
        (scheduler, "priority", format!(r#"{plain}, "window": "0s""#), "longer than 0s"),
        (scheduler, "priority", r#""queues": []"#.into(), "has no queues"),
        (scheduler, "drr", format!(r#"{plain}, "quantum": "0B""#), "above 0B"),
        (scheduler, "drr", both.clone(), "leave one out"),
        (scheduler, "drr", alone.clone(), "accept every packet that no other matches"),
        (scheduler, "wfq", both, "leave one out"),
        (scheduler, "wfq", alone, "accept every packet that no other matches"),
    ] {
        let found = refused(role, name, &format!("{{{table}}}"));
        assert!(found.contains(problem), "{name} {table}: {found}");
    }
    // What is at an edge fits.
    self::aqm("abe", &format!(r#"{{{red}, "target": 100, "alpha": 100}}"#));
    self::scheduler("edf", &format!(r#"{{"green": "1ms", "blue": "1ms", {rule}}}"#), 1);
}

#[test]
fn a_link_that_is_too_slow_for_its_queues_is_refused() {
    let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
    for (name, key) in [("priority", "cap"), ("drr", "rate"), ("wfq", "rate")] {
        let fits = |rate: &str| {
            let table = format!(
                r#"{{"scheduler": "{name}", "queues": [{{"name": "a", "match": {{"dscp": 1}}, "{key}": "{rate}", {rule}}}, {{"name": "b", {rule}}}]}}"#
            );
            serde_json::from_str::<SchedulerParams>(&table).unwrap().fits(environment().rate)
        };
        // The harness's link has 8 Mbit/s.
        assert!(fits("7.9Mbps").is_ok(), "{name}");
        assert!(fits("8.1Mbps").is_err(), "{name}");
        assert_eq!(fits("8Mbps").is_ok(), name == "priority", "{name}: nothing is left for the other queue");
    }
}

#[test]
fn a_scheduler_tells_its_rules_and_its_paths() {
    for (name, table) in SCHEDULERS {
        let mut read = serde_json::Deserializer::from_str(table);
        let mut params = SchedulerParams::deserialize_named(name, &mut read).unwrap().unwrap();
        let table: serde_json::Value = serde_json::from_str(table).unwrap();
        let queues = table["queues"].as_array().cloned().unwrap_or_default();
        let expected: Vec<(String, String)> = match *name {
            "fifo" => vec![(String::new(), table["rule"]["aqm"].to_string())],
            "edf" | "dsd" => vec![("rule".into(), table["rule"]["aqm"].to_string())],
            _ => (0..)
                .zip(&queues)
                .map(|(n, q): (usize, _)| (format!("queues[{n}].rule"), q["rule"]["aqm"].to_string()))
                .collect(),
        };
        let rules = params.aqms(None).into_iter().map(|(key, rule)| (key, format!("{:?}", rule.name())));
        assert_eq!(rules.collect::<Vec<_>>(), expected, "{name}");
        let named = |(n, queue): (usize, &serde_json::Value)| {
            let path = queue["match"]["path"].as_str()?;
            Some((format!("queues[{n}].match.path"), path.to_owned()))
        };
        let paths: Vec<_> = (0..).zip(&queues).filter_map(named).collect();
        let found = params.paths().into_iter().map(|(key, path)| (key, path.name().to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), paths, "{name}");
    }
}

/// Every scheduler over queues under one AQM, which sees all packets.
fn under_one_aqm(aqm: &str) -> [(&'static str, SchedulerParams, &'static str); 6] {
    let one = format!(r#""rule": {aqm}"#);
    let queues = format!(r#""queues": [{{"name": "all", "rule": {aqm}}}]"#);
    let dsd = format!(r#""bound": "5ms", "rule": {aqm}"#);
    let read = |name: &str, keys: &str| {
        serde_json::from_str(&format!(r#"{{"scheduler": "{name}", {keys}}}"#)).expect("valid parameters")
    };
    [
        ("fifo", read("fifo", &one), ""),
        ("edf", read("edf", &one), ""),
        ("dsd", read("dsd", &dsd), ""),
        ("priority", read("priority", &queues), "all "),
        ("drr", read("drr", &queues), "all "),
        ("wfq", read("wfq", &queues), "all "),
    ]
}

#[test]
fn every_scheduler_is_among_those_under_one_aqm() {
    let listed = under_one_aqm(r#"{"aqm": "drop-tail", "limit": "9p"}"#).map(|(name, ..)| name);
    assert!(SchedulerParams::NAMES.iter().all(|name| listed.contains(name)), "{listed:?}");
}

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
        assert_eq!(shown, waiting, "{name}");
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
        // Idle for three and a half packets of a millisecond: three halves, and one for the empty queue that is found.
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

/// A FIFO in front of a link of 8 Mbit/s, driven call by call.
struct Driven {
    fifo: AnyScheduler<Header>,
    link: Serializer,
    /// When the service of each packet that has been sent started, by its flow.
    started: Vec<(u32, Instant)>,
}

impl Driven {
    fn new(rule: AqmParams) -> Self {
        Self { fifo: fifo(rule, 1), link: Serializer::new(environment().rate), started: Vec::new() }
    }

    /// Serves it as often as a transmission ends by now.
    fn settle(&mut self, now: Instant, idle: &mut bool) {
        while !*idle && self.link.busy_until() <= now {
            let at = self.link.busy_until();
            *idle = !self.serve(at);
        }
    }

    fn serve(&mut self, now: Instant) -> bool {
        match self.fifo.dequeue(now) {
            Dequeued::Sent(packet, _) => {
                self.started.push((packet.flow.0, now));
                self.link.transmit(packet.size, now);
                true
            }
            Dequeued::Dropped(..) => panic!("this AQM drops on arrival"),
            Dequeued::Wait(_) => false,
        }
    }

    fn counters(&self) -> &ClassCounters {
        self.fifo.class(0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_precomputed_fifo_is_a_fifo(
        // On a grid of a millisecond packets come just when others are served: 1000 bytes take as long.
        on_a_grid: bool,
        arrivals in prop::collection::vec((0_u64..3_000_000, 0_usize..3, 1_u16..3000, any::<bool>()), 1..150),
    ) {
        for (name, table) in AQMS {
            let mut driven = Driven::new(aqm(name, table));
            if !aqm(name, table).precomputable() {
                continue;
            }
            let mut ahead = PrecomputedFifo::new(aqm(name, table), environment(), streams(1).of("aqm"));
            let mut link = Serializer::new(environment().rate);
            let (mut now, mut idle, mut computed) = (Instant::ZERO, true, Vec::new());
            for (flow, &(gap, color, size, capable)) in (0..).zip(&arrivals) {
                // Many come at once.
                let gap = gap.saturating_sub(1_500_000);
                let (gap, size) = if on_a_grid { (gap.next_multiple_of(1_000_000), 1000) } else { (gap, size) };
                now += Duration::from_nanos(gap);
                let ecn = if capable { Ecn::Capable0 } else { Ecn::NotCapable };
                let packet = Header { color: Color::ALL[color], ecn, ..Header::new(FlowId(flow), size) };
                driven.settle(now, &mut idle);
                let taken = driven.fifo.enqueue(packet, now);
                if taken.is_ok() && idle {
                    idle = !driven.serve(now);
                }
                ahead.settle(now);
                let (busy, mut header) = (link.busy_until(), packet);
                match ahead.admit(&mut header, busy, now) {
                    Ok(Admitted { service, notified }) => {
                        prop_assert!(taken.is_ok(), "{name}");
                        prop_assert_eq!(notified.is_some(), header.ecn == Ecn::Congested, "{}", name);
                        computed.push((flow, service));
                        link.transmit(size, now);
                    }
                    Err(reason) => prop_assert_eq!(taken.unwrap_err().1, reason, "{}", name),
                }
                prop_assert_eq!(ahead.counters(), driven.counters(), "{}", name);
                let gauges = |found: Vec<(String, f64)>| format!("{found:?}"); // some are not numbers
                prop_assert_eq!(gauges(ahead.gauges()), gauges(driven.fifo.gauges()), "{}", name);
            }
            let end = now + Duration::from_secs(10);
            driven.settle(end, &mut idle);
            ahead.settle(end);
            prop_assert_eq!(ahead.counters(), driven.counters(), "{}", name);
            prop_assert_eq!(computed, driven.started, "{}", name);
        }
    }
}

/// What becomes of a packet at a port: when, and whether it was sent with this ECN field, or dropped.
type Fate = (u32, Instant, Result<Ecn, Reason>);

/// The fates of packets at a port of 8 Mbit/s, in order.
fn fates(params: SchedulerParams, seed: u64, arrivals: &[(u64, Header)]) -> Vec<Fate> {
    let window = (Instant::ZERO, NEVER);
    let mut port: Port<Header> = Port::new(params, environment().rate, streams(seed), window);
    let (mut fates, mut serve_at) = (Vec::new(), None);
    let serve = |port: &mut Port<Header>, fates: &mut Vec<Fate>, now: Instant| loop {
        match port.serve(now) {
            Served::Sent(packet, free_at) => {
                fates.push((packet.flow.0, now, Ok(packet.ecn)));
                return Some(free_at);
            }
            Served::Dropped(packet, reason) => fates.push((packet.flow.0, now, Err(reason))),
            Served::Later(at) => return Some(at),
            Served::Nothing => return None,
        }
    };
    let mut now = Instant::ZERO;
    for (flow, &(gap, packet)) in (0..).zip(arrivals) {
        now += Duration::from_nanos(gap);
        while let Some(at) = serve_at.filter(|&at| at <= now) {
            serve_at = serve(&mut port, &mut fates, at);
        }
        match port.offer(Header { flow: FlowId(flow), ..packet }, now) {
            Offered::Queued => {}
            Offered::Idle => serve_at = serve(&mut port, &mut fates, now),
            Offered::Dropped(packet, reason) => fates.push((packet.flow.0, now, Err(reason))),
        }
    }
    while let Some(at) = serve_at {
        serve_at = serve(&mut port, &mut fates, at);
    }
    fates
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A scheduler that forgot a decision of the AQM, on arrival or at departure, would send what the FIFO drops.
    #[test]
    fn an_overloaded_queue_drops_the_same_packets_under_every_scheduler(
        seed: u64,
        arrivals in prop::collection::vec((0_u64..1_600_000, 0_usize..3, 40_u16..1500, any::<bool>()), 50..300),
    ) {
        let arrivals: Vec<(u64, Header)> = arrivals
            .into_iter()
            .map(|(gap, color, size, capable)| {
                let ecn = if capable { Ecn::Capable0 } else { Ecn::NotCapable };
                // Two bursts for each pause, so that the queue is overloaded, and at times empty.
                let gap = if gap % 64 == 0 { 40 * gap } else { gap / 3 };
                (gap, Header { color: Color::ALL[color], ecn, ..Header::new(FlowId(0), size) })
            })
            .collect();
        for (name, table) in AQMS {
            let text = serde_json::to_string(&aqm(name, table)).unwrap();
            let [(_, fifo, _), others @ ..] = under_one_aqm(&text);
            let expected = fates(fifo, seed, &arrivals);
            for (scheduler, params, _) in others {
                let found = fates(params, seed, &arrivals);
                prop_assert_eq!(&found, &expected, "{} {} under {}", name, table, scheduler);
            }
        }
    }
}

#[test]
fn only_an_aqm_that_is_not_precomputable_decides_at_departure() {
    let mut decides = Vec::new();
    for (name, table) in AQMS {
        let params = aqm(name, table);
        let precomputable = params.precomputable();
        let mut built = params.build(environment());
        let (mut rng, mut busy) = (Rng::stream(1, "aqm"), Occupancy::EMPTY);
        (0..8).for_each(|_| busy.add(Color::Yellow, 1000));
        let mut verdicts = (0..400_u64).map(|n| {
            let packet = Header { arrived: Instant::ZERO, ..Header::new(FlowId(0), 1000) };
            let cx = &mut Context { now: Instant::from_nanos(n * 1_000_000), rng: &mut rng };
            built.on_arrival(&packet, &busy, cx);
            built.on_departure(&packet, &busy, cx)
        });
        if verdicts.any(|verdict| verdict != Verdict::Pass) {
            assert!(!precomputable, "{name} decides at departure, but says that it is precomputable");
            decides.push(*name);
        }
    }
    for block in AqmParams::NAMES {
        let mut rows = AQMS.iter().filter(|(name, _)| name == block);
        let precomputable = rows.all(|(name, table)| aqm(name, table).precomputable());
        assert!(precomputable || decides.contains(block), "{block} could be precomputable");
    }
}

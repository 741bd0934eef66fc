//! The conformance harness over every registered block.
//!
//! Parameters come from `common/parameters.rs`: a line or more for each block, and a test that no registered block is without
//! one.

#![expect(clippy::disallowed_macros, reason = "each test counts the allocations of its own thread")]

#[path = "common/allocations.rs"]
mod allocations;
#[path = "common/ordinary.rs"]
mod ordinary;
#[path = "common/parameters.rs"]
mod parameters;

use perhop_core::aqm::{AqmParams, Reason};
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::{AnyScheduler, Dequeued, Discipline, SchedulerParams};
use perhop_core::testing::{self, Bench, Observed, Operation, environment, fifo, meter_colors};
use perhop_core::{Color, Context, Dscp, Duration, Ecn, FlowId, Header, Instant, Rng, Role, registry};
use proptest::prelude::*;

use allocations::allocations;
use parameters::{AQMS, METERS, SCHEDULERS};

fn aqm(name: &str, table: &str) -> AqmParams {
    let mut table = serde_json::Deserializer::from_str(table);
    AqmParams::deserialize_named(name, &mut table).expect("registered").expect("valid parameters")
}

fn meter(name: &str, table: &str) -> MeterParams {
    let mut table = serde_json::Deserializer::from_str(table);
    MeterParams::deserialize_named(name, &mut table).expect("registered").expect("valid parameters")
}

fn scheduler(name: &str, table: &str) -> AnyScheduler<Header> {
    let mut table = serde_json::Deserializer::from_str(table);
    let read = SchedulerParams::deserialize_named(name, &mut table);
    testing::scheduler(read.expect("registered").expect("valid parameters"))
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
fn sent(seen: &[Observed]) -> Vec<u64> {
    let packet = |step: &Observed| match step {
        Observed::Sent(packet) => Some(*packet),
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
        scheduler(ordinary::block(row), table);
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
            let first = Bench::new(fifo(aqm(name, table)), seed).run(&operations);
            let seen = first.map_err(|imbalance| TestCaseError::fail(format!("{name}: {imbalance}")))?;
            prop_assert!(sent(&seen).is_sorted(), "{name}: out of order");
            prop_assert_eq!(&seen, &Bench::new(fifo(aqm(name, table)), seed).run(&operations).unwrap());
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
            let first = Bench::new(scheduler(name, table), seed).run(&operations);
            let seen = first.map_err(|imbalance| TestCaseError::fail(format!("{name}: {imbalance}")))?;
            let classifier = scheduler(name, table);
            for class in 0..classifier.ledgers().len() {
                let of_class: Vec<u64> = sent(&seen)
                    .into_iter()
                    .filter(|&packet| classifier.class_of(&packets[packet as usize]) == class)
                    .collect();
                prop_assert!(of_class.is_sorted(), "{name}: out of order");
            }
            prop_assert_eq!(&seen, &Bench::new(scheduler(name, table), seed).run(&operations).unwrap());
        }
    }

    #[test]
    fn a_single_queue_is_first_in_first_out(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let rule = serde_json::to_string(&aqm(name, table)).unwrap();
            let queues = format!(r#"{{"queues": [{{"name": "all", "rule": {rule}}}]}}"#);
            let plain = Bench::new(fifo(aqm(name, table)), seed).run(&operations).unwrap();
            for several in ["priority", "drr", "wfq"] {
                let seen = Bench::new(scheduler(several, &queues), seed).run(&operations).unwrap();
                prop_assert_eq!(&seen, &plain, "{} under {}", name, several);
            }
        }
    }

    #[test]
    fn who_is_not_capable_of_ecn_notices_nothing_of_it(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let Some(rule) = notifying(name, table) else { continue };
            let plain = Bench::new(fifo(aqm(name, table)), seed).run(&operations).unwrap();
            prop_assert_eq!(&Bench::new(fifo(rule), seed).run(&operations).unwrap(), &plain, "{}", name);
        }
    }

    #[test]
    fn who_is_capable_is_told_and_never_dropped_by_chance(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let Some(rule) = notifying(name, table) else { continue };
            let rule_text = serde_json::to_string(&rule).unwrap();
            tell(fifo(rule), seed, &operations).map_err(|text| TestCaseError::fail(format!("{name}: {text}")))?;
            for (several, table) in [
                ("edf", format!(r#"{{"rule": {rule_text}}}"#)),
                ("dsd", format!(r#"{{"bound": "5ms", "green-drop": "late", "rule": {rule_text}}}"#)),
                ("priority", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
                ("drr", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
                ("wfq", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
            ] {
                tell(scheduler(several, &table), seed, &operations)
                    .map_err(|text| TestCaseError::fail(format!("{name} under {several}: {text}")))?;
            }
        }
    }

    #[test]
    fn schedulers_wait_only_for_packets_or_for_a_later_time(seed: u64, operations in operations()) {
        for (name, table) in SCHEDULERS {
            let mut bench = Bench::new(scheduler(name, table), seed);
            for &operation in &operations {
                if let Observed::Waits { until, packets } = bench.step(operation).unwrap() {
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
        }
    }
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
fn tell(mut discipline: impl Discipline<Header>, seed: u64, operations: &[Operation]) -> Result<(), String> {
    let (mut rng, mut now, mut told) = (Rng::stream(seed, "harness"), Instant::ZERO, 0);
    let is_told = |packet: &Header| u64::from(packet.ecn == Ecn::Congested);
    for operation in operations {
        let mut cx = Context { now, rng: &mut rng };
        match *operation {
            Operation::Enqueue { size, color, dscp, label } => {
                let packet =
                    Header { color, dscp, label, ecn: Ecn::Capable0, ..Header::new(FlowId(0), size) };
                if let Err((packet, _)) = discipline.enqueue(packet, &mut cx)
                    && is_told(&packet) > 0
                {
                    return Err("told although it was dropped".into());
                }
            }
            Operation::Dequeue => match discipline.dequeue(&mut cx) {
                Dequeued::Sent(packet) | Dequeued::Dropped(packet, _) => told += is_told(&packet),
                Dequeued::Wait(_) => {}
            },
            Operation::Advance(nanos) => now += Duration::from_nanos(nanos),
        }
    }
    let mut waiting = 0;
    discipline.inspect(&mut |packet| waiting += is_told(packet));
    let counters = discipline.counters();
    let counted: u64 = counters.notifications().flat_map(|(_, by_color)| by_color).sum();
    counters.balance(discipline.occupancy()).map_err(|imbalance| imbalance.to_string())?;
    let by_chance = [Reason::Early, Reason::EarlyOut].map(|reason| counters.dropped(reason));
    if counted != told + waiting || by_chance != [[0; 3]; 2] {
        return Err(format!("{counted} counted, {told} left, {waiting} wait, {by_chance:?} dropped"));
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
        let mut bench = Bench::new(fifo(aqm(name, table)), 1);
        burst(&mut bench);
        assert_eq!(allocations(|| burst(&mut bench)), 0, "{name} {table}");
    }
    for (name, table) in SCHEDULERS {
        let mut bench = Bench::new(scheduler(name, table), 1);
        (0..5).for_each(|_| burst(&mut bench)); // until its rings have the room they need
        assert_eq!(allocations(|| burst(&mut bench)), 0, "{name} {table}");
    }
    for (name, table) in METERS {
        use perhop_core::meter::Meter;
        let mut meter = meter(name, table).build(environment());
        let mut rng = Rng::stream(1, "harness");
        let work = || {
            for n in 0..2000 {
                let now = Instant::from_nanos(n * 900_000);
                meter.color(&Header::new(FlowId(0), 1000), &mut Context { now, rng: &mut rng });
            }
        };
        assert_eq!(allocations(work), 0, "{name} {table}");
    }
}

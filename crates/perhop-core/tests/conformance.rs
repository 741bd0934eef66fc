//! The conformance harness over every registered block.
//!
//! Parameters come from `common/parameters.rs`: a line or more for each block, and a test that no registered
//! block is without one.

use std::collections::BTreeMap;

use perhop_core::aqm::{Aqm, AqmParams, Foreign, Verdict};
use perhop_core::meter::{self, Conditioner, MeterParams};
use perhop_core::scheduler::{
    Admitted, AnyScheduler, Dequeued, Discipline, PrecomputedFifo, SchedulerParams, Within,
};
use perhop_core::testing::{self, Bench, Effect, Operation, environment, fifo, meter_colors, streams};
use perhop_core::{
    Block, BlockInfo, ClassCounters, Color, Context, Dscp, Duration, Ecn, Era, FlowId, Header, Instant,
    Occupancy, Offered, Port, Reason, Rng, Role, Serializer, Served, TODAY, registry,
};
use proptest::prelude::*;

use crate::allocations::allocations;
use crate::blocks::{aqm, meter, scheduler, under_one_aqm};
use crate::ordinary;
use crate::parameters::{AQMS, METERS, SCHEDULERS, WITHOUT_ECN};

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
        Effect::Sent { packet, .. } => Some(*packet),
        _ => None,
    };
    seen.iter().filter_map(packet).collect()
}

/// Every block but those that are implemented outside, whose classes meet the harness one by one (`perhop
/// check-block`).
fn implemented_here() -> impl Iterator<Item = BlockInfo> {
    registry().filter(|block| block.name != Foreign::NAME)
}

#[test]
fn every_registered_block_is_in_the_harness() {
    for block in implemented_here() {
        let listed = match block.role {
            Role::Aqm => AQMS.iter().any(|(name, _)| *name == block.name),
            Role::Meter => METERS.iter().any(|(name, _)| *name == block.name),
            Role::Scheduler => SCHEDULERS.iter().any(|(name, _)| *name == block.name),
            Role::Application | Role::CongestionControl => unreachable!("the core has none"),
        };
        assert!(
            listed,
            "{:?} `{}` is registered, but the harness has no parameters for it",
            block.role, block.name
        );
        assert!(!block.summary.is_empty());
    }
}

#[test]
fn every_registered_block_says_where_it_comes_from() {
    for BlockInfo { name, origin, .. } in registry() {
        assert!(!origin.source.is_empty(), "`{name}` names no paper, RFC or program as its source");
        assert!((1950..2100).contains(&origin.year), "`{name}`: {}", origin.year);
        let today = origin.year >= TODAY;
        assert!(origin.era == Era::Papers || (origin.era == Era::Today) == today, "`{name}`: {origin:?}");
        // Years within the source are not before the first publication, and a paper cited by its year is not
        // older.
        let cited = years(origin.source);
        assert!(cited.iter().all(|&year| year >= origin.year), "`{name}`: {origin:?}");
        if let Some(linux) = origin.linux {
            let version =
                linux.since.is_none_or(|since| since.split('.').all(|part| part.parse::<u8>().is_ok()));
            assert!(!linux.name.is_empty() && version, "`{name}`: {linux:?}");
        }
    }
}

/// The years that a text cites.
fn years(text: &str) -> Vec<u16> {
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '-');
    let numbers =
        words.clone().zip(words.skip(1)).filter(|(before, _)| !matches!(*before, "RFC" | "section"));
    numbers.filter_map(|(_, word)| word.parse().ok()).filter(|year| (1950..2100).contains(year)).collect()
}

#[test]
fn every_registered_block_is_measured() {
    for registered in implemented_here() {
        let rows = match registered.role {
            Role::Aqm => ordinary::AQMS,
            Role::Meter => ordinary::METERS,
            Role::Scheduler => ordinary::SCHEDULERS,
            Role::Application | Role::CongestionControl => unreachable!("the core has none"),
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
fn schedulers_name_their_classes_and_say_which_match_leads_to_them() {
    for (name, table) in SCHEDULERS {
        let built = scheduler(name, table, 1);
        let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
        table["scheduler"] = (*name).into();
        let params: SchedulerParams = serde_json::from_value(table.clone()).unwrap();
        let keys = params.class_keys();
        let names: Vec<&str> = keys.iter().map(|class| class.name.as_str()).collect();
        let classes: Vec<&str> = (0..built.classes()).map(|class| built.class_name(class)).collect();
        assert_eq!(names, classes, "{name}");
        for key in keys.into_iter().filter_map(|class| class.key) {
            let path = format!("/{}", key.replace(['.', '['], "/").replace(']', ""));
            assert!(table.pointer(&path).is_some_and(serde_json::Value::is_object), "{name}: {key}");
        }
        let rate = "10Mbps".parse().unwrap();
        assert_eq!(params.least_rates(rate).len(), params.aqms(None).len(), "{name}");
        for Within { key, scheduler, .. } in params.all_within(rate) {
            let path = format!("/{}", key.replace(['.', '['], "/").replace(']', ""));
            let there = table.pointer(path.trim_end_matches('/')).and_then(|table| table.get("scheduler"));
            assert!(there.is_none_or(|there| there == scheduler.name()), "{name}: {key}");
        }
    }
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
        }).zip(0..).map(|(packet, number)| Header { flow: FlowId(number), ..packet }).collect();
        for (name, table) in SCHEDULERS {
            let first = Bench::new(scheduler(name, table, seed)).run(&operations);
            let seen = first.map_err(|imbalance| TestCaseError::fail(format!("{name}: {imbalance}")))?;
            let classifier = scheduler(name, table, seed);
            let mut last = BTreeMap::new();
            for step in &seen {
                let Effect::Sent { packet: number, class } = *step else { continue };
                let packet = &packets[number as usize];
                let redirects = table.contains("queue-protection");
                prop_assert!(redirects || class == classifier.class_of(packet), "{name}: of another class");
                let before = last.insert((class, classifier.order_of(packet)), number);
                prop_assert!(before < Some(number), "{name}: out of order");
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
    fn ecn_changes_nothing_for_packets_that_are_not_capable(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let Some(rule) = notifying(name, table) else { continue };
            if table.contains("mark-only") {
                continue; // It lets packets in that are not capable.
            }
            let plain = Bench::new(fifo(aqm(name, table), seed)).run(&operations).unwrap();
            prop_assert_eq!(&Bench::new(fifo(rule, seed)).run(&operations).unwrap(), &plain, "{}", name);
        }
    }

    #[test]
    fn capable_packets_are_marked_and_never_dropped_early(seed: u64, operations in operations()) {
        for (name, table) in AQMS {
            let Some(rule) = notifying(name, table) else { continue };
            let rule_text = serde_json::to_string(&rule).unwrap();
            check_notifications(fifo(rule, seed), &operations).map_err(|text| TestCaseError::fail(format!("{name}: {text}")))?;
            for (several, table) in [
                ("edf", format!(r#"{{"rule": {rule_text}}}"#)),
                ("dsd", format!(r#"{{"bound": "5ms", "green-drop": "late", "rule": {rule_text}}}"#)),
                ("priority", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
                ("drr", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
                ("wfq", format!(r#"{{"queues": [{{"name": "all", "rule": {rule_text}}}]}}"#)),
            ] {
                check_notifications(scheduler(several, &table, seed), &operations)
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
                    let idles = table.contains("idle") || table.contains("shaper") || ["shaper", "htb"].contains(name);
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

    /// Whatever happens to packets out of profile: each packet that comes goes on or is dropped, as its color
    /// says, and the meter measures alike.
    #[test]
    fn a_policer_drops_what_its_meter_would_have_marked(
        seed: u64,
        arrivals in prop::collection::vec((0_u64..9_000_000, any::<u16>()), 0..200),
    ) {
        for (name, table) in METERS {
            let colors = meter_colors(meter(name, table).build(environment()), seed, &arrivals);
            for (out, dropped) in policers(meter(name, table).colors()) {
                let judged = |&color: &Color| {
                    let dropped = dropped.contains(&color).then_some(Reason::Policed);
                    meter::Verdict { color, dropped }
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

/// The rule with `ecn`, if it has that parameter.
fn notifying(name: &str, table: &str) -> Option<AqmParams> {
    let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
    table["ecn"] = true.into();
    let table = table.to_string();
    let mut table = serde_json::Deserializer::from_str(&table);
    AqmParams::deserialize_named(name, &mut table).expect("registered").ok()
}

/// Drives a discipline with ECN-capable packets: as many leave with CE as the counters of notifications say,
/// and none is dropped early at random.
fn check_notifications(
    mut discipline: impl Discipline<Header>,
    operations: &[Operation],
) -> Result<(), String> {
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
fn every_rule_can_notify_but_those_that_say_so() {
    let cannot = AQMS.iter().filter(|(name, table)| notifying(name, table).is_none());
    assert!(cannot.map(|(name, _)| *name).all(|name| WITHOUT_ECN.contains(&name)));
}

#[test]
fn no_block_allocates_per_packet() {
    fn burst(bench: &mut Bench<impl Discipline<Header>>) {
        for n in 0..2000_u32 {
            let (color, label) = (Color::ALL[n as usize % 3], n % 3);
            let dscp = Dscp::new(if n % 2 == 0 { 0 } else { 3 }).unwrap();
            bench.perform(Operation::Enqueue { size: 1000, color, dscp, label });
            bench.perform(Operation::Advance(900_000));
            if n % 8 != 0 {
                // As a port does: after a drop it asks again.
                while bench.perform(Operation::Dequeue) == Effect::Dropped {}
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
#[test]
fn every_scheduler_is_among_those_under_one_aqm() {
    let listed = under_one_aqm(r#"{"aqm": "drop-tail", "limit": "9p"}"#).map(|(name, ..)| name);
    let without: Vec<&str> = SCHEDULERS
        .iter()
        .filter(|(name, table)| {
            let mut table = serde_json::Deserializer::from_str(table);
            SchedulerParams::deserialize_named(name, &mut table).unwrap().unwrap().aqms(None).is_empty()
        })
        .map(|(name, _)| *name)
        .collect();
    assert!(
        SchedulerParams::NAMES.iter().all(|name| listed.contains(name) != without.contains(name)),
        "{listed:?} {without:?}"
    );
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

    /// A scheduler that forgot a decision of the AQM, on arrival or at departure, would send what the FIFO
    /// drops.
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

/// An AQM hears of departures if it gives a verdict on them, or keeps anything of them: it then differs from
/// a twin that knows only of the arrivals.
#[test]
fn only_an_aqm_that_is_not_precomputable_hears_of_departures() {
    let mut hears = Vec::new();
    for (name, table) in AQMS {
        let params = aqm(name, table);
        let precomputable = params.precomputable();
        let (mut built, mut twin) = (params.clone().build(environment()), params.build(environment()));
        let (mut rng, mut rng_of_twin) = (Rng::stream(1, "aqm"), Rng::stream(1, "aqm"));
        let mut busy = Occupancy::EMPTY;
        (0..8).for_each(|_| busy.add(Color::Yellow, 1000));
        busy.set_head(Some(Instant::ZERO));
        let mut departures = (0..400_u64).map(|n| {
            let packet = Header { arrived: Instant::ZERO, ..Header::new(FlowId(0), 1000) };
            let now = Instant::from_nanos(n * 1_000_000);
            built.on_arrival(&packet, &busy, &mut Context { now, rng: &mut rng });
            twin.on_arrival(&packet, &busy, &mut Context { now, rng: &mut rng_of_twin });
            let verdict = built.on_departure(&packet, &busy, &mut Context { now, rng: &mut rng });
            verdict != Verdict::Pass || format!("{built:?}") != format!("{twin:?}")
        });
        if departures.any(|heard| heard) {
            assert!(!precomputable, "{name} hears of departures, but says that it is precomputable");
            hears.push(*name);
        }
    }
    for block in AqmParams::NAMES {
        let mut rows = AQMS.iter().filter(|(name, _)| name == block);
        let precomputable = rows.all(|(name, table)| aqm(name, table).precomputable());
        assert!(precomputable || hears.contains(block), "{block} could be precomputable");
    }
}

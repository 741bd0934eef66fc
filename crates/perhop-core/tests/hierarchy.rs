//! What the classes of a hierarchical token bucket get, whatever the tree, the sizes of packets, and what
//! others do.

use perhop_core::scheduler::{AnyScheduler, Dequeued, Discipline, SchedulerParams};
use perhop_core::testing::streams;
use perhop_core::{Bitrate, Dscp, Environment, FlowId, Header, Instant};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The link's rate: a byte takes a microsecond.
const LINK: u64 = 8_000_000;
/// The largest packet.
const LARGEST: f64 = 1500.0;
const BURST: f64 = 3000.0;

/// A class of a random tree: parts of its parent's rate, and of what is above them up to the link's rate.
#[derive(Clone, Debug)]
struct Class {
    part: u64,
    above: u64,
    prio: u8,
    classes: Vec<Class>,
}

fn class() -> impl Strategy<Value = Class> {
    let numbers = || (1_u64..10, 0_u64..=4, 0_u8..3);
    let leaf = numbers().prop_map(|(part, above, prio)| Class { part, above, prio, classes: Vec::new() });
    leaf.prop_recursive(3, 12, 3, move |inner| {
        (numbers(), prop::collection::vec(inner, 1..4)).prop_map(|((part, above, prio), classes)| Class {
            part,
            above,
            prio,
            classes,
        })
    })
}

/// What the tests know of a class: its rate and ceiling in bytes a microsecond, the leaves in it, and how
/// many classes are in it.
#[derive(Clone, Debug)]
struct Known {
    rate: f64,
    ceil: f64,
    leaves: Vec<usize>,
    within: usize,
}

/// A class within one of this rate as a table; what is known of it and of those within it, leaves numbered
/// from `leaves`.
fn table(class: &Class, rate: u64, number: &mut usize, leaves: &mut usize, known: &mut Vec<Known>) -> Value {
    let ceil = rate + (LINK - rate) / 4 * class.above;
    let mut object = json!({
        "name": format!("c{number}"), "rate": format!("{rate}bps"), "ceil": format!("{ceil}bps"),
        "burst": "3000B", "cburst": "3000B",
    });
    *number += 1;
    let (place, first) = (known.len(), *leaves);
    known.push(Known { rate: rate as f64 / 8e6, ceil: ceil as f64 / 8e6, leaves: Vec::new(), within: 0 });
    if class.classes.is_empty() {
        object["match"] = json!({ "dscp": *leaves });
        object["prio"] = class.prio.into();
        object["queue"] = json!({ "aqm": "drop-tail", "limit": "999p" });
        *leaves += 1;
    } else {
        let parts: u64 = class.classes.iter().map(|class| class.part).sum();
        let within = class.classes.iter();
        let tables: Vec<Value> = within
            .map(|class| table(class, (rate * class.part / parts).max(1000), number, leaves, known))
            .collect();
        object["classes"] = tables.into();
    }
    known[place].leaves = (first..*leaves).collect();
    known[place].within = known.len() - place - 1;
    object
}

/// A tree under a root with the link's rate, what is known of its classes, and how many leaves it has.
fn tree(classes: Vec<Class>) -> (AnyScheduler<Header>, Vec<Known>, usize) {
    let root = Class { part: 1, above: 0, prio: 0, classes };
    let (mut number, mut leaves, mut known) = (0, 0, Vec::new());
    let mut root = table(&root, LINK, &mut number, &mut leaves, &mut known);
    forget_last_match(&mut root);
    let table = json!({ "scheduler": "htb", "classes": [root] });
    let params: SchedulerParams = serde_json::from_value(table).unwrap();
    let rate = Bitrate::from_bps(LINK).unwrap();
    params.fits(rate).unwrap();
    (params.build(Environment { rate }, streams(1)), known, leaves)
}

/// The last leaf takes all other packets.
fn forget_last_match(class: &mut Value) {
    if let Some(last) = class.get_mut("classes").and_then(Value::as_array_mut).and_then(|all| all.last_mut())
    {
        return forget_last_match(last);
    }
    class.as_object_mut().unwrap().remove("match");
}

/// The times in microseconds at which packets begin to be sent, and the bytes of each leaf before; leaves for
/// which `always` says so always have packets, others at times. Where nothing is sent, the time is that at
/// which the discipline wants to be asked again.
fn serve(
    queue: &mut AnyScheduler<Header>,
    leaves: usize,
    sizes: &[u16],
    always: impl Fn(usize) -> bool,
) -> Vec<(f64, Vec<f64>)> {
    let mut now = Instant::ZERO;
    let mut sizes = sizes.iter().cycle();
    let mut sent = vec![0.0; leaves];
    let mut seen = Vec::new();
    while seen.len() < 400 {
        for leaf in 0..leaves {
            let size = *sizes.next().unwrap();
            let wanted = if always(leaf) { 2 } else { u64::from(size % 3) };
            if queue.class(leaf).occupancy.packets() < wanted {
                let dscp = Dscp::new(u8::try_from(leaf).unwrap()).unwrap();
                queue.enqueue(Header { dscp, ..Header::new(FlowId(0), size) }, now).unwrap();
            }
        }
        seen.push((now.as_nanos() as f64 / 1e3, sent.clone()));
        match queue.dequeue(now) {
            Dequeued::Sent(packet, class) => {
                sent[class] += f64::from(packet.size);
                now = Instant::from_nanos(now.as_nanos() + u64::from(packet.size) * 1000);
            }
            Dequeued::Wait(Some(until)) => {
                assert!(until > now);
                let before = Instant::from_nanos(until.as_nanos() - 1);
                if before > now {
                    assert_eq!(queue.dequeue(before), Dequeued::Wait(Some(until)), "the time is exact");
                }
                now = until;
            }
            Dequeued::Wait(None) => now = Instant::from_nanos(now.as_nanos() + 100_000),
            Dequeued::Dropped(..) => panic!("nothing is dropped at departure"),
        }
    }
    seen
}

/// Every interval between two times: its length, and what each leaf got in it.
fn intervals(seen: &[(f64, Vec<f64>)]) -> impl Iterator<Item = (f64, Vec<f64>)> {
    let pairs = (0..seen.len()).flat_map(|begin| (begin + 1..seen.len()).map(move |end| (begin, end)));
    pairs.map(|(begin, end)| {
        let got = seen[end].1.iter().zip(&seen[begin].1).map(|(end, begin)| end - begin);
        (seen[end].0 - seen[begin].0, got.collect())
    })
}

fn sizes() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(prop_oneof![Just(40_u16), Just(1500), 1_u16..=1500], 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In any interval a class sends no more than its ceiling and its bucket, and the packet that uses up the
    /// bucket; a class around others also the buckets of those within it, which send their own rates whatever
    /// its ceiling: these add up to no more than its own.
    #[test]
    fn ceilings_hold_in_every_interval(classes in prop::collection::vec(class(), 1..4), sizes in sizes()) {
        let (mut queue, known, leaves) = tree(classes);
        let seen = serve(&mut queue, leaves, &sizes, |leaf| leaf % 2 == 0);
        for (length, got) in intervals(&seen) {
            for class in &known {
                let sent: f64 = class.leaves.iter().map(|&leaf| got[leaf]).sum();
                let buckets = 1.0 + class.within as f64;
                let most = class.ceil * length + buckets * (BURST + LARGEST) + 1.0;
                prop_assert!(sent <= most, "{class:?} sent {sent} in {length}, at most {most}");
            }
        }
    }

    /// A class that always has packets gets its rate in any interval, but for what others may send first:
    /// their buckets, and a packet of each.
    #[test]
    fn guarantees_hold_in_every_interval(classes in prop::collection::vec(class(), 1..4), sizes in sizes()) {
        let (mut queue, known, leaves) = tree(classes);
        let seen = serve(&mut queue, leaves, &sizes, |leaf| leaf % 2 == 0);
        let leaf_classes: Vec<&Known> = known.iter().filter(|class| class.leaves.len() == 1).collect();
        for (length, got) in intervals(&seen) {
            for class in leaf_classes.iter().filter(|class| class.leaves[0] % 2 == 0) {
                let least = class.rate.min(1.0) * length - (leaves as f64 + 1.0) * (BURST + 2.0 * LARGEST);
                prop_assert!(got[class.leaves[0]] >= least - 1.0, "{class:?} of at least {least} in {length}");
            }
        }
    }

    /// Where every class may borrow up to the link's rate, the link is never idle while packets wait.
    #[test]
    fn what_is_left_is_lent(mut classes in prop::collection::vec(class(), 1..4), sizes in sizes()) {
        fn unlimited(classes: &mut [Class]) {
            for class in classes {
                class.above = 4;
                unlimited(&mut class.classes);
            }
        }
        unlimited(&mut classes);
        let (mut queue, _, leaves) = tree(classes);
        let seen = serve(&mut queue, leaves, &sizes, |leaf| leaf == 0);
        let (end, sent) = seen.last().unwrap();
        let total: f64 = sent.iter().sum();
        // Rates within the tree are rounded down to whole bits a second, those of the root are not.
        prop_assert!((total - end).abs() <= 0.01 * end + LARGEST, "{total} bytes in {end} us");
    }
}

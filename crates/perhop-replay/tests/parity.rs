//! Every block gives each packet of a capture the same verdict in virtual time and through the data plane.

use perhop_core::aqm::AqmParams;
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::{Match, SchedulerParams};
use perhop_replay::{By, Choice, Plan, Target, TargetLink, replay};
use perhop_sim::Watch;
use proptest::prelude::*;

use crate::files::{Frame, Order, pcap, udp, udp6};
use crate::parameters::{AQMS, METERS, SCHEDULERS};

fn read<T: serde::de::DeserializeOwned>(tag: &str, name: &str, table: &str) -> T {
    let table = table.replacen('{', &format!(r#"{{"{tag}": "{name}","#), 1).replace(",}", "}");
    serde_json::from_str(&table).unwrap_or_else(|problem| panic!("{table}: {problem}"))
}

fn queues() -> Vec<(String, SchedulerParams)> {
    let aqms = AQMS.iter().map(|(name, table)| {
        (format!("{name} {table}"), read::<AqmParams>(AqmParams::TAG, name, table).into())
    });
    let schedulers = SCHEDULERS
        .iter()
        .map(|(name, table)| (format!("{name} {table}"), read(SchedulerParams::TAG, name, table)));
    aqms.chain(schedulers).collect()
}

fn meters() -> Vec<(String, MeterParams)> {
    let meters = METERS.iter();
    meters.map(|(name, table)| (format!("{name} {table}"), read(MeterParams::TAG, name, table))).collect()
}

fn target(meter: Option<MeterParams>, queue: Option<SchedulerParams>, meters: &[AggregateMeter]) -> Target {
    let rate = "8Mbps".parse().unwrap();
    let link = queue.map(|queue| TargetLink { name: "link".into(), rate, queue, meters: meters.to_vec() });
    Target { meter, link }
}

fn compare(name: &str, target: Target, file: &[u8]) {
    let plan = Plan { choice: Choice::default(), target, seed: 7, top: 5, notices: Vec::new() };
    let [(report, verdicts), other] =
        [By::Simulator, By::DataPlane].map(|by| replay(file, &plan, by, true, &Watch::default()).unwrap());
    let (others, verdicts) = (other.1.unwrap(), verdicts.unwrap());
    for row in 0..verdicts.number.len() {
        let of = |all: &perhop_replay::Verdicts| {
            (all.verdict[row], all.dscp_out[row], all.ecn_out[row], all.color[row], all.left_ns[row])
        };
        assert_eq!(of(&verdicts), of(&others), "{name}: packet {}", verdicts.number[row]);
    }
    assert_eq!(report, other.0, "{name}");
}

/// A capture: gaps in nanoseconds, sizes, codepoints, ECN fields, ports.
fn captures() -> impl Strategy<Value = Vec<u8>> {
    // Together with the last one, at the very end of a transmission, within it, after a rest.
    let gap = prop_oneof![
        4 => Just(0_u64),
        3 => (1_u64..3).prop_map(|packets| packets * 1_000_000),
        4 => 0_u64..1_500_000,
        1 => 0_u64..60_000_000,
    ];
    let size = prop_oneof![Just(48_usize), Just(1000), Just(1500), 48_usize..=1500];
    let dscp = prop_oneof![Just(0_u8), Just(3), Just(10), Just(12), Just(14), 0_u8..64];
    let packet = (gap, size, dscp, 0_u8..4, 0_u16..6, any::<bool>());
    prop::collection::vec(packet, 1..120).prop_map(|packets| {
        let mut at = 0;
        let frames = packets.into_iter().map(|(gap, size, dscp, ecn, port, six)| {
            at += gap;
            Frame::new(at, if six { udp6(port, size, dscp, ecn) } else { udp(port, size, dscp, ecn) })
        });
        pcap(Order::Little, true, 101, &frames.collect::<Vec<_>>())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_queue_gives_the_same_verdicts(file in captures()) {
        for (name, queue) in queues() {
            compare(&name, target(None, Some(queue), &[]), &file);
        }
    }

    #[test]
    fn every_meter_gives_the_same_verdicts_alone_before_a_queue_and_at_a_link(file in captures()) {
        let red: SchedulerParams =
            read::<AqmParams>("aqm", "red", r#"{"thresholds": "2/6/0.5", "limit": "9p", "weight": 0.2, "ecn": true}"#).into();
        for (name, meter) in meters() {
            compare(&name, target(Some(meter.clone()), None, &[]), &file);
            compare(&name, target(Some(meter.clone()), Some(red.clone()), &[]), &file);
            if name.starts_with("twam") {
                continue; // it measures one flow
            }
            let at_link = AggregateMeter {
                name: "all".into(),
                r#match: Match::default(),
                profile: meter.clone(),
                promote: !meter.reads_color(),
            };
            compare(&name, target(None, Some(red.clone()), &[at_link]), &file);
        }
    }
}

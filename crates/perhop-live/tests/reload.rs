//! Reload of the configuration: no packet is lost, none overtakes another, and packets are conserved
//! throughout.

use etherparse::PacketBuilder;
use perhop_core::medium::Medium;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Color, Dscp, Duration, FlowId, Instant, Probability, ServiceLevel};
use perhop_live::{
    Coloring, Fixed, Head, Hop, LinkSpec, Lost, MeterSpec, Plane, PlaneSpec, Prefix, Remark, Selector, Sink,
    StreamSpec,
};
use proptest::prelude::*;
use serde_json::json;

const GREEN: Dscp = Dscp::new(10).unwrap();

fn fifo(packets: u32) -> SchedulerParams {
    let rule = json!({ "aqm": "drop-tail", "limit": format!("{packets}p") });
    SchedulerParams::from(serde_json::from_value::<perhop_core::aqm::AqmParams>(rule).unwrap())
}

fn two_queues() -> SchedulerParams {
    let rule = json!({ "aqm": "drop-tail", "limit": "40p" });
    let queues = json!([
        { "name": "gold", "match": { "color": "green" }, "rule": rule },
        { "name": "rest", "rule": rule },
    ]);
    serde_json::from_value(json!({ "scheduler": "drr", "queues": queues })).unwrap()
}

fn spec(rate: &str, delay: u64, queue: SchedulerParams, profile: &str) -> PlaneSpec {
    let rate = rate.parse().unwrap();
    let gold = json!({ "marker": "token-bucket", "rate": profile, "burst": "20kB" });
    let gold: MeterParams = serde_json::from_value(gold).unwrap();
    let stream = |name: &str, selector, coloring, route| StreamSpec {
        name: name.into(),
        flow: FlowId(0).into(),
        device: 0,
        selector,
        coloring,
        remark: Remark::default(),
        service: ServiceLevel::NONE,
        label: 0,
        route,
        leaves: 1,
    };
    let of_gold = Selector { source: Prefix::new([10, 0, 0, 1].into(), 32), ..Selector::default() };
    PlaneSpec {
        reports: Vec::new(),
        devices: 2,
        mtu: 1500,
        buffers: 200,
        window: (Instant::ZERO, Instant::NEVER),
        links: vec![LinkSpec {
            name: "up".into(),
            rate,
            delay: Duration::from_millis(delay),
            queue,
            meters: Vec::new(),
            medium: Medium::default(),
        }],
        wires: Vec::new(),
        meters: vec![MeterSpec { name: "gold".into(), params: gold, rate: "1Gbps".parse().unwrap() }],
        controls: Vec::new(),
        streams: vec![
            stream("gold", of_gold, Coloring::Fixed(Color::Green, GREEN), vec![Hop::Meter(0), Hop::Link(0)]),
            stream("rest", Selector::default(), Coloring::Trust, vec![Hop::Link(0)]),
        ],
    }
}

/// What left, by sender and number, and when; and how much was lost.
#[derive(Default)]
struct Far {
    left: Vec<(u8, u16, Instant)>,
    lost: usize,
}

impl Sink for Far {
    fn deliver(&mut self, device: usize, _: &Head, packet: &[u8], due: Instant) {
        assert_eq!(device, 1);
        let number = u16::from_be_bytes([packet[28], packet[29]]);
        self.left.push((packet[15], number, due));
    }
    fn lose(&mut self, _: &Lost<'_>, _: Instant) {
        self.lost += 1;
    }
}

fn send(plane: &mut Plane, far: &mut Far, sender: u8, number: u16, now: Instant) {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, sender], [10, 1, 0, 1], 64).udp(1, 2);
    let mut payload = [0; 972];
    payload[..2].copy_from_slice(&number.to_be_bytes());
    builder.write(&mut packet, &payload).unwrap();
    let (slot, _, room) = plane.room().unwrap();
    room[..packet.len()].copy_from_slice(&packet);
    plane.arrive(0, slot, packet.len(), now, far);
    plane.balance().unwrap();
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn a_full_queue_is_served_out_before_its_successor_and_nothing_is_lost() {
    let mut plane = Plane::new(spec("8Mbps", 5, fifo(60), "1Mbps"), 1);
    let mut far = Far::default();
    (0..60).for_each(|number| send(&mut plane, &mut far, 2, number, at(0)));
    assert_eq!(plane.inside(), 60);
    // One on the link; the rest waits: more than the new queue could hold.
    let changed = plane.reload(spec("16Mbps", 1, fifo(30), "1Mbps"), 1).unwrap();
    assert_eq!((changed.queues, changed.meters), (vec!["up".to_owned()], vec![]));
    plane.balance().unwrap();
    (60..90).for_each(|number| send(&mut plane, &mut far, 2, number, at(1)));
    let totals = plane.link_totals().next().unwrap();
    assert_eq!((totals.left_over, totals.classes[0].waiting), (58, [0, 88, 0]));
    send(&mut plane, &mut far, 2, 999, at(1)); // one too many for the new queue
    plane.advance(at(1000), &mut far);
    plane.balance().unwrap();
    assert_eq!((far.left.len(), far.lost, plane.inside()), (90, 1, 0));
    assert!(far.left.iter().map(|&(_, number, _)| number).eq(0..90), "in order");
    // The first was under way at 8 Mbit/s with 5 ms to go; the second began at 1 ms, at the new rate.
    let due: Vec<u64> = far.left.iter().map(|&(_, _, due)| due.as_nanos() / 1000).collect();
    assert_eq!(due[..3], [6000, 6000, 6000], "a shorter delay lets none overtake another");
    assert_eq!(due[89], 1000 + 89 * 500 + 1000);
    let totals = plane.link_totals().next().unwrap();
    let counters = &totals.classes[0].counters;
    assert_eq!((counters.arrived, counters.sent, totals.left_over), ([0, 91, 0], [0, 90, 0], 0));
}

#[test]
fn what_is_unchanged_keeps_its_state() {
    let mut plane = Plane::new(spec("8Mbps", 5, fifo(60), "1Mbps"), 1);
    let mut far = Far::default();
    (0..30).for_each(|number| send(&mut plane, &mut far, 1, number, at(0)));
    let marked = |plane: &Plane| plane.streams().find(|(name, _)| *name == "gold").unwrap().1.marked;
    assert_eq!(marked(&plane), [20, 10, 0], "the bucket holds 20 packets");
    assert_eq!(
        plane.reload(spec("8Mbps", 5, fifo(60), "1Mbps"), 1).unwrap(),
        perhop_live::Changed::default()
    );
    send(&mut plane, &mut far, 1, 30, at(0));
    assert_eq!(marked(&plane), [20, 11, 0], "and is as empty as before");
    let changed = plane.reload(spec("8Mbps", 5, fifo(60), "2Mbps"), 1).unwrap();
    assert_eq!((changed.queues, changed.meters), (vec![], vec!["gold".to_owned()]));
    send(&mut plane, &mut far, 1, 31, at(0));
    assert_eq!(marked(&plane), [21, 11, 0], "a new profile has a full bucket");
    plane.advance(at(1000), &mut far);
    assert_eq!(plane.streams().next().unwrap().1.delivered.packets, 32);
}

#[test]
fn what_cannot_change_is_refused_and_changes_nothing() {
    let mut plane = Plane::new(spec("8Mbps", 5, fifo(60), "1Mbps"), 1);
    let other = |change: &dyn Fn(&mut PlaneSpec)| {
        let mut spec = spec("1Mbps", 5, fifo(6), "1Mbps");
        change(&mut spec);
        spec
    };
    assert_eq!(plane.reload(other(&|spec| spec.devices = 3), 1), Err(Fixed::Devices));
    assert_eq!(plane.reload(other(&|spec| spec.mtu = 9000), 1), Err(Fixed::Mtu));
    let loss = Probability::new(0.1).ok();
    let lossy = |spec: &mut PlaneSpec| spec.links[0].medium.loss = loss;
    assert_eq!(plane.reload(other(&lossy), 1), Err(Fixed::Media));
    assert_eq!(
        plane.reload(other(&|spec| spec.streams[0].route.push(Hop::Data(0, 0))), 1),
        Err(Fixed::Controls)
    );
    assert_eq!(plane.link_totals().next().unwrap().rate, "8Mbps".parse().unwrap());
}

/// The configurations between which the next test goes to and fro.
fn configuration(number: usize) -> PlaneSpec {
    match number {
        0 => spec("8Mbps", 5, fifo(60), "1Mbps"),
        1 => spec("4Mbps", 0, fifo(20), "2Mbps"),
        2 => spec("8Mbps", 1, two_queues(), "1Mbps"),
        _ => PlaneSpec { links: Vec::new(), streams: unqueued(), ..spec("8Mbps", 5, fifo(60), "1Mbps") },
    }
}

fn unqueued() -> Vec<StreamSpec> {
    let streams = spec("8Mbps", 5, fifo(60), "1Mbps").streams;
    streams.into_iter().map(|stream| StreamSpec { route: Vec::new(), ..stream }).collect()
}

proptest! {
    /// Between configurations with a queue also the order of each sender's packets holds, whatever happens
    /// when; without one, packets need no time, and overtake those that still wait.
    #[test]
    fn whatever_is_loaded_when_packets_are_conserved(
        steps in proptest::collection::vec((0_usize..8, 1_u8..3, 0_u64..8), 1..120)
    ) {
        let mut plane = Plane::new(configuration(0), 1);
        let (mut far, mut now, mut sent, mut queued) = (Far::default(), 0, 0, true);
        for (what, sender, later) in steps {
            now += later;
            if what < 4 {
                plane.reload(configuration(what), 1).unwrap();
                queued &= what != 3;
                plane.balance().unwrap();
            }
            for _ in 0..what {
                if plane.inside() < 200 {
                    send(&mut plane, &mut far, sender, sent, at(now));
                    sent += 1;
                }
            }
        }
        plane.advance(at(now + 10_000), &mut far);
        plane.balance().unwrap();
        prop_assert_eq!(far.left.len() + far.lost, usize::from(sent));
        prop_assert_eq!(plane.inside(), 0);
        for sender in 1..3 {
            let colored = |&&(from, ..): &&(u8, u16, Instant)| from == sender;
            let order: Vec<u16> = far.left.iter().filter(colored).map(|&(_, number, _)| number).collect();
            // Two queues tell the first sender's packets apart by color, and may well send one before
            // another.
            prop_assert!(!queued || sender == 1 || order.is_sorted(), "{order:?}");
        }
        let totals: u64 = plane.link_totals().map(|link| link.classes.iter().map(|class| {
            class.counters.arrived.iter().sum::<u64>()
        }).sum::<u64>()).sum();
        prop_assert!(totals <= u64::from(sent));
        if queued {
            prop_assert_eq!(totals, u64::from(sent));
        }
    }
}

//! For any input, a data plane conserves packets and allocates no memory per packet.

use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Duration, FlowId, Instant, Rng};
use perhop_live::{Coloring, Hop, MeterSpec, Plane, PlaneSpec, StreamFlow, StreamSpec, WireSpec};
use proptest::prelude::*;

use crate::allocations::allocations;
#[cfg(target_os = "linux")]
use crate::fake;
use crate::parameters::{AQMS, METERS, SCHEDULERS};
use crate::script::{self, Checked, Choices, DEVICES};
use crate::seeds;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_plane_survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        script::live_through(&bytes);
    }

    #[test]
    fn any_reload_survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        script::reload_through(&bytes);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_run_loop_survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        fake::run(&bytes);
    }
}

#[test]
fn the_seeds_of_the_fuzz_targets_hold() {
    assert!(seeds::replay("parse", script::read_and_mark) > 0);
    assert!(seeds::replay("frame", script::take_apart) > 0);
    assert!(seeds::replay("plane", |bytes| _ = script::live_through(bytes)) > 0);
    assert!(seeds::replay("reload", |bytes| _ = script::reload_through(bytes)) > 0);
    #[cfg(target_os = "linux")]
    assert!(seeds::replay("run_loop", fake::run) > 0);
}

#[test]
fn most_configurations_come_into_force_and_some_are_refused() {
    let mut rng = Rng::stream(3, "bytes");
    let (mut done, mut refused) = (0, 0);
    for _ in 0..100 {
        let bytes: Vec<u8> = (0..4000).map(|_| rng.up_to(255) as u8).collect();
        let reloads = script::reload_through(&bytes);
        (done, refused) = (done + reloads.done, refused + reloads.refused);
    }
    assert!(done > 3 * refused && refused > 50, "{done} done, {refused} refused");
}

#[test]
fn most_of_what_the_tests_send_is_valid_and_some_is_not() {
    let mut rng = Rng::stream(1, "bytes");
    let (mut delivered, mut lost) = (0, 0);
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..4000).map(|_| rng.up_to(255) as u8).collect();
        let Checked { delivered: out, lost: gone, .. } = script::live_through(&bytes);
        (delivered, lost) = (delivered + out, lost + gone);
    }
    assert!(delivered > 5000 && lost > 5000, "{delivered} delivered, {lost} lost");
}

#[test]
fn no_packet_is_allocated_for() {
    let mut rng = Rng::stream(2, "packets");
    let packets: Vec<Vec<u8>> = (0..300)
        .map(|_| {
            let bytes: Vec<u8> = (0..80).map(|_| rng.up_to(255) as u8).collect();
            let mut packet = Vec::new();
            script::packet(&mut Choices::new(&bytes), &mut packet);
            packet
        })
        .collect();
    let queues = AQMS.iter().map(|&row| (row, script::aqm(row)));
    let queues = queues.chain(SCHEDULERS.iter().map(|&row| (row, script::scheduler(row))));
    for ((name, table), queue) in queues {
        let mut plane = Plane::new(one_way(&queue), 1);
        let (mut sink, mut now) = (Checked::default(), Instant::ZERO);
        let mut burst = || {
            for (number, packet) in packets.iter().enumerate() {
                script::offer(&mut plane, number % DEVICES, packet, now, &mut sink);
                now += Duration::from_nanos(number as u64 % 7 * 200_000);
                plane.advance(now, &mut sink);
                plane.balance().unwrap();
            }
        };
        (0..6).for_each(|_| burst()); // until its rings have the room they need
        assert_eq!(allocations(burst), 0, "{name} {table}");
        assert!(sink.delivered + sink.lost > 1000, "{name} {table}");
    }
}

/// All packets pass every meter, a wire, and two links under this queue.
fn one_way(queue: &SchedulerParams) -> PlaneSpec {
    let rate = |text: &str| text.parse::<Bitrate>().unwrap();
    let link = |name, rate| script::link(name, rate, Duration::from_millis(1), queue.clone());
    let meter = |&row: &(&str, &str)| MeterSpec {
        name: row.0.into(),
        params: script::meter(row),
        rate: rate("10Mbps"),
    };
    let meters: Vec<MeterSpec> = METERS.iter().map(meter).collect();
    let route = (0..meters.len()).map(Hop::Meter).chain([Hop::Wire(0), Hop::Link(0), Hop::Link(1)]);
    let route: Vec<Hop> = route.collect();
    let stream = |device: usize| StreamSpec {
        flow: if device == 0 { FlowId(0).into() } else { StreamFlow::FiveTuples },
        coloring: Coloring::Trust,
        label: device as u32,
        ..script::across(device, route.clone())
    };
    PlaneSpec {
        reports: Vec::new(),
        devices: DEVICES,
        mtu: 1500,
        buffers: 48,
        window: (Instant::ZERO, Instant::from_nanos(1_000_000_000)),
        links: vec![link("first", "8Mbps"), link("second", "3Mbps")],
        wires: vec![WireSpec {
            rate: Some(rate("100Mbps")),
            delay: Duration::from_millis(2),
            dispatch: None,
        }],
        meters,
        controls: vec![],
        streams: (0..DEVICES).map(stream).collect(),
    }
}

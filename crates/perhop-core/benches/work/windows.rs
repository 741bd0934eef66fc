//! What TWAM and dynamic WRED do besides the work for a packet: once an interval, and where the ingress
//! watches the path.

use std::hint::black_box;

use perhop_core::aqm::{AnyAqm, Aqm};
use perhop_core::control::{Message, Steering, WindowControl};
use perhop_core::meter::{AnyMeter, Meter};
use perhop_core::testing::environment;
use perhop_core::{Bitrate, Instant, Rng};

use super::{HALF, Row, Size, aqm_of, meter_of};
use crate::allocations::held;

/// Flows of a path in Bouras & Sevasti's network, and twice as many; the difference is what a flow costs.
const FLOWS: [usize; 2] = [10, 20];
/// Paths in one queue, likewise: the state of a path is kept in a list whose room doubles, and is full with
/// these.
const PATHS: [u32; 2] = [1, 16];
/// How long after a packet its acknowledgement passes the ingress.
const ROUND_TRIP: u32 = 15;

/// The rows, with the state of the path or the queue that they work on.
pub fn rows() -> Vec<Row> {
    let intervals = FLOWS.map(|flows| {
        let (steering, heap) = held(|| steering(flows, r#"{"interval": "200ms"}"#));
        let row = Row::of("path", &format!("interval of {flows} flows"), interval(steering, flows));
        Row { state: Some(size_of::<Steering>() + heap), ..row }
    });
    let updates = PATHS.map(|paths| {
        let (mut aqm, heap) = held(|| heard_of(paths));
        let state = aqm.accept(Size) + heap;
        Row {
            state: Some(state),
            ..Row::of("dwred", &format!("update of {paths} paths"), update(aqm, paths))
        }
    });
    let nothing = Row::of("path", "nothing", watch(|_, _, _| ()));
    let watched = Row::of("path", "watched packet", watch(ingress()));
    intervals.into_iter().chain([nothing, watched]).chain(updates).collect()
}

fn steering(flows: usize, spec: &str) -> Steering {
    let spec: WindowControl = serde_json::from_str(spec).expect("valid");
    let rate: Bitrate = "4Mbps".parse().expect("a rate");
    Steering::new(spec, 1, (0..flows).map(|flow| (flow, Some(rate))), Rng::stream(1, "bench"))
}

/// Reads the windows, which differ from flow to flow and from interval to interval, computes equation 3, and
/// sends them to the markers.
fn interval(mut steering: Steering, flows: usize) -> impl FnMut() {
    let mut meters: Vec<AnyMeter> = (0..flows).map(|_| meter_of("twam", HALF)).collect();
    let windows = [7, 3].map(|step| (0..flows).map(|flow| (10 + step * flow) as f64).collect::<Vec<_>>());
    let mut now = 0;
    move || {
        now += 1;
        let windows = &windows[now % 2];
        let decision =
            steering.sample(Instant::from_nanos(now as u64 * 200_000_000), |flow| Some(windows[flow]));
        for (flow, message) in &decision.shares {
            meters[*flow].on_message(message);
        }
        black_box((&meters, decision.windows));
    }
}

/// A segment of each flow in turns, and the acknowledgement of an earlier one.
fn watch(mut see: impl FnMut(usize, u32, Instant)) -> impl FnMut() {
    let (mut flow, mut sequence, mut now) = (0, 0, 0);
    move || {
        flow += 1;
        if flow == FLOWS[0] {
            (flow, sequence) = (0, sequence + 1);
        }
        now += 1_000_000;
        see(black_box(flow), black_box(sequence), Instant::from_nanos(now));
    }
}

/// What an ingress notes of them that measures the round trip.
fn ingress() -> impl FnMut(usize, u32, Instant) {
    let mut steering = steering(FLOWS[0], r#"{"interval": "measured"}"#);
    move |flow, sequence, now| {
        steering.on_data(flow, sequence, now);
        if let Some(expected) = sequence.checked_sub(ROUND_TRIP) {
            steering.on_ack(flow, expected, now);
        }
    }
}

/// Dynamic WRED in a queue that has heard of these paths.
fn heard_of(paths: u32) -> AnyAqm {
    let mut aqm = aqm_of("dwred").build(environment());
    (0..paths).for_each(|path| aqm.on_message(&Message::Windows { path, number: 0, packets: 150.0 }));
    aqm
}

/// A message to it from each path in turns.
fn update(mut aqm: AnyAqm, paths: u32) -> impl FnMut() {
    let (mut path, mut number) = (0, 0);
    move || {
        number += 1;
        path = if path + 1 == paths { 0 } else { path + 1 };
        let message = Message::Windows { path, number, packets: (100 + number % 64) as f64 };
        aqm.on_message(black_box(&message));
        black_box(&aqm);
    }
}

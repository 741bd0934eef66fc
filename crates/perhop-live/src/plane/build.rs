//! A data plane from its description.

use std::sync::Arc;

use perhop_core::Instant;

use super::Plane;
use super::agenda::Agenda;
use super::control::Control;
use super::line::Wire;
use super::link::Link;
use super::report::{self, Reports};
use super::route::{RouteEntry, shortest_last_delay};
use super::stream::{Metering, Stream};
use crate::buffers::Buffers;
use crate::classifier::{Classifier, Selector};
use crate::counts::{PlaneCounters, StreamCounts};
use crate::fragments::Fragments;
use crate::spec::{Hop, PlaneSpec, ReportSpec, StreamSpec, WireSpec};
use crate::windows::Windows;

impl Plane {
    /// Makes an empty data plane at time zero. Its blocks have the same random streams as in the simulator.
    pub fn new(spec: PlaneSpec, seed: u64) -> Self {
        let PlaneSpec {
            devices,
            mtu,
            buffers,
            window,
            links,
            mut wires,
            meters,
            controls,
            mut streams,
            reports,
        } = spec;
        let own = streams.len();
        let reports = add_reports(&reports, &mut streams, &mut wires);
        let Routing { mut streams, routes, selectors } = Routing::new(streams, own, devices);
        for (number, reports) in reports {
            streams[number].reports = Some(reports);
        }
        let flows = streams.iter().map(Stream::flows).max().unwrap_or(0);
        let mut channels = Vec::new();
        let controls: Vec<Control> =
            controls.into_iter().map(|spec| Control::new(spec, seed, &mut channels)).collect();
        let grace = shortest_last_delay(&routes, |hop| match hop {
            Hop::Wire(number) => Some(wires[number].delay),
            Hop::Link(number) => Some(links[number].medium.least_delay(links[number].delay)),
            Hop::Meter(_) | Hop::Data(..) | Hop::Ack(..) => None,
        });
        let mut plane = Self {
            now: Instant::ZERO,
            mtu: usize::from(mtu),
            buffers: Buffers::new(buffers, usize::from(mtu)),
            fragments: (0..devices).map(|_| Fragments::new()).collect(),
            classifiers: selectors.into_iter().map(Classifier::new).collect(),
            links: links.into_iter().map(|spec| Link::new(spec, seed, window)).collect(),
            wires: wires.into_iter().map(|spec| Wire::new(spec, seed)).collect(),
            meters: meters.into_iter().map(|spec| Metering::new(spec, seed)).collect(),
            controls,
            channels,
            streams,
            routes,
            agenda: Agenda::new(grace),
            counters: PlaneCounters::new(devices),
            windows: Arc::new(Windows::new(flows)),
        };
        for number in 0..plane.controls.len() {
            plane.schedule_sample(number);
        }
        for number in 0..plane.links.len() {
            plane.schedule_change(number);
        }
        plane
    }
}

/// Adds a stream and a wire for each report, at the end; returns them by the numbers of the streams that they
/// are about.
fn add_reports(
    specs: &[ReportSpec],
    streams: &mut Vec<StreamSpec>,
    wires: &mut Vec<WireSpec>,
) -> Vec<(usize, Reports)> {
    let mut all = Vec::new();
    for spec in specs {
        let stream = report::stream_of(&streams[spec.stream], spec, wires.len());
        all.push((spec.stream, Reports::new(spec, streams.len() as u32)));
        wires.push(report::wire_of(spec.delay));
        streams.push(stream);
    }
    all
}

/// All streams, their routes one after another, and which stream takes which packets of each device.
struct Routing {
    streams: Vec<Stream>,
    routes: Vec<RouteEntry>,
    selectors: Vec<Vec<(Selector, u32)>>,
}

impl Routing {
    /// The first `own` streams take packets that come.
    fn new(specs: Vec<StreamSpec>, own: usize, devices: usize) -> Self {
        let mut routes = Vec::new();
        let mut selectors = vec![Vec::new(); devices];
        let mut streams = Vec::with_capacity(specs.len());
        for (number, spec) in specs.into_iter().enumerate() {
            let first_step = routes.len() as u32;
            routes.extend(spec.route.iter().copied().map(RouteEntry::Hop));
            routes.push(RouteEntry::Leave(spec.leaves));
            if number < own {
                selectors[spec.device].push((spec.selector.clone(), number as u32));
            }
            streams.push(Stream::new(spec, first_step, StreamCounts::default()));
        }
        Self { streams, routes, selectors }
    }
}

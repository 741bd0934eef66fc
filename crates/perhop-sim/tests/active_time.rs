//! Rates over the active time of flows, and the use of links over the integral of their rate, computed again
//! from the packets that an observer sees.

use std::sync::{Arc, Mutex};

use perhop_core::medium::{Change, Medium, Outage};
use perhop_core::{Bytes, Duration, Instant};
use perhop_sim::observer::{Observation, Observed, Observer, PacketEvent};
use perhop_sim::{Engine, FlowSpec, Network, Simulation, Watch};
use proptest::prelude::*;

use crate::common::{aqm, duplex, every_transport, flow, udp};
use crate::engine::assert_same;

/// A packet takes a whole number of nanoseconds at each rate of these tests.
const BITS: u64 = 8000;
const DELAY: u64 = 10_000_000;

#[derive(Default)]
struct Departures(Vec<(u64, u32)>);

impl Observer for Departures {
    fn observe(&mut self, observed: &Observed) {
        if matches!(observed.event, PacketEvent::Departure { .. }) {
            self.0.push((observed.at.as_nanos(), observed.flow.spec));
        }
    }
}

/// A source of packets of 1000 bytes: its rate in kbit/s, when it begins and stops, and its packets.
type Source = (u64, u64, Option<u64>, Option<u64>);

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn network(sources: &[Source], medium: Medium, (warmup, end): (u64, u64)) -> Network {
    let flows = sources.iter().enumerate().map(|(number, &(kbps, start, stop, packets))| {
        let table = format!(r#"{{"udp": "cbr", "rate": "{kbps}kbps", "packet": "1000B", "jitter": 0.0}}"#);
        FlowSpec {
            access: None,
            egress: None,
            start: (at(start), at(start)),
            stop: stop.map(at),
            volume: packets.map(|packets| Bytes::new(1000 * packets)),
            ..flow(format!("{number}"), 0, 1, udp(&table), None)
        }
    });
    let mut links = duplex("there", 0, 1, "4Mbps", "10ms", aqm("drop-tail", r#"{"limit": "20p"}"#));
    links[0].medium = medium;
    Network {
        nodes: 2,
        links: links.into(),
        flows: flows.collect(),
        warmup: Duration::from_nanos(warmup),
        ..Network::new(Duration::from_nanos(end))
    }
}

/// The rate at a time, in bit/s, and whether there is an outage.
fn rate_at(medium: &Medium, now: u64) -> (u64, bool) {
    let changes = medium.changes.iter().filter(|change| change.at.as_nanos() <= now);
    let rate =
        changes.filter_map(|change| change.rate).next_back().map_or(4_000_000, perhop_core::Bitrate::as_bps);
    let is_down = medium.outages.iter().any(|of| of.from.as_nanos() <= now && now < of.to.as_nanos());
    (rate, is_down)
}

/// What the link can send between two times, in 10⁻⁹ bit: nothing in outages.
fn capacity(medium: &Medium, from: u64, to: u64) -> u128 {
    let mut times = vec![from, to];
    times.extend(medium.changes.iter().map(|change| change.at.as_nanos()));
    times.extend(medium.outages.iter().flat_map(|of| [of.from.as_nanos(), of.to.as_nanos()]));
    times.retain(|time| (from..=to).contains(time));
    times.sort_unstable();
    let spans = times.windows(2).map(|span| match rate_at(medium, span[0]) {
        (_, true) => 0,
        (rate, false) => u128::from(rate) * u128::from(span[1] - span[0]),
    });
    spans.sum()
}

/// The active time and the bytes delivered in it.
fn by_hand(source: Source, arrivals: &[u64], (warmup, end): (u64, u64)) -> (u64, u64) {
    let (kbps, start, stop, packets) = source;
    let last = arrivals.iter().copied().filter(|&at| at <= end).max().unwrap_or(0);
    let came = arrivals.iter().filter(|&&at| at <= end).count() as u64;
    let gap = BITS * 1_000_000 / kbps;
    let exhausted = packets.map(|packets| start + (packets - 1) * gap);
    let sent = exhausted.into_iter().filter(|&at| stop.is_none_or(|stop| at < stop)).chain(stop).min();
    let until = match sent {
        _ if packets == Some(came) => last,
        Some(sent) if sent <= end => sent.max(last),
        _ => end,
    };
    let delivered = arrivals.iter().filter(|&&at| at > warmup && at <= end).count() as u64 * 1000;
    (until.min(end).saturating_sub(start.max(warmup)), delivered)
}

fn sources() -> impl Strategy<Value = Vec<Source>> {
    let rate = prop::sample::select(vec![500_u64, 1000, 2000]);
    let source = (rate, 0_u64..1200, prop::option::of(1_u64..1200), prop::option::of(1_u64..150));
    prop::collection::vec(source, 1..6).prop_map(|sources| {
        let offset = |number: usize, millis: u64| millis * 1_000_000 + 37_000 * (number as u64 + 1);
        let numbered = sources.into_iter().enumerate();
        numbered
            .map(|(number, (kbps, start, lasts, packets))| {
                let stop = lasts.map(|lasts| offset(number, start + lasts) + 1);
                (kbps, offset(number, start), stop, packets)
            })
            .collect()
    })
}

fn media() -> impl Strategy<Value = Medium> {
    let change = (0_u64..1000, prop::sample::select(vec!["1Mbps", "2Mbps", "4Mbps", "8Mbps"]));
    let outage = prop::option::of((0_u64..800, 1_u64..300));
    (prop::collection::vec(change, 0..4), outage).prop_map(|(mut changes, outage)| {
        changes.sort_unstable();
        changes.dedup_by_key(|&mut (at, _)| at);
        let change = |(at, rate): (u64, &str)| Change {
            at: Duration::from_millis(at),
            rate: Some(rate.parse().unwrap()),
            delay: None,
        };
        let outage = outage.map(|(from, lasts)| Outage {
            from: Duration::from_millis(from),
            to: Duration::from_millis(from + lasts),
        });
        Medium {
            changes: changes.into_iter().map(change).collect(),
            outages: outage.into_iter().collect(),
            ..Medium::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn rates_and_use_are_those_of_the_packets(
        sources in sources(),
        medium in media(),
        warmup in 0_u64..600,
    ) {
        // No packet comes exactly at the end of the warm-up or of the run.
        let window = (warmup * 1_000_000 + if warmup > 0 { 500_003 } else { 0 }, 1_000_500_003);
        let network = network(&sources, medium.clone(), window);
        let seen = Arc::new(Mutex::new(Departures::default()));
        let observation = Observation::new(seen.clone(), vec![0]);
        let outcome = Simulation::run_observed(&network, 1, &Watch::default(), observation).unwrap();
        let batched = Simulation::run(&network, 1, Some(Engine::Batched), &Watch::default()).unwrap();
        assert_same(&batched, &outcome);
        let departures = std::mem::take(&mut seen.lock().unwrap().0);
        for (number, (&source, flow)) in sources.iter().zip(&outcome.flows).enumerate() {
            let own = departures.iter().filter(|&&(_, spec)| spec == number as u32);
            let arrivals: Vec<u64> = own
                .map(|&(at, _)| at + BITS * 1_000_000_000 / rate_at(&medium, at).0 + DELAY)
                .collect();
            let (active, delivered) = by_hand(source, &arrivals, window);
            prop_assert_eq!(flow.active, Some(Duration::from_nanos(active)), "flow {}", number);
            prop_assert_eq!(flow.delivered_bytes, delivered);
            // Without changes, a packet takes 2 ms on the link.
            let can_arrive = window.1.saturating_sub(source.1) >= 2_000_000 + DELAY;
            let has_rate = active > 0 && (delivered > 0 || can_arrive);
            let rate = has_rate.then(|| delivered as f64 * 8.0 / (active as f64 / 1e9));
            prop_assert_eq!(flow.throughput().is_some(), rate.is_some());
            if let (Some(found), Some(rate)) = (flow.throughput(), rate) {
                prop_assert!((found - rate).abs() <= 1e-9 * rate, "{} {}", found, rate);
            }
        }
        let all = capacity(&medium, window.0, window.1);
        let link = &outcome.links[0];
        let mean = all as f64 / (window.1 - window.0) as f64;
        prop_assert!((link.mean_rate_bps - mean).abs() <= 1e-9 * mean);
        let within: Vec<u64> =
            departures.iter().map(|&(at, _)| at).filter(|at| (window.0..window.1).contains(at)).collect();
        let left = within.last().map_or(0, |&last| {
            u128::from(BITS * 1_000_000_000).saturating_sub(capacity(&medium, last, window.1))
        });
        let sent = within.len() as u128 * u128::from(BITS * 1_000_000_000) - left;
        let used = if all == 0 { 0.0 } else { sent as f64 / all as f64 };
        prop_assert!((link.utilization - used).abs() <= 1e-12, "{} {}", link.utilization, used);
    }
}

#[test]
fn flows_that_would_begin_when_they_have_stopped_never_do() {
    for engine in [Engine::Batched, Engine::Reference] {
        let mut network = every_transport(aqm("drop-tail", r#"{"limit": "99p"}"#), 5);
        for flow in &mut network.flows {
            (flow.start, flow.stop) = ((at(3_000_000_000), at(3_000_000_000)), Some(at(2_000_000_000)));
        }
        let outcome = Simulation::run(&network, 1, Some(engine), &Watch::default()).unwrap();
        for flow in &outcome.flows {
            assert_eq!((flow.started, flow.delivered_packets), (None, 0));
        }
    }
}

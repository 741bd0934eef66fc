//! Runs that one steps through: a step changes nothing, a snapshot goes on by itself, and a change acts from
//! its time on.

use crate::common::{aqm, duplex, every_transport, flow, run, scheduler, tcp, udp};
use crate::engine::any_queue;
use crate::ordinary;
use crate::threads::transports;
use perhop_core::aqm::AqmParams;
use perhop_core::medium::Change;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Duration, Instant, Reason};
use perhop_sim::{Engine, EngineUsed, FlowSpec, Network, Outcome, Refused, Stepping, TransportSpec, Unseen};
use proptest::prelude::*;

fn seconds(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9) as u64)
}

/// Everything that a run computes; of the batched engine without the number of events, which is what it cost:
/// how often it looked at a flow depends on where its batches end.
fn text(outcome: &Outcome) -> String {
    let mut outcome = outcome.clone();
    if outcome.engine == Some(EngineUsed::Batched) {
        outcome.events = 0;
    }
    format!("{outcome:?}")
}

/// Two routers with this queue between them, for the transports that the engines tell apart.
fn network(queue: &SchedulerParams) -> Network {
    let flows = transports().into_iter().enumerate();
    let flows: Vec<FlowSpec> =
        flows.map(|(n, transport)| flow(format!("{n}"), 0, 1, transport, None)).collect();
    Network {
        nodes: 2,
        links: duplex("there", 0, 1, "3Mbps", "7ms", queue.clone()).into(),
        flows,
        probe_interval: Some(Duration::from_millis(130)),
        warmup: Duration::from_millis(700),
        ..Network::new(Duration::from_secs(3))
    }
}

/// Every row of ordinary parameters as a queue.
pub(crate) fn every_queue() -> Vec<SchedulerParams> {
    let read = |tag: &str, (name, table): (&str, &str)| {
        let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
        table[tag] = ordinary::block(name).into();
        table
    };
    let aqms = ordinary::AQMS.iter().map(|&row| read("aqm", row));
    let aqms = aqms.map(|table| serde_json::from_value::<AqmParams>(table).unwrap().into());
    let schedulers = ordinary::SCHEDULERS.iter().map(|&row| read("scheduler", row));
    aqms.chain(schedulers.map(|table| serde_json::from_value(table).unwrap())).collect()
}

/// Reads all that can be read.
fn read_all(run: &mut Stepping) {
    let now = run.now();
    for link in 0..run.network().links.len() {
        if let Some(view) = run.link(link) {
            assert!(!view.classes.is_empty(), "at {now:?}");
        }
    }
    for number in 0..run.network().flows.len() {
        if let Ok(flow) = run.flow(number) {
            assert!(flow.delivered_packets <= flow.sent, "at {now:?}: {flow:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any queue that both engines run, every transport, random stops, some at one time: the same bytes.
    #[test]
    fn stops_change_nothing(
        seed: u64,
        queue in any_queue(),
        mut stops in prop::collection::vec(0_u64..3_200_000_000, 0..40),
        in_order: bool,
        engine in prop::sample::select(&Engine::ALL),
    ) {
        let network = network(&queue);
        let mut unbroken = perhop_sim::Simulation::on_engine(&network, seed, engine).unwrap();
        unbroken.run_to_end();
        let unbroken = text(&unbroken.finish().unwrap());
        if in_order {
            stops.sort_unstable();
        }
        let mut run = Stepping::new(&network, seed, engine).unwrap();
        for stop in stops {
            let before = run.now();
            run.run_until(Instant::from_nanos(stop));
            prop_assert_eq!(run.now(), before.max(Instant::from_nanos(stop)).min(run.end()));
            read_all(&mut run);
        }
        prop_assert_eq!(text(&run.finish().unwrap()), unbroken);
    }
}

#[test]
fn a_snapshot_goes_on_as_the_run_did_under_every_queue_and_transport() {
    let queues = every_queue();
    assert!(queues.len() > 20);
    for queue in queues {
        for engine in Engine::ALL {
            let network = Network { warmup: Duration::ZERO, ..network(&queue) };
            let Ok(mut run) = Stepping::new(&network, 5, engine) else {
                assert_eq!(engine, Engine::Batched, "the reference engine runs everything");
                continue;
            };
            run.run_until(seconds(1.234));
            let (snapshot, mut other) = (run.clone(), run.clone());
            run.run_until(seconds(2.5));
            let later = run.finish().unwrap();
            assert!(later.flows.iter().all(|flow| flow.sender.sent > 0), "every transport sends");
            // The run has gone on meanwhile; the snapshot has not.
            assert_eq!(snapshot.now(), seconds(1.234));
            assert_eq!(text(&snapshot.finish().unwrap()), text(&later), "{queue:?}");
            other.run_until(seconds(1.235));
            assert_eq!(text(&other.finish().unwrap()), text(&later), "{queue:?}");
        }
    }
}

#[test]
fn counters_by_hand() {
    // 1000 bytes at 1 Mbit/s: a packet each 8 ms from time zero on, one more on its way. A packet takes 8 ms
    // to be sent at the link of 1 Mbit/s and 2 ms to reach the other side: after 80.5 ms eleven were sent and
    // nine arrived (the ninth at 74 ms).
    let mut run = Stepping::new(&one_source("1Mbps", "1Mbps"), 1, Engine::Reference).unwrap();
    run.run_until(Instant::from_nanos(80_500_000));
    let state = run.flow(0).unwrap();
    assert_eq!((state.sent, state.delivered_packets, state.delivered_bytes), (11, 9, 9000));
    assert_eq!(state.last_transit, Some(Duration::from_millis(10)));
    assert_eq!((state.window, state.smoothed_rtt_s), (None, None));
    let view = run.link(0).unwrap();
    let (_, class) = view.classes[0];
    assert_eq!((class.through.arrived, class.through.sent), ([0, 11, 0], [0, 11, 0]));
    assert!(class.occupancy.is_empty(), "the packet in transmission no longer waits");
    assert!(run.link(1).is_none(), "the way back has no queue");
    assert_eq!(run.flow(1), Err(Unseen::NoFlow));
}

/// A source over UDP of packets of 1000 bytes without jitter, and a link.
fn one_source(rate: &str, link: &str) -> Network {
    let udp = udp(&format!(r#"{{"udp": "cbr", "rate": "{rate}", "packet": "1000B", "jitter": 0}}"#));
    let mut source = flow("a".into(), 0, 1, udp, None);
    (source.access, source.egress, source.start) = (None, None, (Instant::ZERO, Instant::ZERO));
    let queue = aqm("drop-tail", r#"{"limit": "5p"}"#);
    Network {
        nodes: 2,
        links: duplex("there", 0, 1, link, "2ms", queue).into(),
        flows: vec![source],
        ..Network::new(Duration::from_secs(1))
    }
}

fn with_rate(network: &Network, rate: &str) -> Network {
    let mut network = network.clone();
    let TransportSpec::Udp(udp) = &mut network.flows[0].transport else { panic!("it is over UDP") };
    udp.rate = rate.parse().unwrap();
    network
}

#[test]
fn a_source_changes_its_rate_by_hand() {
    // A packet each 8 ms at 0, 8, ... 400 ms: 51. At 404 ms the gap becomes 2 ms: 406, 408, ... 420: 8 more.
    let network = one_source("1Mbps", "10Mbps");
    let mut run = Stepping::new(&network, 1, Engine::Reference).unwrap();
    run.run_until(seconds(0.404));
    assert_eq!(run.flow(0).unwrap().sent, 51);
    run.become_network(&with_rate(&network, "4Mbps")).unwrap();
    run.run_until(seconds(0.42));
    assert_eq!(run.flow(0).unwrap().sent, 51 + 8);
    // Back: the packet of 422 ms is due; the gap after it is 8 ms: 422, 430, 438.
    run.become_network(&network).unwrap();
    run.run_until(seconds(0.44));
    assert_eq!(run.flow(0).unwrap().sent, 51 + 8 + 3);
}

#[test]
fn single_events_are_the_run() {
    let red = aqm("red", r#"{"thresholds": "5/15/0.1", "limit": "40p"}"#);
    let network = network(&red.into());
    let mut single = Stepping::new(&network, 1, Engine::Reference).unwrap();
    let (end, mut events) = (seconds(3.0), 0);
    while single.step(end) {
        events += 1;
        assert!(single.now() <= end);
    }
    assert_eq!(single.now(), end);
    assert!(!single.step(seconds(1.0)), "what is past does not come again");
    let (single, whole) = (text(&single.finish().unwrap()), text(&run(&network, Engine::Reference)));
    assert!(events > 1000 && single == whole, "after {events} events");
    let mut batched = Stepping::new(&network, 1, Engine::Batched).unwrap();
    assert!(!batched.step(seconds(0.5)), "it goes on to there");
    assert_eq!(batched.now(), seconds(0.5));
}

#[test]
fn capacity_by_hand() {
    // 4 Mbit/s for half a second and 2 Mbit/s for a quarter.
    let network = one_source("1Mbps", "4Mbps");
    let mut run = Stepping::new(&network, 1, Engine::Reference).unwrap();
    run.run_until(seconds(0.5));
    assert_eq!(run.capacity(0), Some(2e6));
    let mut slower = network.clone();
    slower.links[0].rate = "2Mbps".parse().unwrap();
    run.become_network(&slower).unwrap();
    run.run_until(seconds(0.75));
    assert_eq!(run.capacity(0), Some(2.5e6));
    assert_eq!((run.capacity(1), run.capacity(2)), (None, None), "no queue under an AQM, and no link");
}

#[test]
fn a_link_changes_as_a_scheduled_change_says() {
    let transports =
        [tcp(r#"{"tcp": "newreno"}"#), tcp(r#"{"tcp": "linux"}"#), udp(r#"{"udp": "cbr", "rate": "1Mbps"}"#)];
    let flows = transports.into_iter().enumerate();
    let red = aqm("red", r#"{"thresholds": "5/15/0.1", "limit": "40p"}"#);
    let plain = Network {
        nodes: 2,
        links: duplex("there", 0, 1, "4Mbps", "9ms", red).into(),
        flows: flows.map(|(n, transport)| flow(format!("{n}"), 0, 1, transport, None)).collect(),
        ..Network::new(Duration::from_secs(4))
    };
    let (rate, delay) = ("2Mbps".parse().unwrap(), Duration::from_millis(3));
    let mut scheduled = plain.clone();
    scheduled.links[0].medium.changes =
        vec![Change { at: Duration::from_millis(1500), rate: Some(rate), delay: Some(delay) }];
    let scheduled = run(&scheduled, Engine::Reference);
    let mut stepped = Stepping::new(&plain, 1, Engine::Reference).unwrap();
    // A scheduled change comes before what else happens at its link at that time.
    stepped.run_until(Instant::from_nanos(1_499_999_999));
    let mut changed = plain.clone();
    (changed.links[0].rate, changed.links[0].delay) = (rate, delay);
    stepped.become_network(&changed).unwrap();
    let stepped = stepped.finish().unwrap();
    assert_eq!(stepped.flows, scheduled.flows);
    assert_ne!(stepped.flows, run(&plain, Engine::Reference).flows, "it matters");
}

/// The link of the network has RED with this `max_p`.
fn with_max_p(network: &Network, max_p: &str) -> Network {
    let mut network = network.clone();
    network.links[0].queue =
        Some(aqm("red", &format!(r#"{{"thresholds": "2/20/{max_p}", "limit": "40p"}}"#)).into());
    network
}

#[test]
fn an_aqm_keeps_its_average_when_its_parameters_change() {
    let start = with_max_p(&every_transport(aqm("drop-tail", r#"{"limit": "1p"}"#), 8), "0.02");
    let mut stepped = Stepping::new(&start, 1, Engine::Reference).unwrap();
    stepped.run_until(seconds(4.0));
    let early = |run: &mut Stepping| {
        let view = run.link(0).unwrap();
        let (_, class) = view.classes[0];
        (class.through.dropped(Reason::Early).iter().sum::<u64>(), view.gauges[0].clone())
    };
    let (before, average) = early(&mut stepped);
    assert!(before > 0 && average.1 > 1.0, "{before} {average:?}");
    stepped.become_network(&with_max_p(&start, "0")).unwrap();
    assert_eq!(early(&mut stepped), (before, average));
    let mut busy = stepped.clone();
    stepped.run_until(seconds(8.0));
    assert_eq!(early(&mut stepped).0, before, "it drops nothing by chance from then on");
    busy.become_network(&with_max_p(&start, "0.9")).unwrap();
    busy.run_until(seconds(8.0));
    assert!(early(&mut busy).0 > 2 * before);
    // And back at the same time: as if nothing had been set.
    let mut restored = Stepping::new(&start, 1, Engine::Reference).unwrap();
    restored.run_until(seconds(4.0));
    restored.become_network(&with_max_p(&start, "0.9")).unwrap();
    restored.become_network(&start).unwrap();
    assert_eq!(
        text(&restored.finish().unwrap()),
        text(&{
            let mut unbroken = Stepping::new(&start, 1, Engine::Reference).unwrap();
            unbroken.run_until(seconds(1.0));
            unbroken.finish().unwrap()
        })
    );
}

#[test]
fn what_cannot_change_is_refused_and_changes_nothing() {
    let start = with_max_p(&every_transport(aqm("drop-tail", r#"{"limit": "1p"}"#), 3), "0.02");
    let mut stepped = Stepping::new(&start, 1, Engine::Reference).unwrap();
    stepped.run_until(seconds(1.0));
    let changed = |change: &dyn Fn(&mut Network)| {
        let mut network = start.clone();
        change(&mut network);
        network
    };
    let codel = changed(&|network| network.links[0].queue = Some(aqm("codel", r#"{"limit": "40p"}"#).into()));
    let bytes = changed(&|network| {
        network.links[0].queue = Some(aqm("red", r#"{"thresholds": "2kB/20kB/0.1", "limit": "40p"}"#).into());
    });
    let fq = changed(&|network| network.links[0].queue = Some(scheduler(r#"{"scheduler": "fq-codel"}"#)));
    let none = changed(&|network| network.links[0].queue = None);
    let longer = changed(&|network| network.duration = Duration::from_secs(9));
    let started = changed(&|network| network.flows[3].start.0 = seconds(0.1));
    let fewer = changed(&|network| drop(network.flows.pop()));
    for (network, told) in [
        (codel, "`codel` cannot replace another block during a run; start a run with it"),
        (bytes, "the average is in packets since the run began; write thresholds in packets"),
        (fq, "`fq-codel` cannot replace another scheduler during a run; start a run with it"),
        (none, "this cannot change during a run"),
        (longer, "this cannot change during a run; these can: a link's `rate` and `delay`"),
        (started, "this cannot change during a run"),
        (fewer, "this cannot change during a run"),
    ] {
        let refused = stepped.become_network(&network).unwrap_err();
        assert!(refused.to_string().starts_with(told), "{refused}");
    }
    let mut batched = Stepping::new(&start, 1, Engine::Batched).unwrap();
    let nearer = changed(&|network| network.links[0].delay = Duration::from_millis(1));
    assert_eq!(batched.become_network(&nearer), Err(Refused::AheadOfClock));
    assert_eq!(batched.flow(0), Err(Unseen::AheadOfClock));
    let unbroken = run(&start, Engine::Reference);
    assert_eq!(text(&stepped.finish().unwrap()), text(&unbroken));
}

#[test]
fn the_engines_agree_where_a_queue_changes_during_a_run() {
    let shaper = |rate: &str, queue: &str| {
        let text = format!(
            r#"{{"scheduler": "shaper", "rate": "{rate}", "burst": "3kB", "queue": {{"scheduler": "drr", "queues": [
                {{"name": "all", "rule": {queue}}}]}}}}"#
        );
        network(&scheduler(&text))
    };
    let red = r#"{"aqm": "red", "thresholds": "5/15/0.1", "limit": "40p"}"#;
    let codel = r#"{"aqm": "codel", "limit": "40p"}"#;
    let tight = r#"{"aqm": "codel", "limit": "7p", "target": "1ms"}"#;
    let one = with_max_p(&network(&aqm("drop-tail", r#"{"limit": "9p"}"#).into()), "0.02");
    let other = with_max_p(&one, "0.5");
    for (before, after) in [
        (one, other),
        (shaper("2Mbps", red), shaper("500kbps", red)),
        (shaper("500kbps", codel), shaper("2900kbps", tight)),
    ] {
        let outcome = |engine| {
            let mut run = Stepping::new(&before, 1, engine).unwrap();
            run.run_until(seconds(1.3));
            run.become_network(&after).unwrap();
            run.run_until(seconds(2.1));
            run.become_network(&before).unwrap();
            run.finish().unwrap()
        };
        let (reference, batched) = (outcome(Engine::Reference), outcome(Engine::Batched));
        assert_eq!(format!("{:?}", reference.flows), format!("{:?}", batched.flows));
        assert_eq!(format!("{:?}", reference.links), format!("{:?}", batched.links));
        assert_ne!(format!("{:?}", reference.links), format!("{:?}", run(&before, Engine::Reference).links));
    }
}

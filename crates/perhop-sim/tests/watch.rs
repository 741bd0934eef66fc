//! Runs that would take hours end as soon as they are asked to, whichever loop of the engine they are in;
//! without that, these tests would not come to an end.

use crate::common::{aqm, duplex, flow, rap, scheduler, table1, tcp, tfrc, udp};
use perhop_core::Duration;
use perhop_core::scheduler::SchedulerParams;
use perhop_sim::{AccessSpec, Engine, Failure, Network, Simulation, TransportSpec, Watch};

const AGES: Duration = Duration::from_secs(1_000_000);

/// One flow over one link, between hosts at 10 Gbit/s.
fn network(transport: TransportSpec, rate: &str, delay: &str, queue: impl Into<SchedulerParams>) -> Network {
    let mut flow = flow("flow".into(), 0, 1, transport, None);
    flow.access = Some(AccessSpec { rate: "10Gbps".parse().unwrap(), delay: Duration::ZERO });
    flow.egress = flow.access.clone();
    let links = duplex("link", 0, 1, rate, delay, queue).into();
    Network { nodes: 2, links, flows: vec![flow], ..Network::new(AGES) }
}

/// Starts a run, and stops it as soon as it reports progress.
fn stopped_early(network: &Network, engine: Option<Engine>) -> Result<(), Failure> {
    let watch = Watch::default();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Simulation::run(network, 1, engine, &watch).map(|_| ()));
        while watch.under_way() == 0.0 && !run.is_finished() {
            std::thread::yield_now();
        }
        assert!(watch.under_way() < 0.1, "it has hardly begun");
        watch.stop();
        run.join().unwrap()
    })
}

#[test]
fn overload_on_both_engines() {
    let cbr = || udp(r#"{"udp": "cbr", "rate": "2Gbps"}"#);
    let queues: [SchedulerParams; 2] = [
        aqm("drop-tail", r#"{"limit": "100p"}"#).into(),
        scheduler(r#"{"scheduler": "edf", "rule": {"aqm": "drop-tail", "limit": "60p"}}"#),
    ];
    for queue in queues {
        let network = network(cbr(), "1Gbps", "10ms", queue);
        for engine in Engine::ALL.map(Some) {
            assert_eq!(stopped_early(&network, engine), Err(Failure::Stopped));
        }
    }
}

#[test]
fn links_that_take_no_time_at_all() {
    let queue = || aqm("drop-tail", r#"{"limit": "100p"}"#);
    let transports = [
        tcp(r#"{"tcp": "newreno", "window": "20p"}"#),
        tcp(r#"{"tcp": "newreno", "sack": true, "window": "20p"}"#),
        rap(r#"{"rap": "aimd"}"#),
        tfrc(r#"{"tfrc": "rfc5348"}"#),
    ];
    for transport in transports {
        let network = network(transport, "1000Gbps", "0s", queue());
        assert_eq!(stopped_early(&network, None), Err(Failure::Stopped));
    }
}

#[test]
fn a_network_that_is_being_built() {
    let mut network = table1(aqm("drop-tail", r#"{"limit": "100p"}"#), 1);
    network.flows = network.flows.iter().cycle().take(20_000).cloned().collect();
    let watch = Watch::default();
    watch.stop();
    let built = Simulation::run(&network, 1, None, &watch);
    assert_eq!(built.map(|_| ()), Err(Failure::Stopped));
}

#[test]
fn watching_changes_nothing_and_ends_with_the_run() {
    let network = table1(aqm("drop-tail", r#"{"limit": "300p"}"#), 20);
    let watch = Watch::default();
    let watched = Simulation::run(&network, 3, None, &watch).unwrap();
    let mut alone = Simulation::new(&network, 3).unwrap();
    alone.run_to_end();
    assert_eq!(format!("{watched:?}"), format!("{:?}", alone.finish().unwrap()));
    assert_eq!(watch.under_way(), 0.0);
}

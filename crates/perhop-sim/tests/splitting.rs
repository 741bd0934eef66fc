//! Splitting: estimates agree with queueing theory and with plain runs, which are their special case.

use crate::common::{aqm, duplex, flow, tcp, udp};
use crate::populations::population;
use crate::stepping::every_queue;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bytes, Color, Duration, Instant, Rng, Unit};
use perhop_sim::splitting::{self, Counts, Ending, Event, Goal, Importance, Level, Plan, Unsplit};
use perhop_sim::workload::{Arrivals, Sizes};
use perhop_sim::{Engine, Network, Simulation, Stepping, Watch};

const MOST: u64 = 100_000_000;
const BACKLOG: Importance = Importance { link: 0, class: None, unit: Unit::Packets, lingers: false };
const WAITS: Importance = Importance { unit: Unit::Bytes, lingers: true, ..BACKLOG };

/// M/D/1 with room for so many waiting packets: a link on which a packet of 1000 bytes takes 1 ms, and
/// Poisson arrivals of so many packets in a second.
fn single(per_second: f64, room: u64, seconds: u64) -> Network {
    let transport = udp(r#"{"udp": "cbr", "rate": "8Gbps", "packet": "1000B", "jitter": 0.0}"#);
    let sizes = Sizes::constant(Bytes::new(972));
    let queue = aqm("drop-tail", &format!(r#"{{"limit": "{room}p"}}"#));
    Network {
        nodes: 2,
        links: duplex("there", 0, 1, "8Mbps", "1ms", queue).into(),
        flows: vec![population(transport, Arrivals::Poisson(per_second), sizes)],
        warmup: Duration::from_secs(1),
        ..Network::new(Duration::from_secs(seconds))
    }
}

/// Finds levels and runs so many seeds.
fn split(network: &Network, importance: Importance, event: Event, seeds: u64) -> Vec<Counts> {
    let watch = Watch::default();
    let pilot = splitting::pilot(network, 1, importance, Goal::Event(event), MOST, &watch).unwrap();
    assert_eq!(pilot.ending, Ending::Reached, "{pilot:?}");
    let plan = Plan { importance, levels: pilot.levels, event, most_events: MOST };
    (1..=seeds).map(|seed| splitting::run(network, seed, &plan, &watch).unwrap()).collect()
}

/// The mean of the event's share of packets over runs, and its standard error.
fn share(runs: &[Counts], of: impl Fn(&Counts) -> f64) -> (f64, f64) {
    let values: Vec<f64> = runs.iter().map(|counts| counts.rare / of(counts)).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn arrived(counts: &Counts) -> f64 {
    counts.classes.iter().flat_map(|class| class.arrived).sum()
}

fn waited(counts: &Counts) -> f64 {
    counts.waits.iter().map(|bin| bin.packets).sum()
}

/// Checks an estimate by three standard errors, which must be small enough to tell.
fn expect((mean, error): (f64, f64), truth: f64) {
    assert!((mean - truth).abs() < 3.0 * error, "{mean:e} ± {error:e}, not {truth:e}");
    assert!(error < 0.2 * truth, "{mean:e} ± {error:e} says little");
}

#[test]
fn losses_of_one_in_a_million_and_less_are_those_of_theory() {
    // By the embedded Markov chain of M/D/1/K: 1 − 1/(π₀ + ρ).
    for (room, loss) in [(10, 1.154_941e-6), (16, 6.145_995e-10)] {
        let runs = split(&single(500.0, room, 6), BACKLOG, Event::Loss, 12);
        expect(share(&runs, arrived), loss);
        // A plain run has 2500 packets, and is not much shorter.
        assert!(runs.iter().all(|counts| counts.events < 60 * counts.main_events));
    }
}

#[test]
fn waits_of_two_in_a_million_are_those_of_theory() {
    // P(W > x) = (1 − ρ) / (ρτ − 1) · e^(−λ(τ−1)x), where τ = e^(ρ(τ−1)): exact to many digits so far out.
    let runs = split(&single(500.0, 1000, 6), WAITS, Event::Wait(Duration::from_millis(10)), 12);
    expect(share(&runs, waited), 2.309_879e-6);
}

#[test]
fn where_the_event_is_common_splitting_and_plain_runs_agree() {
    let network = single(800.0, 8, 11);
    let levels = vec![Level { from: 3, trials: 2 }, Level { from: 6, trials: 3 }];
    let run = |levels: &[Level], seed| {
        let (importance, event) = (BACKLOG, Event::Loss);
        let plan = Plan { importance, levels: levels.to_vec(), event, most_events: MOST };
        splitting::run(&network, seed, &plan, &Watch::default()).unwrap()
    };
    let split: Vec<Counts> = (1..=40).map(|seed| run(&levels, seed)).collect();
    let plain: Vec<Counts> = (101..=140).map(|seed| run(&[], seed)).collect();
    // By the embedded chain, 0.5643 %.
    expect(share(&split, arrived), 5.643_391e-3);
    expect(share(&plain, arrived), 5.643_391e-3);
    let mean = |runs: &[Counts], of: fn(&Counts) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    for of in [arrived, waited] {
        let (split, plain) = (mean(&split, of), mean(&plain, of));
        assert!((split / plain - 1.0).abs() < 0.01, "{split} {plain}");
    }
    let copies: u64 = split.iter().flat_map(|counts| &counts.levels).map(|level| level.copies).sum();
    assert!(copies > 10_000, "{copies}");
}

#[test]
fn a_plain_run_counts_what_its_variance_is_said_to_be() {
    // Stays above the first level are nearly independent, so the variance of a run's losses is the mean of
    // the sum of the squares: at 2.25e-5 of 12 000 packets, few stays have any.
    let network = single(600.0, 10, 21);
    let runs = split(&network, BACKLOG, Event::Loss, 16);
    let squares = runs.iter().map(|counts| counts.squares).sum::<f64>() / runs.len() as f64;
    let losses = |seed| {
        let outcome = Simulation::run(&network, seed, None, &Watch::default()).unwrap();
        Color::ALL.map(|color| outcome.links[0].measured.dropped_of(color)).iter().sum::<u64>() as f64
    };
    let losses: Vec<f64> = (1000..1200).map(losses).collect();
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let variance = losses.iter().map(|lost| (lost - mean) * (lost - mean)).sum::<f64>() / losses.len() as f64;
    assert!((0.5..2.0).contains(&(squares / variance)), "{squares} {variance}");
}

/// Two routers with this queue between them, loaded by on-off sources and TCP.
fn busy(queue: &SchedulerParams) -> Network {
    let bursts = r#"{"udp": "on-off", "rate": "900kbps", "packet": "300B", "on": "60ms", "off": "90ms"}"#;
    let flows = (0..6).map(|n| {
        let transport = if n < 5 { udp(bursts) } else { tcp(r#"{"tcp": "newreno"}"#) };
        flow(format!("{n}"), 0, 1, transport, None)
    });
    Network {
        nodes: 2,
        links: duplex("there", 0, 1, "3Mbps", "7ms", queue.clone()).into(),
        flows: flows.collect(),
        warmup: Duration::from_millis(500),
        ..Network::new(Duration::from_secs(3))
    }
}

fn plan(importance: Importance, levels: &[(u64, u32)]) -> Plan {
    let levels = levels.iter().map(|&(from, trials)| Level { from, trials }).collect();
    Plan { importance, levels, event: Event::Loss, most_events: MOST }
}

#[test]
fn with_one_trial_a_level_the_run_is_the_plain_run_under_every_queue() {
    for queue in every_queue() {
        let network = busy(&queue);
        let outcome = Simulation::run(&network, 7, Some(Engine::Reference), &Watch::default()).unwrap();
        for importance in [BACKLOG, WAITS] {
            let plan = plan(importance, &[(3, 1), (9, 1)]);
            let counts = splitting::run(&network, 7, &plan, &Watch::default()).unwrap();
            assert_eq!(counts.events, outcome.events, "{queue:?}");
            let link = &outcome.links[0];
            let sums = |of: fn(&splitting::ClassCounts) -> [f64; 3]| -> [f64; 3] {
                std::array::from_fn(|color| counts.classes.iter().map(|class| of(class)[color]).sum())
            };
            let whole = |counts: [u64; 3]| counts.map(|count| count as f64);
            assert_eq!(sums(|class| class.arrived), whole(link.measured.arrived), "{queue:?}");
            assert_eq!(sums(|class| class.sent), whole(link.measured.sent), "{queue:?}");
            let dropped = Color::ALL.map(|color| link.measured.dropped_of(color));
            assert_eq!(sums(|class| class.dropped), whole(dropped), "{queue:?}");
            let waits: Vec<f64> = counts.waits.iter().map(|bin| bin.packets).collect();
            let bins = link.delays.counts.iter().map(|by_color| by_color.iter().sum::<u64>() as f64);
            assert_eq!(waits, bins.filter(|&packets| packets > 0.0).collect::<Vec<f64>>(), "{queue:?}");
        }
    }
}

#[test]
fn every_queue_is_split_and_conserves_its_packets_in_every_trial() {
    // Each trial checks arrived = sent + dropped + waiting at its end.
    let mut copies = 0;
    for queue in every_queue() {
        for (importance, levels) in [(BACKLOG, [(4, 2), (8, 3)]), (WAITS, [(1200, 2), (4000, 3)])] {
            let plan = plan(importance, &levels);
            let run = || splitting::run(&busy(&queue), 7, &plan, &Watch::default()).unwrap();
            let counts = run();
            assert_eq!(counts, run(), "the same seed gives the same counts");
            copies += counts.levels.iter().map(|level| level.copies).sum::<u64>();
        }
    }
    assert!(copies > 1_000, "{copies}");
}

#[test]
fn a_copy_with_other_numbers_goes_another_way_and_its_original_does_not_notice() {
    let network = single(500.0, 10, 3);
    let mut run = Stepping::new(&network, 5, Engine::Reference).unwrap();
    run.run_until(Instant::from_nanos(1_234_000_000));
    let untouched = run.clone().finish().unwrap();
    let copies = [7, 7, 8].map(|seed| run.reseeded(seed).finish().unwrap());
    assert_eq!(copies[0], copies[1]);
    assert_ne!(copies[0], copies[2]);
    assert_ne!(copies[0], untouched);
    assert_eq!(run.finish().unwrap(), untouched);
    assert_eq!(Rng::stream(1, "a").clone(), Rng::stream(1, "a"));
}

#[test]
fn what_cannot_be_split_is_refused() {
    let network = single(500.0, 10, 3);
    let run = |plan: &Plan| splitting::run(&network, 1, plan, &Watch::default());
    for levels in [&[(0, 2)][..], &[(3, 0)], &[(3, 2), (3, 2)], &[(5, 2), (3, 2)]] {
        assert_eq!(run(&plan(BACKLOG, levels)), Err(Unsplit::NotRising));
    }
    for importance in [Importance { link: 1, ..BACKLOG }, Importance { class: Some(1), ..BACKLOG }] {
        assert_eq!(run(&plan(importance, &[])), Err(Unsplit::NoQueue));
    }
    let endless = Plan { most_events: 100_000, ..plan(BACKLOG, &[(1, 30), (2, 30), (3, 30), (4, 30)]) };
    let Err(error @ Unsplit::TooMany { most: 100_000, is_split: true }) = run(&endless) else { panic!() };
    assert!(error.to_string().contains("its trials multiply"));
    let watch = Watch::default();
    watch.stop();
    let stopped = splitting::run(&network, 1, &plan(BACKLOG, &[]), &watch);
    assert_eq!(stopped, Err(Unsplit::Failed(perhop_sim::Failure::Stopped)));
}

#[test]
fn a_pilot_says_why_it_finds_no_levels() {
    let ending = |network: &Network| {
        let goal = Goal::Event(Event::Loss);
        splitting::pilot(network, 1, BACKLOG, goal, MOST, &Watch::default()).unwrap().ending
    };
    // TCP draws nothing once it has begun.
    let queue = SchedulerParams::from(aqm("drop-tail", r#"{"limit": "100p"}"#));
    let tcp = flow("tcp".into(), 0, 1, tcp(r#"{"tcp": "newreno"}"#), None);
    let alone = Network { flows: vec![tcp], ..busy(&queue) };
    assert_eq!(ending(&alone), Ending::Unvaried);
    // At 1 packet in 10 s nothing waits; a queue without a limit loses nothing.
    assert_eq!(ending(&single(0.1, 10, 21)), Ending::Empty);
    assert_eq!(ending(&single(500.0, 100_000, 21)), Ending::Stuck);
    // What it has found before it is given up is kept.
    let goal = Goal::Event(Event::Loss);
    let pilot =
        splitting::pilot(&single(500.0, 100_000, 21), 1, BACKLOG, goal, 500_000, &Watch::default()).unwrap();
    assert_eq!(pilot.ending, Ending::GivenUp);
    assert!(!pilot.levels.is_empty() && pilot.events < 510_000, "{pilot:?}");
}

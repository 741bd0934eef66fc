//! Keys of populations: what they read as, and what is wrong with others.

use perhop_core::{Bytes, Duration};
use perhop_scenario::{Driver, NoFiles, Scenario};
use perhop_sim::workload::{Arrivals, Listed, NamedCdf};

use crate::messages::GOOD;

/// The example, whose flows have these keys.
fn with(keys: &str) -> String {
    GOOD.replacen("count = 4\n", &format!("{keys}\n"), 1)
}

#[test]
fn loads_are_shares_of_a_link() {
    let load = |arrivals: &str| {
        let text = with(&format!("arrivals = {arrivals}\nsizes = {{ cdf = \"web-search\", scale = 0.1 }}"));
        let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
        let population = scenario.network().flows[0].population.clone().unwrap();
        assert_eq!((population.headers, population.sizes.cdf), (40, Some(NamedCdf::WebSearch)));
        let Arrivals::Poisson(per_second) = population.arrivals else { panic!("{population:?}") };
        // What is written reads the same.
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_json(&json, "s.json").unwrap(), scenario);
        per_second
    };
    // 0.6 * 20 Mbit/s over 8 * 171125 bytes
    let expected = 12e6 / (8.0 * 171_125.0);
    assert!((load("{ load = 0.6 }") - expected).abs() < 1e-9);
    assert!((load("{ load = 0.6, of = \"bottleneck\" }") - expected).abs() < 1e-9);
    assert!((load("{ rate = \"90/min\" }") - 1.5).abs() < 1e-12);
}

#[test]
fn intervals_and_lists() {
    let read = |keys: &str| {
        let scenario = Scenario::from_toml(&with(keys), "s.toml").unwrap();
        scenario.network().flows[0].population.clone().unwrap()
    };
    let every = read("arrivals = { every = \"25ms\" }\nsizes = { constant = \"30kB\" }");
    assert_eq!(every.arrivals, Arrivals::Every(Duration::from_millis(25)));
    assert_eq!(every.sizes.constant, Some(Bytes::new(30_000)));
    let list = read("arrivals = { list = [[\"1s\", \"30kB\"], [\"1s\", \"2kB\"]] }");
    let second = Duration::from_secs(1);
    let expected = [Listed(second, Bytes::new(30_000)), Listed(second, Bytes::new(2000))];
    assert_eq!(list.arrivals, Arrivals::List(expected.to_vec()));
}

#[test]
fn memory_counts_the_records_of_flows() {
    let scenario = Scenario::from_toml(
        &with("arrivals = { rate = \"100000/s\" }\nsizes = { constant = \"30B\" }"),
        "s.toml",
    );
    let memory = scenario.unwrap().memory();
    assert_eq!((memory.flows, memory.records), (1, 10_000_000));
    let said = memory.to_string();
    assert!(said.contains("0.4 GB for the records of 10000000 flows that come and go"), "{said}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn what_is_wrong_stands_at_its_key() {
    let sizes = "sizes = { constant = \"30kB\" }";
    for (keys, message) in [
        (sizes.to_owned(), "sizes: only flows of a population have sizes that differ"),
        (
            format!("arrivals = {{}}\n{sizes}"),
            "arrivals: say when flows begin: one of `load`, `rate`, `every` and `list`",
        ),
        (
            format!("arrivals = {{ load = 0.5, every = \"1s\" }}\n{sizes}"),
            "arrivals.every: flows begin in one way; choose one of",
        ),
        (
            format!("arrivals = {{ rate = \"4/s\", of = \"bottleneck\" }}\n{sizes}"),
            "arrivals.of: only a `load` refers to a link",
        ),
        (
            format!("arrivals = {{ load = 0.5, of = \"botleneck\" }}\n{sizes}"),
            "arrivals.of: the flows do not pass a link `botleneck`; did you mean `bottleneck`? (links on their route: bottleneck)",
        ),
        (format!("arrivals = {{ rate = \"0/s\" }}\n{sizes}"), "arrivals.rate: at this rate no flow begins"),
        (
            format!("arrivals = {{ rate = \"40\" }}\n{sizes}"),
            "arrivals.rate: `40` has no unit (one of /s, /min, /h); write a frequency such as 40/s",
        ),
        (
            format!("arrivals = {{ every = \"0s\" }}\n{sizes}"),
            "arrivals.every: an interval must be longer than 0s",
        ),
        (
            format!("arrivals = {{ every = \"1ns\" }}\n{sizes}"),
            "arrivals: 1.000e11 flows would begin; a population has at most 1e8",
        ),
        ("arrivals = { load = 0.5 }".into(), "arrivals: `sizes` is missing: say how much each flow sends"),
        (
            format!("arrivals = {{ list = [[\"1s\", \"1kB\"]] }}\n{sizes}"),
            "sizes: the list of `arrivals` says what each flow sends",
        ),
        (
            "arrivals = { list = [[\"2s\", \"1kB\"], [\"1s\", \"1kB\"]] }".into(),
            "arrivals.list: flow 1 begins at 1s, before the one ahead of it (2s); sort the list",
        ),
        ("arrivals = { list = [[\"2s\", \"0B\"]] }".into(), "arrivals.list: flow 0 sends nothing"),
        (
            "arrivals = { list = [[\"100s\", \"1B\"]] }".into(),
            "arrivals.list: flow 0 begins at 100s, and the run ends at 100s",
        ),
        (
            "arrivals = { load = 0.5 }\nsizes = { points = [] }".into(),
            "sizes.points: a distribution has at least two points",
        ),
        (
            "arrivals = { load = 0.5 }\nsizes = { pareto = { shape = 0.9, least = \"1kB\" } }".into(),
            "sizes.pareto.shape: with a shape of 1 or less the mean is infinite",
        ),
        (
            format!("count = 2\narrivals = {{ load = 0.5 }}\n{sizes}"),
            "count: a population has as many flows as its `arrivals` say",
        ),
        (
            format!("volume = \"1MB\"\narrivals = {{ load = 0.5 }}\n{sizes}"),
            "volume: flows of a population have `sizes`",
        ),
        (
            format!("start = \"1s..2s\"\narrivals = {{ load = 0.5 }}\n{sizes}"),
            "start: the arrivals of a population begin at one time",
        ),
        (
            format!("start = \"5s\"\nstop = \"5s\"\narrivals = {{ load = 0.5 }}\n{sizes}"),
            "stop: no flow begins after `start` and before this time",
        ),
        (
            format!("out-feedback = \"5ms\"\narrivals = {{ load = 0.5 }}\n{sizes}"),
            "out-feedback: feedback about OUT packets is for flows that stay",
        ),
    ] {
        let found = Scenario::from_toml(&with(&keys), "s.toml").unwrap_err().to_string();
        let found = found.split_once("flows[0].").map_or(found.as_str(), |(_, found)| found);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    for (transport, message) in [
        ("rap = \"aimd\"", "transport: flows that come and go use TCP or UDP"),
        (
            "tcp = \"newreno\", packet = \"40B\"",
            "transport.packet: packets of 40 bytes have no room for payload beside headers of 40 bytes",
        ),
    ] {
        let text = with(&format!("arrivals = {{ load = 0.5 }}\n{sizes}")).replacen(
            crate::messages::TRANSPORT,
            transport,
            1,
        );
        let found = Scenario::from_toml(&text, "s.toml").unwrap_err().to_string();
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn real_packets_have_no_populations() {
    let text = with("arrivals = { load = 0.5 }\nsizes = { constant = \"30kB\" }");
    let refused = Scenario::from_toml_for(&text, "s.toml", Driver::RealPackets, &NoFiles).unwrap_err();
    assert!(refused.to_string().contains("arrivals: on real packets no flows come and go"));
}

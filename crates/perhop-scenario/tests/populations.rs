//! Keys of populations: what they read as, and what is wrong with others.

use perhop_core::{Bytes, Duration};
use perhop_scenario::{Driver, Files, NoFiles, Scenario, notices_in};
use perhop_sim::workload::{ArrivalTrace, Arrivals, Listed, NamedCdf, SizeCdf};

use crate::messages::{GOOD, TRANSPORT};

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
        assert_eq!(
            (population.headers, population.sizes.cdf.clone()),
            (40, Some(SizeCdf::Published(NamedCdf::WebSearch)))
        );
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

/// Two files, whatever is asked for.
struct TwoFiles;

impl Files for TwoFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        match name {
            "day.csv" => Ok("time_s,size_kB\n1,30\n2.5,2\n".into()),
            "starts.csv" => Ok("time_ms\n0\n250\n".into()),
            "web.txt" => Ok("0 0\n10000 15\n30000 100\n".into()),
            _ => Err(format!("{name}: no such file")),
        }
    }
}

fn read_with_files(keys: &str) -> Result<Scenario, String> {
    let read = Scenario::from_toml_for(&with(keys), "s.toml", Driver::Simulator, &TwoFiles);
    read.map_err(|error| error.to_string())
}

#[test]
fn arrivals_and_sizes_come_from_files() {
    let trace = |keys: &str| {
        let scenario = read_with_files(keys).unwrap();
        // The canonical form needs no file.
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_json(&json, "s.json").unwrap(), scenario);
        assert_eq!(Scenario::from_toml(&scenario.to_toml(), "s.toml").unwrap(), scenario);
        (scenario.network().flows[0].population.clone().unwrap(), json)
    };
    let (population, json) = trace("start = \"5s\"\narrivals = { trace = \"day.csv\" }");
    let flows = [(1000, 30_000), (2500, 2000)];
    let flows = flows.map(|(at, size)| Listed(Duration::from_millis(at), Bytes::new(size)));
    assert_eq!(population.arrivals, Arrivals::Trace(ArrivalTrace::Flows(flows.to_vec()).into()));
    assert!(json.contains(r#""trace":{"name":"day.csv","data":"time_s,size_kB\n1,30\n2.5,2\n"}"#), "{json}");
    let sizes = "sizes = { cdf = \"web.txt\", scale = 2 }";
    let (population, json) = trace(&format!("arrivals = {{ trace = {{ file = \"starts.csv\" }} }}\n{sizes}"));
    let starts = [0, 250].map(Duration::from_millis);
    assert_eq!(population.arrivals, Arrivals::Trace(ArrivalTrace::Times(starts.to_vec()).into()));
    // 2 * (0.15 * 5000 + 0.85 * 20000)
    assert!((population.sizes.mean().unwrap() - 35_500.0).abs() < 1e-9);
    let written = r#""cdf":{"name":"web.txt","format":"columns","data":"0 0\n10000 15\n30000 100\n"}"#;
    assert!(json.contains(written), "{json}");
    let (population, _) = trace(&format!("arrivals = {{ load = 0.5 }}\n{sizes}"));
    let Arrivals::Poisson(per_second) = population.arrivals else { panic!("{population:?}") };
    assert!((per_second - 10e6 / (8.0 * 35_500.0)).abs() < 1e-9);
    // As many flows as begin within the run.
    let memory = read_with_files("start = \"98s\"\narrivals = { trace = \"day.csv\" }").unwrap().memory();
    assert_eq!(memory.records, 2);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn what_is_wrong_with_files_stands_at_its_key() {
    for (keys, message) in [
        ("arrivals = { trace = \"night.csv\" }", "arrivals.trace: night.csv: no such file"),
        ("arrivals = { trace = { file = \"night.csv\" } }", "arrivals.trace.file: night.csv: no such file"),
        (
            "arrivals = { trace = \"web.txt\" }",
            "arrivals.trace: web.txt:1: `0 0`: the first line names a time (time_s or time_ms) and, where the file has them, a \
             size (size_B, size_kB or size_MB), such as time_s,size_B",
        ),
        (
            "arrivals = { trace = { data = \"time_s\\n2\\n1\" } }",
            "arrivals.trace.data: line 3: 1s comes after 2s, but times do not go back",
        ),
        (
            "arrivals = { trace = { name = \"day.csv\" } }",
            "arrivals.trace: needs the `file` of a trace, such as \"arrivals.csv\", or its text as `data`",
        ),
        (
            "arrivals = { trace = \"day.csv\" }\nsizes = { constant = \"1kB\" }",
            "sizes: the trace of `arrivals` says what each flow sends; leave this key out",
        ),
        (
            "arrivals = { trace = \"starts.csv\" }",
            "arrivals: `sizes` is missing: say how much each flow sends, such as",
        ),
        (
            "arrivals = { trace = \"starts.csv\" }\nsizes = { points = [] }",
            "sizes.points: a distribution has at least two points",
        ),
        (
            "arrivals = { trace = \"day.csv\", every = \"1s\" }",
            "arrivals.trace: flows begin in one way; choose one of `load`, `rate`, `every`, `list` and `trace`",
        ),
        (
            "start = \"99s\"\narrivals = { trace = \"day.csv\" }",
            "arrivals.trace: its first flow would begin at 100s, but arrivals end at 100s; use an earlier `start`",
        ),
        ("arrivals = { load = 0.5 }\nsizes = { cdf = \"mail.txt\" }", "sizes.cdf: mail.txt: no such file"),
        (
            "arrivals = { load = 0.5 }\nsizes = { cdf = { file = \"web.txt\", format = \"csv\" } }",
            "sizes.cdf.file: web.txt:1: `0 0`: the first line names a size (size_B, size_kB or size_MB) and a probability \
             (probability or percent), such as size_B,probability",
        ),
        (
            "arrivals = { load = 0.5 }\nsizes = { cdf = { data = \"0 0\" } }",
            "sizes.cdf.format: a distribution given as `data` needs a format = \"csv\" or \"columns\"",
        ),
        (
            "arrivals = { load = 0.5 }\nsizes = { cdf = \"web-serch\" }",
            "sizes.cdf: unknown value `web-serch`; did you mean `web-search`? (one of web-search, data-mining, hadoop)",
        ),
        (
            "arrivals = { load = 0.5 }\nsizes = { cdf = { fil = \"web.txt\" } }",
            "sizes.cdf.fil: unknown key `fil`; did you mean `file`?",
        ),
        (
            "arrivals = { list = [[\"1s\"]] }",
            "arrivals.list[0]: expected a time and a size, such as [\"1.5s\", \"30kB\"], not 1 value",
        ),
        (
            "arrivals = { list = [[\"1s\", \"1kB\", 2]] }",
            "arrivals.list[0]: 3 values are more than belong here; leave out the last",
        ),
        (
            "arrivals = { list = [\"1s\"] }",
            "arrivals.list[0]: expected a time and a size, such as [\"1.5s\", \"30kB\"], not the text",
        ),
        (
            "arrivals = { load = 0.5 }\nsizes = { points = [[0]] }",
            "sizes.points[0]: expected a list of length 2, not 1 value",
        ),
    ] {
        let found = read_with_files(keys).unwrap_err();
        let found = found.split_once("flows[0].").map_or(found.as_str(), |(_, found)| found);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
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
            "arrivals: say when flows begin: one of `load`, `rate`, `every`, `list` and `trace`",
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
            "start = \"1s\"\narrivals = { list = [[\"2s\", \"1kB\"]] }".into(),
            "start: the times of the list are from the start of the run",
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
fn flows_come_and_go_on_real_packets() {
    let text = with("arrivals = { load = 0.5 }\nsizes = { constant = \"30kB\" }");
    let read = |text: &str| Scenario::from_toml_for(text, "s.toml", Driver::RealPackets, &NoFiles);
    assert!(read(&text).is_ok());
    let udp = text.replacen(TRANSPORT, "udp = \"cbr\", rate = \"1Mbps\"", 1);
    assert!(read(&udp).is_ok());
}

#[test]
fn populations_that_never_begin_or_overload_a_link_are_named() {
    let said = |keys: &str| -> Vec<String> {
        let scenario = Scenario::from_toml(&with(keys), "s.toml").unwrap();
        let said = notices_in(Some(&with(keys)), "s.toml", scenario.notices());
        said.iter().map(ToString::to_string).filter(|text| text.contains("flows[0]")).collect()
    };
    let sizes = "sizes = { constant = \"5360B\" }";
    assert_eq!(said(&format!("arrivals = {{ load = 0.9 }}\n{sizes}")), [""; 0]);
    // Ten packets of 536 bytes and 40 of headers: 0.95 of payload is 1.021 with headers.
    let [over] = said(&format!("arrivals = {{ load = 0.95 }}\n{sizes}")).try_into().unwrap();
    assert!(
        over.contains("arrivals: with headers, the flows bring 1.02 times what link `bottleneck` carries"),
        "{over}"
    );
    // 5760 bytes in 1 ms are 46.08 Mbit/s.
    let [over] = said(&format!("arrivals = {{ every = \"1ms\" }}\n{sizes}")).try_into().unwrap();
    assert!(over.contains("2.30 times"), "{over}");
    // A byte takes a packet, too.
    let [over] = said("arrivals = { load = 0.1 }\nsizes = { constant = \"1B\" }").try_into().unwrap();
    assert!(over.contains("4.10 times"), "{over}");
    let [few] = said("arrivals = { rate = \"1/h\" }\nsizes = { constant = \"1kB\" }").try_into().unwrap();
    assert!(few.contains("arrivals: 2.8e-2 flows begin in a run on average"), "{few}");
    let [late] = said(&format!("start = \"100s\"\narrivals = {{ load = 0.5 }}\n{sizes}")).try_into().unwrap();
    assert!(late.contains("start: the run ends at 100s, so flows from 100s on never begin"), "{late}");
    assert_eq!(said("start = \"99s\"").len(), 0);
    assert_eq!(said("start = \"200s\"").len(), 1);
}

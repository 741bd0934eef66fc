//! Keys of links that change and lose packets: what they read as, and what is wrong with others.

use perhop_core::medium::{Change, Outage};
use perhop_core::medium::{Opportunities, RateTrace, Rates};
use perhop_core::{Duration, Probability};
use perhop_scenario::{Driver, Files, Folder, NoFiles, Scenario, notices_in};

use crate::messages::GOOD;

/// The example, with these keys in its link.
fn with(keys: &str) -> String {
    GOOD.replacen("delay = \"48ms\"\n", &format!("delay = \"48ms\"\n{keys}\n"), 1)
}

#[test]
fn changes_outages_and_losses_of_both_directions() {
    let text = with(
        "changes = [{ at = \"10s\", rate = \"5Mbps\" }, { at = \"20s\", delay = \"10ms\" }]\n\
         outages = [{ from = \"30s\", to = \"31s\" }]\n\
         burst-loss = { good-to-bad = 0.01, bad-to-good = 0.25 }\n\
         reverse = { loss = 0.01 }",
    );
    let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
    let network = scenario.network();
    let [forward, reverse] = &network.links[..] else { panic!("one link") };
    let seconds = Duration::from_secs;
    let first = Change { at: seconds(10), rate: Some("5Mbps".parse().unwrap()), delay: None };
    let second = Change { at: seconds(20), rate: None, delay: Some(Duration::from_millis(10)) };
    assert_eq!(forward.medium.changes, [first, second]);
    assert_eq!(forward.medium.outages, [Outage { from: seconds(30), to: seconds(31) }]);
    let bursts = forward.medium.burst_loss.unwrap();
    assert_eq!((bursts.loss_good.get(), bursts.loss_bad.get()), (0.0, 1.0));
    assert_eq!(reverse.medium.loss.map(Probability::get), Some(0.01));
    assert!(reverse.medium.changes.is_empty(), "the reverse direction has its own");
    // What is written reads the same.
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(Scenario::from_json(&json, "s.json").unwrap(), scenario);
}

#[test]
fn what_is_wrong_stands_at_its_key() {
    for (keys, message) in [
        ("changes = [{ at = \"1s\" }]", "changes[0]: a change has a `rate`, a `delay` or both"),
        (
            "changes = [{ at = \"9s\", rate = \"1Mbps\" }, { at = \"8s\", rate = \"2Mbps\" }]",
            "changes[1].at: changes come in the order of time, and the one before is at 9s",
        ),
        (
            "changes = [{ at = \"100s\", rate = \"1Mbps\" }]",
            "changes[0].at: the run ends at 100s: choose an earlier time, or a longer run",
        ),
        ("outages = [{ from = \"3s\", to = \"3s\" }]", "outages[0].to: an outage ends after it begins (3s)"),
        (
            "outages = [{ from = \"3s\", to = \"5s\" }, { from = \"4s\", to = \"6s\" }]",
            "outages[1].from: outages come in the order of time, and the one before ends at 5s",
        ),
        (
            "outages = [{ from = \"300s\", to = \"301s\" }]",
            "outages[0].from: the run ends at 100s: choose an earlier time, or a longer run",
        ),
        (
            "burst-loss = { good-to-bad = 0.1, bad-to-good = 0 }",
            "burst-loss.bad-to-good: the bad state must end: write a probability above 0",
        ),
        (
            "reverse = { jitter = { distribution = \"uniform\", mean = \"2ms\", reorder = true } }",
            "reverse.jitter.max: a jitter that is `uniform` needs `max`, such as 5ms",
        ),
        (
            "jitter = { distribution = \"normal\", mean = \"2ms\", sd = \"2.5ms\", reorder = true }",
            "jitter.sd: no delay is below 0, so `sd` is at most the mean, 2ms; or take `exponential`",
        ),
    ] {
        let error = Scenario::from_toml(&with(keys), "s.toml").unwrap_err().to_string();
        assert_eq!(error.split_once("links.bottleneck.").expect(&error).1, message);
    }
    for (keys, part) in [
        ("loss = 2", "loss"),
        ("loss = \"often\"", "loss"),
        ("burst-loss = { good-to-bad = 0.1 }", "burst-loss"),
        ("burst-loss = { good-to-bad = 0.1, bad-to-good = 0.5, loss-god = 1 }", "burst-loss"),
        ("changes = [{ at = \"1s\", rate = \"0Mbps\" }]", "changes[0].rate"),
        (
            "jitter = { distribution = \"gamma\", mean = \"2ms\", reorder = true }",
            "uniform, exponential, normal",
        ),
        ("jitter = { distribution = \"exponential\", mean = \"2ms\" }", "key `reorder` is missing"),
    ] {
        let error = Scenario::from_toml(&with(keys), "s.toml").unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn links_change_and_lose_on_real_packets_too() {
    for keys in [
        "changes = [{ at = \"1s\", rate = \"2Mbps\" }]",
        "outages = [{ from = \"1s\", to = \"2s\" }]",
        "loss = 0.01",
        "reverse = { burst-loss = { good-to-bad = 0.01, bad-to-good = 0.25 } }",
        "jitter = { distribution = \"uniform\", max = \"2ms\", reorder = true }",
        "rate-trace = { format = \"mahimahi\", data = \"5\" }",
    ] {
        Scenario::from_toml_for(&with(keys), "s.toml", Driver::RealPackets, &NoFiles).expect(keys);
    }
}

/// One file.
struct OneFile(&'static str, &'static str);

impl Files for OneFile {
    fn read(&self, name: &str) -> Result<String, String> {
        if name == self.0 { Ok(self.1.into()) } else { Err(format!("{name}: no such file")) }
    }
}

fn read(keys: &str, files: &dyn Files) -> Result<Scenario, String> {
    let read = Scenario::from_toml_for(&with(keys), "s.toml", Driver::Simulator, files);
    read.map_err(|error| error.to_string())
}

#[test]
fn a_trace_becomes_part_of_the_scenario() {
    let file = OneFile("walk.trace", "1\n3\n3\n6\n");
    let scenario = read("rate-trace = \"walk.trace\"", &file).unwrap();
    let trace = scenario.network().links[0].medium.trace.clone().unwrap();
    assert_eq!(*trace, RateTrace::Opportunities(Opportunities::new(vec![1, 3, 3, 6], true).unwrap()));
    let json = serde_json::to_value(&scenario).unwrap();
    let table = serde_json::json!(
        {"name": "walk.trace", "format": "mahimahi", "repeat": true, "data": "1\n3\n3\n6\n"}
    );
    assert_eq!(json["links"]["bottleneck"]["rate-trace"], table);
    // What is written reads the same, without the file; in both forms.
    assert_eq!(Scenario::from_json(&json.to_string(), "s.json").unwrap(), scenario);
    assert_eq!(Scenario::from_toml(&scenario.to_toml(), "s.toml").unwrap(), scenario);
    // A table gives what the name does not say.
    let csv = OneFile("walk", "time_s,rate_Mbps\n0,5\n2,6\n");
    let keys = "reverse = { rate-trace = { file = \"walk\", format = \"csv\", repeat = true } }";
    let scenario = read(keys, &csv).unwrap();
    let links = scenario.network().links;
    let rates = [(0, 5_000_000), (2, 6_000_000)].map(|(at, rate)| (Duration::from_secs(at), rate));
    let trace = RateTrace::Rates(Rates::new(rates.to_vec(), true).unwrap());
    assert_eq!((&links[0].medium.trace, links[1].medium.trace.as_deref()), (&None, Some(&trace)));
}

#[test]
fn problems_of_traces_stand_at_their_key_and_name_file_and_line() {
    let csv = OneFile("walk.csv", "time_s,rate_Mbps\n0,5\n2,6\n1,6\n");
    let line = with("").lines().position(|line| line == "delay = \"48ms\"").unwrap() + 2;
    let refused = read("rate-trace = \"walk.csv\"", &csv).unwrap_err();
    let place = format!("s.toml:{line}: links.bottleneck.");
    assert_eq!(
        refused,
        format!("{place}rate-trace: walk.csv:4: 1s comes after 2s, but times do not go back")
    );
    for (keys, message) in [
        ("rate-trace = \"run.csv\"", "rate-trace: run.csv: no such file"),
        (
            "reverse = { rate-trace = { file = \"run.csv\" } }",
            "reverse.rate-trace.file: run.csv: no such file",
        ),
        (
            "rate-trace = { file = \"walk.csv\", format = \"mahimahi\" }",
            "rate-trace.file: walk.csv:1: `time_s,rate_Mbps` is no time in whole milliseconds: each line is an opportunity to send 1500 bytes",
        ),
        (
            "rate-trace = { format = \"csv\", data = \"\"\"\ntime_s,rate_Mbps\n0,0\n\"\"\" }",
            "rate-trace.data: line 2: all rates are 0, so the link would never send anything",
        ),
        (
            "rate-trace = { data = \"5\" }",
            "rate-trace.format: a trace given as `data` needs a format = \"mahimahi\" or \"csv\"",
        ),
        (
            "rate-trace = { file = \"walk.csv\", data = \"5\" }",
            "rate-trace.file: a trace has a `file` or `data`: leave one of them out",
        ),
        (
            "rate-trace = { file = \"walk.csv\", name = \"w\" }",
            "rate-trace.name: a trace from a file has the file's name: leave this key out",
        ),
        (
            "rate-trace = {}",
            "rate-trace: needs the `file` of a trace, such as \"walk.trace\", or its text as `data`",
        ),
        (
            "rate-trace = { data = \"5\", format = \"mahimahi\" }\nchanges = [{ at = \"1s\", rate = \"1Mbps\" }]",
            "changes[0].rate: `rate-trace` says what the rate is: leave one of the two out",
        ),
    ] {
        let refused = read(keys, &csv).unwrap_err();
        assert_eq!(refused.split_once("links.bottleneck.").expect(&refused).1, message);
    }
    let refused = Scenario::from_toml(&with("rate-trace = \"walk.csv\""), "s.toml").unwrap_err().to_string();
    assert!(refused.ends_with("walk.csv: no file is read here; write its text as `data`"), "{refused}");
    for keys in ["rate-trace = 5", "rate-trace = { file = 5 }", "rate-trace = { fil = \"walk.csv\" }"] {
        assert!(read(keys, &csv).unwrap_err().contains("rate-trace"));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it makes the files that it reads")]
fn files_are_read_relative_to_a_folder() {
    let folder = std::env::temp_dir().join(format!("perhop-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("walk.trace"), "5\n").unwrap();
    std::fs::write(folder.join("latin1"), b"5\n\xe9\n").unwrap();
    let files = Folder::of(folder.join("s.toml"));
    assert_eq!(files.read("walk.trace").unwrap(), "5\n");
    let problem = |name| files.read(name).unwrap_err();
    assert!(
        problem("run.trace")
            .ends_with("run.trace: no such file; names are relative to the scenario's folder")
    );
    assert!(problem(".").ends_with("is not a regular file"));
    assert!(problem("latin1").ends_with("latin1:2: is not UTF-8 text"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_jitter_of_hosts_is_for_every_driver() {
    let text = GOOD.replacen("[[flows]]\n", "[[flows]]\ndispatch-jitter = \"1ms\"\n", 1);
    let flow = &Scenario::from_toml(&text, "s.toml").unwrap().network().flows[0];
    assert_eq!(flow.dispatch_jitter, Some(Duration::from_millis(1)));
    Scenario::from_toml_for(&text, "s.toml", Driver::RealPackets, &NoFiles).unwrap();
    let none = Scenario::from_toml(&text.replace("\"1ms\"", "\"0s\""), "s.toml").unwrap_err().to_string();
    assert!(none.contains("flows[0].dispatch-jitter: a jitter is longer than 0s"), "{none}");
}

#[test]
fn a_trace_that_ends_before_the_run_is_noticed() {
    let notices = |table: &str| {
        let scenario = Scenario::from_toml(&with(&format!("rate-trace = {table}")), "s.toml").unwrap();
        let notices = notices_in(None, "s.toml", scenario.notices());
        notices.iter().map(ToString::to_string).filter(|text| text.contains("rate-trace")).collect::<Vec<_>>()
    };
    let once = "{ format = \"mahimahi\", repeat = false, data = \"5\\n7000\\n\" }";
    assert_eq!(
        notices(once),
        [
            "s.toml: links.bottleneck.rate-trace.repeat: the trace ends at 7s, and the link sends nothing afterwards; leave \
          `repeat` out, or end the run by then"
        ]
    );
    assert!(notices(&once.replace("false", "true")).is_empty());
    assert!(notices(&once.replace("7000", "100000")).is_empty(), "it lasts as long as the run");
    let csv = "{ format = \"csv\", data = \"time_s,rate_Mbps\\n0,5\\n8,0\\n\" }";
    assert!(notices(csv)[0].contains("the trace ends at 8s"));
    assert!(notices(&csv.replace("8,0", "8,1")).is_empty());
}

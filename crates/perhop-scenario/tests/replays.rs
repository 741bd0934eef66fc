//! Flows that replay packets: what their keys read as, and what is wrong with others.

use perhop_core::{Dscp, Duration};
use perhop_scenario::{Driver, Files, NoFiles, Scenario};
use perhop_sim::TransportSpec;
use perhop_sim::transport::packet_trace::TracedPacket;

use crate::messages::{GOOD, TRANSPORT};

const PACKETS: &str = "time_s,size_B,dscp\n0,1500,46\n0.5,40,0\n";

/// A capture that says between which times it was read, and CSV.
struct TwoFiles;

impl Files for TwoFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        if name == "calls.csv" {
            Ok("time_ms,size_B\n0,200\n20,200\n".into())
        } else {
            Err(format!("{name}: no such file"))
        }
    }

    fn read_capture(&self, name: &str, from: Duration, to: Option<Duration>) -> Result<String, String> {
        match (name, to) {
            ("uplink.pcapng", None) if from.is_zero() => Ok(PACKETS.into()),
            ("uplink.pcapng", Some(to)) => {
                Ok(format!("time_s,size_B\n0,40\n{},40\n", (to - from).as_secs_f64()))
            }
            _ => Err(format!("{name}: is no capture")),
        }
    }
}

/// The example, whose flows have these keys in place of a transport and a profile.
fn with(keys: &str) -> String {
    let (before, _) = GOOD.split_once(&format!("transport = {{ {TRANSPORT} }}")).unwrap();
    format!("{before}{keys}\n")
}

fn read(keys: &str) -> Result<Scenario, String> {
    Scenario::from_toml_for(&with(keys), "s.toml", Driver::Simulator, &TwoFiles)
        .map_err(|error| error.to_string())
}

fn packets(scenario: &Scenario) -> Vec<TracedPacket> {
    let network = scenario.network();
    let TransportSpec::Udp(params) = &network.flows[0].transport else { panic!("{network:?}") };
    params.trace.as_ref().unwrap().packets().to_vec()
}

#[test]
fn packets_come_from_captures_and_text() {
    let packet = |millis, size, dscp: Option<u8>| TracedPacket {
        at: Duration::from_millis(millis),
        size,
        dscp: dscp.map(|dscp| Dscp::new(dscp).unwrap()),
    };
    let scenario = read("replay = \"uplink.pcapng\"").unwrap();
    assert_eq!(packets(&scenario), [packet(0, 1500, Some(46)), packet(500, 40, Some(0))]);
    let network = scenario.network();
    assert_eq!(network.flows[0].transport.packet_sizes(), (1500, 0));
    // The canonical form needs no file.
    let json = serde_json::to_string(&scenario).unwrap();
    assert!(
        json.contains(
            r#""replay":{"name":"uplink.pcapng","data":"time_s,size_B,dscp\n0,1500,46\n0.5,40,0\n"}"#
        )
    );
    assert!(!json.contains("transport"), "{json}");
    assert_eq!(Scenario::from_json(&json, "s.json").unwrap(), scenario);
    assert_eq!(Scenario::from_toml(&scenario.to_toml(), "s.toml").unwrap(), scenario);
    let part = read("replay = { file = \"uplink.pcapng\", from = \"1s\", to = \"3s\" }").unwrap();
    assert_eq!(packets(&part), [packet(0, 40, None), packet(2000, 40, None)]);
    let text = read("replay = \"calls.csv\"\ndscp = 46\nplay-out = \"60ms\"").unwrap();
    assert_eq!(packets(&text), [packet(0, 200, None), packet(20, 200, None)]);
    assert_eq!(text.network().flows[0].dscp, Dscp::new(46).unwrap());
}

#[test]
fn what_is_wrong_stands_at_its_key() {
    for (keys, message) in [
        ("replay = \"downlink.pcap\"", "replay: downlink.pcap: is no capture"),
        ("replay = { file = \"downlink.pcap\" }", "replay.file: downlink.pcap: is no capture"),
        ("replay = \"walk.csv\"", "replay: walk.csv: no such file"),
        (
            "replay = {}",
            "replay: needs the `file` of a capture, such as \"uplink.pcapng\", or its text as `data`",
        ),
        (
            "replay = { data = \"time_s,size_B\\n2,40\\n1,40\\n\" }",
            "replay.data: line 3: 1s comes after 2s, but times do not go back",
        ),
        (
            "replay = { file = \"calls.csv\", to = \"1s\" }",
            "replay.to: only of a capture is a part taken; leave this key out",
        ),
        (
            "replay = { file = \"uplink.pcapng\", from = \"2s\", to = \"1s\" }",
            "replay.to: no packet comes from 2s to 1s; choose a later time",
        ),
        (
            "replay = \"calls.csv\"\ntransport = { udp = \"cbr\", rate = \"1Mbps\" }",
            "transport: `replay` says what the flows send; leave out this key or that",
        ),
        (
            "replay = \"calls.csv\"\napplication = { model = \"game\" }",
            "application: `replay` says what the flows send; leave out this key or that",
        ),
        (
            "replay = \"calls.csv\"\nvolume = \"1MB\"",
            "volume: `replay` says what the flows send; leave out this key or that",
        ),
        (
            "replay = \"uplink.pcapng\"\ndscp = 46",
            "dscp: the packets of `replay` have codepoints of their own; leave this key out",
        ),
        (
            "replay = \"calls.csv\"\nstart = \"100s\"",
            "replay: its first packet would be sent at 100s, but the flows end at 100s; use an earlier `start`",
        ),
        ("replay = \"calls.csv\"\necn = \"classic\"", "ecn: only TCP feeds marks back to its sender"),
    ] {
        let found = read(keys).unwrap_err();
        let found = found.split_once("flows[0].").map_or(found.as_str(), |(_, found)| found);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    Scenario::from_toml_for(&with("replay = \"calls.csv\""), "s.toml", Driver::RealPackets, &TwoFiles)
        .unwrap();
    let none = Scenario::from_toml_for(&with("replay = \"up.pcap\""), "s.toml", Driver::Simulator, &NoFiles);
    let none = none.unwrap_err().to_string();
    assert!(none.ends_with(
        "up.pcap: no capture is read here; write its packets as CSV, time_s,size_B,dscp, in `data`"
    ));
}

#[test]
fn notices_know_the_codepoints_of_packets() {
    let notices = |keys: &str| {
        let queue = "{ scheduler = \"drr\", queues = [{ name = \"voice\", match = { dscp = \"EF\" }, rule = { aqm = \"drop-tail\", \
                     limit = \"9p\" } }, { name = \"rest\", rule = { aqm = \"drop-tail\", limit = \"9p\" } }] }";
        let text = with(keys);
        let begin = text.find("queue = ").unwrap();
        let end = begin + text[begin..].find('\n').unwrap();
        let text = format!("{}queue = {queue}{}", &text[..begin], &text[end..]);
        let scenario = Scenario::from_toml_for(&text, "s.toml", Driver::Simulator, &TwoFiles).unwrap();
        scenario.notices().iter().filter(|notice| notice.text.contains("voice")).count()
    };
    assert_eq!(notices("replay = \"uplink.pcapng\""), 0, "its packets are EF");
    assert_eq!(notices("replay = \"calls.csv\""), 1, "none is");
}

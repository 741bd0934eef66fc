//! Valid scenarios are read, written and read again; the schema describes all of them.

use perhop_scenario::Scenario;
use perhop_sim::transport::tcp::CongestionParams;

use crate::messages::{GOOD, TRANSPORT};

#[test]
fn the_example_reads_and_round_trips() {
    let scenario = Scenario::from_toml(GOOD, "s.toml").unwrap();
    let canonical = serde_json::to_string(&scenario).unwrap();
    let again = Scenario::from_json(&canonical, "json").unwrap();
    assert_eq!(again, scenario);
    assert_eq!(serde_json::to_string(&again).unwrap(), canonical);
    let network = scenario.network();
    assert_eq!((network.flows.len(), network.links.len(), network.nodes), (4, 2, 2));
}

#[test]
fn what_is_written_as_toml_reads_as_the_same() {
    let live = "[live]\nip = 6\nsysctl = { \"net.ipv4.tcp_sack\" = 0, \"net.ipv4.tcp_rmem\" = \"4096 87380 6291456\" }\n";
    let flow = "[[flows]]\nname = \"best effort\"\nlive = { congestion = \"cubic\" }\nfrom = \"edge\"\nto = \"core\"\n\
                transport = { udp = \"cbr\", rate = \"1Mbps\" }\n";
    let text = format!("{GOOD}{flow}{live}");
    let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
    assert_eq!(Scenario::from_toml(&scenario.to_toml(), "again.toml").unwrap(), scenario);
}

#[test]
fn every_transport_reads_and_round_trips() {
    for transport in [
        "udp = \"on-off\", rate = \"64kbps\", packet = \"200B\", on = \"1.004s\", off = \"1.587s\"",
        "udp = \"on-off\", rate = \"1Mbps\", on = \"100s\", off = \"100s\", periods = \"constant\"",
        "rap = \"aimd\", max-rate = \"1Mbps\"",
        "tfrc = \"rfc5348\", history-discounting = false",
    ] {
        let scenario = Scenario::from_toml(&GOOD.replacen(TRANSPORT, transport, 1), "s.toml").unwrap();
        let canonical = serde_json::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_json(&canonical, "json").unwrap(), scenario, "{canonical}");
    }
}

#[test]
fn a_service_becomes_a_codepoint_and_blue_is_the_default() {
    let dscp = |service: &str| {
        let best_effort = GOOD.replace("profile = ", "# ").replacen("count = 4", service, 1);
        Scenario::from_toml(&best_effort, "s.toml").unwrap().network().flows[0].dscp.get()
    };
    assert_eq!(["", "service = \"blue\"", "service = \"green\""].map(dscp), [0, 0, 3]);
}

#[test]
fn the_schema_knows_every_block_and_every_key() {
    let schema = perhop_scenario::schema().to_string();
    for block in perhop_core::registry() {
        if block.name != "fifo" {
            assert!(schema.contains(&format!("\"const\":\"{}\"", block.name)), "{}", block.name);
        }
    }
    for control in CongestionParams::all() {
        assert!(schema.contains(&format!("\"const\":\"{}\"", control.name())), "{}", control.name());
    }
    for key in [
        "initial-window",
        "mean-packet",
        "send-jitter",
        "additionalProperties",
        "token-bucket",
        "rfc5348",
        "aimd",
    ] {
        assert!(schema.contains(key), "{key}");
    }
    assert!(perhop_scenario::blocks().as_array().unwrap().len() >= 6);
}

#[test]
fn summaries_of_congestion_controls_begin_alike() {
    let blocks = perhop_scenario::blocks();
    let controls = blocks.as_array().unwrap().iter().filter(|block| block["role"] == "congestion-control");
    for block in controls {
        assert!(!block["summary"].as_str().unwrap().starts_with(char::is_lowercase), "{block}");
    }
}

#[test]
fn blocks_say_which_numbers_they_take() {
    let blocks = perhop_scenario::blocks();
    let inverse = blocks.as_array().unwrap().iter().find(|block| block["name"] == "inverse-rate").unwrap();
    let kind = |name: &str| inverse["parameters"][name]["type"].as_str().unwrap();
    assert_eq!(["k", "m", "weight"].map(kind), ["number above 0", "number from 1", "number above 0 to 1"]);
}

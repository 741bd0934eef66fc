//! Groups of users of an application: the flows that they have, and what is wrong beside them.

use perhop_core::{Bytes, Duration};
use perhop_scenario::{Driver, NoFiles, Scenario};
use perhop_sim::{Connection, Marking, TransportSpec};

use crate::messages::{GOOD, TRANSPORT};

/// The example, whose flows are users of an application.
fn with(application: &str, transport: &str) -> String {
    let text = GOOD.replacen(TRANSPORT, transport, 1);
    text.replacen("profile = {", &format!("application = {{ {application} }}\nprofile = {{"), 1)
}

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "s.toml").unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn a_user_has_two_flows_for_each_connection() {
    let scenario = read(&with(
        "model = \"web\", connections = 2, request = \"300B\"",
        "tcp = \"linux\", packet = \"1500B\"",
    ));
    let network = scenario.network();
    let users = &network.applications[0].users;
    assert_eq!((network.flows.len(), users.len()), (16, 4), "four users, two connections, two directions");
    assert_eq!(users[1], [Connection { response: 2, request: 10 }, Connection { response: 3, request: 11 }]);
    let (response, request) = (&network.flows[2], &network.flows[10]);
    assert_eq!((&*response.name, &*request.name), ("gold/2", "gold (reverse)/2"));
    assert_eq!((response.from, response.to), (request.to, request.from));
    assert!(matches!(response.marking, Marking::Host(_)) && request.marking == Marking::None);
    let [TransportSpec::Tcp(down), TransportSpec::Tcp(up)] = [&response.transport, &request.transport] else {
        panic!("both are TCP")
    };
    assert_eq!((down.packet, up.packet), (Bytes::new(1500), Bytes::new(352)), "a request is one packet");
    assert!(!down.handshake && up.handshake, "the connection opens once");
    assert_eq!((down.delayed_ack, up.delayed_ack), (Duration::from_millis(40), Duration::from_millis(40)));
    let classes: Vec<(String, u32)> =
        scenario.classes().into_iter().map(|class| (class.name, class.flows)).collect();
    assert_eq!(classes, [("gold".into(), 8), ("gold (reverse)".into(), 8)]);
    assert_eq!(scenario.memory().flows, 16);
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(Scenario::from_json(&json, "s.json").unwrap(), scenario);
}

#[test]
fn groups_before_and_after_keep_their_numbers() {
    let text = with("model = \"request-response\"", TRANSPORT);
    let other = "\n[[flows]]\nname = \"bulk\"\ncount = 3\nfrom = \"edge\"\nto = \"core\"\ntransport = { tcp = \"reno\" }\n";
    let text = format!(
        "{text}{other}{}",
        other
            .replace("bulk", "calls")
            .replace("transport = { tcp = \"reno\" }", "application = { model = \"call\" }")
    );
    let network = read(&text).network();
    let names: Vec<&str> = network.flows.iter().map(|flow| &*flow.name).collect();
    assert_eq!(names[..4], ["gold/0", "gold/1", "gold/2", "gold/3"]);
    assert_eq!(
        (names[4], names[8], names[11], names[14]),
        ("gold (reverse)/0", "bulk/0", "calls/0", "calls (reverse)/0")
    );
    assert_eq!(network.applications[1].users[2], [Connection { response: 13, request: 16 }]);
    assert!(matches!(&network.flows[11].transport, TransportSpec::Udp(udp) if udp.packet == Bytes::new(200)));
}

#[test]
fn a_shared_profile_is_divided_by_all_flows_of_responses() {
    let text = with("model = \"web\"", TRANSPORT);
    let begin = text.find("profile = {").unwrap();
    let text = format!(
        "{}profile = \"ours\"\n\n[profiles.ours]\nmarker = \"token-bucket\"\nrate = \"2.4Mbps\"\nburst = \"40kB\"\n",
        &text[..begin]
    );
    let scenario = read(&text);
    assert_eq!(
        scenario.reserved(&scenario.flows[0]).unwrap().as_bps(),
        100_000,
        "four users, six connections each"
    );
}

#[test]
fn what_is_wrong_stands_at_its_key() {
    let linux = "tcp = \"linux\"";
    for (application, transport, message) in [
        ("model = \"wep\"", linux, "application.model: unknown model `wep`; did you mean `web`?"),
        ("connections = 6", linux, "application: key `model` is missing"),
        ("model = \"web\", scale = 0.0", linux, "application.scale: the factor is above 0 and at most 10000"),
        (
            "model = \"web\", connections = 0",
            linux,
            "application.connections: a user has 1 to 100 connections",
        ),
        (
            "model = \"web\", main = { mu = 99.0, sigma = 1.0, least = \"1B\", most = \"1MB\" }",
            linux,
            "application.main: `mu`, of the logarithm of bytes, lies between those of `least` and `most`, 0.00 and 13.82",
        ),
        ("model = \"video\", rates = []", linux, "application.rates: name at least one rate"),
        (
            "model = \"web\"",
            "udp = \"cbr\", rate = \"1Mbps\"",
            "transport: `web` runs over TCP; write one such as",
        ),
        ("model = \"game\"", linux, "transport: `game` sends datagrams of its own; leave this key out"),
        (
            "model = \"web\"",
            "tcp = \"reno\", packet = \"40B\"",
            "transport.packet: with headers of 40B (`ack`) a packet of 40B",
        ),
        (
            "model = \"web\"",
            "tcp = \"linux\", congestion = \"bbr\", idle-restart = \"none\"",
            "transport.idle-restart: `bbr` has a model of the path instead; leave this key out",
        ),
    ] {
        let error = Scenario::from_toml(&with(application, transport), "s.toml").unwrap_err().to_string();
        assert!(error.contains(message) && error.starts_with("s.toml:"), "{error}");
    }
    let web = with("model = \"web\"", linux);
    for (key, message) in [
        ("volume = \"1MB\"", "volume: the application decides how much is sent; leave this key out"),
        ("stop = \"5s\"", "stop: users go on until the run ends; leave this key out"),
    ] {
        let text = web.replacen("count = 4", &format!("count = 4\n{key}"), 1);
        let error = Scenario::from_toml(&text, "s.toml").unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let without = |text: &str, part: &str| {
        assert!(text.contains(part));
        Scenario::from_toml(&text.replacen(part, "", 1), "s.toml").unwrap_err().to_string()
    };
    let line = format!("transport = {{ {linux} }}\n");
    let missing = without(&web, &line);
    assert!(missing.contains("application: `web` runs over TCP: give the group a `transport`"), "{missing}");
    let missing = without(GOOD, &format!("transport = {{ {TRANSPORT} }}\n"));
    assert_eq!(missing, "s.toml:12: flows[0]: key `transport` is missing");
}

#[test]
fn keys_of_idle_times_need_an_application() {
    for key in ["idle-restart = \"none\"", "cwnd-validation = \"rfc7661\""] {
        let transport = format!("tcp = \"linux\", {key}");
        read(&with("model = \"web\"", &transport));
        let text = GOOD.replacen(TRANSPORT, &transport, 1);
        let error = Scenario::from_toml(&text, "s.toml").unwrap_err().to_string();
        assert!(
            error.contains("without an `application` the flow has data to send until its end"),
            "{error}"
        );
    }
}

#[test]
fn users_are_on_real_packets_too() {
    let read = |text: &str| Scenario::from_toml_for(text, "s.toml", Driver::RealPackets, &NoFiles);
    for model in ["web", "video", "request-response"] {
        read(&with(&format!("model = \"{model}\""), "tcp = \"linux\"")).unwrap();
    }
    for model in ["call", "game"] {
        let text = with(&format!("model = \"{model}\""), TRANSPORT);
        read(&text.replacen(&format!("transport = {{ {TRANSPORT} }}\n"), "", 1)).unwrap();
    }
}

#[test]
fn a_group_cannot_have_the_name_of_another_groups_requests() {
    let text = with("model = \"web\"", "tcp = \"linux\"");
    let other = "\n[[flows]]\nname = \"gold (reverse)\"\nfrom = \"edge\"\nto = \"core\"\ntransport = { tcp = \"reno\" }\n";
    let error = Scenario::from_toml(&format!("{text}{other}"), "s.toml").unwrap_err().to_string();
    assert!(error.contains("an earlier group has the name `gold (reverse)`"), "{error}");
}

//! ECN in scenarios: refusals and notices where nobody is capable of it, or where it cannot act.

use super::*;

/// The message for the example with `ecn` and another change, where this driver runs it.
fn with_ecn(driver: Driver, from: &str, to: &str) -> Result<Scenario, String> {
    assert!(ASSURED.contains(from), "{from}");
    let text =
        ASSURED.replacen("total = \"20/80/0.1\"", "total = \"20/80/0.1\", ecn = true", 1).replace(from, to);
    Scenario::from_toml_for(&text, "s.toml", driver, &NoFiles).map_err(|error| error.to_string())
}

const TCP: &str = "transport = { tcp";

/// This transport in a flow that has `ecn`.
fn capable(ecn: &str, transport: &str) -> String {
    format!("ecn = \"{ecn}\"\n{transport}")
}

#[test]
fn ecn_is_refused_on_real_packets_where_nobody_is_capable() {
    let place = "s.toml:16: links.bottleneck.queue.queues[0].rule.ecn: ";
    let kernel = with_ecn(Driver::RealPackets, "duration", "duration").unwrap_err();
    assert!(
        kernel.starts_with(&format!("{place}the kernel's TCP does not ask for ECN by itself")),
        "{kernel}"
    );
    let granted = "live = { sysctl = { \"net.ipv4.tcp_ecn\" = 2 } }\nduration";
    assert!(with_ecn(Driver::RealPackets, "duration", granted).is_err(), "2 only grants what others ask for");
    let no_tcp =
        with_ecn(Driver::RealPackets, "tcp = \"newreno\"", "udp = \"cbr\", rate = \"1Mbps\"").unwrap_err();
    assert!(no_tcp.starts_with(&format!("{place}only TCP is ECN-capable")), "{no_tcp}");
    for on in ["1", "\"1\"", "3"] {
        let asked = format!("live = {{ sysctl = {{ \"net.ipv4.tcp_ecn\" = {on} }} }}\nduration");
        with_ecn(Driver::RealPackets, "duration", &asked).unwrap();
    }
    with_ecn(Driver::RealPackets, TCP, &capable("classic", TCP)).unwrap();
    let one = "transport = { tcp = \"newreno\" }";
    let of_l4s = |live: &str| {
        let transport = format!("{live}transport = {{ sack = true, tcp");
        with_ecn(Driver::RealPackets, TCP, &capable("l4s", &transport))
    };
    of_l4s("").unwrap();
    let l4s = of_l4s("live = { sender = \"kernel\" }\n");
    assert!(
        l4s.as_ref().is_err_and(|text| text.contains(".ecn: Linux sends ECT(1) only with TCP Prague")),
        "{l4s:?}"
    );
    let unlike = with_ecn(Driver::RealPackets, one, &capable("classic", one)).unwrap_err();
    assert!(unlike.contains("flows[2].ecn: the kernel uses ECN in one way for all"), "{unlike}");
    let without = ASSURED.replacen("total = \"20/80/0.1\"", "total = \"20/80/0.1\", ecn = false", 1);
    Scenario::from_toml_for(&without, "s.toml", Driver::Simulator, &NoFiles).unwrap();
}

#[test]
fn ecn_without_capable_flows_is_noticed() {
    let notices = |driver, from: &str, to: &str| {
        let notices = with_ecn(driver, from, to).unwrap().notices();
        notices_in(None, "s.toml", notices).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let idle = notices(Driver::Simulator, "duration", "duration");
    let [notice] = &idle[..] else { panic!("{idle:?}") };
    let expected =
        "s.toml: links.bottleneck.queue.queues[0].rule.ecn: no flow that passes this link is ECN-capable";
    assert!(notice.starts_with(expected), "{notice}");
    assert!(notices(Driver::Simulator, TCP, &capable("classic", TCP)).is_empty());
    let asked = "live = { sysctl = { \"net.ipv4.tcp_ecn\" = 1 } }\nduration";
    assert!(notices(Driver::RealPackets, "duration", asked).is_empty(), "the kernel is capable");
}

#[test]
fn ecn_is_refused_where_it_cannot_act() {
    let udp = "transport = { udp";
    for (from, to, message) in [
        (
            udp,
            capable("classic", udp),
            "flows[1].ecn: only TCP feeds marks back to its sender, and UDP may send `ecn = \"l4s\"`",
        ),
        (TCP, capable("accurate", TCP), "flows[0].ecn: counts of marks travel"),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", congestion = { control = \"reno\", ecn-backoff = true }".into(),
            "flows[0].transport.congestion.ecn-backoff: without `ecn` no packet",
        ),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", accecn = \"ace\"".into(),
            "flows[0].transport.accecn: the ACE field is part of Accurate ECN",
        ),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", congestion = \"dctcp\"".into(),
            "flows[0].ecn: `dctcp` reduces its window by the share of packets that are marked",
        ),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", congestion = \"prague\"".into(),
            "flows[0].ecn: `prague` requires exact counts of marks: give the flow `ecn = \"accurate\"`",
        ),
        (
            TCP,
            capable("classic", "transport = { congestion = \"prague\", tcp"),
            "flows[0].ecn: `prague` requires exact counts of marks",
        ),
        (
            TCP,
            capable("classic", "transport = { congestion = \"bbr\", tcp"),
            "flows[0].ecn: `bbr` does not react to marks",
        ),
    ] {
        let refused = with_ecn(Driver::Simulator, from, &to).unwrap_err();
        assert!(refused.contains(message), "{refused}");
    }
}

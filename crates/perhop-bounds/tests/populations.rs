//! Flows that come and go: nothing at their hosts bounds them together, and packets may be small.

use perhop_bounds::{Bounds, bounds};
use perhop_scenario::Scenario;

/// The bounds of flows of a link of 10 Mbit/s; `keys` are those of the flows.
fn of_flows(keys: &str) -> Bounds {
    let text = format!(
        r#"
        duration = "10s"
        [links.line]
        from = "A"
        to = "B"
        rate = "10Mbps"
        delay = "5ms"
        queue = {{ aqm = "drop-tail", limit = "100p" }}
        [profiles.all]
        marker = "token-bucket"
        rate = "2Mbps"
        burst = "6kB"
        out = "drop"
        [[flows]]
        name = "some"
        from = "A"
        to = "B"
        {keys}
        "#
    );
    bounds(&Scenario::from_toml(&text, "text").unwrap().network())
}

const COME_AND_GO: &str = r#"arrivals = { rate = "20/s" }
    sizes = { constant = "100kB" }
    transport = { udp = "cbr", rate = "2Mbps", packet = "1500B" }"#;

#[test]
fn access_links_and_profiles_of_its_own_flows_bound_no_population() {
    let own = r#"profile = { marker = "token-bucket", rate = "1Mbps", burst = "3kB", out = "drop" }"#;
    for keys in ["", r#"access = { rate = "2Mbps", delay = "1ms" }"#, own] {
        let found = of_flows(&format!("{COME_AND_GO}\n{keys}"));
        // A limit bounds the wait of what is let in: 100 packets, and one that is on the link.
        assert!(found.links[0].delay.0.as_ref().unwrap().as_secs_f64() > 0.12, "{keys}");
        assert!(found.links[0].loss.0.is_some(), "{keys}");
    }
}

#[test]
fn a_profile_that_a_population_shares_bounds_it() {
    let found = of_flows(&format!("{COME_AND_GO}\nprofile = \"all\""));
    // Behind the meter 6 kB, of which one packet is the one that waits, of a header at least: 5972 B.
    assert_eq!(found.links[0].delay.0.as_ref().map(|most| most.as_nanos()), Ok(4_777_602));
    assert_eq!(found.links[0].backlog.0, Ok(6001));
}

#[test]
fn a_packet_that_opens_a_connection_waits_behind_all_others() {
    // 6000 B less a header of 52 B.
    let found = of_flows("count = 3\ntransport = { tcp = \"linux\" }\nprofile = \"all\"");
    assert_eq!(found.links[0].delay.0.as_ref().map(|most| most.as_nanos()), Ok(4_758_402));
}

#[test]
fn windows_count_in_packets() {
    // Three windows of 31 segments, with the probe and the retransmission of a tail.
    let of = |window: u32| {
        of_flows(&format!("count = 3\ntransport = {{ tcp = \"linux\", window = \"{window}p\" }}"))
    };
    assert_eq!(of(31).links[0].loss.0, None);
    assert!(of(32).links[0].loss.0.is_some());
}

//! Keys of links that change and lose packets: what they read as, and what is wrong with others.

use perhop_core::{Duration, Probability};
use perhop_scenario::{Driver, Scenario};
use perhop_sim::medium::{Change, Outage};

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
fn real_packets_have_constant_links() {
    let text = with("reverse = { loss = 0.01 }");
    let error = Scenario::from_toml_for(&text, "s.toml", Driver::RealPackets).unwrap_err().to_string();
    assert!(
        error.contains("links.bottleneck.reverse.loss: on real packets links are constant, and lose"),
        "{error}"
    );
}

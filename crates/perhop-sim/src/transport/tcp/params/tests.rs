use super::*;

fn read(table: &str) -> TcpParams {
    serde_json::from_str(table).unwrap()
}

#[test]
fn linux_stands_for_what_its_documentation_says() {
    let by_hand = read(
        r#"{"tcp": "newreno", "sack": true, "prr": true, "byte-counting": true, "handshake": true,
            "limited-transmit": true, "congestion": "cubic", "initial-window": "10p", "delayed-ack": "40ms",
            "quick-acks": "16p", "tick": "1us", "initial-rto": "1s", "min-rto": "200ms",
            "min-rto-bounds": "variation", "max-rto": "120s", "loss-detection": "rack",
            "packet": "1500B", "ack": "52B", "window": "16777216B", "window-tuning": "linux",
            "send-buffer": "4194304B", "reduction": "linux"}"#,
    );
    assert_eq!(read(r#"{"tcp": "linux"}"#), TcpParams { tcp: Variant::Linux, ..by_hand });
}

#[test]
fn windows_and_buffers_are_said_in_bytes_or_packets_and_refused_where_nothing_fits() {
    let of = |keys: &str| read(&format!(r#"{{"tcp": "newreno", "packet": "1500B", "ack": "52B", {keys}}}"#));
    for (keys, offered, buffered) in [
        (r#""window": "100p""#, 100, None),
        (r#""window": "144800B""#, 100, None),
        (r#""window": "144.8kB", "send-buffer": "14480B""#, 100, Some(10)),
        (r#""window": "4MB", "send-buffer": "20p""#, 2762, Some(20)),
        (r#""window": "1448B", "send-buffer": "2895B""#, 1, Some(1)),
    ] {
        let params = of(keys);
        assert_eq!((params.most_offered(), params.most_buffered()), (offered, buffered), "{keys}");
        assert_eq!(params.check(), Ok(()), "{keys}");
        assert_eq!(read(&serde_json::to_string(&params).unwrap()), params, "{keys}");
    }
    for (keys, key) in [
        (r#""window": "0p""#, "window"),
        (r#""window": "1447B""#, "window"),
        (r#""window": "30GB""#, "window"),
        (r#""window": "16777217p""#, "window"),
        (r#""send-buffer": "0B""#, "send-buffer"),
        (r#""send-buffer": "0p""#, "send-buffer"),
        (r#""initial-window": "10p", "send-buffer": "9p""#, "initial-window"),
    ] {
        assert_eq!(of(keys).check().unwrap_err().key(), key, "{keys}");
    }
    for keys in [r#""window": "10""#, r#""window": "10 ms""#, r#""send-buffer": "-1p""#, r#""window": 10"#] {
        let table = format!(r#"{{"tcp": "newreno", {keys}}}"#);
        assert!(serde_json::from_str::<TcpParams>(&table).is_err(), "{keys}");
    }
}

#[test]
fn quic_stands_for_what_its_documentation_says() {
    let by_hand = read(
        r#"{"tcp": "newreno", "packet": "1500B", "ack": "85B", "window": "16777216B", "initial-window": "10p",
            "loss-detection": "quic", "sack": true, "byte-counting": true, "handshake": true,
            "limited-transmit": true, "congestion": "cubic", "slow-start": "hystart++", "pacing": "window",
            "delayed-ack": "25ms", "tick": "1us", "initial-rto": "999ms", "min-rto": "25ms",
            "min-rto-bounds": "persistent-congestion", "max-rto": "60s"}"#,
    );
    let preset = read(r#"{"tcp": "quic"}"#);
    assert_eq!(preset, TcpParams { tcp: Variant::Quic, ..by_hand });
    assert_eq!(preset.payload(), 1415, "1452 bytes of UDP payload less 37 of QUIC's own");
    assert!(!preset.restarts_after_idle() && read(r#"{"tcp": "linux"}"#).restarts_after_idle());
    assert_eq!((preset.first_window(0), preset.first_window(5)), (10, 10));
}

#[test]
fn a_preset_leaves_out_what_has_no_place_beside_the_control() {
    for preset in presets::PRESETS {
        for control in CongestionParams::all() {
            let control = control.name();
            if preset.name != "linux" && preset.name != "quic" || control == "two-windows" {
                continue;
            }
            let table = format!(r#"{{"tcp": "{}", "congestion": "{control}"}}"#, preset.name);
            let params = read(&table);
            assert_eq!(params.check(), Ok(()), "{table}");
            assert_eq!(read(&serde_json::to_string(&params).unwrap()), params, "{table}");
        }
    }
    let class =
        r#"{"tcp": "quic", "congestion": {"control": "python", "class": "a:A", "needs": ["pacing"]}}"#;
    assert_eq!(read(class).check(), Ok(()));
}

#[test]
fn hystart_ends_the_first_slow_start_of_cubic_where_nothing_else_does() {
    for (table, has) in [
        (r#"{"tcp": "linux"}"#, true),
        (r#"{"tcp": "linux", "congestion": {"control": "cubic", "alpha": "raised"}}"#, true),
        (r#"{"tcp": "linux", "congestion": {"control": "cubic", "hystart": false}}"#, false),
        (r#"{"tcp": "linux", "slow-start": "standard"}"#, false),
        (r#"{"tcp": "linux", "congestion": "reno"}"#, false),
        (r#"{"tcp": "newreno", "congestion": "cubic"}"#, false),
        (r#"{"tcp": "newreno", "congestion": {"control": "cubic", "hystart": true}}"#, true),
        (r#"{"tcp": "quic", "congestion": {"control": "cubic", "hystart": true}}"#, true),
    ] {
        let params = read(table);
        assert_eq!((params.has_hystart(), params.check()), (has, Ok(())), "{table}");
        assert_eq!(read(&serde_json::to_string(&params).unwrap()), params, "{table}");
    }
}

#[test]
fn ns_1998_stands_for_what_its_documentation_says() {
    let by_hand = read(
        r#"{"tcp": "newreno", "newreno-timer": "slow-but-steady", "partial-window-deflation": "to-ssthresh",
            "tick": "100ms", "rtt-arithmetic": "fixed-point", "initial-rto": "6s", "min-rto": "200ms", "initial-window": "1p", "handshake": false,
            "limited-transmit": false}"#,
    );
    let preset = read(r#"{"tcp": "ns-1998"}"#);
    assert_eq!(preset, TcpParams { tcp: Variant::Ns1998, ..by_hand });
    assert_eq!(preset.initial_ssthresh, None, "the window");
    assert_eq!(preset.check(), Ok(()));
    let other = read(r#"{"tcp": "ns-1998", "newreno-timer": "impatient", "window": "64p"}"#);
    assert_eq!(other.newreno_timer, NewRenoTimer::Impatient);
    assert_eq!(other.partial_window_deflation, PartialWindowDeflation::ToSsthresh);
    assert_eq!(read(&serde_json::to_string(&other).unwrap()), other);
}

#[test]
fn a_key_that_is_given_wins_over_the_preset_and_survives_a_round_trip() {
    let params = read(r#"{"tcp": "linux", "congestion": "reno", "sack": false, "prr": false}"#);
    assert_eq!((params.congestion.0.name(), params.sack), ("reno", false));
    assert_eq!((params.loss_detection, params.slow_start), (None, None), "parts of SACK, and of CUBIC");
    assert_eq!((params.check(), read(&serde_json::to_string(&params).unwrap())), (Ok(()), params));
    let old = read(r#"{"tcp": "linux", "loss-detection": "duplicate-acks", "slow-start": "standard"}"#);
    assert_eq!((old.has_rack(), old.slow_start), (false, Some(SlowStart::Standard)));
    assert_eq!((old.check(), read(&serde_json::to_string(&old).unwrap())), (Ok(()), old));
}

#[test]
fn refuses_what_does_not_fit_together() {
    for (table, key) in [
        (r#"{"tcp": "newreno", "prr": true}"#, "prr"),
        (r#"{"tcp": "newreno", "sack": true, "prr": true, "congestion": "bbr"}"#, "prr"),
        (r#"{"tcp": "newreno", "byte-counting": true, "congestion": "cubic"}"#, "byte-counting"),
        (r#"{"tcp": "newreno", "reduction": "linux", "congestion": "prague"}"#, "reduction"),
        (r#"{"tcp": "newreno", "reduction": "exact", "sack": true, "congestion": "bbr"}"#, "reduction"),
        (r#"{"tcp": "reno", "byte-counting": true, "congestion": "ledbat"}"#, "byte-counting"),
        (r#"{"tcp": "newreno", "quick-acks": "3p"}"#, "quick-acks"),
        (r#"{"tcp": "two-windows", "congestion": "cubic"}"#, "congestion"),
        (r#"{"tcp": "ns-1998", "sack": true}"#, "sack"),
        (r#"{"tcp": "newreno", "congestion": "paced", "send-jitter": "1ms"}"#, "send-jitter"),
        (r#"{"tcp": "newreno", "loss-detection": "rack"}"#, "loss-detection"),
        (r#"{"tcp": "newreno", "pacing": "window", "send-jitter": "1ms"}"#, "send-jitter"),
        (r#"{"tcp": "newreno", "pacing": "window", "congestion": "bbr"}"#, "pacing"),
        (r#"{"tcp": "newreno", "pacing": "none", "congestion": "prague"}"#, "pacing"),
        (r#"{"tcp": "newreno", "congestion": "bbr", "slow-start": "hystart++"}"#, "slow-start"),
        (r#"{"tcp": "newreno", "congestion": "bbr3", "initial-ssthresh": "8p"}"#, "initial-ssthresh"),
        (r#"{"tcp": "linux", "congestion": "ledbat", "initial-ssthresh": "8p"}"#, "initial-ssthresh"),
        (
            r#"{"tcp": "newreno", "slow-start": "standard", "congestion": {"control": "cubic", "hystart": true}}"#,
            "slow-start",
        ),
        (r#"{"tcp": "two-windows", "congestion": {"control": "reno", "ecn-backoff": true}}"#, "congestion"),
    ] {
        assert_eq!(read(table).check().unwrap_err().key(), key);
    }
}

#[test]
fn what_a_preset_sets_is_not_refused_where_it_cannot_act() {
    for table in [
        r#"{"tcp": "linux"}"#,
        r#"{"tcp": "linux", "congestion": "bbr"}"#,
        r#"{"tcp": "linux", "delayed-ack": "0s"}"#,
        r#"{"tcp": "newreno", "byte-counting": true, "congestion": "scalable"}"#,
        r#"{"tcp": "newreno", "quick-acks": "3p", "delayed-ack": "40ms"}"#,
    ] {
        assert_eq!(read(table).check(), Ok(()), "{table}");
    }
}

#[test]
fn newreno_keys_are_refused_where_they_cannot_act() {
    for (table, key) in [
        (r#"{"tcp": "reno", "newreno-timer": "slow-but-steady"}"#, "newreno-timer"),
        (r#"{"tcp": "reno", "newreno-timer": "impatient"}"#, "newreno-timer"),
        (r#"{"tcp": "two-windows", "newreno-timer": "slow-but-steady"}"#, "newreno-timer"),
        (r#"{"tcp": "linux", "newreno-timer": "slow-but-steady"}"#, "newreno-timer"),
        (
            r#"{"tcp": "newreno", "sack": true, "partial-window-deflation": "to-ssthresh"}"#,
            "partial-window-deflation",
        ),
    ] {
        let refused = serde_json::from_str::<TcpParams>(table).unwrap_err().to_string();
        assert!(refused.contains(&format!("{key}\u{1f}{NO_PARTIAL_ACKS}")), "{refused}");
    }
}

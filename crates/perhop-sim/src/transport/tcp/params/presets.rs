//! The defaults of each value of the key `tcp`, each with its source and since when it is so: one
//! declaration, from which a table's keys are filled in, and the page of defaults is made.

use serde_json::{Map, Value};

use super::Variant;
use crate::transport::tcp::congestion::{Congestion, CongestionParams};

/// A preset: the system that one value of the key `tcp` names, and its defaults.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The value of `tcp`.
    pub name: &'static str,
    /// The system, in one line.
    pub system: &'static str,
    /// The defaults. A default of `tcp = "newreno"` is repeated only where it is needed beside other keys.
    pub defaults: &'static [PresetDefault],
}

/// One default of a preset.
#[derive(Clone, Copy, Debug)]
pub struct PresetDefault {
    /// The key; of a parameter of a congestion control `congestion.` and the parameter.
    pub key: &'static str,
    /// The value.
    pub value: Given,
    /// The source of the value.
    pub source: &'static str,
    /// The version or year since which the default holds.
    pub since: &'static str,
}

/// A value of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Text, as in a scenario.
    Text(&'static str),
    /// True or false.
    Flag(bool),
    /// A rule of the sender for a key that is left out. Canonical text has no such key, since it would be
    /// refused beside others.
    Rule(&'static str),
}

impl Given {
    /// Returns the value as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Text(text) | Self::Rule(text) => text,
            Self::Flag(true) => "true",
            Self::Flag(false) => "false",
        }
    }
}

impl PresetDefault {
    /// Says where the value comes from, and since when it holds.
    const fn source(self, source: &'static str, since: &'static str) -> Self {
        Self { source, since, ..self }
    }
}

const fn given(key: &'static str, value: Given) -> PresetDefault {
    PresetDefault { key, value, source: "", since: "" }
}

const fn text(key: &'static str, value: &'static str) -> PresetDefault {
    given(key, Given::Text(value))
}

const fn flag(key: &'static str, value: bool) -> PresetDefault {
    given(key, Given::Flag(value))
}

const fn rule(key: &'static str, value: &'static str) -> PresetDefault {
    given(key, Given::Rule(value))
}

/// The agents of ns-2.35, which the papers' variants are: every key, since the other presets have what they
/// do not change from here.
const PAPERS: Preset = Preset {
    name: "newreno",
    system: "an agent of ns-2.35, with which papers simulated; also `reno` and `two-windows`",
    defaults: &[
        text("packet", "1000B").source("`packetSize_` 1000 (`ns-default.tcl`)", "ns-2.1"),
        text("ack", "40B")
            .source("IPv4 and TCP without options, 20 + 20 bytes (`tcpip_base_hdr_size_`)", "ns-2.1"),
        text("window", "1000p").source(
            "perhop's own: an agent of ns-2 has 20 packets (`window_`), and the papers' rates need more",
            "perhop 0.1",
        ),
        text("window-tuning", "none").source("an agent of ns-2 has one window (`window_`)", "ns-2.1"),
        rule("send-buffer", "unlimited").source("an agent of ns-2 has no buffer", "ns-2.1"),
        text("initial-window", "1p")
            .source("RFC 2001, section 1; ns-2's `windowInit_` before it became 2", "1997"),
        rule("initial-ssthresh", "the largest window")
            .source("RFC 5681, section 3.1: arbitrarily high, such as the receiver's window", "1997"),
        text("tick", "10ms").source("`tcpTick_` 0.01, 0.1 before", "ns-2.35"),
        text("rtt-arithmetic", "real").source("RFC 6298, section 2", "2000"),
        text("min-rto", "200ms").source("`minrto_` 0.2; RFC 6298, section 2.4, asks for 1 s", "ns-2.35"),
        text("min-rto-bounds", "timeout").source("RFC 6298, section 2.4", "2000"),
        text("initial-rto", "3s").source(
            "`rtxcur_init_` 3.0, 6 before (RFC 2988, section 2.1; 1 s since RFC 6298)",
            "January 2006",
        ),
        text("max-rto", "60s").source("`maxrto_` 60; RFC 6298, section 2.5: at least", "ns-2.35"),
        text("delayed-ack", "0s").source("`Agent/TCPSink` acknowledges every packet", "ns-2.1"),
        text("quick-acks", "0p").source("without `delayed-ack` there is nothing to hurry", "ns-2.1"),
        text("newreno-timer", "impatient").source("RFC 6582, section 3.2; `newreno_changes1_` 1", "May 2003"),
        text("partial-window-deflation", "by-acknowledged")
            .source("RFC 6582, section 3.2; `partial_window_deflation_` 1", "May 2003"),
        flag("handshake", false).source("an agent that sends data at once", "ns-2.1"),
        flag("limited-transmit", false).source("ns-2's `singledup_` before it became 1 (RFC 3042)", "ns-2.1"),
        flag("sack", false).source("`Agent/TCP/Newreno`; SACK is an agent of its own", "ns-2.1"),
        flag("prr", false).source("ns-2 has none", "ns-2.1"),
        rule("loss-detection", "duplicate-acks").source("RFC 5681, section 3.2, and RFC 6675", "1990"),
        text("congestion", "reno").source("RFC 5681", "1990"),
        flag("byte-counting", false).source("RFC 5681, section 3.1: by ACKs", "1990"),
        text("accecn", "exact").source(
            "perhop's own: a count without a limit, so that no ACK needs options; `ace` has RFC 9768's three \
                bits",
            "perhop 0.1",
        ),
        rule("slow-start", "standard").source("RFC 5681, section 3.1", "1990"),
        rule("congestion.alpha", "raised").source("RFC 9438, section 4.3 (`congestion = \"cubic\"`)", "2023"),
        rule("congestion.hystart", "false").source("RFC 9438 has none (`congestion = \"cubic\"`)", "2005"),
        rule("reduction", "exact").source("RFC 5681, section 3.2", "1990"),
        rule("pacing", "none")
            .source("windows are not paced; a congestion control may have a rate of its own", "1990"),
        rule("idle-restart", "rfc5681").source("RFC 5681, section 4.1", "1999"),
        rule("cwnd-validation", "rfc7661").source("RFC 7661, section 4.3", "2015"),
        text("send-jitter", "0s").source("`overhead_` 0", "ns-2.1"),
    ],
};

/// The preset of [`Variant::Linux`].
const LINUX: Preset = Preset {
    name: "linux",
    system: "hosts of Linux 6.18 on Ethernet, with 4 GiB of memory or more",
    defaults: &[
        text("packet", "1500B").source("Ethernet's MTU (RFC 894)", "1984"),
        text("ack", "52B").source(
            "IPv4 and TCP with timestamps, 20 + 20 + 12 bytes (RFC 7323; `tcp_timestamps` = 1)",
            "Linux 2.2",
        ),
        // The other half is the kernel's overhead for segments.
        text("window", "16777216B").source(
            "half of `tcp_rmem`'s maximum of 32 MiB, 6 MiB before (ip-sysctl.rst; \
                `TCP_DEFAULT_SCALING_RATIO`, and `tcp_adv_win_scale` = 1 before 6.6)",
            "Linux 6.16",
        ),
        text("window-tuning", "linux")
            .source("`tcp_moderate_rcvbuf` = 1 (`tcp_rcv_space_adjust`)", "Linux 2.6.7"),
        // It grows to twice the congestion window by itself, so that only its maximum can limit.
        text("send-buffer", "4194304B").source("`tcp_wmem`'s maximum (ip-sysctl.rst)", "Linux 2.6.17"),
        text("initial-window", "10p").source("`TCP_INIT_CWND` (RFC 6928)", "Linux 2.6.39"),
        text("tick", "1us").source("round trips in microseconds (`tcp_rtt_estimator`)", "Linux 3.15"),
        text("min-rto", "200ms").source("`TCP_RTO_MIN`; `tcp_rto_min_us` since 6.11", "Linux 2.4"),
        text("min-rto-bounds", "variation")
            .source("`tcp_rtt_estimator`: `rttvar` is at least `tcp_rto_min`", "Linux 2.4"),
        text("initial-rto", "1s").source("`TCP_TIMEOUT_INIT` (RFC 6298, section 2.1)", "Linux 3.1"),
        text("max-rto", "120s").source("`TCP_RTO_MAX`; `tcp_rto_max_ms` since 6.15", "Linux 2.4"),
        text("delayed-ack", "40ms").source("`TCP_DELACK_MIN`", "Linux 2.4"),
        text("quick-acks", "16p").source("`TCP_MAX_QUICKACKS`", "Linux 2.4"),
        flag("handshake", true).source("RFC 9293, section 3.5", "1981"),
        flag("limited-transmit", true).source("RFC 3042 (`tcp_input.c`)", "Linux 2.6"),
        flag("sack", true).source("RFC 2018; `tcp_sack` = 1", "Linux 2.2"),
        flag("prr", true).source("RFC 9937 (`tcp_cwnd_reduction`)", "Linux 3.2"),
        text("loss-detection", "rack").source("RFC 8985; `tcp_recovery` = 1", "Linux 4.4"),
        text("congestion", "cubic")
            .source("RFC 9438; `tcp_congestion_control`, `CONFIG_DEFAULT_CUBIC`", "Linux 2.6.19"),
        flag("byte-counting", true)
            .source("RFC 3465 without its limit (`tcp_slow_start`, `tcp_cong_avoid_ai`)", "Linux 4.0"),
        text("reduction", "linux").source(
            "`snd_cwnd` in whole segments (`tcp_cong_avoid_ai`, `bictcp_update`), and the state CWR \
                (`tcp_input.c`)",
            "Linux 2.4",
        ),
        rule("congestion.alpha", "constant")
            .source("RFC 8312, section 4.2 (`bictcp_update`)", "Linux 2.6.19"),
        rule("congestion.hystart", "true")
            .source("Ha & Rhee 2011 (`tcp_cubic.c`, `hystart` = 1)", "Linux 2.6.29"),
    ],
};

/// The preset of [`Variant::Quic`].
const QUIC: Preset = Preset {
    name: "quic",
    system: "one stream of QUIC (RFC 9000 and 9002) over IPv6, as far as this sender can act like it",
    defaults: &[
        text("packet", "1500B").source(
            "1452 bytes of UDP payload after path MTU discovery (quic-go, `MaxPacketBufferSize`; Google's \
                quiche, `kMaxOutgoingPacketSize`; msquic, an MTU of 1500: `QUIC_DPLPMTUD_DEFAULT_MAX_MTU`), \
                with UDP and IPv6; RFC 9000, section 14, asks for 1200 at least",
            "2021",
        ),
        text("ack", "85B").source(
            "IPv6 40, UDP 8, a short header with a connection ID of 8 and a packet number of 2 bytes 11, \
                AEAD tag 16 (RFC 9000, section 17.3; RFC 9001, section 5.3), and some 10 for an ACK frame or \
                the head of a STREAM frame (RFC 9000, sections 19.3 and 19.8)",
            "2021",
        ),
        text("window", "16777216B").source(
            "the largest window of a stream: Google's quiche (`kStreamReceiveWindowLimit`) and Cloudflare's \
                (`MAX_STREAM_WINDOW`); quic-go's is 6 MiB (`DefaultMaxReceiveStreamFlowControlWindow`)",
            "2021",
        ),
        text("initial-window", "10p")
            .source("RFC 9002, section 7.2: 10 datagrams, at most 14720 bytes", "2021"),
        text("tick", "1us").source(
            "RFC 9002, section 5: packets are timed one by one; ACK delays count microseconds (RFC 9000, \
                section 19.3)",
            "2021",
        ),
        text("min-rto-bounds", "persistent-congestion").source(
            "RFC 9002, sections 6.2.1 and 7.6.1: three probe timeouts (`kPersistentCongestionThreshold`)",
            "2021",
        ),
        text("min-rto", "25ms").source("`max_ack_delay` (RFC 9000, section 18.2)", "2021"),
        text("initial-rto", "999ms")
            .source("RFC 9002, section 6.2.2: the probe timeout that `kInitialRtt` = 333 ms gives", "2021"),
        text("max-rto", "60s")
            .source("Google's quiche (`kMaxRetransmissionTimeMs`); RFC 9002 has none", "2013"),
        text("delayed-ack", "25ms").source(
            "`max_ack_delay` (RFC 9000, section 18.2); every second packet is acknowledged at once (section \
                13.2.2)",
            "2021",
        ),
        flag("handshake", true).source("RFC 9000, section 7: one round trip before data", "2021"),
        flag("limited-transmit", true)
            .source("RFC 9002, section 7: whatever is acknowledged is no more in flight", "2021"),
        flag("sack", true).source("RFC 9000, section 19.3.1: ranges of packets", "2021"),
        text("loss-detection", "quic")
            .source("RFC 9002, section 6.1: `kPacketThreshold` = 3, `kTimeThreshold` = 9/8", "2021"),
        text("congestion", "cubic").source(
            "the default of quic-go, msquic, quinn and Cloudflare's quiche; RFC 9002, section 7, describes \
                Reno and allows others",
            "2021",
        ),
        flag("byte-counting", true).source("RFC 9002, section 7.3.1: by bytes acknowledged", "2021"),
        text("slow-start", "hystart++")
            .source("RFC 9406; the default of Cloudflare's quiche (`enable_hystart`)", "2023"),
        text("pacing", "window").source("RFC 9002, section 7.7: SHOULD", "2021"),
        rule("idle-restart", "none")
            .source("RFC 9002, section 7.8: no reset of the window after idle time", "2021"),
    ],
};

/// The preset of [`Variant::Ns1998`].
const NS_1998: Preset = Preset {
    name: "ns-1998",
    system: "the NewReno agent of ns-2.1b2 to 2.1b5",
    defaults: &[
        text("newreno-timer", "slow-but-steady").source("`tcp-newreno.cc` of May 1997", "1997 to May 2003"),
        text("partial-window-deflation", "to-ssthresh")
            .source("`tcp-newreno.cc` of May 1997: `dupwnd_` = 0", "1997 to May 2003"),
        text("tick", "100ms").source("`ns-default.tcl` of December 1997: `tcpTick_` 0.1", "1997"),
        text("rtt-arithmetic", "fixed-point").source("`tcp.cc` of April 1998 (`rtt_update`)", "1998"),
        text("initial-rto", "6s").source("`ns-default.tcl` of December 1997: `rtxcur_init_` 6.0", "1997"),
        text("min-rto", "200ms").source("`tcp.cc` of April 1998 (`rtt_timeout`): two ticks", "1998"),
        text("initial-window", "1p").source("`ns-default.tcl` of December 1997: `windowInit_` 1", "1997"),
        flag("handshake", false).source("an agent that sends data at once", "1997"),
        flag("limited-transmit", false).source("RFC 3042 is younger", "2001"),
    ],
};

/// All presets; the first has every key.
pub const PRESETS: [&Preset; 4] = [&PAPERS, &LINUX, &QUIC, &NS_1998];

/// Fills in the defaults of a table's preset, except those that would be refused beside the given keys.
pub(super) fn complete(table: &mut Map<String, Value>) {
    let name = table.get("tcp").and_then(Value::as_str);
    let Some(preset) = PRESETS[1..].iter().find(|preset| Some(preset.name) == name) else { return };
    let beside = Beside::of(table);
    for default in preset.defaults.iter().filter(|default| beside.leaves_place(default)) {
        let value = match default.value {
            Given::Text(text) => Value::from(text),
            Given::Flag(flag) => Value::from(flag),
            Given::Rule(_) => continue,
        };
        table.entry(default.key).or_insert(value);
    }
}

/// The keys of a table on which the defaults of other keys depend.
struct Beside {
    sack: bool,
    slow_start: bool,
    pacing: bool,
}

impl Beside {
    fn of(table: &Map<String, Value>) -> Self {
        // What cannot be read is refused later, whatever is filled in.
        let control = table.get("congestion").cloned().and_then(|key| serde_json::from_value(key).ok());
        let control = control.map(|Congestion(control)| control);
        let ends_slow_start = |control: &CongestionParams| control.has_hystart(Variant::NewReno);
        Self {
            sack: table.get("sack") != Some(&Value::Bool(false)),
            slow_start: control.as_ref().is_none_or(|one| one.info().slow_start && !ends_slow_start(one)),
            pacing: control.is_none_or(|control| !control.needs().pacing),
        }
    }

    fn leaves_place(&self, default: &PresetDefault) -> bool {
        match default.key {
            "loss-detection" => self.sack,
            "slow-start" => self.slow_start,
            "pacing" => self.pacing,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TcpParams, Variant};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_papers_preset_declares_every_key_with_the_default_that_it_has() {
        let given = |default: &&PresetDefault| !matches!(default.value, Given::Rule(_));
        let mut table = Map::new();
        table.insert("tcp".into(), "newreno".into());
        for default in PAPERS.defaults.iter().filter(given) {
            let value = match default.value {
                Given::Flag(flag) => Value::from(flag),
                other => Value::from(other.text()),
            };
            assert_eq!(table.insert(default.key.into(), value), None, "{}: twice", default.key);
        }
        let read: TcpParams = serde_json::from_value(table.into()).unwrap();
        assert_eq!(read, TcpParams::new(Variant::NewReno));
        let schema = schemars::schema_for!(TcpParams).to_value();
        let properties = schema["properties"].as_object().unwrap().iter();
        let known: BTreeSet<&str> =
            properties.filter(|(_, one)| one["deprecated"] != true).map(|(key, _)| key.as_str()).collect();
        let declared = PAPERS.defaults.iter().map(|default| default.key).chain(["tcp"]);
        let declared = declared.filter(|key| !key.starts_with("congestion.")).collect();
        assert_eq!(known, declared, "every key has a line in the table of defaults");
    }

    #[test]
    fn what_a_preset_changes_has_a_source_and_a_time() {
        let plain = serde_json::to_value(TcpParams::new(Variant::NewReno)).unwrap();
        for preset in PRESETS {
            let declared: BTreeSet<&str> = preset.defaults.iter().map(|default| default.key).collect();
            assert_eq!(declared.len(), preset.defaults.len(), "{}: a key twice", preset.name);
            let params: TcpParams =
                serde_json::from_value(serde_json::json!({ "tcp": preset.name })).unwrap();
            let all = serde_json::to_value(params).unwrap();
            for (key, value) in all.as_object().unwrap().iter().filter(|(key, _)| *key != "tcp") {
                let is_changed = plain.get(key) != Some(value);
                assert!(!is_changed || declared.contains(key.as_str()), "{}: {key} = {value}", preset.name);
            }
            for default in preset.defaults {
                assert!(
                    default.source.len() >= 8 && default.since.len() >= 4,
                    "{}: {default:?}",
                    preset.name
                );
                assert!(PAPERS.defaults.iter().any(|plain| plain.key == default.key), "{}", default.key);
            }
        }
    }

    #[test]
    fn rules_say_what_the_sender_does() {
        let rule = |preset: &Preset, key: &str| {
            preset.defaults.iter().find(|default| default.key == key).map(|default| default.value.text())
        };
        for preset in PRESETS {
            let params: TcpParams =
                serde_json::from_value(serde_json::json!({ "tcp": preset.name })).unwrap();
            let hystart = rule(preset, "congestion.hystart").or(rule(&PAPERS, "congestion.hystart"));
            let cubic = CongestionParams::named("cubic").unwrap();
            assert_eq!(hystart == Some("true"), cubic.has_hystart(params.tcp), "{}", preset.name);
            let idle = rule(preset, "idle-restart").or(rule(&PAPERS, "idle-restart"));
            assert_eq!(idle == Some("rfc5681"), params.restarts_after_idle(), "{}", preset.name);
        }
    }
}

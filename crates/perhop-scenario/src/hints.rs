//! Hints for words of other programs: a message about an unknown key, or about a value of a wrong kind, names
//! what it is called here.

use perhop_sim::transport::tcp::congestion;
use schemars::SchemaGenerator;
use serde_json::Value;

use crate::error::{KeyPart, Problem};

/// Names that keys have elsewhere (ns-3, tc, Mininet, mahimahi, iperf), separated by spaces, and the key. The
/// first one that is valid in the table is meant.
const NAMES: [(&str, &str); 20] = [
    ("bandwidth bw capacity speed data-rate datarate throughput bitrate", "rate"),
    ("latency propagation-delay prop-delay propagation owd", "delay"),
    ("loss-rate plr error-rate per drop-rate", "loss"),
    ("size max-size maxsize max-len maxlen length buffer packets capacity", "limit"),
    ("src source sender", "from"),
    ("dst dest destination receiver sink", "to"),
    ("n num number flows parallel users instances", "count"),
    ("end stop-time until", "stop"),
    ("begin start-time", "start"),
    ("time sim-time simtime length t stop", "duration"),
    ("warm-up transient", "warmup"),
    ("cc congestion-control ca algorithm", "congestion"),
    ("mss segment-size segment packet-size size mtu length len", "packet"),
    ("initcwnd initial-cwnd iw cwnd init-cwnd", "initial-window"),
    ("rwnd max-window receive-window rcvbuf receive-buffer buffer", "window"),
    ("sndbuf send-buf", "send-buffer"),
    ("ssthresh", "initial-ssthresh"),
    ("delack delayed-acks", "delayed-ack"),
    ("tos dscp-value codepoint", "dscp"),
    ("min-th minth max-th maxth thresh minthresh maxthresh min max", "thresholds"),
];

/// Unknown keys that no single key replaces: the words, a valid key by which their table is recognized, and
/// the hint.
const ADVICE: [(&str, &str, &str); 16] = [
    ("rtt round-trip round-trip-time base-rtt", "burst-loss", RTT),
    (
        "rtt round-trip round-trip-time base-rtt delay latency",
        "access",
        "delays stand in the tables of links and in `access`, one way: a link's delay and those of the hosts are half of the round-trip time",
    ),
    (
        "qdisc buffer queue-size buffer-size queue-limit max-queue-size aqm limit discipline scheduler",
        "burst-loss",
        "write the table `queue`, such as queue = { aqm = \"drop-tail\", limit = \"100p\" }",
    ),
    ("mtu packet packet-size", "burst-loss", "packets have the size `packet` of a flow's transport"),
    (
        "tcp udp quic protocol proto congestion cc algorithm",
        "application",
        "write the table `transport`, such as transport = { tcp = \"linux\", congestion = \"cubic\" }",
    ),
    (
        "rate bandwidth bitrate data-rate packet packet-size window",
        "application",
        "it belongs to the transport, such as transport = { udp = \"cbr\", rate = \"1Mbps\" }; TCP finds its rate by itself",
    ),
    (
        "bytes size data file-size filesize max-bytes amount",
        "application",
        "write `volume` for what each flow sends, or, beside `arrivals`, `sizes`",
    ),
    ("duration time length", "application", "a flow lasts from `start` to `stop`"),
    (
        "uplink upload downlink download reverse direction",
        "application",
        "data goes from `from` to `to`; swap them for the other direction",
    ),
    ("ecn", "send-buffer", ECN),
    (
        "seed seeds runs repetitions replications jobs",
        "warmup",
        "it is an option of the command: perhop run SCENARIO --runs 5 --seed 3",
    ),
    ("rate bandwidth delay queue loss", "warmup", "it belongs to a link: write it below [links.NAME]"),
    (ADDRESSES, "source-ports", "write `source` or `destination`, such as source = \"10.0.0.0/8\""),
    (
        "port ports sport dport src-port dst-port",
        "source-ports",
        "write `source-ports` or `destination-ports`, such as destination-ports = 443",
    ),
    (
        "flow flows class name user application from to source destination port ports source-ports \
         destination-ports sport dport protocol proto",
        "traffic-class",
        CODEPOINT,
    ),
    (ADDRESSES, "traffic-class", CODEPOINT),
];

/// Names of a packet's addresses.
const ADDRESSES: &str = "host hosts ip address addr network net subnet prefix cidr src dst src-ip dst-ip source-ip \
                         destination-ip saddr daddr";
const CODEPOINT: &str = "a queue distinguishes packets by their codepoint: write match = { dscp = \"EF\" }; flows of a scenario have it \
                         with dscp = \"EF\" beside `transport`";

const RTT: &str = "write `delay`, which is one way: half of the round-trip time that the link adds";
const ECN: &str = "a flow is capable with the key `ecn` beside `transport`, such as ecn = \"classic\" (RFC 3168), and a queue marks with \
                   ecn = true in its own table";

/// Keys whose value has a form that no type can show, each with an example.
const EXAMPLES: [(&str, &str); 8] = [
    ("transport", "{ tcp = \"linux\", congestion = \"cubic\" }"),
    ("queue", "{ aqm = \"drop-tail\", limit = \"100p\" }"),
    ("access", "{ rate = \"1Gbps\", delay = \"1ms\" }"),
    ("arrivals", "{ rate = \"40/s\" }, a Poisson process"),
    ("jitter", "{ distribution = \"uniform\", max = \"5ms\", reorder = false }"),
    ("probes", "{ interval = \"100ms\" }"),
    ("start", "\"2s\" or \"0s..1s\""),
    ("flows", "[[flows]], in double brackets, once for each group"),
];

/// Words of other programs for values: the key, the words, the hint.
const VALUES: [(&str, &str, &str); 2] = [
    (
        "udp",
        "poisson exponential exp pareto random",
        "packets at random times are a population: transport = { udp = \"cbr\", rate = \"1Gbps\", packet = \"1500B\" } beside \
         arrivals = { rate = \"100/s\" } and sizes = { constant = \"1472B\" }, one packet each; bursts with pauses are udp = \"on-off\"",
    ),
    (
        "congestion",
        "vegas westwood westwood+ illinois htcp hybla veno yeah copa bic compound vivace",
        "it is not built in; one of your own is a class, congestion = \"module:Class\" (docs/python-blocks.md)",
    ),
];

/// Returns whether a word is one of these, which are separated by spaces.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

/// Returns what to write in place of an unknown key of a table that has the keys `known`.
pub(crate) fn for_key(key: &str, known: &[&str]) -> Option<String> {
    let word = plain(key);
    let advice = ADVICE.iter().find(|(words, beside, _)| has(words, &word) && known.contains(beside));
    if let Some((.., hint)) = advice {
        return Some(format!("; {hint}"));
    }
    let ours = NAMES.iter().find(|(words, ours)| has(words, &word) && known.contains(ours));
    ours.map(|(_, ours)| format!("; write `{ours}`")).or_else(|| parameter_of_a_control(&word, known))
}

/// Returns what to write in place of an unknown key of a transport that is a parameter of a congestion
/// control.
fn parameter_of_a_control(key: &str, known: &[&str]) -> Option<String> {
    let mut controls = congestion::registered().into_iter().filter(|_| known.contains(&"congestion"));
    let control = controls.find(|control| {
        let parameters = (control.parameters)(&mut SchemaGenerator::default()).to_value();
        parameters["properties"].get(key).is_some()
    })?;
    Some(format!(
        "; it is a parameter of `{0}`: write congestion = {{ control = \"{0}\", {key} = … }}",
        control.name
    ))
}

/// Adds a hint to a problem whose value is a word or a form of another program.
pub(crate) fn for_value(problem: Problem) -> Problem {
    let Some(KeyPart::Key(key)) = problem.path.iter().rfind(|part| matches!(part, KeyPart::Key(_))) else {
        return problem;
    };
    if key == "ecn" && problem.text.contains("classic") && !problem.text.contains("did you mean") {
        return with_hint(&problem, ECN);
    }
    if let Some(word) = unknown_value(&problem.text) {
        let found = VALUES.iter().find(|(of, words, _)| of == key && has(words, &plain(word)));
        return found.map_or(problem.clone(), |(.., hint)| with_hint(&problem, hint));
    }
    let example = EXAMPLES.iter().find(|(of, _)| of == key).filter(|_| !problem.text.contains("such as"));
    match (example, problem.text.strip_prefix("expected ").and_then(|text| text.split_once(", not "))) {
        (Some((_, example)), Some((wanted, found)))
            if !matches!(found, "a table" | "a list") || key == "flows" =>
        {
            let text = format!("expected {wanted}, such as {example}, not {found}");
            Problem { text, ..problem }
        }
        _ => problem,
    }
}

/// Returns the word of a message about an unknown value.
fn unknown_value(text: &str) -> Option<&str> {
    text.strip_prefix("unknown value `")?.split_once('`').map(|(word, _)| word)
}

/// Puts a hint into a message: before the list of valid values, in place of a suggestion by spelling.
fn with_hint(problem: &Problem, hint: &str) -> Problem {
    let text = match problem.text.split_once(" (one of ") {
        Some((wrong, choices)) => {
            let wrong = wrong.split("; did you mean `").next().unwrap_or(wrong);
            format!("{wrong}; {hint} (one of {choices}")
        }
        None => format!("{}; {hint}", problem.text),
    };
    Problem { path: problem.path.clone(), text }
}

/// Names the key of the same table to which a word belongs that is no value of its key, as reading says that
/// tries one after the other.
pub(crate) fn belongs_to_another_key(
    value: &Value,
    problem: &Problem,
    read: impl Fn(&Value) -> Option<Problem>,
) -> Option<Problem> {
    let word = unknown_value(&problem.text)?;
    let (_, choices) = problem.text.strip_suffix(')')?.split_once("(one of ")?;
    let choices: Vec<&str> = choices.split(", ").collect();
    let (KeyPart::Key(key), table) = problem.path.split_last()? else { return None };
    let mut tried = value.clone();
    // With a value that is right, other keys are read at all: that of the hosts of today, if it is one.
    let right = *choices.iter().find(|choice| **choice == "linux").or(choices.first())?;
    let at = |tried: &mut Value, key: &str, value: Option<&Value>| {
        let table = table.iter().try_fold(tried, |inside, step| match step {
            KeyPart::Key(key) => inside.get_mut(key),
            KeyPart::Index(index) => inside.get_mut(index),
        });
        let table = table.and_then(Value::as_object_mut)?;
        match value {
            Some(value) => table.insert(key.into(), value.clone()),
            None => table.shift_remove(key),
        }
    };
    at(&mut tried, key, Some(&right.into()));
    at(&mut tried, NO_KEY, Some(&Value::Null));
    let known = read(&tried)?;
    let (_, known) =
        known.text.strip_prefix("unknown key `?`")?.strip_suffix(')')?.split_once("(valid keys: ")?;
    at(&mut tried, NO_KEY, None);
    let lower = plain(word);
    let words = [word, &lower, lower.strip_prefix("tcp").unwrap_or(&lower).trim_start_matches('-')];
    if let Some(own) = words.iter().find(|word| known.split(", ").any(|key| key == **word)) {
        let hint = format!("`{own}` is a key of its own, beside {key} = \"{right}\"");
        return Some(with_hint(problem, &hint));
    }
    for other in known.split(", ").filter(|other| other != key) {
        let before = at(&mut tried, other, Some(&NO_KEY.into()));
        let is_refused = |tried: &Value| {
            let found = read(tried);
            found.is_some_and(|found| {
                found.path.starts_with(table)
                    && found.path.get(table.len()) == Some(&KeyPart::Key(other.into()))
            })
        };
        if is_refused(&tried) {
            for word in words {
                at(&mut tried, other, Some(&word.into()));
                if !is_refused(&tried) {
                    let hint = format!(
                        "`{word}` is a value of the key `{other}`: write {key} = \"{right}\", {other} = \"{word}\""
                    );
                    return Some(with_hint(problem, &hint));
                }
            }
        }
        at(&mut tried, other, before.as_ref());
    }
    None
}

/// A word that is no key and no value anywhere.
const NO_KEY: &str = "?";

//! Why a packet was dropped or marked: the numbers that decided, and the lines of the rule.

use perhop_core::meter::POLICER;
use perhop_core::trace::Trace;
use perhop_core::{Color, Duration, PseudoCode, Reason, Thresholds, registry};
use serde::Serialize;
use serde_json::Value;

use crate::describe::{colored, gauge_of, group_of, queue_table};
use crate::run::LiveRun;
use crate::witness::{CLASSIC, DropOrMark, FLOW_QUEUE, L4S};

/// An explanation, as the page shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub id: usize,
    pub time_s: f64,
    pub link: String,
    pub flow: String,
    pub color: usize,
    pub reason: &'static str,
    pub aqm: String,
    pub sentence: String,
    pub facts: Vec<Fact>,
    pub rule: Vec<&'static str>,
    pub decisive: Vec<usize>,
    pub source: String,
}

/// A number that decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    /// The word to show in place of the number, if the number encodes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'static str>,
}

/// Why this event of a run happened; `None` if it is not known any more.
pub fn explain(run: &mut LiveRun, id: usize) -> Option<Explanation> {
    let event = run.witness().event(id)?.clone();
    let scenario = serde_json::to_value(run.scenario_at(event.at).ok()?).ok()?;
    let network = run.stepping().network();
    let link = network.links.get(event.link)?.name.clone();
    let flow = network.flows.get(event.flow as usize)?.name.clone();
    let queue = queue_table(&scenario, &link).map(|(_, table)| table);
    let block = block_of(queue, &event);
    let rule = rule_of(&block, &event);
    let facts = facts(&event, queue);
    let color = if colored(network) { format!("{} ", event.color.name()) } else { String::new() };
    let packet = format!("{color}packet of {}", group_of(&flow));
    Some(Explanation {
        id,
        time_s: event.at.as_secs_f64(),
        color: event.color.index(),
        reason: event.reason.name(),
        sentence: sentence(&event, &packet, &facts),
        link,
        flow,
        aqm: block.clone(),
        facts,
        rule: rule.map_or_else(Vec::new, |rule| rule.lines.to_vec()),
        decisive: rule.map_or_else(Vec::new, |rule| rule.decisive(event.reason).to_vec()),
        source: source(&block),
    })
}

/// Returns the name of the block that decided: the one that noted why, else the scheduler, or the AQM of a
/// FIFO.
fn block_of(queue: Option<&Value>, event: &DropOrMark) -> String {
    let Some(queue) = queue else { return String::new() };
    if event.reason == Reason::Policed {
        return "policer".into();
    }
    let noted = event.trace.as_ref().map(|trace| trace.block);
    noted.or_else(|| queue["scheduler"].as_str()).or_else(|| queue["aqm"].as_str()).unwrap_or_default().into()
}

/// Returns the rule of a block that dropped or marked a packet: of several branches the one that acted.
fn rule_of(block: &str, event: &DropOrMark) -> Option<PseudoCode> {
    if event.reason == Reason::Policed {
        return Some(POLICER);
    }
    let info = registry().find(|info| info.name == block)?;
    (info.pseudo_code)(event.reason, &|name| event.gauge(name))
}

fn source(block: &str) -> String {
    let registered = registry().find(|info| info.name == block);
    registered.map_or_else(String::new, |info| info.origin.source.to_string())
}

/// The order of what FQ-CoDel and `DualPI2` note.
const ORDER: [&str; 9] =
    [FLOW_QUEUE, L4S, CLASSIC, "p'", "p_CL", "p_C", "p'_L", "probability", "counter before"];

/// The numbers that decided, in the order of the rule.
fn facts(event: &DropOrMark, queue: Option<&Value>) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: f64, unit| {
        facts.push(Fact { name: name.into(), value, unit, text: None });
    };
    add("size of the packet", f64::from(event.size), "bytes");
    if let Some(sojourn) = event.sojourn_s {
        add("sojourn time", sojourn, "s");
    }
    let Some(trace) = &event.trace else { return facts };
    let waited = match event.queue_name() {
        Some("flow") => "packets left in that queue",
        Some(_) => "packets left in both queues",
        None => "packets that waited",
    };
    add(waited, trace.packets as f64, "packets");
    facts.extend(noted(trace));
    let mut add = |name: &str, value: f64, unit| {
        facts.push(Fact { name: name.into(), value, unit, text: None });
    };
    for key in ["target", "interval"] {
        let given = queue.and_then(|queue| queue[key].as_str()?.parse::<Duration>().ok());
        if let Some(value) = given.filter(|_| matches!(event.reason, Reason::Target)) {
            add(key, value.as_secs_f64(), "s");
        }
    }
    let names: Vec<String> = trace.gauges.iter().map(|(name, _)| (*name).to_owned()).collect();
    let set = set_of(event).into_iter().find_map(|name| Some((name, queue?[name].as_str()?.parse().ok()?)));
    if let Some((name, set)) = set {
        let set: Thresholds = set;
        add("min", set.min(), "");
        add("max", set.max(), "");
        add("max_p", set.max_p(), "");
        let gauge = gauge_of(name, &names);
        let average =
            trace.gauges.iter().find(|(name, _)| Some((*name).to_owned()) == gauge).map(|(_, value)| *value);
        if let Some(average) = average.filter(|average| (set.min()..set.max()).contains(average)) {
            add("p_b", set.max_p() * (average - set.min()) / (set.max() - set.min()), "");
        }
    }
    let by_chance = matches!(event.reason, Reason::Early | Reason::EarlyOut | Reason::Controller);
    if by_chance && trace.draws.is_empty() && event.gauge("probability").is_none() {
        add("probability", 1.0, "");
    }
    for (number, (probability, drawn)) in trace.draws.iter().enumerate() {
        let which = if trace.draws.len() > 1 { format!(" of test {}", number + 1) } else { String::new() };
        add(&format!("probability{which}"), *probability, "");
        add(&format!("random number{which}"), *drawn, "");
    }
    facts
}

/// What the rule noted: which queue, then what follows from what; the rest as it was noted.
fn noted(trace: &Trace) -> Vec<Fact> {
    let mut gauges = trace.gauges.clone();
    gauges.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()));
    let fact = |(name, value): (&str, f64)| {
        let (name, unit, text) = match name {
            L4S => ("queue".into(), "", Some("L4S")),
            CLASSIC => ("queue".into(), "", Some("classic")),
            "dropping" | "dropping already" => {
                (name.into(), "", Some(if value > 0.0 { "yes" } else { "no" }))
            }
            timed if timed.ends_with("_s") => (timed.trim_end_matches("_s").replace('_', " "), "s", None),
            packets if packets.starts_with("packets") => (packets.into(), "packets", None),
            bytes if bytes.starts_with("bytes") => (bytes.into(), "bytes", None),
            other => (other.into(), "", None),
        };
        Fact { name, value, unit, text }
    };
    gauges.into_iter().map(fact).collect()
}

/// The keys of the threshold set against which a packet was tested, the likeliest first.
fn set_of(event: &DropOrMark) -> Vec<&'static str> {
    match (event.reason, event.color) {
        (Reason::Early | Reason::Forced, Color::Green) => vec!["in", "thresholds"],
        (Reason::Early | Reason::Forced, Color::Yellow) => vec!["out-in", "total", "out", "thresholds"],
        (Reason::Early | Reason::Forced, Color::Red) => vec!["out-out", "total", "out", "thresholds"],
        (Reason::EarlyOut | Reason::ForcedOut, _) => vec!["out"],
        _ => Vec::new(),
    }
}

/// In one sentence, of a `packet of bulk`, or a `yellow packet of bulk`.
fn sentence(event: &DropOrMark, packet: &str, facts: &[Fact]) -> String {
    let fact = |name: &str| facts.iter().rfind(|fact| fact.name.starts_with(name)).map(|fact| fact.value);
    let act = if event.is_mark { "marked" } else { "dropped" };
    let by_chance = match (fact("random number"), fact("probability")) {
        (None, Some(probability)) if fact("counter before").is_some() => {
            let counter = fact("counter before").unwrap_or_default();
            format!(": with the probability {probability:.4} the counter came from {counter:.4} above 1")
        }
        (Some(number), Some(probability)) => {
            format!(": the random number {number:.4} was below the probability {probability:.4}")
        }
        (None, Some(_)) => ": the probability had come to 1, so it was certain".into(),
        _ => String::new(),
    };
    let why = match event.reason {
        Reason::Overflow if event.queue_name() == Some("flow") => {
            "all queues together were too full, and its flow's queue had the most bytes".into()
        }
        Reason::Overflow if event.queue_name().is_some() => "both queues together had no room for it".into(),
        Reason::Overflow => "the queue had no room for it".into(),
        Reason::Early => format!("the average queue was between min and max, and chance chose it{by_chance}"),
        Reason::EarlyOut => {
            format!("the average of OUT packets was between min and max, and chance chose it{by_chance}")
        }
        Reason::Forced => "the average queue was at or above max".into(),
        Reason::ForcedOut => "the average of OUT packets was at or above max".into(),
        Reason::DelayControl => "it would have waited longer than its service allows".into(),
        Reason::Late => "it could no longer be sent by its deadline".into(),
        Reason::Target => {
            let whose = if event.queue_name().is_some() { "of its flow's queue " } else { "" };
            let then = match event.gauge("dropping already") {
                Some(0.0) => ", and dropping began".to_owned(),
                Some(_) => {
                    format!(
                        ", and the next drop was due (number {})",
                        event.gauge("count").unwrap_or_default()
                    )
                }
                None => String::new(),
            };
            format!("packets {whose}had waited longer than the target for too long{then}")
        }
        Reason::Controller if event.queue_name() == Some(L4S) => {
            format!("the probability of the L4S queue, coupled to the classic one, chose it{by_chance}")
        }
        Reason::Controller if event.queue_name() == Some(CLASSIC) => {
            format!("the squared probability of the classic queue chose it{by_chance}")
        }
        Reason::Controller => format!("the controller's probability chose it{by_chance}"),
        Reason::Step if event.gauge("counter before").is_some() => {
            format!("it had waited longer than the step of the L4S queue{by_chance}")
        }
        // In Linux the random number of the coupled probability has spared it.
        Reason::Step => "it had waited longer than the step of the L4S queue".into(),
        Reason::Overload => format!("marking alone did not hold the delay{by_chance}"),
        Reason::Policed => "it was out of its profile, and the meter drops such packets".into(),
    };
    format!("This {packet} was {act} because {why}.")
}

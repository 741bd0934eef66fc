//! Why a packet was dropped or marked: the numbers that decided, and the lines of the rule.

use perhop_core::{Color, Reason, Thresholds};
use serde::Serialize;
use serde_json::Value;

use crate::describe::{gauge_of, group_of, queue_table};
use crate::run::LiveRun;
use crate::witness::Event;

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
}

/// A rule as pseudo-code, and the line that acts for each reason.
struct Rule {
    lines: &'static [&'static str],
    acts: &'static [(Reason, &'static [usize])],
}

const RED: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    average ← (1 − weight) · average + weight · queue",
        "    if the queue has no room: drop (overflow)",
        "    if average < min: pass",
        "    if average ≥ max: drop (forced)",
        "    p_b ← max_p · (average − min) / (max − min)",
        "    p_a ← p_b / (1 − count · p_b), spread over the packets since the last drop",
        "    if random number < p_a: drop, or mark with ECN (early)",
        "    else: pass",
    ],
    acts: &[(Reason::Overflow, &[2]), (Reason::Forced, &[1, 4]), (Reason::Early, &[1, 5, 6, 7])],
};

const RIO: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    update the averages that count it",
        "    if the queue has no room: drop (overflow)",
        "    choose thresholds and average by the packet's color:",
        "        IN (green): the average of IN packets; OUT: that of all packets, or of OUT packets",
        "    if average < min: pass this test",
        "    if average ≥ max: drop (forced)",
        "    p_b ← max_p · (average − min) / (max − min), spread to p_a",
        "    if random number < p_a: drop (early)",
        "    RI+O: an OUT packet that passed is tested again, against the average of OUT packets:",
        "        if average out ≥ max: drop (forced-out)",
        "        if random number < p_a: drop (early-out)",
    ],
    acts: &[
        (Reason::Overflow, &[2]),
        (Reason::Forced, &[4, 6]),
        (Reason::Early, &[4, 7, 8]),
        (Reason::ForcedOut, &[9, 10]),
        (Reason::EarlyOut, &[9, 11]),
    ],
};

const CODEL: Rule = Rule {
    lines: &[
        "for each packet that leaves:",
        "    if sojourn time < target, or almost nothing waits: stop dropping, pass",
        "    if the sojourn time has not stayed above target for an interval: pass",
        "    if not dropping: begin; drop this packet (or mark it), count ← 1, or near where it was",
        "    while dropping and the next drop is due: drop (or mark), count ← count + 1",
        "    the next drop is due after interval / √count",
        "for each packet that arrives: if the queue has no room: drop (overflow)",
    ],
    acts: &[(Reason::Target, &[3, 4, 5]), (Reason::Overflow, &[6])],
};

const PIE: Rule = Rule {
    lines: &[
        "at each update:",
        "    p ← p + alpha · (delay − target) + beta · (delay − delay at the last update), scaled for small p",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    if a burst is allowed, or delay and p are small, or little waits: pass",
        "    if random number < p: drop, or mark if p is small and the packet is capable (controller)",
    ],
    acts: &[(Reason::Controller, &[1, 5]), (Reason::Overflow, &[3])],
};

const PI2: Rule = Rule {
    lines: &[
        "at each update:",
        "    p' ← p' + alpha · (delay − target) + beta · (delay − delay at the last update)",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    scalable flow: mark if random number < k · p'",
        "    other flow: drop or mark if two random numbers are both < p'",
    ],
    acts: &[(Reason::Controller, &[1, 4, 5]), (Reason::Overflow, &[3])],
};

const BLUE: Rule = Rule {
    lines: &[
        "when the queue overflows, or is longer than its threshold, and freeze-time has passed: p ← p + increment",
        "when the link is idle, and freeze-time has passed: p ← p − decrement",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    if random number < p: drop or mark (controller)",
    ],
    acts: &[(Reason::Controller, &[4]), (Reason::Overflow, &[3])],
};

const COBALT: Rule = Rule {
    lines: &[
        "for each packet that leaves:",
        "    CoDel: if the sojourn time stays above target and the next drop is due: drop or mark (target)",
        "    BLUE: if random number < p: drop (controller)",
        "p rises when the queue overflows, and falls when it is empty",
        "for each packet that arrives: if the queue has no room: drop (overflow)",
    ],
    acts: &[(Reason::Target, &[1]), (Reason::Controller, &[2, 3]), (Reason::Overflow, &[4])],
};

const DUAL: Rule = Rule {
    lines: &[
        "at each update: p' ← p' + alpha · (delay − target) + beta · (delay − delay at the last update)",
        "an L4S packet that leaves:",
        "    if it waited longer than the step: mark (step)",
        "    else mark with probability k · p' (controller)",
        "a classic packet that leaves: drop or mark with probability p'² (controller)",
        "in overload: drop packets of both queues with probability p'² (overload)",
        "for each packet that arrives: if there is no room: drop (overflow)",
    ],
    acts: &[
        (Reason::Step, &[1, 2]),
        (Reason::Controller, &[0, 3, 4]),
        (Reason::Overload, &[5]),
        (Reason::Overflow, &[6]),
    ],
};

const ABE: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    RED with the average of the whole queue: drop by chance (early) or for certain (forced)",
        "    alpha > 1: a green packet is dropped alpha times as often as a blue one",
        "    if a green packet would wait longer than green's bound: drop (delay-control)",
        "    if the queue has no room: drop (overflow)",
        "a packet that can no longer be sent by its deadline: drop (late)",
    ],
    acts: &[
        (Reason::Early, &[1, 2]),
        (Reason::Forced, &[1]),
        (Reason::DelayControl, &[3]),
        (Reason::Overflow, &[4]),
        (Reason::Late, &[5]),
    ],
};

const DROP_TAIL: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    else: pass",
    ],
    acts: &[(Reason::Overflow, &[1])],
};

const POLICER: Rule = Rule {
    lines: &[
        "for each packet that comes to the meter:",
        "    if it is in profile: give it its color, pass",
        "    else: drop (policed)",
    ],
    acts: &[(Reason::Policed, &[2])],
};

fn rule_of(block: &str, reason: Reason) -> &'static Rule {
    match block {
        _ if reason == Reason::Policed => &POLICER,
        "red" | "wred" | "dwred" => &RED,
        "rio" | "rio-plus-out" | "rio-three" | "inverse-rate" => &RIO,
        "codel" | "fq_codel" | "fq-codel" => &CODEL,
        "pie" => &PIE,
        "pi2" => &PI2,
        "blue" => &BLUE,
        "cobalt" => &COBALT,
        "dualpi2" => &DUAL,
        "abe" | "edf" | "dsd" => &ABE,
        _ => &DROP_TAIL,
    }
}

/// Why this event of a run happened; `None` if it is not known any more.
pub fn explain(run: &mut LiveRun, id: usize) -> Option<Explanation> {
    let event = run.witness().event(id)?.clone();
    let scenario = serde_json::to_value(run.scenario_at(event.at).ok()?).ok()?;
    let network = run.stepping().network();
    let link = network.links.get(event.link)?.name.clone();
    let flow = network.flows.get(event.flow as usize)?.name.clone();
    let queue = queue_table(&scenario, &link).map(|(_, table)| table);
    let block = block_of(queue, event.reason);
    let rule = rule_of(&block, event.reason);
    let decisive =
        rule.acts.iter().find(|(reason, _)| *reason == event.reason).map_or(&[][..], |(_, lines)| lines);
    let facts = facts(&event, queue);
    Some(Explanation {
        id,
        time_s: event.at.as_secs_f64(),
        color: event.color.index(),
        reason: event.reason.name(),
        sentence: sentence(&event, group_of(&flow), &facts),
        link,
        flow,
        aqm: block.clone(),
        facts,
        rule: rule.lines.to_vec(),
        decisive: decisive.to_vec(),
        source: source(&block),
    })
}

/// The block that decided: the AQM of a FIFO, or the scheduler where this decides itself.
fn block_of(queue: Option<&Value>, reason: Reason) -> String {
    let Some(queue) = queue else { return String::new() };
    if reason == Reason::Policed {
        return "policer".into();
    }
    let inner = queue["aqm"].as_str().or_else(|| queue["rule"]["aqm"].as_str());
    let scheduler = queue["scheduler"].as_str();
    let of_queues = || {
        // Which of several queues it was is not known; they often have the same AQM.
        queue["queues"].as_array()?.iter().find_map(|one| one["rule"]["aqm"].as_str())
    };
    inner.or_else(of_queues).or(scheduler).unwrap_or("drop-tail").into()
}

fn source(block: &str) -> String {
    let registered = perhop_core::registry().find(|info| info.name == block);
    registered.map_or_else(String::new, |info| info.origin.source.to_string())
}

/// The numbers that decided, in the order of the rule.
fn facts(event: &Event, queue: Option<&Value>) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: f64, unit| facts.push(Fact { name: name.into(), value, unit });
    add("size of the packet", f64::from(event.size), "bytes");
    if let Some(sojourn) = event.sojourn_s {
        add("sojourn time", sojourn, "s");
    }
    let Some(trace) = &event.trace else { return facts };
    add("packets that waited", trace.packets as f64, "packets");
    for (name, value) in &trace.gauges {
        add(name, *value, if name.ends_with("_s") { "s" } else { "" });
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
    if by_chance && trace.draws.is_empty() {
        add("probability", 1.0, "");
    }
    for (number, (probability, drawn)) in trace.draws.iter().enumerate() {
        let which = if trace.draws.len() > 1 { format!(" of test {}", number + 1) } else { String::new() };
        add(&format!("probability{which}"), *probability, "");
        add(&format!("random number{which}"), *drawn, "");
    }
    facts
}

/// The keys of the threshold set against which a packet was tested, the likeliest first.
fn set_of(event: &Event) -> Vec<&'static str> {
    match (event.reason, event.color) {
        (Reason::Early | Reason::Forced, Color::Green) => vec!["in", "thresholds"],
        (Reason::Early | Reason::Forced, Color::Yellow) => vec!["out-in", "total", "out", "thresholds"],
        (Reason::Early | Reason::Forced, Color::Red) => vec!["out-out", "total", "out", "thresholds"],
        (Reason::EarlyOut | Reason::ForcedOut, _) => vec!["out"],
        _ => Vec::new(),
    }
}

/// In one sentence.
fn sentence(event: &Event, class: &str, facts: &[Fact]) -> String {
    let fact = |name: &str| facts.iter().rfind(|fact| fact.name.starts_with(name)).map(|fact| fact.value);
    let act = if event.is_mark { "marked" } else { "dropped" };
    let color = event.color.name();
    let by_chance = match (fact("random number"), fact("probability")) {
        (Some(number), Some(probability)) => {
            format!(": the random number {number:.4} was below the probability {probability:.4}")
        }
        (None, Some(_)) => ": the probability had come to 1, so it was certain".into(),
        _ => String::new(),
    };
    let why = match event.reason {
        Reason::Overflow => "the queue had no room for it".into(),
        Reason::Early => format!("the average queue was between min and max, and chance chose it{by_chance}"),
        Reason::EarlyOut => {
            format!("the average of OUT packets was between min and max, and chance chose it{by_chance}")
        }
        Reason::Forced => "the average queue was at or above max".into(),
        Reason::ForcedOut => "the average of OUT packets was at or above max".into(),
        Reason::DelayControl => "it would have waited longer than its service allows".into(),
        Reason::Late => "it could no longer be sent by its deadline".into(),
        Reason::Target => "packets had waited longer than the target for too long".into(),
        Reason::Controller => format!("the controller's probability chose it{by_chance}"),
        Reason::Step => "it had waited longer than the step of the low-latency queue".into(),
        Reason::Overload => "marking alone did not hold the delay".into(),
        Reason::Policed => "it was out of its profile, and the meter drops such packets".into(),
    };
    format!("This {color} packet of {class} was {act} because {why}.")
}

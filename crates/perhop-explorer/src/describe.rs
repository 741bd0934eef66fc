//! A scenario as the page shows it before anything moves: links, flows, lines in charts.

use perhop_core::units::Unit;
use perhop_core::{Depth, Duration, Reason, Thresholds};
use perhop_scenario::{Driver, NoFiles, Notice, Scenario, ScenarioError, notices_in};
use perhop_sim::{FlowSpec, LinkSpec, Marking, Network, TransportSpec};
use serde::Serialize;
use serde_json::Value;

use crate::controls::{Control, controls};
use crate::problem::{ORIGIN, Problem};

/// Flows that are sampled one by one.
const MOST_FLOWS: usize = 64;
/// The longest text.
const MOST_TEXT: usize = 1 << 20;
/// The memory that a run may take in a page, packets not counted.
const MOST_MEMORY: u64 = 300_000_000;
const MOST_LINKS: usize = 1000;

/// A scenario that has been read.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    pub title: String,
    pub toml: String,
    pub seed: String,
    pub duration_s: f64,
    pub warmup_s: f64,
    pub sample_s: f64,
    pub nodes: Vec<String>,
    pub links: Vec<LinkInfo>,
    pub classes: Vec<ClassInfo>,
    pub flows: Vec<FlowInfo>,
    pub colored: bool,
    pub columns: Vec<Column>,
    pub controls: Vec<Control>,
    pub reasons: Vec<&'static str>,
    pub notices: Vec<Problem>,
}

/// A column of the samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    pub kind: &'static str,
    pub name: String,
    pub unit: &'static str,
    pub link: Option<usize>,
    /// Index into the sampled flows.
    pub flow: Option<usize>,
    /// A column of the class as a whole; that of its only flow is both.
    pub class: Option<usize>,
    pub color: Option<u8>,
}

impl Column {
    /// Returns a column of nothing in particular yet, with the name of its kind.
    pub fn of(kind: &'static str, unit: &'static str) -> Self {
        Self { kind, name: kind.into(), unit, link: None, flow: None, class: None, color: None }
    }
}

/// A direction of a link.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkInfo {
    pub name: String,
    pub from: u32,
    pub to: u32,
    pub rate_bps: f64,
    pub delay_s: f64,
    pub measured: bool,
    pub aqm: Option<String>,
    pub scheduler: Option<String>,
    pub limit_packets: Option<u64>,
    pub limit_bytes: Option<u64>,
    pub lines: Vec<Line>,
}

/// A constant that a chart shows as a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub name: String,
    pub key: String,
    pub unit: &'static str,
    pub value: f64,
    pub gauge: Option<String>,
}

/// A class: all flows of a group, or of its requests. They follow one another in the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassInfo {
    pub name: String,
    /// The number of its first flow in the network.
    pub first: usize,
    pub flows: usize,
    pub from: u32,
    pub to: u32,
    pub transport: String,
    pub profile_bps: Option<f64>,
    pub population: bool,
}

/// A flow that is sampled.
#[derive(Clone, Debug, Serialize)]
pub struct FlowInfo {
    pub name: String,
    /// Index into the classes.
    pub class: usize,
}

/// Reads a scenario that the page may run: one that is too large for a page is refused.
pub fn read(toml: &str) -> Result<Scenario, Problem> {
    if toml.len() > MOST_TEXT {
        return Err(Problem::new("the text is longer than 1 MB; the explorer takes no more"));
    }
    let scenario = Scenario::from_toml_for(toml, ORIGIN, Driver::Simulator, &NoFiles)
        .map_err(|ScenarioError { line, key, problem, .. }| Problem::in_text(toml, line, key, problem))?;
    let memory = scenario.memory();
    let bytes = memory.run().saturating_add(memory.kept());
    if bytes > MOST_MEMORY || scenario.links.len() > MOST_LINKS {
        let text = "a run of this scenario takes too much memory for a page; run it with `perhop run`";
        return Err(Problem::new(text));
    }
    Ok(scenario)
}

/// The program's warnings about a scenario.
pub fn notices(scenario: &Scenario, toml: &str) -> Vec<Problem> {
    let notices = notices_in(Some(toml), ORIGIN, scenario.notices()).into_iter();
    notices.map(|Notice { line, key, text, .. }| Problem::in_text(toml, line, key, text)).collect()
}

/// What the page needs to know of a scenario. `gauges` are those of each link.
pub fn opened(
    scenario: &Scenario,
    network: &Network,
    toml: &str,
    seed: u64,
    columns: &[Column],
    gauges: &[Vec<String>],
) -> Opened {
    let table = serde_json::to_value(scenario).unwrap_or(Value::Null);
    let classes = classes(&network.flows);
    let flows = sampled_flows(&classes).into_iter().map(|flow| FlowInfo {
        name: network.flows[flow].name.clone(),
        class: classes.iter().rposition(|class| class.first <= flow).unwrap_or_default(),
    });
    let flows = flows.collect();
    let classes = classes.into_iter().map(|class| {
        let spec = &network.flows[class.first].transport;
        ClassInfo { transport: transport(&table, &class.name, spec), ..class }
    });
    let links = network.links.iter().zip(gauges).map(|(link, gauges)| link_info(&table, link, gauges));
    Opened {
        title: scenario.title.clone(),
        toml: toml.into(),
        seed: seed.to_string(),
        duration_s: scenario.duration.as_secs_f64(),
        warmup_s: scenario.warmup.or_none().as_secs_f64(),
        sample_s: sample_interval(scenario.duration).as_secs_f64(),
        nodes: nodes(scenario),
        links: links.collect(),
        classes: classes.collect(),
        flows,
        colored: colored(network),
        columns: columns.to_vec(),
        controls: controls(&table, toml),
        reasons: Reason::ALL.iter().map(|reason| reason.name()).collect(),
        notices: notices(scenario, toml),
    }
}

/// How far samples are apart: 1, 2 or 5 times a power of ten of milliseconds, at least, and some thousands in
/// a run.
pub fn sample_interval(duration: Duration) -> Duration {
    let wanted = duration.as_nanos() / 6000;
    let mut decade: u64 = 1_000_000;
    loop {
        let fits = [1, 2, 5].map(|factor| decade * factor).into_iter().find(|&interval| interval >= wanted);
        if let Some(interval) = fits {
            return Duration::from_nanos(interval);
        }
        decade *= 10;
    }
}

/// The classes of these flows, in order, without their transports.
pub fn classes(flows: &[FlowSpec]) -> Vec<ClassInfo> {
    let mut classes: Vec<ClassInfo> = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let name = group_of(&flow.name);
        let profile = flow.reserved.map(|rate| rate.as_bps() as f64);
        match classes.last_mut().filter(|class| class.name == name) {
            Some(class) => {
                class.flows += 1;
                class.profile_bps = profile.map(|rate| rate + class.profile_bps.unwrap_or_default());
            }
            None => classes.push(ClassInfo {
                name: name.into(),
                first: number,
                flows: 1,
                from: flow.from.0,
                to: flow.to.0,
                transport: String::new(),
                profile_bps: profile,
                population: flow.population.is_some(),
            }),
        }
    }
    classes
}

/// The flows that are sampled one by one, by number: as many of each class, as far as it has them.
pub fn sampled_flows(classes: &[ClassInfo]) -> Vec<usize> {
    let most = classes.iter().map(|class| class.flows).max().unwrap_or_default();
    let rounds = (0..most).flat_map(|round| {
        classes.iter().filter(move |class| round < class.flows).map(move |class| class.first + round)
    });
    let mut flows: Vec<usize> = rounds.take(MOST_FLOWS).collect();
    flows.sort_unstable();
    flows
}

/// Whether packets differ in color: by a profile, a meter of a link, or as their flows say.
pub fn colored(network: &Network) -> bool {
    let colors = network.flows.iter().map(|flow| flow.color);
    network.flows.iter().any(|flow| flow.marking != Marking::None)
        || network.links.iter().any(|link| !link.meters.is_empty())
        || colors.clone().zip(colors.skip(1)).any(|(one, next)| one != next)
}

/// The class of a flow by its name: `bulk` of `bulk/0`.
pub fn group_of(flow: &str) -> &str {
    flow.rsplit_once('/').map_or(flow, |(group, _)| group)
}

fn nodes(scenario: &Scenario) -> Vec<String> {
    let ends = scenario.links.values().flat_map(|link| [link.from.clone(), link.to.clone()]);
    let mut nodes: Vec<String> = ends.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// `tcp newreno`, as the scenario says it.
fn transport(scenario: &Value, group: &str, spec: &TransportSpec) -> String {
    let kind = match spec {
        TransportSpec::Tcp(_) => "tcp",
        TransportSpec::Udp(_) => "udp",
        TransportSpec::Rap(_) => "rap",
        TransportSpec::Tfrc(_) => "tfrc",
    };
    let flows = scenario["flows"].as_array().map_or(&[][..], Vec::as_slice);
    let flow = flows.iter().find(|flow| flow["name"] == group);
    let variant = flow.and_then(|flow| flow["transport"][kind].as_str());
    variant.map_or_else(|| kind.into(), |variant| format!("{kind} {variant}"))
}

/// The table of a direction's queue in the scenario, and its key.
pub fn queue_table<'a>(scenario: &'a Value, link: &str) -> Option<(String, &'a Value)> {
    let (name, inner) = match link.strip_suffix(" (reverse)") {
        Some(name) => (name, ".reverse.queue"),
        None => (link, ".queue"),
    };
    let table = &scenario["links"][name];
    let table = if inner == ".queue" { &table["queue"] } else { &table["reverse"]["queue"] };
    table.is_object().then(|| (format!("links.{name}{inner}"), table))
}

fn link_info(scenario: &Value, link: &LinkSpec, gauges: &[String]) -> LinkInfo {
    let table = queue_table(scenario, &link.name);
    let word = |key: &str| Some(table.as_ref()?.1[key].as_str()?.to_owned());
    let limit = word("limit").and_then(|limit| limit.parse::<Depth>().ok());
    let mut lines = Vec::new();
    if let Some((key, table)) = &table {
        find_lines(table, key, "", gauges, &mut lines);
    }
    LinkInfo {
        name: link.name.clone(),
        from: link.from.0,
        to: link.to.0,
        rate_bps: link.rate.as_bps() as f64,
        delay_s: link.delay.as_secs_f64(),
        measured: link.queue.is_some(),
        aqm: word("aqm").or_else(|| Some(table.as_ref()?.1["rule"]["aqm"].as_str()?.to_owned())),
        scheduler: word("scheduler"),
        limit_packets: if let Some(Depth::Packets(packets)) = limit { Some(packets) } else { None },
        limit_bytes: if let Some(Depth::Bytes(bytes)) = limit { Some(bytes) } else { None },
        lines,
    }
}

/// Thresholds, targets and limits of a queue's table and of the tables in it. `prefix` names their table.
fn find_lines(table: &Value, key: &str, prefix: &str, gauges: &[String], lines: &mut Vec<Line>) {
    let Some(table) = table.as_object() else { return };
    for (name, value) in table {
        let key = format!("{key}.{name}");
        let label = if name == "thresholds" { prefix.into() } else { format!("{prefix}{name} ") };
        let mut add = |name: String, unit, value, gauge| {
            lines.push(Line { name: name.trim().to_owned(), key: key.clone(), unit, value, gauge });
        };
        match value {
            Value::String(text) => {
                if let Ok(set) = text.parse::<Thresholds>() {
                    let unit = if set.unit() == Unit::Bytes { "bytes" } else { "packets" };
                    let gauge = gauge_of(name, gauges);
                    add(format!("{label}min"), unit, set.min(), gauge.clone());
                    add(format!("{label}max"), unit, set.max(), gauge);
                } else if name == "target" || name == "target-delay" {
                    let target = text.parse::<Duration>();
                    if let Ok(target) = target {
                        add(label.clone(), "s", target.as_secs_f64(), None);
                    }
                } else if name == "limit" {
                    match text.parse::<Depth>() {
                        Ok(Depth::Packets(packets)) => add(label.clone(), "packets", packets as f64, None),
                        Ok(Depth::Bytes(bytes)) => add(label.clone(), "bytes", bytes as f64, None),
                        Err(_) => {}
                    }
                }
            }
            Value::Object(_) => find_lines(value, &key, &label, gauges, lines),
            Value::Array(tables) => {
                for (place, inner) in tables.iter().enumerate() {
                    let name = inner["name"].as_str().map_or_else(|| place.to_string(), str::to_owned);
                    find_lines(inner, &format!("{key}.{name}"), &format!("{prefix}{name} "), gauges, lines);
                }
            }
            _ => {}
        }
    }
}

/// The gauge that a threshold set of this name is compared with.
pub fn gauge_of(set: &str, gauges: &[String]) -> Option<String> {
    let wanted = match set {
        "in" => "average in",
        "out" => "average out",
        "out-in" => "average in and out-in",
        _ => "average total",
    };
    let found =
        [wanted, "average total", "average out"].into_iter().find(|name| gauges.iter().any(|g| g == name));
    found.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_a_millisecond_apart_or_some_thousands_in_a_run() {
        let interval = |seconds| sample_interval(Duration::from_secs(seconds)).as_nanos() / 1_000_000;
        assert_eq!([1, 6, 7, 12, 30, 31, 60, 61, 600].map(interval), [1, 1, 2, 2, 5, 10, 10, 20, 100]);
    }

    #[test]
    fn classes_count_all_their_flows_and_share_what_is_sampled() {
        let toml = r#"duration = "1s"
links.link = { from = "a", to = "b", rate = "1Mbps", delay = "5ms", queue = { aqm = "drop-tail", limit = "9p" } }
flows = [
    { name = "bulk", count = 100, from = "a", to = "b", transport = { tcp = "newreno" } },
    { name = "calls", count = 10, from = "a", to = "b", transport = { udp = "cbr", rate = "10kbps" }, profile = { marker = "token-bucket", rate = "20kbps", burst = "3kB" } },
]
"#;
        let network = read(toml).unwrap().network();
        let classes = classes(&network.flows);
        let seen: Vec<_> =
            classes.iter().map(|of| (of.name.as_str(), of.first, of.flows, of.profile_bps)).collect();
        assert_eq!(seen, [("bulk", 0, 100, None), ("calls", 100, 10, Some(200_000.0))]);
        let sampled = sampled_flows(&classes);
        let expected: Vec<usize> = (0..54).chain(100..110).collect();
        assert_eq!(sampled, expected);
        assert!(colored(&network));
        let bulk = &toml[..toml.find("    { name = \"calls\"").unwrap()];
        assert!(!colored(&read(&format!("{bulk}]")).unwrap().network()));
    }

    #[test]
    fn lines_come_from_thresholds_targets_and_limits() {
        let table = serde_json::json!({
            "aqm": "rio", "in": "40/70/0.02", "out": "10/30/0.2", "limit": "100p", "target": "5ms", "weight": 0.002
        });
        let gauges = ["average in".to_owned(), "average out".to_owned()];
        let mut lines = Vec::new();
        find_lines(&table, "links.l.queue", "", &gauges, &mut lines);
        let seen: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.unit, line.value)).collect();
        let packets = "packets";
        let expected = [
            ("in min", packets, 40.0),
            ("in max", packets, 70.0),
            ("out min", packets, 10.0),
            ("out max", packets, 30.0),
            ("limit", packets, 100.0),
            ("target", "s", 0.005),
        ];
        assert_eq!(seen, expected);
        assert_eq!(lines[3].gauge.as_deref(), Some("average out"));
    }
}

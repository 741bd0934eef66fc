//! Requests of the page as JSON, and what they are answered.

use std::fmt::Write as _;

use perhop_core::Instant;
use perhop_core::Reason;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bounds::bounds;
use crate::controls;
use crate::describe::{self, Column, Opened};
use crate::measure::{fingerprint_of, interval, rows, whole};
use crate::problem::Problem;
use crate::run::LiveRun;
use crate::session::Session;

/// An answer: JSON, and the numbers of a frame.
#[derive(Debug, Default)]
pub struct Answer {
    /// `{"ok": …}` or `{"problem": …}`.
    pub json: String,
    /// Only frames have some.
    pub numbers: Vec<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Request {
    Version {},
    Open { toml: String, seed: String },
    Advance { until_s: f64 },
    Frame {},
    Step { link: Option<usize> },
    Seek { time_s: f64 },
    Set { path: String, value: String, which: usize },
    Text { toml: String, which: usize },
    Compare { toml: Option<String> },
    Explain { event: usize, which: usize },
    Export { kind: String, which: usize },
    Check { toml: String },
    Edit { toml: String, path: String, value: String },
    Measure { toml: String, seed: String },
    Bounds { toml: String },
    Intervals { rows: Vec<Vec<f64>> },
    Fingerprint { toml: String, seed: String },
}

/// Answers a request. The session is the page's, and none before the first `open`.
pub fn answer(session: &mut Option<Session>, request: &str) -> Answer {
    let mut numbers = Vec::new();
    let answered = serde_json::from_str(request)
        .map_err(|error| Problem::new(format!("the page asked for something unknown: {error}")))
        .and_then(|request| handle(session, request, &mut numbers));
    let json = match answered {
        Ok(value) => json!({"ok": value}),
        Err(problem) => json!({"problem": problem}),
    };
    Answer { json: json.to_string(), numbers }
}

fn handle(session: &mut Option<Session>, request: Request, numbers: &mut Vec<f64>) -> Result<Value, Problem> {
    match request {
        Request::Version {} => Ok(json!(env!("CARGO_PKG_VERSION"))),
        Request::Open { toml, seed } => {
            let opened = Session::open(&toml, seed_of(&seed)?)?;
            described(session.insert(opened), 0)
        }
        Request::Check { toml } => {
            Ok(describe::read(&toml).map_or_else(|problem| json!(problem), |_| Value::Null))
        }
        Request::Edit { toml, path, value } => {
            let table = serde_json::to_value(describe::read(&toml)?).unwrap_or(Value::Null);
            Ok(json!(controls::set(&table, &toml, &path, &value)?))
        }
        Request::Measure { toml, seed } => {
            let (scenario, outcome) = whole(&toml, seed_of(&seed)?)?;
            Ok(json!(rows(&scenario, &outcome)))
        }
        Request::Bounds { toml } => bounds(&toml),
        Request::Intervals { rows } => Ok(rows.iter().map(|values| interval(values)).collect()),
        Request::Fingerprint { toml, seed } => {
            Ok(json!(format!("{:016x}", fingerprint_of(&toml, seed_of(&seed)?)?)))
        }
        running => {
            let session = session.as_mut().ok_or_else(|| Problem::new("no scenario is open"))?;
            of_session(session, running, numbers)
        }
    }
}

fn of_session(session: &mut Session, request: Request, numbers: &mut Vec<f64>) -> Result<Value, Problem> {
    match request {
        Request::Advance { until_s } => {
            session.advance(instant(until_s)?);
            Ok(progress(session))
        }
        Request::Frame {} => Ok(session.frame(numbers)),
        Request::Step { link } => {
            session.step(link);
            Ok(progress(session))
        }
        Request::Seek { time_s } => {
            let undone = session.seek(instant(time_s)?)?;
            let mut answer = progress(session);
            answer["undone"] = json!(undone);
            answer["opened"] = if undone > 0 { all_described(session)? } else { json!([]) };
            Ok(answer)
        }
        Request::Set { path, value, which } => {
            let toml = session.edited(which, &path, &value)?;
            changed(session, which, &toml)
        }
        Request::Text { toml, which } => changed(session, which, &toml),
        Request::Compare { toml } => {
            session.compare(toml.as_deref())?;
            if toml.is_some() { described(session, 1) } else { Ok(Value::Null) }
        }
        Request::Explain { event, which } => Ok(json!(session.explain(which, event)?)),
        Request::Export { kind, which } => exported(session.run(which)?, &kind).map(Value::from),
        _ => Err(Problem::new("this needs no session")),
    }
}

fn described(session: &mut Session, which: usize) -> Result<Value, Problem> {
    Ok(json!(session.run(which)?.opened()))
}

/// All runs, as they are by now.
fn all_described(session: &mut Session) -> Result<Value, Problem> {
    (0..session.runs()).map(|which| described(session, which)).collect()
}

fn changed(session: &mut Session, which: usize, toml: &str) -> Result<Value, Problem> {
    let changed = session.set_text(which, toml)?;
    let opened = described(session, which)?;
    Ok(json!({
        "toml": toml,
        "how": if changed.live { "live" } else { "restarted" },
        "why": changed.why,
        "opened": opened,
        "generation": session.generation(),
    }))
}

fn progress(session: &Session) -> Value {
    json!({"timeS": session.now().as_secs_f64(), "ended": session.is_done(), "generation": session.generation()})
}

fn seed_of(text: &str) -> Result<u64, Problem> {
    let wrong =
        |_| Problem::at("seed", format!("`{text}` is no seed; write a whole number from 0 to 2^64 - 1"));
    text.parse().map_err(wrong)
}

fn instant(seconds: f64) -> Result<Instant, Problem> {
    if !(0.0..=1e9).contains(&seconds) {
        return Err(Problem::new(format!("`{seconds}` is no time of a run")));
    }
    Ok(Instant::from_nanos((seconds * 1e9).round() as u64))
}

/// Data for a file: samples and events as CSV, the outcome of the whole run as JSON.
fn exported(run: &mut LiveRun, kind: &str) -> Result<String, Problem> {
    match kind {
        "samples" => Ok(samples(run)),
        "events" => Ok(events(run)),
        "outcome" => {
            let outcome = run.outcome()?;
            let rows: serde_json::Map<String, Value> = rows(run.scenario(), &outcome)
                .into_iter()
                .map(|(name, _, value)| (name, json!(value)))
                .collect();
            Ok(format!("{:#}\n", Value::Object(rows)))
        }
        _ => {
            Err(Problem::new(format!("`{kind}` cannot be exported; choose `samples`, `events` or `outcome`")))
        }
    }
}

fn samples(run: &mut LiveRun) -> String {
    let network = run.stepping().network().clone();
    let Opened { classes, flows, .. } = run.opened();
    let classes: Vec<String> = classes.into_iter().map(|class| class.name).collect();
    let flows: Vec<String> = flows.into_iter().map(|flow| flow.name).collect();
    let (columns, times, values) = run.samples();
    let name = |column: &Column| {
        let whose = match (column.link, column.flow, column.class) {
            (Some(link), ..) => network.links[link].name.as_str(),
            (_, Some(flow), _) => flows[flow].as_str(),
            (.., Some(class)) => classes[class].as_str(),
            _ => "",
        };
        let color = column.color.map_or("", |color| perhop_core::Color::ALL[usize::from(color)].name());
        let what = if column.name == column.kind { String::new() } else { format!(" {}", column.name) };
        let text = format!("{whose} {}{what} {color}", column.kind);
        let unit = if column.unit.is_empty() { String::new() } else { format!(" ({})", column.unit) };
        quoted(&format!("{}{unit}", text.trim_end()))
    };
    let mut text: String =
        std::iter::once("time_s".to_owned()).chain(columns.iter().map(name)).collect::<Vec<_>>().join(",");
    text.push('\n');
    for (time, row) in times.iter().zip(values.chunks(columns.len().max(1))) {
        let _ = write!(text, "{time}");
        for value in row {
            // No value is an empty cell.
            let _ = if value.is_nan() { write!(text, ",") } else { write!(text, ",{value}") };
        }
        text.push('\n');
    }
    text
}

fn events(run: &mut LiveRun) -> String {
    let network = run.stepping().network().clone();
    let mut text = String::from("time_s,link,flow,color,event,reason,size_bytes\n");
    let witness = run.witness();
    for (_, event) in witness.events(0) {
        let flow = network.flows.get(event.flow as usize).map_or("", |flow| flow.name.as_str());
        let act = if event.is_mark { "mark" } else { "drop" };
        let (link, reason): (_, Reason) = (&network.links[event.link].name, event.reason);
        let _ = writeln!(
            text,
            "{},{},{},{},{act},{},{}",
            event.at.as_secs_f64(),
            quoted(link),
            quoted(flow),
            event.color.name(),
            reason.name(),
            event.size
        );
    }
    text
}

/// A cell of CSV.
fn quoted(text: &str) -> String {
    let text = text.trim();
    // A spreadsheet takes what begins so for a formula.
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

//! From text to a checked scenario. Problems keep the path of their key.

use perhop_core::aqm::AqmParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::units::split_key;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bounds::Syntax;
use crate::check::Driver;
use crate::error::{KeyPart, Notice, Problem, ScenarioError, at_flow, at_table, did_you_mean, steps};
use crate::files::{Files, NoFiles};
use crate::format::Scenario;
use crate::former::{FormerKeys, replace_former_keys};
use crate::hints;
use crate::limits;
use crate::matrix::read_matrices;
use crate::measured::{read_arrivals, read_replay, read_sizes};
use crate::plugins::complete;
use crate::trace::read_trace;

impl Scenario {
    /// Reads and checks a scenario in TOML that names no files; `origin` names the file in messages.
    ///
    /// # Errors
    /// The first problem: its place, what is wrong, what would be right.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        Self::from_toml_for(text, origin, Driver::Simulator, &NoFiles)
    }

    /// Reads and checks a scenario in JSON that names no files; `origin` names the text in messages.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        Self::from_json_for(text, origin, Driver::Simulator, &NoFiles)
    }

    /// Reads a scenario in TOML that this driver is to run, and the `files` that it names.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml); also where something can have no effect there.
    pub fn from_toml_for(
        text: &str,
        origin: &str,
        driver: Driver,
        files: &dyn Files,
    ) -> Result<Self, ScenarioError> {
        Self::read(Syntax::Toml, text, origin, driver, files)
    }

    /// Reads a scenario in JSON that this driver is to run, and the `files` that it names.
    ///
    /// # Errors
    /// As [`from_toml_for`](Self::from_toml_for).
    pub fn from_json_for(
        text: &str,
        origin: &str,
        driver: Driver,
        files: &dyn Files,
    ) -> Result<Self, ScenarioError> {
        Self::read(Syntax::Json, text, origin, driver, files)
    }

    fn read(
        syntax: Syntax,
        text: &str,
        origin: &str,
        driver: Driver,
        files: &dyn Files,
    ) -> Result<Self, ScenarioError> {
        let prepare = |value: &mut Value| {
            files.plugins().map_or(Ok(()), |plugins| complete(value, plugins))?;
            let former = replace_former_keys(value)?;
            limits::in_bytes(value)?;
            Ok(former)
        };
        read_tables(syntax, text, origin, prepare, |scenario: &mut Self, former| {
            scenario.former_keys.clone_from(&former.notices);
            scenario.expand(files)?;
            read_files(scenario, files)?;
            read_matrices(scenario, files)?;
            scenario.check(driver)
        })
    }

    /// Returns the scenario in TOML, defaults filled in; [`from_toml`](Self::from_toml) reads the same from
    /// it.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("text, numbers and tables all have a form in TOML")
    }
}

/// Reads tables in JSON, a scenario's or others, and has `check` test how they fit together; `origin` names
/// the file in messages.
///
/// # Errors
/// The first problem: its place, what is wrong, what would be right.
pub fn read_json<T: DeserializeOwned>(
    text: &str,
    origin: &str,
    check: impl FnOnce(&T) -> Result<(), Problem>,
) -> Result<T, ScenarioError> {
    read_tables(Syntax::Json, text, origin, |_| Ok(FormerKeys::default()), |read, _| check(read))
}

/// Reads tables in TOML, a scenario's or another file's, and has `check` test how they fit together; `origin`
/// names the file in messages.
///
/// # Errors
/// As [`read_json`].
pub fn read_toml<T: DeserializeOwned>(
    text: &str,
    origin: &str,
    check: impl FnOnce(&T) -> Result<(), Problem>,
) -> Result<T, ScenarioError> {
    read_tables(Syntax::Toml, text, origin, |_| Ok(FormerKeys::default()), |read, _| check(read))
}

/// Reads tables in TOML or JSON: parses the text, has `prepare` change the values before they get types, and
/// `complete` what then has been read, with the former keys that `prepare` has replaced.
fn read_tables<T: DeserializeOwned>(
    syntax: Syntax,
    text: &str,
    origin: &str,
    prepare: impl FnOnce(&mut Value) -> Result<FormerKeys, Problem>,
    complete: impl FnOnce(&mut T, &FormerKeys) -> Result<(), Problem>,
) -> Result<T, ScenarioError> {
    let error = |line, key: String, problem| ScenarioError { origin: origin.into(), line, key, problem };
    syntax.check(text).map_err(|excess| error(Some(excess.line), String::new(), excess.text))?;
    let is_toml = syntax == Syntax::Toml;
    let value = if is_toml {
        parse_toml(text).map(|table| plain(toml::Value::Table(table), &mut Vec::new()))
    } else {
        parse_json(text).map(Ok)
    };
    let value = value.map_err(|(line, text)| error(line, String::new(), text))?;
    let read = value.and_then(|mut value| {
        let former = prepare(&mut value)?;
        let read = deserialize(&value).and_then(|mut read| complete(&mut read, &former).map(|()| read));
        read.map_err(|problem| former.as_written(problem))
    });
    read.map_err(|problem| {
        let offset = if is_toml { span_of(text, &problem.path) } else { None };
        let line = offset.map(|offset| line_of(text, offset));
        error(line, problem.key(), problem.text)
    })
}

/// Parses JSON. A problem has its line.
fn parse_json(text: &str) -> Result<Value, (Option<usize>, String)> {
    serde_json::from_str(text).map_err(|problem| (Some(problem.line()), problem.to_string()))
}

/// Parses TOML. A problem has its line, if it is known.
fn parse_toml(text: &str) -> Result<toml::Table, (Option<usize>, String)> {
    toml::from_str(text).map_err(|problem| {
        let line = problem.span().map(|span| line_of(text, span.start));
        let mut message = problem.message().trim().replace('\n', "; ");
        if message == "duplicate key"
            && let Some(key) = problem.span().and_then(|span| text.get(span))
        {
            message = format!("duplicate key `{key}`; write a key once in its table");
        }
        (line, message)
    })
}

/// Returns notices of a file of tables, with its name, and the lines if its text is TOML.
pub fn notices_in(toml: Option<&str>, origin: &str, notices: Vec<Problem>) -> Vec<Notice> {
    let line = |notice: &Problem| toml.and_then(|text| Some(line_of(text, span_of(text, &notice.path)?)));
    let placed = notices.into_iter().map(|notice| Notice {
        origin: origin.into(),
        line: line(&notice),
        key: notice.key(),
        text: notice.text,
    });
    placed.collect()
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}

/// Turns TOML into JSON's values. Values that only TOML has are refused at their key.
fn plain(value: toml::Value, path: &mut Vec<KeyPart>) -> Result<Value, Problem> {
    let mut inner = |step, value| {
        path.push(step);
        let plain = plain(value, path);
        path.pop();
        plain
    };
    match value {
        toml::Value::String(text) => Ok(text.into()),
        toml::Value::Integer(number) => Ok(number.into()),
        toml::Value::Boolean(truth) => Ok(truth.into()),
        toml::Value::Float(number) if number.is_finite() => Ok(number.into()),
        toml::Value::Float(number) => {
            Err(Problem::at(path.clone(), format!("`{number}`: expected a finite number")))
        }
        toml::Value::Datetime(date) => Err(Problem::at(
            path.clone(),
            format!("`{date}` is a date, which no key accepts; write text in quotes"),
        )),
        toml::Value::Array(values) => {
            values.into_iter().enumerate().map(|(index, value)| inner(KeyPart::Index(index), value)).collect()
        }
        toml::Value::Table(table) => {
            let plain: Result<serde_json::Map<_, _>, _> = table
                .into_iter()
                .map(|(key, value)| inner(KeyPart::Key(key.clone()), value).map(|value| (key, value)))
                .collect();
            plain.map(Value::Object)
        }
    }
}

fn deserialize<T: DeserializeOwned>(value: &Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let problem = problem_of(&error);
        let read = |value: &Value| {
            serde_path_to_error::deserialize::<_, T>(value).err().map(|error| problem_of(&error))
        };
        let named = name_the_choices(value, &problem, read);
        let better = named.or_else(|| say_what_a_link_replaces(value, &problem));
        let hinted = hints::for_value(better.unwrap_or(problem));
        hints::belongs_to_another_key(value, &hinted, read).unwrap_or(hinted)
    })
}

/// Explains a missing key of a link beside a topology: the link may be written as if its table changed a part
/// of one.
fn say_what_a_link_replaces(value: &Value, problem: &Problem) -> Option<Problem> {
    let [KeyPart::Key(links), KeyPart::Key(_)] = &problem.path[..] else { return None };
    let missing = problem.text.starts_with("key `") && problem.text.ends_with("` is missing");
    (missing && links == "links" && value.get("topology").is_some()).then(|| {
        let text = format!(
            "{}: this table describes a whole link, with `from`, `to`, `rate` and `delay`, also where it replaces one of the \
             topology; `topology.link` and `topology.tiers` change all links or those of a tier",
            problem.text
        );
        Problem { path: problem.path.clone(), text }
    })
}

/// Names the choices where one of several names belongs and another value is, since serde does not say which
/// names: put there a name that is none of them, and it does.
fn name_the_choices(
    value: &Value,
    problem: &Problem,
    read: impl Fn(&Value) -> Option<Problem>,
) -> Option<Problem> {
    const NO_NAME: &str = "?";
    let found = problem.text.strip_prefix("expected string or table, not ")?;
    let mut changed = value.clone();
    *problem.path.iter().try_fold(&mut changed, |inside, step| match step {
        KeyPart::Key(key) => inside.get_mut(key),
        KeyPart::Index(index) => inside.get_mut(index),
    })? = NO_NAME.into();
    let asked = read(&changed)?;
    let (_, choices) = asked.text.strip_suffix(')')?.split_once("(one of ")?;
    let text = format!("expected one of {choices}, in quotes, not {found}");
    (asked.path == problem.path).then_some(Problem { text, ..asked })
}

fn problem_of(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let mut path: Vec<KeyPart> = error
        .path()
        .iter()
        .filter_map(|segment| match segment {
            serde_path_to_error::Segment::Seq { index } => Some(KeyPart::Index(*index)),
            serde_path_to_error::Segment::Map { key } => Some(KeyPart::Key(key.clone())),
            _ => None,
        })
        .collect();
    let message = error.inner().to_string();
    let (inner, text) = split_key(&message);
    path.extend(steps(inner));
    if let Some((key, text)) = unknown_key(text) {
        // serde's path already ends with an unknown key where it tracks it itself.
        if path.last() != Some(&KeyPart::Key(key.clone())) {
            path.push(KeyPart::Key(key));
        }
        return Problem { path, text };
    }
    Problem { path, text: plainer(text) }
}

/// Rewords serde's "unknown field `x`, expected …", naming the nearest valid key.
fn unknown_key(text: &str) -> Option<(String, String)> {
    let rest = text.strip_prefix("unknown field `")?;
    let (key, expected) = rest.split_once('`')?;
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let hint = hints::for_key(key, &known).unwrap_or_else(|| did_you_mean(key, known.iter().copied()));
    let list = if known.is_empty() { "none".into() } else { known.join(", ") };
    Some((key.into(), format!("unknown key `{key}`{hint} (valid keys: {list})")))
}

/// Says "key" where serde says "field", and gives the nearest word where it lists variants.
fn plainer(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("missing field `") {
        let key = rest.trim_end_matches('`');
        return format!("key `{key}` is missing");
    }
    if let Some((kind, rest)) = text.strip_prefix("unknown ").and_then(|rest| rest.split_once(" `"))
        && let Some((word, expected)) = rest.split_once('`')
    {
        let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        let hint = nearest_mechanism(kind, word).unwrap_or_else(|| did_you_mean(word, known.iter().copied()));
        let kind = if kind == "variant" { "value" } else { kind };
        let others = expected.rsplit('`').next().unwrap_or_default();
        return format!("unknown {kind} `{word}`{hint} (one of {}{others})", known.join(", "));
    }
    if text == "data did not match any variant of untagged enum Setting" {
        return "expected a number, or text in quotes".into();
    }
    if let Some((count, wanted)) =
        text.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        let plural = if count == "1" { "value" } else { "values" };
        return if wanted.starts_with("fewer elements") {
            format!("{count} {plural} are more than belong here; leave out the last")
        } else {
            format!("expected {}, not {count} {plural}", wanted.replace("an array", "a list"))
        };
    }
    match text.strip_prefix("invalid type: ").or(text.strip_prefix("invalid value: ")) {
        Some(rest) => match rest.rsplit_once(", expected ") {
            Some((found, wanted)) => {
                format!("expected {}, not {}", wanted_in_words(wanted), found_in_words(found))
            }
            None => rest.into(),
        },
        None => text.replace(" map", " table").replace("struct ", "table "),
    }
}

/// Mechanisms of other systems that have no block of their own, separated by spaces, and what comes nearest.
const MECHANISMS: [(&str, &str); 10] = [
    ("fq-pie cake sfq", "it is not built yet; the nearest is scheduler = \"fq-codel\""),
    ("sfb", "it is not built yet; the nearest is aqm = \"pi2\" or aqm = \"pie\""),
    ("ared adaptive-red", "it is aqm = \"red\" with adaptive = true"),
    ("docsis-pie", "it is aqm = \"pie\" with law = \"docsis\""),
    ("fifo pfifo bfifo taildrop", "a FIFO queue without other management is aqm = \"drop-tail\""),
    (
        "fq",
        "flows with a queue each are scheduler = \"fq-codel\"; pacing is the transport's pacing = \"window\"",
    ),
    ("netem", "`delay`, `loss`, `burst-loss` and `jitter` are keys of the link"),
    ("tbf", "a token-bucket shaper is scheduler = \"shaper\"; the rate of a link is its `rate`"),
    ("prio pfifo-fast cbq hfsc", "the nearest are scheduler = \"priority\" and scheduler = \"htb\""),
    ("infinite none", "a queue without a limit has no table: leave `queue` out"),
];

/// Returns a hint for who names a mechanism that is known, but not as a block of this kind.
fn nearest_mechanism(kind: &str, word: &str) -> Option<String> {
    let (other, block) = match kind {
        "aqm" => ("scheduler", SchedulerParams::NAMES),
        "scheduler" => ("aqm", AqmParams::NAMES),
        _ => return None,
    };
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    if let Some(name) = block.iter().find(|name| plain(name) == plain(word)) {
        return Some(format!("; write {other} = \"{name}\""));
    }
    let is_it = |(names, _): &&(&str, &str)| names.split(' ').any(|name| plain(name) == plain(word));
    let (_, nearest) = MECHANISMS.iter().find(is_it)?;
    Some(format!("; {nearest}"))
}

/// Returns what serde asked for.
fn wanted_in_words(wanted: &str) -> String {
    let theirs_and_ours = [
        ("a nonzero u32", "a whole number from 1 to 4294967295"),
        ("u16", "a whole number from 0 to 65535"),
        ("u32", "a whole number from 0 to 4294967295"),
        ("i32", "a whole number"),
        ("i64", "a whole number"),
        ("f64", "a number"),
        ("a boolean", "true or false"),
        ("a string", "text in quotes"),
        ("a sequence", "a list"),
        ("a map", "a table"),
        ("string or map", "string or table"),
    ];
    let ours =
        theirs_and_ours.iter().find(|(theirs, _)| *theirs == wanted).map(|(_, ours)| (*ours).to_owned());
    ours.unwrap_or_else(|| {
        wanted.strip_prefix("struct ").map_or(wanted.into(), |name| format!("a table ({name})"))
    })
}

/// Returns what serde found.
fn found_in_words(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind).map(|rest| rest.trim_matches('`'));
    match found {
        "sequence" => "a list".into(),
        "map" => "a table".into(),
        "null" | "unit value" => "nothing".into(),
        _ => quoted("integer ")
            .or(quoted("floating point "))
            .or(quoted("boolean "))
            .map(str::to_owned)
            .or(found.strip_prefix("string ").map(|text| format!("the text {text}")))
            .unwrap_or_else(|| found.into()),
    }
}

/// Returns the place in a TOML text at which the key of this path, or the nearest table around it, begins.
fn span_of(text: &str, path: &[KeyPart]) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut place = None;
    let mut value: &toml::de::DeValue<'_> = &toml::de::DeValue::Table(document.into_inner());
    for step in path {
        let next = match (step, value) {
            (KeyPart::Key(key), toml::de::DeValue::Table(table)) => {
                table.iter().find(|(name, _)| name.get_ref() == key).map(|(name, value)| (name.span(), value))
            }
            (KeyPart::Index(index), toml::de::DeValue::Array(array)) => {
                array.get(*index).map(|value| (value.span(), value))
            }
            _ => None,
        };
        let Some((span, inner)) = next else { break };
        place = Some(span.start);
        value = inner.get_ref();
    }
    place
}

/// Reads the files that the scenario names, and takes their text into it.
fn read_files(scenario: &mut Scenario, files: &dyn Files) -> Result<(), Problem> {
    for (name, link) in scenario.links.iter_mut() {
        read_trace(&mut link.rate_trace, files)
            .map_err(|(key, text)| Problem::at(at_table("links", name, &key), text))?;
        if let Some(reverse) = &mut link.reverse {
            read_trace(&mut reverse.rate_trace, files).map_err(|(key, text)| {
                Problem::at(at_table("links", name, &format!("reverse.{key}")), text)
            })?;
        }
    }
    for (number, group) in scenario.flows.iter_mut().enumerate() {
        let read = group.arrivals.as_mut().map_or(Ok(()), |arrivals| read_arrivals(arrivals, files));
        let read = read.and_then(|()| group.sizes.as_mut().map_or(Ok(()), |sizes| read_sizes(sizes, files)));
        let read = read.and_then(|()| read_replay(&mut group.replay, files));
        read.map_err(|(key, text)| Problem::at(at_flow(number, &key), text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_have_no_block_has_none() {
        let blocks = || AqmParams::NAMES.iter().chain(SchedulerParams::NAMES);
        let mut missing =
            MECHANISMS.iter().flat_map(|(names, _)| names.split(' ')).filter(|name| *name != "fifo");
        assert!(missing.all(|name| !blocks().any(|block| *block == name)));
    }
}

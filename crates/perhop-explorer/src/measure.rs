//! Whole runs: their fingerprint, and the measures of which a page shows intervals.

use perhop_core::measure::LinkOutcome;
use perhop_scenario::Scenario;
use perhop_sim::measures::{FLOW, LINK, Measure, QueueMeasures, Statistic, Summary, Value};
use perhop_sim::{FlowOutcome, Outcome, Simulation, Watch};
use serde_json::json;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::describe;
use crate::problem::Problem;
use crate::run::failed;

/// A number of everything that was measured in a run, to the bit: FNV-1a over the outcome as Rust writes it for debugging, where every number
/// has all of its digits. Two runs with the same fingerprint are the same run.
pub fn fingerprint(outcome: &Outcome) -> u64 {
    let text = format!("{outcome:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A run from its beginning to its end, on the faster engine that accepts the network.
///
/// # Errors
/// What is wrong with the scenario.
pub fn whole(toml: &str, seed: u64) -> Result<(Scenario, Outcome), Problem> {
    let scenario = describe::read(toml)?;
    let outcome = Simulation::run(&scenario.network(), seed, None, &Watch::default())
        .map_err(|failure| failed(&failure))?;
    Ok((scenario, outcome))
}

/// The fingerprint of the run of a scenario in TOML.
///
/// # Errors
/// What is wrong with the scenario.
pub fn fingerprint_of(toml: &str, seed: u64) -> Result<u64, Problem> {
    whole(toml, seed).map(|(_, outcome)| fingerprint(&outcome))
}

/// A measure of a run: its name in sweeps, its unit, and its value.
pub type Row = (String, &'static str, Option<f64>);

/// What summaries show of a run: of each link, and of each class of flows the mean or the sum, as in `perhop run`.
pub fn rows(scenario: &Scenario, outcome: &Outcome) -> Vec<Row> {
    let mut rows = Vec::new();
    for link in &outcome.links {
        let name = format!("links.{}", link.name);
        rows.extend(LINK.iter().filter_map(|measure| row(&name, measure, std::slice::from_ref(link))));
        let queue = QueueMeasures::<LinkOutcome>::ALL.iter();
        rows.extend(queue.filter_map(|measure| row(&name, measure, std::slice::from_ref(link))));
    }
    let mut first = 0;
    for class in scenario.classes() {
        let next = first + class.flows as usize;
        let flows: &[FlowOutcome] = outcome.flows.get(first..next).unwrap_or(&[]);
        let name = format!("flows.{}", class.name);
        rows.extend(FLOW.iter().filter_map(|measure| row(&name, measure, flows)));
        first = next;
    }
    for application in &outcome.applications {
        let name = |measure: &str| format!("applications.{}.{measure}", application.name);
        rows.extend(application.measures.iter().map(|&(measure, value)| (name(measure), "", value)));
    }
    rows
}

fn row<O>(name: &str, measure: &Measure<O>, outcomes: &[O]) -> Option<Row> {
    let Summary { statistic, metric, .. } = measure.summary?;
    let values: Vec<f64> = outcomes.iter().filter_map(|outcome| value(&measure.value, outcome)).collect();
    let sum: f64 = values.iter().sum();
    let value = match statistic {
        _ if values.is_empty() => None,
        Statistic::Sum => Some(sum),
        Statistic::Mean => Some(sum / values.len() as f64),
    };
    Some((format!("{name}.{}", metric.unwrap_or(measure.name)), measure.unit.symbol(), value))
}

fn value<O>(value: &Value<O>, outcome: &O) -> Option<f64> {
    match value {
        Value::Count(of) => Some(of(outcome) as f64),
        Value::Number(of) => Some(of(outcome)),
        Value::Optional(of) => of(outcome),
        Value::ByColor(of) => Some(of(outcome).iter().sum::<u64>() as f64),
    }
}

/// The mean of one value from each of several runs and its 95 % interval by Student's t; no interval for one run.
pub fn interval(values: &[f64]) -> serde_json::Value {
    let n = values.len() as f64;
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return json!({"mean": null, "low": null, "high": null});
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let half = match StudentsT::new(0.0, 1.0, n - 1.0) {
        Ok(student) => student.inverse_cdf(0.975) * (squares / (n - 1.0) / n).sqrt(),
        Err(_) => f64::NAN,
    };
    let end = |value: f64| value.is_finite().then_some(value);
    json!({"mean": mean, "low": end(mean - half), "high": end(mean + half)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_by_hand() {
        // s = 1, n = 4: 3.182/√4.
        let interval = interval(&[-1.0, 0.0, 0.0, 1.0].map(|x: f64| x * 1.5_f64.sqrt()));
        let high = interval["high"].as_f64().unwrap();
        assert!((high - 3.182_446 / 2.0).abs() < 1e-5, "{high}");
        assert_eq!(super::interval(&[2.0])["high"], serde_json::Value::Null);
    }
}

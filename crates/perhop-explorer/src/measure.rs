//! Whole runs: their fingerprint, and the measures of which a page shows intervals.

use perhop_core::measure::LinkOutcome;
use perhop_scenario::Scenario;
use perhop_sim::application::all_measures;
use perhop_sim::measures::{FLOW, LINK, Measure, QueueMeasures, Statistic, Summary};
use perhop_sim::{FlowOutcome, Outcome, Simulation, Watch};
use serde_json::json;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::describe;
use crate::problem::Problem;

/// A number of everything that was measured in a run, to the bit: FNV-1a over the outcome as Rust writes it
/// for debugging, where every number has all of its digits. Two runs with the same fingerprint are the same
/// run.
pub fn fingerprint(outcome: &Outcome) -> u64 {
    let text = format!("{outcome:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Runs a scenario from its beginning to its end, on the faster engine that accepts the network.
pub fn whole(toml: &str, seed: u64) -> Result<(Scenario, Outcome), Problem> {
    let scenario = describe::read(toml)?;
    let outcome = Simulation::run(&scenario.network(), seed, None, &Watch::default())
        .map_err(|failure| Problem::new(failure.to_string()))?;
    Ok((scenario, outcome))
}

/// The fingerprint of the run of a scenario in TOML.
///
/// # Errors
/// The problem of the scenario.
pub fn fingerprint_of(toml: &str, seed: u64) -> Result<u64, Problem> {
    whole(toml, seed).map(|(_, outcome)| fingerprint(&outcome))
}

/// A measure of a run: its name in sweeps, its unit, and its value.
pub type Row = (String, &'static str, Option<f64>);

/// What summaries show of a run: of each link, and of each class of flows the mean or the sum, as in `perhop
/// run`.
pub fn rows(scenario: &Scenario, outcome: &Outcome) -> Vec<Row> {
    let mut rows = Vec::new();
    for link in &outcome.links {
        let name = format!("links.{}", link.name);
        rows.extend(LINK.iter().filter_map(|measure| row(&name, measure, LINK, std::slice::from_ref(link))));
        let queue = QueueMeasures::<LinkOutcome>::ALL;
        rows.extend(
            queue.iter().filter_map(|measure| row(&name, measure, queue, std::slice::from_ref(link))),
        );
    }
    let mut first = 0;
    for class in scenario.classes() {
        let next = first + class.flows as usize;
        let flows: &[FlowOutcome] = outcome.flows.get(first..next).unwrap_or(&[]);
        let name = format!("flows.{}", class.name);
        rows.extend(FLOW.iter().filter_map(|measure| row(&name, measure, FLOW, flows)));
        first = next;
    }
    let declared = all_measures();
    for application in &outcome.applications {
        let entries = declared.iter().filter(|(model, _)| *model == application.model);
        rows.extend(entries.flat_map(|(_, entries)| *entries).map(|entry| {
            let name = format!("applications.{}.{}", application.name, entry.name);
            (name, entry.unit.symbol(), entry.value.of(&application.recorded))
        }));
    }
    rows
}

/// A measure of a link or a class as a whole.
fn row<O>(name: &str, measure: &Measure<O>, all: &[Measure<O>], outcomes: &[O]) -> Option<Row> {
    let Summary { statistic, metric, .. } = measure.summary?;
    let weight = |outcome: &O| match statistic {
        Statistic::Mean | Statistic::Sum => 1.0,
        Statistic::Share(of) => all
            .iter()
            .filter(|other| of.contains(&other.name))
            .filter_map(|other| other.value.of(outcome))
            .sum(),
    };
    let known = outcomes.iter().filter_map(|outcome| Some((measure.value.of(outcome)?, weight(outcome))));
    let (sum, weights) =
        known.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
    let value = match statistic {
        _ if weights == 0.0 => None,
        Statistic::Sum => Some(sum),
        Statistic::Mean | Statistic::Share(_) => Some(sum / weights),
    };
    Some((format!("{name}.{}", metric.unwrap_or(measure.name)), measure.unit.symbol(), value))
}

/// The mean of one value from each of several runs and its 95 % interval by Student's t; no interval for one
/// run.
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
    fn measures_of_applications_have_the_units_that_the_catalog_declares() {
        let mut units = Vec::new();
        for (model, measures) in
            all_measures().into_iter().filter(|(model, _)| !["call", "python"].contains(model))
        {
            let transport = if model == "game" { "" } else { r#", transport = { tcp = "linux" }"# };
            let toml = format!(
                r#"duration = "3s"
links.link = {{ from = "a", to = "b", rate = "10Mbps", delay = "5ms", queue = {{ aqm = "drop-tail", limit = "50p" }} }}
flows = [{{ name = "users", from = "a", to = "b", application = {{ model = "{model}" }}{transport} }}]
"#
            );
            let (scenario, outcome) = whole(&toml, 1).unwrap();
            let rows = rows(&scenario, &outcome);
            for measure in measures {
                let name = format!("applications.users.{}", measure.name);
                let unit = rows.iter().find(|(found, ..)| *found == name).unwrap().1;
                assert_eq!(unit, measure.unit.symbol(), "{name}");
                assert!(!measure.name.ends_with("_s") || unit == "s", "{name}");
                units.push(unit);
            }
        }
        for unit in ["s", "bit/s", "B", "fraction", "s/h"] {
            assert!(units.contains(&unit), "{unit}");
        }
    }

    #[test]
    fn retransmissions_of_udp_have_no_value() {
        let toml = |transport| {
            format!(
                r#"duration = "3s"
links.link = {{ from = "a", to = "b", rate = "1Mbps", delay = "5ms", queue = {{ aqm = "drop-tail", limit = "5p" }} }}
flows = [{{ name = "f", from = "a", to = "b", transport = {transport} }}]
"#
            )
        };
        let of = |transport| {
            let (scenario, outcome) = whole(&toml(transport), 1).unwrap();
            let rows = rows(&scenario, &outcome);
            rows.into_iter().find(|(name, ..)| name == "flows.f.retransmission_ratio").unwrap().2
        };
        assert_eq!(of(r#"{ udp = "cbr", rate = "2Mbps" }"#), None);
        assert!(of(r#"{ tcp = "newreno" }"#).unwrap() > 0.0);
    }

    #[test]
    fn an_interval_by_hand() {
        // s = 1, n = 4: 3.182/√4.
        let interval = interval(&[-1.0, 0.0, 0.0, 1.0].map(|x: f64| x * 1.5_f64.sqrt()));
        let high = interval["high"].as_f64().unwrap();
        assert!((high - 3.182_446 / 2.0).abs() < 1e-5, "{high}");
        assert_eq!(super::interval(&[2.0])["high"], serde_json::Value::Null);
    }
}

//! The catalogue of measures as data, for Python and the documentation.

use perhop_core::measure::LinkOutcome;
use perhop_sim::application::all_measures;
use perhop_sim::measures::{Compared, FLOW, LINK, Measure, QueueMeasures, Statistic, Summary, Table};
use serde_json::{Value, json};

/// Returns every measure of flows (`flow`), of links besides their queues (`link`), and of queues as a whole
/// and of each class of packets that they distinguish (`queue`), in the order of their columns.
pub fn measures() -> Value {
    json!({
        "flow": entries(FLOW),
        "link": entries(LINK),
        "queue": entries(QueueMeasures::<LinkOutcome>::ALL),
        "application": applications(),
    })
}

/// Returns the measures of each application, by its name.
fn applications() -> Value {
    let models = all_measures().into_iter().map(|(model, measures)| {
        let measures: Value = measures
            .iter()
            .map(|measure| {
                json!({
                    "name": measure.name,
                    "label": measure.summary.map(|summary| summary.label),
                    "importance": measure.summary.map(|summary| summary.importance),
                    "unit": measure.unit.symbol(),
                    "description": measure.description,
                })
            })
            .collect();
        (model.to_owned(), measures)
    });
    Value::Object(models.collect())
}

fn entries<O>(measures: &[Measure<O>]) -> Value {
    let entry = |measure: &Measure<O>| {
        json!({
            "name": measure.name,
            "unit": measure.unit.symbol(),
            "description": measure.description,
            "kind": measure.value.kind(),
            "summary": measure.summary.map(|summary| summary_of(&summary, measure.name)),
        })
    };
    measures.iter().map(entry).collect()
}

fn summary_of(summary: &Summary, name: &str) -> Value {
    let (place, classes_only, above) = match summary.table {
        Table::None => (None, false, None),
        Table::All(place) => (Some(place), false, None),
        Table::Classes(place) => (Some(place), true, None),
        Table::Wide { place, above } => (Some(place), false, Some(above)),
    };
    let compared = |Compared { id, margin }: Compared| json!({"id": id, "margin": margin});
    json!({
        "label": summary.label,
        "long_label": summary.long_label.unwrap_or(summary.label),
        "statistic": match summary.statistic {
            Statistic::Mean => "mean",
            Statistic::Sum => "sum",
            Statistic::Share(_) => "share",
        },
        "share_of": match summary.statistic {
            Statistic::Share(of) => of,
            Statistic::Mean | Statistic::Sum => &[],
        },
        "place": place,
        "classes_only": classes_only,
        "above": above,
        "importance": summary.importance,
        "metric": summary.metric.unwrap_or(name),
        "compared": summary.compared.map(compared),
    })
}

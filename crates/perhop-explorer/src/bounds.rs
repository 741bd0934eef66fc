//! Bounds of a scenario's delays, which the page draws beside what its run has measured.
//!
//! The request needs no session: the page asks a worker of its own, so that neither a long derivation nor a
//! fault in one, which ends a WebAssembly module, holds up the run.

use perhop_bounds::{Bounds, Delay};
use serde_json::{Value, json};

use crate::describe::{self, group_of};
use crate::problem::Problem;

/// The page derives no bounds of more flows and links: they would come late. `perhop run` has the same limit.
const MOST_PARTS: u64 = 5000;

/// Returns the bounds of a scenario: of the wait at each link with a queue and of each class that the queue
/// distinguishes, and of the one-way delay of each class of flows. A scenario that is too large has the
/// reason in their place.
pub fn bounds(toml: &str) -> Result<Value, Problem> {
    let scenario = describe::read(toml)?;
    let memory = scenario.memory();
    if memory.flows + memory.links > MOST_PARTS {
        let why =
            format!("the network has more than {MOST_PARTS} flows and links; `perhop bound` derives them");
        return Ok(json!({"links": [], "flows": [], "failure": why}));
    }
    let network = scenario.network();
    let Bounds { links, flows, .. } = perhop_bounds::bounds(&network);
    let links = network.links.iter().zip(links).filter(|(spec, _)| spec.queue.is_some());
    let links = links.map(|(_, link)| {
        let distinguished = if link.classes.len() > 1 { &link.classes[..] } else { &[] };
        let classes: Vec<Value> =
            distinguished.iter().map(|class| named(&class.name, &class.delay)).collect();
        json!({"name": link.name, "delay": link.delay, "classes": classes})
    });
    let mut classes: Vec<(&str, Delay)> = Vec::new();
    for flow in &flows {
        let name = group_of(&flow.name);
        match classes.last_mut().filter(|(known, _)| *known == name) {
            Some((_, most)) => most.0 = larger(&most.0, &flow.delay.0),
            None => classes.push((name, flow.delay.clone())),
        }
    }
    let flows = classes.iter().map(|(name, delay)| named(name, delay));
    Ok(json!({"links": links.collect::<Vec<_>>(), "flows": flows.collect::<Vec<_>>(), "failure": ""}))
}

fn named(name: &str, delay: &Delay) -> Value {
    json!({"name": name, "delay": delay})
}

/// Returns the larger of two bounds, or the first reason why there is none.
fn larger<T: Ord + Clone>(one: &Result<T, String>, other: &Result<T, String>) -> Result<T, String> {
    Ok(one.clone()?.max(other.clone()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 10 Mbit/s with strict priority: calls of a packet of 200 B each 20 ms go before a download.
    fn scenario(calls: usize) -> String {
        format!(
            r#"duration = "1s"
[links.line]
from = "a"
to = "b"
rate = "10Mbps"
delay = "5ms"
queue = {{ scheduler = "priority", queues = [
    {{ name = "voice", match = {{ dscp = 46 }}, rule = {{ aqm = "drop-tail", limit = "100p" }} }},
    {{ name = "data", rule = {{ aqm = "drop-tail", limit = "100p" }} }},
] }}
[[flows]]
name = "calls"
count = {calls}
from = "a"
to = "b"
dscp = 46
transport = {{ udp = "cbr", rate = "80kbps", packet = "200B" }}
[[flows]]
name = "bulk"
from = "a"
to = "b"
transport = {{ tcp = "newreno" }}
"#
        )
    }

    #[test]
    fn each_class_has_its_bound_or_the_reason_why_there_is_none() {
        let found = bounds(&scenario(10)).unwrap();
        assert_eq!(found["failure"], "");
        let line = &found["links"][0];
        assert_eq!(line["name"], "line");
        assert_eq!(found["links"].as_array().unwrap().len(), 1, "the reverse link has no queue");
        let [voice, data] = [0, 1].map(|class| &line["classes"][class]);
        assert_eq!((&voice["name"], &data["name"]), (&json!("voice"), &json!("data")));
        // Nine packets of 200 B of other calls and one of 1000 B of data, at 10 Mbit/s.
        let by_hand = f64::from(9 * 200 + 1000) * 8.0 / 1e7;
        let most = voice["delay"]["at_most_s"].as_f64().unwrap();
        assert!((by_hand..by_hand + 1e-8).contains(&most), "{most} {by_hand}");
        assert!(found["flows"][0]["delay"]["at_most_s"].as_f64().unwrap() > most + 0.005);
        assert_eq!(found["flows"][1]["name"], "bulk");
    }

    #[test]
    fn a_class_has_the_largest_bound_of_its_flows_and_none_if_one_has_none() {
        let none = Err("why".to_owned());
        assert_eq!(larger(&Ok(2), &Ok(3)), Ok(3));
        assert_eq!(larger(&Ok(2), &none), none);
        assert_eq!(larger(&none, &Ok(3)), none);
    }

    #[test]
    fn a_scenario_that_is_too_large_says_so_and_a_wrong_one_is_refused() {
        let found = bounds(&scenario(5001)).unwrap();
        assert_eq!(found["links"], json!([]));
        assert!(found["failure"].as_str().unwrap().contains("more than 5000 flows and links"), "{found}");
        assert!(bounds("duration = 1").is_err());
    }
}

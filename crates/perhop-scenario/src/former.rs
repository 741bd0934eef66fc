//! Former keys: those that a scenario may still have, and that are others by now. Reading replaces them and
//! leaves a notice.

use perhop_sim::transport::tcp::move_former_keys;
use serde_json::Value;

use crate::error::{KeyPart, Problem, at_flow};

/// The former keys that reading has replaced in a file.
#[derive(Debug, Default)]
pub struct FormerKeys {
    /// A notice for each.
    pub notices: Vec<Problem>,
    /// The paths of the keys that took their place, each with the path in the file.
    places: Vec<[Vec<KeyPart>; 2]>,
}

impl FormerKeys {
    /// Returns a problem at the key that the file has.
    pub fn as_written(&self, problem: Problem) -> Problem {
        let written = self.places.iter().find_map(|[now, written]| {
            let below = problem.path.strip_prefix(&now[..])?;
            Some([written, below].concat())
        });
        Problem { path: written.unwrap_or(problem.path), ..problem }
    }
}

/// Replaces the former keys of all flows, and returns them.
///
/// # Errors
/// A key that has no place beside others.
pub fn replace_former_keys(scenario: &mut Value) -> Result<FormerKeys, Problem> {
    let mut former = FormerKeys::default();
    let flows = scenario.get_mut("flows").and_then(Value::as_array_mut);
    for (number, flow) in flows.into_iter().flatten().enumerate() {
        let transport = flow.get_mut("transport").and_then(Value::as_object_mut);
        let Some(transport) = transport.filter(|transport| transport.contains_key("tcp")) else { continue };
        let at = |key: &str| at_flow(number, &format!("transport.{key}")).collect::<Vec<_>>();
        for key in move_former_keys(transport).map_err(|(key, text)| Problem::at(at(&key), text))? {
            let written = at(&key.key);
            if let Some(parameter) = key.parameter {
                former.places.push([at(&format!("congestion.{parameter}")), written.clone()]);
            }
            former.notices.push(Problem::at(written, key.notice));
        }
    }
    Ok(former)
}

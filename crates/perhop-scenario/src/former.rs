//! Former keys: those that a scenario may still have, and that are others by now. Reading replaces them and
//! leaves a notice.

use perhop_sim::transport::tcp::move_former_keys;
use serde_json::Value;

use crate::error::{KeyPart, Problem};

/// Replaces the former keys of all flows, and returns a notice for each.
///
/// # Errors
/// A key that has no place beside others.
pub fn replace_former_keys(scenario: &mut Value) -> Result<Vec<Problem>, Problem> {
    let mut notices = Vec::new();
    let flows = scenario.get_mut("flows").and_then(Value::as_array_mut);
    for (number, flow) in flows.into_iter().flatten().enumerate() {
        let transport = flow.get_mut("transport").and_then(Value::as_object_mut);
        let Some(transport) = transport.filter(|transport| transport.contains_key("tcp")) else { continue };
        let at = |(key, text): (String, String)| {
            let steps = ["flows", "transport", &key].map(|step| KeyPart::Key(step.into()));
            let [flows, transport, key] = steps;
            Problem::at([flows, KeyPart::Index(number), transport, key], text)
        };
        notices.extend(move_former_keys(transport).map_err(at)?.into_iter().map(at));
    }
    Ok(notices)
}

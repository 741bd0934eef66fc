//! Blocks that are implemented outside: who reads a scenario says which there are, and checks their
//! parameters.

use perhop_core::aqm::{AqmParams, Foreign};
use perhop_core::meter::MeterParams;
use perhop_core::{Block, Role};
use perhop_sim::application::ApplicationParams;
use perhop_sim::transport::tcp::CongestionParams;
use serde_json::{Map, Value};

use crate::error::{KeyPart, Problem, steps};

/// The blocks that are implemented outside.
pub trait Plugins {
    /// Completes a table, without the key that names the block: puts the class under `class`, checks the
    /// parameters and fills in defaults. Returns false if `name` is none of these blocks.
    ///
    /// # Errors
    /// The key in the table, empty for the table itself, and one line: what is wrong, and what would be
    /// right.
    fn complete(
        &self,
        role: Role,
        name: &str,
        table: &mut Map<String, Value>,
    ) -> Result<bool, (String, String)>;
}

/// Completes every table of a block that is implemented outside.
pub(crate) fn complete(value: &mut Value, plugins: &dyn Plugins) -> Result<(), Problem> {
    walk(value, plugins, &mut Vec::new())
}

fn walk(value: &mut Value, plugins: &dyn Plugins, path: &mut Vec<KeyPart>) -> Result<(), Problem> {
    match value {
        Value::Array(values) => values.iter_mut().enumerate().try_for_each(|(index, value)| {
            path.push(KeyPart::Index(index));
            walk(value, plugins, path)?;
            path.pop();
            Ok(())
        }),
        Value::Object(table) => {
            complete_table(table, (Role::Aqm, AqmParams::TAG, AqmParams::NAMES), plugins, path)?;
            complete_table(table, (Role::Meter, MeterParams::TAG, MeterParams::NAMES), plugins, path)?;
            if path.last().is_some_and(|key| matches!(key, KeyPart::Key(key) if key == "application")) {
                let users = (Role::Application, ApplicationParams::TAG, ApplicationParams::NAMES);
                complete_table(table, users, plugins, path)?;
            }
            complete_congestion(table, plugins, path)?;
            table.iter_mut().try_for_each(|(key, value)| {
                path.push(KeyPart::Key(key.clone()));
                walk(value, plugins, path)?;
                path.pop();
                Ok(())
            })
        }
        _ => Ok(()),
    }
}

fn complete_table(
    table: &mut Map<String, Value>,
    (role, tag, built_in): (Role, &str, &[&str]),
    plugins: &dyn Plugins,
    path: &[KeyPart],
) -> Result<(), Problem> {
    let Some(Value::String(name)) = table.get(tag) else { return Ok(()) };
    let name = name.clone();
    if name != Foreign::NAME && built_in.contains(&&*name) {
        return Ok(());
    }
    let mut inner = table.clone();
    inner.shift_remove(tag);
    let known = plugins.complete(role, &name, &mut inner);
    let known = known.map_err(|(key, text)| Problem::at(path.iter().cloned().chain(steps(&key)), text))?;
    if known {
        *table = std::iter::once((tag.to_owned(), Value::from(Foreign::NAME))).chain(inner).collect();
    }
    Ok(())
}

/// Completes the congestion control of a TCP transport: a name or a table in `congestion`, or a class in
/// `tcp`, which then is NewReno's recovery with this congestion control.
fn complete_congestion(
    transport: &mut Map<String, Value>,
    plugins: &dyn Plugins,
    path: &[KeyPart],
) -> Result<(), Problem> {
    const KEY: &str = "congestion";
    let at = |key: &str| path.iter().cloned().chain(steps(key)).collect::<Vec<_>>();
    let Some(Value::String(tcp)) = transport.get("tcp") else { return Ok(()) };
    let by_tcp = tcp.contains(':');
    if by_tcp {
        let class = Value::from(tcp.clone());
        if transport.contains_key(KEY) {
            let text = "`tcp` names a class, which is the congestion control: leave this key out, or write tcp = \"newreno\"";
            return Err(Problem::at(at(KEY), text));
        }
        transport.insert("tcp".into(), "newreno".into());
        transport.insert(KEY.into(), class);
    }
    let named = match transport.get(KEY) {
        Some(Value::String(name)) if !CongestionParams::NAMES.contains(&&**name) => {
            Map::from_iter([(CongestionParams::TAG.to_owned(), Value::from(name.clone()))])
        }
        Some(Value::Object(table)) => table.clone(),
        _ => return Ok(()),
    };
    let is_table = transport.get(KEY).is_some_and(Value::is_object);
    let mut table = named;
    let control = (Role::CongestionControl, CongestionParams::TAG, CongestionParams::NAMES);
    let place = at(if by_tcp { "tcp" } else { KEY });
    let completed = complete_table(&mut table, control, plugins, &place);
    // A name has no table in which a key could be wrong.
    completed.map_err(|problem| if is_table { problem } else { Problem { path: place, ..problem } })?;
    if table.contains_key("class") {
        transport.insert(KEY.into(), table.into());
    }
    Ok(())
}

/// Says why a class cannot run on real packets, and what can.
pub fn simulated_only(class: &str) -> String {
    format!("`{class}` is a class in Python, which takes part in simulations only; take a built-in block")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Driver;
    use crate::files::{Files, NoFiles};
    use crate::format::Scenario;

    /// Knows one class, `my:Aqm`, which has the parameter `limit`.
    struct One;

    impl Plugins for One {
        fn complete(
            &self,
            role: Role,
            name: &str,
            table: &mut Map<String, Value>,
        ) -> Result<bool, (String, String)> {
            let class = match role {
                Role::Meter => "my:Meter",
                Role::CongestionControl => "my:Control",
                Role::Application => "my:User",
                _ => "my:Aqm",
            };
            if name == "mine" || name == class {
                table.insert("class".into(), class.into());
            } else if name != "python" {
                return Ok(false);
            }
            match table.get("limit") {
                Some(Value::String(_)) => {}
                Some(_) => return Err(("limit".into(), "expected text".into())),
                None => {
                    table.insert("limit".into(), "9p".into());
                }
            }
            Ok(true)
        }
    }

    impl Files for One {
        fn plugins(&self) -> Option<&dyn Plugins> {
            Some(self)
        }
        fn read(&self, name: &str) -> Result<String, String> {
            NoFiles.read(name)
        }
    }

    fn read(queue: &str, driver: Driver) -> Result<String, String> {
        let scenario = read_with(queue, "", driver)?;
        Ok(serde_json::to_value(&scenario).unwrap()["links"]["l"]["queue"].to_string())
    }

    fn read_with(queue: &str, flow: &str, driver: Driver) -> Result<Scenario, String> {
        let text = format!(
            r#"duration = "1s"
links.l = {{ from = "a", to = "b", rate = "1Mbps", delay = "1ms", queue = {queue} }}
[[flows]]
name = "f"
from = "a"
to = "b"
transport = {{ tcp = "newreno" }}
{flow}
"#
        );
        let scenario = Scenario::from_toml_for(&text, "my.toml", driver, &One);
        scenario.map_err(|error| error.to_string())
    }

    fn simulated(queue: &str) -> Result<String, String> {
        read(queue, Driver::Simulator)
    }

    #[test]
    fn a_class_is_named_by_its_path_or_by_its_own_name() {
        let complete = r#"{"aqm":"python","class":"my:Aqm","limit":"9p"}"#;
        for queue in ["\"my:Aqm\"", "\"mine\"", "\"python\", class = \"my:Aqm\""] {
            assert_eq!(simulated(&format!("{{ aqm = {queue} }}")).unwrap(), complete, "{queue}");
        }
        let inner = simulated(r#"{ scheduler = "drr", queues = [{ name = "q", rule = { aqm = "mine" } }] }"#);
        assert!(inner.unwrap().contains(complete));
    }

    #[test]
    fn a_problem_has_its_place() {
        assert_eq!(
            simulated(r#"{ aqm = "mine", limit = 9 }"#).unwrap_err(),
            "my.toml:2: links.l.queue.limit: expected text"
        );
        let unknown = simulated(r#"{ aqm = "yours" }"#).unwrap_err();
        assert!(unknown.starts_with("my.toml:2: links.l.queue.aqm: unknown aqm `yours`"), "{unknown}");
    }

    #[test]
    fn real_packets_meet_no_class() {
        let refused = read(r#"{ aqm = "mine" }"#, Driver::RealPackets).unwrap_err();
        assert!(
            refused.starts_with("my.toml:2: links.l.queue.aqm: `my:Aqm` is a class in Python"),
            "{refused}"
        );
    }

    const TAIL: &str = r#"{ aqm = "drop-tail", limit = "9p" }"#;

    #[test]
    fn a_class_can_be_the_meter_of_a_flow_of_a_profile_and_of_a_link() {
        let mine = r#"{ marker = "mine", rate = "1Mbps" }"#;
        let complete = r#"{"marker":"python","class":"my:Meter","rate":"1Mbps","limit":"9p"}"#;
        let meters = format!(r#"{TAIL}, meters = [{{ name = "m", profile = {mine} }}]"#);
        let own = format!("profile = {mine}");
        let shared = format!("profile = \"gold\"\n[profiles]\ngold = {mine}");
        for (queue, flow, place) in [
            (TAIL, &*own, "flows[0].profile.marker"),
            (TAIL, &*shared, "profiles.gold.marker"),
            (&*meters, "", "links.l.meters[0].profile.marker"),
        ] {
            let scenario = read_with(queue, flow, Driver::Simulator).unwrap();
            let text = serde_json::to_string(&scenario).unwrap();
            assert!(text.contains(complete), "{text}");
            let refused = read_with(queue, flow, Driver::RealPackets).unwrap_err();
            assert!(refused.contains(&format!("{place}: `my:Meter` is a class in Python")), "{refused}");
        }
    }

    /// Reads a flow with this transport and this application.
    fn read_flow(transport: &str, application: &str, driver: Driver) -> Result<String, String> {
        let application =
            if application.is_empty() { String::new() } else { format!("application = {application}") };
        let text = format!(
            r#"duration = "1s"
links.l = {{ from = "a", to = "b", rate = "1Mbps", delay = "1ms", queue = {TAIL} }}
[[flows]]
name = "f"
from = "a"
to = "b"
transport = {transport}
{application}
"#
        );
        let scenario =
            Scenario::from_toml_for(&text, "my.toml", driver, &One).map_err(|error| error.to_string())?;
        Ok(serde_json::to_string(&scenario.flows[0]).unwrap())
    }

    #[test]
    fn a_class_can_be_the_congestion_control_of_tcp() {
        let complete = r#""congestion":{"control":"python","class":"my:Control","limit":"9p"}"#;
        for transport in [
            r#"{ tcp = "newreno", congestion = "my:Control" }"#,
            r#"{ tcp = "newreno", congestion = "mine" }"#,
            r#"{ tcp = "newreno", congestion = { control = "mine" } }"#,
            r#"{ tcp = "my:Control" }"#,
        ] {
            let read = read_flow(transport, "", Driver::Simulator).unwrap();
            assert!(read.contains(complete) && read.contains(r#""tcp":"newreno""#), "{transport}: {read}");
            let refused = read_flow(transport, "", Driver::RealPackets).unwrap_err();
            assert!(
                refused.contains("flows[0].transport.congestion: `my:Control` is a class in Python"),
                "{refused}"
            );
        }
        for (transport, problem) in [
            (r#"{ tcp = "newreno", congestion = "yours" }"#, "transport.congestion: unknown value `yours`"),
            (r#"{ tcp = "my:Control", congestion = "reno" }"#, "transport.congestion: `tcp` names a class"),
            (
                r#"{ tcp = "newreno", congestion = { control = "mine", limit = 9 } }"#,
                "transport.congestion.limit: expected text",
            ),
            (
                r#"{ tcp = "newreno", congestion = { control = "yours" } }"#,
                "transport.congestion.control: unknown control `yours`",
            ),
            (
                r#"{ tcp = "newreno", congestion = { limit = "9p" } }"#,
                "transport.congestion: key `control` is missing",
            ),
        ] {
            let refused = read_flow(transport, "", Driver::Simulator).unwrap_err();
            assert!(refused.contains(problem), "{transport}: {refused}");
        }
    }

    #[test]
    fn a_class_can_be_the_users_of_a_group() {
        let tcp = r#"{ tcp = "newreno" }"#;
        let complete = r#""application":{"model":"python","class":"my:User","request":"200B","limit":"9p"}"#;
        for application in [r#"{ model = "my:User" }"#, r#"{ model = "mine" }"#] {
            let read = read_flow(tcp, application, Driver::Simulator).unwrap();
            assert!(read.contains(complete), "{read}");
            let refused = read_flow(tcp, application, Driver::RealPackets).unwrap_err();
            assert!(
                refused.contains("flows[0].application.model: `my:User` is a class in Python"),
                "{refused}"
            );
        }
        let wrong = read_flow(tcp, r#"{ model = "mine", request = "2MB" }"#, Driver::Simulator).unwrap_err();
        assert!(wrong.contains("application.request: a request has 1B to 1MB"), "{wrong}");
        let unknown = read_flow(tcp, r#"{ model = "yours" }"#, Driver::Simulator).unwrap_err();
        assert!(unknown.contains("application.model: unknown model `yours`"), "{unknown}");
    }
}

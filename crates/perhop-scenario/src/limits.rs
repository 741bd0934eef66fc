//! Limits of queues that are given as times: what the link sends in that time at its `rate`, in bytes.
//!
//! The conversion precedes the typed reading: blocks have limits in packets or bytes, and a scenario in which
//! a sweep changes the rate is read anew.

use perhop_core::aqm::{self, AqmParams};
use perhop_core::scheduler::{self, SchedulerParams};
use perhop_core::units::Limit;
use perhop_core::{Bitrate, BlockInfo};
use serde_json::{Map, Value};

use crate::error::{KeyPart, Problem};
use crate::format::{Reverse, Scenario};

const LIMIT: &str = "limit";

/// Replaces each time by its bytes. Refuses a text that is no limit, and a time in a topology whose links
/// differ in rate.
pub(crate) fn in_bytes(scenario: &mut Value) -> Result<(), Problem> {
    let key = |key: &str| KeyPart::Key(key.into());
    for (name, link) in tables(scenario.get_mut("links")) {
        let rate = rate(link, None);
        convert_queue(link, rate, vec![key("links"), key(name)])?;
        if let Some(Value::Object(reverse)) = link.get_mut("reverse") {
            let rate = self::rate(reverse, rate);
            convert_queue(reverse, rate, vec![key("links"), key(name), key("reverse")])?;
        }
    }
    let Some(Value::Object(topology)) = scenario.get_mut("topology") else { return Ok(()) };
    let tiers = topology.get("tiers").and_then(Value::as_object);
    let differ = topology.contains_key("graph")
        || tiers.is_some_and(|tiers| tiers.values().any(|tier| tier.get("rate").is_some()));
    let Some(Value::Object(link)) = topology.get_mut("link") else { return Ok(()) };
    let common = rate(link, None);
    convert_queue(link, common.filter(|_| !differ), vec![key("topology"), key("link")])?;
    for (name, tier) in tables(topology.get_mut("tiers")) {
        let rate = rate(tier, common);
        convert_queue(tier, rate, vec![key("topology"), key("tiers"), key(name)])?;
    }
    Ok(())
}

fn tables(of: Option<&mut Value>) -> impl Iterator<Item = (&String, &mut Map<String, Value>)> {
    let all = of.and_then(Value::as_object_mut).into_iter().flatten();
    all.filter_map(|(name, value)| value.as_object_mut().map(|table| (name, table)))
}

/// Returns the `rate` of a table, or `otherwise` if it has none. A rate that cannot be read is refused later,
/// with the table.
fn rate(table: &Map<String, Value>, otherwise: Option<Bitrate>) -> Option<Bitrate> {
    match table.get("rate") {
        Some(rate) => rate.as_str().and_then(|text| text.parse().ok()),
        None => otherwise,
    }
}

/// Converts the limits in the queue of a link; `place` is the path of the link's table.
fn convert_queue(
    link: &mut Map<String, Value>,
    rate: Option<Bitrate>,
    mut place: Vec<KeyPart>,
) -> Result<(), Problem> {
    place.push(KeyPart::Key("queue".into()));
    link.get_mut("queue").map_or(Ok(()), |queue| convert(queue, rate, &mut place))
}

/// Converts the limits in a queue and in all within it.
fn convert(queue: &mut Value, rate: Option<Bitrate>, place: &mut Vec<KeyPart>) -> Result<(), Problem> {
    match queue {
        Value::Array(values) => values.iter_mut().enumerate().try_for_each(|(index, value)| {
            place.push(KeyPart::Index(index));
            convert(value, rate, place)?;
            place.pop();
            Ok(())
        }),
        Value::Object(table) => {
            let block = named(table, AqmParams::TAG, aqm::registered);
            let block = block.or_else(|| named(table, SchedulerParams::TAG, scheduler::registered));
            // The keys of a class are its own.
            if block.as_ref().is_some_and(|block| block.is_outside) {
                return Ok(());
            }
            let counts = block.is_some_and(|block| block.limit_counts_packets);
            table.iter_mut().filter(|(key, _)| !(counts && *key == LIMIT)).try_for_each(|(key, value)| {
                place.push(KeyPart::Key(key.clone()));
                match value {
                    Value::String(text) if key == LIMIT => {
                        *text = bytes(text, rate).map_err(|text| Problem::at(place.clone(), text))?;
                    }
                    _ => convert(value, rate, place)?,
                }
                place.pop();
                Ok(())
            })
        }
        _ => Ok(()),
    }
}

/// Returns the registered block that this table names under `tag`.
fn named(table: &Map<String, Value>, tag: &str, registered: fn() -> Vec<BlockInfo>) -> Option<BlockInfo> {
    let name = table.get(tag)?.as_str()?;
    registered().into_iter().find(|block| block.name == name)
}

/// Returns the limit of this text, in bytes if it is a time.
fn bytes(text: &str, rate: Option<Bitrate>) -> Result<String, String> {
    match text.parse().map_err(|problem: perhop_core::units::UnitError| problem.to_string())? {
        Limit::Depth(_) => Ok(text.into()),
        Limit::Time(time) => rate.map(|rate| rate.bytes_in(time).to_string()).ok_or_else(|| {
            format!(
                "`{text}`: a time counts at the rate of one link, and here links may differ in rate or have none; write packets such as \
                 868p or bytes such as 500kB"
            )
        }),
    }
}

impl Scenario {
    /// Returns the scenario with the `limit` of each AQM written that has one by default, for a program whose
    /// defaults are others.
    #[must_use]
    pub fn with_limits(mut self) -> Self {
        for link in self.links.values_mut() {
            let rate = link.rate;
            if let Some(queue) = &mut link.queue {
                queue.scheduler.write_limits(rate);
            }
            if let Some(Reverse { rate: own, queue: Some(queue), .. }) = &mut link.reverse {
                queue.scheduler.write_limits(own.unwrap_or(rate));
            }
        }
        self
    }
}

//! Notices of meters, of flows and of links.

use std::ops::RangeInclusive;

use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::{Color, Header};
use perhop_sim::transport::packet_trace::PacketTrace;

use crate::error::{KeyPart, Problem, at_flow, at_table, steps};
use crate::format::{Flow, FlowProfile, Scenario};
use crate::one_flow_per_group::{LinkSelection, OneFlowPerGroup};

/// Returns a notice for each key of a profile that cannot act on the packets of its flows.
pub(super) fn idle_profiles(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    let own = scenario.flows.iter().enumerate().filter_map(|(number, flow)| match &flow.profile {
        Some(FlowProfile::Own(profile)) => {
            Some((at_flow(number, "profile").collect(), &profile.0, vec![flow]))
        }
        Some(FlowProfile::Shared(_)) | None => None,
    });
    let shared = scenario.profiles.iter().map(|(name, profile)| {
        let shares = |flow: &&Flow| matches!(&flow.profile, Some(FlowProfile::Shared(of)) if of == name);
        let place = at_table("profiles", name, "").collect();
        (place, &profile.0, scenario.flows.iter().filter(shares).collect())
    });
    own.chain(shared).flat_map(|(place, meter, flows): (Vec<KeyPart>, _, Vec<&Flow>)| {
        let at = |(key, text): (&str, String)| Problem::at(place.iter().cloned().chain(steps(key)), text);
        idle_profile(meter, &flows).into_iter().map(at).collect::<Vec<_>>()
    })
}

/// Returns a notice for each color of flows whose meter gives each packet a color without looking at this
/// one.
pub(super) fn idle_colors(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    scenario.flows.iter().enumerate().filter_map(|(number, flow)| {
        let meter = scenario.profile_of(flow)?;
        flow.color.filter(|color| *color != Color::default() && !meter.reads_color()).map(|color| {
            let text = format!(
                "`{}`: no effect, since the meter `{}` of the profile gives each packet its color and does not look at \
                 this one; leave the key out, or choose a meter that has mode = \"color-aware\"",
                color.name(),
                meter.name()
            );
            Problem::at(at_flow(number, "color"), text)
        })
    })
}

/// Returns a notice for each key of a link's meter that cannot act on the packets that come to it.
pub(super) fn idle_meters(
    scenario: &Scenario,
    reduced: &OneFlowPerGroup,
    sizes: &RangeInclusive<u64>,
) -> Vec<Problem> {
    let mut notices = Vec::new();
    for direction in scenario.metered() {
        let name = direction.name();
        let packets = reduced.packets_before(LinkSelection::link(&name));
        let Some(link) = reduced.link(&name).filter(|_| !packets.is_empty()) else { continue };
        for (number, meter) in link.meters.iter().enumerate() {
            let at = |key: &str, text: String| direction.at(&format!("meters[{number}].{key}"), text);
            let takes = |packet: &&Header| AggregateMeter::taken_by(&link.meters, packet) == Some(number);
            let Some(best) = packets.iter().filter(takes).map(|packet| packet.color).min() else {
                let text = format!(
                    "no packet that comes to this link matches, or an earlier meter takes it; packets here carry {}: match some \
                     of them, or leave the meter out",
                    reduced.described(&packets)
                );
                notices.push(at("match", text));
                continue;
            };
            let idle = idle_keys_of_meter(&meter.profile, sizes, Some(best)).into_iter();
            notices.extend(idle.map(|(key, text)| at(&format!("profile.{key}"), text)));
        }
    }
    notices
}

/// Returns the keys of a meter that cannot act on the packets of these flows, and why.
fn idle_profile(meter: &MeterParams, flows: &[&Flow]) -> Vec<(&'static str, String)> {
    let sizes = flows.iter().flat_map(|flow| {
        let transport = flow.transport_spec();
        let data = transport.packet_sizes().0;
        [data, transport.trace().map_or(data, PacketTrace::smallest)].map(u64::from)
    });
    let Some((smallest, largest)) = sizes.clone().min().zip(sizes.max()) else { return Vec::new() };
    let best = flows.iter().map(|flow| {
        let transport = flow.transport_spec();
        let own =
            transport.trace().and_then(|trace| trace.codepoints(flow.color()).map(|(_, color)| color).min());
        own.unwrap_or_else(|| flow.color())
    });
    idle_keys_of_meter(meter, &(smallest..=largest), best.min())
}

/// Returns the keys of a meter that cannot act on packets of these sizes, of which none has a better color
/// than `best`, and why.
fn idle_keys_of_meter(
    meter: &MeterParams,
    sizes: &RangeInclusive<u64>,
    best: Option<Color>,
) -> Vec<(&'static str, String)> {
    let mut idle = meter.keys_without_effect(sizes);
    if let Some(color) = best.filter(|_| meter.reads_color()).filter(|color| *color != Color::Green) {
        let others =
            if color == Color::Yellow { "none of them can be green" } else { "all of them stay red" };
        let text = format!(
            "every packet comes to this meter {}, so {others}; give the flows color = \"green\", or the meter \
             mode = \"color-blind\"",
            color.name()
        );
        idle.push(("mode", text));
    }
    idle
}

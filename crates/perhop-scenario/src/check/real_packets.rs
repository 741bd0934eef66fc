//! Checks of a scenario for real packets: hosts are the kernel's, and no class of Python takes part.

use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_sim::TransportSpec;
use perhop_sim::application::ApplicationParams;
use perhop_sim::transport::tcp::{TcpEcn, Variant};

use super::Checked;
use crate::directions::QueuePlace;
use crate::error::{KeyPart, Problem, at_flow, at_table};
use crate::format::{Flow, FlowProfile, Scenario, Setting, TcpEnd, Transport};
use crate::one_flow_per_group::{LinkSelection, OneFlowPerGroup};
use crate::plugins::simulated_only;

/// The kernel's setting that says whether TCP asks for ECN.
const TCP_ECN: &str = "net.ipv4.tcp_ecn";

/// Checks that on real packets each key has an effect, and that a flow can react to the marks of each AQM
/// with `ecn`.
pub(super) fn check_real_packets(scenario: &Scenario) -> Checked {
    check_classes(scenario)?;
    check_kernels_ecn(scenario)?;
    check_flows(scenario, |flow| {
        let text = "Linux sends ECT(1) only with TCP Prague, which is not part of it: take `live.sender = \"perhop\"`, `ecn = \
                    \"accurate\"`, or the simulator";
        let is_own = scenario.tcp_ends(flow).is_some_and(|ends| ends.0 == TcpEnd::Perhop);
        let is_tcp = matches!(flow.transport, Transport::Tcp(_));
        (is_tcp && flow.ecn == TcpEcn::L4s && !is_own).then(|| ("ecn", text.into()))
    })?;
    check_flows(scenario, |flow| ends_without_effect(scenario, flow))?;
    check_common_ends(scenario)?;
    check_marks(scenario)
}

/// Checks each group of flows: `refused` returns the key that has no effect or cannot be had, and the remedy.
fn check_flows(scenario: &Scenario, refused: impl Fn(&Flow) -> Option<(&'static str, String)>) -> Checked {
    let mut groups = scenario.flows.iter().enumerate();
    let found = groups.find_map(|(number, flow)| Some((number, refused(flow)?)));
    found.map_or(Ok(()), |(number, (key, text))| Err(Problem::at(at_flow(number, key), text)))
}

/// Returns the key of a group that chooses an end of TCP and cannot, and why.
fn ends_without_effect(scenario: &Scenario, flow: &Flow) -> Option<(&'static str, String)> {
    let given = if flow.live.sender.is_some() {
        Some("live.sender")
    } else {
        flow.live.receiver.map(|_| "live.receiver")
    };
    let ends = scenario.tcp_ends(flow);
    if let (Some(key), None) = (given, ends) {
        let text = if flow.application.is_some() {
            "the connections of users are the kernel's: leave this key out"
        } else {
            "only TCP has ends of the kernel and of perhop: leave this key out"
        };
        return Some((key, text.into()));
    }
    let (sender, receiver) = ends?;
    if let (Some(TcpEnd::Perhop), Some(name)) = (flow.live.sender, &flow.live.congestion) {
        let text = format!(
            "`{name}` is the kernel's congestion control, and `live.sender = \"perhop\"` has that of `transport`: leave one of \
             the keys out"
        );
        return Some(("live.congestion", text));
    }
    let Transport::Tcp(params) = &flow.transport else { return None };
    let is_own = sender == TcpEnd::Perhop || receiver == TcpEnd::Perhop;
    (is_own && params.tcp == Variant::Quic).then(|| {
        let text = "QUIC runs in the simulator only: name the kernel's congestion control in `live.congestion`, and the flow is \
                    TCP's, or simulate the scenario";
        ("transport.tcp", text.into())
    })
}

/// Checks that ends for all groups, and settings of the kernel that perhop's own TCP needs, have an effect.
fn check_common_ends(scenario: &Scenario) -> Checked {
    let live = &scenario.live;
    let ends = || scenario.flows.iter().filter_map(|flow| scenario.tcp_ends(flow));
    let given = [("sender", live.sender.is_some()), ("receiver", live.receiver.is_some())];
    if let Some((key, _)) = given.into_iter().find(|(_, given)| *given)
        && ends().next().is_none()
    {
        let text = "no group has TCP without users, so nothing has ends to choose: leave this key out";
        return Err(Problem::at(at(&["live", key]), text));
    }
    let forwarding = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    let is_own = ends().any(|(sender, receiver)| [sender, receiver].contains(&TcpEnd::Perhop));
    if let Some(name) = forwarding.into_iter().find(|name| is_own && live.sysctl.contains_key(*name)) {
        let text = "perhop's own TCP needs a kernel that forwards, so this has no effect: leave it out";
        return Err(Problem::at(at(&["live", "sysctl", name]), text));
    }
    Ok(())
}

/// Returns the place of a key by its path.
fn at<'a>(keys: &'a [&str]) -> impl Iterator<Item = KeyPart> + 'a {
    keys.iter().map(|key| KeyPart::Key((*key).into()))
}

/// Checks that no block is a class: no interpreter takes part.
fn check_classes(scenario: &Scenario) -> Checked {
    for place in scenario.queues() {
        if let Some((key, params)) = place.scheduler().foreign().first() {
            return Err(place.at(&format!("{key}.{}", AqmParams::TAG), simulated_only(&params.class)));
        }
    }
    for direction in scenario.metered() {
        for (number, meter) in direction.meters().iter().enumerate() {
            if let Some(params) = meter.profile.foreign() {
                let key = format!("meters[{number}].profile.{}", MeterParams::TAG);
                return Err(direction.at(&key, simulated_only(&params.class)));
            }
        }
    }
    check_flows(scenario, |flow| {
        let users = match &flow.application {
            Some(ApplicationParams::Foreign(params)) => Some(("application.model", &params.class)),
            _ => None,
        };
        let control = match &flow.transport {
            Transport::Tcp(params) => {
                params.congestion.0.foreign().map(|params| ("transport.congestion", &params.class))
            }
            _ => None,
        };
        users.or(control).map(|(key, class)| (key, simulated_only(class)))
    })?;
    for (name, profile) in &scenario.profiles {
        if let Some(params) = profile.0.foreign() {
            let place = at_table("profiles", name, MeterParams::TAG);
            return Err(Problem::at(place, simulated_only(&params.class)));
        }
    }
    check_flows(scenario, |flow| {
        let Some(FlowProfile::Own(profile)) = &flow.profile else { return None };
        profile.0.foreign().map(|params| ("profile.marker", simulated_only(&params.class)))
    })
}

/// Checks that all TCP flows use ECN in the same way: a kernel asks for it for all connections of a host or
/// for none.
fn check_kernels_ecn(scenario: &Scenario) -> Checked {
    let is_kernels = |flow: &&Flow| scenario.has_kernels_tcp(flow);
    let Some(first) = scenario.flows.iter().find(is_kernels) else { return Ok(()) };
    check_flows(scenario, |other| {
        let differs = is_kernels(&other) && other.ecn != first.ecn;
        let text = || {
            format!(
                "the kernel uses ECN in one way for all its connections, and `{}` differs from `{}`: give all TCP flows the \
                 same, or leave the key out",
                other.name, first.name
            )
        };
        differs.then(|| ("ecn", text()))
    })
}

/// Checks that a flow can react to the marks of each AQM with `ecn`.
fn check_marks(scenario: &Scenario) -> Checked {
    for place in scenario.queues() {
        for key in marking_rules(&place) {
            let (reduced, link) = (OneFlowPerGroup::of(scenario), place.name());
            let mut passing = reduced.passing(LinkSelection::link(&link));
            let text = if !passing.any(|(_, flow)| matches!(flow.transport, TransportSpec::Tcp(_))) {
                "only TCP is ECN-capable, and no TCP flow passes this link: leave this key out"
            } else if !kernel_asks_for_ecn(scenario) {
                "the kernel's TCP does not ask for ECN by itself, so nothing would be marked: leave this key out, give the \
                 TCP flows `ecn = \"classic\"`, or write [live] sysctl = { \"net.ipv4.tcp_ecn\" = 1 }"
            } else {
                continue;
            };
            return Err(place.at(&format!("{key}.ecn"), text.into()));
        }
    }
    Ok(())
}

impl Scenario {
    /// Returns the sender and the receiver of a group's TCP on real packets; `None` for other transports, and
    /// for users, whose connections are the kernel's.
    pub fn tcp_ends(&self, flow: &Flow) -> Option<(TcpEnd, TcpEnd)> {
        let Transport::Tcp(params) = &flow.transport else { return None };
        if flow.application.is_some() {
            return None;
        }
        let has_no_kernel = flow.live.congestion.is_none()
            && params.tcp != Variant::Quic
            && (flow.out_feedback.is_some()
                || flow.ecn == TcpEcn::L4s
                || params.control().info().origin.linux.is_none());
        let needed = has_no_kernel.then_some(TcpEnd::Perhop);
        let common = self.live.sender.filter(|_| flow.live.congestion.is_none());
        let sender = flow.live.sender.or(common).or(needed).unwrap_or(TcpEnd::Kernel);
        let receiver = flow.live.receiver.or(self.live.receiver).unwrap_or(TcpEnd::Kernel);
        Some((sender, receiver))
    }

    /// Returns whether the kernel's TCP is an end of a group's connections.
    fn has_kernels_tcp(&self, flow: &Flow) -> bool {
        let both = (TcpEnd::Perhop, TcpEnd::Perhop);
        matches!(flow.transport, Transport::Tcp(_)) && self.tcp_ends(flow) != Some(both)
    }

    /// Returns the first group whose `ecn` the kernel has to do, and the name and value of the kernel's
    /// setting for it, unless the scenario itself sets that.
    pub fn kernels_ecn(&self) -> Option<(usize, &'static str, &'static str)> {
        let mut groups = self.flows.iter().enumerate();
        let (group, flow) = groups.find(|(_, flow)| self.has_kernels_tcp(flow) && !flow.ecn.is_off())?;
        let asked = if flow.ecn == TcpEcn::Classic { "1" } else { "3" };
        (!self.live.sysctl.contains_key(TCP_ECN)).then_some((group, TCP_ECN, asked))
    }
}

/// Returns whether connections ask for ECN: with 1, or for Accurate ECN with 3 and 4. The kernel's default,
/// 2, only grants it.
pub(crate) fn kernel_asks_for_ecn(scenario: &Scenario) -> bool {
    let set = scenario.live.sysctl.get(TCP_ECN);
    let asks = |value: &Setting| ["1", "3", "4"].contains(&value.to_string().trim());
    let is_tcp = |flow: &Flow| matches!(flow.transport, Transport::Tcp(_));
    set.map_or_else(|| scenario.flows.iter().any(|flow| is_tcp(flow) && !flow.ecn.is_off()), asks)
}

/// Returns the keys of a queue's AQMs that mark packets. All can have the key `ecn`, but for a few AQMs.
pub(crate) fn marking_rules(place: &QueuePlace<'_>) -> Vec<String> {
    let marks = |rule: &AqmParams| serde_json::to_value(rule).is_ok_and(|table| table["ecn"] == true);
    let rules = place.scheduler().aqms(None).into_iter();
    rules.filter(|(_, rule)| marks(rule)).map(|(key, _)| key).collect()
}

//! Checks of flows: names, counts, routes, marking and ECN.

use std::collections::BTreeSet;

use perhop_core::abe::Service;
use perhop_core::meter::MeterParams;
use perhop_core::table::bad_name;
use perhop_core::{Color, Duration};
use perhop_sim::application::Carrier;
use perhop_sim::transport::tcp::{AccEcn, TcpEcn};

use super::paths::find_path;
use super::{Allowed, Checked, Routers, refuse};
use crate::error::{Problem, at_flow, did_you_mean};
use crate::format::{Flow, FlowProfile, MOST_FLOWS, Profile, REVERSE, ReplayedPackets, Scenario, Transport};

/// Checks the groups of flows, but for what makes them populations.
pub(super) fn check_flows(scenario: &Scenario) -> Checked {
    if scenario.flows.is_empty() {
        return refuse(&["flows"], "the scenario has no flows; add a [[flows]] table");
    }
    let mut names = BTreeSet::new();
    let mut total = 0;
    let routers = Routers::of(scenario);
    for (number, flow) in scenario.flows.iter().enumerate() {
        let checked = check_name(flow, &mut names)
            .and_then(|()| check_count(flow, &mut total))
            .and_then(|()| check_route(scenario, flow, &routers))
            .and_then(|()| check_replay(scenario, flow))
            .and_then(|()| check_application(flow))
            .and_then(|()| check_marking(scenario, flow))
            .and_then(|()| check_ecn(flow))
            .and_then(|()| check_call(flow))
            .and_then(|()| check_sending(flow));
        checked.map_err(|(key, text)| Problem::at(at_flow(number, key), text))?;
        check_control(flow).map_err(|(key, text)| {
            Problem::at(at_flow(number, &format!("transport.congestion.{key}")), text)
        })?;
    }
    Ok(())
}

/// Checks that a group has a name of its own.
fn check_name(flow: &Flow, names: &mut BTreeSet<String>) -> Allowed {
    if let Some(problem) = bad_name(&flow.name) {
        return Err(("name", problem));
    }
    if !names.insert(flow.name.clone()) {
        let text = format!("an earlier group has the name `{}`; give each its own", flow.name);
        return Err(("name", text));
    }
    if flow.application.is_some() && !names.insert(format!("{}{REVERSE}", flow.name)) {
        let text = format!(
            "an earlier group has the name of its requests, `{}{REVERSE}`; give each its own",
            flow.name
        );
        return Err(("name", text));
    }
    Ok(())
}

/// Checks that a group and those before it, which have `total` flows, are not too many.
fn check_count(flow: &Flow, total: &mut u64) -> Allowed {
    let directions = if flow.application.is_some() { 2 } else { 1 };
    *total += directions * u64::from(flow.flows());
    if flow.count == 0 || *total > MOST_FLOWS {
        let found = if flow.count == 0 { 0 } else { *total };
        let text = format!("a scenario has 1 to {MOST_FLOWS} flows, each group at least 1, not {found}");
        return Err(("count", text));
    }
    Ok(())
}

/// Checks how much a group sends, and its jitter.
fn check_sending(flow: &Flow) -> Allowed {
    if flow.volume.is_some_and(|volume| volume.get() == 0) {
        let text = "a volume of 0 sends nothing; leave the key out for an endless flow";
        return Err(("volume", text.into()));
    }
    if flow.volume.is_some_and(|volume| flow.transport_spec().on_wire(volume).is_none()) {
        let text = "packets of a flow with a `volume` need room for payload beside their headers; choose larger ones";
        return Err(("transport.packet", text.into()));
    }
    if flow.dispatch_jitter.is_some_and(Duration::is_zero) {
        let text = "a jitter is longer than 0s; without it, leave this key out";
        return Err(("dispatch-jitter", text.into()));
    }
    Ok(())
}

/// Checks that flows that replay packets have no key beside it that says what they send, and that some are
/// sent.
fn check_replay(scenario: &Scenario, flow: &Flow) -> Allowed {
    let Some(trace) = flow.replay.as_ref().and_then(ReplayedPackets::read) else { return Ok(()) };
    let given = [
        ("transport", !flow.transport.is_own()),
        ("application", flow.application.is_some()),
        ("volume", flow.volume.is_some()),
        ("arrivals", flow.arrivals.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
        let text = "`replay` says what the flows send; leave out this key or that";
        return Err((key, text.into()));
    }
    let codepoints = [("dscp", flow.dscp.is_some()), ("service", flow.service == Service::Green)];
    if let Some((key, _)) = codepoints.into_iter().find(|(_, given)| *given && trace.has_codepoints()) {
        let text = "the packets of `replay` have codepoints of their own; leave this key out";
        return Err((key, text.into()));
    }
    let end = flow.stop.map_or(scenario.duration, |stop| stop.min(scenario.duration));
    let first = trace.packets().first().map_or(Duration::ZERO, |packet| packet.at);
    if flow.start.first + first >= end {
        let text = format!(
            "its first packet would be sent at {}, but the flows end at {end}; use an earlier `start`",
            flow.start.first + first
        );
        return Err(("replay", text));
    }
    Ok(())
}

/// Checks that a group goes from a router to another that is connected to it, or along a path.
fn check_route(scenario: &Scenario, flow: &Flow, routers: &Routers<'_>) -> Allowed {
    if flow.between.is_some() {
        return Ok(());
    }
    if let Some(name) = &flow.path {
        let path = find_path(scenario, name).map_err(|text| ("path", text))?;
        for (key, node, end) in [("from", &flow.from, path.ingress()), ("to", &flow.to, path.egress())] {
            if let Some(node) = node.as_deref().filter(|node| *node != end) {
                let which = if key == "from" { "begins" } else { "ends" };
                let text =
                    format!("the path `{name}` {which} at `{end}`, not at `{node}`; leave this key out");
                return Err((key, text));
            }
        }
        return Ok(());
    }
    for (key, node) in [("from", &flow.from), ("to", &flow.to)] {
        let missing = || ("", format!("key `{key}` is missing; or name a `path`"));
        routers.find(node.as_ref().ok_or_else(missing)?).map_err(|text| (key, text))?;
    }
    let (from, to) = scenario.ends(flow);
    if from == to {
        return Err(("to", format!("the flow goes from `{to}` to itself; name two nodes")));
    }
    let connected = routers.number(from).zip(routers.number(to));
    if !connected.is_some_and(|(from, to)| routers.are_connected(from, to)) {
        return Err(("to", format!("`{to}` cannot be reached from `{from}`; add a link between them")));
    }
    Ok(())
}

/// Checks that the meter of a group can act, and that nothing overwrites its codepoint.
fn check_marking(scenario: &Scenario, flow: &Flow) -> Allowed {
    if flow.out_feedback.is_some() && flow.profile.is_none() {
        let text = "without a profile no marker reports OUT packets; add a `profile` or leave this key out";
        return Err(("out-feedback", text.into()));
    }
    if flow.out_feedback.is_some() && matches!(flow.transport, Transport::Udp(_)) {
        let text = "a UDP source has no window to reduce when packets are OUT; leave this key out";
        return Err(("out-feedback", text.into()));
    }
    let marks_out = |profile: &MeterParams| profile.colors_marked().any(|color| color != Color::Green);
    if flow.out_feedback.is_some() && scenario.profile_of(flow).is_some_and(|profile| !marks_out(profile)) {
        let text = "the profile drops all packets out of profile, so no marker reports OUT packets; leave this key out, or \
                    the profile's `out`";
        return Err(("out-feedback", text.into()));
    }
    if let Some(FlowProfile::Own(Profile(meter))) = &flow.profile
        && meter.follows_paths()
    {
        let controlled = flow.path.as_ref().and_then(|name| scenario.paths.get(name)?.control.as_ref());
        if controlled.is_none() {
            let text = "a window-aware marker requires the control of a label-switched path; name a `path` that has \
                        a `control`";
            return Err(("profile", text.into()));
        }
        if !matches!(flow.transport, Transport::Tcp(_)) {
            let text = "this marker requires the window of TCP; choose another marker";
            return Err(("profile", text.into()));
        }
    }
    if flow.service == Service::Green && flow.profile.is_some() {
        let text = "the profile's marker would overwrite the codepoint of green packets; leave out this key or `profile`";
        return Err(("service", text.into()));
    }
    if flow.dscp.is_some() && flow.profile.is_some() {
        let text = "the profile's marker would overwrite this codepoint with one of Assured Forwarding; leave out this key or `profile`";
        return Err(("dscp", text.into()));
    }
    if flow.dscp.is_some_and(|dscp| dscp != flow.service.dscp()) && flow.service == Service::Green {
        let text = "green packets have a codepoint of their own; leave out this key or `service`";
        return Err(("dscp", text.into()));
    }
    let Some(FlowProfile::Shared(name)) = &flow.profile else { return Ok(()) };
    if !scenario.profiles.contains_key(name) {
        let hint = did_you_mean(name, scenario.profiles.keys().map(String::as_str));
        let text =
            format!("unknown profile `{name}`{hint}; shared ones are tables such as [profiles.{name}]");
        return Err(("profile", text));
    }
    // A meter is at one router.
    let first = scenario.flows.iter().find(|other| other.profile == flow.profile).unwrap_or(flow);
    let (theirs, ours) = (scenario.ends(first).0, scenario.ends(flow).0);
    if theirs != ours {
        let text =
            format!("flows that share `{name}` must start at the same router: `{theirs}`, not `{ours}`");
        return Err((if flow.from.is_some() { "from" } else { "path" }, text));
    }
    Ok(())
}

/// Checks that an application has what it runs over, and that no key beside it is without effect.
fn check_application(flow: &Flow) -> Allowed {
    let example = "such as { tcp = \"linux\", packet = \"1500B\", ack = \"52B\" }";
    let Some(application) = &flow.application else {
        if flow.transport.is_own() && flow.replay.is_none() {
            return Err(("", "key `transport` is missing".into()));
        }
        return check_grants(flow);
    };
    let given = [
        ("path", flow.path.is_some(), "users take the shortest route"),
        ("volume", flow.volume.is_some(), "the application decides how much is sent"),
        ("stop", flow.stop.is_some(), "users go on until the run ends"),
    ];
    if let Some((key, _, why)) = given.into_iter().find(|(_, given, _)| *given) {
        return Err((key, format!("{why}; leave this key out")));
    }
    match (application.carrier(), &flow.transport) {
        (Carrier::Tcp { .. }, Transport::Tcp(params)) if params.packet <= params.ack => {
            let text = format!(
                "with headers of {} (`ack`) a packet of {} carries no data; raise it",
                params.ack, params.packet
            );
            Err(("transport.packet", text))
        }
        (Carrier::Tcp { .. }, Transport::Tcp(_))
        | (Carrier::Datagrams { .. } | Carrier::Sources(_), Transport::Own) => Ok(()),
        (Carrier::Tcp { .. }, Transport::Own) => {
            let text =
                format!("`{}` runs over TCP: give the group a `transport`, {example}", application.name());
            Err(("application", text))
        }
        (Carrier::Tcp { .. }, _) => {
            Err(("transport", format!("`{}` runs over TCP; write one {example}", application.name())))
        }
        (Carrier::Datagrams { .. } | Carrier::Sources(_), _) => Err((
            "transport",
            format!("`{}` sends datagrams of its own; leave this key out", application.name()),
        )),
    }
}

/// Checks that a flow that always has data does not say what happens when it has none.
fn check_grants(flow: &Flow) -> Allowed {
    let Transport::Tcp(params) = &flow.transport else { return Ok(()) };
    let given = [
        ("transport.idle-restart", params.idle_restart.is_some()),
        ("transport.cwnd-validation", params.cwnd_validation.is_some()),
    ];
    let Some((key, _)) = given.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let text = "without an `application` the flow has data to send until its end; leave this key out";
    Err((key, text.into()))
}

/// Checks that only datagrams have a play-out buffer or a codec: no one-way delay of TCP is measured.
fn check_call(flow: &Flow) -> Allowed {
    let given = [("play-out", flow.play_out.is_some()), ("codec", flow.codec.is_some())];
    let given = given.into_iter().find_map(|(key, given)| given.then_some(key));
    if let Some(key) = given.filter(|_| matches!(flow.transport, Transport::Tcp(_))) {
        let text = "only datagrams are played as they come, and a one-way delay of TCP is not measured: leave this key out, or \
                    take UDP, RAP or TFRC";
        return Err((key, text.into()));
    }
    if flow.play_out.is_some_and(Duration::is_zero) {
        let text = "without a buffer every packet is late that takes longer than the first: write a time such as 60ms";
        return Err(("play-out", text.into()));
    }
    Ok(())
}

/// Checks that only TCP flows use ECN, but for datagrams of L4S, and that no key of ECN is without effect.
fn check_ecn(flow: &Flow) -> Allowed {
    let Transport::Tcp(params) = &flow.transport else {
        let datagrams = matches!(flow.transport, Transport::Udp(_)) && flow.ecn == TcpEcn::L4s;
        let text = "only TCP feeds marks back to its sender, and UDP may send `ecn = \"l4s\"` without; leave this key out";
        return if flow.ecn.is_off() || datagrams { Ok(()) } else { Err(("ecn", text.into())) };
    };
    let control = params.control();
    if params.needs().l4s && !flow.ecn.counts() {
        let text = format!(
            "`{}` requires exact counts of marks: give the flow `ecn = \"accurate\"`, and the transport `sack = true`",
            params.control().label()
        );
        return Err(("ecn", text));
    }
    if params.needs().marks && flow.ecn.is_off() {
        let name = params.control().label();
        let text = format!(
            "`{name}` reduces its window by the share of packets that are marked, and without ECN none is: give the flow `ecn = \
             \"classic\"`, or another `congestion`",
        );
        return Err(("ecn", text));
    }
    if !control.info().answers_marks && !flow.ecn.is_off() {
        let text = format!(
            "`{}` does not react to marks; leave this key out, or take another `congestion`",
            control.name()
        );
        return Err(("ecn", text));
    }
    if flow.ecn.counts() && !params.sack {
        let text = "counts of marks travel in selective acknowledgements; give the transport `sack = true`, or take \
                    `ecn = \"classic\"`";
        return Err(("ecn", text.into()));
    }
    if params.accecn == AccEcn::Ace && !flow.ecn.counts() {
        let text = "the ACE field is part of Accurate ECN; leave this key out, or give the flow `ecn = \"accurate\"`";
        return Err(("transport.accecn", text.into()));
    }
    Ok(())
}

/// Checks that no parameter of a group's congestion control, whose key a refusal has, is without effect.
fn check_control(flow: &Flow) -> Allowed {
    let Transport::Tcp(params) = &flow.transport else { return Ok(()) };
    match params.control().key_of_marks() {
        Some(key) if flow.ecn.is_off() => {
            let text = format!(
                "without `ecn` no packet of the flow is marked; leave `{key}` out, or give the flow `ecn = \"classic\"`"
            );
            Err((key, text))
        }
        _ => Ok(()),
    }
}

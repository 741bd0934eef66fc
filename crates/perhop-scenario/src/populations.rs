//! Populations: from the keys of a group to the workload that the simulator draws.

use std::sync::Arc;

use perhop_core::{Duration, Instant};
use perhop_sim::workload::{ArrivalTrace, Arrivals as Process, Refused, Sizes};
use perhop_sim::{LinkSpec, Network, Workload};

use crate::error::did_you_mean;
use crate::format::{Arrivals, Flow, MeasuredArrivals, REVERSE, Scenario, Transport};
use crate::one_flow_per_group::OneFlowPerGroup;

/// The headers of IPv4 and UDP in a datagram. Those of TCP are as large as an ACK.
const UDP_HEADERS: u64 = 28;

/// Returns when the flows of a group stop sending.
pub(crate) fn end_of(scenario: &Scenario, group: &Flow) -> Duration {
    group.stop.map_or(scenario.duration, |stop| stop.min(scenario.duration))
}

/// Returns how many flows of populations are expected to begin.
pub(crate) fn expected_flows(scenario: &Scenario) -> f64 {
    if scenario.flows.iter().all(|group| group.arrivals.is_none()) {
        return 0.0;
    }
    let network = OneFlowPerGroup::of(scenario).network;
    let workloads = network.flows.iter().filter_map(|flow| flow.population.as_ref());
    workloads.map(|workload| workload.expected(scenario.duration)).sum()
}

/// Returns what the simulator draws the flows of a group from, or the key of the group that is wrong, and
/// what would be right; `network` has a flow at `number` that goes the same way.
pub(crate) fn workload(
    group: &Flow,
    arrivals: &Arrivals,
    network: &Network,
    number: usize,
) -> Result<Workload, (&'static str, String)> {
    let Arrivals { load, of, rate, every, list, trace } = arrivals;
    let given = [
        ("arrivals.load", load.is_some()),
        ("arrivals.rate", rate.is_some()),
        ("arrivals.every", every.is_some()),
        ("arrivals.list", !list.is_empty()),
        ("arrivals.trace", trace.is_some()),
    ];
    let all = "one of `load`, `rate`, `every`, `list` and `trace`";
    let mut given = given.into_iter().filter_map(|(key, is_given)| is_given.then_some(key));
    let Some(_) = given.next() else {
        return Err(("arrivals", format!("say when flows begin: {all}")));
    };
    if let Some(second) = given.next() {
        return Err((second, format!("flows begin in one way; choose {all}")));
    }
    if of.is_some() && load.is_none() {
        return Err(("arrivals.of", "only a `load` refers to a link; leave this key out".into()));
    }
    let headers = headers(&group.transport) as u16;
    let trace = trace.as_ref().and_then(MeasuredArrivals::read);
    let sizes = sizes(group, !list.is_empty(), trace)?;
    if !list.is_empty() {
        return Ok(Workload { arrivals: Process::List(list.clone()), sizes, headers });
    }
    if let Some(trace) = trace {
        if !trace.has_sizes() {
            sizes.check().map_err(|refused| at_sizes(&refused))?;
        }
        return Ok(Workload { arrivals: Process::Trace(Arc::clone(trace)), sizes, headers });
    }
    let mean = sizes.mean().map_err(|refused| at_sizes(&refused))?;
    let process = match (load, rate, every) {
        (Some(load), ..) => {
            let rate = loaded_rate(of.as_deref(), group, network, number)?;
            Process::Poisson(load.get() * rate / (8.0 * mean))
        }
        (_, Some(rate), _) => Process::poisson(*rate),
        (.., every) => Process::Every(every.expect("one is given")),
    };
    match process {
        Process::Poisson(0.0) => {
            Err(("arrivals.rate", "at this rate no flow begins; write one such as 40/s".into()))
        }
        Process::Every(interval) if interval.is_zero() => {
            Err(("arrivals.every", "an interval must be longer than 0s, such as 25ms".into()))
        }
        arrivals => Ok(Workload { arrivals, sizes, headers }),
    }
}

/// Returns how much each flow sends, unless its arrivals say so.
fn sizes(
    group: &Flow,
    has_list: bool,
    trace: Option<&Arc<ArrivalTrace>>,
) -> Result<Sizes, (&'static str, String)> {
    let with_sizes = match trace {
        Some(trace) if trace.has_sizes() => Some("trace"),
        _ if has_list => Some("list"),
        _ => None,
    };
    match (&group.sizes, with_sizes) {
        (Some(_), Some(arrivals)) => {
            let text = format!("the {arrivals} of `arrivals` says what each flow sends; leave this key out");
            Err(("sizes", text))
        }
        (None, None) => {
            let text = "say how much each flow sends, such as { cdf = \"web-search\", scale = 0.1 } or { constant = \"30kB\" }";
            Err(("arrivals", format!("`sizes` is missing: {text}")))
        }
        (sizes, _) => Ok(sizes.clone().unwrap_or_default()),
    }
}

/// Returns from when and until when flows of a group begin.
pub(crate) fn span(group: &Flow, network: &Network) -> (Instant, Instant) {
    let end = group.stop.map_or(network.duration, |stop| stop.min(network.duration));
    (Instant::ZERO + group.start.first, Instant::ZERO + end)
}

/// Returns the mean rate in bit/s of the link to which a load refers, while flows begin.
fn loaded_rate(
    of: Option<&str>,
    group: &Flow,
    network: &Network,
    number: usize,
) -> Result<f64, (&'static str, String)> {
    let (from, to) = span(group, network);
    let mean = |link: &LinkSpec| link.mean_rate(from, to);
    let route = network.route_of(&network.flows[number], false).unwrap_or_default();
    let mut links = route.iter().map(|&link| &network.links[link]);
    let Some(of) = of else {
        return Ok(links.map(mean).min_by(f64::total_cmp).expect("a flow passes a link"));
    };
    let is_it = |name: &str| name == of || name.strip_suffix(REVERSE) == Some(of);
    let on_route: Vec<&str> = links.clone().map(|link| link.name.trim_end_matches(REVERSE)).collect();
    links.find(|link| is_it(&link.name)).map(mean).ok_or_else(|| {
        let hint = did_you_mean(of, on_route.iter().copied());
        let known = on_route.join(", ");
        ("arrivals.of", format!("the flows do not pass a link `{of}`{hint} (links on their route: {known})"))
    })
}

/// Returns the bytes of headers in a packet.
pub(crate) fn headers(transport: &Transport) -> u64 {
    match transport {
        Transport::Tcp(params) => params.ack.get(),
        _ => UDP_HEADERS,
    }
}

/// Returns the size of a packet, of transports that populations have.
pub(crate) fn packet(transport: &Transport) -> Option<u64> {
    match transport {
        Transport::Tcp(params) => Some(params.packet.get()),
        Transport::Udp(params) => Some(params.packet.get()),
        Transport::Rap(_) | Transport::Tfrc(_) | Transport::Own => None,
    }
}

/// Returns a refusal of [`Sizes`], at its key in the group.
fn at_sizes((key, text): &Refused) -> (&'static str, String) {
    let key = match *key {
        "constant" => "sizes.constant",
        "cdf" => "sizes.cdf",
        "points" => "sizes.points",
        "lognormal" => "sizes.lognormal",
        "lognormal.mean" => "sizes.lognormal.mean",
        "pareto" => "sizes.pareto",
        "pareto.shape" => "sizes.pareto.shape",
        "at-most" => "sizes.at-most",
        _ => "sizes",
    };
    (key, text.clone())
}

//! Populations: from the keys of a group to the workload that the simulator draws.

use std::sync::Arc;

use perhop_core::{Duration, Instant};
use perhop_sim::workload::{ArrivalTrace, Arrivals as Process, Listed, Refused, Sizes};
use perhop_sim::{LinkSpec, Network, Workload};

use crate::error::{Problem, did_you_mean, steps};
use crate::format::{Arrivals, Flow, MeasuredArrivals, Scenario, Start, Transport};
use crate::network::REVERSE;

/// The headers of IPv4 and UDP in a datagram. Those of TCP are as large as an ACK.
const UDP_HEADERS: u64 = 28;
/// The most flows of a population: their records alone take 3.2 GB.
const MOST_FLOWS: f64 = 1e8;

impl Scenario {
    /// Checks the populations, and that other groups have none of their keys. All else has been checked.
    pub(crate) fn check_populations(&self) -> Result<(), Problem> {
        let is_any = self.flows.iter().any(|group| group.arrivals.is_some());
        let network = is_any.then(|| self.outline().network);
        for (number, group) in self.flows.iter().enumerate() {
            let at =
                |(key, text): (&str, String)| Problem::at(steps(&format!("flows[{number}].{key}")), text);
            match (&group.arrivals, &network) {
                (Some(arrivals), Some(network)) => {
                    check_group(group).map_err(at)?;
                    check_headers(group).map_err(at)?;
                    let workload = workload(group, arrivals, network, number).map_err(at)?;
                    check_list(&arrivals.list, self.duration).map_err(at)?;
                    self.check_trace(group, arrivals).map_err(at)?;
                    let expected = workload.expected(self.duration);
                    if expected > MOST_FLOWS {
                        let text = format!(
                            "{expected:.3e} flows would begin; a population has at most {MOST_FLOWS:.0e}"
                        );
                        return Err(at(("arrivals", text)));
                    }
                }
                _ if group.sizes.is_some() => {
                    let text = "only flows of a population have sizes that differ; add `arrivals`, or give all the same \
                                `volume`";
                    return Err(at(("sizes", text.into())));
                }
                _ => {}
            }
            let controlled = group.path.as_ref().and_then(|path| self.paths.get(path)?.control.as_ref());
            if group.arrivals.is_some() && controlled.is_some() {
                let text = "the window control of this path knows its flows from the start; choose a path without `control`";
                return Err(at(("path", text.into())));
            }
        }
        Ok(())
    }

    /// A flow of measured arrivals begins within the run.
    fn check_trace(&self, group: &Flow, arrivals: &Arrivals) -> Result<(), (&'static str, String)> {
        let Some(trace) = arrivals.trace.as_ref().and_then(MeasuredArrivals::read) else { return Ok(()) };
        let start = group.start.first;
        let end = self.end_of(group);
        match trace.first() {
            Some(first) if start + first < end => Ok(()),
            first => {
                let first = first.map_or(start, |first| start + first);
                let text = format!(
                    "its first flow would begin at {first}, but arrivals end at {end}; use an earlier `start`"
                );
                Err(("arrivals.trace", text))
            }
        }
    }

    /// When flows stop sending.
    fn end_of(&self, group: &Flow) -> Duration {
        group.stop.map_or(self.duration, |stop| stop.min(self.duration))
    }

    /// What to know of flows whose start time, or part of its range, is after their end.
    fn late_starts(&self, group: &Flow) -> Option<String> {
        let (first, last) = (group.start.first, group.start.last);
        let end = self.end_of(group);
        let ends = if end < self.duration { "the flows stop" } else { "the run ends" };
        if first >= end {
            return Some(format!(
                "{ends} at {end}, so flows from {first} on never begin; choose an earlier time, or a later end"
            ));
        }
        (last > end && group.arrivals.is_none()).then(|| {
            let never = (last - end).as_secs_f64() / (last - first).as_secs_f64();
            format!(
                "{ends} at {end}, so {:.0} % of the flows that begin within {first}..{last} never begin; choose an earlier time, or a \
                 later end",
                never * 100.0
            )
        })
    }

    /// Flows that never begin, flows with a volume that begin too early to count, and populations that bring more than their links carry.
    pub(crate) fn population_notices(&self, network: &Network) -> Vec<Problem> {
        let mut notices = Vec::new();
        for (number, group) in self.flows.iter().enumerate() {
            let mut say = |key: &str, text: String| {
                notices.push(Problem::at(steps(&format!("flows[{number}].{key}")), text));
            };
            if let Some(text) = self.late_starts(group) {
                say("start", text);
            }
            let (first, end) = (group.start.first, self.end_of(group));
            if first >= end {
                continue;
            }
            if group.volume.is_some() && group.start.last < self.warmup {
                let text = format!(
                    "flows that begin during the warm-up, until {}, have no completion time; begin later, or choose a shorter `warmup`",
                    self.warmup
                );
                say("start", text);
            }
            let Some(arrivals) = group.arrivals.as_ref().filter(|these| these.list.is_empty()) else {
                continue;
            };
            let Ok(workload) = workload(group, arrivals, network, number) else { continue };
            let expected = workload.expected(end - first);
            if expected < 1.0 {
                let text = format!(
                    "{expected:.1e} flows begin in a run on average; choose more of them, smaller ones or a longer run"
                );
                say("arrivals", text);
            }
            if let Some((link, times)) = overload(group, &workload, network, number) {
                let text = format!(
                    "with headers, the flows bring {times:.2} times what link `{link}` carries, so more and more of them \
                     are open at once; choose fewer, or read the results as those of an overload"
                );
                say("arrivals", text);
            }
        }
        notices
    }

    /// How many flows of populations are expected to begin.
    pub(crate) fn expected_flows(&self) -> f64 {
        if self.flows.iter().all(|group| group.arrivals.is_none()) {
            return 0.0;
        }
        let network = self.outline().network;
        let workloads = network.flows.iter().filter_map(|flow| flow.population.as_ref());
        workloads.map(|workload| workload.expected(self.duration)).sum()
    }
}

/// What the simulator draws the flows of a group from; `network` has a flow at `number` that goes the same way.
///
/// # Errors
/// The key of the group that is wrong, and what would be right.
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

/// How much each flow sends, unless its arrivals say so.
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

/// The slowest link of a population's route and how many times its rate the flows bring at least, if that is more than it carries.
fn overload<'a>(
    group: &Flow,
    workload: &Workload,
    network: &'a Network,
    number: usize,
) -> Option<(&'a str, f64)> {
    let per_second = match &workload.arrivals {
        Process::Poisson(per_second) => *per_second,
        Process::Every(interval) => 1.0 / interval.as_secs_f64(),
        Process::List(_) | Process::Trace(_) => return None,
    };
    let payload = packet(&group.transport)?.checked_sub(headers(&group.transport))?;
    let mean = workload.sizes.mean().ok()?;
    let packets = (mean / payload as f64).max(1.0);
    let bits = 8.0 * (mean + packets * f64::from(workload.headers));
    let route = network.route_of(&network.flows[number], false)?;
    let (from, to) = span(group, network);
    let rates = route.iter().map(|&link| (&network.links[link], network.links[link].mean_rate(from, to)));
    let (link, rate) = rates.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let times = per_second * bits / rate;
    (times > 1.0).then_some((link.name.as_str(), times))
}

/// From when and until when flows of a group begin.
fn span(group: &Flow, network: &Network) -> (Instant, Instant) {
    let end = group.stop.map_or(network.duration, |stop| stop.min(network.duration));
    (Instant::ZERO + group.start.first, Instant::ZERO + end)
}

/// The mean rate in bit/s of the link to which a load refers, while flows begin.
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

/// Keys of a group that do not go with a population.
fn check_group(group: &Flow) -> Result<(), (&'static str, String)> {
    if group.count != 1 {
        let text =
            "a population has as many flows as its `arrivals` say; leave this key out, or write more groups";
        return Err(("count", text.into()));
    }
    if group.application.is_some() {
        let text =
            "the users of an application decide themselves when they send; leave out this key or `arrivals`";
        return Err(("application", text.into()));
    }
    if group.volume.is_some() {
        let text = "flows of a population have `sizes`, such as { constant = \"30kB\" }; leave this key out";
        return Err(("volume", text.into()));
    }
    if group.start.first != group.start.last && group.start != Start::default() {
        let text =
            "the arrivals of a population begin at one time, such as \"2s\"; the flows then start at random";
        return Err(("start", text.into()));
    }
    if group.start != Start::default() && group.arrivals.as_ref().is_some_and(|these| !these.list.is_empty())
    {
        let text =
            "the times of the list are from the start of the run; leave this key out, and write them so";
        return Err(("start", text.into()));
    }
    if group.stop.is_some_and(|stop| stop <= group.start.first) {
        return Err(("stop", "no flow begins after `start` and before this time; choose a later one".into()));
    }
    if group.out_feedback.is_some() {
        let text = "feedback about OUT packets is for flows that stay; leave this key out";
        return Err(("out-feedback", text.into()));
    }
    Ok(())
}

fn headers(transport: &Transport) -> u64 {
    match transport {
        Transport::Tcp(params) => params.ack.get(),
        _ => UDP_HEADERS,
    }
}

/// The size of a packet, of transports that populations have.
fn packet(transport: &Transport) -> Option<u64> {
    match transport {
        Transport::Tcp(params) => Some(params.packet.get()),
        Transport::Udp(params) => Some(params.packet.get()),
        Transport::Rap(_) | Transport::Tfrc(_) | Transport::Own => None,
    }
}

/// Packets have room for payload.
fn check_headers(group: &Flow) -> Result<(), (&'static str, String)> {
    let Some(packet) = packet(&group.transport) else {
        let text = "flows that come and go use TCP or UDP; RAP and TFRC are for streams without an end";
        return Err(("transport", text.into()));
    };
    let headers = headers(&group.transport);
    if packet <= headers {
        let text =
            format!("packets of {packet} bytes have no room for payload beside headers of {headers} bytes");
        return Err(("transport.packet", format!("{text}; choose larger ones")));
    }
    Ok(())
}

fn check_list(list: &[Listed], duration: Duration) -> Result<(), (&'static str, String)> {
    let refuse = |text: String| Err(("arrivals.list", text));
    let mut before = Duration::ZERO;
    for (number, &Listed(at, size)) in list.iter().enumerate() {
        if at < before {
            return refuse(format!(
                "flow {number} begins at {at}, before the one ahead of it ({before}); sort the list"
            ));
        }
        if size.get() == 0 {
            return refuse(format!("flow {number} sends nothing; write a size such as 30kB"));
        }
        if at >= duration {
            return refuse(format!("flow {number} begins at {at}, and the run ends at {duration}"));
        }
        before = at;
    }
    Ok(())
}

/// A refusal of [`Sizes`](perhop_sim::workload::Sizes), at its key in the group.
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

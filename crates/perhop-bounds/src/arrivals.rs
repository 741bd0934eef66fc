//! What flows send at most, as it comes to their first router.

use perhop_core::curves::{Concave, Line, Nanobits, delay, nanobits};
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::Server;
use perhop_core::{Bitrate, Bytes, Color, Duration, Ecn, FlowId, Header};
use perhop_sim::transport::packet_trace::PacketTrace;
use perhop_sim::{AccessSpec, FlowSpec, Marking, Network, Routes, TransportSpec};

const MANY: &str = "any number of its flows may be under way at a time";

/// Flows that are alike, in one direction: their data, or their acknowledgements.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    /// The numbers of its flows: from the first up to before the last.
    pub(crate) flows: std::ops::Range<usize>,
    /// Whether these are acknowledgements.
    pub(crate) acknowledges: bool,
    /// Whether these are flows that come and go, any number at a time.
    pub(crate) is_population: bool,
    /// The links on the route, in order.
    pub(crate) route: Vec<usize>,
    /// All packets of all flows; why there is no bound otherwise.
    pub(crate) all: Result<Concave, String>,
    /// All packets of one flow.
    pub(crate) one: Option<Concave>,
    /// The packets by their headers.
    pub(crate) parts: Vec<Part>,
    /// What all flows have in the network at most, if they have windows.
    pub(crate) content: Option<Nanobits>,
    /// The meter that all flows of the bundle share with others.
    pub(crate) shared: Option<usize>,
    /// The largest packet.
    pub(crate) largest: Bytes,
    /// The smallest packet.
    pub(crate) smallest: Bytes,
    /// The longest time at the host, until the packet is at the first router.
    pub(crate) host: Option<Duration>,
    /// Why packets may be dropped before the first link.
    pub(crate) policed: Option<String>,
}

/// The packets of a bundle with one header.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// What matches look at.
    pub(crate) header: Header,
    /// What these packets do not exceed; `None` if only all together have a bound.
    pub(crate) own: Option<Concave>,
}

/// What a link of this rate brings at most, packets of this size counted as they have arrived.
pub(crate) fn line_rate(rate: Bitrate, largest: Bytes) -> Concave {
    let rate = i128::from(rate.as_bps());
    // Transmission times are rounded to nanoseconds.
    Concave::of([Line { rate, amount: nanobits(largest) + 2 * rate }])
}

/// Returns the bundles of a network: flows that follow one another and are alike are one.
pub(crate) fn bundles(network: &Network, routes: &Routes) -> Vec<Bundle> {
    let mut bundles: Vec<Bundle> = Vec::new();
    let mut first = 0;
    while first < network.flows.len() {
        let spec = &network.flows[first];
        let is_alike = |&number: &usize| alike(spec, &network.flows[number]);
        let last = (first + 1..network.flows.len()).take_while(is_alike).last().unwrap_or(first);
        let flows = first..last + 1;
        let route = routes.of(first, false).unwrap_or_default();
        bundles.push(data(network, spec, flows.clone(), route));
        let (_, ack) = spec.transport.packet_sizes();
        if ack > 0 {
            bundles.push(acknowledgements(network, spec, flows, routes.of(first, true).unwrap_or_default()));
        }
        first = last + 1;
    }
    bundles
}

/// Returns whether two flows differ in nothing that matters here.
fn alike(one: &FlowSpec, other: &FlowSpec) -> bool {
    // The cheapest differences first; flows of a group share what is behind a pointer.
    one.from == other.from
        && one.to == other.to
        && one.path == other.path
        && one.color == other.color
        && one.dscp == other.dscp
        && one.volume == other.volume
        && one.access == other.access
        && one.egress == other.egress
        && one.dispatch_jitter == other.dispatch_jitter
        && one.population.is_none()
        && other.population.is_none()
        && one.ecn == other.ecn
        && one.tcp_ecn == other.tcp_ecn
        && one.marking == other.marking
        && one.transport == other.transport
}

fn data(network: &Network, spec: &FlowSpec, flows: std::ops::Range<usize>, route: Vec<usize>) -> Bundle {
    let size = Bytes::new(spec.transport.packet_sizes().0.into());
    let smallest = smallest(spec);
    let sent = match &spec.population {
        Some(_) => Err(MANY.into()),
        None => spec.transport.arrivals(spec.volume).map_err(str::to_owned),
    };
    let meter = network.meter_of(spec);
    let headers = headers(network, spec, flows.start);
    let (mut parts, passed) = marked(meter, &headers);
    let at_host = matches!(spec.marking, Marking::Host(_));
    let limit = |curve: &Result<Concave, String>| match (curve, &passed) {
        (Ok(curve), Some(passed)) => Ok(curve.min(passed)),
        (Err(_), Some(passed)) => Ok(passed.clone()),
        (curve, None) => curve.clone(),
    };
    let is_shared = matches!(spec.marking, Marking::Edge(_));
    let drops = |comes: &Result<Concave, String>| {
        let meter = meter.filter(|meter| meter.actions().drop_any())?;
        let conforms = !is_shared && comes.as_ref().is_ok_and(|comes| keeps_to(meter, comes));
        (!conforms).then(|| "its policer drops what is out of profile".to_owned())
    };
    let at_meter = if at_host { drops(&sent) } else { None };
    let one = if at_host { limit(&sent) } else { sent };
    let (one, host) =
        behind_host(spec.access.as_ref(), spec.dispatch_jitter, one, size, smallest, &mut parts, at_host);
    let policed = if at_host { at_meter } else { drops(&one) };
    let one = if at_host || is_shared { one } else { limit(&one) };
    let count = flows.len() as u64;
    let shared = if let Marking::Edge(number) = spec.marking { Some(number) } else { None };
    let all = all_of(spec, &one, count);
    let all = if is_shared { limit(&all) } else { all };
    if !is_shared {
        for part in &mut parts {
            part.own = part.own.as_ref().filter(|_| spec.population.is_none()).map(|own| own.times(count));
        }
    }
    let in_flight = spec.transport.in_flight().filter(|_| spec.population.is_none());
    Bundle {
        acknowledges: false,
        is_population: spec.population.is_some(),
        route,
        one: one.ok(),
        all,
        parts,
        content: in_flight.map(|flight| nanobits(flight.data).saturating_mul(count.into())),
        shared,
        largest: size,
        smallest,
        host,
        policed,
        flows,
    }
}

/// Returns the headers with which a flow's data is sent, each once.
fn headers(network: &Network, spec: &FlowSpec, flow: usize) -> Vec<Header> {
    let label = spec.path.map_or(0, |path| network.paths[path].label);
    let plain = Header { color: spec.color, dscp: spec.dscp, label, ..Header::new(FlowId(flow as u32), 0) };
    let ecns = match &spec.transport {
        // Retransmissions may be sent as not capable, and which field new data has depends on the control.
        TransportSpec::Tcp(_) if !spec.tcp_ecn.is_off() => vec![Ecn::Capable1, Ecn::NotCapable],
        TransportSpec::Tcp(_) => vec![Ecn::NotCapable],
        _ => vec![spec.ecn],
    };
    let own = spec.transport.trace().into_iter().flat_map(|trace| trace.codepoints(spec.color));
    let own = own.map(|(dscp, color)| Header { dscp, color, ..plain });
    own.chain([plain]).flat_map(|header| ecns.iter().map(move |&ecn| Header { ecn, ..header })).collect()
}

fn acknowledgements(
    network: &Network,
    spec: &FlowSpec,
    flows: std::ops::Range<usize>,
    route: Vec<usize>,
) -> Bundle {
    let size = Bytes::new(spec.transport.packet_sizes().1.into());
    let label = spec.path.map_or(0, |path| network.paths[path].label);
    let header = Header { label, ..Header::new(FlowId(flows.start as u32), 0) };
    let mut parts = vec![Part { header, own: None }];
    let why = match spec.transport {
        TransportSpec::Tcp(_) => {
            "acknowledgements come as data do, and TCP sends as fast as its window lets it"
        }
        _ => "acknowledgements come as data do, whose rate has no bound",
    };
    let (one, host) = behind_host(
        spec.egress.as_ref(),
        spec.dispatch_jitter,
        Err(why.into()),
        size,
        size,
        &mut parts,
        false,
    );
    let count = flows.len() as u64;
    let in_flight = spec.transport.in_flight().filter(|_| spec.population.is_none());
    Bundle {
        acknowledges: true,
        is_population: spec.population.is_some(),
        route,
        all: all_of(spec, &one, count),
        one: one.ok(),
        parts,
        content: in_flight.map(|flight| nanobits(flight.acks).saturating_mul(count.into())),
        shared: None,
        largest: size,
        smallest: size,
        host,
        policed: None,
        flows,
    }
}

/// Returns all packets of so many flows, each with its own host, of which this is one. Nothing at the hosts
/// bounds a population.
fn all_of(spec: &FlowSpec, one: &Result<Concave, String>, count: u64) -> Result<Concave, String> {
    match (&spec.population, one) {
        (None, Ok(one)) => Ok(one.times(count)),
        (None, Err(why)) => Err(why.clone()),
        (Some(_), _) => Err(MANY.into()),
    }
}

/// Returns the smallest packet of a flow's data: a connection may open with one without data, and the last of
/// a flow of a population is as small as what is left.
fn smallest(spec: &FlowSpec) -> Bytes {
    let (data, ack) = spec.transport.packet_sizes();
    let least = match (&spec.transport, &spec.population) {
        _ if is_datagrams_of_an_application(spec) => 1,
        (_, Some(population)) => population.headers.max(1),
        (TransportSpec::Tcp(params), None) if params.handshake => ack.min(data),
        (transport, None) => transport.trace().map_or(data, PacketTrace::smallest),
    };
    Bytes::new(least.into())
}

/// Returns whether an application hands over each datagram of the flow, of any size.
fn is_datagrams_of_an_application(spec: &FlowSpec) -> bool {
    matches!(&spec.transport, TransportSpec::Udp(params) if params.rate == Bitrate::MAX && params.trace.is_none())
}

/// Returns the packets by their headers behind a meter, and what all that it lets pass do not exceed.
fn marked(meter: Option<&MeterParams>, headers: &[Header]) -> (Vec<Part>, Option<Concave>) {
    let Some(meter) = meter else {
        return (headers.iter().map(|&header| Part { header, own: None }).collect(), None);
    };
    let buckets = meter.buckets();
    let mut parts: Vec<Part> = Vec::new();
    for header in headers {
        let best = if meter.reads_color() { header.color } else { Color::Green };
        for color in meter.colors_marked().filter(|color| *color >= best) {
            let mut header = *header;
            meter.af().mark(&mut header, color);
            if parts.iter().all(|part| part.header != header) {
                let own = bucket_of(&buckets, &[color]);
                parts.push(Part { header, own });
            }
        }
    }
    let passing: Vec<Color> = meter.colors_marked().collect();
    (parts, if meter.actions().drop_any() { bucket_of(&buckets, &passing) } else { None })
}

/// Returns whether arrivals keep to a profile so that its meter drops none of them: all are green. Where
/// yellow packets pass, too, no sum of buckets says so, since no packet takes tokens of two.
pub(crate) fn keeps_to(meter: &MeterParams, comes: &Concave) -> bool {
    let buckets = meter.buckets();
    let mut green = buckets.iter().filter(|(colors, ..)| colors.contains(&Color::Green)).peekable();
    let keeps = |&(_, rate, burst): &(&[Color], Bitrate, Bytes)| {
        comes.conforms_to(&Concave::token_bucket(rate, burst))
    };
    !meter.reads_color() && green.peek().is_some() && green.all(keeps)
}

/// Returns what packets of these colors do not exceed behind a meter with these buckets.
pub(crate) fn bucket_of(buckets: &[(&[Color], Bitrate, Bytes)], colors: &[Color]) -> Option<Concave> {
    let holds = buckets.iter().filter(|(held, ..)| colors.iter().all(|color| held.contains(color)));
    let curves = holds.map(|&(_, rate, burst)| Concave::token_bucket(rate, burst));
    let joint = curves.reduce(|one, other| one.min(&other));
    let single = |color: &Color| {
        let own = buckets.iter().filter(|(held, ..)| held.contains(color));
        own.map(|&(_, rate, burst)| Concave::token_bucket(rate, burst)).reduce(|one, other| one.min(&other))
    };
    let apart = colors.iter().try_fold(Concave::zero(), |sum, color| Some(sum.plus(&single(color)?)));
    match (joint, apart) {
        (Some(joint), Some(apart)) => Some(joint.min(&apart)),
        (joint, apart) => joint.or(apart),
    }
}

/// Returns the arrivals at the first router from what a host sends, and the longest time on the way there.
fn behind_host(
    access: Option<&AccessSpec>,
    jitter: Option<Duration>,
    sent: Result<Concave, String>,
    largest: Bytes,
    smallest: Bytes,
    parts: &mut [Part],
    metered: bool,
) -> (Result<Concave, String>, Option<Duration>) {
    let handed_over = jitter.unwrap_or(Duration::ZERO);
    let sent = sent.map(|sent| sent.delayed(handed_over));
    let Some(access) = access else {
        if metered {
            for part in parts {
                part.own = part.own.as_ref().map(|own| own.delayed(handed_over));
            }
        }
        return (sent, Some(handed_over));
    };
    let line = line_rate(access.rate, largest);
    let server = Server::link(access.rate);
    let waits = sent.as_ref().ok().and_then(|sent| delay(&sent.less(nanobits(smallest)), &server.waits));
    // A packet may be sent faster than another one that is larger.
    let spread = access.rate.time_of(largest) - access.rate.time_of(smallest) + Duration::from_nanos(1);
    let behind = |curve: &Concave, waits: Duration| curve.delayed(waits + spread).min(&line);
    if metered {
        for part in parts {
            let own = part.own.as_ref().zip(waits);
            part.own = Some(
                own.map_or_else(|| line.clone(), |(own, waits)| behind(&own.delayed(handed_over), waits)),
            );
        }
    }
    let time = waits.map(|waits| {
        handed_over + waits + access.rate.time_of(largest) + access.delay + Duration::from_nanos(2)
    });
    match (sent, waits) {
        (Ok(sent), Some(waits)) => (Ok(behind(&sent, waits)), time),
        _ => (Ok(line), None),
    }
}

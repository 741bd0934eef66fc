//! A network at time zero: what both engines start from.

use perhop_core::{Bytes, Instant};

use crate::control::{Channels, Destination};
use crate::events::{Event, Schedule, Sources};
use crate::flow::{Flow, FlowPlace, Marker};
use crate::network::{FlowSpec, IdlePath, Marking, Network, NoRoute, TransportSpec};
use crate::routing::Routes as AllRoutes;
use crate::sampling::{Recorder, SampleTimes};
use crate::window_control::WindowControls;

use super::failure::Failure;
use crate::watch::{Stopped, WATCH_INTERVAL, Watch};

/// One step of a route. Hosts put packets on their own wires themselves, so a route begins behind these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Onto a link that flows share.
    Link(u32),
    /// Onto a link that flows share, through the flow's first router: past a meter, and its path's control.
    Metered(u32),
    /// Past the window control of its path, to which the ingress shows ACKs.
    Ingress,
    /// Onto the wire to the host that receives data, if it has one, and to that host.
    ReceiverWire,
    Receiver,
    /// Onto the wire to the host that receives ACKs, if it has one, and to that host.
    SenderWire,
    Sender,
    /// On in the part of the network that has this number; only where the run is divided among threads.
    Away(u32),
}

/// The numbers of a route's first and last step, and of its first link, if it has any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) first_step: u32,
    pub(crate) first_link: Option<u32>,
    pub(crate) last_step: u32,
    /// Packets may overtake one another on its last link.
    pub(crate) is_reordered: bool,
}

/// The routes of a flow's data and of its ACKs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routes {
    pub(crate) data: Route,
    pub(crate) acks: Route,
}

/// The place in the network of a population's flows.
#[derive(Clone, Debug)]
pub(crate) struct PopulationPlace {
    /// The place of the flow that represents them.
    pub(crate) place: FlowPlace,
    pub(crate) idle: IdlePath,
}

/// A network at time zero, without its links.
pub(crate) struct Setup {
    pub(crate) flows: Vec<Flow>,
    /// The places of the flows of each population, in the order of the flows that represent them.
    pub(crate) populations: Vec<PopulationPlace>,
    /// The number of users that applications have.
    pub(crate) users: usize,
    pub(crate) routes: Vec<Routes>,
    /// All routes, end to end.
    pub(crate) steps: Vec<Step>,
    /// Meters that flows share.
    pub(crate) shared_meters: Vec<Marker>,
    pub(crate) channels: Channels,
    pub(crate) controls: WindowControls,
    pub(crate) recorder: Recorder,
}

impl Setup {
    /// # Errors
    /// A flow's endpoints are not connected, or the watch stopped the run.
    pub(crate) fn new(network: &Network, seed: u64, watch: &Watch) -> Result<Self, Failure> {
        let recorder = Recorder::new(network);
        let mut steps = Vec::new();
        let room = network.flows.len();
        let (mut flows, mut routes, mut populations) =
            (Vec::with_capacity(room), Vec::with_capacity(room), Vec::new());
        let all = network.routes();
        for (number, spec) in network.flows.iter().enumerate() {
            stop_if_asked(number, watch)?;
            let (found, links, place) = route_of(network, &all, number, spec, &mut steps)?;
            routes.push(found);
            flows.push(Flow::new(spec, &place, seed, &recorder.times));
            if spec.population.is_some() {
                populations.push(PopulationPlace { idle: network.idle_path(spec, &links), place });
            }
        }
        let users = network.applications.iter().map(|spec| spec.users.len()).sum();
        let mut channels = Channels::new(Sources::channel((populations.len(), users), 0));
        open_feedback(network, &mut flows, &mut channels);
        let controls = WindowControls::new(network, seed, &mut flows, &mut channels);
        let shared_meters = network.shared_meters.iter().map(|spec| Marker::shared(spec, seed)).collect();
        Ok(Self { flows, populations, users, routes, steps, shared_meters, channels, controls, recorder })
    }

    pub(crate) fn largest_packet(&self) -> Bytes {
        let largest = self.flows.iter().map(Flow::data_size).max().unwrap_or(0);
        Bytes::new(u64::from(largest))
    }

    /// Returns how events of the run are numbered. No channel is opened later.
    pub(crate) fn sources(&self) -> Sources {
        let Self { populations, users, channels, controls, .. } = self;
        Sources {
            populations: populations.len(),
            users: *users,
            channels: channels.len(),
            controls: controls.len(),
        }
    }
}

/// Adds the first samples of window controls and of the probe.
pub(crate) fn schedule_samples(
    controls: &WindowControls,
    times: &SampleTimes,
    sources: Sources,
    events: &mut impl Schedule,
) {
    for control in 0..controls.len() {
        events.add(Event { at: controls.next(control), source: sources.control(control) });
    }
    schedule_probe(times.first(), times, sources, events);
}

/// Adds a sample of the probe, unless it lies beyond the end of the run.
pub(crate) fn schedule_probe(at: Instant, times: &SampleTimes, sources: Sources, events: &mut impl Schedule) {
    if at <= times.end {
        events.add(Event { at, source: sources.probe() });
    }
}

/// Returns the routes of a flow, whose steps it adds, the links that its data pass, and its place.
fn route_of(
    network: &Network,
    all: &AllRoutes,
    number: usize,
    spec: &FlowSpec,
    steps: &mut Vec<Step>,
) -> Result<(Routes, Vec<usize>, FlowPlace), Failure> {
    let links_of = |acks| {
        let refused = NoRoute { flow: number, from: spec.from, to: spec.to };
        all.of(number, acks).ok_or(Failure::NoRoute(refused))
    };
    let has_control = spec.path.is_some_and(|path| network.paths[path].control.is_some());
    let is_metered = has_control || matches!(spec.marking, Marking::Edge(_) | Marking::Ingress(_));
    let links = links_of(false)?;
    let data = add_route(network, steps, &links, is_metered, &[Step::ReceiverWire, Step::Receiver]);
    // Nothing goes back of UDP.
    let back = if spec.transport.is_acknowledged() { links_of(true)? } else { Vec::new() };
    let acks = match (&spec.transport, has_control) {
        (TransportSpec::Udp(_), _) => Route { first_step: data.last_step + 1, ..data },
        (_, true) => {
            add_route(network, steps, &back, false, &[Step::Ingress, Step::SenderWire, Step::Sender])
        }
        (_, false) => add_route(network, steps, &back, false, &[Step::SenderWire, Step::Sender]),
    };
    let place = FlowPlace {
        number,
        label: spec.path.map_or(0, |path| network.paths[path].label),
        first_steps: (data.first_step, acks.first_step),
        idle_time: network.idle_time(spec, &links),
        first_data: network.first_data(spec, &links, &back),
        is_policed: network.polices(spec, &links),
        is_lossy: network.loses(&links),
    };
    Ok((Routes { data, acks }, links, place))
}

/// Adds the steps of a route over these links.
fn add_route(
    network: &Network,
    steps: &mut Vec<Step>,
    links: &[usize],
    is_metered: bool,
    last: &[Step],
) -> Route {
    let is_reordered = links.last().is_some_and(|&link| network.links[link].medium.reorders());
    let first_step = steps.len() as u32;
    steps.extend(links.iter().enumerate().map(|(hop, &link)| match hop {
        0 if is_metered => Step::Metered(link as u32),
        _ => Step::Link(link as u32),
    }));
    steps.extend(last);
    let first_link = links.first().map(|&link| link as u32);
    Route { first_step, first_link, last_step: steps.len() as u32 - 1, is_reordered }
}

/// Opens the channels on which markers give senders feedback about OUT packets.
pub(crate) fn open_feedback(network: &Network, flows: &mut [Flow], channels: &mut Channels) {
    for (number, (spec, flow)) in network.flows.iter().zip(flows).enumerate() {
        if let Some(delay) = spec.out_feedback {
            flow.sending.feedback = Some(channels.open(Destination::Sender(number), delay) as u32);
        }
    }
}

/// Checks the watch once in so many flows, while a network is built.
pub(crate) fn stop_if_asked(flow: usize, watch: &Watch) -> Result<(), Stopped> {
    let asks = (flow as u64).is_multiple_of(WATCH_INTERVAL);
    if asks && watch.is_stopped() { Err(Stopped) } else { Ok(()) }
}

//! A network at time zero, divided into parts.

use super::partition::Partition;
use crate::control::Channels;
use crate::engine::batched::{Accepted, Batched, Border, Renumbering};
use crate::engine::setup::{Route, Routes, Setup, Step, open_feedback, stop_if_asked};
use crate::events::Sources;
use crate::flow::{Ends, Flow};
use crate::network::{FlowSpec, Network};
use crate::sampling::Recorder;
use crate::watch::{Stopped, Watch};
use crate::window_control::WindowControls;

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) engine: Batched,
    /// For each of its flows, its number in the whole network, and which of its hosts are here.
    pub(super) flows: Vec<(u32, Ends)>,
    /// The numbers of its measured links in the whole network.
    pub(super) measured: Vec<usize>,
}

/// A part that is being made.
#[derive(Default)]
struct Draft {
    network: Network,
    flows: Vec<Flow>,
    ends: Vec<(u32, Ends)>,
    numbers: Vec<Renumbering>,
    routes: Vec<Routes>,
    steps: Vec<Step>,
    measured: Vec<usize>,
}

/// Where a link is: its part, and its number there.
#[derive(Clone, Copy)]
struct Location {
    part: u32,
    number: u32,
}

/// Divides a network at time zero.
///
/// # Errors
/// The watch stopped the run.
pub(super) fn split(
    network: &Network,
    seed: u64,
    setup: Setup,
    accepted: Accepted,
    partition: &Partition,
    watch: &Watch,
) -> Result<Vec<Part>, Stopped> {
    let Setup { flows, routes, steps, shared_meters, .. } = setup;
    let mut drafts: Vec<Draft> = (0..partition.parts).map(|_| Draft::of(network)).collect();
    let mut places = Vec::with_capacity(network.links.len());
    for (link, spec) in network.links.iter().enumerate() {
        let part = partition.of_node[spec.from.0 as usize];
        let draft = &mut drafts[part as usize];
        places.push(Location { part, number: draft.network.links.len() as u32 });
        if network.reports(link) {
            draft.measured.push(link);
        } else {
            draft.network.unreported.push(draft.network.links.len());
        }
        draft.network.links.push(spec.clone());
    }
    let ends_of_routes = routes.iter().skip(1).map(|routes| routes.data.first_step as usize);
    let ends_of_routes = ends_of_routes.chain([steps.len()]);
    let all = flows.into_iter().zip(&network.flows).zip(routes.iter().zip(ends_of_routes)).enumerate();
    for (number, ((flow, spec), (routes, end))) in all {
        stop_if_asked(number, watch)?;
        let own = &steps[routes.data.first_step as usize..end];
        let home = |node: crate::network::NodeId| partition.of_node[node.0 as usize];
        let (sends, receives) = (home(spec.from), home(spec.to));
        let mut parts: Vec<u32> =
            own.iter().filter_map(|step| step.link()).map(|link| places[link].part).collect();
        parts.extend([sends, receives]);
        parts.sort_unstable();
        parts.dedup();
        for &part in &parts {
            let ends = Ends { sends: sends == part, receives: receives == part };
            let located = own.iter().map(|&step| step.within(part, &places, (sends, receives)));
            drafts[part as usize].add(number as u32, flow.clone(), spec, (*routes, located), (ends, &places));
        }
    }
    drafts
        .into_iter()
        .map(|draft| {
            draft.finish(seed, accepted, (network.flows.len(), partition.parts), shared_meters.clone(), watch)
        })
        .collect()
}

impl Step {
    /// Returns the link onto which it leads.
    fn link(self) -> Option<usize> {
        match self {
            Self::Link(link) | Self::Metered(link) => Some(link as usize),
            _ => None,
        }
    }

    /// Returns the step within a part of the network; the hosts that send and receive are in these parts.
    fn within(self, part: u32, places: &[Location], (sends, receives): (u32, u32)) -> Self {
        let home = match self {
            Self::Link(link) | Self::Metered(link) => places[link as usize].part,
            Self::ReceiverWire | Self::Receiver => receives,
            Self::Ingress | Self::SenderWire | Self::Sender => sends,
            Self::Away(_) => unreachable!("the network is whole"),
        };
        match self {
            _ if home != part => Self::Away(home),
            Self::Link(link) => Self::Link(places[link as usize].number),
            Self::Metered(link) => Self::Metered(places[link as usize].number),
            step => step,
        }
    }
}

impl Draft {
    /// A part with nothing of this network yet.
    fn of(network: &Network) -> Self {
        let network = Network {
            warmup: network.warmup,
            probe_interval: network.probe_interval,
            nodes: network.nodes,
            shared_meters: network.shared_meters.clone(),
            ..Network::new(network.duration)
        };
        Self { network, ..Self::default() }
    }

    /// Adds a flow, some of whose packets pass the part.
    fn add(
        &mut self,
        number: u32,
        flow: Flow,
        spec: &FlowSpec,
        (routes, steps): (Routes, impl Iterator<Item = Step>),
        (ends, places): (Ends, &[Location]),
    ) {
        let first_step = routes.data.first_step;
        let first_step_here = self.steps.len() as u32;
        let part_of = |link: u32| places[link as usize];
        let here = |route: Route, is_here: bool| Route {
            first_step: route.first_step - first_step + first_step_here,
            first_link: route.first_link.filter(|_| is_here).map(|link| part_of(link).number),
            last_step: route.last_step - first_step + first_step_here,
            is_reordered: route.is_reordered,
        };
        let routes = Routes { data: here(routes.data, ends.sends), acks: here(routes.acks, ends.receives) };
        self.steps.extend(steps);
        let first_steps = (routes.data.first_step, routes.acks.first_step);
        self.flows.push(flow.replica(self.flows.len() as u32, first_steps, ends));
        self.ends.push((number, ends));
        self.numbers.push(Renumbering { number, first_step, first_step_here });
        self.routes.push(routes);
        // Its route is known.
        self.network.flows.push(FlowSpec { path: None, ..spec.clone() });
    }

    fn finish(
        self,
        seed: u64,
        accepted: Accepted,
        (flows_of_all, parts): (usize, usize),
        shared_meters: Vec<crate::flow::Marker>,
        watch: &Watch,
    ) -> Result<Part, Stopped> {
        let Self { network, mut flows, ends, numbers, routes, steps, measured } = self;
        let mut channels = Channels::new(Sources::channel((0, 0), 0));
        open_feedback(&network, &mut flows, &mut channels);
        let controls = WindowControls::new(&network, seed, &mut flows, &mut channels);
        let recorder = Recorder::new(&network);
        let setup = Setup {
            flows,
            populations: Vec::new(),
            users: 0,
            routes,
            steps,
            shared_meters,
            channels,
            controls,
            recorder,
        };
        let border = Border::new(numbers, flows_of_all, parts);
        let engine = Batched::new(&network, seed, setup, accepted, watch.clone(), Some(border))?;
        Ok(Part { engine, flows: ends, measured })
    }
}

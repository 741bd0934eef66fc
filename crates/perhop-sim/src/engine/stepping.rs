//! A run that one steps through: read between two steps, changed, copied, and ended like any other.
//!
//! A step changes nothing: where no parameter is changed, the outcome is that of an unbroken run, to the bit.
//! The reference engine shows everything at any time. The batched engine simulates hosts ahead of the clock,
//! so it shows links only, and takes no changes.

use std::sync::Arc;

use perhop_core::measure::PortView;
use perhop_core::units::{UnitError, split_key};
use perhop_core::{Bitrate, Duration, Imbalance, Instant, Rng};

use super::failure::Failure;
use super::reference::{Passed, Reference};
use super::retuning::{ChangedPlace, Retuned};
use super::simulation::{Run, Simulation};
use crate::choice::Engine;
use crate::flow::FlowState;
use crate::network::{FlowSpec, LinkSpec, Network, TransportSpec};
use crate::observer::Observation;
use crate::outcome::Outcome;
use crate::splitting::Importance;
use crate::transport::tcp::TcpParams;
use crate::transport::tcp::congestion::ForeignCongestionParams;
use crate::transport::udp::UdpParams;

/// A run in progress, with the network as it is by now. A clone is a snapshot: both go on by themselves.
///
/// ```
/// use perhop_core::{Duration, Instant};
/// use perhop_sim::{Engine, Network, Stepping};
/// let network = Network::new(Duration::from_secs(2));
/// let mut run = Stepping::new(&network, 1, Engine::Reference).expect("every flow has a route");
/// run.run_until(Instant::from_nanos(500_000_000));
/// let snapshot = run.clone();
/// assert_eq!(run.finish(), snapshot.finish());
/// ```
#[derive(Clone, Debug)]
pub struct Stepping {
    network: Arc<Network>,
    simulation: Simulation,
}

/// The reason why a flow cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    /// The batched engine simulates hosts ahead of the clock.
    #[error(
        "the batched engine simulates hosts ahead of the clock, so flows cannot be read between two steps; use \
         the reference engine"
    )]
    AheadOfClock,
    /// The flow represents a population, whose flows come and go.
    #[error("it is a population, whose flows come and go; their links can be read")]
    Population,
    /// There is no flow of this number.
    #[error("there is no such flow")]
    NoFlow,
}

/// The reason why a network cannot change during a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The batched engine simulates hosts ahead of the clock.
    #[error("{}", CHANGEABLE_AHEAD)]
    AheadOfClock,
    /// The queue or a meter of a link: a parameter that cannot change, with the key if there is one.
    #[error("{}", split_key(.problem).1)]
    Queue {
        /// The link's name.
        link: String,
        /// The reason, with a key in front as [`split_key`] takes it off.
        problem: String,
    },
    /// The rate of a link that has a trace of its rate.
    #[error("the link's rate follows a trace")]
    Traced {
        /// The link's name.
        link: String,
    },
    /// Something else of a link.
    #[error("this cannot change during a run; these can: {}", CHANGEABLE)]
    Link {
        /// The link's name.
        link: String,
    },
    /// A parameter of a profile: of a flow's, or of a shared one.
    #[error("{}", split_key(.problem).1)]
    Profile {
        /// The owner of the profile, in words.
        owner: String,
        /// The reason, with a key in front as [`split_key`] takes it off.
        problem: String,
    },
    /// Something of a flow besides the rate of UDP.
    #[error("this cannot change during a run; these can: {}", CHANGEABLE)]
    Flow {
        /// The flow's name.
        flow: String,
    },
    /// Something else: what there is, the duration, profiles, paths.
    #[error("this cannot change during a run; these can: {}", CHANGEABLE)]
    Other,
}

/// The properties that can change during a run.
const CHANGEABLE: &str = "a link's `rate` and `delay`, the parameters of its schedulers, AQMs and meters, those of profiles, the `rate` of a flow over \
     UDP, and the parameters of a congestion control in Python";

/// The properties that can change where hosts are simulated ahead of the clock.
const CHANGEABLE_AHEAD: &str = "the batched engine simulates hosts ahead of the clock, so nothing but the parameters of a link's schedulers, AQMs and \
     meters can change during a run; use the reference engine";

/// A change of a running network.
#[derive(Clone, Copy, Debug)]
enum Change<'a> {
    /// The parameters of a queue, of meters or of a profile.
    Retuned(Retuned<'a>),
    /// The rate and the delay of this link.
    Link(usize, Bitrate, Duration),
    /// The rate of this flow.
    Flow(usize, &'a UdpParams),
    /// The parameters of this flow's congestion control, which is implemented outside.
    Control(usize, &'a ForeignCongestionParams),
}

impl Stepping {
    /// The network at time zero, on this engine. Both give the same outcome.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path; the batched engine refuses the network.
    pub fn new(network: &Network, seed: u64, engine: Engine) -> Result<Self, Failure> {
        let simulation = Simulation::on_engine(network, seed, engine)?;
        Ok(Self { network: Arc::new(network.clone()), simulation })
    }

    /// Steps on the reference engine, while an observer sees what becomes of packets at links. A clone has
    /// the same observer.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path.
    pub fn observed(network: &Network, seed: u64, observation: Observation) -> Result<Self, Failure> {
        let mut stepping = Self::new(network, seed, Engine::Reference)?;
        if let Run::Reference(engine) = &mut stepping.simulation.run {
            engine.observe(observation);
        }
        Ok(stepping)
    }

    /// Returns a copy that goes on with other random numbers, which depend on this seed: every block keeps
    /// its state, and draws anew from now on. Classes in Python do so as far as they draw from the stream
    /// that they are given. On the reference engine, sources over UDP and populations with Poisson arrivals
    /// also draw anew when their next packet or flow comes, given that it has not by now; what others have
    /// drawn stays. Either way the copy follows the law of the run, given its state.
    #[must_use]
    pub fn reseeded(&self, seed: u64) -> Self {
        let mut copy = Rng::reseeding(seed, || self.clone());
        if let Run::Reference(engine) = &mut copy.simulation.run {
            engine.redraw();
        }
        copy
    }

    /// The network as it is by now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Everything up to and including this time has happened.
    pub fn now(&self) -> Instant {
        self.simulation.now()
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        self.simulation.end()
    }

    /// Handles all events up to and including `until`, and never beyond the end of the run. A time that has
    /// passed changes nothing.
    pub fn run_until(&mut self, until: Instant) {
        if until > self.now() {
            self.simulation.run_until(until);
        }
    }

    /// Handles the next event alone, if it comes up to and including `until`; else everything up to then has
    /// happened, and it is false. Others of the same time may follow an event. The batched engine does not
    /// handle events one by one: there it goes on to `until`, and is false.
    pub fn step(&mut self, until: Instant) -> bool {
        let until = until.min(self.end());
        if until < self.now() {
            return false;
        }
        if let Run::Reference(engine) = &mut self.simulation.run {
            return engine.step(until);
        }
        self.run_until(until);
        false
    }

    /// The queue of the link of this number and what it has counted; `None` for a link without a queue under
    /// an AQM.
    pub fn link(&mut self, number: usize) -> Option<PortView<'_>> {
        self.network.links.get(number)?.queue.as_ref()?;
        match &mut self.simulation.run {
            Run::Batched(engine) => Some(engine.view(number)),
            Run::Reference(engine) => Some(engine.view(number)),
            Run::Parallel(_) => unreachable!("a run on one thread was asked for"),
        }
    }

    /// The bits that the link of this number could send since the run began: the integral of its rate, zero
    /// in outages. `None` for a link without a queue under an AQM.
    pub fn capacity(&mut self, number: usize) -> Option<f64> {
        let (trace, now) = (self.network.links.get(number)?.medium.trace.clone(), self.now());
        let rates = &self.link(number)?.statistics.rates;
        let parts = match trace {
            None => rates.capacity(Instant::ZERO, now),
            Some(trace) => rates.capacity_by(Instant::ZERO, now, |from, to| trace.capacity(from, to)),
        };
        Some(parts as f64 / 1e9)
    }

    /// The flow of this number.
    ///
    /// # Errors
    /// The reason why it cannot be seen.
    pub fn flow(&self, number: usize) -> Result<FlowState, Unseen> {
        let spec = self.network.flows.get(number).ok_or(Unseen::NoFlow)?;
        match &self.simulation.run {
            Run::Reference(_) if spec.population.is_some() => Err(Unseen::Population),
            Run::Reference(engine) => Ok(engine.flow(number).state(engine.now())),
            Run::Batched(_) | Run::Parallel(_) => Err(Unseen::AheadOfClock),
        }
    }

    /// The run goes on with another network, which differs from the present one only in what can change: the
    /// rates and delays of links, the parameters of schedulers (which keep their packets), AQMs and meters
    /// (which keep what they have measured), and the rates of flows over UDP. A packet that is being sent is
    /// finished at the earlier rate. The batched engine changes the queues and meters of links only.
    ///
    /// # Errors
    /// The change that is refused; the run then goes on as before.
    pub fn become_network(&mut self, network: &Network) -> Result<(), Refused> {
        let changes = changes(&self.network, network)?;
        if changes.is_empty() {
            return Ok(());
        }
        let retuned = changes.iter().filter_map(|change| match change {
            Change::Retuned(retuned) => Some(*retuned),
            Change::Link(..) | Change::Flow(..) | Change::Control(..) => None,
        });
        let retuned: Vec<Retuned<'_>> = retuned.collect();
        let refused = |(place, problem): (ChangedPlace, UnitError)| {
            let problem = problem.to_string();
            match place {
                ChangedPlace::Link(n) => Refused::Queue { link: network.links[n].name.clone(), problem },
                ChangedPlace::Flow(n) => {
                    Refused::Profile { owner: format!("flow `{}`", network.flows[n].name), problem }
                }
                ChangedPlace::Shared(n) => {
                    let owner = format!("profile `{}`", network.shared_meters[n].name);
                    Refused::Profile { owner, problem }
                }
            }
        };
        let links_only = changes.iter().all(|change| matches!(change, Change::Retuned(Retuned::Link(..))));
        // What can be refused comes first.
        match &mut self.simulation.run {
            Run::Reference(engine) => engine.retune(&retuned).map_err(refused)?,
            Run::Batched(engine) if links_only => engine.retune(&retuned).map_err(refused)?,
            Run::Batched(_) | Run::Parallel(_) => return Err(Refused::AheadOfClock),
        }
        if let Run::Reference(engine) = &mut self.simulation.run {
            for change in changes {
                match change {
                    Change::Retuned(_) => {}
                    Change::Link(number, rate, delay) => engine.change_link(number, rate, delay),
                    Change::Flow(number, params) => engine.change_rate(number, params),
                    Change::Control(number, params) => engine.change_control(number, params),
                }
            }
        }
        self.network = Arc::new(network.clone());
        Ok(())
    }

    /// Counts from now on what passes the link of this importance. False if the link has no queue.
    pub(crate) fn count(&mut self, importance: Importance) -> bool {
        let Run::Reference(engine) = &mut self.simulation.run else { return false };
        engine.count(importance)
    }

    /// Returns how important the state of the queue is that is counted.
    pub(crate) fn importance(&self) -> u64 {
        self.reference().importance()
    }

    /// Returns what passed the link that is counted since this was last asked for.
    pub(crate) fn passed(&mut self) -> impl Iterator<Item = Passed> {
        let Run::Reference(engine) = &mut self.simulation.run else { unreachable!("it counts") };
        engine.passed()
    }

    /// Checks that the queue that is counted has conserved its packets.
    pub(crate) fn balance(&self) -> Result<(), Imbalance> {
        self.reference().balance()
    }

    /// Returns the number of events so far.
    pub(crate) fn handled(&self) -> u64 {
        self.reference().handled()
    }

    fn reference(&self) -> &Reference {
        let Run::Reference(engine) = &self.simulation.run else { unreachable!("it counts") };
        engine
    }

    /// Runs to the end, checks that every queue conserved its packets, and returns what was measured.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub fn finish(mut self) -> Result<Outcome, Imbalance> {
        self.simulation.run_to_end();
        self.simulation.finish()
    }
}

/// Returns the changes that make one network of the other.
fn changes<'a>(before: &'a Network, after: &'a Network) -> Result<Vec<Change<'a>>, Refused> {
    let mut changes = Vec::new();
    if (before.links.len(), before.flows.len()) != (after.links.len(), after.flows.len()) {
        return Err(Refused::Other);
    }
    for (number, (before, after)) in before.links.iter().zip(&after.links).enumerate() {
        changes.extend(link_changes(number, before, after)?);
    }
    for (number, (before, after)) in before.flows.iter().zip(&after.flows).enumerate() {
        changes.extend(flow_change(number, before, after)?);
    }
    for (number, (before, after)) in before.shared_meters.iter().zip(&after.shared_meters).enumerate() {
        if before.params != after.params {
            changes.push(Change::Retuned(Retuned::Shared(number, &after.params)));
        }
    }
    let names = |network: &Network| -> Vec<String> {
        network.shared_meters.iter().map(|meter| meter.name.clone()).collect()
    };
    let rest = |network: &Network| Network {
        links: Vec::new(),
        flows: Vec::new(),
        shared_meters: Vec::new(),
        ..network.clone()
    };
    let can_change = names(before) == names(after) && rest(before) == rest(after);
    if can_change { Ok(changes) } else { Err(Refused::Other) }
}

fn link_changes<'a>(
    number: usize,
    before: &'a LinkSpec,
    after: &'a LinkSpec,
) -> Result<Vec<Change<'a>>, Refused> {
    let mut changes = Vec::new();
    let link = || after.name.clone();
    let same = LinkSpec {
        rate: before.rate,
        delay: before.delay,
        queue: before.queue.clone(),
        meters: before.meters.clone(),
        ..after.clone()
    };
    if same != *before || before.queue.is_some() != after.queue.is_some() {
        return Err(Refused::Link { link: link() });
    }
    if before.queue != after.queue || before.meters != after.meters {
        changes.push(Change::Retuned(Retuned::Link(number, before, after)));
    }
    if (before.rate, before.delay) != (after.rate, after.delay) {
        if before.medium.trace.is_some() && before.rate != after.rate {
            return Err(Refused::Traced { link: link() });
        }
        changes.push(Change::Link(number, after.rate, after.delay));
    }
    Ok(changes)
}

fn flow_change<'a>(
    number: usize,
    before: &FlowSpec,
    after: &'a FlowSpec,
) -> Result<Option<Change<'a>>, Refused> {
    if before == after {
        return Ok(None);
    }
    if before.marking != after.marking || before.service != after.service || before.reserved != after.reserved
    {
        return profile_change(number, before, after).map(Some);
    }
    let same = FlowSpec { transport: before.transport.clone(), ..after.clone() };
    let change = match (&before.transport, &after.transport) {
        _ if same != *before => None,
        (TransportSpec::Tcp(tcp), TransportSpec::Tcp(next)) if before.population.is_none() => {
            control_change(number, tcp, next)
        }
        (TransportSpec::Udp(udp), TransportSpec::Udp(next)) => {
            let same = UdpParams { rate: udp.rate, ..next.clone() };
            (same == *udp).then_some(Change::Flow(number, next))
        }
        _ => None,
    };
    change.map(Some).ok_or_else(|| Refused::Flow { flow: after.name.clone() })
}

/// Returns the change of a congestion control that is implemented outside, if nothing but its parameters
/// differs.
fn control_change<'a>(number: usize, before: &TcpParams, after: &'a TcpParams) -> Option<Change<'a>> {
    let same = TcpParams { congestion: before.congestion.clone(), ..after.clone() };
    let (class, changed) = before.congestion.0.foreign().zip(after.congestion.0.foreign())?;
    let is_same = same == *before && (&class.class, &class.needs) == (&changed.class, &changed.needs);
    is_same.then_some(Change::Control(number, changed))
}

/// Returns the change of the profile of a flow, its own or a shared one.
fn profile_change<'a>(number: usize, before: &FlowSpec, after: &'a FlowSpec) -> Result<Change<'a>, Refused> {
    let FlowSpec { marking, service, reserved, .. } = before.clone();
    let same = FlowSpec { marking, service, reserved, ..after.clone() };
    if same != *before || std::mem::discriminant(&before.marking) != std::mem::discriminant(&after.marking) {
        return Err(Refused::Flow { flow: after.name.clone() });
    }
    let knows = match &after.transport {
        _ if after.population.is_some() => Some("the flows of a population get it when they begin"),
        _ if after.path.is_some() => Some("the window control of a path may know it"),
        TransportSpec::Tcp(tcp) if tcp.control().info().reads_reserved_rate => {
            Some("its congestion control knows it")
        }
        _ => None,
    };
    if let (Some(reason), true) = (knows, before.reserved != after.reserved) {
        let owner = format!("flow `{}`", after.name);
        let problem = format!("the profile's rate cannot change during a run for {owner}: {reason}");
        return Err(Refused::Profile { owner, problem });
    }
    Ok(Change::Retuned(Retuned::Profile(number, after)))
}

//! Window controls of label-switched paths: the simulator's part.

use perhop_core::control::{Message, Steering, WindowSource};
use perhop_core::{Duration, Instant, Rng};

use crate::control::{Channels, Destination};
use crate::flow::Flow;
use crate::network::{Network, TransportSpec};

/// The window controls of all paths that have one, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowControls(Vec<Control>);

#[derive(Clone, Debug)]
struct Control {
    steering: Steering,
    /// The channels to the queues of the control's path.
    queues: Vec<usize>,
    /// Whether the control reads the windows at the senders.
    reads_senders: bool,
}

/// What one sample of the windows decides.
pub(crate) struct Decision {
    /// For each flow, the message for its meter.
    pub(crate) shares: Vec<(usize, Message)>,
    /// Messages to the queues of the path, each with its channel.
    pub(crate) messages: Vec<(usize, Message)>,
}

impl WindowControls {
    /// Puts a control at the ingress of each path that has one, and opens its channels.
    pub(crate) fn new(network: &Network, seed: u64, flows: &mut [Flow], channels: &mut Channels) -> Self {
        let mut controls = Vec::new();
        for (path, spec) in network.paths.iter().enumerate() {
            let Some(control) = &spec.control else { continue };
            let members: Vec<usize> = (0..flows.len())
                .filter(|&flow| network.flows[flow].path == Some(path))
                .filter(|&flow| matches!(network.flows[flow].transport, TransportSpec::Tcp(_)))
                .collect();
            for (member, &flow) in members.iter().enumerate() {
                flows[flow].set_control(controls.len(), member);
            }
            let rates = members.iter().map(|&flow| (flow, network.flows[flow].reserved));
            let rng = Rng::stream(seed, &format!("paths/{}/control", spec.name));
            let steering = Steering::new(control.clone(), spec.label, rates, rng);
            // Messages take the propagation delay from the ingress to a queue.
            let mut distance = Duration::ZERO;
            let mut queues = Vec::new();
            for &link in &spec.forward {
                queues.push(channels.open(Destination::Queue { link, label: spec.label }, distance));
                distance = distance + network.links[link].delay;
            }
            let reads_senders = control.window == WindowSource::Sender;
            controls.push(Control { steering, queues, reads_senders });
        }
        Self(controls)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the control of this number, as its path's packets and ACKs pass it.
    pub(crate) fn steering(&mut self, control: usize) -> &mut Steering {
        &mut self.0[control].steering
    }

    pub(crate) fn reads_senders(&self, control: usize) -> bool {
        self.0[control].reads_senders
    }

    /// Returns the next time at which a control samples the windows.
    pub(crate) fn next(&self, control: usize) -> Instant {
        self.0[control].steering.next()
    }

    /// Has a control sample the windows; `windows` knows the congestion windows of the flows that send.
    pub(crate) fn sample(
        &mut self,
        control: usize,
        now: Instant,
        windows: impl Fn(usize) -> Option<f64>,
    ) -> Decision {
        let Control { steering, queues, .. } = &mut self.0[control];
        let decision = steering.sample(now, windows);
        let sent = queues.iter().filter(|_| !steering.loses());
        let messages = sent.map(|&channel| (channel, decision.windows)).collect();
        Decision { shares: decision.shares, messages }
    }

    /// Returns a flow's window in packets as its path's control last sampled it; `None` without a control.
    pub(crate) fn seen(&self, flow: &Flow) -> Option<f64> {
        flow.control().map(|(control, member)| self.0[control].steering.seen(member))
    }

    /// Returns for each control the round trip of its path as last measured.
    pub(crate) fn round_trips(&self) -> impl Iterator<Item = Option<Duration>> {
        self.0.iter().map(|control| control.steering.round_trip())
    }
}

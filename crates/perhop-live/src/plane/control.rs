//! Window control of label-switched paths: what the ingress reads of TCP, and the messages to markers and
//! queues.

use std::collections::VecDeque;

use perhop_core::control::{Message, Steering};
use perhop_core::{Duration, Instant, Rng};

use super::agenda::{Event, Kind};
use super::{Frame, Plane, RouteEntry};
use crate::spec::{ControlSpec, Hop};
use crate::windows::Segments;
use crate::wire::Fields;

/// The window control at the ingress of one path.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) steering: Steering,
    /// For each flow, how its byte numbers count segments, and its meter.
    members: Vec<(Segments, Option<usize>)>,
    /// Channels to the queues of the path.
    channels: Vec<usize>,
}

/// Carries the messages of one window control to one queue, in order.
#[derive(Debug)]
pub(super) struct Channel {
    link: usize,
    label: u32,
    delay: Duration,
    in_transit: VecDeque<(Instant, Message)>,
}

impl Control {
    /// Returns the control of a path; adds its channels to the list of all channels.
    pub(super) fn new(spec: ControlSpec, seed: u64, channels: &mut Vec<Channel>) -> Self {
        let members = spec.members.iter().map(|member| (member.flow.0 as usize, member.rate));
        let rng = Rng::stream(seed, &format!("paths/{}/control", spec.name));
        let steering = Steering::new(spec.control, spec.label, members, rng);
        let first = channels.len();
        channels.extend(spec.links.into_iter().map(|(link, delay)| Channel {
            link,
            label: spec.label,
            delay,
            in_transit: VecDeque::new(),
        }));
        let members = spec.members.iter().map(|member| (Segments::new(member.segment), member.meter));
        Self { steering, members: members.collect(), channels: (first..channels.len()).collect() }
    }
}

impl Plane {
    /// Returns the number of the segment that a packet carries or asks for, if its path has a window control.
    pub(super) fn segment_of(&mut self, frame: &Frame, fields: &Fields) -> Option<u32> {
        let tcp = fields.tcp.filter(|_| !self.controls.is_empty())?;
        for entry in &self.routes[frame.step as usize..] {
            let number = match *entry {
                RouteEntry::Hop(Hop::Data(control, member)) => {
                    self.controls[control].members[member].0.on_data(&tcp)
                }
                RouteEntry::Hop(Hop::Ack(control, member)) => {
                    self.controls[control].members[member].0.on_ack(&tcp)
                }
                RouteEntry::Hop(_) => continue,
                RouteEntry::Leave(_) => return None,
            };
            return number;
        }
        None
    }

    pub(super) fn schedule_sample(&mut self, number: usize) {
        let at = self.controls[number].steering.next();
        self.agenda.push(Event::of(Kind::Sample, at, number));
    }

    /// Samples the windows of the flows of a control's path, and sends messages to their meters and to the
    /// path's queues.
    pub(super) fn sample_windows(&mut self, number: usize, now: Instant) {
        let Self { controls, meters, channels, agenda, windows, .. } = self;
        let Control { steering, members, channels: to_queues } = &mut controls[number];
        let decision = steering.sample(now, |flow| windows.get(flow));
        for (flow, message) in &decision.shares {
            let member = steering.member_of(*flow);
            if let Some(meter) = member.and_then(|member| members[member].1) {
                meters[meter].conditioner.on_message(message);
            }
        }
        for &number in &*to_queues {
            if steering.loses() {
                continue;
            }
            let channel = &mut channels[number];
            let at = now + channel.delay;
            if channel.in_transit.is_empty() {
                agenda.push(Event::of(Kind::Message, at, number));
            }
            channel.in_transit.push_back((at, decision.windows));
        }
        self.schedule_sample(number);
    }

    /// Hands the first message of a channel to its queue.
    pub(super) fn receive_message(&mut self, number: usize) {
        let channel = &mut self.channels[number];
        let Some((_, message)) = channel.in_transit.pop_front() else { return };
        let (link, label) = (channel.link, channel.label);
        if let Some(&(next, _)) = channel.in_transit.front() {
            self.agenda.push(Event::of(Kind::Message, next, number));
        }
        self.links[link].port.on_message(label, &message);
    }
}

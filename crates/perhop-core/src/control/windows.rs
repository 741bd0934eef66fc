//! Window control of a label-switched path: each interval, the windows of its flows decide how their markers at the
//! ingress mark, and the queues along the path hear of their sum (Bouras & Sevasti, sections 3 and 4).
//!
//! ## Deviations
//! The paper has contracted flows only. Best-effort TCP on the path has no part in the marking rule: with its window in the
//! sum of equation 3, but no rate in the other sum, every contracted flow would be marked IN beyond its contract. Its
//! packets fill the same queues, so the sum that these hear of (equation 4) counts its window, too.
//! `best_effort_has_no_part_in_marks_but_in_queues` shows both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Message;
use crate::meter::twam::{Reading, shares};
use crate::{Bitrate, Duration, Instant, Probability, Rng};

/// Where the ingress knows the flows' windows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowSource {
    /// The sender's own congestion window: what the paper assumes, and no real router can see.
    #[default]
    Sender,
    /// The ingress's own estimate: one past the highest segment it has seen, less what acknowledgements that it has seen ask
    /// for next.
    InFlight,
    /// The packets of the flow that passed the ingress in the last interval.
    Passed,
}

/// How a path's flows are controlled by their windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowControl {
    /// How often the windows are looked at: a small number of the path's round-trip times.
    pub interval: Duration,
    /// Where the windows are known from.
    #[serde(default)]
    pub window: WindowSource,
    /// How the denominator of the marking rule is read.
    #[serde(default)]
    pub reading: Reading,
    /// The probability that a message to a queue is lost on its way; the queue then goes on with what it heard last.
    #[serde(default)]
    pub loss: Probability,
}

/// The window control of one path at work.
#[derive(Clone, Debug)]
pub struct Steering {
    spec: WindowControl,
    /// The label of the path.
    label: u32,
    /// When it next looks.
    next: Instant,
    members: Vec<Member>,
    /// Looks so far.
    looks: u64,
    rng: Rng,
}

/// A flow of the path, as the ingress sees it.
#[derive(Clone, Debug)]
struct Member {
    flow: usize,
    rate: f64,
    /// One past the highest segment seen, and the segment that acknowledgements ask for next. They count on from zero after the
    /// last number, as those of a transport do.
    sent: u32,
    acked: u32,
    /// Packets seen since the last look.
    passed: u32,
    /// The window by the last look, in packets.
    window: f64,
}

/// What one look decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// For each flow, what its marker is told.
    pub shares: Vec<(usize, Message)>,
    /// What the queues along the path are told.
    pub windows: Message,
}

impl Steering {
    /// Nothing seen yet; `members` are the flows and their contracted rates, if they have one.
    pub fn new(
        spec: WindowControl,
        label: u32,
        members: impl IntoIterator<Item = (usize, Option<Bitrate>)>,
        rng: Rng,
    ) -> Self {
        let next = Instant::ZERO + spec.interval;
        let member = |(flow, rate): (usize, Option<Bitrate>)| Member {
            flow,
            rate: rate.map_or(0.0, |rate| rate.as_bps() as f64),
            sent: 0,
            acked: 0,
            passed: 0,
            window: 0.0,
        };
        Self { spec, label, next, members: members.into_iter().map(member).collect(), looks: 0, rng }
    }

    /// When it next looks.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The ingress sees a data packet.
    pub fn on_data(&mut self, member: usize, sequence: u32) {
        let member = &mut self.members[member];
        member.sent = later(member.sent, sequence.wrapping_add(1));
        member.passed += 1;
    }

    /// The ingress sees an acknowledgement that asks for the segment `expected` next.
    pub fn on_ack(&mut self, member: usize, expected: u32) {
        let member = &mut self.members[member];
        member.acked = later(member.acked, expected);
    }

    /// The place of a flow among the path's.
    pub fn member_of(&self, flow: usize) -> Option<usize> {
        self.members.iter().position(|member| member.flow == flow)
    }

    /// Each flow and its window by the last look, in packets.
    pub fn all_seen(&self) -> impl Iterator<Item = (usize, f64)> {
        self.members.iter().map(|member| (member.flow, member.window))
    }

    /// The window of a flow by the last look, in packets.
    pub fn seen(&self, member: usize) -> f64 {
        self.members[member].window
    }

    /// Looks at the windows; `senders` knows the congestion windows of those flows that send.
    pub fn look(&mut self, now: Instant, senders: impl Fn(usize) -> Option<f64>) -> Decision {
        for member in &mut self.members {
            let passed = std::mem::take(&mut member.passed);
            let sending = senders(member.flow);
            member.window = match self.spec.window {
                WindowSource::Sender => sending.unwrap_or(0.0),
                WindowSource::InFlight => f64::from(ahead(member.sent, member.acked).max(0)),
                WindowSource::Passed => f64::from(passed),
            };
        }
        let contracted = || self.members.iter().filter(|member| member.rate > 0.0);
        let rates: Vec<f64> = contracted().map(|member| member.rate).collect();
        let windows: Vec<f64> = contracted().map(|member| member.window).collect();
        let told = shares(&rates, &windows, self.spec.reading).into_iter().map(Message::Share);
        self.looks += 1;
        self.next = now + self.spec.interval;
        let packets = self.members.iter().map(|member| member.window).sum();
        Decision {
            shares: contracted().map(|member| member.flow).zip(told).collect(),
            windows: Message::Windows { path: self.label, number: self.looks, packets },
        }
    }

    /// Whether the next message to a queue is lost.
    pub fn loses(&mut self) -> bool {
        self.rng.chance(self.spec.loss.get())
    }
}

/// The later of two numbers that may have begun again from zero (RFC 1982).
fn later(one: u32, other: u32) -> u32 {
    if ahead(other, one) > 0 { other } else { one }
}

/// How far one number lies ahead of another.
fn ahead(one: u32, other: u32) -> i32 {
    one.wrapping_sub(other).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(window: &str) -> Steering {
        let spec = format!(r#"{{"interval": "40ms", "window": "{window}"}}"#);
        let rates = ["1Mbps", "3Mbps", "5Mbps"].map(|rate| rate.parse().unwrap());
        let members = rates.into_iter().enumerate().map(|(n, rate)| (10 + n, Some(rate)));
        Steering::new(serde_json::from_str(&spec).unwrap(), 7, members, Rng::stream(1, "control"))
    }

    fn told(decision: &Decision) -> Vec<f64> {
        let share = |message: &Message| match message {
            Message::Share(share) => (share * 1000.0).round() / 1000.0,
            _ => f64::NAN,
        };
        decision.shares.iter().map(|(_, message)| share(message)).collect()
    }

    #[test]
    fn equation_3_from_the_senders_windows() {
        let mut control = control("sender");
        let at = control.next();
        assert_eq!(at, Instant::from_nanos(40_000_000));
        let decision = control.look(at, |flow| Some([5.0, 10.0, 20.0][flow - 10]));
        assert_eq!(told(&decision), [0.778, 1.0, 0.972]);
        assert_eq!(decision.windows, Message::Windows { path: 7, number: 1, packets: 35.0 });
        assert_eq!(control.next(), Instant::from_nanos(80_000_000));
        let decision = control.look(control.next(), |flow| (flow != 12).then_some(6.0));
        assert_eq!(told(&decision), [0.5, 1.0, 1.0], "who does not send has no part");
        assert_eq!(decision.windows, Message::Windows { path: 7, number: 2, packets: 12.0 });
    }

    #[test]
    fn best_effort_has_no_part_in_marks_but_in_queues() {
        let mut control = control("sender");
        control.members[1].rate = 0.0;
        let decision = control.look(Instant::ZERO, |flow| Some([30.0, 50.0, 20.0][flow - 10]));
        // Contracts of 1 and 5 share 50 packets: 8.3 of the first one's 30.
        assert_eq!(told(&decision), [0.278, 1.0]);
        assert_eq!(decision.shares.iter().map(|(flow, _)| *flow).collect::<Vec<_>>(), [10, 12]);
        assert_eq!(decision.windows, Message::Windows { path: 7, number: 1, packets: 100.0 });
    }

    #[test]
    fn the_ingress_counts_what_is_in_flight() {
        let mut control = control("in-flight");
        (0..8).for_each(|sequence| control.on_data(0, sequence));
        control.on_ack(0, 5);
        control.on_data(0, 5); // sent again
        control.on_ack(0, 4); // overtaken
        control.on_data(2, 0);
        control.on_ack(1, 7); // of segments that passed before anybody looked
        control.look(Instant::ZERO, |_| None);
        assert_eq!([0, 1, 2].map(|member| control.seen(member)), [3.0, 0.0, 1.0]);
    }

    #[test]
    fn numbers_begin_again_after_the_last() {
        let mut control = control("in-flight");
        control.members[0].sent = u32::MAX - 1;
        control.members[0].acked = u32::MAX - 2;
        for sequence in [u32::MAX - 1, u32::MAX, 0, 1] {
            control.on_data(0, sequence);
        }
        control.on_ack(0, u32::MAX);
        control.look(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 3.0);
        control.on_ack(0, 2);
        control.look(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 0.0);
    }

    #[test]
    fn the_ingress_counts_what_passed() {
        let mut control = control("passed");
        (0..8).for_each(|sequence| control.on_data(0, sequence));
        control.look(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 8.0);
        control.look(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 0.0);
    }
}

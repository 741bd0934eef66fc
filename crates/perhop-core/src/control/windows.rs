//! Window control of a label-switched path: each interval, the windows of its flows decide how their markers
//! at the ingress mark, and the queues along the path receive their sum (Bouras & Sevasti, sections 3 and 4).
//!
//! The interval is `alpha RTT` with alpha in {1, 2, 3, ...} (section 3), either given or "according to the
//! RTT measured at the specific LSP" (section 5.2). The paper does not say how the ingress measures it. Here
//! the ingress times one segment of each flow at a time, from when the segment passes until an
//! acknowledgement that covers it passes, and never one that was sent twice (Karn's algorithm, RFC 6298
//! section 3). The round trip of an interval is the mean of the samples of all flows since the last sampling,
//! or the previous mean where there is no new one. It begins and ends at the ingress: it contains the queues
//! along the path, and not what lies between the senders and the ingress.
//!
//! ## Deviations
//! The paper has contracted flows only. Best-effort TCP on the path has no part in the marking rule: with its
//! window in the sum of equation 3, but no rate in the other sum, every contracted flow would be marked IN
//! beyond its contract. Its packets fill the same queues, so the sum that the queues receive (equation 4)
//! counts its window, too. `best_effort_has_no_part_in_marks_but_in_queues` shows both.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Message;
use super::shares::{Reading, shares};
use crate::units::{TIME, UnitError, text_serde};
use crate::{Bitrate, Duration, Instant, Probability, Rng};

/// The sampling interval before the first measured round-trip time, and the shortest interval afterwards.
const UNMEASURED: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(1);

/// How often the windows of a path are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleInterval {
    /// A fixed time.
    Fixed(Duration),
    /// A number of the round trips that the ingress measures on the path.
    Measured,
}

impl SampleInterval {
    /// When the windows are first sampled.
    pub fn first(self) -> Duration {
        match self {
            Self::Fixed(interval) => interval,
            Self::Measured => UNMEASURED,
        }
    }

    /// The fixed time, or the shortest that a measured one can be.
    pub fn shortest(self) -> Duration {
        match self {
            Self::Fixed(interval) => interval,
            Self::Measured => SHORTEST,
        }
    }
}

impl FromStr for SampleInterval {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text == "measured" {
            return Ok(Self::Measured);
        }
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return Err(UnitError::new(format!(
                "unknown interval `{text}`, expected `measured` or a time such as 40ms"
            )));
        }
        let fixed = text.parse().map_err(|problem| UnitError::new(format!("{problem}, or `measured`")))?;
        Ok(Self::Fixed(fixed))
    }
}

impl fmt::Display for SampleInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(interval) => interval.fmt(f),
            Self::Measured => f.write_str("measured"),
        }
    }
}

text_serde!(SampleInterval, "a time or `measured`", format!("^({TIME}|measured)$"), "40ms");

/// Where the ingress gets the flows' windows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowSource {
    /// The sender's congestion window, as the paper assumes. No real router can see it.
    #[default]
    Sender,
    /// An estimate by the ingress: the segments from the one that the newest acknowledgement asks for to the
    /// highest one seen.
    InFlight,
    /// The packets of the flow that passed the ingress in the last interval.
    Passed,
}

/// Window control of a path: its queues and markers follow the congestion windows of its flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowControl {
    /// How often the windows are sampled: a small number of the path's round-trip times, or `measured`, which
    /// follows the round-trip time that the ingress measures from each segment to its acknowledgement.
    pub interval: SampleInterval,
    /// With `interval = "measured"`: how many measured round-trip times lie between two samples (`alpha`).
    /// Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<NonZeroU32>,
    /// Where the window sizes come from.
    #[serde(default)]
    pub window: WindowSource,
    /// How the denominator of the marking equation is interpreted.
    #[serde(default)]
    pub reading: Reading,
    /// The probability that a message to a queue is lost. The queue then keeps the last message that it
    /// received.
    #[serde(default)]
    pub loss: Probability,
}

/// The window control of one path at work.
#[derive(Clone, Debug)]
pub struct Steering {
    spec: WindowControl,
    /// The label of the path.
    label: u32,
    /// When it samples next.
    next: Instant,
    members: Vec<Member>,
    /// Samples so far.
    sampled: u64,
    /// The round trip as last measured.
    round_trip: Option<Duration>,
    /// Sum and number of the round trips measured since the last sample.
    samples: (Duration, u64),
    rng: Rng,
}

/// A flow of the path, as the ingress sees it.
#[derive(Clone, Debug)]
struct Member {
    flow: usize,
    rate: f64,
    /// One past the highest segment seen, and the segment that acknowledgements ask for next. They count on
    /// from zero after the last number, as those of a transport do.
    sent: u32,
    acked: u32,
    /// The segment whose round trip is being measured, and when it passed.
    timed: Option<(u32, Instant)>,
    /// Packets seen since the last sample.
    passed: u32,
    /// The window at the last sample, in packets.
    window: f64,
}

/// What follows from one sample of the windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// For each flow, the message to its marker.
    pub shares: Vec<(usize, Message)>,
    /// The message to the queues along the path.
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
        let next = Instant::ZERO + spec.interval.first();
        let member = |(flow, rate): (usize, Option<Bitrate>)| Member {
            flow,
            rate: rate.map_or(0.0, |rate| rate.as_bps() as f64),
            sent: 0,
            acked: 0,
            timed: None,
            passed: 0,
            window: 0.0,
        };
        let members = members.into_iter().map(member).collect();
        Self { spec, label, next, members, sampled: 0, round_trip: None, samples: (Duration::ZERO, 0), rng }
    }

    /// When it samples next.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The ingress sees a data packet.
    pub fn on_data(&mut self, member: usize, sequence: u32, now: Instant) {
        let member = &mut self.members[member];
        let end = sequence.wrapping_add(1);
        if self.spec.interval == SampleInterval::Measured {
            if ahead(end, member.sent) <= 0 {
                // It was sent before. Which of the two an acknowledgement is for, nobody knows.
                member.timed = None;
            } else if member.timed.is_none() {
                member.timed = Some((sequence, now));
            }
        }
        member.sent = later(member.sent, end);
        member.passed += 1;
    }

    /// The ingress sees an acknowledgement that asks for the segment `expected` next.
    pub fn on_ack(&mut self, member: usize, expected: u32, now: Instant) {
        let member = &mut self.members[member];
        member.acked = later(member.acked, expected);
        if let Some((segment, passed)) = member.timed
            && ahead(expected, segment) > 0
        {
            member.timed = None;
            let (sum, count) = self.samples;
            self.samples = (sum + now.since(passed), count + 1);
        }
    }

    /// The path's round trip as last measured, if it is measured and has been.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// The time from this sample to the next, from the round trips measured since the last one.
    fn interval(&mut self) -> Duration {
        let SampleInterval::Measured = self.spec.interval else { return self.spec.interval.first() };
        let (sum, count) = std::mem::take(&mut self.samples);
        if let Some(mean) = sum.as_nanos().checked_div(count) {
            self.round_trip = Some(Duration::from_nanos(mean));
        }
        let multiple = self.spec.round_trips.map_or(1, |multiple| u64::from(multiple.get()));
        let measured = self.round_trip.map(|trip| trip.as_nanos().saturating_mul(multiple));
        measured.map_or(UNMEASURED, |nanos| Duration::from_nanos(nanos).clamp(SHORTEST, Duration::AGES))
    }

    /// The place of a flow among the path's.
    pub fn member_of(&self, flow: usize) -> Option<usize> {
        self.members.iter().position(|member| member.flow == flow)
    }

    /// Each flow and its window at the last sample, in packets.
    pub fn all_seen(&self) -> impl Iterator<Item = (usize, f64)> {
        self.members.iter().map(|member| (member.flow, member.window))
    }

    /// The window of a flow at the last sample, in packets.
    pub fn seen(&self, member: usize) -> f64 {
        self.members[member].window
    }

    /// Samples the windows; `senders` returns the congestion window of a flow that sends.
    pub fn sample(&mut self, now: Instant, senders: impl Fn(usize) -> Option<f64>) -> Decision {
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
        let messages = shares(&rates, &windows, self.spec.reading).into_iter().map(Message::Share);
        let shares = contracted().map(|member| member.flow).zip(messages).collect();
        let packets = self.members.iter().map(|member| member.window).sum();
        self.sampled += 1;
        self.next = now + self.interval();
        Decision { shares, windows: Message::Windows { path: self.label, number: self.sampled, packets } }
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

    fn shares_in(decision: &Decision) -> Vec<f64> {
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
        let decision = control.sample(at, |flow| Some([5.0, 10.0, 20.0][flow - 10]));
        assert_eq!(shares_in(&decision), [0.778, 1.0, 0.972]);
        assert_eq!(decision.windows, Message::Windows { path: 7, number: 1, packets: 35.0 });
        assert_eq!(control.next(), Instant::from_nanos(80_000_000));
        let decision = control.sample(control.next(), |flow| (flow != 12).then_some(6.0));
        assert_eq!(shares_in(&decision), [0.5, 1.0, 1.0], "who does not send has no part");
        assert_eq!(decision.windows, Message::Windows { path: 7, number: 2, packets: 12.0 });
    }

    #[test]
    fn best_effort_has_no_part_in_marks_but_in_queues() {
        let mut control = control("sender");
        control.members[1].rate = 0.0;
        let decision = control.sample(Instant::ZERO, |flow| Some([30.0, 50.0, 20.0][flow - 10]));
        // Contracts of 1 and 5 share 50 packets: 8.3 of the first one's 30.
        assert_eq!(shares_in(&decision), [0.278, 1.0]);
        assert_eq!(decision.shares.iter().map(|(flow, _)| *flow).collect::<Vec<_>>(), [10, 12]);
        assert_eq!(decision.windows, Message::Windows { path: 7, number: 1, packets: 100.0 });
    }

    #[test]
    fn the_ingress_counts_what_is_in_flight() {
        let mut control = control("in-flight");
        (0..8).for_each(|sequence| control.on_data(0, sequence, Instant::ZERO));
        control.on_ack(0, 5, Instant::ZERO);
        control.on_data(0, 5, Instant::ZERO); // sent again
        control.on_ack(0, 4, Instant::ZERO); // overtaken
        control.on_data(2, 0, Instant::ZERO);
        control.on_ack(1, 7, Instant::ZERO); // of segments that passed before monitoring began
        control.sample(Instant::ZERO, |_| None);
        assert_eq!([0, 1, 2].map(|member| control.seen(member)), [3.0, 0.0, 1.0]);
    }

    #[test]
    fn numbers_begin_again_after_the_last() {
        let mut control = control("in-flight");
        control.members[0].sent = u32::MAX - 1;
        control.members[0].acked = u32::MAX - 2;
        for sequence in [u32::MAX - 1, u32::MAX, 0, 1] {
            control.on_data(0, sequence, Instant::ZERO);
        }
        control.on_ack(0, u32::MAX, Instant::ZERO);
        control.sample(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 3.0);
        control.on_ack(0, 2, Instant::ZERO);
        control.sample(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 0.0);
    }

    #[test]
    fn the_ingress_counts_what_passed() {
        let mut control = control("passed");
        (0..8).for_each(|sequence| control.on_data(0, sequence, Instant::ZERO));
        control.sample(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 8.0);
        control.sample(Instant::ZERO, |_| None);
        assert_eq!(control.seen(0), 0.0);
    }

    fn ms(count: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(count)
    }

    fn measuring(round_trips: &str) -> Steering {
        let spec = format!(r#"{{"interval": "measured"{round_trips}}}"#);
        let members = [(10, None), (11, None)];
        Steering::new(serde_json::from_str(&spec).unwrap(), 7, members, Rng::stream(1, "control"))
    }

    #[test]
    fn the_interval_follows_the_measured_round_trip() {
        let mut control = measuring("");
        assert_eq!(control.next(), ms(100), "nothing is measured yet");
        // One flow's first segment takes 48 ms, its second is not timed beside it; the other flow's takes 60
        // ms.
        control.on_data(0, 0, ms(10));
        control.on_data(0, 1, ms(11));
        control.on_data(1, 0, ms(20));
        control.on_ack(0, 1, ms(58));
        control.on_ack(0, 2, ms(59));
        control.on_ack(1, 1, ms(80));
        control.sample(ms(100), |_| None);
        assert_eq!(control.round_trip(), Some(Duration::from_millis(54)), "(48 + 60) / 2");
        assert_eq!(control.next(), ms(154));
        // A sample of 40 ms alone; no sample keeps it.
        control.on_data(0, 2, ms(105));
        control.on_ack(0, 3, ms(145));
        control.sample(ms(154), |_| None);
        assert_eq!(control.next(), ms(194));
        control.sample(ms(194), |_| None);
        assert_eq!(control.next(), ms(234));
    }

    #[test]
    fn no_round_trip_is_measured_from_a_segment_that_was_sent_twice() {
        let mut control = measuring("");
        control.on_data(0, 0, ms(0));
        control.on_data(0, 0, ms(30)); // sent again
        control.on_ack(0, 1, ms(40));
        control.sample(ms(100), |_| None);
        assert_eq!((control.round_trip(), control.next()), (None, ms(200)));
        // A later segment is timed; an acknowledgement that does not cover it ends nothing.
        control.on_data(0, 1, ms(110));
        control.on_ack(0, 1, ms(120));
        control.on_ack(0, 2, ms(150));
        control.sample(ms(200), |_| None);
        assert_eq!(control.next(), ms(240));
    }

    #[test]
    fn alpha_round_trips_lie_between_looks() {
        let mut control = measuring(r#", "round-trips": 3"#);
        control.on_data(0, 0, ms(0));
        control.on_ack(0, 1, ms(50));
        control.sample(ms(100), |_| None);
        assert_eq!(control.next(), ms(250));
        assert!(
            serde_json::from_str::<WindowControl>(r#"{"interval": "measured", "round-trips": 0}"#).is_err()
        );
    }

    #[test]
    fn a_round_trip_of_almost_nothing_is_looked_at_every_millisecond() {
        let mut control = measuring("");
        control.on_data(0, 0, ms(99));
        control.on_ack(0, 1, Instant::from_nanos(99_000_100));
        control.sample(ms(100), |_| None);
        assert_eq!((control.round_trip(), control.next()), (Some(Duration::from_nanos(100)), ms(101)));
    }

    #[test]
    fn a_flow_has_its_place_among_the_members_and_its_window() {
        let mut control = control("sender");
        assert_eq!(
            [10, 11, 12, 13, 0].map(|flow| control.member_of(flow)),
            [Some(0), Some(1), Some(2), None, None]
        );
        control.sample(Instant::ZERO, |flow| Some(flow as f64));
        assert_eq!(control.all_seen().collect::<Vec<_>>(), [(10, 10.0), (11, 11.0), (12, 12.0)]);
    }

    #[test]
    fn messages_are_lost_with_the_probability_that_is_given() {
        let lost = |loss: f64| {
            let spec = format!(r#"{{"interval": "40ms", "loss": {loss}}}"#);
            let spec = serde_json::from_str(&spec).unwrap();
            let mut control = Steering::new(spec, 7, [(10, None)], Rng::stream(1, "control"));
            (0..1000).filter(|_| control.loses()).count()
        };
        assert_eq!([lost(0.0), lost(1.0)], [0, 1000]);
        assert!((250..350).contains(&lost(0.3)), "{}", lost(0.3));
    }

    #[test]
    fn an_interval_has_a_first_and_a_shortest_length() {
        let fixed = SampleInterval::Fixed(Duration::from_millis(40));
        assert_eq!([fixed.first(), fixed.shortest()], [Duration::from_millis(40); 2]);
        let measured = [SampleInterval::Measured.first(), SampleInterval::Measured.shortest()];
        assert_eq!(measured, [100, 1].map(Duration::from_millis));
    }

    #[test]
    fn an_interval_is_a_duration_or_measured() {
        for text in ["40ms", "measured"] {
            assert_eq!(text.parse::<SampleInterval>().unwrap().to_string(), text);
        }
        let problem = "measure".parse::<SampleInterval>().unwrap_err().to_string();
        assert_eq!(problem, "unknown interval `measure`, expected `measured` or a time such as 40ms");
    }

    #[test]
    fn a_fixed_interval_measures_nothing() {
        let mut control = control("in-flight");
        control.on_data(0, 0, ms(0));
        control.on_ack(0, 1, ms(25));
        control.sample(ms(40), |_| None);
        assert_eq!((control.round_trip(), control.next()), (None, ms(80)));
    }
}

//! What a scheduler guarantees to each of its classes while others send what they may.
//!
//! A [`Server`] is what the link, or a scheduler around this one, guarantees to all classes together. Its
//! curves are strict: in any time during which packets wait, at least so much is served. A scheduler declares
//! by [`Scheduler::guarantees`](super::Scheduler::guarantees) what is left of it for each class, from which
//! network calculus has delay and backlog ([`curves`](crate::curves)).

use std::fmt;

use super::FairTurns;
use crate::aqm::AqmParams;
use crate::curves::{Concave, Convex, Line, Nanobits, backlog, delay, delay_behind, nanobits};
use crate::{Bitrate, Bytes, Depth, Duration};

/// The arrivals of a class at most, and their packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Everything that comes; `None` if nothing bounds it.
    pub arrivals: Option<Concave>,
    /// The largest packet; zero if none comes.
    pub largest: Bytes,
    /// The smallest packet.
    pub smallest: Bytes,
    /// How many flows come; `u64::MAX` if any number may be under way at a time.
    pub flows: u64,
}

/// What serves the classes of a scheduler together.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The service in any time during which packets wait.
    pub strict: Convex,
    /// Service in the same times, of packets that go before one that waits begins to be sent.
    pub waits: Convex,
    /// The rate of the link, at which a packet is sent that has begun.
    pub rate: Bitrate,
    /// What the server may serve of a packet before this begins to be sent, as behind a token bucket: its
    /// tokens, or those that come while the packet before it is on the link; zero on a link.
    pub prepaid: Nanobits,
    /// Nothing around the scheduler takes any of the link.
    pub is_link: bool,
}

/// What a class is guaranteed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guarantee {
    /// The service of the class in any time during which its packets wait.
    pub strict: Option<Convex>,
    /// Service curves, each with its own reason, for what is served of the class before a packet of it begins
    /// to be sent; the packet itself is not part of it.
    pub waits: Vec<Convex>,
    /// No packet of the class waits longer before it begins to be sent.
    pub longest: Option<Duration>,
    /// A packet that is dropped in the end may stay in the queue for longer.
    pub outstays: bool,
    /// No more of the class waits, whatever follows from the rest.
    pub most: Option<Nanobits>,
    /// No packet of the class that the limit of the AQM lets in waits longer, where this does not follow from
    /// `strict`.
    pub by_limit: Option<Duration>,
    /// The arrivals of the class that are let in, where the scheduler polices it.
    pub admitted: Option<Concave>,
    /// The number of the queue: classes of one queue share its AQM.
    pub queue: usize,
    /// When that AQM drops.
    pub room: Room,
    /// The turns from which each of its flows is guaranteed something of its own.
    pub turns: Option<FairTurns>,
    /// How this follows, in order.
    pub steps: Vec<Step>,
}

/// When a queue drops packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The most that waits; `None` without a limit.
    pub limit: Option<Depth>,
    /// No packet is dropped that waits with no more than this, itself included; `None` if one may always be.
    pub spared: Option<Depth>,
    /// No packet is dropped, either, while it waits no longer than this; `None` if waiting is no reason.
    pub patience: Option<Duration>,
    /// What may drop packets whatever waits.
    pub because: Option<String>,
}

/// A step of a derivation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The action, in words.
    pub text: String,
    /// The formula with its numbers.
    pub formula: String,
    /// Where the formula is from.
    pub source: &'static str,
}

/// Why a class has no guarantee.
pub type Unbounded = String;

impl Step {
    /// Makes a step.
    pub fn new(text: impl Into<String>, formula: impl Into<String>, source: &'static str) -> Self {
        Self { text: text.into(), formula: formula.into(), source }
    }
}

impl Load {
    /// Returns the load of both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (ours, theirs) = (self.arrivals.as_ref(), other.arrivals.as_ref());
        let smallest = match (self.flows, other.flows) {
            (0, _) => other.smallest,
            (_, 0) => self.smallest,
            _ => self.smallest.min(other.smallest),
        };
        Self {
            arrivals: ours.zip(theirs).map(|(ours, theirs)| ours.plus(theirs)),
            largest: self.largest.max(other.largest),
            smallest,
            flows: self.flows.saturating_add(other.flows),
        }
    }
}

impl Room {
    /// Returns the most that may wait by the limit, where no packet is larger.
    pub fn most(&self, largest: Bytes) -> Option<Nanobits> {
        match self.limit? {
            Depth::Packets(u64::MAX) => None,
            Depth::Packets(packets) => Some(i128::from(packets).saturating_mul(nanobits(largest))),
            Depth::Bytes(bytes) => Some(nanobits(Bytes::new(bytes))),
        }
    }

    /// Returns the longest wait of a packet that the limit lets in, in order of arrival: it finds no more
    /// than the limit with itself, and a packet of this size in transmission.
    pub fn longest(&self, service: &Convex, largest: Bytes) -> Option<Duration> {
        service.time_of(self.most(largest)?.saturating_add(nanobits(largest)))
    }

    /// Returns whether a queue with these arrivals and this service always has room, where no packet is
    /// smaller.
    pub fn holds(&self, arrivals: &Concave, service: &Convex, smallest: Bytes) -> bool {
        let Some(most) = backlog(arrivals, service) else { return false };
        match self.spared {
            Some(Depth::Bytes(room)) => most <= nanobits(Bytes::new(room)),
            Some(Depth::Packets(room)) => most / nanobits(smallest).max(1) <= i128::from(room),
            None => false,
        }
    }

    /// Returns when a queue under this AQM drops packets, which is served at this rate.
    pub fn of(aqm: &AqmParams, rate: Bitrate) -> Self {
        let (limit, spared) = (aqm.limit(rate), aqm.spared(rate));
        let targets = aqm.delay_targets();
        let patience = targets.iter().map(|target| target.least_acting_delay).min();
        Self { limit, spared: spared.or(limit.filter(|_| patience.is_some())), patience, because: None }
    }
}

impl Server {
    /// Returns a link of this rate, whose serialization is rounded to nanoseconds.
    pub fn link(rate: Bitrate) -> Self {
        Self::over(Convex::rate_latency(rate, Duration::from_nanos(2)), rate)
    }

    /// Returns a link with this strict service curve.
    pub fn over(strict: Convex, rate: Bitrate) -> Self {
        Self { waits: strict.clone(), strict, rate, prepaid: 0, is_link: true }
    }

    /// Returns what is left while others go first that send no more than this in any time.
    #[must_use]
    pub fn beside(&self, first: &Concave) -> Self {
        let (strict, waits) = (self.strict.beside(first), self.waits.beside(first));
        Self { strict, waits, is_link: false, ..self.clone() }
    }

    /// Returns what is left to later queues, whose largest packet is `later`, behind arrivals that go first,
    /// while one packet of the size `under_way` may be in transmission. `None` if these take all of the link.
    pub(super) fn behind(&self, first: &Concave, later: Bytes, under_way: Bytes) -> Option<Self> {
        let (sent, less) = (self.sends_of(first, later)?, nanobits(under_way));
        Some(Self {
            strict: self.strict.beside(&sent).less(less),
            waits: self.waits.beside(first).less(less),
            is_link: false,
            ..self.clone()
        })
    }

    /// Returns what arrivals make of the server that it serves first, but for one packet of this size which
    /// may be under way: the most that they are sent in any time.
    pub fn sends_of(&self, first: &Concave, under_way: Bytes) -> Option<Concave> {
        first.through(&self.strict.less(nanobits(under_way)))
    }

    /// Returns what the server may serve of a packet of this size before this begins to be sent.
    pub(super) fn before_start(&self, size: Bytes) -> Nanobits {
        if self.prepaid == 0 { 0 } else { self.prepaid.max(nanobits(size)) }
    }

    /// Returns the guarantee of a class that has the server for itself.
    pub fn guarantee(&self, load: &Load) -> Guarantee {
        let own = self.before_start(load.smallest);
        Guarantee {
            strict: Some(self.strict.clone()),
            waits: vec![self.waits.less(own)],
            ..Guarantee::default()
        }
    }
}

impl Guarantee {
    /// Returns the longest that a packet of a class with this load waits before it begins to be sent; `None`
    /// without a bound. All that goes before it in its class has come before, and it has not.
    pub fn wait(&self, load: &Load) -> Option<Duration> {
        let arrivals = match (&load.arrivals, &self.admitted) {
            (Some(arrivals), Some(admitted)) => Some(arrivals.min(admitted)),
            (arrivals, admitted) => arrivals.clone().or_else(|| admitted.clone()),
        };
        let before = arrivals.map(|arrivals| arrivals.less(nanobits(load.smallest)));
        let by_curve =
            before.and_then(|before| self.waits.iter().filter_map(|curve| delay(&before, curve)).min());
        [by_curve, self.longest].into_iter().flatten().min()
    }
}

/// Writes what is left of a service beside what goes first, where one packet of this size may be under way.
pub(super) fn rest_of(service: &Convex, first: &Concave, under_way: Bytes) -> String {
    let first = if first.is_zero() { String::new() } else { format!(" − ({})", Arriving(first)) };
    let packet =
        if under_way.get() == 0 { String::new() } else { format!(" − {}", size(nanobits(under_way))) };
    format!("{}{first}{packet}", Serving(service))
}

/// Returns everything that comes to these classes together; `None` if nothing bounds one of them.
pub(super) fn together<'a>(loads: impl IntoIterator<Item = &'a Load>) -> Option<Concave> {
    let mut loads = loads.into_iter();
    loads.try_fold(Concave::zero(), |sum, load| Some(sum.plus(load.arrivals.as_ref()?)))
}

/// Returns the largest packet of these classes.
pub(super) fn largest<'a>(loads: impl IntoIterator<Item = &'a Load>) -> Bytes {
    loads.into_iter().map(|load| load.largest).max().unwrap_or_default()
}

/// Returns the guarantee of a class by its share, or by what the arrivals of all others leave of the server
/// from when it began to be busy, in whatever order these are served.
pub(super) fn shared(
    server: &Server,
    loads: &[Load],
    class: usize,
    (strict, waits): (Convex, Convex),
    room: Room,
    step: Step,
) -> Guarantee {
    let others = loads.iter().enumerate().filter(|&(other, _)| other != class).map(|(_, load)| load);
    let left = Server { strict, waits, is_link: false, ..server.clone() };
    let mut guarantee = left.guarantee(&loads[class]);
    if let Some(others) = together(others) {
        guarantee.waits.extend(server.beside(&others).guarantee(&loads[class]).waits);
    }
    guarantee.queue = class;
    guarantee.room = room;
    guarantee.steps.push(step);
    guarantee
}

/// Returns what packets of all classes together are guaranteed, in whatever order a scheduler serves them
/// that never rests while packets wait: none waits longer than a busy time lasts.
pub(super) fn in_any_order(server: &Server, loads: &[Load]) -> Result<Guarantee, Unbounded> {
    let all = together(loads).ok_or("the order of service is by flows, and the arrivals have no bound")?;
    let longest = delay_behind(0, &all, &server.strict).ok_or("more may come than the link serves")?;
    let step = Step::new(
        "in whatever order packets go, none waits longer than the link is busy without a pause",
        format!("β(t) ≥ α(t) from t = {} on", span(longest.as_nanos().into())),
        "Le Boudec & Thiran 2001, section 1.3.1",
    );
    Ok(Guarantee { longest: Some(longest), steps: vec![step], ..Guarantee::default() })
}

/// Returns what classes are guaranteed whose packets go in the order of their arrivals and these times after
/// them (earliest deadline first), from one queue under an AQM with this room.
///
/// In a busy time of packets that are due by its deadline, a packet waits for those of each class that came
/// so long before the deadline, and for one that is due later. Between two of the times after which another
/// class takes part, the arrivals together are concave.
pub(super) fn by_deadlines(
    deadlines: &[Duration],
    server: &Server,
    loads: &[Load],
    room: &Room,
) -> Vec<Result<Guarantee, Unbounded>> {
    let late = |class: usize, from: Duration| {
        let part = deadlines.iter().zip(loads).filter(|&(&deadline, _)| deadline <= from);
        // What is due later may be under way, if it came before.
        let later = deadlines.iter().zip(loads).filter(|&(&deadline, _)| deadline > from);
        let under_way = nanobits(largest(later.map(|(_, load)| load)));
        let sum = part.clone().try_fold(Concave::zero(), |sum, (&deadline, load)| {
            Some(sum.plus(&load.arrivals.as_ref()?.delayed(from - deadline)))
        })?;
        let (own, paid) = (nanobits(loads[class].smallest), server.before_start(loads[class].smallest));
        Some((delay(&sum.less(own), &server.waits.less(under_way + paid))?, from))
    };
    let guarantee = |class: usize| {
        let later = deadlines.iter().filter(|&&deadline| deadline >= deadlines[class]);
        let lateness: Option<Vec<_>> = later.map(|&from| late(class, from)).collect();
        let reason =
            || "the arrivals of both services together are not below the rate of the link".to_owned();
        // The wait of a packet that is due at `from` after the busy time began, and came `deadline` before.
        let waits =
            lateness.ok_or_else(reason)?.into_iter().map(|(until, from)| (until + deadlines[class]) - from);
        let longest = waits.max().unwrap_or_default();
        let step = Step::new(
            "earliest deadline first: the latest that any packet is behind its deadline",
            format!("d + Λ = {}", span(longest.as_nanos().into())),
            "Liebeherr, Wrege & Ferrari 1996, theorem 1",
        );
        Ok(Guarantee {
            longest: Some(longest),
            room: room.clone(),
            steps: vec![step],
            ..Guarantee::default()
        })
    };
    (0..loads.len()).map(guarantee).collect()
}

/// A curve of arrivals as a formula.
pub struct Arriving<'a>(pub &'a Concave);

/// A curve of service as a formula.
pub struct Serving<'a>(pub &'a Convex);

impl fmt::Display for Arriving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.lines().iter().rev().map(bucket).collect();
        match &lines[..] {
            [one] => f.write_str(one),
            several => write!(f, "min({})", several.join("; ")),
        }
    }
}

impl fmt::Display for Serving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.slopes().iter().map(rate_latency).collect();
        match &lines[..] {
            [] => f.write_str("0"),
            [one] => f.write_str(one),
            several => write!(f, "max({})", several.join("; ")),
        }
    }
}

fn bucket(line: &Line) -> String {
    if line.rate == 0 {
        size(line.amount)
    } else {
        format!("{} + {} · t", size(line.amount), bits(line.rate))
    }
}

fn rate_latency(line: &Line) -> String {
    let latency = crate::curves::divided_up(line.amount, line.rate);
    if latency < 1_000 {
        return format!("{} · t", bits(line.rate));
    }
    format!("{} · (t − {})", bits(line.rate), span(latency))
}

/// Writes a rate, such as `1.5 Mbit/s`.
pub fn bits(rate: i128) -> String {
    scaled(rate as f64, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")])
}

/// Writes an amount, such as `1500 B`.
pub fn size(amount: Nanobits) -> String {
    scaled(crate::curves::bytes(amount).get() as f64, &[(1e9, "GB"), (1e6, "MB"), (1e4, "kB"), (1.0, "B")])
}

/// Writes a time in nanoseconds, such as `1.2 ms`.
pub fn span(nanos: i128) -> String {
    scaled(nanos as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

/// Writes a number with four digits in the first unit that it reaches.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units.len() - 1;
    let place = units.iter().position(|(scale, _)| value >= *scale).unwrap_or(last);
    let (scale, unit) = units[place];
    let scale = if unit == "kB" { 1e3 } else { scale };
    let number = value / scale;
    let digits = [10.0, 100.0, 1000.0].iter().filter(|limit| number < **limit).count();
    let text = format!("{number:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

//! Disciplines within a discipline: which one takes a packet, and the classes, counters and AQMs of all of
//! them as one.

use super::queues::{Match, QueueKey, on_path};
use super::{AnyScheduler, ClassKey, Dequeued, Discipline, Retuning, SchedulerParams, below};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::matching::Matcher;
use crate::units::{UnitError, fixed};
use crate::{
    Bitrate, ClassCounters, Environment, Header, Instant, ManagedQueue, Occupancy, Packet, Reason, Streams,
};

/// A queue that is a discipline, as parameters have it.
pub(super) struct BranchParams<'a> {
    /// The key of its table.
    pub(super) key: String,
    pub(super) name: &'a str,
    pub(super) selector: Option<&'a Match>,
    /// The value of the table's key `queue`.
    pub(super) queue: &'a SchedulerParams,
}

impl<'a> BranchParams<'a> {
    pub(super) fn place(&self) -> QueueKey<'a> {
        QueueKey { key: self.key.clone(), name: self.name, selector: self.selector }
    }

    pub(super) fn queue_key(&self) -> String {
        format!("{}.queue", self.key)
    }

    /// Returns the classes of the branch: a single one has its name, several have their own names behind it.
    fn classes(&self) -> Vec<ClassKey> {
        let ours = || self.selector.map(|_| format!("{}.match", self.key));
        let classes = self.queue.class_keys();
        if let [_] = classes[..] {
            return vec![ClassKey { name: self.name.into(), key: ours() }];
        }
        let named = classes.into_iter().map(|ClassKey { name, key }| ClassKey {
            name: format!("{}/{name}", self.name),
            key: key.map(|key| below(&self.queue_key(), &key)).or_else(ours),
        });
        named.collect()
    }
}

/// See [`Scheduler::class_keys`](super::Scheduler::class_keys).
pub(super) fn classes_of(branches: &[BranchParams<'_>]) -> Vec<ClassKey> {
    branches.iter().flat_map(BranchParams::classes).collect()
}

/// See [`Scheduler::aqms`](super::Scheduler::aqms).
pub(super) fn aqms_of<'a>(branches: &[BranchParams<'a>], path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
    let (found, _) = on_path(branches.iter().map(|branch| (branch.selector, branch)), path);
    let aqms = |branch: &BranchParams<'a>| {
        let (key, aqms) = (branch.queue_key(), branch.queue.aqms(path));
        aqms.into_iter().map(move |(inner, aqm)| (below(&key, &inner), aqm))
    };
    found.into_iter().flat_map(aqms).collect()
}

/// Disciplines within a discipline.
#[derive(Clone, Debug)]
pub(super) struct Branches<P> {
    all: Vec<Branch<P>>,
    /// The name of each class, and the branch that it is of.
    classes: Vec<(String, usize)>,
    total: Occupancy,
    /// The branch of the last packet taken.
    serving: Option<usize>,
    /// The branch of the last packet that came.
    joined: usize,
}

#[derive(Clone, Debug)]
struct Branch<P> {
    name: String,
    takes: Matcher,
    queue: AnyScheduler<P>,
    /// The number of its first class.
    first: usize,
}

impl<P: Packet> Branches<P> {
    /// Returns empty disciplines; `rates` are those at which they are served.
    pub(super) fn new(
        params: &[BranchParams<'_>],
        rates: impl IntoIterator<Item = Bitrate>,
        streams: Streams<'_>,
    ) -> Self {
        let (mut all, mut classes) = (Vec::new(), Vec::new());
        for (params, rate) in params.iter().zip(rates) {
            let within = format!("{}/queues/{}", streams.path, params.name);
            // One alone is as it would be without anything around it.
            let path = if params.selector.is_none() && all.is_empty() { streams.path } else { &within };
            let queue = params.queue.clone().build(Environment { rate }, Streams { path, ..streams });
            let first = classes.len();
            classes.extend(params.classes().into_iter().map(|class| (class.name, all.len())));
            all.push(Branch { name: params.name.into(), takes: Matcher::new(params.selector), queue, first });
        }
        Self { all, classes, total: Occupancy::EMPTY, serving: None, joined: 0 }
    }

    /// Returns the branch that takes a packet.
    #[inline]
    fn of(&self, packet: &Header) -> usize {
        let last = self.all.len() - 1;
        self.all[..last].iter().position(|branch| branch.takes.takes(packet)).unwrap_or(last)
    }

    /// Puts a packet into its branch, whose number is returned.
    #[inline]
    pub(super) fn enqueue(&mut self, packet: P, now: Instant) -> Result<usize, (P, Reason)> {
        let number = self.of(&packet.header());
        self.joined = number;
        let Header { color, size, .. } = packet.header();
        self.all[number].queue.enqueue(packet, now)?;
        self.total.add(color, size);
        Ok(number)
    }

    /// See [`Discipline::shed`].
    pub(super) fn shed(&mut self, now: Instant) -> Option<(P, Reason)> {
        let shed = self.all[self.joined].queue.shed(now)?;
        let Header { color, size, .. } = shed.0.header();
        self.total.remove(color, size);
        Some(shed)
    }

    /// See [`Discipline::settle`].
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        if let Some(number) = self.serving.take() {
            self.all[number].queue.settle(now);
        }
    }

    /// Asks a branch for a packet.
    #[inline]
    pub(super) fn dequeue(&mut self, number: usize, now: Instant) -> Dequeued<P> {
        let Branch { queue, first, .. } = &mut self.all[number];
        let taken = match queue.dequeue(now) {
            Dequeued::Sent(packet, class) => Dequeued::Sent(packet, *first + class),
            other => other,
        };
        if let Dequeued::Sent(packet, _) | Dequeued::Dropped(packet, _) = &taken {
            let Header { color, size, .. } = packet.header();
            self.total.remove(color, size);
            self.serving = Some(number);
        }
        taken
    }

    /// Returns whether packets wait in a branch.
    #[inline]
    pub(super) fn waits(&self, number: usize) -> bool {
        !self.all[number].queue.occupancy().is_empty()
    }

    /// See [`Discipline::count_held`].
    pub(super) fn count_held(&mut self, class: usize, packet: &Header, waits: bool) {
        let Branch { queue, first, .. } = &mut self.all[self.classes[class].1];
        queue.count_held(class - *first, packet, waits);
        self.total.count(waits, packet);
    }

    pub(super) fn occupancy(&self) -> &Occupancy {
        &self.total
    }

    pub(super) fn count(&self) -> usize {
        self.classes.len()
    }

    pub(super) fn class(&self, class: usize) -> &ClassCounters {
        let Branch { queue, first, .. } = &self.all[self.classes[class].1];
        queue.class(class - first)
    }

    pub(super) fn name(&self, class: usize) -> &str {
        &self.classes[class].0
    }

    pub(super) fn class_of(&self, packet: &Header) -> usize {
        let Branch { queue, first, .. } = &self.all[self.of(packet)];
        first + queue.class_of(packet)
    }

    pub(super) fn order_of(&self, packet: &Header) -> u64 {
        self.all[self.of(packet)].queue.order_of(packet)
    }

    /// Returns the internal state, under the branches' names.
    pub(super) fn gauges(&self) -> Vec<(String, f64)> {
        let named = |branch: &Branch<P>| {
            let gauges = branch.queue.gauges().into_iter();
            gauges.map(|(name, value)| (format!("{} {name}", branch.name), value)).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(named).collect()
    }

    /// See [`Discipline::on_message`].
    pub(super) fn on_message(&mut self, label: u32, message: &Message) {
        for branch in &mut self.all {
            if branch.takes.may_follow(label) {
                branch.queue.on_message(label, message);
                if branch.takes.by_path_alone() {
                    return;
                }
            }
        }
    }

    /// See [`Scheduler::retune`](super::Scheduler::retune): for the branches, served at these rates.
    pub(super) fn retune(
        &mut self,
        (before, after): (&[BranchParams<'_>], &[BranchParams<'_>]),
        rates: &[Bitrate],
        now: Instant,
    ) -> Result<(), UnitError> {
        for ((branch, &rate), (before, after)) in self.all.iter_mut().zip(rates).zip(before.iter().zip(after))
        {
            if before.selector != after.selector {
                return Err(fixed(&format!("{}.match", after.key)));
            }
            let to = Retuning { before: before.queue, after: after.queue, rate, now };
            branch.queue.retune(&to).map_err(|problem| problem.below(&after.queue_key()))?;
        }
        Ok(())
    }

    pub(super) fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.all.iter().for_each(|branch| branch.queue.inspect(show));
    }

    /// See [`Discipline::queues`].
    pub(super) fn each(&self, show: &mut dyn FnMut(&ManagedQueue<P>)) {
        self.all.iter().for_each(|branch| branch.queue.queues(show));
    }
}

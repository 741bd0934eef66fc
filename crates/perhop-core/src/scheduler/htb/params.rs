//! The parameters of a hierarchical token bucket, and how its classes fit together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::branches::BranchParams;
use super::super::guarantees::largest;
use super::super::queues::{QueueKey, check_places, written};
use super::super::{Load, Match, PathName, ShapedQueue};
use crate::aqm::AqmParams;
use crate::curves::{Concave, Line, divided_up, nanobits};
use crate::table::bad_name;
use crate::units::defaults::number;
use crate::units::{UnitError, require};
use crate::{Bitrate, Bytes};

/// As many levels of `prio` as Linux has.
pub(super) const PRIOS: u8 = 8;

/// Parameters of [`Htb`](super::Htb).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HtbParams {
    /// The root classes, which lend nothing to each other. Usually there is one, with the rate of the link.
    pub classes: Vec<HtbClass>,
    /// A class without `quantum` has one of its `rate` in bytes a second divided by this, from 1000 to 200000
    /// bytes.
    #[serde(default = "number::<10>")]
    pub r2q: u32,
}

/// A class: one with `queue` holds packets, one with `classes` lends its rate to these.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HtbClass {
    /// The name of the class, in tables and files.
    pub name: String,
    /// Which packets the class takes, if no earlier class takes them. The last class with `queue` takes all
    /// remaining packets and has no `match`; classes with `classes` have none.
    pub r#match: Option<Match>,
    /// The guaranteed rate: what the class sends whatever others do. An AQM in `queue` uses this rate to
    /// compute idle time.
    pub rate: Bitrate,
    /// The highest rate, including what is borrowed from the class around it. A scheduler in `queue` shares
    /// this rate. Default: `rate`.
    pub ceil: Option<Bitrate>,
    /// How much the class can send at once at its rate, beyond the packet that uses the last of it. The
    /// bucket starts full.
    #[serde(default = "one_packet")]
    pub burst: Bytes,
    /// How much the class can send at once at its ceiling.
    #[serde(default = "one_packet")]
    pub cburst: Bytes,
    /// Where several classes can borrow from one class, those with the lowest number go first: 0 to 7, with
    /// `queue` only. Default: 0.
    pub prio: Option<u8>,
    /// How much it sends in a turn among classes of its `prio` that borrow from one class, with `queue` only.
    /// Default: by `r2q`.
    pub quantum: Option<Bytes>,
    /// The queue that holds its packets: an AQM or a scheduler, as in a link.
    pub queue: Option<ShapedQueue>,
    /// The classes to which it lends what they do not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Self>,
}

/// Returns the largest packet, as tc counts it: what tc gives to a class without `burst` where the clock of
/// the kernel counts nanoseconds.
const fn one_packet() -> Bytes {
    Bytes::new(1600)
}

/// A class in the tree, as found from its root.
pub(super) struct Found<'a> {
    pub(super) key: String,
    pub(super) class: &'a HtbClass,
    /// The number of the class around it.
    pub(super) parent: Option<usize>,
    /// How many are around it.
    pub(super) depth: usize,
}

impl HtbClass {
    /// Returns the highest rate.
    pub fn ceil(&self) -> Bitrate {
        self.ceil.unwrap_or(self.rate)
    }

    /// Returns what the class sends at its own rate, without a loan. It may send whenever it has no debt, and
    /// each packet costs up to a nanosecond less than its time.
    pub(super) fn sends_at_most(&self, loads: &[Load]) -> Concave {
        let sizes = loads.iter().filter(|load| load.flows > 0).map(|load| load.smallest);
        let Some(smallest) = sizes.min() else { return Concave::zero() };
        let nanos = i128::from(self.rate.time_of(smallest).as_nanos()).max(2);
        let rate = i128::from(self.rate.as_bps());
        let rate = rate + divided_up(rate, nanos - 1);
        Concave::of([Line { rate, amount: nanobits(self.burst) + nanobits(largest(loads)) }])
    }

    /// Returns whether a class with these loads, of which so much is sent, always has tokens of its rate and
    /// its ceiling.
    pub(super) fn keeps_to_rate(&self, sent: &Concave, loads: &[Load]) -> bool {
        let smallest = loads.iter().filter(|load| load.flows > 0).map(|load| nanobits(load.smallest)).min();
        let buckets = [(self.rate, self.burst), (self.ceil(), self.cburst)];
        buckets.into_iter().all(|(rate, burst)| {
            let (rate, nanosecond) = (i128::from(rate.as_bps()), i128::from(rate.as_bps()));
            let amount = nanobits(burst) + smallest.unwrap_or(0) - nanosecond;
            amount >= 0 && sent.conforms_to(&Concave::of([Line { rate, amount }]))
        })
    }

    /// Returns how many bytes the class sends in a turn.
    pub(super) fn quantum(&self, r2q: u32) -> u64 {
        let of_rate = || (self.rate.as_bps() / 8 / u64::from(r2q)).clamp(1000, 200_000);
        self.quantum.map_or_else(of_rate, Bytes::get)
    }

    /// Returns the rate at which the class's queue is served: an AQM's guaranteed rate, or what a scheduler
    /// has to share.
    pub(super) fn served_at(&self) -> Bitrate {
        let has_only_aqm = self.queue.as_ref().is_some_and(|queue| queue.0.only_aqm().is_some());
        if has_only_aqm { self.rate } else { self.ceil() }
    }
}

impl HtbParams {
    /// Returns all classes, each before those within it.
    pub(super) fn found(&self) -> Vec<Found<'_>> {
        let mut found = Vec::new();
        find(&self.classes, "", None, 0, &mut found);
        found
    }

    /// Returns the classes with queues, in order.
    pub(super) fn leaves(&self) -> Vec<BranchParams<'_>> {
        self.found()
            .into_iter()
            .filter_map(|Found { key, class, .. }| {
                let queue = &*class.queue.as_ref()?.0;
                Some(BranchParams { key, name: &class.name, selector: class.r#match.as_ref(), queue })
            })
            .collect()
    }

    pub(super) fn paths(&mut self) -> Vec<(String, &mut PathName)> {
        let mut found = Vec::new();
        find_paths(&mut self.classes, "", &mut found);
        found
    }

    pub(super) fn aqms_mut(&mut self) -> Vec<&mut AqmParams> {
        fn within(class: &mut HtbClass) -> Vec<&mut AqmParams> {
            let ours = class.queue.iter_mut().flat_map(|queue| queue.0.aqms_mut());
            ours.chain(class.classes.iter_mut().flat_map(within)).collect()
        }
        self.classes.iter_mut().flat_map(within).collect()
    }

    /// See [`Block::check`](crate::Block::check).
    pub(super) fn check(&self) -> Result<(), UnitError> {
        let text = "the scheduler has no classes; add one with the link's rate";
        require(!self.classes.is_empty(), "classes", text)?;
        require(self.r2q > 0, "r2q", "must be 1 or more; the default is 10")?;
        let found = self.found();
        for (number, found_here) in found.iter().enumerate() {
            found_here.check()?;
            let Found { key, class, .. } = found_here;
            let is_new = found[..number].iter().all(|other| other.class.name != class.name);
            let text = format!("an earlier class has the name `{}`; give each its own", class.name);
            require(is_new, format!("{key}.name"), text)?;
        }
        let places: Vec<QueueKey<'_>> = self.leaves().iter().map(BranchParams::place).collect();
        check_places(&places)
    }

    /// See [`Scheduler::fits`](super::Scheduler::fits).
    pub(super) fn fits(&self) -> Result<(), UnitError> {
        for Found { key, class, .. } in self.found() {
            let Some(queue) = &class.queue else { continue };
            queue.0.fits(class.ceil()).map_err(|problem| {
                let text = problem.text().replace("the link's rate is", "the class's `ceil` is");
                let text = text.replace("the link has", "the class has");
                UnitError::at(problem.key(), text).below(&format!("{key}.queue"))
            })?;
        }
        Ok(())
    }

    /// Classes whose quantum is below the largest packet, though they share with others by quanta: each with
    /// its key and the reason. A class with a smaller quantum still sends a packet in its turn, as in Linux.
    pub(super) fn small_quanta(&self, largest: Bytes) -> Vec<(String, String)> {
        let found = self.found();
        let root = |mut number: usize| {
            while let Some(around) = found[number].parent {
                number = around;
            }
            number
        };
        let borrowers: Vec<usize> = (0..found.len())
            .filter(|&n| {
                let Found { class, parent, .. } = &found[n];
                class.queue.is_some() && parent.is_some() && class.ceil() > class.rate
            })
            .collect();
        let shares_with = |n: usize, other: usize| {
            let turn = |n: usize| (root(n), found[n].class.prio.unwrap_or(0));
            turn(n) == turn(other) && found[n].class.quantum(self.r2q) != found[other].class.quantum(self.r2q)
        };
        let small = borrowers.iter().filter(|&&n| {
            let is_small = found[n].class.quantum(self.r2q) < largest.get();
            is_small && borrowers.iter().any(|&other| shares_with(n, other))
        });
        let notices = small.map(|&n| {
            let Found { key, class, .. } = &found[n];
            let quantum = Bytes::new(class.quantum(self.r2q));
            let by = if class.quantum.is_some() { "" } else { " by `r2q`" };
            let text = format!(
                "`{quantum}`{by}: packets here have up to {largest}, and a class sends at least one of them in its turn, so what it \
                 borrows is not in proportion to quanta, as in Linux; write {largest} or more for the smallest quantum"
            );
            (format!("{key}.quantum"), text)
        });
        notices.collect()
    }

    /// Rates that contradict each other, or the rate at which the classes together are served: keys and
    /// texts.
    ///
    /// `least` is the rate that a priority queue in front of them always leaves, `most` the rate without
    /// packets in it. Both are the link's rate where nothing goes first.
    pub(super) fn contradictions(&self, least: Bitrate, most: Bitrate) -> Vec<(String, String)> {
        let mut notices = Vec::new();
        let promised = |classes: &[HtbClass]| -> u128 {
            classes.iter().map(|class| u128::from(class.rate.as_bps())).sum()
        };
        let found = self.found();
        let leaves = found.iter().filter(|one| one.class.queue.is_some());
        let sum = leaves.map(|one| u128::from(one.class.rate.as_bps())).sum();
        if sum > u128::from(least.as_bps()) {
            let text = format!(
                "the rates of the classes with a queue add up to {}, but the link has {least} for them, so it cannot keep all of them at once; lower them",
                written(sum)
            );
            notices.push(("classes".into(), text));
        }
        for Found { key, class, parent, .. } in &found {
            let sum = promised(&class.classes);
            if sum > u128::from(class.rate.as_bps()) {
                let text = format!(
                    "the rates of these classes add up to {}, more than the {} of `{}`: as in Linux, each sends its own rate all \
                     the same, beyond the rate and the `ceil` of the class around it; lower them, or raise that one's",
                    written(sum),
                    class.rate,
                    class.name
                );
                notices.push((format!("{key}.classes"), text));
            }
            // With more room at its rate than at its ceiling, a burst leaves at the ceiling.
            let is_idle = parent.is_none()
                && class.ceil() > class.rate
                && class.rate < most
                && class.cburst >= class.burst;
            if is_idle {
                let text = format!(
                    "`{}`: a root class borrows from none, so it sends no more than its `rate`, {}, as in Linux: write rate = \"{}\", \
                     or put the class within one that lends",
                    class.ceil(),
                    class.rate,
                    class.ceil()
                );
                notices.push((format!("{key}.ceil"), text));
            }
            // The rate of a class around others limits them, and is no promise.
            let ceil = class.ceil.filter(|_| !is_idle);
            let limits = [("ceil", ceil), ("rate", class.queue.is_none().then_some(class.rate))];
            for (inner, limit) in limits {
                if let Some(limit) = limit.filter(|&limit| limit > most) {
                    let text = format!(
                        "`{limit}`: above the link's {most}, so it has no effect; write {most} or less"
                    );
                    notices.push((format!("{key}.{inner}"), text));
                }
            }
        }
        notices
    }
}

impl Found<'_> {
    /// Keys that contradict each other or have no effect.
    fn check(&self) -> Result<(), UnitError> {
        let Self { key, class, .. } = self;
        let require = |holds, inner: &str, text: &str| require(holds, format!("{key}.{inner}"), text);
        bad_name(&class.name).map_or(Ok(()), |problem| require(false, "name", &problem))?;
        let (has_queue, has_classes) = (class.queue.is_some(), !class.classes.is_empty());
        let text = "a class with `classes` holds no packets itself; leave one of both out";
        require(!(has_queue && has_classes), "queue", text)?;
        let text = "a class has a `queue`, such as { aqm = \"drop-tail\", limit = \"100p\" }, or `classes` within it";
        require(has_queue || has_classes, "queue", text)?;
        let text = "has an effect in classes with `queue` only, which borrow; leave it out here";
        require(has_queue || class.r#match.is_none(), "match", text)?;
        require(has_queue || class.prio.is_none(), "prio", text)?;
        require(has_queue || class.quantum.is_none(), "quantum", text)?;
        require(
            class.prio.is_none_or(|prio| prio < PRIOS),
            "prio",
            "must be from 0, which goes first, to 7",
        )?;
        let text = "a quantum must be above 0B, such as 1500B";
        require(class.quantum.is_none_or(|quantum| quantum.get() > 0), "quantum", text)?;
        let text = format!("must be at least `rate`, which is {}, not {}", class.rate, class.ceil());
        require(class.ceil() >= class.rate, "ceil", &text)
    }
}

fn find<'a>(
    classes: &'a [HtbClass],
    around: &str,
    parent: Option<usize>,
    depth: usize,
    found: &mut Vec<Found<'a>>,
) {
    for (n, class) in classes.iter().enumerate() {
        let key = format!("{around}classes[{n}]");
        let within = format!("{key}.");
        let number = found.len();
        found.push(Found { key, class, parent, depth });
        find(&class.classes, &within, Some(number), depth + 1, found);
    }
}

fn find_paths<'a>(classes: &'a mut [HtbClass], around: &str, found: &mut Vec<(String, &'a mut PathName)>) {
    for (n, class) in classes.iter_mut().enumerate() {
        let key = format!("{around}classes[{n}]");
        let HtbClass { r#match, queue, classes, .. } = class;
        if let Some(path) = r#match.as_mut().and_then(|selector| selector.path.as_mut()) {
            found.push((format!("{key}.match.path"), path));
        }
        for queue in queue.iter_mut() {
            let inner = queue.0.paths().into_iter();
            found.extend(inner.map(|(place, path)| (format!("{key}.queue.{place}"), path)));
        }
        find_paths(classes, &format!("{key}."), found);
    }
}

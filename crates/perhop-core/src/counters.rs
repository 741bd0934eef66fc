//! Counters: what waits in a queue, what went through it, and the conservation identity between them.

use std::fmt;

use crate::{Color, Header, Instant, Occupancy, Reason};

/// The counters of one class of packets at a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// What waits.
    pub occupancy: Occupancy,
    /// What went through.
    pub through: Counters,
}

impl ClassCounters {
    /// Checks arrived = sent + dropped + waiting for every color.
    ///
    /// # Errors
    /// The first color for which it does not hold.
    pub fn balance(&self) -> Result<(), Imbalance> {
        self.through.balance(&self.occupancy)
    }
}

/// Packets through one queue, by color and, for drops and notifications, by reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets offered to the queue.
    pub arrived: [u64; 3],
    /// Packets handed on for transmission.
    pub sent: [u64; 3],
    dropped: ByReason,
    notified: ByReason,
}

/// Packets by reason and color. Many queues of a large network never drop or mark one, and need no memory for
/// it.
#[derive(Debug, Default)]
struct ByReason(Option<Box<[[u64; 3]; Reason::ALL.len()]>>);

impl ByReason {
    /// Counts one, as few packets are: a call, so that it takes no room in loops over packets.
    #[cold]
    fn add(&mut self, reason: Reason, color: Color) {
        self.0.get_or_insert_default()[reason as usize][color.index()] += 1;
    }

    fn of(&self, reason: Reason) -> [u64; 3] {
        self.0.as_ref().map_or([0; 3], |counts| counts[reason as usize])
    }

    /// Returns each reason that occurred, and its packets.
    fn occurred(&self) -> impl Iterator<Item = (Reason, [u64; 3])> {
        let all = Reason::ALL.into_iter().map(|reason| (reason, self.of(reason)));
        all.filter(|(_, packets)| *packets != [0; 3])
    }

    /// Changes each count by the same one of another queue or time.
    fn change_by(&mut self, other: &Self, change: fn(&mut u64, u64)) {
        if let Some(theirs) = &other.0 {
            let ours = self.0.get_or_insert_default();
            let pairs = ours.as_flattened_mut().iter_mut().zip(theirs.as_flattened());
            pairs.for_each(|(ours, theirs)| change(ours, *theirs));
        }
    }
}

impl Clone for Counters {
    fn clone(&self) -> Self {
        let Self { arrived, sent, dropped, notified } = self;
        Self { arrived: *arrived, sent: *sent, dropped: dropped.clone(), notified: notified.clone() }
    }

    /// Copies counts into the room that is there: a shaper does so for each packet that it holds.
    fn clone_from(&mut self, source: &Self) {
        (self.arrived, self.sent) = (source.arrived, source.sent);
        self.dropped.0.clone_from(&source.dropped.0);
        self.notified.0.clone_from(&source.notified.0);
    }
}

impl Clone for ByReason {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl PartialEq for ByReason {
    fn eq(&self, other: &Self) -> bool {
        self.occurred().eq(other.occurred())
    }
}

impl Eq for ByReason {}

/// A broken conservation identity: packets were lost or invented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imbalance {
    color: Color,
    arrived: u64,
    sent: u64,
    dropped: u64,
    waiting: u64,
}

impl Counters {
    /// Counts a packet that arrives at `now`, and the decision on it: `Ok` with the reason if it is marked,
    /// `Err` with the reason if it is dropped.
    ///
    /// # Errors
    /// Returns the error of `decide`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of the loops over packets of both engines")]
    pub fn arrival(
        &mut self,
        header: &mut Header,
        now: Instant,
        decide: impl FnOnce(&mut Header) -> Result<Option<Reason>, Reason>,
    ) -> Result<Option<Reason>, Reason> {
        header.arrived = now;
        let color = header.color;
        self.arrive(color);
        let decided = decide(header);
        match decided {
            Ok(None) => {}
            Ok(Some(reason)) => self.notify(color, reason),
            Err(reason) => self.drop(color, reason),
        }
        decided
    }

    /// Counts an arrival.
    #[inline]
    pub fn arrive(&mut self, color: Color) {
        self.arrived[color.index()] += 1;
    }

    /// Counts a departure.
    #[inline]
    pub fn send(&mut self, color: Color) {
        self.sent[color.index()] += 1;
    }

    /// Counts a departure, if it is one, without a branch.
    #[inline]
    pub fn send_if(&mut self, goes: bool, color: Color) {
        self.sent[color.index()] += u64::from(goes);
    }

    /// Counts a drop.
    #[inline]
    pub fn drop(&mut self, color: Color, reason: Reason) {
        self.dropped.add(reason, color);
    }

    /// Counts a packet that was marked as having met congestion.
    #[inline]
    pub fn notify(&mut self, color: Color, reason: Reason) {
        self.notified.add(reason, color);
    }

    /// Packets marked for `reason`, by color.
    pub fn notified(&self, reason: Reason) -> [u64; 3] {
        self.notified.of(reason)
    }

    /// Packets marked for each reason that occurred, by color.
    pub fn notifications(&self) -> impl Iterator<Item = (Reason, [u64; 3])> {
        self.notified.occurred()
    }

    /// Packets dropped for `reason`, by color.
    pub fn dropped(&self, reason: Reason) -> [u64; 3] {
        self.dropped.of(reason)
    }

    /// Adds what went through another queue of the same port.
    pub fn add(&mut self, other: &Self) {
        self.change_by(other, |ours, theirs| *ours += theirs);
    }

    /// What went through since an earlier count of the same queue.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut new = self.clone();
        new.change_by(earlier, |new, earlier| *new -= earlier);
        new
    }

    /// Changes each count by the same one of another queue or time.
    fn change_by(&mut self, other: &Self, change: fn(&mut u64, u64)) {
        for (ours, theirs) in [(&mut self.arrived, &other.arrived), (&mut self.sent, &other.sent)] {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| change(ours, *theirs));
        }
        self.dropped.change_by(&other.dropped, change);
        self.notified.change_by(&other.notified, change);
    }

    /// Packets dropped for each reason that occurred, by color.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, [u64; 3])> {
        self.dropped.occurred()
    }

    /// Packets of one color dropped for any reason.
    pub fn dropped_of(&self, color: Color) -> u64 {
        self.dropped.occurred().map(|(_, by_color)| by_color[color.index()]).sum()
    }

    /// Checks arrived = sent + dropped + waiting for every color.
    ///
    /// # Errors
    /// The first color for which it does not hold.
    pub fn balance(&self, waiting: &Occupancy) -> Result<(), Imbalance> {
        for color in Color::ALL {
            let found = Imbalance {
                color,
                arrived: self.arrived[color.index()],
                sent: self.sent[color.index()],
                dropped: self.dropped_of(color),
                waiting: waiting.packets_of(color),
            };
            if found.arrived != found.sent + found.dropped + found.waiting {
                return Err(found);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} packets are not conserved: {} arrived, but {} sent + {} dropped + {} waiting",
            self.color.name(),
            self.arrived,
            self.sent,
            self.dropped,
            self.waiting
        )
    }
}

impl std::error::Error for Imbalance {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

    /// Counters of one color: 5 arrived, 1 was sent, 1 dropped, 3 wait.
    fn counted(color: Color) -> ClassCounters {
        let mut class = ClassCounters::default();
        (0..5).for_each(|_| class.through.arrive(color));
        (0..3).for_each(|_| class.occupancy.add(color, 100));
        class.through.send(color);
        class.through.drop(color, Reason::Forced);
        class
    }

    #[test]
    fn an_arrival_is_counted_with_the_decision_on_it() {
        let now = Instant::from_nanos(7);
        for (decided, notified, dropped) in
            [(Ok(None), 0, 0), (Ok(Some(Reason::Early)), 1, 0), (Err(Reason::Early), 0, 1)]
        {
            let mut counters = Counters::default();
            let mut header = Header { color: Color::Red, ..Header::new(FlowId(0), 100) };
            assert_eq!(counters.arrival(&mut header, now, |_| decided), decided);
            assert_eq!((header.arrived, counters.arrived), (now, [0, 0, 1]));
            let red = |counts: [u64; 3]| counts[Color::Red.index()];
            assert_eq!(red(counters.notified(Reason::Early)), notified);
            assert_eq!(red(counters.dropped(Reason::Early)), dropped);
        }
    }

    #[test]
    fn a_packet_that_is_lost_or_invented_is_missed_whatever_its_color() {
        for color in Color::ALL {
            let ClassCounters { occupancy, through: counters } = counted(color);
            assert_eq!(counters.balance(&occupancy), Ok(()));
            let broken = |change: fn(&mut Counters, &mut Occupancy, Color)| {
                let (mut counters, mut occupancy) = (counters.clone(), occupancy.clone());
                change(&mut counters, &mut occupancy, color);
                counters.balance(&occupancy).unwrap_err().to_string()
            };
            let text = |arrived, sent, dropped, waiting| {
                format!(
                    "{} packets are not conserved: {arrived} arrived, but {sent} sent + {dropped} dropped + {waiting} waiting",
                    color.name()
                )
            };
            assert_eq!(broken(|counters, _, color| counters.arrive(color)), text(6, 1, 1, 3));
            assert_eq!(broken(|counters, _, color| counters.send(color)), text(5, 2, 1, 3));
            assert_eq!(broken(|counters, _, color| counters.drop(color, Reason::Late)), text(5, 1, 2, 3));
            assert_eq!(broken(|_, occupancy, color| occupancy.add(color, 100)), text(5, 1, 1, 4));
            assert_eq!(broken(|_, occupancy, color| occupancy.remove(color, 100)), text(5, 1, 1, 2));
        }
    }

    #[test]
    fn a_loss_of_one_color_is_not_made_good_by_another() {
        let ClassCounters { occupancy, through: mut counters } = counted(Color::Red);
        counters.arrive(Color::Green);
        counters.send(Color::Yellow);
        let problem = counters.balance(&occupancy).unwrap_err().to_string();
        assert!(problem.starts_with("green packets are not conserved: 1 arrived, but 0 sent"), "{problem}");
    }

    #[test]
    fn drops_and_notifications_are_told_by_reason_and_color() {
        let mut counters = Counters::default();
        for (color, reason) in
            [(Color::Green, Reason::Early), (Color::Red, Reason::Early), (Color::Red, Reason::Overflow)]
        {
            counters.drop(color, reason);
            counters.notify(color, reason);
            counters.notify(color, reason);
        }
        let [overflow, early] = [(Reason::Overflow, [0, 0, 1]), (Reason::Early, [1, 0, 1])];
        assert_eq!(counters.drops().collect::<Vec<_>>(), [overflow, early]);
        assert_eq!(Color::ALL.map(|color| counters.dropped_of(color)), [1, 0, 2]);
        let twice = |(reason, packets): (Reason, [u64; 3])| (reason, packets.map(|count| 2 * count));
        assert_eq!(counters.notifications().collect::<Vec<_>>(), [overflow, early].map(twice));
        assert_eq!(
            (counters.dropped(Reason::Early), counters.notified(Reason::Early)),
            ([1, 0, 1], [2, 0, 2])
        );
    }

    #[test]
    fn counts_of_nothing_are_none_whether_there_is_room_for_them_or_not() {
        let mut counters = Counters::default();
        counters.drop(Color::Green, Reason::Early);
        counters.notify(Color::Green, Reason::Early);
        assert_ne!(counters, Counters::default());
        assert_eq!(counters.since(&counters), Counters::default());
        assert_eq!(counters.since(&Counters::default()), counters);
    }

    #[test]
    fn the_counters_of_queues_are_added() {
        let mut sum = counted(Color::Green).through;
        sum.notify(Color::Green, Reason::Early);
        let mut other = counted(Color::Red).through;
        other.notify(Color::Red, Reason::Early);
        other.send_if(true, Color::Red);
        other.send_if(false, Color::Red);
        sum.add(&other);
        sum.add(&other);
        assert_eq!((sum.arrived, sum.sent), ([5, 0, 10], [1, 0, 4]));
        assert_eq!(sum.drops().collect::<Vec<_>>(), [(Reason::Forced, [1, 0, 2])]);
        assert_eq!(sum.notifications().collect::<Vec<_>>(), [(Reason::Early, [1, 0, 2])]);
    }
}

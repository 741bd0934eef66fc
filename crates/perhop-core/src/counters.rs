//! What waits in a queue, what went through it, and the identity that must hold of it.

use std::fmt;

use crate::aqm::Reason;
use crate::{Color, Header, Occupancy};

/// The books of one queue: what waits and what went through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// What waits.
    pub occupancy: Occupancy,
    /// What went through.
    pub counters: Counters,
}

impl Ledger {
    /// A packet was let in, with word of congestion if there was a reason.
    #[inline]
    pub fn admit(&mut self, packet: &Header, notified: Option<Reason>) {
        self.occupancy.add(packet.color, packet.size);
        if let Some(reason) = notified {
            self.counters.notify(packet.color, reason);
        }
    }

    /// A packet that waited goes on for transmission.
    #[inline]
    pub fn send(&mut self, packet: &Header) {
        self.occupancy.remove(packet.color, packet.size);
        self.counters.send(packet.color);
    }

    /// A packet that waited is dropped after all.
    pub fn expel(&mut self, packet: &Header, reason: Reason) {
        self.occupancy.remove(packet.color, packet.size);
        self.counters.drop(packet.color, reason);
    }
}

/// Packets through one queue, by color and, for drops and notifications, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets offered to the queue.
    pub arrived: [u64; 3],
    /// Packets handed on for transmission.
    pub sent: [u64; 3],
    dropped: [[u64; 3]; Reason::ALL.len()],
    notified: [[u64; 3]; Reason::ALL.len()],
}

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
        self.dropped[reason as usize][color.index()] += 1;
    }

    /// Counts a packet that was let in with word of congestion.
    #[inline]
    pub fn notify(&mut self, color: Color, reason: Reason) {
        self.notified[reason as usize][color.index()] += 1;
    }

    /// Packets let in with word of congestion for `reason`, by color.
    pub fn notified(&self, reason: Reason) -> [u64; 3] {
        self.notified[reason as usize]
    }

    /// Packets let in with word of congestion for each reason that occurred, by color.
    pub fn notifications(&self) -> impl Iterator<Item = (Reason, [u64; 3])> {
        let all = Reason::ALL.into_iter().map(|reason| (reason, self.notified(reason)));
        all.filter(|(_, packets)| *packets != [0; 3])
    }

    /// Packets dropped for `reason`, by color.
    pub fn dropped(&self, reason: Reason) -> [u64; 3] {
        self.dropped[reason as usize]
    }

    /// Adds what went through another queue of the same port.
    pub fn add(&mut self, other: &Self) {
        let pairs = |ours: &mut [u64; 3], theirs: &[u64; 3]| {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        };
        pairs(&mut self.arrived, &other.arrived);
        pairs(&mut self.sent, &other.sent);
        self.dropped.iter_mut().zip(&other.dropped).for_each(|(ours, theirs)| pairs(ours, theirs));
        self.notified.iter_mut().zip(&other.notified).for_each(|(ours, theirs)| pairs(ours, theirs));
    }

    /// What went through since an earlier count of the same queue.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = |ours: &mut [u64; 3], theirs: &[u64; 3]| {
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours -= theirs);
        };
        let mut new = self.clone();
        pairs(&mut new.arrived, &earlier.arrived);
        pairs(&mut new.sent, &earlier.sent);
        new.dropped.iter_mut().zip(&earlier.dropped).for_each(|(ours, theirs)| pairs(ours, theirs));
        new.notified.iter_mut().zip(&earlier.notified).for_each(|(ours, theirs)| pairs(ours, theirs));
        new
    }

    /// Packets dropped for each reason that occurred, by color.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, [u64; 3])> {
        let all = Reason::ALL.into_iter().map(|reason| (reason, self.dropped(reason)));
        all.filter(|(_, packets)| *packets != [0; 3])
    }

    /// Packets of one color dropped for any reason.
    pub fn dropped_of(&self, color: Color) -> u64 {
        self.dropped.iter().map(|by_color| by_color[color.index()]).sum()
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

    /// Books of one color in which 5 came: 1 sent, 1 dropped, 3 wait.
    fn books(color: Color) -> Ledger {
        let packet = Header { color, ..Header::new(FlowId(0), 100) };
        let mut ledger = Ledger::default();
        (0..5).for_each(|_| ledger.counters.arrive(color));
        (0..4).for_each(|_| ledger.admit(&packet, None));
        ledger.send(&packet);
        ledger.counters.drop(color, Reason::Forced);
        ledger
    }

    #[test]
    fn a_packet_that_is_lost_or_invented_is_missed_whatever_its_color() {
        for color in Color::ALL {
            let Ledger { occupancy, counters } = books(color);
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
        let Ledger { occupancy, mut counters } = books(Color::Red);
        counters.arrive(Color::Green);
        counters.send(Color::Yellow);
        let problem = counters.balance(&occupancy).unwrap_err().to_string();
        assert!(problem.starts_with("green packets are not conserved: 1 arrived, but 0 sent"), "{problem}");
    }

    #[test]
    fn a_packet_that_waited_may_be_dropped_after_all() {
        let packet = Header { color: Color::Red, ..Header::new(FlowId(0), 100) };
        let mut ledger = books(Color::Red);
        ledger.expel(&packet, Reason::Late);
        assert_eq!((ledger.occupancy.packets(), ledger.occupancy.bytes()), (2, 200));
        assert_eq!(ledger.counters.dropped(Reason::Late), [0, 0, 1]);
        assert_eq!(ledger.counters.balance(&ledger.occupancy), Ok(()));
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
    fn the_books_of_queues_are_added() {
        let mut sum = books(Color::Green).counters;
        sum.notify(Color::Green, Reason::Early);
        let mut other = books(Color::Red).counters;
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

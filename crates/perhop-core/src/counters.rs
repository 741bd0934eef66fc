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

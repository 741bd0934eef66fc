//! ACKs that ride on data: a segment of one direction of a connection acknowledges what has come to its host
//! from the other one (RFC 9293, section 3.1), and an ACK that waits is not sent apart then (RFC 1122,
//! section 4.2.3.2).
//!
//! ## Deviations
//! - A segment that is sent again carries the ACK that it carried first.
//! - An ACK on data reports no ranges and no duplicates: these are reported at once, by ACKs of their own.

use std::collections::VecDeque;

use super::Flow;
use crate::transport::{Ack, RidingAck, Source};

/// The ACKs that ride on a flow's data.
#[derive(Clone, Debug, Default)]
pub(super) struct Riding {
    /// One past the last segment that is known to have been sent.
    sent: u32,
    /// Segments from this number on carry this ACK, up to the next.
    acks: VecDeque<(u32, RidingAck)>,
}

impl Flow {
    /// Lets data that the flow's sender may have sent carry an ACK of what has come to its host, which is the
    /// receiver of the connection's `other` direction; one that waits there waits no more. Says whether data
    /// has been sent for the first time.
    pub(crate) fn carry_ack_of(&mut self, other: &mut Self) -> bool {
        let (sent, Riding { sent: before, acks }) = (self.sender.sent_end(), &mut self.rare.riding);
        if sent == *before {
            return false;
        }
        if let Some(ack) = other.receiving.receiver.ride()
            && acks.back().is_none_or(|&(_, last)| last != ack)
        {
            acks.push_back((*before, ack));
        }
        *before = sent;
        true
    }

    /// Returns one past the last segment that carries a known ACK.
    pub(crate) fn carries_up_to(&self) -> u32 {
        self.rare.riding.sent
    }

    /// Returns the ACK that a segment carries, if it carries one.
    pub(crate) fn carried(&self, sequence: u32) -> Option<RidingAck> {
        let acks = &self.rare.riding.acks;
        let place = acks.partition_point(|&(first, _)| first <= sequence);
        acks.get(place.checked_sub(1)?).map(|&(_, ack)| ack)
    }

    /// Returns the ACK that a segment carries to its receiver, which has not taken it yet. ACKs that no later
    /// one can carry are forgotten.
    pub(crate) fn unload_ack(&mut self, sequence: u32) -> Option<RidingAck> {
        let found = self.carried(sequence);
        let expected = self.receiving.receiver.expected();
        let acks = &mut self.rare.riding.acks;
        while acks.get(1).is_some_and(|&(first, _)| first < expected) {
            acks.pop_front();
        }
        found
    }

    /// Returns an ACK that data of the other direction has brought, as the sender takes it, if it
    /// acknowledges anything new.
    pub(crate) fn take_off(&mut self, ack: RidingAck) -> Option<Ack> {
        let known = self.sender.acknowledged() + u64::from(self.rare.grants.opens);
        (u64::from(ack.expected) > known).then(|| {
            let number = self.rare.metadata.post_plain(ack.expected, ack.marked);
            Ack { number, ece: ack.ece }
        })
    }

    /// Forgets an ACK of the receiver that is not sent, since data carries one.
    pub(crate) fn spare_ack(&mut self, ack: Ack) {
        self.rare.metadata.lose(ack.number, false);
    }
}

//! Packet metadata: what a flow's packets carry besides their number, kept at the flow during transit.

mod acks;
mod datagrams;
mod in_flight;

use super::transit::TransitMeter;
use crate::observer::Acknowledgement;

pub(in crate::transport) use acks::{AckRecord, Acks, Block, MOST_BLOCKS, MOST_EXPECTED};
pub(in crate::transport) use datagrams::Datagrams;
pub use datagrams::{Envelope, Feedback, Report};

/// The metadata of one flow's packets in transit: none for TCP without selective acknowledgements, which pays
/// for two words and no more.
#[derive(Clone, Debug)]
pub struct Metadata(Option<Kind>);

#[derive(Clone, Debug)]
enum Kind {
    Datagrams(Box<Datagrams>),
    Acks(Box<Acks>),
}

/// What one packet carries besides its number, on its way from one part of a network to another.
#[derive(Clone, Debug)]
pub(crate) enum DetachedMetadata {
    /// A datagram's.
    Envelope(Envelope),
    /// A report's of a receiver of datagrams.
    Report(Box<Report>),
    /// A selective acknowledgement's.
    Ack(Box<AckRecord>),
}

impl Metadata {
    /// Metadata of a flow whose packets carry nothing besides their headers.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Metadata of ACKs with selective acknowledgements.
    pub(crate) fn acks() -> Self {
        Self(Some(Kind::Acks(Box::default())))
    }

    /// Metadata of datagrams, whose transit times this meter measures, and of the feedback on them.
    pub(crate) fn datagrams(transit: TransitMeter) -> Self {
        Self(Some(Kind::Datagrams(Box::new(Datagrams::new(transit)))))
    }

    pub(crate) fn of_datagrams(&mut self) -> &mut Datagrams {
        match &mut self.0 {
            Some(Kind::Datagrams(datagrams)) => datagrams,
            _ => unreachable!("flows of datagrams have it"),
        }
    }

    pub(crate) fn of_acks(&mut self) -> &mut Acks {
        match &mut self.0 {
            Some(Kind::Acks(acks)) => acks,
            _ => unreachable!("flows with selective acknowledgements have it"),
        }
    }

    /// Stores an acknowledgement that arrives and reports nothing but which segment is expected, and so many
    /// marked packets; returns its number.
    pub(crate) fn post_plain(&mut self, expected: u32, marked: u32) -> u32 {
        match &mut self.0 {
            Some(Kind::Acks(acks)) => acks.post_plain(expected, marked),
            Some(Kind::Datagrams(_)) | None => expected,
        }
    }

    /// Returns the segment that an acknowledgement of this number, which is in transit, asks for next.
    pub(crate) fn expected(&self, number: u32) -> u32 {
        match &self.0 {
            Some(Kind::Acks(acks)) => acks.expected(number),
            Some(Kind::Datagrams(_)) | None => number,
        }
    }

    /// Returns whether the flow has selective acknowledgements.
    pub(crate) fn has_acks(&self) -> bool {
        matches!(self.0, Some(Kind::Acks(_)))
    }

    /// Returns the acknowledgement of this number, which is in transit, if its flow has selective ones.
    pub(crate) fn acknowledgement(&self, number: u32) -> Option<Acknowledgement> {
        match &self.0 {
            Some(Kind::Acks(acks)) => acks.get(number),
            Some(Kind::Datagrams(_)) | None => None,
        }
    }

    /// Returns how long packets took, where that is measured.
    pub fn transit(&self) -> Option<&TransitMeter> {
        match &self.0 {
            Some(Kind::Datagrams(datagrams)) => Some(datagrams.transit()),
            Some(Kind::Acks(_)) | None => None,
        }
    }

    /// Takes out what a packet carries that goes on in another part of the network.
    pub(crate) fn unload(&mut self, number: u32, is_data: bool) -> Option<DetachedMetadata> {
        match &mut self.0 {
            Some(Kind::Datagrams(datagrams)) if is_data => {
                datagrams.data.take(number).map(DetachedMetadata::Envelope)
            }
            Some(Kind::Datagrams(datagrams)) => {
                datagrams.reports.take(number).map(|report| DetachedMetadata::Report(Box::new(report)))
            }
            Some(Kind::Acks(acks)) if !is_data => {
                acks.in_transit.take(number).map(|record| DetachedMetadata::Ack(Box::new(record)))
            }
            Some(Kind::Acks(_)) | None => None,
        }
    }

    /// Takes in what a packet carries that comes from another part of the network.
    pub(crate) fn load(&mut self, number: u32, detached: DetachedMetadata) {
        match (&mut self.0, detached) {
            (Some(Kind::Datagrams(datagrams)), DetachedMetadata::Envelope(envelope)) => {
                datagrams.data.insert(number, envelope);
            }
            (Some(Kind::Datagrams(datagrams)), DetachedMetadata::Report(report)) => {
                datagrams.reports.insert(number, *report);
            }
            (Some(Kind::Acks(acks)), DetachedMetadata::Ack(record)) => {
                acks.in_transit.insert(number, *record);
            }
            _ => unreachable!("the parts of a flow have one transport"),
        }
    }

    /// Forgets what a packet carries that was dropped in transit.
    pub fn lose(&mut self, number: u32, is_data: bool) {
        match &mut self.0 {
            Some(Kind::Datagrams(datagrams)) if is_data => datagrams.data.lose(number),
            Some(Kind::Datagrams(datagrams)) => datagrams.reports.lose(number),
            Some(Kind::Acks(acks)) if !is_data => acks.lose(number),
            Some(Kind::Acks(_)) | None => {}
        }
    }
}

//! Packet metadata: what the packets of a flow carry besides their number. It is kept at the flow while they are in transit.

use super::datagram::Datagrams;
use super::tcp::Acks;
use super::transit::TransitMeter;
use crate::network::TransportSpec;
use crate::observer::Acknowledgement;

/// The metadata of one flow's packets in transit: none for TCP without selective acknowledgements, which pays for a word and no
/// more.
#[derive(Clone, Debug)]
pub struct Metadata(Option<Box<Kind>>);

#[derive(Clone, Debug)]
enum Kind {
    Datagrams(Datagrams),
    Acks(Acks),
}

impl Metadata {
    /// For the packets of a flow with this transport. Transit times of datagrams are measured by this meter.
    pub(crate) fn of(transport: &TransportSpec, transit: TransitMeter) -> Self {
        match transport {
            TransportSpec::Tcp(params) if params.sack => Self(Some(Box::new(Kind::Acks(Acks::default())))),
            TransportSpec::Tcp(_) => Self(None),
            TransportSpec::Udp(_) | TransportSpec::Rap(_) | TransportSpec::Tfrc(_) => {
                Self(Some(Box::new(Kind::Datagrams(Datagrams::new(transit)))))
            }
        }
    }

    pub(crate) fn of_datagrams(&mut self) -> &mut Datagrams {
        match self.0.as_deref_mut() {
            Some(Kind::Datagrams(datagrams)) => datagrams,
            _ => unreachable!("flows of datagrams have it"),
        }
    }

    pub(crate) fn of_acks(&mut self) -> &mut Acks {
        match self.0.as_deref_mut() {
            Some(Kind::Acks(acks)) => acks,
            _ => unreachable!("flows with selective acknowledgements have it"),
        }
    }

    /// The segment that an acknowledgement of this number, which is in transit, asks for next.
    pub(crate) fn expected(&self, number: u32) -> u32 {
        match self.0.as_deref() {
            Some(Kind::Acks(acks)) => acks.expected(number),
            Some(Kind::Datagrams(_)) | None => number,
        }
    }

    /// The acknowledgement of this number, which is in transit, if its flow has selective ones.
    pub(crate) fn acknowledgement(&self, number: u32) -> Option<Acknowledgement> {
        match self.0.as_deref() {
            Some(Kind::Acks(acks)) => acks.get(number),
            Some(Kind::Datagrams(_)) | None => None,
        }
    }

    /// How long packets took, where that is measured.
    pub fn transit(&self) -> Option<&TransitMeter> {
        match self.0.as_deref() {
            Some(Kind::Datagrams(datagrams)) => Some(datagrams.transit()),
            Some(Kind::Acks(_)) | None => None,
        }
    }

    /// A packet was dropped in transit.
    pub fn lose(&mut self, number: u32, is_data: bool) {
        match self.0.as_deref_mut() {
            Some(Kind::Datagrams(datagrams)) => datagrams.lose(number, is_data),
            Some(Kind::Acks(acks)) if !is_data => acks.lose(number),
            Some(Kind::Acks(_)) | None => {}
        }
    }
}

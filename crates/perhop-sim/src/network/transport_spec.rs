//! The transport of a flow: its parameters, and what others ask of them.

use std::sync::Arc;

use perhop_core::curves::Concave;
use perhop_core::{Bitrate, Bytes, Duration};

use crate::transport::metadata::Metadata;
use crate::transport::packet_trace::PacketTrace;
use crate::transport::rap::{RapParams, RapSender};
use crate::transport::tcp::{TcpEcn, TcpParams, TcpReceiver, TcpSender};
use crate::transport::tfrc::{TfrcParams, TfrcReceiver, TfrcSender};
use crate::transport::transit::TransitMeter;
use crate::transport::udp::{UdpParams, UdpSender};
use crate::transport::{Counted, Receiver, Sender};

/// How a flow sends. What the hosts of a transport do depends only on the packets, ACKs, timers and messages
/// of the flow, each at its own time: so the batched engine may let them act ahead of the clock.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportSpec {
    /// TCP. Flows of a group share their parameters.
    Tcp(Arc<TcpParams>),
    /// UDP.
    Udp(UdpParams),
    /// RAP.
    Rap(RapParams),
    /// TFRC.
    Tfrc(TfrcParams),
}

/// What a flow with a window has in the network at most, as long as none of its timers expires for packets
/// that are not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Data, with headers.
    pub data: Bytes,
    /// Acknowledgements.
    pub acks: Bytes,
    /// The shortest time after which the sender takes a segment for lost that was not acknowledged.
    pub timeout: Duration,
    /// How long the receiver may wait with an acknowledgement.
    pub delayed_ack: Duration,
}

impl From<TcpParams> for TransportSpec {
    fn from(params: TcpParams) -> Self {
        Self::Tcp(Arc::new(params))
    }
}

impl TransportSpec {
    /// Returns the two ends of a flow that has this much to send, and contracted this rate. What a congestion
    /// control decides by chance begins with `seed`.
    pub(crate) fn ends(
        &self,
        volume: Option<Bytes>,
        reserved: Option<Bitrate>,
        ecn: TcpEcn,
        seed: u64,
    ) -> (Sender, Receiver) {
        match self {
            Self::Tcp(params) => (
                Sender::Tcp(TcpSender::new(params.clone(), volume, reserved, ecn, seed)),
                Receiver::Tcp(TcpReceiver::new(params, ecn)),
            ),
            Self::Udp(params) => (Sender::Udp(Box::new(UdpSender::new(params, volume))), Receiver::Sink),
            Self::Rap(params) => (Sender::Rap(Box::new(RapSender::new(params, volume))), Receiver::Echo),
            Self::Tfrc(params) => (
                Sender::Tfrc(Box::new(TfrcSender::new(params, volume))),
                Receiver::Tfrc(Box::new(TfrcReceiver::new(params))),
            ),
        }
    }

    /// Returns the two ends of a flow that never sends a packet twice, which has this much to send; `None`
    /// for TCP.
    pub fn datagram_ends(&self, volume: Option<Bytes>) -> Option<(Sender, Receiver)> {
        (!matches!(self, Self::Tcp(_))).then(|| self.ends(volume, None, TcpEcn::Off, 0))
    }

    /// Returns the place for what packets of a flow carry besides their headers.
    pub(crate) fn metadata(&self, transit: TransitMeter) -> Metadata {
        match self {
            Self::Tcp(params) if params.sack => Metadata::acks(),
            Self::Tcp(_) => Metadata::none(),
            Self::Udp(_) | Self::Rap(_) | Self::Tfrc(_) => Metadata::datagrams(transit),
        }
    }

    /// Returns whether the source sends a certain number of packets once each, and none again if it was lost.
    pub(crate) fn is_finite(&self, volume: Option<Bytes>) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Udp(UdpParams { trace: Some(_), .. }) => true,
            Self::Udp(_) | Self::Rap(_) | Self::Tfrc(_) => volume.is_some(),
        }
    }

    /// Returns which of its statistics a sender of a flow with this ECN counts.
    pub fn counted(&self, ecn: TcpEcn) -> Counted {
        match self {
            Self::Tcp(_) => Counted::Segments { ecn: !ecn.is_off() },
            Self::Udp(_) => Counted::Sent,
            Self::Rap(_) | Self::Tfrc(_) => Counted::LossEvents,
        }
    }

    /// Returns whether anything goes back to the sender.
    pub(crate) fn is_acknowledged(&self) -> bool {
        !matches!(self, Self::Udp(_))
    }

    /// Returns whether the receiver acknowledges each packet as it comes, or none.
    pub(crate) fn acknowledges_at_once(&self) -> bool {
        match self {
            Self::Tcp(params) => params.delayed_ack.is_zero(),
            Self::Udp(_) | Self::Rap(_) => true,
            // Its reports have their own time.
            Self::Tfrc(_) => false,
        }
    }

    /// Returns whether the flow opens its connection with a packet that carries no data.
    pub(crate) fn opens(&self) -> bool {
        matches!(self, Self::Tcp(params) if params.handshake)
    }

    /// Returns how many data packets a volume in bytes on the wire takes: the last one is full, too.
    pub fn packets_of(&self, volume: Bytes) -> u64 {
        volume.get().div_ceil(u64::from(self.packet_sizes().0))
    }

    /// Returns what each packet of data carries besides payload: the headers of TCP are as large as an ACK,
    /// the others have those of IPv4 and UDP.
    pub fn headers(&self) -> u16 {
        match self {
            Self::Tcp(_) => self.packet_sizes().1,
            Self::Udp(_) | Self::Rap(_) | Self::Tfrc(_) => 28,
        }
    }

    /// Returns the bytes on the wire of so much payload, in whole packets: the last one is full, too. `None`
    /// if packets have no room for payload.
    pub fn on_wire(&self, payload: Bytes) -> Option<Bytes> {
        let full = u64::from(self.packet_sizes().0);
        let room = full.checked_sub(u64::from(self.headers())).filter(|&room| room > 0)?;
        Some(Bytes::new(payload.get().div_ceil(room).saturating_mul(full)))
    }

    /// Returns what a flow with this volume sends at most, at its host.
    ///
    /// # Errors
    /// Why nothing bounds it.
    pub fn arrivals(&self, volume: Option<Bytes>) -> Result<Concave, &'static str> {
        let Self::Udp(params) = self else {
            return Err(match self {
                Self::Tcp(_) => "TCP sends as fast as its window lets it",
                _ => "its rate has no bound; a policer or an access link would bound it",
            });
        };
        let arrivals = params.arrivals()?;
        let all = volume.map(|volume| self.packets_of(volume).saturating_mul(params.packet.get()));
        Ok(all.map_or_else(|| arrivals.clone(), |all| arrivals.min(&Concave::volume(Bytes::new(all)))))
    }

    /// Returns the most data and the most acknowledgements of one flow that are in the network at a time, and
    /// the shortest time after which a packet that is still there is sent again; `None` without a window.
    pub fn in_flight(&self) -> Option<InFlight> {
        let Self::Tcp(params) = self else { return None };
        // One segment more is the probe of a tail; two are those of QUIC.
        let segments = u64::from(params.most_outstanding()).saturating_add(2);
        let of = |size: Bytes| Bytes::new(size.get().saturating_mul(segments));
        Some(InFlight {
            data: of(params.packet),
            acks: of(params.ack),
            timeout: params.shortest_timeout(),
            delayed_ack: params.delayed_ack,
        })
    }

    /// Returns the trace whose packets the flow sends, if it does.
    pub fn trace(&self) -> Option<&PacketTrace> {
        let Self::Udp(params) = self else { return None };
        params.trace.as_deref()
    }

    /// Returns the sizes of data and of ACKs on the wire, in bytes; 0 if there are no ACKs.
    pub fn packet_sizes(&self) -> (u16, u16) {
        let (data, ack) = match self {
            Self::Tcp(params) => (params.packet, params.ack),
            Self::Udp(params) => (params.packet, Bytes::new(0)),
            Self::Rap(params) => (params.packet, params.ack),
            Self::Tfrc(params) => (params.packet, params.ack),
        };
        (data.get() as u16, ack.get() as u16)
    }
}

//! A sender of any transport.

use std::ops::Range;

use ambassador::Delegate;
use perhop_core::control::Message;
use perhop_core::{Color, Context, Dscp, Ecn, Instant};

use super::limits::LimitTimes;
use super::metadata::{Envelope, Feedback, Metadata};
use super::rap::RapSender;
use super::source::{Source, ambassador_impl_Source};
use super::tcp::TcpSender;
use super::tcp::congestion::ForeignCongestionParams;
use super::tfrc::TfrcSender;
use super::udp::{UdpParams, UdpSender};
use super::{Ack, SenderStatistics, Transmit};

/// A sender of any transport.
///
/// TCP's is stored here, since most flows have it; the others are behind pointers.
#[derive(Clone, Debug, Delegate)]
#[delegate(Source)]
pub enum Sender {
    /// TCP.
    Tcp(TcpSender),
    /// UDP, constant or on and off.
    Udp(Box<UdpSender>),
    /// RAP.
    Rap(Box<RapSender>),
    /// TFRC.
    Tfrc(Box<TfrcSender>),
}

impl Sender {
    /// Returns the congestion window in packets, if the sender has one and something to send.
    pub fn sending_window(&self) -> Option<f64> {
        self.window().filter(|_| self.is_sending())
    }

    /// Returns what was counted, and how long what kept the sender from sending more, by now.
    pub(crate) fn statistics_at(&self, now: Instant) -> SenderStatistics {
        SenderStatistics { limits: self.limits(now), ..self.statistics() }
    }

    /// Changes the rate of UDP to that of these parameters.
    pub(crate) fn set_rate(&mut self, params: &UdpParams, now: Instant) {
        if let Self::Udp(udp) = self {
            udp.set_rate(params, now);
        }
    }

    /// Draws the time of the next packet of UDP anew, given that it has not come by now.
    pub(crate) fn redraw(&mut self, cx: &mut Context<'_>) {
        if let Self::Udp(udp) = self {
            udp.redraw(cx);
        }
    }

    /// Gives these parameters to a congestion control of TCP that is implemented outside.
    pub(crate) fn set_control(&mut self, params: &ForeignCongestionParams) {
        if let Self::Tcp(tcp) = self {
            tcp.set_control(params);
        }
    }

    /// Takes feedback of a receiver of datagrams outside of a simulation.
    pub fn on_feedback(&mut self, feedback: Feedback, now: Instant) {
        match (self, feedback) {
            (Self::Rap(rap), Feedback::Echo(number)) => rap.on_echo(number, now),
            (Self::Tfrc(tfrc), Feedback::Report(report)) => tfrc.on_report(&report, now),
            _ => {}
        }
    }
}

//! Calls: speech in both directions, on and off.

use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Block, Bytes, Duration, Origin, Probability, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Application, Carrier, Commands, User, UserEvent, UserMeasure};
use crate::transport::udp::{Pattern, UdpParams};

/// Two people who speak in turns and fall silent, each a source over UDP that is on and off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CallParams {
    /// Rate while one speaks, headers included: G.711 in frames of 20 ms with 40 B of IP, UDP and RTP
    /// headers.
    pub rate: Bitrate,
    /// Size of a packet, headers included.
    pub packet: Bytes,
    /// Mean time, exponentially distributed, that one speaks (ITU-T P.59, 1993).
    pub on: Duration,
    /// Mean time, exponentially distributed, that one is silent (ITU-T P.59, 1993).
    pub off: Duration,
}

impl Default for CallParams {
    fn default() -> Self {
        Self {
            rate: Bitrate::from_bps(80_000).unwrap_or(Bitrate::MAX),
            packet: Bytes::new(200),
            on: Duration::from_millis(1004),
            off: Duration::from_millis(1587),
        }
    }
}

impl CallParams {
    /// The source of each direction.
    fn source(&self) -> UdpParams {
        UdpParams {
            udp: Pattern::OnOff,
            rate: self.rate,
            jitter: Probability::new(0.0).expect("a probability"),
            on: Some(self.on),
            off: Some(self.off),
            ..UdpParams::datagrams(self.packet)
        }
    }
}

/// A call.
///
/// ## Deviations
/// - Each direction is on and off by itself: nobody waits for the other one.
#[derive(Clone, Copy, Debug)]
pub struct Call;

impl Block for Call {
    type Params = CallParams;
    const NAME: &'static str = "call";
    const SUMMARY: &'static str = "Speech over UDP in both directions, on and off, as G.711 sends it";
    const ORIGIN: Origin = Origin::published(1993, "ITU-T P.59 and G.711");
    const BATCHED: bool = true;

    fn check(params: &CallParams) -> Result<(), UnitError> {
        params.source().check()
    }
}

impl Application for Call {
    const MEASURES: &'static [UserMeasure] = &[];

    fn new(_: &CallParams, _: Rng) -> Self {
        Self
    }

    fn carrier(params: &CallParams) -> Carrier {
        Carrier::Sources(params.source())
    }
}

/// The sources act by themselves, and the E-model rates what becomes of their packets.
impl User for Call {
    fn on_event(&mut self, _: UserEvent, _: &mut Commands<'_>) {}
    fn finish(&mut self, _: &mut Commands<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::super::testing::params;
    use super::*;

    #[test]
    fn a_packet_of_g_711_each_20_ms() {
        let Carrier::Sources(source) = Call::carrier(&params::<Call>("")) else { unreachable!() };
        assert_eq!(source.rate.time_of(source.packet), Duration::from_millis(20));
        let refused = Call::check(&serde_json::from_str(r#"{"on": "1us"}"#).unwrap()).unwrap_err();
        assert!(refused.to_string().contains("on"));
    }
}

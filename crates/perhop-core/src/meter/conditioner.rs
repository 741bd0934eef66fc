//! Traffic conditioner: a meter, and an action for each color that it gives (RFC 2475, section 2.3.3).
//!
//! A meter only measures. A policer is a conditioner that drops the packets of some colors: the meters of RFC
//! 2697, RFC 2698 and RFC 4115 need nothing else for their conform, exceed and violate actions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyMeter, Meter, MeterParams};
use crate::control::Message;
use crate::units::{UnitError, keeps};
use crate::{Bitrate, Color, Context, Environment, Header, Instant, PseudoCode, Reason, Rng};

/// What happens to packets out of profile, behind a meter of two colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Out {
    /// Packets out of profile are marked, and go on.
    #[default]
    Mark,
    /// Packets out of profile are dropped where the meter is (a policer).
    Drop,
}

/// What happens to packets out of profile, behind a meter of three colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutOfThree {
    /// Packets out of profile are marked, and go on.
    #[default]
    Mark,
    /// Red packets are dropped where the meter is (a policer); yellow ones are marked, and go on.
    DropRed,
    /// Yellow and red packets are dropped where the meter is (a policer).
    Drop,
}

/// What happens to a packet of some color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The packet is marked with the color, and goes on.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// An action for each color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions([Action; 3]);

/// What becomes of a packet at a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The color that it was given.
    pub color: Color,
    /// Why it is dropped; `None` if it goes on, marked with the color.
    pub dropped: Option<Reason>,
}

/// A meter with its random stream, and an action for each color.
#[derive(Clone, Debug)]
pub struct Conditioner {
    meter: AnyMeter,
    actions: Actions,
    rng: Rng,
}

impl Actions {
    /// Returns the action for packets of this color. It borrows: the compiler would put a copy on the stack
    /// for each packet.
    #[inline]
    pub const fn of(&self, color: Color) -> Action {
        self.0[color.index()]
    }

    /// Returns whether packets of some color are dropped.
    pub fn drop_any(&self) -> bool {
        self.0.contains(&Action::Drop)
    }
}

impl From<Out> for Actions {
    fn from(out: Out) -> Self {
        match out {
            Out::Mark => Self([Action::Mark; 3]),
            Out::Drop => Self([Action::Mark, Action::Drop, Action::Drop]),
        }
    }
}

impl From<OutOfThree> for Actions {
    fn from(out: OutOfThree) -> Self {
        match out {
            OutOfThree::Mark => Out::Mark.into(),
            OutOfThree::DropRed => Self([Action::Mark, Action::Mark, Action::Drop]),
            OutOfThree::Drop => Out::Drop.into(),
        }
    }
}

impl Conditioner {
    /// Returns the conditioner of a profile, to which packets can come at `rate`.
    pub fn new(params: &MeterParams, rate: Bitrate, rng: Rng) -> Self {
        Self { meter: params.clone().build(Environment { rate }), actions: params.actions(), rng }
    }

    /// Gives the meter these parameters from now on; it keeps its tokens and what it has measured; packets
    /// can come to it at `rate`.
    ///
    /// # Errors
    /// The parameters are of another meter, or the key that cannot change; nothing has changed then, but the
    /// meter is up to date.
    pub fn retune(&mut self, params: &MeterParams, rate: Bitrate, now: Instant) -> Result<(), UnitError> {
        keeps("out", params.actions() == self.actions)?;
        self.meter.settle(now);
        self.meter.retune(params.clone(), Environment { rate })
    }

    /// Returns what becomes of the next packet, which comes at `now`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each metered packet comes through here")]
    pub fn judge(&mut self, packet: &Header, now: Instant) -> Verdict {
        let cx = &mut Context { now, rng: &mut self.rng };
        let color = self.meter.color_inlined(packet, cx);
        let dropped = match self.actions.of(color) {
            Action::Mark => None,
            Action::Drop => Some(Reason::Policed),
        };
        Verdict { color, dropped }
    }

    /// Passes a control message to the meter.
    pub fn on_message(&mut self, message: &Message) {
        self.meter.on_message(message);
    }
}

/// A meter and the action for packets out of profile as pseudo-code.
pub const POLICER: PseudoCode = PseudoCode {
    lines: &[
        "for each packet that comes to the meter:",
        "    if it is in profile: give it its color, pass",
        "    else: drop (policed)",
    ],
    acts: &[(Reason::Policed, &[2])],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

    /// What becomes of 1000-byte packets that come at these times.
    fn judge<const N: usize>(name: &str, table: &str, nanos: [u64; N]) -> [Verdict; N] {
        let mut read = serde_json::Deserializer::from_str(table);
        let params = MeterParams::deserialize_named(name, &mut read).unwrap().unwrap();
        let mut conditioner = Conditioner::new(&params, Bitrate::MAX, Rng::stream(1, "conditioner"));
        nanos.map(|nanos| conditioner.judge(&Header::new(FlowId(0), 1000), Instant::from_nanos(nanos)))
    }

    const GREEN: Verdict = marked(Color::Green);
    const DROPPED: Verdict = dropped(Color::Yellow);

    const fn marked(color: Color) -> Verdict {
        Verdict { color, dropped: None }
    }

    const fn dropped(color: Color) -> Verdict {
        Verdict { color, dropped: Some(Reason::Policed) }
    }

    #[test]
    fn a_token_bucket_polices_by_hand() {
        // 1 Mbit/s fills 1000 bytes in 8 ms; the bucket holds two packets and starts full. A packet that is
        // dropped takes no tokens.
        let table = r#"{"rate": "1Mbps", "burst": "2kB", "out": "drop"}"#;
        let at = [
            0,
            0,
            0,
            7_999_999,
            8_000_000,
            8_000_000,
            16_000_000,
            1_000_000_000,
            1_000_000_000,
            1_000_000_000,
        ];
        let expected = [GREEN, GREEN, DROPPED, DROPPED, GREEN, DROPPED, GREEN, GREEN, GREEN, DROPPED];
        assert_eq!(judge("token-bucket", table, at), expected);
    }

    #[test]
    fn a_sliding_window_polices_by_hand() {
        // W = 1 s and 8000 bits: R is 8000 bit/s at once, 16000 after a second packet at once, and (16000 +
        // 8000) / 2 a second later; the packets that are dropped count, too.
        let table = r#"{"rate": "8kbps", "rule": "deterministic", "initial": "zero", "out": "drop"}"#;
        let at = [0, 0, 1_000_000_000, 3_000_000_000];
        // At last (12000 + 8000) / 3 = 6667.
        assert_eq!(judge("tsw", table, at), [GREEN, DROPPED, DROPPED, GREEN]);
    }

    #[test]
    fn three_colors_are_dropped_as_the_key_says() {
        // A window so short that the short-term rule always says OUT; the long-term estimate of 10 s is 800 n
        // bit/s after n packets at once, so the first packet is OUT-IN and the second OUT-OUT.
        let judged = |out: &str| {
            let rules =
                r#""rule": "deterministic", "initial": "zero", "split": "threshold", "window": "1ms""#;
            judge("three-precedence", &format!(r#"{{"rate": "1kbps", {rules}, "out": "{out}"}}"#), [0, 0])
        };
        let (yellow, red) = (marked(Color::Yellow), dropped(Color::Red));
        assert_eq!(judged("mark"), [yellow, marked(Color::Red)]);
        assert_eq!(judged("drop-red"), [yellow, red]);
        assert_eq!(judged("drop"), [DROPPED, red]);
    }

    #[test]
    fn a_meter_of_two_colors_has_no_red_packets_to_drop() {
        let mut read = serde_json::Deserializer::from_str(r#"{"rate": "1Mbps", "out": "drop-red"}"#);
        let refused = MeterParams::deserialize_named("tsw", &mut read).unwrap().unwrap_err().to_string();
        assert!(refused.contains("unknown variant `drop-red`, expected `mark` or `drop`"), "{refused}");
    }
}

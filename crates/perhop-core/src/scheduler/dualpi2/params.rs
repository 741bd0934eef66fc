//! Parameters of `DualPI2`: what they are by default, which contradict each other, and which have no effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::QueueProtectionParams;
use crate::aqm::{check_gains, check_target};
use crate::units::defaults::{above_zero, bytes, micros, millis};
use crate::units::{AboveZero, UnitError, require};
use crate::{Bitrate, Bytes, Codepoints, Depth, Duration, KeysWithoutEffect, Probability, idle_keys};

/// The parts of which `classic-share` is a whole number.
pub(super) const PARTS: f64 = 10_000.0;

/// The least derived limit, in bytes: twice the first window of today's TCP (RFC 6928), in packets of 1500
/// bytes. What a slow link sends in 250 ms (RFC 9332, appendix A.1) holds less than one packet.
const LEAST_ROOM: u128 = 2 * 10 * 1500;

/// Whose details `DualPI2` follows where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualPi2Law {
    /// RFC 9332, appendix A.
    #[default]
    Rfc,
    /// Linux's `dualpi2`.
    Linux,
}

/// Which of the two queues sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualPi2Order {
    /// Weighted round robin: the classic queue gets at least `classic-share` of the link.
    #[default]
    WeightedRoundRobin,
    /// The packet that has waited longer, where an L4S packet's time counts `shift` more.
    TimeShiftedFifo,
}

/// What happens when marking each L4S packet is not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overload {
    /// Packets are dropped, with p'^2 in both queues, whether they are ECN-capable or not.
    #[default]
    Drop,
    /// The base probability stays at 1/k, and the queues grow up to `limit`.
    Overflow,
}

/// Parameters of [`DualPi2`](super::DualPi2).
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DualPi2Params {
    /// The queueing delay that the controller aims at.
    #[serde(default = "millis::<15>")]
    pub target: Duration,
    /// The largest round-trip time of the traffic, from which `interval`, `alpha` and `beta` follow
    /// (`RTT_max`). With `law = "linux"` they are constants, and this has no effect.
    #[serde(default = "millis::<100>")]
    pub rtt_max: Duration,
    /// How often the base probability is updated (Tupdate), at least 1 ms. Default: the target, or a third of
    /// `rtt-max` if that is less; 16 ms with `law = "linux"`.
    pub interval: Option<Duration>,
    /// The integral gain in Hz. Default: 0.1 interval / rtt-max^2; 41/256 with `law = "linux"`.
    pub alpha: Option<AboveZero>,
    /// The proportional gain in Hz. Default: 0.3 / rtt-max; 819/256 with `law = "linux"`.
    pub beta: Option<AboveZero>,
    /// The coupling factor: L4S packets are marked with k times the base probability (k).
    #[serde(default = "above_zero::<2>")]
    pub k: AboveZero,
    /// The sojourn time from which L4S packets are marked (minTh). Default: 800us; 1ms with `law = "linux"`.
    pub step: Option<Duration>,
    /// Over how much more sojourn time the share of marked L4S packets rises to all (range). Default: 400us;
    /// with `law = "linux"` all are marked above `step`, and this has no effect.
    #[serde(default = "micros::<400>")]
    pub range: Duration,
    /// L4S packets are not marked for their sojourn time while no more packets wait, they included
    /// (`Th_len`); with 0, those that wait alone are marked, too. Default: 1; 0 with `law = "linux"`
    /// (`min_qlen_step`).
    pub step_length: Option<u32>,
    /// Which of the two queues sends next.
    #[serde(default)]
    pub order: DualPi2Order,
    /// The share of the link that the classic queue gets at least. Default: 0.0625; 0.1 with `law = "linux"`.
    pub classic_share: Option<Probability>,
    /// By how much L4S packets go before classic ones, with `order = "time-shifted-fifo"`.
    #[serde(default = "millis::<50>")]
    pub shift: Duration,
    /// The room in both queues together, in packets, in bytes, or as a time (`50ms`) at the rate of the link.
    /// Default: what the link sends in 250 ms, and at least 30 kB; `10000p` with `law = "linux"`.
    #[schemars(with = "Option<crate::units::Limit>")]
    pub limit: Option<Depth>,
    /// What happens when marking each L4S packet is not enough.
    #[serde(default)]
    pub overload: Overload,
    /// The largest packet: from it follows where round robin begins, and with `law = "linux"` how much must
    /// wait for the controller to decide. With `order = "time-shifted-fifo"` and the RFC's law it has no
    /// effect.
    #[serde(default = "bytes::<1500>")]
    pub mtu: Bytes,
    /// Codepoints whose packets join the L4S queue, too, whatever their ECN field, such as 45,
    /// Non-Queue-Building (RFC 9956). Those that are not ECN-capable are dropped where others are marked.
    pub l4s_dscp: Option<Codepoints>,
    /// Redirects packets of flows that build a queue in the L4S queue to the classic one (RFC 9957): `{}` for
    /// its defaults.
    pub queue_protection: Option<QueueProtectionParams>,
    /// Whose details to follow where RFC 9332 and Linux differ.
    #[serde(default)]
    pub law: DualPi2Law,
}

impl DualPi2Params {
    /// See [`Block::check`](crate::Block::check).
    pub(super) fn check(&self) -> Result<(), UnitError> {
        let text = "a round-trip time is at least 3ms, such as 100ms";
        require(self.rtt_max >= Duration::from_millis(3), "rtt-max", text)?;
        let key = if self.interval.is_some() { "interval" } else { "target" };
        let text = "the base probability is updated once in 1ms at most: write a longer time, such as 15ms";
        require(self.interval() >= Duration::from_millis(1), key, text)?;
        let text = "a share lies between 0.0001 and 0.9999, such as 0.0625: neither queue may starve";
        require((1..PARTS as i64).contains(&self.parts()), "classic-share", text)?;
        require(self.k.get() <= 100.0, "k", "the coupling factor is at most 100, such as 2")?;
        check_target(self.target, "15ms")?;
        check_gains(self.alpha, self.beta)?;
        self.queue_protection.as_ref().map_or(Ok(()), QueueProtectionParams::check)
    }

    /// Returns the parameters that have no effect beside the others: each with its key and the reason.
    pub(super) fn without_effect(&self) -> KeysWithoutEffect {
        let (linux, shifted) = (self.is_linux(), self.order == DualPi2Order::TimeShiftedFifo);
        let has_rtt = self.rtt_max != millis::<100>();
        let given = self.interval.is_some() && self.alpha.is_some() && self.beta.is_some();
        let shift = "it acts with `order = \"time-shifted-fifo\"` only; leave it out";
        let share = "it acts with `order = \"weighted-round-robin\"` only; leave it out";
        let mtu = "it acts with `order = \"weighted-round-robin\"` or `law = \"linux\"` only; leave it out";
        let constants = "with `law = \"linux\"` the defaults of `interval`, `alpha` and `beta` are constants; leave it out";
        let all_given = "only defaults follow from it, and `interval`, `alpha` and `beta` are all given";
        let range = "with `law = \"linux\"` all packets above `step` are marked; leave it out";
        idle_keys([
            (!shifted && self.shift != millis::<50>(), "shift", shift),
            (shifted && self.classic_share.is_some(), "classic-share", share),
            (shifted && !linux && self.mtu != bytes::<1500>(), "mtu", mtu),
            (has_rtt && linux, "rtt-max", constants),
            (has_rtt && !linux && given, "rtt-max", all_given),
            (linux && self.range != micros::<400>(), "range", range),
        ])
    }

    /// Returns whether Linux's law holds.
    pub(super) const fn is_linux(&self) -> bool {
        matches!(self.law, DualPi2Law::Linux)
    }

    /// Returns the interval of updates (Tupdate).
    pub(super) fn interval(&self) -> Duration {
        let third = Duration::from_nanos(self.rtt_max.as_nanos() / 3);
        let derived = if self.is_linux() { Duration::from_millis(16) } else { self.target.min(third) };
        self.interval.unwrap_or(derived)
    }

    /// Returns alpha and beta.
    pub(super) fn gains(&self) -> (f64, f64) {
        let rtt = self.rtt_max.as_secs_f64();
        let (alpha, beta) = if self.is_linux() {
            (41.0 / 256.0, 819.0 / 256.0)
        } else {
            (0.1 * self.interval().as_secs_f64() / (rtt * rtt), 0.3 / rtt)
        };
        (self.alpha.map_or(alpha, AboveZero::get), self.beta.map_or(beta, AboveZero::get))
    }

    /// Returns the sojourn time above which packets of the L4S queue are marked.
    pub(super) fn step(&self) -> Duration {
        self.step.unwrap_or(if self.is_linux() {
            Duration::from_millis(1)
        } else {
            Duration::from_nanos(800_000)
        })
    }

    /// Returns the length up to which packets are not marked for their sojourn time (`Th_len`).
    pub(super) fn step_length(&self) -> usize {
        self.step_length.unwrap_or_else(|| u32::from(!self.is_linux())) as usize
    }

    /// Returns the classic queue's parts of the link, of [`PARTS`].
    pub(super) fn parts(&self) -> i64 {
        let share = self.classic_share.map_or(if self.is_linux() { 0.1 } else { 0.062_5 }, Probability::get);
        (share * PARTS).round() as i64
    }

    /// Returns the room in both queues together on a link of this rate.
    pub(super) fn room(&self, rate: Bitrate) -> Depth {
        let of_link = (u128::from(rate.as_bps()) / 8 / 4).max(LEAST_ROOM);
        let derived = if self.is_linux() {
            Depth::Packets(10_000)
        } else {
            Depth::Bytes(u64::try_from(of_link).unwrap_or(u64::MAX))
        };
        self.limit.unwrap_or(derived)
    }
}

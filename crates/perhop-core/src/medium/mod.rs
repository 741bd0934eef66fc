//! Links that change, lose and reorder packets: scheduled rates and delays, outages, random and bursty loss,
//! jitter.

mod dispatch;
mod rate_trace;
mod state;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curves::Convex;
use crate::measure::{RateChange, RateHistory};
use crate::units::{UnitError, defaults, require};
use crate::{Bitrate, Bytes, Duration, Instant, Probability};

pub use self::dispatch::Dispatch;
pub use self::rate_trace::{Opportunities, RateTrace, Rates};
pub use self::state::{LinkEvent, MediumState};

/// How one direction of a link changes in a run, and which packets it loses and delays; neither by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Medium {
    /// The rate of the link over time, in place of its own.
    pub trace: Option<Arc<RateTrace>>,
    /// Changes of the link's rate and delay, in the order of time.
    pub changes: Vec<Change>,
    /// Times at which the link sends nothing, in order, apart from each other.
    pub outages: Vec<Outage>,
    /// The probability that the link loses a packet, each independently.
    pub loss: Option<Probability>,
    /// Losses in bursts, beside these.
    pub burst_loss: Option<GilbertElliott>,
    /// A random delay of each packet.
    pub jitter: Option<Jitter>,
}

impl Medium {
    /// Adds the changes of the link's rate and its outages to a history.
    pub fn note_rates(&self, rates: &mut RateHistory) {
        let at = |time| Instant::ZERO + time;
        for change in &self.changes {
            if let Some(rate) = change.rate {
                rates.add(at(change.at), RateChange::Rate(rate));
            }
        }
        for outage in &self.outages {
            rates.add(at(outage.from), RateChange::Down);
            rates.add(at(outage.to), RateChange::Up);
        }
    }

    /// Returns the least and the greatest rate of a link of this rate within this time, outages aside.
    pub fn rates_within(&self, rate: Bitrate, time: Duration) -> (Bitrate, Bitrate) {
        let mut rates: Vec<Bitrate> = if let Some(trace) = &self.trace {
            trace.rates_by(time).filter_map(|bps| Bitrate::from_bps(bps).ok()).collect()
        } else {
            let changes = self.changes.iter().filter(|change| change.at < time);
            let is_kept = changes.clone().all(|change| !change.at.is_zero() || change.rate.is_none());
            is_kept.then_some(rate).into_iter().chain(changes.filter_map(|change| change.rate)).collect()
        };
        rates.sort_unstable();
        (rates.first().copied().unwrap_or(rate), rates.last().copied().unwrap_or(rate))
    }

    /// Returns the least that a link of this rate sends in any time during which packets wait, whatever it
    /// changes to: all outages may lie within that time.
    pub fn least_service(&self, rate: Bitrate) -> Convex {
        let rounded = Duration::from_nanos(2);
        let (least, _) = self.rates_within(rate, Duration::AGES);
        let steady = match &self.trace {
            Some(trace) => trace.least_service(),
            None => Convex::rate_latency(least, rounded),
        };
        let down = self.outages.iter().fold(Duration::ZERO, |sum, outage| sum + (outage.to - outage.from));
        steady.later(down)
    }

    /// Returns by how much longer a packet may take on the way than another one, besides its transmission, on
    /// a link of this delay; `None` without a bound.
    pub fn most_jitter(&self, delay: Duration) -> Option<Duration> {
        let delays = self.changes.iter().filter_map(|change| change.delay).chain([delay]);
        let (least, most) = delays.fold((delay, delay), |(least, most), one| (least.min(one), most.max(one)));
        let drawn = match self.jitter {
            None => Duration::ZERO,
            // A packet that would overtake waits for the next nanosecond.
            Some(jitter) => jitter.max? + Duration::from_nanos(u64::from(!jitter.reorder)),
        };
        Some(drawn + (most - least))
    }

    /// Returns whether the link never changes, loses nothing and delays all packets alike.
    pub fn is_constant(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the link loses packets.
    pub fn is_lossy(&self) -> bool {
        self.loss.is_some() || self.burst_loss.is_some()
    }

    /// Returns whether rate and delay are always the same, but for jitter.
    pub fn is_steady(&self) -> bool {
        self.trace.is_none() && self.changes.is_empty() && self.outages.is_empty()
    }

    /// Returns the least delay of a link of this delay, whatever it changes to.
    pub fn least_delay(&self, delay: Duration) -> Duration {
        self.changes.iter().filter_map(|change| change.delay).fold(delay, Duration::min)
    }

    /// Returns the least time in which a packet of at least this size passes a link of this rate and this
    /// delay, whatever these change to.
    pub fn least_passage(&self, (rate, delay): (Bitrate, Duration), smallest: Bytes) -> Duration {
        let delay = self.least_delay(delay);
        if self.trace.is_some() {
            return delay; // An opportunity takes no time.
        }
        let rate = self.changes.iter().filter_map(|change| change.rate).fold(rate, Bitrate::max);
        delay + rate.time_of(smallest)
    }

    /// Returns whether two packets arrive no closer to one another than the link takes to send the later one.
    pub fn keeps_intervals(&self) -> bool {
        self.is_steady() && self.jitter.is_none()
    }

    /// Returns whether a packet can arrive before one that was sent earlier.
    pub fn reorders(&self) -> bool {
        match self.jitter {
            Some(jitter) => jitter.reorder,
            None => self.changes.iter().any(|change| change.delay.is_some()),
        }
    }
}

/// A change of a link.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Change {
    /// When, from the start of the run.
    pub at: Duration,
    /// The link's rate from then on. A packet that is being sent is finished at the earlier rate. Default:
    /// unchanged.
    pub rate: Option<Bitrate>,
    /// The link's propagation delay from then on. Packets that have been sent or are being sent keep the
    /// earlier delay, so after a step down later packets can overtake them. Default: unchanged.
    pub delay: Option<Duration>,
}

/// A time during which a link begins to send no packet. A packet that is being sent when it begins is
/// finished; others wait in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// When it begins, from the start of the run.
    pub from: Duration,
    /// When it ends.
    pub to: Duration,
}

/// Losses in bursts (Gilbert 1960, Elliott 1963; `netem loss gemodel`).
///
/// The link alternates between a good and a bad state, with one step a packet. A share
/// `good-to-bad / (good-to-bad + bad-to-good)` of the packets meets the bad state, for `1 / bad-to-good`
/// packets in a row on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GilbertElliott {
    /// Probability that the bad state follows a packet that met the good state.
    pub good_to_bad: Probability,
    /// Probability that the good state follows a packet that met the bad state; above 0.
    pub bad_to_good: Probability,
    /// Loss probability of a packet in the good state.
    #[serde(default = "defaults::probability::<0, 1>", skip_serializing_if = "is_never")]
    pub loss_good: Probability,
    /// Loss probability of a packet in the bad state.
    #[serde(default = "defaults::probability::<1, 1>")]
    pub loss_bad: Probability,
}

/// A random delay of each packet beside the link's own, drawn independently.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Jitter {
    /// The distribution of the delay.
    pub distribution: Distribution,
    /// The longest delay: the end of `uniform`; an `exponential` or `normal` delay beyond it is drawn again.
    /// Default: no bound.
    pub max: Option<Duration>,
    /// The mean of `exponential` and `normal`, before the bounds.
    pub mean: Option<Duration>,
    /// The standard deviation of `normal`, before the bounds: at most the mean.
    pub sd: Option<Duration>,
    /// Whether a packet may arrive before one that was sent earlier. Otherwise it waits, and arrives 1 ns
    /// after that one at the earliest; so packets arrive in bunches behind a late one, and the mean delay is
    /// longer than that of the distribution.
    pub reorder: bool,
}

/// A distribution of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Uniform from 0 to `max`.
    Uniform,
    /// Exponential with this `mean`: few packets are much later than most.
    Exponential,
    /// Normal with this `mean` and `sd`. A delay below 0 is drawn again.
    Normal,
}

impl Jitter {
    /// Checks how the keys fit together.
    ///
    /// # Errors
    /// The key that does not fit, and what would.
    pub fn check(&self) -> Result<(), UnitError> {
        let Self { distribution, max, mean, sd, .. } = *self;
        let (name, wanted) = match distribution {
            Distribution::Uniform => ("uniform", [true, false, false]),
            Distribution::Exponential => ("exponential", [max.is_some(), true, false]),
            Distribution::Normal => ("normal", [max.is_some(), true, true]),
        };
        for ((key, given), wanted) in [("max", max), ("mean", mean), ("sd", sd)].into_iter().zip(wanted) {
            let why = format!("a jitter that is `{name}` needs `{key}`, such as 5ms");
            require(given.is_some() || !wanted, key, why)?;
            let why = format!("a jitter that is `{name}` has no `{key}`: leave this key out");
            require(given.is_none() || wanted, key, why)?;
            let why = format!("`{key}` is above 0, such as 5ms; without jitter, leave `jitter` out");
            require(given.is_none_or(|given| !given.is_zero()), key, why)?;
        }
        // So a draw lies within the bounds soon.
        if let Some((max, mean)) = max.zip(mean) {
            let why = format!("no delay is longer than `max`: at least the mean, {mean}");
            require(max >= mean, "max", why)?;
        }
        if let Some((sd, mean)) = sd.zip(mean) {
            let why =
                format!("no delay is below 0, so `sd` is at most the mean, {mean}; or take `exponential`");
            require(sd <= mean, "sd", why)?;
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_never(probability: &Probability) -> bool {
    probability.get() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_jitter_belong_to_their_distribution() {
        for (keys, refused) in [
            (r#""distribution": "uniform", "mean": "2ms""#, "max"),
            (r#""distribution": "uniform", "max": "2ms", "mean": "2ms""#, "mean"),
            (r#""distribution": "uniform", "max": "0s""#, "max"),
            (r#""distribution": "exponential", "max": "2ms""#, "mean"),
            (r#""distribution": "exponential", "mean": "2ms", "max": "1ms""#, "max"),
            (r#""distribution": "normal", "mean": "2ms""#, "sd"),
            (r#""distribution": "normal", "mean": "2ms", "sd": "3ms""#, "sd"),
        ] {
            let jitter: Jitter = serde_json::from_str(&format!(r#"{{{keys}, "reorder": true}}"#)).unwrap();
            assert_eq!(jitter.check().unwrap_err().key(), refused, "{keys}");
        }
    }

    #[test]
    fn the_least_passage_has_the_shortest_delay_and_the_highest_rate() {
        let change = |rate, delay: Option<u64>| Change {
            at: Duration::ZERO,
            rate: Bitrate::from_bps(rate).ok(),
            delay: delay.map(Duration::from_millis),
        };
        let mut medium = Medium {
            changes: vec![change(1_000_000, Some(2)), change(16_000_000, None), change(2_000_000, Some(9))],
            ..Medium::default()
        };
        let own = (Bitrate::from_bps(8_000_000).unwrap(), Duration::from_millis(5));
        let least = |medium: &Medium| medium.least_passage(own, Bytes::new(1000));
        assert_eq!(least(&Medium::default()), Duration::from_millis(6));
        assert_eq!(least(&medium), Duration::from_nanos(2_500_000));
        medium.trace =
            Some(Arc::new(RateTrace::Rates(Rates::new(vec![(Duration::ZERO, 1_000)], false).unwrap())));
        assert_eq!(least(&medium), Duration::from_millis(2));
    }
}

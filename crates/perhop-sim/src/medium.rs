//! Links that change and lose packets: scheduled rates and delays, outages, random and bursty loss.

use std::collections::VecDeque;

use perhop_core::{Bitrate, Duration, Instant, Probability, Rng, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one direction of a link changes during a run, and which packets it loses. The default does neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Medium {
    /// Changes of its rate and delay, in the order of time.
    pub changes: Vec<Change>,
    /// Times at which it sends nothing, in order, apart from each other.
    pub outages: Vec<Outage>,
    /// The probability that it loses a packet, each independently.
    pub loss: Option<Probability>,
    /// Losses in bursts, beside these.
    pub burst_loss: Option<GilbertElliott>,
}

impl Medium {
    /// It never changes and loses nothing.
    pub fn is_constant(&self) -> bool {
        *self == Self::default()
    }

    /// It loses packets.
    pub fn is_lossy(&self) -> bool {
        self.loss.is_some() || self.burst_loss.is_some()
    }
}

/// A change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Change {
    /// When, from the start of the run.
    pub at: Duration,
    /// The link's rate from then on. A packet that is being sent is finished at the earlier rate. Default: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bitrate>,
    /// The link's propagation delay from then on. Packets that have been sent or are being sent keep the earlier delay, so after a
    /// step down later packets can overtake them. Default: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

/// A time during which a link begins to send no packet. A packet that is being sent when it begins is finished; others wait in the
/// queue.
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
/// The link alternates between a good and a bad state, with one step a packet. A share `good-to-bad / (good-to-bad + bad-to-good)` of the packets meets the bad state, for `1 / bad-to-good` packets in a row on
/// average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GilbertElliott {
    /// Probability that the bad state follows a packet that met the good state.
    pub good_to_bad: Probability,
    /// Probability that the good state follows a packet that met the bad state; above 0.
    pub bad_to_good: Probability,
    /// Loss probability of a packet in the good state.
    #[serde(default = "never", skip_serializing_if = "is_never")]
    pub loss_good: Probability,
    /// Loss probability of a packet in the bad state.
    #[serde(default = "always")]
    pub loss_bad: Probability,
}

fn never() -> Probability {
    Probability::new(0.0).expect("a probability")
}

fn always() -> Probability {
    Probability::new(1.0).expect("a probability")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_never(probability: &Probability) -> bool {
    *probability == never()
}

/// What happens to a link at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Rate(Bitrate),
    Delay(Duration),
    /// An outage begins.
    Down,
    /// It is over.
    Up,
}

/// The state of a [`Medium`] during a run.
#[derive(Clone, Debug)]
pub(crate) struct MediumState {
    /// Still to come, in the order of time.
    events: VecDeque<(Instant, Event)>,
    loss: LossProcess,
}

impl MediumState {
    /// The state at time zero; `None` for a medium that never changes and loses nothing.
    pub(crate) fn new(medium: &Medium, streams: Streams<'_>) -> Option<Box<Self>> {
        if medium.is_constant() {
            return None;
        }
        let at = |time| Instant::ZERO + time;
        let changes = medium.changes.iter().flat_map(|change| {
            let events = [change.rate.map(Event::Rate), change.delay.map(Event::Delay)];
            events.into_iter().flatten().map(move |event| (at(change.at), event))
        });
        let outages = medium.outages.iter();
        let outages = outages.flat_map(|outage| [(at(outage.from), Event::Down), (at(outage.to), Event::Up)]);
        let mut events: Vec<_> = changes.chain(outages).collect();
        events.sort_by_key(|&(at, _)| at);
        let loss = LossProcess::new(medium, streams.of("medium"));
        Some(Box::new(Self { events: events.into(), loss }))
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.events.front().map(|&(at, _)| at)
    }

    /// What happens by `now`, one after the other.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Event> {
        let &(_, event) = self.events.front().filter(|&&(at, _)| at <= now)?;
        self.events.pop_front();
        Some(event)
    }

    /// The next packet is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.loss.loses()
    }
}

/// Which packets a link loses.
#[derive(Clone, Debug)]
struct LossProcess {
    random: Option<Probability>,
    bursts: Option<GilbertElliott>,
    is_bad: bool,
    rng: Rng,
}

impl LossProcess {
    /// It begins in the steady state.
    fn new(medium: &Medium, mut rng: Rng) -> Self {
        let is_bad = medium.burst_loss.is_some_and(|GilbertElliott { good_to_bad, bad_to_good, .. }| {
            let (to_bad, to_good) = (good_to_bad.get(), bad_to_good.get());
            to_bad > 0.0 && rng.chance(to_bad / (to_bad + to_good))
        });
        Self { random: medium.loss, bursts: medium.burst_loss, is_bad, rng }
    }

    fn loses(&mut self) -> bool {
        let random = self.random.is_some_and(|probability| self.rng.chance(probability.get()));
        let Some(GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }) = self.bursts else {
            return random;
        };
        let (loss, leave) = if self.is_bad { (loss_bad, bad_to_good) } else { (loss_good, good_to_bad) };
        let in_burst = self.rng.chance(loss.get());
        self.is_bad ^= self.rng.chance(leave.get());
        random || in_burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(loss: &str, packets: usize) -> Vec<bool> {
        let bursts: serde_json::Value = serde_json::from_str(loss).unwrap();
        let medium = Medium {
            loss: bursts["random"].as_f64().map(|loss| Probability::new(loss).unwrap()),
            burst_loss: serde_json::from_value(bursts["bursts"].clone()).unwrap(),
            ..Medium::default()
        };
        let mut process = LossProcess::new(&medium, Rng::stream(1, "links/test/medium"));
        (0..packets).map(|_| process.loses()).collect()
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|&&lost| lost).count() as f64 / losses.len() as f64
    }

    #[test]
    fn random_losses_have_their_probability_and_no_memory() {
        let losses = losses(r#"{"random": 0.02}"#, 1_000_000);
        // Standard error 0.00014.
        assert!((share(&losses) - 0.02).abs() < 6e-4, "{}", share(&losses));
        let after: Vec<bool> = losses.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!((share(&after) - 0.02).abs() < 6e-3, "{}", share(&after));
    }

    #[test]
    fn bursts_have_the_share_and_the_length_of_the_chain() {
        // Bad: 0.01 / (0.01 + 0.25) = 1/26 of the packets, 4 in a row.
        let simple = losses(r#"{"bursts": {"good-to-bad": 0.01, "bad-to-good": 0.25}}"#, 1_000_000);
        let bursts = simple.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let lost = share(&simple) * 1e6;
        assert!((share(&simple) - 1.0 / 26.0).abs() < 2e-3, "{}", share(&simple));
        assert!((lost / bursts - 4.0).abs() < 0.15, "{}", lost / bursts);
        // 25/26 × 0.001 + 1/26 × 0.5 = 0.020192.
        let table = r#"{"bursts":
            {"good-to-bad": 0.01, "bad-to-good": 0.25, "loss-good": 0.001, "loss-bad": 0.5}}"#;
        assert!((share(&losses(table, 1_000_000)) - 0.020_192).abs() < 1.5e-3);
        // Both: 1 - (1 - 1/26) × 0.9 = 0.1346.
        let both = r#"{"random": 0.1, "bursts": {"good-to-bad": 0.01, "bad-to-good": 0.25}}"#;
        assert!((share(&losses(both, 1_000_000)) - 0.134_615).abs() < 3e-3);
    }

    #[test]
    fn certain_losses_and_none() {
        assert_eq!(share(&losses(r#"{"random": 0.0}"#, 1000)), 0.0);
        assert_eq!(share(&losses(r#"{"random": 1.0}"#, 1000)), 1.0);
        let stays_good = r#"{"bursts": {"good-to-bad": 0.0, "bad-to-good": 1.0}}"#;
        assert_eq!(share(&losses(stays_good, 1000)), 0.0);
    }

    #[test]
    fn events_come_in_the_order_of_time() {
        let seconds = Duration::from_secs;
        let rate = Bitrate::from_bps(1_000_000).unwrap();
        let change = |at, rate, delay| Change { at: seconds(at), rate, delay };
        let medium = Medium {
            changes: vec![change(1, Some(rate), None), change(5, Some(rate), Some(seconds(2)))],
            outages: vec![Outage { from: seconds(2), to: seconds(5) }],
            ..Medium::default()
        };
        let mut state = MediumState::new(&medium, Streams { seed: 1, path: "links/test" }).unwrap();
        assert_eq!(state.next(), Some(Instant::ZERO + seconds(1)));
        let mut at =
            |time| std::iter::from_fn(|| state.pop_due(Instant::ZERO + seconds(time))).collect::<Vec<_>>();
        assert_eq!(at(4), [Event::Rate(rate), Event::Down]);
        assert_eq!(at(5), [Event::Rate(rate), Event::Delay(seconds(2)), Event::Up]);
        assert!(MediumState::new(&Medium::default(), Streams { seed: 1, path: "links/test" }).is_none());
    }
}

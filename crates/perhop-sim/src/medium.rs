//! Links that change, lose and reorder packets: scheduled rates and delays, outages, random and bursty loss, jitter.

use std::collections::VecDeque;
use std::sync::Arc;

use perhop_core::measure::{RateChange, RateHistory, TransitCounts};
use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Bytes, Duration, Instant, Probability, Rng, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate_trace::RateTrace;

/// How one direction of a link changes during a run, and which packets it loses and delays. The default does neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Medium {
    /// Its rate over time, in place of its own.
    pub trace: Option<Arc<RateTrace>>,
    /// Changes of its rate and delay, in the order of time.
    pub changes: Vec<Change>,
    /// Times at which it sends nothing, in order, apart from each other.
    pub outages: Vec<Outage>,
    /// The probability that it loses a packet, each independently.
    pub loss: Option<Probability>,
    /// Losses in bursts, beside these.
    pub burst_loss: Option<GilbertElliott>,
    /// A random delay of each packet.
    pub jitter: Option<Jitter>,
}

impl Medium {
    /// Tells when the link has which rate, and when there are outages.
    pub(crate) fn note_rates(&self, rates: &mut RateHistory) {
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

    /// The least and the greatest rate at which a link of this rate sends within this time, outages aside.
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

    /// It never changes, loses nothing and delays all packets alike.
    pub fn is_constant(&self) -> bool {
        *self == Self::default()
    }

    /// It loses packets.
    pub fn is_lossy(&self) -> bool {
        self.loss.is_some() || self.burst_loss.is_some()
    }

    /// Its rate and its delay are always the same, but for jitter.
    pub(crate) fn is_steady(&self) -> bool {
        self.trace.is_none() && self.changes.is_empty() && self.outages.is_empty()
    }

    /// No packet of at least this size passes a link of this rate and this delay in less time, whatever these change to.
    pub(crate) fn least_passage(&self, (rate, delay): (Bitrate, Duration), smallest: Bytes) -> Duration {
        let delay = self.changes.iter().filter_map(|change| change.delay).fold(delay, Duration::min);
        if self.trace.is_some() {
            return delay; // An opportunity takes no time.
        }
        let rate = self.changes.iter().filter_map(|change| change.rate).fold(rate, Bitrate::max);
        delay + rate.time_of(smallest)
    }

    /// Two packets arrive no closer to one another than the link takes to send the later one.
    pub(crate) fn keeps_intervals(&self) -> bool {
        self.is_steady() && self.jitter.is_none()
    }

    /// A packet can arrive before one that was sent earlier.
    pub(crate) fn reorders(&self) -> bool {
        match self.jitter {
            Some(jitter) => jitter.reorder,
            None => self.changes.iter().any(|change| change.delay.is_some()),
        }
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

/// A random delay of each packet beside the link's own, drawn independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Jitter {
    /// The distribution of the delay.
    pub distribution: Distribution,
    /// The longest delay: the end of `uniform`; an `exponential` or `normal` delay beyond it is drawn again. Default: no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// The mean of `exponential` and `normal`, before the bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Duration>,
    /// The standard deviation of `normal`, before the bounds: at most the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<Duration>,
    /// Whether a packet may arrive before one that was sent earlier. Otherwise it waits, and arrives 1 ns after that one at the earliest; so packets
    /// arrive in bunches behind a late one, and the mean delay is longer than that of the distribution.
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
    pub fn check(&self) -> Result<(), (&'static str, UnitError)> {
        let Self { distribution, max, mean, sd, .. } = *self;
        let (name, wanted) = match distribution {
            Distribution::Uniform => ("uniform", [true, false, false]),
            Distribution::Exponential => ("exponential", [max.is_some(), true, false]),
            Distribution::Normal => ("normal", [max.is_some(), true, true]),
        };
        for ((key, given), wanted) in [("max", max), ("mean", mean), ("sd", sd)].into_iter().zip(wanted) {
            let refuse = |text: String| Err((key, UnitError::new(text)));
            match given {
                None if wanted => {
                    return refuse(format!("a jitter that is `{name}` needs `{key}`, such as 5ms"));
                }
                Some(_) if !wanted => {
                    return refuse(format!("a jitter that is `{name}` has no `{key}`: leave this key out"));
                }
                Some(given) if given.is_zero() => {
                    return refuse(format!(
                        "`{key}` is above 0, such as 5ms; without jitter, leave `jitter` out"
                    ));
                }
                _ => {}
            }
        }
        // So a draw lies within the bounds soon.
        if let Some((_, mean)) = max.zip(mean).filter(|(max, mean)| max < mean) {
            return Err((
                "max",
                UnitError::new(format!("no delay is longer than `max`: at least the mean, {mean}")),
            ));
        }
        if let Some((_, mean)) = sd.zip(mean).filter(|(sd, mean)| sd > mean) {
            let text =
                format!("no delay is below 0, so `sd` is at most the mean, {mean}; or take `exponential`");
            return Err(("sd", UnitError::new(text)));
        }
        Ok(())
    }

    /// Draws a delay; it passes [`check`](Self::check).
    fn draw(&self, rng: &mut Rng) -> Duration {
        let nanos = |given: Option<Duration>| given.unwrap_or_default().as_nanos();
        let (mean, sd) = (nanos(self.mean) as f64, nanos(self.sd) as f64);
        let most = self.max.map_or(f64::INFINITY, |max| max.as_nanos() as f64);
        let drawn = match self.distribution {
            Distribution::Uniform => return Duration::from_nanos(rng.up_to(nanos(self.max))),
            Distribution::Exponential => {
                std::iter::repeat_with(|| mean * rng.exponential()).find(|&drawn| drawn <= most)
            }
            Distribution::Normal => {
                std::iter::repeat_with(|| mean + sd * rng.normal()).find(|drawn| (0.0..=most).contains(drawn))
            }
        };
        Duration::from_nanos(drawn.expect("at least one draw in three lies within the bounds") as u64)
    }
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
    jitter: Option<(Jitter, Rng)>,
    /// The arrival of the packet that was sent last.
    last_arrival: Instant,
    order: Option<Order>,
    is_lossy: bool,
    lost: u64,
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
        Some(Box::new(Self {
            events: events.into(),
            loss: LossProcess::new(medium, streams.of("medium")),
            jitter: medium.jitter.map(|jitter| (jitter, streams.of("jitter"))),
            last_arrival: Instant::ZERO,
            order: medium.reorders().then(Order::default),
            is_lossy: medium.is_lossy(),
            lost: 0,
        }))
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

    /// When the next packet reaches the far end, which without jitter would be at `at`; `None` if it is lost. Packets come in the
    /// order in which they are sent, the next one at `now`.
    pub(crate) fn pass(&mut self, now: Instant, at: Instant) -> Option<Instant> {
        let is_lost = self.loss.loses();
        // A lost packet draws, too: the delays of the others do not depend on losses.
        let drawn = self.jitter.as_mut().map(|(jitter, rng)| (jitter.reorder, jitter.draw(rng)));
        if is_lost {
            self.lost += 1;
            return None;
        }
        let at = match drawn {
            None => at,
            Some((true, drawn)) => at + drawn,
            Some((false, drawn)) => (at + drawn).max(self.last_arrival + Duration::from_nanos(1)),
        };
        self.last_arrival = at;
        if let Some(order) = &mut self.order {
            order.record(now, at);
        }
        Some(at)
    }

    /// What became of packets so far, of those in transit what will.
    pub(crate) fn counts(&self) -> TransitCounts {
        TransitCounts {
            lost: self.is_lossy.then_some(self.lost),
            reordered: self.order.as_ref().map(|order| order.reordered),
        }
    }
}

/// Counts reordered packets: those that arrive after one that was sent later (RFC 4737).
#[derive(Clone, Debug, Default)]
struct Order {
    /// Arrivals of packets in transit that no later one has overtaken: in ascending order.
    in_order: VecDeque<Instant>,
    reordered: u64,
}

impl Order {
    /// A packet is sent now, and will arrive at `at`.
    fn record(&mut self, now: Instant, at: Instant) {
        while self.in_order.front().is_some_and(|&arrival| arrival <= now) {
            self.in_order.pop_front();
        }
        while self.in_order.back().is_some_and(|&arrival| arrival > at) {
            self.in_order.pop_back();
            self.reordered += 1;
        }
        self.in_order.push_back(at);
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

    fn jitter(table: &str) -> Jitter {
        let jitter: Jitter = serde_json::from_str(table).unwrap();
        jitter.check().unwrap();
        jitter
    }

    /// Mean and standard deviation of drawn delays in milliseconds, the least and the greatest.
    fn moments(table: &str) -> [f64; 4] {
        let (jitter, mut rng, packets) = (jitter(table), Rng::stream(1, "links/test/jitter"), 200_000);
        let drawn: Vec<f64> = (0..packets).map(|_| jitter.draw(&mut rng).as_secs_f64() * 1e3).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(packets);
        let variance = drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(packets);
        let least = drawn.iter().copied().fold(f64::INFINITY, f64::min);
        [mean, variance.sqrt(), least, drawn.iter().copied().fold(0.0, f64::max)]
    }

    #[test]
    fn jitter_has_the_moments_of_its_distribution() {
        let [mean, sd, least, most] =
            moments(r#"{"distribution": "uniform", "max": "6ms", "reorder": true}"#);
        assert!((mean - 3.0).abs() < 0.02 && (sd - 3.0_f64.sqrt()).abs() < 0.02, "{mean} {sd}");
        assert!(least < 0.01 && most > 5.99 && most <= 6.0);
        let [mean, sd, ..] = moments(r#"{"distribution": "exponential", "mean": "2ms", "reorder": true}"#);
        assert!((mean - 2.0).abs() < 0.02 && (sd - 2.0).abs() < 0.03, "{mean} {sd}");
        let [mean, sd, ..] =
            moments(r#"{"distribution": "normal", "mean": "20ms", "sd": "2ms", "reorder": true}"#);
        assert!((mean - 20.0).abs() < 0.02 && (sd - 2.0).abs() < 0.02, "{mean} {sd}");
        // Between 0 and twice its mean with a deviation of the mean: symmetric; the variance 1 - 2 φ(1) / (2 Φ(1) - 1) = 0.2911.
        let [mean, sd, least, most] = moments(
            r#"{"distribution": "normal", "mean": "2ms", "sd": "2ms", "max": "4ms", "reorder": true}"#,
        );
        assert!((mean - 2.0).abs() < 0.01 && (sd - 2.0 * 0.2911_f64.sqrt()).abs() < 0.01, "{mean} {sd}");
        assert!(least >= 0.0 && most <= 4.0);
        // Below its mean: 1 - 1 / (e - 1) of it.
        let [mean, _, _, most] =
            moments(r#"{"distribution": "exponential", "mean": "2ms", "max": "2ms", "reorder": true}"#);
        assert!((mean - 2.0 * 0.418_02).abs() < 0.01 && most <= 2.0, "{mean}");
    }

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
            assert_eq!(jitter.check().unwrap_err().0, refused, "{keys}");
        }
    }

    #[test]
    fn reordered_packets_by_hand() {
        // Packets sent at 0, 1, … ms arrive at 5, 9, 7, 6, 12, 11, 20 ms: the second and third arrive after the fourth, the fifth after
        // the sixth.
        let mut order = Order::default();
        let mut seen = Vec::new();
        for (sent, arrival) in [5, 9, 7, 6, 12, 11, 20].into_iter().enumerate() {
            let at = |millis| Instant::ZERO + Duration::from_millis(millis);
            order.record(at(sent as u64), at(arrival));
            seen.push(order.reordered);
        }
        assert_eq!(seen, [0, 0, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn without_reordering_a_packet_waits_for_the_one_before() {
        let table = r#"{"distribution": "uniform", "max": "10ms", "reorder": false}"#;
        let medium = Medium { jitter: Some(jitter(table)), ..Medium::default() };
        let mut state = MediumState::new(&medium, Streams { seed: 1, path: "links/test" }).unwrap();
        let (mut before, mut waited) = (Instant::ZERO, 0);
        for packet in 0..10_000 {
            let at = Instant::ZERO + Duration::from_millis(packet);
            let arrival = state.pass(at, at).unwrap();
            assert!(arrival > before && arrival >= at && arrival <= at + Duration::from_millis(10));
            waited += u64::from(arrival == before + Duration::from_nanos(1));
            before = arrival;
        }
        assert!(waited > 5000, "{waited}");
        assert_eq!(state.counts(), TransitCounts::default());
    }

    #[test]
    fn jitter_does_not_depend_on_losses() {
        let table = r#"{"distribution": "uniform", "max": "10ms", "reorder": true}"#;
        let arrivals = |loss| {
            let medium = Medium { jitter: Some(jitter(table)), loss, ..Medium::default() };
            let mut state = MediumState::new(&medium, Streams { seed: 1, path: "links/test" }).unwrap();
            let arrivals: Vec<_> = (0..1000).map(|_| state.pass(Instant::ZERO, Instant::ZERO)).collect();
            (arrivals, state.counts().lost)
        };
        let ((all, none), (some, lost)) = (arrivals(None), arrivals(Probability::new(0.2).ok()));
        assert!(all.iter().zip(&some).all(|(one, other)| other.is_none() || one == other));
        assert_eq!(
            (none, lost),
            (None, Some(some.iter().filter(|arrival| arrival.is_none()).count() as u64))
        );
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
        medium.trace = Some(Arc::new(RateTrace::Rates(
            crate::rate_trace::Rates::new(vec![(Duration::ZERO, 1_000)], false).unwrap(),
        )));
        assert_eq!(least(&medium), Duration::from_millis(2));
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

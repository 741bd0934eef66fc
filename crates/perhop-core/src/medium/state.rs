//! The state of a medium during a run. All drivers make its changes and pass packets in the same order.

use std::collections::VecDeque;

use super::rate_trace::Timetable;
use super::{Distribution, GilbertElliott, Jitter, Medium};
use crate::measure::TransitCounts;
use crate::scheduler::Discipline;
use crate::{Bitrate, Duration, Instant, Packet, Probability, Rng, Served, Streams, TypedPort};

/// A change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The link has another rate.
    Rate(Bitrate),
    /// The link has another delay.
    Delay(Duration),
    /// An outage begins.
    Down,
    /// The outage ends.
    Up,
}

/// The state of a [`Medium`] during a run.
#[derive(Clone, Debug)]
pub struct MediumState {
    /// Changes of the link that are still to come, in the order of time.
    events: VecDeque<(Instant, LinkEvent)>,
    /// There is an outage.
    is_down: bool,
    /// When the link can send how much; `None` if its rate says so.
    timetable: Option<Timetable>,
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
    pub fn new(medium: &Medium, streams: Streams<'_>) -> Option<Box<Self>> {
        if medium.is_constant() {
            return None;
        }
        let at = |time| Instant::ZERO + time;
        let changes = medium.changes.iter().flat_map(|change| {
            let events = [change.rate.map(LinkEvent::Rate), change.delay.map(LinkEvent::Delay)];
            events.into_iter().flatten().map(move |event| (at(change.at), event))
        });
        let outages = medium.outages.iter();
        let outages =
            outages.flat_map(|outage| [(at(outage.from), LinkEvent::Down), (at(outage.to), LinkEvent::Up)]);
        let mut events: Vec<_> = changes.chain(outages).collect();
        events.sort_by_key(|&(at, _)| at);
        Some(Box::new(Self {
            events: events.into(),
            is_down: false,
            timetable: medium.trace.as_ref().map(Timetable::new),
            loss: LossProcess::new(medium, streams.of("medium")),
            jitter: medium.jitter.map(|jitter| (jitter, streams.of("jitter"))),
            last_arrival: Instant::ZERO,
            order: medium.reorders().then(Order::default),
            is_lossy: medium.is_lossy(),
            lost: 0,
        }))
    }

    /// The time of the link's next change.
    pub fn next(&self) -> Option<Instant> {
        self.events.front().map(|&(at, _)| at)
    }

    /// Removes and returns the next change, if it comes by `now`.
    pub fn pop_due(&mut self, now: Instant) -> Option<LinkEvent> {
        let &(_, event) = self.events.front().filter(|&&(at, _)| at <= now)?;
        self.events.pop_front();
        Some(event)
    }

    /// Makes a change of the link. Returns whether an outage has ended: then the port must be served.
    pub fn apply<D>(&mut self, event: LinkEvent, port: &mut TypedPort<'_, D>, delay: &mut Duration) -> bool {
        match event {
            LinkEvent::Rate(rate) => port.set_rate(rate),
            LinkEvent::Delay(changed) => *delay = changed,
            LinkEvent::Down => self.is_down = true,
            LinkEvent::Up => self.is_down = false,
        }
        event == LinkEvent::Up
    }

    /// Notes that the queue was empty up to `now`.
    pub fn idle(&mut self, now: Instant) {
        if let Some(timetable) = &mut self.timetable {
            timetable.idle(now);
        }
    }

    /// Serves a port, unless there is an outage: its end serves the port.
    pub fn serve<P: Packet, D: Discipline<P>>(
        &mut self,
        port: &mut TypedPort<'_, D>,
        now: Instant,
    ) -> Served<P> {
        match &mut self.timetable {
            _ if self.is_down => Served::Nothing,
            Some(timetable) => timetable.serve(port, now),
            None => port.serve(now),
        }
    }

    /// Returns when the next packet reaches the far end, which without jitter would be at `at`; `None` if it
    /// is lost. Packets come in the order in which they are sent, the next one at `now`.
    pub fn pass(&mut self, now: Instant, at: Instant) -> Option<Instant> {
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
            Some((false, drawn)) => (at + drawn).max(self.last_arrival.just_after()),
        };
        self.last_arrival = at;
        if let Some(order) = &mut self.order {
            order.record(now, at);
        }
        Some(at)
    }

    /// Returns how many packets were lost and reordered; those in transit count by what will become of them.
    pub fn counts(&self) -> TransitCounts {
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
    /// Records a packet that is sent now, and will arrive at `at`.
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
    /// A process in its steady state.
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

impl Jitter {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::{Change, Outage};

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
        // Between 0 and twice its mean with a deviation of the mean: symmetric; the variance 1 - 2 φ(1) / (2
        // Φ(1) - 1) = 0.2911.
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
    fn reordered_packets_by_hand() {
        // Packets sent at 0, 1, … ms arrive at 5, 9, 7, 6, 12, 11, 20 ms: the second and third arrive after
        // the fourth, the fifth after the sixth.
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
            waited += u64::from(arrival == before.just_after());
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
        assert_eq!(at(4), [LinkEvent::Rate(rate), LinkEvent::Down]);
        assert_eq!(at(5), [LinkEvent::Rate(rate), LinkEvent::Delay(seconds(2)), LinkEvent::Up]);
        assert!(MediumState::new(&Medium::default(), Streams { seed: 1, path: "links/test" }).is_none());
    }
}

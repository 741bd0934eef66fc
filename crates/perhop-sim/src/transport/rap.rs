//! RAP: additive increase and multiplicative decrease of a rate (Rejaie, Handley & Estrin, INFOCOM 1999).
//!
//! On a RED link, one flow and one TCP get the same within a quarter; where many share it and TCP lives by
//! timeouts, which RAP has not, RAP takes two to three times as much (`tests/rate_based.rs`). Its rate agrees
//! with that of ns-2's own agent within 3 % (`tests/oracle/rap.py`).
//!
//! All packets sent before a reaction belong to its loss event. The packet due next keeps its time and no
//! longer belongs to it: if it meets a queue that is still full, the rate is halved twice. A single flow over
//! drop-tail does so at some round trips and not at others, in ns-2 as here.
//!
//! ## Deviations
//! - An acknowledgement carries the number of its packet alone, so that a lost acknowledgement counts as a
//!   lost packet; the paper's also repeat what was received before (section 2.2).
//! - A packet is lost when one three numbers later, or more, is acknowledged, as in ns-2, or when its timeout
//!   has passed at the time of a transmission. There ns-2 lets a gap pass without a packet; here one is sent.
//! - The paper leaves the constants of Jacobson's round-trip estimator open. Here they are those of its
//!   authors' agent in ns-2: both gains 1/2 (a parameter), a timeout of 1.2 times the smoothed round trip and
//!   4 times its variation, and the first sample without variation. ns-2's timeout has no minimum.
//! - The first acknowledgement sets the gap to the round trip it measures, as in ns-2; the packet already due
//!   keeps its time.
//! - After a reaction the next increase comes a whole smoothed round-trip time later. A step in which nothing
//!   was acknowledged does not increase the rate either, and a gap is at most 64 s: the paper does not say.
//! - The fine-grain adaptation of section 2.4 is left out, as ns-2 leaves it out by default.

use std::collections::VecDeque;
use std::ops::Range;

use perhop_core::units::{UnitError, defaults, require};
use perhop_core::{Bitrate, Bytes, Context, Duration, Instant, Weight};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metadata::{Envelope, Metadata};
use super::pacing::{Fraction, Gaps, MOST_PACKETS_PER_SECOND, check_rate, check_size, packets};
use super::{Ack, SenderStatistics, Source, Transmit};

/// How the rate adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Adaptation {
    /// Add one packet per round-trip time without loss; halve the rate on a loss event.
    Aimd,
}

/// A source whose rate adapts like TCP's, without retransmission (Rejaie, Handley & Estrin 1999).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RapParams {
    /// How the rate adapts.
    pub rap: Adaptation,
    /// Packet size on the wire.
    #[serde(default = "defaults::bytes::<1000>")]
    pub packet: Bytes,
    /// Size of an acknowledgement on the wire.
    #[serde(default = "defaults::bytes::<40>")]
    pub ack: Bytes,
    /// The assumed round-trip time before the first measurement; it is also the first gap (ns-2's `srtt_` and
    /// `ipg_`).
    #[serde(default = "defaults::secs::<2>")]
    pub initial_rtt: Duration,
    /// The newest sample's weight in the smoothed round-trip time and in its variation (ns-2's `delta_`).
    #[serde(default = "defaults::weight::<1, 2>")]
    pub gain: Weight,
    /// The shortest timeout after which a packet counts as lost.
    #[serde(default = "defaults::millis::<200>")]
    pub min_rto: Duration,
    /// The highest rate of the application. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Bitrate>,
    /// Each gap between packets is drawn uniformly from within this fraction of the nominal gap, to avoid
    /// phase effects.
    #[serde(default = "defaults::probability::<1, 100>")]
    pub jitter: Fraction,
}

/// A packet is lost when one so many numbers later, or more, is acknowledged.
const LATER_NUMBERS: u32 = 3;
/// Sources go on asking at least this often (RFC 5348's `t_mbi`).
const LONGEST_GAP: Duration = Duration::from_secs(64);
const SHORTEST_GAP: Duration = Duration::from_nanos(1_000_000_000 / MOST_PACKETS_PER_SECOND);

impl RapParams {
    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The key that does not fit, and what would.
    pub fn check(&self) -> Result<(), UnitError> {
        check_size("packet", self.packet)?;
        check_size("ack", self.ack)?;
        for (key, time) in [("initial-rtt", self.initial_rtt), ("min-rto", self.min_rto)] {
            let is_usual = (Duration::from_millis(1)..=LONGEST_GAP).contains(&time);
            require(is_usual, key, "this time lies between 1ms and 64s")?;
        }
        self.max_rate.map_or(Ok(()), |rate| check_rate("max-rate", rate, self.packet))
    }
}

/// One flow's sending side: a packet each gap, and a new gap each round-trip time.
#[derive(Clone, Debug)]
pub struct RapSender {
    size: u16,
    shortest_gap: Duration,
    /// The paper's IPG.
    gaps: Gaps,
    rtt: RoundTrip,
    next: Instant,
    /// When the step ends that may increase the rate; never before the first round trip is known.
    step_ends: Instant,
    /// Something was acknowledged in this step.
    acked: bool,
    sequence: u32,
    /// Losses of packets below this number belong to an event that was reacted to.
    reacted: u32,
    /// Packets not yet acknowledged or lost, oldest first.
    outstanding: VecDeque<Outstanding>,
    left: Option<u64>,
    /// When it sent the last packet of its volume; `None` before.
    finished: Option<Instant>,
    statistics: SenderStatistics,
}

/// Smoothed round-trip time and its variation (Jacobson 1988), with the constants of ns-2's RAP.
#[derive(Clone, Debug)]
struct RoundTrip {
    gain: f64,
    /// Timeout before the first sample.
    initial: Duration,
    min: Duration,
    /// In nanoseconds.
    smoothed: Option<(f64, f64)>,
}

impl RoundTrip {
    /// The weights of the smoothed round trip and of its variation in the timeout (ns-2's `mu_` and `phi_`).
    const TIMEOUT: (f64, f64) = (1.2, 4.0);

    fn sample(&mut self, sent: Instant, now: Instant) {
        let sample = now.since(sent).as_nanos().max(1).cast_signed() as f64;
        let (smoothed, variation) = self.smoothed.unwrap_or((sample, 0.0));
        let difference = sample - smoothed;
        let variation = variation + self.gain * (difference.abs() - variation);
        self.smoothed = Some((smoothed + self.gain * difference, variation));
    }

    /// Returns whether a packet that has waited for so long has waited for a timeout.
    #[inline]
    fn is_over(&self, waited: Duration) -> bool {
        let (of_smoothed, of_variation) = Self::TIMEOUT;
        let measured = match self.smoothed {
            None => waited >= self.initial,
            // A timeout is a whole number of nanoseconds.
            Some((smoothed, variation)) => {
                of_smoothed * smoothed + of_variation * variation
                    < (waited.as_nanos().cast_signed() + 1) as f64
            }
        };
        waited >= self.min && (measured || waited >= LONGEST_GAP)
    }

    fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|(smoothed, _)| Duration::from_nanos(smoothed as u64))
    }
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    number: u32,
    sent: Instant,
}

impl RapSender {
    /// Makes a source of these parameters, which ends after `volume` bytes if one is given.
    pub fn new(params: &RapParams, volume: Option<Bytes>) -> Self {
        let shortest_gap =
            params.max_rate.map_or(SHORTEST_GAP, |rate| rate.time_of(params.packet).max(SHORTEST_GAP));
        // Before the first sample, as RFC 6298, (2.2), has it after one of the believed length.
        let initial = params.initial_rtt.saturating_mul(3);
        let rtt = RoundTrip { gain: params.gain.get(), initial, min: params.min_rto, smoothed: None };
        Self {
            size: params.packet.get() as u16,
            shortest_gap,
            gaps: Gaps::new(params.initial_rtt.max(shortest_gap), params.jitter),
            rtt,
            next: Instant::NEVER,
            step_ends: Instant::NEVER,
            acked: false,
            sequence: 0,
            reacted: 0,
            outstanding: VecDeque::new(),
            left: packets(volume, params.packet),
            finished: None,
            statistics: SenderStatistics::default(),
        }
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Puts the next packet on the wire; returns its number.
    #[inline]
    fn send(&mut self, cx: &mut Context<'_>) -> u32 {
        let number = self.sequence;
        self.sequence += 1;
        self.outstanding.push_back(Outstanding { number, sent: cx.now });
        self.statistics.sent += 1;
        self.next = cx.now + self.gaps.draw(cx.rng);
        number
    }

    /// Gives up packets that have waited for a timeout, before each transmission (section 2.2).
    fn give_up(&mut self, now: Instant) {
        let mut lost = None;
        while let Some(oldest) = self.outstanding.front()
            && self.rtt.is_over(now.since(oldest.sent))
        {
            lost = Some(oldest.number);
            self.outstanding.pop_front();
        }
        if self.lose(lost, now) {
            self.statistics.timeouts += 1;
        }
    }

    /// Learns that the packet of this number has arrived.
    pub(super) fn on_echo(&mut self, number: u32, now: Instant) {
        let Ok(place) = self.outstanding.binary_search_by_key(&number, |packet| packet.number) else {
            return; // It was given up before.
        };
        self.measure(self.outstanding[place].sent, now);
        self.outstanding.remove(place);
        let mut lost = None;
        while let Some(oldest) = self.outstanding.front()
            && oldest.number + LATER_NUMBERS <= number
        {
            lost = Some(oldest.number);
            self.outstanding.pop_front();
        }
        self.lose(lost, now);
    }

    /// Measures the round trip of a packet that was sent then.
    #[inline]
    fn measure(&mut self, sent: Instant, now: Instant) {
        self.rtt.sample(sent, now);
        self.statistics.rtt_samples.0 += 1;
        self.statistics.rtt_samples.1 += u128::from(now.since(sent).as_nanos());
        if self.step_ends == Instant::NEVER {
            self.gaps.set(self.rtt().unwrap_or(self.gaps.nominal()).max(self.shortest_gap));
            self.begin_step(now);
        }
        self.acked = true;
    }

    /// Halves the rate, if the `latest` of the packets now lost was sent after the last reaction: it begins a
    /// loss event. Returns whether it did.
    fn lose(&mut self, latest: Option<u32>, now: Instant) -> bool {
        let new = latest.is_some_and(|number| number >= self.reacted);
        if new {
            self.gaps.set(self.gaps.nominal().saturating_mul(2).min(LONGEST_GAP));
            self.reacted = self.sequence;
            self.statistics.loss_events += 1;
            self.begin_step(now);
        }
        new
    }

    /// Sends one packet more in a smoothed round-trip time C: the gap is IPG C / (IPG + C) (section 2.3).
    fn increase(&mut self) {
        let gap = self.gaps.nominal();
        let rtt = self.rtt().unwrap_or(gap);
        let (gap, rtt) = (u128::from(gap.as_nanos()), u128::from(rtt.as_nanos()));
        let shorter = Duration::from_nanos((gap * rtt / (gap + rtt)) as u64);
        self.gaps.set(shorter.max(self.shortest_gap));
    }

    fn begin_step(&mut self, now: Instant) {
        self.acked = false;
        self.step_ends = self.rtt().map_or(Instant::NEVER, |rtt| now + rtt);
    }
}

impl Source for RapSender {
    fn start(&mut self, now: Instant) {
        self.next = now;
    }

    fn stop(&mut self) {
        self.next = Instant::NEVER;
    }

    fn wake(&self) -> Instant {
        if self.next == Instant::NEVER { self.next } else { self.next.min(self.step_ends) }
    }

    fn on_wake(&mut self, now: Instant) {
        if now < self.step_ends {
            return;
        }
        if self.acked {
            self.increase();
        }
        self.begin_step(now);
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if cx.now < self.next {
            return None;
        }
        if self.left == Some(0) {
            self.stop();
            return None;
        }
        self.give_up(cx.now);
        self.left = self.left.map(|left| left - 1);
        self.finished = (self.left == Some(0)).then_some(cx.now);
        Some(Transmit::plain(self.send(cx), self.size))
    }

    fn finished(&self) -> Option<Instant> {
        self.finished
    }

    fn on_ack(&mut self, ack: Ack, _metadata: &mut Metadata, now: Instant) {
        self.on_echo(ack.number, now);
    }

    /// Takes the ACK of the oldest packet, if no packet is to leave now.
    #[inline]
    fn try_ack(&mut self, ack: Ack, _metadata: &mut Metadata, now: Instant) -> Option<Range<u32>> {
        let oldest = self.outstanding.front().filter(|oldest| oldest.number == ack.number)?;
        if now >= self.next {
            return None;
        }
        // Later ones have later numbers, so none is lost.
        self.measure(oldest.sent, now);
        self.outstanding.pop_front();
        Some(0..0)
    }

    /// Sends a packet, if one is due and nothing else is.
    #[inline]
    fn try_wake(&mut self, cx: &mut Context<'_>) -> Option<Range<u32>> {
        let now = cx.now;
        let sends_alone = now >= self.next && now < self.step_ends && self.left.is_none();
        let keeps_all =
            || self.outstanding.front().is_none_or(|oldest| !self.rtt.is_over(now.since(oldest.sent)));
        // The numbers of packets end long after any run.
        let sends = sends_alone && self.sequence < u32::MAX && keeps_all();
        sends.then(|| {
            let number = self.send(cx);
            number..number + 1
        })
    }

    fn smoothed_rtt(&self) -> Option<f64> {
        self.rtt().map(Duration::as_secs_f64)
    }

    #[inline]
    fn envelope(&self, now: Instant) -> Option<Envelope> {
        Some(Envelope { sent: now, rtt: None })
    }

    fn statistics(&self) -> SenderStatistics {
        self.statistics.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::Rng;

    const MILLI: u64 = 1_000_000;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * MILLI)
    }

    /// A sender of exact gaps that has sent `packets`, one each 100 ms from the start. Its first timeout is
    /// three times the believed round trip.
    fn sender(packets: u32, initial_rtt: &str) -> RapSender {
        let params = format!(r#"{{"rap": "aimd", "initial-rtt": "{initial_rtt}", "jitter": 0.0}}"#);
        let mut sender = RapSender::new(&serde_json::from_str(&params).unwrap(), None);
        sender.gaps.set(Duration::from_millis(100));
        sender.start(at(0));
        for n in 0..packets {
            assert_eq!(send(&mut sender, u64::from(n) * 100), Some(n));
        }
        sender
    }

    fn send(sender: &mut RapSender, millis: u64) -> Option<u32> {
        let mut rng = Rng::stream(1, "rap");
        sender.transmit(&mut Context { now: at(millis), rng: &mut rng }).map(|packet| packet.sequence)
    }

    #[test]
    fn each_step_without_loss_adds_a_packet_to_the_round_trip() {
        let mut sender = sender(1, "2s");
        sender.on_echo(0, at(60));
        assert_eq!(sender.wake(), at(100), "the packet due comes before the step's end at 120 ms");
        assert_eq!(send(&mut sender, 100), Some(1));
        sender.on_wake(at(119));
        assert_eq!(sender.gaps.nominal(), Duration::from_millis(60), "the step is not over");
        // IPG and C 60 ms: 60 60/120 = 30 ms, and so from 1 to 2 packets a round trip.
        sender.on_wake(at(120));
        assert_eq!(sender.gaps.nominal(), Duration::from_millis(30));
        sender.on_wake(at(180));
        assert_eq!(sender.gaps.nominal(), Duration::from_millis(30), "no ACK came in this step");
        sender.on_echo(1, at(200));
        // C is half of 60 ms and half of 100 ms, 80 ms: 30 80/110 ms.
        sender.on_wake(at(240));
        assert_eq!(sender.gaps.nominal(), Duration::from_nanos(21_818_181));
        assert_eq!(sender.step_ends, at(320));
    }

    #[test]
    fn the_first_acknowledgement_sets_the_gap_to_the_round_trip() {
        // As in ns-2 at 45 ms: packets at 0 and 2 s, and from there with half the round trip, since one step
        // has ended.
        let mut sender =
            RapSender::new(&serde_json::from_str(r#"{"rap": "aimd", "jitter": 0.0}"#).unwrap(), None);
        sender.start(at(0));
        assert_eq!(send(&mut sender, 0), Some(0));
        assert_eq!(sender.wake(), at(2000));
        sender.on_echo(0, at(45));
        assert_eq!((sender.gaps.nominal(), sender.wake()), (Duration::from_millis(45), at(90)));
        sender.on_wake(at(90));
        assert_eq!((sender.gaps.nominal(), sender.next), (Duration::from_nanos(22_500_000), at(2000)));
        assert_eq!(send(&mut sender, 2000), Some(1));
        assert_eq!(sender.next, at(2000) + Duration::from_nanos(22_500_000));
    }

    #[test]
    fn the_estimator_by_hand() {
        let params = r#"{"rap": "aimd", "initial-rtt": "100ms", "min-rto": "1ms"}"#;
        let mut rtt = RapSender::new(&serde_json::from_str(params).unwrap(), None).rtt;
        let millis = Duration::from_millis;
        let is_timeout = |rtt: &RoundTrip, timeout: u64| {
            let just_before = Duration::from_nanos(millis(timeout).as_nanos() - 1);
            rtt.is_over(millis(timeout)) && !rtt.is_over(just_before)
        };
        assert!(is_timeout(&rtt, 300) && rtt.smoothed().is_none());
        // 40 ms: no variation, 1.2 40 = 48. 80 ms: 60, and half of 40; 72 + 80. 60 ms: 60, and 10; 72 + 40.
        for (sample, smoothed, timeout) in [(40, 40, 48), (80, 60, 152), (60, 60, 112)] {
            rtt.sample(at(1000), at(1000 + sample));
            assert!(is_timeout(&rtt, timeout), "{timeout}");
            assert_eq!(rtt.smoothed(), Some(millis(smoothed)));
        }
        // Fractions of a nanosecond do not count.
        rtt.smoothed = Some((50e6 + 0.4, 0.0));
        assert!(is_timeout(&rtt, 60));
        rtt.min = millis(200);
        assert!(is_timeout(&rtt, 200));
        rtt.smoothed = Some((1e12, 0.0));
        assert!(is_timeout(&rtt, 64_000), "the longest");
    }

    #[test]
    fn a_loss_event_doubles_the_gap_once() {
        let mut sender = sender(8, "2s");
        sender.on_echo(0, at(710));
        sender.gaps.set(Duration::from_millis(100));
        // 1 and 3 are lost: 4 and 6 are three numbers later.
        sender.on_echo(2, at(720));
        assert_eq!(sender.statistics.loss_events, 0);
        sender.on_echo(4, at(720));
        assert_eq!((sender.gaps.nominal(), sender.statistics.loss_events), (Duration::from_millis(200), 1));
        assert_eq!((sender.reacted, sender.outstanding.len()), (8, 4));
        sender.on_echo(5, at(730));
        assert_eq!(sender.outstanding.front().map(|oldest| oldest.number), Some(3), "3 may still come");
        sender.on_echo(6, at(740));
        assert_eq!(sender.outstanding.len(), 1);
        assert_eq!(
            (sender.gaps.nominal(), sender.statistics.loss_events),
            (Duration::from_millis(200), 1),
            "the same event"
        );
        // Packet 8 is sent after the reaction: its loss is an event of its own.
        for (number, millis) in [(8, 800), (9, 1000), (10, 1200), (11, 1400)] {
            assert_eq!(send(&mut sender, millis), Some(number));
        }
        for (number, events) in [(9, 1), (10, 1), (11, 2)] {
            sender.on_echo(number, at(1420));
            assert_eq!(sender.statistics.loss_events, events);
        }
        assert_eq!((sender.gaps.nominal(), sender.statistics.timeouts), (Duration::from_millis(400), 0));
    }

    #[test]
    fn a_timeout_is_found_before_a_transmission_and_doubles_the_gap() {
        let mut sender = sender(3, "100ms");
        // Packet 0 waits since 0 ms, and the first timeout is 300 ms.
        assert_eq!(send(&mut sender, 300), Some(3));
        assert_eq!((sender.gaps.nominal(), sender.statistics.timeouts), (Duration::from_millis(200), 1));
        assert_eq!(sender.wake(), at(500), "the gap to the next is the new one");
        assert_eq!(send(&mut sender, 499), None);
        assert_eq!(send(&mut sender, 500), Some(4));
        assert_eq!(
            (sender.statistics.timeouts, sender.outstanding.len()),
            (1, 2),
            "1 and 2 were sent before"
        );
        assert_eq!(send(&mut sender, 700), Some(5));
        assert_eq!(
            (sender.gaps.nominal(), sender.statistics.loss_events),
            (Duration::from_millis(400), 2),
            "3 was not"
        );
        sender.on_echo(3, at(710));
        assert_eq!(sender.statistics.rtt_samples.0, 0, "what was given up is not measured");
        (0..12).for_each(|_| sender.gaps.set(sender.gaps.nominal().saturating_mul(2).min(LONGEST_GAP)));
        assert_eq!(sender.gaps.nominal(), LONGEST_GAP);
    }

    #[test]
    fn the_applications_rate_is_the_highest() {
        let params: RapParams = serde_json::from_str(
            r#"{"rap": "aimd", "initial-rtt": "10ms", "max-rate": "1Mbps", "jitter": 0.0}"#,
        )
        .unwrap();
        let mut sender = RapSender::new(&params, Some(Bytes::new(2500)));
        sender.start(at(0));
        assert_eq!(send(&mut sender, 0), Some(0));
        sender.on_echo(0, at(10));
        sender.on_wake(at(20));
        assert_eq!(sender.gaps.nominal(), Duration::from_millis(8), "1000 bytes at 1 Mbit/s, not 5 ms");
        assert_eq!(send(&mut sender, 20), Some(1));
        assert_eq!(send(&mut sender, 28), Some(2));
        assert_eq!(
            (send(&mut sender, 36), sender.wake()),
            (None, Instant::NEVER),
            "2500 bytes are three packets"
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |extra: &str| {
            let params: RapParams = serde_json::from_str(&format!(r#"{{"rap": "aimd", {extra}}}"#)).unwrap();
            params.check().unwrap_err().key().to_owned()
        };
        assert_eq!(refused(r#""packet": "0B""#), "packet");
        assert_eq!(refused(r#""ack": "70kB""#), "ack");
        assert_eq!(refused(r#""initial-rtt": "0s""#), "initial-rtt");
        assert_eq!(refused(r#""min-rto": "65s""#), "min-rto");
        assert_eq!(refused(r#""max-rate": "999999Gbps""#), "max-rate");
    }
}

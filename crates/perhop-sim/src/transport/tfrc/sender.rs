//! The sender: the allowed rate and when to send at it (RFC 5348, section 4).

use std::collections::VecDeque;
use std::ops::Range;

use perhop_core::{Bytes, Context, Duration, Instant};

use super::{Specification, TfrcParams, throughput};
use crate::transport::metadata::{Envelope, Metadata, Report};
use crate::transport::pacing::{MOST_PACKETS_PER_SECOND, packets};
use crate::transport::{Ack, SenderStatistics, Source, Transmit};

/// The weights q and q2 of the old averages of the round-trip time and of its root.
const MEMORY: f64 = 0.9;
/// `t_mbi`: at least one packet in so many seconds.
const LONGEST_GAP_S: f64 = 64.0;
/// The nofeedback timer before the first feedback (section 4.2).
const FIRST_PATIENCE: Duration = Duration::from_secs(2);

/// One flow's sending side. Rates are in bytes per second, round-trip times in seconds.
#[derive(Clone, Debug)]
pub struct TfrcSender {
    by: Specification,
    size: u16,
    jitter: f64,
    oscillation_reduction: bool,
    max_rate: f64,
    /// The allowed rate X.
    rate: f64,
    /// What the equation allows: `X_Bps`.
    equation: f64,
    /// The rate of the initial window: `initial_rate`.
    initial_rate: f64,
    /// The loss event rate p as reported last.
    loss: f64,
    /// R, and the same as packets carry it.
    rtt: Option<f64>,
    carried: Option<Duration>,
    /// `R_sqmean`, and the root of the last sample.
    roots: (f64, f64),
    /// `X_recv_set`.
    received: VecDeque<(Instant, f64)>,
    /// When slow start last doubled the rate: `tld`.
    doubled: Instant,
    /// When the nofeedback timer expires.
    patience: Instant,
    /// When the last packet was sent, and by which factor jitter changes the gap to the next.
    last: Option<(Instant, f64)>,
    next: Instant,
    /// s / `X_inst`, in seconds.
    gap: f64,
    sequence: u32,
    left: Option<u64>,
    /// When it sent the last packet of its volume; `None` before.
    finished: Option<Instant>,
    statistics: SenderStatistics,
}

impl TfrcSender {
    /// Makes a source of these parameters, of `volume` bytes if that is given. It may send a packet a second.
    pub fn new(params: &TfrcParams, volume: Option<Bytes>) -> Self {
        let size = params.packet.get() as f64;
        let most = size * MOST_PACKETS_PER_SECOND as f64;
        let mut sender = Self {
            by: params.tfrc,
            size: params.packet.get() as u16,
            jitter: params.jitter.get(),
            oscillation_reduction: params.oscillation_reduction,
            max_rate: params.max_rate.map_or(most, |rate| rate.as_bps() as f64 / 8.0).min(most),
            rate: size,
            equation: f64::INFINITY,
            initial_rate: 0.0,
            loss: 0.0,
            rtt: None,
            carried: None,
            roots: (1.0, 1.0),
            received: VecDeque::from([(Instant::ZERO, f64::INFINITY)]),
            doubled: Instant::ZERO,
            patience: Instant::NEVER,
            last: None,
            next: Instant::NEVER,
            gap: 0.0,
            sequence: 0,
            left: packets(volume, params.packet),
            finished: None,
            statistics: SenderStatistics::default(),
        };
        sender.schedule();
        sender
    }

    /// Puts the next packet on the wire; returns its number.
    #[inline]
    fn send(&mut self, cx: &mut Context<'_>) -> u32 {
        let sequence = self.sequence;
        self.sequence += 1;
        self.statistics.sent += 1;
        let factor = if self.jitter > 0.0 { 1.0 + self.jitter * (2.0 * cx.rng.uniform() - 1.0) } else { 1.0 };
        self.last = Some((cx.now, factor));
        self.next = self.after(cx.now, factor);
        sequence
    }

    /// Finds when the next packet leaves, since the rate has changed.
    fn schedule(&mut self) {
        self.gap = f64::from(self.size) / self.instantaneous();
        if let (Some((last, factor)), true) = (self.last, self.next != Instant::NEVER) {
            self.next = self.after(last, factor);
        }
    }

    /// Returns when the next packet leaves: it follows the last by s / `X_inst` (section 4.6), also when the
    /// rate changes in between.
    #[inline]
    fn after(&self, last: Instant, factor: f64) -> Instant {
        last + span(self.gap * factor)
    }

    /// Returns `X_inst`: the allowed rate, lower while the round-trip time is above its mean (section 4.5),
    /// and never above the application's own.
    fn instantaneous(&self) -> f64 {
        let (mean, last) = self.roots;
        let rate = if self.oscillation_reduction { self.rate * mean / last } else { self.rate };
        rate.max(self.least()).min(self.max_rate)
    }

    /// Returns the rate of one packet in `t_mbi`.
    fn least(&self) -> f64 {
        f64::from(self.size) / LONGEST_GAP_S
    }

    /// Takes a feedback packet: section 4.3, and 4.2 for the first.
    pub(in crate::transport) fn on_report(&mut self, report: &Report, now: Instant) {
        let trip = now.since(report.echo) - report.held;
        self.statistics.rtt_samples.0 += 1;
        self.statistics.rtt_samples.1 += u128::from(trip.as_nanos());
        self.statistics.loss_events = report.events;
        let sample = trip.as_secs_f64().max(1e-9);
        match self.rtt {
            None => {
                self.rtt = Some(sample);
                self.roots = (sample.sqrt(), sample.sqrt());
                self.wait_for_feedback(sample, now);
                self.begin(sample, now);
            }
            Some(mean) => {
                let rtt = MEMORY * mean + (1.0 - MEMORY) * sample;
                self.rtt = Some(rtt);
                self.roots = (MEMORY * self.roots.0 + (1.0 - MEMORY) * sample.sqrt(), sample.sqrt());
                self.wait_for_feedback(rtt, now);
                self.loss = report.loss;
                self.remember(report.received, rtt, now);
                self.allow(rtt, now);
            }
        }
        self.carried = self.rtt.map(span);
        self.schedule();
    }

    /// Sets the nofeedback timer: to four round trips, or the time of two packets.
    fn wait_for_feedback(&mut self, rtt: f64, now: Instant) {
        self.patience = now + span((4.0 * rtt).max(2.0 * f64::from(self.size) / self.rate));
    }

    /// Allows the initial window of RFC 3390 in each round trip, at the first feedback.
    fn begin(&mut self, rtt: f64, now: Instant) {
        let size = f64::from(self.size);
        self.initial_rate = (4.0 * size).min((2.0 * size).max(4380.0)) / rtt;
        self.rate = self.initial_rate;
        self.doubled = now;
    }

    /// Remembers what was received within the last two round-trip times (`Update X_recv_set()`).
    fn remember(&mut self, received: f64, rtt: f64, now: Instant) {
        self.received.push_back((now, received));
        let memory = span(2.0 * rtt);
        self.received.retain(|&(at, _)| at + memory >= now);
    }

    fn highest_received(&self) -> f64 {
        self.received.iter().fold(0.0, |highest: f64, &(_, received)| highest.max(received))
    }

    /// Finds the allowed rate: step 4 of section 4.3.
    fn allow(&mut self, rtt: f64, now: Instant) {
        let limit = 2.0 * self.highest_received();
        if self.loss > 0.0 {
            self.equation = throughput(self.by, f64::from(self.size), rtt, self.loss);
            self.rate = self.equation.min(limit).max(self.least());
        } else if now.since(self.doubled).as_secs_f64() >= rtt {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial_rate);
            self.doubled = now;
        }
    }
}

impl Source for TfrcSender {
    fn start(&mut self, now: Instant) {
        self.next = now;
        self.patience = now + FIRST_PATIENCE;
    }

    fn stop(&mut self) {
        self.next = Instant::NEVER;
    }

    fn wake(&self) -> Instant {
        if self.next == Instant::NEVER { self.next } else { self.next.min(self.patience) }
    }

    fn on_wake(&mut self, now: Instant) {
        if now < self.patience || self.next == Instant::NEVER {
            return;
        }
        self.statistics.timeouts += 1;
        match self.rtt {
            Some(rtt) if self.loss > 0.0 => {
                let received = self.highest_received();
                let limit = if self.equation > 2.0 * received { received } else { self.equation / 2.0 };
                self.received = VecDeque::from([(now, limit.max(self.least()) / 2.0)]);
                self.allow(rtt, now);
            }
            _ => self.rate = (self.rate / 2.0).max(self.least()),
        }
        self.wait_for_feedback(self.rtt.unwrap_or(0.0), now);
        self.schedule();
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if cx.now < self.next {
            return None;
        }
        if self.left == Some(0) {
            self.stop();
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        self.finished = (self.left == Some(0)).then_some(cx.now);
        Some(Transmit::plain(self.send(cx), self.size))
    }

    fn finished(&self) -> Option<Instant> {
        self.finished
    }

    fn on_ack(&mut self, ack: Ack, metadata: &mut Metadata, now: Instant) {
        if let Some(report) = metadata.of_datagrams().take_report(ack.number) {
            self.on_report(&report, now);
        }
    }

    /// Sends a packet, if one is due and nothing else is.
    #[inline]
    fn try_wake(&mut self, cx: &mut Context<'_>) -> Option<Range<u32>> {
        let sends_alone = cx.now >= self.next && cx.now < self.patience && self.left.is_none();
        // The numbers of packets end long after any run.
        let sends = sends_alone && self.sequence < u32::MAX;
        sends.then(|| {
            let number = self.send(cx);
            number..number + 1
        })
    }

    fn smoothed_rtt(&self) -> Option<f64> {
        self.carried.map(Duration::as_secs_f64)
    }

    #[inline]
    fn envelope(&self, now: Instant) -> Option<Envelope> {
        Some(Envelope { sent: now, rtt: self.carried })
    }

    fn statistics(&self) -> SenderStatistics {
        self.statistics.clone()
    }
}

fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::Rng;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn sender(extra: &str) -> TfrcSender {
        let params = format!(r#"{{"tfrc": "rfc5348", "jitter": 0.0 {extra}}}"#);
        let mut sender = TfrcSender::new(&serde_json::from_str(&params).unwrap(), None);
        sender.start(at(0));
        assert_eq!(send(&mut sender, 0), Some(0));
        sender
    }

    fn send(sender: &mut TfrcSender, millis: u64) -> Option<u32> {
        let mut rng = Rng::stream(1, "tfrc");
        sender.transmit(&mut Context { now: at(millis), rng: &mut rng }).map(|packet| packet.sequence)
    }

    /// A report comes at `millis`, 100 ms after the packet that it echoes was sent.
    fn report(sender: &mut TfrcSender, millis: u64, received: f64, loss: f64) {
        let report = Report {
            echo: at(millis - 130),
            held: Duration::from_millis(30),
            received,
            loss,
            events: u64::from(loss > 0.0),
        };
        sender.on_report(&report, at(millis));
    }

    fn close(one: f64, other: f64) -> bool {
        (one / other - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_packet_a_second_until_the_first_feedback_then_the_initial_window() {
        let mut sender = sender("");
        assert_eq!((sender.wake(), send(&mut sender, 999)), (at(1000), None));
        report(&mut sender, 130, 0.0, 0.0);
        // min(4000, max(2000, 4380)) bytes in 100 ms: a packet each 25 ms, the first of which is overdue.
        assert!(close(sender.rate, 40_000.0));
        assert_eq!((sender.wake(), send(&mut sender, 130), sender.wake()), (at(25), Some(1), at(155)));
        assert_eq!(sender.statistics.rtt_samples, (1, 100_000_000));
    }

    #[test]
    fn without_losses_the_rate_doubles_each_round_trip_up_to_twice_what_was_received() {
        let mut sender = sender("");
        report(&mut sender, 130, 0.0, 0.0);
        report(&mut sender, 200, 40_000.0, 0.0);
        assert!(close(sender.rate, 40_000.0), "70 ms are no round trip");
        report(&mut sender, 240, 40_000.0, 0.0);
        assert!(close(sender.rate, 80_000.0));
        report(&mut sender, 350, 60_000.0, 0.0);
        assert!(close(sender.rate, 120_000.0));
        report(&mut sender, 600, 1000.0, 0.0);
        assert!(close(sender.rate, 40_000.0), "never below the initial rate");
    }

    #[test]
    fn with_losses_the_equation_rules_within_twice_what_was_received() {
        let mut sender = sender("");
        report(&mut sender, 130, 0.0, 0.0);
        report(&mut sender, 440, 90_000.0, 0.01);
        assert!(close(sender.rate, throughput(Specification::Rfc5348, 1000.0, 0.1, 0.01)), "{}", sender.rate);
        report(&mut sender, 750, 20_000.0, 0.01);
        assert!(close(sender.rate, 40_000.0));
        report(&mut sender, 1060, 10.0, 1.0);
        assert!(close(sender.rate, 20.0), "twice what was received");
        report(&mut sender, 1370, 1.0, 1.0);
        assert!(close(sender.rate, 1000.0 / 64.0), "a packet in 64 s");
        assert_eq!(sender.statistics.loss_events, 1);
    }

    #[test]
    fn the_nofeedback_timer_halves_the_rate() {
        let mut first = sender("");
        first.on_wake(at(1999));
        assert!(close(first.rate, 1000.0));
        first.on_wake(at(2000));
        // X = 500: the next expiry is 2 s / X = 4 s later.
        assert!(close(first.rate, 500.0));
        assert_eq!((first.patience, first.statistics.timeouts), (at(6000), 1));

        let mut sender = sender("");
        report(&mut sender, 130, 0.0, 0.0);
        report(&mut sender, 440, 90_000.0, 0.01);
        let (equation, expiry) = (sender.equation, sender.patience);
        assert_eq!(expiry, at(840), "4 R after the report");
        sender.on_wake(expiry);
        assert!(close(sender.rate, equation / 2.0), "the equation had been the limit");
        report(&mut sender, 1150, 20_000.0, 0.01);
        sender.on_wake(sender.patience);
        assert!(close(sender.rate, 20_000.0), "twice what was received had been the limit");
    }

    #[test]
    fn the_round_trip_time_is_filtered_and_a_longer_one_slows_the_sender() {
        let mut steady = sender(r#", "oscillation-reduction": false"#);
        let mut careful = sender("");
        for sender in [&mut steady, &mut careful] {
            report(sender, 130, 0.0, 0.0);
            let slow = Report { echo: at(0), held: Duration::ZERO, received: 9e9, loss: 0.01, events: 1 };
            sender.on_report(&slow, at(400));
            // R = 0.9 0.1 + 0.1 0.4 = 0.13 s.
            assert_eq!(sender.carried, Some(Duration::from_millis(130)));
            assert!(close(sender.rate, throughput(Specification::Rfc5348, 1000.0, 0.13, 0.01)));
        }
        // sqrt(0.1) = 0.316_227_8 and sqrt(0.4) = 0.632_455_5: their mean is 0.347_850_5, and 0.55 of the
        // second.
        assert!(close(steady.instantaneous(), steady.rate));
        assert!(close(careful.instantaneous(), 0.55 * careful.rate), "{}", careful.instantaneous());
    }

    #[test]
    fn the_applications_rate_is_the_highest() {
        let mut sender = sender(r#", "max-rate": "80kbps""#);
        report(&mut sender, 130, 0.0, 0.0);
        assert_eq!(sender.wake(), at(100), "1000 bytes at 80 kbit/s");
    }
}

//! The receiver: what to report, and when (RFC 5348, section 6).

use std::collections::VecDeque;

use perhop_core::{Duration, Instant};

use super::{LossHistory, Specification, TfrcParams, loss_event_rate};
use crate::transport::metadata::{Envelope, Report};

/// One flow's receiving side.
#[derive(Clone, Debug)]
pub struct TfrcReceiver {
    by: Specification,
    size: f64,
    losses: LossHistory,
    /// The sender's round-trip time as the last packet carried it: `R_m`.
    rtt: Option<Duration>,
    /// When the last packet came and when it was sent.
    newest: (Instant, Instant),
    /// Arrivals since the last report and within the round-trip time before it, or some of these.
    recent: VecDeque<Instant>,
    /// The time up to which no arrival is within the last round-trip time.
    forgotten: Option<Instant>,
    /// The highest `X_recv` so far.
    highest: f64,
    /// When the next feedback is due.
    due: Instant,
    /// Data came since the last feedback.
    has_new_data: bool,
    /// The timer expired without new data: the next packet is reported at once.
    silent: bool,
}

impl TfrcReceiver {
    /// Makes a receiver that has nothing.
    pub fn new(params: &TfrcParams) -> Self {
        Self {
            by: params.tfrc,
            size: params.packet.get() as f64,
            losses: LossHistory::new(params.history_discounting),
            rtt: None,
            newest: (Instant::ZERO, Instant::ZERO),
            recent: VecDeque::new(),
            forgotten: None,
            highest: 0.0,
            due: Instant::NEVER,
            has_new_data: false,
            silent: false,
        }
    }

    /// Takes a data packet: section 6.1, and 6.3 for the first ones, which carry no round-trip time and are
    /// all reported.
    pub(in crate::transport) fn on_data(
        &mut self,
        number: u32,
        envelope: Envelope,
        now: Instant,
    ) -> Option<Report> {
        self.takes(number, envelope, now).then(|| self.report(now))
    }

    /// Notes a data packet; returns whether it is to be reported at once.
    #[inline]
    fn takes(&mut self, number: u32, envelope: Envelope, now: Instant) -> bool {
        let before = if self.losses.may_reveal_event() { self.losses.rate() } else { 0.0 };
        self.newest = (now, envelope.sent);
        self.has_new_data = true;
        self.rtt = envelope.rtt.or(self.rtt);
        self.recent.push_back(now);
        let Some(rtt) = self.rtt else { return true };
        self.forget(rtt, now);
        let Self { by, losses, size, recent, forgotten, highest, .. } = self;
        let new_event = losses.on_packet(number, now, rtt, || {
            let target = highest.max(received(recent.len() - past(recent, *forgotten), *size, rtt));
            first_interval(*by, *size, rtt.as_secs_f64(), target)
        });
        if self.due == Instant::NEVER && !self.silent {
            self.due = now + rtt;
        }
        self.silent || new_event && self.losses.rate() > before
    }

    /// Returns the report that is due, if the feedback timer has expired: section 6.2.
    pub(in crate::transport) fn on_wake(&mut self, now: Instant) -> Option<Report> {
        if now < self.due {
            return None;
        }
        if self.has_new_data {
            return Some(self.report(now));
        }
        self.due = Instant::NEVER;
        self.silent = true;
        None
    }

    #[inline]
    pub(in crate::transport) fn wake(&self) -> Instant {
        self.due
    }

    #[inline(never)]
    fn report(&mut self, now: Instant) -> Report {
        let received = match self.rtt {
            None => 0.0,
            Some(rtt) => {
                self.forget(rtt, now);
                self.recent.drain(..past(&self.recent, self.forgotten));
                self.due = now + rtt;
                received(self.recent.len(), self.size, rtt)
            }
        };
        self.highest = self.highest.max(received);
        (self.has_new_data, self.silent) = (false, false);
        let (arrived, sent) = self.newest;
        Report {
            echo: sent,
            held: now.since(arrived),
            received,
            loss: self.losses.rate(),
            events: self.losses.events(),
        }
    }

    /// Forgets what came a round-trip time ago or earlier.
    #[inline]
    fn forget(&mut self, rtt: Duration, now: Instant) {
        let until = now.as_nanos().checked_sub(rtt.as_nanos()).map(Instant::from_nanos);
        self.forgotten = self.forgotten.max(until);
    }
}

/// Returns how many of these arrivals are forgotten: they are in the order of time.
fn past(recent: &VecDeque<Instant>, forgotten: Option<Instant>) -> usize {
    forgotten.map_or(0, |until| recent.partition_point(|&arrival| arrival <= until))
}

/// Returns `X_recv`, where so many packets came within the last round-trip time.
fn received(packets: usize, size: f64, rtt: Duration) -> f64 {
    packets as f64 * size / rtt.as_secs_f64()
}

/// Returns the loss interval before the first event: the one that gives the rate so far, in bytes per second,
/// and at least half a packet a round-trip time (section 6.3.1).
fn first_interval(by: Specification, size: f64, rtt: f64, highest: f64) -> f64 {
    1.0 / loss_event_rate(by, size, rtt, highest.max(0.5 * size / rtt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tfrc::throughput;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn receiver() -> TfrcReceiver {
        TfrcReceiver::new(&serde_json::from_str(r#"{"tfrc": "rfc5348"}"#).unwrap())
    }

    /// A packet that took 30 ms comes at `millis`.
    fn data(receiver: &mut TfrcReceiver, number: u32, millis: u64, rtt: Option<Duration>) -> Option<Report> {
        receiver.on_data(number, Envelope { sent: at(millis - 30), rtt }, at(millis))
    }

    #[test]
    fn packets_without_a_round_trip_time_are_all_reported() {
        let mut receiver = receiver();
        let first = data(&mut receiver, 0, 30, None).unwrap();
        assert_eq!(first, Report { echo: at(0), held: Duration::ZERO, received: 0.0, loss: 0.0, events: 0 });
        assert!(data(&mut receiver, 1, 1030, None).is_some());
        assert_eq!(receiver.wake(), Instant::NEVER);
        assert_eq!(data(&mut receiver, 2, 1050, Some(RTT)), None, "from here on the timer runs");
        assert_eq!(receiver.wake(), at(1150));
        // Packet 3 is lost, and that is known with the third later one.
        let reported =
            |number: &u32| data(&mut receiver, *number, 1050 + u64::from(*number), Some(RTT)).is_some();
        assert_eq!((4..8).filter(reported).collect::<Vec<_>>(), [6]);
    }

    #[test]
    fn reports_come_once_a_round_trip_with_what_came_in_it() {
        let mut receiver = receiver();
        for number in 0..10 {
            assert_eq!(data(&mut receiver, number, 30 + u64::from(number) * 20, Some(RTT)), None);
            if number == 5 {
                // At 130 ms: packets of 50, 70, 90, 110 and 130 ms, 5000 bytes in 0.1 s.
                let report = receiver.on_wake(at(130)).unwrap();
                assert_eq!((report.received, report.echo, report.held), (50_000.0, at(100), Duration::ZERO));
            }
        }
        assert_eq!(receiver.on_wake(at(229)), None);
        let report = receiver.on_wake(at(230)).unwrap();
        assert_eq!((report.received, report.held), (40_000.0, Duration::from_millis(20)), "150 to 210 ms");
    }

    #[test]
    fn after_a_silent_round_trip_the_next_packet_is_reported_at_once() {
        let mut receiver = receiver();
        assert_eq!(data(&mut receiver, 0, 30, Some(RTT)), None);
        assert!(receiver.on_wake(at(130)).is_some());
        assert_eq!((receiver.on_wake(at(230)), receiver.wake()), (None, Instant::NEVER));
        let report = data(&mut receiver, 1, 500, Some(RTT)).unwrap();
        assert_eq!(
            (report.received, receiver.wake()),
            (10_000.0, at(600)),
            "one packet a round trip at least"
        );
    }

    #[test]
    fn a_new_loss_event_is_reported_at_once_with_an_interval_that_fits_the_rate() {
        let mut receiver = receiver();
        (0..10).for_each(|n| assert_eq!(data(&mut receiver, n, 30 + u64::from(n) * 5, Some(RTT)), None));
        for (number, millis) in [(11, 85), (12, 90)] {
            assert_eq!(data(&mut receiver, number, millis, Some(RTT)), None);
        }
        // Thirteen packets within the round trip, less the one lost.
        let report = data(&mut receiver, 13, 95, Some(RTT)).unwrap();
        assert_eq!((report.events, report.received), (1, 130_000.0));
        assert!(
            (throughput(Specification::Rfc5348, 1000.0, 0.1, report.loss) / 130_000.0 - 1.0).abs() < 1e-6,
            "{}",
            report.loss
        );
        assert_eq!(receiver.wake(), at(195));
        // At least half a packet a round trip.
        assert!(
            (throughput(
                Specification::Rfc5348,
                1000.0,
                0.1,
                1.0 / first_interval(Specification::Rfc5348, 1000.0, 0.1, 0.0)
            ) - 5000.0)
                .abs()
                < 0.1
        );
    }
}

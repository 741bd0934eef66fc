//! What keeps a TCP sender from sending more, and for how long: the times of Linux's `TCP_INFO`
//! (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`), and those that it leaves out.
//!
//! The sender notes the time when the reason changes, not at each packet.

use perhop_core::{Duration, Instant};

/// Why a connection sends nothing more just now. The first that holds, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Losses are being repaired: what had been sent when they were found is not all acknowledged. A full
    /// window or buffer goes before.
    Recovery,
    /// Nothing is outstanding, and there is nothing to send: the application is idle, or the connection is
    /// being opened.
    Idle,
    /// The application has handed over no more.
    Application,
    /// The sender's buffer takes no more.
    Buffer,
    /// The receiver's window is full.
    Receiver,
    /// The congestion control lets out no more, by its window or its pacing rate.
    Congestion,
}

impl Limit {
    /// Each of them, in the order of [`LimitTimes`].
    pub const ALL: [Self; 6] =
        [Self::Recovery, Self::Idle, Self::Application, Self::Buffer, Self::Receiver, Self::Congestion];
}

/// How long each reason held. Together they are the time in which the connection was active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitTimes([Duration; 6]);

impl LimitTimes {
    /// Returns how long this reason held.
    pub const fn of(&self, limit: Limit) -> Duration {
        self.0[limit as usize]
    }

    /// Adds a span under this reason.
    pub fn add(&mut self, limit: Limit, span: Duration) {
        let time = &mut self.0[limit as usize];
        *time = *time + span;
    }

    /// Returns the time in which the connection was active.
    pub fn active(&self) -> Duration {
        self.0.into_iter().fold(Duration::ZERO, |sum, time| sum + time)
    }

    /// Returns the time in which data was outstanding or waited to be sent (`tcpi_busy_time`).
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.active().as_nanos() - self.of(Limit::Idle).as_nanos())
    }

    /// Returns the part of the active time in which this reason held; none if it never was active.
    pub fn share(&self, limit: Limit) -> Option<f64> {
        let active = self.active().as_nanos();
        (active > 0).then(|| self.of(limit).as_nanos() as f64 / active as f64)
    }

    /// Adds the times of another connection, or of another part of the network.
    pub(crate) fn join(&mut self, other: &Self) {
        for limit in Limit::ALL {
            self.add(limit, other.of(limit));
        }
    }

    /// Returns what has passed since an earlier count.
    #[must_use]
    pub(crate) fn since(&self, before: &Self) -> Self {
        let left =
            |limit: Limit| Duration::from_nanos(self.of(limit).as_nanos() - before.of(limit).as_nanos());
        Self(Limit::ALL.map(left))
    }
}

/// The reason that holds now, since when, and the times before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitClock {
    since: Instant,
    times: LimitTimes,
}

impl LimitClock {
    /// Ends the time of `before`, which is none outside of the active time: another reason holds from now on.
    #[cold]
    pub(crate) fn turn(&mut self, before: Option<Limit>, now: Instant) {
        self.times = self.at(before, now);
        self.since = now;
    }

    /// Returns the times by now, while this reason holds.
    pub(crate) fn at(&self, limit: Option<Limit>, now: Instant) -> LimitTimes {
        let mut times = self.times;
        if let Some(limit) = limit {
            times.add(limit, now.since(self.since));
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn times_by_hand() {
        let mut clock = LimitClock::default();
        clock.turn(None, at(100));
        clock.turn(Some(Limit::Idle), at(150));
        clock.turn(Some(Limit::Congestion), at(250));
        let times = clock.at(Some(Limit::Receiver), at(400));
        let shares = Limit::ALL.map(|limit| times.share(limit).unwrap());
        assert_eq!(shares, [0.0, 50.0 / 300.0, 0.0, 0.0, 0.5, 100.0 / 300.0]);
        assert_eq!((times.active(), times.busy()), (Duration::from_millis(300), Duration::from_millis(250)));
        let later = clock.at(Some(Limit::Receiver), at(450)).since(&times);
        assert_eq!((later.share(Limit::Receiver), later.active()), (Some(1.0), Duration::from_millis(50)));
        assert_eq!(LimitTimes::default().share(Limit::Idle), None);
    }
}

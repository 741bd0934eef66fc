//! What kept a TCP connection of the kernel from sending more: from the times that its `TCP_INFO` counts, and
//! from what it says at each time at which it is asked.

use perhop_core::{Duration, Instant};
use perhop_sim::transport::limits::{Limit, LimitTimes};

use crate::system::TcpInfo;

/// A connection's times so far.
///
/// The kernel counts how long data was outstanding (`tcpi_busy_time`), and how long of that the receiver's
/// window (`tcpi_rwnd_limited`) and the sender's buffer (`tcpi_sndbuf_limited`) held it. The rest of the time
/// since the last question counts as recovery if losses are being repaired when it is asked, as the
/// application's if that has handed over all, and else as the congestion control's.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitMeter {
    times: LimitTimes,
    asked: Instant,
    /// Whether the connection is over when all that it was given is acknowledged.
    ends: bool,
    /// What the kernel had counted by then, in microseconds: busy, and of that limited by the receiver and by
    /// the buffer.
    counted: [u64; 3],
}

impl LimitMeter {
    /// Begins a connection now; if `ends`, it is over when all that it was given is acknowledged, or it waits
    /// for more.
    pub(super) fn begin(now: Instant, ends: bool) -> Self {
        Self { asked: now, ends, ..Self::default() }
    }

    /// Takes what the kernel says now; `is_all`: the application has handed over all. Returns the times so
    /// far.
    pub(super) fn take(&mut self, info: &TcpInfo, is_all: bool, now: Instant) -> LimitTimes {
        let elapsed = now.since(std::mem::replace(&mut self.asked, now)).as_nanos();
        let counted = [info.busy_us, info.receiver_limited_us, info.buffer_limited_us];
        let before = std::mem::replace(&mut self.counted, counted);
        let [busy, receiver, buffer] =
            std::array::from_fn(|place| counted[place].saturating_sub(before[place]).saturating_mul(1000));
        let busy = busy.min(elapsed);
        let receiver = receiver.min(busy);
        let buffer = buffer.min(busy - receiver);
        let rest = if info.is_recovering {
            Limit::Recovery
        } else if is_all && info.unsent == 0 {
            Limit::Application
        } else {
            Limit::Congestion
        };
        let idle = if self.ends && is_all && busy == 0 { 0 } else { elapsed - busy };
        for (limit, nanos) in [
            (Limit::Idle, idle),
            (Limit::Receiver, receiver),
            (Limit::Buffer, buffer),
            (rest, busy - receiver - buffer),
        ] {
            self.times.add(limit, Duration::from_nanos(nanos));
        }
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(times: &LimitTimes) -> [u64; 6] {
        [Limit::Idle, Limit::Application, Limit::Buffer, Limit::Receiver, Limit::Congestion, Limit::Recovery]
            .map(|limit| times.of(limit).as_nanos() / 1_000_000)
    }

    #[test]
    fn times_of_the_kernel_by_hand() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let info = |busy: u64, receiver: u64, buffer: u64| TcpInfo {
            busy_us: busy * 1000,
            receiver_limited_us: receiver * 1000,
            buffer_limited_us: buffer * 1000,
            unsent: 1,
            ..TcpInfo::default()
        };
        let mut meter = LimitMeter::begin(at(1000), true);
        assert_eq!(millis(&meter.take(&info(80, 50, 10), false, at(1100))), [20, 0, 10, 50, 20, 0]);
        let losing = TcpInfo { is_recovering: true, ..info(180, 50, 10) };
        assert_eq!(millis(&meter.take(&losing, false, at(1200))), [20, 0, 10, 50, 20, 100]);
        let last = TcpInfo { unsent: 0, ..info(210, 50, 10) };
        assert_eq!(millis(&meter.take(&last, true, at(1250))), [40, 30, 10, 50, 20, 100]);
        assert_eq!(millis(&meter.take(&last, true, at(9000))), [40, 30, 10, 50, 20, 100], "it is over");
        // The kernel's clock ticks in milliseconds: more than has passed does not count.
        let mut meter = LimitMeter::begin(at(0), false);
        assert_eq!(millis(&meter.take(&info(11, 11, 0), false, at(10))), [0, 0, 0, 10, 0, 0]);
    }
}

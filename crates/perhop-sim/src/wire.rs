//! Wires, which take packets from one end to the other: a link between a host and its router is no more.

#![expect(clippy::inline_always, reason = "see the event loop, which these calls are a part of")]

use perhop_core::medium::Dispatch;
use perhop_core::{Bitrate, Duration, Instant, Rng, Serializer};

/// The private link between a flow's host and its router.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessSpec {
    /// The rate of the link.
    pub rate: Bitrate,
    /// The propagation delay of the link.
    pub delay: Duration,
}

/// Sends packets one after the other, and takes them to the far end. A link between a host and its router is
/// no more than that: endless and unobserved.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    busy_until: Instant,
    delay: Duration,
    /// Packets of this size take this many nanoseconds, exactly. Most packets on a wire are of one size.
    size: u16,
    nanos: u32,
    /// For those that do not; `None` in place of a wire, where a host sits at its router.
    slow: Option<Box<Slow>>,
}

/// What few packets need: most have sizes that the wire knows, and are handed over at once.
#[derive(Clone, Debug)]
struct Slow {
    serializer: Option<Serializer>,
    dispatch: Option<Box<Dispatch>>,
}

const _: () = assert!(size_of::<Wire>() == 32);

/// Packets sent later than this, long after any run, are as if sent then: half of all time.
const LATEST: Instant = Instant::from_nanos(1 << 63);

impl Wire {
    /// Makes an idle wire.
    pub(crate) fn new(rate: Bitrate, delay: Duration) -> Self {
        Self {
            delay: delay.min(Duration::AGES),
            slow: Some(Box::new(Slow { serializer: Some(Serializer::new(rate)), dispatch: None })),
            ..Self::none()
        }
    }

    /// Makes the wire of a host with this private link to its router, if it has one.
    pub(crate) fn of_access(access: Option<&AccessSpec>) -> Self {
        access.map_or_else(Self::none, |access| Self::new(access.rate, access.delay))
    }

    /// Makes what a host has in place of a wire that sits at its router.
    pub(crate) fn none() -> Self {
        Self { busy_until: Instant::ZERO, delay: Duration::ZERO, size: 0, nanos: 0, slow: None }
    }

    /// Has the host hand over each packet after a random time of at most `most`.
    pub(crate) fn after(mut self, most: Duration, rng: Rng) -> Self {
        let slow = self.slow.get_or_insert_with(|| Box::new(Slow { serializer: None, dispatch: None }));
        slow.dispatch = Some(Box::new(Dispatch::new(most, rng)));
        self
    }

    /// Returns the wire with another rate and delay, for the packets that come from now on.
    pub(crate) fn changed(&self, rate: Bitrate, delay: Duration) -> Self {
        Self { busy_until: self.busy_until, ..Self::new(rate, delay) }
    }

    /// Returns when everything is sent that was put on the wire.
    #[inline(always)]
    pub(crate) fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// Puts `size` bytes on the wire as soon as it is free, and says when they reach the far end.
    #[inline(always)]
    pub(crate) fn pass(&mut self, size: u16, now: Instant) -> Instant {
        if size != self.size {
            return self.pass_other(size, now);
        }
        // From `LATEST` on, nearly 2³¹ packets of four seconds at most have room before the end of time.
        self.busy_until = self.busy_until.max(now).later(Duration::from_nanos(u64::from(self.nanos)));
        self.busy_until.later(self.delay)
    }

    #[cold]
    fn pass_other(&mut self, size: u16, now: Instant) -> Instant {
        let Some(slow) = &mut self.slow else {
            self.size = size; // Others of this size need not come here.
            return now;
        };
        let now = slow.dispatch.as_mut().map_or(now, |dispatch| dispatch.hand_over(now));
        let Some(serializer) = &mut slow.serializer else { return now };
        self.busy_until = serializer.transmit(size, self.busy_until.max(now)).min(LATEST);
        // With jitter, every packet comes here.
        if slow.dispatch.is_none()
            && let Some(nanos) = serializer.exactly().and_then(|nanos| u32::try_from(nanos).ok())
        {
            (self.size, self.nanos) = (size, nanos);
        }
        self.busy_until + self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_after_waiting_serialization_and_delay() {
        let mut wire = Wire::new(Bitrate::from_bps(8_000_000).unwrap(), Duration::from_millis(5));
        let arrivals = [0, 1].map(|_| wire.pass(1000, Instant::ZERO));
        assert_eq!(arrivals, [6_000_000, 7_000_000].map(Instant::from_nanos));
        assert_eq!(Wire::none().pass(1000, Instant::from_nanos(7)), Instant::from_nanos(7));
    }

    #[test]
    fn a_host_with_jitter_hands_packets_over_late_and_in_order() {
        let most = Duration::from_millis(3);
        for wire in
            [Wire::none(), Wire::new(Bitrate::from_bps(80_000_000).unwrap(), Duration::from_millis(5))]
        {
            let (mut plain, mut late) =
                (wire.clone(), wire.after(most, Rng::stream(1, "flows/test/dispatch")));
            let (mut sum, mut last) = (0.0, Instant::ZERO);
            for step in 0..10_000 {
                // Far enough apart that no packet waits for another.
                let now = Instant::ZERO + Duration::from_millis(10 * step);
                let (before, after) = (plain.pass(1000, now), late.pass(1000, now));
                assert!(before <= after && after <= before + most);
                sum += after.since(before).as_secs_f64();
                // A second one does not overtake it.
                let second = late.pass(1000, now);
                plain.pass(1000, now);
                assert!(second >= after && after > last);
                last = second;
            }
            assert!((sum / 10_000.0 - 0.001_5).abs() < 5e-5, "{sum}");
        }
    }

    #[test]
    fn a_wire_that_is_busy_for_ages_stays_so() {
        let mut wire = Wire::new(Bitrate::from_bps(2).unwrap(), Duration::from_nanos(u64::MAX));
        wire.pass(1, Instant::ZERO); // 4 s: most packets on it may be of this size
        let mut before = Instant::ZERO;
        for step in 0..200_000 {
            let arrival = wire.pass(if step < 100_000 { 65_535 } else { 1 }, Instant::ZERO);
            assert!(before <= arrival && arrival < Instant::NEVER);
            before = arrival;
        }
    }

    #[test]
    fn sizes_that_take_whole_nanoseconds_and_others_share_a_wire_exactly() {
        // 3 Gbit/s: 3 bytes take 8 ns, 1 byte takes 2.666… ns. Whatever the order, the serializer says when
        // they are sent.
        let rate = Bitrate::from_bps(3_000_000_000).unwrap();
        let (mut wire, mut serializer) = (Wire::new(rate, Duration::ZERO), Serializer::new(rate));
        for step in 0..200_u64 {
            let (size, now) =
                ([3, 3, 1, 3, 1, 1, 2][step as usize % 7], Instant::from_nanos(step * step % 900));
            assert_eq!(wire.pass(size, now), serializer.transmit(size, now), "{step}");
        }
    }
}

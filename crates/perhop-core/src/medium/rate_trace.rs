//! Traces of the rate of a link: when a real link could send how much.

use std::sync::Arc;

use crate::curves::{Convex, Line};
use crate::measure::{PortStatistics, Usage};
use crate::scheduler::Discipline;
use crate::{Duration, Instant, Packet, Served, TypedPort};

/// The bytes of a delivery opportunity.
const OPPORTUNITY: u64 = 1500;
/// A packet whose last byte no trace ever sends is as if it was sent then, long after any run.
const LATEST: Instant = Instant::from_nanos(1 << 63);

/// When a link could send how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateTrace {
    /// Packet delivery opportunities, each of 1500 bytes (Netravali et al., Mahimahi, USENIX ATC 2015).
    Opportunities(Opportunities),
    /// A rate from each time on.
    Rates(Rates),
}

/// Times at which a link delivers 1500 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    millis: Vec<u32>,
    repeats: bool,
}

/// Times from which a link has a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Times and rates in bit/s.
    rows: Vec<(Duration, u64)>,
    /// When they begin again.
    period: Option<Duration>,
    /// What a period sends, in bit · ns/s.
    work: u128,
}

impl Opportunities {
    /// Opportunities at these milliseconds; when they repeat, they begin again at the last one. `None` for
    /// times that go back or are all zero.
    pub fn new(millis: Vec<u32>, repeats: bool) -> Option<Self> {
        (millis.is_sorted() && millis.last().is_some_and(|&last| last > 0))
            .then_some(Self { millis, repeats })
    }

    /// The time of an opportunity in a repetition that begins at `base`; `None` beyond the last.
    fn at(&self, number: usize, base: Instant) -> Option<Instant> {
        self.millis.get(number).map(|&millis| base + Duration::from_millis(u64::from(millis)))
    }

    /// The last one.
    fn end(&self) -> Duration {
        Duration::from_millis(u64::from(*self.millis.last().expect("it is not empty")))
    }

    /// Opportunities up to this time.
    fn by(&self, time: Duration) -> u128 {
        let in_one = |time: Duration| {
            let millis = time.as_nanos() / 1_000_000;
            self.millis.partition_point(|&at| u64::from(at) <= millis) as u128
        };
        if !self.repeats {
            return in_one(time);
        }
        let (whole, rest) = divide(time, self.end());
        u128::from(whole) * self.millis.len() as u128 + in_one(rest)
    }
}

impl Rates {
    /// Rates in bit/s from these times on, of which the first is zero. The last rate stays, or, if they
    /// repeat, lasts as long as the one before it. `None` for times that do not rise, rates that are all
    /// zero, and a single rate that is to repeat.
    pub fn new(rows: Vec<(Duration, u64)>, repeats: bool) -> Option<Self> {
        let begins = rows.first().is_some_and(|&(time, _)| time.is_zero());
        let rises = rows.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let period = match rows[..] {
            [.., (before, _), (last, _)] if repeats => Some(last + (last - before)),
            _ if repeats => return None,
            _ => None,
        };
        let sends = rows.iter().any(|&(_, rate)| rate > 0);
        let mut rates = Self { rows, period, work: 0 };
        rates.work = period.map_or(0, |period| rates.work_within(period));
        (begins && rises && sends).then_some(rates)
    }

    /// Returns what the rates send within this time of a period.
    fn work_within(&self, time: Duration) -> u128 {
        let ends = self.rows[1..].iter().map(|&(time, _)| time).chain([Duration::from_nanos(u64::MAX)]);
        let spans = self.rows.iter().zip(ends).take_while(|((begin, _), _)| *begin < time);
        spans
            .map(|(&(begin, rate), end)| u128::from((end.min(time) - begin).as_nanos()) * u128::from(rate))
            .sum()
    }

    /// Returns what the rates send up to this time.
    fn work_by(&self, time: Duration) -> u128 {
        let Some(period) = self.period else { return self.work_within(time) };
        let (whole, rest) = divide(time, period);
        u128::from(whole) * self.work + self.work_within(rest)
    }
}

/// Returns how often this time contains a period, and the rest.
fn divide(time: Duration, period: Duration) -> (u64, Duration) {
    let (time, period) = (time.as_nanos(), period.as_nanos());
    (time / period, Duration::from_nanos(time % period))
}

/// The parts of the mean rate for which a trace's least service is found.
const PARTS: i128 = 16;

/// Returns the most by which a steady rate runs ahead of these spans, each with its length in nanoseconds,
/// its rate in bit/s, and what is sent at its end in 10⁻⁹ bit.
fn most_ahead(rate: i128, spans: impl Iterator<Item = (i128, i128, i128)>) -> i128 {
    let (mut ahead, mut least, mut most) = (0_i128, 0, 0);
    for (nanos, sent, at_end) in spans {
        ahead += (rate - sent) * nanos;
        most = most.max(ahead - least);
        ahead -= at_end;
        least = least.min(ahead);
    }
    most
}

impl RateTrace {
    /// Returns the least that a link which follows the trace sends in any time during which packets wait:
    /// lines for several rates, each behind it by the most that it ever runs ahead. A trace that repeats is
    /// seen twice, since a rate up to its mean runs no further ahead in more repetitions.
    pub fn least_service(&self) -> Convex {
        let spans: Vec<(i128, i128, i128)> = match self {
            Self::Rates(rates) => {
                let ends = rates.rows[1..].iter().map(|&(time, _)| time).chain(rates.period);
                let spans = rates.rows.iter().zip(ends);
                spans
                    .map(|(&(begin, rate), end)| (i128::from((end - begin).as_nanos()), rate.into(), 0))
                    .collect()
            }
            Self::Opportunities(opportunities) => {
                let times = std::iter::once(&0).chain(&opportunities.millis).zip(&opportunities.millis);
                let sent = i128::from(OPPORTUNITY) * 8_000_000_000;
                times.map(|(before, at)| (i128::from(at - before) * 1_000_000, 0, sent)).collect()
            }
        };
        let (repeats, last) = match self {
            Self::Rates(rates) => (rates.period.is_some(), rates.rows.last().map_or(0, |&(_, rate)| rate)),
            Self::Opportunities(opportunities) => (opportunities.repeats, 0),
        };
        let nanos: i128 = spans.iter().map(|span| span.0).sum();
        let sent: i128 = spans.iter().map(|&(nanos, rate, at_end)| nanos * rate + at_end).sum();
        // Behind the last row its rate stays, if nothing repeats.
        let most = if repeats { sent / nanos.max(1) } else { last.into() };
        // What an opportunity cannot send of a packet, and what is rounded.
        let rest =
            if matches!(self, Self::Opportunities(_)) { i128::from(OPPORTUNITY) * 8_000_000_000 } else { 0 };
        let lines = (1..=PARTS).map(|part| most * part / PARTS).filter(|&rate| rate > 0).map(|rate| {
            let twice = spans.iter().chain(&spans).copied();
            let shown = if repeats { 2 * spans.len() } else { spans.len() };
            Line { rate, amount: most_ahead(rate, twice.take(shown)) + rest + 2 * rate }
        });
        Convex::of(lines)
    }

    /// When nothing more is sent; `None` for never.
    pub fn end(&self) -> Option<Duration> {
        match self {
            Self::Opportunities(opportunities) => (!opportunities.repeats).then(|| opportunities.end()),
            Self::Rates(Rates { rows, period: None, .. }) => match rows[..] {
                [.., (_, before), (last, 0)] if before > 0 => Some(last),
                _ => None,
            },
            Self::Rates(_) => None,
        }
    }

    /// Returns the rates that the trace has up to this time, in bit/s; none for opportunities, the time
    /// between which is no rate.
    pub fn rates_by(&self, end: Duration) -> impl Iterator<Item = u64> {
        let rows = match self {
            Self::Opportunities(_) => &[][..],
            Self::Rates(rates) => &rates.rows[..],
        };
        rows.iter().filter(move |(from, _)| *from < end).map(|&(_, rate)| rate)
    }

    /// Returns what a link that follows the trace could send and did.
    pub fn usage(&self, statistics: &PortStatistics) -> Usage {
        let at_once = matches!(self, Self::Opportunities(_));
        statistics.usage_by(at_once, |from, to| self.capacity(from, to))
    }

    /// Returns what can be sent between two times, in 10⁻⁹ bit: opportunities after the first and up to the
    /// second.
    pub fn capacity(&self, from: Instant, to: Instant) -> u128 {
        let by = |at: Instant| {
            let time = at.since(Instant::ZERO);
            match self {
                Self::Opportunities(opportunities) => {
                    opportunities.by(time) * u128::from(OPPORTUNITY) * 8_000_000_000
                }
                Self::Rates(rates) => rates.work_by(time),
            }
        };
        by(to) - by(from)
    }
}

/// A link that sends by a trace, during a run.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    trace: Arc<RateTrace>,
    /// The next opportunity, or the rate of now; and when the repetition began to which it belongs.
    place: usize,
    base: Instant,
    busy_until: Instant,
    /// Bytes that the opportunity of that time can still send; or what rounding to a nanosecond has left to
    /// send, in bit · ns/s.
    rest: u64,
    /// When a port was last asked to be served: see [`serve`](Self::serve).
    asked: Instant,
}

impl Timetable {
    /// An idle link at time zero.
    pub(crate) fn new(trace: &Arc<RateTrace>) -> Self {
        let (base, busy_until, asked) = (Instant::ZERO, Instant::ZERO, Instant::ZERO);
        Self { trace: Arc::clone(trace), place: 0, base, busy_until, rest: 0, asked }
    }

    /// Returns the earliest time from `now` on at which the link can begin to send; `None` for never.
    pub(crate) fn opens(&mut self, now: Instant) -> Option<Instant> {
        if now < self.busy_until {
            return Some(self.busy_until);
        }
        let trace = Arc::clone(&self.trace);
        match &*trace {
            RateTrace::Opportunities(_) if self.rest > 0 && now == self.busy_until => Some(now),
            RateTrace::Opportunities(opportunities) => {
                self.rest = 0;
                self.skip(opportunities, |at| at < now)
            }
            RateTrace::Rates(rates) => {
                while self.rate_ends(rates) <= now || rates.rows[self.place].1 == 0 {
                    if self.rate_ends(rates) == Instant::NEVER {
                        return None;
                    }
                    self.change_rate(rates);
                }
                Some(now.max(self.base + rates.rows[self.place].0))
            }
        }
    }

    /// Notes that the queue was empty up to `now`: opportunities are lost. A packet that comes at the time of
    /// an opportunity misses it.
    pub(crate) fn idle(&mut self, now: Instant) {
        let trace = Arc::clone(&self.trace);
        if let RateTrace::Opportunities(opportunities) = &*trace {
            self.rest = 0;
            self.skip(opportunities, |at| at <= now);
        }
    }

    /// Begins to send a packet at a time at which it [`opens`](Self::opens); returns when it is sent.
    pub(crate) fn transmit(&mut self, size: u16, now: Instant) -> Instant {
        let trace = Arc::clone(&self.trace);
        self.busy_until = match &*trace {
            RateTrace::Opportunities(opportunities) => self.fill(opportunities, u64::from(size), now),
            RateTrace::Rates(rates) => self.serialize(rates, size, now),
        };
        self.busy_until
    }

    /// Serves a port, if the link can begin to send a packet now; else says once when it can.
    pub(crate) fn serve<P: Packet, D: Discipline<P>>(
        &mut self,
        port: &mut TypedPort<'_, D>,
        now: Instant,
    ) -> Served<P> {
        match self.opens(now) {
            Some(at) if at <= now => port.serve_on(now, |size| self.transmit(size, now)),
            Some(at) if at != self.asked => {
                self.asked = at;
                Served::Later(at)
            }
            Some(_) | None => Served::Nothing,
        }
    }

    /// Skips opportunities; returns the time of the next one.
    fn skip(&mut self, opportunities: &Opportunities, skips: impl Fn(Instant) -> bool) -> Option<Instant> {
        loop {
            let at = opportunities.at(self.place, self.base)?;
            if !skips(at) {
                return Some(at);
            }
            self.use_up(opportunities);
        }
    }

    fn use_up(&mut self, opportunities: &Opportunities) {
        self.place += 1;
        if self.place == opportunities.millis.len() && opportunities.repeats {
            self.place = 0;
            self.base += opportunities.end();
        }
    }

    /// Sends a packet in one opportunity after another.
    fn fill(&mut self, opportunities: &Opportunities, size: u64, now: Instant) -> Instant {
        let (mut at, mut missing) = (now, size);
        loop {
            if self.rest == 0 {
                let Some(next) = opportunities.at(self.place, self.base) else { return LATEST };
                (at, self.rest) = (next, OPPORTUNITY);
                self.use_up(opportunities);
            }
            let taken = missing.min(self.rest);
            (self.rest, missing) = (self.rest - taken, missing - taken);
            if missing == 0 {
                return at;
            }
        }
    }

    fn rate_ends(&self, rates: &Rates) -> Instant {
        let next = rates.rows.get(self.place + 1).map(|&(time, _)| time);
        next.or(rates.period).map_or(Instant::NEVER, |time| self.base + time)
    }

    fn change_rate(&mut self, rates: &Rates) {
        self.place += 1;
        if let Some(period) = rates.period.filter(|_| self.place == rates.rows.len()) {
            self.place = 0;
            self.base += period;
        }
    }

    /// Sends a packet at the rates from now on.
    fn serialize(&mut self, rates: &Rates, size: u16, now: Instant) -> Instant {
        let (mut at, mut missing) = (now, u128::from(size) * 8_000_000_000 + u128::from(self.rest));
        loop {
            if let Some(period) = rates.period.filter(|_| at == self.base && missing > rates.work) {
                let whole = (missing - 1) / rates.work;
                missing -= whole * rates.work;
                self.base += period.saturating_mul(whole.try_into().unwrap_or(u64::MAX));
                at = self.base;
            }
            let (rate, end) = (u128::from(rates.rows[self.place].1), self.rate_ends(rates));
            let most = rate * u128::from(end.since(at).as_nanos());
            if rate > 0 && missing <= most {
                self.rest = (missing % rate) as u64;
                return at + Duration::from_nanos((missing / rate) as u64);
            }
            if end >= LATEST {
                return LATEST;
            }
            missing -= most;
            at = end;
            self.change_rate(rates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Rng, Serializer};

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    fn opportunities(millis: &[u32], repeats: bool) -> Arc<RateTrace> {
        Arc::new(RateTrace::Opportunities(Opportunities::new(millis.to_vec(), repeats).unwrap()))
    }

    /// Rates in kbit/s from these milliseconds on.
    fn rates(rows: &[(u64, u64)], repeats: bool) -> Arc<RateTrace> {
        let rows = rows.iter().map(|&(millis, kbps)| (Duration::from_millis(millis), kbps * 1000)).collect();
        Arc::new(RateTrace::Rates(Rates::new(rows, repeats).unwrap()))
    }

    /// When packets that all wait at `from` microseconds have been sent, in microseconds.
    fn sent(trace: &Arc<RateTrace>, from: u64, sizes: &[u16]) -> Vec<u64> {
        let mut table = Timetable::new(trace);
        table.idle(at(from));
        let mut now = at(from);
        let send = |&size: &u16| {
            now = table.opens(now).unwrap();
            now = table.transmit(size, now);
            now.as_nanos() / 1000
        };
        sizes.iter().map(send).collect()
    }

    #[test]
    fn opportunities_by_hand() {
        // Opportunities at 1, 3, 3, 6 | 7, 9, 9, 12 | 13 … ms.
        let trace = opportunities(&[1, 3, 3, 6], true);
        assert_eq!(sent(&trace, 0, &[1500; 6]), [1000, 3000, 3000, 6000, 7000, 9000]);
        // Small packets share an opportunity, large ones take several; what is left goes to the next packet
        // if it waits.
        assert_eq!(sent(&trace, 0, &[500, 1000, 500, 1001, 40]), [1000, 1000, 3000, 3000, 3000]);
        assert_eq!(sent(&trace, 0, &[500, 500, 501, 4000]), [1000, 1000, 3000, 6000]);
        // A packet that comes at 3 ms misses both opportunities of that time.
        assert_eq!(sent(&trace, 3000, &[40, 40]), [6000, 6000]);
        assert_eq!(sent(&trace, 2999, &[40, 1500]), [3000, 3000]);
        // Without repetition, the fifth packet waits for ever.
        let once = opportunities(&[1, 3, 3, 6], false);
        assert_eq!(sent(&once, 0, &[1500, 1500, 1500, 1501])[..3], [1000, 3000, 3000]);
        let mut table = Timetable::new(&once);
        assert_eq!(table.opens(at(6000)), Some(at(6000)));
        assert_eq!(table.opens(at(6001)), None);
    }

    #[test]
    fn opportunities_that_nobody_uses_are_lost() {
        let mut table = Timetable::new(&opportunities(&[1, 3, 3, 6], true));
        assert_eq!(table.opens(at(2500)), Some(at(3000)));
        assert_eq!(table.transmit(700, at(3000)), at(3000));
        // The rest of this opportunity and the other one of that time go to packets that wait, not to those
        // that come later.
        let mut idle = table.clone();
        assert_eq!((table.opens(at(3000)), table.transmit(2300, at(3000))), (Some(at(3000)), at(3000)));
        idle.idle(at(3000));
        assert_eq!(idle.opens(at(3000)), Some(at(6000)));
        assert_eq!(table.opens(at(3000)), Some(at(6000)));
    }

    #[test]
    fn rates_by_hand() {
        // 1500 bytes take 12 ms at 1 Mbit/s, 1.2 ms at 10 Mbit/s.
        let trace = rates(&[(0, 1000), (6, 0), (10, 10_000), (20, 1000)], false);
        // Half of the first is sent by 6 ms, nothing until 10 ms.
        assert_eq!(sent(&trace, 0, &[1500, 1500]), [10_600, 11_800]);
        // From 19.4 ms on: 6 of 12 kbit by 20 ms, the rest takes 6 ms.
        assert_eq!(sent(&trace, 19_400, &[1500, 125]), [26_000, 27_000]);
        // One that comes at a rate of zero waits.
        assert_eq!(sent(&trace, 7000, &[1250]), [11_000]);
        // The last rate lasts 10 ms, as the one before: a period sends 6, 0, 100 and 10 kbit within 30 ms.
        let again = rates(&[(0, 1000), (6, 0), (10, 10_000), (20, 1000)], true);
        assert_eq!(sent(&again, 29_000, &[125, 1500]), [30_000, 40_600]);
        // 500 kbit: 4 periods of 116 kbit, 6 kbit until 10 ms, then 30 kbit; two packets of 31,250 bytes.
        assert_eq!(sent(&again, 0, &[31_250, 31_250])[1], 4 * 30_000 + 13_000);
        let stops = rates(&[(0, 1000), (6, 0)], false);
        assert_eq!(Timetable::new(&stops).opens(at(6000)), None);
        assert_eq!(Timetable::new(&stops).transmit(750, at(0)), at(6000));
        assert_eq!(Timetable::new(&stops).transmit(751, at(0)), LATEST);
    }

    #[test]
    fn a_trace_of_one_rate_is_a_link_of_that_rate_to_the_nanosecond() {
        let rows = (0..50).map(|row| (Duration::from_nanos(row * 777_777), 3_141_592)).collect();
        let trace = Arc::new(RateTrace::Rates(Rates::new(rows, true).unwrap()));
        let (mut table, mut rng) = (Timetable::new(&trace), Rng::stream(1, "trace"));
        let mut link = Serializer::new(Bitrate::from_bps(3_141_592).unwrap());
        let mut now = Instant::ZERO;
        for _ in 0..10_000 {
            let size = 40 + rng.up_to(1460) as u16;
            let free = link.transmit(size, now);
            let begin = table.opens(now).unwrap();
            assert_eq!(table.transmit(size, begin), free);
            now += Duration::from_nanos(rng.up_to(5_000_000));
        }
    }

    #[test]
    fn a_packet_longer_than_many_periods_takes_no_longer_to_compute() {
        let rows = vec![(Duration::ZERO, 1), (Duration::from_nanos(1000), 0)];
        let trace = Arc::new(RateTrace::Rates(Rates::new(rows, true).unwrap()));
        // 8 bit at half a bit per second on average.
        let sent = Timetable::new(&trace).transmit(1, Instant::ZERO);
        assert_eq!(sent, Instant::from_nanos(16_000_000_000 - 1000));
    }

    #[test]
    fn mean_rates_by_hand() {
        let mean = |trace: &Arc<RateTrace>, begin, end| {
            trace.capacity(at(begin), at(end)) / u128::from(end - begin) / 1000
        };
        let trace = opportunities(&[1, 3, 3, 6], true);
        // Four of 12 kbit each 6 ms; after 3 ms until 6 ms one.
        assert_eq!(mean(&trace, 0, 12_000), 8_000_000);
        assert_eq!(mean(&trace, 3000, 6000), 4_000_000);
        assert_eq!(mean(&trace, 3000, 5000), 0);
        assert_eq!(mean(&opportunities(&[1, 3, 3, 6], false), 0, 12_000), 4_000_000);
        let again = rates(&[(0, 1000), (6, 0), (10, 10_000), (20, 1000)], true);
        assert_eq!(mean(&again, 0, 60_000), 232_000 / 60 * 1000 + 666);
        assert_eq!(mean(&again, 5000, 11_000), 11_000_000 / 6);
    }

    #[test]
    fn traces_that_send_nothing_or_go_back_are_refused() {
        for millis in [vec![], vec![0, 0], vec![2, 1]] {
            assert_eq!(Opportunities::new(millis, true), None);
        }
        let second = Duration::from_secs(1);
        for rows in [vec![], vec![(second, 5)], vec![(Duration::ZERO, 0)], vec![(Duration::ZERO, 5); 2]] {
            assert_eq!(Rates::new(rows, false), None);
        }
        assert_eq!(Rates::new(vec![(Duration::ZERO, 5)], true), None);
    }
}

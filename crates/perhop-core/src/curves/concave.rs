//! Arrival curves.

use std::cmp::Ordering;

use smallvec::smallvec;

use super::{Convex, Line, Lines, Nanobits, bends, compare, conjugate, hull};
use crate::{Bitrate, Bytes, Duration, curves};

/// A concave arrival curve: zero at zero, above it the least of several lines, that is of token buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concave {
    /// In the order of rising rates and falling amounts; never empty.
    lines: Lines,
}

impl Concave {
    /// Returns the curve of no packets.
    pub fn zero() -> Self {
        Self { lines: smallvec![Line { rate: 0, amount: 0 }] }
    }

    /// Returns the curve of a token bucket of this rate and depth.
    pub fn token_bucket(rate: Bitrate, burst: Bytes) -> Self {
        Self::of([Line { rate: rate.as_bps().into(), amount: curves::nanobits(burst) }])
    }

    /// Returns the curve of so many bytes and no more.
    pub fn volume(volume: Bytes) -> Self {
        Self::of([Line { rate: 0, amount: curves::nanobits(volume) }])
    }

    /// Returns the curve of packets of this size, which follow each other no sooner than after `gap`.
    pub fn packets(size: Bytes, gap: Duration) -> Self {
        let (amount, gap) = (curves::nanobits(size), i128::from(gap.as_nanos().max(1)));
        Self::of([Line { rate: curves::divided_up(amount, gap), amount }])
    }

    /// Returns the least of these lines.
    pub fn of(lines: impl IntoIterator<Item = Line>) -> Self {
        let mut lines: Lines = lines.into_iter().collect();
        lines.sort_unstable_by_key(|line| (line.rate, line.amount));
        let mut least = i128::MAX;
        lines.retain(|line| {
            let is_lower = line.amount < least;
            least = least.min(line.amount);
            is_lower
        });
        hull(&mut lines);
        Self { lines }
    }

    /// Returns the lines, in the order of rising rates.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns whether no packet comes.
    pub fn is_zero(&self) -> bool {
        *self == Self::zero()
    }

    /// Returns the rate in the long run, in bit/s.
    pub fn rate(&self) -> i128 {
        self.lines[0].rate
    }

    /// Returns how much may come at once.
    pub fn burst(&self) -> Nanobits {
        self.lines.last().map_or(0, |line| line.amount)
    }

    /// Returns how much may come in this time, its ends included.
    pub fn at(&self, time: Duration) -> Nanobits {
        let time = i128::from(time.as_nanos());
        let values = self.lines.iter().map(|line| line.rate.saturating_mul(time).saturating_add(line.amount));
        values.min().unwrap_or(0)
    }

    /// Returns the curve of both arrivals together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        if let ([ours], [theirs]) = (&self.lines[..], &other.lines[..]) {
            let amount = ours.amount.saturating_add(theirs.amount);
            return Self { lines: smallvec![Line { rate: ours.rate + theirs.rate, amount }] };
        }
        // From the bursts on; each line of the sum is one of each, and any such sum is above both.
        let (mut one, mut two) = (self.lines.len() - 1, other.lines.len() - 1);
        let mut lines = Lines::with_capacity(one + two + 1);
        loop {
            let (ours, theirs) = (self.lines[one], other.lines[two]);
            let amount = ours.amount.saturating_add(theirs.amount);
            lines.push(Line { rate: ours.rate + theirs.rate, amount });
            let bend = |lines: &[Line], at: usize| {
                let (next, here) = (lines[at.checked_sub(1)?], lines[at]);
                Some((next.amount - here.amount, here.rate - next.rate))
            };
            match (bend(&self.lines, one), bend(&other.lines, two)) {
                (None, None) => return Self::of(lines),
                (Some(ours), Some(theirs)) if compare(ours, theirs).is_some_and(Ordering::is_gt) => {
                    two -= 1;
                }
                (Some(_), _) => one -= 1,
                (None, Some(_)) => two -= 1,
            }
        }
    }

    /// Returns the least of both curves: arrivals that keep to both. It is their convolution, too (Le Boudec
    /// & Thiran, theorem 3.1.6).
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        Self::of(self.lines.iter().chain(&other.lines).copied())
    }

    /// Returns the curve of so many arrivals of this kind together.
    #[must_use]
    pub fn times(&self, count: u64) -> Self {
        let scaled = |&Line { rate, amount }: &Line| Line {
            rate: rate.saturating_mul(count.into()),
            amount: amount.saturating_mul(count.into()),
        };
        if count == 0 { Self::zero() } else { Self::of(self.lines.iter().map(scaled)) }
    }

    /// Returns the curve behind something that delays each packet by up to this much more than another one,
    /// in order: α(t + jitter).
    #[must_use]
    pub fn delayed(&self, jitter: Duration) -> Self {
        let jitter = i128::from(jitter.as_nanos());
        let later = |&Line { rate, amount }: &Line| Line {
            rate,
            amount: amount.saturating_add(rate.saturating_mul(jitter)),
        };
        Self::of(self.lines.iter().map(later))
    }

    /// Returns the curve with each line lower by this amount, but never below zero.
    #[must_use]
    pub fn less(&self, amount: Nanobits) -> Self {
        let lower = |line: &Line| Line { amount: (line.amount - amount).max(0), ..*line };
        Self::of(self.lines.iter().map(lower))
    }

    /// Returns the curve with each line higher by this amount.
    #[must_use]
    pub fn more(&self, amount: Nanobits) -> Self {
        self.less(-amount)
    }

    /// Returns the curve behind a server with this service curve: the deconvolution α ⊘ β (Le Boudec &
    /// Thiran, theorem 1.4.3). `None` if the server is slower than the arrivals.
    pub fn through(&self, service: &Convex) -> Option<Self> {
        let lines = bends(&self.lines, service.lines()).into_iter().filter_map(|rate| {
            let amount = self.conjugate(rate)?.saturating_add(service.conjugate(rate)?);
            Some(Line { rate, amount })
        });
        let lines: Lines = lines.collect();
        (!lines.is_empty()).then(|| Self::of(lines))
    }

    /// Returns whether arrivals with this curve keep to the other one: it is above this one everywhere.
    pub fn conforms_to(&self, other: &Self) -> bool {
        other.lines.iter().all(|line| self.conjugate(line.rate).is_some_and(|least| least <= line.amount))
    }

    /// Returns the least amount with which a line of this rate is above the curve; `None` if none is.
    pub(super) fn conjugate(&self, rate: i128) -> Option<Nanobits> {
        let last = self.lines.last()?;
        if rate >= last.rate { Some(last.amount) } else { conjugate(&self.lines, rate) }
    }
}

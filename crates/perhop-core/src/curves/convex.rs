//! Service curves.

use smallvec::smallvec;

use super::{Concave, Line, Lines, Nanobits, bends, conjugate, divided_up, duration, hull, scaled_up};
use crate::{Bitrate, Duration};

/// A convex service curve: zero, or the greatest of several lines above it, that is of rates with latencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convex {
    /// In the order of rising rates and costs, the first with rate and cost zero.
    lines: Lines,
}

impl Convex {
    /// Returns the curve of no service.
    pub fn none() -> Self {
        Self { lines: smallvec![Line { rate: 0, amount: 0 }] }
    }

    /// Returns the curve of a server with this rate, which begins after this latency.
    pub fn rate_latency(rate: Bitrate, latency: Duration) -> Self {
        let rate = i128::from(rate.as_bps());
        Self::of([Line { rate, amount: rate.saturating_mul(latency.as_nanos().into()) }])
    }

    /// Returns the greatest of these lines and zero.
    pub fn of(lines: impl IntoIterator<Item = Line>) -> Self {
        let mut lines: Lines = lines.into_iter().collect();
        lines.retain(|line| line.rate > 0);
        for line in &mut lines {
            line.amount = line.amount.max(0);
        }
        lines.sort_unstable_by_key(|line| (line.rate, line.amount));
        lines.dedup_by_key(|line| line.rate);
        // A line decides only if no steeper one costs as little.
        let mut least = i128::MAX;
        let mut kept = Lines::with_capacity(lines.len() + 1);
        for line in lines.into_iter().rev() {
            if line.amount < least {
                least = line.amount;
                kept.push(line);
            }
        }
        kept.push(Line { rate: 0, amount: 0 });
        kept.reverse();
        hull(&mut kept);
        Self { lines: kept }
    }

    /// Returns the lines, in the order of rising rates, the first zero.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the lines above zero, in the order of rising rates.
    pub fn slopes(&self) -> &[Line] {
        &self.lines[1..]
    }

    /// Returns the rate in the long run, in bit/s.
    pub fn rate(&self) -> i128 {
        self.lines.last().map_or(0, |line| line.rate)
    }

    /// Returns whether nothing is ever guaranteed.
    pub fn is_none(&self) -> bool {
        self.slopes().is_empty()
    }

    /// Returns how much is served in this time at least.
    pub fn at(&self, time: Duration) -> Nanobits {
        let time = i128::from(time.as_nanos());
        let values = self.lines.iter().map(|line| line.rate.saturating_mul(time).saturating_sub(line.amount));
        values.max().unwrap_or(0)
    }

    /// Returns the time by which more than this amount is served; `None` if that is never certain.
    pub fn time_of(&self, amount: Nanobits) -> Option<Duration> {
        let times =
            self.slopes().iter().map(|line| divided_up(amount.saturating_add(line.amount), line.rate));
        times.min().map(duration)
    }

    /// Returns the greatest of both curves: a server that guarantees both.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        Self::of(self.lines.iter().chain(&other.lines).copied())
    }

    /// Returns the service curve of two servers, one behind the other: their convolution β ⊗ β′ (Le Boudec &
    /// Thiran, theorem 1.4.6).
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let lines = bends(&self.lines, &next.lines).into_iter().filter_map(|rate| {
            let amount = self.conjugate(rate)?.saturating_add(next.conjugate(rate)?);
            Some(Line { rate, amount })
        });
        Self::of(lines)
    }

    /// Returns what is left of a strict service curve beside other arrivals, whatever the order of service:
    /// [β − α]⁺ (Le Boudec & Thiran, section 6.2.1).
    #[must_use]
    pub fn beside(&self, others: &Concave) -> Self {
        let left = self.slopes().iter().flat_map(|ours| {
            others.lines().iter().map(|other| Line {
                rate: ours.rate - other.rate,
                amount: ours.amount.saturating_add(other.amount),
            })
        });
        Self::of(left.filter(|line| line.rate > 0))
    }

    /// Returns the curve with so much less service.
    #[must_use]
    pub fn less(&self, amount: Nanobits) -> Self {
        let costlier = |line: &Line| Line { amount: line.amount.saturating_add(amount), ..*line };
        Self::of(self.slopes().iter().map(costlier))
    }

    /// Returns the curve of service that begins so much later.
    #[must_use]
    pub fn later(&self, latency: Duration) -> Self {
        let latency = i128::from(latency.as_nanos());
        let later = |line: &Line| Line {
            amount: line.amount.saturating_add(line.rate.saturating_mul(latency)),
            ..*line
        };
        Self::of(self.slopes().iter().map(later))
    }

    /// Returns the part `part / whole` of the service: rates rounded down, costs up.
    #[must_use]
    pub fn part(&self, part: i128, whole: i128) -> Self {
        let scaled = self.slopes().iter().filter_map(|line| {
            let rate = line.rate.checked_mul(part)? / whole;
            // A rate that is rounded down is below the exact line from time zero on.
            Some(Line { rate, amount: scaled_up(line.amount, part, whole) })
        });
        Self::of(scaled.filter(|line| line.rate > 0))
    }

    /// Returns the least cost with which a line of this rate is below the curve; `None` if none is.
    pub(super) fn conjugate(&self, rate: i128) -> Option<Nanobits> {
        conjugate(&self.lines, rate)
    }
}

//! Curves of network calculus: Cruz, "A Calculus for Network Delay", IEEE Transactions on Information Theory
//! 37(1), 1991; Le Boudec & Thiran, "Network Calculus", LNCS 2050, Springer 2001.
//!
//! A [`Concave`] curve bounds arrivals: no interval of length t, its ends included, has more than α(t). A
//! [`Convex`] curve bounds service from below. Both are finite sets of lines, each a rate in bit/s and an
//! amount in 10⁻⁹ bit, so that the value at a whole nanosecond is a whole number and no bound is too small by
//! rounding: amounts of arrivals and costs of service are rounded up, rates of service down.
//!
//! A curve is kept by its conjugate (Le Boudec & Thiran, section 3.1, and Rockafellar 1970, section 12): for
//! each rate s the least amount with which a line of this rate is above α, or the least cost with which one
//! is below β. Convolution, deconvolution and both deviations are sums and minima of conjugates, taken at the
//! rates where one of them bends.

mod concave;
mod convex;
mod deviation;
mod tandem;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod worked;

pub use concave::Concave;
pub use convex::Convex;
pub use deviation::{backlog, delay, delay_behind};
pub use tandem::{left_in_order, paying_once};

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::{Bytes, Duration};

/// A number of 10⁻⁹ bits: what one bit/s sends in one nanosecond.
pub type Nanobits = i128;

/// A rate with an amount: `amount + rate · t` of arrivals, or `rate · t − amount` of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// In bit/s.
    pub rate: i128,
    /// In 10⁻⁹ bit.
    pub amount: Nanobits,
}

/// The lines of a curve: few curves have more than two.
type Lines = SmallVec<[Line; 2]>;

const PER_BYTE: i128 = 8_000_000_000;

/// Returns a size in 10⁻⁹ bit.
pub const fn nanobits(size: Bytes) -> Nanobits {
    size.get() as i128 * PER_BYTE
}

/// Returns an amount in whole bytes, rounded up.
pub fn bytes(amount: Nanobits) -> Bytes {
    Bytes::new(u64::try_from(divided_up(amount.max(0), PER_BYTE)).unwrap_or(u64::MAX))
}

/// Returns a time in whole nanoseconds as a duration.
fn duration(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

/// Returns a quotient rounded up; `by` is above zero.
pub fn divided_up(amount: i128, by: i128) -> i128 {
    amount.div_euclid(by) + i128::from(amount.rem_euclid(by) != 0)
}

/// Returns `amount · part / whole`, rounded up; a factor above any that occurs gives the largest number.
pub fn scaled_up(amount: i128, part: i128, whole: i128) -> i128 {
    amount.checked_mul(part).map_or(i128::MAX, |product| divided_up(product, whole))
}

/// Leaves out the lines that never decide: those that are not corners of the lower convex hull. `lines` are
/// in the order of rising rates, each rate once. Where numbers are too large to compare, a line stays, which
/// changes no value.
fn hull(lines: &mut Lines) {
    if lines.len() < 3 {
        return;
    }
    let mut kept = Lines::with_capacity(lines.len());
    for &line in lines.iter() {
        while let [.., before, last] = kept[..] {
            let turn = |from: Line, to: Line, other: Line| {
                (to.amount - from.amount).checked_mul(other.rate - from.rate)
            };
            let above = turn(before, last, line).zip(turn(before, line, last));
            if above.is_none_or(|(last, chord)| last < chord) {
                break;
            }
            kept.pop();
        }
        kept.push(line);
    }
    *lines = kept;
}

/// Returns the conjugate at a rate between those of the lines, which rise: rounded up.
fn conjugate(lines: &[Line], rate: i128) -> Option<Nanobits> {
    let place = lines.partition_point(|line| line.rate < rate);
    let next = lines.get(place)?;
    if next.rate == rate {
        return Some(next.amount);
    }
    let before = lines[place.checked_sub(1)?];
    let (rise, run) = (next.amount - before.amount, next.rate - before.rate);
    let part = rise.checked_mul(rate - before.rate).map(|product| divided_up(product, run));
    Some(part.map_or(before.amount.max(next.amount), |part| before.amount + part))
}

/// Returns the rates at which one of two curves bends, in order.
fn bends(one: &[Line], other: &[Line]) -> SmallVec<[i128; 4]> {
    let mut rates: SmallVec<[i128; 4]> = one.iter().chain(other).map(|line| line.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

/// Compares two fractions with denominators above zero; `None` where the numbers are too large.
fn compare(one: (i128, i128), other: (i128, i128)) -> Option<Ordering> {
    Some(one.0.checked_mul(other.1)?.cmp(&other.0.checked_mul(one.1)?))
}

//! How far arrivals run ahead of service.

use super::{Concave, Convex, Nanobits, bends, divided_up, duration};
use crate::Duration;

/// Returns the most time that something which comes waits until it is served, in order of arrival: the
/// horizontal deviation h(α, β) (Le Boudec & Thiran, theorem 1.4.2), rounded up to a nanosecond. `None` if
/// the server is slower than the arrivals.
///
/// A line of rate s between both curves has the distance (α*(s) + β*(s)) / s; the least such distance is the
/// deviation, at a rate where one of the curves bends.
pub fn delay(arrivals: &Concave, service: &Convex) -> Option<Duration> {
    let rates = bends(arrivals.lines(), service.lines()).into_iter().filter(|&rate| rate > 0);
    let distances = rates.filter_map(|rate| {
        let between = arrivals.conjugate(rate)?.saturating_add(service.conjugate(rate)?);
        Some(divided_up(between, rate))
    });
    distances.min().map(duration)
}

/// Returns the most that has come and is not served yet: the vertical deviation v(α, β) (Le Boudec & Thiran,
/// theorem 1.4.1). `None` if the server is slower than the arrivals.
pub fn backlog(arrivals: &Concave, service: &Convex) -> Option<Nanobits> {
    let rates = bends(arrivals.lines(), service.lines()).into_iter();
    let most =
        rates.filter_map(|rate| Some(arrivals.conjugate(rate)?.saturating_add(service.conjugate(rate)?)));
    most.min()
}

/// Returns the most time that something which comes waits where flows that never have more than `content` in
/// the queue share it with other arrivals, in order of arrival: all that goes before it is this content and
/// what came of the others while it waited. The time by which a strict service curve has served both; `None`
/// if it never does.
pub fn delay_behind(content: Nanobits, others: &Concave, service: &Convex) -> Option<Duration> {
    let times = service.slopes().iter().flat_map(|ours| {
        others.lines().iter().filter_map(move |other| {
            let rate = ours.rate - other.rate;
            let amount = content.saturating_add(ours.amount).saturating_add(other.amount);
            (rate > 0).then(|| divided_up(amount, rate))
        })
    });
    times.min().map(duration)
}

//! Worked examples, and laws that hold for any curves.

use proptest::prelude::*;

use super::*;
use crate::Bitrate;

fn rate(text: &str) -> Bitrate {
    text.parse().unwrap()
}

fn time(text: &str) -> Duration {
    text.parse().unwrap()
}

fn bucket(text: &str, burst: u64) -> Concave {
    Concave::token_bucket(rate(text), Bytes::new(burst))
}

#[test]
fn a_token_bucket_through_a_rate_with_latency() {
    // Le Boudec & Thiran, section 1.4.3: h = T + b / R, v = b + r T, and behind it γ(r, b + r T).
    let (arrivals, service) = (bucket("2Mbps", 1000), Convex::rate_latency(rate("8Mbps"), time("3ms")));
    assert_eq!(delay(&arrivals, &service), Some(time("4ms")));
    assert_eq!(backlog(&arrivals, &service).map(bytes), Some(Bytes::new(1750)));
    assert_eq!(arrivals.through(&service), Some(bucket("2Mbps", 1750)));
}

#[test]
fn a_t_spec_through_a_rate_with_latency() {
    // The same section: arrivals min(M + p t, b + r t) have h = (M + (b − M)(p − R)⁺ / (p − r)) / R + T and
    // v = b + r T where T is beyond the corner (b − M) / (p − r), and else as the curve has it there.
    let arrivals = bucket("20Mbps", 1500).min(&bucket("2Mbps", 10_500));
    let service = Convex::rate_latency(rate("8Mbps"), time("10ms"));
    // The corner is at 72 Mbit / 18 Mbit/s = 4 ms: M + 9000 B · 12 / 18 = 7500 B take 7.5 ms.
    assert_eq!(delay(&arrivals, &service), Some(time("17.5ms")));
    assert_eq!(backlog(&arrivals, &service).map(bytes), Some(Bytes::new(13_000)));
    let soon = Convex::rate_latency(rate("8Mbps"), time("1ms"));
    assert_eq!(delay(&arrivals, &soon), Some(time("8.5ms")));
    // At 4 ms 11 500 B have come, and 3000 B are served.
    assert_eq!(backlog(&arrivals, &soon).map(bytes), Some(Bytes::new(8500)));
}

#[test]
fn two_servers_are_one_with_the_lower_rate_and_both_latencies() {
    let servers = [("8Mbps", "3ms"), ("5Mbps", "2ms")].map(|(r, t)| Convex::rate_latency(rate(r), time(t)));
    let both = servers[0].then(&servers[1]);
    assert_eq!(both, Convex::rate_latency(rate("5Mbps"), time("5ms")));
    // The burst is paid once: 5 ms + 8000 bit / 5 Mbit/s, not (3 + 1) + (2 + (8000 + 6000) / 5000) ms.
    assert_eq!(delay(&bucket("2Mbps", 1000), &both), Some(time("6.6ms")));
}

#[test]
fn what_is_left_beside_other_arrivals() {
    let link = Convex::rate_latency(rate("8Mbps"), time("1ms"));
    // 6 Mbit/s after (1000 B + 8 Mbit/s · 1 ms) / 6 Mbit/s.
    let left = link.beside(&bucket("2Mbps", 1000));
    assert_eq!(left.slopes(), [Line { rate: 6_000_000, amount: 16_000 * 1_000_000_000 }]);
    assert!(link.beside(&bucket("8Mbps", 1)).is_none());
}

#[test]
fn flows_with_windows_are_content_that_may_be_there_already() {
    // 10 kB take 10 ms; meanwhile 2 Mbit/s of others come, and a burst: d = (10 kB + 1 kB) / 6 Mbit/s.
    let link = Convex::rate_latency(rate("8Mbps"), Duration::ZERO);
    let content = nanobits(Bytes::new(10_000));
    let most = delay_behind(content, &bucket("2Mbps", 1000), &link);
    assert_eq!(most, Some(Duration::from_nanos(14_666_667)));
    assert_eq!(delay_behind(content, &Concave::zero(), &link), Some(time("10ms")));
    assert_eq!(delay_behind(content, &bucket("9Mbps", 0), &link), None);
}

#[test]
fn volumes_end() {
    let link = Convex::rate_latency(rate("8Mbps"), time("1ms"));
    let volume = Concave::volume(Bytes::new(5000));
    assert_eq!(delay(&volume, &link), Some(time("6ms")));
    assert_eq!(delay(&volume.plus(&bucket("9Mbps", 1)), &link), None);
    assert_eq!(delay(&bucket("8Mbps", 1000), &link), Some(time("2ms")));
}

#[test]
fn rounding_is_to_the_safe_side() {
    // 3 bit/s: a byte takes 2.666… s.
    let slow = Convex::rate_latency(rate("3bps"), Duration::ZERO);
    assert_eq!(delay(&bucket("1bps", 1), &slow), Some(Duration::from_nanos(2_666_666_667)));
    assert_eq!(slow.part(1, 2).slopes(), [Line { rate: 1, amount: 0 }]);
    // A packet of a byte each 3 ns: more than 2.666 Gbit/s.
    assert_eq!(Concave::packets(Bytes::new(1), Duration::from_nanos(3)).rate(), 2_666_666_667);
}

fn concaves() -> impl Strategy<Value = Concave> {
    let line = (0..200_u64, 0..3000_u64);
    proptest::collection::vec(line, 1..5).prop_map(|lines| {
        let line = |(rate, amount)| Line { rate: i128::from(rate), amount: i128::from(amount) };
        Concave::of(lines.into_iter().map(line))
    })
}

fn convexes() -> impl Strategy<Value = Convex> {
    let line = (1..200_u64, 0..3000_u64);
    proptest::collection::vec(line, 1..5).prop_map(|lines| {
        let line = |(rate, amount)| Line { rate: i128::from(rate), amount: i128::from(amount) };
        Convex::of(lines.into_iter().map(line))
    })
}

/// The curves are in bit/s and 10⁻⁹ bit: here a nanosecond sends a unit, so times are small whole numbers.
fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

proptest! {
    #[test]
    fn sums_and_minima_are_those_of_the_values(one in concaves(), two in concaves(), t in 0..100_u64) {
        let (a, b) = (one.at(nanos(t)), two.at(nanos(t)));
        prop_assert_eq!(one.plus(&two).at(nanos(t)), a + b);
        prop_assert_eq!(one.min(&two).at(nanos(t)), a.min(b));
        prop_assert_eq!(one.times(3).at(nanos(t)), 3 * a);
        prop_assert_eq!(one.delayed(nanos(7)).at(nanos(t)), one.at(nanos(t + 7)));
    }

    #[test]
    fn what_is_left_is_the_difference_of_the_values(service in convexes(), others in concaves(), t in 0..100_u64) {
        let left = service.beside(&others).at(nanos(t));
        prop_assert!(left <= (service.at(nanos(t)) - others.at(nanos(t))).max(0).max(left.min(0)));
        // The difference may fall; what is served never does.
        let best = (0..=t).map(|u| service.at(nanos(u)) - others.at(nanos(u))).max().unwrap_or(0).max(0);
        prop_assert!(left <= best);
    }

    #[test]
    fn no_delay_and_no_backlog_at_a_whole_time_is_larger(arrivals in concaves(), service in convexes()) {
        let (Some(most), Some(largest)) = (delay(&arrivals, &service), backlog(&arrivals, &service)) else {
            prop_assert!(arrivals.rate() > service.rate());
            return Ok(());
        };
        for t in 0..300 {
            prop_assert!(service.at(nanos(t) + most) >= arrivals.at(nanos(t)), "at {}", t);
            prop_assert!(arrivals.at(nanos(t)) - service.at(nanos(t)) <= largest, "at {}", t);
        }
    }

    #[test]
    fn the_delay_is_the_least(arrivals in concaves(), service in convexes()) {
        // With a tenth less of it some time is too late, unless rounding makes the difference.
        let Some(most) = delay(&arrivals, &service).filter(|most| most.as_nanos() > 20) else { return Ok(()) };
        let shorter = nanos(most.as_nanos() - most.as_nanos() / 10 - 2);
        let late = |t: u64| service.at(nanos(t) + shorter) < arrivals.at(nanos(t));
        prop_assert!((0..20_000).any(late), "{:?} {:?} {:?}", arrivals, service, most);
    }

    #[test]
    fn output_and_concatenation_are_as_defined(arrivals in concaves(), one in convexes(), two in convexes()) {
        if let Some(output) = arrivals.through(&one) {
            for (t, u) in (0..60).flat_map(|t| (0..60).map(move |u| (t, u))) {
                prop_assert!(output.at(nanos(t)) >= arrivals.at(nanos(t + u)) - one.at(nanos(u)));
            }
        }
        let both = one.then(&two);
        for t in 0..80 {
            let least = (0..=t).map(|u| one.at(nanos(u)) + two.at(nanos(t - u))).min().unwrap_or(0);
            prop_assert!(both.at(nanos(t)) <= least);
        }
    }

    #[test]
    fn conforming_is_lying_below(one in concaves(), two in concaves()) {
        let below = (0..3000).all(|t| one.at(nanos(t)) <= two.at(nanos(t)));
        prop_assert!(below || !one.conforms_to(&two));
    }
}

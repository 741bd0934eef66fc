//! The TCP throughput equation (RFC 5348, section 3.1), with b = 1 and `t_RTO` = 4R as the RFC recommends;
//! and the formula without timeouts (Mathis, Semke, Mahdavi & Ott 1997).

use super::Specification;

/// Returns the rate in bytes per second of a TCP with segments of `size` bytes, a round-trip time of `rtt`
/// seconds and loss event rate p: s / (R f(p)), section 8.1. Without losses it is infinite.
pub fn throughput(by: Specification, size: f64, rtt: f64, p: f64) -> f64 {
    size / (rtt * f(by, p))
}

/// Returns the loss event rate, at most 1, at which [`throughput`] gives this rate, found by bisection.
pub fn loss_event_rate(by: Specification, size: f64, rtt: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // 60 halvings reach the last digit of any rate that matters; the RFC asks for 5 % (section 6.3.1).
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if throughput(by, size, rtt, middle) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn f(by: Specification, p: f64) -> f64 {
    let by_losses = (2.0 * p / 3.0).sqrt();
    match by {
        Specification::Rfc5348 => by_losses + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p),
        Specification::SquareRoot => by_losses,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Specification::{Rfc5348, SquareRoot};

    #[test]
    fn the_equation_by_hand() {
        // p = 0.01: f = sqrt(0.006667) + 12 sqrt(0.00375) 0.01 1.0032 = 0.0816497 + 0.0073720 = 0.0890216.
        assert!((throughput(Rfc5348, 1000.0, 0.1, 0.01) - 112_332.3).abs() < 1.0);
        // p = 0.1: f = sqrt(0.066667) + 12 sqrt(0.0375) 0.1 1.32 = 0.2581989 + 0.3067404 = 0.5649393.
        assert!((throughput(Rfc5348, 1000.0, 0.05, 0.1) - 35_402.0).abs() < 1.0);
        assert_eq!(throughput(Rfc5348, 1000.0, 0.1, 0.0), f64::INFINITY);
    }

    #[test]
    fn without_timeouts_four_times_the_losses_halve_the_rate() {
        // p = 0.01: f = 0.0816497 and 1000 / (0.1 f) = 122 474.5; p = 0.04 gives half of it.
        assert!((throughput(SquareRoot, 1000.0, 0.1, 0.01) - 122_474.5).abs() < 0.1);
        assert!((throughput(SquareRoot, 1000.0, 0.1, 0.04) - 61_237.2).abs() < 0.1);
        assert!((loss_event_rate(SquareRoot, 1000.0, 0.1, 61_237.2) - 0.04).abs() < 1e-6);
    }

    #[test]
    fn bisection_inverts_it() {
        for p in [1e-9, 1e-4, 0.01, 0.3] {
            let found = loss_event_rate(Rfc5348, 1000.0, 0.1, throughput(Rfc5348, 1000.0, 0.1, p));
            assert!((found / p - 1.0).abs() < 1e-6, "{p}: {found}");
        }
        assert_eq!(loss_event_rate(Rfc5348, 1000.0, 0.1, 1.0), 1.0, "a rate below that of p = 1");
    }
}

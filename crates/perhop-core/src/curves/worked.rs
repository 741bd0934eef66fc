//! Worked examples of others: books, RFCs, and the functional tests of a deterministic network calculator.

use super::*;
use crate::Bitrate;

/// In kbit and Mbit/s, so that times are in milliseconds.
fn line(rate: i128, kbit: i128) -> Line {
    Line { rate: rate * 1_000_000, amount: kbit * 1000 * 1_000_000_000 }
}

fn bucket(rate: i128, kbit: i128) -> Concave {
    Concave::of([line(rate, kbit)])
}

/// A server of this rate in Mbit/s, which begins after so many milliseconds.
fn server(rate: i128, millis: i128) -> Convex {
    Convex::of([line(rate, rate * millis)])
}

fn millis(time: Option<Duration>) -> f64 {
    time.map_or(f64::INFINITY, |time| time.as_nanos() as f64 / 1e6)
}

fn kbit(amount: Option<Nanobits>) -> f64 {
    amount.map_or(f64::INFINITY, |amount| amount as f64 / 1e12)
}

/// Within what rounding to nanoseconds and bits can do.
fn close(ours: f64, theirs: f64) {
    assert!(ours >= theirs - 1e-9 && ours <= theirs + 1e-5, "{ours}, not {theirs}");
}

#[test]
fn t_specs_of_le_boudec_and_thiran() {
    // Section 1.4.1, proposition "Intserv model": M, p, r, b, R, T, and the delay and backlog of its
    // formulas.
    for (m, p, b, latency, most, backlogged) in [
        (12, 10.0, 100, 5, 451.0 / 9.0, 902.0 / 9.0),
        (12, 10.0, 100, 20, 586.0 / 9.0, 120.0),
        (12, 1.5, 100, 20, 26.0, 42.0),
    ] {
        let peak = Line { rate: (p * 1e6) as i128, ..line(0, m) };
        let arrivals = Concave::of([peak, line(1, b)]);
        let service = server(2, latency);
        close(millis(delay(&arrivals, &service)), most);
        close(kbit(backlog(&arrivals, &service)), backlogged);
    }
}

#[test]
fn the_reservation_of_le_boudec_and_thiran() {
    // Section 2.2, "Reservation Setup with RSVP": M = 2 K, b = 32 K (K is 1024 bytes), p = 10 Mb/s, r = 512
    // kb/s; C = 51.2 kb and D = 0.1 s in all: at 512 kb/s a slack of 0.288 s is left of 1 s, and 0.6 s need
    // 622 kb/s.
    let k = |k: u64| Bytes::new(1024 * k);
    let rate = |text: &str| text.parse::<Bitrate>().unwrap();
    let arrivals =
        Concave::token_bucket(rate("10Mbps"), k(2)).min(&Concave::token_bucket(rate("512kbps"), k(32)));
    let most = |rate: i128| {
        let cost = 51_200 * 1_000_000_000 + rate * 100_000_000;
        millis(delay(&arrivals, &Convex::of([Line { rate, amount: cost }])))
    };
    close(most(512_000), 712.0);
    assert!(most(622_000) <= 600.0 && most(621_000) > 600.0);
}

#[test]
fn deviations_of_nancy() {
    // github.com/rzippo/nancy, Nancy.Tests/MinPlusAlgebra/Curves/Deviations.cs: rate and burst, rate and
    // latency.
    for ((burst, rate), (served, latency), h, v) in [
        ((4, 3), (4, 3), 4.0, 13.0),
        ((4, 5), (4, 3), f64::INFINITY, f64::INFINITY),
        ((4, 3), (2, 3), f64::INFINITY, f64::INFINITY),
        ((2, 0), (2, 2), 3.0, 2.0),
        ((4, 2), (3, 0), 4.0 / 3.0, 4.0),
    ] {
        let (arrivals, service) = (bucket(rate, burst), server(served, latency));
        close(millis(delay(&arrivals, &service)).min(1e9), h.min(1e9));
        close(kbit(backlog(&arrivals, &service)).min(1e9), v.min(1e9));
    }
    assert_eq!(bucket(10, 20).through(&server(30, 10)), Some(bucket(10, 120)));
    assert_eq!(bucket(30, 15).through(&server(40, 25)), Some(bucket(30, 765)));
    assert_eq!(bucket(30, 15).through(&server(20, 10)), None);
}

#[test]
fn priorities_of_le_boudec_and_thiran() {
    // Section 1.3.2 with three levels at 10 Mb/s and packets of 12 kb: delays of 3.2, 9 and 24 ms.
    let link = server(10, 0);
    let [high, middle, low] = [(2, 20), (3, 40), (4, 60)].map(|(rate, burst)| bucket(rate, burst));
    let packet = 12 * 1000 * 1_000_000_000;
    let first = link.less(packet);
    let second = link.beside(&high).less(packet);
    let third = link.beside(&high.plus(&middle));
    close(millis(delay(&high, &first)), 3.2);
    close(millis(delay(&middle, &second)), 9.0);
    close(millis(delay(&low, &third)), 24.0);
    let outputs = [high.through(&first), middle.through(&second), low.through(&third)];
    let bursts = outputs.map(|output| kbit(output.map(|output| output.burst())));
    [22.4, 52.0, 108.0].into_iter().zip(bursts).for_each(|(theirs, ours)| close(ours, theirs));
}

#[test]
fn one_server_of_the_functional_tests_of_dnc() {
    // NetCal/DNC_func_tests, S_1SC_2F_2AC: flows (4, 10) and (5, 25) at a server (10, 10).
    let flows = [(4, 10), (5, 25)];
    let all = bucket(9, 35);
    close(millis(delay(&all, &server(10, 10))), 13.5);
    close(millis(delay_behind(0, &all, &server(10, 10))), 135.0);
    close(kbit(backlog(&all, &server(10, 10))), 125.0);
    for (own, other, arbitrary, output, in_order) in
        [(0, 1, 27.0, 110.0, 14.5), (1, 0, 22.5, 350.0 / 3.0, 91.0 / 6.0)]
    {
        let [own, other] = [own, other].map(|number: usize| flows[number]);
        let (own, other) = (bucket(own.0, own.1), line(other.0, other.1));
        let left = server(10, 10).beside(&Concave::of([other]));
        close(millis(delay(&own, &left)), arbitrary);
        close(kbit(own.through(&left).map(|output| output.burst())), output);
        let left = left_in_order(line(10, 100), other).unwrap();
        close(millis(delay(&own, &left)), in_order);
    }
}

#[test]
fn tandems_of_the_functional_tests_of_dnc() {
    // TA_2S_1SC_2F_1AC_1P, TA_2S_1SC_4F_1AC_1P, TA_3S_1SC_2F_1AC_1P: equal flows over all of so many equal
    // servers; delays by total flow analysis in order of arrival, separated flow analysis in any order, and
    // PMOO.
    for (hops, rate, latency, flows, (r, b), total, separated, once) in [
        (2, 10, 10, 2, (5, 25), 40.0, 65.0, 50.0),
        (2, 10, 10, 4, (2, 10), 36.0, 82.5, 60.0),
        (3, 20, 20, 2, (5, 25), 97.5, 320.0 / 3.0, 250.0 / 3.0),
    ] {
        let node = server(rate, latency);
        let own = bucket(r, b);
        // All come over the same links: each is delayed by the latency behind a server.
        let mut all = bucket(flows * r, flows * b);
        let mut sum = 0.0;
        let mut others = bucket((flows - 1) * r, (flows - 1) * b);
        let mut whole: Option<Convex> = None;
        for _ in 0..hops {
            sum += millis(delay(&all, &node));
            all = all.through(&node).unwrap();
            let left = node.beside(&others);
            whole = Some(whole.map_or_else(|| left.clone(), |whole| whole.then(&left)));
            others = others.through(&node).unwrap();
        }
        close(sum, total);
        close(millis(delay(&own, &whole.unwrap())), separated);
        let servers = vec![(line(rate, rate * latency), (flows - 1) * r * 1_000_000); hops];
        let service = paying_once(&servers, line(0, (flows - 1) * b).amount).unwrap();
        close(millis(delay(&own, &service)), once);
    }
    // TA_2S_2SC_2F_1AC_1P: two servers that differ.
    let servers = [(line(10, 100), 2_500_000), (line(6, 36), 2_500_000)];
    let half = |rate: i128, bits: i128| Line { rate, amount: bits * 1_000_000_000 };
    let service = paying_once(&servers, half(0, 12_500).amount).unwrap();
    close(millis(delay(&Concave::of([half(2_500_000, 12_500)]), &service)), 242.0 / 7.0);
}

#[test]
fn expedited_forwarding_of_rfc_3247() {
    // Equation 7, D = B / R + E, with E = MTU / C for strict priority (section 5.1.1): 10 Mb/s, packets of 12
    // kb, a rate of 2 Mb/s and a burst of 24 kb: 13.2 ms. The priority queue itself is better than the rate
    // promises.
    let (arrivals, promised) =
        (bucket(2, 24), Convex::of([Line { amount: 2_400 * 1_000_000_000, ..line(2, 0) }]));
    close(millis(delay(&arrivals, &promised)), 13.2);
    assert!(delay(&arrivals, &server(10, 0).less(12_000 * 1_000_000_000)) < delay(&arrivals, &promised));
}

#[test]
fn aggregates_of_charny_and_le_boudec() {
    // Section 2.4, a commented-out table: h = 10 hops, flows of 32 kb/s and 100 bytes on links of 149.76 Mb/s
    // with a load of 4 and 8 %, packets of 1500 bytes: 16.88 and 74.29 ms over all hops; no bound from 1 / 9
    // on.
    let (hops, rate) = (10.0, 149.76e6);
    for (load, all) in [(0.04_f64, 16.877_f64), (0.08, 74.290)] {
        let (packet, burst) = (1500.0 * 8.0 / rate, load * 800.0 / 32e3);
        let one = (packet + burst) / (1.0 - (hops - 1.0) * load);
        assert!((hops * one * 1e3 - all).abs() < 1e-3);
        // The same as a fixed point of curves: what comes is delayed by all hops but the last.
        let arrivals = |delays: f64| {
            let rate = load * rate;
            Concave::of([Line { rate: rate as i128, amount: ((rate * (delays + 0.025)) * 1e9) as i128 }])
        };
        let node = Convex::of([Line { rate: rate as i128, amount: (12_000.0 * 1e9) as i128 }]);
        let mut found = 0.0;
        for _ in 0..200 {
            found = millis(delay(&arrivals((hops - 1.0) * found), &node)) / 1e3;
        }
        assert!((found - one).abs() < 1e-7, "{found} {one}");
    }
}

use super::super::DeliverySample;
use super::super::tests::{Path, ack, begin, loss, setup};
use super::*;
use perhop_core::Bytes;

fn bbr(seed: u64) -> Bbr3 {
    begin::<Bbr3>(&Setup { packet: Bytes::new(1500), seed, ..setup() })
}

const LINK: f64 = 50e6 / 12_000.0;

#[test]
fn the_first_rate_is_the_initial_window_in_a_round_trip_times_the_gain() {
    let mut bbr = bbr(1);
    assert_eq!(bbr.pacing_rate(), None);
    bbr.set_pacing(&AckSample { smoothed_rtt: 0.04, ..ack(1) });
    assert_eq!(bbr.pacing_rate().unwrap().as_bps(), 8_310_000);
}

#[test]
fn headroom_and_the_slope_of_the_long_term_bound() {
    let mut bbr = bbr(1);
    assert_eq!(bbr.with_headroom(), f64::INFINITY);
    let left = [100.0, 4.0].map(|long_term| {
        bbr.bounds.long_term = long_term;
        bbr.with_headroom()
    });
    assert_eq!(left, [85.0, 4.0]);
    bbr.output.window = 64.0;
    let steps = [(); 8].map(|()| {
        bbr.raise_slope();
        bbr.probe.step
    });
    assert_eq!(steps, [64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 1.0]);
}

#[test]
fn losses_above_two_percent_are_placed_where_they_passed_it() {
    // 100 in flight before it, two of them lost: the threshold was just reached. With three it was passed
    // before.
    assert_eq!(inflight_at_loss(3.0, 101.0), 100.0);
    assert!(inflight_at_loss(4.0, 101.0) < 100.0);
    let bbr = bbr(1);
    assert!(!bbr.is_too_high(2.0, 100.0) && bbr.is_too_high(2.1, 100.0));
}

#[test]
fn a1_a3_startup_ends_within_two_percent_of_the_link_and_drain_at_the_product() {
    // Draft, appendix A.1 and A.3.
    let mut path = Path::new(bbr(1), 50e6, 0.04);
    path.run_until(|bbr| bbr.state == State::Drain);
    assert!((path.control.rate.get() / LINK - 1.0).abs() < 0.02);
    assert!(path.control.is_full && path.control.pipe.stalled == 3);
    assert_eq!(path.control.gains(), (0.5, 2.0));
    path.run_until(|bbr| bbr.state != State::Drain);
    assert!(f64::from(path.pipe()) <= LINK * 0.04 + 2.0);
}

#[test]
fn a4_drain_ends_after_three_rounds_on_a_link_that_has_become_slower() {
    let mut bbr = bbr(1);
    (bbr.state, bbr.is_full) = (State::Drain, true);
    let states = [0, 10, 20, 30].map(|prior| {
        let sample = DeliverySample {
            delivered: 10,
            prior,
            interval: Duration::from_millis(40),
            rtt: Some(Duration::from_millis(40)),
            round: 0,
            lost: 0,
            in_flight: 500,
            limited: false,
        };
        bbr.on_ack(&AckSample { pipe: 500, delivery: Some(sample), ..ack(10) });
        bbr.state
    });
    assert_eq!(states, [State::Drain, State::Drain, State::Drain, State::Down]);
}

#[test]
fn a5_a8_up_ends_on_a_plateau_and_down_at_the_product() {
    let mut path = Path::new(bbr(1), 50e6, 0.04);
    path.run_until(|bbr| bbr.state == State::Up);
    assert_eq!(path.control.gains(), (1.25, 2.25));
    path.run_until(|bbr| bbr.state == State::Down);
    assert!(path.control.pipe.stalled == 3, "after three rounds");
    assert_eq!(path.control.gains().0, 0.9);
    path.run_until(|bbr| bbr.state == State::Cruise);
    assert!(f64::from(path.pipe()) <= LINK * 0.04 + 2.0);
    assert_eq!(path.control.bounds.long_term, f64::INFINITY, "nothing was lost");
}

#[test]
fn a10_probe_rtt_comes_after_five_seconds_and_lasts_200_ms() {
    let mut path = Path::new(bbr(1), 50e6, 0.04);
    path.run_until(|bbr| bbr.state == State::Cruise);
    path.run_until(|bbr| bbr.state == State::ProbeRtt);
    assert!((4.9..7.0).contains(&path.seconds()), "{}", path.seconds());
    let began = path.seconds();
    assert!(path.control.window() <= LINK * 0.02 + 4.0);
    path.run_until(|bbr| bbr.state != State::ProbeRtt);
    let lasted = path.seconds() - began;
    assert!((0.2..0.4).contains(&lasted), "{lasted}");
    assert_eq!(path.control.state, State::Cruise);
    assert!((path.control.rate.get() / LINK - 1.0).abs() < 0.02);
}

#[test]
fn a14_four_segments_are_the_least_window() {
    // A tenth of a segment: 600 kbit/s and 2 ms.
    let mut path = Path::new(bbr(1), 600e3, 0.002);
    path.run_until(|bbr| bbr.state == State::Cruise);
    path.run_for(3.0, |bbr| assert!(bbr.window() >= 4.0));
    assert!((path.control.rate.get() * 12_000.0 / 600e3 - 1.0).abs() < 0.02);
}

#[test]
fn a15_ten_times_the_bandwidth_is_found_in_a_few_probes() {
    let mut path = Path::new(bbr(1), 5e6, 0.04);
    path.run_until(|bbr| bbr.state == State::Cruise);
    path.set_rate(50e6);
    let began = path.control.rounds.count;
    path.run_until(|bbr| bbr.rate.get() > 0.95 * LINK);
    let rounds = path.control.rounds.count - began;
    assert!(rounds < 150, "{rounds}");
}

#[test]
fn a16_a_tenth_of_the_bandwidth_is_learned_within_two_cycles() {
    let mut path = Path::new(bbr(1), 50e6, 0.04);
    path.run_until(|bbr| bbr.state == State::Cruise && bbr.probe.feedback == Feedback::None);
    path.set_rate(5e6);
    path.set_limit(50);
    let began = path.control.cycle;
    path.run_until(|bbr| bbr.rate.get() < 0.12 * LINK);
    assert!(path.control.cycle - began <= 2);
}

#[test]
fn a21_loss_in_up_sets_the_long_term_bound_and_ends_it() {
    // A buffer of a quarter of the product: 25 % more in flight than fits is lost.
    let mut path = Path::new(bbr(1), 50e6, 0.04);
    path.set_limit(20);
    path.run_until(|bbr| bbr.probe.was_too_high);
    let bdp = LINK * 0.04;
    let long_term = path.control.bounds.long_term;
    assert!((0.7 * bdp..1.5 * bdp).contains(&long_term), "{long_term} of {bdp}");
    path.run_until(|bbr| bbr.state == State::Cruise);
    assert!(path.control.window() <= path.control.with_headroom().max(4.0));
    path.run_until(|bbr| bbr.probe.was_precautionary);
    assert!(path.control.bounds.long_term.is_finite(), "and the next probe is cautious");
}

#[test]
fn loss_outside_of_probes_lowers_the_short_term_bounds_to_what_was_delivered() {
    let mut bbr = bbr(1);
    bbr.rate.take(0, 1000.0);
    bbr.output.window = 100.0;
    bbr.state = State::Cruise;
    (bbr.latest.rate, bbr.latest.inflight, bbr.latest.has_loss) = (900.0, 60.0, true);
    bbr.adapt_short_term();
    assert_eq!((bbr.bounds.rate, bbr.bounds.inflight), (900.0, 70.0));
    bbr.latest = Latest { has_loss: true, ..Latest::default() };
    bbr.adapt_short_term();
    assert_eq!((bbr.bounds.rate, bbr.bounds.inflight), (630.0, 49.0));
    assert_eq!(bbr.bandwidth(), 630.0);
    bbr.start_refill();
    assert_eq!(bbr.bandwidth(), 1000.0, "forgotten when it probes again");
}

#[test]
fn a_timeout_leaves_one_segment_and_the_window_comes_back_with_the_recovery() {
    let mut bbr = bbr(1);
    bbr.set_window(40.0);
    bbr.on_timeout(&loss(40.0));
    assert_eq!(bbr.window(), 1.0);
    bbr.on_ack(&ack(1));
    assert_eq!(bbr.window(), 40.0);
}

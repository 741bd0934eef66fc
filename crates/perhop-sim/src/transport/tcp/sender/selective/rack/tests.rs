//! Losses and probes by hand.

use super::probe::probe_timeout;
use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn timer(smoothed_rtt: Option<Duration>) -> Timer {
    Timer { smoothed_rtt, timeout: ms(3000), expiry: at(3000) }
}

/// With a smoothed round trip of 60 ms.
fn path(is_recovering: bool, held: u32) -> Path {
    Path { smoothed_rtt: Some(ms(60)), is_recovering, held }
}

/// So many segments, one a millisecond from 0 on.
fn sent(segments: u64) -> Rack {
    let mut rack = Rack::new(0, false, false);
    (0..segments).for_each(|millis| rack.on_sent(at(millis)));
    rack
}

/// An ACK of these segments, of which `acked` is the first missing; returns what is lost by then.
fn arrive(rack: &mut Rack, segments: &[u32], acked: u32, path: Path, millis: u64) -> Vec<u32> {
    for &sequence in segments {
        rack.on_arrived(sequence, at(millis));
    }
    rack.on_ack(acked, 100, false, at(millis));
    lost(rack, path, millis)
}

fn lost(rack: &mut Rack, path: Path, millis: u64) -> Vec<u32> {
    let mut named = Vec::new();
    let count = rack.detect(path, at(millis), |sequence| named.push(sequence));
    assert_eq!(count as usize, named.len());
    named
}

#[test]
fn the_reordering_window_is_a_fourth_of_the_least_round_trip_or_nothing() {
    let mut rack = Rack { least_rtt: Some(ms(40)), ..Rack::new(0, false, false) };
    assert_eq!(rack.reordering_window(path(false, 2)), ms(10));
    assert_eq!(rack.reordering_window(path(false, 3)), ms(0));
    assert_eq!(rack.reordering_window(path(true, 0)), ms(0));
    rack.is_reordered = true;
    assert_eq!(rack.reordering_window(path(false, 3)), ms(10));
    rack.multiplier = 5;
    assert_eq!(rack.reordering_window(Path { smoothed_rtt: Some(ms(45)), ..path(true, 3) }), ms(45));
}

#[test]
fn the_probe_timeout_is_two_round_trips_and_for_one_segment_an_ack_delay_more() {
    let cases =
        [(Some(40), 5, 300, 80), (Some(40), 1, 300, 280), (Some(40), 1, 240, 240), (None, 5, 3000, 1000)];
    for (rtt, flight, left, timeout) in cases {
        assert_eq!(probe_timeout(rtt.map(ms), flight, ms(left)), ms(timeout));
    }
}

#[test]
fn what_was_sent_before_an_arrival_is_lost_after_the_window_and_with_three_arrivals_at_once() {
    let mut rack = sent(4);
    // Sent at 0, with a round trip of 40 ms and 10 more: not at 41, but at 50.
    assert_eq!(arrive(&mut rack, &[1], 0, path(false, 1), 41), [0; 0]);
    assert_eq!((rack.wake(), rack.is_due(at(49)), rack.is_due(at(50))), (at(50), false, true));
    assert_eq!(lost(&mut rack, path(false, 1), 50), [0]);
    assert_eq!((rack.lost(), rack.next_lost(), rack.wake()), (1, Some(0), Instant::NEVER));
    let mut rack = sent(4);
    arrive(&mut rack, &[1], 0, path(false, 1), 41);
    arrive(&mut rack, &[2], 0, path(false, 2), 42);
    assert_eq!(arrive(&mut rack, &[3], 0, path(false, 3), 43), [0]);
}

/// So many segments, one a millisecond from 0 on, of QUIC.
fn sent_by_quic(segments: u64) -> Rack {
    let mut rack = Rack::new(0, false, true);
    (0..segments).for_each(|millis| rack.on_sent(at(millis)));
    rack
}

#[test]
fn quic_takes_for_lost_what_three_later_packets_have_overtaken() {
    // RFC 9002, section 6.1.1: 0 and 1 are three behind 4, 2 and 3 are not.
    let mut rack = sent_by_quic(6);
    assert_eq!(arrive(&mut rack, &[4], 0, path(false, 1), 44), [0, 1]);
    // The numbers are those of packets: 0 sent again is the seventh, and three behind the tenth.
    rack.on_resent(0, at(44));
    rack.on_resent(1, at(45));
    (46..48).for_each(|millis| rack.on_sent(at(millis)));
    assert_eq!(arrive(&mut rack, &[2, 3, 5, 6], 0, path(true, 4), 50), [0; 0]);
    assert_eq!(arrive(&mut rack, &[7], 0, path(true, 4), 51), [0]);
}

#[test]
fn quic_takes_for_lost_what_is_older_than_nine_eighths_of_the_longer_round_trip() {
    // RFC 9002, section 6.1.2: smoothed 60 ms, newest 43: 67.5 ms after it was sent, at 0; its timer is that
    // of the first.
    let mut rack = sent_by_quic(6);
    assert_eq!(arrive(&mut rack, &[2], 0, path(false, 1), 45), [0; 0]);
    assert_eq!(rack.wake(), Instant::from_nanos(67_500_000));
    assert_eq!(lost(&mut rack, path(false, 1), 67), [0; 0]);
    assert_eq!(lost(&mut rack, path(false, 1), 68), [0]);
    assert_eq!(rack.wake(), Instant::from_nanos(68_500_000));
    // The newest is the longer one; at least 1 ms, `kGranularity`.
    let window = |smoothed, newest| {
        let rack = Rack { rtt: Duration::from_nanos(newest), ..Rack::new(0, false, true) };
        rack.reordering_window(Path { smoothed_rtt: Some(Duration::from_nanos(smoothed)), ..path(false, 0) })
            .as_nanos()
    };
    assert_eq!((window(60_000_000, 80_000_000), window(100_000, 200_000)), (10_000_000, 800_000));
}

#[test]
fn quic_probes_after_a_third_of_its_timeout() {
    let mut rack = sent_by_quic(3);
    rack.arm_probe(timer(None), at(2));
    assert_eq!(rack.wake(), at(1002));
    rack.arm_probe(Timer { timeout: ms(975), ..timer(Some(ms(100))) }, at(100));
    assert_eq!(rack.wake(), at(425));
    rack.arm_probe(Timer { timeout: ms(975), expiry: at(1000), ..timer(Some(ms(100))) }, at(900));
    assert_eq!(rack.wake(), at(1000));
}

#[test]
fn the_timer_is_that_of_the_last_segment_that_may_be_lost() {
    let mut rack = sent(6);
    arrive(&mut rack, &[4], 0, path(false, 1), 44);
    assert_eq!(rack.wake(), at(3 + 40 + 10), "3 was sent last of those before 4; 5 was sent later");
    assert_eq!(lost(&mut rack, path(false, 1), 53), [0, 1, 2, 3]);
    // One that arrives meanwhile is not lost.
    let mut rack = sent(6);
    arrive(&mut rack, &[4], 0, path(false, 1), 44);
    arrive(&mut rack, &[0], 1, path(false, 1), 46);
    assert!(rack.is_reordered);
    assert_eq!(lost(&mut rack, path(false, 1), 60), [1, 2, 3]);
}

#[test]
fn a_retransmission_is_lost_when_something_sent_after_it_arrives() {
    let mut rack = sent(4);
    assert_eq!(arrive(&mut rack, &[1, 2, 3], 0, path(false, 3), 43), [0]);
    rack.on_resent(0, at(43));
    assert_eq!((rack.lost(), rack.next_lost()), (0, None));
    rack.on_sent(at(44));
    assert_eq!(lost(&mut rack, path(true, 3), 83), [0; 0]);
    assert_eq!(arrive(&mut rack, &[4], 0, path(true, 4), 84), [0]);
}

#[test]
fn an_early_ack_of_a_retransmission_may_be_of_its_first_transmission_and_says_nothing() {
    let mut rack = sent(5);
    arrive(&mut rack, &[1, 2, 3], 0, path(false, 3), 43);
    rack.on_resent(0, at(43));
    // 39 ms later, less than the least round trip of 40: 4, sent at 4, is not judged by a segment sent at 43.
    assert_eq!(arrive(&mut rack, &[0], 4, path(true, 0), 82), [0; 0]);
    assert_eq!((rack.newest.unwrap().at, rack.rtt), (at(3), ms(40)));
    let mut rack = sent(5);
    arrive(&mut rack, &[1, 2, 3], 0, path(false, 3), 43);
    rack.on_resent(0, at(43));
    assert_eq!(arrive(&mut rack, &[0], 4, path(true, 0), 83), [4]);
    assert!(!rack.is_reordered, "it was sent again");
}

#[test]
fn a_duplicate_widens_the_window_once_a_round_and_sixteen_recoveries_end_that() {
    let mut rack = sent(10);
    let widths = [(1, 10, true), (2, 11, true), (3, 12, false), (10, 20, true), (15, 30, true)].map(
        |(acked, sent, duplicate)| {
            rack.on_ack(acked, sent, duplicate, at(50));
            rack.multiplier
        },
    );
    assert_eq!(widths, [2, 2, 2, 3, 3]);
    (0..15).for_each(|_| rack.on_recovery_end());
    assert_eq!(rack.multiplier, 3);
    rack.on_recovery_end();
    assert_eq!(rack.multiplier, 1);
}

#[test]
fn a_timeout_gives_up_the_first_segment_and_those_sent_long_ago() {
    let mut rack = sent(2);
    rack.on_sent(at(300));
    rack.on_sent(at(301));
    rack.rtt = ms(40);
    let mut named = Vec::new();
    rack.on_timeout(at(340), |sequence| named.push(sequence));
    assert_eq!(named, [0, 1, 2], "301 + 40 is later");
    assert_eq!((rack.lost(), rack.next_lost()), (3, Some(0)));
    let mut rack = sent(2);
    rack.rtt = ms(400);
    rack.on_timeout(at(300), |_| ());
    assert_eq!(rack.lost(), 1, "the first, whatever the time");
}

#[test]
fn a_probe_is_sent_once_and_only_with_a_round_trip_measured_since_the_last() {
    let mut rack = sent(3);
    rack.arm_probe(timer(None), at(2));
    assert_eq!(rack.wake(), at(1002));
    assert!(!rack.takes_probe(at(1002)), "no round trip is known");
    arrive(&mut rack, &[0], 1, path(false, 0), 40);
    rack.arm_probe(timer(Some(ms(40))), at(40));
    assert!(!rack.takes_probe(at(119)) && rack.takes_probe(at(120)) && !rack.takes_probe(at(200)));
    rack.on_probe(3, true);
    rack.arm_probe(timer(Some(ms(40))), at(200));
    assert!(!rack.takes_probe(at(280)), "one is unanswered");
}

#[test]
fn an_ack_beyond_the_probe_says_that_it_repaired_a_loss_unless_it_arrived_twice() {
    let answer =
        |expected, duplicate, is_pure_duplicate| ProbeAnswer { expected, duplicate, is_pure_duplicate };
    let after = |again, acks: &[ProbeAnswer]| {
        let mut rack = Rack::new(0, false, false);
        rack.on_probe(10, again);
        let repaired = acks.iter().map(|&ack| rack.has_repaired(ack)).filter(|repaired| *repaired).count();
        (repaired, rack.probe.is_some())
    };
    assert_eq!(after(true, &[answer(9, None, false), answer(10, None, false)]), (0, true), "still open");
    assert_eq!(after(true, &[answer(10, None, false), answer(12, None, false)]), (1, false));
    assert_eq!(after(true, &[answer(10, Some(9), false), answer(12, None, false)]), (0, false));
    assert_eq!(after(true, &[answer(10, None, true), answer(12, None, false)]), (0, false));
    assert_eq!(after(false, &[answer(12, None, false), answer(14, None, false)]), (0, false), "new data");
}

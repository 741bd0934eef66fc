use super::*;
use crate::scheduler::{Dequeued, Discipline};
use crate::testing::{environment, fifo};
use crate::{Color, Ecn, FlowId};

fn pie(table: &str) -> Pie {
    Pie::new(serde_json::from_str(table).unwrap(), environment())
}

const BASIC: &str = r#"{"law": "basic"}"#;
const LINUX: &str = r#"{"law": "linux"}"#;
const DOCSIS: &str = r#"{"law": "docsis"}"#;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn waiting(packets: u16) -> Occupancy {
    let mut queue = Occupancy::EMPTY;
    (0..packets).for_each(|_| queue.add(Color::Yellow, 1000));
    queue
}

fn header(ecn: Ecn) -> Header {
    Header { ecn, ..Header::new(FlowId(0), 1000) }
}

fn arrive(pie: &mut Pie, at: u64, queue: u16, ecn: Ecn) -> Verdict {
    let cx = &mut Context { now: Instant::ZERO + millis(at), rng: &mut Rng::stream(1, "aqm") };
    pie.on_arrival(&header(ecn), &waiting(queue), cx)
}

/// A packet that has waited for so long is transmitted, with so many left.
fn depart(pie: &mut Pie, at: u64, waited: u64, left: u16) {
    let packet = Header { arrived: Instant::ZERO + millis(at - waited), ..header(Ecn::NotCapable) };
    let cx = &mut Context { now: Instant::ZERO + millis(at), rng: &mut Rng::stream(1, "aqm") };
    assert_eq!(pie.on_departure(&packet, &waiting(left), cx), Verdict::Pass);
}

/// The drop probability after each update, given the queueing delay at each.
fn controlled(pie: &mut Pie, delays: &[u64]) -> Vec<f64> {
    let update = |&delay| {
        pie.update(millis(delay));
        pie.controller.probability
    };
    delays.iter().map(update).collect()
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found} {expected}");
    }
}

const DELAYS: [u64; 16] = [20, 30, 40, 50, 60, 60, 50, 40, 30, 20, 15, 10, 5, 0, 0, 0];

#[test]
fn the_drop_probability_follows_the_controller() {
    let expected = [
        1.251_220_703_125_000_1e-5,
        1.248_168_945_312_499_7e-4,
        6.130_981_445_312_501e-4,
        1.140_441_894_531_250_1e-3,
        3.406_066_894_531_249_5e-3,
        4.109_191_894_531_249e-3,
        3.093_566_894_531_25e-3,
        1.921_691_894_531_25e-3,
        5.935_668_945_312_497e-4,
        2.224_731_445_312_497_6e-4,
        2.716_064_453_124_972e-5,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ];
    assert_close(&controlled(&mut pie("{}"), &DELAYS), &expected);
    assert_close(&controlled(&mut pie(BASIC), &DELAYS), &expected);
    assert_close(&controlled(&mut pie(LINUX), &DELAYS), &expected);
}

#[test]
fn the_drop_probability_of_docsis_follows_its_controller() {
    let expected = [
        2.563_476_562_5e-5,
        2.600_097_656_249_999_3e-4,
        1.275_634_765_625e-3,
        5.650_634_765_625_001e-3,
        1.033_813_476_562_5e-2,
        1.658_813_476_562_5e-2,
        9.088_134_765_625_006e-3,
        6.900_634_765_625_005e-3,
        4.400_634_765_625_005e-3,
        1.588_134_765_625_005_4e-3,
        1.818_847_656_250_05e-4,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ];
    assert_close(&controlled(&mut pie(DOCSIS), &DELAYS), &expected);
}

#[test]
fn a_high_drop_probability_rises_slowly_unless_basic() {
    for (table, expected) in [("{}", [0.14, 0.16]), (LINUX, [0.14, 0.16]), (BASIC, [0.193_125, 0.231_25])] {
        let mut pie = pie(table);
        (pie.controller.probability, pie.controller.delay_before) = (0.12, millis(50));
        assert_close(&controlled(&mut pie, &[100, 120]), &expected);
    }
}

#[test]
fn the_drop_probability_of_docsis_may_be_above_1() {
    let once = |probability, before, delay| {
        let mut pie = pie(DOCSIS);
        (pie.controller.probability, pie.controller.delay_before) = (probability, millis(before));
        controlled(&mut pie, &[delay])[0]
    };
    // 0.25/s x 50 ms above the target, times 2, is more than the most of 0.02; 10 ms below it there is no
    // bound.
    assert_close(&[once(0.5, 60, 60), once(0.5, 0, 0)], &[0.52, (0.5 - 0.005) * 0.98]);
    assert_close(&[once(5.0, 6, 6)], &[5.0 - 0.25 * 0.004 * 8.0]);
    assert_close(&[once(12.0, 6, 6)], &[12.0 - 0.25 * 0.004 * 32.0]);
    // Above 200 ms it rises twice as fast, up to 0.85 x 1024 / 64.
    assert_close(&[once(0.5, 201, 201), once(0.5, 200, 200)], &[0.54, 0.52]);
    assert_close(&[once(13.59, 201, 201)], &[13.6]);
}

#[test]
fn without_congestion_the_drop_probability_decays() {
    // Basic: only while the delay is zero; enhanced: while it is below half of the target; DOCSIS: below 5
    // ms.
    let low = |table, delay: u64| {
        let mut pie = pie(table);
        (pie.controller.probability, pie.controller.delay_before) = (0.5, millis(delay));
        controlled(&mut pie, &[delay])[0]
    };
    let step = |delay: f64| 0.5 + 0.125 * (delay - 0.015);
    assert_close(&[low("{}", 7), low("{}", 8)], &[step(0.007) * 0.98, step(0.008)]);
    assert_close(&[low(BASIC, 7), low(BASIC, 0)], &[step(0.007), step(0.0) * 0.98]);
    let step = |delay: f64| 0.5 + 0.5 * (delay - 0.01);
    assert_close(&[low(DOCSIS, 4), low(DOCSIS, 5)], &[step(0.004) * 0.98, step(0.005)]);
}

#[test]
fn drops_are_spread_out() {
    let fates = |probabilities: &[(f64, bool)]| {
        let mut pie = pie("{}");
        let mut fate = |&(probability, hit): &(f64, bool)| {
            pie.controller.probability = probability;
            pie.count(probability);
            let chance = pie.spread(probability);
            if hit {
                pie.accumulated = 0.0;
            }
            if chance == 0.0 {
                '-'
            } else if chance == 1.0 {
                '!'
            } else {
                assert_eq!(chance, probability);
                '?'
            }
        };
        probabilities.iter().map(&mut fate).collect::<String>()
    };
    let low = [[(0.3, false); 3].as_slice(), &[(0.3, true)], &[(0.1, false); 10]].concat();
    assert_eq!(fates(&low), "--??--------??");
    assert_eq!(fates(&[(0.9, false); 10]), "?????????!");
    assert_eq!(fates(&[(0.5, false), (0.0, false), (0.5, false), (0.5, false)]), "---?");
}

#[test]
fn a_hit_resets_the_sum() {
    let mut pie = pie("{}");
    (pie.controller.probability, pie.accumulated) = (0.5, 8.0);
    assert!(pie.is_due(0.5, &mut Rng::stream(1, "aqm")));
    assert_eq!(pie.accumulated, 0.0);
}

/// A PIE that hits every packet.
fn certain(table: &str) -> Pie {
    let mut pie = pie(table);
    (pie.controller.probability, pie.controller.delay_before) = (1.0, millis(20));
    (pie.accumulated, pie.controller.phase) = (8.5, Phase::Active);
    pie
}

const DROP: Verdict = Verdict::Drop(Reason::Controller);

#[test]
fn short_queues_and_bursts_are_spared() {
    for table in ["{}", BASIC, r#"{"law": "docsis", "mean-packet": "1kB"}"#] {
        assert_eq!(arrive(&mut certain(table), 0, 3, Ecn::NotCapable), DROP, "{table}");
        assert_eq!(arrive(&mut certain(table), 0, 2, Ecn::NotCapable), Verdict::Pass, "{table}");
        let mut bursting = certain(table);
        bursting.controller.burst = millis(1);
        assert_eq!(arrive(&mut bursting, 0, 3, Ecn::NotCapable), Verdict::Pass, "{table}");
    }
    let judge = |probability, delay| {
        let mut calm = certain("{}");
        (calm.controller.probability, calm.controller.delay_before) = (probability, millis(delay));
        arrive(&mut calm, 0, 3, Ecn::NotCapable)
    };
    assert_eq!((judge(0.19, 7), judge(0.2, 7), judge(0.19, 8)), (Verdict::Pass, DROP, DROP));
}

#[test]
fn a_burst_after_a_calm_time_is_spared_for_as_long_as_allowed() {
    let mut pie = pie(r#"{"max-burst": "30ms"}"#);
    arrive(&mut pie, 0, 0, Ecn::NotCapable);
    assert_eq!(pie.controller.burst, millis(30));
    depart(&mut pie, 14, 14, 3);
    depart(&mut pie, 29, 20, 3);
    assert_eq!(pie.controller.burst, millis(15));
    depart(&mut pie, 30, 20, 3);
    assert_eq!(pie.controller.burst, Duration::ZERO);
}

#[test]
fn docsis_becomes_active_at_a_third_of_the_limit_and_allows_a_burst_after_its_first_drop() {
    let mut pie = pie(r#"{"law": "docsis", "limit": "30p"}"#);
    pie.controller.probability = 1.0;
    pie.controller.delay_before = millis(20);
    let hit = |pie: &mut Pie, queue| {
        pie.accumulated = 8.5;
        arrive(pie, 0, queue, Ecn::NotCapable)
    };
    assert_eq!((hit(&mut pie, 9), pie.controller.phase), (Verdict::Pass, Phase::Inactive));
    assert_eq!((hit(&mut pie, 10), pie.controller.phase), (DROP, Phase::Active));
    assert_eq!(pie.controller.burst, millis(142));
    assert_eq!(hit(&mut pie, 20), Verdict::Pass, "the burst");
    // 9 updates of 16 ms, with a drop probability of 0.
    assert_eq!(controlled(&mut pie, &[100; 9]), [0.0; 9]);
    assert_eq!(pie.controller.burst, Duration::ZERO);
    assert!(controlled(&mut pie, &[100])[0] > 0.0);
}

#[test]
fn docsis_is_inactive_again_after_a_second_without_congestion() {
    let mut pie = pie(DOCSIS);
    pie.controller.phase = Phase::Active;
    controlled(&mut pie, &[0]);
    assert_eq!(pie.controller.phase, Phase::Quiescent(Duration::ZERO));
    controlled(&mut pie, &[0; 30]);
    assert_eq!(pie.controller.phase, Phase::Quiescent(millis(480)));
    controlled(&mut pie, &[5, 0]);
    assert_eq!(pie.controller.phase, Phase::Quiescent(Duration::ZERO), "5 ms are half of the target");
    controlled(&mut pie, &[0; 62]);
    assert_eq!(pie.controller.phase, Phase::Quiescent(millis(992)));
    controlled(&mut pie, &[0]);
    assert_eq!(pie.controller.phase, Phase::Inactive);
}

#[test]
fn docsis_counts_bytes_where_others_measure_sojourn_times() {
    let drop_probability = |size: u16| {
        let mut pie = certain(r#"{"law": "docsis", "mean-packet": "1kB"}"#);
        (pie.controller.probability, pie.accumulated) = (0.5, 1.0);
        let cx = &mut Context { now: Instant::ZERO, rng: &mut Rng::stream(1, "aqm") };
        pie.on_arrival(&Header::new(FlowId(0), size), &waiting(9), cx);
        pie.accumulated.max(1.0) - 1.0
    };
    // What a packet adds to the sum is its drop probability.
    assert_close(&[drop_probability(100), drop_probability(500)], &[0.05, 0.25]);
    let mut pie = pie(DOCSIS);
    arrive(&mut pie, 1, 7, Ecn::NotCapable);
    assert_eq!(pie.delay(), millis(7), "of 7 packets of 1000 bytes at 8 Mbit/s");
    depart(&mut pie, 2, 1, 7);
    assert_eq!(pie.delay(), millis(8), "before the departure");
    arrive(&mut pie, 16, 3, Ecn::NotCapable);
    assert_eq!(pie.controller.delay_before, millis(3));
}

#[test]
fn marks_replace_drops_below_a_threshold() {
    let judge = |table, probability, ecn| {
        let mut pie = certain(table);
        pie.controller.probability = probability;
        arrive(&mut pie, 0, 3, ecn)
    };
    let mark = Verdict::Notify(Reason::Controller);
    assert_eq!(judge("{}", 0.09, Ecn::Capable0), DROP);
    assert_eq!(judge(r#"{"ecn": true}"#, 0.09, Ecn::Capable0), mark);
    assert_eq!(judge(r#"{"ecn": true}"#, 0.1, Ecn::Capable0), DROP);
    assert_eq!(judge(r#"{"ecn": true, "mark-below": 0.2}"#, 0.1, Ecn::Capable0), mark);
}

#[test]
fn a_full_queue_drops_and_spreads_anew() {
    let mut pie = pie(r#"{"limit": "3p"}"#);
    (pie.controller.probability, pie.accumulated) = (0.3, 0.5);
    assert_eq!(arrive(&mut pie, 0, 3, Ecn::NotCapable), Verdict::Drop(Reason::Overflow));
    assert_eq!(pie.accumulated, 0.0);
}

#[test]
fn updates_come_at_the_multiples_of_the_interval() {
    let mut late = pie("{}");
    depart(&mut late, 20, 20, 3); // The update at 15 ms did not see it.
    assert_eq!((late.controller.probability, late.next_update), (0.0, Instant::ZERO + millis(30)));
    // Four updates of 20 ms each are made up for, the first of which sees the delay grow.
    depart(&mut late, 89, 89, 3);
    let expected = controlled(&mut pie("{}"), &[0, 20, 20, 20, 20]);
    assert_close(&[late.controller.probability], &expected[4..]);
}

#[test]
fn an_idle_year_is_made_up_for_at_once() {
    let year = 365 * 86_400_000;
    for law in ["enhanced", "basic", "docsis"] {
        let mut pie = pie(&format!(r#"{{"law": "{law}", "update": "1ms"}}"#));
        (pie.controller.probability, pie.controller.delay_before) = (1.0, millis(500));
        depart(&mut pie, 600, 500, 0);
        arrive(&mut pie, 600 + year, 0, Ecn::NotCapable);
        assert_eq!(pie.gauges(), [("probability", 0.0), ("delay_s", 0.0)], "{law}");
        assert_eq!(pie.next_update, Instant::ZERO + millis(601 + year), "{law}");
    }
}

#[test]
fn updates_without_end_are_cut_short() {
    // A delay a little above the target: the drop probability grows by 6e-11 an update.
    let stuck = |seconds: u64| {
        let mut pie = pie(r#"{"update": "1ms", "target": "0s", "alpha": 1e-6, "beta": 1e-6}"#);
        depart(&mut pie, 125, 125, 1);
        arrive(&mut pie, 125 + seconds * 1000, 1, Ecn::NotCapable);
        (pie.controller.probability, pie.next_update)
    };
    let step = 1e-6 * 0.125 / 2048.0;
    let (reached, next) = stuck(1);
    assert!((reached - 1001.0 * step).abs() < 1e-9 * step * 1001.0, "{}", reached / step);
    assert_eq!(next, Instant::ZERO + millis(1126));
    let (cut, next) = stuck(100);
    assert!((cut - 1025.0 * step).abs() < 1e-9 * step * 1025.0, "{}", cut / step);
    assert_eq!(next, Instant::ZERO + millis(100_126));
}

#[test]
fn parameters_without_effect_are_noticed() {
    let idle = |table: &str| {
        let params = serde_json::from_str(table).unwrap();
        Pie::keys_without_effect(&params, &(40..=1000)).into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(idle("{}"), [""; 0]);
    assert_eq!(idle(r#"{"mark-below": 0.2}"#), ["mark-below"]);
    assert_eq!(idle(r#"{"mark-below": 0.2, "ecn": true}"#), [""; 0]);
    assert_eq!(idle(r#"{"limit": "3p"}"#), ["mean-packet"]);
    assert_eq!(idle(r#"{"limit": "4p"}"#), [""; 0]);
    assert_eq!(idle(r#"{"limit": "2040B"}"#), ["mean-packet"]);
    assert_eq!(idle(r#"{"limit": "2041B"}"#), [""; 0]);
    assert_eq!(idle(r#"{"limit": "2041B", "law": "docsis"}"#), ["mean-packet"]);
}

/// 400 packets of 1000 bytes, one each 10 ms, of which one is served each `service` ms, with twenty seeds:
/// drops by chance, and the largest change of the drop probability.
fn overloaded(table: &str, service: u64) -> (u64, f64) {
    let runs = (0..20).map(|seed| overloaded_once(table, service, seed));
    runs.fold((0, 0.0), |(drops, largest), (more, other)| (drops + more, largest.max(other)))
}

fn overloaded_once(table: &str, service: u64, seed: u64) -> (u64, f64) {
    let table = format!(r#"{{"aqm": "pie", "mean-packet": "1000B", "limit": "200p", {table}}}"#);
    let mut queue = fifo(serde_json::from_str(&table).unwrap(), seed);
    let (mut largest, mut before) = (0.0_f64, 0.0);
    for now in 0..4000 {
        let at = Instant::ZERO + millis(now);
        if now % 10 == 0 {
            let _ = queue.enqueue(header(Ecn::NotCapable), at);
        }
        if now % service == 0 {
            assert!(!matches!(queue.dequeue(at), Dequeued::Dropped(..)));
        }
        let probability = queue.gauges()[0].1;
        largest = largest.max(probability - before);
        before = probability;
    }
    assert_eq!(queue.counters().dropped(Reason::Overflow), [0; 3]);
    (queue.counters().dropped(Reason::Controller).iter().sum(), largest)
}

/// What ns-3's test suite `pie-queue-disc` requires, with its traffic.
#[test]
fn drops_depend_on_parameters_as_in_the_tests_of_ns_3() {
    let update = r#""update": "30ms""#;
    let base = format!(r#"{update}, "target": "20ms""#);
    let (drops, rise) = overloaded(&base, 12);
    assert!(drops > 0 && rise < 0.02 + 1e-12, "{drops} {rise}");
    let far = overloaded(&format!(r#"{update}, "target": "80ms""#), 12).0;
    let slow = overloaded(&base, 15).0;
    let seldom = overloaded(r#""update": "90ms", "target": "20ms""#, 12).0;
    assert!(far < drops && slow > drops && seldom < drops, "{far} {slow} {seldom} {drops}");
    let (_, uncapped) = overloaded(&format!(r#"{base}, "law": "basic""#), 15);
    assert!(uncapped > 0.02, "{uncapped}");
}

#[test]
fn an_update_interval_without_length_and_a_packet_of_no_size_are_refused() {
    let refused =
        |table| Pie::check(&serde_json::from_str(table).unwrap()).map_err(|error| error.to_string());
    assert_eq!(refused(r#"{"update": "1ms"}"#), Ok(()));
    assert!(refused(r#"{"update": "999us"}"#).unwrap_err().contains("at least 1ms"));
    assert_eq!(refused(r#"{"update": "3600s"}"#), Ok(()));
    assert!(refused(r#"{"update": "3601s"}"#).unwrap_err().contains("at most 3600s"));
    assert!(refused(r#"{"mean-packet": "0B"}"#).unwrap_err().contains("above 0B"));
}

/// A `pie` of Linux at this drop probability, with this delay at the last update and of the last packet, in
/// milliseconds.
fn linux_at(probability: f64, before: u64, sojourn: u64, keys: &str) -> Pie {
    let mut pie = pie(&format!(r#"{{"law": "linux"{keys}}}"#));
    (pie.controller.probability, pie.controller.delay_before) = (probability, millis(before));
    (pie.controller.burst, pie.sojourn) = (Duration::ZERO, millis(sojourn));
    pie
}

#[test]
fn linux_updates_by_its_own_rules() {
    let once = |probability, before, delay, waiting| {
        let mut pie = linux_at(probability, before, delay, "");
        pie.backlog = Bytes::new(waiting);
        controlled(&mut pie, &[delay])[0]
    };
    // Above 250 ms, 0.02 more than the bounded step.
    assert_close(&[once(0.5, 250, 250, 9000), once(0.5, 251, 251, 9000)], &[0.52, 0.54]);
    // On an idle queue: -0.125 x 0.015, then 63/64 of it, unless packets wait.
    let moved = 0.5 - 0.001_875;
    assert_close(&[once(0.5, 0, 0, 0), once(0.5, 0, 0, 1000)], &[moved * 63.0 / 64.0, moved]);
    // Half of the target is idle enough for the RFC, not for Linux.
    assert_close(&[once(0.5, 5, 5, 0)], &[0.5 - 0.001_25]);
}

#[test]
fn the_probability_of_linux_may_be_above_1() {
    let mut high = linux_at(0.99, 300, 300, "");
    assert_close(&controlled(&mut high, &[300, 300]), &[1.03, 1.07]);
    let mut overflow = linux_at(255.99, 300, 300, "");
    assert_close(&controlled(&mut overflow, &[300]), &[1.0]);
}

#[test]
fn linux_updates_first_after_half_a_second() {
    let mut pie = linux_at(0.0, 0, 40, "");
    arrive(&mut pie, 499, 9, Ecn::NotCapable);
    assert_eq!(pie.controller.probability, 0.0);
    arrive(&mut pie, 500, 9, Ecn::NotCapable);
    let first = pie.controller.probability;
    assert_close(&[first], &[(0.125 * 0.025 + 1.25 * 0.04) / 2048.0]);
    arrive(&mut pie, 514, 9, Ecn::NotCapable);
    assert_eq!(pie.controller.probability, first);
    arrive(&mut pie, 515, 9, Ecn::NotCapable);
    assert!(pie.controller.probability > first);
}

#[test]
fn linux_allows_a_burst_while_packets_leave() {
    let mut pie = pie(LINUX);
    assert_eq!(pie.controller.burst, millis(150));
    // The time before the first departure does not count, nor do updates.
    depart(&mut pie, 100, 30, 9);
    assert_eq!(pie.controller.burst, millis(150));
    depart(&mut pie, 160, 30, 9);
    assert_eq!(pie.controller.burst, millis(90));
    pie.update(millis(30));
    assert_eq!(pie.controller.burst, millis(90));
    // Everything begins anew with small delays and a probability of zero.
    (pie.accumulated, pie.controller.probability) = (0.5, 0.0);
    pie.update(millis(5));
    assert_eq!((pie.controller.burst, pie.accumulated), (millis(90), 0.5), "the delay before was 30 ms");
    pie.controller.probability = 0.0;
    pie.update(millis(5));
    assert_eq!((pie.controller.burst, pie.accumulated), (millis(150), 0.0));
    assert_eq!(pie.controller.last_departure, None);
}

#[test]
fn linux_judges_by_the_current_delay_and_spares_less_than_two_packets() {
    let hit = |before, sojourn, bytes| {
        let mut pie = linux_at(0.19, before, sojourn, "");
        pie.accumulated = 9.0;
        let mut queue = Occupancy::EMPTY;
        queue.add(Color::Yellow, bytes);
        let cx = &mut Context { now: Instant::ZERO, rng: &mut Rng::stream(1, "aqm") };
        pie.on_arrival(&header(Ecn::NotCapable), &queue, cx) != Verdict::Pass
    };
    assert_eq!([hit(0, 8, 3000), hit(20, 7, 3000), hit(0, 8, 2999)], [true, false, false]);
}

#[test]
fn linux_marks_up_to_a_tenth() {
    let judge = |probability, ecn| {
        let mut pie = linux_at(probability, 20, 20, r#", "ecn": true"#);
        pie.accumulated = 8.5;
        (arrive(&mut pie, 1, 9, ecn), pie.accumulated)
    };
    let (mark, drop) = (Verdict::Notify(Reason::Controller), Verdict::Drop(Reason::Controller));
    // A mark that is due leaves the sum as it is: so the next packet is due, too.
    assert_eq!(judge(0.1, Ecn::Capable0), (mark, 8.6));
    assert_eq!(judge(0.1, Ecn::NotCapable), (mark, 0.0));
    assert_eq!(judge(0.101, Ecn::Capable0), (drop, 0.0));
}

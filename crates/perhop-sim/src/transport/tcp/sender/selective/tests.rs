//! Recoveries by hand, and the short ways against the general ones on random losses.

use super::*;
use crate::transport::metadata::Metadata;
use crate::transport::tcp::{Signals, TcpEcn, TcpReceiver};
use crate::transport::{Ack, SenderStatistics, Source};
use perhop_core::{Bytes, Duration, Rng};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

struct Wire {
    sender: TcpSender,
    rng: Rng,
    now: Instant,
}

impl Wire {
    /// A sender of `segments`, the first window of which is on the wire.
    fn new(extra: &str, segments: u64) -> (Self, Vec<u32>) {
        let params = format!(r#"{{"tcp": "newreno", "sack": true, "packet": "1000B" {extra}}}"#);
        let params: TcpParams = serde_json::from_str(&params).unwrap();
        let volume = Some(Bytes::new(segments * 1000));
        let mut wire = Self {
            sender: TcpSender::new(params.into(), volume, None, TcpEcn::Off, 1),
            rng: Rng::stream(1, "tcp"),
            now: Instant::ZERO,
        };
        let sent = wire.act(TcpSender::start);
        (wire, sent)
    }

    fn act(&mut self, act: impl FnOnce(&mut TcpSender, Instant)) -> Vec<u32> {
        act(&mut self.sender, self.now);
        let mut cx = Context { now: self.now, rng: &mut self.rng };
        std::iter::from_fn(|| self.sender.transmit(&mut cx)).map(|transmit| transmit.sequence).collect()
    }

    fn ack(&mut self, expected: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        self.now += Duration::from_millis(1);
        let mut ack = AckRecord { expected, blocks: [(0, 0); 3], marked: 0, duplicate: None };
        ack.blocks[..blocks.len()].copy_from_slice(blocks);
        self.record(&ack)
    }

    fn record(&mut self, ack: &AckRecord) -> Vec<u32> {
        self.act(|sender, now| {
            let mut repair = sender.selective.take().unwrap();
            repair.on_ack(sender, ack, false, now);
            sender.selective = Some(repair);
        })
    }

    fn repair(&self) -> &SelectiveRepair {
        self.sender.selective.as_ref().unwrap()
    }

    /// Duplicates for segments `first..end`, one by one.
    fn duplicates(&mut self, first: u32, end: u32) -> Vec<Vec<u32>> {
        (first..end).map(|last| self.ack(0, &[(first, last + 1)])).collect()
    }
}

const NOTHING: [u32; 0] = [];
const TWENTY: &str = r#","initial-window": "20p","initial-ssthresh": "20p","limited-transmit": true"#;

#[test]
fn one_loss_of_twenty_as_rfc_6937_shows_it_for_rfc_6675() {
    // Section 3.1, first example: two new segments, the retransmission, silence until the pipe is below the
    // window, then one for one. There the window is half of 22, here half of 20 (limited transmit does not
    // count; RFC 6675, step 4.2), so silence ends at the 13th in place of the 12th.
    let (mut wire, sent) = Wire::new(TWENTY, 1000);
    assert_eq!(sent.len(), 20);
    let sent = wire.duplicates(1, 20);
    assert_eq!(sent[..3], [[20], [21], [0]]);
    assert!(sent[3..12].iter().all(Vec::is_empty));
    assert_eq!(sent[12..], [[22], [23], [24], [25], [26], [27], [28]]);
    assert_eq!((wire.sender.congestion_window(), wire.repair().board.pipe()), (10.0, 10));
    // The retransmission arrives: everything up to 19 has.
    assert_eq!(wire.ack(20, &[]).len(), 1);
    assert!(matches!(wire.repair().phase, Phase::Recovery(_)), "20 and 21 were sent before it");
    wire.ack(22, &[]);
    assert!(matches!(wire.repair().phase, Phase::Open));
    assert_eq!(wire.sender.congestion_window(), 10.1);
}

#[test]
fn one_loss_of_twenty_with_prr() {
    // The same with PRR: a segment at every other acknowledgement.
    let (mut wire, _) = Wire::new(&format!(r#"{TWENTY},"prr": true"#), 1000);
    let sent = wire.duplicates(1, 20);
    assert_eq!(sent[..3], [[20], [21], [0]]);
    let sent: Vec<usize> = sent[2..].iter().map(Vec::len).collect();
    assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
    assert_eq!(wire.repair().board.pipe(), 10);
    wire.ack(22, &[]);
    assert_eq!(wire.sender.congestion_window(), 10.1, "whatever the window was in the recovery");
}

#[test]
fn fifteen_losses_of_twenty() {
    // The second example: RFC 6675 fills the window of 10 at once over a pipe of 4, PRR goes on one for one.
    let (mut wire, _) = Wire::new(TWENTY, 1000);
    assert_eq!(wire.duplicates(15, 20), [vec![20], vec![21], vec![0, 1, 2, 3, 4, 5], vec![6], vec![7]]);
    let (mut wire, _) = Wire::new(&format!(r#"{TWENTY},"prr": true"#), 1000);
    assert_eq!(wire.duplicates(15, 20), [[20], [21], [0], [1], [2]]);
    // Progress in order and no further loss: two for one (slow start), up to the threshold.
    assert_eq!(wire.ack(1, &[(15, 20)]), [3, 4]);
}

#[test]
fn without_new_data_it_sends_what_may_be_lost_and_rescues_the_last_once() {
    // NextSeg's rules 3 and 4: 0, 4 and 7 of eight segments are lost.
    let (mut wire, _) = Wire::new(r#","initial-window": "8p""#, 8);
    assert_eq!(wire.duplicates(1, 4), [vec![], vec![], vec![0]]);
    assert_eq!(wire.ack(0, &[(5, 6), (1, 4)]), NOTHING);
    assert_eq!(wire.ack(0, &[(5, 7), (1, 4)]), [4], "only two beyond it have come, but there is room");
    assert_eq!(wire.ack(4, &[(5, 7)]), [7]);
    assert_eq!(wire.ack(7, &[]), NOTHING);
    wire.ack(8, &[]);
    assert_eq!(wire.sender.wake(), Instant::NEVER);
    assert_eq!((wire.sender.acknowledged(), wire.sender.statistics().retransmitted), (8, 3));
}

#[test]
fn a_timeout_sends_again_what_is_not_held() {
    let (mut wire, _) = Wire::new(r#","initial-window": "8p""#, 8);
    assert_eq!(wire.duplicates(1, 3), [NOTHING, NOTHING]);
    wire.now = wire.sender.wake();
    assert_eq!(wire.act(TcpSender::on_wake), [0]);
    assert_eq!((wire.sender.congestion_window(), wire.sender.control.threshold()), (1.0, 4.0));
    // 5 arrives late; then 0, after which slow start goes on with what is missing.
    assert_eq!(wire.ack(0, &[(5, 6), (1, 3)]), NOTHING);
    assert_eq!(wire.ack(3, &[(5, 6)]), [3, 4]);
    assert_eq!(wire.ack(6, &[]), [6, 7]);
    assert_eq!(wire.sender.statistics().timeouts, 1);
}

#[test]
fn a_second_loss_in_a_recovery_does_not_lower_the_window_again() {
    let (mut wire, _) = Wire::new(TWENTY, 1000);
    wire.duplicates(1, 4);
    // 6 is lost, too.
    wire.ack(0, &[(7, 10), (1, 6)]);
    assert_eq!(wire.sender.statistics().fast_retransmits, 1);
    assert_eq!(wire.sender.control.threshold(), 10.0);
    assert_eq!(wire.repair().board.lost(), 2);
}

#[test]
fn a_round_trip_ends_with_the_selective_acknowledgement() {
    let (mut wire, _) = Wire::new(r#","initial-window": "3p""#, 100);
    assert_eq!(wire.ack(1, &[]), [3, 4]);
    assert_eq!(wire.sender.statistics().timed_rtt_samples.0, 1);
    wire.ack(1, &[(3, 4)]);
    assert_eq!(wire.sender.statistics().timed_rtt_samples, (2, 2_000_000));
}

/// All of a sender's state, in one form.
fn state(sender: &mut TcpSender) -> String {
    sender.forget_gap();
    if let Some(rack) = sender.selective.as_mut().and_then(|repair| repair.rack.as_mut()) {
        rack.forget_void();
    }
    format!("{sender:?}")
}

#[test]
fn acks_without_blocks_take_the_short_way_unless_segments_were_lost_or_sent_again() {
    for extra in ["", RACK] {
        let (mut wire, _) = Wire::new(&format!(r#"{extra},"initial-window": "8p","prr": true"#), 1000);
        wire.ack(1, &[]);
        let short = |wire: &Wire, number, ece| {
            wire.sender.clone().try_ack(Ack { number, ece }, &mut Metadata::acks(), wire.now)
        };
        assert_eq!(short(&wire, 2, false), Some(10..12));
        assert_eq!(short(&wire, 2, true), None);
        assert_eq!(short(&wire, 1, false), None, "nothing new");
        assert_eq!(short(&wire, 10, false), None, "everything");
        wire.ack(1, &[(3, 4)]);
        assert_eq!(short(&wire, 2, false), None, "3 is held");
        wire.ack(1, &[(3, 9)]);
        assert!(matches!(wire.repair().phase, Phase::Recovery(_)));
        assert_eq!(short(&wire, 9, false), None);
    }
}

/// What the sender sends when its timers expire, which its short way does alike if it takes them.
fn expire(wire: &mut Wire) -> Result<Vec<u32>, TestCaseError> {
    let mut short = wire.sender.clone();
    let mut cx = Context { now: wire.now, rng: &mut wire.rng.clone() };
    let shortened = short.try_wake(&mut cx).map(Iterator::collect::<Vec<u32>>);
    let sent = wire.act(TcpSender::on_wake);
    if let Some(others) = shortened {
        prop_assert_eq!(&others, &sent);
        prop_assert_eq!(state(&mut short), state(&mut wire.sender));
    }
    Ok(sent)
}

/// A path of 10 ms each way, which loses the packets that `lost` says, over and over.
fn transfer(
    extra: &str,
    segments: u64,
    lost: &[bool],
    delayed: bool,
) -> Result<SenderStatistics, TestCaseError> {
    let delayed = if delayed { r#","delayed-ack": "40ms","quick-acks": "4p""# } else { "" };
    let extra = format!(r#"{extra}{delayed},"initial-rto": "1s""#);
    let (mut wire, sent) = Wire::new(&extra, segments);
    let mut receiver = TcpReceiver::new(&wire.sender.cold.params, TcpEcn::Off);
    let mut records = Metadata::acks();
    let (mut data, mut acks) = (VecDeque::new(), VecDeque::new());
    let mut losses = lost.iter().copied().cycle();
    let mut known = BTreeSet::new();
    let delay = Duration::from_millis(10);
    let mut put = |sent: Vec<u32>, now: Instant, data: &mut VecDeque<(Instant, u32)>| {
        data.extend(sent.into_iter().filter(|_| !losses.next().unwrap_or(false)).map(|n| (now + delay, n)));
    };
    put(sent, Instant::ZERO, &mut data);
    let mut delivered = BTreeSet::new();
    for _ in 0..100_000 {
        if wire.sender.acknowledged() == segments {
            prop_assert_eq!(delivered.len() as u64, segments);
            // A segment that waited to be sent again may have arrived meanwhile; its time passes.
            let wake = wire.sender.wake();
            prop_assert!(wake == Instant::NEVER || wake == wire.sender.next_send);
            return Ok(wire.sender.statistics());
        }
        let head = |queue: &VecDeque<(Instant, u32)>| queue.front().map_or(Instant::NEVER, |(at, _)| *at);
        let (arrival, ack) = (head(&data), head(&acks));
        let now = arrival.min(ack).min(wire.sender.wake()).min(receiver.wake());
        prop_assert!(now < Instant::NEVER, "the transfer makes no progress");
        wire.now = now;
        let mut sent = Vec::new();
        if arrival == now {
            let (_, sequence) = data.pop_front().unwrap();
            let taken = receiver.on_data(sequence, Signals::default(), now, &mut records);
            prop_assert_eq!(taken.first, delivered.insert(sequence));
            acks.extend(taken.ack.map(|ack| (now + delay, ack.number)));
        } else if ack == now {
            let (_, number) = acks.pop_front().unwrap();
            let (mut short, mut left) = (wire.sender.clone(), records.clone());
            let shortened = short.try_ack(Ack::plain(number), &mut left, now);
            let record = records.of_acks().take(number, wire.sender.acked).unwrap();
            known.extend(record.blocks.into_iter().flat_map(|(begin, end)| begin..end));
            sent = wire.record(&record);
            if let Some(segments) = shortened {
                prop_assert_eq!(&segments.collect::<Vec<_>>(), &sent);
                prop_assert_eq!(format!("{left:?}"), format!("{records:?}"));
                prop_assert!(number % 3 != 0 || state(&mut short) == state(&mut wire.sender));
            }
        } else if receiver.wake() == now {
            acks.extend(receiver.on_wake(now, &mut records).map(|ack| (now + delay, ack.number)));
        } else {
            sent = expire(&mut wire)?;
        }
        for sequence in &sent {
            let acked = wire.sender.acked;
            prop_assert!(*sequence >= acked && !known.contains(sequence), "{sequence} had arrived");
        }
        let outstanding = wire.sender.sent_end - wire.sender.acked;
        prop_assert!(wire.repair().pipe() <= 2 * outstanding);
        prop_assert!(outstanding <= wire.sender.receiver_window);
        put(sent, now, &mut data);
    }
    prop_assert!(false, "it never ends");
    unreachable!()
}

proptest! {
    #[test]
    fn delivers_everything_and_never_sends_again_what_is_known_to_have_arrived(
        lost in prop::collection::vec(prop::bool::weighted(0.2), 1..80),
        (prr, limited, delayed, rack, paced) in any::<(bool, bool, bool, bool, bool)>(),
        congestion in prop_oneof![Just("reno"), Just("cubic"), Just("bbr"), Just("bbr3")],
        (segments, window, tuned) in (1_u64..150, 1_u32..40, any::<bool>()),
    ) {
        prop_assume!(!lost.iter().all(|lost| *lost));
        let detection = if rack { "rack" } else { "duplicate-acks" };
        let pacing = if paced { r#","pacing": "window""# } else { "" };
        // The first window is 68 segments of 1 kB.
        let (tuning, window) = if tuned { (r#","window-tuning": "linux""#, 61 + window) } else { ("", window) };
        let extra = format!(
            r#","loss-detection": "{detection}", "prr": {prr}, "limited-transmit": {limited}, "congestion": "{congestion}", "window": "{window}p"{pacing}{tuning}"#
        );
        let statistics = transfer(&extra, segments, &lost, delayed)?;
        prop_assert!(statistics.sent >= segments);
        prop_assert_eq!(statistics.sent - statistics.retransmitted, segments);
    }
}

const RACK: &str = r#","loss-detection": "rack""#;

#[test]
fn rack_repairs_one_loss_of_twenty_as_counts_do() {
    let courses = ["", RACK].map(|rack| {
        let (mut wire, _) = Wire::new(&format!("{TWENTY}{rack}"), 1000);
        wire.now = Instant::from_nanos(100_000_000);
        let sent = wire.duplicates(1, 20);
        let after = [wire.ack(20, &[]), wire.ack(22, &[])];
        (sent, after, wire.sender.congestion_window(), wire.sender.statistics())
    });
    assert_eq!(courses[0], courses[1]);
}

#[test]
fn rack_waits_a_fourth_of_the_least_round_trip_for_what_may_be_reordered() {
    // 0 is late. 1 to 3 arrive after 1, 2 and 3 ms: the least round trip is 1 ms, and three are lost at once.
    let (mut wire, _) =
        Wire::new(&format!(r#"{RACK},"initial-window": "4p","limited-transmit": true,"tick": "1us""#), 1000);
    wire.ack(0, &[(1, 2)]);
    assert_eq!(wire.sender.wake(), Instant::from_nanos(1_250_000));
    wire.now = wire.sender.wake();
    assert_eq!(wire.act(TcpSender::on_wake), [0]);
    assert_eq!(wire.sender.statistics().fast_retransmits, 1);
}

/// The retransmissions and timeouts of a transfer of so many segments that loses the packets of these
/// numbers.
fn repaired(extra: &str, segments: u64, lost: &[usize]) -> (u64, u64) {
    let extra = format!(r#"{extra},"initial-window": "10p","handshake": false,"tick": "1us""#);
    let mut losses = vec![false; 4000];
    for &number in lost {
        losses[number] = true;
    }
    let statistics = transfer(&extra, segments, &losses, false).unwrap();
    (statistics.retransmitted, statistics.timeouts)
}

#[test]
fn a_probe_repairs_the_last_segments_without_a_timeout() {
    for (lost, again) in [(&[59][..], 1), (&[58, 59], 2), (&[55, 56, 57, 58, 59], 5)] {
        assert_eq!(repaired(RACK, 60, lost), (again, 0), "{lost:?}");
        assert_eq!(repaired("", 60, lost).1, 1, "{lost:?}");
    }
}

#[test]
fn a_retransmission_that_is_lost_again_is_found_without_a_timeout() {
    // The 31st packet, and then the packet that sends its segment again.
    for prr in ["true", "false"] {
        let rack = format!(r#"{RACK},"prr": {prr}"#);
        let again = (31..80).find(|&packet| {
            repaired(&rack, 200, &[30, packet]).0 == 2 && {
                let plain = format!(r#","prr": {prr}"#);
                repaired(&plain, 200, &[30, packet]).1 == 1
            }
        });
        let again = again.expect("one of them is the retransmission");
        assert_eq!(repaired(&rack, 200, &[30, again]), (2, 0));
    }
}

#[test]
fn a_probe_that_repaired_a_loss_lowers_the_window_and_one_that_was_in_vain_does_not() {
    let course = |duplicate| {
        let extra = format!(r#"{RACK},"initial-window": "4p","initial-ssthresh": "4p","tick": "1us""#);
        let (mut wire, sent) = Wire::new(&extra, 1000);
        assert_eq!(sent, [0, 1, 2, 3]);
        wire.sender.stop();
        wire.now = Instant::from_nanos(9_000_000);
        wire.ack(2, &[]);
        // Two round trips of 10 ms after that ACK, the last segment goes again.
        assert_eq!(wire.sender.wake(), Instant::from_nanos(30_000_000));
        wire.now = wire.sender.wake();
        assert_eq!(wire.act(TcpSender::on_wake), [3]);
        wire.sender.data_end = 1000;
        let window = wire.sender.congestion_window();
        let ack = AckRecord { expected: 4, blocks: [(0, 0); 3], marked: 0, duplicate };
        wire.now += Duration::from_millis(10);
        let sent = wire.record(&ack);
        wire.ack(4 + sent.len() as u32, &[]);
        (wire.sender.congestion_window() - window, wire.sender.statistics().timeouts)
    };
    let (repaired, in_vain) = (course(None), course(Some(3)));
    assert!(repaired.0 < -1.0 && in_vain.0 > 0.0, "{repaired:?} {in_vain:?}");
    assert_eq!((repaired.1, in_vain.1), (0, 0));
}

#[test]
fn one_loss_costs_one_retransmission_and_no_timeout() {
    for (prr, rack) in [("true", ""), ("false", ""), ("true", RACK), ("false", RACK)] {
        let mut lost = vec![false; 400];
        lost[60] = true;
        let extra = format!(r#"{rack},"prr": {prr}, "initial-window": "10p""#);
        let statistics = transfer(&extra, 200, &lost, false).unwrap();
        assert_eq!((statistics.retransmitted, statistics.timeouts, statistics.fast_retransmits), (1, 0, 1));
    }
}

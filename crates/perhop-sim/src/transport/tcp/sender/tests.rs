//! The sender by itself: what it sends on which ACK.

use super::*;
use perhop_core::Rng;
use proptest::prelude::*;

use crate::transport::tcp::CongestionParams;

struct Wire {
    sender: TcpSender,
    rng: Rng,
    now: Instant,
}

impl Wire {
    fn new(extra: &str) -> (Self, Vec<u32>) {
        Self::of(&format!(r#"{{"tcp": "newreno" {extra}}}"#))
    }

    fn of(params: &str) -> (Self, Vec<u32>) {
        Self::with_reserved(params, None)
    }

    fn with_reserved(params: &str, reserved: Option<Bitrate>) -> (Self, Vec<u32>) {
        let params: TcpParams = serde_json::from_str(params).unwrap();
        let mut wire = Self {
            sender: TcpSender::new(params.into(), None, reserved, TcpEcn::Off, 1),
            rng: Rng::stream(1, "tcp"),
            now: Instant::ZERO,
        };
        let sent = wire.act(TcpSender::start);
        (wire, sent)
    }

    fn act(&mut self, act: impl FnOnce(&mut TcpSender, Instant)) -> Vec<u32> {
        self.transmits(act).iter().map(|transmit| transmit.sequence).collect()
    }

    fn transmits(&mut self, act: impl FnOnce(&mut TcpSender, Instant)) -> Vec<Transmit> {
        act(&mut self.sender, self.now);
        let mut cx = Context { now: self.now, rng: &mut self.rng };
        std::iter::from_fn(|| self.sender.transmit(&mut cx)).collect()
    }

    fn ack(&mut self, expected: u32) -> Vec<u32> {
        self.now += Duration::from_millis(1);
        self.act(|sender, now| sender.on_ack(Ack::plain(expected), &mut Metadata::none(), now))
    }

    fn acks(&mut self, expected: &[u32]) -> Vec<Vec<u32>> {
        expected.iter().map(|&n| self.ack(n)).collect()
    }

    /// Acknowledges one by one until segments `acked..acked + window` are outstanding.
    fn grow(&mut self, window: u32) -> u32 {
        for n in 1.. {
            self.ack(n);
            if self.sender.next - self.sender.acked == window {
                return n;
            }
        }
        unreachable!()
    }
}

/// A sender with classic ECN whose first window of 10 is out: slow start is over.
fn with_ecn(extra: &str) -> (Wire, Vec<Transmit>) {
    let params =
        format!(r#"{{"tcp": "newreno", "initial-window": "10p", "initial-ssthresh": "2p" {extra}}}"#);
    let params: TcpParams = serde_json::from_str(&params).unwrap();
    let sender = TcpSender::new(params.into(), None, None, TcpEcn::Classic, 1);
    let mut wire = Wire { sender, rng: Rng::stream(1, "tcp"), now: Instant::ZERO };
    let sent = wire.transmits(TcpSender::start);
    (wire, sent)
}

/// The segments sent on an ACK with ECN-Echo or without.
fn echo(wire: &mut Wire, expected: u32, ece: bool) -> Vec<Transmit> {
    wire.now += Duration::from_millis(1);
    wire.transmits(|sender, now| sender.on_ack(Ack { number: expected, ece }, &mut Metadata::none(), now))
}

#[test]
fn a_mark_halves_the_window_once_in_a_window_of_data_and_the_next_new_segment_says_so() {
    // RFC 3168, section 6.1.2: "the congestion window is halved"; "TCP should not react to congestion
    // indications more than once every window of data"; "the source TCP ... sets the CWR flag in the TCP
    // header of the first new data packet sent after the window reduction"; "should not increase the
    // congestion window in response to ... an ECN-Echo ACK packet".
    let (mut wire, sent) = with_ecn("");
    assert!(sent.len() == 10 && sent.iter().all(|segment| segment.ecn == Ecn::Capable0 && !segment.reduced));
    assert!(echo(&mut wire, 1, true).is_empty());
    assert_eq!((wire.sender.congestion_window(), wire.sender.control.threshold()), (5.0, 5.0));
    // The rest of that window, 2 to 10, changes nothing: 5 are outstanding after 5 ACKs, and none is sent
    // before.
    let sent: Vec<_> = (2..=10).map(|expected| echo(&mut wire, expected, true)).collect();
    assert_eq!(wire.sender.congestion_window(), 5.0);
    assert!(sent[..4].iter().all(Vec::is_empty));
    assert_eq!(sent[4], [Transmit { sequence: 10, size: 1000, ecn: Ecn::Capable0, reduced: true }]);
    assert_eq!(sent[5], [Transmit { sequence: 11, size: 1000, ecn: Ecn::Capable0, reduced: false }]);
    // The ACK of segment 10 is the first of the next window.
    echo(&mut wire, 11, true);
    assert_eq!((wire.sender.congestion_window(), wire.sender.cold.statistics.ecn_reductions), (2.5, 2));
    // Without a mark the window grows.
    echo(&mut wire, 12, false);
    assert_eq!(wire.sender.congestion_window(), 2.5 + 1.0 / 2.5);
}

#[test]
fn as_on_linux_the_window_waits_for_a_round_trip_after_a_mark_and_has_whole_segments() {
    // tcp_input.c: in TCP_CA_CWR, tcp_cong_control() does not call the control's cong_avoid(); the state ends
    // when something above what had been sent, segments 0 to 9, is acknowledged. Five segments more make one
    // of a window of 5. One has been counted of the next: the window is 6, of which Reno leaves 6 >> 1.
    let (mut wire, _) = with_ecn(r#","reduction": "linux""#);
    echo(&mut wire, 1, true);
    (2..=10).for_each(|expected| drop(echo(&mut wire, expected, false)));
    assert_eq!(wire.sender.congestion_window(), 5.0);
    (11..=14).for_each(|expected| drop(echo(&mut wire, expected, false)));
    assert_eq!(wire.sender.congestion_window(), 5.0);
    (15..=16).for_each(|expected| drop(echo(&mut wire, expected, false)));
    assert_eq!(wire.sender.congestion_window(), 6.0);
    echo(&mut wire, 17, true);
    assert_eq!((wire.sender.congestion_window(), wire.sender.control.threshold()), (3.0, 3.0));
    // A loss ends the wait: slow start after a timeout grows at once.
    wire.now = wire.sender.wake();
    wire.act(TcpSender::on_wake);
    assert_eq!(wire.sender.congestion_window(), 1.0);
    echo(&mut wire, 18, false);
    assert_eq!(wire.sender.congestion_window(), 2.0);
}

#[test]
fn dctcp_counts_marks_while_its_window_waits_as_on_linux() {
    let (mut wire, _) = with_ecn(r#","reduction": "linux", "congestion": "dctcp""#);
    echo(&mut wire, 1, true);
    let reduced = wire.sender.congestion_window();
    let before = format!("{:?}", wire.sender.control);
    (2..=10).for_each(|expected| drop(echo(&mut wire, expected, false)));
    assert_eq!(wire.sender.congestion_window(), reduced);
    assert_ne!(format!("{:?}", wire.sender.control), before, "it counts segments");
    (11..=10 + reduced as u32).for_each(|expected| drop(echo(&mut wire, expected, false)));
    assert_eq!(wire.sender.congestion_window(), reduced + 1.0);
}

#[test]
fn rfc_8511_leaves_80_percent_after_a_mark_and_half_after_a_loss() {
    let (mut wire, _) = with_ecn(r#","congestion": {"control": "reno", "ecn-backoff": true}"#);
    echo(&mut wire, 1, true);
    assert_eq!(wire.sender.congestion_window(), 8.0);
    let (mut wire, _) = with_ecn(r#","congestion": {"control": "reno", "ecn-backoff": true}"#);
    (0..3).for_each(|_| drop(echo(&mut wire, 0, false)));
    assert_eq!(wire.sender.congestion_window(), 5.0);
}

#[test]
fn a_loss_within_the_window_of_a_mark_does_not_reduce_again_and_neither_does_a_mark_after_a_loss() {
    let (mut wire, _) = with_ecn("");
    echo(&mut wire, 1, true);
    let again: Vec<_> = (0..3).flat_map(|_| echo(&mut wire, 1, true)).collect();
    // RFC 3168, section 6.1.5: "retransmitted data packets" are not ECN-capable.
    assert_eq!(again[0], Transmit::plain(1, 1000));
    assert_eq!((wire.sender.congestion_window(), wire.sender.cold.statistics.fast_retransmits), (5.0, 1));
    let (mut wire, _) = with_ecn("");
    (0..4).for_each(|_| drop(echo(&mut wire, 0, true)));
    assert_eq!((wire.sender.congestion_window(), wire.sender.cold.statistics.ecn_reductions), (5.0, 0));
    // "When an ECN-Capable TCP sender reduces its congestion window for any reason": CWR after a loss, too.
    let new: Vec<_> = (0..4).flat_map(|_| echo(&mut wire, 0, true)).collect();
    assert_eq!(new[0], Transmit { sequence: 10, size: 1000, ecn: Ecn::Capable0, reduced: true });
}

#[test]
fn a_mark_never_raises_a_window_of_one_and_a_syn_is_not_capable() {
    let (mut wire, _) = with_ecn(r#","initial-window": "1p""#);
    echo(&mut wire, 1, true);
    assert_eq!((wire.sender.congestion_window(), wire.sender.cold.statistics.ecn_reductions), (1.0, 1));
    let (_, sent) = with_ecn(r#","handshake": true"#);
    assert_eq!(sent, [Transmit::plain(0, 40)]);
}

#[test]
fn data_is_ect_0_or_of_an_l4s_control_ect_1() {
    for (control, ecn, codepoint) in [
        ("prague", TcpEcn::Accurate, Ecn::Capable1),
        ("dctcp", TcpEcn::Accurate, Ecn::Capable0),
        ("prague", TcpEcn::Off, Ecn::NotCapable),
    ] {
        let params = format!(r#"{{"tcp": "newreno", "congestion": "{control}"}}"#);
        let sender =
            TcpSender::new(serde_json::from_str::<TcpParams>(&params).unwrap().into(), None, None, ecn, 1);
        let mut wire = Wire { sender, rng: Rng::stream(1, "tcp"), now: Instant::ZERO };
        assert_eq!(wire.transmits(TcpSender::start)[0].ecn, codepoint, "{control}");
    }
}

#[test]
fn retransmissions_of_a_control_that_needs_ecn_are_capable_and_others_are_not() {
    // tcp_ecn_send() clears ECT of a retransmission unless tcp_ca_needs_ecn(): of DCTCP and Prague in Linux.
    for control in CongestionParams::all().filter(|control| control.info().answers_marks) {
        let (name, needs) = (control.name(), control.needs());
        let mut extra = String::new();
        if name == "two-windows" {
            continue; // it needs a traffic profile
        }
        if needs.delivery {
            extra += r#", "sack": true"#;
        }
        let params =
            format!(r#"{{"tcp": "newreno", "initial-window": "10p", "congestion": "{name}"{extra}}}"#);
        let params: TcpParams = serde_json::from_str(&params).unwrap();
        for ecn in [TcpEcn::Off, TcpEcn::Classic, TcpEcn::Accurate, TcpEcn::L4s] {
            let mut sender = TcpSender::new(params.clone().into(), None, None, ecn, 1);
            sender.selective = None; // Duplicate ACKs show losses.
            let mut wire = Wire { sender, rng: Rng::stream(1, "tcp"), now: Instant::ZERO };
            let new = wire.transmits(TcpSender::start)[0];
            // Fast retransmission after three duplicates, then the timer.
            let fast = (0..3).flat_map(|_| echo(&mut wire, 0, false)).find(|segment| segment.sequence == 0);
            let timed = loop {
                wire.now = wire.sender.wake();
                let sent = wire.transmits(TcpSender::on_wake);
                if let Some(&again) = sent.iter().find(|segment| segment.sequence == 0) {
                    break again;
                }
            };
            let expected = if ["dctcp", "prague"].contains(&name) { new.ecn } else { Ecn::NotCapable };
            assert_eq!(timed.ecn, expected, "{name}, {ecn:?}");
            assert!(fast.is_none_or(|again| again.ecn == expected && !again.reduced), "{name}, {ecn:?}");
        }
    }
}

#[test]
fn slow_start_doubles_then_congestion_avoidance_adds_one() {
    let (mut wire, first) = Wire::new(r#","initial-ssthresh": "4p""#);
    assert_eq!(first, [0]);
    assert_eq!(wire.acks(&[1, 2, 3]), [vec![1, 2], vec![3, 4], vec![5, 6]]);
    assert_eq!(wire.sender.congestion_window(), 4.0);
    // Four acknowledgements of a window of four add one segment, less the rounding of 1/cwnd.
    wire.acks(&[4, 5, 6, 7]);
    assert!(
        (wire.sender.congestion_window() - (4.0 + 0.25 + 1.0 / 4.25)).abs() < 0.46
            && wire.sender.congestion_window() < 5.0
    );
}

#[test]
fn reno_and_newreno_differ_on_the_second_hole() {
    for (variant, after_partial) in [("newreno", true), ("reno", false)] {
        let (mut wire, _) = Wire::of(&format!(r#"{{"tcp": "{variant}"}}"#));
        let base = wire.grow(8);
        // base and base + 2 are lost; six duplicates come for the other six.
        let sent = wire.acks(&[base; 3]);
        assert_eq!(sent, [vec![], vec![], vec![base]], "the third duplicate retransmits");
        assert_eq!((wire.sender.control.threshold(), wire.sender.cold.recovery), (4.0, recovery(4.0, 3)));
        let sent = wire.acks(&[base; 3]);
        assert_eq!(sent, [vec![], vec![base + 8], vec![base + 9]], "the window, inflated, lets new data out");
        // The retransmission fills the first hole: everything below base + 2 has come.
        let sent = wire.ack(base + 2);
        assert_eq!(sent.first() == Some(&(base + 2)), after_partial, "{variant}: {sent:?}");
        assert_eq!(wire.sender.recovering, after_partial);
        if after_partial {
            wire.ack(base + 8);
            assert_eq!(wire.sender.recovery(), None);
            assert_eq!(wire.sender.congestion_window(), 4.25);
        }
    }
}

/// A recovery without a partial ACK so far.
fn recovery(window: f64, inflation: u32) -> Recovery {
    Recovery { window, inflation, partial: false }
}

/// Of segments base to base + 15 three are lost: base, base + 4 and base + 8. Returns what is sent on each
/// acknowledgement, and the time from it to the timer's expiry in timeouts.
fn three_holes(extra: &str) -> (u32, Vec<Vec<u32>>, Vec<u64>) {
    let (mut wire, _) = Wire::new(extra);
    let base = wire.grow(16);
    wire.sender.control.set_window(16.0);
    // Thirteen duplicates for the segments that arrived; the third starts the recovery.
    let mut acks = vec![base; 13];
    // Then the retransmissions of each hole arrive, a round trip apart: two partial acknowledgements, one of
    // everything.
    acks.extend([base + 4, base + 8, base + 16]);
    let (mut sent, mut left) = (Vec::new(), Vec::new());
    for (number, &expected) in acks.iter().enumerate() {
        wire.now += Duration::from_millis(if number < 13 { 1 } else { 20 });
        sent.push(wire.act(|sender, now| sender.on_ack(Ack::plain(expected), &mut Metadata::none(), now)));
        left.push(wire.sender.wake().since(wire.now).as_nanos() / 1_000_000);
    }
    assert_eq!(wire.sender.recovery(), None);
    (base, sent, left)
}

#[test]
fn impatient_newreno_restarts_its_timer_once_a_recovery_and_slow_but_steady_each_time() {
    // RFC 6582, section 3.2, step 3: "for the first partial ACK that arrives during fast recovery, also reset
    // the retransmit timer"; section 4: "In the Slow-but-Steady variant of NewReno, the retransmission timer
    // is reset after each partial ACK." The timeout is 200 ms; the third duplicate starts the timer, ten more
    // come within 10 ms.
    let (_, _, impatient) = three_holes("");
    assert_eq!(impatient[2], 200);
    assert_eq!(impatient[12..], [190, 200, 180, 200]);
    let (_, _, steady) = three_holes(r#","newreno-timer": "slow-but-steady""#);
    assert_eq!(steady[12..], [190, 200, 200, 200]);
}

#[test]
fn a_partial_acknowledgement_takes_its_segments_or_all_inflation_out_of_the_window() {
    // ssthresh = 16/2 = 8; after 13 duplicates the window is 8 + 13 = 21: base + 16 to base + 20 have gone
    // out.
    let (base, sent, _) = three_holes("");
    assert_eq!(sent[2], [base]);
    assert_eq!(sent[3..13].concat(), (base + 16..base + 21).collect::<Vec<_>>());
    // Step 3: 21 - 4 + 1 = 18 from base + 4: up to base + 21; then 18 - 4 + 1 = 15 from base + 8: up to base
    // + 22. The full acknowledgement leaves ssthresh, 8, and one more for new data in congestion avoidance:
    // base + 23 from base + 16.
    assert_eq!(sent[13..15], [vec![base + 4, base + 21], vec![base + 8, base + 22]]);
    assert_eq!(sent[15], [base + 23]);
    // Back to ssthresh: 8 from base + 4 and from base + 8 lets nothing out but the holes, since base + 20 has
    // gone.
    let (base, sent, _) = three_holes(r#","partial-window-deflation": "to-ssthresh""#);
    assert_eq!(sent[13..15], [vec![base + 4], vec![base + 8]]);
    assert_eq!(sent[15], [base + 21, base + 22, base + 23]);
}

#[test]
fn the_deflated_window_is_inflated_anew_by_the_next_duplicates() {
    let (mut wire, _) = Wire::new(r#","partial-window-deflation": "to-ssthresh""#);
    let base = wire.grow(16);
    wire.acks(&[base; 13]);
    wire.ack(base + 4);
    assert_eq!(wire.sender.cold.recovery, Recovery { partial: true, ..recovery(8.0, 0) });
    // Nine duplicates: 8 + 9 = 17 from base + 4 lets out up to base + 20, which has gone; the tenth the next.
    assert_eq!(wire.acks(&[base + 4; 9]).concat(), Vec::<u32>::new());
    assert_eq!(wire.ack(base + 4), [base + 21]);
}

#[test]
fn two_windows_learn_the_color_of_the_first_missing_segment_and_the_clocks_round_trip() {
    // The figure's cases are the congestion control's own tests. Round trips of 64 ms, a clock of 1 ms or of
    // 100 ms: 0.8 Mbit/s reserve 6.4 or 10 segments of 1000 bytes. A window of 12 and an OUT packet lost: 6.4
    // + 5.6/2 or 10 + 2/2; an IN packet lost: 6.
    for (tick, color, left) in
        [("1ms", Color::Yellow, 9.2), ("100ms", Color::Yellow, 11.0), ("100ms", Color::Green, 6.0)]
    {
        let params = format!(r#"{{"tcp": "two-windows", "tick": "{tick}"}}"#);
        let (mut wire, _) = Wire::with_reserved(&params, Some("0.8Mbps".parse().unwrap()));
        let base = wire.grow(12);
        wire.sender.control.set_window(12.0);
        (0..200).for_each(|_| wire.sender.cold.rto.sample(Instant::ZERO, Instant::from_nanos(64_000_000)));
        wire.sender.on_marked(base, color);
        assert_eq!(wire.acks(&[base; 3]).concat().first(), Some(&base));
        assert!(
            (wire.sender.congestion_window() - left).abs() < 1e-6,
            "{tick} {color:?}: {}",
            wire.sender.congestion_window()
        );
    }
}

#[test]
fn out_feedback_takes_one_segment_and_never_the_last() {
    let (mut wire, _) = Wire::new("");
    wire.grow(4);
    let before = wire.sender.congestion_window();
    wire.sender.on_out_feedback();
    assert_eq!(wire.sender.congestion_window(), before - 1.0);
    (0..9).for_each(|_| wire.sender.on_out_feedback());
    assert_eq!(wire.sender.congestion_window(), 1.0);
}

#[test]
fn a_timeout_goes_back_and_backs_off() {
    let (mut wire, _) = Wire::new("");
    let base = wire.grow(8);
    let expiry = wire.sender.wake();
    wire.now = expiry;
    assert_eq!(wire.act(TcpSender::on_wake), [base]);
    assert_eq!((wire.sender.congestion_window(), wire.sender.control.threshold()), (1.0, 4.0));
    let first = wire.sender.wake().since(wire.now);
    wire.now = wire.sender.wake();
    wire.act(TcpSender::on_wake);
    assert_eq!(wire.sender.wake().since(wire.now).as_nanos(), 2 * first.as_nanos());
    // Duplicates for what was sent before the timeout do not start a fast retransmit.
    assert_eq!(wire.acks(&[base; 4]).concat(), Vec::<u32>::new());
    assert_eq!(wire.ack(base + 1), [base + 1, base + 2]);
}

#[test]
fn a_timeout_in_fast_recovery_halves_the_window_not_its_inflation() {
    let (mut wire, _) = Wire::new("");
    let base = wire.grow(16);
    wire.acks(&[base; 12]);
    assert_eq!(wire.sender.cold.recovery, recovery(8.0, 12));
    wire.now = wire.sender.wake();
    wire.act(TcpSender::on_wake);
    assert_eq!((wire.sender.congestion_window(), wire.sender.control.threshold()), (1.0, 4.0));
    assert_eq!(wire.sender.recovery(), None);
}

#[test]
fn the_very_first_segment_is_retransmitted_fast() {
    let (mut wire, sent) = Wire::new(r#","initial-window": "5p""#);
    assert_eq!(sent, [0, 1, 2, 3, 4]);
    assert_eq!(wire.acks(&[0, 0, 0]), [vec![], vec![], vec![0]]);
}

#[test]
fn limited_transmit_sends_on_the_first_two_duplicates() {
    let (mut wire, _) = Wire::new(r#","limited-transmit": true"#);
    let base = wire.grow(4);
    assert_eq!(wire.acks(&[base, base, base]), [vec![base + 4], vec![base + 5], vec![base]]);
}

#[test]
fn handshake_sends_a_small_segment_first() {
    let params = serde_json::from_str::<TcpParams>(
        r#"{"tcp": "reno", "handshake": true, "initial-window": "2p", "packet": "1500B"}"#,
    );
    let mut sender = TcpSender::new(params.unwrap().into(), Some(Bytes::new(3000)), None, TcpEcn::Off, 1);
    let mut rng = Rng::stream(1, "tcp");
    let mut cx = Context { now: Instant::ZERO, rng: &mut rng };
    sender.start(Instant::ZERO);
    assert_eq!(sender.transmit(&mut cx), Some(Transmit::plain(0, 40)));
    assert_eq!(sender.transmit(&mut cx), None);
    sender.on_ack(Ack::plain(1), &mut Metadata::none(), cx.now);
    let sent = [sender.transmit(&mut cx), sender.transmit(&mut cx), sender.transmit(&mut cx)];
    assert_eq!(sent, [Some(Transmit::plain(1, 1500)), Some(Transmit::plain(2, 1500)), None]);
    sender.on_ack(Ack::plain(3), &mut Metadata::none(), cx.now);
    assert_eq!(sender.wake(), Instant::NEVER, "all is acknowledged");
    assert_eq!(sender.acknowledged(), 2);
}

#[test]
fn karn_takes_no_sample_from_a_retransmission() {
    let (mut wire, _) = Wire::new("");
    let base = wire.grow(8);
    wire.acks(&[base; 3]);
    let samples = wire.sender.cold.statistics.timed_rtt_samples.0;
    wire.ack(base + 8);
    assert_eq!(wire.sender.cold.statistics.timed_rtt_samples.0, samples);
}

#[test]
fn an_ack_that_covers_a_repair_gives_no_round_trips_with_ecn_either() {
    let (mut wire, sent) = with_ecn("");
    assert_eq!(sent.len(), 10);
    echo(&mut wire, 1, false);
    let samples = wire.sender.statistics().rtt_samples;
    // Segment 1 is lost: the three duplicates repair it, and the ACK of the repair covers what waited for it.
    (0..3).for_each(|_| drop(echo(&mut wire, 1, false)));
    let recover = wire.sender.recover;
    echo(&mut wire, recover, false);
    assert_eq!(wire.sender.statistics().rtt_samples, samples);
    echo(&mut wire, recover + 1, false);
    assert_eq!(wire.sender.statistics().rtt_samples.0, samples.0 + 1);
}

#[test]
fn a_paced_sender_is_woken_for_each_segment_and_no_retransmission_waits() {
    // 100 kbit/s: a segment of 1000 bytes takes 80 ms.
    let (mut wire, sent) = Wire::new(r#","congestion": "paced", "initial-window": "3p""#);
    assert_eq!(sent, [0]);
    let mut times = Vec::new();
    for sequence in 1..3 {
        let woken = wire.sender.wake();
        times.push(woken.as_nanos() / 1_000_000);
        wire.now = woken;
        assert_eq!(wire.act(TcpSender::on_wake), [sequence]);
        assert_eq!(wire.sender.mode, Mode::General);
    }
    assert_eq!(times, [80, 160]);
    assert_eq!(wire.sender.wake().as_nanos(), 3_000_000_000, "the window is shut: the retransmission timer");
    assert_eq!(wire.acks(&[0, 0, 0]), [vec![], vec![], vec![0]]);
}

#[test]
fn the_window_paces_at_twice_its_rate_below_half_of_the_threshold_and_at_1_2_times_above() {
    // Ten leave at once. The first round trip is 100 ms: 11 segments in slow start, 10.1 in congestion
    // avoidance, by that.
    for (threshold, nanos) in [(100, 100_000_000 / 22), (20, 1_000_000_000 / 132), (2, 10_000_000_000 / 1212)]
    {
        let extra = format!(
            r#","tick": "1ms","initial-window": "10p","initial-ssthresh": "{threshold}p","pacing": "window""#
        );
        let (mut wire, sent) = Wire::new(&extra);
        assert_eq!(sent.len(), 10, "no round trip is known");
        wire.now = Instant::from_nanos(99_000_000);
        assert_eq!(wire.ack(1), [10]);
        let free = wire.sender.cold.paced_until;
        let interval = free.since(wire.now).as_nanos();
        assert!(interval.abs_diff(nanos) < 10, "{threshold}: {interval} {nanos}");
        assert!(wire.ack(2).is_empty());
        assert_eq!(wire.sender.wake(), free);
        wire.now = free;
        assert_eq!(wire.act(TcpSender::on_wake), [11]);
    }
}

/// What the short way makes of an ACK.
fn try_ack(wire: &Wire, number: u32, ece: bool) -> Option<Range<u32>> {
    wire.sender.clone().try_ack(Ack { number, ece }, &mut Metadata::none(), wire.now)
}

#[test]
fn the_short_way_ends_with_losses_and_begins_again_when_they_are_repaired() {
    let (mut wire, _) = Wire::new("");
    let base = wire.grow(8);
    assert_eq!(wire.sender.mode, Mode::Plain);
    assert_eq!(try_ack(&wire, base + 1, false), Some(base + 8..base + 10));
    // Nothing new; everything.
    assert!([base, base + 8].iter().all(|&expected| try_ack(&wire, expected, false).is_none()));
    wire.ack(base);
    assert_eq!(wire.sender.mode, Mode::General, "a duplicate came");
    wire.acks(&[base, base, base + 8]);
    assert_eq!(wire.sender.mode, Mode::Plain);
}

proptest! {
    /// Whatever came before, an ACK does and leaves by the short way what it does and leaves otherwise.
    #[test]
    fn the_short_way_does_what_the_general_path_does(
        kind in 0_usize..9,
        happens in prop::collection::vec((0_u32..12, 0_u32..9, any::<bool>()), 20..200),
    ) {
        let (mut wire, _) = Wire::of([
            r#"{"tcp": "newreno", "window": "30p"}"#,
            r#"{"tcp": "reno", "handshake": true, "limited-transmit": true}"#,
            r#"{"tcp": "newreno", "congestion": "cubic"}"#,
            r#"{"tcp": "two-windows"}"#,
            r#"{"tcp": "newreno", "send-jitter": "1ms", "initial-ssthresh": "4p"}"#,
            r#"{"tcp": "ns-1998", "window": "30p"}"#,
            r#"{"tcp": "newreno", "newreno-timer": "slow-but-steady"}"#,
            r#"{"tcp": "newreno", "slow-start": "hystart++"}"#,
            r#"{"tcp": "newreno", "window-tuning": "linux", "packet": "9000B"}"#,
        ][kind]);
        wire.sender.data_end = 700;
        for (what, step, marked_out) in happens {
            if what == 0 {
                wire.now = wire.now.max(wire.sender.wake());
                wire.act(TcpSender::on_wake);
            } else if marked_out && what == 1 {
                wire.act(|sender, _| sender.on_message(&Message::MarkedOut));
            }
            // Most acknowledge something new.
            let expected = (wire.sender.acked + if what < 9 { step / 3 } else { 0 }).min(wire.sender.sent_end);
            let mut short = wire.sender.clone();
            let sent = wire.ack(expected);
            if let Some(segments) = short.try_ack(Ack::plain(expected), &mut Metadata::none(), wire.now) {
                prop_assert_eq!(segments.collect::<Vec<_>>(), sent);
                prop_assert_eq!(format!("{short:?}"), format!("{:?}", wire.sender));
            }
        }
    }
}

proptest! {
    /// With ECN, an ACK does and leaves by the short way what it does and leaves otherwise.
    #[test]
    fn the_short_way_of_ecn_does_what_the_general_path_does(
        dctcp in any::<bool>(),
        linux in any::<bool>(),
        happens in prop::collection::vec((0_u32..12, 0_u32..9, 0_u32..20), 20..200),
    ) {
        let control = if dctcp { r#","congestion": "dctcp""# } else { "" };
        let reduction = if linux { r#","reduction": "linux""# } else { "" };
        let (mut wire, _) = with_ecn(&format!("{control}{reduction}"));
        for (what, step, marks) in happens {
            if what == 0 {
                wire.now = wire.now.max(wire.sender.wake());
                wire.act(TcpSender::on_wake);
            }
            let expected = (wire.sender.acked + if what < 9 { step / 3 } else { 0 }).min(wire.sender.sent_end);
            let ece = marks == 0;
            let mut short = wire.sender.clone();
            let sent = echo(&mut wire, expected, ece);
            let ack = Ack { number: expected, ece };
            if let Some(segments) = short.try_ack(ack, &mut Metadata::none(), wire.now) {
                let ecn = short.short_ecn();
                let whole = |sequence| Transmit { ecn, ..Transmit::plain(sequence, wire.sender.packet) };
                prop_assert_eq!(segments.map(whole).collect::<Vec<_>>(), sent);
                prop_assert_eq!(format!("{short:?}"), format!("{:?}", wire.sender));
            }
        }
    }
}

#[test]
fn an_ack_without_a_mark_takes_the_short_way_of_ecn() {
    let (mut wire, _) = with_ecn("");
    echo(&mut wire, 1, false);
    echo(&mut wire, 2, false);
    assert_eq!((try_ack(&wire, 3, false), try_ack(&wire, 3, true)), (Some(12..13), None));
    echo(&mut wire, 3, true);
    assert_eq!(try_ack(&wire, 4, false), None, "the next segment says CWR");
}

/// A sender whose application grants data, and what it sends at its start.
fn with_grants(extra: &str) -> Wire {
    let params = format!(r#"{{"tcp": "newreno", "initial-window": "10p", "tick": "1ms" {extra}}}"#);
    let params: TcpParams = serde_json::from_str(&params).unwrap();
    let sender = TcpSender::new(params.into(), None, None, TcpEcn::Off, 1);
    let mut wire = Wire { sender, rng: Rng::stream(1, "tcp"), now: Instant::ZERO };
    wire.sender.await_grants();
    assert!(wire.act(TcpSender::start).is_empty(), "nothing is granted");
    wire
}

#[test]
fn an_application_grants_data_in_steps() {
    let mut wire = with_grants("");
    assert_eq!(wire.act(|sender, now| sender.grant(3, now)), [0, 1, 2]);
    assert!(wire.sender.is_sending());
    assert_eq!(wire.acks(&[1, 2, 3]), [[0_u32; 0]; 3]);
    assert!(!wire.sender.is_sending());
    assert_eq!(wire.sender.wake(), Instant::NEVER, "no timer runs");
    let second = wire.act(|sender, now| sender.grant(40, now));
    assert_eq!(second.len(), 13, "the window of 10 has grown by three");
    assert_eq!(second[0], 3);
}

#[test]
fn rfc_5681_restarts_from_the_initial_window_after_a_timeout_without_sending() {
    // Section 4.1: "if the TCP has not sent data in an interval exceeding the retransmission timeout".
    for (extra, idle, window) in [
        ("", 300, 10.0),
        ("", 150, 20.0),
        (r#","idle-restart": "none""#, 300, 20.0),
        (r#","initial-window": "10p","congestion": "cubic""#, 300, 10.0),
    ] {
        let extra = extra.replace(r#","initial-window": "10p""#, "");
        let mut wire = with_grants(&extra);
        wire.act(|sender, now| sender.grant(10, now));
        (1..=10).for_each(|expected| drop(wire.ack(expected)));
        assert_eq!(wire.sender.congestion_window(), 20.0);
        assert_eq!(wire.sender.timeout, Duration::from_millis(200));
        // The last segment was sent at time zero, ten milliseconds before.
        wire.now = Instant::ZERO + Duration::from_millis(idle);
        let sent = wire.act(|sender, now| sender.grant(100, now));
        assert_eq!(
            (wire.sender.congestion_window(), sent.len()),
            (window, window as usize),
            "{extra} {idle}"
        );
    }
}

#[test]
fn rfc_7661_lets_a_window_grow_only_while_half_of_it_is_used() {
    // Flights of six. The first is acknowledged while nothing is known: 16. 2 x 6 is below that, so it grows
    // no more.
    let windows = ["", r#","cwnd-validation": "none""#].map(|extra| {
        let mut wire = with_grants(extra);
        for flight in 0..5 {
            wire.act(|sender, now| sender.grant(6, now));
            (1..=6).for_each(|segment| drop(wire.ack(6 * flight + segment)));
        }
        wire.sender.congestion_window()
    });
    assert_eq!(windows, [16.0, 40.0]);
    // Flights of twelve use more than half: the window grows up to one more than twice that.
    let mut wire = with_grants("");
    for flight in 0..5 {
        wire.act(|sender, now| sender.grant(12, now));
        (1..=12).for_each(|segment| drop(wire.ack(12 * flight + segment)));
    }
    assert_eq!(wire.sender.congestion_window(), 25.0);
}

#[test]
fn samples_are_limited_by_the_application_once_it_has_no_more_to_send() {
    let mut wire = with_grants(r#","congestion": "bbr""#);
    wire.act(|sender, now| sender.grant(1, now));
    let limited = |wire: &mut Wire, expected: u32| {
        let mut seen = None;
        wire.now += Duration::from_millis(1);
        wire.act(|sender, now| {
            sender.note_delivered(expected - 1, now);
            seen = sender.cold.delivery.as_mut().and_then(|delivery| delivery.sample(expected, now));
            sender.advance(expected, now);
        });
        seen.map(|sample| sample.limited)
    };
    assert_eq!(limited(&mut wire, 1), Some(true), "sent when nothing else was to be sent");
    wire.act(|sender, now| sender.grant(50, now));
    // Ten leave at once, before more has been delivered than when it was limited; what the ACK of the first
    // lets out is not.
    let later: Vec<_> = (2..14).map(|expected| limited(&mut wire, expected)).collect();
    assert_eq!(later, [[Some(true); 10].as_slice(), &[Some(false); 2]].concat());
}

proptest! {
    /// Whatever is granted when, all of it is sent, and nothing else.
    #[test]
    fn all_that_is_granted_is_sent_and_no_more(
        steps in prop::collection::vec((0_u32..30, 0_u64..900), 1..20),
        validates: bool,
    ) {
        let extra = if validates { "" } else { r#","cwnd-validation": "none", "idle-restart": "none""# };
        let mut wire = with_grants(extra);
        let (mut granted, mut sent) = (0, 0);
        for (segments, pause) in steps {
            wire.now += Duration::from_millis(pause);
            granted += segments;
            sent += wire.act(|sender, now| sender.grant(segments, now)).len() as u32;
            prop_assert!(sent <= granted);
            if pause % 2 == 0 {
                while wire.sender.acked < sent {
                    sent += wire.ack(wire.sender.acked + 1).len() as u32;
                }
                prop_assert_eq!(sent, granted);
                prop_assert!(!wire.sender.is_sending());
            }
        }
        prop_assert_eq!(wire.sender.data_end, granted);
    }
}

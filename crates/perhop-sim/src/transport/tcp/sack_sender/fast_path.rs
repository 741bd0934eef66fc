//! The fast path: what the sender does for nearly every ACK, in a few steps.
//!
//! It takes ACKs that report nothing beyond a gap, while there are no losses to repair and no segment was sent twice. It does and
//! leaves what the general path does and leaves: a property test compares them.

use std::ops::Range;

use perhop_core::{Duration, Ecn, Instant};

use super::super::acks::{Acks, MOST_EXPECTED};
use super::super::congestion::CongestionControl;
use super::super::prr::Progress;
use super::super::rack::Path;
use super::{Next, Phase, SackSender, Selective};
use crate::transport::Ack;

impl SackSender {
    /// What [`on_record`](Self::on_record) and [`transmit`](Self::transmit) do for an ACK of new data, but not of all data. It asks
    /// for a segment and counts marked packets, and reports nothing else. Returns the segments to put on the wire; `None`, and does
    /// nothing, for any other ACK.
    #[inline]
    pub(super) fn ack_fast(
        &mut self,
        (expected, marked): (u32, u32),
        ece: bool,
        now: Instant,
    ) -> Option<Range<u32>> {
        if !self.is_clean() {
            return None;
        }
        let smoothed_rtt = self.smoothed_for_rack();
        if self.tcp.is_paced() {
            let takes = self.tcp.sends_full_segments() && self.tcp.take_fast(expected, marked, ece, now);
            return takes.then(|| {
                self.pass(expected, 0, [smoothed_rtt, self.smoothed_for_rack()], now);
                self.release(now)
            });
        }
        let segments = self.tcp.ack_fast_of(expected, marked, ece, now)?;
        self.pass(expected, segments.len() as u32, [smoothed_rtt, self.smoothed_for_rack()], now);
        Some(segments)
    }

    /// What [`on_wake`](Self::on_wake) and [`transmit`](Self::transmit) do of a paced sender when its next segment may leave. Returns
    /// the segments to put on the wire; `None`, and does nothing, if anything else is to be done.
    #[inline]
    pub(super) fn wake_fast(&mut self, now: Instant) -> Option<Range<u32>> {
        if let Phase::Recovery(_) = self.phase {
            return self.wake_in_recovery(now);
        }
        let is_due = self.rack.as_ref().is_some_and(|rack| rack.wake() <= now);
        if is_due || !self.tcp.may_release(now) || !self.is_clean() {
            return None;
        }
        self.tcp.next_send = Instant::NEVER;
        Some(self.release(now))
    }

    /// A paced sender that has nothing else to do sends what may leave now; returns these segments.
    #[inline]
    fn release(&mut self, now: Instant) -> Range<u32> {
        let Self { tcp, board, rack, .. } = self;
        let first = tcp.next;
        let by_window = (tcp.window_in_force() as u32).saturating_sub(board.outstanding());
        let by_receiver = tcp.most().saturating_sub(first - tcp.acked);
        let room = by_window.min(by_receiver).min(tcp.end.saturating_sub(first));
        let end = first + room;
        while tcp.next < end && !tcp.waits_for_pace(now) {
            board.on_sent();
            tcp.send_paced(now);
            if let Some(rack) = rack {
                rack.on_sent(now);
                rack.arm_probe(tcp.probe_timer(tcp.smoothed_span()), now);
            }
        }
        if tcp.next == end {
            tcp.hold();
        }
        tcp.note_limit(now);
        first..tcp.next
    }

    /// Whether [`ack_plain_fast`](Self::ack_plain_fast) may be called.
    pub(in crate::transport) fn is_on_fast_path(&self) -> bool {
        self.tcp.is_on_fast_path() && self.tcp.sends_full_segments() && self.is_clean()
    }

    /// The same for an ACK of this number that does not cover the timed segment, while the sender [is on the fast
    /// path](Self::is_on_fast_path).
    #[inline]
    pub(in crate::transport) fn ack_plain_fast(&mut self, number: u32, now: Instant) -> Option<Range<u32>> {
        debug_assert!(self.is_on_fast_path());
        if number > MOST_EXPECTED {
            return None;
        }
        let segments = self.tcp.ack_fast(number, now)?;
        let smoothed_rtt = self.smoothed_for_rack();
        self.pass(number, segments.len() as u32, [smoothed_rtt; 2], now);
        Some(segments)
    }

    /// Whether [`take_fast_in_recovery`](Self::take_fast_in_recovery) and [`transmit_fast_in_recovery`](Self::transmit_fast_in_recovery) may be called.
    pub(in crate::transport) fn has_recovery_fast_path(&self) -> bool {
        self.tcp.is_simple()
    }

    /// What [`on_record`](Self::on_record) does of most ACKs in a recovery with RACK and PRR: one that reports the segment behind all
    /// that has arrived, and nothing else that is new. Returns how many segments may then be sent; `None`, having done nothing, for
    /// any other ACK.
    #[inline(always)]
    pub(crate) fn take_fast_in_recovery(
        &mut self,
        number: u32,
        acks: &mut Acks,
        now: Instant,
    ) -> Option<u32> {
        debug_assert!(self.has_recovery_fast_path());
        let Self { tcp, board, rack: Some(rack), probe: None, phase: Phase::Recovery(recovery) } = self
        else {
            return None;
        };
        let prr = recovery.prr.as_mut()?;
        let sequence = board.next_held(acks.first_record(number)?)?;
        if sequence == tcp.timed || tcp.urgent.is_some() || !rack.takes_next(sequence) {
            return None;
        }
        acks.take_first_of(number);
        board.hold_next();
        tcp.note_arrived(sequence, now);
        let held = board.held();
        rack.take_next(Path { smoothed_rtt: tcp.smoothed_span(), is_recovering: true, held }, tcp.acked, now);
        let pipe = board.outstanding() - held - rack.lost();
        let progress = Progress { delivered: 1, safe: false, pipe };
        let window = prr.on_ack(progress, tcp.control.window() as u32);
        tcp.rare.recovery.window = f64::from(window);
        Some(window.saturating_sub(pipe))
    }

    /// What [`transmit`](Self::transmit) does after that, if so much may be sent: the next segment to put on the wire.
    #[inline(always)]
    pub(crate) fn transmit_fast_in_recovery(&mut self, now: Instant) -> Option<u32> {
        let next = self.next()?;
        let sequence = self.send(next, now).sequence;
        self.tcp.note_limit(now);
        Some(sequence)
    }

    /// What [`on_record`](Self::on_record) does of most ACKs in a recovery with RACK, whoever owns it: one that reports
    /// a segment above all that has arrived, perhaps beyond a gap, and nothing else that is new. Returns how many segments the window
    /// then lets out; `None`, having done nothing, for any other ACK.
    pub(super) fn take_in_recovery(&mut self, number: u32, acks: &mut Acks, now: Instant) -> Option<u32> {
        let Self { tcp, board, rack: Some(rack), phase: Phase::Recovery(recovery), .. } = self else {
            return None;
        };
        let record = acks.first_record(number)?;
        let sequence = board.next_above(record)?;
        if sequence == tcp.timed || !tcp.takes_in_recovery(record.marked) {
            return None;
        }
        board.hold_above(sequence, record.blocks);
        acks.take_first_of(number);
        tcp.note_delivered(sequence, now);
        let held = board.held();
        let path = Path { smoothed_rtt: tcp.smoothed_span(), is_recovering: true, held };
        if rack.takes_next(sequence) {
            rack.take_next(path, tcp.acked, now);
        } else {
            rack.on_arrived(sequence, now);
            rack.on_ack(tcp.acked, tcp.highest, false, now);
            rack.detect(path, now, |sequence| tcp.note_lost(sequence, now));
        }
        let pipe = board.outstanding() - held - rack.lost();
        if let Some(prr) = &mut recovery.prr {
            let progress = Progress { delivered: 1, safe: false, pipe };
            let window = prr.on_ack(progress, tcp.control.window() as u32);
            tcp.rare.recovery.window = f64::from(window);
        }
        let window = tcp.take_one_in_recovery(pipe, now) as u32;
        Some(window.saturating_sub(pipe))
    }

    /// What [`on_record`](Self::on_record) and [`transmit`](Self::transmit) do of [such an ACK](Self::take_in_recovery) of a paced
    /// sender whose next segment has to wait. Returns no segments; `None`, having done nothing, for any other.
    #[inline(never)] // The caller is faster without it where there are no losses.
    pub(super) fn ack_in_recovery(
        &mut self,
        number: u32,
        acks: &mut Acks,
        now: Instant,
    ) -> Option<Range<u32>> {
        let waits = self.tcp.waits_in_recovery(now) && self.probe.is_none();
        if !waits {
            return None;
        }
        let room = self.take_in_recovery(number, acks, now)?;
        self.wait_for_pace(room, now);
        Some(0..0)
    }

    /// The same as [`wake_fast`](Self::wake_fast) in a recovery that the congestion control owns: a segment leaves, perhaps again.
    #[inline(never)] // The same.
    fn wake_in_recovery(&mut self, now: Instant) -> Option<Range<u32>> {
        let Self { tcp, rack: Some(rack), probe: None, phase: Phase::Recovery(_), .. } = self else {
            return None;
        };
        if rack.wake() <= now || !tcp.may_release_in_recovery(now) {
            return None;
        }
        let room = self.room();
        let next = if room > 0 { self.next_at_pace()? } else { return None };
        self.tcp.next_send = Instant::NEVER;
        let sequence = self.send(next, now).sequence;
        self.wait_for_pace(room - 1, now);
        self.tcp.note_limit(now);
        Some(sequence..sequence + 1)
    }

    /// What may leave now of a paced sender with RACK: the [next](Self::next), unless it waits.
    #[inline]
    pub(super) fn choose_at_pace(&mut self, now: Instant) -> Option<Next> {
        if self.room() == 0 || !self.has_segment() {
            self.tcp.hold();
            return None;
        }
        if self.tcp.waits_for_pace(now) { None } else { self.next_at_pace() }
    }

    /// Nothing leaves of such a sender, whose window lets out so many segments, before its pace lets it.
    #[inline]
    fn wait_for_pace(&mut self, room: u32, now: Instant) {
        if room == 0 || !self.has_segment() {
            self.tcp.hold();
        } else {
            let waits = self.tcp.waits_for_pace(now);
            debug_assert!(waits);
        }
    }

    /// How many segments the window lets out.
    #[inline]
    fn room(&self) -> u32 {
        let Self { tcp, board, phase, .. } = self;
        let leaves_held = matches!(phase, Phase::Open) && !tcp.rare.params.limited_transmit;
        let pipe = self.pipe() + if leaves_held { board.held() } else { 0 };
        if tcp.started { (tcp.window_in_force() as u32).saturating_sub(pipe) } else { 0 }
    }

    /// With RACK: there is a segment to send, if the window lets it out.
    #[inline]
    fn has_segment(&self) -> bool {
        self.is_repairing() || self.tcp.has_new()
    }

    /// With RACK: the next of them is sent again.
    #[inline]
    fn is_repairing(&self) -> bool {
        !matches!(self.phase, Phase::Open) && self.rack.as_ref().is_some_and(|rack| rack.lost() > 0)
    }

    /// That segment.
    #[inline]
    fn next_at_pace(&mut self) -> Option<Next> {
        if self.is_repairing() {
            return self.rack.as_mut()?.next_lost().map(Next::Again);
        }
        self.tcp.has_new().then_some(Next::New)
    }

    /// Takes such an ACK for a sender that does not send at once what it may; or returns false, having done nothing.
    #[inline]
    pub(super) fn take_fast(&mut self, (expected, marked): (u32, u32), ece: bool, now: Instant) -> bool {
        let smoothed_rtt = self.smoothed_for_rack();
        let takes = self.is_clean() && self.tcp.take_fast(expected, marked, ece, now);
        if takes {
            self.pass(expected, 0, [smoothed_rtt, self.smoothed_for_rack()], now);
        }
        takes
    }

    #[inline]
    fn smoothed_for_rack(&self) -> Option<Duration> {
        self.rack.as_ref().and_then(|_| self.tcp.smoothed_span())
    }

    /// There are no losses to repair or to look for.
    #[inline]
    fn is_clean(&self) -> bool {
        let Self { board, rack, probe, phase, .. } = self;
        matches!(phase, Phase::Open)
            && probe.is_none()
            && board.is_clean()
            && rack.as_ref().is_none_or(|rack| rack.is_clean())
    }

    /// Everything below `expected` has arrived, and so many new segments are sent. `smoothed_rtt` is what it was before, and is.
    #[inline]
    fn pass(&mut self, expected: u32, sent: u32, smoothed_rtt: [Option<Duration>; 2], now: Instant) {
        let Self { tcp, board, rack, .. } = self;
        board.pass(expected, sent);
        if let Some(rack) = rack {
            let [before, after] = smoothed_rtt;
            rack.pass(expected, sent, before, now);
            rack.arm_probe(tcp.probe_timer(after), now);
        }
    }
}

impl Selective<'_> {
    /// See [`SackSender::ack_fast`].
    #[inline]
    pub(super) fn ack_fast_of(&mut self, ack: Ack, now: Instant) -> Option<Range<u32>> {
        let Some(plain) = self.acks.first_plain(ack.number) else {
            return if ack.ece { None } else { self.sender.ack_in_recovery(ack.number, self.acks, now) };
        };
        let segments = self.sender.ack_fast(plain, ack.ece, now)?;
        self.acks.take_first_of(ack.number);
        Some(segments)
    }

    /// See [`SackSender::take_fast`].
    #[inline]
    pub(super) fn take_fast(&mut self, ack: Ack, now: Instant) -> bool {
        if self.sender.tcp.sends_at_once() {
            return false; // It is no such sender.
        }
        let plain = self.acks.first_plain(ack.number);
        let takes = plain.is_some_and(|plain| self.sender.take_fast(plain, ack.ece, now));
        if takes {
            self.acks.take_first_of(ack.number);
        }
        takes
    }

    /// See [`SackSender::take_in_recovery`].
    #[inline]
    pub(super) fn take_in_recovery(&mut self, ack: Ack, now: Instant) -> bool {
        !ack.ece && self.sender.take_in_recovery(ack.number, self.acks, now).is_some()
    }

    /// The ECN field of new data.
    #[inline]
    pub(super) fn ecn_of_data(&self) -> Ecn {
        self.sender.tcp.ecn_of_data()
    }
}

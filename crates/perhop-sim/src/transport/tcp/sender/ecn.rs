//! ECN at the sender: RFC 3168, section 6.1.2.
//!
//! ## Deviations
//! - A mark that comes back while the window is one segment leaves the window as it is; RFC 3168 would also
//!   have the sender wait for its retransmission timer.
//! - A mark reduces the window at once, with `prr`, too; Linux spreads the reduction over a round trip by
//!   PRR, as after a loss. That the window does not grow meanwhile, `reduction = "linux"` has, too.

use perhop_core::{Ecn, Instant};

use super::{Cold, TcpSender};
use crate::transport::tcp::TcpEcn;
use crate::transport::tcp::ace::{self, AccEcn, AceReader};
use crate::transport::tcp::congestion::CongestionControl;

/// What a sender remembers of marks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnState {
    pub(super) ecn: TcpEcn,
    /// What new data is sent with.
    pub(super) codepoint: Ecn,
    /// What had been sent at the last reduction, whatever its reason: what is learned of it changes nothing.
    reduced_at: u32,
    /// The window does not grow until more than this is acknowledged, after a mark; 0 where that is over.
    held_until: u32,
    /// The next new segment says that the window was reduced.
    pub(super) says_reduced: bool,
    /// The congestion control gets the ACKs that report marks, and its retransmissions are ECN-capable, too.
    hears_marks: bool,
    /// Marks that the ACK at hand reports, and, with accurate feedback, all that were reported.
    pub(super) marks: u32,
    reported: u32,
    /// Where the number comes in three bits.
    ace: Option<AceReader>,
}

impl EcnState {
    pub(super) fn new(ecn: TcpEcn, accecn: AccEcn, is_l4s: bool, hears_marks: bool) -> Self {
        let codepoint = if is_l4s && !ecn.is_off() { Ecn::Capable1 } else { ecn.codepoint() };
        let ace = (accecn == AccEcn::Ace && ecn.counts()).then(AceReader::default);
        Self { ecn, codepoint, hears_marks, ace, ..Self::default() }
    }

    /// Notes the marks that an ACK of so many new segments reports: by its ECN-Echo, or by its count. Where
    /// each mark is echoed, the ECN-Echo is of all these segments (RFC 8257, section 3.3, step 3).
    pub(super) fn learn(&mut self, ece: bool, counted: u32, delivered: u32) {
        let new = match &mut self.ace {
            None => counted.saturating_sub(self.reported),
            Some(reader) => reader.read(ace::field(counted), delivered),
        };
        self.reported += new;
        let echoed = if self.hears_marks { delivered.max(1) } else { 1 };
        self.marks = new.max(if ece { echoed } else { 0 });
    }

    /// Returns the ECN field of a retransmission. RFC 3168, section 6.1.5, makes it not ECN-capable. Linux's
    /// `tcp_ecn_send()` leaves it as new data is where the control needs ECN (`TCP_CONG_NEEDS_ECN`): it
    /// responds to the share of marked packets.
    pub(super) fn codepoint_of_retransmissions(&self) -> Ecn {
        if self.hears_marks { self.codepoint } else { Ecn::NotCapable }
    }

    pub(super) fn is_off(&self) -> bool {
        self.ecn.is_off()
    }

    /// Returns whether an ACK without ECN-Echo, by which so many marked packets had come, says nothing new,
    /// and the sender has nothing to say.
    #[inline]
    pub(super) fn has_no_news(&self, counted: u32) -> bool {
        counted <= self.reported && self.ace.is_none() && !self.says_reduced && self.held_until == 0
    }

    /// Notes that the window was reduced when everything below `sent_end` had been sent.
    fn on_reduced(&mut self, sent_end: u32) {
        self.reduced_at = sent_end;
        self.held_until = 0;
        self.says_reduced = self.ecn == TcpEcn::Classic;
    }
}

impl TcpSender {
    /// Returns whether the ACK at hand is reported to the congestion control now: one that controls
    /// recoveries gets it later. RFC 3168, section 6.1.2: the window does not grow by one that reports marks.
    pub(super) fn may_grow(&mut self) -> bool {
        let is_held = self.is_held();
        let Cold { controls_recovery, ecn, .. } = &*self.cold;
        !controls_recovery && ((ecn.marks == 0 && !is_held) || ecn.hears_marks)
    }

    /// Returns whether the window does not grow, since a mark has reduced it and not all is acknowledged that
    /// had been sent by then.
    pub(super) fn is_held(&mut self) -> bool {
        let ecn = &mut self.cold.ecn;
        if self.acked > ecn.held_until {
            ecn.held_until = 0;
        }
        ecn.held_until > 0
    }

    /// Reduces the window if an ACK that asks for `expected` reports marks: at most once in a window of data.
    #[cold]
    pub(super) fn answer_marks(&mut self, expected: u32, now: Instant) {
        if self.cold.ecn.marks == 0 || self.recovering || expected <= self.cold.ecn.reduced_at {
            return;
        }
        let event = self.congestion_event(now);
        self.control_mut().on_congestion_experienced(&event);
        if self.control.window() > event.window {
            self.control_mut().set_window(event.window);
        }
        self.cold.statistics.ecn_reductions += 1;
        self.end_first_slow_start();
        self.cold.ecn.on_reduced(self.sent_end);
        if self.cold.params.reduces_as_linux() {
            self.cold.ecn.held_until = self.sent_end;
        }
    }

    /// Returns whether a mark has already reduced the window for data with the first missing segment.
    pub(super) fn has_answered_marks(&self) -> bool {
        let ecn = &self.cold.ecn;
        !ecn.is_off() && !ecn.hears_marks && self.acked < ecn.reduced_at
    }

    /// Notes that a loss has reduced the window.
    pub(super) fn note_reduction(&mut self) {
        if !self.cold.ecn.is_off() {
            self.cold.ecn.on_reduced(self.sent_end);
        }
    }
}

//! Which keys of a TCP transport fit together. What a congestion control asks of its own parameters, it
//! checks itself.

use perhop_core::units::UnitError;
use perhop_core::{Depth, Duration};

use super::{MOST_SEGMENTS, NEWRENO_KEYS, NewRenoTimer, PartialWindowDeflation, TcpParams, Variant};
use crate::transport::tcp::congestion::CongestionParams;

/// The shortest timeout: a shorter one would only make a sender spin.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);
/// The longest timeout: a longer one is a slip of the keyboard.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// Why the keys of [`NEWRENO_KEYS`] are refused.
pub(super) const NO_PARTIAL_ACKS: &str = "only a recovery by NewReno has partial acknowledgements: leave this key out, or give `tcp = \
                               \"newreno\"` without `sack`";

/// The key that does not fit, and the text that says what would.
type Refused = (&'static str, UnitError);

fn refuse(key: &'static str, why: &str) -> Result<(), Refused> {
    Err((key, UnitError::new(why)))
}

impl TcpParams {
    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The first that does not fit, and what would.
    pub fn check(&self) -> Result<(), Refused> {
        self.check_windows()?;
        self.check_timeouts()?;
        self.check_recovery()?;
        self.check_control()
    }

    fn check_windows(&self) -> Result<(), Refused> {
        if self.packet.get() == 0 || self.packet.get() > 65_535 {
            return refuse("packet", "a segment has 1B to 65535B");
        }
        if self.ack.get() == 0 || self.ack.get() > 65_535 {
            return refuse("ack", "an acknowledgement has 1B to 65535B");
        }
        for (key, size) in [("window", Some(self.window)), ("send-buffer", self.send_buffer)] {
            let (least, amount) = match size {
                None => continue,
                Some(Depth::Packets(packets)) => (1, packets),
                Some(Depth::Bytes(bytes)) => (self.payload(), bytes),
            };
            if amount < least || amount / least > MOST_SEGMENTS {
                let why = match size {
                    Some(Depth::Bytes(_)) => format!(
                        "1 to {MOST_SEGMENTS} segments fit in, each of {least} bytes (`packet` less `ack`), such as 4MB"
                    ),
                    _ => format!("from 1p to {MOST_SEGMENTS}p, such as 1000p"),
                };
                return refuse(key, &why);
            }
        }
        if self.initial_window.get() == 0 || self.initial_window.get() > u64::from(self.most_outstanding()) {
            return refuse(
                "initial-window",
                "the initial window has at least 1p and at most what `window` and `send-buffer` allow",
            );
        }
        if self.tick.is_zero() {
            return refuse("tick", "the clock's tick is above zero; 1ns is as good as exact");
        }
        if self.initial_ssthresh.is_some_and(|ssthresh| ssthresh.get() == 0) {
            return refuse("initial-ssthresh", "the slow-start threshold is at least 1p");
        }
        Ok(())
    }

    fn check_timeouts(&self) -> Result<(), Refused> {
        for (key, timeout) in [("min-rto", self.min_rto), ("initial-rto", self.initial_rto)] {
            if timeout < SHORTEST_TIMEOUT {
                return refuse(key, "a timeout is at least 1ms");
            }
        }
        if self.max_rto > LONGEST_TIMEOUT {
            return refuse("max-rto", "a timeout is at most 3600s, such as 60s");
        }
        for (key, timeout) in [("min-rto", self.min_rto), ("initial-rto", self.initial_rto)] {
            if timeout > self.max_rto {
                let why = format!(
                    "{timeout} is above `max-rto`, which is {}; lower this, or raise that",
                    self.max_rto
                );
                return refuse(key, &why);
            }
        }
        if self.tick > self.max_rto {
            let why = format!("a clock that ticks each {} measures no round trip; 10ms is usual", self.tick);
            return refuse("tick", &why);
        }
        Ok(())
    }

    fn check_recovery(&self) -> Result<(), Refused> {
        if self.quick_acks.get() > u64::from(u16::MAX) {
            return refuse("quick-acks", "at most 65535p are acknowledged at once");
        }
        if self.tcp == Variant::Ns1998 && self.prr {
            return refuse(
                "prr",
                "it paces a recovery by SACK, and ns-1998 is a NewReno; leave this key out, or give `tcp = \"newreno\"` with `sack`",
            );
        }
        // A preset sets these keys beside others that leave them without effect.
        if !matches!(self.tcp, Variant::Linux | Variant::Quic) {
            self.check_idle_keys()?;
        }
        if self.prr && !self.sack {
            return refuse("prr", "it paces the recovery of `sack`; set that to true, or this to false");
        }
        if self.has_rack() && !self.sack {
            return refuse(
                "loss-detection",
                "`rack` and `quic` need to know which segments have arrived; set `sack` to true, or leave this key out",
            );
        }
        if self.tcp == Variant::Ns1998 && self.sack {
            return refuse(
                "sack",
                "ns-1998 is a NewReno; for SACK give `tcp = \"newreno\"` and its clock's keys",
            );
        }
        if !self.has_partial_acks() {
            if self.newreno_timer != NewRenoTimer::default() {
                return refuse(NEWRENO_KEYS[0], NO_PARTIAL_ACKS);
            }
            if self.partial_window_deflation != PartialWindowDeflation::default() {
                return refuse(NEWRENO_KEYS[1], NO_PARTIAL_ACKS);
            }
        }
        Ok(())
    }

    /// Refuses keys that are given and cannot act.
    fn check_idle_keys(&self) -> Result<(), Refused> {
        if self.prr && self.needs().recovery {
            let name = self.control().label();
            let why = format!("`{name}` sets the window in recoveries itself; leave this key out");
            return refuse("prr", &why);
        }
        if self.reduction.is_some() && self.reduces_itself() {
            let why =
                format!("`{}` carries out its reductions itself; leave this key out", self.control().label());
            return refuse("reduction", &why);
        }
        if self.byte_counting && !self.control().info().byte_counting {
            let name = self.control().name();
            let why = format!("`{name}` does not count ACKs, with the key or without; leave it out");
            return refuse("byte-counting", &why);
        }
        if self.quick_acks.get() > 0 && self.delayed_ack.is_zero() {
            let why = "without `delayed-ack` every segment is acknowledged at once; give that, or leave this key out";
            return refuse("quick-acks", why);
        }
        Ok(())
    }

    fn check_control(&self) -> Result<(), Refused> {
        if !self.control().info().slow_start {
            let given = [
                ("slow-start", self.slow_start.is_some()),
                ("initial-ssthresh", self.initial_ssthresh.is_some()),
            ];
            if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
                return refuse(key, "this congestion control has no slow start; leave this key out");
            }
        }
        // The default of a preset gives way to the key.
        if self.slow_start.is_some() && self.control().has_hystart(Variant::NewReno) {
            return refuse(
                "slow-start",
                "`hystart` of `congestion` ends it already; leave one of the two out",
            );
        }
        self.check_pacing()?;
        self.check_granted()?;
        let is_plain =
            self.congestion.0 == CongestionParams::default() || self.congestion.0 == *self.control();
        if self.tcp == Variant::TwoWindows && !is_plain {
            return refuse(
                "congestion",
                "two-windows TCP has a rule of its own for losses; leave this key out",
            );
        }
        Ok(())
    }

    fn check_pacing(&self) -> Result<(), Refused> {
        let paces = self.needs().pacing;
        if self.pacing.is_some() && paces {
            let name = self.control().label();
            let why = format!("`{name}` paces at a rate of its own; leave this key out");
            return refuse("pacing", &why);
        }
        if paces && !self.send_jitter.is_zero() {
            return refuse("send-jitter", "the congestion control paces its segments; leave this key out");
        }
        if self.is_paced() && !self.send_jitter.is_zero() {
            return refuse("send-jitter", "`pacing` spaces the segments; leave one of the two keys out");
        }
        Ok(())
    }

    fn check_granted(&self) -> Result<(), Refused> {
        let given = [
            ("idle-restart", self.idle_restart.is_some()),
            ("cwnd-validation", self.cwnd_validation.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given);
        match given.filter(|_| self.needs().recovery) {
            None => Ok(()),
            Some((key, _)) => {
                let name = self.control().label();
                refuse(key, &format!("`{name}` has a model of the path instead; leave this key out"))
            }
        }
    }
}

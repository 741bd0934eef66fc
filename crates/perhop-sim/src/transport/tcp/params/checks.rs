//! Which keys of a TCP transport fit together. Congestion controls check their own parameters.

use perhop_core::units::{UnitError, require};
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

/// Why parameters of congestion controls are refused beside `tcp = "two-windows"`.
pub(super) const TWO_WINDOWS_RULE: &str =
    "two-windows TCP has a rule of its own for losses; leave this key out";

impl TcpParams {
    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The first that does not fit, and what would.
    pub fn check(&self) -> Result<(), UnitError> {
        self.check_windows()?;
        self.check_timeouts()?;
        self.check_recovery()?;
        self.check_control()
    }

    fn check_windows(&self) -> Result<(), UnitError> {
        let sizes = 1..=65_535;
        require(sizes.contains(&self.packet.get()), "packet", "a segment has 1B to 65535B")?;
        require(sizes.contains(&self.ack.get()), "ack", "an acknowledgement has 1B to 65535B")?;
        self.check_depth("window", self.window)?;
        self.send_buffer.map_or(Ok(()), |size| self.check_depth("send-buffer", size))?;
        require(
            (1..=u64::from(self.most_outstanding())).contains(&self.initial_window.get()),
            "initial-window",
            "the initial window has at least 1p and at most what `window` and `send-buffer` allow",
        )?;
        require(!self.tick.is_zero(), "tick", "the clock's tick is above zero; 1ns is as good as exact")?;
        let is_zero = self.initial_ssthresh.is_some_and(|ssthresh| ssthresh.get() == 0);
        require(!is_zero, "initial-ssthresh", "the slow-start threshold is at least 1p")
    }

    fn check_depth(&self, key: &str, size: Depth) -> Result<(), UnitError> {
        let (least, amount, why) = match size {
            Depth::Packets(packets) => (1, packets, format!("from 1p to {MOST_SEGMENTS}p, such as 1000p")),
            Depth::Bytes(bytes) => {
                let each = self.payload();
                let why = format!(
                    "1 to {MOST_SEGMENTS} segments fit in, each of {each} bytes (`packet` less `ack`), such as 4MB"
                );
                (each, bytes, why)
            }
        };
        require(amount >= least && amount / least <= MOST_SEGMENTS, key, why)
    }

    fn check_timeouts(&self) -> Result<(), UnitError> {
        let timeouts = [("min-rto", self.min_rto), ("initial-rto", self.initial_rto)];
        for (key, timeout) in timeouts {
            require(timeout >= SHORTEST_TIMEOUT, key, "a timeout is at least 1ms")?;
        }
        let most = self.max_rto;
        require(most <= LONGEST_TIMEOUT, "max-rto", "a timeout is at most 3600s, such as 60s")?;
        for (key, timeout) in timeouts {
            let why = format!("{timeout} is above `max-rto`, which is {most}; lower this, or raise that");
            require(timeout <= most, key, why)?;
        }
        let why = format!("a clock that ticks each {} measures no round trip; 10ms is usual", self.tick);
        require(self.tick <= most, "tick", why)
    }

    fn check_recovery(&self) -> Result<(), UnitError> {
        let is_brief = u16::try_from(self.quick_acks.get()).is_ok();
        require(is_brief, "quick-acks", "at most 65535p are acknowledged at once")?;
        let is_ns = self.tcp == Variant::Ns1998;
        require(
            !(is_ns && self.prr),
            "prr",
            "it paces a recovery by SACK, and ns-1998 is a NewReno; leave this key out, or give `tcp = \"newreno\"` with `sack`",
        )?;
        // A preset sets these keys beside others that leave them without effect.
        if !matches!(self.tcp, Variant::Linux | Variant::Quic) {
            self.check_idle_keys()?;
        }
        let why = "it paces the recovery of `sack`; set that to true, or this to false";
        require(self.sack || !self.prr, "prr", why)?;
        require(
            self.sack || !self.has_rack(),
            "loss-detection",
            "`rack` and `quic` need to know which segments have arrived; set `sack` to true, or leave this key out",
        )?;
        let why = "ns-1998 is a NewReno; for SACK give `tcp = \"newreno\"` and its clock's keys";
        require(!(is_ns && self.sack), "sack", why)?;
        let is_default = [
            self.newreno_timer == NewRenoTimer::default(),
            self.partial_window_deflation == PartialWindowDeflation::default(),
        ];
        for (key, is_default) in NEWRENO_KEYS.into_iter().zip(is_default) {
            require(is_default || self.has_partial_acks(), key, NO_PARTIAL_ACKS)?;
        }
        Ok(())
    }

    /// Refuses keys that are given and cannot act.
    fn check_idle_keys(&self) -> Result<(), UnitError> {
        let (control, name) = (self.control(), self.control().label());
        let why = format!("`{name}` sets the window in recoveries itself; leave this key out");
        require(!(self.prr && self.needs().recovery), "prr", why)?;
        let why = format!("`{name}` carries out its reductions itself; leave this key out");
        require(self.reduction.is_none() || !self.reduces_itself(), "reduction", why)?;
        let why = format!("`{}` does not count ACKs, with the key or without; leave it out", control.name());
        require(!self.byte_counting || control.info().byte_counting, "byte-counting", why)?;
        let why =
            "without `delayed-ack` every segment is acknowledged at once; give that, or leave this key out";
        require(self.quick_acks.get() == 0 || !self.delayed_ack.is_zero(), "quick-acks", why)
    }

    fn check_control(&self) -> Result<(), UnitError> {
        if !self.control().info().slow_start {
            let why = "this congestion control has no slow start; leave this key out";
            require(self.slow_start.is_none(), "slow-start", why)?;
            require(self.initial_ssthresh.is_none(), "initial-ssthresh", why)?;
        }
        // The default of a preset gives way to the key.
        let ends_twice = self.slow_start.is_some() && self.control().has_hystart(Variant::NewReno);
        let why = "`hystart` of `congestion` ends it already; leave one of the two out";
        require(!ends_twice, "slow-start", why)?;
        self.check_pacing()?;
        self.check_granted()?;
        let is_plain =
            self.congestion.0 == CongestionParams::default() || self.congestion.0 == *self.control();
        require(self.tcp != Variant::TwoWindows || is_plain, "congestion", TWO_WINDOWS_RULE)
    }

    fn check_pacing(&self) -> Result<(), UnitError> {
        let (paces, jitters) = (self.needs().pacing, !self.send_jitter.is_zero());
        let why = format!("`{}` paces at a rate of its own; leave this key out", self.control().label());
        require(!(paces && self.pacing.is_some()), "pacing", why)?;
        let why = "the congestion control paces its segments; leave this key out";
        require(!(paces && jitters), "send-jitter", why)?;
        let why = "`pacing` spaces the segments; leave one of the two keys out";
        require(!(self.is_paced() && jitters), "send-jitter", why)
    }

    fn check_granted(&self) -> Result<(), UnitError> {
        let given = [
            ("idle-restart", self.idle_restart.is_some()),
            ("cwnd-validation", self.cwnd_validation.is_some()),
        ];
        for (key, is_given) in given {
            let name = self.control().label();
            let why = format!("`{name}` has a model of the path instead; leave this key out");
            require(!(is_given && self.needs().recovery), key, why)?;
        }
        Ok(())
    }
}

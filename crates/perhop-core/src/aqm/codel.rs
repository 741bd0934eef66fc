//! `CoDel`: RFC 8289, the law of its section 4 and the pseudocode of its section 5, with exact square roots;
//! Linux's `codel`.
//!
//! A packet at the head of the queue has waited too long if its sojourn time is at least the target and more
//! than one packet's bytes stay behind it. When that has lasted for an interval, packets are dropped, or
//! marked, one at a time: the n-th comes an interval over the square root of n after the one before it, until
//! a packet has not waited too long.
//!
//! ## Deviations
//! - `law = "linux"` follows Linux (`include/net/codel_impl.h`): it counts time in ticks of 1024 ns, drops
//!   only after the interval has passed and not as it ends, and takes 1/sqrt(count) by one Newton step in 16
//!   bits for each change of the count. From 1 to 2 this step gives 0.50 in place of 0.71, so the second drop
//!   comes too early (`linux_drops_at_the_times_of_its_integers`). A queue that is empty does not end the
//!   time above the target (`linux_remembers_the_time_above_the_target_of_an_empty_queue`). Linux counts its
//!   ticks in 32 bits, which overflow after 73 minutes; here they do not.
//! - A packet that is dropped because the queue has no room does not count for the control law, as in
//!   RFC 8289.

#![expect(clippy::inline_always, reason = "FQ-CoDel asks it for each packet")]

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, AqmBlock, Verdict, room};
use crate::units::defaults::{bytes, millis};
use crate::units::{UnitError, keeps, require};
use crate::{
    Bitrate, Block, Bytes, Context, DelayTarget, Depth, Duration, Environment, Header, Instant,
    KeysWithoutEffect, Noted, Occupancy, Origin, PseudoCode, Reason,
};

/// Whose arithmetic `CoDel` follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodelLaw {
    /// RFC 8289, with exact times and square roots.
    #[default]
    Rfc,
    /// Linux: ticks of 1024 ns, and square roots by one Newton step in 16 bits.
    Linux,
}

/// Parameters of [`Codel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CodelParams {
    /// The sojourn time that a standing queue may have (TARGET).
    #[serde(default = "millis::<5>")]
    pub target: Duration,
    /// How long the sojourn time must be above the target before a packet is dropped: about the largest usual
    /// round-trip time (INTERVAL).
    #[serde(default = "millis::<100>")]
    pub interval: Duration,
    /// The largest packet: no packet is dropped while the queue behind it holds no more than this (MTU).
    #[serde(default = "bytes::<1500>")]
    pub mtu: Bytes,
    /// Queue limit, in packets (`200p`), in bytes (`300kB`), or as a time (`50ms`) at the rate of the link.
    /// Default: what the link sends in 250 ms, in packets of 1500 bytes, and at least `1000p`; with
    /// `law = "linux"` `1000p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::units::Limit>")]
    pub limit: Option<Depth>,
    /// Mark ECN-capable packets at the head of the queue instead of dropping them (RFC 3168, section 5).
    /// Where there is no room, they are dropped all the same. TCP flows are capable with the key `ecn`, on
    /// real packets also with `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
    #[serde(default)]
    pub ecn: bool,
    /// Whose arithmetic to follow: for comparisons with Linux's `codel` on real packets, `linux`.
    #[serde(default)]
    pub law: CodelLaw,
}

impl CodelParams {
    fn room(&self, rate: Bitrate) -> Depth {
        if self.law == CodelLaw::Linux { room::least(self.limit) } else { room::limit(self.limit, rate) }
    }
}

/// Controls the sojourn time of a queue by drops at its head.
#[derive(Clone, Debug)]
pub struct Codel {
    params: CodelParams,
    limit: Depth,
    clock: Clock,
    /// When a sojourn time that stays above the target leads to a drop; none while it is below.
    above_until: Option<Ticks>,
    dropping: bool,
    /// When the next packet is due to be dropped.
    next: Ticks,
    /// Packets dropped since the dropping state began, and as it last began.
    count: u32,
    last_count: u32,
    behind: Behind,
}

/// A time, or a span of time, in the unit of the law.
type Ticks = u64;

/// The law's time and square roots.
#[derive(Clone, Debug)]
enum Clock {
    /// In nanoseconds.
    Rfc,
    /// In units of 1024 ns, with 1/sqrt(count) in units of 2^-16.
    Linux { inverse_root: u16 },
}

impl Clock {
    #[inline]
    fn ticks(&self, nanos: u64) -> Ticks {
        nanos >> if matches!(self, Self::Linux { .. }) { 10 } else { 0 }
    }

    fn seconds(&self, ticks: Ticks) -> f64 {
        let nanos = match self {
            Self::Rfc => ticks,
            Self::Linux { .. } => ticks << 10,
        };
        nanos as f64 * 1e-9
    }

    /// Whether an interval that ends at `until` has passed.
    #[inline]
    fn has_passed(&self, until: Ticks, now: Ticks) -> bool {
        match self {
            Self::Rfc => now >= until,
            Self::Linux { .. } => now > until,
        }
    }

    /// The count begins anew at 1.
    fn begin_anew(&mut self) {
        if let Self::Linux { inverse_root } = self {
            *inverse_root = u16::MAX;
        }
    }

    /// The count has changed: a step of Newton's method, y (3 - count y^2) / 2, in fixed point of 32 bits.
    fn count_changed(&mut self, count: u32) {
        if let Self::Linux { inverse_root } = self {
            let root = u64::from(*inverse_root) << 16;
            let square = (root * root) >> 32;
            // As in Linux's arithmetic, a count above what the step can follow wraps around.
            let factor = (3_u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
            *inverse_root = (factor.wrapping_mul(root) >> 31 >> 16) as u16;
        }
    }

    /// An interval over the square root of `count`.
    #[inline]
    fn share(&self, interval: Duration, count: u32) -> Ticks {
        match self {
            Self::Rfc => over_root(interval, count),
            Self::Linux { inverse_root } => {
                let (interval, root) =
                    (u128::from(self.ticks(interval.as_nanos())), u128::from(*inverse_root));
                u64::try_from((interval * root) >> 16).unwrap_or(Ticks::MAX)
            }
        }
    }
}

/// What happened to the packet before this one, if both are judged for the same transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    Nothing,
    /// The drop that began the dropping state: only one packet goes.
    First,
    /// A later drop: this packet may be due as well.
    Drop,
}

const LINES: &[&str] = &[
    "for each packet that leaves:",
    "    if sojourn time < target, or almost nothing waits: stop dropping, pass",
    "    if the sojourn time has not stayed above target for an interval: pass",
    "    if not dropping: begin; drop this packet (or mark it), count ← 1, or near where it was",
    "    while dropping and the next drop is due: drop (or mark), count ← count + 1",
    "    the next drop is due after interval / √count",
    "for each packet that arrives: if the queue has no room: drop (overflow)",
];
const CODE: PseudoCode =
    PseudoCode { lines: LINES, acts: &[(Reason::Target, &[4, 5]), (Reason::Overflow, &[6])] };

const CODE_BEGINS: PseudoCode = PseudoCode { lines: LINES, acts: &[(Reason::Target, &[2, 3, 5])] };

impl Block for Codel {
    type Params = CodelParams;
    const NAME: &'static str = "codel";
    const SUMMARY: &'static str = "drops at the head when packets have waited too long for an interval";
    const ORIGIN: Origin = Origin::published(2012, "RFC 8289, sections 4 and 5").in_linux("codel", "3.5");
    const BATCHED: bool = true;

    fn check(params: &CodelParams) -> Result<(), UnitError> {
        require(!params.interval.is_zero(), "interval", "an interval is longer than 0s, such as 100ms")
    }

    fn keys_without_effect(params: &CodelParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let most = match room::least(params.limit) {
            Depth::Packets(packets) => packets.saturating_mul(*sizes.end()),
            Depth::Bytes(bytes) => bytes,
        };
        if most > params.mtu.get() {
            return Vec::new();
        }
        let text = format!(
            "`{}`: the queue holds at most {}, so never more than `mtu` stays behind a packet, and none is dropped at the \
             head; lower `mtu`, or raise `limit`",
            params.mtu,
            Bytes::new(most)
        );
        vec![("mtu", text)]
    }

    fn pseudo_code(_: Reason, noted: Noted<'_>) -> Option<PseudoCode> {
        let begins = noted("dropping already") == Some(0.0);
        Some(if begins { CODE_BEGINS } else { CODE })
    }
}

impl AqmBlock for Codel {
    const PRECOMPUTABLE: bool = false;

    fn limit(params: &CodelParams, rate: Bitrate) -> Option<Depth> {
        Some(params.room(rate))
    }

    fn delay_targets(params: &CodelParams) -> Vec<DelayTarget> {
        vec![DelayTarget::at("target", params.target, params.target)]
    }

    fn new(params: CodelParams, environment: Environment) -> Self {
        let limit = params.room(environment.rate);
        Self::at_start(params, limit)
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keeps("law", self.params.law == before.params.law)?;
        self.clock = before.clock.clone();
        (self.above_until, self.dropping, self.next) = (before.above_until, before.dropping, before.next);
        (self.count, self.last_count) = (before.count, before.last_count);
        self.behind = before.behind;
        Ok(())
    }
}

impl Codel {
    /// The rule for the queue of one flow, which has no limit of its own (RFC 8290, section 4.2).
    pub(crate) fn of_flow(
        target: Duration,
        interval: Duration,
        mtu: Bytes,
        ecn: bool,
        law: CodelLaw,
    ) -> Self {
        let params = CodelParams { target, interval, mtu, limit: None, ecn, law };
        Self::at_start(params, Depth::Packets(u64::MAX))
    }

    const fn at_start(params: CodelParams, limit: Depth) -> Self {
        let clock = match params.law {
            CodelLaw::Rfc => Clock::Rfc,
            CodelLaw::Linux => Clock::Linux { inverse_root: 0 },
        };
        Self {
            params,
            limit,
            clock,
            above_until: None,
            dropping: false,
            next: 0,
            count: 0,
            last_count: 0,
            behind: Behind::Nothing,
        }
    }

    /// Counts a packet that was dropped for another reason for the control law, as Linux does in FQ-CoDel.
    pub(crate) fn count_drop(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// The verdict on a packet at the head of a queue that has `left` bytes behind it.
    #[inline(always)]
    pub(crate) fn judge(&mut self, packet: &Header, left: u64, now: Instant) -> Verdict {
        let now = self.clock.ticks(now.as_nanos());
        let too_long = self.too_long(packet, left, now);
        let behind = std::mem::replace(&mut self.behind, Behind::Nothing);
        if !too_long {
            self.dropping = false;
            return Verdict::Pass;
        }
        self.act(packet, behind, now)
    }

    /// What becomes of a packet whose sojourn time has been above the target for an interval.
    #[inline(never)]
    fn act(&mut self, packet: &Header, behind: Behind, now: Ticks) -> Verdict {
        match behind {
            Behind::First => return Verdict::Pass,
            Behind::Drop => self.next = self.control_law(self.next),
            Behind::Nothing => {}
        }
        if !self.dropping {
            self.enter(now);
            return self.signal(packet, Behind::First);
        }
        if now < self.next {
            return Verdict::Pass;
        }
        self.count = self.count.saturating_add(1);
        self.clock.count_changed(self.count);
        self.signal(packet, Behind::Drop)
    }

    /// Whether sojourn times have been above the target for an interval.
    #[inline]
    fn too_long(&mut self, packet: &Header, left: u64, now: Ticks) -> bool {
        let CodelParams { target, interval, mtu, .. } = &self.params;
        let sojourn = now.saturating_sub(self.clock.ticks(packet.arrived.as_nanos()));
        if sojourn < self.clock.ticks(target.as_nanos()) || left <= mtu.get() {
            self.above_until = None;
            return false;
        }
        let interval = self.clock.ticks(interval.as_nanos());
        let until = *self.above_until.get_or_insert(now.saturating_add(interval));
        self.clock.has_passed(until, now)
    }

    /// The time of the next drop after one that was due at `at`.
    fn control_law(&self, at: Ticks) -> Ticks {
        at.saturating_add(self.clock.share(self.params.interval, self.count))
    }

    /// Enters the dropping state: at a higher rate if it was left a short time ago.
    fn enter(&mut self, now: Ticks) {
        let dropped = self.count.wrapping_sub(self.last_count);
        let interval = self.clock.ticks(self.params.interval.as_nanos());
        let recent = now.saturating_sub(self.next) < interval.saturating_mul(16);
        if dropped > 1 && recent {
            self.count = dropped;
            self.clock.count_changed(dropped);
        } else {
            self.count = 1;
            self.clock.begin_anew();
        }
        self.last_count = self.count;
        self.next = self.control_law(now);
        self.dropping = true;
    }

    /// Why it is about to mark or drop a packet.
    fn note(&self, behind: Behind) {
        let later = behind == Behind::Drop;
        let next = if later { self.control_law(self.next) } else { self.next };
        crate::trace::note("dropping already", f64::from(u8::from(later)));
        if later {
            crate::trace::note("this drop was due at_s", self.clock.seconds(self.next));
        } else if let Some(until) = self.above_until {
            let interval = self.clock.ticks(self.params.interval.as_nanos());
            crate::trace::note(
                "above the target since_s",
                self.clock.seconds(until.saturating_sub(interval)),
            );
        }
        crate::trace::note("next drop due at_s", self.clock.seconds(next));
    }

    /// Marks or drops a packet. After a drop, the packet behind it is judged for the same transmission.
    fn signal(&mut self, packet: &Header, behind: Behind) -> Verdict {
        if crate::trace::is_recording() {
            self.note(behind);
        }
        if self.params.ecn && packet.ecn.is_capable() {
            if behind == Behind::Drop {
                self.next = self.control_law(self.next);
            }
            return Verdict::Notify(Reason::Target);
        }
        self.behind = behind;
        Verdict::Drop(Reason::Target)
    }
}

/// An interval over the square root of `count`, in nanoseconds.
fn over_root(interval: Duration, count: u32) -> u64 {
    (interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64
}

/// An interval over the square root of `count` later.
pub(super) fn control_law(at: Instant, interval: Duration, count: u32) -> Instant {
    at + Duration::from_nanos(over_root(interval, count))
}

impl Aqm for Codel {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, _: &mut Context<'_>) -> Verdict {
        Verdict::by_limit(packet, queue, self.limit)
    }

    #[inline(always)]
    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.judge(packet, left.bytes(), cx.now)
    }

    fn on_idle(&mut self, _since: Instant) {
        // Linux finds out that nothing waits behind a packet only if it has dropped that packet.
        if matches!(self.clock, Clock::Rfc) || self.behind != Behind::Nothing {
            self.above_until = None;
        }
        self.dropping = false;
        self.behind = Behind::Nothing;
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("count", f64::from(self.count)), ("dropping", f64::from(u8::from(self.dropping)))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::environment;
    use crate::{Color, Ecn, FlowId, Rng};

    fn codel(table: &str) -> Codel {
        Codel::new(serde_json::from_str(table).unwrap(), environment())
    }

    fn waiting(bytes: u16) -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        queue.add(Color::Yellow, bytes);
        queue
    }

    /// Times of the tests begin late enough for packets to have waited.
    const BEGIN: Instant = Instant::from_nanos(1_000_000_000);

    fn at(micros: u64) -> Instant {
        BEGIN + Duration::from_nanos(micros * 1000)
    }

    fn due(codel: &Codel) -> u64 {
        codel.next - BEGIN.as_nanos()
    }

    /// Judges a packet that has waited for so many microseconds, with so many bytes left.
    fn judge(codel: &mut Codel, now: u64, sojourn: u64, left: u16, ecn: Ecn) -> Verdict {
        let packet = Header {
            arrived: Instant::from_nanos(at(now).as_nanos() - sojourn * 1000),
            ecn,
            ..Header::new(FlowId(0), 1500)
        };
        let cx = &mut Context { now: at(now), rng: &mut Rng::stream(1, "aqm") };
        codel.on_departure(&packet, &waiting(left), cx)
    }

    /// Asks for a packet in each of these milliseconds, of which all have waited for 50 ms; those of the
    /// drops, or marks, with the count and the next time after each.
    fn signals(codel: &mut Codel, millis: impl Iterator<Item = u64>, ecn: Ecn) -> Vec<(u64, u32, u64)> {
        let mut found = Vec::new();
        for now in millis {
            loop {
                let verdict = judge(codel, now * 1000, 50_000, 60_000, ecn);
                if verdict != Verdict::Pass {
                    found.push((now, codel.count, due(codel)));
                }
                if !matches!(verdict, Verdict::Drop(_)) {
                    break;
                }
            }
        }
        found
    }

    /// The times of RFC 8289's control law: an interval, then an interval over the square root of the count
    /// each.
    const LAW: [(u64, u32, u64); 11] = [
        (100, 1, 200_000_000),
        (200, 2, 270_710_678),
        (271, 3, 328_445_704),
        (329, 4, 378_445_704),
        (379, 5, 423_167_063),
        (424, 6, 463_991_892),
        (464, 7, 501_788_339),
        (502, 8, 537_143_678),
        (538, 9, 570_477_011),
        (571, 10, 602_099_787),
        (603, 11, 632_250_921),
    ];

    #[test]
    fn drops_come_at_the_times_of_the_control_law() {
        // A packet each millisecond; `next` after a drop is that of the packet behind it.
        let found = signals(&mut codel("{}"), 0..605, Ecn::NotCapable);
        assert_eq!(
            found.iter().map(|&(at, count, _)| (at, count)).collect::<Vec<_>>(),
            LAW.map(|(at, count, _)| (at, count))
        );
        let mut state = codel("{}");
        for (now, count, next) in LAW {
            signals(&mut state, (if now == 100 { 0 } else { now })..=now, Ecn::NotCapable);
            assert_eq!((state.count, due(&state)), (count, next), "{now}");
        }
    }

    #[test]
    fn marks_come_at_the_same_times() {
        let found = signals(&mut codel(r#"{"ecn": true}"#), 0..605, Ecn::Capable0);
        assert_eq!(found, LAW);
        let not_capable = signals(&mut codel(r#"{"ecn": true}"#), 0..605, Ecn::NotCapable);
        assert_eq!(not_capable.len(), LAW.len());
    }

    #[test]
    fn one_transmission_may_drop_several_packets() {
        let mut codel = codel("{}");
        let times = (0..=200).chain([250, 400]);
        let found = signals(&mut codel, times, Ecn::NotCapable);
        let times: Vec<u64> = found.iter().map(|&(at, _, _)| at).collect();
        assert_eq!(times, [100, 200, 400, 400, 400]);
        assert_eq!((codel.count, due(&codel)), (5, 423_167_063));
    }

    #[test]
    fn a_dropping_state_soon_after_another_begins_at_its_rate() {
        for (again, enters, count, next) in [(451, 751, 5, 795_721_359), (2151, 2251, 1, 2_351_000_000)] {
            let mut codel = codel("{}");
            signals(&mut codel, 0..=450, Ecn::NotCapable);
            assert_eq!((codel.count, codel.last_count), (6, 1));
            assert_eq!(judge(&mut codel, 451_000, 100, 60_000, Ecn::NotCapable), Verdict::Pass);
            let begin = if again == 451 { 651 } else { again };
            let found = signals(&mut codel, begin..=enters, Ecn::NotCapable);
            assert_eq!(found, [(enters, count, next)]);
            assert_eq!(codel.last_count, count);
        }
    }

    #[test]
    fn a_sojourn_time_equal_to_the_target_is_too_long_and_one_packet_left_is_enough() {
        let first = |sojourn, left| {
            let mut codel = codel("{}");
            assert_eq!(judge(&mut codel, 0, 0, left, Ecn::NotCapable), Verdict::Pass);
            assert_eq!(judge(&mut codel, 10_000, sojourn, left, Ecn::NotCapable), Verdict::Pass);
            judge(&mut codel, 110_000, sojourn, left, Ecn::NotCapable)
        };
        assert_eq!(first(5000, 1501), Verdict::Drop(Reason::Target));
        assert_eq!(first(4999, 1501), Verdict::Pass);
        assert_eq!(first(5000, 1500), Verdict::Pass);
    }

    #[test]
    fn linux_drops_at_the_times_of_its_integers() {
        let times = |table: &str, ecn| {
            let mut codel = codel(table);
            let mut found = Vec::new();
            for now in 0..=608 {
                loop {
                    let verdict = judge(&mut codel, now * 1000, 50_000, 60_000, ecn);
                    if verdict != Verdict::Pass {
                        found.push(now);
                    }
                    if !matches!(verdict, Verdict::Drop(_)) {
                        break;
                    }
                }
            }
            found
        };
        let expected = [101, 201, 251, 308, 357, 401, 441, 479, 514, 547, 578, 608];
        assert_eq!(times(r#"{"law": "linux"}"#, Ecn::NotCapable), expected);
        assert_eq!(times(r#"{"law": "linux", "ecn": true}"#, Ecn::Capable0), expected);
    }

    #[test]
    fn square_roots_of_linux_are_one_newton_step_each() {
        let mut clock = Clock::Linux { inverse_root: 0 };
        clock.begin_anew();
        let mut of = |count| {
            if count > 1 {
                clock.count_changed(count);
            }
            let Clock::Linux { inverse_root } = clock else { panic!("it is Linux's") };
            inverse_root
        };
        assert_eq!([1, 2, 3, 4, 5, 6].map(&mut of), [65_535, 32_769, 36_864, 31_968, 28_935, 26_481]);
        // An interval over the root: of 97656 ticks, 97654, and 48829 at a count of 2.
        let share = |inverse_root| Clock::Linux { inverse_root }.share(Duration::from_millis(100), 9);
        assert_eq!([65_535, 32_769].map(share), [97_654, 48_829]);
    }

    #[test]
    fn linux_counts_time_in_ticks() {
        // 4999.68 us are 4882 ticks, as many as 5 ms; one nanosecond less is a tick less.
        let first = |sojourn: u64| {
            let mut codel = codel(r#"{"law": "linux"}"#);
            let now = 2_048_000_000;
            let cx = &mut Context { now: Instant::from_nanos(now), rng: &mut Rng::stream(1, "aqm") };
            let header =
                Header { arrived: Instant::from_nanos(now - sojourn), ..Header::new(FlowId(0), 1500) };
            codel.on_departure(&header, &waiting(9000), cx);
            codel.above_until
        };
        assert_eq!(first(4882 * 1024), Some(2_000_000 + 97_656));
        assert_eq!(first(4881 * 1024), None);
    }

    #[test]
    fn linux_remembers_the_time_above_the_target_of_an_empty_queue() {
        // In FQ-CoDel more than a packet may wait in other queues when this one is empty.
        let after = |law: &str| {
            let mut codel = codel(&format!(r#"{{"law": "{law}"}}"#));
            judge(&mut codel, 0, 50_000, 60_000, Ecn::NotCapable);
            codel.on_idle(at(1000));
            judge(&mut codel, 150_000, 50_000, 60_000, Ecn::NotCapable)
        };
        assert_eq!((after("linux"), after("rfc")), (Verdict::Drop(Reason::Target), Verdict::Pass));
        // Not if a drop has emptied it.
        let mut codel = codel(r#"{"law": "linux"}"#);
        signals(&mut codel, 0..=100, Ecn::NotCapable);
        assert_eq!(
            judge(&mut codel, 101_000, 50_000, 60_000, Ecn::NotCapable),
            Verdict::Drop(Reason::Target)
        );
        codel.on_idle(at(101_000));
        assert_eq!(judge(&mut codel, 150_000, 50_000, 60_000, Ecn::NotCapable), Verdict::Pass);
    }

    #[test]
    fn an_empty_queue_ends_the_dropping_state() {
        let mut codel = codel("{}");
        signals(&mut codel, 0..=200, Ecn::NotCapable);
        assert_eq!(codel.gauges(), [("count", 2.0), ("dropping", 1.0)]);
        codel.on_idle(at(201_000));
        assert_eq!(codel.gauges(), [("count", 2.0), ("dropping", 0.0)]);
        assert_eq!(signals(&mut codel, 202..302, Ecn::NotCapable), []);
    }

    #[test]
    fn a_queue_that_holds_no_more_than_one_packet_of_the_mtu_is_noticed() {
        let idle = |table: &str| {
            let params = serde_json::from_str(table).unwrap();
            Codel::keys_without_effect(&params, &(40..=1000))
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert_eq!(idle("{}"), [""; 0]);
        assert_eq!(idle(r#"{"limit": "1p"}"#), ["mtu"]);
        assert_eq!(idle(r#"{"limit": "2p"}"#), [""; 0]);
        assert_eq!(idle(r#"{"limit": "1500B"}"#), ["mtu"]);
        assert_eq!(idle(r#"{"limit": "1501B"}"#), [""; 0]);
    }

    #[test]
    fn a_full_queue_drops_at_its_tail() {
        let mut codel = codel(r#"{"limit": "4500B"}"#);
        let mut arrive = |bytes| {
            let cx = &mut Context { now: at(0), rng: &mut Rng::stream(1, "aqm") };
            codel.on_arrival(&Header::new(FlowId(0), 1500), &waiting(bytes), cx)
        };
        assert_eq!((arrive(3000), arrive(3001)), (Verdict::Pass, Verdict::Drop(Reason::Overflow)));
    }
}

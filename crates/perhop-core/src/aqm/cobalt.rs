//! COBALT, "`CoDel` and BLUE Alternate": the AQM of CAKE (Høiland-Jørgensen, Täht & Morton, "Piece of CAKE",
//! 2018), as in Linux's `sch_cake`.
//!
//! A [`CoDel`](super::Codel) without a waiting phase of its own: the first packet is due an interval after
//! sojourn times exceed the target, and the count of signals is never reset, but falls at the same pace as it
//! rose while nothing is due. Beside it, a [BLUE](super::Blue) drops by chance at the head of the queue: for
//! flows that do not respond to `CoDel`. Its freeze time is the target.
//!
//! ## Deviations
//! - CAKE approximates square roots in 32 bits; here they are exact.
//! - Where there is no room, the packet that comes is dropped. CAKE drops from the head of its longest queue.
//! - CAKE counts flows for its rule for slow links; here there is one queue, and `mtu` alone counts. Without
//!   `mtu` there is no such rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blue::{Stepped, check_increment};
use super::codel::control_law;
use super::{Aqm, AqmBlock, Verdict, room};
use crate::units::defaults::{millis, probability};
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, Bytes, Context, DelayTarget, Depth, Duration, Environment, Header, Instant, Occupancy,
    Origin, Probability, PseudoCode, Reason,
};

/// Parameters of [`Cobalt`].
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CobaltParams {
    /// The sojourn time that a standing queue may have.
    #[serde(default = "millis::<5>")]
    pub target: Duration,
    /// How long the sojourn time must be above the target before a packet is dropped: about the largest usual
    /// round-trip time.
    #[serde(default = "millis::<100>")]
    pub interval: Duration,
    /// On slow links: a sojourn time of up to four transmission times of a packet of this size is not above
    /// the target. Default: no such rule.
    pub mtu: Option<Bytes>,
    /// By how much a packet for which there is no room raises BLUE's drop probability.
    #[serde(default = "probability::<1, 256>")]
    pub increment: Probability,
    /// By how much an idle link lowers it.
    #[serde(default = "probability::<1, 4096>")]
    pub decrement: Probability,
    /// Mark ECN-capable packets instead of dropping them at the times of the control law. BLUE drops them all
    /// the same. TCP flows are capable with the key `ecn`, on real packets also with
    /// `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
    #[serde(default)]
    pub ecn: bool,
    /// Queue limit, in packets (`200p`), in bytes (`300kB`), or as a time (`50ms`) at the rate of the link.
    /// Default: what the link sends in 250 ms, in packets of 1500 bytes, and at least `1000p`.
    #[schemars(with = "Option<crate::units::Limit>")]
    pub limit: Option<Depth>,
}

/// So many transmission times of an MTU are a short sojourn time on any link.
const SHORT: u64 = 4;

/// `CoDel` and BLUE together.
#[derive(Clone, Debug)]
pub struct Cobalt {
    params: CobaltParams,
    limit: Depth,
    /// The sojourn time up to which nothing is due.
    target: Duration,
    dropping: bool,
    /// When the next packet is due.
    next: Instant,
    count: u32,
    blue: Stepped,
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "for each packet that leaves:",
        "    CoDel: if the sojourn time stays above target and the next drop is due: drop or mark (target)",
        "    BLUE: if random number < p: drop (controller)",
        "p rises when the queue overflows, and falls when it is empty",
        "for each packet that arrives: if the queue has no room: drop (overflow)",
    ],
    acts: &[(Reason::Target, &[1]), (Reason::Controller, &[2, 3]), (Reason::Overflow, &[4])],
};

impl Block for Cobalt {
    type Params = CobaltParams;
    const NAME: &'static str = "cobalt";
    const SUMMARY: &'static str =
        "CoDel whose count falls slowly, and BLUE for flows that do not respond to it";
    const ORIGIN: Origin =
        Origin::published(2018, "Høiland-Jørgensen, Täht & Morton 2018, section III; Linux, sch_cake")
            .in_linux("cake", "4.19");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);

    fn check(params: &CobaltParams) -> Result<(), UnitError> {
        let CobaltParams { target, interval, .. } = params;
        require(!interval.is_zero(), "interval", "an interval is longer than 0s, such as 100ms")?;
        let text = format!(
            "a target is at most `interval`, which is {interval}, not {target}: write 5 to 10 % of the interval, such as 5ms of \
             100ms"
        );
        require(target <= interval, "target", text)?;
        check_increment(params.increment)
    }
}

impl AqmBlock for Cobalt {
    const PRECOMPUTABLE: bool = false;

    fn limit(params: &CobaltParams, rate: Bitrate) -> Option<Depth> {
        Some(room::limit(params.limit, rate))
    }

    fn delay_targets(params: &CobaltParams) -> Vec<DelayTarget> {
        let spares_short = params.mtu.is_some();
        vec![DelayTarget { spares_short, ..DelayTarget::at("target", params.target, Duration::ZERO) }]
    }

    fn new(params: CobaltParams, environment: Environment) -> Self {
        let short =
            params.mtu.map_or(Duration::ZERO, |mtu| environment.rate.time_of(mtu).saturating_mul(SHORT));
        Self {
            target: params.target.max(short),
            limit: room::limit(params.limit, environment.rate),
            params,
            dropping: false,
            next: Instant::ZERO,
            count: 0,
            blue: Stepped::ZERO,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        (self.dropping, self.next, self.count) = (before.dropping, before.next, before.count);
        self.blue = before.blue;
        Ok(())
    }
}

impl Cobalt {
    /// The time of the next signal after one at `at`.
    fn after(&self, at: Instant) -> Instant {
        control_law(at, self.params.interval, self.count.max(1))
    }

    fn is_due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.next
    }

    /// A packet whose sojourn time is above the target, or not.
    fn note(&mut self, above: bool, now: Instant) {
        if above && !self.dropping {
            self.next = self.after(now);
        }
        if above {
            self.count = self.count.max(1);
        }
        self.dropping = above;
    }

    /// Counts a signal, which is due.
    fn count_signal(&mut self) {
        self.count = self.count.saturating_add(1);
        self.next = self.after(self.next);
    }

    /// Counts a signal that is due, but not needed.
    fn count_down(&mut self) {
        self.count -= 1;
        self.next = self.after(self.next);
    }

    /// What a signal of the control law, if there is one, and BLUE's chance make of a packet.
    fn verdict(&self, packet: &Header, signals: bool, cx: &mut Context<'_>) -> Verdict {
        let marks = signals && self.params.ecn && packet.ecn.is_capable();
        if signals && !marks {
            Verdict::Drop(Reason::Target)
        } else if cx.rng.chance(self.blue.get()) {
            Verdict::Drop(Reason::Controller)
        } else if marks {
            Verdict::Notify(Reason::Target)
        } else {
            Verdict::Pass
        }
    }

    fn overflow(&mut self, now: Instant) {
        self.blue.raise(self.params.increment, self.params.target, now);
        (self.dropping, self.next, self.count) = (true, now, self.count.max(1));
    }
}

impl Aqm for Cobalt {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let verdict = Verdict::by_limit(packet, queue, self.limit);
        if verdict != Verdict::Pass {
            self.overflow(cx.now);
        }
        verdict
    }

    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let now = cx.now;
        let mut late = now > self.next; // As found: to enter the dropping state changes `next`, but not this.
        let due = self.is_due(now);
        self.note(now.since(packet.arrived) > self.target, now);
        let signals = due && self.dropping;
        if signals {
            self.count_signal();
            late = now > self.next;
        } else if due {
            while self.is_due(now) {
                self.count_down();
            }
            late = now > self.next;
        }
        let verdict = self.verdict(packet, signals, cx);
        if self.count == 0 {
            self.next = now + self.params.interval;
        } else if late && verdict.admits(packet) {
            self.next = now;
        }
        // `cake_dequeue`: the last packet may be marked, but is not dropped.
        if left.is_empty() && !verdict.admits(packet) { Verdict::Pass } else { verdict }
    }

    fn on_idle(&mut self, since: Instant) {
        self.blue.lower(self.params.decrement, self.params.target, since);
        self.dropping = false;
        if self.is_due(since) {
            self.count_down();
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("count", f64::from(self.count)),
            ("dropping", f64::from(u8::from(self.dropping))),
            ("probability", self.blue.get()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::environment;
    use crate::{Color, Ecn, FlowId, Rng};

    fn cobalt(table: &str) -> Cobalt {
        Cobalt::new(serde_json::from_str(table).unwrap(), environment())
    }

    /// Times of the tests begin late enough for packets to have waited, at a multiple of all intervals.
    const BEGIN: Instant = Instant::from_nanos(1_000_000_000_000);

    fn at(millis: u64) -> Instant {
        BEGIN + Duration::from_millis(millis)
    }

    /// A state whose clocks begin with the test's.
    fn begun(table: &str) -> Cobalt {
        let mut cobalt = cobalt(table);
        (cobalt.next, cobalt.blue) = (BEGIN, Stepped::since(BEGIN));
        cobalt
    }

    fn judge(cobalt: &mut Cobalt, now: u64, waited: u64, ecn: Ecn) -> Verdict {
        judge_before(cobalt, now, waited, ecn, 1)
    }

    /// Judges a packet with so many behind it.
    fn judge_before(cobalt: &mut Cobalt, now: u64, waited: u64, ecn: Ecn, behind: u32) -> Verdict {
        let arrived = Instant::from_nanos(at(now).as_nanos() - waited * 1_000_000);
        let packet = Header { arrived, ecn, ..Header::new(FlowId(0), 1500) };
        let cx = &mut Context { now: at(now), rng: &mut Rng::stream(1, "aqm") };
        cobalt.on_departure(&packet, &queue_of(behind), cx)
    }

    fn queue_of(packets: u32) -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        (0..packets).for_each(|_| queue.add(Color::Yellow, 1000));
        queue
    }

    fn arrive(cobalt: &mut Cobalt, now: u64, waiting: u32) -> Verdict {
        let queue = queue_of(waiting);
        let cx = &mut Context { now: at(now), rng: &mut Rng::stream(1, "aqm") };
        cobalt.on_arrival(&Header::new(FlowId(0), 1000), &queue, cx)
    }

    fn due(cobalt: &Cobalt) -> u64 {
        cobalt.next.since(BEGIN).as_nanos()
    }

    /// Asks for a packet at each of these times, with these sojourn times, in ms: the signals, with the count
    /// and the next time after.
    fn signals(
        cobalt: &mut Cobalt,
        heads: impl Iterator<Item = (u64, u64)>,
        ecn: Ecn,
    ) -> Vec<(u64, u32, u64)> {
        let mut found = Vec::new();
        for (now, waited) in heads {
            loop {
                let verdict = judge(cobalt, now, waited, ecn);
                if verdict != Verdict::Pass {
                    found.push((now, cobalt.count, due(cobalt)));
                }
                if !matches!(verdict, Verdict::Drop(_)) {
                    break;
                }
            }
        }
        found
    }

    const STANDING: [(u64, u32, u64); 7] = [
        (100, 2, 170_710_678),
        (171, 3, 228_445_704),
        (229, 4, 278_445_704),
        (279, 5, 323_167_063),
        (324, 6, 363_991_892),
        (364, 7, 401_788_339),
        (402, 8, 437_143_678),
    ];

    #[test]
    fn drops_come_at_the_times_of_the_control_law_without_a_waiting_phase() {
        let found = signals(&mut begun("{}"), (0..=420).map(|now| (now, 50)), Ecn::NotCapable);
        assert_eq!(found, STANDING);
    }

    #[test]
    fn marks_come_at_the_same_times_up_to_a_lag_that_they_forgive() {
        // After a mark that comes late, the next is an interval over the root later than the mark, not than
        // when it was due.
        let found = signals(&mut begun(r#"{"ecn": true}"#), (0..=420).map(|now| (now, 50)), Ecn::Capable0);
        assert_eq!(found[..2], STANDING[..2]);
        assert!(found.iter().all(|&(_, count, _)| count >= 2));
        let dropped =
            signals(&mut begun(r#"{"ecn": true}"#), (0..=420).map(|now| (now, 50)), Ecn::NotCapable);
        assert_eq!(dropped, STANDING);
    }

    #[test]
    fn after_a_pause_the_first_signal_comes_at_once() {
        let heads = [(0, 1), (150, 50), (151, 50)];
        let found = signals(&mut begun("{}"), heads.into_iter(), Ecn::NotCapable);
        assert_eq!(found, [(151, 2, 220_710_678)]);
    }

    #[test]
    fn the_count_falls_while_nothing_is_due() {
        let mut cobalt = begun("{}");
        signals(&mut cobalt, (0..=230).map(|now| (now, 50)), Ecn::NotCapable);
        assert_eq!((cobalt.count, due(&cobalt)), (4, 278_445_704));
        // Due at 278.4, 100/sqrt(3) later at 336.2, and 100/sqrt(2) later at 406.9 ms: three steps down by
        // 407 ms.
        assert_eq!(judge(&mut cobalt, 278, 1, Ecn::NotCapable), Verdict::Pass);
        assert_eq!(cobalt.count, 4);
        assert_eq!(judge(&mut cobalt, 407, 1, Ecn::NotCapable), Verdict::Pass);
        assert_eq!((cobalt.count, due(&cobalt)), (1, 506_891_408));
        judge(&mut cobalt, 507, 1, Ecn::NotCapable);
        assert_eq!((cobalt.count, due(&cobalt)), (0, 607_000_000));
    }

    #[test]
    fn a_sojourn_time_equal_to_the_target_is_short() {
        let drops = |table, waited| {
            signals(&mut begun(table), (0..=110).map(|now| (now, waited)), Ecn::NotCapable).len()
        };
        assert_eq!((drops("{}", 5), drops("{}", 6)), (0, 1));
        // Four packets of 1500 bytes take 6 ms.
        assert_eq!((drops(r#"{"mtu": "1500B"}"#, 6), drops(r#"{"mtu": "1500B"}"#, 7)), (0, 1));
        assert_eq!((drops(r#"{"mtu": "100B"}"#, 5), drops(r#"{"mtu": "100B"}"#, 6)), (0, 1));
    }

    #[test]
    fn overflows_and_idle_times_move_the_drop_probability() {
        let mut cobalt = begun(r#"{"limit": "9p"}"#);
        let mut hear = |now: u64, full: bool| {
            if full {
                assert_eq!(arrive(&mut cobalt, now, 9), Verdict::Drop(Reason::Overflow));
            } else {
                cobalt.on_idle(at(now));
            }
            cobalt.blue.get() * 4096.0
        };
        let events = [(6, true), (8, true), (12, true), (20, false), (24, false), (30, false)];
        assert_eq!(events.map(|(now, full)| hear(now, full)), [16.0, 16.0, 32.0, 31.0, 31.0, 30.0]);
    }

    #[test]
    fn an_overflow_begins_to_drop_and_an_idle_link_ends_it() {
        let mut cobalt = begun(r#"{"limit": "9p"}"#);
        arrive(&mut cobalt, 1, 9);
        assert_eq!(cobalt.gauges()[..2], [("count", 1.0), ("dropping", 1.0)]);
        assert_eq!(judge(&mut cobalt, 1, 50, Ecn::NotCapable), Verdict::Drop(Reason::Target));
        cobalt.on_idle(at(50));
        assert_eq!(cobalt.gauges()[..2], [("count", 2.0), ("dropping", 0.0)], "nothing is due");
        cobalt.on_idle(at(500));
        assert_eq!(cobalt.count, 1, "one step down");
    }

    #[test]
    fn the_last_packet_of_a_queue_is_marked_and_never_dropped() {
        let verdict = |table, ecn, behind| {
            let mut cobalt = begun(table);
            cobalt.overflow(at(10));
            judge_before(&mut cobalt, 10, 50, ecn, behind)
        };
        let (target, blue) = (Reason::Target, r#"{"increment": 1}"#);
        assert_eq!(verdict("{}", Ecn::NotCapable, 1), Verdict::Drop(target));
        assert_eq!(verdict("{}", Ecn::NotCapable, 0), Verdict::Pass);
        assert_eq!(verdict(r#"{"ecn": true}"#, Ecn::Capable0, 0), Verdict::Notify(target));
        assert_eq!(verdict(blue, Ecn::Capable0, 0), Verdict::Pass);
    }

    #[test]
    fn blue_drops_who_is_capable_of_ecn_too() {
        let mut cobalt = begun(r#"{"ecn": true, "increment": 1}"#);
        cobalt.overflow(at(10));
        assert_eq!(judge(&mut cobalt, 10, 1, Ecn::Capable0), Verdict::Drop(Reason::Controller));
    }
}

//! PIE, Proportional Integral controller Enhanced: RFC 8033, sections 4 and 5 and the pseudocode of its
//! appendices A and B; DOCSIS-PIE: RFC 8034, appendix A; Linux's `pie`.
//!
//! Every update interval, a controller changes the drop probability by how far the queueing delay is from the
//! target and by how much the delay has changed. Packets are dropped, or marked, with this probability as
//! they arrive. The queueing delay is the sojourn time of the last packet that was transmitted, and zero once
//! the queue is empty (RFC 8033, section 5.2, with timestamps); DOCSIS-PIE computes it from the bytes that
//! wait and the rate of the link.
//!
//! The AQM has no timer. The delay is constant between two calls, so each call first makes up for the updates
//! since the last one.
//!
//! ## Deviations
//! - `law = "linux"` follows Linux's `pie` (`net/sched/sch_pie.c`, with timestamps; module `linux`). It
//!   updates first after 0.5 s. Each idle update takes 1/64 off the drop probability, where the RFC takes
//!   1/50, and leaves it alone while packets wait; above 250 ms it adds 0.02
//!   (`linux_updates_by_its_own_rules`). Little congestion is judged by the current delay, and a burst is
//!   allowed from the start of a run and whenever delays are small and the probability is zero
//!   (`linux_allows_a_burst_while_packets_leave`). A packet is marked at a probability of `mark-below`, too
//!   (`linux_marks_up_to_a_tenth`). The probability may be above 1, up to 256, so that drops go on long after
//!   an overload (`the_probability_of_linux_may_be_above_1`). Linux's integers of 56 bits agree with the real
//!   numbers here to 1e-8; its delays are in units of 64 ns, and `update` in jiffies.
//! - RFC 8033 leaves the time of the first update open: here updates come at the multiples of `update` from
//!   the start of the run (`updates_come_at_the_multiples_of_the_interval`).
//! - If no packet arrives or departs for more than 1024 updates (15 s by default), the updates beyond are
//!   left out, unless they would change nothing (`updates_without_end_are_cut_short`).
//! - Appendix B of RFC 8033 is inactive until the queue is a third full, to save work, and allows a burst
//!   only when it becomes active. Here it is always active, as in Linux, and a burst is allowed as in section
//!   4.4 and appendix A.
//! - RFC 8034 computes the delay from two rates, those of a token bucket and of its peak. Here both are the
//!   rate of the link.
//! - The pseudocode of RFC 8034 never marks; with `ecn` its variant marks as RFC 8033 does.

mod linux;

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::check_mean_packet;
use super::{Aqm, AqmBlock, Verdict, check_gains, check_target, room};
use crate::units::defaults::probability;
use crate::units::{AboveZero, UnitError, keeps, require};
use crate::{
    Bitrate, Block, Bytes, Context, DelayTarget, Depth, Duration, Environment, Header, Instant,
    KeysWithoutEffect, Occupancy, Origin, Probability, PseudoCode, Reason, Rng,
};

/// Parameters of [`Pie`].
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PieParams {
    /// Which RFC, and which of its algorithms, or Linux. The defaults of several other parameters depend on
    /// it.
    #[serde(default)]
    pub law: PieLaw,
    /// The queueing delay that the controller aims at (`QDELAY_REF`, `LATENCY_TARGET`). Default: 15ms; with
    /// `docsis` 10ms.
    pub target: Option<Duration>,
    /// The time between two updates of the drop probability, 1ms to 3600s (`T_UPDATE`, `INTERVAL`). Default:
    /// 15ms; with `docsis` 16ms.
    pub update: Option<Duration>,
    /// A burst after a time without congestion is not dropped for this long (`MAX_BURST`). Default: 150ms;
    /// with `docsis` 142ms.
    pub max_burst: Option<Duration>,
    /// How much the drop probability changes in each update for each second by which the delay is above the
    /// target (alpha, A). Default: 0.125; with `docsis` 0.25.
    pub alpha: Option<AboveZero>,
    /// How much it changes for each second by which the delay has grown since the last update (beta, B).
    /// Default: 1.25; with `docsis` 2.5.
    pub beta: Option<AboveZero>,
    /// No packet is dropped while the queue holds no more than two packets of this size (`MEAN_PKTSIZE`),
    /// with `linux` while it holds less. With `docsis` the drop probability is that of a packet of this size,
    /// and in proportion for others. Default: 1000B; with `docsis` 1024B, with `linux` 1500B.
    pub mean_packet: Option<Bytes>,
    /// Mark ECN-capable packets instead of dropping them while the drop probability is below `mark-below`.
    /// Where there is no room, they are dropped all the same. TCP flows are capable with the key `ecn`, on
    /// real packets also with `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`: from this drop probability on, with `linux` above it, ECN-capable packets are dropped, too
    /// (`MARK_ECNTH`).
    #[serde(default = "probability::<1, 10>")]
    pub mark_below: Probability,
    /// Queue limit, in packets (`200p`), in bytes (`300kB`), or as a time (`50ms`) at the rate of the link.
    /// Default: what the link sends in 250 ms, in packets of 1500 bytes, and at least `1000p`; with `linux`
    /// `1000p`.
    #[schemars(with = "Option<crate::units::Limit>")]
    pub limit: Option<Depth>,
}

/// The algorithms of PIE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PieLaw {
    /// RFC 8033, appendix B: drops are spread out, and a high drop probability rises by at most 0.02 an
    /// update.
    #[default]
    Enhanced,
    /// RFC 8033, appendix A: each packet is dropped by chance, whatever happened to those before it.
    Basic,
    /// RFC 8034, DOCSIS-PIE: as `enhanced`, with a drop probability in proportion to a packet's size, and
    /// inactive until the queue is a third full.
    Docsis,
    /// Linux's `pie`, for comparisons with it on real packets: much as `enhanced`, with other rules for
    /// bursts, for a high delay and for an idle queue.
    Linux,
}

impl PieParams {
    fn room(&self, rate: Bitrate) -> Depth {
        if self.law == PieLaw::Linux { room::least(self.limit) } else { room::limit(self.limit, rate) }
    }
}

/// The parameters with their defaults filled in.
#[derive(Clone, Debug)]
struct Settings {
    law: PieLaw,
    target: Duration,
    half_target: Duration,
    update: Duration,
    max_burst: Duration,
    alpha: f64,
    beta: f64,
    mean_packet: u64,
    mark_below: Option<f64>,
}

impl Settings {
    fn of(params: &PieParams) -> Self {
        let (target, update, max_burst, alpha, beta, mean_packet) = match params.law {
            PieLaw::Enhanced | PieLaw::Basic => (15, 15, 150, 0.125, 1.25, 1000),
            PieLaw::Docsis => (10, 16, 142, 0.25, 2.5, 1024),
            PieLaw::Linux => (15, 15, 150, 0.125, 1.25, 1500),
        };
        let span = |own: Option<Duration>, millis| own.unwrap_or(Duration::from_millis(millis));
        let target = span(params.target, target);
        Self {
            law: params.law,
            target,
            half_target: Duration::from_nanos(target.as_nanos() / 2),
            update: span(params.update, update),
            max_burst: span(params.max_burst, max_burst),
            alpha: params.alpha.map_or(alpha, AboveZero::get),
            beta: params.beta.map_or(beta, AboveZero::get),
            mean_packet: params.mean_packet.map_or(mean_packet, Bytes::get),
            mark_below: params.ecn.then_some(params.mark_below.get()),
        }
    }

    fn first_update(&self) -> Instant {
        Instant::ZERO + if self.law == PieLaw::Linux { linux::FIRST_UPDATE } else { self.update }
    }
}

/// Changes of the drop probability are divided by the second number while it is below the first (RFC 8033,
/// section 5.1).
const SCALES: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// The scales of RFC 8034 for higher probabilities, which may be above 1.
const HIGH_SCALES: [(f64, f64); 3] = [(1.0, 0.5), (10.0, 0.125), (f64::INFINITY, 0.03125)];

/// What remains of the drop probability after each update without congestion.
const DECAY: f64 = 0.98;

/// From this drop probability on, it rises by at most so much an update.
const HIGH: f64 = 0.1;
const MOST_STEP: f64 = 0.02;

/// Below this drop probability, and half of the target at the last update, nothing is dropped.
const LITTLE: f64 = 0.2;

/// A packet is admitted while the drop probabilities since the last drop add up to less than the first
/// number, and dropped once they add up to the second (`PROB_LOW`, `PROB_HIGH`).
const SPREAD: (f64, f64) = (0.85, 8.5);

/// RFC 8034: the drop probability decays while delays are below the first, and rises by `MOST_STEP` more
/// while they are above the second (`LATENCY_LOW`, `LATENCY_HIGH`).
const LATENCY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// RFC 8034: the size of the smallest packet, which bounds the drop probability (`MIN_PKTSIZE`).
const MIN_PACKET: f64 = 64.0;

/// RFC 8034: after so long without congestion the AQM is inactive again (`BURST_RESET_TIMEOUT`).
const RESET_AFTER: Duration = Duration::from_secs(1);

/// The shortest `update`: updates are made up for one by one.
const SHORTEST_UPDATE: Duration = Duration::from_millis(1);
/// Longer ones are a slip of the keyboard.
const LONGEST_UPDATE: Duration = Duration::from_secs(3600);

/// At most so many updates are made up for at once.
const MOST_UPDATES: u64 = 1024;

/// Controls the queueing delay by drops on arrival.
#[derive(Clone, Debug)]
pub struct Pie {
    settings: Settings,
    limit: Depth,
    rate: Bitrate,
    controller: Controller,
    /// The sojourn time of the packet that was transmitted last, if others stayed behind it.
    sojourn: Duration,
    /// Bytes that have waited since the last call.
    backlog: Bytes,
    /// The drop probabilities of the packets since the last drop, added up (`accu_prob_`).
    accumulated: f64,
    /// Updates since the start of the run, and when the next one is due.
    updates: u64,
    next_update: Instant,
}

/// What updates change.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Controller {
    /// With which packets are dropped (`drop_prob_`). In RFC 8034 that of a mean packet, which may be
    /// above 1.
    probability: f64,
    /// The queueing delay at the last update (`qdelay_old_`).
    delay_before: Duration,
    /// The rest of the time in which a burst is not dropped (`burst_allowance_`).
    burst: Duration,
    phase: Phase,
    /// In Linux, when a packet last left (`dq_tstamp`).
    last_departure: Option<Instant>,
}

/// The states of RFC 8034. By RFC 8033 the AQM is always active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is dropped until the queue is a third full.
    Inactive,
    /// A burst is allowed after the next drop. For so long there has been no congestion.
    Quiescent(Duration),
    /// There has been a drop since the last time without congestion.
    Active,
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "at each update:",
        "    p ← p + alpha · (delay − target) + beta · (delay − delay at the last update), scaled for small p",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    if a burst is allowed, or delay and p are small, or little waits: pass",
        "    if random number < p: drop, or mark if p is small and the packet is capable (controller)",
    ],
    acts: &[(Reason::Controller, &[1, 5]), (Reason::Overflow, &[3])],
};

impl Block for Pie {
    type Params = PieParams;
    const NAME: &'static str = "pie";
    const SUMMARY: &'static str = "drops at random so that a controller keeps the queueing delay at a target";
    const ORIGIN: Origin =
        Origin::published(2013, "RFC 8033, appendices A and B; RFC 8034, appendix A").in_linux("pie", "3.14");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);

    fn check(params: &PieParams) -> Result<(), UnitError> {
        let settings = Settings::of(params);
        let text = "an update interval is at least 1ms, such as 15ms";
        require(settings.update >= SHORTEST_UPDATE, "update", text)?;
        let text = "an update interval is at most 3600s, such as 15ms";
        require(settings.update <= LONGEST_UPDATE, "update", text)?;
        check_mean_packet(Bytes::new(settings.mean_packet))?;
        check_target(settings.target, "15ms")?;
        check_gains(params.alpha, params.beta)
    }

    fn keys_without_effect(params: &PieParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let spared = Bytes::new(Settings::of(params).mean_packet.saturating_mul(2));
        let most = match room::least(params.limit) {
            Depth::Packets(packets) => packets.saturating_sub(1).saturating_mul(*sizes.end()),
            Depth::Bytes(bytes) => bytes.saturating_sub(*sizes.start()),
        };
        let no_marks = (!params.ecn && params.mark_below != probability::<1, 10>()).then(|| {
            ("mark-below", "packets are marked only with `ecn = true`; without it this has no effect".into())
        });
        let (is_idle, less) = match params.law {
            PieLaw::Linux => (most < spared.get(), "less"),
            _ => (most <= spared.get(), "no more"),
        };
        let no_drops = is_idle.then(|| {
            let text = format!(
                "a packet that the queue has room for finds at most {} in it, and with {less} than two mean packets, {spared}, \
                 none is dropped by chance; lower `mean-packet`, or raise `limit`",
                Bytes::new(most)
            );
            ("mean-packet", text)
        });
        no_marks.into_iter().chain(no_drops).collect()
    }
}

impl AqmBlock for Pie {
    const PRECOMPUTABLE: bool = false;

    fn limit(params: &PieParams, rate: Bitrate) -> Option<Depth> {
        Some(params.room(rate))
    }

    fn delay_targets(params: &PieParams) -> Vec<DelayTarget> {
        let Settings { target, half_target, beta, .. } = Settings::of(params);
        // Delays below half of the target raise the drop probability by no more than this.
        let most = beta * half_target.as_secs_f64();
        let least_acting_delay = if most < LITTLE { half_target } else { Duration::ZERO };
        vec![DelayTarget::at("target", target, least_acting_delay)]
    }

    fn new(params: PieParams, environment: Environment) -> Self {
        let settings = Settings::of(&params);
        let phase = if settings.law == PieLaw::Docsis { Phase::Inactive } else { Phase::Active };
        let burst = if settings.law == PieLaw::Linux { settings.max_burst } else { Duration::ZERO };
        Self {
            limit: params.room(environment.rate),
            rate: environment.rate,
            controller: Controller {
                probability: 0.0,
                delay_before: Duration::ZERO,
                burst,
                phase,
                last_departure: None,
            },
            sojourn: Duration::ZERO,
            backlog: Bytes::new(0),
            accumulated: 0.0,
            updates: 0,
            next_update: settings.first_update(),
            settings,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keeps("law", self.settings.law == before.settings.law)?;
        let text = "its updates are counted from the start of the run; start a run with it";
        require(self.settings.update == before.settings.update, "update", text)?;
        self.controller = before.controller;
        (self.sojourn, self.backlog, self.accumulated) = (before.sojourn, before.backlog, before.accumulated);
        (self.updates, self.next_update) = (before.updates, before.next_update);
        Ok(())
    }
}

impl Pie {
    /// The queueing delay, which has been constant since the last call.
    fn delay(&self) -> Duration {
        match self.settings.law {
            PieLaw::Enhanced | PieLaw::Basic | PieLaw::Linux => self.sojourn,
            PieLaw::Docsis => self.rate.time_of(self.backlog),
        }
    }

    /// Makes up for the updates that were due by `now`.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        if self.next_update <= now {
            self.make_up(now);
        }
    }

    #[cold]
    fn make_up(&mut self, now: Instant) {
        let (interval, delay, first) = (self.settings.update, self.delay(), self.settings.first_update());
        let due = now.since(first).as_nanos() / interval.as_nanos() + 1;
        for _ in 0..due.saturating_sub(self.updates).min(MOST_UPDATES) {
            let before = self.controller;
            self.update(delay);
            if self.controller == before {
                break; // Neither would the updates that are left change anything.
            }
        }
        self.updates = due;
        self.next_update = first + interval.saturating_mul(due);
    }

    fn update(&mut self, delay: Duration) {
        if self.settings.law != PieLaw::Linux {
            self.controller.update(&self.settings, delay);
        } else if self.controller.update_as_linux(&self.settings, delay, self.backlog.get() > 0) {
            self.controller.begin_anew(&self.settings);
            self.accumulated = 0.0;
        }
    }

    /// Whether this packet, for which there is room, is to be dropped or marked (`drop_early`).
    fn is_hit(&mut self, packet: &Header, queue: &Occupancy, rng: &mut Rng) -> bool {
        let probability = self.controller.probability;
        match self.settings.law {
            PieLaw::Basic => !self.allows_burst() && !self.spares(queue) && rng.chance(probability),
            // In appendix B's order: where a burst is allowed, packets count all the same.
            PieLaw::Enhanced => !self.spares(queue) && self.is_due(probability, rng) && !self.allows_burst(),
            PieLaw::Docsis => self.is_hit_by_docsis(packet, queue, rng),
            PieLaw::Linux => self.is_hit_by_linux(queue, rng),
        }
    }

    fn allows_burst(&self) -> bool {
        !self.controller.burst.is_zero()
    }

    /// With little congestion, or a short queue, nothing is dropped.
    fn spares(&self, queue: &Occupancy) -> bool {
        let Controller { probability, delay_before, .. } = self.controller;
        delay_before < self.settings.half_target && probability < LITTLE
            || queue.bytes() <= self.settings.mean_packet.saturating_mul(2)
    }

    fn is_hit_by_docsis(&mut self, packet: &Header, queue: &Occupancy, rng: &mut Rng) -> bool {
        if self.allows_burst() {
            return false;
        }
        self.count(0.0); // While it is inactive, too, a drop probability of 0 resets the sum.
        if self.controller.phase == Phase::Inactive {
            if !is_third_full(queue, self.limit) {
                return false;
            }
            self.controller.phase = Phase::Quiescent(Duration::ZERO);
        }
        let size = f64::from(packet.size) / self.settings.mean_packet as f64;
        let probability = (self.controller.probability * size).min(SPREAD.0);
        if self.spares(queue) {
            self.count(probability);
            return false;
        }
        let hit = self.is_due(probability, rng);
        if hit && self.controller.phase != Phase::Active {
            (self.controller.phase, self.controller.burst) = (Phase::Active, self.settings.max_burst);
        }
        hit
    }

    /// Decides by chance, with drops neither too close to one another nor too far apart.
    fn is_due(&mut self, probability: f64, rng: &mut Rng) -> bool {
        self.count(probability);
        let due = rng.chance(self.spread(probability));
        if due {
            self.accumulated = 0.0;
        }
        due
    }

    fn count(&mut self, probability: f64) {
        if self.controller.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += probability;
    }

    /// The probability with which the packet counted last is dropped.
    fn spread(&self, probability: f64) -> f64 {
        let (least, most) = SPREAD;
        if self.accumulated < least {
            0.0
        } else if self.accumulated >= most {
            1.0
        } else {
            probability
        }
    }
}

fn is_third_full(queue: &Occupancy, limit: Depth) -> bool {
    match limit {
        Depth::Packets(packets) => queue.packets().saturating_mul(3) >= packets,
        Depth::Bytes(bytes) => queue.bytes().saturating_mul(3) >= bytes,
    }
}

impl Controller {
    /// One update of the drop probability, at this queueing delay (RFC 8033, section 4.2; RFC 8034,
    /// `calculate_drop_prob`).
    fn update(&mut self, settings: &Settings, delay: Duration) {
        let docsis = settings.law == PieLaw::Docsis;
        if docsis && !self.burst.is_zero() {
            self.probability = 0.0;
        } else {
            self.move_probability(settings, delay);
        }
        self.burst = self.burst - settings.update;
        if docsis {
            self.settle_phase(settings, delay);
        }
        self.delay_before = delay;
    }

    fn move_probability(&mut self, settings: &Settings, delay: Duration) {
        let step = self.step(settings, delay);
        let stays_below = |bound| delay < bound && self.delay_before < bound;
        let (decays, most) = match settings.law {
            PieLaw::Basic => (delay.is_zero() && self.delay_before.is_zero(), 1.0),
            PieLaw::Enhanced | PieLaw::Linux => (stays_below(settings.half_target), 1.0),
            PieLaw::Docsis => (stays_below(LATENCY.0), SPREAD.0 * settings.mean_packet as f64 / MIN_PACKET),
        };
        let mut probability = self.probability + step;
        if decays {
            probability *= DECAY;
        } else if settings.law == PieLaw::Docsis && delay > LATENCY.1 {
            probability += MOST_STEP;
        }
        self.probability = probability.clamp(0.0, most);
    }

    fn step(&self, settings: &Settings, delay: Duration) -> f64 {
        let seconds = Duration::as_secs_f64;
        let excess = seconds(delay) - seconds(settings.target);
        let growth = seconds(delay) - seconds(self.delay_before);
        let high: &[(f64, f64)] = if settings.law == PieLaw::Docsis { &HIGH_SCALES } else { &[] };
        let scale = SCALES.iter().chain(high).find(|(below, _)| self.probability < *below);
        let step =
            (settings.alpha * excess + settings.beta * growth) / scale.map_or(1.0, |&(_, scale)| scale);
        if settings.law != PieLaw::Basic && self.probability >= HIGH { step.min(MOST_STEP) } else { step }
    }

    /// RFC 8034: without congestion the AQM is quiescent, and after a second of that inactive.
    fn settle_phase(&mut self, settings: &Settings, delay: Duration) {
        let short = |delay| delay < settings.half_target;
        let quiet =
            short(delay) && short(self.delay_before) && self.probability == 0.0 && self.burst.is_zero();
        self.phase = match self.phase {
            Phase::Active if quiet => Phase::Quiescent(Duration::ZERO),
            Phase::Quiescent(lasted) if quiet && lasted + settings.update > RESET_AFTER => Phase::Inactive,
            Phase::Quiescent(lasted) if quiet => Phase::Quiescent(lasted + settings.update),
            Phase::Quiescent(_) => Phase::Quiescent(Duration::ZERO),
            other => other,
        };
    }
}

impl Aqm for Pie {
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.backlog = Bytes::new(queue.bytes());
        self.catch_up(cx.now);
        let Settings { law, half_target, max_burst, mark_below, .. } = self.settings;
        let Controller { probability, delay_before, .. } = self.controller;
        let calm = probability == 0.0 && delay_before < half_target && self.sojourn < half_target;
        if matches!(law, PieLaw::Enhanced | PieLaw::Basic) && calm {
            self.controller.burst = max_burst;
        }
        if queue.is_full_for(packet, self.limit) {
            self.accumulated = 0.0;
            return Verdict::Drop(Reason::Overflow);
        }
        match mark_below {
            _ if !self.is_hit(packet, queue, cx.rng) => Verdict::Pass,
            _ if law == PieLaw::Linux => {
                if self.marks_as_linux(packet) {
                    Verdict::Notify(Reason::Controller)
                } else {
                    Verdict::Drop(Reason::Controller)
                }
            }
            Some(bound) if probability < bound => Verdict::Notify(Reason::Controller),
            _ => Verdict::Drop(Reason::Controller),
        }
    }

    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.backlog = Bytes::new(left.bytes() + u64::from(packet.size));
        self.catch_up(cx.now);
        self.sojourn = if left.is_empty() { Duration::ZERO } else { cx.now.since(packet.arrived) };
        if self.settings.law == PieLaw::Linux {
            self.controller.age_burst(cx.now);
        }
        Verdict::Pass
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("probability", self.controller.probability), ("delay_s", self.delay().as_secs_f64())]
    }
}

#[cfg(test)]
mod tests;

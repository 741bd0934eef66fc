//! PIE, Proportional Integral controller Enhanced: RFC 8033, sections 4 and 5 and the pseudocode of its appendices A and B; DOCSIS-PIE:
//! RFC 8034, appendix A.
//!
//! Every update interval, a controller changes the drop probability by how far the queueing delay is from the target and by how much
//! the delay has changed. Packets are dropped, or marked, with this probability as they arrive. The queueing delay is the sojourn
//! time of the last packet that was transmitted, and zero once the queue is empty (RFC 8033, section 5.2, with timestamps); DOCSIS-PIE
//! computes it from the bytes that wait and the rate of the link.
//!
//! The AQM has no timer. The delay is constant between two calls, so each call first makes up for the updates since the last one.
//!
//! ## Deviations
//! - RFC 8033 leaves the time of the first update open: here updates come at the multiples of `update` from the start of the run
//!   (`updates_come_at_the_multiples_of_the_interval`).
//! - If no packet arrives or departs for more than 1024 updates (15 s by default), the updates beyond are left out, unless they would
//!   change nothing (`updates_without_end_are_cut_short`).
//! - Appendix B of RFC 8033 is inactive until the queue is a third full, to save work, and allows a burst only when it becomes active.
//!   Here it is always active, as in Linux, and a burst is allowed as in section 4.4 and appendix A.
//! - RFC 8034 computes the delay from two rates, those of a token bucket and of its peak. Here both are the rate of the link.
//! - The pseudocode of RFC 8034 never marks; with `ecn` its variant marks as RFC 8033 does.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, Reason, Verdict};
use crate::table::at_key;
use crate::units::{AboveZero, UnitError};
use crate::{
    Bitrate, Block, Bytes, Context, Depth, Duration, Environment, FromParams, Header, Instant, Occupancy,
    Onset, Probability, Rng,
};

/// Parameters of [`Pie`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PieParams {
    /// Which RFC, and which of its algorithms. The defaults of several other parameters depend on it.
    #[serde(default)]
    pub law: PieLaw,
    /// The queueing delay that the controller aims at (`QDELAY_REF`, `LATENCY_TARGET`). Default: 15ms; with `docsis` 10ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Duration>,
    /// The time between two updates of the drop probability, at least 1ms (`T_UPDATE`, `INTERVAL`). Default: 15ms; with `docsis`
    /// 16ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Duration>,
    /// A burst after a time without congestion is not dropped for this long (`MAX_BURST`). Default: 150ms; with `docsis` 142ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_burst: Option<Duration>,
    /// How much the drop probability changes in each update for each second by which the delay is above the target (alpha, A).
    /// Default: 0.125; with `docsis` 0.25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<AboveZero>,
    /// How much it changes for each second by which the delay has grown since the last update (beta, B). Default: 1.25; with `docsis`
    /// 2.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<AboveZero>,
    /// No packet is dropped while the queue holds no more than two packets of this size (`MEAN_PKTSIZE`). With `docsis` the drop
    /// probability is that of a packet of this size, and in proportion for others. Default: 1000B; with `docsis` 1024B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_packet: Option<Bytes>,
    /// Mark ECN-capable packets instead of dropping them while the drop probability is below `mark-below`. Where there is no room,
    /// they are dropped all the same. TCP flows are capable with the key `ecn`, on real packets also with
    /// `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`: from this drop probability on, ECN-capable packets are dropped, too (`MARK_ECNTH`).
    #[serde(default = "tenth")]
    pub mark_below: Probability,
    /// Queue limit, in packets (`200p`) or bytes (`300kB`).
    #[serde(default = "thousand_packets")]
    pub limit: Depth,
}

/// The algorithms of PIE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PieLaw {
    /// RFC 8033, appendix B: drops are spread out, and a high drop probability rises by at most 0.02 an update.
    #[default]
    Enhanced,
    /// RFC 8033, appendix A: each packet is dropped by chance, whatever happened to those before it.
    Basic,
    /// RFC 8034, DOCSIS-PIE: as `enhanced`, with a drop probability in proportion to a packet's size, and inactive until the queue is
    /// a third full.
    Docsis,
}

fn tenth() -> Probability {
    Probability::new(0.1).expect("0.1 is a probability")
}

const fn thousand_packets() -> Depth {
    Depth::Packets(1000)
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
    limit: Depth,
}

impl Settings {
    fn of(params: &PieParams) -> Self {
        let (target, update, max_burst, alpha, beta, mean_packet) = match params.law {
            PieLaw::Enhanced | PieLaw::Basic => (15, 15, 150, 0.125, 1.25, 1000),
            PieLaw::Docsis => (10, 16, 142, 0.25, 2.5, 1024),
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
            limit: params.limit,
        }
    }
}

/// Changes of the drop probability are divided by the second number while it is below the first (RFC 8033, section 5.1).
const SCALES: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// The same of RFC 8034 for higher probabilities, which may be above 1.
const HIGH_SCALES: [(f64, f64); 3] = [(1.0, 0.5), (10.0, 0.125), (f64::INFINITY, 0.03125)];

/// What remains of the drop probability after each update without congestion.
const DECAY: f64 = 0.98;

/// From this drop probability on, it rises by at most so much an update.
const HIGH: f64 = 0.1;
const MOST_STEP: f64 = 0.02;

/// Below this drop probability, and half of the target at the last update, nothing is dropped.
const LITTLE: f64 = 0.2;

/// A packet is admitted while the drop probabilities since the last drop add up to less than the first number, and dropped once they
/// add up to the second (`PROB_LOW`, `PROB_HIGH`).
const SPREAD: (f64, f64) = (0.85, 8.5);

/// RFC 8034: the drop probability decays while delays are below the first, and rises by `MOST_STEP` more while they are above the
/// second (`LATENCY_LOW`, `LATENCY_HIGH`).
const LATENCY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// RFC 8034: the size of the smallest packet, which bounds the drop probability (`MIN_PKTSIZE`).
const MIN_PACKET: f64 = 64.0;

/// RFC 8034: after so long without congestion the AQM is inactive again (`BURST_RESET_TIMEOUT`).
const RESET_AFTER: Duration = Duration::from_secs(1);

/// The shortest `update`: updates are made up for one by one.
const SHORTEST_UPDATE: Duration = Duration::from_millis(1);

/// At most so many updates are made up for at once.
const MOST_UPDATES: u64 = 1024;

/// Controls the queueing delay by drops on arrival.
#[derive(Clone, Debug)]
pub struct Pie {
    settings: Settings,
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
    /// With which packets are dropped (`drop_prob_`). In RFC 8034 that of a mean packet, which may be above 1.
    probability: f64,
    /// The queueing delay at the last update (`qdelay_old_`).
    delay_before: Duration,
    /// What is left of the time in which a burst is not dropped (`burst_allowance_`).
    burst: Duration,
    phase: Phase,
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

impl Block for Pie {
    type Params = PieParams;
    const NAME: &'static str = "pie";
    const SUMMARY: &'static str = "drops at random so that a controller keeps the queueing delay at a target";
    const SOURCE: &'static str = "RFC 8033, appendices A and B; RFC 8034, appendix A";
    const BATCHED: bool = true;
    const PRECOMPUTABLE: bool = false;

    fn check(params: &PieParams) -> Result<(), UnitError> {
        let settings = Settings::of(params);
        if settings.update < SHORTEST_UPDATE {
            return Err(UnitError::new(at_key("update", "an update interval is at least 1ms, such as 15ms")));
        }
        if settings.mean_packet == 0 {
            return Err(UnitError::new(at_key("mean-packet", "a packet must be above 0B, such as 1000B")));
        }
        Ok(())
    }

    fn idle_keys(params: &PieParams, sizes: &RangeInclusive<u64>) -> Vec<(&'static str, String)> {
        let spared = Bytes::new(Settings::of(params).mean_packet.saturating_mul(2));
        let most = match params.limit {
            Depth::Packets(packets) => packets.saturating_sub(1).saturating_mul(*sizes.end()),
            Depth::Bytes(bytes) => bytes.saturating_sub(*sizes.start()),
        };
        let no_marks = (!params.ecn && params.mark_below != tenth()).then(|| {
            ("mark-below", "packets are marked only with `ecn = true`; without it this has no effect".into())
        });
        let no_drops = (most <= spared.get()).then(|| {
            let text = format!(
                "a packet that the queue has room for finds at most {} in it, and with no more than two mean packets, {spared}, \
                 none is dropped by chance; lower `mean-packet`, or raise `limit`",
                Bytes::new(most)
            );
            ("mean-packet", text)
        });
        no_marks.into_iter().chain(no_drops).collect()
    }

    fn onset(params: &PieParams) -> Option<Onset> {
        let Settings { target, half_target, beta, .. } = Settings::of(params);
        // Delays below half of the target raise the drop probability by no more than this.
        let most = beta * half_target.as_secs_f64();
        (most < LITTLE).then_some(Onset { key: "target", value: target, delay: half_target })
    }
}

impl FromParams for Pie {
    fn new(params: PieParams, environment: Environment) -> Self {
        let settings = Settings::of(&params);
        let phase = if settings.law == PieLaw::Docsis { Phase::Inactive } else { Phase::Active };
        Self {
            rate: environment.rate,
            controller: Controller {
                probability: 0.0,
                delay_before: Duration::ZERO,
                burst: Duration::ZERO,
                phase,
            },
            sojourn: Duration::ZERO,
            backlog: Bytes::new(0),
            accumulated: 0.0,
            updates: 0,
            next_update: Instant::ZERO + settings.update,
            settings,
        }
    }
}

impl Pie {
    /// The queueing delay, which has been constant since the last call.
    fn delay(&self) -> Duration {
        match self.settings.law {
            PieLaw::Enhanced | PieLaw::Basic => self.sojourn,
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
        let (interval, delay) = (self.settings.update, self.delay());
        let due = now.as_nanos() / interval.as_nanos();
        for _ in 0..due.saturating_sub(self.updates).min(MOST_UPDATES) {
            let before = self.controller;
            self.controller.update(&self.settings, delay);
            if self.controller == before {
                break; // Neither would the updates that are left change anything.
            }
        }
        self.updates = due;
        self.next_update = Instant::ZERO + interval.saturating_mul(due.saturating_add(1));
    }

    /// Whether this packet, for which there is room, is to be dropped or marked (`drop_early`).
    fn is_hit(&mut self, packet: &Header, queue: &Occupancy, rng: &mut Rng) -> bool {
        let probability = self.controller.probability;
        match self.settings.law {
            PieLaw::Basic => !self.allows_burst() && !self.spares(queue) && rng.chance(probability),
            // In appendix B's order: where a burst is allowed, packets count all the same.
            PieLaw::Enhanced => !self.spares(queue) && self.is_due(probability, rng) && !self.allows_burst(),
            PieLaw::Docsis => self.is_hit_by_docsis(packet, queue, rng),
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
            if !is_third_full(queue, self.settings.limit) {
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
    /// One update of the drop probability, at this queueing delay (RFC 8033, section 4.2; RFC 8034, `calculate_drop_prob`).
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
            PieLaw::Enhanced => (stays_below(settings.half_target), 1.0),
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
        let Settings { law, half_target, max_burst, mark_below, limit, .. } = self.settings;
        let Controller { probability, delay_before, .. } = self.controller;
        let calm = probability == 0.0 && delay_before < half_target && self.sojourn < half_target;
        if law != PieLaw::Docsis && calm {
            self.controller.burst = max_burst;
        }
        if queue.is_full_for(packet, limit) {
            self.accumulated = 0.0;
            return Verdict::Drop(Reason::Overflow);
        }
        match mark_below {
            _ if !self.is_hit(packet, queue, cx.rng) => Verdict::Pass,
            Some(bound) if probability < bound => Verdict::Notify(Reason::Controller),
            _ => Verdict::Drop(Reason::Controller),
        }
    }

    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.backlog = Bytes::new(left.bytes() + u64::from(packet.size));
        self.catch_up(cx.now);
        self.sojourn = if left.is_empty() { Duration::ZERO } else { cx.now.since(packet.arrived) };
        Verdict::Pass
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("probability", self.controller.probability), ("delay_s", self.delay().as_secs_f64())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{Dequeued, Discipline};
    use crate::testing::{environment, fifo};
    use crate::{Color, Ecn, FlowId};

    fn pie(table: &str) -> Pie {
        Pie::new(serde_json::from_str(table).unwrap(), environment())
    }

    const BASIC: &str = r#"{"law": "basic"}"#;
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
            pie.controller.update(&pie.settings, millis(delay));
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
        for (table, expected) in [("{}", [0.14, 0.16]), (BASIC, [0.193_125, 0.231_25])] {
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
        // 0.25/s x 50 ms above the target, times 2, is more than the most of 0.02; 10 ms below it there is no bound.
        assert_close(&[once(0.5, 60, 60), once(0.5, 0, 0)], &[0.52, (0.5 - 0.005) * 0.98]);
        assert_close(&[once(5.0, 6, 6)], &[5.0 - 0.25 * 0.004 * 8.0]);
        assert_close(&[once(12.0, 6, 6)], &[12.0 - 0.25 * 0.004 * 32.0]);
        // Above 200 ms it rises twice as fast, up to 0.85 x 1024 / 64.
        assert_close(&[once(0.5, 201, 201), once(0.5, 200, 200)], &[0.54, 0.52]);
        assert_close(&[once(13.59, 201, 201)], &[13.6]);
    }

    #[test]
    fn without_congestion_the_drop_probability_decays() {
        // Basic: only while the delay is zero; enhanced: while it is below half of the target; DOCSIS: below 5 ms.
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
            Pie::idle_keys(&params, &(40..=1000)).into_iter().map(|(key, _)| key).collect::<Vec<_>>()
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

    /// 400 packets of 1000 bytes, one each 10 ms, of which one is served each `service` ms, with twenty seeds: drops by chance, and
    /// the largest change of the drop probability.
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
        assert!(refused(r#"{"mean-packet": "0B"}"#).unwrap_err().contains("above 0B"));
    }
}

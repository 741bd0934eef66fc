//! Which packets `DualPI2` marks and drops, given the base probability.

use super::{DualPi2Law, DualPi2Params, Overload};
use crate::aqm::{PiLaw, Verdict};
use crate::{Duration, Reason, Rng};

/// What decides on the packet that leaves.
#[derive(Clone, Debug)]
pub(super) enum Marking {
    Exact(Exact),
    Linux(Linux),
}

/// RFC 9332, figures 5, 7 and 8.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    k: f64,
    drops: bool,
    ramp: Ramp,
    /// In packets.
    step_length: usize,
    l4s_marks: Recur,
    l4s_drops: Recur,
    classic: Recur,
}

/// The share of marked packets by their sojourn times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    least: Duration,
    range: Duration,
}

/// Spreads hits of this probability evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recur(f64);

/// Linux, in its integers.
#[derive(Clone, Debug)]
pub(super) struct Linux {
    /// k, in steps of 2^-16.
    k: u64,
    drops: bool,
    step: Duration,
    step_length: usize,
    /// The controller decides on nothing while less waits, in bytes.
    spared: u64,
}

/// The port as the packet leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct State<'a> {
    pub(super) law: &'a PiLaw,
    /// Bytes in both queues.
    pub(super) waiting: u64,
    /// Packets in the L4S queue.
    pub(super) behind: usize,
    pub(super) sojourn: Duration,
}

/// The arithmetic of the controller, and what acts on its probability.
pub(super) fn new(params: &DualPi2Params) -> (PiLaw, Marking) {
    let (alpha, beta) = params.gains();
    let (k, drops) = (params.k.get(), params.overload == Overload::Drop);
    let most = if drops { 1.0 } else { (1.0 / k).min(1.0) };
    let step_length = params.step_length();
    match params.law {
        DualPi2Law::Rfc => {
            let exact = Exact {
                k,
                drops,
                ramp: Ramp { least: params.step(), range: params.range },
                step_length,
                l4s_marks: Recur::default(),
                l4s_drops: Recur::default(),
                classic: Recur::default(),
            };
            (PiLaw::exact(alpha, beta, most), Marking::Exact(exact))
        }
        DualPi2Law::Linux => {
            let (k, spared) = ((k * 65_536.0) as u64, params.mtu.get().saturating_mul(2));
            (
                PiLaw::quantized(alpha, beta, most),
                Marking::Linux(Linux { k, drops, step: params.step(), step_length, spared }),
            )
        }
    }
}

impl Marking {
    /// k p'.
    pub(super) fn coupled(&self, p: f64) -> f64 {
        match self {
            Self::Exact(exact) => exact.k * p,
            Self::Linux(linux) => linux.k as f64 / 65_536.0 * p,
        }
    }

    /// Takes over the counters of the marking before a change of parameters, if it is of the same kind.
    pub(super) fn take_over(&mut self, before: &Self) {
        if let (Self::Exact(exact), Self::Exact(before)) = (self, before) {
            let Exact { l4s_marks, l4s_drops, classic, .. } = *before;
            (exact.l4s_marks, exact.l4s_drops, exact.classic) = (l4s_marks, l4s_drops, classic);
        }
    }

    #[inline]
    pub(super) fn of_l4s(&mut self, state: &State<'_>, rng: &mut Rng) -> Verdict {
        match (self, state.law) {
            (Self::Exact(exact), PiLaw::Exact { p, .. }) => exact.of_l4s(*p, state),
            (Self::Linux(linux), PiLaw::Quantized { p, .. }) => linux.of_l4s(*p, state, rng),
            _ => Verdict::Pass,
        }
    }

    #[inline]
    pub(super) fn of_classic(&mut self, state: &State<'_>, rng: &mut Rng) -> Verdict {
        match (self, state.law) {
            (Self::Exact(exact), PiLaw::Exact { p, .. }) => exact.of_classic(*p),
            (Self::Linux(linux), PiLaw::Quantized { p, .. }) => linux.of_classic(*p, state, rng),
            _ => Verdict::Pass,
        }
    }
}

impl Exact {
    fn of_l4s(&mut self, p: f64, state: &State<'_>) -> Verdict {
        let coupled = self.k * p;
        if self.drops && coupled >= 1.0 {
            return if self.l4s_drops.hits(p * p) {
                Verdict::Drop(Reason::Overload)
            } else if self.l4s_marks.hits(1.0) {
                Verdict::Notify(Reason::Controller)
            } else {
                Verdict::Pass
            };
        }
        let native = if state.behind < self.step_length { 0.0 } else { self.ramp.at(state.sojourn) };
        let reason = if native > coupled { Reason::Step } else { Reason::Controller };
        crate::trace::note("p'_L", native);
        if self.l4s_marks.hits(native.max(coupled).min(1.0)) {
            Verdict::Notify(reason)
        } else {
            Verdict::Pass
        }
    }

    fn of_classic(&mut self, p: f64) -> Verdict {
        if !self.classic.hits(p * p) {
            Verdict::Pass
        } else if self.drops && p * self.k >= 1.0 {
            Verdict::Drop(Reason::Overload)
        } else {
            Verdict::Notify(Reason::Controller)
        }
    }
}

impl Ramp {
    fn at(self, sojourn: Duration) -> f64 {
        let above = sojourn - self.least;
        if above >= self.range && sojourn > self.least {
            1.0
        } else {
            above.as_nanos() as f64 / self.range.as_nanos().max(1) as f64
        }
    }
}

impl Recur {
    #[inline]
    fn hits(&mut self, probability: f64) -> bool {
        crate::trace::note("probability", probability);
        crate::trace::note("counter before", self.0);
        self.0 += probability;
        let hit = self.0 > 1.0;
        if hit {
            self.0 -= 1.0;
        }
        hit
    }
}

impl Linux {
    /// k p' of 2^32 - 1, above that in overload.
    fn coupled(&self, p: u32) -> u64 {
        (u64::from(p) * self.k) >> 16
    }

    fn overloaded(&self, p: u32) -> bool {
        self.coupled(p) > u64::from(u32::MAX)
    }

    fn of_l4s(&self, p: u32, state: &State<'_>, rng: &mut Rng) -> Verdict {
        let decided = if state.waiting < self.spared {
            Verdict::Pass
        } else if self.overloaded(p) {
            if self.drops && roll(p, rng) && roll(p, rng) {
                Verdict::Drop(Reason::Overload)
            } else {
                Verdict::Notify(Reason::Controller)
            }
        } else if roll(u32::try_from(self.coupled(p)).unwrap_or(u32::MAX), rng) {
            Verdict::Notify(Reason::Controller)
        } else {
            Verdict::Pass
        };
        let waits = state.behind >= self.step_length && state.sojourn > self.step;
        if decided == Verdict::Pass && waits { Verdict::Notify(Reason::Step) } else { decided }
    }

    fn of_classic(&self, p: u32, state: &State<'_>, rng: &mut Rng) -> Verdict {
        if state.waiting < self.spared || !(roll(p, rng) && roll(p, rng)) {
            Verdict::Pass
        } else if self.overloaded(p) {
            Verdict::Drop(Reason::Overload)
        } else {
            Verdict::Notify(Reason::Controller)
        }
    }
}

/// Decides with the probability (p + 1) / 2^32: at p = 0 it still hits once in 2^32.
fn roll(p: u32, rng: &mut Rng) -> bool {
    let number = (rng.next_u64() >> 32) as u32;
    crate::trace::draw((f64::from(p) + 1.0) / 4_294_967_296.0, f64::from(number) / 4_294_967_296.0);
    number <= p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_spread_evenly() {
        let hits = |p: f64, packets: usize| {
            let mut recur = Recur::default();
            let hits: Vec<usize> = (1..=packets).filter(|_| recur.hits(p)).collect();
            (hits, recur.0)
        };
        assert_eq!(hits(0.375, 16), (vec![3, 6, 9, 11, 14], 1.0));
        assert_eq!(hits(0.5, 8).0, [3, 5, 7]);
        assert_eq!(hits(1.0, 5).0, [2, 3, 4, 5]);
    }

    #[test]
    fn the_ramp_rises_from_its_least_time_on() {
        let ramp = Ramp { least: Duration::from_nanos(800_000), range: Duration::from_nanos(400_000) };
        let at = |micros: u64| ramp.at(Duration::from_nanos(micros * 1000));
        assert_eq!([700, 800, 900, 1000, 1100, 1200, 1300].map(at), [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]);
        let step = Ramp { least: Duration::from_millis(1), range: Duration::ZERO };
        assert_eq!([1_000_000, 1_000_001].map(|nanos| step.at(Duration::from_nanos(nanos))), [0.0, 1.0]);
    }
}

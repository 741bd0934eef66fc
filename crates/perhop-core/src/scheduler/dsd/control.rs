//! The control loop that moves the bias: a TCP-friendly green source gets no more than a blue one.

use super::DsdParams;
use crate::abe::Service;
use crate::{Duration, Header, Instant};

/// Moves the bias so that a TCP-friendly green source gets no more than a blue one.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) interval: Duration,
    pub(super) step: f64,
    pub(super) base_rtt: f64,
    pub(super) ends: Instant,
    /// In the present interval, by service.
    pub(super) arrived: [u64; 2],
    pub(super) lost: [u64; 2],
    pub(super) sent: [u64; 2],
    pub(super) waited: [Duration; 2],
}

impl Control {
    pub(super) fn new(interval: Duration, params: &DsdParams) -> Self {
        Self {
            interval,
            step: params.step.get(),
            base_rtt: params.base_rtt.as_secs_f64(),
            ends: Instant::ZERO + interval,
            arrived: [0; 2],
            lost: [0; 2],
            sent: [0; 2],
            waited: [Duration::ZERO; 2],
        }
    }

    /// These parameters from now on; the present interval ends when it would have.
    pub(super) fn retune(&mut self, interval: Duration, params: &DsdParams) {
        let Self { step, base_rtt, .. } = Self::new(interval, params);
        (self.interval, self.step, self.base_rtt) = (interval, step, base_rtt);
    }

    /// Ends the interval if its time has passed, and moves the bias.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant, bias: &mut f64) {
        if now >= self.ends {
            if let Some([blue, green]) = self.inverse_squared_rates() {
                // The rate goes as 1/(RTT sqrt(p)): green's is the higher where its RTT^2 p is the lower.
                let step = if green < blue { -self.step } else { self.step };
                *bias = (*bias + step).clamp(0.0, 1.0);
            }
            *self = Self { ends: now + self.interval, ..self.emptied() };
        }
    }

    /// Counts a packet that is sent.
    #[inline]
    pub(super) fn send(&mut self, service: Service, packet: &Header, now: Instant) {
        let service = service.index();
        self.sent[service] += 1;
        self.waited[service] = self.waited[service] + now.since(packet.arrived);
    }

    fn emptied(&self) -> Self {
        Self { arrived: [0; 2], lost: [0; 2], sent: [0; 2], waited: [Duration::ZERO; 2], ..self.clone() }
    }

    /// RTT^2 p of each service; none where a service sent nothing, or nothing was lost at all.
    pub(super) fn inverse_squared_rates(&self) -> Option<[f64; 2]> {
        if self.sent.contains(&0) || self.arrived.contains(&0) || self.lost == [0; 2] {
            return None;
        }
        Some(std::array::from_fn(|service| {
            let rtt = self.base_rtt + self.waited[service].as_secs_f64() / self.sent[service] as f64;
            rtt * rtt * self.lost[service] as f64 / self.arrived[service] as f64
        }))
    }
}

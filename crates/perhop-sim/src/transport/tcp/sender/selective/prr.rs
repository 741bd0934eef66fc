//! Proportional Rate Reduction: RFC 9937 (which replaces RFC 6937), in whole segments.

/// How much may be sent in a recovery, so that the window ends it at the threshold.
#[derive(Clone, Debug)]
pub(super) struct Prr {
    /// `RecoverFS`: what is to be delivered in the recovery.
    flight: u32,
    /// `prr_delivered`, and `prr_out`.
    delivered: u32,
    sent: u32,
}

/// What an acknowledgement says, and what is then in the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// `DeliveredData`: segments newly acknowledged, in order or selectively.
    pub(super) delivered: u32,
    /// safeACK: it acknowledges in order, and reports no further loss.
    pub(super) safe: bool,
    /// inflight, by RFC 6675.
    pub(super) pipe: u32,
}

impl Prr {
    /// Begins a recovery; `flight` is what was outstanding before the acknowledgement that started it,
    /// without what had been selectively acknowledged by then.
    pub(super) fn new(flight: u32) -> Self {
        Self { flight: flight.max(1), delivered: 0, sent: 0 }
    }

    /// Takes an acknowledgement; returns the window until the next, of which `threshold` is the aim.
    #[inline]
    pub(super) fn on_ack(&mut self, progress: Progress, threshold: u32) -> u32 {
        let Progress { delivered, safe, pipe } = progress;
        if delivered == 0 {
            return pipe;
        }
        self.delivered += delivered;
        let may = if pipe > threshold {
            let share = u64::from(self.delivered) * u64::from(threshold);
            (share.div_ceil(u64::from(self.flight)) as u32).saturating_sub(self.sent)
        } else {
            // Conserve packets; one more while all goes well (slow start). Never beyond the threshold.
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            (conserved + u32::from(safe)).min(threshold - pipe)
        };
        // The first retransmission is sent whatever this says.
        pipe + if self.sent == 0 { may.max(1) } else { may }
    }

    /// Notes that a segment is sent, new or again.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The segments sent in answer to acknowledgements of one segment each, and the pipe that each finds.
    fn course(
        prr: &mut Prr,
        mut pipe: u32,
        threshold: u32,
        safe: bool,
        acks: u32,
        first_lost: u32,
    ) -> Vec<(u32, u32)> {
        let mut step = |number: u32| {
            pipe -= if number == 0 { first_lost } else { 1 };
            let may = prr.on_ack(Progress { delivered: 1, safe, pipe }, threshold) - pipe;
            (0..may).for_each(|_| prr.on_sent());
            pipe += may;
            (pipe - may, may)
        };
        (0..acks).map(&mut step).collect()
    }

    #[test]
    fn one_loss_of_twenty_is_spread_over_the_round_trip() {
        // RFC 6937, section 3.1, first example, by RFC 9937's formulas: segment 0 of 20 is lost, limited
        // transmit sends two more, the third duplicate finds a pipe of 18. Half of what is delivered goes
        // out: at every other acknowledgement.
        let mut prr = Prr::new(20);
        let found = course(&mut prr, 20, 10, false, 17, 2);
        let pipes: Vec<u32> = found.iter().map(|(pipe, _)| *pipe).collect();
        assert_eq!(pipes, [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10]);
        let sent: Vec<u32> = found.iter().map(|(_, sent)| *sent).collect();
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
        // At the threshold it stays there: one for one.
        assert_eq!(course(&mut prr, 10, 10, false, 3, 1), [(9, 1), (9, 1), (9, 1)]);
    }

    #[test]
    fn many_losses_conserve_packets_until_progress_is_sure() {
        // The second example: segments 0 to 14 of 20 are lost, 22 are sent, the third duplicate finds 4 in
        // the network. While nothing is acknowledged in order it goes on one for one (PRR-CRB: R R R), where
        // PRR-SSRB sends 2R 2R 2R.
        assert_eq!(course(&mut Prr::new(20), 19 + 1, 10, false, 3, 16), [(4, 1), (4, 1), (4, 1)]);
        assert_eq!(course(&mut Prr::new(20), 19 + 1, 10, true, 3, 16), [(4, 2), (5, 2), (6, 2)]);
    }

    #[test]
    fn the_first_retransmission_goes_out_and_nothing_for_nothing() {
        // One of ten delivered, and a threshold of 0.7 of it: ceil(0.7) = 1 would be sent anyway; with a pipe
        // at the threshold nothing would.
        let mut prr = Prr::new(10);
        assert_eq!(prr.on_ack(Progress { delivered: 1, safe: false, pipe: 7 }, 7), 8);
        prr.on_sent();
        assert_eq!(prr.on_ack(Progress { delivered: 1, safe: false, pipe: 7 }, 7), 7);
        assert_eq!(prr.on_ack(Progress { delivered: 0, safe: false, pipe: 3 }, 7), 3);
    }
}

//! A flow's turn in a window of the look-ahead: all that happens to its two hosts by themselves before the
//! window ends, in one call.
//!
//! Links bring nothing to its hosts within the window but what they have brought already. So ACKs that are
//! held, timers of the sender and late ACKs of the receiver up to its end take place now, and an event need
//! only say which flow has a turn. The packets of one flow are in order then, and those of several are not:
//! the arrival queue of their first link puts them in order.

use perhop_core::Instant;

use super::{BatchedFlow, FEW, SendContext};
use crate::control::Post;
use crate::flow::ActingSpan;
use crate::probe::Series;
use crate::sampling::SampleTimes;
use crate::transport::Source;

impl BatchedFlow {
    /// All that happens to its sender by itself before `limit`, unless a control message comes first; ACKs
    /// that are held also beyond, up to the next of its timers. Returns how often something happened.
    #[inline(never)]
    pub(in super::super) fn take_turn(
        &mut self,
        limit: Instant,
        SendContext { mut first, channels, events }: SendContext<'_>,
        (times, series): (&SampleTimes, &mut Series),
    ) -> u64 {
        let mut happened = 0;
        loop {
            if self.base.sending.feedback.is_none() {
                let until = self.sender_sample.just_after().min(self.base.next_command());
                let until = if self.is_owned() { until.min(limit) } else { until };
                let turn = ActingSpan { held: &mut self.rare.held, limit, until };
                happened += self.base.act(turn, Post { channels, events }, &mut first);
            }
            let feedback = self.base.sending.feedback;
            let message = feedback.map_or(Instant::NEVER, |channel| channels.next(channel as usize));
            let ack = self.rare.held.front().map_or(Instant::NEVER, |&(at, _)| at);
            let wake = self.base.sender.wake().min(self.base.next_command());
            if ack <= wake && ack < Instant::NEVER {
                let may = if ack < limit {
                    ack <= message
                } else {
                    !self.is_owned() && ack < wake && ack < message
                };
                if !may {
                    break;
                }
                let Some((at, ack)) = self.rare.held.pop_front() else { break };
                self.sample_sender_up_to(at, times, series);
                self.base.acknowledge(ack, at, Post { channels, events }, &mut first);
            } else if wake < limit && wake <= message {
                self.sample_sender_up_to(wake, times, series);
                self.base.wake_sender(wake);
                self.base.transmit(wake, Post { channels, events }, &mut first);
                happened += 1;
            } else {
                break;
            }
        }
        if self.rare.held.is_empty() && self.rare.held.capacity() > 2 * FEW {
            // A timeout that held many is rare, and most flows need no more memory for it.
            self.rare.held.shrink_to(FEW);
        }
        self.find_due();
        self.find_quiet_time(times.end);
        happened
    }

    /// Gives the sender of a user's flow the ACKs that come at `at`, all earlier ones having been taken.
    pub(in super::super) fn take_held_at(
        &mut self,
        at: Instant,
        SendContext { mut first, channels, events }: SendContext<'_>,
        (times, series): (&SampleTimes, &mut Series),
    ) {
        self.sample_sender_up_to(at, times, series);
        while let Some(&(_, ack)) = self.rare.held.front().filter(|&&(of, _)| of == at) {
            self.rare.held.pop_front();
            self.base.acknowledge(ack, at, Post { channels, events }, &mut first);
        }
    }

    /// The sender records its samples before `at`, since something happens to it then.
    #[inline(always)]
    pub(in super::super) fn sample_sender_up_to(
        &mut self,
        at: Instant,
        times: &SampleTimes,
        series: &mut Series,
    ) {
        if at > self.sender_sample {
            self.sample_sender_before(at, times, series);
        }
    }

    /// The sender sends what its user has let it send.
    pub(in super::super) fn send_what_it_may(
        &mut self,
        now: Instant,
        SendContext { mut first, channels, events }: SendContext<'_>,
    ) {
        self.base.transmit(now, Post { channels, events }, &mut first);
        self.find_due();
        self.schedule(events);
    }
}

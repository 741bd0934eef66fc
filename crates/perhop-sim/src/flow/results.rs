//! Results of a flow: its samples, its state while a run goes on, and what became of it.

use std::ops::Add;

use perhop_core::{Duration, Instant};

use super::counts::by_color;
use super::{Counts, Flow, FlowState, Rare};
use crate::outcome::{Completion, FlowOutcome, rate};
use crate::probe::Series;
use crate::sampling::SampleTimes;
use crate::transport::Source;
use crate::transport::transit::TransitMeter;

impl Flow {
    /// Samples the receiver at `sample`, before it takes any later packet.
    pub(crate) fn sample_receiver(&mut self, sample: Instant, times: &SampleTimes, series: &mut Series) {
        let delivered = self.delivered();
        if times.ends_warmup(sample) {
            let Rare { at_warmup, path, .. } = &mut *self.rare;
            let saved = at_warmup.get_or_insert_default();
            saved.delivered = delivered;
            saved.path.short = path.short;
            saved.path.repeated = path.repeated;
            saved.path.congested = path.congested;
        }
        let Some((row, interval)) = times.row(sample) else { return };
        if self.rare.is_population || self.rare.origin.member.is_some() {
            return self.sample_member(row, times, series);
        }
        let bps = self.newly_delivered() as f64 * 8.0 / interval.as_secs_f64();
        times.write(&mut series.throughput_bps, row, self.sending.number(), bps);
    }

    /// Returns the bytes delivered since the last call.
    pub(super) fn newly_delivered(&mut self) -> u64 {
        let bytes = self.delivered_bytes();
        bytes - std::mem::replace(&mut self.rare.at_last_sample, bytes)
    }

    /// Samples the sender at `sample`, before it takes any later ACK.
    pub(crate) fn sample_sender(&mut self, sample: Instant, times: &SampleTimes, series: &mut Series) {
        let (sender, number) = (&self.sender, self.sending.number());
        if times.ends_warmup(sample) {
            let saved = self.rare.at_warmup.get_or_insert_default();
            saved.acknowledged = sender.acknowledged();
            saved.sender = sender.statistics_at(sample);
            saved.marked = self.sending.marked;
            saved.policed = self.sending.policed();
        }
        if let Some((row, _)) = times.row(sample) {
            if self.rare.origin.member.is_some() {
                return;
            }
            let window = sender.window().filter(|_| !self.rare.is_population).unwrap_or(f64::NAN);
            times.write(&mut series.window_packets, row, number, window);
            let rtt = sender.smoothed_rtt().unwrap_or(f64::NAN);
            times.write(&mut series.rtt_s, row, number, rtt);
        }
    }

    /// Saves what routers counted of the flow, at the end of the warm-up.
    pub(crate) fn end_warmup_at_routers(&mut self) {
        let Rare { at_warmup, path, .. } = &mut *self.rare;
        let saved = at_warmup.get_or_insert_default();
        saved.path.dropped = path.dropped;
        saved.path.policed_at_links = path.policed_at_links;
        saved.path.lost = path.lost;
        if self.sending.is_marked_at_router() {
            saved.marked = self.sending.marked;
            saved.policed = self.sending.policed();
        }
    }

    /// Returns when all of its volume had arrived, if that has happened.
    pub(crate) fn completed(&self) -> Option<Instant> {
        self.rare.completed
    }

    /// Returns the bytes that arrived for the first time since the flow began.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered() * u64::from(self.data_size()) - self.rare.path.short
    }

    pub(crate) fn state(&self, now: Instant) -> FlowState {
        let Counts { delivered, marked, path, sender, .. } = self.counts(now);
        FlowState {
            window: self.sender.window(),
            smoothed_rtt_s: self.sender.smoothed_rtt(),
            sent: sender.sent,
            retransmitted: self.rare.counted.repairs().then_some(sender.retransmitted),
            timeouts: self.rare.counted.timeouts().then_some(sender.timeouts),
            delivered_packets: delivered,
            delivered_bytes: self.delivered_bytes(),
            dropped: path.dropped,
            lost: self.rare.is_lossy.then_some(path.lost),
            marked,
            congested: self.rare.is_capable.then_some(path.congested),
            last_transit: self.last_transit(),
            limits: sender.limits,
        }
    }

    /// Returns what became of the flow by now.
    pub(crate) fn finish(self, times: &SampleTimes, now: Instant) -> FlowOutcome {
        self.finish_with(times, &Counts::default(), now)
    }

    /// Returns what became of the flow by now, with what others have counted after the warm-up: the flows of
    /// the population that it represents.
    pub(crate) fn finish_with(self, times: &SampleTimes, others: &Counts, now: Instant) -> FlowOutcome {
        let (begin, end) = times.measured();
        let mut new = self.counts_after_warmup(now.min(end));
        new.add(others);
        let bytes = |packets: u64| packets * u64::from(self.data_size());
        let delivered = bytes(new.delivered) - new.path.short;
        let active = (!self.rare.is_population).then(|| self.active((begin, now.min(end))));
        let over = active.unwrap_or(end.since(begin));
        let transit = self.transit();
        FlowOutcome {
            started: self.rare.started.filter(|&at| at <= end),
            active,
            is_too_brief: new.delivered == 0 && !self.can_deliver(now.min(end)),
            delivered_packets: new.delivered,
            delivered_bytes: delivered,
            throughput_bps: rate(delivered, over),
            acked_bps: rate(bytes(new.acknowledged), over),
            mean_transit_s: transit.and_then(TransitMeter::mean),
            p99_transit_s: transit.and_then(TransitMeter::p99),
            transits: transit.map(TransitMeter::delays).cloned(),
            jitter_s: transit.and_then(TransitMeter::jitter),
            play_out: transit.and_then(TransitMeter::played),
            marked: new.marked,
            policed: self.rare.is_policed.then(|| by_color(new.policed, new.path.policed_at_links, u64::add)),
            repeated_packets: new.path.repeated,
            congested: self.rare.is_capable.then_some(new.path.congested),
            dropped: new.path.dropped,
            lost: self.rare.is_lossy.then_some(new.path.lost),
            sender: new.sender,
            counted: self.rare.counted,
            receiver_window: self.sender.receiver_window(),
            buffer: self.sender.buffer(),
            completion: self.rare.idle_time.map_or(Completion::Endless, |idle| {
                Completion::of(idle, self.rare.started, self.rare.completed, times.measured())
            }),
        }
    }

    /// Returns how long it was active between these times: from its start until all of its volume had
    /// arrived. A flow that is stopped, or whose source has sent its last packet and repeats none, is active
    /// until then, and until the last of its packets arrives.
    fn active(&self, (begin, end): (Instant, Instant)) -> Duration {
        let Rare { started, stops, last_arrival, completed, .. } = *self.rare;
        let Some(started) = started else { return Duration::ZERO };
        let sent = self.sender.finished().unwrap_or(Instant::NEVER).min(stops);
        let until = completed.unwrap_or(if sent <= end { sent.max(last_arrival) } else { end });
        until.min(end).since(started.max(begin))
    }

    /// Returns whether data can have arrived by then, as far as its start and stop are concerned.
    fn can_deliver(&self, by: Instant) -> bool {
        let Rare { started, stops, first_data, is_population, .. } = *self.rare;
        is_population || started.is_some_and(|started| first_data.can_arrive(started, stops, by))
    }

    /// Returns how many packets arrived for the first time.
    fn delivered(&self) -> u64 {
        self.rare.volume - self.receiving.missing
    }

    pub(super) fn counts(&self, now: Instant) -> Counts {
        Counts {
            delivered: self.delivered(),
            acknowledged: self.sender.acknowledged(),
            marked: self.sending.marked,
            policed: self.sending.policed(),
            path: self.rare.path,
            sender: self.sender.statistics_at(now),
        }
    }
}

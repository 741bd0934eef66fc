//! The loss event rate as the receiver estimates it (RFC 5348, section 5).

use std::collections::VecDeque;

use perhop_core::{Duration, Instant};

/// How many closed loss intervals count, n, and their weights, newest first (section 5.4).
const INTERVALS: usize = 8;
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// A packet is lost when so many later ones have arrived (section 5.1).
const LATER_ARRIVALS: u8 = 3;
/// Old intervals are discounted no further than this (section 5.5).
const LEAST_DISCOUNT: f64 = 0.25;

/// Which packets were lost, grouped into loss events, and the intervals between these.
#[derive(Clone, Debug, Default)]
pub struct LossHistory {
    discounting: bool,
    /// The highest packet that arrived.
    newest: Option<(u32, Instant)>,
    /// Missing packets not yet known to be lost, in order.
    missing: VecDeque<Gap>,
    /// The first packet of the current loss event, and when it would have arrived: `S_old`, `T_old`.
    event: Option<(u32, Instant)>,
    /// `I_1` to `I_n`, newest first.
    closed: VecDeque<Interval>,
    events: u64,
}

/// Missing packets between two that arrived.
#[derive(Clone, Copy, Debug)]
struct Gap {
    before: (u32, Instant),
    after: (u32, Instant),
    /// Later packets that arrived.
    later: u8,
}

/// A closed loss interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    packets: f64,
    /// `DF_i`.
    discount: f64,
}

impl LossHistory {
    /// Makes a history in which nothing was received, and nothing lost.
    pub fn new(discounting: bool) -> Self {
        Self { discounting, closed: VecDeque::with_capacity(INTERVALS + 1), ..Self::default() }
    }

    /// Notes a packet that arrived while the sender's round-trip time is `rtt`; returns whether it reveals a
    /// new loss event. The length of the interval before the first event comes from `first_interval`.
    pub fn on_packet(
        &mut self,
        number: u32,
        at: Instant,
        rtt: Duration,
        first_interval: impl FnOnce() -> f64,
    ) -> bool {
        let Some(before) = self.newest else {
            self.newest = Some((number, at));
            return false;
        };
        if !self.missing.is_empty() {
            self.missing.iter_mut().filter(|gap| gap.before.0 < number).for_each(|gap| gap.later += 1);
        }
        if number > before.0 {
            self.newest = Some((number, at));
            if number > before.0 + 1 {
                self.missing.push_back(Gap { before, after: (number, at), later: 1 });
            }
        } else {
            self.fill(number);
        }
        let known = self.events;
        // Of the first interval that is closed now: that of the others is one.
        let mut discount = None;
        let mut first_interval = Some(first_interval);
        while let Some(gap) = self.missing.front().copied()
            && gap.later >= LATER_ARRIVALS
        {
            self.missing.pop_front();
            for lost in gap.before.0 + 1..gap.after.0 {
                let time = gap.time_of(lost);
                if self.event.is_some_and(|(_, began)| began + rtt >= time) {
                    continue; // Part of the current event.
                }
                let discount = discount.replace(1.0).unwrap_or_else(|| self.discount(before.0));
                let packets = match self.event.replace((lost, time)) {
                    Some((began, _)) => f64::from(lost - began),
                    None => first_interval.take().map_or(1.0, |first| first()),
                };
                self.close(packets, discount);
            }
        }
        self.events > known
    }

    /// Returns whether the next packet may reveal a loss event: others are missing for long enough. The ones
    /// that are missing first were so for longest.
    #[inline]
    pub fn may_reveal_event(&self) -> bool {
        self.missing.front().is_some_and(|gap| gap.later + 1 >= LATER_ARRIVALS)
    }

    /// Notes a packet that arrived after later ones: it is missing no more, but stays lost if that was known.
    fn fill(&mut self, number: u32) {
        let holds = |gap: &Gap| (gap.before.0 + 1..gap.after.0).contains(&number);
        let Some(place) = self.missing.iter().position(holds) else { return };
        let gap = self.missing[place];
        let here = (number, gap.time_of(number));
        // It is later than what is missing before it only.
        let parts = [Gap { after: here, ..gap }, Gap { before: here, later: gap.later - 1, ..gap }];
        self.missing.remove(place);
        for part in parts.into_iter().rev().filter(|part| part.before.0 + 1 < part.after.0) {
            self.missing.insert(place, part);
        }
    }

    /// Closes the last event's interval, and makes the discount of the older ones permanent (section 5.5).
    fn close(&mut self, packets: f64, discount: f64) {
        for interval in &mut self.closed {
            interval.discount *= discount;
        }
        self.closed.push_front(Interval { packets, discount: 1.0 });
        self.closed.truncate(INTERVALS);
        self.events += 1;
    }

    /// Returns the loss event rate p: zero before the first loss.
    pub fn rate(&self) -> f64 {
        self.mean_interval().map_or(0.0, |mean| 1.0 / mean)
    }

    /// Loss events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the mean loss interval in packets, with the current one if that is longer (sections 5.4, 5.5).
    fn mean_interval(&self) -> Option<f64> {
        let (newest, _) = self.newest?;
        let current = self.current(newest)?;
        let discount = self.discount(newest);
        let (mut total, mut weights) = (current * WEIGHTS[0], WEIGHTS[0]);
        let older = self.closed.len().saturating_sub(1);
        for (interval, weight) in self.closed.iter().take(older).zip(&WEIGHTS[1..]) {
            total += interval.packets * weight * interval.discount * discount;
            weights += weight * interval.discount * discount;
        }
        Some((total / weights).max(self.mean_closed()))
    }

    /// Returns the average of the closed intervals, `I_1` to `I_n`.
    fn mean_closed(&self) -> f64 {
        let (mut total, mut weights) = (0.0, 0.0);
        for (interval, weight) in self.closed.iter().zip(&WEIGHTS) {
            total += interval.packets * weight * interval.discount;
            weights += weight * interval.discount;
        }
        total / weights
    }

    /// Returns the length of the current interval, `I_0`, when this packet is the newest.
    fn current(&self, newest: u32) -> Option<f64> {
        self.event.map(|(began, _)| f64::from(newest - began + 1))
    }

    /// Returns the general discount factor DF, when this packet is the newest.
    fn discount(&self, newest: u32) -> f64 {
        let twice = 2.0 * self.mean_closed();
        match self.current(newest) {
            Some(current) if self.discounting && current > twice => (twice / current).max(LEAST_DISCOUNT),
            _ => 1.0,
        }
    }
}

impl Gap {
    /// Returns when a lost packet would have arrived, between those around it (section 5.2).
    fn time_of(&self, lost: u32) -> Instant {
        let (before, begin) = self.before;
        let (after, end) = self.after;
        let span = u128::from(end.since(begin).as_nanos());
        let nanos = span * u128::from(lost - before) / u128::from(after - before);
        begin + Duration::from_nanos(nanos as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A history with these closed intervals, newest first, and a current one of this length.
    fn history(closed: &[f64], current: u32, discounting: bool) -> LossHistory {
        let mut history = LossHistory::new(discounting);
        history.closed = closed.iter().map(|&packets| Interval { packets, discount: 1.0 }).collect();
        history.event = Some((1000, at(0)));
        history.newest = Some((1000 + current - 1, at(0)));
        history
    }

    /// Packets of these numbers arrive 10 ms apart; returns those that revealed a new event.
    fn arrivals(history: &mut LossHistory, numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let reveals = |number: &u32| history.on_packet(*number, at(u64::from(*number) * 10), RTT, || 50.0);
        numbers.into_iter().filter(reveals).collect()
    }

    #[test]
    fn a_late_packet_is_no_loss_unless_three_later_ones_came_before() {
        let mut history = LossHistory::new(true);
        assert!(arrivals(&mut history, [1, 3, 2, 4, 5, 6, 8, 9, 7, 10, 11, 12, 13]).is_empty());
        assert_eq!(history.events(), 0);
        // 15 to 17 are missing; 16 comes after one later packet, 15 and 17 do not. Three packets after 15:
        // 16, 18 and 19; 19 is the second after 17, and 20 the third.
        assert_eq!(arrivals(&mut history, [14, 18, 16, 19]), [19]);
        assert_eq!(
            history.event,
            Some((15, at(150))),
            "halfway from 14 to 16, which is halfway from 14 to 18"
        );
        assert!(arrivals(&mut history, [17, 20, 21, 22, 15, 23]).is_empty(), "17 came in time, 15 too late");
        assert_eq!(history.events(), 1);
        let mut history = LossHistory::new(true);
        assert_eq!(arrivals(&mut history, [14, 18, 16, 19, 20]), [19]);
        assert_eq!(history.events(), 1, "17 belongs to the same event");
    }

    #[test]
    fn no_loss_is_a_rate_of_zero() {
        let mut history = LossHistory::new(true);
        assert_eq!(history.rate(), 0.0);
        assert!(arrivals(&mut history, 3..100).is_empty(), "what came before the first is not missing");
        assert_eq!((history.rate(), history.events()), (0.0, 0));
    }

    #[test]
    fn the_weighted_mean_by_hand() {
        // (10 + 20 + 30 + 40 + 0.8 50 + 0.6 60 + 0.4 70 + 0.2 80) / 6 = 220/6 = 36.667; with I_0 = 5 it would
        // be (5 + 10 + 20 + 30 + 0.8 40 + 0.6 50 + 0.4 60 + 0.2 70) / 6 = 165/6 = 27.5.
        let closed = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0];
        let mean = |current, discounting| history(&closed, current, discounting).mean_interval().unwrap();
        assert!((mean(5, true) - 220.0 / 6.0).abs() < 1e-12);
        assert!((history(&closed, 5, true).rate() - 6.0 / 220.0).abs() < 1e-15);
        // I_0 counts from 60 on: 60 + 160 = 220.
        assert!((mean(60, false) - 220.0 / 6.0).abs() < 1e-12);
        assert!((mean(66, false) - 226.0 / 6.0).abs() < 1e-12);
        // Fewer intervals: I_1 = 10, I_2 = 40: max((I_0 + 10)/2, (10 + 40)/2).
        let few = |current| history(&[10.0, 40.0], current, false).mean_interval().unwrap();
        assert_eq!([few(1), few(40), few(50)], [25.0, 25.0, 30.0]);
    }

    #[test]
    fn a_long_current_interval_discounts_the_old_ones_by_hand() {
        // All closed 10: their mean is 10. I_0 = 40 gives DF = 20/40: (40 + 0.5 5 10) / (1 + 0.5 5) = 65/3.5.
        let closed = [10.0; 8];
        let mean = |current, on| history(&closed, current, on).mean_interval().unwrap();
        assert!((mean(40, true) - 65.0 / 3.5).abs() < 1e-12);
        assert!((mean(40, false) - 90.0 / 6.0).abs() < 1e-12);
        assert!((mean(20, true) - 70.0 / 6.0).abs() < 1e-12, "not more than twice the mean");
        // I_0 = 200: DF is 0.25, not 0.1: (200 + 0.25 50) / (1 + 0.25 5).
        assert!((mean(200, true) - 212.5 / 2.25).abs() < 1e-12);
        // A new event makes it permanent: I_1 = 40 with factor 1, the others 0.5.
        let mut discounted = history(&closed, 40, true);
        discounted.close(40.0, discounted.discount(1039));
        let factors: Vec<f64> = discounted.closed.iter().map(|interval| interval.discount).collect();
        assert_eq!(factors, [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
        assert!((discounted.mean_closed() - (40.0 + 0.5 * 50.0) / 3.5).abs() < 1e-12);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut history = LossHistory::new(false);
        // 10, 15 and 20 are lost at 100, 150 and 200 ms: the third is not later than 100 ms + RTT. 21 at 210
        // ms is.
        let numbers = (0..40).filter(|number| ![10, 15, 20, 21].contains(number));
        assert_eq!(arrivals(&mut history, numbers), [13, 24]);
        assert_eq!(history.event, Some((21, at(210))));
        let lengths: Vec<f64> = history.closed.iter().map(|interval| interval.packets).collect();
        assert_eq!(
            lengths,
            [11.0, 50.0],
            "from 10 to 20, and the interval before the first event as it was given"
        );
        assert_eq!(history.current(39), Some(19.0));
        assert_eq!(history.events(), 2);
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_have_come() {
        let mut history = LossHistory::new(false);
        assert!(arrivals(&mut history, [0, 1, 3, 5]).is_empty());
        assert_eq!(arrivals(&mut history, [6]), [6], "3, 5 and 6 are later than 2");
        assert_eq!(history.missing.len(), 1, "5 and 6 are later than 4");
        // A hole of thirty packets over 300 ms holds events at 80, 190 and 300 ms: each later than the last
        // by more than 100 ms.
        let mut history = LossHistory::new(false);
        assert_eq!(arrivals(&mut history, [7, 38, 39, 40]), [40]);
        assert_eq!((history.events(), history.event), (3, Some((30, at(300)))));
    }
}

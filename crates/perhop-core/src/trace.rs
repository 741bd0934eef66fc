//! What the last verdict of a [`ManagedQueue`](crate::ManagedQueue) on this thread rested on, or of a
//! scheduler that decides itself. Only with the feature `trace`, which a program takes that explains
//! decisions, such as the explorer, and only on threads that [ask for it](record); it changes no decision.

use std::cell::RefCell;

/// A test by chance: the probability, and the number that was drawn uniformly from [0, 1); the test hits
/// where that is less.
pub type Draw = (f64, f64);

/// What a verdict rested on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The name of the block that decided.
    pub block: &'static str,
    /// The tests by chance, in order. A test with a certain result draws nothing, and is none.
    pub draws: Vec<Draw>,
    /// What the rule noted on its way to the verdict, and what the AQM kept track of by then. A name ends in
    /// `_s` where the value is in seconds.
    pub gauges: Vec<(&'static str, f64)>,
    /// Packets that waited.
    pub packets: u64,
    /// The bytes of the packets that waited.
    pub bytes: u64,
}

/// The records of a thread.
#[derive(Default)]
struct Recorder {
    is_on: bool,
    draws: Vec<Draw>,
    notes: Vec<(&'static str, f64)>,
    last: Option<Trace>,
}

fn recorder<T>(work: impl FnOnce(&mut Recorder) -> T) -> T {
    thread_local!(static RECORDER: RefCell<Recorder> = RefCell::default());
    RECORDER.with_borrow_mut(work)
}

/// Does the work if verdicts of this thread are recorded.
fn recording(work: impl FnOnce(&mut Recorder)) {
    recorder(|recorder| {
        if recorder.is_on {
            work(recorder);
        }
    });
}

/// Sets whether verdicts of this thread are recorded from now on; at first they are not.
pub fn record(on: bool) {
    recorder(|recorder| recorder.is_on = on);
}

/// Returns whether verdicts of this thread are recorded.
pub(crate) fn is_recording() -> bool {
    recorder(|recorder| recorder.is_on)
}

/// Returns the trace of the last packet that was dropped or marked, once.
pub fn take() -> Option<Trace> {
    recorder(|recorder| recorder.last.take())
}

/// Begins the record of a packet that an AQM is about to judge.
pub(crate) fn begin() {
    recording(|recorder| *recorder = Recorder { is_on: true, ..Recorder::default() });
}

/// Records a random number that the AQM draws.
pub(crate) fn draw(probability: f64, number: f64) {
    recording(|Recorder { draws, .. }| {
        // Between two verdicts others draw, too.
        if draws.len() < 8 {
            draws.push((probability, number));
        }
    });
}

/// Records a value that explains the verdict; a later one of the same name takes its place.
pub(crate) fn note(name: &'static str, value: f64) {
    recording(|Recorder { notes, .. }| match notes.iter_mut().find(|(known, _)| *known == name) {
        Some((_, before)) => *before = value,
        None => notes.push((name, value)),
    });
}

/// Records that the block of this name drops or marks the packet.
pub(crate) fn end(block: &'static str, gauges: Vec<(&'static str, f64)>, packets: u64, bytes: u64) {
    recorder(|Recorder { draws, notes, last, .. }| {
        let (draws, mut noted) = (std::mem::take(draws), std::mem::take(notes));
        noted.extend(gauges);
        *last = Some(Trace { block, draws, gauges: noted, packets, bytes });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::AqmParams;
    use crate::{Environment, FlowId, Header, Instant, ManagedQueue, Packet as _, Reason, Rng};

    #[test]
    fn a_drop_by_chance_says_its_average_probability_and_number() {
        let table = r#"{"aqm": "red", "thresholds": "1/5/0.5", "weight": 1.0, "limit": "9p", "wait": false}"#;
        let aqm: AqmParams = serde_json::from_str(table).unwrap();
        let environment = Environment { rate: "8Mbps".parse().unwrap() };
        let mut queue = ManagedQueue::new(1, aqm, environment, Rng::stream(1, "queue"));
        let mut stream = Rng::stream(1, "queue");
        let numbers: Vec<f64> = (0..100).map(|_| stream.uniform()).collect();
        let mut seen = 0;
        record(true);
        for _ in 0..100 {
            let waiting = queue.occupancy().packets();
            let offered = queue.offer(0, Header::new(FlowId(0), 1000), Instant::ZERO);
            let trace = take();
            match offered {
                Ok(_) => assert_eq!(trace, None),
                Err((packet, reason)) => {
                    assert_eq!((packet.header().size, reason), (1000, Reason::Early));
                    let trace = trace.unwrap();
                    assert_eq!(trace.gauges, [("average total", waiting as f64)]);
                    // With a weight of 1 the average is what waits.
                    assert_eq!(trace.packets, waiting);
                    // A drop that is certain, by the packets since the last one, draws nothing.
                    let &[(p, number)] = trace.draws.as_slice() else { continue };
                    // p_b = 0.5 (avg - 1)/4, and p_a = p_b/(1 - count p_b) is no less.
                    assert!(p >= 0.5 * (waiting - 1) as f64 / 4.0 && number < p);
                    assert!(numbers.contains(&number));
                    seen += 1;
                }
            }
            if queue.occupancy().packets() > 3 {
                queue.take(0, Instant::ZERO).unwrap();
            }
        }
        assert!(seen > 5);
    }
}

//! What the last verdict of a [`ManagedQueue`](crate::ManagedQueue) on this thread rested on, or of a
//! scheduler that decides itself. Only with the feature `trace`, which a program takes that explains
//! decisions, such as the explorer, and only on threads that [ask for it](record); it changes no decision.

use std::cell::{Cell, RefCell};
use std::thread::LocalKey;

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
    /// Their bytes.
    pub bytes: u64,
}

fn draws() -> &'static LocalKey<RefCell<Vec<Draw>>> {
    thread_local!(static DRAWS: RefCell<Vec<Draw>> = const { RefCell::new(Vec::new()) });
    &DRAWS
}

fn notes() -> &'static LocalKey<RefCell<Vec<(&'static str, f64)>>> {
    thread_local!(static NOTES: RefCell<Vec<(&'static str, f64)>> = const { RefCell::new(Vec::new()) });
    &NOTES
}

fn last() -> &'static LocalKey<RefCell<Option<Trace>>> {
    thread_local!(static LAST: RefCell<Option<Trace>> = const { RefCell::new(None) });
    &LAST
}

fn recording() -> &'static LocalKey<Cell<bool>> {
    thread_local!(static RECORDING: Cell<bool> = const { Cell::new(false) });
    &RECORDING
}

/// Whether verdicts of this thread are recorded from now on; at first they are not.
pub fn record(on: bool) {
    recording().set(on);
}

/// Whether they are.
pub(crate) fn is_recording() -> bool {
    recording().get()
}

/// The trace of the last packet that was dropped or marked, once.
pub fn take() -> Option<Trace> {
    last().take()
}

/// An AQM is about to judge a packet.
pub(crate) fn begin() {
    if !is_recording() {
        return;
    }
    draws().with_borrow_mut(Vec::clear);
    notes().with_borrow_mut(Vec::clear);
    last().set(None);
}

/// It draws a random number.
pub(crate) fn draw(probability: f64, number: f64) {
    if !is_recording() {
        return;
    }
    draws().with_borrow_mut(|drawn| {
        // Between two verdicts others draw, too.
        if drawn.len() < 8 {
            drawn.push((probability, number));
        }
    });
}

/// It comes to a value that explains its verdict; a later one of the same name takes its place.
pub(crate) fn note(name: &'static str, value: f64) {
    if !is_recording() {
        return;
    }
    notes().with_borrow_mut(|noted| match noted.iter_mut().find(|(known, _)| *known == name) {
        Some((_, before)) => *before = value,
        None => noted.push((name, value)),
    });
}

/// The block of this name drops or marks the packet.
pub(crate) fn end(block: &'static str, gauges: Vec<(&'static str, f64)>, packets: u64, bytes: u64) {
    let mut noted = notes().take();
    noted.extend(gauges);
    last().set(Some(Trace { block, draws: draws().take(), gauges: noted, packets, bytes }));
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

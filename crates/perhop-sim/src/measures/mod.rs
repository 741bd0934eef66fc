//! The catalogue of measures. A measure is declared once, as one entry of [`FLOW`], [`LINK`] or
//! [`QueueMeasures::ALL`].
//!
//! From the entry follow its key in the outcome's dictionary and in the typed stubs, its column in Python's
//! data frames, in summary tables and in their HTML, its name in sweeps, its line in comparisons with real
//! packets, and its line in `docs/measures.md` and `perhop list measures`. Entries do not compute over
//! several flows: Python's `perhop.catalog` holds the measures of a class of flows and of a whole run, over
//! these.
//!
//! One rule holds for all: a measure that does not apply to a flow or link (retransmissions of UDP, drops of
//! meters where there are none), or that has no sample there (a delay where no packet came), has no value. 0
//! is a count or a share that is zero.

mod flow;
mod link;

pub use crate::measure::{Compared, Measure, Statistic, Summary, Table, Unit, Value};
pub use flow::FLOW;
pub use link::{LINK, Queue, QueueMeasures};

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::measure::{ClassOutcome, LinkOutcome};

    #[test]
    fn names_are_unique_and_say_their_unit() {
        fn check<O>(measures: &[Measure<O>]) -> Vec<&'static str> {
            let endings = [
                ("_bps", Unit::BitsPerSecond),
                ("_s", Unit::Seconds),
                ("_packets", Unit::Packets),
                ("_bytes", Unit::Bytes),
            ];
            for measure in measures {
                for (ending, unit) in endings {
                    assert!(!measure.name.ends_with(ending) || measure.unit == unit, "{}", measure.name);
                }
                assert!(measure.description.ends_with('.'), "{}", measure.name);
            }
            measures.iter().map(|measure| measure.name).collect()
        }
        let of_classes = check(QueueMeasures::<ClassOutcome>::ALL);
        assert_eq!(of_classes, check(QueueMeasures::<LinkOutcome>::ALL));
        for names in [check(FLOW), [check(LINK), of_classes].concat()] {
            let mut distinct = names.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), names.len());
        }
    }
}

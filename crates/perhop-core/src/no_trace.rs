//! The records of verdicts in builds without the feature `trace`: none.

pub(crate) const fn is_recording() -> bool {
    false
}

pub(crate) const fn begin() {}
pub(crate) const fn draw(_probability: f64, _number: f64) {}
pub(crate) const fn note(_name: &'static str, _value: f64) {}
pub(crate) fn end(_block: &'static str, _gauges: Vec<(&'static str, f64)>, _packets: u64, _bytes: u64) {}

//! Captures that scenarios name: their packets as the text that a scenario keeps.

use std::fmt::Write;
use std::io::Read;

use perhop_core::Duration;
use perhop_scenario::{Files, Folder, LEFT_OUT, MOST_BYTES};

use crate::arrivals::{Arrivals, Choice};
use crate::error::ReplayError;

/// Files and captures whose names are relative to a folder.
#[derive(Clone, Debug)]
pub struct Captures(pub Folder);

impl Files for Captures {
    fn read(&self, name: &str) -> Result<String, String> {
        self.0.read(name)
    }

    fn read_capture(&self, name: &str, from: Duration, to: Option<Duration>) -> Result<String, String> {
        let (file, path) = self.0.open(name)?;
        packets(file, from, to, MOST_BYTES).map_err(|error| format!("{path}: {error}"))
    }
}

/// Returns the packets of a capture between two times, in at most so many bytes of text: see
/// [`Files::read_capture`].
///
/// # Errors
/// It is no capture, is cut off or damaged, has no packet of IP in this time, or more than a scenario can
/// hold.
pub fn packets(
    capture: impl Read,
    from: Duration,
    to: Option<Duration>,
    most: u64,
) -> Result<String, ReplayError> {
    let mut arrivals = Arrivals::open(capture, Choice { from, to, cut: true, ..Choice::default() })?;
    let mut text = String::from("time_s,size_B,dscp\n");
    let header = text.len();
    while let Some(arrival) = arrivals.read_next()? {
        let nanos = arrival.at.as_nanos();
        let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let _ = write!(text, "{seconds}.{nanos:09}");
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        let _ = writeln!(text, ",{},{}", arrival.fields.length, arrival.fields.dscp.get());
        if text.len() as u64 > most {
            let number = arrival.number;
            return Err(ReplayError::capture(format!(
                "has {number} packets and more, whose text is larger than {} MB; choose a part by `from` and `to`",
                most / 1_000_000
            )));
        }
    }
    let row = arrivals.row();
    if row.cut {
        let whole = row.packets;
        return Err(ReplayError::capture(format!(
            "is cut off after {whole} whole packets; take an undamaged copy, or a part by `to`"
        )));
    }
    let left_out: Vec<String> =
        row.left_out.into_iter().map(|(packets, what)| format!("{packets} {what}")).collect();
    if text.len() == header {
        return Err(ReplayError::capture(format!(
            "has no packet of IP to replay; of {} read: {}",
            row.packets,
            [vec![format!("{} outside `from` and `to`", row.outside)], left_out].concat().join(", ")
        )));
    }
    if !left_out.is_empty() {
        text.insert_str(0, &format!("{LEFT_OUT}{}, of {} packets\n", left_out.join(", "), row.packets));
    }
    Ok(text)
}

//! Traces of a link's rate, from text.

use std::sync::Arc;

use perhop_core::Duration;
use perhop_core::medium::{Opportunities, RateTrace as Trace, Rates};

use crate::csv::{self, RATES, TIMES};
use crate::files::Files;
use crate::format::{RateTrace, TraceFormat, TraceTable};
use crate::text::{AtKey, Refusal, Source, shortened, unmarked};

/// Reads a trace; a problem comes with its key.
pub(crate) fn read_trace(trace: &mut Option<RateTrace>, files: &dyn Files) -> Result<(), AtKey> {
    let Some(given) = trace.take() else { return Ok(()) };
    let (is_table, table) = match given {
        RateTrace::File(file) => (false, TraceTable { file: Some(file), ..TraceTable::default() }),
        RateTrace::Table(table) => (true, table),
    };
    let TraceTable { file, name, format, repeat, data, .. } = table;
    let (key, what, example) = ("rate-trace", "a trace", "walk.trace");
    let text = Source { key, what, example, file, is_table, name, data }.read(|name| files.read(name))?;
    let format = match format {
        Some(format) => format,
        None if text.is_csv() => TraceFormat::Csv,
        None if text.name.is_some() => TraceFormat::Mahimahi,
        None => {
            let needed = "a trace given as `data` needs a format = \"mahimahi\" or \"csv\"";
            return Err((format!("{key}.format"), needed.into()));
        }
    };
    let repeats = repeat.unwrap_or(format == TraceFormat::Mahimahi);
    let read = match format {
        TraceFormat::Mahimahi => opportunities(&text.data, repeats),
        TraceFormat::Csv => rates(&text.data, repeats),
    };
    let read = read.map_err(|refusal| text.refusal(refusal))?;
    *trace = Some(RateTrace::Table(TraceTable {
        file: None,
        name: text.name,
        format: Some(format),
        repeat: Some(repeats),
        data: Some(text.data),
        read: Some(Arc::new(read)),
    }));
    Ok(())
}

/// Reads Mahimahi's format: a line for each opportunity, its time in milliseconds.
fn opportunities(text: &str, repeats: bool) -> Result<Trace, Refusal> {
    let mut millis: Vec<u32> = Vec::new();
    for (number, line) in unmarked(text).lines().enumerate() {
        let refuse = |text: String| Err((number + 1, text));
        let Ok(at) = line.trim().parse::<u32>() else {
            return refuse(format!(
                "`{}` is no time in whole milliseconds: each line is an opportunity to send 1500 bytes",
                shortened(line)
            ));
        };
        if let Some(&before) = millis.last().filter(|&&before| before > at) {
            return refuse(format!(
                "{at} comes after {before}, but times do not go back; was the line cut off?"
            ));
        }
        millis.push(at);
    }
    let Some(&last) = millis.last() else {
        return Err((
            1,
            "is empty: write a line for each opportunity to send 1500 bytes, its time in milliseconds".into(),
        ));
    };
    let lines = millis.len();
    let trace = Opportunities::new(millis, repeats);
    trace.map(Trace::Opportunities).ok_or_else(|| {
        (lines, format!("the last time is {last}: a trace lasts until then, so at least 1 millisecond"))
    })
}

/// The least time from one row to the next.
const LEAST_STEP: Duration = Duration::from_nanos(1000);

/// Reads CSV: a header that names the units, then a time and a rate in each line. Lines that begin with `#`
/// are comments.
fn rates(text: &str, repeats: bool) -> Result<Trace, Refusal> {
    let mut lines = csv::lines(text);
    let Some((first, header)) = lines.next() else {
        return Err((
            1,
            "is empty: write a header, time_s,rate_Mbps, then a time and a rate in each line".into(),
        ));
    };
    let [time_unit, rate_unit] = csv::units(header, [TIMES, RATES]).ok_or_else(|| {
        let hint = csv::nearest(header, &[TIMES, RATES]);
        let text = format!(
            "`{}`: the first line names a time (time_s or time_ms) and a rate (rate_bps, rate_kbps or rate_Mbps), such as \
             time_s,rate_Mbps{hint}",
            shortened(header)
        );
        (first, text)
    })?;
    let mut rows: Vec<(Duration, u64)> = Vec::new();
    let mut last = first;
    for (number, line) in lines {
        let refuse = |text: String| Err((number, text));
        let [time, rate] = csv::values(line, "a time and a rate").map_err(|text| (number, text))?;
        let time = csv::scaled(time, time_unit).map_err(|text| (number, text))?;
        let rate = csv::scaled(rate, rate_unit).map_err(|text| (number, text))?;
        let time = Duration::from_nanos(time);
        match rows.last() {
            None if !time.is_zero() => {
                return refuse(format!("the first time is {time}: a trace begins at 0"));
            }
            Some(&(before, _)) if time < before => {
                return refuse(format!("{time} comes after {before}, but times do not go back"));
            }
            Some(&(before, _)) if time - before < LEAST_STEP => {
                return refuse(format!("{time} is less than {LEAST_STEP} after the time before, {before}"));
            }
            _ => {}
        }
        rows.push((time, rate));
        last = number;
    }
    let Some(&(_, rate)) = rows.iter().max_by_key(|&&(_, rate)| rate) else {
        return Err((last, "has no row: write a time and a rate in each line after the header".into()));
    };
    if rate == 0 {
        return Err((last, "all rates are 0, so the link would never send anything".into()));
    }
    let text = "a trace of one row cannot repeat: leave `repeat` out, or add a row";
    Rates::new(rows, repeats).map(Trace::Rates).ok_or_else(|| (last, text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn both_formats_by_hand() {
        let trace = |millis: &[u32], repeats| {
            Trace::Opportunities(Opportunities::new(millis.to_vec(), repeats).unwrap())
        };
        assert_eq!(opportunities("1\n3\n3\n6\n", true), Ok(trace(&[1, 3, 3, 6], true)));
        assert_eq!(opportunities("0\r\n12", false), Ok(trace(&[0, 12], false)));
        let trace = |rows: &[(u64, u64)], repeats| {
            let rows = rows.iter().map(|&(at, rate)| (millis(at), rate)).collect();
            Trace::Rates(Rates::new(rows, repeats).unwrap())
        };
        let text = "# measured by nobody\ntime_s,rate_Mbps\n0,5\n0.5,0\n\n1.25, 12.3456789\n";
        assert_eq!(rates(text, true), Ok(trace(&[(0, 5_000_000), (500, 0), (1250, 12_345_679)], true)));
        assert_eq!(rates("time_ms,rate_kbps\n0,1e3", false), Ok(trace(&[(0, 1_000_000)], false)));
        assert_eq!(rates("time_s, rate_bps\r\n0,1234.5\r\n", false), Ok(trace(&[(0, 1235)], false)));
    }

    #[test]
    fn each_problem_has_its_line() {
        for (text, line, part) in [
            ("", 1, "is empty"),
            ("1\n\n3\n", 2, "`` is no time in whole milliseconds"),
            ("1\n2.5\n", 2, "`2.5` is no time in whole milliseconds"),
            ("1\n-2\n", 2, "`-2` is no time"),
            ("99999999999", 1, "is no time"),
            ("10\n12\n1", 3, "1 comes after 12, but times do not go back; was the line cut off?"),
            ("0\n0\n", 2, "the last time is 0: a trace lasts until then"),
        ] {
            let (at, problem) = opportunities(text, true).unwrap_err();
            assert!(at == line && problem.contains(part), "{text:?}: {at}: {problem}");
        }
        let header = "time_s,rate_Mbps\n";
        for (text, line, part) in [
            ("", 1, "is empty"),
            ("# nothing\n", 1, "is empty"),
            ("0,5\n1,6\n", 1, "`0,5`: the first line names a time"),
            ("time_s,rate_mbps\n0,5\n", 1, "did you mean `rate_Mbps`?"),
            ("rate_Mbps,time_s\n5,0\n", 1, "the first line names a time"),
            ("time_s,rate_Mbps,cell\n0,5,1\n", 1, "the first line names a time"),
            (
                &format!("{header}0,5\n1\n"),
                3,
                "`1` has 1 value, not a time and a rate; was the line cut off?",
            ),
            (&format!("{header}0,5\n1,\n"), 3, "`` is not a number"),
            (&format!("{header}0,5,6\n"), 2, "has 3 values"),
            (&format!("{header}0,fast\n"), 2, "`fast` is not a number"),
            (&format!("{header}0,nan\n"), 2, "`nan` is not a number"),
            (&format!("{header}0,-1\n"), 2, "`-1` is below 0"),
            (&format!("{header}0,1e300\n"), 2, "`1e300` is too large"),
            (&format!("{header}2,5\n"), 2, "the first time is 2s: a trace begins at 0"),
            (&format!("{header}0,5\n2,5\n1,5\n"), 4, "1s comes after 2s, but times do not go back"),
            (&format!("{header}0,5\n0,6\n"), 3, "0s is less than 1us after the time before, 0s"),
            (&format!("{header}0,0\n1,0\n"), 3, "all rates are 0"),
            (header, 1, "has no row"),
        ] {
            let (at, problem) = rates(text, false).unwrap_err();
            assert!(at == line && problem.contains(part), "{text:?}: {at}: {problem}");
        }
        assert_eq!(rates(&format!("{header}0,5\n"), true).unwrap_err().0, 2, "one row cannot repeat");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_trace() {
        assert_eq!(opportunities("\u{feff}1\n2\n", true).unwrap(), opportunities("1\n2\n", true).unwrap());
        let csv = "time_s,rate_Mbps\n0,5\n1,6\n";
        assert_eq!(rates(&format!("\u{feff}{csv}"), true).unwrap(), rates(csv, true).unwrap());
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_has_a_problem_of_one_line(
            lines in prop::collection::vec("time_(s|ms),rate_(bps|kbps|Mbps)|[0-9]{1,9}|[0-9.e+-]{1,6},[0-9.e+-]{1,6}|.{0,6}", 0..9),
            repeats in any::<bool>(),
        ) {
            let text = lines.join("\n");
            for read in [opportunities(&text, repeats), rates(&text, repeats)] {
                match read {
                    Ok(trace) => prop_assert_eq!(trace.end().is_some() && repeats, false),
                    Err((line, _)) => prop_assert!((1..=text.lines().count().max(1)).contains(&line)),
                }
            }
        }
    }
}

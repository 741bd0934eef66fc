//! Measured workloads, from text: when flows begin, and how large they are.

use std::sync::Arc;

use perhop_core::{Bytes, Dscp, Duration};
use perhop_sim::transport::packet_trace::{PacketTrace, TracedPacket};
use perhop_sim::workload::{ArrivalTrace, Cdf, CdfFormat, CdfTable, Listed, SizeCdf, Sizes};

use crate::csv::{self, SIZES, TIMES};
use crate::files::Files;
use crate::format::{ArrivalTable, Arrivals, MeasuredArrivals, ReplayTable, ReplayedPackets};
use crate::text::{AtKey, Refusal, Source, is_csv, shortened};

/// Reads the arrivals that a group names; a problem comes with its key.
pub(crate) fn read_arrivals(arrivals: &mut Arrivals, files: &dyn Files) -> Result<(), AtKey> {
    let Some(given) = arrivals.trace.take() else { return Ok(()) };
    let (is_table, table) = match given {
        MeasuredArrivals::File(file) => (false, ArrivalTable { file: Some(file), ..ArrivalTable::default() }),
        MeasuredArrivals::Table(table) => (true, table),
    };
    let ArrivalTable { file, name, data, .. } = table;
    let (key, what, example) = ("arrivals.trace", "a trace", "arrivals.csv");
    let text = Source { key, what, example, file, is_table, name, data }.read(|name| files.read(name))?;
    let read = Arc::new(trace(&text.data).map_err(|refusal| text.refusal(refusal))?);
    let table = ArrivalTable { file: None, name: text.name, data: Some(text.data), read: Some(read) };
    arrivals.trace = Some(MeasuredArrivals::Table(table));
    Ok(())
}

/// Reads the distribution that a group's sizes name; a problem comes with its key.
pub(crate) fn read_sizes(sizes: &mut Sizes, files: &dyn Files) -> Result<(), AtKey> {
    let (is_table, table) = match sizes.cdf.take() {
        Some(SizeCdf::File(file)) => (false, CdfTable { file: Some(file), ..CdfTable::default() }),
        Some(SizeCdf::Table(table)) => (true, table),
        published => {
            sizes.cdf = published;
            return Ok(());
        }
    };
    let CdfTable { file, name, format, data, .. } = table;
    let (key, what, example) = ("sizes.cdf", "a distribution", "sizes.csv");
    let text = Source { key, what, example, file, is_table, name, data }.read(|name| files.read(name))?;
    let format = match format {
        Some(format) => format,
        None if text.is_csv() => CdfFormat::Csv,
        None if text.name.is_some() => CdfFormat::Columns,
        None => {
            let needed = "a distribution given as `data` needs a format = \"csv\" or \"columns\"";
            return Err((format!("{key}.format"), needed.into()));
        }
    };
    let read = Arc::new(distribution(&text.data, format).map_err(|refusal| text.refusal(refusal))?);
    let (name, data) = (text.name, Some(text.data));
    sizes.cdf =
        Some(SizeCdf::Table(CdfTable { file: None, name, format: Some(format), data, read: Some(read) }));
    Ok(())
}

/// Reads the packets that a group replays; a problem comes with its key.
pub(crate) fn read_replay(replay: &mut Option<ReplayedPackets>, files: &dyn Files) -> Result<(), AtKey> {
    let Some(given) = replay.take() else { return Ok(()) };
    let (is_table, table) = match given {
        ReplayedPackets::File(file) => (false, ReplayTable { file: Some(file), ..ReplayTable::default() }),
        ReplayedPackets::Table(table) => (true, table),
    };
    let ReplayTable { file, name, from, to, data, .. } = table;
    let (key, what, example) = ("replay", "a capture", "uplink.pcapng");
    let is_capture = file.as_ref().is_some_and(|file| !is_csv(file));
    if let Some(inner) =
        [("from", from.is_some()), ("to", to.is_some())].into_iter().find(|(_, given)| *given)
        && !is_capture
    {
        let text =
            "only of a capture is a part taken; leave this key out, and write the packets that you want";
        return Err((format!("{key}.{}", inner.0), text.into()));
    }
    let from = from.unwrap_or_default();
    if let Some(to) = to.filter(|&to| to <= from) {
        return Err((
            format!("{key}.to"),
            format!("no packet comes from {from} to {to}; choose a later time"),
        ));
    }
    let fetch = |name: &str| if is_capture { files.read_capture(name, from, to) } else { files.read(name) };
    let text = Source { key, what, example, file, is_table, name, data }.read(fetch)?;
    let read = Arc::new(packets(&text.data).map_err(|refusal| text.refusal(refusal))?);
    let (name, data) = (text.name, Some(text.data));
    *replay = Some(ReplayedPackets::Table(ReplayTable {
        file: None,
        name,
        from: None,
        to: None,
        data,
        read: Some(read),
    }));
    Ok(())
}

/// The names of a column of codepoints.
const CODEPOINTS: csv::Column = &[("dscp", 1.0)];

/// Reads a header that names a time and a size, and may name a codepoint, then these in each line.
fn packets(text: &str) -> Result<PacketTrace, Refusal> {
    let mut lines = csv::lines(text);
    let Some((first, header)) = lines.next() else {
        let text = "is empty: write a header, time_s,size_B,dscp, then in each line when a packet is sent, its size and codepoint";
        return Err((1, text.into()));
    };
    let with_codepoints = csv::units(header, [TIMES, SIZES, CODEPOINTS]);
    let Some([time_unit, size_unit]) =
        with_codepoints.map(|[time, size, _]| [time, size]).or(csv::units(header, [TIMES, SIZES]))
    else {
        let hint = csv::nearest(header, &[TIMES, SIZES, CODEPOINTS]);
        let text = format!(
            "`{}`: the first line names a time (time_s or time_ms), a size (size_B, size_kB or size_MB) and, where packets have one \
             of their own, dscp, such as time_s,size_B,dscp{hint}",
            shortened(header)
        );
        return Err((first, text));
    };
    let mut packets: Vec<TracedPacket> = Vec::new();
    let mut before = Duration::ZERO;
    let mut last = first;
    for (number, line) in lines {
        let refuse = |text: String| (number, text);
        let [time, size, codepoint] = if with_codepoints.is_some() {
            csv::values(line, "a time, a size and a codepoint").map_err(refuse)?
        } else {
            let [time, size] = csv::values(line, "a time and a size").map_err(refuse)?;
            [time, size, ""]
        };
        let at = Duration::from_nanos(csv::scaled(time, time_unit).map_err(refuse)?);
        if at < before {
            return Err(refuse(format!("{at} comes after {before}, but times do not go back")));
        }
        let bytes = csv::scaled(size, size_unit).map_err(refuse)?;
        let Some(size) = u16::try_from(bytes).ok().filter(|size| *size > 0) else {
            return Err(refuse(format!("`{}`: a packet has 1 to 65535 bytes, not {bytes}", shortened(line))));
        };
        let dscp = if with_codepoints.is_some() {
            let dscp = codepoint.trim().parse().ok().and_then(Dscp::new);
            let text = || format!("`{}` is no codepoint: write a number from 0 to 63", shortened(codepoint));
            Some(dscp.ok_or_else(|| refuse(text()))?)
        } else {
            None
        };
        before = at;
        last = number;
        packets.push(TracedPacket { at, size, dscp });
    }
    let text = "has no row: write a line for each packet after the header";
    PacketTrace::new(packets).ok_or_else(|| (last, text.into()))
}

/// Reads a header that names a time, or a time and a size, then these in each line.
fn trace(text: &str) -> Result<ArrivalTrace, Refusal> {
    let mut lines = csv::lines(text);
    let Some((first, header)) = lines.next() else {
        let text =
            "is empty: write a header, time_s,size_B, then in each line when a flow begins and what it sends";
        return Err((1, text.into()));
    };
    let with_sizes = csv::units(header, [TIMES, SIZES]);
    let Some(time_unit) = with_sizes.map(|[time, _]| time).or(csv::units(header, [TIMES]).map(|[time]| time))
    else {
        let hint = csv::nearest(header, &[TIMES, SIZES]);
        let text = format!(
            "`{}`: the first line names a time (time_s or time_ms) and, where the file has them, a size (size_B, size_kB or \
             size_MB), such as time_s,size_B{hint}",
            shortened(header)
        );
        return Err((first, text));
    };
    let mut flows: Vec<Listed> = Vec::new();
    let mut before = Duration::ZERO;
    for (number, line) in lines {
        let refuse = |text: String| (number, text);
        let (time, size) = if let Some([_, unit]) = with_sizes {
            let [time, size] = csv::values(line, "a time and a size").map_err(refuse)?;
            (time, csv::scaled(size, unit).map_err(refuse)?)
        } else {
            let [time] = csv::values(line, "a time").map_err(refuse)?;
            (time, 0)
        };
        if size == 0 && with_sizes.is_some() {
            return Err(refuse(format!("`{}`: this flow sends nothing; leave it out", shortened(line))));
        }
        let at = Duration::from_nanos(csv::scaled(time, time_unit).map_err(refuse)?);
        if at < before {
            return Err(refuse(format!("{at} comes after {before}, but times do not go back")));
        }
        before = at;
        flows.push(Listed(at, Bytes::new(size)));
    }
    if flows.is_empty() {
        return Err((first, "has no row: write a line for each flow after the header".into()));
    }
    Ok(match with_sizes {
        Some(_) => ArrivalTrace::Flows(flows),
        None => ArrivalTrace::Times(flows.iter().map(|&Listed(at, _)| at).collect()),
    })
}

/// The columns of a probability: names, and what is 1 there.
const PROBABILITIES: csv::Column = &[("probability", 1.0), ("percent", 100.0)];

/// Returns the unit of sizes and the probability of all flows, as a header names them. Where there is none,
/// the last probability says whether they are in percent.
fn size_and_probability(header: &str) -> Result<[f64; 2], String> {
    csv::units(header, [SIZES, PROBABILITIES]).ok_or_else(|| {
        let hint = csv::nearest(header, &[SIZES, PROBABILITIES]);
        format!(
            "`{}`: the first line names a size (size_B, size_kB or size_MB) and a probability (probability or percent), such as \
             size_B,probability{hint}",
            shortened(header)
        )
    })
}

/// Reads a size and the probability of flows that are no larger in each line.
fn distribution(text: &str, format: CdfFormat) -> Result<Cdf, Refusal> {
    let mut lines = csv::lines(text).peekable();
    let Some(&(first, header)) = lines.peek() else {
        let text = "is empty: write a size and the probability of flows that are no larger in each line";
        return Err((1, text.into()));
    };
    let (unit, certain) = match format {
        CdfFormat::Columns => (1.0, None),
        CdfFormat::Csv => {
            lines.next();
            let [size, certain] = size_and_probability(header).map_err(|text| (first, text))?;
            (size, Some(certain))
        }
    };
    let mut points: Vec<[f64; 2]> = Vec::new();
    let mut last = first;
    for (number, line) in lines {
        let refuse = |text: String| (number, text);
        let what = "a size and a probability";
        let values: [&str; 2] = match format {
            CdfFormat::Csv => csv::values(line, what),
            CdfFormat::Columns => csv::exactly(line.split_whitespace().collect(), line, what),
        }
        .map_err(refuse)?;
        let [size, probability] = values.map(csv::number);
        let (size, probability) = (size.map_err(refuse)?, probability.map_err(refuse)?);
        let falls = points.last().filter(|[bytes, p]| size * unit < *bytes || probability < *p);
        if let Some([bytes, p]) = falls {
            let before = format!("{} {p}", bytes / unit);
            let text =
                format!("`{}` follows {before}: neither sizes nor probabilities may fall", shortened(line));
            return Err(refuse(text));
        }
        if points.is_empty() && probability != 0.0 {
            let text = format!(
                "the first probability is {probability}: a distribution begins with the probability 0"
            );
            return Err(refuse(text));
        }
        points.push([size * unit, probability]);
        last = number;
    }
    let Some(&[_, end]) = points.last() else {
        return Err((
            last,
            "has no row: write a size and a probability in each line after the header".into(),
        ));
    };
    let is_certain = certain.map_or(end == 1.0 || end == 100.0, |certain| certain == end);
    if !is_certain {
        let expected = certain.map_or("1, or 100 in percent".into(), |certain| certain.to_string());
        return Err((last, format!("the last probability is {end}, not {expected}; was the file cut off?")));
    }
    for [_, probability] in &mut points {
        *probability /= end;
    }
    Cdf::through(&points).map_err(|text| (last, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_nanos(micros * 1000)
    }

    #[test]
    fn arrivals_by_hand() {
        let times = ArrivalTrace::Times([0, 500, 500, 1_250_000].map(micros).to_vec());
        assert_eq!(trace("# of a day\ntime_ms\n0\n0.5\n\n0.5\r\n1250\n"), Ok(times));
        let flows =
            [(2_000_000, 1500), (3_000_000, 1)].map(|(at, size)| Listed(micros(at), Bytes::new(size)));
        assert_eq!(trace("\u{feff}time_s,size_kB\n2, 1.5\n3,0.001"), Ok(ArrivalTrace::Flows(flows.to_vec())));
    }

    #[test]
    fn each_problem_of_arrivals_has_its_line() {
        for (text, line, part) in [
            ("", 1, "is empty: write a header, time_s,size_B"),
            ("# nothing\n", 1, "is empty"),
            ("0.5\n1\n", 1, "`0.5`: the first line names a time (time_s or time_ms)"),
            ("time_S\n1\n", 1, "did you mean `time_s`?"),
            ("size_B,time_s\n1,1\n", 1, "the first line names a time"),
            ("time_s,size_B,flow\n1,1,1\n", 1, "the first line names a time"),
            ("time_s\n", 1, "has no row"),
            ("time_s\n2\n# noon\n1.5\n", 4, "1.5s comes after 2s, but times do not go back"),
            ("time_s\n1\nsoon\n", 3, "`soon` is not a number"),
            ("time_s\n-1\n", 2, "`-1` is below 0"),
            ("time_s\n1e300\n", 2, "`1e300` is too large"),
            ("time_s\n1,500\n", 2, "`1,500` has 2 values, not a time"),
            ("time_s,size_B\n1,500\n2\n", 3, "`2` has 1 value, not a time and a size; was the line cut off?"),
            ("time_s,size_B\n1,0.4\n", 2, "`1,0.4`: this flow sends nothing"),
            ("time_s,size_B\n1,\n", 2, "`` is not a number"),
        ] {
            let (at, problem) = trace(text).unwrap_err();
            assert!(at == line && problem.contains(part), "{text:?}: {at}: {problem}");
        }
    }

    #[test]
    fn packets_by_hand() {
        let packet = |at, size, dscp: Option<u8>| TracedPacket {
            at: micros(at),
            size,
            dscp: dscp.map(|dscp| Dscp::new(dscp).unwrap()),
        };
        let expected = PacketTrace::new(vec![packet(0, 1500, None), packet(1500, 40, None)]);
        assert_eq!(packets("time_ms,size_B\n0,1500\n# later\n1.5,40\n").ok(), expected);
        let expected = PacketTrace::new(vec![packet(0, 1500, Some(46)), packet(1, 40, Some(0))]);
        assert_eq!(packets("time_s, size_kB, dscp\r\n0,1.5,46\r\n0.000001,0.04,0").ok(), expected);
    }

    #[test]
    fn each_problem_of_packets_has_its_line() {
        for (text, line, part) in [
            ("", 1, "is empty: write a header, time_s,size_B,dscp"),
            ("0,1500\n", 1, "`0,1500`: the first line names a time"),
            ("time_s,size_B,dcsp\n", 1, "did you mean `dscp`?"),
            ("time_s,size_B\n", 1, "has no row"),
            ("time_s,size_B\n2,40\n1,40\n", 3, "1s comes after 2s, but times do not go back"),
            ("time_s,size_B\n2,0\n", 2, "`2,0`: a packet has 1 to 65535 bytes, not 0"),
            ("time_s,size_kB\n2,70\n", 2, "a packet has 1 to 65535 bytes, not 70000"),
            ("time_s,size_B\n2\n", 2, "`2` has 1 value, not a time and a size; was the line cut off?"),
            ("time_s,size_B,dscp\n2,40\n", 2, "not a time, a size and a codepoint; was the line cut off?"),
            ("time_s,size_B,dscp\n2,40,64\n", 2, "`64` is no codepoint: write a number from 0 to 63"),
            ("time_s,size_B,dscp\n2,40,EF\n", 2, "`EF` is no codepoint"),
        ] {
            let (at, problem) = packets(text).unwrap_err();
            assert!(at == line && problem.contains(part), "{text:?}: {at}: {problem}");
        }
    }

    #[test]
    fn distributions_by_hand() {
        let expected = Cdf::through(&[[0.0, 0.0], [10e3, 0.15], [30e6, 1.0]]);
        for (text, format) in [
            ("0 0\n10000 0.15\n30000000 1\n", CdfFormat::Columns),
            ("0     0\n10000\t15\n30000000 100", CdfFormat::Columns),
            ("size_B,probability\n0,0\n1e4,0.15\n30000000,1\n", CdfFormat::Csv),
            ("# of a cluster\nsize_kB, percent\n0, 0\n10, 15\n30000, 100\n", CdfFormat::Csv),
        ] {
            assert_eq!(distribution(text, format).map_err(|(_, text)| text), expected, "{text}");
        }
    }

    #[test]
    fn each_problem_of_a_distribution_has_its_line() {
        let (columns, csv) = (CdfFormat::Columns, CdfFormat::Csv);
        for (format, text, line, part) in [
            (columns, "", 1, "is empty: write a size"),
            (csv, "# nothing\n", 1, "is empty"),
            (csv, "size_B,probability\n", 1, "has no row"),
            (csv, "0,0\n9,1\n", 1, "`0,0`: the first line names a size"),
            (csv, "size_B,probabilty\n0,0\n9,1\n", 1, "did you mean `probability`?"),
            (
                columns,
                "0 0\n10 0.5\n8 1\n",
                3,
                "`8 1` follows 10 0.5: neither sizes nor probabilities may fall",
            ),
            (columns, "0 0\n10 0.5\n18 0.4\n20 1\n", 3, "`18 0.4` follows 10 0.5"),
            (csv, "size_kB,percent\n0,0\n10,50\n8,100\n", 4, "`8,100` follows 10 50"),
            (
                columns,
                "10 0.5\n20 1\n",
                1,
                "the first probability is 0.5: a distribution begins with the probability 0",
            ),
            (
                columns,
                "0 0\n10 0.5\n20 0.97\n",
                3,
                "the last probability is 0.97, not 1, or 100 in percent; was the file cut off?",
            ),
            (columns, "0 0\n10 50\n20 97\n", 3, "the last probability is 97, not 1, or 100 in percent"),
            (csv, "size_B,percent\n0,0\n20,1\n", 3, "the last probability is 1, not 100"),
            (csv, "size_B,probability\n0,0\n20,100\n", 3, "the last probability is 100, not 1"),
            (columns, "0 0\n10 1 1\n", 2, "`10 1 1` has 3 values, not a size and a probability"),
            (
                columns,
                "0 0\n10\n",
                2,
                "`10` has 1 value, not a size and a probability; was the line cut off?",
            ),
            (columns, "0 0\nten 1\n", 2, "`ten` is not a number"),
            (columns, "0 0\n10 nan\n", 2, "`nan` is not a number"),
            (columns, "-1 0\n10 1\n", 1, "`-1` is below 0"),
        ] {
            let (at, problem) = distribution(text, format).unwrap_err();
            assert!(at == line && problem.contains(part), "{text:?}: {at}: {problem}");
        }
        assert_eq!(distribution("0 0\n", columns).unwrap_err().0, 1, "one point is no distribution");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_has_a_problem_of_one_line(
            lines in prop::collection::vec(
                "time_(s|ms)|time_s,size_(k|M)?B(,dscp)?|size_B,(probability|percent)|[0-9]{1,3}( |,)[0-9.]{1,4}|[0-9.e+-]{1,6}|.{0,6}",
                0..9,
            ),
        ) {
            let text = lines.join("\n");
            let refused = [
                trace(&text).err(),
                packets(&text).err(),
                distribution(&text, CdfFormat::Csv).err(),
                distribution(&text, CdfFormat::Columns).err(),
            ];
            for (line, problem) in refused.into_iter().flatten() {
                prop_assert!((1..=text.lines().count().max(1)).contains(&line), "{}: {}", line, problem);
            }
        }
    }
}

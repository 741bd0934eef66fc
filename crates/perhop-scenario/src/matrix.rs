//! Measured traffic matrices in CSV.

use perhop_core::Bitrate;

use crate::csv::{self, RATES};
use crate::error::{Problem, at_flow};
use crate::files::Files;
use crate::format::{Demand, Lines, Scenario};
use crate::text::{Refusal, shortened};

/// The most rows of a measured matrix.
const MOST_DEMANDS: usize = 1_000_000;

/// A matrix, as a file has it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) demands: Vec<Demand>,
    pub(crate) lines: Lines,
}

/// Reads the matrices that the scenario names.
pub(crate) fn read_matrices(scenario: &mut Scenario, files: &dyn Files) -> Result<(), Problem> {
    for (number, group) in scenario.flows.iter_mut().enumerate() {
        let Some(between) = &mut group.between else { continue };
        let Some(file) = between.file.take() else { continue };
        let at = |key: &str, text: String| Problem::at(at_flow(number, &format!("between.{key}")), text);
        if !between.demands.is_empty() {
            return Err(at("demands", "the demands are those of `file`: leave one of the two out".into()));
        }
        if between.name.is_some() {
            return Err(at("name", "a matrix from a file has the file's name: leave this key out".into()));
        }
        let text = files.read(&file).map_err(|text| at("file", text))?;
        let matrix = read(&text).map_err(|(line, text)| at("file", format!("{file}:{line}: {text}")))?;
        (between.demands, between.lines) = (matrix.demands, matrix.lines);
        between.name = Some(file);
    }
    Ok(())
}

/// Reads a header, then two routers and a rate in each line. Names may be in quotes; lines that begin with
/// `#` are comments.
pub(crate) fn read(text: &str) -> Result<Matrix, Refusal> {
    let mut lines = csv::lines(text);
    let form = "write a header, from,to,rate_Mbps, then two routers and a rate in each line";
    let Some((first, header)) = lines.next() else { return Err((1, format!("is empty: {form}"))) };
    let columns = csv::fields(header).map_err(|text| (first, text))?;
    let unit = match &columns[..] {
        [from, to, rate] if from == "from" && to == "to" => RATES.iter().find(|(name, _)| name == rate),
        _ => None,
    };
    let Some(&(_, unit)) = unit else {
        let text = "the first line is from,to and a rate: rate_bps, rate_kbps or rate_Mbps";
        return Err((first, format!("`{}`: {text}", shortened(header))));
    };
    let mut found = Matrix::default();
    let mut last = first;
    for (number, line) in lines {
        let fields = csv::fields(line).map_err(|text| (number, text))?;
        let Ok([from, to, rate]) = <[_; 3]>::try_from(fields) else {
            let text = "is not two routers and a rate; was the line cut off, or does a name with a comma lack its quotes?";
            return Err((number, format!("`{}` {text}", shortened(line))));
        };
        let value =
            rate.parse::<f64>().ok().map(|rate| rate * unit).filter(|rate| (0.0..1e15).contains(rate));
        let Some(bps) = value else { return Err((number, format!("`{}` is no rate", shortened(&rate)))) };
        if let Ok(rate) = Bitrate::from_bps((bps + 0.5) as u64) {
            found.demands.push(Demand { from, to, rate });
            found.lines.of_demands.push(number);
        } else {
            found.lines.idle.push((number, [from, to]));
        }
        if found.demands.len() > MOST_DEMANDS {
            return Err((number, format!("more than {MOST_DEMANDS} pairs of routers")));
        }
        last = number;
    }
    if found.demands.is_empty() { Err((last, format!("no rate is above 0: {form}"))) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demand(from: &str, to: &str, rate: &str) -> Demand {
        Demand { from: from.into(), to: to.into(), rate: rate.parse().unwrap() }
    }

    #[test]
    fn matrices_in_csv() {
        let text = "# a day in May\nfrom,to,rate_Mbps\na,b,1.5\nb, a ,0\nb,c,2\n";
        let matrix = read(text).unwrap();
        assert_eq!(matrix.demands, [demand("a", "b", "1500kbps"), demand("b", "c", "2Mbps")]);
        assert_eq!(matrix.lines.of_demands, [3, 5]);
        assert_eq!(matrix.lines.idle, [(4, ["b".into(), "a".into()])]);
        // As spreadsheets write it.
        assert_eq!(read(&format!("\u{feff}{text}")), Ok(matrix));
        let quoted = "\"from\",\"to\",\"rate_kbps\"\r\n\"Washington, DC\", \"the \"\"Hub\"\"\" ,3\r\n\"#1\",5\" pipe,\"4\"\r\n";
        let demands = [demand("Washington, DC", "the \"Hub\"", "3kbps"), demand("#1", "5\" pipe", "4kbps")];
        assert_eq!(read(quoted).unwrap().demands, demands);
    }

    #[test]
    fn each_problem_has_its_line() {
        for (text, line, part) in [
            ("", 1, "is empty"),
            ("from,to,rate\n", 1, "`from,to,rate`: the first line is from,to and a rate"),
            ("a,b,1\n", 1, "the first line is"),
            ("from,to,rate_bps\na,b\n", 2, "was the line cut off"),
            ("from,to,rate_bps\nWashington, DC,b,1\n", 2, "does a name with a comma lack its quotes?"),
            ("from,to,rate_bps\na,b,-1\n", 2, "`-1` is no rate"),
            ("from,to,rate_bps\na,b,nan\n", 2, "`nan` is no rate"),
            ("from,to,rate_bps\na,b,0\n", 2, "no rate is above 0"),
            ("from,to,rate_bps\n\na,\"b,1\n", 3, "a quote is not closed"),
            ("from,to,rate_bps\n\"a\"b,c,1\n", 2, "`b` follows a closing quote"),
        ] {
            let (at, problem) = read(text).unwrap_err();
            assert!(at == line && problem.contains(part), "{text:?}: {at}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn names_come_back_from_quotes(names in ["[a-z,\" #é]{1,8}", "[a-z,\" #é]{1,8}"]) {
            let [from, to] = names.each_ref().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
            let matrix = read(&format!("from,to,rate_bps\n{from},{to},8\n")).unwrap();
            prop_assert_eq!(matrix.demands, [demand(&names[0], &names[1], "8bps")]);
        }
    }
}

//! CSV: a header that names quantities with their units, then their values in each line. Lines that begin
//! with `#` are comments.

use crate::error::did_you_mean;
use crate::text::{shortened, unmarked};

/// The names that a column may have, and what its numbers are multiplied with.
pub(crate) type Column = &'static [(&'static str, f64)];

/// Times, to nanoseconds.
pub(crate) const TIMES: Column = &[("time_s", 1e9), ("time_ms", 1e6)];
/// Rates, to bit/s.
pub(crate) const RATES: Column = &[("rate_bps", 1.0), ("rate_kbps", 1e3), ("rate_Mbps", 1e6)];
/// Sizes, to bytes.
pub(crate) const SIZES: Column = &[("size_B", 1.0), ("size_kB", 1e3), ("size_MB", 1e6)];

/// No number is larger.
const MOST: f64 = 1e18;

/// Returns the lines of a text that are not empty and no comments, with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = unmarked(text).lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the units of these columns, as a header names them; `None` if it names others.
pub(crate) fn units<const N: usize>(header: &str, columns: [Column; N]) -> Option<[f64; N]> {
    let mut units = [0.0; N];
    let mut names = header.split(',').map(str::trim);
    for (unit, column) in units.iter_mut().zip(columns) {
        let name = names.next()?;
        *unit = column.iter().find(|(known, _)| *known == name)?.1;
    }
    names.next().is_none().then_some(units)
}

/// Returns a hint for a header with a name that is none of these.
pub(crate) fn nearest(header: &str, columns: &[Column]) -> String {
    let known = || columns.iter().flat_map(|column| column.iter().map(|(name, _)| *name));
    let mut names = header.split(',').map(str::trim);
    let unknown = names.find(|name| !known().any(|known| known == *name));
    unknown.map_or_else(String::new, |name| did_you_mean(name, known()))
}

/// Returns the values of a line.
pub(crate) fn values<'a, const N: usize>(line: &'a str, what: &str) -> Result<[&'a str; N], String> {
    exactly(line.split(',').collect(), line, what)
}

/// Returns the values of a line, as many as there should be.
pub(crate) fn exactly<'a, const N: usize>(
    values: Vec<&'a str>,
    line: &str,
    what: &str,
) -> Result<[&'a str; N], String> {
    values.try_into().map_err(|values: Vec<&str>| {
        let count = values.len();
        let plural = if count == 1 { "value" } else { "values" };
        let cut = if count < N { "; was the line cut off?" } else { "" };
        format!("`{}` has {count} {plural}, not {what}{cut}", shortened(line))
    })
}

/// Returns the values of a line, some of which may be in quotes (RFC 4180, section 2): there a comma is part
/// of the value, and two quotes are one.
pub(crate) fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = Some(line);
    while let Some(text) = rest {
        let text = text.trim_start();
        let after = if let Some(inner) = text.strip_prefix('"') {
            let (value, after) = quoted(inner)
                .ok_or_else(|| format!("`{}`: a quote is not closed in this line", shortened(text)))?;
            fields.push(value);
            after
        } else {
            let end = text.find(',').unwrap_or(text.len());
            fields.push(text[..end].trim_end().into());
            &text[end..]
        };
        let (between, next) =
            after.split_once(',').map_or((after, None), |(between, next)| (between, Some(next)));
        if !between.trim().is_empty() {
            return Err(format!(
                "`{}` follows a closing quote; a quote within quotes is written twice",
                shortened(between)
            ));
        }
        rest = next;
    }
    Ok(fields)
}

/// Returns the value up to the closing quote, and what follows it; `None` without one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"')?;
        value.push_str(part);
        let Some(more) = after.strip_prefix('"') else { return Some((value, after)) };
        value.push('"');
        rest = more;
    }
}

/// Reads a number that is not below 0.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    let Some(value) = value else { return Err(format!("`{}` is not a number", shortened(text))) };
    if value < 0.0 { Err(format!("`{text}` is below 0")) } else { Ok(value) }
}

/// Reads a number, and returns it times its unit, rounded.
pub(crate) fn scaled(text: &str, unit: f64) -> Result<u64, String> {
    let scaled = number(text)? * unit + 0.5;
    if scaled < MOST { Ok(scaled as u64) } else { Err(format!("`{}` is too large", shortened(text.trim()))) }
}

//! Drop curves: the drop probability over the average queue length.

use std::fmt;
use std::str::FromStr;

use super::text::{parts, text_serde};
use super::thresholds::{NUMBER, PACKETS, Point, RAMP, SIZES, unit_of};
use super::{Probability, Thresholds, Unit, UnitError};

/// A drop curve: `min/max/max_p` as [`Thresholds`], or points `fill/probability`.
///
/// `interpolate 30/0, 60/0.1, 90/0.5` has a straight line between two points; below the first one nothing is
/// dropped, from the last one on everything. `segmented 50/0.1, 80/0.4` has steps: a probability holds from
/// its fill to the next one, and the last one up to the queue's limit. Fills are all in packets or all in
/// bytes (Junos, "Configuring RED Drop Profiles").
#[derive(Clone, Debug, PartialEq)]
pub enum DropCurve {
    /// From 0 at min to `max_p` at max; all is dropped above.
    Ramp(Thresholds),
    /// Straight lines between points.
    Interpolate(Points),
    /// Steps.
    Segmented(Points),
}

/// Points of a drop curve: at least one; fills rise, and probabilities do not fall.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    fills: Vec<(u64, Probability)>,
    unit: Unit,
}

const INTERPOLATE: &str = "interpolate";
const SEGMENTED: &str = "segmented";

impl Points {
    /// These points of a queue that is measured in `unit`.
    ///
    /// # Errors
    /// No point, fills that do not rise, or probabilities that fall.
    pub fn new(fills: Vec<(u64, Probability)>, unit: Unit) -> Result<Self, UnitError> {
        if fills.is_empty() {
            return Err(UnitError::new("a curve has at least one point fill/probability"));
        }
        for pair in fills.windows(2) {
            let [(fill, p), (next, q)] = [pair[0], pair[1]];
            if next <= fill {
                let text = format!("fill {next} does not rise above {fill} before it; write rising fills");
                return Err(UnitError::new(text));
            }
            if q < p {
                let text =
                    format!("probability {} is below {} before it; it must not fall", q.get(), p.get());
                return Err(UnitError::new(text));
            }
        }
        Ok(Self { fills, unit })
    }

    /// Fill and probability of each, by fill.
    pub fn iter(&self) -> impl Iterator<Item = (f64, f64)> {
        self.fills.iter().map(|(fill, p)| (*fill as f64, p.get()))
    }
}

impl DropCurve {
    /// What the fills count.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Ramp(set) => set.unit(),
            Self::Interpolate(points) | Self::Segmented(points) => points.unit,
        }
    }

    /// The fill from which on the probability may be above 0; none if it never is.
    pub fn start(&self) -> Option<f64> {
        match self {
            Self::Ramp(set) => Some(set.min()),
            Self::Interpolate(points) => {
                let zeros = points.iter().take_while(|(_, p)| *p == 0.0);
                zeros.last().or_else(|| points.iter().next()).map(|(fill, _)| fill)
            }
            Self::Segmented(points) => points.iter().find(|(_, p)| *p > 0.0).map(|(fill, _)| fill),
        }
    }

    /// The last fill at which the curve bends.
    pub fn end(&self) -> f64 {
        match self {
            Self::Ramp(set) => set.max(),
            Self::Interpolate(points) | Self::Segmented(points) => {
                points.iter().last().map_or(0.0, |(fill, _)| fill)
            }
        }
    }
}

impl From<Thresholds> for DropCurve {
    fn from(set: Thresholds) -> Self {
        Self::Ramp(set)
    }
}

impl FromStr for DropCurve {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        for (word, make) in [
            (INTERPOLATE, Self::Interpolate as fn(Points) -> Self),
            (SEGMENTED, Self::Segmented as fn(Points) -> Self),
        ] {
            if let Some(listed) = text.strip_prefix(word) {
                return read_points(text, listed).map(make);
            }
        }
        text.parse().map(Self::Ramp).map_err(|problem: UnitError| {
            let problem = problem.to_string();
            let shape = problem.contains("write min/max/max_p, such as");
            let others = "; or points, such as interpolate 30/0, 60/0.1, 90/0.5 or segmented 50/0.1, 80/0.4";
            UnitError::new(if shape { format!("{problem}{others}") } else { problem })
        })
    }
}

fn read_points(text: &str, listed: &str) -> Result<Points, UnitError> {
    let shape = || {
        let form = "interpolate 30/0, 60/0.1, 90/0.5 or segmented 50kB/0.1, 80kB/0.4";
        UnitError::new(format!("`{text}`: write points fill/probability, such as {form}"))
    };
    let Some(listed) = listed.strip_prefix(' ') else { return Err(shape()) };
    let points = parts(listed.trim_start_matches(' '), ",")
        .map(|point| Point::read(text, point, &shape))
        .collect::<Result<Vec<_>, _>>()?;
    let unit = unit_of(points.iter().map(|point| point.fill))
        .ok_or_else(|| UnitError::new(format!("`{text}`: fills must all be packets or all be bytes")))?;
    let fills = points.iter().map(|point| (point.number(), point.p)).collect();
    Points::new(fills, unit).map_err(|problem| UnitError::new(format!("`{text}`: {problem}")))
}

impl fmt::Display for DropCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, points) = match self {
            Self::Ramp(set) => return set.fmt(f),
            Self::Interpolate(points) => (INTERPOLATE, points),
            Self::Segmented(points) => (SEGMENTED, points),
        };
        f.write_str(word)?;
        for (number, &(fill, p)) in points.fills.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            match points.unit {
                Unit::Packets => write!(f, "{comma} {fill}/{}", p.get())?,
                Unit::Bytes => write!(f, "{comma} {}/{}", super::Bytes(fill), p.get())?,
            }
        }
        Ok(())
    }
}

text_serde!(DropCurve, "text min/max/max_p, or points", curve_pattern(), "interpolate 30/0, 60/0.1, 90/0.5");

fn curve_pattern() -> String {
    let listed = |fill: &str| format!("{fill} */ *{NUMBER}( *, *{fill} */ *{NUMBER})*");
    let (packets, sizes) = (listed(&PACKETS), listed(SIZES));
    format!("^({}|({INTERPOLATE}|{SEGMENTED}) +({packets}|{sizes}))$", *RAMP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DropCurve, String> {
        text.parse().map_err(|problem: UnitError| problem.to_string())
    }

    #[test]
    fn a_curve_is_thresholds_or_points() {
        assert_eq!(read("30/90/0.05"), Ok(DropCurve::Ramp("30/90/0.05".parse().unwrap())));
        for text in ["30/90/0.05", "40kB/80kB/0.02", "interpolate 30/0, 60/0.1, 90/0.5", "segmented 50kB/0.1"]
        {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        let spaced = read("interpolate  30p / 0,60 /.1 , 90/5e-1").unwrap();
        assert_eq!(spaced.to_string(), "interpolate 30/0, 60/0.1, 90/0.5");
        assert_eq!((spaced.unit(), spaced.start(), spaced.end()), (Unit::Packets, Some(30.0), 90.0));
        let steps = read("segmented 1.5kB/0, 2kB/0.1, 3kB/0.1").unwrap();
        assert_eq!((steps.unit(), steps.start(), steps.end()), (Unit::Bytes, Some(2000.0), 3000.0));
        let starts = |text: &str| read(text).unwrap().start();
        assert_eq!(starts("interpolate 20/0, 30/0, 60/0.1"), Some(30.0));
        assert_eq!(starts("interpolate 20/0.1, 30/0.2"), Some(20.0));
        assert_eq!((starts("interpolate 20/0, 30/0"), starts("segmented 20/0, 30/0")), (Some(30.0), None));
    }

    #[test]
    fn what_is_no_curve_is_refused_with_what_would_be_one() {
        let why = |text: &str| read(text).unwrap_err();
        assert!(why("30/90").contains("write min/max/max_p, such as"));
        assert!(why("30/90").contains("interpolate 30/0, 60/0.1"));
        assert!(why("90/30/0.1").contains("min 90 is above max 30"));
        for text in [
            "interpolate",
            "interpolate30/0",
            "interpolate ",
            "segmented 30",
            "segmented 30/0,",
            "interpolate 1/+0",
        ] {
            assert!(why(text).contains("write points fill/probability"), "{text}: {}", why(text));
        }
        assert!(why("interpolate 99999999999999999999/0").contains("`99999999999999999999` is too large"));
        assert!(why("interpolate 30/0, 30/0.1").contains("write rising fills"));
        assert!(why("interpolate 30/0.2, 40/0.1").contains("it must not fall"));
        assert!(why("segmented 30/0.2, 40kB/0.3").contains("all be packets or all be bytes"));
        assert!(why("segmented 30/1.5").contains("between 0 and 1"));
        assert!(why("segmented 1.5p/0.5").contains("write points"));
    }
}

//! What a measure is: its unit, how its value comes from an outcome, and how summaries show it.

/// One measure of a flow, a link or a class of packets.
#[derive(Clone, Copy, Debug)]
pub struct Measure<O> {
    /// The name of the measure in dictionaries and data frames. It ends in the unit where that is usual, such
    /// as `mean_rtt_s`.
    pub name: &'static str,
    /// The unit of the measure.
    pub unit: Unit,
    /// What the measure means, in a sentence.
    pub description: &'static str,
    /// How the measure comes from an outcome.
    pub value: Value<O>,
    /// How summaries show it; `None` if only data frames have it.
    pub summary: Option<Summary>,
}

impl<O> Measure<O> {
    /// Declares a measure that only data frames have.
    pub const fn new(name: &'static str, unit: Unit, value: Value<O>) -> Self {
        Self { name, unit, description: "", value, summary: None }
    }

    /// Says what the measure means, in a sentence.
    #[must_use]
    pub const fn meaning(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Shows the measure in summaries, too.
    #[must_use]
    pub const fn shown(self, summary: Summary) -> Self {
        Self { summary: Some(summary), ..self }
    }
}

/// How a measure comes from an outcome, and which values it can have.
#[derive(Clone, Copy, Debug)]
pub enum Value<O> {
    /// A whole number.
    Count(fn(&O) -> u64),
    /// A number that there always is.
    Number(fn(&O) -> f64),
    /// A whole number that some outcomes do not have.
    OptionalCount(fn(&O) -> Option<u64>),
    /// A number that some outcomes do not have.
    Optional(fn(&O) -> Option<f64>),
    /// A whole number for each of green, yellow and red.
    ByColor(fn(&O) -> [u64; 3]),
    /// A whole number for each of green, yellow and red, which some outcomes do not have.
    OptionalByColor(fn(&O) -> Option<[u64; 3]>),
}

impl<O> Value<O> {
    /// Returns the kind's name in the catalogue's JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Count(_) => "count",
            Self::Number(_) => "number",
            Self::OptionalCount(_) => "optional-count",
            Self::Optional(_) => "optional",
            Self::ByColor(_) => "by-color",
            Self::OptionalByColor(_) => "optional-by-color",
        }
    }

    /// Returns the number that an outcome has; the sum over colors where there is one for each. `None` where
    /// it has none.
    pub fn of(&self, outcome: &O) -> Option<f64> {
        let sum = |by_color: [u64; 3]| by_color.into_iter().sum::<u64>() as f64;
        match self {
            Self::Count(of) => Some(of(outcome) as f64),
            Self::Number(of) => Some(of(outcome)),
            Self::OptionalCount(of) => of(outcome).map(|count| count as f64),
            Self::Optional(of) => of(outcome),
            Self::ByColor(of) => Some(sum(of(outcome))),
            Self::OptionalByColor(of) => of(outcome).map(sum),
        }
    }
}

/// How summary tables, sweeps and comparisons show a measure. [`Summary::of`] has defaults for all but its
/// label.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// What tables call it, without its unit.
    pub label: &'static str,
    /// What pages call it, if not the same.
    pub long_label: Option<&'static str>,
    /// What becomes of the values of a class's flows. Links and their classes have one value each.
    pub statistic: Statistic,
    /// Which tables have it as a column.
    pub table: Table,
    /// The greater, the longer a narrow terminal keeps the column.
    pub importance: u8,
    /// The last part of its name in sweeps, if that is not the measure's name.
    pub metric: Option<&'static str>,
    /// How `perhop compare` holds it against real packets; `None` if it does not.
    pub compared: Option<Compared>,
}

impl Summary {
    /// Declares a column of this label in every table; sweeps have the measure under its own name.
    pub const fn of(label: &'static str) -> Self {
        Self {
            label,
            long_label: None,
            statistic: Statistic::Mean,
            table: Table::All(u8::MAX),
            importance: 0,
            metric: None,
            compared: None,
        }
    }

    /// Sets the tables that have the measure as a column, and its importance.
    #[must_use]
    pub const fn at(self, table: Table, importance: u8) -> Self {
        Self { table, importance, ..self }
    }

    /// Has `perhop compare` hold the measure against real packets, under this name and with this margin.
    #[must_use]
    pub const fn compared(self, id: &'static str, margin: &'static str) -> Self {
        Self { compared: Some(Compared { id, margin }), ..self }
    }
}

/// What becomes of the values of a class's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean of the values.
    Mean,
    /// The sum of the values.
    Sum,
    /// The share of all packets of these flows: the mean of the shares of single flows, each with the weight
    /// of the packets that it is of, which are the sum of the measures with these names.
    Share(&'static [&'static str]),
}

/// Which summary tables have a measure as a column, and its place among the columns: the smallest comes
/// first, and of equals the one that is declared first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Table {
    /// None: sweeps have it.
    None,
    /// All of its kind.
    All(u8),
    /// Of a queue's measures, the table of the classes that it distinguishes; not that of links.
    Classes(u8),
    /// All of its kind where they have room for every column (`--wide`); narrower ones only where a flow has
    /// more than this.
    Wide {
        /// The place among the columns.
        place: u8,
        /// The value above which narrower tables show the measure, too.
        above: f64,
    },
}

/// How `perhop compare` holds a measure against real packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The name of the measure in the comparison's results.
    pub id: &'static str,
    /// The margin within which two values count as equal, by its name in `--margin`.
    pub margin: &'static str,
}

/// A measure's unit in dictionaries and data frames. Tables show Mbit/s, ms and %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits a second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// A part of a whole, from 0 to 1.
    Fraction,
    /// Seconds in an hour.
    SecondsPerHour,
    /// None: ratios and counts of events.
    None,
}

impl Unit {
    /// Returns the unit's symbol.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::BitsPerSecond => "bit/s",
            Self::Seconds => "s",
            Self::Packets => "packets",
            Self::Bytes => "B",
            Self::Fraction => "fraction",
            Self::SecondsPerHour => "s/h",
            Self::None => "",
        }
    }
}

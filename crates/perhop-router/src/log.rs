//! What the router says to its user, line by line. To say something never waits: [`Outlet`].

use std::fmt::{self, Display};
use std::io::Write;

use crate::outlet::{self, Outlet};

/// How many lines may wait for a reader.
pub const WAITING: usize = 1024;

/// A line, and whether it is for the standard output or for the standard error.
#[derive(Debug)]
pub enum Line {
    Said(String),
    Warned(String),
}

/// Lines that are not written yet.
pub type Backlog = outlet::Backlog<Line>;

/// Where lines go.
pub type Log = Outlet<Line>;

impl Log {
    /// Says a line.
    pub fn say(&self, line: impl Display) {
        self.put(Line::Said(Plain(line).to_string()));
    }

    /// Says a line of something that is wrong.
    pub fn warn(&self, line: impl Display) {
        self.put(Line::Warned(Plain(line).to_string()));
    }
}

/// Writes lines as they come, where there is somewhere to, and says how many were dropped before.
pub fn write(output: Option<impl Write>, error: Option<impl Write>) -> impl FnMut(Line, u64) {
    let mut reported = 0;
    // Each line is one write, so that none is torn by another's. One who does not listen is no reason to
    // stop.
    let (mut output, mut error) = (writer(output), writer(error));
    move |line, dropped| {
        if dropped > reported {
            let lost = dropped - reported;
            reported = dropped;
            error(&format!("warning: log: {lost} lines dropped: they were not read in time"));
        }
        match line {
            Line::Said(line) => output(&line),
            Line::Warned(line) => error(&line),
        }
    }
}

fn writer(mut to: Option<impl Write>) -> impl FnMut(&str) {
    move |line| {
        let _ = to.as_mut().map(|to| to.write_all(format!("{line}\n").as_bytes()));
    }
}

#[cfg(test)]
impl Backlog {
    /// Returns the lines that wait.
    pub fn lines(self) -> Vec<String> {
        let text = |line| match line {
            Line::Said(line) | Line::Warned(line) => line,
        };
        self.waiting().into_iter().map(text).collect()
    }
}

/// Text without control characters, which could change what a terminal shows; lines stay lines.
struct Plain<T>(T);

impl<T: Display> Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.to_string().chars() {
            if letter.is_control() && letter != '\n' {
                write!(f, "{}", letter.escape_unicode())?;
            } else {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    struct Pipe(mpsc::Sender<String>);

    impl Write for Pipe {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.send(String::from_utf8(text.to_vec()).unwrap()).unwrap();
            Ok(text.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn dropped_lines_are_told_and_control_characters_do_not_pass() {
        let (log, backlog) = Log::new(WAITING);
        (0..WAITING + 5).for_each(|_| log.say("a\u{1b}[2J\nb"));
        let (written, lines) = mpsc::channel();
        backlog.start("log", write(Some(Pipe(written.clone())), Some(Pipe(written)))).unwrap();
        assert!(log.finish(Duration::from_secs(20)));
        log.warn("later");
        assert!(log.finish(Duration::from_secs(20)));
        let lines: Vec<_> = lines.try_iter().collect();
        assert_eq!(lines[0], "warning: log: 5 lines dropped: they were not read in time\n");
        assert_eq!(lines[1], "a\\u{1b}[2J\nb\n");
        assert_eq!(lines.len(), WAITING + 2, "the number is reported once");
        assert_eq!(lines.last().unwrap(), "later\n");
    }
}

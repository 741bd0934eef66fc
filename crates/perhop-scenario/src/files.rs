//! Files that a scenario names. The reader of scenarios does no I/O by itself: its caller says where files
//! come from.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use perhop_core::Duration;

use crate::plugins::Plugins;

/// The most bytes of a text that a scenario names.
pub const MOST_BYTES: u64 = 16_000_000;

/// How the text of a capture begins of which packets are left out: a comment, which says how many.
pub const LEFT_OUT: &str = "# left out: ";

/// Where the files come from that a scenario names, and the classes.
pub trait Files {
    /// Returns the blocks that are implemented outside; by default there are none.
    fn plugins(&self) -> Option<&dyn Plugins> {
        None
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// One line that names the file: why it cannot be read, and what to do.
    fn read(&self, name: &str) -> Result<String, String>;

    /// Reads the packets of a capture as text, in the order of time: a header, `time_s,size_B,dscp`, then
    /// these of each packet of IP. Those before `from` after the first packet and from `to` on are left out;
    /// `from` is time zero. Where others are left out, a line with [`LEFT_OUT`] comes first.
    ///
    /// # Errors
    /// One line that names the file: why it cannot be read, and what to do. By default no captures are read.
    fn read_capture(&self, name: &str, _from: Duration, _to: Option<Duration>) -> Result<String, String> {
        Err(format!(
            "{name}: no capture is read here; write its packets as CSV, time_s,size_B,dscp, in `data`"
        ))
    }
}

/// There are no files.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        Err(format!("{name}: no file is read here; write its text as `data`"))
    }
}

/// Files whose names are relative to a folder.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Takes names as relative to this folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self(if path == Path::new(".") { PathBuf::new() } else { path })
    }

    /// Takes names as relative to the folder of a file.
    pub fn of(file: impl AsRef<Path>) -> Self {
        Self(file.as_ref().parent().map_or_else(PathBuf::new, Path::to_path_buf))
    }

    /// Opens a file in it for reading; also returns what messages call it.
    ///
    /// # Errors
    /// One line that names the file: why it cannot be read, and what to do.
    pub fn open(&self, name: &str) -> Result<(File, String), String> {
        if name.is_empty() {
            return Err("is empty; write the name of a file".into());
        }
        let path = self.0.join(name);
        let problem = |text: &str| format!("{}: {text}", path.display());
        let refused = |error: Error| match error.kind() {
            ErrorKind::NotFound => problem("no such file; names are relative to the scenario's folder"),
            _ => problem(&format!("cannot be read: {error}")),
        };
        // To open a pipe or to read a device could take for ever.
        if !path.metadata().map_err(refused)?.is_file() {
            return Err(problem("is not a regular file"));
        }
        #[expect(clippy::disallowed_methods, reason = "the one place that reads what a scenario names")]
        let file = File::open(&path).map_err(refused)?;
        Ok((file, path.display().to_string()))
    }
}

impl Files for Folder {
    fn read(&self, name: &str) -> Result<String, String> {
        let (file, path) = self.open(name)?;
        let problem = |text: &str| format!("{path}: {text}");
        let mut bytes = Vec::new();
        if let Err(error) = file.take(MOST_BYTES + 1).read_to_end(&mut bytes) {
            return Err(problem(&format!("cannot be read: {error}")));
        }
        if bytes.len() as u64 > MOST_BYTES {
            return Err(problem(&format!("larger than {} MB; take a shorter part", MOST_BYTES / 1_000_000)));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.split(|&byte| byte == b'\n').count();
            format!("{path}:{line}: is not UTF-8 text")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_name() {
        let refused = Folder::new(".").read("").unwrap_err();
        assert_eq!(refused, "is empty; write the name of a file");
    }
}

//! Files that a scenario names. The reader of scenarios does no I/O by itself: whoever calls it says where files come from.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The most bytes of a file that a scenario names.
const MOST_BYTES: u64 = 16_000_000;

/// Where the files come from that a scenario names.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    /// One line that names the file: why it cannot be read, and what to do.
    fn read(&self, name: &str) -> Result<String, String>;
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
    /// This folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self(if path == Path::new(".") { PathBuf::new() } else { path })
    }

    /// The folder of a file.
    pub fn of(file: impl AsRef<Path>) -> Self {
        Self(file.as_ref().parent().map_or_else(PathBuf::new, Path::to_path_buf))
    }
}

impl Files for Folder {
    fn read(&self, name: &str) -> Result<String, String> {
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
            format!("{}:{line}: is not UTF-8 text", path.display())
        })
    }
}

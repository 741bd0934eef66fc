//! The files of a capture.

use perhop_core::Bytes;
use serde::Deserialize;

use super::{Checked, refuse};

/// The files of a capture, written in turn, each up to its limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaptureFiles {
    /// The maximum size of each.
    pub size: Bytes,
    /// How many there are. With one, the capture ends when it is full.
    #[serde(rename = "files")]
    pub count: u16,
    /// Who may read them.
    pub mode: Mode,
}

impl Default for CaptureFiles {
    fn default() -> Self {
        Self { size: Bytes::new(500_000_000), count: 2, mode: Mode::default() }
    }
}

/// Who may read a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// The owner of the file alone.
    #[default]
    #[serde(rename = "0600")]
    Owner,
    /// The owner of the file and its group.
    #[serde(rename = "0640")]
    Group,
}

impl Mode {
    /// Returns the permission bits of the file.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o640,
        }
    }
}

impl CaptureFiles {
    pub(super) fn check(&self) -> Checked {
        if self.size < SMALLEST_FILE {
            let text = format!("a capture file holds at least 1MB, not {}", self.size);
            return refuse("capture.size", text);
        }
        if !(1..=MOST_FILES).contains(&self.count) {
            let text = format!("a capture has 1 to {MOST_FILES} files, not {}", self.count);
            return refuse("capture.files", text);
        }
        Ok(())
    }
}

/// The smallest limit of a capture file: a multiple of what is written at once.
const SMALLEST_FILE: Bytes = Bytes::new(1_000_000);

/// The most files of a capture: all are open at the same time.
const MOST_FILES: u16 = 100;

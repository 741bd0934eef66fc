//! The bytes of a capture file, one after the other, without keeping them.

use std::io::{self, BufRead, BufReader, Read};

/// Reads a file from its beginning to its end. Its memory does not depend on what the file says of its
/// lengths.
#[derive(Debug)]
pub(super) struct Source<R> {
    reader: BufReader<R>,
}

/// Why bytes could not be read.
#[derive(Debug)]
pub(super) enum Short {
    /// The file ends before they do.
    Cut,
    /// The system cannot read it.
    Io(io::Error),
}

impl From<io::Error> for Short {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Cut } else { Self::Io(error) }
    }
}

impl<R: Read> Source<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, reader) }
    }

    /// Returns whether the file is at its end.
    pub(super) fn is_over(&mut self) -> Result<bool, Short> {
        loop {
            match self.reader.fill_buf() {
                Ok(bytes) => return Ok(bytes.is_empty()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the next bytes, as many as there is room for.
    pub(super) fn fill(&mut self, room: &mut [u8]) -> Result<(), Short> {
        Ok(self.reader.read_exact(room)?)
    }

    /// Reads the next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Passes over the next bytes.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), Short> {
        let passed = io::copy(&mut self.reader.by_ref().take(count), &mut io::sink())?;
        if passed == count { Ok(()) } else { Err(Short::Cut) }
    }
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    /// Returns the words of four bytes each.
    pub(super) fn words<const N: usize>(self, bytes: &[u8]) -> [u32; N] {
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = self.u32([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        words
    }
}

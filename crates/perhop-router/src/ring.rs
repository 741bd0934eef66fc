//! Files of limited size, written in turn, that hold whole blocks whatever becomes of a write.
//!
//! All of them are opened before privileges go, and each begins with its header from the start: to turn to
//! the next one is to cut it back to that header, which needs no room on the disk, no permission and no name.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What a file can do.
pub trait Storage {
    /// Writes some of the bytes at that place, and returns how many.
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<usize>;

    /// Cuts it to that length.
    fn set_len(&mut self, length: u64) -> io::Result<()>;
}

impl Storage for File {
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, at)
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        File::set_len(self, length)
    }
}

/// Files that are written in turn.
#[derive(Debug)]
pub struct Ring<S> {
    files: Vec<S>,
    current: usize,
    header: u64,
    limit: u64,
    /// The length of the current file up to the end of its last whole block.
    length: u64,
    /// Whether something may follow behind that.
    torn: bool,
    /// Whether the current file has its end already, and the next one could not be cut.
    ended: bool,
    full: bool,
}

/// What became of blocks.
#[derive(Debug)]
pub struct Appended {
    /// So many of them are in the file.
    pub blocks: usize,
    /// Why the others are not.
    pub error: Option<io::Error>,
}

impl<S: Storage> Ring<S> {
    /// Begins each file with this header, up to the first that cannot be written. None grows beyond the
    /// limit, except by what is appended at once.
    pub fn begin(mut files: Vec<S>, header: &[u8], limit: u64) -> io::Result<Self> {
        for file in &mut files {
            file.set_len(0)?;
            write_all(file, header, 0).1?;
        }
        let length = header.len() as u64;
        Ok(Self { files, current: 0, header: length, limit, length, torn: false, ended: false, full: false })
    }

    /// Returns whether so many more bytes go beyond the limit of the file that is being written.
    pub fn exceeds(&self, more: usize) -> bool {
        self.length + more as u64 > self.limit
    }

    /// Returns whether the only file there is has reached its limit.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Turns to the next file and says whether there is one; `last` is what the one before ends with, if
    /// there is room. Call it again if a file cannot be cut.
    pub fn turn(&mut self, last: &[u8]) -> io::Result<bool> {
        self.repair()?;
        if !self.ended {
            self.append(last, &[last.len()]);
            self.repair()?;
            self.ended = true;
        }
        if self.files.len() == 1 {
            self.full = true;
            return Ok(false);
        }
        let next = (self.current + 1) % self.files.len();
        self.files[next].set_len(self.header)?;
        (self.current, self.length, self.ended) = (next, self.header, false);
        Ok(true)
    }

    /// Appends blocks that end at these places. Those that do not fit in whole are not there.
    pub fn append(&mut self, bytes: &[u8], ends: &[usize]) -> Appended {
        if let Err(error) = self.repair() {
            return Appended { blocks: 0, error: Some(error) };
        }
        let (written, result) = write_all(&mut self.files[self.current], bytes, self.length);
        let blocks = ends.partition_point(|end| *end <= written);
        let whole = blocks.checked_sub(1).map_or(0, |last| ends[last]);
        self.length += whole as u64;
        // A write that fails may have left something, too.
        self.torn = result.is_err();
        let _ = self.repair();
        Appended { blocks, error: result.err() }
    }

    /// Truncates the file behind its last complete block, if a write failed within one. Call it again if it
    /// fails.
    pub fn repair(&mut self) -> io::Result<()> {
        if self.torn {
            self.files[self.current].set_len(self.length)?;
            self.torn = false;
        }
        Ok(())
    }
}

/// Returns how many bytes were written, and why no more.
fn write_all(file: &mut impl Storage, bytes: &[u8], at: u64) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(&bytes[written..], at + written as u64) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Returns the names of so many files: `all.pcapng`, `all.1.pcapng`, `all.2.pcapng`, …
pub fn names(path: &Path, files: usize) -> Vec<PathBuf> {
    let name = |number: usize| {
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{number}"));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        path.with_file_name(name)
    };
    std::iter::once(path.to_owned()).chain((1..files).map(name)).collect()
}

/// Opens a file to write to, with this mode: one that is new, or that is overwritten because it is ours.
/// Never what a link, or a second name, leads to: where others may write to the folder, that would be a file
/// of their choice.
#[expect(clippy::disallowed_methods, reason = "the user names a file to write to")]
pub fn open(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Without waiting: a pipe would wait for its reader.
    options.write(true).mode(mode).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => options.open(path).map_err(explained)?,
        opened => opened?,
    };
    let found = file.metadata()?;
    let refused = |why: &str| Err(io::Error::other(format!("{why}; name another file, or remove it")));
    if !found.is_file() {
        return refused("it is not a regular file");
    }
    if found.nlink() != 1 {
        return refused("it has other hard links");
    }
    if found.uid() != nix::unistd::geteuid().as_raw() {
        return refused("it belongs to another user");
    }
    file.set_permissions(PermissionsExt::from_mode(mode))?;
    Ok(file)
}

fn explained(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link; name another file, or remove it"),
        Some(libc::ENXIO) => io::Error::other("it is not a regular file; name another file, or remove it"),
        _ => error,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};
    use perhop_pcap::write::{Blocks, Captured, PacketDirection};
    use proptest::prelude::*;
    use std::sync::{Arc, Mutex};

    /// A file whose next operations have the given results; all later ones succeed.
    #[derive(Clone, Debug, Default)]
    pub struct Faulty {
        pub bytes: Arc<Mutex<Vec<u8>>>,
        pub fates: Arc<Mutex<Vec<Fate>>>,
    }

    #[derive(Clone, Copy, Debug)]
    pub enum Fate {
        Well,
        /// No room, at all.
        Fails,
        /// Less than asked for.
        Shortened(usize),
        /// Fails, and has written something all the same.
        Torn(usize),
        Interrupted,
    }

    impl Faulty {
        fn next(&self) -> Fate {
            self.fates.lock().unwrap().pop().unwrap_or(Fate::Well)
        }

        fn put(&self, bytes: &[u8], at: u64) -> usize {
            let mut file = self.bytes.lock().unwrap();
            let end = at as usize + bytes.len();
            let longer = file.len().max(end);
            file.resize(longer, 0);
            file[at as usize..end].copy_from_slice(bytes);
            bytes.len()
        }
    }

    impl Storage for Faulty {
        fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<usize> {
            match self.next() {
                Fate::Well => Ok(self.put(bytes, at)),
                Fate::Shortened(most) => Ok(self.put(&bytes[..most.min(bytes.len())], at)),
                Fate::Fails => Err(ErrorKind::StorageFull.into()),
                Fate::Torn(most) => {
                    self.put(&bytes[..most.min(bytes.len())], at);
                    Err(ErrorKind::StorageFull.into())
                }
                Fate::Interrupted => Err(ErrorKind::Interrupted.into()),
            }
        }

        /// Cuts the file, which takes no room, but may fail, too.
        fn set_len(&mut self, length: u64) -> io::Result<()> {
            if let Fate::Fails = self.next() {
                return Err(ErrorKind::StorageFull.into());
            }
            self.bytes.lock().unwrap().resize(length as usize, 0);
            Ok(())
        }
    }

    pub fn fates() -> impl Strategy<Value = Vec<Fate>> {
        let fate = prop_oneof![
            3 => Just(Fate::Well),
            2 => Just(Fate::Fails),
            2 => (0_usize..400).prop_map(Fate::Shortened),
            2 => (0_usize..400).prop_map(Fate::Torn),
            1 => Just(Fate::Interrupted),
        ];
        proptest::collection::vec(fate, 0..60)
    }

    /// Returns the time stamps of the packets in a file that is whole to its end.
    pub fn packets(file: &[u8]) -> Vec<u64> {
        // The reader stops at a torn block without a word: so the blocks are walked through, too.
        let mut rest = file;
        while !rest.is_empty() {
            let length = u32::from_ne_bytes(rest[4..8].try_into().unwrap()) as usize;
            assert!(length <= rest.len() && length >= 12, "a torn block of {length} in {} bytes", rest.len());
            assert_eq!(rest[4..8], rest[length - 4..length], "both lengths of a block");
            rest = &rest[length..];
        }
        let mut reader = PcapNgReader::new(file).unwrap();
        let mut times = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                times.push(packet.timestamp.as_nanos() as u64);
            }
        }
        times
    }

    fn block(number: u64, length: usize) -> Blocks {
        let mut blocks = Blocks::default();
        let packet = vec![number as u8; length];
        let captured = Captured {
            interface: 0,
            time: number,
            direction: PacketDirection::Outbound,
            packet: &packet,
            length: length as u32,
            comment: None,
            missed: 0,
        };
        blocks.packet(&captured);
        blocks
    }

    proptest! {
        /// Whatever fails, is shortened or is torn: files are whole, and hold what was said to be in them, in
        /// order.
        #[test]
        fn files_are_whole_whatever_becomes_of_a_write(
            fates in fates(), count in 1_usize..4, lengths in proptest::collection::vec(1_usize..300, 1..60),
        ) {
            let header = Blocks::header("perhop-router", &["in0".into(), "out0".into()], 1500);
            let files: Vec<Faulty> = (0..count).map(|_| Faulty::default()).collect();
            let mut ring = Ring::begin(files.clone(), header.bytes(), 2000).unwrap();
            let fates = Arc::new(Mutex::new(fates));
            ring.files.iter_mut().for_each(|file| file.fates = Arc::clone(&fates));
            let mut held: Vec<Vec<u64>> = vec![Vec::new(); count];
            for (number, length) in lengths.into_iter().enumerate() {
                let blocks = block(number as u64, length);
                if ring.exceeds(blocks.bytes().len()) {
                    match ring.turn(&[]) {
                        Ok(true) => held[ring.current].clear(),
                        Ok(false) => prop_assert!(count == 1),
                        Err(_) => {}
                    }
                    if ring.exceeds(blocks.bytes().len()) {
                        continue;
                    }
                }
                let appended = ring.append(blocks.bytes(), &[blocks.bytes().len()]);
                prop_assert_eq!(appended.blocks == 1, appended.error.is_none());
                held[ring.current].extend((appended.blocks == 1).then_some(number as u64));
            }
            // Once a file can be cut, at the latest.
            fates.lock().unwrap().clear();
            ring.repair().unwrap();
            for (file, held) in files.iter().zip(held) {
                let bytes = file.bytes.lock().unwrap();
                prop_assert!(bytes.len() <= 2000);
                prop_assert_eq!(packets(&bytes), held);
            }
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files that must not be written to")]
    fn only_files_of_its_own_are_written_to() {
        let folder = std::env::temp_dir().join(format!("perhop-ring-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let victim = folder.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let at = |name: &str| folder.join(name);
        std::os::unix::fs::symlink(&victim, at("link")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        std::fs::hard_link(&victim, at("second")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (name, why) in [
            ("link", "a symbolic link"),
            ("dangling", "a symbolic link"),
            ("second", "other hard links"),
            ("pipe", "not a regular file"),
        ] {
            let error = open(&at(name), 0o600).expect_err(name).to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!at("nowhere").exists());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        drop(open(&at("new"), 0o600).unwrap());
        assert_eq!(mode(&at("new")), 0o600);
        std::fs::set_permissions(at("new"), PermissionsExt::from_mode(0o644)).unwrap();
        drop(open(&at("new"), 0o640).unwrap());
        assert_eq!(mode(&at("new")), 0o640, "one that is there is as private");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_are_named_after_the_first() {
        let named = names(Path::new("/a/all.pcapng"), 3);
        assert_eq!(named, ["/a/all.pcapng", "/a/all.1.pcapng", "/a/all.2.pcapng"].map(PathBuf::from));
        assert_eq!(names(Path::new("all"), 2), ["all", "all.1"].map(PathBuf::from));
    }
}

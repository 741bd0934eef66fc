//! The seeds of the fuzz targets (docs/project/fuzzing.md), which tests replay.

use std::path::Path;

/// Hands each seed of this target to `take`, in the order of their names; returns how many there are.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the seeds are files of the repository, and the one that fails is to be named"
)]
pub fn replay(target: &str, take: impl Fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("a directory's entry").path()).collect();
    paths.sort();
    for path in &paths {
        println!("{}", path.display()); // shown if the test fails
        take(&std::fs::read(path).expect("a seed can be read"));
    }
    paths.len()
}

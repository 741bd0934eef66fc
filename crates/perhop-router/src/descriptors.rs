//! Files that a router was started with and has no use for.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use nix::unistd::{close, dup2_stdin};

/// Where a process sees its own.
const OWN: &str = "/proc/self/fd";

/// Closes all inherited file descriptors, so that they cannot be reached through the router, except standard
/// output and error; standard input becomes `/dev/null`. Call it before anything is opened. An error says
/// what could not be closed: the router must not go on then.
#[expect(clippy::disallowed_methods, reason = "the router's own descriptors are its business")]
pub fn close_inherited() -> Result<(), String> {
    let explain = |error: io::Error| format!("cannot close inherited descriptors: {OWN}: {error}");
    for number in inherited().map_err(explain)? {
        // It may be gone by now: one of the list is that of the list itself.
        let _ = close(number);
    }
    let null = File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
    dup2_stdin(&null).map_err(|error| format!("cannot close the standard input: {error}"))?;
    drop(null);
    match inherited().map_err(explain)?.as_slice() {
        [] => Ok(()),
        left => Err(format!("inherited descriptors are still open: {left:?}")),
    }
}

/// Returns open descriptors beyond the standard ones, without that by which they are listed.
#[expect(clippy::disallowed_methods, reason = "the router's own descriptors are its business")]
fn inherited() -> io::Result<Vec<i32>> {
    let listed = fs::read_dir(OWN)?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let listed: Vec<i32> = listed.collect();
    let open = |number: &i32| fs::read_link(Path::new(OWN).join(number.to_string())).is_ok();
    Ok(listed.into_iter().filter(|number| *number > 2).filter(open).collect())
}

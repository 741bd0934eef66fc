//! Threads that need no interpreter: they end the program where a class in Python stays in C code and keeps
//! the interpreter's lock.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "how long a program may be deaf follows the wall clock, and to end it with a word is the purpose; no result depends on it"
)]

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// How long the interpreter may take to come to its handler of Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(2);
/// A handler that was called so shortly before a signal was seen here was called for it.
const SLACK: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(50);
/// What `signal.SIGINT` is everywhere.
const SIGINT: u8 = 2;
/// Exit status of a command that Ctrl-C ended.
const EXIT: i32 = 130;

/// When the handler of Ctrl-C was called last.
static HANDLED: Mutex<Option<Instant>> = Mutex::new(None);

/// The handler of Ctrl-C is being called.
#[pyfunction]
pub(crate) fn interrupt_handled() {
    *HANDLED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

fn handled_since(time: Instant) -> bool {
    HANDLED.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|handled| handled + SLACK >= time)
}

/// Starts a thread that ends the program if its handler of Ctrl-C is not called in time. Returns a descriptor
/// for `signal.set_wakeup_fd`.
#[cfg(unix)]
#[pyfunction]
pub(crate) fn watch_interrupts() -> PyResult<i32> {
    use std::io::Read;
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;

    let failed = |error: std::io::Error| PyOSError::new_err(error.to_string());
    let (mut here, there) = UnixStream::pair().map_err(failed)?;
    there.set_nonblocking(true).map_err(failed)?;
    let watch = move || {
        let mut signal = [0];
        while here.read_exact(&mut signal).is_ok() {
            let seen = Instant::now();
            while signal[0] == SIGINT && !handled_since(seen) {
                if seen.elapsed() > PATIENCE {
                    eprintln!(
                        "interrupted; a class in Python did not return, and what was not yet written is lost"
                    );
                    std::process::exit(EXIT);
                }
                std::thread::sleep(STEP);
            }
        }
    };
    std::thread::Builder::new()
        .name("perhop-ctrl-c".into())
        .stack_size(64 << 10)
        .spawn(watch)
        .map_err(failed)?;
    Ok(there.into_raw_fd())
}

/// Windows has no such descriptors.
#[cfg(not(unix))]
#[pyfunction]
pub(crate) fn watch_interrupts() -> PyResult<i32> {
    Err(PyOSError::new_err("not on this system"))
}

/// Starts a thread that ends this program soon after the one that has started it.
#[pyfunction]
pub(crate) fn end_with_parent() {
    #[cfg(unix)]
    {
        let parent = std::os::unix::process::parent_id();
        let watch = move || {
            while std::os::unix::process::parent_id() == parent {
                std::thread::sleep(10 * STEP);
            }
            std::process::exit(EXIT);
        };
        // Without it, the program ends when its class returns.
        let _ = std::thread::Builder::new().name("perhop-parent".into()).stack_size(64 << 10).spawn(watch);
    }
}

//! Real-time priority, so that others do not make packets late.

use std::io;

/// Gives the calling thread, but none that it starts, a real-time priority (`SCHED_FIFO`), unless it has it.
///
/// # Errors
/// The kernel's; without the capability `CAP_SYS_NICE` it is `PermissionDenied`.
pub fn set_fifo(priority: i32) -> io::Result<()> {
    if has_fifo(priority) {
        return Ok(());
    }
    let parameters = libc::sched_param { sched_priority: priority };
    #[expect(unsafe_code, reason = "no crate wraps it")]
    // SAFETY: the pointer is to a value that lives through the call, which only reads it; 0 is the calling
    // thread.
    let result = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns whether the calling thread has this real-time priority, as from a service manager.
fn has_fifo(priority: i32) -> bool {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    #[expect(unsafe_code, reason = "no crate wraps it")]
    // SAFETY: the pointer is to a value that lives through the call, which writes it; 0 is the calling
    // thread.
    let policy = unsafe {
        libc::sched_getparam(0, &raw mut parameters);
        libc::sched_getscheduler(0)
    };
    policy == libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK && parameters.sched_priority == priority
}

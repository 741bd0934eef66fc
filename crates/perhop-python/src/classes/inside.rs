//! Whether a thread is in a call of a class.

use std::cell::Cell;

thread_local! {
    /// How many calls of classes this thread is in.
    pub(super) static INSIDE: Cell<u32> = const { Cell::new(0) };
}

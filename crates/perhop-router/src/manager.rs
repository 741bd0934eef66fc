//! Notifications to the service manager (`sd_notify(3)`), by a thread of its own, so that a slow manager
//! delays nothing.

use std::io;

use sd_notify::{NotifyState, notify};

use crate::outlet::{Backlog, Outlet};

/// How many notes may wait.
pub const WAITING: usize = 64;

/// A notification.
#[derive(Debug)]
pub enum Note {
    /// The router forwards; with its status.
    Ready(String),
    /// The router reads its configuration again, since that time of the monotonic clock.
    Reloading(Option<NotifyState<'static>>),
    /// The router ends.
    Stopping,
}

/// The service manager, if there is one.
pub type Manager = Outlet<Note>;

impl Manager {
    /// Reports that the router forwards. A line's end would begin another note.
    pub fn ready(&self, status: &str) {
        self.put(Note::Ready(status.replace(char::is_control, " ")));
    }

    /// Reports that the router reads its configuration again.
    pub fn reloading(&self) {
        self.put(Note::Reloading(NotifyState::monotonic_usec_now().ok()));
    }

    /// Reports that the router ends.
    pub fn stopping(&self) {
        self.put(Note::Stopping);
    }
}

/// Begins to deliver, by a further thread.
pub fn start(notes: Backlog<Note>) -> io::Result<()> {
    notes.start("manager", |note, _| {
        let _ = match note {
            Note::Ready(status) => notify(&[NotifyState::Ready, NotifyState::Status(&status)]),
            Note::Reloading(since) => {
                notify(&[NotifyState::Reloading].into_iter().chain(since).collect::<Vec<_>>())
            }
            Note::Stopping => notify(&[NotifyState::Stopping]),
        };
    })
}

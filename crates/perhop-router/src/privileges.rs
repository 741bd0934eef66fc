//! What a router needs to start, and how it gives it away once everything is open.

use std::io;

use caps::{CapSet, Capability};
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, User, getgroups, getresgid, getresuid, setgroups, setresgid, setresuid, setuid};

/// What an error of opening something means: names the capability that is missing, where one is.
pub fn explain(error: &io::Error, needed: Capability) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied && !holds(needed) {
        let name = needed.to_string();
        let lower = name.to_lowercase();
        format!(
            "the capability {name} is missing; start it as root or by its unit, or once: setcap {lower}+ep perhop-router"
        )
    } else {
        error.to_string()
    }
}

fn holds(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

/// The user of this name.
///
/// # Errors
/// There is none, or it is root.
pub fn user(name: &str) -> Result<User, String> {
    let found = User::from_name(name).map_err(|error| format!("cannot look up `{name}`: {error}"))?;
    let user = found.ok_or_else(|| format!("there is no user `{name}`; name one, such as \"nobody\""))?;
    if user.uid.is_root() {
        return Err("root keeps what is to be given away; name another user, such as \"nobody\"".into());
    }
    Ok(user)
}

/// Gives away, for good, what the router no longer needs: becomes the user, if one is given, and keeps no capability. Only
/// the calling thread and those that it will start are meant: there must be no others yet.
///
/// # Errors
/// What could not be given away. The router must not go on then.
pub fn drop_all(to: Option<&User>) -> Result<(), String> {
    if let Some(user) = to {
        become_user(user)?;
    }
    // Whoever has few of them may not be allowed to touch this set, which gives nothing to a process that runs no other.
    let _ = caps::clear(None, CapSet::Bounding);
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set)
            .map_err(|error| format!("cannot give away the {set:?} capabilities: {error}"))?;
    }
    prctl::set_no_new_privs().map_err(|error| format!("cannot set no_new_privs: {error}"))?;
    verify(to)
}

fn become_user(user: &User) -> Result<(), String> {
    let already = getresuid().is_ok_and(|ids| [ids.real, ids.effective, ids.saved] == [user.uid; 3]);
    if already {
        return Ok(());
    }
    let explained = |call: &str, needed: Capability| {
        let name = user.name.clone();
        let call = call.to_owned();
        move |errno: nix::errno::Errno| {
            format!("cannot become `{name}` ({call}): {}", explain(&errno.into(), needed))
        }
    };
    setgroups(&[user.gid]).map_err(explained("setgroups", Capability::CAP_SETGID))?;
    setresgid(user.gid, user.gid, user.gid).map_err(explained("setresgid", Capability::CAP_SETGID))?;
    setresuid(user.uid, user.uid, user.uid).map_err(explained("setresuid", Capability::CAP_SETUID))
}

/// Looks whether all of it is gone, and cannot be had back.
fn verify(to: Option<&User>) -> Result<(), String> {
    let failed = |what: &str| Err(format!("privileges are still there: {what}"));
    if let Some(user) = to {
        let users = getresuid().map_err(|error| error.to_string())?;
        let groups = getresgid().map_err(|error| error.to_string())?;
        if [users.real, users.effective, users.saved] != [user.uid; 3] {
            return failed("the user");
        }
        if [groups.real, groups.effective, groups.saved] != [user.gid; 3] {
            return failed("the group");
        }
        let others = getgroups().map_err(|error| error.to_string())?;
        if others.iter().any(|&group| group != user.gid && group == Gid::from_raw(0)) {
            return failed("the groups");
        }
        if setuid(Uid::from_raw(0)).is_ok() {
            return failed("root can be had back");
        }
    }
    for set in [CapSet::Effective, CapSet::Permitted] {
        if !caps::read(None, set).is_ok_and(|left| left.is_empty()) {
            return failed("capabilities");
        }
    }
    if prctl::get_no_new_privs() == Ok(true) { Ok(()) } else { failed("no_new_privs is not set") }
}

//! What a router needs to start, how it gives it away once everything is open, and how it makes sure that all
//! of it is gone.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use caps::{CapSet, Capability};
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, User, getegid, geteuid, getgroups, setgroups, setresgid, setresuid, setuid};

/// The users that it becomes if it is started as root without `user`: the first one that exists.
const USERS: [&str; 2] = ["perhop", "nobody"];

/// Returns what an error of opening something means: names the capability that is missing, where one is.
pub fn explain(error: &io::Error, needed: Capability) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied && !holds(needed) {
        let name = needed.to_string();
        let lower = name.to_lowercase();
        format!(
            "the capability {name} is missing; start it as root or by its unit, or once: setcap \
             cap_setpcap,{lower}+ep perhop-router"
        )
    } else {
        error.to_string()
    }
}

fn holds(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

/// The user as which a router runs once everything is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The user that started it, who is not root.
    Kept,
    /// Another user.
    Other(User),
    /// Root, because the user says so.
    Root,
}

impl Identity {
    /// Returns the user that the configuration names, unless there is none, or none at all that is not root.
    pub fn of(user: Option<&str>) -> Result<Self, String> {
        let found = match user {
            Some(name) => {
                let found = look_up(name)?;
                Some(
                    found
                        .ok_or_else(|| format!("there is no user `{name}`; name one, such as \"nobody\""))?,
                )
            }
            None if geteuid().is_root() => Some(unprivileged()?),
            None => None,
        };
        Ok(match found {
            None => Self::Kept,
            Some(user) if user.uid.is_root() => Self::Root,
            Some(user) => Self::Other(user),
        })
    }
}

fn look_up(name: &str) -> Result<Option<User>, String> {
    User::from_name(name).map_err(|error| format!("cannot look up `{name}`: {error}"))
}

fn unprivileged() -> Result<User, String> {
    for name in USERS {
        if let Some(user) = look_up(name)?.filter(|user| !user.uid.is_root()) {
            return Ok(user);
        }
    }
    let [first, second] = USERS;
    Err(format!("there is neither `{first}` nor `{second}` to run as; name a user that is not root"))
}

/// Gives away, for good, what the router no longer needs: becomes the user, and keeps no capability in any
/// set. Only the calling thread and those that it will start are meant: there must be no others yet. What
/// comes back is to be verified once all threads run. An error says what could not be given away: the router
/// must not go on then.
pub fn drop_all(to: &Identity) -> Result<Dropped, String> {
    // The bounding set first: to shrink it takes a capability, which goes with the change of user.
    caps::clear(None, CapSet::Bounding).map_err(|error| {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let why = if holds(Capability::CAP_SETPCAP) {
            error.to_string()
        } else {
            explain(&denied, Capability::CAP_SETPCAP)
        };
        format!("cannot clear the bounding set: {why}")
    })?;
    let dropped = become_user(to)?;
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(|error| format!("cannot drop the {set:?} capabilities: {error}"))?;
    }
    prctl::set_no_new_privs().map_err(|error| format!("cannot set no_new_privs: {error}"))?;
    // Other processes of the same user must not read its memory, where packets are.
    prctl::set_dumpable(false).map_err(|error| format!("cannot forbid core dumps: {error}"))?;
    if dropped.uid != 0 && setuid(Uid::from_raw(0)).is_ok() {
        return Err("privileges remain: root can be regained".into());
    }
    Ok(dropped)
}

fn become_user(to: &Identity) -> Result<Dropped, String> {
    let (name, uid, gid) = match to {
        Identity::Other(user) => (user.name.as_str(), user.uid, user.gid),
        Identity::Root => ("root", Uid::from_raw(0), Gid::from_raw(0)),
        Identity::Kept => {
            // The groups of the user that started it stay if they cannot be dropped.
            if holds(Capability::CAP_SETGID) {
                setgroups(&[]).map_err(|error| format!("cannot drop the groups: {error}"))?;
            }
            let groups = getgroups().map_err(|error| format!("groups: {error}"))?;
            let groups = groups.into_iter().map(Gid::as_raw).collect();
            return Ok(Dropped { uid: geteuid().as_raw(), gid: getegid().as_raw(), groups });
        }
    };
    let explained = |call: &'static str, needed: Capability| {
        move |errno: nix::errno::Errno| match errno {
            // In a user namespace without other users.
            nix::errno::Errno::EINVAL => {
                format!("cannot become `{name}` ({call}): it does not exist in this user namespace")
            }
            _ => format!("cannot become `{name}` ({call}): {}", explain(&errno.into(), needed)),
        }
    };
    setgroups(&[]).map_err(explained("setgroups", Capability::CAP_SETGID))?;
    setresgid(gid, gid, gid).map_err(explained("setresgid", Capability::CAP_SETGID))?;
    setresuid(uid, uid, uid).map_err(explained("setresuid", Capability::CAP_SETUID))?;
    Ok(Dropped { uid: uid.as_raw(), gid: gid.as_raw(), groups: BTreeSet::new() })
}

/// What every thread must be like after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    uid: u32,
    gid: u32,
    groups: BTreeSet<u32>,
}

impl Dropped {
    /// Returns supplementary groups that could not be given away.
    pub fn groups_left(&self) -> Vec<u32> {
        self.groups.iter().copied().filter(|group| *group != self.gid).collect()
    }

    /// Reads back from the kernel whether all of it is gone, from every thread, and whether system calls are
    /// filtered. An error says what is still there: the router must not go on then.
    #[expect(clippy::disallowed_methods, reason = "the kernel reports to a process of itself in files")]
    pub fn verify(&self) -> Result<(), String> {
        let tasks = Path::new("/proc/self/task");
        let explain = |error: io::Error| format!("cannot verify privileges: {}: {error}", tasks.display());
        for task in fs::read_dir(tasks).map_err(explain)? {
            let task = task.map_err(explain)?.path();
            let status = fs::read_to_string(task.join("status")).map_err(explain)?;
            self.check(&status).map_err(|what| format!("privileges remain: {what}"))?;
        }
        Ok(())
    }

    /// Checks one thread's `status` (proc(5)).
    fn check(&self, status: &str) -> Result<(), String> {
        let value = |key: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            found.map(str::trim).ok_or_else(|| format!("the kernel does not report {key}"))
        };
        let thread = value("Name")?;
        let expect = |key: &str, wanted: &str, agrees: &dyn Fn(&str) -> bool| {
            let found = value(key)?;
            let text = || format!("thread {thread}: {key} is {found:?}, which must be {wanted}");
            agrees(found).then_some(()).ok_or_else(text)
        };
        // Real, effective, saved, and of the file system.
        for (key, id) in [("Uid", self.uid), ("Gid", self.gid)] {
            expect(key, &format!("{id} four times"), &|found| numbers(found) == Some(vec![id; 4]))?;
        }
        expect("Groups", &format!("{:?}", self.groups), &|found| {
            numbers(found).is_some_and(|found| found.into_iter().collect::<BTreeSet<_>>() == self.groups)
        })?;
        for key in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            expect(key, "0", &|found| u64::from_str_radix(found, 16) == Ok(0))?;
        }
        expect("NoNewPrivs", "1", &|found| found == "1")?;
        expect("Seccomp", "2 (filtered)", &|found| found == "2")
    }
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tmetrics\nUid:\t65534\t65534\t65534\t65534\nGid:\t65533\t65533\t65533\t65533\n\
                          Groups:\t \nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n\
                          CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n\
                          NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n";

    fn dropped() -> Dropped {
        Dropped { uid: 65534, gid: 65533, groups: BTreeSet::new() }
    }

    #[test]
    fn every_privilege_that_is_left_is_found() {
        assert_eq!(dropped().check(STATUS), Ok(()));
        for (from, to, key) in [
            ("Uid:\t65534\t65534\t65534\t65534", "Uid:\t65534\t65534\t0\t65534", "Uid"),
            ("Uid:\t65534\t65534\t65534\t65534", "Uid:\t65534\t65534\t65534\t0", "Uid"),
            ("Gid:\t65533\t65533\t65533\t65533", "Gid:\t0\t65533\t65533\t65533", "Gid"),
            ("Groups:\t ", "Groups:\t0 ", "Groups"),
            ("CapInh:\t0000000000000000", "CapInh:\t0000000000000001", "CapInh"),
            ("CapPrm:\t0000000000000000", "CapPrm:\t0000000000002000", "CapPrm"),
            ("CapEff:\t0000000000000000", "CapEff:\t0000000000002000", "CapEff"),
            ("CapBnd:\t0000000000000000", "CapBnd:\t000001ffffffffff", "CapBnd"),
            ("CapAmb:\t0000000000000000", "CapAmb:\t0000000000002000", "CapAmb"),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "NoNewPrivs"),
            ("Seccomp:\t2", "Seccomp:\t0", "Seccomp"),
            ("Seccomp:\t2", "Seccomp:\t1", "Seccomp"),
            ("CapBnd:\t0000000000000000\n", "", "CapBnd"),
            ("Seccomp:\t2\n", "", "Seccomp"),
        ] {
            let status = STATUS.replace(from, to);
            assert_ne!(status, STATUS, "{from}");
            let fault = dropped().check(&status).expect_err(to);
            assert!(fault.contains(key) && fault.contains("metrics") != to.is_empty(), "{fault}");
        }
    }

    #[test]
    fn a_process_that_has_kept_its_privileges_is_told_so() {
        let fault = dropped().verify().unwrap_err();
        assert!(fault.starts_with("privileges remain: thread "), "{fault}");
    }

    /// Capabilities are those of one thread, so that the other tests are not concerned.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread that gives up a capability for itself")]
    fn a_missing_capability_is_named_where_it_is_the_reason() {
        let refused = |kind: io::ErrorKind| explain(&kind.into(), Capability::CAP_NET_ADMIN);
        let without = std::thread::spawn(move || {
            caps::clear(None, CapSet::Effective).unwrap();
            (refused(io::ErrorKind::PermissionDenied), refused(io::ErrorKind::NotFound))
        });
        let (denied, missing) = without.join().unwrap();
        assert!(denied.starts_with("the capability CAP_NET_ADMIN is missing; "), "{denied}");
        assert!(denied.ends_with("setcap cap_setpcap,cap_net_admin+ep perhop-router"), "{denied}");
        assert_eq!(missing, "entity not found");
        if holds(Capability::CAP_NET_ADMIN) {
            assert_eq!(refused(io::ErrorKind::PermissionDenied), "permission denied");
        }
    }

    #[test]
    fn groups_that_could_not_be_given_away_are_known_and_no_others() {
        let kept = Dropped { groups: [27, 65533].into(), ..dropped() };
        assert_eq!(kept.groups_left(), [27]);
        assert_eq!(kept.check(&STATUS.replace("Groups:\t ", "Groups:\t27 65533 ")), Ok(()));
        assert!(kept.check(STATUS).is_err());
        assert!(kept.check(&STATUS.replace("Groups:\t ", "Groups:\t0 27 65533 ")).is_err());
    }

    #[test]
    fn root_is_kept_only_when_it_is_named() {
        assert_eq!(Identity::of(Some("root")), Ok(Identity::Root));
        let unnamed = Identity::of(None).unwrap();
        assert_eq!(unnamed == Identity::Kept, !geteuid().is_root());
        assert_ne!(unnamed, Identity::Root);
        assert!(
            Identity::of(Some("nobody-at-all")).unwrap_err().contains("there is no user `nobody-at-all`")
        );
    }
}

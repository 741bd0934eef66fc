//! The private place in which a run happens: namespaces that no one else sees, and that go with the process.

use std::fs;
use std::io;
use std::ops::AddAssign;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::error::{LabError, Missing};

fn missing(what: impl Into<String>, remedy: impl Into<String>) -> LabError {
    LabError::Missing(Missing { what: what.into(), remedy: remedy.into() })
}

const TUN: &str = "/dev/net/tun";

/// Tries everything that a run begins with. As a run does, it changes the process, which must have one
/// thread.
///
/// # Errors
/// The first thing that is missing, with what would help.
pub fn probe() -> Result<(), LabError> {
    check_kernel()?;
    enter_user_namespace()?;
    thread::scope(|scope| scope.spawn(enter_network_namespace).join().expect("trying does not panic"))
}

/// Checks that the kernel has what a run needs.
pub(crate) fn check_kernel() -> Result<(), LabError> {
    if !Path::new("/proc/self/ns/net").exists() {
        return Err(missing(
            "this kernel has no network namespaces",
            "one built with CONFIG_NET_NS is needed",
        ));
    }
    Ok(())
}

/// Checks that TUN devices can be made. An error says what is missing, and what would help.
pub(crate) fn probe_tun() -> Result<(), LabError> {
    match fs::OpenOptions::new().read(true).write(true).open(TUN) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(
            format!("there is no {TUN}"),
            "load the module (modprobe tun); in a container, pass the device in",
        )),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(missing(
            format!("{TUN} cannot be opened by this user"),
            format!("run as root, or let everybody open it (chmod 0666 {TUN}), as most systems do"),
        )),
        Err(error) => Err(missing(format!("{TUN}: {error}"), "a kernel with CONFIG_TUN is needed")),
    }
}

/// Gives an ordinary user the rights of root within a user namespace of this process; root has them. The
/// process must have one thread.
pub(crate) fn enter_user_namespace() -> Result<(), LabError> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| match errno {
        Errno::EPERM | Errno::ENOSPC | Errno::EUSERS => missing(
            "this system does not let ordinary users create user namespaces",
            "run as root, or allow it (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, or \
             kernel.apparmor_restrict_unprivileged_userns=0, whichever the system has)",
        ),
        Errno::EINVAL => LabError::System("making a user namespace in a process of several threads".into(), errno.into()),
        _ => LabError::System("making a user namespace".into(), errno.into()),
    })?;
    let write =
        |file: &str, text: String| fs::write(file, text).map_err(LabError::doing(format!("writing {file}")));
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("0 {user} 1"))?;
    write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Moves the calling thread into a network namespace of its own, which ends with the last thread and device
/// in it.
pub(crate) fn enter_network_namespace() -> Result<(), LabError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
        Errno::EPERM => missing(
            "this process may not create network namespaces",
            "it needs CAP_SYS_ADMIN, or to be started as an ordinary user on a system that lets users make user \
             namespaces; a container may have to be started with --privileged or --cap-add SYS_ADMIN",
        ),
        Errno::ENOSPC => missing(
            "this system's limit of network namespaces is reached",
            "raise user.max_net_namespaces",
        ),
        _ => LabError::System("making a network namespace".into(), errno.into()),
    })
}

/// Returns the calling thread's network namespace.
pub(crate) fn namespace() -> Result<OwnedFd, LabError> {
    let file = fs::File::open("/proc/thread-self/ns/net");
    file.map(OwnedFd::from).map_err(LabError::doing("opening a network namespace"))
}

/// Changes a setting of the calling thread's network namespace.
pub(crate) fn set(name: &str, value: &str) -> Result<(), LabError> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::write(&path, value).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LabError::Unfit(format!(
            "live.sysctl: this kernel has no setting `{name}` in a network namespace; leave it out"
        )),
        io::ErrorKind::InvalidInput => {
            LabError::Unfit(format!("live.sysctl: the kernel rejects `{value}` for `{name}`"))
        }
        _ => LabError::System(format!("setting {name} to {value}"), error),
    })
}

/// Packets that the kernel dropped on their way to a device's reader, and on their way from its writer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelDrops {
    pub(crate) to_router: u64,
    pub(crate) to_host: u64,
}

impl AddAssign for KernelDrops {
    fn add_assign(&mut self, other: Self) {
        self.to_router += other.to_router;
        self.to_host += other.to_host;
    }
}

/// Returns the drops at the device of this name in the calling thread's network namespace.
pub(crate) fn device_drops(name: &str) -> KernelDrops {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let counts = table.lines().find_map(|line| {
        let (device, counts) = line.trim().split_once(':')?;
        (device == name)
            .then(|| counts.split_whitespace().map(|count| count.parse().unwrap_or(0)).collect::<Vec<u64>>())
    });
    let counts = counts.unwrap_or_default();
    let at = |column: usize| counts.get(column).copied().unwrap_or(0);
    KernelDrops { to_router: at(11), to_host: at(3) }
}

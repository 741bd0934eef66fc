//! The system calls that a running router may make (seccomp(2)), for all of its threads.
//!
//! Two filters, of which the stricter one counts. What only an attack asks for, such as another program, ends
//! the process. Whatever else is not needed fails with `EPERM`: a C library that asks for something new does
//! not bring a network down.

use std::fs::File;
use std::io;

use libc::c_long;
use nix::unistd::getpid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, TargetArch, apply_filter_all_threads,
};

/// Needed whatever the arguments are.
const ALLOWED: &[c_long] = &[
    // Packets, configuration, log, capture; metrics.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_ppoll,
    libc::SYS_accept4,
    libc::SYS_connect, // to the service manager: no other socket can be made
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads, signals, time, chance.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Older calls for the same, which newer architectures lack.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
];

/// Calls that only an attack makes.
const DEADLY: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_open_by_handle_at,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Confines all threads, and those that they may start, and checks that the filter acts. Where the kernel has
/// no such filter, the router must not go on.
pub fn confine() -> Result<(), String> {
    for filter in [deadly(), allowed()] {
        let explain = |error: seccompiler::Error| format!("cannot filter system calls: {error}");
        apply_filter_all_threads(&filter?).map_err(explain)?;
    }
    acts(&to_write())
}

/// Checks that an attempt that the filter forbids was refused.
fn acts(attempt: &io::Result<File>) -> Result<(), String> {
    match attempt {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        _ => Err("the filter of system calls does not act: a file can still be opened to write to it".into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "an attempt that must fail")]
fn to_write() -> io::Result<File> {
    File::options().write(true).open("/dev/null")
}

type Filter = Result<BpfProgram, String>;

fn deadly() -> Filter {
    let rules = DEADLY.iter().map(|call| (*call, Vec::new()));
    filter(rules, SeccompAction::Allow, SeccompAction::KillProcess)
}

fn allowed() -> Filter {
    let always = ALLOWED.iter().map(|call| (*call, Vec::new()));
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    filter(always.chain(limited()?), denied, SeccompAction::Allow)
}

fn filter(
    rules: impl Iterator<Item = (c_long, Vec<Rule>)>,
    otherwise: SeccompAction,
    action: SeccompAction,
) -> Filter {
    let explain = |error| format!("cannot filter system calls on {}: {error}", std::env::consts::ARCH);
    let here = TargetArch::try_from(std::env::consts::ARCH).map_err(explain)?;
    let filter = SeccompFilter::new(rules.collect(), otherwise, action, here).map_err(explain)?;
    filter.try_into().map_err(explain)
}

/// Returns the calls that are needed with some arguments only.
fn limited() -> Result<Vec<(c_long, Vec<Rule>)>, String> {
    let changes = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
    let without = |bits: i32| Is::MaskedEq(u64::from(bits.cast_unsigned()));
    let datagrams = [(0, Is::Eq, libc::AF_UNIX), (1, Is::MaskedEq(0xf), libc::SOCK_DGRAM)];
    let calls = [
        // To read only: the configuration, and what the kernel reports of this process.
        (libc::SYS_openat, vec![vec![(2, without(changes), 0)]]),
        // No memory becomes code.
        (libc::SYS_mmap, vec![vec![(2, without(libc::PROT_EXEC), 0)]]),
        (libc::SYS_mprotect, vec![vec![(2, without(libc::PROT_EXEC), 0)]]),
        // The service manager, and whether an interface is still there.
        (libc::SYS_socket, vec![datagrams.to_vec()]),
        (libc::SYS_ioctl, any_of(1, &[libc::SIOCGIFINDEX as i32, libc::FIONBIO as i32])),
        (libc::SYS_fcntl, any_of(1, &[libc::F_GETFD, libc::F_GETFL, libc::F_SETFL])),
        (libc::SYS_prctl, any_of(0, &[libc::PR_SET_NAME])),
        // A signal to itself: to end at once, or to abort.
        (libc::SYS_tgkill, any_of(0, &[getpid().as_raw()])),
    ];
    let rules = |choices: Vec<Vec<(u8, Is, i32)>>| choices.into_iter().map(rule).collect::<Result<_, _>>();
    calls.into_iter().map(|(call, choices)| Ok((call, rules(choices)?))).collect()
}

fn any_of(argument: u8, values: &[i32]) -> Vec<Vec<(u8, Is, i32)>> {
    values.iter().map(|value| vec![(argument, Is::Eq, *value)]).collect()
}

fn rule(conditions: Vec<(u8, Is, i32)>) -> Result<Rule, String> {
    let explain = |error: seccompiler::BackendError| error.to_string();
    let condition = |(argument, is, value): (u8, Is, i32)| {
        Condition::new(argument, Length::Dword, is, u64::from(value.cast_unsigned()))
    };
    let conditions = conditions.into_iter().map(condition).collect::<Result<_, _>>().map_err(explain)?;
    Rule::new(conditions).map_err(explain)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "it tries what is not allowed")]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::net::UnixDatagram;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::thread;

    /// Of one thread, so that the other tests are not concerned.
    #[test]
    fn what_the_router_needs_passes_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("perhop-seccomp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (inside, path, itself) = (folder.clone(), folder.join("a"), getpid());
        std::fs::write(&path, "text").unwrap();
        let confined = thread::spawn(move || {
            seccompiler::apply_filter(&allowed().unwrap()).unwrap();
            let denied = |name: &str, error: Option<io::Error>| {
                let kind = error.map(|error| error.kind());
                assert_eq!(kind, Some(io::ErrorKind::PermissionDenied), "{name}");
            };
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
            assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 1);
            drop(UnixDatagram::unbound().unwrap());
            drop(vec![1_u8; 10_000_000]);
            denied("write", File::options().write(true).open(&path).err());
            denied("append", File::options().append(true).open(&path).err());
            denied("create", File::create_new(path.with_extension("new")).err());
            for (name, flag) in [("create to read", libc::O_CREAT), ("truncate to read", libc::O_TRUNC)] {
                denied(name, File::options().read(true).custom_flags(flag).open(&path).err());
            }
            denied("duplicate", File::open(&path).unwrap().try_clone().err());
            denied("core dumps", nix::sys::prctl::set_dumpable(true).err().map(Into::into));
            denied("remove", std::fs::remove_file(&path).err());
            denied("rename", std::fs::rename(&path, path.with_extension("new")).err());
            denied("folder", std::fs::create_dir(inside.join("b")).err());
            denied("udp", UdpSocket::bind("127.0.0.1:0").err());
            denied("tcp", TcpListener::bind("127.0.0.1:0").err());
            denied("thread", thread::Builder::new().spawn(|| ()).err());
            denied("kill", nix::sys::signal::kill(itself, None).err().map(Into::into));
        });
        confined.join().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_filter_that_does_not_act_is_noticed() {
        assert_eq!(acts(&Err(io::ErrorKind::PermissionDenied.into())), Ok(()));
        for attempt in [to_write(), Err(io::ErrorKind::NotFound.into())] {
            assert!(acts(&attempt).unwrap_err().contains("does not act"));
        }
    }

    #[test]
    #[ignore = "ends the process: `another_program_ends_the_process` starts it in one of its own"]
    fn run_another_program() {
        apply_filter_all_threads(&deadly().unwrap()).unwrap();
        let _ = nix::unistd::execv(c"/bin/true", &[c"true"]);
    }

    #[test]
    fn another_program_ends_the_process() {
        let mut itself = Command::new(std::env::current_exe().unwrap());
        itself.args(["--exact", "--ignored", "seccomp::tests::run_another_program"]);
        let done = itself.output().unwrap();
        assert_eq!(done.status.signal(), Some(libc::SIGSYS), "{done:?}");
    }
}

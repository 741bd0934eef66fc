//! What an attacker, or an accident, may try on a router that runs: privileges, descriptors and system calls,
//! a log that nobody reads, a disk without room, readers of metrics. Needs root and iproute2, and says so
//! where it is skipped.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "it runs programs, opens sockets, and waits"
)]

mod lab;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{User, mkfifo, pipe2};

use lab::{CONFIG, Lab, Router, Small, USER, ask, captured, connect, fails, value};

const FORWARDING: &str = "forwarding between in0 (inside) and out0 (outside)";
const UNIT: &str = include_str!("../../../contrib/perhop-router.service");

/// Generous: it is to take a fraction of a second.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Every thread has this user and group and no other group, no capability in any set, no way to more, and the
/// filters.
fn assert_confined(router: &Router, uid: u32, gid: u32) {
    let threads = router.threads();
    assert!(threads.len() >= 5, "{threads:#?}");
    for status in threads {
        let value = |key: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            found.unwrap_or_else(|| panic!("{key} is missing in\n{status}")).trim().to_owned()
        };
        let four = |id: u32| [id.to_string(), id.to_string(), id.to_string(), id.to_string()].join("\t");
        assert_eq!(
            (value("Uid"), value("Gid"), value("Groups")),
            (four(uid), four(gid), String::new()),
            "{status}"
        );
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(value(set), "0000000000000000", "{set} in\n{status}");
        }
        let others = ["NoNewPrivs", "Seccomp", "Seccomp_filters"].map(value);
        assert_eq!(others, ["1", "2", "2"], "{status}");
    }
}

#[test]
fn started_as_root_it_is_nobody_afterwards_in_every_thread_and_holds_its_own_files_alone() {
    let Some(lab) = Lab::with_other_users() else { return };
    let config = lab.folder.join("router.toml");
    fs::write(&config, CONFIG.replace(USER, "")).unwrap();
    let (secret, capture) = (lab.folder.join("secret"), lab.folder.join("all.pcapng"));
    fs::write(&secret, "of whoever started it").unwrap();
    let shell = format!("exec 7>>{} 9<{} \"$@\"", secret.display(), secret.display());
    let mut command = lab.command(&["sh", "-c", &shell, "sh"]);
    command.arg(&config).arg("--capture").arg(&capture);
    let router = lab.run(command, FORWARDING).unwrap_or_else(|output| panic!("{output}"));
    let user = ["perhop", "nobody"].into_iter().find_map(|name| User::from_name(name).unwrap()).unwrap();
    assert_confined(&router, user.uid.as_raw(), user.gid.as_raw());

    let folder = format!("/proc/{}/fd", router.child.id());
    let mut targets = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let number: u32 = entry.file_name().to_str().unwrap().parse().unwrap();
        targets.push((number, fs::read_link(entry.path()).unwrap()));
    }
    assert!(targets.iter().all(|(_, target)| *target != secret), "{targets:?}");
    for (number, target) in &targets {
        let target = target.to_str().unwrap();
        let output = router.output.to_str().unwrap();
        let log_too = [output, capture.to_str().unwrap(), "all.1.pcapng"];
        let is_own = target.starts_with("socket:") || log_too.iter().any(|name| target.ends_with(name));
        assert!(is_own || (*number == 0 && target == "/dev/null"), "{number} -> {target}");
    }
    let mode = fs::metadata(&capture).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others could read the packets");
    lab.transfer(100_000);
    assert_eq!(router.end().0, Some(0));
}

#[test]
fn root_stays_only_where_it_is_named_and_can_do_nothing_more() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.folder.join("router.toml");
    fs::write(&config, CONFIG.replace(USER, "user = \"root\"\n")).unwrap();
    let router = lab.start(&config, &[]);
    router.says("warning: user: the router keeps running as root");
    assert_confined(&router, 0, 0);
    lab.transfer(100_000);
    assert_eq!(router.end().0, Some(0));
}

/// The value of a key of the unit, whose lines are taken together.
fn of_unit(key: &str) -> String {
    let values = UNIT.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.collect::<Vec<_>>().join(" ")
}

/// The programs and options by which it becomes what the unit makes of it.
fn as_unit() -> Vec<String> {
    assert_eq!(of_unit("AmbientCapabilities"), of_unit("CapabilityBoundingSet"));
    let mut sets = String::from("-all");
    for capability in of_unit("AmbientCapabilities").split_whitespace() {
        write!(sets, ",+{}", capability.strip_prefix("CAP_").unwrap().to_lowercase()).unwrap();
    }
    let nobody = User::from_name("nobody").unwrap().unwrap();
    let options = [
        format!("--reuid={}", nobody.uid),
        format!("--regid={}", nobody.gid),
        "--clear-groups".into(),
        format!("--inh-caps={sets}"),
        format!("--ambient-caps={sets}"),
        format!("--bounding-set={sets}"),
        "--no-new-privs".into(),
    ];
    assert_eq!(of_unit("CPUSchedulingPolicy") + &of_unit("CPUSchedulingResetOnFork"), "fifoyes");
    let priority = of_unit("CPUSchedulingPriority");
    let before = ["chrt", "--fifo", "--reset-on-fork", &priority, "setpriv"];
    before.map(String::from).into_iter().chain(options).chain(["--".into()]).collect()
}

/// The keys of a configuration that the unit has a part in: the priority that it gives, and locked memory,
/// for which the limit must be as high as the unit sets it.
fn keys_of_unit() -> &'static str {
    assert_eq!(of_unit("LimitMEMLOCK"), "infinity");
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    if limits.lines().any(|line| line.starts_with("Max locked memory         unlimited")) {
        "realtime = 50\nlock-memory = true\n"
    } else {
        eprintln!("skipped in part: memory cannot be locked without limit here");
        "realtime = 50\n"
    }
}

#[test]
fn the_unit_gives_what_it_needs_and_it_keeps_nothing_of_it() {
    let Some(lab) = Lab::with_other_users() else { return };
    let config = lab.folder.join("router.toml");
    fs::write(&config, CONFIG.replace(USER, keys_of_unit())).unwrap();
    let by = as_unit();
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    let mut command = lab.command(&by);
    command.arg(&config);
    let router = lab.run(command, FORWARDING).unwrap_or_else(|output| panic!("{output}"));
    let nobody = User::from_name("nobody").unwrap().unwrap();
    assert_confined(&router, nobody.uid.as_raw(), nobody.gid.as_raw());
    lab.transfer(100_000);
    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(!output.contains("warning"), "{output}");
}

#[test]
fn without_the_means_to_clear_every_set_it_does_not_start() {
    let Some(lab) = Lab::with_other_users() else { return };
    let config = lab.folder.join("router.toml");
    fs::write(&config, CONFIG.replace(USER, "")).unwrap();
    let by = as_unit().into_iter().filter(|option| !option.starts_with("--bounding-set"));
    let by: Vec<String> = by.map(|option| option.replace(",+setpcap", "")).collect();
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    let text = "error: cannot clear the bounding set: the capability CAP_SETPCAP is missing";
    fails(lab.command(&by).arg(config), 1, text);
}

/// Names of system calls and of the families of sockets in what strace(1) wrote.
fn traced(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let calls = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(' ')?;
        let name = rest.trim_start().split('(').next()?;
        name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_').then(|| name.to_owned())
    });
    let families = text.split("socket(").skip(1).filter_map(|rest| Some(rest.split(',').next()?.to_owned()));
    (calls.collect(), families.collect())
}

/// The system calls of a filter of the unit, groups and all.
fn allowed(filter: &str) -> Option<BTreeSet<String>> {
    let mut allowed = BTreeSet::new();
    for line in filter.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (is_denied, names) = line.strip_prefix('~').map_or((false, line), |names| (true, names));
        for name in names.split_whitespace() {
            let calls = if name.starts_with('@') { group(name)? } else { BTreeSet::from([name.to_owned()]) };
            if is_denied {
                allowed.retain(|call| !calls.contains(call));
            } else {
                allowed.extend(calls);
            }
        }
    }
    Some(allowed)
}

fn group(name: &str) -> Option<BTreeSet<String>> {
    let listed = Command::new("systemd-analyze").args(["syscall-filter", name]).output().ok()?;
    let listed = String::from_utf8(listed.stdout).ok()?;
    let mut calls = BTreeSet::new();
    for line in listed.lines().skip(1).map(str::trim).filter(|line| !line.starts_with('#')) {
        if line.starts_with('@') {
            calls.extend(group(line)?);
        } else {
            calls.insert(line.to_owned());
        }
    }
    Some(calls)
}

#[test]
fn neither_the_units_filters_nor_its_own_refuse_what_it_does() {
    let Some(lab) = Lab::with_other_users() else { return };
    let Some(unit) = allowed(UNIT) else {
        eprintln!("skipped: systemd-analyze is not installed, which knows groups of system calls");
        return;
    };
    if Command::new("strace").arg("--version").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    let config = lab.folder.join("router.toml");
    let good = CONFIG.replace(USER, keys_of_unit());
    fs::write(&config, &good).unwrap();
    let (trace, folder) = (lab.folder.join("trace"), lab.folder.join("state"));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    let by = as_unit();
    let tracer = ["strace", "-f", "-D", "-o", trace.to_str().unwrap()].into_iter();
    let by: Vec<&str> = tracer.chain(by.iter().map(String::as_str)).collect();
    let mut command = lab.command(&by);
    command.arg(&config).arg("--capture").arg(folder.join("all.pcapng"));
    let router = match lab.run(command, FORWARDING) {
        Ok(router) => router,
        Err(output) if output.contains("ptrace") => {
            eprintln!("skipped: programs cannot be traced here: {output}");
            return;
        }
        Err(output) => panic!("{output}"),
    };
    lab.transfer(100_000);
    fs::write(&config, "nonsense").unwrap();
    router.signal(Signal::SIGHUP);
    router.says("the running configuration stays in use");
    fs::write(&config, &good).unwrap();
    router.signal(Signal::SIGHUP);
    router.says("all else unchanged");
    lab.metrics();
    assert_eq!(router.end().0, Some(0));

    let text = whole(&trace);
    let (_, text) = text.rsplit_once("perhop-router\", [").unwrap(); // what set it up comes before
    let (mut calls, families) = traced(text);
    assert!(calls.contains("ppoll") && calls.contains("seccomp"), "{calls:?}");
    assert!(calls.remove("setuid"), "the attempt to become root, which fails either way");
    let refused: Vec<_> = calls.iter().filter(|call| !unit.contains(*call)).collect();
    assert!(refused.is_empty(), "SystemCallFilter of the unit refuses {refused:?}");
    let unit_families = of_unit("RestrictAddressFamilies");
    for family in families {
        assert!(unit_families.split_whitespace().any(|known| known == family), "{family}");
    }
    // The one that is refused is the attempt whether the filter acts.
    let confined = text.rsplit_once("seccomp(SECCOMP_SET_MODE_FILTER").unwrap().1;
    let refused: Vec<_> = confined.lines().filter(|line| line.contains("EPERM")).collect();
    assert!(matches!(refused[..], [only] if only.contains("openat")), "{refused:#?}");
}

/// What strace has written, once it ends, which is a little after the program.
fn whole(trace: &Path) -> String {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(trace).unwrap();
        if text.contains("+++ exited with 0 +++") {
            return text;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{text}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What kind = "tun" adds to the unit.
const FOR_TUN: &str = include_str!("../../../contrib/perhop-router-tun.conf");

/// The scores of `systemd-analyze security`, in tenths, must not rise: of the unit, and with the addition.
#[test]
fn the_unit_stays_closed_and_the_documentation_says_what_each_point_is_for() {
    for key in ["SystemCallFilter", "ProcSubset", "IPAddressDeny", "IPAddressAllow"] {
        assert!(!of_unit(key).is_empty(), "{key}");
    }
    let manual = include_str!("../../../docs/perhop-router.md").replace("\\|", "|");
    let folder = std::env::temp_dir().join(format!("perhop-router-{}-unit", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("perhop-router.service");
    for (unit, exposure) in [(UNIT.to_owned(), "20"), (format!("{UNIT}{FOR_TUN}"), "22")] {
        fs::write(&path, unit).unwrap();
        let analysis = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager", "--threshold", exposure])
            .arg(&path)
            .output();
        let Ok(analysis) = analysis else {
            eprintln!("skipped: systemd-analyze is not installed");
            break;
        };
        let text = String::from_utf8_lossy(&analysis.stdout);
        assert!(analysis.status.success(), "{text}");
        for point in text.lines().filter_map(|line| line.strip_prefix('✗')?.split_whitespace().next()) {
            let told = manual.contains(&format!("`{point}`"));
            assert!(told, "docs/perhop-router.md does not say what {point} is for");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// A pipe that nobody reads and that has no room.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).unwrap();
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut writer = File::from(writer);
    while writer.write(&[b'x'; 1]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer.into())
}

/// How long it takes to end after SIGTERM.
fn time_to_end(router: &mut Router) -> Duration {
    let began = Instant::now();
    router.signal(Signal::SIGTERM);
    while router.child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < AT_ONCE, "it ignores SIGTERM");
        thread::sleep(Duration::from_millis(5));
    }
    began.elapsed()
}

#[test]
fn a_log_that_nobody_reads_keeps_neither_packets_nor_signals_waiting() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.write(CONFIG);
    let (_reader, writer) = full_pipe();
    let mut command = lab.command(&[]);
    command.arg(&config).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut router = Router { child: command.spawn().unwrap(), output: lab.folder.join("none") };
    let began = Instant::now();
    lab.transfer(100_000);
    lab.write("nonsense");
    while value(&lab.metrics(), "perhop_reloads_total{result=\"refused\"} ") < 1.0 {
        assert!(began.elapsed() < Duration::from_secs(20), "it ignores SIGHUP");
        router.signal(Signal::SIGHUP);
        thread::sleep(Duration::from_millis(100));
    }
    let took = time_to_end(&mut router);
    eprintln!("SIGTERM under a blocked log: {took:?}");
    assert_eq!(router.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_configuration_that_blocks_keeps_no_signal_waiting() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.write(CONFIG);
    let mut router = lab.start(&config, &[]);
    fs::remove_file(&config).unwrap();
    mkfifo(&config, Mode::S_IRWXU | Mode::S_IROTH).unwrap();
    fs::set_permissions(&config, PermissionsExt::from_mode(0o644)).unwrap();
    for _ in 0..3 {
        router.signal(Signal::SIGHUP);
        thread::sleep(Duration::from_millis(100));
    }
    router.says("SIGHUP: ignored, because the previous reload has not finished");
    lab.transfer(100_000);
    let took = time_to_end(&mut router);
    eprintln!("SIGTERM while the configuration blocks: {took:?}");
    assert!(router.output().contains("lateness, us: "), "it says how it was:\n{}", router.output());
}

#[test]
fn idle_readers_of_metrics_delay_nobody_and_other_names_are_refused() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.write(CONFIG);
    let router = lab.start(&config, &[]);
    let metrics = SocketAddr::from(([127, 0, 0, 1], 9477));
    let idle: Vec<_> = (0..30).map(|_| lab.within(1, || connect(metrics))).collect();
    let began = Instant::now();
    assert!(lab.metrics().starts_with("HTTP/1.1 200 OK\r\n"));
    eprintln!("a scrape beside {} idle readers: {:?}", idle.len(), began.elapsed());
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    for (host, status) in [("evil.example:9477", "421 "), ("127.0.0.1:9477", "200 ")] {
        let answer = lab.within(1, || ask("/metrics", host));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    drop(idle);
    assert_eq!(router.end().0, Some(0));
}

#[test]
fn a_capture_on_a_full_disk_is_whole_says_so_and_goes_on_when_there_is_room() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.join("disk");
    let Some(small) = Small::mount(&folder, "600k") else { return };
    let config = lab.write(CONFIG);
    let (filler, capture) = (folder.join("filler"), folder.join("all.pcapng"));
    fs::write(&filler, vec![0; 400_000]).unwrap();
    let router = lab.start(&config, &["--capture", capture.to_str().unwrap()]);
    lab.transfer(1_000_000);
    router.says("warning: capture: No space left on device");
    thread::sleep(Duration::from_millis(1500));
    let metrics = lab.metrics();
    assert_eq!(value(&metrics, "perhop_capture_writable "), 0.0);
    assert_eq!(value(&metrics, "perhop_capture_failures_total "), 1.0);
    assert!(captured(&capture).len() > 20, "it is whole, and has what came before");
    fs::remove_file(&filler).unwrap();
    let began = Instant::now();
    while !router.output().contains("capture: it can be written again") {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", router.output());
        lab.transfer(10_000);
    }
    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains(&format!("captured: {} packets, ", captured(&capture).len())), "{output}");
    drop(small);
}

#[test]
fn a_capture_never_follows_a_link() {
    let Some(lab) = Lab::new() else { return };
    let (victim, link) = (lab.folder.join("victim"), lab.folder.join("all.pcapng"));
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let config = lab.write(CONFIG);
    let mut command = lab.command(&[]);
    fails(command.arg(config).arg("--capture").arg(link), 1, "all.pcapng: it is a symbolic link");
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
}

//! Two hosts in network namespaces of their own, with a router between them, and what tests do there.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getuid};
use pcap_file::pcapng::{Block, PcapNgReader};
use perhop_live::device::Ethernet;
use perhop_live::encapsulation::TYPE;
use perhop_live::{HEAD, Head};

pub const LEFT: [u8; 4] = [10, 77, 0, 1];
pub const RIGHT: [u8; 4] = [10, 77, 0, 2];

/// A configuration.
pub const CONFIG: &str = r#"
metrics = "127.0.0.1:9477"
user = "nobody"

[inside]
device = "in0"
kind = "packet"

[outside]
device = "out0"
kind = "packet"

[upstream]
rate = "20Mbps"
queue = { aqm = "rio", limit = "200p", in = "60/180/0.02", total = "30/90/0.05" }

[[classes]]
name = "gold"
direction = "upstream"
match = { source = "10.77.0.1", protocol = "tcp" }
profile = { marker = "token-bucket", rate = "4Mbps", burst = "40kB" }
"#;

/// The configuration's line about the user to become.
pub const USER: &str = "user = \"nobody\"\n";

/// The configuration with TUN interfaces, `tun-in` and `tun-out`.
pub fn of_tun() -> String {
    CONFIG.replace("in0", "tun-in").replace("out0", "tun-out").replace("\"packet\"", "\"tun\"")
}

/// Whether the root that we are may become another user; in a user namespace of its own it may not.
pub fn there_are_others() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let users: u64 = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    users > 65_534
}

/// Two hosts with the router's namespace between them; gone when it is dropped, whatever happens.
pub struct Lab {
    pub names: [String; 3],
    pub folder: PathBuf,
}

static LABS: AtomicU32 = AtomicU32::new(0);

impl Lab {
    /// `None`, with the reason printed, where there can be none.
    pub fn new() -> Option<Self> {
        let skip = |why: &str| eprintln!("skipped: {why}");
        if !getuid().is_root() {
            skip("namespaces with veth pairs need root");
            return None;
        }
        let tag = format!("{}-{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let names = ["left", "router", "right"].map(|name| format!("perhop-{name}-{tag}"));
        let folder = std::env::temp_dir().join(format!("perhop-router-{tag}"));
        let lab = Self { names, folder };
        if let Err(why) = lab.set_up() {
            skip(&format!("no namespaces here: {why}"));
            return None;
        }
        Some(lab)
    }

    /// A laboratory where root may become another user; `None`, with the reason printed, where there is none.
    pub fn with_other_users() -> Option<Self> {
        let lab = Self::new()?;
        if !there_are_others() {
            eprintln!("skipped: there are no other users in this namespace to become");
            return None;
        }
        Some(lab)
    }

    fn set_up(&self) -> Result<(), String> {
        std::fs::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        let [left, router, right] = &self.names;
        for name in &self.names {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        for (host, address, device, of_router) in [(left, LEFT, "a0", "in0"), (right, RIGHT, "b0", "out0")] {
            ip(&format!("-n {host} link add {device} type veth peer name {of_router} netns {router}"))?;
            // Checksums stay offloaded, as everywhere; segmentation must not be.
            ip(&format!("-n {host} link set {device} up gso_max_segs 1"))?;
            ip(&format!("-n {router} link set {of_router} up"))?;
            let address = Ipv4Addr::from(address);
            ip(&format!("-n {host} addr add {address}/24 dev {device}"))?;
        }
        Ok(())
    }

    pub fn write(&self, config: &str) -> PathBuf {
        let path = self.folder.join("router.toml");
        let user = if there_are_others() { USER } else { "user = \"root\"\n" };
        // Replaced as a whole: a router that runs never reads a part of it.
        let next = self.folder.join("next.toml");
        std::fs::write(&next, config.replace(USER, user)).unwrap();
        std::fs::rename(&next, &path).unwrap();
        path
    }

    /// Starts the router, which says that it forwards.
    pub fn start(&self, config: &Path, arguments: &[&str]) -> Router {
        let text = "forwarding between in0 (inside) and out0 (outside), packets up to 1500 bytes";
        self.try_start(config, arguments, text).unwrap_or_else(|output| panic!("{output}"))
    }

    /// Starts a router, and waits until it says this, or ends; then returns what it has said instead.
    pub fn try_start(&self, config: &Path, arguments: &[&str], text: &str) -> Result<Router, String> {
        let mut command = self.command(&[]);
        command.arg(config).args(arguments);
        self.run(command, text)
    }

    /// The program in the router's namespace, started by another one.
    pub fn command(&self, by: &[&str]) -> Command {
        // Where other users may run it.
        let binary = self.folder.join("perhop-router");
        if !binary.exists() {
            // By another process: no test that forks meanwhile can hold it open for writing ("Text file
            // busy").
            let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_perhop-router")).arg(&binary).status();
            assert!(copied.unwrap().success());
        }
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[1]]).args(by).arg(binary);
        command.stdin(Stdio::null());
        command
    }

    /// Runs it until it says this, or ends.
    pub fn run(&self, mut command: Command, text: &str) -> Result<Router, String> {
        let output = self.folder.join("output");
        let file = || File::options().create(true).append(true).open(&output).unwrap();
        command.stdout(file()).stderr(file());
        let mut router = Router { child: command.spawn().unwrap(), output: output.clone() };
        while !router.output().contains(text) {
            if router.child.try_wait().unwrap().is_some() {
                return Err(router.output());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(router)
    }

    /// Runs commands of a shell in one of the namespaces.
    pub fn shell(&self, name: usize, commands: &str) -> Result<(), String> {
        let done =
            Command::new("ip").args(["netns", "exec", &self.names[name], "sh", "-c", commands]).output();
        let done = done.map_err(|error| error.to_string())?;
        let why = || String::from_utf8_lossy(&done.stderr).trim().to_owned();
        done.status.success().then_some(()).ok_or_else(why)
    }

    /// The left host's interface, and the right one's, for frames that the kernel does not see.
    pub fn raw(&self) -> [Ethernet; 2] {
        [(0, "a0"), (2, "b0")].map(|(name, device)| {
            let [end, _] = self.within(name, || Ethernet::bridge([device, "lo"]).unwrap());
            end
        })
    }

    /// Does something in one of the namespaces.
    pub fn within<T: Send>(&self, name: usize, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(Path::new("/run/netns").join(&self.names[name])).unwrap();
        thread::scope(|scope| {
            let entered = scope.spawn(move || {
                setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            });
            entered.join().unwrap()
        })
    }

    /// Sends so many bytes from left to right, has them compared, and returns how long it took.
    pub fn transfer(&self, bytes: usize) -> Duration {
        let to = SocketAddr::from((RIGHT, 5001));
        let listener = self.within(2, || listen(to));
        let began = Instant::now();
        let mut sender = self.within(0, || connect(to));
        let data: Vec<u8> = (0..bytes).map(|n| (n / 7 % 251) as u8).collect();
        let (mut receiver, _) = listener.accept().unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                sender.write_all(&data).unwrap();
                sender.shutdown(Shutdown::Write).unwrap();
            });
            let mut came = Vec::new();
            receiver.read_to_end(&mut came).unwrap();
            assert!(came == data, "{} bytes came of {bytes}, or others", came.len());
        });
        began.elapsed()
    }

    pub fn metrics(&self) -> String {
        self.within(1, || get("/metrics"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub struct Router {
    pub child: Child,
    pub output: PathBuf,
}

impl Router {
    /// Waits until the router says this.
    pub fn says(&self, text: &str) {
        let began = Instant::now();
        while !self.output().contains(text) {
            assert!(began.elapsed() < Duration::from_secs(20), "{text:?} is missing in:\n{}", self.output());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    pub fn signal(&self, signal: Signal) {
        // `ip netns exec` becomes the program: it is the child itself.
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    pub fn status(&self, key: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().to_owned()
    }

    /// The kernel's report of each thread.
    pub fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()).collect()
    }

    /// Ends it; returns its exit code and all that it has said.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.signal(Signal::SIGTERM);
        let status = self.child.wait().unwrap();
        (status.code(), self.output())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The head of a broadcast frame of this Ethernet type.
pub fn head(kind: [u8; 2]) -> Head {
    let mut head = [0; HEAD];
    head[10..22].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7]);
    head[TYPE].copy_from_slice(&kind);
    head
}

/// The lengths of the packets in a file, which must be whole to its end.
pub fn captured(path: &Path) -> Vec<u32> {
    let file = std::fs::read(path).unwrap();
    let mut rest = &file[..];
    while !rest.is_empty() {
        let length = u32::from_ne_bytes(rest[4..8].try_into().unwrap()) as usize;
        assert!(length >= 12 && length <= rest.len(), "a torn block at the end");
        rest = &rest[length..];
    }
    let (mut reader, mut lengths) = (PcapNgReader::new(&file[..]).unwrap(), Vec::new());
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            lengths.push(packet.original_len);
        }
    }
    lengths
}

pub fn ip(arguments: &str) -> Result<(), String> {
    let done = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    let why = || format!("ip {arguments}: {}", String::from_utf8_lossy(&done.stderr).trim());
    done.status.success().then_some(()).ok_or_else(why)
}

/// Listens there, as soon as no child that is about to become another program holds the last listener.
fn listen(at: SocketAddr) -> TcpListener {
    let began = Instant::now();
    loop {
        match TcpListener::bind(at) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && began.elapsed().as_secs() < 10 => {}
            bound => return bound.unwrap(),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

pub fn connect(to: SocketAddr) -> TcpStream {
    TcpStream::connect_timeout(&to, Duration::from_secs(10)).unwrap()
}

pub fn get(path: &str) -> String {
    ask(path, "localhost:9477")
}

pub fn ask(path: &str, host: &str) -> String {
    let mut connection = connect(SocketAddr::from(([127, 0, 0, 1], 9477)));
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

pub fn value(metrics: &str, line: &str) -> f64 {
    let found = metrics.lines().find_map(|found| found.strip_prefix(line));
    found.unwrap_or_else(|| panic!("{line} is missing in\n{metrics}")).trim().parse().unwrap()
}

/// Fails with this exit code, and says this.
pub fn fails(command: &mut Command, code: i32, text: &str) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it runs, and does not say: {text}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(code), "{said}");
    assert!(said.contains(text), "{text} is missing in\n{said}");
}

/// A file system of some size; gone when it is dropped.
pub struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    /// `None`, with the reason printed, where none can be mounted.
    pub fn mount(at: &'a Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at);
        let done = mount.output();
        if done.as_ref().is_ok_and(|done| done.status.success()) {
            return Some(Self(at));
        }
        eprintln!("skipped: no file system can be mounted here: {done:?}");
        None
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy".as_ref(), self.0.as_os_str()]).output();
    }
}

//! The program as a user runs it, between two hosts in network namespaces of their own: needs root and iproute2, and says so
//! where it is skipped.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "it runs programs, opens sockets, and waits"
)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getuid};
use pcap_file::pcapng::{Block, PcapNgReader};
use perhop_live::HEAD;
use perhop_live::device::{Device, Ethernet};

const LEFT: [u8; 4] = [10, 77, 0, 1];
const RIGHT: [u8; 4] = [10, 77, 0, 2];

const CONFIG: &str = r#"
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

/// Its line about whom to become.
const USER: &str = "user = \"nobody\"\n";

/// Whether the root that we are may become another user; in a user namespace of its own it may not.
fn there_are_others() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let users: u64 = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    users > 65_534
}

/// Two hosts with the router's namespace between them; gone when it is dropped, whatever happens.
struct Lab {
    names: [String; 3],
    folder: PathBuf,
}

static LABS: AtomicU32 = AtomicU32::new(0);

impl Lab {
    /// `None`, with the reason printed, where there can be none.
    fn new() -> Option<Self> {
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

    fn write(&self, config: &str) -> PathBuf {
        let path = self.folder.join("router.toml");
        let user = if there_are_others() { USER } else { "" };
        std::fs::write(&path, config.replace(USER, user)).unwrap();
        path
    }

    /// Starts the router, which says that it forwards.
    fn start(&self, config: &Path, arguments: &[&str]) -> Router {
        let text = "forwarding between in0 (inside) and out0 (outside), packets up to 1500 bytes";
        self.try_start(config, arguments, text).unwrap_or_else(|output| panic!("{output}"))
    }

    /// The same, until it says this, or ends; then with what it has said instead.
    fn try_start(&self, config: &Path, arguments: &[&str], text: &str) -> Result<Router, String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[1], env!("CARGO_BIN_EXE_perhop-router")]);
        let output = self.folder.join("output");
        let file = || File::options().create(true).append(true).open(&output).unwrap();
        command.arg(config).args(arguments).stdout(file()).stderr(file()).stdin(Stdio::null());
        let mut router = Router { child: command.spawn().unwrap(), output: output.clone() };
        while !router.output().contains(text) {
            if router.child.try_wait().unwrap().is_some() {
                return Err(router.output());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(router)
    }

    /// Does something in one of the namespaces.
    fn within<T: Send>(&self, name: usize, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(Path::new("/run/netns").join(&self.names[name])).unwrap();
        thread::scope(|scope| {
            let entered = scope.spawn(move || {
                setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            });
            entered.join().unwrap()
        })
    }

    /// Sends so many bytes from left to right, has them compared, and tells how long it took.
    fn transfer(&self, bytes: usize) -> Duration {
        let to = SocketAddr::from((RIGHT, 5001));
        let listener = self.within(2, || TcpListener::bind(to).unwrap());
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

    fn metrics(&self) -> String {
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

struct Router {
    child: Child,
    output: PathBuf,
}

impl Router {
    /// Waits until the router says this.
    fn says(&self, text: &str) {
        let began = Instant::now();
        while !self.output().contains(text) {
            assert!(began.elapsed() < Duration::from_secs(20), "{text:?} is missing in:\n{}", self.output());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        // `ip netns exec` becomes the program: it is the child itself.
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    fn status(&self, key: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().to_owned()
    }

    /// Ends it; tells its exit code and all that it has said.
    fn end(mut self) -> (Option<i32>, String) {
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

fn ip(arguments: &str) -> Result<(), String> {
    let done = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    let why = || format!("ip {arguments}: {}", String::from_utf8_lossy(&done.stderr).trim());
    done.status.success().then_some(()).ok_or_else(why)
}

fn connect(to: SocketAddr) -> TcpStream {
    TcpStream::connect_timeout(&to, Duration::from_secs(10)).unwrap()
}

fn get(path: &str) -> String {
    let mut connection = connect(SocketAddr::from(([127, 0, 0, 1], 9477)));
    write!(connection, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

fn value(metrics: &str, line: &str) -> f64 {
    let found = metrics.lines().find_map(|found| found.strip_prefix(line));
    found.unwrap_or_else(|| panic!("{line} is missing in\n{metrics}")).trim().parse().unwrap()
}

#[test]
fn a_transfer_passes_at_the_links_rate_through_a_reload_and_all_of_it_is_told() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.write(CONFIG);
    let capture = lab.folder.join("all.pcapng");
    let router = lab.start(&config, &["--capture", capture.to_str().unwrap()]);
    let users = router.status("Uid:");
    if there_are_others() {
        assert_eq!(users.split_whitespace().collect::<BTreeSet<_>>().len(), 1, "{users}");
        assert!(!users.starts_with('0'), "{users}");
    } else {
        eprintln!("skipped in part: there are no other users in this namespace to become");
    }
    assert_eq!(router.status("CapPrm:"), "0000000000000000");
    assert_eq!(router.status("NoNewPrivs:"), "1");

    let bytes = 5_000_000;
    let took = thread::scope(|scope| {
        let transfer = scope.spawn(|| lab.transfer(bytes));
        thread::sleep(Duration::from_millis(700));
        lab.write("nonsense");
        router.signal(Signal::SIGHUP);
        router.says("router.toml:1: ");
        lab.write(&CONFIG.replace("limit = \"200p\"", "limit = \"300p\""));
        router.signal(Signal::SIGHUP);
        router.says("new queues: upstream; new meters: none; all else goes on");
        transfer.join().unwrap()
    });
    // In 1500 bytes on the link, 1448 are data. A loaded machine may be slower, never faster.
    let at_best = bytes as f64 * 8.0 / 20e6 * 1500.0 / 1448.0;
    let took = took.as_secs_f64();
    assert!((at_best * 0.98..at_best * 1.5).contains(&took), "{took} s, {at_best} s at best");

    thread::sleep(Duration::from_millis(1500));
    let metrics = lab.metrics();
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n") && metrics.ends_with("# EOF\n"));
    let sent = "perhop_class_sent_packets_total{class=\"gold\",direction=\"upstream\"} ";
    assert!(value(&metrics, sent) > bytes as f64 / 1448.0);
    assert_eq!(value(&metrics, "perhop_reloads_total{result=\"applied\"} "), 1.0);
    assert_eq!(value(&metrics, "perhop_reloads_total{result=\"refused\"} "), 1.0);
    let passed = "perhop_passed_frames_total{device=\"in0\",side=\"inside\"} ";
    assert!(value(&metrics, passed) >= 1.0, "ARP");
    let marked = "perhop_class_marked_packets_total{class=\"gold\",direction=\"upstream\",color=";
    let of_color = |color: &str| value(&metrics, &format!("{marked}\"{color}\"}} "));
    assert!(of_color("green") > 500.0 && of_color("yellow") > 2000.0);
    assert!(lab.within(1, || get("/")).contains("/metrics"));
    assert!(lab.within(1, || get("/other")).starts_with("HTTP/1.1 404 "));

    // Whoever connects and says nothing keeps others from reading for two seconds, and nobody from sending.
    let silent = lab.within(1, || connect(SocketAddr::from(([127, 0, 0, 1], 9477))));
    assert!(lab.metrics().starts_with("HTTP/1.1 200 OK\r\n"));
    drop(silent);

    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    let parts =
        ["in0 (inside): received ", "gold (upstream): ", "lateness, us: ", "reloads: 1 applied, 1 refused"];
    for part in parts {
        assert!(output.contains(part), "{part} is missing in\n{output}");
    }
    check_capture(&capture, &output);
}

/// Every packet is in the file, and tshark, where there is one, reads it.
fn check_capture(path: &Path, output: &str) {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut packets = 0;
    while let Some(block) = reader.next_block() {
        packets += usize::from(matches!(block.unwrap(), Block::EnhancedPacket(_)));
    }
    assert!(output.contains(&format!("captured: {packets} packets, ")), "{packets}\n{output}");
    let path = path.to_str().unwrap();
    let shark = Command::new("tshark").args(["-r", path, "-T", "fields", "-e", "ip.dsfield.dscp"]).output();
    match shark {
        Err(_) => eprintln!("skipped: tshark is not installed, so only our own look at the capture counts"),
        Ok(done) => {
            let text = String::from_utf8(done.stdout).unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(text.lines().count(), packets);
            assert!(
                text.lines().any(|dscp| dscp == "10") && text.lines().any(|dscp| dscp == "12"),
                "AF11, AF12"
            );
        }
    }
}

#[test]
fn after_a_kill_it_starts_again() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.write(CONFIG);
    for _ in 0..2 {
        let mut router = lab.start(&config, &[]);
        lab.transfer(100_000);
        router.signal(Signal::SIGKILL);
        router.child.wait().unwrap();
        std::fs::remove_file(&router.output).unwrap();
    }
    let router = lab.start(&config, &[]);
    lab.transfer(100_000);
    assert_eq!(router.end().0, Some(0));
}

#[test]
fn packets_that_offload_made_of_many_are_named() {
    let Some(lab) = Lab::new() else { return };
    ip(&format!("-n {} link set a0 gso_max_segs 100", lab.names[0])).unwrap();
    let config = lab.write(CONFIG);
    let router = lab.start(&config, &[]);
    lab.transfer(30_000);
    router
        .says("warning: in0: packets that offload made of many, which no queue can judge; turn it off here");
    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains(": packets that offload made of many"), "{output}");
}

/// Raw frames instead of VLAN interfaces, which not every kernel has.
#[test]
fn tagged_frames_keep_their_tags() {
    let Some(lab) = Lab::new() else { return };
    let router = lab.start(&lab.write(CONFIG), &[]);
    let [sender, _] = lab.within(0, || Ethernet::bridge(["a0", "lo"]).unwrap());
    let [receiver, _] = lab.within(2, || Ethernet::bridge(["b0", "lo"]).unwrap());
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(LEFT, RIGHT, 64).udp(7, 77);
    builder.write(&mut packet, b"tagged").unwrap();
    let mut head = [0; HEAD];
    head[10..22].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7]);
    head[22..28].copy_from_slice(&[0x81, 0x00, 0x60, 0x07, 0x08, 0x00]); // VLAN 7, priority 3
    sender.send(&head, &packet).unwrap();
    let (mut came, mut room) = ([0; HEAD], [0; 1500]);
    let began = Instant::now();
    loop {
        match receiver.receive(&mut came, &mut room).unwrap() {
            Some(length) if room[..length].ends_with(b"tagged") => break,
            _ => thread::sleep(Duration::from_millis(5)),
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{}", router.output());
    }
    assert_eq!(came[10..], head[10..]);
    let (code, output) = router.end();
    assert!(code == Some(0) && output.contains("unmatched (upstream): "), "it passed the queue:\n{output}");
}

#[test]
fn an_interface_may_go_down_but_not_away() {
    let Some(lab) = Lab::new() else { return };
    let mut router = lab.start(&lab.write(CONFIG), &[]);
    let namespace = &lab.names[1];
    ip(&format!("-n {namespace} link set in0 down")).unwrap();
    thread::sleep(Duration::from_millis(200));
    ip(&format!("-n {namespace} link set in0 up")).unwrap();
    lab.transfer(100_000);
    ip(&format!("-n {namespace} link del in0")).unwrap();
    router.says("error: a device is gone");
    assert_eq!(router.child.wait().unwrap().code(), Some(1), "{}", router.output());
}

/// Two TUN devices between two networks, with the rules that docs/router.md names.
#[test]
fn what_the_kernel_routes_to_tun_devices_passes() {
    let Some(lab) = Lab::new() else { return };
    let [left, router, right] = &lab.names;
    let all = |commands: &[String]| commands.iter().try_for_each(|command| ip(command));
    all(&[
        format!("-n {left} addr flush dev a0"),
        format!("-n {left} addr add 10.77.0.1/32 dev a0"),
        format!("-n {left} route add 10.77.0.2/32 dev a0"),
        format!("-n {right} addr flush dev b0"),
        format!("-n {right} addr add 10.77.0.2/32 dev b0"),
        format!("-n {right} route add 10.77.0.1/32 dev b0"),
        format!("-n {router} route add 10.77.0.1/32 dev in0"),
        format!("-n {router} route add 10.77.0.2/32 dev out0"),
    ])
    .unwrap();
    let settings = "echo 1 > /proc/sys/net/ipv4/ip_forward; for one in in0 out0; do \
                    echo 1 > /proc/sys/net/ipv4/conf/$one/proxy_arp; done";
    let done = Command::new("ip").args(["netns", "exec", router, "sh", "-c", settings]).output().unwrap();
    if !done.status.success() {
        eprintln!("skipped: no forwarding here: {}", String::from_utf8_lossy(&done.stderr));
        return;
    }
    let config = CONFIG.replace("in0", "tun-in").replace("out0", "tun-out").replace("\"packet\"", "\"tun\"");
    let router_at_work = match lab.try_start(&lab.write(&config), &[], "forwarding between tun-in (inside)") {
        Ok(router) => router,
        Err(output) if output.contains("error: tun-in: ") => {
            eprintln!("skipped: no TUN devices here: {output}");
            return;
        }
        Err(output) => panic!("{output}"),
    };
    all(&[
        format!("-n {router} route add default dev tun-in table 100"),
        format!("-n {router} route add default dev tun-out table 101"),
        format!("-n {router} rule add iif in0 lookup 100"),
        format!("-n {router} rule add iif out0 lookup 101"),
    ])
    .unwrap();
    lab.transfer(1_000_000);
    let (code, output) = router_at_work.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("gold (upstream): ") && output.contains("unmatched (downstream): "), "{output}");
}

/// Fails with this exit code, and says this.
fn fails(command: &mut Command, code: i32, text: &str) {
    let done = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(code), "{said}");
    assert!(said.contains(text), "{text} is missing in\n{said}");
}

#[test]
fn mistakes_end_with_2_and_one_line() {
    let folder = std::env::temp_dir().join(format!("perhop-router-{}-mistakes", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("r.toml");
    let router = || Command::new(env!("CARGO_BIN_EXE_perhop-router"));
    std::fs::write(&path, CONFIG.replace("limit", "limti")).unwrap();
    fails(
        router().arg(&path),
        2,
        "r.toml:15: upstream.queue.limti: unknown key `limti`; did you mean `limit`?",
    );
    std::fs::write(&path, CONFIG.replace("nobody", "nobody-at-all")).unwrap();
    fails(router().arg("--check").arg(&path), 2, "there is no user `nobody-at-all`");
    std::fs::write(&path, CONFIG).unwrap();
    let checked = router().arg("--check").arg(&path).output().unwrap();
    assert_eq!((checked.status.code(), checked.stderr.len()), (Some(0), 0));
    fails(router().arg(folder.join("none.toml")), 2, "none.toml: No such file");
    fails(&mut router(), 2, "Usage");
    fails(router().arg(&path).arg("--capture-drops"), 2, "--capture");
    std::fs::write(&path, CONFIG.replace("in0", "nosuchdevice")).unwrap();
    fails(router().arg(&path), 1, "nosuchdevice (inside): ");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_missing_capability_is_named() {
    let Some(lab) = Lab::new() else { return };
    if !there_are_others() {
        eprintln!("skipped: there are no other users in this namespace");
        return;
    }
    let config = lab.write(&CONFIG.replace(USER, ""));
    let binary = lab.folder.join("perhop-router");
    std::fs::copy(env!("CARGO_BIN_EXE_perhop-router"), &binary).unwrap();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.names[1], "setpriv", "--reuid=65534", "--clear-groups", "--"]);
    fails(command.arg(&binary).arg(config), 1, "in0 (inside): the capability CAP_NET_RAW is missing");
}

//! The router in service, for as long as one likes: hostile packets, reloads under load, kills at any moment,
//! a clock that jumps, interfaces that go down, a disk that is full. After each, every packet is accounted
//! for, memory has not grown, every message is one line, and nothing that was promised is lost.
//!
//! `PERHOP_SOAK=600` lets each story last so many seconds, `PERHOP_SOAK_SEED` tells others (`make soak`).
//! Needs root and iproute2, and says so where it is skipped.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "it runs programs, opens sockets, and waits"
)]

mod lab;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use etherparse::PacketBuilder;
use nix::sys::signal::Signal;
use perhop_core::Rng;
use perhop_live::device::{Device, Ethernet};
use perhop_live::{HEAD, Loss};
use perhop_pcap::read::{Capture, CaptureError};

use lab::{CONFIG, LEFT, Lab, RIGHT, Router, Small, head, ip, of_tun, value};

/// How long each story lasts.
fn length() -> Duration {
    let seconds = std::env::var("PERHOP_SOAK").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(4))
}

fn rng(story: &str) -> Rng {
    let seed = std::env::var("PERHOP_SOAK_SEED").ok().and_then(|seed| seed.parse().ok());
    Rng::stream(seed.unwrap_or(1), story)
}

/// A laboratory whose kernels send nothing of their own.
fn quiet() -> Option<Lab> {
    let lab = Lab::new()?;
    let off = "for one in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $one; done";
    if let Err(why) = (0..lab.names.len()).try_for_each(|name| lab.shell(name, off)) {
        eprintln!("skipped: {why}");
        return None;
    }
    Some(lab)
}

/// What the kernel counts at both interfaces of the router: frames that came, and frames that left.
fn kernel(lab: &Lab) -> ([f64; 2], f64) {
    let count = |device: &str, count: &str| -> f64 {
        let path = format!("/sys/class/net/{device}/statistics/{count}_packets");
        let done = Command::new("ip").args(["netns", "exec", &lab.names[1], "cat", &path]).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().parse().unwrap()
    };
    (["in0", "out0"].map(|device| count(device, "rx")), count("in0", "tx") + count("out0", "tx"))
}

/// The sum of a metric over all labels that contain these.
fn sum(metrics: &str, name: &str, labels: &[&str]) -> f64 {
    let of = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
    metrics.lines().filter(of).map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Every packet that came is at one place, by the router's own counts: at devices, classes and queues.
fn assert_consistent(metrics: &str) {
    let all = |name: &str| sum(metrics, &format!("perhop_{name}"), &[]);
    let (received, sent, lost) =
        (all("received_packets_total"), all("sent_packets_total"), all("lost_packets_total"));
    let held = all("held_packets");
    assert_eq!(received, sent + lost + held, "{metrics}");
    let of_reason = |why: Loss| sum(metrics, "perhop_lost_packets_total", &[&format!("\"{}\"", why.name())]);
    let before = Loss::all().filter(|why| !matches!(why, Loss::Dropped(_))).map(of_reason).sum::<f64>();
    assert_eq!(all("class_received_packets_total"), received - before, "{metrics}");
    assert_eq!(all("class_sent_packets_total"), sent, "{metrics}");
    let [arrived, left, dropped] =
        ["arrived", "sent", "dropped"].map(|what| all(&format!("queue_{what}_packets_total")));
    assert_eq!(arrived, left + dropped + all("queue_packets"), "{metrics}");
    assert_eq!(all("class_dropped_packets_total"), dropped, "{metrics}");
}

/// Waits until no packet is under way and the metrics say so.
fn settled(lab: &Lab) -> String {
    let began = Instant::now();
    loop {
        let before = lab.metrics();
        thread::sleep(Duration::from_millis(1200));
        let metrics = lab.metrics();
        let all = |metrics: &str| sum(metrics, "perhop_received_packets_total", &[]);
        if value(&metrics, "perhop_held_packets ") == 0.0 && all(&before) == all(&metrics) {
            return metrics;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "packets stay under way:\n{metrics}");
    }
}

/// How a message may begin; anything else is no message of the router, or the rest of one.
const MESSAGES: [&str; 9] = [
    "forwarding between ",
    "warning: ",
    "reloaded ",
    "SIGHUP: ignored",
    "capture: it can be written again; ",
    "in0 (inside): received ",
    "/tmp/",
    "error: ",
    "tun-in (inside): received ",
];

/// Every message up to the summary is one line, of printable characters.
fn assert_lines(output: &str) {
    let messages = output.lines().take_while(|line| !line.contains(" (inside): received "));
    for line in messages {
        assert!(MESSAGES.iter().any(|start| line.starts_with(start)), "{line:?} in\n{output}");
    }
    assert!(!output.replace('\n', "").contains(char::is_control), "{output:?}");
}

/// The most memory that a router had, in the first and in the second half of a story, in kB.
struct Memory {
    began: Instant,
    most: [u64; 2],
}

impl Memory {
    /// Growth that is no leak: the allocator's, and pages that are touched late.
    const ALLOWED: u64 = 4096;

    fn new() -> Self {
        Self { began: Instant::now(), most: [0; 2] }
    }

    fn look(&mut self, router: &Router) {
        let resident = router.status("VmRSS:").trim_end_matches(" kB").trim().parse().unwrap();
        let half = usize::from(self.began.elapsed() > length() / 2);
        self.most[half] = self.most[half].max(resident);
    }

    fn assert_bounded(&self) {
        let [first, second] = self.most;
        assert!(second <= first + Self::ALLOWED, "{first} kB, then {second} kB");
    }
}

/// Frames that somebody sends who means no good.
struct Hostile {
    rng: Rng,
    frame: Vec<u8>,
    burst: u16,
}

impl Hostile {
    const KINDS: [u16; 8] = [0x0800, 0x0800, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x8864, 0x9100];

    fn byte(&mut self) -> u8 {
        self.rng.next_u64() as u8
    }

    fn up_to(&mut self, most: usize) -> usize {
        self.rng.up_to(most as u64) as usize
    }

    /// A valid datagram from left to right, of either version.
    fn datagram(&mut self) -> Vec<u8> {
        let (data, ports) = (vec![7; self.up_to(1400)], self.rng.next_u64() as u32);
        let (source, destination) = (ports as u16, (ports >> 16) as u16 % 100);
        let mut packet = Vec::new();
        if self.rng.chance(0.5) {
            let builder = PacketBuilder::ipv4(LEFT, RIGHT, 64).udp(source, destination);
            builder.write(&mut packet, &data).unwrap();
        } else {
            let builder = PacketBuilder::ipv6([0xfd; 16], [0xfe; 16], 64).udp(source, destination);
            builder.write(&mut packet, &data).unwrap();
        }
        packet
    }

    /// Writes the next frame, and returns its Ethernet type.
    fn next(&mut self) -> u16 {
        let mut packet = self.datagram();
        let mut kind = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        match self.rng.up_to(9) {
            0 | 1 => {}
            2 => packet.truncate(self.up_to(60)),
            3 => (0..=self.up_to(8)).for_each(|_| {
                let place = self.up_to(packet.len().min(60) - 1);
                packet[place] ^= self.byte();
            }),
            // A fragment, first or later, of a flood of datagrams.
            4 => {
                self.burst = self.burst.wrapping_add(1);
                packet[4..6].copy_from_slice(&self.burst.to_be_bytes());
                if kind == 0x0800 {
                    packet[6..8].copy_from_slice(&[0x20 | self.byte() & 0x1f, self.byte() & 1]);
                    packet[10..12].fill(0);
                    let sum = perhop_live::wire::checksum(&packet[..20]).to_be_bytes();
                    packet[10..12].copy_from_slice(&sum);
                } else {
                    packet[6] = 44;
                }
            }
            // Extension headers without end.
            5 => {
                packet = [
                    &[0x60, 0, 0, 0, 5, 0, self.byte() % 64, 64][..],
                    &[0xfd; 32],
                    &[60, 0, 1, 4, 0, 0, 0, 0].repeat(160),
                ]
                .concat();
                kind = 0x86dd;
            }
            6 | 7 => {
                kind = Self::KINDS[self.up_to(7)];
                let mut before: Vec<u8> = (0..self.up_to(40)).map(|_| self.byte()).collect();
                if before.len() > 8 {
                    let next = [[0x08, 0x00], [0x81, 0x00], [0x88, 0x47], [0x00, 0x21]][self.up_to(3)];
                    before[2..4].copy_from_slice(&next);
                    before.truncate([4, 8, before.len()][self.up_to(2)]);
                }
                packet = [before, packet].concat();
            }
            8 => packet = (0..self.up_to(200)).map(|_| self.byte()).collect(),
            _ => packet.resize(3900, 0), // longer than the other side takes
        }
        self.frame = packet;
        kind
    }
}

/// Sends hostile frames from one end until it is told to stop.
fn attack(end: &mut Ethernet, hostile: &mut Hostile, stop: &AtomicBool) -> u64 {
    let (mut sent, mut room) = (0, vec![0; 4000]);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..64 {
            let kind = hostile.next();
            end.send(&head(kind.to_be_bytes()), &hostile.frame);
        }
        sent += 64 - end.flush();
        while let Ok(Some(_)) = end.receive(&mut [0; HEAD], &mut room) {}
        thread::sleep(Duration::from_millis(2));
    }
    sent
}

/// A configuration with everything that a packet can match.
fn many_classes() -> String {
    let classes = r#"
[[classes]]
name = "tagged"
match = { vlan = "0..2000", destination-ports = "0001..50" }
dscp = "AF41"
pcp = 3
[[classes]]
name = "labelled"
match = { mpls-label = "0..1048575" }
trust = true
mpls-tc = 2
[[classes]]
name = "session"
match = { pppoe-session = "0..65535" }
profile = { marker = "trtcm", rate = "1Mbps", burst = "10kB", peak-rate = "2Mbps", peak-burst = "20kB" }
"#;
    CONFIG.replace("20Mbps", "100Mbps").replacen("[[classes]]", &format!("{classes}[[classes]]"), 1)
}

/// Runs a story under hostile packets from both sides, and checks in the end that every frame is accounted
/// for.
fn under_attack(lab: &Lab, router: &Router, name: &str, mut story: impl FnMut() + Send) -> (u64, Memory) {
    let before = kernel(lab);
    let ends = lab.raw();
    let (stop, mut memory) = (AtomicBool::new(false), Memory::new());
    let sent = thread::scope(|scope| {
        let stop = &stop;
        let attacks = ends.map(|mut end| {
            let mut hostile = Hostile { rng: rng(name), frame: Vec::new(), burst: 0 };
            scope.spawn(move || attack(&mut end, &mut hostile, stop))
        });
        let began = Instant::now();
        while began.elapsed() < length() {
            story();
            memory.look(router);
        }
        stop.store(true, Ordering::Relaxed);
        attacks.map(|attack| attack.join().unwrap()).iter().sum()
    });
    let metrics = settled(lab);
    assert_consistent(&metrics);
    let after = kernel(lab);
    for (side, device) in ["inside", "outside"].into_iter().enumerate() {
        let label = format!("side=\"{device}\"");
        let read = ["received_packets", "passed_frames", "refused_frames"]
            .map(|what| sum(&metrics, &format!("perhop_{what}_total"), &[&label]));
        assert_eq!(read.iter().sum::<f64>(), after.0[side] - before.0[side], "{device}\n{metrics}");
    }
    let all = |what: &str| sum(&metrics, &format!("perhop_{what}_total"), &[]);
    let left = all("sent_packets") + all("passed_frames") - all("unsent_packets");
    assert_eq!(left, after.1 - before.1, "{metrics}");
    memory.assert_bounded();
    (sent, memory)
}

fn conclude(router: Router, story: &str, told: &str) {
    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    assert_lines(&output);
    eprintln!("{story}, {} s: {told}", length().as_secs());
}

#[test]
fn hostile_packets_are_all_accounted_for() {
    let Some(lab) = quiet() else { return };
    ip(&format!("-n {} link set a0 mtu 4000", lab.names[0])).unwrap();
    ip(&format!("-n {} link set in0 mtu 4000", lab.names[1])).unwrap();
    let router = lab.start(&lab.write(&many_classes()), &[]);
    let pause = || thread::sleep(Duration::from_millis(500));
    let (sent, memory) = under_attack(&lab, &router, "hostile", pause);
    let metrics = lab.metrics();
    for family in [
        "lost_packets_total{reason=\"truncated\"",
        "unread_frames_total",
        "portless_packets_total{reason=\"fragment\"",
    ] {
        assert!(sum(&metrics, &format!("perhop_{family}"), &[]) > 0.0, "{family}\n{metrics}");
    }
    lab.transfer(500_000);
    let overrun = sum(&metrics, "perhop_refused_frames_total", &["overrun"]);
    conclude(router, "hostile", &format!("{sent} frames, {overrun} overrun, memory {:?} kB", memory.most));
}

/// Configurations that the router takes, and some that it refuses.
fn configurations() -> Vec<String> {
    let base = many_classes();
    let replaced = |from: &str, to: &str| {
        assert!(base.contains(from), "{from}");
        base.replace(from, to)
    };
    let drr = "queue = { scheduler = \"drr\", queues = [{ name = \"a\", match = { dscp = \"AF11\" }, rule = { aqm = \"drop-tail\", limit = \"50p\" } }, { name = \"b\", rule = { aqm = \"drop-tail\", limit = \"90p\" } }] }";
    let queue = base.lines().find(|line| line.starts_with("queue = ")).unwrap();
    vec![
        base.clone(),
        replaced("limit = \"200p\"", "limit = \"150p\""),
        replaced("rate = \"100Mbps\"", "rate = \"50Mbps\"\ndelay = \"5ms\""),
        replaced("rate = \"4Mbps\", burst = \"40kB\"", "rate = \"1Mbps\", burst = \"10kB\", out = \"drop\""),
        replaced("name = \"tagged\"", "name = \"other\""),
        replaced(queue, drr),
        replaced(
            "[[classes]]\nname = \"session\"",
            "[downstream]\nrate = \"9Mbps\"\nqueue = { aqm = \"drop-tail\", limit = \"20p\" }\n[[classes]]\nname = \"session\"",
        ),
        "nonsense".into(),
        String::new(),
        replaced("limit = \"200p\"", "limit = \"0p\""),
        replaced("vlan = \"0..2000\"", "vlan = \"2000..0\""),
        replaced("device = \"in0\"", "device = \"in1\""),
        "\u{1b}[31m = \"\r\n".into(),
    ]
}

#[test]
fn reloads_under_load_lose_nothing() {
    let Some(lab) = quiet() else { return };
    let configurations = configurations();
    let path = lab.write(&configurations[0]);
    let router = lab.start(&path, &[]);
    let (mut rng, mut signals) = (rng("reloads"), 0);
    let reload = || {
        let text = &configurations[rng.up_to(configurations.len() as u64 - 1) as usize];
        lab.write(text);
        router.signal(Signal::SIGHUP);
        signals += 1;
        thread::sleep(Duration::from_millis(20 + rng.up_to(150)));
    };
    let (sent, memory) = under_attack(&lab, &router, "reloads", reload);
    let metrics = lab.metrics();
    let result = |result: &str| value(&metrics, &format!("perhop_reloads_total{{result=\"{result}\"}} "));
    let (applied, refused) = (result("applied"), result("refused"));
    let output = router.output();
    let lines = |text: &str| output.lines().filter(|line| line.contains(text)).count() as f64;
    assert_eq!((lines("reloaded "), lines("the running configuration stays in use")), (applied, refused));
    assert!(
        applied > 0.0 && refused > 0.0 && applied + refused <= f64::from(signals),
        "{applied} {refused} {signals}"
    );
    lab.write(&configurations[0]);
    router.signal(Signal::SIGHUP);
    thread::sleep(Duration::from_millis(500));
    lab.transfer(500_000);
    let told = format!(
        "{sent} frames, {signals} signals, {applied} applied, {refused} refused, memory {:?} kB",
        memory.most
    );
    conclude(router, "reloads", &told);
}

/// How many packets are in a file, which must be whole up to a packet that is cut off, with their times in
/// order.
fn packets(path: &Path) -> u64 {
    times(path).len() as u64
}

/// The times of the packets in such a file, in nanoseconds since 1970.
fn times(path: &Path) -> Vec<i128> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    if file.metadata().unwrap().len() == 0 {
        return Vec::new(); // it was killed before it began
    }
    let mut capture = Capture::open(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut times = Vec::new();
    loop {
        match capture.read_next() {
            Ok(Some(record)) => {
                let time = record.time.unwrap();
                assert!(times.last().is_none_or(|last| *last <= time), "packet {} goes back", record.number);
                times.push(time);
            }
            Ok(None) | Err(CaptureError::Cut(_)) => return times,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

#[test]
fn whatever_moment_it_is_killed_at_it_starts_again_and_its_files_can_be_read() {
    let Some(lab) = quiet() else { return };
    let mut rng = rng("kills");
    let config = lab.write(CONFIG);
    let capture = lab.folder.join("all.pcapng");
    let tun = lab.folder.join("tun.toml");
    fs::write(&tun, of_tun()).unwrap();
    let (began, mut kills, mut most) = (Instant::now(), 0, 0);
    while began.elapsed() < length() {
        let of_tun = rng.chance(0.2);
        let mut command = lab.command(&[]);
        command.arg(if of_tun { &tun } else { &config }).arg("--capture").arg(&capture);
        // Now and then it is killed before it forwards.
        let text = if rng.chance(0.3) { "" } else { "forwarding between " };
        let mut router = match lab.run(command, text) {
            Ok(router) => router,
            Err(output) if of_tun && output.contains("error: tun-in: ") => {
                eprintln!("skipped in part: no TUN devices here: {output}");
                continue;
            }
            Err(output) => panic!("{output}"),
        };
        let written = if text.is_empty() || of_tun {
            thread::sleep(Duration::from_millis(rng.up_to(40)));
            0
        } else {
            lab.transfer(50_000 + rng.up_to(100_000) as usize);
            thread::sleep(Duration::from_millis(rng.up_to(1500)));
            let metrics = lab.metrics();
            sum(&metrics, "perhop_captured_packets_total", &["written"]) as u64
        };
        router.signal(Signal::SIGKILL);
        router.child.wait().unwrap();
        kills += 1;
        let found = packets(&capture);
        assert!(found >= written, "{found} packets in the file, {written} were written");
        most = most.max(found);
        assert_lines(&router.output());
        fs::remove_file(&router.output).unwrap();
        for device in ["tun-in", "tun-out"] {
            assert!(ip(&format!("-n {} link show {device}", lab.names[1])).is_err(), "{device} is left over");
        }
    }
    let router = lab.start(&config, &[]);
    lab.transfer(100_000);
    conclude(router, "kills", &format!("{kills} kills, up to {most} packets in a file"));
}

/// The wall clock of one process, which a file moves: what `settimeofday` does to all.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static volatile long *offset;
static int (*original)(clockid_t, struct timespec *);
__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("PERHOP_CLOCK"), O_RDONLY);
    offset = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    original = dlsym(RTLD_NEXT, "clock_gettime");
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = original(clock, time);
    if (clock == CLOCK_REALTIME) time->tv_sec += *offset;
    return result;
}
"#;

#[test]
fn a_clock_that_jumps_disturbs_neither_packets_nor_captures() {
    let Some(lab) = quiet() else { return };
    let [source, library, offset] = ["clock.c", "clock.so", "offset"].map(|name| lab.folder.join(name));
    fs::write(&source, CLOCK).unwrap();
    let at_start: i64 = -86_400;
    fs::write(&offset, at_start.to_ne_bytes()).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).output();
    if !built.is_ok_and(|built| built.status.success()) {
        eprintln!("skipped: no C compiler to build a clock that jumps");
        return;
    }
    let capture = lab.folder.join("all.pcapng");
    let preload = format!("LD_PRELOAD={}", library.display());
    let clock = format!("PERHOP_CLOCK={}", offset.display());
    let mut command = lab.command(&["env", &preload, &clock]);
    command.arg(lab.write(CONFIG)).arg("--capture").arg(&capture);
    let router = lab.run(command, "forwarding between ").unwrap_or_else(|output| panic!("{output}"));
    let (mut rng, began, mut jumps) = (rng("clock"), Instant::now(), 0);
    while began.elapsed() < length() {
        // A day, a year, a century; ahead and back.
        let jump = [86_400, 31_536_000, -86_400, -3_153_600_000, 3_153_600_000][rng.up_to(4) as usize];
        fs::write(&offset, i64::to_ne_bytes(jump)).unwrap();
        jumps += 1;
        lab.transfer(200_000);
    }
    let metrics = settled(&lab);
    assert_consistent(&metrics);
    // The clock at the start counts, and from there on the time that passes.
    let captured = [&capture, &lab.folder.join("all.1.pcapng")].map(|path| times(path)).concat();
    let real = i128::from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    let shown = captured.iter().map(|time| time / 1_000_000_000 - i128::from(at_start));
    let took = i128::from(began.elapsed().as_secs()) + 60;
    assert!(shown.clone().all(|time| (real - took..=real + 60).contains(&time)), "{:?}", shown.max());
    assert!(!captured.is_empty());
    let metrics = sum(&metrics, "perhop_captured_packets_total", &["written"]);
    conclude(router, "clock", &format!("{jumps} jumps, {metrics} packets captured"));
}

#[test]
fn interfaces_that_go_down_come_back_to_a_router_that_forwards() {
    let Some(lab) = quiet() else { return };
    let router = lab.start(&lab.write(&many_classes()), &[]);
    let (mut rng, mut downs) = (rng("down"), 0);
    let ends = lab.raw();
    let (stop, mut memory) = (AtomicBool::new(false), Memory::new());
    thread::scope(|scope| {
        let stop = &stop;
        for mut end in ends {
            let mut hostile = Hostile { rng: self::rng("down"), frame: Vec::new(), burst: 0 };
            scope.spawn(move || attack(&mut end, &mut hostile, stop));
        }
        let began = Instant::now();
        while began.elapsed() < length() {
            let device = ["in0", "out0"][rng.up_to(1) as usize];
            for state in ["down", "up"] {
                ip(&format!("-n {} link set {device} {state}", lab.names[1])).unwrap();
                thread::sleep(Duration::from_millis(rng.up_to(300)));
            }
            downs += 1;
            memory.look(&router);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let metrics = settled(&lab);
    assert_consistent(&metrics);
    memory.assert_bounded();
    lab.transfer(500_000);
    conclude(router, "down", &format!("{downs} times down and up, memory {:?} kB", memory.most));
}

#[test]
fn a_disk_that_is_full_now_and_then_costs_packets_of_the_capture_alone_and_all_are_counted() {
    let Some(lab) = quiet() else { return };
    let folder = lab.folder.join("disk");
    let Some(small) = Small::mount(&folder, "3m") else { return };
    let kept = "capture = { size = \"1MB\", files = 2 }\n";
    let config = lab.write(&format!("{kept}{CONFIG}"));
    let (filler, capture) = (folder.join("filler"), folder.join("all.pcapng"));
    let router = lab.start(&config, &["--capture", capture.to_str().unwrap()]);
    let (mut rng, began, mut times_full, mut memory) = (rng("disk"), Instant::now(), 0, Memory::new());
    while began.elapsed() < length() {
        // Whatever is left of it, up to the last byte.
        let _ = fs::write(&filler, vec![0; 3 << 20]);
        times_full += 1;
        lab.transfer(300_000 + rng.up_to(600_000) as usize);
        fs::remove_file(&filler).unwrap();
        lab.transfer(300_000 + rng.up_to(300_000) as usize);
        memory.look(&router);
    }
    let metrics = settled(&lab);
    assert_consistent(&metrics);
    let of = |result: &str| sum(&metrics, "perhop_captured_packets_total", &[result]);
    let ended =
        sum(&metrics, "perhop_sent_packets_total", &[]) + sum(&metrics, "perhop_lost_packets_total", &[]);
    assert_eq!(of("written") + of("missed"), ended, "{metrics}");
    assert!(of("written") > 0.0 && of("missed") > 0.0, "{metrics}");
    let (written, missed) = (of("written"), of("missed"));
    memory.assert_bounded();
    let kept: BTreeSet<_> = [capture, folder.join("all.1.pcapng")].iter().map(|path| packets(path)).collect();
    assert!(kept.iter().any(|packets| *packets > 0));
    let told =
        format!("{times_full} times full, {written} written, {missed} missed, memory {:?} kB", memory.most);
    conclude(router, "disk", &told);
    drop(small);
}

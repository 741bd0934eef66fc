//! Transfers between perhop's own TCP and the kernel's over a wire that loses, reorders and repeats packets,
//! while a stranger sends forged segments (RFC 5961): every byte arrives, and no other.
//!
//! `PERHOP_TRANSFER_BYTES` sets the size (2 MB), `PERHOP_TRANSFER_SEED` what happens to packets, and
//! `PERHOP_TRANSFER_CAPTURES` a folder for captures of all packets, which tshark judges where it is
//! installed.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use perhop_core::{Context, Dscp, Duration, Instant, Rng};
use perhop_endpoint::{Connection, Ended, Flags, Segment, Setup, pattern};
use perhop_live::device::{Device, Tun, TunSpec};
use perhop_live::{Clock, HEAD};
use perhop_sim::transport::tcp::{TcpEcn, TcpParams};
use sha2::{Digest, Sha256};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

const MTU: u16 = 1280;
const DELAY: Duration = Duration::from_nanos(200_000);
/// One packet in so many is lost, late by [`LATE`], or comes twice.
const ONE_IN: u64 = 100;
const LATE: Duration = Duration::from_millis(1);
/// A transfer that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(1200);

/// Returns why this process cannot make a network namespace and a TUN device, if it cannot.
fn lacks() -> Option<&'static str> {
    if !geteuid().is_root() {
        return Some("it needs root, to make a network namespace in one of several threads");
    }
    (!Path::new("/dev/net/tun").exists()).then_some("there is no /dev/net/tun")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Perhop,
    Kernel,
}

fn digest(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hands `bytes` bytes of the pattern to `take`.
fn content(bytes: u64, mut take: impl FnMut(&[u8])) {
    let mut room = vec![0; 1 << 16];
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(room.len() as u64) as usize;
        pattern(offset, &mut room[..length]);
        take(&room[..length]);
        offset += length as u64;
    }
}

/// What the kernel's host does, in a namespace of its own: receives everything and returns its digest, or
/// sends everything.
fn kernels(listener: &TcpListener, peer: SocketAddr, sender: Sender, bytes: u64) -> String {
    if sender == Sender::Perhop {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut hash, mut room) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            match stream.read(&mut room).unwrap() {
                0 => return digest(hash),
                length => hash.update(&room[..length]),
            }
        }
    }
    // An address of IPv6 becomes usable in the kernel's own time.
    let mut tries = (0..100).map(|_| TcpStream::connect(peer));
    let connected = tries.find(|tried| {
        let waits = tried.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable);
        if waits {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        !waits
    });
    let mut stream = connected.unwrap().unwrap();
    content(bytes, |part| stream.write_all(part).unwrap());
    stream.shutdown(Shutdown::Write).unwrap();
    let rest = stream.read(&mut [0; 1]).unwrap();
    assert_eq!(rest, 0, "perhop's end closes, too");
    String::new()
}

/// The wire: what is on its way, by the time at which it arrives; to the kernel or to perhop.
struct Wire {
    transit: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    rng: Rng,
    sent: u64,
    /// Packets lost, late and repeated.
    ills: [u64; 3],
}

impl Wire {
    fn happens(&mut self) -> bool {
        self.rng.up_to(ONE_IN - 1) == 0
    }

    fn put(&mut self, to_kernel: bool, packet: &[u8], now: Instant) {
        if self.happens() {
            self.ills[0] += 1;
            return;
        }
        let is_late = self.happens();
        let copies = 1 + u64::from(self.happens());
        self.ills[1] += u64::from(is_late);
        self.ills[2] += copies - 1;
        let delay = if is_late { DELAY + LATE } else { DELAY };
        for _ in 0..copies {
            self.sent += 1;
            self.transit.insert((now + delay, self.sent), (to_kernel, packet.to_vec()));
        }
    }
}

/// All packets that pass the kernel's interface, as a capture of IP packets.
struct Capture(Option<fs::File>);

impl Capture {
    fn new(path: Option<&Path>) -> Self {
        Self(path.map(|path| {
            let mut file = fs::File::create(path).unwrap();
            // pcap(5): magic number of microseconds, version 2.4, LINKTYPE_RAW.
            let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101];
            for word in header {
                file.write_all(&word.to_le_bytes()).unwrap();
            }
            file
        }))
    }

    fn note(&mut self, packet: &[u8], now: Instant) {
        let Some(file) = &mut self.0 else { return };
        let (micros, length) = (now.as_nanos() / 1000, packet.len() as u32);
        let words = [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, length, length];
        let mut record: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        record.extend_from_slice(packet);
        file.write_all(&record).unwrap();
    }
}

/// The right edge of the kernel's window: one past the last byte that it has ever had room for.
#[derive(Default)]
struct Edge {
    scale: u8,
    edge: Option<u32>,
}

impl Edge {
    /// Learns of a segment of the kernel's.
    fn offer(&mut self, segment: &Segment<'_>) {
        let scale = if segment.flags.has(Flags::SYN) {
            self.scale = segment.options.scale.unwrap_or(0);
            0
        } else {
            self.scale
        };
        let edge = segment.acknowledged.wrapping_add(u32::from(segment.window) << scale);
        let is_ahead = |before: u32| edge.wrapping_sub(before).cast_signed() > 0;
        if segment.flags.has(Flags::ACK) && self.edge.is_none_or(is_ahead) {
            self.edge = Some(edge);
        }
    }

    /// Checks that a segment of perhop's ends within.
    fn check(&self, packet: &[u8]) {
        let segment = Segment::parse(packet).expect("perhop's packets are whole");
        let end = segment.sequence.wrapping_add(segment.data.len() as u32);
        let beyond = self.edge.map_or(0, |edge| end.wrapping_sub(edge).cast_signed());
        assert!(
            beyond <= 0 || segment.flags.has(Flags::SYN),
            "{beyond} bytes beyond the window: {segment:?}"
        );
    }
}

/// Sends forged segments to perhop's end in the kernel's name, from a raw socket in the kernel's namespace.
///
/// It knows the ports and sees the kernel's segments, but never sends the one sequence number with which a
/// RST would be right (RFC 5961, section 3.2), nor data that are right in sequence and acknowledgement.
struct Stranger {
    socket: Socket,
    rng: Rng,
    next: Instant,
    /// The number behind the last byte of the kernel's, and what the kernel has acknowledged.
    seen: Option<(u32, u32)>,
    times: Option<(u32, u32)>,
    /// The kernel's end, and perhop's.
    ends: Option<[SocketAddr; 2]>,
    sent: u64,
}

impl Stranger {
    const EVERY: Duration = Duration::from_millis(1);
    /// Tells its segments from the kernel's.
    const DSCP: u8 = 8;

    fn new(six: bool, seed: u64) -> Self {
        let domain = if six { Domain::IPV6 } else { Domain::IPV4 };
        // IPPROTO_RAW: what is sent begins with the IP header.
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(255))).unwrap();
        let rng = Rng::stream(seed, "stranger");
        Self { socket, rng, next: Instant::ZERO, seen: None, times: None, ends: None, sent: 0 }
    }

    /// Looks at a segment of the kernel's.
    fn see(&mut self, segment: &Segment<'_>) {
        let flags = [Flags::SYN, Flags::FIN].map(|flag| u32::from(segment.flags.has(flag)));
        let end = segment.sequence.wrapping_add(segment.data.len() as u32 + flags[0] + flags[1]);
        let ahead = |before: u32, now: u32| if now.wrapping_sub(before) < 1 << 31 { now } else { before };
        let (before, acknowledged) = self.seen.unwrap_or((end, segment.acknowledged));
        self.seen = Some((ahead(before, end), ahead(acknowledged, segment.acknowledged)));
        self.times = segment.options.times.or(self.times);
        self.ends = Some([segment.source, segment.destination]);
    }

    /// Sends one, if it is time.
    fn act(&mut self, now: Instant) {
        let Some(([source, destination], (edge, acknowledged))) = self.ends.zip(self.seen) else { return };
        if now < self.next {
            return;
        }
        self.next = now + Self::EVERY;
        // Segments are longer, so no segment begins here.
        let near = 1 + self.rng.up_to(998) as u32;
        let far = 1 << 30;
        let (flags, sequence, acknowledged) = match self.rng.up_to(8) {
            0 => (Flags::RST, edge.wrapping_add(near), 0),
            1 => (Flags::RST | Flags::ACK, edge.wrapping_sub(near), acknowledged),
            2 => (Flags::RST, edge.wrapping_add(far), 0),
            3 => (Flags::SYN, edge.wrapping_add(near), 0),
            4 => (Flags::SYN | Flags::ACK, edge, acknowledged),
            // Data before the window, beyond it, and within it, but with acknowledgements of what was never
            // sent, or of what is long acknowledged.
            5 => (Flags::ACK | Flags::PSH, edge.wrapping_sub(far), acknowledged),
            6 => (Flags::ACK | Flags::FIN, edge.wrapping_add(far), acknowledged),
            7 => (Flags::ACK | Flags::PSH, edge, acknowledged.wrapping_add(far)),
            _ => (Flags::ACK | Flags::PSH, edge, acknowledged.wrapping_sub(far)),
        };
        let data: &[u8] = if flags.has(Flags::ACK) && !flags.has(Flags::SYN) { &[0xee; 100] } else { &[] };
        let forged = Segment {
            source,
            destination,
            dscp: Dscp::new(Self::DSCP).unwrap(),
            ecn: perhop_core::Ecn::NotCapable,
            sequence,
            acknowledged,
            flags,
            window: u16::MAX,
            options: perhop_endpoint::Options { times: self.times, ..Default::default() },
            data,
        };
        let mut room = [0; 300];
        let length = forged.write(7, data.len(), |into| into.copy_from_slice(data), &mut room).unwrap();
        // A raw socket of IPv6 takes no port.
        let address = SockAddr::from(SocketAddr::new(destination.ip(), 0));
        self.socket.send_to(&room[..length], &address).unwrap();
        self.sent += 1;
    }
}

/// Transfers so many bytes; returns the digest of what arrived, and a line about the transfer.
#[expect(clippy::too_many_lines, reason = "two hosts and a wire, from beginning to end")]
fn transfer(sender: Sender, six: bool, bytes: u64, seed: u64, capture: Option<&Path>) -> (String, String) {
    let ends = if six { ["fd55::1", "fd55::2"] } else { ["10.55.0.1", "10.55.0.2"] };
    let [ours, theirs] = ends.map(|end| end.parse::<IpAddr>().unwrap());
    let (to_main, from_host) = channel();
    let ((results, result), (end, until)) = (channel(), channel::<()>());
    let mut at_kernel = None;
    let host = thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        if six {
            fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0").unwrap();
        }
        let (ipv4, ipv6) = match theirs {
            IpAddr::V4(address) => (Some((address, 24)), None),
            IpAddr::V6(address) => (None, Some((address, 64))),
        };
        let spec = TunSpec { name: "perhop0".into(), mtu: MTU, ipv4, ipv6, queue: 10_000 };
        let tun = Tun::open(&spec).unwrap();
        if six {
            fs::write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1").unwrap();
        }
        let listener = TcpListener::bind(SocketAddr::new(theirs, 5001)).unwrap();
        to_main.send((tun, Stranger::new(six, seed))).unwrap();
        results.send(kernels(&listener, SocketAddr::new(ours, 5001), sender, bytes)).unwrap();
        // The namespace lasts as long as this thread.
        let _ = until.recv();
    });
    let (mut tun, mut stranger) = from_host.recv().unwrap();
    let (mut capture, mut edge) = (Capture::new(capture), Edge::default());
    let clock = Clock::start();
    let mut wire = Wire { transit: BTreeMap::new(), rng: Rng::stream(seed, "wire"), sent: 0, ills: [0; 3] };
    let mut rng = Rng::stream(seed, "tcp");
    let params: TcpParams = serde_json_of(r#"{"tcp": "linux", "packet": "1280B", "congestion": "cubic"}"#);
    let is_ours = sender == Sender::Perhop;
    let (near, far) = if is_ours { (20_000, 5001) } else { (5001, 0) };
    let setup = Setup {
        local: SocketAddr::new(ours, near),
        remote: SocketAddr::new(theirs, far),
        params,
        ecn: TcpEcn::Off,
        volume: Some(if is_ours { bytes } else { 0 }),
        reserved: None,
        first_number: rng.next_u64() as u32,
        seed,
    };
    let mut connection = is_ours.then(|| Connection::open(setup.clone(), clock.now()));
    if let Some(connection) = &mut connection {
        connection.close(); // With its volume.
    }
    let (mut hash, mut room) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let now = clock.now();
        assert!(now.since(Instant::ZERO) < PATIENCE, "{sender:?} {:?}", connection.map(|it| it.bytes()));
        while let Some(length) = tun.receive(&mut [0; HEAD], &mut room).unwrap() {
            capture.note(&room[..length], now);
            if let Ok(segment) = Segment::parse(&room[..length])
                && segment.dscp.get() != Stranger::DSCP
            {
                edge.offer(&segment);
                stranger.see(&segment);
            }
            wire.put(false, &room[..length], now);
        }
        while let Some(first) = wire.transit.first_entry().filter(|first| first.key().0 <= now) {
            let (to_kernel, packet) = first.remove();
            if to_kernel {
                capture.note(&packet, now);
                edge.check(&packet);
                tun.send(&[0; HEAD], &packet);
                assert_eq!(tun.flush(), 0, "the kernel takes every packet");
            } else if let Ok(segment) = Segment::parse(&packet) {
                if let Some(connection) = &mut connection {
                    connection.on_segment(&segment, now, &mut |data| hash.update(data));
                } else {
                    let setup = Setup { remote: segment.source, ..setup.clone() };
                    connection = Connection::accept(setup, &segment, now);
                }
            }
        }
        let Some(open) = &mut connection else { continue };
        if open.is_open() {
            stranger.act(now);
        }
        if open.is_received() {
            open.close();
        }
        if open.wake() <= now {
            open.on_wake(now);
        }
        while let Some(packet) = open.transmit(&mut Context { now, rng: &mut rng }, &mut room) {
            wire.put(true, &room[..packet.length], now);
        }
        at_kernel = at_kernel.or_else(|| result.try_recv().ok());
        assert!(!host.is_finished(), "the kernel's host panicked");
        if at_kernel.is_some() && open.ended().is_some() {
            break;
        }
        let next = wire.transit.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at).min(open.wake());
        if next > clock.now() + Duration::from_millis(1) {
            let _ = poll(&mut [PollFd::new(tun.as_fd(), PollFlags::POLLIN)], PollTimeout::from(1_u8));
        }
    }
    let seconds = clock.now().since(Instant::ZERO).as_secs_f64();
    drop(end);
    host.join().unwrap();
    let at_kernel = at_kernel.unwrap_or_default();
    let connection = connection.unwrap();
    assert_eq!(connection.ended(), Some(Ended::Closed));
    let sent = connection.statistics(clock.now());
    let [lost, late, twice] = wire.ills;
    let line = format!(
        "{sender:?} sends {bytes} B over IPv{}: {seconds:.1} s, {:.0} Mbit/s; {lost} packets lost, {late} late, {twice} twice, {} \
         forged; sent again by perhop: {}",
        if six { 6 } else { 4 },
        bytes as f64 * 8e-6 / seconds,
        stranger.sent,
        sent.retransmitted
    );
    (if is_ours { at_kernel } else { digest(hash) }, line)
}

fn serde_json_of(text: &str) -> TcpParams {
    serde_json::from_str(text).unwrap()
}

/// Has tshark judge a capture: no malformed packet, and no wrong checksum.
fn judge(capture: &Path) {
    let tshark = Command::new("tshark")
        .args(["-r", capture.to_str().unwrap()])
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        .args(["-Y", "_ws.malformed || tcp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\""])
        .output();
    let Ok(output) = tshark else { return };
    let found = String::from_utf8_lossy(&output.stdout);
    assert_eq!(found.lines().take(5).collect::<Vec<_>>(), [""; 0], "{}", capture.display());
}

#[test]
fn every_byte_arrives_and_no_other() {
    if let Some(why) = lacks() {
        eprintln!("skipped: {why}");
        return;
    }
    let bytes = std::env::var("PERHOP_TRANSFER_BYTES").map_or(2_000_000, |bytes| bytes.parse().unwrap());
    let seed = std::env::var("PERHOP_TRANSFER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let captures = std::env::var_os("PERHOP_TRANSFER_CAPTURES").map(PathBuf::from);
    let mut hash = Sha256::new();
    content(bytes, |part| hash.update(part));
    let expected = digest(hash);
    for six in [false, true] {
        for sender in [Sender::Perhop, Sender::Kernel] {
            let capture =
                captures.as_ref().map(|folder| folder.join(format!("{sender:?}-{six}-{seed}.pcap")));
            let (found, line) = transfer(sender, six, bytes, seed, capture.as_deref());
            println!("{line}");
            assert_eq!(found, expected, "{line}");
            if let Some(capture) = capture {
                judge(&capture);
            }
        }
    }
}

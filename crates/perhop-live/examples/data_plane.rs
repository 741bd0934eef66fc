//! Throughput and CPU time of the data plane by the kind of its devices: `data_plane WAY TRAFFIC SIZE RATE
//! SECONDS` sends packets between two hosts in network namespaces, through one plane, and prints the
//! measurements as JSON.
//!
//! `WAY` is one of `tests/common/hosts.rs`. `TRAFFIC` is `udp`, packets of `SIZE` bytes of which a limited
//! number is in flight, or `tcp`, four connections. `RATE` is that of the plane's link. The first half second
//! is not measured. At the end it checks that every packet is accounted for. Needs root.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program that prints, and makes hosts with sockets"
)]

#[path = "../tests/common/hosts.rs"]
mod hosts;
#[path = "../../perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../tests/common/script.rs"]
mod script;

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use perhop_core::{Duration, Instant};
use perhop_live::{Clock, Hop, Loss, MeterSpec, Plane, PlaneSpec, Report, Runner, Watcher};

use hosts::{ADDRESSES, Hosts, Way};
use perhop_live::device::AnyDevice;

const PORT: u16 = 7000;
/// Datagrams that may be under way.
const WINDOW: u64 = 1024;
/// Datagrams that the sending host hands to its kernel at once, as far as 64 kB hold.
const TOGETHER: usize = 44;
const HEADERS: usize = 28;
const CONNECTIONS: usize = 4;
/// Before this nothing is measured, and after the end nothing arrives any more.
const SETTLING: Duration = Duration::from_millis(500);

#[expect(clippy::too_many_lines, reason = "hosts, their programs and the loop, in order")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, traffic, size, rate, seconds] = &arguments[..] else {
        return Err("usage: data_plane WAY udp|tcp SIZE RATE SECONDS".into());
    };
    let name = way;
    let known = Way::ALL.iter().find(|(known, _)| known == name);
    let (_, way) = known.ok_or_else(|| format!("{name}: expected one of {:?}", Way::ALL.map(|way| way.0)))?;
    let (size, seconds): (usize, u64) = (size.parse()?, seconds.parse()?);
    let (hosts, devices) = Hosts::join(*way)?;
    let plane = Plane::new(spec(rate), 1);
    let (stop, clock) = (AtomicBool::new(false), Clock::start());
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::ZERO + SETTLING + Duration::from_secs(seconds);
    let mut measured = Measured { next: Instant::ZERO + SETTLING, end, ..Measured::default() };
    let runner = thread::scope(|scope| -> Result<_, Box<dyn Error>> {
        let (hosts, stop, counters) = (&hosts, &stop, [&sent, &received]);
        match traffic.as_str() {
            "udp" => {
                let sink = hosts.within(1, || UdpSocket::bind((ADDRESSES[1], PORT)))?;
                setsockopt(&sink, sockopt::RcvBufForce, &(64 << 20))?;
                let sender = hosts.within(0, || UdpSocket::bind((ADDRESSES[0], PORT)))?;
                sender.connect((ADDRESSES[1], PORT))?;
                scope.spawn(move || count_datagrams(&sink, size, counters[1], stop));
                scope.spawn(move || send_datagrams(&sender, size, counters, stop));
            }
            "tcp" => {
                let listener = hosts.within(1, || TcpListener::bind((ADDRESSES[1], PORT)))?;
                scope.spawn(move || {
                    for stream in listener.incoming().take(CONNECTIONS) {
                        scope.spawn(move || count_bytes(stream.expect("a connection"), counters[1], stop));
                    }
                });
                for _ in 0..CONNECTIONS {
                    scope.spawn(move || {
                        let stream = hosts.within(0, || TcpStream::connect((ADDRESSES[1], PORT)));
                        send_bytes(stream.expect("a connection"), stop);
                    });
                }
            }
            _ => return Err(format!("{traffic}: expected udp or tcp").into()),
        }
        let run = scope.spawn(|| {
            pin(0);
            let mut runner = Runner::new(plane, devices, clock);
            runner.run(end, &AtomicBool::new(false), &mut measured)?;
            // What is under way arrives.
            stop.store(true, Relaxed);
            let lateness = runner.report().lateness.clone();
            runner.run(end + SETTLING, &AtomicBool::new(false), &mut ())?;
            Ok::<_, std::io::Error>((runner, lateness))
        });
        let ran = run.join();
        stop.store(true, Relaxed);
        Ok(ran.expect("the loop does not panic")?)
    })?;
    conclude(&runner.0, traffic == "udp", [&sent, &received].map(|count| count.load(Relaxed)))?;
    let [begin, end] = measured.samples;
    let micros = |share| runner.1.quantile(share).as_nanos() as f64 / 1e3;
    println!(
        "{}",
        serde_json::json!({
            "way": name, "traffic": traffic, "size": size, "rate": rate,
            "seconds": end.at - begin.at, "cpu_s": end.cpu - begin.cpu,
            "packets": end.packets - begin.packets, "bytes": end.bytes - begin.bytes,
            "both_ways": end.both - begin.both,
            "lateness_us": [micros(0.5), micros(0.99), micros(0.999)],
        })
    );
    Ok(())
}

/// Checks that every packet is accounted for: of datagrams, from one host's program to the other's.
fn conclude(
    runner: &Runner<AnyDevice, 2>,
    is_udp: bool,
    [sent, received]: [u64; 2],
) -> Result<(), Box<dyn Error>> {
    let plane = runner.plane();
    plane.balance()?;
    let read = plane.counters().devices()[0].0.packets;
    let lost: u64 = Loss::all().map(|why| plane.counters().lost(why)).sum();
    let inside = plane.inside();
    let aside = runner.report().aside.iter();
    let aside: u64 = aside.map(|aside| aside.merged + aside.too_long + aside.overrun).sum();
    let is_conserved = sent == read && received + lost + inside == read && aside == 0;
    if is_udp && !is_conserved {
        let counts = format!("sent {sent}, read {read}, received {received}, lost {lost}, inside {inside}");
        return Err(format!("not conserved: {counts}, {aside} never came to the plane").into());
    }
    Ok(())
}

/// A meter and a queue there, a queue back.
fn spec(rate: &str) -> PlaneSpec {
    let queue = |aqm, table| script::aqm((aqm, table));
    let link = |name, queue| script::link(name, rate, Duration::from_millis(1), queue);
    let meter = MeterSpec {
        name: "meter".into(),
        params: script::meter(("token-bucket", r#"{"rate": "100Mbps", "burst": "100kB"}"#)),
        rate: "100Mbps".parse().expect("a rate"),
    };
    let rio = r#"{"in": "1500/2500/0.02", "total": "1500/2500/0.05", "limit": "3000p"}"#;
    PlaneSpec {
        devices: 2,
        mtu: 1500,
        buffers: 8192,
        window: (Instant::ZERO, Instant::NEVER),
        links: vec![
            link("there", queue("rio", rio)),
            link("back", queue("drop-tail", r#"{"limit": "3000p"}"#)),
        ],
        meters: vec![meter],
        streams: vec![
            script::across(0, vec![Hop::Meter(0), Hop::Link(0)]),
            script::across(1, vec![Hop::Link(1)]),
        ],
        ..PlaneSpec::default()
    }
}

/// What has been forwarded from left to right by a time.
#[derive(Clone, Copy, Default)]
struct Sample {
    at: f64,
    /// Of the loop's thread, the kernel's included.
    cpu: f64,
    packets: u64,
    bytes: u64,
    /// Packets in both directions.
    both: u64,
}

#[derive(Default)]
struct Measured {
    next: Instant,
    end: Instant,
    samples: [Sample; 2],
}

impl Watcher for Measured {
    fn next(&self) -> Instant {
        self.next
    }
    fn watch(&mut self, plane: &mut Plane, report: &mut Report, now: Instant) {
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
        let (back, there) = (plane.counters().devices()[0].1, plane.counters().devices()[1].1);
        let sample = Sample {
            at: now.as_secs_f64(),
            cpu: cpu.tv_sec() as f64 + cpu.tv_nsec() as f64 / 1e9,
            packets: there.packets,
            bytes: there.bytes,
            both: there.packets + back.packets,
        };
        let is_first = self.next < self.end;
        self.samples[usize::from(!is_first)] = sample;
        if is_first {
            report.lateness.reset();
        }
        self.next = if is_first { self.end } else { Instant::NEVER };
    }
}

/// Keeps the calling thread on a core; where there is only one, on any.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    if set.set(core).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

fn send_datagrams(socket: &UdpSocket, size: usize, [sent, received]: [&AtomicU64; 2], stop: &AtomicBool) {
    pin(1);
    let payload = size - HEADERS;
    setsockopt(socket, sockopt::UdpGsoSegment, &i32::try_from(payload).expect("a length"))
        .expect("segmentation of datagrams");
    let bytes = vec![7; payload * TOGETHER];
    while !stop.load(Relaxed) {
        if sent.load(Relaxed) - received.load(Relaxed) + TOGETHER as u64 > WINDOW {
            thread::yield_now();
        } else {
            assert_eq!(socket.send(&bytes).expect("sent"), bytes.len());
            sent.fetch_add(TOGETHER as u64, Relaxed);
        }
    }
}

fn count_datagrams(socket: &UdpSocket, size: usize, received: &AtomicU64, stop: &AtomicBool) {
    pin(1);
    let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
    socket.set_read_timeout(Some(std::time::Duration::from_millis(200))).expect("a timeout");
    let mut bytes = vec![0; 65_536];
    loop {
        match socket.recv(&mut bytes) {
            // With GRO a call returns several; all are equally long.
            Ok(length) => _ = received.fetch_add((length / (size - HEADERS)) as u64, Relaxed),
            Err(_) if stop.load(Relaxed) => return,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn send_bytes(mut stream: TcpStream, stop: &AtomicBool) {
    pin(1);
    let bytes = vec![7; 1 << 18];
    while !stop.load(Relaxed) {
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

fn count_bytes(mut stream: TcpStream, received: &AtomicU64, stop: &AtomicBool) {
    pin(1);
    stream.set_read_timeout(Some(std::time::Duration::from_millis(200))).expect("a timeout");
    let mut bytes = vec![0; 1 << 18];
    while !stop.load(Relaxed) {
        if let Ok(length) = stream.read(&mut bytes) {
            received.fetch_add(length as u64, Relaxed);
        }
    }
}

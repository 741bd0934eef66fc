//! A sequence of packets through a queueing discipline of the kernel: what it dropped and marked, and what it
//! sent when.
//!
//! The discipline is that of a TUN device in a network namespace of this process, set up by commands of `tc`.
//! A packet socket sends each packet at its time; the kernel enqueues it within that call. A second packet
//! socket sees what the discipline hands to the device, with the kernel's own time of that moment. TUN adds
//! no header, so the discipline counts the size of the IP packet, as blocks do.

use std::io::{self, IoSliceMut};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::prctl::{set_pdeathsig, set_timerslack};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SetSockOpt, SockFlag, SockProtocol, SockType, bind,
    recvmsg, send, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use nix::sys::utsname::uname;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use perhop_core::{Dscp, Duration, Ecn};
use perhop_live::device::{Device, Tun, TunSpec};
use perhop_live::{HEAD, set_fifo, wire};

use crate::error::{LabError, Missing};
use crate::run::PRIORITY;
use crate::sandbox;
use crate::system::link_address;

/// The shortest packet: headers of IPv4 and UDP, and the number of the packet.
pub const LEAST_SIZE: u16 = 32;
const NUMBER: std::ops::Range<usize> = 28..32;

/// The bytes that sockets may hold, which the kernel doubles: all packets that can wait at once.
const SOCKET_BUFFER: usize = 1 << 28;

/// The time between the last preparation and the first packet.
const BEFORE_START: Duration = Duration::from_millis(50);
/// How often the threads look whether the work is done.
const LOOK: Duration = Duration::from_millis(20);
/// A discipline that has sent nothing for this time sends nothing more.
const QUIET: Duration = Duration::from_secs(2);

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// When to send it, after the start.
    pub at: Duration,
    /// The size of the IP packet, from [`LEAST_SIZE`].
    pub size: u16,
    /// The codepoint.
    pub dscp: Dscp,
    /// The ECN field.
    pub ecn: Ecn,
    /// The number of its flow: packets of one flow have the same addresses and ports.
    pub flow: u32,
}

/// What became of a packet. Times are nanoseconds after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When the call began that handed the packet to the kernel.
    pub began_ns: u64,
    /// When that call ended.
    pub ended_ns: u64,
    /// Whether the discipline accepted the packet; it may drop it later.
    pub accepted: bool,
    /// How the packet left, if it did.
    pub left: Option<Departure>,
}

/// How a packet left a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When, in nanoseconds after the start, by the kernel's clock.
    pub at_ns: u64,
    /// The codepoint.
    pub dscp: Dscp,
    /// The ECN field.
    pub ecn: Ecn,
}

/// What a discipline of the kernel did.
#[derive(Clone, Debug)]
pub struct Passed {
    /// What became of each packet.
    pub passages: Vec<Passage>,
    /// The counters of the discipline and those within it: what `tc -s -j qdisc show` prints.
    pub counters: String,
    /// The kernel's release.
    pub kernel: String,
    /// Whether the sender had real-time priority.
    pub real_time: bool,
    /// By how much the system's clock was set meanwhile, in nanoseconds.
    pub clock_step_ns: u64,
}

/// Sends packets through a queueing discipline, in real time. An ordinary user's process must have one
/// thread.
///
/// # Arguments
/// * `packets`: in the order of time.
/// * `device`: the name of the device.
/// * `commands`: lines that begin with `tc`, which set the discipline up at this device.
///
/// # Errors
/// What this system lacks, such as the discipline; what failed.
pub fn pass(
    packets: &[Offered],
    device: &str,
    commands: &[String],
    real_time: bool,
) -> Result<Passed, LabError> {
    if let Some(short) = packets.iter().find(|packet| packet.size < LEAST_SIZE) {
        let text =
            format!("a packet of {} bytes; the shortest that can be sent has {LEAST_SIZE}", short.size);
        return Err(LabError::Unfit(text));
    }
    sandbox::check_kernel()?;
    sandbox::probe_tun()?;
    sandbox::enter_user_namespace()?;
    set_pdeathsig(Signal::SIGKILL).map_err(LabError::doing("tying this process to its parent"))?;
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            sandbox::enter_network_namespace()?;
            inside(packets, device, commands, real_time)
        });
        inside.join().expect("sending does not panic")
    })
}

/// Sets up and sends, on a thread in a namespace of its own.
fn inside(
    packets: &[Offered],
    device: &str,
    commands: &[String],
    real_time: bool,
) -> Result<Passed, LabError> {
    // The kernel's own packets must not pass the discipline.
    let _ = sandbox::set("net.ipv6.conf.default.disable_ipv6", "1");
    let longest = packets.iter().map(|packet| packet.size).max().unwrap_or(0).max(1500);
    let tun = TunSpec { name: device.into(), mtu: longest, ipv4: None, ipv6: None, queue: 1000 };
    let mut tun = Tun::open(&tun).map_err(LabError::doing("making a TUN device"))?;
    for command in commands {
        run_tc(command)?;
    }
    let sender = packet_socket(device, None)?;
    let tap = packet_socket(device, Some(SockProtocol::EthAll))?;
    let doing = |what: &'static str| LabError::doing(what);
    setsockopt(&tap, sockopt::ReceiveTimestampns, &true).map_err(doing("asking for times"))?;
    let timeout = TimeVal::nanoseconds(LOOK.as_nanos().cast_signed());
    setsockopt(&tap, sockopt::ReceiveTimeout, &timeout).map_err(doing("setting a timeout"))?;

    let (done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let start = (nanos(ClockId::CLOCK_REALTIME)?, nanos(ClockId::CLOCK_MONOTONIC)?);
    let start = (start.0 + BEFORE_START.as_nanos(), start.1 + BEFORE_START.as_nanos());
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&tap, &mut tun, packets.len(), start.0, &done, &count));
        let sending = scope.spawn(|| emit(&sender, packets, start, real_time));
        let sent = sending.join().expect("sending does not panic");
        if let Ok((sent, _)) = &sent {
            let accepted = sent.iter().filter(|passage| passage.accepted).count();
            wait_for(&count, accepted);
        }
        done.store(true, Ordering::Relaxed);
        let left = watcher.join().expect("watching does not panic")?;
        let (mut passages, real_time) = sent?;
        for (passage, left) in passages.iter_mut().zip(left) {
            passage.left = left;
        }
        let counters = run_tc(&format!("tc -s -j qdisc show dev {device}"))?;
        let offset = nanos(ClockId::CLOCK_REALTIME)?.wrapping_sub(nanos(ClockId::CLOCK_MONOTONIC)?);
        let clock_step_ns = offset.wrapping_sub(start.0.wrapping_sub(start.1)).cast_signed().unsigned_abs();
        let kernel = uname().map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into());
        Ok(Passed { passages, counters, kernel, real_time, clock_step_ns })
    })
}

/// Waits until so many packets have left, or none leaves any more: a discipline may drop what it accepted.
fn wait_for(count: &AtomicUsize, accepted: usize) {
    let (mut seen, mut quiet) = (0, Duration::ZERO);
    while seen < accepted && quiet < QUIET {
        thread::sleep(std::time::Duration::from_nanos(LOOK.as_nanos()));
        let now = count.load(Ordering::Relaxed);
        quiet = if now == seen { quiet + LOOK } else { Duration::ZERO };
        seen = now;
    }
}

/// Runs a command of tc and returns what it prints.
fn run_tc(command: &str) -> Result<String, LabError> {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let done = Command::new("tc").args(&words).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LabError::Missing(Missing {
            what: "this system has no program `tc`".into(),
            remedy: "install iproute2".into(),
        }),
        _ => LabError::System(command.into(), error),
    })?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.trim().lines().next().unwrap_or("failed").trim_start_matches("Error: ");
    let unknown = said.contains("qdisc kind is unknown") || said.contains("classifier not found");
    Err(match kind(&words).filter(|_| unknown) {
        Some(kind) => LabError::Missing(Missing {
            what: format!("this kernel has no `{kind}`"),
            remedy: format!("load the module that has it, or take a kernel built with it ({command})"),
        }),
        None => LabError::System(command.into(), io::Error::other(said.to_owned())),
    })
}

/// Returns the kind of the discipline or the filter that a command adds.
fn kind<'a>(words: &[&'a str]) -> Option<&'a str> {
    let behind = |word, steps| words.iter().position(|other| *other == word).map(|at| at + steps);
    let place = match words.first() {
        Some(&"filter") => behind("prio", 2),
        _ => behind("handle", 2).or_else(|| behind("root", 1)),
    };
    place.and_then(|place| words.get(place)).or(words.last()).copied()
}

/// Opens a packet socket on a device, for packets of this protocol; one without a protocol only sends.
fn packet_socket(device: &str, protocol: Option<SockProtocol>) -> Result<OwnedFd, LabError> {
    let doing = || LabError::doing(format!("opening a packet socket on {device}"));
    let made = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol);
    let made = made.map_err(doing())?;
    let index = if_nametoindex(device).map_err(doing())?;
    bind(made.as_raw_fd(), &link_address(index)).map_err(doing())?;
    grow(&made, sockopt::SndBufForce, sockopt::SndBuf);
    grow(&made, sockopt::RcvBufForce, sockopt::RcvBuf);
    Ok(made)
}

/// Makes room in a socket's buffer, beyond the system's limit where that is allowed.
fn grow(socket: &OwnedFd, force: impl SetSockOpt<Val = usize>, within_limit: impl SetSockOpt<Val = usize>) {
    if setsockopt(socket, force, &SOCKET_BUFFER).is_err() {
        let _ = setsockopt(socket, within_limit, &SOCKET_BUFFER);
    }
}

fn nanos(clock: ClockId) -> Result<u64, LabError> {
    let now = clock_gettime(clock).map_err(LabError::doing("reading a clock"))?;
    Ok(now.num_nanoseconds().cast_unsigned())
}

/// Sends each packet at its time. `start` is when, by the system's clock and by the monotonic one.
fn emit(
    socket: &OwnedFd,
    packets: &[Offered],
    start: (u64, u64),
    real_time: bool,
) -> Result<(Vec<Passage>, bool), LabError> {
    set_timerslack(1).map_err(LabError::doing("asking for exact timers"))?;
    let real_time = real_time && set_fifo(PRIORITY).is_ok();
    let mut bytes = vec![0; usize::from(u16::MAX)];
    let mut passages = Vec::with_capacity(packets.len());
    let since = |nanos: u64| nanos.saturating_sub(start.0);
    for (number, packet) in (0..).zip(packets) {
        write(&mut bytes, packet, number);
        let at = TimeSpec::nanoseconds((start.1 + packet.at.as_nanos()).cast_signed());
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at)
            == Err(Errno::EINTR)
        {}
        let began = nanos(ClockId::CLOCK_REALTIME)?;
        let sent = send(socket.as_raw_fd(), &bytes[..usize::from(packet.size)], MsgFlags::MSG_DONTWAIT);
        let ended = nanos(ClockId::CLOCK_REALTIME)?;
        let accepted = match sent {
            Ok(_) => true,
            Err(Errno::ENOBUFS) => false,
            Err(Errno::EAGAIN) => {
                return Err(LabError::Missing(Missing {
                    what: "the packets that wait do not fit into the buffer of a socket".into(),
                    remedy: "run as root, or raise net.core.wmem_max".into(),
                }));
            }
            Err(error) => return Err(LabError::System("sending a packet".into(), error.into())),
        };
        passages.push(Passage { began_ns: since(began), ended_ns: since(ended), accepted, left: None });
    }
    Ok((passages, real_time))
}

/// Writes a packet: IPv4 and UDP (without a checksum, as RFC 768 allows), with its number as the payload.
fn write(bytes: &mut [u8], packet: &Offered, number: u32) {
    let Offered { size, dscp, ecn, flow, .. } = *packet;
    let [_, high, middle, low] = flow.to_be_bytes();
    let (source, destination) = (Ipv4Addr::new(10, high, middle, low), Ipv4Addr::new(11, high, middle, low));
    bytes[..NUMBER.end].fill(0);
    bytes[0] = 0x45;
    bytes[1] = dscp.get() << 2 | ecn as u8;
    bytes[2..4].copy_from_slice(&size.to_be_bytes());
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..16].copy_from_slice(&source.octets());
    bytes[16..20].copy_from_slice(&destination.octets());
    let checksum = wire::checksum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes[20..22].copy_from_slice(&1024_u16.to_be_bytes());
    bytes[22..24].copy_from_slice(&1024_u16.to_be_bytes());
    bytes[24..26].copy_from_slice(&(size - 20).to_be_bytes());
    bytes[NUMBER].copy_from_slice(&number.to_be_bytes());
}

/// Notes what leaves the discipline until the work is done, and takes it off the device.
fn watch(
    tap: &OwnedFd,
    tun: &mut Tun,
    packets: usize,
    start: u64,
    done: &AtomicBool,
    count: &AtomicUsize,
) -> Result<Vec<Option<Departure>>, LabError> {
    let mut left = vec![None; packets];
    let (mut beginning, mut head, mut room) = ([0; NUMBER.end], [0; HEAD], vec![0; usize::from(u16::MAX)]);
    while !done.load(Ordering::Relaxed) {
        if let Some((number, departure)) = next(tap, &mut beginning, start)?
            && let Some(place) = left.get_mut(number as usize)
        {
            *place = Some(departure);
            count.fetch_add(1, Ordering::Relaxed);
        }
        while tun.receive(&mut head, &mut room).map_err(LabError::doing("reading the device"))?.is_some() {}
    }
    Ok(left)
}

/// Returns the next packet that left: its number, and how it left.
fn next(
    tap: &OwnedFd,
    beginning: &mut [u8; NUMBER.end],
    start: u64,
) -> Result<Option<(u32, Departure)>, LabError> {
    let (time, length) = {
        let mut parts = [IoSliceMut::new(beginning)];
        let mut control = cmsg_space!(TimeSpec);
        let flags = MsgFlags::MSG_TRUNC;
        let received = match recvmsg::<()>(tap.as_raw_fd(), &mut parts, Some(&mut control), flags) {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(LabError::System("watching packets".into(), error.into())),
        };
        let mut messages = received.cmsgs().map_err(LabError::doing("reading a packet's time"))?;
        let time = messages.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        (time, received.bytes)
    };
    let Some(time) = time.filter(|_| length >= NUMBER.end) else { return Ok(None) };
    let [a, b, c, d] = beginning[NUMBER] else { unreachable!("a number has four bytes") };
    let ecn = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(beginning[1] & 3)];
    let departure = Departure {
        at_ns: time.num_nanoseconds().cast_unsigned().saturating_sub(start),
        dscp: Dscp::new(beginning[1] >> 2).unwrap_or_default(),
        ecn,
    };
    Ok(Some((u32::from_be_bytes([a, b, c, d]), departure)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_fields_and_its_number() {
        let mut bytes = vec![0xff; 100];
        let dscp = Dscp::new(46).unwrap();
        let offered = Offered { at: Duration::ZERO, size: 60, dscp, ecn: Ecn::Capable0, flow: 0x01_0203 };
        write(&mut bytes, &offered, 7);
        let read = wire::parse(&bytes[..60]).unwrap();
        assert_eq!((read.length, read.dscp, read.ecn), (60, dscp, Ecn::Capable0));
        assert_eq!(bytes[NUMBER], [0, 0, 0, 7]);
        assert_eq!(bytes[12..16], [10, 1, 2, 3]);
    }

    #[test]
    fn a_missing_discipline_is_named() {
        let words = |command: &'static str| command.split_whitespace().skip(1).collect::<Vec<_>>();
        let of = |command| kind(&words(command));
        assert_eq!(of("tc qdisc add dev x parent f000:1 handle 1: red limit 9 min 1 max 2"), Some("red"));
        assert_eq!(of("tc qdisc add dev x root codel"), Some("codel"));
        assert_eq!(of("tc qdisc add dev x clsact"), Some("clsact"));
        assert_eq!(
            of("tc filter add dev x parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc"),
            Some("u32")
        );
    }
}

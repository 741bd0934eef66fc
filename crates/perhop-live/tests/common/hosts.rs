//! Two hosts in network namespaces of their own, joined by a pair of devices: what real packets pass in tests
//! and benchmarks. Needs the right to make namespaces and interfaces.
#![allow(dead_code, reason = "each user needs its part")]

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use perhop_live::device::{AnyDevice, Ethernet, OffloadTun, Tun, TunSpec, veth};

/// The hosts' addresses: the left one sends.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];
const NAMES: [&str; 2] = ["left0", "right0"];
/// Packets, or frames, that may wait for the router.
const QUEUE: u32 = 10_000;

/// How packets come from a host and go to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// TUN, a system call for each packet.
    Tun,
    /// TUN with segmentation offload from the host, a system call for each packet to it.
    TunSplit,
    /// TUN with segmentation offload in both directions.
    TunOffload,
    /// Packet sockets, a system call for each frame from the host.
    Packet,
    /// Packet sockets, a system call for up to 64 frames.
    PacketBatch,
    /// Packet sockets, a system call for up to 64 frames, with segmentation offload from the host.
    PacketOffload,
}

impl Way {
    /// Every way and its name.
    pub const ALL: [(&str, Self); 6] = [
        ("tun", Self::Tun),
        ("tun-split", Self::TunSplit),
        ("tun-offload", Self::TunOffload),
        ("packet", Self::Packet),
        ("packet-batch", Self::PacketBatch),
        ("packet-offload", Self::PacketOffload),
    ];

    fn is_tun(self) -> bool {
        matches!(self, Self::Tun | Self::TunSplit | Self::TunOffload)
    }
}

/// The hosts' network namespaces.
pub struct Hosts([File; 2]);

impl Hosts {
    /// Makes them and the devices that join them.
    pub fn join(way: Way) -> io::Result<(Self, [AnyDevice; 2])> {
        let hosts = Self([namespace()?, namespace()?]);
        if way.is_tun() {
            let [left, right] = [0, 1].map(|side| hosts.within(side, || tun(way, side)));
            return Ok((hosts, [left?, right?]));
        }
        let between = namespace()?;
        let frames = if way == Way::Packet { 1 } else { 64 };
        let [left, right] = within(&between, || {
            for side in [0, 1] {
                let name = ["left1", "right1"][side];
                veth::join(name, &spec(side), hosts.0[side].as_fd())?;
            }
            Ethernet::bridge_by(["left1", "right1"], frames).map_err(|(_, error)| error)
        })?;
        for side in [0, 1] {
            hosts.within(side, || veth::bring_up(&spec(side)))?;
            if way == Way::PacketOffload {
                hosts.within(side, || ip(&["link", "set", NAMES[side], "gso_max_segs", "64"]))?;
            }
        }
        Ok((hosts, [left, right].map(AnyDevice::Ethernet)))
    }

    /// Calls a function in a host's namespace.
    pub fn within<T: Send>(&self, side: usize, call: impl FnOnce() -> T + Send) -> T {
        within(&self.0[side], call)
    }

    /// Moves the calling thread into a host's namespace.
    pub fn enter(&self, side: usize) -> io::Result<()> {
        Ok(setns(&self.0[side], CloneFlags::CLONE_NEWNET)?)
    }
}

fn within<T: Send>(namespace: &File, call: impl FnOnce() -> T + Send) -> T {
    let moved = move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).expect("a namespace that was made");
        call()
    };
    thread::scope(|scope| scope.spawn(moved).join().expect("no panic"))
}

/// Makes a network namespace, which lives as long as the file.
fn namespace() -> io::Result<File> {
    let make = || {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        File::open("/proc/thread-self/ns/net")
    };
    thread::spawn(make).join().expect("no panic")
}

fn spec(side: usize) -> TunSpec {
    TunSpec {
        name: NAMES[side].into(),
        mtu: 1500,
        ipv4: Some((ADDRESSES[side], 24)),
        ipv6: None,
        queue: QUEUE,
    }
}

fn tun(way: Way, side: usize) -> io::Result<AnyDevice> {
    match way {
        Way::Tun => Tun::open(&spec(side)).map(AnyDevice::Tun),
        _ => OffloadTun::open(&spec(side), way == Way::TunOffload).map(AnyDevice::OffloadTun),
    }
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    let status = std::process::Command::new("ip").args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("ip {arguments:?}: {status}"))) }
}

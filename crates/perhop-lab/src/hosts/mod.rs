//! The two hosts: a few threads each, in a network namespace of its own.

mod counts;
pub(crate) mod endpoints;
mod limits;
mod receiving;
mod role;
mod sending;
mod users;
mod waiter;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use perhop_core::Duration;
use perhop_live::device::{Tun, TunSpec, veth};
use perhop_live::{Clock, Windows};
use perhop_scenario::format::IpVersion;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::LabError;
use crate::sandbox::{self, KernelDrops};
use crate::setting::{HostFlow, LISTENER, Setting, Side};

use role::Common;

pub(crate) use receiving::Received;
pub(crate) use sending::{PATIENCE, Sent};
pub(crate) use users::{UserResults, Users};

/// The interface's name, in each of the two namespaces.
pub(crate) const INTERFACE: &str = "perhop0";
/// How many packets of the kernel may wait for the router: enough for every window that a scenario could have
/// at once.
const KERNEL_QUEUE: u32 = 100_000;

/// The addresses of the sending and the receiving host, which share a network.
const IPV4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 55, 0, 1), Ipv4Addr::new(10, 55, 0, 2)];
const IPV6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd55, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd55, 0, 0, 0, 0, 0, 0, 2)];

/// The interface between a host's kernel and perhop's own TCP there, and their addresses on it: the kernel
/// forwards packets between this interface and the one to the router.
const OWN_INTERFACE: &str = "perhop1";
const OWN_IPV4: [[Ipv4Addr; 2]; 2] = [
    [Ipv4Addr::new(10, 55, 1, 254), Ipv4Addr::new(10, 55, 1, 1)],
    [Ipv4Addr::new(10, 55, 2, 254), Ipv4Addr::new(10, 55, 2, 1)],
];
const OWN_IPV6: [[Ipv6Addr; 2]; 2] = [
    [Ipv6Addr::new(0xfd55, 1, 0, 0, 0, 0, 0, 254), Ipv6Addr::new(0xfd55, 1, 0, 0, 0, 0, 0, 1)],
    [Ipv6Addr::new(0xfd55, 2, 0, 0, 0, 0, 0, 254), Ipv6Addr::new(0xfd55, 2, 0, 0, 0, 0, 0, 1)],
];
/// The router's address, from which markers report.
const ROUTER: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 55, 0, 9), Ipv6Addr::new(0xfd55, 0, 0, 0, 0, 0, 0, 9));

/// State that hosts and router share during a run.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    pub(crate) flows: Vec<Gauges>,
}

/// Live values of one flow, written by its hosts.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    /// Bytes of data that the receiving application has.
    pub(crate) received: AtomicU64,
    /// Smoothed round-trip time in microseconds; 0 before the first.
    pub(crate) rtt_us: AtomicU32,
    /// What has arrived of datagrams, or of a user's connection: of responses, and of requests.
    pub(crate) exchanged: [OnWire; 2],
}

/// Bytes on the wire, and packets, that a receiving application has got.
#[derive(Debug, Default)]
pub(crate) struct OnWire {
    pub(crate) bytes: AtomicU64,
    pub(crate) packets: AtomicU64,
}

impl Gauges {
    /// Counts a datagram that has arrived, with its headers.
    pub(crate) fn count_datagram(&self, bytes: u64) {
        self.exchanged[0].bytes.fetch_add(bytes, Ordering::Relaxed);
        self.exchanged[0].packets.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the bytes on the wire and the packets that have arrived of a flow's data, and of a
    /// connection's requests.
    pub(crate) fn arrived(&self, flow: &HostFlow) -> [(u64, u64); 2] {
        if flow.is_tcp() && flow.is_unattended() {
            return [flow.on_wire(self.received.load(Ordering::Relaxed)), (0, 0)];
        }
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.exchanged.each_ref().map(|OnWire { bytes, packets }| (load(bytes), load(packets)))
    }
}

impl Shared {
    pub(crate) fn new(flows: usize) -> Self {
        Self { stop: AtomicBool::new(false), flows: (0..flows).map(|_| Gauges::default()).collect() }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// How the hosts are joined to the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// By TUN devices.
    Tun,
    /// By pairs of Ethernet interfaces and packet sockets, where there are no TUN devices.
    Packet,
}

/// Progress of a host's thread at the start of a run.
pub(crate) enum Progress {
    /// The host has made its end of the wire; here is the router's.
    Tun(Tun),
    /// This is its namespace, to make an interface in.
    Namespace(OwnedFd),
    /// The host is ready to send or to receive.
    Ready,
}

/// The channels of a host's thread: for its progress, for the signal that others have created its interface,
/// and for the clock when all is ready.
pub(crate) struct Begin {
    pub(crate) progress: Sender<Progress>,
    pub(crate) joined: Receiver<()>,
    pub(crate) go: Receiver<Clock>,
}

/// The results of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) sent: Sent,
    pub(crate) received: Received,
    /// The results of its ends of users' connections: of servers at the sending host, of clients at the
    /// receiving one.
    pub(crate) users: UserResults,
    /// The 99th percentile of how late perhop's own TCP acted.
    pub(crate) own_late: Duration,
    pub(crate) drops: KernelDrops,
}

/// Runs a host until the end of the run.
pub(crate) fn run(
    side: Side,
    (setting, shared, users): (&Setting, &Shared, &Users),
    windows: &Arc<Windows>,
    asks: Duration,
    (joint, begin): (Joint, Begin),
) -> Result<Done, LabError> {
    if !move_in(setting, side, joint, &begin)? {
        return Ok(Done::default());
    }
    let Begin { progress, go, .. } = begin;
    users.open(setting, side).map_err(LabError::doing("opening the users' sockets"))?;
    let open = receiving::open(setting, side).map_err(LabError::doing("opening the receivers' sockets"))?;
    let has_servers = side == Side::Sending && !setting.users.is_empty();
    let servers = has_servers.then(|| listen(setting, side)).transpose();
    let servers = servers.map_err(LabError::doing("opening the servers' socket"))?;
    let own = setting.has_own_at(side).then(|| endpoints::open(setting, side)).transpose()?;
    let _ = progress.send(Progress::Ready);
    let Ok(clock) = go.recv() else { return Ok(Done::default()) };
    let is_origin = setting.has_flows_from(side);
    let is_destination = setting.has_flows_from(side.other());
    let common = Common { side, setting, shared, clock, asks };
    let stopping = |_: &io::Error| shared.stop();
    // Threads that start here are in this host's namespace.
    let (sent, received, of_own, of_users) = thread::scope(|scope| {
        let run_senders = move || sending::send(common, windows.clone());
        let senders = is_origin.then(|| scope.spawn(move || run_senders().inspect_err(stopping)));
        let run_receivers = move || receiving::receive(common, open);
        let sinks = is_destination.then(|| scope.spawn(move || run_receivers().inspect_err(stopping)));
        let run_own = |device| endpoints::run(common, device, windows.clone());
        let own = own.map(|device| scope.spawn(move || run_own(device).inspect_err(stopping)));
        let of_users = if setting.users.is_empty() {
            Ok(UserResults::default())
        } else {
            users::attend(common, users, servers, (side == Side::Sending).then(|| windows.clone()))
        };
        let of_users = of_users.inspect_err(stopping);
        let sent = senders.map(|thread| thread.join().expect("senders do not panic"));
        let received = sinks.map(|thread| thread.join().expect("receivers do not panic"));
        let own = own.map(|thread| thread.join().expect("perhop's own TCP does not panic"));
        (sent.transpose(), received.transpose(), own.transpose(), of_users)
    });
    let mut done = Done {
        sent: sent.map_err(LabError::doing("sending"))?.unwrap_or_default(),
        received: received.map_err(LabError::doing("receiving"))?.unwrap_or_default(),
        users: of_users.map_err(LabError::doing("running users"))?,
        own_late: Duration::ZERO,
        drops: sandbox::device_drops(INTERFACE),
    };
    if let Some(own) = of_own.map_err(LabError::doing("running perhop's own TCP"))? {
        done.add(setting, side, own);
        done.drops += sandbox::device_drops(OWN_INTERFACE);
    }
    Ok(done)
}

/// Opens the socket of a host to which TCP connections come.
fn listen(setting: &Setting, side: Side) -> io::Result<Socket> {
    let here = address(side, setting.ip, LISTENER);
    let listener = Socket::new(Domain::for_address(here), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    listener.set_reuse_address(true)?;
    listener.bind(&here.into())?;
    listener.listen(4096)?;
    Ok(listener)
}

/// Returns the address of the end of a flow at a host, with this port: the kernel's, or perhop's own TCP's.
pub(crate) fn end_of(setting: &Setting, flow: &HostFlow, side: Side, port: u16) -> SocketAddr {
    if flow.own_at(side).is_none() {
        return address(side, setting.ip, port);
    }
    let address = match setting.ip {
        IpVersion::V4 => IpAddr::from(OWN_IPV4[side as usize][1]),
        IpVersion::V6 => IpAddr::from(OWN_IPV6[side as usize][1]),
    };
    SocketAddr::new(address, port)
}

/// Returns the address of the router's markers.
pub(crate) fn router(ip: IpVersion) -> SocketAddr {
    let address = match ip {
        IpVersion::V4 => IpAddr::from(ROUTER.0),
        IpVersion::V6 => IpAddr::from(ROUTER.1),
    };
    SocketAddr::new(address, 1)
}

fn address(side: Side, ip: IpVersion, port: u16) -> SocketAddr {
    let address = match ip {
        IpVersion::V4 => IpAddr::from(IPV4[side as usize]),
        IpVersion::V6 => IpAddr::from(IPV6[side as usize]),
    };
    SocketAddr::new(address, port)
}

/// Moves the calling thread into a namespace with one interface, the other end of which is the router's.
/// False if the run does not come about.
fn move_in(setting: &Setting, side: Side, joint: Joint, begin: &Begin) -> Result<bool, LabError> {
    sandbox::enter_network_namespace()?;
    // What the scenario does not ask for stays silent: each run starts without memory of the last, and the
    // kernel sends nothing of its own.
    sandbox::set("net.ipv4.tcp_no_metrics_save", "1")?;
    // A connection that is accepted begins with the default, before its own congestion control is set. BBR
    // turns the kernel's pacing on, which then stays on. Every kernel has Reno.
    sandbox::set("net.ipv4.tcp_congestion_control", "reno")?;
    if setting.ip == IpVersion::V6 {
        sandbox::set("net.ipv6.conf.default.accept_dad", "0")?;
        sandbox::set("net.ipv6.conf.default.router_solicitations", "0")?;
        // The kernel makes a new address usable in its own time; sockets are bound to it before.
        sandbox::set("net.ipv6.ip_nonlocal_bind", "1")?;
    } else {
        // A kernel without IPv6 has no such setting, and needs none.
        let _ = sandbox::set("net.ipv6.conf.default.disable_ipv6", "1");
    }
    for (name, value) in &setting.sysctl {
        sandbox::set(name, value)?;
    }
    if let Some((group, name, value)) = setting.ecn {
        sandbox::set(name, value).map_err(|error| match error {
            LabError::Unfit(_) => LabError::Unfit(format!(
                "flows[{group}].ecn: this kernel has no Accurate ECN ({name} = {value}): have perhop's TCP at both ends \
                 (`live.sender = \"perhop\"` and `live.receiver = \"perhop\"`)"
            )),
            other => other,
        })?;
    }
    let spec = interface(setting, side);
    match joint {
        Joint::Tun => {
            let tun = Tun::open(&spec).map_err(LabError::doing("making a TUN device"))?;
            Ok(begin.progress.send(Progress::Tun(tun)).is_ok())
        }
        Joint::Packet => {
            let namespace = sandbox::namespace()?;
            if begin.progress.send(Progress::Namespace(namespace)).is_err() || begin.joined.recv().is_err() {
                return Ok(false);
            }
            veth::bring_up(&spec).map_err(LabError::doing("bringing up an interface"))?;
            Ok(true)
        }
    }
}

/// Returns a host's interface.
pub(crate) fn interface(setting: &Setting, side: Side) -> TunSpec {
    let six = setting.ip == IpVersion::V6;
    TunSpec {
        name: INTERFACE.into(),
        mtu: setting.mtu,
        ipv4: (!six).then_some((IPV4[side as usize], 16)),
        ipv6: six.then_some((IPV6[side as usize], 16)),
        queue: KERNEL_QUEUE,
    }
}

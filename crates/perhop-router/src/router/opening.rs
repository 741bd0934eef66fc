//! What the router opens and sets before it drops its privileges.

use std::fs::File;
use std::io;

use caps::Capability;
use nix::sys::mman::{MlockAllFlags, mlockall};
use perhop_live::device::{AnyDevice, Ethernet, OffloadTun, TunSpec};

use super::{Options, RouterResult, failed};
use crate::capture;
use crate::config::{Config, Interface, Kind};
use crate::http::Server;
use crate::log::Log;
use crate::plan::SIDES;
use crate::privileges::{self, Dropped, Identity};
use crate::request::Hosts;

/// The longest packet of a TUN device, and its queue in the kernel, by default.
const TUN_MTU: u16 = 1500;
const TUN_QUEUE: u32 = 1000;

/// Everything that needs privileges to open.
pub(super) struct Opened {
    pub(super) devices: [AnyDevice; 2],
    /// The longest packet that both devices take.
    pub(super) mtu: u16,
    pub(super) server: Option<Server>,
    /// The files of a capture.
    pub(super) files: Option<Vec<File>>,
}

impl Opened {
    pub(super) fn by(config: &Config, options: &Options, log: &Log) -> RouterResult<Self> {
        let (devices, mtu) = open(config, log)?;
        check_memory(config, mtu)?;
        let server = config.metrics.map(|address| {
            let bound = Server::bind(address, Hosts::new(&config.metrics_hosts));
            bound.map_err(|error| failed(format_args!("metrics: cannot listen on {address}: {error}")))
        });
        let files = options.capture.as_deref().map(|path| {
            let opened = capture::open(path, &config.capture);
            opened.map_err(|text| failed(format_args!("capture: {text}")))
        });
        Ok(Self { devices, mtu, server: server.transpose()?, files: files.transpose()? })
    }
}

/// Opens both devices. Returns the longest packet that both take, too.
fn open(config: &Config, log: &Log) -> RouterResult<([AnyDevice; 2], u16)> {
    let sides = [&config.inside, &config.outside];
    if config.inside.kind == Kind::Tun {
        let [inside, outside] = sides.map(tun);
        let mtu = |side: &Interface| side.mtu.unwrap_or(TUN_MTU);
        return Ok(([inside?, outside?], mtu(sides[0]).min(mtu(sides[1]))));
    }
    let bridge = Ethernet::bridge([&sides[0].device, &sides[1].device]).map_err(|(side, error)| {
        let why = privileges::explain(&error, Capability::CAP_NET_RAW);
        failed(format_args!("{} ({}): {why}", sides[side].device, SIDES[side]))
    })?;
    let mtus = bridge.each_ref().map(Ethernet::mtu);
    if mtus[0] != mtus[1] {
        log.warn(format_args!(
            "warning: the interfaces' MTUs differ ({} and {} bytes); packets longer than {} bytes are dropped",
            mtus[0],
            mtus[1],
            mtus[0].min(mtus[1])
        ));
    }
    Ok((bridge.map(AnyDevice::Ethernet), mtus[0].min(mtus[1])))
}

/// Refuses buffers that need more memory than is available.
fn check_memory(config: &Config, mtu: u16) -> RouterResult<()> {
    let bytes = config.buffers as usize * usize::from(mtu);
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| {
        let (packets, megabytes) = (config.buffers, bytes / 1_000_000);
        failed(format_args!(
            "buffers: {packets} packets of {mtu} bytes need {megabytes} MB, which are not available"
        ))
    })
}

fn tun(side: &Interface) -> RouterResult<AnyDevice> {
    let spec = TunSpec {
        name: side.device.clone(),
        mtu: side.mtu.unwrap_or(TUN_MTU),
        ipv4: side.ipv4.map(|address| (address.0, address.1)),
        ipv6: side.ipv6.map(|address| (address.0, address.1)),
        queue: side.queue_length.unwrap_or(TUN_QUEUE),
    };
    let opened = OffloadTun::open(&spec, true).map_err(|error| {
        failed(format_args!("{}: {}", side.device, privileges::explain(&error, Capability::CAP_NET_ADMIN)))
    });
    opened.map(AnyDevice::OffloadTun)
}

/// Sets priority and memory lock as configured, then drops all privileges.
pub(super) fn settle(config: &Config, identity: &Identity, log: &Log) -> RouterResult<Dropped> {
    if config.lock_memory
        && let Err(errno) = mlockall(MlockAllFlags::MCL_CURRENT)
    {
        let why = privileges::explain(&denied(errno), Capability::CAP_IPC_LOCK);
        log.warn(format_args!("warning: lock-memory: {why}; continuing without it"));
    }
    if let Some(priority) = config.realtime
        && let Err(error) = perhop_live::set_fifo(priority)
    {
        let why = privileges::explain(&error, Capability::CAP_SYS_NICE);
        log.warn(format_args!("warning: realtime: {why}; continuing without it"));
    }
    if *identity == Identity::Root {
        log.warn("warning: user: the router keeps running as root, which has more rights than this program checks; name another");
    }
    let dropped = privileges::drop_all(identity).map_err(failed)?;
    let groups = dropped.groups_left();
    if !groups.is_empty() {
        log.warn(format_args!(
            "warning: user: the router keeps the groups {groups:?}, which it may not drop; start it as root or by its unit"
        ));
    }
    Ok(dropped)
}

/// Explains a refusal: locking more memory than allowed fails with `ENOMEM`.
fn denied(errno: nix::errno::Errno) -> io::Error {
    match errno {
        nix::errno::Errno::ENOMEM => io::ErrorKind::PermissionDenied.into(),
        other => other.into(),
    }
}

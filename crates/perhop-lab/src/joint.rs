//! How the hosts come to be joined to the router.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use perhop_live::device::{AnyDevice, Ethernet, veth};

use crate::error::LabError;
use crate::hosts::{self, Joint, Progress};
use crate::sandbox;
use crate::setting::Setting;
use crate::setting::Side;

/// Chooses the joint to take: the wanted one, or TUN devices if they can be opened; otherwise also why they
/// cannot.
pub(crate) fn choose(wanted: Option<Joint>) -> Result<(Joint, Option<String>), LabError> {
    match (wanted, sandbox::probe_tun()) {
        (Some(Joint::Packet), _) => Ok((Joint::Packet, None)),
        (_, Ok(())) => Ok((Joint::Tun, None)),
        (None, Err(LabError::Missing(missing))) => Ok((Joint::Packet, Some(missing.what))),
        (_, Err(error)) => Err(error),
    }
}

/// Gets the router's ends of both hosts' wires; `None` if a host could not move in, whose own error says why.
pub(crate) fn join(
    setting: &Setting,
    hosts: [&Receiver<Progress>; 2],
    joined: [&Sender<()>; 2],
) -> Result<Option<[AnyDevice; 2]>, LabError> {
    let [Ok(left), Ok(right)] = hosts.map(Receiver::recv) else { return Ok(None) };
    let devices = match (left, right) {
        (Progress::Tun(left), Progress::Tun(right)) => [left, right].map(AnyDevice::Tun),
        (Progress::Namespace(left), Progress::Namespace(right)) => {
            let ends = between(setting, &[left, right])?;
            for joined in joined {
                let _ = joined.send(());
            }
            ends.map(AnyDevice::Ethernet)
        }
        _ => unreachable!("both hosts are joined alike"),
    };
    let ready = hosts.map(Receiver::recv);
    Ok(ready.iter().all(Result::is_ok).then_some(devices))
}

/// Makes a namespace between the hosts', with a pair of interfaces to each. It lives as long as the sockets
/// that are returned.
fn between(setting: &Setting, namespaces: &[OwnedFd; 2]) -> Result<[Ethernet; 2], LabError> {
    const ENDS: [&str; 2] = ["left", "right"];
    let make = || {
        sandbox::enter_network_namespace()?;
        // Nothing but the router is to take part here.
        let _ = sandbox::set("net.ipv6.conf.default.disable_ipv6", "1");
        for ((near, namespace), side) in ENDS.iter().zip(namespaces).zip([Side::Sending, Side::Receiving]) {
            veth::join(near, &hosts::interface(setting, side), namespace.as_fd())
                .map_err(LabError::doing("making a pair of interfaces"))?;
        }
        Ethernet::bridge(ENDS)
            .map_err(|(end, error)| LabError::System(format!("opening {}", ENDS[end]), error))
    };
    thread::scope(|scope| scope.spawn(make).join().expect("making interfaces does not panic"))
}

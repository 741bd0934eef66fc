//! A fault in any curve is found: the bounds of a network that differs from the simulated one in one respect
//! are exceeded in some network.

use std::sync::Arc;

use perhop_bounds::bounds;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Duration};
use perhop_sim::transport::packet_trace::PacketTrace;
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{Marking, Network, TransportSpec};
use serde_json::Value;

use crate::networks::network;
use crate::soundness::{exceeded, simulate};

/// The networks in which a fault is looked for.
const MOST: u64 = 6000;

/// Changes a network; returns whether there was anything to change.
type Fault = fn(&mut Network) -> bool;

const FAULTS: [(&str, Fault); 20] = [
    ("half of the packets of a trace", |network| traces(network, |packets| packets.len() / 2)),
    ("no bursts of traces", |network| {
        traces(network, |packets| {
            packets.iter().filter(|packet| packet.at.is_zero()).count().min(packets.len() - 1)
        })
    }),
    ("sources without jitter", |network| udp(network, |params| set(&mut params.jitter, 0.0))),
    ("on-off sources that are off for longer", |network| {
        udp(network, |params| params.off.replace(Duration::from_millis(400)).is_some())
    }),
    ("half the window of TCP", |network| {
        let senders = network.flows.iter_mut().filter_map(|flow| match &mut flow.transport {
            TransportSpec::Tcp(params) => Some(std::sync::Arc::make_mut(params)),
            _ => None,
        });
        senders.map(|params| params.window = perhop_core::Depth::Packets(1)).count() > 0
    }),
    ("profiles of half the rate", |network| {
        let changes = network.flows.iter_mut().filter_map(|flow| match &mut flow.marking {
            Marking::Host(params) | Marking::Ingress(params) if params.actions().drop_any() => Some(params),
            _ => None,
        });
        changes.map(|params| edit(params, "rate", &|_| "9kbps".into())).count() > 0
    }),
    ("a flow less", |network| network.flows.len() > 2 && network.flows.pop().is_some()),
    ("slower access links", |network| {
        let access = network.flows.iter_mut().filter_map(|flow| flow.access.as_mut());
        access.map(|access| access.rate = Bitrate::from_bps(access.rate.as_bps() / 20).unwrap()).count() > 0
    }),
    ("no jitter of hosts", |network| {
        network.flows.iter_mut().filter_map(|flow| flow.dispatch_jitter.take()).count() > 0
    }),
    ("links that are faster by a tenth", |network| {
        network
            .links
            .iter_mut()
            .for_each(|link| link.rate = Bitrate::from_bps(link.rate.as_bps() * 11 / 10).unwrap());
        true
    }),
    ("no jitter of links", |network| {
        network.links.iter_mut().filter_map(|link| link.medium.jitter.take()).count() > 0
    }),
    ("no slow times of a rate trace", |network| {
        network.links.iter_mut().filter_map(|link| link.medium.trace.take()).count() > 0
    }),
    ("no outages", |network| {
        network.links.iter_mut().map(|link| std::mem::take(&mut link.medium.outages).len()).sum::<usize>() > 0
    }),
    ("priority in the reverse order", |network| {
        queues(network, "priority", |table| {
            let queues = table["queues"].as_array_mut().unwrap();
            let (one, two) = (queues[0]["match"].clone(), queues.len());
            let other = queues[two - 2]["match"].clone();
            queues[0]["match"] = other;
            queues[two - 2]["match"] = one;
            two > 2
        })
    }),
    ("another weight under fair queueing", |network| queues(network, "wfq", heavier)),
    ("another quantum of deficit round robin", |network| queues(network, "drr", heavier)),
    ("a shaper of a higher rate", |network| {
        queues(network, "shaper", |table| {
            let rate: Bitrate = table["rate"].as_str().unwrap().parse().unwrap();
            table["rate"] = format!("{}bps", rate.as_bps() * 5 / 4).into();
            true
        })
    }),
    ("an earlier deadline of blue packets", |network| {
        queues(network, "edf", |table| std::mem::replace(&mut table["blue"], "2ms".into()) != "2ms")
    }),
    ("an earlier deadline of green packets", |network| {
        queues(network, "dsd", |table| {
            table["bound"] = "1ms".into();
            true
        })
    }),
    ("a shorter queue", |network| {
        let mut found = false;
        for queue in network.links.iter_mut().filter_map(|link| link.queue.as_mut()) {
            let mut table = serde_json::to_value(&*queue).unwrap();
            found |= shorten(&mut table);
            *queue = crate::networks::parsed(table);
        }
        found
    }),
];

fn set(value: &mut perhop_core::Probability, to: f64) -> bool {
    let to = perhop_core::Probability::new(to).unwrap();
    std::mem::replace(value, to) != to
}

/// Leaves out so many packets at the beginning of each trace.
fn traces(
    network: &mut Network,
    out: fn(&[perhop_sim::transport::packet_trace::TracedPacket]) -> usize,
) -> bool {
    let traced = network.flows.iter_mut().filter(|flow| flow.transport.trace().is_some());
    let less = traced.map(|flow| {
        let packets = flow.transport.trace().unwrap().packets();
        let left = packets[out(packets)..].to_vec();
        flow.transport = TransportSpec::Udp(UdpParams::traced(&Arc::new(PacketTrace::new(left).unwrap())));
    });
    less.count() > 0
}

fn udp(network: &mut Network, change: fn(&mut UdpParams) -> bool) -> bool {
    let sources = network.flows.iter_mut().filter_map(|flow| match &mut flow.transport {
        TransportSpec::Udp(params) => Some(params),
        _ => None,
    });
    sources.filter_map(|params| change(params).then_some(())).count() > 0
}

fn edit<T: serde::Serialize + serde::de::DeserializeOwned>(
    params: &mut T,
    key: &str,
    to: &dyn Fn(&Value) -> Value,
) {
    let mut table = serde_json::to_value(&*params).unwrap();
    table[key] = to(&table[key]);
    *params = serde_json::from_value(table).unwrap();
}

/// Changes the table of each scheduler of this name.
fn queues(network: &mut Network, name: &str, change: fn(&mut Value) -> bool) -> bool {
    let mut found = false;
    for queue in
        network.links.iter_mut().filter_map(|link| link.queue.as_mut()).filter(|queue| queue.name() == name)
    {
        let mut table = serde_json::to_value(&*queue).unwrap();
        found |= change(&mut table);
        let changed: SchedulerParams = serde_json::from_value(table).unwrap();
        *queue = changed;
    }
    found
}

fn heavier(table: &mut Value) -> bool {
    for queue in table["queues"].as_array_mut().unwrap() {
        let weight = queue["weight"].as_u64().unwrap();
        queue["weight"] = (if weight < 4 { weight * 8 } else { 1 }).into();
    }
    true
}

/// Gives each queue that drops only when it is full a third of its room.
fn shorten(table: &mut Value) -> bool {
    match table {
        Value::Object(table) if table.get("aqm").is_some_and(|aqm| aqm == "drop-tail") => {
            let limit = table["limit"].as_str().unwrap().to_owned();
            let Some(packets) = limit.strip_suffix('p').and_then(|text| text.parse::<u64>().ok()) else {
                return false;
            };
            table["limit"] = format!("{}p", packets.div_ceil(3)).into();
            packets < 100
        }
        Value::Object(table) => table.values_mut().fold(false, |found, value| shorten(value) | found),
        Value::Array(list) => list.iter_mut().fold(false, |found, value| shorten(value) | found),
        _ => false,
    }
}

#[test]
fn each_fault_is_found() {
    let mut left: Vec<&(&str, Fault)> = FAULTS.iter().collect();
    for number in 0..MOST {
        if left.is_empty() {
            return;
        }
        let right = network(number);
        let mut simulated = None;
        left.retain(|(_, fault)| {
            let mut wrong = right.clone();
            if !fault(&mut wrong) {
                return true;
            }
            let seen = simulated.get_or_insert_with(|| simulate(&right, number));
            exceeded(&bounds(&wrong), seen, &right).is_empty()
        });
    }
    let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
    assert!(left.is_empty(), "not found in {MOST} networks: {names:?}");
}

//! The packets of a simulated run as a capture file in the format pcapng.

use std::collections::BTreeMap;
use std::io::{self, Write};

use perhop_core::Reason;
use perhop_sim::observer::{Contents, Decision, Observed, Observer, Origin, PacketEvent};
use perhop_sim::{Connection, Network, Watch};

use crate::headers::{self, Ends, Other, Protocol};
use crate::write::{Blocks, Captured, PacketDirection};

/// Bytes that are handed on at once.
pub(crate) const BATCH: usize = 1 << 20;

/// Where at a link packets are captured: each point is an interface of its own, and has networks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Point {
    In,
    Out,
    Dropped,
}

const POINTS: [(&str, &str); 3] = [
    ("in", "packets as they come to the link"),
    ("out", "packets as the link begins to send them"),
    ("dropped", "packets that the queue drops after it has admitted them"),
];

/// The run and the links whose packets are captured.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The network of the run.
    pub network: &'a Network,
    /// The numbers of its links at which packets are captured; both directions of a link.
    pub links: &'a [[usize; 2]],
    /// What the file says of the run.
    pub comment: &'a str,
}

/// Writes the packets of a run as it is observed. It keeps no packet.
pub struct PacketCapture<W> {
    sink: Sink<W>,
    blocks: Blocks,
    protocols: Vec<Protocol>,
    /// Of each flow that is a direction of a user's connection: the numbers of the flows of requests and of
    /// responses.
    connections: Vec<Option<(u32, u32)>>,
    /// For each point, one past the last segment of each such flow that was seen there.
    next: Vec<Vec<u32>>,
    /// The names of flows.
    names: Vec<String>,
    /// For each link, the number of its first interface, and of its first point.
    links: Vec<Option<(u32, u32)>>,
    /// For each point, the flows whose hosts have names by now.
    named: Vec<Vec<bool>>,
    /// Why packets that wait in queues were marked on arrival, by link, flow and number.
    marked: BTreeMap<(usize, u32, u32), Reason>,
    packet: Vec<u8>,
}

impl<W: Write + Send> PacketCapture<W> {
    /// Begins a capture. Where `sink` cannot be written, `watch` ends the run.
    pub fn begin(setup: &Setup<'_>, sink: W, watch: Watch) -> Self {
        let Setup { network, links, comment } = *setup;
        let mut blocks = Blocks::default();
        blocks.section(concat!("perhop ", env!("CARGO_PKG_VERSION")), Some(comment));
        let mut places = vec![None; network.links.len()];
        let directions = links.iter().enumerate().flat_map(|(pair, both)| both.map(|link| (pair, link)));
        for (place, (pair, link)) in directions.enumerate() {
            places[link] = Some(((place * POINTS.len()) as u32, (pair * POINTS.len()) as u32));
            for (point, description) in POINTS {
                let name = format!("{} {point}", network.links[link].name);
                blocks.interface(&name, Some(description), headers::LONGEST as u32);
            }
        }
        let mut protocols: Vec<Protocol> = network.flows.iter().map(Protocol::of).collect();
        let mut connections = vec![None; network.flows.len()];
        for &Connection { request, response } in
            network.applications.iter().flat_map(|group| group.users.iter().flatten())
        {
            if protocols[request] != Protocol::Udp {
                protocols[response] = protocols[response].opened_by(protocols[request]);
                connections[request] = Some((request as u32, response as u32));
                connections[response] = connections[request];
            }
        }
        Self {
            sink: Sink::new(sink, watch),
            blocks,
            protocols,
            connections,
            next: vec![Vec::new(); links.len() * POINTS.len()],
            names: network.flows.iter().map(|flow| flow.name.clone()).collect(),
            links: places,
            named: vec![Vec::new(); links.len() * POINTS.len()],
            marked: BTreeMap::new(),
            packet: Vec::with_capacity(headers::LONGEST),
        }
    }

    /// Writes what remains.
    ///
    /// # Errors
    /// The first error of the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_on();
        self.sink.finish()
    }

    /// Returns the flows of requests and of responses of the connection that a flow belongs to, if it does.
    fn connection(&self, flow: Origin) -> Option<(u32, u32)> {
        self.connections.get(flow.spec as usize).copied().flatten().filter(|_| flow.member.is_none())
    }

    /// Gives the hosts of a flow their names, when it is first seen at a point.
    fn name_hosts(&mut self, flow: Origin, point: u32) {
        let connection = self.connection(flow);
        let named = &mut self.named[point as usize];
        let place = connection.map_or(flow.serial, |(request, _)| request) as usize;
        if named.len() <= place {
            named.resize(place + 1, false);
        }
        if std::mem::replace(&mut named[place], true) {
            return;
        }
        let number = connection.map_or(flow.spec, |(_, response)| response);
        let Some(name) = self.names.get(number as usize) else { return };
        let member = flow.member.map(|member| format!("#{member}")).unwrap_or_default();
        let Ends { sender, receiver, .. } = Ends::of(place as u32, point);
        let ends = if connection.is_some() { ["client", "server"] } else { ["sender", "receiver"] };
        let [from, to] = ends.map(|end| format!("{name}{member}.{end}"));
        self.blocks.names([(sender, from.as_str()), (receiver, to.as_str())]);
    }

    fn hand_on(&mut self) {
        self.sink.write(self.blocks.bytes());
        self.blocks.clear();
    }

    /// Returns why a packet that leaves the queue or is dropped there was marked when it came.
    fn take_mark(&mut self, observed: &Observed) -> Option<Reason> {
        if self.marked.is_empty() {
            return None;
        }
        self.marked.remove(&mark_of(observed)?)
    }

    /// Returns the other direction of the connection that a packet at a point belongs to, if it does.
    fn other(&mut self, observed: &Observed, point: u32) -> Option<Other> {
        let (request, response) = self.connection(observed.flow)?;
        let own = observed.flow.spec;
        let other = if own == request { response } else { request };
        let next = &mut self.next[point as usize];
        let length = next.len().max(request.max(response) as usize + 1);
        next.resize(length, 0);
        if let Contents::Segment { number, .. } = observed.contents {
            next[own as usize] = next[own as usize].max(number + 1);
        }
        let protocol = self.protocols[other as usize];
        Some(Other { request, is_request: other == request, protocol, next: next[other as usize] })
    }

    fn put(&mut self, observed: &Observed, point: Point, comment: Option<&str>) {
        let Some((interface, first)) = self.links[observed.link] else { return };
        self.name_hosts(observed.flow, first + point as u32);
        let protocol = self.protocols.get(observed.flow.spec as usize).copied().unwrap_or(Protocol::Udp);
        let other = self.other(observed, first + point as u32);
        let length = headers::write(observed, protocol, other, first + point as u32, &mut self.packet);
        self.blocks.packet(&Captured {
            interface: interface + point as u32,
            time: observed.at.as_nanos(),
            direction: if point == Point::Out { PacketDirection::Outbound } else { PacketDirection::Inbound },
            packet: &self.packet,
            length,
            comment,
            missed: 0,
        });
        if self.blocks.bytes().len() >= BATCH {
            self.hand_on();
        }
    }
}

impl<W: Write + Send> Observer for PacketCapture<W> {
    fn observe(&mut self, observed: &Observed) {
        let dropped = |reason: Reason| format!("dropped: {}", reason.name());
        let marked = |reason: Reason| format!("marked: {}", reason.name());
        match observed.event {
            PacketEvent::Arrival(Decision::Admitted) => self.put(observed, Point::In, None),
            PacketEvent::Arrival(Decision::Notified(reason)) => {
                // As it comes, it is not marked yet.
                self.put(observed, Point::In, None);
                if let Some(mark) = mark_of(observed) {
                    self.marked.insert(mark, reason);
                }
            }
            PacketEvent::Arrival(Decision::Dropped(reason)) => {
                self.put(observed, Point::In, Some(&dropped(reason)));
            }
            PacketEvent::Policed => self.put(observed, Point::In, Some(&dropped(Reason::Policed))),
            PacketEvent::Departure { notified, is_lost } => {
                let mark = self.take_mark(observed).or(notified).map(marked);
                let lost = is_lost.then(|| "lost by the link".to_owned());
                let comments: Vec<String> = mark.into_iter().chain(lost).collect();
                let comment = comments.join("; ");
                self.put(observed, Point::Out, Some(comment.as_str()).filter(|text| !text.is_empty()));
            }
            PacketEvent::Dropped(reason) => {
                self.take_mark(observed);
                self.put(observed, Point::Dropped, Some(&dropped(reason)));
            }
        }
    }
}

/// Returns the key under which a mark is remembered. Only data is marked.
fn mark_of(observed: &Observed) -> Option<(usize, u32, u32)> {
    match observed.contents {
        Contents::Segment { number, .. } | Contents::Datagram(number) => {
            Some((observed.link, observed.flow.serial, number))
        }
        Contents::Acknowledgement(_) | Contents::Feedback(_) => None,
    }
}

/// Where bytes go, until it cannot be written.
pub(crate) struct Sink<W> {
    output: W,
    failed: Option<io::Error>,
    watch: Watch,
}

impl<W: Write> Sink<W> {
    pub(crate) fn new(output: W, watch: Watch) -> Self {
        Self { output, failed: None, watch }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.output.write_all(bytes)
        {
            self.failed = Some(error);
            self.watch.stop();
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.output.flush().map(|()| self.output),
        }
    }
}

#[cfg(test)]
mod tests;

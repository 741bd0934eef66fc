//! The data plane without its devices: packets come in, pass meters, queues and wires, and leave at their
//! time.
//!
//! It does no I/O and reads no clock. A driver passes in packets and the time ([`Plane::arrive`],
//! [`Plane::advance`]) and receives the packets to send through a [`Sink`]. All service is in virtual time:
//! the time at which a link becomes free does not depend on how late the driver calls, so lateness does not
//! add up. Once its queues have grown to their size, it allocates no memory for a packet.

mod agenda;
mod balance;
mod build;
mod control;
mod line;
mod link;
mod reload;
mod report;
mod route;
mod sink;
mod stream;

use std::sync::Arc;

use perhop_core::measure::{LinkOutcome, PortView};
use perhop_core::{Bitrate, Color, Header, Instant, Offered, Reason, Served};

use self::agenda::{Agenda, Event, Kind};
use self::control::{Channel, Control};
use self::line::{Line, Wire};
use self::link::Link;
use self::route::{Frame, RouteEntry};
use self::stream::{Metering, Stream};
use crate::buffers::{Buffers, HEAD, Head, Slot};
use crate::classifier::Classifier;
use crate::counts::{Loss, PlaneCounters, Portless, StreamCounts};
use crate::encapsulation::{self, Encapsulation};
use crate::fragments::Fragments;
use crate::spec::Hop;
use crate::windows::Windows;
use crate::wire::{self, Fields};

pub use balance::Unbalanced;
pub use link::{ClassTotals, LinkTotals};
pub use reload::{Changed, Fixed};
pub use sink::{Lost, Sink};
pub use stream::color_of;

/// A running data plane.
#[derive(Debug)]
pub struct Plane {
    now: Instant,
    mtu: usize,
    buffers: Buffers,
    classifiers: Vec<Classifier>,
    /// For each device.
    fragments: Vec<Fragments>,
    links: Vec<Link>,
    wires: Vec<Wire>,
    meters: Vec<Metering>,
    controls: Vec<Control>,
    channels: Vec<Channel>,
    streams: Vec<Stream>,
    /// The routes of all streams, one after another.
    routes: Vec<RouteEntry>,
    agenda: Agenda,
    counters: PlaneCounters,
    windows: Arc<Windows>,
}

impl Plane {
    /// Returns the time at which [`advance`](Self::advance) is to be called next, unless a packet arrives
    /// earlier; [`Instant::NEVER`] if nothing is pending.
    #[inline]
    pub fn next(&self) -> Instant {
        self.agenda.next()
    }

    /// Returns the longest packet that it takes, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Returns the place to which hosts report the congestion windows that window controls sample.
    pub fn windows(&self) -> Arc<Windows> {
        Arc::clone(&self.windows)
    }

    /// Returns a buffer to read a packet into, for [`arrive`](Self::arrive), as long as the longest packet,
    /// with room for what its device keeps with it. `None` while every buffer is taken.
    #[inline]
    pub fn room(&mut self) -> Option<(Slot, &mut Head, &mut [u8])> {
        let slot = self.buffers.take()?;
        let (head, room) = self.buffers.packet_mut(slot);
        Some((slot, head, room))
    }

    /// Gives a buffer back that is not needed.
    pub fn release(&mut self, slot: Slot) {
        self.buffers.give_back(slot);
    }

    /// Counts a packet that came from a device and was lost, because no buffer was free.
    pub fn overrun(&mut self, device: usize, packet: &[u8], sink: &mut impl Sink) {
        self.counters.read(device, packet.len());
        self.counters.lose(Loss::NoBuffer);
        let lost = Lost { device, head: &[0; HEAD], packet, color: None, why: Loss::NoBuffer };
        sink.lose(&lost, self.now);
    }

    /// Takes a packet, `length` bytes in `slot`, that comes from a device at `now`, which must not be earlier
    /// than any time passed in before. Events that are due before it happen first; of those due at `now`,
    /// messages to queues and samples of windows come later.
    pub fn arrive(&mut self, device: usize, slot: Slot, length: usize, now: Instant, sink: &mut impl Sink) {
        self.advance_up_to((now, Kind::Reach), sink);
        self.counters.read(device, length);
        let length = length.min(self.mtu);
        let (head, room) = self.buffers.packet_mut(slot);
        let mut fields = match wire::parse(&room[..length]) {
            Ok(fields) => Fields { encapsulation: Encapsulation::of(head), ..fields },
            Err(why) => return self.discard(device, slot, length, Loss::Malformed(why), sink),
        };
        if fields.fragment.is_some() && !self.fragments[device].complete(&mut fields, now) {
            self.counters.portless(Portless::Fragment);
        } else if fields.hidden {
            self.counters.portless(Portless::Hidden);
        }
        let Some(stream) = self.classifiers[device].stream_of(&fields) else {
            return self.discard(device, slot, length, Loss::Unclassified, sink);
        };
        let mut frame = self.streams[stream as usize].admit(&fields, slot, stream, now);
        encapsulation::remark(self.buffers.packet_mut(slot).0, self.streams[stream as usize].remark);
        frame.segment = self.segment_of(&frame, &fields);
        self.forward(frame, now, sink);
    }

    /// Lets all events happen that are due by `now`.
    #[inline]
    pub fn advance(&mut self, now: Instant, sink: &mut impl Sink) {
        self.advance_up_to((now, Kind::Sample), sink);
    }

    #[inline]
    fn advance_up_to(&mut self, (now, last): (Instant, Kind), sink: &mut impl Sink) {
        while let Some(event) = self.agenda.pop((now, last)) {
            self.now = event.at;
            self.handle(event, sink);
        }
        self.now = self.now.max(now);
    }

    fn handle(&mut self, Event { at, kind, source, .. }: Event, sink: &mut impl Sink) {
        let number = source as usize;
        match kind {
            Kind::Change => self.change(number, at, sink),
            Kind::Serve => self.serve(number, at, sink),
            Kind::Leave | Kind::Reach => self.reach(source, at, sink),
            Kind::Message => self.receive_message(number),
            Kind::Sample => self.sample_windows(number, at),
        }
    }

    /// Takes the first packet of a line, which reaches its end.
    fn reach(&mut self, source: u32, at: Instant, sink: &mut impl Sink) {
        let is_announced = self.announces_each(source);
        let line = self.line_mut(source);
        let Some(frame) = line.pop() else { return };
        if let Some((next, &following)) = line.first().filter(|_| !is_announced) {
            let event = arrival(&self.routes, source, next, &following);
            self.agenda.push(event);
        }
        self.forward(frame, at, sink);
    }

    /// Wires and links each have a line; those of wires come first.
    fn line_mut(&mut self, source: u32) -> &mut Line {
        let number = source as usize;
        match number.checked_sub(self.wires.len()) {
            None => &mut self.wires[number].line,
            Some(link) => &mut self.links[link].line,
        }
    }

    /// Returns whether each packet on a line has an event of its own, since it may overtake others. On the
    /// other lines only the first one has.
    fn announces_each(&self, source: u32) -> bool {
        let link = (source as usize).checked_sub(self.wires.len());
        link.is_some_and(|link| self.links[link].medium.is_some())
    }

    /// Puts a packet on the line of this number.
    #[inline]
    fn put(&mut self, source: u32, sent: Instant, frame: Frame) {
        if let Some(at) = self.line_mut(source).push(sent, frame) {
            let event = arrival(&self.routes, source, at, &frame);
            self.agenda.push(event);
        }
    }

    /// Takes a packet over a link that begins to send it at `now` and has sent it at `sent`.
    #[inline]
    fn carry(&mut self, number: usize, (now, sent): (Instant, Instant), frame: Frame, sink: &mut impl Sink) {
        let source = (self.wires.len() + number) as u32;
        let Link { medium, line, .. } = &mut self.links[number];
        let Some(medium) = medium else { return self.put(source, sent, frame) };
        let Some(at) = medium.pass(now, sent + line.delay()) else {
            self.streams[frame.stream as usize].counts.lost += 1;
            return self.forget(&frame, Loss::InTransit, now, sink);
        };
        let event = arrival(&self.routes, source, at, &frame);
        line.insert(at, frame, |at, other| arrival(&self.routes, source, at, other) > event);
        self.agenda.push(event);
    }

    pub(super) fn schedule_change(&mut self, number: usize) {
        if let Some(at) = self.links[number].medium.as_ref().and_then(|medium| medium.next()) {
            self.agenda.push(Event::of(Kind::Change, at, number));
        }
    }

    /// Makes a change of a link.
    fn change(&mut self, number: usize, now: Instant, sink: &mut impl Sink) {
        let is_up_again = self.links[number].change(now);
        self.schedule_change(number);
        if is_up_again {
            self.serve(number, now, sink);
        }
    }

    /// Moves a packet on along its route, as far as it gets at this time.
    fn forward(&mut self, mut frame: Frame, now: Instant, sink: &mut impl Sink) {
        loop {
            let entry = self.routes[frame.step as usize];
            frame.step += 1;
            match entry {
                RouteEntry::Leave(device) => return self.leave(device, &frame, now, sink),
                RouteEntry::Hop(Hop::Wire(number)) => {
                    let sent = self.wires[number].transmit(frame.header.size, now);
                    return self.put(number as u32, sent, frame);
                }
                RouteEntry::Hop(Hop::Link(number)) => return self.offer(number, frame, now, sink),
                RouteEntry::Hop(Hop::Meter(number)) => {
                    let verdict = self.meters[number].judge(&mut frame.header, now);
                    let counts = &mut self.streams[frame.stream as usize].counts;
                    counts.marked[verdict.color.index()] += 1;
                    if let Some(reason) = verdict.dropped {
                        counts.policed[verdict.color.index()] += 1;
                        return self.forget(&frame, Loss::Dropped(reason), now, sink);
                    }
                    if verdict.color != Color::Green {
                        self.report_out(frame.stream, now, sink);
                    }
                }
                RouteEntry::Hop(Hop::Data(control, member)) => {
                    if let Some(segment) = frame.segment {
                        self.controls[control].steering.on_data(member, segment, now);
                    }
                }
                RouteEntry::Hop(Hop::Ack(control, member)) => {
                    if let Some(segment) = frame.segment {
                        self.controls[control].steering.on_ack(member, segment, now);
                    }
                }
            }
        }
    }

    fn offer(&mut self, number: usize, mut frame: Frame, now: Instant, sink: &mut impl Sink) {
        if let Err((color, reason)) = self.links[number].meters.judge(&mut frame.header, now) {
            self.streams[frame.stream as usize].counts.policed[color.index()] += 1;
            return self.forget(&frame, Loss::Dropped(reason), now, sink);
        }
        let offered = self.links[number].port.offer(frame, now);
        if let (Offered::Idle, Some(medium)) = (&offered, &mut self.links[number].medium) {
            medium.idle(now);
        }
        while let Some((frame, reason)) = self.links[number].port.shed(now) {
            self.lose(&frame, reason, now, sink);
        }
        match offered {
            Offered::Queued => {}
            Offered::Idle => self.serve(number, now, sink),
            Offered::Dropped(frame, reason) => self.lose(&frame, reason, now, sink),
        }
    }

    fn serve(&mut self, number: usize, now: Instant, sink: &mut impl Sink) {
        loop {
            match self.links[number].serve(now) {
                Served::Sent(frame, free_at) => {
                    self.agenda.push(Event::of(Kind::Serve, free_at, number));
                    return self.carry(number, (now, free_at), frame, sink);
                }
                Served::Dropped(frame, reason) => self.lose(&frame, reason, now, sink),
                Served::Later(at) => return self.agenda.push(Event::of(Kind::Serve, at, number)),
                Served::Nothing => return,
            }
        }
    }

    fn leave(&mut self, device: usize, frame: &Frame, now: Instant, sink: &mut impl Sink) {
        let Header { size, dscp, ecn, .. } = frame.header;
        let (head, room) = self.buffers.packet_mut(frame.slot);
        let packet = &mut room[..usize::from(size)];
        wire::mark(packet, dscp, ecn);
        sink.deliver(device, head, packet, now);
        self.counters.deliver(device, size);
        self.streams[frame.stream as usize].counts.deliver(size);
        self.buffers.give_back(frame.slot);
    }

    /// Counts a packet that a queue drops.
    fn lose(&mut self, frame: &Frame, reason: Reason, now: Instant, sink: &mut impl Sink) {
        let counts = &mut self.streams[frame.stream as usize].counts;
        counts.dropped[frame.header.color.index()] += 1;
        self.forget(frame, Loss::Dropped(reason), now, sink);
    }

    /// Counts the loss of a packet that its stream has counted.
    fn forget(&mut self, frame: &Frame, why: Loss, now: Instant, sink: &mut impl Sink) {
        self.counters.lose(why);
        let device = self.streams[frame.stream as usize].device;
        let Header { size, color, .. } = frame.header;
        let (head, room) = self.buffers.packet_mut(frame.slot);
        let packet = &room[..usize::from(size)];
        sink.lose(&Lost { device, head, packet, color: Some(color), why }, now);
        self.buffers.give_back(frame.slot);
    }

    fn discard(&mut self, device: usize, slot: Slot, length: usize, why: Loss, sink: &mut impl Sink) {
        self.counters.lose(why);
        let (head, room) = self.buffers.packet_mut(slot);
        sink.lose(&Lost { device, head, packet: &room[..length], color: None, why }, self.now);
        self.buffers.give_back(slot);
    }

    /// Packets that came, left and were lost.
    pub fn counters(&self) -> &PlaneCounters {
        &self.counters
    }

    /// Returns the names of streams and their counters.
    pub fn streams(&self) -> impl Iterator<Item = (&str, &StreamCounts)> {
        self.streams.iter().map(|stream| (stream.name.as_str(), &stream.counts))
    }

    /// Returns the name and rate of each link, and the present state of its port.
    pub fn ports(&self) -> impl Iterator<Item = (&str, Bitrate, PortView<'_>)> {
        self.links.iter().map(|link| (link.name.as_str(), link.rate, link.view()))
    }

    /// Returns the counters and statistics of each link, as the simulator has them, over the whole run.
    pub fn outcomes(&self) -> impl Iterator<Item = LinkOutcome> {
        self.links.iter().map(Link::outcome)
    }

    /// Returns the traffic of each link, over all its configurations.
    pub fn link_totals(&self) -> impl Iterator<Item = LinkTotals<'_>> {
        self.links.iter().map(Link::totals)
    }

    /// Returns the window of each controlled flow as its control last sampled it, in packets.
    pub fn sampled_windows(&self) -> impl Iterator<Item = (usize, f64)> {
        self.controls.iter().flat_map(|control| control.steering.all_seen())
    }

    /// Ends the measured time: packets that still wait have waited until now.
    pub fn finish(&mut self, now: Instant) {
        self.links.iter_mut().for_each(|link| link.port.finish(now));
    }
}

/// Returns the event that a packet reaches the end of a line.
fn arrival(routes: &[RouteEntry], source: u32, at: Instant, frame: &Frame) -> Event {
    let kind = match routes[frame.step as usize] {
        RouteEntry::Leave(_) => Kind::Leave,
        RouteEntry::Hop(_) => Kind::Reach,
    };
    Event { at, kind, rank: u64::from(frame.header.flow.0) << 32 | u64::from(frame.step), source }
}

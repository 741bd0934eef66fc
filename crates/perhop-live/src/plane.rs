//! The data plane without its devices: packets come in, pass meters, queues and wires, and go out, each at its time.
//!
//! It does no I/O and reads no clock. A driver tells it of packets and of the time ([`Plane::arrive`],
//! [`Plane::advance`]) and hears through a [`Sink`] what is to be sent. Everything is served in virtual time: a link that
//! was to be free at some time was free then, however late the driver comes, so that lateness never adds up. It allocates
//! nothing for a packet once its queues have grown to their size.

mod reload;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::sync::Arc;

use perhop_core::control::{Message, Steering};
use perhop_core::measure::PortView;
use perhop_core::meter::{AnyMeter, Meter};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{
    Bitrate, Color, Context, Counters, Dscp, Duration, Environment, Header, Imbalance, Instant, Offered,
    Packet, Port, Rng, Serializer, Served, Streams,
};

use crate::buffers::{Buffers, Head, Slot};
use crate::classifier::Classifier;
use crate::counts::{Books, Loss, StreamCounts};
use crate::spec::{Coloring, Hop, LinkSpec, MeterSpec, PlaneSpec, StreamSpec};
use crate::windows::{Segments, Windows};
use crate::wire::{self, Fields};

pub use reload::{Changed, ClassTotals, Fixed, LinkTotals};

/// What becomes of packets.
pub trait Sink {
    /// A packet leaves by this device; it was to leave at `due`.
    fn deliver(&mut self, device: usize, packet: &[u8], due: Instant);
    /// The same, with what the device that it came from has kept with it.
    #[inline]
    fn deliver_framed(&mut self, device: usize, _head: &Head, packet: &[u8], due: Instant) {
        self.deliver(device, packet, due);
    }
    /// A packet is lost.
    fn lose(&mut self, _packet: &[u8], _why: Loss, _now: Instant) {}
    /// A packet is lost that came from this device.
    #[inline]
    fn lose_from(&mut self, _device: usize, packet: &[u8], why: Loss, now: Instant) {
        self.lose(packet, why, now);
    }
}

/// A packet inside the data plane: what blocks see of it, where its bytes are, and where it goes next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    slot: Slot,
    stream: u32,
    step: u32,
    /// What the control of its path reads of it when it passes: the number of its segment, or of the one that it asks for.
    segment: Option<u32>,
}

impl Packet for Frame {
    fn header(&self) -> &Header {
        &self.header
    }
    fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }
}

/// One step of a way; all ways stand end to end in one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Hop(Hop),
    Leave(usize),
}

/// Takes packets to its far end in a fixed time; what is on its way is in the order of arrival.
#[derive(Clone, Debug, Default)]
struct Line {
    delay: Duration,
    under_way: VecDeque<(Instant, Frame)>,
}

#[derive(Clone, Debug)]
struct Link {
    name: String,
    rate: Bitrate,
    queue: SchedulerParams,
    port: Port<Frame>,
    /// Ports of earlier configurations that are served first, and what went through those that are gone.
    earlier: VecDeque<Port<Frame>>,
    retired: Vec<(String, Counters)>,
    line: Line,
}

#[derive(Clone, Debug)]
struct WireState {
    serializer: Serializer,
    line: Line,
}

#[derive(Clone, Debug)]
struct Metering {
    spec: MeterSpec,
    meter: AnyMeter,
    rng: Rng,
}

#[derive(Debug)]
struct Control {
    steering: Steering,
    members: Vec<(Segments, Option<usize>)>,
    channels: Vec<usize>,
}

/// Word of a path's windows on its way to a queue.
#[derive(Debug)]
struct Channel {
    link: usize,
    label: u32,
    delay: Duration,
    under_way: VecDeque<(Instant, Message)>,
}

/// What happens by itself. Of things at one time the order is the simulator's: packets leave, ports are served, packets
/// reach links, control messages arrive, window controls look; among packets, those of the flow with the lower number
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Instant,
    kind: Kind,
    /// Of packets, the flow and the step; else the number of the source.
    rank: u64,
    source: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Leave,
    Serve,
    Reach,
    Word,
    Look,
}

/// All that is to happen, in two parts. What the world sees or is asked about must happen at its time. What happens inside
/// need not: nobody can tell when a driver lets it happen, as long as that is before the first packet that leaves because
/// of it.
#[derive(Debug)]
struct Agenda {
    seen: BinaryHeap<Reverse<Event>>,
    inside: BinaryHeap<Reverse<Event>>,
    /// What happens inside lets no packet leave before so long after.
    grace: Duration,
}

impl Agenda {
    #[inline]
    fn push(&mut self, event: Event) {
        match event.kind {
            Kind::Leave | Kind::Look => self.seen.push(Reverse(event)),
            Kind::Serve | Kind::Reach | Kind::Word => self.inside.push(Reverse(event)),
        }
    }

    /// The next event, if it comes no later than things of this kind at this time.
    #[inline]
    fn pop(&mut self, limit: (Instant, Kind)) -> Option<Event> {
        let first = |heap: &BinaryHeap<Reverse<Event>>| heap.peek().map(|&Reverse(event)| event);
        let heap = match (first(&self.seen), first(&self.inside)) {
            (Some(seen), Some(inside)) if inside < seen => &mut self.inside,
            (Some(_), _) => &mut self.seen,
            (None, _) => &mut self.inside,
        };
        let event = heap.peek().filter(|Reverse(event)| (event.at, event.kind) <= limit)?.0;
        heap.pop();
        Some(event)
    }

    fn next(&self) -> Instant {
        let at =
            |heap: &BinaryHeap<Reverse<Event>>| heap.peek().map_or(Instant::NEVER, |Reverse(event)| event.at);
        at(&self.seen).min(at(&self.inside) + self.grace)
    }
}

/// A data plane at work.
#[derive(Debug)]
pub struct Plane {
    now: Instant,
    mtu: usize,
    buffers: Buffers,
    classifiers: Vec<Classifier>,
    links: Vec<Link>,
    wires: Vec<WireState>,
    meters: Vec<Metering>,
    controls: Vec<Control>,
    channels: Vec<Channel>,
    streams: Vec<Stream>,
    steps: Vec<Step>,
    agenda: Agenda,
    books: Books,
    windows: Arc<Windows>,
}

#[derive(Debug)]
struct Stream {
    name: String,
    device: usize,
    template: Header,
    coloring: Coloring,
    first_step: u32,
    counts: StreamCounts,
}

/// The books do not balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unbalanced {
    /// A queue's.
    Queue(String, Imbalance),
    /// The plane's as a whole: packets that came, and what became of them.
    Plane {
        /// Packets that were read.
        read: u64,
        /// Packets of which the books know what became.
        known: u64,
    },
}

impl fmt::Display for Unbalanced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(link, imbalance) => write!(f, "link {link}: {imbalance}"),
            Self::Plane { read, known } => write!(f, "{read} packets came, but {known} are accounted for"),
        }
    }
}

impl std::error::Error for Unbalanced {}

impl Plane {
    /// An empty data plane at time zero. Random streams are those that the simulator gives the same blocks.
    pub fn new(spec: PlaneSpec, seed: u64) -> Self {
        let PlaneSpec { devices, mtu, buffers, window, links, wires, meters, controls, streams } = spec;
        let mut steps = Vec::new();
        let mut rules = vec![Vec::new(); devices];
        let streams: Vec<Stream> = streams
            .into_iter()
            .enumerate()
            .map(|(number, stream)| {
                let first_step = steps.len() as u32;
                steps.extend(stream.route.iter().copied().map(Step::Hop));
                steps.push(Step::Leave(stream.leaves));
                rules[stream.device].push((stream.selector.clone(), number as u32));
                Stream::new(stream, first_step, StreamCounts::default())
            })
            .collect();
        let mut channels = Vec::new();
        let flows = streams.iter().map(|stream| stream.template.flow.0 as usize + 1).max().unwrap_or(0);
        let controls = controls.into_iter().map(|spec| {
            let members = spec.members.iter().map(|member| (member.flow.0 as usize, member.rate));
            let rng = Rng::stream(seed, &format!("paths/{}/control", spec.name));
            let steering = Steering::new(spec.control, spec.label, members, rng);
            let to_queues = spec.links.into_iter().map(|(link, delay)| {
                channels.push(Channel { link, label: spec.label, delay, under_way: VecDeque::new() });
                channels.len() - 1
            });
            let channels = to_queues.collect();
            let members = spec.members.iter().map(|member| (Segments::new(member.segment), member.meter));
            Control { steering, members: members.collect(), channels }
        });
        let agenda = Agenda {
            seen: BinaryHeap::new(),
            inside: BinaryHeap::new(),
            grace: grace(&steps, |hop| match hop {
                Hop::Wire(number) => Some(wires[number].delay),
                Hop::Link(number) => Some(links[number].delay),
                Hop::Meter(_) | Hop::Data(..) | Hop::Ack(..) => None,
            }),
        };
        let mut plane = Self {
            now: Instant::ZERO,
            mtu: usize::from(mtu),
            buffers: Buffers::new(buffers, usize::from(mtu)),
            classifiers: rules.into_iter().map(Classifier::new).collect(),
            controls: controls.collect(),
            links: links.into_iter().map(|spec| Link::new(spec, seed, window)).collect(),
            wires: wires
                .into_iter()
                .map(|spec| WireState {
                    serializer: Serializer::new(spec.rate),
                    line: Line { delay: spec.delay, under_way: VecDeque::new() },
                })
                .collect(),
            meters: meters.into_iter().map(|spec| Metering::new(spec, seed)).collect(),
            channels,
            streams,
            steps,
            agenda,
            books: Books::new(devices),
            windows: Arc::new(Windows::new(flows)),
        };
        for number in 0..plane.controls.len() {
            plane.schedule_look(number);
        }
        plane
    }

    /// When it must be told the time next, if no packet comes before; [`Instant::NEVER`] if it need not.
    #[inline]
    pub fn next(&self) -> Instant {
        self.agenda.next()
    }

    /// The longest packet that it takes, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Where the senders' congestion windows are told to the controls that look at them.
    pub fn windows(&self) -> Arc<Windows> {
        Arc::clone(&self.windows)
    }

    /// Room to read a packet into, for [`arrive`](Self::arrive); all of the longest packet's. `None` while every place is
    /// taken.
    #[inline]
    pub fn room(&mut self) -> Option<(Slot, &mut [u8])> {
        let slot = self.buffers.take()?;
        Some((slot, self.buffers.bytes_mut(slot)))
    }

    /// The same, with room for what the device keeps with the packet.
    #[inline]
    pub fn framed_room(&mut self) -> Option<(Slot, &mut Head, &mut [u8])> {
        let slot = self.buffers.take()?;
        let (head, room) = self.buffers.framed_mut(slot);
        Some((slot, head, room))
    }

    /// The room is not needed after all.
    pub fn release(&mut self, slot: Slot) {
        self.buffers.give_back(slot);
    }

    /// A packet of `length` bytes came from a device and was lost, there being no room for it.
    pub fn overrun(&mut self, device: usize, packet: &[u8], sink: &mut impl Sink) {
        self.books.read(device, packet.len());
        self.books.lose(Loss::NoBuffer);
        sink.lose_from(device, packet, Loss::NoBuffer, self.now);
    }

    /// A packet, `length` bytes in `slot`, comes from a device at `now`, which must not be earlier than any time told
    /// before. What was due before it happens first; of what is due at `now`, word to queues and looks at windows come later.
    pub fn arrive(&mut self, device: usize, slot: Slot, length: usize, now: Instant, sink: &mut impl Sink) {
        self.advance_up_to((now, Kind::Reach), sink);
        self.books.read(device, length);
        let length = length.min(self.mtu);
        let parsed = wire::parse(&self.buffers.bytes_mut(slot)[..length]);
        let fields = match parsed {
            Ok(fields) => fields,
            Err(why) => return self.discard(device, slot, length, Loss::Malformed(why), sink),
        };
        let Some(stream) = self.classifiers[device].stream_of(&fields) else {
            return self.discard(device, slot, length, Loss::Unclassified, sink);
        };
        let mut frame = self.streams[stream as usize].admit(&fields, slot, stream, now);
        frame.segment = self.segment_of(&frame, &fields);
        self.walk(frame, now, sink);
    }

    /// Lets everything happen that is due by `now`.
    #[inline]
    pub fn advance(&mut self, now: Instant, sink: &mut impl Sink) {
        self.advance_up_to((now, Kind::Look), sink);
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
            Kind::Serve => self.serve(number, at, sink),
            Kind::Leave | Kind::Reach => {
                let line = self.line_mut(source);
                let Some((_, frame)) = line.under_way.pop_front() else { return };
                if let Some(&(next, following)) = line.under_way.front() {
                    let event = self.off_line(source, next, &following);
                    self.agenda.push(event);
                }
                self.walk(frame, at, sink);
            }
            Kind::Word => {
                let channel = &mut self.channels[number];
                let Some((_, message)) = channel.under_way.pop_front() else { return };
                let (link, label) = (channel.link, channel.label);
                if let Some(&(next, _)) = channel.under_way.front() {
                    self.agenda.push(word(next, source));
                }
                self.links[link].port.on_message(label, &message);
            }
            Kind::Look => self.look(number, at),
        }
    }

    /// Wires and links each have a line; those of wires come first.
    fn line_mut(&mut self, source: u32) -> &mut Line {
        let number = source as usize;
        match number.checked_sub(self.wires.len()) {
            None => &mut self.wires[number].line,
            Some(link) => &mut self.links[link].line,
        }
    }

    fn off_line(&self, source: u32, at: Instant, frame: &Frame) -> Event {
        let kind = match self.steps[frame.step as usize] {
            Step::Leave(_) => Kind::Leave,
            Step::Hop(_) => Kind::Reach,
        };
        Event { at, kind, rank: u64::from(frame.header.flow.0) << 32 | u64::from(frame.step), source }
    }

    /// A packet is put on the line of this number.
    #[inline]
    fn put(&mut self, source: u32, arrival: Instant, frame: Frame) {
        let line = self.line_mut(source);
        // A delay that became shorter lets no packet overtake another.
        let last = line.under_way.back().map_or(Instant::ZERO, |&(last, _)| last);
        let at = last.max(arrival + line.delay);
        let waits = line.under_way.is_empty();
        line.under_way.push_back((at, frame));
        if waits {
            let event = self.off_line(source, at, &frame);
            self.agenda.push(event);
        }
    }

    /// A packet goes on from its step, as far as it can at this time.
    fn walk(&mut self, mut frame: Frame, now: Instant, sink: &mut impl Sink) {
        loop {
            let step = self.steps[frame.step as usize];
            frame.step += 1;
            match step {
                Step::Leave(device) => return self.leave(device, &frame, now, sink),
                Step::Hop(Hop::Wire(number)) => {
                    let wire = &mut self.wires[number];
                    let sent = wire.serializer.transmit(frame.header.size, now);
                    return self.put(number as u32, sent, frame);
                }
                Step::Hop(Hop::Link(number)) => return self.offer(number, frame, now, sink),
                Step::Hop(Hop::Meter(number)) => {
                    let Metering { spec, meter, rng } = &mut self.meters[number];
                    let color = meter.color(&frame.header, &mut Context { now, rng });
                    spec.params.af().mark(&mut frame.header, color);
                    self.streams[frame.stream as usize].counts.marked[color.index()] += 1;
                }
                Step::Hop(Hop::Data(control, member)) => {
                    if let Some(segment) = frame.segment {
                        self.controls[control].steering.on_data(member, segment, now);
                    }
                }
                Step::Hop(Hop::Ack(control, member)) => {
                    if let Some(segment) = frame.segment {
                        self.controls[control].steering.on_ack(member, segment, now);
                    }
                }
            }
        }
    }

    fn offer(&mut self, number: usize, frame: Frame, now: Instant, sink: &mut impl Sink) {
        let offered = self.links[number].port.offer(frame, now);
        while let Some((frame, reason)) = self.links[number].port.shed(now) {
            self.lose(&frame, Loss::Queue(reason), now, sink);
        }
        match offered {
            Offered::Queued => {}
            Offered::Idle => self.serve(number, now, sink),
            Offered::Dropped(frame, reason) => self.lose(&frame, Loss::Queue(reason), now, sink),
        }
    }

    fn serve(&mut self, number: usize, now: Instant, sink: &mut impl Sink) {
        loop {
            match self.links[number].port_at_work(now).serve(now) {
                Served::Sent(frame, free_at) => {
                    self.agenda.push(serve(free_at, number));
                    return self.put((self.wires.len() + number) as u32, free_at, frame);
                }
                Served::Dropped(frame, reason) => self.lose(&frame, Loss::Queue(reason), now, sink),
                Served::Later(at) => return self.agenda.push(serve(at, number)),
                Served::Nothing => return,
            }
        }
    }

    fn leave(&mut self, device: usize, frame: &Frame, now: Instant, sink: &mut impl Sink) {
        let Header { size, dscp, ecn, .. } = frame.header;
        let (head, room) = self.buffers.framed_mut(frame.slot);
        let packet = &mut room[..usize::from(size)];
        wire::mark(packet, dscp, ecn);
        sink.deliver_framed(device, head, packet, now);
        self.books.deliver(device, size);
        self.streams[frame.stream as usize].counts.deliver(size);
        self.buffers.give_back(frame.slot);
    }

    fn lose(&mut self, frame: &Frame, why: Loss, now: Instant, sink: &mut impl Sink) {
        self.books.lose(why);
        let Stream { device, counts, .. } = &mut self.streams[frame.stream as usize];
        counts.dropped[frame.header.color.index()] += 1;
        let packet = &self.buffers.bytes_mut(frame.slot)[..usize::from(frame.header.size)];
        sink.lose_from(*device, packet, why, now);
        self.buffers.give_back(frame.slot);
    }

    fn discard(&mut self, device: usize, slot: Slot, length: usize, why: Loss, sink: &mut impl Sink) {
        self.books.lose(why);
        sink.lose_from(device, &self.buffers.bytes_mut(slot)[..length], why, self.now);
        self.buffers.give_back(slot);
    }

    /// What the control of a packet's path, if it has one, will read of its TCP header.
    fn segment_of(&mut self, frame: &Frame, fields: &Fields) -> Option<u32> {
        let tcp = fields.tcp.filter(|_| !self.controls.is_empty())?;
        for step in &self.steps[frame.step as usize..] {
            let number = match *step {
                Step::Hop(Hop::Data(control, member)) => {
                    self.controls[control].members[member].0.on_data(&tcp)
                }
                Step::Hop(Hop::Ack(control, member)) => self.controls[control].members[member].0.on_ack(&tcp),
                Step::Hop(_) => continue,
                Step::Leave(_) => return None,
            };
            return number;
        }
        None
    }

    fn schedule_look(&mut self, number: usize) {
        let at = self.controls[number].steering.next();
        self.agenda.push(Event { at, kind: Kind::Look, rank: 0, source: number as u32 });
    }

    /// A control looks at the windows of its path's flows.
    fn look(&mut self, number: usize, now: Instant) {
        let Self { controls, meters, channels, agenda, windows, .. } = self;
        let Control { steering, members, channels: to_queues } = &mut controls[number];
        let decision = steering.look(now, |flow| windows.get(flow));
        for (flow, message) in &decision.shares {
            let member = steering.member_of(*flow);
            if let Some(meter) = member.and_then(|member| members[member].1) {
                meters[meter].meter.on_message(message);
            }
        }
        for &number in &*to_queues {
            if steering.loses() {
                continue;
            }
            let channel = &mut channels[number];
            let at = now + channel.delay;
            if channel.under_way.is_empty() {
                agenda.push(word(at, number as u32));
            }
            channel.under_way.push_back((at, decision.windows));
        }
        self.schedule_look(number);
    }

    /// What came, went and was lost.
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// The names of streams and what was counted of each.
    pub fn streams(&self) -> impl Iterator<Item = (&str, &StreamCounts)> {
        self.streams.iter().map(|stream| (stream.name.as_str(), &stream.counts))
    }

    /// The name and rate of each link, and a look at its port.
    pub fn ports(&self) -> impl Iterator<Item = (&str, Bitrate, PortView<'_>)> {
        self.links.iter().map(|link| (link.name.as_str(), link.rate, link.port.view()))
    }

    /// The window of each controlled flow as its control last saw it, in packets.
    pub fn seen_windows(&self) -> impl Iterator<Item = (usize, f64)> {
        self.controls.iter().flat_map(|control| control.steering.all_seen())
    }

    /// Ends the measured time: what still waits has waited until now.
    pub fn finish(&mut self, now: Instant) {
        self.links.iter_mut().for_each(|link| link.port.finish(now));
    }

    /// Packets inside: in queues and on their way.
    pub fn inside(&self) -> u64 {
        self.buffers.taken()
    }

    /// Checks that every packet is accounted for: read = delivered + lost(reason) + inside, and for every queue and color
    /// arrived = sent + dropped + waiting.
    ///
    /// # Errors
    /// The first identity that does not hold.
    pub fn balance(&self) -> Result<(), Unbalanced> {
        for link in &self.links {
            for class in link.ports().flat_map(Port::classes) {
                class.balance().map_err(|imbalance| Unbalanced::Queue(link.name.clone(), imbalance))?;
            }
        }
        let (read, known) = (self.books.all_read(), self.books.all_known() + self.inside());
        if read == known { Ok(()) } else { Err(Unbalanced::Plane { read, known }) }
    }
}

impl Link {
    fn new(spec: LinkSpec, seed: u64, window: (Instant, Instant)) -> Self {
        let LinkSpec { name, rate, delay, queue } = spec;
        let path = format!("links/{name}");
        Self {
            port: Port::new(queue.clone(), rate, Streams { seed, path: &path }, window),
            earlier: VecDeque::new(),
            retired: Vec::new(),
            line: Line { delay, under_way: VecDeque::new() },
            name,
            rate,
            queue,
        }
    }
}

impl Metering {
    fn new(spec: MeterSpec, seed: u64) -> Self {
        let meter = spec.params.clone().build(Environment { rate: spec.rate });
        Self { meter, rng: Rng::stream(seed, &spec.name), spec }
    }
}

impl Stream {
    fn new(spec: StreamSpec, first_step: u32, counts: StreamCounts) -> Self {
        let StreamSpec { name, flow, device, coloring, service, label, .. } = spec;
        let template = Header { service, label, ..Header::new(flow, 0) };
        Self { name, device, template, coloring, first_step, counts }
    }

    /// The packet as blocks see it, at the start of its way.
    fn admit(&mut self, fields: &Fields, slot: Slot, number: u32, now: Instant) -> Frame {
        let (color, dscp) = match self.coloring {
            Coloring::Fixed(color, dscp) => (color, dscp),
            Coloring::Trust => (color_of(fields.dscp), fields.dscp),
        };
        self.counts.arrive(fields.length);
        let header =
            Header { arrived: now, size: fields.length, color, dscp, ecn: fields.ecn, ..self.template };
        Frame { header, slot, stream: number, step: self.first_step, segment: None }
    }
}

/// The drop precedence of an Assured Forwarding codepoint (RFC 2597, section 6); all else is out of profile.
pub fn color_of(dscp: Dscp) -> Color {
    match (dscp.get() >> 3, dscp.get() & 7) {
        (1..=4, 2) => Color::Green,
        (1..=4, 6) => Color::Red,
        _ => Color::Yellow,
    }
}

/// The shortest time in which a packet passes the last wire or link before it leaves.
fn grace(steps: &[Step], delay: impl Fn(Hop) -> Option<Duration>) -> Duration {
    let mut last = Duration::ZERO;
    let mut shortest = Duration::from_nanos(u64::MAX);
    for step in steps {
        match *step {
            Step::Hop(hop) => last = delay(hop).unwrap_or(last),
            Step::Leave(_) => {
                shortest = shortest.min(last);
                last = Duration::ZERO;
            }
        }
    }
    shortest
}

fn serve(at: Instant, link: usize) -> Event {
    Event { at, kind: Kind::Serve, rank: 0, source: link as u32 }
}

fn word(at: Instant, channel: u32) -> Event {
    Event { at, kind: Kind::Word, rank: 0, source: channel }
}

//! Another configuration for a plane at work, without losing a packet.
//!
//! What waits in a queue that changes is served before anything that comes later, by the discipline that took it; what is
//! on its way goes on along the way that it set out on. So order is kept, and every packet stays in one ledger.

use std::fmt;

use perhop_core::measure::PortView;
use perhop_core::{Bitrate, Color, Counters, Instant, Port};

use super::{Frame, Link, Metering, Plane, Step, Stream, grace};
use crate::classifier::Classifier;
use crate::counts::StreamCounts;
use crate::spec::{Hop, LinkSpec, MeterSpec, PlaneSpec, StreamSpec};

/// What became new; all else goes on with its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Links whose queue or rate is new, by name.
    pub queues: Vec<String>,
    /// Meters that are new, by name.
    pub meters: Vec<String>,
}

/// What stays as long as a plane is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// The number of its devices.
    Devices,
    /// Its longest packet.
    Mtu,
    /// Its wires.
    Wires,
    /// Its window controls.
    Controls,
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Devices => "the number of devices",
            Self::Mtu => "the longest packet",
            Self::Wires => "wires",
            Self::Controls => "window controls",
        };
        write!(f, "{what} cannot change while packets are on their way")
    }
}

impl std::error::Error for Fixed {}

/// What went through a link, over all its configurations.
#[derive(Clone, Debug)]
pub struct LinkTotals<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its rate.
    pub rate: Bitrate,
    /// The books of each class of packets that its queues told apart.
    pub classes: Vec<ClassTotals<'a>>,
    /// Its queue as it is now.
    pub view: PortView<'a>,
    /// Packets that wait in queues of earlier configurations.
    pub left_over: u64,
}

/// The books of a class of packets at a link.
#[derive(Clone, Debug)]
pub struct ClassTotals<'a> {
    /// Its name.
    pub name: &'a str,
    /// Packets that wait, by color.
    pub waiting: [u64; 3],
    /// Their bytes.
    pub waiting_bytes: u64,
    /// What went through.
    pub counters: Counters,
}

impl Plane {
    /// Goes on with another configuration; what was due before must have happened ([`advance`](Plane::advance)). Links,
    /// meters and streams are known by their names: those whose parameters have not changed keep all their state, and
    /// streams go on counting.
    ///
    /// # Errors
    /// What cannot change; the plane then goes on as it was.
    pub fn reload(&mut self, spec: PlaneSpec, seed: u64) -> Result<Changed, Fixed> {
        self.can_become(&spec)?;
        let mut changed = Changed::default();
        let links: Vec<usize> = spec
            .links
            .into_iter()
            .map(|link| self.reload_link(link, seed, spec.window, &mut changed))
            .collect();
        let meters: Vec<usize> =
            spec.meters.into_iter().map(|meter| self.reload_meter(meter, seed, &mut changed)).collect();
        let hop = |hop: &Hop| match *hop {
            Hop::Link(link) => Hop::Link(links[link]),
            Hop::Meter(meter) => Hop::Meter(meters[meter]),
            other => other,
        };
        let mut rules = vec![Vec::new(); spec.devices];
        for stream in spec.streams {
            let route = stream.route.iter().map(hop).map(Step::Hop).chain([Step::Leave(stream.leaves)]);
            let first_step = self.place_of(&route.collect::<Vec<_>>());
            let rule = (stream.selector.clone(), stream.device);
            let number = self.reload_stream(stream, first_step);
            rules[rule.1].push((rule.0, number as u32));
        }
        self.classifiers = rules.into_iter().map(Classifier::new).collect();
        let Self { steps, links, .. } = &*self;
        let delay = |hop| if let Hop::Link(number) = hop { Some(links[number].line.delay) } else { None };
        self.agenda.grace = grace(steps, delay);
        Ok(changed)
    }

    fn can_become(&self, spec: &PlaneSpec) -> Result<(), Fixed> {
        let controlled = |hop: &Hop| matches!(hop, Hop::Data(..) | Hop::Ack(..));
        if spec.devices != self.classifiers.len() {
            Err(Fixed::Devices)
        } else if usize::from(spec.mtu) != self.mtu {
            Err(Fixed::Mtu)
        } else if !self.wires.is_empty() || !spec.wires.is_empty() {
            Err(Fixed::Wires)
        } else if !self.controls.is_empty()
            || !spec.controls.is_empty()
            || spec.streams.iter().any(|stream| stream.route.iter().any(controlled))
        {
            Err(Fixed::Controls)
        } else {
            Ok(())
        }
    }

    fn reload_link(
        &mut self,
        spec: LinkSpec,
        seed: u64,
        window: (Instant, Instant),
        changed: &mut Changed,
    ) -> usize {
        let Some(number) = self.links.iter().position(|link| link.name == spec.name) else {
            changed.queues.push(spec.name.clone());
            self.links.push(Link::new(spec, seed, window));
            return self.links.len() - 1;
        };
        let link = &mut self.links[number];
        link.line.delay = spec.delay;
        if (link.rate, &link.queue) != (spec.rate, &spec.queue) {
            changed.queues.push(spec.name.clone());
            let Link { rate, queue, port, .. } = Link::new(spec, seed, window);
            link.earlier.push_back(std::mem::replace(&mut link.port, port));
            link.earlier.iter_mut().for_each(|port| port.set_rate(rate));
            (link.rate, link.queue) = (rate, queue);
        }
        number
    }

    fn reload_meter(&mut self, spec: MeterSpec, seed: u64, changed: &mut Changed) -> usize {
        let known = self.meters.iter().position(|meter| meter.spec.name == spec.name);
        match known {
            Some(number) if self.meters[number].spec == spec => return number,
            _ => changed.meters.push(spec.name.clone()),
        }
        put(&mut self.meters, known, Metering::new(spec, seed))
    }

    /// Packets on their way know only where they go and which stream counts them, so a stream of the same name may go on
    /// under another number of steps.
    fn reload_stream(&mut self, spec: StreamSpec, first_step: u32) -> usize {
        let known = self.streams.iter().position(|stream| stream.name == spec.name);
        let counts = known.map_or_else(StreamCounts::default, |number| self.streams[number].counts);
        put(&mut self.streams, known, Stream::new(spec, first_step, counts))
    }

    /// Where these steps stand one after the other; at the end of the list if nowhere yet. Those that stand there stay:
    /// packets on their way follow them.
    fn place_of(&mut self, route: &[Step]) -> u32 {
        let stands = self.steps.windows(route.len()).position(|steps| steps == route);
        let place = stands.unwrap_or(self.steps.len());
        if stands.is_none() {
            self.steps.extend(route);
        }
        place as u32
    }

    /// What went through each link, over all configurations.
    pub fn link_totals(&self) -> impl Iterator<Item = LinkTotals<'_>> {
        self.links.iter().map(Link::totals)
    }
}

/// Puts something into its place in a list, or at the end; tells where it is.
fn put<T>(list: &mut Vec<T>, place: Option<usize>, value: T) -> usize {
    let place = place.unwrap_or(list.len());
    match list.get_mut(place) {
        Some(old) => *old = value,
        None => list.push(value),
    }
    place
}

impl Link {
    /// The port that is to be served. One of an earlier configuration goes before those that came later, and is gone when
    /// it is empty and the link is free.
    #[inline]
    pub(super) fn port_at_work(&mut self, now: Instant) -> &mut Port<Frame> {
        if self.earlier.is_empty() { &mut self.port } else { self.earliest_port(now) }
    }

    #[cold]
    fn earliest_port(&mut self, now: Instant) -> &mut Port<Frame> {
        while self.earlier.front().is_some_and(|port| port.is_done(now)) {
            let Some(port) = self.earlier.pop_front() else { break };
            for (name, class) in port.view().classes {
                match self.retired.iter_mut().find(|(retired, _)| retired == name) {
                    Some((_, counters)) => counters.add(&class.through),
                    None => self.retired.push((name.into(), class.through.clone())),
                }
            }
        }
        self.earlier.front_mut().unwrap_or(&mut self.port)
    }

    /// Its ports, those of earlier configurations first.
    pub(super) fn ports(&self) -> impl Iterator<Item = &Port<Frame>> {
        self.earlier.iter().chain([&self.port])
    }

    fn totals(&self) -> LinkTotals<'_> {
        let gone = self.retired.iter().map(|(name, counters)| (name.as_str(), None, counters));
        let mut classes: Vec<ClassTotals<'_>> = Vec::new();
        let here = self.ports().flat_map(|port| port.view().classes);
        let here = here.map(|(name, class)| (name, Some(&class.occupancy), &class.through));
        for (name, waits, counters) in gone.chain(here) {
            let number = classes.iter().position(|class| class.name == name).unwrap_or(classes.len());
            if number == classes.len() {
                let counters = Counters::default();
                classes.push(ClassTotals { name, waiting: [0; 3], waiting_bytes: 0, counters });
            }
            let class = &mut classes[number];
            class.counters.add(counters);
            if let Some(waits) = waits {
                for color in Color::ALL {
                    class.waiting[color.index()] += waits.packets_of(color);
                }
                class.waiting_bytes += waits.bytes();
            }
        }
        let left_over = self.earlier.iter().map(|port| port.view().waiting().iter().sum::<u64>()).sum();
        LinkTotals { name: &self.name, rate: self.rate, classes, view: self.port.view(), left_over }
    }
}

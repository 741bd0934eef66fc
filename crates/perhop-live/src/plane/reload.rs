//! Changes a running plane to another configuration, without losing a packet.
//!
//! A queue that changes is drained, by the scheduler that admitted its packets, before its successor is
//! served. Packets in transit keep the route on which they started. So the order of packets is kept, and each
//! is counted once.

use perhop_core::Instant;

use super::Plane;
use super::link::Link;
use super::route::{RouteEntry, shortest_last_delay};
use super::stream::{Metering, Stream};
use crate::classifier::Classifier;
use crate::counts::StreamCounts;
use crate::spec::{Hop, LinkSpec, MeterSpec, PlaneSpec, StreamSpec};

/// What a reload replaced; everything else keeps its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Links whose queue or rate is new, by name.
    pub queues: Vec<String>,
    /// Meters that are new, by name; those of a link by the link's name.
    pub meters: Vec<String>,
}

/// What cannot change while a plane runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fixed {
    /// The number of the plane's devices.
    #[error("the number of devices cannot change while packets are on their way")]
    Devices,
    /// The length of the plane's longest packet.
    #[error("the longest packet cannot change while packets are on their way")]
    Mtu,
    /// The wires of the plane.
    #[error("wires cannot change while packets are on their way")]
    Wires,
    /// How links change, and what they lose and delay.
    #[error("links that change, lose or delay packets at random cannot be reconfigured")]
    Media,
    /// The window controls of the plane.
    #[error("window controls cannot change while packets are on their way")]
    Controls,
    /// The reports of markers to senders.
    #[error("reports of OUT packets cannot change while packets are on their way")]
    Reports,
}

impl Plane {
    /// Takes over another configuration; events that are due must have happened
    /// ([`advance`](Plane::advance)). Links, meters and streams are identified by their names: those whose
    /// parameters have not changed keep all their state, and the counters of streams continue.
    ///
    /// # Errors
    /// What cannot change; the plane then keeps its configuration.
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
        let mut selectors = vec![Vec::new(); spec.devices];
        for stream in spec.streams {
            let hops = stream.route.iter().map(hop).map(RouteEntry::Hop);
            let route: Vec<RouteEntry> = hops.chain([RouteEntry::Leave(stream.leaves)]).collect();
            let first_step = self.place_of(&route);
            let (selector, device) = (stream.selector.clone(), stream.device);
            let number = self.reload_stream(stream, first_step);
            selectors[device].push((selector, number as u32));
        }
        self.classifiers = selectors.into_iter().map(Classifier::new).collect();
        let Self { routes, links, .. } = &*self;
        let delay = |hop| if let Hop::Link(number) = hop { Some(links[number].line.delay()) } else { None };
        self.agenda.set_grace(shortest_last_delay(routes, delay));
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
        } else if !spec.reports.is_empty() || self.streams.iter().any(|stream| stream.reports.is_some()) {
            Err(Fixed::Reports)
        } else if self.links.iter().any(|link| link.medium.is_some())
            || spec.links.iter().any(|link| !link.medium.is_constant())
        {
            Err(Fixed::Media)
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
        let name = spec.name.clone();
        if self.links[number].reconfigure_meters(&spec.meters, seed) {
            changed.meters.push(name.clone());
        }
        if self.links[number].reconfigure(spec, seed, window) {
            changed.queues.push(name);
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

    /// Packets in transit know only their next step and the stream that counts them, so a stream of the same
    /// name may continue with another route.
    fn reload_stream(&mut self, spec: StreamSpec, first_step: u32) -> usize {
        let known = self.streams.iter().position(|stream| stream.name == spec.name);
        let counts = known.map_or_else(StreamCounts::default, |number| self.streams[number].counts);
        put(&mut self.streams, known, Stream::new(spec, first_step, counts))
    }

    /// Returns the place of a route in the list of all routes; a new one goes to its end. Routes are never
    /// removed, because packets in transit follow them.
    fn place_of(&mut self, route: &[RouteEntry]) -> u32 {
        let known = self.routes.windows(route.len()).position(|entries| entries == route);
        let place = known.unwrap_or(self.routes.len());
        if known.is_none() {
            self.routes.extend(route);
        }
        place as u32
    }
}

/// Replaces an entry of a list, or appends one; returns its place.
fn put<T>(list: &mut Vec<T>, place: Option<usize>, value: T) -> usize {
    let place = place.unwrap_or(list.len());
    match list.get_mut(place) {
        Some(old) => *old = value,
        None => list.push(value),
    }
    place
}

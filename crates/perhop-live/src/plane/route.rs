//! A packet inside a data plane, and the route that it takes.

use perhop_core::{Duration, Header, Instant, Packet};

use crate::buffers::Slot;
use crate::spec::Hop;

/// A packet inside the data plane: its header for the blocks, the place of its bytes, and its next step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    pub(super) slot: Slot,
    pub(super) stream: u32,
    pub(super) step: u32,
    /// The number of the TCP segment, or of the one that an ACK asks for, for the window control of its path.
    pub(super) segment: Option<u32>,
}

impl Packet for Frame {
    fn header(&self) -> Header {
        self.header
    }
    fn arrive(&mut self, now: Instant) {
        self.header.arrive(now);
    }
    fn notify(&mut self) {
        self.header.notify();
    }
}

/// One entry of a route. The plane keeps all routes one after another in one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteEntry {
    Hop(Hop),
    Leave(usize),
}

/// Returns the shortest time in which a packet passes the last wire or link before it leaves.
pub(super) fn shortest_last_delay(
    routes: &[RouteEntry],
    delay: impl Fn(Hop) -> Option<Duration>,
) -> Duration {
    let mut last = Duration::ZERO;
    let mut shortest = Duration::from_nanos(u64::MAX);
    for entry in routes {
        match *entry {
            RouteEntry::Hop(hop) => last = delay(hop).unwrap_or(last),
            RouteEntry::Leave(_) => {
                shortest = shortest.min(last);
                last = Duration::ZERO;
            }
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_delay_of_a_route_is_that_of_its_last_wire_or_link() {
        let delay = |hop| match hop {
            Hop::Link(number) | Hop::Wire(number) => Some(Duration::from_millis(number as u64)),
            Hop::Meter(_) | Hop::Data(..) | Hop::Ack(..) => None,
        };
        let hops = |hops: &[Hop]| {
            let entries = hops.iter().copied().map(RouteEntry::Hop);
            entries.chain([RouteEntry::Leave(0)]).collect::<Vec<_>>()
        };
        let long = hops(&[Hop::Link(1), Hop::Wire(7), Hop::Meter(0)]);
        let short = hops(&[Hop::Wire(9), Hop::Link(4), Hop::Ack(0, 0)]);
        assert_eq!(shortest_last_delay(&long, delay), Duration::from_millis(7));
        assert_eq!(shortest_last_delay(&[long, short.clone()].concat(), delay), Duration::from_millis(4));
        let direct = hops(&[Hop::Meter(0)]);
        assert_eq!(shortest_last_delay(&[short, direct].concat(), delay), Duration::ZERO);
    }
}

//! The replay in virtual time: the meter, the meters of the link, and its port, as the simulator's engines
//! drive them.

use perhop_core::marker::AfClass;
use perhop_core::measure::PortView;
use perhop_core::meter::{AggregateMeters, Conditioner};
use perhop_core::{Bitrate, Direction, Header, Instant, Offered, Packet, Port, Rng, Served, Streams};
use perhop_live::color_of;

use crate::arrivals::Arrival;
use crate::driver::{Driver, METER};
use crate::error::ReplayError;
use crate::ledger::{Forwarded, Ledger, Tag};
use crate::request::{Target, TargetLink};

/// What packets arrive at, at work.
#[derive(Debug)]
pub(crate) struct Simulated {
    meter: Option<(Conditioner, AfClass)>,
    link: Option<Link>,
}

#[derive(Debug)]
struct Link {
    meters: AggregateMeters,
    port: Port<Replayed>,
    /// When the port is to be served, the next time last.
    due: Vec<Instant>,
}

/// A packet in the queue.
#[derive(Clone, Copy, Debug)]
struct Replayed {
    header: Header,
    tag: Tag,
}

impl Packet for Replayed {
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

impl Simulated {
    pub(crate) fn new(target: &Target, seed: u64) -> Self {
        let meter = target
            .meter
            .as_ref()
            .map(|params| (Conditioner::new(params, Bitrate::MAX, Rng::stream(seed, METER)), params.af()));
        let link = target.link.as_ref().map(|link| {
            let TargetLink { name, rate, queue, meters } = link;
            let path = format!("links/{name}");
            let streams = Streams { seed, path: &path };
            Link {
                meters: AggregateMeters::new(meters, streams),
                port: Port::new(queue.clone(), *rate, streams, (Instant::ZERO, Instant::NEVER)),
                due: Vec::new(),
            }
        });
        Self { meter, link }
    }
}

impl Driver for Simulated {
    fn arrive(&mut self, arrival: &Arrival<'_>, tag: Tag, ledger: &mut Ledger) -> Result<(), ReplayError> {
        let (now, fields) = (arrival.at, &arrival.fields);
        let mut header = Header {
            arrived: now,
            direction: Direction::Forward,
            dscp: fields.dscp,
            ecn: fields.ecn,
            color: color_of(fields.dscp),
            ..Header::new(tag.flow, tag.size)
        };
        if let Some(link) = &mut self.link {
            link.advance(now, ledger, self.meter.is_some());
        }
        if let Some((conditioner, class)) = &mut self.meter {
            let verdict = conditioner.judge(&header, now);
            class.mark(&mut header, verdict.color);
            if let Some(reason) = verdict.dropped {
                ledger.lose(&tag, now, reason, Some(verdict.color));
                return Ok(());
            }
        }
        match &mut self.link {
            Some(link) => link.offer(Replayed { header, tag }, now, ledger, self.meter.is_some()),
            None => ledger.forward(&tag, &forwarded(&header, now, true)),
        }
        Ok(())
    }

    fn finish(&mut self, ledger: &mut Ledger) -> Result<(), ReplayError> {
        if let Some(link) = &mut self.link {
            link.advance(Instant::NEVER, ledger, self.meter.is_some());
        }
        Ok(())
    }

    fn view(&self) -> Option<PortView<'_>> {
        let link = self.link.as_ref()?;
        Some(PortView { meters: link.meters.counts(), ..link.port.view() })
    }
}

fn forwarded(header: &Header, at: Instant, metered: bool) -> Forwarded {
    Forwarded { at, dscp: header.dscp, ecn: header.ecn, color: metered.then_some(header.color) }
}

impl Link {
    /// Serves the port at each of its times up to `now`.
    fn advance(&mut self, now: Instant, ledger: &mut Ledger, metered: bool) {
        while let Some(at) = self.due.pop_if(|at| *at <= now) {
            self.serve(at, ledger, metered);
        }
    }

    /// Plans that the port is served at this time.
    fn expect(&mut self, at: Instant) {
        let place = self.due.partition_point(|other| *other > at);
        if self.due.get(place) != Some(&at) {
            self.due.insert(place, at);
        }
    }

    fn offer(&mut self, mut packet: Replayed, now: Instant, ledger: &mut Ledger, metered: bool) {
        let color = |packet: &Replayed| metered.then_some(packet.header.color);
        if let Err((_, reason)) = self.meters.judge(&mut packet.header, now) {
            return ledger.lose(&packet.tag, now, reason, color(&packet));
        }
        let offered = self.port.offer(packet, now);
        while let Some((packet, reason)) = self.port.shed(now) {
            ledger.lose(&packet.tag, now, reason, color(&packet));
        }
        match offered {
            Offered::Queued => {}
            Offered::Idle => self.serve(now, ledger, metered),
            Offered::Dropped(packet, reason) => ledger.lose(&packet.tag, now, reason, color(&packet)),
        }
    }

    fn serve(&mut self, now: Instant, ledger: &mut Ledger, metered: bool) {
        loop {
            match self.port.serve(now) {
                Served::Sent(packet, free_at) => {
                    ledger.forward(&packet.tag, &forwarded(&packet.header, free_at, metered));
                    return self.expect(free_at);
                }
                Served::Dropped(packet, reason) => {
                    ledger.lose(&packet.tag, now, reason, metered.then_some(packet.header.color));
                }
                Served::Later(at) => return self.expect(at),
                Served::Nothing => return,
            }
        }
    }
}

//! What a page wants of single packets: those that were dropped or marked, and those on their way over links.

use std::collections::VecDeque;

use perhop_core::trace::{self, Trace};
use perhop_core::{Color, Direction, Instant, Reason};
use perhop_sim::LinkSpec;
use perhop_sim::observer::{Decision, Observed, Observer, PacketEvent};

/// The names under which schedulers that decide themselves note which of their queues a packet was in.
pub const FLOW_QUEUE: &str = "queue of the flow";
pub const L4S: &str = "l4s";
pub const CLASSIC: &str = "classic";

/// Drops and marks that can still be explained; earlier ones are forgotten.
const MOST_EVENTS: usize = 50_000;
/// Packets on links, above which those that have arrived are cleared away.
const MANY: usize = 8192;

/// A packet that was dropped or marked.
#[derive(Clone, Debug)]
pub struct DropOrMark {
    pub at: Instant,
    pub link: usize,
    /// The number of its flow's specification.
    pub flow: u32,
    pub color: Color,
    /// The size of the packet in bytes.
    pub size: u16,
    pub reason: Reason,
    /// Whether the packet was marked, not dropped.
    pub is_mark: bool,
    /// How long the packet had waited, if it was judged at its departure.
    pub sojourn_s: Option<f64>,
    /// What the AQM's verdict rested on; `None` where no AQM judged it, or one that a scheduler holds inside.
    pub trace: Option<Trace>,
}

impl DropOrMark {
    /// Returns what the rule noted under this name.
    pub fn gauge(&self, name: &str) -> Option<f64> {
        let gauges = &self.trace.as_ref()?.gauges;
        gauges.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Returns, of a scheduler that decides itself, which of its queues the packet was in: `l4s`, `classic`,
    /// or `flow` for that of its flow.
    pub fn queue_name(&self) -> Option<&'static str> {
        let of = [(FLOW_QUEUE, "flow"), (L4S, L4S), (CLASSIC, CLASSIC)];
        of.into_iter().find_map(|(gauge, name)| self.gauge(gauge).map(|_| name))
    }
}

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
struct Traveller {
    link: usize,
    starts: Instant,
    arrives: f64,
    color: Color,
    flow: u32,
    is_backward: bool,
}

/// A link as it is by now.
#[derive(Clone, Copy, Debug)]
struct Line {
    bits_per_second: f64,
    delay_s: f64,
    sent_bytes: u64,
    seen: u64,
}

/// The observer of a run.
#[derive(Debug)]
pub struct Witness {
    lines: Vec<Line>,
    events: VecDeque<DropOrMark>,
    /// The number of the first event that is kept.
    first: usize,
    travellers: Vec<Traveller>,
}

impl Witness {
    /// Returns a witness that has seen nothing yet. From now on verdicts on this thread are recorded, for
    /// explanations.
    pub fn new(links: &[LinkSpec]) -> Self {
        trace::record(true);
        let mut witness =
            Self { lines: Vec::new(), events: VecDeque::new(), first: 0, travellers: Vec::new() };
        witness.set_links(links);
        witness
    }

    /// Notes that the links have these rates and delays from now on.
    pub fn set_links(&mut self, links: &[LinkSpec]) {
        let before = std::mem::take(&mut self.lines);
        let line = |(number, link): (usize, &LinkSpec)| Line {
            bits_per_second: link.rate.as_bps() as f64,
            delay_s: link.delay.as_secs_f64(),
            sent_bytes: before.get(number).map_or(0, |line| line.sent_bytes),
            seen: before.get(number).map_or(0, |line| line.seen),
        };
        self.lines = links.iter().enumerate().map(line).collect();
    }

    /// Returns how many bytes a link has begun to send.
    pub fn sent_bytes(&self, link: usize) -> u64 {
        self.lines[link].sent_bytes
    }

    /// Returns how many packets have come to a link, or to any.
    pub fn seen(&self, link: Option<usize>) -> u64 {
        match link {
            Some(link) => self.lines.get(link).map_or(0, |line| line.seen),
            None => self.lines.iter().map(|line| line.seen).sum(),
        }
    }

    /// Returns the number of the event that comes next.
    pub fn next_event(&self) -> usize {
        self.first + self.events.len()
    }

    /// Returns the event of this number, if it is still kept.
    pub fn event(&self, number: usize) -> Option<&DropOrMark> {
        self.events.get(number.checked_sub(self.first)?)
    }

    /// Returns the events that are kept, from this number on, each with its number.
    pub fn events(&self, from: usize) -> impl Iterator<Item = (usize, &DropOrMark)> {
        let skipped = from.saturating_sub(self.first);
        self.events.iter().enumerate().skip(skipped).map(|(place, event)| (self.first + place, event))
    }

    /// Adds to `out` at most so many packets on links at `now`: link, progress from 0 to 1, color, and the
    /// flow, as `-1 - flow` for packets that go back to its sender.
    pub fn flight(&mut self, now: Instant, most: usize, out: &mut Vec<f64>) -> usize {
        self.clear_away(now);
        let shown = self.travellers.iter().filter(|one| one.starts <= now);
        let stride = shown.clone().count().div_ceil(most.max(1)).max(1);
        let mut count = 0;
        for one in shown.step_by(stride) {
            let (start, at) = (one.starts.as_secs_f64(), now.as_secs_f64());
            let progress = (at - start) / (one.arrives - start).max(1e-12);
            let flow = f64::from(one.flow);
            let flow = if one.is_backward { -1.0 - flow } else { flow };
            out.extend([one.link as f64, progress.clamp(0.0, 1.0), one.color.index() as f64, flow]);
            count += 1;
        }
        count
    }

    fn clear_away(&mut self, now: Instant) {
        let now = now.as_secs_f64();
        self.travellers.retain(|one| one.arrives > now);
    }

    fn record(&mut self, event: DropOrMark) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
            self.first += 1;
        }
        self.events.push_back(event);
    }
}

impl Observer for Witness {
    fn observe(&mut self, observed: &Observed) {
        let Observed { at, link, event, flow, header, .. } = *observed;
        let happened = |reason, is_mark, sojourn_s| DropOrMark {
            at,
            link,
            flow: flow.spec,
            color: header.color,
            size: header.size,
            reason,
            is_mark,
            sojourn_s,
            // That of this packet: every link is observed, so that what another queue has left here has been
            // taken.
            trace: if reason == Reason::Policed { None } else { trace::take() },
        };
        let waited = Some(at.after(header.arrived).as_secs_f64());
        match event {
            PacketEvent::Arrival(decision) => {
                self.lines[link].seen += 1;
                match decision {
                    Decision::Admitted => {}
                    Decision::Notified(reason) => self.record(happened(reason, true, None)),
                    Decision::Dropped(reason) => self.record(happened(reason, false, None)),
                }
            }
            PacketEvent::Policed => self.record(happened(Reason::Policed, false, None)),
            PacketEvent::Dropped(reason) => self.record(happened(reason, false, waited)),
            PacketEvent::Departure { notified, is_lost: _ } => {
                if let Some(reason) = notified {
                    self.record(happened(reason, true, waited));
                }
                let line = &mut self.lines[link];
                line.sent_bytes += u64::from(header.size);
                let takes = f64::from(header.size) * 8.0 / line.bits_per_second + line.delay_s;
                if self.travellers.len() >= MANY {
                    self.clear_away(at);
                }
                if self.travellers.len() < 2 * MANY {
                    self.travellers.push(Traveller {
                        link,
                        starts: at,
                        arrives: at.as_secs_f64() + takes,
                        color: header.color,
                        flow: flow.spec,
                        is_backward: header.direction == Direction::Backward,
                    });
                }
            }
        }
    }
}

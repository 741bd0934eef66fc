//! From a configuration to the data plane's specification.

use perhop_core::medium::Medium;
use perhop_core::{Bitrate, Color, Dscp, Instant, ServiceLevel};
use perhop_live::{Coloring, Hop, LinkSpec, MeterSpec, PlaneSpec, Remark, Selector, StreamFlow, StreamSpec};

use crate::config::{Class, Config, Direction, UNMATCHED, Unmatched};

/// The names of the two devices' sides, in the order of their numbers.
pub const SIDES: [&str; 2] = ["inside", "outside"];

/// The arrival rate that meters assume.
const INTERFACE_BPS: u64 = 10_000_000_000;

/// Returns the data plane between inside (device 0) and outside (device 1).
pub fn plane(config: &Config, mtu: u16) -> PlaneSpec {
    let mut plan = PlaneSpec {
        devices: SIDES.len(),
        mtu,
        buffers: config.buffers,
        window: (Instant::ZERO, Instant::NEVER),
        ..PlaneSpec::default()
    };
    for (from, direction) in Direction::OF_PACKETS.into_iter().enumerate() {
        let name = direction.name();
        let link = if direction == Direction::Upstream { &config.upstream } else { &config.downstream };
        let to_link = link.as_ref().map(|link| {
            let (rate, delay, queue) = (link.rate, link.delay, link.queue.scheduler.clone());
            let meters = link.meters.clone();
            plan.links.push(LinkSpec {
                name: name.into(),
                rate,
                delay,
                queue,
                meters,
                medium: Medium::default(),
            });
            Hop::Link(plan.links.len() - 1)
        });
        let path = Path { name, from, to_link };
        let classes = config.classes.iter();
        for class in classes.filter(|class| [direction, Direction::Both].contains(&class.direction)) {
            path.add(&mut plan, class);
        }
        let rest = match config.unmatched {
            Unmatched::BestEffort => Coloring::Fixed(Color::default(), Dscp::DEFAULT),
            Unmatched::Trust => Coloring::Trust,
            Unmatched::Drop => continue,
        };
        plan.streams.push(path.stream(UNMATCHED, rest, None));
    }
    plan
}

/// The path of packets in one direction.
struct Path {
    name: &'static str,
    from: usize,
    to_link: Option<Hop>,
}

impl Path {
    fn add(&self, plan: &mut PlaneSpec, class: &Class) {
        let name = stream_name(&class.name, self.name);
        let fixed = class.coloring().map(|(color, dscp)| Coloring::Fixed(color, dscp));
        let unmetered = fixed.unwrap_or(Coloring::Trust);
        let (coloring, service, meter) =
            class.profile.as_ref().map_or((unmetered, ServiceLevel::NONE, None), |profile| {
                // The rate at which packets can arrive is unknown. It must not depend on the link, or a new
                // rate of the link would replace the meter.
                let rate = Bitrate::from_bps(INTERFACE_BPS).expect("above zero");
                plan.meters.push(MeterSpec { name, params: profile.clone(), rate });
                let meter = Hop::Meter(plan.meters.len() - 1);
                let green = Coloring::Fixed(Color::Green, profile.af().codepoint(Color::Green));
                let coloring = if profile.reads_color() { Coloring::Trust } else { green };
                (coloring, ServiceLevel::of(profile.rate()), Some(meter))
            });
        let (selector, remark) = (class.r#match.selector(), class.remark());
        let stream = StreamSpec { selector, remark, service, ..self.stream(&class.name, coloring, meter) };
        plan.streams.push(stream);
    }

    /// Returns the stream of all packets of a class.
    fn stream(&self, class: &str, coloring: Coloring, meter: Option<Hop>) -> StreamSpec {
        StreamSpec {
            name: stream_name(class, self.name),
            flow: StreamFlow::FiveTuples,
            device: self.from,
            selector: Selector::default(),
            coloring,
            remark: Remark::default(),
            service: ServiceLevel::NONE,
            label: 0,
            route: meter.into_iter().chain(self.to_link).collect(),
            leaves: 1 - self.from,
        }
    }
}

/// Returns a class's stream in one direction.
fn stream_name(class: &str, direction: &str) -> String {
    format!("{class} {direction}")
}

/// Returns the class and the direction of a stream.
pub fn class_and_direction(stream: &str) -> (&str, &str) {
    stream.rsplit_once(' ').unwrap_or((stream, ""))
}

//! A flow's hosts by hand, without an engine.

use super::*;
use crate::control::{Channels, Destination};
use crate::engine::reference::Pending;
use crate::events::Event;
use crate::events::SourceId;
use crate::network::{AccessSpec, Marking, Network, NodeId, TransportSpec};
use crate::outcome::Completion;
use crate::probe::Series;
use perhop_core::{Color, Dscp};

/// A UDP source of 8 Mbit/s, a packet of 1000 bytes each millisecond, over a private link of 80 Mbit/s and 2
/// ms.
fn spec() -> FlowSpec {
    let udp = r#"{"udp": "cbr", "rate": "8Mbps", "packet": "1000B", "jitter": 0.0}"#;
    FlowSpec {
        name: "flow".into(),
        from: NodeId(0),
        to: NodeId(1),
        path: None,
        access: Some(AccessSpec { rate: "80Mbps".parse().unwrap(), delay: Duration::from_millis(2) }),
        egress: None,
        dispatch_jitter: None,
        transport: TransportSpec::Udp(serde_json::from_str(udp).unwrap()),
        marking: Marking::None,
        color: Color::Yellow,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::Capable0,
        service: None,
        reserved: None,
        tcp_ecn: crate::transport::tcp::TcpEcn::Off,
        play_out: None,
        out_feedback: None,
        start: (Instant::ZERO, Instant::ZERO),
        stop: None,
        volume: None,
        population: None,
    }
}

/// A token bucket that holds one packet and gets another one every two milliseconds.
fn profile() -> perhop_core::meter::MeterParams {
    serde_json::from_str(r#"{"marker": "token-bucket", "rate": "4Mbps", "burst": "1000B"}"#).unwrap()
}

/// A flow that a probe samples every 4 ms, with a warm-up of 2 ms; and what an engine has for it.
struct Bench {
    flow: Flow,
    times: SampleTimes,
    series: Series,
    channels: Channels,
    events: Pending<Event>,
}

impl PacketSink for Option<SimPacket> {
    fn put(&mut self, packet: SimPacket) {
        assert!(self.replace(packet).is_none(), "one packet at a time");
    }
}

impl Bench {
    fn new(spec: &FlowSpec) -> Self {
        let network = Network {
            warmup: Duration::from_millis(2),
            probe_interval: Some(Duration::from_millis(4)),
            flows: vec![spec.clone()],
            ..Network::new(Duration::from_millis(10))
        };
        let times = SampleTimes::new(&network);
        let idle_time = spec.volume.map(|_| Duration::from_millis(1));
        let first_data = network.first_data(spec, &[], &[]);
        let place = FlowPlace {
            number: 0,
            label: 7,
            first_steps: (3, 8),
            idle_time,
            first_data,
            is_policed: false,
            is_lossy: false,
        };
        let flow = Flow::new(spec, &place, 1, &times);
        Self {
            flow,
            times,
            series: Series::default(),
            channels: Channels::new(SourceId(1)),
            events: Pending::default(),
        }
    }

    /// Wakes the flow after so many milliseconds; returns the packet that it sends.
    fn wake(&mut self, millis: u64) -> Option<SimPacket> {
        let now = at(millis);
        assert!(self.flow.wake() <= now);
        self.flow.wake_sender(now);
        assert_eq!(self.flow.wake_receiver(now), None, "nothing is acknowledged");
        let mut sent = None;
        let post = Post { channels: &mut self.channels, events: &mut self.events };
        self.flow.transmit(now, post, &mut sent);
        sent
    }

    fn sample(&mut self, millis: u64) {
        self.flow.sample_receiver(at(millis), &self.times, &mut self.series);
        self.flow.sample_sender(at(millis), &self.times, &mut self.series);
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn packets_leave_the_wire_of_their_host_with_all_that_the_specification_says() {
    let mut bench = Bench::new(&spec());
    assert_eq!(bench.flow.wake(), Instant::ZERO, "it starts");
    let packet = bench.wake(0).unwrap();
    // 1000 bytes at 80 Mbit/s take 100 us, and the propagation 2 ms.
    assert_eq!(packet.at(), Instant::from_nanos(2_100_000));
    assert_eq!((packet.step(), packet.sequence(), packet.is_ack()), (3, 0, false));
    let header = packet.header();
    assert_eq!(
        (header.size, header.label, header.color, header.ecn),
        (1000, 7, Color::Yellow, Ecn::Capable0)
    );
    assert_eq!(bench.flow.wake(), at(1));
    assert_eq!(bench.wake(1).unwrap().sequence(), 1);
}

#[test]
fn a_marker_at_the_host_colors_and_counts_packets_and_gives_feedback() {
    let marked = FlowSpec { marking: Marking::Host(profile()), ..spec() };
    let mut bench = Bench::new(&marked);
    let channel = bench.channels.open(Destination::Sender(0), Duration::from_millis(5));
    bench.flow.sending.feedback = Some(channel as u32);
    let colors = [0, 1, 2, 3].map(|millis| bench.wake(millis).unwrap().color());
    assert_eq!(colors, [Color::Green, Color::Yellow, Color::Green, Color::Yellow]);
    assert_eq!(bench.flow.sending.marked, [2, 2, 0]);
    assert_eq!(bench.channels.next(channel), at(6), "5 ms after the first packet that is out of profile");
    assert!(bench.flow.sending.is_marked_at_host() && !bench.flow.sending.is_marked_at_router());
}

#[test]
fn a_marker_at_the_first_router_colors_what_passes_it() {
    let marked = FlowSpec { marking: Marking::Ingress(profile()), ..spec() };
    let mut bench = Bench::new(&marked);
    let colors = [0, 1].map(|millis| {
        let packet = bench.wake(millis).unwrap();
        assert_eq!(packet.color(), Color::Yellow, "not marked before");
        let post = Post { channels: &mut bench.channels, events: &mut bench.events };
        bench.flow.mark_at_router(packet, &mut [], post).map(SimPacket::color)
    });
    assert_eq!(colors, [Color::Green, Color::Yellow].map(Some));
    assert_eq!(bench.flow.sending.marked, [1, 1, 0]);
}

#[test]
fn deliveries_after_the_warm_up_count_and_each_sample_has_those_since_the_last() {
    let mut bench = Bench::new(&spec());
    let packets = [0, 1, 2, 3].map(|millis| bench.wake(millis).unwrap());
    assert_eq!(bench.flow.receive(packets[0].content(), at(1)), None);
    bench.sample(2);
    bench.flow.receive(packets[1].notified().content(), at(3));
    bench.sample(4);
    bench.flow.receive(packets[2].content(), at(5));
    bench.sample(8);
    bench.flow.lose(packets[3]);
    // A packet of 1000 bytes in 4 ms is 2 Mbit/s.
    assert_eq!(bench.series.throughput_bps, [4e6, 2e6]);
    let outcome = bench.flow.finish(&bench.times, bench.times.end);
    assert_eq!((outcome.delivered_packets, outcome.delivered_bytes), (2, 2000));
    assert_eq!((outcome.congested, outcome.dropped, outcome.sender.sent), (Some(1), [0, 1, 0], 0));
}

#[test]
fn a_volume_is_complete_when_its_last_missing_packet_arrives() {
    let finite = FlowSpec { volume: Some("2kB".parse().unwrap()), start: (at(2), at(2)), ..spec() };
    let mut bench = Bench::new(&finite);
    let packets = [2, 3].map(|millis| bench.wake(millis).unwrap());
    assert_eq!(bench.wake(4), None, "there is no third");
    bench.flow.receive(packets[1].content(), at(6));
    let before = bench.flow.clone().finish(&bench.times, bench.times.end);
    // Its source has sent the last packet at 3 ms, and the last that has arrived came at 6 ms.
    assert_eq!((before.completion, before.active), (Completion::Unfinished, Some(Duration::from_millis(4))));
    bench.flow.receive(packets[0].content(), at(9));
    let (idle, time) = (Duration::from_millis(1), Duration::from_millis(7));
    let after = bench.flow.finish(&bench.times, bench.times.end);
    assert_eq!((after.completion, after.active), (Completion::After { time, idle }, Some(time)));
    assert_eq!(after.throughput(), Some(16_000.0 / 0.007));
}

#[test]
fn a_flow_counts_by_its_beginning_and_is_active_within_the_measured_time() {
    let outcome = |start, stop: Option<u64>| {
        let stop = stop.map(at);
        let finite =
            FlowSpec { volume: Some("1kB".parse().unwrap()), start: (at(start), at(start)), stop, ..spec() };
        let mut bench = Bench::new(&finite);
        let packet = bench.wake(start).unwrap();
        bench.flow.receive(packet.content(), at(start + 4));
        bench.flow.finish(&bench.times, bench.times.end)
    };
    // The warm-up ends at 2 ms: one that begins before is active from then on, and its completion does not
    // count.
    let early = outcome(1, None);
    assert_eq!((early.completion, early.active), (Completion::InWarmup, Some(Duration::from_millis(3))));
    assert_eq!(outcome(2, None).completion.time(), Some(Duration::from_millis(4)));
    let mut never = Bench::new(&FlowSpec { start: (at(11), at(11)), ..spec() });
    never.sample(4);
    let never = never.flow.finish(&never.times, never.times.end);
    assert_eq!((never.started, never.active, never.throughput()), (None, Some(Duration::ZERO), None));
}

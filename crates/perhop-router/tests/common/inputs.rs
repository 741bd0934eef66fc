//! What fuzzers and tests do with the router's inputs: configurations one after the other, requests, and
//! captures.
#![allow(dead_code, reason = "each user needs its part")]

use std::borrow::Cow;

use etherparse::PacketBuilder;
use pcap_file::pcapng::{Block, PcapNgReader};
use perhop_core::{Duration, Instant};
use perhop_live::{Head, Lost, Plane, Sink};
use perhop_pcap::write::{Blocks, Captured, PacketDirection};
use perhop_router::config::Config;
use perhop_router::plan;
use perhop_router::request::{Hosts, Request};

use super::choices::Choices;

/// A configuration and those that it is reloaded with, one after the other with a zero byte between them:
/// each is refused with a message that names its place, or packets pass by it, and none is lost on the way
/// from one to the next.
///
/// Returns how many came into force.
pub fn configurations(bytes: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(bytes) else { return 0 };
    let mut texts = text.split('\0');
    let first = texts.next().unwrap_or_default();
    let Some(config) = accepted(Config::read(first, "input")) else { return 0 };
    let mut router =
        Router { plane: Plane::new(plan::plane(&small(&config), MTU), 1), now: Instant::ZERO, gone: 0 };
    router.send();
    let mut done = 1;
    for text in texts {
        if let Some(successor) = accepted(config.read_successor(text, "input")) {
            router.plane.reload(plan::plane(&small(&successor), MTU), 1).expect("a successor fits");
            router.send();
            done += 1;
        }
    }
    router.drain();
    done
}

const MTU: u16 = 1500;

/// Returns a configuration with as few buffers as there may be: more only take time.
fn small(config: &Config) -> Config {
    Config { buffers: 64, ..config.clone() }
}

fn accepted<E: ToString>(read: Result<Config, E>) -> Option<Config> {
    read.map_err(|error| {
        let message = error.to_string();
        assert!(message.starts_with("input:"), "{message}");
    })
    .ok()
}

/// A data plane that packets pass.
struct Router {
    plane: Plane,
    now: Instant,
    gone: u64,
}

impl Router {
    /// Sends packets of several kinds both ways.
    fn send(&mut self) {
        for number in 0..24_u8 {
            let packet = packet(number);
            let mut sink = Counting(&mut self.gone);
            if let Some((slot, _, room)) = self.plane.room() {
                room[..packet.len()].copy_from_slice(&packet);
                self.plane.arrive(usize::from(number % 2), slot, packet.len(), self.now, &mut sink);
            } else {
                self.plane.overrun(usize::from(number % 2), &packet, &mut sink);
            }
            self.now += Duration::from_nanos(100_000);
            self.plane.advance(self.now, &mut sink);
            self.plane.balance().expect("balanced");
        }
    }

    fn drain(mut self) {
        while self.plane.inside() > 0 {
            assert_ne!(self.plane.next(), Instant::NEVER, "{} packets are never sent", self.plane.inside());
            self.now = self.now.max(self.plane.next());
            self.plane.advance(self.now, &mut Counting(&mut self.gone));
            self.plane.balance().expect("balanced");
        }
        assert_eq!(self.plane.counters().all_read(), self.gone);
    }
}

/// Counts packets that left or were lost.
struct Counting<'a>(&'a mut u64);

impl Sink for Counting<'_> {
    fn deliver(&mut self, _: usize, _: &Head, _: &[u8], _: Instant) {
        *self.0 += 1;
    }
    fn lose(&mut self, _: &Lost<'_>, _: Instant) {
        *self.0 += 1;
    }
}

/// A packet such as the seeds' classes take, or one that they do not.
fn packet(number: u8) -> Vec<u8> {
    let (host, port) = (number % 5, 5000 + u16::from(number % 3) * 5);
    let payload = [0; 1000];
    let payload = &payload[..usize::from(number) * 40];
    let mut packet = Vec::new();
    let written = match number % 4 {
        0 => PacketBuilder::ipv4([10, 0, 0, host], [10, 1, 0, 1], 64)
            .tcp(40_000, port, 1, 1000)
            .write(&mut packet, payload),
        1 => PacketBuilder::ipv6([0xfd; 16], [0xfe; 16], 64).udp(40_000, port).write(&mut packet, payload),
        2 => PacketBuilder::ipv4([10, 0, 1, host], [10, 1, 0, 1], 64)
            .icmpv4_echo_request(1, 1)
            .write(&mut packet, payload),
        _ => PacketBuilder::ipv4([10, 0, 0, host], [10, 0, 0, 1], 64)
            .udp(40_000, port)
            .write(&mut packet, payload),
    };
    written.expect("there is room in memory");
    packet
}

/// Checks a request for metrics that arrives in parts: it is read alike however it is divided, and only a
/// request that names this host reaches the metrics.
///
/// Returns what is asked for, if the header has ended.
pub fn request(bytes: &[u8]) -> Option<Request> {
    let hosts = Hosts::new(&["router.example".into()]);
    let reached = "192.0.2.1".parse().expect("an address");
    let read = |text: &[u8]| {
        let mut ours = false;
        let request = Request::read(text, |name| {
            ours = hosts.contains(name, reached);
            ours
        });
        let answered = matches!(request, Some(Request::Metrics | Request::Front | Request::Unknown));
        assert!(!answered || ours, "{request:?}");
        assert!(!ours || String::from_utf8_lossy(text).to_lowercase().contains("\nhost:"));
        request
    };
    let mut ends = (0..bytes.len()).step_by(bytes.len() / 256 + 1).chain([bytes.len()]);
    let (end, request) = ends.find_map(|end| Some((end, read(&bytes[..end])?)))?;
    // What comes behind the header changes nothing.
    let whole = read(bytes);
    assert!(request == Request::TooLong || whole == Some(request), "{request:?} after {end}, {whole:?}");
    whole
}

/// Any capture: another reader reads the packets that were written, and nothing else.
pub fn capture(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let text = |choices: &mut Choices<'_>| {
        let length = choices.below(40);
        String::from_utf8_lossy(choices.bytes(length)).replace('\0', "")
    };
    let names: Vec<String> = (0..=choices.below(3)).map(|_| text(&mut choices)).collect();
    let mut blocks = Blocks::header("perhop-router", &names, 9000);
    let mut written = Vec::new();
    while !choices.is_over() {
        let comment = choices.one_in(2).then(|| text(&mut choices));
        let interface = choices.below(names.len()) as u32;
        let time = u64::from(choices.word()) << choices.below(48);
        let missed = choices.below(3) as u64;
        let direction = choices.of(&[PacketDirection::Inbound, PacketDirection::Outbound]);
        let length = choices.below(256);
        let packet = choices.bytes(length).to_vec();
        let comment = comment.as_deref();
        let length = packet.len() as u32;
        let captured = Captured { interface, time, direction, packet: &packet, length, comment, missed };
        blocks.packet(&captured);
        written.push((interface, time, packet));
        if choices.one_in(8) {
            blocks.statistics(interface, time, missed + 1, missed);
        }
    }
    let mut reader = PcapNgReader::new(blocks.bytes()).expect("a section");
    let (mut packets, mut interfaces) = (Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::EnhancedPacket(packet) => {
                let time = packet.timestamp.as_nanos() as u64;
                packets.push((packet.interface_id, time, Cow::into_owned(packet.data)));
            }
            Block::InterfaceDescription(_) => interfaces += 1,
            Block::InterfaceStatistics(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(interfaces, names.len());
    assert_eq!(packets, written);
}

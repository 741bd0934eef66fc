//! What holds for every congestion control with every sender: a SYN leaves nothing behind.

use std::collections::VecDeque;

use perhop_core::{Context, Duration, FlowId, Header, Instant, Rng};

use super::{CongestionParams, TcpEcn, TcpParams};
use crate::network::TransportSpec;
use crate::packet::{Content, SimPacket};
use crate::transport::metadata::Metadata;
use crate::transport::transit::TransitMeter;
use crate::transport::{Ack, Receiver, Sender, Source};

/// When a connection opens, at the earliest and in all runs alike.
const OPEN: Instant = Instant::from_nanos(20_000_000_000);
/// A path of 1 segment a millisecond, a queue of 40, and 20 ms.
const SERVICE: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(10);
const QUEUE: u64 = 40;

/// The SYN of a connection: how many were lost, and the round trip of the one that was not.
#[derive(Clone, Copy, Debug)]
struct Opening {
    lost: u32,
    rtt: Duration,
}

/// A packet of this number and size.
fn content(sequence: u32, size: u16) -> Content {
    SimPacket::new(&Header::new(FlowId(0), size), 0, sequence).content()
}

/// A sender and a receiver, and the path between them.
struct Connection {
    sender: Sender,
    receiver: Receiver,
    metadata: Metadata,
    rng: Rng,
    now: Instant,
    free_at: Instant,
    data: VecDeque<(Instant, u32)>,
    acks: VecDeque<(Instant, Ack)>,
}

impl Connection {
    fn new(params: &TcpParams, ecn: TcpEcn) -> Self {
        let transport = TransportSpec::from(params.clone());
        let (sender, receiver) = transport.ends(None, None, ecn, 1);
        Self {
            sender,
            receiver,
            metadata: transport.metadata(TransitMeter::new((Instant::ZERO, Instant::NEVER))),
            rng: Rng::stream(1, "tcp"),
            now: Instant::ZERO,
            free_at: Instant::ZERO,
            data: VecDeque::new(),
            acks: VecDeque::new(),
        }
    }

    /// The sender acts; returns the segments that it then sends.
    fn act(&mut self, ack: Option<Ack>) -> Vec<u32> {
        match ack {
            Some(ack) => self.sender.on_ack(ack, &mut self.metadata, self.now),
            None => self.sender.on_wake(self.now),
        }
        let cx = &mut Context { now: self.now, rng: &mut self.rng };
        std::iter::from_fn(|| self.sender.transmit(cx)).map(|transmit| transmit.sequence).collect()
    }

    /// Opens at [`OPEN`], or begins then without a SYN. Returns what is then sent.
    fn open(&mut self, opening: Option<Opening>) -> Vec<u32> {
        let Some(Opening { lost, rtt }) = opening else {
            self.now = OPEN;
            self.sender.start(self.now);
            return self.act(None);
        };
        // With a timeout of a second, doubled each time: 0, 1, 3, 7.
        let timeouts = Duration::from_secs((1 << lost) - 1);
        self.now = Instant::from_nanos(OPEN.as_nanos() - (timeouts + rtt).as_nanos());
        self.sender.start(self.now);
        assert_eq!(self.act(None), [0]);
        for _ in 0..lost {
            // A probe timer may expire before, which sends nothing.
            while self.now < OPEN {
                self.now = self.sender.wake();
                if !self.act(None).is_empty() {
                    break;
                }
            }
        }
        self.now = OPEN;
        let ack = self.receiver.on_data(content(0, 40), self.now, &mut self.metadata).ack;
        self.act(Some(ack.unwrap()))
    }

    /// Puts segments on the path; the queue drops what it has no room for.
    fn put(&mut self, segments: &[u32]) {
        for &sequence in segments {
            let waiting = self.free_at.since(self.now).as_nanos() / SERVICE.as_nanos();
            if waiting < QUEUE {
                self.free_at = self.free_at.max(self.now) + SERVICE;
                self.data.push_back((self.free_at + DELAY, sequence));
            }
        }
    }

    /// The segments sent, and when, in the three seconds after it opened, and the window then; segments
    /// counted from the first of data.
    fn run(mut self, opening: Option<Opening>) -> Vec<(u64, u32, f64)> {
        let first = u32::from(opening.is_some());
        let mut sent = self.open(opening);
        let mut course = Vec::new();
        while self.now < OPEN + Duration::from_secs(3) {
            let window = self.sender.window().unwrap();
            course.extend(sent.iter().map(|segment| (self.now.as_nanos(), segment - first, window)));
            self.put(&sent);
            let data = self.data.front().map_or(Instant::NEVER, |(at, _)| *at);
            let ack = self.acks.front().map_or(Instant::NEVER, |(at, _)| *at);
            self.now = data.min(ack).min(self.sender.wake()).min(self.receiver.wake());
            sent = Vec::new();
            if data == self.now {
                let (_, sequence) = self.data.pop_front().unwrap();
                let ack = self.receiver.on_data(content(sequence, 1000), self.now, &mut self.metadata).ack;
                self.acks.extend(ack.map(|ack| (self.now + DELAY, ack)));
            } else if ack == self.now {
                let (_, ack) = self.acks.pop_front().unwrap();
                sent = self.act(Some(ack));
            } else if self.sender.wake() == self.now {
                sent = self.act(None);
            } else {
                let ack = self.receiver.on_wake(self.now, &mut self.metadata);
                self.acks.extend(ack.map(|ack| (self.now + DELAY, ack)));
            }
        }
        course
    }
}

/// Each congestion control with each way to find losses and to end slow start.
fn kinds() -> Vec<String> {
    let mut kinds = Vec::new();
    for control in CongestionParams::all() {
        let name = control.name();
        for recovery in [r#""sack": false"#, r#""sack": true"#, r#""sack": true, "loss-detection": "rack""#] {
            kinds.push(format!(r#"{recovery}, "congestion": "{name}""#));
            if name == "cubic" {
                let table = r#"{"control": "cubic", "hystart": true}"#;
                kinds.push(format!(r#"{recovery}, "congestion": {table}"#));
            }
            if control.info().slow_start {
                kinds.push(format!(r#"{recovery}, "congestion": "{name}", "slow-start": "hystart++""#));
            }
        }
    }
    kinds
}

fn course(kind: &str, tcp: &str, initial: u32, opening: Option<Opening>) -> Vec<(u64, u32, f64)> {
    let opens = opening.is_some();
    let table = format!(
        r#"{{"tcp": "{tcp}", {kind}, "initial-window": "{initial}p", "handshake": {opens}, "initial-rto": "1s", "tick": "1us",
            "window": "500p", "prr": false, "delayed-ack": "0s", "quick-acks": "0p", "limited-transmit": true}}"#
    );
    let params: TcpParams = serde_json::from_str(&table).unwrap();
    let ecn = if params.needs().marks { TcpEcn::Classic } else { TcpEcn::Off };
    Connection::new(&params, ecn).run(opening)
}

fn assert_same(one: &[(u64, u32, f64)], other: &[(u64, u32, f64)], what: &str) {
    let differs = one.iter().zip(other).find(|(one, other)| one != other);
    assert_eq!((differs, one.len()), (None, other.len()), "{what}");
}

#[test]
fn no_control_depends_on_the_size_of_the_syn() {
    // Timers begin with the round trip of the SYN (RFC 6298, RFC 8985); here none expires before data is
    // acknowledged.
    for kind in kinds() {
        let without = course(&kind, "newreno", 10, None);
        assert!(without.len() > 1000, "{kind}");
        for micros in [12_000, 15_000, 20_000, 21_000, 25_000] {
            let opening = Opening { lost: 0, rtt: Duration::from_nanos(micros * 1000) };
            assert_same(
                &course(&kind, "newreno", 10, Some(opening)),
                &without,
                &format!("{kind} {opening:?}"),
            );
        }
    }
}

#[test]
fn lost_syns_leave_nothing_behind_but_a_window_of_one_segment() {
    // RFC 5681, section 3.1: the loss window after a SYN that was lost; Linux: after two.
    for kind in kinds() {
        for (tcp, lost, window) in [("newreno", 1, 1), ("newreno", 3, 1), ("linux", 1, 10), ("linux", 2, 1)] {
            let opening = Opening { lost, rtt: Duration::from_millis(20) };
            let lossy = course(&kind, tcp, 10, Some(opening));
            assert_same(&lossy, &course(&kind, tcp, window, None), &format!("{tcp} {kind} {opening:?}"));
        }
    }
}

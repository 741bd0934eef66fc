//! Two connections over a wire that loses, delays, repeats and damages packets: for tests and fuzz targets.

use std::collections::BTreeMap;

use perhop_core::{Context, Duration, Ecn, Instant, Rng};
use perhop_endpoint::{Connection, Flags, Segment, Setup, TooBig, pattern};
use perhop_sim::transport::tcp::{TcpEcn, TcpParams};

pub fn params(table: &str) -> TcpParams {
    serde_json::from_str(table).unwrap()
}

pub fn setups(table: &str, ecn: TcpEcn, six: bool, volume: Option<u64>) -> [Setup; 2] {
    let ends =
        if six { ["[fd55::3]:20000", "[fd55::4]:5001"] } else { ["10.55.0.3:20000", "10.55.0.4:5001"] };
    let [local, remote] = ends.map(|end| end.parse().unwrap());
    let params = params(table);
    let setup =
        Setup { local, remote, params, ecn, volume, reserved: None, first_number: 0xffff_f000, seed: 1 };
    let other =
        Setup { local: remote, remote: local, volume: Some(0), first_number: 0x7fff_fff0, ..setup.clone() };
    [setup, other]
}

/// What a wire does to packets, each one in so many.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ills {
    pub lost: u64,
    pub late: u64,
    pub twice: u64,
    pub damaged: u64,
    pub marked: u64,
    /// Longer packets are reported, and lost.
    pub mtu: Option<u16>,
}

pub struct Wire {
    pub ends: [Option<Connection>; 2],
    pub listener: Setup,
    pub ills: Ills,
    pub rng: Rng,
    pub now: Instant,
    /// Packets in transit, with the end that they are for.
    pub transit: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    pub sent: u64,
    pub received: Vec<u8>,
    /// Every segment that was put on the wire: whose, and what.
    pub seen: Vec<(usize, Vec<u8>)>,
}

impl Wire {
    pub fn new([client, server]: [Setup; 2], ills: Ills, seed: u64) -> Self {
        let mut wire = Self {
            ends: [Some(Connection::open(client, Instant::ZERO)), None],
            listener: server,
            ills,
            rng: Rng::stream(seed, "wire"),
            now: Instant::ZERO,
            transit: BTreeMap::new(),
            sent: 0,
            received: Vec::new(),
            seen: Vec::new(),
        };
        wire.transmit(0);
        wire
    }

    pub fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.rng.up_to(one_in - 1) == 0
    }

    pub fn transmit(&mut self, end: usize) {
        let mut room = [0; 2000];
        let mut rng = Rng::stream(1, "tcp");
        loop {
            let now = self.now;
            let Some(connection) = &mut self.ends[end] else { return };
            let Some(packet) = connection.transmit(&mut Context { now, rng: &mut rng }, &mut room) else {
                return;
            };
            let bytes = room[..packet.length].to_vec();
            self.seen.push((end, bytes.clone()));
            self.put(1 - end, bytes);
        }
    }

    pub fn put(&mut self, to: usize, mut bytes: Vec<u8>) {
        let Ills { lost, late, twice, damaged, marked, mtu } = self.ills;
        if mtu.is_some_and(|mtu| bytes.len() > usize::from(mtu)) {
            let segment = Segment::parse(&bytes).unwrap();
            let Segment { source, destination, sequence, .. } = segment;
            let report = TooBig { source, destination, sequence, mtu: mtu.unwrap() };
            self.ends[1 - to].as_mut().unwrap().on_too_big(&report);
            return;
        }
        if self.happens(lost) {
            return;
        }
        if self.happens(damaged) {
            let place = self.rng.up_to(bytes.len() as u64 - 1) as usize;
            bytes[place] ^= 1 << self.rng.up_to(7);
        }
        if self.happens(marked) && Segment::parse(&bytes).is_ok_and(|it| it.ecn != Ecn::NotCapable) {
            bytes = congested(&bytes);
        }
        let copies = 1 + u32::from(self.happens(twice));
        for _ in 0..copies {
            let delay = Duration::from_millis(if self.happens(late) { 30 } else { 10 });
            self.sent += 1;
            self.transit.insert((self.now + delay, self.sent), (to, bytes.clone()));
        }
    }

    /// Runs until nothing is left to do, or until that time.
    pub fn run(&mut self, until: Duration) {
        let until = Instant::ZERO + until;
        loop {
            let arrives = self.transit.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
            let wakes: Vec<Instant> =
                self.ends.iter().map(|end| end.as_ref().map_or(Instant::NEVER, Connection::wake)).collect();
            let next = wakes.iter().copied().fold(arrives, Instant::min);
            if next == Instant::NEVER || next > until {
                return;
            }
            self.now = next;
            if arrives == next {
                let (_, (to, bytes)) = self.transit.pop_first().unwrap();
                self.arrive(to, &bytes);
                self.transmit(to);
            } else {
                let end = usize::from(wakes[0] != next);
                self.ends[end].as_mut().unwrap().on_wake(next);
                self.transmit(end);
            }
        }
    }

    pub fn arrive(&mut self, to: usize, bytes: &[u8]) {
        let Ok(segment) = Segment::parse(bytes) else { return };
        let now = self.now;
        let Some(end) = &mut self.ends[to] else {
            self.ends[to] = Connection::accept(self.listener.clone(), &segment, now);
            return;
        };
        let received = &mut self.received;
        end.on_segment(&segment, now, &mut |data| {
            if to == 1 {
                received.extend_from_slice(data);
            }
        });
        // Each closes when the other has.
        if end.is_received() {
            end.close();
        }
    }

    pub fn end(&self, number: usize) -> &Connection {
        self.ends[number].as_ref().unwrap()
    }

    /// Checks that all data arrived, and that both ends know it.
    pub fn check(&self, volume: u64) {
        let mut expected = vec![0; volume as usize];
        pattern(0, &mut expected);
        assert_eq!(self.received.len(), expected.len());
        assert!(self.received == expected, "other bytes arrived");
        assert_eq!(self.end(0).bytes().0, volume);
    }
}

/// Returns a packet with the mark of congestion.
pub fn congested(bytes: &[u8]) -> Vec<u8> {
    let segment = Segment::parse(bytes).unwrap();
    let marked = Segment { ecn: Ecn::Congested, ..segment };
    let mut room = vec![0; bytes.len()];
    marked.write(1, segment.data.len(), |data| data.copy_from_slice(segment.data), &mut room).unwrap();
    room
}

pub const LINUX: &str = r#"{"tcp": "linux", "packet": "1500B"}"#;
pub const NEWRENO: &str = r#"{"tcp": "newreno", "packet": "1000B", "window": "50p", "delayed-ack": "100ms"}"#;

/// Makes a connection over which 20 kB have gone, and returns it with a segment that its server could send.
pub fn established() -> (Wire, Vec<u8>) {
    let table = r#"{"tcp": "linux", "packet": "1500B", "window": "40p", "window-tuning": "none"}"#;
    let [client, server] = setups(table, TcpEcn::Off, false, None);
    let mut wire = Wire::new([client, server], Ills::default(), 1);
    wire.run(Duration::from_millis(60));
    let last = wire.seen.iter().rev().find(|(end, _)| *end == 1).unwrap().1.clone();
    (wire, last)
}

/// Reads bytes as a segment. One that is read can be written, and is then read as the same.
pub fn read_and_write(bytes: &[u8]) {
    let Ok(segment) = Segment::parse(bytes) else { return };
    let mut room = vec![0; segment.headers() + segment.data.len()];
    let fill = |data: &mut [u8]| data.copy_from_slice(segment.data);
    let Some(length) = segment.write(1, segment.data.len(), fill, &mut room) else { return };
    assert_eq!(length, room.len());
    let again = Segment::parse(&room).expect("what is written can be read");
    // Beyond the SYN, options of a SYN are not written; of many ranges, as many as fit.
    let flags_and_numbers =
        |it: &Segment<'_>| (it.flags, it.sequence, it.acknowledged, it.window, it.options.times);
    assert_eq!(flags_and_numbers(&again), flags_and_numbers(&segment));
    assert_eq!((again.data, again.ecn, again.dscp), (segment.data, segment.ecn, segment.dscp));
}

/// Sends segments that these bytes describe to both ends of an open connection, and lets time pass. Whatever
/// the ends then put on the wire can be read, and no end hands on more than its window.
pub fn disturb(bytes: &[u8]) {
    let (mut wire, last) = established();
    let genuine = Segment::parse(&last).expect("it was sent");
    let data = [0; 256];
    for (number, step) in bytes.chunks_exact(12).take(200).enumerate() {
        let word =
            |place: usize| i32::from(i16::from_be_bytes([step[place], step[place + 1]])).cast_unsigned();
        let scale = if step[0] & 1 == 1 { 1 } else { 1 << 12 };
        let mut options = genuine.options;
        if step[0] & 2 == 2 {
            options.ranges.push((
                genuine.acknowledged.wrapping_add(word(2)),
                genuine.acknowledged.wrapping_add(word(4)),
            ));
        }
        if step[0] & 4 == 4 {
            options.times = options.times.map(|(value, echo)| (value.wrapping_add(number as u32), echo));
        }
        let flags =
            [Flags::FIN, Flags::SYN, Flags::RST, Flags::PSH, Flags::ACK, Flags::ECE, Flags::CWR, Flags::AE];
        let flags =
            flags.into_iter().enumerate().fold(Flags::ACK.when(step[0] & 8 == 0), |all, (bit, flag)| {
                all | flag.when(step[1] >> bit & 1 == 1)
            });
        let to = usize::from(step[0] >> 4 & 1);
        let [source, destination] = if to == 0 {
            [genuine.source, genuine.destination]
        } else {
            [genuine.destination, genuine.source]
        };
        let (near, far) = if to == 0 {
            (genuine.sequence, genuine.acknowledged)
        } else {
            (genuine.acknowledged, genuine.sequence)
        };
        let segment = Segment {
            source,
            destination,
            sequence: near.wrapping_add(word(6).wrapping_mul(scale)),
            acknowledged: far.wrapping_add(word(8).wrapping_mul(scale)),
            window: word(10) as u16,
            flags,
            options,
            data: &data[..usize::from(step[11])],
            ..genuine
        };
        let mut room = vec![0; 600];
        let fill = |into: &mut [u8]| into.copy_from_slice(segment.data);
        let length = segment.write(1, segment.data.len(), fill, &mut room).expect("there is room");
        let before = wire.seen.len();
        wire.arrive(to, &room[..length]);
        wire.transmit(to);
        if step[0] & 32 == 32 {
            wire.run(wire.now.since(Instant::ZERO) + Duration::from_millis(u64::from(step[2] % 32)));
        }
        for (_, bytes) in &wire.seen[before..] {
            assert!(Segment::parse(bytes).is_ok());
        }
    }
}

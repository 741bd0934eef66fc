//! Connections over a wire, and what strangers send them.

#[path = "common/wire.rs"]
mod wire;

use perhop_core::{Context, Duration, Ecn, Instant, Rng};
use perhop_endpoint::{Connection, Ended, Flags, Options, Segment, Setup};
use perhop_sim::transport::tcp::TcpEcn;
use proptest::prelude::*;

use wire::{Ills, LINUX, NEWRENO, Wire, established, setups};

#[test]
fn a_connection_opens_carries_its_data_and_closes() {
    for (table, six, volume) in
        [(LINUX, false, 100_000), (NEWRENO, true, 12_345), (LINUX, true, 0), (NEWRENO, false, 1)]
    {
        let mut wire = Wire::new(setups(table, TcpEcn::Off, six, Some(volume)), Ills::default(), 1);
        wire.ends[0].as_mut().unwrap().close();
        wire.run(Duration::from_secs(20));
        wire.check(volume);
        assert_eq!([0, 1].map(|end| wire.end(end).ended()), [Some(Ended::Closed); 2], "{table}");
        let late = wire.seen.iter().rev().find(|(end, _)| *end == 1).unwrap().1.clone();
        let reset = Segment { flags: Flags::RST, ..Segment::parse(&late).unwrap() };
        let mut closed = wire.end(0).clone();
        closed.on_segment(&reset, wire.now, &mut |_| {});
        assert_eq!(closed.ended(), Some(Ended::Closed), "a late RST spoils nothing");
        assert_eq!(wire.end(0).statistics(wire.now).retransmitted, 0);
        let options = |place: usize| Segment::parse(&wire.seen[place].1).unwrap().options;
        assert_eq!([options(0).selective, options(1).selective], [table == LINUX; 2]);
        assert_eq!(options(0).times.is_some(), table == LINUX);
        let headers = if six { 60 } else { 40 };
        assert_eq!(options(0).most, Some(if table == LINUX { 1500 } else { 1000 } - headers));
    }
}

#[test]
fn marks_reach_the_sender_by_every_kind_of_feedback() {
    for (ecn, table) in [(TcpEcn::Classic, LINUX), (TcpEcn::Accurate, LINUX), (TcpEcn::Classic, NEWRENO)] {
        let ills = Ills { marked: 50, ..Ills::default() };
        let mut wire = Wire::new(setups(table, ecn, false, Some(1_000_000)), ills, 1);
        wire.ends[0].as_mut().unwrap().close();
        wire.run(Duration::from_secs(60));
        wire.check(1_000_000);
        let statistics = wire.end(0).statistics(wire.now);
        assert_eq!(statistics.retransmitted, 0);
        assert!(statistics.ecn_reductions > 2, "{ecn:?}: {}", statistics.ecn_reductions);
    }
}

#[test]
fn without_agreement_no_packet_is_capable() {
    let [client, server] = setups(LINUX, TcpEcn::Accurate, false, Some(50_000));
    let server = Setup { ecn: TcpEcn::Off, ..server };
    let mut wire = Wire::new([client, server], Ills::default(), 1);
    wire.ends[0].as_mut().unwrap().close();
    wire.run(Duration::from_secs(5));
    wire.check(50_000);
    assert!(wire.seen.iter().all(|(_, bytes)| Segment::parse(bytes).unwrap().ecn == Ecn::NotCapable));
}

#[test]
fn a_smaller_path_is_found_by_reports() {
    for six in [false, true] {
        let ills = Ills { mtu: Some(1280), ..Ills::default() };
        let mut wire = Wire::new(setups(LINUX, TcpEcn::Off, six, Some(300_000)), ills, 1);
        wire.ends[0].as_mut().unwrap().close();
        wire.run(Duration::from_secs(30));
        wire.check(300_000);
        let last = wire.seen.iter().rev().map(|(_, bytes)| bytes.len()).find(|length| *length > 1000);
        assert!(last.unwrap() <= 1280);
    }
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let [client, server] = setups(LINUX, TcpEcn::Off, false, Some(40_000));
    let mut connection = Connection::open(client, Instant::ZERO);
    let (mut room, mut rng) = ([0; 2000], Rng::stream(1, "tcp"));
    let mut transmit = |connection: &mut Connection, now| {
        let packet = connection.transmit(&mut Context { now, rng: &mut rng }, &mut room)?;
        let segment = Segment::parse(&room[..packet.length]).unwrap();
        Some((segment.sequence, segment.data.len()))
    };
    let mut now = Instant::ZERO;
    let (first, _) = transmit(&mut connection, now).unwrap();
    let answer = |sequence: u32, acknowledged: u32, window: u16, flags: Flags| Segment {
        source: server.local,
        destination: server.remote,
        dscp: perhop_core::Dscp::DEFAULT,
        ecn: Ecn::NotCapable,
        sequence,
        acknowledged,
        flags,
        window,
        options: Options { most: Some(1460), ..Options::default() },
        data: &[],
    };
    now += Duration::from_millis(10);
    let open = answer(9, first.wrapping_add(1), 0, Flags::SYN | Flags::ACK);
    connection.on_segment(&open, now, &mut |_| {});
    assert_eq!(transmit(&mut connection, now), Some((first.wrapping_add(1), 0)), "the handshake's last ACK");
    assert_eq!(transmit(&mut connection, now), None, "the window is closed");
    let mut spans = Vec::new();
    for _ in 0..4 {
        let at = connection.wake();
        spans.push(at.since(now).as_nanos() / 1_000_000);
        now = at;
        connection.on_wake(now);
        assert_eq!(transmit(&mut connection, now), Some((first, 0)), "a probe");
        assert_eq!(transmit(&mut connection, now), None);
    }
    assert_eq!(spans, [200, 400, 800, 1600]);
    // Room for a part of a segment: the part leaves with the next probe.
    connection.on_segment(&answer(10, first.wrapping_add(1), 500, Flags::ACK), now, &mut |_| {});
    assert_eq!(transmit(&mut connection, now), None);
    now = connection.wake();
    connection.on_wake(now);
    assert_eq!(transmit(&mut connection, now), Some((first.wrapping_add(1), 500)));
    connection.on_segment(&answer(10, first.wrapping_add(501), 60_000, Flags::ACK), now, &mut |_| {});
    assert_eq!(transmit(&mut connection, now), Some((first.wrapping_add(501), 1448 - 500)));
}

#[test]
fn a_stranger_who_guesses_no_number_changes_nothing() {
    // RFC 5961: a RST or a SYN within the window, data that acknowledge what was not sent.
    let (wire, last) = established();
    let genuine = Segment::parse(&last).unwrap();
    let next = genuine.sequence;
    let ahead = |bytes: u32| next.wrapping_add(bytes);
    let forged = [
        Segment { flags: Flags::RST, sequence: ahead(1), ..genuine },
        Segment { flags: Flags::RST, sequence: ahead(0xffff_0000), ..genuine },
        Segment { flags: Flags::RST | Flags::ACK, sequence: ahead(60_000), ..genuine },
        Segment { flags: Flags::SYN, sequence: ahead(0), ..genuine },
        Segment { flags: Flags::SYN | Flags::ACK, sequence: ahead(10), ..genuine },
        Segment { data: b"injected", acknowledged: genuine.acknowledged.wrapping_add(1 << 24), ..genuine },
        Segment { data: b"injected", acknowledged: genuine.acknowledged.wrapping_sub(1 << 30), ..genuine },
        Segment { data: b"injected", sequence: ahead(1 << 30), ..genuine },
        // What it acknowledges could be right, but it lies beyond the window.
        Segment {
            sequence: ahead(1 << 30),
            acknowledged: genuine.acknowledged.wrapping_add(1448),
            ..genuine
        },
        Segment { data: b"injected", options: Options::default(), ..genuine },
    ];
    for segment in forged {
        let mut client = wire.end(0).clone();
        let before = (client.bytes(), client.window());
        client.on_segment(&segment, wire.now, &mut |_| panic!("data were taken: {segment:?}"));
        assert_eq!(
            (client.bytes(), client.window(), client.ended()),
            (before.0, before.1, None),
            "{segment:?}"
        );
    }
    // The number that is expected does reset it.
    let mut client = wire.end(0).clone();
    client.on_segment(&Segment { flags: Flags::RST, ..genuine }, wire.now, &mut |_| {});
    assert_eq!(client.ended(), Some(Ended::Reset));
}

#[test]
fn challenges_are_few() {
    let (mut wire, last) = established();
    let genuine = Segment::parse(&last).unwrap();
    let forged = Segment { flags: Flags::SYN, ..genuine };
    let (mut room, mut rng) = ([0; 2000], Rng::stream(1, "tcp"));
    let now = wire.now;
    let client = wire.ends[0].as_mut().unwrap();
    let mut answers = 0;
    for _ in 0..1000 {
        client.on_segment(&forged, now, &mut |_| {});
        while let Some(packet) = client.transmit(&mut Context { now, rng: &mut rng }, &mut room) {
            answers += u32::from(packet.segment.is_none());
        }
    }
    assert_eq!(answers, 10);
}

#[test]
fn a_keep_alive_probe_is_answered() {
    let (mut wire, last) = established();
    let genuine = Segment::parse(&last).unwrap();
    let probe = Segment { sequence: genuine.sequence.wrapping_sub(1), ..genuine };
    let mut room = vec![0; 2000];
    let length = probe.write(1, 0, |_| {}, &mut room).unwrap();
    let before = wire.seen.len();
    wire.arrive(0, &room[..length]);
    wire.transmit(0);
    let answers: Vec<_> = wire.seen[before..]
        .iter()
        .filter(|(_, bytes)| Segment::parse(bytes).unwrap().data.is_empty())
        .collect();
    assert_eq!(answers.len(), 1);
}

#[test]
fn a_refused_connection_says_so() {
    let [client, server] = setups(NEWRENO, TcpEcn::Off, false, Some(1000));
    let mut wire = Wire::new([client, server], Ills::default(), 1);
    let syn = wire.seen[0].1.clone();
    let syn = Segment::parse(&syn).unwrap();
    let refusal = Segment {
        source: syn.destination,
        destination: syn.source,
        sequence: 0,
        acknowledged: syn.sequence.wrapping_add(1),
        flags: Flags::RST | Flags::ACK,
        options: Options::default(),
        ..syn
    };
    let client = wire.ends[0].as_mut().unwrap();
    client.on_segment(&Segment { acknowledged: syn.sequence, ..refusal }, wire.now, &mut |_| {});
    assert_eq!(client.ended(), None, "it acknowledges something else");
    client.on_segment(&refusal, wire.now, &mut |_| {});
    assert_eq!(client.ended().and_then(Ended::fault), Some("Connection refused"));
}

#[test]
fn a_fin_waits_until_the_data_before_it_are_acknowledged() {
    let [client, server] = setups(NEWRENO, TcpEcn::Off, false, Some(2400));
    let mut wire = Wire::new([client, server], Ills::default(), 1);
    wire.ends[0].as_mut().unwrap().close();
    wire.run(Duration::from_millis(135));
    // All but the first segment is lost, the FIN too, for longer than a FIN alone is sent again.
    wire.ills.lost = 1;
    wire.run(Duration::from_secs(500));
    assert_eq!((wire.received.len(), wire.end(0).ended()), (960, None));
    wire.ills.lost = 0;
    wire.run(Duration::from_secs(100_000));
    wire.check(2400);
    assert_eq!(wire.end(0).ended(), Some(Ended::Closed));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn all_data_arrive_whatever_the_wire_does(
        (lost, late, twice, damaged) in (0_u64..40, 0_u64..20, 0_u64..20, 0_u64..40),
        (volume, seed) in (0_u64..200_000, any::<u64>()),
        (six, small, which, ecn) in (any::<bool>(), any::<bool>(), 0_usize..4, 0_usize..3),
    ) {
        let at_least = |one_in: u64, least: u64| if one_in == 0 { 0 } else { one_in.max(least) };
        let ills = Ills {
            lost: at_least(lost, 12),
            late: at_least(late, 3),
            twice: at_least(twice, 2),
            damaged: at_least(damaged, 12),
            marked: 30,
            mtu: small.then_some(1280),
        };
        let table = [
            LINUX,
            NEWRENO,
            r#"{"tcp": "two-windows", "packet": "1500B", "window": "30p", "handshake": true}"#,
            r#"{"tcp": "newreno", "sack": true, "packet": "600B", "congestion": "bbr", "loss-detection": "rack"}"#,
        ][which];
        let ecn = [TcpEcn::Off, TcpEcn::Classic, if table == LINUX { TcpEcn::Accurate } else { TcpEcn::Off }][ecn];
        let mut wire = Wire::new(setups(table, ecn, six, Some(volume)), ills, seed);
        wire.ends[0].as_mut().unwrap().close();
        wire.run(Duration::from_secs(100_000));
        wire.check(volume);
        prop_assert_eq!(wire.end(1).is_received(), true);
        // Whatever is put on the wire can be read, and lies within the window.
        for (_, bytes) in &wire.seen {
            prop_assert!(Segment::parse(bytes).is_ok());
        }
    }

    #[test]
    fn no_segment_breaks_a_connection(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        wire::disturb(&bytes);
    }

    #[test]
    fn segments_are_read_and_written(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), six in any::<bool>()) {
        wire::read_and_write(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = if six { 0x60 } else { 0x45 };
        }
        wire::read_and_write(&bytes);
    }
}

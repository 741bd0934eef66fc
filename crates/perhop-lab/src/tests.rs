//! The laboratory without packets: what a scenario becomes, held against the simulator.

use etherparse::PacketBuilder;
use perhop_core::measure::{Counted, LinkOutcome};
use perhop_core::{Color, Dscp, Duration, Instant};
use perhop_live::{Coloring, Head, Plane, Sink};
use perhop_scenario::Scenario;
use perhop_sim::{Simulation, TransportSpec, Watch};

use crate::error::LabError;
use crate::setting::Side;
use crate::setting::{HostUser, Kind, Requests, Setting};
use crate::topology;

/// Two links in a row, with every kind of marking and of access; a path the long way round.
const NETWORK: &str = r#"
duration = "4s"
warmup = "1s"
links.first = { from = "a", to = "b", rate = "4Mbps", delay = "3ms", queue = { aqm = "rio", limit = "60p", in = "20/40/0.02", total = "5/20/0.2" }, meters = [
    { name = "thin", match = { dscp = ["AF11", "AF12"] }, profile = { marker = "trtcm", mode = "color-aware", rate = "1Mbps", burst = "9kB", peak-rate = "4500kbps", peak-burst = "9kB", out = "drop-red" } },
    { name = "rest", profile = { marker = "tswtcm", rate = "500kbps", peak-rate = "2Mbps", window = "100ms" } } ] }
links.second = { from = "b", to = "c", rate = "2500kbps", delay = "7ms", queue = { scheduler = "drr", queues = [
    { name = "gold", match = { path = "lsp" }, rule = { aqm = "drop-tail", limit = "10p" } },
    { name = "rest", rule = { aqm = "red", limit = "30p", thresholds = "5/15/0.1" } } ] }, meters = [
    { name = "path", match = { path = "lsp" }, profile = { marker = "srtcm", mode = "color-aware", rate = "400kbps", burst = "5kB", excess-burst = "5kB", af = 3 } } ] }
links.aside = { from = "a", to = "c", rate = "1Mbps", delay = "1ms", loss = 0.1, jitter = { distribution = "uniform", max = "3ms", reorder = true }, changes = [{ at = "2s", rate = "600kbps", delay = "2ms" }], outages = [{ from = "1s", to = "1100ms" }] }
paths.lsp = { via = ["a", "b", "c"] }
profiles.shared = { rate = "1Mbps", marker = "tsw" }
flows = [
  { name = "own", count = 3, from = "a", to = "b", dispatch-jitter = "2ms", access = { rate = "2Mbps", delay = "2ms" }, egress = { rate = "1Mbps", delay = "4ms" }, transport = { udp = "cbr", rate = "700kbps", packet = "1000B", jitter = 0.0 }, profile = { rate = "300kbps", marker = "token-bucket", burst = "5kB" } },
  { name = "path", count = 2, path = "lsp", access = { rate = "5Mbps", delay = "1ms" }, transport = { udp = "cbr", rate = "900kbps", packet = "500B", jitter = 0.0 }, profile = { rate = "500kbps", marker = "three-precedence" } },
  { name = "shared", count = 3, from = "a", to = "b", transport = { udp = "cbr", rate = "600kbps", packet = "400B", jitter = 0.0 }, profile = "shared" },
  { name = "plain", count = 2, from = "b", to = "c", transport = { udp = "cbr", rate = "800kbps", packet = "1200B", jitter = 0.0 }, color = "red", dscp = 12 },
  { name = "direct", from = "a", to = "c", dispatch-jitter = "300us", transport = { udp = "cbr", rate = "500kbps", packet = "300B", jitter = 0.0 } },
]
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(text, "test").unwrap()
}

/// Counts what leaves by each device.
#[derive(Default)]
struct Delivered(Vec<(usize, Instant)>);

impl Sink for Delivered {
    fn deliver(&mut self, device: usize, _: &Head, _: &[u8], due: Instant) {
        self.0.push((device, due));
    }
}

/// Returns every packet of the scenario's constant senders, with the time at which its host sends it.
fn script(scenario: &Scenario, setting: &Setting) -> Vec<(Instant, Vec<u8>)> {
    let network = scenario.network();
    let mut script = Vec::new();
    for (spec, flow) in network.flows.iter().zip(&setting.flows) {
        let TransportSpec::Udp(udp) = &spec.transport else { panic!("all are UDP") };
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 55, 0, 1], [10, 55, 0, 2], 64).udp(flow.port, flow.port);
        builder.write(&mut packet, &vec![0; usize::from(flow.payload)]).unwrap();
        assert_eq!(packet.len(), usize::from(flow.packet));
        let gap = udp.rate.time_of(udp.packet);
        let mut at = flow.start;
        while at <= Instant::ZERO + scenario.duration {
            script.push((at, packet.clone()));
            at += gap;
        }
    }
    script.sort_by_key(|(at, _)| *at);
    script
}

#[test]
fn the_laboratorys_network_is_the_simulators() {
    let scenario = scenario(NETWORK);
    let network = scenario.network();
    for seed in 1..4 {
        let mut simulation = Simulation::new(&network, seed).unwrap();
        simulation.run_to_end();
        let simulated = simulation.finish().unwrap();
        let setting = Setting::new(&scenario, &network, seed).unwrap();
        let started: Vec<Instant> = simulated.flows.iter().filter_map(|flow| flow.started).collect();
        assert_eq!(setting.flows.iter().map(|flow| flow.start).collect::<Vec<_>>(), started);

        let mut plane = Plane::new(topology::plane(&network, &setting), seed);
        let mut delivered = Delivered::default();
        let warmup = Instant::ZERO + scenario.warmup.or_none();
        let mut at_warmup: Option<Vec<Counted>> = None;
        for (at, packet) in script(&scenario, &setting) {
            if at > warmup && at_warmup.is_none() {
                plane.advance(warmup, &mut delivered);
                at_warmup = Some(plane.ports().map(|(_, _, port)| port.counted()).collect());
            }
            let (slot, _, room) = plane.room().unwrap();
            room[..packet.len()].copy_from_slice(&packet);
            plane.arrive(topology::SENDERS, slot, packet.len(), at, &mut delivered);
        }
        let end = Instant::ZERO + scenario.duration;
        plane.advance(end, &mut delivered);
        plane.finish(end);
        plane.balance().unwrap();
        let links: Vec<LinkOutcome> = plane
            .outcomes()
            .zip(at_warmup.unwrap())
            .map(|(link, at_warmup)| link.after(&at_warmup))
            .collect();
        assert!(links.iter().all(|link| link.measured != link.counters));
        let first = links.iter().find(|link| link.name == "first").unwrap();
        assert!(first.meters.iter().all(|meter| meter.measured.arrived != [0; 3]));
        // The data plane does not measure a link without a queue.
        let measured = simulated.links.iter().filter(|link| links.iter().any(|ours| ours.name == link.name));
        assert_eq!(links, measured.cloned().collect::<Vec<_>>(), "seed {seed}");
        assert!(
            links.iter().all(|link| link.counters.drops().count() > 0 || link.transit.lost > Some(0)),
            "each queue has something to decide"
        );
        let all: u64 = plane.streams().step_by(2).map(|(_, counts)| counts.delivered.packets).sum();
        assert_eq!(delivered.0.len() as u64, all);
        assert!(delivered.0.iter().all(|(device, _)| *device == topology::RECEIVERS));
        let mut policed_by_links = 0;
        for ((name, counts), flow) in plane.streams().step_by(2).zip(&simulated.flows) {
            // The simulator reports what arrived after the warm-up.
            assert!(counts.delivered.packets >= flow.delivered_packets, "{name}");
            assert!(flow.delivered_packets > 0, "{name}");
            assert_eq!(flow.lost.is_some_and(|packets| packets > 0), name == "direct/0");
            assert!(flow.lost.unwrap_or_default() <= counts.lost, "{name}");
            let policed = flow.policed.unwrap_or_default();
            assert!(policed.iter().zip(counts.policed).all(|(after, whole)| *after <= whole), "{name}");
            policed_by_links += policed.iter().sum::<u64>();
        }
        assert_eq!(policed_by_links, first.meters[0].measured.policed.iter().sum::<u64>());
    }
}

#[test]
fn the_shortest_round_trip_is_that_of_propagation() {
    // b to c and back, hosts at their routers.
    let network = scenario(NETWORK).network();
    assert_eq!(topology::shortest_round_trip(&network), Duration::from_millis(2));
}

const TCP: &str = r#"
duration = "4s"
links.only = { from = "a", to = "b", rate = "4Mbps", delay = "3ms" }
flows = [ { name = "one", from = "a", to = "b", transport = { tcp = "newreno", packet = "576B" } } ]
"#;

fn setting(change: (&str, &str)) -> Result<Setting, LabError> {
    assert!(TCP.contains(change.0));
    let scenario = scenario(&TCP.replace(change.0, change.1));
    Setting::new(&scenario, &scenario.network(), 1)
}

#[test]
fn packets_are_as_large_as_the_scenario_says() {
    let sizes = |change| {
        let setting = setting(change).unwrap();
        let flow = &setting.flows[0];
        let Kind::Tcp { kernel: Some(kernel), .. } = &flow.kind else { panic!("it is the kernel's TCP") };
        (flow.packet, kernel.segment, flow.payload, setting.mtu)
    };
    // 20 bytes of IP and 20 of TCP, and 12 of timestamps unless they are off.
    assert_eq!(sizes(("", "")), (576, 536, 524, 576));
    assert_eq!(
        sizes(("links", "live = { sysctl = { \"net.ipv4.tcp_timestamps\" = 0 } }\nlinks")),
        (576, 536, 536, 576)
    );
    assert_eq!(sizes(("links", "live = { ip = 6 }\nlinks")), (576, 516, 504, 1280));
    assert_eq!(sizes(("576B", "9kB")), (9000, 8960, 8948, 9000));
}

#[test]
fn volumes_are_whole_packets_of_data() {
    // 1153 bytes on the wire are three packets of 576, each with 524 bytes of data.
    let volume = |change| setting(change).unwrap().flows[0].volume;
    assert_eq!(volume(("name = \"one\"", "name = \"one\", volume = \"1153B\"")), Some(3 * 524));
    assert_eq!(volume(("", "")), None);
}

const POPULATION: &str = r#"
duration = "4s"
links.only = { from = "a", to = "b", rate = "4Mbps", delay = "3ms" }
flows = [
  { name = "web", from = "a", to = "b", transport = { tcp = "newreno", packet = "576B" }, arrivals = { rate = "40/s" }, sizes = { constant = "1kB" } },
  { name = "one", from = "a", to = "b", transport = { tcp = "newreno", packet = "576B" } },
]
"#;

#[test]
fn flows_of_a_population_are_those_of_the_simulation() {
    let scenario = scenario(POPULATION);
    let network = scenario.network();
    let setting = Setting::new(&scenario, &network, 7).unwrap();
    let simulated = Simulation::run(&network, 7, None, &Watch::default()).unwrap();
    let [population] = &setting.populations[..] else { panic!("there is one") };
    let drawn = simulated.populations[0].flows.iter();
    let drawn: Vec<_> = drawn.map(|record| (record.started, record.size, record.idle)).collect();
    let known: Vec<_> =
        population.records.iter().map(|record| (record.started, record.size, record.idle)).collect();
    assert_eq!(known, drawn);
    assert!((120..200).contains(&drawn.len()), "{}", drawn.len());
    // They have numbers and ports one after another, then comes the next group.
    let (members, rest) = setting.flows.split_at(drawn.len());
    for (number, (flow, (started, size, _))) in members.iter().zip(&drawn).enumerate() {
        assert_eq!((flow.number, flow.flow, flow.group, flow.is_passing), (number, 0, 0, true));
        assert_eq!(
            (flow.start, flow.volume, flow.port),
            (*started, Some(size.get()), 20_000 + number as u16)
        );
    }
    let [one] = rest else { panic!("one flow is left") };
    assert_eq!((one.number, one.flow, one.group, one.is_passing), (drawn.len(), 1, 1, false));
    // 1000 bytes of data are two packets, each with 52 bytes of headers.
    assert_eq!(members[0].on_wire(1000), (1104, 2));
    assert_eq!(members[0].on_wire(0), (0, 0));
    // The data plane has a stream of its own for each, in each direction.
    let plane = topology::plane(&network, &setting);
    assert_eq!(plane.streams.len(), 2 * (drawn.len() + 1));
    assert!(
        setting.notes.iter().any(|note| note.contains("without `handshake = true`")),
        "{:?}",
        setting.notes
    );
}

const USERS: &str = r#"
duration = "4s"
links.only = { from = "a", to = "b", rate = "4Mbps", delay = "3ms" }
flows = [
  { name = "calls", count = 2, from = "a", to = "b", application = { model = "call" } },
  { name = "web", count = 2, from = "a", to = "b", color = "red", dscp = 12, access = { rate = "5Mbps", delay = "1ms" }, transport = { tcp = "linux", packet = "576B" }, application = { model = "web", connections = 3 } },
  { name = "one", from = "a", to = "b", transport = { tcp = "linux" } },
]
"#;

#[test]
fn a_connection_of_a_user_is_one_flow_of_hosts_and_a_call_is_two() {
    let scenario = scenario(USERS);
    let network = scenario.network();
    let setting = Setting::new(&scenario, &network, 7).unwrap();
    let names: Vec<&str> = setting.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "calls/0",
            "calls/1",
            "calls (reverse)/0",
            "calls (reverse)/1",
            "web/0",
            "web/1",
            "web/2",
            "web/3",
            "web/4",
            "web/5",
            "one/0"
        ]
    );
    // The network has six more flows, of requests, before the last one.
    assert_eq!(
        setting.flows.iter().map(|flow| flow.flow).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16]
    );
    assert_eq!(
        setting.flows.iter().map(|flow| flow.group).collect::<Vec<_>>(),
        [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]
    );
    let sides: Vec<Side> = setting.flows[1..4].iter().map(|flow| flow.from).collect();
    assert_eq!(sides, [Side::Sending, Side::Receiving, Side::Receiving]);
    // 350 bytes of a request fit into one packet.
    assert_eq!(setting.flows[6].requests, Some(Requests { flow: 12, payload: 350 }));
    assert!(setting.flows[10].is_unattended());
    let users = [(0, 4), (1, 7)].map(|(member, first)| {
        let connections = (first..first + 3).map(|number| [number; 2]).collect();
        HostUser { application: 1, member, connections }
    });
    assert_eq!(setting.users, users);
    // The client opens the connection, and its port names both streams; what it sends has the group's
    // codepoint.
    let plane = topology::plane(&network, &setting);
    let [responses, requests] = &plane.streams[12..14] else { panic!("two streams") };
    assert_eq!((responses.device, requests.device), (topology::SENDERS, topology::RECEIVERS));
    let port = Some(20_006..=20_006);
    assert_eq!((&responses.selector.destination_ports, &requests.selector.source_ports), (&port, &port));
    assert_eq!(requests.coloring, Coloring::Fixed(Color::Red, Dscp::new(12).unwrap()));
    let call = &plane.streams[4];
    assert_eq!((call.device, call.leaves), (topology::RECEIVERS, topology::SENDERS));
    assert_eq!(call.selector.source_ports, Some(20_002..=20_002));
}

const DATAGRAMS: &str = r#"
duration = "4s"
links.only = { from = "a", to = "b", rate = "4Mbps", delay = "3ms" }
flows = [
  { name = "players", count = 2, from = "a", to = "b", application = { model = "game" } },
  { name = "captured", from = "a", to = "b", color = "red", replay = { data = "time_s,size_B,dscp\n0,1500,10\n0.1,40,46\n" } },
  { name = "mice", from = "a", to = "b", transport = { udp = "cbr", rate = "1Mbps", packet = "528B" }, arrivals = { every = "1s" }, sizes = { constant = "1001B" } },
]
"#;

#[test]
fn datagrams_of_users_captures_and_populations_have_their_own_sizes() {
    let scenario = scenario(DATAGRAMS);
    let network = scenario.network();
    let setting = Setting::new(&scenario, &network, 7).unwrap();
    let [game, other_game] = &setting.users[..] else { panic!("two users") };
    assert_eq!((&game.connections, &other_game.connections), (&vec![[0, 2]], &vec![[1, 3]]));
    let ends = |number: usize| (setting.flows[number].from, setting.flows[number].is_unattended());
    assert_eq!((ends(0), ends(2)), ((Side::Sending, false), (Side::Receiving, false)));
    assert_eq!(ends(4), (Side::Sending, true));
    let plane = topology::plane(&network, &setting);
    assert_eq!(plane.streams[8].coloring, Coloring::TrustOr(Color::Red));
    assert_eq!(plane.streams[0].coloring, Coloring::Fixed(Color::default(), Dscp::DEFAULT));
    // 500 bytes twice; the third packet has no less data than it carries.
    let mice = &setting.flows[5];
    assert_eq!((mice.name.as_str(), mice.volume), ("mice/0#0", Some(500 + 500 + 12)));
    assert_eq!((mice.data_of(528), mice.data_of(29)), (500, 12));
    let six = scenario_of_version_6(DATAGRAMS);
    let error = Setting::new(&six, &six.network(), 7).expect_err("40 bytes are too few").to_string();
    assert!(error.starts_with("flows[1].replay: packets carry a sequence number"), "{error}");
    assert!(error.contains("at least 60B, and there are such of 40B"), "{error}");
}

fn scenario_of_version_6(text: &str) -> Scenario {
    scenario(&text.replace("links.only", "live = { ip = 6 }\nlinks.only"))
}

#[test]
fn more_flows_than_ports_are_refused() {
    let scenario = scenario(&POPULATION.replace("40/s", "40000/s"));
    let error = Setting::new(&scenario, &scenario.network(), 7).expect_err("they are too many").to_string();
    let said =
        "flows[0].arrivals: more than 45534 flows would begin with seed 7, and a host has ports for no more";
    assert!(error.starts_with(said), "{error}");
}

#[test]
fn a_recovery_that_is_not_the_kernels_is_reported() {
    let notes = |transport: &str| setting(("tcp = \"newreno\"", transport)).unwrap().notes;
    let says = |transport| notes(transport).iter().any(|note| note.contains("`newreno-timer`"));
    assert!(says("tcp = \"ns-1998\""));
    assert!(says("tcp = \"newreno\", newreno-timer = \"slow-but-steady\""));
    assert!(!says("tcp = \"newreno\""));
    assert!(!says("tcp = \"linux\""));
    let is_sized =
        |transport| notes(transport).iter().any(|note| note.starts_with("`window`, `send-buffer`"));
    assert!(is_sized("tcp = \"newreno\", window = \"20p\""));
    assert!(is_sized("tcp = \"linux\", send-buffer = \"1MB\""));
    assert!(is_sized("tcp = \"linux\", window-tuning = \"none\""));
    assert!(!is_sized("tcp = \"newreno\"") && !is_sized("tcp = \"linux\""));
    let received = |transport: &str| {
        let change = format!("live = {{ receiver = \"perhop\" }}, transport = {{ {transport}");
        let notes = setting(("transport = { tcp = \"newreno\"", &change)).unwrap().notes;
        let begin = |note: &String| note.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
        notes.iter().map(begin).collect::<Vec<_>>()
    };
    assert_eq!(received("tcp = \"newreno\", window = \"20p\""), ["TCP's sender is the"]);
    assert_eq!(
        received("tcp = \"linux\", send-buffer = \"1MB\""),
        ["TCP's sender is the", "`send-buffer` acts in the"]
    );
    let is_paced = |transport| notes(transport).iter().any(|note| note.contains("`pacing = "));
    assert!(is_paced("tcp = \"newreno\", pacing = \"window\""));
    assert!(!is_paced("tcp = \"newreno\", pacing = \"none\""));
}

#[test]
fn perhops_own_sender_takes_what_no_kernel_has_and_what_it_is_given() {
    let ends = |change: (&str, &str)| {
        let setting = setting(change).unwrap();
        [Side::Sending, Side::Receiving].map(|side| setting.flows[0].own_at(side).is_some())
    };
    let tcp = "transport = { tcp = \"newreno\", packet = \"576B\" }";
    assert_eq!(ends(("", "")), [false, false]);
    assert_eq!(ends(("\"newreno\"", "\"two-windows\"")), [true, false]);
    let no_out = "profile = { rate = \"1Mbps\", marker = \"tsw\" }, out-feedback = \"0s\", transport = ";
    assert_eq!(ends(("transport = ", no_out)), [true, false]);
    for (live, expected) in [
        ("sender = \"perhop\"", [true, false]),
        ("receiver = \"perhop\"", [false, true]),
        ("sender = \"perhop\", receiver = \"perhop\"", [true, true]),
    ] {
        assert_eq!(ends(("transport = ", &format!("live = {{ {live} }}, transport = "))), expected, "{live}");
        assert_eq!(
            ends(("links", &format!("live = {{ {live} }}\nlinks"))),
            expected,
            "of all groups: {live}"
        );
    }
    let kernels =
        "live = { congestion = \"cubic\" }, transport = { tcp = \"two-windows\", packet = \"576B\" }";
    assert_eq!(ends((tcp, kernels)), [false, false], "the kernel's is named");
}

#[test]
fn a_flow_that_stops_before_it_starts_never_begins() {
    let begins =
        |keys: &str| setting(("transport = ", &format!("{keys}, transport = "))).unwrap().flows[0].begins();
    assert!(begins("start = \"1s\""));
    assert!(begins("start = \"1s\", stop = \"1001ms\""));
    assert!(!begins("start = \"1s\", stop = \"1s\""));
    assert!(!begins("start = \"0s\", stop = \"0s\""));
}

#[test]
fn the_kernel_is_asked_for_ecn_where_its_tcp_is_an_end() {
    let linux = "transport = { tcp = \"linux\"";
    let asked =
        |keys: &str| setting(("transport = { tcp = \"newreno\"", &format!("{keys}, {linux}"))).unwrap().ecn;
    let name = "net.ipv4.tcp_ecn";
    assert_eq!(asked("ecn = \"classic\""), Some((0, name, "1")));
    assert_eq!(asked("ecn = \"accurate\", live = { sender = \"perhop\" }"), Some((0, name, "3")));
    assert_eq!(asked("ecn = \"accurate\", live = { sender = \"perhop\", receiver = \"perhop\" }"), None);
    assert_eq!(asked("ecn = \"off\""), None);
}

#[test]
fn what_no_kernel_can_do_is_refused() {
    for (change, message) in [
        (
            (
                "transport = { tcp = \"newreno\"",
                "live = { sender = \"kernel\" }, transport = { tcp = \"two-windows\"",
            ),
            "flows[0].transport.tcp: no kernel has the congestion control `two-windows`: take `live.sender = \"perhop\"`",
        ),
        (
            ("\"newreno\"", "\"quic\""),
            "flows[0].transport.tcp: no kernel has QUIC, which runs in the simulator only; name the kernel's congestion control",
        ),
        (
            ("576B", "100B"),
            "flows[0].transport.packet: Linux sends no packets smaller than 128B; choose a larger size",
        ),
        (
            (
                "transport = { tcp = \"newreno\", packet = \"576B\" }",
                "transport = { udp = \"cbr\", rate = \"1Mbps\", packet = \"39B\" }",
            ),
            "flows[0].transport.packet: packets carry a sequence number and when they were sent, so they need at least 40B",
        ),
        (
            (
                "transport = { tcp = \"newreno\", packet = \"576B\" }",
                "live = { congestion = \"bbr\" }, transport = { udp = \"cbr\", rate = \"1Mbps\" }",
            ),
            "flows[0].live.congestion: only TCP flows use the kernel's congestion control; leave this key out",
        ),
        (
            (
                "transport = ",
                "profile = { rate = \"1Mbps\", marker = \"tsw\" }, out-feedback = \"0s\", live = { sender = \"kernel\" }, \
                 transport = ",
            ),
            "flows[0].out-feedback: no kernel's TCP reacts to reports of OUT packets",
        ),
    ] {
        let error = setting(change).expect_err(message).to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

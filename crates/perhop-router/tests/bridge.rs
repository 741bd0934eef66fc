//! The program as a user runs it, between two hosts in network namespaces of their own: needs root and
//! iproute2, and says so where it is skipped.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "it runs programs, opens sockets, and waits"
)]

mod lab;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use nix::sys::signal::Signal;
use perhop_core::Dscp;
use perhop_live::HEAD;
use perhop_live::device::Device;
use perhop_live::encapsulation::{TAG, attached};
use perhop_live::wire::parse;

use lab::{CONFIG, LEFT, Lab, RIGHT, USER, captured, fails, get, head, ip, of_tun, there_are_others, value};

#[test]
fn a_transfer_passes_at_the_links_rate_through_a_reload_and_all_of_it_is_told() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.write(CONFIG);
    let capture = lab.folder.join("all.pcapng");
    let router = lab.start(&config, &["--capture", capture.to_str().unwrap()]);
    let users = router.status("Uid:");
    if there_are_others() {
        assert_eq!(users.split_whitespace().collect::<BTreeSet<_>>().len(), 1, "{users}");
        assert!(!users.starts_with('0'), "{users}");
    } else {
        eprintln!("skipped in part: there are no other users in this namespace to become");
    }
    assert_eq!(router.status("CapPrm:"), "0000000000000000");
    assert_eq!(router.status("NoNewPrivs:"), "1");

    let bytes = 5_000_000;
    let took = thread::scope(|scope| {
        let transfer = scope.spawn(|| lab.transfer(bytes));
        thread::sleep(Duration::from_millis(700));
        lab.write("nonsense");
        router.signal(Signal::SIGHUP);
        router.says("router.toml:1: ");
        lab.write(&CONFIG.replace("limit = \"200p\"", "limit = \"300p\""));
        router.signal(Signal::SIGHUP);
        router.says("new queues: upstream; new meters: none; all else unchanged");
        transfer.join().unwrap()
    });
    // In 1500 bytes on the link, 1448 are data. A loaded machine may be slower, never faster.
    let at_best = bytes as f64 * 8.0 / 20e6 * 1500.0 / 1448.0;
    let took = took.as_secs_f64();
    assert!((at_best * 0.98..at_best * 1.5).contains(&took), "{took} s, {at_best} s at best");

    thread::sleep(Duration::from_millis(1500));
    let metrics = lab.metrics();
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n") && metrics.ends_with("# EOF\n"));
    let sent = "perhop_class_sent_packets_total{class=\"gold\",direction=\"upstream\"} ";
    assert!(value(&metrics, sent) > bytes as f64 / 1448.0);
    assert_eq!(value(&metrics, "perhop_reloads_total{result=\"applied\"} "), 1.0);
    assert_eq!(value(&metrics, "perhop_reloads_total{result=\"refused\"} "), 1.0);
    let passed = "perhop_passed_frames_total{device=\"in0\",side=\"inside\"} ";
    assert!(value(&metrics, passed) >= 1.0, "ARP");
    let marked = "perhop_class_marked_packets_total{class=\"gold\",direction=\"upstream\",color=";
    let of_color = |color: &str| value(&metrics, &format!("{marked}\"{color}\"}} "));
    assert!(of_color("green") > 500.0 && of_color("yellow") > 2000.0);
    assert!(lab.within(1, || get("/")).contains("/metrics"));
    assert!(lab.within(1, || get("/other")).starts_with("HTTP/1.1 404 "));

    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    let parts =
        ["in0 (inside): received ", "gold (upstream): ", "lateness, us: ", "reloads: 1 applied, 1 refused"];
    for part in parts {
        assert!(output.contains(part), "{part} is missing in\n{output}");
    }
    check_capture(&capture, &output);
}

#[test]
fn a_policer_of_the_link_holds_a_transfer_to_its_rate_and_counts_what_it_drops() {
    let Some(lab) = Lab::new() else { return };
    let meter = "meters = [{ name = \"all\", profile = { marker = \"token-bucket\", rate = \"4Mbps\", burst = \"20kB\", out = \"drop\" } }]";
    let config = lab.write(&CONFIG.replacen("rate = \"20Mbps\"", &format!("rate = \"20Mbps\"\n{meter}"), 1));
    let router = lab.start(&config, &[]);
    let bytes = 500_000;
    let took = lab.transfer(bytes).as_secs_f64();
    // A loaded machine may be slower, never faster: the bucket lets its burst and the rate pass.
    assert!(took > (bytes as f64 - 20e3) * 8.0 / 4e6, "{took} s");
    thread::sleep(Duration::from_millis(1500));
    let metrics = lab.metrics();
    let of_meter = |count: &str| {
        let color = |color: &str| {
            let start = format!(
                "perhop_meter_{count}_packets_total{{link=\"upstream\",meter=\"all\",color=\"{color}\"}} "
            );
            value(&metrics, &start)
        };
        ["green", "yellow", "red"].map(color).iter().sum::<f64>()
    };
    assert!(of_meter("policed") > 0.0);
    assert_eq!(of_meter("arrived"), of_meter("passed") + of_meter("policed"));
    assert_eq!(value(&metrics, "perhop_lost_packets_total{reason=\"policed\"} "), of_meter("policed"));
    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("meter all (upstream): ") && output.contains(" dropped by meters"), "{output}");
}

/// Every packet is in the file, and tshark, where there is one, reads it.
fn check_capture(path: &Path, output: &str) {
    let packets = captured(path).len();
    assert!(output.contains(&format!("captured: {packets} packets, ")), "{packets}\n{output}");
    let path = path.to_str().unwrap();
    let shark = Command::new("tshark").args(["-r", path, "-T", "fields", "-e", "ip.dsfield.dscp"]).output();
    match shark {
        Err(_) => eprintln!("skipped: tshark is not installed, so only our own look at the capture counts"),
        Ok(done) => {
            let text = String::from_utf8(done.stdout).unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(text.lines().count(), packets);
            assert!(
                text.lines().any(|dscp| dscp == "10") && text.lines().any(|dscp| dscp == "12"),
                "AF11, AF12"
            );
        }
    }
}

#[test]
fn after_a_kill_it_starts_again() {
    let Some(lab) = Lab::new() else { return };
    let config = lab.write(CONFIG);
    for _ in 0..2 {
        let mut router = lab.start(&config, &[]);
        lab.transfer(100_000);
        router.signal(Signal::SIGKILL);
        router.child.wait().unwrap();
        std::fs::remove_file(&router.output).unwrap();
    }
    let router = lab.start(&config, &[]);
    lab.transfer(100_000);
    assert_eq!(router.end().0, Some(0));
}

#[test]
fn packets_that_offload_made_of_many_pass_the_queue_one_by_one() {
    let Some(lab) = Lab::new() else { return };
    ip(&format!("-n {} link set a0 gso_max_segs 100", lab.names[0])).unwrap();
    let config = lab.write(CONFIG);
    let capture = lab.folder.join("all.pcapng");
    let router = lab.start(&config, &["--capture", capture.to_str().unwrap()]);
    lab.transfer(1_000_000);
    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(!output.contains("merged"), "{output}");
    let lengths = captured(&capture);
    let (longest, bytes) = (lengths.iter().max(), lengths.iter().sum::<u32>());
    assert!(longest == Some(&1500) && bytes > 1_000_000, "{longest:?} of {bytes} bytes");
}

/// Raw frames instead of VLAN interfaces, which not every kernel has.
#[test]
fn tagged_frames_keep_their_tags() {
    let Some(lab) = Lab::new() else { return };
    let router = lab.start(&lab.write(CONFIG), &[]);
    let [mut sender, mut receiver] = lab.raw();
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(LEFT, RIGHT, 64).udp(7, 77);
    builder.write(&mut packet, b"tagged").unwrap();
    let mut head = head([0x08, 0x00]);
    head[TAG].copy_from_slice(&[0x81, 0x00, 0x60, 0x07]); // VLAN 7, priority 3
    sender.send(&head, &packet);
    assert_eq!(sender.flush(), 0);
    let (mut came, mut room) = ([0; HEAD], [0; 1500]);
    let began = Instant::now();
    loop {
        match receiver.receive(&mut came, &mut room).unwrap() {
            Some(length) if room[..length].ends_with(b"tagged") => break,
            _ => thread::sleep(Duration::from_millis(5)),
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{}", router.output());
    }
    assert_eq!(came[10..28], head[10..28]);
    let (code, output) = router.end();
    assert!(code == Some(0) && output.contains("unmatched (upstream): "), "it passed the queue:\n{output}");
}

/// Classes by what precedes an IP packet in its frame, in the order of the frames below.
const BY_FRAME: &str = r#"
[[classes]]
name = "qinq"
match = { outer-vlan = 7, vlan = "5..6", pcp = 1 }
dscp = "AF41"
pcp = 4
[[classes]]
name = "vlan"
match = { vlan = 7 }
dscp = "EF"
pcp = 5
[[classes]]
name = "mpls"
match = { mpls-label = 0x12345, mpls-tc = 5, destination-ports = 77 }
dscp = "CS3"
mpls-tc = 2
[[classes]]
name = "pppoe"
match = { pppoe-session = "4660..4661" }
dscp = "AF11"
"#;

/// Frames of the standards' formats (IEEE 802.1Q and 802.1ad, RFC 3032, RFC 2516): the headers between
/// addresses and packet, before the router and after it. The kernel removes the outer tag.
#[test]
fn packets_behind_tags_labels_and_sessions_are_classified_and_marked() {
    let Some(lab) = Lab::new() else { return };
    let mut packet = Vec::new();
    PacketBuilder::ipv4(LEFT, RIGHT, 64).udp(7, 77).write(&mut packet, &[7; 30]).unwrap();
    let frames: [(&str, &[u8], &[u8], &str); 5] = [
        (
            "qinq",
            &[0x88, 0xa8, 0x60, 7, 0x81, 0, 0x20, 5, 0x08, 0],
            &[0x88, 0xa8, 0x80, 7, 0x81, 0, 0x20, 5, 0x08, 0],
            "AF41",
        ),
        ("vlan", &[0x81, 0, 0x60, 7, 0x08, 0], &[0x81, 0, 0xa0, 7, 0x08, 0], "EF"),
        (
            "mpls",
            &[0x88, 0x47, 0x12, 0x34, 0x5a, 64, 0, 1, 1, 63],
            &[0x88, 0x47, 0x12, 0x34, 0x54, 64, 0, 1, 1, 63],
            "CS3",
        ),
        (
            "pppoe",
            &[0x88, 0x64, 0x11, 0, 0x12, 0x34, 0, 60, 0, 0x21],
            &[0x88, 0x64, 0x11, 0, 0x12, 0x34, 0, 60, 0, 0x21],
            "AF11",
        ),
        ("unmatched", &[0x81, 0, 0, 8, 0x08, 0], &[0x81, 0, 0, 8, 0x08, 0], "CS0"),
    ];
    let config = CONFIG.replacen("[[classes]]", &format!("{BY_FRAME}[[classes]]"), 1);
    let router = lab.start(&lab.write(&config), &[]);
    let [mut sender, mut receiver] = lab.raw();
    let (mut came, mut room) = ([0; HEAD], [0; 1500]);
    for (class, before, after, codepoint) in frames {
        let (kind, headers) = before.split_first_chunk().unwrap();
        sender.send(&head(*kind), &[headers, &packet].concat());
        assert_eq!(sender.flush(), 0);
        let began = Instant::now();
        let length = loop {
            match receiver.receive(&mut came, &mut room).unwrap() {
                Some(length) if room[..length].ends_with(&[7; 30]) => break length,
                _ => thread::sleep(Duration::from_millis(5)),
            }
            assert!(began.elapsed() < Duration::from_secs(10), "{class}: {}", router.output());
        };
        // The kernel takes out a tag again.
        let tag = if came[TAG] == [0; 4] { &[][..] } else { &came[TAG] };
        assert_eq!([tag, attached(&came)].concat(), after, "{class}");
        let fields = parse(&room[..length]).unwrap();
        assert_eq!(fields.dscp, codepoint.parse::<Dscp>().unwrap(), "{class}");
        assert_eq!(fields.tuple.destination_port, 77);
    }
    let (code, output) = router.end();
    assert_eq!(code, Some(0), "{output}");
    // The hosts' kernels send untagged packets of their own, such as those that look for IPv6 neighbors.
    for (class, ..) in frames.iter().filter(|(class, ..)| *class != "unmatched") {
        assert!(output.contains(&format!("{class} (upstream): 1 packets, 1 sent")), "{class}\n{output}");
    }
    assert!(output.contains("unmatched (upstream): "), "{output}");
}

#[test]
fn an_interface_may_go_down_but_not_away() {
    let Some(lab) = Lab::new() else { return };
    let mut router = lab.start(&lab.write(CONFIG), &[]);
    let namespace = &lab.names[1];
    ip(&format!("-n {namespace} link set in0 down")).unwrap();
    thread::sleep(Duration::from_millis(200));
    ip(&format!("-n {namespace} link set in0 up")).unwrap();
    lab.transfer(100_000);
    ip(&format!("-n {namespace} link del in0")).unwrap();
    router.says("error: a device disappeared");
    assert_eq!(router.child.wait().unwrap().code(), Some(1), "{}", router.output());
}

/// Two TUN devices between two networks, with the rules that docs/perhop-router.md names.
#[test]
fn what_the_kernel_routes_to_tun_devices_passes() {
    let Some(lab) = Lab::new() else { return };
    let [left, router, right] = &lab.names;
    let all = |commands: &[String]| commands.iter().try_for_each(|command| ip(command));
    all(&[
        format!("-n {left} addr flush dev a0"),
        format!("-n {left} addr add 10.77.0.1/32 dev a0"),
        format!("-n {left} route add 10.77.0.2/32 dev a0"),
        format!("-n {right} addr flush dev b0"),
        format!("-n {right} addr add 10.77.0.2/32 dev b0"),
        format!("-n {right} route add 10.77.0.1/32 dev b0"),
        format!("-n {router} route add 10.77.0.1/32 dev in0"),
        format!("-n {router} route add 10.77.0.2/32 dev out0"),
    ])
    .unwrap();
    let settings = "echo 1 > /proc/sys/net/ipv4/ip_forward; for one in in0 out0; do \
                    echo 1 > /proc/sys/net/ipv4/conf/$one/proxy_arp; done";
    if let Err(why) = lab.shell(1, settings) {
        eprintln!("skipped: no forwarding here: {why}");
        return;
    }
    let router_at_work = match lab.try_start(&lab.write(&of_tun()), &[], "forwarding between tun-in (inside)")
    {
        Ok(router) => router,
        Err(output) if output.contains("error: tun-in: ") => {
            eprintln!("skipped: no TUN devices here: {output}");
            return;
        }
        Err(output) => panic!("{output}"),
    };
    all(&[
        format!("-n {router} route add default dev tun-in table 100"),
        format!("-n {router} route add default dev tun-out table 101"),
        format!("-n {router} rule add iif in0 lookup 100"),
        format!("-n {router} rule add iif out0 lookup 101"),
    ])
    .unwrap();
    lab.transfer(1_000_000);
    let (code, output) = router_at_work.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("gold (upstream): ") && output.contains("unmatched (downstream): "), "{output}");
}

#[test]
fn mistakes_end_with_2_and_one_line() {
    let folder = std::env::temp_dir().join(format!("perhop-router-{}-mistakes", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("r.toml");
    let router = || Command::new(env!("CARGO_BIN_EXE_perhop-router"));
    std::fs::write(&path, CONFIG.replace("limit", "limti")).unwrap();
    fails(
        router().arg(&path),
        2,
        "r.toml:15: upstream.queue.limti: unknown key `limti`; did you mean `limit`?",
    );
    std::fs::write(&path, CONFIG.replace("nobody", "nobody-at-all")).unwrap();
    fails(router().arg("--check").arg(&path), 2, "there is no user `nobody-at-all`");
    std::fs::write(&path, CONFIG).unwrap();
    let checked = router().arg("--check").arg(&path).output().unwrap();
    assert_eq!((checked.status.code(), checked.stderr.len()), (Some(0), 0));
    fails(router().arg(folder.join("none.toml")), 2, "none.toml: No such file");
    fails(&mut router(), 2, "Usage");
    fails(router().arg(&path).arg("--capture-drops"), 2, "--capture");
    std::fs::write(&path, CONFIG.replace("in0", "nosuchdevice")).unwrap();
    fails(router().arg(&path), 1, "nosuchdevice (inside): ");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_missing_capability_is_named() {
    let Some(lab) = Lab::with_other_users() else { return };
    let config = lab.write(&CONFIG.replace(USER, ""));
    let mut command = lab.command(&["setpriv", "--reuid=65534", "--clear-groups", "--"]);
    fails(command.arg(config), 1, "in0 (inside): the capability CAP_NET_RAW is missing");
}

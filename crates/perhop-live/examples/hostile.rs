//! A bridge under attack: `hostile SECONDS [SEED]` sends valid, truncated and hostile packets into one as
//! fast as the machine can, over real interfaces in a private network namespace, and checks in the end that
//! every frame is accounted for.
//!
//! Needs root, or an ordinary user's right to namespaces (`unshare --user --map-root-user --net hostile 60`),
//! and iproute2.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a program that prints, and silences the kernel"
)]

#[path = "../../perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../tests/common/script.rs"]
mod script;

use std::error::Error;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use perhop_core::{Duration, Instant, Rng};
use perhop_live::device::{Device, Ethernet};
use perhop_live::encapsulation::TYPE;
use perhop_live::{Clock, HEAD, Head, Hop, Loss, MeterSpec, Plane, PlaneSpec, Report, Runner, Watcher};
use script::Choices;

/// The least interval between two progress lines.
const PROGRESS: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().ok_or("usage: hostile SECONDS [SEED]")?.parse()?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    // Nobody but us is to send anything; a kernel without IPv6 sends nothing of its own.
    let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    for command in [
        "link add gen0 type veth peer name in0",
        "link add end0 type veth peer name out0",
        "link set gen0 up",
        "link set in0 up",
        "link set end0 up",
        "link set out0 up",
    ] {
        let status = Command::new("ip").args(command.split(' ')).status()?;
        if !status.success() {
            return Err(format!("ip {command}: {status}").into());
        }
    }
    let ends = Ethernet::bridge(["gen0", "end0"]).map_err(|(side, error)| format!("end {side}: {error}"))?;
    let sides = Ethernet::bridge(["in0", "out0"]).map_err(|(side, error)| format!("side {side}: {error}"))?;
    let (stop, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
    let sent = [AtomicU64::new(0), AtomicU64::new(0)];
    let clock = Clock::start();
    let mut runner = Runner::new(Plane::new(spec(), seed), sides, clock);
    let mut telling = Telling::default();
    let end = Instant::ZERO + Duration::from_secs(seconds);
    thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let (sent, stopped) = (&sent, &stopped);
        let [left, right] = ends;
        let generator = scope.spawn(move || generate([left, right], sent, stopped, seed));
        runner.run(end, &stop, &mut telling)?;
        stopped.store(true, Ordering::Relaxed);
        generator.join().expect("the generator does not panic");
        // What is under way arrives; the longest queue is empty long before.
        runner.run(end + Duration::from_secs(5), &stop, &mut telling)?;
        Ok(())
    })?;
    conclude(&runner, &sent, clock)
}

/// Sends whatever there is, by both interfaces, and throws away what comes out of them.
fn generate(mut ends: [Ethernet; 2], sent: &[AtomicU64; 2], stopped: &AtomicBool, seed: u64) {
    let mut rng = Rng::stream(seed, "hostile");
    let mut bytes = [0; 96];
    let (mut packet, mut room, mut head) = (Vec::new(), vec![0; 2048], [0; HEAD]);
    while !stopped.load(Ordering::Relaxed) {
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&rng.next_u64().to_ne_bytes());
        }
        script::packet(&mut Choices::new(&bytes), &mut packet);
        packet.truncate(1500);
        let kind: [u8; 2] =
            if packet.first().is_some_and(|first| first >> 4 == 6) { [0x86, 0xdd] } else { [0x08, 0x00] };
        let mut out: Head = [0; HEAD];
        out[TYPE].copy_from_slice(&kind);
        let side = (rng.next_u64() & 1) as usize;
        ends[side].send(&out, &packet);
        if ends[side].flush() == 0 {
            sent[side].fetch_add(1, Ordering::Relaxed);
        }
        for end in &mut ends {
            while let Ok(Some(_)) = end.receive(&mut head, &mut room) {}
        }
    }
}

/// Both directions meet a meter and two queues, one of several classes; a direction's link is slower than its
/// senders.
fn spec() -> PlaneSpec {
    let link = |name, rate, queue| script::link(name, rate, Duration::from_millis(2), queue);
    let row = |rows: &[(&'static str, &'static str)], name: &str| {
        *rows.iter().find(|(known, _)| *known == name).expect("a registered block")
    };
    let rio = script::aqm(row(parameters::AQMS, "rio"));
    let drr = script::scheduler(row(parameters::SCHEDULERS, "drr"));
    let stream = |device| {
        let links = [2 * device, 2 * device + 1].map(Hop::Link);
        script::across(device, vec![Hop::Meter(device), links[0], links[1]])
    };
    let meter = |side: usize| MeterSpec {
        name: format!("meter {side}"),
        params: script::meter(row(parameters::METERS, "token-bucket")),
        rate: "1Gbps".parse().expect("a rate"),
    };
    PlaneSpec {
        devices: 2,
        mtu: 1500,
        buffers: 4096,
        window: (Instant::ZERO, Instant::NEVER),
        links: vec![
            link("up", "100Mbps", rio.clone()),
            link("up, classes", "50Mbps", drr.clone()),
            link("down", "20Mbps", rio),
            link("down, classes", "1Gbps", drr),
        ],
        wires: vec![],
        meters: vec![meter(0), meter(1)],
        controls: vec![],
        streams: vec![stream(0), stream(1)],
        ..PlaneSpec::default()
    }
}

/// Checks packet conservation at intervals.
#[derive(Default)]
struct Telling {
    next: Instant,
}

impl Watcher for Telling {
    fn next(&self) -> Instant {
        self.next
    }
    fn watch(&mut self, plane: &mut Plane, _: &mut Report, now: Instant) {
        plane.balance().expect("every packet is accounted for");
        println!("{:.0} s: {} packets", now.as_secs_f64(), plane.counters().all_read());
        self.next = now + PROGRESS;
    }
}

fn conclude(runner: &Runner<Ethernet, 2>, sent: &[AtomicU64; 2], clock: Clock) -> Result<(), Box<dyn Error>> {
    let (plane, report) = (runner.plane(), runner.report());
    plane.balance()?;
    let counters = plane.counters();
    let aside: u64 = report
        .aside
        .iter()
        .map(|aside| aside.passed.packets + aside.unpassed + aside.merged + aside.too_long + aside.overrun)
        .sum();
    let sent: u64 = sent.iter().map(|sent| sent.load(Ordering::Relaxed)).sum();
    let seconds = clock.now().as_secs_f64();
    println!(
        "sent {sent} frames ({:.0} a second): {} read, {aside} never came to the plane",
        sent as f64 / seconds,
        counters.all_read()
    );
    for why in Loss::all().filter(|&why| counters.lost(why) > 0) {
        println!("  lost, {}: {}", why.name(), counters.lost(why));
    }
    let left: u64 = counters.devices().iter().map(|(_, left)| left.packets).sum();
    println!("  left: {left}; inside: {}", plane.inside());
    if sent != counters.all_read() + aside || plane.inside() != 0 {
        return Err("packets are not conserved".into());
    }
    println!("every frame is accounted for");
    Ok(())
}

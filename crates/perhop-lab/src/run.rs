//! A run: builds the place, starts hosts and router, waits for the end, and says what was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use nix::sys::prctl::{set_pdeathsig, set_timerslack};
use nix::sys::signal::Signal;
use nix::sys::utsname::uname;
use nix::time::{ClockId, clock_gettime};
use perhop_core::control::WindowSource;
use perhop_core::{Duration, Instant};
use perhop_live::device::AnyDevice;
use perhop_live::{Clock, Loss, Plane, Report, Runner, StreamCounts, set_fifo};
use perhop_scenario::Scenario;
use perhop_sim::{FlowOutcome, Network, Outcome};

use crate::error::LabError;
use crate::hosts::{self, Begin, Joint, Received, Sent, Shared};
use crate::joint;
use crate::observer::{Glimpses, Observed, Observer, Stock};
use crate::report::{Drops, Glimpse, LabReport, Late};
use crate::sandbox;
use crate::setting::{Kind, Setting};
use crate::topology;

/// How a run is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Starts, and chance in the router, are those that a simulation draws with this seed.
    pub seed: u64,
    /// Give the router real-time priority where that is allowed.
    pub real_time: bool,
    /// How often those who watch are told how it goes; never unless given.
    pub watch: Option<Duration>,
    /// End when the process does that started this one.
    pub die_with_parent: bool,
    /// How the hosts are joined to the router; by TUN devices where that is possible unless given.
    pub joint: Option<Joint>,
}

/// The router's real-time priority: above all who have none, below the kernel's own threads.
const PRIORITY: i32 = 10;

/// What is allowed of the 99th percentile of lateness, and of a standstill, however short round trips are.
const LEAST_LATENESS: Duration = Duration::from_millis(1);
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// Glimpses that wait for a watcher at most.
const GLIMPSES: usize = 16;

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was measured, as a simulation tells it.
    pub outcome: Outcome,
    /// How well it went.
    pub report: LabReport,
}

/// The kernel is asked for windows and round trips at least so often, and at most.
const ASKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// Runs a scenario on real packets, in real time. `stop` ends it early, and `watch` is told how it goes. An ordinary user's
/// process must have one thread.
///
/// # Errors
/// What the scenario asks for and no kernel has; what this system lacks; what went wrong.
pub fn run(
    scenario: &Scenario,
    options: Options,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Glimpse),
) -> Result<Run, LabError> {
    let network = scenario.network();
    let mut setting = Setting::new(scenario, &network, options.seed)?;
    sandbox::probe()?;
    let (joint, why) = joint::choose(options.joint)?;
    if let Some(why) = why {
        setting
            .notes
            .push(format!("{why}, so the hosts are joined to the router by Ethernet and packet sockets"));
    }
    let setting = setting;
    sandbox::enter_user_namespace()?;
    if options.die_with_parent {
        set_pdeathsig(Signal::SIGKILL).map_err(LabError::doing("tying this process to its parent"))?;
    }
    check_congestion(&setting)?;
    let spec = topology::plane(&network, &setting.flows, setting.mtu);
    let plane = Plane::new(spec, options.seed);
    let shared = Shared::new(setting.flows.len());
    let windows = plane.windows();
    thread::scope(|scope| {
        let (sending_tells, sending) = channel();
        let (receiving_tells, receiving) = channel();
        let (join_sending, sending_joined) = channel();
        let (join_receiving, receiving_joined) = channel();
        let (start_sending, go_sending) = channel();
        let (start_receiving, go_receiving) = channel();
        let asks = asks(&network);
        let sender = scope.spawn({
            let (setting, shared, windows) = (&setting, &shared, Arc::clone(&windows));
            move || {
                let begin = Begin { tell: sending_tells, joined: sending_joined, go: go_sending };
                hosts::send(setting, shared, windows, asks, (joint, begin)).inspect_err(|_| shared.stop())
            }
        });
        let catcher = scope.spawn({
            let (setting, shared) = (&setting, &shared);
            move || {
                let begin = Begin { tell: receiving_tells, joined: receiving_joined, go: go_receiving };
                hosts::receive(setting, shared, (joint, begin)).inspect_err(|_| shared.stop())
            }
        });
        let devices = joint::join(&setting, [&sending, &receiving], [&join_sending, &join_receiving]);
        // Whoever still waits for the other's wire waits no more.
        drop((join_sending, join_receiving));
        let routed = devices.transpose().map(|devices| {
            let devices = devices?;
            let clock = Clock::start();
            let _ = start_sending.send(clock);
            let _ = start_receiving.send(clock);
            let sizes = setting.flows.iter().map(|flow| (flow.payload, flow.packet)).collect();
            let times = (setting.warmup, setting.duration, network.probe_interval);
            let (to, glimpses) = sync_channel(GLIMPSES);
            let groups = setting.flows.iter().map(|flow| flow.group).collect();
            let told = Glimpses { interval: options.watch, to, groups };
            let mut observer = Observer::new(&shared, Arc::clone(&windows), times, sizes, told);
            let runner = Runner::new(plane, devices, clock);
            let (shared, duration) = (&shared, setting.duration);
            // A thread of its own, which takes its priority and its CPU time with it.
            let router = scope.spawn(move || {
                let routed = route(runner, duration, options.real_time, stop, &mut observer);
                shared.stop();
                routed.map(|routed| (routed, observer.ended()))
            });
            // The observer's end of the channel goes with the router.
            for glimpse in glimpses {
                watch(&glimpse);
            }
            router.join().expect("the router does not panic")
        });
        drop((start_sending, start_receiving));
        let sent = sender.join().expect("the sending host does not panic")?;
        let received = catcher.join().expect("the receiving host does not panic")?;
        let (routed, observed) = routed.expect("both hosts moved in")?;
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        routed.plane.balance().map_err(LabError::Unbalanced)?;
        Ok(told(&network, &setting, scenario, observed, &routed, &sent, &received))
    })
}

/// How often the kernel is asked: often enough for every control that looks at the senders' windows, and for the probes.
fn asks(network: &Network) -> Duration {
    let controls = network.paths.iter().filter_map(|path| path.control.as_ref());
    let by_window = controls.filter(|control| control.window == WindowSource::Sender);
    let quarter = |span: Duration| Duration::from_nanos(span.as_nanos() / 4);
    let wanted =
        by_window.map(|control| quarter(control.interval)).chain(network.probe_interval.map(quarter));
    wanted.fold(ASKS.1, Duration::min).max(ASKS.0)
}

/// Every congestion control that the flows ask for is one that the kernel has.
fn check_congestion(setting: &Setting) -> Result<(), LabError> {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_err(LabError::doing("asking for the kernel's congestion controls"))?;
    let known: Vec<&str> = available.split_whitespace().collect();
    match setting.congestions().find(|wanted| !known.contains(wanted)) {
        None => Ok(()),
        Some(wanted) => Err(LabError::Unfit(format!(
            "flows.live.congestion: this kernel has no `{wanted}` (it has {}); take one of these, or load the module tcp_{wanted}",
            known.join(", ")
        ))),
    }
}

/// What the router has to tell at the end.
struct Routed {
    plane: Plane,
    report: Report,
    real_time: bool,
    cpu: Duration,
    wall: Duration,
}

fn route(
    mut runner: Runner<AnyDevice, 2>,
    duration: Duration,
    real_time: bool,
    stop: &AtomicBool,
    observer: &mut Observer<'_>,
) -> Result<Routed, LabError> {
    set_timerslack(1).map_err(LabError::doing("asking for exact timers"))?;
    let real_time = real_time && set_fifo(PRIORITY).is_ok();
    let clock = Clock::start();
    runner.run(Instant::ZERO + duration, stop, observer).map_err(LabError::doing("forwarding packets"))?;
    let wall = clock.now().since(Instant::ZERO);
    let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_err(LabError::doing("reading the thread's CPU time"))?;
    let cpu = Duration::from_nanos(std::time::Duration::from(cpu).as_nanos() as u64);
    let (plane, report) = runner.into_parts();
    Ok(Routed { plane, report, real_time, cpu, wall })
}

fn told(
    network: &Network,
    setting: &Setting,
    scenario: &Scenario,
    observed: Observed,
    routed: &Routed,
    sent: &Sent,
    received: &Received,
) -> Run {
    let Observed { series, at_warmup, at_end, links } = observed;
    let measured = network.duration - network.warmup;
    let flows = network.flows.iter().zip(&setting.flows).map(|(spec, flow)| {
        let number = flow.number;
        let new = |stock: fn(&Stock, usize) -> u64| stock(&at_end, number) - stock(&at_warmup, number);
        let on_wire = |data: u64| data as f64 * f64::from(flow.packet) / f64::from(flow.payload);
        let bps = |data: u64| on_wire(data) * 8.0 / measured.as_secs_f64();
        let data = new(|stock, number| stock.received[number]);
        let by_color = |of: fn(&StreamCounts) -> [u64; 3]| {
            let (now, then) = (of(&at_end.data[number]), of(&at_warmup.data[number]));
            std::array::from_fn(|color| now[color] - then[color])
        };
        let mut marked = by_color(|counts| counts.marked);
        if spec.marking == perhop_sim::Marking::None {
            marked[spec.color.index()] = new(|stock, number| stock.data[number].arrived.packets);
        }
        let transit = received.transits.get(number).and_then(Option::as_ref);
        FlowOutcome {
            started: flow.start,
            delivered_packets: data / u64::from(flow.payload),
            delivered_bytes: on_wire(data) as u64,
            throughput_bps: bps(data),
            acked_bps: bps(sent.acked.get(number).copied().unwrap_or(0)),
            mean_transit_s: transit.and_then(perhop_sim::transport::transit::TransitMeter::mean),
            jitter_s: transit.and_then(perhop_sim::transport::transit::TransitMeter::jitter),
            marked,
            dropped: by_color(|counts| counts.dropped),
            sender: sent.statistics.get(number).cloned().unwrap_or_default(),
        }
    });
    let flows = flows.collect();
    let books = routed.plane.books();
    let outcome = Outcome { events: routed.report.slept, hops: books.all_read(), flows, links, series };
    let late = &routed.report.lateness;
    let shortest = topology::shortest_round_trip(network);
    // Hosts that are next to each other notice no less than others that a machine is no router.
    let tenth = Duration::from_nanos(shortest.as_nanos() / 10).max(LEAST_LATENESS);
    let mut report = LabReport {
        invalid: Vec::new(),
        notes: setting.notes.clone(),
        late: Late {
            p50: late.quantile(0.5),
            p90: late.quantile(0.9),
            p99: late.quantile(0.99),
            p999: late.quantile(0.999),
            largest: late.largest(),
            pause: late.longest_pause(),
            allowed: scenario.live.max_lateness.unwrap_or(tenth),
        },
        real_time: routed.real_time,
        cpu: routed.cpu,
        wall: routed.wall,
        books: books.clone(),
        drops: Drops {
            to_router: sent.drops.to_router
                + received.drops.to_router
                + routed
                    .report
                    .aside
                    .iter()
                    .map(|aside| aside.overrun + aside.merged + aside.too_long)
                    .sum::<u64>(),
            to_hosts: sent.drops.to_host + received.drops.to_host,
            no_buffer: books.lost(Loss::NoBuffer),
            unsent: routed.report.unsent,
        },
        kernel: uname().map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned()),
        senders: senders(setting, scenario),
    };
    if let [first, ..] = &sent.unconnected[..] {
        let (flows, which) =
            (sent.unconnected.len(), if sent.unconnected.len() > 1 { ", and others" } else { "" });
        report.notes.push(format!(
            "{flows} flow(s) had not connected by the end ({first}{which}): their SYNs were dropped, or under way"
        ));
    }
    if let Some(late) = network.flows.iter().find(|flow| flow.start.0 >= Instant::ZERO + network.duration) {
        report.notes.push(format!("{} starts after the end", late.name));
    }
    report.invalid = faults(&report, shortest, sent);
    Run { outcome, report }
}

/// For each group, what sends.
fn senders(setting: &Setting, scenario: &Scenario) -> Vec<String> {
    let name = |group| {
        let flow = setting.flows.iter().find(|flow| flow.group == group)?;
        Some(match &flow.kind {
            Kind::Tcp { congestion, .. } => format!("Linux TCP, {congestion}"),
            Kind::Datagrams { .. } => "perhop's own, over UDP".into(),
        })
    };
    (0..scenario.flows.len()).map(|group| name(group).unwrap_or_default()).collect()
}

/// What the machine did that could have changed the result.
fn faults(report: &LabReport, shortest: Duration, sent: &Sent) -> Vec<String> {
    let LabReport { late, drops, .. } = report;
    let mut faults = Vec::new();
    let millis = |span: Duration| format!("{:.3} ms", span.as_secs_f64() * 1e3);
    if late.p99 > late.allowed {
        let (p99, allowed) = (millis(late.p99), millis(late.allowed));
        faults.push(format!(
            "one packet in a hundred left the router {p99} late or more; {allowed} are allowed"
        ));
    }
    let still = shortest.max(LEAST_PAUSE);
    if late.pause > still {
        let (pause, still) = (millis(late.pause), millis(still));
        faults.push(format!(
            "the router stood still for {pause}; {still} are allowed, a round trip without queues"
        ));
    }
    let outside = [
        (drops.to_router, "in the kernel's queue to the router"),
        (drops.to_hosts, "in the kernel's queue to a host"),
        (drops.no_buffer, "for want of a buffer in the router"),
        (drops.unsent, "by a device that took no packet"),
    ];
    for (packets, place) in outside.into_iter().filter(|(packets, _)| *packets > 0) {
        faults.push(format!("{packets} packets were lost {place}, where the scenario has no queue"));
    }
    faults.extend(sent.failed.iter().map(|failed| format!("a flow broke: {failed}")));
    faults.extend(sent.behind.iter().map(|(flow, behind)| {
        format!("the sending host was {} behind with the packets of {flow} in the end", millis(*behind))
    }));
    faults
}

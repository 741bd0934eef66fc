//! A run: builds the namespaces, starts hosts and router, waits for the end, and returns what was measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

use nix::sys::prctl::{set_pdeathsig, set_timerslack};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use perhop_core::control::WindowSource;
use perhop_core::{Duration, Instant};
use perhop_live::device::AnyDevice;
use perhop_live::{Clock, Plane, Runner, set_fifo};
use perhop_scenario::Scenario;
use perhop_sim::Network;

use crate::error::LabError;
use crate::hosts::{self, Begin, Joint, Progress, Shared, Users};
use crate::joint;
use crate::observer::{Glimpses, Observer, Samples};
use crate::outcome::{Measured, Routed, Run};
use crate::report::Glimpse;
use crate::sandbox;
use crate::setting::Setting;
use crate::setting::Side;
use crate::sockets;
use crate::topology;

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Start times, and random streams in the router, are those of a simulation with this seed.
    pub seed: u64,
    /// Give the router real-time priority where that is allowed.
    pub real_time: bool,
    /// How often to report a glimpse of the run. Default: never.
    pub watch: Option<Duration>,
    /// End when the parent process ends.
    pub die_with_parent: bool,
    /// How the hosts are joined to the router. Default: by TUN devices where that is possible.
    pub joint: Option<Joint>,
}

/// The real-time priority of the router, and of what sends through a queue of the kernel: above all normal
/// threads, below the kernel's own.
pub(crate) const PRIORITY: i32 = 10;

/// How many glimpses may wait for the watcher.
const GLIMPSES: usize = 16;

/// The shortest and the longest interval at which the kernel is asked for windows and round-trip times.
const ASKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// Runs a scenario on real packets, in real time. `stop` ends it early; `watch` receives glimpses of it. An
/// ordinary user's process must have one thread.
///
/// # Errors
/// What the scenario needs and no kernel has; what this system lacks; what failed.
pub fn run(
    scenario: &Scenario,
    options: Options,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Glimpse),
) -> Result<Run, LabError> {
    let network = scenario.network();
    let (setting, joint) = prepare(scenario, &network, options)?;
    let plane = Plane::new(topology::plane(&network, &setting), options.seed);
    let shared = Shared::new(setting.flows.len());
    let users = Users::new(&network, &setting, options.seed);
    let lab = Lab { network: &network, setting: &setting, shared: &shared, options, stop };
    let windows = plane.windows();
    let asks = asks(&network);
    let common = (&setting, &shared, &users);
    let measured = thread::scope(|scope| {
        let windows = &windows;
        let start = |side, begin| {
            let run = move || hosts::run(side, common, windows, asks, (joint, begin));
            scope.spawn(move || run().inspect_err(|_| lab.shared.stop()))
        };
        let (begin, sending) = channels();
        let sender = start(Side::Sending, begin);
        let (begin, receiving) = channels();
        let catcher = start(Side::Receiving, begin);
        let progress = [&sending.progress, &receiving.progress];
        let devices = joint::join(&setting, progress, [&sending.joined, &receiving.joined]);
        // A host that still waits for its interface stops waiting.
        drop((sending.joined, receiving.joined));
        let routed = devices.transpose().map(|devices| {
            let devices = devices?;
            let clock = Clock::start();
            let _ = sending.start.send(clock);
            let _ = receiving.start.send(clock);
            lab.forward(Runner::new(plane, devices, clock), watch)
        });
        drop((sending.start, receiving.start));
        let sent = sender.join().expect("the sending host does not panic")?;
        let received = catcher.join().expect("the receiving host does not panic")?;
        let (routed, samples) = routed.expect("both hosts moved in")?;
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        routed.plane.balance().map_err(LabError::Unbalanced)?;
        Ok((sent, received, routed, samples))
    });
    let (sent, received, routed, samples) = measured?;
    let applications = users.outcomes(&network, &setting);
    let (network, setting, routed, hosts) = (&network, &setting, &routed, [sent, received]);
    let measured = Measured { network, setting, scenario, samples, routed, hosts, applications };
    Ok(measured.into_run())
}

/// Checks that hosts can run a scenario: that it asks for nothing that no kernel has. Of this system it asks
/// nothing.
///
/// # Errors
/// What no kernel has, with its key.
pub fn check(scenario: &Scenario, seed: u64) -> Result<(), LabError> {
    Setting::new(scenario, &scenario.network(), seed).map(drop)
}

/// Checks that this system can run the scenario, and enters a user namespace.
fn prepare(scenario: &Scenario, network: &Network, options: Options) -> Result<(Setting, Joint), LabError> {
    let mut setting = Setting::new(scenario, network, options.seed)?;
    sandbox::check_kernel()?;
    let (joint, why) = joint::choose(options.joint)?;
    if let Some(why) = why {
        setting
            .notes
            .push(format!("{why}, so the hosts are joined to the router by Ethernet and packet sockets"));
    }
    if let (Joint::Packet, Some(flow)) = (joint, setting.flows.iter().find(|flow| flow.has_own_tcp())) {
        return Err(LabError::Unfit(format!(
            "flows[{}].live: perhop's own TCP needs TUN devices (--device tun, and /dev/net/tun)",
            flow.group
        )));
    }
    sockets::allow(&setting)?;
    sandbox::enter_user_namespace()?;
    if options.die_with_parent {
        set_pdeathsig(Signal::SIGKILL).map_err(LabError::doing("tying this process to its parent"))?;
    }
    check_congestion(&setting)?;
    Ok((setting, joint))
}

/// The main thread's ends of the channels to a host.
struct HostChannels {
    progress: Receiver<Progress>,
    joined: Sender<()>,
    start: Sender<Clock>,
}

fn channels() -> (Begin, HostChannels) {
    let ((to_main, progress), (joined, when_joined), (start, go)) = (channel(), channel(), channel());
    (Begin { progress: to_main, joined: when_joined, go }, HostChannels { progress, joined, start })
}

/// What the threads of a run share.
#[derive(Clone, Copy)]
struct Lab<'a> {
    network: &'a Network,
    setting: &'a Setting,
    shared: &'a Shared,
    options: Options,
    stop: &'a AtomicBool,
}

impl Lab<'_> {
    /// Forwards packets on a thread of its own, which takes its priority and its CPU time with it. Passes
    /// glimpses of the run to `watch`.
    fn forward(
        &self,
        runner: Runner<AnyDevice, 2>,
        watch: &mut dyn FnMut(&Glimpse),
    ) -> Result<(Routed, Samples), LabError> {
        let Self { network, setting, shared, options, stop } = *self;
        let (to, glimpses) = sync_channel(GLIMPSES);
        let watched = Glimpses { interval: options.watch, to };
        let columns = (network.flows.len(), network.probe_interval);
        let mut observer = Observer::new(shared, runner.plane().windows(), setting, columns, watched);
        thread::scope(|scope| {
            let router = scope.spawn(move || {
                let routed = route(runner, setting.duration, options.real_time, stop, &mut observer);
                shared.stop();
                routed.map(|routed| (routed, observer.samples))
            });
            // The observer's end of the channel is dropped with the router.
            for glimpse in glimpses {
                watch(&glimpse);
            }
            router.join().expect("the router does not panic")
        })
    }
}

/// Returns how often to ask the kernel: often enough for the probes and for every control that samples the
/// senders' windows.
pub(crate) fn asks(network: &Network) -> Duration {
    let controls = network.paths.iter().filter_map(|path| path.control.as_ref());
    let by_window = controls.filter(|control| control.window == WindowSource::Sender);
    let quarter = |span: Duration| Duration::from_nanos(span.as_nanos() / 4);
    let wanted = by_window
        .map(|control| quarter(control.interval.shortest()))
        .chain(network.probe_interval.map(quarter));
    wanted.fold(ASKS.1, Duration::min).max(ASKS.0)
}

/// Checks that the kernel has every congestion control that the flows need.
fn check_congestion(setting: &Setting) -> Result<(), LabError> {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_err(LabError::doing("asking for the kernel's congestion controls"))?;
    let known: Vec<&str> = available.split_whitespace().collect();
    match setting.congestions().find(|(_, wanted)| !known.contains(wanted)) {
        None => Ok(()),
        Some((group, wanted)) => Err(LabError::Unfit(format!(
            "flows[{group}].live.congestion: this kernel has no `{wanted}` (it has {}); take one of these, or load the module tcp_{wanted}",
            known.join(", ")
        ))),
    }
}

/// Runs the loop until the end and measures the time that it takes.
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
    let (plane, report, devices) = runner.into_parts();
    Ok(Routed { plane, report, devices: devices.into(), real_time, cpu, wall })
}

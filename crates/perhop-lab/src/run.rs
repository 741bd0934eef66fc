//! A run: builds the place, starts hosts and router, waits for the end, and says what was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use nix::sys::prctl::{set_pdeathsig, set_timerslack};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use perhop_core::control::WindowSource;
use perhop_core::{Duration, Instant};
use perhop_live::device::AnyDevice;
use perhop_live::{Clock, Plane, Runner, set_fifo};
use perhop_scenario::Scenario;
use perhop_sim::{Network, Outcome};

use crate::error::LabError;
use crate::hosts::{self, Begin, Joint, Shared};
use crate::joint;
use crate::observer::{Glimpses, Observer};
use crate::outcome::{Routed, told};
use crate::report::{Glimpse, LabReport};
use crate::sandbox;
use crate::setting::Setting;
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
    sandbox::look_at_kernel()?;
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
            let watched = Glimpses { interval: options.watch, to, groups };
            let mut observer = Observer::new(&shared, Arc::clone(&windows), times, sizes, watched);
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
    let wanted = by_window
        .map(|control| quarter(control.interval.shortest()))
        .chain(network.probe_interval.map(quarter));
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

//! From the command line to packets that are forwarded, and to the end.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration as Wait;

use caps::Capability;
use clap::Parser;
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::unistd::User;
use perhop_core::{Duration, Instant};
use perhop_live::device::{AnyDevice, Ethernet, Tun, TunSpec};
use perhop_live::{Changed, Clock, Fixed, Loss, Plane, PlaneSpec, Report, Runner, Watcher};
use perhop_scenario::{ScenarioError, notices_in};
use sd_notify::{NotifyState, notify};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::capture::{Capture, Writing};
use crate::config::{Config, Interface, Kind};
use crate::http::Server;
use crate::metrics::{Published, Reloads, Snapshot};
use crate::plan::{self, SIDES};
use crate::privileges;
use crate::summary::{Merged, Summary};

/// Keeps what was sold: meters, markers and queue rules between two interfaces of this host.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100, after_help = AFTER)]
struct Options {
    /// The configuration, in TOML
    config: PathBuf,
    /// Check the configuration and do nothing
    #[arg(long)]
    check: bool,
    /// Write every packet into this file, in the format pcapng
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Write only the packets that are dropped
    #[arg(long, requires = "capture")]
    capture_drops: bool,
}

const AFTER: &str = "SIGHUP reads the configuration again, without losing a packet; SIGTERM and SIGINT end with a summary. \
                     docs/router.md lists every key.\n\nExit codes: 0 well, 1 something failed, 2 a mistake in the \
                     configuration or the command.";

/// How often the run loop looks whether it is told something, and how often it tells something.
const TICK: Duration = Duration::from_millis(50);
const PUBLISH: Duration = Duration::from_secs(1);

/// The longest packet of a TUN device, and its queue in the kernel, unless told otherwise.
const TUN_MTU: u16 = 1500;
const TUN_QUEUE: u32 = 1000;

/// Why it does not run.
enum Failure {
    /// The user's mistake, in one line.
    Mistake(String),
    /// Something else.
    Failed(String),
}

type Outcome<T> = Result<T, Failure>;

fn failed(what: impl Display) -> Failure {
    Failure::Failed(what.to_string())
}

/// The program.
pub fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(answer) => {
            let _ = answer.print();
            return ExitCode::from(if answer.use_stderr() { 2 } else { 0 });
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Mistake(line)) => {
            warn(line);
            ExitCode::from(2)
        }
        Err(Failure::Failed(line)) => {
            warn(format_args!("error: {line}"));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Outcome<()> {
    let config = read(&options.config, Config::read).map_err(Failure::Mistake)?;
    let at =
        |key: &str, text: String| Failure::Mistake(format!("{}: {key}: {text}", options.config.display()));
    let user = config.user.as_deref().map(privileges::user).transpose().map_err(|text| at("user", text))?;
    if options.check {
        say(format_args!("{}: no mistakes found", options.config.display()));
        return Ok(());
    }
    let signals = Signals::new([SIGHUP, SIGTERM, SIGINT]).map_err(failed)?;
    let names = [config.inside.device.clone(), config.outside.device.clone()];
    let (devices, mtu) = open(&config)?;
    check_memory(&config, mtu)?;
    let server = config.metrics.map(|address| {
        let explain = |error: io::Error| failed(format_args!("metrics: cannot listen on {address}: {error}"));
        Server::bind(address).map_err(explain)
    });
    let server = server.transpose()?;
    let file = options.capture.as_deref().map(create).transpose()?;
    let (clock, seed) = (Clock::start(), config.seed);
    let plane = Plane::new(plan::plane(&config, mtu), config.seed);
    settle(&config, user.as_ref())?;

    // Threads begin here: what is above holds for all of them.
    let stop = Arc::new(AtomicBool::new(false));
    let (reloads, published) = <(Arc<Reloads>, Arc<Published>)>::default();
    let (orders, to_apply) = mpsc::channel();
    let (answers, applied) = mpsc::channel();
    let capture = file.map(|file| Capture::begin(file, &names, options.capture_drops, mtu, clock));
    let (capture, writing) = capture.transpose().map_err(failed)?.unzip();
    if let Some(server) = server {
        let published = Arc::clone(&published);
        start("metrics", move || server.serve(&published))?;
    }
    let loader =
        Loader { path: options.config.clone(), config, mtu, reloads: Arc::clone(&reloads), orders, applied };
    let stopper = Arc::clone(&stop);
    start("signals", move || loader.listen(signals, &stopper))?;
    let (next, publish) = (Instant::ZERO, Instant::ZERO);
    let mut overseer = Overseer {
        next,
        publish,
        to_apply,
        answers,
        published,
        reloads,
        capture,
        names,
        seed,
        warned: false,
    };
    let mut runner = Runner::new(plane, devices, clock);
    say(format_args!(
        "forwarding between {} (inside) and {} (outside), packets up to {mtu} bytes",
        overseer.names[0], overseer.names[1]
    ));
    tell(&[NotifyState::Ready, NotifyState::Status("forwarding")]);
    let ran = runner.run(Instant::NEVER, &stop, &mut overseer);
    tell(&[NotifyState::Stopping]);
    let (plane, report) = runner.into_parts();
    finish(&plane, &report, overseer, writing, ran)
}

/// Says how it was.
fn finish(
    plane: &Plane,
    report: &Report,
    overseer: Overseer,
    writing: Option<Writing>,
    ran: io::Result<()>,
) -> Outcome<()> {
    let Overseer { names, reloads, capture, .. } = overseer;
    drop(capture); // so that its file ends
    let written = writing.map(Writing::finish);
    let captured = written.as_ref().and_then(|written| written.as_ref().ok().copied());
    say(Summary { plane, report, names: &names, reloads: &reloads, captured });
    if let Some(Err(error)) = written {
        return Err(failed(format_args!("capture: {error}")));
    }
    ran.map_err(|error| failed(format_args!("a device is gone: {error}")))?;
    plane.balance().map_err(|unbalanced| failed(format_args!("packets are not conserved: {unbalanced}")))
}

#[expect(clippy::disallowed_methods, reason = "the router reads its configuration")]
fn read(
    path: &Path,
    parse: impl FnOnce(&str, &str) -> Result<Config, ScenarioError>,
) -> Result<Config, String> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{origin}: {error}"))?;
    let config = parse(&text, &origin).map_err(|error| error.to_string())?;
    for notice in notices_in(Some(&text), &origin, config.notices()) {
        warn(format_args!("warning: {notice}"));
    }
    Ok(config)
}

#[expect(clippy::disallowed_methods, reason = "the user names a file to write to")]
fn create(path: &Path) -> Outcome<File> {
    File::create(path).map_err(|error| failed(format_args!("capture: {}: {error}", path.display())))
}

/// Opens both devices, and tells the longest packet that both take.
fn open(config: &Config) -> Outcome<([AnyDevice; 2], u16)> {
    let sides = [&config.inside, &config.outside];
    if config.inside.kind == Kind::Tun {
        let [inside, outside] = sides.map(tun);
        let mtu = |side: &Interface| side.mtu.unwrap_or(TUN_MTU);
        return Ok(([inside?, outside?], mtu(sides[0]).min(mtu(sides[1]))));
    }
    let bridge = Ethernet::bridge([&sides[0].device, &sides[1].device]).map_err(|(side, error)| {
        let why = privileges::explain(&error, Capability::CAP_NET_RAW);
        failed(format_args!("{} ({}): {why}", sides[side].device, SIDES[side]))
    })?;
    let mtus = bridge.each_ref().map(Ethernet::mtu);
    if mtus[0] != mtus[1] {
        warn(format_args!(
            "warning: the interfaces' longest packets differ ({} and {} bytes); longer ones than {} are dropped",
            mtus[0],
            mtus[1],
            mtus[0].min(mtus[1])
        ));
    }
    Ok((bridge.map(AnyDevice::Ethernet), mtus[0].min(mtus[1])))
}

/// What the machine would not give ends here, in a line that says so.
fn check_memory(config: &Config, mtu: u16) -> Outcome<()> {
    let bytes = config.buffers as usize * usize::from(mtu);
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| {
        let (packets, megabytes) = (config.buffers, bytes / 1_000_000);
        failed(format_args!(
            "buffers: {packets} packets of {mtu} bytes need {megabytes} MB, which there are not"
        ))
    })
}

fn tun(side: &Interface) -> Outcome<AnyDevice> {
    let spec = TunSpec {
        name: side.device.clone(),
        mtu: side.mtu.unwrap_or(TUN_MTU),
        ipv4: side.ipv4.map(|address| (address.0, address.1)),
        ipv6: side.ipv6.map(|address| (address.0, address.1)),
        queue: side.queue_length.unwrap_or(TUN_QUEUE),
    };
    let opened = Tun::open(&spec).map_err(|error| {
        failed(format_args!("{}: {}", side.device, privileges::explain(&error, Capability::CAP_NET_ADMIN)))
    });
    opened.map(AnyDevice::Tun)
}

/// Takes the priority and the memory that are asked for, then gives away all privileges.
fn settle(config: &Config, user: Option<&User>) -> Outcome<()> {
    if config.lock_memory
        && let Err(errno) = mlockall(MlockAllFlags::MCL_CURRENT)
    {
        let why = privileges::explain(&denied(errno), Capability::CAP_IPC_LOCK);
        warn(format_args!("warning: lock-memory: {why}; going on without"));
    }
    if let Some(priority) = config.realtime
        && let Err(error) = perhop_live::set_fifo(priority)
    {
        let why = privileges::explain(&error, Capability::CAP_SYS_NICE);
        warn(format_args!("warning: realtime: {why}; going on without"));
    }
    privileges::drop_all(user).map_err(failed)
}

/// To lock more memory than is allowed fails with `ENOMEM`.
fn denied(errno: nix::errno::Errno) -> io::Error {
    match errno {
        nix::errno::Errno::ENOMEM => io::ErrorKind::PermissionDenied.into(),
        other => other.into(),
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Outcome<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop).map_err(failed)
}

/// Reads configurations beside the run loop.
struct Loader {
    path: PathBuf,
    config: Config,
    mtu: u16,
    reloads: Arc<Reloads>,
    orders: Sender<PlaneSpec>,
    applied: Receiver<Result<Changed, Fixed>>,
}

impl Loader {
    /// Waits for signals, until one ends the program.
    fn listen(mut self, mut signals: Signals, stop: &AtomicBool) {
        for signal in signals.forever() {
            if signal != SIGHUP {
                stop.store(true, Ordering::Relaxed);
                return;
            }
            let reloading = NotifyState::monotonic_usec_now();
            tell(&[NotifyState::Reloading].into_iter().chain(reloading).collect::<Vec<_>>());
            let status = match self.reload() {
                Ok(changed) => {
                    self.reloads.applied.fetch_add(1, Ordering::Relaxed);
                    let text = format!("reloaded {}: {}", self.path.display(), told(&changed));
                    say(&text);
                    text
                }
                Err(line) => {
                    self.reloads.refused.fetch_add(1, Ordering::Relaxed);
                    warn(format_args!("{line}; going on as before"));
                    format!("forwarding; refused: {line}")
                }
            };
            tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
        }
    }

    fn reload(&mut self) -> Result<Changed, String> {
        let config = read(&self.path, |text, origin| self.config.read_successor(text, origin))?;
        while self.applied.try_recv().is_ok() {} // an answer that came too late
        self.orders.send(plan::plane(&config, self.mtu)).map_err(|_| "the router is about to end")?;
        let answer = self.applied.recv_timeout(Wait::from_secs(10));
        let answer = answer.map_err(|_| "the run loop does not answer")?;
        let changed = answer.map_err(|fixed| format!("{}: {fixed}", self.path.display()))?;
        self.config = config;
        Ok(changed)
    }
}

fn told(changed: &Changed) -> String {
    let list = |what: &str, names: &[String]| {
        let names = if names.is_empty() { "none".into() } else { names.join(", ") };
        format!("new {what}: {names}")
    };
    format!("{}; {}; all else goes on", list("queues", &changed.queues), list("meters", &changed.meters))
}

/// What stands beside the run loop.
struct Overseer {
    next: Instant,
    publish: Instant,
    to_apply: Receiver<PlaneSpec>,
    answers: Sender<Result<Changed, Fixed>>,
    published: Arc<Published>,
    reloads: Arc<Reloads>,
    capture: Option<Capture>,
    names: [String; 2],
    seed: u64,
    warned: bool,
}

impl Overseer {
    /// Says once, and at once, why hardly anything passes. Not from this thread, which waits for nobody.
    fn warn_of_offload(&mut self, report: &Report) {
        let Some(side) = report.aside.iter().position(|aside| aside.merged > 0).filter(|_| !self.warned)
        else {
            return;
        };
        self.warned = true;
        let line = format!("warning: {}: {}", self.names[side], Merged(&self.names[side]));
        let _ = start("warning", move || warn(line));
    }
}

impl Watcher for Overseer {
    fn next(&self) -> Instant {
        self.next
    }

    fn look(&mut self, plane: &mut Plane, report: &mut Report, now: Instant) {
        self.next = now + TICK;
        self.warn_of_offload(report);
        if let Ok(spec) = self.to_apply.try_recv() {
            let _ = self.answers.send(plane.reload(spec, self.seed));
        }
        if now >= self.publish {
            self.publish = now + PUBLISH;
            let captured = self.capture.as_ref().map(Capture::counts);
            self.published.publish(Snapshot::of(plane, report, &self.names, &self.reloads, captured));
        }
    }

    #[inline]
    fn sent(&mut self, device: usize, packet: &[u8], now: Instant) {
        if let Some(capture) = &mut self.capture {
            capture.sent(device, packet, now);
        }
    }

    #[inline]
    fn lost(&mut self, device: usize, packet: &[u8], why: Loss, now: Instant) {
        if let Some(capture) = &mut self.capture {
            capture.lost(device, packet, why, now);
        }
    }
}

/// Tells the service manager, if there is one.
fn tell(states: &[NotifyState<'_>]) {
    let _ = notify(states);
}

/// Says a line to the user. One who does not listen is no reason to stop.
#[expect(clippy::disallowed_methods, reason = "the program speaks to its user here, and in `warn`")]
fn say(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

#[expect(clippy::disallowed_methods, reason = "the program speaks to its user here, and in `say`")]
fn warn(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

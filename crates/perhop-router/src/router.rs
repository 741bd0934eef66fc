//! From the command line to packets that are forwarded, and to the end.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;
use std::time::Duration as Wait;

use caps::Capability;
use clap::Parser;
use nix::sys::mman::{MlockAllFlags, mlockall};
use perhop_core::{Duration, Instant};
use perhop_live::device::{AnyDevice, Ethernet, Tun, TunSpec};
use perhop_live::{Changed, Clock, Fixed, Loss, Plane, PlaneSpec, Report, Runner, Watcher};
use perhop_scenario::{ScenarioError, notices_in};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::capture::{self, Capture, Setup, Writing};
use crate::config::{Config, Interface, Kind};
use crate::descriptors;
use crate::http::Server;
use crate::log::{self, Log};
use crate::manager::{self, Manager};
use crate::metrics::{Beside, Published, Reloads, Snapshot};
use crate::plan::{self, SIDES};
use crate::privileges::{self, Dropped, Identity};
use crate::request::Hosts;
use crate::seccomp;
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

const AFTER: &str = "SIGHUP reloads the configuration without losing a packet; SIGTERM and SIGINT stop the router with a summary. \
                     docs/router.md lists every key.\n\nExit codes: 0 success, 1 failure, 2 a mistake in the \
                     configuration or the command.";

/// How often the run loop looks whether it is told something, and how often it tells something.
const TICK: Duration = Duration::from_millis(50);
const PUBLISH: Duration = Duration::from_secs(1);

/// How long the end waits for whoever reads the log, and for the service manager.
const LAST_WORDS: Wait = Wait::from_millis(300);

/// The longest configuration, in bytes.
const LONGEST: u64 = 1 << 20;

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
    let (log, lines) = Log::new();
    let mut lines = Some(lines);
    let code = match run(&options, &log, &mut lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Mistake(line)) => {
            log.warn(line);
            ExitCode::from(2)
        }
        Err(Failure::Failed(line)) => {
            log.warn(format_args!("error: {line}"));
            ExitCode::FAILURE
        }
    };
    if write_log(&mut lines).is_ok() {
        log.finish(LAST_WORDS);
    }
    code
}

fn run(options: &Options, log: &Log, lines: &mut Option<log::Backlog>) -> Outcome<()> {
    let config = read(&options.config, log, Config::read).map_err(Failure::Mistake)?;
    let at =
        |key: &str, text: String| Failure::Mistake(format!("{}: {key}: {text}", options.config.display()));
    let identity = Identity::of(config.user.as_deref()).map_err(|text| at("user", text))?;
    if options.check {
        log.say(format_args!("{}: no mistakes found", options.config.display()));
        return Ok(());
    }
    descriptors::close_inherited().map_err(failed)?;
    let Opened { devices, mtu, server, files } = Opened::by(&config, options, log)?;
    let names = [config.inside.device.clone(), config.outside.device.clone()];
    let (clock, seed) = (Clock::start(), config.seed);
    let plane = Plane::new(plan::plane(&config, mtu), seed);
    let dropped = settle(&config, &identity, log)?;

    // Threads begin here: what is above holds for all of them.
    let stop = Arc::new(AtomicBool::new(false));
    let signals = Signals::new([SIGHUP, SIGTERM, SIGINT]).map_err(failed)?;
    write_log(lines).map_err(failed)?;
    let (manager, notes) = Manager::new();
    manager::start(notes).map_err(failed)?;
    let (reloads, published) = <(Arc<Reloads>, Arc<Published>)>::default();
    let (orders, to_apply) = mpsc::channel();
    let (answers, applied) = mpsc::channel();
    let setup = Setup {
        interfaces: &names,
        limit: config.capture.size.get(),
        drops_only: options.capture_drops,
        longest: mtu,
    };
    let capture = files.map(|files| Capture::begin(files, &setup, clock, log.clone()));
    let (capture, writing) =
        capture.transpose().map_err(|error| failed(format_args!("capture: {error}")))?.unzip();
    if let Some(server) = server {
        let published = Arc::clone(&published);
        start("metrics", move || server.serve(&published))?;
    }
    let loader = Loader {
        path: options.config.clone(),
        config,
        mtu,
        reloads: Arc::clone(&reloads),
        orders,
        applied,
        log: log.clone(),
        manager: manager.clone(),
    };
    let (reload, to_reload) = mpsc::sync_channel(1);
    start("loader", move || loader.serve(&to_reload))?;
    let (stopper, listener) = (Arc::clone(&stop), log.clone());
    start("signals", move || listen(signals, &stopper, &reload, &listener))?;
    seccomp::confine().map_err(failed)?;
    dropped.verify().map_err(failed)?;

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
        log: log.clone(),
    };
    let mut runner = Runner::new(plane, devices, clock);
    log.say(format_args!(
        "forwarding between {} (inside) and {} (outside), packets up to {mtu} bytes",
        overseer.names[0], overseer.names[1]
    ));
    manager.ready("forwarding");
    let ran = runner.run(Instant::NEVER, &stop, &mut overseer);
    manager.stopping();
    let (plane, report) = runner.into_parts();
    let outcome = finish(&plane, &report, overseer, writing, ran);
    manager.finish(LAST_WORDS);
    outcome
}

/// Begins to write the log, if nobody does yet.
#[expect(clippy::disallowed_methods, reason = "the program speaks to its user here")]
fn write_log(lines: &mut Option<log::Backlog>) -> io::Result<()> {
    // Of its own, without the locks and buffers of `io::stdout`, which the end would wait for.
    let own = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned().map(File::from);
    let Some(lines) = lines.take() else { return Ok(()) };
    // Whoever started it may have closed them.
    let [output, error] = [own(io::stdout().as_fd()), own(io::stderr().as_fd())];
    lines.start("log", log::write(output.ok(), error.ok()))
}

/// Says how it was.
fn finish(
    plane: &Plane,
    report: &Report,
    overseer: Overseer,
    writing: Option<Writing>,
    ran: io::Result<()>,
) -> Outcome<()> {
    let Overseer { names, reloads, capture, log, .. } = overseer;
    drop(capture); // so that its file ends
    let (captured, written) = writing.map(Writing::finish).unzip();
    log.say(Summary { plane, report, names: &names, reloads: &reloads, unlogged: log.dropped(), captured });
    if let Some(Err(error)) = written {
        return Err(failed(format_args!("capture: {error}")));
    }
    ran.map_err(|error| failed(format_args!("a device disappeared: {error}")))?;
    plane.balance().map_err(|unbalanced| failed(format_args!("packets are not conserved: {unbalanced}")))
}

#[expect(clippy::disallowed_methods, reason = "the router reads its configuration")]
fn read(
    path: &Path,
    log: &Log,
    parse: impl FnOnce(&str, &str) -> Result<Config, ScenarioError>,
) -> Result<Config, String> {
    let origin = path.display().to_string();
    let mut text = String::new();
    let file = File::open(path).map_err(|error| format!("{origin}: {error}"))?;
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| format!("{origin}: {error}"))?;
    if text.len() as u64 > LONGEST {
        return Err(format!("{origin}: a configuration has at most {LONGEST} bytes; name the right file"));
    }
    let config = parse(&text, &origin).map_err(|error| error.to_string())?;
    for notice in notices_in(Some(&text), &origin, config.notices()) {
        log.warn(format_args!("warning: {notice}"));
    }
    Ok(config)
}

/// Everything that takes privileges to open.
struct Opened {
    devices: [AnyDevice; 2],
    /// The longest packet that both devices take.
    mtu: u16,
    server: Option<Server>,
    /// Of a capture.
    files: Option<Vec<File>>,
}

impl Opened {
    fn by(config: &Config, options: &Options, log: &Log) -> Outcome<Self> {
        let (devices, mtu) = open(config, log)?;
        check_memory(config, mtu)?;
        let server = config.metrics.map(|address| {
            let bound = Server::bind(address, Hosts::new(&config.metrics_hosts));
            bound.map_err(|error| failed(format_args!("metrics: cannot listen on {address}: {error}")))
        });
        let files = options.capture.as_deref().map(|path| {
            let opened = capture::open(path, &config.capture);
            opened.map_err(|text| failed(format_args!("capture: {text}")))
        });
        Ok(Self { devices, mtu, server: server.transpose()?, files: files.transpose()? })
    }
}

/// Opens both devices, and tells the longest packet that both take.
fn open(config: &Config, log: &Log) -> Outcome<([AnyDevice; 2], u16)> {
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
        log.warn(format_args!(
            "warning: the interfaces' MTUs differ ({} and {} bytes); packets longer than {} bytes are dropped",
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
            "buffers: {packets} packets of {mtu} bytes need {megabytes} MB, which are not available"
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
fn settle(config: &Config, identity: &Identity, log: &Log) -> Outcome<Dropped> {
    if config.lock_memory
        && let Err(errno) = mlockall(MlockAllFlags::MCL_CURRENT)
    {
        let why = privileges::explain(&denied(errno), Capability::CAP_IPC_LOCK);
        log.warn(format_args!("warning: lock-memory: {why}; continuing without it"));
    }
    if let Some(priority) = config.realtime
        && let Err(error) = perhop_live::set_fifo(priority)
    {
        let why = privileges::explain(&error, Capability::CAP_SYS_NICE);
        log.warn(format_args!("warning: realtime: {why}; continuing without it"));
    }
    if *identity == Identity::Root {
        log.warn("warning: user: the router keeps running as root, which has more rights than this program checks; name another");
    }
    let dropped = privileges::drop_all(identity).map_err(failed)?;
    let groups = dropped.groups_left();
    if !groups.is_empty() {
        log.warn(format_args!(
            "warning: user: the router keeps the groups {groups:?}, which it may not drop; start it as root or by its unit"
        ));
    }
    Ok(dropped)
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

/// Waits for signals and hands them on: it does nothing that could keep it from the next one.
fn listen(mut signals: Signals, stop: &AtomicBool, reload: &SyncSender<()>, log: &Log) {
    for signal in signals.forever() {
        if signal == SIGHUP {
            if reload.try_send(()).is_err() {
                log.warn("SIGHUP: ignored, because the previous reload has not finished");
            }
        } else if stop.swap(true, Ordering::Relaxed) {
            // The second one: whatever the end waits for is given up.
            let _ = emulate_default_handler(signal);
        }
    }
}

/// Reads configurations beside the run loop.
struct Loader {
    path: PathBuf,
    config: Config,
    mtu: u16,
    reloads: Arc<Reloads>,
    orders: Sender<PlaneSpec>,
    applied: Receiver<Result<Changed, Fixed>>,
    log: Log,
    manager: Manager,
}

impl Loader {
    /// Reads the configuration again as often as it is told to. The file may keep it waiting, but nobody else.
    fn serve(mut self, to_reload: &Receiver<()>) {
        for () in to_reload {
            self.manager.reloading();
            let status = match self.reload() {
                Ok(changed) => {
                    self.reloads.applied.fetch_add(1, Ordering::Relaxed);
                    let text = format!("reloaded {}: {}", self.path.display(), told(&changed));
                    self.log.say(&text);
                    text
                }
                Err(line) => {
                    self.reloads.refused.fetch_add(1, Ordering::Relaxed);
                    self.log.warn(format_args!("{line}; the running configuration stays in use"));
                    format!("forwarding; refused: {line}")
                }
            };
            self.manager.ready(&status);
        }
    }

    fn reload(&mut self) -> Result<Changed, String> {
        let config = read(&self.path, &self.log, |text, origin| self.config.read_successor(text, origin))?;
        while self.applied.try_recv().is_ok() {} // an answer that came too late
        self.orders.send(plan::plane(&config, self.mtu)).map_err(|_| "the router is stopping")?;
        let answer = self.applied.recv_timeout(Wait::from_secs(10));
        let answer = answer.map_err(|_| "the run loop does not respond")?;
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
    format!("{}; {}; all else unchanged", list("queues", &changed.queues), list("meters", &changed.meters))
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
    log: Log,
}

impl Overseer {
    /// Says once, and at once, why hardly anything passes.
    fn warn_of_offload(&mut self, report: &Report) {
        let Some(side) = report.aside.iter().position(|aside| aside.merged > 0).filter(|_| !self.warned)
        else {
            return;
        };
        self.warned = true;
        self.log.warn(format_args!("warning: {}: {}", self.names[side], Merged(&self.names[side])));
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
            let capture = self.capture.as_ref().map(Capture::status);
            let beside = Beside { reloads: &self.reloads, unlogged: self.log.dropped(), capture };
            self.published.publish(Snapshot::of(plane, report, &self.names, &beside));
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

//! From the command line to packets that are forwarded, and to the end.

mod loader;
mod opening;
mod overseer;

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration as Wait;

use clap::Parser;
use perhop_core::Instant;
use perhop_live::device::AnyDevice;
use perhop_live::{Clock, Plane, Report, Runner};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use self::loader::{Loader, read};
use self::opening::{Opened, settle};
use self::overseer::Overseer;
use crate::capture::{Capture, Setup, Writing};
use crate::config::Config;
use crate::descriptors;
use crate::log::{self, Log};
use crate::manager::{self, Manager};
use crate::metrics::{Published, Reloads};
use crate::plan;
use crate::privileges::Identity;
use crate::seccomp;
use crate::summary::Summary;

/// Forwards packets between two interfaces of this host, with meters, markers and queue rules.
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
                     docs/perhop-router.md lists every key.\n\nExit codes: 0 success, 1 failure, 2 a mistake in the \
                     configuration or the command.";

/// How long the end waits until the log is read, and for the service manager.
const LAST_WORDS: Wait = Wait::from_millis(300);

/// Why the router does not run.
enum Failure {
    /// A mistake of the user, in one line.
    Mistake(String),
    /// Something else.
    Failed(String),
}

type RouterResult<T> = Result<T, Failure>;

fn failed(what: impl Display) -> Failure {
    Failure::Failed(what.to_string())
}

/// Runs the program.
pub fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(answer) => {
            let _ = answer.print();
            return ExitCode::from(if answer.use_stderr() { 2 } else { 0 });
        }
    };
    let (log, lines) = Log::new(log::WAITING);
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

fn run(options: &Options, log: &Log, lines: &mut Option<log::Backlog>) -> RouterResult<()> {
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

    // Threads start here, so that what is above holds for all of them.
    let stop = Arc::new(AtomicBool::new(false));
    let signals = Signals::new([SIGHUP, SIGTERM, SIGINT]).map_err(failed)?;
    write_log(lines).map_err(failed)?;
    let (manager, notes) = Manager::new(manager::WAITING);
    manager::start(notes).map_err(failed)?;
    let (capture, writing) = files
        .map(|files| {
            let (limit, drops_only) = (config.capture.size.get(), options.capture_drops);
            let setup = Setup { interfaces: &names, limit, drops_only, longest: mtu };
            let begun = Capture::begin(files, &setup, clock, log.clone());
            begun.map_err(|error| failed(format_args!("capture: {error}")))
        })
        .transpose()?
        .unzip();
    let (reloads, published) = <(Arc<Reloads>, Arc<Published>)>::default();
    if let Some(server) = server {
        let published = Arc::clone(&published);
        start("metrics", move || server.serve(&published))?;
    }
    let path = options.config.clone();
    let (loader, reload) = Loader::new(path, config, mtu, Arc::clone(&reloads), log, &manager);
    let (reloading, to_reload) = mpsc::sync_channel(1);
    start("loader", move || loader.serve(&to_reload))?;
    let (stopper, listener) = (Arc::clone(&stop), log.clone());
    start("signals", move || listen(signals, &stopper, &reloading, &listener))?;
    seccomp::confine().map_err(failed)?;
    dropped.verify().map_err(failed)?;

    let (next, publish, log) = (Instant::ZERO, Instant::ZERO, log.clone());
    let overseer =
        Overseer { next, publish, reload, published, reloads, capture, names, seed, warned: false, log };
    let runner = Runner::new(plane, devices, clock);
    forward(runner, overseer, mtu, &stop, writing, &manager)
}

/// Forwards until the router is stopped.
fn forward(
    mut runner: Runner<AnyDevice, 2>,
    mut overseer: Overseer,
    mtu: u16,
    stop: &AtomicBool,
    writing: Option<Writing>,
    manager: &Manager,
) -> RouterResult<()> {
    overseer.log.say(format_args!(
        "forwarding between {} (inside) and {} (outside), packets up to {mtu} bytes",
        overseer.names[0], overseer.names[1]
    ));
    manager.ready("forwarding");
    let ran = runner.run(Instant::NEVER, stop, &mut overseer);
    manager.stopping();
    let (plane, report, _) = runner.into_parts();
    let result = finish(&plane, &report, overseer, writing, ran);
    manager.finish(LAST_WORDS);
    result
}

/// Starts to write the log, unless that has been done.
#[expect(clippy::disallowed_methods, reason = "the program speaks to its user here")]
fn write_log(lines: &mut Option<log::Backlog>) -> io::Result<()> {
    // Its own descriptors, without the locks and buffers of `io::stdout`, for which the end would wait.
    let own = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned().map(File::from);
    let Some(lines) = lines.take() else { return Ok(()) };
    // The parent process may have closed them.
    let [output, error] = [own(io::stdout().as_fd()), own(io::stderr().as_fd())];
    lines.start("log", log::write(output.ok(), error.ok()))
}

/// Writes the summary and returns the result of the run.
fn finish(
    plane: &Plane,
    report: &Report,
    overseer: Overseer,
    writing: Option<Writing>,
    ran: io::Result<()>,
) -> RouterResult<()> {
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

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> RouterResult<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop).map_err(failed)
}

/// Waits for signals and passes them on, without any operation that could block.
fn listen(mut signals: Signals, stop: &AtomicBool, reload: &SyncSender<()>, log: &Log) {
    for signal in signals.forever() {
        if signal == SIGHUP {
            if reload.try_send(()).is_err() {
                log.warn("SIGHUP: ignored, because the previous reload has not finished");
            }
        } else if stop.swap(true, Ordering::Relaxed) {
            // The second one ends the process at once.
            let _ = emulate_default_handler(signal);
        }
    }
}

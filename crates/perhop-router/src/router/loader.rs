//! Reads the configuration: at the start, and again on a thread of its own when a signal asks for it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use perhop_live::{Changed, Fixed, PlaneSpec};
use perhop_scenario::{ScenarioError, notices_in};

use crate::config::Config;
use crate::log::Log;
use crate::manager::Manager;
use crate::metrics::Reloads;
use crate::plan;

/// The longest configuration, in bytes.
const LONGEST: u64 = 1 << 20;

/// How long the run loop may take to apply a configuration.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a configuration and logs its notices.
#[expect(clippy::disallowed_methods, reason = "the router reads its configuration")]
pub(super) fn read(
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

/// Reloads the configuration beside the run loop.
pub(super) struct Loader {
    path: PathBuf,
    config: Config,
    mtu: u16,
    reloads: Arc<Reloads>,
    requests: Sender<PlaneSpec>,
    results: Receiver<Result<Changed, Fixed>>,
    log: Log,
    manager: Manager,
}

/// The run loop's end: configurations to apply, and the results.
pub(super) struct ReloadRequests {
    pub(super) requests: Receiver<PlaneSpec>,
    pub(super) results: Sender<Result<Changed, Fixed>>,
}

impl Loader {
    pub(super) fn new(
        path: PathBuf,
        config: Config,
        mtu: u16,
        reloads: Arc<Reloads>,
        log: &Log,
        manager: &Manager,
    ) -> (Self, ReloadRequests) {
        let (requests, to_apply) = mpsc::channel();
        let (applied, results) = mpsc::channel();
        let (log, manager) = (log.clone(), manager.clone());
        let loader = Self { path, config, mtu, reloads, requests, results, log, manager };
        (loader, ReloadRequests { requests: to_apply, results: applied })
    }

    /// Reads the configuration again at each request. Only this thread waits for the file.
    pub(super) fn serve(mut self, to_reload: &Receiver<()>) {
        for () in to_reload {
            self.manager.reloading();
            let status = match self.reload() {
                Ok(changed) => {
                    self.reloads.applied.fetch_add(1, Ordering::Relaxed);
                    let text = format!("reloaded {}: {}", self.path.display(), summary(&changed));
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
        while self.results.try_recv().is_ok() {} // a result that came too late
        self.requests.send(plan::plane(&config, self.mtu)).map_err(|_| "the router is stopping")?;
        let result = self.results.recv_timeout(PATIENCE);
        let result = result.map_err(|_| "the run loop does not respond")?;
        let changed = result.map_err(|fixed| format!("{}: {fixed}", self.path.display()))?;
        self.config = config;
        Ok(changed)
    }
}

fn summary(changed: &Changed) -> String {
    let list = |what: &str, names: &[String]| {
        let names = if names.is_empty() { "none".into() } else { names.join(", ") };
        format!("new {what}: {names}")
    };
    format!("{}; {}; all else unchanged", list("queues", &changed.queues), list("meters", &changed.meters))
}

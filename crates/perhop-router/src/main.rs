//! `perhop-router CONFIG.toml`: keeps what was sold between two interfaces of a Linux host.

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod config;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod manager;
#[cfg(target_os = "linux")]
mod metrics;
#[cfg(target_os = "linux")]
mod outlet;
#[cfg(target_os = "linux")]
mod pcapng;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod request;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod router;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod selector;
#[cfg(target_os = "linux")]
mod summary;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    router::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), &'static str> {
    Err("perhop-router needs Linux")
}

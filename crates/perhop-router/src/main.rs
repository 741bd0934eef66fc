//! `perhop-router CONFIG.toml`: meters, marks and queues packets between two interfaces of a Linux host.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    perhop_router::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), &'static str> {
    Err("perhop-router needs Linux")
}

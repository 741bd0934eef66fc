//! `perhop-router CONFIG.toml`: keeps what was sold between two interfaces of a Linux host.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    perhop_router::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), &'static str> {
    Err("perhop-router needs Linux")
}

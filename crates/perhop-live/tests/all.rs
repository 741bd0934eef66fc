//! All integration tests in one program: each program of its own would compile and link the data plane once
//! more.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "each test counts the allocations of its own thread; tests run programs and use sockets"
)]

#[path = "../../perhop-core/tests/common/allocations.rs"]
mod allocations;
#[cfg(target_os = "linux")]
#[path = "common/fake.rs"]
mod fake;
#[cfg(target_os = "linux")]
#[path = "common/hosts.rs"]
mod hosts;
#[path = "../../perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "common/script.rs"]
mod script;
#[path = "../../perhop-core/tests/common/seeds.rs"]
mod seeds;

mod classes;
mod conservation;
mod control;
#[cfg(target_os = "linux")]
mod devices;
mod parity;
mod reload;
mod reports;

//! All integration tests in one program: each program of its own would compile and link the data plane once
//! more.

#![expect(clippy::disallowed_macros, reason = "each test counts the allocations of its own thread")]

#[path = "../../perhop-core/tests/common/allocations.rs"]
mod allocations;
#[cfg(target_os = "linux")]
#[path = "common/fake.rs"]
mod fake;
#[path = "../../perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "common/script.rs"]
mod script;
#[path = "../../perhop-core/tests/common/seeds.rs"]
mod seeds;

mod classes;
mod conservation;
mod control;
mod parity;
mod reload;
mod reports;

//! All integration tests in one program.

#[path = "../../perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "common/files.rs"]
mod files;
#[path = "common/inputs.rs"]
mod inputs;
#[path = "../../perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../perhop-core/tests/common/seeds.rs"]
mod seeds;

mod hostile;
mod parity;
mod reading;
mod requests;
mod scenarios;
mod verdicts;

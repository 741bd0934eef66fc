//! The parts of the program `perhop-router`, as a library for its tests and fuzz targets. It is no interface
//! for others.
#![cfg(target_os = "linux")]

mod capture;
pub mod config;
mod descriptors;
mod http;
mod log;
mod manager;
mod metrics;
mod outlet;
pub mod plan;
mod privileges;
pub mod request;
mod ring;
mod router;
mod seccomp;
mod summary;

pub use router::main;

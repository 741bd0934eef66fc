//! The parts of the program `perhop-router`, which meters, marks and queues packets between two interfaces of
//! a Linux host, as a library for its tests and fuzz targets. It is no interface for others.
//!
//! ```
//! use perhop_router::config::Config;
//!
//! let text = r#"
//!     inside = { device = "eth0", kind = "packet" }
//!     outside = { device = "eth1", kind = "packet" }
//!     upstream = { rate = "10Mbps", queue = { aqm = "drop-tail", limit = "100p" } }
//! "#;
//! let config = Config::read(text, "router.toml").unwrap();
//! assert_eq!(perhop_router::plan::plane(&config, 1500).links[0].name, "upstream");
//! ```
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

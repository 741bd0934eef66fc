//! All integration tests in one program: each program of its own would compile and link the simulator once
//! more.

mod common;
#[path = "../../perhop-core/tests/common/ordinary.rs"]
mod ordinary;
#[path = "../../perhop-core/tests/common/parameters.rs"]
mod parameters;

mod accounting;
mod active_time;
mod applications;
mod asymmetric_best_effort;
mod completion;
mod congestion;
mod ecn;
mod engine;
mod limits;
mod link_meters;
mod linux_tcp;
mod media;
mod observation;
mod packet_traces;
mod policing;
mod populations;
mod rate_based;
mod several_queues;
mod splitting;
mod stepping;
mod threads;
mod throughput_guarantees;
mod ties;
mod watch;
mod window_control;

//! TCP Reno and `NewReno`, in whole segments (RFC 5681, 6582, 6298, 3042).

mod params;
mod receiver;
mod rto;
mod sender;

pub use params::{TcpParams, Variant};
pub use receiver::TcpReceiver;
pub use rto::RtoEstimator;
pub use sender::TcpSender;

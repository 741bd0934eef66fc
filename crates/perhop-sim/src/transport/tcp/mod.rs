//! TCP, in whole segments: Reno and `NewReno` (RFC 5681, 6582, 6298, 3042), selective acknowledgements (RFC
//! 2018, 6675), PRR (RFC 9937), RACK-TLP (RFC 8985) and CUBIC (RFC 9438).

mod ace;
pub mod congestion;
mod ecn;
mod on_wire;
mod outstanding;
mod params;
mod ranges;
mod receiver;
mod rto;
mod sender;
#[cfg(test)]
mod tests;
mod variant;
mod window_tuning;

pub use ace::AccEcn;
pub use congestion::{Congestion, CongestionParams};
pub use ecn::{Signals, TcpEcn};
pub use on_wire::{Reply, WireAck, WireReceiver, WireSender};
pub use params::{
    CwndValidation, IdleRestart, LossDetection, MinRtoBounds, NewRenoTimer, Pacing, PartialWindowDeflation,
    Reduction, ReplacedKey, RttArithmetic, SlowStart, TcpParams, WindowTuning, move_former_keys, presets,
};
pub use receiver::TcpReceiver;
pub use rto::RtoEstimator;
pub use sender::TcpSender;
pub use variant::Variant;

//! Bounds beside simulations, worked examples, and assumptions that scenarios break.

mod assumptions;
mod cycles;
mod fair_turns;
mod faults;
mod networks;
mod populations;
mod soundness;
mod tightness;

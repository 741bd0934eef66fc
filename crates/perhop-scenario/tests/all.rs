//! All integration tests in one program: each program of its own would compile and link the simulator once
//! more.

#[path = "../../perhop-core/tests/common/choices.rs"]
mod choices;
#[path = "../../perhop-core/tests/common/ordinary.rs"]
mod ordinary;
#[path = "../../perhop-core/tests/common/parameters.rs"]
mod parameters;
#[path = "../../perhop-core/tests/common/seeds.rs"]
mod seeds;
#[path = "common/story.rs"]
mod story;

mod applications;
mod former;
mod inputs;
mod media;
mod messages;
mod notices;
mod paths;
mod populations;
mod reading;
mod replays;
mod topology;

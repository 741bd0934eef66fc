//! `DualPI2` as pseudo-code: RFC 9332's law and Linux's, for a packet of either queue.

use crate::{Noted, PseudoCode, Reason};

const LINES: &[&str] = &[
    "at each update: p' ← p' + alpha · (delay − target) + beta · (delay − delay at the last update)",
    "    p_CL ← k · p', coupled; p_C ← p'²",
    "an L4S packet that leaves:",
    "    p'_L ← from 0 to 1 as its sojourn time rises above the step; 0 if it waits alone",
    "    counter_L ← counter_L + max(p'_L, p_CL)",
    "    if counter_L > 1: mark, counter_L ← counter_L − 1 (step where p'_L is the larger one, else controller)",
    "a classic packet that leaves: counter_C ← counter_C + p_C",
    "    if counter_C > 1: drop or mark, counter_C ← counter_C − 1 (controller)",
    "overload, p_CL ≥ 1: drop packets of both queues with p_C (overload), mark the other L4S packets",
    "for each packet that arrives: if both queues together have no room: drop (overflow)",
];
const OF_L4S: PseudoCode = PseudoCode {
    lines: LINES,
    acts: &[
        (Reason::Step, &[3, 4, 5]),
        (Reason::Controller, &[0, 1, 4, 5]),
        (Reason::Overload, &[0, 8]),
        (Reason::Overflow, &[9]),
    ],
};

const OF_CLASSIC: PseudoCode = PseudoCode {
    lines: LINES,
    acts: &[(Reason::Controller, &[0, 1, 6, 7]), (Reason::Overload, &[0, 8]), (Reason::Overflow, &[9])],
};

const LINUX_LINES: &[&str] = &[
    "at each update: p' ← p' + alpha · (delay − target) + beta · (delay − delay at the last update)",
    "an L4S packet that leaves:",
    "    mark if two packets or more wait, and a random number < k · p' (controller)",
    "    else mark if it waited longer than the step (step)",
    "a classic packet that leaves: drop or mark if two random numbers are both < p' (controller)",
    "overload, k · p' > 1: drop L4S packets, too, if two random numbers are both < p' (overload), mark the others",
    "for each packet that arrives: if both queues together have no room: drop (overflow)",
];
const LINUX_OF_L4S: PseudoCode = PseudoCode {
    lines: LINUX_LINES,
    acts: &[
        (Reason::Step, &[3]),
        (Reason::Controller, &[0, 2]),
        (Reason::Overload, &[0, 5]),
        (Reason::Overflow, &[6]),
    ],
};

const LINUX_OF_CLASSIC: PseudoCode = PseudoCode {
    lines: LINUX_LINES,
    acts: &[(Reason::Controller, &[0, 4]), (Reason::Overload, &[0, 5]), (Reason::Overflow, &[6])],
};

/// Returns the rule that acted for this reason on a packet, of which `noted` gives what was noted.
pub(super) fn of(reason: Reason, noted: Noted<'_>) -> PseudoCode {
    let is_l4s = noted("l4s").is_some();
    // Only Linux's law draws numbers, and only the other one counts.
    match (noted("counter before").is_some() || reason == Reason::Overflow, is_l4s) {
        (true, true) => OF_L4S,
        (true, false) => OF_CLASSIC,
        (false, true) => LINUX_OF_L4S,
        (false, false) => LINUX_OF_CLASSIC,
    }
}

//! Rules as pseudo-code, and the lines of each that act for a reason.

use perhop_core::Reason;

use crate::explain::L4S;
use crate::witness::Event;

/// A rule as pseudo-code, and the line that acts for each reason.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub lines: &'static [&'static str],
    acts: &'static [(Reason, &'static [usize])],
}

const RED: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    average ← (1 − weight) · average + weight · queue",
        "    if the queue has no room: drop (overflow)",
        "    if average < min: pass",
        "    if average ≥ max: drop (forced)",
        "    p_b ← max_p · (average − min) / (max − min)",
        "    p_a ← p_b / (1 − count · p_b), spread over the packets since the last drop",
        "    if random number < p_a: drop, or mark with ECN (early)",
        "    else: pass",
    ],
    acts: &[(Reason::Overflow, &[2]), (Reason::Forced, &[1, 4]), (Reason::Early, &[1, 5, 6, 7])],
};

const RIO: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    update the averages that count it",
        "    if the queue has no room: drop (overflow)",
        "    choose thresholds and average by the packet's color:",
        "        IN (green): the average of IN packets; OUT: that of all packets, or of OUT packets",
        "    if average < min: pass this test",
        "    if average ≥ max: drop (forced)",
        "    p_b ← max_p · (average − min) / (max − min), spread to p_a",
        "    if random number < p_a: drop (early)",
        "    RI+O: an OUT packet that passed is tested again, against the average of OUT packets:",
        "        if average out ≥ max: drop (forced-out)",
        "        if random number < p_a: drop (early-out)",
    ],
    acts: &[
        (Reason::Overflow, &[2]),
        (Reason::Forced, &[4, 6]),
        (Reason::Early, &[4, 7, 8]),
        (Reason::ForcedOut, &[9, 10]),
        (Reason::EarlyOut, &[9, 11]),
    ],
};

const CODEL_LINES: &[&str] = &[
    "for each packet that leaves:",
    "    if sojourn time < target, or almost nothing waits: stop dropping, pass",
    "    if the sojourn time has not stayed above target for an interval: pass",
    "    if not dropping: begin; drop this packet (or mark it), count ← 1, or near where it was",
    "    while dropping and the next drop is due: drop (or mark), count ← count + 1",
    "    the next drop is due after interval / √count",
    "for each packet that arrives: if the queue has no room: drop (overflow)",
];
const CODEL: Rule = Rule { lines: CODEL_LINES, acts: &[(Reason::Target, &[4, 5]), (Reason::Overflow, &[6])] };
const CODEL_BEGINS: Rule = Rule { lines: CODEL_LINES, acts: &[(Reason::Target, &[2, 3, 5])] };

const FQ_LINES: &[&str] = &[
    "for each packet that arrives: it joins the queue of its flow",
    "    while all queues together hold too much: drop at the head of the one with the most bytes (overflow)",
    "for each packet that leaves, from the queue whose turn it is, new ones first:",
    "    if sojourn time < target, or no more than mtu stays behind: stop dropping, pass",
    "    if the sojourn time has not stayed above target for an interval: pass",
    "    if not dropping: begin; drop this packet (or mark it), count ← 1, or near where it was",
    "    while dropping and this queue's next drop is due: drop (or mark), count ← count + 1",
    "    the next drop of this queue is due after interval / √count",
];
const FQ: Rule = Rule { lines: FQ_LINES, acts: &[(Reason::Target, &[6, 7]), (Reason::Overflow, &[1])] };
const FQ_BEGINS: Rule = Rule { lines: FQ_LINES, acts: &[(Reason::Target, &[4, 5, 7])] };

const PIE: Rule = Rule {
    lines: &[
        "at each update:",
        "    p ← p + alpha · (delay − target) + beta · (delay − delay at the last update), scaled for small p",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    if a burst is allowed, or delay and p are small, or little waits: pass",
        "    if random number < p: drop, or mark if p is small and the packet is capable (controller)",
    ],
    acts: &[(Reason::Controller, &[1, 5]), (Reason::Overflow, &[3])],
};

const PI2: Rule = Rule {
    lines: &[
        "at each update:",
        "    p' ← p' + alpha · (delay − target) + beta · (delay − delay at the last update)",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    scalable flow: mark if random number < k · p'",
        "    other flow: drop or mark if two random numbers are both < p'",
    ],
    acts: &[(Reason::Controller, &[1, 4, 5]), (Reason::Overflow, &[3])],
};

const BLUE: Rule = Rule {
    lines: &[
        "when the queue overflows, or is longer than its threshold, and freeze-time has passed: p ← p + increment",
        "when the link is idle, and freeze-time has passed: p ← p − decrement",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    if random number < p: drop or mark (controller)",
    ],
    acts: &[(Reason::Controller, &[4]), (Reason::Overflow, &[3])],
};

const COBALT: Rule = Rule {
    lines: &[
        "for each packet that leaves:",
        "    CoDel: if the sojourn time stays above target and the next drop is due: drop or mark (target)",
        "    BLUE: if random number < p: drop (controller)",
        "p rises when the queue overflows, and falls when it is empty",
        "for each packet that arrives: if the queue has no room: drop (overflow)",
    ],
    acts: &[(Reason::Target, &[1]), (Reason::Controller, &[2, 3]), (Reason::Overflow, &[4])],
};

const DUAL_LINES: &[&str] = &[
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
const DUAL_L4S: Rule = Rule {
    lines: DUAL_LINES,
    acts: &[
        (Reason::Step, &[3, 4, 5]),
        (Reason::Controller, &[0, 1, 4, 5]),
        (Reason::Overload, &[0, 8]),
        (Reason::Overflow, &[9]),
    ],
};
const DUAL_CLASSIC: Rule = Rule {
    lines: DUAL_LINES,
    acts: &[(Reason::Controller, &[0, 1, 6, 7]), (Reason::Overload, &[0, 8]), (Reason::Overflow, &[9])],
};

const DUAL_LINUX_LINES: &[&str] = &[
    "at each update: p' ← p' + alpha · (delay − target) + beta · (delay − delay at the last update)",
    "an L4S packet that leaves:",
    "    mark if two packets or more wait, and a random number < k · p' (controller)",
    "    else mark if it waited longer than the step (step)",
    "a classic packet that leaves: drop or mark if two random numbers are both < p' (controller)",
    "overload, k · p' > 1: drop L4S packets, too, if two random numbers are both < p' (overload), mark the others",
    "for each packet that arrives: if both queues together have no room: drop (overflow)",
];
const DUAL_LINUX_L4S: Rule = Rule {
    lines: DUAL_LINUX_LINES,
    acts: &[
        (Reason::Step, &[3]),
        (Reason::Controller, &[0, 2]),
        (Reason::Overload, &[0, 5]),
        (Reason::Overflow, &[6]),
    ],
};
const DUAL_LINUX_CLASSIC: Rule = Rule {
    lines: DUAL_LINUX_LINES,
    acts: &[(Reason::Controller, &[0, 4]), (Reason::Overload, &[0, 5]), (Reason::Overflow, &[6])],
};

const ABE: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    RED with the average of the whole queue: drop by chance (early) or for certain (forced)",
        "    alpha > 1: a green packet is dropped alpha times as often as a blue one",
        "    if a green packet would wait longer than green's bound: drop (delay-control)",
        "    if the queue has no room: drop (overflow)",
        "a packet that can no longer be sent by its deadline: drop (late)",
    ],
    acts: &[
        (Reason::Early, &[1, 2]),
        (Reason::Forced, &[1]),
        (Reason::DelayControl, &[3]),
        (Reason::Overflow, &[4]),
        (Reason::Late, &[5]),
    ],
};

const DROP_TAIL: Rule = Rule {
    lines: &[
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    else: pass",
    ],
    acts: &[(Reason::Overflow, &[1])],
};

const POLICER: Rule = Rule {
    lines: &[
        "for each packet that comes to the meter:",
        "    if it is in profile: give it its color, pass",
        "    else: drop (policed)",
    ],
    acts: &[(Reason::Policed, &[2])],
};

impl Rule {
    /// The lines that act for this reason, from 0.
    pub fn decisive(&self, reason: Reason) -> &'static [usize] {
        self.acts.iter().find(|(acts, _)| *acts == reason).map_or(&[], |(_, lines)| lines)
    }
}

/// The rule of a block that dropped or marked a packet. Where a rule has several branches: with the lines of the one that acted.
pub fn rule_of(block: &str, event: &Event) -> Rule {
    let begins = event.gauge("dropping already") == Some(0.0);
    let is_l4s = event.gauge(L4S).is_some();
    // Only Linux's law draws numbers, and only the other one counts. In Linux's, marks for the step have no number.
    let counts = event.gauge("counter before").is_some();
    match block {
        _ if event.reason == Reason::Policed => POLICER,
        "red" | "wred" | "dwred" => RED,
        "rio" | "rio-plus-out" | "rio-three" | "inverse-rate" => RIO,
        "codel" if begins => CODEL_BEGINS,
        "codel" => CODEL,
        "fq-codel" if begins => FQ_BEGINS,
        "fq-codel" => FQ,
        "pie" => PIE,
        "pi2" => PI2,
        "blue" => BLUE,
        "cobalt" => COBALT,
        "dualpi2" if counts || event.reason == Reason::Overflow => {
            if is_l4s {
                DUAL_L4S
            } else {
                DUAL_CLASSIC
            }
        }
        "dualpi2" => {
            if is_l4s {
                DUAL_LINUX_L4S
            } else {
                DUAL_LINUX_CLASSIC
            }
        }
        "abe" | "edf" | "dsd" => ABE,
        _ => DROP_TAIL,
    }
}

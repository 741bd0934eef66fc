//! Why a queue drops a packet or notifies its flow, or a meter drops one.

/// Declares the reasons once: the enum, its names and the list of all.
macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Why a packet was dropped, or marked as having met congestion. Counters are arrays over these.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $variant,)+
        }

        impl Reason {
            /// Every reason, in the order of their numbers.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the reason's name in tables and files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

reasons! {
    /// The queue had no room.
    Overflow = "overflow",
    /// By chance, the average being between min and max (RED).
    Early = "early",
    /// The average was at or above max (RED).
    Forced = "forced",
    /// By chance, the average of OUT packets being between its min and max (RI+O).
    EarlyOut = "early-out",
    /// The average of OUT packets was at or above its max (RI+O).
    ForcedOut = "forced-out",
    /// A green packet would have to wait longer than its service allows (Asymmetric Best-Effort).
    DelayControl = "delay-control",
    /// A packet could no longer be sent by its deadline (duplicate scheduling with deadlines).
    Late = "late",
    /// Sojourn times stayed above the target for too long (`CoDel`).
    Target = "target",
    /// By chance, with a probability that a controller adapts (PIE, PI2, `DualPI2`, BLUE).
    Controller = "controller",
    /// The packet's sojourn time was above the threshold of a low-latency queue (`DualPI2`).
    Step = "step",
    /// Marking every packet of a low-latency queue did not suffice (`DualPI2`).
    Overload = "overload",
    /// The packet was out of profile, and its meter drops such packets (a policer).
    Policed = "policed",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_name_and_its_number() {
        let names = [
            "overflow",
            "early",
            "forced",
            "early-out",
            "forced-out",
            "delay-control",
            "late",
            "target",
            "controller",
            "step",
            "overload",
            "policed",
        ];
        assert_eq!(Reason::ALL.map(Reason::name), names);
        assert_eq!(Reason::ALL.map(|reason| reason as usize), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }
}

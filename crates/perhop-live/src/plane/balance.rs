//! Packet conservation: every packet that was read is delivered, lost or inside.

use perhop_core::{Imbalance, Port};

use super::Plane;

/// Packets are not conserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unbalanced {
    /// In a queue.
    #[error("link {0}: {1}")]
    Queue(String, Imbalance),
    /// At a meter of a link.
    #[error("link {link}: packets that came to the meter {meter} neither went on nor were dropped")]
    Meter {
        /// The link's name.
        link: String,
        /// The meter's name.
        meter: String,
    },
    /// In the plane as a whole.
    #[error("{read} packets came, but {known} are accounted for")]
    Plane {
        /// Packets that were read, or that the plane sent of its own.
        read: u64,
        /// Packets that were delivered, were lost or are inside.
        known: u64,
    },
}

impl Plane {
    /// Packets inside: in queues and in transit.
    pub fn inside(&self) -> u64 {
        self.buffers.taken()
    }

    /// Checks that every packet is accounted for: read + sent of its own = delivered +
    /// lost(reason) + inside, and for every
    /// queue and color arrived = sent + dropped + waiting, and for every meter of a link arrived = passed +
    /// policed.
    ///
    /// # Errors
    /// The first identity that does not hold.
    pub fn balance(&self) -> Result<(), Unbalanced> {
        for link in &self.links {
            for class in link.ports().flat_map(Port::classes) {
                class.balance().map_err(|imbalance| Unbalanced::Queue(link.name.clone(), imbalance))?;
            }
            if let Some((meter, _)) =
                link.meters.counts().into_iter().find(|(_, counts)| !counts.is_balanced())
            {
                return Err(Unbalanced::Meter { link: link.name.clone(), meter: meter.into() });
            }
        }
        let read = self.counters.all_read() + self.counters.originated();
        let known = self.counters.all_known() + self.inside();
        if read == known { Ok(()) } else { Err(Unbalanced::Plane { read, known }) }
    }
}

#[cfg(test)]
mod tests {
    use perhop_core::Instant;

    use super::*;
    use crate::spec::PlaneSpec;

    #[test]
    fn a_packet_that_nobody_counts_is_reported() {
        let spec = PlaneSpec {
            devices: 1,
            mtu: 100,
            buffers: 2,
            window: (Instant::ZERO, Instant::NEVER),
            ..PlaneSpec::default()
        };
        let mut plane = Plane::new(spec, 1);
        assert_eq!(plane.balance(), Ok(()));
        let (slot, ..) = plane.room().unwrap();
        let unbalanced = Unbalanced::Plane { read: 0, known: 1 };
        assert_eq!(plane.balance(), Err(unbalanced.clone()));
        assert_eq!(unbalanced.to_string(), "0 packets came, but 1 are accounted for");
        plane.release(slot);
        assert_eq!(plane.balance(), Ok(()));
    }
}

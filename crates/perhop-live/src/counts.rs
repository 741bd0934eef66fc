//! Packet counters of a data plane and of its streams.

use perhop_core::Reason;

use crate::wire::Malformed;

/// Why a packet was lost in the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The packet is no valid IP packet.
    Malformed(Malformed),
    /// No stream takes the packet.
    Unclassified,
    /// Every buffer is taken.
    NoBuffer,
    /// The link lost it after it had sent it.
    InTransit,
    /// A queue dropped it, or a meter.
    Dropped(Reason),
}

const REASONS: usize = Malformed::ALL.len() + 3 + Reason::ALL.len();

impl Loss {
    /// Returns every kind of loss.
    pub fn all() -> impl Iterator<Item = Self> {
        let malformed = Malformed::ALL.into_iter().map(Self::Malformed);
        malformed
            .chain([Self::Unclassified, Self::NoBuffer, Self::InTransit])
            .chain(Reason::ALL.into_iter().map(Self::Dropped))
    }

    /// Returns the name of the loss in tables, metrics and captures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed(why) => why.name(),
            Self::Unclassified => "unclassified",
            Self::NoBuffer => "no-buffer",
            Self::InTransit => "in-transit",
            Self::Dropped(reason) => reason.name(),
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Malformed(why) => why as usize,
            Self::Unclassified => Malformed::ALL.len(),
            Self::NoBuffer => Malformed::ALL.len() + 1,
            Self::InTransit => Malformed::ALL.len() + 2,
            Self::Dropped(reason) => Malformed::ALL.len() + 3 + reason as usize,
        }
    }
}

/// Why a packet is classified without its ports, or without its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portless {
    /// The packet is a fragment whose first fragment is not known: lost, overtaken, or forgotten.
    Fragment = 0,
    /// The packet has more extension headers than are followed.
    Hidden = 1,
}

impl Portless {
    /// Every reason.
    pub const ALL: [Self; 2] = [Self::Fragment, Self::Hidden];

    /// Returns the name of the reason in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fragment => "fragment",
            Self::Hidden => "extension-headers",
        }
    }
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many packets.
    pub packets: u64,
    /// How many bytes, IP headers included.
    pub bytes: u64,
}

impl Amount {
    #[inline]
    fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// The packet counters of a data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneCounters {
    devices: Vec<(Amount, Amount)>,
    lost: [u64; REASONS],
    originated: u64,
    portless: [u64; Portless::ALL.len()],
}

impl PlaneCounters {
    pub(crate) fn new(devices: usize) -> Self {
        let devices = vec![<(Amount, Amount)>::default(); devices];
        Self { devices, lost: [0; REASONS], originated: 0, portless: [0; Portless::ALL.len()] }
    }

    #[inline]
    pub(crate) fn read(&mut self, device: usize, bytes: usize) {
        self.devices[device].0.add(bytes);
    }

    #[inline]
    pub(crate) fn deliver(&mut self, device: usize, bytes: u16) {
        self.devices[device].1.add(usize::from(bytes));
    }

    #[inline]
    pub(crate) fn lose(&mut self, why: Loss) {
        self.lost[why.index()] += 1;
    }

    #[inline]
    pub(crate) fn originate(&mut self) {
        self.originated += 1;
    }

    /// Returns how many packets the plane sent of its own: reports of markers.
    pub fn originated(&self) -> u64 {
        self.originated
    }

    pub(crate) fn portless(&mut self, why: Portless) {
        self.portless[why as usize] += 1;
    }

    /// Returns how many packets were classified without ports or protocol for this reason.
    pub fn without_ports(&self, why: Portless) -> u64 {
        self.portless[why as usize]
    }

    /// Returns for each device the packets that came from it and those that left by it.
    pub fn devices(&self) -> &[(Amount, Amount)] {
        &self.devices
    }

    /// Returns how many packets were lost for this reason.
    pub fn lost(&self, why: Loss) -> u64 {
        self.lost[why.index()]
    }

    /// Returns how many packets came.
    pub fn all_read(&self) -> u64 {
        self.devices.iter().map(|(came, _)| came.packets).sum()
    }

    /// Returns how many packets left or were lost.
    pub fn all_known(&self) -> u64 {
        let left: u64 = self.devices.iter().map(|(_, left)| left.packets).sum();
        left + self.lost.iter().sum::<u64>()
    }
}

/// The packet counters of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Packets that arrived.
    pub arrived: Amount,
    /// Packets that left.
    pub delivered: Amount,
    /// Packets that its meter gave each color.
    pub marked: [u64; 3],
    /// Packets that its meter or those of links dropped, by the color that they gave.
    pub policed: [u64; 3],
    /// Packets dropped by queues, by color.
    pub dropped: [u64; 3],
    /// Packets that links lost after they had sent them.
    pub lost: u64,
}

impl StreamCounts {
    #[inline]
    pub(crate) fn arrive(&mut self, bytes: u16) {
        self.arrived.add(usize::from(bytes));
    }

    #[inline]
    pub(crate) fn deliver(&mut self, bytes: u16) {
        self.delivered.add(usize::from(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_has_a_place_and_a_name_of_its_own() {
        let places: Vec<usize> = Loss::all().map(Loss::index).collect();
        assert_eq!(places, (0..REASONS).collect::<Vec<_>>());
        let mut names: Vec<&str> = Loss::all().map(Loss::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REASONS);
    }
}

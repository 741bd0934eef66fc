//! The default limit of AQMs whose standard leaves the size of the buffer open.
//!
//! RFC 8033, RFC 8289 and the papers on PI2 and COBALT name no buffer size. It must be above the AQM's
//! target, or the queue fills before the AQM acts. RFC 9332, appendix A.1, sizes the buffer of `DualPI2` by
//! the link: what it sends in 250 ms. This default is the same, but never below the 1000 packets of Linux's
//! `codel` and `pie`.

use crate::{Bitrate, Depth, Duration};

/// The time in which the link sends all that waits.
const ROOM: Duration = Duration::from_millis(250);

/// Packets of Ethernet, in bytes.
const PACKET: u64 = 1500;

/// The least default.
const LEAST: u64 = 1000;

/// The given limit; otherwise as many packets of 1500 bytes as the link sends in 250 ms, and at least 1000.
pub(super) fn limit(given: Option<Depth>, rate: Bitrate) -> Depth {
    let bits = u128::from(rate.as_bps()) * u128::from(ROOM.as_nanos()) / 1_000_000_000;
    let packets = bits.div_ceil(u128::from(PACKET) * 8);
    given.unwrap_or_else(|| Depth::Packets(u64::try_from(packets).unwrap_or(u64::MAX).max(LEAST)))
}

/// The given limit, or the least default.
pub(super) fn least(given: Option<Depth>) -> Depth {
    given.unwrap_or(Depth::Packets(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_follows_the_rate_from_1000_packets_on() {
        let at = |rate: &str| limit(None, rate.parse().unwrap());
        assert_eq!(at("100kbps"), Depth::Packets(1000));
        assert_eq!(at("48Mbps"), Depth::Packets(1000)); // 12 Mbit: 1000 packets of 12 000 bits
        assert_eq!(at("48.1Mbps"), Depth::Packets(1003)); // 12.025 Mbit: 1002.1 packets
        assert_eq!(at("1Gbps"), Depth::Packets(20_834));
        assert_eq!(at("100Gbps"), Depth::Packets(2_083_334));
        assert_eq!(limit(Some(Depth::Bytes(9)), "1Gbps".parse().unwrap()), Depth::Bytes(9));
    }
}

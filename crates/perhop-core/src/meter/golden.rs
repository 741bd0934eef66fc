//! What the tests of the RFCs' meters share: the packets of their vectors.

use super::{Meter, MeterBlock};
use crate::testing::environment;
use crate::{Color, Context, FlowId, Header, Instant, Rng};

/// Packets: the time in milliseconds, the size, and the color with which it comes.
pub(super) const PACKETS: [(u64, u16, char); 10] = [
    (0, 1500, 'G'),
    (0, 1500, 'Y'),
    (0, 1500, 'Y'),
    (0, 1500, 'G'),
    (6, 1500, 'R'),
    (12, 1500, 'G'),
    (24, 1500, 'Y'),
    (25, 500, 'G'),
    (40, 1500, 'G'),
    (40, 1500, 'G'),
];

const LETTERS: [char; 3] = ['G', 'Y', 'R'];

/// The meter of these parameters.
pub(super) fn meter<M: MeterBlock>(table: &str) -> M {
    let params = serde_json::from_str(table).unwrap();
    M::check(&params).unwrap();
    M::new(params, environment())
}

/// The colors that a meter gives to these packets, by their first letters.
pub(super) fn colors(meter: &mut impl Meter, packets: &[(u64, u16, char)]) -> String {
    let mut rng = Rng::stream(1, "golden");
    let mut color = |&(millis, size, before): &(u64, u16, char)| {
        let color = Color::ALL[LETTERS.iter().position(|letter| *letter == before).unwrap()];
        let packet = Header { color, ..Header::new(FlowId(0), size) };
        let now = Instant::from_nanos(millis * 1_000_000);
        LETTERS[meter.color(&packet, &mut Context { now, rng: &mut rng }).index()]
    };
    packets.iter().map(&mut color).collect()
}

/// Checks that each of two bursts is reported if it has no room for a packet of the smallest size, 500 bytes.
pub(super) fn idle<M: MeterBlock>(table: impl Fn(&str, &str) -> String, keys: [&str; 2]) {
    let named = |first: &str, second: &str| {
        let params = serde_json::from_str(&table(first, second)).unwrap();
        M::keys_without_effect(&params, &(500..=1500)).into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(named("500B", "500B"), [""; 0]);
    assert_eq!(named("499B", "500B"), keys[..1]);
    assert_eq!(named("500B", "499B"), keys[1..]);
    assert_eq!(named("1B", "1B"), keys);
}

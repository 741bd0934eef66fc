//! Input of window control: TCP segments counted from sequence numbers, and the senders' own windows where
//! the hosts report them.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::wire::Tcp;

/// A flow's byte numbers as numbers of segments, as the ingress of a path counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments {
    size: u32,
    /// The number of the first byte of data, once a segment was seen.
    origin: Option<u32>,
    /// Bytes from there to the end of what was seen, which count on where the wire's numbers wrap around.
    seen: u64,
}

impl Segments {
    /// Makes a flow whose full segments have so many bytes of data.
    pub(crate) fn new(size: u32) -> Self {
        Self { size: size.max(1), origin: None, seen: 0 }
    }

    /// Takes a segment that comes, and returns the number of the last one that its bytes of data belong to,
    /// if it has any.
    pub(crate) fn on_data(&mut self, tcp: &Tcp) -> Option<u32> {
        if tcp.syn {
            *self = Self { origin: Some(tcp.sequence.wrapping_add(1)), seen: 0, ..*self };
            return None;
        }
        if tcp.occupies == 0 {
            return None;
        }
        // The connection began before the first packet that was seen.
        self.origin.get_or_insert(tcp.sequence);
        let end = self.place_of(tcp.sequence.wrapping_add(tcp.occupies));
        self.seen = self.seen.max(end);
        Some((end.saturating_sub(1) / u64::from(self.size)) as u32)
    }

    /// Takes an acknowledgement that comes, and returns the number of the segment that the other side expects
    /// next.
    pub(crate) fn on_ack(&mut self, tcp: &Tcp) -> Option<u32> {
        self.origin.filter(|_| tcp.ack)?;
        let expected = self.place_of(tcp.acknowledged);
        // A forged one may lie beyond everything that was sent.
        let expected = expected.min(self.seen);
        Some(expected.div_ceil(u64::from(self.size)) as u32)
    }

    /// Bytes from the first one to this one: of all numbers that agree with it modulo 2³², the one nearest to
    /// what was seen.
    fn place_of(&mut self, number: u32) -> u64 {
        let origin = *self.origin.get_or_insert(number);
        let offset = number.wrapping_sub(origin);
        let ahead = offset.wrapping_sub(self.seen as u32).cast_signed();
        self.seen.saturating_add_signed(i64::from(ahead))
    }
}

/// The congestion windows of the senders, as their hosts report them; shared between the thread that asks the
/// hosts and the one that forwards.
#[derive(Debug)]
pub struct Windows(Vec<AtomicU32>);

impl Windows {
    const NOT_SENDING: u32 = u32::MAX;

    pub(crate) fn new(flows: usize) -> Self {
        Self((0..flows).map(|_| AtomicU32::new(Self::NOT_SENDING)).collect())
    }

    /// Reports the congestion window of a flow in packets; `None` if it has nothing to send.
    pub fn set(&self, flow: usize, packets: Option<u32>) {
        if let Some(window) = self.0.get(flow) {
            window.store(packets.unwrap_or(Self::NOT_SENDING), Ordering::Relaxed);
        }
    }

    /// Returns the last report.
    pub fn get(&self, flow: usize) -> Option<f64> {
        let reported = self.0.get(flow)?.load(Ordering::Relaxed);
        (reported != Self::NOT_SENDING).then_some(f64::from(reported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(sequence: u32, bytes: u32) -> Tcp {
        Tcp { sequence, acknowledged: 0, occupies: bytes, syn: false, ack: false }
    }

    fn ack(acknowledged: u32) -> Tcp {
        Tcp { sequence: 0, acknowledged, occupies: 0, syn: false, ack: true }
    }

    #[test]
    fn bytes_become_segments_across_the_end_of_the_number_space() {
        let mut segments = Segments::new(100);
        let isn = u32::MAX - 150;
        assert_eq!(segments.on_data(&Tcp { syn: true, occupies: 1, ..data(isn, 0) }), None);
        let first = isn.wrapping_add(1);
        assert_eq!(segments.on_data(&data(first, 100)), Some(0));
        assert_eq!(segments.on_data(&data(first.wrapping_add(100), 100)), Some(1));
        assert_eq!(segments.on_data(&data(first.wrapping_add(200), 40)), Some(2));
        assert_eq!(segments.on_data(&data(first, 100)), Some(0), "sent again");
        assert_eq!(segments.on_ack(&ack(first.wrapping_add(100))), Some(1));
        assert_eq!(segments.on_ack(&ack(first.wrapping_add(240))), Some(3));
        assert_eq!(segments.on_ack(&ack(first.wrapping_add(5000))), Some(3), "nobody has sent that");
        assert_eq!(segments.on_data(&data(first.wrapping_add(240), 0)), None);
    }

    #[test]
    fn a_connection_that_began_before_anybody_looked_counts_from_what_was_seen_first() {
        let mut segments = Segments::new(100);
        assert_eq!(segments.on_ack(&ack(7000)), None);
        assert_eq!(segments.on_data(&data(5000, 100)), Some(0));
        assert_eq!(segments.on_ack(&ack(5100)), Some(1));
        assert_eq!(segments.on_data(&data(5100, 100)), Some(1));
    }

    #[test]
    fn windows_are_told_or_not() {
        let windows = Windows::new(2);
        windows.set(1, Some(12));
        windows.set(7, Some(1));
        assert_eq!((windows.get(0), windows.get(1), windows.get(7)), (None, Some(12.0), None));
        windows.set(1, None);
        assert_eq!(windows.get(1), None);
    }
}

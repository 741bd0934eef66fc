//! The receiver's window that grows as the application takes data: Linux's dynamic right-sizing.

use super::{TcpParams, WindowTuning};

/// The receiver's window, as its sender knows it: `tcp_rcv_space_adjust` and `tcp_rcvbuf_grow` of Linux 6.18,
/// which follow Fisk & Feng 2001, "Dynamic Right-Sizing in TCP".
///
/// The application takes all data in order at once, so that what it takes in a round trip is what the sender
/// sees acknowledged in one.
///
/// ## Deviations
/// - Where ten segments do not fit into the first window, a round trip that fills the window makes it grow.
///   In Linux it has grown by then, since large segments leave less of the buffer to overhead than it expects
///   (`tcp_measure_rcv_mss`).
/// - It acts at the sender, half a round trip later than at the receiver, and once for each round trip that
///   the sender measures.
/// - The offer of Linux grows to its new size by two segments for each that arrives (`tcp_grow_window`); here
///   at once. Slow start needs no more than that.
#[derive(Clone, Debug)]
pub(super) struct WindowTuner {
    /// The window that is offered, in segments, and the most that it grows to.
    offered: u64,
    most: u64,
    /// What the sender's buffer allows.
    buffered: u32,
    /// The most that was taken in a round trip (`rcvq_space.space`).
    taken: u64,
    /// Segments acknowledged when this round trip began.
    seen: u32,
}

/// A flow's first round trip brings as much in Linux (`TCP_INIT_CWND`), or a window
/// (`tcp_init_buffer_space`).
const FIRST_TAKEN: u64 = 10;

impl WindowTuner {
    /// Makes the tuner of a new connection; none where the window is as large from the start as it ever gets.
    pub(super) fn new(params: &TcpParams) -> Option<Self> {
        let (offered, most) = (params.first_offered(), params.most_offered());
        let buffered = params.most_buffered().unwrap_or(u32::MAX);
        let tunes = params.window_tuning == WindowTuning::Linux && offered < most.min(buffered);
        tunes.then(|| Self {
            offered: offered.into(),
            most: most.into(),
            buffered,
            taken: FIRST_TAKEN.min(offered.into()),
            seen: 0,
        })
    }

    /// Returns the window that is offered, in segments.
    pub(super) fn offered(&self) -> u32 {
        self.offered as u32
    }

    /// Returns how many segments may be unacknowledged.
    pub(super) fn outstanding(&self) -> u32 {
        self.buffered.min(self.offered())
    }

    /// Ends a round trip, by which all below `acked` has arrived; returns how many may be unacknowledged.
    pub(super) fn on_round_trip(&mut self, acked: u32) -> u32 {
        let taken = u64::from(acked.saturating_sub(self.seen));
        self.seen = acked;
        if taken > self.taken || taken >= self.offered {
            // Twice the last round trip, which is one round trip old; in slow start, what follows doubles.
            let twice = 2 * taken;
            let growing = twice + 2 * (twice * taken.saturating_sub(self.taken) / self.taken);
            self.taken = taken;
            self.offered = self.offered.max(growing.min(self.most));
        }
        self.outstanding()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuner(table: &str) -> Option<WindowTuner> {
        WindowTuner::new(&serde_json::from_str(table).unwrap())
    }

    #[test]
    fn the_window_grows_as_linux_lets_it_grow() {
        // 65535 bytes hold 45 segments of 1448 (Linux offers 65160), 16 MiB 11586.
        let mut tuner = tuner(r#"{"tcp": "linux", "send-buffer": "1GB"}"#).unwrap();
        assert_eq!((tuner.offered, tuner.most), (45, 11_586));
        // 10 segments are no more than Linux begins with; 20 are twice: 40 + 2 * 40; 40: 80 + 2 * 80.
        assert_eq!([10, 30, 70].map(|acked| tuner.on_round_trip(acked)), [45, 120, 240]);
        // By one segment: 82 + 2 * (82 * 1 / 40), which is less than it was.
        assert_eq!(tuner.on_round_trip(111), 240);
        // 3000: far more than before, so all of it.
        assert_eq!(tuner.on_round_trip(3111), 11_586);
        assert_eq!(tuner.on_round_trip(3121), 11_586, "it never shrinks");
    }

    #[test]
    fn a_first_window_of_few_large_segments_grows_when_it_is_filled() {
        // 7 segments of 8948 bytes; one of 60 kB.
        let mut jumbo = tuner(r#"{"tcp": "linux", "packet": "9000B"}"#).unwrap();
        assert_eq!([6, 13, 27].map(|acked| jumbo.on_round_trip(acked)), [7, 14, 84]);
        let mut huge = tuner(r#"{"tcp": "linux", "packet": "60000B"}"#).unwrap();
        assert_eq!([1, 3].map(|acked| huge.on_round_trip(acked)), [2, 12]);
    }

    #[test]
    fn the_senders_buffer_bounds_it() {
        let mut tuner = tuner(r#"{"tcp": "linux"}"#).unwrap();
        assert_eq!(
            [3000, 6001].map(|acked| tuner.on_round_trip(acked)),
            [2896, 2896],
            "4 MiB in segments of 1448"
        );
    }

    #[test]
    fn a_window_that_cannot_grow_is_not_tuned() {
        for table in [
            r#"{"tcp": "newreno"}"#,
            r#"{"tcp": "linux", "window-tuning": "none"}"#,
            r#"{"tcp": "linux", "window": "45p"}"#,
            r#"{"tcp": "linux", "send-buffer": "40p"}"#,
        ] {
            assert!(tuner(table).is_none(), "{table}");
        }
    }
}

//! The test of a [`DropCurve`]: that of RED, with the curve's probability in place of a ramp's.

use super::Severity;
use super::early::{EarlyTest, RedKnobs, Region};
use crate::{DropCurve, Header, Rng};

/// A drop curve with its own count of packets since the last drop.
#[derive(Clone, Debug)]
pub struct CurveTest {
    early: EarlyTest,
    /// A curve of points; none is a ramp, which the test itself has.
    bends: Option<Box<Bends>>,
}

/// The points of a curve.
#[derive(Clone, Debug, PartialEq)]
struct Bends {
    /// Below it, the spacing of drops starts anew.
    start: f64,
    /// By fill: from there on, the probability there, and by how much it rises with the fill.
    pieces: Vec<Piece>,
    /// From there on, all is dropped.
    end: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    fill: f64,
    p: f64,
    slope: f64,
}

impl CurveTest {
    /// The test before its first packet.
    pub fn new(curve: &DropCurve, knobs: RedKnobs) -> Self {
        let bends = match curve {
            DropCurve::Ramp(_) => None,
            DropCurve::Interpolate(points) => {
                let all: Vec<(f64, f64)> = points.iter().collect();
                let next = all.iter().skip(1).copied().map(Some).chain([None]);
                let piece = |(&(fill, p), next): (&(f64, f64), Option<(f64, f64)>)| {
                    let slope = next.map_or(0.0, |(to, q)| (q - p) / (to - fill));
                    Piece { fill, p, slope }
                };
                Some(Bends {
                    start: curve.start().unwrap_or(f64::INFINITY),
                    pieces: all.iter().zip(next).map(piece).collect(),
                    end: curve.end(),
                })
            }
            DropCurve::Segmented(points) => Some(Bends {
                start: curve.start().unwrap_or(f64::INFINITY),
                pieces: points.iter().map(|(fill, p)| Piece { fill, p, slope: 0.0 }).collect(),
                end: f64::INFINITY,
            }),
        };
        let early = match curve {
            DropCurve::Ramp(set) => EarlyTest::new(*set, knobs),
            DropCurve::Interpolate(_) | DropCurve::Segmented(_) => EarlyTest::bare(curve.unit(), knobs),
        };
        Self { early, bends: bends.map(Box::new) }
    }

    /// Moves the thresholds of a ramp, in its own unit; the count goes on.
    pub(super) fn retune(&mut self, min: f64, max: f64) {
        self.early.retune(min, max);
    }

    /// Goes on with the count of another test.
    pub(super) fn take_over(&mut self, before: &Self) {
        self.early.take_over(&before.early);
    }

    /// Judges one packet against the `average`; `None` lets it pass.
    #[inline]
    pub fn judge(&mut self, average: f64, packet: &Header, rng: &mut Rng) -> Option<Severity> {
        match &self.bends {
            None => self.early.judge(average, packet, rng),
            Some(bends) => self.early.judge_in(bends.region(average), 1.0, 1.0, packet, rng),
        }
    }

    /// Records that the packet was lost before this test: the spacing starts again.
    #[inline]
    pub fn lost(&mut self) {
        self.early.lost();
    }
}

impl Bends {
    fn region(&self, average: f64) -> Region {
        if average < self.start {
            return Region::Below;
        }
        if average >= self.end {
            return Region::Above;
        }
        let after = self.pieces.partition_point(|piece| piece.fill <= average);
        let Piece { fill, p, slope } = self.pieces[after.max(1) - 1];
        let p_b = p + slope * (average - fill);
        if p_b < 1.0 { Region::Between(p_b) } else { Region::Above }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::EcnMode;
    use crate::{Bytes, FlowId};

    fn knobs() -> RedKnobs {
        RedKnobs {
            spread: true,
            wait: false,
            gentle: false,
            ecn: EcnMode::Off,
            mean_packet: Bytes::new(1000),
            scale_by_size: true,
        }
    }

    /// The probability of a curve at this fill; -1 below its start.
    fn at(curve: &str, fill: f64) -> f64 {
        let test = CurveTest::new(&curve.parse().unwrap(), knobs());
        match test.bends.unwrap().region(fill) {
            Region::Below => -1.0,
            Region::Between(p_b) => (p_b * 1e9).round() / 1e9,
            Region::Above => 1.0,
        }
    }

    #[test]
    fn interpolated_points_by_hand() {
        // Junos: fill levels 40 and 80 with 8 and 30 %, between the (0, 0) and (100, 100) that it adds, of
        // 1000 packets. A published device prints 4, 8, 13, 24 and 82 % at fills of 20, 40, 50, 70 and 95 %:
        // whole percents, truncated.
        let junos = "interpolate 0/0, 400/0.08, 800/0.3, 1000/1";
        for (fill, by_hand) in [
            (0.0, 0.0),
            (200.0, 0.04),
            (400.0, 0.08),
            (500.0, 0.135),
            (700.0, 0.245),
            (950.0, 0.825),
            (1000.0, 1.0),
        ] {
            assert_eq!(at(junos, fill), by_hand, "{fill}");
        }
        // A min of 30 %, and a jump from 20 % to all within a hundredth: 0, 10, 20 and 100 % at 30, 50, 70
        // and 71 %.
        let ramp = "interpolate 300/0, 700/0.2, 710/1";
        for (fill, by_hand) in [
            (299.9, -1.0),
            (300.0, 0.0),
            (500.0, 0.1),
            (700.0, 0.2),
            (705.0, 0.6),
            (710.0, 1.0),
            (999.0, 1.0),
        ] {
            assert_eq!(at(ramp, fill), by_hand, "{fill}");
        }
        // It begins above 0: nothing below the first point. A plateau of 1 is above max.
        assert_eq!(
            [19.0, 20.0, 25.0, 30.0].map(|fill| at("interpolate 20/0.1, 30/0.2", fill)),
            [-1.0, 0.1, 0.15, 1.0]
        );
        assert_eq!([29.0, 35.0].map(|fill| at("interpolate 20/0, 30/1, 40/1", fill)), [0.9, 1.0]);
    }

    #[test]
    fn segments_by_hand() {
        // Junos: fill-level 50 drop-probability 10; fill-level 80 drop-probability 40.
        let steps = "segmented 50/0.1, 80/0.4";
        let fills = [0.0, 49.9, 50.0, 79.9, 80.0, 1e6];
        assert_eq!(fills.map(|fill| at(steps, fill)), [-1.0, -1.0, 0.1, 0.1, 0.4, 0.4]);
        assert_eq!([10.0, 20.0, 30.0].map(|fill| at("segmented 10/0, 20/0.5, 30/1", fill)), [-1.0, 0.5, 1.0]);
        assert_eq!(at("segmented 10/0", 1e9), -1.0, "it never drops");
    }

    #[test]
    fn a_ramp_as_points_is_a_ramp_to_the_bit() {
        let verdicts = |curve: &str| {
            let mut test = CurveTest::new(&curve.parse().unwrap(), knobs());
            let (packet, mut rng) = (Header::new(FlowId(0), 1000), Rng::stream(5, "ramp"));
            let averages = (0..20_000).map(|n| f64::from(n % 100));
            averages.map(|average| test.judge(average, &packet, &mut rng)).collect::<Vec<_>>()
        };
        // 1/4 over 64 packets: both forms of the line are exact.
        assert_eq!(verdicts("16/80/0.25"), verdicts("interpolate 16/0, 80/0.25"));
        assert!(verdicts("16/80/0.25").contains(&Some(Severity::Early)));
    }
}

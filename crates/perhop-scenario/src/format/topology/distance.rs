//! Propagation delays from geographic positions.

use perhop_core::Duration;

/// The mean radius of the Earth, in metres (IUGG).
const RADIUS: f64 = 6_371_008.8;
/// The speed of light in fiber: two thirds of that in vacuum, in metres per second.
const SPEED: f64 = 299_792_458.0 * 2.0 / 3.0;

/// A position, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
}

impl Position {
    /// Returns the time that light in fiber takes along the great circle, in whole microseconds.
    pub(super) fn delay_to(self, other: Self) -> Duration {
        let micros = self.distance_to(other) / SPEED * 1e6 + 0.5;
        Duration::from_nanos(micros as u64 * 1000)
    }

    /// Returns the length of the great circle's shorter part, in metres: from the chord between the two
    /// points of a unit sphere.
    fn distance_to(self, other: Self) -> f64 {
        let [one, other] = [self, other].map(Self::on_unit_sphere);
        let square: f64 = one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
        2.0 * RADIUS * asin((square.sqrt() / 2.0).min(1.0))
    }

    fn on_unit_sphere(self) -> [f64; 3] {
        let (up, out) = sin_cos(self.latitude);
        let (y, x) = sin_cos(self.longitude);
        [out * x, out * y, up]
    }
}

/// Returns the sine and cosine of an angle of at most 360 degrees either way, by Taylor's series of an angle
/// below 12 degrees, doubled five times: the same bits on every machine.
fn sin_cos(degrees: f64) -> (f64, f64) {
    let x = degrees.to_radians() / 32.0;
    let square = x * x;
    let sin =
        x * (1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0))));
    let cos = 1.0 - square / 2.0 * (1.0 - square / 12.0 * (1.0 - square / 30.0 * (1.0 - square / 56.0)));
    (0..5).fold((sin, cos), |(sin, cos), _| (2.0 * sin * cos, 1.0 - 2.0 * sin * sin))
}

/// Returns the angle from 0 to π/2 of this sine, by halving it until its series converges fast.
fn asin(sine: f64) -> f64 {
    // sin(a/2) = sqrt((1 - cos a) / 2), written without the difference of two numbers that are nearly the
    // same.
    let half = |sine: f64| {
        let cosine = ((1.0 - sine) * (1.0 + sine)).sqrt();
        sine / (2.0 * (1.0 + cosine)).sqrt()
    };
    let x = (0..4).fold(sine, |sine, _| half(sine));
    let square = x * x;
    let series = 1.0
        + square * (1.0 / 6.0 + square * (3.0 / 40.0 + square * (15.0 / 336.0 + square * (105.0 / 3456.0))));
    16.0 * x * series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> Position {
        Position { latitude, longitude }
    }

    #[test]
    fn distances_along_great_circles() {
        let quarter = RADIUS * std::f64::consts::FRAC_PI_2;
        let cases = [
            (at(0.0, 0.0), at(0.0, 0.0), 0.0),
            (at(0.0, 0.0), at(0.0, 90.0), quarter),
            (at(90.0, 12.0), at(0.0, -77.0), quarter),
            (at(0.0, -90.0), at(0.0, 90.0), 2.0 * quarter),
            (at(10.0, 20.0), at(11.0, 20.0), quarter / 90.0),
            // Vienna and New York, by the haversine formula.
            (at(48.2082, 16.3738), at(40.7128, -74.006), 6_796_338.0),
        ];
        for (one, other, metres) in cases {
            let found = one.distance_to(other);
            assert!((found - metres).abs() <= 1.0 + metres * 1e-5, "{one:?} {other:?}: {found}");
            assert_eq!(found, other.distance_to(one));
        }
    }

    #[test]
    fn light_takes_five_microseconds_for_a_kilometre() {
        let degree = at(0.0, 0.0).delay_to(at(0.0, 1.0));
        assert_eq!(degree, "556us".parse().unwrap(), "111.195 km at 199 862 km/s");
    }
}

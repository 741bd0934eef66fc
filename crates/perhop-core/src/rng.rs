//! Random streams: xoshiro256++ (Blackman & Vigna 2021), one independent stream for each block.

use std::cell::Cell;

thread_local! {
    /// The seed by which streams go on that this thread copies now; see [`Rng::reseeding`].
    static RESEEDING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A random stream. Two streams with different paths are independent; the same (seed, path) is the same
/// stream on every platform, so adding a block changes no other block's random numbers.
///
/// A clone draws what its original draws, unless it is made for [other numbers](Self::reseeding).
#[derive(Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Clone for Rng {
    #[inline]
    fn clone(&self) -> Self {
        let Self { state } = *self;
        RESEEDING.get().map_or(Self { state }, |seed| self.reseeded(seed))
    }
}

/// The random streams of one place, such as a link: each block there has a stream of its own.
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// The path of the place, such as `links/bottleneck`.
    pub path: &'a str,
}

impl Streams<'_> {
    /// The stream of one block there, such as `aqm`.
    pub fn of(self, block: &str) -> Rng {
        Rng::stream(self.seed, &format!("{}/{block}", self.path))
    }
}

impl Rng {
    /// The stream of the block at `path` (such as `links/bottleneck/aqm`) in the run with this `seed`.
    pub fn stream(seed: u64, path: &str) -> Self {
        // FNV-1a spreads the path, SplitMix64 the sum: xoshiro's authors' advice for seeding.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in path.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut mixer = SplitMix64(seed);
        mixer.0 = mixer.next() ^ hash;
        Self { state: std::array::from_fn(|_| mixer.next()) }
    }

    /// Makes a copy, such as of a whole run, whose random streams go on with other numbers: every stream
    /// that this thread clones meanwhile gets a new state, which depends on its old one and on `seed` alone.
    /// Values that were drawn before the copy stay the same, and the original streams do not change.
    ///
    /// No block knows of it, so none can forget a stream of its own; this is why a thread has state here.
    pub fn reseeding<T>(seed: u64, copy: impl FnOnce() -> T) -> T {
        struct Before(Option<u64>);
        impl Drop for Before {
            fn drop(&mut self) {
                RESEEDING.set(self.0);
            }
        }
        let _before = Before(RESEEDING.replace(Some(seed)));
        copy()
    }

    #[cold]
    fn reseeded(&self, seed: u64) -> Self {
        let mut mixer = SplitMix64(seed);
        for word in self.state {
            mixer.0 = mixer.next() ^ word;
        }
        Self { state: std::array::from_fn(|_| mixer.next()) }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform on [0, 1), with 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with probability `p`; certain outcomes draw nothing.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && (p >= 1.0 || self.falls_below(p))
    }

    #[inline]
    fn falls_below(&mut self, p: f64) -> bool {
        let number = self.uniform();
        crate::trace::draw(p, number);
        number < p
    }

    /// Uniform on the whole numbers 0..=`most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        // Lemire's multiply-shift; its bias, at most most / 2^64, is far below what a run can show.
        ((u128::from(self.next_u64()) * (u128::from(most) + 1)) >> 64) as u64
    }

    /// Exponential with mean 1, without a logarithm: von Neumann's method of comparisons (Various Techniques
    /// Used in Connection with Random Digits, 1951).
    ///
    /// The whole part counts failures. Each trial draws numbers while they fall, u1 > u2 > …; a falling run
    /// of odd length, which given u1 has probability e^-u1, succeeds with u1 as the fraction.
    pub fn exponential(&mut self) -> f64 {
        let mut whole = 0.0;
        loop {
            let first = self.uniform();
            let (mut last, mut odd) = (first, true);
            loop {
                let next = self.uniform();
                if next >= last {
                    break;
                }
                (last, odd) = (next, !odd);
            }
            if odd {
                return whole + first;
            }
            whole += 1.0;
        }
    }

    /// Normal with mean 0 and standard deviation 1, without a logarithm or a root: von Neumann's rejection
    /// from the exponential, whose second draw decides (Devroye, Non-Uniform Random Variate Generation, 1986,
    /// section IV.4).
    pub fn normal(&mut self) -> f64 {
        loop {
            let size = self.exponential();
            let beyond = size - 1.0;
            if self.exponential() > beyond * beyond / 2.0 {
                return if self.chance(0.5) { size } else { -size };
            }
        }
    }
}

/// A hash of these bits: a step of `SplitMix64`.
#[inline]
pub(crate) fn mixed(bits: u64) -> u64 {
    SplitMix64(bits).next()
}

struct SplitMix64(u64);

impl SplitMix64 {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_matches_its_reference_output() {
        // Vigna's splitmix64.c from state 1234567.
        let mut mixer = SplitMix64(1_234_567);
        assert_eq!(mixer.next(), 6_457_827_717_110_365_317);
        assert_eq!(mixer.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn xoshiro_matches_its_reference_output() {
        // xoshiro256plusplus.c from state {1, 2, 3, 4}.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn streams_differ_by_seed_and_by_path() {
        let mut streams =
            [Rng::stream(1, "a"), Rng::stream(1, "b"), Rng::stream(2, "a")].map(|mut r| r.next_u64());
        streams.sort_unstable();
        assert!(streams.windows(2).all(|w| w[0] != w[1]));
    }

    #[test]
    fn copies_with_other_numbers_depend_on_the_seed_and_on_the_stream() {
        let original = [Rng::stream(1, "a"), Rng::stream(1, "b")];
        let copy = |seed| Rng::reseeding(seed, || original.clone());
        let first = |streams: &[Rng; 2]| streams.clone().map(|mut stream| stream.next_u64());
        assert_eq!(copy(7), copy(7));
        let mut drawn = [original.clone(), copy(7), copy(8)].map(|streams| first(&streams)).concat();
        drawn.sort_unstable();
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "{drawn:?}");
        // A panic within ends it, too.
        let panicked = std::panic::catch_unwind(|| Rng::reseeding(7, || panic!("within")));
        assert!(panicked.is_err());
        assert_eq!(original.clone(), original);
    }

    #[test]
    fn uniform_has_the_mean_and_variance_of_its_name() {
        let mut rng = Rng::stream(7, "test");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
        assert!((0..1000).all(|_| rng.up_to(3) <= 3));
    }
    #[test]
    fn exponential_has_the_moments_and_the_tail_of_its_name() {
        let mut rng = Rng::stream(3, "test");
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| rng.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
        // e^-0.5, e^-1 and e^-3 of the draws lie beyond 0.5, 1 and 3.
        for (beyond, share) in [(0.5, 0.606_531), (1.0, 0.367_879), (3.0, 0.049_787)] {
            let seen = draws.iter().filter(|&&x| x > beyond).count() as f64 / f64::from(n);
            assert!((seen - share).abs() < 0.005, "{beyond}: {seen}");
        }
    }

    #[test]
    fn normal_has_the_moments_and_the_tails_of_its_name() {
        let mut rng = Rng::stream(3, "test");
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let power = |x: f64, exponent| (0..exponent).fold(1.0, |product, _| product * x);
        let moment = |exponent| draws.iter().map(|&x| power(x, exponent)).sum::<f64>() / f64::from(n);
        assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.015, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 0.04 && (moment(4) - 3.0).abs() < 0.1, "{} {}", moment(3), moment(4));
        for (beyond, share) in [(0.5, 0.308_538), (1.0, 0.158_655), (2.0, 0.022_750)] {
            for side in [1.0, -1.0] {
                let seen = draws.iter().filter(|&&x| side * x > beyond).count() as f64 / f64::from(n);
                assert!((seen - share).abs() < 0.004, "{side} {beyond}: {seen}");
            }
        }
    }
}

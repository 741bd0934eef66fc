//! Logarithms and exponentials from additions, multiplications and divisions alone, which give the same bits on every machine.
//!
//! The functions of the standard library call the platform's libm, which may differ in the last digit. These are for draws from
//! distributions, not for the path of packets. They are within 4 units in the last place.

const LN_2: f64 = std::f64::consts::LN_2;

/// The natural logarithm of a positive, normal number.
///
/// The exponent is split off, so that ln x = k ln 2 + ln m with m between 0.7 and 1.5; ln m = 2 artanh((m - 1) / (m + 1)) is summed as
/// a series.
pub fn ln(x: f64) -> f64 {
    debug_assert!(x >= f64::MIN_POSITIVE && x.is_finite(), "a positive, normal number");
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    // The ratio is at most 0.172: the first term left out is below 2^-60.
    let series = (0..12).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * LN_2 + 2.0 * ratio * series
}

/// The exponential; 0 below -700, and at most e^700.
pub fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    let x = x.min(700.0);
    let halvings = (x / LN_2 + if x < 0.0 { -0.5 } else { 0.5 }) as i32;
    let rest = x - f64::from(halvings) * LN_2;
    // The rest is at most 0.35: Taylor's first term left out is below 2^-60.
    let series = (1..18).rev().fold(1.0, |sum, k| 1.0 + sum * rest / f64::from(k));
    series * f64::from_bits(((halvings + 1023) as u64) << 52)
}

/// The quantile of the standard normal distribution at `p` in (0, 1): Wichura's PPND16 (Applied Statistics 37, algorithm AS 241,
/// 1988), with a relative error of 1e-16.
pub fn normal_quantile(p: f64) -> f64 {
    debug_assert!(p > 0.0 && p < 1.0, "a probability between 0 and 1");
    let polynomial =
        |coefficients: [f64; 8], x: f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    let centered = p - 0.5;
    if centered > -0.425 && centered < 0.425 {
        let r = 0.180_625 - centered * centered;
        return centered * polynomial(CENTRAL.0, r) / polynomial(CENTRAL.1, r);
    }
    let tail = if centered < 0.0 { p } else { 1.0 - p };
    let r = (-ln(tail)).sqrt();
    let distance = if r <= 5.0 {
        polynomial(MIDDLE.0, r - 1.6) / polynomial(MIDDLE.1, r - 1.6)
    } else {
        polynomial(FAR.0, r - 5.0) / polynomial(FAR.1, r - 5.0)
    };
    if centered < 0.0 { -distance } else { distance }
}

/// Coefficients of a numerator and a denominator, from the constant term on.
type Rational = ([f64; 8], [f64; 8]);

const CENTRAL: Rational = (
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
);
const MIDDLE: Rational = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);
const FAR: Rational = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= expected.abs() * 1e-15, "{found} instead of {expected}");
    }

    #[test]
    fn logarithms_by_hand() {
        assert_eq!(ln(1.0), 0.0);
        assert_near(ln(2.0), LN_2);
        assert_near(ln(10.0), std::f64::consts::LN_10);
        assert_near(ln(1e-300), -690.775_527_898_213_7);
        assert_near(ln(std::f64::consts::E), 1.0);
        assert_near(ln(0.999), -0.001_000_500_333_583_533_5);
    }

    #[test]
    fn exponentials_by_hand() {
        assert_eq!(exp(0.0), 1.0);
        assert_near(exp(1.0), std::f64::consts::E);
        assert_near(exp(-1.0), 0.367_879_441_171_442_33);
        assert_near(exp(10.0), 22_026.465_794_806_718);
        assert_eq!(exp(-1000.0), 0.0);
    }

    #[test]
    fn normal_quantiles_as_published() {
        // AS 241, section "Numerical examples": p = 0.25, 0.001 and 1e-20.
        assert_near(normal_quantile(0.25), -0.674_489_750_196_081_7);
        assert_near(normal_quantile(0.001), -3.090_232_306_167_813);
        assert_near(normal_quantile(1e-20), -9.262_340_089_798_408);
        assert_near(normal_quantile(0.975), 1.959_963_984_540_054);
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    proptest::proptest! {
        #[test]
        fn the_exponential_undoes_the_logarithm(x in 1e-12_f64..1e12) {
            proptest::prop_assert!((exp(ln(x)) - x).abs() <= x * 2e-14);
        }
    }
}

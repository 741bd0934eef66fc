//! The natural logarithm, the exponential function and the normal quantile in plain IEEE arithmetic, so that
//! their last digit is the same on every platform. All are right to a few units in the last place.

/// ln 2 in two parts: the product of the first with a whole number below 2^20 is exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// The natural logarithm of a positive number that is neither subnormal nor infinite.
pub fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = (bits >> 52).cast_signed() - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), whose argument is at most 0.172.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = (0_u32..12).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    exponent as f64 * LN2_HIGH + (2.0 * ratio * series + exponent as f64 * LN2_LOW)
}

/// e to the power of a number from -700 to 700.
pub fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0);
    let shift = (x / std::f64::consts::LN_2 + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    // The rest is at most 0.35.
    let rest = (x - shift as f64 * LN2_HIGH) - shift as f64 * LN2_LOW;
    let series = (1_u32..=16).rev().fold(1.0, |sum, term| 1.0 + sum * rest / f64::from(term));
    series * f64::from_bits((shift + 1023).cast_unsigned() << 52)
}

/// The quantile of the standard normal distribution at `p` in (0, 1): Wichura's PPND16 (Applied Statistics
/// 37, algorithm AS 241, 1988), with a relative error of 1e-16.
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
    use std::f64::consts::{LN_2, LN_10};

    use proptest::prelude::*;

    #[test]
    fn known_values() {
        for (x, by_hand) in [
            (1.0, 0.0),
            (2.0, LN_2),
            (10.0, LN_10),
            (0.5, -LN_2),
            (1e-10, -23.025_850_929_940_457),
            (4567.0, 8.426_611_813_185),
        ] {
            assert!((ln(x) - by_hand).abs() <= 4e-16 * by_hand.abs(), "{x}: {}", ln(x));
        }
        for (x, by_hand) in [
            (0.0, 1.0),
            (1.0, std::f64::consts::E),
            (-1.0, 0.367_879_441_171_442_33),
            (8.37, 4_315.636_062_697_413),
            (20.0, 485_165_195.409_790_3),
        ] {
            assert!((exp(x) / by_hand - 1.0).abs() <= 1e-15, "{x}: {}", exp(x));
        }
    }

    #[test]
    fn normal_quantiles_as_published() {
        // AS 241, p = 0.25, 0.001 and 1e-20; and the quantile of 95 % intervals.
        for (p, published) in [
            (0.25, -0.674_489_750_196_081_7),
            (0.001, -3.090_232_306_167_813),
            (1e-20, -9.262_340_089_798_408),
            (0.975, 1.959_963_984_540_054),
        ] {
            assert!((normal_quantile(p) / published - 1.0).abs() <= 1e-15, "{p}: {}", normal_quantile(p));
        }
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    proptest! {
        #[test]
        fn the_logarithm_undoes_the_exponential_function(x in -50.0_f64..50.0) {
            prop_assert!((ln(exp(x)) - x).abs() <= 1e-15 * x.abs().max(1.0), "{}", ln(exp(x)));
        }

        #[test]
        fn logarithms_of_products_are_sums(x in 1e-9_f64..1e9, y in 1e-9_f64..1e9) {
            prop_assert!((ln(x * y) - (ln(x) + ln(y))).abs() <= 1e-14 * ln(x).abs().max(ln(y).abs()).max(1.0));
        }
    }
}

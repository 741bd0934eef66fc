//! The natural logarithm and the exponential function in plain IEEE arithmetic, so that their last digit is the same on every
//! platform. Both are right to a few units in the last place.

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

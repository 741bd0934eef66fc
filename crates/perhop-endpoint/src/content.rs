//! Data whose bytes are a function of their offset, so that no copy is kept for retransmissions.

/// Writes the bytes from this offset on into `room`: a fixed sequence without a short period.
pub fn pattern(offset: u64, room: &mut [u8]) {
    let mut place = offset;
    let mut rest = room;
    while !rest.is_empty() {
        let word = mix(place / 8).to_le_bytes();
        let within = (place % 8) as usize;
        let length = rest.len().min(8 - within);
        let (part, after) = rest.split_at_mut(length);
        part.copy_from_slice(&word[within..within + length]);
        place += length as u64;
        rest = after;
    }
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood 2014).
const fn mix(number: u64) -> u64 {
    let mut word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_that_of_the_whole() {
        let mut whole = [0; 64];
        pattern(3, &mut whole);
        for from in 0..64 {
            for end in from..64 {
                let mut part = vec![0; end - from];
                pattern(3 + from as u64, &mut part);
                assert_eq!(part, whole[from..end]);
            }
        }
    }
}

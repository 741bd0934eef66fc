//! Asking for memory before it is needed.

/// Asks the processor to fetch these values into its cache. Only a hint: it reads nothing and changes nothing.
#[inline]
pub(crate) fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let begin = values.as_ptr().cast::<i8>();
        for line in 0..size_of_val(values).div_ceil(LINE) {
            #[expect(unsafe_code, reason = "the one way to say it; to prefetch is safe whatever the address")]
            // SAFETY: a prefetch accesses no memory as far as the program can tell, and faults at no address.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(begin.wrapping_add(line * LINE));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

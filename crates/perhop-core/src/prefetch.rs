//! Asking for memory before it is needed.

/// A stage of prefetching a port: each fetches the addresses that the next one needs, so there is some time
/// between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchStage {
    /// The queues.
    Queues,
    /// The counters of the queues, and the addresses of their packets.
    Counters,
    /// The first packets of the queues.
    Packets,
}

const LINE: usize = 64;
/// Bytes that [`prefetch_start`] asks for.
const START: usize = 256;

/// Asks the processor to fetch these values into its cache. Only a hint: it reads nothing and changes
/// nothing.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    prefetch_bytes(values, size_of_val(values));
}

/// Asks the processor to fetch the start of a long value.
#[inline]
pub fn prefetch_start<T>(value: &T) {
    prefetch_bytes(std::slice::from_ref(value), size_of::<T>().min(START));
}

#[inline]
fn prefetch_bytes<T>(values: &[T], bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let begin = values.as_ptr().cast::<i8>();
        let within = begin.addr() % LINE;
        let begin = begin.wrapping_sub(within);
        for line in 0..(within + bytes).div_ceil(LINE) {
            #[expect(unsafe_code, reason = "the one way to say it; to prefetch is safe whatever the address")]
            // SAFETY: a prefetch accesses no memory as far as the program can tell, and faults at no address.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(begin.wrapping_add(line * LINE));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, bytes, LINE);
}

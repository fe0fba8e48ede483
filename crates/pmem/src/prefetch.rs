//! Prefetching.

use crate::LINE;

/// Prefetches the line at `at`; never faults. Does nothing on processors other than x86-64.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Prefetches the lines of `len` bytes at `at`, as [`prefetch`] does; never faults. If `at` is not the start of a line,
/// the last line may be left out.
#[inline(always)]
pub fn prefetch_range<T>(at: *const T, len: usize) {
    let start = at.cast::<u8>();
    let mut done = 0;
    while done < len {
        prefetch(start.wrapping_add(done));
        done += LINE;
    }
}

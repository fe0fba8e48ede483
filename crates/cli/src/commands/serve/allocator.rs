//! Settings of glibc's allocator for a server; other allocators are left alone.

/// Allocations of at least this many bytes are separate mappings, which are unmapped when they are freed.
#[cfg(target_env = "gnu")]
const MAPPED: i32 = 256 << 10;

/// Configures the allocator.
#[cfg(target_env = "gnu")]
pub fn set_up() {
    // By default glibc would raise this threshold with each large allocation that is freed, up to 32 MiB, and keep the
    // smaller ones.
    // SAFETY: `mallopt` may be called at any time, from any thread, and this parameter takes any number up to 32 MiB.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED) };
}

/// Returns free memory between allocations to the system.
#[cfg(target_env = "gnu")]
pub fn give_back() {
    // SAFETY: `malloc_trim` may be called at any time, from any thread: it returns pages without a byte in use.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: this allocator is unknown.
#[cfg(not(target_env = "gnu"))]
pub fn set_up() {}

/// Does nothing: this allocator is unknown.
#[cfg(not(target_env = "gnu"))]
pub fn give_back() {}

//! Settings of glibc's allocator for a server; other allocators are left as they are.

/// Allocations of this many bytes or more are mappings of their own, which go when they are freed.
#[cfg(target_env = "gnu")]
const MAPPED: i32 = 256 << 10;

/// Sets the allocator up.
#[cfg(target_env = "gnu")]
pub fn set_up() {
    // By itself glibc would raise this with each large allocation that is freed, up to 32 MiB, and keep what is below.
    // SAFETY: `mallopt` may be called at any time, from any thread, and this parameter takes any number up to 32 MiB.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED) };
}

/// Gives free memory back that lies between memory in use.
#[cfg(target_env = "gnu")]
pub fn give_back() {
    // SAFETY: `malloc_trim` may be called at any time, from any thread: it gives back pages without a byte in use.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: this allocator is not known.
#[cfg(not(target_env = "gnu"))]
pub fn set_up() {}

/// Does nothing: this allocator is not known.
#[cfg(not(target_env = "gnu"))]
pub fn give_back() {}

//! Huge pages for the peers, whose memory is the C library's heap.
//!
//! glibc requests them if a tunable is set, but only in its main arena. So all threads use that arena, and inserting
//! threads of a peer contend for it; the report says so.

use std::os::unix::process::CommandExt;
use std::process::Command;

const TUNABLES: &str = "GLIBC_TUNABLES";
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1";

/// Re-executes this program with the same arguments and with the tunables that make glibc request huge pages, which it
/// reads only when a program starts. If that fails, or the C library is another, the heap stays as it is; the figures
/// report how much memory was on huge pages.
pub fn reexecute_on_huge_pages() {
    if one_arena() {
        return;
    }
    let mut tunables = std::env::var_os(TUNABLES).unwrap_or_default();
    if !tunables.is_empty() {
        tunables.push(":");
    }
    tunables.push(HUGE_PAGES);
    if let Ok(program) = std::env::current_exe() {
        // Returns only if it fails.
        let _failed = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(TUNABLES, tunables)
            .exec();
    }
}

/// Returns whether the C library's tunables restrict all threads to one arena.
pub fn one_arena() -> bool {
    std::env::var_os(TUNABLES).is_some_and(|tunables| tunables.to_string_lossy().contains(HUGE_PAGES))
}

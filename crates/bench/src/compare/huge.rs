//! Huge pages for the peers, whose memory is the C library's heap.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

const TUNABLES: &str = "GLIBC_TUNABLES";
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=";

/// Starts this program anew, with the same arguments, with a C library that asks for huge pages: it reads its
/// tunables only when a program starts. Where that fails, or the C library is another, the heap stays as it is, and
/// the figures say how much of the memory lay on huge pages.
pub fn reexecute_on_huge_pages() {
    let tunables = std::env::var_os(TUNABLES).unwrap_or_default();
    if tunables.to_string_lossy().contains(HUGE_PAGES) {
        return;
    }
    let mut tunables: OsString = tunables;
    if !tunables.is_empty() {
        tunables.push(":");
    }
    tunables.push(HUGE_PAGES);
    tunables.push("1");
    if let Ok(program) = std::env::current_exe() {
        // Returns only if it fails.
        let _failed = Command::new(program).args(std::env::args_os().skip(1)).env(TUNABLES, tunables).exec();
    }
}

//! The machine that a run was made on, and what of it a run can arrange: cores and huge pages.

use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What a figure must be read beside.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The best write-back instruction of the processor.
    pub write_back: String,
}

impl Machine {
    /// This machine.
    pub fn detect() -> Machine {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Machine {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib(&read("/proc/meminfo"), "MemTotal") / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            write_back: format!("{:?}", pmem::Hardware::detect().write_back_by()).to_lowercase(),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Machine {
            cpu,
            cores,
            memory_mib,
            kernel,
            write_back,
        } = self;
        write!(
            f,
            "{cpu}, {cores} cores, {memory_mib} MiB, Linux {kernel}, {write_back}"
        )
    }
}

/// How much of this process lies on huge pages.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct HugePages {
    /// Resident memory, in MiB.
    pub resident_mib: u64,
    /// Resident memory on transparent huge pages, in MiB.
    pub huge_mib: u64,
}

impl HugePages {
    /// Now.
    pub fn now() -> HugePages {
        let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
        let huge: u64 = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"]
            .iter()
            .map(|name| kib(&rollup, name))
            .sum();
        HugePages {
            resident_mib: kib(&rollup, "Rss") / 1024,
            huge_mib: huge / 1024,
        }
    }
}

/// Bytes of the first core's cache of this level, for data: what the kernel says of it.
pub fn cache(level: u32) -> Option<u64> {
    cache_in(Path::new("/sys/devices/system/cpu/cpu0/cache"), level)
}

fn cache_in(caches: &Path, level: u32) -> Option<u64> {
    let is_it = |cache: &PathBuf| {
        let read = |name| fs::read_to_string(cache.join(name)).unwrap_or_default();
        read("level").trim().parse() == Ok(level) && read("type").trim() != "Instruction"
    };
    let mut caches = fs::read_dir(caches).ok()?.flatten().map(|entry| entry.path());
    let size = fs::read_to_string(caches.find(is_it)?.join("size")).ok()?;
    let (digits, unit) = match size.trim() {
        size if size.ends_with('K') => (size.trim_end_matches('K'), 10),
        size if size.ends_with('M') => (size.trim_end_matches('M'), 20),
        size => (size, 0),
    };
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(1 << unit)
        .filter(|&bytes| bytes > 0)
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kib(text: &str, name: &str) -> u64 {
    let value = field(text, name).unwrap_or_default();
    value
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Binds the calling thread to the `i`th core of those that this process might use when it first asked for one, whatever
/// core the calling thread has by now; where that is not allowed, it runs where it likes.
pub fn pin_thread(i: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    let cores = CORES.get_or_init(|| match sched_getaffinity(None) {
        Ok(allowed) => (0..CpuSet::MAX_CPU)
            .filter(|&core| allowed.is_set(core))
            .collect(),
        Err(_) => Vec::new(),
    });
    if cores.is_empty() {
        return;
    }
    let mut one = CpuSet::new();
    one.set(cores[i % cores.len()]);
    // A refusal costs only evenness, never a wrong result.
    let _ = sched_setaffinity(None, &one);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Caches are found by their level, whatever the kernel numbers them, and those of instructions are none; where it says
    /// nothing, or nonsense, there is none.
    #[test]
    fn caches_are_found_by_level() {
        let directory = tempfile::tempdir().unwrap();
        for (name, level, kind, size) in [
            ("index0", "2", "Unified", "1024K"),
            ("index1", "1", "Instruction", "32K"),
            ("index2", "1", "Data", "48K"),
            ("index3", "3", "Unified", "32M"),
            ("index4", "4", "Unified", "much"),
        ] {
            let cache = directory.path().join(name);
            fs::create_dir(&cache).unwrap();
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(cache.join(file), format!("{text}\n")).unwrap();
            }
        }
        let found = [1, 2, 3, 4, 5].map(|level| cache_in(directory.path(), level));
        assert_eq!(found, [Some(48 << 10), Some(1 << 20), Some(32 << 20), None, None]);
        assert_eq!(cache_in(Path::new("/no/such/folder"), 3), None);
    }
}

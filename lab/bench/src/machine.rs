//! The machine and the program of a run; pins threads to cores and reports huge pages.

use crate::build::Build;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The context in which a figure must be read.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Hardware threads of the first physical core, if known; some of `cores` may share one.
    pub threads_per_core: Option<usize>,
    /// Bytes of the first core's second-level cache, and of the third-level cache that it shares, if known.
    pub l2_bytes: Option<u64>,
    pub l3_bytes: Option<u64>,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The best write-back instruction of the processor.
    pub write_back: String,
    /// The program and the date.
    pub build: Build,
}

impl Machine {
    /// Describes this machine.
    pub fn detect() -> Machine {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Machine {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            threads_per_core: threads(&read(
                "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
            )),
            l2_bytes: cache(2),
            l3_bytes: cache(3),
            memory_mib: kib(&read("/proc/meminfo"), "MemTotal") / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            write_back: format!("{:?}", pmem::Hardware::detect().write_back_by()).to_lowercase(),
            build: Build::now(),
        }
    }

    /// Describes the machine alone, without program and date.
    pub fn hardware(&self) -> String {
        let Machine {
            cpu,
            cores,
            threads_per_core,
            l2_bytes,
            l3_bytes,
            memory_mib,
            kernel,
            write_back,
            build: _,
        } = self;
        let threads =
            threads_per_core.map_or(String::new(), |threads| format!(" (threads a core: {threads})"));
        let cache = |level: u32, bytes: Option<u64>| {
            bytes.map_or(String::new(), |bytes| format!(", L{level} {} KiB", bytes >> 10))
        };
        let caches = cache(2, *l2_bytes) + &cache(3, *l3_bytes);
        format!("{cpu}, {cores} cores{threads}{caches}, {memory_mib} MiB, Linux {kernel}, {write_back}")
    }
}

/// How much of this process's memory is on huge pages.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct HugePages {
    /// Resident memory, in MiB.
    pub resident_mib: u64,
    /// Resident memory on transparent huge pages, in MiB.
    pub huge_mib: u64,
}

impl HugePages {
    /// Reads the present amounts.
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

/// Returns the size in bytes of the first core's data or unified cache of this level, as the kernel reports it.
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

/// Counts the entries of a kernel's list, such as `0-1,4`.
fn threads(list: &str) -> Option<usize> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.trim().split(',').map(count).sum()
}

/// Returns the kind of the file system that contains, or will contain, a file.
pub fn file_system(file: &Path) -> Option<String> {
    let directory = file.parent().filter(|parent| *parent != Path::new(""));
    let directory = fs::canonicalize(directory.unwrap_or(Path::new("."))).ok()?;
    mounted_at(&fs::read_to_string("/proc/self/mountinfo").ok()?, &directory)
}

/// Returns the kind of the file system mounted nearest to this directory; of several at one mount point, the last.
fn mounted_at(mounts: &str, directory: &Path) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let point = PathBuf::from(place.split(' ').nth(4)?.replace("\\040", " "));
        let depth = directory
            .starts_with(&point)
            .then(|| point.components().count())?;
        Some((depth, kind.split(' ').next()?.to_owned()))
    });
    mounted.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
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

/// Pins the calling thread to the `i`th (modulo their number) of the cores that were allowed to the thread that called
/// this function first, whatever the calling thread's present affinity. If the system refuses, the affinity stays.
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
    // A refusal makes timings less even, but never a result wrong.
    let _ = sched_setaffinity(None, &one);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Caches are found by their level, not by the kernel's numbering; instruction caches, unreadable sizes and missing
    /// directories yield none.
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

    /// Threads are counted from the kernel's lists.
    #[test]
    fn threads_are_counted() {
        for (list, count) in [
            ("0\n", Some(1)),
            ("0-1\n", Some(2)),
            ("0,64\n", Some(2)),
            ("0-1,4-7", Some(6)),
        ] {
            assert_eq!(threads(list), count, "{list}");
        }
        for list in ["", "\n", "x", "1-", "3-1"] {
            assert_eq!(threads(list), None, "{list}");
        }
    }

    /// A file's file system is the one mounted nearest above it; of two at one mount point, the later.
    #[test]
    fn file_systems_are_found() {
        let mounts = "22 1 0:21 / / rw - ext4 /dev/a rw\n\
                      23 22 0:22 / /mnt/pmem rw shared:1 - ext4 /dev/b rw\n\
                      24 22 0:23 / /mnt/pmem rw shared:1 - xfs /dev/c rw,dax\n\
                      25 22 0:24 / /mnt/two\\040words rw - tmpfs none rw\n\
                      nonsense\n";
        for (directory, kind) in [
            ("/", "ext4"),
            ("/mnt", "ext4"),
            ("/mnt/pmem2", "ext4"),
            ("/mnt/pmem", "xfs"),
            ("/mnt/pmem/deep/down", "xfs"),
            ("/mnt/two words", "tmpfs"),
        ] {
            assert_eq!(
                mounted_at(mounts, Path::new(directory)).as_deref(),
                Some(kind),
                "{directory}"
            );
        }
        assert_eq!(mounted_at("", Path::new("/")), None);
        assert_eq!(file_system(Path::new("/no/such/folder/file")), None);
    }

    /// A machine's description names its threads and caches.
    #[test]
    fn machines_are_named() {
        let machine = Machine {
            threads_per_core: Some(2),
            l2_bytes: Some(1 << 20),
            l3_bytes: None,
            ..Machine::detect()
        };
        let name = machine.hardware();
        assert!(name.contains(" (threads a core: 2), L2 1024 KiB, "), "{name}");
    }
}

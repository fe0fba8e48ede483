//! The measurement, which uses system calls of Linux.

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{Mode, OFlags, fdatasync, open};
use rustix::io::{IoSlice, ReadWriteFlags, pwrite, pwritev2};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use wollemi_log::{Change, Directory, Log, LogOptions};

/// Bytes of the file; appends wrap around to its start when it is full.
const FILE: usize = 64 << 20;

/// Bytes of a record.
const RECORD: usize = 120;

/// Unit of direct writes in bytes.
const BLOCK: usize = 4096;

/// How records are written and made durable.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// `pwrite` for each record, `fdatasync` for each group.
    Write,
    /// A copy into a shared mapping for each record, `fdatasync` for each group.
    Map,
    /// The same, with the zeros written in large pieces, so that the page cache may keep them in large folios.
    MapLarge,
    /// A copy into memory for each record, one `pwritev2` with `RWF_DSYNC` for each group.
    Dsync,
    /// A copy into memory for each record, one write with `O_DIRECT | O_DSYNC` of whole blocks for each group.
    Direct,
    /// A copy into memory for each record, one write and one `fdatasync` for each group, both given to the kernel by one
    /// system call, through an `io_uring`.
    Uring,
}

impl Way {
    /// Bytes per write while the file is filled with zeros.
    fn zeros(self) -> usize {
        match self {
            Way::Map => BLOCK,
            _ => 1 << 20,
        }
    }
}

/// The file under test.
struct Target {
    way: Way,
    file: OwnedFd,
    bytes: *mut u8,
    /// Of `Way::Uring` alone.
    ring: Option<Mutex<IoUring>>,
}

// SAFETY: `bytes` points to `FILE` bytes that live to the end; threads write disjoint parts of them.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// Returns `None` if the system lacks `io_uring`, or denies it, and this way needs it.
    fn new(directory: &Path, way: Way) -> Option<Target> {
        let ring = match (way, IoUring::new(8)) {
            (Way::Uring, Err(why)) => {
                eprintln!("{way:?} is left out: {why}");
                return None;
            }
            (Way::Uring, Ok(ring)) => Some(Mutex::new(ring)),
            _ => None,
        };
        let path = directory.join(format!("raw-{way:?}"));
        let zeros = vec![0; way.zeros()];
        let file = File::create(&path).expect("a file in the directory");
        for at in (0..FILE).step_by(zeros.len()) {
            pwrite(&file, &zeros, at as u64).expect("room for zeros");
        }
        file.sync_all().expect("a working fsync");
        let flags = match way {
            Way::Direct => OFlags::RDWR | OFlags::DIRECT | OFlags::DSYNC,
            _ => OFlags::RDWR,
        };
        let file = open(&path, flags, Mode::empty()).expect("the file");
        std::fs::remove_file(&path).expect("the file's name");
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let null = std::ptr::null_mut();
        let bytes = match way {
            // SAFETY: a new mapping at an address of the system's choice touches no other memory.
            Way::Map | Way::MapLarge => unsafe { mmap(null, FILE, protection, MapFlags::SHARED, &file, 0) },
            // SAFETY: as above.
            _ => unsafe { mmap_anonymous(null, FILE, protection, MapFlags::PRIVATE) },
        };
        let bytes = bytes.expect("a mapping").cast();
        Some(Target {
            way,
            file,
            bytes,
            ring,
        })
    }

    /// Puts a record at `at`, a position that keeps counting across the file's end.
    fn append(&self, at: u64, record: &[u8]) {
        let at = at as usize % FILE;
        match self.way {
            Way::Write => {
                pwrite(&self.file, record, at as u64).expect("a write");
            }
            Way::Map | Way::MapLarge | Way::Dsync | Way::Direct | Way::Uring => {
                // SAFETY: `at + RECORD <= FILE`, as the caller skips the rest of the file.
                let place = unsafe { self.bytes.add(at) };
                // SAFETY: the caller has this place to itself.
                unsafe { place.copy_from_nonoverlapping(record.as_ptr(), record.len()) };
            }
        }
    }

    /// Makes `from..to` durable.
    fn sync(&self, from: u64, to: u64) {
        match self.way {
            Way::Write | Way::Map | Way::MapLarge => fdatasync(&self.file).expect("a working fdatasync"),
            Way::Dsync => self.write_group(from, to, 1),
            Way::Direct => self.write_group(from, to, BLOCK),
            Way::Uring => self.submit_group(from, to),
        }
    }

    /// Writes a group and syncs it by one system call, and one more if the group lies across the file's end.
    fn submit_group(&self, from: u64, to: u64) {
        let file = types::Fd(self.file.as_raw_fd());
        let ring = self.ring.as_ref().expect("this way has a ring");
        let mut ring = ring.lock().expect("no panic");
        let mut from = from;
        while from < to {
            let at = from as usize % FILE;
            let len = ((to - from) as usize).min(FILE - at);
            // SAFETY: `at + len <= FILE`.
            let place = unsafe { self.bytes.add(at) };
            let write = opcode::Write::new(file, place, len as u32).offset(at as u64);
            let write = write.build().flags(squeue::Flags::IO_LINK);
            let sync = opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC);
            // SAFETY: file and memory live until the kernel is done, which is awaited below.
            unsafe { ring.submission().push_multiple(&[write, sync.build()]) }.expect("an empty queue");
            ring.submit_and_wait(2).expect("a submission");
            let results: Vec<_> = ring.completion().map(|done| done.result()).collect();
            assert_eq!(results, [len as i32, 0], "a whole write and a working fdatasync");
            from += len as u64;
        }
    }

    fn write_group(&self, from: u64, to: u64, unit: usize) {
        let unit = unit as u64;
        let (mut from, to) = (from / unit * unit, to.next_multiple_of(unit));
        while from < to {
            let at = from as usize % FILE;
            let len = ((to - from) as usize).min(FILE - at);
            // SAFETY: `at + len <= FILE`.
            let place = unsafe { self.bytes.add(at) };
            // SAFETY: initialized memory (mapped zeros); a record copied meanwhile may be torn, and is not yet awaited.
            let bytes = unsafe { std::slice::from_raw_parts(place, len) };
            let written = match self.way {
                Way::Dsync => pwritev2(
                    &self.file,
                    &[IoSlice::new(bytes)],
                    at as u64,
                    ReadWriteFlags::DSYNC,
                ),
                _ => pwrite(&self.file, bytes, at as u64),
            };
            from += written.expect("a write") as u64;
        }
    }
}

/// Group commit in its plainest form: the first waiting thread syncs for all.
struct Group<'t> {
    target: &'t Target,
    /// Position of the next record.
    end: Mutex<u64>,
    /// Position up to which records are durable, and whether a thread is syncing.
    durable: Mutex<(u64, bool)>,
    woken: Condvar,
    syncs: AtomicU64,
}

impl Group<'_> {
    fn append(&self, record: &[u8]) -> u64 {
        let mut end = self.end.lock().expect("no panic");
        if (*end as usize % FILE) + RECORD > FILE {
            *end = end.next_multiple_of(FILE as u64);
        }
        self.target.append(*end, record);
        *end += RECORD as u64;
        *end
    }

    fn wait(&self, lsn: u64) {
        let mut durable = self.durable.lock().expect("no panic");
        while durable.0 < lsn {
            if durable.1 {
                durable = self.woken.wait(durable).expect("no panic");
                continue;
            }
            durable.1 = true;
            let from = durable.0;
            drop(durable);
            let to = *self.end.lock().expect("no panic");
            self.target.sync(from, to);
            self.syncs.fetch_add(1, Ordering::Relaxed);
            durable = self.durable.lock().expect("no panic");
            *durable = (to, false);
            self.woken.notify_all();
        }
    }
}

/// Bytes written by the file's device, for any process.
fn device_bytes(file: impl std::os::fd::AsFd) -> u64 {
    let device = rustix::fs::fstat(file).expect("the file's status").st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let stat = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap_or_default();
    let sectors = stat
        .split_whitespace()
        .nth(6)
        .and_then(|field| field.parse::<u64>().ok());
    sectors.unwrap_or(0) * 512
}

/// The results of a loop.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Thousands of records per second.
    rate: f64,
    /// Records per group.
    group: f64,
    /// KiB that the device wrote per group.
    written: f64,
}

/// Runs threads that append, and wait after every `each` records, for a while. `append` returns the position to wait
/// for.
fn measure(
    threads: usize,
    each: usize,
    time: Duration,
    append: impl Fn(&[u8; RECORD]) -> u64 + Sync,
    wait: impl Fn(u64) + Sync,
) -> f64 {
    let records = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (records, append, wait) = (&records, &append, &wait);
            scope.spawn(move || {
                let record = [thread as u8 + 1; RECORD];
                while started.elapsed() < time {
                    let mut last = 0;
                    for _ in 0..each {
                        last = append(&record);
                    }
                    wait(last);
                    records.fetch_add(each as u64, Ordering::Relaxed);
                }
            });
        }
    });
    records.into_inner() as f64 / started.elapsed().as_secs_f64()
}

/// Measures group commit in its plainest form, over one target.
fn durable(target: &Target, threads: usize, each: usize, time: Duration) -> Seen {
    let group = Group {
        target,
        end: Mutex::new(0),
        durable: Mutex::new((0, false)),
        woken: Condvar::new(),
        syncs: AtomicU64::new(0),
    };
    let written = device_bytes(&target.file);
    let rate = measure(
        threads,
        each,
        time,
        |record| group.append(record),
        |lsn| group.wait(lsn),
    );
    let syncs = group.syncs.into_inner() as f64;
    Seen {
        rate: rate / 1e3,
        group: rate * time.as_secs_f64() / syncs,
        written: (device_bytes(&target.file) - written) as f64 / 1024.0 / syncs,
    }
}

/// Appends to the log, which is emptied when it is full.
fn append_to(log: &Log<Directory>, record: &[u8; RECORD]) -> u64 {
    let change = Change::Put {
        map: "map",
        key: &record[..16],
        // The headers of the record and of the change, and the map's name, count as part of the record here.
        value: &record[16..RECORD - 35],
    };
    loop {
        match log.append(&[change]) {
            Ok(lsn) => return lsn.0,
            Err(wollemi_log::Error::LogFull { .. }) => {
                let end = log.sync().expect("a working fdatasync");
                log.drop_below(end).expect("a working disk");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Measures the same over the log.
fn durable_log(log: &Log<Directory>, device: &File, threads: usize, each: usize, time: Duration) -> Seen {
    let (written, before) = (device_bytes(device), log.stats());
    let wait = |lsn| {
        log.wait_durable(wollemi_log::Lsn(lsn))
            .expect("a working fdatasync")
    };
    let rate = measure(threads, each, time, |record| append_to(log, record), wait);
    let after = log.stats();
    let syncs = (after.syncs - before.syncs) as f64;
    Seen {
        rate: rate / 1e3,
        group: (after.records - before.records) as f64 / syncs,
        written: (device_bytes(device) - written) as f64 / 1024.0 / syncs,
    }
}

/// Nanoseconds per append to the log without a sync; syncs take place between the measured passes.
fn unsynced_log(log: &Log<Directory>, time: Duration) -> f64 {
    let record = [7; RECORD];
    let (started, mut spent, mut records) = (Instant::now(), Duration::ZERO, 0u64);
    while started.elapsed() < time {
        let pass = Instant::now();
        for _ in 0..100_000 {
            append_to(log, &record);
        }
        spent += pass.elapsed();
        records += 100_000;
        let end = log.sync().expect("a working fdatasync");
        log.drop_below(end).expect("a working disk");
    }
    spent.as_nanos() as f64 / records as f64
}

/// Nanoseconds per append without a sync of its own, with one sync at the end of each pass over the file.
fn unsynced(target: &Target, time: Duration) -> f64 {
    let record = [7; RECORD];
    let (started, mut spent, mut records) = (Instant::now(), Duration::ZERO, 0u64);
    let end = Mutex::new(0u64);
    while started.elapsed() < time {
        *end.lock().expect("no panic") = 0;
        let pass = Instant::now();
        for _ in 0..FILE / RECORD {
            let mut end = end.lock().expect("no panic");
            target.append(*end, &record);
            *end += RECORD as u64;
        }
        spent += pass.elapsed();
        records += (FILE / RECORD) as u64;
        target.sync(0, FILE as u64);
    }
    spent.as_nanos() as f64 / records as f64
}

/// Runs the measurements given by the program's arguments.
pub fn measure_all() {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), seconds) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: raw DIRECTORY [SECONDS per cell, 1 by default]");
        std::process::exit(2);
    };
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds / 3.0);
    let ways = [
        Way::Write,
        Way::Map,
        Way::MapLarge,
        Way::Dsync,
        Way::Direct,
        Way::Uring,
    ];
    let targets: Vec<_> = ways
        .iter()
        .filter_map(|&way| Target::new(Path::new(&directory), way))
        .collect();
    println!(
        "{:8} {:>20} {:>20} {:>20} {:>20} {:>12}",
        "way", "1 thread", "8 threads", "64 threads", "64 a commit", "no sync"
    );
    let path = Path::new(&directory).join("log");
    let disk = Arc::new(Directory::open(&path).expect("a directory"));
    let device = File::open(&path).expect("the directory");
    Log::remove(&*disk).expect("an empty directory");
    let log = Log::create(disk.clone(), 1, LogOptions::default()).expect("a log");
    let cells = [(1, 1), (8, 1), (64, 1), (1, 64)];
    let mut best = vec![[Seen::default(); 4]; targets.len() + 1];
    let mut cost = vec![f64::MAX; targets.len() + 1];
    for _round in 0..3 {
        for (column, (threads, each)) in cells.into_iter().enumerate() {
            for (row, best) in best.iter_mut().enumerate() {
                let seen = match targets.get(row) {
                    Some(target) => durable(target, threads, each, time),
                    None => durable_log(&log, &device, threads, each, time),
                };
                if seen.rate > best[column].rate {
                    best[column] = seen;
                }
            }
        }
        for (row, cost) in cost.iter_mut().enumerate() {
            *cost = cost.min(match targets.get(row) {
                Some(target) => unsynced(target, time),
                None => unsynced_log(&log, time),
            });
        }
    }
    let names = targets
        .iter()
        .map(|target| format!("{:?}", target.way))
        .chain(["Log".into()]);
    for ((name, cells), cost) in names.zip(&best).zip(&cost) {
        print!("{name:8}");
        for seen in cells {
            print!(
                " {:>20}",
                format!("{:.1}k {:.1} {:.0}K", seen.rate, seen.group, seen.written)
            );
        }
        println!(" {:>9} ns", format!("{cost:.0}"));
    }
    println!(
        "cells: thousands of durable records per second, records per group, KiB that the device wrote per group"
    );
    println!("{:?}", log.stats());
    drop(log);
    Log::remove(&*disk).expect("an empty directory");
}

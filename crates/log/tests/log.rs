//! The log on a real directory: appended records are found again, and invalid requests are refused.

use rustix::io::Errno;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wollemi_log::disk::OpenFile;
use wollemi_log::{Change, Directory, Disk, DiskError, Error, Log, LogOptions, Lsn, Needs, Remains, Syncer};

const ID: u128 = 0x77_6f_6c_6c_65_6d_69;

/// The smallest segments, so that a few records fill several.
fn small() -> LogOptions {
    LogOptions {
        segment_size: 8192,
        limit: 64 << 10,
        spares: 3,
    }
}

fn disk(path: &Path) -> Arc<Directory> {
    Arc::new(Directory::open(path).expect("a directory"))
}

fn from(lsn: Lsn) -> Needs {
    Needs {
        keep: lsn,
        check: lsn,
        reach: lsn,
        durable: lsn,
    }
}

fn put<'a>(key: &'a [u8], value: &'a [u8]) -> Change<'a> {
    Change::Put { map: "m", key, value }
}

/// All records from `lsn` on: their ends, and their changes as text.
fn records(log: &Log<Directory>, lsn: Lsn) -> Vec<(Lsn, String)> {
    let mut scan = log.scan(lsn..log.appended()).expect("a scan");
    let mut found = Vec::new();
    while let Some(record) = scan.next().expect("a record") {
        found.push((record.end, format!("{:?}", record.changes.collect::<Vec<_>>())));
    }
    found
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).expect("the directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

/// A sync of the full segments leaves out the last one, and waits for the end go on from there. Segments that are made
/// ready in bulk are used like any others.
#[test]
fn full_segments_are_synced_without_the_last() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::create(disk(directory.path()), ID, small()).expect("a log");
    let begin = log.begin();
    assert_eq!(log.sync_full().expect("nothing to sync"), begin);
    let before = log.stats();
    log.prepare_for(3 * 8192).expect("room");
    assert_eq!(log.stats().segments_prepared, 4);
    let append = |n: u8| log.append(&[put(&[n], &[n; 300])]).expect("an append");
    let mut ends: Vec<_> = (0..30).map(append).collect();
    let stats = log.stats();
    assert_eq!(stats.segments_late, before.segments_late);
    let last = (log.appended().0 - 1) / 8192 * 8192;
    let full = ends.iter().rposition(|end| end.0 <= last).expect("full segments");
    assert_eq!(log.sync_full().expect("a sync"), ends[full]);
    assert_eq!((log.durable(), log.stats().syncs), (ends[full], stats.syncs + 1));
    assert_eq!(log.stats().synced - stats.synced, full as u64 + 1);
    assert_eq!(log.sync_full().expect("nothing to sync"), ends[full]);
    ends.push(append(30));
    log.wait_durable(log.appended()).expect("a sync");
    assert_eq!(log.durable(), log.appended());
    assert_eq!(log.stats().synced - stats.synced, 31);
    drop(log);
    let log = Log::open(disk(directory.path()), ID, from(begin), small()).expect("the log");
    let found: Vec<_> = records(&log, begin).into_iter().map(|(end, _)| end).collect();
    assert_eq!(found, ends);
}

/// Records of every kind and of sizes around those of a segment are found again, before and after reopenings, with the
/// ends that their appends returned.
#[test]
fn records_come_back_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = LogOptions {
        limit: 1 << 20,
        ..small()
    };
    let disk = disk(directory.path());
    let mut log = Log::create(disk.clone(), ID, options.clone()).expect("a log");
    let begin = log.begin();
    let mut expected = Vec::new();
    let big: Vec<u8> = (0..40_000u32).map(|n| (n % 251) as u8).collect();
    for round in 0..60usize {
        let value = &big[..[0, 1, 7, 100, 479, 480, 481, 600, 4040, 4071, 4080, 9000, 40_000][round % 13]];
        let key = round.to_le_bytes();
        let changes = match round % 5 {
            0 => vec![
                put(&key, value),
                put(b"", b"x"),
                Change::Remove {
                    map: "other",
                    key: &key,
                },
            ],
            1 => vec![Change::MapMade {
                map: "m",
                index: "roart",
                settings: value,
            }],
            2 => vec![Change::MapDropped { map: "m" }],
            _ => vec![put(&key, value)],
        };
        let end = log.append(&changes).expect("an append");
        expected.push((end, format!("{changes:?}")));
        if round % 7 == 0 {
            log.wait_durable(end).expect("a sync");
            assert!(log.durable() >= end);
        }
        if round % 9 == 0 {
            drop(log);
            log = Log::open(disk.clone(), ID, from(begin), options.clone()).expect("the log again");
            assert!(log.is_settled());
        }
        assert_eq!(records(&log, begin), expected, "after {round}");
    }
    let middle = expected[30].0;
    assert_eq!(records(&log, middle), expected[31..], "from the middle");
    log.sync().expect("a sync");
    drop(log);
    let needs = Needs {
        keep: begin,
        check: middle,
        reach: expected[59].0,
        durable: middle,
    };
    let log = Log::open(disk, ID, needs, options).expect("the log again");
    assert_eq!(records(&log, begin), expected);
}

/// Dropping records makes room below the limit, and their files are reused; a live scan keeps its own.
#[test]
fn segments_are_recycled() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::create(disk(directory.path()), ID, small()).expect("a log");
    let value = [7; 1000];
    let mut appended = 0;
    for _ in 0..12 {
        let first = log.appended();
        let full = loop {
            match log.append(&[put(b"key", &value)]) {
                Ok(_) => appended += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::LogFull { limit: 65536, .. }), "{full}");
        assert!(!log.wait_for_room(2000, Duration::ZERO).expect("no failure"));
        let scan = log.scan(first..log.appended()).expect("a scan");
        log.sync().expect("a sync");
        log.drop_below(log.durable()).expect("a drop");
        assert!(log.begin() <= first, "the scan keeps what it needs");
        drop(scan);
        log.drop_below(log.durable()).expect("a drop");
        assert!(log.wait_for_room(2000, Duration::ZERO).expect("no failure"));
        let names = names(directory.path());
        assert!(
            names.iter().filter(|name| name.starts_with("spare-")).count() <= 3,
            "{names:?}"
        );
    }
    let stats = log.stats();
    assert_eq!(stats.records, appended + 1, "and the mark of the opening");
    assert!(
        stats.segments_recycled > 20 && stats.refused_at_limit == 12,
        "{stats:?}"
    );
    assert!(
        log.drop_below(Lsn(log.appended().0 + 8)).is_err(),
        "records past the end cannot be dropped"
    );
    assert!(matches!(
        log.scan(Lsn(4096)..log.appended()),
        Err(Error::Position { .. })
    ));
}

/// A record larger than the limit allows, or with a name that is too long, is refused and changes nothing.
#[test]
fn what_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::create(disk(directory.path()), ID, small()).expect("a log");
    let end = log.appended();
    let large = vec![0; 64 << 10];
    assert!(matches!(
        log.append(&[put(b"key", &large)]),
        Err(Error::TooLarge { .. })
    ));
    let name = "n".repeat(256);
    assert!(matches!(
        log.append(&[Change::MapDropped { map: &name }]),
        Err(Error::TooLong { bytes: 256, .. })
    ));
    let key = vec![0; 65_536];
    assert!(matches!(
        log.append(&[put(&key, b"")]),
        Err(Error::TooLong { bytes: 65_536, .. })
    ));
    assert_eq!(log.appended(), end);
    assert!(matches!(
        log.wait_durable(Lsn(end.0 + 8)),
        Err(Error::Position { .. })
    ));
}

/// A directory with no log, with another log, or with only a part of one is refused, with the reason.
#[test]
fn what_is_wrong_with_a_directory_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let disk = disk(path);
    let open = |needs| Log::open(disk.clone(), ID, needs, small()).expect_err("a refusal");
    assert!(matches!(open(from(Lsn(4096))), Error::Missing { .. }));
    let log = Log::create(disk.clone(), ID, small()).expect("a log");
    assert!(matches!(
        Log::create(disk.clone(), ID, small()),
        Err(Error::Exists { .. })
    ));
    let (begin, value) = (log.begin(), [1; 1000]);
    for _ in 0..20 {
        log.append(&[put(b"key", &value)]).expect("an append");
    }
    log.sync().expect("a sync");
    let end = log.appended();
    drop(log);

    let other = Log::open(disk.clone(), ID + 1, from(begin), small());
    assert!(matches!(other, Err(Error::Foreign { .. })), "{other:?}");
    let beyond = Needs {
        reach: Lsn(end.0 + 800),
        ..from(begin)
    };
    assert!(matches!(open(beyond), Error::Ends { .. }));
    assert!(matches!(open(from(Lsn(begin.0 + 8))), Error::Position { .. }));

    let aside = path.join("aside");
    for name in names(path).iter().filter(|name| name.starts_with("log-")) {
        std::fs::rename(path.join(name), &aside).expect("a rename");
        if *name < format!("log-{:08x}", (end.0 - 1) / 8192 + 1) {
            // If the last segment with records is missing, only `reach` says that the log went on. Segments that are
            // not checked now must still exist.
            for check in [begin, end] {
                let refusal = open(Needs {
                    keep: begin,
                    check,
                    reach: end,
                    durable: begin,
                });
                assert!(
                    matches!(refusal, Error::Missing { .. }),
                    "without {name}, from {check}: {refusal}"
                );
            }
        }
        std::fs::rename(&aside, path.join(name)).expect("a rename");
    }

    let swap = |a: &str, b: &str| {
        std::fs::rename(path.join(a), &aside).expect("a rename");
        std::fs::rename(path.join(b), path.join(a)).expect("a rename");
        std::fs::rename(&aside, path.join(b)).expect("a rename");
    };
    swap("log-00000001", "log-00000002");
    assert!(matches!(open(from(begin)), Error::Damaged { at: 32, .. }));
    swap("log-00000001", "log-00000002");

    let mut bytes = std::fs::read(path.join("log-00000000")).expect("a segment");
    bytes[8] = 2;
    std::fs::write(path.join("log-00000000"), &bytes).expect("a segment");
    assert!(matches!(open(from(begin)), Error::Newer { version: 2, .. }));
    bytes[0] = b'w';
    std::fs::write(path.join("log-00000000"), &bytes).expect("a segment");
    assert!(matches!(open(from(begin)), Error::NotALog { .. }));
    Log::remove(&*disk).expect("a removal");
    assert_eq!(names(path), [""; 0]);
}

/// A record that was durable and has a wrong checksum is damaged, even if no position states the length of the log:
/// later records prove that it was durable.
#[test]
fn damage_is_no_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let log = Log::create(disk(path), ID, small()).expect("a log");
    let begin = log.begin();
    let ends: Vec<_> = (0..20u8)
        .map(|n| {
            let end = log.append(&[put(&[n], &[n; 700])]).expect("an append");
            log.wait_durable(end).expect("a sync");
            end
        })
        .collect();
    drop(log);
    // The last record is left out: a crash may leave one with a wrong checksum at the end.
    for end in &ends[..19] {
        let (file, at) = (
            path.join(format!("log-{:08x}", (end.0 - 1) / 8192)),
            (end.0 - 100) % 8192,
        );
        let mut bytes = std::fs::read(&file).expect("a segment");
        bytes[at as usize] ^= 1;
        std::fs::write(&file, &bytes).expect("a segment");
        let opened = Log::open(disk(path), ID, from(begin), small());
        assert!(matches!(opened, Err(Error::Damaged { .. })), "{end}: {opened:?}");
        bytes[at as usize] ^= 1;
        std::fs::write(&file, &bytes).expect("a segment");
    }
    let log = Log::open(disk(path), ID, from(begin), small()).expect("the log is intact again");
    assert_eq!(records(&log, begin).len(), 20);
}

/// A scan skips the records before its first, and does not compare their checksums. A flipped bit in one of them makes
/// the scan fail, or changes nothing: the scan never misses a record.
#[test]
fn damage_in_skipped_records_hides_no_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::create(disk(directory.path()), ID, small()).expect("a log");
    let begin = log.begin();
    // A record takes 64 bytes, so that one with 64 more ends where another does. They reach into the next segment.
    let append = |_| log.append(&[put(b"key", &[7; 25])]).expect("an append");
    let ends: Vec<_> = (0..70).map(append).collect();
    assert!(
        ends[..60].iter().zip(&ends[1..]).all(|(a, b)| b.0 - a.0 == 64),
        "{ends:?}"
    );
    let from = ends[3];
    let expected = records(&log, from);
    assert_eq!(expected.len(), 66);
    let path = directory.path().join("log-00000000");
    let file = std::fs::File::options().read(true).write(true).open(path);
    let file = file.expect("the segment");
    let mut outcomes = [0, 0];
    for at in begin.0..from.0 {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("a byte");
        for bit in 0..8 {
            file.write_all_at(&[byte[0] ^ 1 << bit], at).expect("written");
            let mut scan = log.scan(from..log.appended()).expect("a scan");
            let mut ends = Vec::new();
            let done = loop {
                match scan.next() {
                    Ok(Some(record)) => ends.push(record.end),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            match done {
                Ok(()) => assert!(
                    ends.iter().eq(expected.iter().map(|(end, _)| end)),
                    "bit {bit} of {at}"
                ),
                Err(Error::Damaged { .. }) => assert!(ends.is_empty(), "bit {bit} of {at}"),
                Err(error) => panic!("bit {bit} of {at}: {error}"),
            }
            outcomes[usize::from(ends.is_empty())] += 1;
        }
        file.write_all_at(&byte, at).expect("written");
    }
    assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
}

/// Threads that append and wait each find their records durable, in groups; records that no thread waits for are
/// durable within the bound.
#[test]
fn groups_share_syncs() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::create(
        disk(directory.path()),
        ID,
        LogOptions {
            segment_size: 1 << 16,
            ..LogOptions::default()
        },
    );
    let log = Arc::new(log.expect("a log"));
    let begin = log.begin();
    std::thread::scope(|scope| {
        for writer in 0..8u8 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..50u8 {
                    let end = log.append(&[put(&[writer, n], &[n; 300])]).expect("an append");
                    log.wait_durable(end).expect("a sync");
                    assert!(log.durable() >= end);
                }
            });
        }
    });
    let mut next = [0; 8];
    let mut scan = log.scan(begin..log.appended()).expect("a scan");
    while let Some(mut record) = scan.next().expect("a record") {
        let Some(Change::Put {
            key: &[writer, n], ..
        }) = record.changes.next()
        else {
            panic!("a record of another kind");
        };
        assert_eq!(
            n,
            next[usize::from(writer)],
            "a writer's records are in its order"
        );
        next[usize::from(writer)] += 1;
    }
    assert_eq!(next, [50; 8]);
    let stats = log.stats();
    assert_eq!(stats.group_sizes.0.iter().sum::<u64>(), stats.syncs);
    assert!(stats.syncs <= 401 && stats.segments_prepared >= 2, "{stats:?}");

    let syncer = Syncer::start(log.clone(), Duration::from_millis(1)).expect("a thread");
    let end = log.append(&[put(b"key", b"value")]).expect("an append");
    while log.durable() < end {
        std::thread::yield_now();
    }
    // Records appended without a bound are synced once there is one, or when the thread ends.
    syncer.set_bound(None);
    let end = log.append(&[put(b"key", b"later")]).expect("an append");
    syncer.set_bound(Some(Duration::ZERO));
    while log.durable() < end {
        std::thread::yield_now();
    }
    syncer.set_bound(None);
    let end = log.append(&[put(b"key", b"last")]).expect("an append");
    drop(syncer);
    assert!(log.durable() >= end);
}

/// Operations that fail, and their error.
type Fails = Option<(&'static [&'static str], Errno)>;

/// A directory in which calls of some operations fail on request.
struct Failing {
    directory: Directory,
    fails: Mutex<Fails>,
}

impl Failing {
    fn new(path: &Path) -> Arc<Failing> {
        Arc::new(Failing {
            directory: Directory::open(path).expect("a directory"),
            fails: Mutex::new(None),
        })
    }

    fn fail(&self, fails: Fails) {
        *self.fails.lock().expect("no panic") = fails;
    }

    fn call(&self, operation: &'static str) -> Result<(), DiskError> {
        match *self.fails.lock().expect("no panic") {
            Some((failing, errno)) if failing.contains(&operation) => Err(DiskError {
                file: "a file".into(),
                operation,
                source: errno.into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Disk for Failing {
    type File = OpenFile;

    fn create(&self, name: &str) -> Result<OpenFile, DiskError> {
        self.call("create")?;
        self.directory.create(name)
    }

    fn open(&self, name: &str) -> Result<OpenFile, DiskError> {
        self.directory.open(name)
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.directory.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.call("rename")?;
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.call("remove")?;
        self.directory.remove(name)
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.call("fsync of the directory")?;
        self.directory.sync_dir()
    }
}

/// A failed sync of the directory has failed for all threads that had changed names before it.
#[test]
fn a_failed_sync_fails_all_earlier_changes_of_names() {
    let folder = tempfile::tempdir().expect("a directory");
    let disk = Failing::new(folder.path());
    let log = Log::create(disk.clone(), ID, small()).expect("a log");
    let (before, latest) = (log.change_names(), log.change_names());
    disk.fail(Some((&["fsync of the directory"], Errno::NOMEM)));
    log.sync_names(latest).expect_err("the sync fails");
    disk.fail(None);
    let after = log.change_names();
    let error = log.sync_names(before).expect_err("the change may not be durable");
    assert!(error.is_shortage(), "{error}");
    log.sync_names(after).expect("the change came after the failure");
}

/// If the disk is full when segments are dropped, the log goes on in its space, refuses records that need more, and
/// goes on when there is space again: nothing was lost. An I/O error fails the log.
#[test]
fn a_full_disk_takes_no_log_with_it() {
    let operations: [(&'static [&'static str], usize); 3] = [
        (&["rename"], 3),
        (&["remove"], 0),
        (&["fsync of the directory"], 3),
    ];
    for (failing, spares) in operations {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::IO] {
            let directory = tempfile::tempdir().expect("a directory");
            let disk = Failing::new(directory.path());
            let options = LogOptions {
                spares,
                limit: 256 << 10,
                ..small()
            };
            let log = Log::create(disk.clone(), ID, options.clone()).expect("a log");
            let fill = || -> Result<Lsn, Error> {
                let mut end = log.appended();
                for n in 0..15u32 {
                    end = log.append(&[put(&n.to_le_bytes(), &[7; 1000])])?;
                }
                log.wait_durable(end).map(|()| end)
            };
            let end = fill().expect("room");
            disk.fail(Some((failing, errno)));
            let dropped = log.drop_below(end);
            if errno == Errno::IO {
                assert!(matches!(dropped, Err(Error::Failed(_))), "{dropped:?}");
                assert!(log.failure().is_some());
                continue;
            }
            dropped.unwrap_or_else(|error| panic!("{failing:?}, {errno}: {error}"));
            assert_eq!(log.begin(), end);
            // There is room below the limit, but perhaps none for a new segment.
            match fill() {
                Ok(_) => assert_eq!(failing, ["remove"]),
                Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{error}"),
            }
            assert_eq!(log.failure(), None);
            disk.fail(None);
            let end = fill().expect("room again");
            log.drop_below(end).expect("room again");
            let end = fill().expect("more room");
            // Segments that could not be recycled were recycled later.
            let logs = names(directory.path());
            let logs = logs.iter().filter(|name| name.starts_with("log-"));
            assert!(logs.count() <= 8, "{:?}", names(directory.path()));
            let begin = log.begin();
            drop(log);
            let log = Log::open(disk, ID, from(begin), options).expect("the log again");
            let mut scan = log.scan(begin..end).expect("a scan");
            let mut found = 0;
            while scan.next().expect("a record").is_some() {
                found += 1;
            }
            assert_eq!(found, 15, "{failing:?}");
        }
    }
}

/// If the disk becomes full while a segment is made, and its file cannot be removed either, the log makes the segment
/// once there is space.
#[test]
fn a_segment_that_was_not_made_is_made_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = Failing::new(directory.path());
    let options = LogOptions {
        limit: 256 << 10,
        ..small()
    };
    let log = Log::create(disk.clone(), ID, options).expect("a log");
    disk.fail(Some((&["rename", "remove"], Errno::NOSPC)));
    let append = || log.append(&[put(b"key", &[7; 1000])]);
    let full = (0..10).find_map(|_| append().err()).expect("a segment's bytes");
    assert!(matches!(full, Error::DiskFull(_)), "{full}");
    let left = names(directory.path());
    assert!(left.iter().any(|name| name.starts_with("spare-")), "{left:?}");
    disk.fail(None);
    for _ in 0..10 {
        append().expect("room again");
    }
    log.sync().expect("a sync");
}

/// However long a log is, few of its files are open: those that a sync may need.
#[cfg(target_os = "linux")]
#[test]
fn a_long_log_has_few_files_open() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = LogOptions {
        limit: 4 << 20,
        ..small()
    };
    let open = || {
        let files = std::fs::read_dir("/proc/self/fd").expect("the files of this process");
        let names = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        names
            .filter(|name| name.starts_with(directory.path()) && name != directory.path())
            .count()
    };
    let log = Log::create(disk(directory.path()), ID, options.clone()).expect("a log");
    let begin = log.begin();
    for n in 0..1000u32 {
        let end = log.append(&[put(&n.to_le_bytes(), &[7; 1000])]).expect("room");
        if n % 20 == 0 {
            log.wait_durable(end).expect("a sync");
        }
    }
    log.sync().expect("a sync");
    assert!(names(directory.path()).len() > 100);
    assert!(open() <= 3, "{} files are open", open());
    assert_eq!(records(&log, begin).len(), 1000);
    assert!(open() <= 3, "{} files are open", open());
    drop(log);
    let log = Log::open(disk(directory.path()), ID, from(begin), options).expect("the log again");
    assert!(open() <= 3, "{} files are open", open());
    assert_eq!(records(&log, begin).len(), 1000);
}

/// The leftovers of an interrupted creation are distinguished from a log that has records, and both from files of
/// other programs.
#[test]
fn an_unused_log_is_recognised() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = disk(directory.path());
    let trace = || Log::trace(&*disk);
    assert_eq!(trace().expect("a directory"), Remains::Nothing);
    drop(Log::create(disk.clone(), ID, small()).expect("a log"));
    assert_eq!(trace().expect("a log"), Remains::Unused);
    let log = Log::open(disk.clone(), ID, from(Lsn(4096)), small()).expect("the log again");
    assert_eq!(trace().expect("a log"), Remains::Unused);
    let before = names(directory.path());
    let first = log.append(&[put(b"key", b"value")]).expect("room");
    log.append(&[put(b"key", b"value")]).expect("room");
    assert_eq!(trace().expect("a log"), Remains::Used("log-00000000".into()));
    // Earlier damage hides no later record.
    let path = directory.path().join("log-00000000");
    let mut bytes = std::fs::read(&path).expect("there");
    bytes[4096..first.0 as usize].fill(0x55);
    std::fs::write(&path, bytes).expect("written");
    assert_eq!(trace().expect("a log"), Remains::Used("log-00000000".into()));
    assert_eq!(names(directory.path()), before);
}

/// A crash may leave any part of a spare's header. Such a file belongs to an interrupted creation.
#[test]
fn a_spare_with_a_part_of_its_header_is_a_trace() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = disk(directory.path());
    drop(Log::create(disk.clone(), ID, small()).expect("a log"));
    let mut header = std::fs::read(directory.path().join("log-00000000")).expect("there");
    header.truncate(64);
    let middle = header.len() / 2;
    for written in (0..=header.len()).flat_map(|at| [0..at, at..middle.max(at)]) {
        let mut bytes = vec![0; 1 << 16];
        bytes[written.clone()].copy_from_slice(&header[written.clone()]);
        std::fs::write(directory.path().join("spare-00000001"), bytes).expect("written");
        let trace = Log::trace(&*disk);
        assert_eq!(
            trace.expect("a spare"),
            Remains::Unused,
            "bytes {written:?} of the header"
        );
    }
}

/// A file that has the name of a segment or of a spare, but is neither, is an error, so that it is not removed.
#[test]
fn files_of_others_are_no_trace() {
    for name in ["log-00000000", "log-00000001", "spare-00000001"] {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = disk(directory.path());
        drop(Log::create(disk.clone(), ID, small()).expect("a log"));
        std::fs::write(directory.path().join(name), "another's").expect("written");
        assert!(matches!(Log::trace(&*disk), Err(Error::NotALog { .. })), "{name}");
    }
}

//! The log on a real directory: appended records are found again, and invalid requests are refused.

mod damage;
mod failing;
mod misnamed;
mod unused;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wollemi_log::{Change, Directory, Disk, Error, Log, LogOptions, Lsn, Needs, Syncer};

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
fn records<D: Disk>(log: &Log<D>, lsn: Lsn) -> Vec<(Lsn, String)> {
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

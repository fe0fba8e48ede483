//! The log of level `disk` under crashes, failing calls and damage: bounded runs of what `wollemi-lab torture --index
//! log` does.

use crashkit::Random;
use crashkit::disk::{CrashDisk, DiskEvent, DiskFault, FaultKind, Medium, images};
use log::{Change, Error, Log, LogOptions, Lsn, Needs};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wollemi_torture::bounds::Bounds;
use wollemi_torture::log::{damage, torture};
use wollemi_torture::syncs::hunt;

/// Bytes of a segment.
const SEGMENT: u32 = 8 << 10;

const OPTIONS: LogOptions = LogOptions {
    segment_size: SEGMENT,
    limit: 8 * SEGMENT as u64,
    spares: 3,
};

/// Upper bound on any wait for another thread; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// After every crash of every history the log holds exactly a prefix of the appended records, which includes all
/// acknowledged ones; and a removal leaves no spares alone.
#[test]
fn crashes_leave_a_prefix() {
    let bounds = Bounds {
        histories: 60,
        budget: Duration::MAX,
        ..Bounds::default()
    };
    let report = torture(&bounds).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report}");
    assert!(
        report.states > 10_000 && report.again > 10 && report.faults > 10,
        "{report}"
    );
}

/// If the log fails otherwise than by a sync while threads wait for the next one, all of them end with the error.
#[test]
fn a_failed_log_leaves_no_thread_waiting() {
    let disk = CrashDisk::new(Medium::new());
    let options = LogOptions {
        segment_size: SEGMENT,
        ..LogOptions::default()
    };
    let log = Arc::new(Log::create(Arc::new(disk.clone()), 1, options).expect("a log"));
    let append = |log: &Log<CrashDisk>| log.append(&[Change::MapDropped { map: "m" }]).expect("room");
    let first = append(&log);
    let (sender, results) = mpsc::channel();
    let amid_sync = {
        let (log, disk) = (log.clone(), disk.clone());
        move || {
            let before = log.stats().waits;
            for _ in 0..3 {
                let (log, sender, end) = (log.clone(), sender.clone(), append(&log));
                std::thread::spawn(move || sender.send(log.wait_durable(end)));
            }
            while log.stats().waits < before + 3 {
                std::thread::yield_now();
            }
            disk.inject(Some(DiskFault {
                call: 0,
                kind: FaultKind::Io,
                lasting: false,
            }));
            log.prepare_for(2 * u64::from(SEGMENT))
                .expect_err("no segment can be made");
        }
    };
    disk.amid_next_sync(amid_sync);
    log.wait_durable(first).expect("its own sync succeeds");
    for _ in 0..3 {
        let waited = results.recv_timeout(PATIENCE).expect("each thread ends");
        assert!(matches!(waited, Err(Error::Failed(_))), "{waited:?}");
    }
}

/// Each sync is needed: the omission of any is detected.
#[test]
fn each_sync_is_missed() {
    let bounds = Bounds {
        seed: 1,
        histories: 40,
        budget: Duration::MAX,
        ..Bounds::default()
    };
    let fates = hunt(&bounds, torture, |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    for fate in &fates {
        println!("{}: {:?}", fate.site, fate.found);
    }
    assert!(fates.len() >= 6, "{fates:?}");
    let survivors: Vec<_> = fates.iter().filter(|fate| fate.found.is_none()).collect();
    assert!(survivors.is_empty(), "{survivors:?}");
}

/// A cleanly closed log that is then damaged fails to open, or has all its records.
#[test]
fn damage_is_never_data() {
    let report = damage(1, 20_000).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report:?}");
    assert!(report.refused > 1_000 && report.whole > 1_000, "{report:?}");
}

/// Appends a record of 1500 bytes, and waits until it is durable.
fn put(log: &Log<CrashDisk>) {
    let end = log.append(&[Change::Put {
        map: "m",
        key: b"key",
        value: &[7; 1500],
    }]);
    log.wait_durable(end.expect("room")).expect("no fault");
}

/// Opens the log on this disk, of which the records from a position on are kept.
fn opened(disk: &CrashDisk, keep: Lsn) -> Log<CrashDisk> {
    let needs = Needs {
        keep,
        check: keep,
        reach: keep,
        durable: keep,
    };
    Log::open(Arc::new(disk.clone()), 1, needs, OPTIONS).expect("the log opens")
}

/// Returns what the events of a disk have left of a medium up to the last renaming to such a name, which no sync of the
/// directory has followed.
fn before_the_name_is_durable(mut left: Medium, disk: &CrashDisk, prefix: &str) -> Medium {
    let events = disk.events();
    let is_renaming =
        |event: &DiskEvent| matches!(event, DiskEvent::Rename { to, .. } if to.starts_with(prefix));
    let renamed = events.iter().rposition(is_renaming).expect("a renaming");
    events[..=renamed].iter().for_each(|event| _ = left.apply(event));
    left
}

/// A power cut may leave a file with two names: of two renamings of it that no sync of the directory has followed, the
/// first is lost and the second is not. An opening then does not use the file as two spares: what was written into the
/// one would be lost with the other.
#[test]
fn a_file_with_two_names_is_used_once() {
    // A process is killed when a spare has the name of a segment, which is not durable yet.
    let disk = CrashDisk::new(Medium::new());
    let log = Log::create(Arc::new(disk.clone()), 1, OPTIONS).expect("a log");
    (0..6).for_each(|_| put(&log));
    let keep = log.durable();
    log.drop_below(keep).expect("no fault");
    (0..2).for_each(|_| put(&log));
    let killed = before_the_name_is_durable(Medium::new(), &disk, "log-").killed(None, &mut Random(1));
    // The next one makes it a spare again, and the power is lost.
    let disk = CrashDisk::new(killed.clone());
    drop(opened(&disk, keep));
    let left = before_the_name_is_durable(killed, &disk, "spare-");
    let mut two_names = 0;
    for picks in images(&left.choices(), 1000, &mut Random(1)) {
        let image = left.image(&picks);
        two_names += usize::from(image.names().len() > left.names().len());
        let disk = CrashDisk::new(image);
        let log = opened(&disk, keep);
        let before = records(&log);
        (0..12).for_each(|_| put(&log));
        assert_eq!(records(&log), before + 12);
    }
    assert!(two_names > 0, "no image has the file twice");
}

/// Returns the number of records that a scan reads.
fn records(log: &Log<CrashDisk>) -> usize {
    let mut scan = log.scan(log.begin()..log.appended()).expect("a scan");
    std::iter::from_fn(|| scan.next().expect("no damage").map(drop)).count()
}

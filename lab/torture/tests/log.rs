//! The log of level `disk` under crashes, failing calls and damage: bounded runs of what `wollemi-lab torture --index
//! log` does.

use crashkit::disk::{CrashDisk, DiskFault, FaultKind, Medium};
use log::{Change, Error, Log, LogOptions};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wollemi_torture::bounds::Bounds;
use wollemi_torture::log::{damage, torture};
use wollemi_torture::syncs::hunt;

/// Bytes of a segment.
const SEGMENT: u32 = 8 << 10;

/// Upper bound on any wait for another thread; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// After every crash of every history the log holds exactly a prefix of the appended records, which includes all
/// acknowledged ones.
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
    // History 95 removes a log whose end an earlier crash has left, which shows the sync of the removed spares.
    let bounds = Bounds {
        seed: 81,
        histories: 40,
        budget: Duration::MAX,
        ..Bounds::default()
    };
    let fates = hunt(&bounds, torture, |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    for fate in &fates {
        println!("{}: {:?}", fate.site, fate.found);
    }
    assert!(fates.len() >= 7, "{fates:?}");
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

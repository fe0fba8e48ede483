//! The database of level `disk` under crashes, failing calls and damage: bounded shares of what `wollemi-lab torture --index
//! disk` does.

use crashkit::disk::{CrashDisk, Medium};
use pmem::{Hardware, Pool, PoolOptions};
use std::sync::Arc;
use std::time::Duration;
use wollemi::{OnDisk, Options};
use wollemi_torture::disk::{damage, torture};
use wollemi_torture::log::{Bounds, hunt};

fn bounds(histories: u64) -> Bounds {
    let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().expect("a number"));
    Bounds {
        seed,
        histories,
        budget: Duration::MAX,
        ..Bounds::default()
    }
}

/// After every crash of every history all is there that was acknowledged, and nothing that was not written.
#[test]
fn crashes_leave_what_was_acknowledged() {
    let report = torture(&bounds(16)).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report}\n{:?}", report.reached);
    assert!(
        report.states > 4_000 && report.again > 10 && report.faults > 10 && report.together > 0,
        "{report}"
    );
    for what in [
        "full checkpoints",
        "deltas",
        "maps made",
        "maps dropped",
        "logs failed",
    ] {
        assert!(report.reached.get(what).is_some_and(|&times| times > 0), "{what}");
    }
}

/// Each sync is needed.
#[test]
fn each_sync_is_missed() {
    let fates = hunt(&bounds(12), torture).unwrap_or_else(|failure| panic!("{failure}"));
    for fate in &fates {
        println!("{}: {:?}", fate.site, fate.found);
    }
    assert!(fates.len() >= 9, "{fates:?}");
    let survivors: Vec<_> = fates.iter().filter(|fate| fate.found.is_none()).collect();
    assert!(survivors.is_empty(), "{survivors:?}");
}

/// A database that was closed and then damaged is refused, or has all that it held.
#[test]
fn damage_is_never_data() {
    let report = damage(1, 3_000).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report:?}");
    assert!(report.refused > 500 && report.whole > 100, "{report:?}");
}

/// Maps are made and dropped where the log has reached its limit: a checkpoint, which looks at all maps, makes room.
#[test]
fn maps_come_and_go_in_a_full_log() -> Result<(), wollemi::Error> {
    let opened = OnDisk {
        options: Options::new(),
        log: log::Options {
            segment_size: 8192,
            limit: 64 << 10,
            spares: 2,
        },
        run: 2048,
        levels: 4,
        small: 0,
        rebuild_threads: 1,
        has_threads: true,
    };
    let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect())?;
    let db = opened.open(pool, Arc::new(CrashDisk::new(Medium::new())))?;
    for _ in 0..5000 {
        db.map("comes and goes")?;
        assert!(db.drop_map("comes and goes")?);
    }
    let log = db.stats()?.log.unwrap_or_default();
    assert!(log.refused_at_limit > 0, "{log:?}");
    Ok(())
}

//! Pools in files: their contents after reopening, and what they report of their past.

use super::*;
use crate::pool::checked::seal;
use crate::watched::{ObservedStep, Observer, StepKind, Watched};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A pool's path in a directory of its own, on the file system of temporary files.
pub(super) struct Place {
    _directory: tempfile::TempDir,
    pub(super) path: PathBuf,
}

impl Place {
    pub(super) fn new() -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.pool");
        Place {
            _directory: directory,
            path,
        }
    }

    /// A place with a closed pool, and the contents of its file.
    pub(super) fn with_pool() -> (Place, Vec<u8>) {
        let place = Place::new();
        let pool = place.create().expect("a new pool");
        pool.close().expect("closed");
        let bytes = std::fs::read(&place.path).expect("a file");
        (place, bytes)
    }

    pub(super) fn create(&self) -> Result<Pool, Error> {
        Pool::create(&self.path, &small(), Hardware::detect())
    }

    pub(super) fn open(&self) -> Result<Pool, Error> {
        Pool::open(&self.path, &small(), Hardware::detect())
    }

    /// The error's text without the pool's path, with which every error must begin.
    pub(super) fn refusal(&self) -> String {
        let error = self
            .open()
            .map(|pool| pool.generation())
            .expect_err("a pool that cannot be opened");
        let text = error.to_string();
        let start = format!("pool '{}': ", self.path.display());
        text.strip_prefix(&start)
            .unwrap_or_else(|| panic!("{text:?} names the pool"))
            .to_owned()
    }

    /// Makes the file look as if the machine had been restarted since its last opening.
    pub(super) fn change_boot(&self) {
        let file = std::fs::File::options()
            .write(true)
            .open(&self.path)
            .expect("a file");
        file.write_all_at(&seal(1).to_le_bytes(), 72).expect("written");
    }
}

/// Ends the pool as the end of its process would: nothing more is stored.
fn crash(mut pool: Pool) {
    pool.closed = true;
}

pub(super) fn put(pool: &Pool<impl Media>, at: u64, value: u64) {
    persist_scope(pool.media(), Purpose::Node, |batch| {
        word(pool, at).store(value, &batch);
        let _durable = batch.fence().durable();
    });
}

fn get(pool: &Pool, at: u64) -> u64 {
    word(pool, at).load(pool.media())
}

/// Stores survive a close, a drop and a crash; each opening has the next generation and reports which of them
/// preceded it; id and page size stay.
#[test]
fn reopening_finds_everything() {
    let place = Place::new();
    let pool = Pool::open_or_create(&place.path, &small(), Hardware::detect()).expect("a new pool");
    let uuid = pool.uuid();
    assert_eq!((pool.generation(), pool.last_shutdown()), (1, LastShutdown::New));
    assert_eq!(pool.path(), Some(place.path.as_path()));
    pool.grow(1 << 20).expect("room");
    put(&pool, 4096, 1);
    put(&pool, (1 << 20) - 16, 2);
    let len = pool.len();
    pool.close().expect("closed");

    let ends: [(fn(Pool), _, _); 3] = [
        (drop, LastShutdown::Clean, 0),
        (crash, LastShutdown::Clean, 0),
        (drop, LastShutdown::ProcessCrash, 1),
    ];
    for (turn, (end, last_shutdown, dirty)) in ends.into_iter().enumerate() {
        let options = PoolOptions {
            page_size: 1 << 20,
            ..small()
        };
        let pool = Pool::open_or_create(&place.path, &options, Hardware::detect()).expect("the pool");
        assert_eq!(
            (pool.generation(), pool.last_shutdown()),
            (turn as u32 + 2, last_shutdown)
        );
        assert_eq!(
            (pool.uuid(), pool.page_size(), pool.dirty_count()),
            (uuid, 64 << 10, dirty)
        );
        assert_eq!(
            (get(&pool, 4096), get(&pool, (1 << 20) - 16), pool.len()),
            (1, 2, len)
        );
        end(pool);
    }
}

/// A pool whose owner leaves it unclosed counts as not closed.
#[test]
fn a_pool_is_left_unclosed() {
    let (place, _) = Place::with_pool();
    let ends: [fn(Pool); 2] = [drop, |pool| pool.close().expect("no error")];
    for end in ends {
        let pool = place.open().expect("the pool");
        pool.leave_unclosed(true);
        end(pool);
        let pool = place.open().expect("the pool");
        assert_eq!(pool.last_shutdown(), LastShutdown::ProcessCrash);
        pool.leave_unclosed(true);
        pool.leave_unclosed(false);
        end(pool);
        assert_eq!(
            place.open().expect("the pool").last_shutdown(),
            LastShutdown::Clean
        );
    }
}

/// A panic that unwinds past the pool leaves it as a crash does.
#[test]
fn panic_is_a_crash() {
    let (place, _) = Place::with_pool();
    let pool = place.open().expect("the pool");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _pool = pool;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(
        place.open().expect("the pool").last_shutdown(),
        LastShutdown::ProcessCrash
    );
}

/// A killed process releases its pool, and all its stores survive.
#[test]
fn kill_loses_nothing() {
    const CHILD: &str = "POOL_OF_CHILD";
    if let Some(path) = std::env::var_os(CHILD) {
        let pool = Pool::create(path, &small(), Hardware::detect()).expect("a new pool");
        put(&pool, 4096, 42);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
            .expect("killed");
    }
    let place = Place::new();
    let ended = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "pool::tests::files::kill_loses_nothing"])
        .env(CHILD, &place.path)
        .output()
        .expect("a child");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&ended.status),
        Some(9),
        "{ended:?}"
    );
    let pool = place.open().expect("the pool");
    assert_eq!(pool.last_shutdown(), LastShutdown::ProcessCrash);
    assert_eq!(get(&pool, 4096), 42);
}

/// A pool of level process that was open when the machine stopped is refused and left unchanged, unless its loss is
/// accepted; one that was closed before is not affected.
#[test]
fn lost_page_cache_is_not_trusted() {
    let (place, _) = Place::with_pool();
    place.change_boot();
    let pool = place.open().expect("a pool that was closed");
    assert_eq!(
        (pool.last_shutdown(), pool.level()),
        (LastShutdown::Clean, PoolLevel::Process)
    );
    crash(pool);
    place.change_boot();
    let before = std::fs::read(&place.path).expect("a file");
    assert!(
        place
            .refusal()
            .starts_with("the machine stopped while it was open")
    );
    assert_eq!(std::fs::read(&place.path).expect("a file"), before);

    // A read-only opening changes nothing, and leaves it suspect; an opening for writing has to accept the loss.
    let look = PoolOptions {
        after_power_loss: AfterPowerLoss::Look,
        ..small()
    };
    let refused = Pool::open(&place.path, &look, Hardware::detect()).map(drop);
    assert!(matches!(refused.expect_err("lost").kind, ErrorKind::Lost));
    let look = PoolOptions {
        read_only: true,
        ..look
    };
    for _ in 0..2 {
        let pool = Pool::open(&place.path, &look, Hardware::detect()).expect("to read");
        assert_eq!(
            (pool.last_shutdown(), pool.is_suspect(), pool.is_read_only()),
            (LastShutdown::MachineCrash, true, true)
        );
        put(&pool, 4096, 7);
        pool.close().expect("closed");
        assert_eq!(std::fs::read(&place.path).expect("a file"), before);
    }

    let accept = PoolOptions {
        after_power_loss: AfterPowerLoss::Accept,
        ..small()
    };
    let pool = Pool::open(&place.path, &accept, Hardware::detect()).expect("accepted");
    assert_eq!(
        (pool.last_shutdown(), pool.generation()),
        (LastShutdown::MachineCrash, 3)
    );
    crash(pool);
    // From then on it belongs to this boot.
    assert_eq!(
        place.open().expect("the pool").last_shutdown(),
        LastShutdown::ProcessCrash
    );
}

/// Level power is refused where the file system has no DAX, for new pools and for old ones, and for a pool in memory.
#[test]
fn power_is_refused_where_it_cannot_be() {
    let power = PoolOptions {
        level: PoolLevel::Power,
        ..small()
    };
    for directory in ["/dev/shm", "/tmp"] {
        let Ok(directory) = tempfile::tempdir_in(directory) else {
            continue;
        };
        let path = directory.path().join("a.pool");
        if let Ok(pool) = Pool::create(&path, &power, Hardware::detect()) {
            // A DAX file system after all: then the level must be reported.
            assert_eq!(pool.level(), PoolLevel::Power);
            continue;
        }
        assert_eq!(
            std::fs::read_dir(directory.path()).expect("a directory").count(),
            0,
            "nothing is left"
        );
        Pool::create(&path, &small(), Hardware::detect())
            .expect("a new pool")
            .close()
            .expect("closed");
        let error = Pool::open(&path, &power, Hardware::detect()).expect_err("no DAX");
        assert!(matches!(error.kind, ErrorKind::NotPower), "{error}");
        assert_eq!(
            Pool::open(&path, &small(), Hardware::detect())
                .expect("the pool")
                .generation(),
            2
        );
    }
    let error = Pool::anonymous(&power, Hardware::detect()).expect_err("memory");
    assert!(
        error
            .to_string()
            .starts_with("pool 'anonymous': cannot survive a power loss here")
    );
}

/// Nothing is created over an existing file, and a creation that fails leaves nothing behind.
#[test]
fn creation_is_all_or_nothing() {
    let (place, bytes) = Place::with_pool();
    assert!(matches!(
        place.create().map(drop),
        Err(Error {
            kind: ErrorKind::Exists,
            ..
        })
    ));
    assert_eq!(std::fs::read(&place.path).expect("a file"), bytes);
    let parent = place.path.parent().expect("a directory");
    assert_eq!(
        std::fs::read_dir(parent).expect("a directory").count(),
        1,
        "no other file is left"
    );
    let nowhere = parent.join("no/such/directory/a.pool");
    let error = Pool::open_or_create(&nowhere, &small(), Hardware::detect()).expect_err("nowhere");
    assert!(
        error
            .to_string()
            .contains("creating the file: No such file or directory"),
        "{error}"
    );
}

/// Of several threads that open or create one pool at a time, one succeeds; the others get an error that it is open.
#[test]
fn one_creator_wins() {
    let place = Place::new();
    let barrier = std::sync::Barrier::new(4);
    let opened = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    Pool::open_or_create(&place.path, &small(), Hardware::detect())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    assert_eq!(opened.iter().filter(|pool| pool.is_ok()).count(), 1);
    for refused in opened.iter().filter_map(|pool| pool.as_ref().err()) {
        assert!(matches!(refused.kind, ErrorKind::Busy { .. }), "{refused}");
    }
}

/// A sparse copy lacks blocks of zeros that may be needed: it is filled when it is opened, though the file that it
/// was copied from has holes of its own and a mark that says so.
#[test]
fn sparse_copies_are_filled() {
    use std::os::unix::fs::MetadataExt;
    let (place, _) = Place::with_pool();
    let mib = 1 << 20;
    let pool = place.open().expect("the pool");
    pool.grow(8 * mib).expect("room");
    (1..8).for_each(|at| put(&pool, at * mib, at));
    for given in [None, Some(2 * mib..4 * mib)] {
        if let Some(given) = given {
            // SAFETY: the test holds no reference into the pool.
            unsafe { pool.give_back(given) }.expect("holes can be punched");
        }
        let copy = place.path.with_extension("copy");
        let copied = std::process::Command::new("cp")
            .args(["--sparse=always", "--preserve=all"])
            .args([&place.path, &copy])
            .status()
            .expect("cp");
        assert!(copied.success());
        let blocks = || std::fs::metadata(&copy).expect("a file").blocks() * 512;
        // On a file system without holes there is nothing to test.
        println!("{} of {} bytes have blocks", blocks(), pool.len());
        for _ in 0..2 {
            let copy = Pool::open(&copy, &small(), Hardware::detect()).expect("the copy");
            assert_eq!((copy.len(), copy.given_back()), (pool.len(), 0));
            assert!(copy.is_backed(&(0..copy.len())) && blocks() >= copy.len());
            for at in 1..8 {
                assert_eq!(get(&copy, at * mib), get(&pool, at * mib));
            }
        }
    }
}

/// Pages that are given back take no blocks, now and after an opening, until they are backed again; the others keep
/// their contents.
#[test]
fn pages_are_given_back() {
    use std::os::unix::fs::MetadataExt;
    let (place, _) = Place::with_pool();
    let blocks = || std::fs::metadata(&place.path).expect("a file").blocks() * 512;
    let mib = 1 << 20;
    let mut pool = place.open().expect("the pool");
    pool.grow(8 * mib).expect("room");
    (1..8).for_each(|at| put(&pool, at * mib, at));
    // The file system's own blocks for the file come and go.
    let own = 64 << 10;
    let before = blocks() + own;
    for given in [2 * mib..4 * mib, 3 * mib..5 * mib, 2 * mib..3 * mib] {
        // SAFETY: the test holds no reference into the pool.
        unsafe { pool.give_back(given) }.expect("holes can be punched");
    }
    if pool.given_back() == 0 {
        eprintln!("holes cannot be punched here: not tried");
        return;
    }
    for _ in 0..2 {
        assert!(!pool.is_backed(&(2 * mib..5 * mib)));
        assert!(pool.given_back() >= 3 * mib);
        assert!(blocks() <= before - 3 * mib);
        drop(pool);
        pool = place.open().expect("a pool with holes");
    }
    pool.back_again(3 * mib..4 * mib).expect("room");
    assert!(blocks() <= before - 2 * mib);
    assert!(pool.is_backed(&(3 * mib..4 * mib)) && !pool.is_backed(&(2 * mib..5 * mib)));
    let held: Vec<u64> = (1..8).map(|at| get(&pool, at * mib)).collect();
    assert_eq!(held, [1, 0, 0, 0, 5, 6, 7]);
}

/// The leftovers of a growth that did not complete do not matter.
#[test]
fn half_a_page_is_ignored() {
    let (place, bytes) = Place::with_pool();
    let file = std::fs::File::options()
        .write(true)
        .open(&place.path)
        .expect("a file");
    file.set_len(bytes.len() as u64 + 12345).expect("longer");
    let pool = place.open().expect("the pool");
    assert_eq!(pool.len(), bytes.len() as u64);
    pool.grow(1 << 20).expect("room");
    put(&pool, (1 << 20) - 16, 5);
    assert_eq!(get(&pool, (1 << 20) - 16), 5);
}

/// A pool above the requested limit is opened, and does not grow.
#[test]
fn a_pool_above_the_limit_is_opened() {
    let (place, bytes) = Place::with_pool();
    let options = PoolOptions {
        max_size: 1,
        ..small()
    };
    let pool = Pool::open(&place.path, &options, Hardware::detect()).expect("the pool");
    assert_eq!(pool.max_size(), bytes.len() as u64);
    assert!(matches!(
        pool.grow(pool.len() + 1),
        Err(Error {
            kind: ErrorKind::Full { .. },
            ..
        })
    ));
}

/// A pool opened read-only can be stored to and grown, by several openers at a time; neither the bytes nor the length
/// of its file change; writers are refused meanwhile.
#[test]
fn reading_changes_nothing() {
    let (place, before) = Place::with_pool();
    let read = PoolOptions {
        read_only: true,
        ..small()
    };
    let open = || Pool::open(&place.path, &read, Hardware::detect()).expect("to read");
    let (one, two) = (open(), open());
    assert_eq!((one.generation(), one.last_shutdown()), (2, LastShutdown::Clean));
    assert!(one.is_read_only() && !one.is_suspect());
    put(&one, 4096, 1);
    one.grow(8 << 20).expect("memory");
    put(&one, (8 << 20) - 16, 2);
    assert_eq!((get(&one, 4096), get(&one, (8 << 20) - 16)), (1, 2));
    // SAFETY: the test holds no reference into the pool.
    let given = unsafe { one.give_back(1 << 20..2 << 20) };
    assert_eq!(given.expect("nothing to do"), 0);
    assert_eq!(get(&two, 4096), 0, "each has its own memory");
    assert!(place.refusal().starts_with("opened by"));
    one.close().expect("closed");
    drop(two);
    assert_eq!(std::fs::read(&place.path).expect("a file"), before);
    assert_eq!(place.open().expect("the pool").generation(), 2);
}

/// A log position survives a reopening, a read-only opening sees it too, and damage to it is an error.
#[test]
fn a_log_position_is_kept() {
    let place = Place::new();
    let pool = place.create().expect("a new pool");
    assert_eq!(pool.log_position(), None);
    for position in [0, 4096, (1 << 48) - 1] {
        pool.set_log_position(Some(position)).expect("written");
        assert_eq!(pool.log_position(), Some(position));
    }
    pool.close().expect("closed");
    let bytes = std::fs::read(&place.path).expect("a file");

    let looked = PoolOptions {
        read_only: true,
        ..small()
    };
    let looked = Pool::open(&place.path, &looked, Hardware::detect()).expect("sound");
    assert_eq!(looked.log_position(), Some((1 << 48) - 1));
    drop(looked);
    let pool = place.open().expect("sound");
    assert_eq!(pool.log_position(), Some((1 << 48) - 1));
    pool.set_log_position(None).expect("written");
    assert_eq!(pool.log_position(), None);
    drop(pool);

    let mut damaged = bytes;
    damaged[136] ^= 1;
    std::fs::write(&place.path, damaged).expect("written");
    assert_eq!(
        place.refusal(),
        "damaged header (log position); restore the file from a copy"
    );
}

/// The contents of a pool's file after each fence.
#[derive(Clone, Debug)]
struct Images(PathBuf, Arc<Mutex<Vec<Vec<u8>>>>);

impl Observer for Images {
    fn after(&self, step: &ObservedStep) {
        if let StepKind::Fence(_) = step.what {
            let image = std::fs::read(&self.0).expect("a file");
            self.1.lock().expect("no panic").push(image);
        }
    }
}

/// A machine that stops while a pool's log is being removed leaves a pool that has its log, or one that was closed.
#[test]
fn a_pool_without_its_log_is_closed() {
    let place = Place::new();
    let pool = place.create().expect("a new pool");
    pool.set_log_position(Some(4096)).expect("written");
    crash(pool);
    let images = Images(place.path.clone(), Arc::default());
    let media = Watched::machine(images.clone());
    let pool = Pool::open(&place.path, &small(), media).expect("sound");
    pool.leave_unclosed(true);
    images.1.lock().expect("no panic").clear();
    pool.close_without_log().expect("closed");
    let images = std::mem::take(&mut *images.1.lock().expect("no panic"));
    assert!(images.len() > 1, "{} fences", images.len());
    for image in images {
        std::fs::write(&place.path, image).expect("written");
        place.change_boot();
        match place.open() {
            Ok(pool) => assert_eq!(pool.last_shutdown(), LastShutdown::Clean),
            Err(_) => {
                let look = PoolOptions {
                    read_only: true,
                    after_power_loss: AfterPowerLoss::Look,
                    ..small()
                };
                let pool = Pool::open(&place.path, &look, Hardware::detect()).expect("looked at");
                assert_eq!(pool.log_position(), Some(4096));
            }
        }
    }
    let pool = place.open().expect("sound");
    assert_eq!(pool.log_position(), None);
}

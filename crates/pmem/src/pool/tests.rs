//! Properties of every pool, with a file or without.

mod bad;
mod files;
mod full;
mod memory;
mod neighbours;
mod openers;
mod power_loss;

use super::*;
use crate::{PWord, Purpose, WriteBack, persist_scope};
use std::time::Duration;

fn small() -> PoolOptions {
    PoolOptions {
        page_size: 64 << 10,
        max_size: 64 << 20,
        lock_wait: Duration::ZERO,
        ..PoolOptions::default()
    }
}

fn anonymous() -> Pool {
    Pool::anonymous(&small(), Hardware::detect()).expect("memory")
}

fn offset(bytes: u64) -> Offset {
    Offset::new(bytes).expect("a valid offset")
}

/// The object at `bytes` from the base.
fn at<T: Persistent>(pool: &Pool<impl Media>, bytes: u64) -> Result<&T, Fault> {
    // SAFETY: the tests of pools make no drafts and store through words only.
    unsafe { pool.at(offset(bytes)) }
}

/// The word there, which must lie inside.
fn word(pool: &Pool<impl Media>, bytes: u64) -> &PWord {
    at(pool, bytes).expect("backed")
}

/// The `len` bytes there.
fn bytes_at(pool: &Pool, bytes: u64, len: usize) -> Result<&[u8], Fault> {
    // SAFETY: the tests look at bytes that none of them stores into meanwhile.
    unsafe { pool.bytes(offset(bytes), len) }
}

/// Runs `run` as an unprivileged user, to whom permissions apply. The superuser switches one thread to such a user;
/// returns `None` where the system cannot change the user of one thread.
fn unprivileged<R: Send>(run: impl FnOnce() -> R + Send) -> Option<R> {
    if !rustix::process::geteuid().is_root() {
        return Some(run());
    }
    #[cfg(target_os = "linux")]
    return std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_uid(nobody).expect("a process of root may change a thread's user");
            run()
        });
        Some(thread.join().expect("no panic"))
    });
    #[cfg(not(target_os = "linux"))]
    None
}

/// A new pool has page 0, all of it allocated, a directory of zeros, and generation 1.
#[test]
fn new_pool_has_its_first_page() {
    let pool = anonymous();
    assert_eq!(pool.len(), pool.page_size());
    assert_eq!(pool.allocated().load(pool.media()), pool.page_size());
    assert_eq!((pool.generation(), pool.last_shutdown()), (1, LastShutdown::New));
    let (start, len) = pool.directory();
    assert_eq!(start.get() + len as u64, pool.page_size());
    assert!(
        bytes_at(&pool, start.get(), len)
            .expect("backed")
            .iter()
            .all(|&byte| byte == 0)
    );
}

/// A process's stores survive its end without write-backs. Write-backs are issued only to measure the costs of
/// persistent memory.
#[test]
fn level_process_needs_no_write_backs() {
    let place = tempfile::tempdir().expect("a directory");
    let by = |pool: Pool| (pool.level(), pool.media().write_back_by());
    let best = Hardware::detect().write_back_by();
    for (media, wanted) in [
        (Hardware::detect(), WriteBack::Omitted),
        (Hardware::as_persistent(), best),
    ] {
        let path = place.path().join(format!("{wanted:?}"));
        let anonymous = Pool::anonymous(&small(), media).expect("memory");
        assert_eq!(by(anonymous), (PoolLevel::Process, wanted));
        assert_eq!(
            by(Pool::create(&path, &small(), media).expect("a pool")),
            (PoolLevel::Process, wanted)
        );
        assert_eq!(
            by(Pool::open(&path, &small(), media).expect("the pool")),
            (PoolLevel::Process, wanted)
        );
    }
}

/// A growing pool keeps its addresses and contents.
#[test]
fn growth_keeps_addresses() {
    let pool = anonymous();
    let base = pool.base();
    let place = pool.page_size() - 16;
    persist_scope(pool.media(), Purpose::Node, |batch| {
        word(&pool, place).store(7, &batch);
    });
    for _ in 0..20 {
        let wanted = pool.len() + 1;
        pool.grow(wanted).expect("below the limit");
        assert!(pool.len() >= wanted && pool.len().is_multiple_of(pool.page_size()));
        assert_eq!(pool.base(), base);
        assert_eq!(word(&pool, place).load(pool.media()), 7);
        let last = word(&pool, pool.len() - 16);
        assert_eq!(last.load(pool.media()), 0);
    }
}

/// Growth stops at the limit with an error, and the pool remains usable.
#[test]
fn growth_stops_at_the_limit() {
    let pool = anonymous();
    pool.grow(64 << 20).expect("the limit itself");
    let error = pool.grow((64 << 20) + 1).expect_err("above the limit");
    assert_eq!(
        error.to_string(),
        "pool 'anonymous': full: 67108865 bytes needed, and the size limit is 67108864"
    );
    assert!(at::<PWord>(&pool, (64 << 20) - 16).is_ok());
}

/// No offset and no length leads outside the pool or to a misaligned object.
#[test]
fn links_stay_inside() {
    crate::persistent! {
        struct Line [size: 64, align: 64] {
            words: [PWord; 8],
        }
    }

    let pool = anonymous();
    let len = pool.len();
    assert!(at::<Line>(&pool, len - 64).is_ok());
    assert!(at::<Line>(&pool, len - 48).is_err());
    assert!(at::<Line>(&pool, 4096 + 16).is_err());
    assert!(at::<PWord>(&pool, len - 16).is_ok());
    assert!(at::<PWord>(&pool, len).is_err());
    assert!(at::<PWord>(&pool, Offset::MASK).is_err());
    assert_eq!(bytes_at(&pool, len - 16, 16).map(<[u8]>::len), Ok(16));
    assert!(bytes_at(&pool, len - 16, 17).is_err());
    assert!(bytes_at(&pool, 16, usize::MAX).is_err());
    assert!(pool.chunk_start(offset(len), 1).is_err());
}

/// Page sizes outside the allowed ones are refused.
#[test]
fn page_size_is_checked() {
    for page_size in [0, 1, 32 << 10, (64 << 10) + 1, 256 << 20] {
        let options = PoolOptions { page_size, ..small() };
        let error = Pool::anonymous(&options, Hardware::detect()).expect_err("not a page size");
        assert!(matches!(error.kind, ErrorKind::PageSize(size) if size == page_size));
    }
}

/// Any limit is accepted: one beyond all addresses is lowered, one below the first page is raised to it.
#[test]
fn any_limit_will_do() {
    for max_size in [0, 1, (1 << 20) + 1, 1 << 50, u64::MAX] {
        let options = PoolOptions { max_size, ..small() };
        let pool = Pool::anonymous(&options, Hardware::detect()).expect("memory");
        assert!(pool.max_size() >= pool.page_size() && pool.max_size() <= max_size.max(pool.page_size()));
        let limit = pool.max_size() / pool.page_size() * pool.page_size();
        let error = pool.grow(limit + 1).expect_err("above the limit");
        assert!(matches!(error.kind, ErrorKind::Full { .. }));
        assert!(pool.grow(u64::MAX).is_err());
        assert!(pool.grow(limit.min(8 << 20)).is_ok());
    }
}

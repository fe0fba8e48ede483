//! What holds for every pool, with a file or without.

mod bad;
mod files;
mod full;
mod memory;
mod neighbours;
mod openers;

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
        pool.bytes(start, len)
            .expect("backed")
            .iter()
            .all(|&byte| byte == 0)
    );
}

/// What a process stores survives its end as it is: nothing is written back for that, unless one wants to measure what
/// persistent memory would need.
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
        assert_eq!(by(anonymous), (Level::Process, wanted));
        assert_eq!(
            by(Pool::create(&path, &small(), media).expect("a pool")),
            (Level::Process, wanted)
        );
        assert_eq!(
            by(Pool::open(&path, &small(), media).expect("the pool")),
            (Level::Process, wanted)
        );
    }
}

/// A growing pool keeps its addresses and what is there.
#[test]
fn growth_keeps_addresses() {
    let pool = anonymous();
    let base = pool.base();
    let place = offset(pool.page_size() - 16);
    persist_scope(pool.media(), Purpose::Node, |batch| {
        pool.at::<PWord>(place).expect("backed").store(7, &batch);
    });
    for _ in 0..20 {
        let wanted = pool.len() + 1;
        pool.grow(wanted).expect("below the limit");
        assert!(pool.len() >= wanted && pool.len().is_multiple_of(pool.page_size()));
        assert_eq!(pool.base(), base);
        assert_eq!(pool.at::<PWord>(place).expect("backed").load(pool.media()), 7);
        let last = pool.at::<PWord>(offset(pool.len() - 16)).expect("backed");
        assert_eq!(last.load(pool.media()), 0);
    }
}

/// Growth stops at the limit with an error, and the pool goes on.
#[test]
fn growth_stops_at_the_limit() {
    let pool = anonymous();
    pool.grow(64 << 20).expect("the limit itself");
    let error = pool.grow((64 << 20) + 1).expect_err("above the limit");
    assert_eq!(
        error.to_string(),
        "pool 'anonymous': full: 67108865 bytes needed, and the size limit is 67108864"
    );
    assert!(pool.at::<PWord>(offset((64 << 20) - 16)).is_ok());
}

/// No offset and no length whatever leads outside the pool or to a misaligned object.
#[test]
fn links_stay_inside() {
    #[repr(C, align(64))]
    struct Line([PWord; 8]);
    // SAFETY: words only, no padding.
    unsafe impl Persistent for Line {}

    let pool = anonymous();
    let len = pool.len();
    assert!(pool.at::<Line>(offset(len - 64)).is_ok());
    assert!(pool.at::<Line>(offset(len - 48)).is_err());
    assert!(pool.at::<Line>(offset(4096 + 16)).is_err());
    assert!(pool.at::<PWord>(offset(len - 16)).is_ok());
    assert!(pool.at::<PWord>(offset(len)).is_err());
    assert!(pool.at::<PWord>(offset(Offset::MASK)).is_err());
    assert_eq!(pool.bytes(offset(len - 16), 16).map(<[u8]>::len), Ok(16));
    assert!(pool.bytes(offset(len - 16), 17).is_err());
    assert!(pool.bytes(offset(16), usize::MAX).is_err());
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

/// Any limit will do: one that is beyond all addresses is lowered, one below the first page is raised to it.
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

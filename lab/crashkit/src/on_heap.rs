//! Common parts of subjects on a heap: opening and recovering it, its accounts, and its objects by their names.

use crate::Crash;
use crate::coverage::Shape;
use heap::{Heap, RecoveryStage, Tracers};
use pmem::{Link, Pool};

/// Opens the heap of a pool.
///
/// # Errors
///
/// If it does not open.
pub fn heap(pool: Pool<Crash>) -> Result<Heap<Crash>, String> {
    Heap::new(pool).map_err(|error| format!("the heap does not open: {error}"))
}

/// Returns whether the pool has so [little room](crate::History::room) that it is meant to be full now and then. In any
/// other pool, "full" is a failure of the subject.
pub fn may_be_full(pool: &Pool<Crash>) -> bool {
    const MAX_LITTLE_ROOM: u64 = 4 << 20;
    pool.max_size() < MAX_LITTLE_ROOM
}

/// Recovers a heap in the calling thread.
///
/// # Errors
///
/// If recovery fails.
pub fn recover(heap: &Heap<Crash>, tracers: &Tracers<Crash>) -> Result<(), String> {
    match heap.recover_now(tracers) {
        RecoveryStage::Done => Ok(()),
        state => Err(format!("recovery ended as {state:?}")),
    }
}

/// Checks that the objects in use are the reachable ones, and that no two links lead to one object.
///
/// # Errors
///
/// If that is not so, or the heap is damaged.
pub fn audit(heap: &Heap<Crash>, tracers: &Tracers<Crash>) -> Result<(), String> {
    /// Calls of `wait_for_room`, which flushes several times, after which most retired memory is free again, and double
    /// retirement is known.
    const FLUSHES: usize = 4;
    (0..FLUSHES).for_each(|_| _ = heap.wait_for_room());
    let audit = heap.audit(tracers, 1);
    let audit = audit.map_err(|error| format!("the heap's audit failed: {error}"))?;
    if audit.is_clean() {
        return Ok(());
    }
    Err(format!("the heap's audit found {audit:?}"))
}

/// Checks that a heap just recovered has allocated what is reachable, and nothing else. Objects that the opening has
/// retired are in no trace, and wait for their epoch, which another thread of this process may end. So accounts that do
/// not add up may mix two moments, and are read again.
///
/// # Errors
///
/// If the accounts do not add up: memory leaks, or is both free and in use.
pub fn check_accounts(heap: &Heap<Crash>) -> Result<(), String> {
    const LOOKS: usize = 20;
    let met = heap.recovery().traced;
    let mut stats = heap.stats();
    for _ in 1..LOOKS {
        if stats.objects == met + stats.retired && stats.used + stats.free == stats.reserved {
            return Ok(());
        }
        std::thread::yield_now();
        stats = heap.stats();
    }
    Err(format!(
        "recovery traced {met} objects, but the heap's accounts say {stats:?}"
    ))
}

/// Names the object behind a link for reports, given its size in bytes; `None` for leaves.
pub type NameObject = fn(Link, u64) -> Option<String>;

/// Returns the named objects of a heap.
///
/// # Errors
///
/// If a root or an object is damaged.
pub fn shape(
    heap: &Heap<Crash>,
    tracers: &Tracers<Crash>,
    name_object: NameObject,
) -> Result<Shape, heap::Error> {
    let mut shape = Shape {
        pages: heap.pool().allocated().load(heap.media()),
        ..Shape::default()
    };
    let mut links = Vec::new();
    for (_, root) in heap.roots()? {
        links.push((root.kind, root.link));
    }
    // SAFETY: the history stands still, so no object is retired.
    let heap = unsafe { heap.access() };
    while let Some((kind, link)) = links.pop() {
        let tracer = tracers.iter().find(|tracer| tracer.kind() == kind);
        let (Some(offset), Some(tracer)) = (link.offset(), tracer) else {
            continue;
        };
        let mut children = Vec::new();
        let len = tracer.trace(heap, link, &mut children)?;
        if let Some(name) = name_object(link, len) {
            let below = children.iter().filter_map(|child| Some(child.offset()?.get()));
            shape.objects.insert(offset.get(), (name, below.collect()));
        }
        links.extend(children.into_iter().map(|child| (kind, child)));
    }
    Ok(shape)
}

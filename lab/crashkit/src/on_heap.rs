//! Common parts of subjects on a heap: opening and recovering it, its accounts, and its objects by their names.

use crate::Crash;
use crate::coverage::Shape;
use heap::{Heap, State, Tracers};
use pmem::{Link, Pool};

/// The heap of a pool.
///
/// # Errors
///
/// Where it does not open.
pub fn heap(pool: Pool<Crash>) -> Result<Heap<Crash>, String> {
    Heap::new(pool).map_err(|error| format!("the heap does not open: {error}"))
}

/// Whether the pool has so [little room](crate::History::room) that it is meant to be full now and then. In any other
/// pool, "full" is a failure of the subject.
pub fn may_be_full(pool: &Pool<Crash>) -> bool {
    const MAX_LITTLE_ROOM: u64 = 4 << 20;
    pool.max_size() < MAX_LITTLE_ROOM
}

/// Recovers a heap in the calling thread.
///
/// # Errors
///
/// Where recovery fails.
pub fn recover(heap: &Heap<Crash>, tracers: &Tracers<Crash>) -> Result<(), String> {
    match heap.recover_now(tracers) {
        State::Done => Ok(()),
        state => Err(format!("recovery ended as {state:?}")),
    }
}

/// Whether what is reachable in a heap is what is in use, and nothing is so by two links.
///
/// # Errors
///
/// Where it is not, or the heap makes no sense.
pub fn audit(heap: &Heap<Crash>, tracers: &Tracers<Crash>) -> Result<(), String> {
    /// Flushes after which most of what was retired has come back, and what was retired twice is known.
    const FLUSHES: usize = 4;
    (0..FLUSHES).for_each(|_| _ = heap.wait_for_room());
    let audit = heap.audit(tracers, 1);
    let audit = audit.map_err(|error| format!("the heap's audit failed: {error}"))?;
    if audit.is_clean() {
        return Ok(());
    }
    Err(format!("the heap's audit found {audit:?}"))
}

/// Whether allocated minus reachable is empty, in a heap just recovered. What the opening has retired, no trace has
/// met, and it waits for its epoch, which another thread of this process may end for it: so accounts that do not add up
/// are of two moments, perhaps, and looked at again.
///
/// # Errors
///
/// Where the accounts do not add up: something leaks, or is freed and in use.
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
        "recovery has met {met} objects, and the heap's accounts say {stats:?}"
    ))
}

/// What an object of these many bytes that a link leads to is called in reports; `None` for leaves.
pub type NameObject = fn(Link, u64) -> Option<String>;

/// The objects of a heap that have names.
///
/// # Errors
///
/// Where a root or an object makes no sense.
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

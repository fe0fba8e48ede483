//! The objects of a heap by their names, for reports and for who fills an index until all of them have changed.

use crate::Crash;
use crate::coverage::Shape;
use heap::{Heap, Tracers};
use pmem::Link;

/// What an object of these many bytes that a link leads to is called in reports; `None` for leaves.
pub type NameObject = fn(Link, u64) -> Option<String>;

/// The objects of a heap that have names.
pub(crate) fn shape(
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

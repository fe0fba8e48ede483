//! The tracer, which shows the heap the objects that a P-CLHT keeps alive.
//!
//! A pair changes in place, and a reference never moves to an object that stays: a new record replaces its key's old
//! one, or takes a slot without one; an overflow bucket that is removed is bypassed, and still leads to the next;
//! tables and directories are replaced as wholes. So the rules of `docs/design.md` ("Why the trace is right beside
//! writers") hold.

use super::bucket::Bucket;
use super::directory::{self, DirectoryRef};
use super::segment::SegmentRef;
use super::{damaged, tag};
use heap::{Access, Error, Trace};
use index::codec::RecordRef;
use pmem::{Link, Media};

/// The tracer of P-CLHTs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracer;

// SAFETY: it reports all links that readers follow: slots of directories, words of buckets, values of present slots.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        super::KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        let media = heap.media();
        let len = match link.tag() {
            tag::ROOT | tag::DIRECTORY => {
                let directory = DirectoryRef::at(heap, link)?;
                let links = directory.slots.iter().map(|slot| slot.peek(media));
                children.extend(links.filter(|link| !link.is_null()));
                directory::extent(directory.slots.len())
            }
            tag::BUCKET => {
                trace_bucket(Bucket::at(heap, link)?, media, children);
                size_of::<Bucket>()
            }
            tag::RECORD => RecordRef::at(heap, link)?.extent(),
            other if other.get() & tag::KIND == tag::SEGMENT => {
                let segment = SegmentRef::at(heap, link)?;
                let buckets = segment.buckets.iter();
                buckets.for_each(|bucket| trace_bucket(bucket, media, children));
                segment.extent()
            }
            _ => return Err(damaged("link of a P-CLHT", link).into()),
        };
        Ok(len as u64)
    }
}

fn trace_bucket<M: Media>(bucket: &Bucket, media: &M, children: &mut Vec<Link>) {
    let (state, pairs) = bucket.pairs(media);
    let records = pairs.iter().flatten().map(|pair| pair.value.record());
    let links = std::iter::once(state.next()).chain(records);
    children.extend(links.filter(|link| !link.is_null()));
}

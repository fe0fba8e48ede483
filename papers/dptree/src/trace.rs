//! The tracer, which shows the heap the objects that a DPTree keeps alive (Algorithm 4's reclamation: leaves of an
//! interrupted merge are simply not reached).
//!
//! From the root: the pages of the logs that are alive, with their records; and the leaves of the version that counts.
//! No merge runs meanwhile (`Heap::pause_trace`), so the list does not change. Meanwhile writers append to logs and
//! change words in place, but no links; and an opening may make the links to merged logs null.

use crate::base::leaf::LeafRef;
use crate::base::slots::{has, slots_of};
use crate::log::page::{self, PageHead};
use crate::root::{Root, tag};
use heap::{Access, Error, Trace};
use index::codec::RecordRef;
use pmem::{Fault, Link, Media};

/// The tracer of DPTrees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracer;

// SAFETY: it reports all links that an opening and readers follow: the logs that are alive, and the leaves of the
// valid version.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        crate::KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        let media = heap.media();
        let len = match link.tag() {
            tag::ROOT => {
                trace_root(heap, link, children)?;
                size_of::<Root>()
            }
            tag::PAGE => {
                let head = PageHead::at(heap, link)?;
                let number = head.number.load(media);
                let (records, sense) = page::records(heap, link)?;
                for record in records {
                    if let Some(entry) = record.load(number, sense, media)?
                        && !record.is_shared(media)
                    {
                        children.push(entry.link);
                    }
                }
                children.push(head.prev.peek(media));
                head.extent(media)?
            }
            tag::STALE_PAGE => PageHead::at(heap, link)?.extent(media)?,
            tag::RECORD => RecordRef::at(heap, link)?.extent(),
            _ => {
                let version = tag::LEAF
                    .iter()
                    .position(|&leaf| leaf == link.tag())
                    .ok_or(Fault {
                        what: "link of a DPTree",
                        offset: link.bits(),
                    })?;
                let leaf = LeafRef::at(heap, link)?;
                let records = leaf.records(media);
                let live = slots_of(leaf.bitmap(version, media)).filter(|&slot| has(&records, slot));
                children.extend(live.map(|slot| leaf.entry(slot, media).link));
                children.push(leaf.meta(version).next.peek(media));
                crate::base::leaf::extent(leaf.capacity())
            }
        };
        Ok(len as u64)
    }
}

fn trace_root<M: Media>(heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<(), Error> {
    let media = heap.media();
    let root = Root::at(heap, link)?;
    // The sweep frees what the root as read here does not lead to, so the root as read must be durable.
    root.persist_seen(media)?;
    let state = root.state(media);
    for slot in root.logs() {
        let page = slot.peek(media);
        if !page.is_null() {
            let alive = PageHead::at(heap, page)?.number.load(media) > state.merged;
            // The link to a page that is not alive stays until the tree is opened, so the page must stay too.
            children.push(if alive {
                page
            } else {
                page.with_tag(tag::STALE_PAGE)
            });
        }
    }
    children.push(root.heads[state.version].peek(media));
    Ok(())
}

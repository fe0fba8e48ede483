//! Replay: from a log to its buffer tree (DPTree §4.5: partitions are replayed in parallel).
//!
//! I1 Replayed records are durable: a killed process may have written a record without fencing it, and soon a reader
//!    acts on it.

use super::Log;
use super::page::{self, PageHead};
use crate::key::MarkedPair;
use crate::root::Root;
use heap::{Access, Error};
use pmem::{Fault, Link, Media, Purpose, persist_scope};

/// Replays a partition of the log, oldest record first. Writes back each line with records; one fence.
///
/// # Errors
///
/// Damage. Torn records, and those of another use of their page, are not errors.
pub(crate) fn replay<M: Media>(
    heap: &Access<M>,
    root: &Root,
    log: &Log,
    partition: usize,
    apply: &mut dyn FnMut(MarkedPair) -> Result<(), Error>,
) -> Result<(), Error> {
    let media = heap.media();
    let max = heap.pool().len() / 256;
    let mut pages: Vec<Link> = Vec::new();
    let mut link = root.log(log.number)[partition].peek(media);
    while let Some(offset) = link.offset() {
        let head = PageHead::at(heap, link)?;
        let fits = head.extent(media)? == log.shape.page;
        if head.number.load(media) != log.number || !fits || pages.len() as u64 > max {
            return Err(Fault {
                what: "a log page does not belong to its log",
                offset: offset.get(),
            }
            .into());
        }
        pages.push(link);
        link = head.prev.peek(media);
    }
    persist_scope(media, Purpose::Log, |batch| {
        for &link in pages.iter().rev() {
            let (records, sense) = page::records(heap, link)?;
            for record in records {
                if let Some(entry) = record.load(log.number, sense, media)? {
                    media.comes_to("opening: record replayed");
                    record.persist_seen(&batch);
                    apply(entry)?;
                }
            }
        }
        let _durable = batch.fence().durable();
        Ok::<_, Error>(())
    })?;
    log.adopt(partition, pages);
    Ok(())
}

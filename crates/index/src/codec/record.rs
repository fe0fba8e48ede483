//! Records: pairs that are not stored in place (the indirect codec).
//!
//! ```text
//!  0   header   key length:16 | value length:27 | 0
//!  8   check    checksum of the header's lengths, the key and the value
//! 16   key, then value
//! ```
//!
//! I1 A published record never changes. A removal's record has a key and no value.

use super::checksum;
use heap::{Access, Error, Guard, Heap};
use pmem::{Fault, Flushed, Link, Media, Offset, PWord, PersistBatch, persistent};

const KEY_BITS: u32 = 16;
const VALUE_BITS: u32 = 27;

persistent! {
    /// The fixed part of a record.
    #[derive(Debug)]
    pub struct RecordHeader [size: 16] {
        header: PWord,
        check: PWord,
    }
}

const SIZE: usize = size_of::<RecordHeader>();

/// A record being read.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'g> {
    /// The whole key.
    pub key: &'g [u8],
    /// The value.
    pub value: &'g [u8],
    record: &'g RecordHeader,
    tail: &'g [u8],
}

impl<'g> RecordRef<'g> {
    /// The record that `link` leads to.
    ///
    /// # Errors
    ///
    /// If no record can be there.
    #[inline]
    pub fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<RecordRef<'g>, Fault> {
        let fault = |offset| Fault {
            what: "record",
            offset,
        };
        let offset = link.offset().ok_or(fault(0))?;
        let record = heap.at::<RecordHeader>(offset)?;
        let header = record.header.load(heap.media());
        let key = (header & ((1 << KEY_BITS) - 1)) as usize;
        let value = (header >> KEY_BITS) as usize;
        if value >> VALUE_BITS != 0 {
            return Err(fault(offset.get()));
        }
        let start = Offset::new(offset.get() + SIZE as u64).ok_or(fault(offset.get()))?;
        let tail = heap.bytes(start, key + value)?;
        let (key, value) = tail.split_at(key);
        Ok(RecordRef {
            key,
            value,
            record,
            tail,
        })
    }

    /// Length of the whole record in bytes.
    pub fn extent(&self) -> usize {
        (SIZE + self.tail.len()).next_multiple_of(align_of::<RecordHeader>())
    }

    /// Whether the checksum is right.
    pub fn is_whole<M: Media>(&self, heap: &Access<M>) -> bool {
        self.record.check.load(heap.media()) == check(self.key.len(), self.tail)
    }
}

fn check(key: usize, tail: &[u8]) -> u64 {
    checksum(tail).rotate_left(17) ^ key as u64
}

/// Writes a record; its lines join the batch.
///
/// # Errors
///
/// If the pool is full.
pub fn draft<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    key: &[u8],
    value: &[u8],
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<Flushed<'e, 'h, RecordHeader>, Error> {
    let record = RecordHeader {
        header: PWord::new(key.len() as u64 | (value.len() as u64) << KEY_BITS),
        check: PWord::new(0),
    };
    let mut draft = heap.draft(record, key.len() + value.len(), batch)?;
    let tail = draft.tail_mut();
    tail[..key.len()].copy_from_slice(key);
    tail[key.len()..].copy_from_slice(value);
    let sum = check(key.len(), tail);
    draft.check = PWord::new(sum);
    Ok(draft.flush(batch))
}

/// Retires a record; a null link leads to none. A damaged record is not freed, since it may not be a record at all.
///
/// # Errors
///
/// If no record can be there.
///
/// # Safety
///
/// Nothing leads to the record any more: the caller has unlinked it under the guard, and retires it once.
#[track_caller]
pub unsafe fn retire<M: Media>(heap: &Access<M>, guard: &Guard, link: Link) -> Result<(), Fault> {
    if let Some(offset) = link.offset() {
        let record = RecordRef::at(heap, link)?;
        if record.is_whole(heap) {
            // SAFETY: the caller's promise.
            unsafe { heap.retire(guard, offset, record.extent()) };
        }
    }
    Ok(())
}

//! Leaves: a key and its value.
//!
//! ```text
//!  0       header   key length:16 | value length:27 | word:1 | 0:4 | pending:8 | key check:8
//!  8       word     the value, if it has eight bytes; else a checksum of key and value
//! 16       key, then the value unless it is in the word
//! ```
//!
//! I1 A published leaf never changes, except for the word of an eight-byte value and the pending field beside it.
//! I2 While such a value may not be durable yet, `pending` holds the current generation's mark: set before the value is
//!    stored, cleared after the fence, both under the lock on the leaf. A reader loads the value, then the header; if
//!    it finds a mark it persists the line itself. A mark of an older generation was left by a crash; if the process
//!    was killed with the power on, the value may still not be durable. The first reader persists the value and clears
//!    the mark. (With a publication that sets no marks, the value is stored past the cache instead.)

use crate::checksum;
use heap::{Access, Error, Heap};
use index::Value;
use pmem::{
    Draft, Durable, Fault, Link, Media, Offset, PWord, PersistBatch, Publication, Purpose, persist_scope,
    persistent,
};

const KEY_BITS: u32 = 16;
const VALUE_BITS: u32 = 27;
const WORD: u64 = 1 << (KEY_BITS + VALUE_BITS);
const PENDING_SHIFT: u32 = 48;
const PENDING: u64 = 0xff << PENDING_SHIFT;
const CHECK_SHIFT: u32 = 56;
const UNUSED: u64 = 0xf << (KEY_BITS + VALUE_BITS + 1);

persistent! {
    /// The fixed part of a leaf.
    #[derive(Debug)]
    pub struct Leaf [size: 16] {
        header: PWord,
        word: PWord,
    }
}

const SIZE: usize = size_of::<Leaf>();

/// A leaf being read.
#[derive(Clone, Copy, Debug)]
pub struct LeafRef<'g> {
    leaf: &'g Leaf,
    header: u64,
    tail: &'g [u8],
}

/// The mark of a generation: never zero. After 128 restarts an old mark may equal the new one, which costs needless
/// persists.
#[inline(always)]
fn mark(generation: u32) -> u64 {
    u64::from(generation & 0x7f | 0x80) << PENDING_SHIFT
}

#[inline(always)]
fn key_len(header: u64) -> usize {
    (header & 0xffff) as usize
}

#[inline(always)]
fn value_len(header: u64) -> usize {
    (header >> KEY_BITS & ((1 << VALUE_BITS) - 1)) as usize
}

#[inline(always)]
fn tail_len(header: u64) -> usize {
    key_len(header) + if header & WORD != 0 { 0 } else { value_len(header) }
}

impl<'g> LeafRef<'g> {
    /// The leaf that `link` leads to.
    #[inline]
    pub fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<LeafRef<'g>, Fault> {
        let offset = link.offset().ok_or(Fault {
            what: "null leaf",
            offset: 0,
        })?;
        let leaf = heap.at::<Leaf>(offset)?;
        let header = leaf.header.load(heap.media());
        let mut len = key_len(header);
        if header & WORD == 0 {
            len += value_len(header);
        } else if value_len(header) != 8 {
            return Err(Fault {
                what: "leaf header",
                offset: offset.get(),
            });
        }
        let tail = match Offset::new(offset.get() + SIZE as u64) {
            Some(start) => heap.bytes(start, len)?,
            None => {
                return Err(Fault {
                    what: "leaf",
                    offset: offset.get(),
                });
            }
        };
        Ok(LeafRef { leaf, header, tail })
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &'g [u8] {
        &self.tail[..key_len(self.header)]
    }

    /// Length of the whole leaf in bytes.
    pub fn extent(&self) -> usize {
        (SIZE + self.tail.len()).next_multiple_of(align_of::<Leaf>())
    }

    /// The value, persisted first if need be.
    #[inline]
    pub fn value<M: Media>(&self, heap: &Access<M>) -> Value<'g> {
        if self.header & WORD == 0 {
            return Value::Bytes(&self.tail[key_len(self.header)..]);
        }
        let media = heap.media();
        let value = self.leaf.word.load(media);
        let header = self.leaf.header.load(media);
        if header & PENDING != 0 {
            self.persist_word(header, heap);
        }
        Value::Word(value.to_le_bytes())
    }

    #[cold]
    #[inline(never)]
    fn persist_word<M: Media>(&self, header: u64, heap: &Access<M>) {
        persist_scope(heap.media(), Purpose::Node, |batch| {
            self.leaf.word.persist_seen(&batch);
            batch.fence();
        });
        // A damaged link may have led to something else, which must not be modified.
        if header & PENDING != mark(heap.generation()) && header & UNUSED == 0 && self.has_sound_key() {
            // Writers store marks of this generation only: if the mark is still there, so is the value just
            // persisted.
            self.leaf.header.settle(header, header & !PENDING, heap.media());
        }
    }

    /// The value as a word, if it can be stored in place.
    pub fn takes_word(&self, value: &[u8]) -> Option<u64> {
        if self.header & WORD == 0 {
            None
        } else {
            value.try_into().ok().map(u64::from_le_bytes)
        }
    }

    /// Stores an eight-byte value in place. The caller holds the lock on the leaf. Costs 1 write-back and 1 fence.
    pub fn store_word<P: Publication, M: Media>(&self, heap: &Access<M>, value: u64) -> Durable {
        let settled = self.header & !PENDING;
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let media = batch.media();
            if !P::MARKS {
                self.leaf.word.store_nt(value, &batch);
                return batch.fence().durable();
            }
            // The mark lies in the value's line, and means nothing without the value.
            let marked = settled | mark(heap.generation());
            self.leaf.header.store_unpersisted(marked, media);
            self.leaf.word.store(value, &batch);
            let durable = batch.fence().durable();
            self.leaf.header.store_unpersisted(settled, media);
            durable
        })
    }

    /// Whether the key matches its check byte: zeros, for example, do not pass for a leaf of the empty key.
    pub fn has_sound_key(&self) -> bool {
        (self.header >> CHECK_SHIFT) as u8 == checksum(self.key()) as u8
    }

    /// The fault of the leaf itself, if there is one.
    pub fn fault<M: Media>(&self, heap: &Access<M>) -> Option<&'static str> {
        if !self.has_sound_key() {
            return Some("the key does not match its check byte");
        }
        if self.header & UNUSED != 0 {
            return Some("the leaf's header has unused bits set");
        }
        let whole = self.header & WORD != 0 || self.leaf.word.load(heap.media()) == checksum(self.tail);
        (!whole).then_some("key and value do not match their checksum")
    }
}

/// Writes a leaf into a chunk of its own.
///
/// # Errors
///
/// If the heap has no room.
#[inline]
pub fn draft_leaf<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    key: &[u8],
    value: &[u8],
    batch: &PersistBatch<'e, '_, M>,
) -> Result<Draft<'e, 'h, Leaf>, Error> {
    draft_checked_leaf(heap, (key, checksum(key)), value, batch)
}

/// Like [`draft_leaf`], given the key's checksum.
///
/// # Errors
///
/// If the heap has no room.
#[inline]
pub fn draft_checked_leaf<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    (key, check): (&[u8], u64),
    value: &[u8],
    batch: &PersistBatch<'e, '_, M>,
) -> Result<Draft<'e, 'h, Leaf>, Error> {
    let leaf = Leaf::with_check(key, check, value);
    let tail = leaf.tail();
    let mut draft = heap.draft(leaf, tail, batch)?;
    fill_leaf(&mut draft, key, value);
    Ok(draft)
}

impl Leaf {
    /// The fixed part of a leaf for this key and value.
    #[inline]
    pub fn new(key: &[u8], value: &[u8]) -> Leaf {
        Leaf::with_check(key, checksum(key), value)
    }

    #[inline]
    fn with_check(key: &[u8], check: u64, value: &[u8]) -> Leaf {
        let word = <[u8; 8]>::try_from(value).ok().map(u64::from_le_bytes);
        let mut header = key.len() as u64 | (value.len() as u64) << KEY_BITS;
        header |= u64::from(check as u8) << CHECK_SHIFT;
        if word.is_some() {
            header |= WORD;
        }
        Leaf {
            header: PWord::new(header),
            word: PWord::new(word.unwrap_or_default()),
        }
    }

    /// Number of bytes after the fixed part, for a leaf just made.
    #[inline]
    pub fn tail(&self) -> usize {
        tail_len(self.header.private())
    }
}

/// Writes the tail of a leaf made by [`Leaf::new`] from the same key and value.
#[inline]
pub fn fill_leaf(draft: &mut Draft<'_, '_, Leaf>, key: &[u8], value: &[u8]) {
    let word = draft.header.private() & WORD != 0;
    let tail = draft.tail_mut();
    tail[..key.len()].copy_from_slice(key);
    if !word {
        tail[key.len()..].copy_from_slice(value);
        let check = checksum(tail);
        draft.word = PWord::new(check);
    }
}

//! Log pages and their records (DPTree §2.1, Fig. 2).
//!
//! ```text
//!   0   prev     link to the page before this one in its partition
//!   8   number   of the buffer tree of this log
//!  16   first    first record that counts:32 | sense:1
//!  24   records  capacity of the page
//!  64   records of 32 bytes, two a line:
//!         0   valid:1 | 0 | number:32 | 0:3 | shared:1 | high bit of value, of prefix:2 | kind:2
//!         8   valid:1 | prefix without its high bit
//!        16   valid:1 | value without its high bit; or a link to the record of the pair
//!        24   valid:1 | checksum of the others
//! ```
//!
//! I1 Each word holds 63 bits and, in bit 63, whether it was written in the page's present use: it was if the bit
//!    equals the page's *sense*. A record counts if all of its words do, so no torn one does, and one write-back
//!    makes it durable.
//! I2 Before a page is used, every word from `first` on has the other sense, durably. So a filled page can be reused
//!    without being cleared, with the other sense; a partly filled one, behind its contents.
//! I3 Between records that count there may be some that do not: a crash stopped their writers.
//! I4 The log record of a removal leads to the record of the removed pair, which has the key, and which another link
//!    keeps alive (`shared`). (Earlier versions of the program gave the removal a record of its own.)

use crate::key::MarkedPair;
use crate::root::tag;
use heap::{Access, Error};
use index::codec::{PairWords, checksum};
use pmem::{Fault, Link, Media, Offset, PEither, PSlot, PWord, PersistBatch, Tag, persistent};

persistent! {
    /// The head of a page.
    #[derive(Debug)]
    pub(crate) struct PageHead [size: 64, align: 64] {
        pub(crate) prev: PSlot,
        pub(crate) number: PWord,
        pub(crate) first: PWord,
        records: PWord,
        unused: [PWord; 4],
    }
}

const HEAD: usize = size_of::<PageHead>();

persistent! {
    /// One record.
    #[derive(Debug)]
    pub(crate) struct LogRecord [size: 32, align: 16] {
        head: PWord,
        prefix: PWord,
        value: PEither,
        check: PWord,
    }
}

const RECORD: usize = size_of::<LogRecord>();

const VALID: u64 = 1 << 63;
const NUMBER_SHIFT: u32 = 8;
const HIGH_PREFIX: u64 = 1 << 2;
const HIGH_VALUE: u64 = 1 << 3;
const KIND_REMOVED: u64 = 1;
const KIND_RECORD: u64 = 2;
const SHARED: u64 = 1 << 4;

/// Number of records of a page of this many bytes.
pub(crate) fn capacity(page: usize) -> usize {
    (page - HEAD) / RECORD
}

/// Number of bytes after the head.
pub(crate) fn tail(page: usize) -> usize {
    page - HEAD
}

/// The decoded `first` of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) position: usize,
    pub(crate) sense: bool,
}

impl First {
    pub(crate) fn word(self) -> u64 {
        self.position as u64 | u64::from(self.sense) << 32
    }

    pub(crate) fn from_word(word: u64) -> First {
        First {
            position: word as u32 as usize,
            sense: word >> 32 & 1 == 1,
        }
    }
}

impl PageHead {
    /// The head of a page new from the heap: the words of its records are zero, so those of valid ones have a one in
    /// bit 63.
    pub(crate) fn fresh(number: u64, capacity: usize) -> PageHead {
        PageHead {
            prev: PSlot::null(),
            number: PWord::new(number),
            first: PWord::new(
                First {
                    position: 0,
                    sense: true,
                }
                .word(),
            ),
            records: PWord::new(capacity as u64),
            unused: Default::default(),
        }
    }

    /// The head of the page that `link` leads to.
    pub(crate) fn at<M: Media>(heap: &Access<M>, link: Link) -> Result<&PageHead, Error> {
        let offset = link.offset().ok_or(Fault {
            what: "null log page",
            offset: 0,
        })?;
        Ok(heap.at(offset)?)
    }

    /// Length of the whole page in bytes.
    pub(crate) fn extent<M: Media>(&self, media: &M) -> Result<usize, Fault> {
        match usize::try_from(self.records.load(media)) {
            Ok(records) if records <= (64 << 10) / RECORD => Ok(HEAD + records * RECORD),
            _ => Err(Fault {
                what: "length of a log page",
                offset: 0,
            }),
        }
    }
}

/// The records of the page at `link`, as many as it states, with their sense; from the first one that counts.
pub(crate) fn records<M: Media>(heap: &Access<M>, link: Link) -> Result<(&[LogRecord], bool), Error> {
    let head = PageHead::at(heap, link)?;
    let place = link.offset().map_or(0, Offset::get);
    let fault = Fault {
        what: "log page",
        offset: place,
    };
    let len = head.extent(heap.media())? - HEAD;
    let first = First::from_word(head.first.load(heap.media()));
    let start = Offset::new(place + HEAD as u64).ok_or(fault)?;
    let all: &[LogRecord] = heap.slice(start, len / RECORD)?;
    let counted = all.get(first.position..).ok_or(fault)?;
    Ok((counted, first.sense))
}

/// The record at `position` of the page at `page`.
pub(crate) fn record<M: Media>(heap: &Access<M>, page: u64, position: usize) -> Result<&LogRecord, Error> {
    let at = page + (HEAD + position * RECORD) as u64;
    let at = Offset::new(at).ok_or(Fault {
        what: "log record",
        offset: at,
    })?;
    Ok(heap.at(at)?)
}

fn check(head: u64, prefix: u64, value: u64) -> u64 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&(head & !VALID).to_le_bytes());
    bytes[8..16].copy_from_slice(&(prefix & !VALID).to_le_bytes());
    bytes[16..].copy_from_slice(&(value & !VALID).to_le_bytes());
    checksum(&bytes)
}

impl LogRecord {
    /// Writes the record of an entry, whose link, if any, leads to a durable record. Costs one line.
    pub(crate) fn store<'m, M: Media>(
        &'m self,
        entry: &MarkedPair,
        number: u64,
        sense: bool,
        batch: &PersistBatch<'_, 'm, M>,
    ) {
        let valid = |word: u64| word & !VALID | if sense { VALID } else { 0 };
        let mut head = (number & 0xffff_ffff) << NUMBER_SHIFT;
        head |= if entry.removed { KIND_REMOVED } else { 0 };
        // Whether a high bit is set is unpredictable: no branch depends on it.
        head |= (entry.prefix >> 63) * HIGH_PREFIX;
        let value = if entry.link.is_null() {
            head |= (entry.word >> 63) * HIGH_VALUE;
            entry.word
        } else {
            head |= KIND_RECORD;
            head |= if entry.removed { SHARED } else { 0 };
            link_of(entry.link, sense).bits()
        };
        self.head.store(valid(head), batch);
        self.prefix.store(valid(entry.prefix), batch);
        if entry.link.is_null() {
            self.value.store(valid(value), batch);
        } else {
            self.value.store_link(link_of(entry.link, sense), batch);
        }
        self.check.store(valid(check(head, entry.prefix, value)), batch);
    }

    /// Whether another link keeps its record alive.
    pub(crate) fn is_shared<M: Media>(&self, media: &M) -> bool {
        self.head.load(media) & SHARED != 0
    }

    /// Writes back a record that was read. Costs one line.
    pub(crate) fn persist_seen<'m, M: Media>(&'m self, batch: &PersistBatch<'_, 'm, M>) {
        self.head.persist_seen(batch);
    }

    /// The entry, if the record counts.
    ///
    /// # Errors
    ///
    /// If it counts but is invalid: damage.
    pub(crate) fn load<M: Media>(
        &self,
        number: u64,
        sense: bool,
        media: &M,
    ) -> Result<Option<MarkedPair>, Fault> {
        let (head, prefix, value) = (
            self.head.load(media),
            self.prefix.load(media),
            self.value.load(media),
        );
        let sum = self.check.load(media);
        if [head, prefix, value, sum]
            .iter()
            .any(|word| (word & VALID != 0) != sense)
        {
            return Ok(None);
        }
        if (head & !VALID) >> NUMBER_SHIFT != number & 0xffff_ffff
            || sum & !VALID != check(head, prefix, value) & !VALID
        {
            return Err(Fault {
                what: "a log record does not match its checksum",
                offset: 0,
            });
        }
        let high = |bit| if head & bit != 0 { VALID } else { 0 };
        let link = if head & KIND_RECORD != 0 {
            self.value.load_link(media).with_tag(tag::RECORD)
        } else {
            Link::NULL
        };
        Ok(Some(MarkedPair {
            pair: PairWords {
                prefix: prefix & !VALID | high(HIGH_PREFIX),
                link,
                word: if link.is_null() {
                    value & !VALID | high(HIGH_VALUE)
                } else {
                    0
                },
            },
            removed: head & KIND_REMOVED != 0,
        }))
    }
}

/// The link as stored in a log record: its tag holds the validity bit.
fn link_of(link: Link, sense: bool) -> Link {
    link.with_tag(Tag::new(if sense { VALID } else { 0 }))
}

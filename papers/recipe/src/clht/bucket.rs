//! Buckets: a cache line with three pairs (RECIPE §6.2; CLHT-LB).
//!
//! ```text
//!   0  lock     GenerationLock; unused in an overflow bucket
//!   8  word     version:13 | record:3 | next:48, whose lower bits include present:3 and the mark
//!  16  keys     3 words: a key of eight bytes, little endian; for a record, its key's hash
//!  40  values   3 words: a value of eight bytes; for a record, the link to it
//! ```
//!
//! The bits *present* mark the slots that hold a pair, and *record* those of them that hold links. *Next* leads to
//! the following overflow bucket. *Version* counts how often a slot was filled. The word is stored after the contents
//! that it makes count, in the same line: stores to a line become durable in order, so one write-back and one fence
//! serve both.
//!
//! A reader loads the word, the key, the value, and the word again. If the word is unchanged, the pair was there at
//! that moment: a slot that was emptied and filled meanwhile has another version (I3 of the module). A value changes in
//! place only while the word is marked, and a thread that finds the mark persists the line.

use super::{damaged, hash, tag};
use heap::Access;
use index::Value;
use index::codec::{RecordRef, value_of};
use pmem::{
    Fault, GenerationLock, Link, LinkAndPersist, Media, PEither, PSlot, PWord, Purpose, Tag, persist_scope,
    persistent,
};

/// A pair, and its key's hash, or the bits of the hash that directories have not consumed.
pub(super) type Placed = (u64, Filling);

/// Pairs of a bucket.
pub(super) const SLOTS: usize = 3;

/// A bit for each slot.
const ALL: u64 = (1 << SLOTS) - 1;

const PRESENT: u32 = 1;
const RECORD: u32 = 48;
const VERSION: u32 = 51;
const LAST_VERSION: u64 = (1 << 13) - 1;

persistent! {
    /// A bucket.
    #[derive(Debug)]
    pub(super) struct Bucket [size: 64, align: 64] {
        pub(super) lock: GenerationLock,
        pub(super) word: PSlot,
        keys: [PWord; SLOTS],
        values: [PEither; SLOTS],
    }
}

/// The decoded word of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(Link);

impl State {
    /// The state of a new bucket with these pairs. Its version is 0, since no reader has seen the bucket before.
    pub(super) fn of(pairs: &[Placed]) -> State {
        let empty = State(Link::NULL);
        let filled = pairs.iter().enumerate();
        let filled = filled.fold(empty, |state, (slot, (_, pair))| state.filled(slot, pair));
        filled.with(filled.bits() & !(LAST_VERSION << VERSION))
    }

    #[inline]
    pub(super) fn has(self, slot: usize) -> bool {
        self.0.bits() >> (PRESENT + slot as u32) & 1 == 1
    }

    #[inline]
    fn is_record(self, slot: usize) -> bool {
        self.0.bits() >> (RECORD + slot as u32) & 1 == 1
    }

    /// The slots that hold a pair, a bit for each.
    #[inline]
    fn present(self) -> u64 {
        self.0.bits() >> PRESENT & ALL
    }

    /// The slots that hold a link, a bit for each.
    #[inline]
    fn records(self) -> u64 {
        self.0.bits() >> RECORD & ALL
    }

    /// Number of slots that hold a pair.
    pub(super) fn count(self) -> usize {
        (0..SLOTS).filter(|&slot| self.has(slot)).count()
    }

    /// The following overflow bucket; null if there is none.
    #[inline]
    pub(super) fn next(self) -> Link {
        match self.0.offset() {
            Some(_) => self.0.with_tag(tag::BUCKET),
            None => Link::NULL,
        }
    }

    /// Whether it holds nothing, and no bucket follows.
    pub(super) fn is_bare(self) -> bool {
        self.count() == 0 && self.next().is_null()
    }

    fn version(self) -> u64 {
        self.0.bits() >> VERSION
    }

    /// A slot that can be filled.
    pub(super) fn free(self) -> Option<usize> {
        let slot = (0..SLOTS).find(|&slot| !self.has(slot))?;
        (!self.is_used_up()).then_some(slot)
    }

    /// Whether its slots can no longer be filled.
    pub(super) fn is_used_up(self) -> bool {
        self.version() == LAST_VERSION
    }

    /// The word's bits beside the link.
    pub(super) fn tag(self) -> Tag {
        self.0.tag()
    }

    fn bits(self) -> u64 {
        self.0.bits()
    }

    fn with(self, bits: u64) -> State {
        State(self.0.with_tag(Tag::new(bits)))
    }

    /// The state with a slot filled.
    pub(super) fn filled(self, slot: usize, pair: &Filling) -> State {
        let record = u64::from(pair.is_record()) << (RECORD + slot as u32);
        let bits = self.0.bits() & !(1 << (RECORD + slot as u32));
        self.with((bits | 1 << (PRESENT + slot as u32) | record) + (1 << VERSION))
    }

    /// The state with a slot emptied.
    pub(super) fn emptied(self, slot: usize) -> State {
        self.with(self.0.bits() & !(1 << (PRESENT + slot as u32) | 1 << (RECORD + slot as u32)))
    }

    /// The state with another following bucket, or none.
    pub(super) fn followed_by(self, next: Link) -> State {
        State(next.with_tag(self.tag()))
    }

    /// The fault of the state, if there is one.
    pub(super) fn fault(self) -> Option<&'static str> {
        let stray = (0..SLOTS).any(|slot| self.is_record(slot) && !self.has(slot));
        stray.then_some("an empty slot of a bucket is marked as a record")
    }
}

/// A key to search for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'k> {
    pub(super) bytes: &'k [u8],
    pub(super) hash: u64,
    /// The key itself, if it can be stored in a slot.
    word: Option<u64>,
}

impl<'k> Wanted<'k> {
    #[inline]
    pub(super) fn new(bytes: &'k [u8]) -> Wanted<'k> {
        Wanted {
            bytes,
            hash: hash(bytes),
            word: bytes.try_into().ok().map(u64::from_le_bytes),
        }
    }
}

/// A pair as stored in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filling {
    /// The key; for a record, its key's hash.
    pub(super) key: u64,
    pub(super) value: Stored,
}

/// The second word of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The value.
    Word(u64),
    /// The link to the record of key and value.
    Record(Link),
}

impl Stored {
    fn bits(self) -> u64 {
        match self {
            Stored::Word(word) => word,
            Stored::Record(link) => link.bits(),
        }
    }

    /// The record; null if the pair is stored in place.
    pub(super) fn record(self) -> Link {
        match self {
            Stored::Word(_) => Link::NULL,
            Stored::Record(link) => link,
        }
    }

    fn draft(self) -> PEither {
        match self {
            Stored::Word(word) => PEither::value(word),
            Stored::Record(link) => PEither::link(link),
        }
    }
}

impl Filling {
    /// The pair of a key with a value, if both can be stored in place.
    pub(super) fn in_place(key: &Wanted<'_>, value: &[u8]) -> Option<Filling> {
        let value = value.try_into().ok().map(u64::from_le_bytes)?;
        Some(Filling {
            key: key.word?,
            value: Stored::Word(value),
        })
    }

    /// The pair of a key with this hash in a record.
    pub(super) fn in_record(hash: u64, record: Link) -> Filling {
        Filling {
            key: hash,
            value: Stored::Record(record),
        }
    }

    pub(super) fn is_record(&self) -> bool {
        matches!(self.value, Stored::Record(_))
    }

    /// The hash of its key.
    pub(super) fn hash(&self) -> u64 {
        match self.value {
            Stored::Record(_) => self.key,
            Stored::Word(_) => hash(&self.key.to_le_bytes()),
        }
    }

    /// Whether it is this key's.
    #[inline]
    pub(super) fn is_of<M: Media>(&self, key: &Wanted<'_>, heap: &Access<M>) -> Result<bool, Fault> {
        match self.value {
            Stored::Record(link) => Ok(self.key == key.hash && RecordRef::at(heap, link)?.key == key.bytes),
            Stored::Word(_) => Ok(key.word == Some(self.key)),
        }
    }

    /// Its value.
    #[inline]
    pub(super) fn value<'g, M: Media>(&self, heap: &'g Access<M>) -> Result<Value<'g>, Fault> {
        match self.value {
            Stored::Record(link) => Ok(value_of(RecordRef::at(heap, link)?.value)),
            Stored::Word(word) => Ok(Value::Word(word.to_le_bytes())),
        }
    }
}

impl Bucket {
    /// An overflow bucket with these pairs, at most [`SLOTS`], for a draft; the caller sets its word to its
    /// [`State::of`].
    pub(super) fn holding(pairs: &[Placed]) -> Bucket {
        let pair = |slot: usize| pairs.get(slot).map(|(_, pair)| pair);
        Bucket {
            lock: GenerationLock::new(0),
            word: PSlot::null(),
            keys: std::array::from_fn(|slot| PWord::new(pair(slot).map_or(0, |pair| pair.key))),
            values: std::array::from_fn(|slot| {
                pair(slot).map_or(PEither::value(0), |pair| pair.value.draft())
            }),
        }
    }

    /// The state in its word, durable.
    #[inline(always)]
    pub(super) fn state<M: Media>(&self, media: &M) -> State {
        State(self.word.load(media))
    }

    /// The state in its word, as a hint.
    #[inline]
    pub(super) fn glance<M: Media>(&self, media: &M) -> State {
        State(self.word.peek(media))
    }

    /// The overflow bucket at `link`.
    #[inline]
    pub(super) fn at<M: Media>(heap: &Access<M>, link: Link) -> Result<&Bucket, Fault> {
        heap.at(link.offset().ok_or(damaged("null overflow bucket", link))?)
    }

    /// The pair in a slot that `state` marks as used.
    #[inline]
    fn slot<M: Media>(&self, slot: usize, state: State, media: &M) -> Filling {
        let value = &self.values[slot];
        Filling {
            key: self.keys[slot].peek(media),
            value: match state.is_record(slot) {
                true => Stored::Record(value.load_link(media)),
                false => Stored::Word(value.load(media)),
            },
        }
    }

    /// Declares that the values loaded from a slot do not count.
    fn disregard<M: Media>(&self, slot: usize, media: &M) {
        self.values[slot].disregard(media);
    }

    /// The slots whose key, or its hash, is this word, a bit for each. Without a branch for each slot: the processor
    /// cannot predict which slot has the key.
    #[inline(always)]
    fn slots_of<M: Media>(&self, word: u64, media: &M) -> u64 {
        // Peeked, not loaded: nothing depends on the keys of other pairs.
        let is = |slot: usize| u64::from(self.keys[slot].peek(media) == word) << slot;
        (0..SLOTS).fold(0, |slots, slot| slots | is(slot))
    }

    /// The slots that may hold a key, a bit for each.
    #[inline(always)]
    fn candidates<M: Media>(&self, key: &Wanted<'_>, state: State, media: &M) -> u64 {
        let (present, records) = (state.present(), state.records());
        let mut slots = 0;
        if let Some(word) = key.word
            && present != records
        {
            slots = self.slots_of(word, media) & present & !records;
        }
        if records != 0 {
            slots |= self.slots_of(key.hash, media) & present & records;
        }
        slots
    }

    /// The pair of a key, if it is here; otherwise the state in which the key was absent.
    #[inline]
    pub(super) fn find<M: Media>(
        &self,
        key: &Wanted<'_>,
        heap: &Access<M>,
    ) -> Result<Result<Filling, State>, Fault> {
        let media = heap.media();
        'again: loop {
            let state = self.state(media);
            let mut candidates = self.candidates(key, state, media);
            while candidates != 0 {
                let slot = candidates.trailing_zeros() as usize;
                candidates &= candidates - 1;
                let pair = self.slot(slot, state, media);
                if self.state(media) != state {
                    self.disregard(slot, media);
                    continue 'again;
                }
                if pair.is_of(key, heap)? {
                    return Ok(Ok(pair));
                }
            }
            // A pair that changes its form moves to another slot, perhaps to one searched before: a miss counts only if
            // the word is unchanged.
            if self.state(media) == state {
                return Ok(Err(state));
            }
        }
    }

    /// All pairs, as of one moment, and the state then.
    pub(super) fn pairs<M: Media>(&self, media: &M) -> (State, [Option<Filling>; SLOTS]) {
        loop {
            let state = self.state(media);
            let pairs = std::array::from_fn(|slot| state.has(slot).then(|| self.slot(slot, state, media)));
            if self.state(media) == state {
                return (state, pairs);
            }
            (0..SLOTS)
                .filter(|&slot| state.has(slot))
                .for_each(|slot| self.disregard(slot, media));
        }
    }

    /// Like [`pairs`](Bucket::pairs); the caller holds the lock.
    pub(super) fn held<M: Media>(&self, media: &M) -> (State, [Option<Filling>; SLOTS]) {
        let state = self.state(media);
        let pairs = std::array::from_fn(|slot| state.has(slot).then(|| self.slot(slot, state, media)));
        (state, pairs)
    }

    /// Fills a slot, and stores the word that makes it count. The caller holds the lock. Costs 1 write-back and 1
    /// fence.
    pub(super) fn fill<M: Media>(&self, slot: usize, pair: &Filling, state: State, media: &M) {
        persist_scope(media, Purpose::Node, |batch| {
            self.keys[slot].store(pair.key, &batch);
            self.values[slot].store(pair.value.bits(), &batch);
            let published = self
                .word
                .publish_link::<LinkAndPersist, M>(media, state.0)
                .join(&batch);
            let fenced = batch.fence();
            let _durable = published.durable(&fenced);
        });
    }

    /// Replaces the value in a slot, whose form stays. The caller holds the lock. Costs 1 write-back and 1 fence.
    pub(super) fn update<M: Media>(&self, slot: usize, value: Stored, state: State, media: &M) {
        persist_scope(media, Purpose::Node, |batch| {
            // The mark is stored before the value. If a crash leaves the mark alone, nothing has changed.
            let marked = self.word.publish_link::<LinkAndPersist, M>(media, state.0);
            self.values[slot].store(value.bits(), &batch);
            let marked = marked.join(&batch);
            let fenced = batch.fence();
            let _durable = marked.durable(&fenced);
        });
    }

    /// Stores the word, which must not make a slot count that did not count before. The caller holds the lock. Costs 1
    /// write-back and 1 fence.
    pub(super) fn set<M: Media>(&self, state: State, media: &M) {
        media.site("clht: pair removed");
        let _durable = self
            .word
            .publish_link::<LinkAndPersist, M>(media, state.0)
            .commit();
    }
}

/// A new home bucket with these pairs, in words: its lock belongs to no generation.
pub(super) fn words(pairs: &[Placed]) -> [u64; 2 + 2 * SLOTS] {
    let mut words = [0; 2 + 2 * SLOTS];
    words[1] = State::of(pairs).bits();
    for (slot, (_, pair)) in pairs.iter().enumerate() {
        words[2 + slot] = pair.key;
        words[2 + SLOTS + slot] = pair.value.bits();
    }
    words
}

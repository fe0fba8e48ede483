//! Named roots: where recovery and the indexes start (DCMM's "global naming space").
//!
//! The directory is the rest of page 0 after the pool's header, an array of entries of 256 bytes:
//!
//! ```text
//!    0  link: the root object; null = the entry is free
//!    8  about    63        32 31           8 7        0
//!               +------------+--------------+----------+
//!               |    kind    |  check of    |  name's  |
//!               |            | kind and name|  length  |
//!               +------------+--------------+----------+
//!   16  name, zeros after it
//! ```
//!
//! I1 All of an entry but its link is durable before the link is stored: that store is the commit point.
//! I2 An entry with a link does not change, except that its link may become null.

use crate::page::lock_across;
use crate::recovery::Removal;
use crate::{Error, Heap, Removed};
use pmem::{
    Link, LinkAndPersist, Media, Offset, PSlot, PWord, Persisted, Persistent, Purpose, Tag, persist_scope,
    persistent,
};

/// The maximum length of a root's name in bytes.
pub const MAX_NAME: usize = 240;

const WORDS: usize = MAX_NAME / 8;

/// The contents of a root's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The kind of the object, which selects its tracer.
    pub kind: u32,
    /// The object.
    pub link: Link,
}

persistent! {
    struct RootEntry [size: 256] {
        link: PSlot,
        about: PWord,
        name: [PWord; WORDS],
    }
}

impl<M: Media> Heap<M> {
    /// The root of this name, if it exists.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if an entry is invalid.
    pub fn root(&self, name: &[u8]) -> Result<Option<Root>, Error> {
        let _held = lock_across(&self.inner.roots, self.media());
        Ok(self.find_root(name)?.map(|(_, root)| root))
    }

    /// All roots, with their names.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if an entry is invalid.
    pub fn roots(&self) -> Result<Vec<(Vec<u8>, Root)>, Error> {
        let _held = lock_across(&self.inner.roots, self.media());
        let mut roots = Vec::new();
        for place in self.entries() {
            roots.extend(self.read_root(place, self.entry(place)?)?);
        }
        Ok(roots)
    }

    /// Makes `object` a root. Failure-atomic: two fences, and the write-backs of the entry's lines.
    ///
    /// # Errors
    ///
    /// [`Error::RootExists`], [`Error::NameTooLong`], [`Error::TooManyRoots`], [`Error::Damaged`]. The object's chunk
    /// is then given back.
    ///
    /// # Safety
    ///
    /// The object, and everything that it leads to, is what the readers and the tracer of this `kind` expect.
    pub unsafe fn create_root<T: Persistent>(
        &self,
        name: &[u8],
        kind: u32,
        object: Persisted<'_, T>,
        tag: Tag,
    ) -> Result<Link, Error> {
        if name.len() > MAX_NAME {
            return Err(Error::NameTooLong(name.len()));
        }
        let _held = lock_across(&self.inner.roots, self.media());
        if self.find_root(name)?.is_some() {
            return Err(Error::RootExists(name.into()));
        }
        let mut free = None;
        for place in self.entries() {
            let entry = self.entry(place)?;
            if entry.link.settle(self.media()).is_null() {
                free = Some(entry);
                break;
            }
        }
        let entry = free.ok_or_else(|| Error::TooManyRoots(self.entries().count()))?;
        persist_scope(self.media(), Purpose::Alloc, |batch| {
            for (word, at) in entry.name.iter().zip((0..).step_by(8)) {
                word.store(word_of(name, at), &batch);
            }
            self.media().site("heap: a root's entry");
            entry.about.store(about(kind, name), &batch);
            let _durable = batch.fence().durable();
        });
        self.media().site("heap: a root's link");
        let _durable = entry
            .link
            .publish::<LinkAndPersist, M, T>(self.media(), object, tag)
            .commit();
        Ok(entry.link.load(self.media()))
    }

    /// Removes the root of this name and returns it; the caller [retires](Removed::retire) the objects below it, and
    /// the next recovery reclaims those that it does not. Failure-atomic: one write-back, one fence.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if an entry is invalid.
    ///
    /// # Safety
    ///
    /// No thread uses objects that only this root leads to from now on, except under a guard of its own from before
    /// this call: the next recovery frees them, and so may the caller.
    pub unsafe fn remove_root(&self, name: &[u8]) -> Result<Option<Removed<'_, M>>, Error> {
        // Begins before anything is unlinked.
        let removal = Removal::begin(&self.inner.recovery);
        let _held = lock_across(&self.inner.roots, self.media());
        let Some((entry, root)) = self.find_root(name)? else {
            return Ok(None);
        };
        let _durable = entry
            .link
            .publish_link::<LinkAndPersist, M>(self.media(), Link::NULL)
            .commit();
        Ok(Some(Removed::new(self, name, root, removal)))
    }

    /// The places of the directory's entries.
    fn entries(&self) -> impl Iterator<Item = Offset> + use<M> {
        let (start, len) = self.pool().directory();
        let count = (len / size_of::<RootEntry>()) as u64;
        (0..count).filter_map(move |i| Offset::new(start.get() + i * size_of::<RootEntry>() as u64))
    }

    fn entry(&self, place: Offset) -> Result<&RootEntry, Error> {
        // SAFETY: the directory is in page 0, where nothing is drafted, and its entries consist of words only.
        Ok(unsafe { self.pool().at(place) }?)
    }

    fn find_root(&self, name: &[u8]) -> Result<Option<(&RootEntry, Root)>, Error> {
        for place in self.entries() {
            let entry = self.entry(place)?;
            if let Some((found, root)) = self.read_root(place, entry)?
                && found == name
            {
                return Ok(Some((entry, root)));
            }
        }
        Ok(None)
    }

    fn read_root(&self, place: Offset, entry: &RootEntry) -> Result<Option<(Vec<u8>, Root)>, Error> {
        let media = self.media();
        let link = entry.link.settle(media);
        if link.is_null() {
            return Ok(None);
        }
        let said = entry.about.load(media);
        let kind = (said >> 32) as u32;
        let mut name: Vec<u8> = entry
            .name
            .iter()
            .flat_map(|word| word.load(media).to_le_bytes())
            .collect();
        name.truncate((said & 0xff) as usize);
        if about(kind, &name) != said {
            return Err(Error::Damaged {
                what: "a root's entry does not match its checksum",
                offset: place.get(),
            });
        }
        Ok(Some((name, Root { kind, link })))
    }
}

/// Eight bytes of the name from `at` on, with zeros after its end.
fn word_of(name: &[u8], at: usize) -> u64 {
    let rest = name.get(at..).unwrap_or_default();
    let mut word = [0; 8];
    let len = rest.len().min(8);
    word[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(word)
}

/// The entry's second word: the checksum is the middle of a 64-bit FNV-1a over kind, length and name.
fn about(kind: u32, name: &[u8]) -> u64 {
    let len = name.len() as u8;
    let bytes = kind
        .to_le_bytes()
        .into_iter()
        .chain([len])
        .chain(name.iter().copied());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    u64::from(kind) << 32 | (hash >> 20 & 0x00ff_ffff) << 8 | u64::from(len)
}

//! The directory of the named roots: finding, listing and creating them. (They are removed beside recovery:
//! [`retire_tree`](crate::recovery::retire_tree).)
//!
//! The directory is the rest of page 0 after the pool's header, an array of [entries](crate::roots::entry).
//!
//! I1 All of an entry but its link is durable before the link is stored: that store is the commit point.
//! I2 An entry with a link does not change, except that its link may become null.

use crate::roots::entry::{Root, RootEntry, about, word_of};
use crate::{Error, Heap, MAX_NAME};
use pmem::{Link, LinkAndPersist, Media, Offset, Persisted, Persistent, Purpose, Tag, persist_scope};

impl<M: Media> Heap<M> {
    /// The root of this name, if it exists.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if an entry is invalid.
    pub fn root(&self, name: &[u8]) -> Result<Option<Root>, Error> {
        let _held = pmem::lock_across(&self.inner.roots, self.media());
        Ok(self.find_root(name)?.map(|(_, root)| root))
    }

    /// All roots, with their names.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if an entry is invalid.
    pub fn roots(&self) -> Result<Vec<(Vec<u8>, Root)>, Error> {
        let _held = pmem::lock_across(&self.inner.roots, self.media());
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
        let _held = pmem::lock_across(&self.inner.roots, self.media());
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

    /// The root of this name and its entry, if it exists. The caller holds the lock of the directory.
    pub(crate) fn find_root(&self, name: &[u8]) -> Result<Option<(&RootEntry, Root)>, Error> {
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

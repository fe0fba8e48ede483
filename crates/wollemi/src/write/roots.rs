//! The maps' roots. Each is opened by the index that its kind names, behind the database's gate.

use crate::indexes::WithIndex;
use crate::write::guarded::Guarded;
use crate::write::journal::Durability;
use crate::write::map_index::MapIndex;
use crate::write::store::Store;
use crate::{Error, IndexKind, Media};
use heap::{Removed, Root, Trace};
use index::{Index, Parts};
use log::Change;
use pmem::Offset;
use std::sync::Arc;

/// An unlinked root, and the tracer of the objects below it.
pub(crate) type Unlinked<'s, M> = (Removed<'s, M>, Arc<dyn Trace<M>>);

/// The kind with which a map was opened, and its index.
pub(crate) type Opened = (IndexKind, Arc<dyn MapIndex>);

/// Wraps an index of any type in [`Guarded`].
struct IntoGuarded<'s, M: Media> {
    store: &'s Store<M>,
    name: &'s str,
}

impl<M: Media> WithIndex for IntoGuarded<'_, M> {
    type Out = Arc<dyn MapIndex>;
    fn with<I: Index + 'static>(self, index: I) -> Arc<dyn MapIndex> {
        let store = self.store;
        Arc::new(Guarded::new(index, self.name, store))
    }
}

impl<M: Media> Store<M> {
    fn guarded<'s>(&'s self, name: &'s str) -> IntoGuarded<'s, M> {
        IntoGuarded { store: self, name }
    }

    pub fn create(&self, name: &str, kind: IndexKind) -> Result<Arc<dyn MapIndex>, Error> {
        self.refuse_if_read_only()?;
        let index = kind.name();
        self.record_map(&Change::MapMade {
            map: name,
            index,
            settings: &[],
        })?;
        let made = kind.create(&self.heap, name.as_bytes(), self.guarded(name));
        if made.is_err() {
            // The log already records the map as created. Undo that, unless the map has a root: an index that was
            // created may still fail to open, if its pool is damaged.
            if self.heap.root(name.as_bytes())?.is_none()
                && let Some(journal) = self.traffic.journal.get()
            {
                let dropped = Change::MapDropped { map: name };
                journal.undo(&[dropped], std::iter::empty(), Durability::Immediate)?;
            }
            self.traffic.settle_appended()?;
        }
        Ok(made?)
    }

    /// Appends the creation or drop of a map to the log, if there is one.
    fn record_map(&self, change: &Change<'_>) -> Result<(), Error> {
        if let Some(journal) = self.traffic.journal.get() {
            journal.append(&[*change], std::iter::empty(), Durability::Immediate)?;
        }
        Ok(())
    }

    /// Builds a map from sorted pairs. The caller holds no guard.
    pub fn build(&self, name: &str, kind: IndexKind, parts: Parts<'_>) -> Result<Arc<dyn MapIndex>, Error> {
        self.refuse_if_read_only()?;
        let built = kind.build(&self.heap, name.as_bytes(), parts, self.guarded(name));
        built.map_err(|error| match error {
            index::Error::Heap(heap::Error::RootExists(_)) => Error::MapExists(name.to_owned()),
            error => error.into(),
        })
    }

    /// Opens a map as `wanted`, or, if that is `None`, as its own kind; returns `None` if there is no such map.
    ///
    /// # Errors
    ///
    /// [`Error::OtherIndex`] if the map cannot be opened as `wanted`, among others.
    pub fn open(&self, name: &str, wanted: Option<IndexKind>) -> Result<Option<Opened>, Error> {
        let Some(root) = self.heap.root(name.as_bytes())? else {
            return Ok(None);
        };
        let found = kind_of(name, &root)?;
        let kind = match wanted {
            Some(wanted) if wanted == found || wanted.holds(&root) => wanted,
            Some(wanted) => return Err(Error::other_index(name, found, wanted)),
            None => found,
        };
        let index = kind.open(&self.heap, name.as_bytes(), self.guarded(name))?;
        Ok(index.map(|index| (kind, index)))
    }

    /// Refuses a pool with a map that this program cannot read, and so cannot copy: its name is not UTF-8, or the
    /// program is built without its index, or does not know its kind.
    pub fn refuse_unreadable_maps(&self) -> Result<(), Error> {
        let roots = self.map_roots()?;
        roots
            .iter()
            .try_for_each(|(name, root)| kind_of(text_of(name)?, root).map(drop))
    }

    /// Refuses a pool with a map whose name is not UTF-8: no call can open it.
    pub fn refuse_non_utf8_names(&self) -> Result<(), Error> {
        let roots = self.map_roots()?;
        roots.iter().try_for_each(|(name, _)| text_of(name).map(drop))
    }

    /// Returns the root of a map without handles that is still being closed: its last handle waits for the threads of
    /// its index, and something is [attached](Heap::is_attached) to the root until they have ended.
    pub fn closing_root(&self, name: &str) -> Result<Option<Offset>, Error> {
        self.refuse_if_read_only()?;
        let root = self.heap.root(name.as_bytes())?;
        let object = root.and_then(|root| root.link.offset());
        Ok(object.filter(|&object| self.heap.is_attached(object)))
    }

    /// Unlinks a map without handles, which is [not being closed](Store::closing_root). The caller retires the objects
    /// below it with the returned tracer.
    ///
    /// The map is not opened, because the maps are locked meanwhile, and opening may take time in proportion to its
    /// size.
    pub fn unlink(&self, name: &str) -> Result<Option<Unlinked<'_, M>>, Error> {
        self.refuse_if_read_only()?;
        let Some(root) = self.heap.root(name.as_bytes())? else {
            return Ok(None);
        };
        let kind = kind_of(name, &root)?;
        if !kind.is_there(&self.heap, name.as_bytes())? {
            return Ok(None);
        }
        let _closed = self.traffic.gate.close(self.heap.media())?;
        if self.traffic.before_images.any_snapshot() {
            return Err(Error::MapInUse(name.to_owned()));
        }
        self.record_map(&Change::MapDropped { map: name })?;
        // The record is not undone if this fails: it reads the entries that `root` has read above, so only damage to
        // the pool in between could make it fail.
        // SAFETY: no handle of the map is left, none can be made while the maps are locked, and its index has ended.
        let removed = unsafe { self.heap.remove_root(name.as_bytes()) }?;
        self.traffic.watches.end_of_map(name);
        Ok(removed.map(|removed| (removed, kind.tracer())))
    }
}

/// Returns a map's name as text.
pub(crate) fn text_of(name: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(name).map_err(|_| Error::MapNotText(String::from_utf8_lossy(name).into_owned()))
}

/// Returns the index that holds a map.
fn kind_of(name: &str, root: &Root) -> Result<IndexKind, Error> {
    let name = || name.to_owned();
    IndexKind::of(root).ok_or_else(|| match IndexKind::left_out(root) {
        Some(index) => Error::LeftOut { name: name(), index },
        None => Error::OtherKind {
            name: name(),
            kind: root.kind,
        },
    })
}

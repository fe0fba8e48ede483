//! What keys held before they were changed, for the snapshots that there are.
//!
//! A snapshot begins while the [gate](super::gate) is closed, so no write is under way then. From that moment each
//! write notes what its key held, under the index's lock on the key and before it changes anything, in every snapshot
//! that has no note of that key yet. Nothing of it is persistent.
//!
//! I1 A snapshot's note of a key is what the key held when the snapshot began, and never changes. It is made by the first
//!    answer of an edit that may change the key, be that answer carried out or not.
//! I2 Who reads a key in the index and then finds no note of it has read what the key held when the snapshot began: a
//!    change that it could have seen was noted before it could be seen. Not so once the snapshot is outgrown, which is
//!    looked at after that.

use crate::Error;
use crate::entry::BATCH_BYTES;
use index::{Action, Direction, Edit, Order, Place};
use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What a key held; `None`: nothing.
pub(crate) type Before = Option<Arc<[u8]>>;

/// By the order in which the map's index is walked.
type Notes = BTreeMap<Place, Before>;

/// What a note takes beside its bytes, roughly.
const NOTE: u64 = 2 * size_of::<(Place, Before)>() as u64;

/// The most notes that are looked at under one lock.
const SOME: usize = 512;

/// One snapshot's notes.
#[derive(Debug)]
pub(crate) struct Kept {
    inner: Mutex<Inner>,
    /// The most bytes that they may take.
    most: u64,
    /// Whether there was no room for one: from then on none is made, and nothing that is read is sure.
    outgrown: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    maps: HashMap<Arc<str>, Notes>,
    bytes: u64,
}

impl Kept {
    fn new(most: u64) -> Kept {
        Kept {
            inner: Mutex::default(),
            most,
            outgrown: AtomicBool::new(false),
        }
    }

    // A note is one insert: whatever panicked, what is there is whole.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, map: &Arc<str>, place: &Place, current: Option<&[u8]>, shared: &mut Option<Before>) {
        let inner = &mut *self.lock();
        let notes = inner.maps.entry(map.clone()).or_default();
        if self.outgrown.load(Relaxed) || notes.contains_key(place) {
            return;
        }
        let bytes = inner.bytes + NOTE + (place.key.len() + current.map_or(0, <[u8]>::len)) as u64;
        if bytes > self.most {
            // What is noted goes with the snapshot: giving it back here would hold the writer up.
            self.outgrown.store(true, Relaxed);
            return;
        }
        inner.bytes = bytes;
        let before = shared.get_or_insert_with(|| current.map(Arc::from)).clone();
        notes.insert(place.clone(), before);
    }

    /// Asked after the index and the notes: whether what these have shown is so.
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotOutgrown`]
    pub fn is_whole(&self) -> Result<(), Error> {
        // A reader that has seen a change that was not noted has taken the notes' lock after the writer, and so sees
        // this, too.
        match self.outgrown.load(Relaxed) {
            true => Err(Error::SnapshotOutgrown(self.most)),
            false => Ok(()),
        }
    }

    /// The note of a key, if there is one.
    pub fn of(&self, map: &str, place: &Place) -> Option<Before> {
        self.lock().maps.get(map)?.get(place).cloned()
    }

    /// The first notes between two bounds that do not cross, in order from one end, and whether there are more. However
    /// many there are, writers do not wait for long.
    pub fn some(
        &self,
        map: &str,
        bounds: (Bound<Place>, Bound<Place>),
        direction: Direction,
    ) -> (Vec<(Vec<u8>, Before)>, bool) {
        let inner = self.lock();
        let (mut some, mut bytes) = (Vec::new(), 0);
        let mut range = inner.maps.get(map).map(|notes| notes.range(bounds));
        let mut next = || match direction {
            Direction::Forward => range.as_mut()?.next(),
            Direction::Reverse => range.as_mut()?.next_back(),
        };
        while let Some((Place { key, .. }, before)) = next() {
            if some.len() == SOME || bytes >= BATCH_BYTES {
                return (some, true);
            }
            bytes += key.len() + before.as_ref().map_or(0, |bytes| bytes.len());
            some.push((key.to_vec(), before.clone()));
        }
        (some, false)
    }

    /// Bytes that the notes take, roughly.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }
}

/// All snapshots' notes.
#[derive(Debug, Default)]
pub(crate) struct Befores {
    any: AtomicBool,
    all: RwLock<Vec<Arc<Kept>>>,
}

impl Befores {
    /// Whether there is a snapshot. A writer asks behind the gate, and so knows of all that began before.
    #[inline]
    pub fn are_kept(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Begins a snapshot whose notes may take `most` bytes. The gate is closed.
    pub fn begin(&self, most: u64) -> Arc<Kept> {
        let kept = Arc::new(Kept::new(most));
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.push(kept.clone());
        self.any.store(true, Relaxed);
        kept
    }

    /// Ends a snapshot.
    pub fn end(&self, kept: &Arc<Kept>) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| !Arc::ptr_eq(other, kept));
        self.any.store(!all.is_empty(), Relaxed);
    }

    /// The edit, with what it replaces noted.
    pub fn keeping<'e>(
        &'e self,
        map: &'e Arc<str>,
        order: Order,
        key: &'e [u8],
        edit: &'e mut dyn Edit,
    ) -> Keeping<'e> {
        Keeping {
            befores: self,
            map,
            order,
            key,
            edit,
        }
    }

    fn note(&self, map: &Arc<str>, place: &Place, current: Option<&[u8]>) {
        let mut shared = None;
        for kept in &*self.all.read().unwrap_or_else(PoisonError::into_inner) {
            kept.note(map, place, current, &mut shared);
        }
    }
}

/// An edit that notes what it replaces.
pub(crate) struct Keeping<'e> {
    befores: &'e Befores,
    map: &'e Arc<str>,
    order: Order,
    key: &'e [u8],
    edit: &'e mut dyn Edit,
}

impl Edit for Keeping<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let action = self.edit.decide(current);
        if action != Action::Keep {
            // Asked again, it notes nothing more: no other value can have been noted, as the first note counts, and was made
            // when the key held what it had held since the snapshot began.
            let place = self.order.place(self.key);
            self.befores.note(self.map, &place, current);
        }
        action
    }

    fn value(&self) -> &[u8] {
        self.edit.value()
    }
}

//! What keys held before they were changed, for the snapshots that there are.
//!
//! A snapshot begins while the [gate](crate::gate) is closed, so no write is under way then. From that moment each write
//! notes what its key held, under the index's lock on the key and before it changes anything, in every snapshot that has
//! no note of that key yet. Nothing of it is persistent.
//!
//! I1 A snapshot's note of a key is what the key held when the snapshot began, and never changes.
//! I2 Who reads a key in the index and then finds no note of it has read what the key held when the snapshot began: a
//!    change that it could have seen was noted before it could be seen.

use index::{Action, Edit};
use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What a key held; `None`: nothing.
pub(crate) type Before = Option<Arc<[u8]>>;

type Notes = BTreeMap<Box<[u8]>, Before>;

/// What a note takes beside its bytes, roughly.
const NOTE: u64 = 2 * size_of::<(Box<[u8]>, Before)>() as u64;

/// One snapshot's notes.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    maps: HashMap<Arc<str>, Notes>,
    bytes: u64,
}

impl Kept {
    // A note is one insert: whatever panicked, what is there is whole.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, map: &Arc<str>, key: &[u8], before: impl FnOnce() -> Before) {
        let inner = &mut *self.lock();
        let notes = inner.maps.entry(map.clone()).or_default();
        if !notes.contains_key(key) {
            let before = before();
            inner.bytes += NOTE + (key.len() + before.as_ref().map_or(0, |bytes| bytes.len())) as u64;
            notes.insert(key.into(), before);
        }
    }

    /// The note of a key, if there is one.
    pub fn of(&self, map: &str, key: &[u8]) -> Option<Before> {
        self.lock().maps.get(map)?.get(key).cloned()
    }

    /// Shows the notes between two bounds that do not cross, in order.
    pub fn between(&self, map: &str, bounds: (Bound<&[u8]>, Bound<&[u8]>), show: impl FnOnce(Range<'_>)) {
        static NONE: Notes = Notes::new();
        let inner = self.lock();
        show(inner.maps.get(map).unwrap_or(&NONE).range::<[u8], _>(bounds));
    }

    /// Bytes that the notes take, roughly.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }
}

/// Notes in order.
pub(crate) type Range<'n> = std::collections::btree_map::Range<'n, Box<[u8]>, Before>;

/// All snapshots' notes.
#[derive(Debug, Default)]
pub(crate) struct Befores {
    any: AtomicBool,
    all: RwLock<Vec<Arc<Kept>>>,
}

impl Befores {
    /// Whether there is a snapshot. Who writes asks behind the gate, and so knows of all that began before.
    #[inline]
    pub fn are_kept(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Begins a snapshot. The gate is closed.
    pub fn begin(&self) -> Arc<Kept> {
        let kept = Arc::new(Kept::default());
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
    pub fn keeping<'e>(&'e self, map: &'e Arc<str>, key: &'e [u8], edit: &'e mut dyn Edit) -> Keeping<'e> {
        Keeping {
            befores: self,
            map,
            key,
            edit,
        }
    }

    fn note(&self, map: &Arc<str>, key: &[u8], current: Option<&[u8]>) {
        let mut shared = None;
        for kept in &*self.all.read().unwrap_or_else(PoisonError::into_inner) {
            let before = || shared.get_or_insert_with(|| current.map(Arc::from)).clone();
            kept.note(map, key, before);
        }
    }
}

/// An edit that notes what it replaces.
pub(crate) struct Keeping<'e> {
    befores: &'e Befores,
    map: &'e Arc<str>,
    key: &'e [u8],
    edit: &'e mut dyn Edit,
}

impl Edit for Keeping<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let action = self.edit.decide(current);
        if action != Action::Keep {
            self.befores.note(self.map, self.key, current);
        }
        action
    }

    fn value(&self) -> &[u8] {
        self.edit.value()
    }
}

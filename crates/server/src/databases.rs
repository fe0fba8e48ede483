//! The databases that Redis clients select by number, each the items in a map of its own. Database 0 is also what memcached
//! clients see.

use crate::Error;
use crate::config::Maps;
use crate::shared::now;
use crate::store::Store;
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use index::Index;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many databases there can be.
pub const COUNT: usize = 16;

/// All databases.
pub struct Databases {
    first: Arc<Store>,
    maps: Option<Maps>,
    /// The longest value that memcached's clients may make.
    largest: Arc<AtomicUsize>,
    opened: Mutex<[Option<Arc<Store>>; COUNT]>,
    /// Held by one to act alone, shared by all who do one thing at a time.
    gate: ShardedLock<()>,
}

impl Databases {
    /// Database 0 in `index`, and the others that are there already.
    pub fn open(
        index: Arc<dyn Index>,
        maps: Option<Maps>,
        largest: Arc<AtomicUsize>,
    ) -> Result<Databases, Error> {
        let first = Arc::new(Store::open(index, largest.clone(), now())?);
        let databases = Databases {
            opened: Mutex::new(std::array::from_fn(|i| (i == 0).then(|| first.clone()))),
            first,
            maps,
            largest,
            gate: ShardedLock::new(()),
        };
        for number in 1..COUNT {
            databases.find(number, false)?;
        }
        Ok(databases)
    }

    /// Database 0.
    pub fn first(&self) -> &Arc<Store> {
        &self.first
    }

    /// How many can be selected.
    pub fn count(&self) -> usize {
        if self.maps.is_some() { COUNT } else { 1 }
    }

    /// A database, made if it is not there. The number is below [`count`](Databases::count).
    pub fn select(&self, number: usize) -> Result<Arc<Store>, Error> {
        self.find(number, true)?.ok_or(Error::NoDatabase(number))
    }

    /// Those that are there, with their numbers.
    pub fn all(&self) -> Vec<(usize, Arc<Store>)> {
        let opened = self.opened().clone();
        let numbered = opened.into_iter().enumerate();
        numbered.filter_map(|(i, store)| Some((i, store?))).collect()
    }

    fn find(&self, number: usize, create: bool) -> Result<Option<Arc<Store>>, Error> {
        let mut opened = self.opened();
        let Some(slot) = opened.get_mut(number) else {
            return Ok(None);
        };
        if slot.is_none()
            && let Some(maps) = &self.maps
            && let Some(index) = maps(number, create).map_err(Error::Map)?
        {
            let store = Store::open(index, self.largest.clone(), now())?;
            if create {
                // It is empty, and so is counted at once.
                store
                    .count_on(1)
                    .map_err(|failure| Error::Map(failure.to_string()))?;
            }
            *slot = Some(Arc::new(store));
        }
        Ok(slot.clone())
    }

    fn opened(&self) -> MutexGuard<'_, [Option<Arc<Store>>; COUNT]> {
        // Each change fills one slot.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one thing while nobody acts alone. Not to be held while waiting for a client.
    pub fn shared(&self) -> ShardedLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does several things while nobody does anything else.
    pub fn alone(&self) -> ShardedLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Databases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Databases").finish_non_exhaustive()
    }
}

//! Replaying the log over the maps.
//!
//! Change by change, the maps go through what they held in between; in a pool that is nearly full there may be no room
//! for that beside what they have held since. There only what each key held at the end is made so, removals first.

use crate::disk::delta::{MapDelta, last_statements};
use crate::disk::rebuild::{Progress, STRIDE};
use crate::files_error::FilesError;
use crate::indexes::IndexKind;
use crate::write::store::Store;
use crate::write::traffic::MapIndex;
use crate::{Error, Media};
use heap::MayBeFull;
use index::{Action, Edit};
use log::{Change, Disk, Log, Lsn};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Makes all changes that the log has from a position on. No other operation runs yet. Making a change that was made
/// already changes nothing, so a crash during this leaves what the next opening begins again.
pub(crate) fn replay<M: Media, D: Disk>(
    store: &Store<M>,
    log: &Log<D>,
    from: Lsn,
    progress: Option<&Progress>,
) -> Result<(), Error> {
    match replay_all(store, log, from, progress) {
        Err(full) if full.is_full() => {
            store.heap.media().comes_to("replay: in a full pool");
            make_last(store, last_statements(log, from, log.appended())?)
        }
        done => done,
    }
}

fn replay_all<M: Media, D: Disk>(
    store: &Store<M>,
    log: &Log<D>,
    from: Lsn,
    progress: Option<&Progress>,
) -> Result<(), Error> {
    let mut replay = Replay::new(store);
    let mut scan = log.scan(from..log.appended()).map_err(FilesError::from)?;
    while let Some(record) = scan.next().map_err(FilesError::from)? {
        for change in record.changes {
            replay.make(change)?;
        }
        if let Some(progress) = progress.filter(|_| replay.changes.is_multiple_of(STRIDE)) {
            progress.log.store(record.end.0 - from.0, Relaxed);
            progress.tell();
        }
    }
    replay.ended()
}

/// Makes so what the maps hold at the end of the log.
fn make_last<M: Media>(store: &Store<M>, deltas: BTreeMap<String, MapDelta>) -> Result<(), Error> {
    let mut replay = Replay::new(store);
    for (name, delta) in &deltas {
        if delta.dropped {
            replay.make(Change::MapDropped { map: name })?;
        }
        for (key, _) in delta.entries.iter().filter(|(_, value)| value.is_none()) {
            replay.make(Change::Remove { map: name, key })?;
        }
    }
    for (name, delta) in &deltas {
        if let Some(index) = &delta.made {
            replay.make(Change::MapMade {
                map: name,
                index,
                settings: &[],
            })?;
        }
        for (key, value) in &delta.entries {
            if let (Some(value), Some(map)) = (value, replay.map(name)?) {
                let heap = &store.heap;
                heap.with_room(|| map.bare().write(key, &mut UnlessHeld(value)))?;
            }
        }
    }
    replay.ended()
}

/// Gives a key a value that it may have already.
struct UnlessHeld<'v>(&'v [u8]);

impl Edit for UnlessHeld<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        match current == Some(self.0) {
            true => Action::Keep,
            false => Action::Put,
        }
    }

    fn value(&self) -> &[u8] {
        self.0
    }
}

struct Replay<'s, M: Media> {
    store: &'s Store<M>,
    maps: HashMap<String, Arc<dyn MapIndex>>,
    /// Maps that the log changes and that are not there: it drops them further on, and the pool, or the checkpoint, was
    /// past that already.
    gone: HashSet<String>,
    changes: u64,
}

impl<'s, M: Media> Replay<'s, M> {
    fn new(store: &'s Store<M>) -> Replay<'s, M> {
        Replay {
            store,
            maps: HashMap::new(),
            gone: HashSet::new(),
            changes: 0,
        }
    }

    fn ended(self) -> Result<(), Error> {
        match self.gone.iter().next() {
            None => Ok(()),
            Some(map) => {
                let what = format!("changes of a map '{map}' that was never made");
                Err(FilesError::damaged("log", what).into())
            }
        }
    }

    fn make(&mut self, change: Change<'_>) -> Result<(), Error> {
        self.changes += 1;
        match change {
            Change::Put { map, key, value } => {
                let heap = &self.store.heap;
                if let Some(map) = self.map(map)? {
                    heap.with_room(|| map.bare().upsert(key, value))?;
                }
            }
            Change::Remove { map, key } => {
                if let Some(map) = self.map(map)? {
                    map.bare().remove(key)?;
                }
            }
            Change::MapMade { map, index, .. } => {
                self.gone.remove(map);
                if self.store.heap.root(map.as_bytes())?.is_none() {
                    let kind = index_kind(index)?;
                    let made = self.store.create(map, kind)?;
                    self.maps.insert(map.to_owned(), made);
                }
            }
            Change::MapDropped { map } => {
                self.maps.remove(map);
                self.gone.remove(map);
                if let Some((removed, tracer)) = self.store.unlink(map)? {
                    removed.retire(&*tracer)?;
                }
            }
            _ => return Err(FilesError::damaged("log", "a change that this program does not know").into()),
        }
        Ok(())
    }

    fn map(&mut self, name: &str) -> Result<Option<&Arc<dyn MapIndex>>, Error> {
        if !self.maps.contains_key(name) {
            let Some((_, index)) = self.store.open(name, None)? else {
                self.gone.insert(name.to_owned());
                return Ok(None);
            };
            self.maps.insert(name.to_owned(), index);
        }
        Ok(self.maps.get(name))
    }
}

/// The index that a checkpoint or the log names.
pub(crate) fn index_kind(name: &str) -> Result<IndexKind, Error> {
    let kind = name.parse();
    kind.map_err(|error: crate::UnknownIndex| FilesError::damaged("log", error.to_string()).into())
}

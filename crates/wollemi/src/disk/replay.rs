//! Replaying the log over the maps.
//!
//! Change by change, the maps go through what they held in between; in a pool that is nearly full, of keys or of maps,
//! there may be no room for that beside what they have held since. There only what was at the end is made so: maps are
//! dropped and keys removed first.

use crate::disk::delta::Deltas;
use crate::disk::rebuild::{Progress, STRIDE};
use crate::files_error::FilesError;
use crate::indexes::IndexKind;
use crate::write::store::Store;
use crate::write::traffic::MapIndex;
use crate::{Error, Media};
use heap::MayBeFull;
use index::{Action, Edit, Order};
use log::{Change, Disk, Log, Lsn};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Makes all changes that the log had from a position on when it was opened. No other operation runs yet. Making a
/// change that was made already changes nothing, so a crash during this leaves what the next opening begins again.
///
/// `gone` has the names of missing maps that the log has changed before the position. Progress is counted from a
/// position of its own.
pub(crate) fn replay<M: Media, D: Disk>(
    store: &Store<M>,
    log: &Log<D>,
    from: Lsn,
    progress: Option<(&Progress, Lsn)>,
    gone: &HashSet<String>,
) -> Result<(), Error> {
    match replay_all(store, log, from, progress, gone) {
        Err(full) if full.is_full() || has_no_root(&full) => {
            store.heap.media().comes_to("replay: in a full pool");
            let until = log.found_end().max(from);
            make_last(store, Deltas::read(log, (from, until), u64::MAX, |_| ())?, gone)
        }
        done => done,
    }
}

/// Whether the pool has as many maps as it can have.
fn has_no_root(error: &Error) -> bool {
    matches!(error, Error::Heap(heap::Error::TooManyRoots(_)))
}

fn replay_all<M: Media, D: Disk>(
    store: &Store<M>,
    log: &Log<D>,
    from: Lsn,
    progress: Option<(&Progress, Lsn)>,
    gone: &HashSet<String>,
) -> Result<(), Error> {
    let mut replay = Replay::new(store, gone);
    let until = log.found_end().max(from);
    let mut scan = log.scan(from..until).map_err(FilesError::from)?;
    while let Some(record) = scan.next().map_err(FilesError::from)? {
        for change in record.changes {
            replay.make(change)?;
        }
        if let Some((progress, begun)) = progress.filter(|_| replay.changes.is_multiple_of(STRIDE)) {
            progress.log.store(record.end.0 - begun.0, Relaxed);
            progress.tell();
        }
    }
    replay.ended()
}

/// Makes so what the maps hold at the end of the log.
fn make_last<M: Media>(store: &Store<M>, deltas: Deltas, gone: &HashSet<String>) -> Result<(), Error> {
    let mut replay = Replay::new(store, gone);
    let mut puts = Vec::new();
    for mut delta in deltas.maps {
        if delta.dropped {
            replay.make(Change::MapDropped { map: &delta.name })?;
        }
        // The order is only that of the writes.
        let last = delta.take_last(Order::Keys);
        for (key, _) in last.iter().filter(|(_, value)| value.is_none()) {
            replay.make(Change::Remove {
                map: &delta.name,
                key,
            })?;
        }
        puts.push((delta, last));
    }
    for (delta, last) in &puts {
        if let Some(index) = &delta.made {
            replay.make(Change::MapMade {
                map: &delta.name,
                index,
                settings: &[],
            })?;
        }
        for (key, value) in last.iter() {
            if let (Some(value), Some(map)) = (value, replay.map(&delta.name)?) {
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
    fn new(store: &'s Store<M>, gone: &HashSet<String>) -> Replay<'s, M> {
        Replay {
            store,
            maps: HashMap::new(),
            gone: gone.clone(),
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

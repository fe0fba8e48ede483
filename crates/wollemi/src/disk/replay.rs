//! Replaying the log over the maps.
//!
//! A pool left by a kill holds everything that was published, and lacks what its threads were about to publish, so only
//! the final value of each key is applied. A rebuild replays change by change. The maps then pass through intermediate
//! states for which a pool nearly full of keys or of maps may have no room; in that case, too, only the final state is
//! applied: maps are dropped and keys removed first.

use crate::disk::delta::{Deltas, LastStatements, MapDelta};
use crate::disk::progress::{BYTES_STRIDE, Progress};
use crate::files_error::FilesError;
use crate::indexes::IndexKind;
use crate::write::map_index::{KeyState, MapIndex, Plan};
use crate::write::store::Store;
use crate::{Error, Media};
use heap::MayBeFull;
use index::{Action, Edit, Order};
use log::{Change, Disk, Log, Lsn};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Applies all changes that the log contained after a position when it was opened, to a pool that is being rebuilt. No
/// other operation runs yet.
///
/// `gone` has the names of missing maps that the log has changed before the position. Progress counts from a separate
/// position.
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
            let deltas = Deltas::read(log, (from, until), u64::MAX, |_| ())?;
            Last::new(deltas).make(store, gone)
        }
        done => done,
    }
}

/// Returns whether the pool has the maximum number of maps.
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
    let mut reported = from.0;
    while let Some(record) = scan.next().map_err(FilesError::from)? {
        for change in record.changes {
            replay.make(change)?;
        }
        let is_due = record.end.0 - reported >= BYTES_STRIDE;
        if let Some((progress, begun)) = progress.filter(|_| is_due) {
            reported = record.end.0;
            progress.log.store(record.end.0 - begun.0, Relaxed);
            progress.report();
        }
    }
    replay.ended()
}

/// Brings a pool that a killed process has left up to date with its log from a position on. No other operation runs
/// yet.
///
/// What the pool lacks was not published when the process ended, so no thread has seen it. First maps are dropped and
/// created. Then the changes of keys are committed as one batch or, if the pool has no room for them, discarded
/// together, and the log records what the pool holds. If a crash interrupts this, the next opening starts again.
pub(crate) fn catch_up<M: Media, D: Disk>(store: &Store<M>, log: &Log<D>, from: Lsn) -> Result<(), Error> {
    let until = log.found_end().max(from);
    let last = Last::new(Deltas::read(log, (from, until), u64::MAX, |_| ())?);
    let mut done = last.commit(store);
    if done.as_ref().is_err_and(MayBeFull::is_full) {
        // The pool's free space is known once recovery has ended.
        store.recover_here();
        done = last.commit(store);
    }
    match done {
        Err(error) if error.is_full() || has_no_root(&error) => {
            store
                .heap
                .media()
                .comes_to("replay: no room for what was not published");
            last.leave_out(store, log)
        }
        done => done,
    }
}

/// The last record about each map and each key in a part of the log.
struct Last(Vec<(MapDelta, LastStatements)>);

impl Last {
    fn new(deltas: Deltas) -> Last {
        // Byte order suffices: it only orders the writes.
        let last = |mut delta: MapDelta| {
            let last = delta.take_last(Order::Keys);
            (delta, last)
        };
        Last(deltas.maps.into_iter().map(last).collect())
    }

    /// Applies the final state to a pool that is being rebuilt: maps are dropped and keys removed first.
    fn make<M: Media>(&self, store: &Store<M>, gone: &HashSet<String>) -> Result<(), Error> {
        let mut replay = Replay::new(store, gone);
        for (delta, last) in &self.0 {
            if delta.dropped {
                replay.make(Change::MapDropped { map: &delta.name })?;
            }
            for (key, _) in last.iter().filter(|(_, value)| value.is_none()) {
                let map = &delta.name;
                replay.make(Change::Remove { map, key })?;
            }
        }
        for (delta, last) in &self.0 {
            replay.make_map(delta)?;
            for (key, value) in last.iter() {
                if let (Some(value), Some(map)) = (value, replay.map(&delta.name)?) {
                    let heap = &store.heap;
                    heap.with_room(|| map.bare().write(key, &mut UnlessHeld(value)))?;
                }
            }
        }
        replay.ended()
    }

    /// Commits what the pool's maps lack, as one batch.
    fn commit<M: Media>(&self, store: &Store<M>) -> Result<(), Error> {
        let mut replay = Replay::new(store, &HashSet::new());
        // If a map was created after it was dropped, the pool has dropped it: the map of this name is the new one.
        for (delta, _) in self.0.iter().filter(|(delta, _)| delta.made.is_none()) {
            if delta.dropped {
                replay.make(Change::MapDropped { map: &delta.name })?;
            }
        }
        for (delta, _) in &self.0 {
            replay.make_map(delta)?;
        }
        let changes = self.lacking(&mut replay)?.into_iter();
        let changes = changes.map(|(map, key, value)| KeyState::new(&map, key, value));
        let plan = Plan {
            changes: changes.collect(),
            ..Plan::default()
        };
        replay.ended()?;
        store.commit(&plan).map(drop)
    }

    /// Returns the keys whose values differ, with their final values.
    fn lacking<'l, M: Media>(&'l self, replay: &mut Replay<'_, M>) -> Result<Vec<Lacking<'l>>, Error> {
        let mut lacking = Vec::new();
        for (delta, last) in self.0.iter().filter(|(_, last)| last.len() > 0) {
            let Some(map) = replay.map(&delta.name)?.cloned() else {
                continue;
            };
            let guard = heap::pin();
            for (key, value) in last.iter() {
                if map.bare().get(key, &guard)?.as_deref() != value {
                    lacking.push((map.clone(), key, value));
                }
            }
        }
        Ok(lacking)
    }

    /// Appends one record of what the pool holds instead.
    ///
    /// A rebuild cannot do that. Here the pool shows which writes were not acknowledged: those it lacks. In a rebuild,
    /// a record at the end of the log may belong to a write that was refused, or to one acknowledged right before the
    /// crash; only a later record would prove that it was durable.
    fn leave_out<M: Media, D: Disk>(&self, store: &Store<M>, log: &Log<D>) -> Result<(), Error> {
        let mut replay = Replay::new(store, &HashSet::new());
        let lacking = self.lacking(&mut replay)?;
        let mut changes = Vec::new();
        for (delta, _) in self.0.iter().filter(|(delta, _)| delta.made.is_some()) {
            replay.gone.remove(&delta.name);
            if store.heap.root(delta.name.as_bytes())?.is_none() {
                changes.push(Change::MapDropped { map: &delta.name });
            }
        }
        replay.ended()?;
        let guard = heap::pin();
        let holds = lacking.iter().map(|(map, key, _)| map.bare().get(key, &guard));
        let holds = holds.collect::<Result<Vec<_>, _>>()?;
        let keys = lacking.iter().zip(&holds);
        changes.extend(keys.map(|((map, key, _), holds)| match holds {
            Some(value) => Change::Put {
                map: map.name(),
                key,
                value,
            },
            None => Change::Remove { map: map.name(), key },
        }));
        let end = log.append_beyond_limit(&changes).map_err(FilesError::from)?;
        Ok(log.wait_durable(end).map_err(FilesError::from)?)
    }
}

/// A map, a key, and the key's final value.
type Lacking<'l> = (Arc<dyn MapIndex>, &'l [u8], Option<&'l [u8]>);

/// Puts a value unless the key already has it.
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
    /// Maps that the log changes but that do not exist: the log drops them further on, and the pool, or the checkpoint,
    /// was already past that.
    gone: HashSet<String>,
}

impl<'s, M: Media> Replay<'s, M> {
    fn new(store: &'s Store<M>, gone: &HashSet<String>) -> Replay<'s, M> {
        Replay {
            store,
            maps: HashMap::new(),
            gone: gone.clone(),
        }
    }

    fn ended(self) -> Result<(), Error> {
        match self.gone.iter().next() {
            None => Ok(()),
            Some(map) => {
                let what = format!("changes of a map '{map}' that was never created");
                Err(FilesError::damaged("log", what).into())
            }
        }
    }

    fn make(&mut self, change: Change<'_>) -> Result<(), Error> {
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
                    let kind = index_kind(map, index)?;
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

    fn make_map(&mut self, delta: &MapDelta) -> Result<(), Error> {
        let (map, Some(index)) = (&*delta.name, &delta.made) else {
            return Ok(());
        };
        let settings = &[];
        self.make(Change::MapMade { map, index, settings })
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

/// Parses the index that a checkpoint or the log names for a map.
pub(crate) fn index_kind(map: &str, index: &str) -> Result<IndexKind, Error> {
    index.parse().map_err(
        |unknown: crate::UnknownIndex| match IndexKind::left_out_by_name(index) {
            Some(index) => Error::LeftOut {
                name: map.to_owned(),
                index,
            },
            None => FilesError::damaged("log", unknown.to_string()).into(),
        },
    )
}

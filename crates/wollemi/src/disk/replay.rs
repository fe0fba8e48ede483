//! Replaying the log over the maps.
//!
//! A pool that a kill has left is ahead of the log's records, or lacks the last of each thread: only what each key
//! shall hold at last is made so. A rebuild replays change by change. The maps then go through what they held in
//! between, for which a pool that is nearly full, of keys or of maps, may have no room beside what they have held
//! since; there, too, only what was at the end is made so: maps are dropped and keys removed first.

use crate::disk::delta::{Deltas, LastStatements, MapDelta};
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

/// Makes all changes that the log had from a position on when it was opened, in a pool that is rebuilt. No other
/// operation runs yet.
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
            let deltas = Deltas::read(log, (from, until), u64::MAX, |_| ())?;
            Last::new(deltas).make(store, gone, &mut Vec::new())
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

/// Has a pool that the end of a process has left hold what its log says from a position on. No other operation runs
/// yet. A crash during this leaves what the next opening begins again.
///
/// What the pool lacks was not published when the process ended, so that no thread was told of it. Where the pool has no
/// room for it either, it stays without, and the log says so.
pub(crate) fn catch_up<M: Media, D: Disk>(store: &Store<M>, log: &Log<D>, from: Lsn) -> Result<(), Error> {
    let until = log.found_end().max(from);
    let last = Last::new(Deltas::read(log, (from, until), u64::MAX, |_| ())?);
    let (gone, mut undo) = (HashSet::new(), Vec::new());
    let lacks_room = |done: &Result<(), Error>| {
        let error = done.as_ref().err();
        error.is_some_and(|error| error.is_full() || has_no_root(error))
    };
    let mut done = last.make(store, &gone, &mut undo);
    if lacks_room(&done) {
        // The pool's free space is known when recovery has ended.
        store.recover_here();
        done = last.make(store, &gone, &mut undo);
    }
    if lacks_room(&done) {
        store
            .heap
            .media()
            .comes_to("replay: no room for what was not published");
        return last.leave_out(store, log, undo);
    }
    done
}

/// What a part of the log says last: of each map, and of each of its keys.
struct Last(Vec<(MapDelta, LastStatements)>);

/// What a key held before it was changed.
type Before<'l> = (&'l str, &'l [u8], Option<Vec<u8>>);

impl Last {
    fn new(deltas: Deltas) -> Last {
        // The order is only that of the writes.
        let last = |mut delta: MapDelta| {
            let last = delta.take_last(Order::Keys);
            (delta, last)
        };
        Last(deltas.maps.into_iter().map(last).collect())
    }

    /// Makes it so, and notes what the keys have held that it changes.
    fn make<'l, M: Media>(
        &'l self,
        store: &Store<M>,
        gone: &HashSet<String>,
        undo: &mut Vec<Before<'l>>,
    ) -> Result<(), Error> {
        let mut replay = Replay::new(store, gone);
        for (delta, last) in &self.0 {
            if delta.dropped {
                replay.make(Change::MapDropped { map: &delta.name })?;
            }
            for (key, _) in last.iter().filter(|(_, value)| value.is_none()) {
                replay.hold(&delta.name, key, None, undo)?;
            }
        }
        for (delta, last) in &self.0 {
            if let Some(index) = &delta.made {
                replay.make(Change::MapMade {
                    map: &delta.name,
                    index,
                    settings: &[],
                })?;
            }
            for (key, value) in last.iter().filter(|(_, value)| value.is_some()) {
                replay.hold(&delta.name, key, value, undo)?;
            }
        }
        replay.ended()
    }

    /// Undoes what was made of it, and appends a record of what the maps hold instead: one, so that of several changes
    /// that the log has as one none is left out alone.
    fn leave_out<M: Media, D: Disk>(
        &self,
        store: &Store<M>,
        log: &Log<D>,
        undo: Vec<Before<'_>>,
    ) -> Result<(), Error> {
        let gone = HashSet::new();
        let mut replay = Replay::new(store, &gone);
        for (map, key, before) in undo.into_iter().rev() {
            replay.hold(map, key, before.as_deref(), &mut Vec::new())?;
        }
        let mut held: Vec<Before<'_>> = Vec::new();
        let mut not_made = Vec::new();
        for (delta, last) in &self.0 {
            let Some(map) = replay.map(&delta.name)? else {
                not_made.push(&*delta.name);
                continue;
            };
            let guard = heap::pin();
            for (key, value) in last.iter() {
                let holds = map.bare().get(key, &guard)?;
                if holds.as_deref() != value {
                    held.push((&delta.name, key, holds.map(|value| value.to_vec())));
                }
            }
        }
        let not_made = not_made.iter().map(|map| Change::MapDropped { map });
        let held = held.iter().map(|(map, key, value)| match value {
            Some(value) => Change::Put { map, key, value },
            None => Change::Remove { map, key },
        });
        let end = log
            .append(&not_made.chain(held).collect::<Vec<_>>())
            .map_err(FilesError::from)?;
        log.wait_durable(end).map_err(FilesError::from)?;
        Ok(())
    }
}

/// Gives a key a value, or none, unless it holds that already.
struct Hold<'v> {
    value: Option<&'v [u8]>,
    before: Option<Vec<u8>>,
}

impl Edit for Hold<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        if current == self.value {
            return Action::Keep;
        }
        self.before = current.map(<[u8]>::to_vec);
        match self.value {
            Some(_) => Action::Put,
            None => Action::Remove,
        }
    }

    fn value(&self) -> &[u8] {
        self.value.unwrap_or_default()
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

    /// Has a key hold a value, or none.
    fn hold<'l>(
        &mut self,
        map: &'l str,
        key: &'l [u8],
        value: Option<&[u8]>,
        undo: &mut Vec<Before<'l>>,
    ) -> Result<(), Error> {
        let heap = &self.store.heap;
        let Some(index) = self.map(map)? else {
            return Ok(());
        };
        let mut hold = Hold { value, before: None };
        let action = heap.with_room(|| index.bare().write(key, &mut hold))?;
        if action != Action::Keep {
            undo.push((map, key, hold.before));
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

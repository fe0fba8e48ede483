//! Replaying the log over the maps.

use crate::disk::rebuild::{Progress, STRIDE};
use crate::files_error::FilesError;
use crate::indexes::IndexKind;
use crate::write::store::Store;
use crate::write::traffic::MapIndex;
use crate::{Error, Media};
use log::{Change, Disk, Log, Lsn};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Makes all changes that the log has from a position on. No other operation runs yet. Making a change that was made
/// already changes nothing, so a crash during this leaves what the next opening begins again.
pub(crate) fn replay<M: Media, D: Disk>(
    store: &Store<M>,
    log: &Log<D>,
    from: Lsn,
    progress: Option<&Progress>,
) -> Result<u64, Error> {
    let mut replay = Replay {
        store,
        maps: HashMap::new(),
        gone: HashSet::new(),
        changes: 0,
    };
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
    match replay.gone.iter().next() {
        None => Ok(replay.changes),
        Some(map) => {
            Err(FilesError::damaged("log", format!("changes of a map '{map}' that was never made")).into())
        }
    }
}

struct Replay<'s, M: Media> {
    store: &'s Store<M>,
    maps: HashMap<String, Arc<dyn MapIndex>>,
    /// Maps that the log changes and that are not there: it drops them further on, and the pool, or the checkpoint, was past
    /// that already.
    gone: HashSet<String>,
    changes: u64,
}

impl<M: Media> Replay<'_, M> {
    fn make(&mut self, change: Change<'_>) -> Result<(), Error> {
        self.changes += 1;
        match change {
            Change::Put { map, key, value } => {
                if let Some(map) = self.map(map)? {
                    map.bare().upsert(key, value)?;
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

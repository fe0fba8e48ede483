//! Snapshots, backups and watches.

use super::{Worker, Wrong};
use crate::truth::{Truth, Val};
use std::collections::BTreeMap;
use wollemi::{Db, Error, Event, Watch};

/// A watch of a private map, and the map's content when the watch began.
pub(super) struct Watched {
    pub(super) slot: usize,
    watch: Watch,
    held: BTreeMap<Vec<u8>, Val>,
}

impl Worker<'_> {
    pub(super) fn read_snapshot(&mut self, slot: usize, n: usize) -> Result<Option<Wrong>, Error> {
        let Some((snapshot, held)) = self.snapshot.take() else {
            return Ok(None);
        };
        let name = self.plan.name(slot, self.thread);
        let found = snapshot.find_view(&name).and_then(|view| match view {
            Some(view) => Ok(Some(view.get(&self.keys[slot][n])?)),
            None => Ok(None),
        });
        let found = match found {
            Err(Error::SnapshotOutgrown(_)) => return Ok(None),
            found => found?,
        };
        let wrong = match found {
            None if !held[slot].exists => None,
            // A map created after the snapshot shows no keys.
            Some(None) if !held[slot].exists => None,
            None => Some("the snapshot lacks the map".to_owned()),
            Some(value) => self.judge(slot, value.as_deref(), held[slot].values[n])?,
        };
        self.snapshot = Some((snapshot, held));
        Ok(wrong)
    }

    /// Makes a backup of the snapshot, restores it into memory, and compares the restored content.
    pub(super) fn backup(&mut self) -> Result<Option<Wrong>, Error> {
        let Some((snapshot, held)) = self.snapshot.take() else {
            return Ok(None);
        };
        let mut file = Vec::new();
        match snapshot.backup(&mut file, |_| {}) {
            Err(Error::SnapshotOutgrown(_)) => return Ok(None),
            done => done?,
        };
        let restored = Db::anonymous()?;
        restored.restore(&mut &file[..], |_| {})?;
        let slots = held.iter().enumerate().filter(|(_, map)| map.exists);
        for (slot, held) in slots {
            let name = self.plan.name(slot, self.thread);
            let Some(map) = restored.find_map(&name)? else {
                return Ok(Some(format!("the backup lacks map '{name}'")));
            };
            for (key, value) in self.keys[slot].iter().zip(&held.values) {
                if let Some(wrong) = self.judge(slot, map.get(key)?.as_deref(), *value)? {
                    return Ok(Some(format!("restored map '{name}', key {key:x?}: {wrong}")));
                }
            }
        }
        Ok(None)
    }

    /// Compares the result of the watch's events with the map's content, and begins a new watch.
    pub(super) fn watch(&mut self, slot: usize, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let holds = |slot: usize| {
            let values = self.keys[slot].iter().zip(&truth.maps[slot].values);
            values
                .filter_map(|(key, value)| Some((key.clone(), (*value)?)))
                .collect::<BTreeMap<_, _>>()
        };
        let mut wrong = None;
        if let Some(Watched {
            slot,
            mut watch,
            held,
        }) = self.watch.take()
        {
            let mut reported: BTreeMap<Vec<u8>, Vec<u8>> = held
                .into_iter()
                .map(|(key, value)| (key, value.bytes()))
                .collect();
            let mut missed = false;
            while let Some(event) = watch.try_next() {
                match event {
                    Event::Changed {
                        key,
                        value: Some(value),
                    } => {
                        reported.insert(key, value);
                    }
                    Event::Changed { key, value: None } => {
                        reported.remove(&key);
                    }
                    Event::Missed(_) => missed = true,
                }
            }
            let now = holds(slot);
            let is = now.len() == reported.len()
                && now
                    .iter()
                    .zip(&reported)
                    .all(|(now, reported)| now.0 == reported.0 && now.1.is(reported.1));
            if !missed && !is {
                wrong = Some(format!(
                    "the watch's events lead to {} entries, which are not the {} expected",
                    reported.len(),
                    now.len()
                ));
            }
        }
        let capacity = self.random.pick(&[1, 100, 10_000]);
        let watch = self.map(slot)?.watch("", capacity)?;
        self.watch = Some(Watched {
            slot,
            watch,
            held: holds(slot),
        });
        Ok(wrong)
    }
}

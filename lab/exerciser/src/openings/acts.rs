//! Operations that a thread performs while recovery runs, and the resulting changes of the maps.

use super::image::Image;
use crate::calls::Calls;
use crate::random::Random;
use crate::truth::Val;
use crate::worker::{Wrong, differs};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use wollemi::{Db, Error, IndexKind, Map, RecoveryState};

/// Upper bound on waiting for a map that is in use by a check; beyond it the drop counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// An act of a thread.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Drop a map, and perhaps make a replacement of the same name, with this index and this many of its first keys.
    Drop {
        slot: usize,
        replacement: Option<(IndexKind, usize)>,
    },
    /// Call `recover` after this time. `recover` waits if the opening has started recovery.
    Recover(Duration),
    /// Give free space back to the file system.
    GiveBack,
    /// Check the database, and ignore the findings.
    Check,
    /// Make up to `calls` reads and writes, in these maps, of keys whose number is `remainder` modulo `modulus`:
    /// writers share no key.
    Write {
        slots: Vec<usize>,
        remainder: usize,
        modulus: usize,
        calls: usize,
    },
    /// Make a map that no other thread uses, fill it, and drop it.
    Scratch { kind: IndexKind, keys: usize },
}

/// The differences between the maps' content and the image.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Dropped maps by slot: the number of first keys in the replacement; `None` if there is no replacement.
    pub dropped: HashMap<usize, Option<usize>>,
    /// Written values by slot and key number.
    pub values: HashMap<(usize, usize), Option<Val>>,
}

/// The version of the values in a replacement map.
pub(super) const REPLACEMENT_VERSION: u64 = 1;

/// A thread that acts while recovery runs.
pub(super) struct Actor<'a> {
    pub db: &'a Db,
    pub image: &'a Image,
    pub random: Random,
    pub changes: Changes,
    pub calls: Calls,
    /// Calls of the maps of each index.
    pub indexes: Calls,
    /// Drops refused because a check used the map.
    pub refused: u64,
    /// The version of the value written last.
    version: u64,
}

impl<'a> Actor<'a> {
    pub fn new(db: &'a Db, image: &'a Image, random: Random) -> Actor<'a> {
        Actor {
            db,
            image,
            random,
            changes: Changes::default(),
            calls: Calls::default(),
            indexes: Calls::default(),
            refused: 0,
            version: REPLACEMENT_VERSION,
        }
    }

    pub fn act(&mut self, act: &Act) -> Result<(), Wrong> {
        self.carry_out(act).map_err(|wrong| format!("{act:?}: {wrong}"))
    }

    fn carry_out(&mut self, act: &Act) -> Result<(), Wrong> {
        match *act {
            Act::Drop { slot, replacement } => self.drop_map(slot, replacement),
            Act::Recover(after) => {
                let begun = Instant::now();
                while begun.elapsed() < after {
                    std::hint::spin_loop();
                }
                self.calls.add("Db::recover");
                match self.db.recover().state {
                    RecoveryState::Done => Ok(()),
                    state => Err(format!("recovery is {state}")),
                }
            }
            Act::GiveBack => {
                self.calls.add("Db::give_back");
                self.db.give_back().map(drop).map_err(failed)
            }
            // Other threads write meanwhile, so the check may report false faults: only an error counts.
            Act::Check => {
                self.calls.add("Db::check");
                self.db.check().map(drop).map_err(failed)
            }
            Act::Write {
                ref slots,
                remainder,
                modulus,
                calls,
            } => self.write_some(slots, remainder, modulus, calls),
            Act::Scratch { kind, keys } => self.scratch(kind, keys),
        }
    }

    /// Counts a call of a map.
    fn call(&mut self, function: &'static str, kind: IndexKind) {
        self.calls.add(function);
        self.indexes.add(kind.name());
    }

    fn drop_map(&mut self, slot: usize, replacement: Option<(IndexKind, usize)>) -> Result<(), Wrong> {
        let plan = &self.image.maps[slot];
        self.drop_when_unused(&plan.name, plan.kind)?;
        if let Some((kind, count)) = replacement {
            self.call("Db::map_with", kind);
            let map = self.db.map_with(&plan.name, kind).map_err(failed)?;
            let value = |n| self.image.value_of_version(slot, n, REPLACEMENT_VERSION).bytes();
            let entries = plan.keys[..count]
                .iter()
                .enumerate()
                .map(|(n, key)| (key, value(n)));
            self.call("Map::load", kind);
            map.load(entries).map_err(failed)?;
        }
        self.changes
            .dropped
            .insert(slot, replacement.map(|(_, count)| count));
        Ok(())
    }

    /// Drops a map as soon as no check uses it.
    fn drop_when_unused(&mut self, name: &str, kind: IndexKind) -> Result<(), Wrong> {
        let begun = Instant::now();
        loop {
            self.call("Db::drop_map", kind);
            match self.db.drop_map(name) {
                Ok(true) => return Ok(()),
                Ok(false) => return Err("the map does not exist".into()),
                Err(Error::MapInUse(_)) if begun.elapsed() < PATIENCE => self.refused += 1,
                Err(error) => return Err(failed(error)),
            }
            std::thread::yield_now();
        }
    }

    fn write_some(
        &mut self,
        slots: &[usize],
        remainder: usize,
        modulus: usize,
        calls: usize,
    ) -> Result<(), Wrong> {
        let mut maps: Vec<(usize, Map)> = Vec::new();
        for &slot in slots {
            let plan = &self.image.maps[slot];
            self.call("Db::map", plan.kind);
            maps.push((slot, self.db.map(&plan.name).map_err(failed)?));
        }
        for _ in 0..calls {
            let (slot, map) = &maps[self.random.index(maps.len())];
            let count = self.image.maps[*slot].keys.len();
            let n = self.random.index(count) / modulus * modulus + remainder;
            if n < count {
                self.write(map, *slot, n)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, map: &Map, slot: usize, n: usize) -> Result<(), Wrong> {
        let plan = &self.image.maps[slot];
        let key = &plan.keys[n];
        let wrong = |what: &str, wrong: String| format!("{what} of key {n} of '{}': {wrong}", plan.name);
        let held = self.changes.values.get(&(slot, n));
        let held = held.map_or_else(|| Some(self.image.value(slot, n)), |value| *value);
        match self.random.below(4) {
            0 => {
                self.call("Map::get", plan.kind);
                let found = map.get(key).map_err(failed)?;
                differs(found.as_deref(), held).map_or(Ok(()), |differs| Err(wrong("get", differs)))
            }
            1 => {
                self.call("Map::remove", plan.kind);
                let removed = map.remove(key).map_err(failed)?;
                self.changes.values.insert((slot, n), None);
                if removed == held.is_some() {
                    Ok(())
                } else {
                    Err(wrong(
                        "remove",
                        format!("returned {removed}, though the key held {held:?}"),
                    ))
                }
            }
            _ => {
                self.call("Map::upsert", plan.kind);
                self.version += 1;
                let value = self.image.value_of_version(slot, n, self.version);
                map.upsert(key, value.bytes()).map_err(failed)?;
                self.changes.values.insert((slot, n), Some(value));
                Ok(())
            }
        }
    }

    fn scratch(&mut self, kind: IndexKind, keys: usize) -> Result<(), Wrong> {
        let name = format!("scratch {:016x}", self.random.next());
        let plan = &self.image.maps[0];
        self.call("Db::map_with", kind);
        let map = self.db.map_with(&name, kind).map_err(failed)?;
        self.call("Map::load", kind);
        map.load(plan.keys.iter().take(keys).map(|key| (key, key)))
            .map_err(failed)?;
        drop(map);
        self.drop_when_unused(&name, kind)
    }
}

pub(super) fn failed(error: Error) -> Wrong {
    error.to_string()
}

//! The operations on nodes, correct except for the seeded bug.

use super::node::{Live, Node, PRESENT, USED, key_of, print_of};
use super::subject::State;
use pmem::{Locked, PWord, PersistBatch, Purpose, persist_scope};
use std::collections::BTreeMap;
use wollemi_crashkit::Crash;

/// The seeded bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    Nothing,
    /// The first root is published before what it leads to is durable.
    RootNotPersisted,
    /// Entry and counter are persisted together: the counter may be durable alone.
    CountWithEntry,
    /// The counter is persisted before the entry.
    CountFirst,
    /// The count is not rebuilt after a restart.
    StaleCount,
    /// The count is rebuilt as one less: the next insert overwrites the last child.
    CountOneLess,
    /// The count of entries handed out is in memory only: an entry is handed out twice.
    HandsOutTwice,
    /// Recovery looks at two leaves; there is one.
    TwoLeavesAssumed,
    /// Two inserts of one key both pass the check made before the lock.
    CheckBeforeLock,
    /// Updates take another lock than removes: a removed key comes back.
    UpdateUnderOtherLock,
    /// A writer that gets the lock assumes that a crash has happened: it repairs a sound prefix to a depth that it read
    /// before.
    TryLockMeansCrash,
    /// A writer that has waited for the lock of a node writes into it though it was replaced.
    OldNodeWritten,
    /// A lock without a generation is found taken after a crash.
    LockIsPersistent,
    /// A reader answers with a value that is not durable.
    DirtyRead,
    /// Fingerprints are made of signed bytes and looked up by unsigned ones.
    SignedFingerprint,
    /// An entry with the same fingerprint is taken for the key's: the key itself is not compared.
    FingerprintAlone,
    /// A pointer to volatile memory is followed after a restart.
    StalePointer,
    /// A node that replaces another is published before its header's line is written back.
    HeaderNotWrittenBack,
    /// Updates and removals take a lock of an earlier generation as it is, and make it look rebuilt.
    StaleOnChange,
    /// A new node does not get the generation in which it is made, and is recovered when it is first locked.
    NewNodesRecovered,
}

/// One node in use, of two.
pub struct Tree(pub Bug);

impl Tree {
    fn print(&self, key: u8, stored: bool) -> u8 {
        if self.0 == Bug::SignedFingerprint && stored {
            ((key as i8) >> 1) as u8
        } else {
            key >> 1
        }
    }

    fn entry(&self, key: u8, value: u32) -> u64 {
        let print = u64::from(self.print(key, true));
        u64::from(key) << 42 | PRESENT | USED | print << 32 | u64::from(value)
    }

    fn find(&self, live: &Live, node: &Node, key: u8) -> Option<(usize, u64)> {
        let media = live.media();
        let counted = node.counted.load(media) as usize;
        let entries = node.entries.iter().take(counted).map(|word| word.load(media));
        let mut found = entries.enumerate();
        found.find(|(_, entry)| {
            let same = key_of(*entry) == key || self.0 == Bug::FingerprintAlone;
            same && print_of(*entry) == self.print(key, false)
        })
    }

    /// Locks the node in use, and rebuilds it if it is stale.
    pub fn lock<'l>(&self, live: &'l Live) -> Result<(&'l Node, Locked<'l, Crash>), String> {
        let media = live.media();
        loop {
            let number = live.root()?.load(media);
            let node = live.node(number)?;
            let locked = node.lock.lock(media, live.pool.generation());
            let mut locked = locked.map_err(|obsolete| format!("{obsolete:?}"))?;
            if locked.is_stale() {
                self.rebuild(live, node)?;
                locked.repaired();
            }
            if self.0 == Bug::OldNodeWritten || live.root()?.load(media) == number {
                return Ok((node, locked));
            }
        }
    }

    pub fn rebuild(&self, live: &Live, node: &Node) -> Result<(), String> {
        let media = live.media();
        if node.made.load(media) == live.made() {
            return Err("a new node is taken for one that a crash has left".into());
        }
        let counted = node.counted.load(media);
        let present = |word: &&PWord| word.load(media) & PRESENT != 0;
        if self.0 == Bug::TwoLeavesAssumed && node.entries.iter().any(|word| present(&word)) {
            let leaves: Vec<&PWord> = node.entries.iter().filter(present).take(2).collect();
            assert_eq!(leaves.len(), 2, "the prefix is what two leaves share");
        }
        match self.0 {
            Bug::StaleCount => {}
            Bug::CountOneLess => node.count.store(counted.saturating_sub(1), media),
            Bug::HandsOutTwice => node.count.store(0, media),
            _ => node.count.store(counted, media),
        }
        let depth = node.depth.load(media);
        live.persist(|batch| node.prefix.store(3 * depth, batch));
        Ok(())
    }

    /// Mends a prefix that does not match the depth, as a writer does that meets one.
    pub fn mend_prefix(&self, live: &Live) -> Result<(), String> {
        let media = live.media();
        let node = live.node(live.root()?.load(media))?;
        let depth = node.depth.peek(media);
        if node.prefix.peek(media) == 3 * depth {
            return Ok(());
        }
        if let Ok(Some(mut locked)) = node.lock.try_lock(media, live.pool.generation()) {
            if locked.is_stale() {
                self.rebuild(live, node)?;
                locked.repaired();
            }
            let depth = match self.0 {
                Bug::TryLockMeansCrash => depth,
                _ => node.depth.load(media),
            };
            live.persist(|batch| node.prefix.store(3 * depth, batch));
        }
        Ok(())
    }

    pub fn insert(&self, live: &Live, key: u8, value: u32) -> Result<bool, String> {
        let media = live.media();
        let before = match self.0 {
            Bug::CheckBeforeLock => Some(self.find(live, live.node(live.root()?.load(media))?, key)),
            _ => None,
        };
        let (node, _locked) = self.lock(live)?;
        if self.0 == Bug::LockIsPersistent {
            let mut turn = 0;
            while node.held.load(media) != 0 {
                pmem::Media::wait(media, turn);
                turn += 1;
            }
            persist_scope(media, Purpose::Node, |batch| node.held.store(1, &batch));
        }
        if self.0 == Bug::StalePointer {
            self.follow(live, node)?;
        }
        let found = before.unwrap_or_else(|| self.find(live, node, key));
        let entry = self.entry(key, value);
        match found {
            Some((_, entry)) if entry & PRESENT != 0 => return Ok(false),
            Some((number, _)) => live.persist(|batch| node.entries[number].store(entry, batch)),
            None => self.append(live, node, entry)?,
        }
        if self.0 == Bug::LockIsPersistent {
            persist_scope(media, Purpose::Node, |batch| node.held.store(0, &batch));
        }
        Ok(true)
    }

    fn append(&self, live: &Live, node: &Node, entry: u64) -> Result<(), String> {
        let media = live.media();
        let count = node.count.load(media);
        let place = node.entries.get(count as usize).ok_or("the node is full")?;
        match self.0 {
            Bug::CountWithEntry => live.persist(|batch| {
                place.store(entry, batch);
                node.counted.store(count + 1, batch);
            }),
            Bug::CountFirst => {
                live.persist(|batch| node.counted.store(count + 1, batch));
                live.persist(|batch| place.store(entry, batch));
            }
            _ => {
                live.persist(|batch| place.store(entry, batch));
                live.persist(|batch| node.counted.store(count + 1, batch));
            }
        }
        node.count.store(count + 1, media);
        Ok(())
    }

    /// Reads what the process keeps for the node.
    fn follow(&self, live: &Live, node: &Node) -> Result<u64, String> {
        let mut table = live.table.lock().map_err(|_| "poisoned")?;
        if node.table.load(live.media()) == 0 {
            table.push(1);
            live.persist(|batch| node.table.store(table.len() as u64, batch));
        }
        Ok(table[node.table.load(live.media()) as usize - 1])
    }

    pub fn change(&self, live: &Live, key: u8, new: Option<u32>) -> Result<bool, String> {
        let (node, mut locked) = if self.0 == Bug::StaleOnChange {
            let node = live.node(live.root()?.load(live.media()))?;
            let locked = node.lock.lock(live.media(), live.pool.generation());
            let mut locked = locked.map_err(|obsolete| format!("{obsolete:?}"))?;
            locked.repaired();
            (node, locked)
        } else {
            self.lock(live)?
        };
        if self.0 == Bug::UpdateUnderOtherLock && new.is_some() {
            drop(locked);
            let other = node.other_lock.lock(live.media(), live.pool.generation());
            locked = other.map_err(|obsolete| format!("{obsolete:?}"))?;
            locked.repaired();
        }
        let _locked = locked;
        match self.find(live, node, key) {
            Some((number, entry)) if entry & PRESENT != 0 => {
                let word = new.map_or(entry & !PRESENT, |value| self.entry(key, value));
                live.persist(|batch| node.entries[number].store(word, batch));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub fn get(&self, live: &Live, key: u8) -> Result<Option<u32>, String> {
        if self.0 == Bug::DirtyRead {
            let node = live.node(live.root()?.load(live.media()))?;
            let found = self.find(live, node, key);
            return Ok(found
                .filter(|(_, entry)| entry & PRESENT != 0)
                .map(|(_, entry)| entry as u32));
        }
        let (node, _locked) = self.lock(live)?;
        let found = self.find(live, node, key);
        Ok(found
            .filter(|(_, entry)| entry & PRESENT != 0)
            .map(|(_, entry)| entry as u32))
    }

    pub fn deepen(&self, live: &Live) -> Result<u64, String> {
        let (node, _locked) = self.lock(live)?;
        let depth = node.depth.load(live.media()) + 1;
        live.persist(|batch| node.depth.store(depth, batch));
        live.persist(|batch| node.prefix.store(3 * depth, batch));
        Ok(depth)
    }

    /// Copies the node into the other one, which takes its place.
    pub fn replace<'l>(&self, live: &'l Live) -> Result<(), String> {
        let media = live.media();
        let (old, _locked) = self.lock(live)?;
        let number = live.root()?.load(media) + 1;
        let new = live.node(number)?;
        if !std::ptr::eq(old, live.node(number - 1)?) {
            // Another thread has moved the node already.
            return Ok(());
        }
        let locked = new.lock.lock(media, live.pool.generation());
        let mut locked = locked.map_err(|obsolete| format!("{obsolete:?}"))?;
        live.persist(|batch| {
            for (to, from) in new.entries.iter().zip(&old.entries) {
                to.store(from.load(media), batch);
            }
            let header =
                |batch: &PersistBatch<'_, 'l, Crash>| new.counted.store(old.counted.load(media), batch);
            match self.0 {
                // The inner batch ends without a fence, so the line is not written back.
                Bug::HeaderNotWrittenBack => {
                    persist_scope(media, Purpose::Node, |forgotten| header(&forgotten))
                }
                _ => header(batch),
            }
            for (to, from) in [
                (&new.depth, &old.depth),
                (&new.prefix, &old.prefix),
                (&new.magic, &old.magic),
            ] {
                to.store(from.load(media), batch);
            }
            new.made.store(live.made(), batch);
        });
        new.count.store(old.count.load(media), media);
        if self.0 != Bug::NewNodesRecovered {
            locked.repaired();
        }
        live.persist(|batch| match live.root() {
            Ok(root) => root.store(number, batch),
            Err(_) => unreachable!("it was there before"),
        });
        Ok(())
    }

    pub fn state(&self, live: &Live) -> Result<State, String> {
        let (node, _locked) = self.lock(live)?;
        let media = live.media();
        let counted = node.counted.load(media) as usize;
        let mut map = BTreeMap::new();
        for word in node.entries.iter().take(counted) {
            let entry = word.load(media);
            if entry & USED == 0 {
                return Err("an entry counts that was never written".into());
            }
            if entry & PRESENT != 0 && map.insert(key_of(entry), entry as u32).is_some() {
                return Err(format!("key {} is present twice", key_of(entry)));
            }
        }
        let depth = node.prefix.load(media) / 3;
        Ok(State { map, depth })
    }
}

//! A thread of a history, and its operations.

use super::forms::Form;
use super::journal::Journal;
use super::keys::{KEYS, Key};
use super::seen::Seen;
use super::steps::{Steps, Stop};
use super::{Done, MAPS, Random};
use index::conformance::serializability::{ABSENT, Overwrite, Version};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use wollemi::{Action, Db, Durability, Edit, Edits, Error, IndexError, Media, Retry, Transaction};

pub const THREADS: u64 = 4;

/// The versions of a client, which no other has.
pub struct Versions(Version);

impl Versions {
    pub fn next(&mut self) -> Version {
        self.0 += THREADS;
        self.0
    }
}

/// A write of one key that notes which version it replaces: it puts a value, or removes the key.
struct Change<'c> {
    form: &'c Form,
    journal: &'c RefCell<Journal>,
    /// The number of this write in its group, and when the group began.
    part: usize,
    began: u64,
    write: Overwrite<Key>,
    value: Vec<u8>,
}

impl Change<'_> {
    /// Returns what it has done. A removal of an absent key has read that it is absent.
    fn done(&self) -> Done {
        let Overwrite { key, replaced, new } = self.write;
        let done = Done::between(self.began, u64::MAX);
        match replaced == new {
            true => done.read(key, replaced),
            false => done.wrote(key, replaced, new),
        }
    }
}

impl Edit for Change<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.write.replaced = self.form.version(current);
        self.journal.borrow_mut().pending(self.part, &self.done());
        match (self.write.replaced, self.write.new) {
            (ABSENT, ABSENT) => Action::Keep,
            (_, ABSENT) => Action::Remove,
            _ => Action::Put,
        }
    }
    fn value(&self) -> &[u8] {
        &self.value
    }
}

struct Changes<'c>(Vec<Change<'c>>);

impl Edits for Changes<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut self.0[i]
    }
    fn done(&mut self, _: usize, done: Result<Action, IndexError>) -> ControlFlow<()> {
        done.expect("room");
        ControlFlow::Continue(())
    }
}

/// Runs a transaction without another attempt after a conflict.
fn run_once<M: Media>(
    mut tx: Transaction<'_, M>,
    mut run: impl FnMut(&mut Transaction<'_, M>) -> Result<Seen, Stop>,
) -> Result<Seen, Stop> {
    match run(&mut tx) {
        Ok(seen) => Ok(tx.commit().map(|()| seen)?),
        Err(Stop::Abandoned(seen)) => {
            tx.check()?;
            Err(Stop::Abandoned(seen))
        }
        failed => failed,
    }
}

pub struct Client<'h, M: Media> {
    db: &'h Db<M>,
    maps: &'h [Form; MAPS],
    clock: &'h AtomicU64,
    random: Random,
    versions: Versions,
    journal: RefCell<Journal>,
}

impl<'h, M: Media> Client<'h, M> {
    pub fn new(
        db: &'h Db<M>,
        maps: &'h [Form; MAPS],
        clock: &'h AtomicU64,
        (seed, thread): (u64, u64),
        journal: Journal,
    ) -> Client<'h, M> {
        Client {
            db,
            maps,
            clock,
            random: Random(seed ^ thread << 60),
            // Behind all versions of a history that a kill has ended.
            versions: Versions((clock.load(SeqCst) << 24) + thread + 1),
            journal: RefCell::new(journal),
        }
    }

    /// Carries out operations, and returns them.
    pub fn run(mut self, ops: u64) -> Result<Vec<Done>, Error> {
        for _ in 0..ops {
            let began = self.clock.fetch_add(1, SeqCst);
            let all = match self.random.below(14) {
                0..6 => self.transaction(began)?,
                6 | 7 => self.batch(began)?,
                8 | 9 => self.single_write(began)?,
                10 => self.swap(began)?,
                11 => self.several_writes(began)?,
                _ => self.snapshot(began)?,
            };
            let ended = self.clock.fetch_add(1, SeqCst);
            let timed = all.into_iter().map(|done| Done { began, ended, ..done });
            self.journal.get_mut().ended(timed.collect());
        }
        Ok(self.journal.into_inner().done)
    }

    /// Returns a new version, or now and then the absence that a removal leaves.
    fn new_version(&mut self) -> Version {
        match self.random.one_in(3) {
            true => ABSENT,
            false => self.versions.next(),
        }
    }

    fn transaction(&mut self, began: u64) -> Result<Vec<Done>, Error> {
        let (once, only_reads) = (self.random.one_in(8), self.random.one_in(4));
        let is_immediate = self.random.one_in(4);
        let Client {
            db,
            maps,
            random,
            versions,
            journal,
            ..
        } = self;
        let mut attempt = |tx: &mut Transaction<'_, M>| {
            if is_immediate {
                // Where the database's writes are durable eventually.
                tx.set_durability(Durability::Immediate);
            }
            let steps = Steps {
                maps,
                tx,
                random,
                versions,
                seen: Seen::default(),
            };
            let seen = steps.run(only_reads)?;
            let done = Done { began, ..seen.done() };
            journal.get_mut().pending(0, &done);
            Ok(seen)
        };
        let seen = match once {
            true => run_once(db.begin(), attempt),
            false => db.transact_with(&Retry::new().tries(20), &mut attempt),
        };
        match seen {
            Ok(seen) => {
                seen.assert_consistent();
                Ok(vec![seen.done()])
            }
            // What it had read was checked.
            Err(Stop::Abandoned(seen)) => {
                seen.assert_consistent();
                Ok(vec![seen.reads()])
            }
            Err(Stop::Failed(Error::Conflict { .. })) => Ok(Vec::new()),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Changes keys if they still are as they were when it read them.
    fn batch(&mut self, began: u64) -> Result<Vec<Done>, Error> {
        let (mut batch, mut done) = (self.db.batch(), Done::between(began, u64::MAX));
        for key in self.random.keys(4) {
            let form = &self.maps[key.0];
            let found = form.map().get(key.1)?;
            batch.expect(form.map(), key.1, found.as_ref());
            let replaced = form.version(found.as_deref());
            let new = self.new_version();
            match new {
                ABSENT => batch.remove(form.map(), key.1),
                _ => batch.upsert(form.map(), key.1, form.bytes(new)),
            };
            done = match replaced == new {
                true => done.read(key, ABSENT),
                false => done.wrote(key, replaced, new),
            };
        }
        self.journal.get_mut().pending(0, &done);
        Ok(batch.commit()?.then_some(done).into_iter().collect())
    }

    /// Returns a write of a key that is still to be carried out.
    fn change(&self, (part, began): (usize, u64), key: Key, new: Version) -> Change<'_> {
        let form = &self.maps[key.0];
        Change {
            form,
            journal: &self.journal,
            part,
            began,
            write: Overwrite {
                key,
                replaced: ABSENT,
                new,
            },
            value: if new == ABSENT {
                Vec::new()
            } else {
                form.bytes(new)
            },
        }
    }

    fn single_write(&mut self, began: u64) -> Result<Vec<Done>, Error> {
        let (key, new) = (self.random.key(), self.new_version());
        let mut change = self.change((0, began), key, new);
        self.maps[key.0].map().edit(key.1, &mut change)?;
        Ok(vec![change.done()])
    }

    /// Replaces a value by another one, if it still is as it was read.
    fn swap(&mut self, began: u64) -> Result<Vec<Done>, Error> {
        let (key, new) = (self.random.key(), self.new_version());
        let form = &self.maps[key.0];
        let found = form.map().get(key.1)?;
        let mut change = self.change((0, began), key, new);
        change.write.replaced = form.version(found.as_deref());
        let done = change.done();
        let bytes = (new != ABSENT).then(|| form.bytes(new));
        self.journal.borrow_mut().pending(0, &done);
        let swapped = form.map().compare_and_swap(key.1, found, bytes)?;
        Ok(swapped.then_some(done).into_iter().collect())
    }

    /// Changes keys of a map one after the other.
    fn several_writes(&mut self, began: u64) -> Result<Vec<Done>, Error> {
        let (map, _) = self.random.key();
        let many = 2 + self.random.below(4) as usize;
        let writes: Vec<_> = (0..many)
            .map(|_| (self.random.key().1, self.new_version()))
            .collect();
        let keys: Vec<&[u8]> = writes.iter().map(|(key, _)| *key).collect();
        let changes = writes.iter().enumerate();
        let changes = changes.map(|(part, (key, new))| self.change((part, began), (map, *key), *new));
        let mut changes = Changes(changes.collect());
        self.maps[map].map().index().write_many(&keys, &mut changes);
        Ok(changes.0.iter().map(Change::done).collect())
    }

    /// Reads keys and ranges of one moment.
    fn snapshot(&mut self, _: u64) -> Result<Vec<Done>, Error> {
        let snapshot = self.db.snapshot()?;
        let mut seen = Seen::default();
        for (map, form) in self.maps.iter().enumerate() {
            let view = snapshot.view(form.map())?;
            if form.is_ordered() && self.random.one_in(2) {
                let bounds = self.random.bounds();
                let mut found = Vec::new();
                let mut note = |entry: Result<wollemi::Entry, Error>| {
                    let (key, value) = entry?;
                    found.push((super::keys::known(&key), form.version(Some(&value))));
                    Ok::<_, Error>(())
                };
                match self.random.one_in(2) {
                    true => view.range(bounds).try_for_each(&mut note)?,
                    false => view.range(bounds).rev().try_for_each(&mut note)?,
                }
                seen.range(map, bounds, &found);
            } else {
                for key in KEYS {
                    seen.read((map, key), form.version(view.get(key)?.as_deref()));
                }
            }
        }
        Ok(vec![seen.reads()])
    }
}

//! Random operations of several threads on few keys are strictly serializable: transactions, read-only transactions,
//! batches, snapshots, single writes, and grouped writes.
//!
//! Each written value is unique, and each write knows which value it has replaced. So the order of a key's values is
//! known, and with it the dependencies of each operation: see `graph`.

mod graph;

use graph::{Done, Key, Version};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use wollemi::{Action, Db, Edit, Edits, Error, IndexError, IndexKind, Map, Retry, Transaction};

const THREADS: u64 = 4;
const OPS: u64 = 1500;
const KEYS: u8 = 4;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn key(&mut self) -> Key {
        (self.below(2) as usize, self.below(KEYS.into()) as u8)
    }

    /// Returns distinct keys.
    fn keys(&mut self, max: u64) -> Vec<Key> {
        let mut keys: Vec<_> = (0..1 + self.below(max)).map(|_| self.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

fn version(value: Option<&[u8]>) -> Version {
    let bytes = value.and_then(|value| value.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Returns a value: its version, sometimes with more bytes, so that it is stored differently.
fn value(version: Version) -> Vec<u8> {
    let mut value = version.to_le_bytes().to_vec();
    value.resize(if version.is_multiple_of(3) { 40 } else { 8 }, 7);
    value
}

/// A single write that records the value it replaces.
struct Put {
    replaced: Version,
    value: Vec<u8>,
}

impl Edit for Put {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.replaced = version(current);
        Action::Put
    }
    fn value(&self) -> &[u8] {
        &self.value
    }
}

struct Puts(Vec<Put>);

impl Edits for Puts {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut self.0[i]
    }
    fn done(&mut self, _: usize, done: Result<Action, IndexError>) -> ControlFlow<()> {
        assert_eq!(done.expect("room"), Action::Put);
        ControlFlow::Continue(())
    }
}

/// A thread of a history.
struct Client<'h> {
    db: &'h Db,
    maps: &'h [Map; 2],
    clock: &'h AtomicU64,
    random: Random,
    next: Version,
    done: Vec<Done>,
}

impl Client<'_> {
    fn new_version(&mut self) -> Version {
        self.next += THREADS;
        self.next
    }

    /// Reads keys in a transaction: one by one, or all of a map.
    fn read(
        maps: &[Map; 2],
        tx: &Transaction<'_>,
        keys: &[Key],
        ranges: u64,
    ) -> Result<Vec<(Key, Version)>, Error> {
        let mut reads = Vec::new();
        for (map, key) in keys {
            let found = tx.get(&maps[*map], [*key])?;
            reads.push(((*map, *key), version(found.as_deref())));
        }
        for map in (0..2).filter(|map| ranges >> map & 1 == 1) {
            let mut found = [0; KEYS as usize];
            let range = tx.range(&maps[map], ..)?;
            let mut note = |entry: Result<wollemi::Entry, Error>| {
                let (key, value) = entry?;
                found[usize::from(key[0])] = version(Some(&value));
                Ok::<_, Error>(())
            };
            match ranges >> 2 & 1 {
                0 => range.for_each(|entry| note(entry).expect("sound")),
                _ => range.rev().try_for_each(note)?,
            }
            reads.extend((0..KEYS).map(|key| ((map, key), found[usize::from(key)])));
        }
        // A key may have been read twice.
        reads.sort_unstable();
        reads.dedup();
        Ok(reads)
    }

    /// Runs an operation, which returns its reads and writes if it was carried out.
    fn timed(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<Option<Vec<graph::Effect>>, Error>,
    ) -> Result<(), Error> {
        let began = self.clock.fetch_add(1, SeqCst);
        let effects = run(self)?;
        let ended = self.clock.fetch_add(1, SeqCst);
        for effect in effects.into_iter().flatten() {
            self.done.push(Done { began, ended, effect });
        }
        Ok(())
    }

    fn transaction(&mut self) -> Result<(), Error> {
        let (keys, ranges) = (self.random.keys(3), self.random.below(8));
        let ranges = if self.random.below(3) == 0 { ranges } else { 0 };
        let writes = if self.random.below(4) == 0 {
            0
        } else {
            1 + self.random.below(2)
        };
        let skipped = self.random.below(8) as usize;
        let retry = Retry::new().tries(20);
        self.timed(|client| {
            let maps = client.maps;
            let versions: Vec<_> = (0..writes).map(|_| client.new_version()).collect();
            let done = client.db.transact_with(&retry, |tx| {
                let reads = Self::read(maps, tx, &keys, ranges)?;
                let mut written = Vec::new();
                for (&((map, key), replaced), new) in reads
                    .iter()
                    .cycle()
                    .skip(skipped)
                    .zip(&versions)
                    .take(reads.len())
                {
                    tx.upsert(&maps[map], [key], value(*new))?;
                    written.push(((map, key), replaced, *new));
                }
                Ok::<_, Error>((reads, written))
            });
            match done {
                Ok((reads, writes)) => Ok(Some(vec![graph::Effect { reads, writes }])),
                Err(Error::Conflict { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn batch(&mut self) -> Result<(), Error> {
        let keys = self.random.keys(4);
        self.timed(|client| {
            let (mut batch, mut writes) = (client.db.batch(), Vec::new());
            for (map, key) in keys {
                let found = client.maps[map].get([key])?;
                let new = client.new_version();
                batch.expect(&client.maps[map], [key], found.as_ref());
                batch.upsert(&client.maps[map], [key], value(new));
                writes.push(((map, key), version(found.as_deref()), new));
            }
            let effect = graph::Effect {
                reads: Vec::new(),
                writes,
            };
            Ok(batch.commit()?.then(|| vec![effect]))
        })
    }

    fn single_write(&mut self) -> Result<(), Error> {
        let (map, key) = self.random.key();
        self.timed(|client| {
            let new = client.new_version();
            let mut put = Put {
                replaced: 0,
                value: value(new),
            };
            client.maps[map].edit([key], &mut put)?;
            let writes = vec![((map, key), put.replaced, new)];
            Ok(Some(vec![graph::Effect {
                reads: Vec::new(),
                writes,
            }]))
        })
    }

    fn several_writes(&mut self) -> Result<(), Error> {
        let map = self.random.below(2) as usize;
        let keys: Vec<_> = (0..2 + self.random.below(4))
            .map(|_| self.random.key().1)
            .collect();
        self.timed(|client| {
            let versions: Vec<_> = keys.iter().map(|_| client.new_version()).collect();
            let put = |new: &Version| Put {
                replaced: 0,
                value: value(*new),
            };
            let mut puts = Puts(versions.iter().map(put).collect());
            let bytes: Vec<&[u8]> = keys.iter().map(std::slice::from_ref).collect();
            client.maps[map].index().write_many(&bytes, &mut puts);
            let each = keys.iter().zip(&puts.0).zip(versions);
            let effects = each.map(|((key, put), new)| graph::Effect {
                reads: Vec::new(),
                writes: vec![((map, *key), put.replaced, new)],
            });
            Ok(Some(effects.collect()))
        })
    }

    fn snapshot(&mut self) -> Result<(), Error> {
        self.timed(|client| {
            let snapshot = client.db.snapshot()?;
            let mut reads = Vec::new();
            for (number, map) in client.maps.iter().enumerate() {
                let view = snapshot.view(map)?;
                for key in 0..KEYS {
                    reads.push(((number, key), version(view.get([key])?.as_deref())));
                }
            }
            Ok(Some(vec![graph::Effect {
                reads,
                writes: Vec::new(),
            }]))
        })
    }

    fn run(mut self) -> Result<Vec<Done>, Error> {
        for _ in 0..OPS {
            match self.random.below(12) {
                0..6 => self.transaction()?,
                6 | 7 => self.batch()?,
                8 | 9 => self.single_write()?,
                10 => self.several_writes()?,
                _ => self.snapshot()?,
            }
        }
        Ok(self.done)
    }
}

fn history(seed: u64) -> Result<Vec<Done>, Error> {
    let kinds = [
        IndexKind::Roart,
        IndexKind::DpTree,
        IndexKind::Part,
        IndexKind::Wort,
    ];
    let kind = |bits: u64| kinds[(bits % 4) as usize];
    let db = Db::anonymous()?;
    let maps = [
        db.map_with("one", kind(seed))?,
        db.map_with("two", kind(seed >> 2))?,
    ];
    let clock = AtomicU64::new(0);
    let done = RefCell::new(Vec::new());
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..THREADS)
            .map(|thread| {
                let client = Client {
                    db: &db,
                    maps: &maps,
                    clock: &clock,
                    random: Random(seed ^ thread << 60),
                    next: thread + 1,
                    done: Vec::new(),
                };
                scope.spawn(move || client.run())
            })
            .collect();
        for client in clients {
            done.borrow_mut().extend(client.join().expect("no panic")?);
        }
        Ok::<_, Error>(())
    })?;
    let check = db.check()?;
    assert!(check.is_clean(), "seed {seed}: {check:?}");
    Ok(done.into_inner())
}

/// Set `WOLLEMI_SEED` to rerun one history.
#[test]
fn histories_are_strictly_serializable() -> Result<(), Error> {
    let given = std::env::var("WOLLEMI_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = match given {
        Some(seed) => vec![seed],
        None => (0..8)
            .map(|_| RandomState::new().build_hasher().finish())
            .collect(),
    };
    for seed in seeds {
        println!("seed {seed}");
        let done = history(seed)?;
        let writes = done.iter().filter(|done| !done.effect.writes.is_empty()).count();
        assert!(writes as u64 > OPS, "seed {seed}: only {writes} writes");
        if let Err(wrong) = graph::check(&done) {
            panic!("seed {seed}: {wrong}");
        }
    }
    Ok(())
}

//! Random operations of several threads on few keys are strictly serializable: transactions, read-only transactions,
//! batches, snapshots, single writes, and grouped writes.
//!
//! Each written value is unique, and each write knows which value it has replaced, as the checker of the conformance
//! suite requires.

use index::conformance::serializability::{ABSENT, Committed, Overwrite, RangeRead, Version, check};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use wollemi::{Action, Db, Edit, Edits, Error, IndexError, IndexKind, Map, Retry, Transaction};

/// A map's number and a key.
type Key = (usize, u8);

type Done = Committed<Key>;

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
    bytes.map_or(ABSENT, |bytes| u64::from_le_bytes(*bytes))
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
    fn read(maps: &[Map; 2], tx: &Transaction<'_>, keys: &[Key], ranges: u64) -> Result<Done, Error> {
        let mut done = Done::default();
        for (map, key) in keys {
            let found = tx.get(&maps[*map], [*key])?;
            done.reads.push(((*map, *key), version(found.as_deref())));
        }
        for map in (0..2).filter(|map| ranges >> map & 1 == 1) {
            let range = tx.range(&maps[map], ..)?;
            let note = |entry: Result<wollemi::Entry, Error>| {
                let (key, value) = entry?;
                Ok::<_, Error>(((map, key[0]), version(Some(&value))))
            };
            let found = match ranges >> 2 & 1 {
                0 => range.map(note).collect::<Result<_, _>>()?,
                _ => range.rev().map(note).collect::<Result<_, _>>()?,
            };
            done.scans.push(RangeRead {
                bounds: (Bound::Included((map, 0)), Bound::Excluded((map + 1, 0))),
                found,
            });
        }
        Ok(done)
    }

    /// Returns each key that was read, with its version.
    fn seen(done: &Done) -> Vec<(Key, Version)> {
        let mut seen = done.reads.clone();
        for scan in &done.scans {
            let Bound::Included((map, _)) = scan.bounds.0 else {
                unreachable!("scans are of whole maps");
            };
            seen.extend((0..KEYS).map(|key| {
                let found = scan.found.iter().find(|(found, _)| *found == (map, key));
                ((map, key), found.map_or(ABSENT, |(_, version)| *version))
            }));
        }
        // A key may have been read twice.
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    /// Runs an operation, which returns what it has read and written if it was carried out, and notes its times.
    fn timed(&mut self, run: impl FnOnce(&mut Self) -> Result<Vec<Done>, Error>) -> Result<(), Error> {
        let began = self.clock.fetch_add(1, SeqCst);
        let all = run(self)?;
        let ended = self.clock.fetch_add(1, SeqCst);
        let timed = all.into_iter().map(|done| Done { began, ended, ..done });
        self.done.extend(timed);
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
                let mut done = Self::read(maps, tx, &keys, ranges)?;
                let seen = Self::seen(&done);
                for (&(key, replaced), &new) in
                    seen.iter().cycle().skip(skipped).zip(&versions).take(seen.len())
                {
                    tx.upsert(&maps[key.0], [key.1], value(new))?;
                    done.writes.push(Overwrite { key, replaced, new });
                }
                Ok::<_, Error>(done)
            });
            match done {
                Ok(done) => Ok(vec![done]),
                Err(Error::Conflict { .. }) => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        })
    }

    fn batch(&mut self) -> Result<(), Error> {
        let keys = self.random.keys(4);
        self.timed(|client| {
            let (mut batch, mut done) = (client.db.batch(), Done::default());
            for key in keys {
                let map = &client.maps[key.0];
                let found = map.get([key.1])?;
                let new = client.new_version();
                batch.expect(map, [key.1], found.as_ref());
                batch.upsert(map, [key.1], value(new));
                let replaced = version(found.as_deref());
                done.writes.push(Overwrite { key, replaced, new });
            }
            Ok(batch.commit()?.then_some(done).into_iter().collect())
        })
    }

    fn single_write(&mut self) -> Result<(), Error> {
        let key = self.random.key();
        self.timed(|client| {
            let new = client.new_version();
            let mut put = Put {
                replaced: 0,
                value: value(new),
            };
            client.maps[key.0].edit([key.1], &mut put)?;
            Ok(vec![Done::default().wrote(key, put.replaced, new)])
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
            let writes = each.map(|((key, put), new)| Done::default().wrote((map, *key), put.replaced, new));
            Ok(writes.collect())
        })
    }

    fn snapshot(&mut self) -> Result<(), Error> {
        self.timed(|client| {
            let snapshot = client.db.snapshot()?;
            let mut done = Done::default();
            for (number, map) in client.maps.iter().enumerate() {
                let view = snapshot.view(map)?;
                for key in 0..KEYS {
                    done.reads
                        .push(((number, key), version(view.get([key])?.as_deref())));
                }
            }
            Ok(vec![done])
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
        let writes = done.iter().filter(|done| !done.writes.is_empty()).count();
        assert!(writes as u64 > OPS, "seed {seed}: only {writes} writes");
        if let Err(wrong) = check(&done) {
            panic!("seed {seed}: {wrong}");
        }
    }
    Ok(())
}

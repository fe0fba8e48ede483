//! Several threads at once: each writes its own keys, one write after the other, and reads those of the others. Their
//! interleaving depends on the machine. Each answer is recorded with the number of disk events before it.
//!
//! A loss of power may take back a suffix of a thread's writes, but no acknowledged immediate one, no immediate one
//! that a thread has read, and none that the thread made before a sync of its own that has returned.

use super::pool::{ID, draw_options, pool};
use super::process::lock;
use super::state::State;
use super::trouble::Trouble;
use crashkit::Random;
use crashkit::disk::{CrashDisk, DiskEvent, Medium};
use crashkit::killed::{Told, told};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use wollemi::{Db, Durability, Error, IndexKind, Map};

/// Writes per thread.
const WRITES: u64 = 24;

/// Keys per thread.
const KEYS: u64 = 4;

/// A run of several threads.
pub struct History {
    pub events: Vec<DiskEvent>,
    threads: Vec<Vec<Write>>,
    acknowledged: Vec<Acknowledged>,
    /// The number of events when the maps had been made.
    began: usize,
}

/// A thread, how many of its writes must survive, and the number of events from which on that holds.
type Acknowledged = (usize, u64, usize);

/// A write of its number to one key or two.
#[derive(Clone, Debug)]
struct Write {
    keys: Vec<(&'static str, Vec<u8>)>,
    len: usize,
    durability: Durability,
    begun: usize,
}

fn bytes(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(8 + len, number as u8);
    bytes
}

struct Thread<'t> {
    number: usize,
    disk: &'t CrashDisk,
    db: &'t Db<Told>,
    maps: &'t [Map; 2],
    all: &'t [Mutex<Vec<Write>>],
    acknowledged: &'t Mutex<Vec<Acknowledged>>,
}

impl Thread<'_> {
    fn key(&self, random: &mut Random) -> (&'static str, Vec<u8>) {
        let map = *random.pick(&["a", "b"]);
        (
            map,
            format!("{} {}", self.number, random.below(KEYS)).into_bytes(),
        )
    }

    fn map(&self, name: &str) -> &Map {
        &self.maps[usize::from(name == "b")]
    }

    fn write(&self, number: u64, random: &mut Random) -> Result<(), Error> {
        let mut keys = vec![self.key(random)];
        if random.below(4) == 0 {
            let other = self.key(random);
            if other != keys[0] {
                keys.push(other);
            }
        }
        let durability = *random.pick(&[Durability::Immediate, Durability::Immediate, Durability::Eventual]);
        let len = *random.pick(&[0, 10, 100, 900, 2500]);
        let write = Write {
            keys: keys.clone(),
            len,
            durability,
            begun: self.disk.now(),
        };
        lock(&self.all[self.number]).push(write);
        let value = bytes(number, len);
        match &keys[..] {
            [(map, key)] => self.map(map).with_durability(durability).upsert(key, &value)?,
            keys => {
                let mut batch = self.db.batch();
                for (map, key) in keys {
                    batch.upsert(self.map(map), key, &value);
                }
                batch.durability(durability);
                batch.commit()?;
            }
        }
        if durability == Durability::Immediate {
            lock(self.acknowledged).push((self.number, number, self.disk.now()));
        }
        Ok(())
    }

    /// Reads a key of some thread. An immediate write whose value it sees must be durable.
    fn read(&self, random: &mut Random) -> Result<(), Error> {
        let other = random.below(self.all.len() as u64) as usize;
        let map = *random.pick(&["a", "b"]);
        let key = format!("{other} {}", random.below(KEYS)).into_bytes();
        let value = match random.below(3) {
            0 => {
                let mut entries = self.map(map).range(&key[..]..);
                let first = entries.next().transpose()?;
                first.filter(|(found, _)| *found == key).map(|(_, value)| value)
            }
            _ => self.map(map).get(&key)?,
        };
        let Some(number) = value.as_deref().and_then(|value| value.first_chunk::<8>()) else {
            return Ok(());
        };
        let number = u64::from_le_bytes(*number);
        let write = lock(&self.all[other]).get(number as usize - 1).cloned();
        if write.is_some_and(|write| write.durability == Durability::Immediate) {
            lock(self.acknowledged).push((other, number, self.disk.now()));
        }
        Ok(())
    }

    fn go(&self, mut random: Random) -> Result<(), Error> {
        for number in 1..=WRITES {
            self.write(number, &mut random)?;
            self.read(&mut random)?;
            match random.below(12) {
                0 | 1 => drop(self.db.checkpoint(random.below(2) == 0)?),
                // Open handles of the map make the drop fail.
                2 | 3 => match self.db.drop_map("a") {
                    Err(Error::MapInUse(_)) => {}
                    other => drop(other?),
                },
                4 => {
                    let written = lock(&self.all[self.number]).len() as u64;
                    self.db.sync()?;
                    lock(self.acknowledged).push((self.number, written, self.disk.now()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Executes a history of several threads.
pub fn run(random: &mut Random) -> Result<History, Trouble> {
    let disk = CrashDisk::new(Medium::new());
    let (pool, _memory) = pool(None, ID, told(|| ()))?;
    let mut opened = draw_options(random);
    opened.has_threads = true;
    let db = opened.open(pool, Arc::new(disk.clone()))?;
    let maps = [
        db.map_with("a", IndexKind::Roart)?,
        db.map_with("b", IndexKind::Part)?,
    ];
    let began = disk.now();
    let all: Vec<_> = (0..2 + random.below(2)).map(|_| Mutex::default()).collect();
    let acknowledged = Mutex::default();
    let panicked = AtomicUsize::new(0);
    let done: Result<(), Error> = std::thread::scope(|scope| {
        let spawn = |number| {
            let (disk, db, maps, all, acknowledged) = (&disk, &db, &maps, &all[..], &acknowledged);
            let thread = Thread {
                number,
                disk,
                db,
                maps,
                all,
                acknowledged,
            };
            let random = Random(random.next());
            scope.spawn(move || thread.go(random))
        };
        let threads: Vec<_> = (0..all.len()).map(spawn).collect();
        let results = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| {
                panicked.fetch_add(1, SeqCst);
                Ok(())
            })
        });
        results.collect::<Vec<_>>().into_iter().collect()
    });
    done?;
    if panicked.into_inner() > 0 {
        return Err(Trouble::Wrong("a thread panicked".into()));
    }
    drop((maps, db));
    Ok(History {
        events: disk.events(),
        threads: all
            .into_iter()
            .map(|writes| std::mem::take(&mut *lock(&writes)))
            .collect(),
        acknowledged: std::mem::take(&mut *lock(&acknowledged)),
        began,
    })
}

impl History {
    /// Judges the state after a loss of power before this event.
    pub fn judge(&self, medium: Medium, event: usize, random: &mut Random) -> Result<(), Trouble> {
        let disk = CrashDisk::new(medium);
        let (pool, _memory) = pool(None, ID, told(|| ()))?;
        let db = draw_options(random).open(pool, Arc::new(disk))?;
        let found = State::of(&db)?;
        for (number, writes) in self.threads.iter().enumerate() {
            let acknowledged = self
                .acknowledged
                .iter()
                .filter(|(of, _, since)| *of == number && *since <= event);
            let least = acknowledged
                .map(|(_, least, _)| *least as usize)
                .max()
                .unwrap_or(0);
            let max = writes.iter().take_while(|write| write.begun <= event).count();
            let prefix = format!("{number} ").into_bytes();
            let mut held = BTreeMap::new();
            for (map, entries) in &found.0 {
                for (key, value) in entries.held.iter().filter(|(key, _)| key.starts_with(&prefix)) {
                    held.insert((map.as_str(), key.clone()), value.to_vec());
                }
            }
            let mut state = BTreeMap::new();
            let mut is_one = least == 0 && held.is_empty();
            for (n, write) in writes[..max].iter().enumerate() {
                for (map, key) in &write.keys {
                    state.insert((*map, key.clone()), bytes(n as u64 + 1, write.len));
                }
                is_one |= n + 1 >= least && state == held;
            }
            if !is_one {
                let numbers = held.iter().map(|((map, key), value)| {
                    (
                        *map,
                        String::from_utf8_lossy(key).into_owned(),
                        value.first().copied(),
                    )
                });
                let numbers: Vec<_> = numbers.collect();
                return Err(Trouble::Wrong(format!(
                    "thread {number} had begun {max} writes, the first {least} of which were acknowledged or read, \
                     but its keys hold {numbers:?}"
                )));
            }
        }
        if event >= self.began && !(found.0.contains_key("a") && found.0.contains_key("b")) {
            return Err(Trouble::Wrong("a map is missing".into()));
        }
        db.recover();
        let check = db.check()?;
        match check.is_clean() {
            true => Ok(()),
            false => Err(Trouble::Wrong(format!("the check reports {check:?}"))),
        }
    }
}

//! The database in use: its maps, and the execution of operations.

use super::{Answer, Held, Life, Op, Place, PlacedValue, Restoration, Seen, State, edited};
use crate::map::reads::{both_ways, get_agrees, walks_agree};
use crashkit::Crash;
use crashkit::on_heap::may_be_full;
use pmem::{Media, Pool};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use wollemi::{
    Db, Error, Event, Expiring, HeapError, IndexError, IndexKind, Map, MapInfo, Options, Retry, Transaction,
    Watch,
};

/// The number of the temporary map. The maps of the batches have the numbers below it.
pub(super) const TEMPORARY: u8 = 2;

/// The number of the map with expiring entries.
pub(super) const EXPIRING: u8 = 3;

/// The number of the map that is restored from another database.
pub(super) const RESTORED: u8 = 4;

/// The names of the maps. A root's short name shares a line with its link; a long one does not.
const NAMES: [&str; 3] = [
    "one",
    "two, by a name that goes on in the line after that of the link",
    "lives",
];

const TEMPORARY_NAME: &str = "comes and goes";

const RESTORED_NAME: &str = "of a backup";

/// The database in use.
pub struct Live {
    db: Db<Crash>,
    held: Held,
    media: Crash,
    tight: bool,
    maps: [Map; 3],
    /// Whether a thread uses the table of maps. The database locks that table while it reads the pool. Logical threads
    /// must not block at that lock, since they share an OS thread; they wait for this flag instead.
    table: AtomicBool,
}

/// Exclusive use of the table of maps, until dropped.
struct TableGuard<'l>(&'l AtomicBool);

impl Drop for TableGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// Returns whether the pool was full.
pub(super) fn is_full(error: &Error) -> bool {
    matches!(
        error,
        Error::Heap(HeapError::Full { .. }) | Error::Index(IndexError::Heap(HeapError::Full { .. }))
    )
}

/// Opens the database. Returns it, its media, and whether its pool may become full.
fn start(pool: Pool<Crash>) -> Result<(Db<Crash>, Crash, bool), String> {
    let (media, tight) = (pool.media().clone(), may_be_full(&pool));
    let options = Options::new().recovery_threads(0);
    let db = options.open_pool(pool).map_err(|error| error.to_string())?;
    Ok((db, media, tight))
}

impl Live {
    pub(super) fn create(pool: Pool<Crash>, held: Held) -> Result<Live, String> {
        let (db, media, tight) = start(pool)?;
        db.recover();
        let make = |i: usize| db.map_with(NAMES[i], held[i]).map_err(|error| error.to_string());
        Ok(Live {
            maps: [make(0)?, make(1)?, make(2)?],
            db,
            held,
            media,
            tight,
            table: AtomicBool::new(false),
        })
    }

    pub(super) fn open(pool: Pool<Crash>, held: Held) -> Result<Option<Live>, String> {
        let (db, media, tight) = start(pool)?;
        let find = |name| db.find_map(name).map_err(|error| error.to_string());
        let (Some(one), Some(two), Some(lives)) = (find(NAMES[0])?, find(NAMES[1])?, find(NAMES[2])?) else {
            return Ok(None);
        };
        Ok(Some(Live {
            maps: [one, two, lives],
            db,
            held,
            media,
            tight,
            table: AtomicBool::new(false),
        }))
    }

    pub(super) fn is_tight(&self) -> bool {
        self.tight
    }

    pub(super) fn recover(&self) -> wollemi::Recovery {
        self.db.recover()
    }

    pub(super) fn check(&self) -> Result<wollemi::Check, Error> {
        self.db.check()
    }

    /// Watches all keys of the first map.
    pub(super) fn watch_first(&self) -> Result<Watch, Error> {
        self.maps[0].watch("", 1000)
    }

    fn expiring(&self) -> Expiring {
        Expiring::new(self.maps[2].clone())
    }

    fn use_table(&self) -> TableGuard<'_> {
        let mut turn = 0;
        while self.table.swap(true, Relaxed) {
            self.media.wait(turn);
            turn += 1;
        }
        TableGuard(&self.table)
    }

    fn commit(&self, changes: &[PlacedValue], expected: Option<&PlacedValue>) -> Result<bool, Error> {
        let map = |number: u8| &self.maps[usize::from(number % 2)];
        let mut batch = self.db.batch();
        if let Some(((number, key), value)) = expected {
            batch.expect(map(*number), key, value.as_ref());
        }
        for ((number, key), value) in changes {
            match value {
                Some(value) => batch.upsert(map(*number), key, value),
                None => batch.remove(map(*number), key),
            };
        }
        batch.commit()
    }

    /// Runs a transaction, and retries it after every conflict.
    fn transact(
        &self,
        places: &[Place],
        range: Option<&(Place, bool)>,
        changes: &[PlacedValue],
    ) -> Result<Seen, Error> {
        let map = |number: u8| &self.maps[usize::from(number % 2)];
        let entries = |tx: &Transaction<'_, Crash>| match range {
            None => Ok(Vec::new()),
            Some(((number, from), true)) => tx.range(map(*number), from..)?.rev().collect(),
            Some(((number, from), false)) => tx.range(map(*number), from..)?.collect(),
        };
        self.db.transact_with(&Retry::new().tries(u32::MAX), |tx| {
            let values = places.iter().map(|(number, key)| tx.get(map(*number), key));
            let values = values.collect::<Result<_, _>>()?;
            let before = entries(tx)?;
            for ((number, key), value) in changes {
                match value {
                    Some(value) => tx.upsert(map(*number), key, value)?,
                    None => _ = tx.remove(map(*number), key)?,
                }
            }
            let after = entries(tx)?;
            Ok(Seen {
                values,
                before,
                after,
            })
        })
    }

    fn write(&self, map: u8, key: &[u8], value: Option<&[u8]>) -> Result<bool, Error> {
        match (map, value) {
            (TEMPORARY, value) => {
                let _table = self.use_table();
                let Some(value) = value else {
                    let map = self.db.find_map(TEMPORARY_NAME)?;
                    return map.map_or(Ok(false), |map| map.remove(key));
                };
                self.make(self.held[0])?.upsert(key, value)?;
                Ok(true)
            }
            (EXPIRING, Some(value)) => self.expiring().upsert(key, value, None).map(|()| true),
            (EXPIRING, None) => self.expiring().remove(key),
            (map, Some(value)) => self.maps[usize::from(map)].upsert(key, value).map(|()| true),
            (map, None) => self.maps[usize::from(map)].remove(key),
        }
    }

    /// Returns the temporary map, and makes it with this index if it does not exist. The caller uses the table.
    fn make(&self, kind: IndexKind) -> Result<Map, Error> {
        match self.db.find_map(TEMPORARY_NAME)? {
            Some(map) => Ok(map),
            None => self.db.map_with(TEMPORARY_NAME, kind),
        }
    }

    /// Loads several keys of a map in one call.
    pub(super) fn load(&self, ops: &[&Op]) -> Result<Vec<Answer>, Error> {
        let (mut number, mut entries) = (0, Vec::new());
        for op in ops {
            if let Op::Load((map, key), value) = op {
                number = usize::from(*map);
                entries.push((key, value));
            }
        }
        let loaded = self.maps[number].load(entries)?;
        Ok(vec![Answer::Done(loaded == ops.len() as u64); ops.len()])
    }

    /// Changes a key, and checks that its watch receives the event. Returns whether the key changed.
    fn watched(&self, (map, key): &Place, value: Option<&[u8]>) -> Result<bool, Error> {
        let mut watch = self.maps[usize::from(*map)].watch(key, 1000)?;
        let changed = self.write(*map, key, value)?;
        let received = std::iter::from_fn(|| watch.try_next()).any(|event| match event {
            Event::Changed { key: of, value: to } => of == *key && to.as_deref() == value,
            Event::Missed(_) => false,
        });
        assert!(
            received || !changed,
            "a watch received no event for an acknowledged change"
        );
        Ok(changed)
    }

    fn get(&self, map: u8, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match map {
            TEMPORARY => {
                let _table = self.use_table();
                let map = self.db.find_map(TEMPORARY_NAME)?;
                map.map_or(Ok(None), |map| map.get(key))
            }
            EXPIRING => self.expiring().get(key),
            map => self.maps[usize::from(map)].get(key),
        }
    }

    pub(super) fn apply(&self, op: &Op) -> Result<Answer, Error> {
        Ok(match op {
            Op::Batch(changes, expected) => Answer::Done(self.commit(changes, expected.as_ref())?),
            Op::Transaction(places, range, changes) => {
                Answer::Seen(self.transact(places, range.as_ref(), changes)?)
            }
            Op::Write(((map, key), value)) => Answer::Done(self.write(*map, key, value.as_deref())?),
            Op::Swap(((map, key), new), expected) => {
                let map = &self.maps[usize::from(*map)];
                Answer::Done(map.compare_and_swap(key, expected.as_ref(), new.as_ref())?)
            }
            Op::Get((map, key)) => Answer::Value(self.get(*map, key)?),
            Op::Put(key, value, life) => {
                self.expiring().upsert(key, value, life.duration())?;
                Answer::Done(true)
            }
            Op::Add(key, value, life) => Answer::Done(self.expiring().insert(key, value, life.duration())?),
            Op::Touch(key, life) => Answer::Done(self.expiring().touch(key, life.duration())?),
            Op::Sweep => {
                self.expiring().sweep(&mut None, usize::MAX)?;
                Answer::Done(true)
            }
            Op::Insert((map, key), value) => Answer::Done(self.maps[usize::from(*map)].insert(key, value)?),
            Op::Update((map, key), value) => Answer::Done(self.maps[usize::from(*map)].update(key, value)?),
            Op::Edit((map, key)) => Answer::Value(self.maps[usize::from(*map)].edit_with(key, edited)?),
            Op::Load((map, key), value) => {
                Answer::Done(self.maps[usize::from(*map)].load([(key, value)])? == 1)
            }
            Op::Pop(map, last) => {
                let map = &self.maps[usize::from(*map)];
                let entry = if *last { map.pop_last()? } else { map.pop_first()? };
                Answer::Entries(entry.into_iter().collect())
            }
            Op::Watched((place, value)) => Answer::Done(self.watched(place, value.as_deref())?),
            Op::Range((map, from), reverse) => {
                let entries = self.maps[usize::from(*map)].range(&from[..]..);
                Answer::Entries(match reverse {
                    true => entries.rev().collect::<Result<_, _>>()?,
                    false => entries.collect::<Result<_, _>>()?,
                })
            }
            Op::Ends(map) => {
                let map = &self.maps[usize::from(*map)];
                Answer::Entries([map.first()?, map.last()?].into_iter().flatten().collect())
            }
            Op::Make(kind) => {
                let _table = self.use_table();
                self.make(self.held[*kind])?;
                Answer::Done(true)
            }
            Op::Recover => Answer::Done(self.db.recover().state == wollemi::RecoveryState::Done),
            Op::GiveBack => {
                self.db.recover();
                self.db.give_back()?;
                Answer::Done(true)
            }
            Op::Drop => {
                let _table = self.use_table();
                self.db.drop_map(TEMPORARY_NAME)?;
                Answer::Done(true)
            }
            Op::Snapshot => Answer::Shown(self.in_snapshot()?),
            Op::Backup => Answer::Shown(self.in_backup()?),
            Op::Restore(entries, how) => Answer::Done(self.restore(entries, *how)?),
            Op::Discard => {
                let _table = self.use_table();
                Answer::Done(self.db.drop_map(RESTORED_NAME)?)
            }
        })
    }

    /// Takes a snapshot. Returns the content of the maps of the batches in it.
    fn in_snapshot(&self) -> Result<State, Error> {
        let snapshot = self.db.snapshot()?;
        let mut state = State::new();
        for (number, map) in (0..TEMPORARY).zip(&self.maps) {
            for entry in snapshot.view(map)?.iter() {
                let (key, value) = entry?;
                state.insert((number, key), value);
            }
        }
        Ok(state)
    }

    /// Takes a backup, and restores it elsewhere. Returns the content of all maps in it.
    fn in_backup(&self) -> Result<State, Error> {
        let snapshot = self.db.snapshot()?;
        let mut bytes = Vec::new();
        let written = {
            let _table = self.use_table();
            snapshot.backup(&mut bytes, |_| {})?
        };
        let restored = Db::anonymous()?;
        let read = restored.restore(&mut &bytes[..], |_| {})?;
        assert_eq!(written, read, "the counts of a backup and of its restoration");
        let of = |maps: &[MapInfo]| {
            maps.iter()
                .map(|map| (map.name.clone(), map.index.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(snapshot.maps()), of(&restored.maps()?), "the maps of a backup");
        all_entries(&restored)
    }

    /// Restores a map from another database, unless it exists. Returns whether it did so.
    fn restore(&self, entries: &[(Vec<u8>, Vec<u8>)], how: Restoration) -> Result<bool, Error> {
        let source = Db::anonymous()?;
        source
            .map_with(RESTORED_NAME, self.held[how.kind])?
            .load(entries.iter().map(|(key, value)| (key, value)))?;
        let snapshot = source.snapshot()?;
        let _table = self.use_table();
        let made = if how.copied {
            self.db.copy_from(&snapshot, |_| {})
        } else {
            let mut bytes = Vec::new();
            snapshot.backup(&mut bytes, |_| {})?;
            self.db.restore(&mut &bytes[..], |_| {})
        };
        match made {
            Ok(_) => {
                let map = self.db.find_map(RESTORED_NAME)?;
                let kind = map.map(|map| map.index_kind());
                assert_eq!(kind, Some(self.held[how.kind]), "the index of a restored map");
                Ok(true)
            }
            Err(Error::MapExists(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads all maps.
    pub(super) fn entries(&self) -> Result<State, Error> {
        all_entries(&self.db)
    }

    /// Checks that gets of keys, from each map, agree with the content of all maps. No thread may write.
    pub(super) fn check_gets(&self, state: &State, keys: &[Vec<u8>]) -> Result<(), String> {
        for (number, name) in numbered() {
            let map = self.db.find_map(name).map_err(|error| error.to_string())?;
            let Some(map) = map else { continue };
            let lives = (number == EXPIRING).then(|| Expiring::new(map.clone()));
            for key in keys {
                let got = lives
                    .as_ref()
                    .map_or_else(|| map.get(key), |lives| lives.get(key));
                let got = got.map_err(|error| format!("map {name}: a get failed: {error}"))?;
                let agrees = get_agrees(key, state.get(&(number, key.clone())), got.as_ref());
                agrees.map_err(|wrong| format!("map {name}: {wrong}"))?;
            }
        }
        Ok(())
    }
}

/// Returns the numbers and names of all maps.
fn numbered() -> impl Iterator<Item = (u8, &'static str)> {
    let names = NAMES.into_iter().chain([TEMPORARY_NAME, RESTORED_NAME]);
    [0, 1, EXPIRING, TEMPORARY, RESTORED].into_iter().zip(names)
}

/// Reads all maps of a database. Panics if walks in both directions do not agree.
fn all_entries<M: Media>(db: &Db<M>) -> Result<State, Error> {
    let mut state = State::new();
    for (number, name) in numbered() {
        let Some(map) = db.find_map(name)? else { continue };
        let order = map.index().order();
        let (up, down) = match number {
            EXPIRING => {
                let lives = Expiring::new(map);
                both_ways(|| lives.iter())?
            }
            _ => both_ways(|| map.iter())?,
        };
        let agree = walks_agree(order, &up, &down);
        assert!(agree.is_ok(), "map {name}: {agree:?}");
        state.extend(up.into_iter().map(|(key, value)| ((number, key), value)));
    }
    Ok(state)
}

impl Life {
    fn duration(self) -> Option<Duration> {
        match self {
            Life::Over => Some(Duration::ZERO),
            // Saturates to an expiry that does not depend on the time, so a history always writes the same bytes.
            Life::Long => Some(Duration::MAX),
            Life::Endless => None,
        }
    }
}

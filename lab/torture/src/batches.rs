//! The embedded database as a subject: atomic batches and transactions over two maps held by different indexes, beside
//! writes of single keys, snapshots, backups, a temporary map, one with expiring entries, and one restored from a
//! backup.

mod draw;
mod live;

use crashkit::{Crash, Depth, Forgiven, Random, Subject, Verdict};
pub use draw::history;
use draw::{Reads, entries, op, place};
pub use live::Live;
use live::{COMES_AND_GOES, ENDING, RESTORED, is_full};
use pmem::Pool;
use std::collections::BTreeMap;
use std::fmt;
use wollemi::{Event, IndexKind};

/// A map's number and a key.
pub type Place = (u8, Vec<u8>);

/// What a key shall hold, or is expected to.
pub type PlacedValue = (Place, Option<Vec<u8>>);

/// An operation of the database.
#[derive(Clone, Debug)]
pub enum Op {
    /// All of these, if that is there.
    Batch(Vec<PlacedValue>, Option<PlacedValue>),
    /// In a transaction: look at these keys, and at all keys of a map from a number on, in this order or from the end;
    /// then make the changes, and look at that map again.
    Transaction(Vec<Place>, Option<(Place, bool)>, Vec<PlacedValue>),
    /// One key.
    Write(PlacedValue),
    /// One key, if it holds what is expected (the second).
    Swap(PlacedValue, Option<Vec<u8>>),
    /// Look what a key holds.
    Get(Place),
    /// Give a key of the expiring map a value with a life; of two variants, the second only if the key is absent.
    Put(Vec<u8>, Vec<u8>, Life),
    /// See [`Put`](Op::Put).
    Add(Vec<u8>, Vec<u8>, Life),
    /// Give a key of that map another life.
    Touch(Vec<u8>, Life),
    /// Remove what has ended.
    Sweep,
    /// Give a key a value: of two variants, the first only if it is absent, the second only if it is there.
    Insert(Place, Vec<u8>),
    /// See [`Insert`](Op::Insert).
    Update(Place, Vec<u8>),
    /// Give a key the value that a function makes of what it holds.
    Edit(Place),
    /// Give a key a value; those that follow each other in a map are one call.
    Load(Place, Vec<u8>),
    /// Take a map's first entry, or its last.
    Pop(u8, bool),
    /// One key, by a thread that a watch informs of the change.
    Watched(PlacedValue),
    /// Read the entries of a map from a key on, in this order or from the end.
    Range(Place, bool),
    /// Read a map's first entry and its last.
    Ends(u8),
    /// Make the map that comes and goes, held by the index of the map of this number, if it is not there.
    Make(usize),
    /// Drop the map that comes and goes.
    Drop,
    /// Recover, or wait until another thread has.
    Recover,
    /// Give the file's unused space back.
    GiveBack,
    /// Read the two maps of the batches in a snapshot.
    Snapshot,
    /// Take a backup, and read what it holds of all maps.
    Backup,
    /// Restore a map that has these entries, unless it is there.
    Restore(Vec<(Vec<u8>, Vec<u8>)>, How),
    /// Drop that map.
    Discard,
}

/// How a map is made of another database's.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Held by the index of the map of this number.
    pub kind: usize,
    /// Of a snapshot, without the bytes of a backup.
    pub copied: bool,
}

/// How long an entry lives: lives that end by the clock would make runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// It is over as it begins.
    Over,
    /// Longer than any run.
    Long,
    /// It has no end.
    Endless,
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Whether it was carried out.
    Done(bool),
    /// What was read.
    Value(Option<Vec<u8>>),
    /// Entries that were read or taken.
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    /// What a snapshot shows.
    Shown(State),
    /// What a transaction has seen.
    Seen(Seen),
    /// The pool is full; nothing was changed.
    Full,
    /// A snapshot keeps the map from being dropped; nothing was changed.
    InUse,
    /// Other threads have changed the map's end again and again; nothing was changed.
    Conflict,
    /// The map's index has no order of keys; nothing was changed.
    Unordered,
}

/// What a transaction has seen: the values of keys, and the entries of a map before its changes and after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    values: Vec<Option<Vec<u8>>>,
    before: Vec<(Vec<u8>, Vec<u8>)>,
    after: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What all maps hold.
pub type State = BTreeMap<Place, Vec<u8>>;

/// The indexes that hold the first map, the second one, and the one whose entries end. The map that comes and goes and
/// the one of a backup are held by any of them, so that no further index's persists are hunted.
pub type Held = [IndexKind; 3];

/// The embedded database, its maps held by these indexes.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    held: Held,
}

impl Default for Batches {
    fn default() -> Batches {
        Batches::HELD[0]
    }
}

impl Batches {
    /// Databases that have maps of all indexes but WORT between them.
    pub const HELD: [Batches; 3] = [
        Batches::held_by([IndexKind::Roart, IndexKind::Part, IndexKind::Woart]),
        Batches::held_by([IndexKind::DpTree, IndexKind::Clht, IndexKind::Hot]),
        Batches::held_by([IndexKind::BwTree, IndexKind::Masstree, IndexKind::ArtCow]),
    ];

    /// The database, its maps held by these.
    pub const fn held_by(held: Held) -> Batches {
        Batches { held }
    }

    /// The database of this name: `kv`, or `kv:` with the names of three indexes, divided by commas.
    ///
    /// # Errors
    ///
    /// If the name is neither `kv` nor `kv:` with the names of three indexes.
    pub fn named(name: &str) -> Result<Batches, String> {
        let Some(held) = name.strip_prefix("kv:") else {
            return match name {
                "kv" => Ok(Batches::default()),
                _ => Err(format!("no database is called {name}")),
            };
        };
        let kinds = held.split(',').map(|kind| kind.parse::<IndexKind>());
        let kinds = kinds
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let held = kinds
            .try_into()
            .map_err(|_| "kv: takes the names of three indexes, as in kv:roart,part,woart")?;
        Ok(Batches { held })
    }

    /// Whether it claims the model `word`: all its indexes must.
    pub fn claims_word(&self) -> bool {
        self.held.iter().all(|kind| kind.claims_word())
    }

    /// Whether one of the first two maps has an order of keys.
    fn is_ordered(&self, map: u8) -> bool {
        self.held[usize::from(map)].is_ordered()
    }
}

impl fmt::Display for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.held == Batches::default().held {
            return f.write_str("kv");
        }
        let [one, two, lives] = self.held;
        write!(f, "kv:{one},{two},{lives}")
    }
}

impl Subject for Batches {
    type Op = Op;
    type Answer = Answer;
    type State = State;
    type Live = Live;

    fn name(&self) -> String {
        self.to_string()
    }

    fn forgiven(&self) -> &'static [Forgiven] {
        crate::forgiven::TABLE
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        Live::create(pool, self.held)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        Live::open(pool, self.held)
    }

    fn recover(&self, live: &Live) -> Result<(), String> {
        match live.recover().state {
            wollemi::RecoveryState::Done => Ok(()),
            state => Err(format!("recovery is {state}")),
        }
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Answer, String> {
        match live.apply(op) {
            Err(error) if is_full(&error) && live.is_tight() => Ok(Answer::Full),
            Err(wollemi::Error::MapInUse(_)) if matches!(op, Op::Drop | Op::Discard) => Ok(Answer::InUse),
            Err(wollemi::Error::Index(wollemi::IndexError::Unordered)) => Ok(Answer::Unordered),
            Err(wollemi::Error::Conflict { .. }) if matches!(op, Op::Pop(..)) => Ok(Answer::Conflict),
            done => done.map_err(|error| error.to_string()),
        }
    }

    fn is_refusal(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Full | Answer::InUse | Answer::Conflict)
    }

    fn goes_with(&self, ops: &[&Op], next: &Op) -> bool {
        let Op::Load((map, _), _) = next else { return false };
        ops.iter()
            .all(|op| matches!(op, Op::Load((of, _), _) if of == map))
    }

    fn keeps_order(&self, _: &Op, _: &Op) -> bool {
        true
    }

    fn apply_together(&self, live: &Live, ops: &[&Op]) -> Result<Vec<Answer>, String> {
        // Where there is no room, some of it is done: then each by itself, up to the first that is refused, as `load`
        // does.
        if live.is_tight() {
            let mut refused = false;
            let each = ops.iter().map(|op| match refused {
                true => Ok(Answer::Full),
                false => self
                    .apply(live, op)
                    .inspect(|answer| refused = *answer == Answer::Full),
            });
            return each.collect();
        }
        live.load(ops).map_err(|error| error.to_string())
    }

    fn check_end(&self, live: &Live) -> Result<(), String> {
        // What was retired comes back, so that what was retired twice is known.
        (0..4).for_each(|_| heap::pin().flush());
        let check = live.check().map_err(|error| error.to_string())?;
        if check.is_clean() {
            return Ok(());
        }
        Err(format!("the check says {check:?}"))
    }

    fn specify(&self, state: &mut State, op: &Op) -> Answer {
        match op {
            Op::Pop(map, _)
            | Op::Ends(map)
            | Op::Range((map, _), _)
            | Op::Transaction(_, Some(((map, _), _)), _)
                if !self.is_ordered(*map) =>
            {
                Answer::Unordered
            }
            Op::Write(entry) | Op::Watched(entry) => Answer::Done(set(state, entry)),
            Op::Insert(place, value) => {
                let absent = !state.contains_key(place);
                if absent {
                    state.insert(place.clone(), value.clone());
                }
                Answer::Done(absent)
            }
            Op::Update(place, value) => Answer::Done(match state.get_mut(place) {
                Some(held) => {
                    held.clone_from(value);
                    true
                }
                None => false,
            }),
            Op::Edit(place) => {
                let new = edited(state.get(place).map(Vec::as_slice));
                set(state, &(place.clone(), new.clone()));
                Answer::Value(new)
            }
            Op::Load(place, value) => Answer::Done(set(state, &(place.clone(), Some(value.clone())))),
            Op::Pop(map, last) => {
                let entry = end_of(state, *map, *last);
                entry
                    .iter()
                    .for_each(|(key, _)| _ = state.remove(&(*map, key.clone())));
                Answer::Entries(entry.into_iter().collect())
            }
            Op::Range(from, reverse) => Answer::Entries(range_of(state, Some(&(from.clone(), *reverse)))),
            Op::Ends(map) => {
                let ends = [end_of(state, *map, false), end_of(state, *map, true)];
                Answer::Entries(ends.into_iter().flatten().collect())
            }
            Op::Make(_) | Op::Recover | Op::GiveBack => Answer::Done(true),
            Op::Batch(_, Some((place, value))) if state.get(place) != value.as_ref() => Answer::Done(false),
            Op::Batch(changes, _) => {
                changes.iter().for_each(|entry| _ = set(state, entry));
                Answer::Done(true)
            }
            Op::Transaction(places, range, changes) => {
                let values = places.iter().map(|place| state.get(place).cloned());
                let mut seen = Seen {
                    values: values.collect(),
                    before: range_of(state, range.as_ref()),
                    ..Seen::default()
                };
                changes.iter().for_each(|entry| _ = set(state, entry));
                seen.after = range_of(state, range.as_ref());
                Answer::Seen(seen)
            }
            Op::Swap(entry, expected) if state.get(&entry.0) == expected.as_ref() => {
                set(state, entry);
                Answer::Done(true)
            }
            Op::Swap(..) => Answer::Done(false),
            Op::Get(place) => Answer::Value(state.get(place).cloned()),
            Op::Put(key, value, life) => Answer::Done(live_on(state, key, value, *life)),
            Op::Add(key, value, life) => {
                let absent = !state.contains_key(&(ENDING, key.clone()));
                Answer::Done(absent && live_on(state, key, value, *life))
            }
            Op::Touch(key, life) => {
                let place = (ENDING, key.clone());
                let touched = state.get(&place).cloned();
                Answer::Done(touched.is_some_and(|value| live_on(state, key, &value, *life)))
            }
            Op::Sweep => Answer::Done(true),
            Op::Drop => {
                state.retain(|(map, _), _| *map != COMES_AND_GOES);
                Answer::Done(true)
            }
            Op::Backup => Answer::Shown(state.clone()),
            Op::Restore(entries, _) => {
                let absent = !is_restored(state);
                if absent {
                    let entries = entries.iter().cloned();
                    state.extend(entries.map(|(key, value)| ((RESTORED, key), value)));
                }
                Answer::Done(absent)
            }
            Op::Discard => {
                let there = is_restored(state);
                state.retain(|(map, _), _| *map != RESTORED);
                Answer::Done(there)
            }
            Op::Snapshot => {
                let shown = state.iter().filter(|((map, _), _)| *map < COMES_AND_GOES);
                Answer::Shown(
                    shown
                        .map(|(place, value)| (place.clone(), value.clone()))
                        .collect(),
                )
            }
        }
    }

    fn judge(&self, live: &Live, mut verdict: Verdict<'_, Self>) -> Result<usize, String> {
        let failed = |error: wollemi::Error| error.to_string();
        let found = live.entries().map_err(failed)?;
        let Some(which) = verdict.allowed.iter().position(|state| **state == found) else {
            return Err(format!(
                "it holds {found:?} instead of one of {:?}",
                verdict.allowed
            ));
        };
        let mut state = found;
        for _ in 0..if verdict.depth == Depth::Deep { 20 } else { 1 } {
            let changes = entries(&mut verdict.random);
            let op = Op::Batch(changes.clone(), None);
            let mut watch = live.watch_first().map_err(failed)?;
            let mut expected = Vec::new();
            if !self.is_refusal(&self.apply(live, &op)?) {
                for (i, entry) in changes.iter().enumerate() {
                    let ((map, key), value) = entry;
                    // A batch makes only the last of several changes of a key.
                    if changes[i + 1..].iter().any(|later| later.0 == entry.0) {
                        continue;
                    }
                    if set(&mut state, entry) && *map == 0 {
                        let (key, value) = (key.clone(), value.clone());
                        expected.push(Event::Changed { key, value });
                    }
                }
            }
            let told: Vec<Event> = std::iter::from_fn(|| watch.try_next()).collect();
            if told != expected {
                return Err(format!(
                    "after recovery, a watch sends {told:?} instead of {expected:?}"
                ));
            }
        }
        if live.entries().map_err(failed)? != state {
            return Err("after recovery, something is not what a batch has put there".into());
        }
        if verdict.depth == Depth::Deep {
            self.check_end(live)
                .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
        }
        Ok(which)
    }

    fn follow_up(&self, _state: &State, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        // The keys that a batch in flight was to change are those that another thread might read or change now.
        let touched = in_flight.iter().find_map(|op| match op {
            Op::Batch(changes, _) | Op::Transaction(_, _, changes) => {
                changes.first().map(|(place, _)| place.clone())
            }
            _ => None,
        });
        let place = touched.unwrap_or_else(|| place(random));
        let value = Some(vec![9; 8]);
        vec![
            Op::Get(place.clone()),
            Op::Write((place, value)),
            op(random, Reads::None),
        ]
    }
}

/// The entries of a map from a key on, or from the end down to it.
fn range_of(state: &State, range: Option<&(Place, bool)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Some(((map, from), reverse)) = range else {
        return Vec::new();
    };
    let entries = state.iter().filter(|((of, key), _)| of == map && key >= from);
    let mut entries: Vec<_> = entries
        .map(|((_, key), value)| (key.clone(), value.clone()))
        .collect();
    if *reverse {
        entries.reverse();
    }
    entries
}

/// Whether the map of a backup is there: it has entries from its beginning to its end.
fn is_restored(state: &State) -> bool {
    state.keys().any(|(map, _)| *map == RESTORED)
}

/// The first entry of a map, or the last.
fn end_of(state: &State, map: u8, last: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    range_of(state, Some(&((map, Vec::new()), last)))
        .into_iter()
        .next()
}

/// What an edit makes of what a key holds: something longer, and nothing of what is long.
fn edited(old: Option<&[u8]>) -> Option<Vec<u8>> {
    let old = old.unwrap_or_default();
    (old.len() < 30).then(|| [old, b"and more"].concat())
}

/// Gives a key of the map whose entries end a value and a life.
fn live_on(state: &mut State, key: &[u8], value: &[u8], life: Life) -> bool {
    let place = (ENDING, key.to_vec());
    match life {
        Life::Over => state.remove(&place),
        Life::Long | Life::Endless => state.insert(place, value.to_vec()),
    };
    true
}

/// Makes a change; `false` if it was to remove what is not there.
fn set(state: &mut State, (place, value): &PlacedValue) -> bool {
    match value {
        Some(value) => {
            state.insert(place.clone(), value.clone());
            true
        }
        None => state.remove(place).is_some(),
    }
}

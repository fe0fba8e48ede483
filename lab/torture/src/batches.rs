//! The embedded database as a subject: atomic batches and transactions over two maps held by different indexes, beside
//! writes of single keys, snapshots, backups, a temporary map, one with expiring entries, and one restored from a
//! backup.

mod draw;
mod live;

use crashkit::{Crash, Depth, Forgiven, Random, Subject, Verdict};
pub use draw::history;
use draw::{Reads, entries, op, place};
pub use live::Live;
use live::{EXPIRING, RESTORED, TEMPORARY, is_full};
use pmem::Pool;
use std::collections::BTreeMap;
use std::fmt;
use wollemi::{Event, IndexKind};

/// The number of keys that a shallow judge gets from each map.
const GETS: usize = 3;

/// A map's number and a key.
pub type Place = (u8, Vec<u8>);

/// A key, and its new or expected value (`None`: absent).
pub type PlacedValue = (Place, Option<Vec<u8>>);

/// An operation of the database.
#[derive(Clone, Debug)]
pub enum Op {
    /// Commit a batch of these changes, on condition that the key holds the expected value, if one is given.
    Batch(Vec<PlacedValue>, Option<PlacedValue>),
    /// In a transaction: read these keys, and all entries of a map from a key on (`true`: in reverse order); then make
    /// the changes, and read those entries again.
    Transaction(Vec<Place>, Option<(Place, bool)>, Vec<PlacedValue>),
    /// Put or remove one key.
    Write(PlacedValue),
    /// Compare and swap: change the key if it holds the second value.
    Swap(PlacedValue, Option<Vec<u8>>),
    /// Read a key.
    Get(Place),
    /// Put a key of the expiring map.
    Put(Vec<u8>, Vec<u8>, Life),
    /// Put a key of the expiring map, if it is absent.
    Add(Vec<u8>, Vec<u8>, Life),
    /// Change the lifetime of a key of the expiring map.
    Touch(Vec<u8>, Life),
    /// Remove the expired entries.
    Sweep,
    /// Put a key, if it is absent.
    Insert(Place, Vec<u8>),
    /// Put a key, if it is present.
    Update(Place, Vec<u8>),
    /// Replace a key's value by a function of it.
    Edit(Place),
    /// Put a key; consecutive loads into one map are one call.
    Load(Place, Vec<u8>),
    /// Remove and return the first entry of a map (`true`: the last).
    Pop(u8, bool),
    /// Put or remove one key, and check that a watch reports the change.
    Watched(PlacedValue),
    /// Read the entries of a map from a key on (`true`: in reverse order).
    Range(Place, bool),
    /// Read the first and the last entry of a map.
    Ends(u8),
    /// Make the temporary map, with the index of the map of this number, unless it exists.
    Make(usize),
    /// Drop the temporary map.
    Drop,
    /// Recover, or wait until another thread has.
    Recover,
    /// Give the file's unused space back to the file system.
    GiveBack,
    /// Read the two maps of the batches in a snapshot.
    Snapshot,
    /// Take a backup, and read all maps in it.
    Backup,
    /// Restore a map with these entries, unless it exists.
    Restore(Vec<(Vec<u8>, Vec<u8>)>, Restoration),
    /// Drop the restored map.
    Discard,
}

/// How a map is restored from another database.
#[derive(Clone, Copy, Debug)]
pub struct Restoration {
    /// The number of the map whose index it uses.
    pub kind: usize,
    /// Whether it is copied from a snapshot; `false`: from the bytes of a backup.
    pub copied: bool,
}

/// How long an entry lives. None expires in the middle of a run, since the run would then depend on the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// The entry expires at once.
    Over,
    /// The entry expires after any run.
    Long,
    /// The entry never expires.
    Endless,
}

/// The answer to an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Whether it took effect.
    Done(bool),
    /// The value read.
    Value(Option<Vec<u8>>),
    /// The entries read or removed.
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    /// The content of a snapshot or backup.
    Shown(State),
    /// The reads of a transaction.
    Seen(Seen),
    /// The pool is full; nothing changed.
    Full,
    /// A snapshot keeps the map from being dropped; nothing changed.
    InUse,
    /// Other threads have changed the map's end again and again; nothing changed.
    Conflict,
    /// The map's index has no key order; nothing changed.
    Unordered,
}

/// The reads of a transaction: the values of keys, and the entries of a map before and after its changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    values: Vec<Option<Vec<u8>>>,
    before: Vec<(Vec<u8>, Vec<u8>)>,
    after: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The content of all maps.
pub type State = BTreeMap<Place, Vec<u8>>;

/// The indexes of the first map, the second map, and the map with expiring entries. The temporary map and the restored
/// one use any of them, so that a hunt covers no further index's persists.
pub type Held = [IndexKind; 3];

/// The embedded database, with these indexes for its maps.
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
    /// Databases whose maps use, between them, all indexes but WORT.
    pub const HELD: [Batches; 3] = [
        Batches::held_by([IndexKind::Roart, IndexKind::Part, IndexKind::Woart]),
        Batches::held_by([IndexKind::DpTree, IndexKind::Clht, IndexKind::Hot]),
        Batches::held_by([IndexKind::BwTree, IndexKind::Masstree, IndexKind::ArtCow]),
    ];

    /// Returns the database with these indexes for its maps.
    pub const fn held_by(held: Held) -> Batches {
        Batches { held }
    }

    /// Returns the database of this name: `kv`, or `kv:` with the names of three indexes, separated by commas.
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

    /// Returns whether all its indexes, and so the database, claim the model `word`.
    pub fn claims_word(&self) -> bool {
        self.held.iter().all(|kind| kind.claims_word())
    }

    /// Returns whether this map, one of the first two, has a key order.
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
        // A load that finds the pool full stops halfway, and does not report where. So in a pool that may become full
        // the operations run one by one, up to the first refusal, as `load` does.
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
        // Frees the retired chunks, so that the check sees one that was retired twice.
        (0..4).for_each(|_| heap::pin().flush());
        let check = live.check().map_err(|error| error.to_string())?;
        if check.is_clean() {
            return Ok(());
        }
        Err(format!("the check reports {check:?}"))
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
            Op::Put(key, value, life) => Answer::Done(put_with_life(state, key, value, *life)),
            Op::Add(key, value, life) => {
                let absent = !state.contains_key(&(EXPIRING, key.clone()));
                Answer::Done(absent && put_with_life(state, key, value, *life))
            }
            Op::Touch(key, life) => {
                let place = (EXPIRING, key.clone());
                let touched = state.get(&place).cloned();
                Answer::Done(touched.is_some_and(|value| put_with_life(state, key, &value, *life)))
            }
            Op::Sweep => Answer::Done(true),
            Op::Drop => {
                state.retain(|(map, _), _| *map != TEMPORARY);
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
                let present = is_restored(state);
                state.retain(|(map, _), _| *map != RESTORED);
                Answer::Done(present)
            }
            Op::Snapshot => {
                let shown = state.iter().filter(|((map, _), _)| *map < TEMPORARY);
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
        let gets = if verdict.depth == Depth::Deep { 40 } else { GETS };
        let keys: Vec<_> = (0..gets).map(|_| place(&mut verdict.random).1).collect();
        live.check_gets(&found, &keys)?;
        let mut state = found;
        for _ in 0..if verdict.depth == Depth::Deep { 20 } else { 1 } {
            let changes = entries(&mut verdict.random);
            let op = Op::Batch(changes.clone(), None);
            let mut watch = live.watch_first().map_err(failed)?;
            let mut expected = Vec::new();
            if !self.is_refusal(&self.apply(live, &op)?) {
                for (i, entry) in changes.iter().enumerate() {
                    let ((map, key), value) = entry;
                    // Of several changes of a key, a batch makes only the last.
                    if changes[i + 1..].iter().any(|later| later.0 == entry.0) {
                        continue;
                    }
                    if set(&mut state, entry) && *map == 0 {
                        let (key, value) = (key.clone(), value.clone());
                        expected.push(Event::Changed { key, value });
                    }
                }
            }
            let received: Vec<Event> = std::iter::from_fn(|| watch.try_next()).collect();
            if received != expected {
                return Err(format!(
                    "after recovery, a watch sends {received:?} instead of {expected:?}"
                ));
            }
        }
        if live.entries().map_err(failed)? != state {
            return Err("after recovery, the content differs from what batches wrote".into());
        }
        if verdict.depth == Depth::Deep {
            self.check_end(live)
                .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
        }
        Ok(which)
    }

    fn follow_up(&self, _state: &State, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        // Opening may have completed a batch in flight; a read and a write of one of its keys test that.
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

/// Returns the entries of a map from a key on, or from the end down to it.
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

/// Returns whether the restored map exists: it is never empty.
fn is_restored(state: &State) -> bool {
    state.keys().any(|(map, _)| *map == RESTORED)
}

/// Returns the first entry of a map, or the last.
fn end_of(state: &State, map: u8, last: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    range_of(state, Some(&((map, Vec::new()), last)))
        .into_iter()
        .next()
}

/// Returns the edited value: a longer one, or `None` (a removal) if the old one is long.
fn edited(old: Option<&[u8]>) -> Option<Vec<u8>> {
    let old = old.unwrap_or_default();
    (old.len() < 30).then(|| [old, b"and more"].concat())
}

/// Puts a key of the expiring map.
fn put_with_life(state: &mut State, key: &[u8], value: &[u8], life: Life) -> bool {
    let place = (EXPIRING, key.to_vec());
    match life {
        Life::Over => state.remove(&place),
        Life::Long | Life::Endless => state.insert(place, value.to_vec()),
    };
    true
}

/// Makes a change. Returns `false` if it removes an absent key.
fn set(state: &mut State, (place, value): &PlacedValue) -> bool {
    match value {
        Some(value) => {
            state.insert(place.clone(), value.clone());
            true
        }
        None => state.remove(place).is_some(),
    }
}

//! A thread that calls the database and compares each answer with what it knows.
//!
//! This file has reads, writes and scans; `atomic` has batches and transactions, `views` snapshots, backups and
//! watches, `durable` calls about the log, `rare` functions that few programs call, `typed` and `expiring` the typed
//! and the expiring maps that only one thread uses, `unordered` walks, and the calls that a map whose index has no key
//! order refuses.

mod atomic;
mod durable;
mod expiring;
mod rare;
mod typed;
mod unordered;
mod views;

use crate::keys::owner;
use crate::op::{Op, Reading, Scanning, Write, nth};
use crate::random::Random;
use crate::truth::{Life, MapTruth, Plan, Role, Truth, Val};
use std::fmt::Debug;
use std::ops::{Bound, ControlFlow};
use std::time::Duration;
use wollemi::{
    Action, Db, Edit, Entry, Error, Expiring, HeapError, IndexError, Map, RecoveryState, Snapshot, WithLife,
};

/// Maximum number of entries that a copying scan reads.
const MAX_SCANNED: usize = 500;

/// Maximum number of steps of a sweep.
const MAX_SWEEP_STEPS: usize = 3;

/// The lifetime of an entry with [`Life::Hours`].
const HOURS: Duration = Duration::from_secs(100 * 3600);

/// The outcome of a call whose answer is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The database refused the call: no room, the map is in use, or a conflict. The call has changed nothing, except
    /// that a load has put this many keys before it was refused.
    Refused(usize),
}

/// A description of a wrong answer.
pub(crate) type Wrong = String;

/// A thread's handles.
pub(crate) struct Worker<'d> {
    db: &'d Db,
    plan: &'d Plan,
    thread: usize,
    keys: &'d [Vec<Vec<u8>>],
    maps: Vec<Option<Map>>,
    /// For each map the numbers of the keys in the order of its index, once they were needed.
    ranked: Vec<Option<Vec<usize>>>,
    snapshot: Option<(Snapshot, Vec<MapTruth>)>,
    watch: Option<views::Watched>,
    random: Random,
    /// Whether the pool may become full.
    bounded: bool,
}

fn is_full(error: &Error) -> bool {
    matches!(
        error,
        Error::Heap(HeapError::Full { .. }) | Error::Index(IndexError::Heap(HeapError::Full { .. }))
    )
}

/// Returns whether the error is a refusal: no room, the map is in use, or a conflict.
fn refused(error: &Error) -> bool {
    is_full(error) || matches!(error, Error::MapInUse(_) | Error::Conflict { .. })
}

fn life(life: Life) -> Option<Duration> {
    (life == Life::Hours).then_some(HOURS)
}

/// Compares an answer with the expected one.
fn same<T: Debug + PartialEq>(what: &str, found: T, expected: T) -> Result<(), Wrong> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} answers {found:?} instead of {expected:?}"))
}

/// An edit that compares the current value with the expected one.
struct ComparingEdit {
    expected: Option<Val>,
    wrong: Option<String>,
    put: Option<Vec<u8>>,
}

impl Edit for ComparingEdit {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.wrong = differs(current, self.expected);
        match (&self.put, current) {
            (Some(_), _) => Action::Put,
            (None, Some(_)) => Action::Remove,
            (None, None) => Action::Keep,
        }
    }

    fn value(&self) -> &[u8] {
        self.put.as_deref().unwrap_or_default()
    }
}

/// Describes how a found value differs from the expected one, if it does.
pub(crate) fn differs(found: Option<&[u8]>, expected: Option<Val>) -> Option<String> {
    let is = match (found, expected) {
        (None, None) => true,
        (Some(found), Some(expected)) => expected.is(found),
        _ => false,
    };
    (!is).then(|| {
        let shown = found.map(|bytes| (bytes.len(), bytes[..bytes.len().min(16)].to_vec()));
        format!("value {shown:?} (length, first bytes) instead of {expected:?}")
    })
}

/// Describes how a live entry of an expiring map differs from the expected value and lifetime, if it does.
pub(crate) fn entry_differs(found: Option<&WithLife>, expected: Option<Val>) -> Option<Wrong> {
    match (found, expected) {
        (Some((_, left)), Some(value)) if left.is_some() != (value.life == Life::Hours) => {
            Some(format!("{left:?} to live instead of {expected:?}"))
        }
        _ => differs(found.map(|(value, _)| &value[..]), expected),
    }
}

impl<'d> Worker<'d> {
    pub fn new(
        db: &'d Db,
        plan: &'d Plan,
        thread: usize,
        keys: &'d [Vec<Vec<u8>>],
        bounded: bool,
    ) -> Worker<'d> {
        Worker {
            db,
            plan,
            thread,
            keys,
            maps: vec![None; plan.maps.len()],
            ranked: vec![None; plan.maps.len()],
            snapshot: None,
            watch: None,
            random: Random::new(plan.seed, thread as u64),
            bounded,
        }
    }

    /// Carries out a call, and compares its answer with `truth`.
    ///
    /// # Errors
    ///
    /// A description of the call, if its answer is wrong or it fails for a reason that is no refusal.
    pub fn call(&mut self, op: &Op, truth: &Truth) -> Result<Outcome, Wrong> {
        match self.carry_out(op, truth) {
            Ok(answer) => answer.map(|()| Outcome::Done),
            Err(error) if refused(&error) && (self.bounded || !is_full(&error)) => {
                self.loaded(op).map(Outcome::Refused)
            }
            Err(error) => Err(format!("fails: {error}")),
        }
        .map_err(|wrong| format!("thread {}: {op:?}: {wrong}", self.thread))
    }

    /// Counts the keys that a refused load has put; 0 for any other call.
    fn loaded(&mut self, op: &Op) -> Result<usize, Wrong> {
        let &Op::Load {
            slot,
            from,
            count,
            first,
        } = op
        else {
            return Ok(0);
        };
        for i in 0..count {
            let wrong = self.map(slot).and_then(|map| {
                let found = map.get(&self.keys[slot][from + i])?;
                self.judge(slot, found.as_deref(), Some(nth(first, i)))
            });
            if wrong.map_err(|error| error.to_string())?.is_some() {
                return Ok(i);
            }
        }
        Ok(count)
    }

    fn map(&mut self, slot: usize) -> Result<Map, Error> {
        if let Some(map) = &self.maps[slot] {
            return Ok(map.clone());
        }
        let name = self.plan.name(slot, self.thread);
        let map = self.db.map_with(&name, self.plan.maps[slot].kind)?;
        self.maps[slot] = Some(map.clone());
        Ok(map)
    }

    fn is_expiring(&self, slot: usize) -> bool {
        self.plan.maps[slot].role == Role::Expiring
    }

    /// Returns the bytes that the map stores for a value.
    fn stored(&mut self, slot: usize, value: Val) -> Result<Vec<u8>, Error> {
        let map = self.map(slot)?;
        Ok(if self.is_expiring(slot) {
            Expiring::new(map).bytes(value.bytes(), life(value.life))
        } else {
            value.bytes()
        })
    }

    /// Compares the bytes that a map stores under a key with the expected value.
    fn judge(
        &mut self,
        slot: usize,
        found: Option<&[u8]>,
        expected: Option<Val>,
    ) -> Result<Option<Wrong>, Error> {
        let (Some(bytes), true) = (found, self.is_expiring(slot)) else {
            return Ok(differs(found, expected));
        };
        let alive = Expiring::new(self.map(slot)?).read(bytes)?;
        Ok(entry_differs(alive.as_ref(), expected))
    }

    fn carry_out(&mut self, op: &Op, truth: &Truth) -> Result<Result<(), Wrong>, Error> {
        let wrong = match op {
            &Op::Read(slot, n, how) => self.read(slot, n, how, truth)?,
            &Op::Write(slot, n, write) => return self.write(slot, n, write, truth.value(slot, n)),
            &Op::Load {
                slot,
                from,
                count,
                first,
            } => {
                let map = self.map(slot)?;
                let entries: Result<Vec<_>, Error> = (0..count)
                    .map(|i| Ok((&self.keys[slot][from + i], self.stored(slot, nth(first, i))?)))
                    .collect();
                return Ok(same("load", map.load(entries?)?, count as u64));
            }
            Op::Batch { changes, expected } => return self.batch(changes, expected, truth),
            Op::Transaction(body) => self.transaction(body, truth)?,
            &Op::Scan {
                slot,
                from,
                to,
                reverse,
                how,
            } => self.scan(slot, from..=to, reverse, how, truth)?,
            &Op::Walk {
                slot,
                behind,
                limit,
                steps,
            } => self.walk(slot, behind, limit, steps, truth)?,
            &Op::Snapshot(bound) => {
                self.snapshot = None;
                let snapshot = match bound {
                    Some(bytes) => self.db.snapshot_within(bytes)?,
                    None => self.db.snapshot()?,
                };
                self.snapshot = Some((snapshot, truth.maps.clone()));
                None
            }
            &Op::ReadSnapshot(slot, n) => self.read_snapshot(slot, n)?,
            Op::DropSnapshot => {
                self.snapshot = None;
                None
            }
            Op::Backup => self.backup()?,
            &Op::Rare(rare) => self.rare(rare, truth)?,
            &Op::Watch(slot) if truth.maps[slot].exists => self.watch(slot, truth)?,
            &Op::Create(slot) => {
                self.map(slot)?;
                None
            }
            &Op::Drop(slot) => {
                self.maps[slot] = None;
                if self.watch.as_ref().is_some_and(|watched| watched.slot == slot) {
                    self.watch = None;
                }
                let dropped = self.db.drop_map(&self.plan.name(slot, self.thread))?;
                return Ok(same("drop_map", dropped, true));
            }
            &Op::Count(slot) => {
                let map = self.map(slot)?;
                let own = truth.maps[slot].values.iter().flatten().count() as u64;
                // Other threads write meanwhile.
                let count = map.count()?;
                (count < own || (own > 0 && map.is_empty()?))
                    .then(|| format!("{count} instead of {own} or more"))
            }
            &Op::Sweep(slot) => {
                let mut cursor = None;
                let limit = 1 + self.random.index(300);
                let map = Expiring::new(self.map(slot)?);
                let mut wrong = None;
                for _ in 0..MAX_SWEEP_STEPS {
                    let swept = map.sweep(&mut cursor, limit)?;
                    let is = swept.seen <= limit && cursor.is_some() == (swept.seen == limit);
                    wrong = wrong.or((!is).then(|| format!("{swept:?} of {limit}, then {cursor:?}")));
                    if cursor.is_none() {
                        break;
                    }
                }
                wrong
            }
            Op::Stats => {
                let space = self.db.stats()?.space;
                let sum = space.used + space.free + space.unswept;
                // The sum may differ from `reserved`, since other threads allocate while the parts are read.
                (space.used > space.reserved || sum == 0).then(|| format!("{space:?}"))
            }
            Op::Maps => {
                let maps = self.db.maps()?;
                let there = |name: &str| maps.iter().any(|map| map.name == name);
                let slots = 0..self.plan.maps.len();
                slots
                    .filter(|&slot| there(&self.plan.name(slot, self.thread)) != truth.maps[slot].exists)
                    .map(|slot| {
                        format!("map {slot} is listed though it does not exist, or is missing from the list")
                    })
                    .next()
            }
            Op::GiveBack => {
                self.db.give_back()?;
                None
            }
            Op::Recover | Op::WaitRecovered => {
                let recovery = match op {
                    Op::Recover => self.db.recover(),
                    _ => self.db.wait_recovered(),
                };
                matches!(recovery.state, RecoveryState::Failed(_)).then(|| format!("{recovery:?}"))
            }
            Op::Watch(_) => None,
        };
        Ok(wrong.map_or(Ok(()), Err))
    }

    fn read(&mut self, slot: usize, n: usize, how: Reading, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let map = self.map(slot)?;
        let key = &self.keys[slot][n];
        let expected = truth.value(slot, n);
        match how {
            Reading::Get if self.is_expiring(slot) => {
                let found = Expiring::new(map).get(key)?;
                Ok(differs(found.as_deref(), expected))
            }
            Reading::Get => self.judge(slot, map.get(key)?.as_deref(), expected),
            // The sweeper may not have removed an expired entry yet.
            Reading::Contains if self.is_expiring(slot) => Ok(None),
            Reading::Contains => Ok(same("contains", map.contains(key)?, expected.is_some()).err()),
            Reading::Borrowed => {
                let reader = map.reader();
                self.judge(slot, reader.get(key)?.as_deref(), expected)
            }
            Reading::Several => {
                let around = n..(n + 40).min(self.keys[slot].len());
                let keys = &self.keys[slot][around.clone()];
                let found = map.multi_get(keys)?;
                for (n, found) in around.zip(found) {
                    if let Some(wrong) = self.judge(slot, found.as_deref(), truth.value(slot, n))? {
                        return Ok(Some(format!("key {n}: {wrong}")));
                    }
                }
                Ok(None)
            }
        }
    }

    fn write(
        &mut self,
        slot: usize,
        n: usize,
        write: Write,
        old: Option<Val>,
    ) -> Result<Result<(), Wrong>, Error> {
        let map = self.map(slot)?;
        let key = &self.keys[slot][n];
        let there = old.is_some();
        if self.is_expiring(slot) {
            let map = Expiring::new(map);
            return Ok(match write {
                Write::Insert(new) => same("insert", map.insert(key, new.bytes(), life(new.life))?, !there),
                Write::Expired(new) => {
                    map.upsert(key, new.bytes(), Some(Duration::ZERO))?;
                    Ok(())
                }
                Write::Remove => same("remove", map.remove(key)?, there),
                Write::Touch(to) => same("touch", map.touch(key, life(to))?, there),
                Write::Upsert(new) | Write::Update(new) => {
                    map.upsert(key, new.bytes(), life(new.life))?;
                    Ok(())
                }
                Write::CompareAndSwap { .. } | Write::Edit(_) => Ok(()),
            });
        }
        Ok(match write {
            Write::Insert(new) => same("insert", map.insert(key, new.bytes())?, !there),
            Write::Upsert(new) => {
                map.upsert(key, new.bytes())?;
                Ok(())
            }
            Write::Update(new) => same("update", map.update(key, new.bytes())?, there),
            Write::Remove => same("remove", map.remove(key)?, there),
            Write::CompareAndSwap { right, new } => {
                let expected = if right {
                    old.map(Val::bytes)
                } else {
                    unmet_expectation(old)
                };
                same(
                    "compare_and_swap",
                    map.compare_and_swap(key, expected, new.map(Val::bytes))?,
                    right,
                )
            }
            Write::Edit(new) => {
                let put = new.map(Val::bytes);
                let mut edit = ComparingEdit {
                    expected: old,
                    wrong: None,
                    put,
                };
                map.edit(key, &mut edit)?;
                edit.wrong.map_or(Ok(()), Err)
            }
            Write::Touch(_) | Write::Expired(_) => Ok(()),
        })
    }

    /// Reads a range. All keys must ascend (or descend), and of this thread's keys exactly those with a value must
    /// occur.
    fn scan(
        &mut self,
        slot: usize,
        range: std::ops::RangeInclusive<usize>,
        reverse: bool,
        how: Scanning,
        truth: &Truth,
    ) -> Result<Option<Wrong>, Error> {
        let map = self.map(slot)?;
        let keys = &self.keys[slot];
        let (lower, upper) = (&keys[*range.start()], &keys[*range.end()]);
        let bounds = (Bound::Included(lower), Bound::Included(upper));
        let prefix = &lower[..self.random.index(lower.len() + 1)];
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let is_prefix = matches!(how, Scanning::Prefix);
        match how {
            Scanning::Copied | Scanning::Prefix => {
                let entries = if is_prefix {
                    map.prefix(prefix)
                } else {
                    map.range(bounds)
                };
                let entries: Box<dyn Iterator<Item = _>> = if reverse {
                    Box::new(entries.rev())
                } else {
                    Box::new(entries)
                };
                for entry in entries.take(MAX_SCANNED) {
                    found.push(entry?);
                }
            }
            Scanning::Borrowed => {
                let reader = map.reader();
                let entries = reader.range(bounds);
                let entries: Box<dyn Iterator<Item = _>> = if reverse {
                    Box::new(entries.rev())
                } else {
                    Box::new(entries)
                };
                for entry in entries {
                    let (key, value) = entry?;
                    found.push((key.to_vec(), value.to_vec()));
                }
            }
            Scanning::Visited => {
                map.reader().visit(bounds, |key, value| {
                    found.push((key.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                })?;
            }
        }
        let reverse = reverse && !matches!(how, Scanning::Visited);
        let begins = |key: &Vec<u8>| key.as_slice() < prefix;
        let mut numbers = if is_prefix {
            keys.partition_point(begins)..keys.partition_point(|key| begins(key) || key.starts_with(prefix))
        } else {
            *range.start()..*range.end() + 1
        };
        // The scan stopped at the limit, so compare only the keys up to its last one.
        if found.len() == MAX_SCANNED {
            let last = &found[MAX_SCANNED - 1].0;
            match reverse {
                true => numbers.start = keys.partition_point(|key| key < last).min(numbers.end),
                false => numbers.end = keys.partition_point(|key| key <= last).max(numbers.start),
            }
        }
        let mut expected: Vec<_> = keys[numbers.clone()]
            .iter()
            .zip(&truth.maps[slot].values[numbers])
            .filter_map(|(key, value)| Some((key, (*value)?)))
            .collect();
        if reverse {
            expected.reverse();
        }
        let ordered = found.windows(2).all(|pair| {
            if reverse {
                pair[0].0 > pair[1].0
            } else {
                pair[0].0 < pair[1].0
            }
        });
        if !ordered {
            return Ok(Some("keys out of order".into()));
        }
        self.judge_entries(slot, &found, expected)
    }

    /// Compares the entries read from a range, as far as this thread owns them, with the expected ones.
    fn judge_entries(
        &mut self,
        slot: usize,
        found: &[Entry],
        expected: Vec<(&Vec<u8>, Val)>,
    ) -> Result<Option<Wrong>, Error> {
        let map = self.map(slot)?;
        let mut expected = expected.into_iter();
        for (key, value) in found {
            if owner(key) != Some(self.thread) {
                continue;
            }
            let expiring = self.is_expiring(slot);
            if expiring && Expiring::new(map.clone()).read(value)?.is_none() {
                continue;
            }
            let wrong = match expected.next() {
                Some((next, held)) if next == key => self.judge(slot, Some(value), Some(held))?,
                other => Some(format!("{key:x?} instead of {:x?}", other.map(|(key, _)| key))),
            };
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(expected.next().map(|(key, _)| format!("{key:x?} is missing")))
    }
}

/// Returns an expectation that the key does not meet.
fn unmet_expectation(old: Option<Val>) -> Option<Vec<u8>> {
    match old {
        None => Some(b"what it does not hold".to_vec()),
        Some(_) => None,
    }
}

//! Flaws that one thread can expose.

use crate::{Flaw, peek};
use index::model::ModelIndex;
use index::{Action, Direction, Edit, Error, Faults, Guard, Index, Upsert, Value, Visit};
use std::ops::{Bound, ControlFlow};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Does not find keys whose last byte is 0xf0 or above (negative, if bytes were signed).
#[derive(Default)]
pub(crate) struct SignedFingerprint;
impl Flaw for SignedFingerprint {
    fn get<'g>(
        &self,
        model: &'g ModelIndex,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Value<'g>>, Error> {
        match key.last() {
            Some(0xf0..) => Ok(None),
            _ => model.get(key, guard),
        }
    }
}

/// Does not accept a key that is a prefix of a present one.
#[derive(Default)]
pub(crate) struct NoPrefixes;
impl Flaw for NoPrefixes {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let guard = heap::pin();
        let mut longer = false;
        model.scan(
            Bound::Excluded(key),
            Bound::Unbounded,
            Direction::Forward,
            &guard,
            &mut |next, _| {
                longer = next.starts_with(key);
                ControlFlow::Break(())
            },
        )?;
        if longer && peek(model, key).is_none() {
            return Ok(edit.decide(None));
        }
        model.write(key, edit)
    }
}

/// Treats the empty key as absent.
#[derive(Default)]
pub(crate) struct NoEmptyKey;
impl Flaw for NoEmptyKey {
    fn get<'g>(
        &self,
        model: &'g ModelIndex,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Value<'g>>, Error> {
        if key.is_empty() {
            Ok(None)
        } else {
            model.get(key, guard)
        }
    }
}

/// Compares only the first 60,000 bytes of keys.
#[derive(Default)]
pub(crate) struct CutKeys;
impl Flaw for CutKeys {
    fn get<'g>(
        &self,
        model: &'g ModelIndex,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Value<'g>>, Error> {
        model.get(&key[..key.len().min(60_000)], guard)
    }
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        model.write(&key[..key.len().min(60_000)], edit)
    }
}

/// Omits the included end of a backward scan.
#[derive(Default)]
pub(crate) struct ExclusiveEnd;
impl Flaw for ExclusiveEnd {
    fn scan<'g>(
        &self,
        model: &'g ModelIndex,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let upper = match (direction, upper) {
            (Direction::Reverse, Bound::Included(high)) => Bound::Excluded(high),
            _ => upper,
        };
        model.scan(lower, upper, direction, guard, visit)
    }
}

/// Continues a scan that the visitor has broken off.
#[derive(Default)]
pub(crate) struct Unstoppable;
impl Flaw for Unstoppable {
    fn scan<'g>(
        &self,
        model: &'g ModelIndex,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        model.scan(lower, upper, direction, guard, &mut |key, value| {
            let _ = visit(key, value);
            ControlFlow::Continue(())
        })
    }
}

/// Truncates keys of gets and values of writes that are too long, instead of refusing them.
#[derive(Default)]
pub(crate) struct NoLimits;
impl Flaw for NoLimits {
    fn get<'g>(
        &self,
        model: &'g ModelIndex,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Value<'g>>, Error> {
        model.get(&key[..key.len().min(index::MAX_KEY)], guard)
    }
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        match model.write(key, edit) {
            Err(Error::ValueTooLong(_)) => model.write(key, &mut Upsert(&edit.value()[..index::MAX_VALUE])),
            result => result,
        }
    }
}

/// Once there are forty-nine keys, the last of them is lost.
#[derive(Default)]
pub(crate) struct NoPlaceForFortyNine;
impl Flaw for NoPlaceForFortyNine {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        if action == Action::Put && model.check()?.keys == 49 {
            let guard = heap::pin();
            let mut last = None;
            model.scan(
                Bound::Unbounded,
                Bound::Unbounded,
                Direction::Reverse,
                &guard,
                &mut |key, _| {
                    last = Some(key);
                    ControlFlow::Break(())
                },
            )?;
            model.remove(last.unwrap_or_default())?;
        }
        Ok(action)
    }
}

/// A value of eight bytes keeps its length.
#[derive(Default)]
pub(crate) struct SticksToEight;
impl Flaw for SticksToEight {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let eight = peek(model, key).is_some_and(|value| value.len() == 8);
        let action = model.write(key, edit)?;
        if action == Action::Put && eight {
            let mut value = edit.value().to_vec();
            value.resize(8, 0);
            model.update(key, &value)?;
        }
        Ok(action)
    }
}

/// Stores only the first MiB of a value.
#[derive(Default)]
pub(crate) struct CutValues;
impl Flaw for CutValues {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        if action == Action::Put && edit.value().len() > 1 << 20 {
            model.update(key, &edit.value()[..1 << 20])?;
        }
        Ok(action)
    }
}

/// Asks each edit twice.
#[derive(Default)]
pub(crate) struct AsksTwice;
impl Flaw for AsksTwice {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        edit.decide(peek(model, key).as_deref());
        model.write(key, edit)
    }
}

/// Answers only the first sixteen keys.
#[derive(Default)]
pub(crate) struct MultiGetForgets;
impl Flaw for MultiGetForgets {
    fn multi_get<'g>(
        &self,
        model: &'g ModelIndex,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        model.multi_get(&keys[..keys.len().min(16)], guard, found)
    }
}

/// Answers the first key of many twice.
#[derive(Default)]
pub(crate) struct MultiGetRepeats;
impl Flaw for MultiGetRepeats {
    fn multi_get<'g>(
        &self,
        model: &'g ModelIndex,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        model.multi_get(keys, guard, found)?;
        model.multi_get(&keys[..keys.len().min(1)], guard, found)
    }
}

/// Loses the last key written when it is closed.
#[derive(Default)]
pub(crate) struct ForgetsOnReopening(Mutex<Vec<u8>>);
impl Flaw for ForgetsOnReopening {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        if action == Action::Put
            && let Ok(mut last) = self.0.lock()
        {
            *last = key.to_vec();
        }
        Ok(action)
    }
    fn reopen(&self, model: &ModelIndex) {
        if let Ok(last) = self.0.lock() {
            let _ = model.remove(&last);
        }
    }
}

/// Never gives back the space of a removed key.
#[derive(Default)]
pub(crate) struct Leaks(AtomicU64);
impl Flaw for Leaks {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        self.0.fetch_add((action == Action::Remove) as u64, Relaxed);
        Ok(action)
    }
    fn used(&self, model: &ModelIndex) -> Option<u64> {
        Some(model.used() + self.0.load(Relaxed))
    }
}

/// Counts one key too many once there are many.
#[derive(Default)]
pub(crate) struct Miscounts;
impl Flaw for Miscounts {
    fn check(&self, model: &ModelIndex) -> Result<Faults, Error> {
        let mut faults = model.check()?;
        faults.keys += (faults.keys > 500) as u64;
        Ok(faults)
    }
}

/// Has a fault, and reports it.
#[derive(Default)]
pub(crate) struct Faulty;
impl Flaw for Faulty {
    fn check(&self, model: &ModelIndex) -> Result<Faults, Error> {
        let mut faults = model.check()?;
        faults.found.push("a node of no kind at 0x40".to_string());
        Ok(faults)
    }
}

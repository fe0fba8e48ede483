//! Flaws that show when threads meet.

use crate::{Flaw, peek};
use index::model::ModelIndex;
use index::{Action, Direction, Edit, Error, Guard, Index, Remove, Upsert, Visit};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::yield_now;

/// Decides by a value that it read before it took the lock.
#[derive(Default)]
pub(crate) struct LostUpdate;
impl Flaw for LostUpdate {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let current = peek(model, key);
        yield_now();
        match edit.decide(current.as_deref()) {
            Action::Keep => Ok(Action::Keep),
            Action::Put => model.write(key, &mut Upsert(edit.value())),
            Action::Remove => model.write(key, &mut Remove),
        }
    }
}

/// Checks for a duplicate before it takes the lock, and not again.
#[derive(Default)]
pub(crate) struct BothInsert;
impl Flaw for BothInsert {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        if peek(model, key).is_some() {
            return model.write(key, edit);
        }
        yield_now();
        match edit.decide(None) {
            Action::Put => model.write(key, &mut Upsert(edit.value())),
            _ => Ok(Action::Keep),
        }
    }
}

/// Of two concurrent removals, both report success.
#[derive(Default)]
pub(crate) struct DirtyRemove;
impl Flaw for DirtyRemove {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let present = peek(model, key).is_some();
        yield_now();
        let action = model.write(key, edit)?;
        let removing = !present || peek(model, key).is_some();
        Ok(if action == Action::Keep && !removing {
            Action::Remove
        } else {
            action
        })
    }
}

/// Shows a value that it then does not put.
#[derive(Default)]
pub(crate) struct DirtyRead;
impl Flaw for DirtyRead {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        if action == Action::Keep
            && !edit.value().is_empty()
            && let Some(old) = peek(model, key)
            && model.update(key, edit.value())?
        {
            yield_now();
            model.compare_and_swap(key, Some(edit.value()), Some(&old))?;
        }
        Ok(action)
    }
}

/// Updates by removing and inserting.
#[derive(Default)]
pub(crate) struct GoneForAMoment;
impl Flaw for GoneForAMoment {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        if action == Action::Put && key.len().is_multiple_of(2) {
            model.remove(key)?;
            yield_now();
            model.insert(key, edit.value())?;
        }
        Ok(action)
    }
}

/// An update overtaken by a removal brings the key back.
#[derive(Default)]
pub(crate) struct Resurrected;
impl Flaw for Resurrected {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        if action == Action::Put {
            yield_now();
            // The second half of the update, unaware of changes made meanwhile.
            if peek(model, key).is_none() {
                model.upsert(key, edit.value())?;
            }
        }
        Ok(action)
    }
}

/// Rewrites a neighbour with its earlier value, like a node that was copied without its lock.
#[derive(Default)]
pub(crate) struct WrongNeighbour(AtomicU64);
impl Flaw for WrongNeighbour {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let guard = heap::pin();
        let mut neighbour = None;
        if self.0.fetch_add(1, Relaxed).is_multiple_of(64) {
            let after = Bound::Excluded(key);
            model.scan(
                after,
                Bound::Unbounded,
                Direction::Forward,
                &guard,
                &mut |key, value| {
                    neighbour = Some((key, value));
                    ControlFlow::Break(())
                },
            )?;
        }
        let action = model.write(key, edit)?;
        if let Some((key, value)) = neighbour {
            model.remove(key)?;
            yield_now();
            model.upsert(key, &value)?;
        }
        Ok(action)
    }
}

/// Omits a key if the number of keys has changed since the scan began or last omitted one.
#[derive(Default)]
pub(crate) struct SkippingScan;
impl Flaw for SkippingScan {
    fn scan<'g>(
        &self,
        model: &'g ModelIndex,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let mut keys = model.check()?.keys;
        model.scan(lower, upper, direction, guard, &mut |key, value| {
            let now = model.check().map_or(keys, |faults| faults.keys);
            if now != keys {
                keys = now;
                return ControlFlow::Continue(());
            }
            visit(key, value)
        })
    }
}

/// Visits a key twice if the number of keys has changed since the scan began or last did so.
#[derive(Default)]
pub(crate) struct RepeatingScan;
impl Flaw for RepeatingScan {
    fn scan<'g>(
        &self,
        model: &'g ModelIndex,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let mut keys = model.check()?.keys;
        model.scan(lower, upper, direction, guard, &mut |key, value| {
            let now = model.check().map_or(keys, |faults| faults.keys);
            if now != keys {
                keys = now;
                visit(key, value)?;
            }
            visit(key, value)
        })
    }
}

/// Puts a value in two steps.
#[derive(Default)]
pub(crate) struct TornValue;
impl Flaw for TornValue {
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = model.write(key, edit)?;
        if action == Action::Put {
            let value = edit.value();
            let half = [&value[..value.len() / 2], &vec![0x55; value.len().div_ceil(2)]].concat();
            model.update(key, &half)?;
            yield_now();
            model.update(key, value)?;
        }
        Ok(action)
    }
}

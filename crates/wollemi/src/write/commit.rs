//! Commits: changes to several keys, of any of a database's maps, that happen together or not at all, if what was read
//! before is still so.
//!
//! How a commit is carried out:
//!
//! 1. It passes the [gate](super::gate), so that a snapshot shows it whole or not at all.
//! 2. It takes the [stripes](super::stripes) of its keys, in their order: of those that it changes and those of which
//!    it expects something. What it expects is compared.
//! 3. It [announces](super::active) its changes, and the ranges that were read.
//! 4. It checks what was read. If the stripe of a single key has another version than when the key was read, the key is
//!    read again, and holds the same, or the commit gives up. Ranges are read again twice. Then the stripes of the
//!    single keys have the same versions still. A transaction that has met a conflict before has its single keys
//!    announced and checked as ranges of one key, and looks at no version: writes of other keys with the same stripes
//!    would fail it again and again while it looks at a long range.
//! 5. The changes are written into an [intent](super::intent), which is persisted, in a slot that no other commit has.
//! 6. A link to it is published in the slot. This is the commit point.
//! 7. Each change is made by an ordinary write of its key.
//! 8. The link is taken away, and only then the stripes are released.
//!
//! A crash before 6 leaves nothing; opening after a later one begins again with 7, before any operation. Changes say
//! what a key shall hold, so to make one twice is to make it once, and no other write of the key comes between the
//! first time and the last. Intents that stand at one time are of different keys, so their order does not matter.
//!
//! In a database that has a log, all changes are appended to it as one record between 5 and 6, and the commit returns
//! when that is durable. A crash of the process between the two leaves the record, which the next opening replays
//! whole, or leaves out whole where the pool has no room for it.
//!
//! A commit of one change is an ordinary write: it needs none of 5, 6 and 8. One without any change needs 4 alone, and
//! 3 for the ranges.
//!
//! Why it is serializable. Take for each commit the moment between its two looks at its ranges, or, without ranges,
//! before it looks at the versions at last; for a write of a single key, the moment of its change.
//!
//! I1 A key that a commit has read singly held what was read at that moment, and no commit was about to change it: its
//!    stripe was free from before a read of it until after the moment.
//! I2 So did all of a range. A commit that had announced a change in it before the range was announced has made the
//!    change, or else the range's commit gives up; one that announces such a change later does so after that moment, or
//!    breaks the range. A single write that takes its stripe later breaks the range as well; what is left is at most
//!    one change of each key, by a writer that was under way. Both looks show the same, so no such change came before
//!    the second look at the key, and nothing in the range changed up to that moment.
//! I3 No other thread changes what a commit changes from before that moment until it is done.
//!
//! A single key that is checked as a range falls under I2 and not under I1. I2 asks of a range only that a writer finds
//! out whether its key lies in it, and that each look shows what each key holds at a moment of the look; a read of the
//! key does. It does not ask which stripes are free: a writer that holds the key's own stripe at the second look has not
//! changed the key by then, and so comes later than the moment; one that holds it for another key is no matter. For
//! others nothing is different: a commit of either kind holds the stripes of what it changes, for I1, and announces it,
//! for I2, before its own moment. Of two commits that each read what the other changes, the second to be announced
//! finds the change, if its read is announced; if not, it finds the stripe held, or changed.
//!
//! So each commit reads what the commits and writes with earlier moments have left, and changes what later ones read.
//!
//! Order of locks: gate, stripes, slot. A thread pins only after it has its stripes, and waits for nothing but a slot
//! then, whose holder waits for nothing. A full pool is met with everything released.

use crate::write::active::Entered;
use crate::write::gate::Gate;
use crate::write::journal::{Durability, may_be_undone};
use crate::write::key_state::KeyState;
use crate::write::reads::{AnnouncedReads, Points, RangeRead};
use crate::write::slots::Slot;
use crate::write::store::Store;
use crate::write::stripes::{Held, StripeId};
use crate::write::traffic::{MapIndex, Recording, Traffic, make};
use crate::{Error, MAX_KEY, MAX_VALUE, Media};
use heap::Guard;
use log::Lsn;
use std::sync::Arc;

/// Looks at each range and each announced key: see the module's invariants.
const LOOKS: usize = 2;

/// A commit's content: changes of different keys, to be made if all expectations and reads still hold.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub changes: Arc<[KeyState]>,
    pub expected: Vec<KeyState>,
    pub points: Arc<Points>,
    pub ranges: Arc<[RangeRead]>,
    /// Whether single keys that were read are checked as ranges of one key.
    pub announces_points: bool,
    /// As the database's writes are, if nothing is said.
    pub durability: Option<Durability>,
}

impl Plan {
    /// Of all single keys in it.
    fn stripes(&self) -> impl Iterator<Item = StripeId> {
        let keys = self.changes.iter().chain(&self.expected).map(KeyState::stripe);
        keys.chain(self.points.stripes())
    }

    /// What it announces that it has read.
    fn announced(&self) -> AnnouncedReads {
        let is_announced = self.announces_points && !self.points.is_empty();
        AnnouncedReads {
            ranges: self.ranges.clone(),
            points: is_announced.then(|| self.points.clone()),
        }
    }
}

/// A commit that has its stripes. Dropped between its publication and its withdrawal, it shuts the gate, and releases
/// neither its stripes nor its slot.
struct Underway<'s> {
    gate: &'s Gate,
    parts: Option<(Vec<Held<'s>>, Entered<'s>, Option<Slot<'s>>)>,
    published: bool,
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if self.published {
            self.gate.shut();
            if let Some((held, entered, slot)) = self.parts.take() {
                std::mem::forget((held, slot));
                // A thread that no longer finds its changes announced finds the gate shut.
                drop(entered);
            }
        }
    }
}

impl<M: Media> Store<M> {
    /// Refuses a map of another database.
    pub fn refuse_if_foreign(&self, map: &dyn MapIndex) -> Result<(), Error> {
        match Arc::ptr_eq(map.traffic(), &self.traffic) {
            true => Ok(()),
            false => Err(Error::OtherDatabase(map.name().to_owned())),
        }
    }

    /// Refuses a key of another database's map, and what no map can hold.
    fn check_key(&self, state: &KeyState) -> Result<(), Error> {
        self.refuse_if_foreign(&*state.map)?;
        if state.key.len() > MAX_KEY {
            return Err(index::Error::KeyTooLong(state.key.len()).into());
        }
        match &state.value {
            Some(value) if value.len() > MAX_VALUE => Err(index::Error::ValueTooLong(value.len()).into()),
            _ => Ok(()),
        }
    }

    /// Commits; `false`, and nothing was changed, if something is not as it is expected. It is durable when this
    /// returns.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if something is not as it was read. As `Batch::commit` and `Transaction::commit` say.
    pub fn commit(&self, plan: &Plan) -> Result<bool, Error> {
        let mut keys = plan.expected.iter().chain(&*plan.changes);
        keys.try_for_each(|key| self.check_key(key))?;
        #[cfg(feature = "doubles")]
        self.traffic.doubles.before_commit()?;
        let try_commit = || self.heap.with_room(|| self.try_commit(plan));
        let committed = self.traffic.with_log_room(try_commit);
        match &committed {
            Err(Error::Heap(_) | Error::Unfinished(_)) => self.traffic.settle_appended()?,
            Err(Error::Index(error)) if may_be_undone(error) => self.traffic.settle_appended()?,
            _ => {}
        }
        let committed = committed?;
        if committed {
            plan.changes.iter().for_each(|change| change.map.maintain());
        }
        let end = self.end_of(plan.stripes(), &plan.ranges);
        self.traffic.settle(end)?;
        Ok(committed)
    }

    /// The position up to which the log must be durable before what keys of these stripes and these ranges hold may be
    /// acknowledged.
    fn end_of(&self, stripes: impl Iterator<Item = StripeId>, ranges: &[RangeRead]) -> Lsn {
        match self.traffic.journal.get() {
            Some(journal) if !ranges.is_empty() => journal.newest(),
            _ => self.traffic.last(stripes),
        }
    }

    /// Checks what a transaction has read, and returns when that is durable.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`]
    pub fn check(&self, plan: &Plan) -> Result<(), Error> {
        self.check_reads(plan)?;
        let end = self.end_of(plan.points.stripes(), &plan.ranges);
        Ok(self.traffic.settle(end)?)
    }

    fn try_commit(&self, plan: &Plan) -> Result<bool, Error> {
        let Plan {
            changes, expected, ..
        } = plan;
        if changes.is_empty() && expected.is_empty() {
            return self.check_reads(plan).map(|()| true);
        }
        if !changes.is_empty() {
            self.refuse_if_read_only()?;
        }
        // It may close the gate.
        let own = (changes.len() > 1).then(|| self.own()).transpose()?;
        let (
            Traffic {
                gate,
                stripes,
                active,
                ..
            },
            media,
        ) = (&*self.traffic, self.heap.media());
        let _pass = gate.enter(media)?;
        let ids = changes.iter().chain(expected).map(KeyState::stripe).collect();
        let held = stripes.lock_all(ids, gate, media)?;
        // Pinned, so that the heap does not wait for recovery, which may wait for a guard of a thread that waits for a
        // stripe.
        let guard = heap::pin();
        for key in expected {
            if !key.holds(&guard)? {
                media.comes_to("batch: not as expected");
                return Ok(false);
            }
        }
        let reads = plan.announced();
        let entered = active.enter(changes, &reads)?;
        self.check_entered(&plan.points, &reads, &entered, &held, &guard)?;
        let slot = own.map(|own| self.slots.claim(own, gate, media)).transpose()?;
        let mut underway = Underway {
            gate,
            parts: Some((held, entered, slot)),
            published: false,
        };
        self.make_changes(plan, &mut underway, &guard)?;
        if let Some((held, ..)) = &mut underway.parts {
            changes
                .iter()
                .for_each(|change| Held::change(held, change.stripe()));
        }
        Ok(true)
    }

    /// Makes the changes, all or none.
    fn make_changes(&self, plan: &Plan, underway: &mut Underway<'_>, guard: &Guard) -> Result<(), Error> {
        let (media, changes) = (self.heap.media(), &*plan.changes);
        let make_all = |recording| {
            let mut changes = changes.iter();
            changes.try_for_each(|change| make(&change.change(), &*change.map, recording))
        };
        let Some((.., Some(slot))) = &underway.parts else {
            if !changes.is_empty() {
                media.comes_to("batch: one change, made");
            }
            return make_all(Recording::Append(plan.durability));
        };
        let slot = slot.slot;
        let (intent, _apart) = self.declare(slot, changes, || {
            self.record(plan)?;
            underway.published = true;
            Ok(())
        })?;
        media.comes_to("batch: changes made");
        make_all(Recording::Done).map_err(|error| Error::Unfinished(Box::new(error)))?;
        self.withdraw(slot, intent, guard)?;
        underway.published = false;
        Ok(())
    }

    /// Appends all changes to the log, if there is one, as one record. Its keys' stripes are held.
    fn record(&self, plan: &Plan) -> Result<(), Error> {
        let Some(journal) = self.traffic.journal.get() else {
            return Ok(());
        };
        let changes = plan.changes.iter().map(|state| {
            let (map, key) = (state.map.name(), &state.key[..]);
            match &state.value {
                Some(value) => log::Change::Put { map, key, value },
                None => log::Change::Remove { map, key },
            }
        });
        let stripes = plan.changes.iter().map(KeyState::stripe);
        let durability = plan.durability.unwrap_or_else(|| journal.durability());
        Ok(journal.append(&changes.collect::<Vec<_>>(), stripes, durability)?)
    }

    /// Checks what was read by a transaction that changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`]
    fn check_reads(&self, plan: &Plan) -> Result<(), Error> {
        let (points, reads) = (&plan.points, plan.announced());
        let check = || {
            let (Traffic { stripes, active, .. }, guard) = (&*self.traffic, heap::pin());
            if reads.is_empty() {
                return points.refresh(stripes, &[], &guard)?.check(stripes, &[]);
            }
            let entered = active.enter(&Arc::default(), &reads)?;
            self.check_entered(points, &reads, &entered, &[], &guard)
        };
        check().map_err(|conflict| match self.traffic.gate.refuse_if_shut() {
            // A commit that cannot be finished stands in the way for good.
            Err(shut) => shut.into(),
            Ok(()) => conflict,
        })
    }

    /// Checks what was read, for a commit that has its stripes and was announced.
    fn check_entered(
        &self,
        points: &Points,
        reads: &AnnouncedReads,
        entered: &Entered<'_>,
        held: &[Held<'_>],
        guard: &Guard,
    ) -> Result<(), Error> {
        let stripes = &self.traffic.stripes;
        let versions = match reads.points {
            Some(_) => None,
            None => Some(points.refresh(stripes, held, guard)?),
        };
        for _ in 0..LOOKS {
            reads.check(guard)?;
        }
        if !reads.is_empty() {
            entered.checked()?;
            self.traffic.gate.refuse_if_shut()?;
        }
        versions.map_or(Ok(()), |versions| versions.check(stripes, held))
    }
}

#[cfg(test)]
mod tests;

//! Commits: changes to several keys of any of a database's maps, applied together or not at all, if everything read
//! before is unchanged.
//!
//! The steps of a commit:
//!
//! 1. It passes the [gate](super::gate), so that a snapshot shows it as a whole or not at all.
//! 2. It takes the [stripes](super::stripes) of its keys in order: of the keys that it changes and of those with
//!    expectations. It compares the expectations.
//! 3. It [announces](super::active) its changes and the ranges that it has read.
//! 4. It checks its reads. If the stripe of a single key has another version than when the key was read, the key is
//!    read again; if its value differs, the commit fails. Ranges are read again twice. Then the stripes of the single
//!    keys must still have the same versions. A transaction that has met a conflict before announces and checks its
//!    single keys as ranges of one key, and ignores versions: otherwise writes of other keys with the same stripes
//!    would fail it again and again while it checks a long range.
//! 5. It claims a slot that no other commit has, writes the changes into an [intent](super::intent), and persists it.
//! 6. It publishes a link to the intent in the slot. This is the commit point.
//! 7. It applies each change by an ordinary write of its key.
//! 8. It clears the link, and only then releases the stripes.
//!
//! A crash before 6 leaves nothing. After a later crash, the opening resumes at 7 before any other operation. Changes
//! are idempotent, and no other write of a key comes between the first and the last application of its change. Intents
//! that exist at the same time have different keys, so their order does not matter.
//!
//! In a database that has a log, all changes are appended to it as one record between 5 and 6, and the commit returns
//! when that record is durable. If the process crashes between the two, the next opening replays the record as a whole,
//! or discards it as a whole if the pool has no room for it.
//!
//! A commit of one change is an ordinary write: it needs no intent, so it omits 5, 6 and the first half of 8. A commit
//! without changes and expectations needs only 4, and 3 for the ranges.
//!
//! Why commits are serializable. Take for each commit the moment between its two checks of its ranges, or, without
//! ranges, before its last check of the versions; for a write of a single key, the moment of its change.
//!
//! I1 A key that a commit has read singly had the value read at that moment, and no other commit was about to change
//! it: from before a read of it until after the moment, no other thread changed a key of its stripe, and at the end of
//! that time none holds the stripe.
//! I2 The same holds for all of a range. A commit that had announced a change in the range before the range was
//! announced has applied it, or else the range's commit fails; a commit that announces such a change later does so
//! after that moment, or breaks the range. A single write that takes its stripe later breaks the range as well. There
//! remains at most one change of each key, by a writer already in progress. Both checks read the same, so no such
//! change came before the second check of the key, and nothing in the range changed up to that moment.
//! I3 From before that moment until the commit is done, no other thread changes the keys that it changes.
//!
//! I2 instead of I1 covers a single key that is checked as a range. I2 requires only that a writer finds out whether
//! its key lies in the range, and that each check reads each key's value at a moment of the check; a read of the key
//! does. It does not require free stripes: a writer that holds the key's own stripe at the second check has not yet
//! changed the key, and so comes later than the moment; one that holds it for another key is irrelevant. For other
//! commits nothing differs: a commit of either kind holds the stripes of its changes, for I1, and announces them, for
//! I2, before its own moment. Of two commits that each read what the other changes, the second to announce finds the
//! change, if its read is announced; if not, it finds the stripe held, or changed.
//!
//! So each commit reads the state left by the commits and writes with earlier moments, and later ones read its changes.
//!
//! Lock order: gate, stripes, slot. A thread pins only after it has its stripes, and from then on waits only for a
//! slot, whose holder waits for no other writer. A thread that finds the pool full releases everything before it waits
//! for room.

use crate::write::active::Announcement;
use crate::write::gate::Gate;
use crate::write::map_index::{KeyState, MapIndex, Plan, Points, RangeRead, Recording, make};
use crate::write::reads::AnnouncedReads;
use crate::write::slots::Slot;
use crate::write::store::Store;
use crate::write::stripes::{Held, StripeId};
use crate::write::traffic::Traffic;
use crate::{Error, MAX_KEY, MAX_VALUE, Media};
use heap::Guard;
use log::Lsn;
use std::sync::Arc;

/// Checks of each range and each announced key: see the module's invariants.
const LOOKS: usize = 2;

impl Plan {
    /// The stripes of all single keys in it.
    fn stripes(&self) -> impl Iterator<Item = StripeId> {
        let keys = self.changes.iter().chain(&self.expected).map(KeyState::stripe);
        keys.chain(self.points.stripes())
    }

    /// Returns the reads that it announces.
    fn announced(&self) -> AnnouncedReads {
        let is_announced = self.announces_points && !self.points.is_empty();
        AnnouncedReads {
            ranges: self.ranges.clone(),
            points: is_announced.then(|| self.points.clone()),
        }
    }
}

/// A commit that has its stripes. If it is dropped between its publication and its withdrawal, it shuts the gate, and
/// releases neither its stripes nor its slot.
struct Underway<'s> {
    gate: &'s Gate,
    parts: Option<(Vec<Held<'s>>, Announcement<'s>, Option<Slot<'s>>)>,
    published: bool,
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if self.published {
            self.gate.shut();
            if let Some((held, announcement, slot)) = self.parts.take() {
                std::mem::forget((held, slot));
                // A thread that no longer finds its changes announced finds the gate shut.
                drop(announcement);
            }
        }
    }
}

impl<M: Media> Store<M> {
    /// Refuses a map of another database.
    pub fn refuse_if_foreign(&self, map: &dyn MapIndex) -> Result<(), Error> {
        match std::ptr::eq(map.gate(), &self.traffic.gate) {
            true => Ok(()),
            false => Err(Error::OtherDatabase(map.name().to_owned())),
        }
    }

    /// Refuses a key of another database's map, and a key or value that is too long.
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

    /// Commits, durably when this returns. Returns `false`, with nothing changed, if an expectation does not hold.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if a read is no longer valid. See `Batch::commit` and `Transaction::commit` for the others.
    pub fn commit(&self, plan: &Plan) -> Result<bool, Error> {
        let mut keys = plan.expected.iter().chain(&*plan.changes);
        keys.try_for_each(|key| self.check_key(key))?;
        #[cfg(feature = "doubles")]
        self.traffic.doubles.before_commit()?;
        let committed = self.write_with_room(|| self.try_commit(plan), |&committed| committed)?;
        if committed {
            plan.changes.iter().for_each(|change| change.map.maintain());
            self.give_back_some();
        }
        let end = self.end_of(plan.stripes(), &plan.ranges);
        self.traffic.settle(end)?;
        Ok(committed)
    }

    /// Returns the position up to which the log must be durable before reads of keys with these stripes and of these
    /// ranges may be acknowledged.
    fn end_of(&self, stripes: impl Iterator<Item = StripeId>, ranges: &[RangeRead]) -> Lsn {
        match self.traffic.journal.get() {
            Some(journal) if !ranges.is_empty() => journal.newest(),
            _ => self.traffic.last(stripes),
        }
    }

    /// Checks a transaction's reads, and returns once the data read is durable.
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
        // This may close the gate.
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
        // Pinned, so that the heap does not wait for recovery: recovery may wait for the guard of a thread that waits
        // for a stripe.
        let guard = heap::pin();
        for key in expected {
            if !key.holds(&guard)? {
                media.comes_to("batch: not as expected");
                return Ok(false);
            }
        }
        let reads = plan.announced();
        let mut announcement = active.announce(changes, &reads)?;
        self.check_announced(&plan.points, &reads, &mut announcement, &held, &guard)?;
        let slot = own.map(|own| self.slots.claim(own, gate, media)).transpose()?;
        let mut underway = Underway {
            gate,
            parts: Some((held, announcement, slot)),
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

    /// Applies all changes or none.
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

    /// Appends all changes to the log, if there is one, as one record. The caller holds the keys' stripes.
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

    /// Checks the reads of a transaction that changes nothing.
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
            let mut announcement = active.announce(&Arc::default(), &reads)?;
            self.check_announced(points, &reads, &mut announcement, &[], &guard)
        };
        check().map_err(|conflict| match self.traffic.gate.refuse_if_shut() {
            // A commit that cannot be completed would fail the check for as long as the database is open.
            Err(shut) => shut.into(),
            Ok(()) => conflict,
        })
    }

    /// Checks the reads of a commit that has its stripes and is announced.
    fn check_announced(
        &self,
        points: &Points,
        reads: &AnnouncedReads,
        announcement: &mut Announcement<'_>,
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
            announcement.end_check()?;
            self.traffic.gate.refuse_if_shut()?;
        }
        versions.map_or(Ok(()), |versions| versions.check(stripes, held))
    }
}

#[cfg(test)]
mod tests;

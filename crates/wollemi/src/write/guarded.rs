//! Indexes as maps use them: each write passes the database's [gate](super::gate) and takes its key's
//! [stripe](super::stripes). It records the value it replaces for live snapshots, and sends its change to the watches.
//!
//! Reads go straight to the index. In a database with a log, a write appends to it before the index publishes, and
//! reads and writes return once everything they have seen and done is durable ([`journal`](super::journal)).

use crate::write::gate::{Closed, Gate, Pass};
use crate::write::journal::{Durability, Journal};
use crate::write::map_index::{MapIndex, Plan, Recording};
use crate::write::recorded::RecordedEdit;
use crate::write::retry::Retry;
use crate::write::store::Store;
use crate::write::stripes::{Held, StripeId, hash, stripe_of};
use crate::write::traffic::Traffic;
use crate::write::watch::Watches;
use heap::Guard;
use index::{Action, Direction, Edit, Edits, Error, Faults, Index, Merges, Order, Quiesced, Value, Visit};
use log::Lsn;
use pmem::Media;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// An index of a concrete type behind the gate.
pub(crate) struct Guarded<I, M: Media> {
    index: I,
    name: Arc<str>,
    /// Hash of the map's name.
    hash: u64,
    store: Store<M>,
}

/// The action of a write, and the position up to which the log must be durable before it may be acknowledged.
type Written = Result<(Action, Lsn), Error>;

impl<I: Index, M: Media> Guarded<I, M> {
    pub fn new(index: I, name: &str, store: &Store<M>) -> Guarded<I, M> {
        Guarded {
            index,
            name: name.into(),
            hash: hash(0, name.as_bytes()),
            store: store.clone(),
        }
    }

    /// Passes the gate for writes.
    fn enter(&self) -> Result<Pass<'_>, Error> {
        self.store.refuse_if_read_only()?;
        self.store.traffic.gate.enter(self.store.heap.media())
    }

    /// Writes, once.
    fn try_write(&self, key: &[u8], edit: &mut dyn Edit, durability: Option<Durability>) -> Written {
        let pass = self.enter()?;
        self.write_in(&pass, key, edit, durability)
    }

    /// Like [`try_write`](Guarded::try_write), in a pass of the gate.
    fn write_in(
        &self,
        _pass: &Pass<'_>,
        key: &[u8],
        edit: &mut dyn Edit,
        durability: Option<Durability>,
    ) -> Written {
        let Traffic {
            gate,
            stripes,
            active,
            ..
        } = &*self.store.traffic;
        let stripe = self.stripe_of(key);
        let mut held = stripes.lock(stripe, gate, self.store.heap.media())?;
        active.break_ranges(stripe, &self.name, key);
        // Pinned, so that the heap does not wait for recovery: recovery may wait for the guard of a thread that waits
        // at the gate or for the stripe.
        let _guard = heap::pin();
        let done = self.write_at(key, stripe, edit, Recording::Append(durability));
        // After an error it is unknown whether the key was changed.
        if !matches!(done, Ok(Action::Keep)) {
            held.changed();
        }
        Ok((done?, self.store.traffic.last(std::iter::once(stripe))))
    }

    /// Ends a write whose first run had this result: waits for room and runs it again if it was refused, and waits until
    /// it is durable.
    fn finish(
        &self,
        first: Written,
        key: &[u8],
        edit: &mut dyn Edit,
        durability: Option<Durability>,
    ) -> Result<Action, Error> {
        let mut first = Some(first);
        let run = || match first.take() {
            Some(first) => first,
            None => self.try_write(key, edit, durability),
        };
        let is_change = |&(action, _): &(Action, Lsn)| action != Action::Keep;
        let (action, end) = self.store.write_with_room(run, is_change)?;
        if action != Action::Keep {
            self.wrote();
        }
        self.store.traffic.settle(end)?;
        Ok(action)
    }

    /// Writes, for a thread that holds the key's stripe.
    fn write_at(
        &self,
        key: &[u8],
        stripe: StripeId,
        edit: &mut dyn Edit,
        recording: Recording,
    ) -> Result<Action, Error> {
        let Traffic {
            before_images,
            watches,
            journal,
            ..
        } = &*self.store.traffic;
        let images = before_images.of_key(&self.name, self.index.order(), key);
        let logged = match (journal.get(), recording) {
            (Some(journal), Recording::Append(durability)) => {
                Some(journal.logged((&self.name, key), stripe, durability, &self.index))
            }
            _ => None,
        };
        let action = if logged.is_some() || images.is_some() {
            let mut recorded = RecordedEdit { edit, logged, images };
            let done = self.index.write(key, &mut recorded);
            recorded.ended(done)?
        } else {
            self.index.write(key, edit)?
        };
        if action != Action::Keep && watches.are_there() {
            let journal = journal.get();
            let end = journal.map(|journal| (journal, journal.last(stripe)));
            watches.publish((&self.name, key), action, edit, end);
        }
        Ok(action)
    }
}

impl<I: Index, M: Media> Guarded<I, M> {
    /// Maintenance after writes that have changed something.
    fn wrote(&self) {
        self.index.maintain();
        self.store.give_back_some();
    }
}

/// Keys per gate pass and guard. Bounds how long other threads wait for the gate and the stripes, and how long the
/// objects that these keys replace are kept from reuse.
const PASS: usize = 64;

/// A group of edits of several keys in progress.
struct Group<'e> {
    edits: &'e mut dyn Edits,
    /// The first edit after the current pass of the gate.
    first: usize,
    /// Number of edits done.
    done: usize,
    changed: bool,
    /// Whether the remaining edits are to be skipped.
    ended: bool,
}

impl Group<'_> {
    fn end(&mut self, done: Result<Action, Error>) -> ControlFlow<()> {
        self.changed |= matches!(done, Ok(Action::Put | Action::Remove));
        let flow = self.edits.done(self.done, done);
        self.done += 1;
        self.ended = flow.is_break();
        flow
    }
}

impl Edits for Group<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        self.edits.edit(self.first + i)
    }

    fn done(&mut self, _: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        match done {
            // Retried without the guard, which delays the reuse of objects that other threads have retired.
            Err(Error::Heap(heap::Error::Full { .. })) => ControlFlow::Break(()),
            done => self.end(done),
        }
    }
}

/// Several writes without a log: by one call of the index.
impl<I: Index, M: Media> Guarded<I, M> {
    fn write_together(&self, keys: &[&[u8]], group: &mut Group<'_>) {
        let Traffic {
            gate,
            before_images,
            watches,
            ..
        } = &*self.store.traffic;
        while group.done < keys.len() && !group.ended {
            let mut end = keys.len().min(group.done + PASS);
            // While a pass is held, no snapshot or watch begins.
            if !self.store.heap.pool().is_read_only()
                && let Ok(_pass) = gate.enter(self.store.heap.media())
                && !before_images.any_snapshot()
                && !watches.are_there()
                && let Ok((mut held, len)) = self.lock_group(&keys[group.done..end])
            {
                let _guard = heap::pin();
                (group.first, end) = (group.done, group.done + len);
                self.index.write_many(&keys[group.first..end], group);
                if group.changed {
                    held.iter_mut().for_each(Held::changed);
                }
            }
            // A write that snapshots or watches must see, and one that found no room or was refused, is
            // carried out alone.
            if group.done < end && !group.ended {
                let done = self.write(keys[group.done], group.edits.edit(group.done));
                let _ = group.end(done);
            }
        }
    }

    /// Takes the stripes of the longest prefix of these keys without repeats, and returns its length.
    fn lock_group(&self, keys: &[&[u8]]) -> Result<(Vec<Held<'_>>, usize), Error> {
        let mut ids: Vec<_> = keys.iter().map(|key| self.stripe_of(key)).collect();
        let mut to_lock = ids.clone();
        to_lock.sort_unstable();
        // Equal keys have the same stripe, which is rare among different keys.
        if to_lock.windows(2).any(|two| two[0] == two[1]) {
            let repeats = |i: &usize| (0..*i).any(|j| ids[j] == ids[*i] && keys[j] == keys[*i]);
            ids.truncate((0..keys.len()).find(repeats).unwrap_or(keys.len()));
            to_lock.clone_from(&ids);
        }
        let Traffic {
            gate,
            stripes,
            active,
            ..
        } = &*self.store.traffic;
        let held = stripes.lock_all(to_lock, gate, self.store.heap.media())?;
        let locked = ids.iter().zip(keys);
        locked.for_each(|(&id, key)| active.break_ranges(id, &self.name, key));
        Ok((held, ids.len()))
    }
}

/// Several writes with a log: one by one, many in a pass of the gate.
impl<I: Index, M: Media> Guarded<I, M> {
    fn write_each(&self, keys: &[&[u8]], group: &mut Group<'_>) {
        while group.done < keys.len() && !group.ended {
            let end = keys.len().min(group.done + PASS);
            self.index.prefetch(&keys[group.done..end], &heap::pin());
            while group.done < end && !group.ended {
                if let Some(first) = self.write_some(&keys[..end], group) {
                    let (key, edit) = (keys[group.done], group.edits.edit(group.done));
                    let done = self.finish(first, key, edit, None);
                    let _ = group.end(done);
                }
            }
        }
        self.store.traffic.note_log_room();
    }

    /// Writes in one pass of the gate, up to the first write that was refused, or that must wait until it is durable.
    /// Returns that one's result.
    fn write_some(&self, keys: &[&[u8]], group: &mut Group<'_>) -> Option<Written> {
        let pass = match self.enter() {
            Ok(pass) => pass,
            Err(error) => return Some(Err(error)),
        };
        let _guard = heap::pin();
        while group.done < keys.len() && !group.ended {
            let (key, edit) = (keys[group.done], group.edits.edit(group.done));
            match self.write_in(&pass, key, edit, None) {
                Ok((action, end)) if !self.store.traffic.would_wait(end) => {
                    let settled = self.store.traffic.settle(end);
                    let _ = group.end(settled.map(|()| action));
                }
                first => return Some(first),
            }
        }
        None
    }
}

impl<I: Index, M: Media> MapIndex for Guarded<I, M> {
    fn name(&self) -> &str {
        &self.name
    }

    fn write_durably(
        &self,
        key: &[u8],
        edit: &mut dyn Edit,
        durability: Option<Durability>,
    ) -> Result<Action, Error> {
        self.finish(self.try_write(key, edit, durability), key, edit, durability)
    }

    fn write_held(&self, key: &[u8], edit: &mut dyn Edit, recording: Recording) -> Result<Action, Error> {
        self.write_at(key, self.stripe_of(key), edit, recording)
    }

    #[inline]
    fn stripe_of(&self, key: &[u8]) -> StripeId {
        stripe_of(self.hash, key)
    }

    fn bare(&self) -> &dyn Index {
        &self.index
    }

    fn close_gate(&self) -> Result<Closed<'_>, Error> {
        self.store.traffic.gate.close(self.store.heap.media())
    }

    fn gate(&self) -> &Gate {
        &self.store.traffic.gate
    }

    fn journal(&self) -> Option<&Arc<Journal>> {
        self.store.traffic.journal.get()
    }

    fn watches(&self) -> &Arc<Watches> {
        &self.store.traffic.watches
    }

    fn commit(&self, plan: &mut dyn FnMut() -> Result<Plan, crate::Error>) -> Result<(), crate::Error> {
        let store = &self.store;
        store.retry(&Retry::default(), |_| {
            let committed = plan().and_then(|plan| store.commit(&plan));
            (committed.map(drop), Ok::<_, crate::Error>(()))
        })
    }
}

impl<I: Index, M: Media> Index for Guarded<I, M> {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        let value = self.index.get(key, guard)?;
        self.store.traffic.settle_key(|| self.stripe_of(key))?;
        Ok(value)
    }

    fn multi_get<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        self.index.multi_get(keys, guard, found)?;
        let stripes = keys.iter().map(|key| self.stripe_of(key));
        self.store.traffic.settle(self.store.traffic.last(stripes))
    }

    fn prefetch(&self, keys: &[&[u8]], guard: &Guard) {
        self.index.prefetch(keys, guard);
    }

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        self.write_durably(key, edit, None)
    }

    fn write_many(&self, keys: &[&[u8]], edits: &mut dyn Edits) {
        let mut group = Group {
            edits,
            first: 0,
            done: 0,
            changed: false,
            ended: false,
        };
        match self.journal() {
            Some(_) => self.write_each(keys, &mut group),
            None => self.write_together(keys, &mut group),
        }
        if group.changed {
            self.wrote();
        }
    }

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        self.index.scan(lower, upper, direction, guard, visit)?;
        // The gaps between the visited keys count too.
        self.store.traffic.settle_all()
    }

    fn order(&self) -> Order {
        self.index.order()
    }

    fn walk<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        self.index.walk(lower, upper, direction, guard, visit)?;
        self.store.traffic.settle_all()
    }

    fn check(&self) -> Result<Faults, Error> {
        self.index.check()
    }

    fn settle(&self) -> Result<(), Error> {
        self.index.settle()
    }

    fn quiesce(&self) -> Box<dyn Quiesced + '_> {
        self.index.quiesce()
    }

    fn merges(&self) -> Option<Merges> {
        self.index.merges()
    }

    fn maintain(&self) {
        self.index.maintain();
    }
}

//! A pool's heap and the indexes in it: the database without its table of names and handles.
//!
//! Each map is a root of the heap. The root's kind names the index that holds it, and so the code that opens and traces
//! it; a kind that this program does not know is refused, never guessed.

use crate::report::{HeapCheck, MapInfo, Recovery, RecoveryState, Space, Stats};
use crate::write::intent;
use crate::write::journal::WriteError;
use crate::write::slots::Slots;
use crate::write::traffic::Traffic;
use crate::{Error, IndexKind, Level, Media};
use heap::{Heap, MayBeFull, RecoveryStage, Root, Tracers};
use pmem::{Pool, PoolLevel};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) struct Store<M: Media> {
    pub heap: Heap<M>,
    pub traffic: Arc<Traffic>,
    /// The slots of the intents.
    pub slots: Arc<Slots>,
}

impl<M: Media> Clone for Store<M> {
    fn clone(&self) -> Self {
        Store {
            heap: self.heap.clone(),
            traffic: self.traffic.clone(),
            slots: self.slots.clone(),
        }
    }
}

impl<M: Media> Store<M> {
    /// Opens the store in a pool. Recovery begins in the background, if it has threads. Completes the commits that were
    /// not completed, and returns the number of their changes.
    pub fn start(pool: Pool<M>, recovery_threads: usize) -> Result<(Store<M>, usize), Error> {
        let store = Store {
            heap: Heap::new(pool)?,
            traffic: Arc::default(),
            slots: Arc::default(),
        };
        if recovery_threads > 0 {
            store.recover(recovery_threads)?;
        }
        let carried_out = store.finish_commits()?;
        Ok((store, carried_out))
    }

    /// Runs a write, and again when the pool or the log, which had no room for it, has some.
    ///
    /// A run that the pool or the log refuses may leave a record in the log and another that undoes it. Unless a later
    /// run makes the change after all, this returns once both are durable, whatever the last run's result: if only the
    /// first survived a loss of power, the write would be applied.
    #[inline]
    pub fn write_with_room<R, E: MayBeFull + WriteError + From<index::Error>>(
        &self,
        mut run: impl FnMut() -> Result<R, E>,
        is_change: impl Fn(&R) -> bool,
    ) -> Result<R, E> {
        match run() {
            Ok(done) => {
                self.traffic.note_log_room();
                Ok(done)
            }
            Err(error) => self.write_again(error, run, is_change),
        }
    }

    /// Continues with a write whose first run has failed.
    #[cold]
    fn write_again<R, E: MayBeFull + WriteError + From<index::Error>>(
        &self,
        error: E,
        mut run: impl FnMut() -> Result<R, E>,
        is_change: impl Fn(&R) -> bool,
    ) -> Result<R, E> {
        let (mut first, mut may_be_undone) = (Some(error), false);
        let mut run = || {
            let done = first.take().map_or_else(&mut run, Err);
            may_be_undone |= done.as_ref().is_err_and(E::may_be_undone);
            done
        };
        let done = self.traffic.with_log_room(|| self.heap.with_room(&mut run));
        if may_be_undone && !done.as_ref().is_ok_and(is_change) {
            self.traffic.settle_appended()?;
        }
        done
    }

    /// Gives a part of the free pages back to the file system, if there are many.
    pub fn give_back_some(&self) {
        // Pages that a batch has set apart are not free, and so are not given back.
        if self.heap.has_too_much() {
            self.heap.give_back_some();
        }
    }

    /// Refuses to write if the pool is opened read-only.
    pub fn refuse_if_read_only(&self) -> Result<(), index::Error> {
        match self.heap.pool().is_read_only() {
            true => Err(index::Error::ReadOnly),
            false => Ok(()),
        }
    }

    /// Returns the maps, by name. The name of a root that another program created is made printable.
    pub fn maps(&self) -> Result<Vec<MapInfo>, Error> {
        Ok(self.named_maps()?.into_iter().map(|(_, map)| map).collect())
    }

    /// Returns the maps, by printable name, with the names of their roots.
    pub fn named_maps(&self) -> Result<Vec<(Vec<u8>, MapInfo)>, Error> {
        let named = |(name, root): (Vec<u8>, Root)| {
            let map = map_info(&name, &root);
            (name, map)
        };
        let mut maps: Vec<_> = self.map_roots()?.into_iter().map(named).collect();
        maps.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        Ok(maps)
    }

    /// Returns the maps' roots, in no order, with their names.
    pub fn map_roots(&self) -> Result<Vec<(Vec<u8>, Root)>, Error> {
        let mut roots = self.heap.roots()?;
        roots.retain(|(_, root)| ![intent::KIND, intent::SINGLE_SLOT].contains(&root.kind));
        Ok(roots)
    }

    /// Starts recovery, unless it was already started.
    pub fn recover(&self, threads: usize) -> Result<(), Error> {
        Ok(self.heap.recover(tracers(), threads)?)
    }

    /// Returns whether the thread holds a guard, for which recovery would wait. Logical threads that share a system
    /// thread share its guards too, and may wait for each other's.
    fn is_pinned() -> bool {
        !M::REUSES_AT_ONCE && heap::is_pinned()
    }

    /// Runs recovery in this thread; if recovery was already started, waits for it. Does neither if the thread holds a
    /// guard, because recovery would wait for that.
    pub fn recover_here(&self) {
        if !Self::is_pinned() {
            self.heap.recover_now(&tracers());
        }
    }

    pub fn recovery(&self) -> Recovery {
        let progress = self.heap.recovery();
        Recovery {
            state: match progress.state {
                RecoveryStage::Idle => RecoveryState::Idle,
                RecoveryStage::Running => RecoveryState::Running,
                RecoveryStage::Done => RecoveryState::Done,
                RecoveryStage::Failed(why) => RecoveryState::Failed(why),
            },
            objects: progress.traced,
            pages_swept: progress.pages_swept.into(),
            pages: progress.pages_to_sweep.into(),
            seconds: progress.elapsed.as_secs_f64(),
        }
    }

    /// Waits until recovery has ended. Returns at once if the thread holds a guard.
    pub fn wait_recovered(&self) {
        if !Self::is_pinned() {
            self.heap.wait_recovered();
        }
    }

    /// Refuses to wait for recovery if the thread holds a guard, unless recovery has ended.
    ///
    /// # Errors
    ///
    /// [`Error::HoldsReader`]
    pub fn refuse_if_pinned(&self) -> Result<(), Error> {
        match self.heap.recovery().state {
            RecoveryStage::Idle | RecoveryStage::Running if Self::is_pinned() => Err(Error::HoldsReader),
            _ => Ok(()),
        }
    }

    pub fn give_back(&self) -> Result<u64, Error> {
        self.refuse_if_read_only()?;
        self.refuse_if_pinned()?;
        self.recover(1)?;
        self.wait_recovered();
        Ok(self.heap.give_back_all()?)
    }

    pub fn audit(&self) -> HeapCheck {
        match self.heap.audit(&tracers(), 1) {
            Ok(audit) => HeapCheck {
                reachable: audit.reachable,
                reachable_bytes: audit.reachable_bytes,
                unreachable: audit.leaked(),
                doubly_reachable: audit.doubly_reachable,
                faults: audit.faults,
            },
            Err(error) => HeapCheck::fault(error.to_string()),
        }
    }

    /// Returns the pool's level. A read-only opening has no journal, so the pool's log position tells whether it has a
    /// log.
    pub fn level(&self) -> Level {
        let pool = self.heap.pool();
        match (pool.level(), pool.log_position()) {
            (PoolLevel::Power, _) => Level::Power,
            (PoolLevel::Process, Some(_)) => Level::Disk,
            (PoolLevel::Process, None) => Level::Process,
        }
    }

    pub fn stats(&self, opened_in: f64, maps: Vec<MapInfo>) -> Result<Stats, Error> {
        let pool = self.heap.pool();
        let stats = self.heap.stats();
        Ok(Stats {
            path: pool.path().map(Into::into),
            uuid: pool.uuid().to_string(),
            generation: pool.generation() - u32::from(pool.is_read_only()),
            level: self.level().to_string(),
            last_shutdown: pool.last_shutdown().to_string(),
            suspect: pool.is_suspect(),
            read_only: pool.is_read_only(),
            crashes: pool.dirty_count().into(),
            page_size: pool.page_size(),
            max_size: pool.max_size(),
            huge_pages: pool.huge_pages(),
            opened_in,
            space: Space {
                reserved: stats.reserved,
                used: stats.used,
                free: stats.free,
                given_back: stats.given_back,
                unswept: stats.unswept,
                objects: stats.objects,
            },
            recovery: self.recovery(),
            maps,
            log: None,
            merges: BTreeMap::new(),
        })
    }
}

/// Returns the tracers of all roots: those of the indexes and the database's own.
fn tracers<M: Media>() -> Tracers<M> {
    let mut tracers = IndexKind::tracers();
    tracers.extend(intent::tracers());
    tracers
}

fn map_info(name: &[u8], root: &Root) -> MapInfo {
    let index = match IndexKind::of(root) {
        Some(kind) => kind.to_string(),
        None => IndexKind::left_out(root).unwrap_or_else(|| format!("unknown kind {}", root.kind)),
    };
    MapInfo {
        name: String::from_utf8_lossy(name).into_owned(),
        index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heap::{Access, Trace};
    use pmem::{Hardware, Link, PoolOptions};
    use std::sync::atomic::{AtomicU64, Ordering};

    const KEYS: u64 = 1000;

    /// A tracer of a map whose links were damaged.
    struct Astray<F> {
        sound: Arc<dyn Trace<Hardware>>,
        damage: F,
        traced: AtomicU64,
    }

    // SAFETY: it breaks the contract, but no sweep relies on it.
    unsafe impl<F: Fn(&mut Vec<Link>, &mut u64) + Send + Sync> Trace<Hardware> for Astray<F> {
        fn kind(&self) -> u32 {
            self.sound.kind()
        }

        fn trace(
            &self,
            heap: &Access<Hardware>,
            link: Link,
            children: &mut Vec<Link>,
        ) -> Result<u64, heap::Error> {
            let traced = self.traced.fetch_add(1, Ordering::Relaxed);
            assert!(traced < 10 * KEYS, "the trace does not end");
            let mut len = self.sound.trace(heap, link, children)?;
            (self.damage)(children, &mut len);
            Ok(len)
        }
    }

    /// Drops a map with this damage: it gives an error, and retires nothing twice.
    fn drop_damaged(damage: impl Fn(Link, &mut Vec<Link>, &mut u64) + Send + Sync) {
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
        let (store, _) = Store::start(pool, 1).expect("a new pool");
        let kind = IndexKind::default();
        let index = store.create("damaged", kind).expect("room");
        for i in 0..KEYS {
            let key = i.to_be_bytes();
            index.insert(&key, b"longer than a word").expect("room");
        }
        drop(index);
        // SAFETY: the index is dropped.
        let removed = unsafe { store.heap.remove_root(b"damaged") };
        let removed = removed.expect("sound").expect("there");
        let root = removed.root().link;
        let astray = Astray {
            sound: kind.tracer(),
            damage: |links: &mut Vec<Link>, len: &mut u64| damage(root, links, len),
            traced: AtomicU64::new(0),
        };
        let retired = removed.retire(&astray);
        assert!(matches!(retired, Err(heap::Error::Damaged { .. })), "{retired:?}");
        assert_eq!(store.audit().faults, [""; 0]);
    }

    #[test]
    fn dropping_ends_where_a_link_leads_back_up() {
        drop_damaged(|root, links, _| links.push(root));
    }

    #[test]
    fn nothing_is_retired_by_two_links() {
        drop_damaged(|_, links, _| links.extend(links.last().copied()));
    }

    #[test]
    fn nothing_is_retired_where_no_object_is() {
        drop_damaged(|_, _, len| *len += 1 << 20);
    }
}

//! Checkpoints, which let the log drop its old segments.
//!
//! A *full* checkpoint is fuzzy: it walks the maps while other threads write.
//!
//! 1. `from` is the log's end at a moment when no write is in progress.
//! 2. Each map is written into runs, in the order of its index. An entry may be newer than `from`.
//! 3. `until` is the log's end after the walk. Before the manifest takes effect, the log is durable up to `until`, and
//!    the pool's log position, if the pool has one yet, is not below `from`.
//! 4. The manifest names the runs, `from` and `until`; then the segments below `from` are dropped.
//!
//! Records are idempotent, so replaying the log from `from` over the runs yields each key's value at the end of the
//! log, whichever changes the walk has seen. The log must reach `until`: the walk may have seen part of a transaction,
//! or a change that was not yet durable, and the rest is in the log below `until`.
//!
//! A *delta* is made from the log alone: from its records between the last checkpoint's `from` and a later position,
//! sorted, with the last record of each key. It does not read the maps, so its cost depends on what was written, not on
//! the size of the maps. A later level takes precedence.
//!
//! Write amplification: each byte of a key and a value is written once to the log and at most once to a delta. A full
//! checkpoint is taken when the deltas have become as large as the last full one. So, apart from some bytes of overhead
//! per record, at most three bytes are written per byte while the content keeps its size. While it grows, a full
//! checkpoint also writes what was added, and at most four bytes are written per byte. Both hold as long as no more
//! than [`Sizes::levels`] deltas separate two full checkpoints.
//!
//! I1 The pool's log position is never below the manifest's `from`: the log after either is kept.
//! I2 The manifest in memory is the one on disk, except while a checkpoint holds its lock, and while a later one is in
//!    doubt (I4). Its `next_run` alone also counts the runs of failed checkpoints.
//! I3 A run that the manifest does not name belongs to no checkpoint, or to a manifest in doubt. A failed checkpoint
//!    removes its own runs; an opening removes those that a crash has left.
//! I4 If the sync of the directory fails after a manifest was renamed, this manifest is in doubt: processes see it,
//!    while the medium may have either it or its predecessor. Another sync would prove nothing about the name. So the
//!    files of both stay until a manifest has been written again, durably: by the next checkpoint, which builds on the
//!    runs of the predecessor, or by an opening (`clear_beside` in `beside`), which writes the manifest that it sees.

use crate::db::Maps;
use crate::disk::delta::Deltas;
use crate::disk::manifest::{Manifest, MapRuns, Run};
use crate::disk::pace::{Pace, Stop};
use crate::disk::replay::index_kind;
use crate::disk::run::RunWriter;
use crate::disk::sizes::Sizes;
use crate::files_error::FilesError;
use crate::report::Checkpoint;
use crate::{Error, Media};
use index::{Direction, Index};
use log::{Disk, Log, Lsn};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The checkpoints of a database.
pub(crate) struct Checkpoints<D: Disk> {
    disk: Arc<D>,
    log: Arc<Log<D>>,
    /// The manifest's `uuid`.
    pool: u128,
    manifest: Mutex<Manifest>,
    /// Numbers of runs to remove once the next manifest is durable: those of manifests in doubt (I4), and those whose
    /// removal failed. Changes under the manifest's lock.
    left: Mutex<Vec<u64>>,
    at_hand: AtHand,
    sizes: Sizes,
}

/// Numbers of the manifest, for readers that cannot wait for a checkpoint to end.
#[derive(Debug, Default)]
struct AtHand {
    from: AtomicU64,
    full_bytes: AtomicU64,
}

impl AtHand {
    fn set(&self, manifest: &Manifest) {
        self.from.store(manifest.from, SeqCst);
        let full = manifest.runs().filter(|run| run.level == 0);
        self.full_bytes.store(full.map(|run| run.bytes).sum(), SeqCst);
    }
}

impl<D: Disk> Checkpoints<D> {
    pub fn new(disk: Arc<D>, log: Arc<Log<D>>, manifest: Manifest, sizes: Sizes) -> Checkpoints<D> {
        let at_hand = AtHand::default();
        at_hand.set(&manifest);
        Checkpoints {
            disk,
            log,
            pool: manifest.uuid,
            manifest: Mutex::new(manifest),
            left: Mutex::default(),
            at_hand,
            sizes,
        }
    }

    /// Takes a checkpoint. It is full if the last full one is small, or smaller than the part of the log since the last
    /// checkpoint; if the deltas have become as large as the last full one; or if a map has [`Sizes::levels`] deltas.
    /// Otherwise it is a delta.
    ///
    /// # Errors
    ///
    /// [`Error::Files`], and an index's error if the pool is damaged. The last checkpoint then stays in effect, unless
    /// the new one is in doubt (I4).
    pub fn take<M: Media>(&self, maps: &Maps<M>, stop: &Stop) -> Result<Checkpoint, Error> {
        let mut manifest = self.lock();
        let of = |full: bool| {
            let runs = manifest.runs().filter(move |run| (run.level == 0) == full);
            runs.map(|run| run.bytes).sum::<u64>()
        };
        let levels = manifest.runs().map(|run| run.level).max().unwrap_or(0);
        let grown = self.log.appended().0 - manifest.from;
        let is_full =
            of(true) < self.sizes.small.max(grown) || of(false) >= of(true) || levels >= self.sizes.levels;
        self.replace(maps, &mut manifest, is_full, stop)
    }

    /// Takes a full checkpoint.
    ///
    /// # Errors
    ///
    /// Those of [`take`](Checkpoints::take).
    pub fn take_full<M: Media>(&self, maps: &Maps<M>, stop: &Stop) -> Result<Checkpoint, Error> {
        self.replace(maps, &mut self.lock(), true, stop)
    }

    /// Returns the disk that holds the checkpoints.
    pub fn disk(&self) -> Arc<D> {
        self.disk.clone()
    }

    /// Returns the log position at which replay begins.
    pub fn from(&self) -> u64 {
        self.at_hand.from.load(SeqCst)
    }

    /// Returns the bytes of the runs of the last full checkpoint.
    pub fn full_bytes(&self) -> u64 {
        self.at_hand.full_bytes.load(SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Manifest> {
        // A holder that panics has either replaced the manifest by one store or not at all.
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the runs of a full checkpoint or of a delta, and puts a manifest that names them into effect.
    fn replace<M: Media>(
        &self,
        maps: &Maps<M>,
        manifest: &mut Manifest,
        is_full: bool,
        stop: &Stop,
    ) -> Result<Checkpoint, Error> {
        // The log could not become durable up to `until`, so no runs are written for nothing.
        self.log.check_failed().map_err(FilesError::from)?;
        let (mut new, names) = (manifest.clone(), self.log.change_names());
        let made = match is_full {
            true => self.walk(maps, stop, &mut new),
            false => self.delta(maps, stop, &mut new),
        };
        let made = made.and_then(|()| {
            self.log.wait_durable(Lsn(new.until)).map_err(FilesError::from)?;
            // I1. A pool without a position gets its first one once a checkpoint exists.
            if maps.store.heap.pool().log_position().is_some() {
                maps.note_position(&self.log)?;
            }
            // Makes the names of the runs durable.
            self.log.sync_names(names).map_err(FilesError::from)?;
            Ok(new.write(&*self.disk)?)
        });
        // No number is reused, since files of a failed attempt may still exist.
        let first = std::mem::replace(&mut manifest.next_run, new.next_run);
        if let Err(error) = made {
            (first..new.next_run).for_each(|number| self.remove_run(number));
            return Err(error);
        }
        if let Err(failed) = Manifest::put_in_place(&*self.disk, Some(&*self.log)) {
            match failed.is_in_doubt {
                // I4: the runs of both manifests stay, and so does the log from the earlier `from` on.
                true => self.left().extend(first..new.next_run),
                false => (first..new.next_run).for_each(|number| self.remove_run(number)),
            }
            return Err(failed.error.into());
        }
        let old = std::mem::replace(manifest, new);
        self.at_hand.set(manifest);
        let is_kept = |run: &Run| manifest.runs().any(|kept| kept.number == run.number);
        let unnamed = old.runs().filter(|run| !is_kept(run)).map(|run| run.number);
        let left = std::mem::take(&mut *self.left());
        unnamed.chain(left).for_each(|number| self.remove_run(number));
        self.log
            .drop_below(Lsn(manifest.from))
            .map_err(FilesError::from)?;
        let written = || manifest.runs().filter(|run| run.number >= first);
        Ok(Checkpoint {
            full: is_full,
            entries: written().map(|run| run.entries).sum(),
            bytes: written().map(|run| run.bytes).sum(),
            from: manifest.from,
        })
    }

    /// Writes all maps into new runs.
    fn walk<M: Media>(&self, maps: &Maps<M>, stop: &Stop, new: &mut Manifest) -> Result<(), Error> {
        let mut pace = self.pace(stop);
        new.from = maps.end_at_rest(&self.log)?.0;
        new.maps.clear();
        for info in maps.store.maps()? {
            let walked = self.walk_map(maps, &info.name, &mut new.next_run, &mut pace)?;
            new.maps.extend(walked);
            // A map shorter than a batch has ended no step.
            pace.end_step()?;
        }
        new.until = self.log.appended().0;
        Ok(())
    }

    /// Writes a map into new runs. If the map is dropped meanwhile, the log records that below `until`, and the map's
    /// entries in the runs are ignored.
    fn walk_map<M: Media>(
        &self,
        maps: &Maps<M>,
        name: &str,
        next: &mut u64,
        pace: &mut Pace<'_, D>,
    ) -> Result<Option<MapRuns>, Error> {
        let mut runs: Option<Runs<'_, D>> = None;
        let mut from = Bound::Unbounded;
        'turns: loop {
            let walk = maps.walked.begin(name);
            let Some((kind, map)) = maps.find(name, None)? else {
                break;
            };
            let runs = runs.get_or_insert_with(|| Runs::new(self, (name, kind.name()), 0));
            if runs.of.1 != kind.name() {
                break; // dropped, and recreated with another index
            }
            while let Some(behind) = visit_batch(map.bare(), &from, runs, next)? {
                runs.end_step(pace)?;
                from = behind;
                if walk.is_unwanted() {
                    continue 'turns;
                }
            }
            break;
        }
        Ok(runs.map(Runs::finish).transpose()?)
    }

    fn pace<'c>(&'c self, stop: &'c Stop) -> Pace<'c, D> {
        Pace::new(&self.log, stop, self.sizes.rest)
    }

    /// Removes a run that no manifest names. If that fails, the next checkpoint or opening tries again.
    fn remove_run(&self, number: u64) {
        let run = Run {
            number,
            ..Run::default()
        };
        match self.disk.remove(&run.file()) {
            Err(error) if !error.is_missing() => self.left().push(number),
            _ => {}
        }
    }

    fn left(&self) -> MutexGuard<'_, Vec<u64>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the log's changes since the last checkpoint into a new level of each changed map.
    fn delta<M: Media>(&self, maps: &Maps<M>, stop: &Stop, new: &mut Manifest) -> Result<(), Error> {
        let mut pace = self.pace(stop);
        let until = maps.end_at_rest(&self.log)?;
        let mut rested = new.from;
        let deltas = Deltas::read(&self.log, (Lsn(new.from), until), u64::MAX, |end| {
            if end.0 - rested >= self.sizes.step {
                rested = end.0;
                pace.rest();
            }
        })?;
        for mut delta in deltas.maps {
            let old = new.maps.iter().position(|map| map.name == delta.name);
            let mut map = old.map(|at| new.maps.remove(at));
            if delta.dropped {
                map = None;
            }
            let mut map = match (map, &delta.made) {
                (Some(map), _) => map,
                (None, Some(index)) => MapRuns {
                    name: delta.name.clone(),
                    index: index.clone(),
                    runs: Vec::new(),
                },
                // The map was created and dropped, or only dropped.
                (None, None) => continue,
            };
            let order = index_kind(&map.name, &map.index)?.order();
            let level = map.runs.iter().map(|run| run.level + 1).max().unwrap_or(0);
            let mut runs = Runs::new(self, (&map.name, &map.index), level);
            let mut bytes = 0;
            for (key, value) in delta.take_last(order).iter() {
                // Without a lower level, a removed key needs no tombstone.
                if value.is_some() || level > 0 {
                    runs.entry(key, value, &mut new.next_run)?;
                }
                bytes += key.len() + value.map_or(0, <[u8]>::len);
                if bytes >= self.sizes.batch {
                    bytes = 0;
                    runs.end_step(&mut pace)?;
                }
            }
            let added = runs.finish()?.runs;
            map.runs.extend(added);
            new.maps.push(map);
            pace.end_step()?;
        }
        (new.from, new.until) = (until.0, until.0);
        Ok(())
    }
}

/// The runs of one level of a map, while they are written.
struct Runs<'c, D: Disk> {
    checkpoints: &'c Checkpoints<D>,
    of: (&'c str, &'c str),
    level: u32,
    done: Vec<Run>,
    open: Option<RunWriter<D::File>>,
}

impl<'c, D: Disk> Runs<'c, D> {
    fn new(checkpoints: &'c Checkpoints<D>, of: (&'c str, &'c str), level: u32) -> Runs<'c, D> {
        Runs {
            checkpoints,
            of,
            level,
            done: Vec::new(),
            open: None,
        }
    }

    /// Adds an entry, to a new run if the current one is long enough.
    fn entry(&mut self, key: &[u8], value: Option<&[u8]>, next: &mut u64) -> Result<(), FilesError> {
        let Checkpoints { disk, sizes, .. } = self.checkpoints;
        if let Some(full) = self.open.take_if(|run| run.bytes() >= sizes.run) {
            self.done.push(full.finish()?);
        }
        let run = match &mut self.open {
            Some(run) => run,
            None => {
                let run = Run {
                    pool: self.checkpoints.pool,
                    number: *next,
                    level: self.level,
                    ..Run::default()
                };
                *next += 1;
                let run = RunWriter::create(&**disk, run, self.of, sizes.buffer)?;
                self.open.insert(run)
            }
        };
        run.entry(key, value)
    }

    /// Ends a step of the checkpoint: syncs what it has written, if a sync is due, and rests.
    fn end_step(&mut self, pace: &mut Pace<'_, D>) -> Result<(), FilesError> {
        pace.refuse_if_stopped()?;
        let Sizes { step, synced, .. } = self.checkpoints.sizes;
        let each = if pace.is_beside_writers() { step } else { synced };
        if let Some(run) = &mut self.open {
            run.sync_each(each)?;
        }
        pace.rest();
        Ok(())
    }

    fn finish(mut self) -> Result<MapRuns, FilesError> {
        if let Some(run) = self.open.take() {
            self.done.push(run.finish()?);
        }
        let (name, index) = self.of;
        Ok(MapRuns {
            name: name.to_owned(),
            index: index.to_owned(),
            runs: self.done,
        })
    }
}

/// Writes the next entries of a map, as many as may be visited under one guard; returns the bound behind the last key
/// if more may follow.
fn visit_batch<D: Disk>(
    index: &dyn Index,
    from: &Bound<Vec<u8>>,
    runs: &mut Runs<'_, D>,
    next: &mut u64,
) -> Result<Option<Bound<Vec<u8>>>, Error> {
    let (mut bytes, mut last, mut failed) = (0, None, None);
    let (lower, batch) = (from.as_ref().map(Vec::as_slice), runs.checkpoints.sizes.batch);
    let guard = heap::pin();
    let visit = &mut |key: &[u8], value: index::Value<'_>| {
        bytes += key.len() + value.len();
        if let Err(error) = runs.entry(key, Some(&value), next) {
            failed = Some(error);
            return ControlFlow::Break(());
        }
        if bytes < batch {
            return ControlFlow::Continue(());
        }
        last = Some(key.to_vec());
        ControlFlow::Break(())
    };
    index.walk(lower, Bound::Unbounded, Direction::Forward, &guard, visit)?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(last
            .map(|last| index::behind(index.order(), &last, lower, Direction::Forward))
            .transpose()?),
    }
}

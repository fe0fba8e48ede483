//! A pool made anew of a checkpoint and the log.

use crate::disk::manifest::{Manifest, MapRuns, Run};
use crate::disk::merged::{Merged, first_key};
use crate::disk::opening::Settings;
use crate::disk::replay::{index_kind, replay};
use crate::files_error::FilesError;
use crate::indexes::WithIndex;
use crate::write::store::Store;
use crate::{Error, Media};
use index::{Index, Parts};
use log::{Disk, Log, Lsn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far a rebuild has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Rebuilding {
    /// Entries of the checkpoint that were loaded, and all of them; removed keys count.
    pub entries: u64,
    /// All entries of the checkpoint.
    pub entries_in_all: u64,
    /// Bytes of the log that were replayed.
    pub log: u64,
    /// All bytes of the log that are to be replayed.
    pub log_in_all: u64,
}

/// Told how far a rebuild has come, by several threads.
pub type OnRebuild = Arc<dyn Fn(&Rebuilding) + Send + Sync>;

/// Entries, or log records, between two reports.
pub(crate) const STRIDE: u64 = 16 << 10;

/// The progress of a rebuild, for the callback.
pub(crate) struct Progress {
    pub entries: AtomicU64,
    pub log: AtomicU64,
    entries_in_all: u64,
    log_in_all: u64,
    tell: Option<OnRebuild>,
}

impl Progress {
    pub fn tell(&self) {
        if let Some(tell) = &self.tell {
            tell(&Rebuilding {
                entries: self.entries.load(Relaxed),
                entries_in_all: self.entries_in_all,
                log: self.log.load(Relaxed),
                log_in_all: self.log_in_all,
            });
        }
    }
}

struct Built;

impl WithIndex for Built {
    type Out = ();
    fn with<I: Index + 'static>(self, _: I) {}
}

/// Fills the empty pool of `store` with what the database held at the log's end.
///
/// # Errors
///
/// [`Error::Files`] where a file is missing or damaged; an index's where the pool is full.
pub(crate) fn rebuild<M: Media, D: Disk>(
    disk: &D,
    log: &Log<D>,
    manifest: &Manifest,
    store: &Store<M>,
    settings: &Settings,
) -> Result<(), Error> {
    let progress = Progress {
        entries: AtomicU64::new(0),
        log: AtomicU64::new(0),
        entries_in_all: manifest.runs().map(|run| run.entries).sum(),
        log_in_all: log.appended().0 - manifest.from,
        tell: settings.on_rebuild.clone(),
    };
    for map in &manifest.maps {
        build_map(disk, map, store, settings.rebuild_threads, &progress)?;
    }
    replay(store, log, Lsn(manifest.from), Some(&progress))?;
    progress.entries.store(progress.entries_in_all, Relaxed);
    progress.log.store(progress.log_in_all, Relaxed);
    progress.tell();
    Ok(())
}

fn build_map<M: Media, D: Disk>(
    disk: &D,
    map: &MapRuns,
    store: &Store<M>,
    threads: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let kind = index_kind(&map.index)?;
    let full = map.runs.iter().position(|run| run.level > 0);
    let (full, _) = map.runs.split_at(full.unwrap_or(map.runs.len()));
    let groups = groups(disk, map, full, threads)?;
    let mut sources = Vec::new();
    for (i, (from, runs)) in groups.iter().enumerate() {
        let until = groups.get(i + 1).map(|(until, _)| &**until);
        sources.push(Merged::new(
            disk,
            kind.order(),
            map,
            runs,
            (from, until),
            progress,
        )?);
    }
    let starts = groups.iter().skip(1).map(|(from, _)| &**from);
    let (first, others) = sources.split_at_mut(1);
    let others = others.iter_mut().zip(starts);
    let parts = others.fold(Parts::new(&mut first[0]), |parts, (source, from)| {
        parts.and(from, source)
    });
    let built = kind.build(&store.heap, map.name.as_bytes(), parts, Built);
    match sources.into_iter().find_map(Merged::into_failure) {
        Some(failure) => Err(failure.into()),
        None => Ok(built?),
    }
}

/// Runs of the lowest level that one thread loads, with the key from which on it does.
type Group<'m> = (Vec<u8>, &'m [Run]);

/// Deals the runs of the lowest level out to as many threads, in key order.
fn groups<'m, D: Disk>(
    disk: &D,
    map: &MapRuns,
    full: &'m [Run],
    threads: usize,
) -> Result<Vec<Group<'m>>, FilesError> {
    let each = full.len().div_ceil(threads.max(1)).max(1);
    let mut groups = Vec::<Group<'m>>::new();
    for runs in full.chunks(each) {
        let first = match groups.is_empty() {
            // Entries of a later level that lie before all of it belong to the first part as well.
            true => Some(Vec::new()),
            false => first_key(disk, &runs[0], &map.name)?,
        };
        groups.extend(first.map(|first| (first, runs)));
    }
    if groups.is_empty() {
        groups.push((Vec::new(), full));
    }
    Ok(groups)
}

//! Building a new pool from a checkpoint and the log.
//!
//! The log's records are sorted and merged with the runs, so that they add to a build instead of costing single writes.
//! This applies to [a bounded part](crate::disk::sizes::Sizes::merged) of the log; the rest is replayed.

use crate::disk::delta::{Deltas, LastStatements, MapDelta};
use crate::disk::manifest::{Manifest, MapRuns};
use crate::disk::merged::{MapPart, Merged, RunStart, first_key};
use crate::disk::progress::{BYTES_STRIDE, Progress, STRIDE};
use crate::disk::replay::{index_kind, replay};
use crate::disk::settings::Settings;
use crate::files_error::FilesError;
use crate::indexes::WithIndex;
use crate::write::store::Store;
use crate::{Error, Media};
use index::{Index, Order, Parts};
use log::{Disk, Log, Lsn};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

struct Built;

impl WithIndex for Built {
    type Out = ();
    fn with<I: Index + 'static>(self, _: I) {}
}

/// Fills the empty pool of `store` with the database's content at the log's end. The caller reports that it is done,
/// once the pool is in its place.
///
/// # Errors
///
/// [`Error::Files`] if a file is missing or damaged; an index's error if the pool is full.
pub(crate) fn rebuild<M: Media, D: Disk>(
    disk: &D,
    log: &Log<D>,
    manifest: &Manifest,
    store: &Store<M>,
    settings: &Settings,
) -> Result<Progress, Error> {
    let from = Lsn(manifest.from);
    let until = log.found_end().max(from);
    let progress = Progress {
        entries: AtomicU64::new(0),
        log: AtomicU64::new(0),
        entries_in_all: manifest.runs().map(|run| run.entries).sum(),
        log_in_all: until.0 - from.0,
        report: settings.on_rebuild.clone(),
        begun: Instant::now(),
    };
    progress.report();
    let mut reported = 0;
    let deltas = Deltas::read(log, (from, until), settings.sizes.merged, |end| {
        let passed = end.0 - from.0;
        progress.log.store(passed, Relaxed);
        if passed - reported >= BYTES_STRIDE {
            reported = passed;
            progress.report();
        }
    })?;
    let end = deltas.end;
    let named = |delta: MapDelta| (delta.name.clone(), delta);
    let mut deltas: BTreeMap<_, _> = deltas.maps.into_iter().map(named).collect();
    for map in &manifest.maps {
        // The runs of a map that the log drops are ignored.
        if !deltas.get(&map.name).is_some_and(|delta| delta.dropped) {
            let delta = deltas.remove(&map.name);
            build_map(disk, map, delta, store, settings, &progress)?;
        }
    }
    let mut gone = HashSet::new();
    for (name, mut delta) in deltas {
        if let Some(index) = delta.made.take() {
            let map = MapRuns {
                name,
                index,
                runs: Vec::new(),
            };
            build_map(disk, &map, Some(delta), store, settings, &progress)?;
        } else if delta.has_keys() {
            gone.insert(name);
        }
    }
    replay(store, log, end, Some((&progress, from)), &gone)?;
    Ok(progress)
}

/// Files of a checkpoint that a rebuild opens at once, unless one thread alone needs more. A process may have a
/// thousand open files by default.
const MAX_OPEN_FILES: usize = 256;

/// Builds a map from its runs and the log's records about it.
fn build_map<M: Media, D: Disk>(
    disk: &D,
    map: &MapRuns,
    delta: Option<MapDelta>,
    store: &Store<M>,
    settings: &Settings,
    progress: &Progress,
) -> Result<(), Error> {
    let kind = index_kind(&map.name, &map.index)?;
    let log = delta.map(|mut delta| delta.take_last(kind.order()));
    let levels = levels(disk, map)?;
    // Each part keeps a file of each level open.
    let threads = settings
        .rebuild_threads
        .min(MAX_OPEN_FILES / levels.len().max(1))
        .max(1);
    let starts = starts(kind.order(), &levels, log.as_ref(), threads);
    let mut sources = Vec::new();
    for i in 0..=starts.len() {
        let part = MapPart {
            map: &map.name,
            levels: &levels,
            log: log.as_ref(),
            from: i.checked_sub(1).map_or(&[], |before| &starts[before]),
            until: starts.get(i).map(|until| &**until),
        };
        sources.push(Merged::new(disk, kind.order(), &part, progress)?);
    }
    let (first, others) = sources.split_at_mut(1);
    let others = others.iter_mut().zip(&starts);
    let parts = others.fold(Parts::new(&mut first[0]), |parts, (source, from)| {
        parts.and(from, source)
    });
    let built = kind.build(&store.heap, map.name.as_bytes(), parts, Built);
    match sources.into_iter().find_map(Merged::into_failure) {
        Some(failure) => Err(failure.into()),
        None => Ok(built?),
    }
}

/// Returns the runs of each level of a map, without the empty ones.
fn levels<'m, D: Disk>(disk: &D, map: &'m MapRuns) -> Result<Vec<Vec<RunStart<'m>>>, FilesError> {
    let mut levels = Vec::<Vec<_>>::new();
    let mut last = None;
    for run in &map.runs {
        if last.replace(run.level) != Some(run.level) {
            levels.push(Vec::new());
        }
        if let (Some(level), Some(first)) = (levels.last_mut(), first_key(disk, run, &map.name)?) {
            level.push((run, first));
        }
    }
    Ok(levels)
}

/// Returns the keys at which parts with about equal numbers of entries begin, in ascending order. The first part, which
/// begins before all keys, has none.
fn starts(
    order: Order,
    levels: &[Vec<RunStart<'_>>],
    log: Option<&LastStatements>,
    threads: usize,
) -> Vec<Vec<u8>> {
    let runs = levels.iter().flatten();
    let runs = runs.map(|(run, first)| (&**first, run.entries));
    let said = log.into_iter().flat_map(|log| {
        let numbers = (0..log.len()).step_by(STRIDE as usize);
        numbers.filter_map(|number| Some((log.get(number)?.0, STRIDE.min((log.len() - number) as u64))))
    });
    let mut pieces: Vec<_> = runs.chain(said).collect();
    order.sort(&mut pieces, |(key, _)| key);
    let threads = threads.max(1) as u64;
    let all: u64 = pieces.iter().map(|(_, entries)| entries).sum();
    let (mut starts, mut before) = (Vec::<Vec<u8>>::new(), 0);
    for (key, entries) in pieces {
        let next = starts.len() as u64 + 1;
        let last = starts.last().map_or(&[][..], |last| last);
        if next < threads && before * threads >= next * all && order.compare(last, key).is_lt() {
            starts.push(key.to_vec());
        }
        before += entries;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::manifest::Run;

    fn starts_of(runs: &[(u32, &str, u64)], threads: usize) -> Vec<String> {
        let runs = runs.iter().map(|&(level, first, entries)| {
            let run = Run {
                level,
                entries,
                ..Run::default()
            };
            (run, first.as_bytes().to_vec())
        });
        let runs: Vec<_> = runs.collect();
        let levels: Vec<Vec<_>> = (0..3)
            .map(|level| runs.iter().filter(move |(run, _)| run.level == level))
            .map(|level| level.map(|(run, first)| (run, first.clone())).collect())
            .collect();
        let starts = starts(Order::Keys, &levels, None, threads);
        starts
            .into_iter()
            .map(|key| String::from_utf8(key).unwrap())
            .collect()
    }

    /// Parts have about equal numbers of entries, whichever levels these are in; a part begins with the first key of a
    /// run.
    #[test]
    fn threads_have_about_as_much() {
        let sorted = [
            (0, "a", 10),
            (0, "b", 10),
            (1, "c", 10),
            (1, "d", 10),
            (2, "d", 20),
        ];
        assert_eq!(starts_of(&sorted, 2), ["d"]);
        assert_eq!(starts_of(&sorted, 3), ["c", "d"]);
        assert_eq!(starts_of(&sorted, 1), [""; 0]);
        // There are no more parts than distinct first keys.
        assert_eq!(starts_of(&[(0, "a", 10), (1, "a", 10), (2, "a", 10)], 8), ["a"]);
        assert_eq!(starts_of(&[(0, "", 10), (1, "", 10)], 8), [""; 0]);
        assert_eq!(starts_of(&[], 8), [""; 0]);
    }
}

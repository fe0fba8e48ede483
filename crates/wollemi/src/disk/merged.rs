//! A map's content: its runs of all levels and the log's records above them, merged. For each key the latest level
//! counts.

use crate::disk::delta::LastStatements;
use crate::disk::manifest::Run;
use crate::disk::progress::{BYTES_STRIDE, Progress, STRIDE};
use crate::disk::run::{RunEntry, RunReader};
use crate::files_error::FilesError;
use index::{Error, Order, Pair, Pairs};
use log::Disk;
use std::sync::atomic::Ordering::Relaxed;

/// Iterates over a map's entries between two keys, in its index's order.
pub(crate) struct Merged<'m, D: Disk> {
    order: Order,
    levels: Vec<Level<'m, D>>,
    until: Option<&'m [u8]>,
    /// The error that stopped the iteration.
    failed: Option<FilesError>,
    /// The level of the entry returned last.
    current: Option<usize>,
    progress: &'m Progress,
    /// Entries passed since the last progress report, and their bytes.
    passed: (u64, u64),
}

/// The entries of one level.
struct Level<'m, D: Disk> {
    source: Source<'m, D>,
    /// The first entry not yet returned; meaningless at the level's end.
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    has_ended: bool,
}

/// The source of a level's entries.
enum Source<'m, D: Disk> {
    /// Runs, one after the other.
    Runs {
        disk: &'m D,
        map: &'m str,
        runs: std::vec::IntoIter<&'m Run>,
        reader: Option<Box<RunReader<D::File>>>,
    },
    /// Records of the log, in memory, from this number on.
    Log(&'m LastStatements, usize),
}

/// A run and its first key.
pub(crate) type RunStart<'m> = (&'m Run, Vec<u8>);

/// A range of a map's keys, and the sources of its entries.
pub(crate) struct MapPart<'m> {
    /// The map's name.
    pub map: &'m str,
    /// The runs of each level, older levels first.
    pub levels: &'m [Vec<RunStart<'m>>],
    /// The log's records.
    pub log: Option<&'m LastStatements>,
    /// The part begins with this key.
    pub from: &'m [u8],
    /// It ends before this one.
    pub until: Option<&'m [u8]>,
}

impl<'m, D: Disk> Merged<'m, D> {
    /// Iterates over the entries of a part of a map.
    pub fn new(
        disk: &'m D,
        order: Order,
        part: &MapPart<'m>,
        progress: &'m Progress,
    ) -> Result<Merged<'m, D>, FilesError> {
        let &MapPart { map, levels, log, .. } = part;
        let runs = levels.iter().map(|level| {
            // Runs before the last one that begins at or before the part end before it.
            let begun = level.partition_point(|(_, first)| order.compare(first, part.from).is_le());
            let runs: Vec<_> = level[begun.saturating_sub(1)..]
                .iter()
                .map(|(run, _)| *run)
                .collect();
            Source::Runs {
                disk,
                map,
                runs: runs.into_iter(),
                reader: None,
            }
        });
        let log = log.map(|log| Source::Log(log, log.first_from(order, part.from)));
        let levels = runs.chain(log).map(|source| {
            let mut level = Level {
                source,
                key: Vec::new(),
                value: None,
                has_ended: false,
            };
            level.advance()?;
            while !level.has_ended && order.compare(&level.key, part.from).is_lt() {
                level.advance()?;
            }
            Ok(level)
        });
        Ok(Merged {
            order,
            levels: levels.collect::<Result<_, FilesError>>()?,
            until: part.until,
            failed: None,
            current: None,
            progress,
            passed: (0, 0),
        })
    }

    /// Returns the error that stopped the iteration, if any.
    pub fn into_failure(self) -> Option<FilesError> {
        self.failed
    }

    /// Advances to the next key that is present; returns whether one exists.
    fn advance(&mut self) -> Result<bool, FilesError> {
        loop {
            if let Some(current) = self.current.take() {
                self.pass(current)?;
            }
            let ahead = self
                .levels
                .iter()
                .enumerate()
                .filter(|(_, level)| !level.has_ended);
            // Of several levels with the same key, the latest.
            let first = ahead.min_by(|(a, x), (b, y)| self.order.compare(&x.key, &y.key).then(b.cmp(a)));
            let Some((first, level)) = first else {
                return Ok(false);
            };
            if self
                .until
                .is_some_and(|until| self.order.compare(until, &level.key).is_le())
            {
                return Ok(false);
            }
            self.current = Some(first);
            if level.value.is_some() {
                return Ok(true);
            }
        }
    }

    /// Skips this level's key in all levels.
    fn pass(&mut self, current: usize) -> Result<(), FilesError> {
        let key = std::mem::take(&mut self.levels[current].key);
        for (at, level) in self.levels.iter_mut().enumerate() {
            if at == current || !level.has_ended && level.key == key {
                if matches!(level.source, Source::Runs { .. }) {
                    let value = level.value.as_ref().map_or(0, Vec::len);
                    self.passed.0 += 1;
                    self.passed.1 += (key.len() + value) as u64;
                }
                level.advance()?;
            }
        }
        if self.passed.0 >= STRIDE || self.passed.1 >= BYTES_STRIDE {
            self.report();
        }
        Ok(())
    }

    /// Reports the entries passed since the last report.
    fn report(&mut self) {
        let (entries, _) = std::mem::take(&mut self.passed);
        if entries > 0 {
            self.progress.entries.fetch_add(entries, Relaxed);
            self.progress.report();
        }
    }
}

impl<D: Disk> Pairs for Merged<'_, D> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        match self.advance() {
            Err(error) => {
                self.failed = Some(error);
                Err(Error::Stopped)
            }
            Ok(false) => {
                self.report();
                Ok(None)
            }
            Ok(true) => Ok(self.current.and_then(|at| {
                let Level { key, value, .. } = &self.levels[at];
                Some((&key[..], value.as_deref()?))
            })),
        }
    }
}

impl<D: Disk> Level<'_, D> {
    /// Advances to the next entry.
    fn advance(&mut self) -> Result<(), FilesError> {
        match &mut self.source {
            Source::Log(log, next) => {
                let entry = log.get(*next);
                *next += 1;
                self.has_ended = entry.is_none();
                if let Some(entry) = entry {
                    hold(&mut self.key, &mut self.value, entry);
                }
                Ok(())
            }
            Source::Runs {
                disk,
                map,
                runs,
                reader,
            } => loop {
                if let Some(open) = reader {
                    if let Some(entry) = open.next()? {
                        hold(&mut self.key, &mut self.value, entry);
                        return Ok(());
                    }
                    *reader = None;
                }
                let Some(run) = runs.next() else {
                    self.has_ended = true;
                    return Ok(());
                };
                *reader = Some(Box::new(RunReader::open(*disk, run, map)?));
            },
        }
    }
}

/// Copies an entry, reusing the buffers.
fn hold(key: &mut Vec<u8>, value: &mut Option<Vec<u8>>, entry: RunEntry<'_>) {
    key.clear();
    key.extend_from_slice(entry.0);
    *value = match (entry.1, value.take()) {
        (Some(new), Some(mut bytes)) => {
            bytes.clear();
            bytes.extend_from_slice(new);
            Some(bytes)
        }
        (new, _) => new.map(<[u8]>::to_vec),
    };
}

/// Returns the first key of a run; `None` if it has no entries.
pub(crate) fn first_key<D: Disk>(disk: &D, run: &Run, map: &str) -> Result<Option<Vec<u8>>, FilesError> {
    let mut reader = RunReader::open(disk, run, map)?;
    Ok(reader.next()?.map(|(key, _)| key.to_vec()))
}

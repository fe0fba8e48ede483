//! A map's content at its last checkpoint: its runs of all levels, merged; of two statements of a key the one of the
//! later level counts.

use crate::disk::manifest::{MapRuns, Run};
use crate::disk::rebuild::{Progress, STRIDE};
use crate::disk::run::RunReader;
use crate::files_error::FilesError;
use index::{Error, Order, Pair, Pairs};
use log::Disk;
use std::sync::atomic::Ordering::Relaxed;

/// The entries of a map in its index's order, from a key on and up to another.
pub(crate) struct Merged<'m, D: Disk> {
    order: Order,
    levels: Vec<Level<'m, D>>,
    until: Option<&'m [u8]>,
    /// Why it has stopped.
    failed: Option<FilesError>,
    /// The level whose entry was handed out last.
    current: Option<usize>,
    progress: &'m Progress,
    /// Entries passed since the last report.
    passed: u64,
}

/// The runs of a level, one after the other.
struct Level<'m, D: Disk> {
    disk: &'m D,
    map: &'m str,
    runs: std::vec::IntoIter<&'m Run>,
    reader: Option<RunReader<D::File>>,
    /// Its first entry that was not handed out; meaningless at its end.
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    has_ended: bool,
}

impl<'m, D: Disk> Merged<'m, D> {
    /// The entries of `map` from `from` on and below `until`; all of them, with an empty key and with `None`. `full` are
    /// those runs of the lowest level that may have such entries.
    pub fn new(
        disk: &'m D,
        order: Order,
        map: &'m MapRuns,
        full: &'m [Run],
        (from, until): (&[u8], Option<&'m [u8]>),
        progress: &'m Progress,
    ) -> Result<Merged<'m, D>, FilesError> {
        let above = map.runs.iter().filter(|run| run.level > 0);
        let mut levels = vec![full.iter().collect::<Vec<_>>()];
        let mut last = 0;
        for run in above {
            if run.level != last {
                levels.push(Vec::new());
                last = run.level;
            }
            levels.last_mut().into_iter().for_each(|level| level.push(run));
        }
        let levels = levels.into_iter().map(|runs| {
            let mut level = Level {
                disk,
                map: &map.name,
                runs: runs.into_iter(),
                reader: None,
                key: Vec::new(),
                value: None,
                has_ended: false,
            };
            level.advance()?;
            while !level.has_ended && order.compare(&level.key, from).is_lt() {
                level.advance()?;
            }
            Ok(level)
        });
        Ok(Merged {
            order,
            levels: levels.collect::<Result<_, FilesError>>()?,
            until,
            failed: None,
            current: None,
            progress,
            passed: 0,
        })
    }

    /// Why it has stopped, if it has.
    pub fn into_failure(self) -> Option<FilesError> {
        self.failed
    }

    /// Goes on to the next key that is present; whether there is one.
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
            // The latest of several with the same key.
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

    /// Passes the key of this level in all levels.
    fn pass(&mut self, current: usize) -> Result<(), FilesError> {
        let key = std::mem::take(&mut self.levels[current].key);
        for (at, level) in self.levels.iter_mut().enumerate() {
            if at == current || !level.has_ended && level.key == key {
                level.advance()?;
                self.passed += 1;
            }
        }
        if self.passed >= STRIDE {
            self.progress
                .entries
                .fetch_add(std::mem::take(&mut self.passed), Relaxed);
            self.progress.tell();
        }
        Ok(())
    }
}

impl<D: Disk> Pairs for Merged<'_, D> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        match self.advance() {
            Err(error) => {
                self.failed = Some(error);
                Err(Error::Stopped)
            }
            Ok(false) => Ok(None),
            Ok(true) => Ok(self.current.and_then(|at| {
                let Level { key, value, .. } = &self.levels[at];
                Some((&key[..], value.as_deref()?))
            })),
        }
    }
}

impl<D: Disk> Level<'_, D> {
    /// Goes on to the next entry.
    fn advance(&mut self) -> Result<(), FilesError> {
        loop {
            if let Some(reader) = &mut self.reader {
                if let Some((key, value)) = reader.next()? {
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    self.value = match (value, self.value.take()) {
                        (Some(value), Some(mut bytes)) => {
                            bytes.clear();
                            bytes.extend_from_slice(value);
                            Some(bytes)
                        }
                        (value, _) => value.map(<[u8]>::to_vec),
                    };
                    return Ok(());
                }
                self.reader = None;
            }
            let Some(run) = self.runs.next() else {
                self.has_ended = true;
                return Ok(());
            };
            self.reader = Some(RunReader::open(self.disk, run, self.map)?);
        }
    }
}

/// The first key of a run; `None` of one without entries.
pub(crate) fn first_key<D: Disk>(disk: &D, run: &Run, map: &str) -> Result<Option<Vec<u8>>, FilesError> {
    let mut reader = RunReader::open(disk, run, map)?;
    Ok(reader.next()?.map(|(key, _)| key.to_vec()))
}

//! Databases restored from backups and copied from snapshots.

use super::Copied;
use super::version1::{self, Version1};
use crate::stream::{Item, StreamError, StreamReader, Totals, VERSION, read_start};
use crate::{Db, Entry, Error, IndexKind, MAX_KEY, MAX_VALUE, Media, Snapshot, ViewIter};
use index::{Pair, Pairs, Parts};
use std::io::Read;

impl<M: Media> Db<M> {
    /// Creates the maps of a backup, each held by its original index. Each map is [built](Db::build_map_with) as a
    /// whole and appears once its last entry has been read (at level [`Disk`](crate::Level::Disk), while its entries
    /// are read). If this fails, earlier maps exist, and at that level a part of the last one; drop them. Calls
    /// `progress` at intervals and at the end. Reads `input` to the end of the backup and no further; buffer it.
    ///
    /// # Errors
    ///
    /// [`Error::MapExists`] if a map of the backup exists, [`Error::NotBackup`] if the bytes are not a backup or are
    /// truncated or damaged, [`Error::LeftOut`] if this program is built without the index of a map,
    /// [`Error::Backup`] if `input` fails, and an index's error if the pool is full.
    pub fn restore(&self, input: &mut impl Read, mut progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
        let input = match read_start(input)? {
            version1::VERSION => Input::Version1(Version1::behind_start(input)),
            VERSION => Input::Current(StreamReader::behind_start(input)),
            other => return Err(StreamError::Version(other).into()),
        };
        let mut entries = Restored {
            input,
            copied: Copied::default(),
            progress: &mut progress,
            next: None,
            failed: None,
            key: Vec::new(),
            value: Vec::new(),
        };
        // Both formats refuse an entry before the first map.
        entries.read()?;
        while let Some(Names { name, index }) = entries.next.take() {
            self.restore_map(&mut entries, &name, &index)?;
        }
        let mut copied = entries.copied;
        copied.bytes = entries.input.totals().bytes;
        progress(&copied);
        Ok(copied)
    }

    /// Builds a map.
    fn restore_map<R: Read, F: FnMut(&Copied)>(
        &self,
        entries: &mut Restored<'_, R, F>,
        name: &str,
        index: &str,
    ) -> Result<(), Error> {
        let kind = kind_of(name, index)?;
        entries.copied.maps += 1;
        match self.build_map_with(name, kind, Parts::new(entries)) {
            Ok(_) => Ok(()),
            Err(Error::Index(index::Error::Stopped)) => Err(entries
                .failed
                .take()
                .unwrap_or(Error::Index(index::Error::Stopped))),
            Err(Error::Index(index::Error::OutOfOrder)) => {
                Err(StreamError::Damaged("keys of a map are out of order").into())
            }
            Err(error) => Err(error),
        }
    }

    /// Creates the maps of a snapshot in this database, packed as densely as possible. Durability, progress and errors
    /// are those of [`restore`](Db::restore) and of [`Snapshot::backup`].
    ///
    /// Copying into a new pool compacts a database. `wollemi compact` does so, and then gives the new file the old
    /// one's name:
    ///
    /// ```
    /// let grown = wollemi::Db::anonymous()?;
    /// grown.map("letters")?.upsert("a", "alpha")?;
    /// let compact = wollemi::Db::anonymous()?;
    /// compact.copy_from(&grown.snapshot()?, |_| {})?;
    /// assert_eq!(compact.map("letters")?.get("a")?, Some(b"alpha".to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn copy_from<N: Media>(
        &self,
        snapshot: &Snapshot<N>,
        mut progress: impl FnMut(&Copied),
    ) -> Result<Copied, Error> {
        snapshot.refuse_non_utf8_names()?;
        let mut copied = Copied::default();
        for info in snapshot.maps() {
            let Some(view) = snapshot.find_view(&info.name)? else {
                continue;
            };
            copied.maps += 1;
            let mut entries = Copying {
                entries: view.iter(),
                copied: &mut copied,
                progress: &mut progress,
                entry: Entry::default(),
                failed: None,
            };
            let built = self.build_map_with(&info.name, view.index_kind(), Parts::new(&mut entries));
            match (built, entries.failed) {
                (Ok(_), _) => {}
                (Err(_), Some(failed)) => return Err(failed),
                (Err(error), None) => return Err(error),
            }
        }
        progress(&copied);
        Ok(copied)
    }
}

/// Returns the index that a backup names for a map.
fn kind_of(map: &str, index: &str) -> Result<IndexKind, Error> {
    index.parse().map_err(
        |unknown: crate::UnknownIndex| match IndexKind::left_out_by_name(index) {
            Some(index) => Error::LeftOut {
                name: map.to_owned(),
                index,
            },
            None => Error::NotBackup(unknown.to_string()),
        },
    )
}

/// A backup of either format.
enum Input<R> {
    Version1(Version1<R>),
    Current(StreamReader<R>),
}

impl<R: Read> Input<R> {
    fn next(&mut self) -> Result<Option<Item<'_>>, StreamError> {
        match self {
            Input::Version1(input) => input.next(),
            Input::Current(input) => input.next(),
        }
    }

    fn totals(&self) -> Totals {
        match self {
            Input::Version1(input) => input.totals(),
            Input::Current(input) => input.totals(),
        }
    }
}

/// The names of a map and of its index.
struct Names {
    name: String,
    index: String,
}

/// Reads the entries of a backup, one map after the other.
struct Restored<'p, R, F> {
    input: Input<R>,
    copied: Copied,
    progress: &'p mut F,
    /// The map that follows, once it is known.
    next: Option<Names>,
    failed: Option<Error>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<R: Read, F: FnMut(&Copied)> Restored<'_, R, F> {
    /// Reads the next entry; returns `false` at the end of the map.
    fn read(&mut self) -> Result<bool, StreamError> {
        // The caller may ask again after the end.
        if self.next.is_some() {
            return Ok(false);
        }
        match self.input.next()? {
            Some(Item::Entry {
                key,
                value: Some(value),
            }) if key.len() <= MAX_KEY && value.len() <= MAX_VALUE => {
                self.key.clear();
                self.key.extend_from_slice(key);
                self.value.clear();
                self.value.extend_from_slice(value);
            }
            Some(Item::Entry { value: None, .. }) => return Err(StreamError::Damaged("a removed key")),
            Some(Item::Entry { .. }) => return Err(StreamError::Damaged("an entry length out of range")),
            Some(Item::Map { name, index }) => {
                self.next = Some(Names {
                    name: name.to_owned(),
                    index: index.to_owned(),
                });
                return Ok(false);
            }
            None => return Ok(false),
        }
        self.copied.bytes = self.input.totals().bytes;
        self.copied.entry(self.progress);
        Ok(true)
    }
}

impl<R: Read, F: FnMut(&Copied)> Pairs for Restored<'_, R, F> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, index::Error> {
        match self.read() {
            Ok(true) => Ok(Some((&self.key, &self.value))),
            Ok(false) => Ok(None),
            Err(error) => {
                self.failed = Some(error.into());
                Err(index::Error::Stopped)
            }
        }
    }
}

/// Reads the entries of one map of a snapshot.
struct Copying<'c, F> {
    entries: ViewIter,
    copied: &'c mut Copied,
    progress: &'c mut F,
    entry: Entry,
    failed: Option<Error>,
}

impl<F: FnMut(&Copied)> Pairs for Copying<'_, F> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, index::Error> {
        match self.entries.next() {
            None => return Ok(None),
            Some(Ok(entry)) => self.entry = entry,
            Some(Err(error)) => {
                self.failed = Some(error);
                return Err(index::Error::Stopped);
            }
        }
        let (key, value) = &self.entry;
        self.copied.bytes += (key.len() + value.len()) as u64;
        self.copied.entry(self.progress);
        Ok(Some((key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Writer;

    /// A sound backup of a map whose index this program is built without is not damaged; one that names no index is.
    #[test]
    fn an_index_left_out_is_no_damage() {
        for name in ["roart-without-inline", "no-index"] {
            let mut bytes = Vec::new();
            let mut out = Writer::new(0, &mut bytes).expect("memory");
            out.map("m", name).expect("memory");
            out.entry(b"key", Some(b"value")).expect("memory");
            out.finish().expect("memory");
            let restored = Db::anonymous().expect("memory").restore(&mut &bytes[..], |_| {});
            match (name.parse::<IndexKind>(), name) {
                (Ok(_), _) => assert_eq!(restored.expect("known").entries, 1),
                (Err(_), "no-index") => assert!(matches!(restored, Err(Error::NotBackup(_))), "{restored:?}"),
                (Err(_), _) => assert!(matches!(restored, Err(Error::LeftOut { .. })), "{restored:?}"),
            }
        }
    }
}

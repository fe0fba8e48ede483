//! Databases restored from backups and copied from snapshots.

use super::sum::Summed;
use super::{Copied, END, ENTRY, MAGIC, MAP, VERSION, damaged};
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
    /// truncated or damaged, [`Error::Backup`] if `input` fails, and an index's error if the pool is full.
    pub fn restore(&self, input: &mut impl Read, mut progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
        let mut input = Summed::new(input);
        if &input.take::<8>()? != MAGIC {
            return Err(Error::NotBackup("wrong magic bytes".into()));
        }
        let version = u32::from_le_bytes(input.take()?);
        if version != VERSION {
            return Err(Error::NotBackup(format!(
                "format {version}; this program reads {VERSION}"
            )));
        }
        let [mut record] = input.take::<1>()?;
        let mut entries = Restored {
            input,
            copied: Copied::default(),
            progress: &mut progress,
            next: 0,
            failed: None,
            key: Vec::new(),
            value: Vec::new(),
        };
        loop {
            match record {
                MAP => record = self.restore_map(&mut entries)?,
                END => break,
                ENTRY => return Err(damaged("an entry before the first map")),
                _ => return Err(damaged("a record of unknown type")),
            }
        }
        let Restored {
            mut input,
            mut copied,
            ..
        } = entries;
        let entries = u64::from_le_bytes(input.take()?);
        let sum = input.sum.get();
        if u64::from_le_bytes(input.take()?) != sum {
            return Err(damaged("checksum mismatch"));
        }
        if entries != copied.entries {
            return Err(damaged("wrong number of entries"));
        }
        copied.bytes = input.bytes;
        progress(&copied);
        Ok(copied)
    }

    /// Builds a map; returns the type of the record that follows.
    fn restore_map<R: Read, F: FnMut(&Copied)>(
        &self,
        entries: &mut Restored<'_, '_, R, F>,
    ) -> Result<u8, Error> {
        let input = &mut entries.input;
        let [name_len, index_len] = input.take::<2>()?.map(usize::from);
        let mut bytes = Vec::new();
        let mut text = |len| {
            input.fill(&mut bytes, len)?;
            let text = str::from_utf8(&bytes).map_err(|_| damaged("a name that is not UTF-8"))?;
            Ok::<_, Error>(text.to_owned())
        };
        let (name, index) = (text(name_len)?, text(index_len)?);
        let kind: IndexKind = index
            .parse()
            .map_err(|error: crate::UnknownIndex| Error::NotBackup(error.to_string()))?;
        entries.copied.maps += 1;
        entries.next = 0;
        match self.build_map_with(&name, kind, Parts::new(entries)) {
            Ok(_) => Ok(entries.next),
            Err(Error::Index(index::Error::Stopped)) => Err(entries
                .failed
                .take()
                .unwrap_or(Error::Index(index::Error::Stopped))),
            Err(Error::Index(index::Error::OutOfOrder)) => Err(damaged("keys of a map are out of order")),
            Err(error) => Err(error),
        }
    }

    /// Creates the maps of a snapshot in this database, packed as densely as possible. Durability, progress and errors
    /// are those of [`restore`](Db::restore).
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

/// Reads the entries of a backup, one map after the other.
struct Restored<'r, 'p, R, F> {
    input: Summed<'r, R>,
    copied: Copied,
    progress: &'p mut F,
    /// The type of the record after the map's last entry; 0 until it is known.
    next: u8,
    failed: Option<Error>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<R: Read, F: FnMut(&Copied)> Restored<'_, '_, R, F> {
    /// Reads the next entry; returns `false` at a record of another type.
    fn read(&mut self) -> Result<bool, Error> {
        // The caller may ask again after the end.
        if self.next != 0 {
            return Ok(false);
        }
        let input = &mut self.input;
        let [record] = input.take::<1>()?;
        if record != ENTRY {
            if record == 0 {
                return Err(damaged("a record of unknown type"));
            }
            self.next = record;
            return Ok(false);
        }
        let key_len = u16::from_le_bytes(input.take()?).into();
        let value_len = u32::from_le_bytes(input.take()?) as usize;
        if key_len > MAX_KEY || value_len > MAX_VALUE {
            return Err(damaged("an entry length out of range"));
        }
        input.fill(&mut self.key, key_len)?;
        input.fill(&mut self.value, value_len)?;
        self.copied.bytes = input.bytes;
        self.copied.entry(self.progress);
        Ok(true)
    }
}

impl<R: Read, F: FnMut(&Copied)> Pairs for Restored<'_, '_, R, F> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, index::Error> {
        match self.read() {
            Ok(true) => Ok(Some((&self.key, &self.value))),
            Ok(false) => Ok(None),
            Err(error) => {
                self.failed = Some(error);
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

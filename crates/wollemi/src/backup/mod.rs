//! Backups: all maps at one moment as a stream of bytes, and databases made of them.
//!
//! ```text
//! magic     8  "WOLLEMIB"
//! version   4  1
//! then records, each with a byte before it that says what it is:
//!   1  map:   length of its name (1), of its index's name (1), both names
//!   2  entry, of the map last named: length of the key (2), of the value (4), key, value
//!   3  end:   number of entries (8), checksum of everything before these eight bytes (8): FNV-1a over words, see `sum`
//! ```
//!
//! Little endian. A stream that ends before its end record, or whose checksum is another, is refused.

mod sum;

use crate::{Db, Error, IndexKind, MAX_KEY, MAX_NAME, MAX_VALUE, Media, Snapshot};
use serde::Serialize;
use std::io::{Read, Write};
use sum::Summed;

const MAGIC: &[u8; 8] = b"WOLLEMIB";
const VERSION: u32 = 1;

const MAP: u8 = 1;
const ENTRY: u8 = 2;
const END: u8 = 3;

/// Entries between two reports of progress.
const STRIDE: u64 = 256;

/// How much of a backup, or of a copy, has been done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Maps begun.
    pub maps: u64,
    /// Entries.
    pub entries: u64,
    /// Bytes of the stream; of keys and values, where there is none.
    pub bytes: u64,
}

impl Copied {
    fn entry(&mut self, progress: &mut impl FnMut(&Copied)) {
        self.entries += 1;
        if self.entries.is_multiple_of(STRIDE) {
            progress(self);
        }
    }
}

impl<M: Media> Snapshot<M> {
    /// Writes all maps as they were to `out`, and flushes it. Others go on writing to the database meanwhile. Calls
    /// `progress` now and then, and at the end.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// db.map("letters")?.upsert("a", "alpha")?;
    /// let mut bytes = Vec::new();
    /// db.snapshot()?.backup(&mut bytes, |_| {})?;
    ///
    /// let other = wollemi::Db::anonymous()?;
    /// let copied = other.restore(&mut &bytes[..], |_| {})?;
    /// assert_eq!((copied.maps, copied.entries), (1, 1));
    /// assert_eq!(other.map("letters")?.get("a")?, Some(b"alpha".to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backup`] where `out` fails; [`Error::SnapshotOutgrown`]; [`Error::OtherKind`] for a map held by an index that this version does not
    /// know; an index's, where the pool is damaged.
    pub fn backup(&self, out: &mut impl Write, mut progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
        let mut out = Summed::new(out);
        let mut copied = Copied::default();
        out.put(MAGIC)?;
        out.put(&VERSION.to_le_bytes())?;
        for info in self.maps() {
            let Some(view) = self.find_view(&info.name)? else {
                continue;
            };
            let (name, index) = (info.name.as_bytes(), view.index_kind().name());
            out.put(&[MAP, name.len() as u8, index.len() as u8])?;
            out.put(name)?;
            out.put(index.as_bytes())?;
            copied.maps += 1;
            for entry in view.iter() {
                let (key, value) = entry?;
                out.put(&[ENTRY])?;
                out.put(&(key.len() as u16).to_le_bytes())?;
                out.put(&(value.len() as u32).to_le_bytes())?;
                out.put(&key)?;
                out.put(&value)?;
                copied.bytes = out.bytes;
                copied.entry(&mut progress);
            }
        }
        out.put(&[END])?;
        out.put(&copied.entries.to_le_bytes())?;
        let sum = out.sum.get();
        out.put(&sum.to_le_bytes())?;
        out.inner.flush().map_err(Error::Backup)?;
        copied.bytes = out.bytes;
        progress(&copied);
        Ok(copied)
    }
}

impl<M: Media> Db<M> {
    /// Makes the maps of a backup, each held by the index that held it, and puts the entries. Each is durable on its own:
    /// where this fails, what came before is there, and the maps are to be dropped. Calls `progress` now and then, and at
    /// the end. `input` is read to the backup's end and no further; give it a buffer.
    ///
    /// # Errors
    ///
    /// [`Error::MapExists`] where a map of the backup is there already, [`Error::NotBackup`] where the bytes are not a
    /// backup, cut short or damaged, [`Error::Backup`] where `input` fails, and an index's where the pool is full.
    pub fn restore(&self, input: &mut impl Read, mut progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
        let mut input = Summed::new(input);
        let mut copied = Copied::default();
        if &input.take::<8>()? != MAGIC {
            return Err(Error::NotBackup("it does not begin like one".into()));
        }
        let version = u32::from_le_bytes(input.take()?);
        if version != VERSION {
            return Err(Error::NotBackup(format!(
                "it is of format {version}, and this program knows {VERSION}"
            )));
        }
        let mut map = None;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        loop {
            match input.take::<1>()? {
                [MAP] => {
                    map = Some(self.restore_map(&mut input)?);
                    copied.maps += 1;
                }
                [ENTRY] => {
                    let key_len = u16::from_le_bytes(input.take()?).into();
                    let value_len = u32::from_le_bytes(input.take()?) as usize;
                    if key_len > MAX_KEY || value_len > MAX_VALUE {
                        return Err(damaged("a length that no entry has"));
                    }
                    input.fill(&mut key, key_len)?;
                    input.fill(&mut value, value_len)?;
                    let map = map.as_ref().ok_or_else(|| damaged("an entry of no map"))?;
                    crate::Map::upsert(map, &key, &value)?;
                    copied.bytes = input.bytes;
                    copied.entry(&mut progress);
                }
                [END] => break,
                [_] => return Err(damaged("a record of no kind")),
            }
        }
        let entries = u64::from_le_bytes(input.take()?);
        let sum = input.sum.get();
        if u64::from_le_bytes(input.take()?) != sum {
            return Err(damaged("its checksum is another"));
        }
        if entries != copied.entries {
            return Err(damaged("entries are missing"));
        }
        copied.bytes = input.bytes;
        progress(&copied);
        Ok(copied)
    }

    fn restore_map(&self, input: &mut Summed<'_, impl Read>) -> Result<crate::Map, Error> {
        let [name_len, index_len] = input.take::<2>()?.map(usize::from);
        let mut bytes = Vec::new();
        let mut text = |len| {
            input.fill(&mut bytes, len)?;
            let text = str::from_utf8(&bytes).map_err(|_| damaged("a name that is no text"))?;
            Ok::<_, Error>(text.to_owned())
        };
        let (name, index) = (text(name_len)?, text(index_len)?);
        let kind: IndexKind = index
            .parse()
            .map_err(|error: crate::UnknownIndex| Error::NotBackup(error.to_string()))?;
        self.make_map(&name, kind)
    }

    /// Makes the maps of a snapshot here, and puts their entries, in key order and so packed as densely as they can be.
    /// Durability, progress and errors are those of [`restore`](Db::restore).
    ///
    /// Into a new pool this compacts a database, as `wollemi compact` does, which then gives the new file the old one's name:
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
            let map = self.make_map(&info.name, view.index_kind())?;
            copied.maps += 1;
            for entry in view.iter() {
                let (key, value) = entry?;
                map.upsert(&key, &value)?;
                copied.bytes += (key.len() + value.len()) as u64;
                copied.entry(&mut progress);
            }
        }
        progress(&copied);
        Ok(copied)
    }

    fn make_map(&self, name: &str, kind: IndexKind) -> Result<crate::Map, Error> {
        if self.find_map(name)?.is_some() {
            return Err(Error::MapExists(name.to_owned()));
        }
        self.map_with(name, kind)
    }
}

const _: () = assert!(MAX_NAME <= u8::MAX as usize && MAX_KEY <= u16::MAX as usize);

fn damaged(why: &str) -> Error {
    Error::NotBackup(format!("it is damaged or cut short: {why}"))
}

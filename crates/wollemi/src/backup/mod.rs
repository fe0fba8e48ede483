//! Backups: all maps at one moment as a stream of bytes, and databases restored from them.
//!
//! ```text
//! magic     8  "WOLLEMIB"
//! version   4  1
//! then records, each preceded by a byte with its type:
//!   1  map:   length of its name (1), of its index's name (1), both names
//!   2  entry, of the map last named: length of the key (2), of the value (4), key, value
//!   3  end:   number of entries (8), checksum of everything before these eight bytes (8): see `sum`
//! ```
//!
//! Little endian. A stream that ends before its end record, or whose checksum does not match, is refused.

mod file;
mod restore;
mod sum;

use crate::{Error, MAX_KEY, MAX_NAME, Media, Snapshot};
use serde::Serialize;
use std::io::Write;
use sum::Summed;

const MAGIC: &[u8; 8] = b"WOLLEMIB";
const VERSION: u32 = 1;

const MAP: u8 = 1;
const ENTRY: u8 = 2;
const END: u8 = 3;

/// Entries between two progress reports.
const STRIDE: u64 = 256;

/// Progress of a backup or a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Maps begun so far.
    pub maps: u64,
    /// Entries copied so far.
    pub entries: u64,
    /// Bytes of the stream, or of keys and values where there is no stream.
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
    /// Writes all maps, as of the snapshot, to `out`, and flushes it. Other threads may write to the database
    /// meanwhile. Calls `progress` at intervals and at the end.
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
    /// [`Error::Backup`] if `out` fails; [`Error::SnapshotOutgrown`]; [`Error::OtherKind`] if a map's index is unknown
    /// to this version; an index's error if the pool is damaged.
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

const _: () = assert!(MAX_NAME <= u8::MAX as usize && MAX_KEY <= u16::MAX as usize);

fn damaged(why: &str) -> Error {
    Error::NotBackup(format!("damaged or truncated: {why}"))
}

//! Backups of format 1, which earlier versions wrote. They are only read.
//!
//! ```text
//! magic     8  "WOLLEMIB"
//! version   4  1
//! then records, each preceded by a byte with its type:
//!   1  map:   length of its name (1), of its index's name (1), both names
//!   2  entry, of the map last named: length of the key (2), of the value (4), key, value
//!   3  end:   number of entries (8), checksum of everything before these eight bytes (8): see `sum`
//! ```

use super::sum::Summed;
use crate::stream::{Item, MAGIC, StreamError, Totals};
use crate::{MAX_KEY, MAX_VALUE};
use std::io::Read;

/// The version's number.
pub(super) const VERSION: u32 = 1;

const MAP: u8 = 1;
const ENTRY: u8 = 2;
const END: u8 = 3;

/// Reads a backup to its end record and no further.
pub(super) struct Version1<R> {
    input: Summed<R>,
    /// The names of the last map, one after the other, and the length of the first; `None` before the first map.
    names: String,
    name: Option<usize>,
    key: Vec<u8>,
    value: Vec<u8>,
    entries: u64,
    has_ended: bool,
}

impl<R: Read> Version1<R> {
    /// Continues after the [start](crate::stream::read_start).
    pub fn behind_start(input: R) -> Version1<R> {
        let mut input = Summed::new(input);
        input.count(MAGIC);
        input.count(&VERSION.to_le_bytes());
        Version1 {
            input,
            names: String::new(),
            name: None,
            key: Vec::new(),
            value: Vec::new(),
            entries: 0,
            has_ended: false,
        }
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`StreamError::Damaged`] and [`StreamError::Io`].
    pub fn next(&mut self) -> Result<Option<Item<'_>>, StreamError> {
        if self.has_ended {
            return Ok(None);
        }
        let input = &mut self.input;
        match (input.take::<1>()?, self.name) {
            ([MAP], _) => {
                let [name, index] = input.take::<2>()?.map(usize::from);
                let mut names = Vec::new();
                input.fill(&mut names, name + index)?;
                let names = String::from_utf8(names).ok();
                let names = names.filter(|names| names.is_char_boundary(name));
                self.names = names.ok_or(StreamError::Damaged("a name that is not UTF-8"))?;
                self.name = Some(name);
                let (name, index) = self.names.split_at(name);
                Ok(Some(Item::Map { name, index }))
            }
            ([ENTRY], Some(_)) => {
                let key = u16::from_le_bytes(input.take()?).into();
                let value = u32::from_le_bytes(input.take()?) as usize;
                if key > MAX_KEY || value > MAX_VALUE {
                    return Err(StreamError::Damaged("an entry length out of range"));
                }
                input.fill(&mut self.key, key)?;
                input.fill(&mut self.value, value)?;
                self.entries += 1;
                let value = Some(&self.value[..]);
                Ok(Some(Item::Entry {
                    key: &self.key,
                    value,
                }))
            }
            ([ENTRY], None) => Err(StreamError::Damaged("an entry before the first map")),
            ([END], _) => {
                let entries = u64::from_le_bytes(input.take()?);
                let sum = input.sum.get();
                if u64::from_le_bytes(input.take()?) != sum {
                    return Err(StreamError::Damaged("checksum mismatch"));
                }
                if entries != self.entries {
                    return Err(StreamError::Damaged("wrong number of entries"));
                }
                self.has_ended = true;
                Ok(None)
            }
            _ => Err(StreamError::Damaged("a record of unknown type")),
        }
    }

    /// Returns the entries and bytes read so far.
    pub fn totals(&self) -> Totals {
        Totals {
            entries: self.entries,
            bytes: self.input.bytes,
        }
    }
}

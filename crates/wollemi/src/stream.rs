//! Streams of sorted entries: what backups and the runs of checkpoints are made of.
//!
//! ```text
//! magic     8  "WOLLEMIB"
//! version   4  2
//! then records, each with a byte before it that says what it is:
//!   1  map:    length of its name (1), of its index's name (1), both names, checksum (8)
//!   3  end:    number of entries (8), checksum (8)
//!   4  block:  1 if it is compressed, else 0 (1), bytes that follow (4), bytes when unpacked (4), checksum (8), the bytes
//!
//! an unpacked block: entries of the map last named, one after the other, in ascending order of their keys:
//!   length of the key (varint), 0 for a key that was removed, or 1 + length of the value (varint), key, value
//! ```
//!
//! Little endian; a varint has seven bits a byte, the lowest first, and a high bit in each byte but the last. Blocks
//! are compressed by LZ4 (its block format) where that saves an eighth. Each checksum is XXH3 of 64 bits over the
//! record's other bytes, its first one included, seeded by the number of the records before it: a record that is
//! damaged, missing, doubled or elsewhere is noticed where it stands. Only the runs of checkpoints hold removed keys,
//! and they count their records from a number of their own, so that none is taken for another.

use std::io::{self, Read, Write};
use xxhash_rust::xxh3::Xxh3;

/// The first bytes, of every version.
pub(crate) const MAGIC: &[u8; 8] = b"WOLLEMIB";

/// The version that is written.
pub(crate) const VERSION: u32 = 2;

const MAP: u8 = 1;
const END: u8 = 3;
const BLOCK: u8 = 4;

/// A block is written when it has this many bytes, unpacked.
const FULL: usize = 64 << 10;

/// Bytes of a block's head behind its first: compressed or not, stored length, unpacked length.
const HEAD: usize = 9;

/// Why a stream cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The first bytes are others.
    #[error("it does not begin like one")]
    Foreign,
    /// It was written by another version.
    #[error("it is of format {0}, and this program knows 1 and {VERSION}")]
    Version(u32),
    /// It was changed, or does not go on.
    #[error("it is damaged or cut short: {0}")]
    Damaged(&'static str),
}

/// What was written, or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Entries.
    pub entries: u64,
    /// Bytes of the stream.
    pub bytes: u64,
}

/// Writes a stream.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    out: W,
    block: Vec<u8>,
    packed: Vec<u8>,
    /// Records so far.
    records: u64,
    totals: Totals,
}

impl<W: Write> Writer<W> {
    /// Begins a stream whose records are counted from this number on.
    ///
    /// # Errors
    ///
    /// [`StreamError::Io`], as all other calls.
    pub fn new(first: u64, mut out: W) -> Result<Writer<W>, StreamError> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Writer {
            out,
            block: Vec::with_capacity(FULL + FULL / 8),
            packed: Vec::new(),
            records: first,
            totals: Totals {
                entries: 0,
                bytes: 12,
            },
        })
    }

    /// Begins a map, of at most 255 bytes of name each; the entries that follow are of it.
    pub fn map(&mut self, name: &str, index: &str) -> Result<(), StreamError> {
        self.end_block()?;
        let lens = [name.len() as u8, index.len() as u8];
        let record = [&lens[..], name.as_bytes(), index.as_bytes()].concat();
        self.put(MAP, &record, &[])
    }

    /// Adds an entry of the map begun last; `None`: the key was removed. Its key is above those before it in the map.
    pub fn entry(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StreamError> {
        put_varint(&mut self.block, key.len());
        put_varint(&mut self.block, value.map_or(0, |value| value.len() + 1));
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value.unwrap_or_default());
        self.totals.entries += 1;
        match self.block.len() < FULL {
            true => Ok(()),
            false => self.end_block(),
        }
    }

    /// Entries and bytes so far; those of a block that is not full yet are not counted among the bytes.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Bytes of the block that is not full yet, unpacked.
    pub fn unwritten(&self) -> usize {
        self.block.len()
    }

    /// The destination.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the stream, and flushes `out`.
    pub fn finish(mut self) -> Result<(W, Totals), StreamError> {
        self.end_block()?;
        let entries = self.totals.entries.to_le_bytes();
        self.put(END, &entries, &[])?;
        self.out.flush()?;
        Ok((self.out, self.totals))
    }

    fn end_block(&mut self) -> Result<(), StreamError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        let mut packed = std::mem::take(&mut self.packed);
        packed.resize(lz4_flex::block::get_maximum_output_size(block.len()), 0);
        let len = lz4_flex::block::compress_into(&block, &mut packed).unwrap_or(usize::MAX);
        let is_packed = len <= block.len() - block.len() / 8;
        let bytes = if is_packed { &packed[..len] } else { &block };
        let mut head = [0; HEAD];
        head[0] = is_packed.into();
        head[1..5].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        head[5..].copy_from_slice(&(block.len() as u32).to_le_bytes());
        self.put(BLOCK, &head, bytes)?;
        // What one large value took is given back.
        self.block = if block.capacity() > 4 * FULL {
            Vec::new()
        } else {
            block
        };
        self.block.clear();
        self.packed = if packed.capacity() > 4 * FULL {
            Vec::new()
        } else {
            packed
        };
        Ok(())
    }

    /// Writes a record: its kind, `head`, the checksum of all three, and `tail`.
    fn put(&mut self, kind: u8, head: &[u8], tail: &[u8]) -> Result<(), StreamError> {
        let sum = checksum(self.records, kind, &[head, tail]);
        self.records = self.records.wrapping_add(1);
        self.out.write_all(&[kind])?;
        self.out.write_all(head)?;
        self.out.write_all(&sum.to_le_bytes())?;
        self.out.write_all(tail)?;
        self.totals.bytes += (1 + head.len() + 8 + tail.len()) as u64;
        Ok(())
    }
}

/// What a stream has next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'r> {
    /// A map begins.
    Map {
        /// Its name.
        name: &'r str,
        /// The name of the index that held it.
        index: &'r str,
    },
    /// An entry of the map begun last.
    Entry {
        /// Its key.
        key: &'r [u8],
        /// Its value; `None`: the key was removed.
        value: Option<&'r [u8]>,
    },
}

/// Reads a stream to its end record and no further.
#[derive(Debug)]
pub(crate) struct StreamReader<R> {
    input: R,
    /// The present block, unpacked, and how much of it has been returned.
    block: Vec<u8>,
    at: usize,
    /// The bytes of the present record.
    stored: Vec<u8>,
    /// The length of the present map's name; `None` before the first map.
    name: Option<usize>,
    records: u64,
    has_ended: bool,
    totals: Totals,
}

/// Reads the first bytes of a stream; its version.
///
/// # Errors
///
/// [`StreamError::Foreign`] and [`StreamError::Io`].
pub(crate) fn read_start(input: &mut impl Read) -> Result<u32, StreamError> {
    let mut start = [0; 12];
    input.read_exact(&mut start).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => StreamError::Foreign,
        _ => error.into(),
    })?;
    let [.., v0, v1, v2, v3] = start;
    match start.starts_with(MAGIC) {
        true => Ok(u32::from_le_bytes([v0, v1, v2, v3])),
        false => Err(StreamError::Foreign),
    }
}

impl<R: Read> StreamReader<R> {
    /// Reads the beginning. The input should be buffered.
    ///
    /// # Errors
    ///
    /// [`StreamError::Foreign`] and [`StreamError::Version`] tell what it is not; [`StreamError::Io`].
    pub fn new(mut input: R) -> Result<StreamReader<R>, StreamError> {
        match read_start(&mut input)? {
            VERSION => Ok(StreamReader::behind_start(input)),
            other => Err(StreamError::Version(other)),
        }
    }

    /// Goes on behind the [start](read_start) of a stream of this version.
    pub fn behind_start(input: R) -> StreamReader<R> {
        StreamReader {
            input,
            block: Vec::new(),
            at: 0,
            stored: Vec::new(),
            name: None,
            records: 0,
            has_ended: false,
            totals: Totals {
                entries: 0,
                bytes: 12,
            },
        }
    }

    /// The same, whose records were [counted from](Writer::new) this number on.
    #[must_use]
    pub fn counting_from(self, first: u64) -> StreamReader<R> {
        StreamReader {
            records: first,
            ..self
        }
    }

    /// What comes next; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`StreamError::Damaged`] where a record is not what was written, and [`StreamError::Io`].
    pub fn next(&mut self) -> Result<Option<Item<'_>>, StreamError> {
        while self.at == self.block.len() {
            if self.has_ended {
                return Ok(None);
            }
            if self.read_record()? == MAP {
                return self.map().map(Some);
            }
        }
        self.entry().map(Some)
    }

    fn map(&self) -> Result<Item<'_>, StreamError> {
        let text = str::from_utf8(&self.stored).ok();
        let names = text.and_then(|text| text.split_at_checked(self.name?));
        let (name, index) = names.ok_or(StreamError::Damaged("a name that is no text"))?;
        Ok(Item::Map { name, index })
    }

    fn entry(&mut self) -> Result<Item<'_>, StreamError> {
        let mut rest = &self.block[self.at..];
        let mut parts = || {
            let (key, value) = (take_varint(&mut rest)?, take_varint(&mut rest)?);
            let key = rest.split_off(..key)?;
            let value = match value {
                0 => None,
                len => Some(rest.split_off(..len - 1)?),
            };
            Some((key, value))
        };
        let (key, value) = parts().ok_or(StreamError::Damaged("an entry that its block cuts off"))?;
        self.at = self.block.len() - rest.len();
        self.totals.entries += 1;
        Ok(Item::Entry { key, value })
    }

    /// Reads a record and checks it; its kind. Afterwards `stored` has the names of a map, and `block` is a block's.
    fn read_record(&mut self) -> Result<u8, StreamError> {
        let [kind] = self.take()?;
        match kind {
            MAP => {
                let lens: [u8; 2] = self.take()?;
                self.fill(lens.map(usize::from).iter().sum())?;
                self.name = Some(lens[0].into());
                let sum = self.take()?;
                self.check(sum, kind, &lens)?;
            }
            END => {
                let entries = self.take()?;
                let sum = self.take()?;
                self.stored.clear();
                self.check(sum, kind, &entries)?;
                if u64::from_le_bytes(entries) != self.totals.entries {
                    return Err(StreamError::Damaged("entries are missing"));
                }
                self.has_ended = true;
            }
            BLOCK => {
                let head: [u8; HEAD] = self.take()?;
                let sum = self.take()?;
                let [packed, s0, s1, s2, s3, u0, u1, u2, u3] = head;
                self.fill(u32::from_le_bytes([s0, s1, s2, s3]) as usize)?;
                self.check(sum, kind, &head)?;
                self.unpack(packed != 0, u32::from_le_bytes([u0, u1, u2, u3]) as usize)?;
            }
            _ => return Err(StreamError::Damaged("a record of no kind")),
        }
        Ok(kind)
    }

    /// Makes the present block of the bytes stored, which are as they were written.
    fn unpack(&mut self, is_packed: bool, len: usize) -> Result<(), StreamError> {
        if self.name.is_none() {
            return Err(StreamError::Damaged("an entry of no map"));
        }
        self.at = 0;
        if is_packed {
            self.block.resize(len, 0);
            let unpacked = lz4_flex::block::decompress_into(&self.stored, &mut self.block);
            if unpacked.ok() != Some(len) {
                return Err(StreamError::Damaged("a block that cannot be unpacked"));
            }
        } else {
            std::mem::swap(&mut self.block, &mut self.stored);
        }
        Ok(())
    }

    /// Compares the checksum of a record with that of its kind, its head and the bytes stored.
    fn check(&mut self, sum: [u8; 8], kind: u8, head: &[u8]) -> Result<(), StreamError> {
        if checksum(self.records, kind, &[head, &self.stored]) != u64::from_le_bytes(sum) {
            return Err(StreamError::Damaged("a checksum is another"));
        }
        self.records = self.records.wrapping_add(1);
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], StreamError> {
        let mut bytes = [0; N];
        self.input
            .read_exact(&mut bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => CUT_SHORT,
                _ => error.into(),
            })?;
        self.totals.bytes += N as u64;
        Ok(bytes)
    }

    /// Reads this many bytes into `stored`, without allocating more than there are bytes.
    fn fill(&mut self, len: usize) -> Result<(), StreamError> {
        self.stored.clear();
        let read = (&mut self.input).take(len as u64).read_to_end(&mut self.stored)?;
        self.totals.bytes += read as u64;
        if read < len { Err(CUT_SHORT) } else { Ok(()) }
    }
}

const CUT_SHORT: StreamError = StreamError::Damaged("its end is missing");

/// The checksum of a record whose bytes are its kind and these parts, and which has this number in the stream.
fn checksum(records: u64, kind: u8, parts: &[&[u8]]) -> u64 {
    let mut sum = Xxh3::with_seed(records);
    sum.update(&[kind]);
    parts.iter().for_each(|part| sum.update(part));
    sum.digest()
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a varint of at most five bytes from the beginning.
fn take_varint(from: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = *from.split_off_first()?;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests;

//! Streams of sorted entries, the format of backups and of checkpoint runs.
//!
//! ```text
//! magic     8  "WOLLEMIB"
//! version   4  2
//! then records, each preceded by a byte with its type:
//!   1  map:    length of its name (1), of its index's name (1), both names, checksum (8)
//!   3  end:    number of entries (8), checksum (8)
//!   4  block:  1 if compressed, else 0 (1), bytes that follow (4), bytes when unpacked (4), checksum (8), the bytes
//!
//! an unpacked block: entries of the last named map, one after the other, in ascending order of their keys:
//!   length of the key (varint), 0 for a removed key, or 1 + length of the value (varint), key, value
//! ```
//!
//! Little endian. A varint has seven bits per byte, the lowest first, and the high bit set in each byte but the last.
//! Blocks are compressed by LZ4 (its block format) if that saves an eighth. Each checksum is XXH3 (64 bits) over the
//! record's other bytes, its type included, seeded with the number of preceding records, so a damaged, missing,
//! duplicated or misplaced record is detected at its place. Only the runs of checkpoints contain removed keys. Each run
//! counts its records from a number of its own, so that no run is mistaken for another.

use crate::{MAX_KEY, MAX_VALUE};
use std::io::{self, Read, Write};
use xxhash_rust::xxh3::Xxh3;

/// The magic bytes of every version.
pub(crate) const MAGIC: &[u8; 8] = b"WOLLEMIB";

/// The version written.
pub(crate) const VERSION: u32 = 2;

const MAP: u8 = 1;
const END: u8 = 3;
const BLOCK: u8 = 4;

/// Unpacked bytes after which a block is written.
const FULL: usize = 64 << 10;

/// Maximum number of unpacked bytes of a block: its last entry begins before it is full, and has two varints.
const LONGEST: usize = FULL + 2 * 5 + MAX_KEY + MAX_VALUE;

/// Bytes of a block's head after its type: compressed or not, stored length, unpacked length.
const HEAD: usize = 9;

/// Why a stream cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// The system failed to read or write.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The magic bytes are wrong.
    #[error("wrong magic bytes")]
    Foreign,
    /// Another version wrote it.
    #[error("format {0}; this program reads {VERSION} (and of backups 1)")]
    Version(u32),
    /// It was changed or truncated.
    #[error("damaged or truncated: {0}")]
    Damaged(&'static str),
}

/// Totals of what was written or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Number of entries.
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
    /// Begins a stream whose records are numbered from `first` on.
    ///
    /// # Errors
    ///
    /// [`StreamError::Io`], as for all other calls.
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

    /// Begins a map, whose two names have at most 255 bytes each; the entries that follow belong to it.
    pub fn map(&mut self, name: &str, index: &str) -> Result<(), StreamError> {
        self.end_block()?;
        let lens = [name.len() as u8, index.len() as u8];
        let record = [&lens[..], name.as_bytes(), index.as_bytes()].concat();
        self.put(MAP, &record, &[])
    }

    /// Adds an entry to the current map; `None`: the key was removed. Its key must be above the earlier ones.
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

    /// Returns the entries and bytes so far, without the bytes of the unfinished block.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the unpacked bytes of the unfinished block.
    pub fn unwritten(&self) -> usize {
        self.block.len()
    }

    /// Returns the destination.
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
        // Frees the memory that one large value needed.
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

    /// Writes a record: its type, `head`, the checksum of all three parts, and `tail`.
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

/// The next item of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'r> {
    /// A map begins.
    Map {
        /// The map's name.
        name: &'r str,
        /// The name of the index that held the map.
        index: &'r str,
    },
    /// An entry of the current map.
    Entry {
        /// The key.
        key: &'r [u8],
        /// The value; `None`: the key was removed.
        value: Option<&'r [u8]>,
    },
}

/// Reads a stream to its end record and no further.
#[derive(Debug)]
pub(crate) struct StreamReader<R> {
    input: R,
    /// The current block, unpacked, and how much of it has been returned.
    block: Vec<u8>,
    at: usize,
    /// The bytes of the current record.
    stored: Vec<u8>,
    /// The length of the current map's name; `None` before the first map.
    name: Option<usize>,
    records: u64,
    has_ended: bool,
    totals: Totals,
}

/// Reads the first bytes of a stream and returns its version.
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
    /// Reads the beginning. Buffer the input.
    ///
    /// # Errors
    ///
    /// [`StreamError::Foreign`] or [`StreamError::Version`] if the stream cannot be read; [`StreamError::Io`].
    pub fn new(mut input: R) -> Result<StreamReader<R>, StreamError> {
        match read_start(&mut input)? {
            VERSION => Ok(StreamReader::behind_start(input)),
            other => Err(StreamError::Version(other)),
        }
    }

    /// Continues after the [start](read_start) of a stream of this version.
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

    /// Sets the first record's number, as passed to [`Writer::new`].
    #[must_use]
    pub fn counting_from(self, first: u64) -> StreamReader<R> {
        StreamReader {
            records: first,
            ..self
        }
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`StreamError::Damaged`] if a record differs from what was written, and [`StreamError::Io`].
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

    /// Returns the entries returned and the bytes read so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn map(&self) -> Result<Item<'_>, StreamError> {
        let text = str::from_utf8(&self.stored).ok();
        let names = text.and_then(|text| text.split_at_checked(self.name?));
        let (name, index) = names.ok_or(StreamError::Damaged("a name that is not UTF-8"))?;
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
        let (key, value) = parts().ok_or(StreamError::Damaged("an entry extends past its block"))?;
        self.at = self.block.len() - rest.len();
        self.totals.entries += 1;
        Ok(Item::Entry { key, value })
    }

    /// Reads and checks a record, and returns its type. Then `stored` has the names of a map, or `block` the content of
    /// a block.
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
                    return Err(StreamError::Damaged("wrong number of entries"));
                }
                self.has_ended = true;
            }
            BLOCK => {
                let head: [u8; HEAD] = self.take()?;
                let sum = self.take()?;
                let [packed, s0, s1, s2, s3, u0, u1, u2, u3] = head;
                let [stored, unpacked] = [[s0, s1, s2, s3], [u0, u1, u2, u3]].map(u32::from_le_bytes);
                // The checksum is compared only once all is read.
                if stored.max(unpacked) as usize > LONGEST {
                    return Err(StreamError::Damaged("a block that is too long"));
                }
                self.fill(stored as usize)?;
                self.check(sum, kind, &head)?;
                self.unpack(packed != 0, unpacked as usize)?;
            }
            _ => return Err(StreamError::Damaged("a record of unknown type")),
        }
        Ok(kind)
    }

    /// Unpacks the stored bytes, whose checksum is already verified, into the current block.
    fn unpack(&mut self, is_packed: bool, len: usize) -> Result<(), StreamError> {
        if self.name.is_none() {
            return Err(StreamError::Damaged("an entry before the first map"));
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

    /// Verifies a record's checksum, from its type, its head and the stored bytes.
    fn check(&mut self, sum: [u8; 8], kind: u8, head: &[u8]) -> Result<(), StreamError> {
        if checksum(self.records, kind, &[head, &self.stored]) != u64::from_le_bytes(sum) {
            return Err(StreamError::Damaged("checksum mismatch"));
        }
        self.records = self.records.wrapping_add(1);
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], StreamError> {
        let mut bytes = [0; N];
        self.input
            .read_exact(&mut bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => TRUNCATED,
                _ => error.into(),
            })?;
        self.totals.bytes += N as u64;
        Ok(bytes)
    }

    /// Reads this many bytes into `stored`, without allocating more than the input provides.
    fn fill(&mut self, len: usize) -> Result<(), StreamError> {
        self.stored.clear();
        let read = (&mut self.input).take(len as u64).read_to_end(&mut self.stored)?;
        self.totals.bytes += read as u64;
        if read < len { Err(TRUNCATED) } else { Ok(()) }
    }
}

pub(crate) const TRUNCATED: StreamError = StreamError::Damaged("no end record");

/// Computes the checksum of a record from its number in the stream, its type and these parts.
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

/// Takes a varint of at most five bytes from the front.
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

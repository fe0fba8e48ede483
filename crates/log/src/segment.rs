//! Segments: files of one size that hold the log's bytes in order.
//!
//! The header, little-endian, in the first 4096 bytes of the file:
//!
//! ```text
//!  0  magic         8 bytes  "WOLLEMIL"
//!  8  version       u32      1
//! 12  size          u32      bytes of the file, header included
//! 16  id            u128     of the log
//! 32  number        u64      of the segment: it holds the positions from number x size on
//! 40  incarnation   u32      of the log when the segment was made ready
//! 44                u32      zero
//! 48  durable       u64      up to where the log was durable then
//! 56  check         u64      of the 56 bytes before
//! ```
//!
//! S1 A file is named `log-NUMBER` only after its header and its length are durable.
//! S2 A file that waits for reuse is named `spare-NUMBER`, and the log ignores its bytes. (Before the leftovers of a
//!    creation are removed, `check_spare` looks at the first eight, in case the file is another program's.) A crash may
//!    show the header of another segment under this name, and under that of the segment that the file was before (O4).
//! S3 A segment's file stays open from before the first store into it until all of it is durable, so that the sync
//!    reports every write-back error. Older ones are opened when they are read: a long log has thousands.

use crate::fragment;
use crate::geometry::{Geometry, SEGMENT_HEADER};
use crate::version::VERSION;
use crate::{Disk, DiskError, DiskFile, Error, Lsn};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"WOLLEMIL";

/// Bytes of the header that are used.
const USED: usize = 64;

/// The allowed sizes of a segment.
pub(crate) const SIZES: std::ops::RangeInclusive<u32> = 8 << 10..=128 << 20;
const _: () = assert!(
    *SIZES.end() as u64 <= fragment::MAX_BODY,
    "a fragment's length fits its field"
);

/// The contents of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) geometry: Geometry,
    pub(crate) id: u128,
    pub(crate) number: u64,
    pub(crate) incarnation: u32,
    pub(crate) durable: Lsn,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; USED] {
        let mut bytes = [0; USED];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.geometry.segment_size.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.durable.0.to_le_bytes());
        let check = xxh3_64(&bytes[..56]);
        bytes[56..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Returns the header, if it is that of segment `number` of the log `id`.
    pub(crate) fn check(self, name: &str, id: u128, number: u64) -> Result<Header, Error> {
        if self.id != id {
            return Err(Error::Foreign {
                file: name.into(),
                found: self.id,
                expected: id,
            });
        }
        match self.number == number {
            true => Ok(self),
            false => Err(damaged(name, 32, "its header is another segment's")),
        }
    }

    /// Reads the header of a file; [`check`](Header::check) follows.
    pub(crate) fn read<F: DiskFile>(file: &F, name: &str) -> Result<Header, Error> {
        let not_a_log = |what| Error::NotALog {
            file: name.into(),
            what,
        };
        let len = file.len()?;
        if len < SEGMENT_HEADER {
            return Err(not_a_log("too short for a header"));
        }
        let mut bytes = [0; USED];
        file.read_at(0, &mut bytes)?;
        if bytes[..8] != *MAGIC {
            return Err(not_a_log("it does not begin like one"));
        }
        let version = u32::from_le_bytes(field(&bytes, 8));
        if version > VERSION {
            return Err(Error::Newer {
                file: name.into(),
                version,
            });
        }
        let geometry = Geometry {
            segment_size: u32::from_le_bytes(field(&bytes, 12)),
        };
        if u64::from_le_bytes(field(&bytes, 56)) != xxh3_64(&bytes[..56]) {
            return Err(damaged(name, 0, "the header's checksum"));
        }
        if version == 0 {
            return Err(damaged(name, 8, "the header's version"));
        }
        let size = geometry.segment_size;
        if !size.is_power_of_two() || !SIZES.contains(&size) {
            return Err(damaged(name, 12, "the header's segment size"));
        }
        if len != geometry.size() {
            return Err(damaged(name, len.min(geometry.size()), "the file's length"));
        }
        let number = u64::from_le_bytes(field(&bytes, 32));
        if number >= u64::MAX / geometry.size() {
            return Err(damaged(name, 32, "the header's number"));
        }
        Ok(Header {
            geometry,
            id: u128::from_le_bytes(field(&bytes, 16)),
            number,
            incarnation: u32::from_le_bytes(field(&bytes, 40)),
            durable: Lsn(u64::from_le_bytes(field(&bytes, 48))),
        })
    }
}

/// Refuses a file that has the name of a spare but does not begin like one. A spare begins with the header of a
/// segment, or with zeros in place of bytes that a crash has kept from being written.
pub(crate) fn check_spare<F: DiskFile>(file: &F, name: &str) -> Result<(), Error> {
    let mut first = [0; MAGIC.len()];
    let len = file.len()?.min(MAGIC.len() as u64) as usize;
    file.read_at(0, &mut first[..len])?;
    let is_of_magic = |(&byte, &magic): (&u8, &u8)| byte == magic || byte == 0;
    match first.iter().zip(MAGIC).all(is_of_magic) {
        true => Ok(()),
        false => Err(Error::NotALog {
            file: name.into(),
            what: "it does not begin like one",
        }),
    }
}

fn field<const N: usize>(bytes: &[u8; USED], at: usize) -> [u8; N] {
    std::array::from_fn(|n| bytes[at + n])
}

pub(crate) fn damaged(file: &str, at: u64, what: &'static str) -> Error {
    Error::Damaged {
        file: file.into(),
        at,
        what,
    }
}

/// A segment in use.
#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(crate) number: u64,
    /// The open file; `None` once all of it is durable (S3).
    pub(crate) file: Option<Arc<F>>,
}

impl<F: DiskFile> Segment<F> {
    /// Its file, opened if it is not open.
    pub(crate) fn file<D: Disk<File = F>>(&self, disk: &D) -> Result<Arc<F>, DiskError> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => disk.open(&log_name(self.number)).map(Arc::new),
        }
    }
}

/// The name of a segment in use.
pub(crate) fn log_name(number: u64) -> String {
    format!("log-{number:08x}")
}

/// The name of a file that waits for reuse.
pub(crate) fn spare_name(number: u64) -> String {
    format!("spare-{number:08x}")
}

/// Whether a file has the name of a segment in use.
pub fn is_segment(file: &str) -> bool {
    number_of(file, log_name).is_some()
}

/// Returns the number in a file's name, if `named` gives that name to the number.
fn number_of(file: &str, named: impl Fn(u64) -> String) -> Option<u64> {
    let (_, digits) = file.split_once('-')?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (named(number) == file).then_some(number)
}

/// The log's files in a directory, by their numbers, ascending.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) logs: std::collections::BTreeSet<u64>,
    pub(crate) spares: std::collections::BTreeSet<u64>,
}

impl Files {
    /// Lists a directory. Names of any other form are ignored.
    pub(crate) fn list<D: Disk>(disk: &D) -> Result<Files, DiskError> {
        let mut files = Files::default();
        for name in disk.list()? {
            if let Some(number) = number_of(&name, log_name) {
                files.logs.insert(number);
            } else if let Some(number) = number_of(&name, spare_name) {
                files.spares.insert(number);
            }
        }
        Ok(files)
    }
}

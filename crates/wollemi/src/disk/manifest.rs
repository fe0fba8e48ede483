//! The manifest names the runs of the last checkpoint and the position from which the log must be replayed over them.
//!
//! ```text
//! magic     8  "WOLLEMIM"
//! version   4  1
//! uuid     16  of the pool
//! from      8  log position at which replay begins
//! until     8  position that the log must reach for the runs to be consistent
//! next      8  number of the next run
//! maps      4  count; then each map:
//!              length of its name (1), of its index's name (1), both names
//!              runs 4, then each run, older levels first, in key order within a level:
//!                number 8, level 4 (0: the lowest), entries 8, bytes 8
//! checksum  8  XXH3 of 64 bits over all before it
//! ```
//!
//! Little endian. It is written as `manifest.new`, synced and renamed, and the directory is synced, so that a complete
//! manifest always exists.
//!
//! I1 The runs that the manifest names are durable before it is.
//! I2 The log holds everything from `from` on; everything older is in the runs.
//! I3 A run that the manifest does not name is a leftover, or belongs to a manifest in doubt (I4 of `checkpoint`). The
//!    next opening or checkpoint removes it.

use crate::files_error::FilesError;
use log::Log;
use log::disk::{Disk, DiskFile};
use xxhash_rust::xxh3::xxh3_64;

/// The file's name.
pub(crate) const NAME: &str = "manifest";
pub(crate) const NEW: &str = "manifest.new";

const MAGIC: &[u8; 8] = b"WOLLEMIM";
const VERSION: u32 = 1;

/// The last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The pool's id.
    pub uuid: u128,
    /// The log position at which replay begins.
    pub from: u64,
    /// The position that the log must reach.
    pub until: u64,
    /// The number of the next run.
    pub next_run: u64,
    pub maps: Vec<MapRuns>,
}

/// A map's part of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapRuns {
    pub name: String,
    /// The name of its index.
    pub index: String,
    /// Older levels first, and in key order within a level.
    pub runs: Vec<Run>,
}

/// A file of sorted entries of one map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// The manifest's `uuid`.
    pub pool: u128,
    pub number: u64,
    /// 0: from a full checkpoint, or from the delta in which the map was created. Above 0: from a delta, with the
    /// changes since the level below.
    pub level: u32,
    pub entries: u64,
    pub bytes: u64,
}

/// The manifest could not be put into effect, or not durably.
pub(crate) struct NotInPlace {
    /// Whether the new manifest may be in effect after a crash. Otherwise its predecessor is.
    pub is_in_doubt: bool,
    pub error: FilesError,
}

impl From<NotInPlace> for FilesError {
    fn from(failed: NotInPlace) -> FilesError {
        failed.error
    }
}

impl Run {
    /// Returns the name of the run's file.
    pub fn file(&self) -> String {
        format!("run-{:08}", self.number)
    }

    /// Returns the number of the run that this file holds, if its name is that of a run.
    pub fn number_of(file: &str) -> Option<u64> {
        let number = file.strip_prefix("run-")?.parse().ok()?;
        let run = Run {
            number,
            ..Run::default()
        };
        (run.file() == file).then_some(number)
    }

    /// Returns whether a file has the name of a run.
    pub fn is_name(file: &str) -> bool {
        Run::number_of(file).is_some()
    }

    /// Returns the first record number of the run's stream: no two runs use the same.
    pub fn first_record(&self) -> u64 {
        let name = [self.pool.to_le_bytes(), u128::from(self.number).to_le_bytes()];
        xxh3_64(name.as_flattened())
    }
}

impl Manifest {
    /// Iterates over all runs.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.maps.iter().flat_map(|map| &map.runs)
    }

    /// Writes this manifest under the temporary name, durably.
    ///
    /// # Errors
    ///
    /// [`FilesError::Disk`]; the previous manifest stays in effect.
    pub fn write<D: Disk>(&self, disk: &D) -> Result<(), FilesError> {
        match disk.remove(NEW) {
            Err(error) if !error.is_missing() => return Err(error.into()),
            _ => {}
        }
        let file = disk.create(NEW)?;
        file.write_at(0, &self.encode())?;
        Ok(file.sync()?)
    }

    /// Renames the temporary manifest into effect; it is durable when this returns. With a log in use, the directory is
    /// synced through the log, which knows of failed syncs that the system has reported to other threads.
    ///
    /// # Errors
    ///
    /// The disk's error, and which manifest may then be in effect.
    pub fn put_in_place<D: Disk>(disk: &D, log: Option<&Log<D>>) -> Result<(), NotInPlace> {
        let names = log.map(|log| (log, log.change_names()));
        disk.rename(NEW, NAME).map_err(|error| NotInPlace {
            // A rename that fails for lack of resources has changed nothing.
            is_in_doubt: !error.is_shortage(),
            error: error.into(),
        })?;
        let synced = match names {
            Some((log, names)) => log.sync_names(names),
            None => disk.sync_dir(),
        };
        synced.map_err(|error| NotInPlace {
            is_in_doubt: true,
            error: error.into(),
        })
    }

    /// Writes the loaded manifest again. Its name may not be durable: the process that renamed it may have been killed
    /// after a failed sync of the directory, and no later sync proves that name durable. The medium may have the
    /// previous manifest, or none if this is the first.
    ///
    /// # Errors
    ///
    /// [`FilesError::Disk`]
    pub fn settle<D: Disk>(&self, disk: &D) -> Result<(), FilesError> {
        self.write(disk)?;
        Ok(Manifest::put_in_place(disk, None)?)
    }

    /// Refuses a file with the temporary name that does not begin as a manifest: with the magic, or with zeros if a
    /// crash came before its sync.
    ///
    /// # Errors
    ///
    /// [`FilesError`] if it does not, or cannot be read.
    pub fn check_aside<D: Disk>(disk: &D) -> Result<(), FilesError> {
        let file = disk.open(NEW)?;
        let mut first = [0; MAGIC.len()];
        let len = file.len()?.min(MAGIC.len() as u64) as usize;
        file.read_at(0, &mut first[..len])?;
        match first == *MAGIC || first == [0; MAGIC.len()] {
            true => Ok(()),
            false => Err(FilesError::damaged(NEW, "wrong magic bytes")),
        }
    }

    /// Reads the manifest; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`FilesError`] if it cannot be read or is damaged.
    pub fn load<D: Disk>(disk: &D) -> Result<Option<Manifest>, FilesError> {
        let file = match disk.open(NAME) {
            Err(error) if error.is_missing() => return Ok(None),
            file => file?,
        };
        let len = file.len()?;
        if len > MAX {
            return Err(damaged("too long for a manifest"));
        }
        let mut bytes = vec![0; len as usize];
        file.read_at(0, &mut bytes)?;
        Manifest::decode(&bytes).map(Some)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.uuid.to_le_bytes());
        for word in [self.from, self.until, self.next_run] {
            out.extend(word.to_le_bytes());
        }
        out.extend((self.maps.len() as u32).to_le_bytes());
        for map in &self.maps {
            out.extend([map.name.len() as u8, map.index.len() as u8]);
            out.extend(map.name.as_bytes());
            out.extend(map.index.as_bytes());
            out.extend((map.runs.len() as u32).to_le_bytes());
            for run in &map.runs {
                out.extend(run.number.to_le_bytes());
                out.extend(run.level.to_le_bytes());
                out.extend(run.entries.to_le_bytes());
                out.extend(run.bytes.to_le_bytes());
            }
        }
        out.extend(xxh3_64(&out).to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Manifest, FilesError> {
        let (rest, sum) = bytes.split_last_chunk::<8>().ok_or(damaged("truncated"))?;
        let mut rest = rest;
        let from = &mut rest;
        if from.split_off(..8) != Some(MAGIC) {
            return Err(damaged("wrong magic bytes"));
        }
        let cut = || damaged("truncated");
        let version = take(from).map(u32::from_le_bytes).ok_or_else(cut)?;
        if version != VERSION {
            return Err(FilesError::Newer {
                file: NAME.into(),
                version,
            });
        }
        if xxh3_64(&bytes[..bytes.len() - 8]) != u64::from_le_bytes(*sum) {
            return Err(damaged("checksum mismatch"));
        }
        Manifest::decode_rest(from).ok_or_else(cut)
    }

    fn decode_rest(from: &mut &[u8]) -> Option<Manifest> {
        let mut manifest = Manifest {
            uuid: u128::from_le_bytes(take(from)?),
            from: u64::from_le_bytes(take(from)?),
            until: u64::from_le_bytes(take(from)?),
            next_run: u64::from_le_bytes(take(from)?),
            maps: Vec::new(),
        };
        for _ in 0..u32::from_le_bytes(take(from)?) {
            let [name, index] = take(from)?.map(usize::from);
            let mut text = |len| Some(str::from_utf8(from.split_off(..len)?).ok()?.to_owned());
            let (name, index) = (text(name)?, text(index)?);
            let mut runs = Vec::new();
            for _ in 0..u32::from_le_bytes(take(from)?) {
                runs.push(Run {
                    pool: manifest.uuid,
                    number: u64::from_le_bytes(take(from)?),
                    level: u32::from_le_bytes(take(from)?),
                    entries: u64::from_le_bytes(take(from)?),
                    bytes: u64::from_le_bytes(take(from)?),
                });
            }
            manifest.maps.push(MapRuns { name, index, runs });
        }
        from.is_empty().then_some(manifest)
    }
}

/// Above the size of any real manifest: a thousand maps with ten thousand runs each.
const MAX: u64 = 1 << 30;

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    from.split_off(..N)?.try_into().ok()
}

fn damaged(why: &'static str) -> FilesError {
    FilesError::damaged(NAME, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Manifest {
        let pool = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;
        let run = |number, level| Run {
            pool,
            number,
            level,
            entries: 3 * number,
            bytes: 1 << number,
        };
        let map = |name: &str, runs: &[Run]| MapRuns {
            name: name.into(),
            index: "roart".into(),
            runs: runs.into(),
        };
        Manifest {
            uuid: pool,
            from: 4096,
            until: 1 << 40,
            next_run: 17,
            maps: vec![
                map("letters", &[run(3, 0), run(4, 0), run(16, 1)]),
                map("über", &[]),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for manifest in [some(), Manifest::default()] {
            assert_eq!(Manifest::decode(&manifest.encode()).expect("sound"), manifest);
        }
    }

    /// A manifest that is truncated, extended or changed anywhere is refused.
    #[test]
    fn damage_is_noticed_everywhere() {
        let bytes = some().encode();
        for at in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(Manifest::decode(&damaged).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(Manifest::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}

//! The pool that rounds copy, and the content of its maps.

use crate::keys::Shape;
use crate::random::Random;
use crate::truth::{Life, Val};
use crate::worker::Wrong;
use std::path::{Path, PathBuf};
use wollemi::{Db, IndexKind, Options};

/// Numbers of keys of a map.
const SIZES: [usize; 5] = [300, 2_000, 5_000, 10_000, 20_000];

/// A map of the image.
pub(super) struct MapPlan {
    pub name: String,
    pub kind: IndexKind,
    /// The keys, in order.
    pub keys: Vec<Vec<u8>>,
    /// The length of its values.
    pub len: u32,
}

/// Maps in a file. Their content is a function of the seed, even after the kills that the file goes through.
pub(super) struct Image {
    pub seed: u64,
    pub maps: Vec<MapPlan>,
    /// The indexes that hold maps.
    pub kinds: Vec<IndexKind>,
    page_size: u64,
    directory: PathBuf,
}

impl Image {
    pub fn new(seed: u64, kinds: &[IndexKind], directory: &Path) -> Image {
        let random = &mut Random::new(seed, 21 << 32);
        let maps = (0..3 + random.index(3)).map(|slot| MapPlan {
            name: format!("map {slot}"),
            kind: random.pick(kinds),
            keys: Shape::Paths.keys(slot, random.pick(&SIZES), random),
            len: random.pick(&[8, 8, 20, 100]),
        });
        Image {
            seed,
            maps: maps.collect(),
            kinds: kinds.to_owned(),
            page_size: random.pick(&[64 << 10, 256 << 10, 1 << 20]),
            directory: directory.to_owned(),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        self.directory.join("openings.image")
    }

    /// Returns the path of the copy that a round opens.
    pub fn copy_path(&self) -> PathBuf {
        self.directory.join("openings.pool")
    }

    pub fn options(&self) -> Options {
        Options::new().page_size(self.page_size).create(false)
    }

    /// Returns the value of a key in the image.
    pub fn value(&self, slot: usize, n: usize) -> Val {
        self.value_of_version(slot, n, 0)
    }

    /// Returns the value of a key in this version. Values differ between versions and between keys.
    pub fn value_of_version(&self, slot: usize, n: usize, version: u64) -> Val {
        Val {
            stamp: version << 40 | (slot as u64) << 32 | n as u64 | 1 << 63,
            len: self.maps[slot].len,
            life: Life::Endless,
        }
    }

    /// Makes the file and closes it. Removed keys leave free space throughout it.
    pub fn create(&self) -> Result<(), Wrong> {
        let failed = |error: wollemi::Error| error.to_string();
        let db: Db = self.options().create(true).open(self.path()).map_err(failed)?;
        for (slot, plan) in self.maps.iter().enumerate() {
            let map = db.map_with(&plan.name, plan.kind).map_err(failed)?;
            let extra = |n: usize| [&plan.keys[n][..], b"x"].concat();
            let entries = (0..plan.keys.len()).flat_map(|n| {
                let value = self.value(slot, n).bytes();
                let more = n.is_multiple_of(3).then(|| (extra(n), value.clone()));
                std::iter::once((plan.keys[n].clone(), value)).chain(more)
            });
            map.load(entries).map_err(failed)?;
            for n in (0..plan.keys.len()).step_by(3) {
                map.remove(extra(n)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes the files.
    pub fn remove(&self) {
        for path in [self.path(), self.copy_path()] {
            // It may not exist.
            let _ = std::fs::remove_file(path);
        }
    }
}

//! Storage for the index under test: a heap in a fresh pool, on the requested media.

use crate::Error;
use heap::Heap;
use index::{Index, Parts};
use pmem::{Media, Pool, PoolOptions};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use wollemi::indexes::{Compiled, IndexKind};

/// The name of the root that holds the index.
const ROOT: &[u8] = b"bench";

/// Creates the index under test in a heap.
pub fn create<M: Compiled>(index: IndexKind, heap: &Heap<M>) -> Result<Box<dyn Index>, Error> {
    Ok(M::create(index, heap, ROOT)?)
}

/// Builds the index under test from sorted pairs.
pub fn build<M: Compiled>(
    index: IndexKind,
    heap: &Heap<M>,
    parts: Parts<'_>,
) -> Result<Box<dyn Index>, Error> {
    Ok(M::build(index, heap, ROOT, parts)?)
}

/// Opens the index created before.
pub fn open<M: Compiled>(index: IndexKind, heap: &Heap<M>) -> Result<Box<dyn Index>, Error> {
    M::open(index, heap, ROOT)?.ok_or_else(|| Error::Wrong("the pool holds no index".into()))
}

/// The location of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory.
    Anonymous,
    /// In a new file, which is removed afterwards.
    File(PathBuf),
}

impl FromStr for Place {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Place, Self::Err> {
        Ok(match text {
            "anon" => Place::Anonymous,
            path => Place::File(path.into()),
        })
    }
}

/// Removes the pool's file when dropped, however the run ends.
pub struct RemoveOnDrop<'p>(pub &'p Path);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        // The file may be missing: its creation may be what failed.
        let _ = std::fs::remove_file(self.0);
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Anonymous => f.write_str("anon"),
            Place::File(path) => path.display().fmt(f),
        }
    }
}

impl Place {
    /// Returns the path of the pool's file, if it has one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Place::Anonymous => None,
            Place::File(path) => Some(path),
        }
    }

    /// Returns a guard that removes the pool's file when dropped.
    pub fn remove_at_end(&self) -> Option<RemoveOnDrop<'_>> {
        self.file().map(RemoveOnDrop)
    }

    /// Creates a pool here, which requests huge pages if `huge_pages` is set. An existing file is an error and is left
    /// unchanged.
    pub fn pool<M: Media>(&self, media: M, huge_pages: bool) -> Result<Pool<M>, Error> {
        let options = PoolOptions {
            huge_pages,
            ..PoolOptions::default()
        };
        Ok(match self {
            Place::Anonymous => Pool::anonymous(&options, media)?,
            Place::File(path) => Pool::create(path, &options, media)?,
        })
    }

    /// Creates a heap in a new pool here, on huge pages if the system allows them.
    pub fn create<M: Media>(&self, media: M) -> Result<Heap<M>, Error> {
        Ok(Heap::new(self.pool(media, true)?)?)
    }

    /// Opens the heap created here before and starts its recovery with this many threads. In memory, creates a new
    /// heap.
    pub fn open<M: Compiled>(&self, media: M, threads: usize) -> Result<Heap<M>, Error> {
        let pool = match self {
            Place::Anonymous => return self.create(media),
            Place::File(path) => Pool::open(path, &PoolOptions::default(), media)?,
        };
        let heap = Heap::new(pool)?;
        heap.recover(M::tracers(), threads)?;
        Ok(heap)
    }
}

/// The space that an index uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Space {
    /// Bytes of the pool that the heap has reserved, including free chunks, root directory and page table.
    pub reserved: u64,
    /// Bytes of live objects.
    pub live: u64,
}

impl Space {
    /// Reads the heap's statistics. No other thread may write meanwhile.
    pub fn of<M: Media>(heap: &Heap<M>) -> Space {
        let stats = heap.stats();
        Space {
            reserved: stats.reserved,
            live: stats.used,
        }
    }
}

//! The place of an index under test: a heap in a fresh pool, on the requested media.

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

/// Makes the index under test in a heap.
pub fn create<M: Compiled>(index: IndexKind, heap: &Heap<M>) -> Result<Box<dyn Index>, Error> {
    Ok(M::create(index, heap, ROOT)?)
}

/// Builds the index under test of sorted pairs.
pub fn build<M: Compiled>(
    index: IndexKind,
    heap: &Heap<M>,
    parts: Parts<'_>,
) -> Result<Box<dyn Index>, Error> {
    Ok(M::build(index, heap, ROOT, parts)?)
}

/// Opens the index made before.
pub fn open<M: Compiled>(index: IndexKind, heap: &Heap<M>) -> Result<Box<dyn Index>, Error> {
    M::open(index, heap, ROOT)?.ok_or_else(|| Error::Wrong("the pool holds no index".into()))
}

/// Where the pool is.
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

/// Removes the pool's file when the run is over, however it ends.
pub struct Remove<'p>(pub &'p Path);

impl Drop for Remove<'_> {
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
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Place::Anonymous => None,
            Place::File(path) => Some(path),
        }
    }

    /// Sees to it that a file here goes with the value returned.
    pub fn remove_at_end(&self) -> Option<Remove<'_>> {
        self.file().map(Remove)
    }

    /// A new pool here, on huge pages if it is to ask for them. A file that exists is an error, and stays.
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

    /// A heap in a new pool here, on huge pages where they are allowed.
    pub fn create<M: Media>(&self, media: M) -> Result<Heap<M>, Error> {
        Ok(Heap::new(self.pool(media, true)?)?)
    }

    /// The heap made here before, with recovery by this many threads under way. Memory holds none.
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

/// What an index takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Space {
    /// Bytes of the pool that the heap has reserved, all in: free chunks, root directory and page table too.
    pub reserved: u64,
    /// Bytes of them in live objects.
    pub live: u64,
}

impl Space {
    /// The heap's accounts. No thread writes meanwhile.
    pub fn of<M: Media>(heap: &Heap<M>) -> Space {
        let stats = heap.stats();
        Space {
            reserved: stats.reserved,
            live: stats.used,
        }
    }
}

//! The indexes that can be measured: one line each.

use crate::Error;
use heap::{Heap, Trace};
use index::Index;
use pmem::Media;
use roart::Roart;
use std::sync::Arc;

/// What to do with an index, of whatever type.
pub trait WithIndex {
    /// What comes of it.
    type Out;
    /// Does it.
    fn with<I: Index>(self, index: &I) -> Result<Self::Out, Error>;
}

/// The name of the root that holds the index.
const ROOT: &[u8] = b"bench";

macro_rules! indexes {
    ($($name:literal => $index:ident :: < $variant:ty >),+ $(,)?) => {
        /// Their names.
        pub const NAMES: &[&str] = &[$($name),+];

        /// Creates the index of this name in a heap.
        pub fn create<M: Media, W: WithIndex>(name: &str, heap: &Heap<M>, then: W) -> Result<W::Out, Error> {
            match name {
                $($name => then.with(&$index::<M, $variant>::create(heap, ROOT)?),)+
                _ => Err(Error::UnknownIndex(name.into())),
            }
        }

        /// Opens the index of this name, created before.
        pub fn open<M: Media, W: WithIndex>(name: &str, heap: &Heap<M>, then: W) -> Result<W::Out, Error> {
            match name {
                $($name => then.with(&$index::<M, $variant>::open(heap, ROOT)?),)+
                _ => Err(Error::UnknownIndex(name.into())),
            }
        }
    };
}

/// What traces the indexes' objects after a crash.
pub fn tracers<M: Media>() -> Vec<(u32, Arc<dyn Trace<M>>)> {
    vec![]
}

indexes! {
    "roart" => Roart::<roart::All>,
}

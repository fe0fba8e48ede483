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
                $($name => {
                    let index = $index::<M, $variant>::open(heap, ROOT)?;
                    then.with(&index.ok_or_else(|| Error::Wrong("the pool holds no index".into()))?)
                })+
                _ => Err(Error::UnknownIndex(name.into())),
            }
        }
    };
}

indexes! {
    "roart" => Roart::<roart::Full>,
    "roart-streaming" => Roart::<roart::Streaming>,
    "roart-without-ec" => Roart::<roart::WithoutEc>,
    "roart-without-smp" => Roart::<roart::WithoutSmp>,
    "roart-without-mo" => Roart::<roart::WithoutMo>,
    "roart-without-lc" => Roart::<roart::WithoutLc>,
    "roart-raw" => Roart::<roart::Raw>,
}

/// What traces the indexes' objects after a crash: one tracer a kind of root.
pub fn tracers<M: Media>() -> Vec<(u32, Arc<dyn Trace<M>>)> {
    vec![(roart::KIND, roart::tracer())]
}

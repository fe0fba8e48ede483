//! Indexes behind a pointer, compiled once in this crate for the media that most programs use, rather than again in
//! each program.

use super::{IndexKind, WithIndex};
use heap::{Heap, Tracers};
use index::{Index, Parts};
use pmem::{Hardware, Media};

/// A media for which every index is compiled here.
pub trait Compiled: Media {
    /// Creates an empty index under the root `name`, as [`IndexKind::create`] does.
    ///
    /// # Errors
    ///
    /// If the name is taken or invalid, or the pool is full.
    fn create(kind: IndexKind, heap: &Heap<Self>, name: &[u8]) -> Result<Box<dyn Index>, heap::Error>
    where
        Self: Sized;

    /// Builds an index from sorted pairs under the root `name`, as [`IndexKind::build`] does.
    ///
    /// # Errors
    ///
    /// Those of [`IndexKind::build`].
    fn build(
        kind: IndexKind,
        heap: &Heap<Self>,
        name: &[u8],
        parts: Parts<'_>,
    ) -> Result<Box<dyn Index>, index::Error>
    where
        Self: Sized;

    /// Opens the index under the root `name`, as [`IndexKind::open`] does; `None` if there is no such root.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, or damaged.
    fn open(kind: IndexKind, heap: &Heap<Self>, name: &[u8]) -> Result<Option<Box<dyn Index>>, heap::Error>
    where
        Self: Sized;

    /// Returns the tracers of the roots of every kind.
    fn tracers() -> Tracers<Self>
    where
        Self: Sized;
}

struct Boxed;

impl WithIndex for Boxed {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        Box::new(index)
    }
}

macro_rules! compiled {
    ($media:ty) => {
        impl Compiled for $media {
            fn create(
                kind: IndexKind,
                heap: &Heap<Self>,
                name: &[u8],
            ) -> Result<Box<dyn Index>, heap::Error> {
                kind.create(heap, name, Boxed)
            }

            fn build(
                kind: IndexKind,
                heap: &Heap<Self>,
                name: &[u8],
                parts: Parts<'_>,
            ) -> Result<Box<dyn Index>, index::Error> {
                kind.build(heap, name, parts, Boxed)
            }

            fn open(
                kind: IndexKind,
                heap: &Heap<Self>,
                name: &[u8],
            ) -> Result<Option<Box<dyn Index>>, heap::Error> {
                kind.open(heap, name, Boxed)
            }

            fn tracers() -> Tracers<Self> {
                IndexKind::tracers()
            }
        }
    };
}

compiled!(Hardware);
// For the laboratory. Left out of this crate's own tests, since it compiles half of the code again.
#[cfg(all(feature = "ablations", not(test)))]
compiled!(pmem::Observed);

//! The type that the list defines: `IndexKind`, with a value for each entry.

use super::{ENTRIES, IndexKind};
use heap::{Root, Tracers};
use index::Index;
use pmem::{Link, Media};
use std::fmt;
use std::str::FromStr;

/// No index of this program has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} '{0}'", why = why_unknown(.0))]
pub struct Unknown(pub String);

fn why_unknown(name: &str) -> &'static str {
    match ENTRIES.iter().find(|entry| entry.name == name) {
        Some(entry) if entry.ablation => "only wollemi-lab has the ablation",
        Some(_) => "this program is built without the index",
        None => "no index is called",
    }
}

/// What to do with an index, of whatever type.
pub trait WithIndex {
    /// What comes of it.
    type Out;
    /// Does it.
    fn with<I: Index + 'static>(self, index: I) -> Self::Out;
}

/// The part of an entry that the list has even if a program leaves the index out.
pub(crate) struct KindEntry {
    pub name: &'static str,
    /// The kind of its roots.
    pub kind: u32,
    /// The key byte of their links, if that tells them apart from others of that kind.
    pub byte: Option<u8>,
    /// Whether it is another index with something left out.
    pub ablation: bool,
}

/// Makes [`IndexKind`](super::IndexKind) of the list.
macro_rules! indexes {
    ($(
        #[doc = $about:literal]
        $(#[cfg($cfg:meta)])?
        $kind:ident = $role:ident $name:literal, roots $roots:literal $(byte $byte:literal)?, $index:ty;
    )+) => {
        use heap::{Heap, Trace};
        use index::{Bulk, OnHeap, Parts};
        use pmem::Media;
        use std::sync::Arc;

        /// An index by its name: what a map can be held by.
        ///
        /// ```
        /// use wollemi::indexes::{IndexKind, Unknown};
        ///
        /// let kind: IndexKind = "roart".parse()?;
        /// assert_eq!(kind, IndexKind::default());
        /// assert_eq!(kind.to_string(), "roart");
        /// assert!("tree".parse::<IndexKind>().is_err());
        /// # Ok::<(), Unknown>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum IndexKind {
            $(#[doc = $about] $(#[cfg($cfg)])? $kind,)+
        }

        /// The list, with what this program leaves out of it.
        const ENTRIES: &[kind::KindEntry] = &[$(kind::entry!($role $name, $roots $(, $byte)?)),+];

        $($(#[cfg($cfg)])?
        const _: () = {
            // Any media's types have the same kinds.
            type M = pmem::Hardware;
            assert!(<$index as OnHeap>::KIND == $roots, "the number of its roots");
        };)+

        impl IndexKind {
            /// All of them.
            pub const ALL: &[IndexKind] = &[$($(#[cfg($cfg)])? IndexKind::$kind),+];

            const fn entry(self) -> kind::KindEntry {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => kind::entry!($role $name, $roots $(, $byte)?),)+
                }
            }

            /// A line about it.
            pub fn about(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => $about.trim_ascii(),)+
                }
            }

            /// Whether it is another index with something left out, for measuring what that is worth.
            pub fn is_ablation(self) -> bool {
                self.entry().ablation
            }

            /// Whether its maps are ordered by their keys' bytes. Those of a hash table can be walked from one end to
            /// the other, and refuse ranges, prefixes and ends.
            pub const fn is_ordered(self) -> bool {
                self.order().is_by_keys()
            }

            /// The order in which it visits its keys.
            pub const fn order(self) -> index::Order {
                // Any media's types have the same order.
                type M = pmem::Hardware;
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => <$index as OnHeap>::ORDER,)+
                }
            }

            /// What traces its objects after a crash, or to give them back.
            pub fn tracer<M: Media>(self) -> Arc<dyn Trace<M>> {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => <$index as OnHeap>::tracer(),)+
                }
            }

            /// Makes an empty one under the root `name`.
            ///
            /// # Errors
            ///
            /// If the name is taken or not a name, or the pool is full.
            pub fn create<M: Media, W: WithIndex>(
                self,
                heap: &Heap<M>,
                name: &[u8],
                then: W,
            ) -> Result<W::Out, heap::Error> {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => Ok(then.with(<$index as OnHeap>::create(heap, name)?)),)+
                }
            }

            /// Builds one of sorted pairs under the root `name`, as [`Bulk::build`] does.
            ///
            /// # Errors
            ///
            /// As for [`Bulk::build`].
            pub fn build<M: Media, W: WithIndex>(
                self,
                heap: &Heap<M>,
                name: &[u8],
                parts: Parts<'_>,
                then: W,
            ) -> Result<W::Out, index::Error> {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => Ok(then.with(<$index as Bulk>::build(heap, name, parts)?)),)+
                }
            }

            /// Whether there is one under the root `name`. It is not opened, which may take the longer the more it
            /// holds.
            pub(crate) fn is_there<M: Media>(self, heap: &Heap<M>, name: &[u8]) -> Result<bool, heap::Error> {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => <$index as OnHeap>::is_there(heap, name),)+
                }
            }

            /// Opens the one under the root `name`; `None` if there is no such root.
            ///
            /// # Errors
            ///
            /// If the root is [of another kind](IndexKind::holds), or damaged.
            pub fn open<M: Media, W: WithIndex>(
                self,
                heap: &Heap<M>,
                name: &[u8],
                then: W,
            ) -> Result<Option<W::Out>, heap::Error> {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => Ok(<$index as OnHeap>::open(heap, name)?.map(|index| then.with(index))),)+
                }
            }
        }
    };
}

macro_rules! entry {
    ($role:ident $name:literal, $roots:literal $(, $byte:literal)?) => {
        kind::KindEntry {
            name: $name,
            kind: $roots,
            byte: kind::optional!($($byte)?),
            ablation: kind::is_ablation!($role),
        }
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($byte:literal) => {
        Some($byte)
    };
}

macro_rules! is_ablation {
    (index) => {
        false
    };
    (ablation) => {
        true
    };
}

pub(crate) use {entry, indexes, is_ablation, optional};

impl KindEntry {
    /// Whether it can open this root: the one it was made as, or one that keeps its bytes alike.
    fn holds(&self, root: &Root) -> bool {
        let byte = art::Tagged::byte(root.link);
        self.kind == root.kind && self.byte.is_none_or(|own| own == byte)
    }

    /// Which index it is, and which program has it, where this one is built without.
    fn left_out(&self) -> String {
        match self.ablation {
            true => "an ablation of an index, made for measuring, which only wollemi-lab has".to_owned(),
            false => format!("the index '{}', which this program is built without", self.name),
        }
    }
}

impl IndexKind {
    /// What to open a root as; `None` if this program knows no index of its kind, or [leaves it
    /// out](IndexKind::left_out).
    pub fn of(root: &Root) -> Option<IndexKind> {
        let same_kind = || IndexKind::ALL.iter().filter(|kind| kind.root_kind() == root.kind);
        match same_kind().find(|kind| kind.holds(root)) {
            Some(found) => Some(*found),
            None if IndexKind::left_out(root).is_some() => None,
            // No index has this byte: the index itself will report that its root is damaged.
            None => same_kind().next().copied(),
        }
    }

    /// Whether it can open this root: the one it was made as, or one that keeps its bytes alike.
    pub fn holds(self, root: &Root) -> bool {
        self.entry().holds(root)
    }

    /// For a root whose index this program is built without: that index, and which program has it. `None` for any other
    /// root.
    pub fn left_out(root: &Root) -> Option<String> {
        if IndexKind::ALL.iter().any(|kind| kind.holds(root)) {
            return None;
        }
        ENTRIES
            .iter()
            .find(|entry| entry.holds(root))
            .map(KindEntry::left_out)
    }

    /// For the name of an index that this program is built without, the same.
    pub(crate) fn left_out_by_name(name: &str) -> Option<String> {
        if IndexKind::ALL.iter().any(|kind| kind.name() == name) {
            return None;
        }
        ENTRIES
            .iter()
            .find(|entry| entry.name == name)
            .map(KindEntry::left_out)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// The kind of its roots, as the heap's directory has it.
    pub(crate) const fn root_kind(self) -> u32 {
        self.entry().kind
    }

    /// The paper's name for the object that a link leads to; `None` for a leaf, and for an object that is no node.
    pub fn name_object(link: Link, len: u64) -> Option<String> {
        match art::Tagged::kind(link) {
            kind @ (art::Kind::N4 | art::Kind::N16 | art::Kind::N48 | art::Kind::N256) => {
                Some(format!("{kind:?}"))
            }
            art::Kind::Array => Some(format!("leaf array of {len} B")),
            art::Kind::Inline => Some(format!("inline leaf array of {len} B")),
            _ => None,
        }
    }

    /// What traces the roots of every kind.
    pub fn tracers<M: Media>() -> Tracers<M> {
        let mut tracers = Tracers::new();
        for kind in IndexKind::ALL {
            if !tracers.iter().any(|tracer| tracer.kind() == kind.root_kind()) {
                tracers.push(kind.tracer());
            }
        }
        tracers
    }
}

impl Default for IndexKind {
    /// The first of the list.
    fn default() -> IndexKind {
        IndexKind::ALL[0]
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for IndexKind {
    type Err = Unknown;
    fn from_str(name: &str) -> Result<IndexKind, Unknown> {
        let found = IndexKind::ALL.iter().find(|kind| kind.name() == name);
        found.copied().ok_or_else(|| Unknown(name.to_owned()))
    }
}

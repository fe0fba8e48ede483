//! The type that the list defines: `IndexKind`, with a variant for each entry.

use super::{ENTRIES, IndexKind};
use heap::{Root, Tracers};
use index::Index;
use pmem::{Link, Media};
use std::fmt;
use std::str::FromStr;

/// The error for a name that no index of this program has.
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

/// An action on an index of any type.
pub trait WithIndex {
    /// The result.
    type Out;
    /// Runs the action.
    fn with<I: Index + 'static>(self, index: I) -> Self::Out;
}

/// The part of an entry that the list keeps even if a program leaves the index out.
pub(crate) struct KindEntry {
    pub name: &'static str,
    /// The kind number of its roots.
    pub kind: u32,
    /// The key byte of their links, if it distinguishes them from other roots of that kind.
    pub byte: Option<u8>,
    /// Whether it is an ablation of another index.
    pub ablation: bool,
}

/// Defines [`IndexKind`](super::IndexKind) from the list.
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

        /// An index, by its name: the kinds that can hold a map.
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

        /// The list, including the entries that this program is built without.
        const ENTRIES: &[kind::KindEntry] = &[$(kind::entry!($role $name, $roots $(, $byte)?)),+];

        $($(#[cfg($cfg)])?
        const _: () = {
            // The types of all media have the same kinds.
            type M = pmem::Hardware;
            assert!(<$index as OnHeap>::KIND == $roots, "the number of its roots");
        };)+

        impl IndexKind {
            /// All indexes of this program.
            pub const ALL: &[IndexKind] = &[$($(#[cfg($cfg)])? IndexKind::$kind),+];

            const fn entry(self) -> kind::KindEntry {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => kind::entry!($role $name, $roots $(, $byte)?),)+
                }
            }

            /// Returns a one-line description.
            pub fn about(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => $about.trim_ascii(),)+
                }
            }

            /// Returns whether it is an ablation: an index with one technique left out, to measure what it is worth.
            pub fn is_ablation(self) -> bool {
                self.entry().ablation
            }

            /// Returns whether its maps are ordered by their keys' bytes. A hash table's maps can be walked from one
            /// end to the other, but refuse ranges, prefixes, and first and last entries.
            pub const fn is_ordered(self) -> bool {
                self.order().is_by_keys()
            }

            /// Returns the order in which it visits its keys.
            pub const fn order(self) -> index::Order {
                // The types of all media have the same order.
                type M = pmem::Hardware;
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => <$index as OnHeap>::ORDER,)+
                }
            }

            /// Returns the tracer of its objects, for recovery after a crash and for freeing them.
            pub fn tracer<M: Media>(self) -> Arc<dyn Trace<M>> {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => <$index as OnHeap>::tracer(),)+
                }
            }

            /// Creates an empty index under the root `name`.
            ///
            /// # Errors
            ///
            /// If the name is taken or invalid, or the pool is full.
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

            /// Builds an index from sorted pairs under the root `name`, as [`Bulk::build`] does.
            ///
            /// # Errors
            ///
            /// Those of [`Bulk::build`].
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

            /// Returns whether one exists under the root `name`, without opening it: opening may take time in
            /// proportion to its size.
            pub(crate) fn is_there<M: Media>(self, heap: &Heap<M>, name: &[u8]) -> Result<bool, heap::Error> {
                match self {
                    $($(#[cfg($cfg)])? IndexKind::$kind => <$index as OnHeap>::is_there(heap, name),)+
                }
            }

            /// Opens the index under the root `name`; returns `None` if there is no such root.
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
    /// Returns whether it can open this root: one of its own kind, or of a kind with the same layout.
    fn holds(&self, root: &Root) -> bool {
        let byte = art::Tagged::byte(root.link);
        self.kind == root.kind && self.byte.is_none_or(|own| own == byte)
    }

    /// Names the index and the build that includes it, for programs built without it.
    fn left_out(&self) -> String {
        match self.ablation {
            true => "an ablation of an index, made for measuring, which only wollemi-lab has".to_owned(),
            false => format!("the index '{}', which this program is built without", self.name),
        }
    }
}

impl IndexKind {
    /// Returns the kind that opens a root; `None` if this program knows no index of its kind, or [is built
    /// without](IndexKind::left_out) it.
    pub fn of(root: &Root) -> Option<IndexKind> {
        let same_kind = || IndexKind::ALL.iter().filter(|kind| kind.root_kind() == root.kind);
        match same_kind().find(|kind| kind.holds(root)) {
            Some(found) => Some(*found),
            None if IndexKind::left_out(root).is_some() => None,
            // No index has this byte: the index itself reports that its root is damaged.
            None => same_kind().next().copied(),
        }
    }

    /// Returns whether it can open this root: one of its own kind, or of a kind with the same layout.
    pub fn holds(self, root: &Root) -> bool {
        self.entry().holds(root)
    }

    /// For a root whose index this program is built without, names that index and the build that includes it. Returns
    /// `None` for any other root.
    pub fn left_out(root: &Root) -> Option<String> {
        if IndexKind::ALL.iter().any(|kind| kind.holds(root)) {
            return None;
        }
        ENTRIES
            .iter()
            .find(|entry| entry.holds(root))
            .map(KindEntry::left_out)
    }

    /// Does the same for the name of an index that this program is built without.
    pub(crate) fn left_out_by_name(name: &str) -> Option<String> {
        if IndexKind::ALL.iter().any(|kind| kind.name() == name) {
            return None;
        }
        ENTRIES
            .iter()
            .find(|entry| entry.name == name)
            .map(KindEntry::left_out)
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the kind number of its roots in the heap's directory.
    pub(crate) const fn root_kind(self) -> u32 {
        self.entry().kind
    }

    /// Returns the paper's name for the node or leaf array that a link points to; `None` for a leaf and for any other
    /// object.
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

    /// Returns the tracers of the roots of every kind.
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
    /// Returns the first entry of the list.
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

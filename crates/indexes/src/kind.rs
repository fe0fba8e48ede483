//! What the list becomes: a type with a value for each entry.

use crate::IndexKind;
use heap::{Root, Tracers};
use index::Index;
use pmem::{Link, Media};
use std::fmt;
use std::str::FromStr;

/// No index has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no index is called '{0}'")]
pub struct Unknown(pub String);

/// What to do with an index, of whatever type.
pub trait WithIndex {
    /// What comes of it.
    type Out;
    /// Does it.
    fn with<I: Index + 'static>(self, index: I) -> Self::Out;
}

/// What an entry is for.
#[derive(PartialEq, Eq)]
#[allow(non_camel_case_types)] // as the list has it
pub(crate) enum Role {
    index,
    ablation,
}

/// Makes [`IndexKind`](crate::IndexKind) of the list.
macro_rules! indexes {
    ($(
        #[doc = $about:literal]
        $(#[$default:ident])?
        $kind:ident = $name:literal, $role:ident, $index:ty $(, root byte $byte:literal)?;
    )+) => {
        use heap::{Heap, Trace};
        use index::OnHeap;
        use pmem::Media;
        use std::sync::Arc;

        /// An index by its name: what a map can be held by.
        ///
        /// ```
        /// # extern crate wollemi_indexes as indexes;
        /// use indexes::IndexKind;
        ///
        /// let kind: IndexKind = "roart".parse()?;
        /// assert_eq!(kind, IndexKind::default());
        /// assert_eq!(kind.to_string(), "roart");
        /// assert!("tree".parse::<IndexKind>().is_err());
        /// # Ok::<(), indexes::Unknown>(())
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum IndexKind {
            $(#[doc = $about] $(#[$default])? $kind,)+
        }

        impl IndexKind {
            /// All of them.
            pub const ALL: &[IndexKind] = &[$(IndexKind::$kind),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(IndexKind::$kind => $name,)+
                }
            }

            /// A line about it.
            pub fn about(self) -> &'static str {
                match self {
                    $(IndexKind::$kind => $about.trim_ascii(),)+
                }
            }

            /// Whether it is another index with something left out, for measuring what that is worth.
            pub fn is_ablation(self) -> bool {
                let role = match self {
                    $(IndexKind::$kind => kind::Role::$role,)+
                };
                role == kind::Role::ablation
            }

            /// The kind of its roots, as the heap's directory has it.
            const fn root_kind(self) -> u32 {
                // Any media's will do.
                type M = pmem::Hardware;
                match self {
                    $(IndexKind::$kind => <$index as OnHeap>::KIND,)+
                }
            }

            /// The key byte of its root's link, if that tells it apart from others of its root's kind.
            const fn root_byte(self) -> Option<u8> {
                match self {
                    $(IndexKind::$kind => kind::optional!($($byte)?),)+
                }
            }

            /// What traces its objects after a crash, or to give them back.
            pub fn tracer<M: Media>(self) -> Arc<dyn Trace<M>> {
                match self {
                    $(IndexKind::$kind => <$index as OnHeap>::tracer(),)+
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
                    $(IndexKind::$kind => Ok(then.with(<$index as OnHeap>::create(heap, name)?)),)+
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
                    $(IndexKind::$kind => Ok(<$index as OnHeap>::open(heap, name)?.map(|index| then.with(index))),)+
                }
            }
        }
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

pub(crate) use {indexes, optional};

impl IndexKind {
    /// What to open a root as; `None` if this program knows no index of its kind.
    pub fn of(root: &Root) -> Option<IndexKind> {
        let same_kind = || IndexKind::ALL.iter().filter(|kind| kind.root_kind() == root.kind);
        // Where the byte is no one's, the index itself will say that its root is damaged.
        let found = same_kind().find(|kind| kind.holds(root));
        found.or_else(|| same_kind().next()).copied()
    }

    /// Whether it can open this root: the one it was made as, or one that keeps its bytes alike.
    pub fn holds(self, root: &Root) -> bool {
        let byte = art::Tagged::byte(root.link);
        self.root_kind() == root.kind && self.root_byte().is_none_or(|own| own == byte)
    }

    /// What the object that a link leads to is called, by the paper of its index; `None` for a leaf, and for what is no
    /// node.
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

//! The list of all indexes: whoever makes or opens one by name, or finds one in a pool, asks here.
//!
//! A new index is a folder, an implementation of [`index::OnHeap`], and one entry below:
//!
//! ```text
//! /// What people are told of it
//! Variant = "name", Type<M>;
//! ```
//!
//! The first entry is the default. An entry's `OnHeap::KIND` is the number of its roots in a heap's directory, and no
//! other's.
//!
//! *Ablations* are an index with something left out, for measuring what that is worth. Only the laboratory has them
//! (Cargo feature `ablations`); other programs know their names and roots, so as to say so. They share the number of
//! their index; where they keep their bytes differently, the key byte of the root's link says so (`root byte 1`), and the
//! first entry of a number and byte is what such a root is opened as.

mod compiled;
mod kind;

pub use compiled::Compiled;
pub use kind::{Unknown, WithIndex};

kind::indexes! {
    /// Radix tree with leaf arrays: short scans, few persists (ROART, FAST 2021)
    Roart = "roart", roart::Roart<M, roart::Full>, root byte 0;
    /// Radix tree of append-only nodes, without logging (P-ART, RECIPE, SOSP 2019)
    Part = "part", recipe::part::Part<M>;
    /// Radix tree of half-bytes, each change one 8-byte store (WORT, FAST 2017)
    Wort = "wort", wort::wort::Wort<M>;
    /// Adaptive radix tree whose nodes change by one word (WOART, FAST 2017)
    Woart = "woart", wort::woart::Woart<M>;
    /// Adaptive radix tree with copy-on-write of small nodes (ART+CoW, FAST 2017)
    ArtCow = "art-cow", wort::art_cow::ArtCow<M>;
    /// Log and buffer tree in DRAM, merged into a base tree in place (DPTree, PVLDB 2019)
    DpTree = "dptree", dptree::DpTree<M>;
    /// ROART, published by non-temporal stores
    #[cfg(feature = "ablations")]
    RoartStreaming = "roart-streaming", roart::Roart<M, roart::Streaming>, root byte 0;
    /// ROART as in the paper: without inline leaf arrays
    #[cfg(feature = "ablations")]
    RoartWithoutInline = "roart-without-inline", roart::Roart<M, roart::WithoutInline>, root byte 2;
    /// The paper's ROART without entry compression
    #[cfg(feature = "ablations")]
    RoartWithoutEc = "roart-without-ec", roart::Roart<M, roart::WithoutEc>, root byte 3;
    /// The paper's ROART without selective metadata persistence
    #[cfg(feature = "ablations")]
    RoartWithoutSmp = "roart-without-smp", roart::Roart<M, roart::WithoutSmp>, root byte 2;
    /// The paper's ROART without the minimally ordered split
    #[cfg(feature = "ablations")]
    RoartWithoutMo = "roart-without-mo", roart::Roart<M, roart::WithoutMo>, root byte 2;
    /// The paper's ROART without leaf compaction
    #[cfg(feature = "ablations")]
    RoartWithoutLc = "roart-without-lc", roart::Roart<M, roart::WithoutLc>, root byte 2;
    /// The paper's ROART with leaf arrays of one size, 64 entries
    #[cfg(feature = "ablations")]
    RoartWithoutSizes = "roart-without-sizes", roart::Roart<M, roart::WithoutSizes>, root byte 2;
    /// ROART with none of its techniques
    #[cfg(feature = "ablations")]
    RoartRaw = "roart-raw", roart::Roart<M, roart::Raw>, root byte 3;
    /// DPTree that merges when its buffer tree has 2% of the base tree's keys
    #[cfg(feature = "ablations")]
    DpTreeMerge2 = "dptree-merge-2", dptree::DpTree<M, dptree::Threshold<2>>;
    /// DPTree that merges when its buffer tree has 50% of the base tree's keys
    #[cfg(feature = "ablations")]
    DpTreeMerge50 = "dptree-merge-50", dptree::DpTree<M, dptree::Threshold<50>>;
    /// DPTree whose leaves are probed without fingerprints
    #[cfg(feature = "ablations")]
    DpTreeLinear = "dptree-linear", dptree::DpTree<M, dptree::Linear>;
    /// DPTree whose leaves are probed by fingerprints alone
    #[cfg(feature = "ablations")]
    DpTreeFingerprints = "dptree-fingerprints", dptree::DpTree<M, dptree::Fingerprints>;
}

impl IndexKind {
    /// Whether its objects are the nodes and leaf arrays of a radix tree, which [`name_object`](IndexKind::name_object) names.
    pub fn is_radix(self) -> bool {
        self.root_kind() != dptree::KIND
    }

    /// Whether the index claims the crash kit's model `word` beside `power` and `process`: that it relies on nothing about
    /// the order in which stores to one line become durable.
    pub fn claims_word(self) -> bool {
        // Its inline leaf arrays store a value and then its key word, which are in one line, and fence once.
        self != IndexKind::Roart
    }
}

//! The list of all indexes: whoever makes or opens one by name, or finds one in a pool, asks here.
//!
//! A new index is a folder, an implementation of [`index::OnHeap`], and one entry below:
//!
//! ```text
//! /// What people are told of it
//! Variant = "name", role, Type<M>;
//! ```
//!
//! Its `OnHeap::KIND` is the number of its roots in a heap's directory, and no other's. Ablations of an index share
//! its number; where they keep their bytes differently, the key byte of the root's link says so (`root byte 1`), and
//! the first entry of a number and byte is what such a root is opened as.

mod compiled;
mod kind;

pub use compiled::Compiled;
pub use kind::{Unknown, WithIndex};

kind::indexes! {
    /// Radix tree with leaf arrays: short scans, few persists (ROART, FAST 2021)
    #[default]
    Roart = "roart", index, roart::Roart<M, roart::Full>, root byte 0;
    /// Radix tree of append-only nodes, without logging (P-ART, RECIPE, SOSP 2019)
    Part = "part", index, recipe::part::Part<M>;
    /// Radix tree of half-bytes, each change one 8-byte store (WORT, FAST 2017)
    Wort = "wort", index, wort::wort::Wort<M>;
    /// Adaptive radix tree whose nodes change by one word (WOART, FAST 2017)
    Woart = "woart", index, wort::woart::Woart<M>;
    /// Adaptive radix tree with copy-on-write of small nodes (ART+CoW, FAST 2017)
    ArtCow = "art-cow", index, wort::art_cow::ArtCow<M>;
    /// ROART, published by non-temporal stores
    RoartStreaming = "roart-streaming", ablation, roart::Roart<M, roart::Streaming>, root byte 0;
    /// ROART as in the paper: without inline leaf arrays
    RoartWithoutInline = "roart-without-inline", ablation, roart::Roart<M, roart::WithoutInline>, root byte 2;
    /// The paper's ROART without entry compression
    RoartWithoutEc = "roart-without-ec", ablation, roart::Roart<M, roart::WithoutEc>, root byte 3;
    /// The paper's ROART without selective metadata persistence
    RoartWithoutSmp = "roart-without-smp", ablation, roart::Roart<M, roart::WithoutSmp>, root byte 2;
    /// The paper's ROART without the minimally ordered split
    RoartWithoutMo = "roart-without-mo", ablation, roart::Roart<M, roart::WithoutMo>, root byte 2;
    /// The paper's ROART without leaf compaction
    RoartWithoutLc = "roart-without-lc", ablation, roart::Roart<M, roart::WithoutLc>, root byte 2;
    /// The paper's ROART with leaf arrays of one size, 64 entries
    RoartWithoutSizes = "roart-without-sizes", ablation, roart::Roart<M, roart::WithoutSizes>, root byte 2;
    /// ROART with none of its techniques
    RoartRaw = "roart-raw", ablation, roart::Roart<M, roart::Raw>, root byte 3;
    /// Log and buffer tree in DRAM, merged into a base tree in place (DPTree, PVLDB 2019)
    DpTree = "dptree", index, dptree::DpTree<M>;
    /// DPTree that merges when its buffer tree has 2% of the base tree's keys
    DpTreeMerge2 = "dptree-merge-2", ablation, dptree::DpTree<M, dptree::Threshold<2>>;
    /// DPTree that merges when its buffer tree has 50% of the base tree's keys
    DpTreeMerge50 = "dptree-merge-50", ablation, dptree::DpTree<M, dptree::Threshold<50>>;
    /// DPTree whose leaves are probed without fingerprints
    DpTreeLinear = "dptree-linear", ablation, dptree::DpTree<M, dptree::Linear>;
    /// DPTree whose leaves are probed by fingerprints alone
    DpTreeFingerprints = "dptree-fingerprints", ablation, dptree::DpTree<M, dptree::Fingerprints>;
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

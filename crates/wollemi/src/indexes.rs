//! The list of all indexes. Code that creates or opens an index by name, or finds one in a pool, uses it.
//!
//! A new index is a folder, an implementation of [`index::OnHeap`], and one entry below:
//!
//! ```text
//! /// Its description for users
//! Variant = index "name", roots 7, Type<M>;
//! ```
//!
//! The first entry is the default. `roots` is the unique number of its roots in a heap's directory (`OnHeap::KIND`). A
//! program may be built without an entry; it still knows the names and roots of all, so that it can report a missing
//! one:
//!
//! * The Cargo feature `papers`, which is on by default, includes all indexes but ROART.
//! * *Ablations* are indexes with one technique left out, to measure what it is worth. Only the laboratory has them
//!   (Cargo feature `ablations`). An ablation shares the number of its index. If it lays out its bytes differently, the
//!   key byte of the root's link says so (`byte 2`); the first entry with a root's number and byte is the one that
//!   opens it.

mod compiled;
mod kind;

pub use compiled::Compiled;
pub use kind::{Unknown, WithIndex};

kind::indexes! {
    /// Radix tree with leaf arrays: short scans, few persists (ROART, FAST 2021)
    Roart = index "roart", roots 1 byte 0, roart::Roart<M, roart::Full>;
    /// Radix tree of append-only nodes, without logging (P-ART, RECIPE, SOSP 2019)
    #[cfg(feature = "papers")]
    Part = index "part", roots 2, recipe::part::Part<M>;
    /// Hash table of cache-line buckets, without order of keys (P-CLHT, RECIPE, SOSP 2019)
    #[cfg(feature = "papers")]
    Clht = index "clht", roots 6, recipe::clht::Clht<M>;
    /// Trie of nodes of up to 32 entries wherever keys part: low, wide, compact (P-HOT, RECIPE, SOSP 2019)
    #[cfg(feature = "papers")]
    Hot = index "hot", roots 9, recipe::hot::Hot<M>;
    /// Trie of B-link trees by eight bytes of the key: dense integers, fast scans (P-Masstree, RECIPE, SOSP 2019)
    #[cfg(feature = "papers")]
    Masstree = index "masstree", roots 8, recipe::masstree::Masstree<M>;
    /// B-link tree of delta chains, without locks (P-BwTree, RECIPE, SOSP 2019)
    #[cfg(feature = "papers")]
    BwTree = index "bwtree", roots 10, recipe::bwtree::BwTree<M>;
    /// Radix tree of half-bytes, each change one 8-byte store (WORT, FAST 2017)
    #[cfg(feature = "papers")]
    Wort = index "wort", roots 3, wort::wort::Wort<M>;
    /// Adaptive radix tree whose nodes change by one word (WOART, FAST 2017)
    #[cfg(feature = "papers")]
    Woart = index "woart", roots 4, wort::woart::Woart<M>;
    /// Adaptive radix tree with copy-on-write of small nodes (ART+CoW, FAST 2017)
    #[cfg(feature = "papers")]
    ArtCow = index "art-cow", roots 5, wort::art_cow::ArtCow<M>;
    /// Log and buffer tree in DRAM, merged into a base tree in place (DPTree, PVLDB 2019)
    #[cfg(feature = "papers")]
    DpTree = index "dptree", roots 20, dptree::DpTree<M>;
    /// ROART, published by non-temporal stores
    #[cfg(feature = "ablations")]
    RoartStreaming = ablation "roart-streaming", roots 1 byte 0, roart::Roart<M, roart::Streaming>;
    /// ROART as in the paper: without inline leaf arrays
    #[cfg(feature = "ablations")]
    RoartWithoutInline = ablation "roart-without-inline", roots 1 byte 2, roart::Roart<M, roart::WithoutInline>;
    /// The paper's ROART without entry compression
    #[cfg(feature = "ablations")]
    RoartWithoutEc = ablation "roart-without-ec", roots 1 byte 3, roart::Roart<M, roart::WithoutEc>;
    /// The paper's ROART without selective metadata persistence
    #[cfg(feature = "ablations")]
    RoartWithoutSmp = ablation "roart-without-smp", roots 1 byte 2, roart::Roart<M, roart::WithoutSmp>;
    /// The paper's ROART without the minimally ordered split
    #[cfg(feature = "ablations")]
    RoartWithoutMo = ablation "roart-without-mo", roots 1 byte 2, roart::Roart<M, roart::WithoutMo>;
    /// The paper's ROART without leaf compaction
    #[cfg(feature = "ablations")]
    RoartWithoutLc = ablation "roart-without-lc", roots 1 byte 2, roart::Roart<M, roart::WithoutLc>;
    /// The paper's ROART with leaf arrays of one size, 64 entries
    #[cfg(feature = "ablations")]
    RoartWithoutSizes = ablation "roart-without-sizes", roots 1 byte 2, roart::Roart<M, roart::WithoutSizes>;
    /// ROART with none of its techniques
    #[cfg(feature = "ablations")]
    RoartRaw = ablation "roart-raw", roots 1 byte 3, roart::Roart<M, roart::Raw>;
    /// DPTree that merges when its buffer tree has 2% of the base tree's keys
    #[cfg(feature = "ablations")]
    DpTreeMerge2 = ablation "dptree-merge-2", roots 20, dptree::DpTree<M, dptree::Threshold<2>>;
    /// DPTree that merges when its buffer tree has 50% of the base tree's keys
    #[cfg(feature = "ablations")]
    DpTreeMerge50 = ablation "dptree-merge-50", roots 20, dptree::DpTree<M, dptree::Threshold<50>>;
    /// DPTree whose leaves are probed without fingerprints
    #[cfg(feature = "ablations")]
    DpTreeLinear = ablation "dptree-linear", roots 20, dptree::DpTree<M, dptree::Linear>;
    /// DPTree whose leaves are probed by fingerprints alone
    #[cfg(feature = "ablations")]
    DpTreeFingerprints = ablation "dptree-fingerprints", roots 20, dptree::DpTree<M, dptree::Fingerprints>;
}

impl IndexKind {
    /// Returns whether the index's objects are the nodes and leaf arrays of a radix tree, which
    /// [`name_object`](IndexKind::name_object) names.
    pub fn is_radix(self) -> bool {
        #[cfg(feature = "papers")]
        return ![
            dptree::KIND,
            recipe::clht::KIND,
            recipe::hot::KIND,
            recipe::masstree::KIND,
            recipe::bwtree::KIND,
        ]
        .contains(&self.root_kind());
        #[cfg(not(feature = "papers"))]
        return true;
    }

    /// Returns whether the index claims the crash kit's model `word` in addition to `power` and `process`: it relies on
    /// no order in which stores to one line become durable.
    pub fn claims_word(self) -> bool {
        // These store a pair and then, in the same line, the word that makes it valid, and fence once: ROART in its
        // inline leaf arrays, P-CLHT in its buckets.
        !matches!(self.name(), "roart" | "clht")
    }
}

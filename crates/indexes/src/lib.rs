//! The list of all indexes: whoever makes or opens one by name, or finds one in a pool, asks here.
//!
//! A new index is a crate or a folder with an implementation, and one entry below:
//!
//! ```text
//! /// What people are told of it
//! Variant = "name", role, module, Type<M>;
//! ```
//!
//! The module has `KIND`, the number of the index's roots in a heap's directory, and `tracer()`; the type has
//! `create(&heap, root)` and `open(&heap, root)`. Ablations of one index share its `KIND`; where they keep their bytes
//! differently, the key byte of the root's link says so (`root byte 1`), and the first entry of a kind and byte is
//! what such a root is opened as.

mod kind;

pub use kind::{Unknown, WithIndex};

kind::indexes! {
    /// ROART: a radix tree with leaf arrays, for short scans and few persists (FAST 2021)
    #[default]
    Roart = "roart", index, roart, roart::Roart<M, roart::Full>, root byte 0;
    /// ROART, published by non-temporal stores as in the paper
    RoartStreaming = "roart-streaming", ablation, roart, roart::Roart<M, roart::Streaming>, root byte 0;
    /// ROART without entry compression
    RoartWithoutEc = "roart-without-ec", ablation, roart, roart::Roart<M, roart::WithoutEc>, root byte 1;
    /// ROART without selective metadata persistence
    RoartWithoutSmp = "roart-without-smp", ablation, roart, roart::Roart<M, roart::WithoutSmp>, root byte 0;
    /// ROART without the minimally ordered split
    RoartWithoutMo = "roart-without-mo", ablation, roart, roart::Roart<M, roart::WithoutMo>, root byte 0;
    /// ROART without leaf compaction
    RoartWithoutLc = "roart-without-lc", ablation, roart, roart::Roart<M, roart::WithoutLc>, root byte 0;
    /// ROART with none of its techniques
    RoartRaw = "roart-raw", ablation, roart, roart::Roart<M, roart::Raw>, root byte 1;
    /// DPTree: a log and a buffer tree in DRAM, merged into a base tree in place, for few persists (PVLDB 2019)
    DpTree = "dptree", index, dptree, dptree::DpTree<M>;
}

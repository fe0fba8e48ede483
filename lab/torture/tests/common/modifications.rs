//! The structure modifications of each index, as reports name them.

use super::IndexKind;
use crashkit::coverage::Coverage;

/// Nodes of a radix tree grow, shrink and disappear.
const NODES: &[&str] = &[
    "N4 -> N16",
    "N16 -> N48",
    "N48 -> N256",
    "N256 -> N48",
    "N48 -> N16",
    "N16 -> N4",
    "N4 ->",
];

/// A node is inserted where two keys diverge.
const PARTING: &[&str] = &["-> N4"];

/// A node is inserted above another.
const ABOVE: &[&str] = &[
    "-> N4 above N4",
    "-> N4 above N16",
    "-> N4 above N48",
    "-> N4 above N256",
];

/// A node is inserted above another, which is copied because its prefix is stored in it and becomes shorter; and the
/// reverse.
const ABOVE_COPY: &[&str] = &[
    "N4 -> N4s",
    "N16 -> N16 + N4",
    "N48 -> N4 + N48",
    "N256 -> N256 + N4",
    "N4s -> N4",
    "N16 + N4 -> N16",
    "N4 + N48 -> N48",
    "N4 -> N4",
    "N16 -> N16",
];

/// WORT, whose nodes are all of one kind.
const WORT: &[&str] = &["-> N16", "N16 ->", "-> N16 above N16"];

/// Leaf arrays grow, split, shrink, and replace nodes.
const ARRAYS: &[&str] = &[
    "-> leaf array of 32 B",
    "leaf array of 32 B -> leaf array of 64 B",
    "leaf array of 64 B -> leaf array of 128 B",
    "leaf array of 128 B -> leaf array of 256 B",
    "leaf array of 256 B -> leaf array of 384 B",
    "leaf array of 384 B -> leaf array of 528 B",
    "leaf array of 528 B -> N*",
    "leaf array of 528 B -> leaf array of 256 B",
    "leaf array of 384 B -> leaf array of 256 B",
    "leaf array of 256 B -> leaf array of 128 B",
    "leaf array of 128 B -> leaf array of 64 B",
    "leaf array of 64 B ->",
    "leaf array of 32 B ->",
    "N4 + * -> leaf array of *",
];

/// The same with leaf arrays of one size.
const ARRAYS_OF_ONE_SIZE: &[&str] = &[
    "-> leaf array of 528 B",
    "leaf array of 528 B -> N*",
    "leaf array of 528 B ->",
    "N4 + * -> leaf array of *",
];

/// The same with inline leaf arrays, which also become leaf arrays.
const INLINE: &[&str] = &[
    "-> inline leaf array of 64 B",
    "inline leaf array of 64 B -> inline leaf array of 128 B",
    "inline leaf array of 128 B -> inline leaf array of 256 B",
    "inline leaf array of 256 B -> inline leaf array of 512 B",
    "inline leaf array of 512 B -> inline leaf array of 1024 B",
    "inline leaf array of 1024 B -> inline leaf array of 2048 B",
    "inline leaf array of 2048 B -> inline leaf array of 4096 B",
    "inline leaf array of 4096 B -> inline leaf array of 8192 B",
    "inline leaf array of * -> N* + inline leaf array*",
    "inline leaf array of * -> leaf array of *",
    "inline leaf array of 8192 B -> inline leaf array of *",
    "inline leaf array of 4096 B -> inline leaf array of 1024 B",
    "inline leaf array of 2048 B -> inline leaf array of 512 B",
    "inline leaf array of 1024 B -> inline leaf array of 256 B",
    "inline leaf array of 512 B -> inline leaf array of 128 B",
    "inline leaf array of 256 B -> inline leaf array of 64 B",
    "inline leaf array of 64 B ->",
];

/// Tables of P-CLHT appear, grow, shrink and disappear.
const TABLES: &[&str] = &[
    "clht: a pair changes its form",
    "clht: first table",
    "clht: larger table",
    "clht: overflow bucket",
    "clht: overflow bucket goes",
    "clht: table goes",
];

/// Modifications of P-HOT's nodes. (Two more have tests of their own in `papers/recipe`: a pull-up ends only in a tree
/// higher than those of histories, and a writer reaches an empty slot only after a removal in a full pool.)
const HOT: &[&str] = &[
    "intermediate node",
    "leaf-node pushdown",
    "normal insert",
    "parent pull-up",
    "remove: copy",
    "remove: entries drawn into the node above",
    "remove: last entry takes the node's place",
    "remove: slot emptied",
    "remove: the last key",
];

/// Nodes and layers of P-Masstree appear and disappear, and writers repair interrupted modifications.
const MASSTREE: &[&str] = &[
    "layer becomes a leaf",
    "lower root of a layer",
    "new layer",
    "new root of a layer",
    "removal of a layer",
    "removal of a node",
    "repair: separator put in",
    "repair: split ended",
    "split of a border",
    "split of an inner node",
];

/// The phases of DPTree's merges, steps of its log, and states that an opening finds.
pub const DPTREE: &[&str] = &[
    "in place: removal",
    "in place: value",
    "log: new page",
    "log: page serves again",
    "merge: collection",
    "merge: flip",
    "merge: front becomes middle",
    "merge: leaf split",
    "merge: leaf without pairs",
    "merge: leaves consolidated",
    "merge: log emptied",
    "merge: metadata",
    "merge: new leaf",
    "merge: pairs into a leaf that stays",
    "merge: removal",
    "merge: upsert",
    "opening: merged log emptied",
    "opening: record replayed",
];

/// The state of a DPTree that an opening finds only if another thread wrote beside a merge.
pub const DPTREE_OF_THREADS: &[&str] = &["opening: merge to be begun again"];

/// The steps of a batch of the database, and of an opening that finds one.
pub const BATCHES: &[&str] = &[
    "batch: changes made",
    "batch: intent published",
    "batch: intent withdrawn",
    "batch: intent written",
    "batch: not as expected",
    "batch: one change, made",
    "batch: root made",
    "opening: batch made again",
];

/// Further steps that only several threads reach.
pub const SEVERAL_BATCHES: &[&str] = &["opening: several batches made again", "transaction: conflict"];

/// Returns the modifications of an index.
pub fn of(kind: IndexKind) -> Vec<&'static str> {
    let parts: &[&[&str]] = match kind {
        IndexKind::Roart | IndexKind::RoartStreaming => &[NODES, ABOVE, ARRAYS, INLINE],
        IndexKind::RoartWithoutInline
        | IndexKind::RoartWithoutEc
        | IndexKind::RoartWithoutSmp
        | IndexKind::RoartWithoutMo => &[NODES, ABOVE, ARRAYS],
        IndexKind::RoartWithoutSizes => &[NODES, ABOVE, ARRAYS_OF_ONE_SIZE],
        // Without leaf arrays, a node is inserted wherever two keys diverge.
        IndexKind::RoartWithoutLc | IndexKind::RoartRaw | IndexKind::Part | IndexKind::Woart => {
            &[NODES, PARTING, ABOVE]
        }
        IndexKind::ArtCow => &[NODES, PARTING, ABOVE_COPY],
        IndexKind::Wort => &[WORT],
        IndexKind::Clht => &[TABLES],
        IndexKind::Hot => &[HOT],
        IndexKind::Masstree => &[MASSTREE],
        // The tests `dptree` and `bwtree` count the modifications of DPTree and of P-BwTree.
        _ => &[],
    };
    parts.concat()
}

/// Returns the modifications of a list that were not reached. `*` matches any text.
pub fn missing<'m>(all: &[&'m str], reached: &Coverage) -> Vec<&'m str> {
    let reached: Vec<&str> = reached
        .changes
        .keys()
        .map(|change| &**change)
        .chain(reached.steps.keys().copied())
        .collect();
    let all = all.iter().copied();
    all.filter(|one| !reached.iter().any(|name| matches(one, name)))
        .collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((first, rest)) => name.strip_prefix(first).is_some_and(|name| {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.any(|at| matches(rest, &name[at..]))
        }),
    }
}

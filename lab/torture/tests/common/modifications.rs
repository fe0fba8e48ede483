//! The structure modifications that an index has, as reports name them.

use super::IndexKind;
use crashkit::coverage::Coverage;

/// Nodes of a radix tree grow and shrink, and go.
const NODES: &[&str] = &[
    "N4 -> N16",
    "N16 -> N48",
    "N48 -> N256",
    "N256 -> N48",
    "N48 -> N16",
    "N16 -> N4",
    "N4 ->",
];

/// One comes where two keys part.
const PARTING: &[&str] = &["-> N4"];

/// One comes above another.
const ABOVE: &[&str] = &[
    "-> N4 above N4",
    "-> N4 above N16",
    "-> N4 above N48",
    "-> N4 above N256",
];

/// One comes above a copy of another, which is in one piece with its prefix; and the reverse.
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

/// WORT's nodes are of one kind.
const WORT: &[&str] = &["-> N16", "N16 ->", "-> N16 above N16"];

/// Leaf arrays grow, split, shrink, and take the place of nodes.
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

/// Where all are of one size.
const ARRAYS_OF_ONE_SIZE: &[&str] = &[
    "-> leaf array of 528 B",
    "leaf array of 528 B -> N*",
    "leaf array of 528 B ->",
    "N4 + * -> leaf array of *",
];

/// Inline leaf arrays do so too, and become leaf arrays.
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

/// Tables of P-CLHT come, grow, shrink and go.
const TABLES: &[&str] = &[
    "clht: a pair changes its form",
    "clht: first table",
    "clht: larger table",
    "clht: overflow bucket",
    "clht: overflow bucket goes",
    "clht: table goes",
];

/// What becomes of P-HOT's nodes. (That pull-ups end takes a tree higher than those of histories, and that a writer
/// comes to an empty slot a removal beside a full pool before it: both have tests of their own in `papers/recipe`.)
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

/// Nodes and layers of P-Masstree come and go, and what a crash has left of that is mended.
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

/// The phases of DPTree's merges, its log, and what an opening finds.
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

/// What an opening finds of it if another thread has written beside a merge.
pub const DPTREE_OF_THREADS: &[&str] = &["opening: merge to be begun again"];

/// What a batch of the database comes to, and an opening that finds one.
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

/// What several threads come to beside these.
pub const SEVERAL_BATCHES: &[&str] = &["opening: several batches made again", "transaction: conflict"];

/// Those of an index.
pub fn of(kind: IndexKind) -> Vec<&'static str> {
    let parts: &[&[&str]] = match kind {
        IndexKind::Roart | IndexKind::RoartStreaming => &[NODES, ABOVE, ARRAYS, INLINE],
        IndexKind::RoartWithoutInline
        | IndexKind::RoartWithoutEc
        | IndexKind::RoartWithoutSmp
        | IndexKind::RoartWithoutMo => &[NODES, ABOVE, ARRAYS],
        IndexKind::RoartWithoutSizes => &[NODES, ABOVE, ARRAYS_OF_ONE_SIZE],
        // Without leaf arrays, keys part one by one.
        IndexKind::RoartWithoutLc | IndexKind::RoartRaw | IndexKind::Part | IndexKind::Woart => {
            &[NODES, PARTING, ABOVE]
        }
        IndexKind::ArtCow => &[NODES, PARTING, ABOVE_COPY],
        IndexKind::Wort => &[WORT],
        IndexKind::Clht => &[TABLES],
        IndexKind::Hot => &[HOT],
        IndexKind::Masstree => &[MASSTREE],
        // Its merges are counted in `dptree`.
        _ => &[],
    };
    parts.concat()
}

/// Those of a list that were not reached. `*` stands for anything.
pub fn missing<'m>(all: &[&'m str], reached: &Coverage) -> Vec<&'m str> {
    let reached: Vec<&str> = reached
        .changes
        .keys()
        .map(|change| &**change)
        .chain(reached.steps.keys().copied())
        .collect();
    let all = all.iter().copied();
    all.filter(|one| !reached.iter().any(|name| is(one, name)))
        .collect()
}

fn is(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((first, rest)) => name.strip_prefix(first).is_some_and(|name| {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.any(|at| is(rest, &name[at..]))
        }),
    }
}

//! Persists of the indexes and of the database that a hunt may forgive ([`crashkit::Forgiven`]).

use crashkit::Forgiven;
use crashkit::Lacks::{Fence, Order, WriteBack};

/// The table. Each row names a site of the sources (`Media::site`).
pub const TABLE: &[Forgiven] = &[
    Forgiven {
        site: "index: root object",
        lacks: &[Fence],
        why: "a new index: the heap also fences the root entry before the link, which the types cannot express; it \
              happens once per index",
    },
    Forgiven {
        site: "index: root object",
        lacks: &[Order],
        why: "a new index, then its name: each must be durable before the link of the root entry, in either order",
    },
    Forgiven {
        site: "database: root",
        lacks: &[WriteBack],
        why: "the root's null links: they matter only where its chunk has held something before; the root is made once \
              per database",
    },
    Forgiven {
        site: "database: root",
        lacks: &[Fence],
        why: "the root, as for its write-back; the heap also fences before the link",
    },
    Forgiven {
        site: "database: root",
        lacks: &[Order],
        why: "the root, then its name: each must be durable before the link, in either order",
    },
    Forgiven {
        site: "part: uncounted pointer",
        lacks: &[WriteBack, Fence],
        why: "a pointer above the counter, emptied: the next restart would empty it again. Only where the words of a \
              line can be torn apart (model word) may a second crash leave a counter that includes it; this persist \
              runs once per node and restart, and no history reaches both crashes",
    },
    Forgiven {
        site: "part: uncounted key bytes",
        lacks: &[WriteBack, Fence],
        why: "key bytes above the counter: they share the counter's line, so the store that clears them becomes durable \
              before the counter includes an entry of theirs; only where the words of a line can be torn apart (model \
              word) would check then find an entry under two bytes",
    },
    Forgiven {
        site: "part: emptied pointer",
        lacks: &[Order],
        why: "an emptied pointer, then a node that is replaced by its last child: each alone leaves a sound tree",
    },
    Forgiven {
        site: "woart: key byte",
        lacks: &[WriteBack],
        why: "a key byte: it shares its line with the bitmap, whose write-back follows; only where the words of a line \
              can be torn apart (model word) does it need its own write-back to be durable first",
    },
    Forgiven {
        site: "woart: pointer",
        lacks: &[WriteBack],
        why: "a pointer: it shares its line with the word that names it, whose write-back follows; only where the words \
              of a line can be torn apart (model word) does it need its own write-back to be durable first",
    },
    Forgiven {
        site: "dptree: root",
        lacks: &[WriteBack],
        why: "a new root: the opening that follows persists its first line again; the other lines are zeros, which \
              matter only where the chunk has held something before",
    },
    Forgiven {
        site: "dptree: logs as found",
        lacks: &[WriteBack],
        why: "the links of the logs as a killed process left them: those that it cleared must be durably null before \
              the pages of that log are reused, which waits for the process's epochs. Those depend on the guards of all \
              its threads, not on the operations of a history",
    },
    Forgiven {
        site: "dptree: record",
        lacks: &[Order],
        why: "a record, then the stores of a merge that its writer executes: they do not count before the flip",
    },
    Forgiven {
        site: "dptree: link to a log page",
        lacks: &[Fence],
        why: "the link to a log page: its own thread fences again before it acknowledges a record in that page; another \
              thread whose record is in that page does not",
    },
    Forgiven {
        site: "dptree: link to a log page",
        lacks: &[Order],
        why: "the link to a log page, then a record: each must be durable before the answer, in either order",
    },
    Forgiven {
        site: "dptree: links of a merged log",
        lacks: &[Order],
        why: "the links of a merged log: they must be null before its pages are reused, which later operations do",
    },
    Forgiven {
        site: "dptree: links of a merged log at an opening",
        lacks: &[WriteBack, Fence],
        why: "the links of a merged log that an opening finds: they must be null before their pages are reused, which \
              waits for the process's epochs. Those depend on the guards of all its threads, not on the operations of a \
              history, however long",
    },
    Forgiven {
        site: "dptree: shown during a change",
        lacks: &[WriteBack, Fence],
        why: "a reader's answer from a leaf that a writer is changing in place: its omission is detected only if the \
              writer is between its store and its fence, which few histories reach",
    },
    Forgiven {
        site: "dptree: removal in place",
        lacks: &[Order],
        why: "a removal in place, then the stores of a merge that its writer executes: they do not count before the flip",
    },
    Forgiven {
        site: "dptree: written by a merge",
        lacks: &[Fence, Order],
        why: "a merge's stores count only after the flip; where several threads merge, each must fence its own (I1)",
    },
    Forgiven {
        site: "dptree: built of pairs",
        lacks: &[Fence, Order],
        why: "a build's stores count only once its root is named, before which the build fences again; where several \
              threads build, each must fence its own",
    },
    Forgiven {
        site: "hot: built of pairs",
        lacks: &[Fence, Order],
        why: "a build's stores count only once its root is named, before which the heap fences again; where several \
              threads build, each must fence its own",
    },
    Forgiven {
        site: "bwtree: base in place of a chain",
        lacks: &[Order],
        why: "a base in place of a chain with the same content: whatever the thread stores next is sound with either",
    },
    Forgiven {
        site: "bwtree: only child of a root, frozen",
        lacks: &[Order],
        why: "the mark on the only child of a root, then the link to the root, which leads to a new cell with the \
              child's content: nothing leads to the marked cell from then on",
    },
    Forgiven {
        site: "bwtree: mark of a merge",
        lacks: &[Order],
        why: "the mark of a merge, then objects to which nothing leads yet, or a lower root above: the parent forgets \
              the removed node only by a later store, and what the mark replaces is not reused before the write ends",
    },
    Forgiven {
        site: "bwtree: mark of a split",
        lacks: &[Order],
        why: "the mark of a split, then objects to which nothing leads yet, or a lower root above: the parent learns \
              of the sibling only by a later store",
    },
    Forgiven {
        site: "bwtree: pair",
        lacks: &[Order],
        why: "a new pair, then the objects of a consolidation: nothing leads to them before a later store",
    },
    Forgiven {
        site: "bwtree: built of pairs",
        lacks: &[Fence, Order],
        why: "a build's stores count only once its root is named, before which the build fences again; where several \
              threads build, each must fence its own",
    },
    Forgiven {
        site: "art: build given up",
        lacks: &[Fence],
        why: "the objects of a failed build: no link leads to them, and they are retired. Only the types require a fence, \
              since they give links to durable objects alone; a failed build pays for it once",
    },
    Forgiven {
        site: "art: index built of pairs",
        lacks: &[Fence],
        why: "an index built from pairs: the heap also fences the root entry before the link, which the types cannot \
              express",
    },
    Forgiven {
        site: "art: index built of pairs",
        lacks: &[Order],
        why: "an index built from pairs, then its name: each must be durable before the link of the root entry, in either \
              order",
    },
    Forgiven {
        site: "masstree: kind of an entry",
        lacks: &[WriteBack],
        why: "an entry's kind: it shares its line with the permutation that names the entry, and whose write-back \
              follows; only where the words of a line can be torn apart (model word) does it need its own write-back \
              to be durable first",
    },
    Forgiven {
        site: "masstree: separator",
        lacks: &[Order],
        why: "a separator, then the writer's next step: a node without a separator is in use, as after a crash and in \
              a full pool",
    },
    Forgiven {
        site: "masstree: root of a layer, raised",
        lacks: &[Order],
        why: "a new root, then the writer's next step: the nodes below it are in use without it, as without a \
              separator",
    },
    Forgiven {
        site: "masstree: root of a layer, lowered",
        lacks: &[Order],
        why: "a lower root, then the removal of the layer's entry in the layer above, or the end of an interrupted \
              split: neither depends on which node is the root",
    },
    Forgiven {
        site: "masstree: leaf in place of a layer",
        lacks: &[Order],
        why: "a leaf in place of its layer, then the same one layer above, after which nothing leads to the first \
              link, or the end of an interrupted split",
    },
    Forgiven {
        site: "masstree: entry of a layer, removed",
        lacks: &[Order],
        why: "the removal of an empty layer's entry, then that of the node or layer that held it: until the second, \
              the empty layer is in use, as after a crash; its node is not reused before the write ends",
    },
    Forgiven {
        site: "masstree: index built of pairs",
        lacks: &[Fence],
        why: "an index built from pairs: the heap also fences the root entry before the link, which the types cannot \
              express",
    },
    Forgiven {
        site: "masstree: index built of pairs",
        lacks: &[Order],
        why: "an index built from pairs, then its name: each must be durable before the link of the root entry, in either \
              order",
    },
    Forgiven {
        site: "masstree: build given up",
        lacks: &[Fence],
        why: "the objects of a failed build, as for those of a radix tree",
    },
    Forgiven {
        site: "clht: pair removed",
        lacks: &[Order],
        why: "the removal of a pair, then the objects of a smaller table, to which nothing leads yet, or the removal \
              of a table without pairs, which removes the pair as well",
    },
    Forgiven {
        site: "clht: overflow bucket",
        lacks: &[Order],
        why: "an overflow bucket, then the objects of another table: nothing leads to them before a later store",
    },
    Forgiven {
        site: "clht: built of pairs",
        lacks: &[Fence, Order],
        why: "a build's stores count only once its root is named, before which the heap fences again, which the types \
              cannot express",
    },
];

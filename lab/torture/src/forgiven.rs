//! Persists of the indexes and of the database that a hunt may forgive ([`crashkit::Forgiven`]).

use crashkit::Forgiven;
use crashkit::Lacks::{Fence, Order, WriteBack};

/// The table. Each row names a site of the sources (`Media::site`).
pub const TABLE: &[Forgiven] = &[
    Forgiven {
        site: "index: root object",
        lacks: &[Fence],
        why: "a new index: the heap fences its root entry before the link too, which the tokens cannot show; once an index",
    },
    Forgiven {
        site: "index: root object",
        lacks: &[Order],
        why: "a new index, and then its name: each must be durable before the link of the root entry, neither before the \
              other",
    },
    Forgiven {
        site: "database: root",
        lacks: &[WriteBack],
        why: "the root: null links, which matter where its chunk has held something before; it is made once a database",
    },
    Forgiven {
        site: "database: root",
        lacks: &[Fence],
        why: "the root, as its write-back; the heap fences before the link too",
    },
    Forgiven {
        site: "database: root",
        lacks: &[Order],
        why: "the root, and then its name: each must be durable before the link, neither before the other",
    },
    Forgiven {
        site: "part: uncounted pointer",
        lacks: &[WriteBack, Fence],
        why: "an emptied pointer: it does not count, and the next restart would empty it again. Only where the words of a \
              line can be torn apart may a second crash leave a counter that counts it; this one is made once a node and \
              restart, and no history comes to both crashes",
    },
    Forgiven {
        site: "part: uncounted key bytes",
        lacks: &[WriteBack, Fence],
        why: "key bytes that do not count: they are in the counter's line, in whose order they are forgotten before an \
              entry of theirs counts; only where the words of a line can be torn apart (model word) would check then \
              find an entry under two bytes",
    },
    Forgiven {
        site: "part: emptied pointer",
        lacks: &[Order],
        why: "an emptied pointer, and then a node that gives its place to its last child: either alone leaves a sound tree",
    },
    Forgiven {
        site: "woart: key byte",
        lacks: &[WriteBack],
        why: "a key byte: it shares its line with the bitmap, whose write-back follows; where the words of a line can be \
              torn apart (model word) only its own makes it durable first",
    },
    Forgiven {
        site: "woart: pointer",
        lacks: &[WriteBack],
        why: "a pointer: it shares its line with the word that names it, whose write-back follows; where the words of a \
              line can be torn apart (model word) only its own makes it durable first",
    },
    Forgiven {
        site: "dptree: root",
        lacks: &[WriteBack],
        why: "a new root: its first line is persisted again by the opening that follows; the others are zeros, which \
              matters where the chunk has held something before",
    },
    Forgiven {
        site: "dptree: logs as found",
        lacks: &[WriteBack],
        why: "the links of the logs as a killed process has left them: those that it has emptied must be null before the \
              pages of that log serve again, for which the process's epochs must end. That is a matter of all its \
              threads' guards and not of the operations of a history",
    },
    Forgiven {
        site: "dptree: record",
        lacks: &[Order],
        why: "a record, and then what a merge writes that its writer carries out: that does not count before the flip",
    },
    Forgiven {
        site: "dptree: link to a log page",
        lacks: &[Fence],
        why: "the link to a log page: by the time its own thread answers for a record there, it has fenced again; another \
              thread whose record is in that page has not",
    },
    Forgiven {
        site: "dptree: link to a log page",
        lacks: &[Order],
        why: "the link to a log page, and then a record: each must be durable before the answer, neither before the other",
    },
    Forgiven {
        site: "dptree: links of a merged log",
        lacks: &[Order],
        why: "the links of a merged log: null before its pages serve again, which is for later operations",
    },
    Forgiven {
        site: "dptree: links of a merged log at an opening",
        lacks: &[WriteBack, Fence],
        why: "the links of a merged log that an opening finds: they must be null before their pages serve again, for which \
              the process's epochs must end. That is a matter of all its threads' guards and not of the operations of a \
              history, however long",
    },
    Forgiven {
        site: "dptree: shown during a change",
        lacks: &[WriteBack, Fence],
        why: "what a reader shows of a leaf that a writer is changing in place: it is missed where the writer stands \
              between its store and its fence, which few histories come to",
    },
    Forgiven {
        site: "dptree: removal in place",
        lacks: &[Order],
        why: "a removal in place, and then what a merge writes that its writer carries out: that does not count before the \
              flip",
    },
    Forgiven {
        site: "dptree: written by a merge",
        lacks: &[Fence, Order],
        why: "what a merge writes counts only after the flip; where several threads merge, each must fence what it wrote (I1)",
    },
    Forgiven {
        site: "dptree: built of pairs",
        lacks: &[Fence, Order],
        why: "what a build writes counts only once its root is named, before which the build fences again; where several \
              threads build, each must fence what it wrote",
    },
    Forgiven {
        site: "art: build given up",
        lacks: &[Fence],
        why: "what a build that failed has made: no link led to it, and it is retired. Only the types ask for a fence, \
              which give links to durable objects alone; a build that fails pays for it once",
    },
    Forgiven {
        site: "art: index built of pairs",
        lacks: &[Fence],
        why: "an index built of pairs: the heap fences its root entry before the link too, which the tokens cannot show",
    },
    Forgiven {
        site: "art: index built of pairs",
        lacks: &[Order],
        why: "an index built of pairs, and then its name: each must be durable before the link of the root entry, neither \
              before the other",
    },
];

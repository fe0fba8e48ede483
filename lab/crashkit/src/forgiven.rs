//! Persists that a hunt may forgive: their absence need not be detected, and they stay for a reason.
//!
//! The structure names such a place in its source ([`Media::site`](pmem::Media::site)); a row here, or in the table of
//! the [subject](crate::Subject::forgiven), says which persist may be omitted there and why it stays. A name applies to
//! the persists of the same source file up to its next fence on that thread.
//!
//! A mutant of a persist that has a row still counts as killed if it is detected.

use crate::Lacks::{self, Fence, Order, WriteBack};

/// A row: persists that a hunt may forgive.
#[derive(Clone, Copy, Debug)]
pub struct Forgiven {
    /// What the source calls the place ([`Media::site`](pmem::Media::site)).
    pub site: &'static str,
    /// What may be left out there.
    pub lacks: &'static [Lacks],
    /// Why it stays nevertheless.
    pub why: &'static str,
}

/// Persists of pools and of the heap.
pub const HEAP: &[Forgiven] = &[
    Forgiven {
        site: "pool: opening",
        lacks: &[Fence],
        why: "an opening, as its write-backs: whatever is fenced next makes up for it, except for what was stored before that",
    },
    Forgiven {
        site: "pool: end of pages at an opening",
        lacks: &[WriteBack],
        why: "an opening: the end of the pages, which is durable already unless a process was killed while the pool grew; and \
              then nothing is lost but where the new page holds something before the next growth persists it",
    },
    Forgiven {
        site: "pool: generation at an opening",
        lacks: &[WriteBack],
        why: "an opening: the generation, which locks and marks will carry; the heap has none of those",
    },
    Forgiven {
        site: "pool: clean close",
        lacks: &[WriteBack, Fence],
        why: "the mark of a clean close: without it the next opening counts a crash that was none. No data rests on it, \
              and no operation tells of it",
    },
    Forgiven {
        site: "link: met under way",
        lacks: &[Fence],
        why: "a link under way that a reader meets: a reader that persists more before it answers, as DPTree does when it \
              has found its root, fences again; others do not",
    },
    Forgiven {
        site: "heap: a root's entry",
        lacks: &[WriteBack],
        why: "what an entry is about: it shares its line with the link, whose write-back follows; where the words of a \
              line can be torn apart (model word) only its own makes it durable first",
    },
    Forgiven {
        site: "heap: a root's link",
        lacks: &[Fence],
        why: "the link of a new root: a maker that persists anything of an index before the making is acknowledged, as \
              DPTree does, has fenced again; others have not",
    },
    Forgiven {
        site: "heap: a root's link",
        lacks: &[Order],
        why: "a new root, and then what its maker persists next: it is whole, and neither needs the other",
    },
    Forgiven {
        site: "heap: end of pages",
        lacks: &[Fence],
        why: "the end of the allocated pages: by the time its own thread publishes something in the new page, it has \
              fenced again; another thread that takes chunks of that page has not",
    },
    Forgiven {
        site: "heap: end of pages",
        lacks: &[Order],
        why: "the end of the allocated pages, and then an object in them: each must be durable before the link to the \
              object, neither before the other; they are persisted in different layers, that the heap owe nothing to its \
              users",
    },
];

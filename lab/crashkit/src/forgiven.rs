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
    /// The name that the source gives the place ([`Media::site`](pmem::Media::site)).
    pub site: &'static str,
    /// The persists that may be omitted there.
    pub lacks: &'static [Lacks],
    /// Why they stay nevertheless.
    pub why: &'static str,
}

/// Persists of pools and of the heap.
pub const HEAP: &[Forgiven] = &[
    Forgiven {
        site: "pool: opening",
        lacks: &[Fence],
        why: "an opening: the next fence completes these write-backs too; only stores before that fence can become \
              durable earlier",
    },
    Forgiven {
        site: "pool: end of pages at an opening",
        lacks: &[WriteBack],
        why: "an opening: the end of the pages, which is durable already unless a process was killed while the pool \
              grew; even then, something is lost only if the new page is used before the next growth persists the \
              end",
    },
    Forgiven {
        site: "pool: generation at an opening",
        lacks: &[WriteBack],
        why: "an opening: the generation, which locks and marks will carry; the heap has neither",
    },
    Forgiven {
        site: "pool: clean close",
        lacks: &[WriteBack, Fence],
        why: "the mark of a clean close: without it the next opening counts a crash that did not happen. No data \
              depends on it, and no operation reports it",
    },
    Forgiven {
        site: "link: met under way",
        lacks: &[Fence],
        why: "a link that is not durable when a reader meets it: a reader that persists more before it answers, as \
              DPTree does once it has found its root, fences again; others do not",
    },
    Forgiven {
        site: "heap: a root's entry",
        lacks: &[WriteBack],
        why: "a root entry's own words: they share their line with the link, whose write-back follows; where the \
              words of a line can be torn apart (model word), only this write-back makes them durable first",
    },
    Forgiven {
        site: "heap: a root's link",
        lacks: &[Fence],
        why: "the link of a new root: a caller that persists parts of an index before it acknowledges the creation, \
              as DPTree does, fences again; others do not",
    },
    Forgiven {
        site: "heap: a root's link",
        lacks: &[Order],
        why: "a new root, and what its caller persists next: the root is complete, and neither needs the other",
    },
    Forgiven {
        site: "heap: end of pages",
        lacks: &[Fence],
        why: "the end of the allocated pages: by the time its own thread publishes something in the new page, it has \
              fenced again; another thread that allocates from that page has not",
    },
    Forgiven {
        site: "heap: end of pages",
        lacks: &[Order],
        why: "the end of the allocated pages, and then an object in them: each must be durable before the link to \
              the object, neither before the other; they are persisted in different layers, so that the heap does \
              not rely on its users",
    },
];

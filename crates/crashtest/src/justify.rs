//! Why some persists are not missed: the reasons that count, beside each a bound on how many lines of source it excuses.
//!
//! I1 A persist has no place here if it can be deleted.
//! I2 No entry excuses more lines of a file than it names, so that a new persist that nothing misses is seen.

use crate::{Fate, Hunted, Lacks};

/// A persist that histories may fail to miss, and why it is kept.
struct Reason {
    /// How the file's path ends.
    file: &'static str,
    lacks: Lacks,
    /// How many lines of the file, at most.
    lines: usize,
    why: &'static str,
}

/// The reasons.
const REASONS: &[Reason] = &[
    Reason {
        file: "heap/src/heap.rs",
        lacks: Lacks::Fence,
        lines: 1,
        why: "the end of the allocated pages: by the time its own thread publishes something in the new page, it has \
              fenced again; another thread that takes chunks of that page has not",
    },
    Reason {
        file: "pmem/src/pool/header.rs",
        lacks: Lacks::Fence,
        lines: 1,
        why: "the state of an opening: on x86-64 the first locked instruction of the generation completes the \
              write-back, on other machines nothing does",
    },
    Reason {
        file: "roart/src/lib.rs",
        lacks: Lacks::Fence,
        lines: 1,
        why: "the fence of a new index: the heap fences its root entry before the link too, which the tokens cannot \
              show; once an index",
    },
];

/// A mutant that was not killed.
#[derive(Clone, Debug)]
pub struct Justified<'h> {
    /// Which.
    pub hunted: &'h Hunted,
    /// Why the persist is kept; `None` if nobody knows.
    pub reason: Option<&'static str>,
}

impl<'h> Justified<'h> {
    /// The survivors among the hunted, in their order, each with the reason for it if there is one.
    pub fn of(hunted: &'h [Hunted]) -> Vec<Justified<'h>> {
        let mut left: Vec<usize> = REASONS.iter().map(|reason| reason.lines).collect();
        let survivors = hunted.iter().filter(|one| matches!(one.fate, Fate::Survived));
        let mut justify = |one: &Hunted| {
            let found = REASONS.iter().zip(&mut left).find(|(reason, left)| {
                **left > 0
                    && reason.lacks == one.mutant.lacks
                    && one.mutant.site.file().ends_with(reason.file)
            });
            found.map(|(reason, left)| {
                *left -= 1;
                reason.why
            })
        };
        survivors
            .map(|hunted| Justified {
                reason: justify(hunted),
                hunted,
            })
            .collect()
    }
}

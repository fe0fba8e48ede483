//! Why some persists are not missed: the reasons that count, beside each how many persists of a function it excuses.
//!
//! I1 A persist has no place here if it can be deleted.
//! I2 No entry excuses more persists of its function than it says, so that a new one that nothing misses is seen.

use crate::{Fate, Hunted, Lacks, Mutant};

/// A persist that histories may fail to miss, and why it is kept.
struct Reason {
    /// How the file's path ends.
    file: &'static str,
    /// The lines of the function or block that it stands in, as the first and one past the last.
    lines: (u32, u32),
    lacks: Lacks,
    /// How many persists of these lines, at most.
    persists: usize,
    why: &'static str,
}

impl Reason {
    fn is_about(&self, mutant: Mutant) -> bool {
        let (first, end) = self.lines;
        self.lacks == mutant.lacks
            && mutant.site.file().ends_with(self.file)
            && (first..end).contains(&mutant.site.line())
    }
}

/// The lines of a block of another file of this repository, found when this is compiled: from the line that holds
/// `start` to the closing brace below it of the same indentation. (0, 0) if there is none.
const fn lines_of(source: &str, start: &str) -> (u32, u32) {
    let (source, start) = (source.as_bytes(), start.as_bytes());
    let (mut at, mut line, mut indentation, mut blank) = (0, 1, 0, true);
    while at < source.len() {
        if holds(source, at, start) {
            break;
        }
        if source[at] == b'\n' {
            (line, indentation, blank) = (line + 1, 0, true);
        } else if blank && source[at] == b' ' {
            indentation += 1;
        } else {
            blank = false;
        }
        at += 1;
    }
    let first = line;
    while at < source.len() {
        if source[at] == b'\n' {
            line += 1;
            let mut spaces = 0;
            while at + 1 + spaces < source.len() && source[at + 1 + spaces] == b' ' {
                spaces += 1;
            }
            if spaces == indentation && holds(source, at + 1 + spaces, b"}") {
                return (first, line + 1);
            }
        }
        at += 1;
    }
    (0, 0)
}

const fn holds(source: &[u8], at: usize, text: &[u8]) -> bool {
    let mut i = 0;
    while i < text.len() {
        if at + i >= source.len() || source[at + i] != text[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// A reason: file, start of the block, what is lacking, why.
macro_rules! reason {
    ($file:literal, $start:literal, $lacks:ident, $persists:literal, $why:literal) => {
        Reason {
            file: $file,
            lines: lines_of(include_str!(concat!("../../", $file)), $start),
            lacks: Lacks::$lacks,
            persists: $persists,
            why: $why,
        }
    };
}

/// The reasons.
const REASONS: &[Reason] = &[
    reason!(
        "heap/src/heap.rs",
        "fn take_pages(",
        Fence,
        1,
        "the end of the allocated pages: by the time its own thread publishes something in the new page, it has fenced \
         again; another thread that takes chunks of that page has not"
    ),
    reason!(
        "heap/src/heap.rs",
        "fn take_pages(",
        Order,
        1,
        "the end of the allocated pages, and then an object in them: each must be durable before the link to the object, \
         neither before the other; they are persisted in different layers, that the heap owe nothing to its users"
    ),
    reason!(
        "pmem/src/pool/header.rs",
        "fn set_opened<",
        WriteBack,
        2,
        "an opening: the end of the pages, which a process that was killed amid growing may have left not durable, and \
         the generation, which locks and marks will carry; the heap alone stores neither"
    ),
    reason!(
        "pmem/src/pool/header.rs",
        "fn set_opened<",
        Fence,
        1,
        "an opening, as its write-backs: whatever is fenced next makes up for it, but for what was stored before that"
    ),
    reason!(
        "pmem/src/pool/header.rs",
        "fn set_state<",
        WriteBack,
        1,
        "the mark of a clean close: without it the next opening counts a crash that was none. No data rests on it, and no \
         operation tells of it"
    ),
    reason!(
        "pmem/src/pool/header.rs",
        "fn set_state<",
        Fence,
        1,
        "the mark of a clean close, as its write-back"
    ),
    reason!(
        "roart/src/lib.rs",
        "pub fn create(",
        Fence,
        1,
        "the fence of a new index: the heap fences its root entry before the link too, which the tokens cannot show; \
         once an index"
    ),
    reason!(
        "roart/src/lib.rs",
        "pub fn create(",
        Order,
        1,
        "a new index, and then its name: each must be durable before the link of the root entry, neither before the other"
    ),
    reason!(
        "art/src/design.rs",
        "fn create(heap",
        Fence,
        1,
        "the fence of a new index: the heap fences its root entry before the link too, which the tokens cannot show; \
         once an index"
    ),
    reason!(
        "art/src/design.rs",
        "fn create(heap",
        Order,
        1,
        "a new index, and then its name: each must be durable before the link of the root entry, neither before the other"
    ),
    reason!(
        "crashtest/src/blobs.rs",
        "fn create(&self",
        Fence,
        1,
        "the fence of a new table: the heap fences its root entry before the link too, which the tokens cannot show"
    ),
    reason!(
        "crashtest/src/blobs.rs",
        "fn create(&self",
        Order,
        1,
        "a new table, and then its name: each must be durable before the link of the root entry, neither before the other"
    ),
    reason!(
        "recipe/src/part/append.rs",
        "fn append<",
        Fence,
        1,
        "the pointer of an N16: an entry that counts and has no pointer is an empty one after a crash, but a reader who \
         meets the counter's mark persists the counter's line and not the pointer's; RECIPE's conversion fences each step"
    ),
    reason!(
        "recipe/src/part/append.rs",
        "fn append<",
        Order,
        1,
        "the pointer of an N16, and then its counter: as the fence between them"
    ),
    reason!(
        "recipe/src/part/split.rs",
        "fn edit_above(",
        Order,
        1,
        "a new node above another, and then the prefix of that: one that does not fit its depth is repaired by the next \
         writer (RECIPE's condition 3), whichever of the two is durable"
    ),
    reason!(
        "recipe/src/part/lock.rs",
        "fn swing(",
        Order,
        1,
        "a node that takes its parent's place, and then its prefix: as in a split"
    ),
    reason!(
        "recipe/src/part/lock.rs",
        "fn empty<",
        WriteBack,
        1,
        "an emptied pointer: it does not count, and the next restart would empty it again. Pointers have no store that is \
         not persisted, and this one is made once a node and restart"
    ),
    reason!(
        "recipe/src/part/lock.rs",
        "fn empty<",
        Fence,
        1,
        "an emptied pointer, as its write-back"
    ),
    reason!(
        "wort/src/woart/n16.rs",
        "fn add<",
        WriteBack,
        1,
        "a key byte: it shares its line with the bitmap, whose write-back follows; where the words of a line can be torn \
         apart (model word) only its own makes it durable first"
    ),
    reason!(
        "wort/src/woart/n4.rs",
        "fn add<",
        WriteBack,
        1,
        "a pointer: it shares its line with the word that names it, whose write-back follows; where the words of a line \
         can be torn apart (model word) only its own makes it durable first"
    ),
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
        let mut left: Vec<usize> = REASONS.iter().map(|reason| reason.persists).collect();
        let survivors = hunted.iter().filter(|one| matches!(one.fate, Fate::Survived));
        let mut justify = |one: &Hunted| {
            let mut reasons = REASONS.iter().zip(&mut left);
            let (reason, left) = reasons.find(|(reason, left)| **left > 0 && reason.is_about(one.mutant))?;
            *left -= 1;
            Some(reason.why)
        };
        survivors
            .map(|hunted| Justified {
                reason: justify(hunted),
                hunted,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reason whose function has gone or has another name excuses nothing, and says nothing true.
    #[test]
    fn reasons_are_about_something() {
        for reason in REASONS {
            assert_ne!(reason.lines, (0, 0), "{}: {}", reason.file, reason.why);
        }
    }

    /// Blocks end where their indentation does.
    #[test]
    fn blocks_are_found() {
        const SOURCE: &str = "a\nimpl B {\n    fn c() {\n        d {\n        }\n    }\n\n    fn e() {}\n}\n";
        assert_eq!(lines_of(SOURCE, "fn c("), (3, 7));
        assert_eq!(lines_of(SOURCE, "impl B"), (2, 10));
        assert_eq!(lines_of(SOURCE, "fn f("), (0, 0));
    }
}

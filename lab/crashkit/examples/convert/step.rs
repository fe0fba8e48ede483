//! The steps of the conversion: what each adds to the one before, and the published wrong ways.
//!
//! | step | adds |
//! |---|---|
//! | [`Dram`] | nothing: the index as it was, on the heap |
//! | [`Persisted`] | write-back and fence after each ordered store |
//! | [`Marked`] | a mark in what is not durable yet, for those who read it |
//! | [`Mended`] | writers mend what a crash has left half done |
//! | [`Whole`] | what was replaced is retired |

use pmem::{LinkAndPersist, Publication, Uncounted};

/// When a writer mends a split that it finds half done, on its way to the sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mends {
    /// Never: in DRAM a split is half done only while the splitter is at it.
    Never,
    /// When it has got the lock, whatever others have done before that: by what it saw on its way.
    AsSeenBefore,
    /// When it gets the lock at once. If another has it, that one is at work, and the writer goes on.
    PassingBy,
    /// When it has got the lock and looked again.
    LookingAgain,
}

/// How far the conversion has come.
pub trait Step: Send + Sync + 'static {
    /// Whether each ordered store is written back and fenced before the next.
    const PERSISTS: bool = true;
    /// How a store shows that it is not durable yet.
    type Marks: Publication;
    /// When a writer mends a split that it finds half done.
    const MENDS: Mends = Mends::LookingAgain;
    /// Whether what was replaced is retired.
    const RETIRES: bool = true;
    /// Whether the constructor writes back the first node.
    const CONSTRUCTS: bool = true;
}

/// Step 0.
pub struct Dram;

impl Step for Dram {
    const PERSISTS: bool = false;
    type Marks = Uncounted;
    const MENDS: Mends = Mends::Never;
    const RETIRES: bool = false;
}

/// Step 1.
pub struct Persisted;

impl Step for Persisted {
    type Marks = Uncounted;
    const MENDS: Mends = Mends::Never;
    const RETIRES: bool = false;
}

/// Step 2.
pub struct Marked;

impl Step for Marked {
    type Marks = LinkAndPersist;
    const MENDS: Mends = Mends::Never;
    const RETIRES: bool = false;
}

/// Step 3.
pub struct Mended;

impl Step for Mended {
    type Marks = LinkAndPersist;
    const RETIRES: bool = false;
}

/// Step 4: the conversion is complete.
pub struct Whole;

impl Step for Whole {
    type Marks = LinkAndPersist;
}

/// A wrong way: a lock that was got is taken for a crash, and what was seen before it for what is.
pub struct LockMeansCrash;

impl Step for LockMeansCrash {
    type Marks = LinkAndPersist;
    const MENDS: Mends = Mends::AsSeenBefore;
}

/// A wrong way: a writer that does not get the lock leaves the split to its holder, and goes on into the sibling.
pub struct LockMeansHelp;

impl Step for LockMeansHelp {
    type Marks = LinkAndPersist;
    const MENDS: Mends = Mends::PassingBy;
}

/// A wrong way: the constructor's first node is not persisted before the root leads to it.
pub struct RootNotPersisted;

impl Step for RootNotPersisted {
    type Marks = LinkAndPersist;
    const CONSTRUCTS: bool = false;
}

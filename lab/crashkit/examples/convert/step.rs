//! The steps of the conversion: what each adds to the one before, and the published wrong ways.
//!
//! | step | adds |
//! |---|---|
//! | [`Dram`] | nothing: the index as it was, on the heap |
//! | [`Persisted`] | write-back and fence after each ordered store |
//! | [`Marked`] | a mark on words that are not durable yet, for their readers |
//! | [`Mended`] | writers mend what a crash has left half done |
//! | [`Whole`] | replaced objects are retired |

use pmem::{LinkAndPersist, Publication, Uncounted};

/// When a writer mends a split that it finds half done, on its way to the sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mends {
    /// Never: in DRAM a split is half done only while the splitter works on it.
    Never,
    /// Once it has taken the lock, by what it saw before, whatever others have done meanwhile.
    AsSeenBefore,
    /// If it gets the lock at once. Otherwise it assumes that the holder is at work on the split, and goes on.
    PassingBy,
    /// Once it has taken the lock and looked again.
    LookingAgain,
}

/// A step of the conversion: which additions are in force.
pub trait Step: Send + Sync + 'static {
    /// Whether each ordered store is written back and fenced before the next.
    const PERSISTS: bool = true;
    /// How a store shows that it is not durable yet.
    type Marks: Publication;
    /// When a writer mends a split that it finds half done.
    const MENDS: Mends = Mends::LookingAgain;
    /// Whether replaced objects are retired.
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

/// A wrong way: a writer that gets the lock assumes that a crash has happened, and trusts what it saw before.
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

//! The buffer tree proper: a B+-tree in DRAM under optimistic lock coupling (DPTree §3.1). Keys are never removed: a
//! removal is an entry too.
//!
//! I1 Locks are taken from the parent downward, and only tried: a thread that fails starts over.
//! I2 Full inner nodes are split on the way down, so that a parent always has room for a child's separator.
//! I3 Only the holder of a leaf's lock decides about the keys in its range.

use super::node::{Arena, Child, INNER, Inner, LEAF, Leaf, Version};
use crate::key::{MarkedPair, SearchKey};
use crate::search;
use heap::Access;
use index::Direction;
use index::codec::PairWords;
use pmem::{Fault, Link, Media};
use std::ops::Bound;
use std::sync::atomic::AtomicU32;

/// The tree.
#[derive(Debug)]
pub(crate) struct Tree {
    inner: Arena<Inner>,
    leaves: Arena<Leaf>,
    root: AtomicU32,
}

/// A leaf under its lock, with room for one more entry; the lock is released when it is dropped.
#[derive(Debug)]
pub(crate) struct LockedLeaf<'t> {
    leaf: &'t Leaf,
    /// The position of the key, or its insertion point.
    at: usize,
    found: bool,
}

impl Drop for LockedLeaf<'_> {
    fn drop(&mut self) {
        self.leaf.lock.unlock();
    }
}

impl LockedLeaf<'_> {
    /// The key's entry.
    pub(crate) fn entry(&self) -> Option<MarkedPair> {
        self.found.then(|| self.leaf.entry(self.at))
    }

    /// Inserts or replaces the key's entry; readers see it from now on.
    pub(crate) fn put(self, entry: MarkedPair) {
        self.leaf.lock.change();
        if self.found {
            self.leaf.set(self.at, entry);
        } else {
            self.leaf.insert(self.at, entry);
        }
    }
}

/// The target of a descent.
#[derive(Clone, Copy)]
enum Goal<'k> {
    /// The leaf that holds the key, or the keys after it.
    At(SearchKey<'k>),
    /// The leaf that holds the keys before it.
    Before(SearchKey<'k>),
    First,
    Last,
}

/// The place of a node: its link, and the node that has the link, with the version of its lock and the link's number; or
/// the root's.
#[derive(Clone, Copy)]
struct Place<'t> {
    child: Child,
    parent: Option<(&'t Inner, Version, usize)>,
}

/// A leaf that was reached.
struct Found<'t> {
    leaf: &'t Leaf,
    version: Version,
    place: Place<'t>,
}

/// Why an attempt has failed: another thread has changed a node meanwhile, or the pool is damaged.
enum Miss {
    Changed,
    Damaged(Fault),
}

impl From<Fault> for Miss {
    fn from(fault: Fault) -> Miss {
        Miss::Damaged(fault)
    }
}

impl Tree {
    pub(crate) fn new() -> Tree {
        let tree = Tree {
            inner: Arena::new(),
            leaves: Arena::new(),
            root: AtomicU32::new(0),
        };
        Child::leaf(tree.leaves.add()).store(&tree.root);
        tree
    }

    /// Retries an operation until nothing changes during it.
    fn retry<R, M: Media>(media: &M, mut f: impl FnMut() -> Result<R, Miss>) -> Result<R, Fault> {
        let mut turn = 0;
        loop {
            match f() {
                Ok(done) => return Ok(done),
                Err(Miss::Damaged(fault)) => return Err(fault),
                Err(Miss::Changed) => media.wait(turn),
            }
            turn = turn.saturating_add(1);
        }
    }

    /// The key's entry.
    pub(crate) fn get<M: Media>(
        &self,
        heap: &Access<M>,
        key: &SearchKey<'_>,
    ) -> Result<Option<MarkedPair>, Fault> {
        Self::retry(heap.media(), || {
            let reached = self.descend(heap.media(), |node, _, _| Ok(child_at(heap, node, key, true)?))?;
            let Found { leaf, version, .. } = reached;
            let found = position(heap, leaf, key)?;
            let entry = found.ok().map(|at| leaf.entry(at));
            still(leaf.lock.is_still(version))?;
            Ok(entry)
        })
    }

    /// The leaf for the key, locked.
    pub(crate) fn lock<M: Media>(
        &self,
        heap: &Access<M>,
        key: &SearchKey<'_>,
    ) -> Result<LockedLeaf<'_>, Fault> {
        Self::retry(heap.media(), || {
            let leaf = self.lock_once(heap, key)?;
            let mut locked = LockedLeaf {
                leaf,
                at: 0,
                found: false,
            };
            match position(heap, leaf, key)? {
                Ok(at) => (locked.at, locked.found) = (at, true),
                Err(at) => locked.at = at,
            }
            Ok(locked)
        })
    }

    /// One attempt to descend to the key's leaf and lock it, splitting full nodes on the way.
    fn lock_once<M: Media>(&self, heap: &Access<M>, key: &SearchKey<'_>) -> Result<&Leaf, Miss> {
        let found = self.descend(heap.media(), |node, version, place| {
            if node.count() == INNER {
                self.split(place, (&node.lock, version), || {
                    let upper = self.inner.add();
                    let separator = node.split_into(self.inner.get(upper));
                    (separator, Child::inner(upper))
                })?;
                return Err(Miss::Changed);
            }
            Ok(child_at(heap, node, key, true)?)
        })?;
        let Found { leaf, version, place } = found;
        if leaf.count() == LEAF {
            self.split(place, (&leaf.lock, version), || {
                let upper = self.leaves.add();
                let first = leaf.split_into(self.leaves.get(upper));
                (first, Child::leaf(upper))
            })?;
            return Err(Miss::Changed);
        }
        still(leaf.lock.try_lock(version))?;
        Ok(leaf)
    }

    /// One attempt to descend to a leaf; `choose` returns the number of the child to descend to, of a node at a place
    /// whose lock had this version.
    #[inline(always)]
    fn descend<'t, M: Media>(
        &'t self,
        media: &M,
        mut choose: impl FnMut(&'t Inner, Version, Place<'t>) -> Result<usize, Miss>,
    ) -> Result<Found<'t>, Miss> {
        let mut place = Place {
            child: Child::load(&self.root),
            parent: None,
        };
        loop {
            match place.child.number() {
                Err(number) => {
                    let node = self.inner.get(number);
                    node.prefetch();
                    let version = node.lock.read(media);
                    self.still_at(place)?;
                    let i = choose(node, version, place)?;
                    let child = node.child(i);
                    still(node.lock.is_still(version))?;
                    place = Place {
                        child,
                        parent: Some((node, version, i)),
                    };
                }
                Ok(number) => {
                    let leaf = self.leaves.get(number);
                    leaf.prefetch();
                    let version = leaf.lock.read(media);
                    self.still_at(place)?;
                    return Ok(Found { leaf, version, place });
                }
            }
        }
    }

    /// Checks that a node met on the way down is still where it was found.
    #[inline]
    fn still_at(&self, place: Place<'_>) -> Result<(), Miss> {
        still(match place.parent {
            Some((node, version, _)) => node.lock.is_still(version),
            None => Child::load(&self.root) == place.child,
        })
    }

    /// Splits the node at a place.
    fn split(
        &self,
        Place { child, parent }: Place<'_>,
        (lock, version): (&super::node::VersionLock, Version),
        halve: impl FnOnce() -> ((u64, Link), Child),
    ) -> Result<(), Miss> {
        if let Some((parent, version, _)) = parent {
            still(parent.lock.try_lock(version))?;
        }
        let locked = lock.try_lock(version) && (parent.is_some() || Child::load(&self.root) == child);
        if locked {
            lock.change();
            let (separator, upper) = halve();
            match parent {
                Some((parent, _, i)) => {
                    parent.lock.change();
                    parent.insert(i, separator, upper);
                }
                None => {
                    let root = self.inner.add();
                    self.inner.get(root).root(child, separator, upper);
                    Child::inner(root).store(&self.root);
                }
            }
            lock.unlock();
        }
        if let Some((parent, ..)) = parent {
            parent.lock.unlock();
        }
        still(locked)
    }

    /// The next entries of one leaf after `from`, in the cursor's order; and the bound to continue from.
    fn batch<M: Media>(
        &self,
        heap: &Access<M>,
        from: Bound<&[u8]>,
        direction: Direction,
        entries: &mut Vec<MarkedPair>,
    ) -> Result<Option<Bound<Vec<u8>>>, Fault> {
        Self::retry(heap.media(), || {
            entries.clear();
            let goal = match (from, direction) {
                (Bound::Included(key) | Bound::Excluded(key), Direction::Forward) => {
                    Goal::At(SearchKey::new(key))
                }
                (Bound::Included(key), Direction::Reverse) => Goal::At(SearchKey::new(key)),
                (Bound::Excluded(key), Direction::Reverse) => Goal::Before(SearchKey::new(key)),
                (Bound::Unbounded, Direction::Forward) => Goal::First,
                (Bound::Unbounded, Direction::Reverse) => Goal::Last,
            };
            // The separator beside the leaf in the walk's direction: the one of the lowest node that has it.
            let mut fence = None;
            let reached = self.descend(heap.media(), |node, _, _| {
                let i = child_of(heap, node, &goal)?;
                let beside = match direction {
                    Direction::Forward => (i < node.count()).then(|| node.separator(i)),
                    Direction::Reverse => i.checked_sub(1).map(|i| node.separator(i)),
                };
                fence = beside.or(fence);
                Ok(i)
            })?;
            let leaf = reached.leaf;
            let count = leaf.count();
            let cut = match from {
                Bound::Unbounded => None,
                Bound::Included(key) => Some((position(heap, leaf, &SearchKey::new(key))?, true)),
                Bound::Excluded(key) => Some((position(heap, leaf, &SearchKey::new(key))?, false)),
            };
            match direction {
                Direction::Forward => {
                    let start = match cut {
                        None => 0,
                        Some((Ok(at), included)) => at + usize::from(!included),
                        Some((Err(at), _)) => at,
                    };
                    entries.extend((start..count).map(|i| leaf.entry(i)));
                }
                Direction::Reverse => {
                    let end = match cut {
                        None => count,
                        Some((Ok(at), included)) => at + usize::from(included),
                        Some((Err(at), _)) => at,
                    };
                    entries.extend((0..end).rev().map(|i| leaf.entry(i)));
                }
            }
            still(leaf.lock.is_still(reached.version))?;
            let Some((prefix, link)) = fence else {
                return Ok(None);
            };
            let fence = PairWords {
                prefix,
                link,
                word: 0,
            };
            let bytes = fence.key_bytes(heap)?;
            Ok(Some(match direction {
                Direction::Forward => Bound::Included(bytes),
                Direction::Reverse => Bound::Excluded(bytes),
            }))
        })
    }

    /// The entries from a bound on, in order. Entries inserted meanwhile may be met or not.
    pub(crate) fn cursor(&self, from: Bound<Vec<u8>>, direction: Direction) -> Cursor<'_> {
        Cursor {
            tree: self,
            batch: Vec::new(),
            at: 0,
            from: Some(from),
            direction,
        }
    }
}

/// Entries of a buffer tree in order.
#[derive(Debug)]
pub(crate) struct Cursor<'t> {
    tree: &'t Tree,
    batch: Vec<MarkedPair>,
    at: usize,
    from: Option<Bound<Vec<u8>>>,
    direction: Direction,
}

impl Cursor<'_> {
    /// The next entry, without advancing.
    pub(crate) fn peek<M: Media>(&mut self, heap: &Access<M>) -> Result<Option<MarkedPair>, Fault> {
        while self.at == self.batch.len() {
            let Some(from) = self.from.take() else {
                return Ok(None);
            };
            let bound = from.as_ref().map(Vec::as_slice);
            self.from = self.tree.batch(heap, bound, self.direction, &mut self.batch)?;
            self.at = 0;
        }
        Ok(Some(self.batch[self.at]))
    }

    /// Advances past the entry last peeked at.
    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    /// Advances past the entry last peeked at, if `taken`.
    pub(crate) fn advance_if(&mut self, taken: bool) {
        self.at += usize::from(taken);
    }
}

#[inline]
fn still(unchanged: bool) -> Result<(), Miss> {
    if unchanged { Ok(()) } else { Err(Miss::Changed) }
}

/// The position of the key in the leaf, or its insertion point.
#[inline]
fn position<M: Media>(
    heap: &Access<M>,
    leaf: &Leaf,
    key: &SearchKey<'_>,
) -> Result<Result<usize, usize>, Fault> {
    search::position::<LEAF, _>(
        leaf.count(),
        key.prefix,
        |i| leaf.prefix(i),
        |i| key.compare(heap, key.prefix, leaf.link(i)),
    )
}

/// The number of separators that are not above the key, or, if it is excluded, below it.
#[inline]
fn child_at<M: Media>(
    heap: &Access<M>,
    node: &Inner,
    key: &SearchKey<'_>,
    included: bool,
) -> Result<usize, Fault> {
    let found = search::position::<INNER, _>(
        node.count(),
        key.prefix,
        |i| node.prefix(i),
        |i| key.compare(heap, key.prefix, node.separator(i).1),
    )?;
    Ok(match found {
        Ok(at) => at + usize::from(included),
        Err(at) => at,
    })
}

/// The child on the way to the goal.
fn child_of<M: Media>(heap: &Access<M>, node: &Inner, goal: &Goal<'_>) -> Result<usize, Fault> {
    match goal {
        Goal::First => Ok(0),
        Goal::Last => Ok(node.count()),
        Goal::At(key) => child_at(heap, node, key, true),
        Goal::Before(key) => child_at(heap, node, key, false),
    }
}

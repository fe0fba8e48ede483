//! A B-link tree (Lehman and Yao 1981) from words to words, in the steps of its conversion.
//!
//! | operation | condition | its ordered stores |
//! |---|---|---|
//! | get, scan | non-blocking | none |
//! | insert | #1 | (0) the entry; (1) the node's `state` |
//! | update | #1 | (1) the entry's slot |
//! | remove | #1 | (1) the node's `state` |
//! | split | #3 | (0) the sibling; (1) the node's `next`; (2) its `state`; (3) the parent's `state`, or the root's `top` |
//!
//! Writers lock a node, and while they hold it the nodes above it; the splitter keeps the sibling's lock until (3).
//! Between (1) and (2) entries are in both nodes; before (3) only its left neighbour leads to the sibling. Readers
//! tolerate both.

use super::node::{ENTRIES, Node, Record, Root, bit, counts, follows};
use super::step::Step;
use heap::{Access, Error, Heap};
use pmem::{
    Fault, GenerationLock, Link, Locked, Media, Offset, PSlot, PWord, Persistent, Purpose, Tag, persist_scope,
};
use std::marker::PhantomData;

/// The kind of such a tree in the heap's root directory.
pub const KIND: u32 = u32::from_le_bytes(*b"blnk");
/// Tags of links.
pub const ROOT: Tag = Tag::new(2);
pub const NODE: Tag = Tag::new(4);
pub const RECORD: Tag = Tag::new(6);

/// A tree on a heap, converted up to step `S`.
pub struct BLink<M: Media, S: Step> {
    pub heap: Access<M>,
    root: Link,
    step: PhantomData<S>,
}

/// A node, with the link that led to it.
#[derive(Clone, Copy)]
pub struct At<'t> {
    pub link: Link,
    pub node: &'t Node,
    pub level: u64,
    pub low: u64,
}

/// Where a node leads for a key.
enum Next<'t> {
    /// To its sibling, which holds the key.
    Right(At<'t>),
    /// To the entry with the greatest key up to this one.
    Entry(Option<(u64, Link)>),
}

/// The target of a new entry.
enum Child {
    Value(u64),
    Node(Link),
}

pub fn damaged(what: &'static str, link: Link) -> Fault {
    Fault {
        what,
        offset: link.offset().map_or(0, Offset::get),
    }
}

/// Returns the object of this tag that a link leads to.
pub fn object<M: Media, T: Persistent>(heap: &Access<M>, link: Link, tag: Tag) -> Result<&T, Fault> {
    match link.offset() {
        Some(offset) if link.tag() == tag => heap.at(offset),
        _ => Err(damaged("a link of the tree has no target of its kind", link)),
    }
}

/// Returns the node that a link leads to.
pub fn node_at<M: Media>(heap: &Access<M>, link: Link) -> Result<At<'_>, Fault> {
    let node: &Node = object(heap, link, NODE)?;
    let (kind, low) = (node.kind.load(heap.media()), node.low.load(heap.media()));
    let level = kind
        .checked_sub(1)
        .ok_or(damaged("a link of the tree does not lead to a node", link))?;
    Ok(At {
        link,
        node,
        level,
        low,
    })
}

impl<M: Media, S: Step> BLink<M, S> {
    pub fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, Error> {
        let root = persist_scope(heap.media(), Purpose::Node, |batch| {
            let top = heap.draft(Node::new(heap.generation(), 0, 0, 0), 0, &batch)?;
            let top = match S::CONSTRUCTS {
                true => top.flush(&batch),
                false => top.flush_parts([], &batch),
            };
            let root = Root {
                lock: GenerationLock::new(heap.generation()),
                top: PSlot::null(),
            };
            let mut root = heap.draft(root, 0, &batch)?;
            root.adopt(|root| &mut root.top, top, NODE);
            let root = root.flush(&batch);
            heap.media().site("words: root object");
            let fenced = batch.fence();
            // SAFETY: it is the root of an empty tree, which the tracer of this kind knows by its tag.
            unsafe { heap.create_root(name, KIND, root.persisted(&fenced), ROOT) }
        })?;
        Ok(Self::with(heap, root))
    }

    pub fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, Error> {
        Ok(heap.root(name)?.map(|root| Self::with(heap, root.link)))
    }

    fn with(heap: &Heap<M>, root: Link) -> Self {
        // SAFETY: readers here hold a guard and follow only the root and the slots; a writer retires an object once,
        // after it alone has unlinked it.
        let heap = unsafe { heap.access() }.clone();
        BLink {
            heap,
            root,
            step: PhantomData,
        }
    }

    pub fn media(&self) -> &M {
        self.heap.media()
    }

    fn root(&self) -> Result<&Root, Fault> {
        object(&self.heap, self.root, ROOT)
    }

    fn top(&self) -> Result<At<'_>, Fault> {
        node_at(&self.heap, self.root()?.top.load(self.media()))
    }

    fn record(&self, link: Link) -> Result<u64, Fault> {
        Ok(object::<M, Record>(&self.heap, link, RECORD)?
            .value
            .load(self.media()))
    }

    // Reading: half-done changes of writers do not matter, and readers never restart.

    fn look<'t>(&'t self, at: At<'t>, key: u64) -> Result<Next<'t>, Fault> {
        let media = self.media();
        let (entry, next) = at.node.state.read_stable(media, |state| {
            let sorted = at.node.sorted(media, state);
            let entry = sorted.into_iter().rev().find(|(other, _)| *other <= key);
            let entry = entry.map(|(other, entry)| (other, at.node.entries[entry].slot.load(media)));
            // After the entries: a split publishes the sibling before it removes them here.
            (entry, at.node.next.load(media))
        });
        if !next.is_null() {
            let next = node_at(&self.heap, next)?;
            if next.low <= key {
                return Ok(Next::Right(next));
            }
        }
        Ok(Next::Entry(entry))
    }

    /// Finds the node of a level that holds the key, and its entry with the greatest key up to it. Calls `help` for
    /// each step to the right.
    fn descend<'t>(
        &'t self,
        key: u64,
        level: u64,
        help: impl Fn(At<'t>, At<'t>) -> Result<(), Error>,
    ) -> Result<(At<'t>, Option<(u64, Link)>), Error> {
        let mut at = self.top()?;
        loop {
            at = match self.look(at, key)? {
                Next::Right(next) => {
                    help(at, next)?;
                    next
                }
                Next::Entry(Some((_, below))) if at.level > level => node_at(&self.heap, below)?,
                Next::Entry(entry) if at.level == level => return Ok((at, entry)),
                Next::Entry(_) => return Err(damaged("an inner node has no entry for a key", at.link).into()),
            };
        }
    }

    pub fn get(&self, key: u64) -> Result<Option<u64>, Error> {
        let _guard = heap::pin();
        match self.descend(key, 0, |_, _| Ok(()))? {
            (_, Some((found, record))) if found == key => Ok(Some(self.record(record)?)),
            _ => Ok(None),
        }
    }

    pub fn scan(&self, from: u64) -> Result<Vec<(u64, u64)>, Error> {
        let (media, _guard) = (self.media(), heap::pin());
        let (mut at, _) = self.descend(from, 0, |_, _| Ok(()))?;
        let mut found: Vec<(u64, u64)> = Vec::new();
        loop {
            let (entries, next) = at.node.state.read_stable(media, |state| {
                let sorted = at.node.sorted(media, state).into_iter();
                let entries = sorted.map(|(key, entry)| (key, at.node.entries[entry].slot.load(media)));
                (entries.collect::<Vec<_>>(), at.node.next.load(media))
            });
            for (key, record) in entries {
                // Entries that a split is moving are in both nodes, with the same content.
                if key >= from && found.last().is_none_or(|(last, _)| *last < key) {
                    found.push((key, self.record(record)?));
                }
            }
            if next.is_null() {
                return Ok(found);
            }
            at = node_at(&self.heap, next)?;
        }
    }

    /// Checks the tree once each key has been written since the last crash: no key's path then leads to the right.
    pub fn check(&self) -> Result<(), Error> {
        for (key, _) in self.scan(0)? {
            let _guard = heap::pin();
            self.descend(key, 0, |at, _| {
                Err(damaged("a node's sibling has no separator in the parent", at.link).into())
            })?;
        }
        Ok(())
    }

    // Writing.

    pub fn put(&self, key: u64, value: u64) -> Result<(), Error> {
        let (media, guard) = (self.media(), heap::pin());
        let (at, held) = self.lock_for(key, 0)?;
        let Some(slot) = at.node.find(media, key) else {
            return self.add(at, held, key, Child::Value(value));
        };
        let old = slot.load(media);
        persist_scope(media, Purpose::Node, |batch| {
            let record = self.heap.draft(Record::new(value), 0, &batch)?.flush(&batch);
            self.swing(slot, record, RECORD, batch);
            self.retire(old, &guard);
            Ok(())
        })
    }

    pub fn remove(&self, key: u64) -> Result<bool, Error> {
        let (media, guard) = (self.media(), heap::pin());
        let (at, _held) = self.lock_for(key, 0)?;
        let Some(slot) = at.node.find(media, key) else {
            return Ok(false);
        };
        let (old, state) = (slot.load(media), at.node.state.load(media));
        let others = (0..ENTRIES).filter(|&entry| !std::ptr::eq(&at.node.entries[entry].slot, slot));
        let others: u64 = others.map(bit).sum();
        self.store(&at.node.state, follows(state, counts(state) & others));
        self.retire(old, &guard);
        Ok(true)
    }

    /// Finds and locks the node of a level that holds the key.
    fn lock_for(&self, key: u64, level: u64) -> Result<(At<'_>, Locked<'_, M>), Error> {
        let (mut at, _) = self.descend(key, level, |at, next| self.help(at, next))?;
        loop {
            let held = self.lock(at)?;
            let Next::Right(next) = self.look(at, key)? else {
                return Ok((at, held));
            };
            drop(held);
            self.help(at, next)?;
            at = next;
        }
    }

    /// Adds an entry to a node, whose lock is `held`, and releases the lock.
    fn add<'t>(&'t self, at: At<'t>, held: Locked<'t, M>, key: u64, child: Child) -> Result<(), Error> {
        let (media, node) = (self.media(), at.node);
        let state = node.state.load(media);
        let Some(free) = (0..ENTRIES).find(|&entry| state & bit(entry) == 0) else {
            let (sibling, held_too) = self.split(at)?;
            self.link_up(sibling)?;
            return match key < sibling.low {
                true => self.add(at, held, key, child),
                false => self.add(sibling, held_too, key, child),
            };
        };
        let (entry, state) = (&node.entries[free], follows(state, counts(state) | bit(free)));
        let added = persist_scope(media, Purpose::Node, |batch| {
            entry.key.store(key, &batch);
            let record = match child {
                Child::Value(value) => self.heap.draft(Record::new(value), 0, &batch)?.flush(&batch),
                Child::Node(link) => {
                    entry.slot.store(link, &batch);
                    self.persist(batch);
                    self.store(&node.state, state);
                    return Ok(());
                }
            };
            let placed = entry.slot.place::<S::Marks, M, _>(record, RECORD, &batch);
            if S::PERSISTS {
                let _durable = placed.publish(&batch.fence(), &node.state, state).commit();
            } else {
                self.store(&node.state, state);
            }
            Ok(())
        });
        drop(held);
        added
    }

    /// Moves the upper entries of a node, whose lock the caller holds, into a new sibling. Returns it, locked.
    fn split<'t>(&'t self, at: At<'t>) -> Result<(At<'t>, Locked<'t, M>), Error> {
        let (media, node) = (self.media(), at.node);
        let state = node.state.load(media);
        let sorted = node.sorted(media, state);
        let upper = &sorted[sorted.len() / 2..];
        let low = upper[0].0;
        let held = persist_scope(media, Purpose::Node, |batch| {
            let sibling = Node::new(self.heap.generation(), at.level, low, upper.len());
            let mut sibling = self.heap.draft(sibling, 0, &batch)?;
            for (to, &(key, from)) in upper.iter().enumerate() {
                sibling.entries[to].key = PWord::new(key);
                sibling.link(
                    |sibling| &mut sibling.entries[to].slot,
                    node.entries[from].slot.load(media),
                );
            }
            sibling.link(|sibling| &mut sibling.next, node.next.load(media));
            let (offset, sibling) = (sibling.offset(), sibling.flush(&batch));
            let held = self.take(&self.heap.at::<Node>(offset)?.lock)?;
            self.swing(&node.next, sibling, NODE, batch);
            Ok::<_, Error>(held)
        })?;
        self.store(&node.state, follows(state, node.below(media, state, low)));
        Ok((node_at(&self.heap, node.next.load(media))?, held))
    }

    /// Adds a node's separator to the parent, unless it is there.
    pub fn link_up(&self, at: At<'_>) -> Result<(), Error> {
        let (media, level) = (self.media(), at.level + 1);
        if self.top()?.level < level {
            let root = self.root()?;
            let _held = self.take(&root.lock)?;
            let top = self.top()?;
            if top.level < level {
                return persist_scope(media, Purpose::Node, |batch| {
                    let node = Node::new(self.heap.generation(), level, 0, 2);
                    let mut node = self.heap.draft(node, 0, &batch)?;
                    for (to, below) in [top, at].into_iter().enumerate() {
                        node.entries[to].key = PWord::new(below.low);
                        node.link(|node| &mut node.entries[to].slot, below.link);
                    }
                    let node = node.flush(&batch);
                    self.swing(&root.top, node, NODE, batch);
                    Ok(())
                });
            }
        }
        let (parent, held) = self.lock_for(at.low, level)?;
        match parent.node.find(media, at.low) {
            Some(_) => Ok(()),
            None => self.add(parent, held, at.low, Child::Node(at.link)),
        }
    }
}

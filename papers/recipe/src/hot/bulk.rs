//! A P-HOT built from sorted pairs ([`index::Bulk`]), bottom-up.
//!
//! The positions at which neighbouring keys part determine the binary Patricia trie: it is the Cartesian tree of these
//! positions. So the builder keeps only the subtrees along the right spine open, as *pieces*, and joins the last two
//! when the next key parts from them earlier than they part from each other. It needs memory for one path, whatever the
//! number of keys.
//!
//! **Cuts.** The topmost node of a piece is not written yet. Where two pieces join, the higher one's node takes the
//! other as an entry; nodes of one height become one node, if that has room; otherwise both are written, and a node of
//! two entries begins above them. By induction no way to cut a subtree into nodes makes it lower, nor gives its topmost
//! node fewer entries at that height. So the tree is as low as it can be, which inserts only approach.
//!
//! **Parts.** What comes before a part decides how the subtrees on its left spine join, and what comes after it, those
//! on its right spine. So a part leaves these open, and one thread joins the pieces of all parts.
//!
//! Lines are written back once, except for a few that objects share. Each part takes one fence, and the top of the tree
//! another.

use super::Hot;
use super::build::NewNode;
use super::layout::{LEAF_TAG, MAX_ENTRIES, ROOT_TAG};
use super::plan::Plan;
use super::position::{Position, first_difference};
use super::root::Root;
use super::trace::Tracer;
use art::draft_leaf;
use heap::{Access, Error, Heap};
use index::{Bulk, Parts, Reading};
use pmem::{Erased, Fenced, Flushed, Link, Media, PersistBatch, Purpose, Tag, persist_scope};
use std::ops::Range;

/// The site name of a build's persists, except for those of its name.
const SITE: &str = "hot: built of pairs";

/// The parting of a part's first key from the keys before: unknown, so that nothing joins there.
const UNKNOWN: Position = Position::MAX;

/// An open subtree.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The position at which its keys part from those before.
    parting: Position,
    /// Number of entries of its topmost node, which is not written yet; 1 for a leaf.
    entries: usize,
    /// Number of nodes on the longest path, with that one; 0 for a leaf.
    height: u16,
}

/// An entry of a topmost node.
struct Entry<O> {
    object: O,
    /// The position at which its keys part from those before.
    parting: Position,
}

/// An object without a parent.
enum Object<'e, 'h> {
    New(Flushed<'e, 'h, Erased>, Tag),
    /// Durable, and owned by the builder.
    Durable(Link),
}

impl<'e> Object<'e, '_> {
    fn into_link(self, fenced: &Fenced<'e>) -> Link {
        match self {
            Object::New(object, tag) => object.persisted(fenced).into_link(tag),
            Object::Durable(link) => link,
        }
    }
}

/// What a part leaves: its open subtrees, all of whose objects are durable.
#[derive(Default)]
struct Open {
    pieces: Vec<Piece>,
    entries: Vec<Entry<Link>>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

impl<M: Media> Bulk for Hot<M> {
    fn build(heap: &Heap<M>, name: &[u8], parts: Parts<'_>) -> Result<Self, index::Error> {
        let access = Self::access_of(heap);
        let mut all = Open::default();
        let mut failed = None;
        for (open, error) in parts.read(|reading| build_part(access, reading))? {
            all.append(open);
            failed = failed.or(error);
        }
        let root = match failed {
            None => build_top(access, name, all)?,
            Some(error) => {
                give_back(heap, all.entries.into_iter().map(|entry| entry.object))?;
                return Err(error);
            }
        };
        let heap = access.clone();
        Ok(Hot { heap, root })
    }
}

impl Open {
    /// Adds what the next part has left.
    fn append(&mut self, mut next: Open) {
        let Some(first) = next.pieces.first_mut() else {
            self.entries.append(&mut next.entries);
            return;
        };
        first.parting = match self.pieces.is_empty() {
            true => 0,
            false => first_difference(&self.last_key, &next.first_key).unwrap_or_default(),
        };
        next.entries[0].parting = first.parting;
        self.pieces.append(&mut next.pieces);
        self.entries.append(&mut next.entries);
        self.last_key = next.last_key;
    }
}

/// Gives back objects that were not published.
fn give_back<M: Media>(heap: &Heap<M>, objects: impl Iterator<Item = Link>) -> Result<(), Error> {
    // SAFETY: a build has drafted them, and everything below, and published none.
    unsafe { heap.retire_unpublished(objects.collect(), &Tracer) }
}

/// Builds the subtrees of a part; returns the error as well if it stopped early.
fn build_part<M: Media>(heap: &Access<M>, mut reading: Reading<'_>) -> (Open, Option<index::Error>) {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut builder = Builder::new(heap, &batch);
        let mut open = Open::default();
        let built = builder.push_all(&mut reading, &mut open);
        let (pieces, entries) = (builder.pieces, builder.entries);
        heap.media().site(SITE);
        let fenced = batch.fence();
        open.pieces = pieces;
        let durable = entries.into_iter().map(|Entry { object, parting }| Entry {
            object: object.into_link(&fenced),
            parting,
        });
        open.entries = durable.collect();
        (open, built.err())
    })
}

/// Joins all pieces, and names the tree; returns the link of its root.
fn build_top<M: Media>(heap: &Access<M>, name: &[u8], open: Open) -> Result<Link, index::Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut builder = Builder::new(heap, &batch);
        let mut left = open.entries.into_iter();
        let root = match builder.build_root(open.pieces, &mut left) {
            Ok(root) => root,
            Err(error) => {
                let entries = builder.entries;
                heap.media().site(SITE);
                let fenced = batch.fence();
                let made = entries.into_iter().map(|entry| entry.object.into_link(&fenced));
                give_back(heap, made.chain(left.map(|entry| entry.object)))?;
                return Err(error.into());
            }
        };
        heap.media().site(SITE);
        let root = root.persisted(&batch.fence());
        // SAFETY: it is the root of a P-HOT; nothing of it was published.
        Ok(unsafe { index::name_built(heap, name, root, ROOT_TAG, &Tracer) }?)
    })
}

/// A tree under construction.
struct Builder<'b, 'e, 'h, M: Media> {
    heap: &'h Access<M>,
    batch: &'b PersistBatch<'e, 'h, M>,
    /// The open subtrees, in order. Behind those on a part's left spine, their partings ascend.
    pieces: Vec<Piece>,
    /// The entries of their topmost nodes, in order.
    entries: Vec<Entry<Object<'e, 'h>>>,
}

impl<'b, 'e, 'h, M: Media> Builder<'b, 'e, 'h, M> {
    fn new(heap: &'h Access<M>, batch: &'b PersistBatch<'e, 'h, M>) -> Self {
        Builder {
            heap,
            batch,
            pieces: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds all pairs of a part, and notes its first and its last key.
    fn push_all(&mut self, pairs: &mut Reading<'_>, open: &mut Open) -> Result<(), index::Error> {
        while let Some((key, value)) = pairs.next()? {
            let parting = match self.pieces.is_empty() {
                true => UNKNOWN,
                false => first_difference(&open.last_key, key).unwrap_or_default(),
            };
            self.join_after(parting)?;
            let leaf = self
                .heap
                .with_room(|| draft_leaf(self.heap, key, value, self.batch))?;
            let object = Object::New(leaf.flush(self.batch).erased(), LEAF_TAG);
            self.entries.push(Entry { object, parting });
            if self.pieces.is_empty() {
                open.first_key.extend_from_slice(key);
            }
            self.pieces.push(Piece {
                parting,
                entries: 1,
                height: 0,
            });
            open.last_key.clear();
            open.last_key.extend_from_slice(key);
        }
        Ok(())
    }

    /// Joins these pieces, whose entries are `left`, and drafts a root above them. Entries that it has not taken stay
    /// in `left` if there is no room.
    fn build_root(
        &mut self,
        pieces: Vec<Piece>,
        left: &mut impl Iterator<Item = Entry<Link>>,
    ) -> Result<Flushed<'e, 'h, Erased>, Error> {
        for piece in pieces {
            self.join_after(piece.parting)?;
            let entries = left.take(piece.entries).map(|Entry { object, parting }| Entry {
                object: Object::Durable(object),
                parting,
            });
            self.entries.extend(entries);
            self.pieces.push(piece);
        }
        while let [.., a, b] = self.pieces[..] {
            self.join(a, b)?;
        }
        if let [top] = self.pieces[..] {
            self.write_node(0..top.entries, top.height)?;
        }
        let heap = self.heap;
        let mut root = heap.with_room(|| heap.draft(Root::empty(heap), 0, self.batch))?;
        match self.entries.pop().map(|entry| entry.object) {
            Some(Object::New(object, tag)) => root.adopt(|root| &mut root.top, object, tag),
            Some(Object::Durable(link)) => root.link(|root| &mut root.top, link),
            None => {}
        }
        Ok(root.flush(self.batch).erased())
    }

    /// Joins the subtrees that are complete if the next key parts from the last at `parting`.
    fn join_after(&mut self, parting: Position) -> Result<(), Error> {
        while let [.., a, b] = self.pieces[..]
            && b.parting > parting.max(a.parting)
        {
            self.join(a, b)?;
        }
        Ok(())
    }

    /// Joins the last two pieces.
    fn join(&mut self, a: Piece, b: Piece) -> Result<(), Error> {
        let height = a.height.max(b.height).max(1);
        let [of_a, of_b] = [a, b].map(|piece| if piece.height == height { piece.entries } else { 1 });
        let fits = of_a + of_b <= MAX_ENTRIES;
        let end = self.entries.len();
        let middle = end - b.entries;
        if !fits || of_b == 1 {
            self.write_node(middle..end, b.height)?;
        }
        if !fits || of_a == 1 {
            self.write_node(middle - a.entries..middle, a.height)?;
        }
        let joined = match fits {
            true => (of_a + of_b, height),
            false => (2, height + 1),
        };
        self.pieces.truncate(self.pieces.len() - 2);
        self.pieces.push(Piece {
            parting: a.parting,
            entries: joined.0,
            height: joined.1,
        });
        Ok(())
    }

    /// Writes the node of these entries, and puts it in their place. A single one stays as it is.
    fn write_node(&mut self, range: Range<usize>, height: u16) -> Result<(), Error> {
        let [first, others @ ..] = &self.entries[range.clone()] else {
            return Ok(());
        };
        if others.is_empty() {
            return Ok(());
        }
        let (start, parting) = (range.start, first.parting);
        let node = NewNode::new(
            Plan::of_partings(others.iter().map(|entry| entry.parting)),
            height,
        );
        let mut draft = self.heap.with_room(|| node.draft(self.heap, self.batch))?;
        for (i, entry) in self.entries.drain(range).enumerate() {
            match entry.object {
                Object::New(object, tag) => draft.adopt_in_tail(node.slot(i), object, tag),
                Object::Durable(link) => draft.link_in_tail(node.slot(i), link),
            }
        }
        let object = Object::New(draft.flush(self.batch).erased(), node.tag());
        self.entries.insert(start, Entry { object, parting });
        Ok(())
    }
}

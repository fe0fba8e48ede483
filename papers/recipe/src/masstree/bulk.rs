//! A P-Masstree built from sorted pairs ([`index::Bulk`]), from left to right and bottom-up.
//!
//! The layers on the path of the last key are open, and one node of each of their levels. The last pair itself waits:
//! the next key shows how many slices the two share, and so in which layer the last one belongs. When the next key
//! leaves a layer, the layer has all of its keys.
//!
//! I1 The uppermost level of an open layer has one node, the open one. On the levels below it, the open node is the last
//!    of its level's list, and closed nodes have their entry in their parent.
//! I2 A node that has an entry in its parent belongs to that entry. The link from its left sibling was set when the
//!    node had no entries yet ([`Draft::link_ahead`]).
//! I3 Room for everything that a step adds is there before the step changes anything.

use super::link::{ROOT, leaf_tag, node_tag};
use super::node::{Held, LINK, Node, WHOLE};
use super::order::ENTRIES;
use super::slice::Slice;
use super::trace::Tracer;
use super::{Masstree, Root};
use art::{Leaf, draft_leaf};
use heap::{Access, Error, Heap};
use index::{Bulk, Order, Parts};
use pmem::{Draft, Erased, Flushed, Link, Media, PersistBatch, Purpose, Tag, persist_scope};

/// Number of entries after which a node is closed. The free one lets the first insert into each border do without a
/// split, as after inserts in key order. A node of 11 or 10 entries has as many lines, and one of 9, which has a line
/// less, needs as many lines a key.
const FILLED: usize = ENTRIES - 1;

type NodeDraft<'e, 'h> = Draft<'e, 'h, Node>;

/// The value of the last pair.
enum Kept<'e, 'h> {
    /// Of eight bytes: in its entry, if the key ends there.
    Word(u64),
    /// Any other: in a leaf.
    Leaf(Flushed<'e, 'h, Leaf>),
}

/// The open nodes of a layer, the border first.
struct OpenLayer<'e, 'h>(Vec<NodeDraft<'e, 'h>>);

/// The heap, and the batch of all objects.
struct Target<'b, 'e, 'h, M: Media> {
    heap: &'h Access<M>,
    batch: &'b PersistBatch<'e, 'h, M>,
}

/// An index under construction.
struct Builder<'b, 'e, 'h, M: Media> {
    target: Target<'b, 'e, 'h, M>,
    layers: Vec<OpenLayer<'e, 'h>>,
    /// The last key, whose path leads through the open layers.
    key: Vec<u8>,
    /// Its value, until the pair is placed.
    value: Option<Kept<'e, 'h>>,
}

impl<M: Media> Bulk for Masstree<M> {
    fn build(heap: &Heap<M>, name: &[u8], parts: Parts<'_>) -> Result<Self, index::Error> {
        let heap = Self::access_of(heap);
        let media = heap.media();
        let root = persist_scope(media, Purpose::Node, |batch| {
            let mut builder = Builder {
                target: Target { heap, batch: &batch },
                layers: Vec::new(),
                key: Vec::new(),
                value: None,
            };
            match builder.build(parts) {
                Ok(root) => {
                    media.site("masstree: index built of pairs");
                    let root = root.persisted(&batch.fence());
                    // SAFETY: it is the root of a P-Masstree, and nothing has led to any of it.
                    Ok(unsafe { index::name_built(heap, name, root, ROOT, &Tracer) }?)
                }
                Err(error) => {
                    let rest = builder.abandon();
                    media.site("masstree: build given up");
                    let fenced = batch.fence();
                    let layers = rest.into_iter().filter_map(|layer| {
                        let links = layer
                            .into_iter()
                            .map(|(node, tag)| node.persisted(&fenced).into_link(tag));
                        // The uppermost node leads to all others (I1).
                        links.last()
                    });
                    // SAFETY: the builder has drafted them, and published none.
                    unsafe { heap.retire_unpublished(layers.collect(), &Tracer) }?;
                    Err(error)
                }
            }
        })?;
        let heap = heap.clone();
        Ok(Masstree { heap, root })
    }
}

impl<'e, 'h, M: Media> Target<'_, 'e, 'h, M> {
    fn node(&self, low: u64, kind: u8) -> Result<NodeDraft<'e, 'h>, Error> {
        let node = Node::new(self.heap.generation(), low, kind);
        self.heap.draft(node, 0, self.batch)
    }

    fn leaf(&self, key: &[u8], value: &[u8]) -> Result<Flushed<'e, 'h, Leaf>, Error> {
        let leaf = self
            .heap
            .with_room(|| draft_leaf(self.heap, key, value, self.batch))?;
        Ok(leaf.flush(self.batch))
    }

    /// Completes a node.
    fn flush(&self, node: NodeDraft<'e, 'h>) -> Flushed<'e, 'h, Node> {
        let used = node.used();
        node.flush_parts([used], self.batch)
    }

    /// Completes a node of this level, and adds it to its parent.
    fn hang(&self, node: NodeDraft<'e, 'h>, level: usize, parent: &mut NodeDraft<'e, 'h>) {
        let at = parent.push_child(node.low.private(), Link::NULL);
        let node = self.flush(node);
        parent.adopt(
            |node| node.entries[at].word.slot_mut(),
            node,
            node_tag(level as u8),
        );
    }
}

impl<'e, 'h> OpenLayer<'e, 'h> {
    /// Sees to it that the open node of a level has room for an entry whose slice has these bytes: closes the node if
    /// necessary, and opens the next one, for entries of this kind. Entries of the same slice stay together.
    fn reserve<M: Media>(
        &mut self,
        target: &Target<'_, 'e, 'h, M>,
        level: usize,
        (bytes, kind): (u64, u8),
    ) -> Result<(), Error> {
        let node = &self.0[level];
        if node.len() < FILLED {
            return Ok(());
        }
        let low = node.low.private();
        let next = target.node(bytes, kind)?;
        match level + 1 == self.0.len() {
            true => self.0.push(target.node(0, LINK)?),
            false => self.reserve(target, level + 1, (low, LINK))?,
        }
        // Nothing can fail any more.
        let mut node = std::mem::replace(&mut self.0[level], next);
        let next = &mut self.0[level];
        node.move_from(bytes, next);
        node.link_ahead(|node| &mut node.next, next, node_tag(level as u8));
        target.hang(node, level, &mut self.0[level + 1]);
        Ok(())
    }

    /// Sees to it that each level has room for the open node of the level below.
    fn reserve_to_close<M: Media>(&mut self, target: &Target<'_, 'e, 'h, M>) -> Result<(), Error> {
        let mut level = 1;
        // A full uppermost level gets another one above it.
        while level < self.0.len() {
            let low = self.0[level - 1].low.private();
            self.reserve(target, level, (low, LINK))?;
            level += 1;
        }
        Ok(())
    }

    /// Completes all nodes; returns the layer's root. Room was reserved.
    fn close<M: Media>(self, target: &Target<'_, 'e, 'h, M>) -> Option<(Flushed<'e, 'h, Node>, Tag)> {
        let mut nodes = self.0.into_iter().enumerate();
        let (mut level, mut node) = nodes.next()?;
        for (above, mut parent) in nodes {
            target.hang(node, level, &mut parent);
            (level, node) = (above, parent);
        }
        Some((target.flush(node), node_tag(level as u8)))
    }
}

impl<'e, 'h, M: Media> Builder<'_, 'e, 'h, M> {
    /// Builds everything, and returns the root.
    fn build(&mut self, parts: Parts<'_>) -> Result<Flushed<'e, 'h, Erased>, index::Error> {
        parts.read_in_turn(Order::Keys, |mut pairs| {
            while let Some((key, value)) = pairs.next()? {
                self.push(key, value)?;
            }
            Ok(())
        })?;
        Ok(self.finish()?)
    }

    /// Adds a pair, whose key is above all earlier ones.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let value = match value.try_into() {
            Ok(word) => Kept::Word(u64::from_le_bytes(word)),
            Err(_) => Kept::Leaf(self.target.leaf(key, value)?),
        };
        if self.value.is_some() {
            let slices = |depth| (Slice::of(&self.key, depth), Slice::of(key, depth));
            let mut shared = 0;
            while slices(shared).0 == slices(shared).1 {
                shared += 1;
            }
            self.advance(shared)?;
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value = Some(value);
        Ok(())
    }

    /// Places the last pair, and leaves the layers open that the next key is in, too, which shares this many slices.
    fn advance(&mut self, shared: usize) -> Result<(), Error> {
        while self.layers.len() <= shared {
            let kind = if self.layers.is_empty() { WHOLE } else { LINK };
            let border = self.target.heap.with_room(|| self.target.node(0, kind))?;
            self.layers.push(OpenLayer(vec![border]));
        }
        self.place()?;
        while self.layers.len() > shared + 1 {
            self.close_layer()?;
        }
        Ok(())
    }

    /// Adds the last pair to the innermost open layer.
    fn place(&mut self) -> Result<(), Error> {
        let (Some(value), [outer @ .., layer]) = (self.value.take(), &mut self.layers[..]) else {
            return Ok(());
        };
        let slice = Slice::of(&self.key, outer.len());
        let (held, leaf) = match value {
            Kept::Word(word) if !slice.continues() => (Held::Value(word), None),
            Kept::Word(word) => {
                let leaf = self.target.leaf(&self.key, &word.to_le_bytes())?;
                (Held::Link(Link::NULL), Some(leaf))
            }
            Kept::Leaf(leaf) => (Held::Link(Link::NULL), Some(leaf)),
        };
        let entry = (slice.bytes, held.kind(slice));
        let target = &self.target;
        target.heap.with_room(|| layer.reserve(target, 0, entry))?;
        let border = &mut layer.0[0];
        let at = border.push(slice, held);
        if let Some(leaf) = leaf {
            border.adopt(|node| node.entries[at].word.slot_mut(), leaf, leaf_tag(slice.len));
        }
        Ok(())
    }

    /// Completes the innermost layer, and adds it to the one above.
    fn close_layer(&mut self) -> Result<(), Error> {
        let target = &self.target;
        let [outer @ .., above, layer] = &mut self.layers[..] else {
            return Ok(());
        };
        let slice = Slice::of(&self.key, outer.len());
        target.heap.with_room(|| {
            layer.reserve_to_close(target)?;
            above.reserve(target, 0, (slice.bytes, LINK))
        })?;
        let Some((root, tag)) = self.layers.pop().and_then(|layer| layer.close(target)) else {
            return Ok(());
        };
        if let Some(above) = self.layers.last_mut() {
            let border = &mut above.0[0];
            let at = border.push(slice, Held::Link(Link::NULL));
            border.adopt(|node| node.entries[at].word.slot_mut(), root, tag);
        }
        Ok(())
    }

    /// Completes the index.
    fn finish(&mut self) -> Result<Flushed<'e, 'h, Erased>, Error> {
        self.advance(0)?;
        let target = &self.target;
        let (heap, first) = (target.heap, &mut self.layers[0]);
        let mut root = heap.with_room(|| {
            first.reserve_to_close(target)?;
            heap.draft(Root::new(heap.generation()), 0, target.batch)
        })?;
        if let Some((top, tag)) = self.layers.pop().and_then(|layer| layer.close(target)) {
            root.adopt(|root| &mut root.top, top, tag);
        }
        Ok(root.flush(target.batch).erased())
    }

    /// Completes the open nodes of all layers as they are, for a build that has failed.
    fn abandon(&mut self) -> Vec<Vec<(Flushed<'e, 'h, Node>, Tag)>> {
        let target = &self.target;
        let layers = self.layers.drain(..).map(|OpenLayer(nodes)| {
            let nodes = nodes.into_iter().zip(0..);
            nodes
                .map(|(node, level)| (target.flush(node), node_tag(level)))
                .collect()
        });
        layers.collect()
    }
}

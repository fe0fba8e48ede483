//! Writes: each is an edit of one key (`index::Edit`), applied by the tree's only writer (`root`).
//!
//! 1. Descend to the key's slot, comparing every digit, and recover headers on the way that need it (`recover`).
//! 2. Let the edit decide, once.
//! 3. New objects are written, written back and fenced (fence 1). One store to one slot is the commit point, made
//!    durable by fence 2. The header of a node that gets another parent changes after fence 1 and before that store,
//!    and is not written back: an older one is just as good after a crash (`header`, I4).
//!
//! With a leaf of one line: 2 write-backs and 2 fences for an insert into a slot; 5 and 2 if two keys diverge in a
//! slot, and for a split (leaf, three lines of a node, slot); 1 and 1 for a remove.

use super::node::{Header, LEAF, NODE, Node};
use super::{Wort, WriteOptimal};
use crate::recover::right_header;
use crate::root::Root;
use art::{
    Digit, HalfByte, Kind, LeafRef, Tagged, Way, damaged, draft_leaf, publish_leaf, replace_value, same,
};
use heap::{Access, Error, Guard};
use index::{Action, Edit};
use pmem::{Fault, Link, LinkAndPersist, Media, PSlot, Purpose, persist_scope};

/// The tree's only writer, at work on one key.
pub(super) struct Writer<'g, M: Media> {
    pub(super) heap: &'g Access<M>,
    pub(super) guard: &'g Guard,
    pub(super) key: &'g [u8],
}

/// The slot where a key belongs.
struct Place<'g> {
    slot: &'g PSlot,
    /// Null, a leaf, or a node from whose prefix the key parts.
    link: Link,
    /// Number of digits that lead to the object in the slot.
    depth: usize,
    /// The position where the key parts from that node's prefix, and the prefix's digit there.
    parting: Option<(usize, u8)>,
    /// The node with the slot; `None` at the top of the tree.
    above: Option<Above<'g>>,
}

/// A node, and its place.
struct Above<'g> {
    node: &'g Node,
    slot: &'g PSlot,
    link: Link,
}

impl<'g, M: Media> Writer<'g, M> {
    /// Applies the edit once this thread is the only writer.
    pub(super) fn edit(
        index: &'g Wort<M>,
        heap: &'g Access<M>,
        key: &'g [u8],
        edit: &mut dyn Edit,
        guard: &'g Guard,
    ) -> Result<Action, Error> {
        let root = Root::at(heap, index.root())?;
        let _locked = root.lock(heap)?;
        let writer = Writer { heap, guard, key };
        writer.edit_at(&writer.locate(root)?, edit)
    }

    /// Descends to the key's slot.
    fn locate(&self, root: &'g Root) -> Result<Place<'g>, Fault> {
        let media = self.heap.media();
        let mut place = Place {
            slot: &root.top,
            link: root.top.settle(media),
            depth: 0,
            parting: None,
            above: None,
        };
        let mut way = None;
        while place.link.is_inner() {
            if let Some(digit) = HalfByte::at(self.key, place.depth) {
                // If nothing is skipped, the child's line is fetched together with the header's.
                <&Node as art::Node>::prefetch(self.heap, place.link, digit);
            }
            let node = Node::at(self.heap, place.link)?;
            let header = self.header(node, &place)?;
            place.parting = self.parting(header, place.link, &mut way)?;
            if place.parting.is_some() {
                break;
            }
            let digit = HalfByte::at(self.key, header.level());
            let slot = node.slot(digit);
            let link = slot.settle(media);
            if digit.is_none() && link.is_inner() {
                return Err(damaged("leaf of the key that ends at a node", link));
            }
            place = Place {
                slot,
                link,
                depth: header.level() + 1,
                parting: None,
                above: Some(Above {
                    node,
                    slot: place.slot,
                    link: place.link,
                }),
            };
        }
        Ok(place)
    }

    /// The header of the node at the place; recovered, if need be (Algorithm 2).
    #[inline]
    fn header(&self, node: &Node, place: &Place<'g>) -> Result<Header, Fault> {
        let media = self.heap.media();
        let found = node.header(media);
        if found.depth() == place.depth {
            return Ok(found);
        }
        let right =
            right_header::<WriteOptimal, M>(self.heap, (place.link, place.depth), place.depth, found)?;
        node.header.store_unpersisted(right.to_word(), media); // line 9; for lines 10 to 12 see `header`, I4
        Ok(right)
    }

    /// Where the key parts from a node's prefix, if it does, and the prefix's digit there. Any leaf below has the
    /// digits that the header does not store: `way` has compared them, for all nodes on the key's way.
    fn parting(
        &self,
        header: Header,
        link: Link,
        way: &mut Option<Way>,
    ) -> Result<Option<(usize, u8)>, Fault> {
        for (i, digit) in (header.depth()..).zip(header.prefix()) {
            if HalfByte::at(self.key, i) != Some(digit) {
                return Ok(Some((i, digit)));
            }
        }
        if header.is_whole() {
            return Ok(None);
        }
        let (depth, level) = (header.depth(), header.level());
        let way =
            crate::recover::way_through::<WriteOptimal, M>(self.heap, (link, depth), level, self.key, way)?;
        match way.parting(level) {
            Some((shared, _)) if shared < depth => Err(damaged("prefix of a node", link)),
            parting => Ok(parting),
        }
    }

    fn edit_at(&self, place: &Place<'g>, edit: &mut dyn Edit) -> Result<Action, Error> {
        let leaf = match place.link.kind() {
            Kind::Leaf => Some(LeafRef::at(self.heap, place.link)?),
            _ if place.link.is_null() || place.parting.is_some() => None,
            _ => return Err(damaged("link's kind", place.link).into()),
        };
        if let Some(leaf) = leaf.filter(|leaf| same(leaf.key(), self.key)) {
            let action = edit.decide(Some(&leaf.value(self.heap)));
            match action {
                Action::Keep => {}
                Action::Put => {
                    let at = (place.slot, place.link);
                    replace_value::<LinkAndPersist, M>(self.heap, at, leaf, edit.value(), self.guard)?;
                }
                Action::Remove => self.remove(place, leaf),
            }
            return Ok(action);
        }
        if edit.decide(None) != Action::Put {
            return Ok(Action::Keep);
        }
        match (leaf, place.parting) {
            (Some(leaf), _) => self.split_leaf(place, leaf, edit.value())?,
            (None, Some(parting)) => self.split(place, parting, edit.value())?,
            // §3.2: the pointer last.
            (None, None) => {
                publish_leaf::<LinkAndPersist, M>(self.heap, place.slot, LEAF, self.key, edit.value())?
            }
        }
        Ok(Action::Put)
    }

    /// Two keys diverge below a slot: a new node holds both leaves, and their common digits become its prefix (§3.3:
    /// nodes are created when they are needed). Costs 5 write-backs and 2 fences.
    fn split_leaf(&self, place: &Place<'g>, leaf: LeafRef<'g>, value: &[u8]) -> Result<(), Error> {
        let level = HalfByte::shared(leaf.key(), self.key);
        if level < place.depth {
            return Err(damaged("key's place", place.link).into());
        }
        self.put_parent(place, level, HalfByte::at(leaf.key(), level), value, None)
    }

    /// Splits a compressed path (Algorithm 1, SplitCmp): the key parts from a node's prefix, so the node gets a new
    /// parent, and its header gets the right depth and prefix below it. Costs 5 write-backs and 2 fences.
    fn split(&self, place: &Place<'g>, (level, digit): (usize, u8), value: &[u8]) -> Result<(), Error> {
        let node = Node::at(self.heap, place.link)?;
        let header = node.header(self.heap.media());
        let shorter =
            right_header::<WriteOptimal, M>(self.heap, (place.link, place.depth), level + 1, header)?; // lines 5, 6
        self.put_parent(place, level, Some(digit), value, Some((node, shorter)))
    }

    /// Hangs the object in the slot, under `digit`, and a new leaf from a new node. Lines of Algorithm 1.
    fn put_parent(
        &self,
        place: &Place<'g>,
        level: usize,
        digit: Option<u8>,
        value: &[u8],
        below: Option<(&Node, Header)>,
    ) -> Result<(), Error> {
        let media = self.heap.media();
        persist_scope(media, Purpose::Node, |batch| {
            // Lines 2 and 3: the keys' common digits up to the new node's level are its prefix.
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?;
            let header = Header::of(self.key, place.depth, level);
            let mut parent = self.heap.draft(Node::new(header), 0, &batch)?;
            // Line 4.
            parent.link(|parent| parent.slot_mut(digit), place.link);
            let own = HalfByte::at(self.key, level);
            parent.adopt(|parent| parent.slot_mut(own), leaf.flush(&batch), LEAF);
            let parent = parent.flush(&batch);
            // Lines 9, 10 and 12; line 8 is not needed, nor is line 11 (`header`, I4).
            let fenced = batch.fence();
            // Line 7, later than in the paper. From here until the slot leads to the parent, and after a crash in
            // between, the node's depth is not the one at which it is reached: a thread that reaches it meanwhile
            // ignores the prefix, or recovers it.
            if let Some((node, header)) = below {
                node.header.store_unpersisted(header.to_word(), media);
            }
            // Lines 14, 16 and 17: the commit point.
            let _durable = place
                .slot
                .publish::<LinkAndPersist, _, _>(media, parent.persisted(&fenced), NODE)
                .commit();
            Ok(())
        })
    }

    /// Removes the key: one store empties its slot, or, if one child would be left in the node, puts that child in
    /// the node's place (§3.4, merge), so that no node ever has fewer than two children. If that child is a node, its
    /// prefix is then too short, as its depth shows: the next writer that needs it recovers it. Costs 1 write-back
    /// and 1 fence.
    fn remove(&self, place: &Place<'g>, leaf: LeafRef<'g>) {
        let media = self.heap.media();
        let last = place.above.as_ref().and_then(|above| {
            let others = above.node.slots().filter(|slot| !std::ptr::eq(*slot, place.slot));
            let mut others = others.map(|slot| slot.load(media)).filter(|link| !link.is_null());
            let last = others.next()?;
            others.next().is_none().then_some((above, last))
        });
        let (slot, link) = last.map_or((place.slot, Link::NULL), |(above, last)| (above.slot, last));
        let _durable = slot.publish_link::<LinkAndPersist, _>(media, link).commit();
        self.retire(place.link, leaf.extent());
        if let Some((above, _)) = last {
            self.retire(above.link, size_of::<Node>());
        }
    }

    /// Frees an object's chunk once no reader can hold it.
    #[track_caller]
    fn retire(&self, link: Link, len: usize) {
        art::retire(self.heap, self.guard, link, len);
    }
}
